-- brim.plan: what every byte of a volume shall be, said once. Building and asking is pure; write,
-- verify and save are what can be done with it. Called by filesystems' format.lua and by scripts.
--
--   local p = brim.plan { name = "tiny", size_bytes = 64 * brim.MiB, group_bytes = brim.MiB }
--   p:each(64, function(i) return header:at(0) { number = i } end)
--   print(p)   p:write("tiny.img")   p:save("tiny.brim")
local bytes = require "brim.bytes"
local core = require "brim.core"
local device = require "brim.device"
local engine = require "brim.engine"
local errors = require "brim.error"
local layout = require "brim.layout"
local opts = require "brim.opts"
local run = require "brim.run"
local symbol = require "brim.symbol"
local where = require "brim.where"

local M = {}

---@class brim.Plan
---@field handle userdata
---@field name string
---@field size_bytes integer
---@field group_bytes? integer
local Plan = {}
Plan.__index = Plan
Plan.__name = "brim.plan"

local SCHEMA = {
  name = { type = "string", default = "plan", doc = "what it makes, for messages" },
  size_bytes = { type = "bytes", required = true, doc = "size of the volume" },
  group_bytes = { type = "bytes", doc = "distance from one group to the next, for each and group" },
}

local EACH_SCHEMA = {
  name = { type = "string", doc = "of the piece; default its first structure's" },
  first = { type = "int", default = 0, min = 0, doc = "number of the first instance" },
  offset_bytes = { type = "bytes", default = 0, doc = "where instance 0 is, or would be" },
  stride_bytes = { type = "bytes", doc = "from one instance to the next; default group_bytes" },
  groups = { type = "bool", default = true, doc = "instances count as groups in reports" },
}

local function with(...)
  local schema = {}
  for _, part in ipairs { ... } do
    for name, spec in pairs(part) do
      schema[name] = spec
    end
  end
  return schema
end

---What runs of plans and scans take, beside where and what.
M.ENGINE_SCHEMA = with(engine.SCHEMA, run.SCHEMA, {
  max_mismatches = { type = "int", default = 16, min = 1, max = 65536,
    doc = "differences kept in full" },
})

local VERIFY_SCHEMA = with(M.ENGINE_SCHEMA, {
  direct = { type = "bool", doc = "past the page cache for regular files too" },
  buffered = { type = "bool", doc = "through the page cache for block devices too" },
})

local WRITE_SCHEMA = with(VERIFY_SCHEMA, {
  force = { type = "bool", doc = "overwrite a target that carries another filesystem" },
})

-- Raises what the core refused, at the line of the script.
local function must(ok, err)
  if not ok then
    where.raise(err.message)
  end
  return ok
end

-- Calls a method of the handle, whose complaints about arguments are the script's too.
local function call(self, method, ...)
  local results = table.pack(pcall(self.handle[method], self.handle, ...))
  if not results[1] then
    where.raise((tostring(results[2]):gsub("^[^\n:]+:%d+: ", "")))
  end
  return table.unpack(results, 2, results.n)
end

-- An offset or a length of an argument.
local function size_of(v, name)
  local n, why = bytes.check(v)
  if not n then
    where.raise(("%s: %s"):format(name, why))
  end
  return n
end

---Begin a plan for a volume of a size.
---@param o { name?: string, size_bytes: integer|string, group_bytes?: integer|string }
---@return brim.Plan
function M.new(o)
  o = opts.check(o, SCHEMA, "brim.plan")
  local handle = must(core.plan_new(o.name, o.size_bytes))
  return setmetatable({ handle = handle, name = o.name, size_bytes = o.size_bytes,
    group_bytes = o.group_bytes }, Plan)
end

---Load a plan from an image file. Runs no code from it.
---@param path string
---@return brim.Plan? plan
---@return brim.Error? err
function M.load(path)
  local handle, err = core.image_load(path)
  if not handle then
    return nil, err
  end
  local name, size_bytes = handle:info()
  return setmetatable({ handle = handle, name = name, size_bytes = size_bytes, sealed = true },
    Plan)
end

---Begin a phase: what follows is written once all before it is on stable storage.
---@param name string
---@return brim.Plan self
function Plan:phase(name)
  must(call(self, "phase", name))
  return self
end

---Make a range zero.
---@param off_bytes integer
---@param len_bytes integer
---@param name? string
---@return brim.Plan self
function Plan:zero(off_bytes, len_bytes, name)
  must(self.handle:zero(size_of(off_bytes, "off_bytes"), size_of(len_bytes, "len_bytes"),
    name or "zeros"))
  return self
end

-- Stamps placed structures for a range of instances.
local function make_stamp(placed, first, count)
  local stamp = must(core.stamp_new())
  local ok, err = pcall(function()
    for _, p in ipairs(placed) do
      layout.stamp(stamp, p)
    end
    local sealed, why = stamp:seal(first, count)
    if not sealed then
      error(why.message, 0)
    end
  end)
  if not ok then
    stamp:close()
    where.raise(err)
  end
  return stamp
end

local function lay(self, placed, first, count, o)
  if #placed == 0 then
    where.raise "a piece needs at least one structure"
  end
  local name = o.name or placed[1].layout and placed[1].layout.name or placed[1].label
  local stamp = make_stamp(placed, first, count)
  must(self.handle:each(stamp, o.offset_bytes, o.stride_bytes or 0, name, o.groups))
end

---Lay structures over a range of groups: `trace` is called once, with the symbolic group number,
---and returns structures placed relative to the group's start. Options: name, first, offset_bytes,
---stride_bytes (default: the plan's group_bytes), groups.
---@param count integer
---@param trace fun(index: brim.Index): ...
---@param o? table
---@return brim.Plan self
function Plan:each(count, trace, o)
  if math.type(count) ~= "integer" or count < 1 or type(trace) ~= "function" then
    where.raise "plan:each takes a count of 1 or more and a function"
  end
  o = opts.check(o, EACH_SCHEMA, "plan:each")
  o.stride_bytes = o.stride_bytes or self.group_bytes
  if not o.stride_bytes then
    where.raise "plan:each needs stride_bytes, or a plan with group_bytes"
  end
  lay(self, layout.flatten(trace(symbol.new())), o.first, count, o)
  return self
end

---Lay structures over one group, placed relative to its start; it counts as a group. Covers what
---`each` laid there, which it must cover whole.
---@param number integer
---@param ... brim.Placed|brim.Placed[]
---@return brim.Plan self
function Plan:group(number, ...)
  if not self.group_bytes then
    where.raise "plan:group needs a plan with group_bytes"
  end
  lay(self, layout.flatten(...), number, 1, { name = ("group %d"):format(number),
    offset_bytes = 0, stride_bytes = self.group_bytes, groups = true })
  return self
end

---Lay structures at their offsets on the volume.
---@param ... brim.Placed|brim.Placed[]
---@return brim.Plan self
function Plan:put(...)
  lay(self, layout.flatten(...), 0, 1, { offset_bytes = 0, stride_bytes = 0, groups = false })
  return self
end

---Read or set a note: a text that travels with the plan and its image file.
---@param key string
---@param value? string
---@return string|brim.Plan|nil
function Plan:note(key, value)
  if value == nil then
    return self.handle:note(key)
  end
  must(call(self, "set_note", key, value))
  return self
end

---End the building, checking overlaps. Everything below does it on its own.
---@return brim.Plan self
function Plan:seal()
  if not self.sealed then
    must(self.handle:seal())
    self.sealed = true
  end
  return self
end

---What bytes [off, off+len) of the volume shall be.
---@param off_bytes integer
---@param len_bytes integer
---@return string? bytes
---@return brim.Error? err
function Plan:read(off_bytes, len_bytes)
  return self:seal().handle:read(size_of(off_bytes, "off_bytes"), size_of(len_bytes, "len_bytes"))
end

---What running the plan amounts to: phases, pieces, groups, writes, write_bytes, zero_ranges,
---zero_bytes, align_bytes.
---@param max_io_bytes? integer default 1 MiB
---@return table
function Plan:totals(max_io_bytes)
  max_io_bytes = size_of(max_io_bytes or 1 << 20, "max_io_bytes")
  if max_io_bytes < 1 or max_io_bytes > 1 << 30 then
    where.raise(("max_io_bytes: %d is not 1 byte to 1 GiB"):format(max_io_bytes))
  end
  return self:seal().handle:totals(max_io_bytes)
end

---All pieces in order: phase, name, is_zero, off_bytes, len_bytes, stride_bytes, first, count,
---hidden, extents, regions (label, off_bytes, len_bytes).
---@return table[]
function Plan:pieces()
  self:seal()
  local list = {}
  repeat
    list[#list + 1] = self.handle:piece(#list + 1)
  until not self.handle:piece(#list + 1)
  return list
end

---Save as an image file of a few KiB: opened again it is a read-only device.
---@param path string
---@return true? ok
---@return brim.Error? err
function Plan:save(path)
  return self:seal().handle:save(path)
end

-- A run that was not begun yet, or nil and why it is refused.
local function open_run(self, target, mode, o)
  local options = { max_mismatches = o.max_mismatches }
  for _, name in ipairs(engine.NAMES) do
    options[name] = o[name]
  end
  local handle, err = core.run_open(self:seal().handle, target, mode, options)
  if not handle then
    return nil, errors.refused(err)
  end
  return handle
end

local function drive(self, target, mode, o)
  local handle <close>, err = open_run(self, target, mode, o)
  if not handle then
    return nil, err
  end
  return run.drive(handle, { progress = o.progress, progress_interval_s = o.progress_interval_s })
end

---Write the plan to a target: a path or an open device. Options: engine, queue_depth, max_io_bytes,
---threads, progress, force, direct, buffered.
---@param target string|brim.Device
---@param o? table
---@return brim.RunResult? result
---@return brim.Error? err
function Plan:write(target, o)
  o = opts.check(o, WRITE_SCHEMA, "plan:write")
  if type(target) ~= "string" then
    return drive(self, target, "write", o)
  end
  self:seal()
  local is_new = not device.exists(target)
  local opened <close>, err = device.open(target, { write = true, create = true, force = o.force,
    direct = o.direct, buffered = o.buffered, min_size_bytes = self.size_bytes,
    direct_align_bytes = self:totals().align_bytes })
  if not opened then
    return nil, err
  end
  local result, failed = drive(self, opened, "write", o)
  if not result and failed.usage and is_new then
    os.remove(target)
  end
  return result, failed
end

---Ask whether a write to an open device would be refused (its size, its alignment, the engine);
---`write` does so too, before its first I/O. Writes nothing. Options as for write.
---@param opened brim.Device
---@param o? table
---@return true? ok
---@return brim.Error? err
function Plan:can_write(opened, o)
  o = opts.check(o, WRITE_SCHEMA, "plan:can_write")
  local handle <close>, err = open_run(self, opened, "write", o)
  if not handle then
    return nil, err
  end
  return true
end

---Compare a target with the plan; result.mismatch_count says how many I/Os differ, and
---result.mismatches where the first of them do.
---@param target string|brim.Device
---@param o? table
---@return brim.RunResult? result
---@return brim.Error? err
function Plan:verify(target, o)
  o = opts.check(o, VERIFY_SCHEMA, "plan:verify")
  if type(target) ~= "string" then
    return drive(self, target, "verify", o)
  end
  local opened <close>, err = device.open(target, { direct = o.direct, buffered = o.buffered })
  if not opened then
    return nil, err
  end
  return drive(self, opened, "verify", o)
end

-- The structures in order; runs of one kind as "name x count".
local function explain_regions(regions)
  local words, count = {}, 0
  for i, r in ipairs(regions) do
    count = count + 1
    if not regions[i + 1] or regions[i + 1].label ~= r.label then
      words[#words + 1] = count > 1 and ("%s x %d"):format(r.label, count) or r.label
      count = 0
    end
  end
  return table.concat(words, ", ", 1, math.min(#words, 12)) .. (#words > 12 and ", ..." or "")
end

-- An offset, exact, and where that is long what it is about.
local function place_of(off_bytes)
  local exact, about = bytes.format(off_bytes), bytes.about(off_bytes)
  return exact == about and exact or ("%s (%s)"):format(exact, about)
end

local function explain_piece(p)
  if p.is_zero then
    return ("    zeros   %-17s %s at %s"):format(p.name, bytes.about(p.len_bytes),
      place_of(p.off_bytes))
  end
  local laid = p.count - p.hidden
  local place = p.count == 1
    and ("at %s"):format(place_of(p.off_bytes + p.stride_bytes * p.first
      + p.regions[1].off_bytes))
    or ("%d .. %d, one every %s%s"):format(p.first, p.first + p.count - 1,
      place_of(p.stride_bytes),
      p.hidden > 0 and (", %d of them laid below"):format(p.hidden) or "")
  return ("    %-7d %-17s %s: %s in %d I/O%s, %s"):format(laid, p.name, place,
    bytes.about(p.len_bytes), p.extents, p.extents == 1 and "" or "s", explain_regions(p.regions))
end

local function explain_all(self, t)
  local lines = { ("plan '%s': %s, %d groups, %d writes of %s in all, %s zeroed"):format(self.name,
    bytes.format(self.size_bytes), t.groups, t.writes, bytes.about(t.write_bytes),
    bytes.about(t.zero_bytes)) }
  local phase
  for _, p in ipairs(self:pieces()) do
    if p.phase ~= phase then
      phase = p.phase
      lines[#lines + 1] = ("  phase '%s'"):format(phase)
    end
    lines[#lines + 1] = explain_piece(p)
  end
  return table.concat(lines, "\n")
end

---Explain the plan in words: phases, pieces, what they amount to. It may go on being built.
---@return string
function Plan:explain()
  local was_sealed = self.sealed
  local t = self:totals()
  local told = explain_all(self, t)
  if not was_sealed then
    must(self.handle:unseal())
    self.sealed = nil
  end
  return told
end

Plan.__tostring = Plan.explain

---Release the plan. Also done when it is collected.
---@return true
function Plan:close()
  self.handle:close()
  return true
end

Plan.__close = Plan.close

-- brim.plan { ... } is brim.plan.new { ... }.
return setmetatable(M, {
  __call = function(_, o)
    return M.new(o)
  end,
})
