---@meta
-- brim._meta.drive: timing models of drives, as C gives them to Lua.

local core = {}

---Make a drive from its parameters as text; brim.drive is what scripts call.
---@param text string "smr,size_bytes=8g,..."
---@return brim.DriveHandle? drive
---@return brim.Error? err
function core.drive_new(text) end

---List the first events of a block trace, or of any trace of block I/O.
---@param path string
---@param most integer at most 2^24
---@return table[]? events { op, stream, at_ns, took_ns, off_bytes, len_bytes } each
---@return integer|brim.Error size_bytes of the drive; 0 where the trace does not say
function core.drive_events(path, most) end

---List the names of the parameters that a drive has.
---@return string[]
function core.drive_params() end

---A drive as the core has it.
---@class brim.DriveHandle
local drive_handle = {}

---Do one command: when it is finished.
---@param op "read"|"write"|"trim"|"flush"
---@param off_bytes integer
---@param len_bytes integer
---@param at_ns integer
---@return integer? done_ns
---@return brim.Error? err
function drive_handle:io(op, off_bytes, len_bytes, at_ns) end

---Tell what it did since it was made: struct brim_drive_stats.
---@return table
function drive_handle:stats() end

---Send a trace through it.
---@param path string
---@param o table is_open_loop, is_wrapped, interval_ns, at_ns, out
---@return table? result
---@return brim.Error? err
function drive_handle:replay(path, o) end
