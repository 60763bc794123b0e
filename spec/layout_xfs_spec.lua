-- The layouts of XFS against the reference: what mkfs.xfs wrote decodes, encodes to the same bytes,
-- and has field by field what xfs_db prints.
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local ondisk = require "brim.xfs.ondisk"

describe("brim.layout of XFS, as mkfs.xfs wrote it and xfs_db reads it", function()
  if not (helper.has "mkfs.xfs" and helper.has "xfs_db") then
    pending "mkfs.xfs and xfs_db are not installed"
    return
  end

  local AG_BYTES <const> = 1 << 30
  local SECTOR <const>, BLOCK <const>, INODE <const> = 512, 4096, 512
  local workspace, image

  setup(function()
    workspace = configs.workspace "layout"
    image = workspace:path "image"
    helper.must("truncate -s 4G %s && mkfs.xfs -q -L brim -m rmapbt=1,uuid=%s -i nrext64=1"
      .. " -d su=64k,sw=2,agsize=1g %s", image, configs.UUID, image)
  end)

  teardown(function()
    workspace:close()
  end)

  local function read(off_bytes, len_bytes)
    local file <close> = assert(io.open(image, "rb"))
    assert(file:seek("set", off_bytes))
    return file:read(len_bytes)
  end

  -- Decodes what is there, which must encode to the same bytes, unused records included.
  local function decode(of, off_bytes, size_bytes)
    local bytes = read(off_bytes, size_bytes)
    local values, intact = of:decode(bytes, 0, size_bytes)
    assert.is_true(intact)
    assert.is_true(of:encode(values, size_bytes) == bytes)
    return values
  end

  local function number(text)
    if text == "null" then
      return 0xffffffff
    elseif text:find "^0%d" then
      return tonumber(text, 8)
    end
    return math.tointeger(tonumber(text))
  end

  -- What `p` prints, by name; the records of a tree as lists under "recs".
  local function xfs_db(...)
    local words = {}
    for _, command in ipairs { ... } do
      words[#words + 1] = "-c " .. helper.quote(command)
    end
    local values = { recs = {} }
    local said = helper.must("xfs_db -r %s -c p %s", table.concat(words, " "), image)
    for line in said:gmatch "[^\n]+" do
      local name, value = line:match "^([%w_.]+) = (%S*)"
      local list = line:match "^%d+:%[(.*)%]"
      if name then
        values[name] = value
      elseif list then
        local rec = {}
        for item in list:gmatch "[^,]+" do
          rec[#rec + 1] = number(item)
        end
        values.recs[#values.recs + 1] = rec
      end
    end
    return values
  end

  -- Compares each single field under its name there: `names` has those that differ; false are not
  -- shown.
  local function compare(of, values, shown, names)
    local compared = 0
    for _, field in ipairs(of.fields) do
      local name = names[field.name]
      if name == nil then
        name = field.name
      end
      if name and not field.array then
        local there = assert(shown[name], name .. " is not shown")
        local expected = values[field.name]
        if of.checksum.field == field.name then
          -- xfs_db shows the four bytes as they lie.
          assert.equal(string.pack("<I4", expected), string.pack(">I4", number(there)))
        elseif field.kind == "int" then
          assert.int(expected, assert(number(there), name))
        else
          assert.equal(expected, (there:gsub('^"(.-)\\?0*.*$', "%1")))
        end
        compared = compared + 1
      end
    end
    return compared
  end

  it("the superblock, and its copies", function()
    local sb = decode(ondisk.sb, 0, SECTOR)
    local shown = xfs_db "sb 0"
    shown.fname = shown.fname:match '"(%w+)'
    -- Those of metadata directories and realtime groups, which xfs_db before 6.13 does not know.
    local newer, unknown = {}, 0
    for _, name in ipairs { "metadirino", "rgcount", "rgextents", "rgblklog", "pad", "rtstart",
      "rtreserved" } do
      if shown[name] == nil then
        newer[name], unknown = false, unknown + 1
      end
    end
    assert.int(compare(ondisk.sb, sb, shown, newer), #ondisk.sb.fields - unknown)
    assert.equal("brim", sb.fname)
    assert.equal(configs.UUID, sb.uuid)
    local copy = decode(ondisk.sb, AG_BYTES, SECTOR)
    assert.int(copy.inprogress, 1)
    assert.int(copy.rbmino, ondisk.NULL_FS_INODE)
  end)

  local AGF_NAMES <const> = { bno_root = "bnoroot", cnt_root = "cntroot", rmap_root = "rmaproot",
    bno_level = "bnolevel", cnt_level = "cntlevel", rmap_level = "rmaplevel",
    rmap_blocks = "rmapblocks", refcount_blocks = "refcntblocks", refcount_root = "refcntroot",
    refcount_level = "refcntlevel", spare2 = false }

  local AGI_NAMES <const> = { iblocks = "ino_blocks", fblocks = "fino_blocks", pad32 = false }

  it("the headers of each group", function()
    for ag = 0, 3 do
      local at = ag * AG_BYTES
      local agf = decode(ondisk.agf, at + SECTOR, SECTOR)
      assert.int(compare(ondisk.agf, agf, xfs_db("agf " .. ag), AGF_NAMES), 23)
      local agi = decode(ondisk.agi, at + 2 * SECTOR, SECTOR)
      local shown = xfs_db("agi " .. ag)
      assert.int(compare(ondisk.agi, agi, shown, AGI_NAMES), 17)
      for slot = 1, 64 do
        assert.int(agi.unlinked[slot], ondisk.NULL_AG_BLOCK)
      end
      local agfl = decode(ondisk.agfl, at + 3 * SECTOR, SECTOR)
      assert.int(compare(ondisk.agfl, agfl, xfs_db("agfl " .. ag), {}), 5)
      local list = helper.must("xfs_db -r -c 'agfl %d' -c 'p bno' %s", ag, image)
      assert.int(#agfl.bno, 119)
      for slot, block in list:gmatch "(%d+):(%w+)" do
        assert.int(agfl.bno[tonumber(slot) + 1], number(block))
      end
    end
  end)

  local TREES = {
    { "bnobt", "agf", "bnoroot", { "startblock", "blockcount" } },
    { "cntbt", "agf", "cntroot", { "startblock", "blockcount" } },
    { "rmapbt", "agf", "rmaproot", { "startblock", "blockcount", "owner", "offset" } },
    { "refcountbt", "agf", "refcntroot", { "startblock", "blockcount", "refcount" } },
    { "inobt", "agi", "root", { "startino", "holemask", "count", "freecount", "free" } },
    { "finobt", "agi", "free_root", { "startino", "holemask", "count", "freecount", "free" } },
  }
  for _, row in ipairs(TREES) do
    local name, header_name, root, fields = table.unpack(row)
    it("the root of each group's " .. name, function()
      for ag = 0, 3 do
        local shown = xfs_db(("%s %d"):format(header_name, ag), "addr " .. root)
        local at = number(shown.bno) << 9
        assert.int(at // AG_BYTES, ag)
        local tree = decode(ondisk[name], at, BLOCK)
        assert.int(compare(ondisk[name], tree, shown, { blkno = "bno" }), 10)
        assert.int(#shown.recs, tree.numrecs)
        for k = 1, tree.numrecs do
          for f, field in ipairs(fields) do
            assert.int(tree.recs[k][field], shown.recs[k][f])
          end
        end
      end
    end)
  end

  local INODE_NAMES <const> = { magic = "core.magic", mode = "core.mode",
    version = "core.version", format = "core.format", onlink = "core.onlink",
    uid = "core.uid", gid = "core.gid",
    nlink = "core.nlinkv2", projid_lo = "core.projid_lo", projid_hi = "core.projid_hi",
    big_nextents = false, atime = false, mtime = false, ctime = false, size = "core.size",
    nblocks = "core.nblocks", extsize = "core.extsize", nextents = "core.nextents",
    anextents = "core.naextents", forkoff = "core.forkoff", aformat = "core.aformat",
    dmevmask = "core.dmevmask", dmstate = "core.dmstate", flags = false, gen = "core.gen",
    crc = "v3.crc", changecount = "v3.change_count", lsn = "v3.lsn", flags2 = "v3.flags2",
    cowextsize = "v3.cowextsize", pad2 = false, crtime = false, ino = "v3.inumber",
    uuid = "v3.uuid" }

  it("inodes", function()
    local root = decode(ondisk.sb, 0, SECTOR).rootino
    for n = 0, 4 do
      local inode = decode(ondisk.inode, (root + n) * INODE, INODE)
      local shown = xfs_db(("inode %d"):format(root + n))
      assert.int(compare(ondisk.inode, inode, shown, INODE_NAMES), 28)
      assert.int(inode.flags & 4, n == 1 and 4 or 0)
      assert.equal(n == 1 and "1" or "0", shown["core.newrtbm"])
    end
    local inode = decode(ondisk.inode, root * INODE, INODE)
    local dir = ondisk.dir_sf:decode(string.char(table.unpack(inode.literal, 1, 6)))
    assert.same({ count = 0, i8count = 0, parent = root }, dir)
  end)
end)
