-- spec.bench.rounds: how many rounds, and which programs a benchmark lacks.
local core = require "brim.core"
local shell = require "shell"

local M = {}

---The number of rounds: BENCH_ROUNDS, or the benchmark's own.
---@param own integer
---@return integer
function M.of(own)
  return tonumber(os.getenv "BENCH_ROUNDS" or "") or own
end

---Say which of some programs is missing, or nil.
---@param programs string[]
---@return string?
function M.lacks(programs)
  for _, name in ipairs(programs) do
    if not shell.has(name) then
      return ("needs %s"):format(name)
    end
  end
end

---Say so when this is not root, or nil.
---@return string?
function M.lacks_root()
  return not core.is_root() and "needs root, for loop devices and mounts" or nil
end

return M
