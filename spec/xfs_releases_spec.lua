-- Byte identity with mkfs.xfs 6.13 and 7.2, as xfs_identity_spec has it with 6.1: whole images,
-- holes included. Of the configurations there every release takes its share, and has its own.
-- For all of them, and longer random campaigns:
--   BRIM_XFS_ALL=1 BRIM_XFS_SEED=7 BRIM_XFS_CASES=1500 make test TESTS=spec/xfs_releases_spec.lua
local configs = require "spec.xfs_configs"
local images_of = require "spec.xfs_images"
local oracles = require "spec.oracles"

local ALL <const> = os.getenv "BRIM_XFS_ALL" ~= nil
local SEED <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_SEED" or 20180905))
local CASES <const> = math.tointeger(tonumber(os.getenv "BRIM_XFS_CASES" or 25))
local SHARE <const> = 6 -- one in so many

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
