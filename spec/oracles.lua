-- The reference tools that are here, of each generation: the system's own and those that `make
-- oracles` has put into trees of their own (build/oracles/RELEASE). Called by specs, benches and
-- campaigns. Versions are read from the tools, never assumed: a release's name says nothing.
local M = {}

local SYSTEM <const> = "system"
local PATHS <const> = "$PATH:/usr/sbin:/sbin"

-- What makes a generation of a family: the tool that says its version and how, and the names of its
-- tools as keys. All of them must be there.
local FAMILIES <const> = {
  xfs = { asks = "mkfs", argument = "-V", tools = { mkfs = "mkfs.xfs", repair = "xfs_repair",
    db = "xfs_db", logprint = "xfs_logprint", spaceman = "xfs_spaceman" } },
  f2fs = { asks = "mkfs", argument = "-V", tools = { mkfs = "mkfs.f2fs", fsck = "fsck.f2fs",
    dump = "dump.f2fs", resize = "resize.f2fs" } },
  uml = { asks = "kernel", argument = "--version", tools = { kernel = "linux.uml" } },
}

---@class brim.spec.Oracle
---@field version string as the tool says it, like "6.13.0"
---@field release string "system", or the Debian release of the tree
---@field mkfs? string absolute path, ready to run (xfs, f2fs)
---@field repair? string xfs_repair
---@field db? string xfs_db
---@field logprint? string xfs_logprint
---@field spaceman? string xfs_spaceman, which is what xfs_info asks
---@field fsck? string fsck.f2fs
---@field dump? string dump.f2fs
---@field resize? string resize.f2fs
---@field kernel? string a user-mode Linux
---@field modules? string the directory /lib/modules/VERSION of that kernel

local function output_of(format, ...)
  local pipe <close> = assert(io.popen(format:format(...)))
  return pipe:read "a"
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    lines[#lines + 1] = line
  end
  return lines
end

local function path_of(directory, name)
  local command = directory and ("ls -d %s/%s"):format(directory, name)
    or ("PATH=%s command -v %s"):format(PATHS, name)
  return output_of("{ %s; } 2>/dev/null", command):match "^/[^\n]*"
end

-- One generation, or nil.
local function look(family, release, directory)
  local oracle = { release = release }
  for key, name in pairs(family.tools) do
    oracle[key] = path_of(directory, name)
    if not oracle[key] then
      return nil
    end
  end
  local said = output_of("%s %s 2>&1 </dev/null", oracle[family.asks], family.argument)
  oracle.version = said:match "%d+%.%d[%d.]*"
  return oracle.version and oracle
end

local function find_modules(oracle, tree)
  for _, directory in ipairs { (tree or "") .. "/usr/lib/uml/modules",
    (tree or "") .. "/lib/uml/modules" } do
    local modules = output_of("ls -d %s/%s 2>/dev/null", directory, oracle.version)
    oracle.modules = oracle.modules or modules:match "[^\n]+"
  end
end

---Compare two versions by their numbers.
---@param a string
---@param b string
---@return boolean is_earlier whether `a` comes before `b`
function M.is_earlier(a, b)
  local next_b = b:gmatch "%d+"
  for x in a:gmatch "%d+" do
    local y = next_b()
    if x ~= y then
      return y ~= nil and tonumber(x) < tonumber(y)
    end
  end
  return next_b() ~= nil
end

local found = {}

-- All generations of a family, the oldest first, each version once: the system's, or a tree's.
local function all(name)
  if found[name] then
    return found[name]
  end
  local list, seen = {}, {}
  local function add(release, tree)
    local oracle = look(FAMILIES[name], release, tree and tree .. "/bin")
    if oracle and not seen[oracle.version] then
      seen[oracle.version] = true
      list[#list + 1] = oracle
      if name == "uml" then
        find_modules(oracle, tree)
      end
    end
  end
  add(SYSTEM)
  for _, tree in ipairs(lines_of(output_of "ls -d $PWD/build/oracles/*/layout 2>/dev/null")) do
    tree = tree:match "^(.*)/layout$"
    add(tree:match "[^/]+$", tree)
  end
  table.sort(list, function(a, b)
    return M.is_earlier(a.version, b.version)
  end)
  found[name] = list
  return list
end

---The XFS tools that are here, the oldest first.
---@return brim.spec.Oracle[]
function M.xfs()
  return all "xfs"
end

---The F2FS tools that are here, the oldest first.
---@return brim.spec.Oracle[]
function M.f2fs()
  return all "f2fs"
end

---The user-mode Linux kernels that are here, the oldest first.
---@return brim.spec.Oracle[]
function M.uml()
  return all "uml"
end

local function missing(family, version)
  local have = {}
  for i, oracle in ipairs(all(family)) do
    have[i] = oracle.version
  end
  return ("no %s%s here (have: %s); `make oracles` fetches others"):format(
    FAMILIES[family].tools[FAMILIES[family].asks], version and " " .. version or "",
    have[1] and table.concat(have, ", ") or "none")
end

---The tools of a version, for pending() otherwise.
---@param family "xfs"|"f2fs"|"uml"
---@param version string its first numbers: "6.1" is 6.1.0, not 6.13.0
---@return brim.spec.Oracle? oracle the newest of those that match
---@return string? why none matches
function M.of(family, version)
  local list = all(family)
  for i = #list, 1, -1 do
    if (list[i].version .. "."):sub(1, #version + 1) == version .. "." then
      return list[i]
    end
  end
  return nil, missing(family, version)
end

---The newest tools of a family.
---@param family? "xfs"|"f2fs"|"uml" default "xfs"
---@return brim.spec.Oracle? oracle
---@return string? why there is none
function M.newest(family)
  local list = all(family or "xfs")
  return list[#list], not list[1] and missing(family or "xfs") or nil
end

return M
