-- brim check: fresh filesystems of any size are clean, used ones as xfs_repair has it; damage is
-- found, named, and never crashes it. The whole campaign is run by hand (spec/campaign). #root
local brim = require "brim"
local check = require "brim.xfs.check"
local corrupt = require "spec.campaign.corrupt"
local helper = require "spec.helper"
local json = require "brim.json"
local ondisk = require "brim.xfs.ondisk"
local oracles = require "spec.oracles"

local UUID <const> = "01234567-89ab-cdef-0123-456789abcdef"

local function overwrite(path, off_bytes, bytes)
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("set", off_bytes)
  file:write(bytes)
end

local function fresh(o)
  local path = helper.path "fresh"
  o.uuid, o.time_ns = UUID, 0
  assert(assert(brim.xfs.format(o)):write(path))
  return path
end

local function lines(result)
  return result.text:gsub("\n[^\n]* groups: .*", "")
end

-- An image that is used in the way of a seed; its list of structures for corruptions.
local function used(name, seed, options, env)
  local path = helper.path(name)
  helper.must("%s bash spec/campaign/age.sh %s %d %s", env or "", helper.quote(path), seed, options)
  local list, sb = corrupt.list(path)
  return { path = path, list = list, sb = sb, file = assert(io.open(path, "rb")),
    old = assert(io.open(path .. ".old", "rb")) }
end

local function repair(tools, path)
  return helper.sh("%s -n -P -f %s", tools.repair, helper.quote(path))
end

describe("brim check of what brim formats", function()
  it("is clean, whatever the geometry", function()
    for _, o in ipairs { { size_bytes = "400m" }, { size_bytes = "2g", rmapbt = true },
      { size_bytes = "2g", block_bytes = 1024, rmapbt = true, ag_count = 16 },
      { size_bytes = "2g", block_bytes = 65536, sector_bytes = 4096, ag_count = 7 },
      { size_bytes = "1g", finobt = false, reflink = false, sparse = false, ag_count = 2 },
      { size_bytes = "3g", sector_bytes = 4096, inobtcount = false } } do
      local result = assert(check.run(fresh(o)))
      assert.is_true(result.clean, result.text)
      assert.int(result.finding_count, 0)
      assert.equal("clean", result.log)
      assert.int(result.groups_fresh + result.groups_walked, result.groups)
    end
  end)

  it("takes the fast path for all groups but three of a large image file", function()
    local image = helper.path "large.brim"
    assert(assert(brim.xfs.format { size_bytes = "64p", rmapbt = true }):save(image))
    local result = assert(check.run(image))
    assert.is_true(result.clean, result.text)
    assert.int(result.groups, 65537)
    assert.int(result.groups_fresh, 65534)
  end)

  it("takes it too where the release that formatted made shorter free lists", function()
    local path = helper.path("short.brim")
    helper.must("%s mkfs.xfs --compat 7.2 -q -b size=64k -d agsize=128m,size=8g %s", helper.exe,
      path)
    local result = assert(check.run(path))
    assert.is_true(result.clean)
    assert.int(result.groups_fresh, 60)
  end)

  it("says what is wrong, with group, structure, field, expected and found", function()
    local path = fresh { size_bytes = "2g", ag_count = 8 }
    local list, sb = corrupt.list(path)
    local file <close> = assert(io.open(path, "rb"))
    local agf = sb.agblocks * sb.blocksize * 3 + sb.sectsize
    overwrite(path, agf + 52, "\0\0\0\7")
    local result = assert(check.run(path))
    assert.equal("group 3, agf, crc: the checksum is wrong", (lines(result)))
    assert.is_false(result.clean)
    assert.int(result.groups_walked, 4)
    assert.is_true(#list > 8 and file ~= nil)
  end)
end)

describe("brim check of what mkfs.xfs leaves", function()
  it("takes the fast path where something lies behind the headers", function()
    local path = fresh { size_bytes = "2g", ag_count = 16 }
    for ag = 0, 15 do
      overwrite(path, ag * (128 << 20) + 2048, ("rubbish "):rep(256))
    end
    local result = assert(check.run(path))
    assert.is_true(result.clean, result.text)
    assert.int(result.groups_fresh, 12) -- all but the first, the middle, the log's, the last
  end)
end)

describe("brim check on the command line", function()
  it("exits with 0, 1 or 2, and prints JSON", function()
    local path = fresh { size_bytes = "400m" }
    local out, _, status = helper.brim("check", "xfs", path)
    assert.equal(0, status)
    assert.truthy(out:find "\nclean\n$")
    out, _, status = helper.brim("check", path, "--json")
    assert.equal(0, status)
    assert.is_true(json.decode(out).clean)
    overwrite(path, 1024, "XXXX")
    out, _, status = helper.brim("check", path, "--json")
    assert.equal(1, status)
    assert.equal("agi", json.decode(out).findings[1].structure)
  end)

  it("refuses what is no XFS", function()
    local empty, zeros = helper.path "empty", helper.path "zeros"
    helper.write(empty, "")
    helper.write(zeros, ("\0"):rep(1 << 20))
    for _, words in ipairs { { "xfs", empty }, { zeros }, { "xfs", "/nowhere" }, { "ext4", zeros } }
    do
      local _, err, status = helper.brim("check", table.unpack(words))
      assert.equal(2, status, err)
      assert.int(select(2, err:gsub("\n", "")), 1)
    end
  end)

  it("refuses a filesystem that is longer than its target", function()
    local path = fresh { size_bytes = "400m" }
    helper.must("truncate -s 300m %s", path)
    local _, err, status = helper.brim("check", path)
    assert.equal(2, status)
    assert.truthy(err:find "its superblock says")
  end)
end)

describe("brim check of hostile metadata", function()
  it("ends with findings or a refusal, never otherwise", function()
    local path = fresh { size_bytes = "1g", rmapbt = true, ag_count = 4 }
    local list, sb = corrupt.list(path)
    local file <close> = assert(io.open(path, "rb"))
    local image = { list = list, sb = sb, file = file }
    for seed = 1, 150 do
      local undo = {}
      for k = 0, seed % 3 do
        local names = k == 0 and { "forged", "counter" } or { "random" }
        local writes = corrupt.make(image, seed * 8 + k, names)
        undo[#undo + 1] = corrupt.apply(path, writes)
      end
      local result, err = check.run(path)
      assert.is_true(result ~= nil or err.usage == true, ("seed %d: %s"):format(seed,
        tostring(err)))
      for k = #undo, 1, -1 do
        corrupt.apply(path, undo[k])
      end
    end
    assert.is_true(assert(check.run(path)).clean)
    assert.equal(0, brim._debug.open_handles())
  end)
end)

-- Changes fields of a structure in the file, with its checksum made right.
local function forge(path, layout, off_bytes, len_bytes, change)
  local file <close> = assert(io.open(path, "rb"))
  local fields = layout:decode(corrupt.read(file, off_bytes, len_bytes), 0, len_bytes)
  change(fields)
  overwrite(path, off_bytes, layout:encode(fields, len_bytes))
end

describe("brim check of inodes", function()
  local path, inode_bytes, at

  before_each(function()
    path = fresh { size_bytes = "400m", rmapbt = true }
    local _, sb = corrupt.list(path)
    inode_bytes, at = sb.inodesize, sb.rootino * sb.inodesize
  end)

  it("reads them all, unless it is to be shallow", function()
    assert.int(assert(check.run(path)).inodes, 3)
    assert.int(assert(check.run(path, { shallow = true })).inodes, 0)
  end)

  it("finds an inode that is another, in use though free, free though in use", function()
    forge(path, ondisk.inode, at, inode_bytes, function(i) i.ino = i.ino + 1 end)
    assert.truthy(assert(check.run(path)).text:find("inode 128, ino: expected 128, found 129", 1,
      true))
    forge(path, ondisk.inode, at, inode_bytes, function(i) i.ino, i.mode = i.ino - 1, 0 end)
    assert.truthy(assert(check.run(path)).text:find("inode 128, free: the inode tree has it in use",
      1, true))
    forge(path, ondisk.inode, at + 9 * inode_bytes, inode_bytes, function(i) i.mode = 0x81a4 end)
    assert.truthy(assert(check.run(path)).text:find("inode 137, in use: the inode tree has it free",
      1, true))
  end)

  it("finds blocks of a file that no record of the reverse map has", function()
    forge(path, ondisk.inode, at + inode_bytes, inode_bytes, function(i)
      i.nextents, i.nblocks = 1, 1
      -- Offset 0, block 100, 1 block.
      table.move({ (">I8I8"):pack(0, 100 << 21 | 1):byte(1, 16) }, 1, 16, 1, i.literal)
    end)
    local text = assert(check.run(path)).text
    assert.truthy(text:find("rmapbt, owner 129: block 100: in its data at 0, and no record says so",
      1, true), text)
  end)
end)

describe("brim check's progress", function()
  it("is told while groups are walked, and may end it", function()
    local path = fresh { size_bytes = "2g", ag_count = 16 }
    -- Nothing is fresh any more.
    for ag = 0, 15 do
      overwrite(path, ag * (128 << 20) + 1000, "x")
    end
    local phases = {}
    local result = assert(check.run(path, { progress_interval_s = 0, progress = function(p)
      phases[p.phase] = true
      assert.is_true(p.groups_done <= p.groups_total)
    end }))
    assert.is_true(phases.trees)
    assert.is_nil(result.stopped)
    result = assert(check.run(path, { progress_interval_s = 0, progress = function(p)
      return p.phase ~= "trees"
    end }))
    assert.equal("cancelled", result.stopped)
    assert.is_false(result.clean)
  end)
end)

describe("brim check of features", function()
  local path

  local function with_bits(field, bits)
    forge(path, ondisk.sb, 0, 512, function(sb) sb[field] = sb[field] | bits end)
    return helper.brim("check", path)
  end

  before_each(function()
    path = fresh { size_bytes = "400m" }
  end)

  it("refuses those it does not know, in one line", function()
    local _, err, status = with_bits("features_incompat", 0x40000)
    assert.equal(2, status)
    assert.truthy(err:find "ro_compat 0x0, incompat 0x40000")
    assert.int(select(2, err:gsub("\n", "")), 1)
    _, err, status = with_bits("features_ro_compat", 0x4000)
    assert.equal(2, status)
    assert.truthy(err:find "ro_compat 0x4000")
  end)

  it("takes what the mkfs.xfs of every generation makes", function()
    for _, oracle in ipairs(oracles.xfs()) do
      for _, options in ipairs { "", "-m rmapbt=1 -b size=1024", "-m metadir=1" } do
        helper.must("rm -f %s && truncate -s 400m %s", path, path)
        local _, status = helper.sh("%s -q %s %s", oracle.mkfs, options, path)
        if status == 0 then
          local result = assert(check.run(path))
          assert.is_true(result.clean, ("%s %s: %s"):format(oracle.version, options, result.text))
          local out, err, shown = helper.brim("inspect", path, "sb")
          assert.equal(0, shown, out .. err)
        else
          assert.equal("-m metadir=1", options)
        end
      end
    end
  end)
end)

-- The newest tools here, which may be the system's.
local function newest()
  local list = oracles.xfs()
  return list[#list]
end

describe("brim check of used filesystems #root", function()
  local KINDS <const> = { { 11, "-m rmapbt=1" }, { 12, "" }, { 13, "-m reflink=0" },
    { 14, "-b size=1024 -d agsize=80m -l size=64m", "SIZE=480m", is_newest = true } }

  it("is silent where xfs_repair is, and finds what it finds", function()
    for i, kind in ipairs(KINDS) do
      local tools = kind.is_newest and newest() or oracles.xfs()[1]
      local image = used("used" .. i, kind[1], kind[2], ("FILES=500 MKFS=%s %s"):format(
        tools.mkfs, kind[3] or ""))
      for _, path in ipairs { image.path, image.path .. ".old" } do
        local said, status = repair(tools, path)
        assert.equal(0, status, said)
        local result = assert(check.run(path))
        assert.is_true(result.clean, result.text)
        assert.is_true(result.inodes > 100)
      end
      for seed = 1, 12 do
        local writes, what = corrupt.make(image, seed, seed % 4 == 0 and { "forged" } or nil)
        local undo = corrupt.apply(image.path, writes)
        local result, err = check.run(image.path)
        local said, status = repair(tools, image.path)
        corrupt.apply(image.path, undo)
        assert.is_true(status == 0 or err ~= nil or not result.clean,
          ("seed %d of image %d: %s\n%s"):format(seed, kind[1], what, said))
      end
      for seed = 1, 60 do
        local undo = corrupt.apply(image.path, (corrupt.make(image, seed, { "random" })))
        local result, err = check.run(image.path)
        corrupt.apply(image.path, undo)
        assert.is_true(result ~= nil or err.usage == true, ("hostile seed %d of image %d: %s")
          :format(seed, kind[1], tostring(err)))
      end
      image.file:close()
      image.old:close()
      helper.must("rm -f %s %s", image.path, image.path .. ".old")
    end
  end)

  it("finds a record of a file's that is another's, or elsewhere", function()
    local image = used("forged", 21, "-m rmapbt=1", "FILES=300")
    for _, field in ipairs { "owner", "offset", "blockcount" } do
      for _, s in ipairs(image.list) do
        if s.kind == "rmapbt" and s.level == 0 then
          local before = corrupt.read(image.file, s.off, s.len)
          local is_forged = false
          forge(image.path, ondisk.rmapbt, s.off, s.len, function(leaf)
            local rec = leaf.recs[s.count]
            if rec.owner > 0 then
              rec[field] = rec[field] + (field == "offset" and 1000 or 1)
              is_forged = true
            end
          end)
          local result = assert(check.run(image.path))
          assert.is_true(result.clean ~= is_forged, field)
          overwrite(image.path, s.off, before)
        end
      end
    end
    image.file:close()
    image.old:close()
  end)
end)
