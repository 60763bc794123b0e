-- brim.lab.kernels: the kernels that guests can run: user-mode Linux as Debian packages it, and
-- those of other releases in trees of their own. Versions are read from the kernel itself. Called
-- by lab and the recipe lab.
local errors = require "brim.error"
local process = require "brim.process"

local M = {}

---@class brim.LabKernel
---@field name string "uml-" and the first two numbers of the version
---@field version string as the kernel says it, like "6.1.176"
---@field path string the executable
---@field modules? string directory of its modules

local PROGRAM <const> = "linux.uml"
-- Where Debian's package keeps modules, below / or a tree.
local MODULE_PLACES <const> = { "/usr/lib/uml/modules/", "/lib/uml/modules/" }

local function lines(...)
  local ok, out = process.run(...)
  local list = {}
  for line in (ok and out or ""):gmatch "[^\n]+" do
    list[#list + 1] = line
  end
  return list
end

---The directory of brim's executable: of this process, or of the tree the module was loaded from.
---@return string
function M.home()
  local exe = process.executable()
  local dir, name = exe:match "^(.*)/([^/]*)$"
  if name == "brim" then
    return dir
  end
  local module = package.searchpath("brim.core", package.cpath) or ""
  local _, real = process.run("realpath", "-m", module:gsub("[^/]*$", "") .. "../..")
  return real
end

-- Trees of other releases: RELEASE/bin/linux.uml below each of these.
local function tree_roots()
  local named = os.getenv "BRIM_ORACLES"
  if named and named ~= "" then
    return { named }
  end
  return { M.home() .. "/oracles", "build/oracles" }
end

-- A kernel, or nil where it does not run.
local function look(path, tree)
  local ok, said = process.run(path, "--version")
  local version = ok and said:match "^%d+%.%d[%w.+-]*$" -- it says nothing else
  if not version then
    return nil
  end
  local k = { name = "uml-" .. version:match "^%d+%.%d+", version = version, path = path }
  for _, place in ipairs(MODULE_PLACES) do
    local dir = (tree or "") .. place .. version
    if not k.modules and process.run("test", "-d", dir) then
      k.modules = dir
    end
  end
  return k
end

local function is_earlier(a, b)
  local next_b = b:gmatch "%d+"
  for x in a:gmatch "%d+" do
    local y = next_b()
    if x ~= y then
      return y ~= nil and tonumber(x) < tonumber(y)
    end
  end
  return next_b() ~= nil
end

---List the kernels that are here, the oldest first, each version once.
---@return brim.LabKernel[]
function M.list()
  local list, seen = {}, {}
  local function add(path, tree)
    local k = path and look(path, tree)
    if k and not seen[k.version] then
      seen[k.version] = true
      list[#list + 1] = k
    end
  end
  add(lines("sh", "-c", "command -v " .. PROGRAM)[1])
  for _, root in ipairs(tree_roots()) do
    for _, path in ipairs(lines("sh", "-c", 'ls -d "$0"/*/bin/' .. PROGRAM, root)) do
      local real = process.absolute(path)
      add(real, (real:match "^(.*)/bin/[^/]*$"))
    end
  end
  table.sort(list, function(a, b) return is_earlier(a.version, b.version) end)
  return list
end

local function missing(name, list)
  local have = {}
  for i, k in ipairs(list) do
    have[i] = ("%s (%s)"):format(k.name, k.version)
  end
  return errors.skip("no kernel '%s' here (have: %s). Debian's package user-mode-linux has one: "
    .. "6.1 in Debian 12; `make oracles` in brim's sources fetches those of other releases, which "
    .. "are looked for in BRIM_ORACLES or beside brim in oracles/", name,
    have[1] and table.concat(have, ", ") or "none")
end

local function of_path(path)
  local real = process.absolute(path)
  local k = look(real, real:match "^(.*)/bin/[^/]*$") or nil
  if k and not k.modules then
    k = look(real, real:match "^(.*)/usr/bin/[^/]*$")
  end
  if k and not k.modules then
    k = look(real)
  end
  return k, not k and errors.usage("%s is no user-mode Linux that runs here", path) or nil
end

---Find a kernel: "uml-6.1" by the first numbers of its version, "uml" the newest, or the path of
---an executable.
---@param name string
---@return brim.LabKernel? kernel
---@return brim.Error? err
function M.find(name)
  if name:find "/" then
    return of_path(name)
  end
  local list = M.list()
  local wanted = name:match "^uml%-(%d+%.%d[%w.]*)$"
  if not wanted and name ~= "uml" then
    return nil, errors.usage("kernel '%s': expected a name like uml-6.1, uml, or a path", name)
  end
  for i = #list, 1, -1 do
    if not wanted or (list[i].version .. "."):sub(1, #wanted + 1) == wanted .. "." then
      return list[i]
    end
  end
  return nil, missing(name, list)
end

return M
