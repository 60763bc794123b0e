-- A timeline of one's own and its report: what writing 64 MiB costs here, a MiB at a time.
-- Run: brim run examples/report.lua [DIRECTORY]
local brim = require "brim"
local core = require "brim.core"

local dir = arg and arg[1] or "."
local probes = brim.probe.new(dir)
local t <close> = assert(brim.timeline.create(dir .. "/brim-example.jsonl",
  { target = dir, title = "64 MiB, a MiB at a time", columns = probes.columns }))
local watch = brim.detect.new { limit_s = 2 }
local file = assert(io.open(dir .. "/brim-example.data", "wb"))
t:phase("write", "fill")
for i = 1, 64 do
  local began_s, usage = t:now(), assert(core.usage(dir))
  assert(file:write(("x"):rep(brim.MiB)) and file:flush())
  local sample, events = probes:read(core.monotonic_s())
  sample.t_s, sample.written_bytes = t:now(), i * brim.MiB
  sample.bytes_per_s = brim.MiB / (sample.t_s - began_s)
  sample.fullness = 1 - usage.free_bytes / usage.size_bytes
  assert(t:sample(sample))
  for _, event in ipairs(events) do
    t:event(event)
  end
  for _, event in ipairs(watch:add { t_s = sample.t_s, bytes_per_s = sample.bytes_per_s,
    progress = i }) do
    t:event(event)
  end
end
file:close()
os.remove(dir .. "/brim-example.data")
t:result { written_bytes = 64 * brim.MiB }
local run = assert(brim.timeline.read(dir .. "/brim-example.jsonl"))
io.write(brim.plot.terminal(brim.plot.chart("time", { run })))
assert(brim.report.write(dir .. "/brim-example.html", { run }))
print("the report is " .. dir .. "/brim-example.html")
