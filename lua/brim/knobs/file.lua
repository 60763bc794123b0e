-- brim.knobs.file: reading and writing one knob where it is: a file of sysfs or procfs, or a mount
-- option by a remount. Called by knobs and knobs.state. Values are the text that the kernel shows,
-- without its end of line.
local errors = require "brim.error"
local process = require "brim.process"
local provenance = require "brim.timeline.provenance"

local M = {}

---@class brim.KnobTarget where the knobs of a mount are; plain data, as state files hold it
---@field mount_point string
---@field filesystem string
---@field places { fs: string, proc: string, queue?: string } directories
---@field mountinfo string file in the form of /proc/self/mountinfo
---@field mount_program string that remounts, as `PROGRAM -o remount,OPTION MOUNT_POINT`

local function failed(op, path, why, errno)
  return errors.new { code = errno == 2 and "ENOENT" or errno == 13 and "EACCES"
    or errno == 22 and "EINVAL" or errno == 16 and "EBUSY" or "EIO", errno = errno, op = op,
    path = path, message = why or (path .. ": cannot be used") }
end

---The file of a knob; nil for a mount option.
---@param target brim.KnobTarget
---@param knob brim.Knob
---@return string?
function M.path(target, knob)
  local dir = target.places[knob.place]
  return dir and ("%s/%s"):format(dir, knob.file)
end

local function read_option(target, knob)
  local file, why, errno = io.open(target.mountinfo)
  if not file then
    return nil, failed("read", target.mountinfo, why, errno)
  end
  local text <const> = file:read "a"
  file:close()
  local m = provenance.mount_in(text, target.mount_point)
  if not m or m.mount_point ~= target.mount_point then
    return nil, failed("read", target.mount_point, target.mount_point .. ": no longer mounted", 2)
  end
  for option in m.options:gmatch "[^,]+" do
    local value = option:match("^" .. knob.file:gsub("%p", "%%%0") .. "=(.*)$")
    if value or knob.flag == option then
      return value or "on"
    end
  end
  return knob.flag and "off" or nil,
    not knob.flag and failed("read", target.mount_point, ("%s: no %s among its options"):format(
      target.mount_point, knob.name), 2) or nil
end

---Read a knob: the text that the kernel shows.
---@param target brim.KnobTarget
---@param knob brim.Knob
---@return string? raw
---@return brim.Error? err
function M.read(target, knob)
  if knob.place == "mount" then
    return read_option(target, knob)
  end
  local path = M.path(target, knob)
  local file, why, errno = io.open(path or "/nonexistent")
  local text
  if file then
    text, why, errno = file:read "a"
    file:close()
  end
  if not text then
    return nil, failed("read", path, why, errno)
  end
  text = text:gsub("%s+$", "")
  text = knob.names and knob.names[text] and tostring(knob.names[text]) or text
  return knob.choice and text:match "%[([^%]]+)%]" or text
end

---Is the knob there?
---@param target brim.KnobTarget
---@param knob brim.Knob
---@return boolean
function M.exists(target, knob)
  if knob.place == "mount" then
    return M.read(target, knob) ~= nil
  end
  local path = M.path(target, knob)
  local file <close> = path and io.open(path)
  return file ~= nil
end

local function remount(target, knob, text)
  local option = knob.flag and (text == "on" and knob.flag or "no" .. knob.flag)
    or ("%s=%s"):format(knob.file, text)
  local ok, said = process.run(target.mount_program, "-o", "remount," .. option,
    target.mount_point)
  if not ok then
    return nil, failed("remount", target.mount_point, ("remount with %s: %s"):format(option,
      said:match "[^\n]*" or "failed"), 22)
  end
  return true
end

---Write a knob; whether the kernel took the value, only reading tells.
---@param target brim.KnobTarget
---@param knob brim.Knob
---@param text string
---@return boolean? ok
---@return brim.Error? err
function M.write(target, knob, text)
  if knob.place == "mount" then
    return remount(target, knob, text)
  end
  local path = M.path(target, knob)
  if not M.exists(target, knob) then
    return nil, failed("write", path, path .. ": No such file or directory", 2)
  end
  local file, why, errno = io.open(path, "w")
  if file then
    file:setvbuf "no"
    local ok
    -- One call: sysfs takes each for a value.
    ok, why, errno = file:write(text .. "\n")
    local closed, why_closed, errno_closed = file:close()
    if ok and closed then
      return true
    elseif ok then
      why, errno = why_closed, errno_closed
    end
  end
  return nil, failed("write", path, ("%s: %s"):format(path, (why or ""):gsub("^.*: ", "")), errno)
end

return M
