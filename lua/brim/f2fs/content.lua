-- brim.f2fs.content: the blocks of a fresh filesystem but for checkpoint and superblock: root
-- directory, quota files, lost+found, the first block of the NAT. Called by format and checkpoint.
-- Each is bytes, a multiple of 4 KiB, with its block number.
local crc = require "brim.f2fs.crc"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local BLOCK_BYTES <const>, SEGMENT_BLOCKS <const> = 4096, 512
local ROOT_INO <const>, FIRST_FREE_NID <const> = 3, 4
local MODE_ROOT <const>, MODE_LOST <const>, MODE_QUOTA <const> = 0x41ed, 0x41c0, 0x8180
local INLINE_EXTRA <const> = 0x20
local FLAG_IMMUTABLE <const> = 0x10
local TYPE_DIR <const>, SLOT_BYTES <const> = 2, 8
local LOST_FOUND <const> = "lost+found"
local QUOTA_BYTES <const>, QUOTA_BLOCKS <const> = 6 << 10, 2
local QUOTA_MAGICS <const> = { 0xd9c01f11, 0xd9c01927, 0xd9c03f14 } -- quota.h: users, groups, ...
local GRACE_S <const> = 604800
local EXTRA_OFF_BYTES <const> = 360

---@class brim.f2fs.Inode a file or directory of a fresh filesystem
---@field ino integer
---@field place integer its block, counted from that of the root inode
---@field data integer its first data block, counted from that of the root
---@field data_blocks integer
---@field quota? integer 1 users, 2 groups, 3 projects
---@field name? string

---What there is of files: the root, a file for each kind of quota, lost+found.
---@param g brim.f2fs.Geometry
---@return brim.f2fs.Inode[]
function M.inodes(g)
  local list, data = { { ino = ROOT_INO, place = 0, data = 0, data_blocks = 1 } }, 1
  local function add(inode)
    inode.ino, inode.place, inode.data = FIRST_FREE_NID + #list - 1, #list, data
    data = data + inode.data_blocks
    list[#list + 1] = inode
  end
  local kinds = { g.has.quota_files, g.has.quota_files, g.has.project_quota }
  for kind = 1, 3 do
    if kinds[kind] then
      add { quota = kind, data_blocks = QUOTA_BLOCKS }
    end
  end
  if g.has.lost_found then
    add { name = LOST_FOUND, data_blocks = 1 }
  end
  return list
end

---Block of the root inode, and of the root directory: where the hot logs begin.
---@param g brim.f2fs.Geometry
---@return integer node_block
---@return integer data_block
function M.hot_blocks(g)
  return g.main_block + g.node_logs[1] * SEGMENT_BLOCKS,
    g.main_block + g.data_logs[1] * SEGMENT_BLOCKS
end

-- Extra attributes reach as far as the last feature that has one.
local function extra_bytes(g)
  local has = g.has
  return has.compression and 36 or has.inode_crtime and 24 or has.inode_checksum and 12
    or has.project_quota and 8 or 4
end

-- The extra attributes and the addresses behind them, as words of i_addr.
local function addresses(g, inode, o)
  local words = {}
  if g.has.extra_attr then
    local is_timed = g.has.inode_crtime and not inode.quota
    local bytes = ondisk.extra:encode { i_extra_isize = extra_bytes(g),
      i_crtime = is_timed and o.time_s or nil }
    for at = 1, extra_bytes(g), 4 do
      words[#words + 1] = ("<I4"):unpack(bytes, at)
    end
  end
  local _, data = M.hot_blocks(g)
  for i = 0, inode.data_blocks - 1 do
    words[#words + 1] = data + inode.data + i
  end
  return words
end

local function values_of(g, inode, o)
  local node_block = M.hot_blocks(g)
  local v = { i_uid = o.uid, i_gid = o.gid, i_atime = o.time_s, i_ctime = o.time_s,
    i_mtime = o.time_s, i_blocks = 1 + inode.data_blocks, i_addr = addresses(g, inode, o),
    i_inline = g.has.extra_attr and INLINE_EXTRA or nil,
    footer = { nid = inode.ino, ino = inode.ino, cp_ver = 1,
      next_blkaddr = node_block + inode.place + 1 } }
  if inode.quota then
    v.i_mode, v.i_links, v.i_size, v.i_flags = MODE_QUOTA, 1, QUOTA_BYTES, FLAG_IMMUTABLE
    -- As mkfs.f2fs counts: by the kind, whether or not the others are there.
    v.footer.next_blkaddr = node_block + inode.quota + 1
    return v
  end
  v.i_size, v.i_current_depth, v.i_links = BLOCK_BYTES, 1, 2
  v.i_mode = inode.name and MODE_LOST or MODE_ROOT
  if inode.name then
    v.i_pino, v.i_namelen, v.i_name = ROOT_INO, #inode.name, inode.name
  elseif g.has.lost_found then
    v.i_links = 3
  end
  return v
end

local function inode_block(g, inode, o)
  local bytes = ondisk.inode:encode(values_of(g, inode, o))
  if g.has.inode_checksum then
    bytes = crc.put(bytes, EXTRA_OFF_BYTES + ondisk.extra:field("i_inode_checksum").off_bytes,
      crc.inode(crc.seed(o.uuid_bytes), bytes))
  end
  return bytes
end

-- A block of a directory: names in slots of 8 bytes.
local function directory(names)
  local entries, slots, used = {}, {}, 0
  for _, name in ipairs(names) do
    local count = (#name[1] + SLOT_BYTES - 1) // SLOT_BYTES
    entries[#slots + 1] = { hash_code = crc.hash(name[1]), ino = name[2], name_len = #name[1],
      file_type = TYPE_DIR }
    for i = 1, count do
      entries[#slots + 1] = entries[#slots + 1] or {}
      used = used | 1 << #slots
      slots[#slots + 1] = name[1]:sub((i - 1) * SLOT_BYTES + 1, i * SLOT_BYTES)
    end
  end
  for i, slot in ipairs(slots) do
    slots[i] = slot .. ("\0"):rep(SLOT_BYTES - #slot)
  end
  return ondisk.dentries:encode { dentry_bitmap = ("<I4"):pack(used), dentry = entries,
    filename = table.concat(slots) }
end

local function directory_of(inode, inodes)
  local names = { { ".", inode.ino }, { "..", ROOT_INO } }
  local last = inodes[#inodes]
  if not inode.name and last.name then
    names[3] = { last.name, last.ino }
  end
  return directory(names)
end

-- A quota file with a tree of one entry: version 1 of its format (quotaio_tree.h).
local function quota_file(g, inode, o)
  local files = g.has.lost_found and 2 or 1
  local bytes = ("\0"):rep(QUOTA_BLOCKS * BLOCK_BYTES)
  local function put(at, text)
    bytes = bytes:sub(1, at) .. text .. bytes:sub(at + #text + 1)
  end
  put(0, ("<I4I4I4I4I4I4I4I4"):pack(QUOTA_MAGICS[inode.quota], 1, GRACE_S, GRACE_S, 0, 6, 0, 5))
  for level = 2, 5 do
    put(1024 * (level - 1), string.char(level))
  end
  put(5120 + 8, "\1")
  local id = ({ o.uid, o.gid, 0 })[inode.quota]
  put(5136, ("<I4I4I8I8I8I8I8I8"):pack(id, 0, 0, 0, files, 0, 0, files * BLOCK_BYTES))
  return bytes
end

local function nat_block(g, inodes)
  local node_block = M.hot_blocks(g)
  local entries = { {}, { ino = 1, block_addr = 1 }, { ino = 2, block_addr = 1 } }
  for _, inode in ipairs(inodes) do
    if not inode.name then -- lost+found is in the journal alone
      entries[inode.ino + 1] = { ino = inode.ino, block_addr = node_block + inode.place }
    end
  end
  return ondisk.nat:encode { entries = entries }
end

---All these blocks.
---@param g brim.f2fs.Geometry
---@param o table time_s, uid, gid, uuid_bytes
---@return table[] pieces name, block, bytes
function M.pieces(g, o)
  local inodes, pieces = M.inodes(g), {}
  local node_block, data_block = M.hot_blocks(g)
  local function add(name, block, bytes)
    pieces[#pieces + 1] = { name = name, block = block, bytes = bytes }
  end
  for _, inode in ipairs(inodes) do
    add("inode", node_block + inode.place, inode_block(g, inode, o))
    if inode.quota then
      add("quota file", data_block + inode.data, quota_file(g, inode, o))
    else
      add("directory", data_block + inode.data, directory_of(inode, inodes))
    end
  end
  -- So that no chain of an older filesystem is rolled forward.
  if not g.has.ro then
    add("warm log", g.main_block + g.node_logs[2] * SEGMENT_BLOCKS, ("\0"):rep(BLOCK_BYTES))
  end
  add("nat", g.nat_block, nat_block(g, inodes))
  return pieces
end

return M
