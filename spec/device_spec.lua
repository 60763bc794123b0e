local core = require "brim.core"
local device = require "brim.device"
local helper = require "spec.helper"

local BOUNDARY <const> = { 0, 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
  math.maxinteger - 4096, math.maxinteger }

-- A new file of this size, open for writing.
local function new_file(size_bytes)
  local path = helper.path("device")
  return _G.assert(core.device_open(path, { write = true, create = true,
    min_size_bytes = size_bytes })), path
end

-- core.device_open must refuse: the code, and what its one line says.
local function refused(code, says, path, o)
  local d, err = core.device_open(path, o)
  assert.refuses(code, d, err)
  assert.matches(says, err.message, 1, true)
  assert.is_nil(err.message:find("\n", 1, true))
  return err
end

describe("brim.core devices", function()
  it("write, read and zero", function()
    local d <close>, path = new_file("64k")
    assert.int(d:write(100, "hello"), 5)
    assert.equal("\0hello\0", d:read(99, 7))
    assert.equal("", d:read(65536, 0))
    assert.is_true(d:flush())
    assert.equal(65536, #helper.read(path))
    assert.is_true(d:zero(0, 65536))
    assert.equal("\0\0\0\0\0", d:read(100, 5))
    assert.refuses("EOPNOTSUPP", d:discard(0, 4096))
  end)

  it("tell what they are", function()
    local d <close>, path = new_file(8192)
    local info = d:info()
    assert.equal("file", info.kind)
    assert.equal(path, info.path)
    for name, n in pairs { size_bytes = 8192, logical_sector_bytes = 512,
      physical_sector_bytes = 512, min_io_bytes = 0, opt_io_bytes = 0, align_bytes = 1 } do
      assert.int(info[name], n)
    end
    assert.is_true(info.is_writable)
    assert.is_false(info.is_direct)
    assert.equal(("brim.device (%s, 8 KiB)"):format(path), tostring(d))
  end)

  it("close once and for all", function()
    local before = core.open_handles()
    local d = new_file(4096)
    assert.int(core.open_handles(), before + 1)
    assert.is_true(d:close())
    assert.is_true(d:close())
    assert.int(core.open_handles(), before)
    assert.equal("brim.device (closed)", tostring(d))
    for _, method in ipairs { "info", "read", "write", "zero", "discard", "flush" } do
      assert.error_matches(function() d[method](d, 0, 0) end, "device is closed")
    end
  end)

  it("close when they are forgotten, and at the end of a scope", function()
    local before = core.open_handles()
    do
      local d <close> = new_file(4096)
      assert.equal("brim.device (", tostring(d):sub(1, 13))
    end
    assert.int(core.open_handles(), before)
    for _ = 1, 10 do
      _G.assert(core.device_null(1))
    end
    collectgarbage()
    collectgarbage()
    assert.int(core.open_handles(), before)
  end)

  it("stay within their ends", function()
    local d <close> = new_file(4096)
    for _, range in ipairs { { 4096, 1 }, { 0, 4097 }, { 1, 4096 }, { 0, math.maxinteger },
      { math.maxinteger, math.maxinteger }, { math.maxinteger, 1 }, { 1, "7e" } } do
      assert.refuses("ERANGE", d:read(range[1], range[2]))
      assert.refuses("ERANGE", d:zero(range[1], range[2]))
    end
    local n, err = d:write(4094, "abc")
    assert.refuses("ERANGE", n, err)
    assert.int(err.offset_bytes, 4094)
    assert.equal("write", err.op)
  end)

  it("raise for what is no offset", function()
    local d <close> = new_file(4096)
    for _, v in ipairs { -1, math.mininteger, 0.5, 2.0 ^ 60, 0 / 0, 1 / 0, "1.5k", "", "4096\0",
      true, {} } do
      assert.has_error(function() d:read(v, 1) end)
      assert.has_error(function() d:read(0, v) end)
    end
    assert.has_error(function() d:read(nil, 1) end)
    assert.has_error(function() d:write(0, 5) end)
    assert.has_error(function() d.read(io.stdout, 0, 1) end)
    assert.equal("\0", d:read(4095.0, "1"))
  end)

  it("are null at every size", function()
    for _, n in ipairs(BOUNDARY) do
      local d <close> = _G.assert(core.device_null(n))
      assert.int(d:info().size_bytes, n)
      assert.equal("null", d:info().kind)
      assert.refuses("ERANGE", d:read(n, 1))
      assert.is_true(d:zero(0, n))
      assert.is_true(d:discard(0, n))
      if n > 0 then
        assert.equal("\0", d:read(n - 1, 1))
        assert.int(d:write(n - 1, "x"), 1)
      end
    end
    assert.has_error(function() core.device_null("8e") end)
  end)

  it("reach the largest offset where the filesystem does", function()
    local path = helper.must("mktemp /dev/shm/brim-spec-XXXXXX"):gsub("\n$", "")
    finally(function() os.remove(path) end)
    if helper.must("stat -f -c %T /dev/shm"):gsub("\n$", "") ~= "tmpfs" then
      pending("no tmpfs at /dev/shm")
    end
    for _, n in ipairs(BOUNDARY) do
      local d <close> = _G.assert(core.device_open(path, { write = true, min_size_bytes = n }))
      assert.int(d:info().size_bytes, n)
      if n > 0 then
        assert.int(d:write(n - 1, "x"), 1)
        assert.equal("x", d:read(n - 1, 1))
        assert.is_true(d:zero(0, n))
      end
    end
  end)
end)

describe("core.device_open", function()
  it("refuses what is no target, in one line", function()
    local fifo = helper.path("fifo")
    helper.must("mkfifo %s", helper.quote(fifo))
    refused("ENOENT", "does not exist", helper.path("missing"))
    refused("ENOENT", "path is empty", "")
    refused("ENOENT", "its directory does not exist", helper.dir() .. "/no/x",
      { write = true, create = true })
    refused("ENOTBLK", "is a directory", helper.dir(), { write = true, force = true })
    refused("ENOTBLK", "is a pipe", fifo)
    refused("ENOTBLK", "is a character device", "/dev/null")
    refused("ENOENT", "/a?b", "/a\nb")
  end)

  it("gives errors that say all", function()
    local path = helper.path("missing")
    local err = refused("ENOENT", path, path)
    assert.int(err.errno, 2)
    assert.equal("open", err.op)
    assert.equal(path, err.path)
    assert.equal(err.message, tostring(err))
    assert.equal("it: " .. err.message .. "!", "it: " .. err .. "!")
    local ok, raised = pcall(function() return _G.assert(core.device_open(path)) end)
    assert.is_false(ok)
    assert.equal("ENOENT", raised.code)
  end)

  it("leaves nothing behind where it refuses", function()
    local path = helper.path("new")
    -- ext4 refuses this; where 2^63-1 bytes fit there is nothing to see.
    local d, err = core.device_open(path, { write = true, create = true,
      min_size_bytes = core.MAX_BYTES })
    if d then
      d:close()
      pending("this filesystem holds files of 2^63-1 bytes")
    end
    assert.equal("EFBIG", err.code)
    assert.is_nil(io.open(path))
  end)

  it("never cuts a file, and extends it only when asked", function()
    local path = helper.path("size")
    helper.write(path, ("x"):rep(1000))
    local d = _G.assert(core.device_open(path, { write = true, min_size_bytes = 10 }))
    assert.int(d:info().size_bytes, 1000)
    d:close()
    refused("ENOSPC", "too small: it has 1000, and 1001 are needed", path,
      { min_size_bytes = 1001 })
    d = _G.assert(core.device_open(path, { write = true, min_size_bytes = "1k" }))
    assert.int(d:info().size_bytes, 1024)
    d:close()
    assert.int(#helper.read(path), 1024)
    d = _G.assert(core.device_open(path, { max_size_bytes = 100 }))
    assert.int(d:info().size_bytes, 100)
    assert.refuses("EROFS", d:write(0, "x"))
    d:close()
  end)

  it("refuses what carries a filesystem, unless forced", function()
    if not helper.has("mkfs.ext4") or not core.features.blkid then
      pending("no mkfs.ext4, or built without libblkid")
    end
    local path = helper.path("ext4")
    helper.must("truncate -s 16M %s && mkfs.ext4 -q -L foo %s", path, path)
    refused("EEXIST", path .. " holds an ext4 filesystem labelled 'foo'; --force overwrites it",
      path, { write = true, min_size_bytes = "32m" })
    assert.int(#helper.read(path), 16 << 20)
    _G.assert(core.device_open(path)):close()
    _G.assert(core.device_open(path, { write = true, force = true })):close()
  end)

  it("raises for options that are none", function()
    local cases = {
      { { wirte = true }, "unknown option 'wirte'" },
      { { true }, "unknown option '1'" },
      { { write = 1 }, "option 'write': boolean expected, got number" },
      { { min_size_bytes = "8e" }, "option 'min_size_bytes': 8e is 2%^63" },
      { { min_size_bytes = "1PB" }, "write P or PiB" },
      { { min_size_bytes = -1 }, "negative" },
      { { max_size_bytes = 2.0 ^ 60 }, "inexact float" },
      { { max_size_bytes = 0.5 }, "//" },
      { { max_size_bytes = true }, "expected a size" },
      { { direct = true, buffered = true }, "exclude each other" },
      { { create = true }, "needs 'write'" },
      { { min_size_bytes = 2, max_size_bytes = 1 }, "more than 'max_size_bytes'" },
      { 5, "table expected" },
    }
    for _, case in ipairs(cases) do
      assert.error_matches(function() core.device_open("/nonexistent", case[1]) end, case[2])
    end
    assert.error_matches(function() core.device_open("/a\0b") end, "zero byte")
    assert.has_error(function() core.device_open() end)
  end)
end)

describe("brim.device", function()
  it("marks refusals as the user's to mend", function()
    local d, err = device.open(helper.path("missing"))
    assert.refuses("ENOENT", d, err)
    assert.is_true(err.usage)
  end)
end)

-- A loop device over a new file, and the file; both go with the test.
local function loop_device(size)
  local backing = helper.path("backing")
  helper.must("truncate -s %s %s", size, backing)
  local out, status = helper.sh("losetup -f --show %s", backing)
  if status ~= 0 then
    pending("no loop device: " .. out)
  end
  local path = out:gsub("\n$", "")
  finally(function() helper.sh("losetup -d %s", path) end)
  return path, backing
end

describe("block devices #root", function()
  it("are opened directly, and by one at a time", function()
    local path, backing = loop_device("8M")
    local d <close> = _G.assert(core.device_open(path, { write = true, min_size_bytes = "8m" }))
    local info = d:info()
    assert.equal("block", info.kind)
    assert.is_true(info.is_direct)
    assert.int(info.size_bytes, 8 << 20)
    assert.int(info.align_bytes, info.logical_sector_bytes)
    assert.equal("boolean", type(info.is_rotational))
    refused("EBUSY", "is in use", path, { write = true, force = true })
    refused("EBUSY", "is behind " .. path, backing, { write = true, force = true })
    refused("ENOSPC", "too small", path, { min_size_bytes = (8 << 20) + 1 })
  end)

  it("read anything, and write whole sectors", function()
    local path = loop_device("8M")
    local d <close> = _G.assert(core.device_open(path, { write = true }))
    local sector = d:info().align_bytes
    local text = ("abcdefgh"):rep(sector // 8)
    assert.int(d:write((8 << 20) - sector, text), sector)
    assert.equal("fgh", d:read((8 << 20) - 3, 3))
    assert.refuses("EINVAL", d:write(1, text))
    assert.refuses("EINVAL", d:write(0, text .. "x"))
    assert.refuses("EINVAL", d:zero(0, sector - 1))
    assert.is_true(d:zero(0, 8 << 20))
    assert.equal("\0\0\0", d:read((8 << 20) - 3, 3))
    assert.is_true(d:flush())
  end)

  it("are refused when mounted", function()
    local path, backing = loop_device("16M")
    if not helper.has("mkfs.ext4") then
      pending("no mkfs.ext4")
    end
    local point = helper.path("a mount")
    helper.must("mkfs.ext4 -q %s && mkdir '%s'", path, point)
    local out, status = helper.sh("mount %s '%s'", path, point)
    if status ~= 0 then
      pending("cannot mount: " .. out)
    end
    local err = { core.device_open(path, { write = true, force = true }) }
    local behind = { core.device_open(backing, { write = true, force = true }) }
    helper.must("umount '%s'", point)
    assert.refuses("EBUSY", err[1], err[2])
    assert.matches(path .. " is mounted on " .. point, err[2].message, 1, true)
    assert.refuses("EBUSY", behind[1], behind[2])
    assert.matches("is mounted on " .. point, behind[2].message, 1, true)
  end)
end)
