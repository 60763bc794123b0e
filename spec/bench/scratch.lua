-- spec.bench.scratch: what a benchmark makes on this machine and must not leave behind:
-- directories, loop devices, mounts, processes. Each is noted with the command that undoes it
-- before it is made. A scope undoes its own when it closes; should this process be killed, a guard
-- that outlives it does.
local core = require "brim.core"
local shell = require "shell"

local M = {}

-- Detaching and unmounting wait until nobody uses the thing any more, for 5 s.
local DETACH <const> = [[for n in $(seq 50); do d=$(losetup -j %q -n -O NAME)
[ -z "$d" ] && exit 0; losetup -d $d 2>/dev/null; sleep 0.1; done; exit 1]]
local UNMOUNT <const> = [[for n in $(seq 50); do mountpoint -q %q || exit 0
umount %q 2>/dev/null || sleep 0.1; done; exit 1]]

-- Waits until the process $1 is gone, then undoes what file $2 still lists, the latest first.
local GUARD <const> = [[tail --pid="$1" -f /dev/null
test -f "$2" || exit 0
tac "$2" | sh]]

local undo = {} -- commands, in the order of what they undo
local root, guard_pid

local function pid()
  local file <close> = assert(io.open("/proc/self/stat"))
  return assert(file:read("n"))
end

local function undo_path()
  return root .. "/undo"
end

local function note_all()
  local file <close> = assert(io.open(undo_path(), "w"))
  file:write(table.concat(undo, "\n"), #undo > 0 and "\n" or "")
end

local function push(command)
  undo[#undo + 1] = "(" .. command:gsub("\n", "; ") .. ")"
  note_all()
end

-- Undoes the latest. What fails is said; the rest is still undone.
local function pop()
  local command = table.remove(undo)
  if not os.execute(command) then
    io.stderr:write("bench: this failed and is left to you: ", command, "\n")
  end
end

---The directory on a disk that scratch files go to.
---@return string
function M.disk()
  return os.getenv "BENCH_DIR" or "/var/tmp"
end

---Prepare: a directory for notes and small files, and the guard. Close what it returns at the end.
---@return table scope
function M.open()
  root = shell.line("mktemp -d %q", M.disk() .. "/brim-bench.XXXXXX")
  push(shell.format("rm -rf --one-file-system %q", root))
  guard_pid = shell.line("setsid sh -c %q guard %d %q >/dev/null 2>&1 </dev/null & echo $!", GUARD,
    pid(), undo_path())
  return setmetatable({}, { __close = function()
    M.unwind(0)
    os.execute(shell.format("kill -- -%s 2>/dev/null", guard_pid))
  end })
end

---Undo all but the first `keep` things.
---@param keep integer
function M.unwind(keep)
  core.clear_interrupt()
  while #undo > keep do
    pop()
    if #undo > 0 then
      note_all()
    end
  end
end

---Open a scope: `local scope <close> = scratch.scope()`.
---@return table scope
function M.scope()
  local keep = #undo
  return setmetatable({}, { __close = function()
    M.unwind(keep)
  end })
end

---The path of a small file of this run.
---@param name string
---@return string
function M.path(name)
  return root .. "/" .. name
end

---Make a directory that goes with all in it. The default is a place on the disk.
---@param base? string
---@return string path
function M.directory(base)
  local path = shell.line("mktemp -d -u %q", (base or M.disk()) .. "/brim-bench.XXXXXX")
  push(shell.format("rm -rf --one-file-system %q", path))
  shell.run("mkdir -m 700 %q", path)
  return path
end

---Attach a file to a loop device; answers the device's path.
---@param file string
---@param is_direct boolean past the page cache of the filesystem that holds the file
---@return string device
function M.loop(file, is_direct)
  push(shell.format(DETACH, file))
  return shell.line("losetup --find --show --direct-io=%s %q", is_direct and "on" or "off", file)
end

---Have a directory unmounted with the scope.
---@param path string
function M.unmounts(path)
  push(shell.format(UNMOUNT, path, path))
end

---Mount a device on a new directory; answers that.
---@param device string
---@param kind? string of filesystem, default what the device holds
---@return string path
function M.mount(device, kind)
  local path = M.directory()
  M.unmounts(path)
  shell.run("mount -t %q %q %q", kind or "auto", device, path)
  return path
end

---Start a command in the background, in a session of its own. What ends it is for the caller to
---note.
---@param command string of the shell
function M.daemon(command)
  shell.run("setsid sh -c %q >%q 2>&1 </dev/null & true", "exec " .. command, M.path "daemon.log")
end

return M
