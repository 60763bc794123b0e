-- spec.bench.bench_ceiling: what rendering costs: brim against the same I/Os with constant bytes
-- through the same engine, and against fio's io_uring: on a block device, on tmpfs, and on null,
-- where no device hides anything. "headers" is the headers of the groups alone, which is what fio
-- can be made to write too.
local brim = require "brim"
local disk = require "disk"
local fio = require "fio"
local plans = require "plans"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local REPEATS <const> = 5 -- of one run on the disk, which takes some 40 ms
local QUEUE_DEPTH <const> = 128
local IO_BYTES <const> = 24 << 10
local AIM <const> = 0.95
local TMPFS <const>, TMPFS_BYTES <const> = "/dev/shm", 32 << 50
local NULL_BYTES <const> = 1 << 60

M.lacks = function()
  return disk.lacks() or rounds.lacks { "fio" }
end

-- Seconds per group, of runs one after the other.
local function write(plan, target, repeats, o)
  local wall_s, cpu_s, groups = 0, 0, 0
  for _ = 1, repeats do
    local r = assert(plan:write(target, { queue_depth = QUEUE_DEPTH, engine = o and o.engine }))
    wall_s, groups = wall_s + r.wall_s, groups + r.groups
    cpu_s = cpu_s + r.run_user_cpu_s + r.run_system_cpu_s
  end
  return { wall_s = wall_s / groups, cpu_s = cpu_s / groups }
end

-- o: engine, prepare
local function contestant(name, plan, target, repeats, o)
  return { name = name, prepare = o and o.prepare, run = function()
    return write(plan, target, repeats, o)
  end }
end

local function fio_job(path, geometry, repeats)
  return { path = path, ios = geometry.ag_count - 1, repeats = repeats, io_bytes = IO_BYTES,
    stride_bytes = geometry.ag_bytes, first_bytes = geometry.ag_bytes,
    size_bytes = geometry.size_bytes, queue_depth = QUEUE_DEPTH, is_direct = true }
end

-- The CPU of fio would be that of starting it, for the greater part.
local function compare(add, where, count, measured, peer, aim)
  local fields = { { "wall_s", "wall" }, peer ~= "fio" and { "cpu_s", "CPU" } or nil }
  for _, row in ipairs(fields) do
    add { what = ("%s: %s per group, against %s"):format(where, row[2], peer), unit = "us",
      rounds = count, aim = row[1] == "wall_s" and aim or nil,
      brim = sample.values(measured.brim, row[1]), peer = sample.values(measured[peer], row[1]) }
  end
end

local function on_disk(add)
  local path, count = disk.device(), rounds.of(15)
  local format <close> = plans.format(disk.BYTES, { ag_bytes = disk.GROUP_BYTES })
  local constant <close> = plans.ceiling(format)
  local headers <close> = plans.groups(format, REPEATS)
  local bare <close> = plans.ceiling(headers)
  local device <close> = assert(brim.device.open(path, { write = true, force = true }))
  local measured = sample.interleave("ceiling, disk", count, {
    contestant("brim", format, device, REPEATS),
    contestant("constant", constant, device, REPEATS),
  })
  compare(add, "disk", count, measured, "constant", AIM)
  -- What is written for the first time costs the host's filesystem more.
  assert(headers:write(device))
  measured = sample.interleave("ceiling, disk, headers", count, {
    contestant("brim", headers, device, 1),
    contestant("constant", bare, device, 1),
    { name = "fio", run = function()
      return fio.write(fio_job(path, format.geometry, REPEATS))
    end },
  })
  compare(add, "disk, headers", count, measured, "constant", AIM)
  compare(add, "disk, headers", count, measured, "fio", AIM)
end

local function on_tmpfs(add)
  local count, path = rounds.of(9), scratch.directory(TMPFS) .. "/target"
  local format <close> = plans.format(TMPFS_BYTES)
  local headers <close> = plans.groups(format)
  local bare <close> = plans.ceiling(headers)
  local function fresh()
    shell.run("rm -f %q && truncate -s %d %q", path, TMPFS_BYTES, path)
  end
  local measured = sample.interleave("ceiling, tmpfs", count, {
    contestant("brim", headers, path, 1, { prepare = fresh }),
    contestant("constant", bare, path, 1, { prepare = fresh }),
    { name = "fio", prepare = fresh, run = function()
      return fio.write(fio_job(path, format.geometry, 1))
    end },
  })
  shell.run("rm -f %q", path)
  compare(add, "tmpfs, headers", count, measured, "constant", AIM)
  compare(add, "tmpfs, headers", count, measured, "fio", AIM)
end

local function on_null(add)
  local count = rounds.of(5)
  local format <close> = plans.format(NULL_BYTES)
  local constant <close> = plans.ceiling(format)
  local device <close> = assert(brim.device.null(NULL_BYTES))
  local measured = sample.interleave("ceiling, null", count, {
    contestant("brim", format, device, 1, { engine = "null" }),
    contestant("constant", constant, device, 1, { engine = "null" }),
  })
  compare(add, "null", count, measured, "constant")
end

function M.run(add)
  do
    local _ <close> = scratch.scope()
    on_disk(add)
  end
  on_tmpfs(add)
  on_null(add)
end

return M
