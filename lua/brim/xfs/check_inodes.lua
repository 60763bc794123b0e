-- brim.xfs.check_inodes: the two inode trees of a walked group: each record by itself, their sums,
-- that the free inode tree holds just the records with free inodes, and where the chunks lie.
-- Called by check_space. Inode numbers are within the group.
local walk = require "brim.walk"

local M = {}

local RECORD_BYTES <const> = 16
local CHUNK <const> = 64 -- inodes of a record
local HOLE <const> = 4 -- inodes that a bit of the holemask stands for

M.RECORD_BYTES = RECORD_BYTES

local function bits(v)
  local n = 0
  while v ~= 0 do
    v = v & v - 1
    n = n + 1
  end
  return n
end

---Take a record apart; without sparse chunks all 64 inodes are there.
---@param c brim.xfs.Checker
---@param raw string
---@param at integer from 1
---@return integer startino
---@return integer holemask
---@return integer count
---@return integer freecount
---@return integer free a bit for each free inode
function M.record_at(c, raw, at)
  if c.has.sparse then
    return (">I4I2BBi8"):unpack(raw, at)
  end
  local startino, freecount, free = (">I4I4i8"):unpack(raw, at)
  return startino, 0, CHUNK, freecount, free
end

local record_at = M.record_at

---The bits of `free` that have inodes behind them.
---@param holemask integer
---@return integer
function M.present(holemask)
  local mask = 0
  for i = 0, CHUNK // HOLE - 1 do
    if holemask >> i & 1 == 0 then
      mask = mask | 0xf << HOLE * i
    end
  end
  return mask
end

local present = M.present

local function complain(c, g, tree, startino, field, expected, found)
  c.report:add { group = g.ag, structure = ("%s record of inode %d"):format(tree, startino),
    field = field, expected = expected, found = found }
end

-- Appends the blocks that have inodes of a record.
local function add_blocks(c, chunks, startino, holemask)
  local log2 = c.sb.inopblog
  if holemask == 0 then
    chunks:add(startino >> log2, math.max(1, CHUNK >> log2))
    return
  end
  for i = 0, CHUNK // HOLE - 1 do
    if holemask >> i & 1 == 0 then
      local first, last = startino + HOLE * i, startino + HOLE * i + HOLE - 1
      chunks:add(first >> log2, (last >> log2) - (first >> log2) + 1)
    end
  end
end

local function check_place(c, g, tree, startino)
  local block, align = startino >> c.sb.inopblog, c.sb.inoalignmt
  local last = startino + CHUNK - 1 >> c.sb.inopblog
  if block < c.first_block or last >= g.length then
    complain(c, g, tree, startino, "startino", g.length - 1, block)
    return false
  end
  local off = align > 1 and block % align or startino % math.min(CHUNK, c.sb.inopblock)
  if off ~= 0 then
    complain(c, g, tree, startino, "alignment", 0, off)
  end
  return true
end

local function check_record(c, g, tree, startino, holemask, count, freecount, free)
  local there = holemask == 0 and -1 or present(holemask)
  local free_there = bits(free & there)
  if count ~= bits(there) then
    complain(c, g, tree, startino, "count", bits(there), count)
  end
  if freecount ~= free_there then
    complain(c, g, tree, startino, "freecount", free_there, freecount)
  end
  if free | there ~= -1 then
    complain(c, g, tree, startino, "free", free | ~there, free)
  end
  return check_place(c, g, tree, startino)
end

-- Checks a tree's records; the chunks' blocks, sums, and the records that have free inodes.
local function scan(c, g, tree, raw)
  local sums = { count = 0, free = 0, chunks = walk.extents(), ok = true }
  local with_free = {}
  for at = 1, #raw, RECORD_BYTES do
    local startino, holemask, count, freecount, free = record_at(c, raw, at)
    if check_record(c, g, tree, startino, holemask, count, freecount, free) then
      add_blocks(c, sums.chunks, startino, holemask)
    else
      sums.ok = false
    end
    sums.count, sums.free = sums.count + count, sums.free + freecount
    if freecount > 0 then
      with_free[#with_free + 1] = raw:sub(at, at + RECORD_BYTES - 1)
    end
  end
  sums.with_free = table.concat(with_free)
  return sums
end

local function compare(c, g, expected, found)
  if expected == found then
    return
  end
  for at = 1, math.max(#expected, #found), RECORD_BYTES do
    local want = expected:sub(at, at + RECORD_BYTES - 1)
    local have = found:sub(at, at + RECORD_BYTES - 1)
    if want ~= have then
      c.report:add { group = g.ag, structure = "finobt", field = ("record %d"):format(
        (at - 1) // RECORD_BYTES),
        why = ("it should hold inode %s as the inode tree does, it holds %s"):format(
          #want > 0 and ("%d"):format((record_at(c, want, 1))) or "(none)",
          #have > 0 and ("%d"):format((record_at(c, have, 1))) or "(none)") }
      return
    end
  end
end

---Check the inode trees of a walked group; g.chunks become the blocks that have inodes.
---@param c brim.xfs.Checker
---@param g brim.xfs.Group
---@param is_whole fun(tree: string): boolean
---@return boolean counted whether count and free are known
function M.check(c, g, is_whole)
  if not is_whole "inobt" then
    return false
  end
  local sums = scan(c, g, "inobt", c.walk:records(g.jobs.inobt))
  c.report:expect(g.ag, "agi", "count", sums.count, g.agi.count)
  c.report:expect(g.ag, "agi", "freecount", sums.free, g.agi.freecount)
  if is_whole "finobt" then
    local raw = c.walk:records(g.jobs.finobt)
    if raw ~= sums.with_free then
      scan(c, g, "finobt", raw)
      compare(c, g, sums.with_free, raw)
    end
  end
  g.chunks = sums.ok and sums.chunks:union() or nil
  c.icount, c.ifree = c.icount + sums.count, c.ifree + sums.free
  return true
end

return M
