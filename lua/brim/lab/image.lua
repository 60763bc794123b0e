-- brim.lab.image: disks of guests as files: copies that share or skip what they can, links by which
-- a guest's command line names them whatever they are called. Called by lab. Sizes are bytes.
local errors = require "brim.error"
local process = require "brim.process"

local M = {}

local function failed(op, path, why)
  local full = why:find "No space left" and 28 or nil
  return errors.new { code = full and "ENOSPC" or "EIO", errno = full or 5, op = op, path = path,
    message = ("%s: %s"):format(path, why) }
end

---Copy an image: shares its blocks where the filesystem can, keeps its holes. The copy appears
---whole or not at all.
---@param image string
---@param path string
---@return string? path
---@return brim.Error? err
function M.snapshot(image, path)
  local new = path .. ".new"
  local ok, why = process.run("cp", "--reflink=auto", "--sparse=always", "--", image, new)
  if ok then
    ok, why = process.run("mv", "-f", "--", new, path)
  end
  if not ok then
    os.remove(new)
    return nil, failed("snapshot", path, why)
  end
  return path
end

-- Does another guest hold it? They lock their disks (fcntl), and a kernel that cannot have the lock
-- may panic. A line of /proc/locks: "1: POSIX ADVISORY WRITE 123 fe:01:4711 0 EOF", the device in
-- hexadecimal.
local function is_held(path, readonly)
  local ok, out = process.run("stat", "-L", "-c", "%Hd %Ld %i", "--", path)
  local major, minor, inode = out:match "^(%d+) (%d+) (%d+)$"
  local file <close> = ok and inode and io.open "/proc/locks" or nil
  local place = file and ("%02x:%02x:%s"):format(major, minor, inode)
  for line in file and file:lines() or function() end do
    local kind, at = line:match "^%d+: %S+ +%S+ +(%S+) +%S+ (%S+) "
    if at == place and not (readonly and kind == "READ") then
      return true
    end
  end
  return false
end

---Check the disks that a guest shall have, and give each a link of a short name in a directory.
---@param disks (string|{ path: string, readonly?: boolean })[]
---@param dir string
---@return { path: string, link: string, readonly: boolean }[]? list
---@return brim.Error? err
function M.link(disks, dir)
  local list = {}
  for i, d in ipairs(disks) do
    d = type(d) == "string" and { path = d } or d
    if type(d) ~= "table" or type(d.path) ~= "string" then
      return nil, errors.usage("disks[%d]: expected { path = ... }", i)
    end
    local path = process.absolute(d.path)
    local needs = d.readonly and "-r" or "-w"
    if not (process.run("test", "-f", path) or process.run("test", "-b", path)) then
      return nil, errors.usage("disks[%d]: %s is no file and no block device", i, d.path)
    elseif not process.run("test", needs, path) then
      return nil, errors.usage("disks[%d]: %s may not be %s", i, d.path,
        d.readonly and "read" or "written; readonly = true only reads it")
    end
    if is_held(path, d.readonly) then
      return nil, errors.new { code = "EBUSY", errno = 16, op = "lab", path = path,
        message = ("disks[%d]: another guest uses %s"):format(i, d.path) }
    end
    local link = ("%s/disk%d"):format(dir, i)
    local ok, why = process.run("ln", "-s", "--", path, link)
    if not ok then
      return nil, failed("link", link, why)
    end
    list[i] = { path = path, link = link, readonly = d.readonly or false }
  end
  return list
end

---Tell which of some paths lies on a filesystem that is full: less than 1 MiB left.
---@param paths string[]
---@return string? path
function M.full(paths)
  for _, path in ipairs(paths) do
    local ok, out = process.run("df", "--output=avail", "-B1", "--", path)
    local free = ok and math.tointeger(tonumber(out:match "(%d+)%s*$"))
    if free and free < 1 << 20 then
      return path
    end
  end
end

return M
