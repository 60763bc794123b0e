-- brim.layout: on-disk structures as data. One declaration encodes, decodes, stamps, scans, prints
-- and documents. Called by plan, scan and every filesystem's ondisk.lua. Offsets and sizes are
-- bytes.
--
--   local agf = layout.struct("agf", { size_bytes = 512, endian = "big", crc32c = "crc" }) {
--     { 0x00, "u32", "magicnum", value = 0x58414746, doc = "XAGF" },
--     { 0x04, "u32", "seqno", doc = "number of this allocation group" },
--     ...
--   }
--   agf:encode { seqno = 7 }        agf:decode(bytes).seqno        agf:at(512) { seqno = index }
local core = require "brim.core"
local opts = require "brim.opts"
local symbol = require "brim.symbol"
local uuid = require "brim.uuid"
local where = require "brim.where"

local M = {}

---@class brim.Field
---@field name string
---@field off_bytes integer
---@field width_bytes integer of one element
---@field kind "int"|"char"|"bytes"|"uuid"|"record"
---@field endian? "big"|"little"
---@field count integer elements; 0: as many as fit
---@field array boolean declared with brackets: its value is a list
---@field record? brim.Layout
---@field value? integer default of each element
---@field magic? integer like value, and a scan expects it everywhere
---@field unit? string
---@field doc? string

---@class brim.Layout
---@field name string
---@field size_bytes integer
---@field fields brim.Field[]
---@field doc? string
local Layout = {}
Layout.__index = Layout
Layout.__name = "brim.layout"

---@class brim.Placed
---@field layout? brim.Layout
---@field off_bytes integer
---@field size_bytes integer
---@field values table
local Placed = { __name = "brim.placed" }
Placed.__index = Placed

local DEF_KEYS <const> = { size_bytes = true, endian = true, crc32c = true, checksum = true,
  extensible = true, doc = true }
local INT_BITS <const> = { ["8"] = true, ["16"] = true, ["32"] = true, ["64"] = true }
local FIELD_KEYS <const> = { value = true, doc = true, unit = true, magic = true }

-- "u32le[64]" and its like; records come as layouts or layout:array(n).
local function parse_type(spec, endian)
  if type(spec) == "table" and spec.record then
    return { kind = "record", record = spec.record, width_bytes = spec.record.size_bytes,
      count = spec.count, array = true }
  elseif getmetatable(spec) == Layout then
    return { kind = "record", record = spec, width_bytes = spec.size_bytes, count = 1 }
  elseif spec == "uuid" then
    return { kind = "uuid", width_bytes = 16, count = 1 }
  end
  local kind, n = tostring(spec):match "^(%l+)%[(%d+)%]$"
  if kind == "char" or kind == "bytes" then
    return { kind = kind, width_bytes = math.tointeger(n), count = 1 }
  end
  local bits, order, brackets = tostring(spec):match "^u(%d+)(%l?%l?)(.*)$"
  local count = brackets and brackets:match "^%[(%d*)%]$"
  if not INT_BITS[bits] or (brackets ~= "" and not count)
    or (order ~= "" and order ~= "le" and order ~= "be") then
    where.raise(("unknown type '%s': u8 u16 u32 u64, with le or be and [n] or [] behind, char[n], "
      .. "bytes[n], uuid, a layout or layout:array(n)"):format(tostring(spec)))
  end
  return { kind = "int", width_bytes = math.tointeger(bits) // 8, array = count ~= nil,
    count = count == "" and 0 or math.tointeger(count or 1),
    endian = order == "le" and "little" or order == "be" and "big" or endian }
end

local function parse_field(spec, def)
  local field = parse_type(spec[2], def.endian or "little")
  field.off_bytes, field.name = spec[1], spec[3]
  if type(field.name) ~= "string" then
    where.raise(("the field at %s has no name"):format(tostring(spec[1])))
  elseif math.type(spec[1]) ~= "integer" then
    where.raise(("field '%s': its offset is an integer of bytes, not %s"):format(field.name,
      tostring(spec[1])))
  end
  for key, v in pairs(spec) do
    if type(key) == "string" then
      if not FIELD_KEYS[key] then
        where.raise(("field '%s': unknown key '%s'"):format(field.name, key))
      end
      field[key] = v
    end
  end
  field.value = field.value or field.magic
  return field
end

local function checksum_of(self, def)
  local checksum = def.checksum or (def.crc32c and { field = def.crc32c })
  if not checksum then
    return nil
  end
  local c = { field = checksum.field, kind = checksum.kind, seed = checksum.seed,
    xor_out = checksum.xor_out }
  c.endian = self.by_name[c.field] and self.by_name[c.field].endian
  return c
end

-- Declares it to the core, which checks for gaps and overlaps.
local function declare(self, def)
  local fields = {}
  for i, f in ipairs(self.fields) do
    fields[i] = { name = f.name, off_bytes = f.off_bytes, width_bytes = f.width_bytes,
      endian = f.endian, count = f.count, value = f.value,
      record = f.record and f.record.handle }
  end
  self.checksum = checksum_of(self, def)
  local ok, handle = pcall(core.layout_new, { name = self.name, size_bytes = def.size_bytes,
    extensible = def.extensible, checksum = self.checksum, fields = fields })
  if not ok then
    where.raise((tostring(handle):gsub("^[^ ]-:%d+: ", "")))
  end
  self.handle = handle
end

---Declare a structure: struct(name, { size_bytes =, endian =, crc32c = "field" or checksum = {...},
---extensible =, doc = }) { fields... }. Each field is { offset, type, name, value =, magic =,
---unit =, doc = }. Types: "u8" "u16" "u32" "u64", with "le" or "be" for another byte order than
---`endian` and "[n]" for an array ("[]": as many as fit, last field only); "char[n]" (text, padded
---with zeros), "bytes[n]", "uuid", another layout, layout:array(n). `value` is what the field holds
---unless told otherwise; `magic` is one that scans insist on. `extensible` structures may be placed
---larger (a header whose checksum covers a sector or block). Raises where fields overlap, leave
---gaps or do not add up to the size.
---@param name string
---@param def table
---@return fun(fields: table[]): brim.Layout
function M.struct(name, def)
  for key in pairs(def) do
    if not DEF_KEYS[key] then
      where.raise(("layout '%s': unknown key '%s'"):format(name, tostring(key)))
    end
  end
  return function(specs)
    local self = setmetatable({ name = name, size_bytes = def.size_bytes, fields = {}, by_name = {},
      doc = def.doc, extensible = def.extensible or false }, Layout)
    for i, spec in ipairs(specs) do
      local field = parse_field(spec, def)
      if self.by_name[field.name] then
        where.raise(("%s: field '%s' at 0x%x: the name is there twice"):format(name, field.name,
          field.off_bytes))
      end
      field.index = i
      self.fields[i] = field
      self.by_name[field.name] = field
    end
    declare(self, def)
    return self
  end
end

---The type of a field that holds n of these records one behind the other, or as many as fit.
---@param n? integer
---@return table
function Layout:array(n)
  return { record = self, count = n or 0 }
end

---Place the structure at an offset within a group (or on the volume), with a larger size where the
---layout is extensible. Call the result with a table of values.
---@param off_bytes integer
---@param size_bytes? integer
---@return brim.Placed
function Layout:at(off_bytes, size_bytes)
  if math.type(off_bytes) ~= "integer" or off_bytes < 0 then
    where.raise(("%s: an offset is an integer of bytes, not %s"):format(self.name,
      tostring(off_bytes)))
  end
  return setmetatable({ layout = self, off_bytes = off_bytes,
    size_bytes = size_bytes or self.size_bytes, values = {} }, Placed)
end

-- What is wrong with a table of values as far as its names go, or nil.
local function unknown_field(layout, values)
  for name in pairs(values) do
    if not layout.by_name[name] then
      return ("'%s' has no field '%s'%s"):format(layout.name, tostring(name),
        opts.suggest(tostring(name), layout:field_names()))
    end
  end
end

function Placed:__call(values)
  local fault = type(values) ~= "table" and ("%s: the values are a table"):format(self.layout.name)
    or unknown_field(self.layout, values)
  if fault then
    where.raise(fault)
  end
  return setmetatable({ layout = self.layout, off_bytes = self.off_bytes,
    size_bytes = self.size_bytes, values = values }, Placed)
end

---Place plain bytes: a string, or zeros of a length.
---@param off_bytes integer
---@param content string|integer
---@param label? string
---@return brim.Placed
function M.bytes(off_bytes, content, label)
  local zeros = math.type(content) == "integer"
  return setmetatable({ off_bytes = off_bytes, size_bytes = zeros and content or #content,
    content = not zeros and content or nil, label = label or (zeros and "zeros" or "bytes"),
    values = {} }, Placed)
end

-- Placed structures come as several results, as lists, or both.
local function flatten(list, ...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if M.is_placed(v) then
      list[#list + 1] = v
    elseif type(v) == "table" and getmetatable(v) == nil then
      flatten(list, table.unpack(v))
    elseif v ~= nil then
      where.raise(("expected structures placed with layout:at, got %s"):format(type(v)))
    end
  end
  return list
end

---Collect placed structures given one by one, in lists, or both.
---@param ... brim.Placed|brim.Placed[]
---@return brim.Placed[]
function M.flatten(...)
  return flatten({}, ...)
end

---Is it a placed structure?
---@param v any
---@return boolean
function M.is_placed(v)
  return getmetatable(v) == Placed
end

local function value_error(layout, field, why)
  error(("field '%s' of '%s': %s"):format(field.name, layout.name, why), 0)
end

---The base and step of an integer or index value of a field; raises for anything else.
---@param layout brim.Layout
---@param field brim.Field
---@param v any
---@return integer base
---@return integer step
function M.affine(layout, field, v)
  if math.type(v) == "integer" then
    return v, 0
  elseif symbol.is(v) then
    if v.why then
      value_error(layout, field, v.why)
    end
    return v.base, v.step
  elseif math.type(v) == "float" then
    value_error(layout, field, ("%s is a float; write integers with // and <<"):format(v))
  end
  value_error(layout, field, ("expected an integer, got %s"):format(type(v)))
end

---The bytes of a char, bytes or uuid field's value; raises for what does not fit.
---@param layout brim.Layout
---@param field brim.Field
---@param v string
---@return string
function M.opaque(layout, field, v)
  if type(v) ~= "string" then
    value_error(layout, field, ("expected a string, got %s"):format(type(v)))
  elseif field.kind == "uuid" then
    return uuid.parse(v) or value_error(layout, field, ("'%s' is no UUID"):format(v))
  elseif #v > field.width_bytes then
    value_error(layout, field, ("%d bytes do not fit %d"):format(#v, field.width_bytes))
  end
  return v
end


local function check_record(layout, field, v)
  local fault = type(v) ~= "table" and ("expected a table of values, got %s"):format(type(v))
    or unknown_field(field.record, v)
  if fault then
    value_error(layout, field, fault)
  end
end

---Visit every value given, records inside out, as visit(layout, field, off_bytes, element_value).
---@param layout brim.Layout
---@param off_bytes integer where the structure is
---@param size_bytes integer
---@param values table<string, any>
---@param visit fun(layout: brim.Layout, field: brim.Field, off_bytes: integer, v: any)
function M.each_value(layout, off_bytes, size_bytes, values, visit)
  for _, field in ipairs(layout.fields) do
    local given = values[field.name]
    if given ~= nil then
      local list = field.array and given or { given }
      local room = field.array
        and layout.handle:elements(field.index, size_bytes) or 1
      if type(list) ~= "table" or #list > room then
        value_error(layout, field, type(list) == "table"
          and ("%d elements do not fit %d"):format(#list, room) or "expected a list")
      end
      for i, v in ipairs(list) do
        local at = off_bytes + field.off_bytes + (i - 1) * field.width_bytes
        if field.record then
          check_record(layout, field, v)
          M.each_value(field.record, at, field.width_bytes, v, visit)
        else
          visit(layout, field, at, v)
        end
      end
    end
  end
end

-- Raises with the message only: whoever called the script's line adds it.
local function must(ok, err)
  if not ok then
    error(err.message, 0)
  end
  return ok
end

local function stamp_value(stamp)
  return function(layout, field, at, v)
    if field.kind == "int" then
      local base, step = M.affine(layout, field, v)
      must(stamp:set_int(at, field.width_bytes, field.endian, base, step, field.name))
    else
      must(stamp:set_bytes(at, M.opaque(layout, field, v)))
    end
  end
end

---Put one placed structure into a stamp of the core. Raises (without a position) what does not fit.
---@param stamp userdata
---@param placed brim.Placed
function M.stamp(stamp, placed)
  if placed.layout then
    must(stamp:place(placed.layout.handle, placed.off_bytes, placed.size_bytes))
    M.each_value(placed.layout, placed.off_bytes, placed.size_bytes, placed.values,
      stamp_value(stamp))
    return
  end
  must(stamp:region(placed.off_bytes, placed.size_bytes, placed.label))
  if placed.content then
    must(stamp:set_bytes(placed.off_bytes, placed.content))
  end
end

---Encode values into bytes, with defaults and the checksum.
---@param values table
---@param size_bytes? integer
---@return string
function Layout:encode(values, size_bytes)
  local stamp = assert(core.stamp_new())
  local ok, err = pcall(function()
    M.stamp(stamp, self:at(0, size_bytes)(values))
    must(stamp:seal(0, 1))
  end)
  local bytes = ok and stamp:render(0)
  stamp:close()
  if not ok then
    where.raise(err)
  end
  return bytes
end

local function tidy(layout, raw)
  for _, field in ipairs(layout.fields) do
    local v = raw[field.name]
    if field.kind == "uuid" then
      raw[field.name] = uuid.format(v)
    elseif field.kind == "char" then
      raw[field.name] = v:gsub("\0.*$", "")
    end
    if field.array and field.count == 1 then
      -- The core hands out a single element as it is.
      v = { v }
      raw[field.name] = v
    end
    if field.record then
      for _, record in ipairs(field.array and v or { v }) do
        tidy(field.record, record)
      end
    end
  end
  return raw
end

---Decode bytes into a table of the fields; the second result says whether the checksum is right.
---64-bit fields keep their bit pattern. Raises when the string is too short.
---@param bytes string
---@param off_bytes? integer
---@param size_bytes? integer
---@return table values
---@return boolean intact
function Layout:decode(bytes, off_bytes, size_bytes)
  local raw, intact = self.handle:decode(bytes, off_bytes or 0, size_bytes or self.size_bytes)
  return tidy(self, raw), intact
end

---A field by name, or nil.
---@param name string
---@return brim.Field?
function Layout:field(name)
  return self.by_name[name]
end

---The names of all fields, in order.
---@return string[]
function Layout:field_names()
  local names = {}
  for i, field in ipairs(self.fields) do
    names[i] = field.name
  end
  return names
end

local function type_name(field)
  local name = field.kind == "int" and ("u%d%s"):format(8 * field.width_bytes,
    field.width_bytes == 1 and "" or (field.endian == "little" and "le" or "be"))
    or field.kind == "record" and field.record.name
    or field.kind == "uuid" and "uuid" or ("%s[%d]"):format(field.kind, field.width_bytes)
  if not field.array then
    return name
  end
  return ("%s[%s]"):format(name, field.count > 0 and field.count or "")
end

function Layout:__tostring()
  local lines = { ("%s: %d bytes%s%s"):format(self.name, self.size_bytes,
    self.extensible and " or more" or "", self.doc and (", " .. self.doc) or "") }
  for _, f in ipairs(self.fields) do
    lines[#lines + 1] = ("  0x%03x  %-14s %-14s %s%s"):format(f.off_bytes, type_name(f), f.name,
      f.doc or "", f.unit and (" [%s]"):format(f.unit) or ""):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end

return M
