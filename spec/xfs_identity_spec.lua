-- Byte identity: `brim mkfs.xfs` against mkfs.xfs 6.1 with the same UUID and options, whole images,
-- holes included (see xfs_images). Random option sets come from a seed; for a longer campaign:
--   BRIM_XFS_SEED=7 BRIM_XFS_CASES=1500 make test TESTS=spec/xfs_identity_spec.lua
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local images_of = require "spec.xfs_images"
local oracles = require "spec.oracles"

local SEED <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_SEED" or 20180905))
local CASES <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_CASES" or 60))

local GIB <const> = 1 << 30

describe("identity with mkfs.xfs", function()
  local oracle, missing = oracles.of("xfs", "6.1")
  if not oracle then
    pending(missing)
    return
  end

  local judge, workspace

  setup(function()
    judge = images_of.judge(oracle, "6.1")
    workspace = judge.workspace
  end)

  teardown(function()
    judge:close()
  end)

  -- Whether both made anything.
  local function compare(config, label, must_work)
    local made, why = judge:compare(config, label, must_work)
    return made == nil and pending(why) or made
  end

  for _, config in ipairs(configs.IDENTITY) do
    local label = configs.describe(config)
    it(label, function()
      compare(config, label, true)
    end)
  end

  for _, row in ipairs(configs.OVER) do
    it(("%d GiB %s over %s"):format(row[1] >> 30, row[3], row[2]), function()
      judge:compare_over(table.unpack(row))
    end)
  end

  -- What other filesystems and RAID leave at the end of a device must go, also behind a filesystem
  -- that is smaller; its own end is left alone.
  it("over signatures at the end of the device, 1 GiB of 2 GiB", function()
    local images = { reference = workspace:path "reference", brim = workspace:path "brim" }
    local config = { 2 * GIB, "-d size=1g" }
    for who, image in pairs(images) do
      helper.must("truncate -s 2G %s", image)
      for _, at in ipairs { GIB - 256 * 1024, 2 * GIB - 256 * 1024 } do
        helper.must("yes brim | head -c 256K | dd of=%s bs=64K seek=%d conv=notrunc status=none",
          image, at >> 16)
      end
      helper.must(judge:command(config), judge.programs[who], image)
    end
    judge:compare_images(images, assert(judge:geometry(config)), config[2])
    os.remove(images.reference)
    os.remove(images.brim)
  end)

  -- Straight onto block devices: the sectors are theirs, what they held is discarded.
  for _, row in ipairs {
    { 4 * GIB, "", 512 }, { 4 * GIB, "", 4096 }, { 4 * GIB, "-K -b size=64k -m rmapbt=1", 4096 },
    { 4 * GIB, "-s size=4k", 512 }, { 40 * GIB, "-d su=64k,sw=3 -l agnum=0", 4096 },
  } do
    local size_bytes, words, sector_bytes = table.unpack(row)
    it(("a block device of %d GiB with sectors of %d bytes %s #root"):format(size_bytes >> 30,
      sector_bytes, words), function()
      if not judge.scratch then
        return pending "needs root and loop devices"
      end
      local config = { size_bytes, words }
      local device = { size_bytes = size_bytes, is_file = false, sector_bytes = sector_bytes }
      local g = assert(judge:geometry(config, device))
      local older = { size_bytes, "-d agcount=33" }
      local old = words:find "-K" and assert(judge:geometry(older, device))
      local images = { reference = workspace:path "reference", brim = workspace:path "brim" }
      for who, image in pairs(images) do
        helper.must("truncate -s %d %s", size_bytes, image)
        local loop <close> = configs.loop(image, sector_bytes)
        helper.must("%s -q -m uuid=%s -d agcount=33 %s", oracle.mkfs,
          images_of.OLD_UUID, loop.device)
        helper.must(judge:command(config), judge.programs[who], loop.device)
      end
      judge:compare_images(images, g, words, old)
      os.remove(images.reference)
      os.remove(images.brim)
    end)
  end

  -- Groups with next to nothing beside the log, of each size down to nothing.
  for _, words in ipairs { "", "-l su=32k", "-l su=12k", "-m rmapbt=1", "-l su=32k -m rmapbt=1",
    "-l su=64k -m reflink=0,finobt=0" } do
    it("a log in a last group that it nearly fills " .. words, function()
      judge:compare_nearly_full(words)
    end)
  end

  it(("random option sets of seed %d"):format(SEED), function()
    judge:compare_random(SEED, CASES)
  end)
end)
