local opts = require "brim.opts"
require "spec.helper"

local SCHEMA = {
  size_bytes = { type = "bytes", required = true, doc = "device size, like 8191p" },
  queue_depth = { type = "int", default = 64, min = 1, max = 4096 },
  mode = { type = "enum", values = { "write", "verify" } },
  ratio = { type = "number" },
  force = { type = "bool" },
  name = { type = "string" },
  target = { type = "path" },
  progress = { type = "function" },
  nested = { type = "table", schema = { depth = { type = "int", default = 3 } } },
}

-- What a public function looks like; the line that calls it is the one to be blamed.
local function fill(o)
  o = opts.check(o, SCHEMA, "brim.fill")
  return o
end

local function why(o)
  local ok, message = pcall(fill, o)
  assert.is_false(ok)
  return (message:gsub("^[^:]+:%d+: ", ""))
end

local function with(key, value)
  return { size_bytes = 1, [key] = value }
end

describe("opts.check", function()
  it("copies and fills in defaults", function()
    local given = { size_bytes = "8191p" }
    local o = fill(given)
    assert.int(o.size_bytes, 8191 << 50)
    assert.int(o.queue_depth, 64)
    assert.same({ size_bytes = "8191p" }, given)
  end)

  it("blames the line that called the public function", function()
    local here = debug.getinfo(1, "l").currentline + 1
    local ok, message = pcall(function() fill { size_bytes = true } end)
    assert.is_false(ok)
    assert.matches(":" .. here .. ": brim.fill: ", message, 1, true)
  end)

  it("names the nearest known option", function()
    assert.equal("brim.fill: unknown option 'sise_bytes'; did you mean 'size_bytes'?",
      why { sise_bytes = 1 })
    assert.equal("brim.fill: unknown option 'zzz'", why { zzz = 1 })
  end)

  it("says what is missing, with its meaning", function()
    assert.equal("brim.fill: missing option 'size_bytes' (device size, like 8191p)", why {})
    assert.equal("brim.fill: missing option 'size_bytes' (device size, like 8191p)", why(nil))
  end)

  it("refuses what is no table of named options", function()
    assert.equal("brim.fill: expected a table of options, got 7", why(7))
    assert.equal("brim.fill: unexpected value at [1]; options have names", why { 5 })
  end)

  it("checks types", function()
    local cases = {
      { "queue_depth", "abc", "expected an integer, got 'abc'" },
      { "queue_depth", "10", "expected an integer, got '10'" },
      { "queue_depth", 1.5, "expected an integer, got 1.5" },
      { "queue_depth", 2 ^ 60, "expected an integer, got 1.1529215046068e+18" },
      { "ratio", "1", "expected a number, got '1'" },
      { "ratio", 0 / 0, "expected a number, got " .. tostring(0 / 0) },
      { "force", 1, "expected a boolean, got 1" },
      { "name", 1, "expected a string, got 1" },
      { "target", "", "expected a path, got an empty string" },
      { "target", "a\0b", "expected a path, got 'a\0b'" },
      { "progress", {}, "expected a function, got a table" },
      { "nested", 1, "expected a table, got 1" },
      { "mode", "wirte", "'wirte' is none of write, verify; did you mean 'write'?" },
      { "mode", "writ", "'writ' is none of write, verify; did you mean 'write'?" },
    }
    for _, c in ipairs(cases) do
      assert.equal(("brim.fill: option '%s': %s"):format(c[1], c[3]), why(with(c[1], c[2])))
    end
  end)

  it("accepts integral floats as integers", function()
    assert.int(fill(with("queue_depth", 8.0)).queue_depth, 8)
    assert.int(fill(with("size_bytes", 2.0 ^ 53)).size_bytes, 1 << 53)
  end)

  it("checks ranges", function()
    assert.equal("brim.fill: option 'queue_depth': 0 is too small, the least is 1",
      why(with("queue_depth", 0)))
    assert.equal("brim.fill: option 'queue_depth': 4097 is too large, the most is 4096",
      why(with("queue_depth", 4097)))
    assert.int(fill(with("queue_depth", 4096)).queue_depth, 4096)
  end)

  it("checks nested tables", function()
    assert.same({ depth = 3 }, fill(with("nested", {})).nested)
    assert.equal("brim.fill: option 'nested': unknown option 'dpth'; did you mean 'depth'?",
      why(with("nested", { dpth = 1 })))
  end)

  it("keeps false apart from absent", function()
    assert.is_false(fill(with("force", false)).force)
    assert.is_nil(fill({ size_bytes = 1 }).force)
  end)

  it("asks a check of the schema's own", function()
    local schema = { n = { type = "int", check = function(v) return v % 2 == 0, "odd" end } }
    assert.same({ n = 4 }, opts.try({ n = 4 }, schema))
    local _, reason = opts.try({ n = 3 }, schema)
    assert.equal("option 'n': odd", reason)
  end)
end)

describe("sizes as options", function()
  local boundary = { 0, 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
    math.maxinteger - 4096, math.maxinteger }

  it("take every integer from 0 to 2^63-1, as a number and as text", function()
    for _, n in ipairs(boundary) do
      assert.int(fill({ size_bytes = n }).size_bytes, n)
      assert.int(fill({ size_bytes = ("%d"):format(n) }).size_bytes, n)
    end
  end)

  it("refuse what is one past, negative, inexact or no size", function()
    for _, v in ipairs { "9223372036854775808", "8e", math.maxinteger + 1, -1, 2.0 ^ 54, 0.5, 1 / 0,
      0 / 0, "1PB", "1e3", "", " 1", "-1", "1.5g", true, {} } do
      assert.matches("^brim.fill: option 'size_bytes': ", why { size_bytes = v })
    end
  end)
end)

describe("opts.try on the words of a command line", function()
  local LIST = {
    { "path", type = "path", required = true, doc = "mount point" },
    { "--leave-bytes", type = "bytes", default = "64m" },
    { "--queue-depth", type = "int" },
    { "--force", type = "bool" },
    { "--ratio", type = "number" },
  }

  it("converts words by type", function()
    local o = assert(opts.try({ path = "/mnt", leave_bytes = "1g", queue_depth = "7", force = "no",
      ratio = "0.5" }, LIST, true))
    assert.int(o.leave_bytes, 1 << 30)
    assert.int(o.queue_depth, 7)
    assert.is_false(o.force)
    assert.equal(0.5, o.ratio)
  end)

  it("refuses words that are no numbers", function()
    for _, word in ipairs { "7x", "0x7", "7.0", "9223372036854775808", "", " 7" } do
      local _, reason = opts.try({ path = "/", queue_depth = word }, LIST, true)
      assert.equal(("option '--queue-depth': expected an integer, got '%s'"):format(word), reason)
    end
  end)

  it("shows names as they are typed", function()
    local _, reason = opts.try({}, LIST, true)
    assert.equal("missing argument 'path' (mount point)", reason)
  end)

  it("gives the default of a size as a number", function()
    assert.int(opts.try({ path = "/" }, LIST).leave_bytes, 64 << 20)
  end)
end)

describe("opts.nearest", function()
  it("finds slips, not strangers", function()
    local known = { "mkfs.xfs", "xfs-8eb", "list" }
    assert.equal("mkfs.xfs", opts.nearest("mkfs.xsf", known))
    assert.equal("mkfs.xfs", opts.nearest("mkfs", known))
    assert.equal("list", opts.nearest("LIST", known))
    assert.is_nil(opts.nearest("frobnicate", known))
    assert.is_nil(opts.nearest("", known))
  end)
end)
