-- brim.xfs.geometry: options and a device's facts -> the geometry of a V5 XFS, or one error.
-- Pure: no I/O, no environment, no clock. The decisions are those of mkfs.xfs, of the release that
-- `compat` names (versions).
-- Called by format, check and the mkfs recipe; division and journal hold the longer parts.
-- Units: `*_blocks` and `*_block` are filesystem blocks, `*agbno` and the tree roots blocks within
-- a group, `*_log2` binary logarithms, `root_ino` an inode number.
local division = require "brim.xfs.division"
local features = require "brim.xfs.features"
local journal = require "brim.xfs.journal"
local levels = require "brim.xfs.levels"
local schema = require "brim.xfs.schema"
local verdict = require "brim.xfs.verdict"

local M = {}

local refuse = verdict.refuse

local MIB <const> = 1 << 20
local TIB <const> = 1 << 40

local SECTOR_MIN_BYTES <const> = 512
local SECTOR_MAX_BYTES <const> = 32768
local DATA_MIN_BYTES <const> = 16 * MIB
local INODE_DEFAULT_BYTES <const> = 512
local DIR_BLOCK_MIN_BYTES <const> = 4096
local RT_EXTENT_MIN_BYTES <const> = 4096
local CHUNK_INODES <const> = 64 -- inodes of one inobt record
local CLUSTER_BYTES <const> = 8192 -- inode cluster of 256-byte inodes; grows with the inode

---@class brim.xfs.Device
---@field size_bytes integer size of the target; 0 for a file that is yet to be made
---@field is_file boolean a regular file
---@field sector_bytes? integer logical sector, default 512
---@field physical_sector_bytes? integer default the logical one
---@field min_io_bytes? integer minimum I/O size, taken for the stripe unit; nil for a file
---@field opt_io_bytes? integer optimal I/O size, taken for the stripe width; nil for a file
---@field is_rotational? boolean false: a solid state device
---@field cpus? integer CPUs online, for what follows their number; default 1
---@field alignment_offset_bytes? integer of the device against its physical sectors; 0 is aligned

---@class brim.xfs.Geometry
---@field compat string the release whose decisions these are
---@field size_bytes integer data_blocks * block_bytes
---@field block_bytes integer
---@field block_log2 integer
---@field sector_bytes integer
---@field sector_log2 integer
---@field inode_bytes integer
---@field inode_log2 integer
---@field inodes_per_block integer
---@field inodes_per_block_log2 integer
---@field data_blocks integer
---@field ag_count integer
---@field ag_blocks integer length of every group but the last
---@field ag_blocks_log2 integer rounded up (sb_agblklog)
---@field ag_bytes integer
---@field last_ag_blocks integer
---@field log_ag integer group that holds the log
---@field log_agbno integer first block of the log in its group
---@field log_start_fsb integer the same as a filesystem block address (sb_logstart)
---@field log_blocks integer
---@field min_log_blocks integer
---@field log_stripe_unit_bytes integer 1 if none (sb_logsunit)
---@field log_sector_bytes integer 0 when sectors are 512 bytes (sb_logsectsize)
---@field log_sector_log2 integer 0 when sectors are 512 bytes (sb_logsectlog)
---@field max_inode_percent integer
---@field rt_extent_bytes integer what is stored where there is no realtime device
---@field dir_block_bytes integer
---@field dir_block_log2 integer of bytes
---@field inode_align_blocks integer (sb_inoalignmt)
---@field sparse_align_blocks integer (sb_spino_align)
---@field inode_chunk_inodes integer inodes allocated together, 64 or a block's worth
---@field inode_chunk_blocks integer
---@field stripe_unit_blocks integer (sb_unit)
---@field stripe_width_blocks integer (sb_width)
---@field has_stripe boolean
---@field bno_block integer root of the free space tree by block
---@field cnt_block integer root of the free space tree by length
---@field inobt_block integer
---@field finobt_block? integer
---@field rmapbt_block? integer
---@field refcountbt_block? integer
---@field prealloc_blocks integer first block after the static headers
---@field agfl_count integer blocks put on a new group's free list
---@field log_ag_agfl_count integer the same in the log's group: agfl_count, or 0 if too little is
--- left beside the log; mkfs.xfs takes them before the log if it has enough there, else after it
---@field agfl_slots integer entries the free list has room for
---@field root_agbno integer first block of the root inode chunk, in group 0
---@field root_ino integer
---@field crc boolean
---@field finobt boolean
---@field sparse boolean
---@field rmapbt boolean
---@field reflink boolean
---@field bigtime boolean
---@field inobtcount boolean
---@field nrext64 boolean
---@field exchange boolean
---@field autofsck? "none"|"check"|"optimize"|"repair" the property of the root directory
---@field parent boolean
---@field version_num integer (sb_versionnum)
---@field features2 integer
---@field features_compat integer
---@field features_ro_compat integer
---@field features_incompat integer
---@field label? string
---@field uuid? string nil: the caller makes one
---@field warnings string[]

local function log2_of(power)
  local log2 = 0
  while 1 << log2 < power do
    log2 = log2 + 1
  end
  return log2
end

local function check_ranges(o)
  for _, name in ipairs(schema.NAMES) do
    local reason = o[name] ~= nil and schema.check(name, o[name])
    if reason then
      refuse(name, tostring(o[name]), "%s", reason)
    end
  end
  for _, name in ipairs({ "inode_align", "lazy_count" }) do
    if o[name] == false then
      refuse(name, "0", "always on in a V5 filesystem")
    end
  end
end

local function set_block(s)
  local g = s.g
  g.block_bytes = s.o.block_bytes or schema.SCHEMA.block_bytes.default
  g.block_log2 = log2_of(g.block_bytes)
  g.rt_extent_bytes = math.max(g.block_bytes, RT_EXTENT_MIN_BYTES)
end

-- Sector size the device suggests: its physical one, if the blocks are not smaller.
local function device_sector_bytes(s, logical_bytes)
  local g, physical_bytes = s.g, s.physical_sector_bytes
  local offset_bytes = s.device.alignment_offset_bytes or 0
  if offset_bytes ~= 0 then
    s:warn("the device is misaligned by %d bytes, its logical sector size is used", offset_bytes)
    return logical_bytes
  elseif physical_bytes > SECTOR_MAX_BYTES then
    return logical_bytes
  elseif g.block_bytes < physical_bytes and g.block_bytes >= logical_bytes then
    s:warn("the block size %d is below the physical sector size %d, the logical one, %d, is used",
      g.block_bytes, physical_bytes, logical_bytes)
    return logical_bytes
  end
  return physical_bytes
end

local function set_sector(s)
  local o, g, device = s.o, s.g, s.device
  local logical_bytes = device.sector_bytes or SECTOR_MIN_BYTES
  s.physical_sector_bytes = device.physical_sector_bytes or logical_bytes
  if (device.alignment_offset_bytes or 0) ~= 0 and not o.force then
    refuse("target", nil, "the device is misaligned against its physical sectors; -f formats it"
      .. " all the same")
  end
  g.sector_bytes = o.sector_bytes or device_sector_bytes(s, logical_bytes)
  g.sector_log2 = log2_of(g.sector_bytes)
  if schema.check("sector_bytes", g.sector_bytes) then
    refuse("sector_bytes", g.sector_bytes, "the device's sectors are of a size XFS cannot have")
  elseif g.block_bytes < g.sector_bytes then
    refuse("block_bytes", g.block_bytes, "must be at least the sector size, %d", g.sector_bytes)
  elseif g.sector_bytes < logical_bytes then
    refuse("sector_bytes", g.sector_bytes, "the device's sectors are of %d bytes, use that",
      logical_bytes)
  elseif o.log_sector_bytes and o.log_sector_bytes ~= g.sector_bytes then
    refuse("log_sector_bytes", o.log_sector_bytes,
      "an internal log has the sector size of the data, %d", g.sector_bytes)
  elseif o.suffix_sector_bytes and o.suffix_sector_bytes ~= g.sector_bytes then
    refuse("sector_bytes", g.sector_bytes, "this is the device's sector size, but a value with the"
      .. " suffix \"s\" counted %d bytes; name the size with -s size", o.suffix_sector_bytes)
  end
  local is_large = g.sector_bytes > SECTOR_MIN_BYTES
  g.log_sector_bytes = is_large and g.sector_bytes or 0
  g.log_sector_log2 = is_large and g.sector_log2 or 0
end

local function set_directory(s)
  local g = s.g
  g.dir_block_bytes = s.o.dir_block_bytes or math.max(DIR_BLOCK_MIN_BYTES, g.block_bytes)
  g.dir_block_log2 = log2_of(g.dir_block_bytes)
  if g.dir_block_bytes < g.block_bytes then
    refuse("dir_block_bytes", g.dir_block_bytes, "must be at least the block size, %d",
      g.block_bytes)
  end
end

local function set_inode(s)
  local o, g = s.o, s.g
  if o.inodes_per_block and o.inode_bytes then
    refuse("inodes_per_block", o.inodes_per_block, "give either this or %s",
      schema.SCHEMA.inode_bytes.cli)
  end
  local option = o.inodes_per_block and "inodes_per_block" or "inode_bytes"
  g.inode_bytes = o.inodes_per_block and g.block_bytes // o.inodes_per_block
    or o.inode_bytes or INODE_DEFAULT_BYTES
  local least_bytes = schema.SCHEMA.inode_bytes.min
  local most_bytes = math.min(g.block_bytes // 2, schema.SCHEMA.inode_bytes.max)
  if g.inode_bytes < least_bytes or g.inode_bytes > most_bytes then
    refuse(option, o[option], "makes inodes of %d bytes; with blocks of %d they are %d to %d",
      g.inode_bytes, g.block_bytes, least_bytes, most_bytes)
  end
  g.inode_log2 = log2_of(g.inode_bytes)
  g.inodes_per_block = g.block_bytes // g.inode_bytes
  g.inodes_per_block_log2 = g.block_log2 - g.inode_log2
  -- The cluster, in blocks, then the whole chunk: sparse chunks are aligned to the former.
  local cluster_blocks = CLUSTER_BYTES * (g.inode_bytes // 256) >> g.block_log2
  g.sparse_align_blocks = g.sparse and cluster_blocks or 0
  g.inode_align_blocks = g.sparse and CHUNK_INODES * g.inode_bytes >> g.block_log2
    or cluster_blocks
  g.inode_chunk_inodes = math.max(CHUNK_INODES, g.inodes_per_block)
  g.inode_chunk_blocks = g.inode_chunk_inodes >> g.inodes_per_block_log2
end

-- Whole blocks of a size asked for.
local function blocks_of(s, option, what)
  local size_bytes, g = s.o[option], s.g
  if size_bytes % 512 ~= 0 then
    refuse(option, size_bytes, "must be a multiple of 512")
  end
  local blocks = size_bytes >> g.block_log2
  if size_bytes % g.block_bytes ~= 0 then
    s:warn("the %s size %d is not a multiple of the block size %d, cut to %d", what, size_bytes,
      g.block_bytes, blocks << g.block_log2)
  end
  return blocks
end

local function set_sizes(s)
  local o, g, device = s.o, s.g, s.device
  if o.file and not device.is_file then
    refuse("target", nil, "-d file asks for a regular file, the target is a block device")
  end
  -- A device's size is usable in units of its sector, at least 1 KiB (the reference's rule).
  local unit_bytes = math.max(g.sector_bytes, 1024)
  local device_blocks = device.size_bytes // unit_bytes * unit_bytes >> g.block_log2
  g.data_blocks = device_blocks
  if o.size_bytes then
    g.data_blocks = blocks_of(s, "size_bytes", "data")
    if device.size_bytes == 0 and not device.is_file then
      refuse("target", nil, "the device has no size")
    elseif device.size_bytes > 0 and g.data_blocks > device_blocks then
      refuse("size_bytes", o.size_bytes, "larger than the target, which has %d bytes",
        device_blocks << g.block_log2)
    end
  end
  if g.data_blocks < DATA_MIN_BYTES >> g.block_log2 then
    refuse("size_bytes", o.size_bytes or device.size_bytes,
      "too small, the least a filesystem can have is %d", DATA_MIN_BYTES)
  end
  s.data_blocks_asked = g.data_blocks
  if o.log_bytes then
    s.log_blocks = blocks_of(s, "log_bytes", "log")
  end
end

local function set_max_inode_percent(s)
  local g = s.g
  local percent = s.o.max_inode_percent
  if not percent or percent == 0 and not s.version.takes_zero_percent then
    percent = g.data_blocks < TIB >> g.block_log2 and 25
      or g.data_blocks < 50 * TIB >> g.block_log2 and 5 or 1
  end
  g.max_inode_percent = percent
  g.size_bytes = g.data_blocks << g.block_log2
end

-- The static head of each group: four sectors, then one block for each btree's root.
local function set_layout(s)
  local g = s.g
  g.ag_blocks_log2 = log2_of(g.ag_blocks)
  local next_block = (3 * g.sector_bytes >> g.block_log2) + 1
  local function take(wanted)
    if wanted then
      next_block = next_block + 1
      return next_block - 1
    end
  end
  g.bno_block = take(true)
  g.cnt_block = take(true)
  g.inobt_block = take(true)
  g.finobt_block = take(g.finobt)
  g.rmapbt_block = take(g.rmapbt)
  g.refcountbt_block = take(g.reflink)
  g.prealloc_blocks = next_block
  g.agfl_slots = (g.sector_bytes - 36) // 4
  g.agfl_count = levels.free_list_blocks(g)
end

-- Look at what the log leaves of its group: it must fit, and the free list comes from the rest.
local function set_log_ag(s)
  local g = s.g
  local length_blocks = g.log_ag == g.ag_count - 1 and g.last_ag_blocks or g.ag_blocks
  local hole_blocks = g.log_agbno - g.prealloc_blocks
  local tail_blocks = length_blocks - g.log_agbno - g.log_blocks
  if tail_blocks < 0 then
    refuse("log_ag", g.log_ag, "this group has %d blocks, the log of %d does not fit it; name"
      .. " another group or another group size", length_blocks, g.log_blocks)
  end
  g.log_ag_agfl_count = hole_blocks + tail_blocks >= g.agfl_count and g.agfl_count or 0
  if tail_blocks == 0 and not s.version.keeps_holes then
    -- The reference then drops the hole from the free space trees too, and xfs_repair objects.
    g.log_ag_agfl_count = 0
    if hole_blocks > 0 then
      s:warn("the log ends with group %d; mkfs.xfs would lose the %d free blocks before it",
        g.log_ag, hole_blocks)
    end
  end
end

local function round_up(value, unit)
  return (value + unit - 1) // unit * unit
end

-- Where the inode allocator puts the first chunk, and where everything (mkfs itself, xfs_repair)
-- expects it: the two differ when a log in group 0 leaves a hole before it.
local function root_places(g, align_blocks)
  local log_blocks = g.log_ag == 0 and g.log_blocks or 0
  local expected_agbno = round_up(g.prealloc_blocks + g.agfl_count + log_blocks, align_blocks)
  if g.log_ag ~= 0 then
    return expected_agbno, expected_agbno
  end
  local hole_agbno, tail_agbno = g.prealloc_blocks, g.log_agbno + g.log_blocks
  -- The free list is taken from the hole if that has enough.
  if g.log_agbno - hole_agbno >= g.agfl_count then
    hole_agbno = hole_agbno + g.log_ag_agfl_count
  else
    tail_agbno = tail_agbno + g.log_ag_agfl_count
  end
  local found_agbno = round_up(hole_agbno, align_blocks)
  if found_agbno + g.inode_chunk_blocks > g.log_agbno then
    found_agbno = round_up(tail_agbno, align_blocks)
  end
  return expected_agbno, found_agbno
end

local function set_root(s)
  local o, g = s.o, s.g
  local align_blocks = math.max(g.inode_align_blocks, 1)
  if g.has_stripe and align_blocks > 1 and g.stripe_unit_blocks & (align_blocks - 1) == 0 then
    align_blocks = g.stripe_unit_blocks
  end
  local expected_agbno, found_agbno = root_places(g, align_blocks)
  if expected_agbno ~= found_agbno then
    refuse("log_ag", g.log_ag, "with the log aligned in group 0 the root directory would come"
      .. " before it, where nothing looks for it; use another group or log stripe unit")
  elseif found_agbno + g.inode_chunk_blocks > g.ag_blocks then
    refuse("stripe_unit_bytes", o.stripe_unit_bytes,
      "the root directory, aligned to %d blocks, does not fit group 0", align_blocks)
  end
  g.root_agbno = expected_agbno
  g.root_ino = g.root_agbno << g.inodes_per_block_log2
end

-- What the reference calls unsupported: no redundancy, or a log too small to work well.
local function check_supported(s)
  local o, g = s.o, s.g
  local function object(option, reason, ...)
    if not o.unsupported then
      refuse(option, o[option], reason .. " (--unsupported overrides)", ...)
    end
    s:warn("unsupported: " .. reason, ...)
  end
  if g.size_bytes < 300 * MIB then
    object("size_bytes", "a filesystem of %d bytes is too small, the least is 300 MiB",
      g.size_bytes)
  end
  if g.log_blocks < 64 * MIB >> g.block_log2 then
    object("log_bytes", "a log of %d blocks is too small, the least is 64 MiB", g.log_blocks)
  end
  if g.ag_count < 2 then
    object("ag_count", "one group leaves no second superblock, use at least 2")
  end
end

local STEPS = {
  features.set_features, set_block, set_sector, set_directory, set_inode, set_sizes,
  division.set_stripe, journal.set_stripe_unit, division.set_groups, set_max_inode_percent,
  features.set_bits, set_layout, journal.set_log, set_log_ag, set_root, check_supported,
}

local function build(o, device)
  local g = { warnings = {} }
  local s = { o = o, device = device, g = g }
  function s.warn(_, format, ...)
    g.warnings[#g.warnings + 1] = format:format(...)
  end
  check_ranges(o)
  for _, step in ipairs(STEPS) do
    step(s)
  end
  return g
end

---Compute the geometry mkfs.xfs would make of these options on this device.
---Keys of `o` that are not geometry (target, quiet, ...) are ignored; `o` is not changed.
---@param o brim.xfs.Options
---@param device brim.xfs.Device
---@return brim.xfs.Geometry? g
---@return brim.xfs.OptionError? err what the reference would refuse, one line
function M.compute(o, device)
  return verdict.catch(build, o, device)
end

return M
