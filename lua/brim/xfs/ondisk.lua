-- brim.xfs.ondisk: the on-disk structures of a V5 XFS, in XFS's own field names. Called by format,
-- check and inspect. All big-endian but the checksums; the offsets are those of xfs_format.h and
-- xfs_log_format.h. What the headers leave to the sector, block or inode size is `extensible`.
local layout = require "brim.layout"

local M = {}

local struct = layout.struct
local NULL32 <const> = 0xffffffff
local NULL64 <const> = -1 -- the bit pattern 0xffffffffffffffff

M.NULL_AG_BLOCK = NULL32
M.NULL_FS_INODE = NULL64

M.sb = struct("sb", { size_bytes = 304, endian = "big", crc32c = "crc", extensible = true,
  doc = "superblock, one sector, a copy in every group" }) {
  { 0, "u32", "magicnum", magic = 0x58465342, doc = "XFSB" },
  { 4, "u32", "blocksize", unit = "bytes" },
  { 8, "u64", "dblocks", unit = "blocks", doc = "of the data device" },
  { 16, "u64", "rblocks", unit = "blocks", doc = "of the realtime device" },
  { 24, "u64", "rextents", unit = "realtime extents" },
  { 32, "uuid", "uuid" },
  { 48, "u64", "logstart", unit = "fs block address", doc = "0: external log" },
  { 56, "u64", "rootino", doc = "inode of the root directory" },
  { 64, "u64", "rbmino", doc = "inode of the realtime bitmap" },
  { 72, "u64", "rsumino", doc = "inode of the realtime summary" },
  { 80, "u32", "rextsize", unit = "blocks" },
  { 84, "u32", "agblocks", unit = "blocks", doc = "of every group but the last" },
  { 88, "u32", "agcount" },
  { 92, "u32", "rbmblocks", unit = "blocks" },
  { 96, "u32", "logblocks", unit = "blocks" },
  { 100, "u16", "versionnum", doc = "version in the low 4 bits, feature bits" },
  { 102, "u16", "sectsize", unit = "bytes" },
  { 104, "u16", "inodesize", unit = "bytes" },
  { 106, "u16", "inopblock", doc = "inodes to a block" },
  { 108, "char[12]", "fname", doc = "label" },
  { 120, "u8", "blocklog", unit = "log2 of bytes" },
  { 121, "u8", "sectlog", unit = "log2 of bytes" },
  { 122, "u8", "inodelog", unit = "log2 of bytes" },
  { 123, "u8", "inopblog", unit = "log2 of inodes to a block" },
  { 124, "u8", "agblklog", unit = "log2 of agblocks, rounded up" },
  { 125, "u8", "rextslog", unit = "log2 of rextents" },
  { 126, "u8", "inprogress", doc = "1 while mkfs runs, and in the copies" },
  { 127, "u8", "imax_pct", unit = "percent", doc = "of space that inodes may take" },
  { 128, "u64", "icount", doc = "inodes allocated" },
  { 136, "u64", "ifree", doc = "of these, free" },
  { 144, "u64", "fdblocks", unit = "blocks", doc = "free" },
  { 152, "u64", "frextents", unit = "realtime extents", doc = "free" },
  { 160, "u64", "uquotino", doc = "inode of the user quota" },
  { 168, "u64", "gquotino", doc = "inode of the group quota" },
  { 176, "u16", "qflags" },
  { 178, "u8", "flags" },
  { 179, "u8", "shared_vn" },
  { 180, "u32", "inoalignmt", unit = "blocks", doc = "alignment of inode chunks" },
  { 184, "u32", "unit", unit = "blocks", doc = "stripe unit" },
  { 188, "u32", "width", unit = "blocks", doc = "stripe width" },
  { 192, "u8", "dirblklog", unit = "log2 of blocks to a directory block" },
  { 193, "u8", "logsectlog", unit = "log2 of bytes", doc = "0: 512-byte sectors" },
  { 194, "u16", "logsectsize", unit = "bytes", doc = "0: 512-byte sectors" },
  { 196, "u32", "logsunit", unit = "bytes", doc = "log stripe unit; 1: none" },
  { 200, "u32", "features2" },
  { 204, "u32", "bad_features2", doc = "the same again" },
  { 208, "u32", "features_compat" },
  { 212, "u32", "features_ro_compat" },
  { 216, "u32", "features_incompat" },
  { 220, "u32", "features_log_incompat" },
  { 224, "u32le", "crc" },
  { 228, "u32", "spino_align", unit = "blocks", doc = "alignment of sparse inode chunks" },
  { 232, "u64", "pquotino", doc = "inode of the project quota" },
  { 240, "u64", "lsn", doc = "of the last write" },
  { 248, "uuid", "meta_uuid", doc = "of the metadata where it differs" },
  { 264, "u64", "metadirino", doc = "inode of the metadata directory" },
  { 272, "u32", "rgcount", doc = "realtime groups" },
  { 276, "u32", "rgextents", unit = "realtime extents", doc = "of every realtime group" },
  { 280, "u8", "rgblklog", unit = "log2 of a realtime group's blocks, rounded up" },
  { 281, "bytes[7]", "pad" },
  { 288, "u64", "rtstart", unit = "blocks", doc = "of an internal realtime part" },
  { 296, "u64", "rtreserved", unit = "blocks", doc = "of the realtime part" },
}

M.agf = struct("agf", { size_bytes = 224, endian = "big", crc32c = "crc", extensible = true,
  doc = "free space header of a group, its second sector" }) {
  { 0, "u32", "magicnum", magic = 0x58414746, doc = "XAGF" },
  { 4, "u32", "versionnum", value = 1 },
  { 8, "u32", "seqno", doc = "number of this group" },
  { 12, "u32", "length", unit = "blocks" },
  { 16, "u32", "bno_root", unit = "group block", doc = "free space by block" },
  { 20, "u32", "cnt_root", unit = "group block", doc = "free space by size" },
  { 24, "u32", "rmap_root", unit = "group block", doc = "reverse map" },
  { 28, "u32", "bno_level" },
  { 32, "u32", "cnt_level" },
  { 36, "u32", "rmap_level" },
  { 40, "u32", "flfirst", doc = "first free list slot in use" },
  { 44, "u32", "fllast", doc = "last free list slot in use" },
  { 48, "u32", "flcount", unit = "blocks", doc = "on the free list" },
  { 52, "u32", "freeblks", unit = "blocks" },
  { 56, "u32", "longest", unit = "blocks", doc = "longest free extent" },
  { 60, "u32", "btreeblks", unit = "blocks", doc = "of the trees beyond their roots" },
  { 64, "uuid", "uuid" },
  { 80, "u32", "rmap_blocks", unit = "blocks" },
  { 84, "u32", "refcount_blocks", unit = "blocks" },
  { 88, "u32", "refcount_root", unit = "group block" },
  { 92, "u32", "refcount_level" },
  { 96, "u64[14]", "spare64" },
  { 208, "u64", "lsn" },
  { 216, "u32le", "crc" },
  { 220, "u32", "spare2" },
}

M.agi = struct("agi", { size_bytes = 344, endian = "big", crc32c = "crc", extensible = true,
  doc = "inode header of a group, its third sector" }) {
  { 0, "u32", "magicnum", magic = 0x58414749, doc = "XAGI" },
  { 4, "u32", "versionnum", value = 1 },
  { 8, "u32", "seqno", doc = "number of this group" },
  { 12, "u32", "length", unit = "blocks" },
  { 16, "u32", "count", doc = "inodes allocated" },
  { 20, "u32", "root", unit = "group block", doc = "inode tree" },
  { 24, "u32", "level" },
  { 28, "u32", "freecount", doc = "inodes free" },
  { 32, "u32", "newino", value = NULL32, doc = "last chunk allocated" },
  { 36, "u32", "dirino", value = NULL32 },
  { 40, "u32[64]", "unlinked", value = NULL32, doc = "heads of the unlinked lists" },
  { 296, "uuid", "uuid" },
  { 312, "u32le", "crc" },
  { 316, "u32", "pad32" },
  { 320, "u64", "lsn" },
  { 328, "u32", "free_root", unit = "group block", doc = "free inode tree" },
  { 332, "u32", "free_level" },
  { 336, "u32", "iblocks", unit = "blocks", doc = "of the inode tree" },
  { 340, "u32", "fblocks", unit = "blocks", doc = "of the free inode tree" },
}

M.agfl = struct("agfl", { size_bytes = 40, endian = "big", crc32c = "crc", extensible = true,
  doc = "free list of a group, its fourth sector" }) {
  { 0, "u32", "magicnum", magic = 0x5841464c, doc = "XAFL" },
  { 4, "u32", "seqno", doc = "number of this group" },
  { 8, "uuid", "uuid" },
  { 24, "u64", "lsn" },
  { 32, "u32le", "crc" },
  { 36, "u32[]", "bno", value = NULL32, unit = "group block" },
}

M.alloc_rec = struct("alloc_rec", { size_bytes = 8, endian = "big", doc = "a free extent" }) {
  { 0, "u32", "startblock", unit = "group block" },
  { 4, "u32", "blockcount", unit = "blocks" },
}

M.inobt_rec = struct("inobt_rec", { size_bytes = 16, endian = "big",
  doc = "64 inodes (with sparse inode chunks)" }) {
  { 0, "u32", "startino", doc = "inode number within the group" },
  { 4, "u16", "holemask", doc = "a bit for each 4 inodes that have no disk space" },
  { 6, "u8", "count", doc = "inodes on disk" },
  { 7, "u8", "freecount" },
  { 8, "u64", "free", doc = "a bit for each free inode" },
}

M.inobt_rec_full = struct("inobt_rec", { size_bytes = 16, endian = "big",
  doc = "64 inodes (without sparse inode chunks)" }) {
  { 0, "u32", "startino", doc = "inode number within the group" },
  { 4, "u32", "freecount" },
  { 8, "u64", "free", doc = "a bit for each free inode" },
}

M.rmap_rec = struct("rmap_rec", { size_bytes = 24, endian = "big", doc = "who owns an extent" }) {
  { 0, "u32", "startblock", unit = "group block" },
  { 4, "u32", "blockcount", unit = "blocks" },
  { 8, "u64", "owner", doc = "an inode, or one of ondisk.OWNER" },
  { 16, "u64", "offset", unit = "blocks", doc = "within the owner, with fork and state bits" },
}

M.refcount_rec = struct("refcount_rec", { size_bytes = 12, endian = "big",
  doc = "how often an extent is shared" }) {
  { 0, "u32", "startblock", unit = "group block" },
  { 4, "u32", "blockcount", unit = "blocks" },
  { 8, "u32", "refcount" },
}

-- Owners of reverse map records that are no inodes (XFS_RMAP_OWN_*).
M.OWNER = { fs = -3, log = -4, ag = -5, inobt = -6, inodes = -7, refcount = -8, cow = -9 }

-- What the high bits of an offset in a reverse map's record say of a file's extent.
M.RMAP_ATTR_FORK, M.RMAP_BMBT_BLOCK, M.RMAP_UNWRITTEN = 1 << 63, 1 << 62, 1 << 61

-- The header of a block of a group's tree.
local function short_header(magic)
  return { { 0, "u32", "magic", magic = magic },
    { 4, "u16", "level", doc = "0: a leaf" },
    { 6, "u16", "numrecs" },
    { 8, "u32", "leftsib", value = NULL32, unit = "group block" },
    { 12, "u32", "rightsib", value = NULL32, unit = "group block" },
    { 16, "u64", "blkno", unit = "512-byte sectors", doc = "of this block on the volume" },
    { 24, "u64", "lsn" },
    { 32, "uuid", "uuid" },
    { 48, "u32", "owner", doc = "number of the group" },
    { 52, "u32le", "crc" } }, 56
end

-- A leaf block of a group's tree: a 56-byte header and records to the end of the block.
local function leaf(name, magic, record, doc)
  local fields, at = short_header(magic)
  fields[#fields + 1] = { at, record:array(), "recs" }
  return struct(name, { size_bytes = at + record.size_bytes, endian = "big", crc32c = "crc",
    extensible = true, doc = doc })(fields)
end

M.bnobt = leaf("bnobt", 0x41423342, M.alloc_rec, "AB3B: free space by block")
M.cntbt = leaf("cntbt", 0x41423343, M.alloc_rec, "AB3C: free space by size")
M.inobt = leaf("inobt", 0x49414233, M.inobt_rec, "IAB3: inodes")
M.finobt = leaf("finobt", 0x46494233, M.inobt_rec, "FIB3: inodes, chunks with free ones")
M.inobt_full = leaf("inobt", 0x49414233, M.inobt_rec_full, "IAB3: inodes")
M.finobt_full = leaf("finobt", 0x46494233, M.inobt_rec_full,
  "FIB3: inodes, chunks with free ones")
M.rmapbt = leaf("rmapbt", 0x524d4233, M.rmap_rec, "RMB3: owners of blocks")
M.refcountbt = leaf("refcountbt", 0x52334643, M.refcount_rec, "R3FC: shared blocks")

-- Keys of inner nodes. Overlapping extents make the reverse map's two: the lowest record below, and
-- the highest block that any record below reaches.
M.alloc_key = M.alloc_rec

M.inobt_key = struct("inobt_key", { size_bytes = 4, endian = "big" }) {
  { 0, "u32", "startino", doc = "inode number within the group" },
}

M.rmap_bound = struct("rmap_bound", { size_bytes = 20, endian = "big" }) {
  { 0, "u32", "startblock", unit = "group block" },
  { 4, "u64", "owner", doc = "an inode, or one of ondisk.OWNER" },
  { 12, "u64", "offset", unit = "blocks", doc = "within the owner, with fork and state bits" },
}

M.rmap_key = struct("rmap_key", { size_bytes = 40, endian = "big" }) {
  { 0, M.rmap_bound, "low" },
  { 20, M.rmap_bound, "high" },
}

M.refcount_key = struct("refcount_key", { size_bytes = 4, endian = "big" }) {
  { 0, "u32", "startblock", unit = "group block", doc = "with the top bit: of an unfinished copy" },
}

M.bmbt_key = struct("bmbt_key", { size_bytes = 8, endian = "big" }) {
  { 0, "u64", "startoff", unit = "blocks", doc = "within the file" },
}

M.bmbt_rec = struct("bmbt_rec", { size_bytes = 16, endian = "big",
  doc = "an extent of a file: 1 bit state, 54 startoff, 52 startblock, 21 blockcount" }) {
  { 0, "u64", "l0" },
  { 8, "u64", "l1" },
}

---Unpack an extent record of a file.
---@param rec { l0: integer, l1: integer }
---@return { startoff: integer, startblock: integer, blockcount: integer, unwritten: boolean }
function M.extent(rec)
  return { startoff = rec.l0 >> 9 & (1 << 54) - 1,
    startblock = (rec.l0 & 0x1ff) << 43 | rec.l1 >> 21,
    blockcount = rec.l1 & (1 << 21) - 1, unwritten = rec.l0 < 0 }
end

-- The header of a block of a file's extent tree.
local function long_header(magic)
  return { { 0, "u32", "magic", magic = magic },
    { 4, "u16", "level", doc = "0: a leaf" },
    { 6, "u16", "numrecs" },
    { 8, "u64", "leftsib", value = NULL64, unit = "fs block address" },
    { 16, "u64", "rightsib", value = NULL64, unit = "fs block address" },
    { 24, "u64", "blkno", unit = "512-byte sectors", doc = "of this block on the volume" },
    { 32, "u64", "lsn" },
    { 40, "uuid", "uuid" },
    { 56, "u64", "owner", doc = "inode" },
    { 64, "u32le", "crc" },
    { 68, "u32", "pad" } }, 72
end

-- Appends keys and pointers to what comes before them; both have room for as many as fit.
local function add_children(fields, at, size_bytes, key, pointer_bits, unit)
  local n = (size_bytes - at) // (key.size_bytes + pointer_bits // 8)
  fields[#fields + 1] = { at, key:array(n), "keys" }
  at = at + n * key.size_bytes
  fields[#fields + 1] = { at, ("u%d[%d]"):format(pointer_bits, n), "ptrs", unit = unit }
  at = at + n * pointer_bits // 8
  if at < size_bytes then
    fields[#fields + 1] = { at, ("bytes[%d]"):format(size_bytes - at), "unused" }
  end
  return fields
end

local NODES <const> = {
  bnobt = { M.bnobt, M.alloc_key }, cntbt = { M.cntbt, M.alloc_key },
  inobt = { M.inobt, M.inobt_key }, finobt = { M.finobt, M.inobt_key },
  rmapbt = { M.rmapbt, M.rmap_key }, refcountbt = { M.refcountbt, M.refcount_key },
}

local made = {} -- layouts that depend on a size, by name and size

local function once(name, size_bytes, make)
  local key = ("%s %d"):format(name, size_bytes)
  made[key] = made[key] or make()
  return made[key]
end

---The layout of an inner node of a group's tree, or of a file's extents ("bmbt").
---@param tree "bnobt"|"cntbt"|"inobt"|"finobt"|"rmapbt"|"refcountbt"|"bmbt"
---@param block_bytes integer
---@return brim.Layout
function M.node(tree, block_bytes)
  return once(tree, block_bytes, function()
    local fields, at, key, bits
    if tree == "bmbt" then
      fields, at = long_header(M.bmbt:field("magic").magic)
      key, bits = M.bmbt_key, 64
    else
      fields, at = short_header(NODES[tree][1]:field("magic").magic)
      key, bits = NODES[tree][2], 32
    end
    return struct(tree .. "_node", { size_bytes = block_bytes, endian = "big", crc32c = "crc",
      doc = "inner node: keys, and pointers to the blocks below" })(add_children(fields, at,
      block_bytes, key, bits, bits == 32 and "group block" or "fs block address"))
  end)
end

---The layout of the root of a file's extent tree, in an inode's fork of a size.
---@param fork_bytes integer at least 20
---@return brim.Layout
function M.bmdr(fork_bytes)
  return once("bmdr", fork_bytes, function()
    return struct("bmdr", { size_bytes = fork_bytes, endian = "big",
      doc = "root of a file's extent tree, in its inode" })(add_children({
        { 0, "u16", "level" }, { 2, "u16", "numrecs" } }, 4, fork_bytes, M.bmbt_key, 64,
      "fs block address"))
  end)
end

do
  local fields, at = long_header(0x424d4133)
  fields[#fields + 1] = { at, M.bmbt_rec:array(), "recs" }
  M.bmbt = struct("bmbt", { size_bytes = at + 16, endian = "big", crc32c = "crc",
    extensible = true, doc = "BMA3: extents of a file" })(fields)
end

M.inode = struct("inode", { size_bytes = 177, endian = "big", crc32c = "crc", extensible = true,
  doc = "inode, version 3: core and literal area" }) {
  { 0, "u16", "magic", magic = 0x494e, doc = "IN" },
  { 2, "u16", "mode" },
  { 4, "u8", "version", value = 3 },
  { 5, "u8", "format", doc = "of the data fork: 0 dev 1 local 2 extents 3 btree" },
  { 6, "u16", "onlink" },
  { 8, "u32", "uid" },
  { 12, "u32", "gid" },
  { 16, "u32", "nlink" },
  { 20, "u16", "projid_lo" },
  { 22, "u16", "projid_hi" },
  { 24, "u64", "big_nextents", doc = "data extents, with nrext64" },
  { 32, "u64", "atime" },
  { 40, "u64", "mtime" },
  { 48, "u64", "ctime" },
  { 56, "u64", "size", unit = "bytes" },
  { 64, "u64", "nblocks", unit = "blocks" },
  { 72, "u32", "extsize", unit = "blocks", doc = "extent size hint" },
  { 76, "u32", "nextents", doc = "data extents; attribute extents with nrext64" },
  { 80, "u16", "anextents", doc = "attribute extents" },
  { 82, "u8", "forkoff", unit = "8 bytes", doc = "where the attribute fork begins" },
  { 83, "u8", "aformat", doc = "of the attribute fork" },
  { 84, "u32", "dmevmask" },
  { 88, "u16", "dmstate" },
  { 90, "u16", "flags" },
  { 92, "u32", "gen" },
  { 96, "u32", "next_unlinked", value = NULL32 },
  { 100, "u32le", "crc" },
  { 104, "u64", "changecount" },
  { 112, "u64", "lsn" },
  { 120, "u64", "flags2" },
  { 128, "u32", "cowextsize", unit = "blocks" },
  { 132, "bytes[12]", "pad2" },
  { 144, "u64", "crtime" },
  { 152, "u64", "ino" },
  { 160, "uuid", "uuid" },
  { 176, "u8[]", "literal", doc = "the forks" },
}

-- What a short-form directory begins with (in the inode's literal area), with no entries.
M.dir_sf = struct("dir_sf", { size_bytes = 6, endian = "big", doc = "short-form directory" }) {
  { 0, "u8", "count", doc = "entries" },
  { 1, "u8", "i8count", doc = "of these, with 8-byte inode numbers" },
  { 2, "u32", "parent", doc = "inode" },
}

M.attr_sf = struct("attr_sf", { size_bytes = 4, endian = "big",
  doc = "short-form attributes; entries follow: namelen, valuelen, flags, name, value" }) {
  { 0, "u16", "totsize", unit = "bytes" },
  { 2, "u8", "count", doc = "entries" },
  { 3, "u8", "padding" },
}

M.log_record = struct("log_record", { size_bytes = 512, endian = "big",
  doc = "header of a log record (xlog_rec_header)" }) {
  { 0, "u32", "magicno", magic = 0xfeedbabe },
  { 4, "u32", "cycle" },
  { 8, "u32", "version" },
  { 12, "u32", "len", unit = "bytes", doc = "behind the headers" },
  { 16, "u64", "lsn" },
  { 24, "u64", "tail_lsn" },
  { 32, "u32le", "crc", doc = "0: not checked" },
  { 36, "u32", "prev_block", value = NULL32 },
  { 40, "u32", "num_logops" },
  { 44, "u32[64]", "cycle_data", doc = "what the cycle stamps replaced" },
  { 300, "u32", "fmt", doc = "1: Linux, little-endian" },
  { 304, "uuid", "fs_uuid" },
  { 320, "u32", "size", unit = "bytes", doc = "of the log buffer" },
  { 324, "bytes[188]", "pad" },
}

M.log_record_ext = struct("log_record_ext", { size_bytes = 512, endian = "big",
  doc = "further header of a log record over 32 KiB (xlog_rec_ext_header)" }) {
  { 0, "u32", "cycle" },
  { 4, "u32[64]", "cycle_data", doc = "what the cycle stamps replaced" },
  { 260, "bytes[252]", "pad" },
}

M.log_op = struct("log_op", { size_bytes = 512, endian = "big",
  doc = "a sector of a log record that begins with an operation" }) {
  { 0, "u32", "tid", doc = "on disk: the cycle" },
  { 4, "u32", "len", unit = "bytes" },
  { 8, "u8", "clientid" },
  { 9, "u8", "flags" },
  { 10, "u16", "res2" },
  { 12, "u16le", "magic" },
  { 14, "bytes[498]", "pad" },
}

M.log_sector = struct("log_sector", { size_bytes = 512, endian = "big",
  doc = "a further sector of a log record" }) {
  { 0, "u32", "cycle" },
  { 4, "bytes[508]", "pad" },
}

return M
