-- brim.xfs.text: a geometry in the words of mkfs.xfs, byte for byte.
-- Called by the mkfs recipe and by inspect; the columns are those of xfsprogs, tools parse them.
-- Units: as printed by the reference, blocks ("blks") and bytes (bsize, isize, sectsz, extsz).
local versions = require "brim.xfs.versions"

local M = {}

-- Lines, and the releases that added one, or words at the end of one.
local LINES <const> = {
  { "meta-data=%-22s isize=%-6d agcount=%d, agsize=%d blks" },
  { "         =%-22s sectsz=%-5d attr=2, projid32bit=1" },
  { "         =%-22s crc=%-8d finobt=%d, sparse=%d, rmapbt=%d" },
  { "         =%-22s reflink=%-4d bigtime=%d inobtcount=%d nrext64=%d" },
  { "         =%-22s exchange=%-3d metadir=0", since = "6.13" },
  { "data     =%-22s bsize=%-6d blocks=%d, imaxpct=%d" },
  { "         =%-22s sunit=%-6d swidth=%d blks" },
  { "naming   =version %-14d bsize=%-6d ascii-ci=0, ftype=1", more = ", parent=%d" },
  { "log      =%-22s bsize=%-6d blocks=%d, version=2" },
  { "         =%-22s sectsz=%-5d sunit=%d blks, lazy-count=1" },
  { "realtime =%-22s extsz=%-6d blocks=0, rtextents=0" },
  { "         =%-22s rgcount=0    rgsize=0 extents", since = "6.13" },
  { "         =%-22s zoned=0      start=0 reserved=0", since = "7.2" },
}

local function bit(flag)
  return flag and 1 or 0
end

---Return the geometry block that the geometry's release of mkfs.xfs prints on stdout, with its
---final newline.
---@param g brim.xfs.Geometry without `compat`, of a filesystem that is there: the words of the
--- first release that has some for its features
---@param name string the target as the user named it
---@return string
function M.geometry(g, name)
  -- %-22s of Lua refuses embedded zeros; a path cannot hold one.
  local values = {
    { name, g.inode_bytes, g.ag_count, g.ag_blocks },
    { "", g.sector_bytes },
    { "", bit(g.crc), bit(g.finobt), bit(g.sparse), bit(g.rmapbt) },
    { "", bit(g.reflink), bit(g.bigtime), bit(g.inobtcount), bit(g.nrext64) },
    { "", bit(g.exchange) },
    { "", g.block_bytes, g.data_blocks, g.max_inode_percent },
    { "", g.stripe_unit_blocks, g.stripe_width_blocks },
    { 2, g.dir_block_bytes, bit(g.parent) },
    { "internal log", g.block_bytes, g.log_blocks },
    { "", math.max(g.log_sector_bytes, 512), g.log_stripe_unit_bytes // g.block_bytes },
    { "none", g.rt_extent_bytes },
    { "" },
    { "" },
  }
  local text = {}
  local compat = g.compat or (g.exchange or g.parent) and "6.13" or nil
  local is_old = versions.is_before(compat, "6.13")
  for i, line in ipairs(LINES) do
    if not (line.since and versions.is_before(compat, line.since)) then
      local format = line[1] .. (line.more and not is_old and line.more or "") .. "\n"
      text[#text + 1] = format:format(table.unpack(values[i]))
    end
  end
  return table.concat(text)
end

return M
