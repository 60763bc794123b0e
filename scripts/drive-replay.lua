-- drive-replay: tells how long a trace of block I/O would have taken on other drives.
local brim = require "brim"

local function rates(r, ctx)
  for _, bin in ipairs(r.bins or {}) do
    ctx.report("  %10.3f s  %8d I/Os  %9.1f MB/s", bin.t_s, bin.ios, bin.bytes_per_s / 1e6)
  end
end

local function sizes(r, ctx)
  for _, op in ipairs { "read", "write" } do
    for k = 0, 62 do
      local ios, runs = r.stats.io_sizes[op][1 << k], r.stats.run_sizes[op][1 << k]
      if ios or runs then
        ctx.report("  %-5s from %8s: %8d I/Os %8d runs", op, brim.bytes.format(1 << k), ios or 0,
          runs or 0)
      end
    end
  end
end

local function run(a, ctx)
  local names, results = a.model and { a.model } or brim.drive.NAMES, { drives = {} }
  for _, name in ipairs(names) do
    local drive = brim.drive { preset = name, scale_bytes = name ~= "ideal" and a.scale or nil }
    for _, note in ipairs(drive.notes) do
      ctx.log("%s, not kept: %s", name, note)
    end
    local r, err = drive:replay(a.trace, { interval_s = a.interval_s, wrap = a.wrap,
      open_loop = a.open_loop, out = a.model and a.out or nil })
    if not r then
      return nil, err
    end
    results.drives[name] = r
    ctx.report("%-12s %s", name, tostring(r):sub(1, -2))
    rates(r, ctx)
    if a.model then
      sizes(r, ctx)
    end
  end
  return results
end

return brim.recipe {
  name = "drive-replay",
  doc = "Tell how long a trace of block I/O would have taken on other drives, without sleeping.",
  details = "The trace is one of the shim's (see brim.drive), or any that `brim trace` reads.\n"
    .. "Each stream waits for its I/O and then as long as it did when it was recorded.",
  args = {
    { "trace", type = "path", required = true, doc = "the trace" },
    { "--model", type = "enum", values = brim.drive.NAMES, doc = "one drive; default all" },
    { "--scale", type = "bytes", doc = "a replica of that size, with the drive's ratios" },
    { "--interval-s", type = "number", min = 1e-6, max = 1e6, doc = "rates by intervals" },
    { "--wrap", type = "bool", default = false, doc = "offsets past the end: modulo the size" },
    { "--open-loop", type = "bool", default = false, doc = "keep the recorded times of arrival" },
    { "--out", type = "path", doc = "block trace to write, with the times of --model" },
  },
  run = run,
}
