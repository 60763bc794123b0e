-- brim.f2fs.inspect_command: the words of `brim inspect TARGET WHAT [NUMBER]` for an F2FS, to calls
-- of inspect. Called by the recipe. Numbers are decimal or 0x hexadecimal.
local errors = require "brim.error"
local inspect = require "brim.f2fs.inspect"
local opts = require "brim.opts"

local M = {}

-- What can be shown, in the order of help: name, argument ("[N]": may be left out), meaning.
local LIST <const> = {
  { "geometry", "", "areas, counters, how it was left" },
  { "sb", "[COPY]", "superblock 0 or 1" },
  { "cp", "[PACK]", "checkpoint pack 1 or 2; default: the valid one" },
  { "nat", "NID", "where a node is" },
  { "sit", "SEGMENT", "type and valid blocks of a segment" },
  { "ssa", "SEGMENT", "whose the blocks of a segment are" },
  { "node", "NID", "a node" },
  { "inode", "INO", "an inode" },
  { "segmap", "", "a picture of all segments: free, dirty, full, by type" },
}

local function number(word)
  local n = word:match "^%d+$" and tonumber(word) or word:match "^0[xX]%x%x?%x?%x?%x?%x?%x?%x?$"
    and tonumber(word)
  return n and math.tointeger(n)
end

---The list of what can be shown, for the help.
---@return string
function M.help()
  local lines = {}
  for i, each in ipairs(LIST) do
    lines[i] = ("  %-18s %s"):format(each[1] .. " " .. each[2], each[3])
  end
  return "WHAT of an F2FS is one of:\n" .. table.concat(lines, "\n")
end

local function entry_of(what)
  local names = {}
  for i, each in ipairs(LIST) do
    names[i] = each[1]
    if each[1] == what then
      return each
    end
  end
  return nil, errors.usage("unknown structure '%s'%s (%s)", what, opts.suggest(what, names),
    table.concat(names, ", "))
end

---Show a structure: its view.
---@param fs brim.f2fs.Volume
---@param what string
---@param words string[] what follows it
---@param o { block?: integer }
---@return brim.f2fs.View? view
---@return brim.Error? err
function M.show(fs, what, words, o)
  local entry, unknown = entry_of(what)
  if not entry then
    return nil, unknown
  elseif o.block then
    return nil, errors.usage "--block goes with a tree of an XFS"
  elseif #words > (entry[2] == "" and 0 or 1) then
    return nil, errors.usage("'%s' takes %s, '%s' is too much", what,
      entry[2] == "" and "no argument" or entry[2], words[#words])
  elseif not words[1] and entry[2] ~= "" and not entry[2]:find "^%[" then
    return nil, errors.usage("'%s' needs %s", what, entry[2])
  end
  local n = words[1] and number(words[1])
  if words[1] and not n then
    return nil, errors.usage("'%s' takes %s, decimal or 0x hexadecimal, not '%s'", what, entry[2],
      words[1])
  end
  local ok, v = pcall(inspect[what], fs, n)
  if ok then
    return v
  elseif errors.is(v) then
    return nil, v
  end
  error(v, 0)
end

-- Bytes in rows of 16.
local function dump(bytes, off_bytes)
  local rows = {}
  for at = 1, #bytes, 16 do
    local part = bytes:sub(at, at + 15)
    local hex = part:gsub(".", function(c) return ("%02x "):format(c:byte()) end)
    rows[#rows + 1] = ("%12x  %-48s %s"):format(off_bytes + at - 1, hex, (part:gsub("[^%g ]", ".")))
  end
  return table.concat(rows, "\n")
end

---What the recipe returns for a view: text for people, the fields for JSON.
---@param v brim.f2fs.View
---@param o { raw?: boolean }
---@return table? result
---@return brim.Error? err
function M.result(v, o)
  local result = v:json()
  result.text = tostring(v)
  if o.raw then
    if not v.bytes then
      return nil, errors.usage("'%s' has no bytes of its own to show with --raw", v.what)
    end
    result.text = dump(v.bytes, v.off_bytes)
  end
  return result
end

return M
