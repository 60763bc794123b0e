-- Sets knobs of a mounted filesystem for as long as the script runs, shows what changed and, on an
-- F2FS, what that makes the kernel do. As root: brim run examples/knobs.lua /mnt/x NAME=VALUE ...
local brim = require "brim"

local path = assert(arg[1], "a path on a mounted filesystem")
local set = {}
for i = 2, #arg do
  local name, value = arg[i]:match "^([%w_.]+)=(.*)$"
  set[assert(name, arg[i] .. " is no NAME=VALUE")] = value
end

local k <close> = assert(brim.knobs.open(path))
for _, change in ipairs(assert(k:set(set))) do
  print(("%s: %s -> %s"):format(change.name, change.before, change.after))
end

if k.target.filesystem == "f2fs" then
  local explain = brim.f2fs.explain
  print(assert(explain.explain(assert(explain.mounted(path)))).text)
end
-- Here the workload would run; afterwards all is as it was.
