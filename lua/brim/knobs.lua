-- brim.knobs: the kernel's tunables of a mounted filesystem and of the device under it: read by
-- name, checked against what is known of them, set, read back, and brought back as they were: at
-- close, at the end of the process, after an error, SIGINT or SIGTERM, and by brim knobs --restore
-- after SIGKILL. Units are the kernel's (brim.knobs.f2fs has them).
local core = require "brim.core"
local data = require "brim.knobs.data"
local errors = require "brim.error"
local file = require "brim.knobs.file"
local opts = require "brim.opts"
local presets = require "brim.knobs.presets"
local process = require "brim.process"
local provenance = require "brim.timeline.provenance"
local state = require "brim.knobs.state"

local M = {}

---@class brim.Knobs
---@field target brim.KnobTarget
---@field kernel string
local Knobs = {}
Knobs.__index, Knobs.__name = Knobs, "brim.knobs"

---@class brim.KnobsOpts
---@field sysfs? string instead of /sys
---@field proc? string instead of /proc
---@field mountinfo? string instead of /proc/self/mountinfo
---@field mount_program? string that remounts, default mount
---@field kernel? string instead of the running one
---@field geometry? table for limits that depend on it: section_segments
---@field keep? boolean what is set stays set; nothing is noted or brought back
---@field state_dir? string where what was before is noted

local OPEN <const> = {
  sysfs = { type = "path", default = "/sys", doc = "where sysfs is" },
  proc = { type = "path", default = "/proc", doc = "where procfs is" },
  mountinfo = { type = "path", default = "/proc/self/mountinfo", doc = "what is mounted" },
  mount_program = { type = "path", default = "mount", doc = "remounts" },
  kernel = { type = "string", doc = "its version; default: the running one's" },
  geometry = { type = "table", doc = "for limits that depend on it" },
  keep = { type = "bool", default = false, doc = "what is set stays set" },
  state_dir = { type = "path", doc = "where what was before is noted" },
}

-- Handles that have something to bring back: while there are some, SIGTERM is heeded.
local held = 0

local function hold(k, on)
  if on ~= k.is_held then
    k.is_held = on
    held = held + (on and 1 or -1)
    core.heed_sigterm(held > 0)
  end
end

local function slurp(path)
  local f <close> = io.open(path)
  return f and f:read "a"
end

-- The device's name in sysfs: of /dev/mapper/x that is dm-N.
local function device_name(m, sysfs)
  local link = ("%s/dev/block/%s"):format(sysfs, m.dev)
  local ok, target = process.run("readlink", "-f", link)
  local linked = ok and target:match "([^/]+)$"
  if linked and linked ~= m.dev then
    return linked
  end
  local _, resolved = process.run("readlink", "-f", m.source)
  return (resolved ~= "" and resolved or m.source):match "([^/]+)$"
end

local function locate(path, o)
  local text = slurp(o.mountinfo)
  local m = text and provenance.mount_in(text, process.absolute(path))
  if not m then
    return nil, errors.usage("%s: no mount leads to it", path)
  end
  local name = device_name(m, o.sysfs)
  local block = ("%s/class/block/%s"):format(o.sysfs, name)
  local queue = block .. "/queue"
  -- A partition's queue is its disk's.
  if process.line(block .. "/partition") then
    local ok, real = process.run("readlink", "-f", block)
    queue = ok and real:match "^(.*)/[^/]*$" .. "/queue" or nil
  end
  return { mount_point = m.mount_point, filesystem = m.filesystem, mountinfo = o.mountinfo,
    mount_program = o.mount_program,
    places = { fs = ("%s/fs/%s/%s"):format(o.sysfs, m.filesystem, name),
      proc = ("%s/sys/fs/%s"):format(o.proc, m.filesystem), queue = queue } }
end

---Open the knobs of the filesystem at a path. Say `local k <close> = ...`: closing brings back what
---was before.
---@param path string
---@param o? brim.KnobsOpts
---@return brim.Knobs? knobs
---@return brim.Error? err
function M.open(path, o)
  o = opts.check(o, OPEN, "brim.knobs.open")
  local target, err = locate(path, o)
  if not target then
    return nil, err
  end
  local k = { target = target, geometry = o.geometry, keep = o.keep, state_dir = o.state_dir,
    kernel = o.kernel or process.line "/proc/sys/kernel/osrelease" or "0", before = {},
    is_held = false }
  return setmetatable(k, Knobs)
end

-- The knob by its name if this kernel has it, or nil and what is wrong.
local function find(k, name)
  local knob, err = data.find(k.target.filesystem, name)
  if not knob then
    return nil, err
  elseif file.exists(k.target, knob) then
    return knob
  end
  local has, why = data.is_in(knob, k.kernel)
  return nil, errors.usage("%s: %s", k.target.mount_point, not has and why
    or ("no %s here, though Linux %s should have it (%s)"):format(name, k.kernel,
      file.path(k.target, knob) or "mount option"))
end

local function check_open(k)
  if k.is_closed then
    error("brim.knobs: knobs are closed", 3)
  end
end

-- An integer where it is one.
local function value_of(raw)
  return raw and (raw:find "^-?%d+$" and math.tointeger(tonumber(raw)) or raw)
end

---Read a knob.
---@param name string
---@return integer|string? value a word stays text
---@return brim.Error? err
function Knobs:get(name)
  check_open(self)
  local knob, err = find(self, name)
  if not knob then
    return nil, err
  end
  local raw, why = file.read(self.target, knob)
  return value_of(raw), why
end

---Read all knobs that are here.
---@return table<string, integer|string> values by name; what cannot be read is left out
function Knobs:snapshot()
  check_open(self)
  local out = {}
  for _, knob in ipairs(data.of(self.target.filesystem)) do
    out[knob.name] = value_of(file.read(self.target, knob))
  end
  return out
end

---@class brim.KnobInfo
---@field name string
---@field value integer|string
---@field default? integer|string where it depends on nothing
---@field unit string
---@field doc string
---@field since string first kernel that has it
---@field min? integer
---@field max? integer
---@field values? string[]

---Describe all knobs that are here, with their values.
---@return brim.KnobInfo[]
function Knobs:list()
  local values, out = self:snapshot(), {}
  for _, knob in ipairs(data.of(self.target.filesystem)) do
    if values[knob.name] ~= nil then
      local is_number = not (knob.values or knob.pattern or knob.choice)
      out[#out + 1] = { name = knob.name, value = values[knob.name], unit = knob.unit,
        default = type(knob.default) ~= "function" and knob.default or nil, doc = knob.doc,
        since = knob.since, min = is_number and knob.min or nil,
        max = is_number and knob.max or nil, values = knob.values }
    end
  end
  return out
end

-- --------------------------------------------------------------------- setting

local function rank(entry)
  local knob = entry.knob
  return knob.first and knob.first == entry.value and 1 or knob.place == "mount" and 2 or 3
end

-- Mount options early: a remount may start the GC thread anew, which forgets what is set.
local function in_order(list)
  table.sort(list, function(a, b)
    local first, second = rank(a), rank(b)
    if first ~= second then
      return first < second
    end
    return a.knob.name < b.knob.name
  end)
  return list
end

-- One knob back as it read. Nothing is written where it reads so already.
local function bring_back(target, name, raw)
  local knob = data.find(target.filesystem, name)
  local now, err = file.read(target, knob)
  if not now then
    return nil, err
  elseif now == raw then
    return true
  end
  local text = raw
  if knob.undo then
    name, text = knob.undo(raw)
    knob = data.find(target.filesystem, name)
  end
  local ok, why = file.write(target, knob, text)
  if not ok then
    return nil, why
  end
  now, err = file.read(target, knob)
  if now ~= raw then
    return nil, err or errors.new { code = "EINVAL", op = "restore",
      message = ("%s: %s was not brought back, it is %s"):format(name, raw, now) }
  end
  return true
end

-- Brings back a list of { name, raw }, mount options first. All are tried; the first failure is it.
local function bring_all_back(target, before)
  local list, first = {}, nil
  for _, entry in ipairs(before) do
    list[#list + 1] = { knob = data.find(target.filesystem, entry[1]), raw = entry[2] }
  end
  for _, entry in ipairs(in_order(list)) do
    local ok, err = bring_back(target, entry.knob.name, entry.raw)
    if not ok then
      first = first or err
    end
  end
  return not first, first
end

local function plan(k, set)
  local list = {}
  for name, value in pairs(set) do
    local knob, err = find(k, name)
    if not knob then
      return nil, err
    end
    local checked, why = data.check(knob, value, k.geometry)
    if checked == nil then
      return nil, why
    end
    list[#list + 1] = { knob = knob, value = checked }
  end
  return in_order(list)
end

local function note(k, knob)
  if k.before[knob.name] then
    return true
  end
  local raw, err = file.read(k.target, knob)
  if not raw then
    return nil, err
  end
  k.before[knob.name] = true
  k.before[#k.before + 1] = { knob.name, raw }
  return true
end

-- Notes what is going to change, before it does; with a mount option what the GC thread forgets.
local function note_all(k, list)
  for _, entry in ipairs(list) do
    local ok, err = note(k, entry.knob)
    if not ok then
      return nil, err
    end
    for _, knob in ipairs(entry.knob.place == "mount" and data.of(k.target.filesystem) or {}) do
      if knob.thread and file.exists(k.target, knob) then
        note(k, knob)
      end
    end
  end
  if k.keep then
    return true
  end
  local err
  if not k.state then
    k.state, err = state.make(k.state_dir)
    if not k.state then
      return nil, err
    end
  end
  hold(k, true)
  local names = {}
  for i, entry in ipairs(k.before) do
    names[i] = entry
  end
  return state.save(k.state, k.target, names)
end

local function took(knob, value, raw)
  local held_value = value_of(raw)
  return held_value == value or tostring(held_value) == tostring(value)
    or knob.reads and knob.reads[value] == held_value
end

-- Writes one and reads it back.
local function put(k, knob, value)
  local ok, err = file.write(k.target, knob, tostring(value))
  if not ok then
    err.message = ("%s=%s was refused: %s%s"):format(knob.name, tostring(value), err.message,
      knob.hint and "; " .. knob.hint or "")
    return nil, err
  end
  local raw, why = file.read(k.target, knob)
  if not raw then
    return nil, why
  elseif not took(knob, value, raw) then
    return nil, errors.new { code = "EINVAL", op = "set", path = file.path(k.target, knob)
      or k.target.mount_point, message = ("%s=%s was not taken: the kernel holds %s"):format(
      knob.name, tostring(value), raw) }
  end
  return raw
end

---@class brim.KnobChange
---@field name string
---@field before integer|string
---@field after integer|string as it reads back

---Set knobs: all are checked first, then each is written and read back. One that the kernel refuses
---or does not take brings back those that were set before it in this call, and is the error.
---@param set table<string, integer|string|boolean>
---@return brim.KnobChange[]? changes in the order they were made
---@return brim.Error? err
function Knobs:set(set)
  check_open(self)
  local list, err = plan(self, set)
  if not list then
    return nil, err
  end
  local ok
  ok, err = note_all(self, list)
  if not ok then
    return nil, err
  end
  local changes, raw = {}, {}
  for _, entry in ipairs(list) do
    raw[#raw + 1] = { entry.knob.name, file.read(self.target, entry.knob) }
    local after, why = put(self, entry.knob, entry.value)
    if not after then
      bring_all_back(self.target, raw)
      return nil, why
    end
    changes[#changes + 1] = { name = entry.knob.name, before = value_of(raw[#raw][2]),
      after = value_of(after) }
  end
  return changes
end

---Set what a preset says.
---@param name string
---@return brim.KnobChange[]? changes
---@return brim.Error? err
function Knobs:preset(name)
  local preset, err = M.preset(name, self.target.filesystem)
  if not preset then
    return nil, err
  end
  return self:set(preset.knobs)
end

-- -------------------------------------------------------------------- restoring

---Bring back what was before the first set.
---@return boolean? ok
---@return brim.Error? err the first that could not be; the others are, and it stays noted
function Knobs:restore()
  local ok, err = bring_all_back(self.target, self.before)
  if not ok then
    return nil, err
  end
  if self.state then
    state.remove(self.state)
    self.state = nil
  end
  self.before = {}
  hold(self, false)
  return true
end

---Bring back what was before and be done; with keep, leave it as it is.
---@return boolean? ok
---@return brim.Error? err
function Knobs:close()
  if self.is_closed then
    return true
  end
  if not self.keep and self.state then
    local ok, err = self:restore()
    if not ok then
      return nil, err
    end
  end
  self.is_closed = true
  hold(self, false)
  return true
end

function Knobs:__close()
  local ok, err = self:close()
  if not ok then
    io.stderr:write("brim.knobs: ", tostring(err), "; brim knobs --restore tries again\n")
  end
end

Knobs.__gc = Knobs.__close

function Knobs:__tostring()
  return ("brim.knobs of %s (%s%s)"):format(self.target.mount_point, self.target.filesystem,
    self.is_closed and ", closed" or "")
end

---Bring back what processes that are gone (killed, say) had changed.
---@param state_dir? string where it is noted
---@return table[] results each { mount_point, names, ok, message }
function M.restore(state_dir)
  local results = {}
  for _, s in ipairs(state.list(state_dir)) do
    local r = { mount_point = s.target.mount_point, names = {} }
    for i, entry in ipairs(s.before) do
      r.names[i] = entry[1]
    end
    if process.is_alive(s.process) then
      r.ok, r.message = false, ("process %d still runs"):format(s.process.pid)
    elseif not process.run("test", "-e", s.target.places.fs) then
      r.ok, r.message = true, "no longer mounted: nothing to bring back"
    else
      local ok, err = bring_all_back(s.target, s.before)
      r.ok, r.message = ok, ok and "brought back" or tostring(err)
    end
    if r.ok then
      state.remove(s.path)
    end
    results[#results + 1] = r
  end
  return results
end

---Get a preset by its name.
---@param name string
---@param filesystem? string that it must be for
---@return brim.KnobPreset? preset
---@return brim.Error? err
function M.preset(name, filesystem)
  local preset = presets.LIST[name]
  if not preset then
    return nil, errors.usage("unknown preset '%s'%s (there are %s)", tostring(name),
      opts.suggest(tostring(name), presets.names()), table.concat(presets.names(), ", "))
  elseif filesystem and preset.filesystem ~= filesystem then
    return nil, errors.usage("preset '%s' is for %s, this is %s", name, preset.filesystem,
      filesystem)
  end
  return preset
end

---Tell the defaults of a filesystem's knobs by geometry and kernel, as far as they are known.
---@param filesystem string
---@param g table main_segments, section_segments, reserved_segments for F2FS
---@param kernel string
---@return table<string, integer|string>
function M.defaults(filesystem, g, kernel)
  return data.defaults(filesystem, g, kernel)
end

return M
