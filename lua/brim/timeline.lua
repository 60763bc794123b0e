-- brim.timeline: what a measurement recorded: JSON lines, one a header, sample, phase, mark, event
-- or result, each flushed as it is written, so that a crash costs at most the line it tore. Called
-- by brim.fill and scripts (writing), report and plot (reading). Times are seconds since the start,
-- fullness is 0..1, sizes are bytes.
local columns = require "brim.timeline.columns"
local core = require "brim.core"
local errors = require "brim.error"
local json = require "brim.json"
local opts = require "brim.opts"
local provenance = require "brim.timeline.provenance"
local reader = require "brim.timeline.reader"
local resample = require "brim.timeline.resample"

local M = {}
local Timeline = {}
Timeline.__index = Timeline
Timeline.__name = "brim.timeline"

---The columns that brim itself writes: name = { unit, doc }.
M.COLUMNS = columns.STANDARD

local FORMAT <const>, VERSION <const> = reader.FORMAT, reader.VERSION

---@class brim.TimelineOpts
---@field target? string path that is measured: its filesystem and device go into the header
---@field title? string a name for this run, for reports
---@field seed? integer
---@field options? table whatever the run was told
---@field columns? table<string, { unit: string, doc: string }> further columns

local SCHEMA = {
  target = { type = "path", doc = "what is measured" },
  title = { type = "string", doc = "a name for this run" },
  seed = { type = "int", doc = "of the workload" },
  options = { type = "table", doc = "what the run was told" },
  columns = { type = "table", doc = "further columns: name = { unit, doc }" },
}

-- lua_file errors carry errno; these are the ones that a full or read-only disk gives.
local CODES <const> = { [2] = "ENOENT", [5] = "EIO", [13] = "EACCES", [20] = "ENOTDIR",
  [21] = "EISDIR", [28] = "ENOSPC", [30] = "EROFS", [122] = "EDQUOT" }

local function failed(op, path, why, errno)
  return errors.new { code = CODES[errno] or "EIO", errno = errno, op = op, path = path,
    message = why or path }
end

local function open(path, how)
  local file, why, errno = io.open(path, how)
  if not file then
    return nil, errors.refused(failed("open", path, why, errno))
  end
  -- With a buffer larger than any line, a line and its flush are one write.
  file:setvbuf("full", 1 << 16)
  return setmetatable({ path = path, file = file, started_s = core.monotonic_s() }, Timeline)
end

local function put(self, record)
  if not self.file then
    error("timeline is closed", 3)
  end
  local ok, why, errno = self.file:write(json.encode(record), "\n")
  if ok then
    ok, why, errno = self.file:flush()
  end
  if not ok then
    return nil, failed("write", self.path, why, errno)
  end
  return true
end

-- The caller's fields with what every line has; its table stays as it was.
local function line_of(self, kind, fields)
  local record = {}
  for k, v in pairs(fields or {}) do
    record[k] = v
  end
  record.type = kind
  record.t_s = record.t_s or self:now()
  return record
end

---Begin a timeline: writes the header, with where the measurement is made.
---@param path string the file; what was there is replaced
---@param o? brim.TimelineOpts
---@return brim.Timeline? timeline
---@return brim.Error? err
function M.create(path, o)
  o = opts.check(o, SCHEMA, "brim.timeline.create")
  local header, err = provenance.gather(o.target)
  if not header then
    return nil, err
  end
  header.type, header.format, header.version = "header", FORMAT, VERSION
  header.title, header.seed, header.options = o.title, o.seed, o.options
  header.started = os.date "!%Y-%m-%dT%H:%M:%SZ"
  header.columns = json.object(columns.with(o.columns))
  local self, why = open(path, "wb")
  if not self then
    return nil, why
  end
  local ok, reason = put(self, header)
  if not ok then
    self:close()
    return nil, reason
  end
  self.header = header
  return self
end

---Go on with a timeline whose writer ended, crashed or not: time goes on where it stopped, and an
---event of kind "resumed" says so.
---@param path string
---@return brim.Timeline? timeline
---@return brim.Error? err
function M.append(path)
  local run, err = reader.read(path)
  if not run then
    return nil, err
  end
  local self, why = open(path, "ab")
  if not self then
    return nil, why
  end
  self.header, self.started_s = run.header, self.started_s - run.last_s
  local last = run.phases[#run.phases]
  self.current = last and last.name
  local ok, reason = true, nil
  if run.is_torn then
    ok, reason = self.file:write "\n"
  end
  if ok then
    ok, reason = self:event { kind = "resumed" }
  end
  if not ok then
    self:close()
    return nil, errors.is(reason) and reason or failed("write", path, reason)
  end
  return self
end

---Read a timeline. A torn last line is left out and told by `is_torn`.
---@param path string
---@return brim.TimelineData? run
---@return brim.Error? err
function M.read(path)
  return reader.read(path)
end

---Give speed and latency by synced fullness, in bins. Empty bins are left out.
---@param run brim.TimelineData
---@param o? { bin?: number, kinds?: string[] } bin: its width, default 0.01; kinds: of phases that
---count, default fills, or everything where there is no fill
---@return brim.FullnessBin[]
function M.by_fullness(run, o)
  return resample.by_fullness(run, o)
end

---Give the samples in at most so many points: rates as means over time, latencies the largest, the
---rest as it was last.
---@param run brim.TimelineData
---@param points integer
---@return table[]
function M.by_time(run, points)
  return resample.by_time(run, points)
end

---Write the samples of runs as CSV: the run's name, the phase, then every column.
---@param path string
---@param runs brim.TimelineData[]
---@return integer? rows
---@return brim.Error? err
function M.csv(path, runs)
  local file, why, errno = io.open(path, "wb")
  if not file then
    return nil, errors.refused(failed("open", path, why, errno))
  end
  local rows, reason, code = resample.csv(runs, file)
  local ok, last, last_code = file:close()
  if not rows or not ok then
    return nil, failed("write", path, reason or last, code or last_code)
  end
  return rows
end

---Gather where a measurement is made: host, kernel, and of a path filesystem, mount and device.
---@param path? string
---@return table? fields
---@return brim.Error? err
function M.provenance(path)
  return provenance.gather(path)
end

---Seconds since the timeline began; a resumed one goes on where the first ended.
---@return number
function Timeline:now()
  return core.monotonic_s() - self.started_s
end

---Write a sample. `t_s` and `phase` are filled in where they are missing.
---@param fields table columns and their values
---@return true? ok
---@return brim.Error? err
function Timeline:sample(fields)
  local record = line_of(self, "sample", fields)
  record.phase = record.phase or self.current
  return put(self, record)
end

---Tell that a phase begins; the samples from now on belong to it.
---@param name string for people: "fill to 80 %"
---@param kind string "fill", "churn", "idle", "sync", ...
---@param fields? table whatever else is known
---@return true? ok
---@return brim.Error? err
function Timeline:phase(name, kind, fields)
  local record = line_of(self, "phase", fields)
  record.name, record.kind = name, kind
  self.current = name
  return put(self, record)
end

---Mark a moment.
---@param name string
---@param fields? table
---@return true? ok
---@return brim.Error? err
function Timeline:mark(name, fields)
  local record = line_of(self, "mark", fields)
  record.name = name
  return put(self, record)
end

---Write an event: `kind` ("stall", "collapse", "refused", "error", ...), and what is known of op,
---path, code, message. The phase is filled in.
---@param fields table
---@return true? ok
---@return brim.Error? err
function Timeline:event(fields)
  local record = line_of(self, "event", fields)
  record.kind = record.kind or "event"
  record.phase = record.phase or self.current
  return put(self, record)
end

---Write the result, the last line of a timeline.
---@param fields table
---@return true? ok
---@return brim.Error? err
function Timeline:result(fields)
  return put(self, line_of(self, "result", fields))
end

---Close the file; any number of times.
function Timeline:close()
  if self.file then
    self.file:close()
    self.file = nil
  end
end

Timeline.__close = Timeline.close
Timeline.__gc = Timeline.close

function Timeline:__tostring()
  return ("brim.timeline %s%s"):format(self.path, self.file and "" or " (closed)")
end

return M
