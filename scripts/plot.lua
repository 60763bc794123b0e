-- plot: a chart of timelines in the terminal, or as SVG. Its work is lua/brim/plot.lua. Timelines
-- are only read.
local brim = require "brim"
local core = require "brim.core"

local function run(a, ctx)
  local runs = {}
  for i, path in ipairs(a.timelines) do
    local timeline, err = brim.timeline.read(path)
    if not timeline then
      return nil, err
    end
    runs[i] = timeline
  end
  local chart = brim.plot.chart(a.chart, runs)
  if a.svg then
    local ok, err = brim.plot.write(a.svg, chart, { with = a.with })
    if not ok then
      return nil, err
    end
    ctx.report("%s: %s of %d run%s", a.svg, a.chart, #runs, #runs == 1 and "" or "s")
    return { svg = a.svg, chart = a.chart, runs = #runs }
  end
  local text = brim.plot.terminal(chart, { columns = a.columns, rows = a.rows,
    charset = a.charset, color = core.isatty(1) })
  ctx.report("%s", (text:gsub("\n$", "")))
  return { chart = a.chart, runs = #runs }
end

return brim.recipe {
  name = "plot",
  doc = "Draw a chart of timelines in the terminal, or as SVG.",
  args = {
    { "timelines", type = "table", many = true, required = true, doc = "what runs recorded" },
    { "--chart", type = "enum", values = brim.plot.KINDS, default = "speed",
      doc = "which: speed and latency are against fullness" },
    { "--columns", type = "int", min = 24, max = 1000, doc = "width (the terminal's)" },
    { "--rows", type = "int", default = 14, min = 3, max = 200, doc = "of the drawing itself" },
    { "--charset", type = "enum", values = { "auto", "braille", "ascii" }, default = "auto",
      doc = "what to draw with" },
    { "--svg", type = "path", doc = "draw into this file instead" },
    { "--with", type = "enum", values = { "auto", "gnuplot", "brim" }, default = "auto",
      doc = "what draws the SVG" },
  },
  run = run,
}
