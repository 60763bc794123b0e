-- brim.plot.gnuplot: a chart as SVG through gnuplot. Called by plot. Texts go into the script as
-- single-quoted strings, where gnuplot substitutes nothing, numbers as numbers; gnuplot writes to a
-- file of ours and reads no start-up file.
local axis = require "brim.plot.axis"
local errors = require "brim.error"
local process = require "brim.process"

local M = {}

---Quote text for a gnuplot script: one line, nothing in it substituted.
---@param text any
---@return string
function M.quote(text)
  return "'" .. tostring(text):gsub("%c", " "):gsub("'", "''") .. "'"
end

local function number(v)
  return ("%.17g"):format(v)
end

local function add_data(lines, chart, x_axis, y_axis)
  for k, s in ipairs(chart.series) do
    lines[#lines + 1] = ("$series%d << BRIM_END"):format(k)
    for _, p in ipairs(s.points) do
      local is_there = p[1] and p[2] and p[2] == p[2] and y_axis:place(p[2])
      lines[#lines + 1] = is_there
        and ("%s %s"):format(number(p[1] / x_axis.factor), number(p[2] / y_axis.factor)) or ""
    end
    lines[#lines + 1] = "BRIM_END"
  end
end

local function add_decoration(lines, chart, x_axis)
  for i, s in ipairs(chart.shades or {}) do
    if s.is_dark then
      lines[#lines + 1] = ("set object %d rectangle from %s, graph 0 to %s, graph 1 behind"
        .. " fillcolor rgb '#eef2f8' fillstyle solid noborder"):format(i,
        number(s.from / x_axis.factor), number(s.to / x_axis.factor))
    end
  end
  for i, m in ipairs(chart.marks or {}) do
    lines[#lines + 1] = ("set arrow %d from %s, graph 0 to %s, graph 1 nohead linecolor rgb '%s'")
      :format(i, number(m.x / x_axis.factor), number(m.x / x_axis.factor),
      m.is_event and "#c4302b" or "#8a93a3")
  end
end

---Write the script that draws a chart; nil where it has no points.
---@param chart brim.Chart
---@param output string path of the SVG
---@param o? { width?: integer, height?: integer }
---@return string? script
function M.script(chart, output, o)
  local x_axis, y_axis = axis.pair(chart)
  if not x_axis then
    return nil
  end
  local lines = {
    ("set terminal svg size %d,%d dynamic noenhanced font 'sans,12' background rgb 'white'"):format(
      o and o.width or 800, o and o.height or 400),
    "set output " .. M.quote(output),
    "set encoding utf8",
    "set title " .. M.quote(chart.title or ""),
    "set xlabel " .. M.quote(axis.caption(chart.x.label, x_axis)),
    "set ylabel " .. M.quote(axis.caption(chart.y.label, y_axis)),
    ("set xrange [%s:%s]"):format(number(x_axis.min / x_axis.factor),
      number(x_axis.max / x_axis.factor)),
    ("set yrange [%s:%s]"):format(number(y_axis.min / y_axis.factor),
      number(y_axis.max / y_axis.factor)),
    "set grid ytics linecolor rgb '#dddddd'",
    "set key outside top left horizontal",
  }
  if y_axis.is_log then
    lines[#lines + 1] = "set logscale y"
    lines[#lines + 1] = "set ylabel " .. M.quote(("%s (%s)"):format(chart.y.label,
      select(2, axis.scale(y_axis.max, chart.y.unit))))
  end
  add_data(lines, chart, x_axis, y_axis)
  add_decoration(lines, chart, x_axis)
  local plots = {}
  for k, s in ipairs(chart.series) do
    plots[k] = ("$series%d using 1:2 with lines linewidth 1.5 title %s"):format(k,
      M.quote(s.name or ""))
  end
  lines[#lines + 1] = "plot " .. table.concat(plots, ", ")
  return table.concat(lines, "\n") .. "\n"
end

local function slurp(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a" or ""
end

---Draw a chart.
---@param chart brim.Chart
---@param o? { width?: integer, height?: integer }
---@return string? svg
---@return brim.Error? err ESKIP where gnuplot is missing
function M.draw(chart, o)
  if not process.has "gnuplot" then
    return nil, errors.skip "gnuplot is not installed (Debian: gnuplot-nox)"
  end
  local output, source = os.tmpname(), os.tmpname()
  local script = M.script(chart, output, o)
  if not script then
    os.remove(output)
    os.remove(source)
    return nil, errors.new { code = "ENODATA", op = "plot",
      message = chart.y.label .. ": there is nothing to draw" }
  end
  local file <close> = assert(io.open(source, "wb"))
  file:write(script)
  file:flush()
  local ok, words = process.run("gnuplot", "-d", source)
  local svg = slurp(output)
  os.remove(output)
  os.remove(source)
  if not ok or svg == "" then
    return nil, errors.new { code = "EFAIL", op = "gnuplot", message = "gnuplot: " .. words }
  end
  return svg
end

return M
