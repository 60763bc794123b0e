-- brim.xfs.space: what a freshly made group holds: its free extents, its free list, the owners of the
-- rest. Pure arithmetic on a geometry; called by format. All numbers are blocks within the group.
local ondisk = require "brim.xfs.ondisk"

local M = {}

local OWNER <const> = ondisk.OWNER

---@class brim.xfs.Extent
---@field start integer
---@field blocks integer

---@class brim.xfs.Space
---@field length_blocks integer
---@field free brim.xfs.Extent[] by block
---@field free_blocks integer
---@field longest_blocks integer
---@field agfl integer[] blocks on the free list
---@field owners { start: integer, blocks: integer, owner: integer }[] by block

-- Takes [start, start+blocks) out of the free extents.
local function carve(free, start, blocks)
  for i, e in ipairs(free) do
    local behind = e.start + e.blocks - (start + blocks)
    if start >= e.start and behind >= 0 then
      e.blocks = start - e.start
      if behind > 0 then
        table.insert(free, i + 1, { start = start + blocks, blocks = behind })
      end
      if e.blocks == 0 then
        table.remove(free, i)
      end
      return
    end
  end
  error(("blocks %d .. %d are not free"):format(start, start + blocks - 1))
end

-- mkfs.xfs keeps the two extents beside a log in block order, also where its tree by size should not
-- have them so; its allocator then takes the first that is long enough, or the last one's rest.
local function choose(free, blocks)
  for _, e in ipairs(free) do
    if e.blocks >= blocks then
      return e
    end
  end
  return free[#free]
end

local function fill_free_list(free, blocks)
  local list = {}
  while blocks > 0 do
    local e = choose(free, blocks)
    local start, n = e.start, math.min(e.blocks, blocks)
    carve(free, start, n)
    for b = start, start + n - 1 do
      list[#list + 1] = b
    end
    blocks = blocks - n
  end
  return list
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
  local free = { { start = g.prealloc_blocks, blocks = length - g.prealloc_blocks } }
  local owners = static_owners(g)
  local agfl_count = g.agfl_count
  if number == g.log_ag then
    carve(free, g.log_agbno, g.log_blocks)
    own(owners, g.log_agbno, g.log_blocks, OWNER.log)
    agfl_count = g.log_ag_agfl_count
  end
  local agfl = fill_free_list(free, agfl_count)
  for _, block in ipairs(agfl) do
    own(owners, block, 1, OWNER.ag)
  end
  if number == 0 then
    carve(free, g.root_agbno, g.inode_chunk_blocks)
    own(owners, g.root_agbno, g.inode_chunk_blocks, OWNER.inodes)
  end
  local free_blocks, longest = 0, 0
  for _, e in ipairs(free) do
    free_blocks = free_blocks + e.blocks
    longest = math.max(longest, e.blocks)
  end
  return { length_blocks = length, free = free, free_blocks = free_blocks, longest_blocks = longest,
    agfl = agfl, owners = merge(owners) }
end

return M
