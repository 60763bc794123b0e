-- brim.help: finds the doc comment of anything public: modules, functions of Lua and C, methods of
-- handles, recipes. The comments in the sources are the only manual; C is described in _meta/.
-- Called by the REPL's help(x), by `brim help` and by the spec that wants everything documented.
local M = {}

local SKIP <const> = { _G = true, package = true }

-- Text of a source by the name its chunk has: "=brim.opts", "@lua/brim/opts.lua".
local function source_text(chunk)
  local kind, name = chunk:match("^([=@])(.*)$")
  if kind == "@" then
    local file = io.open(name)
    local text = file and file:read("a")
    if file then
      file:close()
    end
    return text
  elseif kind and package.preload["brim.embedded"] then
    return require("brim.embedded")[name]
  end
end

local function module_text(name)
  local path = package.searchpath(name, package.path)
  local embedded = package.preload["brim.embedded"] and require("brim.embedded")[name]
  return embedded or path and source_text("@" .. path)
end

local function split_lines(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    lines[#lines + 1] = line
  end
  return lines
end

-- The `---` block that ends right above a line, without its dashes.
local function block_above(lines, at)
  local first = at
  while first > 1 and lines[first - 1]:find("^%s*%-%-%-") do
    first = first - 1
  end
  local out = {}
  for i = first, at - 1 do
    out[#out + 1] = (lines[i]:gsub("^%s*%-%-%-%s?", ""))
  end
  return #out > 0 and table.concat(out, "\n") or nil
end

local function signature(line)
  return line:match("function%s*([%w_.:]+%b())") or line:match("^%s*([%w_.]+)%s*=")
    or line:match("^%s*(.-)%s*$")
end

local function entry(lines, at)
  local doc = block_above(lines, at)
  return doc and { doc = doc, signature = signature(lines[at]) }
end

-- Declarations of C functions: name -> { doc, signature }, from _meta/, read once.
local meta

local function read_meta(text)
  local lines = split_lines(text)
  for at, line in ipairs(lines) do
    local name = line:match("^function ([%w_.:]+)") or line:match("^([%w_]+%.[%w_.]+) = ")
    if name then
      meta[name:gsub(":", ".")] = entry(lines, at)
    end
    local object = line:match("^local ([%w_]+) = {}")
    if object then
      -- Files that add functions to an object say nothing of it.
      meta[object] = meta[object] or entry(lines, at)
    end
  end
end

local function meta_entries()
  if not meta then
    meta = {}
    for part in (module_text("brim._meta") or ""):gmatch('require "([%w_.]+)"') do
      read_meta(module_text(part) or "")
    end
  end
  return meta
end

-- "brim.xfs.format" for a value that some loaded module of brim holds under that name.
local function name_of(v)
  local found
  for module_name, module in pairs(package.loaded) do
    if type(module) == "table" and module_name:find("^brim") and not SKIP[module_name] then
      if module == v then
        return module_name
      end
      for key, value in next, module do
        if value == v and (not found or module_name == "brim.core") then
          found = ("%s.%s"):format(module_name, tostring(key))
        end
      end
    end
  end
  return found
end

local function of_function(f)
  local info = debug.getinfo(f, "S")
  local name = name_of(f)
  if info.what == "C" then
    return name and meta_entries()[name:gsub("^brim%.core%.", "core.")]
  end
  local text = source_text(info.source)
  local found = text and entry(split_lines(text), info.linedefined)
  if found and name then
    found.signature = name .. (found.signature:match("%b()") or "()")
  end
  return found
end

---Give the first sentence of a doc comment.
---@param doc string
---@return string
function M.summary(doc)
  local prose = (doc .. "\n@"):match("^(.-)\n@"):gsub("\n", " ")
  return prose:match("^(.-)[.:] ") or prose:match("^(.-)[.:]?$")
end

-- Docs of methods that a module defines in Lua on its classes: each -> { doc, signature }.
local function methods_in(text)
  local found = {}
  local lines = split_lines(text or "")
  for at, line in ipairs(lines) do
    local class, name = line:match("^function ([%w_]+)[:.]([%w_]+)%(")
    if class and class ~= "M" and not name:find("^_") then
      found[name] = entry(lines, at)
    end
  end
  return found
end

local function sorted(t)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

-- The comment at the top of a module and the first sentences of what it holds.
local function of_module(name, module)
  local text = module_text(name)
  local lines = {}
  for _, line in ipairs(text and split_lines(text) or {}) do
    local comment = line:match("^%-%-%s?([^-].*)$")
    if not comment then
      break
    end
    lines[#lines + 1] = comment
  end
  local functions = {}
  for key, value in next, module do
    if type(key) == "string" and not key:find("^_") and type(value) == "function" then
      functions[key] = value
    end
  end
  for _, key in ipairs(sorted(functions)) do
    local doc = of_function(functions[key])
    lines[#lines + 1] = ("  %s.%s  %s"):format(name, key, doc and M.summary(doc.doc) or "")
  end
  local methods = methods_in(text)
  for _, key in ipairs(sorted(methods)) do
    lines[#lines + 1] = ("  %s:%s  %s"):format(name, key, M.summary(methods[key].doc))
  end
  return #lines > 0 and { doc = table.concat(lines, "\n"), signature = name }
end

---List the methods of a handle's metatable: name -> function.
---@param mt table
---@return table<string, function>
function M.methods(mt)
  local out = {}
  for name, f in pairs(type(mt.__index) == "table" and mt.__index or mt) do
    if type(f) == "function" and type(name) == "string" and not name:find("^__") then
      out[name] = f
    end
  end
  return out
end

local function of_handle(mt)
  local class = meta_entries()[mt.__name:match("[%w_]+$")]
  local lines = { class and class.doc or mt.__name }
  for _, name in ipairs(sorted(M.methods(mt))) do
    local doc = M.method(mt.__name, name)
    lines[#lines + 1] = ("  :%s  %s"):format(name, doc and M.summary(doc.doc) or "")
  end
  return { doc = table.concat(lines, "\n"), signature = mt.__name }
end

---Find the doc of a method by the name of its handle's metatable.
---@param class string as "brim.device"
---@param name string
---@return { doc: string, signature: string }?
function M.method(class, name)
  local short = class:match("[%w_]+$")
  return meta_entries()[("%s.%s"):format(short, name)]
end

---Find the doc of any value: a function, a module of brim, a recipe, a handle.
---@param v any
---@return { doc: string, signature: string }?
function M.of(v)
  local mt = getmetatable(v)
  if type(v) == "function" then
    return of_function(v)
  elseif type(v) == "table" then
    local recipe = require "brim.recipe"
    if recipe.is(v) then
      return { doc = recipe.help(v), signature = v.name }
    end
    local name = name_of(v)
    if name and package.loaded[name] == v then
      return of_module(name, v)
    end
  end
  if type(mt) == "table" and type(mt.__name) == "string" then
    return of_handle(mt)
  end
end

-- The value a dotted name stands for, requiring modules on the way. A function of a module comes
-- before a module of the same name: brim.xfs.format is what scripts call.
local function resolve(name)
  local parent, key = name:match("^(.+)[.]([^.]+)$")
  local holder = parent and resolve(parent)
  local v = type(holder) == "table" and holder[key] or nil
  if type(v) == "function" then
    return v
  end
  local ok, module = pcall(require, name)
  return ok and module or v
end

-- plan:each -> the doc of a method that the module defines.
local function method_of_module(name)
  local module, key = name:match("^(.+):([%w_]+)$")
  return module and methods_in(module_text(module))[key]
end

---Write the help on something: a value, or the name of one ("brim.xfs.format").
---@param what any
---@return string? text nil where nothing is known
function M.text(what)
  local found
  if type(what) == "string" then
    local name = what:find("^brim") and what or "brim." .. what
    local v = resolve(name)
    found = v ~= nil and M.of(v) or method_of_module(name)
      or meta_entries()[what:gsub("^brim%.", ""):gsub(":", ".")]
  else
    found = M.of(what)
  end
  return found and ("%s\n\n%s\n"):format(found.signature, found.doc)
end

return M
