-- I/O that fails, at every position of a small format: an error says which operation, where and
-- why; nothing stays open; no superblock is left. What can be mended (short writes, EAGAIN, EINTR)
-- is, and the image is the same. Then hosts that really run out of space.
local brim = require "brim"
local devices = require "spec.devices"
local helper = require "spec.helper"
local mkfs = require "brim.xfs.mkfs"

local SIZE_BYTES <const> = 300 << 20
local UUID <const> = "01234567-89ab-cdef-0123-456789abcdef"
local TIME_NS <const> = 1700000000 * 1000000000

local target = helper.path "target.img"
local good = helper.path "good.img"
local imgcmp = helper.path "imgcmp"

local function format(path, engine, run)
  run = run or {}
  run.engine = engine
  return mkfs.format(path, { create = true, force = true, run = run,
    format = { size_bytes = SIZE_BYTES, uuid = UUID, time_ns = TIME_NS,
      device = { size_bytes = SIZE_BYTES, is_file = true } } })
end

local function fresh()
  os.remove(target)
end

local function magic(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read(4)
end

-- Neither a handle nor a descriptor: $PPID is this process.
local function assert_nothing_open()
  collectgarbage()
  collectgarbage()
  assert.int(brim._debug.open_handles(), 0)
  local list = helper.must "ls -l /proc/$PPID/fd"
  assert.is_nil(list:find("target.img", 1, true) or list:find("io_uring", 1, true), list)
end

local function assert_same_image()
  local out, status = helper.sh("%s %s %s", imgcmp, good, target)
  assert.equal(0, status, out)
end

-- The error of a failed call, and the target it leaves.
local function assert_failed(result, err, code, errno)
  assert.is_nil(result)
  assert.is_true(brim.error.is(err))
  assert.equal(code, err.code)
  assert.int(err.errno, errno)
  assert.equal(target, err.path)
  assert.matches("^%l+$", err.op)
  assert.is_true(err.op == "write" or err.op == "zero" or err.op == "flush")
  assert.is_nil(err.message:find "\n")
  assert.is_truthy(err.message:find(code == "ENODATA" and "moved nothing" or code, 1, true))
  assert.is_truthy(err.message:find(err.op, 1, true))
  assert.equal("integer", math.type(err.offset_bytes))
  assert.is_true(err.offset_bytes >= 0 and err.offset_bytes < SIZE_BYTES)
  if err.op ~= "flush" then
    assert.is_truthy(err.message:find(" at offset " .. err.offset_bytes .. ":", 1, true))
  end
  assert.is_true(magic(target) ~= "XFSB", "a superblock is left")
end

describe("a format whose I/O fails", function()
  local calls

  setup(function()
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", imgcmp)
    local r = assert(format(good, "sync"))
    calls = r.writes + r.zero_ranges + r.flushes
    assert.is_true(r.writes >= 6 and r.zero_ranges == 3 and r.flushes == 4)
  end)

  for code, errno in pairs { ENOSPC = 28, EIO = 5 } do
    it(("says so for %s at each of its calls"):format(code), function()
      local ops = {}
      for n = 1, calls do
        fresh()
        local result, err = format(target, ("fault:at=%d,errno=%s,inner=sync"):format(n, code))
        assert_failed(result, err, code, errno)
        ops[err.op] = (ops[err.op] or 0) + 1
      end
      assert.is_true(ops.write >= 6 and ops.zero == 3 and ops.flush == 4)
      fresh()
      assert(format(target, ("fault:at=%d,errno=%s,inner=sync"):format(calls + 1, code)))
      assert_same_image()
      assert_nothing_open()
    end)
  end

  it("leaves an older filesystem that was not written over, and no other", function()
    for n = 1, calls do
      helper.must("cp --sparse=always %s %s", good, target)
      local result, err = format(target, ("fault:at=%d,errno=EIO,inner=sync"):format(n))
      assert.is_nil(result)
      assert.equal("EIO", err.code)
      if n == 1 then
        assert_same_image()
      else
        assert.equal("\0\0\0\0", magic(target))
      end
    end
  end)

  it("tries again after EAGAIN and EINTR", function()
    for _, code in ipairs { "EAGAIN", "EINTR" } do
      for n = 1, calls do
        fresh()
        local r = assert(format(target, ("fault:at=%d,errno=%s,inner=sync"):format(n, code)))
        assert.int(r.retries, 1)
        assert_same_image()
      end
    end
    assert_nothing_open()
  end)

  it("gives up when EAGAIN does not end", function()
    fresh()
    local result, err = format(target, "fault:at=5,times=0,errno=EAGAIN,inner=sync")
    assert_failed(result, err, "EAGAIN", 11)
    assert_nothing_open()
  end)

  it("completes short writes", function()
    local shortened = 0
    for _, bytes in ipairs { 512, 1000 } do
      for n = 1, calls do
        fresh()
        local r = assert(format(target, ("fault:at=%d,short=%d,inner=sync"):format(n, bytes)))
        assert.is_true(r.short_ios <= 1)
        shortened = shortened + r.short_ios
        assert_same_image()
      end
    end
    assert.is_true(shortened >= 8)
    fresh()
    local r = assert(format(target, "fault:times=0,short=512,op=write,inner=sync"))
    assert.is_true(r.short_ios > 100)
    assert_same_image()
    local p <close> = assert(brim.xfs.format { size_bytes = SIZE_BYTES, uuid = UUID,
      time_ns = TIME_NS })
    assert.int(assert(p:verify(target)).mismatch_count, 0)
  end)

  it("says so when a write moves nothing", function()
    for n = 1, calls do
      fresh()
      local result, err = format(target, ("fault:at=%d,short=0,op=write,inner=sync"):format(n))
      if result then
        assert.is_true(n > result.writes)
        break
      end
      assert_failed(result, err, "ENODATA", 61)
    end
  end)

  it("writes the zeros itself where the target makes none", function()
    fresh()
    local r = assert(format(target, "fault:times=0,op=zero,errno=EOPNOTSUPP,inner=sync"))
    assert.is_true(r.write_bytes > 60 << 20)
    assert_same_image()
  end)

  -- Some filesystems (tmpfs) have direct I/O in whole pages only, which this plan does not keep.
  local function can_direct()
    fresh()
    local opened <close> = brim.device.open(target, { direct = true })
    return opened and opened:info().align_bytes <= 512 or false
  end

  it("is the same under io_uring #uring", function()
    local run = { direct = can_direct() }
    for n = 1, calls do
      fresh()
      local result, err = format(target, ("fault:at=%d,errno=EIO,inner=uring"):format(n), run)
      assert_failed(result, err, "EIO", 5)
    end
    for n = 1, calls do
      fresh()
      assert(format(target, ("fault:at=%d,short=4096,inner=uring"):format(n), run))
      assert_same_image()
    end
    assert_nothing_open()
  end)

  it("is one line and status 1 on the command line", function()
    for _, case in ipairs {
      { "op=write,at=3,errno=ENOSPC", "^brim mkfs%.xfs: write of %d+ bytes at offset %d+: "
        .. "No space left on device %(ENOSPC%)\n$" },
      { "op=zero,errno=EIO", "^brim mkfs%.xfs: zero of 131072 bytes at offset 0: "
        .. "Input/output error %(EIO%)\n$" },
      { "op=flush,at=4,errno=EIO", "^brim mkfs%.xfs: flush: Input/output error %(EIO%)\n$" },
    } do
      fresh()
      local out, err, status = helper.brim(("--engine=fault:%s,inner=sync"):format(case[1]),
        "mkfs.xfs", "-q", "-d", "file,size=300m", target)
      assert.equal("", out)
      assert.matches(case[2], err)
      assert.equal(1, status)
      assert.is_true(magic(target) ~= "XFSB")
    end
  end)

  it("is an object in JSON", function()
    fresh()
    local out, _, status = helper.brim("--json", "--engine=fault:at=5,errno=EIO,inner=sync",
      "mkfs.xfs", "-d", "file,size=300m", target)
    assert.equal(1, status)
    local e = assert(brim.json.decode(out)).error
    assert.same({ "EIO", 5, target }, { e.code, e.errno, e.path })
    assert.equal("integer", math.type(e.offset_bytes))
  end)
end)

describe("a host without space", function()
  local function assert_full(path, run)
    local result, err = format(path, "auto", run)
    assert.is_nil(result)
    assert.equal("ENOSPC", err.code)
    assert.is_true(err.op == "write" or err.op == "flush")
    assert.is_truthy(err.message:find "No space left on device %(ENOSPC%)")
    assert.is_true(magic(path) ~= "XFSB")
    collectgarbage()
    assert.int(brim._debug.open_handles(), 0)
    local _, said, status = helper.brim("mkfs.xfs", "-q", "-f", path)
    assert.matches("^brim mkfs%.xfs: %l+[^\n]*No space left on device %(ENOSPC%)\n$", said)
    assert.equal(1, status)
    assert.is_true(magic(path) ~= "XFSB")
  end

  it("is an error on a small tmpfs #root", function()
    finally(devices.release)
    assert_full(devices.mount("tmpfs", "-t tmpfs -o size=64k") .. "/x.img")
  end)

  it("is an error on a full ext4 #root", function()
    if not helper.has "mkfs.ext4" then
      pending "mkfs.ext4 is not installed"
    end
    finally(devices.release)
    local host = devices.file("16m", "host.img")
    helper.must("mkfs.ext4 -q %s", host)
    local dir = devices.mount(devices.loop(host), "-t ext4")
    helper.must("truncate -s 300m %s/x.img", dir)
    helper.sh("dd if=/dev/zero of=%s/fill bs=64k status=none; dd if=/dev/zero of=%s/fill2 bs=1k "
      .. "status=none; sync -f %s", dir, dir, dir)
    assert_full(dir .. "/x.img")
    assert_full(dir .. "/x.img", { direct = true })
  end)

  it("is refused before the first write where a limit says so", function()
    fresh()
    local out, status = helper.sh("ulimit -f 1024; %s mkfs.xfs -q -d file,size=300m %s", helper.exe,
      target)
    assert.matches("^brim mkfs%.xfs: .*cannot be made 300 MiB long: .*ulimit %-f[^\n]*\n$", out)
    assert.equal(2, status)
    assert.is_nil(io.open(target))
  end)
end)
