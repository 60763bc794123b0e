-- brim.f2fs.probe: what an F2FS tells beside its counters in sysfs, as probes for timelines:
-- segments by kind, holes, victims, I/O by purpose, SSR against LFS, and what follows: write
-- amplification, bytes a request, prefree segments. Called by scripts and experiments, which hand
-- them to brim.fill or brim.probe.new. Files that a kernel lacks make no columns.
-- Sources: segment_info_seq_show and others of fs/f2fs/sysfs.c, iostat.c and debug.c, 6.1 to 7.2.
local errors = require "brim.error"
local opts = require "brim.opts"
local parse = require "brim.f2fs.probe.parse"
local probe = require "brim.probe"
local process = require "brim.process"
local provenance = require "brim.timeline.provenance"

local M = {}

---@class brim.f2fs.ProbeOpts
---@field sysfs? string instead of /sys
---@field proc? string instead of /proc
---@field device? string its name in sysfs; default: that of the mount at the path
---@field bits? boolean look at every block's bit, too: the holes that SSR writes into
---@field most_segments? integer segments of a volume beyond which they are not counted

local OPTS <const> = {
  sysfs = { type = "path", default = "/sys", doc = "where sysfs is" },
  proc = { type = "path", default = "/proc", doc = "where procfs is" },
  device = { type = "string", doc = "its name in sysfs" },
  bits = { type = "bool", default = false, doc = "look at every block's bit" },
  most_segments = { type = "int", min = 1, default = 1 << 18,
    doc = "beyond which segments are not counted: 512 GiB take a tenth of a second" },
}

local function slurp(path)
  local file <close> = io.open(path)
  return file and file:read "a"
end

local function failed(path)
  return errors.new { code = "EILSEQ", op = "probe", path = path,
    message = path .. ": not what F2FS writes there" }
end

local function column(unit, doc)
  return { unit = unit, doc = doc }
end

local SEGMENTS <const> = {
  f2fs_seg_empty = column("", "segments that hold nothing: free, prefree or just begun"),
  f2fs_seg_dirty = column("", "segments that are partly valid"),
  f2fs_seg_full = column("", "segments all of whose blocks are valid"),
  f2fs_seg_prefree = column("", "segments that hold nothing and are not free: waiting for a "
    .. "checkpoint, or a log's current one"),
  f2fs_valid_blocks = column("", "blocks that are valid"),
  f2fs_dirty_valid = column("1", "part of the dirty segments' blocks that is valid"),
}
for _, name in ipairs(parse.TYPES) do
  SEGMENTS["f2fs_" .. name .. "_blocks"] = column("", ("valid blocks of %s segments"):format(
    name:gsub("_", " ")))
end

-- Segments by kind; prefree from what sysfs says is free.
local function segments(proc, sysfs)
  local path = proc .. "/segment_info"
  return probe.custom(SEGMENTS, function()
    local s = parse.segments(slurp(path) or "")
    if not s then
      return nil, failed(path)
    end
    local out = { f2fs_seg_empty = s.empty, f2fs_seg_dirty = s.dirty, f2fs_seg_full = s.full,
      f2fs_valid_blocks = s.valid_blocks,
      f2fs_dirty_valid = s.dirty > 0 and s.dirty_blocks / (s.dirty * 512) or 0 }
    local free = math.tointeger(tonumber(process.line(sysfs .. "/free_segments") or ""))
    out.f2fs_seg_prefree = free and math.max(s.empty - free, 0)
    for _, name in ipairs(parse.TYPES) do
      out["f2fs_" .. name .. "_blocks"] = s.types[name]
    end
    return out
  end)
end

local function victims(proc)
  local path = proc .. "/victim_bits"
  return probe.custom({ f2fs_victims = column("", "sections that background GC has chosen and not "
    .. "yet emptied") }, function()
    local n = parse.victims(slurp(path) or "")
    if not n then
      return nil, failed(path)
    end
    return { f2fs_victims = n }
  end)
end

local function holes(proc)
  local path = proc .. "/segment_bits"
  return probe.custom({
    f2fs_hole_blocks = column("", "mean length of the holes in dirty segments, in blocks"),
    f2fs_holes = column("", "holes in dirty segments"),
  }, function()
    local h = parse.holes(slurp(path) or "")
    if not h then
      return nil, failed(path)
    end
    return { f2fs_holes = h.count, f2fs_hole_blocks = h.count > 0 and h.blocks / h.count or 0 }
  end)
end

-- ------------------------------------------------------------------- differences

local IOSTAT <const> = {
  f2fs_app_bytes = column("bytes", "written by programs since the last sample"),
  f2fs_data_bytes = column("bytes", "data written for them since the last sample"),
  f2fs_node_bytes = column("bytes", "nodes written since the last sample"),
  f2fs_meta_bytes = column("bytes", "metadata written since the last sample"),
  f2fs_gc_bytes = column("bytes", "written by GC since the last sample"),
  f2fs_cp_bytes = column("bytes", "written by checkpoints since the last sample"),
  f2fs_discard_bytes = column("bytes", "discarded since the last sample"),
  f2fs_write_amplification = column("1", "written to the device for each byte of programs"),
}

local function growth(old, new)
  local out = {}
  for name, v in pairs(new) do
    -- Counters begin anew when iostat_enable is written.
    out[name] = math.max(v - (old[name] or 0), 0)
  end
  return out
end

---Derive what is written for each byte of programs from growths of iostat_info's counters.
---@param d table<string, integer> by names as parse.iostat gives them
---@return table<string, number> columns of the iostat probe
function M.amplification(d)
  local function sum(...)
    local total = 0
    for _, name in ipairs { ... } do
      total = total + (d["write " .. name] or 0)
    end
    return total
  end
  local out = {
    f2fs_app_bytes = sum("app buffered data", "app direct data", "app mapped data",
      "app buffered cdata", "app mapped cdata"),
    f2fs_data_bytes = sum("fs data", "fs cdata"),
    f2fs_node_bytes = sum "fs node",
    f2fs_meta_bytes = sum "fs meta",
    f2fs_gc_bytes = sum("fs gc data", "fs gc node"),
    f2fs_cp_bytes = sum("fs cp data", "fs cp node", "fs cp meta"),
    f2fs_discard_bytes = d["other fs discard"] or 0,
  }
  local device = out.f2fs_data_bytes + out.f2fs_node_bytes + out.f2fs_meta_bytes
    + out.f2fs_gc_bytes + out.f2fs_cp_bytes
  if out.f2fs_app_bytes > 0 then
    out.f2fs_write_amplification = device / out.f2fs_app_bytes
  end
  return out
end

local function iostat(proc)
  local path, old = proc .. "/iostat_info", nil
  return probe.custom(IOSTAT, function()
    local new = parse.iostat(slurp(path) or "")
    if not new then
      old = nil
      return nil, errors.new { code = "ENODATA", op = "probe", path = path,
        message = path .. ": empty until iostat_enable is 1" }
    end
    local out = old and M.amplification(growth(old, new)) or {}
    old = new
    return out
  end)
end

local STATUS <const> = {
  f2fs_prefree = column("", "prefree segments"),
  f2fs_utilization = column("1", "part of the user's blocks that is valid"),
  f2fs_ssr_blocks = column("", "blocks written into holes since the last sample"),
  f2fs_lfs_blocks = column("", "blocks written into free segments since the last sample"),
  f2fs_ipu_blocks = column("", "blocks written in place since the last sample"),
  f2fs_ssr_share = column("1", "part of the blocks of logs that went into holes"),
  f2fs_gc_calls = column("", "calls of GC since the last sample"),
  f2fs_cp_calls = column("", "checkpoints since the last sample"),
  f2fs_bg_skip_io = column("", "background GC put off because of I/O since the last sample"),
  f2fs_dirty_nodes = column("", "node pages to be written"),
  f2fs_dirty_data = column("", "data pages to be written"),
}

local GROWING <const> = { "ssr_blocks", "lfs_blocks", "ipu_blocks", "gc_calls", "cp_calls",
  "bg_skip_io" }

local function status(path, device)
  local old
  return probe.custom(STATUS, function()
    local new = parse.status(slurp(path) or "", device)
    if not new then
      old = nil
      return nil, failed(path)
    end
    local out = { f2fs_prefree = new.prefree, f2fs_dirty_nodes = new.dirty_nodes,
      f2fs_dirty_data = new.dirty_data,
      f2fs_utilization = new.utilization_percent and new.utilization_percent / 100 }
    for _, name in ipairs(old and GROWING or {}) do
      out["f2fs_" .. name] = new[name] and old[name] and new[name] - old[name]
    end
    local ssr, lfs = out.f2fs_ssr_blocks, out.f2fs_lfs_blocks
    if ssr and lfs and ssr + lfs > 0 then
      out.f2fs_ssr_share = ssr / (ssr + lfs)
    end
    old = new
    return out
  end)
end

---Make a probe of how large the requests are that reach the device, from its counters.
---@param path string on the filesystem
---@param diskstats? string another file in the form of /proc/diskstats
---@return brim.Probe? probe
---@return brim.Error? err no block device is there
function M.requests(path, diskstats)
  local device, err = probe.device(path, diskstats)
  if not device then
    return nil, err
  end
  return probe.custom({ dev_request_bytes = column("bytes", "mean size of the writes that the "
    .. "device completed since the last sample") }, function(now_s)
    local v, why = device.read(now_s)
    if not v then
      return nil, why
    end
    return { dev_request_bytes = v.dev_writes and v.dev_writes > 0
      and v.dev_write_bytes / v.dev_writes or nil }
  end)
end

-- ------------------------------------------------------------------------ together

local function device_of(path, o)
  if o.device then
    return o.device
  end
  local m, err = provenance.mount(path)
  if not m then
    return nil, err
  elseif m.filesystem ~= "f2fs" then
    return nil, errors.usage("%s is %s, no F2FS", path, m.filesystem)
  end
  local device = provenance.device(path, m)
  return device and device.name or m.source:match "[^/]+$"
end

-- Is a file there, with something in it?
local function has(path)
  local file <close> = io.open(path)
  return file ~= nil and file:read(1) ~= nil
end

---Make the probes that an F2FS has here, by name, for brim.fill and brim.probe.new.
---@param path string on the filesystem
---@param o? brim.f2fs.ProbeOpts
---@return table<string, brim.Probe>? probes
---@return brim.Error? err
function M.probes(path, o)
  o = opts.check(o, OPTS, "brim.f2fs.probe.probes")
  local device, err = device_of(path, o)
  if not device then
    return nil, err
  end
  local proc, sysfs = ("%s/fs/f2fs/%s"):format(o.proc, device),
    ("%s/fs/f2fs/%s"):format(o.sysfs, device)
  local debugfs = o.sysfs .. "/kernel/debug/f2fs/status"
  local out = {}
  local counted = parse.segments(slurp(proc .. "/segment_info") or "", o.most_segments)
  if counted then
    out.f2fs_segments = segments(proc, sysfs)
    out.f2fs_victims = has(proc .. "/victim_bits") and victims(proc) or nil
    out.f2fs_holes = o.bits and has(proc .. "/segment_bits") and holes(proc) or nil
  end
  out.f2fs_iostat = has(proc .. "/iostat_info") and iostat(proc) or nil
  out.f2fs_status = has(debugfs) and status(debugfs, device) or nil
  out.f2fs_requests = M.requests(path)
  return out
end

return M
