-- brim.f2fs.geometry: options and sizes of devices -> where everything of an F2FS is. Pure. Called
-- by brim.f2fs. The arithmetic is mkfs.f2fs's, of 32 bits where that is; what would divide by zero
-- or wrap there is refused here. Units: blocks of 4 KiB, segments of 2 MiB, sections, zones.
local errors = require "brim.error"
local ondisk = require "brim.f2fs.ondisk"
local versions = require "brim.f2fs.versions"

local M = {}

local BLOCK_LOG2 <const>, SEGMENT_BLOCKS <const> = 12, 512
local SEGMENT_BYTES <const> = SEGMENT_BLOCKS << BLOCK_LOG2
local U32 <const> = 0xffffffff
local MAX_BYTES <const> = 16 << 40 -- block numbers have 32 bits
local MIN_SEGMENTS <const> = 9 -- F2FS_MIN_SEGMENTS
local SIT_PER_BLOCK <const>, NAT_PER_BLOCK <const> = 55, 455
local CP_SEGMENTS <const> = 2
local SUPERBLOCKS_BYTES <const> = 8192
local CP_BITMAP_BYTES <const> = 4092 - 192 -- of a checkpoint block
local MIN_NAT_BITMAP_BYTES <const> = 64
local MAX_SIT_BITMAP_BYTES <const> = 298 * 64 -- of 16 TiB
local NAT_PERCENT <const> = 20 -- of -i
local LOGS <const>, READ_ONLY_LOGS <const> = 6, 2
local FEATURES <const> = ondisk.FEATURES

local function ceil_div(a, b)
  return (a + b - 1) // b
end

local function refuse(fmt, ...)
  error(errors.usage(fmt, ...), 0)
end

-- Devices one behind the other: where each begins, in blocks, and its segments.
local function lay_devices(g, devices)
  local total, start = 0, 0
  for i, device in ipairs(devices) do
    local bytes = device.size_bytes // g.sector_bytes * g.sector_bytes
    local skip_bytes = i == 1 and g.segment0_block << BLOCK_LOG2 or 0
    local segments = (bytes - skip_bytes) // SEGMENT_BYTES
    local blocks = segments * SEGMENT_BLOCKS + (i == 1 and g.segment0_block or 0)
    g.devices[i] = { path = device.path, size_bytes = device.size_bytes, start_block = start,
      blocks = blocks, segments = segments }
    start, total = start + blocks, total + segments
  end
  g.total_segments = total
end

-- Where segment 0 begins; 32 bits hold the size of a zone in mkfs.f2fs, too.
local function align(g)
  local zone_bytes = g.zone_segments * SEGMENT_BYTES & U32
  if zone_bytes == 0 then
    refuse("-s %d -z %d: zones of %d segments: mkfs.f2fs cannot count their bytes; at most 2047 "
      .. "segments to a zone", g.section_segments, g.zone_sections, g.zone_segments)
  end
  local bytes = g.has.ro and SUPERBLOCKS_BYTES
    or ceil_div(SUPERBLOCKS_BYTES, zone_bytes) * zone_bytes
  g.segment0_block = bytes >> BLOCK_LOG2
end

-- Segments of the NAT (of one copy) and blocks of the checkpoint beyond the first for bitmaps.
local function nat(is_large, sit_bitmap_bytes, nat_blocks)
  local sit_bytes = math.min(sit_bitmap_bytes, MAX_SIT_BITMAP_BYTES)
  local segments = ceil_div(nat_blocks, SEGMENT_BLOCKS)
  if is_large then
    segments = math.max(segments * NAT_PERCENT // 100, 1)
    local over = sit_bytes + segments * (SEGMENT_BLOCKS // 8) - CP_BITMAP_BYTES
    return segments, over > 0 and ceil_div(over, 1 << BLOCK_LOG2) or 0
  end
  local room_bytes, payload = CP_BITMAP_BYTES - sit_bytes, 0
  if sit_bytes > CP_BITMAP_BYTES - MIN_NAT_BITMAP_BYTES then
    room_bytes, payload = CP_BITMAP_BYTES, ceil_div(sit_bytes, 1 << BLOCK_LOG2)
  end
  return math.min(segments, room_bytes * 8 // SEGMENT_BLOCKS), payload
end

-- The areas one behind the other. Returns the zones that are left for data and nodes.
local function lay_areas(g)
  local zone = g.zone_segments
  g.segment_count = g.total_segments // zone * zone
  local sit = ceil_div(ceil_div(g.segment_count, SIT_PER_BLOCK), SEGMENT_BLOCKS)
  g.sit_segments = sit * 2
  local rest = g.segment_count - CP_SEGMENTS - g.sit_segments
  if rest <= 0 then
    refuse("the volume of %d segments is too small for its zones of %d", g.total_segments, zone)
  end
  local bitmap_bytes = sit * SEGMENT_BLOCKS // 8
  local blocks = ceil_div(rest * SEGMENT_BLOCKS, NAT_PER_BLOCK)
  local copy
  copy, g.cp_payload = nat(g.large_nat, bitmap_bytes, blocks)
  g.other_nids = nat(not g.large_nat, bitmap_bytes, blocks) * SEGMENT_BLOCKS * NAT_PER_BLOCK
  g.nat_segments = copy * 2
  rest = rest - g.nat_segments
  g.ssa_segments = g.has.ro and 0 or ceil_div(rest + 1, SEGMENT_BLOCKS)
  local meta = CP_SEGMENTS + g.sit_segments + g.nat_segments + g.ssa_segments
  g.ssa_segments = g.ssa_segments + (-meta) % zone
  local meta_zones = ceil_div(meta, zone)
  g.sit_block = g.segment0_block + CP_SEGMENTS * SEGMENT_BLOCKS
  g.nat_block = g.sit_block + g.sit_segments * SEGMENT_BLOCKS
  g.ssa_block = g.nat_block + g.nat_segments * SEGMENT_BLOCKS
  g.main_block = g.segment0_block + meta_zones * zone * SEGMENT_BLOCKS
  g.meta_segments = meta_zones * zone
  return g.segment_count // zone - meta_zones
end

-- Reserved segments of a ratio, as a float: reserve_factor * (100 / o + 1) + 6 sections.
local function reserve(g, percent)
  return (g.version.reserve_factor * (100 / percent + 1) + LOGS)
    * ceil_div(g.usable_segments, g.section_count)
end

local function space_of(g, percent)
  local reserved = reserve(g, percent)
  local over = (g.usable_segments - reserved) * percent / 100
  if g.version.adds_reserve then
    return g.usable_segments - reserved - over
  end
  return over >= 0 and g.usable_segments - math.max(reserved, over)
    - g.version.buffer_sections * g.section_segments or 0
end

-- The ratio that leaves the most; 0 if none leaves any. Steps add up, with their rounding.
local function best_percent(g)
  local percent, last, step = 0.01, 10, 0.01
  if g.main_segments < 256 then
    percent, last, step = 10, 95, 5
  end
  local best, most = 0, 0
  while percent <= last do
    local space = space_of(g, percent)
    if most < space then
      best, most = percent, space
    end
    percent = percent + step
  end
  return best
end

local function to_u32(v)
  return math.tointeger(v < 0 and math.ceil(v) or math.floor(v)) & U32
end

local function overprovision(g, asked_percent)
  g.is_automatic = not asked_percent or asked_percent == 0
  g.best_percent = best_percent(g)
  local percent = g.is_automatic and g.best_percent or asked_percent
  if g.has.ro then
    percent, g.reserved_segments = 0, 0
  elseif percent == 0 then
    refuse("device size is not sufficient: with sections of %d segments no overprovision leaves "
      .. "any of the %d segments of the main area%s", g.section_segments, g.main_segments,
      g.section_segments > 1 and "; smaller sections (-s) would" or "")
  else
    local reserved = reserve(g, percent)
    if reserved > U32 then
      refuse("-o %g: %.0f segments would be reserved; a larger ratio reserves less", percent,
        reserved)
    end
    g.reserved_segments = to_u32(reserved)
  end
  g.overprovision_percent = percent
  if (g.main_segments - LOGS & U32) < g.reserved_segments then
    refuse("device size is not sufficient: %d segments would be reserved (sections of %d, "
      .. "overprovision %.3f %%) of %d", g.reserved_segments, g.section_segments, percent,
      g.main_segments)
  end
end

-- Overprovision as the checkpoint has it.
local function overprovision_segments(g, percent, reserved)
  local v = g.version
  local segments = to_u32((g.usable_segments - reserved & U32) * percent / 100)
  if v.adds_reserve then
    return segments + reserved
  end
  return math.max(segments, reserved) + v.buffer_sections * g.section_segments
end

-- Where the six logs begin, in segments of the main area: { hot, warm, cold } of nodes and of data.
local function lay_logs(g, zones)
  local zone = g.zone_segments
  local function last(n)
    return (n - 1) * zone
  end
  local end_segment = last(zones) + (g.zone_sections - 1) * g.section_segments
  if g.has.ro then
    local split = g.version.splits_read_only
    g.node_logs, g.data_logs = { split and end_segment or 0, 0, 0 }, { split and 0 or 1, 0, 0 }
    return
  elseif g.heap then
    g.node_logs = { end_segment, end_segment - zone, end_segment - 2 * zone }
    g.data_logs = { end_segment - 3 * zone, zone, 0 }
  else
    g.node_logs = { 0, zone, 2 * zone }
    local cold = math.max(last(zones >> 2), 4 * zone)
    g.data_logs = { 3 * zone, math.max(last(zones >> 1), cold + zone), cold }
  end
  local seen = {}
  for _, logs in ipairs { g.node_logs, g.data_logs } do
    for _, segment in ipairs(logs) do
      if seen[segment] then
        g.data_logs, g.node_logs = { 0, zone, 2 * zone }, { 3 * zone, 4 * zone, 5 * zone }
        return
      end
      seen[segment] = true
    end
  end
end

local function check_zones(g, zones)
  local least = g.has.ro and READ_ONLY_LOGS or LOGS
  if zones <= least then
    refuse("device size is not sufficient: %d zones of %d segments are left beside the metadata, "
      .. "more than %d are needed: shrink them (-s, -z)", zones, g.zone_segments, least)
  end
end

-- The checkpoint's words, and the blocks of the bits of the NAT at the end of its segment.
local function count(g)
  g.overprovision_segments = overprovision_segments(g, g.overprovision_percent,
    g.reserved_segments)
  if g.usable_segments <= g.overprovision_segments then
    refuse("not enough segments: %d of overprovision leave nothing of %d", g.overprovision_segments,
      g.usable_segments)
  end
  g.user_blocks = (g.usable_segments - g.overprovision_segments) * SEGMENT_BLOCKS
  g.free_segments = g.usable_segments - (g.has.ro and READ_ONLY_LOGS or LOGS)
  g.pack_blocks = 6 + g.cp_payload
  g.nat_bits_blocks = ceil_div((g.nat_segments << 5 << 1) + 8, 1 << BLOCK_LOG2)
  g.has_nat_bits = g.pack_blocks <= SEGMENT_BLOCKS - g.nat_bits_blocks
  g.max_nids = g.nat_segments // 2 * SEGMENT_BLOCKS * NAT_PER_BLOCK
end

local function begin(o, devices)
  local g = { version = versions.of(o.compat), compat = o.compat or versions.DEFAULT,
    sector_bytes = o.sector_bytes or 512, section_segments = o.section_segments or 1,
    zone_sections = o.zone_sections or 1, large_nat = o.large_nat or false, heap = o.heap or false,
    has = {}, devices = {} }
  g.zone_segments = g.section_segments * g.zone_sections
  g.sector_log2 = g.sector_bytes == 4096 and 12 or g.sector_bytes == 2048 and 11
    or g.sector_bytes == 1024 and 10 or 9
  g.features = o.features or 0
  -- Files for users and groups come with "quota", the one for projects with "project_quota".
  g.has.quota_files = g.features & FEATURES.quota ~= 0 or nil
  if g.features & FEATURES.project_quota ~= 0 then
    g.features = g.features | FEATURES.quota
  end
  for name, mask in pairs(FEATURES) do
    g.has[name] = g.features & mask ~= 0 or nil
  end
  g.size_bytes = 0
  for _, device in ipairs(devices) do
    g.size_bytes = g.size_bytes + device.size_bytes // g.sector_bytes * g.sector_bytes
  end
  return g
end

local function compute(o, devices)
  local g = begin(o, devices)
  if g.size_bytes > MAX_BYTES then
    refuse("F2FS is at most 16 TiB, this is %d bytes", g.size_bytes)
  end
  align(g)
  if devices[1].size_bytes < g.segment0_block << BLOCK_LOG2 then
    refuse("device size is not sufficient: %d bytes, and segments begin at %d",
      devices[1].size_bytes, g.segment0_block << BLOCK_LOG2)
  end
  lay_devices(g, devices)
  if g.total_segments < MIN_SEGMENTS then
    refuse("device size is not sufficient: %d segments of 2 MiB, at least %d are needed",
      g.total_segments, MIN_SEGMENTS)
  end
  local zones = lay_areas(g)
  check_zones(g, zones)
  g.zones = zones
  g.section_count = zones * g.zone_sections
  g.main_segments = g.section_count * g.section_segments
  -- What is left of an incomplete zone counts, though no log comes there.
  g.usable_segments = g.total_segments - g.meta_segments
  overprovision(g, o.overprovision_percent)
  lay_logs(g, zones)
  count(g)
  return g
end

---What overprovision of a ratio would take, for warnings; nil where that is not possible.
---@param g brim.f2fs.Geometry
---@param percent number
---@return integer? segments
function M.overprovision(g, percent)
  local reserved = reserve(g, percent)
  return reserved < g.main_segments
    and overprovision_segments(g, percent, to_u32(reserved)) or nil
end

---@class brim.f2fs.Device what is known of a target
---@field size_bytes integer
---@field path? string

---@class brim.f2fs.Geometry
---@field version brim.f2fs.Version
---@field compat string
---@field size_bytes integer of all devices
---@field sector_bytes integer
---@field section_segments integer
---@field zone_sections integer
---@field zone_segments integer
---@field features integer bits
---@field has table<string, true> by the names of -O; quota_files: of users and groups
---@field sector_log2 integer
---@field large_nat boolean
---@field heap boolean
---@field devices table[] path, size_bytes, start_block, blocks, segments
---@field total_segments integer
---@field segment_count integer without what is left of a zone
---@field segment0_block integer
---@field sit_block integer
---@field nat_block integer
---@field ssa_block integer
---@field main_block integer
---@field sit_segments integer of both copies
---@field nat_segments integer of both copies
---@field ssa_segments integer
---@field meta_segments integer
---@field main_segments integer
---@field usable_segments integer
---@field section_count integer
---@field zones integer of the main area
---@field cp_payload integer blocks
---@field pack_blocks integer of a checkpoint pack
---@field nat_bits_blocks integer
---@field has_nat_bits boolean
---@field max_nids integer node numbers there are: files, directories and what maps large ones
---@field other_nids integer with -i where it is without, without where it is with
---@field is_automatic boolean the overprovision was chosen
---@field best_percent number
---@field overprovision_percent number
---@field overprovision_segments integer
---@field reserved_segments integer
---@field user_blocks integer
---@field free_segments integer
---@field node_logs integer[] segments of hot, warm, cold
---@field data_logs integer[] segments of hot, warm, cold

---Compute the geometry of a fresh filesystem.
---@param o table compat, section_segments, zone_sections, overprovision_percent, features (bits),
--- large_nat, heap, sector_bytes
---@param devices brim.f2fs.Device[] the first holds the metadata
---@return brim.f2fs.Geometry? geometry
---@return brim.Error? err one line that says which inequality does not hold
function M.compute(o, devices)
  local ok, result = pcall(compute, o, devices)
  if ok then
    return result
  elseif errors.is(result) then
    return nil, result
  end
  error(result, 0)
end

return M
