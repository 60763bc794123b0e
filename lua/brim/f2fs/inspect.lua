-- brim.f2fs.inspect: structures of an F2FS by name and number, as views: superblocks, checkpoints,
-- entries of NAT, SIT and SSA, nodes, inodes, the map of segments. Called by inspect_command and
-- scripts. Each takes an open brim.f2fs.Volume.
local crc = require "brim.f2fs.crc"
local errors = require "brim.error"
local ondisk = require "brim.f2fs.ondisk"
local segmap = require "brim.f2fs.segmap"
local segments_of = require "brim.f2fs.segments"
local superblock = require "brim.f2fs.superblock"
local uuid = require "brim.uuid"
local view = require "brim.f2fs.inspect_view"

local M = {}

local BLOCK_LOG2 <const>, SEGMENT_BLOCKS <const> = 12, 512
local ADDR_OFF <const>, INLINE_EXTRA <const> = 360, 0x20
local PLACE_SHIFT <const> = 3
local MODES <const> = { [1] = "fifo", [2] = "character device", [4] = "directory",
  [6] = "block device", [8] = "regular file", [10] = "symbolic link", [12] = "socket" }
local INLINE <const> = { xattr = 0x1, data = 0x2, dentry = 0x4, ["data exists"] = 0x8,
  dots = 0x10, ["extra attributes"] = 0x20, pinned = 0x40, ["compressed, released"] = 0x80 }

-- The names of bits that are set.
local function names_of(bits, known)
  local names = {}
  for name, mask in pairs(known) do
    names[#names + 1] = bits & mask ~= 0 and name or nil
  end
  table.sort(names, function(a, b) return known[a] < known[b] end)
  return #names > 0 and table.concat(names, ", ") or "none"
end

local function must(v, err)
  if not v then
    error(err, 0)
  end
  return v
end

local function in_range(n, count, what)
  if n < 0 or n >= count then
    error(errors.usage("there is no %s %d, the last is %d", what, n, count - 1), 0)
  end
end

-- Everything behind the checkpoints needs one that is valid.
local function checkpoint_of(fs)
  if fs.damage then
    error(errors.usage("%s: %s", fs.target, fs.damage), 0)
  end
  return fs.cp
end

---A superblock.
---@param fs brim.f2fs.Volume
---@param copy? integer 0 or 1
---@return brim.f2fs.View
function M.sb(fs, copy)
  copy = copy or 0
  in_range(copy, 2, "superblock")
  local sb = fs.sbs[copy + 1]
  local v = view.new { what = "sb", title = ("superblock %d"):format(copy), layout = ondisk.sb,
    fields = sb.values or {}, bytes = sb.raw or "",
    off_bytes = (copy << BLOCK_LOG2) + ondisk.SB_OFF_BYTES }
  if sb.values then
    v:line("label", ('"%s"'):format(superblock.utf8(sb.values.volume_name)))
    v:line("features", names_of(sb.values.feature, ondisk.FEATURES))
  end
  if sb.why then
    v:fault("%s", sb.why)
  end
  return v
end

---A checkpoint pack: 1 or 2, or the valid one.
---@param fs brim.f2fs.Volume
---@param number? integer
---@return brim.f2fs.View
function M.cp(fs, number)
  if number and number ~= 1 and number ~= 2 then
    error(errors.usage("there is no checkpoint pack %d, there are 1 and 2", number), 0)
  end
  number = number or fs.pack_number or 1
  local pack = fs.packs[number]
  local v = view.new { what = "cp", title = ("checkpoint pack %d"):format(number),
    layout = ondisk.cp, fields = pack.values or {}, bytes = pack.bytes or "",
    off_bytes = pack.block << BLOCK_LOG2 }
  v:line("state", pack.why and "not valid" or number == fs.pack_number and "valid, the newer"
    or "valid, the older")
  if pack.values then
    v:line("flags", names_of(pack.values.ckpt_flags, ondisk.CP_FLAGS))
  end
  if pack.why then
    v:fault("%s", pack.why)
  end
  return v
end

---The entry of a node in the NAT.
---@param fs brim.f2fs.Volume
---@param nid integer
---@return brim.f2fs.View
function M.nat(fs, nid)
  checkpoint_of(fs)
  in_range(nid, fs:max_nids(), "node")
  local entry, is_journal = fs:nat_entry(nid)
  must(entry, is_journal)
  local place, other = fs:nat_place(nid // 455)
  local v = view.new { what = "nat", title = ("NAT entry of node %d"):format(nid),
    layout = ondisk.nat_entry, fields = entry }
  v:line("kept in", is_journal and "journal" or ("block %d"):format(place))
  v:line("other copy", ("block %d"):format(is_journal and place or other))
  v:line("state", entry.block_addr == 0 and "free" or entry.ino == nid and "inode" or "node")
  if entry.block_addr > 1 and segments_of.is_valid({ count = fs.sb.segment_count_main, map = {} },
    fs, entry.block_addr) == nil then
    v:fault("block %d is not in the main area", entry.block_addr)
  end
  return v
end

-- Valid blocks as ranges.
local function ranges(map)
  local list, first = {}, nil
  for i = 0, SEGMENT_BLOCKS do
    local is_set = i < SEGMENT_BLOCKS and map:byte((i >> 3) + 1) >> (7 - (i & 7)) & 1 == 1
    if is_set and not first then
      first = i
    elseif not is_set and first then
      list[#list + 1] = first == i - 1 and tostring(first) or ("%d-%d"):format(first, i - 1)
      first = nil
    end
  end
  return #list > 0 and table.concat(list, " ", 1, math.min(#list, 12))
    .. (#list > 12 and (" ... (%d runs)"):format(#list) or "") or "none"
end

---The entry of a segment in the SIT.
---@param fs brim.f2fs.Volume
---@param segment integer
---@return brim.f2fs.View
function M.sit(fs, segment)
  checkpoint_of(fs)
  in_range(segment, fs.sb.segment_count_main, "segment")
  local entry, is_journal = fs:sit_entry(segment)
  must(entry, is_journal)
  local place, other = fs:sit_place(segment // 55)
  local v = view.new { what = "sit", title = ("SIT entry of segment %d"):format(segment),
    layout = ondisk.sit_entry, fields = entry }
  local log = fs:logs()[segment]
  v:line("kept in", is_journal and "journal" or ("block %d"):format(place))
  v:line("other copy", ("block %d"):format(is_journal and place or other))
  v:line("blocks", ("%d-%d"):format(fs.sb.main_blkaddr + segment * SEGMENT_BLOCKS,
    fs.sb.main_blkaddr + segment * SEGMENT_BLOCKS + SEGMENT_BLOCKS - 1))
  v:line("type", segments_of.name(entry.vblocks >> 10), log
    and ("a log, written up to block %d"):format(log.offset) or "")
  v:line("valid", entry.vblocks & 0x3ff, "of 512")
  v:line("valid blocks", ranges(entry.valid_map))
  v.fields.type, v.fields.valid = segments_of.name(entry.vblocks >> 10), entry.vblocks & 0x3ff
  return v
end

---The summary block of a segment: whose its blocks are.
---@param fs brim.f2fs.Volume
---@param segment integer
---@return brim.f2fs.View
function M.ssa(fs, segment)
  checkpoint_of(fs)
  in_range(segment, fs.sb.segment_count_main, "segment")
  local block = fs.sb.ssa_blkaddr + segment
  local bytes = must(fs:read(block))
  local fields = ondisk.ssa:decode(bytes)
  local v = view.new { what = "ssa", title = ("summary of segment %d"):format(segment),
    layout = ondisk.ssa, fields = fields, bytes = bytes, off_bytes = block << BLOCK_LOG2 }
  local entry = must(fs:sit_entry(segment))
  if fs:logs()[segment] then
    v:line("state", "a log: the summary in the checkpoint counts, not this block")
  end
  for i, sum in ipairs(fields.entries) do
    if entry.valid_map:byte((i - 1 >> 3) + 1) >> (7 - (i - 1 & 7)) & 1 == 1 and #v.lines < 520 then
      v:line(("block %d"):format(i - 1), ("node %d"):format(sum.nid),
        fields.entry_type == 0 and ("address %d"):format(sum.ofs_in_node) or "")
    end
  end
  return v
end

-- The block of a node, and what the NAT says of it.
local function node_of(fs, nid)
  checkpoint_of(fs)
  in_range(nid, fs:max_nids(), "node")
  local entry = must(fs:nat_entry(nid))
  if entry.block_addr <= 1 then
    error(errors.usage("node %d is %s", nid, entry.block_addr == 0 and "free"
      or "one of those that have no block"), 0)
  end
  return must(fs:read(entry.block_addr)), entry
end

local function check_footer(v, nid, entry)
  local footer = v.fields.footer
  if footer.nid ~= nid or footer.ino ~= entry.ino then
    v:fault("its footer is of node %d, inode %d; the NAT says inode %d", footer.nid, footer.ino,
      entry.ino)
  end
end

-- Addresses as runs of adjacent blocks.
local function runs(list, first)
  local parts, i = {}, first
  while i <= #list do
    local start, n = list[i], 1
    while start ~= 0 and start ~= 0xffffffff and list[i + n] == start + n do
      n = n + 1
    end
    if start ~= 0 then
      parts[#parts + 1] = start == 0xffffffff and ("%d: reserved"):format(i - first)
        or ("%d: %d%s"):format(i - first, start, n > 1 and (" x %d"):format(n) or "")
    end
    i = i + n
  end
  return #parts > 0 and table.concat(parts, ", ", 1, math.min(#parts, 8))
    .. (#parts > 8 and (", ... (%d runs)"):format(#parts) or "") or "none"
end

---An inode.
---@param fs brim.f2fs.Volume
---@param ino integer
---@return brim.f2fs.View
function M.inode(fs, ino)
  local bytes, entry = node_of(fs, ino)
  local fields = ondisk.inode:decode(bytes)
  local v = view.new { what = "inode", title = ("inode %d"):format(ino), layout = ondisk.inode,
    fields = fields, bytes = bytes, off_bytes = entry.block_addr << BLOCK_LOG2 }
  if entry.ino ~= ino then
    v:fault("the NAT says that it is a node of inode %d", entry.ino)
  end
  check_footer(v, ino, entry)
  v:line("kind", MODES[fields.i_mode >> 12] or "?")
  v:line("inline", names_of(fields.i_inline, INLINE))
  local first = 1
  if fields.i_inline & INLINE_EXTRA ~= 0 then
    fields.extra = ondisk.extra:decode(bytes, ADDR_OFF)
    first = fields.extra.i_extra_isize // 4 + 1
    for _, field in ipairs(ondisk.extra.fields) do
      -- Only those that are within the size it says.
      if field.off_bytes < fields.extra.i_extra_isize then
        v:line(field.name, fields.extra[field.name])
      end
    end
    if fs.has.inode_checksum and fields.extra.i_extra_isize >= 12 then
      local right = crc.inode(crc.seed(uuid.parse(fs.sb.uuid)), bytes)
      if right ~= fields.extra.i_inode_checksum then
        v:fault("i_inode_checksum should be %d", right)
      end
    end
  end
  if fields.i_inline & (INLINE.data | INLINE.dentry) == 0 then
    v:line("addresses", runs(fields.i_addr, first))
  end
  return v
end

---A node: an inode, addresses of data, or numbers of nodes.
---@param fs brim.f2fs.Volume
---@param nid integer
---@return brim.f2fs.View
function M.node(fs, nid)
  local bytes, entry = node_of(fs, nid)
  if entry.ino == nid then
    return M.inode(fs, nid)
  end
  local fields = ondisk.node:decode(bytes)
  local v = view.new { what = "node", title = ("node %d of inode %d"):format(nid, entry.ino),
    layout = ondisk.node, fields = fields, bytes = bytes,
    off_bytes = entry.block_addr << BLOCK_LOG2 }
  check_footer(v, nid, entry)
  v:line("place", fields.footer.flag >> PLACE_SHIFT, "in the file, counted in nodes")
  v:line("addresses", runs(fields.addr, 1))
  return v
end

---The map of segments.
---@param fs brim.f2fs.Volume
---@return brim.f2fs.View
function M.segmap(fs)
  checkpoint_of(fs)
  local faults = {}
  local s = must(segments_of.read(fs, function(segment, why, ...)
    faults[#faults + 1] = ("segment %d: " .. why):format(segment, ...)
  end))
  local logs, section = fs:logs(), fs.sb.segs_per_sec
  local counts = segmap.count(s, logs, section)
  local list = {}
  for segment = 0, s.count - 1 do
    if s.valid[segment] or logs[segment] then
      list[#list + 1] = { segment = segment, type = segments_of.name(s.kind[segment]),
        valid = s.valid[segment] or 0, log = logs[segment] ~= nil or nil }
    end
  end
  counts.segments = list
  local v = view.new { what = "segmap", title = ("%d segments of the main area"):format(s.count),
    fields = counts, text = segmap.draw(s, logs, section) .. "\n" .. segmap.text(counts) }
  v.faults = faults
  return v
end

---Sizes and areas, and how the volume was left.
---@param fs brim.f2fs.Volume
---@return brim.f2fs.View
function M.geometry(fs)
  local sb = fs.sb
  local v = view.new { what = "geometry", title = "F2FS on " .. fs.target, fields = {
    segments = sb.segment_count, section_segments = sb.segs_per_sec,
    zone_sections = sb.secs_per_zone, sit_block = sb.sit_blkaddr, nat_block = sb.nat_blkaddr,
    ssa_block = sb.ssa_blkaddr, main_block = sb.main_blkaddr, max_nids = fs:max_nids(),
    main_segments = sb.segment_count_main, uuid = sb.uuid } }
  v:line("label", ('"%s"'):format(superblock.utf8(sb.volume_name)))
  v:line("uuid", sb.uuid)
  v:line("features", names_of(sb.feature, ondisk.FEATURES))
  v:line("segments", ("%d of 2 MiB"):format(sb.segment_count),
    ("%d to a section, %d sections to a zone"):format(sb.segs_per_sec, sb.secs_per_zone))
  for _, area in ipairs { { "checkpoints", "cp_blkaddr", "segment_count_ckpt" },
    { "SIT", "sit_blkaddr", "segment_count_sit" }, { "NAT", "nat_blkaddr", "segment_count_nat" },
    { "SSA", "ssa_blkaddr", "segment_count_ssa" },
    { "main", "main_blkaddr", "segment_count_main" } } do
    v:line(area[1], ("block %d"):format(sb[area[2]]), ("%d segments"):format(sb[area[3]]))
  end
  v:line("nodes", ("%d at most"):format(fs:max_nids()), fs.cp
    and ("%d in use, %d of them inodes"):format(fs.cp.valid_node_count, fs.cp.valid_inode_count))
  if fs.cp then
    v:line("blocks", ("%d for users"):format(fs.cp.user_block_count),
      ("%d in use"):format(fs.cp.valid_block_count))
    v:line("overprovision", ("%d segments"):format(fs.cp.overprov_segment_count),
      ("%d of them reserved"):format(fs.cp.rsvd_segment_count))
    v:line("checkpoint", ("version %d, pack %d"):format(fs.cp.checkpoint_ver, fs.pack_number),
      names_of(fs.cp.ckpt_flags, ondisk.CP_FLAGS))
  end
  if fs.damage then
    v:fault("%s", fs.damage)
  end
  return v
end

return M
