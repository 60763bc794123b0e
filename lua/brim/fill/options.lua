-- brim.fill.options: the options of workloads and phases, and what they are checked by. Called by
-- brim.fill and recipes. Sizes are bytes, durations seconds, fullness 0 to 1.
local bytes = require "brim.bytes"
local dist = require "brim.dist"

local M = {}

local function sizes(v)
  local d, why = dist.check(v)
  return d ~= nil, why
end

---A workload's: brim.fill.new.
M.WORKLOAD = {
  seed = { type = "int", default = 1, doc = "all that is drawn follows from it" },
  sizes = { type = "any", check = sizes,
    doc = "distribution of file sizes; default log_uniform(4k,4m)" },
  manifest = { type = "any", doc = "path of a manifest, or one: sizes, directories, extensions" },
  streams = { type = "int", min = 1, max = 256,
    doc = "trees filled side by side, a thread each; default one for each processor" },
  depth = { type = "int", min = 1, max = 12, doc = "levels of directories; default 2" },
  fan_out = { type = "int", min = 1, max = 1 << 20, doc = "directories in one; default 32" },
  files_per_dir = { type = "int", min = 1, max = 1 << 24,
    doc = "files in each lowest directory; default 1000" },
  extensions = { type = "table", doc = "list of names, or { name = \".jpg\", weight = 3 }" },
  content = { type = "enum", values = { "random", "zeros", "compressible" }, default = "random",
    doc = "what files hold" },
  compress_to = { type = "number", min = 0, max = 1, default = 0.5,
    doc = "of compressible content: the part that is left of it" },
}

---How it is carried out: workload:run.
M.RUN = {
  timeline = { type = "path", doc = "file of the timeline, JSON lines; default none" },
  probes = { type = "table", doc = "functions by name, returning numbers: further columns" },
  sample_s = { type = "number", default = 1, min = 0.01, doc = "time between samples" },
  checkpoint_s = { type = "number", default = 15, min = 0.1,
    doc = "time between synchronisations while filling" },
  stall_s = { type = "number", default = 5, min = 0.01, doc = "waiting this long is a stall" },
  mode = { type = "enum", values = { "auto", "plain", "ring" }, default = "auto",
    doc = "how files are written" },
  queue_depth = { type = "int", min = 1, max = 1024, doc = "writes in flight of each stream" },
  direct = { type = "bool", doc = "past the page cache; default: where it pays" },
  fsync = { type = "any", default = "never", doc = "\"never\", \"file\", or n: each n-th file",
    check = function(v)
      return v == "never" or v == "file" or math.type(v) == "integer" and v > 0,
        "expected \"never\", \"file\" or a number of files"
    end },
  trace_path = { type = "path", doc = "record what is done" },
  trace_format = { type = "enum", values = { "iolog2", "iolog3", "jsonl" }, default = "iolog3" },
  progress = { type = "function", doc = "called between steps; returning false stops cleanly" },
  progress_interval_s = { type = "number", default = 1, min = 0, doc = "least time between calls" },
  margin = { type = "bytes",
    doc = "free space that is never filled; default 0, of a system's filesystem 5 %" },
  yes_really = { type = "bool", default = false,
    doc = "fill even the filesystem that holds / or the home directory" },
}

---What churn does: workload:churn. Weights are relative.
M.CHURN = {
  seconds = { type = "number", min = 0, doc = "for so long" },
  bytes = { type = "bytes", doc = "until so much was written" },
  turnovers = { type = "number", min = 0, doc = "until the files' bytes were written so often" },
  band = { type = "number", default = 0.005, min = 0.0001, max = 0.5,
    doc = "how far the fullness may be off" },
  at = { type = "number", min = 0, max = 1, doc = "fullness to hold; default: as it is" },
  feedback_s = { type = "number", default = 5, min = 0.05, doc = "time between corrections" },
  create = { type = "int", default = 30, min = 0, max = 1000000, doc = "weight" },
  delete = { type = "int", default = 30, min = 0, max = 1000000, doc = "weight" },
  overwrite = { type = "int", default = 10, min = 0, max = 1000000, doc = "weight: in place" },
  -- XFS keeps space preallocated behind files that are appended to again, for minutes, and then
  -- frees it all at once, which no band survives: asked for, not the default. A file that cannot be
  -- cut any shorter is appended to.
  append = { type = "int", default = 0, min = 0, max = 1000000, doc = "weight" },
  truncate = { type = "int", default = 0, min = 0, max = 1000000, doc = "weight" },
  replace = { type = "int", default = 15, min = 0, max = 1000000,
    doc = "weight: a new file renamed over the old, as rsync does" },
}

---What a fill phase goes to: workload:fill. One of them.
M.TARGET = {
  to = { type = "any", doc = "\"97%\", a fullness below 1, \"enospc\" or \"full\"" },
  free = { type = "bytes", doc = "until so much is free" },
  files = { type = "int", min = 1, doc = "so many files in all" },
  bytes = { type = "bytes", doc = "files of so much in all" },
  max_file_bytes = { type = "bytes", doc = "cap of file sizes" },
}

-- "97%", 0.97.
local function fraction(v)
  local n = type(v) == "string" and tonumber(v:match "^([%d.]+)%s*%%$")
  if n then
    n = n / 100
  elseif math.type(v) == "float" then
    n = v
  end
  return n and n > 0 and n < 1 and n or nil
end

---Read what a fill phase goes to.
---@param v string|number|table "97%", 0.97, "enospc", "full", { free = "1g" }, { files = n }, ...
---@return { kind: string, value?: number, name: string, max_file_bytes?: integer }? target
---@return string? why
function M.target(v)
  local o = v
  if type(v) ~= "table" then
    o = { to = v }
  end
  local checked, why = require("brim.opts").try(o, M.TARGET)
  if not checked then
    return nil, why
  end
  local given = 0
  for _, name in ipairs { "to", "free", "files", "bytes" } do
    given = given + (checked[name] ~= nil and 1 or 0)
  end
  if given ~= 1 then
    return nil, "give one of: a fullness (\"97%\"), \"enospc\", free =, files =, bytes ="
  end
  local target = { max_file_bytes = checked.max_file_bytes }
  local part = fraction(checked.to)
  if part then
    target.kind, target.value = "fullness", part
    target.name = ("fill to %.4g %%"):format(100 * part)
  elseif checked.to == "enospc" or checked.to == "full" then
    target.kind, target.name = "full", "fill to ENOSPC"
  elseif checked.to ~= nil then
    return nil, ("'%s' is no fullness: write \"97%%\", or \"enospc\""):format(tostring(checked.to))
  elseif checked.free then
    target.kind, target.value = "free", checked.free
    target.name = ("fill to %s free"):format(bytes.about(checked.free))
  elseif checked.files then
    target.kind, target.value = "files", checked.files
    target.name = ("fill to %d files"):format(checked.files)
  else
    target.kind, target.value = "bytes", checked.bytes
    target.name = ("fill to %s of files"):format(bytes.about(checked.bytes))
  end
  return target
end

-- { ".jpg", ".txt" } or { { name = ".jpg", weight = 3 } }.
local function extensions(list)
  local out = {}
  for i, x in ipairs(list or {}) do
    local name, weight = x, 1
    if type(x) == "table" then
      name, weight = x.name, x.weight
    end
    out[i] = { name = name, weight = weight }
  end
  return #out > 0 and out or nil
end

---Make the options of core.fileset_new of a workload's.
---@param o table checked
---@return table fileset plain data, as kept in the log
function M.fileset(o)
  local sizes_of = o.sizes and dist.check(o.sizes) or dist.log_uniform("4k", "4m")
  local d = {}
  for k, v in pairs(sizes_of) do
    d[k] = v
  end
  return { seed = o.seed, streams = o.streams, sizes = d, depth = o.depth or 2,
    fan_out = o.fan_out or 32, files_per_dir = o.files_per_dir or 1000,
    extensions = extensions(o.extensions), content = o.content,
    compress_ppm = o.content == "compressible" and math.floor(o.compress_to * 1e6 + 0.5) or nil }
end

return M
