-- brim.fill.result: the table that a run returns, and its text. Called by brim.fill. Sizes are
-- bytes, durations seconds, fullness 0 to 1.
local bytes = require "brim.bytes"
local core = require "brim.core"
local pretty = require "brim.pretty"
local reserve = require "brim.fill.reserve"

local M = {}

---@class brim.FillResult
---@field phases table[] name, kind, fullness, raw_fullness, files, written_bytes, wall_s,
---bytes_per_s, files_per_s, refused, stopped; of churn lowest and highest
---@field fullness number at the end, synchronised
---@field files integer that stand
---@field live_bytes integer of them
---@field written_bytes integer
---@field refused integer operations that met ENOSPC, EDQUOT or EFBIG
---@field failed integer that met other errors
---@field short_files integer that stand with less than was planned
---@field stalls integer
---@field stopped? string why the run ended early: "interrupted", "cancelled"
---@field reserve table what the filesystem keeps back
---@field mode string how files were written
---@field choice string what "auto" measured
---@field trace_lost? string why the trace is not whole
---@field ok boolean no error but refusals, and the trace that was asked for is whole

local result_mt = { __name = "brim.fill_result" }

function result_mt:__tostring()
  return self.text
end

---Begin a step's result.
---@param s brim.FillSession
---@param step table
---@return table
function M.begin(s, step)
  local stats = s.stats
  return { name = step.name, kind = step.kind, begun_s = core.monotonic_s(), wrote = s.wrote,
    files_before = stats.ops.create, refused_before = s.refused, asked = step.target
    and step.target.kind == "fullness" and step.target.value or step.churn and step.churn.at }
end

---Finish a step's result.
---@param s brim.FillSession
---@param r table of begin
---@param outcome table of the step
---@return table
function M.finish(s, r, outcome)
  local stats = s.stats
  local wall_s = core.monotonic_s() - r.begun_s
  local out = { name = r.name, kind = r.kind, asked = r.asked, fullness = s:fullness(),
    raw_fullness = s.record.last and s.record.last.fullness, files = stats.live_files,
    live_bytes = stats.live_bytes, written_bytes = s.wrote - r.wrote, wall_s = wall_s,
    bytes_per_s = (s.wrote - r.wrote) / math.max(wall_s, 1e-6),
    files_per_s = (stats.ops.create - r.files_before) / math.max(wall_s, 1e-6),
    refused = s.refused - r.refused_before }
  for k, v in pairs(outcome) do
    out[k] = v
  end
  out.stopped = outcome.stopped or s.stopped
  return out
end

local function phase_line(p)
  local words = { ("%-20s %7.3f %%  %9s files  %11s in %9s  %11s/s"):format(p.name,
    100 * p.fullness, pretty.count(p.files), bytes.about(p.written_bytes),
    pretty.duration(p.wall_s), bytes.about(math.floor(p.bytes_per_s))) }
  if p.lowest then
    words[#words + 1] = ("%.3f .. %.3f %%"):format(100 * p.lowest, 100 * p.highest)
  end
  if p.refused_at then
    words[#words + 1] = ("%s at %.3f %%"):format(p.refused_with, 100 * p.refused_at)
  end
  if p.refused > 0 then
    words[#words + 1] = ("%s refused"):format(pretty.count(p.refused))
  end
  if p.stopped then
    words[#words + 1] = ("stopped: %s"):format(p.stopped)
  end
  return table.concat(words, "  ")
end

local function text_of(r)
  local lines = {}
  for _, p in ipairs(r.phases) do
    if p.kind ~= "snapshot" then
      lines[#lines + 1] = phase_line(p)
    end
  end
  lines[#lines + 1] = ("%s: %.3f %% used, %s free%s"):format(r.path, 100 * r.fullness,
    bytes.about(r.reserve.left_bytes or 0), r.reserve.text ~= "" and ". " .. r.reserve.text or "")
  if r.short_files > 0 then
    lines[#lines + 1] = ("%d files are shorter than planned"):format(r.short_files)
  end
  if r.stalls > 0 or r.failed > 0 then
    lines[#lines + 1] = ("%d stalls, %d errors"):format(r.stalls, r.failed)
  end
  if r.choice ~= "" then
    lines[#lines + 1] = ("mode %s: %s"):format(r.mode, r.choice)
  end
  if r.stopped then
    lines[#lines + 1] = ("stopped: %s; 'brim fill --resume %s' goes on"):format(r.stopped, r.path)
  end
  return table.concat(lines, "\n")
end

---Make the result of a run.
---@param s brim.FillSession
---@param phases table[]
---@param wall_s number
---@return brim.FillResult
function M.make(s, phases, wall_s)
  local stats = s.stats
  local r = { path = s.path, phases = phases, fullness = s:fullness(), files = stats.live_files,
    live_bytes = stats.live_bytes, written_bytes = s.wrote, refused = s.refused, failed = s.failed,
    short_files = stats.short_files, stalls = s.record.stalls, stopped = s.stopped,
    reserve = reserve.explain(s.path, s.first_usage), mode = stats.mode,
    choice = stats.choice, wall_s = wall_s,
    cpu_s = stats.cpu_ns / 1e9, samples = s.record.samples, events = s.record.events,
    ok = s.failed == 0 }
  r.text = text_of(r)
  return setmetatable(r, result_mt)
end

return M
