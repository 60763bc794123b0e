-- brim.xfs.inspect: any structure of any group of an XFS, by name or address, from a device, a file
-- or an image file of whatever size: one or two reads each. Read-only. Called by the recipe
-- inspect, as brim.xfs.open by scripts and the REPL. Damaged structures are shown with what is
-- wrong.
--
--   local fs <close> = assert(brim.xfs.open "8eb.brim")
--   print(fs:agf(8000000))   print(fs:agf(8000000).freeblks)   print(fs:inode(128).mode)
local address = require "brim.xfs.address"
local block = require "brim.xfs.inspect_block"
local device = require "brim.device"
local errors = require "brim.error"
local group = require "brim.xfs.inspect_group"
local inode = require "brim.xfs.inspect_inode"
local log = require "brim.xfs.inspect_log"
local ondisk = require "brim.xfs.ondisk"
local text = require "brim.xfs.text"
local tree = require "brim.xfs.inspect_tree"
local view = require "brim.xfs.inspect_view"
local words = require "brim.xfs.inspect_words"

local M = {}

local MAX_BYTES <const> = 1 << 20 -- what `bytes` shows at most
local MAX_SECTOR_LOG2 <const> = 15
local META_UUID <const> = 0x4

---@class brim.xfs.Inspector
---@field target string
---@field device brim.Device
---@field size_bytes integer of the target
---@field primary table the primary superblock's fields
---@field address? brim.xfs.Address nil where the superblock is too damaged
---@field damage? string what is wrong with it then
---@field uuid string that the metadata carry
---@field has table<string, boolean> features
local Inspector = {}
Inspector.__index = Inspector
Inspector.__name = "brim.xfs.inspector"

-- --------------------------------------------------------------------- reading

---Read bytes of the target. Nothing past its end.
---@param off_bytes integer
---@param len_bytes integer
---@return string? bytes
---@return brim.Error? err
function Inspector:read(off_bytes, len_bytes)
  if off_bytes < 0 or len_bytes > self.size_bytes or off_bytes > self.size_bytes - len_bytes then
    return nil, errors.usage("%d bytes at %d lie past the end of %s, %d bytes", len_bytes,
      off_bytes, self.target, self.size_bytes)
  end
  return self.device:read(off_bytes, len_bytes)
end

---Read bytes of the target; raises the error.
---@param off_bytes integer
---@param len_bytes integer
---@return string bytes
function Inspector:must_read(off_bytes, len_bytes)
  local bytes, err = self:read(off_bytes, len_bytes)
  return bytes or error(err, 0)
end

-- Calls f; an error object of ours that it raises becomes nil, err.
local function guarded(f, ...)
  local ok, result, why = pcall(f, ...)
  if ok then
    return result, why and errors.usage("%s", why)
  elseif errors.is(result) then
    return nil, result
  end
  error(result, 0)
end

local function check_integer(v, name)
  if math.type(v) ~= "integer" then
    error(("brim.xfs.inspect: %s is an integer, not %s"):format(name, tostring(v)), 3)
  end
end

-- Raises what addresses refuse, and a superblock that gives none.
local function must(v, why)
  return v or error(errors.usage("%s", why), 0)
end

local function must_address(self)
  return self.address or error(errors.usage("%s: the superblock is damaged: %s; only 'sb' and "
    .. "'bytes' can be shown", self.target, self.damage), 0)
end

-- ------------------------------------------------------------------ superblock

local FEATURES <const> = { finobt = { "features_ro_compat", 1 },
  rmapbt = { "features_ro_compat", 2 }, reflink = { "features_ro_compat", 4 },
  inobtcount = { "features_ro_compat", 8 },
  ftype = { "features_incompat", 1 }, sparse = { "features_incompat", 2 },
  bigtime = { "features_incompat", 8 }, nrext64 = { "features_incompat", 0x20 },
  exchange = { "features_incompat", 0x40 }, parent = { "features_incompat", 0x80 },
  metadir = { "features_incompat", 0x100 } }

local function sector_bytes(sb)
  return sb.sectlog >= 9 and sb.sectlog <= MAX_SECTOR_LOG2 and 1 << sb.sectlog or 512
end

local function take_superblock(self)
  if self.size_bytes < 512 then
    error(errors.usage("%s is no XFS: it has %d bytes", self.target, self.size_bytes), 0)
  end
  local bytes = self:must_read(0, 512)
  local sb = ondisk.sb:decode(bytes, 0, 512)
  self.primary, self.has = sb, {}
  for name, where in pairs(FEATURES) do
    self.has[name] = sb[where[1]] & where[2] ~= 0
  end
  self.uuid = sb.features_incompat & META_UUID ~= 0 and sb.meta_uuid or sb.uuid
  if sb.magicnum ~= ondisk.sb:field("magicnum").magic then
    self.damage = ("its magic number is 0x%x"):format(sb.magicnum)
  elseif sb.versionnum & 15 ~= 5 then
    self.damage = ("it is of version %d, brim reads version 5"):format(sb.versionnum & 15)
  else
    self.address, self.damage = address.of(sb)
  end
end

---Open a filesystem to look at: a device, a file, or an image file. Only its superblock is read.
---One whose superblock is damaged opens too, for `sb` and `bytes`.
---@param target string
---@return brim.xfs.Inspector? inspector to be closed by the caller
---@return brim.Error? err
function M.open(target)
  local opened, err = device.open(target, { buffered = true })
  if not opened then
    return nil, err
  end
  local self = setmetatable({ target = target, device = opened,
    size_bytes = opened:info().size_bytes }, Inspector)
  local ok
  ok, err = guarded(function()
    take_superblock(self)
    return self
  end)
  if not ok then
    self:close()
    return nil, err
  end
  return self
end

-- A header sector of a group: its view made by `show`.
local function header(self, ag, number, show, extra)
  check_integer(ag, "a group")
  return guarded(function()
    local sector = 1 << must_address(self).sector_log2
    local at = must(self.address:group_bytes(ag, number * sector))
    return show(self, ag, at, self:must_read(at, sector), extra)
  end)
end

---The superblock of a group; without a number, the primary one.
---@param ag? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:sb(ag)
  if ag ~= nil and ag ~= 0 then
    return header(self, ag, 0, group.sb)
  end
  return guarded(function()
    local size = math.min(sector_bytes(self.primary), self.size_bytes)
    return group.sb(self, 0, 0, self:must_read(0, size))
  end)
end

---The free space header of a group.
---@param ag integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:agf(ag)
  return header(self, ag, 1, group.agf)
end

---The inode header of a group.
---@param ag integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:agi(ag)
  return header(self, ag, 2, group.agi)
end

---The free list of a group; what is in use of it is said by the AGF, which is read too.
---@param ag integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:agfl(ag)
  local agf = self:agf(ag)
  local is_known = agf and agf.about.verdicts.magicnum.ok
  return header(self, ag, 3, group.agfl, is_known and agf or nil)
end

-- ----------------------------------------------------------------------- trees

-- The root's block number and level, from the header that has them.
local function root_of(self, name, ag)
  local of = tree.TREES[name]
  if of.feature and not self.has[of.feature] then
    error(errors.usage("%s has no %s: it was made without the feature %s", self.target, name,
      of.feature), 0)
  end
  local v = must(self[of.header](self, ag))
  return v[of.root], v[of.level] - 1
end

---A block of a tree of a group: its root, or the block with a number.
---@param name "bnobt"|"cntbt"|"inobt"|"finobt"|"rmapbt"|"refcountbt"
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:tree(name, ag, agbno)
  check_integer(ag, "a group")
  return guarded(function()
    must(must_address(self):has_group(ag))
    local root, level
    if agbno then
      check_integer(agbno, "a block")
    else
      root, level = root_of(self, name, ag)
    end
    local place = must(self.address:group_block(ag, agbno or root))
    return tree.group_block(self, name, place,
      self:must_read(place.off_bytes, 1 << self.address.block_log2), level)
  end)
end

---The free space by block: the root of the tree, or another block of it.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:bnobt(ag, agbno)
  return self:tree("bnobt", ag, agbno)
end

---The free space by size.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:cntbt(ag, agbno)
  return self:tree("cntbt", ag, agbno)
end

---The inodes of a group.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:inobt(ag, agbno)
  return self:tree("inobt", ag, agbno)
end

---The inodes of a group, chunks with free ones.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:finobt(ag, agbno)
  return self:tree("finobt", ag, agbno)
end

---The reverse map of a group.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:rmapbt(ag, agbno)
  return self:tree("rmapbt", ag, agbno)
end

---The shared blocks of a group.
---@param ag integer
---@param agbno? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:refcountbt(ag, agbno)
  return self:tree("refcountbt", ag, agbno)
end

-- -------------------------------------------------------------- inodes, blocks

---An inode: its core and what its forks hold in place.
---@param ino integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:inode(ino)
  check_integer(ino, "an inode number")
  return guarded(function()
    local place = must(must_address(self):inode(ino))
    return inode.inode(self, ino, place.off_bytes,
      self:must_read(place.off_bytes, 1 << self.address.inode_log2))
  end)
end

---The internal log: place, head, tail, state, last record.
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:log()
  return guarded(function()
    must_address(self)
    return log.log(self)
  end)
end

local function block_at(self, find)
  return guarded(function()
    local place = must(find(must_address(self)))
    return block.block(self, place,
      self:must_read(place.off_bytes, 1 << self.address.block_log2))
  end)
end

---A block, as what its magic number says it is: by its number in the filesystem, or, with a group,
---by its number in that.
---@param number integer fs block; with a group, group block
---@param ag? integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:block(number, ag)
  check_integer(number, "a block")
  return block_at(self, function(of)
    if ag then
      return of:group_block(ag, number)
    end
    return of:block(number)
  end)
end

---The block that holds a 512-byte sector of the volume ("daddr").
---@param daddr integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:sector(daddr)
  check_integer(daddr, "a sector")
  return block_at(self, function(of) return of:sector(daddr) end)
end

---Bytes of the target, at most 1 MiB.
---@param off_bytes integer
---@param len_bytes integer
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:bytes(off_bytes, len_bytes)
  check_integer(off_bytes, "an offset")
  check_integer(len_bytes, "a length")
  return guarded(function()
    if len_bytes < 1 or len_bytes > MAX_BYTES then
      error(errors.usage("%d bytes cannot be shown, 1 .. %d can", len_bytes, MAX_BYTES), 0)
    end
    return block.dump(self, off_bytes, self:must_read(off_bytes, len_bytes),
      ("%d bytes at %d (0x%x)"):format(len_bytes, off_bytes, off_bytes))
  end)
end

-- -------------------------------------------------------------------- geometry

local ASCII_CI <const> = 0x4000

local function geometry_of(self)
  local sb, has = self.primary, self.has
  return { inode_bytes = sb.inodesize, ag_count = sb.agcount, ag_blocks = sb.agblocks,
    sector_bytes = sb.sectsize, crc = true, finobt = has.finobt, sparse = has.sparse,
    rmapbt = has.rmapbt, reflink = has.reflink, bigtime = has.bigtime,
    inobtcount = has.inobtcount, nrext64 = has.nrext64, exchange = has.exchange,
    parent = has.parent, block_bytes = sb.blocksize,
    data_blocks = sb.dblocks, max_inode_percent = sb.imax_pct, stripe_unit_blocks = sb.unit,
    stripe_width_blocks = sb.width, dir_block_bytes = sb.blocksize << (sb.dirblklog & 15),
    log_blocks = sb.logblocks, log_sector_bytes = sb.logsectsize,
    log_stripe_unit_bytes = sb.logsunit, rt_extent_bytes = sb.rextsize << sb.blocklog,
    label = sb.fname, uuid = sb.uuid, features2 = sb.features2, version_num = sb.versionnum,
    features_compat = sb.features_compat, features_ro_compat = sb.features_ro_compat,
    features_incompat = sb.features_incompat }
end

-- What mkfs.xfs says of a log elsewhere, of a realtime device, of names without case.
local function adapted(self, said)
  local sb = self.primary
  if sb.logstart == 0 then
    said = said:gsub("internal log", "external    ")
  end
  if sb.rblocks ~= 0 then
    said = said:gsub("(realtime =)none    (.*) blocks=0, rtextents=0", function(head, rest)
      return ("%sexternal%s blocks=%d, rtextents=%d"):format(head, rest, sb.rblocks, sb.rextents)
    end)
  end
  return sb.versionnum & ASCII_CI ~= 0 and said:gsub("ascii%-ci=0", "ascii-ci=1") or said
end

---The geometry, printed as mkfs.xfs does, rebuilt from the superblock.
---@return brim.xfs.View? view
---@return brim.Error? err
function Inspector:geometry()
  return guarded(function()
    must_address(self)
    local v = view.new { what = "geometry", title = "geometry", fs = self,
      values = geometry_of(self) }
    v.about.text = adapted(self, text.geometry(v, self.target))
    return v
  end)
end

-- ---------------------------------------------------------------------- handle

function Inspector:__tostring()
  if not self.address then
    return ("xfs on %s, damaged: %s"):format(self.target, self.damage)
  end
  return ("xfs on %s: %d groups of %d blocks of %d bytes; sb agf agi agfl bnobt cntbt inobt"
    .. " finobt rmapbt refcountbt inode log block sector bytes geometry"):format(self.target,
    self.primary.agcount, self.primary.agblocks, self.primary.blocksize)
end

---Close it; any number of times.
function Inspector:close()
  self.device:close()
end

Inspector.__close = Inspector.close

---Everything that is wrong with a structure and with what it holds.
M.faults = view.faults

---The bytes of a structure as a hex dump and as hexadecimal digits; nil where it has none.
---@param v brim.xfs.View
---@return string? dump
---@return string? digits
function M.raw(v)
  local about = v.about.bytes and v.about or v.about.children[1] and v.about.children[1].about
  if about then
    return view.dump(about.bytes, about.off_bytes), words.hex(about.bytes)
  end
end

---A structure as a table for JSON: integers exact, those past 2^63-1 strings.
M.json = view.json

return M
