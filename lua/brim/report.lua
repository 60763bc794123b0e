-- brim.report: one self-contained HTML page from one or several timelines, laid over each other for
-- comparison: summary, charts, events, provenance. Called by the recipes report and near-full. It
-- needs nothing from elsewhere: no network, no scripts, charts are inline SVG of our own.
local charts = require "brim.plot.charts"
local errors = require "brim.error"
local opts = require "brim.opts"
local page = require "brim.report.page"
local reader = require "brim.timeline.reader"

local M = {}

---@class brim.ReportOpts
---@field title? string of the page; default: what was measured
---@field sections? brim.ReportSection[] the caller's own, above the events

---A section of the caller's: a table, a text, or both. All of it is shown as text.
---@class brim.ReportSection
---@field title string
---@field note? string
---@field heads? string[] of the table
---@field rows? string[][] of the table
---@field text? string lines as they are
---@field open? boolean false: shown when it is clicked; default true

local SCHEMA = {
  title = { type = "string", doc = "of the page" },
  sections = { type = "table", doc = "the caller's own: title, note, heads, rows, text, open" },
}

local SECTION <const> = {
  title = { type = "string", required = true, doc = "of the section" },
  note = { type = "string", doc = "below it" },
  heads = { type = "table", doc = "of the table" },
  rows = { type = "table", doc = "of the table" },
  text = { type = "string", doc = "lines as they are" },
  open = { type = "bool", default = true, doc = "false: shown when it is clicked" },
}

-- Timelines as they come: read already, or paths.
local function read_all(sources)
  local runs = {}
  for i, source in ipairs(sources) do
    local run, err = source, nil
    if type(source) == "string" then
      run, err = reader.read(source)
    elseif type(source) ~= "table" or not source.samples then
      error(("brim.report: source %d: expected a path or a timeline, got a %s"):format(i,
        type(source)), 3)
    end
    if not run then
      return nil, err
    end
    runs[i] = run
  end
  if #runs == 0 then
    error("brim.report: expected at least one timeline", 3)
  end
  return runs
end

local function title_of(runs)
  local seen, list = {}, {}
  for _, run in ipairs(runs) do
    local name = tostring(run.header.filesystem or run.header.device or run:name())
    if not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end
  return "Speed against fullness: " .. table.concat(list, ", ")
end

---Make the page of timelines.
---@param sources (string|brim.TimelineData)[] paths or what timeline.read gave
---@param o? brim.ReportOpts
---@return string? html
---@return brim.Error? err a timeline could not be read
function M.html(sources, o)
  o = opts.check(o, SCHEMA, "brim.report.html")
  local runs, err = read_all(sources)
  if not runs then
    return nil, err
  end
  local drawn = {}
  for i, kind in ipairs(charts.KINDS) do
    drawn[i] = charts.make(kind, runs)
  end
  local sections = {}
  for i, section in ipairs(o.sections or {}) do
    sections[i] = opts.check(section, SECTION, ("brim.report: sections[%d]"):format(i))
  end
  return page.write(runs, charts.names(runs), drawn, o.title or title_of(runs), sections)
end

---Write the page of timelines into a file.
---@param path string what was there is replaced
---@param sources (string|brim.TimelineData)[] paths or what timeline.read gave
---@param o? brim.ReportOpts
---@return integer? bytes
---@return brim.Error? err
function M.write(path, sources, o)
  o = opts.check(o, SCHEMA, "brim.report.write")
  local html, err = M.html(sources, o)
  if not html then
    return nil, err
  end
  local file, why, errno = io.open(path, "wb")
  if not file then
    return nil, errors.refused(errors.new { code = errno == 2 and "ENOENT" or "EACCES",
      errno = errno, op = "open", path = path, message = why })
  end
  local ok, reason, code = file:write(html)
  local closed, last, last_code = file:close()
  if not ok or not closed then
    return nil, errors.new { code = (code or last_code) == 28 and "ENOSPC" or "EIO",
      errno = code or last_code, op = "write", path = path, message = reason or last }
  end
  return #html
end

return M
