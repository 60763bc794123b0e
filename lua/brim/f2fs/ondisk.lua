-- brim.f2fs.ondisk: the on-disk structures of F2FS, in its own field names. Called by format, check
-- and inspect. All little-endian; offsets are those of f2fs_fs.h (f2fs-tools 1.16). Blocks are of
-- 4 KiB, segments of 512 blocks. Checksums are kept apart: what they cover is no whole structure
-- (see brim.f2fs.crc).
local layout = require "brim.layout"

local M = {}

local struct = layout.struct
local NULL32 <const> = 0xffffffff

---"F2FS" of a kind; also what checksums begin with.
M.MAGIC = 0xf2f52010
---Where the superblock is within its block.
M.SB_OFF_BYTES = 1024

M.device = struct("device", { size_bytes = 68, doc = "a device of a volume" }) {
  { 0, "bytes[64]", "path" },
  { 64, "u32", "total_segments", unit = "segments" },
}

M.sb = struct("sb", { size_bytes = 3072, doc = "superblock, 1 KiB into blocks 0 and 1" }) {
  { 0, "u32", "magic", magic = M.MAGIC },
  { 4, "u16", "major_ver", value = 1 },
  { 6, "u16", "minor_ver", doc = "of the tools that made it" },
  { 8, "u32", "log_sectorsize", value = 9, unit = "log2 of bytes" },
  { 12, "u32", "log_sectors_per_block", value = 3, unit = "log2 of sectors" },
  { 16, "u32", "log_blocksize", value = 12, unit = "log2 of bytes" },
  { 20, "u32", "log_blocks_per_seg", value = 9, unit = "log2 of blocks" },
  { 24, "u32", "segs_per_sec", unit = "segments" },
  { 28, "u32", "secs_per_zone", unit = "sections" },
  { 32, "u32", "checksum_offset", unit = "bytes", doc = "0: there is no checksum" },
  { 36, "u64", "block_count", unit = "blocks", doc = "of the whole volume" },
  { 44, "u32", "section_count", unit = "sections", doc = "of the main area" },
  { 48, "u32", "segment_count", unit = "segments" },
  { 52, "u32", "segment_count_ckpt", unit = "segments" },
  { 56, "u32", "segment_count_sit", unit = "segments" },
  { 60, "u32", "segment_count_nat", unit = "segments" },
  { 64, "u32", "segment_count_ssa", unit = "segments" },
  { 68, "u32", "segment_count_main", unit = "segments" },
  { 72, "u32", "segment0_blkaddr", unit = "block" },
  { 76, "u32", "cp_blkaddr", unit = "block" },
  { 80, "u32", "sit_blkaddr", unit = "block" },
  { 84, "u32", "nat_blkaddr", unit = "block" },
  { 88, "u32", "ssa_blkaddr", unit = "block" },
  { 92, "u32", "main_blkaddr", unit = "block" },
  { 96, "u32", "root_ino", value = 3 },
  { 100, "u32", "node_ino", value = 1 },
  { 104, "u32", "meta_ino", value = 2 },
  { 108, "uuid", "uuid" },
  { 124, "u16[512]", "volume_name", doc = "label, UTF-16" },
  { 1148, "u32", "extension_count", doc = "of cold extensions" },
  { 1152, "bytes[512]", "extension_list", doc = "64 of 8 bytes: cold ones, then hot ones" },
  { 1664, "u32", "cp_payload", unit = "blocks", doc = "of a checkpoint for bitmaps" },
  { 1668, "char[256]", "version", doc = "kernel that mounted it last" },
  { 1924, "char[256]", "init_version", doc = "kernel it was made under" },
  { 2180, "u32", "feature" },
  { 2184, "u8", "encryption_level" },
  { 2185, "bytes[16]", "encrypt_pw_salt" },
  { 2201, M.device:array(8), "devs" },
  { 2745, "u32[3]", "qf_ino", doc = "quota files: users, groups, projects" },
  { 2757, "u8", "hot_ext_count" },
  { 2758, "u16", "s_encoding", doc = "1: UTF-8 12.1" },
  { 2760, "u16", "s_encoding_flags", doc = "1: strict" },
  { 2762, "u8[32]", "s_stop_reason" },
  { 2794, "u8[16]", "s_errors" },
  { 2810, "bytes[258]", "reserved" },
  { 3068, "u32", "crc" },
}

M.cp = struct("cp", { size_bytes = 4096, doc = "checkpoint, first and last block of a pack" }) {
  { 0, "u64", "checkpoint_ver" },
  { 8, "u64", "user_block_count", unit = "blocks" },
  { 16, "u64", "valid_block_count", unit = "blocks" },
  { 24, "u32", "rsvd_segment_count", unit = "segments" },
  { 28, "u32", "overprov_segment_count", unit = "segments" },
  { 32, "u32", "free_segment_count", unit = "segments" },
  { 36, "u32[8]", "cur_node_segno", value = NULL32, doc = "hot, warm, cold; others unused" },
  { 68, "u16[8]", "cur_node_blkoff", unit = "blocks" },
  { 84, "u32[8]", "cur_data_segno", value = NULL32 },
  { 116, "u16[8]", "cur_data_blkoff", unit = "blocks" },
  { 132, "u32", "ckpt_flags" },
  { 136, "u32", "cp_pack_total_block_count", unit = "blocks" },
  { 140, "u32", "cp_pack_start_sum", unit = "blocks", doc = "of data summaries, in the pack" },
  { 144, "u32", "valid_node_count" },
  { 148, "u32", "valid_inode_count" },
  { 152, "u32", "next_free_nid" },
  { 156, "u32", "sit_ver_bitmap_bytesize", unit = "bytes" },
  { 160, "u32", "nat_ver_bitmap_bytesize", unit = "bytes" },
  { 164, "u32", "checksum_offset", unit = "bytes" },
  { 168, "u64", "elapsed_time", unit = "seconds", doc = "mounted" },
  { 176, "u8[16]", "alloc_type", doc = "of the logs: 0 appending, 1 into holes" },
  { 192, "bytes[3904]", "bitmaps", doc = "versions of SIT and NAT blocks, and the checksum" },
}

M.nat_entry = struct("nat_entry", { size_bytes = 9, doc = "where a node is" }) {
  { 0, "u8", "version" },
  { 1, "u32", "ino" },
  { 5, "u32", "block_addr", unit = "block", doc = "0: free" },
}

M.nat = struct("nat", { size_bytes = 4096, doc = "a block of the node address table" }) {
  { 0, M.nat_entry:array(455), "entries" },
  { 4095, "u8", "pad" },
}

M.sit_entry = struct("sit_entry", { size_bytes = 74, doc = "a segment of the main area" }) {
  { 0, "u16", "vblocks", doc = "valid blocks (10 bits) and type" },
  { 2, "bytes[64]", "valid_map", doc = "a bit for each block, the highest first" },
  { 66, "u64", "mtime", unit = "seconds", doc = "age" },
}

M.sit = struct("sit", { size_bytes = 4096, doc = "a block of the segment information table" }) {
  { 0, M.sit_entry:array(55), "entries" },
  { 4070, "bytes[26]", "pad" },
}

M.summary = struct("summary", { size_bytes = 7, doc = "whose a block is" }) {
  { 0, "u32", "nid" },
  { 4, "u8", "version" },
  { 5, "u16", "ofs_in_node" },
}

M.nat_journal_entry = struct("nat_journal_entry", { size_bytes = 13 }) {
  { 0, "u32", "nid" },
  { 4, M.nat_entry, "ne" },
}

M.nat_journal = struct("nat_journal", { size_bytes = 507, doc = "newer than the NAT itself" }) {
  { 0, "u16", "n_nats" },
  { 2, M.nat_journal_entry:array(38), "entries" },
  { 496, "bytes[11]", "pad" },
}

M.sit_journal_entry = struct("sit_journal_entry", { size_bytes = 78 }) {
  { 0, "u32", "segno" },
  { 4, M.sit_entry, "se" },
}

M.sit_journal = struct("sit_journal", { size_bytes = 507, doc = "newer than the SIT itself" }) {
  { 0, "u16", "n_sits" },
  { 2, M.sit_journal_entry:array(6), "entries" },
  { 470, "bytes[37]", "pad" },
}

M.compact = struct("compact", { size_bytes = 4096,
  doc = "journals, and summaries of the data logs as far as they got" }) {
  { 0, M.nat_journal, "nat_journal" },
  { 507, M.sit_journal, "sit_journal" },
  { 1014, M.summary:array(439), "entries" },
  { 4087, "bytes[9]", "pad" },
}

M.ssa = struct("ssa", { size_bytes = 4096, doc = "summary of a segment" }) {
  { 0, M.summary:array(512), "entries" },
  { 3584, "bytes[507]", "journal" },
  { 4091, "u8", "entry_type", doc = "0 data, 1 nodes" },
  { 4092, "u32", "check_sum" },
}

M.extent = struct("extent", { size_bytes = 12 }) {
  { 0, "u32", "fofs", unit = "blocks" },
  { 4, "u32", "blk_addr", unit = "block" },
  { 8, "u32", "len", unit = "blocks" },
}

M.footer = struct("footer", { size_bytes = 24, doc = "end of every node" }) {
  { 0, "u32", "nid" },
  { 4, "u32", "ino" },
  { 8, "u32", "flag", doc = "cold, fsync and dentry marks, and place in the file" },
  { 12, "u64", "cp_ver" },
  { 20, "u32", "next_blkaddr", unit = "block" },
}

M.inode = struct("inode", { size_bytes = 4096, doc = "an inode, with its footer" }) {
  { 0, "u16", "i_mode" },
  { 2, "u8", "i_advise" },
  { 3, "u8", "i_inline" },
  { 4, "u32", "i_uid" },
  { 8, "u32", "i_gid" },
  { 12, "u32", "i_links" },
  { 16, "u64", "i_size", unit = "bytes" },
  { 24, "u64", "i_blocks", unit = "blocks" },
  { 32, "u64", "i_atime", unit = "seconds" },
  { 40, "u64", "i_ctime", unit = "seconds" },
  { 48, "u64", "i_mtime", unit = "seconds" },
  { 56, "u32", "i_atime_nsec" },
  { 60, "u32", "i_ctime_nsec" },
  { 64, "u32", "i_mtime_nsec" },
  { 68, "u32", "i_generation" },
  { 72, "u32", "i_current_depth" },
  { 76, "u32", "i_xattr_nid" },
  { 80, "u32", "i_flags" },
  { 84, "u32", "i_pino" },
  { 88, "u32", "i_namelen", unit = "bytes" },
  { 92, "char[255]", "i_name" },
  { 347, "u8", "i_dir_level" },
  { 348, M.extent, "i_ext" },
  { 360, "u32[923]", "i_addr", unit = "block", doc = "or extra attributes, then addresses" },
  { 4052, "u32[5]", "i_nid" },
  { 4072, M.footer, "footer" },
}

M.extra = struct("extra", { size_bytes = 36, doc = "extra attributes of an inode, at i_addr" }) {
  { 0, "u16", "i_extra_isize", unit = "bytes" },
  { 2, "u16", "i_inline_xattr_size", unit = "4 bytes" },
  { 4, "u32", "i_projid" },
  { 8, "u32", "i_inode_checksum" },
  { 12, "u64", "i_crtime", unit = "seconds" },
  { 20, "u32", "i_crtime_nsec" },
  { 24, "u64", "i_compr_blocks", unit = "blocks" },
  { 32, "u8", "i_compress_algorithm" },
  { 33, "u8", "i_log_cluster_size" },
  { 34, "u16", "i_compress_flag" },
}

M.node = struct("node", { size_bytes = 4096, doc = "addresses of data, or numbers of nodes" }) {
  { 0, "u32[1018]", "addr" },
  { 4072, M.footer, "footer" },
}

M.dentry = struct("dentry", { size_bytes = 11, doc = "a name in a directory" }) {
  { 0, "u32", "hash_code" },
  { 4, "u32", "ino" },
  { 8, "u16", "name_len", unit = "bytes" },
  { 10, "u8", "file_type" },
}

M.dentries = struct("dentries", { size_bytes = 4096, doc = "a block of a directory" }) {
  { 0, "bytes[27]", "dentry_bitmap" },
  { 27, "bytes[3]", "reserved" },
  { 30, M.dentry:array(214), "dentry" },
  { 2384, "bytes[1712]", "filename", doc = "214 slots of 8 bytes" },
}

M.orphans = struct("orphans", { size_bytes = 4096, doc = "inodes unlinked but open" }) {
  { 0, "u32[1020]", "ino" },
  { 4080, "u32", "reserved" },
  { 4084, "u16", "blk_addr" },
  { 4086, "u16", "blk_count" },
  { 4088, "u32", "entry_count" },
  { 4092, "u32", "check_sum" },
}

---Feature bits, and what -O calls them.
M.FEATURES = { encrypt = 0x1, extra_attr = 0x8, project_quota = 0x10, inode_checksum = 0x20,
  flexible_inline_xattr = 0x40, quota = 0x80, inode_crtime = 0x100, lost_found = 0x200,
  verity = 0x400, sb_checksum = 0x800, casefold = 0x1000, compression = 0x2000, ro = 0x4000 }

---Flags of a checkpoint.
M.CP_FLAGS = { umount = 0x1, orphan_present = 0x2, compact_sum = 0x4, error = 0x8, fsck = 0x10,
  fastboot = 0x20, crc_recovery = 0x40, nat_bits = 0x80, trimmed = 0x100, nocrc_recovery = 0x200,
  large_nat_bitmap = 0x400, quota_need_fsck = 0x800, disabled = 0x1000, resizefs = 0x4000 }

---The logs, as segments are typed.
M.TYPES = { [0] = "hot data", "warm data", "cold data", "hot node", "warm node", "cold node" }

return M
