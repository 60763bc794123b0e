-- Reads that fail, at every position of a scan and of brim check's walks: an error says which
-- operation, where and why, and nothing stays open. Short reads, EAGAIN and EINTR change nothing.
local brim = require "brim"
local check = require "brim.xfs.check"
local helper = require "spec.helper"
local ondisk = require "brim.xfs.ondisk"
local scan = require "brim.scan"

local AGS <const>, AG_BYTES <const> = 4, 256 << 20
local path = helper.path "used.img"

local function assert_nothing_open()
  collectgarbage()
  collectgarbage()
  assert.int(brim._debug.open_handles(), 0)
end

local function assert_failed(err, code)
  assert.is_true(brim.error.is(err), tostring(err))
  assert.same({ code, "read" }, { err.code, err.op })
  assert.equal("integer", math.type(err.offset_bytes))
  assert.is_true(err.offset_bytes >= 0 and err.offset_bytes < AGS * AG_BYTES)
  assert.is_truthy(err.message:find(("at offset %d:"):format(err.offset_bytes), 1, true))
  assert.is_nil(err.message:find "\n")
end

-- The run's result or error, raised or returned.
local function attempt(f, engine)
  local ok, result, err = pcall(f, engine)
  if not ok then
    return nil, result
  end
  return result, err
end

-- Fails read 1, 2, ... of f until none is left to fail; how many there were.
local function each_read(f, code)
  local n = 0
  repeat
    n = n + 1
    local result, err = attempt(f, ("fault:at=%d,op=read,errno=%s,inner=sync"):format(n, code))
    if not result then
      assert_failed(err, code)
    end
    assert_nothing_open()
  until result or n > 500
  return n - 1
end

local function mended(f, say)
  local expected = say(assert(f "sync"))
  for _, how in ipairs { "short=512", "short=1", "errno=EAGAIN", "errno=EINTR" } do
    for n = 1, 4 do
      local engine = ("fault:at=%d,times=3,op=read,%s,inner=sync"):format(n, how)
      assert.same(expected, say(assert(f(engine))))
    end
  end
  assert_nothing_open()
end

describe("reads that fail", function()
  setup(function()
    if not helper.has "mkfs.xfs" then
      return
    end
    local lines = { "/", "0 0", "d--755 0 0" }
    helper.write(helper.dir() .. "/content", ("x"):rep(5000))
    for k = 1, 300 do
      lines[#lines + 1] = ("f%d ---644 0 0 %s/content"):format(k, helper.dir())
    end
    lines[#lines + 1] = "$"
    helper.write(helper.dir() .. "/proto", table.concat(lines, "\n") .. "\n")
    helper.must("truncate -s %d %s && mkfs.xfs -q -d agcount=%d -p %s/proto %s", AGS * AG_BYTES,
      path, AGS, helper.dir(), path)
  end)

  local function need_mkfs()
    if not helper.has "mkfs.xfs" then
      pending "mkfs.xfs is not installed"
    end
  end

  local groups = scan(function(ag)
    return ondisk.agf:at(512, 512) { seqno = ag, freeblks = scan.all { scan.sum(), scan.column() } }
  end)

  local function run_scan(engine)
    local rows = {}
    local result, err = groups:run(path, { count = AGS, stride_bytes = AG_BYTES, engine = engine,
      queue_depth = 2, batch = function(b)
        table.move(b.freeblks, 1, b.count, b.first + 1, rows)
      end })
    if result then
      result.rows = rows
    end
    return result, err
  end

  it("end a scan with their place", function()
    need_mkfs()
    for _, code in ipairs { "EIO", "ENODATA" } do
      assert.int(each_read(run_scan, code), AGS)
    end
  end)

  it("are mended in a scan where they can be", function()
    need_mkfs()
    mended(run_scan, function(r) return { r.sums.freeblks, r.mismatch_count, r.rows } end)
  end)

  local function run_check(engine)
    return check.run(path, { engine = engine, queue_depth = 4 })
  end

  it("end a check with their place", function()
    need_mkfs()
    assert.is_true(each_read(run_check, "EIO") >= 2 * AGS)
  end)

  it("are mended in a check where they can be", function()
    need_mkfs()
    mended(run_check, function(r) return { r.clean, r.finding_count, r.text } end)
  end)
end)
