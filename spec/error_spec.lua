local core = require "brim.core"
local device = require "brim.device"
local errors = require "brim.error"
local helper = require "spec.helper"

describe("brim.error", function()
  it("prints, joins and survives assert as an object", function()
    local err = errors.new { code = "ENOSPC", errno = 28, message = "no room" }
    assert.equal("no room", tostring(err))
    assert.equal("it said: no room", "it said: " .. err)
    assert.equal("no room!", err .. "!")
    local ok, raised = pcall(function() _G.assert(nil, err) end)
    assert.is_false(ok)
    assert.equal(err, raised)
    assert.is_true(errors.is(raised))
    assert.is_false(errors.is("no room"))
  end)

  it("is what C returns, too", function()
    local n, err = core.check_bytes("1PB")
    assert.is_nil(n)
    assert.is_true(errors.is(err))
    assert.equal("EINVAL", err.code)
    assert.int(err.errno, 22)
    assert.equal(err.message, tostring(err))
  end)

  it("marks what ends a command with 2 or 77", function()
    assert.is_true(errors.usage("bad %d", 1).usage)
    assert.equal("bad 1", errors.usage("bad %d", 1).message)
    assert.equal("ESKIP", errors.skip("no").code)
  end)
end)

describe("brim.device", function()
  it("marks a refused target as bad input", function()
    local d, err = device.open(helper.dir() .. "/missing")
    assert.refuses("ENOENT", d, err)
    assert.is_true(err.usage)
    assert.matches("missing", err.message, 1, true)
  end)

  it("opens, tells facts, reads, writes, closes", function()
    local path = helper.path("disk")
    local d <close> = _G.assert(device.open(path, { write = true, create = true,
      min_size_bytes = "1m" }))
    assert.int(d:info().size_bytes, 1 << 20)
    assert.int(d:write(4096, ("x"):rep(4096)), 4096)
    assert.equal(("x"):rep(4096), d:read(4096, 4096))
    assert.equal(("\0"):rep(10), d:read(0, 10))
    assert.refuses("ERANGE", d:read(1 << 20, 1))
    assert.is_true(d:close())
    assert.is_true(d:close())
    assert.has_error(function() d:read(0, 1) end)
  end)

  it("has a null device of any size", function()
    local d <close> = _G.assert(device.null(math.maxinteger))
    assert.int(d:info().size_bytes, math.maxinteger)
    assert.equal("null", d:info().kind)
  end)

  it("refuses wrong options before it looks at the path", function()
    assert.error_matches(function() device.open("/nonexistent", { wirte = true }) end,
      "did you mean 'write'")
  end)
end)
