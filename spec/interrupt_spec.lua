-- A format over an older XFS that is killed by SIGKILL: never is there a valid primary superblock,
-- unless nothing was written yet (the older filesystem is whole) or all of it was. At random
-- moments, and at every single system call that changes the target. And the order that a power
-- failure needs: a flush between the phases. SEED=N repeats a run.
local devices = require "spec.devices"
local helper = require "spec.helper"

local KILLS <const>, LOOP_KILLS <const> = 20, 8
local SIGKILLED <const> = 137

local seed = math.tointeger(os.getenv "SEED" or "") or os.time()
math.randomseed(seed)
print("# SEED=" .. seed)

-- Leaks are not looked for under strace, which is a debugger already.
local STRACE <const> = "ASAN_OPTIONS=detect_leaks=0 strace -f -qq "

local function has_strace()
  local _, status = helper.sh(STRACE .. "-o /dev/null true")
  return status == 0
end

-- A tool that is not installed: the reason to skip.
local function missing()
  for _, program in ipairs { "mkfs.xfs", "xfs_db", "xfs_repair", "blkid", "cc" } do
    if not helper.has(program) then
      return program .. " is not installed"
    end
  end
end

-- ---------------------------------------------------------------------- judging

local imgcmp

local function is_same(a, b)
  if not imgcmp then
    imgcmp = helper.path "imgcmp"
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", imgcmp)
  end
  local out, status = helper.sh("%s %s %s", imgcmp, a, b)
  assert(status <= 1, out)
  return status == 0
end

local function assert_clean(target)
  -- -P: prefetching thousands of groups costs minutes.
  local out, status = helper.sh("xfs_repair -n -P %s", target)
  assert.equal(0, status, out)
end

-- What blkid and xfs_db make of a target: does either see a filesystem?
local function sees_filesystem(target)
  local _, blkid = helper.sh("blkid -p %s", target)
  local said = helper.sh("xfs_db -r -c 'sb 0' -c p %s", target)
  local is_bad = said:find("is not a valid XFS filesystem", 1, true)
  assert.is_true(blkid == 0 or blkid == 2)
  assert.equal(blkid == 2, is_bad ~= nil, said)
  return blkid == 0
end

local function magic(target)
  local file <close> = assert(io.open(target, "rb"))
  return file:read(4)
end

-- Which of the three ends a format came to; raises for any other. `content` is the file that holds
-- the target's bytes, where that is a device.
local function judge(target, old, status, content)
  local valid = sees_filesystem(target)
  assert.equal(valid, magic(target) == "XFSB")
  if status ~= 0 and is_same(content or target, old) then
    assert.is_true(valid)
    return "untouched"
  elseif valid then
    -- Killed or not: all of it is there.
    assert_clean(target)
    return "finished"
  end
  assert.equal(SIGKILLED, status)
  assert.equal("\0\0\0\0", magic(target))
  return "gone"
end

-- --------------------------------------------------------------------- starting

local function command(target, options)
  return ("%s --queue-depth=8 mkfs.xfs -f -q %s %s"):format(helper.exe, options, target)
end

-- With one thread the calls come in the plan's order.
local function one_thread(target)
  return ("%s --engine=sync --threads=1 mkfs.xfs -f -q %s"):format(helper.exe, target)
end

local killafter

-- Runs it and kills it, and nothing else, after so many seconds (nil: never), counted from its
-- start or from when the old signature is gone. Its exit status, when the signature went, when it
-- ended.
local function run_and_kill(target, line, seconds, from)
  if not killafter then
    killafter = helper.path "killafter"
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/killafter.c", killafter)
  end
  local out = helper.must("%s %s %s %.6f %s", killafter, target, from or "start", seconds or -1,
    line)
  local status, gone_s, end_s = out:match "^(%d+) (%S+) (%S+)\n$"
  return math.tointeger(status), tonumber(gone_s), tonumber(end_s)
end

-- Kills at `count` moments: a quarter before the old signature goes, the others after, one in each
-- part of the time it takes; less of that when a run shows that it was measured in a bad moment.
local function kill_often(count, target, line, restore, judge_it)
  restore()
  local first, gone_s, end_s = run_and_kill(target, line)
  assert.equal(0, first)
  assert.equal("finished", judge_it(0))
  local ends, early = { untouched = 0, gone = 0, finished = 0 }, count // 4
  for i = 1, count do
    local from = i <= early and "start" or "gone"
    local part = i <= early and (i - math.random()) / early
      or (i - early - math.random()) / (count - early)
    local at_s = part * (i <= early and gone_s or end_s - gone_s)
    restore()
    local status, _, took_s = run_and_kill(target, line, at_s, from)
    local ok, how = pcall(judge_it, status)
    if not ok then
      error(("killed %.4f s from %s, of %.4f and %.4f s, status %d: %s"):format(at_s, from, gone_s,
        end_s, status, type(how) == "table" and tostring(how.message) or tostring(how)), 0)
    end
    ends[how] = ends[how] + 1
    end_s = status == 0 and math.max(math.min(end_s, took_s), gone_s * 1.2) or end_s
  end
  print(("# signature gone after %.3f s, all done after %.3f s; killed %d times before the first "
    .. "write, %d in the midst, %d at the end"):format(gone_s, end_s, ends.untouched, ends.gone,
    ends.finished))
  assert.is_true(ends.gone > 0, "no moment fell into the midst of the format")
end

-- ------------------------------------------------------------------------ tests

describe("a format over an older XFS", function()
  local why = missing()

  -- A target with an old XFS that has other groups than the new one, and a function that puts it
  -- back.
  local function old_target(size, options)
    local old, target = devices.file(size, "old.img"), helper.path "target.img"
    helper.must("mkfs.xfs -q -K %s %s", options or "", old)
    return old, target, function()
      helper.must("rm -f %s && cp --sparse=always %s %s", target, old, target)
    end
  end

  it("killed at 20 random moments leaves no superblock, or all", function()
    if why then
      pending(why)
    end
    local old, target, restore = old_target "512g"
    kill_often(KILLS, target, command(target, "-d agsize=256m"), restore, function(status)
      return judge(target, old, status)
    end)
  end)

  it("killed on a block device under io_uring leaves no superblock, or all #root", function()
    if why then
      pending(why)
    end
    local old, target, restore = old_target "64g"
    local loop
    local link = helper.path "loop" -- its number changes
    finally(devices.release)
    kill_often(LOOP_KILLS, link, command(link, "-K -d agsize=128m"), function()
      devices.release()
      restore()
      loop = devices.loop(target, "--direct-io=on")
      helper.must("ln -sf %s %s", loop, link)
    end, function(status)
      helper.must("sync -d %s", loop)
      return judge(loop, old, status, target)
    end)
  end)

  it("killed at any system call leaves no superblock, or all", function()
    if why or not has_strace() then
      pending(why or "strace is not installed or may not trace")
    end
    local old, target, restore = old_target("300m", "-d agcount=3")
    local ends = { untouched = 0, gone = 0, finished = 0 }
    for _, call in ipairs { "fallocate", "pwrite64", "fdatasync" } do
      local n, status = 0
      repeat
        n = n + 1
        restore()
        -- The status is brim's own.
        _, status = helper.sh("%s-o /dev/null -e trace=%s -e inject=%s:signal=KILL:when=%d %s",
          STRACE, call, call, n, one_thread(target))
        local how = judge(target, old, status)
        ends[how] = ends[how] + 1
      until status == 0 or n > 100
      assert.equal(0, status)
      assert.is_true(n > 3, call .. " was hardly called")
    end
    print(("# killed at %d calls"):format(ends.untouched + ends.gone + ends.finished))
    assert.is_true(ends.untouched >= 1 and ends.gone > 8 and ends.finished >= 3)
  end)
end)

describe("the order of a format", function()
  -- The calls that change the target, in order, cut at each flush:
  -- { { { call, offset, length, first bytes }, ... }, ... }
  local function phases_of(line)
    local log = helper.path "strace.log"
    helper.must("%s-s 4 -o %s -e trace=fallocate,pwrite64,fdatasync,fsync,ioctl %s", STRACE, log,
      line)
    local phases = { {} }
    for entry in io.lines(log) do
      local call, rest = entry:match("^%d*%s*([%w_]+)%((.*)$")
      local phase = phases[#phases]
      if call == "fdatasync" or call == "fsync" then
        phases[#phases + 1] = {}
      elseif call == "pwrite64" then
        local text, length, offset = rest:match('^%d+, "(.-)"[.]*, (%d+), (%d+)%)')
        phase[#phase + 1] = { call = call, offset = math.tointeger(offset),
          length = math.tointeger(length), text = text }
      elseif call == "fallocate" then
        local offset, length = rest:match("^%d+, [^,]+, (%d+), (%d+)%)")
        phase[#phase + 1] = { call = call, offset = math.tointeger(offset),
          length = math.tointeger(length), text = "" }
      elseif rest:find("BLKDISCARD", 1, true) then
        phase[#phase + 1] = { call = "discard", offset = 0, length = 0, text = "" }
      end
    end
    assert.equal(0, #table.remove(phases), "something is written and not flushed")
    return phases
  end

  local function is_zeros(io)
    return io.call == "fallocate" or io.text:gsub("\\0+", "") == ""
  end

  -- The old signature alone; what else is old; the groups; the superblock alone.
  local function assert_order(phases, size)
    assert.equal(4, #phases)
    for _, io in ipairs(phases[1]) do
      assert.is_true(is_zeros(io) and io.offset + io.length <= 131072)
    end
    local erases_end, groups = false, 0
    for _, io in ipairs(phases[2]) do
      assert.is_true(is_zeros(io) and io.offset >= 131072)
      erases_end = erases_end or io.offset + io.length == size
    end
    assert.is_true(erases_end)
    for _, io in ipairs(phases[3]) do
      assert.is_true(io.offset >= 512)
      groups = groups + (io.text == "XFSB" and 1 or 0)
    end
    assert.equal(3, groups)
    assert.equal(1, #phases[4])
    assert.same({ "pwrite64", 0, "XFSB" }, { phases[4][1].call, phases[4][1].offset,
      phases[4][1].text })
  end

  it("has a flush between the old signature, the groups and the superblock", function()
    if not has_strace() then
      pending "strace is not installed or may not trace"
    end
    local target = devices.file("300m", "order.img")
    -- Twice: the second one finds an old XFS.
    assert_order(phases_of(one_thread(target)), 300 << 20)
    assert_order(phases_of(one_thread(target)), 300 << 20)
  end)

  it("destroys the old signature of a block device before it discards #root", function()
    if not has_strace() then
      pending "strace is not installed or may not trace"
    end
    finally(devices.release)
    local loop = devices.loop(devices.file("300m", "order.img"))
    helper.must("%s", one_thread(loop))
    local phases = phases_of(one_thread(loop))
    local first = table.remove(phases, 1)
    assert.equal(1, #first)
    assert.same({ "pwrite64", 0 }, { first[1].call, first[1].offset })
    assert.is_true(is_zeros(first[1]))
    assert.equal("discard", table.remove(phases[1], 1).call)
    assert_order(phases, 300 << 20)
  end)

  it("is kept by io_uring, too, with a flush after each phase #root #uring", function()
    finally(devices.release)
    local loop = devices.loop(devices.file("300m", "order.img"), "--direct-io=on")
    local out = helper.must("%s --engine=uring --json mkfs.xfs -f -q %s", helper.exe, loop)
    local result = require("brim.json").decode(out)
    assert.equal("uring", result.engine)
    assert.equal(4, result.flushes)
  end)

  it("leaves a device free for whoever mounts it next #root #uring", function()
    finally(devices.release)
    local loop = devices.loop(devices.file("300m", "free.img"), "--direct-io=on")
    for _ = 1, 8 do
      helper.must("%s --engine=uring mkfs.xfs -f -q %s", helper.exe, loop)
      helper.must("mount -t xfs %s %s && umount %s", loop, helper.dir(), helper.dir())
    end
  end)
end)
