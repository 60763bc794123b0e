-- brim inspect of an F2FS beside dump.f2fs: each entry of NAT, SIT and SSA, inodes, superblock and
-- checkpoint of a filesystem that sload.f2fs filled; and that it finds out what a target holds.
local brim = require "brim"
local helper = require "spec.helper"
local inspect = require "brim.f2fs.inspect"
local json = require "brim.json"
local oracles = require "spec.oracles"
local segments_of = require "brim.f2fs.segments"

local TYPES <const> = { ["hot data"] = 0, ["warm data"] = 1, ["cold data"] = 2, ["hot node"] = 3,
  ["warm node"] = 4, ["cold node"] = 5 }

for _, version in ipairs { "1.15", "1.16" } do
  describe("brim inspect beside dump.f2fs " .. version, function()
    local oracle, missing = oracles.of("f2fs", version)
    if not oracle then
      pending(missing)
      return
    end

    local image, fs, dumps

    setup(function()
      image, dumps = helper.path "image", helper.path "dumps"
      helper.must("truncate -s 400M %s && %s -q -l brim -O extra_attr,inode_crtime %s && mkdir %s",
        image, oracle.mkfs, image, dumps)
      local sload = oracle.mkfs:gsub("mkfs%.f2fs$", "sload.f2fs")
      if helper.has(sload) then
        helper.must("mkdir -p %s/t/d && seq 500000 >%s/t/d/x && cp -r spec %s/t && %s -f %s/t %s",
          dumps, dumps, dumps, sload, dumps, image)
      end
      fs = assert(brim.f2fs.open(image))
    end)

    teardown(function()
      fs:close()
    end)

    local function dump(words, file)
      helper.must("cd %s && %s %s %s", dumps, oracle.dump, words, image)
      return helper.read(dumps .. "/" .. file)
    end

    it("tells of each node what the NAT says", function()
      local count = 0
      for nid, ino, block in dump("-n 0~-1", "dump_nat"):gmatch
        "nid:%s*(%d+)%s+ino:%s*(%d+)%s+offset:%s*%d+%s+blkaddr:%s*(%d+)" do
        local v = inspect.nat(fs, math.tointeger(tonumber(nid)))
        assert.int(v.fields.ino, math.tointeger(tonumber(ino)))
        assert.int(v.fields.block_addr, math.tointeger(tonumber(block)))
        count = count + 1
      end
      assert.is_true(count >= fs.cp.valid_node_count)
    end)

    it("tells of each segment what the SIT says", function()
      local count, used = 0, 0
      for segment, valid, kind in dump("-s 0~-1", "dump_sit"):gmatch
        "segno:%s*(%d+)%s+vblocks:%s*(%d+)%s+seg_type:(%d)" do
        local v = inspect.sit(fs, math.tointeger(tonumber(segment)))
        assert.int(v.fields.valid, math.tointeger(tonumber(valid)))
        assert.int(TYPES[v.fields.type], math.tointeger(tonumber(kind)))
        count, used = count + 1, used + v.fields.valid
      end
      assert.is_true(count > 6)
      assert.int(used, fs.cp.valid_block_count)
    end)

    it("tells whose blocks are, as the SSA says", function()
      local text = dump("-a 0~20", "dump_ssa")
      local logs, count = fs:logs(), 0
      for segment, kind, rows in text:gmatch "segno: (%d+), ([^\n]+)\n+(.-)\n\n" do
        segment = math.tointeger(tonumber(segment))
        -- Of logs, dump.f2fs shows what the checkpoint has.
        if not logs[segment] then
          local v = inspect.ssa(fs, segment)
          assert.int(v.fields.entry_type, kind:find "^Node" and 1 or 0)
          for i, nid in rows:gmatch "%[%s*(%d+):%s*(%x+)%]" do
            assert.int(v.fields.entries[i + 1].nid, tonumber(nid, 16))
            count = count + 1
          end
        end
      end
      assert.is_true(count > 0)
    end)

    it("shows inodes as dump.f2fs does", function()
      for _, ino in ipairs { 3, 4, 5, 20 } do
        -- It asks whether to copy files out, and ends with 255 without an answer.
        local said = helper.sh("%s -d 1 -i 0x%x %s </dev/null", oracle.dump, ino, image)
        local v, count = inspect.inode(fs, ino), 0
        for name, n in said:gmatch "\n(i_[%w_]+)%s+%[0x%s*%x+ : (%d+)%]" do
          if math.type(v.fields[name]) == "integer" then
            assert.int(v.fields[name], math.tointeger(tonumber(n)))
            count = count + 1
          end
        end
        assert.is_true(count > 10, said)
        assert.same({}, v.faults)
      end
    end)

    it("shows superblock and checkpoint as dump.f2fs does", function()
      local said = helper.must("%s -d 1 %s", oracle.dump, image)
      local sb, cp, count = inspect.sb(fs), inspect.cp(fs), 0
      for name, n in said:gmatch "\n([%w_]+)%s+%[0x%s*%x+ : (%d+)%]" do
        local ours = { sb.fields[name], cp.fields[name] }
        if math.type(ours[1] or ours[2]) == "integer" then
          n = math.tointeger(tonumber(n))
          assert.is_true(ours[1] == n or ours[2] == n, name)
          count = count + 1
        end
      end
      assert.is_true(count > 40, said)
      assert.is_truthy(tostring(sb):find('label%s+"brim"'))
    end)

    it("draws a map whose counts are those of the checkpoint", function()
      local out, _, status = helper.brim("inspect", image, "segmap", "--json")
      assert.equal(0, status)
      local fields = json.decode(out).fields
      assert.int(fields.free, fs.cp.free_segment_count)
      assert.int(fields.valid_blocks, fs.cp.valid_block_count)
      assert.int(fields.free + fields.dirty + fields.full + fields.logs, fs.sb.segment_count_main)
      local s = assert(segments_of.read(fs))
      local free = 0
      for segment = 0, s.count - 1 do
        free = free + ((s.valid[segment] or fs:logs()[segment]) and 0 or 1)
      end
      assert.int(fields.free, free)
      local text = helper.brim("inspect", image, "segmap")
      local _, dots = text:gsub("\n%s*%d+ |([^|]+)|", "%1"):gsub("%*", "")
      assert.is_true(dots >= 6)
    end)
  end)
end

describe("brim inspect of an F2FS", function()
  local path

  setup(function()
    path = helper.path "fresh"
    assert(assert(brim.f2fs.format { size_bytes = "200m", features = { "lost_found" },
      label = "Ü\u{1f600}" }):write(path))
  end)

  it("knows it from an XFS, and shows the geometry", function()
    local out, _, status = helper.brim("inspect", path)
    assert.equal(0, status)
    assert.is_truthy(out:find("^F2FS on ") and out:find("Ü\u{1f600}", 1, true), out)
    local xfs = helper.path "xfs.brim"
    assert(assert(brim.xfs.format { size_bytes = "1g" }):save(xfs))
    out, _, status = helper.brim("inspect", xfs, "agf", "0")
    assert.equal(0, status)
    assert.is_truthy(out:find "AGF", out)
  end)

  it("refuses what is not there, in one line", function()
    local cases = { { "agf", "0" }, { "sit" }, { "sit", "-1" }, { "sit", "99999" }, { "nat", "x" },
      { "node", "9" }, { "sb", "2" }, { "cp", "3" }, { "segmap", "1" }, { "inode", "1" },
      { "node", "0x99999999" } }
    for _, words in ipairs(cases) do
      local out, err, status = helper.brim("inspect", path, table.unpack(words))
      assert.equal(2, status, table.concat(words, " ") .. out .. err)
      assert.is_truthy(err:find "^brim inspect: [^\n]+\n$", err)
    end
    local _, err = helper.brim("inspect", path, "segmat")
    assert.is_truthy(err:find "did you mean 'segmap'", err)
  end)

  it("shows bytes, and what is wrong", function()
    local out = helper.brim("inspect", path, "sb", "--raw")
    assert.is_truthy(out:find "10 20 f5 f2", out)
    local file <close> = assert(io.open(path, "r+b"))
    file:seek("set", 1024)
    file:write "\0"
    file:flush()
    out = helper.brim("inspect", path, "sb", "0")
    assert.is_truthy(out:find "wrong: its magic number", out)
    out = helper.brim("inspect", path, "sb", "1")
    assert.is_nil(out:find "wrong", out)
  end)
end)
