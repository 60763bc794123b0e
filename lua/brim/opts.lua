-- brim.opts: option tables. One schema, a table of data, is shared by checking, the
-- command line, help and documentation. Called by every public function that takes options. Two
-- forms: { name = { type = ... } }, and the list form { { "--name", type = ... }, ... }, whose
-- order is the order of help and where a name without dashes is a positional argument.
local bytes = require "brim.bytes"

local M = {}

---@class brim.OptSpec
---@field type "bytes"|"int"|"number"|"bool"|"string"|"path"|"enum"|"table"|"function"|"any"
---@field default? any
---@field required? boolean
---@field min? number
---@field max? number
---@field values? string[] of an enum
---@field check? fun(v: any): boolean?, string? a further test; nil and the reason when it fails
---@field schema? table of a nested option table
---@field many? boolean of a recipe's last argument: any number of words, as a table
---@field doc? string

local function quote(v)
  if type(v) == "string" then
    return ("'%s'"):format(#v > 60 and v:sub(1, 57) .. "..." or v)
  elseif type(v) == "number" or type(v) == "boolean" or v == nil then
    return tostring(v)
  end
  return "a " .. type(v)
end

-- Edits from one word to the other; two neighbours exchanged are one edit.
local function distance(a, b)
  local d = { [0] = {} }
  for j = 0, #b do
    d[0][j] = j
  end
  for i = 1, #a do
    d[i] = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      d[i][j] = math.min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        d[i][j] = math.min(d[i][j], d[i - 2][j - 2] + 1)
      end
    end
  end
  return d[#a][#b]
end

---Find the known word that a mistyped one is nearest to, if any is near.
---@param word string
---@param known string[]
---@return string? nearest
function M.nearest(word, known)
  local best, best_distance
  for _, k in ipairs(known) do
    local d = distance(word:lower(), k:lower())
    -- A prefix counts as one slip, however much was left out.
    if #word >= 3 and k:sub(1, #word) == word then
      d = math.min(d, 1)
    end
    if not best_distance or d < best_distance then
      best, best_distance = k, d
    end
  end
  if best and best_distance <= math.max(1, math.min(#word, #best) // 3) then
    return best
  end
end

---Say "did you mean" for a mistyped word; the empty string where nothing is near.
---@param word string
---@param known string[]
---@return string
function M.suggest(word, known)
  local near = M.nearest(word, known)
  return near and ("; did you mean '%s'?"):format(near) or ""
end

-- Each takes a value and its spec: the value to use, or nil and what was wrong.
local types = {}

function types.bytes(v)
  return bytes.check(v)
end

function types.int(v)
  if math.type(v) == "integer" then
    return v
  end
  local i = math.type(v) == "float" and math.abs(v) <= 2 ^ 53 and math.tointeger(v)
  return i or nil, ("expected an integer, got %s"):format(quote(v))
end

function types.number(v)
  if type(v) == "number" and v == v and math.abs(v) ~= math.huge then
    return v
  end
  return nil, ("expected a number, got %s"):format(quote(v))
end

function types.string(v)
  if type(v) == "string" then
    return v
  end
  return nil, ("expected a string, got %s"):format(quote(v))
end

function types.path(v)
  if type(v) == "string" and v ~= "" and not v:find("\0", 1, true) then
    return v
  end
  return nil, ("expected a path, got %s"):format(v == "" and "an empty string" or quote(v))
end

function types.enum(v, spec)
  for _, known in ipairs(spec.values) do
    if v == known then
      return v
    end
  end
  return nil, ("%s is none of %s%s"):format(quote(v), table.concat(spec.values, ", "),
    type(v) == "string" and M.suggest(v, spec.values) or "")
end

function types.any(v)
  return v
end

for _, name in ipairs { "bool", "table", "function" } do
  local lua_type <const> = name == "bool" and "boolean" or name
  types[name] = function(v)
    if type(v) == lua_type then
      return v
    end
    return nil, ("expected a %s, got %s"):format(lua_type, quote(v))
  end
end

local function show_number(n, spec)
  return spec.type == "bytes" and bytes.format(n) or tostring(n)
end

local function in_range(v, spec)
  if spec.min and v < spec.min then
    return nil, ("%s is too small, the least is %s"):format(show_number(v, spec),
      show_number(spec.min, spec))
  elseif spec.max and v > spec.max then
    return nil, ("%s is too large, the most is %s"):format(show_number(v, spec),
      show_number(spec.max, spec))
  end
  return true
end

-- The value to use, or nil and what was wrong with it.
local function convert(v, spec)
  local out, why = types[spec.type](v, spec)
  if out == nil then
    return nil, why
  end
  if type(out) == "number" then
    local ok, range = in_range(out, spec)
    if not ok then
      return nil, range
    end
  end
  if spec.check then
    local ok, reason = spec.check(out)
    if not ok then
      return nil, reason or ("%s is not accepted"):format(quote(v))
    end
  end
  return out
end

-- From the words of a command line to Lua values, by type; others stay strings.
local from_text = {
  int = function(s)
    local n = s:match("^[+-]?%d+$") and math.tointeger(tonumber(s))
    return n or s
  end,
  number = function(s)
    return s:match("^[+-]?[%d.]+[eE]?[+-]?%d*$") and tonumber(s) or s
  end,
  bool = function(s)
    local known = { ["1"] = true, yes = true, ["true"] = true,
      ["0"] = false, no = false, ["false"] = false }
    if known[s] == nil then
      return s
    end
    return known[s]
  end,
}

local normalized = setmetatable({}, { __mode = "k" })

local function normalize_entry(name, spec)
  assert(types[spec.type], ("option %s: unknown type %s"):format(name, tostring(spec.type)))
  local flag = name:match("^%-%-.+") and name or nil
  return { name = (flag and name:sub(3) or name):gsub("%-", "_"), flag = flag, spec = spec }
end

---Bring a schema of either form into a list of { name, flag, spec, positional }, in help order,
---which also maps names to entries.
---@param schema table
---@return table entries
function M.entries(schema)
  local list = normalized[schema]
  if list then
    return list
  end
  list = {}
  for i, spec in ipairs(schema) do
    list[i] = normalize_entry(spec[1], spec)
    list[i].positional = not list[i].flag
  end
  if #list == 0 then
    for name, spec in pairs(schema) do
      list[#list + 1] = normalize_entry(name, spec)
    end
    table.sort(list, function(a, b) return a.name < b.name end)
  end
  for i = 1, #list do
    list[list[i].name] = list[i]
  end
  normalized[schema] = list
  return list
end

local function names(list)
  local out = {}
  for i, e in ipairs(list) do
    out[i] = e.name
  end
  return out
end

local function check_unknown(o, list)
  for k in pairs(o) do
    if type(k) ~= "string" then
      return nil, ("unexpected value at [%s]; options have names"):format(tostring(k))
    elseif not list[k] then
      return nil, ("unknown option '%s'%s"):format(k, M.suggest(k, names(list)))
    end
  end
  return true
end

local function label(entry, as_text)
  if not as_text then
    return ("option '%s'"):format(entry.name)
  end
  return entry.flag and ("option '%s'"):format(entry.flag) or ("argument '%s'"):format(entry.name)
end

local function missing(entry, as_text)
  local doc = entry.spec.doc
  return ("missing %s%s"):format(label(entry, as_text), doc and (" (%s)"):format(doc) or "")
end

-- The value of one option, or nil and the whole reason; nil alone where it is absent.
local function value_of(o, entry, as_text)
  local spec, v = entry.spec, o[entry.name]
  if v == nil then
    v = spec.default
  end
  if v == nil then
    return nil, spec.required and missing(entry, as_text) or nil
  elseif as_text and type(v) == "string" and from_text[spec.type] then
    v = from_text[spec.type](v)
  end
  local out, why = convert(v, spec)
  if out ~= nil and spec.schema then
    out, why = M.try(out, spec.schema, as_text)
  end
  if out == nil then
    return nil, ("%s: %s"):format(label(entry, as_text), why)
  end
  return out
end

---Check options without raising: the checked copy with defaults, or nil and the reason.
---@param o? table
---@param schema table
---@param as_text? boolean values are words of a command line; names are shown as flags
---@return table? checked
---@return string? why
function M.try(o, schema, as_text)
  if o == nil then
    o = {}
  elseif type(o) ~= "table" then
    return nil, ("expected a table of options, got %s"):format(quote(o))
  end
  local list = M.entries(schema)
  local ok, why = check_unknown(o, list)
  if not ok then
    return nil, why
  end
  local out = {}
  for _, entry in ipairs(list) do
    local v, reason = value_of(o, entry, as_text)
    if reason then
      return nil, reason
    end
    out[entry.name] = v
  end
  return out
end

---Check an option table against its schema and return a copy with the defaults filled in. Raises
---for a wrong one, blaming the line that called the function which calls this.
---@param o? table
---@param schema table
---@param who string the public function, as "brim.fill"
---@param level? integer further levels between the caller and the one to blame; default 0
---@return table checked
function M.check(o, schema, who, level)
  local out, why = M.try(o, schema)
  if not out then
    error(("%s: %s"):format(who, why), 3 + (level or 0))
  end
  return out
end

return M
