-- brim.workload: block workloads on raw devices and files: which blocks are read and written in
-- which order, as a value that can be run, verified and explained. What is written says of each
-- block where it belongs and which operation wrote it. Called by scripts and the recipe block-fill.
-- Sizes are bytes, durations seconds; the core generates the operations and does the I/O.
local bytes = require "brim.bytes"
local core = require "brim.core"
local device = require "brim.device"
local dist = require "brim.dist"
local engine = require "brim.engine"
local errors = require "brim.error"
local opts = require "brim.opts"
local result = require "brim.workload.result"
local run = require "brim.run"
local sampler = require "brim.workload.sampler"

local M = {}

---Reads and writes on a range of a device.
---@class brim.BlockWorkload
local BlockWorkload = {}
BlockWorkload.__index = BlockWorkload
BlockWorkload.__name = "brim.block_workload"

local PATTERNS <const> = { "sequential", "random", "permutation", "strided", "zipf" }

---@class brim.WorkloadOpts
---@field pattern? "sequential"|"random"|"permutation"|"strided"|"zipf" default "random": uniform,
--- blocks may come again; "permutation": each place once a pass
---@field theta? number of "zipf": the place of rank k comes as often as 1 / k^theta; default 0.9
---@field clustered? boolean of "zipf": places in the order of their ranks, not scattered
---@field stride_bytes? integer|string of "strided"
---@field block_bytes? integer|string unit of offsets and content, default 4 KiB
---@field io_bytes? integer|string|table size of I/Os, or a brim.dist; default one block
---@field offset_bytes? integer|string where the range begins, default 0
---@field size_bytes? integer|string the range's length, default to the device's end
---@field reads? number part of the operations that read, 0 to 1; default 0
---@field total_bytes? integer|string how much, by whichever comes first; default one pass
---@field operations? integer
---@field passes? integer so many times the range's bytes
---@field seconds? number begin nothing after that time
---@field may_overlap? boolean writes to the same block may be in flight at once; then a
--- verification cannot tell stale blocks
---@field seed? integer default 1

local SCHEMA = {
  pattern = { type = "enum", values = PATTERNS, default = "random", doc = "order of places" },
  theta = { type = "number", default = 0.9, min = 0.001, max = 10, doc = "exponent of zipf" },
  clustered = { type = "bool", default = false, doc = "zipf: places in the order of ranks" },
  stride_bytes = { type = "bytes", default = 1 << 20, doc = "of strided" },
  block_bytes = { type = "bytes", default = 4096, min = 512, max = 1 << 20,
    doc = "unit of offsets and content" },
  io_bytes = { type = "any", check = dist.check, doc = "size of I/Os, or a distribution" },
  offset_bytes = { type = "bytes", default = 0, doc = "where the range begins" },
  size_bytes = { type = "bytes", min = 512, doc = "its length; default to the device's end" },
  reads = { type = "number", default = 0, min = 0, max = 1, doc = "part of operations that read" },
  total_bytes = { type = "bytes", min = 1, doc = "how much to read and write" },
  operations = { type = "int", min = 1, doc = "how many" },
  passes = { type = "int", min = 1, max = 0xffffffff, doc = "times the range's bytes" },
  seconds = { type = "number", min = 0.001, max = 1e9, doc = "begin nothing after that time" },
  may_overlap = { type = "bool", default = false, doc = "no order among writes to one block" },
  seed = { type = "int", default = 1, doc = "what all of it follows from" },
}

-- The core's workload on a range of so many bytes.
local function handle_of(self, size_bytes)
  local o = self.options
  local passes = o.passes
  if o.seconds and not passes and not o.total_bytes and not o.operations then
    passes = 0xffffffff
  end
  return core.workload_new {
    seed = o.seed, pattern = o.pattern, theta = o.theta, stride_bytes = o.stride_bytes,
    block_bytes = o.block_bytes, sizes = self.sizes, off_bytes = o.offset_bytes,
    size_bytes = size_bytes, read_ppm = math.floor(o.reads * 1e6 + 0.5),
    is_clustered = o.clustered, may_overlap = o.may_overlap, total_bytes = o.total_bytes,
    operations = o.operations, passes = passes,
  }
end

-- On a device: its range's size is known then.
local function handle_on(self, target)
  local o = self.options
  local size_bytes = o.size_bytes or target:info().size_bytes - o.offset_bytes
  if size_bytes < o.block_bytes then
    return nil, errors.new { code = "ERANGE", errno = 34, op = "workload",
      path = target:info().path,
      message = ("%s holds no block of %s from offset %d on"):format(target:info().path,
        bytes.format(o.block_bytes), o.offset_bytes) }
  end
  return handle_of(self, size_bytes)
end

---Describe a workload; `brim.workload { ... }` is the same. Nothing is read or written yet.
---@param o? brim.WorkloadOpts
---@return brim.BlockWorkload
function M.new(o)
  o = opts.check(o, SCHEMA, "brim.workload")
  local sizes = o.io_bytes and dist.check(o.io_bytes)
  local self = setmetatable({ options = o, sizes = sizes }, BlockWorkload)
  if o.size_bytes then
    local handle, err = handle_of(self, o.size_bytes)
    if not handle then
      error("brim.workload: " .. err.message, 2)
    end
  end
  return self
end

local WORDS <const> = {
  sequential = "in order",
  random = "at random, uniform, blocks may come again",
  permutation = "at random, each place once a pass",
}

local function explain_pattern(o)
  if o.pattern == "strided" then
    return ("each %s, then the gaps between"):format(bytes.format(o.stride_bytes))
  elseif o.pattern == "zipf" then
    return ("by Zipf's law, theta %g, %s"):format(o.theta,
      o.clustered and "the first places the hottest" or "hot places scattered over the range")
  end
  return WORDS[o.pattern]
end

local function explain_end(o)
  local ends = {}
  ends[#ends + 1] = o.total_bytes and bytes.format(o.total_bytes)
  ends[#ends + 1] = o.operations and ("%d operations"):format(o.operations)
  ends[#ends + 1] = o.passes and ("%d passes over the range"):format(o.passes)
  ends[#ends + 1] = o.seconds and ("%g s"):format(o.seconds)
  return #ends == 0 and "one pass over the range" or table.concat(ends, " or ")
end

local function explain_kinds(o)
  if o.reads == 0 then
    return "writes"
  elseif o.reads == 1 then
    return "reads"
  end
  return ("%g %% reads, %g %% writes"):format(100 * o.reads, 100 * (1 - o.reads))
end

local function explain_size(self)
  local d = self.sizes
  if d and d.kind ~= "fixed" then
    return tostring(d)
  end
  return bytes.format(d and d.min_bytes or self.options.block_bytes)
end

---Say in words what it does; tostring gives the same.
---@return string
function BlockWorkload:explain()
  local o = self.options
  local range = o.size_bytes and bytes.format(o.size_bytes) or "the device's end"
  return ("block workload, seed %d\n  %s of %s, %s\n  range: from %s, %s\n  until: %s\n"
    .. "  content: blocks of %s that name their offset, seed and operation%s\n"):format(o.seed,
    explain_kinds(o), explain_size(self), explain_pattern(o), bytes.format(o.offset_bytes),
    o.size_bytes and range .. " long" or "to " .. range, explain_end(o),
    bytes.format(o.block_bytes),
    o.may_overlap and "; writes to one block in any order" or "")
end

BlockWorkload.__tostring = BlockWorkload.explain

---List its first operations: { off_bytes, len_bytes, is_read } each. Needs size_bytes.
---@param n integer
---@return table[]
function BlockWorkload:first(n)
  if not self.options.size_bytes then
    error("brim.workload:first: the workload has no size_bytes", 2)
  end
  return assert(handle_of(self, self.options.size_bytes)):operations(n)
end

-- -------------------------------------------------------------------------- running

-- With what every run takes.
local function with_engine(schema)
  for _, from in ipairs { engine.SCHEMA, run.SCHEMA } do
    for name, spec in pairs(from) do
      schema[name] = spec
    end
  end
  return schema
end

local RUN_SCHEMA = with_engine {
  first = { type = "int", default = 0, min = 0, doc = "operation to go on with" },
  bins = { type = "int", default = 64, min = 1, max = 1 << 20, doc = "parts of the range" },
  force = { type = "bool", doc = "accept a target that carries a filesystem" },
  direct = { type = "bool", doc = "past the page cache for regular files too" },
  timeline = { type = "path", doc = "file to write samples to" },
  sample = { type = "function", doc = "called with each sample" },
  sample_interval_s = { type = "number", default = 1, min = 0.01, doc = "between samples" },
}

local OWN <const> = { force = true, direct = true, timeline = true, sample = true,
  sample_interval_s = true, progress = true, progress_interval_s = true }

local function core_options(o)
  local out = {}
  for name, v in pairs(o) do
    out[name] = not OWN[name] and v or nil
  end
  return out
end

-- Calls f with the open target; a path is opened for it.
local function with_target(target, o, f)
  if type(target) ~= "string" then
    return f(target)
  end
  local opened <close>, err = device.open(target, o)
  if not opened then
    return nil, err
  end
  return f(opened)
end

local function run_on(self, target, o)
  local handle, err = handle_on(self, target)
  if not handle then
    return nil, errors.refused(err)
  end
  local given = core_options(o)
  given.limit_ns = self.options.seconds and math.floor(self.options.seconds * 1e9) or nil
  local going <close>, failed = core.workload_open(handle, target, given)
  if not going then
    return nil, errors.refused(failed)
  end
  local samples, why = sampler.new(going, self, o)
  if not samples then
    return nil, why
  end
  local r, wrong = run.drive(going, { progress = o.progress,
    progress_interval_s = o.progress_interval_s }, samples.step)
  local ok, reason = samples.finish(r)
  if not r or not ok then
    return nil, wrong or reason
  end
  return result.of_run(r, going:workload_stats(true))
end

---Run it on a device or file, or a path, which is opened with all checks of brim.device.open. What
---was on the range is overwritten. `done` and `begun` of the result are operations; `bins` says how
---each part of the range did. `sample` is called with { t_s, off_bytes, bytes_per_s, iops, and
---latencies } each sample_interval_s; `timeline` writes them to a file.
---@param target string|brim.Device
---@param o? table first, bins, force, direct, timeline, sample, sample_interval_s, engine,
---queue_depth, max_io_bytes, threads, progress
---@return brim.WorkloadResult? result
---@return brim.Error? err
function BlockWorkload:run(target, o)
  o = opts.check(o, RUN_SCHEMA, "workload:run")
  return with_target(target, { write = self.options.reads < 1, force = o.force,
    direct = o.direct, direct_align_bytes = self.options.block_bytes }, function(opened)
    return run_on(self, opened, o)
  end)
end

local VERIFY_SCHEMA = with_engine {
  max_mismatches = { type = "int", min = 1, max = 1 << 20, doc = "kept of each kind (16)" },
  result = { type = "table", doc = "of the run; for what was cut off or limited by time" },
  direct = { type = "bool", doc = "past the page cache for regular files too" },
}

---Read back what it wrote and tell blocks apart: right, missing (never written), stale, newer,
---misplaced, corrupt; unjudged ones were being written when the run ended. A run that ended early
---needs its `result`. It never writes.
---@param target string|brim.Device
---@param o? table result, direct, engine, queue_depth, max_io_bytes, threads, max_mismatches,
---progress
---@return brim.WorkloadVerdict? verdict `ok` is true where nothing is wrong
---@return brim.Error? err
function BlockWorkload:verify(target, o)
  o = opts.check(o, VERIFY_SCHEMA, "workload:verify")
  local ran = o.result
  if not ran and self.options.seconds then
    error("workload:verify: what a workload of so many seconds did is in its result", 2)
  end
  return with_target(target, { direct = o.direct }, function(opened)
    local handle, err = handle_on(self, opened)
    if not handle then
      return nil, errors.refused(err)
    end
    local given = core_options(o)
    given.result, given.done, given.begun = nil, ran and ran.done, ran and ran.begun
    local going <close>, failed = core.workload_verify(handle, opened, given)
    if not going then
      return nil, errors.refused(failed)
    end
    local r, wrong = run.drive(going, { progress = o.progress,
      progress_interval_s = o.progress_interval_s })
    if not r then
      return nil, wrong
    end
    return result.of_verify(r, going:workload_found())
  end)
end

-- brim.workload { ... } is brim.workload.new { ... }.
return setmetatable(M, {
  __call = function(_, o)
    return M.new(o)
  end,
})
