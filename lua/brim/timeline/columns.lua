-- brim.timeline.columns: the names, units and meanings of what samples hold. Called by timeline,
-- which puts them into headers, and by report and plot for the labels of axes. Pure data.
local M = {}

---@class brim.Column
---@field unit string "s", "bytes", "bytes/s", "1/s", "1" (a fraction), "" (a count), ...
---@field doc string

---The columns that brim writes: name = { unit, doc }.
M.STANDARD = {
  t_s = { unit = "s", doc = "time since the start" },
  level = { unit = "1", doc = "fullness that was asked for" },
  fullness = { unit = "1", doc = "part of the blocks that are not free, as statfs says just now" },
  synced_fullness = { unit = "1", doc = "the same right after the latest sync" },
  used_bytes = { unit = "bytes", doc = "blocks that are not free, as statfs says just now" },
  synced_used_bytes = { unit = "bytes", doc = "the same right after the latest sync" },
  files = { unit = "", doc = "files that stand" },
  written_bytes = { unit = "bytes", doc = "written by the workload so far" },
  bytes_per_s = { unit = "bytes/s", doc = "written by the workload since the last sample" },
  files_per_s = { unit = "1/s", doc = "files created since the last sample" },
  dev_read_bytes = { unit = "bytes", doc = "read from the device since the last sample" },
  dev_write_bytes = { unit = "bytes", doc = "written to the device since the last sample" },
  dev_reads = { unit = "", doc = "reads that the device completed since the last sample" },
  dev_writes = { unit = "", doc = "writes that the device completed since the last sample" },
  dev_busy = { unit = "1", doc = "part of the time since the last sample with I/O in flight" },
  dirty_bytes = { unit = "bytes", doc = "waiting in memory to be written" },
  writeback_bytes = { unit = "bytes", doc = "being written back" },
}

---The operations whose latencies are recorded.
M.OPS = { "create", "overwrite", "append", "truncate", "replace", "delete" }

local SHARES <const> = { p50 = "the median", p99 = "the 99th percentile", max = "the largest" }
for _, op in ipairs(M.OPS) do
  for share, words in pairs(SHARES) do
    M.STANDARD[("%s_%s_s"):format(op, share)] = { unit = "s",
      doc = ("%s of the times that %s took since the last sample"):format(words, op) }
  end
end

---Put further columns beside the standard ones. Raises for one that is not { unit, doc }.
---@param more? table<string, brim.Column>
---@return table<string, brim.Column>
function M.with(more)
  local out = {}
  for name, column in pairs(M.STANDARD) do
    out[name] = column
  end
  for name, column in pairs(more or {}) do
    if type(name) ~= "string" or type(column) ~= "table" or type(column.unit or "") ~= "string" then
      error(("column '%s': expected { unit = \"...\", doc = \"...\" }"):format(tostring(name)), 3)
    end
    out[name] = { unit = column.unit or "", doc = column.doc or name }
  end
  return out
end

return M
