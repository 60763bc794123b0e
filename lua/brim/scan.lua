-- brim.scan: what must hold at every group, and what is to be gathered there: the dual of
-- plan:each. The script is called once with the symbolic group number and returns structures placed
-- relative to the group; the core then reads every group at full queue depth, checks each
-- structure's checksum, its magic numbers (fields declared with a magic) and what the script
-- expects, and gathers sums, extremes, counts, histograms and columns. Called by filesystems'
-- check.lua and by scripts.
--
--   local s = brim.scan(function(i)
--     return header:at(0) { number = i, used = scan.all { scan.range(0, 100), scan.sum() } }
--   end)
--   local result = s:run("tiny.img", { count = 64, stride_bytes = brim.MiB })
--   print(result.mismatch_count, result.sums.used)
local core = require "brim.core"
local device = require "brim.device"
local errors = require "brim.error"
local layout = require "brim.layout"
local opts = require "brim.opts"
local plan = require "brim.plan"
local run = require "brim.run"
local scan_result = require "brim.scan_result"
local symbol = require "brim.symbol"
local where = require "brim.where"

local M = {}

---@class brim.Scan
---@field handle userdata
---@field gathered brim.Gathered[] by the accumulator's number, from 1
---@field columns string[] their names
local Scan = {}
Scan.__index = Scan
Scan.__name = "brim.scan"

---@class brim.ScanRule what a field is given instead of a value
---@field kind string
---@field name? string of what is gathered; the field's where none is given
local Rule = { __name = "brim.scan.rule" }

local RUN_SCHEMA = {
  count = { type = "int", required = true, min = 1, doc = "groups to check" },
  stride_bytes = { type = "bytes", required = true, doc = "from one group to the next" },
  offset_bytes = { type = "bytes", default = 0, doc = "where group 0 begins, or would" },
  first = { type = "int", default = 0, min = 0, doc = "number of the first group" },
  batch = { type = "function", doc = "takes the columns of some groups; false cancels" },
  batch_groups = { type = "int", default = 4096, min = 1, max = 1 << 20,
    doc = "groups of a batch at most" },
}
for name, spec in pairs(plan.ENGINE_SCHEMA) do
  RUN_SCHEMA[name] = spec
end

local HISTOGRAM_SCHEMA = {
  log2 = { type = "bool", doc = "bins for each power of two (where no others are asked for)" },
  from = { type = "int", min = 0, doc = "least value of the first bin" },
  to = { type = "int", min = 1, doc = "one past the greatest value of the last bin" },
  bins = { type = "int", min = 1, max = 4096, doc = "bins of one width" },
}

-- ------------------------------------------------------------------------ rules

local function rule(kind, fields)
  fields.kind = kind
  return setmetatable(fields, Rule)
end

local function is_rule(v)
  return getmetatable(v) == Rule
end

local function named(kind, name)
  if name ~= nil and type(name) ~= "string" then
    where.raise(("scan.%s: a name is a string, not %s"):format(kind, type(name)))
  end
  return rule(kind, { name = name })
end

---A rule: any value will do, also where the layout declares a magic number.
---@type brim.ScanRule
M.any = rule("any", {})

---Make a rule: the field is at least low and at most high, which may be made of the index.
---@param low integer|brim.Index
---@param high integer|brim.Index
---@return brim.ScanRule
function M.range(low, high)
  return rule("range", { low, high })
end

---Make a rule: the field has one of these values, which may be made of the index; at most 256.
---@param list (integer|brim.Index)[]
---@return brim.ScanRule
function M.one_of(list)
  if type(list) ~= "table" or #list == 0 then
    where.raise "scan.one_of: a list of values, like scan.one_of { 4, 5 }"
  end
  return rule("one_of", { table.unpack(list) })
end

---Make a rule: add the field up over all groups, exactly; result.sums has it. A sum past 2^63-1
---is an error object there, whose `decimal` is the number.
---@param name? string default: the field's
---@return brim.ScanRule
function M.sum(name)
  return named("sum", name)
end

---Make a rule: find the field's least value (as an unsigned number); result.minima has it, with its
---group and place.
---@param name? string default: the field's
---@return brim.ScanRule
function M.min(name)
  return named("min", name)
end

---Make a rule: find the field's greatest value; result.maxima has it, with its group and place.
---@param name? string default: the field's
---@return brim.ScanRule
function M.max(name)
  return named("max", name)
end

---Make a rule: count the values that are as `test` says (a value, a range, one of some), or all of
---them; result.counts has the number.
---@param name? string default: the field's
---@param test? integer|brim.Index|brim.ScanRule
---@return brim.ScanRule
function M.count(name, test)
  local r = named("count", name)
  r.test = test == nil and M.any or test
  return r
end

---Make a rule: count the values by size; result.histograms has them. Bins for each power of two, or
---{ from =, to =, bins = } for equal ones.
---@param name? string default: the field's
---@param o? table
---@return brim.ScanRule
function M.histogram(name, o)
  o = opts.check(o or {}, HISTOGRAM_SCHEMA, "scan.histogram")
  local r = named("histogram", name)
  if not (o.from or o.to or o.bins) then
    return r
  end
  r.from, r.to = o.from or 0, o.to
  if o.log2 or not r.to or r.from >= r.to then
    where.raise "scan.histogram: either log2, or from (0) less than to, and bins"
  end
  r.bins = o.bins or math.min(32, r.to - r.from)
  return r
end

---Make a rule: hand the field of every group to the run's `batch` function.
---@param name? string default: the field's
---@return brim.ScanRule
function M.column(name)
  return named("column", name)
end

---Make one rule of several: expectations and whatever is to be gathered.
---@param list (integer|brim.Index|brim.ScanRule)[]
---@return brim.ScanRule
function M.all(list)
  if type(list) ~= "table" or is_rule(list) then
    where.raise "scan.all: a list of rules, like scan.all { scan.sum(), scan.max() }"
  end
  return rule("all", { table.unpack(list) })
end

-- -------------------------------------------------------------------- expectations

-- Without a position: whoever called the script's line adds it.
local function must(ok, err)
  if not ok then
    error(err.message, 0)
  end
  return ok
end

local function value_error(of, field, why)
  error(("field '%s' of '%s': %s"):format(field.name, of.name, why), 0)
end

-- A constant that the field cannot hold would never be found; what varies is known at the run only.
local function check_width(of, field, base, step)
  local bits = 8 * field.width_bytes
  if step == 0 and bits < 64 and (base >= 1 << bits or base < -(1 << bits - 1)) then
    value_error(of, field, ("%d does not fit %d bits"):format(base, bits))
  end
end

local function check_range(of, field, list)
  local low, high = list[1], list[3]
  local is_empty = field.width_bytes == 8 and math.ult(high, low)
    or field.width_bytes < 8 and high < low
  if list[2] == 0 and list[4] == 0 and is_empty then
    value_error(of, field, ("no value is within %d .. %d"):format(low, high))
  end
end

-- The core's name of a test and its bases and steps.
local function test_of(of, field, v)
  local kind, given = "equal", { v }
  if is_rule(v) then
    kind, given = v.kind, v
  end
  local list = {}
  for i, part in ipairs(given) do
    list[2 * i - 1], list[2 * i] = layout.affine(of, field, part)
    if kind ~= "range" then
      check_width(of, field, list[2 * i - 1], list[2 * i])
    end
  end
  if kind == "range" then
    if #given ~= 2 then
      value_error(of, field, "a range has two bounds")
    end
    check_range(of, field, list)
  elseif kind ~= "equal" and kind ~= "one_of" and kind ~= "any" then
    value_error(of, field, ("scan.%s is no test of a value"):format(kind))
  end
  return kind, list
end

local apply = {}

function apply.any() end

function apply.test(self, of, field, at, v)
  local kind, list = test_of(of, field, v)
  must(self.handle:expect(at, field.width_bytes, field.endian, kind, list, of.name, field.name))
end

apply.equal, apply.range, apply.one_of = apply.test, apply.test, apply.test

function apply.gather(self, of, field, at, v)
  local name = v.name or field.name
  local kind, list
  if v.test then
    kind, list = test_of(of, field, v.test)
  end
  local number = must(self.handle:accumulate(at, field.width_bytes, field.endian, v.kind, name,
    kind, list, v.from, v.to, v.bins))
  self.gathered[number + 1] = self.gathered[number + 1]
    or { kind = v.kind, name = name, unit = field.unit }
end

for _, kind in ipairs { "sum", "min", "max", "count", "histogram" } do
  apply[kind] = apply.gather
end

function apply.column(self, of, field, at, v)
  local name = v.name or field.name
  for _, other in ipairs(self.columns) do
    if other == name then
      value_error(of, field, ("there is a column '%s' already"):format(name))
    end
  end
  local number = must(self.handle:column(at, field.width_bytes, field.endian, name))
  self.columns[number + 1] = name
end

function apply.all(self, of, field, at, v)
  for _, part in ipairs(v) do
    apply[is_rule(part) and part.kind or "equal"](self, of, field, at, part)
  end
end

local function visitor(self)
  return function(of, field, at, v)
    if field.kind == "int" then
      apply[is_rule(v) and v.kind or "equal"](self, of, field, at, v)
    elseif is_rule(v) then
      if v.kind ~= "any" then
        value_error(of, field, ("scan.%s is for integers"):format(v.kind))
      end
    else
      must(self.handle:expect_bytes(at, layout.opaque(of, field, v), of.name, field.name))
    end
  end
end

-- Whether a rule says itself what the value must be, so that a magic number is not expected.
local function decides(v)
  if not is_rule(v) then
    return true
  elseif v.kind ~= "all" then
    return v.kind == "any" or v.kind == "range" or v.kind == "one_of"
  end
  for _, part in ipairs(v) do
    if decides(part) then
      return true
    end
  end
  return false
end

local spread

-- A field's value with rules in the places of elements: one rule is for each of a list.
local function spread_value(of, field, v, size_bytes)
  if field.record then
    if is_rule(v) then
      value_error(of, field, "its records take tables of values")
    elseif type(v) ~= "table" or not field.array then
      return type(v) == "table" and spread(field.record, v, field.width_bytes) or v
    end
    local list = {}
    for i, element in ipairs(v) do
      list[i] = type(element) == "table" and not is_rule(element)
        and spread(field.record, element, field.width_bytes) or element
    end
    return list
  elseif field.array and is_rule(v) then
    local list = {}
    for i = 1, of.handle:elements(field.index, size_bytes) do
      list[i] = v
    end
    return list
  end
  return v
end

function spread(of, values, size_bytes)
  local out = {}
  for name, v in pairs(values) do
    local field = of:field(name)
    out[name] = field and spread_value(of, field, v, size_bytes) or v
  end
  return out
end

-- What a placed structure must hold: the values given, and the declared ones of single fields.
local function expected(placed)
  local values = spread(placed.layout, placed.values, placed.size_bytes)
  for _, field in ipairs(placed.layout.fields) do
    if field.kind == "int" and not field.array and field.magic then
      local v = values[field.name]
      if v == nil then
        values[field.name] = field.value
      elseif not decides(v) then
        values[field.name] = M.all { field.value, v }
      end
    end
  end
  return values
end

local function expect(self, placed)
  if not layout.is_placed(placed) or not placed.layout then
    where.raise "a scan's function returns structures placed with layout:at"
  end
  must(self.handle:expect_layout(placed.layout.handle, placed.off_bytes, placed.size_bytes))
  layout.each_value(placed.layout, placed.off_bytes, placed.size_bytes, expected(placed),
    visitor(self))
end

---Make a scan: `trace` is called once and returns placed structures with the values expected, or
---rules (scan.range, scan.sum, ...) in their place. A rule given to an array is for each element.
---@param trace fun(index: brim.Index): ...
---@return brim.Scan
function M.new(trace)
  local self = setmetatable({ handle = assert(core.scan_new()), gathered = {}, columns = {} }, Scan)
  local list = layout.flatten(trace(symbol.new()))
  local ok, err = pcall(function()
    for _, placed in ipairs(list) do
      expect(self, placed)
    end
  end)
  if not ok then
    where.raise(err)
  end
  return self
end

-- ------------------------------------------------------------------------- running

-- Hands the rows there are to the script; false once it wants an end.
local function pass_rows(self, handle, o)
  local first, count, columns = handle:rows(o.batch_groups)
  while first do
    local batch = { first = first, count = count }
    for i, name in ipairs(self.columns) do
      batch[name] = columns[i]
    end
    if o.batch(batch) == false then
      return false
    end
    first, count, columns = handle:rows(o.batch_groups)
  end
end

local function check_batch(self, o)
  if o.batch and #self.columns == 0 then
    where.raise "scan:run: option 'batch': the scan has no scan.column"
  end
  for _, name in ipairs(o.batch and self.columns or {}) do
    if name == "first" or name == "count" then
      where.raise(("scan:run: option 'batch': a column cannot be named '%s'"):format(name))
    end
  end
end

local OWN <const> = { progress = true, progress_interval_s = true, batch = true,
  batch_groups = true }

---Read every group, check it, gather. Options: count, stride_bytes, offset_bytes, first; engine,
---queue_depth and the others of plan:write. mismatch_count of the result counts what does not hold;
---`mismatches` has the first max_mismatches of each kind (structure, field and rule), `kinds` how
---many there are of each; sums, minima, maxima, counts and histograms what was gathered, by name.
---`batch` is called with the columns of up to batch_groups groups at a time, in order: { first =,
---count =, NAME = { values } }; memory does not grow with the number of groups.
---@param target string|brim.Device
---@param o table
---@return brim.ScanResult? result
---@return brim.Error? err
function Scan:run(target, o)
  o = opts.check(o, RUN_SCHEMA, "scan:run")
  check_batch(self, o)
  if type(target) == "string" then
    local opened <close>, err = device.open(target)
    if not opened then
      return nil, err
    end
    return self:run(opened, o)
  end
  local core_options = {}
  for name, v in pairs(o) do
    core_options[name] = not OWN[name] and v or nil
  end
  local handle <close>, err = core.scan_open(self.handle, target, core_options)
  if not handle then
    return nil, errors.refused(err)
  end
  if o.batch then
    must(handle:collect(o.batch_groups))
  end
  local result, failed = run.drive(handle, { progress = o.progress,
    progress_interval_s = o.progress_interval_s }, o.batch and function()
    return pass_rows(self, handle, o)
  end)
  return result and scan_result.fill(result, handle, self.gathered), failed
end

-- brim.scan(trace) is brim.scan.new(trace).
return setmetatable(M, {
  __call = function(_, trace)
    return M.new(trace)
  end,
})
