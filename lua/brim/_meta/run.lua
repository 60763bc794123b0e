---@meta
-- brim._meta.run: runs and scans, as C gives them to Lua.

local core = {}

---Begin a scan: what must hold at every instance.
---@return userdata? scan_handle
---@return brim.Error? err
function core.scan_new() end

---Prepare to write a sealed plan to a device, or to compare the device with it. Plan and device
---stay open as long as the run.
---@param plan userdata a plan_handle
---@param target brim.Device
---@param mode "write"|"verify"
---@param o? table engine, queue_depth, max_io_bytes, threads, max_mismatches
---@return brim.RunHandle? run
---@return brim.Error? err
function core.run_open(plan, target, mode, o) end

---Prepare to read and check the instances of a scan.
---@param scan userdata a scan_handle
---@param target brim.Device
---@param o table offset_bytes, stride_bytes, first, count, and the options of run_open
---@return brim.RunHandle? run
---@return brim.Error? err
function core.scan_open(scan, target, o) end

---What must hold at every instance of a group; brim.scan wraps it.
local scan_handle = {}

---Expect a structure whose checksum holds.
---@param structure userdata a layout
---@param off_bytes integer
---@param size_bytes integer
---@return true? ok
---@return brim.Error? err
function scan_handle:expect_layout(structure, off_bytes, size_bytes) end

---Expect an integer to be base + step * i, compared in its width.
---@param off_bytes integer
---@param width_bytes integer 1, 2, 4 or 8
---@param endian "big"|"little"
---@param base integer
---@param step integer
---@param structure string for messages
---@param field string for messages
---@return true? ok
---@return brim.Error? err
function scan_handle:expect_int(off_bytes, width_bytes, endian, base, step, structure, field) end

---Expect bytes that are the same at every instance.
---@param off_bytes integer
---@param bytes string
---@param structure string for messages
---@param field string for messages
---@return true? ok
---@return brim.Error? err
function scan_handle:expect_bytes(off_bytes, bytes, structure, field) end

---A write, a verify or a scan under way; brim.run.drive takes it to its end.
---@class brim.RunHandle
local run = {}

---Work for a while: is there more to do, and the counters so far, in the fields of struct
---brim_run_stats. The table is the same each time.
---@param budget_s? number about how long; 0 or none: to the end
---@return boolean? more
---@return table|brim.Error stats
function run:step(budget_s) end

---Get the k-th difference that was kept: off_bytes, group, piece, what, expected, found.
---@param k integer from 1
---@return brim.Mismatch?
function run:mismatch(k) end

---Wait for what is in flight and release it; any number of times.
---@return true
function run:close() end

---One difference that a verify or a scan found.
---@class brim.Mismatch
---@field off_bytes integer on the device
---@field group integer number of the instance
---@field piece string the plan's piece, or the scan's structure
---@field what string the structure, or the field
---@field expected integer a byte for verify, a value for scan
---@field found integer
