-- Everything public is documented: walks `require "brim"`, the sources, and what C gives Lua.
local brim = require "brim"
local core = require "brim.core"
local help = require "brim.help"
local helper = require "spec.helper"

-- C metatables by name; the methods a script can call on a handle.
local function handle_classes()
  local classes = {}
  for name, mt in pairs(debug.getregistry()) do
    if type(name) == "string" and name:find("^brim%.") and type(mt) == "table"
      and type(mt.__index) == "table" and mt.__gc then
      classes[name] = mt
    end
  end
  return classes
end

local function sources()
  local list = {}
  local found = helper.must("find lua/brim -name '*.lua' ! -path '*/_meta/*' | sort")
  for path in found:gmatch("[^\n]+") do
    list[#list + 1] = path
  end
  return list
end

-- Functions of a source that scripts can reach: those of M and of classes, which are capitalised.
local function each_public(text, visit)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do
    lines[#lines + 1] = line
    local object, name, params = line:match("^function ([%w_]+)[.:]([%w_]+)%((.*)%)")
    if object and (object == "M" or object:find("^%u%l")) and not name:find("^__") then
      visit(object .. "." .. name, params, lines)
    end
  end
end

local function block_above(lines)
  local block = {}
  for i = #lines - 1, 1, -1 do
    if not lines[i]:find("^%-%-%-") then
      break
    end
    table.insert(block, 1, lines[i])
  end
  return table.concat(block, "\n")
end

-- What a doc comment lacks, or nil.
local function lacks(block, params)
  if not block:find("^%-%-%-%s?%u") then
    return "a doc comment that begins with a sentence"
  end
  for param in params:gmatch("[%w_.]+") do
    if param:find("^%a") and not block:find("@param " .. param .. "[%s?]") then
      return ("---@param %s"):format(param)
    end
  end
end

local function report(list)
  if #list > 0 then
    error(table.concat(list, "\n"), 0)
  end
end

describe("documentation", function()
  it("opens every source with what it owns", function()
    local missing = {}
    for _, path in ipairs(sources()) do
      local module = path:gsub("^lua/", ""):gsub("/init%.lua$", ""):gsub("%.lua$", "")
      module = module:gsub("/", ".")
      if not helper.read(path):find("^%-%- " .. module:gsub("%.", "%%.") .. ": ") then
        missing[#missing + 1] = ("%s does not begin with '-- %s: ...'"):format(path, module)
      end
    end
    report(missing)
  end)

  it("is there for every public function of the sources", function()
    local missing = {}
    for _, path in ipairs(sources()) do
      each_public(helper.read(path), function(name, params, lines)
        local lack = lacks(block_above(lines), params)
        if lack then
          missing[#missing + 1] = ("%s:%d: %s lacks %s"):format(path, #lines, name, lack)
        end
      end)
    end
    report(missing)
  end)

  it("is found by help for methods by module, and for functions before modules", function()
    assert.truthy(help.text("plan:each"):find("^Plan:each%(count, trace, o%)"))
    assert.truthy(help.text("brim.xfs.format"):find("^brim%.xfs%.format%(o%)"))
    assert.truthy(help.text("brim.plan"):find("brim.plan:write  Write the plan", 1, true))
    assert.is_nil(help.text("plan:nothing"))
  end)

  it("is found by help for every function that require 'brim' reaches", function()
    local missing, seen = {}, {}
    local function walk(name, t)
      if seen[t] then
        return
      end
      seen[t] = true
      for key, v in pairs(t) do
        local full = ("%s.%s"):format(name, tostring(key))
        if type(key) == "string" and not key:find("^_") and key ~= "core" then
          if type(v) == "function" and not help.of(v) then
            missing[#missing + 1] = full
          elseif type(v) == "table" and not key:find("%u") and getmetatable(v) == nil then
            walk(full, v)
          end
        end
      end
    end
    for name in pairs(brim._submodules) do
      walk("brim." .. name, brim[name])
    end
    walk("brim", brim)
    report(missing)
  end)

  it("declares every function of brim.core in _meta", function()
    local missing = {}
    for name, v in pairs(core) do
      if type(v) == "function" and not help.of(v) then
        missing[#missing + 1] = "core." .. name
      end
    end
    report(missing)
  end)

  it("declares every method of a handle in _meta", function()
    local missing = {}
    for class, mt in pairs(handle_classes()) do
      for name in pairs(help.methods(mt)) do
        if not help.method(class, name) then
          missing[#missing + 1] = ("%s:%s"):format(class, name)
        end
      end
    end
    report(missing)
  end)

  it("declares nothing that C does not have", function()
    local stale, classes = {}, handle_classes()
    local text = helper.must "cat lua/brim/_meta/*.lua"
    for object, name in text:gmatch("\nfunction ([%w_]+)[.:]([%w_]+)") do
      local mt = classes["brim." .. object]
      if object == "core" and core[name] == nil or object ~= "core"
        and not (mt and mt.__index[name]) then
        stale[#stale + 1] = ("%s.%s"):format(object, name)
      end
    end
    report(stale)
  end)
end)

describe("brim", function()
  it("has its constants as integers", function()
    assert.int(brim.MAX_BYTES, math.maxinteger)
    assert.int(brim.EiB, 1 << 60)
    assert.int(8191 * brim.PiB, 8191 << 50)
    assert.equal(core.version, brim.VERSION)
  end)

  it("knows nothing under a wrong name", function()
    assert.is_nil(brim.no_such_thing)
  end)
end)
