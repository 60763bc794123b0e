-- brim.lab.state: the directory of a running guest (its sockets, links, job) and the processes that
-- belong to it, so that nothing stays behind: not after an error, and a later run removes what a
-- killed one left. Called by lab.machine.
local attach = require "brim.attach"
local errors = require "brim.error"
local json = require "brim.json"
local process = require "brim.process"

local M = {}

local function root()
  return attach.state_dir() .. "/lab"
end

local function start_of(pid)
  local text = process.line(("/proc/%d/stat"):format(pid))
  local rest = text and text:match "^.*%) (.*)$"
  local n = 3
  for field in (rest or ""):gmatch "%S+" do
    if n == 22 then
      return math.tointeger(tonumber(field))
    end
    n = n + 1
  end
end

local function myself()
  local pipe <close> = assert(io.popen "echo $PPID")
  local pid = math.tointeger(tonumber(pipe:read "l"))
  return { pid = pid, start = start_of(pid) }
end

local function list(...)
  local _, out = process.run(...)
  return out:gmatch "[^\n]+"
end

-- Processes by what they were started with: BRIM_LAB names the directory. Those that run the
-- guest's programs have an address space without it, but are of the same session.
local function processes(dir)
  local pids, sessions = {}, {}
  for path in list("sh", "-c", 'grep -lzxF "BRIM_LAB=$0" /proc/[0-9]*/environ 2>/dev/null', dir) do
    local pid = path:match "^/proc/(%d+)/environ$"
    local text = pid and process.line("/proc/" .. pid .. "/stat")
    local session = text and text:match "^.*%) %S+ %S+ %S+ (%d+)"
    if session then
      pids[pid], sessions[session] = true, true
    end
  end
  local saved = process.line(dir .. "/session")
  local real = process.line(dir .. "/kernel")
  for path in list("sh", "-c", "ls -d /proc/[0-9]*") do
    local text = process.line(path .. "/stat")
    local session = text and text:match "^.*%) %S+ %S+ %S+ (%d+)"
    if sessions[session] or session and session == saved
      and select(2, process.run("readlink", path .. "/exe")) == real then
      pids[path:match "%d+$"] = true
    end
  end
  return pids
end

---End every process of a guest, at once.
---@param dir string
function M.kill(dir)
  for _ = 1, 5 do
    local words = { "kill", "-s", "KILL", "--" }
    for pid in pairs(processes(dir)) do
      words[#words + 1] = pid
    end
    if #words == 4 then
      return
    end
    process.run(table.unpack(words))
    process.pause()
  end
end

---Forget a guest: end its processes, remove its directory.
---@param dir string as made here
function M.remove(dir)
  M.kill(dir)
  process.run("rm", "-rf", "--one-file-system", "--", dir)
end

---Remove what runs left that are gone.
---@return integer removed
function M.sweep()
  local removed = 0
  for dir in list("sh", "-c", 'ls -d "$0"/*/ 2>/dev/null', root()) do
    dir = dir:gsub("/$", "")
    local owner = json.decode(process.line(dir .. "/owner") or "")
    -- One that is being made has no owner for a moment.
    local is_new = not owner and process.run("sh", "-c",
      '[ -n "$(find "$0" -maxdepth 0 -mmin -1)" ]', dir)
    if not is_new and not (owner and process.is_alive(owner)) then
      M.remove(dir)
      removed = removed + 1
    end
  end
  return removed
end

---Write a file.
---@param path string
---@param text string
---@return true? ok
---@return string? why
function M.write(path, text)
  local file, why = io.open(path, "w")
  if not file then
    return nil, why
  end
  local ok
  ok, why = file:write(text, "\n")
  local closed, late = file:close()
  return ok and closed and true or nil, why or late
end

---Make the directory of a guest.
---@return string? dir
---@return brim.Error? err
function M.make()
  M.sweep()
  local ok, out = process.run("sh", "-c", 'umask 077; mkdir -p "$0" && [ -O "$0" ] && '
    .. 'mktemp -d "$0/XXXXXX"', root())
  if ok then
    local wrote, why = M.write(out .. "/owner", json.encode(myself()))
    if wrote then
      return out
    end
    out = why
  end
  return nil, errors.new { code = "EIO", errno = 5, op = "lab", path = root(),
    message = ("%s cannot hold a guest (%s); name another place in BRIM_STATE_DIR"):format(root(),
      out == "" and "it is somebody else's" or out) }
end

return M
