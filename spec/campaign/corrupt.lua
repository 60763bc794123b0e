-- The corruption campaign's mind: lists the metadata of an XFS image that brim check covers, and
-- makes seeded single corruptions of it. Independent of the checker: it reads the trees by itself.
-- Called by campaign.lua and by spec/check_spec.lua. Offsets are bytes.
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"

local M = {}

local TREES <const> = {
  { "bnobt", "agf", "bno_root", 8 }, { "cntbt", "agf", "cnt_root", 8 },
  { "rmapbt", "agf", "rmap_root", 40 }, { "refcountbt", "agf", "refcount_root", 4 },
  { "inobt", "agi", "root", 4 }, { "finobt", "agi", "free_root", 4 },
}
local HEADER_BYTES <const>, LONG_HEADER_BYTES <const> = 56, 72
local LITERAL_AT <const> = 176 -- of an inode: its forks
local EXTENTS <const>, BTREE <const> = 2, 3 -- formats of a fork
local CRC_AT <const> = { sb = 224, agf = 216, agi = 312, agfl = 32, inode = 100, bmbt = 64 }
local TREE_CRC_AT <const> = 52

-- What an off-by-one is tried on: offset and width within the structure.
local COUNTERS <const> = {
  sb0 = { { "icount", 128, 8 }, { "ifree", 136, 8 }, { "fdblocks", 144, 8 } },
  sb = { { "dblocks", 8, 8 }, { "agblocks", 84, 4 }, { "logblocks", 96, 4 } },
  agf = { { "flfirst", 40, 4 }, { "fllast", 44, 4 }, { "flcount", 48, 4 }, { "freeblks", 52, 4 },
    { "longest", 56, 4 }, { "btreeblks", 60, 4 }, { "bno_level", 28, 4 }, { "cnt_level", 32, 4 },
    { "length", 12, 4 }, { "rmap_blocks", 80, 4, "rmapbt" },
    { "refcount_blocks", 84, 4, "reflink" } },
  agi = { { "count", 16, 4 }, { "level", 24, 4 }, { "freecount", 28, 4 }, { "length", 12, 4 },
    { "iblocks", 336, 4, "inobtcount" }, { "fblocks", 340, 4, "inobtcount" } },
  tree = { { "level", 4, 2 }, { "numrecs", 6, 2 } },
  inode = { { "nblocks", 64, 8 }, { "nextents", 76, 4 }, { "big_nextents", 24, 8, "nrext64" },
    { "anextents", 80, 2, "short" } },
}

local function read(file, off_bytes, len_bytes)
  file:seek("set", off_bytes)
  return file:read(len_bytes)
end

M.read = read

-- The blocks of a tree of extents, below pointers that lie in a block or in an inode.
local function add_extent_tree(list, file, sb, ag, raw, at, count, level)
  for i = 0, count - 1 do
    local fsblock = (">I8"):unpack(raw, at + 8 * i)
    local block = fsblock & (1 << sb.agblklog) - 1
    local off = ((fsblock >> sb.agblklog) * sb.agblocks + block) * sb.blocksize
    local below = read(file, off, sb.blocksize)
    local n = (">I2"):unpack(below, 7)
    list[#list + 1] = { kind = "bmbt", ag = ag, off = off, len = sb.blocksize, is_tree = true,
      count = n, level = level - 1 }
    if level > 1 then
      local most = (sb.blocksize - LONG_HEADER_BYTES) // 16
      add_extent_tree(list, file, sb, ag, below, LONG_HEADER_BYTES + 8 * most + 1, n, level - 1)
    end
  end
end

local function add_inode(list, file, sb, ag, off)
  local raw = read(file, off, sb.inodesize)
  local mode, format, split = (">I2"):unpack(raw, 3), raw:byte(6), 8 * raw:byte(83)
  local room = split > 0 and split or sb.inodesize - LITERAL_AT
  local nrext64 = (">I8"):unpack(raw, 121) & 0x10 ~= 0
  local inode = { kind = "inode", ag = ag, off = off, len = sb.inodesize, nrext64 = nrext64,
    is_used = mode ~= 0 }
  list[#list + 1] = inode
  if mode == 0 then
    return
  elseif format == EXTENTS then
    inode.extents = nrext64 and (">I8"):unpack(raw, 25) or (">I4"):unpack(raw, 77)
  end
  for _, fork in ipairs { { format, LITERAL_AT, room },
    { split > 0 and raw:byte(84), LITERAL_AT + split, sb.inodesize - LITERAL_AT - split } } do
    if fork[1] == BTREE then
      local level, n = (">I2I2"):unpack(raw, fork[2] + 1)
      add_extent_tree(list, file, sb, ag, raw, fork[2] + 4 + 8 * ((fork[3] - 4) // 16) + 1, n,
        level)
    end
  end
end

-- The inodes of a leaf of an inode tree.
local function add_inodes(list, file, sb, ag, raw, count)
  for i = 0, count - 1 do
    local at = HEADER_BYTES + 16 * i + 1
    local startino, holemask = (">I4I2"):unpack(raw, at)
    if sb.features_incompat & 2 == 0 then
      holemask = 0
    end
    for k = 0, 63 do
      if holemask >> k // 4 & 1 == 0 then
        add_inode(list, file, sb, ag, ag * sb.agblocks * sb.blocksize
          + (startino + k) * sb.inodesize)
      end
    end
  end
end

local function add_tree(list, file, sb, tree, ag, block)
  local off = (ag * sb.agblocks + block) * sb.blocksize
  local raw = read(file, off, sb.blocksize)
  local level, count = (">I2I2"):unpack(raw, 5)
  list[#list + 1] = { kind = tree[1], ag = ag, off = off, len = sb.blocksize, is_tree = true,
    count = count, level = level }
  if level == 0 and tree[1] == "inobt" then
    add_inodes(list, file, sb, ag, raw, count)
  elseif level > 0 then
    local most = (sb.blocksize - HEADER_BYTES) // (tree[4] + 4)
    for i = 0, count - 1 do
      add_tree(list, file, sb, tree, ag, (">I4"):unpack(raw, HEADER_BYTES + most * tree[4] + 4 * i
        + 1))
    end
  end
end

---List the structures of an image: { kind, ag, off, len, ... }, and the superblock's fields.
---@param path string
---@return table[] list
---@return table sb
function M.list(path)
  local file <close> = assert(io.open(path, "rb"))
  local sb = ondisk.sb:decode(read(file, 0, 512), 0, 512)
  local list = {}
  for ag = 0, sb.agcount - 1 do
    local start = ag * sb.agblocks * sb.blocksize
    local headers = {}
    for i, kind in ipairs { "sb", "agf", "agi", "agfl" } do
      local off = start + (i - 1) * sb.sectsize
      list[#list + 1] = { kind = kind, ag = ag, off = off, len = sb.sectsize }
      headers[kind] = ondisk[kind]:decode(read(file, off, sb.sectsize), 0, sb.sectsize)
    end
    for _, tree in ipairs(TREES) do
      local root = headers[tree[2]][tree[3]]
      if root ~= 0 then
        add_tree(list, file, sb, tree, ag, root)
      end
    end
  end
  return list, sb
end

-- SplitMix64, as tap.h has it.
local function generator(seed)
  local state = seed
  return function(n)
    state = state + 0x9e3779b97f4a7c15
    local z = state
    z = (z ~ z >> 30) * 0xbf58476d1ce4e5b9
    z = (z ~ z >> 27) * 0x94d049bb133111eb
    return math.ult(n, 1) and 0 or ((z ~ z >> 31) >> 1) % n
  end
end

-- The structure with its checksum made right again.
local function sealed(s, raw)
  local at = CRC_AT[s.kind] or TREE_CRC_AT
  return layout.struct("sum", { size_bytes = #raw, crc32c = "crc" }) {
    { 0, ("bytes[%d]"):format(at), "before" }, { at, "u32le", "crc" },
    { at + 4, ("bytes[%d]"):format(#raw - at - 4), "behind" },
  }:encode { before = raw:sub(1, at), behind = raw:sub(at + 5) }
end

local function replace(raw, at, bytes)
  return raw:sub(1, at) .. bytes .. raw:sub(at + #bytes + 1)
end

local function counters_of(s, has)
  local list = {}
  for _, f in ipairs(COUNTERS[s.is_tree and "tree" or s.kind == "sb" and s.ag == 0 and "sb0"
    or s.kind] or {}) do
    if not f[4] or has(f[4]) then
      list[#list + 1] = f
    end
  end
  return list
end

local FEATURES <const> = { rmapbt = 2, reflink = 4, inobtcount = 8 }

local KINDS = {}

function KINDS.flip(_, s, raw, random)
  local at, bit = random(#raw), random(8)
  return { { s.off, replace(raw, at, string.char(raw:byte(at + 1) ~ 1 << bit)) } },
    ("bit %d of byte %d"):format(bit, at)
end

function KINDS.zero(_, s, raw)
  return { { s.off, ("\0"):rep(#raw) } }, ""
end

function KINDS.swap(x, s, raw, random)
  local others = {}
  for _, o in ipairs(x.list) do
    if o.kind == s.kind and o.off ~= s.off then
      others[#others + 1] = o
    end
  end
  local o = others[random(#others) + 1]
  local other = o and read(x.file, o.off, o.len)
  if not o or other == raw then
    return nil
  end
  return { { s.off, other }, { o.off, raw } }, ("with the one at %d"):format(o.off)
end

-- An inode of before only where it held other blocks: names and links are not looked at.
function KINDS.stale(x, s, raw)
  local old = x.old and read(x.old, s.off, s.len)
  if not old or old == raw or old:sub(1, 4) ~= raw:sub(1, 4)
    or s.kind == "inode" and old:sub(65, 72) == raw:sub(65, 72) then
    return nil
  end
  return { { s.off, old } }, "from before"
end

function KINDS.counter(x, s, raw, random)
  if s.kind == "inode" and not s.is_used then
    return nil
  end
  local list = counters_of(s, function(name)
    if s.kind == "inode" then
      return s.nrext64 == (name == "nrext64")
    end
    return x.sb.features_ro_compat & FEATURES[name] ~= 0
  end)
  local f = list[random(#list) + 1]
  if not f then
    return nil
  end
  local form = (">I%d"):format(f[3])
  local v = form:unpack(raw, f[2] + 1)
  local new = random(2) == 0 and v > 0 and v - 1 or v + 1
  return { { s.off, sealed(s, replace(raw, f[2], form:pack(new))) } },
    ("%s %d -> %d"):format(f[1], v, new)
end

-- Beyond what single events do: a bit of a record, with the checksum made right again.
function KINDS.forged(x, s, raw, random)
  local first, record = HEADER_BYTES, s.kind == "rmapbt" and 24 or s.kind == "refcountbt" and 12
    or s.kind:find "ino" and 16 or 8
  local count = s.is_tree and s.level == 0 and s.count or 0
  if s.kind == "inode" then
    first, count = LITERAL_AT, s.extents or 0
  elseif s.kind == "bmbt" then
    first, record = LONG_HEADER_BYTES, 16
  end
  if count == 0 then
    return nil
  end
  local bit = random(8 * record * count)
  if (s.kind == "inode" or s.kind == "bmbt") and x.sb.features_ro_compat & FEATURES.rmapbt == 0
    and bit % 128 < 55 then
    return nil -- where in its file an extent lies, only a reverse map knows as well
  end
  local at = first + bit // 8
  return { { s.off, sealed(s, replace(raw, at, string.char(raw:byte(at + 1) ~ 128 >> bit % 8))) } },
    ("bit %d of byte %d, checksum right"):format(7 - bit % 8, at)
end

-- Hostile: some bytes anywhere, with the checksum made right again.
function KINDS.random(_, s, raw, random)
  local most = s.kind == "sb" and 264 or (s.is_tree or s.kind == "inode") and #raw or 352
  for _ = 0, random(4) do
    local at = 4 + random(most - 4)
    local v = ({ 0, 255, random(256), raw:byte(at + 1) ~ 1 << random(8) })[random(4) + 1]
    raw = replace(raw, at, string.char(v))
  end
  return { { s.off, sealed(s, raw) } }, "random bytes, checksum right"
end

M.NAMES = { "flip", "zero", "swap", "stale", "counter" }

---Make the corruption of a seed: what to write, and in words what it is.
---@param image { list: table[], sb: table, file: file*, old?: file* }
---@param seed integer
---@param names? string[] the kinds to choose from
---@return table writes { { off, bytes }... }
---@return string what
---@return string kind
function M.make(image, seed, names)
  local random = generator(seed)
  names = names or M.NAMES
  for _ = 1, 1000 do
    local name = names[random(#names) + 1]
    -- A kind of structure first, so that rare ones are met too.
    local kinds, seen = {}, {}
    for _, s in ipairs(image.list) do
      if not seen[s.kind] then
        seen[s.kind] = {}
        kinds[#kinds + 1] = s.kind
      end
      table.insert(seen[s.kind], s)
    end
    local of = seen[kinds[random(#kinds) + 1]]
    local s = of[random(#of) + 1]
    local raw = read(image.file, s.off, s.len)
    local writes, what = KINDS[name](image, s, raw, random)
    if writes then
      return writes, ("%s of %s in group %d at %d: %s"):format(name, s.kind, s.ag, s.off, what),
        name
    end
  end
  error "no corruption fits this image"
end

---Write a corruption, or what was there before; returns what undoes it.
---@param path string
---@param writes table
---@return table undo
function M.apply(path, writes)
  local file <close> = assert(io.open(path, "r+b"))
  local undo = {}
  for i, w in ipairs(writes) do
    undo[i] = { w[1], read(file, w[1], #w[2]) }
  end
  for _, w in ipairs(writes) do
    file:seek("set", w[1])
    assert(file:write(w[2]))
  end
  return undo
end

return M
