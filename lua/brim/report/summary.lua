-- brim.report.summary: a run in one row, and runs beside each other by fullness. Called by
-- report.page and the recipe plot. Pure; the texts are for people.
local axis = require "brim.plot.axis"
local bytes = require "brim.bytes"
local pretty = require "brim.pretty"
local resample = require "brim.timeline.resample"

local M = {}

-- Fullness below which speed counts as that of an empty filesystem, and from where as that of a
-- nearly full one.
local EMPTY_TO <const>, FULL_FROM <const> = 0.5, 0.9

-- Mean speed of the bins within a range; nil where there are none.
local function speed_within(bins, from, to)
  local n_bytes, seconds = 0, 0
  for _, bin in ipairs(bins) do
    if bin.from >= from - 1e-9 and bin.to <= to + 1e-9 then
      n_bytes, seconds = n_bytes + bin.bytes, seconds + bin.seconds
    end
  end
  return seconds > 0 and n_bytes / seconds or nil
end

local function last_of(run, name)
  for i = #run.samples, 1, -1 do
    if type(run.samples[i][name]) == "number" then
      return run.samples[i][name]
    end
  end
end

local function text(v, unit)
  return v and axis.text(v, unit) or "–"
end

local function count_events(run, kind)
  local n = 0
  for _, event in ipairs(run.events) do
    n = n + (event.kind == kind and event.state ~= "end" and 1 or 0)
  end
  return n
end

-- How it came out; a run without a result was cut off.
local function outcome(run)
  if not run.result then
    return "cut off"
  end
  return run.result.stopped and tostring(run.result.stopped) or "done"
end

---The columns of the summary: heading, and a function of the run, its bins and its name.
M.COLUMNS = {
  { "run", function(_, _, name) return name end },
  { "size", function(run)
    local size = run.header.size_bytes
    return math.type(size) == "integer" and size >= 0 and bytes.about(size) or "–"
  end },
  { "seed", function(run) return run.header.seed and tostring(run.header.seed) or "–" end },
  { "took", function(run) return pretty.duration(run.last_s) end },
  { "files", function(run)
    local n = last_of(run, "files")
    return n and pretty.count(n) or "–"
  end },
  { "written", function(run)
    return text(last_of(run, "written_bytes"), "bytes")
  end },
  { "full at the end", function(run)
    local f = last_of(run, "synced_fullness") or last_of(run, "fullness")
    return f and ("%.2f %%"):format(f * 100) or "–"
  end },
  { "below 50 %", function(_, bins) return text(speed_within(bins, 0, EMPTY_TO), "bytes/s") end },
  { "above 90 %", function(_, bins) return text(speed_within(bins, FULL_FROM, 1), "bytes/s") end },
  { "slowdown", function(_, bins)
    local empty, full = speed_within(bins, 0, EMPTY_TO), speed_within(bins, FULL_FROM, 1)
    return empty and full and full > 0 and ("%.1f×"):format(empty / full) or "–"
  end },
  { "collapses", function(run) return tostring(count_events(run, "collapse")) end },
  { "stalls", function(run) return tostring(count_events(run, "stall")) end },
  { "refused", function(run) return tostring(count_events(run, "refused")) end },
  { "end", outcome },
}

---Give the texts of one run, one for each column.
---@param run brim.TimelineData
---@param name string
---@return string[]
function M.of(run, name)
  local bins, cells = resample.by_fullness(run), {}
  for i, column in ipairs(M.COLUMNS) do
    cells[i] = column[2](run, bins, name)
  end
  return cells
end

-- Tenths, finer where it gets tight.
local EDGES <const> = { 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97, 0.98,
  0.99, 1 }

---Give runs beside each other: for each range of fullness { from, to, [i] = { bytes_per_s } of run
---i where it was there }.
---@param runs brim.TimelineData[]
---@return table[]
function M.by_fullness(runs)
  local lines, bins = {}, {}
  for i, run in ipairs(runs) do
    bins[i] = resample.by_fullness(run)
  end
  for k = 1, #EDGES - 1 do
    local line, is_there = { from = EDGES[k], to = EDGES[k + 1] }, false
    for i in ipairs(runs) do
      local speed = speed_within(bins[i], line.from, line.to)
      line[i] = speed and { bytes_per_s = speed }
      is_there = is_there or speed ~= nil
    end
    if is_there then
      lines[#lines + 1] = line
    end
  end
  return lines
end

return M
