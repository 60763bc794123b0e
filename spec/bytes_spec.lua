local bytes = require "brim.bytes"
require "spec.helper"

local BOUNDARY <const> = { 0, 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
  math.maxinteger - 4096, math.maxinteger }

describe("brim.bytes", function()
  it("reads back what it writes", function()
    for _, n in ipairs(BOUNDARY) do
      assert.int(bytes.parse(bytes.format(n)), n)
      assert.int(bytes.parse(("%d"):format(n)), n)
      assert.int(bytes.check(n), n)
    end
  end)

  it("reads suffixes in either case, with or without iB, as powers of 1024", function()
    for i, suffix in ipairs { "k", "m", "g", "t", "p", "e" } do
      for _, text in ipairs { suffix, suffix:upper(), suffix .. "iB", suffix:upper() .. "iB" } do
        assert.int(bytes.parse("7" .. text), 7 << 10 * i)
      end
    end
    assert.equal("8191 PiB", bytes.format(8191 << 50))
    assert.equal("4097", bytes.format(4097))
  end)

  it("says for people what a size is about", function()
    local cases = { [0] = "0", [512] = "512", [28 << 10] = "28 KiB", [2038 << 20] = "2038 MiB",
      [1073741820 << 10] = "1024.0 GiB", [201302073 << 10] = "192.0 GiB",
      [8191 << 50] = "8191 PiB", [1234567890] = "1.1 GiB", [9999] = "9999",
      [10241] = "10.0 KiB", [99653644] = "95.0 MiB", [math.maxinteger] = "8.0 EiB" }
    for n, text in pairs(cases) do
      assert.equal(text, bytes.about(n))
    end
  end)

  it("refuses everything else with its reason", function()
    local cases = { "", "k", "1PB", "1.5g", "1e3", "-1", "+1", " 1", "1 ", "1x", "0x10", "8e",
      "9223372036854775808", "8192p", "1kk", "1\0", -1, math.mininteger, 0.5, 2.0 ^ 53 + 2, 1 / 0,
      -1 / 0, 0 / 0, true, {}, print }
    for _, v in ipairs(cases) do
      local n, why = bytes.check(v)
      assert.is_nil(n)
      assert.is_true(#why > 10)
      assert.is_nil(why:find("\n", 1, true))
    end
    assert.int(bytes.check(2.0 ^ 53), 1 << 53)
  end)

  it("says what would be right", function()
    local function why(v)
      return select(2, bytes.check(v))
    end
    assert.matches("2^63", why("8e"), 1, true)
    assert.matches("8191p", why("8e"), 1, true)
    assert.matches("PiB", why("1PB"), 1, true)
    assert.matches("inexact", why(2.0 ^ 60))
    assert.matches("//", why(0.5), 1, true)
  end)

  it("blames the caller of parse", function()
    local here = debug.getinfo(1, "l").currentline + 1
    local ok, why = pcall(function() local _ = bytes.parse("1PB") end)
    assert.is_false(ok)
    assert.matches(("bytes_spec.lua:%d: brim.bytes.parse: "):format(here), why, 1, true)
  end)

  it("does checked arithmetic", function()
    assert.int(bytes.add(math.maxinteger - 1, 1), math.maxinteger)
    assert.is_nil(bytes.add(math.maxinteger, 1))
    assert.int(bytes.mul(1 << 31, 1 << 31), 1 << 62)
    assert.is_nil(bytes.mul(1 << 32, 1 << 31))
  end)
end)

describe("the sizes of brim.core", function()
  local core = require "brim.core"

  it("are integers", function()
    assert.int(core.MAX_BYTES, math.maxinteger)
    for i, unit in ipairs { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" } do
      assert.int(core[unit], 1 << 10 * i)
    end
    assert.int(core.mul(8191, core.PiB), 8191 << 50)
    assert.int(core.add(math.mininteger, math.maxinteger), -1)
    assert.is_nil(core.add(math.mininteger, -1))
    assert.is_nil(core.mul(math.mininteger, -1))
  end)

  it("raise for what hides a float", function()
    for _, v in ipairs { 1.0, "1", true } do
      assert.has_error(function() core.add(v, 1) end)
      assert.has_error(function() core.mul(1, v) end)
    end
    assert.has_error(function() core.format_bytes(-1) end)
    assert.has_error(function() core.format_bytes(2.0 ^ 60) end)
    assert.int(core.check_bytes(4096), 4096)
  end)

  it("give an error object for text that is none", function()
    assert.refuses("ERANGE", core.check_bytes("8e"))
    assert.refuses("EINVAL", core.check_bytes("1PB"))
    assert.refuses("EINVAL", core.check_bytes("1\0"))
    assert.int(select(2, core.check_bytes("8e")).errno, 34)
  end)

  it("runs a CRC register over bytes", function()
    -- The check values of the catalogue of CRCs: CRC-32/JAMCRC and CRC-32C before its inversion.
    assert.int(core.crc("crc32", 0xffffffff, "123456789"), 0x340bc6d9)
    assert.int(core.crc("crc32c", 0xffffffff, "123456789"), 0xe3069283 ~ 0xffffffff)
    assert.int(core.crc("crc32", core.crc("crc32", 7, "1234"), "56789"),
      core.crc("crc32", 7, "123456789"))
    assert.has_error(function() core.crc("crc32", 1 << 32, "") end)
    assert.has_error(function() core.crc("crc16", 0, "") end)
  end)
end)
