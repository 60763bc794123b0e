-- brim.f2fs.check_nodes: the nodes of an F2FS, and what they address. The NAT says where each is;
-- segments of nodes are read whole, in order, and each node held against the NAT: who it is, and
-- that every block it addresses is valid, of a data segment, and nobody else's. Called by check.
-- Memory: some 50 bytes for each node, and as much for each block of data up to a limit.
local crc = require "brim.f2fs.crc"
local ondisk = require "brim.f2fs.ondisk"
local segments_of = require "brim.f2fs.segments"
local uuid = require "brim.uuid"

local M = {}

local BLOCK_BYTES <const>, SEGMENT_BLOCKS <const> = 4096, 512
local NAT_PER_BLOCK <const>, NAT_ENTRY <const>, NAT_ENTRY_BYTES <const> = 455, "<BI4I4", 9
local NEW_ADDR <const>, COMPRESSED <const> = 0xffffffff, 0xfffffffe
local NODE_INO <const>, META_INO <const> = 1, 2
local FIRST_NODE_TYPE <const> = 3
local FOOTER_OFF <const> = 4072
local INODE_ADDRS <const>, NODE_ADDRS <const> = 923, 1018
local ADDR_OFF <const>, CRC_OFF <const> = 360, 368
local INLINE_XATTR <const>, INLINE_DATA <const>, INLINE_DENTRY <const> = 0x1, 0x2, 0x4
local INLINE_EXTRA <const> = 0x20
local DEFAULT_XATTR_ADDRS <const> = 50
local MOST_XATTR_ADDRS <const> = 903 -- MAX_INLINE_XATTR_SIZE of f2fs.h
local MOST_EXTRA <const> = 9 -- words of all extra attributes there are
local XATTR_PLACE <const> = 0x1fffffff
local MOST_OWNERS <const> = 8 << 20 -- blocks of data whose owners are kept
local MODE_MASK <const>, MODE_REGULAR <const> = 0xf000, 0x8000
local MODE_DIRECTORY <const> = 0x4000
local MODES <const> = { [0x1000] = true, [0x2000] = true, [0x4000] = true, [0x6000] = true,
  [0x8000] = true, [0xa000] = true, [0xc000] = true }

-- ------------------------------------------------------------------------- NAT

local function take_entry(c, nid, version, ino, block)
  if block == 0 then
    return
  elseif nid == NODE_INO or nid == META_INO then
    c.report:expect("nat", nid, "block_addr", 1, block)
    return
  elseif nid == 0 then
    c.report:fault("nat", nid, "number 0 is in use, at block %d", block)
    return
  end
  c.counts.nodes = c.counts.nodes + 1
  c.counts.inodes = c.counts.inodes + (nid == ino and 1 or 0)
  local is_valid, segment = segments_of.is_valid(c.segments, c.volume, block)
  if is_valid == nil then
    c.report:fault("nat", nid, "block %d is not in the main area", block)
  elseif not is_valid then
    c.report:fault("nat", nid, "block %d of segment %d is free, as the SIT has it", block, segment)
  elseif (c.segments.kind[segment] or 0) < FIRST_NODE_TYPE then
    c.report:fault("nat", nid, "block %d lies in segment %d, of %s", block, segment,
      segments_of.name(c.segments.kind[segment]))
  elseif c.nid_of[block] then
    c.report:fault("nat", nid, "block %d is that of node %d, too", block, c.nid_of[block])
  else
    c.nid_of[block], c.ino_of[nid] = nid, ino
    c.version_of[nid] = version > 0 and version or nil
  end
  if ino == 0 then
    c.report:fault("nat", nid, "its inode has number 0")
  end
end

---Read the NAT: each entry in use. Fills c.nid_of (by block), c.ino_of and c.version_of (by nid;
---versions but 0).
---@param c table
---@return true? ok
---@return brim.Error? err
function M.read_nat(c)
  c.nid_of, c.ino_of, c.version_of = {}, {}, {}
  local journal = c.volume.nat_journal
  local most = c.volume:max_nids()
  local ok, err = c.volume:each_block("nat", most, function(first, bytes)
    for i = 0, NAT_PER_BLOCK - 1 do
      local version, ino, block = NAT_ENTRY:unpack(bytes, i * NAT_ENTRY_BYTES + 1)
      if block ~= 0 and not journal[first + i] then
        take_entry(c, first + i, version, ino, block)
      end
    end
  end)
  for nid, entry in pairs(journal) do
    if nid >= most then
      c.report:fault("nat", nid, "in the journal, past the last number, %d", most - 1)
    else
      take_entry(c, nid, entry.version, entry.ino, entry.block_addr)
    end
  end
  return ok, err
end

-- ------------------------------------------------------------------- addresses

local function address(c, nid, place, block)
  if block == 0 or block == COMPRESSED then
    return
  elseif block == NEW_ADDR then
    c.counts.reserved_blocks = c.counts.reserved_blocks + 1
    return
  end
  c.counts.data_blocks = c.counts.data_blocks + 1
  local is_valid, segment = segments_of.is_valid(c.segments, c.volume, block)
  if is_valid == nil then
    c.report:fault("node", nid, "address %d: block %d is not in the main area", place, block)
  elseif not is_valid then
    c.report:fault("node", nid, "address %d: block %d of segment %d is free, as the SIT has it",
      place, block, segment)
  elseif (c.segments.kind[segment] or 0) >= FIRST_NODE_TYPE then
    c.report:fault("node", nid, "address %d: block %d lies in segment %d, of %s", place, block,
      segment, segments_of.name(c.segments.kind[segment]))
  elseif c.owner_of then
    local other = c.owner_of[block]
    if other then
      c.report:fault("node", nid, "address %d: block %d is that of node %d, too", place, block,
        other >> 10)
    end
    c.owner_of[block] = nid << 10 | place
  end
end

local function addresses(c, nid, bytes, off, first, count)
  local at = off + 1
  for place = first, first + count - 1 do
    local block = ("<I4"):unpack(bytes, at)
    if block ~= 0 then
      address(c, nid, place, block)
    end
    at = at + 4
  end
end

-- How many words of i_addr are extra attributes, and how many at its end extended attributes.
local function room_of(c, inline, bytes)
  local extra, xattr = 0, 0
  if inline & INLINE_EXTRA ~= 0 then
    extra = ("<I2"):unpack(bytes, ADDR_OFF + 1) // 4
  end
  if c.volume.has.flexible_inline_xattr then
    xattr = inline & INLINE_EXTRA ~= 0 and ("<I2"):unpack(bytes, ADDR_OFF + 3) or 0
  elseif inline & (INLINE_XATTR | INLINE_DENTRY) ~= 0 then
    xattr = DEFAULT_XATTR_ADDRS
  end
  return extra, xattr
end

local function check_inode(c, nid, bytes)
  local mode, _, inline = ("<I2BB"):unpack(bytes)
  if not MODES[mode & MODE_MASK] then
    c.report:fault("inode", nid, "its mode is 0x%x, no kind of file", mode)
  end
  if nid == c.volume.sb.root_ino and mode & MODE_MASK ~= MODE_DIRECTORY then
    c.report:fault("inode", nid, "the root is no directory")
  end
  local extra, xattr = room_of(c, inline, bytes)
  if c.volume.has.flexible_inline_xattr and inline & INLINE_XATTR ~= 0
    and (xattr == 0 or xattr > MOST_XATTR_ADDRS) then
    c.report:fault("inode", nid, "%d words of attributes kept inline", xattr)
  end
  if extra + xattr > INODE_ADDRS or extra > MOST_EXTRA then
    c.report:fault("inode", nid, "attributes of %d and %d words do not fit", extra, xattr)
    return
  end
  if c.seed and inline & INLINE_EXTRA ~= 0 then
    c.report:expect("inode", nid, "i_inode_checksum", crc.inode(c.seed, bytes),
      (("<I4"):unpack(bytes, CRC_OFF + 1)))
  end
  local is_inline = inline & INLINE_DATA ~= 0 and mode & MODE_MASK ~= MODE_DIRECTORY
    or inline & INLINE_DENTRY ~= 0
  -- The first word stays empty: it would be an address.
  if is_inline and ("<I4"):unpack(bytes, ADDR_OFF + 4 * extra + 1) ~= 0 then
    c.report:fault("inode", nid, "what is kept inline begins with an address, %d",
      (("<I4"):unpack(bytes, ADDR_OFF + 4 * extra + 1)))
  end
  if is_inline and mode & MODE_MASK ~= MODE_REGULAR and mode & MODE_MASK ~= MODE_DIRECTORY
    and mode & MODE_MASK ~= 0xa000 then
    c.report:fault("inode", nid, "a file of mode 0x%x has nothing to keep inline", mode)
  elseif not is_inline then
    addresses(c, nid, bytes, ADDR_OFF + 4 * extra, 0, INODE_ADDRS - extra - xattr)
  end
end

-- Does a node at this place in a file (counted in nodes) hold numbers of nodes, not addresses?
local function is_indirect(place)
  if place == 3 or place == 4 + NODE_ADDRS or place == 5 + 2 * NODE_ADDRS then
    return true
  end
  place = place - 6 - 2 * NODE_ADDRS
  return place >= 0 and place % (NODE_ADDRS + 1) == 0
end

local function check_numbers(c, nid, bytes)
  for i = 0, NODE_ADDRS - 1 do
    local child = ("<I4"):unpack(bytes, i * 4 + 1)
    if child ~= 0 and not c.ino_of[child] then
      c.report:fault("node", nid, "address %d: there is no node %d", i, child)
    elseif child ~= 0 and c.ino_of[child] ~= c.ino_of[nid] then
      c.report:fault("node", nid, "address %d: node %d is of inode %d", i, child, c.ino_of[child])
    end
  end
end

local function check_node(c, nid, bytes)
  c.counts.nodes_read = c.counts.nodes_read + 1
  local found, ino, flag = ("<I4I4I4"):unpack(bytes, FOOTER_OFF + 1)
  if found ~= nid or ino ~= c.ino_of[nid] then
    c.report:fault("node", nid, "its footer is of node %d, inode %d; the NAT says inode %d", found,
      ino, c.ino_of[nid])
  elseif nid == ino then
    check_inode(c, nid, bytes)
  elseif not c.ino_of[ino] then
    c.report:fault("node", nid, "there is no inode %d", ino)
  elseif flag >> 3 == XATTR_PLACE then
    return
  elseif is_indirect(flag >> 3) then
    check_numbers(c, nid, bytes)
  else
    addresses(c, nid, bytes, 0, 0, NODE_ADDRS)
  end
end

-- ------------------------------------------------------------------------ walks

local function check_segment(c, segment)
  local first = c.volume.sb.main_blkaddr + segment * SEGMENT_BLOCKS
  local bytes, err = c.volume:read(first, SEGMENT_BLOCKS)
  if not bytes then
    if c.has_more_devices then
      c.unread = c.unread + 1
      return
    end
    error(err, 0)
  end
  for i = 0, SEGMENT_BLOCKS - 1 do
    local block = first + i
    local nid = c.nid_of[block]
    if nid then
      check_node(c, nid, bytes:sub(i * BLOCK_BYTES + 1, (i + 1) * BLOCK_BYTES))
    elseif segments_of.is_valid(c.segments, c.volume, block) then
      c.report:fault("sit", segment, "block %d is valid, and no node's", block)
    end
  end
end

---Read all nodes. Where data is not too much, keeps whose each block of it is in c.owner_of, as
---nid << 10 | place.
---@param c table
function M.read_nodes(c)
  c.owner_of = c.counts.valid_blocks <= MOST_OWNERS and {} or nil
  c.seed = c.volume.has.inode_checksum and crc.seed(uuid.parse(c.volume.sb.uuid)) or nil
  c.unread = 0
  for segment = 0, c.segments.count - 1 do
    if c.segments.valid[segment] and (c.segments.kind[segment] or 0) >= FIRST_NODE_TYPE then
      check_segment(c, segment)
      if not c.tick "nodes" then
        c.stopped = "cancelled"
        return
      end
    end
  end
  if not c.ino_of[c.volume.sb.root_ino] then
    c.report:fault("inode", c.volume.sb.root_ino, "the root directory is missing")
  end
end

-- ------------------------------------------------------------------------- SSA

local function check_summary(c, segment, bytes)
  local is_node = c.segments.kind[segment] >= FIRST_NODE_TYPE
  local first = c.volume.sb.main_blkaddr + segment * SEGMENT_BLOCKS
  local sum = ondisk.ssa:decode(bytes)
  c.report:expect("ssa", segment, "entry_type", is_node and 1 or 0, sum.entry_type)
  for i = 0, SEGMENT_BLOCKS - 1 do
    local block, entry = first + i, sum.entries[i + 1]
    local owner = is_node and c.nid_of[block] or not is_node and c.owner_of and c.owner_of[block]
    if is_node and owner and owner ~= entry.nid then
      c.report:fault("ssa", segment, "entry %d: node %d, it is node %d", i, entry.nid, owner)
    elseif not is_node and owner
      and (owner >> 10 ~= entry.nid or owner & 1023 ~= entry.ofs_in_node) then
      c.report:fault("ssa", segment, "entry %d: node %d, address %d; it is that of node %d, "
        .. "address %d", i, entry.nid, entry.ofs_in_node, owner >> 10, owner & 1023)
    elseif not is_node and owner and entry.version ~= (c.version_of[entry.nid] or 0) then
      c.report:fault("ssa", segment, "entry %d: version %d of node %d, the NAT has %d", i,
        entry.version, entry.nid, c.version_of[entry.nid] or 0)
    elseif not is_node and c.owner_of and not owner and c.unread == 0
      and segments_of.is_valid(c.segments, c.volume, block) then
      c.report:fault("sit", segment, "block %d is valid, and nobody's", block)
    end
  end
end

---Hold the summaries of segments that are no logs against what nodes say.
---@param c table
function M.check_summaries(c)
  local logs = c.volume:logs()
  for segment = 0, c.segments.count - 1 do
    if c.segments.valid[segment] and not logs[segment] then
      local bytes, err = c.volume:read(c.volume.sb.ssa_blkaddr + segment)
      if not bytes then
        error(err, 0)
      end
      check_summary(c, segment, bytes)
      if not c.tick "summaries" then
        c.stopped = "cancelled"
        return
      end
    end
  end
end

return M
