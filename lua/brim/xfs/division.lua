-- brim.xfs.division: stripe geometry and allocation groups, as mkfs.xfs decides them.
-- Called by geometry, in the order the functions stand here, each completing `s.g`.
-- `s` is the computation: options `o`, `device`, geometry `g`, `warn`. Units: blocks are filesystem
-- blocks; a "sector" in the reference's stripe code is always 512 bytes.
local schema = require "brim.xfs.schema"
local verdict = require "brim.xfs.verdict"

local M = {}

local refuse = verdict.refuse

local MIB <const> = 1 << 20
local GIB <const> = 1 << 30
local TIB <const> = 1 << 40

local GROUP_MIN_BYTES <const> = 16 * MIB
local GROUP_MAX_BYTES <const> = TIB

-- log2 of the number of groups: plain disk, and the most for a striped one.
local PLAIN_GROUPS_LOG2 <const> = 2
local STRIPED_GROUPS_LOG2 <const> = 5

-- More groups for more threads are not made smaller than this.
local CONCURRENT_GROUP_MIN_BYTES <const> = 4 * GIB

-- Tell what is wrong with a stripe unit and width in bytes, or nil.
local function stripe_fault(unit_bytes, width_bytes, sector_bytes)
  if width_bytes > 0x7fffffff then
    return "the stripe width is over 2 GiB - 1"
  elseif unit_bytes > width_bytes then
    return ("the stripe width %d is below the stripe unit"):format(width_bytes)
  elseif unit_bytes % sector_bytes ~= 0 then
    return ("the stripe unit must be a multiple of the %d-byte sector"):format(sector_bytes)
  elseif unit_bytes == 0 and width_bytes ~= 0 then
    return ("a stripe width of %d needs a stripe unit"):format(width_bytes)
  elseif unit_bytes ~= 0 and width_bytes % unit_bytes ~= 0 then
    return ("the stripe width %d must be a multiple of the stripe unit"):format(width_bytes)
  end
end

-- Stripe the device reports, in bytes; zeros if none or if it only names its physical sector.
local function device_stripe(s)
  local device = s.device
  local unit_bytes = device.min_io_bytes or 0
  local width_bytes = device.opt_io_bytes or 0
  if unit_bytes == s.physical_sector_bytes or width_bytes == s.physical_sector_bytes then
    return 0, 0
  end
  return unit_bytes // 512 * 512, width_bytes // 512 * 512
end

-- Use the device's stripe if it makes sense.
local function adopt_device_stripe(s, unit_bytes, width_bytes)
  local g = s.g
  if unit_bytes == 0 and width_bytes == 0 then
    return 0, 0
  end
  if stripe_fault(unit_bytes, width_bytes, 1) then
    s:warn("the device reports a stripe unit of %d and a stripe width of %d bytes, which do not"
      .. " fit together; ignored", unit_bytes, width_bytes)
    return 0, 0
  elseif g.data_blocks < GIB >> g.block_log2 then
    s:warn("under 1 GiB the device's stripe unit %d and width %d are ignored",
      unit_bytes, width_bytes)
    return 0, 0
  elseif unit_bytes % g.block_bytes ~= 0 or width_bytes % g.block_bytes ~= 0 then
    return 0, 0
  end
  return unit_bytes, width_bytes
end

local function asked_stripe(s, device_unit_bytes, device_width_bytes)
  local g, unit_bytes, width_bytes = s.g, s.o.stripe_unit_bytes, s.o.stripe_width_bytes
  if device_unit_bytes ~= 0 and device_unit_bytes ~= unit_bytes then
    s:warn("the stripe unit %d is not the device's, %d", unit_bytes, device_unit_bytes)
  end
  if device_width_bytes ~= 0 and device_width_bytes ~= width_bytes then
    s:warn("the stripe width %d is not the device's, %d", width_bytes, device_width_bytes)
  end
  if unit_bytes % g.block_bytes ~= 0 then
    refuse("stripe_unit_bytes", unit_bytes, "must be a multiple of the block size %d",
      g.block_bytes)
  end
  return unit_bytes, width_bytes
end

---Set stripe_unit_blocks, stripe_width_blocks and has_stripe.
---@param s table the computation: options `o`, device, geometry so far `g`, `warn`
function M.set_stripe(s)
  local o, g = s.o, s.g
  local unit_bytes, width_bytes = o.stripe_unit_bytes, o.stripe_width_bytes
  if (unit_bytes == nil) ~= (width_bytes == nil) then
    refuse(unit_bytes and "stripe_unit_bytes" or "stripe_width_bytes", unit_bytes or width_bytes,
      "stripe unit and stripe width go together, give both")
  end
  local fault = unit_bytes and stripe_fault(unit_bytes, width_bytes, g.sector_bytes)
  if fault then
    refuse("stripe_unit_bytes", unit_bytes, fault)
  end
  if o.no_align and unit_bytes and unit_bytes > 0 then
    refuse("no_align", "1", "contradicts the stripe unit %d, give one of them", unit_bytes)
  end
  local device_unit_bytes, device_width_bytes = device_stripe(s)
  if o.no_align or unit_bytes == 0 then
    unit_bytes, width_bytes = 0, 0
  elseif unit_bytes then
    unit_bytes, width_bytes = asked_stripe(s, device_unit_bytes, device_width_bytes)
  else
    unit_bytes, width_bytes = adopt_device_stripe(s, device_unit_bytes, device_width_bytes)
  end
  g.stripe_unit_blocks = unit_bytes >> g.block_log2
  g.stripe_width_blocks = width_bytes >> g.block_log2
  g.has_stripe = unit_bytes > 0
end

-- log2 of the default number of groups below the sizes where groups are simply the largest.
local function default_groups_log2(data_blocks, block_log2, striped)
  local function below(bytes)
    return data_blocks < bytes >> block_log2
  end
  if not striped and not below(128 * MIB) then
    return PLAIN_GROUPS_LOG2
  end
  local log2 = STRIPED_GROUPS_LOG2
  for _, bytes in ipairs({ 512 * GIB + (1 << block_log2), 8 * GIB + (1 << block_log2),
    128 * MIB, 64 * MIB, 32 * MIB }) do
    if below(bytes) then
      log2 = log2 - 1
    end
  end
  return log2
end

local function default_group_blocks(g)
  local largest_blocks = (GROUP_MAX_BYTES - 1) >> g.block_log2
  local largest_from_bytes = g.has_stripe and 32 * TIB or 4 * TIB
  if g.data_blocks >= largest_from_bytes >> g.block_log2 then
    return largest_blocks
  end
  local log2 = default_groups_log2(g.data_blocks, g.block_log2, g.has_stripe)
  local group_blocks = g.data_blocks >> log2
  if g.data_blocks & ((1 << log2) - 1) ~= 0 and group_blocks < largest_blocks then
    group_blocks = group_blocks + 1
  end
  return group_blocks
end

local function count_groups(g)
  g.ag_count = (g.data_blocks - 1) // g.ag_blocks + 1
end

---How many threads something shall be made for: as asked, or the CPUs of a solid state device.
---@param s table the computation
---@param option "data_concurrency"|"log_concurrency"
---@return integer threads 0: no more than by default
function M.threads(s, option)
  local threads = s.o[option]
  if not threads then
    local is_solid = s.version.has_concurrency and s.device.is_rotational == false
    threads = is_solid and 1 or 0
  end
  return threads == 1 and (s.device.cpus or 1) or threads
end

-- As many groups as threads, or a multiple, but no fewer than by default.
local function concurrent_group_blocks(g, threads)
  local default_blocks = default_group_blocks(g)
  local default_count = (g.data_blocks - 1) // default_blocks + 1
  local least_blocks = CONCURRENT_GROUP_MIN_BYTES >> g.block_log2
  if threads < default_count then
    return default_blocks
  end
  local blocks = g.data_blocks // threads
  if blocks < least_blocks then
    -- The most groups of the least size.
    local count = g.data_blocks // least_blocks
    return count > default_count and g.data_blocks // count or default_blocks
  end
  local largest_blocks, count = (GROUP_MAX_BYTES - 1) >> g.block_log2, threads
  while blocks > largest_blocks and blocks > default_blocks do
    count = count + threads
    blocks = g.data_blocks // count
  end
  return blocks
end

local function initial_groups(s)
  local o, g = s.o, s.g
  local threads = M.threads(s, "data_concurrency")
  if o.data_concurrency and (o.ag_bytes or o.ag_count) then
    refuse("data_concurrency", o.data_concurrency, "cannot be combined with %s",
      schema.SCHEMA[o.ag_bytes and "ag_bytes" or "ag_count"].cli)
  elseif o.ag_bytes then
    if o.ag_count then
      refuse("ag_bytes", o.ag_bytes, "give either this or %s", schema.SCHEMA.ag_count.cli)
    end
    if o.ag_bytes % g.block_bytes ~= 0 then
      refuse("ag_bytes", o.ag_bytes, "must be a multiple of the block size %d", g.block_bytes)
    end
    g.ag_blocks = o.ag_bytes >> g.block_log2
    count_groups(g)
  elseif o.ag_count then
    g.ag_count = o.ag_count
    g.ag_blocks = (g.data_blocks - 1) // o.ag_count + 1
  elseif threads > 0 then
    g.ag_blocks = concurrent_group_blocks(g, threads)
    count_groups(g)
  else
    g.ag_blocks = default_group_blocks(g)
    count_groups(g)
  end
end

local function round_to_stripe_unit(s)
  local o, g = s.o, s.g
  local unit_blocks = g.stripe_unit_blocks
  local rest_blocks = g.ag_blocks % unit_blocks
  if rest_blocks == 0 then
    return
  end
  local rounded_blocks = g.ag_blocks - rest_blocks + unit_blocks
  if rounded_blocks > (GROUP_MAX_BYTES - 1) >> g.block_log2 then
    rounded_blocks = rounded_blocks - unit_blocks
  end
  g.ag_blocks = rounded_blocks
  if rounded_blocks == 0 then
    refuse("stripe_unit_bytes", unit_blocks << g.block_log2,
      "larger than an allocation group can be")
  end
  if not o.ag_count then
    count_groups(g)
  end
  if o.ag_bytes then
    s:warn("the group size is rounded to %d blocks, a multiple of the stripe unit's %d",
      rounded_blocks, unit_blocks)
  end
end

-- Groups that all start on the same disk of the stripe make that disk hot: shift by one unit.
local function avoid_same_disk(s)
  local o, g = s.o, s.g
  local unit_blocks, width_blocks = g.stripe_unit_blocks, g.stripe_width_blocks
  if width_blocks == unit_blocks or g.ag_count <= 1 or g.ag_blocks % width_blocks ~= 0 then
    return
  end
  if o.ag_count or o.ag_bytes then
    s:warn("the group size is a multiple of the stripe width, so all groups start on one disk;"
      .. " %d blocks would spread them", g.ag_blocks - unit_blocks)
    return
  end
  local shifted_blocks = g.ag_blocks - unit_blocks
  if shifted_blocks < GROUP_MIN_BYTES >> g.block_log2 then
    shifted_blocks = g.data_blocks < g.ag_blocks and g.ag_blocks or g.ag_blocks + unit_blocks
  end
  g.ag_blocks = shifted_blocks
  count_groups(g)
end

-- A last group under 16 MiB is dropped, and the filesystem ends before it.
local function drop_short_group(g)
  local last_blocks = g.data_blocks % g.ag_blocks
  if last_blocks ~= 0 and last_blocks < GROUP_MIN_BYTES >> g.block_log2 then
    g.data_blocks = g.data_blocks - last_blocks
    g.ag_count = g.ag_count - 1
  end
end

local function check_groups(s)
  local o, g = s.o, s.g
  local option = o.ag_count and "ag_count" or "ag_bytes"
  local value = o.ag_count or o.ag_bytes
  local least_blocks = GROUP_MIN_BYTES >> g.block_log2
  local most_blocks = (GROUP_MAX_BYTES - 1) >> g.block_log2
  if g.ag_blocks < least_blocks then
    refuse(option, value, "groups of %d blocks are too small, the least is %d (16 MiB)",
      g.ag_blocks, least_blocks)
  elseif g.ag_blocks > most_blocks then
    refuse(option, value, "groups of %d blocks are too large, the most is %d (one block under"
      .. " 1 TiB)", g.ag_blocks, most_blocks)
  elseif g.ag_blocks > g.data_blocks then
    refuse(option, value, "a group of %d blocks is more than the %d blocks of the filesystem",
      g.ag_blocks, g.data_blocks)
  elseif g.ag_count > 0xffffffff then
    refuse(option, value, "%d groups are too many, the most is 4294967295", g.ag_count)
  end
end

-- Rounding the group size up can leave nothing for the last of the groups asked for. The reference
-- then prints a geometry beyond the device and fails on writing it; say so instead.
local function check_asked_count(s)
  local o, g = s.o, s.g
  local count = (g.data_blocks - 1) // g.ag_blocks + 1
  if o.ag_count and count ~= g.ag_count then
    refuse("ag_count", o.ag_count, "groups of %d blocks fill the filesystem with %d, ask for that",
      g.ag_blocks, count)
  end
end

---Set ag_blocks, ag_count, last_ag_blocks and ag_bytes; data_blocks may shrink.
---@param s table the computation: options `o`, device, geometry so far `g`, `warn`
function M.set_groups(s)
  local g = s.g
  initial_groups(s)
  if g.has_stripe then
    round_to_stripe_unit(s)
    avoid_same_disk(s)
  end
  check_groups(s)
  check_asked_count(s)
  drop_short_group(g)
  g.ag_bytes = g.ag_blocks << g.block_log2
  g.last_ag_blocks = g.data_blocks - (g.ag_count - 1) * g.ag_blocks
end

return M
