-- For the specs that ask mkfs.xfs, xfs_repair and the kernel: option sets, random ones from a seed,
-- and places to put images and mounts. Called by the xfs_*_spec files and layout_spec. Sizes are
-- bytes of the target; options are words of the mkfs.xfs command line, the UUID and -f apart.
local helper = require "spec.helper"

local M = {}

local MIB <const>, GIB <const>, TIB <const>, PIB <const> = 1 << 20, 1 << 30, 1 << 40, 1 << 50

---@class brim.spec.XfsConfig
---@field [1] integer size of the target file
---@field [2] string options
---@field env? boolean run with the environment of xfstests, which allows tiny filesystems
---@field compat? string the release it is made after, default 6.1 (KERNEL)
---@field sector_bytes? integer logical sector of the loop device that the kernel mounts it from

M.UUID = "01234567-89ab-cdef-0123-456789abcdef"

---The environment by which mkfs.xfs knows xfstests.
M.TEST_SUITE = "TEST_DIR=/x TEST_DEV=/x QA_CHECK_FS=1"

-- ------------------------------------------------------------------- identity

---All configurations whose image is compared with the reference's, in order.
---@type brim.spec.XfsConfig[]
M.IDENTITY = {}

local function add(size_bytes, options, more)
  local config = more or {}
  config[1], config[2] = size_bytes, options
  M.IDENTITY[#M.IDENTITY + 1] = config
end

local function around(size_bytes, options, more)
  for delta = -1, 1 do
    local config = {}
    for key, value in pairs(more or {}) do
      config[key] = value
    end
    add(size_bytes + 4096 * delta, options, config)
  end
end

-- Where a default changes (facts/xfs.md, section 3), and one block either side: number of groups,
-- log size, imaxpct, the least size.
add(300 * MIB, "")
add(300 * MIB + 4096, "")
around(300 * MIB, "", { env = true })
around(128 * MIB, "", { env = true })
around(64 * MIB, "", { env = true })
for _, size_bytes in ipairs { GIB, 8 * GIB, 128 * GIB, 512 * GIB, TIB, 4 * TIB, 32 * TIB,
  50 * TIB } do
  around(size_bytes, "")
end
for _, size_bytes in ipairs { GIB, 8 * GIB, 512 * GIB, TIB, 4 * TIB, 32 * TIB } do
  around(size_bytes, "-d su=64k,sw=4")
end
around(128 * MIB, "-d su=4k,sw=2", { env = true })
around(64 * MIB, "-d su=4k,sw=2", { env = true })
add(64 * TIB, "")
add(PIB, "-m rmapbt=1")
add(PIB, "-b size=64k")
add(16 * PIB, "-l size=64m")

-- A last group one block under, at, and over the least of 16 MiB; and one of a block less than the
-- others.
around(4 * GIB + 16 * MIB, "-d agsize=1g")
around(4 * GIB, "-d agsize=1g -m rmapbt=1")
around(10 * TIB + 16 * MIB - 40960, "")

-- Block sizes, and what goes with them.
for _, block in ipairs { "1k", "2k", "8k", "16k", "32k", "64k" } do
  add(3 * GIB + 4096, "-b size=" .. block)
  add(10 * GIB, ("-b size=%s -m rmapbt=1 -i nrext64=1"):format(block))
end
add(9 * TIB, "-b size=1k")
add(700 * GIB, "-b size=1k -d su=32k,sw=3")
add(700 * GIB, "-b size=64k -d su=64k,sw=5 -m rmapbt=1,reflink=0")

-- Sectors.
for _, sector in ipairs { "512", "1k", "2k", "4k" } do
  add(2 * GIB, ("-s size=%s"):format(sector))
  add(2 * GIB, ("-s size=%s -m rmapbt=1"):format(sector))
end
for _, sector in ipairs { "8k", "16k", "32k" } do
  add(2 * GIB, ("-b size=32k -s size=%s -m rmapbt=1"):format(sector))
end
add(2 * GIB, "-b size=1k -s size=1k -m finobt=0,reflink=0")
add(6 * GIB, "-b size=64k -s size=32k -d su=128k,sw=3")
add(6 * GIB, "-d sectsize=4096,su=64k,sw=2")

-- Inodes: sizes, and blocks that hold more than a chunk of 64.
for _, inode in ipairs { "-i size=1024", "-i size=2048", "-i perblock=2", "-i perblock=8",
  "-i size=1024,sparse=0", "-i size=2048,sparse=0,maxpct=99" } do
  add(GIB, inode)
end
add(GIB, "-b size=1k -i perblock=2")
add(GIB, "-b size=64k -i size=512")
add(GIB, "-b size=64k -i size=512,sparse=0 -m rmapbt=1")
add(GIB, "-b size=64k -i perblock=128 -m finobt=0")
add(GIB, "-b size=64k -i size=1024")
add(GIB, "-b size=32k -i size=512,sparse=0")
add(GIB, "-i maxpct=0")
add(GIB, "-i maxpct=1")
add(GIB, "-i maxpct=100")

-- Stripes.
for _, stripe in ipairs { "su=4k,sw=1", "su=256k,sw=1", "su=512k,sw=2", "su=1m,sw=10",
  "su=32m,sw=2", "su=12k,sw=3", "su=16k,sw=1", "sunit=8,swidth=8", "sunit=128,swidth=1280",
  "sunit=24,swidth=72", "sunit=4096,swidth=8192", "noalign", "su=0", "sunit=0,swidth=0" } do
  add(20 * GIB, "-d " .. stripe)
end
add(5 * GIB, "-d su=64k,sw=4 -m rmapbt=1 -i sparse=0")
add(5 * GIB, "-d su=128k,sw=4,agcount=4")
add(5 * GIB, "-d su=128k,sw=4,agsize=512m")
add(5 * GIB, "-d su=20k,sw=4,agsize=300m -m rmapbt=1")
add(70 * TIB, "-d su=256k,sw=8 -m rmapbt=1")

-- Each feature away from its default, and together.
for _, features in ipairs { "-m finobt=0", "-m rmapbt=1", "-m reflink=0", "-m bigtime=0",
  "-m inobtcount=0", "-i sparse=0", "-i nrext64=1", "-m crc=1,finobt=1,inobtcount=1 -i sparse=1",
  "-m rmapbt=1,reflink=0", "-m finobt=0,rmapbt=1", "-m finobt=0,reflink=0",
  "-m finobt=0,rmapbt=1,reflink=0", "-m bigtime=0,inobtcount=0 -i sparse=0",
  "-m rmapbt=1 -i nrext64=1,sparse=0", "-m rmapbt=1,bigtime=0,inobtcount=0 -i nrext64=1",
  "-m finobt=0,rmapbt=0,reflink=0,bigtime=0 -i sparse=0,nrext64=1" } do
  add(2 * GIB + 123 * MIB, features)
end
add(8191 * GIB, "-m rmapbt=1,reflink=0")

-- Logs: size, stripe unit, group.
for _, log in ipairs { "size=64m", "size=100m", "size=2038m", "size=16400b", "su=4k", "su=32k",
  "su=64k", "su=256k", "su=12k", "su=96k", "sunit=8", "sunit=24", "sunit=512", "size=80m,su=64k",
  "agnum=0", "agnum=0,size=65m", "agnum=0,su=4k", "agnum=1", "agnum=3", "agnum=1,su=256k",
  "agnum=3,size=2000m" } do
  add(20 * GIB, "-l " .. log)
end
add(20 * GIB, "-l agnum=0 -m rmapbt=1,reflink=0")
add(20 * GIB, "-l su=64k -m rmapbt=1")
add(20 * GIB, "-l su=64k,agnum=2 -d su=12k,sw=2 -m rmapbt=1")
add(20 * GIB, "-l agnum=0 -b size=64k")
add(20 * GIB, "-l agnum=0 -d su=16k,sw=2")
add(10 * TIB, "-l su=256k,agnum=9")

-- Groups: few, many, of the least size, and logs that nearly fill theirs.
add(TIB, "-d agcount=2")
add(TIB, "-d agcount=3 -m rmapbt=1")
add(GIB, "-d agcount=1", { env = true })
add(GIB, "-d agcount=1 -m rmapbt=1", { env = true })
add(GIB, "-d agcount=1,su=64k,sw=2", { env = true })
add(GIB, "-d agcount=2 -l agnum=1")
add(GIB, "-d agcount=7")
add(TIB, "-d agcount=33")
add(TIB, "-d agcount=1000 -m rmapbt=1 -l size=100m")
add(TIB, "-d agcount=3001 -l size=64m")
add(4 * TIB, "-d agsize=1g -m reflink=0 -i nrext64=1 -l size=64m")
add(2 * GIB, "-d agsize=128m -m rmapbt=1 -l size=32756b")
add(2 * GIB, "-d agsize=128m -l size=32757b")
add(2 * GIB, "-d agsize=128m -l size=32750b")
add(GIB, "-d agsize=16m", { env = true })
add(GIB + 5 * MIB, "-d agsize=17m -m rmapbt=1 -b size=1k", { env = true })
add(3 * TIB, "-d size=2t")
add(3 * TIB, "-d size=200000000b")

-- Names and directories.
add(GIB, "-L brim")
add(GIB, "-L twelve-bytes")
add(GIB, "-n size=4k")
add(GIB, "-n size=8k")
add(GIB, "-n size=64k -m rmapbt=1")
add(GIB, "-b size=1k -n size=32k")
add(5 * TIB, "-L all -n size=16k -s size=4k -i size=1024,nrext64=1,maxpct=7 -m rmapbt=1"
  .. " -d su=64k,sw=3 -l su=32k,size=512m,agnum=1")

---Over an older XFS, whose superblock copies must go while the rest of it stays: size of the
---target, options of the older and of the newer.
M.OVER = {
  { 4 * GIB, "-d agcount=8", "" }, { 4 * GIB, "", "-d agcount=9 -m rmapbt=1" },
  { 4 * GIB, "-d agcount=31 -b size=1k", "-s size=4k" }, { 40 * GIB, "-d agcount=300", "" },
  { 4 * GIB, "-b size=64k -L old", "-L new" }, { 9 * GIB, "-d size=8g,agcount=7", "-d size=1g" },
}

---Name a configuration, for a test.
---@param config brim.spec.XfsConfig
---@return string
function M.describe(config)
  local size_bytes = config[1]
  local off = (size_bytes + MIB // 2) % MIB - MIB // 2
  local unit, shift = "MiB", 20
  for i, name in ipairs { "GiB", "TiB", "PiB" } do
    if (size_bytes - off) % (1 << 20 + 10 * i) == 0 then
      unit, shift = name, 20 + 10 * i
    end
  end
  return ("%d %s%s%s %s"):format(size_bytes - off >> shift, unit, off == 0 and "" or
    (" %s %d"):format(off < 0 and "-" or "+", math.abs(off)), config.env and " (as xfstests)" or "",
    config[2])
end

-- --------------------------------------------------------------------- random

local function pick(list)
  return list[math.random(#list)]
end

local function chance(one_in)
  return math.random(one_in) == 1
end

local BOUNDARIES <const> = { 300 * MIB, GIB, 8 * GIB, 128 * GIB, 512 * GIB, TIB, 4 * TIB, 32 * TIB,
  50 * TIB, 64 * TIB }

local function random_size(words)
  if chance(8) then
    words[1] = "--unsupported"
    return math.random(16, 1200) * MIB + math.random(0, 255) * 4096
  elseif chance(3) then
    return pick(BOUNDARIES) + pick { 0, 1, -1, 2, 16, -16, 4096, -4097, math.random(-9999, 9999) }
      * pick { 512, 1024, 4096, 65536 }
  elseif chance(2) then
    return 300 * MIB + math.random(0, 1 << 20) * 4096
  end
  local log2 = math.random(29, 47)
  return (1 << log2) + (math.random(0, (1 << log2) - 1) & ~511)
end

-- One setting of an option letter; nil leaves it out.
local function random_block_words(words)
  local block = 4096
  if chance(3) then
    block = 1024 << math.random(0, 6)
    words[#words + 1] = ("-b size=%d"):format(block)
  end
  if chance(4) then
    local sector = 512 << math.random(0, 6)
    words[#words + 1] = sector <= block and ("-s size=%d"):format(sector) or nil
  end
  if chance(4) then
    local inode = 512 << math.random(0, 2)
    words[#words + 1] = inode <= block // 2 and (chance(2) and ("-i size=%d"):format(inode)
      or ("-i perblock=%d"):format(block // inode)) or nil
  end
  if chance(8) then
    words[#words + 1] = ("-n size=%d"):format(math.max(block, 4096 << math.random(0, 4)))
  end
  return block
end

local function random_group_words(words, size_bytes, block)
  if chance(4) then
    local unit = pick { 1, 1, 2, 3, 4, 8, 16, 16, 32, 64, 5, 7, math.random(1, 600) } * block
    words[#words + 1] = chance(2) and ("-d su=%d,sw=%d"):format(unit, pick { 1, 2, 3, 4, 5, 8, 16 })
      or ("-d sunit=%d,swidth=%d"):format(unit // 512, unit // 512 * pick { 1, 2, 3, 4, 7 })
  end
  if chance(4) then
    local most = math.min(size_bytes // (65 * MIB), 600)
    words[#words + 1] = ("-d agcount=%d"):format(math.random(2, math.max(2, most)))
  elseif chance(4) then
    local bytes = pick { 100 * MIB, 128 * MIB, GIB, 5 * GIB, TIB - block, size_bytes // 3 }
      + block * pick { 0, 0, 1, -1, math.random(0, 5000) }
    if size_bytes // bytes < 600 then
      words[#words + 1] = ("-d agsize=%d"):format(bytes // block * block)
      return bytes // block
    end
  end
end

local function random_log_words(words, block, ag_blocks)
  if ag_blocks and ag_blocks * block < 2 * GIB and chance(2) then
    -- Next to nothing beside the log: where the free list comes from is then not the usual place.
    words[#words + 1] = ("-l size=%db"):format(ag_blocks - math.random(3, 24))
  elseif chance(4) then
    words[#words + 1] = "-l size=" .. pick { "64m", "100m", "65m", "16384b", "16385b", "16400b",
      math.random(64 * MIB, 120 * MIB) & ~(block - 1),
      math.random(64 * MIB, 2 * GIB) & ~(block - 1) }
  end
  if chance(4) then
    words[#words + 1] = ("-l su=%d"):format(pick { 1, 2, 4, 8, 16, 3, 5, math.random(64) } * block)
  end
  if chance(5) then
    words[#words + 1] = ("-l agnum=%d"):format(pick { 0, 0, 1, 2, 3, math.random(0, 40) })
  end
end

-- What releases after the first have more of; seldom what contradicts a word that is there.
local function random_new_words(words)
  local all = table.concat(words, " ")
  local function try(word, ...)
    for _, other in ipairs { ... } do
      if all:find(other) and not chance(9) then
        return
      end
    end
    words[#words + 1] = chance(4) and word or nil
  end
  try("-m rmapbt=0", "rmapbt")
  try("-i nrext64=0", "nrext64")
  try("-n parent=" .. math.random(0, 1))
  try("-i exchange=" .. math.random(0, 1))
  try("-l concurrency=" .. pick { 0, 2, 9, 40, 300 }, "%-l size")
  try("-d concurrency=" .. pick { 0, 2, 3, 9, 17, 100, math.random(2, 500) }, "agcount", "agsize")
  try("-m autofsck=" .. pick { "none", "check", "optimize", "repair", "0", "1" })
end

local function random_feature_words(words)
  for _, feature in ipairs { "finobt=0", "rmapbt=1", "reflink=0", "bigtime=0", "inobtcount=0" } do
    words[#words + 1] = chance(feature == "rmapbt=1" and 2 or 4) and "-m " .. feature or nil
  end
  words[#words + 1] = chance(4) and "-i sparse=0" or nil
  words[#words + 1] = chance(4) and "-i nrext64=1" or nil
  words[#words + 1] = chance(8) and "-i maxpct=" .. pick { 0, 1, 50, 100 } or nil
  words[#words + 1] = chance(9) and "-L label" .. math.random(99999) or nil
end

---Make a random configuration, the same for the same seed and number. Most are valid.
---@param seed integer
---@param number integer
---@param compat? string a release: with its words; default "6.1"
---@return brim.spec.XfsConfig
function M.random(seed, number, compat)
  math.randomseed(seed, number)
  local words = {}
  local size_bytes = random_size(words)
  local block = random_block_words(words)
  random_log_words(words, block, random_group_words(words, size_bytes, block))
  random_feature_words(words)
  if compat and compat ~= "6.1" then
    random_new_words(words)
  end
  return { size_bytes, table.concat(words, " ") }
end

-- --------------------------------------------------------------------- kernel

---Configurations that the kernel mounts and xfs_repair checks.
---@type brim.spec.XfsConfig[]
M.KERNEL = {
  { 4 * GIB, "" },
  { 4 * GIB, "-m rmapbt=1" },
  { 4 * GIB, "-m reflink=0" },
  { 4 * GIB, "-m rmapbt=1,reflink=0 -i nrext64=1" },
  { 4 * GIB, "-m finobt=0,rmapbt=1 -i sparse=0" },
  { 4 * GIB, "-m bigtime=0,inobtcount=0" },
  { 4 * GIB, "-m finobt=0,reflink=0,bigtime=0 -i sparse=0,size=2048" },
  { 4 * GIB, "-b size=1k -m rmapbt=1 -n size=8k" },
  { 4 * GIB, "-b size=16k -m rmapbt=1" },
  { 4 * GIB, "-b size=64k -i size=1024" },
  { 4 * GIB, "-s size=4k -m rmapbt=1", sector_bytes = 4096 },
  { 4 * GIB, "-d su=64k,sw=4 -l su=64k -m rmapbt=1" },
  { 4 * GIB, "-d agcount=61 -l agnum=0,size=65m" },
  { 300 * MIB, "-L small" },
  { 20 * TIB, "-m rmapbt=1" },
  { 4 * GIB, "-l su=256k,agnum=1 -d su=12k,sw=2 -i nrext64=1" },
  { 4 * GIB, "", compat = "6.13" },
  { 4 * GIB, "-n parent=1 -b size=1k", compat = "6.13" },
  { 4 * GIB, "", compat = "7.2" },
  { 20 * TIB, "-s size=4k -d su=64k,sw=4 -i size=1024", compat = "7.2", sector_bytes = 4096 },
  { 4 * GIB, "-n parent=0 -m autofsck=check,reflink=0", compat = "7.2" },
}

-- ----------------------------------------------------------------- workspaces

---@class brim.spec.Workspace
---@field dir string a directory in memory
---@field count integer of names given out
local Workspace = {}
Workspace.__index = Workspace

-- Unmounts what is mounted below directory $1 and removes it.
local CLEAN_UP <const> = [[
  awk -v below="$1/" 'index($2, below) == 1 { print $2 }' /proc/mounts | sort -r |
    while read -r dir; do umount "$dir" || umount -l "$dir"; done
  rm -rf --one-file-system "$1"
]]

---Make a directory of a unique name on tmpfs for images and mounts. What is below it goes when it
---is closed, or when this process ends in whatever way.
---@param name string
---@return brim.spec.Workspace
function M.workspace(name)
  local dir = helper.must("mktemp -d -p /dev/shm brim-%s.XXXXXX", name):gsub("%s+$", "")
  helper.must("setsid sh -c %s clean-up %s $PPID </dev/null >/dev/null 2>&1 &",
    helper.quote([[tail -s 1 --pid="$2" -f /dev/null]] .. "\n" .. CLEAN_UP), helper.quote(dir))
  return setmetatable({ dir = dir, count = 0 }, Workspace)
end

---A path in the workspace that was not given out before.
---@param name string
---@return string
function Workspace:path(name)
  self.count = self.count + 1
  return ("%s/%d-%s"):format(self.dir, self.count, name)
end

---Unmount and remove all of it. Any number of times.
function Workspace:close()
  if self.dir then
    helper.must("sh -c %s clean-up %s", helper.quote(CLEAN_UP), helper.quote(self.dir))
    self.dir = nil
  end
end

Workspace.__close = Workspace.close

---@class brim.spec.Loop
---@field device string
local Loop = {}
Loop.__index = Loop

---Attach an image to a loop device of its own.
---@param image string
---@param sector_bytes? integer
---@return brim.spec.Loop
function M.loop(image, sector_bytes)
  return setmetatable({ device = helper.must("losetup -f --show --sector-size %d %s",
    sector_bytes or 512, helper.quote(image)):gsub("%s+$", "") }, Loop)
end

---Detach it; where it is mounted, that happens with the unmounting. Any number of times.
function Loop:close()
  if self.device then
    helper.must("losetup -d %s", self.device)
    self.device = nil
  end
end

Loop.__close = Loop.close

---@class brim.spec.Mount
---@field dir string where it is mounted
---@field device string the loop device
local Mount = {}
Mount.__index = Mount

---Mount an image over a loop device, which goes with the mount, on a new directory.
---@param image string
---@param o? { sector_bytes?: integer, options?: string }
---@return brim.spec.Mount? mounted
---@return string? why
function Workspace:mount(image, o)
  o = o or {}
  local loop <close> = M.loop(image, o.sector_bytes)
  local dir = self:path "mount"
  local said, status = helper.sh("mkdir %s && mount -t xfs -o %s %s %s", helper.quote(dir),
    o.options or "defaults", loop.device, helper.quote(dir))
  if status ~= 0 then
    return nil, ("mount of %s: %s"):format(image, said)
  end
  return setmetatable({ dir = dir, device = loop.device }, Mount)
end

---Unmount. Any number of times.
function Mount:close()
  if self.dir then
    helper.must("umount %s", helper.quote(self.dir))
    self.dir = nil
  end
end

Mount.__close = Mount.close

---Mount a large sparse XFS to put images in: it zeroes ranges without writing them, and its files
---may be as long as there are. Nil where loop devices do not work.
---@return brim.spec.Mount?
function Workspace:mount_scratch()
  local image = self:path "scratch"
  helper.must("truncate -s 64T %s && mkfs.xfs -q -K -l size=64m %s", image, image)
  local ok, mounted = pcall(self.mount, self, image, { options = "nodiscard" })
  return ok and mounted or nil
end

return M
