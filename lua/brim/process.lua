-- brim.process: other programs: running one to its end, starting one that goes on without us, and
-- ending exactly the one that was started (a process number alone may be somebody else's by then).
-- Called by serve and attach. Durations are seconds. Lua has no processes of its own: the shell and
-- /proc do.
local core = require "brim.core"

local M = {}

---@class brim.Process
---@field pid integer
---@field start integer when it began, in the kernel's ticks since boot

local POLL_S <const> = 0.05

---Quote words for the shell.
---@param ... string
---@return string
function M.quote(...)
  local words = { ... }
  for i, word in ipairs(words) do
    words[i] = "'" .. tostring(word):gsub("'", "'\\''") .. "'"
  end
  return table.concat(words, " ")
end

---Run a program to its end.
---@param ... string its words
---@return boolean ok did it end with status 0?
---@return string output stdout and stderr, without the last line's end
function M.run(...)
  local pipe = assert(io.popen(M.quote(...) .. " 2>&1 </dev/null"))
  local output = pipe:read("a")
  local ok = pipe:close()
  return ok or false, (output:gsub("%s+$", ""))
end

---Is a program installed?
---@param name string
---@return boolean
function M.has(name)
  return (os.execute(("command -v %s >/dev/null 2>&1"):format(M.quote(name)))) or false
end

---Read the first line of a file.
---@param path string
---@return string? line
function M.line(path)
  local file <close> = io.open(path)
  return file and file:read("l")
end

-- State and start of a process: the fields 3 and 22 of its stat; the name before may hold anything.
local function stat(pid)
  local text = M.line(("/proc/%d/stat"):format(pid))
  local rest = text and text:match("^.*%) (.*)$")
  if not rest then
    return nil
  end
  local fields = {}
  for field in rest:gmatch("%S+") do
    fields[#fields + 1] = field
  end
  return fields[1], math.tointeger(tonumber(fields[20]))
end

---Does a process still run that was started earlier?
---@param p brim.Process
---@return boolean
function M.is_alive(p)
  local state, start = stat(p.pid)
  return state ~= nil and state ~= "Z" and start == p.start
end

-- Runs the program once its parent, the shell that starts it, has ended: nbdkit asks to be told of
-- its parent's death (PR_SET_PDEATHSIG) whether that was wanted or not, and that shell ends soon.
local ORPHANED <const> = M.quote [[while read -r _ _ _ parent _ </proc/$$/stat &&
  [ "$parent" = "$0" ]; do sleep 0.01; done; exec "$@"]]

---Start a program that goes on when we end: a session of its own, output into a file.
---@param log_path string
---@param ... string its words
---@return brim.Process? process
---@return string? why
function M.start(log_path, ...)
  local pipe = assert(io.popen(("umask 077; setsid sh -c %s $$ %s </dev/null >>%s 2>&1 & echo $!")
    :format(ORPHANED, M.quote(...), M.quote(log_path))))
  local pid = math.tointeger(tonumber(pipe:read("l") or ""))
  pipe:close()
  local _, start = stat(pid or 0)
  if not start then
    return nil, M.tail(log_path)
  end
  return { pid = pid, start = start }
end

---Sleep a moment, as between two looks.
function M.pause()
  os.execute("sleep " .. POLL_S)
end

---Wait until something holds: looks again and again.
---@param timeout_s number
---@param test fun(): any
---@return any result of the test; false when the time is over or Ctrl-C came
function M.wait(timeout_s, test)
  local until_s = core.monotonic_s() + timeout_s
  repeat
    local result = test()
    if result then
      return result
    end
    M.pause()
  until core.monotonic_s() > until_s or core.interrupted()
  return test() or false
end

---Ask a process that was started to end, and wait until it has.
---@param p brim.Process
---@param timeout_s number
---@return boolean ended
function M.stop(p, timeout_s)
  if not M.is_alive(p) then
    return true
  end
  M.run("kill", "-TERM", tostring(p.pid))
  local until_s = core.monotonic_s() + timeout_s
  while M.is_alive(p) do
    if core.monotonic_s() > until_s then
      return false
    end
    M.pause()
  end
  return true
end

---Get the last line of a log that says something.
---@param path string
---@return string
function M.tail(path)
  local file <close> = io.open(path)
  local last = ""
  for line in file and file:lines() or function() end do
    last = line:find("%S") and line or last
  end
  return last
end

---The path of the program that runs this.
---@return string
function M.executable()
  local pipe = assert(io.popen("readlink /proc/$PPID/exe"))
  local path = pipe:read("l")
  pipe:close()
  return path or ""
end

---Resolve a path of something that may not be there yet.
---@param path string
---@return string
function M.absolute(path)
  local ok, out = M.run("realpath", "-m", "--", path)
  return ok and out or path
end

return M
