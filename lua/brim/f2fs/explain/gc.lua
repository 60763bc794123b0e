-- brim.f2fs.explain.gc: the state machine of F2FS's GC thread, run without a kernel: when it wakes,
-- whether it takes a victim, how long it sleeps next. Called by brim.f2fs.explain and by whoever
-- compares a kernel with it. Pure. Times are milliseconds, space is blocks and segments.
-- Source: gc_thread_func (fs/f2fs/gc.c), increase_sleep_time, decrease_sleep_time and
-- has_enough_invalid_blocks (gc.h), is_idle (f2fs.h) of 6.1.192, 6.12.117 and 7.2.13. Devices that
-- are not zoned.
local data = require "brim.knobs.data"

local M = {}

local SEGMENT_BLOCKS <const> = 512
local LIMIT_PERCENT <const> = 40 -- LIMIT_INVALID_BLOCK and LIMIT_FREE_BLOCK
-- From here on a victim ends the sleep after none (commit "reset wait_ms to default if any of the
-- victims have been selected").
local RESETS_SINCE <const> = "6.2"
local URGENT_MID_SINCE <const> = "5.19"
local MAX_WAKES <const> = 1000000

---@class brim.f2fs.GcState
---@field knobs table<string, integer> gc_min_sleep_time, gc_max_sleep_time, gc_no_gc_sleep_time,
--- gc_urgent_sleep_time, gc_urgent, gc_idle_interval
---@field kernel string
---@field wait_ms? integer what it sleeps at the start; default gc_min_sleep_time's default
---@field enough_invalid? boolean M.has_enough_invalid(...); default false
---@field victims? integer dirty sections it finds, one for each wake-up; default: no end
---@field idle_after_ms? integer when the last operation is gc_idle_interval ago; default 0
---@field trials? integer gc_remaining_trials

---@class brim.f2fs.GcWake
---@field t_ms integer
---@field victim boolean
---@field why "urgent"|"victim"|"no victim"|"not idle"
---@field wait_ms integer what it sleeps next

---Does a thread shorten its sleep: more than 40 % of the user's blocks hold nothing valid, and less
---than 40 % of these are free?
---@param g table user_blocks, overprovision_segments
---@param valid_blocks integer those written and valid, nodes among them
---@param free_segments integer
---@return boolean
function M.has_enough_invalid(g, valid_blocks, free_segments)
  local invalid = g.user_blocks - valid_blocks
  local free = math.max(free_segments - g.overprovision_segments, 0) * SEGMENT_BLOCKS
  return invalid > g.user_blocks * LIMIT_PERCENT // 100 and free < invalid * LIMIT_PERCENT // 100
end

local function longer(k, wait)
  if wait == k.gc_no_gc_sleep_time then
    return wait
  end
  return math.min(wait + k.gc_min_sleep_time, k.gc_max_sleep_time)
end

local function shorter(k, wait)
  if wait == k.gc_no_gc_sleep_time then
    wait = k.gc_max_sleep_time
  end
  return math.max(wait - k.gc_min_sleep_time, k.gc_min_sleep_time)
end

-- One wake-up: what it does, and what it sleeps next.
local function wake(s, t_ms, wait, victims, urgent)
  local k = s.knobs
  if urgent then
    wait = k.gc_urgent_sleep_time
  elseif t_ms < s.idle_after_ms then
    return "not idle", longer(k, wait)
  elseif s.enough_invalid then
    wait = shorter(k, wait)
  else
    wait = longer(k, wait)
  end
  if victims <= 0 then
    return "no victim", k.gc_no_gc_sleep_time
  elseif s.resets and wait == k.gc_no_gc_sleep_time then
    wait = k.gc_min_sleep_time
  end
  return urgent and "urgent" or "victim", wait
end

local function is_urgent(s)
  return s.knobs.gc_urgent == 1
    or s.knobs.gc_urgent == 3 and not data.is_before(s.kernel, URGENT_MID_SINCE)
end

local function prepare(s)
  local out = {}
  for key, v in pairs(s) do
    out[key] = v
  end
  out.idle_after_ms = s.idle_after_ms or 0
  out.victims = s.victims or math.maxinteger
  out.resets = not data.is_before(s.kernel, RESETS_SINCE)
  out.wait_ms = s.wait_ms or 30000
  -- gc_urgent=2 does not wait for operations to be over.
  if s.knobs.gc_urgent == 2 then
    out.idle_after_ms = 0
  end
  return out
end

---Run the thread for a while.
---@param state brim.f2fs.GcState
---@param duration_ms integer
---@param most? integer wake-ups
---@return brim.f2fs.GcWake[] wakes
function M.simulate(state, duration_ms, most)
  most = math.min(most or MAX_WAKES, MAX_WAKES)
  local s = prepare(state)
  local wakes, t_ms, wait, left = {}, 0, s.wait_ms, s.victims
  local urgent, trials = is_urgent(s), s.trials or 0
  repeat
    -- A sleep of nothing still takes a tick.
    t_ms = t_ms + math.max(wait, 1)
    if t_ms > duration_ms then
      break
    end
    local why
    why, wait = wake(s, t_ms, wait, left, urgent)
    local took = why == "victim" or why == "urgent"
    left = left - (took and 1 or 0)
    wakes[#wakes + 1] = { t_ms = t_ms, victim = took, why = why, wait_ms = wait }
    if urgent and trials > 0 then
      trials = trials - 1
      urgent = trials > 0
    end
  until #wakes >= most
  return wakes
end

---@class brim.f2fs.Cadence
---@field sleep_ms number between two victims, on average once it has settled
---@field is_constant boolean the sleep no longer changes
---@field cycle_ms integer[] the sleeps that come again and again, or the last one
---@field settles_ms integer when that begins

-- The sleeps after each victim, from when a sleep comes that was there before.
local function cycle_of(wakes, first_ms)
  local seen, sleep = {}, first_ms
  for i, w in ipairs(wakes) do
    if seen[w.wait_ms] then
      local cycle = {}
      for j = seen[w.wait_ms] + 1, i do
        cycle[#cycle + 1] = wakes[j].wait_ms
      end
      return cycle, wakes[seen[w.wait_ms]].t_ms
    end
    seen[w.wait_ms], sleep = i, w.wait_ms
  end
  return { sleep }, wakes[#wakes] and wakes[#wakes].t_ms or 0
end

---Tell at which pace an idle filesystem is cleaned while there are victims.
---@param state brim.f2fs.GcState
---@return brim.f2fs.Cadence
function M.cadence(state)
  local s = {}
  for key, v in pairs(state) do
    s[key] = v
  end
  s.victims, s.idle_after_ms, s.trials = nil, 0, nil
  local k = s.knobs
  local longest = math.max(k.gc_max_sleep_time, k.gc_no_gc_sleep_time, s.wait_ms or 30000,
    k.gc_urgent_sleep_time or 0)
  -- A settled sleep or cycle shows after as many steps as fit into the longest sleep.
  local steps = math.min(longest // math.max(k.gc_min_sleep_time, 1) + 4, MAX_WAKES)
  local wakes = M.simulate(s, math.maxinteger, steps)
  local cycle, settles = cycle_of(wakes, s.wait_ms or 30000)
  local sum = 0
  for _, ms in ipairs(cycle) do
    sum = sum + ms
  end
  return { sleep_ms = sum / #cycle, is_constant = #cycle == 1, cycle_ms = cycle,
    settles_ms = settles }
end

return M
