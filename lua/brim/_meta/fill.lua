---@meta
-- brim._meta.fill: distributions, filesets, streams, fills, their verification and the usage of
-- filesystems, as C gives them to Lua. Streams and operations count from 0; kinds of operations are
-- "mkdir", "create", "overwrite", "append", "truncate", "replace", "delete".

local core = {}

---A distribution of sizes, as data. What is drawn lies within min_bytes and max_bytes, both
---included.
---@class brim.Dist
---@field kind "fixed"|"uniform"|"log_uniform"|"log_normal"|"pareto"|"histogram"
---@field min_bytes? integer|string fixed: the size; default 0; a histogram's follow from its bins
---@field max_bytes? integer|string default of fixed: min_bytes
---@field a? number log_normal: the median in bytes; pareto: the shape
---@field b? number log_normal: sigma of the natural logarithm
---@field bins? { from: integer, to: integer, weight: number }[] histogram: bytes, both included

---A file as a stream says it shall be.
---@class brim.PlannedFile
---@field stream integer
---@field id integer
---@field version integer counts being written as a whole
---@field overwrites integer
---@field base_bytes integer
---@field size_bytes integer

---One operation of a stream.
---@class brim.FileOp
---@field kind string
---@field index integer within the stream
---@field file brim.PlannedFile as it is afterwards; delete: as it was
---@field before? brim.PlannedFile as it was, where there was one
---@field off_bytes integer
---@field len_bytes integer
---@field dir_level integer of mkdir

---What streams do from now on; all weights 0: creates only.
---@class brim.FillPhase
---@field create? integer weights
---@field overwrite? integer
---@field append? integer
---@field truncate? integer
---@field replace? integer
---@field delete? integer
---@field live_bytes? integer|string the sum of file sizes to keep (of a fill: of all its streams)
---@field band_ppm? integer within which
---@field max_file_bytes? integer|string cap of what is written as a whole

---An operation that was refused or failed; fill:replay_failure takes the same table.
---@class brim.FillFailure
---@field stream integer
---@field index integer
---@field kind string
---@field id integer
---@field call string "open", "write", "close", "fsync", "rename", ...
---@field code string "ENOSPC", ...
---@field errno integer
---@field stands "missing"|"before"|integer how the file stands: not there, unchanged, or so many
---bytes of what it should have
---@field told_index integer before which operation the stream was told

---Check a distribution.
---@param dist brim.Dist
---@return true? ok
---@return brim.Error? err
function core.dist_check(dist) end

---Draw the value that 64 random bits stand for.
---@param dist brim.Dist
---@param bits integer
---@return integer n_bytes
function core.dist_value(dist, bits) end

---Give the expected value, within 1 %.
---@param dist brim.Dist
---@return number
function core.dist_mean(dist) end

---Make a fileset. Options: seed, streams (1), sizes (a brim.Dist), depth (1), fan_out (32),
---files_per_dir (1000), extensions ({ { name = ".c", weight = 2 }, ... }), content ("random",
---"zeros", "compressible"), compress_ppm.
---@param o table
---@return brim.Fileset? fileset
---@return brim.Error? err
function core.fileset_new(o) end

---Prepare to fill a directory. Options: mode ("auto", "plain", "ring", "none"), queue_depth,
---direct (true, false; none: where it pays), direct_min_bytes, max_io_bytes, fsync ("never",
---"file", or n: each n-th file), trace_path, trace_format ("iolog2", "iolog3", "jsonl").
---@param fileset brim.Fileset
---@param path string
---@param o? table
---@return brim.FillHandle? fill
---@return brim.Error? err
function core.fill_open(fileset, path, o) end

---Prepare to compare a directory with what the streams of a fill say, which was opened with mode
---"none" and replayed; it stays open meanwhile, and is past the windows afterwards. Options:
---threads, direct, max_findings.
---@param fill brim.FillHandle
---@param window? integer[] operations from now on of each stream whose files are not judged;
---window[1] is stream 0's
---@param o? table
---@return brim.VerifyHandle? verify
---@return brim.Error? err
function core.verify_open(fill, window, o) end

---Tell how full a filesystem is: type, block_bytes, size_bytes, free_bytes, avail_bytes, files,
---free_files, device_major, device_minor.
---@param path string
---@return table? usage
---@return brim.Error? err
function core.usage(path) end

---Write back the filesystem that a path is on.
---@param path string
---@return true? ok
---@return brim.Error? err
function core.usage_sync(path) end

---What files there shall be: a pure function of its options.
---@class brim.Fileset
local fileset = {}

---Give the number of its streams.
---@return integer
function fileset:streams() end

---Give a file's path below the root.
---@param stream integer
---@param id integer
---@param is_temporary? boolean the name before it replaces
---@return string
function fileset:path(stream, id, is_temporary) end

---Tell which file a path is of; nothing where it is of none.
---@param path string
---@return integer? stream
---@return integer? id
---@return boolean? is_temporary
function fileset:parse(path) end

---Give the size that a version of a file is written with.
---@param stream integer
---@param id integer
---@param version integer
---@return integer
function fileset:size(stream, id, version) end

---Give what a file holds in a range.
---@param file brim.PlannedFile
---@param off_bytes integer
---@param len_bytes integer at most 1 GiB
---@return string
function fileset:content(file, off_bytes, len_bytes) end

---Begin a stream of operations.
---@param stream integer
---@return brim.Stream? stream
---@return brim.Error? err
function fileset:stream(stream) end

---Release it; any number of times.
function fileset:close() end

---Operations that follow from a seed.
---@class brim.Stream
local stream = {}

---Set what comes from the next operation on.
---@param phase brim.FillPhase
---@return true? ok
---@return brim.Error? err
function stream:phase(phase) end

---Give the next operation.
---@return brim.FileOp? op
---@return brim.Error? err
function stream:next() end

---Pass so many operations.
---@param ops integer
---@return true? ok
---@return brim.Error? err
function stream:skip(ops) end

---Tell that the last operation given by next was refused.
---@param stands "missing"|"before"|integer
---@return true? ok
---@return brim.Error? err
function stream:fail(stands) end

---Tell what its files are together: ops = { create = n, ... }, written_bytes, live_files,
---live_bytes, next_index.
---@return table
function stream:totals() end

---Give the k-th live file, from 1, in no particular order.
---@param k integer
---@return brim.PlannedFile?
function stream:file(k) end

---Find a live file.
---@param id integer
---@return brim.PlannedFile?
function stream:find(id) end

---Release it; any number of times.
function stream:close() end

---Streams carried out on a directory.
---@class brim.FillHandle
local fill_handle = {}

---Set what all streams do from now on; only while nothing is granted.
---@param phase brim.FillPhase
---@return true? ok
---@return brim.Error? err
function fill_handle:phase(phase) end

---Allow further operations and written bytes of each stream; none or 0: no limit of that kind.
---@param ops? integer
---@param bytes? integer|string
---@return true? ok
---@return brim.Error? err
function fill_handle:grant(ops, bytes) end

---Bring a stream forward by so many operations without doing anything.
---@param number integer of the stream
---@param ops integer
---@return true? ok
---@return brim.Error? err
function fill_handle:replay(number, ops) end

---Tell, before replay gets there, what an earlier run was refused.
---@param failure brim.FillFailure
---@return true? ok
---@return brim.Error? err
function fill_handle:replay_failure(failure) end

---Wait for a while: is the grant still being used, and the counters in the fields of struct
---brim_fill_stats; ops, p50_ns, p99_ns and max_ns are tables by kind, waiting_kind is a name.
---The tables are the same each time.
---@param budget_s? number about how long; 0 or none: to the end of the grant
---@return boolean? more
---@return table|brim.Error stats
function fill_handle:step(budget_s) end

---End the grant early; step tells when that has happened.
function fill_handle:stop() end

---Tell how many operations of a stream are done, all before them included.
---@param number integer of the stream
---@return integer
function fill_handle:done(number) end

---Take the oldest failure that was not taken yet.
---@return brim.FillFailure?
function fill_handle:failure() end

---Let what is in flight finish and write the rest of the trace, which close does without telling;
---nothing more can be granted then. The error is the first of writing the trace.
---@return true? ok
---@return brim.Error? err
function fill_handle:finish() end

---Let what is in flight finish and release it; any number of times.
---@return true
function fill_handle:close() end

---A directory being compared with what it shall hold.
---@class brim.VerifyHandle
local verify_handle = {}

---Compare for a while: is there more to do, and the counters: files, bytes, total_files,
---total_bytes, unjudged, elapsed_ns, found = { missing = n, short =, long =, corrupt =, extra =,
---unreadable = }. The tables are the same each time.
---@param budget_s? number about how long; 0 or none: to the end
---@return boolean? more
---@return table|brim.Error stats
function verify_handle:step(budget_s) end

---Get the k-th finding that was kept, ordered by path once step has said that there is no more:
---kind, path (below the root), off_bytes, expected, found (sizes; corrupt: bytes there).
---@param k integer from 1
---@return table?
function verify_handle:finding(k) end

---End it; any number of times.
---@return true
function verify_handle:close() end
