-- spec.bench.bench_block: a block device of 1,920 groups of 16 MiB, against mkfs.xfs -K: once
-- blank, once over an XFS, whose copies of the superblock are to be erased first.
local disk = require "disk"
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"

local M = {}

M.lacks = function()
  return disk.lacks() or rounds.lacks { "mkfs.xfs" }
end

local function contestant(name, path, argv, is_blank)
  return { name = name, prepare = function()
    local waited_s = disk.wipe(path)
    if not is_blank then
      process.measure(disk.reference(path))
    end
    return waited_s
  end, run = function()
    local counted, took = disk.counted(path, function()
      return process.measure(argv)
    end)
    took.reads, took.writes = counted.reads, counted.writes
    return took
  end }
end

local function per_group(entries, field)
  return sample.values(entries, function(took)
    return took[field] / disk.GROUPS
  end)
end

local ROWS <const> = {
  { what = "wall per group", field = "wall_s", unit = "us", aim = 100 },
  { what = "CPU per group", field = "cpu_s", unit = "us", aim = 50 },
  { what = "user CPU per group", field = "user_s", unit = "us" },
  { what = "system CPU per group", field = "system_s", unit = "us" },
  { what = "writes per group", field = "writes", unit = "count" },
  { what = "reads per group", field = "reads", unit = "count" },
}

local function compare(path, is_blank, count, add)
  local suffix = is_blank and "" or ", over an XFS"
  local measured = sample.interleave("block" .. suffix, count, {
    contestant("brim", path, disk.brim(path), is_blank),
    contestant("mkfs.xfs", path, disk.reference(path), is_blank),
  })
  for _, row in ipairs(ROWS) do
    add { what = row.what .. suffix, unit = row.unit, aim = is_blank and row.aim or nil,
      rounds = count, brim = per_group(measured.brim, row.field),
      peer = per_group(measured["mkfs.xfs"], row.field) }
  end
end

function M.run(add)
  local path = disk.device()
  compare(path, true, rounds.of(7), add)
  compare(path, false, rounds.of(3), add)
end

return M
