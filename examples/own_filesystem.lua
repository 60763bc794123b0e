-- A filesystem of one's own, at brim's speed: declared once, written, verified, scanned, saved.
-- Run: brim run examples/own_filesystem.lua [TARGET]      (default: tinyfs.img, 64 GiB, sparse)
local brim = require "brim"

local target = arg and arg[1] or "tinyfs.img"
local GROUP_BYTES <const> = 16 * brim.MiB
local GROUPS <const> = 4096

-- Two structures. Offsets, widths and byte order stand here and nowhere else.
local super = brim.layout.struct("super", { size_bytes = 512, endian = "little", crc32c = "crc" }) {
  { 0, "u64", "magic", magic = 0x31305346796e6954, doc = "TinyFS01" },
  { 8, "u32", "groups" },
  { 12, "u32", "group_blocks", unit = "4 KiB blocks" },
  { 16, "u32", "crc" },
  { 20, "bytes[492]", "pad" },
}
local group = brim.layout.struct("group", { size_bytes = 4096, endian = "little",
  crc32c = "crc" }) {
  { 0, "u32", "magic", magic = 0x50524754, doc = "TGRP" },
  { 4, "u32", "number" },
  { 8, "u64", "first_block", unit = "4 KiB blocks" },
  { 16, "u32", "free", unit = "4 KiB blocks" },
  { 20, "u32", "crc" },
  { 24, "u64[509]", "bitmap", value = -1, doc = "a bit for each free block" },
}

-- The plan: every group at once, the first one (it has the superblock) laid over it, the superblock
-- last.
local blocks = GROUP_BYTES // 4096
local plan = brim.plan { name = "tinyfs", size_bytes = GROUPS * GROUP_BYTES,
  group_bytes = GROUP_BYTES }
plan:phase "groups"
plan:each(GROUPS, function(i)
  return group:at(4096) { number = i, first_block = i * blocks, free = blocks - 2 }
end)
plan:group(0, group:at(4096) { number = 0, free = blocks - 3, bitmap = { ~7 } })
plan:phase "superblock"
plan:put(super:at(0) { groups = GROUPS, group_blocks = blocks })
print(plan)

local written = assert(plan:write(target))
print(("wrote %d groups in %.3f s by engine %s"):format(written.groups, written.wall_s,
  written.engine))
local verified = assert(plan:verify(target))
print(("verified: %d differences"):format(verified.mismatch_count))

-- The same declaration checks any TinyFS, whoever wrote it.
local scan = brim.scan(function(i)
  return group:at(4096) { number = i, first_block = i * blocks }
end)
local scanned = assert(scan:run(target, { count = GROUPS, stride_bytes = GROUP_BYTES }))
print(("scanned: %d groups, %d wrong values"):format(scanned.groups, scanned.mismatch_count))

assert(plan:save "tinyfs.brim")
print "saved as tinyfs.brim"
