-- brim.error: what "the world said no" looks like: a table with code, errno,
-- op, path, offset_bytes, message, cause. C makes the same objects; both share one metatable. Marks
-- two kinds for whoever runs recipes: `usage` (bad input, exit 2), `skip` (exit 77).
local core = require "brim.core"

local M = {}

---@class brim.Error
---@field code string symbolic, such as "ENOSPC"; "EUSAGE" for bad input, "ESKIP" for a skip
---@field errno? integer
---@field op? string what was being done: "open", "write", ...
---@field path? string
---@field offset_bytes? integer
---@field message string one line for people
---@field cause? any what led to it
---@field usage? boolean the input was refused before anything was done

local mt = core.error_metatable()

---Make an error object of a table with at least `message`.
---@param fields table
---@return brim.Error
function M.new(fields)
  local err = {}
  for k, v in pairs(fields) do
    err[k] = v
  end
  err.code = err.code or "EFAIL"
  return setmetatable(err, mt)
end

---Make the error for bad input: one line that names the option, the value and what would be right.
---Raised by a recipe it ends `brim` with exit status 2.
---@param fmt string as for string.format
---@param ... any
---@return brim.Error
function M.usage(fmt, ...)
  return M.new { code = "EUSAGE", message = fmt:format(...), usage = true }
end

---Make the error for what cannot be done here (no privilege, no such tool): exit status 77.
---@param fmt string as for string.format
---@param ... any
---@return brim.Error
function M.skip(fmt, ...)
  return M.new { code = "ESKIP", message = fmt:format(...) }
end

-- What a target is refused for that the user can mend; EIO and ENOMEM, say, are no bad input.
local REFUSED <const> = {
  EBUSY = true, EEXIST = true, EROFS = true, ENOSPC = true, EFBIG = true, EACCES = true,
  EPERM = true, ENOENT = true, EISDIR = true, ENOTDIR = true, EINVAL = true, ENOTBLK = true,
  EILSEQ = true, EOPNOTSUPP = true, ENXIO = true, ETXTBSY = true, ERANGE = true, ENODEV = true,
  ENAMETOOLONG = true, ELOOP = true,
}

---Mark the error of an attempt that ended before it did anything (opening a target, say) as bad
---input: exit status 2 on the command line.
---@param err brim.Error
---@return brim.Error err the same
function M.refused(err)
  err.usage = REFUSED[err.code]
  return err
end

---Is it an error object of brim?
---@param v any
---@return boolean
function M.is(v)
  return getmetatable(v) == mt
end

return M
