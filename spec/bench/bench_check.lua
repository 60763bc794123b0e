-- spec.bench.bench_check: brim check of freshly made filesystems of 1,024, 4,096 and 16,384 groups,
-- against xfs_repair -n -P, which reads one thing after the other. "cached" is as mkfs.xfs leaves
-- it: all that either reads lies in the page cache; "cold" is when none of it does. The ceiling is
-- the same reads without looking at what was read. Reads and bytes are as the kernel counts them.
local checked = require "checked"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local SIZES <const> = { { groups = 1024, rounds = 3 }, { groups = 4096, rounds = 5 },
  { groups = 16384, rounds = 2 } }
local COMPARED <const> = 4096 -- groups, where the aim is
local AIM <const> = 20
local RSS_BYTES <const> = 64 << 20
local QUEUE_DEPTH <const> = 128
local BLOCK_BYTES <const> = 4096

M.lacks = checked.lacks

local ROWS <const> = {
  { what = "wall", field = "wall_s", unit = "s", aim = AIM },
  { what = "CPU per group", field = "cpu_s", unit = "us", is_each = true },
  { what = "peak memory", field = "peak_rss_bytes", unit = "mib", at_most = RSS_BYTES },
  { what = "reads per group", field = "read_calls", unit = "count", is_each = true,
    only = "cached" },
  { what = "bytes read per group", field = "read_bytes", unit = "kib", is_each = true,
    only = "cached" },
  { what = "disk bytes per group", field = "disk_read_bytes", unit = "kib", is_each = true,
    only = "cold" },
}

local function values(runs, row, groups)
  return sample.values(runs, function(took)
    return took[row.field] / (row.is_each and groups or 1)
  end)
end

-- One state of the page cache; answers what brim's runs took.
local function compare(add, oracle, path, size, state)
  local is_cold, count = state == "cold", rounds.of(size.rounds)
  local where = ("%s of %s, %s"):format(checked.count(size.groups),
    oracle.version:match "^%d+%.%d+", state)
  local peer = checked.peer(path, oracle, { is_cold = is_cold })
  local len_bytes = checked.brim(path).run().read_bytes // size.groups // BLOCK_BYTES * BLOCK_BYTES
  if not is_cold then
    peer.run()
  end
  local measured = sample.interleave(where, count, { checked.brim(path, is_cold), peer,
    checked.ceiling(path, size.groups, len_bytes, { depth = is_cold and QUEUE_DEPTH or 0,
      is_cold = is_cold }) })
  for _, row in ipairs(ROWS) do
    if (row.only or state) == state then
      add { what = where .. ": " .. row.what, unit = row.unit, rounds = count,
        aim = size.groups == COMPARED and row.aim or nil, at_most = row.at_most,
        brim = values(measured.brim, row, size.groups),
        peer = values(measured.xfs_repair, row, size.groups) }
    end
  end
  add { what = where .. ": the reads alone", unit = "s", rounds = count,
    brim = sample.values(measured.brim, "wall_s"), peer = sample.values(measured.reads, "wall_s") }
  return measured.brim
end

local function per_group(runs, groups)
  return sample.values(runs, function(took)
    return took.cpu_s / groups
  end)
end

local function compare_all(add, oracle, dir)
  local runs = {}
  for i, size in ipairs(SIZES) do
    local path = checked.make(dir, oracle, size.groups)
    runs[i] = compare(add, oracle, path, size, "cached")
    if size.groups == COMPARED then
      compare(add, oracle, path, size, "cold")
    end
  end
  local few, many = SIZES[2], SIZES[3]
  add { what = ("%s: CPU per group, %s against %s"):format(oracle.version:match "^%d+%.%d+",
    checked.count(many.groups), checked.count(few.groups)), unit = "us", aim = 1,
    rounds = rounds.of(many.rounds),
    brim = sample.median(per_group(runs[3], many.groups)),
    peer = sample.median(per_group(runs[2], few.groups)) }
end

function M.run(add)
  local _ <close> = scratch.scope()
  local dir = checked.host()
  for _, oracle in ipairs(checked.generations()) do
    compare_all(add, oracle, dir)
  end
end

return M
