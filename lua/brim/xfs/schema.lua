-- brim.xfs.schema: what can be asked of an XFS format, as data (STYLE B7).
-- One entry per option: type, range, default, the mkfs.xfs spelling (`cli`) and a line of help.
-- Called by options (command line), geometry (Lua tables) and, through options.SCHEMA, format.
-- Units: `type = "bytes"` is bytes; no `default` means that it depends, the doc says on what.
local errors = require "brim.error"
local versions = require "brim.xfs.versions"

local M = {}

local MIB <const> = 1 << 20

---@class brim.xfs.Options
---@field compat? string the xfsprogs release to do as: "6.1", "6.13" or "7.2"
---@field size_bytes? integer filesystem size; default the whole target
---@field block_bytes? integer filesystem block size, 1024..65536, power of two
---@field sector_bytes? integer metadata sector size, 512..32768, power of two
---@field inode_bytes? integer inode size, 512..2048, power of two
---@field inodes_per_block? integer instead of inode_bytes: inodes in a block, power of two
---@field ag_count? integer number of allocation groups
---@field ag_bytes? integer instead of ag_count: size of an allocation group
---@field stripe_unit_bytes? integer RAID chunk; 0 with stripe_width_bytes 0 is no_align
---@field stripe_width_bytes? integer RAID data stripe, a multiple of stripe_unit_bytes
---@field no_align? boolean ignore the device's own stripe geometry
---@field max_inode_percent? integer share of space for inodes; 0 is the default for the size
---@field inode_align? boolean always true on V5
---@field dir_block_bytes? integer directory block size, at least a block
---@field log_bytes? integer size of the internal log
---@field log_stripe_unit_bytes? integer log record alignment, a multiple of the block size
---@field log_sector_bytes? integer must equal sector_bytes (internal log)
---@field log_ag? integer allocation group that holds the log
---@field finobt? boolean free inode btree
---@field sparse? boolean sparse inode chunks
---@field rmapbt? boolean reverse mapping btree; default by release
---@field reflink? boolean shared extents
---@field bigtime? boolean timestamps past 2038
---@field inobtcount? boolean inode btree block counts in the AGI
---@field nrext64? boolean 64-bit extent counts; default by release
---@field exchange? boolean exchange of file ranges; default by release, and with parent
---@field parent? boolean parent pointers; default by release
---@field autofsck? "none"|"check"|"optimize"|"repair" what xfs_scrub may do by itself
---@field data_concurrency? integer threads to have groups for; 0 is none, 1 the number of CPUs
---@field log_concurrency? integer threads to have log space for; 0 is none, 1 the number of CPUs
---@field lazy_count? boolean always true on V5
---@field label? string up to 12 bytes
---@field uuid? string canonical lower-case; default a random one
---@field unsupported? boolean allow what the reference calls unsupported (tiny, one group)

local UUID_PATTERN <const> = "^" .. ("%x"):rep(8) .. ("%-" .. ("%x"):rep(4)):rep(3) .. "%-"
  .. ("%x"):rep(12) .. "$"
local LABEL_MAX_BYTES <const> = 12
local INT_MAX <const> = 0x7fffffff

local function power_of_two(value)
  if value > 0 and value & (value - 1) == 0 then
    return true
  end
  return nil, "must be a power of two"
end

local function check_uuid(value)
  if value:match(UUID_PATTERN) then
    return true
  end
  return nil, "must look like 01234567-89ab-cdef-0123-456789abcdef"
end

-- What xfs_scrub may do by itself: the property xfs:autofsck of the root directory.
local AUTOFSCK <const> = { none = true, check = true, optimize = true, repair = true }

local function check_autofsck(value)
  if AUTOFSCK[value] then
    return true
  end
  return nil, "must be none, check, optimize or repair"
end

local function check_version(value)
  if versions.of(value) then
    return true
  end
  return nil, "must be " .. versions.NAMES
end

local function check_label(value)
  if #value > LABEL_MAX_BYTES then
    return nil, ("%d bytes long, the most is %d"):format(#value, LABEL_MAX_BYTES)
  elseif value:find("\0", 1, true) then
    return nil, "holds a zero byte"
  end
  return true
end

local function flag(cli, default, doc)
  return { type = "bool", default = default, cli = cli, doc = doc }
end

M.SCHEMA = {
  compat = { type = "string", default = versions.DEFAULT, check = check_version,
    cli = "--compat", doc = "the xfsprogs release whose defaults and formulas hold: "
      .. versions.NAMES },
  size_bytes = { type = "bytes", min = 16 * MIB, max = math.maxinteger, cli = "-d size",
    doc = "filesystem size, at most 2^63-1 (8191p is the largest whole-PiB); default: the target" },
  block_bytes = { type = "bytes", default = 4096, min = 1024, max = 65536, check = power_of_two,
    cli = "-b size", doc = "filesystem block size" },
  sector_bytes = { type = "bytes", min = 512, max = 32768, check = power_of_two, cli = "-s size",
    doc = "metadata sector size; default: the device's physical sector" },
  inode_bytes = { type = "bytes", min = 512, max = 2048, check = power_of_two,
    cli = "-i size", doc = "inode size, at most half a block; default: 512" },
  inodes_per_block = { type = "int", min = 2, max = 256, check = power_of_two, cli = "-i perblock",
    doc = "inodes in a block, instead of inode_bytes" },
  ag_count = { type = "int", min = 1, max = 0xfffffffe, cli = "-d agcount",
    doc = "allocation groups; default: by size" },
  ag_bytes = { type = "bytes", min = 16 * MIB, max = 1 << 40, cli = "-d agsize",
    doc = "size of an allocation group, instead of ag_count" },
  stripe_unit_bytes = { type = "bytes", min = 0, max = 0x7fffffff, cli = "-d su",
    doc = "RAID chunk size; default: the device's" },
  stripe_width_bytes = { type = "bytes", min = 0, max = 0x7fffffff, cli = "-d swidth",
    doc = "RAID data stripe, a multiple of the stripe unit; default: the device's" },
  no_align = flag("-d noalign", false, "ignore the device's stripe geometry"),
  max_inode_percent = { type = "int", min = 0, max = 100, cli = "-i maxpct",
    doc = "share of space for inodes; 0 or none: 25 under 1 TiB, 5 under 50 TiB, then 1" },
  inode_align = flag("-i align", true, "aligned inode chunks, always so"),
  dir_block_bytes = { type = "bytes", min = 4096, max = 65536, check = power_of_two,
    cli = "-n size", doc = "directory block size, at least a block; default: 4096 or a block" },
  log_bytes = { type = "bytes", min = 2 * MIB, max = (2 << 30) - 10 * MIB, cli = "-l size",
    doc = "size of the internal log; default: 1/2048 of the data, within limits" },
  log_stripe_unit_bytes = { type = "bytes", min = 512, max = 256 << 10, cli = "-l su",
    doc = "log record alignment; default: the stripe unit, or a block on large sectors" },
  log_sector_bytes = { type = "bytes", min = 512, max = 32768, check = power_of_two,
    cli = "-l sectsize", doc = "sector size of the log, the same as sector_bytes" },
  log_ag = { type = "int", min = 0, max = 0xffffffff, cli = "-l agnum",
    doc = "allocation group that holds the log; default: the middle one" },
  finobt = flag("-m finobt", true, "free inode btree"),
  sparse = flag("-i sparse", true, "sparse inode chunks"),
  rmapbt = flag("-m rmapbt", nil, "reverse mapping btree; default: off in 6.1"),
  reflink = flag("-m reflink", true, "shared extents"),
  bigtime = flag("-m bigtime", true, "timestamps past 2038"),
  inobtcount = flag("-m inobtcount", nil, "inode btree block counts; default: with finobt"),
  nrext64 = flag("-i nrext64", nil, "64-bit extent counts; default: off in 6.1"),
  exchange = flag("-i exchange", nil, "exchange of file ranges; default: with parent"),
  parent = flag("-n parent", nil, "parent pointers; default: on from 7.2"),
  autofsck = { type = "string", check = check_autofsck, cli = "-m autofsck",
    doc = "none, check, optimize or repair; default: repair from 7.2 with rmapbt and parent" },
  data_concurrency = { type = "int", min = 0, max = INT_MAX, cli = "-d concurrency",
    doc = "threads to have groups for, 1: the CPUs; default: the CPUs, on a solid state device" },
  log_concurrency = { type = "int", min = 0, max = INT_MAX, cli = "-l concurrency",
    doc = "threads to have log space for, as data_concurrency" },
  lazy_count = flag("-l lazy-count", true, "lazy superblock counters, always so"),
  label = { type = "string", check = check_label, cli = "-L",
    doc = "volume label, up to 12 bytes" },
  uuid = { type = "string", check = check_uuid, cli = "-m uuid",
    doc = "filesystem UUID; default: a random one" },
  unsupported = flag("--unsupported", false, "allow tiny and single-group filesystems"),
}

-- What the first release does not know.
for _, name in ipairs { "exchange", "parent", "autofsck", "data_concurrency",
  "log_concurrency" } do
  M.SCHEMA[name].since = "6.13"
end

---The keys of SCHEMA, sorted, so that whoever walks them does so in one order.
M.NAMES = {}
for name in pairs(M.SCHEMA) do
  M.NAMES[#M.NAMES + 1] = name
end
table.sort(M.NAMES)

-- A limit as shown to the user: 16777216 (16 MiB).
local function show(entry, value)
  if entry.type == "bytes" then
    for i, unit in ipairs({ "TiB", "GiB", "MiB", "KiB" }) do
      local shift = 50 - 10 * i
      if value > 0 and value % (1 << shift) == 0 then
        return ("%d (%d %s)"):format(value, value >> shift, unit)
      end
    end
  end
  return tostring(value)
end

local function check_number(entry, value)
  if math.type(value) ~= "integer" then
    return ("must be an integer%s, not a %s"):format(
      entry.type == "bytes" and " number of bytes" or "", math.type(value) or type(value))
  end
  if value < entry.min then
    return ("too small, the least is %s"):format(show(entry, entry.min))
  end
  if value > entry.max then
    return ("too large, the most is %s"):format(show(entry, entry.max))
  end
end

---Check one option's value on its own, without its relation to others.
---@param name string a key of SCHEMA
---@param value any
---@return string? reason what is wrong and what would be right; nil if nothing is
function M.check(name, value)
  local entry = M.SCHEMA[name]
  local reason
  if entry.type == "bytes" or entry.type == "int" then
    reason = check_number(entry, value)
  elseif type(value) ~= (entry.type == "bool" and "boolean" or "string") then
    reason = ("must be %s, not a %s"):format(entry.type == "bool" and "true or false"
      or "a string", type(value))
  end
  if not reason and entry.check then
    reason = select(2, entry.check(value))
  end
  return reason
end

---@class brim.xfs.OptionError: brim.Error one line: option, value, what would be right
---@field option? string key of SCHEMA, or the command line's spelling where there is none

---Make the error for one option.
---@param name string a key of SCHEMA, or any spelling to show
---@param value any shown after the name unless nil
---@param reason string
---@return brim.xfs.OptionError
function M.option_error(name, value, reason)
  local entry = M.SCHEMA[name]
  local shown = entry and entry.cli or name
  if value ~= nil then
    shown = ("%s%s%s"):format(shown, shown:find("^%-%a$") and " " or "=", value)
  end
  return errors.new { code = "EINVAL", usage = true, option = name,
    message = ("%s: %s"):format(shown, reason) }
end

return M
