-- brim.verify: does a target still hold what a plan wrote, and if not, which fields of which
-- structures differ? plan:verify finds the I/Os that differ at full speed; what lies in them is
-- then read again, compared structure by structure, and summed up. Called by the recipe verify.
--
--   local verify = require "brim.verify"
--   local result = assert(verify.run("8eb.brim", "/dev/sdx"))
--   print(result.same, result.text)
local bytes = require "brim.bytes"
local device = require "brim.device"
local errors = require "brim.error"
local opts = require "brim.opts"
local plan = require "brim.plan"
local pretty = require "brim.pretty"
local uuid = require "brim.uuid"

local M = {}

---@class brim.Difference one field of one structure, wherever it differs
---@field structure string
---@field field? string without its element's number; nil: bytes that belong to no field
---@field count integer structures it differs in, of those looked at
---@field groups integer[] the first of the groups it differs in
---@field first { group?: integer, off_bytes: integer, field?: string, expected: any, found: any }

---@class brim.VerifyResult: brim.RunResult
---@field same boolean
---@field differences brim.Difference[] in the order found
---@field groups_affected integer groups with a difference, of those looked at
---@field affected integer[] the first of them
---@field text string the summary

local KEPT_GROUPS <const> = 16 -- of each list in the result
local SHOWN <const> = 40 -- differences in the text
local MOST_INSTANCES <const> = 1 << 16 -- compared one by one; then the first of each I/O only

local SCHEMA = { max_ios = { type = "int", default = 1024, min = 1, max = 65536,
  doc = "I/Os that differ to look into; the lowest offsets" } }
for name, spec in pairs(plan.ENGINE_SCHEMA) do
  if name ~= "max_mismatches" then
    SCHEMA[name] = spec
  end
end

-- Modules that name the fields of a format's structures; the plan's note says which format it is.
-- An image may come from anywhere, so the name is looked up, not required.
local FORMATS <const> = { xfs = "brim.xfs.ondisk" }

-- ------------------------------------------------------------------ comparing

---@class brim.Comparison
---@field plan brim.Plan
---@field target brim.Device
---@field pieces table[]
---@field layouts table<string, brim.Layout> by a structure's label
---@field group_bytes? integer
---@field seen table<string, boolean> instances that were compared
---@field looked_at integer how many
---@field align_bytes integer of the target's reads
---@field target_bytes integer
---@field found table<string, brim.Difference>
---@field differences brim.Difference[]
---@field groups table<integer, boolean>

-- Layouts of the plan's format, by label. Inode records differ without sparse chunks.
local function layouts_of(p)
  local format = FORMATS[p:note "format" or ""]
  if not format then
    return {}
  end
  local ondisk, out = require(format), {}
  for name, v in pairs(ondisk) do
    if type(v) == "table" and getmetatable(v) and v.name == name then
      out[name] = v
    end
  end
  local sb = ondisk.sb:decode(assert(p:read(0, ondisk.sb.size_bytes)))
  if sb.features_incompat & 2 == 0 then
    out.inobt, out.finobt = ondisk.inobt_full, ondisk.finobt_full
  end
  return out
end

local function group_bytes_of(pieces)
  for _, piece in ipairs(pieces) do
    if piece.is_groups and piece.stride_bytes > 0 then
      return piece.stride_bytes
    end
  end
end

local function append_group(list, group)
  if group and #list < KEPT_GROUPS and list[#list] ~= group then
    list[#list + 1] = group
  end
end

-- Notes that a field differs; `path` has the element's number, if any.
local function note(c, structure, path, off_bytes, expected, found)
  local field = path and path:gsub("%[%d+%]", "[]")
  local key = ("%s.%s"):format(structure, field or "")
  local group = c.group_bytes and off_bytes // c.group_bytes
  local d = c.found[key]
  if not d then
    d = { structure = structure, field = field, count = 0, groups = {},
      first = { group = group, off_bytes = off_bytes, field = path, expected = expected,
        found = found } }
    c.found[key] = d
    c.differences[#c.differences + 1] = d
  end
  if d.last ~= c.instance then
    d.count, d.last = d.count + 1, c.instance
  end
  append_group(d.groups, group)
  if group and not c.groups[group] then
    c.groups[group] = true
    c.groups_affected = c.groups_affected + 1
    append_group(c.affected, group)
  end
end

local function value_bytes(field, expected, found, at)
  local from = at + field.off_bytes
  return expected:sub(from + 1, from + field.width_bytes), found:sub(from + 1,
    from + field.width_bytes)
end

local function integer_of(field, raw)
  return ((field.endian == "little" and "<I" or ">I") .. field.width_bytes):unpack(raw)
end

local function shown(field, raw)
  if field.kind == "int" then
    return (integer_of(field, raw))
  elseif field.kind == "uuid" then
    return uuid.format(raw)
  elseif field.kind == "char" then
    return (raw:gsub("\0.*$", ""))
  end
  return (raw:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Compares an element field by field; `at` is where it begins within the strings.
local function compare_fields(c, structure, prefix, layout, size_bytes, expected, found, at, base)
  for _, field in ipairs(layout.fields) do
    local count = field.array and layout.handle:elements(field.index, size_bytes) or 1
    for k = 0, count - 1 do
      local here = at + k * field.width_bytes
      local e, f = value_bytes(field, expected, found, here)
      if e ~= f then
        local name = prefix .. field.name .. (field.array and ("[%d]"):format(k) or "")
        if field.record then
          compare_fields(c, structure, name .. ".", field.record, field.width_bytes, expected,
            found, here + field.off_bytes, base)
        else
          note(c, structure, name, base + here + field.off_bytes, shown(field, e),
            shown(field, f))
        end
        c.is_named = true
      end
    end
  end
end

-- The first byte that differs: where, what should be there, what is.
local function first_byte(expected, found)
  local low, high = 1, #expected
  while low < high do
    local middle = (low + high) // 2
    if expected:sub(low, middle) == found:sub(low, middle) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low - 1, expected:byte(low), found:byte(low)
end

-- Reads the target, which may be open for direct I/O, where it can.
local function read_target(c, off_bytes, len_bytes)
  local align = math.max(1, c.align_bytes)
  local from = off_bytes // align * align
  local skip = off_bytes - from
  local span = (skip + len_bytes + align - 1) // align * align
  local found, err = c.target:read(from, math.min(span, c.target_bytes - from))
  return found and found:sub(skip + 1, skip + len_bytes), err
end

-- Compares one structure. One of a layout that is not known, or whose difference lies behind its
-- fields, is told by its first byte.
local function compare_region(c, label, off_bytes, len_bytes)
  local expected, err = c.plan:read(off_bytes, len_bytes)
  local found
  if expected then
    found, err = read_target(c, off_bytes, len_bytes)
  end
  if not found then
    error(err, 0)
  elseif expected == found then
    return
  end
  local layout = c.layouts[label]
  c.is_named = false
  if layout and len_bytes >= layout.size_bytes then
    compare_fields(c, label, "", layout, len_bytes, expected, found, 0, off_bytes)
  end
  if not c.is_named then
    local at, e, f = first_byte(expected, found)
    note(c, label, nil, off_bytes + at, e, f)
  end
end

-- --------------------------------------------------------- what I/Os held it

local function contains(piece, instance, off_bytes)
  local at = off_bytes - piece.off_bytes - piece.stride_bytes * instance
  for _, region in ipairs(piece.regions) do
    if at >= region.off_bytes and at - region.off_bytes < region.len_bytes then
      return true
    end
  end
end

-- The piece that an I/O's difference was found for.
local function piece_of(c, mismatch)
  for i, piece in ipairs(c.pieces) do
    if piece.name == mismatch.piece and (piece.is_zero
      or contains(piece, mismatch.group, mismatch.off_bytes)) then
      return piece, i
    end
  end
end

local function compare_instance(c, piece, number, instance)
  local key = ("%d %d"):format(number, instance)
  if c.seen[key] then
    return
  end
  c.seen[key], c.looked_at = true, c.looked_at + 1
  local base = piece.off_bytes + piece.stride_bytes * instance
  for i, region in ipairs(piece.regions) do
    c.instance = ("%s %d"):format(key, i)
    compare_region(c, region.label, base + region.off_bytes, region.len_bytes)
  end
end

-- How many instances lie side by side in one I/O: only the first that differs is reported.
local function side_by_side(piece, max_io_bytes)
  local first, last = piece.regions[1], piece.regions[#piece.regions]
  local span = last.off_bytes + last.len_bytes - first.off_bytes
  if piece.extents ~= 1 or span ~= piece.stride_bytes then
    return 1
  end
  return math.max(1, max_io_bytes // span)
end

local function look_into(c, mismatch, max_io_bytes)
  local piece, number = piece_of(c, mismatch)
  if not piece or piece.is_zero then
    c.instance = ("zero %d"):format(mismatch.off_bytes)
    note(c, mismatch.piece, nil, mismatch.off_bytes, mismatch.expected, mismatch.found)
    return
  end
  local beside = c.looked_at < MOST_INSTANCES and side_by_side(piece, max_io_bytes) or 1
  local last = math.min(mismatch.group + beside - 1, piece.first + piece.count - 1)
  for instance = mismatch.group, last do
    compare_instance(c, piece, number, instance)
  end
end

local function compare(p, target, run, max_io_bytes)
  local pieces, info = p:pieces(), target:info()
  local c = { plan = p, target = target, pieces = pieces, layouts = layouts_of(p),
    group_bytes = group_bytes_of(pieces), seen = {}, found = {}, differences = {}, groups = {},
    affected = {}, groups_affected = 0, looked_at = 0, align_bytes = info.align_bytes or 1,
    target_bytes = info.size_bytes }
  for _, mismatch in ipairs(run.mismatches) do
    look_into(c, mismatch, max_io_bytes)
  end
  for _, d in ipairs(c.differences) do
    d.last = nil
  end
  return c
end

-- ----------------------------------------------------------------------- text

local function value_text(v)
  if math.type(v) ~= "integer" then
    return #v > 40 and v:sub(1, 37) .. "..." or v
  end
  return v >= 0 and v < 10 and tostring(v) or v >= 0 and ("%d (0x%x)"):format(v, v)
    or ("0x%x"):format(v)
end

local function group_list(list, total)
  return ("%s%s"):format(table.concat(list, ", "), total > #list and ", ..." or "")
end

local function difference_text(d)
  local first = d.first
  local name = d.structure .. (d.field and "." .. (d.count == 1 and first.field or d.field) or "")
  local where = first.group and ("group %d, "):format(first.group) or ""
  local text = ("  %s: %sbyte %d should be %s, is %s"):format(name, where, first.off_bytes,
    value_text(first.expected), value_text(first.found))
  if d.count > 1 then
    text = text .. ("; and %d more%s"):format(d.count - 1,
      #d.groups > 1 and (", groups " .. group_list(d.groups, d.count)) or "")
  end
  return text
end

local function summary(result)
  local how = ("%s groups, %s compared in %s"):format(pretty.count(result.groups),
    bytes.format(result.bytes), pretty.duration(result.wall_s))
  if result.stopped then
    how = ("%s, stopped: %s"):format(how, result.stopped)
  end
  if result.same then
    return ("%s: %s"):format(result.stopped and "no difference so far"
      or "the target holds exactly what the plan wrote", how)
  end
  local lines = { ("%s I/Os differ: %s"):format(pretty.count(result.mismatch_count), how) }
  if result.groups_affected > 0 then
    lines[2] = ("  groups affected%s: %s (%s)"):format(result.is_partial and ", at least" or "",
      pretty.count(result.groups_affected), group_list(result.affected, result.groups_affected))
  end
  for i, d in ipairs(result.differences) do
    if i > SHOWN then
      lines[#lines + 1] = ("  and %d more fields"):format(#result.differences - SHOWN)
      break
    end
    lines[#lines + 1] = difference_text(d)
  end
  if result.is_partial then
    lines[#lines + 1] = ("  (the first %d of the I/Os that differ were looked into)"):format(
      result.looked_into)
  end
  return table.concat(lines, "\n")
end

---Compare a target with a plan and sum up what differs, by structure and field. Options: max_ios
---(I/Os to look into), and engine, queue_depth and the others of plan:verify.
---@param p brim.Plan|string a plan, or the path of an image file
---@param target string|brim.Device
---@param o? table
---@return brim.VerifyResult? result
---@return brim.Error? err
function M.run(p, target, o)
  o = opts.check(o, SCHEMA, "brim.verify.run")
  if type(p) == "string" then
    local loaded <close>, err = plan.load(p)
    if not loaded then
      return nil, errors.refused(err)
    end
    return M.run(loaded, target, o)
  elseif type(target) == "string" then
    local opened <close>, err = device.open(target)
    if not opened then
      return nil, err
    end
    return M.run(p, opened, o)
  end
  local run = { max_mismatches = o.max_ios }
  for name in pairs(plan.ENGINE_SCHEMA) do
    run[name] = run[name] or o[name]
  end
  local result, err = p:verify(target, run)
  if not result then
    return nil, err
  end
  return M.sum_up(p, target, result, o.max_io_bytes)
end

---Sum up the result of plan:verify, which stays as it is but for what is added: see
---brim.VerifyResult.
---@param p brim.Plan
---@param target brim.Device
---@param result brim.RunResult
---@param max_io_bytes? integer that the run was made with; default 1 MiB
---@return brim.VerifyResult? result
---@return brim.Error? err
function M.sum_up(p, target, result, max_io_bytes)
  local ok, c = pcall(compare, p, target, result, max_io_bytes or 1 << 20)
  if not ok then
    if errors.is(c) then
      return nil, c
    end
    error(c, 0)
  end
  result.same = result.mismatch_count == 0
  result.differences, result.affected, result.groups_affected = c.differences, c.affected,
    c.groups_affected
  result.looked_into = #result.mismatches
  result.is_partial = result.mismatch_count > #result.mismatches
  result.mismatches = table.move(result.mismatches, 1, KEPT_GROUPS, 1, {})
  result.text = summary(result)
  return result
end

return M
