-- spec.bench.shell: the shell, for what benchmarks have to set up. %q quotes for the shell; the
-- other directives are string.format's. Raises what went wrong, in one line.
local M = {}

local INTERRUPTED <const> = 130 -- 128 and SIGINT

---Quote a word for the shell.
---@param word any
---@return string
function M.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

---Fill in a command; %q is a quoted word.
---@param command string
---@return string
function M.format(command, ...)
  local args, n = { ... }, 0
  command = command:gsub("%%([%a%%])", function(directive)
    if directive == "%" then
      return nil
    end
    n = n + 1
    if directive == "q" then
      args[n] = M.quote(args[n])
      return "%s"
    end
    return nil
  end)
  return command:format(table.unpack(args))
end

---Raise if a command ended badly.
---@param command string
---@param how string
---@param status integer
function M.check(command, how, status)
  if status == 2 and how == "signal" or status == INTERRUPTED then
    error("interrupted", 0)
  elseif status ~= 0 then
    error(("'%s' ended with %s %d"):format(command, how, status), 0)
  end
end

---Run a command for what it does.
---@param command string
function M.run(command, ...)
  command = M.format(command, ...)
  local _, how, status = os.execute("{ " .. command .. "; } >&2")
  M.check(command, how, status)
end

---Run a command for what it prints.
---@param command string
---@return string output
function M.read(command, ...)
  command = M.format(command, ...)
  local pipe = assert(io.popen(command))
  local text = pipe:read("a")
  local _, how, status = pipe:close()
  M.check(command, how, status)
  return text
end

---Run a command for the one line it prints.
---@param command string
---@return string line
function M.line(command, ...)
  return (M.read(command, ...):gsub("\n+$", ""))
end

---Is there such a program?
---@param name string
---@return boolean
function M.has(name)
  return os.execute(M.format("command -v %q >/dev/null 2>&1", name)) == true
end

return M
