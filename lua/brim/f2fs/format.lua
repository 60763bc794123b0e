-- brim.f2fs.format: a geometry -> the plans of a fresh F2FS, one for each device. Pure: it writes
-- nothing. Called by brim.f2fs. Phases: the old superblocks go first and the new ones come last,
-- behind tables, nodes and checkpoints, each after a flush.
local checkpoint = require "brim.f2fs.checkpoint"
local content = require "brim.f2fs.content"
local layout = require "brim.layout"
local ondisk = require "brim.f2fs.ondisk"
local plan = require "brim.plan"
local superblock = require "brim.f2fs.superblock"

local M = {}

local BLOCK_LOG2 <const>, SEGMENT_BLOCKS <const> = 12, 512
local BLOCK_BYTES <const> = 1 << BLOCK_LOG2
local WIPE_BLOCKS <const> = 1024 -- what mkfs.f2fs -f zeroes of another filesystem

-- Adds a run of zeros, cut where devices end.
local function zeros(pieces, g, name, block, blocks)
  for i, device in ipairs(g.devices) do
    local from = math.max(block, device.start_block)
    local till = math.min(block + blocks, device.start_block + device.blocks)
    if from < till then
      pieces[#pieces + 1] = { name = name, device = i, block = from, zero_blocks = till - from }
    end
  end
end

local function device_of(g, block)
  for i, device in ipairs(g.devices) do
    if block < device.start_block + device.blocks then
      return i
    end
  end
  return #g.devices
end

-- The copies A of the tables; the copies B count once a bitmap says so, and are never written.
local function tables(g)
  local pieces = {}
  zeros(pieces, g, "SIT", g.sit_block, g.sit_segments // 2 * SEGMENT_BLOCKS)
  return pieces
end

local function lay_tables(p, g, i)
  for _, piece in ipairs(tables(g)) do
    if piece.device == i then
      p:zero(piece.block - g.devices[i].start_block << BLOCK_LOG2,
        piece.zero_blocks << BLOCK_LOG2, piece.name)
    end
  end
  for k = 0, g.nat_segments // 2 - 1 do
    local block = g.nat_block + 2 * k * SEGMENT_BLOCKS
    if device_of(g, block) == i then
      p:zero(block - g.devices[i].start_block << BLOCK_LOG2, SEGMENT_BLOCKS << BLOCK_LOG2, "NAT")
    end
  end
end

local function lay(p, g, i, pieces)
  local start = g.devices[i].start_block
  for _, piece in ipairs(pieces) do
    if device_of(g, piece.block) == i then
      local at = piece.block - start << BLOCK_LOG2
      if piece.zero_blocks then
        p:zero(at, piece.zero_blocks << BLOCK_LOG2, piece.name)
      else
        p:put(layout.bytes(at, piece.bytes, piece.name))
      end
    end
  end
end

-- The phase 'signature' of a device: superblocks, or all that another filesystem may be known by.
local function erase(p, i, device_bytes, o)
  local bytes = (o.wipe and i == 1 and WIPE_BLOCKS or 2) * BLOCK_BYTES
  if i == 1 then
    p:zero(0, math.min(bytes, device_bytes & -BLOCK_BYTES), "old superblocks")
  end
end

---Build the plans of a fresh filesystem.
---@param g brim.f2fs.Geometry
---@param o table uuid, uuid_bytes, time_s, uid, gid, label, extensions, cold_count, kernel, strict,
--- encoding, version (of the checkpoint), trimmed, wipe (another filesystem is to be erased)
---@return brim.Plan[] plans of the devices, not sealed yet
function M.plans(g, o)
  local sb = superblock.bytes(g, o)
  local block = ("\0"):rep(ondisk.SB_OFF_BYTES) .. sb
  local plans = {}
  for i, device in ipairs(g.devices) do
    local p = plan.new { name = "f2fs", size_bytes = device.size_bytes }
    p:phase "signature"
    erase(p, i, device.size_bytes, o)
    p:phase "tables"
    lay_tables(p, g, i)
    p:phase "nodes"
    lay(p, g, i, content.pieces(g, o))
    p:phase "checkpoint"
    lay(p, g, i, checkpoint.pieces(g, o))
    p:phase "superblock"
    if i == 1 then
      p:put(layout.bytes(0, block .. block, "superblocks"))
    end
    plans[i] = p
  end
  return plans
end

return M
