-- brim.probe: numbers of the world beside those of the workload: the device's counters, dirty
-- memory, what filesystems tell in sysfs, and a script's own functions, as columns of a timeline.
-- Called by brim.fill for each sample. A probe that fails is an event, never an end. Deltas are
-- since the read before; sizes are bytes.
local counters = require "brim.probe.counters"
local errors = require "brim.error"
local opts = require "brim.opts"
local provenance = require "brim.timeline.provenance"

local M = {}
local Probe, Probes = {}, {}
Probe.__index, Probes.__index = Probe, Probes

---@class brim.Probe
---@field columns table<string, brim.Column> what it gives
---@field read fun(now_s: number): table<string, number>?, brim.Error? values of its columns

-- A sector of /proc/diskstats and of the block layer (Documentation/admin-guide/iostats.rst).
local SECTOR_BYTES <const> = 512

local function failed(code, path, fmt, ...)
  return errors.new { code = code, op = "probe", path = path, message = fmt:format(...) }
end

local function slurp(path)
  local file, why, errno = io.open(path)
  local text = file and file:read "a"
  if file then
    file:close()
  end
  if text then
    return text
  end
  return nil, errors.new { code = errno == 2 and "ENOENT" or "EIO", errno = errno, op = "probe",
    path = path, message = why or (path .. ": cannot be read") }
end

---Make a probe of columns and a function that reads them.
---@param columns table<string, brim.Column>
---@param read fun(now_s: number): table<string, number>?, brim.Error?
---@return brim.Probe
function M.custom(columns, read)
  return setmetatable({ columns = columns, read = read }, Probe)
end

-- --------------------------------------------------------------------- device

-- Of a device's line in /proc/diskstats: reads, sectors read, writes, sectors written, ms busy.
local function disk_line(text, device)
  local major, minor = device:match "^(%d+):(%d+)$"
  for line in text:gmatch "[^\n]+" do
    local a, b, rest = line:match "^%s*(%d+)%s+(%d+)%s+%S+%s+(.*)$"
    if a == major and b == minor then
      local n = {}
      for digits in rest:gmatch "%d+" do
        n[#n + 1] = math.tointeger(tonumber(digits))
      end
      return #n >= 10 and { reads = n[1], read_sectors = n[3], writes = n[5],
        write_sectors = n[7], busy_ms = n[10] } or nil
    end
  end
end

local function disk_delta(old, new, seconds)
  return {
    dev_reads = new.reads - old.reads,
    dev_read_bytes = (new.read_sectors - old.read_sectors) * SECTOR_BYTES,
    dev_writes = new.writes - old.writes,
    dev_write_bytes = (new.write_sectors - old.write_sectors) * SECTOR_BYTES,
    dev_busy = seconds > 0 and math.min((new.busy_ms - old.busy_ms) / 1e3 / seconds, 1) or 0,
  }
end

local DEVICE <const> = { "dev_reads", "dev_read_bytes", "dev_writes", "dev_write_bytes",
  "dev_busy" }

---Make a probe of the block device under a path: what it read and wrote, and how long it was busy.
---@param path string on the filesystem, or the device itself
---@param diskstats? string another file in the form of /proc/diskstats
---@return brim.Probe? probe nil where no block device is under it (tmpfs, network)
---@return brim.Error? err
function M.device(path, diskstats)
  local info = provenance.device(path)
  if not info then
    return nil, failed("ENODEV", path, "%s: no block device is under it", path)
  end
  local file = diskstats or "/proc/diskstats"
  local old, old_s
  return M.custom(counters.standard(DEVICE), function(now_s)
    local text, why = slurp(file)
    local new = text and disk_line(text, info.device)
    if not new then
      old = nil
      return nil, why or failed("ENODEV", file, "%s: no line for %s (%s)", file, info.name,
        info.device)
    end
    local out = old and disk_delta(old, new, now_s - old_s) or {}
    old, old_s = new, now_s
    return out
  end)
end

-- --------------------------------------------------------------------- memory

---Make a probe of memory that waits to be written back, and of what is being written.
---@param meminfo? string another file in the form of /proc/meminfo
---@return brim.Probe
function M.memory(meminfo)
  local file = meminfo or "/proc/meminfo"
  return M.custom(counters.standard { "dirty_bytes", "writeback_bytes" }, function()
    local text, why = slurp(file)
    local dirty = text and text:match "Dirty:%s*(%d+) kB"
    local writeback = text and text:match "Writeback:%s*(%d+) kB"
    if not dirty or not writeback then
      return nil, why or failed("EILSEQ", file, "%s: neither Dirty nor Writeback", file)
    end
    return { dirty_bytes = tonumber(dirty) << 10, writeback_bytes = tonumber(writeback) << 10 }
  end)
end

-- ---------------------------------------------------------------------- sysfs

---@class brim.FileProbeOpts
---@field name string of the column
---@field file string which is read each time
---@field pattern? string a Lua pattern whose first capture is the number; default: the first number
---@field delta? boolean the growth since the read before, not the number itself
---@field scale? integer what to multiply it with, default 1
---@field unit? string
---@field doc? string

local FILE <const> = {
  name = { type = "string", required = true, doc = "of the column" },
  file = { type = "path", required = true, doc = "which is read each time" },
  pattern = { type = "string", default = "(-?%d+)", doc = "its first capture is the number" },
  delta = { type = "bool", default = false, doc = "the growth since the read before" },
  scale = { type = "int", default = 1, doc = "what to multiply it with" },
  unit = { type = "string", default = "", doc = "of the column" },
  doc = { type = "string", doc = "of the column" },
}

---Make a probe of a number in a file, as sysfs and procfs have them.
---@param o brim.FileProbeOpts
---@return brim.Probe
function M.file(o)
  o = opts.check(o, FILE, "brim.probe.file")
  local old
  local columns = { [o.name] = { unit = o.unit, doc = o.doc or o.file } }
  return M.custom(columns, function()
    local text, why = slurp(o.file)
    local n = text and tonumber((text:match(o.pattern)))
    if not n then
      old = nil
      return nil, why or failed("EILSEQ", o.file, "%s: no number where '%s' looks for it", o.file,
        o.pattern)
    end
    n = n * o.scale
    local out = n
    if o.delta then
      out, old = old and n - old, n
    end
    return { [o.name] = out }
  end)
end

---Make probes of what the kernel counts for the filesystem at a path: XFS, ext4, btrfs and F2FS,
---each as far as this kernel has it.
---@param path string
---@param sysfs? string instead of /sys/fs
---@return brim.Probe[]? probes keyed by number; empty for other filesystems
---@return brim.Error? err
function M.filesystem(path, sysfs)
  local m, err = provenance.mount(path)
  if not m then
    return nil, err
  end
  local device, is_raw = provenance.device(path, m)
  local probes = {}
  for _, o in ipairs(device and not is_raw
    and counters.files(m.filesystem, device.name, sysfs) or {}) do
    local probe = M.file(o)
    -- What this kernel does not have is no failure.
    if probe.read(0) then
      probes[#probes + 1] = probe
    end
  end
  return probes
end

-- ------------------------------------------------------------------- together

-- What a script gave under a name, as a probe.
local function from_value(name, v)
  if getmetatable(v) == Probe then
    return v
  elseif type(v) ~= "function" then
    error(("probe '%s': expected a function or a probe, got a %s"):format(name, type(v)), 4)
  end
  return M.custom({ [name] = { unit = "", doc = "a probe of the script" } }, function(now_s)
    local value, why = v(now_s)
    if type(value) == "table" then
      local out = {}
      for key, part in pairs(value) do
        out[("%s_%s"):format(name, key)] = part
      end
      return out
    elseif type(value) == "number" then
      return { [name] = value }
    end
    return nil, why or failed("EILSEQ", nil, "probe '%s' gave a %s instead of a number", name,
      type(value))
  end)
end

local function sorted_names(t)
  local list = {}
  for name in pairs(t) do
    if type(name) ~= "string" then
      error(("probe [%s]: probes have names"):format(tostring(name)), 4)
    end
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

local function add(self, name, probe)
  self.list[#self.list + 1] = { name = name, probe = probe }
  for column, spec in pairs(probe.columns) do
    self.columns[column] = spec
  end
end

---Put together what is read for each sample: the device under a path, memory, the filesystem's
---counters, and a script's own probes (functions of the time that return a number, a table of
---numbers, or nil and why; or probes made here).
---@param path? string of the filesystem; nil: only the script's
---@param own? table<string, function|brim.Probe>
---@return brim.Probes
function M.new(path, own)
  local self = setmetatable({ list = {}, columns = {} }, Probes)
  if path then
    local device = M.device(path)
    if device then
      add(self, "device", device)
    end
    add(self, "memory", M.memory())
    for i, probe in ipairs(M.filesystem(path) or {}) do
      add(self, "filesystem " .. i, probe)
    end
  end
  for _, name in ipairs(sorted_names(own or {})) do
    add(self, name, from_value(name, own[name]))
  end
  return self
end

local function failure(name, err)
  local is_error = errors.is(err)
  return { kind = "error", op = "probe", probe = name, code = is_error and err.code or "EFAIL",
    path = is_error and err.path or nil, message = tostring(err) }
end

---Read all probes. What a probe gives that is no number is left out.
---@param now_s number a clock that goes forward
---@return table<string, number> values columns for a sample
---@return table[] events one for each probe that began to fail with this read
function Probes:read(now_s)
  local values, events = {}, {}
  for _, entry in ipairs(self.list) do
    local ok, out, why = pcall(entry.probe.read, now_s)
    if ok and type(out) == "table" then
      entry.has_failed = false
      for name, v in pairs(out) do
        values[name] = type(v) == "number" and v or nil
      end
    elseif not entry.has_failed then
      entry.has_failed = true
      events[#events + 1] = failure(entry.name, not ok and out or why or "it gave nothing")
    end
  end
  return values, events
end

return M
