-- Byte identity: `brim mkfs.f2fs` against mkfs.f2fs of each release, whole images, holes included
-- (see f2fs_images). For a longer campaign: make fuzz-mkfs-f2fs N=300 SEED=7
local configs = require "spec.f2fs_configs"
local helper = require "spec.helper"
local loops = require "spec.xfs_configs"
local images_of = require "spec.f2fs_images"
local oracles = require "spec.oracles"

local SEED <const> = math.tointeger(tonumber(os.getenv "BRIM_F2FS_SEED" or 20150920))
local CASES <const> = math.tointeger(tonumber(os.getenv "BRIM_F2FS_CASES" or 40))
local GIB <const>, FSCK_MOST_BYTES <const> = 1 << 30, 150 << 30

for _, compat in ipairs { "1.15", "1.16" } do
  describe("identity with mkfs.f2fs " .. compat, function()
    local oracle, missing = oracles.of("f2fs", compat)
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

    for i, config in ipairs(configs.IDENTITY) do
      it(configs.describe(config), function()
        judge:compare(config, { must_work = true,
          fsck = i % 3 == 0 and config[1] < FSCK_MOST_BYTES and not config.more })
      end)
    end

    for _, config in ipairs(configs.REFUSED) do
      it("refuses " .. configs.describe(config), function()
        assert.is_false(judge:compare(config))
      end)
    end

    -- Not discarded, so that what an older filesystem left stays where it is not written over.
    for _, words in ipairs { "-f -t 0", "-f", "-f -t 0 -O quota -s 2" } do
      it("over an older filesystem " .. words, function()
        assert.is_true(judge:compare({ 2 * GIB, "-O lost_found,extra_attr,quota -l old" }))
        assert.is_true(judge:compare({ 2 * GIB, words }, { keep = true }))
        assert.is_true(judge:compare({ 2 * GIB, "" }))
        assert.is_false(judge:compare({ 2 * GIB, "" }, { keep = true }))
      end)
    end

    -- Straight onto block devices: the sectors are theirs, what they held is discarded.
    for _, sector_bytes in ipairs { 512, 4096 } do
      it(("a block device with sectors of %d bytes #root"):format(sector_bytes), function()
        local images = {}
        for who, program in pairs(judge.programs) do
          images[who] = ("%s/%s-device"):format(judge.dir, who)
          helper.must("rm -f %s && truncate -s 600M %s", images[who], images[who])
          local ok, loop = pcall(loops.loop, images[who], sector_bytes)
          if not ok then
            return pending "needs loop devices"
          end
          local _ <close> = loop
          helper.must("%s -q -r -T 5 -U 01234567-89ab-cdef-0123-456789abcdef -O lost_found %s",
            program, loop.device)
        end
        local said, status = helper.sh("%s %s %s", judge.imgcmp, images.reference, images.brim)
        assert.equal(0, status, said)
      end)
    end

    it(("random option sets of seed %d"):format(SEED), function()
      local made = judge:compare_random(SEED, CASES)
      assert.is_true(made > CASES // 2, ("%d of %d made anything"):format(made, CASES))
    end)
  end)
end

describe("the output of brim mkfs.f2fs", function()
  for _, compat in ipairs { "1.15", "1.16" } do
    local oracle, missing = oracles.of("f2fs", compat)
    for _, words in ipairs { "", "-s 3 -z 2 -l name -t 0", "-O extra_attr,quota,project_quota",
      "-C utf8 -O extra_attr,compression -e a -E b", "-q", "-a 1 -R 1:2", "-d 0 -o 7" } do
      it(("is that of %s %s"):format(compat, words), function()
        if not oracle then
          return pending(missing)
        end
        local image = helper.path "image"
        helper.must("truncate -s 3G %s", image)
        local theirs = helper.must("%s %s %s", oracle.mkfs, words, image)
        helper.must("truncate -s 0 %s && truncate -s 3G %s", image, image)
        local ours = helper.must("%s mkfs.f2fs --compat %s %s %s 2>/dev/null",
          helper.quote(helper.exe), compat, words, image)
        assert.equal(theirs, ours)
        os.remove(image)
      end)
    end
  end
end)
