-- brim.xfs.check: does a target hold a sound XFS? Groups that are as mkfs made them are compared
-- with what it writes, at full queue depth; the trees of the others are walked, in windows, level
-- by level across all groups of a window, and their inodes are read. It never writes. Called by the
-- recipe check and scripts. Memory: what the trees of the largest group take, and while inodes are
-- looked at some 36 bytes for each extent of a file, as two groups may have parts of one.
--
--   local result = assert(check.run("/dev/sdx"))
--   print(result.clean, result.text)
local check_files = require "brim.xfs.check_files"
local check_fresh = require "brim.xfs.check_fresh"
local check_group = require "brim.xfs.check_group"
local check_held = require "brim.xfs.check_held"
local check_progress = require "brim.xfs.check_progress"
local check_report = require "brim.xfs.check_report"
local check_sb = require "brim.xfs.check_sb"
local check_space = require "brim.xfs.check_space"
local check_trees = require "brim.xfs.check_trees"
local core = require "brim.core"
local device = require "brim.device"
local errors = require "brim.error"
local group = require "brim.xfs.group"
local inspect = require "brim.xfs.inspect"
local ondisk = require "brim.xfs.ondisk"
local opts = require "brim.opts"
local plan = require "brim.plan"
local scan = require "brim.scan"

local M = {}

local WINDOW_GROUPS <const> = 64 -- headers read together
local WINDOW_BLOCKS <const> = 2048 -- tree blocks walked together, unless one group has more

---@class brim.xfs.Checker
---@field device brim.Device
---@field sb table the primary superblock's fields
---@field has_gap? boolean something lies between headers and trees that mkfs did not write
---@field copy? string the sector that fresh groups have as their superblock
---@field free_list_blocks? integer what the AGF beside it says
---@field has table<string, boolean> features
---@field address brim.xfs.Address
---@field uuid string of the metadata
---@field first_block integer behind the headers
---@field log? { ag: integer, agbno: integer }
---@field report brim.xfs.Report
---@field walk brim.Walk
---@field kinds table<string, integer>
---@field jobs table<integer, { ag: integer, name: string }>
---@field icount integer
---@field ifree integer
---@field fdblocks integer
---@field is_counted boolean whether these three are complete
---@field reads_files boolean whether inodes are read
---@field held brim.Table what files hold
---@field bad_inodes table<integer, true> those of which not all is held
---@field has_bad_inodes? boolean
---@field files_unknown? boolean some inodes are not known to be there
---@field maps table<integer, integer|false> root and levels of reverse maps with files, by group
---@field shared table<integer, brim.Extents|false> what the refcount trees say, by group
---@field room table<integer, brim.Extents|false> blocks that nothing but files may have, by group
---@field to_walk integer groups known to need it
---@field tick fun(phase: string): boolean tells progress; false where an end is wanted

---@class brim.xfs.CheckResult
---@field clean boolean
---@field findings brim.xfs.Finding[] the first of them
---@field finding_count integer
---@field log string "clean", "dirty", "external", ...
---@field text string

local SCHEMA = {
  max_findings = { type = "int", default = 1000, min = 1, max = 1 << 20,
    doc = "findings kept and shown" },
  shallow = { type = "bool", doc = "never read inodes" },
}
for name, spec in pairs(plan.ENGINE_SCHEMA) do
  if name ~= "max_mismatches" then
    SCHEMA[name] = spec
  end
end

---Read the headers and tree roots of every group back: magic numbers, the group's number and place,
---UUIDs, and the CRC of each sector or block. They must be where a fresh filesystem has them.
---@param target string|brim.Device
---@param g brim.xfs.Geometry
---@param o? table engine, queue_depth, progress, ...: as for plan:write
---@return brim.RunResult? result its mismatch_count is 0 when all hold
---@return brim.Error? err
function M.headers(target, g, o)
  local run = { count = g.ag_count, stride_bytes = g.ag_bytes }
  for name, v in pairs(o or {}) do
    run[name] = v
  end
  return scan.new(function(ag)
    return group.identities(g, ag)
  end):run(target, run)
end

-- ---------------------------------------------------------------------- opening

local function log_place(c)
  if c.sb.logstart == 0 then
    return nil
  end
  local place, why = c.address:block(c.sb.logstart)
  if not place then
    c.report:add { group = 0, structure = "sb", field = "logstart", why = why }
  end
  return place
end

local function log_state(c, fs)
  if c.sb.logstart == 0 then
    return "external"
  end
  local ok, view = pcall(fs.log, fs)
  return ok and view and view.state or "damaged"
end

-- Raises what makes a target no XFS, or none that can be read.
local function open(c, fs, o)
  if not fs.address then
    error(errors.usage("%s holds no XFS that can be checked: %s", fs.target, fs.damage), 0)
  end
  c.sb, c.has, c.address, c.uuid = fs.primary, fs.has, fs.address, fs.uuid
  local why = check_sb.primary(c, fs:must_read(0, c.sb.sectsize))
  if why then
    error(errors.usage("%s: %s", fs.target, why), 0)
  end
  local bytes = core.mul(c.sb.dblocks, c.sb.blocksize)
  local others = core.mul(c.sb.agcount - 1, c.sb.agblocks)
  if not bytes or not others or c.sb.dblocks < 1 or bytes > fs.size_bytes
    or others >= c.sb.dblocks or c.sb.dblocks - others > c.sb.agblocks then
    error(errors.usage("%s has %d bytes, its superblock says %d blocks in %d groups of %d",
      fs.target, fs.size_bytes, c.sb.dblocks, c.sb.agcount, c.sb.agblocks), 0)
  end
  c.first_block = (3 * c.sb.sectsize >> c.sb.blocklog) + 1
  c.log = log_place(c)
  c.log_state = log_state(c, fs)
  c.reads_files = c.log_state == "clean" and not o.shallow
  c.run = {}
  for name in pairs(plan.ENGINE_SCHEMA) do
    c.run[name] = o[name]
  end
end

-- ---------------------------------------------------------------------- walking

-- Walks what the headers of some groups point to, and compares it all.
local function walk_groups(c, groups)
  c.jobs = {}
  for _, g in ipairs(groups) do
    check_trees.start(c, g, c.walk)
  end
  local ok, err = c.walk:run()
  if not ok then
    error(err, 0)
  end
  check_trees.report(c, c.walk)
  for _, g in ipairs(groups) do
    for _, job in pairs(g.jobs) do
      local done = c.walk:job(job)
      c.counts.tree_blocks = c.counts.tree_blocks + done.blocks
      c.counts.records = c.counts.records + done.records
    end
    local shared, claims = check_space.check(c, g)
    if c.reads_files then
      check_held.keep(c, g, shared, claims)
      check_files.collect(c, g)
    end
  end
  c.walk:reset()
  if c.reads_files then
    check_files.read(c, groups)
  end
  c.counts.groups_walked = c.counts.groups_walked + #groups
  collectgarbage()
end

-- The first sectors of groups, checked; in parts that are not too much at once.
local function walk_window(c, list)
  local offsets = {}
  for i, ag in ipairs(list) do
    offsets[i] = c.address:group_bytes(ag)
  end
  local raws, err = c.walk:read(offsets, 4 * c.sb.sectsize)
  if not raws then
    error(err, 0)
  end
  local part, weight = {}, 0
  for i, ag in ipairs(list) do
    local g = check_group.headers(c, ag, raws[i])
    if #part > 0 and weight + check_group.weight(g) > WINDOW_BLOCKS then
      walk_groups(c, part)
      if c.stopped then
        return
      end
      part, weight = {}, 0
    end
    part[#part + 1], weight = g, weight + check_group.weight(g)
  end
  walk_groups(c, part)
end

local function walk_list(c, list)
  c.to_walk = c.to_walk + #list
  for first = 1, #list, WINDOW_GROUPS do
    if c.stopped or core.interrupted() or not c.tick "trees" then
      c.stopped = c.stopped or "cancelled"
      return
    end
    walk_window(c, table.move(list, first, math.min(first + WINDOW_GROUPS - 1, #list), 1, {}))
  end
end

-- A sound copy of the superblock, as all groups but a few have it, and how long the free list there
-- is, which depends on the release that made it; nil where there is none.
local function find_copy(c, fs)
  for ag = 1, math.min(3, c.sb.agcount - 2) do
    local raw = fs:must_read(c.address:group_bytes(ag), c.sb.sectsize)
    -- mkfs.xfs does not write what is between the headers and the first tree: maybe it is not zero.
    local gap = fs:must_read(c.address:group_bytes(ag, 4 * c.sb.sectsize),
      (c.first_block << c.sb.blocklog) - 4 * c.sb.sectsize)
    c.has_gap = c.has_gap or gap:find "[^\0]" ~= nil
    local quiet = setmetatable({ report = check_report.new(1) }, { __index = c })
    if check_sb.check(quiet, ag, raw) then
      local agf = fs:must_read(c.address:group_bytes(ag, c.sb.sectsize), c.sb.sectsize)
      return raw, ondisk.agf:decode(agf, 0, c.sb.sectsize).flcount
    end
  end
end

local function check_groups(c, fs)
  c.copy, c.free_list_blocks = find_copy(c, fs)
  walk_list(c, { 0 })
  if c.copy then
    local fresh, free = check_fresh.run(c, function(list)
      walk_list(c, list)
    end)
    c.counts.groups_fresh = fresh
    c.fdblocks = c.fdblocks + fresh * free
  else
    local list = {}
    for ag = 1, c.sb.agcount - 2 do
      list[#list + 1] = ag
      if #list == WINDOW_GROUPS then
        walk_list(c, list)
        list = {}
      end
    end
    walk_list(c, list)
  end
  if c.sb.agcount > 1 then
    walk_list(c, { c.sb.agcount - 1 })
  end
end

-- --------------------------------------------------------------------- counters

local function compare_sums(c)
  if c.sb.rblocks ~= 0 then
    c.report:note "the realtime part was not checked"
  end
  if c.log_state ~= "clean" then
    c.report:note("the log is %s: what it holds was not replayed, and the superblock's counters "
      .. "were not compared", c.log_state)
  elseif c.is_counted and not c.stopped then
    for _, name in ipairs { "icount", "ifree", "fdblocks" } do
      c.report:expect(0, "sb", name, c[name], c.sb[name])
    end
  end
end

local function result_of(c)
  local r = c.report
  return { clean = r.count == 0 and not c.stopped, ok = r.count == 0 and not c.stopped,
    text = r:text(c.counts), findings = r.findings, finding_count = r.count,
    by_structure = r.by_structure, log = c.log_state, stopped = c.stopped,
    groups = c.counts.groups, groups_fresh = c.counts.groups_fresh,
    groups_walked = c.counts.groups_walked, tree_blocks = c.counts.tree_blocks,
    records = c.counts.records, inodes = c.counts.inodes, icount = c.icount, ifree = c.ifree,
    fdblocks = c.fdblocks }
end

local function run(c, fs, o)
  open(c, fs, o)
  local opened <close>, err = device.open(fs.target)
  if not opened then
    error(err, 0)
  end
  c.device = opened
  c.counts = { groups = c.sb.agcount, groups_fresh = 0, groups_walked = 0, tree_blocks = 0,
    records = 0, inodes = 0 }
  local w <close>, why = check_trees.open(c)
  if not w then
    error(why, 0)
  end
  c.walk, c.tick = w, check_progress.new(c)
  if c.reads_files then
    check_files.open(c)
  end
  check_groups(c, fs)
  compare_sums(c)
  if c.reads_files and not c.stopped then
    check_held.compare(c)
  end
  return result_of(c)
end

---Check a filesystem: superblocks, group headers, free lists, all trees of groups, and with a clean
---log the inodes: each by itself, and what they hold against what the groups say. Options:
---max_findings; shallow; engine, queue_depth, threads, progress, ... as for plan:verify.
---@param target string a device, a file or an image file
---@param o? table
---@return brim.xfs.CheckResult? result
---@return brim.Error? err with `usage` set where there is nothing to check
function M.run(target, o)
  o = opts.check(o, SCHEMA, "brim.xfs.check")
  local fs <close>, err = inspect.open(target)
  if not fs then
    return nil, err
  end
  local c = { report = check_report.new(o.max_findings), icount = 0, ifree = 0, fdblocks = 0,
    is_counted = true, jobs = {}, maps = {}, shared = {}, room = {}, to_walk = 0 }
  local ok, result = pcall(run, c, fs, o)
  if ok then
    return result
  elseif errors.is(result) then
    return nil, result
  end
  error(result, 0)
end

return M
