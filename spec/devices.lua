-- Loop devices and mounts for the specs tagged #root: made here, and all undone by release(), which
-- such specs call after each test. Everything lives in the scratch directory of the spec.
local helper = require "spec.helper"

local M = {}

local TRIES <const> = 20

local undo = {}

-- Undone in the reverse order.
local function later(fmt, ...)
  undo[#undo + 1] = fmt:format(...)
end

---Undo everything made so far; raises when something stays.
function M.release()
  local failed = {}
  while #undo > 0 do
    local command = table.remove(undo)
    local out, status
    -- Whoever watches for new devices (udev) may be looking at it.
    for _ = 1, TRIES do
      out, status = helper.sh("%s", command)
      if status == 0 then
        break
      end
      helper.sh "sleep 0.1"
    end
    if status ~= 0 then
      failed[#failed + 1] = ("%s: %s"):format(command, out)
    end
  end
  assert(#failed == 0, table.concat(failed, "\n"))
end

---Make a sparse file.
---@param size string for truncate
---@param name? string
---@return string path
function M.file(size, name)
  local path = helper.path(name or "img")
  helper.must("truncate -s %s %s", size, path)
  return path
end

---Attach a file to a loop device.
---@param path string
---@param options? string for losetup
---@return string device
function M.loop(path, options)
  local device = helper.must("losetup -f --show %s %s", options or "", path):gsub("%s+$", "")
  later("losetup -d %s", device)
  return device
end

---Mount something on a fresh directory.
---@param what string device, file, or the word that stands for none
---@param options? string for mount
---@return string dir
function M.mount(what, options)
  local dir = helper.path "mnt"
  helper.must("mkdir %s && mount %s %s %s", dir, options or "", what, dir)
  later("umount %s", dir)
  return dir
end

---Say what is to be undone at the end, as a shell command.
M.later = later

---What tells whether a file was touched: its content, length, times and blocks.
---@param path string
---@return string
function M.state(path)
  local out = helper.sh("stat -c '%%F %%s %%Y %%Z %%b' %s; sha256sum < %s", path, path)
  return out
end

return M
