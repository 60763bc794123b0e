---@meta
-- brim._meta.layout: layouts and stamps, as C gives them to Lua.

local core = {}

---Declare an on-disk structure; brim.layout.struct is what scripts call. Raises for a wrong one.
---@param o table name, size_bytes, extensible, checksum, fields
---@return userdata layout
function core.layout_new(o) end

---Begin a stamp: bytes that are traced once and rendered for any instance.
---@return userdata? stamp
---@return brim.Error? err
function core.stamp_new() end

---A declared on-disk structure.
local layout = {}

---Count the elements of a field in a structure of a size.
---@param field integer number of the field, from 1
---@param size_bytes integer
---@return integer
function layout:elements(field, size_bytes) end

---Decode a structure out of a string; also tells whether its checksum holds.
---@param bytes string
---@param off_bytes? integer where it begins, default 0
---@param size_bytes? integer default the structure's
---@return table fields
---@return boolean is_intact
function layout:decode(bytes, off_bytes, size_bytes) end

---What one instance of a group holds, with a symbolic index; sealed it is immutable.
local stamp = {}

---Add a region of zeros.
---@param off_bytes integer relative to the instance
---@param len_bytes integer
---@param label string for messages
---@return true? ok
---@return brim.Error? err
function stamp:region(off_bytes, len_bytes, label) end

---Place a structure with its defaults and its checksum.
---@param structure userdata a layout
---@param off_bytes integer
---@param size_bytes integer
---@return true? ok
---@return brim.Error? err
function stamp:place(structure, off_bytes, size_bytes) end

---Set bytes that are the same in every instance.
---@param off_bytes integer
---@param bytes string
---@return true? ok
---@return brim.Error? err
function stamp:set_bytes(off_bytes, bytes) end

---Set an integer to base + step * i.
---@param off_bytes integer
---@param width_bytes integer 1, 2, 4 or 8
---@param endian "big"|"little"
---@param base integer
---@param step integer
---@param field string for messages
---@return true? ok
---@return brim.Error? err
function stamp:set_int(off_bytes, width_bytes, endian, base, step, field) end

---End the tracing: checks every value's range over the instances.
---@param first integer
---@param count integer
---@return true? ok
---@return brim.Error? err
function stamp:seal(first, count) end

---Render the first extent of an instance.
---@param i integer
---@return string bytes
function stamp:render(i) end

---Release it; any number of times. A plan that took it over owns it.
function stamp:close() end
