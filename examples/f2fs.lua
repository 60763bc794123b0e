-- How many files fit an F2FS of each size, and what overprovision takes: pure arithmetic, no disk.
-- Then an F2FS of 16 TiB as an image file of some KiB, checked.
-- Run: brim run examples/f2fs.lua
local brim = require "brim"

print "     size   node numbers   with -i       overprovision   1.16"
for _, size in ipairs { "4g", "100g", "1t", "2t", "3t", "3210g", "4t", "8t" } do
  local function geometry(o)
    o.size_bytes = size
    return assert(brim.f2fs.geometry(o))
  end
  local g = geometry {}
  print(("%9s %14d %13d %10.2f GiB %10.2f GiB"):format(size, g.max_nids,
    geometry({ large_nat = true }).max_nids, g.overprovision_segments / 512,
    geometry({ compat = "1.16" }).overprovision_segments / 512))
end

local path = os.tmpname()
local plan <close> = assert(brim.f2fs.format { size_bytes = "16383g", large_nat = true,
  features = { "lost_found" } })
assert(plan:save(path))
local result = assert(require("brim.f2fs.check").run(path))
print(result.text)
os.remove(path)
