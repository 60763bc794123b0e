-- Judges what brim formats by one release of mkfs.xfs: both make an image with the same options and
-- UUID, and the images are compared, holes included. Called by xfs_identity_spec and
-- xfs_releases_spec. What a release takes from the clock or at random, and nothing fixes, may
-- differ: three times of three inodes, generation numbers, and with them CRCs of inodes.
local assert = require "luassert"
local configs = require "spec.xfs_configs"
local geometry = require "brim.xfs.geometry"
local helper = require "spec.helper"
local mkfs = require "brim.xfs.mkfs"
local ondisk = require "brim.xfs.ondisk"
local options = require "brim.xfs.options"
local versions = require "brim.xfs.versions"

local M = {}

local TIMED_INODES <const> = 3 -- root directory, realtime bitmap and summary
-- tmpfs cannot zero a range without writing it, so that a log takes memory there; on XFS it does
-- not, but reading the holes between groups does.
local SMALL_LOG_BYTES <const>, MANY_GROUPS <const> = 130 << 20, 200
-- What releases that obey it are told, brim and mkfs.xfs alike; then nothing at all may differ.
local FIXED <const> = "env SOURCE_DATE_EPOCH=1700000001 DETERMINISTIC_SEED=1 "

---The UUID of a filesystem that was there before.
M.OLD_UUID = "89abcdef-0123-4567-89ab-cdef01234567"

---@class brim.spec.Judge
---@field version brim.xfs.Version
---@field oracle brim.spec.Oracle
---@field workspace brim.spec.Workspace
---@field scratch? brim.spec.Mount a large XFS for images
local Judge = {}
Judge.__index = Judge

---Make the judge of a release. Whoever has it closes it.
---@param oracle brim.spec.Oracle its mkfs.xfs is that of `compat`
---@param compat string
---@return brim.spec.Judge
function M.judge(oracle, compat)
  local self = setmetatable({ oracle = oracle, version = versions.of(compat) }, Judge)
  self.imgcmp = helper.path "imgcmp"
  helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", self.imgcmp)
  self.workspace = configs.workspace "identity"
  self.scratch = helper.is_root() and self.workspace:mount_scratch() or nil
  local fixed = self.version.obeys_environment and FIXED or ""
  self.programs = { reference = fixed .. oracle.mkfs,
    brim = ("%s%s mkfs.xfs --compat %s"):format(fixed, helper.quote(helper.exe), compat) }
  return self
end

function Judge:close()
  self.workspace:close()
end

---The geometry brim gives a configuration.
---@param config brim.spec.XfsConfig
---@param device? brim.xfs.Device default: a file of the configuration's size
---@return brim.xfs.Geometry? g
---@return brim.xfs.OptionError? err
function Judge:geometry(config, device)
  local words = { "--compat", self.version.name }
  for word in (config[2] .. " target"):gmatch "%S+" do
    words[#words + 1] = word
  end
  local o, err = options.parse(words)
  if not o then
    return nil, err
  end
  o.unsupported = o.unsupported or config.env
  return geometry.compute(o, device or { size_bytes = config[1], is_file = true })
end

local function inode_offset(g, n)
  return g.root_ino + n << g.inode_log2
end

-- What may differ in images of these geometries, as ranges for imgcmp.
function Judge:ranges(...)
  local ranges = {}
  local function add(off_bytes, ...)
    for _, name in ipairs { ... } do
      local field = ondisk.inode:field(name)
      ranges[#ranges + 1] = ("%d:%d"):format(off_bytes + field.off_bytes, field.width_bytes)
    end
  end
  local atimes, has_generations = self.version.atimes, self.version.has_generations
  for _, g in ipairs(self.version.obeys_environment and {} or { ... }) do
    for n = 0, g.inode_chunk_inodes - 1 do
      local at = inode_offset(g, n)
      if n < TIMED_INODES then
        add(at, "mtime", "ctime", "crtime", "crc")
      end
      if n == 0 and atimes.root or n == 2 and atimes.summary then
        add(at, "atime")
      end
      if n > 0 and has_generations then
        add(at, "gen", "crc")
      end
    end
  end
  return table.concat(ranges, " ")
end

local function inode_at(path, g, n)
  local file <close> = assert(io.open(path, "rb"))
  assert(file:seek("set", inode_offset(g, n)))
  return ondisk.inode:decode(file:read(g.inode_bytes), 0, g.inode_bytes)
end

-- What is masked is right in itself: one time, one generation number of the free inodes.
local function check_inodes(image, g, label)
  local generation
  for n = 0, g.inode_chunk_inodes - 1 do
    local inode, intact = inode_at(image, g, n)
    assert.is_true(intact, label .. ": inode CRC")
    if n < TIMED_INODES then
      assert.int(inode.mtime, inode.ctime)
      assert.int(inode.mtime, inode.crtime)
    else
      generation = generation or inode.gen
      assert.int(inode.gen, generation)
    end
  end
  assert.int((inode_at(image, g, 0)).gen, 0)
end

---The command line of both, as a format for the program and the target.
---@param config brim.spec.XfsConfig
---@return string
function Judge.command(_, config)
  return ("%s %%s -q -f -m uuid=%s %s %%s"):format(config.env and
    "env " .. configs.TEST_SUITE or "", configs.UUID, config[2])
end

---Compare images of both.
---@param images { reference: string, brim: string }
---@param g brim.xfs.Geometry
---@param label string
---@param old? brim.xfs.Geometry another whose inodes are still there, too
function Judge:compare_images(images, g, label, old)
  local said, status = helper.sh("%s %s %s %s", self.imgcmp, images.reference, images.brim,
    self:ranges(g, old or nil))
  assert.equal(0, status, ("%s\noffset: reference, brim\n%s"):format(label, said))
  check_inodes(images.brim, g, label)
end

-- A directory with room for images of a geometry.
function Judge:directory(g)
  local log_bytes = g and g.log_blocks << g.block_log2 or 0
  if self.scratch and (log_bytes > SMALL_LOG_BYTES or g and g.ag_count < MANY_GROUPS) then
    return self.scratch.dir
  elseif log_bytes > 1 << 30 then
    return nil, ("needs root, or else %d MiB of memory for the log"):format(log_bytes >> 20)
  end
  return self.workspace.dir
end

-- Makes both images; the exit status and what was said of each.
function Judge:make(config, dir)
  local images = { reference = dir .. "/reference", brim = dir .. "/brim" }
  helper.must("rm -f %s %s && truncate -s %d %s %s", images.reference, images.brim, config[1],
    images.reference, images.brim)
  local command, said, status = self:command(config), {}, {}
  for who, image in pairs(images) do
    said[who], status[who] = helper.sh(command, self.programs[who], image)
  end
  return images, status, said
end

-- Little more than a log in its group, and before it a hole of its alignment: the reference then
-- loses the hole where the log ends with the group (6.1 its records, later ones its length if too
-- little is left for a free list), or has two records in the wrong order where too little is left.
-- xfs_repair says so, and finds ours right.
local function is_reference_wrong(g)
  local length_blocks = g.log_ag == g.ag_count - 1 and g.last_ag_blocks or g.ag_blocks
  local hole_blocks = g.log_agbno - g.prealloc_blocks
  local tail_blocks = length_blocks - g.log_agbno - g.log_blocks
  return g.log_ag_agfl_count == 0 and hole_blocks > tail_blocks
end

local function assert_only_reference_wrong(oracle, images, label)
  local said, status = helper.sh("%s -n -P %s", oracle.repair, images.brim)
  assert.equal(0, status, ("%s\n%s"):format(label, said))
  assert.is_not.equal(0, select(2, helper.sh("%s -n -P %s", oracle.repair,
    images.reference)), label)
end

---Compare what both make of a configuration.
---@param config brim.spec.XfsConfig
---@param label string
---@param must_work? boolean refusing is a failure
---@return boolean? made whether they made anything; nil: no room for it
---@return string? why
function Judge:compare(config, label, must_work)
  local g, err = self:geometry(config)
  local dir, why = self:directory(g)
  if not dir then
    return nil, why
  end
  local images, status, said = self:make(config, dir)
  local both = ("%s\nmkfs.xfs ended with %d: %s\nbrim ended with %d: %s"):format(label,
    status.reference, said.reference, status.brim, said.brim)
  if g then
    assert.equal(0, status.reference, both)
    assert.equal(0, status.brim, both)
    if is_reference_wrong(g) then
      assert_only_reference_wrong(self.oracle, images, label)
    else
      self:compare_images(images, g, label)
    end
  else
    assert.is_falsy(must_work and err.message, both)
    assert.is_not.equal(0, status.reference, both)
    assert.equal(2, status.brim, both)
  end
  os.remove(images.reference)
  os.remove(images.brim)
  return g ~= nil
end

---Compare what both make where the log nearly fills the last group, of each size down to nothing.
---@param words string options
function Judge:compare_nearly_full(words)
  local all = words .. " -d agsize=128m -l agnum=3,size="
    .. (words:find "12k" and "16386b" or "16384b")
  local made = 0
  for rest_blocks = 2, 36 do
    local config = { 3 * (128 << 20) + (16384 + rest_blocks) * 4096, all }
    made = made + (self:compare(config, configs.describe(config)) and 1 or 0)
  end
  assert.is_true(made > 15)
end

---Compare what both make over an older XFS of the reference's. Not discarded: that would hide it.
---@param size_bytes integer
---@param older string options
---@param newer string options
function Judge:compare_over(size_bytes, older, newer)
  local config = { size_bytes, newer .. " -K" }
  local g = assert(self:geometry(config))
  local images = { reference = self.workspace:path "reference", brim = self.workspace:path "brim" }
  for who, image in pairs(images) do
    helper.must("truncate -s %d %s && %s -q -m uuid=%s %s %s", size_bytes, image,
      self.programs.reference, M.OLD_UUID, older, image)
    helper.must(self:command(config), self.programs[who], image)
  end
  -- Both made the older one at another time.
  local old = assert(self:geometry { size_bytes, older })
  self:compare_images(images, g, older, old.root_ino ~= g.root_ino and old or nil)
  os.remove(images.reference)
  os.remove(images.brim)
end

---Compare what both make on a loop device that says whether it is a disk that turns.
---@param config brim.spec.XfsConfig
---@param label string
---@param is_rotational boolean
function Judge:compare_on_device(config, label, is_rotational)
  local dir = self.scratch.dir
  local cpus = math.tointeger(tonumber(helper.must "getconf _NPROCESSORS_ONLN"))
  local images = { reference = dir .. "/reference", brim = dir .. "/brim" }
  local g = assert(self:geometry(config, { size_bytes = config[1], is_file = false,
    is_rotational = is_rotational, cpus = cpus }))
  for who, image in pairs(images) do
    helper.must("rm -f %s && truncate -s %d %s", image, config[1], image)
    local loop <close> = configs.loop(image)
    helper.must("echo %d > /sys/block/%s/queue/rotational", is_rotational and 1 or 0,
      loop.device:match "[^/]+$")
    local seen = assert(mkfs.look(loop.device))
    assert.equal(is_rotational, seen.is_rotational)
    assert.int(seen.cpus, cpus)
    helper.must(self:command(config), self.programs[who], loop.device)
  end
  self:compare_images(images, g, label)
  os.remove(images.reference)
  os.remove(images.brim)
end

---Compare random configurations of a seed; failures are collected and asserted at the end.
---@param seed integer
---@param cases integer
function Judge:compare_random(seed, cases)
  local made, failures = 0, {}
  for number = 1, cases do
    local config = configs.random(seed, number, self.version.name)
    local label = ("seed %d number %d: %s"):format(seed, number, configs.describe(config))
    local ok, result = pcall(self.compare, self, config, label)
    made = made + (ok and result == true and 1 or 0)
    failures[#failures + 1] = not ok and tostring(result.message or result) or nil
  end
  print(("# %s, seed %d: %d random option sets, %d images compared, the rest refused by both")
    :format(self.version.name, seed, cases, made))
  assert.equal("", table.concat(failures, "\n\n"))
  assert.is_true(made >= cases // 2, ("only %d of %d are valid"):format(made, cases))
end

return M
