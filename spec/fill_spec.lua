-- brim.fill on real filesystems, loop-mounted: levels are met, churn keeps its band, a full one is
-- really full, every byte is what the seed says. #root
local brim = require "brim"
local core = require "brim.core"
local devices = require "spec.devices"
local fills = require "spec.fills"
local reserve = require "brim.fill.reserve"
local helper = require "spec.helper"

local LEVELS <const> = { 0.5, 0.8, 0.9, 0.95, 0.97, 0.99 }
local NEAR <const> = 0.005 -- what a level may be missed by

local function workload(o)
  o = o or {}
  o.seed = o.seed or 4
  o.streams = o.streams or 2
  o.sizes = o.sizes or brim.dist.log_uniform("4k", "2m")
  return brim.fill.new(o)
end

local function assert_sound(dir, expected_short)
  local v = assert(brim.fill.verify(dir))
  assert.is_true(v.ok, v.text)
  assert.int(v.unjudged, 0)
  if expected_short then
    assert.int(v.short_files, expected_short)
  end
  return v
end

describe("what a filesystem keeps back #root", function()
  after_each(devices.release)

  it("is told of the btrfs that was asked about, whatever others there are", function()
    if not helper.has "mkfs.btrfs" then
      return pending "no mkfs.btrfs"
    end
    local seen = {}
    for i, size in ipairs { "600m", "1g" } do
      local dir = fills.mount { name = "btrfs" .. i, size = size, mkfs = "mkfs.btrfs -q -f" }
      local uuid = helper.must("findmnt -no UUID %s", dir):match "%S+"
      local r = reserve.explain(dir, core.usage(dir))
      assert.equal("btrfs", r.filesystem)
      seen[i] = r.metadata_bytes
      assert.int(r.metadata_bytes, tonumber(helper.must(
        "cat /sys/fs/btrfs/%s/allocation/metadata/total_bytes", uuid)))
    end
    assert.not_equal(seen[1], seen[2])
  end)
end)

describe("brim.fill #root", function()
  after_each(devices.release)

  for _, fs in ipairs(fills.FILESYSTEMS) do
    it(("meets levels and fills %s to the brim"):format(fs.name), function()
      if not fills.has(fs) then
        return pending("no " .. fs.mkfs:match "^%S+")
      end
      local dir, path = fills.mount(fs), helper.path "timeline"
      local w = workload()
      for _, level in ipairs(LEVELS) do
        w:fill(level)
      end
      w:fill "enospc"
      local r = assert(w:run(dir, { timeline = path, sample_s = 0.05 }))
      for i, level in ipairs(LEVELS) do
        local p = r.phases[i]
        assert.is_nil(p.stopped, p.name)
        assert.is_true(math.abs(p.fullness - level) <= NEAR, tostring(r))
      end
      assert.is_true(math.abs(fills.fullness(dir) - r.fullness) < 1e-3)
      assert.is_true(r.refused > 0 or r.fullness == 1)
      assert.is_false(fills.fits_one_block(dir))
      assert.same({}, fills.backwards(path))
      assert.is_true(fills.samples(path, "^fill") > 5)
      assert.equal(fs.name, r.reserve.filesystem)
      assert_sound(dir, r.short_files)
    end)
  end

  it("shows the curve in an example of 15 lines", function()
    local text = helper.read "examples/near_full.lua"
    assert.is_true(select(2, text:gsub("\n", "")) <= 15)
    local dir, out = fills.mount { name = "tmpfs", size = "150m" }, helper.path "out"
    helper.must("mkdir %s && %s run examples/near_full.lua %s 0.1 %s", out, helper.exe, dir, out)
    local run = assert(brim.timeline.read(out .. "/near-full.jsonl"))
    assert.int(#run.phases, 14)
    -- Churn at the end makes room for itself: how much depends on the files it is about.
    local most = 0
    for _, sample in ipairs(run.samples) do
      most = math.max(most, sample.synced_fullness or 0)
    end
    assert.is_true(most > 0.99)
    assert.is_true(fills.fullness(dir) > 0.95)
    assert.truthy(helper.read(out .. "/near-full.html"):find "<svg")
  end)

  it("holds the fullness within its band, corrections logged", function()
    local dir = fills.mount { name = "xfs", size = "1g", mkfs = "mkfs.xfs -q -f" }
    local path = helper.path "timeline"
    local w = workload { sizes = brim.dist.log_uniform("4k", "1m") }:fill "80%"
    w:churn { seconds = 2.5, feedback_s = 0.5 }
    local r = assert(w:run(dir, { timeline = path, sample_s = 0.2 }))
    local churn = r.phases[2]
    assert.equal("churn at 80 %", churn.name)
    assert.is_true(churn.lowest > 0.795 and churn.highest < 0.805,
      ("%.4f .. %.4f"):format(churn.lowest, churn.highest))
    assert.is_true(churn.written_bytes > 50 << 20)
    local feedback = 0
    for _, e in ipairs(brim.timeline.read(path).events) do
      feedback = feedback + (e.kind == "feedback" and 1 or 0)
    end
    assert.is_true(feedback > 3)
    assert_sound(dir)
  end)

  it("churns on a full filesystem, and the seed still says every byte", function()
    for _, fs in ipairs { fills.FILESYSTEMS[1], { name = "tmpfs", size = "100m" } } do
      local dir = fills.mount(fs)
      local w = workload { seed = 9 }:fill "enospc"
      w:churn { seconds = 0.7, append = 15, truncate = 15 }:fill "enospc"
      local r = assert(w:run(dir))
      assert.is_true(r.phases[2].written_bytes > 10 << 20, fs.name)
      assert.is_false(fills.fits_one_block(dir))
      assert_sound(dir, r.short_files)
    end
  end)

  it("tells what a quota refuses", function()
    if not helper.has "btrfs" then
      return pending "no btrfs"
    end
    local dir = fills.mount(fills.FILESYSTEMS[3])
    local own = dir .. "/own"
    helper.must("btrfs subvolume create %s && btrfs quota enable %s && btrfs qgroup limit 60m %s",
      own, dir, own)
    local r = assert(workload { sizes = "64k" }:fill("50%"):run(own))
    assert.equal("EDQUOT", r.phases[1].stopped)
    assert.is_true(math.abs(r.live_bytes - (60 << 20)) < 8 << 20, tostring(r))
    assert.is_true(r.refused > 0 and r.ok)
    assert_sound(own, r.short_files)
  end)

  it("leaves the margin that it is told to leave", function()
    local dir = fills.mount { name = "tmpfs", size = "100m" }
    local r = assert(workload { sizes = "30k" }:fill("enospc"):run(dir, { margin = "20m" }))
    assert.is_true(math.abs(r.reserve.left_bytes - (20 << 20)) < 1 << 20, tostring(r))
    assert.refuses("ERANGE", workload():fill("90%"):run(fills.mount { name = "tmpfs",
      size = "100m" }, { margin = "20m" }))
  end)

  it("fills to a number of files, to bytes, and to free space; removes all of it", function()
    local dir = fills.mount { name = "tmpfs", size = "200m" }
    local w = workload { sizes = "20k" }:fill { files = 500 }
    w:fill { bytes = "40m" }
    w:fill { free = "100m" }
    local r = assert(w:run(dir))
    assert.is_true(r.phases[1].files >= 500 and r.phases[1].files <= 501)
    assert.is_true(math.abs(r.phases[2].live_bytes - (40 << 20)) <= 40 << 10)
    assert.is_true(math.abs(r.fullness - 0.5) < NEAR)
    assert(brim.fill.clean(dir))
    assert.equal("", helper.must("ls -A %s", dir))
  end)
end)
