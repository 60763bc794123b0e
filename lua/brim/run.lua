-- brim.run: drives a run of the core (a write, a verify, a scan) to its end: steps it, tells
-- progress, cancels, and makes the result. Called by plan and scan. The loop below is the only one
-- there is: Lua runs between steps, never per I/O. Durations are seconds here, nanoseconds in C.
local core = require "brim.core"
local errors = require "brim.error"
local opts = require "brim.opts"

local M = {}

---@class brim.RunOpts
---@field progress? fun(p: brim.Progressed): boolean? called between steps; false cancels
---@field progress_interval_s? number default 1

---@class brim.RunResult
---@field engine string the engine that was used
---@field stopped? string why it ended early: "cancelled"
---@field groups integer groups written or checked
---@field ios integer
---@field writes integer I/Os that carried data out
---@field reads integer
---@field bytes integer
---@field read_bytes integer
---@field write_bytes integer
---@field zero_bytes integer
---@field zero_ranges integer
---@field flushes integer
---@field short_ios integer
---@field retries integer
---@field wall_s number
---@field user_cpu_s number of the whole process so far
---@field system_cpu_s number of the whole process so far
---@field run_user_cpu_s number of this run
---@field run_system_cpu_s number of this run
---@field peak_rss_bytes integer
---@field mean_queue_depth number
---@field groups_per_s number
---@field iops number
---@field bytes_per_s number
---@field latency_p50_s number
---@field latency_p90_s number
---@field latency_p99_s number
---@field latency_max_s number
---@field mismatch_count integer differences found; only the first few are kept
---@field mismatches brim.Mismatch[]

---What drive takes beside its handle; plan and scan share it with their own options.
M.SCHEMA = {
  progress = { type = "function", doc = "called between steps; returning false cancels" },
  progress_interval_s = { type = "number", default = 1, min = 0, doc = "least time between calls" },
}

-- Long enough to cost nothing, short enough for an interrupt to feel immediate. The core takes a
-- budget of 0 for "to the end", so there is a least one.
local STEP_S <const>, LEAST_STEP_S <const> = 0.1, 0.001
local GC_STRESS <const> = os.getenv("BRIM_GC") == "stress"

local result_mt = { __name = "brim.result" }

function result_mt:__tostring()
  local plain = {}
  for k, v in pairs(self) do
    plain[k] = v
  end
  return require("brim.pretty").format(plain)
end

---Build the result table of a run from its counters.
---@param stats table the table a step of the core returns
---@return brim.RunResult
function M.result(stats)
  local wall_s = stats.elapsed_ns / 1e9
  local per_s = wall_s > 0 and 1 / wall_s or 0
  local result = core.process_usage()
  result.engine = stats.engine
  result.groups, result.ios, result.bytes = stats.groups_done, stats.ios_done, stats.bytes_done
  for _, name in ipairs { "reads", "writes", "zero_ranges", "flushes", "read_bytes", "write_bytes",
    "zero_bytes", "short_ios", "retries", "mean_queue_depth" } do
    result[name] = stats[name]
  end
  result.wall_s = wall_s
  result.run_user_cpu_s = stats.user_cpu_ns / 1e9
  result.run_system_cpu_s = stats.system_cpu_ns / 1e9
  result.groups_per_s = result.groups * per_s
  result.iops = result.ios * per_s
  result.bytes_per_s = result.bytes * per_s
  for _, name in ipairs { "p50", "p90", "p99", "max" } do
    result["latency_" .. name .. "_s"] = stats["latency_" .. name .. "_ns"] / 1e9
  end
  result.mismatch_count = stats.mismatches
  return setmetatable(result, result_mt)
end

-- The differences the core kept, in the order of their offsets.
local function mismatches(handle, stats)
  local list = {}
  while stats.mismatches > #list do
    local m = handle:mismatch(#list + 1)
    if not m then
      break
    end
    list[#list + 1] = m
  end
  return list
end

-- Calls the caller; true when it wants an end. Its error comes out once nothing is in flight.
local function wants_end(handle, f, stats)
  local ok, answer = pcall(f, stats)
  if not ok then
    handle:close()
    error(answer, 0)
  end
  return answer == false
end

---Step a run to its end. The handle stays the caller's, who closes it.
---@param handle brim.RunHandle
---@param o? brim.RunOpts
---@param after_step? fun(): boolean? called after each step, the last too; false cancels
---@return brim.RunResult? result
---@return brim.Error? err
function M.drive(handle, o, after_step)
  o = opts.check(o, M.SCHEMA, "brim.run.drive")
  if core.interrupted() then
    -- A script that was interrupted in one run must not go on with the next.
    return nil, errors.new { code = "EINTR", errno = 4, message = "interrupted" }
  end
  local step_s = o.progress and o.progress_interval_s or STEP_S
  step_s = math.max(math.min(step_s, STEP_S), LEAST_STEP_S)
  local due_s = core.monotonic_s() + o.progress_interval_s
  local more, stats, stopped
  repeat
    more, stats = handle:step(step_s)
    if GC_STRESS then
      collectgarbage()
    end
    if more == nil then
      return nil, stats
    elseif more and core.interrupted() then
      stopped = "cancelled"
    elseif o.progress and (core.monotonic_s() >= due_s or not more) then
      due_s = core.monotonic_s() + o.progress_interval_s
      stopped = wants_end(handle, o.progress, stats) and more and "cancelled" or nil
    end
    if after_step and not stopped then
      stopped = wants_end(handle, after_step) and "cancelled" or nil
    end
  until not more or stopped
  local result = M.result(stats)
  result.stopped = stopped
  result.mismatches = mismatches(handle, stats)
  return result
end

return M
