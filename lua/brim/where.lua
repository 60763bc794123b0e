-- brim.where: whose line it was. Errors of a plan surface deep inside brim, and tail calls drop
-- frames, so a fixed level often names the wrong file; the first frame outside of brim is the
-- script's. Pure.
local M = {}

-- What every module's source begins with: "=brim." when built in, "@.../lua/brim/" from files.
local OWN <const> = debug.getinfo(1, "S").source:match "^(.*)where.lua$"
  or debug.getinfo(1, "S").source:match "^(.*)where$"

---The script's line that led here, as "file:line"; nil where there is none.
---@return string?
function M.script()
  local level = 2
  local info = debug.getinfo(level, "Sl")
  while info do
    if info.currentline > 0 and info.source:sub(1, #OWN) ~= OWN then
      return ("%s:%d"):format(info.short_src, info.currentline)
    end
    level = level + 1
    info = debug.getinfo(level, "Sl")
  end
end

---Raise a message with the script's line in front of it, unless it has one already, as error does
---with a level. Anything but a string is raised as it is.
---@param message any
function M.raise(message)
  local has_line = type(message) ~= "string" or message:find "^[^\n:]+:%d+: "
  local line = not has_line and M.script()
  error(line and ("%s: %s"):format(line, message) or message, 0)
end

return M
