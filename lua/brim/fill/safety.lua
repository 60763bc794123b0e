-- brim.fill.safety: what is not filled: the filesystem that holds / or the home directory, unless
-- it is really meant, and then not to the last block; what holds another fill. Called by brim.fill
-- before anything is written.
local core = require "brim.core"
local errors = require "brim.error"
local log = require "brim.fill.log"
local process = require "brim.process"

local M = {}

local SYSTEM_MARGIN <const> = 0.05 -- of the size, left free on a system's filesystem

local function same_device(a, b)
  return a and b and a.device_major == b.device_major and a.device_minor == b.device_minor
end

---Name what a running system needs that is on the filesystem of a path: "/", the home directory.
---@param path string
---@return string? what
function M.holds(path)
  local usage = core.usage(path)
  for _, place in ipairs { "/", os.getenv "HOME" or "/" } do
    if same_device(usage, core.usage(place)) then
      return place
    end
  end
end

local function refuse(code, fmt, ...)
  local err = errors.new { code = code, op = "fill", message = fmt:format(...) }
  err.usage = true
  return nil, err
end

---Check that a path may be filled.
---@param path string
---@param o table of brim.fill.options.RUN; `margin` is set where it must be
---@return true? ok
---@return brim.Error? err
function M.check(path, o)
  local usage, err = core.usage(path)
  if not usage then
    return nil, errors.refused(err)
  end
  local is_dir = process.run("test", "-d", path)
  if not is_dir then
    return refuse("ENOTDIR", "%s is no directory", path)
  end
  local place = M.holds(path)
  if place and not o.yes_really then
    return refuse("EBUSY", "%s is on the filesystem that holds %s, which a running system needs; "
      .. "use a filesystem of its own, or say --yes-really (yes_really = true)", path, place)
  elseif place and not o.margin then
    o.margin = math.floor(usage.size_bytes * SYSTEM_MARGIN)
  end
  local file = io.open(log.path_of(path))
  if file then
    file:close()
    return refuse("EEXIST", "%s holds an earlier fill: resume it, or remove it with "
      .. "'brim fill --clean %s'", path, path)
  end
  for _, name in ipairs { "s0", log.DIR } do
    if process.run("test", "-e", path .. "/" .. name) then
      return refuse("EEXIST", "%s/%s is there already, and is no fill's of brim", path, name)
    end
  end
  return true
end

---Check the target of a fill against the margin that a system's filesystem must keep.
---@param path string
---@param o table of brim.fill.options.RUN, checked by M.check
---@param targets table[]
---@return true? ok
---@return brim.Error? err
function M.check_targets(path, o, targets)
  local usage = core.usage(path)
  local margin = o.margin or 0
  for _, target in ipairs(targets) do
    if target.kind == "fullness" and usage
      and usage.size_bytes * (1 - target.value) < margin then
      return refuse("ERANGE", "%s would leave less than the margin of %s free", target.name,
        require("brim.bytes").about(margin))
    end
  end
  return true
end

return M
