-- spec.bench.latency: a block device with a latency of its own: nbdkit's memory plugin behind its
-- delay filter, a FUSE file over that, a loop device with direct I/O over the file. FUSE lets few
-- I/Os through at a time unless it is told otherwise.
local core = require "brim.core"
local rounds = require "rounds"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

local CONNECTIONS <const>, THREADS <const> = 4, 64
local BACKGROUND <const> = 1024 -- requests that FUSE lets through at a time
local START_S <const> = 10

---What is missing, or nil.
---@return string?
function M.lacks()
  return rounds.lacks_root() or rounds.lacks { "nbdkit", "nbdfuse" }
end

local function wait_for(file)
  local begun_s = core.monotonic_s()
  while not os.execute(shell.format("test -s %q", file)) do
    if core.monotonic_s() - begun_s > START_S then
      error("nbdfuse does not start: " .. shell.line("tail -1 %q", scratch.path "daemon.log"), 0)
    end
    shell.run "sleep 0.1"
  end
end

-- The limit is a file of the fusectl filesystem, named after the mount's device number.
local function widen(dir)
  local control = scratch.mount("none", "fusectl")
  local number = shell.line("mountpoint -d %q | cut -d: -f2", dir)
  shell.run("echo %d > %q", BACKGROUND, ("%s/%s/max_background"):format(control, number))
end

---Make the device; it goes with the scope of the caller.
---@param size_bytes integer
---@param delay_ms integer of each read and write
---@return string path
function M.device(size_bytes, delay_ms)
  local dir = scratch.directory()
  local file = dir .. "/disk"
  scratch.unmounts(dir)
  scratch.daemon(shell.format("nbdfuse -C %d %q [ nbdkit -f -t %d --filter=delay memory %d "
    .. "rdelay=%dms wdelay=%dms ]", CONNECTIONS, file, THREADS, size_bytes, delay_ms, delay_ms))
  wait_for(file)
  widen(dir)
  return scratch.loop(file, true)
end

return M
