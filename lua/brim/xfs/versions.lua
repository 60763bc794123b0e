-- brim.xfs.versions: what the releases of mkfs.xfs do differently, as data. Called by schema,
-- options, geometry, text, format and the mkfs recipe; what is not here is alike in all of them.
-- Sources: xfsprogs 6.1.0 and 6.13.0 (mkfs/xfs_mkfs.c, libxfs), and mkfs.xfs 7.2.0 itself.
local M = {}

---@class brim.xfs.Version
---@field name string as `compat` names it
---@field full string as `mkfs.xfs -V` prints it
---@field defaults table<string, boolean> of the features whose default changed
---@field has_concurrency boolean groups and log of solid state devices follow the number of CPUs
---@field has_small_roots boolean a tree that fills a group may have a root of two pointers
---@field has_split_free_lists boolean free lists allow for splits alone, not for the roots
---@field keeps_holes boolean blocks before a log that ends with its group stay free, or make its
--- free list; else they are lost
---@field prefers_data_stripe boolean for the log, before a block where sectors are large
---@field takes_zero_percent boolean `-i maxpct=0` is no limit, else the default
---@field has_atomic_writes boolean logs have room for the end of an atomic write
---@field has_generations boolean fresh inodes get random generation numbers, else 0
---@field has_self_healing boolean autofsck is "repair" where rmapbt and parent are on
---@field obeys_environment boolean SOURCE_DATE_EPOCH and DETERMINISTIC_SEED fix what is random
---@field atimes table<"root"|"summary", boolean> whose atime is set, else 0

---Releases that can be asked for, the oldest first. Between two of them the older holds.
---@type brim.xfs.Version[]
M.LIST = {
  { name = "6.1", full = "6.1.0",
    defaults = { rmapbt = false, nrext64 = false, exchange = false, parent = false },
    has_concurrency = false, has_generations = false, has_self_healing = false,
    has_small_roots = false, has_split_free_lists = false, prefers_data_stripe = false,
    has_atomic_writes = false, takes_zero_percent = false,
    keeps_holes = false, obeys_environment = false, atimes = {} },
  { name = "6.13", full = "6.13.0",
    defaults = { rmapbt = true, nrext64 = true, exchange = false, parent = false },
    has_concurrency = true, has_generations = true, has_self_healing = false,
    has_small_roots = true, has_split_free_lists = true, prefers_data_stripe = false,
    has_atomic_writes = false, takes_zero_percent = false,
    keeps_holes = true, obeys_environment = false, atimes = { root = true, summary = true } },
  { name = "7.2", full = "7.2.0",
    defaults = { rmapbt = true, nrext64 = true, exchange = true, parent = true },
    has_concurrency = true, has_generations = true, has_self_healing = true,
    has_small_roots = true, has_split_free_lists = true, prefers_data_stripe = true,
    has_atomic_writes = true, takes_zero_percent = true,
    keeps_holes = true, obeys_environment = true, atimes = { root = true, summary = true } },
}

---The release that holds where none is asked for.
M.DEFAULT = "6.1"

local order = {}
local names = {}
for i, version in ipairs(M.LIST) do
  order[version.name], names[i] = i, version.name
end

---The names of all releases in words, for a message: "6.1, 6.13 or 7.2".
M.NAMES = table.concat(names, ", ", 1, #names - 1) .. " or " .. names[#names]

---What a release does.
---@param name? string default DEFAULT
---@return brim.xfs.Version? version nil: there is none of that name
function M.of(name)
  return M.LIST[order[name or M.DEFAULT]]
end

---Does a release come before another?
---@param name? string default DEFAULT
---@param other string
---@return boolean
function M.is_before(name, other)
  return order[name or M.DEFAULT] < order[other]
end

return M
