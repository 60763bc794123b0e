-- Probes of F2FS on texts in the form the kernel writes them, made here: what they count is what
-- was put in.
local brim = require "brim"
local fake_sysfs = require "spec.fake_sysfs"
local helper = require "spec.helper"
local parse = require "brim.f2fs.probe.parse"
local probe = brim.f2fs.probe

-- iostat_info as 6.1 has it (bytes alone) or as later kernels have it.
local function iostat(values, has_counts)
  local lines = { "time:\t\t1700000000      " }
  if has_counts then
    lines[2] = "\t\t\tio_bytes         count            avg_bytes       "
  end
  for _, part in ipairs { "WRITE", "READ", "OTHER" } do
    lines[#lines + 1] = "[" .. part .. "]"
    for _, name in ipairs(values[part].order) do
      local n = values[part][name]
      lines[#lines + 1] = has_counts
        and ("%-23s %-16d %-16d %-16d"):format(name .. ":", n, 3, n // 3)
        or ("%s:\t%-16d"):format(name, n)
    end
    if part == "READ" and has_counts then
      lines[#lines + 1] = "fs read folio order:    5 0 0 1"
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

local function written(app, data, node, gc, cp)
  return { WRITE = { order = { "app buffered data", "app direct data", "fs data", "fs node",
    "fs gc data", "fs cp node" }, ["app buffered data"] = app, ["app direct data"] = 0,
    ["fs data"] = data, ["fs node"] = node, ["fs gc data"] = gc, ["fs cp node"] = cp },
    READ = { order = { "fs data" }, ["fs data"] = 999 },
    OTHER = { order = { "fs discard" }, ["fs discard"] = 0 } }
end

-- debugfs' status of two filesystems, with what changes between samples.
local function status(ssr, lfs, prefree, gc)
  local function of(name, n)
    return ("\n=====[ partition info(%s). #0, RW, CP: Good]=====\n[SBI: unfolded]\n"
      .. "[SB: 1] [CP: 2] [SIT: 2] [NAT: 4] [SSA: 1] [MAIN: 502(OverProv:31 Resv:25)]\n\n"
      .. "Utilization: 71%% (170000 valid blocks, 5 discard blocks)\n"
      .. "  - Node: 9 (Inode: 8, Other: 1)\n  - Data: 12\n\n"
      .. "Main area: 502 segs, 502 secs 502 zones\n  - Valid: 300\n  - Dirty: 160\n"
      .. "  - Prefree: %d\n  - Free: 32 (32)\n\nCP calls: 7 (BG: 2)\nGC calls: %d (gc_thread: 3)\n"
      .. "Try to move 400 blocks (BG: 300)\nBG skip : IO: 4, Other: 1\n  - nodes:   12 in   40\n"
      .. "  - data:   34 in files:   2\nIPU: 5 blocks\nSSR: %d blocks in 3 segments\n"
      .. "LFS: %d blocks in 9 segments\n\nBDF: 88, avg. vblocks: 300\n"):format(name, n[3], n[4],
      n[1], n[2])
  end
  return of("other0", { 1, 2, 3, 4 }) .. of("fake0", { ssr, lfs, prefree, gc })
end

describe("segment_info", function()
  it("is counted by kind and type", function()
    local fake = fake_sysfs.make()
    local text = helper.read(fake_sysfs.segments(fake, 1011, 1) .. "/segment_info")
    local s = assert(parse.segments(text))
    -- Of each ten: one empty, one full of warm nodes, eight of warm data; and 1010, an empty one.
    assert.int(s.count, 1011)
    assert.int(s.empty, 102)
    assert.int(s.full, 101)
    assert.int(s.dirty, 808)
    assert.int(s.types.warm_node, 101 * 512)
    assert.int(s.types.warm_data, 80800)
    assert.int(s.valid_blocks, 101 * 512 + 80800)
    assert.is_nil(parse.segments(text, 1000))
    assert.is_nil(parse.segments "")
  end)

  it("has marked sections beside it", function()
    assert.int(parse.victims("format: victim_secmap bitmaps\n0         0 1 0 1 0 0 0 0 0 0\n"
      .. "10        1 0\n"), 3)
    assert.is_nil(parse.victims "no")
  end)

  it("has holes in its bits", function()
    local function line(i, valid, bits)
      return ("%-10d1|%-3d|%s| 1f\n"):format(i, valid, bits)
    end
    local text = "format: segment_type|valid_blocks|bitmaps|mtime\n"
      .. "segment_type(0:HD, 1:WD, 2:CD, 3:HN, 4:WN, 5:CN)\n"
      .. line(0, 0, (" 00"):rep(64)) .. line(1, 512, (" ff"):rep(64))
      .. line(2, 502, (" ff"):rep(60) .. " f0 3f c3 ff")
    -- 11110000 00111111 11000011: one hole of 6 over a byte's border, one of 4.
    assert.same({ count = 2, blocks = 10 }, parse.holes(text))
    assert.is_nil(parse.holes "")
  end)
end)

describe("iostat_info", function()
  it("is read in both forms", function()
    for _, has_counts in ipairs { false, true } do
      local io = assert(parse.iostat(iostat(written(100, 90, 20, 10, 5), has_counts)))
      assert.int(io["write app buffered data"], 100)
      assert.int(io["write fs data"], 90)
      assert.int(io["read fs data"], 999)
      assert.int(io["other fs discard"], 0)
    end
    assert.is_nil(parse.iostat "")
  end)
end)

describe("status of debugfs", function()
  it("is that of the filesystem asked for", function()
    local s = assert(parse.status(status(10, 20, 7, 9), "fake0"))
    assert.int(s.prefree, 7)
    assert.int(s.ssr_blocks, 10)
    assert.int(s.lfs_blocks, 20)
    assert.int(s.gc_calls, 9)
    assert.int(s.utilization_percent, 71)
    assert.int(s.overprovision, 31)
    assert.int(s.dirty_data, 34)
    assert.int(parse.status(status(10, 20, 7, 9), "other0").prefree, 3)
    assert.is_nil(parse.status(status(1, 1, 1, 1), "sda"))
  end)
end)

describe("probes of an F2FS", function()
  local function set_up()
    local fake = fake_sysfs.make()
    local dir = fake_sysfs.segments(fake, 1011, 1)
    helper.must("mkdir -p %s/sys/kernel/debug/f2fs", fake.root)
    return fake, dir .. "/iostat_info", fake.root .. "/sys/kernel/debug/f2fs/status"
  end

  it("give columns, differences and what follows from them", function()
    local fake, io, debug = set_up()
    helper.write(io, iostat(written(1000, 1000, 0, 0, 0), true))
    helper.write(debug, status(100, 300, 7, 9))
    local own = assert(probe.probes(fake.dir, { sysfs = fake.o.sysfs, proc = fake.o.proc,
      device = "fake0" }))
    local all = brim.probe.new(nil, own)
    assert.equal("1", all.columns.f2fs_write_amplification.unit)
    local first, events = all:read(0)
    assert.same({}, events)
    assert.equal(808, first.f2fs_seg_dirty)
    assert.equal(102 - 60, first.f2fs_seg_prefree)
    assert.equal(100 / 512, first.f2fs_dirty_valid)
    assert.equal(1, first.f2fs_victims)
    assert.equal(7, first.f2fs_prefree)
    assert.is_nil(first.f2fs_write_amplification)
    helper.write(io, iostat(written(1400, 1400, 100, 240, 60), true))
    helper.write(debug, status(400, 400, 0, 11))
    local second = all:read(1)
    assert.equal(2, second.f2fs_write_amplification)
    assert.equal(240, second.f2fs_gc_bytes)
    assert.equal(0.75, second.f2fs_ssr_share)
    assert.equal(2, second.f2fs_gc_calls)
    assert.equal(0.71, second.f2fs_utilization)
  end)

  it("make no columns of what is not there, and one event of what goes away", function()
    local fake, io = set_up()
    helper.write(io, "")
    local own = assert(probe.probes(fake.dir, { sysfs = fake.o.sysfs, proc = fake.o.proc,
      device = "fake0", most_segments = 1000 }))
    assert.is_nil(own.f2fs_iostat)
    assert.is_nil(own.f2fs_status)
    assert.is_nil(own.f2fs_segments)
    own = assert(probe.probes(fake.dir, { sysfs = fake.o.sysfs, proc = fake.o.proc,
      device = "fake0" }))
    assert.is_nil(own.f2fs_holes)
    os.remove(fake.root .. "/proc/fs/f2fs/fake0/segment_info")
    local all = brim.probe.new(nil, own)
    local _, events = all:read(0)
    assert.equal(1, #events)
    assert.equal("EILSEQ", events[1].code)
    _, events = all:read(1)
    assert.same({}, events)
  end)

  it("are refused where no F2FS is", function()
    local own, err = probe.probes "/"
    if own then
      return pending "the root is an F2FS here"
    end
    assert.is_true(err.usage)
  end)
end)
