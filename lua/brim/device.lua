-- brim.device: opens targets: files, block devices, image files, any of them under an overlay, and
-- the null device for measuring. What cannot be a target is refused before anything is written.
-- Called by plan, scan and recipes. The handle's methods are the core's: info, read, write, zero,
-- discard, flush, extent, close; of overlays also overlay_info, commit, save_image.
local core = require "brim.core"
local errors = require "brim.error"
local opts = require "brim.opts"

local M = {}

---@class brim.DeviceOpts
---@field write? boolean open for writing; refuses what is in use or carries another filesystem
---@field create? boolean make a missing regular file
---@field force? boolean accept a target that carries a filesystem; never one that is in use
---@field direct? boolean past the page cache for regular files too
---@field buffered? boolean through the page cache for block devices too
---@field raw? boolean take an image file for the small regular file it is
---@field direct_align_bytes? integer all I/O will be a multiple of it: go past the page cache for
--- regular files too where the filesystem says that this suffices
---@field min_size_bytes? integer|string the least size; regular files are extended to it
---@field max_size_bytes? integer|string
---@field overlay? string a file that takes what is written, so that the target stays as it is; made
--- when it is missing and `write` is given

local SCHEMA = {
  write = { type = "bool", doc = "open for writing" },
  create = { type = "bool", doc = "make a missing regular file" },
  force = { type = "bool", doc = "accept a target that carries a filesystem" },
  direct = { type = "bool", doc = "past the page cache for regular files too" },
  buffered = { type = "bool", doc = "through the page cache for block devices too" },
  raw = { type = "bool", doc = "take an image file for the small regular file it is" },
  direct_align_bytes = { type = "int", min = 0, doc = "of all I/O: direct if that does" },
  min_size_bytes = { type = "bytes", doc = "the least size; regular files are extended to it" },
  max_size_bytes = { type = "bytes", doc = "the largest size" },
  overlay = { type = "path", doc = "a file that takes what is written" },
}

---Lay an overlay over an open device: a file that takes what is written, in blocks of 4 KiB. The
---overlay keeps the device open; the caller may close its own handle. Options: `create` makes a
---missing file, `readonly`, `resume` accepts one whose commit was cut short.
---@param base brim.Device
---@param path string
---@param o? { create?: boolean, readonly?: boolean, resume?: boolean }
---@return brim.Device? device
---@return brim.Error? err with `usage` set where the overlay was refused
function M.overlay(base, path, o)
  local device, err = core.overlay_open(base, path, o)
  if not device then
    return nil, errors.refused(err)
  end
  return device
end

-- The target itself is only read.
local function open_under(path, o)
  local overlay, write = o.overlay, o.write or false
  o.overlay, o.write = nil, nil
  local base <close>, err = core.device_open(path, o)
  if not base then
    return nil, errors.refused(err)
  end
  return M.overlay(base, overlay, { create = write, readonly = not write })
end

---Is there anything of that name?
---@param path string
---@return boolean
function M.exists(path)
  local _, _, errno = os.rename(path, path)
  return errno == nil or errno ~= 2
end

---Find what a target's name stands for. An overlay's file stands for the overlay over its base,
---which is looked for beside it; anything else for itself.
---@param path string
---@return string? path nil where the base is missing or the overlay damaged
---@return string|brim.Error|nil overlay or err
function M.resolve(path)
  local name, err = core.overlay_base_name(path)
  if not name then
    return err == nil and path or nil, err and errors.refused(err)
  end
  local base = (path:match "^.*/" or "") .. name
  if name == "" or name == "." or name == ".." or not M.exists(base) then
    return nil, errors.usage("%s is an overlay of '%s', which is not beside it: name that one, "
      .. "with the overlay as its overlay", path, name)
  end
  return base, path
end

---Open a target. Without `write` it is read-only. An overlay's file is resolved, unless `raw` takes
---it for the file that it is.
---@param path string
---@param o? brim.DeviceOpts
---@return brim.Device? device to be closed by the caller
---@return brim.Error? err with `usage` set where the target was refused
function M.open(path, o)
  o = opts.check(o, SCHEMA, "brim.device.open")
  if not o.overlay and not o.raw then
    local base, overlay = M.resolve(path)
    if not base then
      return nil, overlay
    end
    path, o.overlay = base, overlay
  end
  if o.overlay then
    return open_under(path, o)
  end
  local device, err = core.device_open(path, o)
  if not device then
    return nil, errors.refused(err)
  end
  return device
end

---Open a device with nothing behind it: writes are discarded, reads give zeros.
---@param size_bytes integer|string
---@return brim.Device? device
---@return brim.Error? err
function M.null(size_bytes)
  return core.device_null(size_bytes)
end

return M
