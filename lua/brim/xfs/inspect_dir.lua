-- brim.xfs.inspect_dir: blocks that belong to files as views: directories, attributes, symbolic
-- links, quotas. Called by inspect_block; `fs` is the inspector. A directory block may be several
-- fs blocks long.
local inode = require "brim.xfs.inspect_inode"
local layouts = require "brim.xfs.inspect_layouts"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local M = {}

local DATA_HEADER_BYTES <const> = 64
local FREE_TAG <const> = 0xffff
local TAIL_BYTES <const>, LEAF_ENTRY_BYTES <const> = 8, 8
local ATTR_LOCAL <const> = 1

local function decode(of, fs, place, bytes)
  local v = view.decode(of, { what = of.name, fs = fs, off_bytes = place.off_bytes, bytes = bytes,
    uuid = fs.uuid, title = ("%s, at block %d"):format(of.doc, place.fsblock) })
  if of:field "blkno" then
    view.expect(v, "blkno", place.daddr)
  end
  return v
end

-- ----------------------------------------------------------------- directories

-- The entry at a byte (from 1) of a directory block and its length; nil and why when it is none.
local function data_entry(bytes, at, stop, has_ftype)
  if at + 11 > stop then
    return nil, "does not fit"
  elseif (">I2"):unpack(bytes, at) == FREE_TAG then
    local len = (">I2"):unpack(bytes, at + 2)
    if len < 8 or len % 8 ~= 0 or at + len - 1 > stop then
      return nil, ("free space of %d bytes is impossible"):format(len)
    end
    return { free = len, offset = at - 1 }, len
  end
  local namelen = bytes:byte(at + 8)
  local len = (11 + (has_ftype and 1 or 0) + namelen + 7) // 8 * 8
  if at + len - 1 > stop then
    return nil, "ends past the block"
  end
  return { ino = ((">i8"):unpack(bytes, at)), name = bytes:sub(at + 9, at + 8 + namelen),
    ftype = has_ftype and bytes:byte(at + 9 + namelen) or nil, offset = at - 1,
    tag = ((">I2"):unpack(bytes, at + len - 2)) }, len
end

local function data_entries(v, bytes, stop)
  local list, at, free_bytes = {}, DATA_HEADER_BYTES + 1, 0
  while at < stop do
    local entry, len = data_entry(bytes, at, stop, v.about.fs.has.ftype)
    if not entry then
      view.fault(v, "the entry at byte %d %s", at - 1, len)
      break
    elseif entry.free then
      free_bytes = free_bytes + entry.free
    else
      list[#list + 1] = entry
      if entry.tag ~= entry.offset then
        view.fault(v, "the entry at byte %d should say so, it says %d", entry.offset, entry.tag)
      end
    end
    at = at + len
  end
  return list, free_bytes
end

-- Where entries end: before the leaf entries and the tail of a directory of one block.
local function entries_end(v, bytes)
  if v.about.what ~= "dir_block" then
    return #bytes
  end
  v.tail = { count = ((">I4"):unpack(bytes, #bytes - 7)),
    stale = ((">I4"):unpack(bytes, #bytes - 3)) }
  local stop = #bytes - TAIL_BYTES - v.tail.count * LEAF_ENTRY_BYTES
  if stop < DATA_HEADER_BYTES then
    view.fault(v, "tail: %d leaf entries do not fit the block", v.tail.count)
    return #bytes - TAIL_BYTES
  end
  view.line(v, "tail.count", tostring(v.tail.count), "leaf entries behind the names")
  view.line(v, "tail.stale", tostring(v.tail.stale), "of these, removed")
  return stop
end

local function directory_data(v, bytes)
  local free_bytes
  v.entries, free_bytes = data_entries(v, bytes, entries_end(v, bytes))
  local columns, row = inode.entry_rows(v, v.entries)
  view.table(v, { title = ("entries: %d, %d bytes free"):format(#v.entries, free_bytes),
    columns = columns, row = row, count = #v.entries, left = true })
end

-- ----------------------------------------------------------------- attributes

local function attr_entry(e, bytes)
  local at = e.nameidx + 1
  local is_local = e.flags & ATTR_LOCAL ~= 0
  local head = is_local and 3 or 9
  if at + head - 1 > #bytes then
    return "lies past the block"
  elseif is_local then
    e.valuelen = ((">I2"):unpack(bytes, at))
  else
    e.valueblk, e.valuelen = (">I4I4"):unpack(bytes, at)
  end
  local namelen = bytes:byte(at + head - 1)
  e.name = bytes:sub(at + head, at + head + namelen - 1)
  if is_local then
    e.value = bytes:sub(at + head + namelen, at + head + namelen + e.valuelen - 1)
  end
  if #e.name < namelen or is_local and #e.value < e.valuelen then
    return "ends past the block"
  end
end

local function attr_cells(e)
  return { ("0x%x"):format(e.hashval), table.concat(words.flags("attr_flags", e.flags), ","),
    words.text(e.name or "?"), e.value and inode.value_text(e.value)
      or e.valueblk and ("%d bytes from file block %d"):format(e.valuelen, e.valueblk) or "?" }
end

local function attributes(v, bytes)
  local room = #v.entries
  view.check(v, "count", v.count <= room, "at most %d", room)
  v.entries = table.move(v.entries, 1, math.min(v.count, room), 1, {})
  v.about.hidden.entries = "table"
  local wrong = {}
  for i, e in ipairs(v.entries) do
    wrong[i] = attr_entry(e, bytes)
    if wrong[i] then
      view.fault(v, "entries[%d] %s", i - 1, wrong[i])
    end
  end
  view.table(v, { title = ("entries: %d of at most %d"):format(#v.entries, room), left = true,
    columns = { "hashval", "flags", "name", "value" }, count = #v.entries, first = 0,
    row = function(i) return attr_cells(v.entries[i]), wrong[i] end })
end

-- ------------------------------------------------------------------ the rest

local function counted(field, count_field)
  return function(v)
    local room = #v[field]
    view.check(v, count_field, v[count_field] <= room, "at most %d", room)
    view.records(v, field, v[count_field], nil, 0)
  end
end

local function free_index(v)
  local room = #v.bests
  view.check(v, "nvalid", v.nvalid <= room, "at most %d", room)
  v.bests = table.move(v.bests, 1, math.min(v.nvalid, room), 1, {})
end

local function content(v, bytes)
  local room = #bytes - layouts.symlink.size_bytes
  view.check(v, "bytes", v.bytes <= room, "at most %d", room)
  v.content = bytes:sub(layouts.symlink.size_bytes + 1,
    layouts.symlink.size_bytes + math.min(v.bytes, room))
  view.line(v, "content", inode.value_text(v.content))
end

-- Layout and what to show behind its fields.
local KINDS <const> = {
  { layouts.dir_block, directory_data }, { layouts.dir_data, directory_data },
  { layouts.dir_leaf1, counted("ents", "count") }, { layouts.dir_leafn, counted("ents", "count") },
  { layouts.dir_free, free_index }, { layouts.da_node, counted("btree", "count") },
  { layouts.attr_leaf, attributes }, { layouts.attr_remote, content },
  { layouts.symlink, content },
}

local function magic_of(of)
  for _, field in ipairs(of.fields) do
    if field.magic then
      return field.magic, field.off_bytes, field.width_bytes
    end
  end
end

---The kind of file block that a magic number says, or nil.
---@param bytes string
---@return table? kind
function M.kind(bytes)
  for _, kind in ipairs(KINDS) do
    local magic, off_bytes, width_bytes = magic_of(kind[1])
    if (">I" .. width_bytes):unpack(bytes, off_bytes + 1) == magic then
      return kind
    end
  end
end

---A block of a directory, of attributes or of a symbolic link as a view.
---@param fs brim.xfs.Inspector
---@param kind table from kind()
---@param place brim.xfs.Place
---@param bytes string
---@return brim.xfs.View
function M.show(fs, kind, place, bytes)
  local v = decode(kind[1], fs, place, bytes)
  kind[2](v, bytes)
  return v
end

---A block of quotas as a view with one child each; unused ones are left out.
---@param fs brim.xfs.Inspector
---@param place brim.xfs.Place
---@param bytes string
---@return brim.xfs.View
function M.quotas(fs, place, bytes)
  local size = layouts.dquot.size_bytes
  local v = view.new { what = "dquots", title = ("quotas, at block %d"):format(place.fsblock),
    fs = fs, off_bytes = place.off_bytes, bytes = bytes }
  for at = 0, #bytes - size, size do
    local part = bytes:sub(at + 1, at + size)
    local q = view.decode(layouts.dquot, { what = "dquot", fs = fs, bytes = part,
      off_bytes = place.off_bytes + at, uuid = fs.uuid, title = "quota" })
    q.about.title = ("quota of id %d"):format(q.id)
    if q.bcount ~= 0 or q.icount ~= 0 or q.blk_hardlimit ~= 0 or q.ino_hardlimit ~= 0
      or q.blk_softlimit ~= 0 or q.ino_softlimit ~= 0 or #view.faults(q) > 0 then
      v[#v + 1] = q
      table.insert(v.about.children, q)
    end
  end
  return v
end

return M
