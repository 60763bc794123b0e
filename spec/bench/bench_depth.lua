-- spec.bench.bench_depth: how many I/Os are in flight on average, of as many as were asked for: as
-- the kernel counts them on the device, and as brim does. On a target whose latency is all there is
-- to it, and on the disk, which answers so fast that the queue is refilled thousands of times a
-- second.
local brim = require "brim"
local disk = require "disk"
local latency = require "latency"
local plans = require "plans"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local DELAY_MS <const> = 2
local DEPTHS <const> = { 8, 32, 128 }
local AIM <const> = 0.9

M.lacks = function()
  return latency.lacks() or disk.lacks()
end

local function contestant(path, device, plan, depth)
  return { name = depth, run = function()
    local counted, result = disk.counted(path, function()
      return assert(plan:write(device, { queue_depth = depth, engine = "uring" }))
    end)
    return { kernel = counted.in_flight_s / result.wall_s, own = result.mean_queue_depth }
  end }
end

local function measure(add, what, path, count, times, aim)
  local format <close> = plans.format(disk.BYTES, { ag_bytes = disk.GROUP_BYTES })
  local groups <close> = plans.groups(format, times)
  local device <close> = assert(brim.device.open(path, { write = true, force = true }))
  -- What is written for the first time costs the host's filesystem more.
  assert(groups:write(device))
  local list = {}
  for i, depth in ipairs(DEPTHS) do
    list[i] = contestant(path, device, groups, depth)
  end
  local measured = sample.interleave("depth, " .. what, count, list)
  for _, depth in ipairs(DEPTHS) do
    for _, by in ipairs { { "kernel", "the kernel" }, { "own", "brim" } } do
      add { what = ("%s: in flight by %s, of %d"):format(what, by[2], depth), unit = "count",
        more = true, aim = by[1] == "kernel" and aim or nil, rounds = count, peer = depth,
        brim = sample.values(measured[depth], by[1]) }
    end
  end
end

function M.run(add)
  do
    local _ <close> = scratch.scope()
    measure(add, ("%d ms"):format(DELAY_MS), latency.device(disk.BYTES, DELAY_MS), rounds.of(3), 1,
      AIM)
  end
  measure(add, "disk", disk.device(), rounds.of(5), 10)
end

return M
