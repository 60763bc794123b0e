-- Speed against fullness of a filesystem: levels, churn at each, a report with the curve.
-- Run: brim run examples/near_full.lua /mnt/xfs [SECONDS [DIRECTORY OF THE REPORT]]
local brim = require "brim"
local path, seconds, out = arg[1], tonumber(arg[2] or "30"), arg[3] or "."

local w = brim.fill.new { seed = 1, sizes = brim.dist.log_uniform("4k", "4m") }
for _, level in ipairs { "50%", "80%", "90%", "95%", "97%", "99%", "enospc" } do
  w:fill(level):churn { seconds = seconds }
end
print(assert(w:run(path, { timeline = out .. "/near-full.jsonl" })))
assert(brim.report.write(out .. "/near-full.html", { out .. "/near-full.jsonl" }))
