---@meta
-- brim._meta.workload: block workloads, traces and replays, as C gives them to Lua.

local core = {}

---Make a workload ready; brim.workload is what scripts call.
---@param o table pattern, size_bytes, seed, theta, stride_bytes, block_bytes, sizes, off_bytes,
---read_ppm, is_clustered, may_overlap, total_bytes, operations, passes
---@return brim.WorkloadHandle? workload
---@return brim.Error? err
function core.workload_new(o) end

---Prepare to run a workload on a device.
---@param workload brim.WorkloadHandle
---@param target brim.Device
---@param o table first, limit_ns, bins, and the options of run_open
---@return brim.RunHandle? run
---@return brim.Error? err
function core.workload_open(workload, target, o) end

---Prepare to read back what a workload wrote: operations below `done` are finished, those up to
---`begun` may be; without both, all are.
---@param workload brim.WorkloadHandle
---@param target brim.Device
---@param o table done, begun, and the options of run_open
---@return brim.RunHandle? run
---@return brim.Error? err
function core.workload_verify(workload, target, o) end

---Open a trace to go through it; brim.trace.open is what scripts call.
---@param path string
---@param format? string "auto", "iolog2", ...
---@param blkparse_action? string one letter
---@return brim.TraceHandle? trace
---@return brim.Error? err
function core.trace_open(path, format, blkparse_action) end

---Begin to write a trace.
---@param trace brim.TraceHandle what will be copied
---@param file string another one than the trace's
---@param format "iolog2"|"iolog3"|"jsonl"
---@param path? string of operations that name no file
---@return brim.TraceCopy? copy
---@return brim.Error? err
function core.trace_copy(trace, file, format, path) end

---Prepare to replay a trace of block I/O on a device. The trace is closed for others.
---@param trace brim.TraceHandle
---@param target brim.Device
---@param o table speed, seed, is_wrapped, stream, path, and the options of run_open
---@return brim.RunHandle? run
---@return brim.Error? err
function core.replay_open(trace, target, o) end

---Prepare to replay a trace of file operations below a directory. The trace is closed for others.
---@param trace brim.TraceHandle
---@param root string
---@param o table speed, seed, stream, path, strip
---@return brim.ReplayFiles? replay
---@return brim.Error? err
function core.replay_files(trace, root, o) end

---A workload as the core has it.
---@class brim.WorkloadHandle
local workload_handle = {}

---List the first operations: { off_bytes, len_bytes, is_read } each.
---@param n integer at most 2^24
---@return table[]
function workload_handle:operations(n) end

---Make what an operation writes into the block at an offset.
---@param off_bytes integer
---@param operation integer
---@return string bytes
function workload_handle:block(off_bytes, operation) end

---A trace that is being read.
---@class brim.TraceHandle
local trace_handle = {}

---Go on through the trace for a while, and write what is met into a copy too.
---@param budget_s number 0: to the end
---@param copy? brim.TraceCopy
---@return boolean? more
---@return brim.Error? err
function trace_handle:step(budget_s, copy) end

---Tell what the trace consists of, as far as it was gone through.
---@return table
function trace_handle:info() end

---Tell the format.
---@return string
function trace_handle:format() end

---Close it; any number of times.
function trace_handle:close() end

---A trace that is being written.
---@class brim.TraceCopy
local trace_copy = {}

---Write what is left and close: how many operations the format had no word for.
---@return integer? omitted
---@return brim.Error? err
function trace_copy:close() end

---A replay below a directory under way.
---@class brim.ReplayFiles
local replay_files = {}

---Go on for a while: is there more to do, and the counters of struct brim_replay_stats.
---@param budget_s number 0: to the end
---@return boolean? more
---@return table|brim.Error stats
function replay_files:step(budget_s) end

---Close it and the files it has open; any number of times.
function replay_files:close() end
