-- spec.bench.plans: the plans whose speed is compared: a format; a copy of any plan that does the
-- same I/Os with constant bytes, which is the ceiling of its engine; the headers of the groups
-- alone.
local brim = require "brim"
local group = require "brim.xfs.group"
local space = require "brim.xfs.space"

local M = {}

local FILL <const> = "\xa5"

---The plan of an XFS, with seed options that give one write a group.
---@param size_bytes integer
---@param o? table further options of brim.xfs.format
---@return brim.Plan
function M.format(size_bytes, o)
  local options = { size_bytes = size_bytes, unsupported = true }
  for name, value in pairs(o or {}) do
    options[name] = value
  end
  return assert(brim.xfs.format(options))
end

-- The extents of a piece: structures side by side are one I/O.
local function extents(piece)
  local list = {}
  for _, region in ipairs(piece.regions) do
    local last = list[#list]
    if last and last.off_bytes + last.len_bytes == region.off_bytes then
      last.len_bytes = last.len_bytes + region.len_bytes
    else
      list[#list + 1] = { off_bytes = region.off_bytes, len_bytes = region.len_bytes }
    end
  end
  return list
end

local function constant(piece)
  return function()
    local list = {}
    for i, e in ipairs(extents(piece)) do
      list[i] = brim.layout.bytes(e.off_bytes, e.len_bytes, "constant", FILL:rep(e.len_bytes))
    end
    return list
  end
end

---Copy a plan: the same phases, zeros and I/Os, but nothing in them varies and nothing is summed.
---@param p brim.Plan
---@return brim.Plan
function M.ceiling(p)
  local copy = brim.plan { name = "ceiling", size_bytes = p.size_bytes }
  local phase
  for _, piece in ipairs(p:pieces()) do
    if piece.phase ~= phase then
      phase = piece.phase
      copy:phase(phase)
    end
    if piece.is_zero then
      copy:zero(piece.off_bytes, piece.len_bytes, piece.name)
    else
      copy:each(piece.count, constant(piece), { name = piece.name, first = piece.first,
        offset_bytes = piece.off_bytes, stride_bytes = piece.stride_bytes,
        groups = piece.is_groups })
    end
  end
  return copy:seal()
end

---The headers of all groups but the first, and nothing else; for a longer run several times, a MiB
---further into the groups.
---@param p brim.Plan of a format
---@param times? integer default 1
---@return brim.Plan
function M.groups(p, times)
  local g = p.geometry
  local usual = space.of(g)
  local plan = brim.plan { name = "groups", size_bytes = g.size_bytes, group_bytes = g.ag_bytes }
  for n = 0, (times or 1) - 1 do
    plan:each(g.ag_count - 1, function(ag)
      return brim.xfs.ondisk.sb:at(0, g.sector_bytes) { uuid = g.uuid, inprogress = 1 },
        group.headers(g, ag, usual, false)
    end, { first = 1, offset_bytes = n * brim.MiB })
  end
  return plan:seal()
end

return M
