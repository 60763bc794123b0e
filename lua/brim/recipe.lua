-- brim.recipe: what a script under scripts/ is: a checked table with a schema of
-- arguments and a run function. Finds recipes by name, parses their command lines, writes their
-- help. Called by the command line; the REPL and the specs use the same objects.
local opts = require "brim.opts"

local M = {}

---@class brim.Recipe
---@field name string
---@field doc string one line
---@field details? string further help
---@field args? table a schema in list form (brim.opts)
---@field raw_args? boolean run gets its words unparsed, and answers --help itself
---@field destructive? boolean|fun(a: table): boolean needs --yes
---@field defaults? table of brim's own options: queue_depth, engine, ...
---@field run fun(a: table, ctx: brim.Context): table?, brim.Error?

local SCHEMA = {
  name = { type = "string", required = true },
  doc = { type = "string", required = true },
  details = { type = "string" },
  args = { type = "table" },
  raw_args = { type = "bool" },
  destructive = { type = "any" },
  defaults = { type = "table" },
  run = { type = "function", required = true },
}

local recipe_mt = { __name = "brim.recipe" }
recipe_mt.__index = recipe_mt

function recipe_mt:__tostring()
  return ("recipe %s: %s"):format(self.name, self.doc)
end

---Make a recipe of a table; `brim.recipe { ... }` is the same.
---@param fields brim.Recipe
---@return brim.Recipe
function M.new(fields)
  local r = opts.check(fields, SCHEMA, "brim.recipe")
  r.args = r.args or {}
  opts.entries(r.args)
  return setmetatable(r, recipe_mt)
end

---Is it a recipe?
---@param v any
---@return boolean
function M.is(v)
  return getmetatable(v) == recipe_mt
end

-- -------------------------------------------------------------------- finding

-- Where scripts lie on disk: beside a source tree's lua/, or below the installed module.
local function directories()
  local dirs = {}
  for template in package.path:gmatch("[^;]+") do
    local dir = template:match("^(.*)%?%.lua$")
    if dir then
      dirs[#dirs + 1] = dir .. "brim/scripts/"
      local tree = dir:match("^(.-)lua/$")
      if tree then
        dirs[#dirs + 1] = tree .. "scripts/"
      end
    end
  end
  return dirs
end

local function embedded()
  return package.preload["brim.embedded"] and require "brim.embedded" or {}
end

local function checked(chunk, why, name)
  if not chunk then
    error(why, 0)
  end
  local r = chunk(name)
  if not M.is(r) then
    error(("%s is no recipe: it must return brim.recipe { ... }"):format(name), 0)
  end
  return r
end

local function from_files(name)
  for _, dir in ipairs(directories()) do
    local path = ("%s%s.lua"):format(dir, name)
    local file = io.open(path)
    if file then
      file:close()
      local chunk, why = loadfile(path, "t")
      return checked(chunk, why, name)
    end
  end
end

local function from_embedded(name)
  local key = "brim.scripts." .. name
  local text = embedded()[key]
  if text then
    local chunk, why = load(text, "=" .. key, "t")
    return checked(chunk, why, name)
  end
end

local function is_overridden()
  return (os.getenv("BRIM_LUA_PATH") or "") ~= ""
end

---Find a recipe by its name, among the files of a source tree or an installation and those built
---into the executable. Raises when its file is wrong.
---@param name string
---@return brim.Recipe? recipe nil where there is none
function M.find(name)
  if name:find("[^%w._-]") then
    return nil
  elseif is_overridden() then
    return from_files(name) or from_embedded(name)
  end
  return from_embedded(name) or from_files(name)
end

-- Lua cannot read a directory; the shell can.
local function files_in(dir, add)
  local pipe = io.popen(("ls '%s' 2>/dev/null"):format((dir:gsub("'", "'\\''"))))
  if pipe then
    for file in pipe:lines() do
      add(file:match("^(.*)%.lua$"))
    end
    pipe:close()
  end
end

---List the names of all recipes, sorted.
---@return string[]
function M.names()
  local list, seen = {}, {}
  local function add(name)
    if name and not seen[name] then
      seen[name] = true
      list[#list + 1] = name
    end
  end
  for key in pairs(embedded()) do
    add(key:match("^brim%.scripts%.(.*)$"))
  end
  if #list == 0 or is_overridden() then
    for _, dir in ipairs(directories()) do
      files_in(dir, add)
    end
  end
  table.sort(list)
  return list
end

-- ------------------------------------------------------------------- arguments

local function describe(entry)
  local spec = entry.spec
  local text = spec.doc or ""
  if spec.type == "enum" then
    text = ("%s (%s)"):format(text, table.concat(spec.values, ", "))
  end
  if spec.default ~= nil and spec.default ~= false then
    text = ("%s (default: %s)"):format(text, tostring(spec.default))
  end
  return text
end

local function add_positional(parser, entry)
  local optional = not entry.spec.required and entry.spec.default ~= nil
  local arg = parser:argument(entry.name, describe(entry))
  if entry.spec.many then
    arg:args(entry.spec.required and "+" or "*")
  elseif optional or entry.spec.required == false then
    arg:args("?")
  end
end

local function add_option(parser, entry)
  if entry.spec.type == "bool" then
    parser:flag(entry.flag, describe(entry)):target(entry.name)
    if entry.spec.default then
      parser:flag("--no-" .. entry.flag:sub(3), "the opposite"):target(entry.name)
        :action("store_false")
    end
    return
  end
  parser:option(entry.flag, describe(entry)):target(entry.name)
    :argname(("<%s>"):format(entry.spec.type))
end

-- Only where a recipe wants it: it is large.
local function parser_of(r)
  local argparse = require "argparse"
  local parser = argparse("brim " .. r.name, r.doc, r.details)
  for _, entry in ipairs(opts.entries(r.args)) do
    if entry.positional then
      add_positional(parser, entry)
    else
      add_option(parser, entry)
    end
  end
  return parser
end

---Write the help of a recipe.
---@param r brim.Recipe
---@return string
function M.help(r)
  if r.raw_args then
    return ("%s: %s\n%s"):format(r.name, r.doc, r.details and ("\n" .. r.details .. "\n") or "")
  end
  return parser_of(r):get_help() .. "\n"
end

-- argparse's message in one line, with our own guess at a mistyped option.
local function blame(r, message)
  local line = message:match("^[^\n]*")
  local word = line:match("^unknown option '(%-%-.*)'$")
  if not word then
    return line
  end
  local flags = {}
  for _, entry in ipairs(opts.entries(r.args)) do
    flags[#flags + 1] = entry.flag
  end
  return line .. opts.suggest(word, flags)
end

---Parse the words of a command line for a recipe: its arguments, or nil and what is wrong with
---them.
---@param r brim.Recipe
---@param words string[]
---@return table? args the words themselves for a recipe with raw_args
---@return string? why
function M.parse(r, words)
  if r.raw_args then
    return words
  end
  local ok, values = parser_of(r):pparse(words)
  if not ok then
    return nil, blame(r, values)
  end
  return opts.try(values, r.args, true)
end

---Does running it overwrite something, so that it needs --yes?
---@param r brim.Recipe
---@param a table
---@return boolean
function M.is_destructive(r, a)
  if type(r.destructive) == "function" then
    return r.destructive(a) and true or false
  end
  return r.destructive and true or false
end

return setmetatable(M, {
  __call = function(_, fields)
    return M.new(fields)
  end,
})
