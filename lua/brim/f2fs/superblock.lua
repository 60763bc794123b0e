-- brim.f2fs.superblock: the superblock of a fresh filesystem, as bytes. Called by format.
local content = require "brim.f2fs.content"
local crc = require "brim.f2fs.crc"
local ondisk = require "brim.f2fs.ondisk"

local M = {}

local CRC_OFF_BYTES <const> = 3068
local PATH_BYTES <const>, EXTENSION_BYTES <const> = 64, 8
local MOST_EXTENSIONS <const> = 64
local ENCODING_UTF8 <const> = 1

-- What the kernel treats as cold, and as hot, by the end of its name (mkfs.f2fs 1.15 and 1.16).
local COLD <const> = "mp wm og jp avi m4v m4p mkv mov webm wav m4a 3gp opus flac gif png svg webp "
  .. "jar deb iso gz xz zst pdf pyc ttc ttf exe apk cnt exo odex vdex so"
local HOT <const> = "db vmdk vdi qcow2"

-- Adds the user's to the defaults: not twice, none of 8 bytes or more.
local function add_extensions(all, defaults, more, warn)
  local seen = {}
  for _, name in ipairs(all) do
    seen[name] = true
  end
  for name in defaults:gmatch "%S+" do
    all[#all + 1], seen[name] = name, true
  end
  for name in (more or ""):gmatch "[^, ]+" do
    if #name >= EXTENSION_BYTES then
      warn("extension '%s' is left out: it is longer than 7 bytes", name)
    elseif not seen[name] then
      all[#all + 1], seen[name] = name, true
    end
  end
end

---The extension list: names, and how many of them are cold.
---@param o table cold, hot: further ones, as -e and -E have them
---@param warn fun(fmt: string, ...: any)
---@return string[]? names nil where they are more than fit
---@return integer cold
function M.extensions(o, warn)
  local all = {}
  add_extensions(all, COLD, o.cold, warn)
  local cold = #all
  add_extensions(all, HOT, o.hot, warn)
  return #all <= MOST_EXTENSIONS and all or nil, cold
end

local function extension_bytes(names)
  local list = {}
  for i, name in ipairs(names) do
    list[i] = name .. ("\0"):rep(EXTENSION_BYTES - #name)
  end
  return table.concat(list)
end

---A label as words of UTF-16; nil where it is no UTF-8.
---@param label string
---@return integer[]? words
function M.utf16(label)
  if not utf8.len(label) then
    return nil
  end
  local words = {}
  for _, code in utf8.codes(label) do
    if code > 0xffff then
      words[#words + 1] = 0xd800 | code - 0x10000 >> 10 & 0x3ff
      code = 0xdc00 | code - 0x10000 & 0x3ff
    end
    words[#words + 1] = code
  end
  return words
end

---A label out of words of UTF-16.
---@param words integer[]
---@return string
function M.utf8(words)
  local list, high = {}, nil
  for _, word in ipairs(words) do
    if word == 0 then
      break
    elseif word >> 10 == 0x36 then
      high = word & 0x3ff
    else
      list[#list + 1] = high and 0x10000 + (high << 10 | word & 0x3ff) or word
      high = nil
    end
  end
  return utf8.char(table.unpack(list))
end

local function devices_of(g)
  local list = {}
  for i, device in ipairs(#g.devices > 1 and g.devices or {}) do
    list[i] = { path = device.path:sub(1, PATH_BYTES), total_segments = device.segments }
  end
  return list
end

local function quota_inodes(g)
  local list = { 0, 0, 0 }
  for _, inode in ipairs(content.inodes(g)) do
    if inode.quota then
      list[inode.quota] = inode.ino
    end
  end
  return list
end

---The superblock.
---@param g brim.f2fs.Geometry
---@param o table uuid, label, extensions, cold_count, kernel (the text), strict
---@return string bytes 3072
function M.bytes(g, o)
  local names = o.extensions
  local bytes = ondisk.sb:encode { minor_ver = g.version.minor, segs_per_sec = g.section_segments,
    secs_per_zone = g.zone_sections, checksum_offset = g.has.sb_checksum and CRC_OFF_BYTES or nil,
    block_count = g.size_bytes // g.sector_bytes * g.sector_bytes >> 12,
    section_count = g.section_count, segment_count = g.segment_count, segment_count_ckpt = 2,
    segment_count_sit = g.sit_segments, segment_count_nat = g.nat_segments,
    segment_count_ssa = g.ssa_segments, segment_count_main = g.main_segments,
    segment0_blkaddr = g.segment0_block, cp_blkaddr = g.segment0_block, sit_blkaddr = g.sit_block,
    nat_blkaddr = g.nat_block, ssa_blkaddr = g.ssa_block, main_blkaddr = g.main_block,
    uuid = o.uuid, volume_name = M.utf16(o.label or ""), extension_count = o.cold_count,
    extension_list = extension_bytes(names), hot_ext_count = #names - o.cold_count,
    cp_payload = g.cp_payload, version = o.kernel, init_version = o.kernel, feature = g.features,
    devs = devices_of(g), qf_ino = quota_inodes(g),
    log_sectorsize = g.sector_log2, log_sectors_per_block = 12 - g.sector_log2,
    s_encoding = g.has.casefold and (o.encoding or 0) or nil,
    s_encoding_flags = g.has.casefold and o.strict and 1 or nil }
  return g.has.sb_checksum and crc.put(bytes, CRC_OFF_BYTES, crc.sb(bytes)) or bytes
end

---What -C utf8 stands for.
M.ENCODING_UTF8 = ENCODING_UTF8

return M
