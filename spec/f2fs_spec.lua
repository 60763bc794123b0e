-- brim.f2fs without a reference tool: structures, hashes, options, warnings, order of writes.
local brim = require "brim"
local content = require "brim.f2fs.content"
local crc = require "brim.f2fs.crc"
local geometry = require "brim.f2fs.geometry"
local helper = require "spec.helper"
local ondisk = require "brim.f2fs.ondisk"
local options = require "brim.f2fs.options"
local superblock = require "brim.f2fs.superblock"

local GIB <const> = 1 << 30

describe("brim.f2fs.ondisk", function()
  it("reads back what it encodes", function()
    for name, of in pairs(ondisk) do
      if type(of) == "table" and of.encode and of.size_bytes then
        local v = of:decode(of:encode {})
        assert.equal(of:encode {}, of:encode(v), name)
      end
    end
  end)
end)

describe("brim.f2fs.crc", function()
  -- Of names on an image of mkfs.f2fs -O lost_found and of directories that the kernel wrote, as
  -- dump.f2fs shows them: "." and ".." have none.
  it("hashes names", function()
    assert.int(crc.hash ".", 0)
    assert.int(crc.hash "..", 0)
    assert.is_true(crc.hash "lost+found" ~= crc.hash "lost+founD")
    for length = 1, 255 do
      local hash = crc.hash(("x"):rep(length))
      assert.is_true(hash >= 0 and hash <= 0xffffffff)
    end
  end)

  it("puts numbers into bytes", function()
    assert.equal("ab\1\0\0\0g", crc.put("abcdefg", 2, 1))
  end)
end)

describe("the geometry of an F2FS", function()
  it("has fewer node numbers on larger volumes, and -i lifts that", function()
    local function nids(size_bytes, large)
      return assert(brim.f2fs.geometry { size_bytes = size_bytes, large_nat = large }).max_nids
    end
    assert.int(nids(1 << 40), 9551360)
    assert.int(nids(3210 * GIB), 232960)
    assert.is_true(nids(3260 * GIB) > 13000000)
    assert.is_true(nids(3210 * GIB, true) > 100000000)
  end)

  it("warns of what mkfs.f2fs keeps silent about", function()
    local function warned(o, pattern)
      local all = table.concat(assert(brim.f2fs.geometry(o)).warnings, "\n")
      return all:find(pattern) ~= nil, all
    end
    assert.is_true(warned({ size_bytes = 3210 * GIB }, "only 232960 files"))
    assert.is_false(warned({ size_bytes = 3210 * GIB, large_nat = true }, "files"))
    assert.is_true(warned({ size_bytes = 100 * GIB, large_nat = true }, "%-i leaves room"))
    assert.is_true(warned({ size_bytes = 1000000000000 }, "with %-i"))
    assert.is_false(warned({ size_bytes = 100 * GIB }, "files"))
    assert.is_true(warned({ size_bytes = 4 * GIB, overprovision_percent = 1 }, "without %-o"))
    assert.is_false(warned({ size_bytes = 4 * GIB }, "without %-o"))
    assert.is_true(warned({ size_bytes = 4 * GIB, section_segments = 16,
      overprovision_percent = 1, compat = "1.16" }, "sections of 16"))
    assert.is_true(warned({ size_bytes = 4 * GIB }, "16 GiB or less"))
    assert.is_false(warned({ size_bytes = 100 * GIB }, "16 GiB or less"))
    assert.is_true(warned({ size_bytes = 20 * GIB, section_segments = 3 }, "last whole zone"))
  end)

  it("says which inequality does not hold", function()
    for _, case in ipairs { { { size_bytes = 4096 }, "segments begin at" },
      { { size_bytes = 8 << 20 }, "at least 9 are needed" },
      { { size_bytes = GIB, section_segments = 128 }, "zones" },
      { { size_bytes = 17 << 40 }, "at most 16 TiB" },
      { { size_bytes = GIB, section_segments = 2048 }, "2047" },
      { { size_bytes = GIB, features = { "compression" } }, "needs extra_attr" },
      { { size_bytes = GIB, features = { "quoda" } }, "did you mean 'quota'" },
      { { size_bytes = GIB, overprovision_percent = 0.01 }, "reserved" } } do
      local g, err = brim.f2fs.geometry(case[1])
      assert.is_nil(g)
      assert.is_true(err.usage)
      assert.is_truthy(err.message:find(case[2], 1, true), err.message)
      assert.is_nil(err.message:find "\n")
    end
  end)

  it("refuses or computes each size without raising", function()
    for _, size in ipairs { 0, 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
      math.maxinteger - 4096, math.maxinteger, 16 << 40, (16 << 40) - 4096, (16 << 40) + 512 } do
      local g, err = geometry.compute({}, { { size_bytes = size } })
      assert.is_true(g ~= nil or err.usage == true)
    end
  end)
end)

describe("labels and extensions", function()
  it("go through UTF-16 and back", function()
    for _, label in ipairs { "", "brim", "Bläu", "\u{1f600}\u{10ffff}x" } do
      local words = superblock.utf16(label)
      assert.equal(label, superblock.utf8(words))
    end
    assert.is_nil(superblock.utf16 "\xff")
    assert.is_nil((brim.f2fs.format { size_bytes = GIB, label = ("x"):rep(512) }))
  end)

  it("are 64 at most", function()
    local list = {}
    for i = 1, 40 do
      list[i] = "x" .. i
    end
    local p, err = brim.f2fs.format { size_bytes = GIB, cold = table.concat(list, ",") }
    assert.is_nil(p)
    assert.is_truthy(err.message:find "64 extensions")
  end)
end)

describe("the command line of mkfs.f2fs", function()
  it("becomes options", function()
    local o = assert(options.parse { "-fqi", "-s4", "-z", "2", "-o", "1.5", "-O", "quota,verity",
      "-C", "utf8:strict", "-T0x10", "-R1:2", "-c", "/b", "-lname", "--compat=1.16", "/a" })
    assert.same({ features = { "quota", "verity", "casefold" }, more = { "/b" }, force = true,
      quiet = true, large_nat = true, section_segments = 4, zone_sections = 2,
      overprovision_percent = 1.5, encoding = 1, strict = true, time_s = 16, uid = 1, gid = 2,
      label = "name", compat = "1.16", target = "/a" }, o)
  end)

  it("is refused in one line that names the option", function()
    for _, case in ipairs { { { "-s", "x", "/a" }, "-s x" }, { { "-o", "101", "/a" }, "-o 101" },
      { {}, "device" }, { { "-s" }, "-s needs" }, { { "-m", "/a" }, "zoned" },
      { { "--compat", "9", "/a" }, "1.15 or 1.16" }, { { "/a", "x" }, "sectors" },
      { { "-c", "/b", "/a", "5" }, "one device" }, { { "/a", "1", "2" }, "too many" },
      { { "-R", "1", "/a" }, "UID:GID" }, { { "-T", "now", "/a" }, "-T now" },
      { { "-Z", "3", "/a" }, "development branch" }, { { "--nonsense", "/a" }, "--compat" } } do
      local o, err = options.parse(case[1])
      assert.is_nil(o)
      assert.is_true(err.usage)
      assert.is_truthy(err.message:find(case[2], 1, true), err.message)
    end
  end)
end)

describe("the plan of an F2FS", function()
  it("destroys the old superblocks first and writes the new ones last", function()
    local p <close> = assert(brim.f2fs.format { size_bytes = 2 * GIB, fixed_version = true })
    local pieces = p:pieces()
    assert.equal("signature", pieces[1].phase)
    assert.int(pieces[1].off_bytes, 0)
    assert.equal("superblock", pieces[#pieces].phase)
    assert.int(pieces[#pieces].off_bytes + pieces[#pieces].stride_bytes, 0)
    for _, piece in ipairs(pieces) do
      assert.equal(piece.name == "superblocks", piece.phase == "superblock")
    end
  end)

  it("is the same for the same options, and verifies what it wrote", function()
    local o = { size_bytes = 2 * GIB, fixed_version = true, time_s = 5, kernel = "k",
      uuid = "01234567-89ab-cdef-0123-456789abcdef", features = { "lost_found", "quota" } }
    local path = helper.path "image"
    local a <close> = assert(brim.f2fs.format(o))
    local b <close> = assert(brim.f2fs.format(o))
    assert(a:write(path))
    assert.int(assert(b:verify(path)).mismatch_count, 0)
    assert.equal(a:read(0, 8 << 20), b:read(0, 8 << 20))
  end)

  it("lays the metadata of several devices on the first", function()
    local plans = assert(brim.f2fs.plans { devices = { { size_bytes = 64 << 20, path = "a" },
      { size_bytes = GIB, path = "b" } } })
    assert.int(#plans, 2)
    local inodes = content.inodes(plans[1].geometry)
    assert.int(#inodes, 1)
    for _, p in ipairs(plans) do
      p:close()
    end
    assert.has_error(function()
      brim.f2fs.format { devices = { { size_bytes = GIB, path = "a" },
        { size_bytes = GIB, path = "b" } } }
    end)
  end)

  it("is refused over another filesystem, and for a target that is too small", function()
    local path = helper.path "other"
    helper.must("truncate -s 1G %s", path)
    assert(assert(brim.xfs.format { size_bytes = GIB }):write(path))
    local _, err, status = helper.brim("mkfs.f2fs", path)
    assert.equal(2, status)
    assert.is_truthy(err:find "%-f", err)
    local _, _, forced = helper.brim("mkfs.f2fs", "-f", path)
    assert.equal(0, forced)
    local _, why, missing = helper.brim("mkfs.f2fs", path .. ".missing")
    assert.equal(2, missing)
    assert.is_truthy(why:find "missing")
    local out, _, dry = helper.brim("--dry-run", "mkfs.f2fs", "-f", "-s", "3", path)
    assert.equal(0, dry)
    assert.is_truthy(out:find "Segments per section = 3")
  end)
end)
