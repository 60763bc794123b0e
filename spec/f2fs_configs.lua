-- The configurations of mkfs.f2fs that specs compare: listed ones and random ones from a seed.
-- Called by f2fs_images and its specs.
local M = {}

local KIB <const>, MIB <const>, GIB <const>, TIB <const> = 1 << 10, 1 << 20, 1 << 30, 1 << 40

---@class brim.spec.F2fsConfig
---@field [1] integer bytes of the target
---@field [2] string options
---@field more? integer[] bytes of further devices

---Compared byte for byte with each release; all of them work.
---@type brim.spec.F2fsConfig[]
M.IDENTITY = {}

local function add(size_bytes, words, more)
  M.IDENTITY[#M.IDENTITY + 1] = { size_bytes, words or "", more = more }
end

-- Sizes: small ones, the caps of the NAT (59 and 60 segments of SIT), the end of block numbers.
for _, size in ipairs { 60 * MIB, 100 * MIB, 128 * MIB, 511 * MIB, 512 * MIB + 4096, GIB,
  4 * GIB + 511, 16 * GIB, 100 * GIB, TIB, 2000 * GIB, 3200 * GIB, 3230 * GIB, 3260 * GIB, 8 * TIB,
  16 * TIB - 4096 } do
  add(size)
end
for _, words in ipairs { "-s 2", "-s 3", "-s 16", "-s 2 -z 2", "-z 3", "-s 4 -o 5", "-o 1",
  "-o 0.5", "-o 33.3", "-s 3 -z 3 -o 12", "-a 1", "-a 1 -s 3 -z 2", "-i", "-i -s 5", "-t 0",
  "-a 0 -t 1", "-d 0" } do
  add(20 * GIB, words)
end
add(8001563222016, "-s 128")
add(8001563222016, "-s 128 -o 1")
add(8001563222016, "-s 128 -o 5")
add(128 * GIB, "-s 128 -o 1")
add(400 * GIB, "-i -o 2 -z 4")
add(9 * GIB, "-s 64 -z 2")

-- Features: each, and together.
for _, words in ipairs { "encrypt", "extra_attr", "extra_attr,project_quota",
  "extra_attr,inode_checksum", "extra_attr,flexible_inline_xattr", "quota",
  "extra_attr,inode_crtime", "lost_found", "verity", "sb_checksum", "casefold",
  "extra_attr,compression", "ro", "lost_found,quota", "lost_found,extra_attr,project_quota,quota",
  "extra_attr,project_quota,inode_checksum,lost_found", "ro,quota,lost_found",
  "extra_attr,project_quota,inode_checksum,flexible_inline_xattr,quota,inode_crtime,lost_found,"
    .. "verity,sb_checksum,compression,encrypt,casefold" } do
  add(GIB, "-O " .. words)
end
add(3 * GIB, "-O extra_attr -O inode_crtime,inode_checksum -O quota -R 1000:100 -l label")
add(3 * GIB, "-C utf8 -O lost_found")
add(3 * GIB, "-C utf8:strict")
add(3 * GIB, "-C utf8:nostrict -O sb_checksum")
add(GIB, "-O ro -s 2 -z 2")
add(64 * MIB, "-O ro")

-- Names, owners, times, sizes in sectors.
for _, words in ipairs { "-l brim", "-l Bläuliche\u{1f600}Ü", "-e xyz,abc,toolongname -E log",
  "-e mp,db,db -E db,ogv", "-R 7:0 -O quota,lost_found", "-T 0", "-T 0x10", "-T 010",
  "-g android", "-g android -O ro", "-g android -l phone -s 2" } do
  add(500 * MIB, words)
end

-- Several devices: metadata on the first, the logs wherever they come to lie.
add(GIB, "", { GIB })
add(300 * MIB + 1536, "-s 4 -O lost_found,quota", { 20 * GIB, 512 * MIB })
add(64 * MIB, "-O sb_checksum", { 3 * GIB + 12345, 100 * MIB, 2 * GIB, 77 * MIB })
add(40 * MIB, "-a 1", { 90 * MIB })

---Refused by both.
---@type brim.spec.F2fsConfig[]
M.REFUSED = { { 4096, "" }, { 40 * MIB, "" }, { 2 * MIB, "" }, { 16 * MIB, "" },
  { 20 * MIB, "-s 4" },
  { 17 * TIB, "" }, { 1 * GIB, "-s 128" }, { 4 * GIB, "-s 16 -z 40" }, { GIB, "-O project_quota" },
  { GIB, "-O inode_checksum" }, { GIB, "-O compression,quota" }, { GIB, "-O nonsense" },
  { GIB, "-U nonsense" }, { GIB, "-x" }, { GIB, "-C latin1" }, { GIB, "-C utf8:loose" },
  { GIB, "-R 5" }, { GIB, "-o 0.001" }, { 100 * MIB, "-o 0.5" }, { GIB, "-m" },
  { GIB, "-S 1000000000" }, { GIB, "-H" }, { GIB, "-Z 5" }, { GIB, "-b 4096" },
  { GIB, "-O device_alias" }, { GIB, "-O packed_ssa" } }

---Name a configuration, for a test.
---@param config brim.spec.F2fsConfig
---@return string
function M.describe(config)
  local more = {}
  for i, size in ipairs(config.more or {}) do
    more[i] = (" and %d"):format(size)
  end
  return ("%d bytes%s %s"):format(config[1], table.concat(more), config[2])
end

-- --------------------------------------------------------------------- random

local function pick(list)
  return list[math.random(#list)]
end

local function chance(one_in)
  return math.random(one_in) == 1
end

local BOUNDARIES <const> = { 40 * MIB, 512 * MIB, 2 * GIB, 110 * GIB, TIB, 2 * TIB, 3200 * GIB,
  3254 * GIB }
local FEATURES <const> = { "encrypt", "extra_attr", "project_quota", "inode_checksum",
  "flexible_inline_xattr", "quota", "inode_crtime", "lost_found", "verity", "sb_checksum",
  "casefold", "compression" }

-- Large ones seldom: the reference writes hundreds of megabytes of zeros.
local function random_size()
  if chance(4) then
    return pick(BOUNDARIES) + pick { 0, 1, -1, 2, 3, math.random(-99, 99) }
      * pick { 512, 4 * KIB, 2 * MIB }
  elseif chance(25) then
    return math.random(4 * TIB, 16 * TIB - 4096)
  end
  local log2 = pick { 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40 }
  return (1 << log2) + math.random(0, (1 << log2) - 1)
end

local function random_features()
  local list = {}
  for _, name in ipairs(FEATURES) do
    list[#list + 1] = chance(4) and name or nil
  end
  if chance(2) and #list > 0 then
    list[#list + 1] = "extra_attr"
  end
  if chance(12) then
    list[#list + 1] = "ro"
  end
  return list[1] and "-O " .. table.concat(list, ",") or nil
end

---Make a random configuration, the same for the same seed and number. Most are valid.
---@param seed integer
---@param number integer
---@return brim.spec.F2fsConfig
function M.random(seed, number)
  math.randomseed(seed, number)
  local words, size_bytes, config = {}, random_size(), {}
  local function maybe(one_in, word)
    words[#words + 1] = chance(one_in) and word or nil
  end
  maybe(3, "-s " .. pick { 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 100, 128, math.random(300) })
  maybe(5, "-z " .. math.random(1, 9))
  maybe(3, "-o " .. pick { 1, 2, 5, 10, 0.5, 0.07, 50, math.random(1, 9999) / 100 })
  maybe(8, "-a 1")
  maybe(size_bytes < 400 * GIB and 4 or 1 << 30, "-i")
  maybe(5, "-t 0")
  maybe(6, "-l label" .. math.random(9999))
  maybe(9, "-e x" .. math.random(99) .. ",mp,y")
  maybe(9, "-E log,toolongname,z" .. math.random(99))
  maybe(9, "-R " .. math.random(0, 70000) .. ":" .. math.random(0, 70000))
  maybe(9, pick { "-C utf8", "-C utf8:strict" })
  maybe(30, "-g android")
  words[#words + 1] = chance(2) and random_features() or nil
  if chance(7) then
    config.more = {}
    for i = 1, math.random(3) do
      config.more[i] = math.random(2, 4000) * MIB + math.random(0, 9) * pick { 512, 777 }
    end
  elseif chance(9) then
    config.sectors = math.random(size_bytes // 1024, size_bytes // 500)
    maybe(2, "-w " .. pick { 512, 1024, 4096 })
  end
  config[1], config[2] = size_bytes, table.concat(words, " ")
  return config
end

return M
