-- brim.xfs.inspect_words: what the values of an XFS structure mean, in words: flags by name, times
-- as UTC, nulls as such, addresses taken apart. Pure; called by inspect_view and inspect_*. Values
-- come as ondisk decodes them: 64-bit ones as bit patterns.
local ondisk = require "brim.xfs.ondisk"

local M = {}

local NULL32 <const>, NULL64 <const> = ondisk.NULL_AG_BLOCK, ondisk.NULL_FS_INODE
local BIGTIME_EPOCH_S <const> = 1 << 31
local NS_PER_S <const> = 1000000000

-- Quotient and rest of a bit pattern taken as unsigned.
local function unsigned_divide(v, by)
  if v >= 0 then
    return v // by, v % by
  end
  local q = (v >> 1) // by << 1
  local r = v - q * by
  if math.ult(r, by) then
    return q, r
  end
  return q + 1, r - by
end

---Write a 64-bit pattern as an unsigned number.
---@param v integer
---@return string
function M.unsigned(v)
  if v >= 0 then
    return tostring(v)
  end
  return ("%d%d"):format(unsigned_divide(v, 10))
end

---Write a string so that it stays on one line, its odd bytes as \xNN.
---@param s string
---@return string
function M.text(s)
  return (s:gsub(utf8.len(s) and "[%c\\]" or "[%c\\\x80-\xff]", function(c)
    return c == "\\" and "\\\\" or ("\\x%02x"):format(c:byte())
  end))
end

---Write bytes as hexadecimal digits.
---@param s string
---@return string
function M.hex(s)
  return (s:gsub(".", function(c)
    return ("%02x"):format(c:byte())
  end))
end

-- ----------------------------------------------------------------------- flags

-- Bit -> name, lowest first.
local FLAGS <const> = {
  versionnum = { [0x10] = "ATTR", [0x20] = "NLINK", [0x40] = "QUOTA", [0x80] = "ALIGN",
    [0x100] = "DALIGN", [0x200] = "SHARED", [0x400] = "LOGV2", [0x800] = "SECTOR",
    [0x1000] = "EXTFLG", [0x2000] = "DIRV2", [0x4000] = "BORG", [0x8000] = "MOREBITS" },
  features2 = { [0x2] = "LAZYSBCOUNT", [0x8] = "ATTR2", [0x10] = "PARENT", [0x80] = "PROJID32BIT",
    [0x100] = "CRC", [0x200] = "FTYPE" },
  features_compat = {},
  features_ro_compat = { [1] = "FINOBT", [2] = "RMAPBT", [4] = "REFLINK", [8] = "INOBTCNT" },
  features_incompat = { [1] = "FTYPE", [2] = "SPARSE_INODES", [4] = "META_UUID", [8] = "BIGTIME",
    [0x10] = "NEEDSREPAIR", [0x20] = "NREXT64", [0x40] = "EXCHANGE", [0x80] = "PARENT",
    [0x100] = "METADIR", [0x200] = "ZONED", [0x400] = "ZONE_GAPS" },
  features_log_incompat = { [1] = "XATTRS" },
  qflags = { [1] = "UQUOTA_ACCT", [2] = "UQUOTA_ENFD", [4] = "UQUOTA_CHKD", [8] = "PQUOTA_ACCT",
    [0x10] = "OQUOTA_ENFD", [0x20] = "OQUOTA_CHKD", [0x40] = "GQUOTA_ACCT",
    [0x80] = "GQUOTA_ENFD", [0x100] = "GQUOTA_CHKD", [0x200] = "PQUOTA_ENFD",
    [0x400] = "PQUOTA_CHKD" },
  flags = { [1] = "REALTIME", [2] = "PREALLOC", [4] = "NEWRTBM", [8] = "IMMUTABLE",
    [0x10] = "APPEND", [0x20] = "SYNC", [0x40] = "NOATIME", [0x80] = "NODUMP",
    [0x100] = "RTINHERIT", [0x200] = "PROJINHERIT", [0x400] = "NOSYMLINKS", [0x800] = "EXTSIZE",
    [0x1000] = "EXTSZINHERIT", [0x2000] = "NODEFRAG", [0x4000] = "FILESTREAM" },
  flags2 = { [1] = "DAX", [2] = "REFLINK", [4] = "COWEXTSIZE", [8] = "BIGTIME",
    [0x10] = "NREXT64", [0x20] = "METADATA" },
  attr_flags = { [1] = "LOCAL", [2] = "ROOT", [4] = "SECURE", [8] = "PARENT",
    [0x80] = "INCOMPLETE" },
}

---The names of the bits that are set; those without a name as a number.
---@param kind string a field's name, or "attr_flags"
---@param v integer
---@return string[]
function M.flags(kind, v)
  local names, rest = {}, v
  for shift = 0, 63 do
    local name = FLAGS[kind][1 << shift]
    if name and v & 1 << shift ~= 0 then
      names[#names + 1] = name
      rest = rest & ~(1 << shift)
    end
  end
  if rest ~= 0 then
    names[#names + 1] = ("unknown 0x%x"):format(rest)
  end
  return names
end

local function show_flags(kind, v)
  local names = M.flags(kind, v)
  return #names > 0 and ("0x%x (%s)"):format(v, table.concat(names, ", ")) or ("0x%x"):format(v)
end

-- ---------------------------------------------------------------------- inodes

---A time stamp of an inode as UTC.
---@param v integer the field
---@param is_big boolean whether the inode has the BIGTIME flag
---@return string
function M.time(v, is_big)
  local s, ns
  if is_big then
    s, ns = unsigned_divide(v, NS_PER_S)
    s = s - BIGTIME_EPOCH_S
  else
    s, ns = v >> 32, v & NULL32
    s = s >= 1 << 31 and s - (1 << 32) or s
  end
  return ("%s.%09d UTC"):format(os.date("!%Y-%m-%d %H:%M:%S", s), ns)
end

local TYPES <const> = { [1] = "p", [2] = "c", [4] = "d", [6] = "b", [8] = "-", [10] = "l",
  [12] = "s" }
local TYPE_NAMES <const> = { [1] = "fifo", [2] = "character device", [4] = "directory",
  [6] = "block device", [8] = "file", [10] = "symbolic link", [12] = "socket" }

---What kind of file a mode says: "file", "directory", ...
---@param mode integer
---@return string
function M.file_type(mode)
  return TYPE_NAMES[mode >> 12] or mode == 0 and "free" or "of no known type"
end

-- The three letters of one class; `special` is what a set-id or sticky bit shows instead of x.
local function letters(bits, is_special, special)
  local x = bits & 1 ~= 0
  local last = is_special and (x and special or special:upper()) or x and "x" or "-"
  return (bits & 4 ~= 0 and "r" or "-") .. (bits & 2 ~= 0 and "w" or "-") .. last
end

---A mode as ls writes it, with the octal number: "0100644 -rw-r--r--".
---@param mode integer
---@return string
function M.mode(mode)
  if mode == 0 then
    return "0"
  end
  return ("0%o %s%s%s%s"):format(mode, TYPES[mode >> 12] or "?",
    letters(mode >> 6 & 7, mode & 0x800 ~= 0, "s"), letters(mode >> 3 & 7, mode & 0x400 ~= 0, "s"),
    letters(mode & 7, mode & 0x200 ~= 0, "t"))
end

M.FORMATS = { [0] = "dev", "local", "extents", "btree", "uuid", "tree of realtime metadata" }
M.FILE_TYPES = { [0] = "unknown", "file", "directory", "character device", "block device", "fifo",
  "socket", "symbolic link", "whiteout" }

local function format_name(v)
  return ("%d (%s)"):format(v, M.FORMATS[v] or "unknown")
end

---A device number, as XFS keeps it.
---@param v integer
---@return string
function M.device(v)
  return ("%d:%d"):format(v >> 18 & 0x3fff, v & 0x3ffff)
end

-- -------------------------------------------------------------------- addresses

local OWNERS <const> = { [-1] = "null", [-2] = "unknown" }
for name, v in pairs(ondisk.OWNER) do
  OWNERS[v] = name
end

---The owner of a reverse map record: an inode's number, or what else owns blocks.
---@param v integer
---@return string
function M.owner(v)
  return OWNERS[v] and ("%d %s"):format(v, OWNERS[v]) or M.unsigned(v)
end

---Take the offset of a reverse map record apart.
---@param v integer
---@return integer offset_blocks
---@return { attr_fork: boolean, bmbt_block: boolean, unwritten: boolean }
function M.rmap_offset(v)
  return v & (1 << 54) - 1, { attr_fork = v < 0, bmbt_block = v & 1 << 62 ~= 0,
    unwritten = v & 1 << 61 ~= 0 }
end

local function show_rmap_offset(v)
  local offset, is = M.rmap_offset(v)
  return offset .. (is.attr_fork and " attr fork" or "") .. (is.bmbt_block and " bmbt" or "")
    .. (is.unwritten and " unwritten" or "")
end

---A log sequence number.
---@param v integer
---@return string
function M.lsn(v)
  return v == 0 and "0" or v == NULL64 and "null" or ("%d:%d (cycle:block)"):format(v >> 32,
    v & NULL32)
end

local function fs_block(v, fs)
  if v == NULL64 then
    return "null"
  elseif not fs or not fs.address or v == 0 then
    return M.unsigned(v)
  end
  local log2 = fs.address.ag_log2
  return ("%s (%s:%d)"):format(M.unsigned(v), M.unsigned(v >> log2), v & (1 << log2) - 1)
end

M.fs_block = fs_block

-- ------------------------------------------------------------------------ words

local function hex_of(v)
  return ("0x%x"):format(v)
end

local function stamp(v, values)
  return M.time(v, values.flags2 & 8 ~= 0)
end

local function quota_of(kind)
  return function(v) return show_flags(kind, v) end
end

-- Layout -> field -> function(v, values): the words; "*" is for every layout.
local WORDS <const> = {
  ["*"] = { lsn = M.lsn, tail_lsn = M.lsn, hashval = hex_of, crc = hex_of },
  sb = { versionnum = function(v)
    return ("0x%x (version %d, %s)"):format(v, v & 15,
      table.concat(M.flags("versionnum", v & ~15), ", "))
  end, bad_features2 = quota_of "features2" },
  inode = { mode = function(v) return ("%s (%s)"):format(M.mode(v), M.file_type(v)) end,
    format = format_name, aformat = format_name, atime = stamp, mtime = stamp, ctime = stamp,
    crtime = stamp, flags = quota_of "flags", flags2 = quota_of "flags2" },
  inobt_rec = { holemask = hex_of, free = hex_of },
  rmap_rec = { owner = M.owner, offset = show_rmap_offset },
  rmap_bound = { owner = M.owner, offset = show_rmap_offset },
  log_record = { cycle_data = hex_of },
  attr_leaf_entry = { flags = quota_of "attr_flags" },
}
for name in pairs(FLAGS) do
  if name:find "^feat" or name == "qflags" then
    WORDS.sb[name] = quota_of(name)
  end
end

-- Inodes that may be absent; a block address has its unit to say so.
local NULL_INODES <const> = { rootino = true, rbmino = true, rsumino = true, uquotino = true,
  gquotino = true, pquotino = true }

local function ascii(v, width_bytes)
  local s = ("I" .. width_bytes):pack(v):reverse()
  return s:find "^[%g ]+$" and (' "%s"'):format(s) or ""
end

local function is_null(field, v)
  return field.width_bytes == 4 and v == NULL32
    and (field.value == NULL32 or field.unit == "group block")
    or v == NULL64 and field.width_bytes == 8
    and (field.value == NULL64 or NULL_INODES[field.name])
end

---A field's value in words, without its unit.
---@param layout brim.Layout
---@param field brim.Field
---@param v any
---@param values table the structure's other values
---@param fs? brim.xfs.Inspector
---@return string
function M.value(layout, field, v, values, fs)
  local word = (WORDS[layout.name] or {})[field.name] or WORDS["*"][field.name]
  if field.kind == "uuid" then
    return v
  elseif field.kind == "char" then
    return ('"%s"'):format(M.text(v))
  elseif field.kind == "bytes" then
    return M.hex(v)
  elseif field.magic then
    return hex_of(v) .. ascii(v, field.width_bytes)
  elseif word then
    return word(v, values)
  elseif is_null(field, v) then
    return "null"
  elseif field.unit == "fs block address" then
    return fs_block(v, fs)
  end
  return M.unsigned(v)
end

return M
