-- brim.progress: one live line on a terminal while a run goes: fraction, groups/s, IOPS, depth,
-- time left. Called by the command line and the REPL, which pass its update as `progress`. Takes
-- the table that brim.run hands to a progress callback; durations are ns, as in C.
local core = require "brim.core"
local pretty = require "brim.pretty"

local M = {}
M.__index = M

---@class brim.Progress
---@field update fun(p: table) to be passed as the `progress` option
---@field interval_s number to be passed as the `progress_interval_s` option

---@class brim.ProgressOpts
---@field stream? file* default stderr
---@field fd? integer its descriptor, default 2
---@field is_tty? boolean default: what the descriptor is
---@field columns? integer default: as wide as the terminal
---@field summary? boolean leave a line at the end

local REDRAW_S <const> = 0.1

local function fraction(p)
  local done, total = p.bytes_done or 0, p.bytes_total or 0
  if (p.ios_total or 0) > 0 then
    done, total = p.ios_done, p.ios_total
  elseif total == 0 then
    done, total = p.groups_done or 0, p.groups_total or 0
  end
  return total > 0 and math.min(done / total, 1) or 0
end

---Describe the state of a run in one line of at most `columns` columns, what matters most first.
---@param p table as a progress callback gets it
---@param columns integer
---@return string
function M.line(p, columns)
  local part, elapsed_s = fraction(p), math.max((p.elapsed_ns or 0) / 1e9, 1e-9)
  local words = { ("%s %5.1f %%"):format(p.phase or "working", 100 * part) }
  local function add(fmt, ...)
    local word = fmt:format(...)
    if #table.concat(words, "  ") + 2 + #word < columns then
      words[#words + 1] = word
    end
  end
  if part > 0 then
    local left_s = math.ceil(elapsed_s * (1 - part) / part)
    add("%s left", left_s < 60 and ("%d s"):format(left_s) or pretty.duration(left_s))
  end
  if (p.groups_total or 0) > 0 then
    add("%s groups/s", pretty.si(p.groups_done / elapsed_s))
  end
  add("%s IOPS", pretty.si((p.ios_done or 0) / elapsed_s))
  add("depth %.1f", p.mean_queue_depth or 0)
  if (p.groups_total or 0) > 0 then
    add("%s of %s groups", pretty.count(p.groups_done), pretty.count(p.groups_total))
  end
  return table.concat(words, "  ")
end

---Make a progress display. It draws only where the stream is a terminal; `summary` leaves one line
---at the end wherever it is.
---@param o? brim.ProgressOpts
---@return brim.Progress
function M.open(o)
  o = o or {}
  local fd <const> = o.fd or 2
  local self = setmetatable({
    stream = o.stream or io.stderr,
    is_tty = o.is_tty,
    columns = o.columns or core.columns(fd),
    summary = o.summary,
    interval_s = REDRAW_S,
    drawn_s = -math.huge,
  }, M)
  if self.is_tty == nil then
    self.is_tty = core.isatty(fd)
  end
  self.update = function(p) self:draw(p) end
  return self
end

---Is there anything to show? Where not, no callback need be passed.
---@return boolean
function M:is_active()
  return self.is_tty or self.summary or false
end

---Draw the line, at most ten times a second.
---@param p table
function M:draw(p)
  local now_s = core.monotonic_s()
  self.last = M.line(p, self.columns)
  if self.is_tty and now_s - self.drawn_s >= REDRAW_S then
    self.drawn_s = now_s
    self.stream:write("\r", self.last, "\27[K"):flush()
    self.dirty = true
  end
end

---Take the line away, before something else is printed or at the end.
function M:clear()
  if self.dirty then
    self.stream:write("\r\27[K"):flush()
    self.dirty = false
  end
end

---End the display: clears the line, and leaves the last state where `summary` was asked for.
function M:close()
  self:clear()
  if self.summary and self.last then
    self.stream:write(self.last, "\n"):flush()
  end
  self.last = nil
end

return M
