-- brim.fill.record: what a run tells: samples, phases, events and the result, for the timeline, for
-- progress and for the result's table. Called by brim.fill.session. Durations are seconds,
-- fullness 0 to 1, sizes bytes.
local core = require "brim.core"
local detect = require "brim.detect"
local probe = require "brim.probe"
local timeline = require "brim.timeline"

local M = {}
M.__index = M

local OPS <const> = { "create", "overwrite", "append", "truncate", "replace", "delete" }
local EVENTS_MAX <const> = 100 -- of one phase and kind: a full disk refuses thousands
-- Beside those that all timelines have.
local COLUMNS <const> = {
  live_bytes = { unit = "bytes", doc = "sum of the sizes of the files that stand" },
  ops_per_s = { unit = "1/s", doc = "operations since the last sample" },
  in_flight = { unit = "", doc = "operations that were begun and not ended" },
  longest_wait_s = { unit = "s", doc = "how long the slowest of them had waited" },
  refused = { unit = "", doc = "operations that met ENOSPC, EDQUOT or EFBIG so far" },
}

---Begin to record a run.
---@param s brim.FillSession
---@param header table seed and options, for the timeline
---@return table? record
---@return brim.Error? err
function M.open(s, header)
  local self = setmetatable({ s = s, begun_s = core.monotonic_s(),
    probes = probe.new(s.path, s.run.probes), counts = {}, stalls = 0, collapses = 0, events = {},
    synced_fullness = s:fullness(), synced_used = s:used(), sampled_s = core.monotonic_s(),
    samples = 0, before = { written = 0, files = 0, ops = {} },
    detector = detect.new { limit_s = s.run.stall_s } }, M)
  if not s.run.timeline then
    return self
  end
  local columns, err = {}, nil
  for _, more in ipairs { COLUMNS, self.probes.columns } do
    for name, column in pairs(more) do
      columns[name] = column
    end
  end
  if s.run.resume then
    self.timeline, err = timeline.append(s.run.timeline)
  end
  -- Only what is not there is begun anew: another's file stays as it is.
  if not self.timeline and (not err or err.code == "ENOENT") then
    self.timeline, err = timeline.create(s.run.timeline, { target = s.path, seed = header.seed,
      options = header, columns = columns })
  end
  return self.timeline and self, err
end

local function put(self, method, ...)
  if self.timeline then
    local ok, err = self.timeline[method](self.timeline, ...)
    if not ok then
      error(err, 0)
    end
  end
end

---When the next sample is due.
---@return number s from now
function M:due_s()
  return math.max(self.sampled_s + self.s.run.sample_s - core.monotonic_s(), 0.001)
end

local function add_ops(self, t, stats, dt)
  local files = 0
  for _, kind in ipairs(OPS) do
    local n, before = stats.ops[kind], self.before.ops[kind] or 0
    if n > before or before > 0 then
      t[kind .. "_per_s"] = (n - before) / dt
    end
    if n > before then
      t[kind .. "_p50_s"] = stats.p50_ns[kind] / 1e9
      t[kind .. "_p99_s"] = stats.p99_ns[kind] / 1e9
      t[kind .. "_max_s"] = stats.max_ns[kind] / 1e9
    end
    files = files + n
    self.before.ops[kind] = n
  end
  t.ops_per_s = (files - self.before.files) / dt
  self.before.files = files
  t.files_per_s = t.create_per_s or 0
end

local function add_probes(self, t, now_s)
  local values, failed = self.probes:read(now_s)
  for name, v in pairs(values) do
    t[name] = v
  end
  for _, event in ipairs(failed) do
    self:event(event)
  end
end

-- What a detector says, if anything.
local function tell(self, event)
  if not event then
    return
  elseif event.state == "begin" then
    local key = event.kind == "stall" and "stalls" or "collapses"
    self[key] = self[key] + 1
  end
  event.path = event.path or self.s.path
  self:event(event)
end

local function sample(self, stats)
  local s, now_s = self.s, core.monotonic_s()
  local dt = math.max(now_s - self.sampled_s, 1e-6)
  local raw = core.usage(s.path) or s.usage
  local t = { phase = self.phase_name, level = self.level,
    fullness = s:fullness(raw), synced_fullness = self.synced_fullness, used_bytes = s:used(raw),
    synced_used_bytes = self.synced_used, files = stats.live_files, live_bytes = stats.live_bytes,
    written_bytes = stats.written_bytes, in_flight = stats.in_flight,
    longest_wait_s = stats.longest_wait_ns / 1e9, refused = stats.refused,
    bytes_per_s = (stats.written_bytes - self.before.written) / dt }
  add_ops(self, t, stats, dt)
  add_probes(self, t, now_s)
  self.before.written, self.sampled_s = stats.written_bytes, now_s
  self.samples = self.samples + 1
  self.last = t
  put(self, "sample", t)
  tell(self, self.detector.collapse:add(now_s - self.begun_s, t.bytes_per_s))
end

-- Each step, not each sample: a stall may be short.
local function watch(self, stats)
  local done = stats.written_bytes
  for _, n in pairs(stats.ops) do
    done = done + n
  end
  local event = self.detector.stall:add(core.monotonic_s() - self.begun_s, done,
    stats.longest_wait_ns / 1e9)
  if event and event.state == "begin" and stats.longest_wait_ns > 0 then
    event.op = stats.waiting_kind
    event.path = self.s.fileset:path(stats.waiting_stream, stats.waiting_id)
  end
  tell(self, event)
end

---Look at the counters after a step: a sample when it is due, a stall when there is one.
---@param stats table
function M:tick(stats)
  watch(self, stats)
  if core.monotonic_s() - self.sampled_s >= self.s.run.sample_s then
    sample(self, stats)
  end
end

---Take note of a synchronised usage.
---@param usage table
---@param took_s number the sync alone
function M:synced(usage, took_s)
  if took_s >= self.s.run.stall_s then
    tell(self, { kind = "stall", state = "begin", op = "sync", waited_s = took_s,
      message = ("sync took %.1f s"):format(took_s) })
  end
  self.detector.stall:reset()
  self.synced_fullness, self.synced_used = self.s:fullness(usage), self.s:used(usage)
  -- Rates over a moment would be noise.
  if core.monotonic_s() - self.sampled_s >= self.s.run.sample_s / 2 then
    self:flush()
  end
end

---Take a sample now, as at the end of a phase.
function M:flush()
  if self.s.stats then
    sample(self, self.s.stats)
  end
end

---Begin a phase.
---@param name string
---@param kind string
---@param level? number the fullness it is about
function M:phase(name, kind, level)
  self.phase_name, self.level, self.counts = name, level, {}
  self.detector:reset()
  put(self, "phase", name, kind, { level = level })
  if self.samples == 0 and not self.s.run.resume then
    -- Where it began: else what the first sample covers has no place by fullness.
    self.samples = 1
    put(self, "sample", { level = level, fullness = self.synced_fullness, files = 0,
      synced_fullness = self.synced_fullness, used_bytes = self.synced_used,
      synced_used_bytes = self.synced_used, written_bytes = 0 })
  end
end

---Set a mark.
---@param name string
function M:mark(name)
  put(self, "mark", name)
end

---Tell an event.
---@param t table kind, op, path, code, message
function M:event(t)
  local key = t.kind .. (t.code or "")
  self.counts[key] = (self.counts[key] or 0) + 1
  if self.counts[key] > EVENTS_MAX and t.kind ~= "feedback" then
    return
  end
  t.phase, t.t_s = self.phase_name, nil
  put(self, "event", t)
  if t.kind ~= "feedback" and #self.events < EVENTS_MAX then
    self.events[#self.events + 1] = t
  end
end

---Tell a failure: a refusal for lack of space, or an error.
---@param x brim.FillFailure
---@param is_refusal boolean
---@param path string
function M:failure(x, is_refusal, path)
  self:event { kind = is_refusal and "refused" or "error", op = x.kind, call = x.call, path = path,
    code = x.code, message = ("%s of %s: %s: %s"):format(x.kind, path, x.call, x.code) }
end

---What progress callbacks get: the counters, the last sample, the phase.
---@param stats table
---@return table
function M:progress(stats)
  local p = self.told or {}
  self.told = p
  p.phase, p.level, p.fullness = self.phase_name, self.level, self.synced_fullness
  p.written_bytes, p.files = stats.written_bytes, stats.live_files
  p.elapsed_ns = math.floor((core.monotonic_s() - self.begun_s) * 1e9)
  p.sample, p.bytes_done = self.last, stats.written_bytes
  return p
end

---Write the result, the last line.
---@param result table
function M:result(result)
  put(self, "result", result)
end

---End it.
function M:close()
  if self.timeline then
    self.timeline:close()
    self.timeline = nil
  end
end

return M
