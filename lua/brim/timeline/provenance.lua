-- brim.timeline.provenance: where a measurement was made: host, kernel, memory, and of a path its
-- filesystem, mount options, device and the device's queue attributes. Called by timeline (header
-- lines) and probe (which device to look at). Reads /proc and /sys only. Sizes are bytes.
local core = require "brim.core"
local errors = require "brim.error"
local process = require "brim.process"

local M = {}

---@class brim.Mount
---@field mount_point string
---@field filesystem string its type, as the kernel names it
---@field source string what is mounted: "/dev/sda1", "tmpfs"
---@field options string of the mount, and of the filesystem behind it
---@field root string what of the filesystem is mounted
---@field dev string "major:minor" of the filesystem; anonymous on btrfs and tmpfs

-- Files below a queue/ directory of sysfs that change what a measurement means
-- (Documentation/ABI/stable/sysfs-block).
local QUEUE <const> = { "rotational", "scheduler", "logical_block_size", "physical_block_size",
  "minimum_io_size", "optimal_io_size", "nr_requests", "read_ahead_kb", "max_sectors_kb",
  "write_cache", "discard_max_bytes", "zoned", "wbt_lat_usec", "fua" }
-- Of a device's size in sysfs, whatever its own sectors are.
local SECTOR_BYTES <const> = 512

-- /proc/self/mountinfo writes blank, tab, newline and backslash as octal numbers.
local function unescape(text)
  return (text:gsub("\\(%d%d%d)", function(digits) return string.char(tonumber(digits, 8)) end))
end

---Read one line of /proc/self/mountinfo (proc(5)); nil for anything else.
---@param line string
---@return brim.Mount?
function M.parse_mount(line)
  local dev, root, point, options, rest =
    line:match "^%d+ %d+ (%d+:%d+) (%S+) (%S+) (%S+)(.*)$"
  local filesystem, source, super = (rest or ""):match " %- (%S+) (%S+) ?(%S*)$"
  if not filesystem then
    return nil
  end
  return { dev = dev, root = unescape(root), mount_point = unescape(point),
    filesystem = filesystem, source = unescape(source),
    options = super ~= "" and super ~= options and options .. "," .. super or options }
end

---Find the mount that a path is on: of those whose mount point leads to it the longest, and of
---several at one place the one mounted last.
---@param text string of /proc/self/mountinfo
---@param path string absolute
---@return brim.Mount?
function M.mount_in(text, path)
  local best
  for line in text:gmatch "[^\n]+" do
    local m = M.parse_mount(line)
    local prefix = m and (m.mount_point == "/" and "/" or m.mount_point .. "/")
    if prefix and (path .. "/"):sub(1, #prefix) == prefix
      and (not best or #m.mount_point >= #best.mount_point) then
      best = m
    end
  end
  return best
end

local function slurp(path)
  local file <close> = io.open(path)
  return file and file:read "a" or ""
end

-- In a chroot the list of mounts may leave out the one that / is on: what statfs says of it.
local function unlisted(path)
  local usage = core.usage(path)
  return usage and { mount_point = "/", filesystem = usage.type, source = "none", options = "",
    root = "/", dev = ("%d:%d"):format(usage.device_major, usage.device_minor) }
end

---Find the mount that a path is on.
---@param path string
---@return brim.Mount? mount
---@return brim.Error? err
function M.mount(path)
  local absolute = process.absolute(path)
  local m = M.mount_in(slurp "/proc/self/mountinfo", absolute) or unlisted(absolute)
  if not m then
    return nil, errors.new { code = "ENOENT", errno = 2, op = "mountinfo", path = path,
      message = ("%s: no mount leads to it"):format(path) }
  end
  return m
end

-- A block device's directory in sysfs, by its name in /dev or by "major:minor"; nil where there is
-- none.
local function sysfs_of(source, dev)
  local name = source:match "^/dev/" and process.absolute(source):match "([^/]+)$"
  for _, dir in ipairs { name and "/sys/class/block/" .. name or "", "/sys/dev/block/" .. dev } do
    if dir ~= "" and process.line(dir .. "/dev") then
      return process.absolute(dir)
    end
  end
end

local function describe(dir)
  local disk = process.line(dir .. "/partition") and dir:match "^(.*)/" or dir
  local queue = {}
  for _, name in ipairs(QUEUE) do
    local value = process.line(("%s/queue/%s"):format(disk, name))
    queue[name] = value and (math.tointeger(tonumber(value)) or value)
  end
  local sectors = math.tointeger(tonumber(process.line(dir .. "/size") or ""))
  local model = process.line(disk .. "/device/model")
  return { name = dir:match "([^/]+)$", device = process.line(dir .. "/dev"), sysfs = dir,
    size_bytes = sectors and sectors * SECTOR_BYTES, model = model and model:match "^(.-)%s*$",
    backing_file = process.line(disk .. "/loop/backing_file"), queue = queue }
end

---Describe the block device under a path, or the one that the path names: name, device
---("major:minor"), sysfs (its directory), size_bytes, model, queue. Nil where there is none, as on
---tmpfs.
---@param path string
---@param m? brim.Mount that the path is on, where it is known
---@return table? device
---@return boolean? is_raw does the path name the device itself?
function M.device(path, m)
  local absolute = process.absolute(path)
  local dir = sysfs_of(absolute, "")
  if dir then
    return describe(dir), true
  end
  m = m or M.mount(path)
  dir = m and sysfs_of(m.source, m.dev)
  if dir then
    return describe(dir), false
  end
end

---Gather where a measurement is made. Without a path only host and kernel.
---@param path? string
---@return table? fields of a timeline's header
---@return brim.Error? err
function M.gather(path)
  local out = {
    brim = core.version,
    host = process.line "/proc/sys/kernel/hostname",
    kernel = process.line "/proc/sys/kernel/osrelease",
    kernel_build = process.line "/proc/sys/kernel/version",
    memory_bytes = (math.tointeger(tonumber(slurp("/proc/meminfo"):match "MemTotal:%s*(%d+)"))
      or 0) << 10,
    processors = select(2, ("\n" .. slurp "/proc/cpuinfo"):gsub("\nprocessor%s*:", "")),
  }
  if not path then
    return out
  end
  local m, err = M.mount(path)
  if not m then
    return nil, err
  end
  local usage, why = core.usage(path)
  if not usage then
    return nil, why
  end
  local device, is_raw = M.device(path, m)
  out.path, out.device, out.device_info = path, device and device.name, device
  if is_raw then
    out.size_bytes = device.size_bytes
    return out
  end
  out.mount_point, out.filesystem, out.mount_options = m.mount_point, m.filesystem, m.options
  out.source, out.size_bytes, out.block_bytes = m.source, usage.size_bytes, usage.block_bytes
  return out
end

return M
