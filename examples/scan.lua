-- Reads every group of a big filesystem in C, at full queue depth, and gathers what the groups say:
-- free space in all, its histogram, the fullest and the emptiest group, inodes.
-- Run: brim run examples/scan.lua [XFS [CSV]]   (default: an image of 64 TiB in 131,072 groups)
local brim = require "brim"
local scan, ondisk = brim.scan, brim.xfs.ondisk

local target = arg and arg[1]
if not target then
  target = os.tmpname()
  local plan <close> = assert(brim.xfs.format { size_bytes = "64t", ag_bytes = "512m" })
  assert(plan:save(target))
end

local device <close> = assert(brim.device.open(target))
local sb = ondisk.sb:decode(assert(device:read(0, 512)))

-- Traced once: what is expected of group `ag`, and what is to be gathered there.
local free_space = scan(function(ag)
  return ondisk.agf:at(sb.sectsize, sb.sectsize) {
    seqno = ag,
    length = scan.range(1, sb.agblocks),
    freeblks = scan.all { scan.sum "free", scan.min "fullest", scan.max "emptiest",
      scan.histogram "free", scan.column "free" },
    flcount = scan.sum "free list",
  }, ondisk.agi:at(2 * sb.sectsize, sb.sectsize) {
    seqno = ag,
    count = scan.sum "inodes",
    freecount = scan.sum "free inodes",
  }
end)

-- A value of each group for whoever plots; in batches, so that memory does not grow.
local csv <close> = arg and arg[2] and assert(io.open(arg[2], "w")) or nil
local function write_csv(batch)
  for k = 1, batch.count do
    csv:write(batch.first + k - 1, ",", batch.free[k], "\n")
  end
end

local result = assert(free_space:run(device, { count = sb.agcount,
  stride_bytes = sb.agblocks * sb.blocksize, batch = csv and write_csv }))
print(result)
print(("%d of %d GiB are free"):format(result.sums.free * sb.blocksize // brim.GiB,
  sb.dblocks * sb.blocksize // brim.GiB))
if not (arg and arg[1]) then
  os.remove(target)
end
