-- brim.xfs.group: the headers and tree roots of one group, as placed structures. Called by format,
-- with a number or with the symbolic index: nothing here may ask which group it is; the space says
-- what differs.
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"

local M = {}

local SECTOR_LOG2 <const> = 9 -- "daddr" unit of blkno

-- Free extents, and behind these what mkfs.xfs leaves in the block.
local function free_records(leaf)
  local recs = { count = leaf.count }
  for i, e in ipairs(leaf) do
    recs[i] = { startblock = e.start, blockcount = e.blocks }
  end
  return recs
end

-- The root chunk's records: 64 inodes each, the first three of the first one in use.
local function inode_records(g)
  local recs = {}
  for n = 0, g.inode_chunk_inodes // 64 - 1 do
    local free = n == 0 and 61 or 64
    recs[n + 1] = { startino = g.root_ino + 64 * n, freecount = free,
      free = n == 0 and ~7 or -1, count = g.sparse and 64 or nil }
  end
  return recs
end

local function owner_records(space)
  local recs = {}
  for i, o in ipairs(space.owners) do
    recs[i] = { startblock = o.start, blockcount = o.blocks, owner = o.owner }
  end
  return recs
end

-- The trees a geometry has, in block order: layout, block of the root, which records it holds.
local function trees(g)
  local list = {}
  local function add(tree, block, kind)
    if block then
      list[#list + 1] = { layout = tree, block = block, kind = kind }
    end
  end
  add(ondisk.bnobt, g.bno_block, "free")
  add(ondisk.cntbt, g.cnt_block, "free_by_size")
  add(g.sparse and ondisk.inobt or ondisk.inobt_full, g.inobt_block, "inodes")
  add(g.sparse and ondisk.finobt or ondisk.finobt_full, g.finobt_block, "inodes")
  add(ondisk.rmapbt, g.rmapbt_block, "owners")
  add(ondisk.refcountbt, g.refcountbt_block, "shared")
  return list
end

-- A root block with what every block of a tree says of itself.
local function root(g, ag, tree, values)
  values.owner, values.uuid = ag, g.uuid
  values.blkno = ag * (g.ag_bytes >> SECTOR_LOG2) + (tree.block << (g.block_log2 - SECTOR_LOG2))
  return tree.layout:at(tree.block << g.block_log2, g.block_bytes)(values)
end

local function tree_records(g, space, has_inodes)
  return { free = free_records(space.by_block), free_by_size = free_records(space.by_size),
    inodes = has_inodes and inode_records(g) or {}, owners = owner_records(space), shared = {} }
end

local function agf(g, ag, space)
  return ondisk.agf:at(g.sector_bytes, g.sector_bytes) { seqno = ag, length = space.length_blocks,
    bno_root = g.bno_block, cnt_root = g.cnt_block, rmap_root = g.rmapbt_block,
    bno_level = 1, cnt_level = 1, rmap_level = g.rmapbt and 1 or nil,
    flfirst = 1, fllast = #space.agfl, flcount = #space.agfl,
    freeblks = space.free_blocks, longest = space.longest_blocks, uuid = g.uuid,
    rmap_blocks = g.rmapbt and 1 or nil, refcount_blocks = g.reflink and 1 or nil,
    refcount_root = g.refcountbt_block, refcount_level = g.reflink and 1 or nil }
end

local function agi(g, ag, space, has_inodes)
  return ondisk.agi:at(2 * g.sector_bytes, g.sector_bytes) { seqno = ag,
    length = space.length_blocks, root = g.inobt_block, level = 1, uuid = g.uuid,
    count = has_inodes and g.inode_chunk_inodes or nil,
    freecount = has_inodes and g.inode_chunk_inodes - 3 or nil,
    newino = has_inodes and g.root_ino or nil,
    free_root = g.finobt_block, free_level = g.finobt and 1 or nil,
    iblocks = g.inobtcount and 1 or nil, fblocks = g.inobtcount and g.finobt and 1 or nil }
end

local function agfl(g, ag, space)
  local bno = { ondisk.NULL_AG_BLOCK }
  for i, block in ipairs(space.agfl) do
    bno[i + 1] = block
  end
  return ondisk.agfl:at(3 * g.sector_bytes, g.sector_bytes) { seqno = ag, uuid = g.uuid, bno = bno }
end

---The headers and tree roots of a group but for its superblock, as one range of bytes.
---@param g brim.xfs.Geometry
---@param ag integer|brim.Index
---@param space brim.xfs.Space
---@param has_inodes boolean whether it holds the root inode chunk
---@return brim.Placed[]
function M.headers(g, ag, space, has_inodes)
  local list = { agf(g, ag, space), agi(g, ag, space, has_inodes), agfl(g, ag, space) }
  local gap_bytes = (g.bno_block << g.block_log2) - 4 * g.sector_bytes
  if gap_bytes > 0 then
    list[#list + 1] = layout.bytes(4 * g.sector_bytes, gap_bytes, "gap")
  end
  local kinds = tree_records(g, space, has_inodes)
  for _, tree in ipairs(trees(g)) do
    local recs = kinds[tree.kind]
    list[#list + 1] = root(g, ag, tree, { numrecs = recs.count or #recs, recs = recs })
  end
  return list
end

---What the headers and tree roots of any group say of themselves, whatever it holds: their magic
---numbers (the layouts' defaults), the group's number, their place.
---@param g brim.xfs.Geometry
---@param ag integer|brim.Index
---@return brim.Placed[]
function M.identities(g, ag)
  local sector = g.sector_bytes
  local list = { ondisk.sb:at(0, sector) { uuid = g.uuid },
    ondisk.agf:at(sector, sector) { seqno = ag, uuid = g.uuid },
    ondisk.agi:at(2 * sector, sector) { seqno = ag, uuid = g.uuid },
    ondisk.agfl:at(3 * sector, sector) { seqno = ag, uuid = g.uuid } }
  for _, tree in ipairs(trees(g)) do
    list[#list + 1] = root(g, ag, tree, {})
  end
  return list
end

return M
