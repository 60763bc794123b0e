-- spec.bench.bench_8eb: what a user has of it: `brim xfs-8eb` makes the image of an 8 EiB XFS and
-- reads all of it back, `brim check` checks it, group by group, through the device that the image
-- is, and `brim inspect` shows a header of one of the last groups. There is no peer that can; the
-- figure beside it is of 2018, of the only mkfs.xfs that was measured at this size (an experiment
-- with AIO, linux-xfs 2018-09-05): 354 s user and 584 s in all.
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local STORY_CPU_S <const> = 584
local RSS_BYTES <const> = 32 << 20
local CHECK_S <const>, CHECK_RSS_BYTES <const> = 60, 64 << 20 -- at most, on 2 cores
local INSPECT_S <const> = 0.05

M.lacks = function()
  return nil
end

local function per_group(took)
  return took.cpu_s / took.result.groups
end

local function make(add, image)
  local count = rounds.of(1)
  local runs = sample.interleave("8eb", count, { { name = "brim", run = function()
    os.remove(image)
    return process.brim { "xfs-8eb", "--image", image }
  end } }).brim
  add { what = "wall, made and read back", unit = "s", rounds = count,
    brim = sample.values(runs, "wall_s") }
  add { what = "CPU per group; beside it a write of 2018", unit = "us", rounds = count,
    brim = sample.values(runs, per_group), peer = STORY_CPU_S / runs[1].result.groups }
  add { what = "peak memory", unit = "mib", rounds = count, at_most = RSS_BYTES,
    brim = sample.values(runs, "peak_rss_bytes") }
end

local function check(add, image)
  local count = rounds.of(1)
  local runs = sample.interleave("8eb", count, { { name = "check", run = function()
    return process.brim { "check", image }
  end } }).check
  add { what = "check of all groups: wall", unit = "s", rounds = count, at_most = CHECK_S,
    brim = sample.values(runs, "wall_s") }
  add { what = "check of all groups: CPU per group", unit = "us", rounds = count,
    brim = sample.values(runs, per_group) }
  add { what = "check of all groups: peak memory", unit = "mib", rounds = count,
    at_most = CHECK_RSS_BYTES, brim = sample.values(runs, "peak_rss_bytes") }
end

local function inspect(add, image)
  local count = rounds.of(5)
  local runs = sample.interleave("8eb", count, { { name = "inspect", run = function()
    return process.measure { process.BRIM, "inspect", image, "agf", "8000000" }
  end } }).inspect
  add { what = "inspect agf 8000000: wall", unit = "s", rounds = count, at_most = INSPECT_S,
    brim = sample.values(runs, "wall_s") }
end

function M.run(add)
  local image = scratch.path "8eb.brim"
  make(add, image)
  check(add, image)
  inspect(add, image)
end

return M
