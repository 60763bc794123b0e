-- brim.xfs.features: which features a V5 XFS gets: as asked, or by the release's defaults; and the
-- superblock's words for them. Called by geometry; `s` is the computation.
local schema = require "brim.xfs.schema"
local verdict = require "brim.xfs.verdict"
local versions = require "brim.xfs.versions"

local M = {}

local refuse = verdict.refuse

-- Superblock versionnum (xfs_format.h): version 5, and bits that every V5 image has.
local VERSION_BASE <const> = 0x0005 -- version number
  | 0x0020 -- NLINK
  | 0x0080 -- ALIGN
  | 0x0400 -- LOGV2
  | 0x1000 -- EXTFLG
  | 0x2000 -- DIRV2
  | 0x8000 -- MOREBITS
local VERSION_ATTR <const> = 0x0010
local VERSION_DALIGN <const> = 0x0100
local VERSION_SECTOR <const> = 0x0800
-- features2: LAZYSBCOUNT, ATTR2, PROJID32, CRC.
local FEATURES2 <const> = 0x0002 | 0x0008 | 0x0080 | 0x0100

local RO_COMPAT = { finobt = 0x1, rmapbt = 0x2, reflink = 0x4, inobtcount = 0x8 }
local INCOMPAT_FTYPE <const> = 0x1
local INCOMPAT = { sparse = 0x2, bigtime = 0x8, nrext64 = 0x20, exchange = 0x40, parent = 0x80 }

local function check_release(s)
  for _, name in ipairs(schema.NAMES) do
    local since = s.o[name] ~= nil and schema.SCHEMA[name].since
    if since and versions.is_before(s.version.name, since) then
      refuse(name, nil, "mkfs.xfs %s does not have it; compat %s does", s.version.name, since)
    end
  end
end

-- Repair by itself wants back references, which it turns on; from 7.2 these turn it on.
local function set_self_healing(s)
  local o, g = s.o, s.g
  for _, name in ipairs { "rmapbt", "parent" } do
    if o.autofsck and o.autofsck ~= "none" and not g[name] then
      g[name] = o[name] == nil
      if not g[name] then
        s:warn("autofsck=%s is less effective with %s=0", o.autofsck, name)
      end
    end
  end
  g.autofsck = o.autofsck
  if s.version.has_self_healing and g.rmapbt and g.parent then
    g.autofsck = g.autofsck or "repair"
  end
end

---Set compat, the features, autofsck, label and uuid; and, for the steps after it, s.version.
---@param s table the computation: options `o`, device, geometry so far `g`, `warn`
function M.set_features(s)
  local o, g = s.o, s.g
  s.version = versions.of(o.compat)
  check_release(s)
  g.compat, g.crc = s.version.name, true
  for _, name in ipairs({ "finobt", "sparse", "rmapbt", "reflink", "bigtime", "inobtcount",
    "nrext64", "exchange", "parent" }) do
    g[name] = o[name]
    if g[name] == nil then
      g[name] = schema.SCHEMA[name].default
    end
    if g[name] == nil then
      g[name] = s.version.defaults[name]
    end
  end
  set_self_healing(s)
  g.exchange = g.exchange or g.parent and o.exchange == nil
  if g.inobtcount == nil then
    g.inobtcount = g.finobt
  elseif g.inobtcount and not g.finobt then
    refuse("inobtcount", "1", "needs finobt, which is off")
  end
  g.label = o.label
  g.uuid = o.uuid and o.uuid:lower()
end

---Set what the superblock says of the features, after sector and stripe are known.
---@param s table the computation
function M.set_bits(s)
  local g = s.g
  g.version_num = VERSION_BASE | (g.has_stripe and VERSION_DALIGN or 0)
    | (g.sector_bytes > 512 and VERSION_SECTOR or 0)
    | (g.parent and VERSION_ATTR or 0)
  g.features2 = FEATURES2
  g.features_compat = 0
  g.features_ro_compat = 0
  for name, bit in pairs(RO_COMPAT) do
    g.features_ro_compat = g.features_ro_compat | (g[name] and bit or 0)
  end
  g.features_incompat = INCOMPAT_FTYPE
  for name, bit in pairs(INCOMPAT) do
    g.features_incompat = g.features_incompat | (g[name] and bit or 0)
  end
end

return M
