-- brim.knobs.command: runs a command while something has to be undone behind it: unlike os.execute
-- it returns when a signal came, and ends the command, with what it started, first. Called by the
-- recipe knobs.
local core = require "brim.core"
local process = require "brim.process"

local M = {}

local POLL_S <const> = 0.02
local END_S <const> = 10 -- time to end after SIGTERM

-- A session of its own, so that Ctrl-C reaches only us, and the whole of it can be ended. Its shell
-- outlives SIGTERM, so that it ends when the command has.
local SCRIPT <const> = "trap : TERM; "
  .. [[echo $$ >"$0.pid"; "$@"; echo $? >"$0.new"; mv "$0.new" "$0.rc"]]

-- A dead one whose parent does not care is a zombie.
local function is_running(pid)
  local line = process.line(("/proc/%d/stat"):format(pid))
  return line ~= nil and not line:find "^.*%) Z"
end

local function stop(pid)
  process.run("kill", "-s", "TERM", "--", "-" .. pid)
  local until_s = core.monotonic_s() + END_S
  while is_running(pid) and core.monotonic_s() < until_s do
    process.pause()
  end
  process.run("kill", "-s", "KILL", "--", "-" .. pid)
end

local function number_in(path)
  return math.tointeger(tonumber(process.line(path) or ""))
end

---Split words into settings and the command behind them, which the first that sets nothing begins.
---@param words string[]
---@return table<string, string> set values by name
---@return string[] command
function M.split(words)
  local set, rest = {}, {}
  for _, word in ipairs(words) do
    local name, value = word:match "^([%w_.]+)=(.*)$"
    if name and #rest == 0 then
      set[name] = value
    else
      rest[#rest + 1] = word
    end
  end
  return set, rest
end

---Run a command with our own input and output until it ends, or a signal comes.
---@param words string[]
---@return integer status of the command; 128 and the signal's number when one came
function M.run(words)
  local base = os.tmpname()
  os.execute(("setsid sh -c %s %s %s <&0 &"):format(process.quote(SCRIPT), process.quote(base),
    process.quote(table.unpack(words))))
  local status, pid
  repeat
    core.sleep(POLL_S)
    pid = pid or number_in(base .. ".pid")
    status = number_in(base .. ".rc")
    -- It may be gone without a word, killed.
    if pid and not status and not is_running(pid) then
      status = number_in(base .. ".rc") or 137
    end
  until status or core.interrupted()
  if not status and pid then
    stop(pid)
  end
  for _, suffix in ipairs { "", ".pid", ".new", ".rc" } do
    os.remove(base .. suffix)
  end
  return status or 128 + core.interrupt_signal()
end

return M
