-- brim.fill.command: what the recipes fill, near-full and verify-fill share: their options, the
-- workload these describe, the live chart, the report. Sizes are bytes, durations seconds.
local brim = require "brim"
local bytes = require "brim.bytes"
local dist = require "brim.dist"
local options = require "brim.fill.options"
local pretty = require "brim.pretty"

local M = {}

-- Options of a schema as flags, in this order; sizes are words here.
local FILESET <const> = { "seed", "streams", "depth", "fan_out", "files_per_dir", "content",
  "compress_to" }
local RUN <const> = { "mode", "queue_depth", "checkpoint_s", "sample_s", "stall_s", "margin" }

local function add(list, schema, names)
  for _, name in ipairs(names) do
    local entry = { "--" .. name:gsub("_", "-") }
    for k, v in pairs(schema[name]) do
      entry[k] = v
    end
    list[#list + 1] = entry
  end
end

---Make the arguments of a recipe: its own first, then those of filesets and runs.
---@param own table[]
---@return table[]
function M.args(own)
  local list = {}
  for i, entry in ipairs(own) do
    list[i] = entry
  end
  list[#list + 1] = { "--sizes", type = "string",
    doc = "file sizes: 4k, log_uniform(4k,4m), log_normal(16k,2), pareto(4k,1.2,1g), ..." }
  list[#list + 1] = { "--manifest", type = "path", doc = "files like those of 'brim manifest'" }
  list[#list + 1] = { "--extensions", type = "string", doc = "of file names: .jpg,.txt" }
  add(list, options.WORKLOAD, FILESET)
  list[#list + 1] = { "--fsync", type = "string", default = "never",
    doc = "never, file, or n: each n-th file" }
  add(list, options.RUN, RUN)
  list[#list + 1] = { "--timeline", type = "path", doc = "keep the timeline in this file (JSONL)" }
  list[#list + 1] = { "--report", type = "path", doc = "write a report (HTML) to this file" }
  list[#list + 1] = { "--trace", type = "path", doc = "record what is done as a fio iolog" }
  list[#list + 1] = { "--yes-really", type = "bool",
    doc = "fill even what holds / or the home directory" }
  return list
end

local function words(text)
  local list = {}
  for word in (text or ""):gmatch "[^,%s]+" do
    list[#list + 1] = word
  end
  return list
end

---Make the workload that a recipe's options describe.
---@param a table
---@return brim.Workload? workload
---@return brim.Error? err
function M.workload(a)
  local o = { manifest = a.manifest }
  for _, name in ipairs(FILESET) do
    o[name] = a[name]
  end
  if a.sizes then
    local d, why = dist.parse(a.sizes)
    if not d then
      return nil, brim.error.usage("option '--sizes': %s", why)
    end
    o.sizes = d
  end
  if a.extensions then
    o.extensions = words(a.extensions)
  end
  local ok, w = pcall(brim.fill.new, o)
  if ok then
    return w
  elseif brim.error.is(w) then
    return nil, w
  end
  return nil, brim.error.usage("%s", (tostring(w):gsub("^.-brim%.fill%.new: ", "")))
end

---Read a list of levels, each at least the one before, as filling never lowers: "50%,80%,enospc".
---@param text string
---@return string[]? levels
---@return brim.Error? err
function M.levels(text)
  local list = words(text)
  local highest = 0
  for i, level in ipairs(list) do
    local target, why = options.target(level)
    if not target then
      return nil, brim.error.usage("option '--until': %s", why)
    end
    local height = target.kind == "full" and math.huge or target.value
    if height < highest then
      return nil, brim.error.usage("option '--until': '%s' comes after '%s', but levels go up",
        level, list[i - 1])
    end
    highest = height
  end
  if #list == 0 then
    return nil, brim.error.usage "option '--until': no level, write 50%%,80%%,enospc"
  end
  return list
end

---Read a duration: "30s", "10m", "2h", "30".
---@param text string
---@return number? seconds
---@return brim.Error? err
function M.duration(text)
  local n, unit = text:match "^([%d.]+)([smh]?)$"
  n = tonumber(n)
  if not n then
    return nil, brim.error.usage("option '--churn': '%s' is no time; write 30s, 10m or 2h", text)
  end
  return n * (({ m = 60, h = 3600 })[unit] or 1)
end

-- One line: the phase, how full, how fast.
local function line(p)
  local t = p.sample or {}
  local width <const> = 20
  local bar = math.floor((p.fullness or 0) * width + 0.5)
  return ("%-18s [%s%s] %6.2f %%  %s files  %s  %s/s%s"):format(p.phase or "", ("#"):rep(bar),
    ("."):rep(width - bar), 100 * (p.fullness or 0), pretty.count(p.files),
    bytes.about(p.written_bytes), bytes.about(math.floor(t.bytes_per_s or 0)),
    t.create_p99_s and ("  create p99 %s"):format(pretty.duration(t.create_p99_s)) or "")
end

-- The curve so far and a line, on a terminal; else nothing: the result says it all. Of churn only
-- the line: its speed is not that of filling.
local function progress(ctx)
  if not ctx.is_tty or ctx.quiet then
    return nil, function() end
  end
  local live = require("brim.plot").live { rows = 8, interval_s = 0.2,
    x = { label = "fullness", unit = "1", min = 0, max = 1 },
    y = { label = "written while filling", unit = "bytes/s", min = 0 } }
  local last
  return function(p)
    local t = p.sample
    if t and t ~= last and t.bytes_per_s and (t.phase or ""):find "^fill" then
      live:add(t.fullness, t.bytes_per_s)
    end
    last = t
    live:draw(line(p))
  end, function() live:close() end
end

local function fsync(text)
  return math.tointeger(tonumber(text)) or text
end

-- A report needs a timeline, which then is kept beside it.
local function timeline_of(a)
  return a.timeline or a.report and a.report:gsub("%.html?$", "") .. ".jsonl" or nil
end

---Make the options of a run.
---@param a table of a recipe
---@param ctx brim.Context
---@return table o
---@return fun() clear takes the live line away
function M.run_options(a, ctx)
  local o = { timeline = timeline_of(a), fsync = fsync(a.fsync), yes_really = a.yes_really,
    trace_path = a.trace, progress_interval_s = 0.2 }
  for _, name in ipairs(RUN) do
    o[name] = a[name]
  end
  local clear
  o.progress, clear = progress(ctx)
  return o, clear
end

---Finish a recipe: the report, where one was asked for, and the result.
---@param a table
---@param result table
---@return table? result
---@return brim.Error? err
function M.finish(a, result)
  local path = timeline_of(a)
  local text = { result.text }
  if path then
    text[#text + 1] = "timeline: " .. path
  end
  if a.report then
    local ok, err = require("brim.report").write(a.report, { path })
    if not ok then
      return nil, err
    end
    text[#text + 1] = "report: " .. a.report
  end
  result.text = table.concat(text, "\n")
  return result
end

---Tell what a workload would do.
---@param path string
---@param w brim.Workload
---@return table result
function M.plan(path, w)
  local usage, err = require("brim.core").usage(path)
  if not usage then
    return nil, brim.error.refused(err)
  end
  local o = w.fileset_options
  local mean = dist.mean(o.sizes)
  local text = { ("%s: %s, %s, %.2f %% used"):format(path, usage.type,
    bytes.about(usage.size_bytes), 100 * (1 - usage.free_bytes / usage.size_bytes)),
    ("files: %s, %s on average, in %d streams, seed %d; about %s would fill it"):format(
      tostring(setmetatable(o.sizes, getmetatable(dist.fixed(1)))), bytes.about(math.floor(mean)),
      o.streams, o.seed, pretty.count(math.floor(usage.free_bytes / mean))) }
  local steps = {}
  for i, step in ipairs(w.steps) do
    steps[i] = step.name
    text[#text + 1] = ("%2d. %s"):format(i, step.name)
  end
  return { steps = steps, size_bytes = usage.size_bytes, free_bytes = usage.free_bytes,
    mean_file_bytes = mean, text = table.concat(text, "\n") }
end

return M
