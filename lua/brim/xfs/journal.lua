-- brim.xfs.journal: size and place of the internal log, as mkfs.xfs decides them.
-- Called by geometry; `s` is the computation: options `o`, geometry `g`, `warn`.
-- Units: blocks are filesystem blocks; `fsb` is a block address of the whole filesystem (group in
-- the high bits, block of the group in the low ag_blocks_log2 bits).
local division = require "brim.xfs.division"
local logres = require "brim.xfs.logres"
local verdict = require "brim.xfs.verdict"

local M = {}

local refuse = verdict.refuse

local MIB <const> = 1 << 20
local LOG_MIN_BLOCKS <const> = 512
local LOG_MIN_BYTES <const> = 10 * MIB -- from 1 GiB up, unless a size is asked for
local LOG_MAX_BLOCKS <const> = 1 << 20
local LOG_MAX_BYTES <const> = (2 << 30) - LOG_MIN_BYTES
local LOG_USEFUL_BYTES <const> = 64 * MIB
local TINY_FS_BYTES <const> = 300 * MIB
local STRIPE_UNIT_MAX_BYTES <const> = 256 << 10
local STRIPE_UNIT_FALLBACK_BYTES <const> = 32 << 10
local FREE_LIST_RESERVE_BLOCKS <const> = 4
local CHUNK_INODES <const> = 64
local UINT_MAX <const> = 0xffffffff

---Set log_stripe_unit_bytes (1 if none, as in the superblock); after the data stripe is known.
---@param s table the computation: options `o`, device, geometry so far `g`, `warn`
function M.set_stripe_unit(s)
  local o, g = s.o, s.g
  local unit_bytes = o.log_stripe_unit_bytes
  if unit_bytes and unit_bytes % g.block_bytes ~= 0 then
    refuse("log_stripe_unit_bytes", unit_bytes, "must be a multiple of the block size %d",
      g.block_bytes)
  end
  local is_striped = g.has_stripe and s.version.prefers_data_stripe
  if not unit_bytes and g.sector_bytes > 512 and not is_striped then
    unit_bytes = g.block_bytes
  end
  unit_bytes = unit_bytes or g.stripe_unit_blocks << g.block_log2
  if unit_bytes > STRIPE_UNIT_MAX_BYTES then
    s:warn("the log stripe unit %d is over 256 KiB, 32 KiB is used", unit_bytes)
    unit_bytes = STRIPE_UNIT_FALLBACK_BYTES // g.block_bytes * g.block_bytes
  end
  g.log_stripe_unit_bytes = math.max(unit_bytes, 1)
end

local function set_min_blocks(s)
  local o, g = s.o, s.g
  g.min_log_blocks = math.max(LOG_MIN_BLOCKS, logres.min_log_blocks(g))
  if not o.log_bytes and g.data_blocks >= (1 << 30) >> g.block_log2 then
    g.min_log_blocks = math.max(g.min_log_blocks, LOG_MIN_BYTES >> g.block_log2)
  end
end

-- The most blocks a log may take of a group, one short of all that is left beside the headers.
local function group_room_blocks(g)
  local header_blocks = (4 * g.sector_bytes + g.block_bytes - 1) >> g.block_log2
  local roots = 3 + (g.finobt and 1 or 0) + (g.rmapbt and 1 or 0) + (g.reflink and 1 or 0)
  return g.ag_blocks - header_blocks - FREE_LIST_RESERVE_BLOCKS - roots - 1
end

-- Blocks for transactions of the largest kind that run side by side, and half as many behind them.
local function concurrent_blocks(s)
  local g, threads = s.g, division.threads(s, "log_concurrency")
  if threads == 0 or g.data_blocks < (1 << 30) >> g.block_log2 then
    return 0
  end
  local largest = logres.largest_transaction(g)
  local bytes = (largest.bytes * largest.count & UINT_MAX) * 3 * threads // 2
  return math.min(LOG_MAX_BYTES, bytes) >> g.block_log2
end

local function default_blocks(s, room_blocks)
  local g = s.g
  local blocks = math.max(g.data_blocks // 2048, concurrent_blocks(s),
    LOG_USEFUL_BYTES >> g.block_log2)
  if g.data_blocks < TINY_FS_BYTES >> g.block_log2 then
    blocks = g.min_log_blocks
  end
  blocks = math.max(g.min_log_blocks, blocks)
  return math.min(blocks, room_blocks, LOG_MAX_BLOCKS, LOG_MAX_BYTES >> g.block_log2)
end

local function check_size(s)
  local g = s.g
  if g.log_blocks < g.min_log_blocks then
    refuse("log_bytes", s.o.log_bytes, "a log of %d blocks is too small, the least here is %d",
      g.log_blocks, g.min_log_blocks)
  elseif g.log_blocks > LOG_MAX_BLOCKS then
    refuse("log_bytes", s.o.log_bytes, "a log of %d blocks is too large, the most is %d",
      g.log_blocks, LOG_MAX_BLOCKS)
  elseif g.log_blocks << g.block_log2 > LOG_MAX_BYTES then
    refuse("log_bytes", s.o.log_bytes, "a log of %d bytes is too large, the most is %d",
      g.log_blocks << g.block_log2, LOG_MAX_BYTES)
  end
end

local function set_size(s, room_blocks)
  local o, g = s.o, s.g
  if o.log_bytes and o.log_concurrency then
    refuse("log_concurrency", o.log_concurrency, "cannot be combined with -l size")
  end
  if room_blocks < g.min_log_blocks then
    refuse("ag_bytes", o.ag_bytes, "a group has room for a log of %d blocks, the least is %d;"
      .. " use larger groups", room_blocks, g.min_log_blocks)
  end
  g.log_blocks = o.log_bytes and s.log_blocks or default_blocks(s, room_blocks)
  if o.log_bytes and (g.log_blocks > room_blocks or g.log_blocks >= s.data_blocks_asked) then
    refuse("log_bytes", o.log_bytes, "a log of %d blocks does not fit a group, the most is %d",
      g.log_blocks, room_blocks)
  end
  if not o.log_bytes then
    check_size(s)
  end
  if g.log_blocks > g.ag_blocks - g.prealloc_blocks then
    refuse("log_bytes", o.log_bytes, "a log of %d blocks does not fit a group of %d",
      g.log_blocks, g.ag_blocks)
  end
end

-- In group 0 the root inode chunk needs room too, aligned to the stripe.
local function leave_room_for_root(s, room_blocks)
  local o, g = s.o, s.g
  local chunk_blocks = CHUNK_INODES * g.inode_bytes >> g.block_log2
  room_blocks = room_blocks - math.max(4 * chunk_blocks, 2 * g.stripe_unit_blocks)
  if room_blocks < 0 then
    -- The reference compares unsigned here, so a stripe this wide bounds nothing.
    return math.maxinteger
  end
  if o.log_bytes and g.log_blocks > room_blocks then
    refuse("log_bytes", o.log_bytes,
      "a log of %d blocks leaves no room for the root directory in group 0, the most is %d",
      g.log_blocks, room_blocks)
  end
  g.log_blocks = math.min(g.log_blocks, room_blocks)
  return room_blocks
end

local function group_of(g, fsb)
  return fsb >> g.ag_blocks_log2
end

local function is_usable(g, fsb)
  local ag, agbno = group_of(g, fsb), fsb & ((1 << g.ag_blocks_log2) - 1)
  local length_blocks = ag == g.ag_count - 1 and g.last_ag_blocks or g.ag_blocks
  return ag < g.ag_count and agbno < length_blocks and agbno >= g.bno_block
end

local function fits(g, start_fsb, blocks)
  local end_fsb = start_fsb + blocks - 1
  return blocks > 0 and is_usable(g, start_fsb) and is_usable(g, end_fsb)
    and group_of(g, start_fsb) == group_of(g, end_fsb)
end

local function align_size(s, unit_blocks, room_blocks)
  local o, g = s.o, s.g
  local rest_blocks = g.log_blocks % unit_blocks
  if rest_blocks == 0 then
    return
  end
  if o.log_bytes then
    refuse("log_bytes", o.log_bytes, "a log of %d blocks is not a multiple of the log stripe"
      .. " unit's %d; %d would be", g.log_blocks, unit_blocks, g.log_blocks - rest_blocks)
  end
  local rounded_blocks = g.log_blocks - rest_blocks + unit_blocks
  if rounded_blocks > LOG_MAX_BLOCKS or rounded_blocks << g.block_log2 > LOG_MAX_BYTES
    or rounded_blocks > room_blocks then
    rounded_blocks = rounded_blocks - unit_blocks
  end
  g.log_blocks = rounded_blocks
end

-- Start and size to a multiple of the unit. The start is rounded as an address of the whole
-- filesystem, so with a unit that is no power of two the block of the group need not be a multiple.
local function align(s, start_fsb, unit_blocks, room_blocks)
  local g = s.g
  start_fsb = (start_fsb + unit_blocks - 1) // unit_blocks * unit_blocks
  if not is_usable(g, start_fsb) then
    refuse("log_stripe_unit_bytes", s.o.log_stripe_unit_bytes,
      "a log aligned to %d blocks does not fit a group of %d", unit_blocks, g.ag_blocks)
  end
  align_size(s, unit_blocks, room_blocks)
  if not fits(g, start_fsb, g.log_blocks) and g.log_blocks > unit_blocks then
    g.log_blocks = g.log_blocks - unit_blocks
  end
  if not fits(g, start_fsb, g.log_blocks) then
    refuse("log_bytes", s.o.log_bytes, "a log of %d blocks, aligned to %d, does not fit group %d",
      g.log_blocks, unit_blocks, g.log_ag)
  end
  return start_fsb
end

---Set log_ag, log_agbno, log_blocks, log_start_fsb and min_log_blocks.
---@param s table the computation: options `o`, device, geometry so far `g`, `warn`
function M.set_log(s)
  local o, g = s.o, s.g
  set_min_blocks(s)
  local room_blocks = group_room_blocks(g)
  set_size(s, room_blocks)
  g.log_ag = o.log_ag or g.ag_count // 2
  if g.log_ag >= g.ag_count then
    refuse("log_ag", g.log_ag, "there is no such group, the last is %d", g.ag_count - 1)
  end
  if g.log_ag == 0 then
    room_blocks = leave_room_for_root(s, room_blocks)
  end
  local start_fsb = (g.log_ag << g.ag_blocks_log2) | g.prealloc_blocks
  local unit_blocks = g.log_stripe_unit_bytes // g.block_bytes
  if unit_blocks == 0 then
    unit_blocks = g.stripe_unit_blocks
  end
  if unit_blocks > 0 then
    start_fsb = align(s, start_fsb, unit_blocks, room_blocks)
  end
  check_size(s)
  g.log_start_fsb = start_fsb
  g.log_ag = group_of(g, start_fsb)
  g.log_agbno = start_fsb & ((1 << g.ag_blocks_log2) - 1)
end

return M
