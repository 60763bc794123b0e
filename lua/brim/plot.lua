-- brim.plot: charts of timelines, or of any points: in the terminal, once or live, and as SVG,
-- through gnuplot or drawn by ourselves. Called by scripts and the recipes plot and near-full. A
-- chart is a table (brim.Chart); what its values' units are decides how axes are written.
local charts = require "brim.plot.charts"
local core = require "brim.core"
local errors = require "brim.error"
local gnuplot = require "brim.plot.gnuplot"
local opts = require "brim.opts"
local svg = require "brim.plot.svg"
local terminal = require "brim.plot.terminal"

local M = {}
local Live = {}
Live.__index = Live

---The charts that brim.plot.chart makes.
M.KINDS = charts.KINDS

---Make a chart of timelines: "speed" (against fullness), "time" (speed against time), "latency",
---"fullness" or "files" (created, against fullness).
---@param kind string
---@param runs brim.TimelineData[]
---@return brim.Chart
function M.chart(kind, runs)
  local checked = opts.check({ kind = kind }, { kind = { type = "enum", values = charts.KINDS } },
    "brim.plot.chart")
  return charts.make(checked.kind, runs)
end

---@class brim.TerminalOpts
---@field columns? integer default: as wide as the terminal
---@field rows? integer of the drawing, without captions, default 14
---@field charset? "auto"|"braille"|"ascii" auto: Braille where the locale says UTF-8, and several
---series have colours
---@field color? boolean default false

local TERMINAL <const> = {
  columns = { type = "int", min = 24, max = 1000, doc = "width (the terminal's)" },
  rows = { type = "int", default = 14, min = 3, max = 200, doc = "of the drawing itself" },
  charset = { type = "enum", values = { "auto", "braille", "ascii" }, default = "auto",
    doc = "what to draw with" },
  color = { type = "bool", default = false, doc = "tell series apart by colour" },
}

---Draw a chart in characters.
---@param chart brim.Chart
---@param o? brim.TerminalOpts
---@return string text
function M.terminal(chart, o)
  o = opts.check(o, TERMINAL, "brim.plot.terminal")
  -- Braille dots of two series look alike without colours; characters do not.
  local is_ascii = o.charset == "ascii" or o.charset == "auto"
    and (not terminal.is_utf8() or #chart.series > 1 and not o.color)
  return terminal.draw(chart, { columns = o.columns or core.columns(1), rows = o.rows,
    is_ascii = is_ascii, color = o.color })
end

---@class brim.SvgOpts
---@field width? integer
---@field height? integer
---@field with? "auto"|"gnuplot"|"brim" auto: gnuplot where it is installed

local SVG <const> = {
  width = { type = "int", min = 200, max = 10000, default = 800 },
  height = { type = "int", min = 120, max = 10000, default = 400 },
  with = { type = "enum", values = { "auto", "gnuplot", "brim" }, default = "auto" },
}

---Draw a chart as SVG.
---@param chart brim.Chart
---@param o? brim.SvgOpts
---@return string? svg
---@return brim.Error? err gnuplot's, where it was asked for
function M.svg(chart, o)
  o = opts.check(o, SVG, "brim.plot.svg")
  if o.with ~= "brim" then
    local drawn, err = gnuplot.draw(chart, o)
    if drawn or o.with == "gnuplot" then
      return drawn, err
    end
  end
  return svg.draw(chart, { width = o.width, height = o.height, style = true })
end

---Draw a chart into a file, as SVG.
---@param path string
---@param chart brim.Chart
---@param o? brim.SvgOpts
---@return true? ok
---@return brim.Error? err
function M.write(path, chart, o)
  local text, err = M.svg(chart, o)
  if not text then
    return nil, err
  end
  local file, why, errno = io.open(path, "wb")
  local ok = file
  if file then
    ok, why, errno = file:write(text)
    local closed, reason, code = file:close()
    if ok and not closed then
      ok, why, errno = nil, reason, code
    end
  end
  if not ok then
    return nil, errors.new { code = errno == 28 and "ENOSPC" or "EIO", errno = errno, op = "write",
      path = path, message = why }
  end
  return true
end

-- ----------------------------------------------------------------------- live

---@class brim.LiveOpts: brim.TerminalOpts
---@field x table of the chart: { label, unit, min, max }
---@field y table of the chart: { label, unit, min }
---@field stream? file* default stderr
---@field fd? integer its descriptor, default 2
---@field is_tty? boolean default: what the descriptor is
---@field interval_s? number least time between two drawings, default 0.5
---@field bins? integer how finely x is told apart, default 400

local LIVE <const> = { x = { type = "table", required = true },
  y = { type = "table", required = true }, stream = { type = "any" },
  fd = { type = "int", default = 2 }, is_tty = { type = "bool" },
  interval_s = { type = "number", default = 0.5, min = 0 },
  bins = { type = "int", default = 400, min = 2 } }
for name, spec in pairs(TERMINAL) do
  LIVE[name] = spec
end

---Make a chart that grows in the terminal. x must have its range, as { label = "synced fullness",
---unit = "1", min = 0, max = 1 }. Where the stream is no terminal only close draws, once.
---@param o brim.LiveOpts
---@return brim.LivePlot
function M.live(o)
  o = opts.check(o, LIVE, "brim.plot.live")
  if type(o.x.min) ~= "number" or type(o.x.max) ~= "number" or o.x.max <= o.x.min then
    error("brim.plot.live: option 'x': needs min and max", 2)
  end
  local self = setmetatable({ o = o, stream = o.stream or io.stderr, bins = {}, lines = 0,
    drawn_s = -math.huge, is_tty = o.is_tty }, Live)
  if self.is_tty == nil then
    self.is_tty = core.isatty(o.fd)
  end
  return self
end

-- The mean of what fell into each bin.
local function live_chart(self)
  local o, points = self.o, {}
  for n = 0, o.bins do
    local bin = self.bins[n]
    if bin then
      points[#points + 1] = { bin[1] / bin[3], bin[2] / bin[3] }
    end
  end
  return { x = o.x, y = o.y, series = { { points = points } } }
end

---Give the chart as it is now.
---@return string text
function Live:text()
  local o = self.o
  return M.terminal(live_chart(self), { columns = o.columns or core.columns(o.fd), rows = o.rows,
    charset = o.charset, color = o.color })
end

---Take the chart away, before something else is printed.
function Live:clear()
  if self.lines > 0 then
    self.stream:write(("\27[%dA\r\27[J"):format(self.lines)):flush()
    self.lines = 0
  end
end

---Add a point, and draw when it is time.
---@param x number
---@param y number
function Live:add(x, y)
  local o = self.o
  local place = (x - o.x.min) / (o.x.max - o.x.min)
  if place >= 0 and place <= 1 and y == y then
    local n = math.floor(place * o.bins)
    local bin = self.bins[n] or { 0, 0, 0 }
    bin[1], bin[2], bin[3] = bin[1] + x, bin[2] + y, bin[3] + 1
    self.bins[n] = bin
  end
  self:draw()
end

---Draw when it is time, with a line below: what is going on right now.
---@param status? string default: as it was
function Live:draw(status)
  self.status = status or self.status
  local now_s = core.monotonic_s()
  if self.is_tty and now_s - self.drawn_s >= self.o.interval_s then
    self.drawn_s = now_s
    local text = self:text()
    if self.status then
      -- A line that wraps would be two, and clear takes away one.
      local columns = (self.o.columns or core.columns(self.o.fd)) - 1
      text = ("%s%s\n"):format(text, terminal.cut(self.status, columns))
    end
    self:clear()
    self.stream:write(text):flush()
    self.lines = select(2, text:gsub("\n", ""))
  end
end

---End it: the chart as it is stays.
function Live:close()
  if not self.is_closed then
    self.is_closed = true
    self:clear()
    self.stream:write(self:text()):flush()
  end
end

return M
