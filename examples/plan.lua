-- An 8 EiB XFS as a plan, and what it amounts to. Run: brim run examples/plan.lua
local brim = require "brim"

local plan = assert(brim.xfs.format { size_bytes = "8191p", rmapbt = true, reflink = false })
print(plan)
