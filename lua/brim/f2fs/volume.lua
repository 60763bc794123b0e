-- brim.f2fs.volume: an F2FS opened to be looked at: superblocks, the valid checkpoint with its
-- bitmaps and journals, and where every table block, node and segment is. Read-only. Called by
-- check and inspect. Units: blocks of 4 KiB counted on the volume, segments of the main area.
local crc = require "brim.f2fs.crc"
local device = require "brim.device"
local errors = require "brim.error"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local BLOCK_LOG2 <const>, BLOCK_BYTES <const>, SEGMENT_BLOCKS <const> = 12, 4096, 512
local SB_BYTES <const>, BITMAPS_OFF <const> = 3072, 192
local SIT_PER_BLOCK <const>, NAT_PER_BLOCK <const> = 55, 455
local FLAGS <const> = ondisk.CP_FLAGS
local CRC_BEFORE_BITMAPS <const> = 192
local JOURNAL_OFF <const> = 3584 -- of a summary block
local JOURNAL_BYTES <const> = 507
local MOST_PAYLOAD <const> = SEGMENT_BLOCKS - 6 -- beside the six blocks of a checkpoint
local MOST_NAT_JOURNAL <const>, MOST_SIT_JOURNAL <const> = 38, 6

---@class brim.f2fs.Volume
---@field target string
---@field device brim.Device
---@field size_bytes integer
---@field sb table the first superblock that is one
---@field sbs table[] both: values, why (what is wrong)
---@field packs table[] both checkpoint packs: values, version, block, why
---@field cp? table the valid checkpoint's values
---@field pack? table
---@field nat_journal table<integer, table> entries by nid
---@field sit_journal table<integer, table> entries by segment
---@field has table<string, true> features
local Volume = {}
Volume.__index = Volume
Volume.__name = "brim.f2fs.volume"

-- ---------------------------------------------------------------------- reading

---Read blocks; nil past the end of the target.
---@param block integer
---@param count? integer default 1
---@return string? bytes
---@return brim.Error? err
function Volume:read(block, count)
  local off, len = block << BLOCK_LOG2, (count or 1) << BLOCK_LOG2
  if block < 0 or len > self.size_bytes or off > self.size_bytes - len then
    return nil, errors.usage("block %d lies past the end of %s", block, self.target)
  end
  return self.device:read(off, len)
end

-- What is wrong with a superblock's numbers, or nil.
local function sb_fault(self, v)
  local at = v.segment0_blkaddr
  if v.log_blocksize ~= 12 or v.log_blocks_per_seg ~= 9 then
    return "blocks of 4 KiB and segments of 512 of them are all brim knows"
  elseif v.cp_blkaddr ~= at or v.segment_count_ckpt ~= 2 then
    return "the checkpoints are not where segments begin"
  end
  for _, area in ipairs { { "sit_blkaddr", "segment_count_ckpt" },
    { "nat_blkaddr", "segment_count_sit" }, { "ssa_blkaddr", "segment_count_nat" },
    { "main_blkaddr", "segment_count_ssa" } } do
    at = at + v[area[2]] * SEGMENT_BLOCKS
    if v[area[1]] ~= at then
      return ("%s is %d, the area before ends at %d"):format(area[1], v[area[1]], at)
    end
  end
  local last = at + v.segment_count_main * SEGMENT_BLOCKS
  if v.segs_per_sec < 1 or v.secs_per_zone < 1 or v.segment_count_main < 2
    or v.segment_count_main ~= v.section_count * v.segs_per_sec then
    return ("%d segments of the main area are not %d sections of %d"):format(v.segment_count_main,
      v.section_count, v.segs_per_sec)
  elseif v.segment_count_sit < 2 or v.segment_count_nat < 2
    or (v.segment_count_sit // 2) * SEGMENT_BLOCKS * SIT_PER_BLOCK < v.segment_count_main then
    return "the tables are too small for the main area"
  elseif v.cp_payload > MOST_PAYLOAD then
    return ("checkpoints with %d blocks for bitmaps do not fit a segment"):format(v.cp_payload)
  elseif v.devs[1].total_segments == 0 and last << BLOCK_LOG2 > self.size_bytes then
    return ("the main area ends at block %d, past the end of the target"):format(last)
  end
end

local function read_sb(self, copy)
  local bytes, err = self:read(copy)
  if not bytes then
    return { why = tostring(err) }
  end
  local raw = bytes:sub(ondisk.SB_OFF_BYTES + 1, ondisk.SB_OFF_BYTES + SB_BYTES)
  local v = ondisk.sb:decode(raw)
  if v.magic ~= ondisk.MAGIC then
    return { raw = raw, values = v, why = ("its magic number is 0x%x"):format(v.magic) }
  end
  local why = sb_fault(self, v)
  if not why and v.feature & ondisk.FEATURES.sb_checksum ~= 0 and crc.sb(raw) ~= v.crc then
    why = ("its checksum should be 0x%x"):format(crc.sb(raw))
  end
  return { raw = raw, values = v, why = why }
end

-- ------------------------------------------------------------------ checkpoints

local function valid_block(bytes)
  local v = ondisk.cp:decode(bytes)
  local at = v.checksum_offset
  if at < CRC_BEFORE_BITMAPS or at > BLOCK_BYTES - 4 or at % 4 ~= 0 then
    return v, ("its checksum is said to be at %d"):format(at)
  end
  local found, right = ("<I4"):unpack(bytes, at + 1), crc.cp(bytes, at)
  if found ~= right then
    return v, ("its checksum should be 0x%x, not 0x%x"):format(right, found)
  end
  return v, nil
end

-- A pack is valid when both of its ends are, with one version.
local function read_pack(self, number)
  local first = self.sb.cp_blkaddr + (number - 1) * SEGMENT_BLOCKS
  local bytes, err = self:read(first)
  if not bytes then
    return { block = first, why = tostring(err) }
  end
  local v, why = valid_block(bytes)
  local pack = { block = first, values = v, version = v.checkpoint_ver, why = why, bytes = bytes }
  local count, least = v.cp_pack_total_block_count, 2 + self.sb.cp_payload
  if why then
    return pack
  elseif count <= least or count > SEGMENT_BLOCKS then
    pack.why = ("it is said to have %d blocks"):format(count)
    return pack
  end
  local last
  last, pack.why = valid_block(self:read(first + count - 1) or ("\0"):rep(BLOCK_BYTES))
  if pack.why then
    pack.why = "of its last block " .. pack.why
  elseif last.checkpoint_ver ~= v.checkpoint_ver then
    pack.why = ("its ends are of versions %d and %d"):format(v.checkpoint_ver, last.checkpoint_ver)
  end
  return pack
end

-- Bitmaps lie behind the checkpoint's fields, or in blocks of their own.
local function read_bitmaps(self)
  local v, payload = self.cp, self.sb.cp_payload
  local bytes, err = self:read(self.pack.block, 1 + payload)
  if not bytes then
    self.damage = tostring(err)
    return
  end
  local sit_bytes, nat_bytes = v.sit_ver_bitmap_bytesize, v.nat_ver_bitmap_bytesize
  local sit_at, nat_at = BITMAPS_OFF, BITMAPS_OFF + sit_bytes
  if v.ckpt_flags & FLAGS.large_nat_bitmap ~= 0 then
    local behind = v.checksum_offset == CRC_BEFORE_BITMAPS and 4 or 0
    nat_at = BITMAPS_OFF + behind
    sit_at = nat_at + nat_bytes
  elseif payload > 0 then
    sit_at, nat_at = BLOCK_BYTES, BITMAPS_OFF
  end
  self.sit_bitmap = bytes:sub(sit_at + 1, sit_at + sit_bytes)
  self.nat_bitmap = bytes:sub(nat_at + 1, nat_at + nat_bytes)
  if sit_bytes ~= self.sb.segment_count_sit // 2 * 64 or #self.sit_bitmap < sit_bytes
    or nat_bytes ~= self.sb.segment_count_nat // 2 * 64 or #self.nat_bitmap < nat_bytes then
    self.damage = ("bitmaps of %d and %d bytes are not those of this SIT and NAT"):format(
      sit_bytes, nat_bytes)
  end
end

-- Where the summary of a log is kept: 0..5 as of segment types; and the blocks of the journals.
local function journal_blocks(self)
  local v, first = self.cp, self.pack.block
  if v.ckpt_flags & FLAGS.compact_sum ~= 0 then
    return first + v.cp_pack_start_sum
  end
  local behind = v.ckpt_flags & FLAGS.umount ~= 0 and 7 or 4
  local hot = first + v.cp_pack_total_block_count - behind
  return nil, hot, hot + 2
end

local function read_journals(self)
  self.nat_journal, self.sit_journal = {}, {}
  local compact, hot, cold = journal_blocks(self)
  local nat_at, sit_at = compact and 0 or JOURNAL_OFF, compact and JOURNAL_BYTES or JOURNAL_OFF
  local bytes, err = self:read(compact or hot)
  local more = bytes
  if bytes and not compact then
    more, err = self:read(cold)
  end
  if not more then
    self.damage = "the journals cannot be read: " .. tostring(err)
    return
  end
  local nats = ondisk.nat_journal:decode(bytes, nat_at, JOURNAL_BYTES)
  local sits = ondisk.sit_journal:decode(more, sit_at, JOURNAL_BYTES)
  if nats.n_nats > MOST_NAT_JOURNAL or sits.n_sits > MOST_SIT_JOURNAL then
    self.damage = ("journals of %d nodes and %d segments have no room"):format(nats.n_nats,
      sits.n_sits)
    return
  end
  for i = 1, nats.n_nats do
    self.nat_journal[nats.entries[i].nid] = nats.entries[i].ne
  end
  for i = 1, sits.n_sits do
    self.sit_journal[sits.entries[i].segno] = sits.entries[i].se
  end
end

local function read_checkpoints(self)
  for i = 1, 2 do
    self.packs[i] = read_pack(self, i)
    local pack = self.packs[i]
    -- Versions count on, whatever their sign.
    if not pack.why and (not self.pack or pack.version - self.pack.version > 0) then
      self.pack, self.cp, self.pack_number = pack, pack.values, i
    end
  end
  if not self.pack then
    self.damage = "neither checkpoint is valid"
    return
  end
  read_bitmaps(self)
  if not self.damage then
    read_journals(self)
  end
end

-- ----------------------------------------------------------------------- places

local function bit_of(bitmap, n)
  return (bitmap:byte((n >> 3) + 1) or 0) >> (7 - (n & 7)) & 1
end

---Where the NAT block of a node number is: the copy that counts, and the other.
---@param index integer nid // 455
---@return integer block
---@return integer other
function Volume:nat_place(index)
  local base = self.sb.nat_blkaddr + (index >> 9 << 10) + (index & 511)
  local copy = bit_of(self.nat_bitmap, index) * SEGMENT_BLOCKS
  return base + copy, base + SEGMENT_BLOCKS - copy
end

---Where the SIT block of a segment is: the copy that counts, and the other.
---@param index integer segment // 55
---@return integer block
---@return integer other
function Volume:sit_place(index)
  local base, blocks = self.sb.sit_blkaddr, self.sb.segment_count_sit // 2 * SEGMENT_BLOCKS
  local copy = bit_of(self.sit_bitmap, index) * blocks
  return base + index + copy, base + index + blocks - copy
end

---How many node numbers there are.
---@return integer
function Volume:max_nids()
  return self.sb.segment_count_nat // 2 * SEGMENT_BLOCKS * NAT_PER_BLOCK
end

---The NAT entry of a node: the journal's, or the table's.
---@param nid integer
---@return table? entry version, ino, block_addr
---@return boolean|brim.Error is_journal or what went wrong
function Volume:nat_entry(nid)
  if self.nat_journal[nid] then
    return self.nat_journal[nid], true
  end
  local bytes, err = self:read((self:nat_place(nid // NAT_PER_BLOCK)))
  if not bytes then
    return nil, err
  end
  return ondisk.nat_entry:decode(bytes, nid % NAT_PER_BLOCK * 9), false
end

---The SIT entry of a segment: the journal's, or the table's.
---@param segment integer
---@return table? entry vblocks, valid_map, mtime
---@return boolean|brim.Error is_journal or what went wrong
function Volume:sit_entry(segment)
  if self.sit_journal[segment] then
    return self.sit_journal[segment], true
  end
  local bytes, err = self:read((self:sit_place(segment // SIT_PER_BLOCK)))
  if not bytes then
    return nil, err
  end
  return ondisk.sit_entry:decode(bytes, segment % SIT_PER_BLOCK * 74), false
end

---The logs: their segments by the segment, with type (0..5) and blocks written.
---@return table<integer, { type: integer, offset: integer }>
function Volume:logs()
  local logs = {}
  -- Read-only images have two.
  local count = self.has.ro and 1 or 3
  for i = 1, count do
    logs[self.cp.cur_data_segno[i]] = { type = i - 1, offset = self.cp.cur_data_blkoff[i] }
  end
  for i = 1, count do
    logs[self.cp.cur_node_segno[i]] = { type = i + 2, offset = self.cp.cur_node_blkoff[i] }
  end
  return logs
end

---Call a function for each entry of a table, in batches of up to 256 blocks: the copies that count.
---@param kind "nat"|"sit"
---@param count integer entries
---@param visit fun(first: integer, bytes: string) a block and the number of its first entry; blocks
--- of zeros are left out
---@return true? ok
---@return brim.Error? err
function Volume:each_block(kind, count, visit)
  local per_block = kind == "nat" and NAT_PER_BLOCK or SIT_PER_BLOCK
  local place = kind == "nat" and self.nat_place or self.sit_place
  local blocks, at = (count + per_block - 1) // per_block, 0
  local zero <const> = ("\0"):rep(BLOCK_BYTES)
  while at < blocks do
    local first, run = place(self, at), 1
    while run < 256 and at + run < blocks and place(self, at + run) == first + run do
      run = run + 1
    end
    local bytes, err = self:read(first, run)
    if not bytes then
      return nil, err
    end
    for i = 0, run - 1 do
      local block = bytes:sub(i * BLOCK_BYTES + 1, (i + 1) * BLOCK_BYTES)
      if block ~= zero then
        visit((at + i) * per_block, block)
      end
    end
    at = at + run
  end
  return true
end

---Close it. Any number of times.
function Volume:close()
  self.device:close()
end

Volume.__close = Volume.close

---Does a target hold an F2FS, by the magic number of a superblock?
---@param opened brim.Device
---@return boolean
function M.holds(opened)
  for copy = 0, 1 do
    local off = (copy << BLOCK_LOG2) + ondisk.SB_OFF_BYTES
    local bytes = off + 4 <= opened:info().size_bytes and opened:read(off, 4)
    if bytes and ("<I4"):unpack(bytes) == ondisk.MAGIC then
      return true
    end
  end
  return false
end

---Open a target. Damage is no error, as far as there is a superblock to go by: `damage` says why
---nothing behind the checkpoints can be read.
---@param target string a device, a file or an image file
---@return brim.f2fs.Volume? volume to be closed by the caller
---@return brim.Error? err
function M.open(target)
  local opened, err = device.open(target)
  if not opened then
    return nil, errors.refused(err)
  end
  local self = setmetatable({ target = target, device = opened, sbs = {}, packs = {}, has = {},
    size_bytes = opened:info().size_bytes }, Volume)
  for copy = 0, 1 do
    self.sbs[copy + 1] = read_sb(self, copy)
    if not self.sb and not self.sbs[copy + 1].why then
      self.sb = self.sbs[copy + 1].values
    end
  end
  if not self.sb then
    local why = self.sbs[1].why
    opened:close()
    return nil, errors.usage("%s holds no F2FS that can be read: of the superblock, %s", target,
      why)
  end
  for name, mask in pairs(ondisk.FEATURES) do
    self.has[name] = self.sb.feature & mask ~= 0 or nil
  end
  read_checkpoints(self)
  return self
end

return M
