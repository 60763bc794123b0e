-- Byte identity: `brim mkfs.xfs` against mkfs.xfs 6.1 with the same UUID and options, whole images,
-- holes included. Only what mkfs.xfs takes from the clock may differ: three times of three inodes,
-- and with them the inodes' CRCs. Random option sets come from a seed; for a longer campaign:
--   BRIM_XFS_SEED=7 BRIM_XFS_CASES=1500 make test TESTS=spec/xfs_identity_spec.lua
local configs = require "spec.xfs_configs"
local geometry = require "brim.xfs.geometry"
local helper = require "spec.helper"
local ondisk = require "brim.xfs.ondisk"
local options = require "brim.xfs.options"

local SEED <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_SEED" or 20180905))
local CASES <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_CASES" or 60))
local TIMED_INODES <const> = 3 -- root directory, realtime bitmap and summary
-- tmpfs cannot zero a range without writing it, so that a log takes memory there; on XFS it does
-- not, but reading the holes between groups does.
local SMALL_LOG_BYTES <const>, MANY_GROUPS <const> = 130 << 20, 200

local GIB <const> = 1 << 30
local OLD_UUID <const> = "89abcdef-0123-4567-89ab-cdef01234567"

local function geometry_of(config, device)
  local words = {}
  for word in (config[2] .. " target"):gmatch "%S+" do
    words[#words + 1] = word
  end
  local o, err = options.parse(words)
  if not o then
    return nil, err
  end
  o.unsupported = o.unsupported or config.env
  return geometry.compute(o, device or { size_bytes = config[1], is_file = true })
end

local function inode_offset(g, n)
  return g.root_ino + n << g.inode_log2
end

-- What the clock decides, as ranges for imgcmp.
local function clock_ranges(g)
  local ranges = {}
  local function add(off_bytes, ...)
    for _, name in ipairs { ... } do
      local field = ondisk.inode:field(name)
      ranges[#ranges + 1] = ("%d:%d"):format(off_bytes + field.off_bytes, field.width_bytes)
    end
  end
  for n = 0, TIMED_INODES - 1 do
    add(inode_offset(g, n), "mtime", "ctime", "crtime", "crc")
  end
  return table.concat(ranges, " ")
end

local function inode_at(path, g, n)
  local file <close> = assert(io.open(path, "rb"))
  assert(file:seek("set", inode_offset(g, n)))
  return ondisk.inode:decode(file:read(g.inode_bytes), 0, g.inode_bytes)
end

describe("identity with mkfs.xfs", function()
  if not helper.has "mkfs.xfs" then
    pending "mkfs.xfs is not installed"
    return
  end

  local imgcmp, workspace, scratch

  setup(function()
    imgcmp = helper.path "imgcmp"
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", imgcmp)
    workspace = configs.workspace "identity"
    scratch = helper.is_root() and workspace:mount_scratch() or nil
  end)

  teardown(function()
    workspace:close()
  end)

  local function directory(g)
    local log_bytes = g and g.log_blocks << g.block_log2 or 0
    if scratch and (log_bytes > SMALL_LOG_BYTES or g.ag_count < MANY_GROUPS) then
      return scratch.dir
    elseif log_bytes > 1 << 30 then
      return nil, ("needs root, or else %d MiB of memory for the log"):format(log_bytes >> 20)
    end
    return workspace.dir
  end

  local brim_words = helper.quote(helper.exe) .. " mkfs.xfs"

  -- The command line of both, as a format for the program and the target.
  local function command_of(config)
    return ("%s %%s -q -f -m uuid=%s %s %%s"):format(config.env and
      "env " .. configs.TEST_SUITE or "", configs.UUID, config[2])
  end

  -- Makes both images; the exit status and what was said of each.
  local function make(config, dir)
    local images = { reference = dir .. "/reference", brim = dir .. "/brim" }
    helper.must("rm -f %s %s && truncate -s %d %s %s", images.reference, images.brim, config[1],
      images.reference, images.brim)
    local command, said, status = command_of(config), {}, {}
    said.reference, status.reference = helper.sh(command, "mkfs.xfs", images.reference)
    said.brim, status.brim = helper.sh(command, brim_words, images.brim)
    return images, status, said
  end

  -- `old`: a geometry whose inodes are still there, too.
  local function compare_images(images, g, label, old)
    local said, status = helper.sh("%s %s %s %s %s", imgcmp, images.reference, images.brim,
      clock_ranges(g), old and clock_ranges(old) or "")
    assert.equal(0, status, ("%s\noffset: reference, brim\n%s"):format(label, said))
    for n = 0, TIMED_INODES - 1 do
      local inode, intact = inode_at(images.brim, g, n)
      assert.is_true(intact, label .. ": inode CRC")
      assert.int(inode.mtime, inode.ctime)
      assert.int(inode.mtime, inode.crtime)
    end
  end

  -- Little more than a log in its group, and before it a hole of its alignment: the reference then
  -- loses the hole's records where the log ends with the group, or has two records in the wrong
  -- order where too little is left for a free list. xfs_repair says so, and finds ours right.
  local function is_reference_wrong(g)
    local length_blocks = g.log_ag == g.ag_count - 1 and g.last_ag_blocks or g.ag_blocks
    local hole_blocks = g.log_agbno - g.prealloc_blocks
    local tail_blocks = length_blocks - g.log_agbno - g.log_blocks
    return g.log_ag_agfl_count == 0 and hole_blocks > tail_blocks
  end

  local function assert_only_reference_wrong(images, label)
    local said, status = helper.sh("xfs_repair -n %s", images.brim)
    assert.equal(0, status, ("%s\n%s"):format(label, said))
    assert.is_not.equal(0, select(2, helper.sh("xfs_repair -n %s", images.reference)), label)
  end

  -- Compares what both make of it; whether they made anything. `must_work`: refusing is a failure.
  local function compare(config, label, must_work)
    local g, err = geometry_of(config)
    local dir, why = directory(g or { log_blocks = 0, block_log2 = 0, ag_count = 1 })
    if not dir then
      return pending(why)
    end
    local images, status, said = make(config, dir)
    local both = ("%s\nmkfs.xfs ended with %d: %s\nbrim ended with %d: %s"):format(label,
      status.reference, said.reference, status.brim, said.brim)
    if g then
      assert.equal(0, status.reference, both)
      assert.equal(0, status.brim, both)
      if is_reference_wrong(g) then
        assert_only_reference_wrong(images, label)
      else
        compare_images(images, g, label)
      end
    else
      assert.is_falsy(must_work and err.message, both)
      assert.is_not.equal(0, status.reference, both)
      assert.equal(2, status.brim, both)
    end
    os.remove(images.reference)
    os.remove(images.brim)
    return g ~= nil
  end

  for _, config in ipairs(configs.IDENTITY) do
    local label = configs.describe(config)
    it(label, function()
      compare(config, label, true)
    end)
  end

  -- Over an older XFS, whose superblock copies must go while the rest of it stays.
  for _, row in ipairs {
    { 4 * GIB, "-d agcount=8", "" }, { 4 * GIB, "", "-d agcount=9 -m rmapbt=1" },
    { 4 * GIB, "-d agcount=31 -b size=1k", "-s size=4k" }, { 40 * GIB, "-d agcount=300", "" },
    { 4 * GIB, "-b size=64k -L old", "-L new" }, { 9 * GIB, "-d size=8g,agcount=7", "-d size=1g" },
  } do
    local size_bytes, older, newer = table.unpack(row)
    it(("%d GiB %s over %s"):format(size_bytes >> 30, newer, older), function()
      local config = { size_bytes, newer .. " -K" }
      local g = assert(geometry_of(config))
      local images = { reference = workspace:path "reference", brim = workspace:path "brim" }
      for who, image in pairs(images) do
        helper.must("truncate -s %d %s && mkfs.xfs -q -m uuid=%s %s %s", size_bytes, image,
          OLD_UUID, older, image)
        helper.must(command_of(config), who == "brim" and brim_words or "mkfs.xfs", image)
      end
      -- Both made the older one at another time.
      local old = assert(geometry_of { size_bytes, older })
      compare_images(images, g, older, old.root_ino ~= g.root_ino and old)
      os.remove(images.reference)
      os.remove(images.brim)
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
      helper.must(command_of(config), who == "brim" and brim_words or "mkfs.xfs", image)
    end
    compare_images(images, assert(geometry_of(config)), config[2])
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
      if not scratch then
        return pending "needs root and loop devices"
      end
      local config = { size_bytes, words }
      local device = { size_bytes = size_bytes, is_file = false, sector_bytes = sector_bytes }
      local g = assert(geometry_of(config, device))
      local old = words:find "-K" and assert(geometry_of({ size_bytes, "-d agcount=33" }, device))
      local images = { reference = workspace:path "reference", brim = workspace:path "brim" }
      for who, image in pairs(images) do
        helper.must("truncate -s %d %s", size_bytes, image)
        local loop <close> = configs.loop(image, sector_bytes)
        helper.must("mkfs.xfs -q -m uuid=%s -d agcount=33 %s", OLD_UUID, loop.device)
        helper.must(command_of(config), who == "brim" and brim_words or "mkfs.xfs", loop.device)
      end
      compare_images(images, g, words, old)
      os.remove(images.reference)
      os.remove(images.brim)
    end)
  end

  -- Groups with next to nothing beside the log, of each size down to nothing.
  for _, words in ipairs { "", "-l su=32k", "-l su=12k", "-m rmapbt=1", "-l su=32k -m rmapbt=1",
    "-l su=64k -m reflink=0,finobt=0" } do
    it("a log in a last group that it nearly fills " .. words, function()
      local all = words .. " -d agsize=128m -l agnum=3,size="
        .. (words:find "12k" and "16386b" or "16384b")
      local made = 0
      for rest_blocks = 2, 36 do
        local config = { 3 * (128 << 20) + (16384 + rest_blocks) * 4096, all }
        made = made + (compare(config, configs.describe(config)) and 1 or 0)
      end
      assert.is_true(made > 15)
    end)
  end

  it(("random option sets of seed %d"):format(SEED), function()
    local made, failures = 0, {}
    for number = 1, CASES do
      local config = configs.random(SEED, number)
      local label = ("seed %d number %d: %s"):format(SEED, number, configs.describe(config))
      local ok, result = pcall(compare, config, label)
      made = made + (result == true and 1 or 0)
      failures[#failures + 1] = not ok and tostring(result.message or result) or nil
    end
    print(("# seed %d: %d random option sets, %d images compared, the rest refused by both"):format(
      SEED, CASES, made))
    assert.equal("", table.concat(failures, "\n\n"))
    assert.is_true(made >= CASES // 2, ("only %d of %d are valid"):format(made, CASES))
  end)
end)
