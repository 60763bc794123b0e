-- brim.detect: watches a measurement as it goes and tells when speed collapses and when nothing
-- moves at all. Called by brim.fill for each sample, and by scripts. Streaming: memory is a window
-- of samples. Each detector has two thresholds, so that it does not chatter. Times are seconds.
local opts = require "brim.opts"
local pretty = require "brim.pretty"

local M = {}
local Collapse, Stall, Detector = {}, {}, {}
Collapse.__index, Stall.__index, Detector.__index = Collapse, Stall, Detector

---@class brim.CollapseOpts
---@field fraction? number of the running median below which speed has collapsed, default 0.3
---@field recover? number fraction at which it has recovered, default 0.6
---@field for_s? number how long it must stay below, default 5
---@field window? integer samples that the median is taken of, default 60
---@field warm_up? integer samples before anything is said, default 10

---@class brim.StallOpts
---@field limit_s? number without progress, default 10

---@class brim.DetectorOpts: brim.CollapseOpts, brim.StallOpts

local STALL <const> = {
  limit_s = { type = "number", default = 10, min = 0, doc = "time without progress" },
}
local COLLAPSE <const> = {
  fraction = { type = "number", default = 0.3, min = 0, max = 1,
    doc = "of the running median, below which speed has collapsed" },
  recover = { type = "number", default = 0.6, min = 0, doc = "fraction at which it has recovered" },
  for_s = { type = "number", default = 5, min = 0, doc = "how long it must stay below" },
  window = { type = "int", default = 60, min = 3, max = 100000,
    doc = "samples that the median is taken of" },
  warm_up = { type = "int", default = 10, min = 1, doc = "samples before anything is said" },
}
local BOTH <const> = { limit_s = STALL.limit_s }
for name, spec in pairs(COLLAPSE) do
  BOTH[name] = spec
end

-- ------------------------------------------------------------- running median

-- Where v belongs in a sorted list: the first place whose value is not below it.
local function place(sorted, v)
  local low, high = 1, #sorted + 1
  while low < high do
    local middle = (low + high) // 2
    if sorted[middle] < v then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- The last `window` values, in the order they came and sorted.
local function window_add(w, v, size)
  table.insert(w.sorted, place(w.sorted, v), v)
  w.at = w.at % size + 1
  local old = w.ring[w.at]
  if old then
    table.remove(w.sorted, place(w.sorted, old))
  end
  w.ring[w.at] = v
end

local function median(w)
  local n = #w.sorted
  return n % 2 == 1 and w.sorted[n // 2 + 1] or (w.sorted[n // 2] + w.sorted[n // 2 + 1]) / 2
end

-- ------------------------------------------------------------------ collapses

---Make a detector of collapses: speed that stays under a fraction of its running median. What is
---below the fraction does not enter the median, so a collapse lasts until the speed of before is
---near again, however long that takes.
---@param o? brim.CollapseOpts
---@return brim.CollapseDetector
function M.collapse(o)
  o = opts.check(o, COLLAPSE, "brim.detect.collapse")
  if o.recover < o.fraction then
    error("brim.detect.collapse: option 'recover': must be at least 'fraction'", 2)
  end
  return setmetatable({ o = o }, Collapse):reset()
end

---Forget what was: a new phase has a speed of its own.
---@return brim.CollapseDetector self
function Collapse:reset()
  self.window = { ring = {}, sorted = {}, at = 0 }
  self.below_s, self.event, self.speed_sum, self.speed_n = nil, nil, 0, 0
  return self
end

local function collapsed(self, t_s, middle)
  local speed = self.speed_sum / self.speed_n
  self.event = { kind = "collapse", state = "begin", t_s = t_s, began_s = self.below_s,
    bytes_per_s = speed, median_bytes_per_s = middle,
    message = ("speed is down to %.0f %% of its median: %sB/s after %sB/s"):format(
      100 * speed / middle, pretty.si(speed), pretty.si(middle)) }
  return self.event
end

local function recovered(self, t_s, speed)
  local began = self.event
  self.event = nil
  return { kind = "collapse", state = "end", t_s = t_s, began_s = began.began_s,
    lasted_s = t_s - began.began_s, bytes_per_s = speed,
    median_bytes_per_s = began.median_bytes_per_s,
    message = ("speed is back at %sB/s after %s"):format(pretty.si(speed),
      pretty.duration(t_s - began.began_s)) }
end

---Take the next sample.
---@param t_s number
---@param bytes_per_s number since the sample before
---@return table? event `state` "begin" or "end" of a collapse; nil where nothing changed
function Collapse:add(t_s, bytes_per_s)
  local o, w = self.o, self.window
  if #w.sorted < o.warm_up then
    window_add(w, bytes_per_s, o.window)
    return nil
  end
  local middle = median(w)
  if bytes_per_s < o.fraction * middle then
    self.below_s = self.below_s or t_s
    self.speed_sum, self.speed_n = self.speed_sum + bytes_per_s, self.speed_n + 1
    if not self.event and t_s - self.below_s >= o.for_s then
      return collapsed(self, t_s, middle)
    end
    return nil
  end
  if self.event and bytes_per_s < o.recover * middle then
    return nil
  end
  window_add(w, bytes_per_s, o.window)
  local ended = self.event and recovered(self, t_s, bytes_per_s) or nil
  self.below_s, self.speed_sum, self.speed_n = nil, 0, 0
  return ended
end

-- --------------------------------------------------------------------- stalls

---Make a detector of stalls: nothing completes for longer than a limit, or one operation takes
---longer than it.
---@param o? brim.StallOpts
---@return brim.StallDetector
function M.stall(o)
  return setmetatable({ o = opts.check(o, STALL, "brim.detect.stall") }, Stall):reset()
end

---Forget what was.
---@return brim.StallDetector self
function Stall:reset()
  self.progress, self.since_s, self.began_s = nil, nil, nil
  return self
end

---Take the next sample.
---@param t_s number
---@param progress number anything that grows while work is done: operations, bytes
---@param waiting_s? number how long the slowest operation in flight has been waiting
---@return table? event `state` "begin" or "end" of a stall; nil where nothing changed
function Stall:add(t_s, progress, waiting_s)
  if progress ~= self.progress then
    self.progress, self.since_s = progress, t_s
  end
  local idle_s = t_s - self.since_s
  local still_s = math.max(idle_s, waiting_s or 0)
  if still_s >= self.o.limit_s and not self.began_s and still_s > 0 then
    self.began_s = t_s - still_s
    return { kind = "stall", state = "begin", t_s = t_s, began_s = self.began_s,
      message = (idle_s >= still_s and "nothing has completed for %s" or
        "an operation has been going on for %s"):format(pretty.duration(still_s)) }
  elseif self.began_s and still_s < self.o.limit_s then
    local began_s = self.began_s
    self.began_s = nil
    return { kind = "stall", state = "end", t_s = t_s, began_s = began_s,
      lasted_s = t_s - began_s,
      message = ("work goes on after %s"):format(pretty.duration(t_s - began_s)) }
  end
end

-- ----------------------------------------------------------------------- both

---Make a detector of both, which gives events as a timeline takes them.
---@param o? brim.DetectorOpts
---@return brim.Detector
function M.new(o)
  o = opts.check(o, BOTH, "brim.detect.new")
  local limit_s = o.limit_s
  o.limit_s = nil
  return setmetatable({ collapse = M.collapse(o), stall = M.stall { limit_s = limit_s } }, Detector)
end

---Forget what was, as at the beginning of a phase.
---@return brim.Detector self
function Detector:reset()
  self.collapse:reset()
  self.stall:reset()
  return self
end

---Take the next sample: what it means, as a list of events, mostly empty.
---@param sample { t_s: number, bytes_per_s: number, progress: number, waiting_s?: number }
---@return table[] events
function Detector:add(sample)
  local events = { self.stall:add(sample.t_s, sample.progress, sample.waiting_s) }
  events[#events + 1] = self.collapse:add(sample.t_s, sample.bytes_per_s)
  return events
end

return M
