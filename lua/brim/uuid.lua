-- brim.uuid: UUIDs as 16 bytes and as text. Fresh ones come from libuuid. Called by layout and
-- format.
local core = require "brim.core"

local M = {}

local PATTERN <const> = "^" .. ("8-4-4-4-12"):gsub("%d+", function(n)
  return ("%x"):rep(n)
end):gsub("-", "%%-") .. "$"

---Make a random UUID (version 4), as text.
---@return string
function M.generate()
  return M.format(core.uuid_generate())
end

---A UUID's 16 bytes as text, in lower case.
---@param bytes string
---@return string
function M.format(bytes)
  local hex = bytes:gsub(".", function(c)
    return ("%02x"):format(c:byte())
  end)
  return (hex:gsub("^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x+)$", "%1-%2-%3-%4-%5"))
end

---The 16 bytes of a UUID given as text (with its four dashes) or as 16 bytes; nil for anything
---else.
---@param text string
---@return string? bytes
function M.parse(text)
  if #text == 16 then
    return text
  end
  local hex = text:match(PATTERN)
  return hex and (hex:gsub("-", ""):gsub("..", function(two)
    return string.char(tonumber(two, 16))
  end)) or nil
end

return M
