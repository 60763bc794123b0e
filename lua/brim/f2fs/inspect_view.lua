-- brim.f2fs.inspect_view: a structure as inspect shows it: fields with their units and meanings,
-- lines that are derived, what is wrong. Called by inspect. Opens nothing, reads nothing.
local M = {}

---@class brim.f2fs.View
---@field what string
---@field title string
---@field fields table<string, any> values by name
---@field layout? brim.Layout
---@field off_bytes? integer
---@field bytes? string
---@field lines table[] { name, text, doc } before the fields
---@field faults string[]
---@field text? string instead of fields
local View = { __name = "brim.f2fs.view" }
View.__index = View

---Make a view.
---@param o table what, title, fields, layout, off_bytes, bytes, text
---@return brim.f2fs.View
function M.new(o)
  o.lines, o.faults, o.fields = {}, {}, o.fields or {}
  return setmetatable(o, View)
end

---Add a line before the fields.
---@param name string
---@param value any
---@param doc? string
function View:line(name, value, doc)
  self.lines[#self.lines + 1] = { name, tostring(value), doc or "" }
end

---Note something that is wrong.
---@param fmt string
---@param ... any
function View:fault(fmt, ...)
  self.faults[#self.faults + 1] = fmt:format(...)
end

local HEX <const> = { magic = true, feature = true, ckpt_flags = true, crc = true, i_mode = true,
  i_flags = true, i_inline = true, check_sum = true, i_advise = true, hash_code = true }

local function show_int(name, v)
  return HEX[name] and ("0x%x"):format(v) or v < 0 and ("0x%x"):format(v) or ("%d"):format(v)
end

-- A list as runs: "1, 2, 0 x 6".
local function show_list(name, list)
  local parts, i = {}, 1
  while i <= #list and #parts < 16 do
    local n = 1
    while list[i + n] == list[i] do
      n = n + 1
    end
    parts[#parts + 1] = show_int(name, list[i]) .. (n > 1 and (" x %d"):format(n) or "")
    i = i + n
  end
  return table.concat(parts, ", ") .. (i <= #list and ", ..." or "")
end

local function show_bytes(v)
  local trimmed = v:gsub("\0+$", "")
  if trimmed:find "^[%g ]*$" then
    return ('"%s"'):format(trimmed)
  end
  local hex = v:sub(1, 16):gsub(".", function(c) return ("%02x"):format(c:byte()) end)
  return hex .. (#v > 16 and "..." or "")
end

local function show(field, v)
  if math.type(v) == "integer" then
    return show_int(field.name, v) .. (field.unit and not field.unit:find "^block$"
      and " " .. field.unit or "")
  elseif field.kind == "bytes" or field.kind == "char" then
    return show_bytes(v)
  elseif type(v) == "table" and math.type(v[1]) == "integer" then
    return show_list(field.name, v)
  end
  return tostring(v)
end

local function field_lines(lines, layout, fields, indent)
  for _, field in ipairs(layout.fields) do
    local v = fields[field.name]
    if v == nil or field.name:find "^pad" or field.name == "reserved" then
      goto continue
    elseif field.record and not field.array then
      lines[#lines + 1] = { indent .. field.name, "", field.record.doc or "" }
      field_lines(lines, field.record, v, indent .. "  ")
    elseif not field.record then
      local doc = field.doc or ""
      if field.unit == "block" then
        doc = (doc .. " [block]"):gsub("^ ", "")
      end
      lines[#lines + 1] = { indent .. field.name, show(field, v), doc }
    end
    ::continue::
  end
end

function View:__tostring()
  local text = { self.title }
  if self.off_bytes then
    text[1] = ("%s, %d bytes at %d (0x%x)"):format(self.title, #self.bytes, self.off_bytes,
      self.off_bytes)
  end
  local lines = table.move(self.lines, 1, #self.lines, 1, {})
  if self.layout then
    field_lines(lines, self.layout, self.fields, "")
  end
  local width, wide = 8, 8
  for _, line in ipairs(lines) do
    width = math.max(width, #line[1])
    wide = math.max(wide, math.min(#line[2], 44))
  end
  for _, line in ipairs(lines) do
    text[#text + 1] = (("  %%-%ds  %%-%ds  %%s"):format(width, wide):format(table.unpack(line))
      :gsub("%s+$", ""))
  end
  if self.text then
    text[#text + 1] = self.text
  end
  for _, fault in ipairs(self.faults) do
    text[#text + 1] = "  wrong: " .. fault
  end
  return table.concat(text, "\n")
end

-- Bytes as JSON can hold them.
local function plain(v)
  if type(v) == "table" then
    local copy = {}
    for k, each in pairs(v) do
      copy[k] = plain(each)
    end
    return copy
  elseif type(v) == "string" and v:find "[^%g ]" then
    return (v:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
  end
  return v
end

---The view as data for JSON.
---@return table
function View:json()
  return { what = self.what, title = self.title, off_bytes = self.off_bytes,
    size_bytes = self.bytes and #self.bytes, fields = plain(self.fields), faults = self.faults,
    intact = #self.faults == 0 }
end

return M
