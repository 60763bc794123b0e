-- brim.fill.level: fills to a level: a fullness, free space, files, bytes, or until not one further
-- block fits. Space is believed only after a sync: each grant is nine tenths of what is missing by
-- then, so that the synchronised fullness never goes backwards. Called by brim.fill.
local core = require "brim.core"

local M = {}

local PART <const> = 0.9 -- of what is missing, a grant
local TOLERANCE <const> = 0.0005 -- of the filesystem's size
local IDLE_TRIES <const> = 3 -- refused so often without getting on: that is all there is
local PROGRESS <const> = 0.0002 -- of the size: less written is not getting on
local PADS_MAX <const> = 4096

-- What is still missing, in bytes that are to be in use; and what is close enough.
local function missing(s, target)
  local size = s.usage.size_bytes
  local near = math.max(math.floor(size * TOLERANCE), s.usage.block_bytes)
  local most = size - s:margin()
  if target.kind == "fullness" then
    return math.min(math.floor(size * target.value), most) - s:used(), near
  elseif target.kind == "free" then
    return math.min(size - target.value, most) - s:used(), near
  elseif target.kind == "bytes" then
    local live = s.stats and s.stats.live_bytes or 0
    return math.min((target.value - live) * s.used_per_byte, most - s:used()), 0
  elseif target.kind == "files" then
    local live = s.stats and s.stats.live_files or 0
    return math.min((target.value - live) * s.mean_bytes * s.used_per_byte, most - s:used()), 0
  end
  return most - s:used(), s:margin() > 0 and near or 0
end

-- Files at most so large that one more for each stream is a quarter of what is missing.
local function cap_for(s, target, left_bytes)
  local cap = math.max(math.floor(left_bytes / s.used_per_byte / s.streams / 4),
    s.usage.block_bytes)
  cap = math.min(cap, target.max_file_bytes or math.maxinteger)
  return cap < s.largest_bytes and cap or nil
end

-- The operations of each stream that are still missing.
local function ops_for(s, target, bytes, cap)
  if target.kind == "files" then
    local left = target.value - (s.stats and s.stats.live_files or 0)
    return math.max(left // s.streams, 1)
  end
  return s:ops_for(bytes, cap)
end

-- What is missing less a tenth, or less what one more file each may add; of files, all.
local function grant_towards(s, target, left_bytes)
  local left = left_bytes / s.used_per_byte / s.streams
  local cap = target.max_file_bytes
  if target.kind == "files" then
    left = left * 1.5
  else
    cap = cap_for(s, target, left_bytes)
    left = math.min(left * PART, left - math.min(cap or s.largest_bytes, left / 2))
  end
  local bytes = s:grant_bytes(left)
  s:phase { max_file_bytes = cap }
  return s:grant(ops_for(s, target, bytes, cap), bytes)
end

-- Creates until a level is reached or the world says no; why it ended, nil when reached.
local function approach(s, target)
  local idle, begun_s = 0, core.monotonic_s()
  while true do
    s:checkpoint(core.monotonic_s() - begun_s)
    local left, near = missing(s, target)
    if left <= near then
      return nil
    elseif s.stopped then
      return s.stopped
    end
    local refused, written = grant_towards(s, target, left)
    local is_idle = written < s.usage.size_bytes * PROGRESS
    idle = is_idle and (refused or written == 0) and idle + 1 or 0
    if idle >= IDLE_TRIES then
      s:checkpoint(core.monotonic_s() - begun_s)
      return refused and s.last_code or "no progress"
    end
  end
end

-- ------------------------------------------------------------------ really full

-- Files of at most `cap` bytes until refused; twice where little was written, with a sync between.
local function squeeze(s, cap)
  s:phase { max_file_bytes = cap }
  for _ = 1, IDLE_TRIES do
    local bytes = s:grant_bytes(s.usage.free_bytes + (16 << 20))
    local refused, written = s:grant(s:ops_for(bytes, cap), bytes)
    s:checkpoint()
    if s.stopped or refused and written < 16 * cap then
      return
    end
  end
end

-- Does a file of one block still fit? It stays where it does: such is what no stream can use.
local function pad(s, n)
  local path = ("%s/%s/pad-%d"):format(s.path, s.LOG_DIR, n)
  local file = io.open(path, "wb")
  local ok = file ~= nil
  if file then
    file:setvbuf "no"
    ok = file:write((("brimpad\n"):rep(s.usage.block_bytes // 8))) and true or false
    ok = file:close() and ok
  end
  ok = ok and core.usage_sync(s.path) and true or false
  if not ok then
    os.remove(path)
  end
  return ok
end

-- Single blocks beside the streams' directories, until none fits.
local function fill_pads(s)
  local n = 0
  while n < PADS_MAX and not s.stopped and pad(s, n + 1) do
    n = n + 1
  end
  return n
end

-- Halves the size of files until not one block fits.
local function to_the_brim(s, result)
  local cap = math.max(s.largest_bytes, 1)
  local block = s.usage.block_bytes
  while cap > block and not s.stopped do
    cap = math.max(cap // 2, block)
    squeeze(s, cap)
  end
  squeeze(s, block)
  result.pads = s.stopped and 0 or fill_pads(s)
  s:checkpoint(nil, true)
end

local function fill(s, target)
  local result = {}
  local why = approach(s, target)
  if target.kind ~= "full" then
    result.stopped = why
    return result
  elseif why and not s.stopped then
    result.refused_at, result.refused_with = s:fullness(), why
    if s:margin() == 0 then
      to_the_brim(s, result)
    end
  end
  result.stopped = s.stopped
  return result
end

---Fill to a target of brim.fill.options.
---@param s brim.FillSession
---@param target table
---@return table result stopped = why, where the level was not reached; refused_at: the fullness
---at which files of all sizes no longer fitted; pads: blocks beside the streams' files
function M.run(s, target)
  s.is_filling = true
  local result = fill(s, target)
  s.is_filling = false
  return result
end

return M
