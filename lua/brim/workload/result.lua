-- brim.workload.result: what a workload's run or verification gives back, from the counters of the
-- core. Called by brim.workload. Sizes are bytes, durations seconds.
local M = {}

---@class brim.WorkloadResult: brim.RunResult
---@field begun integer operations begun, from 0 on
---@field done integer all operations below it are finished
---@field waits integer operations that waited for another on the same block
---@field bins table[] { off_bytes, reads, writes, bytes, mean_latency_s } of each part of the range

---@class brim.WorkloadVerdict: brim.RunResult
---@field ok boolean nothing is missing, stale, newer, misplaced or corrupt
---@field right integer blocks
---@field missing integer
---@field stale integer
---@field newer integer
---@field misplaced integer
---@field corrupt integer
---@field unjudged integer wrong, but being written when the run ended

local COUNTS <const> = { "right", "missing", "stale", "newer", "misplaced", "corrupt",
  "unjudged" }

local function bin_of(b)
  local ios = b.reads + b.writes
  return { off_bytes = b.off_bytes, reads = b.reads, writes = b.writes, bytes = b.bytes,
    mean_latency_s = ios > 0 and b.latency_ns / ios / 1e9 or 0 }
end

---Add what is known of a run that was driven to its end.
---@param r brim.RunResult
---@param stats table run:workload_stats(true)
---@return brim.WorkloadResult
function M.of_run(r, stats)
  r.begun, r.done, r.waits = stats.begun, stats.done, stats.waits
  r.bins = {}
  for i, b in ipairs(stats.bins) do
    r.bins[i] = bin_of(b)
  end
  return r
end

---Add what a verification found.
---@param r brim.RunResult
---@param found table run:workload_found()
---@return brim.WorkloadVerdict
function M.of_verify(r, found)
  local wrong = 0
  for _, name in ipairs(COUNTS) do
    r[name] = found[name]
    if name ~= "right" and name ~= "unjudged" then
      wrong = wrong + found[name]
    end
  end
  r.ok = wrong == 0 and not r.stopped
  return r
end

return M
