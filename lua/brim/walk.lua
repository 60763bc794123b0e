-- brim.walk: walks trees of many groups at once, level by level, at full queue depth; the core
-- checks every block and keeps the records. Kinds of trees are described with layouts. Called by
-- filesystems' check.lua. Also lists of extents, which records become to be compared as a whole.
-- Block numbers are within a group; jobs and kinds count from 0.
--
--   local w <close> = assert(walk.open(device, { block_bytes = 4096, group_bytes = brim.GiB }))
--   local tree = w:tree { name = "bnobt", leaf = ondisk.bnobt, node = node, ... }
--   local job = assert(w:start(tree, group, root_block, levels, first_block, end_block))
--   assert(w:run())   print(w:job(job).records, w:fault(1))
local core = require "brim.core"

local M = {}

---@class brim.Walk
---@field handle userdata
local Walk = {}
Walk.__index = Walk
Walk.__name = "brim.walk"

---@class brim.Extents a list of ranges of blocks; its methods are the core's (core/lua_extents.c):
--- add append get sum longest outside sort union join overlap differ only complement tagged
--- starting depth

---@class brim.Table rows that say who holds which blocks: start, count, owner, offset; its methods
--- are the core's (core/lua_table.c): add get sort merge find extents differ

---@class brim.WalkJob how a walk of one tree went
---@field blocks integer
---@field records integer
---@field faults integer
---@field is_complete boolean all of its leaves were read

---@class brim.WalkFault
---@field job? integer nil: an object itself
---@field object? integer the number of the object it is, or whose tree it is
---@field block integer
---@field element integer of the keys or records, from 0; -1: none
---@field what string a field, or a word for what is wrong
---@field expected integer
---@field found integer

---Begin a walk on an open device.
---@param device brim.Device
---@param o table block_bytes, group_bytes, read_bytes, max_faults; engine, queue_depth, threads
---@return brim.Walk? walk to be closed by the caller
---@return brim.Error? err
function M.open(device, o)
  local handle, err = core.walk_open(device, o)
  if not handle then
    return nil, err
  end
  return setmetatable({ handle = handle }, Walk)
end

---Make an empty list of extents.
---@return brim.Extents
function M.extents()
  return core.extents_new()
end

---Make an empty table of rows. Starts have the number of a group in their bits from group_log2 on.
---@param group_log2 integer 64: they have none
---@return brim.Table
function M.table(group_log2)
  return core.table_new(group_log2)
end

---Describe a kind of tree: name, leaf and node (layouts), the names of fields (magic, level, count,
---left, right, address, owner, uuid, records, keys, pointers), address_unit_bytes, uuid_bytes, key
---(fields of keys that the first record below has too), reach and reach_count, order, strict; where
---records are packed, record_key, key_shift and key_bits say where the key is in them.
---@param o table
---@return integer kind
function Walk:tree(o)
  local copy = {}
  for name, v in pairs(o) do
    copy[name] = v
  end
  copy.leaf, copy.node = o.leaf.handle, o.node.handle
  return self.handle:tree(copy)
end

---Add a tree to walk.
---@param kind integer
---@param group integer
---@param block integer of the root
---@param levels integer 1: the root is a leaf
---@param first_block integer where blocks of trees may begin
---@param end_block integer and where they end
---@return integer? job
---@return brim.Error? err
function Walk:start(kind, group, block, levels, first_block, end_block)
  return self.handle:start(kind, group, block, levels, first_block, end_block)
end

---Walk all trees that were added. Damage is no error.
---@return true? ok
---@return brim.Error? err
function Walk:run()
  return self.handle:run()
end

---Forget all jobs and what they found.
function Walk:reset()
  self.handle:reset()
end

---How a job went.
---@param job integer
---@return brim.WalkJob?
function Walk:job(job)
  return self.handle:job(job)
end

---The k-th fault kept, from 1.
---@param k integer
---@return brim.WalkFault?
function Walk:fault(k)
  return self.handle:fault(k)
end

---The records of a job, one behind the other.
---@param job integer
---@return string
function Walk:records(job)
  return self.handle:records(job)
end

---The records of a job as extents.
---@param job integer
---@param start string the field
---@param count? string the field; default 1 each
---@param tag? string the field; default 0
---@return brim.Extents
function Walk:extents(job, start, count, tag)
  return self.handle:extents(job, core.extents_new(), start, count, tag)
end

---The blocks of the tree itself.
---@param job integer
---@return brim.Extents
function Walk:blocks(job)
  return self.handle:blocks(job, core.extents_new())
end

---Say what objects that hold extents look like, once: as struct brim_object of core/brim_walk.h,
---with layouts for `layout` and `root`, `forks` a list of two, `kinds` by number, `record` with
---{ at, width } in bits for start, count, offset, flag, `wide` and `away` with field and mask.
---@param o table
function Walk:object(o)
  local copy = {}
  for name, v in pairs(o) do
    copy[name] = v
  end
  copy.layout, copy.root = o.layout.handle, o.root.handle
  self.handle:object(copy)
end

---Read objects and the trees that begin in them; a row for each extent and each of the trees'
---blocks goes to the table. What is wrong becomes faults.
---@param ranges integer[] off_bytes, number of the first, a bit for each that is present, for each
---  that must be in use; and so on: 4096 ranges at most
---@param count integer of objects in each range, 1 .. 64
---@param rows brim.Table
---@return { objects: integer, used: integer, rows: integer, bad: integer[] }? result `bad`: the
---  numbers of objects whose rows may not be all
---@return brim.Error? err
function Walk:objects(ranges, count, rows)
  return self.handle:objects(ranges, count, rows)
end

---Append the records of a job to a table of rows.
---@param job integer
---@param rows brim.Table
---@param names string[] the fields for start, count, owner, offset
---@param base integer added to every start
---@param owner_from integer only those of owners from here
---@param owner_to integer to here, unsigned
---@return brim.Table rows
function Walk:rows(job, rows, names, base, owner_from, owner_to)
  return self.handle:rows(job, rows, names, base, owner_from, owner_to)
end

---The reads so far: engine, reads, read_bytes, latency_sum_ns.
---@return table
function Walk:stats()
  return self.handle:stats()
end

---Read as many bytes at each of many offsets, at full queue depth.
---@param offsets integer[]
---@param len_bytes integer at most read_bytes
---@return string[]? list
---@return brim.Error? err
function Walk:read(offsets, len_bytes)
  return self.handle:read(offsets, len_bytes)
end

---Close it; any number of times.
function Walk:close()
  self.handle:close()
end

Walk.__close = Walk.close

return M
