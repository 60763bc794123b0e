-- brim.f2fs.segmap: a picture of the main area: a character for a run of segments, by type and
-- fullness; and the numbers under it. Called by inspect. Pure but for reading the SIT.
local pretty = require "brim.pretty"
local segments_of = require "brim.f2fs.segments"

local M = {}

local SEGMENT_BLOCKS <const> = 512
local COLUMNS <const>, MOST_ROWS <const> = 64, 32
-- Hot, warm and cold data, then nodes; upper case where all blocks are valid.
local LETTERS <const> = { [0] = "h", "w", "c", "n", "m", "i" }
local FREE <const>, LOG <const> = ".", "*"

-- What one character stands for: its segments' most frequent kind, and whether all are full.
local function letter(s, logs, first, last)
  local count, is_full, has_log = {}, true, false
  local best
  for segment = first, last do
    local valid = s.valid[segment] or 0
    has_log = has_log or logs[segment] ~= nil
    is_full = is_full and valid == SEGMENT_BLOCKS
    if valid > 0 then
      local kind = s.kind[segment]
      count[kind] = (count[kind] or 0) + valid
      best = (not best or count[kind] > count[best]) and kind or best
    end
  end
  if has_log and first == last then
    return LOG
  elseif not best then
    return has_log and LOG or FREE
  end
  local l = LETTERS[best] or "?"
  return is_full and l:upper() or l
end

---Draw the map.
---@param s brim.f2fs.Segments
---@param logs table<integer, table>
---@param section_segments integer
---@return string
function M.draw(s, logs, section_segments)
  local each = 1
  while s.count > each * COLUMNS * MOST_ROWS do
    each = each * 2
  end
  local rows = { ("a character is %d segment%s (%d MiB), a section is %d"):format(each,
    each == 1 and "" or "s", each * 2, section_segments) }
  for first = 0, s.count - 1, each * COLUMNS do
    local row = {}
    for at = first, math.min(first + each * COLUMNS, s.count) - 1, each do
      row[#row + 1] = letter(s, logs, at, math.min(at + each, s.count) - 1)
    end
    rows[#rows + 1] = ("%9d |%s|"):format(first, table.concat(row))
  end
  rows[#rows + 1] = ". free   * log   data: h hot w warm c cold   nodes: n hot m warm i cold   "
    .. "H W C N M I: full"
  return table.concat(rows, "\n")
end

---@class brim.f2fs.SegmentCounts
---@field free integer
---@field logs integer
---@field dirty integer between empty and full, without logs
---@field full integer
---@field valid_blocks integer
---@field by_type table<string, { segments: integer, dirty: integer, full: integer,
--- valid_blocks: integer }>
---@field sections_free integer

---Count segments by state and type.
---@param s brim.f2fs.Segments
---@param logs table<integer, table>
---@param section_segments integer
---@return brim.f2fs.SegmentCounts
function M.count(s, logs, section_segments)
  local c = { free = 0, logs = 0, dirty = 0, full = 0, valid_blocks = 0, by_type = {},
    sections_free = 0 }
  for kind = 0, 5 do
    c.by_type[segments_of.name(kind)] = { segments = 0, dirty = 0, full = 0, valid_blocks = 0 }
  end
  local used_in_section = 0
  for segment = 0, s.count - 1 do
    local valid = s.valid[segment] or 0
    local state = logs[segment] and "logs" or valid == 0 and "free"
      or valid == SEGMENT_BLOCKS and "full" or "dirty"
    c[state], c.valid_blocks = c[state] + 1, c.valid_blocks + valid
    local t = c.by_type[segments_of.name(s.kind[segment])]
    if t and (valid > 0 or logs[segment]) then
      t.segments, t.valid_blocks = t.segments + 1, t.valid_blocks + valid
      if t[state] then
        t[state] = t[state] + 1
      end
    end
    used_in_section = used_in_section + (state == "free" and 0 or 1)
    if (segment + 1) % section_segments == 0 then
      c.sections_free = c.sections_free + (used_in_section == 0 and 1 or 0)
      used_in_section = 0
    end
  end
  return c
end

---The counts as text.
---@param c brim.f2fs.SegmentCounts
---@return string
function M.text(c)
  local lines = { ("%s free, %s dirty, %s full, %s logs; %s sections free; %s valid blocks"):format(
    pretty.count(c.free), pretty.count(c.dirty), pretty.count(c.full), pretty.count(c.logs),
    pretty.count(c.sections_free), pretty.count(c.valid_blocks)) }
  for kind = 0, 5 do
    local name = segments_of.name(kind)
    local t = c.by_type[name]
    lines[#lines + 1] = ("  %-9s %9s segments, %9s dirty, %9s full, %12s valid blocks"):format(name,
      pretty.count(t.segments), pretty.count(t.dirty), pretty.count(t.full),
      pretty.count(t.valid_blocks))
  end
  return table.concat(lines, "\n")
end

return M
