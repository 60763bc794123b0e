-- spec.bench.bench_prefetch: brim check against xfs_repair -n as it is by default. That prefetches,
-- by threads that it starts for every group and phase, and takes 15 times as long for 4 times as
-- many groups: once is enough, and at 16,384 groups it is stopped. What it would have taken is
-- then more than what is shown.
local checked = require "checked"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local SIZES <const> = { { groups = 1024 }, { groups = 4096, aim = 200 },
  { groups = 16384, limit_s = 60 } }
local RSS_BYTES <const> = 64 << 20

M.lacks = checked.lacks

local function compare(add, oracle, path, size)
  local count = rounds.of(3)
  local where = ("%s of %s: "):format(checked.count(size.groups),
    oracle.version:match "^%d+%.%d+")
  -- What the peer is to read is in the page cache, and the rest as well.
  checked.peer(path, oracle, {}).run()
  local peer = sample.interleave(where, 1, { checked.peer(path, oracle, { prefetches = true,
    limit_s = size.limit_s }) }).xfs_repair[1]
  local runs = sample.interleave(where, count, { checked.brim(path) }).brim
  local more = peer.is_stopped and ", more than" or ""
  add { what = where .. "wall" .. more, unit = "s", rounds = 1, aim = size.aim,
    brim = sample.values(runs, "wall_s"), peer = peer.wall_s }
  add { what = where .. "CPU per group" .. more, unit = "us", rounds = 1,
    brim = sample.values(runs, function(took) return took.cpu_s / size.groups end),
    peer = peer.cpu_s / size.groups }
  add { what = where .. "peak memory" .. more, unit = "mib", rounds = 1, at_most = RSS_BYTES,
    brim = sample.values(runs, "peak_rss_bytes"), peer = peer.peak_rss_bytes }
end

function M.run(add)
  local _ <close> = scratch.scope()
  local dir = checked.host()
  for _, oracle in ipairs(checked.generations()) do
    for _, size in ipairs(SIZES) do
      compare(add, oracle, checked.make(dir, oracle, size.groups), size)
    end
  end
end

return M
