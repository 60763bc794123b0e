-- brim.fill: fills filesystems to the brim: a workload is a list of steps (fill to a level, churn,
-- idle, sync, a mark) over files that follow from a seed; it can be run, resumed, verified, cleaned
-- up. Called by scripts and the recipes fill, near-full, verify-fill. Sizes are bytes, durations
-- seconds, fullness 0 to 1 as a synchronised statfs tells it.
local churn = require "brim.fill.churn"
local core = require "brim.core"
local errors = require "brim.error"
local level = require "brim.fill.level"
local log = require "brim.fill.log"
local options = require "brim.fill.options"
local opts = require "brim.opts"
local process = require "brim.process"
local replay = require "brim.fill.replay"
local report = require "brim.fill.result"
local safety = require "brim.fill.safety"
local session = require "brim.fill.session"

local M = {}

---A workload: what files, and what becomes of them.
---@class brim.Workload
local Workload = {}
Workload.__index = Workload
Workload.__name = "brim.workload"

-- One for each processor, which is where submitting is done.
local STREAMS_MAX <const> = 8
local IDLE_STEP_S <const> = 0.1

local function processors()
  local ok, out = process.run "nproc"
  return math.min(ok and math.tointeger(tonumber(out)) or 1, STREAMS_MAX)
end

local function with_manifest(o)
  local m = o.manifest
  if type(m) == "string" then
    local loaded, err = require("brim.manifest").load(m)
    m = loaded or error(err, 0)
  end
  for name, v in pairs(m and require("brim.manifest").fileset(m) or {}) do
    if o[name] == nil then
      o[name] = v
    end
  end
end

---Describe files: seed, sizes, directories, content. Nothing is written yet.
---@param o? table seed, sizes, manifest, streams, depth, fan_out, files_per_dir, extensions,
---content, compress_to
---@return brim.Workload
function M.new(o)
  o = opts.check(o, options.WORKLOAD, "brim.fill.new")
  with_manifest(o)
  o.streams = o.streams or processors()
  local self = setmetatable({ fileset_options = options.fileset(o), steps = {} }, Workload)
  local fileset, err = core.fileset_new(self.fileset_options)
  if not fileset then
    error("brim.fill.new: " .. err.message, 2)
  end
  return self
end

function Workload:__tostring()
  local names = {}
  for i, step in ipairs(self.steps) do
    names[i] = step.name
  end
  return ("brim.workload, seed %d: %s"):format(self.fileset_options.seed, table.concat(names, ", "))
end

local function add(self, step)
  self.steps[#self.steps + 1] = step
  return self
end

---Add a step: create files up to a level: "97%", 0.97, "enospc" (then halve their size until not
---one further block fits), { free = "1g" }, { files = n }, { bytes = "10g" }.
---@param target string|number|table
---@return brim.Workload self
function Workload:fill(target)
  local t, why = options.target(target)
  if not t then
    error("brim.fill: " .. why, 2)
  end
  return add(self, { kind = "fill", name = t.name, target = t })
end

---Add a step: create, delete, overwrite, append, truncate and replace files while the fullness
---stays where it is: for seconds, bytes, or turnovers.
---@param o table seconds, bytes or turnovers; band, at, feedback_s; weights
---@return brim.Workload self
function Workload:churn(o)
  o = opts.check(o, options.CHURN, "brim.fill.churn")
  if not (o.seconds or o.bytes or o.turnovers) then
    error("brim.fill.churn: for how long? give seconds, bytes or turnovers", 2)
  end
  local last = self.steps[#self.steps]
  local target = last and last.kind == "fill" and last.target
  if not o.at and target and target.kind == "fullness" then
    o.at = target.value
  end
  return add(self, { kind = "churn", churn = o,
    name = o.at and ("churn at %.4g %%"):format(100 * o.at) or "churn" })
end

---Add a step: do nothing for a while, as a paused rsync.
---@param seconds number
---@return brim.Workload self
function Workload:idle(seconds)
  if type(seconds) ~= "number" or seconds < 0 then
    error("brim.fill.idle: expected a number of seconds", 2)
  end
  return add(self, { kind = "idle", name = "idle", seconds = seconds })
end

---Add a step: write everything back.
---@return brim.Workload self
function Workload:sync()
  return add(self, { kind = "sync", name = "sync" })
end

---Add a step: a mark in the timeline.
---@param name string
---@return brim.Workload self
function Workload:snapshot(name)
  return add(self, { kind = "snapshot", name = tostring(name) })
end

-- ----------------------------------------------------------------------- steps

local run_step = {}

function run_step.fill(s, step)
  local outcome = level.run(s, step.target)
  s.unreached = outcome.stopped ~= nil
  return outcome
end

function run_step.churn(s, step, elapsed_s)
  local o = {}
  for k, v in pairs(step.churn) do
    o[k] = v
  end
  o.elapsed_s = elapsed_s
  if s.unreached then
    o.at = nil -- what cannot be reached cannot be held
  end
  return churn.run(s, o)
end

function run_step.idle(s, step, elapsed_s)
  local until_s = core.monotonic_s() + step.seconds - elapsed_s
  while core.monotonic_s() < until_s and not s.stopped do
    core.sleep(math.max(math.min(until_s - core.monotonic_s(), IDLE_STEP_S), 0))
    local _, stats = s.handle:step(0.001)
    s:look(stats)
  end
  return {}
end

function run_step.sync(s)
  s:checkpoint(nil, true)
  return {}
end

function run_step.snapshot(s, step)
  s.record:mark(step.name)
  return {}
end

-- Runs the steps from one on; the results of each.
local function run_steps(s, steps, first, elapsed_s)
  local results = {}
  for i = first, #steps do
    local step = steps[i]
    local level_of = step.target and step.target.kind == "fullness" and step.target.value
      or step.churn and step.churn.at
    local r = report.begin(s, step)
    s.record:phase(step.name, step.kind, level_of or nil)
    local outcome = run_step[step.kind](s, step, i == first and elapsed_s or 0)
    if step.kind ~= "snapshot" then
      s:checkpoint()
      s.record:flush()
    end
    results[#results + 1] = report.finish(s, r, outcome)
    if s.stopped then
      break
    end
    local ok, err = s.log:add { type = "step", step = i }
    if not ok then
      error(err, 0)
    end
  end
  return results
end

-- The timeline ends with why, where it still can be written.
local function give_up(s, err)
  local is_error = errors.is(err)
  local code = is_error and err.code or "EFAIL"
  pcall(s.record.event, s.record, { kind = "error", op = is_error and err.op or nil, code = code,
    path = is_error and err.path or s.path, message = tostring(err) })
  pcall(s.record.result, s.record, { stopped = code, ok = false, message = tostring(err),
    refused = s.refused, failed = s.failed, stalls = s.record.stalls })
end

-- Runs, and whatever happens lets what is in flight finish.
local function run(s, header, first, elapsed_s)
  local begun_s = core.monotonic_s()
  local _, stats = s.handle:step(0.001)
  s.stats = stats
  local ok, results = pcall(run_steps, s, header.steps, first, elapsed_s)
  if not ok then
    s:finish_trace {}
    give_up(s, results)
    s:close()
    if errors.is(results) then
      return nil, results
    end
    error(results, 0)
  end
  local result = report.make(s, results, core.monotonic_s() - begun_s)
  s.log:add { type = "end", stopped = s.stopped, done = s:done() }
  local kept, lost = s.log:flush()
  if not kept then
    result.log_lost = tostring(lost)
    result.text = ("%s\nthe end of the log could not be written: %s"):format(result.text, lost)
  end
  s:finish_trace(result)
  local written, err = pcall(s.record.result, s.record, result)
  s:close()
  if not written then
    return nil, err
  end
  return result   -- alone: print(assert(w:run(path))) is to end with it
end

-- What of the run's options is data, for the log and the timeline.
local function plain(o)
  local out = {}
  for k, v in pairs(o) do
    if type(v) ~= "function" and k ~= "probes" then
      out[k] = v
    end
  end
  return out
end

---Run a workload on a directory.
---@param path string
---@param o? table timeline, probes, sample_s, checkpoint_s, stall_s, mode, queue_depth, direct,
---fsync, trace_path, trace_format, progress, progress_interval_s, margin, yes_really
---@return brim.FillResult? result
---@return brim.Error? err
function Workload:run(path, o)
  o = opts.check(o, options.RUN, "brim.fill.run")
  local ok, err = safety.check(path, o)
  if not ok then
    return nil, err
  end
  local targets = {}
  for _, step in ipairs(self.steps) do
    targets[#targets + 1] = step.target
  end
  ok, err = safety.check_targets(path, o, targets)
  if not ok then
    return nil, err
  end
  local header = { fileset = self.fileset_options, steps = self.steps, run = plain(o),
    seed = self.fileset_options.seed, brim = core.version,
    boot_id = process.line "/proc/sys/kernel/random/boot_id" }
  local kept, why = log.create(path, header, core.usage(path).size_bytes)
  if not kept then
    return nil, why
  end
  local s, failed = session.open(path, { fileset = header.fileset, run = o, header = header,
    log = kept })
  if not s then
    kept:discard()
    return nil, failed
  end
  return run(s, header, 1, 0)
end

---Count what a workload's files would be, without touching a filesystem.
---@param o { files?: integer, bytes?: integer|string } how many, or how much
---@return { files: integer, bytes: integer, directories: integer, wall_s: number }
function Workload:dry_run(o)
  o = opts.check(o, { files = { type = "int", min = 1 }, bytes = { type = "bytes" } },
    "brim.fill.dry_run")
  if not (o.files or o.bytes) then
    error("brim.fill.dry_run: how many? give files or bytes", 2)
  end
  local fileset = assert(core.fileset_new(self.fileset_options))
  local handle <close> = assert(core.fill_open(fileset, ".", { mode = "none" }))
  local streams, begun_s = fileset:streams(), core.monotonic_s()
  local stats
  repeat
    local left = o.files and o.files - (stats and stats.live_files or 0)
    local bytes = o.bytes and o.bytes - (stats and stats.live_bytes or 0)
    assert(handle:grant(left and math.max(left // streams, 1) or nil,
      bytes and math.max(bytes // streams, 1) or nil))
    local more
    repeat
      more, stats = handle:step(1)
      assert(more ~= nil, stats)
    until not more
  until stats.live_files >= (o.files or 0) and stats.live_bytes >= (o.bytes or 0)
  return { files = stats.live_files, bytes = stats.live_bytes, directories = stats.ops.mkdir,
    wall_s = core.monotonic_s() - begun_s,
    peak_rss_bytes = core.process_usage().peak_rss_bytes }
end

-- ------------------------------------------------------------- resuming, ending

---Go on with a fill that was stopped or killed: what was done since the last checkpoint is done
---again, which changes nothing where it was done before.
---@param path string
---@param o? table as of workload:run
---@return brim.FillResult? result
---@return brim.Error? err
function M.resume(path, o)
  o = opts.check(o, options.RUN, "brim.fill.resume")
  local read, err = log.read(path)
  if not read then
    return nil, err
  end
  local header, state = read.header, replay.state(read)
  if state.is_over then
    return nil, errors.usage("the fill of %s came to its end: nothing is left to do", path)
  elseif safety.holds(path) and not o.yes_really then
    return nil, errors.usage("%s is on a system's filesystem; say --yes-really", path)
  end
  o.margin, o.resume = o.margin or header.run.margin, true
  local kept, why = log.continue(path, read, state.count)
  if not kept then
    return nil, why
  end
  local s, failed = session.open(path, { fileset = header.fileset, run = o, header = header,
    log = kept })
  if not s then
    kept:close()
    return nil, failed
  end
  local ok, reason = replay.apply(s.handle, state)
  if not ok then
    s:close()
    return nil, reason
  end
  if state.grant then
    s.record:phase("resume", "fill")
    ok, reason = pcall(s.grant, s, state.grant.ops, state.grant.bytes)
    if not ok then
      s:close()
      return nil, reason
    end
  end
  return run(s, header, state.step + 1, state.elapsed_s)
end

---Compare what a fill left with its seed.
---@param path string
---@param o? table threads, direct, max_findings, progress
---@return table? result ok, files, bytes, found (numbers by kind), findings, unjudged, short_files
---(stand as they were refused: no finding)
---@return brim.Error? err
function M.verify(path, o)
  return require("brim.fill.verify").run(path, o)
end

---Remove all that a fill made.
---@param path string
---@return true? ok
---@return brim.Error? err
function M.clean(path)
  local read, err = log.read(path, true)
  if not read then
    return nil, err
  end
  local words = { "rm", "-rf", "--one-file-system", "--" }
  for k = 0, read.header.fileset.streams - 1 do
    words[#words + 1] = ("%s/s%d"):format(path, k)
  end
  -- The log last: without it nobody would know what to remove.
  local ok, why = process.run(table.unpack(words))
  if ok then
    ok, why = process.run("rm", "-rf", "--one-file-system", "--", path .. "/" .. log.DIR)
  end
  if not ok then
    return nil, errors.new { code = "EIO", op = "clean", path = path, message = why }
  end
  core.usage_sync(path)
  return true
end

return M
