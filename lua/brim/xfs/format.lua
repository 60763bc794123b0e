-- brim.xfs.format: a geometry -> the plan of a fresh V5 filesystem. Pure: it writes nothing. The
-- final state of each group is laid at once, where mkfs.xfs makes it in two passes. Called by
-- brim.xfs. Phases: the old signature is destroyed first, the primary superblock comes last, each
-- of them alone.
local group = require "brim.xfs.group"
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"
local plan = require "brim.plan"
local space = require "brim.xfs.space"
local versions = require "brim.xfs.versions"

local M = {}

local SECTOR_BYTES <const> = 512 -- what mkfs.xfs counts a device in
local WHACK_BYTES <const> = 128 << 10 -- what mkfs.xfs zeroes at both ends (WHACK_SIZE)
local BIGTIME_EPOCH_S <const> = 1 << 31 -- XFS_BIGTIME_EPOCH_OFFSET
local FLAGS2_BIGTIME <const>, FLAGS2_NREXT64 <const> = 0x8, 0x10
local FLAG_NEWRTBM <const> = 0x4
local MODE_DIR <const>, MODE_FILE <const> = 0x41ed, 0x8000 -- 040755, 0100000
local FORMAT_LOCAL <const>, FORMAT_EXTENTS <const> = 1, 2
local VERSION_ATTR <const> = 0x10
local AUTOFSCK_NAME <const>, ATTR_ROOT <const> = "xfs:autofsck", 2 -- of the trusted attributes
local ATTR_FORK_MIN_BYTES <const> = 36 -- of a tree's root with two pointers (XFS_BMDR_SPACE_CALC)
local INODES_USED <const> = 3 -- root directory, realtime bitmap and summary
local LOG_BUFFER_BYTES <const> = 32 << 10 -- of a log without a larger stripe unit
local LOG_SECTOR_BYTES <const> = 512 -- the log counts in basic blocks
local UNMOUNT_CLIENT <const>, UNMOUNT_FLAGS <const>, UNMOUNT_MAGIC <const> = 0xaa, 0x20, 0x556e
local LOG_ITEM_TID <const> = 0xb0c0d0d0 -- of the unmount record (mkfs writes it so)

-- Fields that hold the same in every copy of the superblock.
local function sb_common(g)
  return { blocksize = g.block_bytes, dblocks = g.data_blocks, uuid = g.uuid,
    logstart = g.log_start_fsb, rextsize = g.rt_extent_bytes >> g.block_log2,
    agblocks = g.ag_blocks, agcount = g.ag_count, logblocks = g.log_blocks,
    versionnum = g.version_num, sectsize = g.sector_bytes, inodesize = g.inode_bytes,
    inopblock = g.inodes_per_block,
    fname = g.label, blocklog = g.block_log2, sectlog = g.sector_log2, inodelog = g.inode_log2,
    inopblog = g.inodes_per_block_log2, agblklog = g.ag_blocks_log2,
    imax_pct = g.max_inode_percent, inoalignmt = g.inode_align_blocks,
    unit = g.stripe_unit_blocks, width = g.stripe_width_blocks,
    dirblklog = g.dir_block_log2 - g.block_log2, logsectlog = g.log_sector_log2,
    logsectsize = g.log_sector_bytes, logsunit = g.log_stripe_unit_bytes,
    features2 = g.features2, bad_features2 = g.features2, features_compat = g.features_compat,
    features_ro_compat = g.features_ro_compat, features_incompat = g.features_incompat,
    spino_align = g.sparse_align_blocks }
end

local function free_blocks(g)
  return g.data_blocks - g.ag_count * g.prealloc_blocks - g.log_blocks
end

-- The copy in a further group: as of the moment before the root inode was made, but that two of
-- them have its number for xfs_repair to find.
local function sb_copy(g, has_root)
  local v = sb_common(g)
  v.inprogress = 1
  v.fdblocks = free_blocks(g)
  v.rootino = has_root and g.root_ino or ondisk.NULL_FS_INODE
  v.rbmino, v.rsumino = ondisk.NULL_FS_INODE, ondisk.NULL_FS_INODE
  return ondisk.sb:at(0, g.sector_bytes)(v)
end

local function sb_primary(g)
  local v = sb_common(g)
  -- With an attribute, this one alone says that there are some.
  v.versionnum = v.versionnum | (g.autofsck and VERSION_ATTR or 0)
  v.icount, v.ifree = g.inode_chunk_inodes, g.inode_chunk_inodes - INODES_USED
  v.fdblocks = free_blocks(g) - g.inode_chunk_blocks
  v.rootino, v.rbmino, v.rsumino = g.root_ino, g.root_ino + 1, g.root_ino + 2
  return ondisk.sb:at(0, g.sector_bytes)(v)
end

local function timestamp(g, time_ns)
  local s, ns = time_ns // 1000000000, time_ns % 1000000000
  return g.bigtime and (s + BIGTIME_EPOCH_S) * 1000000000 + ns or s << 32 | ns
end

-- The inodes in use; `values` are what differs among them.
local function used_inode(g, name, ino, o, values)
  local stamp = timestamp(g, o.time_ns)
  values.ino, values.uuid, values.aformat = ino, g.uuid, values.aformat or FORMAT_EXTENTS
  values.changecount = values.changecount or 2
  values.atime = versions.of(g.compat).atimes[name] and stamp or timestamp(g, 0)
  values.mtime, values.ctime, values.crtime = stamp, stamp, stamp
  values.flags2 = (g.bigtime and FLAGS2_BIGTIME or 0) | (g.nrext64 and FLAGS2_NREXT64 or 0)
  return values
end

-- The root directory, and the attribute that says what xfs_scrub may do by itself; its fork begins
-- where one grown to a tree would just have room for two pointers.
local function root_directory(g)
  local fork = ondisk.dir_sf:encode { parent = g.root_ino }
  local values = { mode = MODE_DIR, nlink = 2, format = FORMAT_LOCAL, size = #fork }
  if g.autofsck then
    local literal_bytes = g.inode_bytes - ondisk.inode.size_bytes + 1
    values.forkoff = literal_bytes - ATTR_FORK_MIN_BYTES >> 3
    values.aformat, values.changecount = FORMAT_LOCAL, 4
    local header = ondisk.attr_sf:encode { count = 1,
      totsize = ondisk.attr_sf.size_bytes + 3 + #AUTOFSCK_NAME + #g.autofsck }
    fork = fork .. ("\0"):rep(values.forkoff * 8 - #fork) .. header
      .. string.char(#AUTOFSCK_NAME, #g.autofsck, ATTR_ROOT) .. AUTOFSCK_NAME .. g.autofsck
  end
  values.literal = { fork:byte(1, -1) }
  return values
end

-- The root directory keeps generation 0 in all releases.
local function inode_chunk(g, o)
  local root, list = g.root_ino, {}
  local generations = o.generations or { 0, 0, 0 }
  local function add(ino, values)
    list[#list + 1] = ondisk.inode:at(ino << g.inode_log2, g.inode_bytes)(values)
  end
  add(root, used_inode(g, "root", root, o, root_directory(g)))
  add(root + 1, used_inode(g, "bitmap", root + 1, o, { mode = MODE_FILE, nlink = 1,
    format = FORMAT_EXTENTS, flags = FLAG_NEWRTBM, gen = generations[2] }))
  add(root + 2, used_inode(g, "summary", root + 2, o, { mode = MODE_FILE, nlink = 1,
    format = FORMAT_EXTENTS, gen = generations[3] }))
  for ino = root + INODES_USED, root + g.inode_chunk_inodes - 1 do
    add(ino, { ino = ino, uuid = g.uuid, gen = generations[1] })
  end
  return list
end

-- The record that says the log is clean: headers, an unmount operation, stamped sectors.
local function log_record(g, off_bytes)
  local size = math.max(g.log_stripe_unit_bytes, LOG_BUFFER_BYTES)
  local headers = (size + LOG_BUFFER_BYTES - 1) // LOG_BUFFER_BYTES
  local sectors = math.max(2, g.log_stripe_unit_bytes // LOG_SECTOR_BYTES)
  local list = { ondisk.log_record:at(off_bytes) { cycle = 1, version = 2,
    len = (sectors - headers) * LOG_SECTOR_BYTES, lsn = 1 << 32, tail_lsn = 1 << 32,
    num_logops = 1, cycle_data = { LOG_ITEM_TID }, fmt = 1, fs_uuid = g.uuid, size = size } }
  for n = 1, sectors - 1 do
    local at = off_bytes + n * LOG_SECTOR_BYTES
    list[#list + 1] = n == headers
      and ondisk.log_op:at(at) { tid = 1, len = 8, clientid = UNMOUNT_CLIENT,
        flags = UNMOUNT_FLAGS, magic = UNMOUNT_MAGIC }
      or ondisk.log_sector:at(at) { cycle = 1 }
  end
  return list
end

-- Copies of an older filesystem's superblock, which a later repair could find.
local function erase_old(p, old, sector_bytes)
  local fit = old and (p.size_bytes - sector_bytes) // old.ag_bytes + 1 or 0
  local count = old and math.min(old.ag_count, fit) or 0
  if count > 1 then
    p:each(count - 1, function()
      return layout.bytes(0, sector_bytes, "old superblock")
    end, { first = 1, stride_bytes = old.ag_bytes, groups = false, name = "old superblocks" })
  end
end

local function lay_groups(p, g)
  local last, middle = g.ag_count - 1, (g.ag_count - 1) // 2
  local has_root = { [last] = true, [g.ag_count > 2 and middle or last] = true }
  local usual, laid = space.of(g), { [0] = true }
  if g.ag_count > 1 then
    p:each(g.ag_count - 1, function(ag)
      return sb_copy(g, false), group.headers(g, ag, usual, false)
    end, { name = "groups", first = 1 })
  end
  for _, ag in ipairs { g.log_ag, middle, last } do
    if not laid[ag] then
      laid[ag] = true
      p:group(ag, sb_copy(g, has_root[ag] or false), group.headers(g, ag, space.of(g, ag), false))
    end
  end
  p:group(0, group.headers(g, 0, space.of(g, 0), true))
end

---Build the plan of a fresh filesystem.
---@param g brim.xfs.Geometry with uuid set
---@param o { time_ns: integer, generations?: integer[], device_bytes?: integer, old?: { ag_count:
--- integer, ag_bytes: integer } } time of the three inodes; generation numbers of the free inodes,
--- the realtime bitmap and its summary (0 where none are given); the device's size, as signatures
--- lie at its end, not at the filesystem's; the geometry of a filesystem whose superblock copies
--- are to be erased
---@return brim.Plan plan not sealed yet
function M.plan(g, o)
  local size_bytes = math.max(g.size_bytes, (o.device_bytes or 0) // SECTOR_BYTES * SECTOR_BYTES)
  local p = plan.new { name = "xfs", size_bytes = size_bytes, group_bytes = g.ag_bytes }
  -- Alone, and first: what comes after it harms a filesystem that is one no longer.
  p:phase "signature"
  p:zero(0, WHACK_BYTES, "old signatures")
  p:phase "erase"
  p:zero(size_bytes - WHACK_BYTES, WHACK_BYTES, "end of device")
  erase_old(p, o.old, g.sector_bytes)
  p:phase "groups"
  local log_bytes = g.log_ag * g.ag_bytes + (g.log_agbno << g.block_log2)
  p:zero(log_bytes, g.log_blocks << g.block_log2, "log")
  p:put(log_record(g, log_bytes))
  p:put(inode_chunk(g, o))
  lay_groups(p, g)
  p:phase "superblock"
  p:put(sb_primary(g))
  return p
end

return M
