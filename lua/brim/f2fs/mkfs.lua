-- brim.f2fs.mkfs: formats targets as mkfs.f2fs does: what is known of them, the plans, the discard,
-- the writing. Called by the recipe mkfs.f2fs. A target named *.brim is an image file of brim.
local content = require "brim.f2fs.content"
local device = require "brim.device"
local errors = require "brim.error"
local f2fs = require "brim.f2fs"

local M = {}

local SECTOR_BYTES <const> = 512
local SIGNATURE_BYTES <const> = 64 << 10
local NAMES <const> = { "compat", "section_segments", "zone_sections", "overprovision_percent",
  "features", "large_nat", "heap", "label", "uuid", "cold", "hot", "encoding", "strict", "time_s",
  "fixed_version", "kernel" }

---Does a target's name ask for an image file of brim?
---@param target string
---@return boolean
function M.is_image(target)
  return target:find "%.brim$" ~= nil
end

-- The real user and group of this process.
local function ids()
  local file <close> = io.open "/proc/self/status"
  local status = file and file:read "a" or ""
  return math.tointeger(tonumber(status:match "\nUid:%s*(%d+)")) or 0,
    math.tointeger(tonumber(status:match "\nGid:%s*(%d+)")) or 0
end

-- Size and sectors of one target.
local function look(path)
  local opened <close>, err = device.open(path, { raw = true })
  if not opened then
    return nil, errors.refused(err)
  end
  local info = opened:info()
  local sector = info.kind == "block" and math.max(info.logical_sector_bytes, SECTOR_BYTES)
    or SECTOR_BYTES
  return { path = path, size_bytes = info.size_bytes, sector_bytes = sector, kind = info.kind }
end

-- The size that a number of sectors asks for.
local function wanted_bytes(o, sector_bytes)
  local unit = o.wanted_sector_bytes or sector_bytes
  if o.wanted_sectors > math.maxinteger // unit then
    return math.maxinteger
  end
  return o.wanted_sectors * unit // sector_bytes * sector_bytes
end

---What is known of the devices of a command line.
---@param o brim.f2fs.CommandLine
---@return table[]? devices path, size_bytes, sector_bytes, kind
---@return brim.Error? err
function M.look(o)
  if M.is_image(o.target) then
    if not o.wanted_sectors or #o.more > 0 then
      return nil, errors.usage("%s: an image file is of one device and needs its size: mkfs.f2fs "
        .. "%s SECTORS", o.target, o.target)
    end
    return { { path = o.target, size_bytes = wanted_bytes(o, SECTOR_BYTES),
      sector_bytes = SECTOR_BYTES, kind = "image" } }
  end
  local list = {}
  for i, path in ipairs { o.target, table.unpack(o.more) } do
    local found, err = look(path)
    if not found then
      return nil, err
    elseif i > 1 and found.sector_bytes ~= list[1].sector_bytes then
      return nil, errors.usage("-c %s: its sectors are of %d bytes, those of %s of %d", path,
        found.sector_bytes, o.target, list[1].sector_bytes)
    end
    list[i] = found
  end
  local wanted = o.wanted_sectors and wanted_bytes(o, list[1].sector_bytes)
  if wanted and wanted < list[1].size_bytes then
    list[1].whole_bytes, list[1].size_bytes = list[1].size_bytes, wanted
  end
  return list
end

---The options of brim.f2fs.plans for a command line and its devices.
---@param o brim.f2fs.CommandLine
---@param devices table[]
---@return table
function M.options(o, devices)
  local uid, gid = ids()
  local options = { devices = devices, sector_bytes = devices[1].sector_bytes,
    uid = o.uid or uid, gid = o.gid or gid, trimmed = not o.no_discard }
  for _, name in ipairs(NAMES) do
    options[name] = o[name]
  end
  return options
end

---Inode numbers of quota files by kind, 0 where there is none.
---@param g brim.f2fs.Geometry
---@return integer[]
function M.quota_inodes(g)
  local list = { 0, 0, 0 }
  for _, inode in ipairs(content.inodes(g)) do
    if inode.quota then
      list[inode.quota] = inode.ino
    end
  end
  return list
end

-- Opens a device for writing; says whether it held something by which it is known.
local function open(found, o)
  local align = 4096
  while found.size_bytes % align ~= 0 do
    align = align >> 1
  end
  local options = { write = true, raw = true, direct = o.run.direct, buffered = o.run.buffered,
    min_size_bytes = found.size_bytes, direct_align_bytes = align }
  local opened, err = device.open(found.path, options)
  if opened or err.code ~= "EEXIST" or not o.force then
    return opened, err
  end
  options.force = true
  opened, err = device.open(found.path, options)
  return opened, err, true
end

-- Gives all of a device back. Of a block device that is an optimisation; the front goes before.
local function trim(opened, size_bytes)
  if opened:info().kind == "file" then
    return opened:zero(0, size_bytes)
  end
  local ok, err = opened:write(0, ("\0"):rep(math.min(SIGNATURE_BYTES, size_bytes)))
  ok = ok and opened:flush()
  if not ok then
    return nil, err
  end
  opened:discard(0, size_bytes)
  return true
end

local function close_all(list)
  for _, handle in ipairs(list) do
    handle:close()
  end
end

local function open_all(devices, o)
  local list = setmetatable({}, { __close = close_all })
  local has_signature = false
  for i, found in ipairs(devices) do
    local opened, err, was_known = open(found, o)
    if not opened then
      close_all(list)
      return nil, errors.refused(err)
    end
    list[i], has_signature = opened, has_signature or was_known or false
  end
  return list, has_signature
end

-- Phases of several devices: the first has the superblocks and is written last.
local function write_all(plans, handles, o)
  local sum
  for i = #plans, 1, -1 do
    local result, err = plans[i]:write(handles[i], o.run)
    if not result or result.stopped then
      return result, err
    end
    if sum then
      for _, name in ipairs { "writes", "bytes" } do
        result[name] = (result[name] or 0) + (sum[name] or 0)
      end
    end
    sum = result
  end
  return sum
end

local function save(p, path)
  local ok, err = p:save(path)
  if not ok then
    return nil, errors.refused(err)
  end
  return { image = path, bytes = p:totals().write_bytes, writes = 0, engine = "image",
    geometry = p.geometry }
end

---Format the devices of a command line. Options: `format` (of brim.f2fs.plans), force, discard, run
---(of plan:write).
---@param devices table[]
---@param o table
---@return table? result
---@return brim.Error? err
function M.format(devices, o)
  if devices[1].kind == "image" then
    local plans, err = f2fs.plans(o.format)
    if not plans then
      return nil, err
    end
    local p <close> = plans[1]
    return save(p, devices[1].path)
  elseif o.run.engine == "null" then
    local plans, err = f2fs.plans(o.format)
    if not plans then
      return nil, err
    end
    local handles <close> = setmetatable({}, { __close = close_all })
    for i, found in ipairs(devices) do
      handles[i] = assert(device.null(found.size_bytes))
    end
    return write_all(plans, handles, o)
  end
  local handles <close>, has_signature = open_all(devices, o)
  if not handles then
    return nil, has_signature
  end
  o.format.wipe = has_signature
  local plans, err = f2fs.plans(o.format)
  if not plans then
    return nil, err
  end
  for i, opened in ipairs(o.discard and handles or {}) do
    local ok, why = trim(opened, devices[i].size_bytes)
    if not ok then
      return nil, why
    end
  end
  local result, failed = write_all(plans, handles, o)
  if result then
    result.geometry = plans[1].geometry
  end
  return result, failed
end

return M
