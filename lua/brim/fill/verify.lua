-- brim.fill.verify: compares what a fill left with its seed: every byte of every file, and which
-- files there are. Called by brim.fill and the recipe verify-fill.
local bytes = require "brim.bytes"
local core = require "brim.core"
local opts = require "brim.opts"
local pretty = require "brim.pretty"
local replay = require "brim.fill.replay"

local M = {}

---The options.
M.SCHEMA = {
  threads = { type = "int", min = 1, max = 1024, doc = "files read at a time; default 4 a CPU" },
  direct = { type = "bool", doc = "past the page cache" },
  max_findings = { type = "int", default = 1000, min = 1, max = 1 << 20, doc = "findings kept" },
  progress = { type = "function", doc = "called between steps; returning false stops" },
  progress_interval_s = { type = "number", default = 1, min = 0, doc = "least time between calls" },
}

local STEP_S <const> = 0.1

local function drive(verify, o)
  local more, stats, told_s, stopped = true, nil, 0, nil
  while more and not stopped do
    more, stats = verify:step(STEP_S)
    if more == nil then
      return nil, stats
    end
    local now_s = core.monotonic_s()
    if core.interrupted() then
      stopped = "interrupted"
    elseif o.progress and now_s - told_s >= o.progress_interval_s then
      told_s = now_s
      stopped = o.progress { phase = "verify", bytes_done = stats.bytes,
        bytes_total = stats.total_bytes, elapsed_ns = stats.elapsed_ns } == false and "cancelled"
        or nil
    end
  end
  return stats, stopped
end

local function text_of(r)
  local lines = { ("%s files, %s compared in %s"):format(pretty.count(r.files),
    bytes.about(r.bytes), pretty.duration(r.wall_s)) }
  if r.short_files > 0 then
    lines[#lines + 1] = ("%d files are short, as the filesystem was full"):format(r.short_files)
  end
  if r.unjudged > 0 then
    lines[#lines + 1] = ("%d files may be either way: the fill was interrupted"):format(r.unjudged)
  end
  for _, f in ipairs(r.findings) do
    lines[#lines + 1] = ("%s: %s%s"):format(f.path, f.kind, f.kind == "corrupt"
      and (" at %d"):format(f.off_bytes) or (f.kind == "short" or f.kind == "long")
      and (": %d bytes, not %d"):format(f.found, f.expected) or "")
  end
  local total = 0
  for _, n in pairs(r.found) do
    total = total + n
  end
  lines[#lines + 1] = total == 0 and "everything is as it was written"
    or ("%d findings"):format(total)
  return table.concat(lines, "\n"), total
end

---Compare.
---@param path string
---@param o? table of SCHEMA
---@return table? result
---@return brim.Error? err
function M.run(path, o)
  o = opts.check(o, M.SCHEMA, "brim.fill.verify")
  local opened, err = replay.open(path)
  if not opened then
    return nil, err
  end
  local handle <close> = opened.handle
  local _, before = handle:step(0.001)
  local short_files = before.short_files
  local verify <close>, why = core.verify_open(handle, opened.state.window, { threads = o.threads,
    direct = o.direct, max_findings = o.max_findings })
  if not verify then
    return nil, why
  end
  local stats, stopped = drive(verify, o)
  if not stats then
    return nil, stopped
  end
  local r = { files = stats.files, bytes = stats.bytes, unjudged = stats.unjudged, found = {},
    findings = {}, short_files = short_files, wall_s = stats.elapsed_ns / 1e9, stopped = stopped,
    interrupted = not opened.state.is_over }
  for kind, n in pairs(stats.found) do
    r.found[kind] = n
  end
  if not stopped then
    for f in function() return verify:finding(#r.findings + 1) end do
      r.findings[#r.findings + 1] = f
    end
  end
  local total
  r.text, total = text_of(r)
  r.ok = total == 0 and not stopped
  return r
end

return M
