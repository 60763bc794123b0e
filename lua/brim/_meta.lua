---@meta
-- brim._meta: what C gives Lua, declared for editors, for help() and for the manual. No code runs.
-- Sizes are bytes, as integers or as texts like "8191p". A local stands for a handle's class; its
-- name is that of the C metatable.

---What the process, the terminal and the build are like; sizes; the ways to make handles.
local core = {}

---Parse the text of a size: "4096", "8191p", "7EiB".
---@param text string
---@return integer? n_bytes
---@return brim.Error? err
function core.parse_bytes(text) end

---Format a size with the largest suffix that keeps it exact.
---@param n_bytes integer
---@return string
function core.format_bytes(n_bytes) end

---Add two integers; nil on overflow.
---@param a integer
---@param b integer
---@return integer? sum
function core.add(a, b) end

---Multiply two integers; nil on overflow.
---@param a integer
---@param b integer
---@return integer? product
function core.mul(a, b) end

---Read what this process has used so far: user_cpu_s, system_cpu_s, peak_rss_bytes.
---@return { user_cpu_s: number, system_cpu_s: number, peak_rss_bytes: integer }
function core.process_usage() end

---Read a clock that only goes forward, in seconds.
---@return number
function core.monotonic_s() end

---Read the time of day: nanoseconds since 1970.
---@return integer
function core.time_ns() end

---Is a file descriptor a terminal?
---@param fd integer
---@return boolean
function core.isatty(fd) end

---Get the width of the terminal at a file descriptor; 80 where it does not say.
---@param fd integer
---@return integer
function core.columns(fd) end

---Does the process have root's effective user id?
---@return boolean
function core.is_root() end

---Has SIGINT come since the last clear_interrupt? Only the `brim` executable listens to it.
---@return boolean
function core.interrupted() end

---Forget an interrupt.
function core.clear_interrupt() end

---Ask the kernel whether this process may use io_uring.
---@return true? ok
---@return string? why
function core.probe_uring() end

---Count the handles that are open.
---@return integer
function core.open_handles() end

---Begin line editing on the terminal. Options: history_path, prompt, and complete(line) -> list of
---texts, the byte where what they replace begins. Nil and an error where there is no terminal or
---no libedit.
---@param o? table
---@return userdata? edit
---@return brim.Error? err
function core.edit_open(o) end

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

---Open a device that discards what is written and reads as zeros.
---@param size_bytes integer|string
---@return brim.Device? device
---@return brim.Error? err
function core.device_null(size_bytes) end

---Declare an on-disk structure; brim.layout.struct is what scripts call. Raises for a wrong one.
---@param o table name, size_bytes, extensible, checksum, fields
---@return userdata layout
function core.layout_new(o) end

---Begin a plan; brim.plan is what scripts call.
---@param name string
---@param size_bytes integer|string
---@return userdata? plan_handle
---@return brim.Error? err
function core.plan_new(name, size_bytes) end

---Begin a stamp: bytes that are traced once and rendered for any instance.
---@return userdata? stamp
---@return brim.Error? err
function core.stamp_new() end

---Load an image file as a sealed plan. Runs no code from it.
---@param path string
---@return userdata? plan_handle
---@return brim.Error? err
function core.image_load(path) end

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

---Make a random UUID: 16 bytes.
---@return string
function core.uuid_generate() end

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

---What every byte of a volume shall be, in phases; brim.plan wraps it.
local plan_handle = {}

---Begin a phase: what follows is written once all before it is on stable storage.
---@param name string
---@return true? ok
---@return brim.Error? err
function plan_handle:phase(name) end

---Make a range zero.
---@param off_bytes integer
---@param len_bytes integer
---@param name string
---@return true? ok
---@return brim.Error? err
function plan_handle:zero(off_bytes, len_bytes, name) end

---Lay the instances of a sealed stamp, which the plan owns from here on.
---@param instances userdata the stamp
---@param off_bytes integer where instance 0 is
---@param stride_bytes integer from one instance to the next
---@param name string
---@param groups boolean they count as groups in reports
---@return true? ok
---@return brim.Error? err
function plan_handle:each(instances, off_bytes, stride_bytes, name, groups) end

---Set a text that travels with the plan; nil clears it.
---@param key string
---@param text? string
---@return true? ok
---@return brim.Error? err
function plan_handle:set_note(key, text) end

---Read a note.
---@param key string
---@return string? text
function plan_handle:note(key) end

---End the building; checks overlaps and the size.
---@return true? ok
---@return brim.Error? err
function plan_handle:seal() end

---Open it for more again; refused while a run or device holds it.
---@return true? ok
---@return brim.Error? err
function plan_handle:unseal() end

---Count what running it amounts to: phases, pieces, groups, writes, write_bytes, zero_ranges,
---zero_bytes, align_bytes.
---@param max_io_bytes integer
---@return table
function plan_handle:totals(max_io_bytes) end

---Describe a piece: phase, name, is_zero, is_groups, off_bytes, len_bytes, stride_bytes, first,
---count, hidden, extents, regions; nil past the last.
---@param i integer from 1
---@return table?
function plan_handle:piece(i) end

---Read what a range of the volume shall be.
---@param off_bytes integer
---@param len_bytes integer at most 1 GiB
---@return string? bytes
---@return brim.Error? err
function plan_handle:read(off_bytes, len_bytes) end

---Save it as an image file of a few KiB.
---@param path string
---@return true? ok
---@return brim.Error? err
function plan_handle:save(path) end

---Tell its name and size.
---@return string name
---@return integer size_bytes
function plan_handle:info() end

---Release it; any number of times.
function plan_handle:close() end

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

---Make an empty list of extents, ranges of blocks with a tag each.
---@return brim.Extents
function core.extents_new() end

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

---Release it; any number of times.
function walk_handle:close() end

---A line editor with history and completion.
local edit = {}

---Read a line: without its end, nil at the end of input, "" and "interrupted" after Ctrl-C.
---@param prompt? string
---@return string? line
---@return string? interrupted
function edit:readline(prompt) end

---Remember a line, in the history file at once.
---@param line string
---@return true
function edit:add_history(line) end

---Give the terminal back; any number of times.
---@return true
function edit:close() end

---One difference that a verify or a scan found.
---@class brim.Mismatch
---@field off_bytes integer on the device
---@field group integer number of the instance
---@field piece string the plan's piece, or the scan's structure
---@field what string the structure, or the field
---@field expected integer a byte for verify, a value for scan
---@field found integer

return core
