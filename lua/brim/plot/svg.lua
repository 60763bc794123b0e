-- brim.plot.svg: a chart as SVG, drawn by ourselves: for pages that need nothing from elsewhere.
-- Called by report, and by plot where gnuplot is missing. Colours are CSS classes (s1, s2, ..., of
-- series), so that a page decides about light and dark; `M.STYLE` has them for a file of its own.
-- All foreign text is escaped. Lengths are SVG units.
local axis = require "brim.plot.axis"

local M = {}

local LEFT <const>, RIGHT <const>, TOP <const>, BOTTOM <const> = 58, 14, 22, 40
-- Of an axis' label in a chart: about so many units for a character.
local CHARACTER <const> = 6.2

---The colours of series, told apart by most people who see few (Okabe and Ito, 2008), and of the
---rest, for light and for dark.
M.STYLE = [[
svg{--ink:#1c2330;--faint:#8a93a3;--grid:#e3e7ee;--shade:#eef2f8;--paper:#fff;--event:#c4302b;
--s1:#0072b2;--s2:#d55e00;--s3:#009e73;--s4:#cc79a7;--s5:#b8860b;--s6:#56b4e9;
font:11px system-ui,sans-serif}
@media(prefers-color-scheme:dark){svg{--ink:#e4e8ef;--faint:#8b95a7;--grid:#2c3442;--shade:#1e2633;
--paper:#141a23;--event:#ff7b72;--s1:#58b0ee;--s2:#ff9457;--s3:#36c99b;--s4:#e6a3c8;--s5:#e0b84c;
--s6:#9ad5f7}}
svg text{fill:var(--ink)}svg .tick{fill:var(--faint)}svg .grid{stroke:var(--grid)}
svg .axis{stroke:var(--faint)}svg .shade{fill:var(--shade)}svg .mark{stroke:var(--faint);
stroke-dasharray:2 3}svg .event{stroke:var(--event)}svg .flag{fill:var(--event)}
svg .line{fill:none;stroke-width:1.6;stroke-linejoin:round}svg .thin{stroke-width:1;opacity:.55}
svg .dash{stroke-dasharray:5 3}svg .dot{stroke:none}
svg .s1{stroke:var(--s1)}svg .s2{stroke:var(--s2)}svg .s3{stroke:var(--s3)}
svg .s4{stroke:var(--s4)}svg .s5{stroke:var(--s5)}svg .s6{stroke:var(--s6)}
svg .d1{fill:var(--s1)}svg .d2{fill:var(--s2)}svg .d3{fill:var(--s3)}
svg .d4{fill:var(--s4)}svg .d5{fill:var(--s5)}svg .d6{fill:var(--s6)}
]]

---How many colours there are for series; the next one begins again.
M.COLORS = 6

local ENTITIES <const> = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;",
  ["'"] = "&#39;" }

---Escape text for HTML and XML, content or attribute; what neither can hold is a '?'.
---@param text any
---@return string
function M.escape(text)
  text = tostring(text)
  if not utf8.len(text) then
    text = text:gsub("[\128-\255]", "?")
  end
  -- Control characters, and U+FFFE and U+FFFF, are no characters of XML 1.0.
  text = text:gsub("[%z\1-\8\11\12\14-\31\127]", "?"):gsub("\xef\xbf[\xbe\xbf]", "?")
  return (text:gsub("[&<>\"']", ENTITIES))
end

local escape = M.escape

local function frame_of(chart, o)
  local x_axis, y_axis = axis.pair(chart, o.width // 90, o.height // 45)
  local f = { w = o.width, h = o.height, x_axis = x_axis, y_axis = y_axis, out = {} }
  f.x = function(v)
    return LEFT + (f.w - LEFT - RIGHT) * math.max(0, math.min(x_axis:place(v), 1))
  end
  f.y = function(v)
    local place = y_axis:place(v)
    return place and f.h - BOTTOM - (f.h - TOP - BOTTOM) * math.max(0, math.min(place, 1))
  end
  return f
end

local function put(f, fmt, ...)
  f.out[#f.out + 1] = fmt:format(...)
end

local function draw_axes(f, chart)
  local bottom, right = f.h - BOTTOM, f.w - RIGHT
  for _, tick in ipairs(f.y_axis.ticks) do
    local y = f.y(tick.at)
    put(f, '<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>', LEFT, right, y, y)
    put(f, '<text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>', LEFT - 6, y + 4,
      escape(tick.text))
  end
  for _, tick in ipairs(f.x_axis.ticks) do
    local x = f.x(tick.at)
    put(f, '<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>', x, x, bottom, bottom + 4)
    put(f, '<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>', x, bottom + 16,
      escape(tick.text))
  end
  put(f, '<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>', LEFT, right, bottom, bottom)
  put(f, '<text x="4" y="13">%s</text>', escape(axis.caption(chart.y.label, f.y_axis)))
  put(f, '<text x="%d" y="%d" text-anchor="end">%s</text>', right, f.h - 6,
    escape(axis.caption(chart.x.label, f.x_axis)))
end

-- Stretches of the x axis, every other one shaded, named where the name fits.
local function draw_shades(f, chart)
  for _, s in ipairs(chart.shades or {}) do
    local from, to = f.x(s.from), f.x(s.to)
    put(f, '<g><title>%s</title>', escape(s.label))
    if s.is_dark then
      put(f, '<rect class="shade" x="%.1f" y="%d" width="%.1f" height="%d"/>', from, TOP,
        to - from, f.h - TOP - BOTTOM)
    end
    local short = s.short or s.label
    if (utf8.len(short) or #short) * CHARACTER < to - from then
      put(f, '<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>',
        (from + to) / 2, TOP + 11, escape(short))
    end
    put(f, "</g>")
  end
end

local function draw_marks(f, chart)
  for _, m in ipairs(chart.marks or {}) do
    local x = f.x(m.x)
    put(f, '<g><title>%s</title><line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>',
      escape(m.label), m.is_event and "event" or "mark", x, x, TOP, f.h - BOTTOM)
    if m.is_event then
      put(f, '<path class="flag" d="M%.1f %dl5 -8h-10z"/>', x, TOP + 4)
    end
    put(f, "</g>")
  end
end

-- The path of a series; gaps where a value is missing. A point between gaps is a dot.
local function path_of(f, points)
  local path, dots, run = {}, {}, {}
  local function flush()
    if #run == 1 then
      dots[#dots + 1] = run[1]
    elseif #run > 1 then
      path[#path + 1] = "M" .. table.concat(run, "L")
    end
    run = {}
  end
  for _, p in ipairs(points) do
    local y = p[1] and p[2] and p[2] == p[2] and f.y(p[2])
    if y then
      run[#run + 1] = ("%.1f %.1f"):format(f.x(p[1]), y)
    else
      flush()
    end
  end
  flush()
  return table.concat(path), dots
end

local function draw_series(f, chart)
  for k, s in ipairs(chart.series) do
    local color = ((s.color or k) - 1) % M.COLORS + 1
    local path, dots = path_of(f, s.points)
    put(f, '<g><title>%s</title>', escape(s.name or ""))
    if path ~= "" then
      put(f, '<path class="line s%d%s" d="%s"/>', color, s.style and " " .. s.style or "", path)
    end
    for _, at in ipairs(dots) do
      local x, y = at:match "^(%S+) (%S+)$"
      put(f, '<circle class="dot d%d" cx="%s" cy="%s" r="2.2"/>', color, x, y)
    end
    put(f, "</g>")
  end
end

---Draw a chart.
---@param chart brim.Chart
---@param o? { width?: integer, height?: integer, style?: boolean } style: with its colours, for a
---file of its own
---@return string svg
function M.draw(chart, o)
  local size = { width = o and o.width or 560, height = o and o.height or 230 }
  local head = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"'
    .. ' aria-label="%s">'):format(size.width, size.height, escape(chart.title or chart.y.label))
  local style = o and o.style and ("<style>%s</style>"
    .. '<rect width="100%%" height="100%%" style="fill:var(--paper)"/>'):format(M.STYLE) or ""
  if not axis.range(chart.series) then
    return ('%s%s<text x="%d" y="%d" text-anchor="middle" class="tick">%s: not recorded</text>'
      .. "</svg>"):format(head, style, size.width // 2, size.height // 2, escape(chart.y.label))
  end
  local f = frame_of(chart, size)
  draw_shades(f, chart)
  draw_axes(f, chart)
  draw_marks(f, chart)
  draw_series(f, chart)
  return head .. style .. table.concat(f.out, "\n") .. "</svg>"
end

return M
