-- brim.xfs.check_fresh: the fast path: groups that hold exactly what mkfs wrote. The template is
-- the plan of a fresh group; all groups are compared with it at full queue depth, and the trees of
-- those that differ are to be walked. Called by check.
local group = require "brim.xfs.group"
local layout = require "brim.layout"
local levels = require "brim.xfs.levels"
local plan = require "brim.plan"
local space = require "brim.xfs.space"

local M = {}

local MOST <const> = 65536 -- differing groups known at once; then by as many groups

---As much of a geometry as a usual group needs, from the superblock.
---@param c brim.xfs.Checker
---@return table g
function M.geometry(c)
  local sb, has = c.sb, c.has
  local g = { block_bytes = sb.blocksize, block_log2 = sb.blocklog, sector_bytes = sb.sectsize,
    ag_blocks = sb.agblocks, ag_bytes = sb.agblocks << sb.blocklog, ag_blocks_log2 = sb.agblklog,
    ag_count = sb.agcount, last_ag_blocks = c.address.last_ag_blocks, log_ag = -1,
    inodes_per_block_log2 = sb.inopblog, uuid = c.uuid, finobt = has.finobt, rmapbt = has.rmapbt,
    reflink = has.reflink, inobtcount = has.inobtcount, sparse = has.sparse,
    nrext64 = has.nrext64 }
  local at = (3 * sb.sectsize >> sb.blocklog) + 1
  for _, name in ipairs { "bno", "cnt", "inobt", "finobt", "rmapbt", "refcountbt" } do
    local wanted = name == "finobt" and has.finobt or name == "rmapbt" and has.rmapbt
      or name == "refcountbt" and has.reflink or name == "bno" or name == "cnt" or name == "inobt"
    if wanted then
      g[name .. "_block"], at = at, at + 1
    end
  end
  g.prealloc_blocks = at
  -- Releases differ; damage must not make it absurd.
  local most = levels.free_list_blocks(g)
  g.agfl_count = math.ult(c.free_list_blocks or most, most) and c.free_list_blocks or most
  return g
end

-- Without the zeros behind the headers where the target has something else there.
local function without_gap(list)
  local out = {}
  for _, placed in ipairs(list) do
    if placed.label ~= "gap" then
      out[#out + 1] = placed
    end
  end
  return out
end

local function make_plan(c, g, usual, first, count)
  local p = plan.new { name = "fresh groups", group_bytes = g.ag_bytes,
    size_bytes = g.ag_bytes * (g.ag_count - 1) }
  p:each(count, function(ag)
    local headers = group.headers(g, ag, usual, false)
    return layout.bytes(0, c.copy, "sb"), c.has_gap and without_gap(headers) or headers
  end, { first = first })
  return p:seal()
end

-- The groups that differ; nil where they are too many to know, or why it was stopped. What the
-- comparison found of each is let go: thousands are walked while the list is held.
local function compare(c, g, usual, first, count)
  local o = { max_mismatches = MOST }
  for name, v in pairs(c.run) do
    o[name] = v
  end
  local result, err = make_plan(c, g, usual, first, count):verify(c.device, o)
  if not result then
    error(err, 0)
  end
  if result.stopped or result.mismatch_count > #result.mismatches then
    return nil, result.stopped
  end
  local list = {}
  for _, m in ipairs(result.mismatches) do
    if list[#list] ~= m.group then
      list[#list + 1] = m.group
    end
  end
  return list
end

---Compare groups with what mkfs wrote; calls `differ` with lists of those that are otherwise, in
---order. Raises errors of reading.
---@param c brim.xfs.Checker
---@param differ fun(groups: integer[])
---@return integer fresh groups
---@return integer free_blocks of each fresh group, its free list included
function M.run(c, differ)
  local g = M.geometry(c)
  local usual = space.of(g)
  local first, last = 1, g.ag_count - 2
  local fresh = 0
  local count = last - first + 1
  while first <= last do
    local list, stopped = compare(c, g, usual, first, count)
    if stopped then
      c.stopped = stopped
      return fresh, 0
    elseif not list then
      count = MOST
    else
      fresh = fresh + count - #list
      differ(list)
      first = first + count
    end
    count = math.min(count, last - first + 1)
  end
  return fresh, usual.free_blocks + #usual.agfl
end

return M
