-- spec.bench.bench_8eb: what a user has of it: `brim xfs-8eb` makes the image of an 8 EiB XFS and
-- reads all of it back. There is no peer that can; the figure beside it is of 2018, of the only
-- mkfs.xfs that was measured at this size (an experiment with AIO, linux-xfs 2018-09-05): 354 s
-- user and 584 s in all.
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local STORY_CPU_S <const> = 584
local RSS_BYTES <const> = 32 << 20

M.lacks = function()
  return nil
end

function M.run(add)
  local count, image = rounds.of(1), scratch.path "8eb.brim"
  local measured = sample.interleave("8eb", count, { { name = "brim", run = function()
    os.remove(image)
    return process.brim { "xfs-8eb", "--image", image }
  end } })
  local runs = measured.brim
  local function per_group(took)
    return took.cpu_s / took.result.groups
  end
  add { what = "wall, made and read back", unit = "s", rounds = count,
    brim = sample.values(runs, "wall_s") }
  add { what = "CPU per group; beside it a write of 2018", unit = "us", rounds = count,
    brim = sample.values(runs, per_group), peer = STORY_CPU_S / runs[1].result.groups }
  add { what = "peak memory", unit = "mib", rounds = count, at_most = RSS_BYTES,
    brim = sample.values(runs, "peak_rss_bytes") }
end

return M
