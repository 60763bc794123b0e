-- brim.xfs.check_files: which blocks files share, for filesystems without a reverse map to say so:
-- the inodes in use that carry the reflink flag are read, their extents collected by group, and
-- what several hold must be what the refcount trees say. Nothing else of inodes is looked at.
-- Called by check. Blocks are numbers within a group unless they are called fs blocks.
local check_inodes = require "brim.xfs.check_inodes"
local walk = require "brim.walk"

local M = {}

local PIECE <const> = 32 -- inodes read at once
local BATCH <const> = 256 -- reads handed to the walk together
local REFLINK <const>, NREXT64 <const> = 0x2, 0x10 -- of flags2
local REALTIME <const> = 1 -- of flags
local EXTENTS <const>, BTREE <const> = 2, 3 -- formats of a fork
local INODE_MAGIC <const>, BMBT_MAGIC <const> = 0x494e, 0x424d4133
local CORE_BYTES <const>, BMBT_HEADER_BYTES <const> = 176, 72
local RECORD_BYTES <const>, ROOT_HEADER_BYTES <const> = 16, 4
local MAX_LEVEL <const> = 9
local MAX_SHARE <const> = 0xffffffff

---How many bytes the walk must be able to read at once for this.
---@param c brim.xfs.Checker
---@return integer
function M.read_bytes(c)
  return PIECE * c.sb.inodesize
end

-- Adds an extent record of a file to its group; false where it lies nowhere.
local function add_record(c, raw, at)
  local l0, l1 = (">i8i8"):unpack(raw, at)
  local fsblock, count = (l0 & 0x1ff) << 43 | l1 >> 21, l1 & (1 << 21) - 1
  local ag, start = fsblock >> c.sb.agblklog, fsblock & (1 << c.sb.agblklog) - 1
  if ag >= c.sb.agcount or start + count > c.address:length(ag) then
    return false
  end
  c.files[ag] = c.files[ag] or walk.extents()
  c.files[ag]:add(start, count)
  return true
end

local function add_records(c, raw, from, count)
  for i = 0, count - 1 do
    if not add_record(c, raw, from + RECORD_BYTES * i) then
      c.files_unknown = true
    end
  end
end

-- Pointers of a node or a root: keys for as many as fit come before them.
local function add_pointers(list, raw, from, most, count, level)
  for i = 0, math.min(count, most) - 1 do
    list[#list + 1] = { (">i8"):unpack(raw, from + 8 * most + 8 * i), level - 1 }
  end
end

-- What an inode's data fork holds: extents at once, or blocks to be read.
local function take_inode(c, raw, at, blocks)
  local magic, mode, format = (">I2I2xB"):unpack(raw, at)
  local flags, flags2 = (">I2"):unpack(raw, at + 90), (">i8"):unpack(raw, at + 120)
  if magic ~= INODE_MAGIC or mode == 0 then
    c.files_unknown = true
    return
  elseif flags2 & REFLINK == 0 or flags & REALTIME ~= 0 then
    return
  end
  local count = flags2 & NREXT64 ~= 0 and (">i8"):unpack(raw, at + 24)
    or (">I4"):unpack(raw, at + 76)
  local fork_off = raw:byte(at + 82)
  local room = fork_off > 0 and 8 * fork_off or c.sb.inodesize - CORE_BYTES
  if room > c.sb.inodesize - CORE_BYTES then
    c.files_unknown = true
  elseif format == EXTENTS and count >= 0 and count <= room // RECORD_BYTES then
    add_records(c, raw, at + CORE_BYTES, count)
  elseif format == BTREE then
    local level, n = (">I2I2"):unpack(raw, at + CORE_BYTES)
    add_pointers(blocks, raw, at + CORE_BYTES + ROOT_HEADER_BYTES,
      (room - ROOT_HEADER_BYTES) // RECORD_BYTES, n, math.min(level, MAX_LEVEL))
  end
end

local function read(c, offsets, len_bytes)
  local raws, err = c.walk:read(offsets, len_bytes)
  return raws or error(err, 0)
end

local function take_block(c, raw, level, blocks)
  local magic, at, count = (">I4I2I2"):unpack(raw)
  local most = (c.sb.blocksize - BMBT_HEADER_BYTES) // RECORD_BYTES
  if magic ~= BMBT_MAGIC or at ~= level or count > most then
    c.files_unknown = true
  elseif level == 0 then
    add_records(c, raw, BMBT_HEADER_BYTES + 1, count)
  else
    add_pointers(blocks, raw, BMBT_HEADER_BYTES + 1, most, count, level)
  end
end

-- The blocks of files' extent trees, a batch at a time; each is read once at most.
local function read_blocks(c, blocks)
  local seen = {}
  while #blocks > 0 do
    local offsets, levels = {}, {}
    while #blocks > 0 and #offsets < BATCH do
      local fsblock, level = table.unpack(table.remove(blocks))
      local place = level >= 0 and not seen[fsblock] and c.address:block(fsblock)
      seen[fsblock] = true
      if place then
        offsets[#offsets + 1], levels[#levels + 1] = place.off_bytes, level
      else
        c.files_unknown = true
      end
    end
    for i, raw in ipairs(read(c, offsets, c.sb.blocksize)) do
      take_block(c, raw, levels[i], blocks)
    end
  end
end

-- Reads pieces of inode chunks and takes the inodes in use.
local function read_pieces(c, pieces)
  local offsets, blocks = {}, {}
  for i, p in ipairs(pieces) do
    offsets[i] = p[1]
  end
  for i, raw in ipairs(read(c, offsets, M.read_bytes(c))) do
    for k = 0, PIECE - 1 do
      if pieces[i][2] >> k & 1 ~= 0 then
        take_inode(c, raw, 1 + k * c.sb.inodesize, blocks)
      end
    end
  end
  read_blocks(c, blocks)
end

---Collect what the files of a walked group hold.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
function M.collect(c, g)
  local job = g.jobs.inobt
  if not job or not c.walk:job(job).is_complete or not g.chunks then
    c.files_unknown = true
    return
  end
  local records, pieces = c.walk:records(job), {}
  for at = 1, #records, check_inodes.RECORD_BYTES do
    local startino, holemask, _, _, free = check_inodes.record_at(c, records, at)
    local used = ~free & check_inodes.present(holemask)
    for first = 0, 63, PIECE do
      local mask = used >> first & (1 << PIECE) - 1
      if mask ~= 0 then
        pieces[#pieces + 1] = { c.address:group_bytes(g.ag, (startino + first) * c.sb.inodesize),
          mask }
      end
    end
    if #pieces >= BATCH then
      read_pieces(c, pieces)
      pieces = {}
    end
  end
  read_pieces(c, pieces)
end

---Keep what a group's refcount tree says, until all files have been read. Nothing is kept of an
---empty one: most are, and there may be millions.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
---@param shared? brim.Extents
function M.keep(c, g, shared)
  if not shared or #shared > 0 then
    c.shared[g.ag] = shared or false
  end
end

---Compare what files share with the refcount trees. Not where some file could not be read.
---@param c brim.xfs.Checker
function M.compare(c)
  if c.files_unknown then
    c.report:note "some inodes could not be read: shared blocks were not compared"
    return
  end
  for ag in pairs(c.files) do
    if c.shared[ag] == nil then
      c.shared[ag] = walk.extents()
    end
  end
  for ag, shared in pairs(c.shared) do
    local held = (c.files[ag] or walk.extents()):sort():depth(2):join()
    local which, start, count, tag
    if shared then
      which, start, count, tag = held:only(shared:tagged(2, MAX_SHARE):join())
    end
    if which then
      c.report:add { group = ag, structure = "refcountbt", field = "records",
        why = ("%d blocks at %d: %d files hold them by %s, not so by the other"):format(count,
          start, tag, which == 1 and "the inodes" or "this tree") }
    end
  end
end

return M
