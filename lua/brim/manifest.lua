-- brim.manifest: what a real tree is like, without its content: how many files of which sizes,
-- depths, extensions and ages. Taken with find(1), kept as JSON, used as a fileset by brim.fill.
-- Called by the recipe manifest and brim.dist. Sizes are bytes, ages seconds.
local bytes = require "brim.bytes"
local core = require "brim.core"
local errors = require "brim.error"
local json = require "brim.json"
local process = require "brim.process"

local M = {}

local FORMAT <const>, VERSION <const> = "brim-manifest", 1
-- Sizes are counted in bins of a quarter of a doubling.
local BINS_PER_DOUBLING <const> = 4
local EXTENSIONS_MAX <const> = 64 -- the rest counts as none
local EXTENSION_BYTES_MAX <const> = 31 -- of core/fileset.h
local DAY_S <const> = 86400
local AGES <const> = { { "day", DAY_S }, { "week", 7 * DAY_S }, { "month", 30 * DAY_S },
  { "year", 365 * DAY_S } }
local READ_BYTES <const> = 1 << 20

---@class brim.Manifest
---@field format string
---@field version integer
---@field root string
---@field taken string when, UTC
---@field files integer
---@field directories integer
---@field bytes integer
---@field sizes { from: integer, to: integer, weight: integer }[]
---@field depths integer[] files by the number of directories above them within the tree, from 0
---@field extensions { name: string, weight: integer }[] the most frequent first
---@field ages table<string, integer> files not changed for up to a day, week, month, year, longer

-- The first size of bin k; bin 0 is that of empty files.
local function bin_from(k)
  return k == 0 and 0 or math.ceil(2.0 ^ ((k - 1) / BINS_PER_DOUBLING))
end

local function bin_of(size)
  if size == 0 then
    return 0
  end
  local k = math.floor(math.log(size, 2) * BINS_PER_DOUBLING) + 1
  -- The logarithm is rounded.
  if size < bin_from(k) then
    return k - 1
  end
  return size >= bin_from(k + 1) and k + 1 or k
end

local function age_of(age_s)
  for _, age in ipairs(AGES) do
    if age_s <= age[2] then
      return age[1]
    end
  end
  return "longer"
end

local function extension_of(name)
  local ext = name:match "^.+(%.[^.%s/]+)$" or ""
  return #ext <= EXTENSION_BYTES_MAX and ext:lower() or ""
end

local function add(t, key)
  t[key] = (t[key] or 0) + 1
end

-- One entry of find: type, depth, size, time of change, name.
local function count(c, entry)
  local kind, depth, size, changed, name = entry:match "^(.) (%d+) (%d+) (%-?%d+)%S* (.*)$"
  if kind == "d" then
    c.directories = c.directories + 1
  elseif kind == "f" then
    size = math.tointeger(tonumber(size))
    c.files, c.bytes = c.files + 1, c.bytes + size
    add(c.bins, bin_of(size))
    -- A file of the tree itself has depth 1.
    add(c.depth_counts, math.max(math.tointeger(tonumber(depth)) - 1, 0))
    add(c.extension_counts, extension_of(name))
    add(c.ages, age_of(c.now_s - tonumber(changed)))
  end
end

-- Entries end with a zero byte, as names may hold anything else.
local function read_entries(pipe, visit)
  local rest = ""
  for block in function() return pipe:read(READ_BYTES) end do
    rest = rest .. block
    local from = 1
    for entry, after in rest:gmatch "([^\0]*)\0()" do
      visit(entry)
      from = after
    end
    rest = rest:sub(from)
  end
end

local function sizes_of(bins)
  local list = {}
  for k, n in pairs(bins) do
    local from = bin_from(k)
    list[#list + 1] = { from = from, to = math.max(bin_from(k + 1) - 1, from), weight = n }
  end
  table.sort(list, function(a, b) return a.from < b.from end)
  return list
end

local function extensions_of(counts)
  local list, rest = {}, counts[""] or 0
  for name, n in pairs(counts) do
    if name ~= "" then
      list[#list + 1] = { name = name, weight = n }
    end
  end
  table.sort(list, function(a, b)
    return a.weight > b.weight or a.weight == b.weight and a.name < b.name
  end)
  for i = #list, EXTENSIONS_MAX + 1, -1 do
    rest = rest + list[i].weight
    list[i] = nil
  end
  if rest > 0 then
    list[#list + 1] = { name = "", weight = rest }
  end
  return list
end

local function depths_of(counts)
  local deepest = -1
  for depth in pairs(counts) do
    deepest = math.max(deepest, depth)
  end
  local list = {}
  for depth = 0, deepest do
    list[depth + 1] = counts[depth] or 0
  end
  return list
end

---Take the manifest of a directory; other filesystems mounted below it are left out.
---@param dir string
---@return brim.Manifest? manifest
---@return brim.Error? err
function M.take(dir)
  local ok, why = process.run("test", "-d", dir)
  if not ok then
    return nil, errors.refused(errors.new { code = "ENOTDIR", errno = 20, op = "manifest",
      path = dir, message = ("%s: no directory%s"):format(dir, why) })
  end
  local c = { files = 0, directories = -1, bytes = 0, bins = {}, depth_counts = {},
    extension_counts = {}, ages = {}, now_s = core.time_ns() // 1000000000 }
  local pipe = assert(io.popen(process.quote("find", dir, "-xdev", "-printf",
    "%y %d %s %T@ %f\\0") .. " 2>/dev/null", "r"))
  read_entries(pipe, function(entry) count(c, entry) end)
  pipe:close()
  return { format = FORMAT, version = VERSION, root = process.absolute(dir),
    taken = os.date "!%Y-%m-%dT%H:%M:%SZ", files = c.files,
    directories = math.max(c.directories, 0), bytes = c.bytes, sizes = sizes_of(c.bins),
    depths = depths_of(c.depth_counts), extensions = extensions_of(c.extension_counts),
    ages = json.object(c.ages) }
end

---Read a manifest that was kept.
---@param path string
---@return brim.Manifest? manifest
---@return brim.Error? err
function M.load(path)
  local file, why, errno = io.open(path)
  if not file then
    return nil, errors.refused(errors.new { code = errno == 2 and "ENOENT" or "EACCES",
      errno = errno, op = "open", path = path, message = why })
  end
  local text = file:read "a"
  file:close()
  local ok, m = pcall(json.decode, text)
  if not ok or type(m) ~= "table" or m.format ~= FORMAT or m.version ~= VERSION then
    return nil, errors.usage("%s is no manifest; 'brim manifest DIR' makes one", path)
  end
  return m
end

---Tell the options of brim.fill.new that make a fileset like the tree: sizes, extensions, depth,
---fan_out, files_per_dir.
---@param m brim.Manifest
---@return table options
function M.fileset(m)
  local sum, files = 0, math.max(m.files, 1)
  for i, n in ipairs(m.depths) do
    sum = sum + (i - 1) * n
  end
  local depth = math.min(math.max(math.floor(sum / files + 0.5), 1), 8)
  local directories = math.max(m.directories, 1)
  local sizes = #m.sizes > 0 and m.sizes or { { from = 0, to = 0, weight = 1 } }
  return {
    sizes = require("brim.dist").histogram(sizes),
    extensions = #m.extensions > 0 and m.extensions or nil,
    depth = depth,
    fan_out = math.max(math.floor(directories ^ (1 / depth) + 0.5), 2),
    files_per_dir = math.max(files // directories, 1),
  }
end

---Describe a manifest for people.
---@param m brim.Manifest
---@return string
function M.text(m)
  local lines = { ("%s: %d files in %d directories, %s"):format(m.root, m.files, m.directories,
    bytes.about(m.bytes)) }
  for _, bin in ipairs(m.sizes) do
    lines[#lines + 1] = ("  %12s .. %-12s %9d  %5.1f %%"):format(bytes.about(bin.from),
      bytes.about(bin.to), bin.weight, 100 * bin.weight / m.files)
  end
  local words = {}
  for i = 1, math.min(#m.extensions, 10) do
    local x = m.extensions[i]
    words[i] = ("%s %d"):format(x.name == "" and "none" or x.name, x.weight)
  end
  lines[#lines + 1] = "extensions: " .. table.concat(words, ", ")
  return table.concat(lines, "\n")
end

return M
