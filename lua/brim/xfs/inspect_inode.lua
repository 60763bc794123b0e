-- brim.xfs.inspect_inode: an inode as a view: its core, its data fork and its attribute fork, as
-- far as they lie in the inode. Called by inspect and inspect_block; `fs` is the inspector. Damaged
-- counts are cut to what fits.
local ondisk = require "brim.xfs.ondisk"
local tree = require "brim.xfs.inspect_tree"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local M = {}

local CORE_BYTES <const> = ondisk.inode:field("literal").off_bytes
local EXTENT_BYTES <const> = ondisk.bmbt_rec.size_bytes
local FLAG2_NREXT64 <const> = 0x10
local DEV <const>, LOCAL <const>, EXTENTS <const>, BTREE <const> = 0, 1, 2, 3
local META_BTREE <const> = 5 -- of the realtime part: its records are not shown
local TYPE_DIR <const>, TYPE_LINK <const> = 4, 10
local FORK_NAMES <const> = { data = "data", attr = "attribute" }
local check = view.check

-- --------------------------------------------------------------- short-form forks

-- One entry and where the next begins, or nil.
local function dir_entry(fork, at, wide, has_ftype)
  local head = has_ftype and 4 or 3
  local namelen = fork:byte(at)
  local width = wide and 8 or 4
  if not namelen or at + head + namelen + width - 1 > #fork then
    return nil
  end
  local name = fork:sub(at + 3, at + 2 + namelen)
  local type_at = at + 3 + namelen
  local ino_at = type_at + (has_ftype and 1 or 0)
  return { name = name, offset = (">I2"):unpack(fork, at + 1),
    ftype = has_ftype and fork:byte(type_at) or nil,
    ino = ((wide and ">i8" or ">I4"):unpack(fork, ino_at)) }, ino_at + width
end

---Decode a short-form directory: count, i8count, parent, entries. Entries that do not fit are left
---out.
---@param fork string
---@param has_ftype boolean
---@return table? dir nil where not even the header fits
function M.short_dir(fork, has_ftype)
  if #fork < 6 then
    return nil
  end
  local dir = { count = fork:byte(1), i8count = fork:byte(2), entries = {} }
  local wide = dir.i8count > 0
  if wide and #fork < 10 then
    return nil
  end
  dir.parent = ((wide and ">i8" or ">I4"):unpack(fork, 3))
  local at = wide and 11 or 7
  for i = 1, dir.count do
    dir.entries[i], at = dir_entry(fork, at, wide, has_ftype)
    if not at then
      break
    end
  end
  return dir
end

---Decode short-form attributes: totsize, count, entries. Entries that do not fit are left out.
---@param fork string
---@return table? attrs nil where not even the header fits
function M.short_attrs(fork)
  if #fork < 4 then
    return nil
  end
  local attrs = ondisk.attr_sf:decode(fork)
  attrs.entries = {}
  local at = 5
  for i = 1, attrs.count do
    local namelen, valuelen, flags = fork:byte(at, at + 2)
    if not flags or at + 2 + namelen + valuelen > #fork then
      break
    end
    attrs.entries[i] = { namelen = namelen, valuelen = valuelen, flags = flags,
      name = fork:sub(at + 3, at + 2 + namelen),
      value = fork:sub(at + 3 + namelen, at + 2 + namelen + valuelen) }
    at = at + 3 + namelen + valuelen
  end
  return attrs
end

---The columns and cells of directory entries; nameless ones are noted as wrong.
---@param v brim.xfs.View
---@param entries table[] name, ino, ftype, offset
---@return string[] columns
---@return fun(i: integer): string[], string? row
function M.entry_rows(v, entries)
  for i, e in ipairs(entries) do
    if e.name == "" then
      view.fault(v, "entry %d has no name", i)
      break
    end
  end
  return { "inode", "offset", "type", "name" }, function(i)
    local e = entries[i]
    return { words.unsigned(e.ino), tostring(e.offset),
      e.ftype and (words.FILE_TYPES[e.ftype] or ("unknown %d"):format(e.ftype)) or "-",
      words.text(e.name) }, e.name == "" and "has no name" or nil
  end
end

local function show_short_dir(v, fork)
  local dir = M.short_dir(fork, v.about.fs.has.ftype)
  if not dir then
    return view.fault(v, "the data fork of %d bytes has no room for a directory", #fork)
  elseif #dir.entries < dir.count then
    view.fault(v, "data fork: %d entries should be there, %d fit", dir.count, #dir.entries)
  end
  v.data_fork = dir
  local columns, row = M.entry_rows(v, dir.entries)
  view.table(v, { title = ("data fork: short-form directory, parent %s, %d entries (%d with long"
    .. " inode numbers)"):format(words.unsigned(dir.parent), dir.count, dir.i8count),
    columns = columns, count = #dir.entries, row = row, left = true })
end

---A value of any bytes as one short line: text in quotes, or hexadecimal digits.
---@param s string
---@return string
function M.value_text(s)
  local is_text = utf8.len(s) and not s:find "%c"
  local most = is_text and 256 or 64
  local part = #s > most and s:sub(1, most) or s
  return (is_text and ('"%s"'):format(words.text(part)) or words.hex(part))
    .. (#s > most and ("... (%d bytes)"):format(#s) or "")
end

local function show_short_attrs(v, fork)
  local attrs = M.short_attrs(fork)
  if not attrs then
    return view.fault(v, "the attribute fork of %d bytes has no room for attributes", #fork)
  elseif #attrs.entries < attrs.count then
    view.fault(v, "attribute fork: %d entries should be there, %d fit", attrs.count,
      #attrs.entries)
  end
  v.attr_fork = attrs
  view.table(v, { title = ("attribute fork: short form, %d attributes in %d bytes"):format(
    attrs.count, attrs.totsize), columns = { "flags", "name", "value" }, left = true,
    count = #attrs.entries, row = function(i)
      local e = attrs.entries[i]
      return { table.concat(words.flags("attr_flags", e.flags), ","), words.text(e.name),
        M.value_text(e.value) }
    end })
end

local function show_link(v, fork)
  local target = fork:sub(1, math.max(0, math.min(v.size, #fork)))
  if v.size < 0 or v.size > #fork then
    view.fault(v, "data fork: a target of %s bytes does not fit %d", words.unsigned(v.size), #fork)
  end
  v.data_fork = { target = target }
  view.table(v, { title = ("data fork: symbolic link to \"%s\""):format(words.text(target)),
    columns = {}, count = 0, row = function() return {} end })
end

-- ---------------------------------------------------------------- extents, trees

local function show_extents(v, which, fork, count)
  local room = #fork // EXTENT_BYTES
  if count > room or count < 0 then
    view.fault(v, "%s fork: %s extents do not fit, there is room for %d", which,
      words.unsigned(count), room)
  end
  local used, list = count < 0 and room or math.min(count, room), {}
  for i = 1, used do
    list[i] = ondisk.extent(ondisk.bmbt_rec:decode(fork, (i - 1) * EXTENT_BYTES))
  end
  v[which .. "_fork"] = { extents = list }
  tree.show_extents(v, ("%s fork: %s extents, room for %d"):format(FORK_NAMES[which],
    words.unsigned(count), room), list)
end

local function show_root(v, which, fork)
  if #fork < 20 then
    return view.fault(v, "the %s fork of %d bytes has no room for a tree", which, #fork)
  end
  local about = v.about
  local root = view.decode(ondisk.bmdr(#fork), { what = which .. " fork", fs = about.fs,
    bytes = fork, title = FORK_NAMES[which] .. " fork: root of an extent tree" })
  tree.show_bmdr(root)
  v[which .. "_fork"] = root
  table.insert(about.children, root)
end

local function show_fork(v, which, format, fork, count)
  if format == EXTENTS then
    show_extents(v, which, fork, count)
  elseif format == BTREE then
    show_root(v, which, fork)
  elseif format == LOCAL and which == "attr" then
    show_short_attrs(v, fork)
  elseif format == LOCAL and v.mode >> 12 == TYPE_DIR then
    show_short_dir(v, fork)
  elseif format == LOCAL and v.mode >> 12 == TYPE_LINK then
    show_link(v, fork)
  elseif format == DEV and which == "data" and #fork >= 4 then
    v.data_fork = { rdev = ((">I4"):unpack(fork)) }
    view.line(v, "rdev", words.device(v.data_fork.rdev), "data fork: device number")
  elseif format ~= META_BTREE or which ~= "data" then
    view.fault(v, "%s should be 0 .. 3 and fit the mode", which == "data" and "format" or "aformat")
  end
end

-- ------------------------------------------------------------------------ inode

local function check_core(v, fs, ino)
  view.expect(v, "version", 3)
  if ino then
    view.expect(v, "ino", ino)
  end
  check(v, "format", v.format <= BTREE or v.format == META_BTREE and fs.has.metadir, "0 .. 3")
  local room = (1 << fs.address.inode_log2) - CORE_BYTES
  check(v, "forkoff", v.forkoff << 3 <= room, "at most %d", room >> 3)
  return room
end

-- The bytes of the two forks; the second is empty where there is no attribute fork.
local function forks(v, bytes, room)
  local first = v.forkoff > 0 and math.min(v.forkoff << 3, room) or room
  return bytes:sub(CORE_BYTES + 1, CORE_BYTES + first), bytes:sub(CORE_BYTES + first + 1)
end

local function extent_counts(v)
  if v.flags2 & FLAG2_NREXT64 ~= 0 then
    return v.big_nextents, v.nextents
  end
  return v.nextents, v.anextents
end

---An inode as a view. Its forks are data_fork and attr_fork: { extents }, { entries }, { target },
---{ rdev }, or the root of a tree.
---@param fs brim.xfs.Inspector
---@param ino? integer its number; nil takes what it says
---@param off_bytes integer
---@param bytes string all of the inode
---@return brim.xfs.View
function M.inode(fs, ino, off_bytes, bytes)
  local v = view.decode(ondisk.inode, { what = "inode", fs = fs, off_bytes = off_bytes,
    bytes = bytes, uuid = fs.uuid, title = "inode " .. words.unsigned(ino or -1) })
  v.about.title = ("inode %s (%s)"):format(words.unsigned(ino or v.ino), words.file_type(v.mode))
  v.about.hidden.literal, v.about.hidden.pad2 = "padding", "padding"
  v.literal = nil
  local room = check_core(v, fs, ino)
  if v.magic ~= ondisk.inode:field("magic").magic or v.mode == 0 then
    return v
  end
  local data, attr = forks(v, bytes, room)
  local count, attr_count = extent_counts(v)
  show_fork(v, "data", v.format, data, count)
  if v.forkoff > 0 then
    show_fork(v, "attr", v.aformat, attr, attr_count)
  end
  return v
end

return M
