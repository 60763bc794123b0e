-- Judges what brim formats by one release of mkfs.f2fs: both make images with the same options,
-- UUID, time and checkpoint version, and the images are compared byte for byte, holes included.
-- What may differ: behind the paths of several devices mkfs.f2fs writes what lay in its memory.
-- Called by f2fs_identity_spec and spec/campaign.
local assert = require "luassert"
local configs = require "spec.f2fs_configs"
local helper = require "spec.helper"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local FIXED <const> = "-r -U 01234567-89ab-cdef-0123-456789abcdef"
local TIME <const> = "-T 1700000000"

---@class brim.spec.F2fsJudge
---@field oracle brim.spec.Oracle
---@field compat string
local Judge = {}
Judge.__index = Judge

---Make the judge of a release. Whoever has it closes it.
---@param oracle brim.spec.Oracle its mkfs.f2fs is that of `compat`
---@param compat string
---@return brim.spec.F2fsJudge
function M.judge(oracle, compat)
  local self = setmetatable({ oracle = oracle, compat = compat }, Judge)
  self.imgcmp = helper.path "imgcmp"
  helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", self.imgcmp)
  -- tmpfs: its files may have 16 TiB, and more.
  self.dir = helper.must("mktemp -d -p /dev/shm brim-f2fs.XXXXXX"):gsub("%s+$", "")
  self.programs = { reference = oracle.mkfs,
    brim = ("%s mkfs.f2fs --compat %s"):format(helper.quote(helper.exe), compat) }
  return self
end

---Remove its images. Any number of times.
function Judge:close()
  if self.dir then
    helper.must("rm -rf %s", self.dir)
    self.dir = nil
  end
end

-- The devices of one of both; the paths have the same length, as they go into the superblock.
local function paths_of(self, who, config)
  local paths = { ("%s/%s"):format(self.dir, who:sub(1, 1)) }
  for i = 1, #(config.more or {}) do
    paths[i + 1] = ("%s/%s%d"):format(self.dir, who:sub(1, 1), i)
  end
  return paths
end

-- Runs one of both on fresh files, or on what is there.
local function make(self, who, config, keep)
  local paths, words = paths_of(self, who, config), {}
  for i, path in ipairs(paths) do
    if not keep then
      helper.must("rm -f %s && truncate -s %d %s", path, i == 1 and config[1] or config.more[i - 1],
        path)
    end
    words[#words + 1] = i > 1 and "-c " .. path or nil
  end
  return paths, helper.sh("%s %s %s %s %s %s", self.programs[who], FIXED,
    config[2]:find "%-T" and "" or TIME, config[2], table.concat(words, " "),
    paths[1] .. (config.sectors and " " .. config.sectors or ""))
end

-- Paths in the superblock, as they differ and as memory behind them does; and its checksum then.
local function masks(config)
  local ranges = {}
  for _, block in ipairs(config.more and { 0, 4096 } or {}) do
    local at = block + ondisk.SB_OFF_BYTES
    for i = 0, #config.more do
      ranges[#ranges + 1] = ("%d:64"):format(at + ondisk.sb:field("devs").off_bytes + 68 * i)
    end
    ranges[#ranges + 1] = ("%d:4"):format(at + ondisk.sb:field("crc").off_bytes)
  end
  return table.concat(ranges, " ")
end

local function first_path(path)
  local file <close> = assert(io.open(path, "rb"))
  file:seek("set", ondisk.SB_OFF_BYTES)
  return (ondisk.sb:decode(file:read(3072)).devs[1].path:gsub("\0.*$", ""))
end

---Compare what both make of a configuration.
---@param config brim.spec.F2fsConfig
---@param o? { must_work?: boolean, keep?: boolean, fsck?: boolean } refusing is a failure; files
--- are as they are; fsck.f2fs has to find nothing
---@return boolean made whether they made anything
function Judge:compare(config, o)
  o = o or {}
  local label = configs.describe(config)
  local theirs, their_words, their_status = make(self, "reference", config, o.keep)
  local ours, our_words, our_status = make(self, "brim", config, o.keep)
  local both = ("%s\nmkfs.f2fs ended with %d: %s\nbrim ended with %d: %s"):format(label,
    their_status, their_words, our_status, our_words)
  assert.equal(their_status == 0, our_status == 0, both)
  assert.is_falsy(o.must_work and our_status ~= 0, both)
  if our_status ~= 0 then
    assert.equal(2, our_status, both)
    return false
  end
  for i, path in ipairs(theirs) do
    local said, status = helper.sh("%s %s %s %s", self.imgcmp, path, ours[i],
      i == 1 and masks(config) or "")
    assert.equal(0, status, ("%s\ndevice %d: offset: reference, brim\n%s"):format(label, i, said))
  end
  if config.more then
    assert.equal(ours[1], first_path(ours[1]))
  end
  if o.fsck then
    -- It does find fault where a zone is incomplete, whose segments mkfs.f2fs counts as free.
    local said, status = helper.sh("%s --dry-run %s", self.oracle.fsck, ours[1])
    local _, expected = helper.sh("%s --dry-run %s", self.oracle.fsck, theirs[1])
    assert.equal(expected, status, label .. "\n" .. said)
    local is_incomplete = said:find "free segment_count matched with CP%s+%[Fail%]"
    assert.equal(is_incomplete and 4 or 0, status, label .. "\n" .. said)
  end
  return true
end

---Compare random configurations; the message of a failure has seed and number.
---@param seed integer
---@param count integer
---@return integer made
function Judge:compare_random(seed, count)
  local made = 0
  for number = 1, count do
    local config = configs.random(seed, number)
    local ok, err = pcall(self.compare, self, config)
    if not ok then
      error(("seed %d, number %d: %s"):format(seed, number, tostring(type(err) == "table"
        and err.message or err)), 0)
    end
    made = made + (err and 1 or 0)
  end
  return made
end

return M
