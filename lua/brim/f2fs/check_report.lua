-- brim.f2fs.check_report: collects what a check of an F2FS finds and says it: one line a finding,
-- then totals. Called by check and its parts.
local pretty = require "brim.pretty"

local M = {}

---@class brim.f2fs.Finding
---@field structure string "sit", "nat", "node", ...
---@field number? integer a segment, a node
---@field field? string
---@field expected? any
---@field found? any
---@field why? string where expected and found do not say it

---@class brim.f2fs.Report
---@field findings brim.f2fs.Finding[]
---@field count integer of all, kept or not
---@field by_structure table<string, integer>
---@field notes string[]
local Report = {}
Report.__index = Report

---Begin a report that keeps the first so many findings.
---@param most integer
---@return brim.f2fs.Report
function M.new(most)
  return setmetatable({ findings = {}, count = 0, most = most, notes = {}, by_structure = {} },
    Report)
end

---Note something that is wrong.
---@param structure string
---@param number? integer
---@param why string may be a format
---@param ... any
function Report:fault(structure, number, why, ...)
  self:add { structure = structure, number = number, why = why:format(...) }
end

---Note a finding.
---@param f brim.f2fs.Finding
function Report:add(f)
  self.count = self.count + 1
  self.by_structure[f.structure] = (self.by_structure[f.structure] or 0) + 1
  if #self.findings < self.most then
    self.findings[#self.findings + 1] = f
  end
end

---Note that a field holds something else than it should.
---@param structure string
---@param number? integer
---@param field string
---@param expected any
---@param found any
function Report:expect(structure, number, field, expected, found)
  if expected ~= found then
    self:add { structure = structure, number = number, field = field, expected = expected,
      found = found }
  end
end

---Say something that is no damage.
---@param fmt string
function Report:note(fmt, ...)
  self.notes[#self.notes + 1] = fmt:format(...)
end

---One finding as a line.
---@param f brim.f2fs.Finding
---@return string
function M.line(f)
  local name = f.number and ("%s %d"):format(f.structure, f.number) or f.structure
  if f.expected ~= nil then
    return ("%s, %s: expected %s, found %s"):format(name, f.field, f.expected, f.found)
  end
  return ("%s: %s"):format(name, f.why)
end

---The whole report for people.
---@param counts table segments, valid_blocks, nodes, inodes, read
---@return string
function Report:text(counts)
  local lines = {}
  for i, f in ipairs(self.findings) do
    lines[i] = M.line(f)
  end
  if self.count > #self.findings then
    lines[#lines + 1] = ("... and %s more"):format(pretty.count(self.count - #self.findings))
  end
  table.move(self.notes, 1, #self.notes, #lines + 1, lines)
  lines[#lines + 1] = ("%s segments, %s valid blocks; %s nodes, %s of them inodes; %s nodes read")
    :format(pretty.count(counts.segments), pretty.count(counts.valid_blocks),
      pretty.count(counts.nodes), pretty.count(counts.inodes), pretty.count(counts.nodes_read))
  lines[#lines + 1] = self.count == 0 and "clean"
    or ("damaged: %s finding%s"):format(pretty.count(self.count), self.count == 1 and "" or "s")
  return table.concat(lines, "\n")
end

return M
