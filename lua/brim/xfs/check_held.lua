-- brim.xfs.check_held: what files hold (the rows of check_files) against what the groups say: with
-- a reverse map, its records of inodes must be just these; without one, no two files hold a block
-- unless the refcount tree says so, and every block is either a file's or something else's. Called
-- by check once all inodes were read. Blocks are numbers within a group.
local core = require "brim.core"
local ondisk = require "brim.xfs.ondisk"
local walk = require "brim.walk"

local M = {}

local MAX_SHARE <const> = 0xffffffff
local MAX_INODE <const> = math.maxinteger -- special owners are past it, unsigned
local MOST <const> = 1000 -- differences told of a group
local WINDOW_BLOCKS <const> = 2048
local OFFSET_MASK <const> = (1 << 54) - 1
local FIELDS <const> = { "startblock", "blockcount", "owner", "offset" }

-- ------------------------------------------------------------------ while walking

---Keep what is needed of a walked group until all inodes have been read: nothing of one that has no
---room for files, as there may be millions.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
---@param shared? brim.Extents what its refcount tree says of data
---@param claims? brim.Extents all blocks that are no file's; nil: not known
function M.keep(c, g, shared, claims)
  if c.kinds.rmapbt then
    if not g.file_records then
      c.maps[g.ag] = false
    elseif g.file_records > 0 then
      -- At most 9 levels: one integer for both.
      c.maps[g.ag] = g.agf.rmap_root << 4 | g.agf.rmap_level
    end
    return
  end
  if not shared and c.kinds.refcountbt or shared and #shared > 0 then
    c.shared[g.ag] = shared or false
  end
  local room = claims and claims:complement(0, g.length)
  if not room or #room > 0 then
    c.room[g.ag] = room or false
  end
end

-- The groups of some tables and those that have rows, in order.
local function groups_of(c, ...)
  local list, seen, k = {}, {}, 1
  local function add(ag)
    if not seen[ag] then
      seen[ag] = true
      list[#list + 1] = ag
    end
  end
  for _, kept in ipairs { ... } do
    for ag in pairs(kept) do
      add(ag)
    end
  end
  while k <= #c.held do
    local ag = c.held:get(k) >> c.sb.agblklog
    add(ag)
    k = select(2, c.held:find(ag)) + 1
  end
  table.sort(list)
  return list
end

-- ------------------------------------------------------------------- reverse maps

local function range(start, count)
  return count > 1 and ("blocks %d to %d"):format(start, start + count - 1)
    or ("block %d"):format(start)
end

-- Where in its file a row is.
local function place(offset)
  local fork = offset & ondisk.RMAP_ATTR_FORK ~= 0 and "attributes" or "data"
  if offset & ondisk.RMAP_BMBT_BLOCK ~= 0 then
    return ("the extent tree of its %s"):format(fork)
  end
  return ("its %s at %d%s"):format(fork, offset & OFFSET_MASK,
    offset & ondisk.RMAP_UNWRITTEN ~= 0 and ", unwritten" or "")
end

local function add_difference(c, ag, which, start, count, owner, offset)
  start = start & (1 << c.sb.agblklog) - 1
  c.report:add { group = ag, structure = "rmapbt", field = ("owner %d"):format(owner),
    why = (which == 1 and "%s: in %s, and no record says so"
      or "%s: a record has it in %s, the inode has not"):format(range(start, count),
      place(offset)) }
end

-- The rows of one group against its records.
local function compare_map(c, ag, found)
  local i, i_last = c.held:find(ag)
  local j, told = 1, 0
  local which, start, count, owner, offset
  repeat
    which, i, j, start, count, owner, offset = c.held:differ(i, i_last, found, j, #found)
    if which and not c.bad_inodes[owner] then
      told = told + 1
      if told > MOST then
        c.report:add { group = ag, structure = "rmapbt", field = "owners",
          why = "more differences from the inodes" }
        return
      end
      add_difference(c, ag, which, start, count, owner, offset)
    end
  until not which
end

local function compare_window(c, list)
  local jobs = {}
  for i, ag in ipairs(list) do
    local root = c.maps[ag]
    jobs[i] = assert(c.walk:start(c.kinds.rmapbt, ag, root >> 4, root & 15, c.first_block,
      c.address:length(ag)))
  end
  local ok, err = c.walk:run()
  if not ok then
    error(err, 0)
  end
  for i, ag in ipairs(list) do
    if c.walk:job(jobs[i]).is_complete then
      local found = walk.table(c.sb.agblklog)
      c.walk:rows(jobs[i], found, FIELDS, ag << c.sb.agblklog, 0, MAX_INODE)
      compare_map(c, ag, found:sort())
    end
  end
  c.walk:reset()
  collectgarbage()
end

-- How many blocks the walk of a group's map may have, from the rows that it should hold.
local function weight(c, ag)
  local first, last = c.held:find(ag)
  return 1 + (last - first + 1) * 32 // c.sb.blocksize
end

local function compare_maps(c)
  local list, blocks = {}, 0
  for _, ag in ipairs(groups_of(c, c.maps)) do
    if core.interrupted() or not c.tick "owners" then
      c.stopped = "cancelled"
      return
    end
    if c.maps[ag] == nil then
      compare_map(c, ag, walk.table(c.sb.agblklog))
    elseif c.maps[ag] then
      if blocks > WINDOW_BLOCKS then
        compare_window(c, list)
        list, blocks = {}, 0
      end
      list[#list + 1], blocks = ag, blocks + weight(c, ag)
    end
  end
  compare_window(c, list)
end

-- ------------------------------------------------------------ without reverse maps

local function compare_shared(c, ag, held, shared)
  local which, start, count, tag = held:depth(2):join():only(shared:tagged(2, MAX_SHARE):join())
  if which then
    c.report:add { group = ag, structure = "refcountbt", field = "records",
      why = ("%s: %d files hold them by %s, not so by the other"):format(range(start, count),
        tag, which == 1 and "the inodes" or "this tree") }
  end
end

local function compare_doubles(c, ag, held)
  local k, other = held:overlap()
  if k then
    local start, _, ino = held:get(k)
    local _, _, ino2 = held:get(other)
    c.report:add { group = ag, structure = "inode", field = "extents",
      why = ("block %d is held by inode %d and by inode %d"):format(start, ino2, ino) }
  end
end

-- Files have just the blocks that nothing else of the group has.
local function compare_room(c, ag, held, room)
  local files = walk.extents():append(held):union()
  local which, start, count = files:only(room)
  if which then
    c.report:add { group = ag, structure = "blocks", field = "claims",
      why = (which == 1 and "%s: held by a file, and by the group as free or for itself"
      or "%s: nobody's, and not free"):format(range(start, count)) }
  end
end

local function compare_group(c, ag)
  local held = c.held:extents(ag, walk.extents()):sort()
  if not c.kinds.refcountbt then
    compare_doubles(c, ag, held)
  elseif c.shared[ag] ~= false then
    compare_shared(c, ag, held, c.shared[ag] or walk.extents())
  end
  if c.room[ag] ~= false then
    compare_room(c, ag, held, c.room[ag] or walk.extents())
  end
end

-- --------------------------------------------------------------------------- all

---Compare what files hold with what the groups say.
---@param c brim.xfs.Checker
function M.compare(c)
  if c.files_unknown or c.has_bad_inodes and not c.kinds.rmapbt then
    c.report:note "some inodes could not be read: who holds which blocks was not compared"
    return
  end
  c.held:merge(ondisk.RMAP_BMBT_BLOCK)
  if c.kinds.rmapbt then
    compare_maps(c)
    return
  end
  for _, ag in ipairs(groups_of(c, c.shared, c.room)) do
    compare_group(c, ag)
  end
end

return M
