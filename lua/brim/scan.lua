-- brim.scan: what must hold at every group, the dual of plan:each. The script is called once with
-- the symbolic group number and returns structures placed relative to the group; the core then
-- reads every group at full queue depth and checks: each structure's checksum, its magic numbers
-- (fields declared with a value), and the integers the script gave. Called by filesystems'
-- check.lua and by scripts.
--
--   local s = brim.scan(function(i) return header:at(0) { number = i } end)
--   local result = s:run("tiny.img", { count = 64, stride_bytes = brim.MiB })
local core = require "brim.core"
local device = require "brim.device"
local errors = require "brim.error"
local layout = require "brim.layout"
local opts = require "brim.opts"
local plan = require "brim.plan"
local run = require "brim.run"
local symbol = require "brim.symbol"
local where = require "brim.where"

local M = {}

---@class brim.Scan
---@field handle userdata
local Scan = {}
Scan.__index = Scan
Scan.__name = "brim.scan"

local RUN_SCHEMA = {
  count = { type = "int", required = true, min = 1, doc = "groups to check" },
  stride_bytes = { type = "bytes", required = true, doc = "from one group to the next" },
  offset_bytes = { type = "bytes", default = 0, doc = "where group 0 begins, or would" },
  first = { type = "int", default = 0, min = 0, doc = "number of the first group" },
}
for name, spec in pairs(plan.ENGINE_SCHEMA) do
  RUN_SCHEMA[name] = spec
end

local function must(ok, err)
  if not ok then
    error(err.message, 0)
  end
end

-- A constant that the field cannot hold would never be found; what varies is known at the run only.
local function check_width(of, field, base, step)
  local bits = 8 * field.width_bytes
  if step == 0 and bits < 64 and (base >= 1 << bits or base < -(1 << bits - 1)) then
    error(("field '%s' of '%s': %d does not fit %d bits"):format(field.name, of.name, base, bits),
      0)
  end
end

local function expect_value(handle)
  return function(of, field, at, v)
    if field.kind == "int" then
      local base, step = layout.affine(of, field, v)
      check_width(of, field, base, step)
      must(handle:expect_int(at, field.width_bytes, field.endian, base, step, of.name, field.name))
      return
    end
    must(handle:expect_bytes(at, layout.opaque(of, field, v), of.name, field.name))
  end
end

-- What a placed structure must hold: the values given, and the declared ones of single fields.
local function expected(placed)
  local values = {}
  for _, field in ipairs(placed.layout.fields) do
    if field.kind == "int" and not field.array and field.magic then
      values[field.name] = field.value
    end
  end
  for name, v in pairs(placed.values) do
    values[name] = v
  end
  return values
end

local function expect(handle, placed)
  if not layout.is_placed(placed) or not placed.layout then
    where.raise "a scan's function returns structures placed with layout:at"
  end
  must(handle:expect_layout(placed.layout.handle, placed.off_bytes, placed.size_bytes))
  layout.each_value(placed.layout, placed.off_bytes, placed.size_bytes, expected(placed),
    expect_value(handle))
end

---Make a scan: `trace` is called once and returns placed structures with the values expected.
---@param trace fun(index: brim.Index): ...
---@return brim.Scan
function M.new(trace)
  local handle = assert(core.scan_new())
  local list = layout.flatten(trace(symbol.new()))
  local ok, err = pcall(function()
    for _, placed in ipairs(list) do
      expect(handle, placed)
    end
  end)
  if not ok then
    where.raise(err)
  end
  return setmetatable({ handle = handle }, Scan)
end

---Read every group and check it. Options: count, stride_bytes, offset_bytes; engine, queue_depth
---and the others of plan:write. The result's mismatch_count counts what does not hold; `mismatches`
---has the first of them: group, off_bytes, piece (the structure), what (the field), expected,
---found.
---@param target string|brim.Device
---@param o table
---@return brim.RunResult? result
---@return brim.Error? err
function Scan:run(target, o)
  o = opts.check(o, RUN_SCHEMA, "scan:run")
  if type(target) == "string" then
    local opened <close>, err = device.open(target)
    if not opened then
      return nil, err
    end
    return self:run(opened, o)
  end
  local drive = { progress = o.progress, progress_interval_s = o.progress_interval_s }
  o.progress, o.progress_interval_s = nil, nil
  local handle <close>, err = core.scan_open(self.handle, target, o)
  if not handle then
    return nil, errors.refused(err)
  end
  return run.drive(handle, drive)
end

-- brim.scan(trace) is brim.scan.new(trace).
return setmetatable(M, {
  __call = function(_, trace)
    return M.new(trace)
  end,
})
