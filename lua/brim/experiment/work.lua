-- brim.experiment.work: the workload of a cell on a directory: data sets one after the other, each
-- filled to its levels with churn, then idleness; one timeline of all. Called by experiment.places
-- on this machine and by experiment.guest in the lab's guests. Durations are seconds.
local core = require "brim.core"
local dist = require "brim.dist"
local errors = require "brim.error"
local fill = require "brim.fill"
local fill_options = require "brim.fill.options"
local json = require "brim.json"
local opts = require "brim.opts"
local process = require "brim.process"

local M = {}

---@class brim.ExperimentSet
---@field sizes? string distribution, like "log_uniform(4k,4m)"
---@field levels string[] like { "50%", "80%" }, of the whole filesystem

---@class brim.ExperimentWorkload
---@field sets brim.ExperimentSet[] data sets, each in a directory of its own, one after the other
---@field churn_s? number at each level; 0 for none
---@field idle_s? number after all
---@field streams? integer
---@field sample_s? number
---@field checkpoint_s? number

local SCHEMA <const> = {
  sets = { type = "table", required = true, doc = "data sets" },
  churn_s = { type = "number", default = 0, min = 0, doc = "at each level" },
  idle_s = { type = "number", default = 0, min = 0, doc = "after all" },
  streams = { type = "int", default = 1, min = 1, max = 256, doc = "trees filled side by side" },
  sample_s = { type = "number", default = 1, min = 0.01, doc = "time between samples" },
  checkpoint_s = { type = "number", default = 15, min = 0.1, doc = "time between syncs" },
}

local SET <const> = {
  sizes = { type = "string", default = "log_uniform(4k,4m)", doc = "distribution of file sizes" },
  levels = { type = "table", required = true, doc = "levels of fullness" },
}

---Check a workload: raises as all option tables do.
---@param o brim.ExperimentWorkload
---@return brim.ExperimentWorkload
function M.check(o)
  o = opts.check(o, SCHEMA, "brim.experiment: workload")
  local sets = {}
  for i, set in ipairs(o.sets) do
    local where = ("brim.experiment: sets[%d]"):format(i)
    set = opts.check(set, SET, where)
    local d, why = dist.parse(set.sizes)
    if not d then
      error(("%s: sizes: %s"):format(where, why), 2)
    end
    for _, level in ipairs(set.levels) do
      local target, reason = fill_options.target(level)
      if not target then
        error(("%s: levels: %s"):format(where, reason), 2)
      end
    end
    sets[i] = set
  end
  if #sets == 0 then
    error("brim.experiment: workload: no set", 2)
  end
  o.sets = sets
  return o
end

-- The i-th set as a workload of brim.fill.
local function workload_of(work, i, seed)
  local set = work.sets[i]
  local w = fill.new { seed = seed * 1000 + i, sizes = assert(dist.parse(set.sizes)),
    streams = work.streams }
  for _, level in ipairs(set.levels) do
    w:fill(level)
    if work.churn_s > 0 then
      w:churn { seconds = work.churn_s }
    end
  end
  if i == #work.sets and work.idle_s > 0 then
    w:sync():idle(work.idle_s)
  end
  return w
end

local CUMULATIVE <const> = { "written_bytes", "files" }

-- The lines of one part, moved behind those before it. Torn lines are left out.
local function append(out, path, state)
  local last = { t_s = state.t_s }
  for line in io.lines(path) do
    local r = json.decode(line)
    local is_first = type(r) == "table" and r.type == "header"
    if type(r) == "table" and (not is_first or not state.has_header) then
      if is_first then
        state.has_header = true
        r.seed = state.seed
      else
        r.t_s = r.t_s + state.t_s
        last.t_s = math.max(last.t_s, r.t_s)
        for _, name in ipairs(r.type == "sample" and CUMULATIVE or {}) do
          r[name] = r[name] and r[name] + (state[name] or 0)
          last[name] = r[name] or last[name]
        end
      end
      state.result = r.type == "result" and r or state.result
      if r.type ~= "result" then
        out:write(json.encode(r), "\n")
      end
    end
  end
  for name, v in pairs(last) do
    state[name] = v
  end
end

---Make one timeline of those of the parts: time and what is counted from the start go on.
---@param path string
---@param parts string[]
---@param seed integer of the cell
---@return true? ok
---@return brim.Error? err
function M.join(path, parts, seed)
  local out, why = io.open(path, "wb")
  if not out then
    return nil, errors.new { code = "EIO", op = "join", path = path, message = why }
  end
  local state = { t_s = 0, seed = seed }
  for _, part in ipairs(parts) do
    state.result = nil
    append(out, part, state)
  end
  if state.result then
    out:write(json.encode(state.result), "\n")
  end
  local ok, reason = out:close()
  return ok, not ok and errors.new { code = "EIO", op = "join", path = path, message = reason }
    or nil
end

---Run it.
---@param path string directory, which is there
---@param work brim.ExperimentWorkload checked
---@param o { seed: integer, timeline: string, probes?: (fun(): table), yes_really?: boolean }
---@return table? result stopped, parts: what brim.fill gave for each set
---@return brim.Error? err
function M.run(path, work, o)
  local parts, results, failed = {}, {}, nil
  for i in ipairs(work.sets) do
    local dir = ("%s/set%d"):format(path, i)
    local ok, why = process.run("mkdir", "-p", "--", dir)
    if not ok then
      return nil, errors.new { code = "EIO", op = "mkdir", path = dir, message = why }
    end
    local part = ("%s.part%d"):format(o.timeline, i)
    local r, err = workload_of(work, i, o.seed):run(dir, { timeline = part,
      sample_s = work.sample_s, checkpoint_s = work.checkpoint_s, yes_really = o.yes_really,
      probes = o.probes and o.probes() or nil })
    parts[i], results[i], failed = part, r, err
    if not r or r.stopped or core.interrupted() then
      break
    end
  end
  if failed then
    return nil, failed
  end
  local ok, err = M.join(o.timeline, parts, o.seed)
  for _, part in ipairs(ok and parts or {}) do
    os.remove(part)
  end
  local last = results[#results]
  return ok and { stopped = last.stopped, failed = last.failed } or nil, err
end

return M
