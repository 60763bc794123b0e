-- brim.xfs.inspect, without the reference tools: addresses, words, views, JSON, damage, size, time.
-- What the fields hold is compared with xfs_db in spec/inspect_xfs_db_spec.lua.
local address = require "brim.xfs.address"
local brim = require "brim"
local core = require "brim.core"
local dir = require "brim.xfs.inspect_dir"
local helper = require "spec.helper"
local inode = require "brim.xfs.inspect_inode"
local inspect = require "brim.xfs.inspect"
local layouts = require "brim.xfs.inspect_layouts"
local ondisk = require "brim.xfs.ondisk"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local UUID <const> = "01234567-89ab-cdef-0123-456789abcdef"

-- An image file of a fresh filesystem; its path.
local function image(o)
  o.uuid, o.time_ns = UUID, 1700000000123456789
  local plan <close> = assert(brim.xfs.format(o))
  local path = helper.path "image.brim"
  assert(plan:save(path))
  return path
end

-- The same as a sparse file that can be damaged.
local function written(o)
  o.uuid, o.time_ns = UUID, 1700000000123456789
  local plan <close> = assert(brim.xfs.format(o))
  local path = helper.path "image"
  assert(plan:write(path))
  return path
end

local function overwrite(path, off_bytes, bytes)
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("set", off_bytes)
  file:write(bytes)
end

describe("brim.xfs.address", function()
  local SB <const> = { blocksize = 4096, blocklog = 12, sectsize = 512, sectlog = 9,
    inodesize = 512, inodelog = 9, agblocks = 19200, agcount = 4, agblklog = 15, dblocks = 76000 }

  local function with(changes)
    local sb = {}
    for _, t in ipairs { SB, changes } do
      for k, v in pairs(t) do
        sb[k] = v
      end
    end
    return sb
  end

  it("converts blocks, sectors, bytes and inodes into each other", function()
    local a = assert(address.of(SB))
    local place = assert(a:group_block(3, 7))
    assert.int(place.fsblock, 3 << 15 | 7)
    assert.int(place.off_bytes, (3 * 19200 + 7) * 4096)
    assert.int(place.daddr, place.off_bytes // 512)
    assert.same(place, a:block(place.fsblock))
    assert.same(place, a:at(place.off_bytes + 4095))
    assert.same(place, a:sector(place.daddr + 7))
    local ino = a:inode_number(3, 7 << 3 | 5)
    assert.int(a:inode(ino).off_bytes, place.off_bytes + 5 * 512)
    assert.int(a:inode_at(place.off_bytes + 5 * 512 + 511), ino)
  end)

  it("knows the length of the last group", function()
    local a = assert(address.of(SB))
    assert.int(a:length(2), 19200)
    assert.int(a:length(3), 76000 - 3 * 19200)
    assert.int(address.of(with { dblocks = 5 }):length(3), 19200)
  end)

  it("refuses what lies outside", function()
    local a = assert(address.of(SB))
    for _, try in ipairs { { "has_group", 4 }, { "has_group", -1 }, { "group_block", 3, 18400 },
      { "group_block", 0, -1 }, { "block", 4 << 15 }, { "block", 19200 }, { "block", -1 },
      { "at", -1 }, { "at", math.maxinteger }, { "sector", math.maxinteger }, { "inode", -1 },
      { "inode", 4 << 18 }, { "inode", math.maxinteger }, { "group_bytes", 1 << 32 } } do
      local ok, why = a[try[1]](a, try[2], try[3])
      assert.is_nil(ok)
      assert.is_string(why)
    end
    assert.equal("group 4 is out of range, the groups are 0 .. 3", (select(2, a:has_group(4))))
  end)

  it("refuses a superblock that gives no addresses", function()
    for _, changes in ipairs { { blocklog = 63 }, { blocksize = 0 }, { blocklog = 17,
      blocksize = 1 << 17 }, { sectlog = 13, sectsize = 8192 }, { inodelog = 5, inodesize = 32 },
      { agcount = 0 }, { agblocks = 0 }, { agblklog = 33 }, { agblklog = 14 } } do
      local a, why = address.of(with(changes))
      assert.is_nil(a)
      assert.is_string(why)
    end
  end)

  it("says where groups are past the largest offset", function()
    local a = assert(address.of(with { agcount = 0xffffffff, agblocks = 0xffffffff, agblklog = 32,
      dblocks = math.maxinteger, blocksize = 65536, blocklog = 16 }))
    assert.is_nil(a:group_bytes(0xfffffffe))
    assert.is_nil(a:group_block(0xfffffffe, 1))
    assert.is_nil(a:inode((0xfffffffe << 32) | 1))
  end)
end)

describe("brim.xfs.inspect_words", function()
  it("writes 64-bit patterns as unsigned numbers", function()
    assert.equal("0", words.unsigned(0))
    assert.equal("9223372036854775807", words.unsigned(math.maxinteger))
    assert.equal("9223372036854775808", words.unsigned(math.mininteger))
    assert.equal("18446744073709551615", words.unsigned(-1))
  end)

  it("writes times of both kinds as UTC", function()
    assert.equal("1970-01-01 00:00:00.000000000 UTC", words.time(0, false))
    assert.equal("1969-12-31 23:59:59.000000005 UTC", words.time(-1 << 32 | 5, false))
    assert.equal("1901-12-13 20:45:52.000000000 UTC", words.time(0, true))
    assert.equal("1970-01-01 00:00:00.000000001 UTC", words.time((1 << 31) * 1000000000 + 1, true))
    assert.equal("2486-07-02 20:20:25.709551615 UTC", words.time(-1, true))
  end)

  it("names flags, also those it does not know", function()
    assert.same({ "FINOBT", "REFLINK" }, words.flags("features_ro_compat", 5))
    assert.same({ "BIGTIME", "unknown 0x8000000000000000" }, words.flags("features_incompat",
      8 | math.mininteger))
  end)

  it("writes modes as ls does", function()
    assert.equal("0100644 -rw-r--r--", words.mode(tonumber("100644", 8)))
    assert.equal("041777 drwxrwxrwt", words.mode(tonumber("41777", 8)))
    assert.equal("0106755 -rwsr-sr-x", words.mode(tonumber("106755", 8)))
    assert.equal("0104644 -rwSr--r--", words.mode(tonumber("104644", 8)))
    assert.equal("0", words.mode(0))
  end)

  it("keeps text on one line", function()
    assert.equal("a\\x0ab\\\\", words.text "a\nb\\")
    assert.equal("caf\u{e9}", words.text "caf\u{e9}")
    assert.equal("\\xff\\x00x", words.text "\xff\0x")
  end)

  it("names owners and takes rmap offsets apart", function()
    assert.equal("-5 ag", words.owner(-5))
    assert.equal("18446744073709551516", words.owner(-100))
    local offset, is = words.rmap_offset(1 << 63 | 1 << 61 | 77)
    assert.int(offset, 77)
    assert.same({ attr_fork = true, bmbt_block = false, unwritten = true }, is)
  end)
end)

describe("brim.xfs.open", function()
  local path, fs

  setup(function()
    path = image { size_bytes = "8191p" }
    fs = assert(brim.xfs.open(path))
  end)

  teardown(function()
    fs:close()
    fs:close()
  end)

  it("gives the values of fields, 8 EiB or not", function()
    local agf = assert(fs:agf(8000000))
    assert.int(agf.seqno, 8000000)
    assert.int(agf.length, 268435455)
    assert.equal(UUID, agf.uuid)
    assert.int(fs:agfl(8387584).bno[2], 6)
    assert.int(fs:bnobt(8387584).recs[1].blockcount, 8387584 - 10)
    assert.int(fs:inode(128).data_fork.parent, 128)
    assert.int(fs:inobt(0).recs[1].free, -8)
    assert.is_true(fs:log().is_clean)
    assert.int(fs:geometry().ag_count, 8387585)
    assert.int(fs:block(1, 8387584).about.off_bytes, 8387584 * 268435455 * 4096 + 4096)
  end)

  it("finds nothing wrong in a fresh filesystem", function()
    for _, v in ipairs { fs:sb(), fs:sb(5), fs:agf(0), fs:agi(0), fs:agfl(0), fs:bnobt(0),
      fs:cntbt(0), fs:inobt(0), fs:finobt(0), fs:refcountbt(0), fs:log(), fs:inode(128),
      fs:inode(191), fs:block(0), fs:block(16), fs:sector(32768), fs:geometry() } do
      assert.same({}, inspect.faults(v))
    end
  end)

  it("prints itself, in the REPL too", function()
    local text = brim.pretty.format(fs:agf(7))
    assert.equal(tostring(fs:agf(7)), text)
    assert.is_truthy(text:find('magicnum         0x58414746 "XAGF" (right)', 1, true))
    assert.is_truthy(text:find("length           268435455 blocks (right)", 1, true))
    assert.is_truthy(tostring(fs):find("8387585 groups", 1, true))
    assert.is_truthy(tostring(fs:inode(128)):find(
      "mtime          2023-11-14 22:13:20.123456789 UTC", 1, true))
    assert.is_truthy(tostring(fs:sb()):find(
      "features_ro_compat     0xd (FINOBT, REFLINK, INOBTCNT)", 1, true))
    assert.is_truthy(tostring(fs:agi(0)):find("[0..63] null", 1, true))
    assert.is_truthy(tostring(fs:sb(1)):find("rootino                null", 1, true))
    assert.is_truthy(tostring(fs:bytes(0, 64)):find("|XFSB............|", 1, true))
  end)

  it("makes JSON with exact integers", function()
    local t = inspect.json(fs:sb(1))
    assert.equal("18446744073709551615", t.fields.rbmino)
    assert.int(t.fields.dblocks, 2251524935778304)
    assert.is_true(t.intact)
    assert.equal("18446744073709551608", inspect.json(fs:inobt(0)).fields.recs[1].free)
    local text = brim.json.encode(inspect.json(fs:inode(128)))
    assert.is_truthy(text:find('"data_fork":{"count":0,"entries":[],"i8count":0,"parent":128}', 1,
      true))
    assert.is_nil(text:find("literal", 1, true))
  end)

  it("refuses what is not there in one line, as bad input", function()
    local function refused(message, v, err)
      assert.is_nil(v)
      assert.is_true(err.usage)
      assert.equal(message, tostring(err))
    end
    local range <const> = " is out of range, the groups are 0 .. 8387584"
    for _, name in ipairs { "sb", "agf", "agi", "agfl", "bnobt", "finobt" } do
      refused("group 9000000" .. range, fs[name](fs, 9000000))
    end
    refused("group -1" .. range, fs:agf(-1))
    refused("block 8387584 is out of range, the blocks of group 8387584 are 0 .. 8387583",
      fs:cntbt(8387584, 8387584))
    refused(path .. " has no rmapbt: it was made without the feature rmapbt", fs:rmapbt(0))
    refused("0 bytes cannot be shown, 1 .. 1048576 can", fs:bytes(0, 0))
    assert.refuses("EUSAGE", fs:bytes(math.maxinteger, 512))
    assert.refuses("EUSAGE", fs:inode(math.maxinteger))
    assert.refuses("EUSAGE", fs:block(-1))
    assert.refuses("EUSAGE", fs:sector(math.maxinteger))
    assert.refuses("ENOENT", brim.xfs.open(helper.path "none"))
    assert.has_error(function() fs:agf "1" end)
    assert.has_error(function() fs:inode(1.5) end)
  end)

  it("is done in under 50 ms, the process included", function()
    local best, tries = math.huge, 0
    local is_slowed = (os.getenv "SAN" or "") ~= "" or (os.getenv "BRIM_GC" or "") ~= ""
    repeat
      local begun = core.monotonic_s()
      local out, _, status = helper.brim("inspect", path, "agf", "8000000")
      best, tries = math.min(best, core.monotonic_s() - begun), tries + 1
      assert.equal(0, status)
      assert.is_truthy(out:find "group 8000000")
    until best < 0.05 or tries == 20 or is_slowed
    assert.is_true(best < 0.05 or is_slowed, ("%.1f ms"):format(1000 * best))
  end)
end)

describe("a damaged structure", function()
  local path

  before_each(function()
    path = written { size_bytes = "400m", rmapbt = true }
  end)

  after_each(function()
    os.remove(path)
  end)

  local function shown(off_bytes, bytes, call)
    overwrite(path, off_bytes, bytes)
    local fs <close> = assert(brim.xfs.open(path))
    local v = assert(call(fs))
    return tostring(v), inspect.faults(v), v
  end

  local function has(text, part)
    assert.is_truthy(text:find(part, 1, true), ("'%s' is not in\n%s"):format(part, text))
  end

  it("is shown with its wrong magic number and checksum", function()
    local before <close> = assert(brim.xfs.open(path))
    local crc = before:agf(0).crc
    local text, faults = shown(512, "XAGE", function(fs) return fs:agf(0) end)
    has(text, 'magicnum         0x58414745 "XAGE" (wrong: should be 0x58414746 "XAGF")')
    has(text, ("crc              0x%x (wrong: should be 0x"):format(crc))
    has(text, 'WRONG: magicnum should be 0x58414746 "XAGF"')
    assert.int(#faults, 2)
  end)

  it("says what the checksum should be", function()
    local before <close> = assert(brim.xfs.open(path))
    local crc = before:agf(0).crc
    local text = shown(512 + 216, "\1\2\3\4", function(fs) return fs:agf(0) end)
    has(text, ("crc              0x4030201 (wrong: should be 0x%x)"):format(crc))
  end)

  it("says whose it is and where", function()
    local text = shown(4096 + 16, ("\0"):rep(8) .. ("\0"):rep(8) .. ("\1"):rep(16) .. "\0\0\0\9",
      function(fs) return fs:bnobt(0) end)
    has(text, "blkno     0 (wrong: should be 8)")
    has(text, "owner     9 (wrong: should be 0)")
    has(text, "uuid      01010101-0101-0101-0101-010101010101 (wrong: should be " .. UUID .. ")")
  end)

  it("has its impossible counts clipped", function()
    local text, _, v = shown(4096 + 6, "\xff\xff", function(fs) return fs:bnobt(0) end)
    has(text, "numrecs   65535 (wrong: should be at most 505)")
    assert.int(#v.recs, 505)
    has(text, "more like this")
    _, _, v = shown(65536 + 512 + 76, "\xff\xff\xff\xff", function(fs) return fs:inode(129) end)
    assert.int(#v.data_fork.extents, 21)
    text, _, v = shown(65536 + 176, "\xff", function(fs) return fs:inode(128) end)
    has(text, "data fork: 255 entries should be there, 41 fit")
    assert.int(#v.data_fork.entries, 41)
  end)

  it("has impossible records named", function()
    local text = shown(4096 + 56, ("\xff"):rep(8), function(fs) return fs:bnobt(0) end)
    has(text, "(wrong: ends past the group's 25600 blocks)")
    text = shown(8192 + 64, "\0\0\0\1\0\0\0\1", function(fs) return fs:cntbt(0) end)
    has(text, "(wrong: is out of order)")
    text = shown(12288 + 56, "\x7f", function(fs) return fs:inobt(0) end)
    has(text, "(wrong: is past the group's 25600 blocks)")
  end)

  it("does not keep a superblock from being shown", function()
    local text = shown(4, "\0\0\0\5", function(fs)
      assert.refuses("EUSAGE", fs:agf(0))
      assert.refuses("EUSAGE", fs:inode(128))
      assert.refuses("EUSAGE", fs:block(0))
      assert.refuses("EUSAGE", fs:log())
      assert.refuses("EUSAGE", fs:geometry())
      assert.is_truthy(tostring(fs):find "damaged: blocksize 5")
      assert.is_truthy(fs:bytes(0, 512))
      return fs:sb()
    end)
    has(text, "blocksize              5 bytes (wrong: should be 2^blocklog, 4096)")
    local small = helper.path "small"
    helper.write(small, "XFSB")
    assert.refuses("EUSAGE", brim.xfs.open(small))
  end)

  local function calls(fs)
    local ag, any = math.random(0, 3), math.random(0, 30000)
    local list = { fs:sb(), fs:sb(ag), fs:agf(ag), fs:agi(ag), fs:agfl(ag), fs:log(),
      fs:geometry(), fs:inode(128 + any % 64), fs:inode(any), fs:block(any), fs:sector(any) }
    for _, tree in ipairs { "bnobt", "cntbt", "inobt", "finobt", "rmapbt", "refcountbt" } do
      list[#list + 1] = fs:tree(tree, ag)
      list[#list + 1] = fs:tree(tree, ag, any % 8)
    end
    for b = 0, 24 do
      list[#list + 1] = fs:block(b, ag)
    end
    return list
  end

  -- Bytes that tend to matter: all ones, zeros, anything.
  local function garbage(n)
    local bytes = {}
    for i = 1, n do
      local kind = math.random(3)
      bytes[i] = string.char(kind == 1 and 255 or kind == 2 and 0 or math.random(0, 255))
    end
    return table.concat(bytes)
  end

  it("never makes it raise, loop or grow", function()
    math.randomseed(7)
    local pristine = helper.read(path):sub(1, 1 << 17)
    local begun, longest = os.clock(), 0
    for round = 1, 150 do
      for _ = 1, math.random(1, 8) do
        local at = math.random(0, 3) == 0 and math.random(0, 299)
          or math.random(0, 31) * 4096 + math.random(0, 200)
        overwrite(path, at, garbage(math.random(1, 12)))
      end
      local fs <close> = brim.xfs.open(path)
      for _, v in pairs(fs and calls(fs) or {}) do
        if view.is(v) then
          longest = math.max(longest, #tostring(v))
          assert.is_table(inspect.json(v))
        end
      end
      if round % 10 == 0 then
        overwrite(path, 0, pristine)
      end
    end
    assert.is_true(longest < 4 << 20)
    assert.is_true(os.clock() - begun < 120)
  end)
end)

describe("inspect's decoders", function()
  local fs = { has = { ftype = true }, uuid = UUID,
    primary = { dirblklog = 0, rblocks = 0 },
    address = assert(address.of { blocksize = 4096, blocklog = 12, sectsize = 512, sectlog = 9,
      inodesize = 512, inodelog = 9, agblocks = 19200, agcount = 4, agblklog = 15,
      dblocks = 76800 }) }
  local place = fs.address:group_block(1, 77)

  it("read short directories with 8-byte inode numbers", function()
    local fork = "\2\1" .. (">I8"):pack(1 << 40) .. "\3\0\x60abc\1" .. (">I8"):pack(1 << 41)
      .. "\1\0\x70z\2" .. (">I8"):pack(5)
    local d = inode.short_dir(fork .. ("\0"):rep(40), true)
    assert.int(d.parent, 1 << 40)
    assert.same({ { name = "abc", offset = 0x60, ftype = 1, ino = 1 << 41 },
      { name = "z", offset = 0x70, ftype = 2, ino = 5 } }, d.entries)
    for n = 0, #fork - 1 do
      local cut = inode.short_dir(fork:sub(1, n), true)
      assert.is_true(cut == nil or #cut.entries < 2)
    end
  end)

  it("read extents of 128 bits", function()
    local e = ondisk.extent { l0 = 1 << 63 | ((1 << 54) - 2) << 9 | 0x155,
      l1 = ((1 << 43) - 3) << 21 | (1 << 21) - 1 }
    assert.same({ unwritten = true, startoff = (1 << 54) - 2, blockcount = (1 << 21) - 1,
      startblock = 0x155 << 43 | (1 << 43) - 3 }, e)
  end)

  it("read attributes of a leaf block and blocks of quotas", function()
    local body = layouts.attr_leaf:encode({ uuid = UUID, blkno = place.daddr, count = 1,
      entries = { { hashval = 7, nameidx = 4000, flags = 3 } } }, 4096)
    body = body:sub(1, 4000) .. (">I2B"):pack(5, 3) .. "keyvalue" .. body:sub(4012)
    local v = dir.show(fs, dir.kind(body), place, body)
    assert.equal("key", v.entries[1].name)
    assert.equal("value", v.entries[1].value)
    local quotas = layouts.dquot:encode { uuid = UUID, id = 1000, bcount = 5, type = 1 }
      .. layouts.dquot:encode { uuid = UUID, id = 1001 }
    v = dir.quotas(fs, place, quotas .. ("\0"):rep(100))
    assert.int(#v, 1)
    assert.same({}, inspect.faults(v))
    assert.is_truthy(tostring(v):find "quota of id 1000")
  end)

  it("give back what was encoded", function()
    for _, tree in ipairs { "bnobt", "cntbt", "inobt", "finobt", "rmapbt", "refcountbt", "bmbt" } do
      for _, size in ipairs { 1024, 4096, 65536 } do
        local of = ondisk.node(tree, size)
        assert.equal(of, ondisk.node(tree, size))
        local t = of:decode((of:encode { uuid = UUID, level = 1, numrecs = 1, owner = 3,
          ptrs = { 7, 8 } }))
        assert.int(t.ptrs[2], 8)
        assert.int(#t.ptrs, #t.keys)
        assert.same(t, (of:decode(of:encode(t))))
      end
    end
    for name, of in pairs(layouts) do
      local size = of.extensible and 4096 or of.size_bytes
      local t, intact = of:decode(of:encode({}, size), 0, size)
      assert.same(t, (of:decode(of:encode(t, size), 0, size)), name)
      assert.is_true(intact or not of.checksum)
    end
    assert.int(#ondisk.bmdr(192):decode(ondisk.bmdr(192):encode {}).keys, 11)
  end)

  it("dump bytes with repeated lines as a star", function()
    assert.equal(table.concat({
      "000000001000  41 41 41 41 41 41 41 41  41 41 41 41 41 41 41 41  |AAAAAAAAAAAAAAAA|", "*",
      "000000001030  00 ff                                             |..|" }, "\n"),
      view.dump(("A"):rep(48) .. "\0\xff", 4096))
  end)
end)
