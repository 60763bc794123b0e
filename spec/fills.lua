-- What the specs of brim.fill share: filesystems to fill, what a person without privileges can
-- still write there, the synchronised fullness of a timeline.
local core = require "brim.core"
local devices = require "spec.devices"
local helper = require "spec.helper"
local timeline = require "brim.timeline"

local M = {}

---The filesystems that fills are tried on. ext4 keeps 16 MiB that not even root may use, which on a
---small one is more than 1 %; btrfs has separate chunks for metadata unless they are mixed.
M.FILESYSTEMS = {
  { name = "xfs", size = "600m", mkfs = "mkfs.xfs -q -f" },
  { name = "ext4", size = "2g", mkfs = "mkfs.ext4 -q -F" },
  { name = "btrfs", size = "600m", mkfs = "mkfs.btrfs -q -f --mixed" },
  { name = "tmpfs", size = "600m" },
}

---Make and mount a filesystem; devices.release undoes it.
---@param fs table of FILESYSTEMS
---@param options? string for mount
---@return string dir
function M.mount(fs, options)
  if not fs.mkfs then
    return devices.mount("tmpfs", ("-t tmpfs -o size=%s"):format(fs.size))
  end
  local image = devices.file(fs.size, fs.name .. ".img")
  helper.must("%s %s", fs.mkfs, image)
  devices.later("rm -f %s", image)
  return devices.mount(devices.loop(image), options)
end

---Can it be made here?
---@param fs table of FILESYSTEMS
---@return boolean
function M.has(fs)
  return not fs.mkfs or helper.has(fs.mkfs:match "^%S+")
end

---The fullness after a sync.
---@param dir string
---@return number
function M.fullness(dir)
  assert(core.usage_sync(dir))
  local u = assert(core.usage(dir))
  return 1 - u.free_bytes / u.size_bytes
end

---Try to put one more block below a directory, as a user without privileges and as root. What was
---written is removed again.
---@param dir string
---@return boolean fits
function M.fits_one_block(dir)
  helper.must("chmod 1777 %s", dir)
  local block = core.usage(dir).block_bytes
  for _, who in ipairs { "setpriv --reuid=65534 --regid=65534 --clear-groups", "" } do
    local _, status = helper.sh(
      "%s sh -c 'dd if=/dev/zero of=%s/one-more bs=%d count=1 conv=fsync'", who, dir, block)
    helper.sh("rm -f %s/one-more", dir)
    if status == 0 then
      return true
    end
  end
  return false
end

---Where the synchronised fullness of a timeline went backwards during fills.
---@param path string
---@return string[] faults
function M.backwards(path)
  local run = assert(timeline.read(path))
  local faults, last, phase = {}, 0, nil
  for _, s in ipairs(run.samples) do
    if s.phase ~= phase then
      phase, last = s.phase, 0
    end
    if (s.phase or ""):find "^fill" then
      -- A few blocks of the filesystem's own come and go.
      if s.synced_fullness < last - 1e-5 then
        faults[#faults + 1] = ("%s at %.2f s: %.5f after %.5f"):format(s.phase, s.t_s,
          s.synced_fullness, last)
      end
      last = s.synced_fullness
    end
  end
  return faults
end

---How many samples belong to phases of a kind.
---@param path string
---@param pattern string of the phase's name
---@return integer
function M.samples(path, pattern)
  local n = 0
  for _, s in ipairs(assert(timeline.read(path)).samples) do
    n = n + ((s.phase or ""):find(pattern) and 1 or 0)
  end
  return n
end

return M
