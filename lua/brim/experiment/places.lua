-- brim.experiment.places: where a cell runs: a path of this machine, or a guest of the lab with a
-- fresh F2FS on an image and a drive's model under it. Called by brim.experiment. A cell's result
-- is plain data.
local cells = require "brim.experiment.cells"
local device = require "brim.device"
local drive = require "brim.drive"
local errors = require "brim.error"
local f2fs = require "brim.f2fs"
local json = require "brim.json"
local knobs = require "brim.knobs"
local lab = require "brim.lab"
local process = require "brim.process"
local work = require "brim.experiment.work"

local M = {}

-- Fixed, as the uuid is: two images of one geometry are the same.
local UUID <const>, TIME_S <const> = "0b2d1a9e-5c6f-4f2b-9d52-7a3f6a0c1e55", 1700000000
local SCRIPT <const> = 'require("brim.experiment.guest").run()\n'

---All knobs of a variant: its preset's, and its own over these.
---@param v brim.ExperimentVariant
---@return table<string, integer|string>? set
---@return brim.Error? err
function M.knobs(v)
  local set = {}
  if v.preset then
    local preset, err = knobs.preset(v.preset)
    if not preset then
      return nil, err
    end
    for name, value in pairs(preset.knobs) do
      set[name] = value
    end
  end
  for name, value in pairs(v.knobs or {}) do
    set[name] = value
  end
  return set
end

-- ------------------------------------------------------------------------ path

-- A filesystem without knobs is one where none are to be set.
local function open_knobs(path, set)
  if next(set) then
    return knobs.open(path)
  end
  return { set = function() return {} end }
end

local function on_path(cell, o, path, dir, set)
  local k, err = open_knobs(path, set)
  if not k then
    return nil, err
  end
  local closing <close> = k.close and k or nil
  local changes
  changes, err = k:set(set)
  if not changes then
    return closing and nil, err
  end
  local r
  r, err = work.run(dir, cell.variant.workload, { seed = cell.seed, timeline = cell.timeline,
    yes_really = o.yes_really })
  if r then
    r.knobs = changes
  end
  return r, err
end

---Run a cell on a directory of a mounted filesystem, and remove its files afterwards.
---@param cell brim.ExperimentCell
---@param o brim.ExperimentOpts
---@param path string
---@return table? result
---@return brim.Error? err
function M.path(cell, o, path)
  local v = cell.variant
  if v.kernel or v.geometry or v.drive or v.mount_options then
    return nil, errors.usage("%s: kernel, geometry, drive and mount_options are the lab's, not of "
      .. "a path", v.name)
  end
  local set, err = M.knobs(v)
  if not set then
    return nil, err
  end
  local dir = path .. "/brim-experiment-" .. cell.name
  if cells.is_foreign(dir, "set1") then
    return nil, errors.usage("%s is there and of no experiment", dir)
  end
  local function remove()
    return process.run("rm", "-rf", "--one-file-system", "--", dir)
  end
  remove() -- of a run that was killed
  local r
  r, err = on_path(cell, o, path, dir, set)
  remove()
  return r, err
end

-- ------------------------------------------------------------------------- lab

---What is formatted for a variant.
---@param v brim.ExperimentVariant
---@return table options of brim.f2fs.format
function M.format_options(v)
  local o = { size_bytes = "1g" }
  for name, value in pairs(v.geometry or {}) do
    o[name] = value
  end
  return o
end

local function make_image(path, v)
  local o = M.format_options(v)
  o.uuid, o.time_s, o.fixed_version = UUID, TIME_S, true
  local plan <close>, err = f2fs.format(o)
  if not plan then
    return nil, err
  end
  local file <close>, why = device.open(path, { write = true, create = true,
    min_size_bytes = o.size_bytes })
  if not file then
    return nil, why
  end
  return plan:write(file)
end

local function drive_of(v)
  return v.drive and drive(v.drive) or nil
end

local function guest_result(cell, r)
  if r.stopped == "interrupted" then
    return { stopped = r.stopped }
  elseif not r.ok then
    return nil, errors.new { code = "EIO", op = "experiment", path = cell.dir,
      message = ("%s: the guest's script failed: %s"):format(cell.name, r.message or r.stopped) }
  elseif r.disk_error then
    return nil, errors.new { code = "EIO", op = "experiment", path = cell.dir,
      message = ("%s: %s"):format(cell.name, r.disk_error) }
  end
  local file <close>, why = io.open(cell.dir .. "/guest.json")
  local out = file and json.decode(file:read "a")
  if type(out) ~= "table" then
    return nil, errors.new { code = "EIO", op = "experiment", path = cell.dir,
      message = why or "guest.json: no result" }
  end
  out.kernel, out.elapsed_s, out.unmounting = r.kernel, r.elapsed_s, r.stopped
  return out
end

---Run a cell in a guest of the lab. The image is removed afterwards; results lie in the cell.
---@param cell brim.ExperimentCell
---@param o brim.ExperimentOpts
---@return table? result
---@return brim.Error? err
function M.lab(cell, o)
  local v = cell.variant
  local set, err = M.knobs(v)
  if not set then
    return nil, err
  end
  local image <const>, script <const> = cell.dir .. "/disk.img", cell.dir .. "/cell.lua"
  local removed <close> = setmetatable({}, { __close = function() os.remove(image) end })
  local made
  made, err = make_image(image, v)
  if not made then
    return removed and nil, err
  end
  local file = assert(io.open(script, "w"))
  file:write(SCRIPT)
  file:close()
  local model, shim = drive_of(v), nil
  if model then
    shim, err = model:environment(process.absolute(image),
      { stats = process.absolute(cell.dir) .. "/drive.json" })
    if not shim then
      return nil, err
    end
  end
  local r, why = lab.run { script = script, kernel = v.kernel, disks = { image }, shim = shim,
    results = cell.dir, timeout_s = o.timeout_s, umount_s = o.umount_s,
    args = { seed = cell.seed, workload = v.workload, knobs = json.object(set),
      mount_options = v.mount_options } }
  if not r then
    return nil, why
  end
  return guest_result(cell, r)
end

return M
