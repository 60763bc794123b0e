-- spec.bench.bench_fill_latency: 64 KiB files past the page cache onto XFS, on a device that takes
-- its time: a deep queue from one thread against plain calls from many, each with a directory tree
-- of its own. How many I/Os the kernel counts in flight on the device says what a drive that does
-- them at once would be given; this one does only a few, since nbdfuse has few threads, so that
-- files a second tell little.
local disk = require "disk"
local json = require "brim.json"
local latency = require "latency"
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local DELAY_MS <const>, DEVICE_BYTES <const> = 5, 1 << 30
local SIZE <const> = "64k"
local DEPTH <const>, AIM <const> = 128, 0.75 -- of the depth
local RING_FILES <const> = 1500
local THREADS <const> = { 1, 8, 32 }
local FILES_OF_A_THREAD <const> = 40

M.lacks = function()
  return latency.lacks() or rounds.lacks { "mkfs.xfs" }
end

local function contestant(device, path, mode, threads, depth)
  -- Rounds of about the same length.
  local files = mode == "ring" and RING_FILES or FILES_OF_A_THREAD * threads
  return { name = ("%s %d"):format(mode, threads), run = function()
    local counted, took = disk.counted(device, function()
      return process.measure { process.BRIM, "run", "spec/bench/fill_once.lua", path, mode,
        tostring(threads), SIZE, tostring(files), depth and tostring(depth) }
    end)
    shell.run("rm -rf %q/s* && sync -f %q", path, path)
    local result = assert(json.decode(took.output))
    return { per_s = result.files / result.elapsed_s, cpu_s = took.cpu_s / result.files,
      in_flight = counted.in_flight_s / result.elapsed_s }
  end }
end

function M.run(add)
  local count = rounds.of(3)
  local device = latency.device(DEVICE_BYTES, DELAY_MS)
  shell.run("mkfs.xfs -q -K %q", device)
  local path = scratch.mount(device)
  local list = { contestant(device, path, "ring", 1, DEPTH) }
  for _, threads in ipairs(THREADS) do
    list[#list + 1] = contestant(device, path, "plain", threads)
  end
  local taken = sample.interleave("fill, latency", count, list)
  local function row(what, key, peer, unit)
    add { what = what, unit = unit, more = unit ~= "us", rounds = count,
      brim = sample.values(taken["ring 1"], key), peer = sample.values(taken[peer], key) }
  end
  add { what = ("%d ms: in flight by the kernel, of %d"):format(DELAY_MS, DEPTH), unit = "count",
    more = true, aim = AIM, rounds = count, peer = DEPTH,
    brim = sample.values(taken["ring 1"], "in_flight") }
  for _, threads in ipairs(THREADS) do
    local peer = "plain " .. threads
    row(("%d ms: files, ring 1, %s"):format(DELAY_MS, peer), "per_s", peer, "per_s")
    row("  in flight by the kernel", "in_flight", peer, "count")
    row("  CPU a file", "cpu_s", peer, "us")
  end
end

return M
