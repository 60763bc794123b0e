-- brim.xfs.logres: the smallest log a V5 XFS may have.
-- Owns the transaction reservations of xfsprogs (libxfs: xfs_trans_resv.c, xfs_log_rlimit.c), with
-- the inflated figures of early reflink and rmap kernels by which logs are still sized so that such
-- kernels can mount the result, and without them where parent pointers keep those kernels out.
-- Called by geometry. Every quantity is bytes unless named otherwise; realtime is absent, quota is
-- always allowed for.
local levels = require "brim.xfs.levels"
local versions = require "brim.xfs.versions"

local M = {}

local BASIC_BLOCK_BYTES <const> = 512
local BASIC_BLOCK_LOG2 <const> = 9

-- On-disk log structures (xfs_log_format.h).
local OP_HEADER_BYTES <const> = 12
local TRANS_HEADER_BYTES <const> = 16
local INODE_LOG_FORMAT_BYTES <const> = 56
local BUFFER_OVERHEAD_BYTES <const> = 128 -- op header + buffer item, rounded up
local FORK_ROOT_HEADER_BYTES <const> = 72
local DQUOT_BYTES <const> = 104
local DQUOT_FORMAT_BYTES <const> = 24
local DQUOTS_BYTES <const> = 6 * (DQUOT_BYTES + DQUOT_FORMAT_BYTES) -- three dquots, twice (rename)
local SYMLINK_MAX_BYTES <const> = 1024
local RECORD_MAX_BYTES <const> = 256 << 10
local RECORD_HEADER_BYTES <const> = (RECORD_MAX_BYTES // (32 << 10)) * BASIC_BLOCK_BYTES

-- What a change of parent pointers adds to each transaction (xfs_calc_pptr_*_overhead): the intent
-- to set an attribute, 40 bytes, a parent's record of 12, a name of 256. A rename replaces one
-- (record and name twice), removes one and adds one.
local PARENT_RECORD_BYTES <const> = 12 + 256
local PARENT_LINK_BYTES <const> = 40 + PARENT_RECORD_BYTES
local PARENT_RENAME_BYTES <const> = 3 * PARENT_LINK_BYTES + PARENT_RECORD_BYTES

local DA_MAX_DEPTH <const> = 5 -- levels of a directory or attribute btree
local MAX_NAME_BYTES <const> = 256
local LOG_FACTOR <const> = 3 -- a log holds three of the largest transaction
local OLD_RMAP_LEVELS <const> = 9 -- what rmap + reflink always assumed once

-- Everything the formulas below ask of a geometry, in one place.
local function context(g, max_levels)
  local block_bytes = g.block_bytes
  local cluster_bytes = 8192
  local scaled_bytes = 8192 * (g.inode_bytes // 256)
  if g.inode_align_blocks >= scaled_bytes // block_bytes then
    cluster_bytes = scaled_bytes
  end
  local dir_blocks = g.dir_block_bytes // block_bytes
  local alloc_max = levels.max_records("alloc", block_bytes)
  local contiguous = alloc_max - alloc_max // 2
  local dir_splits = levels.ceil_div(dir_blocks, contiguous) * (max_levels.data - 1)
  return {
    block = block_bytes,
    sector = g.sector_bytes,
    inode = g.inode_bytes,
    dir_block = g.dir_block_bytes,
    max_levels = max_levels,
    finobt = g.finobt, rmapbt = g.rmapbt, reflink = g.reflink, parent = g.parent,
    has_atomic_writes = versions.of(g.compat).has_atomic_writes,
    cluster = math.max(cluster_bytes // block_bytes, 1) * block_bytes,
    chunk_blocks = math.max(64, block_bytes // g.inode_bytes) >> g.inodes_per_block_log2,
    contiguous_extents = contiguous,
    dir_splits = dir_splits,
    -- Blocks one directory change can dirty: its own tree, and the extent tree below it.
    dir_op_blocks = dir_blocks * (DA_MAX_DEPTH + 2) + (DA_MAX_DEPTH + 2) * dir_splits + 1,
  }
end

local function buffers(count, bytes)
  return count * (bytes + BUFFER_OVERHEAD_BYTES)
end

local function inodes(c, count)
  return count * (4 * OP_HEADER_BYTES + INODE_LOG_FORMAT_BYTES + c.inode
    + 2 * FORK_ROOT_HEADER_BYTES)
end

-- Free space (and rmap) btree blocks touched by `count` allocations or frees.
local function allocfree(c, count)
  local blocks = count * 2 * (2 * c.max_levels.alloc - 1)
  if c.rmapbt then
    blocks = blocks + count * (2 * c.max_levels.rmap - 1)
  end
  return buffers(blocks, c.block)
end

local function refcount_splits(c, count)
  if not c.reflink then
    return 0
  end
  return buffers(count * (2 * c.max_levels.refcount - 1), c.block)
end

local function inode_tree(c)
  return buffers(c.max_levels.inobt, c.block) + allocfree(c, 1)
end

local function free_inode_tree(c)
  return c.finobt and inode_tree(c) or 0
end

local function unlinked_add(c)
  return buffers(1, c.sector) + c.cluster
end

local function unlinked_remove(c)
  return buffers(1, c.sector) + 2 * c.cluster
end

-- Refcount updates in a transaction of their own.
local function refcount_update(c, count)
  return c.reflink and buffers(count, c.sector) + refcount_splits(c, count) or 0
end

-- The three that are sized as early reflink kernels did, refcount splits in the same transaction;
-- with parent pointers, which such kernels do not know, as they are.
local function write(c)
  local splits = c.parent and 0 or refcount_splits(c, 2)
  local mapping = inodes(c, 1) + buffers(c.max_levels.data, c.block) + buffers(3, c.sector)
    + allocfree(c, 2) + splits
  local freeing = buffers(5, c.sector) + allocfree(c, 2) + splits
  return DQUOTS_BYTES + math.max(mapping, freeing, c.parent and refcount_update(c, 1) or 0)
end

local function truncate(c, is_new)
  local mapping = inodes(c, 1) + buffers(c.max_levels.data + 1, c.block)
  local freeing = buffers(9, c.sector) + allocfree(c, 4)
    + (is_new and 0 or refcount_splits(c, 4))
  return DQUOTS_BYTES + math.max(mapping, freeing, is_new and refcount_update(c, 2) or 0)
end

local function quota_alloc(c)
  return write(c) + buffers(1, c.block - 1)
end

local function attr_set(c)
  return DQUOTS_BYTES + inodes(c, 1) + buffers(1, c.sector) + buffers(DA_MAX_DEPTH, c.block)
end

local function attr_remove(c)
  return DQUOTS_BYTES + math.max(
    inodes(c, 1) + buffers(DA_MAX_DEPTH, c.block) + c.max_levels.attr * c.block
      + buffers(c.max_levels.data, 0),
    buffers(5, c.sector) + allocfree(c, 2))
end

-- A change of `inode_count` inodes and `dir_count` directories, or the freeing that may follow, or
-- a change of the inode's parent pointer of `attr_bytes`.
local function directory_change(c, inode_count, dir_count, sectors, frees, attr_bytes)
  return math.max(
    inodes(c, inode_count) + buffers(dir_count * c.dir_op_blocks, c.block),
    buffers(sectors, c.sector) + allocfree(c, frees), c.parent and attr_bytes or 0)
end

local function create_alloc(c)
  return buffers(2, c.sector) + c.sector + allocfree(c, 1) + inode_tree(c) + free_inode_tree(c)
end

local function create(c)
  local modify = inodes(c, 2) + buffers(1, c.sector) + c.block
    + buffers(c.dir_op_blocks, c.block) + free_inode_tree(c)
  return DQUOTS_BYTES + (c.parent and PARENT_LINK_BYTES or 0)
    + math.max(create_alloc(c), modify, c.parent and attr_set(c) or 0)
end

local function inode_free(c)
  return DQUOTS_BYTES + inodes(c, 1) + buffers(3, c.sector) + unlinked_remove(c)
    + allocfree(c, 1) + buffers(c.chunk_blocks, 0) + inode_tree(c) + free_inode_tree(c)
end

local function add_attr_fork(c)
  return DQUOTS_BYTES + inodes(c, 1) + buffers(2, c.sector) + buffers(1, c.dir_block)
    + buffers(c.dir_splits + 1, c.block) + allocfree(c, 1)
end

local function attr_invalidate(c)
  return math.max(
    inodes(c, 1) + buffers(c.max_levels.attr, c.block),
    buffers(9, c.sector) + allocfree(c, 4))
end

local function attr_set_per_block(c)
  return buffers(1, c.sector) + buffers(c.max_levels.attr, c.block)
end

-- The transactions that can be the largest, in the reference's order (the first of equals wins, and
-- with it its repeat count). `count` is how often one operation may roll. Left out are those that
-- are smaller than another of the list for every geometry: inode and superblock touch-ups, growing.
local function transactions(c)
  -- One more roll for each tree that is updated apart.
  local new_count = 2 + (c.reflink and 1 or 0) + (c.rmapbt and 1 or 0)
    + ((c.reflink or c.rmapbt) and 1 or 0)
  local write_count = c.parent and new_count or c.reflink and 8 or 2
  local link_bytes, rename_bytes, attr_count = 0, 0, 0
  if c.parent then
    link_bytes, rename_bytes, attr_count = PARENT_LINK_BYTES, PARENT_RENAME_BYTES, 3
  end
  local set_bytes, remove_bytes = attr_set(c), attr_remove(c)
  return {
    { name = "write", bytes = write(c), count = write_count },
    { name = "itruncate", bytes = truncate(c, c.parent), count = write_count },
    { name = "rename", count = 2 + attr_count, bytes = DQUOTS_BYTES + rename_bytes
      + directory_change(c, 5, 2, 7, 3, math.max(set_bytes, remove_bytes)) },
    { name = "link", count = 2 + attr_count, bytes = DQUOTS_BYTES + unlinked_remove(c)
      + link_bytes + directory_change(c, 2, 1, 3, 1, set_bytes) },
    { name = "remove", count = 2 + attr_count, bytes = DQUOTS_BYTES + unlinked_add(c)
      + link_bytes + directory_change(c, 2, 1, 4, 2, remove_bytes) },
    { name = "symlink", bytes = create(c) + buffers(1, SYMLINK_MAX_BYTES), count = 3 + attr_count },
    { name = "create", bytes = create(c), count = 2 + attr_count },
    { name = "create_tmpfile", count = 2,
      bytes = DQUOTS_BYTES + create_alloc(c) + unlinked_add(c) },
    { name = "mkdir", bytes = create(c), count = 3 + attr_count },
    { name = "ifree", bytes = inode_free(c), count = 2 },
    { name = "addafork", bytes = add_attr_fork(c), count = 2 },
    { name = "attrinval", bytes = attr_invalidate(c), count = 1 },
    { name = "attrsetm", bytes = set_bytes, count = 3 },
    { name = "attrrm", bytes = remove_bytes, count = 3 },
    { name = "qm_dqalloc", bytes = quota_alloc(c), count = write_count },
    c.has_atomic_writes and { name = "atomic_ioend", bytes = truncate(c, true), count = new_count }
      or nil,
  }
end

-- Setting the largest attribute value that is still logged. Without parent pointers the reference
-- adds its size in bytes where blocks are meant, so the extent part is generous.
local function attr_set_largest(c)
  local value_bytes = (c.block >> 1) + (c.block >> 2) - MAX_NAME_BYTES - 1
  local function extent_splits(extents)
    return levels.ceil_div(extents, c.contiguous_extents) * (c.max_levels.attr - 1)
  end
  local value_blocks = levels.ceil_div(value_bytes, c.block)
  local blocks = DA_MAX_DEPTH + DA_MAX_DEPTH * extent_splits(1) + value_blocks
    + extent_splits(c.parent and value_blocks or value_bytes)
  return attr_set(c) + attr_set_per_block(c) * blocks
end

---Return the transaction that decides a geometry's minimum log size.
---@param g brim.xfs.Geometry (partially filled is enough, see min_log_blocks)
---@return {name: string, bytes: integer, count: integer} transaction `bytes` for each of `count`
function M.largest_transaction(g)
  local max_levels = levels.max_levels(g)
  local attr_bytes = attr_set_largest(context(g, max_levels))
  if g.rmapbt and g.reflink and not g.parent then
    max_levels.rmap = OLD_RMAP_LEVELS
  end
  local c = context(g, max_levels)
  local largest, largest_bytes = nil, 0
  for _, transaction in ipairs(transactions(c)) do
    local bytes = transaction.bytes * transaction.count
    if bytes > largest_bytes then
      largest, largest_bytes = transaction, bytes
    end
  end
  if attr_bytes > largest_bytes then
    largest = { name = "attrset", bytes = attr_bytes, count = 3 }
  end
  return largest
end

---Return the log space one transaction of `bytes` takes, with record headers and padding.
---@param bytes integer the transaction's reservation
---@param log_stripe_unit_bytes integer as in the superblock; 1 is none
---@return integer bytes
function M.unit_bytes(bytes, log_stripe_unit_bytes)
  local room_bytes = RECORD_MAX_BYTES - RECORD_HEADER_BYTES
  local unit = bytes + 2 * OP_HEADER_BYTES + TRANS_HEADER_BYTES
  local records = levels.ceil_div(unit, room_bytes)
  unit = unit + OP_HEADER_BYTES * records
  while levels.ceil_div(unit, room_bytes) > records do
    unit = unit + OP_HEADER_BYTES
    records = records + 1
  end
  unit = unit + RECORD_HEADER_BYTES * (records + 1)
  local pad_bytes = log_stripe_unit_bytes > 1 and log_stripe_unit_bytes or BASIC_BLOCK_BYTES
  return unit + 2 * pad_bytes
end

---Compute the smallest log a geometry may have, in filesystem blocks, before mkfs's own floors.
---Needs block_bytes, block_log2, sector_bytes, inode_bytes, inodes_per_block_log2, ag_blocks,
---ag_blocks_log2, dir_block_bytes, inode_align_blocks, log_stripe_unit_bytes and the features
---finobt, rmapbt, reflink, nrext64, parent.
---@param g brim.xfs.Geometry (partially filled is enough)
---@return integer blocks
function M.min_log_blocks(g)
  local largest = M.largest_transaction(g)
  local unit = M.unit_bytes(largest.bytes, g.log_stripe_unit_bytes) * largest.count
  local sectors = levels.ceil_div(unit, BASIC_BLOCK_BYTES)
  if g.log_stripe_unit_bytes > 1 then
    local unit_sectors = levels.ceil_div(g.log_stripe_unit_bytes, BASIC_BLOCK_BYTES)
    sectors = levels.ceil_div(sectors, unit_sectors) * unit_sectors + 2 * unit_sectors
  else
    -- The reference adds 2 x 512 here as if sectors were bytes; logs are sized by it.
    sectors = sectors + 2 * BASIC_BLOCK_BYTES
  end
  local block_sectors = 1 << (g.block_log2 - BASIC_BLOCK_LOG2)
  return levels.ceil_div(sectors * LOG_FACTOR, block_sectors)
end

return M
