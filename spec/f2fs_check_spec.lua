-- brim check f2fs: fresh filesystems are clean, those that sload.f2fs filled are as fsck.f2fs has
-- them; damage is found, named, and never crashes it. fsck.f2fs --dry-run is the judge.
local brim = require "brim"
local check = require "brim.f2fs.check"
local configs = require "spec.xfs_configs"
local crc = require "brim.f2fs.crc"
local helper = require "spec.helper"
local json = require "brim.json"
local ondisk = require "brim.f2fs.ondisk"
local oracles = require "spec.oracles"
local volume = require "brim.f2fs.volume"

local SEED <const> = 20151008

-- On tmpfs: dozens of copies of one image.
local workspace

local function path_of(name)
  workspace = workspace or configs.workspace "f2fs-check"
  return workspace:path(name)
end

local function clean_up()
  if workspace then
    workspace:close()
  end
  workspace = nil
end

local function fresh(o)
  local path = path_of "fresh"
  assert(assert(brim.f2fs.format(o)):write(path))
  return path
end

local function overwrite(path, off_bytes, bytes)
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("set", off_bytes)
  file:write(bytes)
end

local function read(path, off_bytes, len_bytes)
  local file <close> = assert(io.open(path, "rb"))
  file:seek("set", off_bytes)
  return file:read(len_bytes)
end

describe("brim check of what brim formats", function()
  teardown(clean_up)

  it("is clean, whatever the geometry", function()
    for _, o in ipairs { { size_bytes = "100m" }, { size_bytes = "3g", compat = "1.16" },
      { size_bytes = "2g", features = { "lost_found", "quota", "extra_attr", "project_quota",
        "inode_checksum", "sb_checksum", "inode_crtime" } },
      { size_bytes = "20g", section_segments = 4, large_nat = true, zone_sections = 2 },
      { size_bytes = "9t", compat = "1.16" }, { size_bytes = "16383g", large_nat = true },
      { size_bytes = "1g", features = { "ro", "lost_found" }, compat = "1.16" },
      { size_bytes = "4g", heap = true } } do
      -- Whole zones: see the next test.
      local g = assert(brim.f2fs.geometry(o))
      if g.usable_segments == g.main_segments then
        local result = assert(check.run(fresh(o)))
        assert.is_true(result.clean, result.text)
        assert.int(result.finding_count, 0)
        assert.equal("umount", result.checkpoint)
        assert.int(result.nodes, result.nodes_read)
      end
    end
  end)

  it("finds, as fsck.f2fs does, that mkfs.f2fs counts what is left of a zone as free", function()
    local result = assert(check.run(fresh { size_bytes = "20g", section_segments = 3 }))
    assert.is_false(result.clean)
    assert.int(result.finding_count, 1)
    assert.equal("free_segment_count", result.findings[1].field)
    assert.is_truthy(result.text:find("behind the last whole zone", 1, true))
  end)

  it("is what the example shows", function()
    local out, err, status = helper.brim("run", "examples/f2fs.lua")
    assert.equal(0, status, err)
    assert.is_truthy(out:find "3210g%s+232960" and out:find "\nclean\n", out)
  end)

  it("takes an image file, and finds out what a target holds", function()
    local image = path_of "image.brim"
    assert(assert(brim.f2fs.format { size_bytes = "15t" }):save(image))
    local out, _, status = helper.brim("check", image)
    assert.equal(0, status)
    assert.is_truthy(out:find "\nclean\n$" or out:find "^clean\n$" or out:find "clean", out)
    out, _, status = helper.brim("check", "f2fs", image, "--json")
    assert.equal(0, status)
    assert.is_true(json.decode(out).clean)
    local _, err, refused = helper.brim("check", "xfs", image)
    assert.equal(2, refused)
    assert.is_truthy(err:find "no XFS", err)
  end)
end)

for _, version in ipairs { "1.15", "1.16" } do
  describe("brim check beside fsck.f2fs " .. version, function()
    local oracle, missing = oracles.of("f2fs", version)
    if not oracle then
      pending(missing)
      return
    end
    local sload = oracle.mkfs:gsub("mkfs%.f2fs$", "sload.f2fs")
    if not helper.has(sload) then
      pending("no sload.f2fs beside " .. oracle.mkfs)
      return
    end

    -- A tree of files: small, large, sparse, links, deep and wide directories.
    local function fill(path)
      local tree = path_of "tree"
      helper.must([[mkdir -p %s/a/b/c %s/wide && cd %s &&
        for i in $(seq 400); do echo $i >wide/a-file-with-a-longer-name-$i; done &&
        cp -r /usr/share/zoneinfo/Europe a/b 2>/dev/null; seq 900000 >a/large.txt &&
        head -c 9000000 a/large.txt >a/b/c/nine.bin && ln -s large.txt a/link && : >empty]],
        tree, tree, tree)
      -- It ends with 1 where its own fsck finds fault with what it did (flexible_inline_xattr).
      local said, status = helper.sh("%s -f %s %s", sload, tree, path)
      assert.is_true(status <= 1, said)
      helper.must("rm -rf %s", tree)
    end

    local function fsck(path)
      return helper.sh("%s --dry-run %s", oracle.fsck, helper.quote(path))
    end

    local used

    teardown(clean_up)

    setup(function()
      used = path_of "used"
      helper.must("truncate -s 160M %s && %s -q %s", used, oracle.mkfs, used)
      fill(used)
    end)

    it("finds used filesystems clean", function()
      for _, words in ipairs { "", "-O extra_attr,inode_checksum,inode_crtime,lost_found",
        "-i -s 2", "-a 1 -O encrypt,sb_checksum", "-O extra_attr,flexible_inline_xattr" } do
        local path = path_of "image"
        helper.must("truncate -s 600M %s && %s -q %s %s", path, oracle.mkfs, words, path)
        fill(path)
        local said, status = fsck(path)
        local result = assert(check.run(path))
        assert.equal(status == 0, result.clean, words .. said:sub(-2000) .. result.text)
        local nodes = said:match "valid_node_count [^\n]+nat lookup%)%s+[^ ]+ %[0x(%x+)"
        local inodes = said:match "valid_inode_count matched with CP%s+[^ ]+ %[0x(%x+)"
        assert.int(result.nodes, tonumber(nodes, 16))
        assert.int(result.inodes, tonumber(inodes, 16))
        os.remove(path)
      end
    end)

    -- Each is found by both; brim names what it is.
    local function damage(name, structure, change)
      it("finds " .. name, function()
        local path = path_of "damaged"
        helper.must("cp --sparse=always %s %s", used, path)
        local fs <close> = assert(volume.open(path))
        change(path, fs)
        local result = assert(check.run(path))
        assert.is_false(result.clean)
        assert.is_truthy(result.by_structure[structure], result.text)
        local said, status = fsck(path)
        assert.is_true(status ~= 0 or said:find "%[Fail%]" ~= nil or said:find "ASSERT" ~= nil
          or said:find "Fix" ~= nil, said)
        os.remove(path)
      end)
    end

    local function any_inode(fs)
      local nid = 10
      local entry = assert(fs:nat_entry(nid))
      return nid, entry, entry.block_addr << 12
    end

    damage("a node whose footer is another's", "node", function(path, fs)
      local _, _, at = any_inode(fs)
      overwrite(path, at + 4072, ("<I4I4"):pack(11, 11))
    end)

    damage("an inode that is no kind of file", "inode", function(path, fs)
      local _, _, at = any_inode(fs)
      overwrite(path, at, ("<I2"):pack(0x3fff))
    end)

    damage("a node whose block the SIT calls free", "nat", function(path, fs)
      local _, entry = any_inode(fs)
      local place = entry.block_addr - fs.sb.main_blkaddr
      local segment, bit = place // 512, place % 512
      local at = (fs:sit_place(segment // 55) << 12) + segment % 55 * 74
      local vblocks, map = ("<I2c64"):unpack(read(path, at, 66))
      local byte = map:byte((bit >> 3) + 1) & ~(1 << (7 - (bit & 7)))
      overwrite(path, at, ("<I2"):pack(vblocks - 1))
      overwrite(path, at + 2 + (bit >> 3), string.char(byte))
    end)

    damage("a NAT entry past the end", "nat", function(path, fs)
      local nid = any_inode(fs)
      overwrite(path, (fs:nat_place(0) << 12) + nid * 9 + 5, ("<I4"):pack(0x7fffffff))
    end)

    damage("a count of valid blocks that is not the map's", "sit", function(path, fs)
      local _, entry = any_inode(fs)
      local segment = (entry.block_addr - fs.sb.main_blkaddr) // 512
      local at = (fs:sit_place(segment // 55) << 12) + segment % 55 * 74
      overwrite(path, at, ("<I2"):pack((("<I2"):unpack(read(path, at, 2))) - 3))
    end)

    for _, counter in ipairs { "valid_block_count", "valid_node_count", "valid_inode_count",
      "free_segment_count" } do
      damage("a wrong " .. counter, "cp", function(path, fs)
        local pack = fs.pack
        local field = ondisk.cp:field(counter)
        local bytes = crc.put(pack.bytes, field.off_bytes, pack.values[counter] + 1)
        bytes = crc.put(bytes, pack.values.checksum_offset,
          crc.cp(bytes, pack.values.checksum_offset))
        overwrite(path, pack.block << 12, bytes)
        overwrite(path, pack.block + pack.values.cp_pack_total_block_count - 1 << 12, bytes)
      end)
    end

    it("names an address that is twice there, and one outside", function()
      local path = path_of "damaged"
      helper.must("cp --sparse=always %s %s", used, path)
      local fs <close> = assert(volume.open(path))
      local root = assert(fs:nat_entry(3)).block_addr << 12
      local first = ("<I4"):unpack(read(path, root + 360, 4))
      overwrite(path, root + 364, ("<I4I4"):pack(first, 5))
      local result = assert(check.run(path))
      assert.is_truthy(result.text:find "node 3: address 1: block %d+ is that of node 3, too")
      assert.is_truthy(result.text:find "node 3: address 2: block 5 is not in the main area")
      os.remove(path)
    end)

    it("falls back to what is left of superblocks and checkpoints", function()
      local path = path_of "damaged"
      helper.must("cp --sparse=always %s %s", used, path)
      overwrite(path, 1024, ("\0"):rep(3072))
      local result = assert(check.run(path))
      assert.same({ sb = 1 }, result.by_structure)
      assert.is_truthy(result.text:find "sb 0: its magic number is 0x0")
      local fs <close> = assert(volume.open(path))
      for _, pack in ipairs(fs.packs) do
        overwrite(path, pack.block << 12, ("\xff"):rep(4096))
      end
      result = assert(check.run(path))
      assert.int(result.by_structure.cp, 3)
      overwrite(path, 4096 + 1024, ("\0"):rep(3072))
      assert.refuses("EUSAGE", check.run(path))
      os.remove(path)
    end)

    it("takes a checkpoint that points anywhere for damage", function()
      local path = path_of "damaged"
      for _, name in ipairs { "cp_pack_start_sum", "cp_pack_total_block_count",
        "nat_ver_bitmap_bytesize", "sit_ver_bitmap_bytesize", "checksum_offset" } do
        helper.must("cp --sparse=always %s %s", used, path)
        local fs <close> = assert(volume.open(path))
        for _, pack in ipairs(fs.packs) do
          local bytes = crc.put(pack.bytes, ondisk.cp:field(name).off_bytes, 0x7fffffff)
          bytes = crc.put(bytes, 4092, crc.cp(bytes, 4092))
          overwrite(path, pack.block << 12, bytes)
          overwrite(path, pack.block + pack.values.cp_pack_total_block_count - 1 << 12, bytes)
        end
        local result = assert(check.run(path))
        assert.is_false(result.clean, name)
      end
    end)

    -- Whatever fsck.f2fs finds after one bit was flipped is found; entries of the SIT that the
    -- journal overrides are its alone.
    it(("finds what fsck.f2fs finds of bits that were flipped, of seed %d"):format(SEED), function()
      math.randomseed(SEED, version == "1.15" and 15 or 16)
      local path, sealed = path_of "flipped", path_of "sealed"
      -- With checksums of inodes: names, links and sizes are looked at by fsck.f2fs alone.
      helper.must("truncate -s 160M %s && %s -q -O extra_attr,inode_checksum %s", sealed,
        oracle.mkfs, sealed)
      fill(sealed)
      local fs <close> = assert(volume.open(sealed))
      local function node_at()
        local nid = math.random(4, fs.cp.valid_node_count)
        return assert(fs:nat_entry(nid)).block_addr << 12
      end
      local found = 0
      for round = 1, 24 do
        local segment = math.random(0, 20)
        local at = ({ function() return (fs:nat_place(0) << 12) + math.random(27, 4000) end,
          function() return (fs:sit_place(0) << 12) + segment * 74 + math.random(0, 65) end,
          function() return node_at() + math.random(0, 4095) end,
          function() return node_at() + 360 + math.random(0, 40) end })[round % 4 + 1]()
        helper.must("cp --sparse=always %s %s", sealed, path)
        overwrite(path, at, string.char(read(path, at, 1):byte() ~ 1 << math.random(0, 7)))
        local result = assert(check.run(path))
        local said, status = fsck(path)
        if (status ~= 0 or said:find "ASSERT") and not (round % 4 == 1
          and fs.sit_journal[segment]) then
          assert.is_false(result.clean, ("round %d, byte %d: %s"):format(round, at,
            said:match "%[ASSERT%][^\n]*" or said:sub(-1500)))
          found = found + 1
        end
      end
      assert.is_true(found > 8, found)
    end)

    it(("survives noise in its metadata, of seed %d"):format(SEED), function()
      math.randomseed(SEED)
      local path = path_of "noise"
      local fs <close> = assert(volume.open(used))
      local areas = { { 0, 2 }, { fs.sb.cp_blkaddr, 8 }, { fs.sb.cp_blkaddr + 512, 8 },
        { fs.sb.sit_blkaddr, 3 }, { fs.sb.nat_blkaddr, 3 }, { fs.sb.ssa_blkaddr, 40 },
        { fs.sb.main_blkaddr, 700 } }
      local found = 0
      for round = 1, 25 do
        helper.must("cp --sparse=always %s %s", used, path)
        for _ = 1, math.random(4) do
          local area = areas[math.random(#areas)]
          local at = (area[1] << 12) + math.random(0, (area[2] << 12) - 64)
          local bytes = {}
          for i = 1, math.random(64) do
            bytes[i] = string.char(math.random(0, 255))
          end
          overwrite(path, at, table.concat(bytes))
        end
        local ok, result, err = pcall(check.run, path)
        assert.is_true(ok, ("round %d: %s"):format(round, tostring(result)))
        assert.is_true(result ~= nil or err.usage == true)
        found = found + (result and not result.clean and 1 or 0)
      end
      assert.is_true(found > 6, found)
      os.remove(path)
    end)
  end)
end
