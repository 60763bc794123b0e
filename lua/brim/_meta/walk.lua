---@meta
-- brim._meta.walk: walks, lists of extents and tables of rows, as C gives them to Lua.

local core = {}

---Make an empty list of extents, ranges of blocks with a tag each.
---@return brim.Extents
function core.extents_new() end

---Make an empty table of rows.
---@param group_log2 integer
---@return brim.Table
function core.table_new(group_log2) end

---Begin a walk of trees over an open device; brim.walk.open wraps it.
---@param opened brim.Device
---@param o table block_bytes, read_bytes, group_bytes, max_faults, engine, queue_depth, threads
---@return userdata? walk
---@return brim.Error? err
function core.walk_open(opened, o) end

---A list of ranges of blocks; indices count from 1.
local extents = {}

---Append a range.
---@param start integer
---@param count integer
---@param tag? integer
---@return brim.Extents
function extents:add(start, count, tag) end

---Append those of another list, tagged as there, or all alike.
---@param other brim.Extents
---@param tag? integer
---@return brim.Extents
function extents:append(other, tag) end

---Get the i-th.
---@param i integer
---@return integer? start
---@return integer? count
---@return integer? tag
function extents:get(i) end

---Sum up the blocks.
---@return integer
function extents:sum() end

---Find the longest: its blocks.
---@return integer
function extents:longest() end

---Find the first that is empty or not within [from, to).
---@param from integer
---@param to integer
---@return integer? i
function extents:outside(from, to) end

---Order by start, count, tag.
---@return brim.Extents
function extents:sort() end

---Sort, and merge those that touch or overlap; the tags are lost.
---@return brim.Extents
function extents:union() end

---Sort, and merge those that touch and have the same tag.
---@return brim.Extents
function extents:join() end

---Of a sorted list, find the first that begins before the end of an earlier one.
---@return integer? i
---@return integer? other
function extents:overlap() end

---Find the first index at which two lists differ, tags apart.
---@param other brim.Extents
---@return integer? i
function extents:differ(other) end

---Of two merged lists, find the first range that only one covers: 1 or 2, and the range.
---@param other brim.Extents
---@return integer? which
---@return integer? start
---@return integer? count
---@return integer? tag
function extents:only(other) end

---Make the list of what a sorted one leaves of [from, to).
---@param from integer
---@param to integer
---@return brim.Extents
function extents:complement(from, to) end

---Make the list of those whose tag, unsigned, is within [from, to].
---@param from integer
---@param to integer
---@return brim.Extents
function extents:tagged(from, to) end

---Make the list of those that start within [from, to), less from.
---@param from integer
---@param to integer
---@return brim.Extents
function extents:starting(from, to) end

---Of a sorted list, make that of what at least so many cover, tagged with how many.
---@param least integer
---@return brim.Extents
function extents:depth(least) end

---Trees being walked; brim.walk wraps it. Jobs and kinds count from 0.
local walk_handle = {}

---Describe a kind of tree: the fields of struct brim_walk_tree; layouts as their handles.
---@param o table
---@return integer kind
function walk_handle:tree(o) end

---Add a tree to walk.
---@param kind integer
---@param group integer
---@param block integer
---@param levels integer
---@param first_block integer
---@param end_block integer
---@return integer? job
---@return brim.Error? err
function walk_handle:start(kind, group, block, levels, first_block, end_block) end

---Walk all that were added.
---@return true? ok
---@return brim.Error? err
function walk_handle:run() end

---Forget all jobs.
function walk_handle:reset() end

---Tell how a job went.
---@param job integer
---@return brim.WalkJob?
function walk_handle:job(job) end

---Get the k-th fault kept, from 1.
---@param k integer
---@return brim.WalkFault?
function walk_handle:fault(k) end

---Get a job's records, one behind the other.
---@param job integer
---@return string
function walk_handle:records(job) end

---Append a job's records to a list, as extents by fields.
---@param job integer
---@param list brim.Extents
---@param start string
---@param count? string
---@param tag? string
---@return brim.Extents list
function walk_handle:extents(job, list, start, count, tag) end

---Append the blocks of a job's tree to a list.
---@param job integer
---@param list brim.Extents
---@return brim.Extents list
function walk_handle:blocks(job, list) end

---Read as many bytes at each of many offsets.
---@param offsets integer[]
---@param len_bytes integer
---@return string[]? list
---@return brim.Error? err
function walk_handle:read(offsets, len_bytes) end

---Say what objects that hold extents look like, once.
---@param o table
function walk_handle:object(o) end

---Read objects and their trees into a table of rows.
---@param ranges integer[]
---@param count integer
---@param rows brim.Table
---@return table? result objects, used, rows, bad
---@return brim.Error? err
function walk_handle:objects(ranges, count, rows) end

---Append a job's records to a table of rows.
---@param job integer
---@param rows brim.Table
---@param names string[]
---@param base integer
---@param owner_from integer
---@param owner_to integer
---@return brim.Table rows
function walk_handle:rows(job, rows, names, base, owner_from, owner_to) end

---Tell of the reads so far: engine, reads, read_bytes, latency_sum_ns.
---@return table
function walk_handle:stats() end

---Release it; any number of times.
function walk_handle:close() end

---A table of rows: start, count, owner, offset; # is their number.
local rows = {}

---Append a row.
---@param start integer
---@param count integer
---@param owner integer
---@param offset integer
---@return brim.Table self
function rows:add(start, count, owner, offset) end

---Get the i-th, from 1.
---@param i integer
---@return integer? start
---@return integer? count
---@return integer? owner
---@return integer? offset
function rows:get(i) end

---Order by group, owner, offset, start, count; unsigned.
---@return brim.Table self
function rows:sort() end

---Sort, and make one of rows that go on from each other in blocks and offset; where the offset has
---a bit of `fixed`, it must be the same instead.
---@param fixed integer
---@return brim.Table self
function rows:merge(fixed) end

---Find the rows of a group in a sorted table.
---@param group integer
---@return integer first
---@return integer last less than first where there is none
function rows:find(group) end

---Append the rows of a group to a list of extents, tagged with their owner.
---@param group integer
---@param list brim.Extents
---@return brim.Extents list
function rows:extents(group, list) end

---Find the next row that only one of two sorted tables has, from two indices on.
---@param i integer
---@param last integer
---@param other brim.Table
---@param j integer
---@param other_last integer
---@return integer? which 1: this one, 2: the other
---@return integer i to go on from
---@return integer j
---@return integer start
---@return integer count
---@return integer owner
---@return integer offset
function rows:differ(i, last, other, j, other_last) end
