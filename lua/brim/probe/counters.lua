-- brim.probe.counters: where filesystems count in sysfs what explains their speed: one table for
-- each, as data. Called by probe, which leaves out what a kernel lacks. Sources: the kernel's
-- fs/xfs/xfs_stats.c, and Documentation/ABI/testing/sysfs-fs-{ext4,btrfs,f2fs}.
local columns = require "brim.timeline.columns"
local process = require "brim.process"

local M = {}

-- A basic block of XFS's log.
local BASIC_BLOCK_BYTES <const> = 512

-- Each { file, column, unit, doc, pattern =, delta =, scale = }; files below the filesystem's own
-- directory.
local TABLES <const> = {
  xfs = {
    { "stats/stats", "xfs_alloc_extents", "", "extents allocated",
      pattern = "extent_alloc (%d+)", delta = true },
    { "stats/stats", "xfs_alloc_blocks", "", "blocks allocated",
      pattern = "extent_alloc %d+ (%d+)", delta = true },
    { "stats/stats", "xfs_free_extents", "", "extents freed",
      pattern = "extent_alloc %d+ %d+ (%d+)", delta = true },
    { "stats/stats", "xfs_log_bytes", "bytes", "written to the log",
      pattern = "\nlog %d+ (%d+)", delta = true, scale = BASIC_BLOCK_BYTES },
    { "stats/stats", "xfs_log_force_sleeps", "", "waits for the log",
      pattern = "\nlog %d+ %d+ %d+ %d+ (%d+)", delta = true },
  },
  ext4 = {
    { "delayed_allocation_blocks", "ext4_delayed_blocks", "", "blocks whose place is not chosen" },
    { "session_write_kbytes", "ext4_write_bytes", "bytes", "written by the filesystem",
      delta = true, scale = 1024 },
  },
  btrfs = {
    { "allocation/data/bytes_used", "btrfs_data_used_bytes", "bytes", "used in data chunks" },
    { "allocation/data/total_bytes", "btrfs_data_chunk_bytes", "bytes", "size of data chunks" },
    { "allocation/metadata/bytes_used", "btrfs_metadata_used_bytes", "bytes",
      "used in metadata chunks" },
    { "allocation/metadata/total_bytes", "btrfs_metadata_chunk_bytes", "bytes",
      "size of metadata chunks" },
    { "allocation/global_rsv_reserved", "btrfs_reserved_bytes", "bytes", "global reserve" },
  },
  f2fs = {
    { "free_segments", "f2fs_free_segments", "", "segments that are free" },
    { "dirty_segments", "f2fs_dirty_segments", "", "segments with valid and invalid blocks" },
    { "lifetime_write_kbytes", "f2fs_write_bytes", "bytes", "written to the device", delta = true,
      scale = 1024 },
    { "gc_foreground_calls", "f2fs_gc_foreground", "", "calls of foreground GC", delta = true },
    { "gc_background_calls", "f2fs_gc_background", "", "calls of background GC", delta = true },
    { "moved_blocks_foreground", "f2fs_moved_foreground", "", "blocks moved by foreground GC",
      delta = true },
    { "moved_blocks_background", "f2fs_moved_background", "", "blocks moved by background GC",
      delta = true },
    { "cp_foreground_calls", "f2fs_cp_foreground", "", "checkpoints on demand", delta = true },
    { "cp_background_calls", "f2fs_cp_background", "", "checkpoints in the background",
      delta = true },
    { "avg_vblocks", "f2fs_avg_valid_blocks", "", "valid blocks of a dirty segment, on average" },
    { "pending_discard", "f2fs_pending_discards", "", "discards not yet issued" },
  },
}

---Give the standard columns of these names.
---@param names string[]
---@return table<string, brim.Column>
function M.standard(names)
  local out = {}
  for _, name in ipairs(names) do
    out[name] = columns.STANDARD[name]
  end
  return out
end

---Tell the directory in sysfs that a filesystem has for itself. Btrfs names its by UUID; the
---devices are links in it.
---@param filesystem string its type
---@param device string the name of its device in sysfs
---@param root? string instead of /sys/fs
---@return string? path
function M.directory(filesystem, device, root)
  root = root or "/sys/fs"
  if filesystem ~= "btrfs" then
    return ("%s/%s/%s"):format(root, filesystem, device)
  end
  local ok, found = process.run("find", root .. "/btrfs", "-mindepth", "3", "-maxdepth", "3",
    "-path", "*/devices/" .. device)
  return ok and found:match "^([^\n]+)/devices/[^\n]+" or nil
end

---List what to read of a filesystem, as options of probe.file.
---@param filesystem string its type
---@param device string the name of its device in sysfs
---@param root? string instead of /sys/fs
---@return table[]
function M.files(filesystem, device, root)
  local list = {}
  local dir = TABLES[filesystem] and M.directory(filesystem, device, root)
  for _, entry in ipairs(dir and TABLES[filesystem] or {}) do
    list[#list + 1] = { file = ("%s/%s"):format(dir, entry[1]), name = entry[2], unit = entry[3],
      doc = entry.delta and entry[4] .. " since the last sample" or entry[4],
      pattern = entry.pattern, delta = entry.delta, scale = entry.scale }
  end
  return list
end

return M
