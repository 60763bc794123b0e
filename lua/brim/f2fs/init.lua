-- brim.f2fs: F2FS, from options to a plan. geometry is pure; format makes the plan, or one for each
-- device of a volume of several. Called by scripts and the recipes.
local advice = require "brim.f2fs.advice"
local core = require "brim.core"
local errors = require "brim.error"
local format = require "brim.f2fs.format"
local geometry = require "brim.f2fs.geometry"
local ondisk = require "brim.f2fs.ondisk"
local opts = require "brim.opts"
local superblock = require "brim.f2fs.superblock"
local text = require "brim.f2fs.text"
local uuid = require "brim.uuid"
local versions = require "brim.f2fs.versions"
local where = require "brim.where"

local M = { ondisk = ondisk }

local U32 <const> = 0xffffffff
local FIXED_VERSION <const> = 1804289383 -- first of rand() after srand(0), of glibc
local KERNEL_BYTES <const> = 252 -- of a superblock's text (VERSION_NAME_LEN)
local NEEDS_EXTRA <const> = { "project_quota", "inode_checksum", "flexible_inline_xattr",
  "inode_crtime", "compression" }

local function known_release(v)
  return versions.of(v) ~= nil, ("'%s' is none of %s"):format(v, versions.NAMES)
end

local SCHEMA <const> = {
  size_bytes = { type = "bytes", doc = "size of the volume; or devices with sizes" },
  devices = { type = "table", doc = "list of { size_bytes =, path = }, the first with metadata" },
  compat = { type = "string", default = versions.DEFAULT, check = known_release,
    doc = "release of f2fs-tools whose formulas hold" },
  sector_bytes = { type = "int", min = 512, max = 4096, default = 512 },
  section_segments = { type = "int", min = 1, max = 1 << 20, default = 1,
    doc = "segments to a section" },
  zone_sections = { type = "int", min = 1, max = 1 << 20, default = 1, doc = "sections to a zone" },
  overprovision_percent = { type = "number", min = 0, max = 100,
    doc = "space kept for cleaning; default: what leaves the most" },
  features = { type = "table", doc = "list of names, as -O has them" },
  large_nat = { type = "bool", doc = "node numbers for a fifth of all blocks" },
  heap = { type = "bool", doc = "node logs from the end of the volume" },
  label = { type = "string" }, uuid = { type = "string" },
  cold = { type = "string", doc = "further extensions of cold files: 'a,b'" },
  hot = { type = "string", doc = "further extensions of hot files" },
  encoding = { type = "int", min = 0, max = 1, doc = "of folded names; 1: UTF-8 12.1" },
  strict = { type = "bool", doc = "refuse names that are not of the encoding" },
  time_s = { type = "int", min = 0, doc = "time of the inodes, seconds since 1970" },
  uid = { type = "int", min = 0, max = U32, default = 0 },
  gid = { type = "int", min = 0, max = U32, default = 0 },
  fixed_version = { type = "bool", doc = "the same checkpoint version each time" },
  kernel = { type = "string", doc = "what the superblock says it was made under" },
  trimmed = { type = "bool", default = true, doc = "the device was discarded before" },
  wipe = { type = "bool", doc = "erase the front of another filesystem" },
}

-- Feature bits of a list of names.
local function bits_of(names)
  local bits, known = 0, {}
  for name in pairs(ondisk.FEATURES) do
    known[#known + 1] = name
  end
  table.sort(known)
  for _, name in ipairs(names or {}) do
    local bit = ondisk.FEATURES[name]
    if not bit then
      return nil, errors.usage("-O %s: unknown feature%s; there are %s", name,
        opts.suggest(name, known), table.concat(known, ", "))
    end
    bits = bits | bit
  end
  for _, name in ipairs(NEEDS_EXTRA) do
    if bits & ondisk.FEATURES[name] ~= 0 and bits & ondisk.FEATURES.extra_attr == 0 then
      return nil, errors.usage("-O %s needs extra_attr: -O extra_attr,%s", name, name)
    end
  end
  return bits
end

---Compute the geometry mkfs.f2fs would choose. Options: size_bytes or devices; compat,
---section_segments, zone_sections, overprovision_percent, features, large_nat, heap,
---sector_bytes; and those of format.
---@param o table
---@return brim.f2fs.Geometry? geometry its `warnings` say what mkfs.f2fs keeps silent about
---@return brim.Error? err
function M.geometry(o)
  o = opts.check(o, SCHEMA, "brim.f2fs.geometry")
  if not o.size_bytes and not o.devices then
    where.raise "brim.f2fs: size_bytes is needed, or devices"
  end
  local bits, why = bits_of(o.features)
  if not bits then
    return nil, why
  end
  local g, err = geometry.compute({ compat = o.compat, section_segments = o.section_segments,
    zone_sections = o.zone_sections, overprovision_percent = o.overprovision_percent,
    features = bits, large_nat = o.large_nat, heap = o.heap, sector_bytes = o.sector_bytes },
    o.devices or { { size_bytes = o.size_bytes } })
  if g then
    g.warnings = advice.lines(g)
  end
  return g, err
end

---The text that mkfs.f2fs puts into superblocks: of the kernel that runs here.
---@return string
function M.kernel()
  local file <close> = io.open "/proc/version"
  return (file and file:read "l" or ""):sub(1, KERNEL_BYTES)
end

-- A random odd number, as rand() gives them.
local function random_version()
  return ("<I4"):unpack(core.uuid_generate()) & 0x7fffffff | 1
end

-- The values of format.plans.
local function complete(o, g)
  local id = o.uuid and uuid.parse(o.uuid) or not o.uuid and core.uuid_generate()
  if not id then
    return nil, errors.usage("-U %s: no UUID", o.uuid)
  elseif o.label and (not superblock.utf16(o.label) or #superblock.utf16(o.label) > 511) then
    return nil, errors.usage("-l: a label is UTF-8, at most 511 characters")
  end
  local names, cold = superblock.extensions(o, function(fmt, ...)
    table.insert(g.warnings, fmt:format(...))
  end)
  if not names then
    return nil, errors.usage "-e, -E: more than 64 extensions, the defaults included"
  end
  return { uuid = uuid.format(id), uuid_bytes = id, label = o.label, extensions = names,
    cold_count = cold, kernel = o.kernel or M.kernel(), strict = o.strict, encoding = o.encoding,
    time_s = o.time_s or core.time_ns() // 1000000000, uid = o.uid, gid = o.gid,
    version = o.fixed_version and FIXED_VERSION or random_version(), trimmed = o.trimmed,
    wipe = o.wipe }
end

---Make the plans of a fresh filesystem, one for each device. Nothing is written.
---@param o table options as for geometry, and label, uuid, cold, hot, encoding, strict, time_s,
--- uid, gid, fixed_version, kernel, trimmed, wipe
---@return brim.Plan[]? plans the first with its geometry as plan.geometry
---@return brim.Error? err
function M.plans(o)
  o = opts.check(o, SCHEMA, "brim.f2fs.plans")
  local g, err = M.geometry(o)
  if not g then
    return nil, err
  end
  local values, why = complete(o, g)
  if not values then
    return nil, why
  end
  local plans = format.plans(g, values)
  for _, p in ipairs(plans) do
    p.geometry = g
    p:note("format", "f2fs"):note("geometry", text.geometry(g)):seal()
  end
  return plans
end

---Make the plan of a fresh filesystem on one device. Nothing is written.
---@param o table options as for plans
---@return brim.Plan? plan with its geometry as plan.geometry
---@return brim.Error? err
function M.format(o)
  local plans, err = M.plans(o)
  if not plans then
    return nil, err
  elseif #plans > 1 then
    where.raise "brim.f2fs.format makes one device; brim.f2fs.plans makes several"
  end
  return plans[1]
end

---Open a filesystem to look at its structures: see brim.f2fs.Volume and brim.f2fs.inspect.
---@param target string a device, a file or an image file
---@return brim.f2fs.Volume? volume to be closed by the caller
---@return brim.Error? err
function M.open(target)
  return require("brim.f2fs.volume").open(target)
end

---Print a geometry.
---@param g brim.f2fs.Geometry
---@return string
function M.text(g)
  return text.geometry(g)
end

-- Loaded when first used.
return setmetatable(M, {
  __index = function(t, name)
    if name == "explain" or name == "probe" then
      t[name] = require("brim.f2fs." .. name)
      return rawget(t, name)
    end
  end,
})
