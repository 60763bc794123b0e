-- How the names of xfs_db map to what brim.xfs.inspect shows, for spec/inspect_xfs_db_spec.lua: a
-- table per structure of xfs_db's names to ours, or to functions that compare. A name that is in
-- none is the same in both.
local words = require "brim.xfs.inspect_words"

local M = {}

-- ------------------------------------------------------------------ comparing

local function null_or(v)
  return (v == 0xffffffff or v == -1) and "null" or v
end

-- Says where two values differ; xfs_db's nulls stand for all ones.
local function same(where, theirs, ours)
  if theirs == "null" then
    ours = null_or(ours)
  elseif theirs == "" and ours == 0 then
    return -- a field of a feature that is absent
  end
  if theirs ~= ours then
    error(("%s: xfs_db says %s, brim %s"):format(where, tostring(theirs), tostring(ours)), 0)
  end
end

local function same_crc(where, theirs, view)
  same(where .. ".crc", theirs.crc, view.crc)
  same(where .. ".crc right", theirs.is_right, view.about.verdicts.crc.ok)
end

local function same_rows(where, theirs, list, row)
  same(where .. " count", #theirs, #list)
  for i, cells in ipairs(theirs) do
    for k, v in ipairs(row(list[i])) do
      same(("%s[%d] %d"):format(where, i, k), cells[k], v)
    end
    same(("%s[%d] width"):format(where, i), #cells, #row(list[i]))
  end
end

---Compare all that xfs_db printed; `names` maps its names to ours where they differ, or to a
-- function(theirs, view, where).
function M.compare(where, theirs, view, names)
  assert(next(theirs), where .. ": xfs_db printed nothing")
  for name, v in pairs(theirs) do
    local of = names[name] or name:gsub("^.*%.", "")
    if type(of) == "function" then
      of(v, view, where .. "." .. name)
    elseif type(v) == "table" and v.crc then
      same_crc(where, v, view)
    elseif type(v) == "table" then
      error(("%s: no comparison for the list %s"):format(where, name), 0)
    else
      same(where .. "." .. name, v, view[of])
    end
  end
end

local function bit(v)
  return v and 1 or 0
end

-- ------------------------------------------------------------------ structures

M.AGF = { bnoroot = "bno_root", cntroot = "cnt_root", rmaproot = "rmap_root",
  refcntroot = "refcount_root", bnolevel = "bno_level", cntlevel = "cnt_level",
  rmaplevel = "rmap_level", refcntlevel = "refcount_level", rmapblocks = "rmap_blocks",
  refcntblocks = "refcount_blocks" }

local function slots(field)
  return function(theirs, view, where)
    for _, row in ipairs(theirs) do
      same(("%s[%d]"):format(where, row.number), row[1], view[field][row.number + 1])
    end
  end
end

M.AGI = { unlinked = slots "unlinked", ino_blocks = "iblocks", fino_blocks = "fblocks" }
M.AGFL = { bno = slots "bno" }

local function rmap_cells(r, with_extent)
  local offset, is = words.rmap_offset(r.offset)
  return with_extent and { r.startblock, r.blockcount, r.owner, offset, bit(is.unwritten),
    bit(is.attr_fork), bit(is.bmbt_block) }
    or { r.startblock, r.owner, offset, bit(is.attr_fork), bit(is.bmbt_block) }
end

local function pick(...)
  local names <const> = { ... }
  return function(r)
    local cells = {}
    for i, name in ipairs(names) do
      cells[i] = r[name]
    end
    return cells
  end
end

local COW <const> = 1 << 31

local RECORDS <const> = {
  bnobt = pick("startblock", "blockcount"), cntbt = pick("startblock", "blockcount"),
  inobt = pick("startino", "holemask", "count", "freecount", "free"),
  inobt_full = pick("startino", "freecount", "free"),
  rmapbt = function(r) return rmap_cells(r, true) end,
  refcountbt = function(r)
    return { r.startblock & ~COW, r.blockcount, r.refcount, bit(r.startblock & COW ~= 0) }
  end,
  bmbt = function(e) return { e.startoff, e.startblock, e.blockcount, bit(e.unwritten) } end,
}
RECORDS.finobt, RECORDS.finobt_full = RECORDS.inobt, RECORDS.inobt_full

local KEYS <const> = {
  bnobt = RECORDS.bnobt, cntbt = pick("blockcount", "startblock"),
  inobt = pick "startino", finobt = pick "startino",
  rmapbt = function(k)
    return table.move(rmap_cells(k.high), 1, 5, 6, rmap_cells(k.low))
  end,
  refcountbt = function(k) return { k.startblock & ~COW, bit(k.startblock & COW ~= 0) } end,
  bmbt = pick "startoff",
}

function M.tree(tree, fs)
  local records = RECORDS[tree .. (fs.has.sparse and "" or "_full")] or RECORDS[tree]
  return { bno = "blkno",
    recs = function(v, view, where) same_rows(where, v, view.recs, records) end,
    keys = function(v, view, where) same_rows(where, v, view.keys, KEYS[tree]) end,
    ptrs = function(v, view, where)
      same_rows(where, v, view.ptrs, function(p) return { p } end)
    end,
    ["ptrs[1]"] = function(v, view, where) same(where, v, view.ptrs[1]) end }
end

-- ---------------------------------------------------------------------- inodes

local DIFLAGS <const> = { newrtbm = "NEWRTBM", prealloc = "PREALLOC", realtime = "REALTIME",
  immutable = "IMMUTABLE", append = "APPEND", sync = "SYNC", noatime = "NOATIME",
  nodump = "NODUMP", rtinherit = "RTINHERIT", projinherit = "PROJINHERIT",
  nosymlinks = "NOSYMLINKS", extsz = "EXTSIZE", extszinherit = "EXTSZINHERIT",
  nodefrag = "NODEFRAG", filestream = "FILESTREAM" }
local DIFLAGS2 <const> = { reflink = "REFLINK", cowextsz = "COWEXTSIZE", dax = "DAX",
  bigtime = "BIGTIME", nrext64 = "NREXT64" }

local function flag(field, name)
  return function(theirs, view, where)
    local set = {}
    for _, word in ipairs(words.flags(field, view[field])) do
      set[word] = true
    end
    same(where, theirs, bit(set[name]))
  end
end

local function counts(view)
  if view.flags2 & 0x10 ~= 0 then
    return view.big_nextents, view.nextents
  end
  return view.nextents, view.anextents
end

local function time_part(field, is_ns)
  return function(theirs, view, where)
    local date, ns = words.time(view[field], view.flags2 & 8 ~= 0):match "^(.*)%.(%d+) UTC$"
    same(where, theirs, is_ns and math.tointeger(tonumber(ns)) or date)
  end
end

local function extents(fork)
  return function(theirs, view, where)
    same_rows(where, theirs, view[fork].extents, RECORDS.bmbt)
  end
end

local function root(fork)
  return { ["level"] = function(v, view, where) same(where, v, view[fork].level) end,
    ["numrecs"] = function(v, view, where) same(where, v, view[fork].numrecs) end,
    ["keys"] = function(v, view, where) same_rows(where, v, view[fork].keys, KEYS.bmbt) end,
    -- A single pointer is no list for xfs_db.
    ["ptrs"] = function(v, view, where)
      same_rows(where, v, view[fork].ptrs, function(p) return { p } end)
    end,
    ["ptrs[1]"] = function(v, view, where) same(where, v, view[fork].ptrs[1]) end }
end

local INODE <const> = { ["core.nlinkv2"] = "nlink", ["v3.change_count"] = "changecount",
  ["v3.inumber"] = "ino",
  ["core.nextents"] = function(v, view, where) same(where, v, (counts(view))) end,
  ["core.naextents"] = function(v, view, where) same(where, v, (select(2, counts(view)))) end,
  ["u3.bmx"] = extents "data_fork", ["a.bmx"] = extents "attr_fork",
  ["u3.dev"] = function(v, view, where)
    if view.mode ~= 0 then
      same(where, v, view.data_fork.rdev)
    end
  end,
  ["u3.symlink"] = function(v, view, where) same(where, v, view.data_fork.target) end,
  ["u3.sfdir3.hdr.parent.i4"] = function(v, view, where) same(where, v, view.data_fork.parent) end,
  ["u3.sfdir3.hdr.count"] = function(v, view, where) same(where, v, view.data_fork.count) end,
  ["u3.sfdir3.hdr.i8count"] = function(v, view, where) same(where, v, view.data_fork.i8count) end,
  ["a.sfattr.hdr.totsize"] = function(v, view, where) same(where, v, view.attr_fork.totsize) end,
  ["a.sfattr.hdr.count"] = function(v, view, where) same(where, v, view.attr_fork.count) end,
}
INODE["u3.sfdir3.hdr.parent.i8"] = INODE["u3.sfdir3.hdr.parent.i4"]
for name, bit_name in pairs(DIFLAGS) do
  INODE["core." .. name] = flag("flags", bit_name)
end
for name, bit_name in pairs(DIFLAGS2) do
  INODE["v3." .. name] = flag("flags2", bit_name)
end
for _, name in ipairs { "atime", "mtime", "ctime" } do
  INODE[("core.%s.sec"):format(name)] = time_part(name)
  INODE[("core.%s.nsec"):format(name)] = time_part(name, true)
end
INODE["v3.crtime.sec"], INODE["v3.crtime.nsec"] = time_part "crtime", time_part("crtime", true)
for fork, prefix in pairs { data_fork = "u3.bmbt.", attr_fork = "a.bmbt." } do
  for name, f in pairs(root(fork)) do
    INODE[prefix .. name] = f
  end
end

local ENTRY <const> = { name = "name", namelen = function(e) return #e.name end,
  offset = "offset", inumber = "ino", ["inumber.i4"] = "ino", ["inumber.i8"] = "ino",
  filetype = "ftype", valuelen = "valuelen", value = "value", tag = "tag",
  root = function(e) return e.flags >> 1 & 1 end, secure = function(e) return e.flags >> 2 & 1 end,
  hashval = "hashval", address = "address", length = "length", valueblk = "valueblk" }

-- Names of elements ("u3.sfdir3.list[3].name") go to the list that has them.
local function with_elements(names, lists)
  return setmetatable({}, { __index = function(_, name)
    local list, i, field = name:match "^([%w_.]-)%[(%d+)%]%.([%w_.]+)$"
    if not list or not lists[list] then
      return names[name]
    end
    return function(theirs, view, where)
      local e = lists[list](view)[math.tointeger(i) + 1]
      local of = ENTRY[field]
      same(where, theirs, type(of) == "function" and of(e) or e[of])
    end
  end })
end

M.INODE = with_elements(INODE, {
  ["u3.sfdir3.list"] = function(v) return v.data_fork.entries end,
  ["a.sfattr.list"] = function(v) return v.attr_fork.entries end })

-- ------------------------------------------------------------- directory blocks

-- xfs_db numbers used and free pieces in one list.
local function entries(view)
  return view.entries
end

M.DIR = with_elements({ ["dhdr.hdr.bno"] = "blkno", ["bhdr.hdr.bno"] = "blkno",
  ["lhdr.info.bno"] = "blkno", ["nhdr.info.bno"] = "blkno", ["fhdr.hdr.bno"] = "blkno",
  ["hdr.info.bno"] = "blkno", bno = "blkno",
  ["btail.count"] = function(v, view, where) same(where, v, view.tail.count) end,
  ["btail.stale"] = function(v, view, where) same(where, v, view.tail.stale) end,
  nbtree = function(v, view, where) same_rows(where, v, view.btree, pick("hashval", "before")) end,
  fbests = function(v, view, where)
    for _, row in ipairs(v) do
      same(where, row[1], view.bests[row.number + 1])
    end
  end,
  ["hdr.freemap"] = function(v, view, where)
    same_rows(where, v, view.freemap, pick("base", "size"))
  end,
  entries = function(v, view, where)
    same_rows(where, v, view.entries, function(e)
      return { e.hashval, e.nameidx, e.flags >> 7 & 1, e.flags >> 1 & 1, e.flags >> 2 & 1,
        e.flags & 1 }
    end)
  end,
  data = function(v, view, where) same(where, v, view.content) end },
  { du = entries, bu = entries, nvlist = entries,
    lents = function(v) return v.ents end, ["dhdr.bestfree"] = function(v) return v.bestfree end,
    ["bhdr.bestfree"] = function(v) return v.bestfree end })

-- Pieces of free space and the leaf entries of one-block directories have no counterpart here.
function M.without(theirs, ...)
  local out = {}
  for name, v in pairs(theirs) do
    local is_left = true
    for _, pattern in ipairs { ... } do
      is_left = is_left and not name:find(pattern)
    end
    out[name] = is_left and v or nil
  end
  return out
end

-- xfs_db's free pieces take numbers of du[]; ours are left out, so numbers are closed up.
function M.renumbered(theirs, list)
  local free, out = {}, {}
  for name in pairs(theirs) do
    local i = name:match("^" .. list .. "%[(%d+)%]%.freetag$")
    free[math.tointeger(i) or -1] = true
  end
  for name, v in pairs(theirs) do
    local i, field = name:match("^" .. list .. "%[(%d+)%]%.(%a+)$")
    i = math.tointeger(i)
    if not i then
      out[name] = v
    elseif not free[i] then
      local gone = 0
      for k in pairs(free) do
        gone = gone + (k >= 0 and k < i and 1 or 0)
      end
      out[("%s[%d].%s"):format(list, i - gone, field)] = v
    end
  end
  return out
end

return M
