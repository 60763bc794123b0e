-- brim.xfs.check_space: what the trees of a walked group say of its blocks, compared as a whole:
-- the two free space trees, the headers' counters, the free list, the owners of the reverse map,
-- the shared blocks; no block is claimed twice. Called by check once a window of groups was walked.
local check_inodes = require "brim.xfs.check_inodes"
local ondisk = require "brim.xfs.ondisk"
local walk = require "brim.walk"

local M = {}

local OWNER <const> = ondisk.OWNER
local COW <const> = 1 << 31 -- of a start in the refcount tree: an unfinished copy on write
local MAX_SHARE <const> = 0xffffffff

local function whole(c, g, tree)
  local job = g.jobs[tree]
  return job ~= nil and c.walk:job(job).is_complete
end

local function where(start, count)
  return count > 1 and ("blocks %d to %d"):format(start, start + count - 1)
    or ("block %d"):format(start)
end

-- Extents of a tree's records; nil where they cannot be relied upon.
local function records(c, g, tree, tag)
  if not whole(c, g, tree) then
    return nil
  end
  local list = c.walk:extents(g.jobs[tree], "startblock", "blockcount", tag)
  local bad = tree ~= "refcountbt" and list:outside(tree == "rmapbt" and 0 or c.first_block,
    g.length)
  if bad then
    local start, count = list:get(bad)
    c.report:add { group = g.ag, structure = tree, field = ("record %d"):format(bad - 1),
      why = ("%s (%d of them) is out of the group's %d"):format(where(start, count), count,
        g.length) }
    return nil
  end
  return list
end

local function overlap(c, g, tree, list)
  local k, other = list:overlap()
  if k then
    local start, count = list:get(k)
    local start2, count2 = list:get(other)
    c.report:add { group = g.ag, structure = tree, field = ("record %d"):format(k - 1),
      why = ("%s overlap %s"):format(where(start, count), where(start2, count2)) }
  end
  return k
end

-- Two merged lists must be the same; says who has what more.
local function same(c, g, structure, field, want, have, words)
  local which, start, count = want:only(have)
  if which then
    c.report:add { group = g.ag, structure = structure, field = field,
      why = ("%s %s"):format(where(start, count), words[which]) }
  end
end

-- ------------------------------------------------------------------ free space

local function check_free(c, g)
  local bno, cnt = records(c, g, "bnobt"), records(c, g, "cntbt")
  if bno then
    bno:sort()
    overlap(c, g, "bnobt", bno)
    c.report:expect(g.ag, "agf", "freeblks", bno:sum(), g.agf.freeblks)
    c.report:expect(g.ag, "agf", "longest", bno:longest(), g.agf.longest)
  end
  if cnt then
    cnt:sort()
    overlap(c, g, "cntbt", cnt)
    c.report:expect(g.ag, "agf", "freeblks", cnt:sum(), g.agf.freeblks)
    c.report:expect(g.ag, "agf", "longest", cnt:longest(), g.agf.longest)
  end
  local k = bno and cnt and bno:differ(cnt)
  if k then
    local start, count = bno:get(k)
    local start2, count2 = cnt:get(k)
    c.report:add { group = g.ag, structure = "cntbt", field = "records",
      why = ("the trees differ: by block %s, by size %s"):format(
        start and where(start, count) or "no more", start2 and where(start2, count2)
        or "no more") }
  end
  return bno or cnt
end

local function blocks(c, g, ...)
  local n = 0
  for _, tree in ipairs { ... } do
    if c.kinds[tree] then
      if not whole(c, g, tree) then
        return nil
      end
      n = n + c.walk:job(g.jobs[tree]).blocks
    end
  end
  return n
end

local function expect_blocks(c, g, header, field, less, ...)
  local n = blocks(c, g, ...)
  if n and g[header] then
    c.report:expect(g.ag, header, field, n - less, g[header][field])
  end
  return n
end

local function check_counters(c, g)
  expect_blocks(c, g, "agf", "btreeblks", c.kinds.rmapbt and 3 or 2, "bnobt", "cntbt", "rmapbt")
  if c.kinds.rmapbt then
    expect_blocks(c, g, "agf", "rmap_blocks", 0, "rmapbt")
  end
  if c.kinds.refcountbt then
    expect_blocks(c, g, "agf", "refcount_blocks", 0, "refcountbt")
  end
  if c.has.inobtcount then
    expect_blocks(c, g, "agi", "iblocks", 0, "inobt")
    if c.kinds.finobt then
      expect_blocks(c, g, "agi", "fblocks", 0, "finobt")
    end
  end
end

-- ---------------------------------------------------------------------- claims

local function tree_blocks(c, g, ...)
  local list = walk.extents()
  for _, tree in ipairs { ... } do
    if c.kinds[tree] then
      if not whole(c, g, tree) then
        return nil
      end
      list:append(c.walk:blocks(g.jobs[tree]))
    end
  end
  return list
end

local function headers(c)
  return walk.extents():add(0, c.first_block)
end

local function free_list(g)
  if not g.free_list then
    return nil
  end
  local list = walk.extents()
  for _, block in ipairs(g.free_list) do
    list:add(block, 1)
  end
  return list
end

local function log_of(c, g)
  local list = walk.extents()
  if c.log and c.log.ag == g.ag then
    list:add(c.log.agbno, c.sb.logblocks)
  end
  return list
end

-- Nobody may claim what another does. All that is no file's, nil where some of it is not known.
local function check_claims(c, g, free, shared, cow)
  local claims, names, is_known = walk.extents(), {}, true
  local function claim(name, list)
    if list then
      names[#names + 1] = name
      claims:append(list, #names)
    else
      is_known = false
    end
  end
  claim("the headers", headers(c))
  claim("the log", log_of(c, g))
  claim("the free list", free_list(g))
  for name in pairs(c.kinds) do
    claim(name, tree_blocks(c, g, name))
  end
  claim("inodes", g.chunks)
  claim("free space", free)
  if c.kinds.refcountbt then
    claim("unfinished copies", cow)
  end
  local others = is_known and c.reads_files and not c.kinds.rmapbt
    and walk.extents():append(claims):union() or nil
  if shared then
    claim("shared data", shared)
  end
  claims:sort()
  local k, other = claims:overlap()
  if k then
    local start, _, tag = claims:get(k)
    local _, _, tag2 = claims:get(other)
    c.report:add { group = g.ag, structure = "blocks", field = "claims",
      why = ("block %d is claimed by %s and by %s"):format(start, names[tag2], names[tag]) }
  end
  return others
end

-- --------------------------------------------------------------- shared blocks

-- The refcount tree: unfinished copies have a bit of their own; others are shared by at least two.
local function check_shared(c, g)
  local all = records(c, g, "refcountbt", "refcount")
  if not all then
    return nil
  end
  local data, cow = all:starting(0, COW), all:starting(COW, 2 * COW)
  for _, list in ipairs { data, cow } do
    local bad = list:outside(c.first_block, g.length)
    if bad then
      local start, count = list:get(bad)
      c.report:add { group = g.ag, structure = "refcountbt", field = "record",
        why = ("%s (%d of them) is out of the group's %d"):format(where(start, count), count,
          g.length) }
      return nil
    end
  end
  local few = data:tagged(0, 1)
  if #few > 0 then
    local start, _, tag = few:get(1)
    c.report:add { group = g.ag, structure = "refcountbt",
      field = ("refcount of block %d"):format(start), expected = 2, found = tag, why = "at least" }
  end
  if #cow > 0 then
    local start, count = cow:get(1)
    c.report:add { group = g.ag, structure = "refcountbt", field = "record",
      why = ("%s are left over from a copy on write"):format(where(start, count)) }
  end
  local both = walk.extents():append(data, 0):append(cow, 0):sort()
  overlap(c, g, "refcountbt", both)
  return data, cow
end

-- ----------------------------------------------------------------- reverse map

local WORDS <const> = { "should have this owner and have not",
  "have this owner and should not" }

-- The blocks of each owner that is no inode, by what the other structures say.
local function owners(c, g, cow)
  local ag, list = tree_blocks(c, g, "bnobt", "cntbt", "rmapbt"), free_list(g)
  return {
    { "fs", headers(c) }, { "log", log_of(c, g) },
    { "ag", ag and list and ag:append(list) },
    { "inobt", tree_blocks(c, g, "inobt", "finobt") },
    { "inodes", g.chunks and walk.extents():append(g.chunks) },
    { "refcount", tree_blocks(c, g, "refcountbt") },
    { "cow", not c.kinds.refcountbt and walk.extents() or cow },
  }
end

local function check_owners(c, g, map, cow)
  local special = walk.extents()
  for _, pair in ipairs(owners(c, g, cow)) do
    local id = OWNER[pair[1]]
    local found = map:tagged(id, id):union()
    special:append(found, 1)
    if pair[2] then
      same(c, g, "rmapbt", "owner " .. pair[1], pair[2]:union(), found, WORDS)
    end
  end
  return special
end

-- Data: never where anything else is; shared as the refcount tree has it.
local function check_data(c, g, map, special, shared)
  local data = map:tagged(0, math.maxinteger)
  g.file_records = #data
  if #special + #data < #map then
    local odd = map:tagged(math.mininteger, OWNER.cow - 1)
    local start, _, tag = odd:get(1)
    if start then
      c.report:add { group = g.ag, structure = "rmapbt", field = "owner",
        why = ("block %d has the unknown owner %d"):format(start, tag) }
    end
  end
  data:sort()
  if not c.kinds.refcountbt then
    overlap(c, g, "rmapbt", data)
  elseif shared then
    local deep = data:depth(2)
    same(c, g, "refcountbt", "shared by", deep:join(), shared:tagged(2, MAX_SHARE):join(),
      { "are shared, or by another number, than the reverse map says",
        "are not shared by as many as the reverse map says" })
  end
  local all = walk.extents():append(special):append(data:union(), 2):sort()
  overlap(c, g, "rmapbt", all)
end

local function check_map(c, g, free, shared, cow)
  local map = records(c, g, "rmapbt", "owner")
  if not map then
    return
  end
  local special = check_owners(c, g, map, cow)
  check_data(c, g, map, special, shared)
  if free then
    local covered = walk.extents():append(map):union()
    local used = walk.extents():append(free):union():complement(0, g.length)
    same(c, g, "rmapbt", "records", used:union(), covered,
      { "are in use and have no owner", "are free and have an owner" })
  end
end

-- ------------------------------------------------------------------------ group

-- The group's part of the superblock's counters; false where it is not known.
local function count_free(c, g, free)
  local trees = blocks(c, g, "bnobt", "cntbt", "rmapbt")
  if not free or not trees or not g.free_list then
    return false
  end
  c.fdblocks = c.fdblocks + free:sum() + #g.free_list + trees - (c.kinds.rmapbt and 3 or 2)
  return true
end

---Compare what the structures of a walked group say.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
---@return brim.Extents? shared what its refcount tree says of data
---@return brim.Extents? claims all blocks that are no file's, where inodes will be compared with it
function M.check(c, g)
  local free, shared, cow
  local counted = check_inodes.check(c, g, function(tree)
    return whole(c, g, tree)
  end)
  if g.agf then
    free = check_free(c, g)
    if c.kinds.refcountbt then
      shared, cow = check_shared(c, g)
    end
  end
  check_counters(c, g)
  local claims = check_claims(c, g, free, shared, cow)
  if c.kinds.rmapbt and g.agf then
    check_map(c, g, free, shared, cow)
  end
  if not count_free(c, g, free) or not counted then
    c.is_counted = false
  end
  return shared, claims
end

return M
