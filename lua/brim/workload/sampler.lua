-- brim.workload.sampler: samples of a workload while it runs: speed and latency over time and
-- position, for a callback and a timeline. Called by brim.workload between steps.
local core = require "brim.core"

local M = {}

-- What samples hold beside what every timeline has.
local COLUMNS <const> = {
  off_bytes = { unit = "bytes", doc = "position of the latest operation on the device" },
  iops = { unit = "1/s", doc = "reads and writes finished since the last sample" },
}
for _, op in ipairs { "read", "write" } do
  for _, part in ipairs { "p50", "p99", "max" } do
    COLUMNS[("%s_%s_s"):format(op, part)] = { unit = "s",
      doc = ("%s of the latencies of %ss since the last sample"):format(part, op) }
  end
end

local function sample_of(stats, since_s)
  local s = math.max(stats.interval_ns / 1e9, 1e-9)
  local row = { t_s = core.monotonic_s() - since_s, off_bytes = stats.off_bytes,
    bytes_per_s = stats.bytes / s, iops = stats.ios / s }
  for _, op in ipairs { "read", "write" } do
    for _, part in ipairs { "p50", "p99", "max" } do
      local ns = stats[("%s_%s_ns"):format(op, part)]
      row[("%s_%s_s"):format(op, part)] = ns > 0 and ns / 1e9 or nil
    end
  end
  return row
end

local function open_timeline(workload, o)
  local line, err = require("brim.timeline").create(o.timeline, { title = "block workload",
    seed = workload.options.seed, columns = COLUMNS,
    options = { workload = tostring(workload) } })
  if not line then
    return nil, err
  end
  local ok, why = line:phase(workload.options.pattern, "workload")
  if not ok then
    line:close()
    return nil, why
  end
  return line
end

local IDLE <const> = { finish = function() return true end }

---Begin: gives { step, finish }, to be called after each step of the run, and at its end.
---@param handle brim.RunHandle
---@param workload brim.BlockWorkload
---@param o table timeline, sample, sample_interval_s
---@return table? samples
---@return brim.Error? err
function M.new(handle, workload, o)
  if not o.timeline and not o.sample then
    return IDLE
  end
  local line, err
  if o.timeline then
    line, err = open_timeline(workload, o)
    if not line then
      return nil, err
    end
  end
  local since_s = core.monotonic_s()
  local due_s, failed = since_s + o.sample_interval_s, nil
  local function take()
    local row = sample_of(handle:workload_stats(), since_s)
    local ok, why = true, nil
    if line then
      ok, why = line:sample(row)
    end
    failed = failed or not ok and why or nil
    return (not o.sample or o.sample(row) ~= false) and not failed
  end
  return {
    step = function()
      if core.monotonic_s() >= due_s then
        due_s = core.monotonic_s() + o.sample_interval_s
        return take()
      end
    end,
    finish = function(r)
      if r and not failed then
        take()
      end
      if line and r and not failed then
        local ok, why = line:result { bytes = r.bytes, ios = r.ios, wall_s = r.wall_s,
          stopped = r.stopped }
        failed = not ok and why or nil
      end
      if line then
        line:close()
      end
      return not failed, failed
    end,
  }
end

return M
