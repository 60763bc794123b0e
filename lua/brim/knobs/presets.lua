-- brim.knobs.presets: named knob sets as data. Called by knobs, the recipes and explain. Pure.
local M = {}

---@class brim.KnobPreset
---@field filesystem string
---@field doc string where it comes from, what it is for
---@field knobs table<string, integer|string> those of files

---All presets by name.
---@type table<string, brim.KnobPreset>
M.LIST = {
  mail = {
    filesystem = "f2fs",
    doc = "what was tried in 2015 against an 8 TB SMR disk that became slow near full",
    knobs = { gc_idle = 1, gc_max_sleep_time = 90000, gc_no_gc_sleep_time = 30000,
      ipu_policy = 16, min_ipu_util = 100, reclaim_segments = 100000 },
  },
  ["large-volume"] = {
    filesystem = "f2fs",
    doc = "what a volume above 16 GiB has by default, for smaller ones that shall behave alike",
    knobs = { ipu_policy = 16, discard_granularity = 16, alloc_mode = "default" },
  },
  urgent = {
    filesystem = "f2fs",
    doc = "clean now: a victim each gc_urgent_sleep_time, whatever else goes on",
    knobs = { gc_urgent = 1 },
  },
  lfs = {
    filesystem = "f2fs",
    doc = "no writes into holes and none in place: cleaning instead of seeking",
    knobs = { mode = "lfs", ipu_policy = 0 },
  },
}

---The names of all presets, sorted.
---@return string[]
function M.names()
  local names = {}
  for name in pairs(M.LIST) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

return M
