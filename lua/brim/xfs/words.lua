-- brim.xfs.words: the words of the mkfs.xfs command line, as data: sub-options, flags, conflicts.
-- Called by options, which reads them. `since` is the release that brought a word (versions); what
-- becomes a geometry option has it in the schema.
local M = {}

-- How a sub-option's value is read. `name` is its key in the result.
--   size     bytes with a suffix, "s" and "b" allowed: read when sector and block are known
--   early    bytes with a suffix, read at once (they define sector and block)
--   number   no suffix       flag  0 or 1, 1 if no value is given      text  as it stands
--   threads  no suffix, or "nr_cpus", which is also what no value means
--   only     accepts `value` alone, the V5 default; `absent` if no value is given
local function size(name) return { read = "size", name = name } end
local function early(name) return { read = "early", name = name } end
local function count(name) return { read = "number", name = name } end
local function flag(name) return { read = "flag", name = name } end
local function threads(name) return { read = "threads", name = name } end
local function only(value, absent, reason, since)
  return { read = "only", value = value, absent = absent, reason = reason, since = since }
end
local function never(reason, since) return { read = "never", reason = reason, since = since } end

local EXTERNAL <const> = "brim makes internal logs only (yet)"
local ROOT_ATTRIBUTE <const> = "brim does not set attributes of the root directory (yet)"
local METADIR <const> = "brim makes no metadata directory (yet)"

---Sub-options by option letter and name, and how each is read.
M.SUBOPTIONS = {
  b = { size = early("block_bytes") },
  d = {
    agcount = count("ag_count"), agsize = size("ag_bytes"), file = flag("file"),
    name = { read = "text", name = "target" }, size = size("size_bytes"),
    sunit = count("sunit"), swidth = count("swidth"), su = size("su"), sw = count("sw"),
    sectsize = early("sector_bytes"), noalign = flag("no_align"),
    rtinherit = only("0", "1", ROOT_ATTRIBUTE), projinherit = never(ROOT_ATTRIBUTE),
    extszinherit = only("0", nil, ROOT_ATTRIBUTE), cowextsize = only("0", nil, ROOT_ATTRIBUTE),
    daxinherit = only("0", "1", ROOT_ATTRIBUTE), concurrency = threads("data_concurrency"),
  },
  i = {
    align = flag("inode_align"), maxpct = count("max_inode_percent"),
    perblock = count("inodes_per_block"), size = count("inode_bytes"),
    attr = only("2", nil, "attributes of a V5 filesystem are of version 2"),
    projid32bit = only("1", "1", "project ids of a V5 filesystem have 32 bits"),
    sparse = flag("sparse"), nrext64 = flag("nrext64"), exchange = flag("exchange"),
    max_atomic_write = never("brim sizes no log for atomic writes (yet)", "7.2"),
  },
  l = {
    agnum = count("log_ag"), internal = only("1", "1", EXTERNAL), size = size("log_bytes"),
    version = only("2", nil, "the log of a V5 filesystem is of version 2"),
    sunit = count("log_sunit"), su = size("log_stripe_unit_bytes"), logdev = never(EXTERNAL),
    sectsize = early("log_sector_bytes"), file = only("0", "1", EXTERNAL),
    name = never(EXTERNAL), ["lazy-count"] = flag("lazy_count"),
    concurrency = threads("log_concurrency"),
  },
  m = {
    crc = only("1", "1", "brim makes V5 (crc=1) filesystems only"), finobt = flag("finobt"),
    uuid = { read = "uuid", name = "uuid" }, rmapbt = flag("rmapbt"), reflink = flag("reflink"),
    inobtcount = flag("inobtcount"), bigtime = flag("bigtime"),
    metadir = only("0", "1", METADIR, "6.13"), autofsck = { read = "autofsck", name = "autofsck" },
    uquota = only("0", "1", METADIR, "6.13"), gquota = only("0", "1", METADIR, "6.13"),
    pquota = only("0", "1", METADIR, "6.13"), uqnoenforce = only("0", "1", METADIR, "6.13"),
    gqnoenforce = only("0", "1", METADIR, "6.13"), pqnoenforce = only("0", "1", METADIR, "6.13"),
  },
  n = {
    size = size("dir_block_bytes"),
    version = only("2", nil, "brim makes case-sensitive version 2 directories only (yet)"),
    ftype = only("1", "1", "directories of a V5 filesystem hold file types"),
    parent = flag("parent"),
  },
  s = { size = early("sector_bytes"), sectsize = early("sector_bytes") },
}

---Options with an argument that brim refuses as a whole.
M.REFUSED = {
  c = "brim reads no option files (yet)",
  p = "brim takes no prototype file (yet)",
  r = "brim makes no realtime section (yet)",
}

---Options without an argument, and what they become.
M.FLAGS = {
  C = "force", f = "force", K = "no_discard", N = "dry_run", q = "quiet", V = "print_version",
}

---Sub-options that exclude each other, by presence alone.
M.CONFLICTS = {
  { "-d agcount", "-d agsize" }, { "-d agcount", "-d concurrency" },
  { "-d agsize", "-d concurrency" }, { "-l size", "-l concurrency" },
  { "-i perblock", "-i size" }, { "-l sunit", "-l su" },
  { "-l internal", "-l sectsize" }, { "-l internal", "-l file" }, { "-s size", "-s sectsize" },
  { "-s size", "-d sectsize" }, { "-s sectsize", "-d sectsize" },
  { "-d sunit", "-d su" }, { "-d sunit", "-d sw" }, { "-d swidth", "-d su" },
  { "-d swidth", "-d sw" }, { "-d noalign", "-d sunit" }, { "-d noalign", "-d swidth" },
  { "-d noalign", "-d su" }, { "-d noalign", "-d sw" },
}

---Ranges of what is not in SCHEMA, from the 32-bit fields of the reference.
M.RANGES = {
  sunit = { 0, 0xffffffff }, swidth = { 0, 0xffffffff }, su = { 0, 0xffffffff },
  sw = { 0, 0xffffffff }, log_sunit = { 1, 512 },
}

return M
