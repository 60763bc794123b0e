-- brim.symbol: the symbolic index that a layout script is traced with. It stands for every group
-- (or other instance) at once, so only values of the form base + step * index can be made of it.
-- Anything else keeps its reason and raises where a field takes it, so that the message can name
-- the field.
local core = require "brim.core"
local where = require "brim.where"

local M = {}

---@class brim.Index
---@field base integer
---@field step integer
---@field why? string what made it useless: not affine, or past 64 bits
local mt = { __name = "brim.index" }

local function new(base, step, why)
  return setmetatable({ base = base, step = step, why = why }, mt)
end

---Make the index itself: 0 + 1 * index.
---@return brim.Index
function M.new()
  return new(0, 1)
end

---Is it an index, or a value made of one?
---@param v any
---@return boolean
function M.is(v)
  return getmetatable(v) == mt
end

local function here()
  return where.script() or "?"
end

-- `a` and `b` are the operands: one that is useless already keeps the reason it had.
local function spoiled(what, a, b)
  local why = M.is(a) and a.why or M.is(b) and b.why
  return new(0, 0, why or ("%s is not affine in the index (%s)"):format(what, here()))
end

local function name(v)
  return M.is(v) and "index" or tostring(v)
end

-- The parts of an operand, or the reason why there are none.
local function parts(v)
  if M.is(v) then
    return v.base, v.step, v.why
  end
  local n = math.type(v) == "integer" and v or nil
  if not n then
    return nil, nil, ("%s is no integer (%s)"):format(tostring(v), here())
  end
  return n, 0
end

-- Applies a checked operation to both parts.
local function combine(a, b, op)
  local ab, as, awhy = parts(a)
  local bb, bs, bwhy = parts(b)
  if awhy or bwhy then
    return new(0, 0, awhy or bwhy)
  end
  local base, step = op(ab, bb), op(as, bs)
  if not base or not step then
    return new(0, 0, ("the value passes 64 bits (%s)"):format(here()))
  end
  return new(base, step)
end

function mt.__add(a, b)
  return combine(a, b, core.add)
end

function mt.__mul(a, b)
  local ab, as, awhy = parts(a)
  local bb, bs, bwhy = parts(b)
  if awhy or bwhy then
    return new(0, 0, awhy or bwhy)
  elseif as ~= 0 and bs ~= 0 then
    return spoiled "index * index"
  end
  local factor = as == 0 and ab or bb
  return combine(as == 0 and b or a, 0, function(part)
    return core.mul(part, factor)
  end)
end

function mt.__unm(a)
  return a * -1
end

-- a - b; nil on overflow. -mininteger is one past the largest, so it takes a way of its own.
local function subtract(a, b)
  if b == math.mininteger then
    return a < 0 and a - b or nil
  end
  return core.add(a, -b)
end

function mt.__sub(a, b)
  return combine(a, b, subtract)
end

function mt.__shl(a, b)
  if M.is(b) or math.type(b) ~= "integer" or b < 0 or b > 62 then
    return spoiled(("%s << %s"):format(name(a), name(b)), a, b)
  end
  return a * (1 << b)
end

for event, sign in pairs { idiv = "//", div = "/", mod = "%", pow = "^", band = "&", bor = "|",
  bxor = "~", shr = ">>" } do
  mt["__" .. event] = function(a, b)
    return spoiled(("%s %s %s"):format(name(a), sign, name(b)), a, b)
  end
end

function mt.__bnot(a)
  return spoiled("~index", a)
end

-- These have to answer now, and for every instance at once they cannot.
for _, event in ipairs { "lt", "le", "len", "concat", "call" } do
  mt["__" .. event] = function()
    where.raise("the index stands for every instance at once while a layout is traced, so it "
      .. "cannot be compared, printed into text or called; lay irregular groups over the range "
      .. "instead")
  end
end

function mt.__tostring(v)
  return v.why and ("(useless: %s)"):format(v.why) or ("%d + %d * index"):format(v.base, v.step)
end

return M
