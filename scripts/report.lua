-- report: one HTML page from timelines, laid over each other for comparison. Its work is
-- lua/brim/report.lua. It writes the page, and CSV where asked; timelines are only read.
local brim = require "brim"

local function run(a, ctx)
  if a.out:find "%.jsonl$" then
    return nil, brim.error.usage("argument '%s': the page comes first; this is a timeline's name",
      a.out)
  end
  local runs = {}
  for i, path in ipairs(a.timelines) do
    local timeline, err = brim.timeline.read(path)
    if not timeline then
      return nil, err
    end
    if timeline.is_torn then
      ctx.log("%s: the last line is torn; the run was cut off", path)
    end
    runs[i] = timeline
  end
  local bytes, err = brim.report.write(a.out, runs, { title = a.title })
  if not bytes then
    return nil, err
  end
  local rows
  if a.csv then
    rows, err = brim.timeline.csv(a.csv, runs)
    if not rows then
      return nil, err
    end
  end
  ctx.report("%s: %d KiB, %d run%s", a.out, bytes >> 10, #runs, #runs == 1 and "" or "s")
  return { page = a.out, bytes = bytes, runs = #runs, csv = a.csv, csv_rows = rows }
end

return brim.recipe {
  name = "report",
  doc = "Make one self-contained HTML page from timelines, laid over each other.",
  details = "The page needs nothing from elsewhere; any browser shows it.\n"
    .. "brim report out.html run1.jsonl run2.jsonl",
  args = {
    { "out", type = "path", required = true, doc = "the page; what was there is replaced" },
    { "timelines", type = "table", many = true, required = true, doc = "what runs recorded" },
    { "--title", type = "string", doc = "of the page" },
    { "--csv", type = "path", doc = "also write all samples there" },
  },
  run = run,
}
