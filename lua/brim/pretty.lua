-- brim.pretty: shows any value to people: tables with sorted keys, cycles named, long ones cut, and
-- the unit beside what a key's ending says (_bytes, _ns, _s, _ppm, _u64). Called by the REPL and
-- reports.
local bytes = require "brim.bytes"

local M = {}

---@class brim.PrettyOpts
---@field depth? integer nesting that is still shown, default 4
---@field max_items? integer entries of one table that are shown, default 100
---@field max_string? integer bytes of a string that are shown, default 500
---@field indent? string

local UNITS_NS <const> = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" } }

---Format a duration in seconds for people: "12.4 ms", "3:25", "2:03:07".
---@param s number
---@return string
function M.duration(s)
  if s >= 60 then
    local whole = math.floor(s + 0.5)
    local h, m, sec = whole // 3600, whole // 60 % 60, whole % 60
    return h > 0 and ("%d:%02d:%02d"):format(h, m, sec) or ("%d:%02d"):format(m, sec)
  end
  for _, unit in ipairs(UNITS_NS) do
    if s * 1e9 >= unit[1] then
      return ("%.3g %s"):format(s * 1e9 / unit[1], unit[2])
    end
  end
  return ("%.3g ns"):format(s * 1e9)
end

---Format a count with thousands apart: "8,387,585".
---@param n integer
---@return string
function M.count(n)
  local sign, digits = tostring(n):match("^(-?)(%d+)$")
  if not digits then
    return tostring(n)
  end
  digits = digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return sign .. digits
end

---Format a rate or another large number with a decimal suffix: "1.25 M".
---@param n number
---@return string
function M.si(n)
  for _, unit in ipairs { { 1e9, " G" }, { 1e6, " M" }, { 1e3, " k" } } do
    if n >= unit[1] then
      return ("%.3g%s"):format(n / unit[1], unit[2])
    end
  end
  return ("%.3g"):format(n)
end

local function unit_of(key, v)
  if type(key) ~= "string" or type(v) ~= "number" then
    return
  elseif key:find("bytes$") and math.type(v) == "integer" and v >= 1024 then
    local text = bytes.format(v)
    return text:find("%a") and text or ("%.4g GiB"):format(v / (1 << 30))
  elseif key:find("_ns$") then
    return M.duration(v / 1e9)
  elseif key:find("_ppm$") then
    return ("%.4g %%"):format(v / 1e4)
  elseif key:find("_u64$") and math.type(v) == "integer" and v < 0 then
    return ("0x%x"):format(v)
  end
end

local function scalar(v, o)
  if type(v) == "string" then
    if #v > o.max_string then
      return ("%s... (%d bytes)"):format(scalar(v:sub(1, o.max_string), o), #v)
    end
    return (("%q"):format(v):gsub("\\\n", "\\n"))
  end
  return tostring(v)
end

local function order(a, b)
  local ta, tb = math.type(a) or type(a), math.type(b) or type(b)
  if ta == tb and (type(a) == "number" or type(a) == "string") then
    return a < b
  elseif type(a) == "number" and type(b) == "number" then
    return a < b
  elseif ta ~= tb then
    return ta < tb
  end
  return tostring(a) < tostring(b)
end

local function sorted_keys(t)
  local keys = {}
  for k in next, t do
    keys[#keys + 1] = k
  end
  table.sort(keys, order)
  return keys
end

local function show_key(k, o)
  if type(k) == "string" and k:find("^[%a_][%w_]*$") then
    return k
  end
  return ("[%s]"):format(scalar(k, o))
end

local show

-- The lines of a table's entries; a list's entries go without keys.
local function show_items(t, o, state, depth)
  local lines, keys, n = {}, sorted_keys(t), 0
  local is_list = #keys > 0 and #t == #keys
  for _, k in ipairs(keys) do
    n = n + 1
    if n > o.max_items then
      lines[n] = ("... %d more"):format(#keys - o.max_items)
      break
    end
    local unit = unit_of(k, t[k])
    local text = show(t[k], o, state, depth + 1)
    lines[n] = ("%s%s%s"):format(is_list and "" or show_key(k, o) .. " = ", text,
      unit and (" (%s)"):format(unit) or "")
  end
  return lines, is_list
end

local function join(lines, is_list, o, depth)
  local pad = o.indent:rep(depth + 1)
  local one_line = "{ " .. table.concat(lines, ", ") .. " }"
  if #one_line + #pad <= 76 and not one_line:find("\n", 1, true) and (is_list or #lines <= 4) then
    return one_line
  end
  return ("{\n%s%s\n%s}"):format(pad, table.concat(lines, ",\n" .. pad), o.indent:rep(depth))
end

function show(v, o, state, depth)
  local meta = getmetatable(v)
  if type(v) ~= "table" or (type(meta) == "table" and meta.__tostring) then
    return scalar(v, o)
  elseif state[v] then
    return "<cycle>"
  elseif next(v) == nil then
    return "{}"
  elseif depth >= o.depth then
    return "{...}"
  end
  state[v] = true
  local lines, is_list = show_items(v, o, state, depth)
  state[v] = nil
  return join(lines, is_list, o, depth)
end

---Format any value for people. Values that can print themselves do.
---@param v any
---@param o? brim.PrettyOpts
---@return string
function M.format(v, o)
  o = o or {}
  return show(v, {
    depth = o.depth or 4,
    max_items = o.max_items or 100,
    max_string = o.max_string or 500,
    indent = o.indent or "  ",
  }, {}, 0)
end

return M
