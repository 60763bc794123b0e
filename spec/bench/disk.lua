-- spec.bench.disk: the block device the benchmarks write to: a loop device with direct I/O over a
-- file of 30 GiB on the disk. The file is preallocated (fallocate), and what the formats write has
-- been written once before the first measured round: the first write to a preallocated block also
-- costs its filesystem a change of metadata, whoever writes.
local brim = require "brim"
local core = require "brim.core"
local process = require "process"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

M.BYTES = 30 * brim.GiB
M.GROUP_BYTES = 16 * brim.MiB
M.GROUPS = M.BYTES // M.GROUP_BYTES

local SPARE_BYTES <const> = 2 * brim.GiB
local SECTOR_BYTES <const> = 512 -- of the kernel's counters
local SETTLE_S <const> = 5

---Say what is missing to have such a device here, or nil.
---@return string?
function M.lacks()
  if not core.is_root() then
    return "needs root, for loop devices"
  end
  local free = shell.line("df -B1 --output=avail %q | tail -1", scratch.disk())
  if tonumber(free) < M.BYTES + SPARE_BYTES then
    return ("needs %s on %s; set BENCH_DIR"):format(brim.bytes.format(M.BYTES + SPARE_BYTES),
      scratch.disk())
  end
end

---Make the device; it goes with the scope of its caller.
---@return string path
function M.device()
  local file = scratch.directory() .. "/disk"
  shell.run("fallocate -l %d %q", M.BYTES, file)
  local path = scratch.loop(file, true)
  process.measure(M.reference(path))
  process.measure(M.brim(path))
  M.wipe(path)
  return path
end

---The reference's command line.
---@param path string
---@return string[]
function M.reference(path)
  return { "mkfs.xfs", "-q", "-K", "-f", "-d", "agsize=16m", path, env = process.UNSUPPORTED }
end

---The same of brim.
---@param path string
---@return string[]
function M.brim(path)
  return { process.BRIM, "--quiet", "mkfs.xfs", "-K", "-f", "-d", "agsize=16m", path,
    env = process.UNSUPPORTED }
end

---Make the device one without a filesystem, so that there are no old superblocks to erase. Waits
---until nobody else has it open any more.
---@param path string
---@return number waited_s
function M.wipe(path)
  local begun_s = core.monotonic_s()
  local opened, err
  repeat
    opened, err = brim.device.open(path, { write = true, force = true })
  until opened or core.monotonic_s() - begun_s > SETTLE_S
  local device <close> = assert(opened, err)
  local waited_s = core.monotonic_s() - begun_s
  assert(device:write(0, ("\0"):rep(4096)))
  assert(device:flush())
  return waited_s
end

---@class bench.Counters
---@field reads integer
---@field writes integer
---@field read_bytes integer
---@field write_bytes integer
---@field in_flight_s number sum over all I/Os of the time from dispatch to completion

---What the kernel has counted on a block device so far.
---@param path string
---@return bench.Counters
function M.counters(path)
  local file <close> = assert(io.open(("/sys/block/%s/stat"):format(path:match("[^/]*$"))))
  local reads, _, read_sectors, read_ms, writes, _, write_sectors, write_ms = file:read("n", "n",
    "n", "n", "n", "n", "n", "n")
  return { reads = reads, writes = writes, read_bytes = read_sectors * SECTOR_BYTES,
    write_bytes = write_sectors * SECTOR_BYTES, in_flight_s = (read_ms + write_ms) / 1e3 }
end

---Run a function and tell what it made the kernel count.
---@param path string
---@param f fun(): any
---@return bench.Counters
---@return any result of f
function M.counted(path, f)
  local before = M.counters(path)
  local result = f()
  local counted = M.counters(path)
  for name, value in pairs(before) do
    counted[name] = counted[name] - value
  end
  return counted, result
end

return M
