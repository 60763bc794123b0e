-- spec.bench.sparse: formats of 32 PiB into a sparse file, brim against mkfs.xfs, with the options
-- that gave the reference 14 writes and 5 reads a group. The host kernel's charge for each new page
-- or extent is the same for both, and the floor.
local json = require "brim.json"
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local SIZE <const>, COUNTED_SIZE <const> = "32P", "1P" -- strace makes each system call dear
local OPTIONS <const> = { "-q", "-K", "-f", "-m", "rmapbt=1,reflink=0" }
local USER_AIM <const> = 100

---@class bench.SparseAims
---@field wall number
---@field cpu number

local function words(first, path)
  local list = table.move(OPTIONS, 1, #OPTIONS, #first + 1, first)
  list[#list + 1] = path
  return list
end

local function reference(path)
  return words({ "mkfs.xfs" }, path)
end

-- A new file each time: a page or an extent that is there already costs nothing.
local function fresh(path, size)
  shell.run("rm -f %q && sync -f %q && truncate -s %s %q", path, path:match("^.*/"), size, path)
end

local function contestants(path)
  local function prepare()
    fresh(path, SIZE)
  end
  return {
    { name = "brim", prepare = prepare, run = function()
      return process.brim(words({ "mkfs.xfs" }, path))
    end },
    { name = "mkfs.xfs", prepare = prepare, run = function()
      return process.measure(reference(path))
    end },
  }
end

-- Calls of a name in the table strace -c prints.
local function calls(text, name)
  for line in text:gmatch("[^\n]+") do
    local fields = {}
    for field in line:gmatch("%S+") do
      fields[#fields + 1] = field
    end
    if fields[#fields] == name then
      return tonumber(fields[4])
    end
  end
  return 0
end

local function counted(argv, path)
  fresh(path, COUNTED_SIZE)
  local out = scratch.path "strace"
  process.measure(table.move(argv, 1, #argv, 6, { "strace", "-f", "-c", "-o", out }))
  local file <close> = assert(io.open(out))
  local text = file:read("a")
  return { writes = calls(text, "pwrite64"), reads = calls(text, "pread64") }
end

-- Counted by strace on both sides: the engine sync makes the calls that io_uring would hide.
local function count_ios(add, path)
  local brim = counted(words({ process.BRIM, "--engine=sync", "mkfs.xfs" }, path), path)
  local peer = counted(reference(path), path)
  local groups = assert(json.decode(process.measure(words({ process.BRIM, "--json", "mkfs.xfs",
    "-N" }, path)).output)).geometry.ag_count
  for _, name in ipairs { "writes", "reads" } do
    add { what = name .. " per group, by strace", unit = "count", rounds = 1,
      brim = brim[name] / groups, peer = peer[name] / groups }
  end
end

---What is missing, or nil.
---@return string?
function M.lacks()
  return rounds.lacks { "mkfs.xfs", "strace" }
end

---Measure in a directory of the filesystem to be measured.
---@param add fun(row: bench.Row)
---@param where string for the progress line
---@param dir string
---@param count integer
---@param aims bench.SparseAims
function M.run(add, where, dir, count, aims)
  local path = dir .. "/target"
  count_ios(add, path)
  local measured = sample.interleave(where, count, contestants(path))
  shell.run("rm -f %q", path)
  for _, row in ipairs {
    { what = "wall", field = "wall_s", aim = aims.wall },
    { what = "CPU in all", field = "cpu_s", aim = aims.cpu },
    { what = "user CPU", field = "user_s", aim = USER_AIM },
  } do
    add { what = row.what .. ", 32 PiB", unit = "s", aim = row.aim, rounds = count,
      brim = sample.values(measured.brim, row.field),
      peer = sample.values(measured["mkfs.xfs"], row.field) }
  end
end

return M
