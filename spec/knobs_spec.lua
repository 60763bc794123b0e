-- Knobs: on a fake of sysfs what they hold after each way to end; on the machine's own XFS or queue
-- where there is one. What is known of F2FS's knobs is compared with what kernels list.
local brim = require "brim"
local data = require "brim.knobs.data"
local fake_sysfs = require "spec.fake_sysfs"
local helper = require "spec.helper"

local knobs = brim.knobs

local function held(fake, name)
  return (helper.read(fake.file(name)):gsub("%s+$", ""))
end

-- Runs a script against the fake with build/brim; its exit status and output.
local function run(fake, script, signal)
  local path = helper.path "script.lua"
  helper.write(path, ("local brim = require 'brim'\nlocal o, dir = %s, %q\n%s"):format(
    fake_sysfs.source(fake), fake.dir, script))
  local limit = signal and ("timeout --preserve-status -s %s 1"):format(signal) or ""
  local out, status = helper.sh("%s %s run %s", limit, helper.exe, path)
  return status, out
end

describe("knobs", function()
  it("are read by name, with numbers as integers", function()
    local fake = fake_sysfs.make()
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    assert.int(k:get "gc_min_sleep_time", 30000)
    assert.equal("adaptive", k:get "mode")
    assert.equal("off", k:get "gc_merge")
    assert.equal("on", k:get "discard")
    assert.equal("none", k:get "queue.scheduler")
    local all = k:snapshot()
    assert.int(all["queue.nr_requests"], 64)
    assert.is_nil(all.dir_level)
    assert.equal("F", tostring(k):match "f2fs" and "F")
    local listed = {}
    for _, e in ipairs(k:list()) do
      listed[e.name] = e
    end
    assert.equal("ms", listed.gc_min_sleep_time.unit)
    assert.int(listed.gc_min_sleep_time.default, 30000)
  end)

  it("are set, read back and brought back at close", function()
    local fake = fake_sysfs.make()
    local k = assert(knobs.open(fake.dir, fake.o))
    local changes = assert(k:set { gc_min_sleep_time = 1000, ipu_policy = "0x10",
      alloc_mode = "default", gc_merge = true, ["queue.nr_requests"] = 128 })
    assert.equal("alloc_mode", changes[1].name)
    assert.same({ name = "alloc_mode", before = "reuse", after = "default" }, changes[1])
    assert.equal("1000", held(fake, "gc_min_sleep_time"))
    assert.equal("16", held(fake, "ipu_policy"))
    assert.equal("on", k:get "gc_merge")
    assert.equal("128", held(fake, "queue.nr_requests"))
    assert(k:set { gc_min_sleep_time = 2000 })
    assert(k:close())
    assert.equal("30000", held(fake, "gc_min_sleep_time"))
    assert.equal("129", held(fake, "ipu_policy"))
    assert.equal("64", held(fake, "queue.nr_requests"))
    local again <close> = assert(knobs.open(fake.dir, fake.o))
    assert.equal("reuse", again:get "alloc_mode")
    assert.equal("off", again:get "gc_merge")
    assert.equal("", helper.must("ls %s/state", fake.root))
    assert.has_error(function() k:get "ipu_policy" end)
  end)

  it("are set in an order that works: what a mode needs, options, the rest", function()
    local fake = fake_sysfs.make()
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    local changes = assert(k:set { mode = "fragment:block", ipu_policy = 0, cp_interval = 7 })
    assert.equal("ipu_policy", changes[1].name)
    assert.equal("mode", changes[2].name)
    assert.equal("fragment:block", k:get "mode")
    assert(k:restore())
    assert.equal("adaptive", k:get "mode")
    assert.equal("129", held(fake, "ipu_policy"))
    local _, err = k:set { mode = "lfs" }
    assert.is_truthy(err.message:find "needs ipu_policy=0")
  end)

  it("stay when asked to", function()
    local fake = fake_sysfs.make()
    fake.o.keep = true
    do
      local k <close> = assert(knobs.open(fake.dir, fake.o))
      assert(k:set { cp_interval = 9 })
    end
    assert.equal("9", held(fake, "cp_interval"))
    assert.equal("", helper.must("ls %s/state", fake.root))
  end)

  it("that the GC thread forgets at a remount come back, too", function()
    local fake = fake_sysfs.make { gc_min_sleep_time = 777 }
    local k = assert(knobs.open(fake.dir, fake.o))
    assert(k:set { background_gc = "off" })
    assert.equal("30000", held(fake, "gc_min_sleep_time"))
    assert(k:close())
    assert.equal("777", held(fake, "gc_min_sleep_time"))
  end)

  it("refuse in one line what is wrong, and change nothing then", function()
    local fake = fake_sysfs.make()
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    for _, case in ipairs {
      { { gc_min_sleep = 1 },
        "unknown knob 'gc_min_sleep' of f2fs; did you mean 'gc_min_sleep_time'?" },
      { { gc_min_sleep_time = -1 }, "gc_min_sleep_time=-1: the least is 0 ms" },
      { { gc_min_sleep_time = 1 << 32 }, "the most is 4294967295 ms" },
      { { gc_min_sleep_time = "1.5" }, "expected an integer of 0 to 4294967295 ms" },
      { { gc_urgent = 4 }, "gc_urgent=4: the most is 3" },
      { { mode = "log" }, "mode=log: expected one of adaptive, lfs" },
      { { gc_remaining_trials = 5 }, "Linux 6.1.0 has no gc_remaining_trials, it came with 6.2" },
      { { readdir_ra = 1 }, "no readdir_ra here, though Linux 6.1.0 should have it" },
      { { reserved_segments = 1 }, "Linux 6.1.0 has no reserved_segments, it came with 6.12" },
    } do
      case[1].cp_interval = 7
      local ok, err = k:set(case[1])
      assert.is_nil(ok)
      assert.is_truthy(err.message:find(case[2], 1, true), err.message)
      assert.is_nil(err.message:find("\n", 1, true))
      assert.is_true(err.usage)
      assert.equal("60", held(fake, "cp_interval"))
    end
  end)

  it("that the kernel does not take are an error that says what it holds", function()
    local fake = fake_sysfs.make()
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    -- What is written into /dev/null is not read back, and /dev/full takes nothing.
    helper.must("ln -sf /dev/null %s", fake.file "min_ipu_util")
    local ok, err = k:set { cp_interval = 8, min_ipu_util = 50 }
    assert.is_nil(ok)
    assert.equal("EINVAL", err.code)
    assert.is_truthy(err.message:find "min_ipu_util=50 was not taken: the kernel holds ")
    assert.equal("60", held(fake, "cp_interval"))
    local _, refused = k:set { cp_interval = 8, mode = "lfs" }
    assert.is_truthy(refused.message:find "mode=lfs was refused: remount with mode=lfs: mount: ")
  end)

  it("of GC mode, which is one field, read otherwise than they are written", function()
    local mode = data.find("f2fs", "gc_urgent")
    assert.same({ "gc_urgent", "1" }, { mode.undo "4" })
    assert.same({ "gc_urgent", "3" }, { mode.undo "6" })
    assert.same({ "gc_idle", "2" }, { mode.undo "2" })
    assert.same({ "gc_idle", "0" }, { data.find("f2fs", "gc_idle").undo "0" })
    assert.equal(4, mode.reads[1])
    -- As 6.1 shows it.
    local fake = fake_sysfs.make { gc_urgent = "GC_URGENT_LOW" }
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    assert.int(k:get "gc_urgent", 5)
  end)
end)

describe("knobs come back", function()
  local SET <const> = "local k <close> = assert(brim.knobs.open(dir, o))\n"
    .. "assert(k:set { gc_min_sleep_time = 1234 })\n"
    .. "local f = io.open(o.sysfs .. '/fs/f2fs/fake0/gc_min_sleep_time'):read 'n'\n"
    .. "assert(f == 1234)\n"
  local WAIT <const> = "for i = 1, 400 do require 'brim.core'.sleep(0.01) end"

  for how, case in pairs {
    ["after a normal end"] = { "", nil, 0 },
    ["after an error"] = { "error 'no'", nil, 1 },
    ["after SIGINT"] = { "while true do end", "INT", 130 },
    ["after SIGTERM"] = { "while true do end", "TERM", 143 },
  } do
    it(how, function()
      local fake = fake_sysfs.make()
      local status, out = run(fake, SET .. case[1], case[2])
      assert.equal(case[3], status, out)
      assert.equal("30000", held(fake, "gc_min_sleep_time"))
      assert.equal("", helper.must("ls %s/state", fake.root))
    end)
  end

  it("at the end of a process that forgot to close them", function()
    local fake = fake_sysfs.make()
    local status, out = run(fake, SET:gsub("<close>", ""))
    assert.equal(0, status, out)
    assert.equal("30000", held(fake, "gc_min_sleep_time"))
  end)

  it("by brim knobs --restore after SIGKILL, not while the process runs", function()
    local fake = fake_sysfs.make()
    local status = run(fake, SET .. WAIT, "KILL")
    assert.equal(137, status)
    assert.equal("1234", held(fake, "gc_min_sleep_time"))
    local restored = knobs.restore(fake.o.state_dir)
    assert.equal(1, #restored)
    assert.is_true(restored[1].ok)
    assert.equal("30000", held(fake, "gc_min_sleep_time"))
    assert.same({}, knobs.restore(fake.o.state_dir))
    local k <close> = assert(knobs.open(fake.dir, fake.o))
    assert(k:set { cp_interval = 8 })
    restored = knobs.restore(fake.o.state_dir)
    assert.is_false(restored[1].ok)
    assert.is_truthy(restored[1].message:find "still runs")
    assert.equal("8", held(fake, "cp_interval"))
  end)
end)

describe("knobs of a mounted XFS", function()
  -- A small image on a loop device, mounted; unmounted whatever happens.
  local function mounted(f)
    if not helper.has "mkfs.xfs" then
      return pending "mkfs.xfs is not installed"
    end
    local image, dir = helper.path "img", helper.path "mnt"
    helper.must("truncate -s 400m %s && mkfs.xfs -q %s && mkdir %s", image, image, dir)
    local _, status = helper.sh("mount -o loop %s %s", image, dir)
    if status ~= 0 then
      return pending "no loop mounts of XFS here"
    end
    local ok, why = pcall(f, dir, helper.must("findmnt -n -o SOURCE --target %s", dir)
      :match "/dev/(%S+)")
    helper.must("umount %s", dir)
    assert(ok, why)
  end

  it("are those of sysfs, procfs and the loop device's queue #root", function()
    mounted(function(dir, device)
      local state_dir = helper.path "state"
      local k = assert(knobs.open(dir, { state_dir = state_dir }))
      local file = ("/sys/fs/xfs/%s/error/metadata/EIO/max_retries"):format(device)
      local queue = ("/sys/block/%s/queue/read_ahead_kb"):format(device)
      local retries, ahead = helper.read(file), helper.read(queue)
      assert.equal(retries, k:get "EIO.max_retries" .. "\n")
      assert.equal(helper.read "/proc/sys/fs/xfs/xfssyncd_centisecs",
        k:get "xfssyncd_centisecs" .. "\n")
      assert(k:set { ["EIO.max_retries"] = 5, ["EIO.retry_timeout_seconds"] = 60,
        fail_at_unmount = 0, ["queue.read_ahead_kb"] = 64 })
      assert.equal("5\n", helper.read(file))
      assert.equal("64\n", helper.read(queue))
      assert(k:close())
      assert.equal(retries, helper.read(file))
      assert.equal(ahead, helper.read(queue))
    end)
  end)

  it("have the defaults that are known #root", function()
    mounted(function(dir)
      local k <close> = assert(knobs.open(dir))
      local defaults = knobs.defaults("xfs", {}, k.kernel)
      for name, value in pairs(k:snapshot()) do
        local knob = data.find("xfs", name)
        if knob.place == "fs" then
          assert.equal(defaults[name], value, name)
        end
      end
    end)
  end)
end)

describe("what is known of F2FS's knobs", function()
  local function has(name, kernel)
    return (data.is_in(assert(data.find("f2fs", name)), kernel))
  end

  it("changes with the kernel", function()
    assert.is_true(has("gc_urgent_high_remaining", "6.1.192"))
    assert.is_false(has("gc_urgent_high_remaining", "6.12.0"))
    assert.is_false(has("gc_remaining_trials", "6.1"))
    assert.is_true(has("gc_remaining_trials", "6.12"))
    assert.is_false(has("gc_urgent", "4.2"))
    assert.is_true(has("gc_idle", "4.2.1"))
    assert.is_true(has("bggc_io_aware", "7.2"))
  end)

  it("has the defaults of small and large volumes", function()
    local large = { main_segments = 4000000, section_segments = 128, reserved_segments = 128 * 210 }
    local small = { main_segments = 1011, section_segments = 1, reserved_segments = 34 }
    local d = knobs.defaults("f2fs", large, "6.1")
    assert.int(d.ipu_policy, 16)
    assert.int(d.reclaim_segments, 4096)
    assert.int(d.min_ssr_sections, 210)
    assert.equal("default", d.alloc_mode)
    d = knobs.defaults("f2fs", small, "6.1")
    assert.int(d.ipu_policy, 129)
    assert.int(d.reclaim_segments, 50)
    assert.int(d.discard_granularity, 1)
    assert.equal("reuse", d.alloc_mode)
  end)

  it("has limits that depend on the geometry", function()
    local knob = data.find("f2fs", "migration_granularity")
    assert.int(data.check(knob, 8, { section_segments = 8 }), 8)
    assert.refuses("EUSAGE", data.check(knob, 9, { section_segments = 8 }))
  end)

  it("has a unit, a release and words for each, and presets that pass its checks", function()
    for _, filesystem in ipairs { "f2fs", "xfs" } do
      for _, knob in ipairs(data.of(filesystem)) do
        assert.is_truthy(knob.since:find "^%d+%.%d+", knob.name)
        assert.is_true(#knob.doc > 5 and #knob.unit < 10, knob.name)
      end
    end
    for name, preset in pairs(require("brim.knobs.presets").LIST) do
      assert(data.check_set(preset.filesystem, preset.knobs, "6.12"))
      assert(#preset.doc > 10, name)
    end
    assert.refuses("EUSAGE", knobs.preset "mial")
  end)
end)

describe("brim knobs", function()
  it("sets for the time of a command, however that ends", function()
    local fake = fake_sysfs.make()
    local file = fake.file "cp_interval"
    local root = "--root=" .. fake.root
    local out, err, status = helper.brim("knobs", root, fake.dir, "cp_interval=7", "cat", file)
    assert.equal(0, status, err)
    assert.equal("7\n", out)
    assert.equal("cp_interval: 60 -> 7\n", err)
    assert.equal("60", held(fake, "cp_interval"))
    local _, _, failed = helper.brim("knobs", root, fake.dir, "--preset=mail", "--", "sh", "-c",
      "test $(cat " .. fake.file "gc_max_sleep_time" .. ") = 90000 && exit 3")
    assert.equal(1, failed)
    assert.equal("60000", held(fake, "gc_max_sleep_time"))
    for signal, expected in pairs { INT = 130, TERM = 143 } do
      local _, interrupted = helper.sh("timeout --preserve-status -s %s 1 %s knobs %s %s "
        .. "cp_interval=7 sleep 31", signal, helper.exe, root, fake.dir)
      assert.equal(expected, interrupted)
      assert.equal("60", held(fake, "cp_interval"))
    end
    assert.equal("", helper.sh "pgrep -fx 'sleep 31'")
  end)

  it("sets for good without a command, and shows", function()
    local fake = fake_sysfs.make()
    local root = "--root=" .. fake.root
    local _, err, status = helper.brim("knobs", root, fake.dir, "cp_interval=7")
    assert.equal(0, status, err)
    assert.equal("7", held(fake, "cp_interval"))
    local out = helper.brim("knobs", root, fake.dir)
    assert.is_truthy(out:find "cp_interval +7 +s +default 60 +0..4294967295 +time after which")
    out = helper.brim("--dry-run", "knobs", root, fake.dir, "cp_interval=9")
    assert.is_truthy(out:find "would set")
    assert.equal("7", held(fake, "cp_interval"))
  end)

  it("says what is wrong in one line, with status 2", function()
    local _, err, status = helper.brim("knobs", "/", "queue.read_ahead=64")
    assert.equal(2, status)
    -- In a chroot / may be on no mount that is listed.
    local is_listed = select(2, helper.sh "findmnt /") == 0
    local says = is_listed and "[^\n]*did you mean 'queue.read_ahead_kb'%?"
      or "/: no mount leads to it"
    assert.is_truthy(err:find("^brim knobs: " .. says .. "\n$"), err)
    _, err, status = helper.brim "knobs"
    assert.equal(2, status)
    assert.is_truthy(err:find "brim knobs PATH", err)
  end)
end)
