-- brim.fill.reserve: what a filesystem keeps back, and why "full" is not every block: in words and,
-- where the kernel tells, in numbers. Called by brim.fill for its result. Sizes are bytes.
local bytes = require "brim.bytes"
local core = require "brim.core"
local counters = require "brim.probe.counters"
local process = require "brim.process"
local provenance = require "brim.timeline.provenance"

local M = {}

-- A number in a file of the filesystem's own directory in sysfs, where this kernel has it.
local function number(dir, name)
  local line = dir and process.line(dir .. "/" .. name)
  return line and math.tointeger(tonumber(line))
end

local explain = {}

function explain.xfs()
  return {}, "XFS keeps 8192 blocks or 5 % of the space, whichever is less, for its own"
    .. " transactions, and room in each group for the trees of reverse maps, reference counts and"
    .. " free inodes: statfs counts neither as free. Space that it preallocates behind files being"
    .. " written counts as used until they are closed and written back."
end

function explain.ext4(usage, before, dir)
  local clusters = number(dir, "reserved_clusters")
  local kept = math.max(before.free_bytes - before.avail_bytes, 0)
  return { for_root_bytes = kept,
    reserved_clusters = clusters },
    ("ext4 keeps %s for root (tune2fs -m)%s; both count as free."):format(
      bytes.about(kept),
      clusters and ("; another %s may serve delayed allocation only"):format(
        bytes.about(clusters * usage.block_bytes)) or "")
end

function explain.btrfs(_, _, dir)
  local out = {}
  for _, kind in ipairs { "data", "metadata", "system" } do
    out[kind .. "_bytes"] = number(dir, ("allocation/%s/total_bytes"):format(kind))
    out[kind .. "_used_bytes"] = number(dir, ("allocation/%s/bytes_used"):format(kind))
  end
  out.global_reserve_bytes = number(dir, "allocation/global_rsv_size")
  return out, "btrfs gives space to data and to metadata in chunks: one may be full while the"
    .. " other has room that statfs counts or does not; small files live in metadata, and a global"
    .. " reserve is kept for deleting on a full filesystem."
end

function explain.f2fs(_, _, dir)
  local out = { overprovision_segments = number(dir, "ovp_segments"),
    reserved_blocks = number(dir, "current_reserved_blocks") }
  return out, "F2FS keeps overprovisioned segments, without which its cleaner could not work: they"
    .. " count neither as free nor as part of the size."
end

function explain.tmpfs()
  return {}, "tmpfs keeps nothing back: it is full when its pages or its inodes are used up."
end

local function unknown(usage)
  local kept = usage.free_bytes - usage.avail_bytes
  return {}, kept > 0 and ("%s of what is free is for root only."):format(bytes.about(kept))
    or "Nothing is known to be kept back."
end

---Explain what is kept back.
---@param path string
---@param before table the usage when the run began
---@return table reserve filesystem, text, left_bytes (free all the same), further numbers
function M.explain(path, before)
  local usage = core.usage(path)
  if not usage then
    return { text = "" }
  end
  local device = provenance.device(path)
  local dir = device and counters.directory(usage.type, device.name)
  local out, text = (explain[usage.type] or unknown)(usage, before, dir)
  out.filesystem, out.text, out.left_bytes = usage.type, text, usage.free_bytes
  out.left_files = usage.free_files
  return out
end

return M
