-- spec.bench.bench_null: the whole of brim but the I/O: an 8 EiB XFS through the null engine,
-- against the reference's own CPU time for a group, and against itself at 1/8 and 1/64 of the size
-- for the memory.
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local SIZES <const> = { "8191p", "1024p", "128p" } -- whole, 1/8, 1/64
local PEER_SIZE <const>, PEER_GROUPS <const> = "4P", 4097
local HOST <const> = "/dev/shm"
local USER_S <const> = 0.5e-6 -- a group, at most
local RSS_BYTES <const> = 32 << 20

M.lacks = function()
  return rounds.lacks { "mkfs.xfs" }
end

local function run_brim(size)
  return process.brim { "--engine=null", "--queue-depth=128", "mkfs.xfs", "-K", "-f", "-d",
    "file,size=" .. size, scratch.path "nothing" }
end

local function contestants()
  local list = {}
  for i, size in ipairs(SIZES) do
    list[i] = { name = size, run = function()
      return run_brim(size)
    end }
  end
  local file = scratch.directory(HOST) .. "/target"
  list[#list + 1] = { name = "mkfs.xfs", prepare = function()
    shell.run("rm -f %q && truncate -s %s %q", file, PEER_SIZE, file)
  end, run = function()
    return process.measure { "mkfs.xfs", "-q", "-K", "-f", file }
  end }
  return list
end

local function per_group(entries, field, groups)
  return sample.values(entries, function(took)
    return took[field] / (groups or took.result.groups)
  end)
end

function M.run(add)
  local count = rounds.of(5)
  local measured = sample.interleave("null", count, contestants())
  local whole, peer = measured["8191p"], measured["mkfs.xfs"]
  add { what = "user CPU per group, 8191p", unit = "us", rounds = count, at_most = USER_S,
    brim = per_group(whole, "user_s"), peer = per_group(peer, "user_s", PEER_GROUPS) }
  add { what = "groups per second, 8191p", unit = "per_s", rounds = count, more = true,
    brim = sample.values(whole, function(took)
      return took.result.groups / took.wall_s
    end), peer = sample.values(peer, function(took)
      return PEER_GROUPS / took.wall_s
    end) }
  for _, size in ipairs { "128p", "1024p" } do
    add { what = ("peak memory, 8191p against %s"):format(size), unit = "mib", rounds = count,
      at_most = RSS_BYTES, brim = sample.values(whole, "peak_rss_bytes"),
      peer = sample.values(measured[size], "peak_rss_bytes") }
  end
end

return M
