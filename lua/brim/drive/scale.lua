-- brim.drive.scale: a drive as a small replica, whose ratios are those of the large one as far as
-- that can be, so that what takes weeks there shows in minutes. Called by brim.drive. Pure. Bytes.
local bytes = require "brim.bytes"

local M = {}

-- Fewer bands than that, and cleaning is no longer a matter of statistics.
local BANDS_MIN <const> = 64
local BAND_BYTES_MIN <const> = 1 << 20
local ENTRIES_MIN <const> = 16

local function times(n, factor)
  return math.floor(n * factor + 0.5)
end

local function mean_band(p)
  return (p.band_min_bytes + p.band_max_bytes) // 2
end

-- Bands keep their size, so that a filesystem's segments and sections are in the same relation.
local function scale_bands(p, notes)
  local factor = p.size_bytes / (BANDS_MIN * mean_band(p))
  if factor >= 1 then
    return
  end
  factor = math.max(factor, BAND_BYTES_MIN / p.band_min_bytes)
  notes[#notes + 1] = ("band/segment: bands of %s instead of %s, as there would be fewer than %d; "
    .. "cleaning takes as much less"):format(bytes.format(times(mean_band(p), factor)),
    bytes.format(mean_band(p)), BANDS_MIN)
  for _, name in ipairs { "band_min_bytes", "band_max_bytes", "clean_min_ns", "clean_max_ns" } do
    p[name] = times(p[name], factor)
  end
end

local function scale_cache(p, factor, notes)
  p.cache_bytes = math.max(times(p.cache_bytes, factor), 4096)
  local entries = times(p.cache_entries, factor)
  if entries < ENTRIES_MIN then
    notes[#notes + 1] = ("writes in the cache/disk: %d instead of %d"):format(ENTRIES_MIN, entries)
    entries = ENTRIES_MIN
  end
  p.cache_entries = entries
  if p.cache_bytes < p.band_max_bytes then
    notes[#notes + 1] = ("cache/band: the cache (%s) is smaller than a band (%s); a rewrite "
      .. "that is given up may not fit"):format(bytes.format(p.cache_bytes),
      bytes.format(p.band_max_bytes))
  end
end

---Scale the parameters of a drive to another size. Seeks stay as long for the same part of the
---drive; rates and bands stay, the cache shrinks with the drive.
---@param params table as in brim.drive.presets
---@param size_bytes integer
---@return table params
---@return string[] notes the ratios that could not be kept
function M.scale(params, size_bytes)
  local p, notes = {}, {}
  for name, v in pairs(params) do
    p[name] = v
  end
  local factor = size_bytes / p.size_bytes
  p.size_bytes = size_bytes
  if p.model == "smr" then
    scale_bands(p, notes)
    scale_cache(p, factor, notes)
    p.zones = math.max(1, math.min(p.zones or 1, size_bytes // (4 * mean_band(p))))
  end
  return p, notes
end

return M
