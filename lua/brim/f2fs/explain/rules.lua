-- brim.f2fs.explain.rules: what each group of knobs makes the kernel do, as statements: the GC
-- thread, the allocator, checkpoints, updates in place, small volumes, dead knobs. Called by
-- brim.f2fs.explain. Pure. `c` has kernel, knobs, geometry, fullness, dirty_segments, wait_ms,
-- is_small; `say` takes (kind, severity, rule, figures, format, ...). Rules name the
-- kernel's function and file.
local data = require "brim.knobs.data"
local gc = require "brim.f2fs.explain.gc"
local bytes = require "brim.bytes"

local M = {}

local SEGMENT_BYTES <const> = 2 << 20
local SEGMENT_BLOCKS <const> = 512
local RECLAIM_SEGMENTS_MAX <const> = 4096 -- of the default
local IPU <const> = { force = 1, ssr = 2, util = 4, ssr_util = 8, fsync = 16 }
local SSR_KNOB_SINCE <const> = "4.15" -- min_ssr_sections
local REUSE_FORCED_BEFORE <const> = "6.2" -- alloc_mode of small volumes, whatever the option says
local THREAD_RULE <const> = "gc_thread_func, fs/f2fs/gc.c"
local SLEEP_RULE <const> = "increase_sleep_time, decrease_sleep_time, fs/f2fs/gc.h"

local function size(n)
  return n >= 1 << 40 and ("%.1f TiB"):format(n / (1 << 40))
    or n >= 1 << 30 and ("%.1f GiB"):format(n / (1 << 30))
    or n >= 1 << 20 and ("%.0f MiB"):format(n / (1 << 20)) or bytes.format(n)
end

local function seconds(ms)
  return ("%.1f s"):format(ms / 1000)
end

-- ------------------------------------------------------------------ GC thread

local function state_of(c, enough)
  return { knobs = c.knobs, kernel = c.kernel, enough_invalid = enough, wait_ms = c.wait_ms }
end

local function is_forced(c)
  local urgent = c.knobs.gc_urgent
  return urgent == 1 or urgent == 3
end

-- The pace at one fullness, with what it cleans by then.
local function pace(c, enough)
  local cadence = gc.cadence(state_of(c, enough))
  local per_victim = math.min(c.knobs.migration_granularity or c.geometry.section_segments,
    c.geometry.section_segments)
  local per_hour = 3600e3 / cadence.sleep_ms * per_victim
  return { sleep_s = cadence.sleep_ms / 1000, is_constant = cadence.is_constant,
    cycle_ms = cadence.cycle_ms, settles_s = cadence.settles_ms / 1000,
    segments_per_victim = per_victim, segments_per_hour = per_hour,
    hours = c.dirty_segments and c.dirty_segments / per_hour }
end

local function say_pace(c, say, fullness, p, condition)
  local hours = p.hours and p.hours > 0
    and ("; %d dirty segments take %.1f hours or more"):format(c.dirty_segments, p.hours) or ""
  local cycle = ""
  if not p.is_constant and #p.cycle_ms <= 4 then
    local parts = {}
    for i, ms in ipairs(p.cycle_ms) do
      parts[i] = seconds(ms)
    end
    cycle = " (" .. table.concat(parts, ", ") .. " in turn)"
  elseif not p.is_constant then
    local sleeps = table.move(p.cycle_ms, 1, #p.cycle_ms, 1, {})
    table.sort(sleeps)
    cycle = (" on average, %s to %s in %d steps"):format(seconds(sleeps[1]),
      seconds(sleeps[#sleeps]), #sleeps)
  end
  local figures = { fullness = fullness }
  for key, v in pairs(p) do
    figures[key] = v
  end
  say("gc_thread", fullness >= 0.9 and p.segments_per_hour < 3600 and "warning" or "info",
    THREAD_RULE, figures,
    "at %g %% full, idle%s: one victim of %d segment%s (%s) each %.1f s%s: %s/h%s",
    fullness * 100, condition, p.segments_per_victim, p.segments_per_victim == 1 and "" or "s",
    size(p.segments_per_victim * SEGMENT_BYTES), p.sleep_s, cycle,
    size(math.floor(p.segments_per_hour * SEGMENT_BYTES)), hours)
end

-- Below 60 % full it depends on how much is free in whole segments.
local function at_fullness(c, say, fullness)
  local g = c.geometry
  local invalid = math.floor(g.user_blocks * (1 - fullness))
  if is_forced(c) or invalid <= g.user_blocks * 40 // 100 then
    return say_pace(c, say, fullness, pace(c, false), "")
  end
  local limit = invalid * 40 // 100 // SEGMENT_BLOCKS + g.overprovision_segments
  say_pace(c, say, fullness, pace(c, false), (", while %d or more segments are free"):format(limit))
  say_pace(c, say, fullness, pace(c, true), (", while fewer than %d segments are free"):format(
    limit))
end

local function pinned(c, say)
  local k = c.knobs
  local resets = not data.is_before(c.kernel, "6.2")
  if is_forced(c) then
    say("urgent", "note", THREAD_RULE, { sleep_s = k.gc_urgent_sleep_time / 1000 },
      "gc_urgent=%d: a victim each %d ms, whatever else goes on%s", k.gc_urgent,
      k.gc_urgent_sleep_time, k.gc_urgent == 1 and "; SSR and discards are forced" or "")
  elseif not resets then
    say("gc_thread", k.gc_no_gc_sleep_time == c.wait_ms and "warning" or "note", SLEEP_RULE,
      { sleep_s = k.gc_no_gc_sleep_time / 1000 },
      "once the sleep is gc_no_gc_sleep_time (%s) it does not change again above 60 %% full "
      .. "(Linux before 6.2)%s", seconds(k.gc_no_gc_sleep_time), k.gc_no_gc_sleep_time == c.wait_ms
      and ": it is that already, as the thread began with it: pinned for ever, where it is set "
      .. "before the first wake-up" or ", which one wake-up without a victim brings about")
  else
    say("gc_thread", "info", THREAD_RULE, { sleep_s = k.gc_min_sleep_time / 1000 },
      "a sleep of gc_no_gc_sleep_time (%s) ends with the next victim, at gc_min_sleep_time (%s): "
      .. "since 6.2", seconds(k.gc_no_gc_sleep_time), seconds(k.gc_min_sleep_time))
  end
end

---Say what the GC thread does.
---@param c table
---@param say fun(...)
function M.gc_thread(c, say)
  if c.knobs.background_gc == "off" then
    say("gc_thread", "warning", "f2fs_remount, fs/f2fs/super.c", {}, "background_gc=off: there is "
      .. "no GC thread; all gc_*_sleep_time are dead, cleaning waits for foreground GC")
    return
  end
  say("gc_thread", "info", SLEEP_RULE, {}, "it sleeps longer by %s at each wake-up, up to %s, "
    .. "unless less than 60 %% of the user's blocks are valid and few of the others are free; one "
    .. "victim for each wake-up", seconds(c.knobs.gc_min_sleep_time),
    seconds(c.knobs.gc_max_sleep_time))
  pinned(c, say)
  for _, fullness in ipairs(c.fullness) do
    at_fullness(c, say, fullness)
  end
  if (c.knobs.gc_idle or 0) ~= 0 then
    say("gc_idle", "note", "select_gc_type, fs/f2fs/gc.c", {}, "gc_idle=%d chooses victims (%s); "
      .. "it does not make GC run when idle", c.knobs.gc_idle,
      ({ "cost-benefit", "greedy", "age threshold" })[c.knobs.gc_idle])
  end
end

-- ------------------------------------------------------------------- allocator

-- The fullness at which so many segments are free if nothing is fragmented; nil: never.
local function fullness_of(g, free_segments)
  local beyond = free_segments - g.overprovision_segments
  return beyond > 0 and 1 - beyond * SEGMENT_BLOCKS / g.user_blocks or nil
end

local function when(g, free_segments)
  local fullness = fullness_of(g, free_segments)
  if not fullness then
    return nil, "only what dirty segments hold brings it about: unfragmented, overprovision alone "
      .. "is more"
  end
  return fullness, ("at %.1f %% full at the latest, with %s left to users"):format(fullness * 100,
    size((free_segments - g.overprovision_segments) * SEGMENT_BYTES))
end

local function ssr(c, say)
  local g = c.geometry
  local reserved = g.reserved_segments // g.section_segments
  local more, rule = 1, "need_SSR, fs/f2fs/segment.h (before 4.15)"
  if not data.is_before(c.kernel, SSR_KNOB_SINCE) then
    more, rule = c.knobs.min_ssr_sections, "f2fs_need_SSR, fs/f2fs/segment.c"
  end
  local sections = reserved + more
  local segments = sections * g.section_segments
  local fullness, words = when(g, segments)
  say("ssr", fullness and "warning" or "note", rule, { free_sections = sections,
    free_bytes = segments * SEGMENT_BYTES, fullness = fullness },
    "writes go into holes of dirty segments (SSR) once %d sections or fewer are free, %s: %s; "
    .. "earlier by what dirty nodes and directories need", sections,
    size(segments * SEGMENT_BYTES), words)
end

---Say when the allocator leaves free segments for holes, and when writers have to clean.
---@param c table
---@param say fun(...)
function M.allocator(c, say)
  local g = c.geometry
  if c.knobs.mode == "lfs" then
    say("lfs", "note", "f2fs_need_SSR, fs/f2fs/segment.c", {}, "mode=lfs: never into holes; what "
      .. "is not free has to be cleaned, the fuller the more blocks are moved for each written")
  elseif c.knobs.gc_urgent == 1 then
    say("ssr", "warning", "f2fs_need_SSR, fs/f2fs/segment.c", {}, "gc_urgent=1: writes go into "
      .. "holes (SSR) at any fullness")
  else
    ssr(c, say)
  end
  local is_strict = not data.is_before(c.kernel, "7.0")
  local segments = g.reserved_segments
  local fullness, words = when(g, segments)
  say("foreground_gc", "info", "has_not_enough_free_secs, fs/f2fs/segment.h", {
    free_sections = segments // g.section_segments, free_bytes = segments * SEGMENT_BYTES,
    fullness = fullness }, "a writer has to clean whole sections itself, greedily, once %s%d "
    .. "sections are free, %s (and what dirty pages need): %s", is_strict and "fewer than " or "",
    segments // g.section_segments, size(segments * SEGMENT_BYTES), words)
  if c.knobs.alloc_mode == "reuse" then
    say("alloc_mode", "note", "get_new_segment, fs/f2fs/segment.c", {}, "alloc_mode=reuse: each "
      .. "new segment is looked for from the front of the volume")
  end
end

-- ----------------------------------------------------------------- checkpoints

---Say when prefree segments become free.
---@param c table
---@param say fun(...)
function M.checkpoints(c, say)
  local n, g = c.knobs.reclaim_segments, c.geometry
  local reserved = g.reserved_segments
  say("checkpoint", n > math.max(reserved, RECLAIM_SEGMENTS_MAX) and "warning" or "info",
    "excess_prefree_segs, f2fs_balance_fs_bg, fs/f2fs/segment.c", { bytes = n * SEGMENT_BYTES },
    "up to %d segments (%s) that hold nothing any more may wait for a checkpoint before they can "
    .. "be written again%s", n, size(n * SEGMENT_BYTES), n >= g.main_segments
    and ": more than there are, so this never forces one" or "")
  if c.knobs.cp_interval then
    say("checkpoint", "info", "f2fs_balance_fs_bg, fs/f2fs/segment.c",
      { interval_s = c.knobs.cp_interval }, "an idle filesystem makes a checkpoint when the last "
      .. "is %d s old and something looks: the GC thread at its wake-up, or a writer",
      c.knobs.cp_interval)
  end
end

-- ------------------------------------------------------------ updates in place

---Say which writes go where the old data is.
---@param c table
---@param say fun(...)
function M.in_place(c, say)
  local policy, rule = c.knobs.ipu_policy, "check_inplace_update_policy, fs/f2fs/data.c"
  if c.knobs.mode == "lfs" then
    say("ipu", "info", "f2fs_should_update_inplace, fs/f2fs/data.c", {}, "mode=lfs: no update in "
      .. "place but of pinned files; ipu_policy is dead")
    return
  end
  local parts = {}
  local function has(bit, words)
    if policy & bit ~= 0 then
      parts[#parts + 1] = words
    end
  end
  has(IPU.force, "all")
  has(IPU.ssr, "all while SSR is on")
  has(IPU.util, ("all above %d %% utilisation"):format(c.knobs.min_ipu_util))
  has(IPU.ssr_util, ("all while SSR is on above %d %%"):format(c.knobs.min_ipu_util))
  has(IPU.fsync, "those of fdatasync, and of fsync with few dirty pages")
  say("ipu", policy & IPU.force ~= 0 and "note" or "info", rule, { policy = policy },
    "ipu_policy=%d: updated in place are %s; and cold files", policy,
    #parts > 0 and table.concat(parts, ", ") or "none")
end

-- ----------------------------------------------------------------------- dead

---Say which knobs that were set change nothing with the others as they are.
---@param c table
---@param say fun(...)
function M.dead(c, say)
  local k, set = c.knobs, c.set
  local function dead(name, is_dead, why)
    if set[name] ~= nil and is_dead then
      say("dead_knob", "warning", why.rule, {}, "%s=%s changes nothing: %s", name,
        tostring(set[name]), why[1])
    end
  end
  dead("min_ipu_util", k.ipu_policy & (IPU.util | IPU.ssr_util) == 0,
    { "only the UTIL bits of ipu_policy (4, 8) read it",
      rule = "check_inplace_update_policy, fs/f2fs/data.c" })
  dead("min_fsync_blocks", k.ipu_policy & IPU.fsync == 0,
    { "only the bit FSYNC of ipu_policy (16) reads it",
      rule = "f2fs_do_sync_file, fs/f2fs/file.c" })
  dead("gc_urgent_sleep_time", not is_forced(c), { "gc_urgent is neither 1 nor 3",
    rule = THREAD_RULE })
  dead("min_ssr_sections", k.mode == "lfs", { "mode=lfs never writes into holes",
    rule = "f2fs_need_SSR, fs/f2fs/segment.c" })
  local is_off = k.background_gc == "off"
  for _, name in ipairs { "gc_min_sleep_time", "gc_max_sleep_time", "gc_no_gc_sleep_time",
    "gc_idle_interval" } do
    dead(name, is_off or is_forced(c), { is_off and "background_gc is off"
      or "gc_urgent goes its own pace", rule = THREAD_RULE })
  end
  if set.gc_max_sleep_time and gc.cadence(state_of(c, false)).sleep_ms < k.gc_max_sleep_time
    and not is_off and not is_forced(c) then
    say("dead_knob", "warning", SLEEP_RULE, {}, "gc_max_sleep_time=%d is never reached: the sleep "
      .. "meets gc_no_gc_sleep_time first", k.gc_max_sleep_time)
  end
end

-- -------------------------------------------------------------- small volumes

---Say what F2FS does differently on a volume of 16 GiB and less.
---@param c table
---@param say fun(...)
function M.small_volume(c, say)
  if not c.is_small then
    return
  end
  local forced = data.is_before(c.kernel, REUSE_FORCED_BEFORE)
  say("small_volume", "warning", "f2fs_tuning_parameters, fs/f2fs/super.c", {
    main_segments = c.geometry.main_segments }, "%d segments of main area, and up to 8192 (16 GiB) "
    .. "F2FS has other defaults: all is updated in place, discards are of one block%s; it behaves "
    .. "like a large volume only with ipu_policy=16, discard_granularity=16 and alloc_mode=default "
    .. "(preset large-volume)", c.geometry.main_segments, ", segments are reused from the front"
    .. (forced
    and ", whatever the mount option says" or ""))
end

---The groups in the order they are said.
---@type string[]
M.ORDER = { "small_volume", "gc_thread", "allocator", "checkpoints", "in_place", "dead" }

return M
