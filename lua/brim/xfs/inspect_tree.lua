-- brim.xfs.inspect_tree: blocks of B-trees as views: the six trees of a group, and a file's extents
-- (bmbt). Called by inspect and inspect_block; `fs` is the inspector.
local ondisk = require "brim.xfs.ondisk"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local M = {}

local MAX_LEVEL <const> = 9 -- XFS_BTREE_MAXLEVELS
local LONG_HEADER_BYTES <const> = 72
local UNWRITTEN_BIT <const> = 1 << 61 -- XFS_RMAP_OFF_UNWRITTEN
local check, expect = view.check, view.expect

---The trees of a group: name -> header that has the root, fields of root and height, feature.
M.TREES = {
  bnobt = { header = "agf", root = "bno_root", level = "bno_level",
    doc = "free space by block" },
  cntbt = { header = "agf", root = "cnt_root", level = "cnt_level", doc = "free space by size" },
  rmapbt = { header = "agf", root = "rmap_root", level = "rmap_level", feature = "rmapbt",
    doc = "reverse map" },
  refcountbt = { header = "agf", root = "refcount_root", level = "refcount_level",
    feature = "reflink", doc = "shared blocks" },
  inobt = { header = "agi", root = "root", level = "level", doc = "inodes" },
  finobt = { header = "agi", root = "free_root", level = "free_level", feature = "finobt",
    doc = "inodes, chunks with free ones" },
}

-- The layout of a leaf; inode records differ with sparse inode chunks.
local function leaf_layout(fs, tree)
  if (tree == "inobt" or tree == "finobt") and not fs.has.sparse then
    return ondisk[tree .. "_full"]
  end
  return ondisk[tree]
end

-- --------------------------------------------------------------------- records

local function outside(start, count, length)
  if count == 0 then
    return "has no blocks"
  elseif start + count > length then
    return ("ends past the group's %d blocks"):format(length)
  end
end

-- Is (a...) not after (b...)? Compared unsigned, first difference decides.
local function is_disordered(a, b, ...)
  for _, name in ipairs { ... } do
    if a[name] ~= b[name] then
      return math.ult(b[name], a[name])
    end
  end
  return true
end

-- Tree -> function(length, slot_log2) -> judge of a record.
local judges = {}

function judges.bnobt(length)
  return function(rec, i, list)
    local before = list[i - 1]
    return outside(rec.startblock, rec.blockcount, length)
      or before and before.startblock + before.blockcount > rec.startblock
      and "overlaps the one before" or nil
  end
end

function judges.cntbt(length)
  return function(rec, i, list)
    return outside(rec.startblock, rec.blockcount, length)
      or i > 1 and is_disordered(list[i - 1], rec, "blockcount", "startblock")
      and "is out of order" or nil
  end
end

-- The state of an extent is no part of its place in the order.
local function rmap_order(rec)
  return { startblock = rec.startblock, owner = rec.owner, offset = rec.offset & ~UNWRITTEN_BIT }
end

function judges.rmapbt(length)
  return function(rec, i, list)
    return outside(rec.startblock, rec.blockcount, length)
      or i > 1 and is_disordered(rmap_order(list[i - 1]), rmap_order(rec), "startblock", "owner",
      "offset") and "is out of order" or nil
  end
end

local COW_BIT <const> = 1 << 31 -- XFS_REFC_COWFLAG: an unfinished copy

function judges.refcountbt(length)
  return function(rec, i, list)
    local before = list[i - 1]
    return outside(rec.startblock & ~COW_BIT, rec.blockcount, length)
      or rec.refcount == 0 and "is not shared"
      or before and before.startblock + before.blockcount > rec.startblock
      and "overlaps the one before" or nil
  end
end

function judges.inobt(length, slot_log2)
  return function(rec, i, list)
    if rec.startino >> slot_log2 >= length then
      return ("is past the group's %d blocks"):format(length)
    elseif rec.freecount > (rec.count or 64) then
      return "has more inodes free than there are"
    elseif i > 1 and list[i - 1].startino >= rec.startino then
      return "is out of order"
    end
  end
end

judges.finobt = judges.inobt

-- ----------------------------------------------------------------------- nodes

-- Keys and pointers of an inner node side by side, those in use.
local function show_children(v, pointer_fault)
  local about = v.about
  local keys, ptrs = about.layout:field "keys", about.layout:field "ptrs"
  local room = #v.keys
  local used = math.min(v.numrecs, room)
  v.keys = table.move(v.keys, 1, used, 1, {})
  v.ptrs = table.move(v.ptrs, 1, used, 1, {})
  about.hidden.keys, about.hidden.ptrs = "table", "table"
  for i = 1, used do
    local why = pointer_fault(v.ptrs[i])
    if why then
      view.fault(v, "ptrs[%d] %s", i, why)
      break
    end
  end
  local columns = view.columns(keys.record)
  columns[#columns + 1] = "ptr"
  view.table(v, { title = ("keys and pointers: %d of at most %d"):format(used, room),
    columns = columns, count = used, row = function(i)
      local cells = view.cells(keys.record, v.keys[i], about.fs)
      cells[#cells + 1] = words.value(about.layout, ptrs, v.ptrs[i], v, about.fs)
      return cells, pointer_fault(v.ptrs[i])
    end })
end

local function group_pointer_fault(length)
  return function(p)
    return (p == 0 or p >= length) and ("is no block of the group, 1 .. %d"):format(length - 1)
      or nil
  end
end

local function check_numrecs(v, room)
  check(v, "numrecs", v.numrecs <= room, "at most %d", room)
end

local function check_siblings(v, agbno, length)
  for _, name in ipairs { "leftsib", "rightsib" } do
    local b = v[name]
    check(v, name, b == ondisk.NULL_AG_BLOCK or b > 0 and b < length and b ~= agbno,
      "null or another block of the group")
  end
end

-- Is it an inner node? A level that is absurd counts as a leaf's, and is shown as wrong.
local function level_of(bytes)
  local level = (">I2"):unpack(bytes, 5)
  return level <= MAX_LEVEL and level or 0
end

local function check_block(v, place, length)
  expect(v, "blkno", place.daddr)
  expect(v, "owner", place.ag)
  check_siblings(v, place.agbno, length)
end

---A block of a group's tree as a view.
---@param fs brim.xfs.Inspector
---@param tree string
---@param place brim.xfs.Place
---@param bytes string the block
---@param level? integer that the header makes it, for a root
---@return brim.xfs.View
function M.group_block(fs, tree, place, bytes, level)
  local length = fs.address:length(place.ag)
  local is_node = level_of(bytes) > 0
  local of = is_node and ondisk.node(tree, #bytes) or leaf_layout(fs, tree)
  local v = view.decode(of, { what = tree, fs = fs, off_bytes = place.off_bytes, bytes = bytes,
    uuid = fs.uuid, title = ("%s (%s) of group %d, %s at block %d"):format(tree,
      M.TREES[tree].doc, place.ag, is_node and "inner node" or "leaf", place.agbno) })
  check_block(v, place, length)
  if level then
    expect(v, "level", level)
  elseif not is_node then
    check(v, "level", v.level == 0, "0 .. %d", MAX_LEVEL - 1)
  end
  if is_node then
    check_numrecs(v, #v.keys)
    show_children(v, group_pointer_fault(length))
  else
    check_numrecs(v, #v.recs)
    view.records(v, "recs", v.numrecs, judges[tree](length, fs.address.slot_log2))
  end
  return v
end

-- ------------------------------------------------------------ extents of a file

---Judge an extent: where it is outside of the filesystem, or out of order.
---@param fs brim.xfs.Inspector
---@return fun(e: table, i: integer, list: table): string?
function M.extent_judge(fs)
  return function(e, i, list)
    if e.blockcount == 0 then
      return "has no blocks"
    elseif fs.primary.rblocks ~= 0 then
      return nil -- it may lie on the realtime device
    end
    local place, why = fs.address:block(e.startblock)
    if not place then
      return why
    elseif place.agbno + e.blockcount > fs.address:length(place.ag) then
      return ("ends past group %d"):format(place.ag)
    end
    local before = list[i - 1]
    return before and before.startoff + before.blockcount > e.startoff
      and "overlaps the one before" or nil
  end
end

---Show extents as a table, their addresses as group:block too.
---@param v brim.xfs.View
---@param title string
---@param extents table[]
function M.show_extents(v, title, extents)
  local fs = v.about.fs
  local judge = M.extent_judge(fs)
  for i, e in ipairs(extents) do
    local why = judge(e, i, extents)
    if why then
      view.fault(v, "%s: extent %d %s", title:match "^[^:]*", i - 1, why)
      break
    end
  end
  view.table(v, { title = title, first = 0, count = #extents,
    columns = { "startoff", "startblock", "(group:block)", "blockcount", "state" },
    row = function(i)
      local e, log2 = extents[i], fs.address.ag_log2
      return { words.unsigned(e.startoff), words.unsigned(e.startblock),
        ("%d:%d"):format(e.startblock >> log2, e.startblock & (1 << log2) - 1),
        tostring(e.blockcount), e.unwritten and "unwritten" or "written" }, judge(e, i, extents)
    end })
end

---Unpack the extent records in use.
---@param recs table[] of bmbt_rec
---@param count integer
---@return table[]
function M.extents(recs, count)
  local list = {}
  for i = 1, math.min(count, #recs) do
    list[i] = ondisk.extent(recs[i])
  end
  return list
end

local function file_pointer_fault(fs)
  return function(p)
    local _, why = fs.address:block(p)
    return why
  end
end

---Show the keys and pointers of the root of an extent tree, which lies in an inode.
---@param v brim.xfs.View a decoded bmdr
function M.show_bmdr(v)
  check_numrecs(v, #v.keys)
  show_children(v, file_pointer_fault(v.about.fs))
end

---A block of a file's extent tree as a view.
---@param fs brim.xfs.Inspector
---@param place brim.xfs.Place
---@param bytes string the block
---@return brim.xfs.View
function M.file_block(fs, place, bytes)
  local is_node = level_of(bytes) > 0
  local v = view.decode(is_node and ondisk.node("bmbt", #bytes) or ondisk.bmbt, { what = "bmbt",
    fs = fs, off_bytes = place.off_bytes, bytes = bytes, uuid = fs.uuid,
    title = ("extents of a file (bmbt), %s at block %d"):format(is_node and "inner node" or "leaf",
      place.fsblock) })
  expect(v, "blkno", place.daddr)
  for _, name in ipairs { "leftsib", "rightsib" } do
    check(v, name, v[name] == ondisk.NULL_FS_INODE or fs.address:block(v[name]) ~= nil,
      "null or a block of the filesystem")
  end
  if is_node then
    check_numrecs(v, #v.keys)
    show_children(v, file_pointer_fault(fs))
    return v
  end
  check(v, "level", v.level == 0, "0 .. %d", MAX_LEVEL - 1)
  check_numrecs(v, #v.recs)
  v.recs = M.extents(v.recs, v.numrecs)
  v.about.hidden.recs = "table"
  M.show_extents(v, ("recs: %d of at most %d"):format(#v.recs,
    (#bytes - LONG_HEADER_BYTES) // ondisk.bmbt_rec.size_bytes), v.recs)
  return v
end

return M
