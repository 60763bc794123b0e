-- brim.fill.session: one run of a fill on a path: the core's handle, the log, the timeline; grants
-- that are logged before they are used, checkpoints after what was done is stable. Called by the
-- phases. Lua runs between steps only. Sizes are bytes, durations seconds.
local core = require "brim.core"
local dist = require "brim.dist"
local json = require "brim.json"
local log = require "brim.fill.log"
local process = require "brim.process"
local record = require "brim.fill.record"

local M = {}
M.__index = M

local STEP_S <const> = 0.1
local SETTLE_S <const>, SETTLE_TRIES <const>, LATE_TRIES <const> = 0.008, 25, 40
-- Beyond operations that a grant's bytes should take: sizes vary, and directories are made.
local SPARE_OPS <const> = 200
local FIRST_GRANT_BYTES <const>, LEAST_GRANT_BYTES <const> = 64 << 20, 4 << 20
-- What stops a stream without being an error.
local REFUSALS <const> = { ENOSPC = true, EDQUOT = true, EFBIG = true, ECANCELED = true }

---@class brim.FillSession
---@field path string
---@field handle brim.FillHandle
---@field log brim.FillLog
---@field record table the timeline
---@field streams integer
---@field mean_bytes number of a file
---@field usage table the last synchronised usage
---@field stopped? string why the run ended early
---@field is_filling? boolean towards a level, not churning

-- XFS keeps space behind the ends of files, and deleted files' space until a worker comes: both
-- count as used until nothing else is left. Root may ask for them (xfs_spaceman(8), prealloc), as a
-- fill does, so that its fullness never goes backwards; what churns is left as it would be.
local function give_back(path, usage)
  if usage.type == "xfs" then
    process.run("xfs_spaceman", "-c", "prealloc -s", path)
  end
end

---Open what a run needs. `o.replay` is a log that was read: then nothing is created.
---@param path string
---@param o { fileset: table, run: table, header: table, log: brim.FillLog }
---@return brim.FillSession? session
---@return brim.Error? err
function M.open(path, o)
  local fileset, err = core.fileset_new(o.fileset)
  if not fileset then
    return nil, err
  end
  local run = o.run
  local handle, why = core.fill_open(fileset, path, { mode = run.mode,
    queue_depth = run.queue_depth, direct = run.direct, fsync = run.fsync,
    trace_path = run.trace_path, trace_format = run.trace_path and run.trace_format or nil })
  if not handle then
    return nil, why
  end
  -- The log was just written.
  core.usage_sync(path)
  local usage, reason = core.usage(path)
  if usage then
    give_back(path, usage)
    usage, reason = core.usage(path)
  end
  if not usage then
    handle:close()
    return nil, reason
  end
  local self = setmetatable({ path = path, fileset = fileset, handle = handle, log = o.log,
    run = run, streams = fileset:streams(),
    mean_bytes = math.max(dist.mean(o.fileset.sizes), 1),
    largest_bytes = dist.largest(o.fileset.sizes), usage = usage, first_usage = usage,
    last_phase = {}, used_per_byte = 1, refused = 0, failed = 0, failures = {}, wrote = 0 }, M)
  self.record, err = record.open(self, o.header)
  if not self.record then
    handle:close()
    return nil, err
  end
  return self
end

---How many bytes are in use.
---@param usage? table default: the last synchronised one
---@return integer used_bytes
function M:used(usage)
  usage = usage or self.usage
  return usage.size_bytes - usage.free_bytes
end

---How full it is.
---@param usage? table default: the last synchronised one
---@return number fullness 0 to 1
function M:fullness(usage)
  usage = usage or self.usage
  return self:used(usage) / math.max(usage.size_bytes, 1)
end

---The operations that each stream has done, stream 0's first.
---@return integer[]
function M:done()
  local list = {}
  for k = 1, self.streams do
    list[k] = self.handle:done(k - 1)
  end
  return list
end

---The operations that all streams together have done.
---@return integer
function M:ops()
  local n = 0
  for _, done in ipairs(self:done()) do
    n = n + done
  end
  return n
end

local function must(...)
  local ok, err = ...
  if not ok then
    error(err, 0)
  end
  return ...
end

---Set what streams do from now on, and log it.
---@param phase brim.FillPhase
function M:phase(phase)
  local last, same = self.last_phase, true
  for _, t in ipairs { phase, last } do
    for k in pairs(t) do
      same = same and phase[k] == last[k]
    end
  end
  if same and next(phase) then
    return
  end
  must(self.log:add { type = "phase", done = self:done(), phase = json.object(phase) })
  must(self.handle:phase(phase))
  self.last_phase = phase
end

---Take what was refused: into the log and the timeline; the result counts all of it.
---@return boolean any
function M:take_failures()
  local any = false
  for x in function() return self.handle:failure() end do
    any = true
    if x.code ~= "ECANCELED" then
      local is_refusal = REFUSALS[x.code]
      self.refused = self.refused + (is_refusal and 1 or 0)
      self.failed = self.failed + (is_refusal and 0 or 1)
      self.last_code = x.code
      self.record:failure(x, is_refusal, self.fileset:path(x.stream, x.id))
    end
    must(self.log:add { type = "failure", stream = x.stream, index = x.index, kind = x.kind,
      id = x.id, call = x.call, code = x.code, errno = x.errno, stands = x.stands,
      told_index = x.told_index })
  end
  return any
end

---Look around between steps: samples, stalls, the caller's wish.
---@param stats table
function M:look(stats)
  self.record:tick(stats)
  local now_s = core.monotonic_s()
  if core.interrupted() then
    self.stopped = "interrupted"
  elseif self.run.progress and now_s - (self.told_s or 0) >= self.run.progress_interval_s then
    self.told_s = now_s
    if self.run.progress(self.record:progress(stats)) == false then
      self.stopped = "cancelled"
    end
  end
end

---Let the streams work: so many operations and bytes each, until a time.
---@param ops integer each stream
---@param bytes? integer each stream
---@param until_s? number on the monotonic clock
---@return boolean refused did the world refuse something?
---@return integer written_bytes
function M:grant(ops, bytes, until_s)
  local before, begun_s = self.wrote, core.monotonic_s()
  must(self.log:add { type = "grant", done = self:done(), ops = ops, bytes = bytes })
  must(self.handle:grant(ops, bytes))
  local more, asked = true, false
  while more do
    local left_s = until_s and math.max(until_s - core.monotonic_s(), 0.001) or STEP_S
    local stats
    more, stats = self.handle:step(math.min(STEP_S, left_s, self.record:due_s()))
    if more == nil then
      error(stats, 0)
    end
    self.stats, self.wrote = stats, stats.written_bytes
    self:look(stats)
    if not asked and (self.stopped or until_s and core.monotonic_s() >= until_s) then
      asked = true
      self.handle:stop()
    end
  end
  local refused = self:take_failures()
  must(self.log:add { type = "stop", done = self:done() })
  self.grant_s = core.monotonic_s() - begun_s
  return refused, self.wrote - before
end

-- What is in use once it stands still: some filesystems free deleted files' space a moment later,
-- XFS in a worker that a busy machine keeps waiting. So less free than the files account for is
-- believed later than what they account for.
local function settled_usage(path, least_free)
  local usage = must(core.usage(path))
  for try = 1, LATE_TRIES do
    core.sleep(SETTLE_S)
    local again = must(core.usage(path))
    local is_same = again.free_bytes == usage.free_bytes
    usage = again
    if usage.free_bytes >= least_free and (is_same or try >= SETTLE_TRIES) then
      break
    end
  end
  return usage
end

-- What should be free at least after the sum of files' sizes changed; a thousandth is left for what
-- the filesystem itself needs.
local function expected_free(self)
  local grown = (self.stats and self.stats.live_bytes or 0) - (self.synced_live or 0)
  local per_byte = grown > 0 and math.max(self.used_per_byte, 1)
    or 0.9 * math.min(self.used_per_byte, 1)
  return self.usage.free_bytes - math.floor(grown * per_byte) - self.usage.size_bytes // 1000
end

---Make stable what was done, and measure. Where nothing was done since the last time that holds.
---@param elapsed_s? number of the phase, for resuming it
---@param is_forced? boolean something else was written
---@return table usage
function M:checkpoint(elapsed_s, is_forced)
  local ops = self:ops()
  if ops == self.synced_ops and not is_forced then
    return self.usage
  end
  self.synced_ops = ops
  local begun_s = core.monotonic_s()
  local used, wrote, live = self:used(), self.synced_wrote or 0, self.synced_live or 0
  local ok, err = core.usage_sync(self.path)
  local sync_s = core.monotonic_s() - begun_s
  if ok then
    must(self.log:add { type = "checkpoint", done = self:done(), elapsed_s = elapsed_s })
  else
    self.failed = self.failed + 1
    self.record:event { kind = "error", op = "sync", path = self.path, code = err.code,
      message = tostring(err) }
    -- What was written is lost, and nobody can say which part of it.
    self.stopped = self.stopped or err.code
  end
  if self.is_filling then
    give_back(self.path, self.usage)
  end
  self.usage = settled_usage(self.path, expected_free(self))
  local written = self.wrote - wrote
  self.synced_wrote, self.synced_live = self.wrote, self.stats and self.stats.live_bytes or 0
  self:learn(self:used() - used, self.synced_live - live, written)
  local took_s = core.monotonic_s() - begun_s + (self.grant_s or 0)
  if written > 0 and took_s > 0.01 then
    self.rate = written / took_s / self.streams
  end
  self.grant_s = 0
  self.record:synced(self.usage, sync_s)
  return self.usage
end

---Learn what a byte of files takes, from what was only created: blocks, metadata, compression.
---@param used_bytes integer
---@param live_bytes integer
---@param written_bytes integer
function M:learn(used_bytes, live_bytes, written_bytes)
  if written_bytes == live_bytes and written_bytes > 1 << 20 and used_bytes > 0 then
    self.used_per_byte = math.min(math.max(used_bytes / written_bytes, 0.02), 200)
  end
end

---What to grant each stream in bytes: what is wanted, but no more than it can do until the next
---checkpoint.
---@param want_bytes number
---@return integer bytes
function M:grant_bytes(want_bytes)
  local most = self.rate and math.max(self.rate * self.run.checkpoint_s, LEAST_GRANT_BYTES)
    or FIRST_GRANT_BYTES
  return math.max(math.floor(math.min(want_bytes, most)), 1)
end

---Operations that so many bytes take, amply.
---@param bytes integer
---@param max_file_bytes? integer
---@return integer ops
function M:ops_for(bytes, max_file_bytes)
  local mean = math.max(math.min(self.mean_bytes, max_file_bytes or math.huge), 1)
  return math.floor(bytes / mean * 2) + SPARE_OPS
end

---Free space that must stay.
---@return integer bytes
function M:margin()
  return self.run.margin or 0
end

---Write the rest of the trace. A trace that is not whole is told in the result and the timeline.
---@param result table trace_lost, text and ok are changed
function M:finish_trace(result)
  local ok, err = self.handle:finish()
  if ok then
    return
  end
  result.trace_lost, result.ok = tostring(err), false
  result.text = ("%s\nthe trace is not whole: %s"):format(result.text or "", err)
  self.record:event { kind = "error", op = "trace", path = self.run.trace_path, code = err.code,
    message = tostring(err) }
end

---End it: waits for what is in flight.
function M:close()
  self.handle:close()
  self.log:close()
  self.record:close()
end

M.LOG_DIR = log.DIR

return M
