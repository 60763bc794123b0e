-- bench.lua: the benchmarks of brim, each against a peer in the same run: medians of interleaved
-- rounds.
--   make bench                      all of them
--   make bench BENCH="block null"   some
--   make bench BENCH=prefetch       what takes so long that it has to be asked for
-- Environment: BENCH_JSON (file for the results as lines of JSON), BENCH_ROUNDS (instead of each
-- benchmark's own number), BENCH_DIR (a directory on a disk, for up to 32 GB while it is needed).
local here = arg[0]:match("^(.*/)") or "./"
package.path = ("%s?.lua;%s../?.lua;"):format(here, here) .. package.path

local report = require "report"
local scratch = require "scratch"

-- In this order: what needs the disk is over first.
local NAMES <const> = {
  "block", "ceiling", "xfs", "fill", "fill_latency", "tmpfs", "check", "depth", "workload", "null",
  "8eb",
}
local SLOW <const> = { "prefetch", "f2fs" } -- some six minutes and half a minute

local function wanted(words)
  if #words == 0 then
    return NAMES
  end
  local known, all = {}, table.move(SLOW, 1, #SLOW, #NAMES + 1, { table.unpack(NAMES) })
  for _, name in ipairs(all) do
    known[name] = true
  end
  for _, word in ipairs(words) do
    if not known[word] then
      error(("brim.bench: there is no benchmark '%s'; there are %s"):format(word,
        table.concat(all, ", ")), 0)
    end
  end
  return words
end

local function run(name)
  local bench = require("bench_" .. name)
  local why = bench.lacks()
  if why then
    report.skip(name, why)
    return
  end
  local _ <close> = scratch.scope()
  bench.run(function(row)
    report.add(name, row)
  end)
end

local names = wanted { ... }
local _ <close> = scratch.open()
report.open()
for _, name in ipairs(names) do
  run(name)
end
report.close()
