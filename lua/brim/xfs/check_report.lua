-- brim.xfs.check_report: collects what a check finds, in the order of groups, and says it: one line
-- a finding, then totals. Called by check and its parts.
local pretty = require "brim.pretty"
local uuid = require "brim.uuid"

local M = {}

---@class brim.xfs.Finding
---@field group? integer
---@field structure string "agf", "bnobt block 17", ...
---@field field? string
---@field expected? any
---@field found? any
---@field why? string where expected and found do not say it

---@class brim.xfs.Report
---@field findings brim.xfs.Finding[]
---@field count integer of all, kept or not
---@field by_structure table<string, integer>
local Report = {}
Report.__index = Report

---Begin a report that keeps the first so many findings.
---@param most integer
---@return brim.xfs.Report
function M.new(most)
  return setmetatable({ findings = {}, count = 0, most = most, notes = {}, by_structure = {} },
    Report)
end

---Note something that is wrong.
---@param f brim.xfs.Finding
function Report:add(f)
  local name = f.structure:match "^%S+"
  self.count = self.count + 1
  self.by_structure[name] = (self.by_structure[name] or 0) + 1
  if #self.findings < self.most then
    self.findings[#self.findings + 1] = f
  end
end

---Note that a field holds something else than it should; whether it holds it.
---@param group integer?
---@param structure string
---@param field string
---@param expected any
---@param found any
---@return boolean same
function Report:expect(group, structure, field, expected, found)
  if expected ~= found then
    self:add { group = group, structure = structure, field = field, expected = expected,
      found = found }
  end
  return expected == found
end

---Say something that is no damage.
---@param fmt string
function Report:note(fmt, ...)
  self.notes[#self.notes + 1] = fmt:format(...)
end

local HEX <const> = { magicnum = true, magic = true, crc = true, checksum = true,
  features_compat = true, features_ro_compat = true, features_incompat = true, free = true,
  versionnum = true }

local function show(field, v)
  if math.type(v) ~= "integer" then
    return type(v) == "string" and #v == 16 and v:find "[^%g ]" and uuid.format(v) or tostring(v)
  end
  return HEX[field] and ("0x%x"):format(v) or v < 0 and ("0x%x"):format(v) or ("%d"):format(v)
end

---One finding as a line.
---@param f brim.xfs.Finding
---@return string
function M.line(f)
  local parts = { f.group and ("group %d"):format(f.group) or "filesystem", f.structure }
  if f.field then
    parts[#parts + 1] = f.field
  end
  local said = f.why
  if f.expected ~= nil then
    said = ("expected %s, found %s"):format(show(f.field, f.expected), show(f.field, f.found))
      .. (f.why and (" (%s)"):format(f.why) or "")
  end
  return ("%s: %s"):format(table.concat(parts, ", "), said)
end

local function totals(self, counts)
  local lines = {}
  if self.count > #self.findings then
    lines[#lines + 1] = ("... and %s more"):format(pretty.count(self.count - #self.findings))
  end
  for _, note in ipairs(self.notes) do
    lines[#lines + 1] = note
  end
  lines[#lines + 1] = ("%s groups: %s as freshly made, %s walked (%s tree blocks, %s records), %s "
    .. "inodes in use read"):format(pretty.count(counts.groups), pretty.count(counts.groups_fresh),
      pretty.count(counts.groups_walked), pretty.count(counts.tree_blocks),
      pretty.count(counts.records), pretty.count(counts.inodes))
  lines[#lines + 1] = self.count == 0 and "clean"
    or ("damaged: %s finding%s"):format(pretty.count(self.count), self.count == 1 and "" or "s")
  return lines
end

---The whole report for people.
---@param counts table groups, groups_fresh, groups_walked, tree_blocks, records, inodes
---@return string
function Report:text(counts)
  table.sort(self.findings, function(a, b)
    local x, y = a.group or -1, b.group or -1
    if x ~= y then
      return x < y
    end
    return a.structure < b.structure
  end)
  local lines = {}
  for i, f in ipairs(self.findings) do
    lines[i] = M.line(f)
  end
  return table.concat(lines, "\n", 1, #lines) .. (#lines > 0 and "\n" or "")
    .. table.concat(totals(self, counts), "\n")
end

return M
