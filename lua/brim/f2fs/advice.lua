-- brim.f2fs.advice: what a geometry will cost its user and mkfs.f2fs does not say. Called by
-- brim.f2fs; the lines become warnings of the recipe. Pure.
local geometry = require "brim.f2fs.geometry"

local M = {}

local SEGMENT_MIB <const> = 2
local SMALL_VOLUME_SEGMENTS <const> = 8192 -- SMALL_VOLUME_SEGMENTS * 4 of fs/f2fs/super.c
local FEW_NIDS_BYTES <const> = 64 << 10 -- of volume to a node number; ext4 has an inode for 16 KiB
local LARGE_SECTION_SHARE <const> = 0.1

local function gib(segments)
  return ("%.1f GiB"):format(segments * SEGMENT_MIB / 1024)
end

-- Both bitmaps share a checkpoint block until the SIT outgrows it: numbers of nodes fall as the
-- volume grows, from 13.5 million at 100 GiB to 232,960 at 3.2 TiB.
local function few_nids(g)
  if not g.large_nat and g.size_bytes // g.max_nids > FEW_NIDS_BYTES then
    return ("only %d files, directories and blocks of addresses fit, one for each %d KiB: the "
      .. "table of node addresses is capped at this size; with -i it would be %d"):format(
      g.max_nids, g.size_bytes // g.max_nids >> 10, g.other_nids)
  elseif g.large_nat and g.other_nids > g.max_nids then
    return ("-i leaves room for %d files, directories and blocks of addresses; without it there "
      .. "would be %d at this size"):format(g.max_nids, g.other_nids)
  end
end

local function worse_than_automatic(g)
  if g.is_automatic or g.has.ro or g.best_percent == 0 then
    return nil
  end
  local best = geometry.overprovision(g, g.best_percent)
  if best and best < g.overprovision_segments then
    return ("-o %g takes %s, without -o it would be %.2f %% and %s"):format(
      g.overprovision_percent, gib(g.overprovision_segments), g.best_percent, gib(best))
  end
end

local function large_sections(g)
  local share = g.overprovision_segments / g.usable_segments
  if g.section_segments > 1 and not g.has.ro and share > LARGE_SECTION_SHARE then
    return ("sections of %d segments are large for this volume: %d of them, and %.0f %% of the "
      .. "space go to overprovision"):format(g.section_segments, g.section_count, share * 100)
  end
end

-- mkfs.f2fs counts them as free, fsck.f2fs does not; no log can go there.
local function incomplete_zone(g)
  local rest = g.usable_segments - g.main_segments
  if rest > 0 then
    return ("%d segments behind the last whole zone are counted as free and never used; fsck.f2fs "
      .. "will say that the number of free segments is wrong"):format(rest)
  end
end

local function small_volume(g)
  if g.main_segments <= SMALL_VOLUME_SEGMENTS and not g.has.ro then
    return "with 16 GiB or less the kernel turns on its tuning for small volumes "
      .. "(alloc_mode=reuse, ipu_policy, discard granularity): it does not behave like a large one"
  end
end

---What is worth saying, the gravest first.
---@param g brim.f2fs.Geometry
---@return string[] lines
function M.lines(g)
  local lines = {}
  for _, rule in ipairs { few_nids, large_sections, worse_than_automatic,
    incomplete_zone, small_volume } do
    lines[#lines + 1] = rule(g)
  end
  return lines
end

return M
