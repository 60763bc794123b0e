-- brim.fill.churn: files come, change and go while the fullness stays where it is: after each
-- interval the synchronised fullness is compared with the wanted one and the sum of file sizes that
-- streams keep to is corrected by the difference. Called by brim.fill. Fullness is 0 to 1.
local core = require "brim.core"

local M = {}

local FIRST_OPS_PER_S <const> = 2000
local SPARE_OPS <const> = 100
-- Written at most between corrections, of the size: copy on write needs room until the next sync.
local INTERVAL_PART <const>, INTERVAL_BYTES <const> = 0.005, 4 << 20
local IDLE_GRANTS <const> = 50 -- refused so often with nothing done: it will not get better

-- What is wanted of the streams' files: corrected by what is missing or too much.
local function correct(s, c)
  local off = c.target_bytes - s:used()
  c.off_bytes = math.abs(off)
  local live = s.stats and s.stats.live_bytes or 0
  local step = off / math.max(c.used_per_live, 0.05)
  if c.refused then
    -- Room to go on in: at ENOSPC nothing can be created before something is deleted.
    c.room_bytes = math.max(c.room_bytes * 2, c.least_room)
  end
  c.live_bytes = math.max(math.floor(live + step - c.room_bytes), 1)
  s.record:event { kind = "feedback", fullness = s:fullness(), wanted = c.target_bytes
    / s.usage.size_bytes, live_bytes = c.live_bytes }
end

local function phase_of(c)
  local o = c.o
  return { create = o.create, delete = o.delete, overwrite = o.overwrite, append = o.append,
    truncate = o.truncate, replace = o.replace, live_bytes = c.live_bytes,
    band_ppm = c.band_ppm, max_file_bytes = c.max_file_bytes }
end

local function is_over(s, c)
  local written = s.wrote - c.begun_bytes
  local elapsed_s = core.monotonic_s() - c.begun_s
  return s.stopped
    or c.o.seconds and elapsed_s >= c.o.seconds
    or c.o.bytes and written >= c.o.bytes
    or c.o.turnovers and written >= c.o.turnovers * c.first_live
end

-- What one interval may use: an operation may still begin when its time is over.
local function limits(s, c)
  local left_s = c.o.seconds and c.o.seconds - (core.monotonic_s() - c.begun_s) or math.huge
  local interval_s = math.max(math.min(c.o.feedback_s, left_s), 0.01)
  -- What is missing may be made up at once.
  local bytes = math.max(s.usage.size_bytes * INTERVAL_PART, INTERVAL_BYTES, c.off_bytes)
  if c.o.bytes then
    bytes = math.min(bytes, c.o.bytes - (s.wrote - c.begun_bytes))
  end
  return math.floor(c.ops_per_s * interval_s * 2) + SPARE_OPS,
    math.max(bytes // s.streams, 1), core.monotonic_s() + interval_s
end

-- One interval; true when nothing at all was done.
local function interval(s, c)
  s:phase(phase_of(c))
  local ops, bytes, until_s = limits(s, c)
  local before, begun_s = s:ops(), core.monotonic_s()
  local refused = s:grant(ops, math.floor(bytes), until_s)
  local did = s:ops() - before
  local took_s = math.max(core.monotonic_s() - begun_s, 0.001)
  c.ops_per_s = math.max(did / s.streams / took_s, 10)
  c.refused = refused
  return did == 0
end

local function begin(s, o)
  local size = s.usage.size_bytes
  local band_bytes = o.band * size
  local c = { o = o, begun_s = core.monotonic_s(), begun_bytes = s.wrote,
    first_live = math.max(s.stats and s.stats.live_bytes or 1, 1), ops_per_s = FIRST_OPS_PER_S,
    target_bytes = math.floor((o.at or s:fullness()) * size), room_bytes = 0, used_per_live = 1,
    least_room = math.max(size * 0.0005, s.usage.block_bytes * 64), lowest = s:fullness(),
    highest = s:fullness() }
  -- One file of each stream must not leave the band.
  local cap = math.max(math.floor(band_bytes / 4 / s.streams), s.usage.block_bytes)
  c.max_file_bytes = cap < s.largest_bytes and cap or nil
  c.band_ppm = math.min(math.ceil(band_bytes / 16 / c.first_live * 1e6), 1000000)
  c.target_bytes = math.min(c.target_bytes, size - s:margin())
  return c
end

---Run it.
---@param s brim.FillSession
---@param o table of brim.fill.options.CHURN, with `elapsed_s` where it goes on after a crash
---@return table result lowest and highest: synchronised fullness; max_file_bytes: the cap
function M.run(s, o)
  s:checkpoint(0)
  local c, idle = begin(s, o), 0
  c.begun_s = c.begun_s - (o.elapsed_s or 0)
  while not is_over(s, c) and idle < IDLE_GRANTS do
    correct(s, c)
    idle = interval(s, c) and idle + 1 or 0
    s:checkpoint(core.monotonic_s() - c.begun_s)
    c.lowest = math.min(c.lowest, s:fullness())
    c.highest = math.max(c.highest, s:fullness())
  end
  return { lowest = c.lowest, highest = c.highest, max_file_bytes = c.max_file_bytes,
    stopped = s.stopped or idle >= IDLE_GRANTS and (s.last_code or "no progress") or nil }
end

return M
