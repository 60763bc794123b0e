-- brim.xfs.check_sb: the superblock and its copies: what each must hold by itself, and in what the
-- copies must agree with the primary one, as xfs_repair has it. Called by check; counters are
-- compared there, once the groups have been counted.
local ondisk = require "brim.xfs.ondisk"

local M = {}

local NULL64 <const> = ondisk.NULL_FS_INODE
local NULL_UUID <const> = "00000000-0000-0000-0000-000000000000"
local KNOWN_RO_COMPAT <const>, KNOWN_INCOMPAT <const> = 0xf, 0x1ff
local NEEDSREPAIR <const>, META_UUID <const>, METADIR <const> = 0x10, 0x4, 0x100
local ALIGN <const>, DALIGN <const> = 0x80, 0x100

-- What mkfs sets once and growfs in all copies at once.
local SAME <const> = { "blocksize", "dblocks", "rblocks", "rextents", "logstart", "rextsize",
  "agblocks", "agcount", "rbmblocks", "logblocks", "sectsize", "inodesize", "inopblock",
  "blocklog", "sectlog", "inodelog", "inopblog", "agblklog", "rextslog", "dirblklog",
  "logsectlog", "logsectsize", "logsunit", "inoalignmt", "spino_align", "uuid",
  "features_compat", "features_ro_compat" }

-- Fields that are there only with their feature, and what else must not be in the sector.
local function check_unused(report, ag, sb, raw)
  local size = sb.features_incompat & METADIR ~= 0 and 304
    or sb.features_incompat & META_UUID ~= 0 and 264 or 248
  local from = raw:find("[^\0]", size + 1)
  -- libxfs writes the UUID of the metadata there in memory, never on disk.
  if from then
    report:add { group = ag, structure = "sb", field = "unused", expected = 0,
      found = raw:byte(from), why = ("byte %d of its sector"):format(from - 1) }
  end
  report:expect(ag, "sb", "flags", 0, sb.flags)
  if sb.versionnum & DALIGN == 0 then
    report:expect(ag, "sb", "unit", 0, sb.unit)
    report:expect(ag, "sb", "width", 0, sb.width)
  end
  if sb.versionnum & ALIGN == 0 then
    report:expect(ag, "sb", "inoalignmt", 0, sb.inoalignmt)
  end
end

local function check_quota(report, ag, sb)
  if sb.inprogress ~= 1 then
    return
  end
  for _, name in ipairs { "uquotino", "gquotino", "pquotino" } do
    if sb[name] ~= 0 and sb[name] ~= NULL64 then
      report:expect(ag, "sb", name, 0, sb[name])
    end
  end
  report:expect(ag, "sb", "qflags", 0, sb.qflags)
end

---Check one superblock's sector: the primary one (group 0) by itself, others against it.
---@param c brim.xfs.Checker
---@param ag integer
---@param raw string
---@return boolean clean
function M.check(c, ag, raw)
  local report, before = c.report, c.report.count
  local sb, intact = ondisk.sb:decode(raw, 0, #raw)
  if not report:expect(ag, "sb", "magicnum", ondisk.sb:field("magicnum").magic, sb.magicnum) then
    return false
  end
  if not intact then
    report:add { group = ag, structure = "sb", field = "crc", why = "the checksum is wrong" }
    return false
  end
  report:expect(ag, "sb", "versionnum", 5, sb.versionnum & 15)
  if sb.imax_pct > 100 then
    report:add { group = ag, structure = "sb", field = "imax_pct", expected = 100,
      found = sb.imax_pct, why = "at most" }
  end
  check_unused(report, ag, sb, raw)
  check_quota(report, ag, sb)
  if ag > 0 then
    for _, name in ipairs(SAME) do
      report:expect(ag, "sb", name, c.sb[name], sb[name])
    end
    local mask = ~NEEDSREPAIR
    report:expect(ag, "sb", "features_incompat", c.sb.features_incompat & mask,
      sb.features_incompat & mask)
    report:expect(ag, "sb", "versionnum", c.sb.versionnum & (ALIGN | DALIGN),
      sb.versionnum & (ALIGN | DALIGN))
  end
  return report.count == before
end

---Check what only the primary one says. Returns why it cannot be used at all.
---@param c brim.xfs.Checker
---@param raw string
---@return string? why
function M.primary(c, raw)
  local sb, report = c.sb, c.report
  local unknown_ro = sb.features_ro_compat & ~KNOWN_RO_COMPAT
  local unknown = sb.features_incompat & ~KNOWN_INCOMPAT
  if unknown ~= 0 or unknown_ro ~= 0 then
    return ("it has features brim does not know: ro_compat 0x%x, incompat 0x%x"):format(unknown_ro,
      unknown)
  end
  M.check(c, 0, raw)
  report:expect(0, "sb", "inprogress", 0, sb.inprogress)
  report:expect(0, "sb", "agblklog", math.max(0, M.ceil_log2(sb.agblocks)), sb.agblklog)
  report:expect(0, "sb", "agcount", (sb.dblocks + sb.agblocks - 1) // sb.agblocks, sb.agcount)
  if sb.features_incompat & NEEDSREPAIR ~= 0 then
    report:add { group = 0, structure = "sb", field = "features_incompat",
      why = "NEEDSREPAIR is set" }
  end
  if sb.features_incompat & META_UUID == 0 then
    report:expect(0, "sb", "meta_uuid", NULL_UUID, sb.meta_uuid)
  end
end

---The least power of two that is at least n, as its logarithm.
---@param n integer
---@return integer
function M.ceil_log2(n)
  local log2 = 0
  while 1 << log2 < n do
    log2 = log2 + 1
  end
  return log2
end

return M
