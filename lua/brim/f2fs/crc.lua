-- brim.f2fs.crc: the checksums of F2FS, a CRC-32 register that is not inverted and begins with the
-- magic number (or, of inodes, with the volume's UUID), and the hash of names. Called by format and
-- check. Offsets are bytes.
local core = require "brim.core"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local CRC_AT_END <const>, SB_CRC_OFF <const> = 4092, 3068
local INODE_CRC_OFF <const>, GENERATION_OFF <const>, INO_OFF <const> = 368, 68, 4076
local ZERO4 <const> = "\0\0\0\0"

---The checksum of a superblock.
---@param bytes string 3072 bytes
---@return integer
function M.sb(bytes)
  return core.crc("crc32", ondisk.MAGIC, bytes:sub(1, SB_CRC_OFF))
end

---The checksum of a checkpoint block: of what is before it and, unless it is the end, behind it.
---@param bytes string 4096 bytes
---@param off_bytes integer of the checksum
---@return integer
function M.cp(bytes, off_bytes)
  local crc = core.crc("crc32", ondisk.MAGIC, bytes:sub(1, off_bytes))
  if off_bytes < CRC_AT_END then
    crc = core.crc("crc32", crc, bytes:sub(off_bytes + 5))
  end
  return crc
end

---What checksums of inodes begin with.
---@param uuid string 16 bytes
---@return integer
function M.seed(uuid)
  return core.crc("crc32", 0xffffffff, uuid)
end

---The checksum of an inode, taken as zero itself.
---@param seed integer
---@param bytes string 4096 bytes
---@return integer
function M.inode(seed, bytes)
  local crc = core.crc("crc32", seed, bytes:sub(INO_OFF + 1, INO_OFF + 4))
  crc = core.crc("crc32", crc, bytes:sub(GENERATION_OFF + 1, GENERATION_OFF + 4))
  crc = core.crc("crc32", crc, bytes:sub(1, INODE_CRC_OFF))
  crc = core.crc("crc32", crc, ZERO4)
  return core.crc("crc32", crc, bytes:sub(INODE_CRC_OFF + 5))
end

---Put a checksum, or another number of 32 bits, into bytes.
---@param bytes string
---@param off_bytes integer
---@param value integer
---@return string
function M.put(bytes, off_bytes, value)
  return bytes:sub(1, off_bytes) .. ("<I4"):pack(value) .. bytes:sub(off_bytes + 5)
end

local U32 <const> = 0xffffffff

-- 16 rounds of TEA (D. Wheeler, R. Needham), as ext3's half of it.
local function tea(buf, a, b, c, d)
  local b0, b1, sum = buf[1], buf[2], 0
  for _ = 1, 16 do
    sum = sum + 0x9e3779b9 & U32
    b0 = b0 + ((b1 << 4) + a & U32 ~ b1 + sum & U32 ~ (b1 >> 5) + b & U32) & U32
    b1 = b1 + ((b0 << 4) + c & U32 ~ b0 + sum & U32 ~ (b0 >> 5) + d & U32) & U32
  end
  buf[1], buf[2] = buf[1] + b0 & U32, buf[2] + b1 & U32
end

-- Four words of the first 16 bytes of what is left of a name.
local function words(name, at)
  local len = #name - at
  local pad = len | len << 8
  pad = pad | pad << 16 & U32
  local list, value = {}, pad
  local last = math.min(len, 16)
  for i = 0, last - 1 do
    value = i % 4 == 0 and pad or value
    value = name:byte(at + i + 1) + (value << 8) & U32
    if i % 4 == 3 then
      list[#list + 1] = value
      value = pad
    end
  end
  if #list < 4 then
    list[#list + 1] = value
  end
  while #list < 4 do
    list[#list + 1] = pad
  end
  return table.unpack(list)
end

---The hash of a name in a directory that does not fold case; "." and ".." have none.
---@param name string
---@return integer
function M.hash(name)
  if name == "." or name == ".." then
    return 0
  end
  local buf, at = { 0x67452301, 0xefcdab89 }, 0
  repeat
    tea(buf, words(name, at))
    at = at + 16
  until #name - at <= 0
  return buf[1]
end

return M
