-- brim.trace.summary: what a trace consists of and what a replay came to, as tables that print
-- themselves. Called by brim.trace. Sizes are bytes, durations seconds.
local bytes = require "brim.bytes"

local M = {}

---@class brim.TraceInfo
---@field path string
---@field format string
---@field lines integer
---@field events integer
---@field ops table<string, integer> by operation
---@field bytes table<string, integer>
---@field from_bytes integer the lowest offset that was read, written or trimmed
---@field to_bytes integer and one past the highest
---@field seconds number until the latest event
---@field read_sizes table<integer, integer> how many of that size, up to twice it
---@field write_sizes table<integer, integer>
---@field omitted? integer operations that the written format has no word for
---@field stopped? string

---@class brim.ReplayResult
---@field events integer of the trace
---@field ops table<string, integer> carried out, by operation
---@field bytes table<string, integer>
---@field latency table<string, { p50_s: number, p99_s: number, max_s: number }>
---@field skipped integer of other streams or files
---@field rounded integer extended to what the device is aligned to
---@field failed integer that the filesystem refused
---@field first_failure? string
---@field late_max_s number the most that one began after its time
---@field wall_s number
---@field engine? string of devices
---@field mean_queue_depth? number of devices
---@field stopped? string

local ORDER <const> = { "read", "write", "trim", "sync", "datasync", "add", "open", "create",
  "close", "unlink", "rename", "truncate", "mkdir" }
local BAR <const> = 30

local function sizes_text(title, sizes)
  local list, most, lines = {}, 0, {}
  for size, count in pairs(sizes) do
    list[#list + 1] = size
    most = math.max(most, count)
  end
  table.sort(list)
  for _, size in ipairs(list) do
    lines[#lines + 1] = ("  %s %10s  %-" .. BAR .. "s %d\n"):format(title, bytes.format(size),
      ("#"):rep(math.max(1, BAR * sizes[size] // most)), sizes[size])
  end
  return table.concat(lines)
end

local function op_lines(r, more)
  local lines = {}
  for _, op in ipairs(ORDER) do
    if r.ops[op] then
      lines[#lines + 1] = ("  %-9s %10d"):format(op, r.ops[op])
        .. (r.bytes[op] and ("  %s"):format(bytes.about(r.bytes[op])) or "")
        .. (more and more(op) or "") .. "\n"
    end
  end
  return table.concat(lines)
end

local info_mt = { __name = "brim.trace_info" }

function info_mt:__tostring()
  local reads, writes = self.ops.read or 0, self.ops.write or 0
  local text = ("%s: %s, %d events in %.3f s\n"):format(self.path, self.format, self.events,
    self.seconds) .. op_lines(self)
  if reads + writes > 0 then
    text = text .. ("  %.1f %% of reads and writes read; offsets %d .. %d (%s)\n"):format(
      100 * reads / (reads + writes), self.from_bytes, self.to_bytes,
      bytes.about(self.to_bytes - self.from_bytes))
  end
  if self.omitted then
    text = text .. ("  written as %s, %d operations left out\n"):format(self.written, self.omitted)
  end
  return text .. sizes_text("reads ", self.read_sizes) .. sizes_text("writes", self.write_sizes)
end

---Make the table of what a trace consists of.
---@param path string
---@param info table trace:info() of the core
---@param how true|string "cancelled"
---@return brim.TraceInfo
function M.of_info(path, info, how)
  info.path, info.seconds, info.last_ns = path, info.last_ns / 1e9, nil
  info.stopped = how ~= true and how or nil
  return setmetatable(info, info_mt)
end

local replay_mt = { __name = "brim.replay_result" }

function replay_mt:__tostring()
  local text = ("replayed %d events in %.3f s%s\n"):format(self.events, self.wall_s,
    self.engine and (", engine %s, %.1f in flight"):format(self.engine, self.mean_queue_depth)
      or "")
  text = text .. op_lines(self, function(op)
    local l = self.latency[op]
    return l and ("  p50 %.6f s, p99 %.6f s, max %.6f s"):format(l.p50_s, l.p99_s, l.max_s) or ""
  end)
  for _, name in ipairs { "skipped", "rounded", "failed" } do
    if self[name] > 0 then
      text = text .. ("  %s: %d\n"):format(name, self[name])
    end
  end
  return text .. (self.first_failure and ("  first failure: %s\n"):format(self.first_failure) or "")
end

---Make the table of what a replay came to.
---@param stats table replay_stats() of the core
---@param stopped? string
---@param r? brim.RunResult of a device
---@return brim.ReplayResult
function M.of_replay(stats, stopped, r)
  local out = { events = stats.events, ops = stats.ops, bytes = stats.bytes, latency = {},
    skipped = stats.skipped, rounded = stats.rounded, failed = stats.failed,
    first_failure = stats.first_failure, late_max_s = stats.late_max_ns / 1e9,
    wall_s = stats.elapsed_ns / 1e9, stopped = stopped }
  for op in pairs(stats.ops) do
    out.latency[op] = { p50_s = (stats.p50_ns[op] or 0) / 1e9,
      p99_s = (stats.p99_ns[op] or 0) / 1e9, max_s = (stats.max_ns[op] or 0) / 1e9 }
  end
  if r then
    out.engine, out.mean_queue_depth, out.ios = r.engine, r.mean_queue_depth, r.ios
  end
  return setmetatable(out, replay_mt)
end

return M
