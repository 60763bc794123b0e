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

---Expect an integer to be as a rule says: equal to a value, within a range of two, one of some.
---@param off_bytes integer
---@param width_bytes integer 1, 2, 4 or 8
---@param endian "big"|"little"
---@param rule "any"|"equal"|"range"|"one_of"
---@param values integer[] base and step of the first, of the second, ...: base + step * i
---@param structure string for messages
---@param field string for messages
---@return true? ok
---@return brim.Error? err
function scan_handle:expect(off_bytes, width_bytes, endian, rule, values, structure, field) end

---Expect bytes that are the same at every instance.
---@param off_bytes integer
---@param bytes string
---@param structure string for messages
---@param field string for messages
---@return true? ok
---@return brim.Error? err
function scan_handle:expect_bytes(off_bytes, bytes, structure, field) end

---Take an integer of every instance into an accumulator; those of one kind and name are one.
---@param off_bytes integer
---@param width_bytes integer 1, 2, 4 or 8
---@param endian "big"|"little"
---@param kind "sum"|"min"|"max"|"count"|"histogram"
---@param name string
---@param rule? string of count: as for expect
---@param values? integer[]
---@param from? integer of histogram
---@param to? integer
---@param bins? integer 0 or none: by powers of two
---@return integer? number from 0
---@return brim.Error? err
function scan_handle:accumulate(off_bytes, width_bytes, endian, kind, name, rule, values, from, to,
    bins) end

---Make an integer of every instance a column of rows.
---@param off_bytes integer
---@param width_bytes integer 1, 2, 4 or 8
---@param endian "big"|"little"
---@param name string for messages
---@return integer? number from 0
---@return brim.Error? err
function scan_handle:column(off_bytes, width_bytes, endian, name) end

---A write, a verify or a scan under way; brim.run.drive takes it to its end.
---@class brim.RunHandle
local run = {}

---Work for a while: is there more to do, and the counters so far, in the fields of struct
---brim_run_stats. The table is the same each time.
---@param budget_s? number about how long; 0 or none: to the end
---@return boolean? more
---@return table|brim.Error stats
function run:step(budget_s) end

---Get the k-th difference that was kept: off_bytes, group, piece, what, rule,
---expected, found.
---@param k integer from 1
---@return brim.Mismatch?
function run:mismatch(k) end

---Get the k-th kind of a scan's mismatches, in the order found.
---@param k integer from 1
---@return brim.MismatchKind?
function run:kind(k) end

---Get the k-th accumulator of a scan: name, seen; sum and decimal; or value, group, off_bytes; or
---count, or bins, below and above.
---@param k integer from 0
---@return table?
function run:total(k) end

---Tell the counters of a workload's run since the last call, in the fields of struct
---brim_workload_stats.
---@param with_bins? boolean parts of the range too
---@return table
function run:workload_stats(with_bins) end

---Tell what a workload's verification has found so far, in blocks.
---@return table
function run:workload_found() end

---Tell the counters of a replay, in the fields of struct brim_replay_stats.
---@return table
function run:replay_stats() end

---Let a scan with columns keep rows, before its first step: about so many at a time.
---@param row_count integer 0: as many as are sensible
---@return true? ok
---@return brim.Error? err
function run:collect(row_count) end

---Take the next rows: the first one's instance, how many, and a list of values for each column.
---@param max_rows integer at most 2^20
---@return integer? first nil: none for now
---@return integer? count
---@return integer[][]? columns
function run:rows(max_rows) end

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
---@field rule string what found is not: "=", "<=", ">=" expected, "in" a set that has it
