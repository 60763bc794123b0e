-- Byte identity with mkfs.xfs 6.13 and 7.2, as xfs_identity_spec has it with 6.1: whole images,
-- holes included. Of the configurations there every release takes its share, and has its own.
-- For all of them, and longer random campaigns:
--   BRIM_XFS_ALL=1 BRIM_XFS_SEED=7 BRIM_XFS_CASES=1500 make test TESTS=spec/xfs_releases_spec.lua
local brim = require "brim"
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local images_of = require "spec.xfs_images"
local oracles = require "spec.oracles"

local ALL <const> = os.getenv "BRIM_XFS_ALL" ~= nil
local SEED <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_SEED" or 20180905))
local CASES <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_CASES" or 15))
local SHARE <const> = 10 -- one in so many

local MIB <const>, GIB <const>, TIB <const>, PIB <const> = 1 << 20, 1 << 30, 1 << 40, 1 << 50

-- What is new, for each release: size of the target, options.
local NEW <const> = {
  { 300 * MIB, "" },
  { PIB, "" },
  { 16 * PIB, "-l size=64m" },
  { 2 * GIB, "-n parent=0" },
  { 2 * GIB, "-n parent=1" },
  { 2 * GIB, "-n parent=1 -i exchange=0" },
  { 2 * GIB, "-n parent=0 -i exchange=1" },
  { 2 * GIB, "-m rmapbt=0" },
  { 2 * GIB, "-m rmapbt=0,reflink=0 -i nrext64=0" },
  { 2 * GIB, "-m rmapbt=0,reflink=0,finobt=0 -n parent=1" },
  { 2 * GIB, "-m reflink=0 -n parent=1" },
  { 2 * GIB, "-m autofsck=none" },
  { 2 * GIB, "-m autofsck=check" },
  { 2 * GIB, "-m autofsck=optimize -i size=1024" },
  { 2 * GIB, "-m autofsck -i size=2048" },
  { 2 * GIB, "-m autofsck=repair,rmapbt=0 -n parent=0" },
  { 2 * GIB, "-m metadir=0,uquota=0" },
  { 3 * GIB, "-l concurrency=0" },
  { 3 * GIB, "-l concurrency=7" },
  { 300 * GIB, "-l concurrency=64" },
  { GIB - 4096, "-l concurrency=7" },
  { 100 * GIB, "-d concurrency=7" },
  { 100 * GIB, "-d concurrency=17,su=64k,sw=3" },
  { 100 * GIB, "-d concurrency=100" },
  { 8 * TIB, "-d concurrency=3" },
  { 3 * TIB, "-d concurrency=200 -b size=1k" },
  { 3 * GIB, "-b size=64k -n parent=1" },
  { 3 * GIB, "-b size=1k -n parent=1,size=64k" },
  { 3 * GIB, "-s size=4k -n parent=1 -d su=256k,sw=2" },
}

-- Block devices: size, options. Blocks of 64 KiB make a log follow the CPUs, even if few.
local DEVICES <const> = {
  { 4 * GIB, "" }, { 40 * GIB, "-b size=64k" }, { 40 * GIB, "-d agcount=5 -b size=64k" },
  { 40 * GIB, "-d concurrency=9 -l concurrency=0" },
}

for index, compat in ipairs { "6.13", "7.2" } do
  describe("identity with mkfs.xfs " .. compat, function()
    local oracle, missing = oracles.of("xfs", compat)
    if not oracle then
      pending(missing)
      return
    end

    local judge

    setup(function()
      judge = images_of.judge(oracle, compat)
    end)

    teardown(function()
      judge:close()
    end)

    local function compares(config, must_work)
      local label = configs.describe(config)
      it(label, function()
        local made, why = judge:compare(config, label, must_work)
        if made == nil then
          pending(why)
        end
      end)
    end

    for _, config in ipairs(NEW) do
      compares(config, true)
    end

    for i, config in ipairs(configs.IDENTITY) do
      if ALL or i % SHARE == index then
        compares(config)
      end
    end

    for _, words in ipairs(ALL and { "", "-l su=32k", "-l su=12k", "-m rmapbt=0",
      "-l su=32k -m rmapbt=0", "-l su=64k -m reflink=0,finobt=0" } or { "-l su=32k" }) do
      it("a log in a last group that it nearly fills " .. words, function()
        judge:compare_nearly_full(words)
      end)
    end

    for i, row in ipairs(configs.OVER) do
      if ALL or i % 2 == index % 2 then
        it(("%d GiB %s over %s"):format(row[1] >> 30, row[3], row[2]), function()
          judge:compare_over(table.unpack(row))
        end)
      end
    end

    for _, is_rotational in ipairs { true, false } do
      for _, config in ipairs(DEVICES) do
        local label = ("a %s of %d GiB %s"):format(is_rotational and "disk" or "solid state disk",
          config[1] >> 30, config[2])
        it(label .. " #root", function()
          if not judge.scratch then
            return pending "needs root and loop devices"
          end
          judge:compare_on_device(config, label, is_rotational)
        end)
      end
    end

    it(("random option sets of seed %d"):format(SEED), function()
      judge:compare_random(SEED, CASES)
    end)
  end)
end

describe("what is random in a format", function()
  -- Time and generation numbers of the first five inodes.
  local function inodes_of(o)
    o.size_bytes = 1 << 30
    local image = helper.path "image.brim"
    do
      local plan <close> = assert(brim.xfs.format(o))
      assert(plan:save(image))
    end
    local fs <close> = assert(brim.xfs.open(image))
    local found = {}
    for n = 0, 4 do
      local inode = assert(fs:inode(fs.primary.rootino + n))
      found[n] = { time = inode.mtime, generation = inode.gen }
    end
    os.remove(image)
    return found
  end

  it("is fixed by time_ns and generation", function()
    for _, compat in ipairs { "6.1", "6.13", "7.2" } do
      local o = { compat = compat, time_ns = 1700000000 * 1000000000, generation = 0xfedcba98 }
      local found = inodes_of(o)
      assert.same(found, inodes_of(o))
      assert.int(found[0].generation, 0)
      for n = 1, 4 do
        assert.int(found[n].generation, 0xfedcba98)
      end
    end
  end)

  it("is a generation number for free inodes and two for files, each time others", function()
    local a, b = inodes_of { compat = "7.2" }, inodes_of { compat = "7.2" }
    assert.int(a[4].generation, a[3].generation)
    for n = 1, 3 do
      assert.is_not.equal(a[n].generation, b[n].generation)
      assert.is_not.equal(a[n].generation, a[n % 3 + 1].generation)
    end
  end)

  it("is nothing but the time in 6.1", function()
    for n, inode in pairs(inodes_of {}) do
      assert.int(inode.generation, 0, n)
    end
  end)

  it("is told of a time that is none", function()
    local image = helper.path "image"
    helper.must("truncate -s 1G %s", image)
    local said, status = helper.sh("SOURCE_DATE_EPOCH=soon %s mkfs.xfs --compat 7.2 -N %s",
      helper.quote(helper.exe), image)
    assert.equal(0, status)
    assert.matches("SOURCE_DATE_EPOCH=soon is no number of seconds, ignored", said)
  end)
end)

describe("an XFS of 1 PiB after 7.2", function()
  it("is clean to brim check and to xfs_repair of that release #root", function()
    local oracle, missing = oracles.of("xfs", "7.2")
    if not oracle then
      return pending(missing)
    end
    local workspace <close> = configs.workspace "large"
    local scratch = workspace:mount_scratch()
    if not scratch then
      return pending "loop devices do not work here"
    end
    local image = scratch.dir .. "/image"
    helper.must("truncate -s 1P %s && %s mkfs.xfs --compat 7.2 -q %s", image,
      helper.quote(helper.exe), image)
    local said, status = helper.sh("%s -n -P %s", oracle.repair, image)
    assert.equal(0, status, said)
    for line in said:gmatch "[^\n]+" do
      assert.is_truthy(line:find "^Phase %d" or line:find "^        %- " or line:find "^No modify"
        or line:find "emory" or line:find "MB is needed" or line:find "increase system RAM", line)
    end
    assert.matches("clean", helper.must("%s check %s", helper.quote(helper.exe), image))
  end)
end)
