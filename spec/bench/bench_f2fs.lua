-- spec.bench.bench_f2fs: brim mkfs.f2fs against mkfs.f2fs in a sparse file on a loop-mounted XFS.
-- The reference writes its tables as zeros, up to 8.4 GB with -i at 16 TiB; brim punches them.
-- Asked for by name: the reference takes its time.
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local AIM <const> = 3 -- where the reference writes gigabytes
local FIXED <const> = { "-q", "-r", "-T", "1", "-U", "01234567-89ab-cdef-0123-456789abcdef" }
local ROWS <const> = {
  { what = "1 TiB", size_bytes = 1 << 40, rounds = 5 },
  { what = "1 TiB -i", size_bytes = 1 << 40, words = { "-i" }, rounds = 3 },
  { what = "16 TiB - 4 KiB", size_bytes = (16 << 40) - 4096, rounds = 3 },
  { what = "16 TiB - 4 KiB -i", size_bytes = (16 << 40) - 4096, words = { "-i" }, rounds = 1,
    aim = AIM },
}

function M.lacks()
  return rounds.lacks_root() or rounds.lacks { "mkfs.f2fs", "mkfs.xfs" }
end

-- On an XFS of its own: its files may be that long, and it keeps holes.
local function mounted()
  local image = scratch.directory() .. "/image"
  shell.run("truncate -s 32G %q && mkfs.xfs -q %q", image, image)
  return scratch.mount(scratch.loop(image, false))
end

local function command(first, row, path)
  for _, words in ipairs { FIXED, row.words or {} } do
    table.move(words, 1, #words, #first + 1, first)
  end
  first[#first + 1] = path
  return first
end

function M.run(add)
  local path = mounted() .. "/target"
  for _, row in ipairs(ROWS) do
    local function prepare()
      shell.run("rm -f %q && sync -f %q && truncate -s %d %q", path, path:match "^.*/",
        row.size_bytes, path)
    end
    local count = rounds.of(row.rounds)
    local measured = sample.interleave(row.what, count, {
      { name = "brim", prepare = prepare, run = function()
        return process.brim(command({ "mkfs.f2fs" }, row, path))
      end },
      { name = "mkfs.f2fs", prepare = prepare, run = function()
        return process.measure(command({ "mkfs.f2fs" }, row, path))
      end },
    })
    for _, field in ipairs { "wall_s", "cpu_s" } do
      add { what = row.what .. (field == "wall_s" and "" or ", CPU"), unit = "s", rounds = count,
        aim = field == "wall_s" and row.aim or nil, brim = sample.values(measured.brim, field),
        peer = sample.values(measured["mkfs.f2fs"], field) }
    end
  end
  shell.run("rm -f %q", path)
end

return M
