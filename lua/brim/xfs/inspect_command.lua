-- brim.xfs.inspect_command: the words of `brim inspect TARGET WHAT [ARG...]`, to calls of an
-- inspector. Called by the recipe; all numbers are decimal or 0x hexadecimal.
local bytes = require "brim.bytes"
local errors = require "brim.error"
local inspect = require "brim.xfs.inspect"
local opts = require "brim.opts"

local M = {}

-- The number a word is, or nil: up to 2^63-1.
local function number(word)
  local hex = word:match "^0[xX]0*(%x*)$"
  if hex then
    return #word > 2 and (#hex < 16 or #hex == 16 and hex < "8") and tonumber("0x0" .. hex) or nil
  end
  local digits = word:match "^0*(%d+)$"
  return digits and math.tointeger(tonumber(digits)) or nil
end

local function size(word)
  return number(word) or (bytes.parse(word))
end

local function raise(fmt, ...)
  error(errors.usage(fmt, ...), 0)
end

local function take(word, what, name, parse)
  if not word then
    raise("'%s' needs %s", what, name)
  end
  return (parse or number)(word)
    or raise("'%s' takes %s, decimal or 0x hexadecimal, not '%s'", what, name, word)
end

-- What can be shown, in the order of help: usage, meaning, how.
local list = {}

local function add(name, usage, doc, show)
  list[#list + 1] = { name = name, usage = usage, doc = doc, show = show }
  list[name] = list[#list]
end

add("geometry", "", "as mkfs.xfs prints it", function(fs)
  return fs:geometry()
end)

add("sb", "[AG]", "superblock, or its copy in a group", function(fs, words)
  return fs:sb(words[1] and take(words[1], "sb", "a group's number") or 0)
end)

for _, each in ipairs { { "agf", "free space header of a group" },
  { "agi", "inode header of a group" }, { "agfl", "free list of a group" } } do
  local name <const> = each[1]
  add(name, "AG", each[2], function(fs, words)
    return fs[name](fs, take(words[1], name, "a group's number"))
  end)
end

for _, each in ipairs { { "bnobt", "free space by block" }, { "cntbt", "free space by size" },
  { "inobt", "inodes" }, { "finobt", "inodes, chunks with free ones" },
  { "rmapbt", "owners of blocks" }, { "refcountbt", "shared blocks" } } do
  local name <const> = each[1]
  add(name, "AG", each[2] .. ": the tree's root, or --block AGBNO", function(fs, words, o)
    return fs:tree(name, take(words[1], name, "a group's number"), o.block)
  end)
end

add("inode", "INO", "inode: core, data fork, attribute fork", function(fs, words)
  return fs:inode(take(words[1], "inode", "an inode's number"))
end)

add("log", "", "internal log: head, tail, state, last record", function(fs)
  return fs:log()
end)

add("block", "N|AG:AGBNO", "any block, as what its magic number says it is", function(fs, words)
  local ag, agbno = (words[1] or ""):match "^([^:]+):([^:]+)$"
  if ag then
    return fs:block(take(agbno, "block", "a block's number"),
      take(ag, "block", "a group's number"))
  end
  return fs:block(take(words[1], "block", "a block's number, N or AG:AGBNO"))
end)

add("sector", "N", "the block that holds a 512-byte sector (daddr)", function(fs, words)
  return fs:sector(take(words[1], "sector", "a sector's number"))
end)

add("bytes", "OFF LEN", "bytes of the target", function(fs, words)
  return fs:bytes(take(words[1], "bytes", "an offset", size),
    take(words[2] or words[1] and "512", "bytes", "a length", size))
end)

local MOST_WORDS <const> = { geometry = 0, log = 0, bytes = 2 }

---The list of what can be shown, for the help.
---@return string
function M.help()
  local lines = {}
  for i, each in ipairs(list) do
    lines[i] = ("  %-18s %s"):format(each.name .. " " .. each.usage, each.doc)
  end
  return "WHAT is one of:\n" .. table.concat(lines, "\n")
    .. "\nNumbers are decimal or 0x hexadecimal; OFF and LEN also sizes such as 1t."
end

local function known()
  local names = {}
  for i, each in ipairs(list) do
    names[i] = each.name
  end
  return names
end

---Show a structure: its view.
---@param fs brim.xfs.Inspector
---@param what string
---@param words string[] what follows it
---@param o { block?: integer }
---@return brim.xfs.View? view
---@return brim.Error? err
function M.show(fs, what, words, o)
  local entry = list[what]
  if type(what) ~= "string" or not entry then
    return nil, errors.usage("unknown structure '%s'%s (%s)", what, opts.suggest(what, known()),
      table.concat(known(), ", "))
  elseif #words > (MOST_WORDS[what] or 1) then
    return nil, errors.usage("'%s' takes %s, '%s' is too much", what,
      entry.usage == "" and "no argument" or entry.usage, words[#words])
  elseif o.block and not (what:find "bt$") then
    return nil, errors.usage("--block goes with a tree (bnobt, ...), not with '%s'", what)
  end
  local ok, v, err = pcall(entry.show, fs, words, o)
  if not ok and not errors.is(v) then
    error(v, 0)
  end
  return ok and v or nil, ok and err or v
end

---What the recipe returns for a view: text for people, the fields for JSON.
---@param v brim.xfs.View
---@param o { raw?: boolean }
---@return table? result
---@return brim.Error? err
function M.result(v, o)
  local result = inspect.json(v)
  result.text = tostring(v)
  if o.raw then
    result.text, result.raw = inspect.raw(v)
    if not result.text then
      return nil, errors.usage("'%s' has no bytes of its own to show with --raw", v.about.what)
    end
  end
  return result
end

return M
