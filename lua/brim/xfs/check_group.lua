-- brim.xfs.check_group: the headers of one group, by themselves: AGF, AGI, AGFL. Whoever reads them
-- hands over the four sectors; what can be used is kept in the group's table for the walk and the
-- comparisons (check_space). Called by check.
local check_sb = require "brim.xfs.check_sb"
local ondisk = require "brim.xfs.ondisk"

local M = {}

local NULL32 <const> = ondisk.NULL_AG_BLOCK

---@class brim.xfs.Group one that is walked
---@field ag integer
---@field length integer
---@field agf? table nil where it cannot be used
---@field agi? table
---@field free_list? integer[]
---@field jobs table<string, integer>
---@field file_records? integer of the reverse map, where it could be read

-- Decodes a header; nil where its magic or its checksum is wrong.
local function decode(c, ag, name, raw)
  local layout = ondisk[name]
  local v, intact = layout:decode(raw, 0, #raw)
  if not c.report:expect(ag, name, "magicnum", layout:field("magicnum").magic, v.magicnum) then
    return nil
  elseif not intact then
    c.report:add { group = ag, structure = name, field = "crc", why = "the checksum is wrong" }
    return nil
  end
  c.report:expect(ag, name, "seqno", ag, v.seqno)
  c.report:expect(ag, name, "uuid", c.uuid, v.uuid)
  return v
end

local function check_agf(c, g, raw)
  local agf = decode(c, g.ag, "agf", raw)
  if agf then
    c.report:expect(g.ag, "agf", "versionnum", 1, agf.versionnum)
    c.report:expect(g.ag, "agf", "length", g.length, agf.length)
  end
  return agf
end

local function check_agi(c, g, raw)
  local agi = decode(c, g.ag, "agi", raw)
  if not agi then
    return nil
  end
  c.report:expect(g.ag, "agi", "versionnum", 1, agi.versionnum)
  c.report:expect(g.ag, "agi", "length", g.length, agi.length)
  for i, v in ipairs(agi.unlinked) do
    if v ~= NULL32 then
      c.report:add { group = g.ag, structure = "agi", field = ("unlinked[%d]"):format(i - 1),
        expected = NULL32, found = v, why = "an inode was unlinked and not freed" }
    end
  end
  return agi
end

-- The slots in use are first .. last, around the end.
local function check_slots(c, g, slots)
  local agf, report = g.agf, c.report
  for _, name in ipairs { "flfirst", "fllast" } do
    if agf[name] >= slots then
      report:add { group = g.ag, structure = "agf", field = name, expected = slots - 1,
        found = agf[name], why = "at most" }
      return false
    end
  end
  local used = (agf.fllast - agf.flfirst + 1) % slots
  if used == 0 and agf.flcount == slots then
    used = slots
  end
  return report:expect(g.ag, "agf", "flcount", used, agf.flcount)
end

local function check_free_list(c, g, raw)
  local agfl = decode(c, g.ag, "agfl", raw)
  local slots = (#raw - 36) // 4
  if not agfl or not g.agf or not check_slots(c, g, slots) then
    return nil
  end
  local list, ok = {}, true
  for i = 0, g.agf.flcount - 1 do
    local slot = (g.agf.flfirst + i) % slots
    local block = agfl.bno[slot + 1]
    if block < c.first_block or block >= g.length then
      c.report:add { group = g.ag, structure = "agfl", field = ("bno[%d]"):format(slot),
        expected = g.length - 1, found = block, why = "a block of the group" }
      ok = false
    end
    list[#list + 1] = block
  end
  return ok and list or nil
end

---Check the first four sectors of a group.
---@param c brim.xfs.Checker
---@param ag integer
---@param raw string
---@return brim.xfs.Group
function M.headers(c, ag, raw)
  local sector = c.sb.sectsize
  local g = { ag = ag, length = c.address:length(ag), jobs = {} }
  local function part(n)
    return raw:sub(n * sector + 1, (n + 1) * sector)
  end
  if ag > 0 then
    check_sb.check(c, ag, part(0))
  end
  g.agf = check_agf(c, g, part(1))
  g.agi = check_agi(c, g, part(2))
  g.free_list = check_free_list(c, g, part(3))
  return g
end

---How many blocks its trees may have, as far as its headers say: to walk many groups at once, but
---not too much at once.
---@param g brim.xfs.Group
---@return integer
function M.weight(g)
  local blocks = 6
  if g.agf then
    for _, name in ipairs { "btreeblks", "rmap_blocks", "refcount_blocks" } do
      blocks = blocks + math.min(g.agf[name], g.length)
    end
  end
  if g.agi then
    blocks = blocks + math.min(g.agi.count // 64, g.length) // 16
  end
  return blocks
end

return M
