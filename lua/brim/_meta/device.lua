---@meta
-- brim._meta.device: devices and overlays, as C gives them to Lua.

local core = {}

---Open a target; brim.device.open checks its options and is what scripts call.
---@param path string
---@param o? brim.DeviceOpts
---@return brim.Device? device
---@return brim.Error? err
function core.device_open(path, o) end

---Lay an overlay over a device, which it keeps open; brim.device.overlay is what scripts call.
---@param base brim.Device
---@param path string
---@param o? { create?: boolean, readonly?: boolean, resume?: boolean }
---@return brim.Device? device
---@return brim.Error? err
function core.overlay_open(base, path, o) end

---Tell what the base of an overlay's file was called: false for what is no overlay.
---@param path string
---@return string|false|nil name
---@return brim.Error? err
function core.overlay_base_name(path) end

---Open a device that discards what is written and reads as zeros.
---@param size_bytes integer|string
---@return brim.Device? device
---@return brim.Error? err
function core.device_null(size_bytes) end

---An open target: a file, a block device, an image file, or nothing.
---@class brim.Device
local device = {}

---Tell the facts: kind, path, size_bytes, logical_sector_bytes, physical_sector_bytes,
---min_io_bytes, opt_io_bytes, align_bytes, misaligned_bytes, is_rotational (absent: not known),
---is_direct, is_writable.
---@return table
function device:info() end

---Read a range.
---@param off_bytes integer
---@param len_bytes integer
---@return string? bytes
---@return brim.Error? err
function device:read(off_bytes, len_bytes) end

---Write a string.
---@param off_bytes integer
---@param bytes string
---@return integer? written_bytes
---@return brim.Error? err
function device:write(off_bytes, bytes) end

---Make a range zero without carrying the zeros.
---@param off_bytes integer
---@param len_bytes integer
---@return true? ok
---@return brim.Error? err
function device:zero(off_bytes, len_bytes) end

---Tell a block device that a range is unused; its content is then unknown.
---@param off_bytes integer
---@param len_bytes integer
---@return true? ok
---@return brim.Error? err
function device:discard(off_bytes, len_bytes) end

---Wait until what was written is on stable storage.
---@return true? ok
---@return brim.Error? err
function device:flush() end

---Tell what is there from a byte on: for how long, whether these are zeros that need not be read,
---and whether an overlay has them.
---@param off_bytes integer
---@return integer? len_bytes
---@return boolean|brim.Error is_zero
---@return boolean? is_overlay
function device:extent(off_bytes) end

---Tell of an overlay: block_bytes, data_bytes (kept in its file), zero_bytes (known to be zeros),
---extents, file_bytes (how long the file is, holes included).
---@return table? info
---@return brim.Error? err
function device:overlay_info() end

---Write an overlay's blocks into the device under it, which must be open for writing, and empty it.
---@return true? ok
---@return brim.Error? err
function device:commit() end

---Save an image and the overlay over it as a new image.
---@param path string
---@return true? ok
---@return brim.Error? err
function device:save_image(path) end

---Close it; any number of times.
---@return true
function device:close() end
