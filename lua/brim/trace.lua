-- brim.trace: traces of I/O: what was done when, one operation a line. Reads fio's iolog (versions
-- 2 and 3), brim's own JSON lines, blkparse's text and the CSV files of MSR Cambridge, Alibaba and
-- Tencent; tells what one consists of, writes it in another format, replays it on a device or below
-- a directory. Lines are read in C, as a stream. Sizes are bytes, durations seconds.
local core = require "brim.core"
local device = require "brim.device"
local engine = require "brim.engine"
local errors = require "brim.error"
local opts = require "brim.opts"
local run = require "brim.run"
local summary = require "brim.trace.summary"

local M = {}

---A trace file.
---@class brim.Trace
---@field path string
---@field format string
local Trace = {}
Trace.__index = Trace
Trace.__name = "brim.trace"

---The formats that are read.
M.FORMATS = { "auto", "iolog2", "iolog3", "jsonl", "blkparse", "msr", "alibaba", "tencent" }
---The formats that are written. Only jsonl has all operations.
M.WRITTEN = { "iolog2", "iolog3", "jsonl" }

local STEP_S <const> = 0.1

local OPEN_SCHEMA = {
  format = { type = "enum", values = M.FORMATS, default = "auto", doc = "of the lines" },
  blkparse_action = { type = "string", default = "Q", doc = "the lines of blkparse that count",
    check = function(v)
      return #v == 1, "it is one letter, as Q, D or C"
    end },
}

local function handle_of(self)
  local handle, err = core.trace_open(self.path, self.format, self.action)
  if not handle then
    return nil, errors.refused(err)
  end
  return handle
end

---Open a trace: finds out its format by the first line.
---@param path string
---@param o? { format?: string, blkparse_action?: string }
---@return brim.Trace? trace
---@return brim.Error? err
function M.open(path, o)
  o = opts.check(o, OPEN_SCHEMA, "brim.trace.open")
  local self = setmetatable({ path = path, format = o.format, action = o.blkparse_action }, Trace)
  local handle <close>, err = handle_of(self)
  if not handle then
    return nil, err
  end
  self.format = handle:format()
  return self
end

function Trace:__tostring()
  return ("brim.trace %s (%s)"):format(self.path, self.format)
end

-- Goes through all of it; copies too. True, "cancelled", or nil and the error.
local function go_through(handle, o, copy)
  repeat
    local more, err = handle:step(STEP_S, copy)
    if more == nil then
      return nil, err
    elseif core.interrupted() or more and o.progress
      and o.progress { phase = "reading", groups_done = handle:info().events,
        groups_total = 0 } == false then
      return "cancelled"
    end
  until not more
  return true
end

---Read all of it and tell what it consists of: events, and of each operation count and bytes; the
---span of offsets, sizes of reads and writes by powers of two, seconds. print(info) draws it.
---@param o? { progress?: fun(p: table): boolean? }
---@return brim.TraceInfo? info
---@return brim.Error? err a wrong line, with its number
function Trace:info(o)
  o = opts.check(o, { progress = run.SCHEMA.progress }, "trace:info")
  local handle <close>, err = handle_of(self)
  if not handle then
    return nil, err
  end
  local ok, why = go_through(handle, o)
  if not ok then
    return nil, why
  end
  return summary.of_info(self.path, handle:info(), ok)
end

local COPY_SCHEMA = {
  format = { type = "enum", values = M.WRITTEN, default = "iolog3", doc = "to write" },
  path = { type = "string", doc = "file of operations that name none (device)" },
  progress = run.SCHEMA.progress,
}

---Write it in another format. What that has no word for (fio knows no unlink, rename, truncate or
---mkdir) is left out and counted: `omitted`.
---@param out string the file to write; not the trace itself
---@param o? { format?: "iolog2"|"iolog3"|"jsonl", path?: string, progress?: function }
---@return brim.TraceInfo? info
---@return brim.Error? err
function Trace:convert(out, o)
  o = opts.check(o, COPY_SCHEMA, "trace:convert")
  local handle <close>, err = handle_of(self)
  if not handle then
    return nil, err
  end
  local copy <close>, refused = core.trace_copy(handle, out, o.format, o.path)
  if not copy then
    return nil, errors.refused(refused)
  end
  local ok, why = go_through(handle, o, copy)
  if not ok then
    return nil, why
  end
  local omitted, failed = copy:close()
  if not omitted then
    return nil, failed
  end
  local info = summary.of_info(self.path, handle:info(), ok)
  info.omitted, info.written = omitted, o.format
  return info
end

-- ------------------------------------------------------------------------ replaying

local REPLAY_SCHEMA = {
  speed = { type = "number", default = 0, min = 0, max = 1e9,
    doc = "times as fast as recorded; 0: as fast as possible" },
  wrap = { type = "bool", default = false, doc = "what lies past the end begins again at 0" },
  stream = { type = "int", min = 0, max = 0xffffffff, doc = "only this stream (thread, volume)" },
  path = { type = "string", doc = "only this file's operations" },
  strip = { type = "string", doc = "what paths begin with that is not below the root" },
  seed = { type = "int", default = 1, doc = "of what is written" },
  force = { type = "bool", doc = "accept a target that carries a filesystem" },
  direct = { type = "bool", doc = "past the page cache for regular files too" },
}
for _, from in ipairs { engine.SCHEMA, run.SCHEMA } do
  for name, spec in pairs(from) do
    REPLAY_SCHEMA[name] = spec
  end
end

local function core_options(o, is_device)
  local out = { speed = o.speed, seed = o.seed, stream = o.stream, path = o.path, strip = o.strip,
    is_wrapped = o.wrap }
  for _, name in ipairs(is_device and engine.NAMES or {}) do
    out[name] = o[name]
  end
  return out
end

local function replay_on(self, target, o)
  local handle <close>, err = handle_of(self)
  if not handle then
    return nil, err
  end
  local going <close>, refused = core.replay_open(handle, target, core_options(o, true))
  if not going then
    return nil, errors.refused(refused)
  end
  local r, failed = run.drive(going, { progress = o.progress,
    progress_interval_s = o.progress_interval_s })
  if not r then
    return nil, failed
  end
  return summary.of_replay(going:replay_stats(), r.stopped, r)
end

local function replay_below(self, root, o)
  local handle <close>, err = handle_of(self)
  if not handle then
    return nil, err
  end
  local going <close>, refused = core.replay_files(handle, root, core_options(o))
  if not going then
    return nil, errors.refused(refused)
  end
  local more, stats, stopped
  repeat
    more, stats = going:step(STEP_S)
    if more == nil then
      return nil, stats
    elseif more and (core.interrupted() or o.progress and o.progress { phase = "replay",
        groups_done = stats.events, groups_total = 0,
        elapsed_ns = stats.elapsed_ns } == false) then
      stopped = "cancelled"
    end
  until not more or stopped
  return summary.of_replay(stats, stopped)
end

-- Lua cannot ask; a name within the path must be missing (2) or no directory (20) where it is none.
local function is_directory(path)
  local _, _, errno = os.rename(path .. "/.", path .. "/.")
  return errno ~= 2 and errno ~= 20
end

---Replay it: block I/O on a device or file (a path is opened with all checks of brim.device.open),
---file operations below a directory, out of which no path leads. As fast as possible, or with
---`speed` at the recorded times.
---@param target string|brim.Device
---@param o? table speed, wrap, stream, path, strip, seed, force, direct, engine, queue_depth,
---max_io_bytes, threads, progress
---@return brim.ReplayResult? result
---@return brim.Error? err
function Trace:replay(target, o)
  o = opts.check(o, REPLAY_SCHEMA, "trace:replay")
  if type(target) ~= "string" then
    return replay_on(self, target, o)
  elseif is_directory(target) then
    return replay_below(self, target, o)
  end
  local opened <close>, err = device.open(target, { write = true, force = o.force,
    direct = o.direct })
  if not opened then
    return nil, err
  end
  return replay_on(self, opened, o)
end

return M
