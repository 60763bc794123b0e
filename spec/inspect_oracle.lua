-- What xfs_db says of a structure, as a table of its fields, for spec/inspect_xfs_db_spec.lua: runs
-- many commands in one process and reads their answers. Values come in brim's terms: integers
-- (nulls as all ones), texts, times as UTC; arrays as lists of rows.
local helper = require "spec.helper"

local M = {}

local NULL <const> = "null"

-- xfs_db shows the four bytes of a little-endian checksum as if they were big-endian.
local function swapped(v)
  return ((">I4"):unpack(("<I4"):pack(v)))
end

local MONTHS <const> = { Jan = 1, Feb = 2, Mar = 3, Apr = 4, May = 5, Jun = 6, Jul = 7, Aug = 8,
  Sep = 9, Oct = 10, Nov = 11, Dec = 12 }

local function date_of(text)
  local month, day, time, year = text:match "^%a+ (%a+) +(%d+) (%d+:%d+:%d+) (%d+)$"
  return month and ("%s-%02d-%02d %s"):format(year, MONTHS[month], day, time)
end

-- Integers above 2^63-1 wrap to their bit pattern, as brim keeps them.
local function integer_of(text)
  local hex = text:match "^0x(%x+)$"
  if hex then
    return tonumber("0x" .. hex)
  elseif text:find "^0[0-7]+$" then
    return tonumber(text, 8)
  elseif text:find "^-?%d+$" then
    local v = 0
    for digit in text:gmatch "%d" do
      v = v * 10 + math.tointeger(digit)
    end
    return text:find "^-" and -v or v
  end
end

local function value_of(name, text)
  local crc, verdict = text:match "^(0x%x+) %((%a+)%)$"
  if crc then
    return { crc = swapped(integer_of(crc)), is_right = verdict == "correct" }
  end
  local quoted = text:match '^"(.*)"$'
  if quoted then
    return (quoted:gsub("\\000", ""):gsub("\\(%d%d%d)", function(o)
      return string.char(tonumber(o, 8))
    end))
  elseif text == NULL then
    return NULL
  elseif name:find "%.sec$" then
    return date_of(text)
  end
  return integer_of(text:match "^(%S+) %(%a+%)$" or text) or text
end

-- "[a,b,c]" -> its values; "5" -> { 5 }.
local function row_of(text)
  local row = {}
  for word in (text:match "^%[(.*)%]$" or text):gmatch "[^,]+" do
    row[#row + 1] = word == NULL and NULL or integer_of(word) or word
  end
  return row
end

local function read_rows(list, text)
  for number, row in text:gmatch "(%d+):(%S+)" do
    list[#list + 1] = row_of(row)
    list[#list].number = math.tointeger(number)
  end
end

-- Fields of one answer. Runs on over lines that begin with an element's number.
local function parse(text)
  local fields, list = {}, nil
  for line in text:gmatch "[^\n]+" do
    local name, range, value = line:match "^([%w_.%[%]]-)%[([%d-]+)%] = (.*)$"
    if name and not range:find "-" and not value:find "^%[%D" then
      name = nil -- an element of its own
    end
    if name then
      list = {}
      fields[name] = list
      read_rows(list, value:find "^%[%D" and "" or value)
      goto continue
    end
    name, value = line:match "^([%w_.%[%]]+) = (.*)$"
    if name then
      list = nil
      fields[name] = value_of(name, value)
    elseif list then
      read_rows(list, line)
    end
    ::continue::
  end
  return fields
end

M.parse = parse

---Ask xfs_db: each query is a list of commands, the last of which prints. Their answers, parsed.
---@param image string
---@param queries string[][]
---@return table[] answers
function M.ask(image, queries)
  local answers, script = {}, helper.path "commands"
  for first = 1, #queries, 200 do
    local lines = {}
    for i = first, math.min(first + 199, #queries) do
      for _, command in ipairs(queries[i]) do
        lines[#lines + 1] = "-c " .. helper.quote(command)
      end
      lines[#lines + 1] = "-c 'echo @@@'"
    end
    helper.write(script, ("TZ=UTC exec xfs_db -r %s %s 2>&1\n"):format(table.concat(lines, " "),
      helper.quote(image)))
    local said = helper.must("sh %s", helper.quote(script))
    for answer in said:gmatch "(.-)@@@ ?\n" do
      answers[#answers + 1] = parse(answer)
    end
  end
  assert(#answers == #queries, ("%d answers to %d queries"):format(#answers, #queries))
  return answers
end

return M
