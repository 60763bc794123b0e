-- brim.experiment: variants (knobs, geometry, kernel, workload, drive) over seeds, each run a cell
-- of a directory with its own timeline; what finished is not repeated. Then a verdict between
-- variants with its uncertainty, and a report. Called by scripts and the recipe f2fs-near-full.
-- Durations are seconds.
local cells = require "brim.experiment.cells"
local core = require "brim.core"
local errors = require "brim.error"
local explain = require "brim.experiment.explain"
local metrics = require "brim.experiment.metrics"
local opts = require "brim.opts"
local reader = require "brim.timeline.reader"
local report = require "brim.report"
local stats = require "brim.experiment.stats"
local verdict = require "brim.experiment.verdict"
local work = require "brim.experiment.work"

local M = { stats = stats }

---A variant: what differs. All of it is plain data.
---@class brim.ExperimentVariant
---@field name string
---@field knobs? table<string, integer|string> over those of the preset
---@field preset? string of brim.knobs
---@field workload? brim.ExperimentWorkload default: the experiment's
---@field kernel? string of the lab, like "uml-6.1"
---@field geometry? table of brim.f2fs.geometry; lab only, default 1 GiB
---@field drive? brim.DriveOpts lab only
---@field mount_options? string lab only

---@class brim.ExperimentOpts
---@field dir string of the experiment; made when it is missing
---@field variants brim.ExperimentVariant[] the first is the baseline
---@field seeds? integer[] default { 1 }; a verdict needs four
---@field workload? brim.ExperimentWorkload of all variants that have none of their own
---@field on? "lab"|string|function default "lab"; a directory of a mounted filesystem; or a
---function of the cell that writes cell.timeline and returns a result, or nil and an error
---@field resume? boolean go on in a directory that has cells
---@field timeout_s? number of a guest
---@field umount_s? number that a guest has to unmount
---@field yes_really? boolean as of brim.fill
---@field progress? fun(cell: brim.ExperimentCell, i: integer, n: integer): boolean? called before
---each cell that is to run; returning false stops

---@class brim.Experiment
---@field dir string
---@field variants brim.ExperimentVariant[]
---@field cells brim.ExperimentCell[] finished ones have a result
---@field failures { cell: string, message: string }[]
---@field ran integer cells that ran now
---@field stopped? string "interrupted", "cancelled"
---@field ok boolean did all cells finish?
local Experiment = {}
Experiment.__index, Experiment.__name = Experiment, "brim.experiment"

local SCHEMA <const> = {
  dir = { type = "path", required = true, doc = "of the experiment" },
  variants = { type = "table", required = true, doc = "what is compared, the baseline first" },
  seeds = { type = "table", default = { 1 }, doc = "list of integers" },
  workload = { type = "table", doc = "of variants without their own" },
  on = { type = "any", default = "lab", doc = "\"lab\", a directory, or a function" },
  resume = { type = "bool", default = false, doc = "go on in a directory that has cells" },
  timeout_s = { type = "number", default = 3600, min = 1, doc = "of a guest" },
  umount_s = { type = "number", default = 600, min = 0, doc = "that a guest has to unmount" },
  yes_really = { type = "bool", default = false, doc = "as of brim.fill" },
  progress = { type = "function", doc = "called before each cell" },
}

local VARIANT <const> = {
  name = { type = "string", required = true, doc = "of the variant" },
  knobs = { type = "table", doc = "values by name" },
  preset = { type = "string", doc = "of brim.knobs" },
  workload = { type = "table", doc = "sets, churn_s, idle_s" },
  kernel = { type = "string", doc = "of the lab" },
  geometry = { type = "table", doc = "of brim.f2fs.geometry" },
  drive = { type = "table", doc = "of brim.drive" },
  mount_options = { type = "string", doc = "as for mount -o" },
}

-- Checked variants, each with its workload. Names are directories, so they differ as these do.
local function check_variants(o)
  local list, seen = {}, {}
  for i, v in ipairs(o.variants) do
    v = opts.check(v, VARIANT, ("brim.experiment: variants[%d]"):format(i))
    local own = v.workload or o.workload
    if not own and type(o.on) ~= "function" then
      error(("brim.experiment: variant '%s' has no workload"):format(v.name), 3)
    end
    v.workload = own and work.check(own)
    list[i] = v
  end
  if #list == 0 then
    error("brim.experiment: no variant", 3)
  end
  for _, cell in ipairs(cells.list("", list, { 0 })) do
    if seen[cell.name] then
      error(("brim.experiment: two variants are named '%s'"):format(cell.variant.name), 3)
    end
    seen[cell.name] = true
  end
  return list
end

local function check_seeds(seeds)
  local seen = {}
  for _, seed in ipairs(seeds) do
    if math.type(seed) ~= "integer" or seed < 0 or seed >= 1 << 40 or seen[seed] then
      error("brim.experiment: seeds: expected different integers from 0 to 2^40, got "
        .. tostring(seed), 3)
    end
    seen[seed] = true
  end
end

local function runner(on)
  if type(on) == "function" then
    return on
  elseif on == "lab" then
    return require("brim.experiment.places").lab
  end
  return function(cell, o)
    return require("brim.experiment.places").path(cell, o, on)
  end
end

-- One cell: true, or nil and why it did not finish; what was interrupted is no failure.
local function run_cell(self, cell, o)
  local ok, err = cells.begin(cell)
  if not ok then
    return nil, err
  end
  local result
  result, err = runner(o.on)(cell, o)
  if not result then
    return nil, err
  elseif result.stopped == "interrupted" or result.stopped == "cancelled" then
    self.stopped = result.stopped
    return true
  end
  return cells.finish(cell, result)
end

local function run_all(self, o)
  for i, cell in ipairs(self.cells) do
    if core.interrupted() then
      self.stopped = "interrupted"
    elseif not cell.result and not self.stopped then
      if o.progress and o.progress(cell, i, #self.cells) == false then
        self.stopped = "cancelled"
        return
      end
      local ok, err = run_cell(self, cell, o)
      if not ok then
        self.failures[#self.failures + 1] = { cell = cell.name, message = tostring(err) }
      end
      self.ran = self.ran + (cell.result and 1 or 0)
    end
  end
end

---Run an experiment: cells that finished before are kept, those that failed or were cut off run
---(again). A cell that fails is in `failures` and does not keep others from running.
---@param o brim.ExperimentOpts
---@return brim.Experiment? experiment
---@return brim.Error? err the directory holds something else, or cannot be written
function M.run(o)
  o = opts.check(o, SCHEMA, "brim.experiment.run")
  local variants = check_variants(o)
  check_seeds(o.seeds)
  local self = setmetatable({ dir = o.dir, variants = variants, failures = {}, ran = 0,
    cells = cells.list(o.dir, variants, o.seeds) }, Experiment)
  local finished, err = cells.take(self.cells, o.resume)
  if not finished then
    return nil, err
  end
  run_all(self, o)
  self.ok = not self.stopped and #self.failures == 0
  return self
end

---Read the finished cells' timelines.
---@return { variant: string, seed: integer, cell: brim.ExperimentCell, run: brim.TimelineData,
---metrics: brim.ExperimentMetric[] }[]? runs
---@return brim.Error? err a timeline could not be read
function Experiment:runs()
  local list = {}
  for _, cell in ipairs(self.cells) do
    if cell.result then
      local run, err = reader.read(cell.timeline)
      if not run then
        return nil, err
      end
      run.header.title = ("%s, seed %d"):format(cell.variant.name, cell.seed)
      list[#list + 1] = { variant = cell.variant.name, seed = cell.seed, cell = cell, run = run,
        metrics = metrics.of(run) }
    end
  end
  return list
end

local function names_of(self)
  local names = {}
  for i, v in ipairs(self.variants) do
    names[i] = v.name
  end
  return names
end

---Compare the variants with the first, metric by metric.
---@param o? { seed?: integer } of the bootstrap, default 1
---@return brim.ExperimentLine[]? lines
---@return brim.Error? err
function Experiment:verdict(o)
  local runs, err = self:runs()
  return runs and verdict.lines(runs, names_of(self), o and o.seed), err
end

---Explain what each variant of the lab makes the kernel do, with what was measured of it.
---@return { name: string, text: string }[]? texts
---@return brim.Error? err
function Experiment:explain()
  local runs, err = self:runs()
  return runs and explain.variants(self.variants, runs), err
end

local NOTE <const> = "Means over seeds; in brackets the 95 %% bootstrap interval of their ratio "
  .. "(of the difference where values are zero). A difference is stated as one where the interval "
  .. "leaves out equality and the exact Mann-Whitney test rejects at 5 %%, which takes four runs "
  .. "of each. %d comparisons: one in twenty is expected to be by chance."

---The sections of a report beside its charts.
---@param runs table[] of Experiment:runs
---@return brim.ReportSection[]
function Experiment:sections(runs)
  local lines = verdict.lines(runs, names_of(self))
  local heads, rows = verdict.rows(lines)
  local list = {}
  if #rows > 0 then
    list[1] = { title = "Verdict", heads = heads, rows = rows, note = NOTE:format(#rows) }
  end
  for _, e in ipairs(explain.variants(self.variants, runs)) do
    list[#list + 1] = { title = "What the kernel does: " .. e.name, text = e.text, open = false }
  end
  for _, f in ipairs(self.failures) do
    list[#list + 1] = { title = "Did not finish: " .. f.cell, text = f.message }
  end
  return list
end

-- Curves that can still be told apart.
local CURVES_MOST <const> = 8

---Write the report: curves of all cells over each other (with many, of the first seed of each
---variant), the verdict, what explain says.
---@param path string
---@return integer? bytes
---@return brim.Error? err
function Experiment:report(path)
  local runs, err = self:runs()
  if not runs then
    return nil, err
  elseif #runs == 0 then
    return nil, errors.usage("%s: no cell has finished", self.dir)
  end
  local curves, seen = {}, {}
  for _, r in ipairs(runs) do
    if #runs <= CURVES_MOST or not seen[r.variant] then
      curves[#curves + 1] = r.run
    end
    seen[r.variant] = true
  end
  return report.write(path, curves, { title = "Experiment: " .. table.concat(names_of(self), ", "),
    sections = self:sections(runs) })
end

---End a recipe: report.html into the directory, and what is to be printed.
---@return table result ok, text, report, verdict
---@return brim.Error? err
function Experiment:finish()
  local path = self.dir .. "/report.html"
  local ok, err = self:report(path)
  if not ok and #self.failures == 0 and not self.stopped then
    return nil, err
  end
  return { ok = self.ok, stopped = self.stopped, failures = self.failures, ran = self.ran,
    report = ok and path or nil, verdict = self:verdict(), text = ("%s%s"):format(tostring(self),
      ok and ("\nreport in %s"):format(path) or "") }
end

function Experiment:__tostring()
  local runs, err = self:runs()
  if not runs then
    return ("brim.experiment %s: %s"):format(self.dir, err)
  end
  local out = { ("%s: %d of %d cells finished%s"):format(self.dir, #runs, #self.cells,
    self.stopped and ", " .. self.stopped or "") }
  for _, f in ipairs(self.failures) do
    out[#out + 1] = ("  %s failed: %s"):format(f.cell, f.message)
  end
  for _, l in ipairs(verdict.lines(runs, names_of(self))) do
    out[#out + 1] = ("  %-38s %s: %s"):format(l.metric, l.variant, l.text)
  end
  return table.concat(out, "\n")
end

return M
