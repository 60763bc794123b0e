-- brim.knobs.xfs: the tunables of a mounted XFS as data: below /sys/fs/xfs/DEVICE, and those below
-- /proc/sys/fs/xfs that hold for all of them. Called by knobs.data. Pure.
-- Sources: Documentation/admin-guide/xfs.rst; fs/xfs/{xfs_globals,xfs_sysctl,xfs_sysfs}.c of 6.1
-- and 7.2.
local M = {}

local S <const> = 100 -- centiseconds in a second

-- Each { name, unit, since, default, doc, min =, max =, file =, proc = }.
M.KNOBS = {
  { "xfssyncd_centisecs", "cs", "2.6.12", 30 * S, "pace of flushing metadata", min = S,
    max = 7200 * S, proc = true },
  { "filestream_centisecs", "cs", "2.6.23", 30 * S, "life of a file stream's group", min = 1,
    max = 3600 * S, proc = true },
  { "speculative_prealloc_lifetime", "s", "3.8", 300, "pace of trimming preallocation", min = 1,
    max = 86400, proc = true },
  { "rotorstep", "", "2.6.12", 1, "files in a group before the next, with inode32", min = 1,
    max = 255, proc = true },
  { "error_level", "", "2.6.12", 3, "verbosity of errors", max = 11, proc = true },
  { "panic_mask", "", "2.6.12", 0, "errors that panic, bits", proc = true },
  { "inherit_sync", "", "2.6.12", 1, "directories pass on the sync flag", max = 1, proc = true },
  { "inherit_nodump", "", "2.6.12", 1, "directories pass on nodump", max = 1, proc = true },
  { "inherit_noatime", "", "2.6.12", 1, "directories pass on the noatime flag", max = 1,
    proc = true },
  { "inherit_nosymlinks", "", "2.6.12", 0, "directories pass on the nosymlinks flag", max = 1,
    proc = true },
  { "inherit_nodefrag", "", "2.6.12", 1, "directories pass on the nodefrag flag", max = 1,
    proc = true },
  { "fail_at_unmount", "", "4.7", 1, "unmounting gives up on errors", max = 1,
    file = "error/fail_at_unmount" },
}

-- What is tried again, and how long, by kind of error.
for _, kind in ipairs { "default", "EIO", "ENOSPC", "ENODEV" } do
  local endless = kind ~= "ENODEV" and -1 or 0
  M.KNOBS[#M.KNOBS + 1] = { kind .. ".max_retries", "", "4.7", endless,
    "writes of metadata tried again; -1: for ever", min = -1, max = math.maxinteger >> 32,
    file = ("error/metadata/%s/max_retries"):format(kind) }
  M.KNOBS[#M.KNOBS + 1] = { kind .. ".retry_timeout_seconds", "s", "4.7", endless,
    "time of trying again; -1: for ever", min = -1, max = 86400,
    file = ("error/metadata/%s/retry_timeout_seconds"):format(kind) }
end

return M
