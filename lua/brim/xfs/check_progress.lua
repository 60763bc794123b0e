-- brim.xfs.check_progress: tells how far the walked part of a check is, in the words of a run's
-- progress. Called by check, which has its parts call the function made here between their reads.
local core = require "brim.core"

local M = {}

---Make the function that parts of a check call often, with the name of what they do: it tells the
---caller of the check at most each interval, and is false once that one wants an end.
---@param c brim.xfs.Checker
---@return fun(phase: string): boolean
function M.new(c)
  local tell = c.run.progress
  if not tell then
    return function() return true end
  end
  local interval_s = c.run.progress_interval_s or 1
  local begun_s = core.monotonic_s()
  local due_s = begun_s + interval_s
  local p = { ios_total = 0, bytes_total = 0 }
  return function(phase)
    local now_s = core.monotonic_s()
    if now_s < due_s then
      return true
    end
    due_s = now_s + interval_s
    local stats = c.walk:stats()
    local elapsed_ns = (now_s - begun_s) * 1e9
    p.phase, p.elapsed_ns = phase, math.floor(elapsed_ns)
    p.engine, p.ios_done, p.bytes_done = stats.engine, stats.reads, stats.read_bytes
    p.groups_done, p.groups_total = c.counts.groups_walked, c.to_walk
    p.mean_queue_depth = elapsed_ns > 0 and stats.latency_sum_ns / elapsed_ns or 0
    return tell(p) ~= false
  end
end

return M
