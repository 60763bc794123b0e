-- spec.bench.bench_tmpfs: 32 PiB in a sparse file on tmpfs: some 0.9 GB of memory.
local rounds = require "rounds"
local scratch = require "scratch"
local shell = require "shell"
local sparse = require "sparse"

local M = {}

local HOST <const> = "/dev/shm"
local NEED_BYTES <const> = 3 << 30

M.lacks = function()
  local free = tonumber(shell.line("df -B1 --output=avail %q | tail -1", HOST))
  return sparse.lacks() or free < NEED_BYTES and ("needs 3 GiB on %s"):format(HOST) or nil
end

function M.run(add)
  sparse.run(add, "tmpfs", scratch.directory(HOST), rounds.of(5), { wall = 8, cpu = 8 })
end

return M
