-- spec.bench.others: how much of the machine others had meanwhile: the more, the less medians tell.
local M = {}

-- Clock ticks of all CPUs since boot: in all, and at work.
local function machine()
  local file <close> = assert(io.open("/proc/stat"))
  local user, nice, system, idle, iowait, irq, softirq, steal = file:read("l"):match(
    "^cpu +(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)")
  local busy = user + nice + system + irq + softirq + steal
  return busy + idle + iowait, busy
end

-- Clock ticks of this process and of those it has waited for, theirs included.
local function own()
  local file <close> = assert(io.open("/proc/self/stat"))
  local ticks, n = 0, 0
  for field in file:read("a"):match("%) . (.*)"):gmatch("%S+") do
    n = n + 1
    ticks = ticks + (n >= 11 and n <= 14 and tonumber(field) or 0)
  end
  return ticks
end

local total0, busy0 = machine()
local own0 = own()

---The share of the CPU time, since this module was loaded, that went to others.
---@return number from 0 to 1
function M.share()
  local total, busy = machine()
  return math.max(0, (busy - busy0 - (own() - own0)) / math.max(1, total - total0))
end

return M
