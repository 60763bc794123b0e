-- Block workloads: a pattern on a device, what it did over the range, and whether it is all there;
-- then the same as a trace that fio replays.
--   brim run examples/workload.lua [DEVICE]        a sparse file is made without one
local brim = require "brim"

local path = arg[1] or os.tmpname()
if not arg[1] then
  local file <close> = assert(io.open(path, "wb"))
  file:seek("set", 64 * brim.MiB - 1)
  file:write "\0"
end

local w = brim.workload { pattern = "zipf", theta = 0.9, reads = 0.3, io_bytes = "4k",
  operations = 20000, seed = 1 }
print(w)

local result = assert(w:run(path, { bins = 8 }))
for _, bin in ipairs(result.bins) do
  print(("from %2d MiB: %5d I/Os, mean latency %.6f s"):format(bin.off_bytes // brim.MiB,
    bin.reads + bin.writes, bin.mean_latency_s))
end

local verdict = assert(w:verify(path, { result = result }))
print(("%d blocks right, %d stale, %d corrupt"):format(verdict.right, verdict.stale,
  verdict.corrupt))

if not arg[1] then
  os.remove(path)
end
