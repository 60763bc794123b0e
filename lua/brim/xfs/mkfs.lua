-- brim.xfs.mkfs: formats a target as mkfs.xfs does: what is known of it, what it held before, the
-- plan, the writing. Called by the recipes mkfs.xfs and xfs-8eb. A target named *.brim is an image
-- file of brim.
local device = require "brim.device"
local errors = require "brim.error"
local ondisk = require "brim.xfs.ondisk"
local schema = require "brim.xfs.schema"
local versions = require "brim.xfs.versions"
local xfs = require "brim.xfs"

local M = {}

local BLOCK_LOG2_MIN <const>, BLOCK_LOG2_MAX <const> = 9, 16 -- of any XFS there ever was
local AG_BYTES_MIN <const> = 16 << 20
local SIGNATURE_BYTES <const> = 64 << 10 -- where the signatures at the front of any filesystem end
local OLD_MAGIC <const> = "XFSB"
local IMAGE_MAGIC <const> = "brimimg\0"
local DETERMINISTIC_GENERATION <const> = 0x53454544 -- "SEED"
local FRONT_BYTES <const> = 4096 -- the primary superblock is within

---Does a target's name ask for an image file of brim?
---@param target string
---@return boolean
function M.is_image(target)
  return target:find "%.brim$" ~= nil
end

---Check the name of an image file.
---@param target string
---@return boolean ok
---@return string? why
function M.check_name(target)
  return M.is_image(target), ("'%s' is not named NAME.brim"):format(target)
end

---Make the error of a geometry bad input. It names options as mkfs.xfs does; `names` maps them to
---the caller's.
---@param err brim.xfs.OptionError
---@param names? table<string, string>
---@return brim.Error
function M.usage(err, names)
  local option = err.message:match "^%-%l [%l]+"
  local name = names and names[option]
  return errors.usage("%s%s", name or "", err.message:sub(name and #option + 1 or 1))
end

-- CPUs online, from the kernel's list like "0-3,6".
local function cpus()
  local file <close> = io.open "/sys/devices/system/cpu/online"
  local count = 0
  for first, last in (file and file:read "l" or ""):gmatch "(%d+)%-?(%d*)" do
    count = count + (tonumber(last) or tonumber(first)) - tonumber(first) + 1
  end
  return math.max(math.tointeger(count), 1)
end

-- What geometry must know of a target that is there.
local function facts(opened)
  local info = opened:info()
  local is_file = info.kind == "file"
  return { size_bytes = info.size_bytes, is_file = is_file, cpus = cpus(),
    is_rotational = is_file or info.is_rotational,
    sector_bytes = not is_file and info.logical_sector_bytes or nil,
    physical_sector_bytes = not is_file and info.physical_sector_bytes or nil,
    min_io_bytes = not is_file and info.min_io_bytes or nil,
    opt_io_bytes = not is_file and info.opt_io_bytes or nil,
    alignment_offset_bytes = not is_file and info.misaligned_bytes or nil }
end

local function holds_image(opened)
  local info = opened:info()
  return info.kind == "file" and info.size_bytes >= #IMAGE_MAGIC
    and opened:read(0, #IMAGE_MAGIC) == IMAGE_MAGIC
end

---What is known of a target before it is opened for writing. A file that is not there yet counts as
---empty; whether it may be made is for the caller to say. An image file under another name than
---NAME.brim is a target by force only.
---@param target string
---@param force? boolean
---@return brim.xfs.Device? device
---@return brim.Error? err
function M.look(target, force)
  if M.is_image(target) then
    return { size_bytes = 0, is_file = true, cpus = cpus() }
  end
  local opened <close>, err = device.open(target, { raw = true })
  if opened and holds_image(opened) and not force then
    return nil, errors.usage("%s holds a brim image, which cannot be written to; a new one is "
      .. "named NAME.brim; --force overwrites this one", target)
  elseif opened then
    return facts(opened)
  elseif err.code == "ENOENT" then
    return { size_bytes = 0, is_file = true, is_missing = true, cpus = cpus() }
  end
  return nil, err
end

---The geometry of the XFS a target holds, if its superblock is plausible (as mkfs.xfs judges it
---before it erases the copies); nil otherwise.
---@param opened brim.Device
---@return { ag_count: integer, ag_bytes: integer }?
function M.old(opened)
  local size = ondisk.sb.size_bytes
  local bytes = opened:info().size_bytes >= 4096 and opened:read(0, 4096)
  local sb = bytes and ondisk.sb:decode(bytes, 0, size)
  if not sb or sb.magicnum ~= ondisk.sb:field("magicnum").magic then
    return nil
  end
  local log2, count, blocks = sb.blocklog, sb.agcount, sb.agblocks
  local plausible = log2 >= BLOCK_LOG2_MIN and log2 <= BLOCK_LOG2_MAX and sb.blocksize == 1 << log2
    and count >= 1 and blocks > 0 and sb.dblocks > 0 and sb.dblocks <= count * blocks
    and sb.dblocks >= (count - 1) * blocks + (AG_BYTES_MIN >> log2)
  return plausible and { ag_count = count, ag_bytes = blocks << log2 } or nil
end

---Does a run with these options write nothing, so that its target need not exist?
---@param run? { engine?: string }
---@return boolean
function M.writes_nothing(run)
  return run ~= nil and run.engine == "null"
end

local function open(target, g, o)
  if M.writes_nothing(o.run) then
    local there = o.format.device
    return device.null(math.max(g.size_bytes, there and there.size_bytes or 0))
  end
  -- The end of a longer target is written to as well.
  local align_bytes, there = g.sector_bytes, o.format.device
  while there and there.size_bytes % align_bytes ~= 0 do
    align_bytes = align_bytes >> 1
  end
  return device.open(target, { write = true, force = o.force, raw = true, create = o.create,
    direct = o.run.direct, buffered = o.run.buffered, min_size_bytes = g.size_bytes,
    direct_align_bytes = align_bytes })
end

-- What the environment fixes, as releases from 7.2 read it: SOURCE_DATE_EPOCH the time of the
-- inodes, DETERMINISTIC_SEED=1 their generation numbers. A bad time is ignored, with a warning.
local function environment(compat)
  local fixed, warning = {}, nil
  if versions.of(compat).obeys_environment then
    local epoch = os.getenv "SOURCE_DATE_EPOCH"
    local s = epoch and epoch:match "^%d+$" and math.tointeger(tonumber(epoch))
    if s and s <= math.maxinteger // 1000000000 then
      fixed.time_ns = s * 1000000000
    elseif epoch then
      warning = ("SOURCE_DATE_EPOCH=%s is no number of seconds, ignored"):format(epoch)
    end
    fixed.generation = os.getenv "DETERMINISTIC_SEED" == "1" and DETERMINISTIC_GENERATION or nil
  end
  return fixed, warning
end

---The options of brim.xfs.format for a command line, which has more, and for its environment.
---@param o brim.xfs.CommandLine
---@param facts_of_it brim.xfs.Device
---@return table format
---@return string? warning what of the environment is ignored
function M.options(o, facts_of_it)
  local fixed, warning = environment(o.compat)
  local format = { device = facts_of_it, unsupported = o.unsupported, force = o.force,
    suffix_sector_bytes = o.suffix_sector_bytes, time_ns = fixed.time_ns,
    generation = fixed.generation }
  for name in pairs(schema.SCHEMA) do
    format[name] = o[name]
  end
  return format, warning
end

-- Whether the first superblock copy of an older filesystem is still there.
local function has_copies(opened, old)
  local magic = old.ag_bytes < opened:info().size_bytes and opened:read(old.ag_bytes, 4)
  return magic == OLD_MAGIC
end

-- Discards a block device: only an optimisation, one that cannot is left as it is. The signature
-- goes before: a device may keep its first sectors (no whole granule, say) while the rest goes.
local function discard(opened)
  local size_bytes = opened:info().size_bytes
  local ok, err = opened:write(0, ("\0"):rep(math.min(SIGNATURE_BYTES, size_bytes)))
  if ok then
    ok, err = opened:flush()
  end
  if not ok then
    return nil, err
  end
  return opened:discard(0, size_bytes) or false
end

local function make_plan(format, old)
  local copy = { old = old }
  for name, v in pairs(format) do
    copy[name] = v
  end
  return assert(xfs.format(copy))
end

-- The plan for an open target, and whether that was discarded. What can be refused is so before.
local function prepare(opened, o)
  local old = M.old(opened)
  local p = make_plan(o.format, old)
  if not o.discard or opened:info().kind ~= "block" then
    return p, false
  end
  local discarded
  local ok, err = p:can_write(opened, o.run)
  if ok then
    discarded, err = discard(opened)
  end
  if discarded == nil then
    p:close()
    return nil, err
  elseif discarded and old and not has_copies(opened, old) then
    p:close()
    p = make_plan(o.format)
  end
  return p, discarded
end

-- A format that failed leaves no superblock; the old one only where it was not written over.
local function unmake(opened, before)
  local now = opened:read(0, #before)
  if now ~= before then
    opened:write(0, ("\0"):rep(#before))
    opened:flush()
  end
end

---Format an opened or image target after a geometry. Options: geometry options `format`, `discard`,
---and those of plan:write.
---@param target string
---@param o { format: table, discard?: boolean, force?: boolean, create?: boolean, run?: table,
--- ready?: fun(plan: brim.Plan, discarded: boolean) } `ready` is called before the first write
---@return brim.RunResult? result
---@return brim.Error? err
function M.format(target, o)
  o = setmetatable({ ready = o.ready or function() end, run = o.run or {} }, { __index = o })
  local g, err = xfs.geometry(o.format)
  if not g then
    return nil, M.usage(err)
  elseif M.is_image(target) and not M.writes_nothing(o.run) then
    local p <close> = assert(xfs.format(o.format))
    local result, why = M.save(p, target)
    if result then
      o.ready(p, false)
    end
    return result, why
  end
  local opened <close>, why = open(target, g, o)
  if not opened then
    return nil, why
  end
  local p <close>, discarded = prepare(opened, o)
  if not p then
    return nil, discarded
  end
  o.ready(p, discarded)
  local before = assert(opened:read(0, math.max(FRONT_BYTES, opened:info().align_bytes)))
  local result, failed = p:write(opened, o.run)
  local is_missing = o.format.device and o.format.device.is_missing
  if not result and failed.usage and is_missing then
    os.remove(target)
  elseif not result or result.stopped then
    unmake(opened, before)
  end
  if result then
    result.geometry = p.geometry
  end
  return result, failed
end

---Save a plan as an image file; the result says what it stands for.
---@param p brim.Plan
---@param path string
---@return table? result
---@return brim.Error? err
function M.save(p, path)
  local ok, err = p:save(path)
  if not ok then
    return nil, err.code == "ENOSPC" and err or errors.refused(err)
  end
  local totals = p:totals()
  return { groups = totals.groups, writes = 0, bytes = totals.write_bytes, engine = "image",
    image = path, mean_queue_depth = 0, geometry = p.geometry }
end

return M
