-- brim.fill.log: what a fill must remember beyond its seed, below PATH/.brim-fill: options, phases,
-- how far each stream was when, what was refused. Called by brim.fill.session and whoever replays.
-- A text file, a record a line, written beforehand with zero bytes so that it can still be written
-- when the filesystem is full. A line ends with a checksum: after a crash the last may be torn.
local core = require "brim.core"
local errors = require "brim.error"
local json = require "brim.json"
local process = require "brim.process"

local M = {}
M.__index = M

---The directory of the log below the path that is filled.
M.DIR = ".brim-fill"
local FORMAT <const>, VERSION <const> = "brim-fill", 1
local LEAST_BYTES <const>, MOST_BYTES <const> = 256 << 10, 16 << 20
local SPARE <const>, SPARE_BYTES <const> = ".spare", 1 << 20
local TRIES <const>, PAUSE_S <const> = 20, 0.01 -- 2 s in all
local ENOSPC <const>, EDQUOT <const> = 28, 122
local ZEROS <const> = ("\0"):rep(64 << 10)

---@class brim.FillLog
---@field path string of the file
---@field header table
---@field at_bytes integer where the next record goes

-- FNV-1a of 32 bits: lines are short.
local function checksum(text)
  local sum = 0x811c9dc5
  for i = 1, #text do
    sum = (sum ~ text:byte(i)) * 0x01000193 & 0xffffffff
  end
  return ("%08x"):format(sum)
end

local function line_of(record)
  local text = json.encode(record)
  return checksum(text) .. " " .. text .. "\n"
end

-- The record of a line, or nil where it is torn.
local function record_of(line)
  local sum, text = line:match "^(%x+) (.*)$"
  return sum and checksum(text) == sum and json.decode(text) or nil
end

local function failed(path, why, errno, op)
  local code = ({ [2] = "ENOENT", [13] = "EACCES", [28] = "ENOSPC", [30] = "EROFS",
    [122] = "EDQUOT" })[errno] or "EIO"
  return errors.new { code = code, errno = errno, op = op, path = path, message = why }
end

---Tell where the log of a filled path lies.
---@param path string
---@return string
function M.path_of(path)
  return path .. "/" .. M.DIR .. "/log"
end

local function preallocate(file, size_bytes)
  local left = size_bytes
  while left > 0 do
    local n = math.min(left, #ZEROS)
    local ok, why, errno = file:write(n == #ZEROS and ZEROS or ZEROS:sub(1, n))
    if not ok then
      return nil, why, errno
    end
    left = left - n
  end
  return file:seek "set"
end

---Begin a log: a hundredth of the filesystem at most, 16 MiB at most.
---@param path string what is filled
---@param header table options, seed, ...
---@param fs_bytes integer the filesystem's size
---@return brim.FillLog? log
---@return brim.Error? err
function M.create(path, header, fs_bytes)
  local file_path = M.path_of(path)
  local ok, why = process.run("mkdir", "-p", "--", path .. "/" .. M.DIR)
  if not ok then
    return nil, failed(path, why, 30, "mkdir")
  end
  local file, reason, errno = io.open(file_path, "w+b")
  if not file then
    return nil, failed(file_path, reason, errno, "open")
  end
  -- Copy on write would need new space for every record. Only some filesystems can do without.
  process.run("chattr", "+C", "--", file_path)
  file:setvbuf "no"
  local size = math.max(math.min(fs_bytes // 100, MOST_BYTES), LEAST_BYTES)
  local self = setmetatable({ path = file_path, file = file, header = header, at_bytes = 0,
    waiting = "", records = 0 }, M)
  ok, reason, errno = preallocate(file, size)
  if not ok then
    self:discard()
    return nil, failed(file_path, reason, errno, "write")
  end
  local spare = io.open(file_path .. SPARE, "wb")
  if spare then
    preallocate(spare, SPARE_BYTES)
    spare:close()
  end
  header.format, header.version = FORMAT, VERSION
  local written, err = self:add(header)
  if not written then
    self:discard()
    return nil, err
  end
  return self
end

local function write_at(self, text)
  local ok, why, errno = self.file:seek("set", self.at_bytes)
  if ok then
    ok, why, errno = self.file:write(text)
  end
  if ok then
    self.at_bytes = self.at_bytes + #text
    self.waiting = ""
  end
  return ok, why, errno
end

---Append a record. Where every write needs new space (copy on write under a quota), it waits in
---memory until there is some.
---@param record table of what JSON can say
---@return true? ok
---@return brim.Error? err
function M:add(record)
  local text = self.waiting .. line_of(record)
  local ok, why, errno = write_at(self, text)
  if not ok and errno ~= ENOSPC and errno ~= EDQUOT then
    return nil, failed(self.path, why, errno, "write")
  end
  self.waiting = ok and "" or text
  self.records = self.records + 1
  return true
end

---Write what waits: gives up the space that was kept for it, and waits for what a sync sets free.
---@return true? ok
---@return brim.Error? err
function M:flush()
  local ok, why, errno = self.waiting == "", nil, nil
  for try = 0, ok and -1 or TRIES do
    ok, why, errno = write_at(self, self.waiting)
    if ok then
      break
    end
    os.remove(self.path .. SPARE)
    core.usage_sync(self.path)
    core.sleep(PAUSE_S * try)
  end
  if not ok then
    return nil, failed(self.path, why, errno, "write")
  end
  return true
end

-- Takes the records up to the first that is none, and says where that is. A crash tears it only
-- where nothing stable follows: a checkpoint comes after a sync, so the second one behind it says
-- that it was stable once.
local function take_records(out, text)
  local bad_at, checkpoints = nil, 0
  for at, line, after in text:gmatch "()([^\n\0]*)\n()" do
    local record = record_of(line)
    if not record then
      bad_at = bad_at or at - 1
    elseif bad_at then
      checkpoints = checkpoints + (record.type == "checkpoint" and 1 or 0)
    elseif out.header then
      out.records[#out.records + 1], out.ends[#out.ends + 1] = record, after - 1
    else
      out.header, out.header_end = record, after - 1
    end
  end
  return checkpoints >= 2 and bad_at or nil
end

---Read the log of a path: the records up to the first that is torn. EILSEQ where one is damaged
---that was whole before, unless that does not matter.
---@param path string what was filled
---@param for_cleaning? boolean the header is all that counts
---@return { header: table, records: table[], ends: integer[] }? log ends[i]: where record i ends
---@return brim.Error? err
function M.read(path, for_cleaning)
  local file_path = M.path_of(path)
  local file, why, errno = io.open(file_path, "rb")
  if not file then
    if errno == 2 then
      return nil, errors.refused(errors.new { code = "ENOENT", errno = 2, op = "open", path = path,
        message = ("%s holds no fill of brim: there is no %s"):format(path, M.DIR) })
    end
    return nil, failed(file_path, why, errno, "open")
  end
  local text = file:read "a"
  file:close()
  local out = { records = {}, ends = {} }
  local bad_at = take_records(out, text)
  if bad_at and out.header and not for_cleaning then
    return nil, errors.new { code = "EILSEQ", op = "read", path = file_path, offset_bytes = bad_at,
      message = ("%s is damaged at byte %d: what the fill did after that is not known; 'brim fill "
        .. "--clean' still removes its files"):format(file_path, bad_at) }
  end
  if not out.header or out.header.format ~= FORMAT then
    return nil, errors.new { code = "EILSEQ", op = "read", path = file_path,
      message = file_path .. " is no log of a fill" }
  elseif out.header.version ~= VERSION then
    return nil, errors.new { code = "EPROTO", op = "read", path = file_path,
      message = ("%s is of version %s, this brim reads %d"):format(file_path,
        tostring(out.header.version), VERSION) }
  end
  return out
end

---Go on with a log that was read, behind its first `count` records; what follows is forgotten.
---@param path string what was filled
---@param read table of M.read
---@param count integer
---@return brim.FillLog? log
---@return brim.Error? err
function M.continue(path, read, count)
  local file_path = M.path_of(path)
  local file, why, errno = io.open(file_path, "r+b")
  if not file then
    return nil, failed(file_path, why, errno, "open")
  end
  file:setvbuf "no"
  local self = setmetatable({ path = file_path, file = file, header = read.header,
    at_bytes = count > 0 and read.ends[count] or read.header_end, waiting = "",
    records = count + 1 }, M)
  -- What lies behind must not be taken for what comes next.
  local last = read.ends[#read.ends] or self.at_bytes
  local left = last + 4096 - self.at_bytes
  local ok = file:seek("set", self.at_bytes)
  while ok and left > 0 do
    ok, why, errno = file:write(ZEROS:sub(1, math.min(left, #ZEROS)))
    left = left - #ZEROS
  end
  if not ok then
    file:close()
    return nil, failed(file_path, why, errno, "write")
  end
  return self
end

---End it; any number of times.
function M:close()
  if self.file then
    self.file:close()
    self.file = nil
  end
end

---Take it away, where a run could not begin: nothing is left that would have to be cleaned up.
function M:discard()
  self:close()
  os.remove(self.path .. SPARE)
  os.remove(self.path)
  os.remove((self.path:gsub("/[^/]*$", "")))
end

M.__close = M.close
M.__gc = M.close

return M
