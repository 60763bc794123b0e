-- brim.xfs.text: a geometry in the words of mkfs.xfs 6.1, byte for byte.
-- Called by the mkfs recipe and by inspect; the columns are those of xfsprogs, tools parse them.
-- Units: as printed by the reference, blocks ("blks") and bytes (bsize, isize, sectsz, extsz).
local M = {}

local FORMAT <const> = table.concat({
  "meta-data=%-22s isize=%-6d agcount=%d, agsize=%d blks",
  "         =%-22s sectsz=%-5d attr=2, projid32bit=1",
  "         =%-22s crc=%-8d finobt=%d, sparse=%d, rmapbt=%d",
  "         =%-22s reflink=%-4d bigtime=%d inobtcount=%d nrext64=%d",
  "data     =%-22s bsize=%-6d blocks=%d, imaxpct=%d",
  "         =%-22s sunit=%-6d swidth=%d blks",
  "naming   =version %-14d bsize=%-6d ascii-ci=0, ftype=1",
  "log      =%-22s bsize=%-6d blocks=%d, version=2",
  "         =%-22s sectsz=%-5d sunit=%d blks, lazy-count=1",
  "realtime =%-22s extsz=%-6d blocks=0, rtextents=0",
  "",
}, "\n")

local function bit(flag)
  return flag and 1 or 0
end

---Return the geometry block mkfs.xfs 6.1 prints on stdout, with its final newline.
---@param g brim.xfs.Geometry
---@param name string the target as the user named it
---@return string
function M.geometry(g, name)
  -- %-22s of Lua refuses embedded zeros; a path cannot hold one.
  return FORMAT:format(
    name, g.inode_bytes, g.ag_count, g.ag_blocks,
    "", g.sector_bytes,
    "", bit(g.crc), bit(g.finobt), bit(g.sparse), bit(g.rmapbt),
    "", bit(g.reflink), bit(g.bigtime), bit(g.inobtcount), bit(g.nrext64),
    "", g.block_bytes, g.data_blocks, g.max_inode_percent,
    "", g.stripe_unit_blocks, g.stripe_width_blocks,
    2, g.dir_block_bytes,
    "internal log", g.block_bytes, g.log_blocks,
    "", math.max(g.log_sector_bytes, 512), g.log_stripe_unit_bytes // g.block_bytes,
    "none", g.rt_extent_bytes)
end

return M
