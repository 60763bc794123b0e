-- brim.xfs: XFS, from options to a plan. geometry is pure; format makes the plan; both take the
-- options of schema.lua, in bytes and in the names of this project. Called by scripts and the
-- recipes.
local core = require "brim.core"
local format = require "brim.xfs.format"
local geometry = require "brim.xfs.geometry"
local opts = require "brim.opts"
local schema = require "brim.xfs.schema"
local text = require "brim.xfs.text"
local uuid = require "brim.uuid"
local versions = require "brim.xfs.versions"
local where = require "brim.where"

local M = { ondisk = require "brim.xfs.ondisk" }

local SCHEMA = {}
for name, spec in pairs(schema.SCHEMA) do
  SCHEMA[name] = { type = spec.type == "uuid" and "string" or spec.type, min = spec.min,
    max = spec.max, doc = spec.doc }
end
SCHEMA.device = { type = "table", doc = "what is known of the target: see brim.xfs.Device" }
SCHEMA.force = { type = "bool", doc = "accept a device misaligned against its sectors" }
SCHEMA.suffix_sector_bytes = { type = "int", doc = "what a suffix 's' was taken for" }
SCHEMA.unsupported = { type = "bool", doc = "allow sizes mkfs.xfs calls unsupported" }
SCHEMA.time_ns = { type = "int", min = 0, doc = "time of the inodes, nanoseconds since 1970" }
SCHEMA.generation = { type = "int", min = 0, max = 0xffffffff,
  doc = "generation number of fresh inodes; default: random ones, 0 in releases before 6.13" }
SCHEMA.old = { type = "table", doc = "ag_count and ag_bytes of a filesystem to be erased" }

---Compute the geometry mkfs.xfs would choose. Without a device, size_bytes is the device. Options:
---size_bytes, block_bytes, sector_bytes, inode_bytes or inodes_per_block, ag_count or ag_bytes,
---stripe_unit_bytes and stripe_width_bytes, no_align, max_inode_percent, dir_block_bytes,
---log_bytes, log_stripe_unit_bytes, log_ag, finobt, sparse, rmapbt, reflink, bigtime, inobtcount,
---nrext64, exchange, parent, autofsck, data_concurrency, log_concurrency, label, uuid; compat (the
---xfsprogs release whose defaults and formulas hold); unsupported; device (what is known of the
---target: see brim.xfs.Device).
---@param o brim.xfs.Options
---@return brim.xfs.Geometry? geometry
---@return brim.Error? err
function M.geometry(o)
  o = opts.check(o, SCHEMA, "brim.xfs.geometry")
  if not o.size_bytes and not (o.device and o.device.size_bytes) then
    where.raise "brim.xfs: size_bytes is needed, or a device with one"
  end
  local device = o.device or { size_bytes = o.size_bytes, is_file = true }
  return geometry.compute(o, device)
end

-- Generation numbers of the free inodes, the realtime bitmap and its summary.
local function generations(o)
  if o.generation then
    return { o.generation, o.generation, o.generation }
  elseif versions.of(o.compat).has_generations then
    return { (">I4I4I4"):unpack(core.uuid_generate() .. core.uuid_generate(), 13) }
  end
end

---Make the plan of a fresh filesystem. Nothing is written.
---@param o brim.xfs.Options options as for geometry, and time_ns (default: now), generation, old
---@return brim.Plan? plan with its geometry as plan.geometry and, printed, as the note "geometry"
---@return brim.Error? err
function M.format(o)
  o = opts.check(o, SCHEMA, "brim.xfs.format")
  local g, err = M.geometry(o)
  if not g then
    return nil, err
  end
  g.uuid = g.uuid or uuid.generate()
  local p = format.plan(g, { time_ns = o.time_ns or core.time_ns(), old = o.old,
    generations = generations(o),
    device_bytes = o.device and o.device.size_bytes })
  p.geometry = g
  return p:note("format", "xfs"):note("geometry", text.geometry(g, "-")):seal()
end

---Open a filesystem to look at its structures, of whatever size: see brim.xfs.Inspector.
---@param target string a device, a file or an image file
---@return brim.xfs.Inspector? inspector to be closed by the caller
---@return brim.Error? err
function M.open(target)
  return require("brim.xfs.inspect").open(target)
end

---Print a geometry as mkfs.xfs does.
---@param g brim.xfs.Geometry
---@param name? string the target's
---@return string
function M.text(g, name)
  return text.geometry(g, name or "-")
end

return M
