-- brim.xfs.inspect_layouts: the on-disk structures that belong to files: blocks of directories, of
-- attributes, of symbolic links and quotas. Only inspect shows them; all else is in ondisk. The
-- offsets are those of xfs_da_format.h and xfs_format.h; big-endian but the checksums.
local layout = require "brim.layout"

local M = {}

local struct = layout.struct

-- A header's fields with more behind them; `at` is where these begin.
local function extended(header, at, more)
  local fields = table.move(header, 1, #header, 1, {})
  for _, f in ipairs(more) do
    f[1] = f[1] + at
    fields[#fields + 1] = f
  end
  return fields
end

-- xfs_dir3_blk_hdr: 48 bytes.
local function block_header(magic)
  return { { 0, "u32", "magic", magic = magic },
    { 4, "u32le", "crc" },
    { 8, "u64", "blkno", unit = "512-byte sectors", doc = "of this block on the volume" },
    { 16, "u64", "lsn" },
    { 24, "uuid", "uuid" },
    { 40, "u64", "owner", doc = "inode" } }
end

-- xfs_da3_blkinfo: 56 bytes.
local function da_header(magic)
  return { { 0, "u32", "forw", unit = "file block", doc = "0: none" },
    { 4, "u32", "back", unit = "file block", doc = "0: none" },
    { 8, "u16", "magic", magic = magic },
    { 10, "u16", "pad" },
    { 12, "u32le", "crc" },
    { 16, "u64", "blkno", unit = "512-byte sectors", doc = "of this block on the volume" },
    { 24, "u64", "lsn" },
    { 32, "uuid", "uuid" },
    { 48, "u64", "owner", doc = "inode" } }
end

M.dir_free_space = struct("dir_free_space", { size_bytes = 4, endian = "big" }) {
  { 0, "u16", "offset", unit = "bytes" },
  { 2, "u16", "length", unit = "bytes" },
}

-- Entries follow: inode, name length, name, file type, own offset; free space begins with 0xffff.
local function dir_data(name, magic, doc)
  return struct(name, { size_bytes = 64, endian = "big", crc32c = "crc", extensible = true,
    doc = doc })(extended(block_header(magic), 48, {
    { 0, M.dir_free_space:array(3), "bestfree" },
    { 12, "u32", "pad" } }))
end

M.dir_block = dir_data("dir_block", 0x58444233, "XDB3: a directory of one block")
M.dir_data = dir_data("dir_data", 0x58444433, "XDD3: entries of a directory")

M.dir_leaf_entry = struct("dir_leaf_entry", { size_bytes = 8, endian = "big" }) {
  { 0, "u32", "hashval", doc = "of the name" },
  { 4, "u32", "address", unit = "8 bytes", doc = "of the entry in the directory; 0: stale" },
}

local function dir_leaf(name, magic, doc)
  return struct(name, { size_bytes = 72, endian = "big", crc32c = "crc", extensible = true,
    doc = doc })(extended(da_header(magic), 56, {
    { 0, "u16", "count" },
    { 2, "u16", "stale", doc = "of these, removed" },
    { 4, "u32", "pad2" },
    { 8, M.dir_leaf_entry:array(), "ents" } }))
end

M.dir_leaf1 = dir_leaf("dir_leaf1", 0x3df1, "3DF1: a directory's only leaf, by hash")
M.dir_leafn = dir_leaf("dir_leafn", 0x3dff, "3DFF: a leaf of a directory, by hash")

M.dir_free = struct("dir_free", { size_bytes = 66, endian = "big", crc32c = "crc",
  extensible = true, doc = "XDF3: free space in a directory's blocks" })(extended(
  block_header(0x58444633), 48, {
  { 0, "u32", "firstdb", doc = "data block of the first entry" },
  { 4, "u32", "nvalid" },
  { 8, "u32", "nused" },
  { 12, "u32", "pad" },
  { 16, "u16[]", "bests", unit = "bytes", doc = "most free in one piece; 65535: no block" } }))

M.da_node_entry = struct("da_node_entry", { size_bytes = 8, endian = "big" }) {
  { 0, "u32", "hashval", doc = "the highest below" },
  { 4, "u32", "before", unit = "file block" },
}

M.da_node = struct("da_node", { size_bytes = 72, endian = "big", crc32c = "crc",
  extensible = true, doc = "3EBE: inner node of a directory or of attributes" })(extended(
  da_header(0x3ebe), 56, {
  { 0, "u16", "count" },
  { 2, "u16", "level" },
  { 4, "u32", "pad2" },
  { 8, M.da_node_entry:array(), "btree" } }))

M.attr_free_space = struct("attr_free_space", { size_bytes = 4, endian = "big" }) {
  { 0, "u16", "base", unit = "bytes" },
  { 2, "u16", "size", unit = "bytes" },
}

M.attr_leaf_entry = struct("attr_leaf_entry", { size_bytes = 8, endian = "big" }) {
  { 0, "u32", "hashval", doc = "of the name" },
  { 4, "u16", "nameidx", unit = "bytes", doc = "where name and value are in this block" },
  { 6, "u8", "flags" },
  { 7, "u8", "pad2" },
}

M.attr_leaf = struct("attr_leaf", { size_bytes = 88, endian = "big", crc32c = "crc",
  extensible = true, doc = "3BEE: attributes" })(extended(da_header(0x3bee), 56, {
  { 0, "u16", "count" },
  { 2, "u16", "usedbytes", unit = "bytes", doc = "of names and values" },
  { 4, "u16", "firstused", unit = "bytes", doc = "0: 65536" },
  { 6, "u8", "holes", doc = "1: the names have holes between them" },
  { 7, "u8", "pad1" },
  { 8, M.attr_free_space:array(3), "freemap" },
  { 20, "u32", "pad2" },
  { 24, M.attr_leaf_entry:array(), "entries" } }))

-- xfs_attr3_rmt_hdr and xfs_dsymlink_hdr are the same: 56 bytes, then content.
local function content_header(name, magic, doc)
  return struct(name, { size_bytes = 56, endian = "big", crc32c = "crc", extensible = true,
    doc = doc }) {
    { 0, "u32", "magic", magic = magic },
    { 4, "u32", "offset", unit = "bytes", doc = "of this part in the whole" },
    { 8, "u32", "bytes", unit = "bytes", doc = "of content in this block" },
    { 12, "u32le", "crc" },
    { 16, "uuid", "uuid" },
    { 32, "u64", "owner", doc = "inode" },
    { 40, "u64", "blkno", unit = "512-byte sectors", doc = "of this block on the volume" },
    { 48, "u64", "lsn" },
  }
end

M.attr_remote = content_header("attr_remote", 0x5841524d, "XARM: part of an attribute's value")
M.symlink = content_header("symlink", 0x58534c4d, "XSLM: target of a symbolic link")

M.dquot = struct("dquot", { size_bytes = 136, endian = "big", crc32c = "crc",
  doc = "DQ: limits and usage of a user, group or project" }) {
  { 0, "u16", "magic", magic = 0x4451, doc = "DQ" },
  { 2, "u8", "version", value = 1 },
  { 3, "u8", "type", doc = "1 user 2 project 4 group, 128 for big timers" },
  { 4, "u32", "id" },
  { 8, "u64", "blk_hardlimit", unit = "blocks" },
  { 16, "u64", "blk_softlimit", unit = "blocks" },
  { 24, "u64", "ino_hardlimit", unit = "inodes" },
  { 32, "u64", "ino_softlimit", unit = "inodes" },
  { 40, "u64", "bcount", unit = "blocks" },
  { 48, "u64", "icount", unit = "inodes" },
  { 56, "u32", "itimer", unit = "seconds" },
  { 60, "u32", "btimer", unit = "seconds" },
  { 64, "u16", "iwarns" },
  { 66, "u16", "bwarns" },
  { 68, "u32", "pad0" },
  { 72, "u64", "rtb_hardlimit", unit = "blocks" },
  { 80, "u64", "rtb_softlimit", unit = "blocks" },
  { 88, "u64", "rtbcount", unit = "blocks" },
  { 96, "u32", "rtbtimer", unit = "seconds" },
  { 100, "u16", "rtbwarns" },
  { 102, "u16", "pad" },
  { 104, "bytes[4]", "fill" },
  { 108, "u32le", "crc" },
  { 112, "u64", "lsn" },
  { 120, "uuid", "uuid" },
}

return M
