-- brim.plot.charts: which charts there are of timelines: one table each, drawn by whoever can.
-- Called by plot and report. Several runs are laid over each other. Pure.
local events = require "brim.timeline.events"
local resample = require "brim.timeline.resample"

local M = {}

---@class brim.Chart
---@field title? string
---@field x { label: string, unit?: string, min?: number, max?: number }
---@field y { label: string, unit?: string, min?: number, max?: number, is_log?: boolean }
---@field series { name?: string, points: number[][], color?: integer, style?: string }[] a point
---without y is a gap
---@field shades? { from: number, to: number, label: string, short?: string, is_dark?: boolean }[]
---@field marks? { x: number, label: string, is_event?: boolean }[]

---How many points of a run a chart by time has at most.
M.POINTS = 500

-- Full scale by fullness, so that several charts compare; a little beyond 100 % shows the edge.
local FULLNESS <const> = { label = "synced fullness", unit = "1", min = 0, max = 1 }

local function numbered(runs)
  local names, seen = {}, {}
  for i, run in ipairs(runs) do
    local name = run:name()
    names[i] = seen[name] and ("%s #%d"):format(name, i) or name
    seen[name] = true
  end
  return names
end

---Name runs for people, each differently.
---@param runs brim.TimelineData[]
---@return string[]
function M.names(runs)
  return numbered(runs)
end

local function by_fullness(runs, pick, style, suffix)
  local series, names = {}, numbered(runs)
  for i, run in ipairs(runs) do
    local points = {}
    for _, bin in ipairs(resample.by_fullness(run)) do
      points[#points + 1] = { (bin.from + bin.to) / 2, pick(bin) }
    end
    series[i] = { name = names[i] .. (suffix or ""), points = points, color = i, style = style }
  end
  return series
end

local function by_time(runs, column, style, suffix)
  local series, names = {}, numbered(runs)
  for i, run in ipairs(runs) do
    local points = {}
    for _, p in ipairs(resample.by_time(run, M.POINTS)) do
      points[#points + 1] = { p.t_s, p[column] }
    end
    series[i] = { name = names[i] .. (suffix or ""), points = points, color = i, style = style }
  end
  return series
end

-- Phases of the first run; those that do not fill are dark. Without names where lines would cross
-- them.
local function shades(run, has_names)
  local list = {}
  for i, phase in ipairs(run.phases) do
    list[i] = { from = phase.t_s, to = phase.end_s, label = phase.name,
      short = has_names and phase.name:gsub("^fill to ", ""):gsub("^churn at .*", "churn") or "",
      is_dark = phase.kind ~= "fill" }
  end
  return list
end

local function event_label(group, name)
  local event = group.event
  local words = { ("%s at %.0f s: %s%s"):format(name, event.t_s, event.kind, group.n > 1
    and (", %d times in this phase"):format(group.n) or "") }
  for _, key in ipairs { "state", "op", "code", "path", "message" } do
    if event[key] ~= nil then
      words[#words + 1] = tostring(event[key])
    end
  end
  return table.concat(words, ", ")
end

local function marks(runs)
  local list, names = {}, numbered(runs)
  for i, run in ipairs(runs) do
    for _, mark in ipairs(run.marks) do
      list[#list + 1] = { x = mark.t_s, label = ("%s: %s"):format(names[i], mark.name) }
    end
    for _, group in ipairs(events.groups(run)) do
      list[#list + 1] = { x = group.event.t_s, label = event_label(group, names[i]),
        is_event = true }
    end
  end
  return list
end

local function last_s(runs)
  local last = 0
  for _, run in ipairs(runs) do
    last = math.max(last, run.last_s)
  end
  return last
end

local function time_axis(runs)
  return { label = "time", unit = "s", min = 0, max = last_s(runs) }
end

local charts = {}

function charts.speed(runs)
  return { title = "Speed against fullness", x = FULLNESS,
    y = { label = "written", unit = "bytes/s", min = 0 },
    series = by_fullness(runs, function(bin) return bin.bytes_per_s end) }
end

function charts.files(runs)
  return { title = "Files created against fullness", x = FULLNESS,
    y = { label = "files created", unit = "1/s", min = 0 },
    series = by_fullness(runs, function(bin) return bin.files_per_s end) }
end

function charts.time(runs)
  return { title = "Speed against time", x = time_axis(runs),
    y = { label = "written", unit = "bytes/s", min = 0 }, series = by_time(runs, "bytes_per_s"),
    shades = runs[1] and shades(runs[1], true), marks = marks(runs) }
end

-- Three lines for each run, in its colour.
function charts.latency(runs)
  local series = {}
  for _, kind in ipairs { { "p50", " median", "thin" }, { "p99", " 99 %" },
    { "max", " largest", "dash thin" } } do
    local column = ("create_%s_s"):format(kind[1])
    for _, s in ipairs(by_fullness(runs, function(bin) return bin.latency[column] end, kind[3],
      kind[2])) do
      series[#series + 1] = s
    end
  end
  return { title = "Latency of create against fullness", x = FULLNESS,
    y = { label = "time of a create", unit = "s", is_log = true }, series = series }
end

function charts.fullness(runs)
  local series = by_time(runs, "synced_fullness", nil, " synced")
  for _, s in ipairs(by_time(runs, "fullness", "dash thin", " as statfs says")) do
    series[#series + 1] = s
  end
  return { title = "Fullness over time", x = time_axis(runs),
    y = { label = "fullness", unit = "1", min = 0, max = 1 }, series = series,
    shades = runs[1] and shades(runs[1]) }
end

---The names of the charts.
M.KINDS = { "speed", "time", "latency", "fullness", "files" }

---Make a chart of runs.
---@param kind string one of KINDS
---@param runs brim.TimelineData[]
---@return brim.Chart
function M.make(kind, runs)
  return charts[kind](runs)
end

return M
