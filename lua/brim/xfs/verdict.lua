-- brim.xfs.verdict: how the pure geometry code says no.
-- `refuse` leaves the computation from any depth, `catch` turns that into `nil, err`; nothing else
-- passes through. Called by geometry, division and journal only; callers of geometry never see it.
local schema = require "brim.xfs.schema"

local M = {}

local Refusal = {}
Refusal.__index = Refusal

---Stop the computation with an error about one option.
---@param option string a key of schema.SCHEMA
---@param value any shown after the option's name unless nil
---@param reason string what is wrong and what would be right, may be a format
---@param ... any arguments of the format
function M.refuse(option, value, reason, ...)
  if select("#", ...) > 0 then
    reason = reason:format(...)
  end
  error(setmetatable({ err = schema.option_error(option, value, reason) }, Refusal), 0)
end

---Call `compute`; return its result, or nil and the error it refused with.
---@generic T
---@param compute fun(...): T
---@return T? result
---@return brim.xfs.OptionError? err
function M.catch(compute, ...)
  local ok, result = pcall(compute, ...)
  if ok then
    return result
  end
  if getmetatable(result) == Refusal then
    return nil, result.err
  end
  error(result, 0)
end

return M
