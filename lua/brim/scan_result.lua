-- brim.scan_result: what a scan found and gathered, as tables that print themselves. Called by
-- brim.scan. Units are those of the layouts' fields. Values are unsigned: those from 2^63 on are
-- negative in Lua.
local bytes = require "brim.bytes"
local errors = require "brim.error"
local pretty = require "brim.pretty"

local M = {}

---@class brim.Gathered
---@field kind "sum"|"min"|"max"|"count"|"histogram"
---@field name string
---@field unit? string

---@class brim.MismatchKind
---@field piece string the structure
---@field what string the field
---@field rule string what found is not: "=", "<=", ">=" expected, "in" a set
---@field count integer
---@field group integer of the one with the lowest offset
---@field off_bytes integer

---@class brim.Extreme
---@field value integer
---@field group integer
---@field off_bytes integer of the field, on the device

---@class brim.Histogram
---@field bins { first: integer, last: integer, count: integer }[]
---@field below integer values less than those of the first bin
---@field above integer
---@field count integer all values

---@class brim.ScanResult: brim.RunResult
---@field kinds brim.MismatchKind[] the most frequent first
---@field sums? table<string, integer|brim.Error>
---@field minima? table<string, brim.Extreme> without those of no group
---@field maxima? table<string, brim.Extreme>
---@field counts? table<string, integer>
---@field histograms? table<string, brim.Histogram>

local BAR_COLUMNS <const> = 40
local SHOWN <const> = 4 -- mismatches of a kind

-- An unsigned value for people, with its unit.
local function show(v, unit)
  local text = v >= 0 and pretty.count(v) or ("0x%x"):format(v)
  if unit == "bytes" and v >= 1024 then
    local size = bytes.format(v)
    return ("%s bytes%s"):format(text, size:find "%a" and (" (%s)"):format(size) or "")
  end
  return unit and ("%s %s"):format(text, unit) or text
end

-- ------------------------------------------------------------------------ histograms

local histogram_mt = { __name = "brim.histogram" }

-- Lines of the bins from the first to the last that hold anything.
function histogram_mt:__tostring()
  local first, last, most = #self.bins + 1, 0, 1
  for i, bin in ipairs(self.bins) do
    if bin.count > 0 then
      first, last, most = math.min(first, i), i, math.max(most, bin.count)
    end
  end
  local lines = {}
  for i = first, last do
    local bin = self.bins[i]
    -- Whatever is there shows.
    local bar = ("#"):rep((bin.count * BAR_COLUMNS + most - 1) // most)
    lines[#lines + 1] = ("%22s .. %-22s %12s %s"):format(show(bin.first), show(bin.last),
      pretty.count(bin.count), bar):gsub(" +$", "")
  end
  for _, side in ipairs { "below", "above" } do
    if self[side] > 0 then
      lines[#lines + 1] = ("%48s %12s"):format(side, pretty.count(self[side]))
    end
  end
  return table.concat(lines, "\n")
end

-- --------------------------------------------------------------------------- filling

local take = {}

function take.sum(total)
  return total.sum or errors.new { code = "EOVERFLOW", errno = 75, op = "scan",
    decimal = total.decimal,
    message = ("sum '%s' is %s, past 2^63-1"):format(total.name, total.decimal) }
end

function take.min(total)
  return total.seen > 0
    and { value = total.value, group = total.group, off_bytes = total.off_bytes } or nil
end

take.max = take.min

function take.count(total)
  return total.count
end

function take.histogram(total)
  return setmetatable({ bins = total.bins, below = total.below, above = total.above,
    count = total.seen }, histogram_mt)
end

local LISTS <const> = { sum = "sums", min = "minima", max = "maxima", count = "counts",
  histogram = "histograms" }

local function kinds(handle)
  local list = {}
  local kind = handle:kind(1)
  while kind do
    list[#list + 1] = kind
    kind = handle:kind(#list + 1)
  end
  table.sort(list, function(a, b)
    if a.count ~= b.count then
      return a.count > b.count
    elseif a.off_bytes ~= b.off_bytes then
      return a.off_bytes < b.off_bytes
    end
    return a.piece .. "\0" .. a.what .. "\0" .. a.rule < b.piece .. "\0" .. b.what .. "\0" .. b.rule
  end)
  return list
end

-- ------------------------------------------------------------------------- printing

local units = setmetatable({}, { __mode = "k" }) -- of each result: the brim.Gathered it is made of

local function head(self)
  local rate = self.groups_per_s > 0 and (", %s groups/s"):format(pretty.si(self.groups_per_s))
    or ""
  return ("%s groups in %s%s%s: %s"):format(pretty.count(self.groups),
    pretty.duration(self.wall_s), rate, self.stopped and (", %s"):format(self.stopped) or "",
    self.mismatch_count == 0 and "nothing is wrong"
      or ("%s values are wrong"):format(pretty.count(self.mismatch_count)))
end

local function show_mismatches(self, lines)
  for _, kind in ipairs(self.kinds) do
    lines[#lines + 1] = ("  %s %s: %s"):format(kind.piece, kind.what, pretty.count(kind.count))
    local shown = 0
    for _, m in ipairs(self.mismatches) do
      local is_of = m.piece == kind.piece and m.what == kind.what and m.rule == kind.rule
      if is_of and shown < SHOWN then
        shown = shown + 1
        lines[#lines + 1] = ("    group %d, offset %d: %s, expected %s%s"):format(m.group,
          m.off_bytes, show(m.found), m.rule == "=" and "" or m.rule .. " ", show(m.expected))
      end
    end
  end
end

local function show_gathered(self, lines)
  for _, g in ipairs(units[self] or {}) do
    local v = self[LISTS[g.kind]][g.name]
    local label = ("  %s %s"):format(g.kind, g.name)
    if g.kind == "histogram" then
      lines[#lines + 1] = g.unit and ("%s, %s"):format(label, g.unit) or label
      lines[#lines + 1] = tostring(v)
    elseif v == nil then
      lines[#lines + 1] = label .. ": none"
    elseif g.kind == "min" or g.kind == "max" then
      lines[#lines + 1] = ("%s: %s in group %d"):format(label, show(v.value, g.unit), v.group)
    else
      local unit = g.kind == "sum" and g.unit or nil
      lines[#lines + 1] = ("%s: %s"):format(label, errors.is(v)
        and ("%s%s"):format(v.decimal, unit and " " .. unit or "") or show(v, unit))
    end
  end
end

local result_mt = { __name = "brim.scan_result" }

function result_mt:__tostring()
  local lines = { head(self) }
  show_mismatches(self, lines)
  show_gathered(self, lines)
  return table.concat(lines, "\n")
end

---Add to a run's result what the scan's handle has gathered.
---@param result brim.RunResult
---@param handle brim.RunHandle
---@param gathered brim.Gathered[]
---@return brim.ScanResult result the same
function M.fill(result, handle, gathered)
  result.kinds = kinds(handle)
  for number, g in ipairs(gathered) do
    local name = LISTS[g.kind]
    local total = handle:total(number - 1)
    result[name] = result[name] or {}
    result[name][g.name] = take[g.kind](total)
  end
  units[result] = gathered
  return setmetatable(result, result_mt)
end

return M
