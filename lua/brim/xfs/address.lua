-- brim.xfs.address: the addresses of an XFS: group blocks, fs blocks (the group in the high bits),
-- 512-byte sectors ("daddr"), inode numbers, bytes of the volume. Pure arithmetic on a superblock,
-- which may be damaged: of() refuses what no address can be made of. Called by inspect.
-- Whatever lies outside of the filesystem is nil and the reason.
local core = require "brim.core"

local M = {}

---@class brim.xfs.Address
---@field block_log2 integer
---@field sector_log2 integer
---@field inode_log2 integer
---@field slot_log2 integer inodes to a block
---@field ag_count integer
---@field ag_blocks integer of every group but the last
---@field ag_log2 integer ag_blocks rounded up
---@field last_ag_blocks integer
---@field ag_bytes integer
local Address = {}
Address.__index = Address
Address.__name = "brim.xfs.address"

---@class brim.xfs.Place where something lies
---@field ag integer
---@field agbno integer
---@field fsblock integer
---@field daddr integer
---@field off_bytes integer on the volume

local function is_log2(v, log2, least, most)
  return log2 >= least and log2 <= most and v == 1 << log2
end

-- What an address needs of the superblock: a test, and what is wrong where it fails.
local NEEDS <const> = {
  { function(sb) return is_log2(sb.blocksize, sb.blocklog, 9, 16) end,
    "blocksize %d and blocklog %d give no block size", "blocksize", "blocklog" },
  { function(sb) return is_log2(sb.sectsize, sb.sectlog, 9, sb.blocklog) end,
    "sectsize %d and sectlog %d give no sector size", "sectsize", "sectlog" },
  { function(sb) return is_log2(sb.inodesize, sb.inodelog, 8, math.min(11, sb.blocklog)) end,
    "inodesize %d and inodelog %d give no inode size", "inodesize", "inodelog" },
  { function(sb) return sb.agcount > 0 and sb.agblocks > 0 end,
    "agcount %d and agblocks %d leave no group", "agcount", "agblocks" },
  { function(sb) return sb.agblklog <= 32 and sb.agblocks <= 1 << sb.agblklog end,
    "agblocks %d does not fit the %d bits of agblklog", "agblocks", "agblklog" },
}

---Make the addresses of a filesystem.
---@param sb table the superblock's fields
---@return brim.xfs.Address? address
---@return string? why what is wrong with the superblock
function M.of(sb)
  for _, need in ipairs(NEEDS) do
    if not need[1](sb) then
      return nil, need[2]:format(sb[need[3]], sb[need[4]])
    end
  end
  local rest = sb.dblocks - (sb.agcount - 1) * sb.agblocks
  return setmetatable({ block_log2 = sb.blocklog, sector_log2 = sb.sectlog,
    inode_log2 = sb.inodelog, slot_log2 = sb.blocklog - sb.inodelog, ag_count = sb.agcount,
    ag_blocks = sb.agblocks, ag_log2 = sb.agblklog, ag_bytes = sb.agblocks << sb.blocklog,
    last_ag_blocks = rest > 0 and rest <= sb.agblocks and rest or sb.agblocks }, Address)
end

---The blocks of a group.
---@param ag integer
---@return integer
function Address:length(ag)
  return ag == self.ag_count - 1 and self.last_ag_blocks or self.ag_blocks
end

---Is there such a group?
---@param ag integer
---@return true? ok
---@return string? why
function Address:has_group(ag)
  if math.type(ag) ~= "integer" or ag < 0 or ag >= self.ag_count then
    return nil, ("group %s is out of range, the groups are 0 .. %d"):format(ag, self.ag_count - 1)
  end
  return true
end

---Where bytes of a group lie.
---@param ag integer
---@param off_bytes? integer within the group; default 0
---@return integer? off_bytes on the volume
---@return string? why
function Address:group_bytes(ag, off_bytes)
  local ok, why = self:has_group(ag)
  if not ok then
    return nil, why
  end
  local start = core.mul(ag, self.ag_bytes)
  local at = start and core.add(start, off_bytes or 0)
  if not at then
    return nil, ("group %d lies past the largest offset, 2^63-1"):format(ag)
  end
  return at
end

---Where a block of a group lies.
---@param ag integer
---@param agbno integer
---@return brim.xfs.Place? place
---@return string? why
function Address:group_block(ag, agbno)
  local ok, why = self:has_group(ag)
  if not ok then
    return nil, why
  elseif math.type(agbno) ~= "integer" or agbno < 0 or agbno >= self:length(ag) then
    return nil, ("block %s is out of range, the blocks of group %d are 0 .. %d"):format(agbno, ag,
      self:length(ag) - 1)
  end
  local at
  at, why = self:group_bytes(ag, agbno << self.block_log2)
  if not at then
    return nil, why
  end
  return { ag = ag, agbno = agbno, fsblock = ag << self.ag_log2 | agbno, daddr = at >> 9,
    off_bytes = at }
end

---Where a block of the filesystem lies.
---@param fsblock integer group in the high bits
---@return brim.xfs.Place? place
---@return string? why
function Address:block(fsblock)
  local ag, agbno = fsblock >> self.ag_log2, fsblock & (1 << self.ag_log2) - 1
  if ag >= self.ag_count or ag < 0 then
    return nil, ("block %d lies in group %d, the groups are 0 .. %d"):format(fsblock, ag,
      self.ag_count - 1)
  end
  return self:group_block(ag, agbno)
end

---The block that holds a byte of the volume.
---@param off_bytes integer
---@return brim.xfs.Place? place
---@return string? why
function Address:at(off_bytes)
  local ag = off_bytes // self.ag_bytes
  if off_bytes < 0 or ag >= self.ag_count then
    return nil, ("byte %d lies past the last group, %d"):format(off_bytes, self.ag_count - 1)
  end
  return self:group_block(ag, off_bytes % self.ag_bytes >> self.block_log2)
end

---The block that holds a 512-byte sector.
---@param daddr integer
---@return brim.xfs.Place? place
---@return string? why
function Address:sector(daddr)
  if daddr < 0 or daddr > math.maxinteger >> 9 then
    return nil, ("sector %d lies past the largest offset, 2^63-1"):format(daddr)
  end
  return self:at(daddr << 9)
end

---Where an inode lies: its block, and off_bytes of the inode itself.
---@param ino integer
---@return brim.xfs.Place? place
---@return string? why
function Address:inode(ino)
  local place, why = self:block(ino >> self.slot_log2)
  if not place or ino < 0 then
    return nil, ("inode %d does not exist: %s"):format(ino, why or "it is past 63 bits")
  end
  local slot = ino & (1 << self.slot_log2) - 1
  place.off_bytes = place.off_bytes + (slot << self.inode_log2)
  return place
end

---The number of the inode at a byte of the volume.
---@param off_bytes integer
---@return integer? ino
---@return string? why
function Address:inode_at(off_bytes)
  local place, why = self:at(off_bytes)
  if not place then
    return nil, why
  end
  return place.fsblock << self.slot_log2 | (off_bytes - place.off_bytes) >> self.inode_log2
end

---An inode's number within its group and the group.
---@param ag integer
---@param agino integer
---@return integer ino
function Address:inode_number(ag, agino)
  return ag << self.ag_log2 + self.slot_log2 | agino
end

return M
