-- brim.f2fs.explain: what a knob set makes F2FS do: statements about the GC thread, the allocator,
-- checkpoints and updates in place at each fullness, with the rule of the kernel each follows from
-- and numbers a measurement can be compared with. Called by the recipe f2fs-explain, by experiments
-- and reports. Pure but for `mounted`. Fullness is a fraction of the user's blocks.
local data = require "brim.knobs.data"
local errors = require "brim.error"
local f2fs_knobs = require "brim.knobs.f2fs"
local gc = require "brim.f2fs.explain.gc"
local opts = require "brim.opts"
local presets = require "brim.knobs.presets"
local rules = require "brim.f2fs.explain.rules"

local M = { gc = gc }

---@class brim.f2fs.ExplainOpts
---@field kernel string as uname -r has it: "6.1"
---@field geometry table main_segments, section_segments, reserved_segments,
--- overprovision_segments, user_blocks: as brim.f2fs.geometry gives them
---@field knobs? table<string, integer|string> beside the defaults
---@field base? table<string, integer|string> what holds instead of defaults, as `mounted` reads it
---@field preset? string whose knobs come first
---@field fullness? number[] fractions, default 0.5, 0.8, 0.9, 0.95, 0.99
---@field dirty_segments? integer to tell how long cleaning them takes
---@field wait_ms? integer what the GC thread slept when the knobs were set; default 30000, as at
--- mount

---@class brim.f2fs.Statement
---@field kind string "gc_thread", "urgent", "gc_idle", "ssr", "foreground_gc", "lfs", "alloc_mode",
--- "checkpoint", "ipu", "dead_knob", "small_volume"
---@field severity "info"|"note"|"warning"
---@field text string
---@field rule string function and file of the kernel
---@field figures table<string, any>

---@class brim.f2fs.Explanation
---@field kernel string
---@field knobs table<string, integer|string> all that hold, defaults included
---@field set table<string, integer|string> those given
---@field geometry table
---@field is_small boolean
---@field statements brim.f2fs.Statement[]
---@field text string the statements for people

local OPTS <const> = {
  kernel = { type = "string", required = true, doc = "version, as uname -r has it" },
  geometry = { type = "table", required = true, doc = "as brim.f2fs.geometry gives it" },
  knobs = { type = "table", doc = "beside the defaults" },
  base = { type = "table", doc = "what holds instead of defaults" },
  preset = { type = "string", doc = "whose knobs come first" },
  fullness = { type = "table", default = { 0.5, 0.8, 0.9, 0.95, 0.99 }, doc = "fractions" },
  dirty_segments = { type = "int", min = 0, doc = "whose cleaning is to be timed" },
  wait_ms = { type = "int", min = 0, default = 30000, doc = "sleep when the knobs were set" },
}

local NEEDED <const> = { "main_segments", "section_segments", "reserved_segments",
  "overprovision_segments", "user_blocks" }

local function check_fullness(list)
  for _, f in ipairs(list) do
    if type(f) ~= "number" or f < 0 or f > 1 then
      return nil, errors.usage("fullness %s is no fraction of 0 to 1", tostring(f))
    end
  end
  return true
end

-- What was given, by the kernel's leave.
local function given(o)
  local set = {}
  local preset = o.preset and presets.LIST[o.preset]
  if o.preset and not preset then
    return nil, errors.usage("unknown preset '%s'%s", o.preset, opts.suggest(o.preset,
      presets.names()))
  end
  for _, from in ipairs { preset and preset.knobs or {}, o.knobs or {} } do
    for name, v in pairs(from) do
      set[name] = v
    end
  end
  return data.check_set("f2fs", set, o.kernel, o.geometry)
end

-- All that hold. What is not as by default counts as given, too.
local function complete(o, set)
  local base = o.base or {}
  local all = data.defaults("f2fs", o.geometry, o.kernel, { mode = set.mode or base.mode })
  for name, v in pairs(base) do
    if set[name] == nil and all[name] ~= nil and all[name] ~= v then
      set[name] = v
    end
    all[name] = v
  end
  for name, v in pairs(set) do
    all[name] = v
  end
  return all
end

local MARKS <const> = { info = " ", note = "*", warning = "!" }

local function text_of(statements)
  local lines = {}
  for _, s in ipairs(statements) do
    lines[#lines + 1] = ("%s %-14s %s  [%s]"):format(MARKS[s.severity], s.kind, s.text, s.rule)
  end
  return table.concat(lines, "\n")
end

---Explain a knob set.
---@param o brim.f2fs.ExplainOpts
---@return brim.f2fs.Explanation? explanation
---@return brim.Error? err a wrong knob or value, or one the kernel does not have
function M.explain(o)
  o = opts.check(o, OPTS, "brim.f2fs.explain")
  for _, name in ipairs(NEEDED) do
    if math.type(o.geometry[name]) ~= "integer" then
      return nil, errors.usage("the geometry has no %s", name)
    end
  end
  local ok, why = check_fullness(o.fullness)
  if not ok then
    return nil, why
  end
  local set, err = given(o)
  if not set then
    return nil, err
  end
  local knobs = complete(o, set)
  local c = { kernel = o.kernel, geometry = o.geometry, set = set, knobs = knobs,
    fullness = o.fullness, dirty_segments = o.dirty_segments, wait_ms = o.wait_ms,
    is_small = f2fs_knobs.is_small(o.geometry), statements = {} }
  local function say(kind, severity, rule, figures, fmt, ...)
    c.statements[#c.statements + 1] = { kind = kind, severity = severity, rule = rule,
      figures = figures, text = fmt:format(...) }
  end
  for _, name in ipairs(rules.ORDER) do
    rules[name](c, say)
  end
  c.text = text_of(c.statements)
  return c
end

-- Main area and sections, from what /proc counts.
local function count(path, pattern)
  local file <close> = io.open(path)
  local n = 0
  for line in file and file:lines() or function() end do
    for _ in line:gmatch(pattern) do
      n = n + 1
    end
  end
  return n
end

---Read the geometry and the knobs of a mounted F2FS, and its dirty segments.
---@param path string
---@param o? brim.KnobsOpts where sysfs and procfs are
---@return table? o for explain: kernel, geometry, base, dirty_segments
---@return brim.Error? err
function M.mounted(path, o)
  local k <close>, err = require("brim.knobs").open(path, o)
  if not k then
    return nil, err
  elseif k.target.filesystem ~= "f2fs" then
    return nil, errors.usage("%s is %s, no F2FS", path, k.target.filesystem)
  end
  local proc = ("%s/fs/f2fs/%s"):format(o and o.proc or "/proc",
    k.target.places.fs:match "[^/]+$")
  local main = count(proc .. "/segment_info", "%d+|%d+")
  local sections = count(proc .. "/victim_bits", "%f[%d][01]%f[%s\0]")
  local function number(name)
    local file <close> = io.open(k.target.places.fs .. "/" .. name)
    return file and file:read "n"
  end
  local ovp = number "ovp_segments"
  if main == 0 or not ovp then
    return nil, errors.new { code = "ENOENT", op = "explain", path = proc,
      message = ("%s: neither segments nor overprovision are told here"):format(proc) }
  end
  local knobs = k:snapshot()
  local section = main // math.max(sections > 0 and sections <= main and sections or main, 1)
  -- Before 6.12 the reserve is not told; min_ssr_sections has it until it is set.
  local reserved = number "reserved_segments" or (knobs.min_ssr_sections or 0) * section
  local set = {}
  for name, v in pairs(knobs) do
    set[name] = not name:find "^queue" and name ~= "reserved_segments" and v or nil
  end
  for _, name in ipairs { "gc_idle", "gc_urgent" } do
    local mode = set[name]
    set[name] = mode and (name == "gc_idle" and (mode <= 3 and mode or 0)
      or name == "gc_urgent" and (mode >= 4 and mode - 3 or 0)) or nil
  end
  return { kernel = k.kernel, base = set, dirty_segments = math.tointeger(number
    "dirty_segments"), geometry = { main_segments = main, section_segments = section,
    reserved_segments = reserved, overprovision_segments = math.tointeger(ovp),
    user_blocks = (main - math.tointeger(ovp)) * 512 } }
end

return setmetatable(M, { __call = function(_, o) return M.explain(o) end })
