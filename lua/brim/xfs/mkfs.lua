-- brim.xfs.mkfs: formats a target as mkfs.xfs does: what is known of it, what it held before, the
-- plan, the writing. Called by the recipes mkfs.xfs and xfs-8eb. A target named *.brim is an image
-- file of brim.
local device = require "brim.device"
local errors = require "brim.error"
local ondisk = require "brim.xfs.ondisk"
local xfs = require "brim.xfs"

local M = {}

local BLOCK_LOG2_MIN <const>, BLOCK_LOG2_MAX <const> = 9, 16 -- of any XFS there ever was
local AG_BYTES_MIN <const> = 16 << 20
local SIGNATURE_BYTES <const> = 64 << 10 -- where the signatures at the front of any filesystem end
local OLD_MAGIC <const> = "XFSB"
local FRONT_BYTES <const> = 4096 -- the primary superblock is within

---Does a target's name ask for an image file of brim?
---@param target string
---@return boolean
function M.is_image(target)
  return target:find "%.brim$" ~= nil
end

-- What geometry must know of a target that is there.
local function facts(opened)
  local info = opened:info()
  local is_file = info.kind == "file"
  return { size_bytes = info.size_bytes, is_file = is_file,
    sector_bytes = not is_file and info.logical_sector_bytes or nil,
    physical_sector_bytes = not is_file and info.physical_sector_bytes or nil,
    min_io_bytes = not is_file and info.min_io_bytes or nil,
    opt_io_bytes = not is_file and info.opt_io_bytes or nil }
end

---What is known of a target before it is opened for writing. A file that is not there yet counts as
---empty; whether it may be made is for the caller to say.
---@param target string
---@return brim.xfs.Device? device
---@return brim.Error? err
function M.look(target)
  if M.is_image(target) then
    return { size_bytes = 0, is_file = true }
  end
  local opened <close>, err = device.open(target, { raw = true })
  if opened then
    return facts(opened)
  elseif err.code == "ENOENT" then
    return { size_bytes = 0, is_file = true, is_missing = true }
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
    return device.null(g.size_bytes)
  end
  return device.open(target, { write = true, force = o.force, raw = true, create = o.create,
    direct = o.run.direct, buffered = o.run.buffered, min_size_bytes = g.size_bytes })
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
  local ready = o.ready or function() end
  if M.is_image(target) then
    local p <close>, err = xfs.format(o.format)
    if not p then
      return nil, err
    end
    ready(p, false)
    return M.save(p, target)
  end
  local g, err = xfs.geometry(o.format)
  if not g then
    return nil, err
  end
  local opened <close>, why = open(target, g, o)
  if not opened then
    return nil, why
  end
  local old, discarded = M.old(opened), false
  if o.discard and opened:info().kind == "block" then
    discarded, err = discard(opened)
    if discarded == nil then
      return nil, err
    end
  end
  o.format.old = old and (not discarded or has_copies(opened, old)) and old or nil
  local p <close> = assert(xfs.format(o.format))
  ready(p, discarded)
  local before = assert(opened:read(0, math.max(FRONT_BYTES, opened:info().align_bytes)))
  local result, failed = p:write(opened, o.run)
  if not result or result.stopped then
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
  local old <close> = device.open(path, { raw = true })
  if old and old:info().size_bytes > 0 and old:read(0, 8) ~= "brimimg\0" then
    return nil, errors.usage("%s is there and is no brim image; name another file", path)
  end
  local ok, err = p:save(path)
  if not ok then
    return nil, err
  end
  local totals = p:totals()
  return { groups = totals.groups, writes = 0, bytes = totals.write_bytes, engine = "image",
    image = path, mean_queue_depth = 0, geometry = p.geometry }
end

return M
