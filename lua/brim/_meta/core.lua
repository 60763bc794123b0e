---@meta
-- brim._meta.core: what brim.core has beside the ways to make handles, as C gives them to Lua.

---What the process, the terminal and the build are like; sizes; the ways to make handles.
local core = {}

---Read a size, whatever it is: an integer, an integral float up to 2^53, a text like "4096",
---"8191p", "7EiB"; nil and the reason for anything else.
---@param v any
---@return integer? n_bytes
---@return brim.Error? err
function core.check_bytes(v) end

---Get the metatable of error objects, which brim.error gives to its own.
---@return table
function core.error_metatable() end

---Run a bare CRC register over bytes: not inverted before or after. Raises for a register of more
---than 32 bits.
---@param kind "crc32c"|"crc32"
---@param register integer its start: 0xffffffff for most, F2FS begins with its magic number
---@param bytes string
---@return integer register
function core.crc(kind, register, bytes) end

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

---Sleep; ends early when a signal comes.
---@param seconds number
function core.sleep(seconds) end

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

---Has SIGINT come since the last clear_interrupt, or a SIGTERM that is heeded? Only the `brim`
---executable listens to them.
---@return boolean
function core.interrupted() end

---Get the signal that interrupted: 2 (SIGINT), 15 (SIGTERM), 0 (none).
---@return integer
function core.interrupt_signal() end

---Have SIGTERM interrupt as SIGINT does, or end the process at once again.
---@param on boolean
---@return boolean can false outside of the `brim` executable, where nothing is changed
function core.heed_sigterm(on) end

---Forget an interrupt.
function core.clear_interrupt() end

---Ask the kernel whether this process may use io_uring.
---@return true? ok
---@return string? why
function core.probe_uring() end

---Count the handles that are open.
---@return integer
function core.open_handles() end

---Make a random UUID: 16 bytes.
---@return string
function core.uuid_generate() end
