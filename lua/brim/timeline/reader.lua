-- brim.timeline.reader: reads the lines of a timeline into one table and hands out its columns.
-- Called by timeline, report, plot. A file is foreign text: what does not fit is an error with the
-- line's number, except one line that a crash tore. Times are seconds.
local columns = require "brim.timeline.columns"
local errors = require "brim.error"
local json = require "brim.json"

local M = {}
local Data = {}
Data.__index = Data

M.FORMAT = "brim-timeline"
M.VERSION = 1

---@class brim.TimelineData
---@field path string
---@field header table
---@field samples table[] in the order of the file
---@field phase_of integer[] by sample: the number of its phase, 0 before the first
---@field phases table[] each with t_s, end_s, name, kind
---@field marks table[] each with t_s, name
---@field events table[] each with t_s, kind, and what is known of op, path, code, message
---@field result? table nil where the run did not come to its end
---@field last_s number the largest time there is
---@field is_torn boolean did the file end within a line?

local LISTS <const> = { sample = "samples", phase = "phases", mark = "marks", event = "events" }

local CODES <const> = { [2] = "ENOENT", [13] = "EACCES", [20] = "ENOTDIR", [21] = "EISDIR" }

local function bad(path, number, why)
  return nil, errors.refused(errors.new { code = "EILSEQ", errno = 84, op = "read", path = path,
    message = ("%s, line %d: %s"):format(path, number, why) })
end

local function is_finite(v)
  return type(v) == "number" and v - v == 0
end

-- Of a sample: a column of ours that holds no number, with which nobody could reckon.
local function column_fault(record)
  for name in pairs(columns.STANDARD) do
    if record[name] ~= nil and not is_finite(record[name]) then
      return ("%s is no number"):format(name)
    end
  end
end

-- Why a line is none of ours, or nil.
local function fault(record)
  if type(record) ~= "table" or type(record.type) ~= "string" then
    return "no record of a timeline"
  elseif record.type == "header" then
    return "a second header; a file holds one run"
  elseif not is_finite(record.t_s) then
    return ("a %s without a time"):format(record.type:sub(1, 20))
  elseif record.type == "sample" then
    return column_fault(record)
  elseif (record.type == "phase" or record.type == "mark") and type(record.name) ~= "string" then
    return ("a %s without a name"):format(record.type)
  elseif record.type == "event" and type(record.kind) ~= "string" then
    return "an event without a kind"
  end
end

local function take(run, record)
  local list = LISTS[record.type]
  if record.type == "sample" then
    run.phase_of[#run.samples + 1] = #run.phases
  end
  run.last_s = math.max(run.last_s, record.t_s)
  if list then
    table.insert(run[list], record)
  elseif record.type == "result" then
    run.result = record
  end
  -- Other types are of a later version's: left out.
end

local function check_header(path, record)
  if type(record) ~= "table" or record.type ~= "header" or record.format ~= M.FORMAT then
    return bad(path, 1, "no header of a timeline; is it one?")
  elseif record.version ~= M.VERSION then
    return bad(path, 1, ("version %s; this brim reads version %d"):format(
      tostring(record.version), M.VERSION))
  elseif type(record.columns or {}) ~= "table" then
    return bad(path, 1, "columns are no table")
  end
  record.columns = record.columns or {}
  return record
end

-- Phases end where the next begins, the last with the run.
local function end_phases(run)
  for i, phase in ipairs(run.phases) do
    local after = run.phases[i + 1]
    phase.end_s = after and after.t_s or run.last_s
    phase.kind = type(phase.kind) == "string" and phase.kind or "phase"
  end
end

-- Takes the records after the header: true, or nil and the error.
local function take_lines(run, lines)
  local torn -- number of a line that is no JSON: right only at the end or before "resumed"
  local number, why_torn = 1, nil
  for line in lines do
    number = number + 1
    local record, why = json.decode(line)
    if torn and not (type(record) == "table" and record.kind == "resumed") then
      return bad(run.path, torn, why_torn)
    end
    torn = nil
    if record == nil then
      torn, why_torn = number, why or "an empty line"
    else
      local reason = fault(record)
      if reason then
        return bad(run.path, number, reason)
      end
      take(run, record)
    end
  end
  run.is_torn = run.is_torn or torn ~= nil
  return true
end

---Read the text of a timeline.
---@param text string
---@param path string where it is from, for errors
---@return brim.TimelineData? run
---@return brim.Error? err
function M.parse(text, path)
  local first = text:match "^[^\n]*"
  local header, err = check_header(path, json.decode(first))
  if not header then
    return nil, err
  end
  local run = setmetatable({ path = path, header = header, samples = {}, phase_of = {}, phases = {},
    marks = {}, events = {}, last_s = 0, is_torn = text:sub(-1) ~= "\n" }, Data)
  local body = text:sub(#first + 2)
  if run.is_torn and body ~= "" then
    body = body .. "\n"
  end
  local ok, why = take_lines(run, body:gmatch "([^\n]*)\n")
  if not ok then
    return nil, why
  end
  end_phases(run)
  return run
end

---Read a timeline's file.
---@param path string
---@return brim.TimelineData? run
---@return brim.Error? err
function M.read(path)
  local text
  local file, why, errno = io.open(path, "rb")
  if file then
    text, why, errno = file:read "a"
    file:close()
  end
  if not text then
    return nil, errors.refused(errors.new { code = CODES[errno] or "EIO", errno = errno,
      op = "open", path = path, message = why or (path .. ": cannot be read") })
  end
  return M.parse(text, path)
end

---Give one column as a list, with `nil` where a sample lacks it; n is the number of samples.
---@param name string
---@return table values
---@return integer n
function Data:column(name)
  local out = {}
  for i, sample in ipairs(self.samples) do
    out[i] = sample[name]
  end
  return out, #self.samples
end

---Name every column that holds a number somewhere, sorted.
---@return string[]
function Data:names()
  local seen, list = {}, {}
  for _, sample in ipairs(self.samples) do
    for name, v in pairs(sample) do
      if type(v) == "number" and not seen[name] then
        seen[name] = true
        list[#list + 1] = name
      end
    end
  end
  table.sort(list)
  return list
end

---Find the phase that a moment lies in; nil before the first.
---@param t_s number
---@return table?
function Data:phase_at(t_s)
  local found
  for _, phase in ipairs(self.phases) do
    if phase.t_s <= t_s then
      found = phase
    end
  end
  return found
end

---Name the run for people: its title, or filesystem and file.
---@return string
function Data:name()
  local h = self.header
  if type(h.title) == "string" and h.title ~= "" then
    return h.title
  end
  local file = self.path:match "([^/]+)$" or self.path
  return h.filesystem and ("%s (%s)"):format(tostring(h.filesystem), file) or file
end

return M
