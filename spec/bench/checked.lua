-- spec.bench.checked: what the benchmarks of brim check share: freshly made filesystems of some
-- thousand groups in sparse files, on an XFS that is loop-mounted from a file on the disk; and the
-- checkers, each as a contestant. A file is cached, or its pages are dropped before each run: for
-- all contestants alike.
local oracles = require "oracles"
local process = require "process"
local rounds = require "rounds"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

M.GROUP_BYTES = (1 << 40) - 4096 -- of mkfs.xfs by default

---What is missing, or nil.
---@return string?
function M.lacks()
  local oracle, why = oracles.of("xfs", "6.1")
  return rounds.lacks_root() or not oracle and why or nil
end

---The generations of the reference to compare with: 6.1, and the newest.
---@return brim.spec.Oracle[]
function M.generations()
  local old, new = assert(oracles.of("xfs", "6.1")), assert(oracles.newest "xfs")
  return new.version ~= old.version and { old, new } or { old }
end

---Make the filesystem that holds the files; its own file is read past the page cache.
---@return string directory
function M.host()
  local image = scratch.directory() .. "/image"
  shell.run("truncate -s 32G %q && mkfs.xfs -q %q", image, image)
  return scratch.mount(scratch.loop(image, true))
end

---Make a filesystem of so many groups, by the defaults of a generation.
---@param dir string
---@param oracle brim.spec.Oracle
---@param groups integer
---@return string path
function M.make(dir, oracle, groups)
  local path = dir .. "/target"
  shell.run("rm -f %q && truncate -s %d %q", path, groups * M.GROUP_BYTES, path)
  process.measure { oracle.mkfs, "-q", "-K", path }
  shell.run("sync -f %q", path)
  return path
end

---Drop a file from the page cache.
---@param path string
function M.drop(path)
  shell.run("dd of=%q oflag=nocache conv=notrunc,fdatasync count=0 status=none", path)
end

local function contestant(name, path, is_cold, argv)
  local prepare = is_cold and function() M.drop(path) end or nil
  return { name = name, prepare = prepare, run = function()
    return process.measure(argv)
  end }
end

---brim check.
---@param path string
---@param is_cold? boolean
---@return bench.Contestant
function M.brim(path, is_cold)
  return contestant("brim", path, is_cold, { process.BRIM, "check", path })
end

---xfs_repair -n, with prefetching, as by default, or with -P without.
---@param path string
---@param oracle brim.spec.Oracle
---@param o { prefetches?: boolean, is_cold?: boolean, limit_s?: integer }
---@return bench.Contestant
function M.peer(path, oracle, o)
  local argv = { oracle.repair, "-n", path, limit_s = o.limit_s }
  if not o.prefetches then
    table.insert(argv, 3, "-P")
  end
  return contestant("xfs_repair", path, o.is_cold, argv)
end

---The reads of brim check and nothing else: one after the other, or many at once.
---@param path string
---@param groups integer
---@param len_bytes integer
---@param o { depth: integer, is_cold?: boolean }
---@return bench.Contestant
function M.ceiling(path, groups, len_bytes, o)
  return contestant("reads", path, o.is_cold, { process.program("reads", "-luring"), path,
    groups, len_bytes, M.GROUP_BYTES, o.depth })
end

---A number with its thousands apart, for the names of rows.
---@param n integer
---@return string
function M.count(n)
  return (tostring(n):reverse():gsub("%d%d%d", "%0,"):reverse():gsub("^,", ""))
end

return M
