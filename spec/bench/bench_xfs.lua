-- spec.bench.bench_xfs: 32 PiB in a sparse file on an XFS, which is loop-mounted from a file on the
-- disk, sparse too: some 4 GB of it are written.
local rounds = require "rounds"
local scratch = require "scratch"
local shell = require "shell"
local sparse = require "sparse"

local M = {}

M.lacks = function()
  return rounds.lacks_root() or sparse.lacks()
end

local function mounted()
  local image = scratch.directory() .. "/image"
  shell.run("truncate -s 32G %q && mkfs.xfs -q %q", image, image)
  return scratch.mount(scratch.loop(image, false))
end

function M.run(add)
  sparse.run(add, "xfs", mounted(), rounds.of(5), { wall = 3, cpu = 4 })
end

return M
