-- brim.lab.guest: what a script inside a guest is helped with: its arguments, disks, the host's
-- files, mounts that behave as those of a large disk, samples. Called by scripts in guests.
local errors = require "brim.error"
local json = require "brim.json"
local knobs = require "brim.knobs"
local opts = require "brim.opts"
local process = require "brim.process"

local M = {}

---@class brim.LabMountOpts
---@field at? string mount point, default "/mnt"; made when missing
---@field filesystem? string default "f2fs"
---@field options? string as for mount -o
---@field large_volume? boolean have a small F2FS behave as one above 16 GiB; default true

local SCHEMA = {
  at = { type = "path", default = "/mnt", doc = "mount point" },
  filesystem = { type = "string", default = "f2fs", doc = "its type" },
  options = { type = "string", doc = "as for mount -o" },
  large_volume = { type = "bool", default = true, doc = "F2FS: behave as a large volume" },
}

---Where results go: the only place of the host that can be written.
---@type string
M.RESULTS = "/results"

---Are we inside a guest of the lab?
---@return boolean
function M.is_inside()
  return (process.line "/proc/cmdline" or ""):find "brim_lab=" ~= nil
end

---Get what `args` of brim.lab.run was.
---@return any
function M.args()
  local dir = (process.line "/proc/cmdline" or ""):match "brim_lab=(%S+)"
  local text = dir and process.line("/host" .. dir .. "/args.json")
  return text and json.decode(text)
end

---The device of a disk.
---@param i integer from 1, in the order of `disks`
---@return string
function M.disk(i)
  return "/dev/ubd" .. ("abcdefgh"):sub(i, i)
end

---Where a file of the host is in a guest, to be read only.
---@param path string absolute
---@return string
function M.host(path)
  return "/host" .. path
end

local function failed(op, path, why)
  return errors.new { code = "EIO", errno = 5, op = op, path = path,
    message = ("%s %s: %s"):format(op, path, why) }
end

-- F2FS treats volumes of up to 16 GiB otherwise (alloc_mode=reuse, in-place updates, small
-- discards: f2fs_tuning_parameters in fs/f2fs/super.c), some of it whatever the options say.
local function behave_large(at)
  local preset, err = knobs.preset("large-volume", "f2fs")
  local k = preset
  if preset then
    k, err = knobs.open(at, { keep = true })
  end
  if not k then
    return nil, err
  end
  local changes
  changes, err = k:set(preset.knobs)
  k:close()
  return changes, err
end

---Mount a disk. A small F2FS is made to behave as a large one, unless asked not to, and what was
---changed for that is told.
---@param device string
---@param o? brim.LabMountOpts
---@return { mount_point: string, changes: table[] }? mount changes: each { name, before, after }
---@return brim.Error? err
function M.mount(device, o)
  o = opts.check(o or {}, SCHEMA, "brim.lab.guest.mount")
  local words = { "mount", "-t", o.filesystem }
  if o.options then
    table.move({ "-o", o.options }, 1, 2, #words + 1, words)
  end
  table.move({ device, o.at }, 1, 2, #words + 1, words)
  local ok, why = process.run("mkdir", "-p", o.at)
  if ok then
    ok, why = process.run(table.unpack(words))
  end
  if not ok then
    return nil, failed("mount", device, why)
  end
  local changes = {}
  if o.large_volume and o.filesystem == "f2fs" then
    local err
    changes, err = behave_large(o.at)
    if not changes then
      M.umount(o.at)
      return nil, err
    end
  end
  return { mount_point = o.at, changes = changes }
end

---Unmount.
---@param at? string default "/mnt"
---@return true? ok
---@return brim.Error? err
function M.umount(at)
  local ok, why = process.run("umount", at or "/mnt")
  return ok or nil, not ok and failed("umount", at or "/mnt", why) or nil
end

---Read a file of /proc/fs/f2fs of a disk, such as segment_info.
---@param device string
---@param name string
---@return string? text
---@return brim.Error? err
function M.f2fs_info(device, name)
  local path = ("/proc/fs/f2fs/%s/%s"):format(device:match "[^/]*$", name)
  local file <close> = io.open(path)
  local text = file and file:read "a"
  return text, not text and failed("read", path, "is not there") or nil
end

---Read all counters of what is mounted: device, memory, filesystem; see brim.probe.
---@param at? string default "/mnt"
---@return table<string, number> values
function M.sample(at)
  local probes = require("brim.probe").new(at or "/mnt")
  return (probes:read(require("brim.core").monotonic_s()))
end

return M
