-- brim.report.page: the HTML of a report. Called by report. What comes from timelines is foreign
-- text: all of it goes through svg.escape, none into markup. Colours follow the reader's light or
-- dark setting.
local axis = require "brim.plot.axis"
local bytes = require "brim.bytes"
local events = require "brim.timeline.events"
local json = require "brim.json"
local pretty = require "brim.pretty"
local summary = require "brim.report.summary"
local svg = require "brim.plot.svg"

local M = {}

local escape = svg.escape
-- Four charts and the summary are on one screen of a laptop.
local SIZE <const>, ON_FIRST_SCREEN <const> = { width = 620, height = 236 }, 4
local EVENTS_MOST <const> = 200

local STYLE <const> = [[
:root{color-scheme:light dark;--bg:#f6f8fb;--card:#fff;--ink:#1c2330;--faint:#5d6778;--edge:#dde3ec}
@media(prefers-color-scheme:dark){:root{--bg:#0e131a;--card:#141a23;--ink:#e4e8ef;--faint:#98a2b4;
--edge:#2c3442}}
body{margin:0;background:var(--bg);color:var(--ink);font:13px/1.4 system-ui,sans-serif}
main{max-width:1320px;margin:0 auto;padding:10px 16px 24px}
h1{font-size:18px;margin:4px 0 8px}h2{font-size:13px;margin:0 0 2px}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:10px}
.card{background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:8px 10px;
margin:0 0 10px;overflow-x:auto}.grid .card{margin:0}
table{border-collapse:collapse;width:100%}td,th{padding:3px 10px 3px 0;text-align:right;
white-space:nowrap;vertical-align:top}th{color:var(--faint);font-weight:500}
td:first-child,th:first-child,.left td,.left th{text-align:left}.left td{white-space:normal;
overflow-wrap:break-word}
.left td:first-child{white-space:nowrap}tr+tr td{border-top:1px solid var(--edge)}
.key{display:inline-block;width:14px;height:3px;border-radius:2px;vertical-align:middle;
margin-right:6px}.note{color:var(--faint);margin:0}
svg{display:block;width:100%;height:auto}summary{cursor:pointer;font-weight:600}
details .grid{margin-top:8px}pre{white-space:pre-wrap;margin:6px 0}.gap{height:10px}
]]

local function key(i)
  return ('<span class="key k%d"></span>'):format((i - 1) % svg.COLORS + 1)
end

-- The colours of series, for the little bars in tables.
local function key_style()
  local light, dark = {}, {}
  local head, tail = svg.STYLE:match "^svg{(.-)}(.*)$"
  for i = 1, svg.COLORS do
    light[i] = (".k%d{background:%s}"):format(i, head:match(("%%-%%-s%d:(#%%x+)"):format(i)))
    dark[i] = (".k%d{background:%s}"):format(i, tail:match(("%%-%%-s%d:(#%%x+)"):format(i)))
  end
  return ("%s@media(prefers-color-scheme:dark){%s}"):format(table.concat(light),
    table.concat(dark))
end

local function row(cells, tag)
  return ("<tr><%s>%s</%s></tr>"):format(tag, table.concat(cells, ("</%s><%s>"):format(tag, tag)),
    tag)
end

local function summary_table(runs, names)
  local heads = {}
  for i, column in ipairs(summary.COLUMNS) do
    heads[i] = escape(column[1])
  end
  local out = { "<table>", row(heads, "th") }
  for i, run in ipairs(runs) do
    local cells = summary.of(run, names[i])
    for k, text in ipairs(cells) do
      cells[k] = escape(text)
    end
    cells[1] = key(i) .. cells[1]
    out[#out + 1] = row(cells, "td")
  end
  out[#out + 1] = "</table>"
  return table.concat(out, "\n")
end

local NOTES <const> = {
  latency = "Thin: median; full: 99th percentile; dashed: the largest (the last two of the worst"
    .. " sample).",
  fullness = "Full line: right after the latest sync; dashed: as statfs said at the moment.",
  time = "Shaded: phases that do not fill%s. Red: events, dotted: marks; hover for names.",
}

local function chart_card(kind, chart, is_several)
  local note = NOTES[kind]
  note = note and note:format(is_several and ", of the first run" or "")
  return ('<section class="card"><h2>%s</h2>%s%s</section>'):format(escape(chart.title),
    svg.draw(chart, SIZE), note and ('<p class="note">%s</p>'):format(escape(note)) or "")
end

local function event_row(name, group)
  local e = group.event
  local when = pretty.duration(e.t_s)
  if group.n > 1 then
    when = ("%s to %s"):format(when, pretty.duration(group.last_s))
  end
  return row({ name, escape(when), escape(e.phase or ""),
    escape(e.state and ("%s, %s"):format(e.kind, tostring(e.state)) or e.kind),
    escape(pretty.count(group.n)), escape(e.code or ""), escape(e.op or ""), escape(e.path or ""),
    escape(e.message or "") }, "td")
end

local function event_rows(runs, names)
  local rows, total, left_out = {}, 0, 0
  for i, run in ipairs(runs) do
    local groups, others = events.groups(run)
    left_out = left_out + others
    for _, group in ipairs(groups) do
      total = total + 1
      if #rows < EVENTS_MOST then
        rows[#rows + 1] = event_row(key(i) .. escape(names[i]), group)
      end
    end
  end
  return rows, total, left_out
end

local function events_card(runs, names)
  local rows, total, left_out = event_rows(runs, names)
  if total == 0 then
    return '<section class="card"><p class="note">No stall, collapse, refusal or error was'
      .. " recorded.</p></section>"
  end
  local words = {}
  if total > #rows then
    words[1] = ("%d more are in the timelines."):format(total - #rows)
  end
  if left_out > 0 then
    words[#words + 1] = ("%s about how the run was steered are in the timelines only."):format(
      pretty.count(left_out))
  end
  return ('<details class="card"%s><summary>Events</summary><table class="left">%s%s</table>'
    .. '<p class="note">%s</p></details>'):format(total <= 8 and " open" or "", row({ "run",
    "time", "phase", "kind", "times", "code", "operation", "path", "message of the first" }, "th"),
    table.concat(rows, "\n"), escape(table.concat(words, " ")))
end

-- Speed by tenths of fullness: what a chart shows, to be quoted.
local function fullness_table(runs, names)
  local heads, rows = { "synced fullness" }, {}
  for i in ipairs(runs) do
    heads[#heads + 1] = key(i) .. escape(names[i])
  end
  for _, line in ipairs(summary.by_fullness(runs)) do
    local cells = { escape(("%.0f–%.0f %%"):format(line.from * 100, line.to * 100)) }
    for i in ipairs(runs) do
      local bin = line[i]
      cells[#cells + 1] = bin and escape(axis.text(bin.bytes_per_s, "bytes/s")) or "–"
    end
    rows[#rows + 1] = row(cells, "td")
  end
  return ('<details class="card"><summary>Speed by fullness, in numbers</summary><table>%s%s'
    .. "</table></details>"):format(row(heads, "th"), table.concat(rows, "\n"))
end

-- A header's field as text: sizes for people, tables as JSON.
local function field_text(name, v)
  if type(v) == "table" then
    return json.encode(v)
  elseif name:find "_bytes$" and math.type(v) == "integer" and v >= 0 then
    return bytes.about(v)
  end
  return tostring(v)
end

local HIDDEN <const> = { columns = true, type = true, format = true, version = true }

local function provenance_table(runs, names)
  local fields, seen, heads, rows = {}, {}, { "field" }, {}
  for i, run in ipairs(runs) do
    heads[#heads + 1] = key(i) .. escape(names[i])
    for name in pairs(run.header) do
      if not seen[name] and not HIDDEN[name] then
        seen[name] = true
        fields[#fields + 1] = name
      end
    end
  end
  table.sort(fields)
  for _, name in ipairs(fields) do
    local cells = { escape(name) }
    for _, run in ipairs(runs) do
      local v = run.header[name]
      cells[#cells + 1] = v ~= nil and escape(field_text(name, v)) or ""
    end
    rows[#rows + 1] = row(cells, "td")
  end
  return ('<details class="card"><summary>Where it was measured</summary><table class="left">%s%s'
    .. "</table></details>"):format(row(heads, "th"), table.concat(rows, "\n"))
end

-- A section of the caller's: its texts are as foreign as any.
local function own_section(s)
  local out, rows = {}, {}
  for i, cells in ipairs(s.rows or {}) do
    local escaped = {}
    for k, text in ipairs(cells) do
      escaped[k] = escape(text)
    end
    rows[i] = row(escaped, "td")
  end
  local heads = {}
  for i, text in ipairs(s.heads or {}) do
    heads[i] = escape(text)
  end
  if #heads > 0 or #rows > 0 then
    out[1] = ('<table class="left">%s%s</table>'):format(#heads > 0 and row(heads, "th") or "",
      table.concat(rows, "\n"))
  end
  out[#out + 1] = s.text and ("<pre>%s</pre>"):format(escape(s.text))
  out[#out + 1] = s.note and ('<p class="note">%s</p>'):format(escape(s.note))
  return ('<details class="card"%s><summary>%s</summary>%s</details>'):format(
    s.open and " open" or "", escape(s.title), table.concat(out))
end

local function own_sections(sections)
  local out = {}
  for i, s in ipairs(sections) do
    out[i] = own_section(s)
  end
  return table.concat(out, "\n")
end

---Write the page.
---@param runs brim.TimelineData[]
---@param names string[] of the runs
---@param drawn brim.Chart[] in the order of charts.KINDS
---@param title string
---@param sections brim.ReportSection[] checked
---@return string html
function M.write(runs, names, drawn, title, sections)
  local kinds, cards = require("brim.plot.charts").KINDS, {}
  for i, chart in ipairs(drawn) do
    cards[i] = chart_card(kinds[i], chart, #runs > 1)
  end
  local first = runs[1].header
  local words = { first.host, first.kernel, first.started, first.brim and "brim "
    .. tostring(first.brim) }
  local made = {}
  for k = 1, 4 do
    made[#made + 1] = words[k] and escape(words[k])
  end
  return table.concat({
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width,initial-scale=1">',
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
      .. ' style-src \'unsafe-inline\'">',
    ("<title>%s</title><style>%s%s%s</style></head><body><main>"):format(escape(title), STYLE,
      svg.STYLE, key_style()),
    ('<h1>%s</h1><div class="card">%s<p class="note">%s</p></div>'):format(escape(title),
      summary_table(runs, names), table.concat(made, " · ")),
    ('<div class="grid">%s</div><div class="gap"></div>'):format(table.concat(cards, "\n", 1,
      ON_FIRST_SCREEN)),
    own_sections(sections), events_card(runs, names),
    ('<details class="card"><summary>More charts</summary><div class="grid">%s</div></details>')
      :format(table.concat(cards, "\n", ON_FIRST_SCREEN + 1)),
    fullness_table(runs, names), provenance_table(runs, names),
    "</main></body></html>\n",
  }, "\n")
end

return M
