-- brim.xfs.inspect_group: the four header sectors of a group as views, and what must hold in them.
-- Called by inspect; `fs` is the inspector: its superblock `sb`, its `address`, its `uuid`.
local ondisk = require "brim.xfs.ondisk"
local view = require "brim.xfs.inspect_view"

local M = {}

local MAX_LEVEL <const> = 9 -- XFS_BTREE_MAXLEVELS
local check, expect = view.check, view.expect

-- ------------------------------------------------------------------ superblock

-- What a copy has in common with the primary: the geometry.
local COPIED <const> = { "blocksize", "dblocks", "uuid", "logstart", "agblocks", "agcount",
  "logblocks", "sectsize", "inodesize", "inopblock", "blocklog", "sectlog", "inodelog",
  "inopblog", "agblklog", "dirblklog", "inoalignmt" }

local function check_sizes(v)
  check(v, "versionnum", v.versionnum & 15 == 5, "of version 5")
  check(v, "blocklog", v.blocklog >= 9 and v.blocklog <= 16, "9 .. 16")
  check(v, "blocksize", v.blocksize == 1 << v.blocklog, "2^blocklog, %d", 1 << v.blocklog)
  check(v, "sectlog", v.sectlog >= 9 and v.sectlog <= 15, "9 .. 15")
  check(v, "sectsize", v.sectsize == 1 << v.sectlog, "2^sectlog, %d", 1 << v.sectlog)
  check(v, "inodelog", v.inodelog >= 8 and v.inodelog <= 11, "8 .. 11")
  check(v, "inodesize", v.inodesize == 1 << v.inodelog, "2^inodelog, %d", 1 << v.inodelog)
  check(v, "inopblog", v.inopblog == v.blocklog - v.inodelog, "blocklog - inodelog, %d",
    v.blocklog - v.inodelog)
  check(v, "inopblock", v.inopblock == 1 << v.inopblog, "2^inopblog, %d", 1 << v.inopblog)
  check(v, "imax_pct", v.imax_pct <= 100, "at most 100")
  check(v, "bad_features2", v.bad_features2 == v.features2, "features2, 0x%x", v.features2)
end

local function check_groups(v)
  if v.agblocks == 0 or v.dblocks <= 0 then
    check(v, v.agblocks == 0 and "agblocks" or "dblocks", false, "more than 0")
    return
  end
  local groups = (v.dblocks - 1) // v.agblocks + 1
  check(v, "agcount", v.agcount == groups, "dblocks / agblocks rounded up, %d", groups)
  local log2 = 0
  while 1 << log2 < v.agblocks do
    log2 = log2 + 1
  end
  check(v, "agblklog", v.agblklog == log2, "log2 of agblocks rounded up, %d", log2)
end

local function check_counters(v)
  check(v, "fdblocks", math.ult(v.fdblocks, v.dblocks), "less than dblocks")
  check(v, "ifree", not math.ult(v.icount, v.ifree), "at most icount")
  check(v, "inprogress", v.inprogress == 0, "0 in the primary superblock")
end

---The superblock of a group as a view.
---@param fs brim.xfs.Inspector
---@param ag integer
---@param off_bytes integer
---@param bytes string its sector
---@return brim.xfs.View
function M.sb(fs, ag, off_bytes, bytes)
  local v = view.decode(ondisk.sb, { what = "sb", fs = fs, off_bytes = off_bytes, bytes = bytes,
    title = ag == 0 and "primary superblock" or ("superblock copy of group %d"):format(ag) })
  check_sizes(v)
  check_groups(v)
  if ag == 0 then
    check_counters(v)
  else
    for _, name in ipairs(COPIED) do
      check(v, name, v[name] == fs.primary[name], "as in the primary superblock, %s",
        fs.primary[name])
    end
  end
  return v
end

-- --------------------------------------------------------------- AGF, AGI, AGFL

local function check_header(v, fs, ag)
  expect(v, "seqno", ag)
  if v.about.layout:field "length" then
    expect(v, "length", fs.address:length(ag))
  end
  if v.about.layout:field "versionnum" then
    expect(v, "versionnum", 1)
  end
end

-- A tree's root and height; both are 0 in a filesystem that has no such tree.
local function check_root(v, root, level, has_tree)
  if not has_tree then
    return
  end
  local last = v.about.fs.address:length(v.seqno) - 1
  check(v, level, v[level] >= 1 and v[level] <= MAX_LEVEL, "1 .. %d", MAX_LEVEL)
  check(v, root, v[root] >= 1 and v[root] <= last, "1 .. %d", last)
end

local function decode(fs, of, ag, title, off_bytes, bytes)
  return view.decode(of, { what = of.name, title = ("%s of group %d"):format(title, ag), fs = fs,
    off_bytes = off_bytes, bytes = bytes, uuid = fs.uuid })
end

local function slots_in_use(first, last, slots)
  return (last - first) % slots + 1
end

local function check_free_list(v, sector_bytes)
  local slots = (sector_bytes - ondisk.agfl:field("bno").off_bytes) // 4
  check(v, "flfirst", v.flfirst < slots, "less than %d, the slots there are", slots)
  check(v, "fllast", v.fllast < slots, "less than %d, the slots there are", slots)
  local used = slots_in_use(v.flfirst, v.fllast, slots)
  check(v, "flcount", v.flcount == used or v.flcount == 0,
    "%d, the slots from flfirst to fllast", used)
end

---The free space header of a group as a view.
---@param fs brim.xfs.Inspector
---@param ag integer
---@param off_bytes integer
---@param bytes string its sector
---@return brim.xfs.View
function M.agf(fs, ag, off_bytes, bytes)
  local v = decode(fs, ondisk.agf, ag, "free space header (AGF)", off_bytes, bytes)
  check_header(v, fs, ag)
  if v.seqno == ag then
    check_root(v, "bno_root", "bno_level", true)
    check_root(v, "cnt_root", "cnt_level", true)
    check_root(v, "rmap_root", "rmap_level", fs.has.rmapbt)
    check_root(v, "refcount_root", "refcount_level", fs.has.reflink)
  end
  check_free_list(v, #bytes)
  check(v, "freeblks", v.freeblks <= fs.address:length(ag), "at most the group's %d",
    fs.address:length(ag))
  check(v, "longest", v.longest <= v.freeblks, "at most freeblks, %d", v.freeblks)
  return v
end

---The inode header of a group as a view.
---@param fs brim.xfs.Inspector
---@param ag integer
---@param off_bytes integer
---@param bytes string its sector
---@return brim.xfs.View
function M.agi(fs, ag, off_bytes, bytes)
  local v = decode(fs, ondisk.agi, ag, "inode header (AGI)", off_bytes, bytes)
  check_header(v, fs, ag)
  if v.seqno == ag then
    check_root(v, "root", "level", true)
    check_root(v, "free_root", "free_level", fs.has.finobt)
  end
  check(v, "freecount", v.freecount <= v.count, "at most count, %d", v.count)
  return v
end

-- The slots that the AGF says are in use, in their order from the first.
local function active_slots(agf, slots)
  local list = {}
  for i = 0, math.min(agf.flcount, slots) - 1 do
    list[#list + 1] = (agf.flfirst + i) % slots
  end
  return list
end

---The free list of a group as a view.
---@param fs brim.xfs.Inspector
---@param ag integer
---@param off_bytes integer
---@param bytes string its sector
---@param agf? table the group's AGF, which says what slots are in use
---@return brim.xfs.View
function M.agfl(fs, ag, off_bytes, bytes, agf)
  local v = decode(fs, ondisk.agfl, ag, "free list (AGFL)", off_bytes, bytes)
  check_header(v, fs, ag)
  if not agf then
    return v
  end
  local active, length, wrong = active_slots(agf, #v.bno), fs.address:length(ag), nil
  for _, slot in ipairs(active) do
    local block = v.bno[slot + 1]
    wrong = wrong or (block == 0 or block >= length) and slot or nil
  end
  if wrong then
    view.fault(v, "bno[%d] is in use and should be a block of the group, 1 .. %d", wrong,
      length - 1)
  end
  view.line(v, "in use", #active == 0 and "none"
    or ("slots %d .. %d"):format(active[1], active[#active]), "according to the AGF")
  return v
end

return M
