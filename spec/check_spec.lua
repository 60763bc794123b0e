-- brim check: fresh filesystems of any size are clean, used ones as xfs_repair has it; damage is
-- found, named, and never crashes it. The whole campaign is run by hand (spec/campaign). #root
local brim = require "brim"
local check = require "brim.xfs.check"
local corrupt = require "spec.campaign.corrupt"
local helper = require "spec.helper"
local json = require "brim.json"

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

local function repair(path)
  return helper.sh("xfs_repair -n -P -f %s", helper.quote(path))
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

describe("brim check of used filesystems #root", function()
  local KINDS <const> = { { 11, "-m rmapbt=1" }, { 12, "" },
    { 13, "-m rmapbt=1 -b size=1024 -d agsize=80m -l size=64m", "SIZE=800m" } }

  it("is silent where xfs_repair is, and finds what it finds", function()
    for i, kind in ipairs(KINDS) do
      local image = used("used" .. i, kind[1], kind[2], kind[3])
      for _, path in ipairs { image.path, image.path .. ".old" } do
        local said, status = repair(path)
        assert.equal(0, status, said)
        local result = assert(check.run(path))
        assert.is_true(result.clean, result.text)
      end
      for seed = 1, 20 do
        local writes, what = corrupt.make(image, seed)
        local undo = corrupt.apply(image.path, writes)
        local result, err = check.run(image.path)
        local said, status = repair(image.path)
        corrupt.apply(image.path, undo)
        assert.is_true(status == 0 or err ~= nil or not result.clean,
          ("seed %d of image %d: %s\n%s"):format(seed, kind[1], what, said))
      end
      image.file:close()
      image.old:close()
      helper.must("rm -f %s %s", image.path, image.path .. ".old")
    end
  end)
end)
