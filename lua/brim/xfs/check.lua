-- brim.xfs.check: does a target hold the filesystem it should? Built of scans: every group is read
-- once at full queue depth and checked in C. Called by recipes and scripts.
local group = require "brim.xfs.group"
local scan = require "brim.scan"

local M = {}

---Read the headers and tree roots of every group back: magic numbers, the group's number and place,
---UUIDs, and the CRC of each sector or block. They must be where a fresh filesystem has them.
---@param target string|brim.Device
---@param g brim.xfs.Geometry
---@param o? table engine, queue_depth, progress, ...: as for plan:write
---@return brim.RunResult? result its mismatch_count is 0 when all hold
---@return brim.Error? err
function M.headers(target, g, o)
  local run = { count = g.ag_count, stride_bytes = g.ag_bytes }
  for name, v in pairs(o or {}) do
    run[name] = v
  end
  return scan.new(function(ag)
    return group.identities(g, ag)
  end):run(target, run)
end

return M
