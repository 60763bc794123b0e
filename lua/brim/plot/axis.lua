-- brim.plot.axis: from a range of values and their unit to ticks with short texts: 0.97 is "97 %",
-- 4.2e8 bytes/s is "420" on an axis of "MB/s". Called by the drawings of plot and report. Pure.
local M = {}
local Axis = {}
Axis.__index = Axis

---@class brim.Axis
---@field min number
---@field max number
---@field unit string of the ticks' texts
---@field factor number value / factor is what the text says
---@field ticks { at: number, text: string }[]
---@field is_log boolean

-- By unit: { least value, factor, what it is called then }, the largest first.
local DECIMAL <const> = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e3, "k" }, { 0, "" } }
local TIMES <const> = { { 172800, 86400, "d" }, { 7200, 3600, "h" }, { 120, 60, "min" },
  { 1, 1, "s" }, { 1e-3, 1e-3, "ms" }, { 1e-6, 1e-6, "µs" }, { 0, 1e-9, "ns" } }
local NAMES <const> = { bytes = "B", ["bytes/s"] = "B/s", ["1/s"] = "/s" }

---Choose the factor and the unit in which values up to `max` are short.
---@param max number
---@param unit string of a column: "s", "bytes/s", "1" (a fraction), ...
---@return number factor
---@return string unit
function M.scale(max, unit)
  if unit == "1" then
    return 0.01, "%"
  elseif unit == "s" then
    for _, t in ipairs(TIMES) do
      if max >= t[1] then
        return t[2], t[3]
      end
    end
  end
  for _, d in ipairs(DECIMAL) do
    if max >= d[1] then
      return math.max(d[1], 1), (d[2] .. (NAMES[unit] or unit)):gsub("^$", "")
    end
  end
  return 1, NAMES[unit] or unit
end

---Write a value with its unit: "420 MB/s", "97 %", "3.2 ms".
---@param v number
---@param unit string of its column
---@return string
function M.text(v, unit)
  local factor, name = M.scale(math.abs(v), unit)
  local digits = math.abs(v / factor) >= 1000 and "%.0f" or "%.3g"
  local space = (name == "" or name:sub(1, 1) == "/") and "" or " "
  return digits:format(v / factor) .. space .. name
end

-- The step of 1, 2 or 5 times a power of ten that gives about n ticks.
local function nice_step(span, n)
  local raw = span / math.max(n, 1)
  local power = 10.0 ^ math.floor(math.log(raw, 10))
  for _, k in ipairs { 1, 2, 5 } do
    if raw <= k * power * 1.0000001 then
      return k * power
    end
  end
  return 10 * power
end

local function linear_ticks(axis, n)
  local step = nice_step((axis.max - axis.min) / axis.factor, n)
  local first = math.ceil(axis.min / axis.factor / step - 1e-9)
  local last = math.floor(axis.max / axis.factor / step + 1e-9)
  local decimals = math.max(0, math.ceil(-math.log(step, 10) - 1e-9))
  for i = first, last do
    axis.ticks[#axis.ticks + 1] = { at = i * step * axis.factor,
      text = ("%." .. decimals .. "f"):format(i * step + 0.0) }
  end
end

-- Powers of ten, each with its own unit.
local function log_ticks(axis, unit, n)
  local first = math.ceil(math.log(axis.min, 10) - 1e-9)
  local last = math.floor(math.log(axis.max, 10) + 1e-9)
  local every = math.max(1, math.ceil((last - first + 1) / math.max(n, 1)))
  for k = first, last, every do
    axis.ticks[#axis.ticks + 1] = { at = 10.0 ^ k, text = M.text(10.0 ^ k, unit) }
  end
end

---@class brim.AxisOpts
---@field min number
---@field max number
---@field unit? string of the column
---@field is_log? boolean
---@field ticks? integer about how many
---@field is_exact? boolean leave min and max as they are; else the range ends at a tick

local function widen_log(min, max)
  max = max > 0 and max or 1
  min = min > 0 and min or max / 1000
  return 10.0 ^ math.floor(math.log(min, 10) + 1e-9), 10.0 ^ math.ceil(math.log(max, 10) - 1e-9)
end

---Make an axis.
---@param o brim.AxisOpts
---@return brim.Axis
function M.new(o)
  local unit, n = o.unit or "", o.ticks or 5
  local min, max = o.min, o.max
  if o.is_log then
    min, max = widen_log(min, max)
  end
  if max <= min then
    min, max = o.is_log and min / 10 or min, o.is_log and min * 10 or min + math.max(1e-9,
      unit == "1" and 0.01 or min == 0 and 1 or math.abs(min) / 10)
  end
  local factor, name = M.scale(math.max(math.abs(min), math.abs(max)), unit)
  local axis = setmetatable({ min = min, max = max, unit = name, factor = factor, ticks = {},
    is_log = o.is_log or false }, Axis)
  if axis.is_log then
    axis.unit = ""
    log_ticks(axis, unit, n)
    return axis
  end
  if not o.is_exact then
    local step = nice_step((max - min) / factor, n) * factor
    axis.min = math.floor(min / step + 1e-9) * step
    axis.max = math.ceil(max / step - 1e-9) * step
  end
  linear_ticks(axis, n)
  return axis
end

---Tell where a value lies: 0 at min, 1 at max; nil for what has no place (0 on a logarithmic one).
---@param v number
---@return number?
function Axis:place(v)
  if self.is_log then
    if v <= 0 then
      return nil
    end
    return math.log(v / self.min) / math.log(self.max / self.min)
  end
  return (v - self.min) / (self.max - self.min)
end

---Find the range that points take: their least and largest x and y, nil without points.
---@param series { points: number[][] }[]
---@return { x_min: number, x_max: number, y_min: number, y_max: number }?
function M.range(series)
  local r
  for _, s in ipairs(series) do
    for _, p in ipairs(s.points) do
      local x, y = p[1], p[2]
      if x and y and x == x and y == y then
        r = r or { x_min = x, x_max = x, y_min = y, y_max = y }
        r.x_min, r.x_max = math.min(r.x_min, x), math.max(r.x_max, x)
        r.y_min, r.y_max = math.min(r.y_min, y), math.max(r.y_max, y)
      end
    end
  end
  return r
end

---Make both axes of a chart; nil where it has no points.
---@param chart brim.Chart
---@param x_ticks? integer about how many
---@param y_ticks? integer
---@return brim.Axis? x
---@return brim.Axis? y
function M.pair(chart, x_ticks, y_ticks)
  local r = M.range(chart.series)
  if not r then
    return nil
  end
  local least = r.y_min
  if not chart.y.is_log then
    least = chart.y.min or math.min(0, r.y_min)
  end
  local x = M.new { min = chart.x.min or r.x_min, max = chart.x.max or r.x_max,
    unit = chart.x.unit, ticks = x_ticks, is_exact = true }
  return x, M.new { min = least, max = chart.y.max or r.y_max, unit = chart.y.unit,
    is_log = chart.y.is_log, ticks = y_ticks, is_exact = chart.y.max ~= nil }
end

---Write the caption of an axis: what it shows and in which unit.
---@param label string
---@param axis brim.Axis
---@return string
function M.caption(label, axis)
  return axis.unit ~= "" and ("%s (%s)"):format(label, axis.unit) or label
end

return M
