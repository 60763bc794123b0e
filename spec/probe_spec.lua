-- Probes: what they give is what the system's files say; one that fails is an event, once.
local brim = require "brim"
local helper = require "spec.helper"

local probe = brim.probe

-- A mounted image of a filesystem with `f(dir, device)`; nil and why where there cannot be one.
local function on(filesystem, f)
  if not helper.is_root() or not helper.has("mkfs." .. filesystem) then
    return nil, "needs root and mkfs." .. filesystem
  end
  local image, dir = helper.path "img", helper.path "mnt"
  helper.must("truncate -s 400m %s && mkfs.%s -q %s && mkdir %s", image, filesystem, image, dir)
  local _, status = helper.sh("mount -o loop %s %s", image, dir)
  if status ~= 0 then
    return nil, "no loop mounts of " .. filesystem .. " here"
  end
  local device = helper.must("findmnt -n -o SOURCE --target %s", dir):match "/dev/(%S+)"
  local ok, why = pcall(f, dir, device)
  helper.must("umount %s", dir)
  assert(ok, why)
  return true
end

describe("the device's counters", function()
  it("are deltas of its line in diskstats", function()
    local file, device = helper.path "diskstats", nil
    local function line(reads, sectors_read, writes, sectors_written, busy_ms)
      helper.write(file, ("   1       0 ram0 9 9 9 9 9 9 9 9 9 9 9\n   DEV x %d 0 %d 0 %d 0 %d 7 0"
        .. " %d 0\n"):format(reads, sectors_read, writes, sectors_written, busy_ms)
        :gsub("DEV", device))
    end
    -- Any block device of this machine will do: its numbers come from the file.
    local name = helper.sh("ls /sys/class/block"):match "^%S+"
    if not name or helper.sh("test -b /dev/%s && echo yes", name) == "" then
      return pending "no block device here"
    end
    device = helper.read("/sys/class/block/" .. name .. "/dev"):gsub("\n", "")
      :gsub(":", "       ")
    local p = assert(probe.device("/dev/" .. name, file))
    line(10, 100, 20, 200, 1000)
    assert.same({}, p.read(1))
    line(11, 102, 25, 300, 1500)
    assert.same({ dev_reads = 1, dev_read_bytes = 1024, dev_writes = 5, dev_write_bytes = 51200,
      dev_busy = 0.25 }, p.read(3))
    helper.write(file, "")
    local values, err = p.read(4)
    assert.is_nil(values)
    assert.equal("ENODEV", err.code)
    line(12, 104, 25, 300, 1500)
    assert.same({}, p.read(5))
    line(12, 104, 26, 308, 1500)
    assert.equal(4096, p.read(6).dev_write_bytes)
  end)

  it("are not there on tmpfs", function()
    if helper.sh "stat -f -c %T /dev/shm" ~= "tmpfs\n" then
      return pending "no tmpfs at /dev/shm"
    end
    assert.refuses("ENODEV", probe.device "/dev/shm")
  end)
end)

describe("memory", function()
  it("is what meminfo says, in bytes", function()
    local file = helper.path "meminfo"
    helper.write(file, "MemTotal: 9 kB\nDirty:   120 kB\nWriteback:   8 kB\nWritebackTmp: 7 kB\n")
    assert.same({ dirty_bytes = 120 << 10, writeback_bytes = 8 << 10 }, probe.memory(file).read(0))
    helper.write(file, "nothing")
    local values, err = probe.memory(file).read(0)
    assert.is_nil(values)
    assert.equal("EILSEQ", err.code)
    assert.is_number(probe.memory().read(0).dirty_bytes)
  end)
end)

describe("a number in a file", function()
  it("is a level or a delta, by pattern and scale", function()
    local file = helper.path "counter"
    helper.write(file, "a 5\nlog 7 9\n")
    local level = probe.file { name = "x", file = file }
    local delta = probe.file { name = "x", file = file, pattern = "\nlog %d+ (%d+)", delta = true,
      scale = 512, unit = "bytes", doc = "log" }
    assert.same({ x = { unit = "bytes", doc = "log" } }, delta.columns)
    assert.same({ x = 5 }, level.read(0))
    assert.same({}, delta.read(0))
    helper.write(file, "a -6\nlog 7 11\n")
    assert.same({ x = -6 }, level.read(1))
    assert.same({ x = 1024 }, delta.read(1))
    helper.write(file, "")
    assert.refuses("EILSEQ", delta.read(2))
    os.remove(file)
    assert.refuses("ENOENT", level.read(2))
    assert.error_matches(function() probe.file { name = "x" } end, "missing option 'file'")
  end)
end)

describe("probes together", function()
  it("give columns, and one event for each that begins to fail", function()
    local is_broken = true
    local p = probe.new(nil, {
      a = function(now_s) return now_s * 2 end,
      b = function() return { x = 1, y = 2.5, z = "no number" } end,
      c = function() return is_broken and error "out of order" or 3 end,
      d = function() return nil, "not today" end,
      e = function() return "text" end,
      f = probe.custom({ f1 = { unit = "1", doc = "x" } }, function() return { f1 = 4 } end),
    })
    local values, events = p:read(5)
    assert.same({ a = 10, b_x = 1, b_y = 2.5, f1 = 4 }, values)
    assert.same({ "c", "d", "e" }, { events[1].probe, events[2].probe, events[3].probe })
    assert.matches("out of order", events[1].message)
    assert.equal("not today", events[2].message)
    assert.equal("EILSEQ", events[3].code)
    assert.equal("error", events[1].kind)
    assert.equal(0, #select(2, p:read(6)))
    is_broken = false
    assert.equal(3, p:read(7).c)
    is_broken = true
    assert.equal("c", select(2, p:read(8))[1].probe)
    assert.equal("1", p.columns.f1.unit)
    -- What it tells can be written as it is.
    local path = helper.path "t.jsonl"
    local t <close> = assert(brim.timeline.create(path, { columns = p.columns }))
    assert(t:event(events[1]))
    assert(t:sample(values))
    assert.equal(2.5, assert(brim.timeline.read(path)).samples[1].b_y)
  end)

  it("refuse what is no probe", function()
    assert.error_matches(function() probe.new(nil, { a = 5 }) end, "probe 'a': expected a function")
    assert.error_matches(function() probe.new(nil, { print }) end, "probes have names")
  end)

  for filesystem, column in pairs { xfs = "xfs_alloc_blocks", ext4 = "ext4_write_bytes",
    btrfs = "btrfs_data_used_bytes" } do
    it(("#root count what %s does"):format(filesystem), function()
      local done, why = on(filesystem, function(dir, device)
        local p = probe.new(dir)
        assert.is_table(p.columns[column])
        assert.is_table(p.columns.dev_write_bytes)
        p:read(0)
        helper.must("dd if=/dev/urandom of=%s/x bs=1M count=16 status=none && sync -f %s", dir, dir)
        local values, events = p:read(1)
        assert.equal(0, #events)
        assert.is_true(values.dev_write_bytes >= 16 << 20, device)
        assert.is_true(values.dev_write_bytes < 64 << 20, device)
        local least = column:find "blocks" and 4096 or 16 << 20
        assert.is_true(values[column] >= least,
          ("%s is %s"):format(column, tostring(values[column])))
        assert.is_number(values.dirty_bytes)
      end)
      if not done then
        return pending(why)
      end
    end)
  end
end)
