-- brim.knobs.state: what knobs were before they were changed, in a file for each process that
-- changes some, so that a killed one's can be brought back. Called by knobs. Written before the
-- change it is about, renamed into place. sysfs itself does not outlive a boot: nothing is flushed.
local core = require "brim.core"
local errors = require "brim.error"
local json = require "brim.json"
local process = require "brim.process"

local M = {}

local numbered = 0

---The directory of these files: BRIM_STATE_DIR, or one of the user's own; "knobs" in it.
---@return string
function M.dir()
  return require("brim.attach").state_dir() .. "/knobs"
end

-- This process, as brim.process knows others.
local function self()
  local line = process.line "/proc/self/stat" or ""
  local pid = math.tointeger(tonumber(line:match "^%d+" or ""))
  local fields = {}
  for field in (line:match "^.*%) (.*)$" or ""):gmatch "%S+" do
    fields[#fields + 1] = field
  end
  return { pid = pid or 0, start = math.tointeger(tonumber(fields[20] or "")) or 0 }
end

---Make the name of a state file of this process, and its directory.
---@param dir? string default M.dir()
---@return string? path
---@return brim.Error? err
function M.make(dir)
  dir = dir or M.dir()
  local ok, why = process.run("mkdir", "-p", "-m", "700", dir)
  if not ok or not process.run("test", "-O", dir) then
    return nil, errors.usage("what knobs were before cannot be noted in %s%s", dir,
      ok and ", it is somebody else's; name another place in BRIM_STATE_DIR" or ": " .. why)
  end
  numbered = numbered + 1
  return ("%s/%d-%d-%d.json"):format(dir, self().pid, core.time_ns(), numbered)
end

---Note what was before.
---@param path string
---@param target brim.KnobTarget
---@param before table[] each { name, raw }, in the order they were changed
---@return boolean? ok
---@return brim.Error? err
function M.save(path, target, before)
  local text = json.encode { process = self(), target = target, before = before }
  local file, why = io.open(path .. ".new", "w")
  if file then
    local ok
    ok, why = file:write(text, "\n")
    if file:close() and ok and os.rename(path .. ".new", path) then
      return true
    end
  end
  return nil, errors.new { code = "EIO", op = "write", path = path,
    message = ("%s: what knobs were before cannot be noted: %s"):format(path, tostring(why)) }
end

---Forget what was noted.
---@param path string
function M.remove(path)
  os.remove(path)
end

---@class brim.KnobState
---@field path string
---@field process brim.Process who changed them
---@field target brim.KnobTarget
---@field before table[]

---List what is noted.
---@param dir? string default M.dir()
---@return brim.KnobState[]
function M.list(dir)
  dir = dir or M.dir()
  local list = {}
  if not process.run("test", "-O", dir) then
    return list
  end
  local _, names = process.run("ls", "-1", dir)
  for name in names:gmatch "[^\n]+%.json" do
    local path = ("%s/%s"):format(dir, name)
    local text = process.line(path)
    local s = text and json.decode(text)
    if type(s) == "table" and type(s.target) == "table" and type(s.before) == "table" then
      s.path = path
      list[#list + 1] = s
    end
  end
  return list
end

return M
