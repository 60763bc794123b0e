-- brim.xfs.check_trees: the trees of a group as kinds for brim.walk, which header has each root,
-- and the faults of a walk as findings. Called by check and check_group.
local check_files = require "brim.xfs.check_files"
local ondisk = require "brim.xfs.ondisk"
local uuid = require "brim.uuid"
local walk = require "brim.walk"

local M = {}

local MAX_LEVELS <const> = 9 -- XFS_BTREE_MAXLEVELS

-- Records ascend by `order`; keys have the fields `key` of the first record below them.
local TREES <const> = {
  { name = "bnobt", header = "agf", root = "bno_root", level = "bno_level",
    key = { "startblock", "blockcount" }, order = { "startblock" }, strict = true },
  { name = "cntbt", header = "agf", root = "cnt_root", level = "cnt_level",
    key = { "startblock", "blockcount" }, order = { "blockcount", "startblock" }, strict = true },
  { name = "rmapbt", header = "agf", root = "rmap_root", level = "rmap_level", feature = "rmapbt",
    key = { "startblock", "owner" }, order = { "startblock", "owner" }, strict = false,
    reach = "startblock", reach_count = "blockcount" },
  { name = "refcountbt", header = "agf", root = "refcount_root", level = "refcount_level",
    feature = "reflink", key = { "startblock" }, order = { "startblock" }, strict = true },
  { name = "inobt", header = "agi", root = "root", level = "level",
    key = { "startino" }, order = { "startino" }, strict = true },
  { name = "finobt", header = "agi", root = "free_root", level = "free_level", feature = "finobt",
    key = { "startino" }, order = { "startino" }, strict = true },
}

M.TREES = TREES

local function leaf_of(c, name)
  return not c.has.sparse and ondisk[name .. "_full"] or ondisk[name]
end

---The longest read but for tree blocks: the headers of a group, or inodes.
---@param c brim.xfs.Checker
---@return integer
function M.read_bytes(c)
  return math.max(4 * c.sb.sectsize, check_files.read_bytes(c))
end

---Begin a walk with the trees this filesystem has: their kinds by name in c.kinds.
---@param c brim.xfs.Checker
---@return brim.Walk? walk
---@return brim.Error? err
function M.open(c)
  local sb = c.sb
  local w, err = walk.open(c.device, { block_bytes = sb.blocksize, read_bytes = M.read_bytes(c),
    group_bytes = c.address.ag_bytes, engine = c.run.engine, queue_depth = c.run.queue_depth,
    threads = c.run.threads, max_faults = 4096 })
  if not w then
    return nil, err
  end
  c.kinds = {}
  for _, t in ipairs(TREES) do
    if not t.feature or c.has[t.feature] then
      c.kinds[t.name] = w:tree { name = t.name, leaf = leaf_of(c, t.name),
        node = ondisk.node(t.name, sb.blocksize), magic = "magic", level = "level",
        count = "numrecs", left = "leftsib", right = "rightsib", address = "blkno",
        address_unit_bytes = 512, owner = "owner", uuid = "uuid", uuid_bytes = uuid.parse(c.uuid),
        records = "recs", keys = "keys", pointers = "ptrs", key = t.key, order = t.order,
        strict = t.strict, reach = t.reach, reach_count = t.reach_count }
    end
  end
  return w
end

---Start the walks of a group's trees, as far as its headers say where they are.
---@param c brim.xfs.Checker
---@param g table the group: ag, length, agf and agi if they can be used
---@param walker brim.Walk
function M.start(c, g, walker)
  g.jobs = {}
  for _, t in ipairs(TREES) do
    local header = g[t.header]
    if c.kinds[t.name] and header then
      local root, levels = header[t.root], header[t.level]
      if levels < 1 or levels > MAX_LEVELS then
        c.report:add { group = g.ag, structure = t.header, field = t.level, expected = MAX_LEVELS,
          found = levels, why = "1 to that" }
      elseif root < c.first_block or root >= g.length then
        c.report:add { group = g.ag, structure = t.header, field = t.root,
          expected = g.length - 1, found = root, why = "a block of the group" }
      else
        local job = assert(walker:start(c.kinds[t.name], g.ag, root, levels, c.first_block,
          g.length))
        g.jobs[t.name] = job
        c.jobs[job] = { ag = g.ag, name = t.name }
      end
    end
  end
end

local WORDS <const> = { key = "is not what the block above says",
  ["high key"] = "of the block above: the last block below it", order = "out of order",
  pointer = "points out of the group", ["pointer, twice"] = "points to a block met before" }

---Report what a walk found wrong in blocks.
---@param c brim.xfs.Checker
---@param walker brim.Walk
function M.report(c, walker)
  local k = 1
  local f = walker:fault(k)
  while f do
    local of = c.jobs[f.job]
    local field = f.what:match "^%a+"
    if f.element >= 0 then
      field = ("%s[%d]"):format(field, f.element)
    end
    local no_values = f.what == "checksum"
    c.report:add { group = of.ag, structure = ("%s block %d"):format(of.name, f.block),
      field = f.what == "high key" and "high key" or field,
      expected = not no_values and f.expected or nil, found = not no_values and f.found or nil,
      why = no_values and "is wrong" or WORDS[f.what] }
    k = k + 1
    f = walker:fault(k)
  end
end

return M
