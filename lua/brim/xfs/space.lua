-- brim.xfs.space: what a freshly made group holds: its free extents, its free list, the owners of
-- the rest. Pure arithmetic on a geometry; called by format. All numbers are blocks within the
-- group.
local ondisk = require "brim.xfs.ondisk"

local M = {}

local OWNER <const> = ondisk.OWNER

---@class brim.xfs.Extent never changed once made
---@field start integer
---@field blocks integer

---@class brim.xfs.Leaf a free space tree's records in order: `count` of them, and behind these what
---mkfs.xfs leaves in the block: its btree code shifts records down and clears nothing
---@field count integer
---@field [integer] brim.xfs.Extent

---@class brim.xfs.Space
---@field length_blocks integer
---@field by_block brim.xfs.Leaf free extents
---@field by_size brim.xfs.Leaf the same by size
---@field free_blocks integer
---@field longest_blocks integer
---@field agfl integer[] blocks on the free list
---@field owners { start: integer, blocks: integer, owner: integer }[] by block

local function extent(start, blocks)
  return { start = start, blocks = blocks }
end

local function leaf_of(extents)
  return table.move(extents, 1, #extents, 1, { count = #extents })
end

local function index_of(leaf, e)
  for i = 1, leaf.count do
    if leaf[i] == e then
      return i
    end
  end
end

local function remove(leaf, e)
  table.move(leaf, index_of(leaf, e) + 1, leaf.count, index_of(leaf, e))
  leaf.count = leaf.count - 1
end

local function insert(leaf, e, precedes)
  local at = 1
  while at <= leaf.count and precedes(leaf[at], e) do
    at = at + 1
  end
  table.move(leaf, at, leaf.count, at + 1)
  leaf[at] = e
  leaf.count = leaf.count + 1
end

local function is_earlier(a, b)
  return a.start < b.start
end

local function is_smaller(a, b)
  return a.blocks < b.blocks or a.blocks == b.blocks and a.start < b.start
end

-- Takes [start, start+blocks) out of a free extent, step by step as mkfs.xfs does.
local function take(space, e, start, blocks)
  local rest = {}
  for _, piece in ipairs { extent(e.start, start - e.start),
    extent(start + blocks, e.start + e.blocks - start - blocks) } do
    rest[#rest + 1] = piece.blocks > 0 and piece or nil
  end
  remove(space.by_size, e)
  for _, piece in ipairs(rest) do
    insert(space.by_size, piece, is_smaller)
  end
  if #rest == 0 then
    remove(space.by_block, e)
    return
  end
  space.by_block[index_of(space.by_block, e)] = rest[1]
  if rest[2] then
    insert(space.by_block, rest[2], is_earlier)
  end
end

local function take_at(space, start, blocks)
  for i = 1, space.by_block.count do
    local e = space.by_block[i]
    if start >= e.start and start + blocks <= e.start + e.blocks then
      return take(space, e, start, blocks)
    end
  end
  error(("blocks %d .. %d are not free"):format(start, start + blocks - 1))
end

-- mkfs.xfs keeps the two extents beside a log in block order, also where its tree by size should
-- not have them so; its allocator then takes the first that is long enough, or the last one's rest.
local function choose(by_size, blocks)
  for i = 1, by_size.count do
    if by_size[i].blocks >= blocks then
      return by_size[i]
    end
  end
  return by_size[by_size.count]
end

local function fill_free_list(space, blocks)
  local list = {}
  while blocks > 0 do
    local e = choose(space.by_size, blocks)
    local start, n = e.start, math.min(e.blocks, blocks)
    take(space, e, start, n)
    for b = start, start + n - 1 do
      list[#list + 1] = b
    end
    blocks = blocks - n
  end
  return list
end

-- Both trees before anything is allocated, and the log's group beside it.
local function start_trees(g, number, length)
  local first = g.prealloc_blocks
  local leaf = leaf_of { extent(first, length - first) }
  if number == g.log_ag then
    local behind = g.log_agbno + g.log_blocks
    leaf = leaf_of { extent(first, g.log_agbno - first), extent(behind, length - behind) }
    if leaf[1].blocks == 0 then
      leaf = leaf_of { leaf[2] }
    end
    if leaf[leaf.count].blocks == 0 then
      leaf.count = leaf.count - 1
    end
  end
  return leaf, table.move(leaf, 1, #leaf, 1, { count = leaf.count })
end

-- Adds an owner's blocks, merging with the one before where they touch.
local function own(owners, start, blocks, owner)
  owners[#owners + 1] = { start = start, blocks = blocks, owner = owner }
end

local function merge(owners)
  table.sort(owners, function(a, b)
    return a.start < b.start
  end)
  local merged = {}
  for _, o in ipairs(owners) do
    local last = merged[#merged]
    if last and last.owner == o.owner and last.start + last.blocks == o.start then
      last.blocks = last.blocks + o.blocks
    else
      merged[#merged + 1] = o
    end
  end
  return merged
end

-- The static blocks, which every group has at its start.
local function static_owners(g)
  local owners = {}
  own(owners, 0, g.bno_block, OWNER.fs)
  own(owners, g.bno_block, 2, OWNER.ag)
  own(owners, g.inobt_block, g.finobt and 2 or 1, OWNER.inobt)
  if g.rmapbt then
    own(owners, g.rmapbt_block, 1, OWNER.ag)
  end
  if g.reflink then
    own(owners, g.refcountbt_block, 1, OWNER.refcount)
  end
  return owners
end

---What group `number` holds; nil asks for one without the log, the root inodes or a short length.
---@param g brim.xfs.Geometry
---@param number? integer
---@return brim.xfs.Space
function M.of(g, number)
  local length = number == g.ag_count - 1 and g.last_ag_blocks or g.ag_blocks
  local space = { length_blocks = length, free_blocks = 0, longest_blocks = 0 }
  local owners = static_owners(g)
  space.by_block, space.by_size = start_trees(g, number, length)
  if number == g.log_ag then
    own(owners, g.log_agbno, g.log_blocks, OWNER.log)
  end
  space.agfl = fill_free_list(space, number == g.log_ag and g.log_ag_agfl_count or g.agfl_count)
  if space.by_size.count == 2 and is_smaller(space.by_size[2], space.by_size[1]) then
    -- Nothing was taken, and mkfs.xfs leaves the block order; xfs_repair objects.
    space.by_size[1], space.by_size[2] = space.by_size[2], space.by_size[1]
  end
  for _, block in ipairs(space.agfl) do
    own(owners, block, 1, OWNER.ag)
  end
  if number == 0 then
    take_at(space, g.root_agbno, g.inode_chunk_blocks)
    own(owners, g.root_agbno, g.inode_chunk_blocks, OWNER.inodes)
  end
  for i = 1, space.by_block.count do
    space.free_blocks = space.free_blocks + space.by_block[i].blocks
    space.longest_blocks = math.max(space.longest_blocks, space.by_block[i].blocks)
  end
  space.owners = merge(owners)
  return space
end

return M
