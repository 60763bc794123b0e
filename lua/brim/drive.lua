-- brim.drive: timing models of drives (an ideal one, constant rates, a disk, a drive-managed SMR
-- disk), replays of traces through them, and what the shim needs that makes any program's file as
-- slow as such a drive. Called by scripts and the recipe drive-replay. Bytes; ns, s where said.
local bytes = require "brim.bytes"
local core = require "brim.core"
local errors = require "brim.error"
local opts = require "brim.opts"
local presets = require "brim.drive.presets"
local process = require "brim.process"
local scale = require "brim.drive.scale"

local M = {
  presets = presets,
  scale = scale.scale,
}

---A drive's model with its state.
---@class brim.Drive
---@field params table
---@field notes string[] ratios that scaling could not keep
local Drive = {}
Drive.__index = Drive
Drive.__name = "brim.drive"

local function preset_names()
  local list = {}
  for name in pairs(presets) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

M.NAMES = preset_names()

local SCHEMA = {
  preset = { type = "enum", values = M.NAMES, doc = "a drive to begin with" },
  model = { type = "enum", values = { "ideal", "constant", "hdd", "smr" }, doc = "kind of drive" },
  scale_bytes = { type = "bytes", min = 1 << 20, doc = "size of a replica with the same ratios" },
}

for _, name in ipairs(core.drive_params()) do
  SCHEMA[name] = SCHEMA[name] or { min = 0, type = name:find "_bytes" and "bytes" or "int",
    doc = "see struct brim_drive_params" }
end

---@class brim.DriveOpts
---@field preset? string one of brim.drive.NAMES; what else is given replaces its parameters
---@field model? "ideal"|"constant"|"hdd"|"smr"
---@field scale_bytes? integer|string make a replica of that size

---Make a drive; `brim.drive { preset = "archive-8tb", scale_bytes = "8g" }` is the same. All fields
---of struct brim_drive_params (brim_drive.h) are options. Raises where there is no such drive.
---@param o? brim.DriveOpts
---@return brim.Drive
function M.new(o)
  o = opts.check(o, SCHEMA, "brim.drive")
  local params, notes = {}, {}
  for name, v in pairs(o.preset and presets[o.preset].params or { model = "ideal" }) do
    params[name] = v
  end
  for name, v in pairs(o) do
    params[name] = v
  end
  params.preset, params.scale_bytes = nil, nil
  params.size_bytes = params.size_bytes or math.maxinteger
  if o.scale_bytes then
    params, notes = scale.scale(params, o.scale_bytes)
  end
  local self = setmetatable({ params = params, notes = notes, preset = o.preset }, Drive)
  local handle, err = core.drive_new(self:spec())
  if not handle then
    error("brim.drive: " .. err.message, 2)
  end
  self.handle = handle
  return self
end

---Write the parameters as one word, as BRIM_DRIVE and the nbdkit plugin's model= take it.
---@return string
function Drive:spec()
  local words = {}
  for name, v in pairs(self.params) do
    if name ~= "model" then
      words[#words + 1] = ("%s=%d"):format(name, v)
    end
  end
  table.sort(words)
  table.insert(words, 1, self.params.model)
  return table.concat(words, ",")
end

---Say what it is like, where that comes from, and what a replica could not keep; tostring gives the
---same.
---@return string
function Drive:explain()
  local from, lines = presets[self.preset], {}
  lines[1] = from and ("%s: %s"):format(self.preset, from.doc) or "drive: " .. self.params.model
  if from then
    lines[#lines + 1] = "  source: " .. from.source
    lines[#lines + 1] = "  assumed: " .. from.assumed
  end
  lines[#lines + 1] = "  size: " .. bytes.format(self.params.size_bytes)
  for _, note in ipairs(self.notes) do
    lines[#lines + 1] = "  not kept: " .. note
  end
  lines[#lines + 1] = "  " .. self:spec()
  return table.concat(lines, "\n") .. "\n"
end

Drive.__tostring = Drive.explain

---Do one command: when it is finished. Commands are served in the order of the calls.
---@param op "read"|"write"|"trim"|"flush"
---@param off_bytes integer|string
---@param len_bytes integer|string
---@param at_ns integer
---@return integer? done_ns
---@return brim.Error? err
function Drive:io(op, off_bytes, len_bytes, at_ns)
  return self.handle:io(op, off_bytes, len_bytes, at_ns)
end

---Tell what it did since it was made: I/Os, runs, latencies, where the time went, the cache.
---@return table stats the fields of struct brim_drive_stats
function Drive:stats()
  return self.handle:stats()
end

-- ------------------------------------------------------------------------- replay

---@class brim.DriveReplay
---@field elapsed_s number what the drive would have taken
---@field recorded_s number what it took when it was recorded
---@field bytes_per_s number read and written
---@field bins? table[] { t_s, ios, read_bytes, write_bytes, bytes_per_s } by interval
local Replay = {}
Replay.__index = Replay
Replay.__name = "brim.drive_replay"

function Replay:__tostring()
  local st = self.stats
  return ("%d I/Os, %s: %.3f s (recorded: %.3f s), %.1f MB/s; %d runs of reads, %d of writes; "
    .. "%d bands cleaned\n"):format(self.events, bytes.format(self.bytes), self.elapsed_s,
    self.recorded_s, self.bytes_per_s / 1e6, st.runs.read, st.runs.write, st.cleaned_bands)
end

local REPLAY_SCHEMA = {
  open_loop = { type = "bool", default = false, doc = "keep the recorded times of arrival" },
  wrap = { type = "bool", default = false, doc = "offsets past the end: modulo the size" },
  interval_s = { type = "number", min = 1e-6, max = 1e6, doc = "rates by intervals" },
  out = { type = "path", doc = "block trace to write, with this drive's times" },
}

local function bins_of(r)
  for k, bin in ipairs(r.bins) do
    bin.t_s = (k - 1) * r.interval_ns / 1e9
    bin.bytes_per_s = (bin.read_bytes + bin.write_bytes) / (r.interval_ns / 1e9)
  end
  return r.bins
end

---Send a trace through the drive without sleeping: a block trace, or any that brim.trace reads.
---Each stream waits for its I/O and then as long as it did when it was recorded, unless open_loop
---is set. The drive goes on where the last replay left it; statistics are those of all.
---@param path string
---@param o? { open_loop?: boolean, wrap?: boolean, interval_s?: number, out?: string }
---@return brim.DriveReplay? result
---@return brim.Error? err
function Drive:replay(path, o)
  o = opts.check(o, REPLAY_SCHEMA, "drive:replay")
  local before = self:stats()
  local r, err = self.handle:replay(path, { is_open_loop = o.open_loop, is_wrapped = o.wrap,
    at_ns = before.end_ns, interval_ns = o.interval_s and math.max(1, o.interval_s * 1e9 // 1 | 0),
    out = o.out })
  if not r then
    return nil, err
  end
  local st = self:stats()
  local moved = st.bytes.read + st.bytes.write - before.bytes.read - before.bytes.write
  local elapsed_s = r.elapsed_ns / 1e9
  return setmetatable({ events = r.events, skipped = r.skipped, elapsed_s = elapsed_s,
    recorded_s = r.recorded_ns / 1e9, bytes = moved,
    bytes_per_s = elapsed_s > 0 and moved / elapsed_s or 0, bins = r.bins and bins_of(r),
    interval_s = r.bins and r.interval_ns / 1e9, stats = st }, Replay)
end

---Send a trace through a new drive: Drive:replay with the options of both.
---@param path string
---@param o? table of brim.drive and drive:replay
---@return brim.DriveReplay? result
---@return brim.Error? err
function M.replay(path, o)
  local of_drive, of_replay = {}, {}
  for name, v in pairs(o or {}) do
    (REPLAY_SCHEMA[name] and of_replay or of_drive)[name] = v
  end
  return M.new(of_drive):replay(path, of_replay)
end

---List the first events of a block trace: { op, stream, at_ns, took_ns, off_bytes, len_bytes }.
---@param path string
---@param most? integer default 2^20
---@return table[]? events
---@return integer|brim.Error size_bytes of the drive; 0 where the trace does not say
function M.events(path, most)
  return core.drive_events(path, most or 1 << 20)
end

-- --------------------------------------------------------------------------- shim

local SHIM <const> = "brim-drive-shim.so"

-- The executable and the module each know where they are, built or installed.
local function shim_places()
  local exe = process.executable()
  local module = package.searchpath("brim.core", package.cpath)
  local list = { os.getenv "BRIM_DRIVE_SHIM" }
  for _, dir in ipairs { exe and exe:match "^(.*)/[^/]*$" or ".",
    module and module:match "^(.*)/[^/]*$" .. "/../.." } do
    list[#list + 1] = ("%s/%s"):format(dir, SHIM)
    list[#list + 1] = ("%s/../lib/brim/%s"):format(dir, SHIM)
    list[#list + 1] = ("%s/../../brim/%s"):format(dir, SHIM)
  end
  return list
end

---Find the shim: BRIM_DRIVE_SHIM, beside the executable, or where it is installed.
---@return string? path
---@return brim.Error? err
function M.shim()
  for _, path in ipairs(shim_places()) do
    local file <close> = io.open(path)
    if file then
      return process.absolute(path)
    end
  end
  return nil, errors.skip("%s is nowhere; BRIM_DRIVE_SHIM may name it", SHIM)
end

local SHIM_SCHEMA = {
  trace = { type = "path", doc = "block trace to write" },
  stats = { type = "path", doc = "statistics at the end, as JSON" },
  speed = { type = "number", default = 1, min = 1e-6, max = 1e6, doc = "of the drive's clock" },
}

---Tell with which environment a program must be started so that a file is as slow as this drive:
---words for env(1), LD_PRELOAD among them.
---@param path string the file, which exists
---@param o? { trace?: string, stats?: string, speed?: number }
---@return string[]? words
---@return brim.Error? err
function Drive:environment(path, o)
  o = opts.check(o, SHIM_SCHEMA, "drive:environment")
  local shim, err = M.shim()
  if not shim then
    return nil, err
  end
  local words = { "LD_PRELOAD=" .. shim, "BRIM_DRIVE_FILE=" .. path, "BRIM_DRIVE=" .. self:spec(),
    ("BRIM_DRIVE_SPEED=%.17g"):format(o.speed) }
  words[#words + 1] = o.trace and "BRIM_DRIVE_TRACE=" .. o.trace
  words[#words + 1] = o.stats and "BRIM_DRIVE_STATS=" .. o.stats
  return words
end

-- brim.drive { ... } is brim.drive.new { ... }.
return setmetatable(M, {
  __call = function(_, o)
    return M.new(o)
  end,
})
