-- brim.knobs.data: what is known of tunables: finds one by its name, checks a value against it,
-- tells defaults by geometry and kernel. Called by knobs, and by brim.f2fs.explain, which needs no
-- mount. Pure. Kernels are written as in `uname -r`: "6.1", "6.12.117-fc".
local errors = require "brim.error"
local opts = require "brim.opts"

local M = {}

local TABLES <const> = { f2fs = "brim.knobs.f2fs", xfs = "brim.knobs.xfs" }
local QUEUE <const> = "queue."
local U32 <const> = 0xffffffff -- the kernel keeps them in unsigned int

---@class brim.Knob
---@field name string
---@field unit string
---@field since string first mainline release
---@field before? string first mainline release without it
---@field default? any or function(geometry, kernel, options)
---@field doc string
---@field place "fs"|"proc"|"queue"|"mount" where it is
---@field file string below that place; of a mount option its name
---@field min integer
---@field max integer
---@field values? string[] if it is a word
---@field choice? boolean the file brackets which of its words holds
---@field flag? string the mount option that stands for "on"
---@field reads? table<integer, integer> what a value reads back as
---@field undo? fun(raw: string): string, string the knob and the text that bring a reading back
---@field first? integer the value that is set before mount options are, which may need it
---@field hint? string what a refusal may mean
---@field thread? boolean forgotten when the GC thread is started anew
---@field names? table<string, integer> how some kernels show its numbers

-- Major and minor of a kernel.
local function numbers(kernel)
  local major, minor = kernel:match "^(%d+)%.?(%d*)"
  return tonumber(major) or 0, tonumber(minor) or 0
end

---Is a kernel older than a release?
---@param kernel string
---@param release string
---@return boolean
function M.is_before(kernel, release)
  local a, b = numbers(kernel)
  local c, d = numbers(release)
  return a < c or a == c and b < d
end

local function make(row, place, prefix)
  local knob = {}
  for key, v in pairs(row) do
    knob[key] = type(key) == "string" and v or nil
  end
  knob.name = (prefix or "") .. row[1]
  knob.unit, knob.since, knob.default, knob.doc = row[2], row[3], row[4], row[5]
  knob.place, knob.file = place, row.file or row[1]
  knob.min, knob.max = row.min or 0, row.max or U32
  if knob.flag then
    knob.values = { "on", "off" }
  end
  return knob
end

local function load(filesystem)
  local list = {}
  local function add(rows, place, prefix)
    for _, row in ipairs(rows) do
      local knob = make(row, row.proc and "proc" or place, prefix)
      list[#list + 1], list[knob.name] = knob, knob
    end
  end
  local own = TABLES[filesystem] and require(TABLES[filesystem])
  if own then
    add(own.KNOBS, "fs")
    add(own.OPTIONS or {}, "mount")
  end
  add(require("brim.knobs.queue").KNOBS, "queue", QUEUE)
  return list
end

local loaded = {}

---Give all knobs of a filesystem, with those of the device under it: in the order of help, and by
---name.
---@param filesystem string
---@return brim.Knob[]
function M.of(filesystem)
  loaded[filesystem] = loaded[filesystem] or load(filesystem)
  return loaded[filesystem]
end

---Find a knob by its name.
---@param filesystem string
---@param name string
---@return brim.Knob? knob
---@return brim.Error? err with a name that is near
function M.find(filesystem, name)
  local list = M.of(filesystem)
  if list[name] then
    return list[name]
  end
  local known = {}
  for i, knob in ipairs(list) do
    known[i] = knob.name
  end
  return nil, errors.usage("unknown knob '%s' of %s%s", tostring(name), filesystem,
    opts.suggest(tostring(name), known))
end

local function words(values)
  return table.concat(values, ", ")
end

-- The text to write of a word, or nil and why not.
local function check_word(knob, value)
  if type(value) == "boolean" and knob.flag then
    value = value and "on" or "off"
  end
  if knob.pattern then
    if type(value) == "string" and value:find(knob.pattern) then
      return value
    end
    return nil, ("expected %s"):format(knob.form)
  elseif knob.choice then
    if type(value) == "string" and value:find "^[%w_-]+$" then
      return value
    end
    return nil, "expected a word"
  end
  for _, known in ipairs(knob.values) do
    if value == known then
      return value
    end
  end
  return nil, ("expected one of %s"):format(words(knob.values))
end

local function check_number(knob, value, g)
  local n = math.type(value) == "integer" and value
  if not n and type(value) == "string" then
    local digits = value:match "^-?%d+$" or value:match "^0[xX]%x+$"
    n = digits and #digits <= 18 and math.tointeger(tonumber(digits))
  elseif type(value) == "boolean" then
    n = value and 1 or 0
  end
  local most = knob.most and g and math.min(knob.most(g), knob.max) or knob.max
  local unit = knob.unit ~= "" and " " .. knob.unit or ""
  if not n then
    return nil, ("expected an integer of %d to %d%s"):format(knob.min, most, unit)
  elseif n < knob.min then
    return nil, ("the least is %d%s"):format(knob.min, unit)
  elseif n > most then
    return nil, ("the most is %d%s"):format(most, unit)
  end
  return n
end

---Check a value for a knob.
---@param knob brim.Knob
---@param value integer|string|boolean a number may be given as text: "30000", "0x10"
---@param g? table geometry, for limits that depend on it
---@return integer|string? value as it is written
---@return brim.Error? err says what would be right
function M.check(knob, value, g)
  local out, why
  if knob.values or knob.pattern or knob.choice then
    out, why = check_word(knob, value)
  else
    out, why = check_number(knob, value, g)
  end
  if out == nil then
    return nil, errors.usage("%s=%s: %s", knob.name, tostring(value), why)
  end
  return out
end

---Is a knob one that a kernel has, going by its version?
---@param knob brim.Knob
---@param kernel string
---@return boolean has
---@return string? why not, in words
function M.is_in(knob, kernel)
  if M.is_before(kernel, knob.since) then
    return false, ("Linux %s has no %s, it came with %s"):format(kernel, knob.name, knob.since)
  elseif knob.before and not M.is_before(kernel, knob.before) then
    return false, ("Linux %s has no %s, it went with %s"):format(kernel, knob.name, knob.before)
  end
  return true
end

---Tell the defaults of a filesystem's knobs, as far as they are known.
---@param filesystem string
---@param g table geometry: main_segments, section_segments, reserved_segments for F2FS
---@param kernel string
---@param options? table<string, string> mount options that matter, like mode
---@return table<string, integer|string>
function M.defaults(filesystem, g, kernel, options)
  local out = {}
  for _, knob in ipairs(M.of(filesystem)) do
    if knob.place ~= "queue" and M.is_in(knob, kernel) then
      local v = knob.default
      if type(v) == "function" then
        v = v(g, kernel, options)
      end
      out[knob.name] = v
    end
  end
  return out
end

---Check a knob set without a mount: names, values, and whether a kernel has them.
---@param filesystem string
---@param set table<string, any>
---@param kernel string
---@param g? table geometry
---@return table<string, integer|string>? checked
---@return brim.Error? err
function M.check_set(filesystem, set, kernel, g)
  local out, names = {}, {}
  for name in pairs(set) do
    names[#names + 1] = tostring(name)
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = set[name]
    local knob, err = M.find(filesystem, name)
    if not knob then
      return nil, err
    end
    local has, why = M.is_in(knob, kernel)
    if not has then
      return nil, errors.usage("%s", why)
    end
    out[name], err = M.check(knob, value, g)
    if err then
      return nil, err
    end
  end
  return out
end

return M
