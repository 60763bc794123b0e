-- brim.experiment.metrics: the numbers that a timeline comes down to: speed and latency at each
-- level, requests, moved blocks, and how often an idle filesystem's GC is called. Called by
-- brim.experiment. Pure. Bytes, seconds, fractions.
local M = {}

---@class brim.ExperimentMetric
---@field name string
---@field value number
---@field unit string
---@field words string[] what more and less of it are: { "faster", "slower" }

local FASTER <const>, MORE <const> = { "faster", "slower" }, { "more", "less" }
local LONGER <const> = { "longer", "shorter" }

local function sum_of(samples, ...)
  local sum
  for _, name in ipairs { ... } do
    for _, s in ipairs(samples) do
      if type(s[name]) == "number" then
        sum = (sum or 0) + s[name]
      end
    end
  end
  return sum
end

local function most_of(samples, name)
  local most
  for _, s in ipairs(samples) do
    if type(s[name]) == "number" then
      most = math.max(most or s[name], s[name])
    end
  end
  return most
end

-- Phases with their samples, and what was written before each.
local function phases_of(run)
  local list, written = {}, 0
  for k, phase in ipairs(run.phases) do
    list[k] = { phase = phase, samples = {}, before = 0, after = 0 }
  end
  for i, s in ipairs(run.samples) do
    local p = list[run.phase_of[i]]
    if p then
      if #p.samples == 0 then
        p.before = written
      end
      p.samples[#p.samples + 1] = s
      p.after = math.max(s.written_bytes or 0, p.before)
    end
    written = s.written_bytes or written
  end
  return list
end

-- Calls of background GC while idle, and the seconds between two on average; nil where it is not
-- told, or there are fewer than two.
local function idle_gc(phases)
  local first_s, last_s, calls, all
  for _, p in ipairs(phases) do
    for _, s in ipairs(p.phase.kind == "idle" and p.samples or {}) do
      local n = s.f2fs_gc_background or 0
      all = s.f2fs_gc_background and (all or 0) + n or all
      if n > 0 and first_s then
        calls, last_s = calls + n, s.t_s
      elseif n > 0 then
        first_s, calls = s.t_s, 0
      end
    end
  end
  return all, last_s and (last_s - first_s) / calls or nil
end

local function of_phase(add, p)
  local phase, name = p.phase, p.phase.name
  local seconds = phase.end_s - phase.t_s
  if seconds <= 0 or p.after <= p.before then
    return
  end
  add("speed, " .. name, (p.after - p.before) / seconds, "bytes/s", FASTER)
  local p99_s = most_of(p.samples, "create_p99_s")
  add("p99 of a create, " .. name, p99_s and p99_s > 0 and p99_s or nil, "s", LONGER)
  local bytes = sum_of(p.samples, "dev_write_bytes")
  local requests = sum_of(p.samples, "dev_writes")
  if bytes and (requests or 0) > 0 then
    add("written a request, " .. name, bytes / requests, "bytes", { "larger", "smaller" })
  end
end

---Give a run's metrics, in the order of its phases.
---@param run brim.TimelineData
---@return brim.ExperimentMetric[]
function M.of(run)
  local list, phases = {}, phases_of(run)
  local function add(name, value, unit, words)
    if value then
      list[#list + 1] = { name = name, value = value, unit = unit, words = words }
    end
  end
  local written = 0
  for _, p in ipairs(phases) do
    if p.phase.kind == "fill" or p.phase.kind == "churn" then
      of_phase(add, p)
      written = written + p.after - p.before
    end
  end
  local device = sum_of(run.samples, "dev_write_bytes")
  add("write amplification", device and written > 0 and device / written or nil, "", MORE)
  add("blocks moved by GC", sum_of(run.samples, "f2fs_moved_foreground",
    "f2fs_moved_background"), "", MORE)
  add("foreground GC calls", sum_of(run.samples, "f2fs_gc_foreground"), "", MORE)
  local calls, pause_s = idle_gc(phases)
  add("idle, calls of GC", calls, "", MORE)
  add("idle, time between GC calls", pause_s, "s", LONGER)
  return list
end

return M
