-- The symbolic index: arithmetic against plain integers, and the reasons of what it cannot do.
local symbol = require "brim.symbol"
require "spec.helper"

local SEED <const> = 20250901
local MAX <const>, MIN <const> = math.maxinteger, math.mininteger

-- The value for instance i, in integers that may not wrap; nil where it passes 64 bits.
local function value_at(v, i)
  if math.type(v) == "integer" then
    return v
  end
  return v.base + v.step * i
end

local function assert_affine(base, step, v)
  assert.is_nil(v.why)
  assert.int(v.base, base)
  assert.int(v.step, step)
end

local function assert_useless(pattern, v)
  assert.is_true(symbol.is(v))
  assert.is_string(v.why)
  assert.matches(pattern, v.why)
end

describe("brim.symbol", function()
  local i

  before_each(function()
    i = symbol.new()
  end)

  it("is 0 + 1 * index, and told from everything else", function()
    assert_affine(0, 1, i)
    assert.is_true(symbol.is(i))
    for _, v in ipairs { 1, "1", 1.5, {}, true, print } do
      assert.is_false(symbol.is(v))
    end
    assert.is_false(symbol.is(nil))
    assert.equal("0 + 1 * index", tostring(i))
    assert.equal("-5 + 3 * index", tostring(i * 3 - 5))
  end)

  it("takes affine arithmetic, operands in either order", function()
    assert_affine(5, 1, i + 5)
    assert_affine(5, 1, 5 + i)
    assert_affine(-5, 1, i - 5)
    assert_affine(5, -1, 5 - i)
    assert_affine(0, 7, i * 7)
    assert_affine(0, 7, 7 * i)
    assert_affine(0, -1, -i)
    assert_affine(0, 1 << 62, i << 62)
    assert_affine(12, 4, (i + 3) << 2)
    assert_affine(0, 2, i + i)
    assert_affine(0, 0, i - i)
    assert_affine(8, 262144, i * 32768 * 8 + 8)
    assert_affine(0, 0, i * 0)
    assert_affine(0, 0, 0 * i)
    assert_affine(10, 5, (i - i + 5) * (i + 2))
    assert_affine(10, 5, (i + 2) * (i - i + 5))
  end)

  it("does not change its operands", function()
    local j = i + 1
    local made = { j * 5, j - 2, -j, j << 3, j // 2 }
    assert.int(#made, 5)
    assert_affine(0, 1, i)
    assert_affine(1, 1, j)
  end)

  it("reaches the edges of 64 bits and no further", function()
    assert_affine(MAX, 1, i + MAX)
    assert_affine(MIN, 1, i + MIN)
    assert_affine(MIN, 1, i - MAX - 1)
    assert_affine(0, MAX, i * MAX)
    assert_affine(0, MIN, i * MIN)
    assert_affine(MAX, 1, (i - 1) - MIN)
    assert_affine(MAX, -1, MAX - i)
    assert_affine(MIN, -1, MIN - i)
    for name, v in pairs {
      ["+"] = (i + MAX) + 1, ["-"] = (i + MIN) - 1, ["*"] = (i + 2) * MAX, ["i*"] = i * MAX * 2,
      ["unm"] = -(i + MIN), ["<<"] = (i + 2) << 62, ["- min"] = i - MIN,
      ["0 - min"] = 0 - (i + MIN), ["i+i"] = i * MAX + i, ["step"] = -(i * MIN),
    } do
      assert.is_string(v.why, name)
      assert.matches("passes 64 bits %(.*symbol_spec.lua:%d+%)", v.why, nil, name)
    end
  end)

  it("keeps the reason and the line of what is not affine", function()
    local here = debug.getinfo(1, "l").currentline + 1
    local v = i * i
    assert_useless("^index %* index is not affine in the index %(.*symbol_spec.lua:" .. here
      .. "%)$", v)
    assert_useless("index // 8 is not affine", i // 8)
    assert_useless("8 // index is not affine", 8 // i)
    assert_useless("index / 2", i / 2)
    assert_useless("index %% 4", i % 4)
    assert_useless("index ^ 2", i ^ 2)
    assert_useless("index & 255", i & 0xff)
    assert_useless("1 | index", 1 | i)
    assert_useless("index ~ 1", i ~ 1)
    assert_useless("index >> 1", i >> 1)
    assert_useless("~index", ~i)
    assert_useless("1 << index", 1 << i)
    assert_useless("index << %-1", i << -1)
    assert_useless("index << 63", i << 63)
    assert_useless("index << index", i << i)
    assert.equal("(useless: " .. v.why .. ")", tostring(v))
  end)

  it("names the operand that is no integer", function()
    for _, bad in ipairs { 2.5, "7", 2.0, true } do
      local pattern = tostring(bad):gsub("%.", "%%.") .. " is no integer"
      assert_useless(pattern, i + bad)
      assert_useless(pattern, bad + i)
      assert_useless(pattern, i - bad)
      assert_useless(pattern, bad - i)
      assert_useless(pattern, i * bad)
      assert_useless(pattern, bad * i)
    end
    assert_useless("is no integer", i + {})
  end)

  it("keeps the first reason through whatever follows", function()
    local bad = i // 3
    for _, v in ipairs { bad + 1, 1 + bad, bad - 1, 1 - bad, bad * 2, 2 * bad, -bad, bad << 1,
      bad + i, i + bad, bad - i, i - bad, bad * i, i * bad, bad * bad, bad // 2, 2 // bad, bad % 5,
      ~bad, i & bad, bad * 0, 0 * bad } do
      assert.equal(bad.why, v.why)
    end
  end)

  it("cannot be compared, measured, joined or called, and says so at the script's line", function()
    for name, f in pairs {
      ["<"] = function() return i < 5 end, [">"] = function() return i > 5 end,
      ["<="] = function() return 5 <= i end, ["#"] = function() return #i end,
      [".."] = function() return "group " .. i end, ["()"] = function() return i(1) end,
    } do
      local ok, why = pcall(f)
      assert.is_false(ok, name)
      assert.matches("symbol_spec.lua:%d+: the index stands for every instance at once", why, nil,
        name)
    end
  end)

  -- Random expressions, evaluated with the symbol and with integers side by side.
  it("agrees with integers on random expressions", function()
    math.randomseed(SEED)
    local instances = { 0, 1, 2, 1000, 8387584 }

    local function leaf()
      local kind = math.random(4)
      if kind <= 2 then
        return i, instances
      end
      local n = kind == 3 and math.random(-9, 9) or math.random(-(1 << 24), 1 << 24)
      return n, { n, n, n, n, n }
    end

    local operations = {
      function(a, b) return a + b end, function(a, b) return a - b end,
      function(a, b) return a * b end, function(a) return -a end,
      function(a) return a << 5 end,
    }

    local function expression(depth)
      if depth == 0 then
        return leaf()
      end
      local a, as = expression(math.random(0, depth - 1))
      local b, bs = expression(math.random(0, depth - 1))
      local op = operations[math.random(#operations)]
      local values = {}
      for k = 1, #instances do
        values[k] = op(as[k], bs[k])
      end
      return op(a, b), values
    end

    local affine = 0
    for case = 1, 2000 do
      local v, values = expression(math.random(4))
      if not (symbol.is(v) and v.why) then
        affine = affine + 1
        for k, n in ipairs(instances) do
          assert.int(value_at(v, n), values[k], ("seed %d case %d"):format(SEED, case))
        end
      end
    end
    assert.is_true(affine > 1000)
  end)
end)
