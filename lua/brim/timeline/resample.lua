-- brim.timeline.resample: a timeline by another axis: by fullness, in bins (how fast is it at
-- 90 %?), or by time in fewer points; and as CSV. Called by report, plot and scripts. Pure.
-- Fullness is 0..1, speeds are per second.
local opts = require "brim.opts"

local M = {}

---@class brim.FullnessBin
---@field from number fullness where it begins
---@field to number where it ends
---@field seconds number spent in it
---@field bytes number
---@field files number
---@field bytes_per_s number
---@field files_per_s number
---@field latency table<string, number> by column: "..._p50_s" the mean by time, others the largest

local EMPTY <const> = {}

-- The synced values are steps: true at each sync, old in between. Known for sure are new values,
-- and what stood where a phase begins, since churn writes without filling.
local function knots_of(run)
  local knots, last, phase = {}, nil, nil
  local function add(i, fullness)
    local s = run.samples[i]
    knots[#knots + 1] = { i = i, written = s.written_bytes or s.t_s, fullness = fullness }
  end
  for i, s in ipairs(run.samples) do
    local f = s.synced_fullness or s.fullness
    if f then
      f = math.max(0, math.min(f, 1)) -- foreign text may say anything; bins are for a part
      if last and run.phase_of[i] ~= phase and knots[#knots].i < i - 1 then
        add(i - 1, last)
      end
      if f ~= last or i == #run.samples then
        add(i, f)
      end
      last, phase = f, run.phase_of[i]
    end
  end
  return knots
end

---Tell the fullness at each sample: what was true at the syncs, and between two of them on the
---straight line over the bytes that were written.
---@param run brim.TimelineData
---@return number[] fullness by sample; empty where none was recorded
function M.positions(run)
  local knots, out = knots_of(run), {}
  local k = 1
  for i, s in ipairs(run.samples) do
    while knots[k + 1] and knots[k + 1].i <= i do
      k = k + 1
    end
    local a, b = knots[k], knots[k + 1]
    if not a then
      return EMPTY
    end
    local span = b and b.written - a.written or 0
    local part = span > 0 and i > a.i and ((s.written_bytes or s.t_s) - a.written) / span or 0
    out[i] = a.fullness + math.max(0, math.min(part, 1)) * (b and b.fullness - a.fullness or 0)
  end
  return out
end

-- What happened between sample i-1 and sample i: seconds, bytes, files. Phases begin at their own
-- time, not at the last sample of the one before.
local function interval(run, i)
  local s, before = run.samples[i], run.samples[i - 1]
  local phase = run.phases[run.phase_of[i]]
  local from_s = math.max(before and before.t_s or 0, phase and phase.t_s or 0)
  local seconds = math.max(s.t_s - from_s, 0)
  local bytes
  if s.written_bytes then
    bytes = s.written_bytes - (before and before.written_bytes or 0)
  else
    bytes = (s.bytes_per_s or 0) * seconds
  end
  return seconds, bytes, (s.files_per_s or 0) * seconds
end

local function is_latency(name)
  return name:match "_p%d+_s$" or name:match "_max_s$"
end

local function add_latency(bin, s, seconds)
  for name, v in pairs(s) do
    if is_latency(name) and type(v) == "number" then
      if name:find("_p50_s", 1, true) then
        local sum = bin.sums[name] or { 0, 0 }
        sum[1], sum[2] = sum[1] + v * seconds, sum[2] + seconds
        bin.sums[name] = sum
        bin.latency[name] = sum[2] > 0 and sum[1] / sum[2] or v
      else
        bin.latency[name] = math.max(bin.latency[name] or 0, v)
      end
    end
  end
end

-- Spreads an interval over the bins that it passed through.
local function spread(bins, width, from, to, what)
  local low, high = math.min(from, to), math.max(from, to)
  local first, last = low // width, high // width
  for n = first, last do
    local overlap = math.min(high, (n + 1) * width) - math.max(low, n * width)
    local share = high > low and overlap / (high - low) or 1
    if share > 0 then
      local key = math.tointeger(n)
      local bin = bins[key] or { from = n * width, to = (n + 1) * width, seconds = 0, bytes = 0,
        files = 0, latency = {}, sums = {} }
      bins[key] = bin
      bin.seconds = bin.seconds + what.seconds * share
      bin.bytes = bin.bytes + what.bytes * share
      bin.files = bin.files + what.files * share
      add_latency(bin, what.sample, what.seconds * share)
    end
  end
end

local FULLNESS <const> = {
  bin = { type = "number", default = 0.01, min = 0.0001, max = 1, doc = "width of a bin" },
  kinds = { type = "table", doc = "kinds of phases that count; default fills if there are any" },
}

-- The set of kinds that count; nil for all.
local function kinds_of(run, asked)
  local set = {}
  for _, kind in ipairs(asked or { "fill" }) do
    set[kind] = true
  end
  for _, phase in ipairs(run.phases) do
    if set[phase.kind] then
      return set
    end
  end
  return asked and set or nil
end

---Give speed and latency by fullness. Empty bins are left out.
---@param run brim.TimelineData
---@param o? { bin?: number, kinds?: string[] } bin: its width, default 0.01; kinds: of phases that
---count, default fills, or everything where there is no fill
---@return brim.FullnessBin[]
function M.by_fullness(run, o)
  o = opts.check(o, FULLNESS, "brim.timeline.by_fullness")
  local at, kinds, bins = M.positions(run), kinds_of(run, o.kinds), {}
  for i, s in ipairs(run.samples) do
    local phase = run.phases[run.phase_of[i]]
    if at[i] and (not kinds or phase and kinds[phase.kind]) then
      local seconds, bytes, files = interval(run, i)
      if seconds > 0 then
        spread(bins, o.bin, at[i - 1] or at[i], at[i], { seconds = seconds, bytes = bytes,
          files = files, sample = s })
      end
    end
  end
  local list = {}
  for _, bin in pairs(bins) do
    bin.bytes_per_s, bin.files_per_s = bin.bytes / bin.seconds, bin.files / bin.seconds
    bin.sums = nil
    list[#list + 1] = bin
  end
  table.sort(list, function(a, b) return a.from < b.from end)
  return list
end

-- One point of several samples: rates as means over time, latencies the largest, others the last.
local function merge(run, first, last)
  local point, seconds, sums = {}, 0, {}
  for i = first, last do
    local dt = interval(run, i)
    seconds = seconds + dt
    for name, v in pairs(run.samples[i]) do
      if type(v) == "number" and name:find "_per_s$" then
        sums[name] = (sums[name] or 0) + v * dt
      elseif type(v) == "number" and is_latency(name) then
        point[name] = math.max(point[name] or v, v)
      else
        point[name] = v
      end
    end
  end
  for name, sum in pairs(sums) do
    point[name] = seconds > 0 and sum / seconds or run.samples[last][name]
  end
  return point
end

---Give the samples in at most so many points: rates as means over time, latencies the largest, the
---rest as it was last.
---@param run brim.TimelineData
---@param points integer
---@return table[]
function M.by_time(run, points)
  local n, list = #run.samples, {}
  local per = math.max(1, -(-n // points))
  for first = 1, n, per do
    list[#list + 1] = merge(run, first, math.min(first + per - 1, n))
  end
  return list
end

-- ------------------------------------------------------------------------ CSV

-- RFC 4180.
local function field(v)
  local text = v == nil and "" or tostring(v)
  if text:find '[",\r\n]' then
    return '"' .. text:gsub('"', '""') .. '"'
  end
  return text
end

---Write the samples of several runs as CSV: the run's name, the phase, then every column that any
---of them has.
---@param runs brim.TimelineData[]
---@param file file* open for writing
---@return integer? rows
---@return string? why
---@return integer? errno
function M.csv(runs, file)
  local seen, names = { t_s = true }, {}
  for _, run in ipairs(runs) do
    for _, name in ipairs(run:names()) do
      if not seen[name] then
        seen[name] = true
        names[#names + 1] = name
      end
    end
  end
  table.sort(names)
  table.insert(names, 1, "t_s")
  local rows = 0
  local ok, why, errno = file:write("run,phase,", table.concat(names, ","), "\r\n")
  for _, run in ipairs(runs) do
    for _, s in ipairs(run.samples) do
      local row = { field(run:name()), field(s.phase) }
      for _, name in ipairs(names) do
        row[#row + 1] = field(s[name])
      end
      rows = rows + 1
      ok, why, errno = file:write(table.concat(row, ","), "\r\n")
      if not ok then
        return nil, why, errno
      end
    end
  end
  return ok and rows, why, errno
end

return M
