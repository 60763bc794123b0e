-- brim.dist: distributions of file sizes, as values: data that the core draws from, with their text
-- form for command lines ("log_uniform(4k,4m)"). Called by brim.fill and recipes. Sizes are bytes.
local bytes = require "brim.bytes"
local core = require "brim.core"
local opts = require "brim.opts"

local M = {}

-- How each kind is written: its arguments in order; those with a default may be left out.
local KINDS <const> = {
  fixed = { { "min_bytes", "bytes" } },
  uniform = { { "min_bytes", "bytes" }, { "max_bytes", "bytes" } },
  log_uniform = { { "min_bytes", "bytes" }, { "max_bytes", "bytes" } },
  log_normal = { { "a", "bytes" }, { "b", "number" }, { "min_bytes", "bytes", 0 },
    { "max_bytes", "bytes", 1 << 40 } },
  pareto = { { "min_bytes", "bytes" }, { "a", "number" }, { "max_bytes", "bytes", 1 << 40 } },
}

-- What people call the arguments, for messages.
local ARGUMENTS <const> = {
  fixed = "SIZE", uniform = "FROM,TO", log_uniform = "FROM,TO",
  log_normal = "MEDIAN,SIGMA[,FROM,TO]", pareto = "FROM,SHAPE[,TO]",
  histogram = "FROM-TO:WEIGHT,...", manifest = "FILE",
}

local dist_mt = { __name = "brim.dist" }

local function argument_text(d, argument)
  local v = d[argument[1]]
  if argument[2] == "bytes" and math.type(v) == "integer" then
    return (bytes.format(v):gsub(" ?([KMGTPE])iB$", function(s) return s:lower() end))
  end
  return ("%.14g"):format(v)
end

local function bin_text(bin)
  local function size(n)
    return argument_text({ n = n }, { "n", "bytes" })
  end
  local range = bin.from == bin.to and size(bin.from) or size(bin.from) .. "-" .. size(bin.to)
  return ("%s:%.14g"):format(range, bin.weight)
end

function dist_mt:__tostring()
  local words = {}
  for i, bin in ipairs(self.bins or {}) do
    words[i] = bin_text(bin)
  end
  for i, argument in ipairs(KINDS[self.kind] or {}) do
    words[i] = argument_text(self, argument)
  end
  return ("%s(%s)"):format(self.kind, table.concat(words, ","))
end

---Is it a distribution?
---@param v any
---@return boolean
function M.is(v)
  return getmetatable(v) == dist_mt
end

-- The distribution, or nil and what is wrong with it.
local function try(d)
  local ok, err = core.dist_check(d)
  if not ok then
    return nil, err.message
  end
  return setmetatable(d, dist_mt)
end

local function must(d, level)
  local checked, why = try(d)
  if not checked then
    error("brim.dist." .. d.kind .. ": " .. why, level + 1)
  end
  return checked
end

local function size(v, who, level)
  local n, why = bytes.check(v)
  if not n then
    error(("brim.dist.%s: %s"):format(who, why), level + 1)
  end
  return n
end

local function number(v, who, level)
  if type(v) ~= "number" then
    error(("brim.dist.%s: expected a number, got a %s"):format(who, type(v)), level + 1)
  end
  return v
end

---All files of one size.
---@param size_bytes integer|string
---@return brim.Dist
function M.fixed(size_bytes)
  return must({ kind = "fixed", min_bytes = size(size_bytes, "fixed", 2) }, 2)
end

---Every size from one to the other is as likely.
---@param min_bytes integer|string
---@param max_bytes integer|string
---@return brim.Dist
function M.uniform(min_bytes, max_bytes)
  return must({ kind = "uniform", min_bytes = size(min_bytes, "uniform", 2),
    max_bytes = size(max_bytes, "uniform", 2) }, 2)
end

---Every doubling from one to the other is as likely: many small files, the space in large ones.
---@param min_bytes integer|string
---@param max_bytes integer|string
---@return brim.Dist
function M.log_uniform(min_bytes, max_bytes)
  return must({ kind = "log_uniform", min_bytes = size(min_bytes, "log_uniform", 2),
    max_bytes = size(max_bytes, "log_uniform", 2) }, 2)
end

---The logarithm of the size is normally distributed, as in most home directories.
---@param median_bytes integer|string
---@param sigma number of the natural logarithm: 2 means a factor of 7.4
---@param min_bytes? integer|string default 0
---@param max_bytes? integer|string default 1 TiB
---@return brim.Dist
function M.log_normal(median_bytes, sigma, min_bytes, max_bytes)
  return must({ kind = "log_normal", a = size(median_bytes, "log_normal", 2),
    b = number(sigma, "log_normal", 2), min_bytes = size(min_bytes or 0, "log_normal", 2),
    max_bytes = size(max_bytes or 1 << 40, "log_normal", 2) }, 2)
end

---A power law: of n times the size there are n ^ -shape times as many.
---@param min_bytes integer|string
---@param shape number 1.1 is a heavy tail, 3 a light one
---@param max_bytes? integer|string default 1 TiB
---@return brim.Dist
function M.pareto(min_bytes, shape, max_bytes)
  return must({ kind = "pareto", min_bytes = size(min_bytes, "pareto", 2),
    a = number(shape, "pareto", 2), max_bytes = size(max_bytes or 1 << 40, "pareto", 2) }, 2)
end

---An empirical histogram: bins { from, to, weight } or { from =, to =, weight = }, both ends
---included; within one, every doubling is as likely.
---@param bins table[]
---@return brim.Dist
function M.histogram(bins)
  local list = {}
  for i, bin in ipairs(bins) do
    local from = size(bin.from or bin[1], "histogram", 2)
    list[i] = { from = from, to = size(bin.to or bin[2] or from, "histogram", 2),
      weight = number(bin.weight or bin[3], "histogram", 2) }
  end
  return must({ kind = "histogram", bins = list }, 2)
end

---The sizes of a manifest, which 'brim manifest DIR' took from a real tree.
---@param manifest string|table a file's path, or what brim.manifest gives
---@return brim.Dist? dist
---@return brim.Error? err
function M.manifest(manifest)
  local m, err = manifest, nil
  if type(manifest) == "string" then
    m, err = require("brim.manifest").load(manifest)
  end
  if not m then
    return nil, err
  end
  return M.histogram(m.sizes)
end

-- ------------------------------------------------------------------- text form

local function split(text)
  local words = {}
  for word in (text .. ","):gmatch "([^,]*)," do
    words[#words + 1] = word:match "^%s*(.-)%s*$"
  end
  return words
end

local function kind_names()
  local names = {}
  for name in pairs(ARGUMENTS) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

local function usage(kind)
  return ("write %s(%s)"):format(kind, ARGUMENTS[kind])
end

local function read_argument(word, argument, kind)
  if word == nil or word == "" then
    if argument[3] then
      return argument[3]
    end
    return nil, usage(kind)
  elseif argument[2] == "number" then
    local n = word:match "^[%d.]+$" and tonumber(word)
    return n, ("'%s' is no number: %s"):format(word, usage(kind))
  end
  local n, why = bytes.check(word)
  return n, why and ("%s: %s"):format(usage(kind), why)
end

local function parse_plain(kind, words)
  local d = { kind = kind }
  if #words > #KINDS[kind] then
    return nil, usage(kind)
  end
  for i, argument in ipairs(KINDS[kind]) do
    local v, why = read_argument(words[i], argument, kind)
    if v == nil then
      return nil, why
    end
    d[argument[1]] = v
  end
  return try(d)
end

-- "4k:50", "16k-64k:30".
local function parse_bin(word)
  local from, weight = word:match "^([^:]+):([%d.]+)$"
  local to
  if from and from:find "-" then
    from, to = from:match "^([^-]+)-([^-]+)$"
  end
  weight = tonumber(weight)
  if not from or not weight then
    return nil, ("bin '%s' is not FROM-TO:WEIGHT"):format(word)
  end
  local first, why = bytes.check(from)
  local last, reason = bytes.check(to or from)
  if not first or not last then
    return nil, ("bin '%s': %s"):format(word, why or reason)
  end
  return { from = first, to = last, weight = weight }
end

local function parse_histogram(words)
  local bins = {}
  for i, word in ipairs(words) do
    local bin, why = parse_bin(word)
    if not bin then
      return nil, why
    end
    bins[i] = bin
  end
  return try { kind = "histogram", bins = bins }
end

local function parse_manifest(rest)
  local d, err = M.manifest(rest)
  return d, err and err.message
end

---Read the text form: "4k", "fixed(4k)", "uniform(1k,1m)", "log_uniform(4k,4m)",
---"log_normal(16k,2)", "pareto(4k,1.2,1g)", "histogram(4k:50,16k-64k:30)", "manifest(FILE)".
---@param text string
---@return brim.Dist? dist
---@return string? why in words for people
function M.parse(text)
  local kind, rest = text:match "^%s*([%a_-]+)%s*%((.*)%)%s*$"
  if not kind then
    local n, why = bytes.check(text)
    if n then
      return try { kind = "fixed", min_bytes = n }
    end
    if text:find "[%a_]+%(" then
      return nil, ("'%s' lacks a closing parenthesis"):format(text)
    end
    return nil, ("'%s' is neither a size (%s) nor a distribution like log_uniform(4k,4m)"):format(
      text, why)
  end
  kind = kind:gsub("-", "_"):lower()
  if kind == "manifest" then
    return parse_manifest(rest)
  elseif kind == "histogram" then
    return parse_histogram(split(rest))
  elseif not KINDS[kind] then
    return nil, ("there is no distribution '%s'%s; there are %s"):format(kind,
      opts.suggest(kind, kind_names()), table.concat(kind_names(), ", "))
  end
  return parse_plain(kind, split(rest))
end

---Take a distribution, its text form, or a size for one of that size alone; for options.
---@param v any
---@return brim.Dist? dist
---@return string? why
function M.check(v)
  if M.is(v) then
    return v
  elseif type(v) == "string" then
    return M.parse(v)
  elseif math.type(v) == "integer" then
    return try { kind = "fixed", min_bytes = v }
  elseif type(v) == "table" and v.kind then
    local ok, d, why = pcall(try, v)
    return ok and d or nil, why or tostring(d)
  end
  return nil, ("expected a distribution like brim.dist.log_uniform(\"4k\", \"4m\"), got a %s")
    :format(type(v))
end

---Tell the expected size, within 1 %.
---@param d brim.Dist
---@return number mean_bytes
function M.mean(d)
  return core.dist_mean(d)
end

---Tell the largest size there is.
---@param d brim.Dist
---@return integer max_bytes
function M.largest(d)
  local largest = d.max_bytes or d.min_bytes or 0
  for _, bin in ipairs(d.bins or {}) do
    largest = math.max(largest, bin.to)
  end
  return largest
end

return M
