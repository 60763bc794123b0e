-- brim.xfs.check_files: the inodes of walked groups, read by chunks at full queue depth: each by
-- itself, and what its two forks hold as rows of a table, with the extent trees that begin in them.
-- The core reads and decodes (core/objects.c); here is what an XFS inode looks like. Called by
-- check; check_held compares the rows with what the groups say of their blocks.
local check_inodes = require "brim.xfs.check_inodes"
local core = require "brim.core"
local ondisk = require "brim.xfs.ondisk"
local uuid = require "brim.uuid"
local walk = require "brim.walk"

local M = {}

local PIECE <const> = 32 -- inodes read at once
local BATCH <const> = 1024 -- pieces read together
local RANGE_VALUES <const> = 4 -- of a piece, in the list for the walk
local LITERAL_AT <const> = 176 -- where the forks begin
local MAX_BATCH_FAULTS <const> = 4096

-- Formats of forks, and those that each type of file may have, by the top bits of its mode.
local DEV <const>, LOCAL <const>, EXTENTS <const>, BTREE <const> = 0, 1, 2, 3
local META_BTREE <const> = 5 -- of realtime metadata: not looked at
local function mask(...)
  local bits = 0
  for _, format in ipairs { ... } do
    bits = bits | 1 << format
  end
  return bits
end
local SPECIAL <const> = mask(DEV)
local FORMATS <const> = { [1] = SPECIAL, [2] = SPECIAL, [4] = mask(LOCAL, EXTENTS, BTREE),
  [6] = SPECIAL, [8] = mask(EXTENTS, BTREE), [10] = mask(LOCAL, EXTENTS, BTREE),
  [12] = SPECIAL }

local function with_meta_tree()
  local kinds = {}
  for kind, formats in pairs(FORMATS) do
    kinds[kind] = formats
  end
  kinds[8] = kinds[8] | mask(META_BTREE)
  return kinds
end

---How many bytes the walk must be able to read at once for this.
---@param c brim.xfs.Checker
---@return integer
function M.read_bytes(c)
  return PIECE * c.sb.inodesize
end

-- The tree that holds the extents of one fork, as a kind for the walk.
local function extent_tree(c)
  return c.walk:tree { name = "bmbt", leaf = ondisk.bmbt,
    node = ondisk.node("bmbt", c.sb.blocksize), magic = "magic", level = "level",
    count = "numrecs", left = "leftsib", right = "rightsib", address = "blkno",
    address_unit_bytes = 512, owner = "owner", uuid = "uuid", uuid_bytes = uuid.parse(c.uuid),
    records = "recs", keys = "keys", pointers = "ptrs", key = { "startoff" }, record_key = "l0",
    key_shift = 9, key_bits = 54 }
end

---Tell the walk what inodes look like, and begin the table of what they hold.
---@param c brim.xfs.Checker
function M.open(c)
  local sb = c.sb
  c.held = walk.table(sb.agblklog)
  c.bad_inodes = {}
  c.walk:object { layout = ondisk.inode, object_bytes = sb.inodesize, body_at = LITERAL_AT,
    magic = "magic", number = "ino", uuid = "uuid", uuid_bytes = uuid.parse(c.uuid), use = "mode",
    kind_shift = 12, kinds = c.has.metadir and with_meta_tree() or FORMATS,
    none = "next_unlinked", blocks = "nblocks", split = "forkoff", split_bytes = 8,
    forks = { { format = "format", count = "nextents", wide_count = "big_nextents" },
      { format = "aformat", count = "anextents", wide_count = "nextents",
        formats = mask(LOCAL, EXTENTS, BTREE), tag = ondisk.RMAP_ATTR_FORK } },
    list_format = EXTENTS, tree_format = BTREE, opaque_formats = mask(META_BTREE),
    wide = { field = "flags2", mask = 0x10 }, away = { field = "flags", mask = 1 },
    record = { record_bytes = 16, flag = { 0, 1 }, offset = { 1, 54 }, start = { 55, 52 },
      count = { 107, 21 } },
    flag_tag = ondisk.RMAP_UNWRITTEN, tree_tag = ondisk.RMAP_BMBT_BLOCK, tree = extent_tree(c),
    root = ondisk.bmdr(20), group_log2 = sb.agblklog, group_blocks = sb.agblocks,
    last_group_blocks = c.address.last_ag_blocks, group_count = sb.agcount,
    first_block = c.first_block }
end

-- --------------------------------------------------------------------- reading

local WORDS <const> = { checksum = "the checksum is wrong", order = "out of order",
  uuid = "is not the filesystem's", free = "the inode tree has it in use",
  pointer = "points nowhere", ["pointer, twice"] = "points to a block met before",
  key = "is not what the block above says" }

local function add_fault(c, f)
  local ino = f.object
  local field = f.what
  if f.element >= 0 then
    field = ("%s[%d]"):format(field, f.element)
  end
  if f.job then
    field = ("extent tree block %d, %s"):format(f.block, field)
  end
  local why = WORDS[f.what]
  local plain = f.what == "checksum" or f.what == "free" or f.what == "uuid"
  if f.what == "in use" then
    plain, why = true, "the inode tree has it free"
  elseif f.what == "extent" then
    plain, why = true, ("%d blocks at %d are not within a group"):format(f.expected, f.found)
  end
  c.report:add { group = ino >> c.sb.agblklog + c.sb.inopblog,
    structure = ("inode %d"):format(ino), field = field,
    expected = not plain and f.expected or nil, found = not plain and f.found or nil, why = why }
end

local function report(c)
  local k = 1
  local f = c.walk:fault(k)
  while f do
    add_fault(c, f)
    k = k + 1
    f = c.walk:fault(k)
  end
  if k > MAX_BATCH_FAULTS then
    c.report:note "inodes are damaged in more ways than were kept"
  end
end

-- Some pieces at once.
local function read(c, pieces)
  local result, err = c.walk:objects(pieces, PIECE, c.held)
  if not result then
    error(err, 0)
  end
  for _, ino in ipairs(result.bad) do
    c.bad_inodes[ino] = true
    c.has_bad_inodes = true
  end
  c.counts.inodes = c.counts.inodes + result.used
  report(c)
  c.walk:reset()
end

---Remember which inodes a walked group has, from its inode tree; while that is at hand.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
function M.collect(c, g)
  local job = g.jobs.inobt
  g.pieces = {}
  if not job or not c.walk:job(job).is_complete or not g.chunks then
    c.files_unknown = true
    return
  end
  local records, list = c.walk:records(job), g.pieces
  for at = 1, #records, check_inodes.RECORD_BYTES do
    local startino, holemask, _, _, free = check_inodes.record_at(c, records, at)
    local there = check_inodes.present(holemask)
    for first = 0, 63, PIECE do
      local present = there >> first & (1 << PIECE) - 1
      if present ~= 0 then
        local n = #list
        list[n + 1] = c.address:group_bytes(g.ag, (startino + first) * c.sb.inodesize)
        list[n + 2] = c.address:inode_number(g.ag, startino + first)
        list[n + 3] = present
        list[n + 4] = present & ~(free >> first)
      end
    end
  end
end

---Read the inodes of walked groups; the walk has nothing else to do.
---@param c brim.xfs.Checker
---@param groups brim.xfs.Group[]
function M.read(c, groups)
  local batch, most = {}, BATCH * RANGE_VALUES
  for _, g in ipairs(groups) do
    for at = 1, #g.pieces, RANGE_VALUES do
      table.move(g.pieces, at, at + RANGE_VALUES - 1, #batch + 1, batch)
      if #batch == most then
        read(c, batch)
        batch = {}
        if core.interrupted() or not c.tick "inodes" then
          c.stopped = "cancelled"
          return
        end
      end
    end
    g.pieces = nil
  end
  read(c, batch)
end

return M
