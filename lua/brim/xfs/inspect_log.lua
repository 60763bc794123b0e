-- brim.xfs.inspect_log: the internal log as a view: where it lies, where it was last written
-- (head), from where it would be replayed (tail), and the record there. Called by inspect; `fs` is
-- the inspector. The head is found by bisecting the cycle numbers that begin each sector of 512
-- bytes, as log recovery does: some tens of reads, whatever the size. Block numbers in here are
-- such sectors.
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"
local view = require "brim.xfs.inspect_view"

local M = {}

local SECTOR_BYTES <const> = 512
local MAGIC <const> = ondisk.log_record:field("magicno").magic
local BUFFER_BYTES <const> = 32 << 10 -- a header has the cycle words of so much
local MAX_RECORD_BYTES <const> = 256 << 10 -- XLOG_MAX_RECORD_BSIZE
local LOOK_BACK_SECTORS <const> = 2 * MAX_RECORD_BYTES // SECTOR_BYTES + 2
local UNMOUNT_FLAG <const> = 0x20
local RECORD_STRUCT_BYTES <const> = 328 -- what the checksum covers of each header:
local EXTENSION_STRUCT_BYTES <const> = 260 -- sizeof on 64-bit machines

---@class brim.xfs.Log
---@field fs brim.xfs.Inspector
---@field off_bytes integer
---@field sectors integer

-- The sectors from one on; past the end it goes on at the start.
local function read_sectors(log, sector, count)
  local head = math.min(count, log.sectors - sector)
  local bytes = log.fs:must_read(log.off_bytes + sector * SECTOR_BYTES, head * SECTOR_BYTES)
  if head < count then
    bytes = bytes .. log.fs:must_read(log.off_bytes, (count - head) * SECTOR_BYTES)
  end
  return bytes
end

local function cycle_at(bytes, at)
  local word, second = (">I4I4"):unpack(bytes, at)
  return word == MAGIC and second or word
end

local function cycle_of(log, sector)
  return cycle_at(read_sectors(log, sector, 1), 1)
end

-- The first sector in (low, high] whose cycle is `cycle`, where low's is another.
local function bisect(log, low, high, cycle)
  while high - low > 1 do
    local middle = low + (high - low) // 2
    if cycle_of(log, middle) == cycle then
      high = middle
    else
      low = middle
    end
  end
  return high
end

-- The sector that would be written next; nil for a log that was never written.
local function head_of(log)
  local first, last = cycle_of(log, 0), cycle_of(log, log.sectors - 1)
  if first == 0 then
    return nil
  elseif first == last then
    return 0
  end
  return bisect(log, 0, log.sectors - 1, last)
end

-- The last record that begins before a sector: where, and its header.
local function record_before(log, sector)
  local count = math.min(LOOK_BACK_SECTORS, log.sectors)
  local first = (sector - count) % log.sectors
  local bytes = read_sectors(log, first, count)
  for i = count - 1, 0, -1 do
    if (">I4"):unpack(bytes, i * SECTOR_BYTES + 1) == MAGIC then
      return (first + i) % log.sectors, bytes:sub(i * SECTOR_BYTES + 1, (i + 1) * SECTOR_BYTES)
    end
  end
end

local function header_count(size)
  return math.max(1, (size + BUFFER_BYTES - 1) // BUFFER_BYTES)
end

-- Header structures and data in one: what a record's checksum covers. Nil where lengths are absurd.
local function covered_by(log, sector, record)
  if record.len > MAX_RECORD_BYTES or record.size > MAX_RECORD_BYTES or record.len < 0 then
    return nil
  end
  local headers = header_count(record.size)
  local sectors = headers + (record.len + SECTOR_BYTES - 1) // SECTOR_BYTES
  if sectors > log.sectors then
    return nil
  end
  local bytes = read_sectors(log, sector, sectors)
  local parts = { bytes:sub(1, RECORD_STRUCT_BYTES) }
  for i = 1, headers - 1 do
    parts[i + 1] = bytes:sub(i * SECTOR_BYTES + 1, i * SECTOR_BYTES + EXTENSION_STRUCT_BYTES)
  end
  parts[#parts + 1] = bytes:sub(headers * SECTOR_BYTES + 1, headers * SECTOR_BYTES + record.len)
  return table.concat(parts)
end

local function is_intact(covered)
  local _, intact = layout.struct("log_sum", { size_bytes = #covered, crc32c = "crc" }) {
    { 0, "bytes[32]", "before" },
    { 32, "u32le", "crc" },
    { 36, ("bytes[%d]"):format(#covered - 36), "behind" },
  }:decode(covered)
  return intact
end

-- Is the record the one that a clean unmount leaves?
local function is_unmount(log, sector, record)
  if record.num_logops ~= 1 or record.len < 12 then
    return false
  end
  local data = read_sectors(log, (sector + header_count(record.size)) % log.sectors, 1)
  return data:byte(10) & UNMOUNT_FLAG ~= 0
end

-- ------------------------------------------------------------------------ view

---The header of a log record as a view; its checksum, which covers more, is not checked.
---@param fs brim.xfs.Inspector
---@param off_bytes integer
---@param bytes string its sector
---@param title string
---@return brim.xfs.View
function M.record(fs, off_bytes, bytes, title)
  local record = view.decode(ondisk.log_record, { what = "log_record", fs = fs, bytes = bytes,
    off_bytes = off_bytes, title = title })
  record.about.verdicts.crc, record.about.faults = nil, {}
  view.expect(record, "magicno", MAGIC)
  view.expect(record, "fs_uuid", fs.primary.uuid)
  view.check(record, "len", record.len <= MAX_RECORD_BYTES, "at most %d", MAX_RECORD_BYTES)
  return record
end

local function show_record(v, log, sector, bytes)
  local record = M.record(log.fs, log.off_bytes + sector * SECTOR_BYTES, bytes,
    ("last log record, sector %d of the log"):format(sector))
  view.check(record, "lsn", record.lsn & 0xffffffff == sector, "of this sector, %d", sector)
  local covered = covered_by(log, sector, record)
  if covered and record.crc ~= 0 then
    view.check(record, "crc", is_intact(covered), "that of headers and data")
    record.about.verdicts.crc.is_exact = true
  end
  v.record = record
  table.insert(v.about.children, record)
  return record
end

-- Where replay begins, and whether there is anything to replay.
local function show_state(v, log, sector, record)
  v.tail_block, v.tail_cycle = record.tail_lsn & 0xffffffff, record.tail_lsn >> 32
  local data_end = (sector + header_count(record.size)
    + (record.len + SECTOR_BYTES - 1) // SECTOR_BYTES) % log.sectors
  v.is_clean = is_unmount(log, sector, record) and data_end == v.head_block
  if v.is_clean then
    v.tail_block, v.tail_cycle = v.head_block, nil
  end
  v.state = v.is_clean and "clean" or "dirty"
  view.line(v, "head", tostring(v.head_block), "sector that is written next")
  view.line(v, "tail", tostring(v.tail_block), "sector that replay begins at")
  view.line(v, "state", v.state, v.is_clean and "unmounted: nothing to replay"
    or "a mount would replay it")
end

local function fill(v, log)
  v.head_block = head_of(log)
  local sector, bytes
  if v.head_block then
    sector, bytes = record_before(log, v.head_block)
  end
  if not sector then
    v.state = v.head_block and "damaged" or "never written"
    view.line(v, "state", v.state)
    view.fault(v, v.head_block and "there should be a record header before sector %d"
      or "the first sector should have a cycle number, it has %d", v.head_block or 0)
    return v
  end
  local record = ondisk.log_record:decode(bytes)
  show_state(v, log, sector, record)
  show_record(v, log, sector, bytes)
  return v
end

---The internal log as a view: start (fs block), off_bytes, sectors, head_block, tail_block,
---is_clean, record. Raises when reading fails.
---@param fs brim.xfs.Inspector
---@return brim.xfs.View? view
---@return string? why there is none
function M.log(fs)
  local sb = fs.primary
  if sb.logstart == 0 then
    return nil, "the log is on another device"
  end
  local place, why = fs.address:block(sb.logstart)
  if not place then
    return nil, "the log: " .. why
  elseif sb.logblocks == 0 or place.agbno + sb.logblocks > fs.address:length(place.ag) then
    return nil, ("the log of %d blocks does not fit group %d"):format(sb.logblocks, place.ag)
  end
  local log = { fs = fs, off_bytes = place.off_bytes,
    sectors = sb.logblocks << fs.address.block_log2 - 9 }
  local v = view.new { what = "log", title = "internal log", fs = fs, values = {
    start = sb.logstart, group = place.ag, group_block = place.agbno, sectors = log.sectors,
    off_bytes = place.off_bytes, size_bytes = log.sectors * SECTOR_BYTES } }
  view.line(v, "start", tostring(sb.logstart), ("group %d, block %d; byte %d"):format(place.ag,
    place.agbno, place.off_bytes))
  view.line(v, "size", ("%d blocks"):format(sb.logblocks),
    ("%d sectors of 512 bytes"):format(log.sectors))
  return fill(v, log)
end

return M
