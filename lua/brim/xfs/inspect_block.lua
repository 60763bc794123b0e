-- brim.xfs.inspect_block: a block of the filesystem as a view, its structure guessed by its magic
-- number; what has none is shown as bytes. Called by inspect; `fs` is the inspector.
local dir = require "brim.xfs.inspect_dir"
local group = require "brim.xfs.inspect_group"
local inode = require "brim.xfs.inspect_inode"
local log = require "brim.xfs.inspect_log"
local ondisk = require "brim.xfs.ondisk"
local tree = require "brim.xfs.inspect_tree"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local M = {}

local HEADERS <const> = { "sb", "agf", "agi", "agfl" }
local HEADER_NAMES <const> = {} -- magic -> name
for _, name in ipairs(HEADERS) do
  HEADER_NAMES[ondisk[name]:field("magicnum").magic] = name
end

local TREE_NAMES <const> = {} -- magic -> name
for name in pairs(tree.TREES) do
  TREE_NAMES[ondisk[name]:field("magic").magic] = name
end

local INODE_MAGIC <const>, QUOTA_MAGIC <const> = 0x494e, 0x4451
local BMBT_MAGIC <const> = ondisk.bmbt:field("magic").magic
local LOG_MAGIC <const> = ondisk.log_record:field("magicno").magic

local function u32(bytes, at)
  return (">I4"):unpack(bytes, at)
end

-- -------------------------------------------------------------- several in one

-- The header sectors that lie in a block at the start of a group.
local function headers(fs, place, bytes)
  local sector = 1 << fs.address.sector_log2
  local v = view.new { what = "headers", fs = fs, off_bytes = place.off_bytes, bytes = bytes,
    title = ("headers of group %d"):format(place.ag) }
  for i, name in ipairs(HEADERS) do
    local at = (i - 1) * sector - (place.agbno << fs.address.block_log2)
    if at >= 0 and at + sector <= #bytes then
      local child = group[name](fs, place.ag, place.off_bytes + at, bytes:sub(at + 1, at + sector))
      v[name] = child
      table.insert(v.about.children, child)
    end
  end
  return v
end

local function inode_cells(i)
  return { words.unsigned(i.ino), words.mode(i.mode), tostring(i.nlink), words.unsigned(i.size),
    words.FORMATS[i.format] or "?", words.unsigned(i.nblocks) }
end

local function inodes(fs, place, bytes)
  local size = 1 << fs.address.inode_log2
  local v = view.new { what = "inodes", fs = fs, off_bytes = place.off_bytes, bytes = bytes,
    title = ("inodes, at block %d"):format(place.fsblock) }
  local first = place.fsblock << fs.address.slot_log2
  for at = 0, #bytes - size, size do
    local child = inode.inode(fs, first + at // size, place.off_bytes + at,
      bytes:sub(at + 1, at + size))
    v[#v + 1] = child
    for _, fault in ipairs(view.faults(child)) do
      view.fault(v, "inode %d: %s", first + at // size, fault)
    end
  end
  view.table(v, { title = "inodes, 'inode N' shows one", count = #v, first = 0,
    columns = { "inode", "mode", "nlink", "size", "format", "nblocks" },
    row = function(i)
      return inode_cells(v[i]), view.faults(v[i])[1]
    end })
  return v
end

-- --------------------------------------------------------------------- guessing

-- A directory block may be longer than a block of the filesystem; the shorter is right if its
-- checksum says so.
local function file_block(fs, kind, place, bytes)
  local v = dir.show(fs, kind, place, bytes)
  local long_bytes = #bytes << (fs.primary.dirblklog <= 7 and fs.primary.dirblklog or 0)
  if v.about.verdicts.crc.ok or long_bytes == #bytes or long_bytes > 64 << 10 then
    return v
  end
  local long = fs:read(place.off_bytes, long_bytes)
  local whole = long and dir.show(fs, kind, place, long)
  return whole and whole.about.verdicts.crc.ok and whole or v
end

local function plain(fs, place, bytes)
  local what = bytes:find "^\0*$" and "zeros" or "no known magic number"
  return M.dump(fs, place.off_bytes, bytes, ("block %d (group %d, block %d): %s"):format(
    place.fsblock, place.ag, place.agbno, what))
end

---A block as a view: what its magic number says it is, else its bytes.
---@param fs brim.xfs.Inspector
---@param place brim.xfs.Place
---@param bytes string the block
---@return brim.xfs.View
function M.block(fs, place, bytes)
  local magic = u32(bytes, 1)
  local kind = dir.kind(bytes)
  if place.agbno << fs.address.block_log2 < 4 << fs.address.sector_log2 and HEADER_NAMES[magic] then
    return headers(fs, place, bytes)
  elseif TREE_NAMES[magic] then
    return tree.group_block(fs, TREE_NAMES[magic], place, bytes)
  elseif magic == BMBT_MAGIC then
    return tree.file_block(fs, place, bytes)
  elseif magic == LOG_MAGIC then
    return log.record(fs, place.off_bytes, bytes:sub(1, ondisk.log_record.size_bytes),
      ("log record, at block %d"):format(place.fsblock))
  elseif magic >> 16 == INODE_MAGIC then
    return inodes(fs, place, bytes)
  elseif magic >> 16 == QUOTA_MAGIC then
    return dir.quotas(fs, place, bytes)
  elseif kind then
    return file_block(fs, kind, place, bytes)
  end
  return plain(fs, place, bytes)
end

---Bytes as a view.
---@param fs brim.xfs.Inspector
---@param off_bytes integer
---@param bytes string
---@param title string
---@return brim.xfs.View
function M.dump(fs, off_bytes, bytes, title)
  local v = view.new { what = "bytes", fs = fs, off_bytes = off_bytes, bytes = bytes,
    title = title, values = { hex = words.hex(bytes) } }
  v.about.text = ("%s\n%s"):format(title, view.dump(bytes, off_bytes))
  return v
end

return M
