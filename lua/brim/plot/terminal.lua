-- brim.plot.terminal: a chart in characters: Braille dots (2 by 4 in each) where the terminal can
-- show them, else ASCII. Called by plot. Gives text; every line fits into the columns asked for.
local axis = require "brim.plot.axis"

local M = {}

local LEAST_COLUMNS <const>, LEAST_ROWS <const> = 24, 3
local BRAILLE <const> = 0x2800
-- Bits of the dots of a Braille character, by row and column (Unicode, chapter 21.1).
local DOTS <const> = { [0] = { [0] = 0x01, 0x08 }, { [0] = 0x02, 0x10 }, { [0] = 0x04, 0x20 },
  { [0] = 0x40, 0x80 } }
local ASCII <const> = { "*", "+", "o", "x", "#", "%", "@", "=" }
local COLORS <const> = { 34, 33, 32, 31, 35, 36 }

-- A raster of w by h characters, `across` by `down` dots each.
local function raster(w, h, is_ascii)
  return { w = w, h = h, across = is_ascii and 1 or 2, down = is_ascii and 1 or 4, bits = {},
    owner = {}, is_ascii = is_ascii }
end

local function dot(r, x, y, series)
  local column, row = x // r.across, y // r.down
  if column < 0 or column >= r.w or row < 0 or row >= r.h then
    return
  end
  local cell = row * r.w + column
  local bit = r.is_ascii and 1 or DOTS[y % 4][x % 2]
  r.bits[cell] = (r.bits[cell] or 0) | bit
  r.owner[cell] = series
end

-- Bresenham's line.
local function line(r, x0, y0, x1, y1, series)
  local dx, dy = math.abs(x1 - x0), -math.abs(y1 - y0)
  local sx, sy = x0 < x1 and 1 or -1, y0 < y1 and 1 or -1
  local slip = dx + dy
  while true do
    dot(r, x0, y0, series)
    if x0 == x1 and y0 == y1 then
      return
    end
    local twice = 2 * slip
    if twice >= dy then
      slip, x0 = slip + dy, x0 + sx
    end
    if twice <= dx then
      slip, y0 = slip + dx, y0 + sy
    end
  end
end

local function draw(r, chart, x_axis, y_axis)
  local last_x, last_y = r.w * r.across - 1, r.h * r.down - 1
  for k, series in ipairs(chart.series) do
    local x0, y0
    for _, p in ipairs(series.points) do
      local px, py = p[1] and x_axis:place(p[1]), p[2] and y_axis:place(p[2])
      local x, y
      if px and py and px >= 0 and px <= 1 and py >= 0 and py <= 1 then
        x = math.floor(px * last_x + 0.5)
        y = last_y - math.floor(py * last_y + 0.5)
        line(r, x0 or x, y0 or y, x, y, k)
      end
      x0, y0 = x, y
    end
  end
end

local function cell_text(r, cell, color)
  local bits, k = r.bits[cell], r.owner[cell]
  if not bits then
    return " "
  end
  local text = r.is_ascii and ASCII[(k - 1) % #ASCII + 1] or utf8.char(BRAILLE + bits)
  return color and ("\27[%dm%s\27[0m"):format(COLORS[(k - 1) % #COLORS + 1], text) or text
end

local function width_of(text)
  return utf8.len(text) or #text
end

---Cut text to n characters; of foreign text what is no UTF-8 or a control character is a '?'.
---@param text string
---@param n integer
---@return string
function M.cut(text, n)
  if not utf8.len(text) then
    text = text:gsub("[\128-\255]", "?")
  end
  text = text:gsub("%c", "?")
  if width_of(text) <= n then
    return text
  end
  return text:sub(1, utf8.offset(text, n + 1) - 1)
end

local cut = M.cut

-- Texts of the y axis by row, and how wide they are.
local function y_labels(y_axis, rows)
  local labels, width = {}, 0
  for _, tick in ipairs(y_axis.ticks) do
    local place = y_axis:place(tick.at)
    if place >= -1e-9 and place <= 1 + 1e-9 then
      labels[rows - 1 - math.floor(place * (rows - 1) + 0.5)] = tick.text
      width = math.max(width, width_of(tick.text))
    end
  end
  return labels, width
end

-- The line below the raster and the one with the ticks' texts.
local function x_lines(x_axis, w, is_ascii)
  local marks, texts, free = {}, {}, 0
  for i = 1, w do
    marks[i] = is_ascii and "-" or "─"
  end
  for _, tick in ipairs(x_axis.ticks) do
    local at = math.floor(x_axis:place(tick.at) * (w - 1) + 0.5)
    local from = math.max(0, math.min(at - #tick.text // 2, w - #tick.text))
    if from >= free then
      marks[at + 1] = is_ascii and "+" or "┬"
      texts[#texts + 1] = (" "):rep(from - (free > 0 and free - 1 or 0)) .. tick.text
      free = from + #tick.text + 1
    end
  end
  return table.concat(marks), table.concat(texts)
end

local function legend(chart, columns, is_ascii, color)
  local words, used = {}, 0
  for k, s in ipairs(chart.series) do
    local sign = is_ascii and ASCII[(k - 1) % #ASCII + 1] or "━"
    local name = cut(s.name or "", math.max(columns - used - 4, 0))
    if name ~= "" then
      words[#words + 1] = (color and ("\27[%dm%s\27[0m %s"):format(COLORS[(k - 1) % #COLORS + 1],
        sign, name)) or ("%s %s"):format(sign, name)
      used = used + width_of(name) + 4
    end
  end
  return table.concat(words, "  ")
end

---Can the terminal show Braille? Only where the locale says UTF-8.
---@return boolean
function M.is_utf8()
  local locale = os.getenv "LC_ALL"
  locale = locale and locale ~= "" and locale or os.getenv "LC_CTYPE"
  locale = locale and locale ~= "" and locale or os.getenv "LANG" or ""
  return locale:lower():find "utf%-?8" ~= nil
end

---Draw a chart.
---@param chart brim.Chart
---@param o { columns: integer, rows: integer, is_ascii: boolean, color: boolean } rows: of the
---drawing itself; captions, axis and legend take up to four more
---@return string text lines, each ended
function M.draw(chart, o)
  local columns, rows = math.max(o.columns, LEAST_COLUMNS), math.max(o.rows, LEAST_ROWS)
  local x_axis, y_axis = axis.pair(chart, columns // 12, rows // 3)
  if not x_axis then
    return cut(("%s: nothing to show yet"):format(chart.y.label), columns) .. "\n"
  end
  local labels, width = y_labels(y_axis, rows)
  local r = raster(columns - width - 2, rows, o.is_ascii)
  draw(r, chart, x_axis, y_axis)
  local lines = { cut(axis.caption(chart.y.label, y_axis), columns) }
  for row = 0, rows - 1 do
    local cells = {}
    for column = 0, r.w - 1 do
      cells[#cells + 1] = cell_text(r, row * r.w + column, o.color)
    end
    local label = labels[row] or ""
    local edge = o.is_ascii and (labels[row] and "+" or "|") or labels[row] and "┤" or "│"
    lines[#lines + 1] = (" "):rep(width - width_of(label)) .. label .. " " .. edge
      .. (table.concat(cells):gsub(" +$", ""))
  end
  local marks, texts = x_lines(x_axis, r.w, o.is_ascii)
  local indent = (" "):rep(width + 1)
  lines[#lines + 1] = indent .. (o.is_ascii and "+" or "└") .. marks
  lines[#lines + 1] = indent .. " " .. texts
  local caption = cut(axis.caption(chart.x.label, x_axis), columns)
  lines[#lines + 1] = (" "):rep(columns - width_of(caption)) .. caption
  if #chart.series > 1 then
    lines[#lines + 1] = legend(chart, columns, o.is_ascii, o.color)
  end
  return table.concat(lines, "\n") .. "\n"
end

return M
