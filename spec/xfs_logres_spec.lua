-- Minimum log sizes against the table of mkfs.xfs 6.1 and against mkfs.xfs of each release itself,
-- which names the minimum when a log of 2 MiB is too small. Units: filesystem blocks.
local helper = require "spec.helper"
local geometry = require "brim.xfs.geometry"
local levels = require "brim.xfs.levels"
local logres = require "brim.xfs.logres"
local oracles = require "spec.oracles"

local SEED <const> = 20220903
local TIB <const> = 1 << 40

local function min_log_blocks(o, size_bytes)
  local g = assert(geometry.compute(o, { size_bytes = size_bytes or 4 * TIB, is_file = true }))
  return logres.min_log_blocks(g)
end

describe("brim.xfs.logres", function()
  -- facts/xfs.md section 3.1, column 6.1
  local MEASURED = {
    { "default", {}, 2580 },
    { "rmapbt without reflink", { rmapbt = true, reflink = false }, 1137 },
    { "neither", { rmapbt = false, reflink = false }, 924 },
    { "both", { rmapbt = true, reflink = true }, 4287 },
    { "1 KiB blocks", { block_bytes = 1024 }, 5471 },
    { "64 KiB blocks", { block_bytes = 65536 }, 1105 },
    { "4 KiB sectors", { sector_bytes = 4096 }, 2433 },
    { "64 KiB stripe", { stripe_unit_bytes = 65536, stripe_width_bytes = 65536 }, 3072 },
    { "256 KiB stripe", { stripe_unit_bytes = 262144, stripe_width_bytes = 262144 }, 5760 },
    { "2 KiB inodes", { inode_bytes = 2048 }, 2580 },
    { "64 KiB directory blocks", { dir_block_bytes = 65536 }, 2580 },
    { "a 400 MiB image", {}, 1368, 400 << 20 },
  }
  for _, row in ipairs(MEASURED) do
    it("gives the measured minimum: " .. row[1], function()
      local blocks = min_log_blocks(row[2], row[4])
      assert.int(blocks, row[3])
    end)
  end

  it("works on a partially filled geometry", function()
    assert.equal(2580, logres.min_log_blocks({
      block_bytes = 4096, block_log2 = 12, sector_bytes = 512, inode_bytes = 512,
      inodes_per_block_log2 = 3, ag_blocks = 268435455, ag_blocks_log2 = 28,
      dir_block_bytes = 4096, inode_align_blocks = 8, log_stripe_unit_bytes = 1,
      finobt = true, rmapbt = false, reflink = true, nrext64 = false,
    }))
  end)

  it("names the deciding transaction", function()
    local g = assert(geometry.compute({}, { size_bytes = 4 * TIB, is_file = true }))
    local largest = logres.largest_transaction(g)
    assert.equal("itruncate", largest.name)
    assert.equal(8, largest.count)
  end)

  it("adds a header for each 252 KiB of transaction", function()
    local room_bytes = (256 << 10) - 4096
    local small = logres.unit_bytes(1000, 1)
    local large = logres.unit_bytes(1000 + room_bytes, 1)
    assert.equal(room_bytes + 4096 + 12, large - small)
    assert.equal(2 * 65536 - 2 * 512, logres.unit_bytes(1000, 65536) - small)
  end)

  describe("btree heights", function()
    it("have two free list blocks for each tree that can grow", function()
      local g = { block_bytes = 65536, ag_blocks = 256, ag_blocks_log2 = 8,
        inodes_per_block_log2 = 7, rmapbt = true, reflink = false }
      assert.equal(3, levels.free_list_blocks(g))
      g.rmapbt = false
      assert.equal(2, levels.free_list_blocks(g))
      g.block_bytes, g.ag_blocks, g.ag_blocks_log2 = 4096, 268435455, 28
      assert.equal(4, levels.free_list_blocks(g))
    end)
  end)

  for _, compat in ipairs { "6.1", "6.13", "7.2" } do
    describe("against mkfs.xfs " .. compat, function()
      local oracle, missing = oracles.of("xfs", compat)
      if not oracle then
        pending(missing)
        return
      end

      local dir

      setup(function()
        dir = helper.must("mktemp -d -p /dev/shm"):gsub("%s+$", "")
      end)

      teardown(function()
        helper.must("rm -rf %s", helper.quote(dir))
      end)

      local function pick(list)
        return list[math.random(#list)]
      end

      -- Options as mkfs.xfs and as brim take them; powers of two only, so 2 MiB is always aligned.
      local function random_case()
        local o, words = { compat = compat }, {}
        local function set(name, word, value, shown)
          o[name] = value
          words[#words + 1] = ("%s=%s"):format(word, shown or value)
        end
        o.block_bytes = pick({ 1024, 2048, 4096, 4096, 4096, 8192, 16384, 32768, 65536 })
        words[1] = "-b size=" .. o.block_bytes
        for _, feature in ipairs({ { "finobt", "-m finobt" }, { "rmapbt", "-m rmapbt" },
          { "reflink", "-m reflink" }, { "sparse", "-i sparse" }, { "nrext64", "-i nrext64" } }) do
          if math.random(2) == 1 then
            local on = math.random(2) == 1
            set(feature[1], feature[2], on, on and 1 or 0)
          end
        end
        if compat ~= "6.1" and math.random(2) == 1 then
          local on = math.random(3) > 1
          set("parent", "-n parent", on, on and 1 or 0)
        end
        if math.random(3) == 1 then
          set("sector_bytes", "-s size", 512 << math.random(0, 3))
          o.sector_bytes = math.min(o.sector_bytes, o.block_bytes)
          words[#words] = "-s size=" .. o.sector_bytes
        end
        if math.random(3) == 1 then
          set("inode_bytes", "-i size", math.min(512 << math.random(0, 2), o.block_bytes // 2))
        end
        if math.random(3) == 1 then
          set("dir_block_bytes", "-n size", math.max(4096 << math.random(0, 4), o.block_bytes))
        end
        if math.random(3) == 1 then
          set("log_stripe_unit_bytes", "-l su", math.max(4096 << math.random(0, 6), o.block_bytes))
        end
        local ag_bytes = pick({ 64 << 20, 100 << 20, 128 << 20, 1 << 30, 37 << 30, 1 << 39 })
        set("ag_bytes", "-d agsize", ag_bytes)
        return o, table.concat(words, " ")
      end

      it("agrees on the minimum of 250 random geometries", function()
        math.randomseed(SEED)
        local image, compared = dir .. "/image", 0
        helper.must("truncate -s %d %s", 4 * TIB, image)
        for case = 1, 250 do
          local o, words = random_case()
          local said = helper.sh("%s -N -l size=2m %s %s", oracle.mkfs, words, image)
          local expected = tonumber(said:match("minimum size is (%d+) blocks"))
          if expected then
            compared = compared + 1
            o.log_bytes = 2 << 20
            local _, err = geometry.compute(o, { size_bytes = 4 * TIB, is_file = true })
            local got = tonumber(err and err.message:match("the least here is (%d+)"))
            assert.equal(expected, got, ("seed %d case %d: mkfs.xfs %s"):format(SEED, case, words))
          end
        end
        assert.is_true(compared >= 200, ("only %d compared"):format(compared))
      end)
    end)
  end
end)
