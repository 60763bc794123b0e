-- brim.xfs.levels: how high the btrees of a V5 XFS can become.
-- Owns record sizes and height formulas of xfsprogs (libxfs: xfs_*_btree.c, xfs_bmap.c).
-- Called by geometry (initial free list) and logres (transaction reservations); pure arithmetic.
-- Units: blocks are filesystem blocks, `*_levels` count btree levels, a lone root being 1.
local versions = require "brim.xfs.versions"

local M = {}

-- Bytes of a CRC-carrying btree block header: short form (per group) and long form (in a fork).
local SHORT_HEADER_BYTES <const> = 56
local LONG_HEADER_BYTES <const> = 72

-- Bytes of one leaf record and of one node entry (key or keys, and pointer).
local RECORD_BYTES = {
  alloc = { leaf = 8, node = 12 },
  inobt = { leaf = 16, node = 8 },
  rmap = { leaf = 24, node = 44 },
  refcount = { leaf = 12, node = 8 },
  bmap = { leaf = 16, node = 16 },
}

-- Extents a fork can hold: the on-disk counter's width (2^31, 2^15; with nrext64 2^48, 2^32).
local DATA_EXTENTS_SMALL <const> = (1 << 31) - 1
local DATA_EXTENTS_LARGE <const> = (1 << 48) - 1
local ATTR_EXTENTS_SMALL <const> = (1 << 15) - 1
local ATTR_EXTENTS_LARGE <const> = (1 << 32) - 1

-- Pointers of the smallest root there is, and records in the smallest one that an inode is sure to
-- have room for.
local SMALL_ROOT_POINTERS <const> = 2
local DATA_ROOT_RECORDS <const> = 3
local ATTR_ROOT_RECORDS <const> = 2

---Divide, rounding up; both operands positive integers.
---@param value integer
---@param divisor integer
---@return integer
function M.ceil_div(value, divisor)
  local quotient = value // divisor
  if value % divisor ~= 0 then
    quotient = quotient + 1
  end
  return quotient
end

local ceil_div = M.ceil_div

---Return how many records a full leaf and a full node of one btree type hold.
---@param kind "alloc"|"inobt"|"rmap"|"refcount"|"bmap"
---@param block_bytes integer filesystem block size
---@return integer leaf_records
---@return integer node_records
function M.max_records(kind, block_bytes)
  local header_bytes = kind == "bmap" and LONG_HEADER_BYTES or SHORT_HEADER_BYTES
  local room_bytes = block_bytes - header_bytes
  local record = RECORD_BYTES[kind]
  return room_bytes // record.leaf, room_bytes // record.node
end

---Return the fewest records a non-root leaf and node may hold (half full).
---@param kind "alloc"|"inobt"|"rmap"|"refcount"|"bmap"
---@param block_bytes integer filesystem block size
---@return integer leaf_records
---@return integer node_records
function M.min_records(kind, block_bytes)
  local leaf, node = M.max_records(kind, block_bytes)
  return leaf // 2, node // 2
end

-- Height of a half-full tree of `records` records.
local function height_for_records(kind, block_bytes, records)
  local leaf, node = M.min_records(kind, block_bytes)
  local blocks = ceil_div(records, leaf)
  local height = 1
  while blocks > 1 do
    blocks = ceil_div(blocks, node)
    height = height + 1
  end
  return height
end

-- Height of a half-full tree that has eaten `total_blocks` blocks of space.
local function height_for_space(kind, block_bytes, total_blocks, root_pointers)
  if total_blocks < 1 then
    return 0
  end
  local _, node = M.min_records(kind, block_bytes)
  local level_blocks, left_blocks, height = root_pointers or node, total_blocks - 1, 1
  while level_blocks < left_blocks do
    left_blocks = left_blocks - level_blocks
    level_blocks = level_blocks * node
    height = height + 1
  end
  return height
end

-- Height of a fork's extent tree; the root lives in the inode and is small.
local function fork_height(block_bytes, extents, root_records)
  local leaf, node = M.min_records("bmap", block_bytes)
  local blocks = ceil_div(extents, leaf)
  local height = 1
  while blocks > 1 do
    blocks = blocks <= root_records and 1 or ceil_div(blocks, node)
    height = height + 1
  end
  return height
end

---Compute the greatest height each btree can reach in a geometry.
---Needs block_bytes, ag_blocks, ag_blocks_log2, inodes_per_block_log2, rmapbt, reflink, nrext64.
---@param g brim.xfs.Geometry (partially filled is enough)
---@return {[string]: integer} levels of "alloc", "inobt" (also finobt), "rmap", "refcount" and of a
---file's "data" and "attr" extent trees
function M.max_levels(g)
  local rmap_levels, refcount_levels = 0, 0
  if g.rmapbt and g.reflink then
    -- Shared blocks have any number of owners: only the space itself bounds the tree.
    rmap_levels = height_for_space("rmap", g.block_bytes, g.ag_blocks,
      versions.of(g.compat).has_small_roots and SMALL_ROOT_POINTERS or nil)
  elseif g.rmapbt then
    rmap_levels = height_for_records("rmap", g.block_bytes, g.ag_blocks)
  end
  if g.reflink then
    refcount_levels = height_for_records("refcount", g.block_bytes, g.ag_blocks)
  end
  local chunks = (1 << (g.inodes_per_block_log2 + g.ag_blocks_log2)) >> 6
  return {
    alloc = height_for_records("alloc", g.block_bytes, (g.ag_blocks + 1) // 2),
    inobt = height_for_records("inobt", g.block_bytes, chunks),
    rmap = rmap_levels,
    refcount = refcount_levels,
    data = fork_height(g.block_bytes, g.nrext64 and DATA_EXTENTS_LARGE or DATA_EXTENTS_SMALL,
      DATA_ROOT_RECORDS),
    attr = fork_height(g.block_bytes, g.nrext64 and ATTR_EXTENTS_LARGE or ATTR_EXTENTS_SMALL,
      ATTR_ROOT_RECORDS),
  }
end

---Return how many blocks a new group's free list (AGFL) is filled with, for each btree that lives
---on it: two, where a tree can never outgrow its root one, or from 6.13 none.
---@param g brim.xfs.Geometry (partially filled is enough)
---@return integer blocks
function M.free_list_blocks(g)
  local levels = M.max_levels(g)
  local function of(height)
    local grown = math.min(2, height)
    return versions.of(g.compat).has_split_free_lists and 2 * grown - 2 or grown
  end
  return 2 * of(levels.alloc) + (g.rmapbt and of(levels.rmap) or 0)
end

return M
