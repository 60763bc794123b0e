-- brim.json: JSON over dkjson: integers exact to 64 bits, keys sorted, so that equal values give
-- equal text. Called by the command line (--json) and by scripts that keep records.
local dkjson = require "dkjson"

local M = {}

-- Every key that occurs in a value, sorted: the order in which dkjson writes them.
local function key_order(value)
  local seen, keys, open = {}, {}, {}
  local function collect(t)
    if type(t) ~= "table" then
      return
    elseif open[t] then
      error("brim.json.encode: a table that contains itself has no JSON", 0)
    end
    open[t] = true
    for k, v in pairs(t) do
      if type(k) == "string" and not seen[k] then
        seen[k] = true
        keys[#keys + 1] = k
      end
      collect(v)
    end
    open[t] = nil
  end
  collect(value)
  table.sort(keys)
  return keys
end

-- What JSON has no word for becomes its text: handles, functions.
local function exception(_, value)
  return dkjson.quotestring(tostring(value))
end

---Encode a value as JSON text. Numbers that JSON lacks (nan, inf) become null. Raises for a table
---that contains itself.
---@param value any
---@param o? { indent?: boolean } indent: one entry per line
---@return string
function M.encode(value, o)
  return (dkjson.encode(value, {
    indent = o and o.indent or false,
    keyorder = key_order(value),
    exception = exception,
  }))
end

---Decode JSON text; null becomes nil.
---@param text string
---@return any value
---@return string? why where and why it is no JSON
function M.decode(text)
  local value, pos, why = dkjson.decode(text, 1, nil, nil)
  if why then
    return nil, why
  end
  local rest = text:find("%S", pos)
  if rest then
    return nil, ("something follows the value at byte %d"):format(rest)
  end
  return value
end

---Make an empty table encode as {} instead of [].
---@param t? table
---@return table
function M.object(t)
  return setmetatable(t or {}, { __jsontype = "object" })
end

return M
