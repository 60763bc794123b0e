-- The geometry of brim: its rules, and the superblock of real (sparse) images of mkfs.xfs 6.1. What
-- each release says to random options is xfs_random_geometry_spec's.
local helper = require "spec.helper"
local geometry = require "brim.xfs.geometry"
local options = require "brim.xfs.options"
local oracles = require "spec.oracles"

local KIB <const>, MIB <const>, GIB <const> = 1 << 10, 1 << 20, 1 << 30
local TIB <const>, PIB <const> = 1 << 40, 1 << 50
local LARGEST_FILE_BYTES <const> = math.maxinteger - 4095

local function compute(o, size_bytes)
  return geometry.compute(o, { size_bytes = size_bytes, is_file = true })
end

local function shallow_copy(o)
  local copy = {}
  for key, value in pairs(o) do
    copy[key] = value
  end
  return copy
end

-- Geometries the reference would print, or half write, and then fail on; brim refuses at once.
local FAILS_WHEN_WRITTEN = {
  "fill the filesystem with %d+, ask for that", "does not fit it; name another group",
  "where nothing looks for it", "does not fit group 0",
}

local function fails_when_written(err)
  for _, pattern in ipairs(FAILS_WHEN_WRITTEN) do
    if err.message:find(pattern) then
      return true
    end
  end
  return false
end

describe("brim.xfs.geometry", function()
  it("makes 8191 PiB as the facts say", function()
    local g = assert(compute({ size_bytes = 8191 * PIB }, LARGEST_FILE_BYTES))
    assert.int(g.ag_count, 8387585)
    assert.int(g.data_blocks, 2251524935778304)
    assert.int(g.last_ag_blocks, 8387584)
    assert.int(g.log_blocks, 521728)
    assert.int(g.max_inode_percent, 1)
    assert.int(g.log_ag, 4193792)
    assert.int(g.size_bytes, 8191 * PIB)
  end)

  it("fills the largest file", function()
    for block_bytes, ag_blocks in pairs({ [1024] = 1073741823, [4096] = 268435455,
      [65536] = 16777215 }) do
      local g = assert(compute({ block_bytes = block_bytes }, LARGEST_FILE_BYTES))
      assert.int(g.ag_count, 8388609)
      assert.int(g.ag_blocks, ag_blocks)
    end
  end)

  it("has integers only, and no field without a value it needs", function()
    local o = { rmapbt = true, stripe_unit_bytes = 64 * KIB, stripe_width_bytes = 256 * KIB,
      sector_bytes = 4096 }
    for name, value in pairs(assert(compute(o, 8191 * PIB))) do
      if type(value) == "number" then
        assert.equal("integer", math.type(value), name)
      end
    end
  end)

  it("does not change the options, and gives the same twice", function()
    local o = { size_bytes = 5 * TIB, ag_count = 7, log_ag = 3, label = "x" }
    local before = shallow_copy(o)
    local first = assert(compute(o, LARGEST_FILE_BYTES))
    assert.same(before, o)
    assert.same(first, compute(o, LARGEST_FILE_BYTES))
  end)

  it("lays out the static head of a group", function()
    local g = assert(compute({ rmapbt = true }, 4 * TIB))
    assert.same({ 1, 2, 3, 4, 5, 6, 7 }, { g.bno_block, g.cnt_block, g.inobt_block,
      g.finobt_block, g.rmapbt_block, g.refcountbt_block, g.prealloc_blocks })
    assert.int(g.agfl_count, 6)
    assert.int(g.agfl_slots, 119)
    assert.int(g.root_ino, 128)
    g = assert(compute({ sector_bytes = 4096, finobt = false }, 4 * TIB))
    assert.same({ 4, 5, 6, 7, 8 }, { g.bno_block, g.cnt_block, g.inobt_block,
      g.refcountbt_block, g.prealloc_blocks })
    assert.is_nil(g.finobt_block)
    assert.is_nil(g.rmapbt_block)
    assert.is_false(g.inobtcount)
  end)

  it("warns in its own words", function()
    local g = assert(compute({ size_bytes = GIB + 512 }, LARGEST_FILE_BYTES))
    assert.int(#g.warnings, 1)
    assert.matches("not a multiple of the block size 4096, cut to 1073741824", g.warnings[1])
    g = assert(compute({ stripe_unit_bytes = MIB, stripe_width_bytes = MIB }, TIB))
    assert.matches("over 256 KiB, 32 KiB is used", g.warnings[1])
    assert.int(g.log_stripe_unit_bytes, 32 * KIB)
  end)

  it("allows the unsupported only when asked to, and says so", function()
    for _, case in ipairs({ { 299 * MIB, {}, "300 MiB" }, { GIB, { ag_count = 1 }, "at least 2" },
      { GIB, { log_bytes = 63 * MIB }, "64 MiB" } }) do
      local g, err = compute(case[2], case[1])
      assert.is_nil(g)
      assert.matches(case[3], err.message)
      case[2].unsupported = true
      g = assert(compute(case[2], case[1]))
      assert.matches("^unsupported: ", g.warnings[1])
    end
  end)

  it("names the option in each refusal, in one line", function()
    for option, o in pairs({
      block_bytes = { block_bytes = 512 }, sector_bytes = { sector_bytes = 768 },
      inode_bytes = { inode_bytes = 4096 }, inodes_per_block = { inodes_per_block = 16 },
      ag_count = { ag_count = 0 }, ag_bytes = { ag_bytes = TIB },
      stripe_unit_bytes = { stripe_unit_bytes = 6000, stripe_width_bytes = 6000 },
      stripe_width_bytes = { stripe_width_bytes = 4096 }, finobt = { finobt = 1 },
      max_inode_percent = { max_inode_percent = 101 }, dir_block_bytes = { dir_block_bytes = 2048 },
      log_bytes = { log_bytes = 2 * MIB }, log_ag = { log_ag = 9 }, size_bytes = { size_bytes = 1 },
      log_stripe_unit_bytes = { log_stripe_unit_bytes = 512 }, inobtcount = { inobtcount = true,
        finobt = false }, inode_align = { inode_align = false }, label = { label = ("x"):rep(13) },
      uuid = { uuid = "x" }, lazy_count = { lazy_count = false },
      no_align = { no_align = true, stripe_unit_bytes = 4096, stripe_width_bytes = 4096 },
      log_sector_bytes = { log_sector_bytes = 4096 },
    }) do
      local g, err = compute(o, 4 * TIB)
      assert.is_nil(g, option)
      assert.equal(option, err.option)
      assert.is_nil(err.message:find("\n"))
      assert.is_true(err.message:find(options.SCHEMA[option].cli, 1, true) == 1, err.message)
    end
  end)

  it("raises what is not a refusal", function()
    assert.has_error(function()
      geometry.compute({}, nil)
    end)
  end)

  describe("on a block device", function()
    -- What mkfs.xfs 6.1 said with libblkid answering these (15 TiB device unless sized):
    -- logical and physical sector, minimum and optimal I/O, misalignment.
    local ROWS = {
      { { 512, 512, 65536, 262144, 0 }, { size_bytes = TIB }, 512, 32, 8388592, 16, 64, 131072 },
      { { 512, 4096, 4096, 0, 0 }, {}, 4096, 15, 268435455, 0, 0, 521728 },
      { { 512, 4096, 65536, 0, 0 }, {}, 4096, 15, 268435455, 0, 0, 521728 },
      { { 512, 512, 65536, 131072, 0 }, { size_bytes = GIB - 4096 }, 512, 4, 65536, 0, 0, 16384 },
      { { 512, 4096, 65536, 262144, 0 }, { block_bytes = 2048 }, 512, 32, 251658208, 32, 128,
        1043456 },
      { { 4096, 4096, 1048576, 4194304, 0 }, {}, 4096, 33, 125828864, 256, 1024, 521728 },
      { { 512, 512, 66048, 132096, 0 }, { size_bytes = TIB }, 512, 4, 67108864, 0, 0, 131072 },
      { { 512, 65536, 0, 0, 0 }, {}, 512, 15, 268435455, 0, 0, 521728 },
      { { 512, 4096, 0, 0, 512 }, { force = true }, 512, 15, 268435455, 0, 0, 521728 },
      { { 512, 512, 65536, 262144, 0 }, { stripe_unit_bytes = 32768, stripe_width_bytes = 131072 },
        512, 32, 125829112, 8, 32, 521728 },
      { { 512, 512, 65536, 262144, 0 }, { no_align = true }, 512, 15, 268435455, 0, 0, 521728 },
    }
    local function device(facts)
      return { size_bytes = 15 * TIB, is_file = false, sector_bytes = facts[1],
        physical_sector_bytes = facts[2], min_io_bytes = facts[3], opt_io_bytes = facts[4],
        alignment_offset_bytes = facts[5] }
    end

    for i, row in ipairs(ROWS) do
      it(("takes sector and stripe as the reference, row %d"):format(i), function()
        local g = assert(geometry.compute(row[2], device(row[1])))
        assert.same({ table.unpack(row, 3) }, { g.sector_bytes, g.ag_count, g.ag_blocks,
          g.stripe_unit_blocks, g.stripe_width_blocks, g.log_blocks })
      end)
    end

    it("refuses sectors below the device's and misalignment without force", function()
      local g, err = geometry.compute({ sector_bytes = 512 }, device({ 4096, 4096, 0, 0, 0 }))
      assert.is_nil(g)
      assert.equal("sector_bytes", err.option)
      g, err = geometry.compute({}, device({ 512, 4096, 0, 0, 512 }))
      assert.is_nil(g)
      assert.matches("misaligned", err.message)
    end)

    it("does not let the suffix s mean 512 on a device of larger sectors", function()
      local o = assert(options.parse({ "-d", "size=8388608s", "x" }))
      assert(geometry.compute(o, device({ 512, 512, 0, 0, 0 })))
      local g, err = geometry.compute(o, device({ 4096, 4096, 0, 0, 0 }))
      assert.is_nil(g)
      assert.matches("counted 512 bytes", err.message)
    end)

    it("refuses -d file and a device without a size", function()
      local facts = device({ 512, 512, 0, 0, 0 })
      assert.is_nil(geometry.compute({ file = true, size_bytes = GIB }, facts))
      facts.size_bytes = 0
      assert.is_nil(geometry.compute({ size_bytes = GIB }, facts))
      facts.is_file = true
      assert(geometry.compute({ size_bytes = GIB }, facts))
    end)
  end)

  -- What is asked for by number is compared with mkfs.xfs in xfs_random_geometry_spec.
  describe("a solid state device", function()
    local function of(o, device)
      o.size_bytes = 100 * GIB
      device.size_bytes, device.cpus = 100 * GIB, 9
      return assert(geometry.compute(o, device))
    end

    it("gets groups and log for the CPUs from 6.13 on", function()
      for _, compat in ipairs { "6.13", "7.2" } do
        for _, block_bytes in ipairs { 4096, 65536 } do
          local solid = of({ compat = compat, block_bytes = block_bytes },
            { is_rotational = false })
          local asked = of({ compat = compat, block_bytes = block_bytes, data_concurrency = 9,
            log_concurrency = 9 }, {})
          local disk = of({ compat = compat, block_bytes = block_bytes }, { is_rotational = true })
          assert.same(asked, solid)
          assert.equal(4, disk.ag_count)
          assert.equal(9, solid.ag_count)
          assert.equal(block_bytes == 65536, solid.log_blocks > disk.log_blocks)
        end
      end
    end)

    it("is like any other where groups are asked for, or none of that, and in 6.1", function()
      for _, o in ipairs { {}, { compat = "7.2", ag_count = 5, log_bytes = 1 << 30 },
        { compat = "7.2", data_concurrency = 0, log_concurrency = 0 } } do
        local disk = of(o, { is_rotational = true })
        assert.same(disk, of(o, { is_rotational = false }))
      end
    end)

    it("counts 1 as the number of CPUs", function()
      local o = { compat = "7.2", data_concurrency = 1, log_concurrency = 1 }
      assert.same(of({ compat = "7.2" }, { is_rotational = false }), of(o, {}))
    end)
  end)

  describe("against real images of mkfs.xfs 6.1", function()
    local oracle, missing = oracles.of("xfs", "6.1")
    if not oracle then
      pending(missing)
      return
    end

    local function values_of(image, ...)
      local words = {}
      for _, word in ipairs({ ... }) do
        words[#words + 1] = "-c " .. helper.quote(word)
      end
      local values = {}
      local said = helper.must("%s -r %s %s", oracle.db, table.concat(words, " "), image)
      for name, value in said:gmatch("([%w_]+) = (%S+)") do
        values[name] = math.tointeger(tonumber(value))
      end
      return values
    end

    -- Fields of the superblock, by xfs_db's name.
    local function superblock_of(g)
      return {
        blocksize = g.block_bytes, dblocks = g.data_blocks, logstart = g.log_start_fsb,
        rootino = g.root_ino, agblocks = g.ag_blocks, agcount = g.ag_count,
        logblocks = g.log_blocks, versionnum = g.version_num, sectsize = g.sector_bytes,
        inodesize = g.inode_bytes, inopblock = g.inodes_per_block, blocklog = g.block_log2,
        sectlog = g.sector_log2, inodelog = g.inode_log2, inopblog = g.inodes_per_block_log2,
        agblklog = g.ag_blocks_log2, imax_pct = g.max_inode_percent,
        icount = g.inode_chunk_inodes, inoalignmt = g.inode_align_blocks,
        unit = g.stripe_unit_blocks, width = g.stripe_width_blocks,
        dirblklog = g.dir_block_log2 - g.block_log2, logsectlog = g.log_sector_log2,
        logsectsize = g.log_sector_bytes, logsunit = g.log_stripe_unit_bytes,
        features2 = g.features2, bad_features2 = g.features2,
        features_compat = g.features_compat, features_ro_compat = g.features_ro_compat,
        features_incompat = g.features_incompat, spino_align = g.sparse_align_blocks,
      }
    end

    local CASES = {
      "", "-m rmapbt=1,reflink=0", "-m rmapbt=1 -i nrext64=1", "-m finobt=0,bigtime=0 -i sparse=0",
      "-b size=1024", "-b size=64k -i size=2048", "-s size=4096 -m rmapbt=1", "-n size=64k",
      "-d su=64k,sw=4", "-d sunit=24,swidth=72 -m rmapbt=1", "-l su=256k",
      "-d agcount=5 -l agnum=0", "-l agnum=0,su=64k -d agcount=2",
      "-d agsize=128m -m rmapbt=1 -l size=32756b", "-d agsize=128m -l size=32757b",
      "-b size=64k -d agsize=128m --unsupported",
      "-s size=32768 -b size=32768 -i perblock=16 -m inobtcount=0",
    }
    for _, line in ipairs(CASES) do
      it("has the fields of: mkfs.xfs " .. line, function()
        local image = helper.path("real.img")
        local size_bytes = 2 * GIB + 123 * MIB
        helper.must("truncate -s %d %s && %s -q %s %s", size_bytes, image, oracle.mkfs, line, image)
        local argv = {}
        for word in (line .. " " .. image):gmatch("%S+") do
          argv[#argv + 1] = word
        end
        local g = assert(compute(assert(options.parse(argv)), size_bytes))
        local superblock = values_of(image, "sb 0", "p")
        for name, value in pairs(superblock_of(g)) do
          assert.equal(value, superblock[name], name)
        end
        local agf = values_of(image, "agf " .. g.log_ag, "p")
        assert.equal(g.log_ag_agfl_count, agf.flcount)
        assert.equal(g.bno_block, agf.bnoroot)
        assert.equal(g.cnt_block, agf.cntroot)
        assert.equal(g.rmapbt_block, agf.rmaproot)
        assert.equal(g.refcountbt_block, agf.refcntroot)
        agf = values_of(image, "agf " .. (g.log_ag == 1 and 0 or 1), "p")
        assert.equal(g.agfl_count, agf.flcount)
        local agi = values_of(image, "agi 0", "p")
        assert.equal(g.inobt_block, agi.root)
        assert.equal(g.finobt_block or 0, agi.free_root)
        os.remove(image)
      end)
    end

    -- -N prints these, writing them fails: brim refuses without writing.
    local FAILING = {
      { 3087953920, "--unsupported -d agcount=64,sunit=38800,swidth=77600", "ag_count" },
      { 340 * MIB, "-d agsize=300m", "log_ag" },
      { 2 * GIB, "-l agnum=0,su=256k", "log_ag" },
    }
    for _, case in ipairs(FAILING) do
      it("refuses what mkfs.xfs fails to write: " .. case[2], function()
        local image = helper.path("real.img")
        helper.must("truncate -s %d %s", case[1], image)
        local _, status = helper.sh("%s -N %s %s", oracle.mkfs, case[2], image)
        assert.int(status, 0)
        _, status = helper.sh("%s -q %s %s", oracle.mkfs, case[2], image)
        assert.is_not.equal(0, status)
        local argv = {}
        for word in (case[2] .. " " .. image):gmatch("%S+") do
          argv[#argv + 1] = word
        end
        local g, err = compute(assert(options.parse(argv)), case[1])
        assert.is_nil(g)
        assert.equal(case[3], err.option)
        assert.is_true(fails_when_written(err))
        os.remove(image)
      end)
    end
  end)
end)
