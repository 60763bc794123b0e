-- brim.f2fs.checkpoint: both checkpoint packs of a fresh filesystem, as blocks. Called by format.
-- The first is valid; the second has version 0. A pack is a segment: the checkpoint, blocks for
-- bitmaps, summaries and journals, the checkpoint again; bits of the NAT lie at the segment's end.
local content = require "brim.f2fs.content"
local crc = require "brim.f2fs.crc"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local BLOCK_BYTES <const>, SEGMENT_BLOCKS <const> = 4096, 512
local CRC_AT_END <const>, CRC_BEFORE_BITMAPS <const> = 4092, 192 -- with -i
local FLAGS <const> = ondisk.CP_FLAGS
local TYPE_SHIFT <const> = 10 -- of vblocks
local HOT_NODE <const> = 3
local BITMAP_BYTES_PER_SEGMENT <const> = SEGMENT_BLOCKS // 8

local function flags_of(g, o)
  return FLAGS.umount | FLAGS.compact_sum | (g.has_nat_bits and FLAGS.nat_bits or 0)
    | (o.trimmed and FLAGS.trimmed or 0) | (g.large_nat and FLAGS.large_nat_bitmap or 0)
end

local function padded(list)
  local all = table.move(list, 1, #list, 1, {})
  for i = #all + 1, 8 do
    all[i] = 0xffffffff
  end
  return all
end

local function checkpoint(g, inodes, version, o)
  local data_blocks = 0
  for _, inode in ipairs(inodes) do
    data_blocks = data_blocks + inode.data_blocks
  end
  local at = g.large_nat and CRC_BEFORE_BITMAPS or CRC_AT_END
  local bytes = ondisk.cp:encode { checkpoint_ver = version, user_block_count = g.user_blocks,
    valid_block_count = #inodes + data_blocks, rsvd_segment_count = g.reserved_segments,
    overprov_segment_count = g.overprovision_segments, free_segment_count = g.free_segments,
    cur_node_segno = padded(g.node_logs), cur_node_blkoff = { #inodes },
    cur_data_segno = padded(g.data_logs), cur_data_blkoff = { data_blocks },
    ckpt_flags = flags_of(g, o), cp_pack_total_block_count = g.pack_blocks,
    cp_pack_start_sum = 1 + g.cp_payload, valid_node_count = #inodes,
    valid_inode_count = #inodes, next_free_nid = inodes[#inodes].ino + 1,
    sit_ver_bitmap_bytesize = g.sit_segments // 2 * BITMAP_BYTES_PER_SEGMENT,
    nat_ver_bitmap_bytesize = g.nat_segments // 2 * BITMAP_BYTES_PER_SEGMENT,
    checksum_offset = at }
  return crc.put(bytes, at, crc.cp(bytes, at))
end

-- The first n bits set, the highest of a byte first.
local function bits(n)
  local bytes = {}
  for i = 1, (n + 7) // 8 do
    bytes[i] = string.char(0xff00 >> math.min(n - 8 * (i - 1), 8) & 0xff)
  end
  return table.concat(bytes)
end

local function nat_journal(g, inodes)
  local node_block = content.hot_blocks(g)
  local entries = {}
  for i, inode in ipairs(inodes) do
    entries[i] = { nid = inode.ino,
      ne = { ino = inode.ino, block_addr = node_block + inode.place } }
  end
  return { n_nats = #inodes, entries = entries }
end

local function sit_journal(g, inodes)
  local last = inodes[#inodes]
  local used = { [0] = last.data + last.data_blocks, [HOT_NODE] = #inodes }
  local list = {}
  local function add(segment, kind)
    list[#list + 1] = { segno = segment, se = { vblocks = kind << TYPE_SHIFT | (used[kind] or 0),
      valid_map = used[kind] and bits(used[kind]) or nil } }
  end
  for i = 1, g.has.ro and 1 or 3 do
    add(g.node_logs[i], HOT_NODE + i - 1)
  end
  for i = 1, g.has.ro and 1 or 3 do
    add(g.data_logs[i], i - 1)
  end
  return { n_sits = #list, entries = list }
end

local function data_summaries(inodes)
  local list = {}
  for _, inode in ipairs(inodes) do
    for k = 0, inode.data_blocks - 1 do
      list[inode.data + k + 1] = { nid = inode.ino, ofs_in_node = k }
    end
  end
  return list
end

local function node_summaries(inodes)
  local list = {}
  for i, inode in ipairs(inodes) do
    list[i] = { nid = inode.ino }
  end
  return list
end

-- Which NAT blocks are full, and which are empty: all but the first.
local function nat_bits(g, cp, at)
  local bytes = g.nat_segments << 5
  local crc_of_it = ("<I4"):unpack(cp, at + 1)
  local version = ("<I8"):unpack(cp) | crc_of_it << 32
  local text = ("<I8"):pack(version) .. ("\0"):rep(bytes) .. "\xfe" .. ("\xff"):rep(bytes - 1)
  return text .. ("\0"):rep(g.nat_bits_blocks * BLOCK_BYTES - #text)
end

local function summary_blocks(g, inodes)
  return ondisk.compact:encode { nat_journal = nat_journal(g, inodes),
      sit_journal = sit_journal(g, inodes), entries = data_summaries(inodes) },
    ondisk.ssa:encode { entries = node_summaries(inodes), entry_type = 1 },
    ondisk.ssa:encode { entry_type = 1 }
end

---Both packs.
---@param g brim.f2fs.Geometry
---@param o table version (of the first pack), trimmed
---@return table[] pieces name, block, bytes or zero_blocks
function M.pieces(g, o)
  local inodes, list = content.inodes(g), {}
  local first, second = g.segment0_block, g.segment0_block + SEGMENT_BLOCKS
  local cp = checkpoint(g, inodes, o.version, o)
  local stale = checkpoint(g, inodes, 0, o)
  local compact, hot, empty = summary_blocks(g, inodes)
  local function add(name, block, bytes)
    list[#list + 1] = { name = name, block = block, bytes = bytes }
  end
  for _, pack in ipairs { first, second } do
    if g.cp_payload > 0 then
      list[#list + 1] = { name = "bitmaps", block = pack + 1, zero_blocks = g.cp_payload }
    end
  end
  add("cp", first, cp)
  add("summaries", first + 1 + g.cp_payload, compact .. hot .. empty .. empty .. cp)
  if g.has_nat_bits then
    add("NAT bits", first + SEGMENT_BLOCKS - g.nat_bits_blocks,
      nat_bits(g, cp, g.large_nat and CRC_BEFORE_BITMAPS or CRC_AT_END))
  end
  add("cp", second, stale)
  add("cp", second + g.pack_blocks - 1, stale)
  return list
end

return M
