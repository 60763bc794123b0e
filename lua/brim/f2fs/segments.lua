-- brim.f2fs.segments: the whole SIT of a volume: for each segment of the main area its type, how
-- many of its blocks are valid, and which. Called by check and the segment map. Free segments that
-- the SIT holds only zeros for cost nothing.
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local SEGMENT_BLOCKS <const> = 512
local SIT_PER_BLOCK <const>, ENTRY_BYTES <const> = 55, 74
local COUNT_MASK <const>, TYPE_SHIFT <const> = 0x3ff, 10
local ENTRY <const> = "<I2c64I8"
local EMPTY <const> = ("\0"):rep(64)

---@class brim.f2fs.Segments
---@field count integer
---@field valid table<integer, integer> blocks, of those that are not 0
---@field kind table<integer, integer> 0..5, of those with an entry that is not 0
---@field map table<integer, string> 64 bytes, of those with valid blocks

-- Bits set in 64 bytes.
local function bits_in(map)
  local count = 0
  for i = 1, 57, 8 do
    local v = ("<i8"):unpack(map, i)
    v = v - (v >> 1 & 0x5555555555555555)
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333)
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f
    count = count + (v * 0x0101010101010101 >> 56)
  end
  return count
end

local function take(s, segment, vblocks, map, found)
  local valid, kind = vblocks & COUNT_MASK, vblocks >> TYPE_SHIFT
  if segment >= s.count then
    if vblocks ~= 0 then
      found(segment, "it lies past the last segment, %d", s.count - 1)
    end
    return
  end
  s.kind[segment] = kind
  if kind > 5 then
    found(segment, "its type is %d", kind)
  end
  local bits = bits_in(map)
  if bits ~= valid then
    found(segment, "%d valid blocks, the map has %d", valid, bits)
  end
  s.valid[segment] = valid > 0 and valid or nil
  s.map[segment] = bits > 0 and map or nil
end

---Read all of it.
---@param volume brim.f2fs.Volume
---@param found? fun(segment: integer, why: string, ...: any) called for what is wrong
---@return brim.f2fs.Segments? segments
---@return brim.Error? err
function M.read(volume, found)
  found = found or function() end
  local s = { count = volume.sb.segment_count_main, valid = {}, kind = {}, map = {} }
  local blocks = (s.count + SIT_PER_BLOCK - 1) // SIT_PER_BLOCK
  local ok, err = volume:each_block("sit", blocks * SIT_PER_BLOCK, function(first, bytes)
    for i = 0, SIT_PER_BLOCK - 1 do
      local vblocks, map, mtime = ENTRY:unpack(bytes, i * ENTRY_BYTES + 1)
      if (vblocks ~= 0 or mtime ~= 0 or map ~= EMPTY) and not volume.sit_journal[first + i] then
        take(s, first + i, vblocks, map, found)
      end
    end
  end)
  if not ok then
    return nil, err
  end
  for segment, entry in pairs(volume.sit_journal) do
    take(s, segment, entry.vblocks, entry.valid_map, found)
  end
  return s
end

---Is a block of the volume valid, as the SIT has it?
---@param s brim.f2fs.Segments
---@param volume brim.f2fs.Volume
---@param block integer
---@return boolean? is_valid nil: it is not in the main area
---@return integer? segment
function M.is_valid(s, volume, block)
  local at = block - volume.sb.main_blkaddr
  if at < 0 or at >= s.count * SEGMENT_BLOCKS then
    return nil
  end
  local segment, place = at // SEGMENT_BLOCKS, at % SEGMENT_BLOCKS
  local map = s.map[segment]
  return map ~= nil and map:byte((place >> 3) + 1) >> (7 - (place & 7)) & 1 == 1, segment
end

---Name a type.
---@param kind integer?
---@return string
function M.name(kind)
  return ondisk.TYPES[kind] or "?"
end

return M
