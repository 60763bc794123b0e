-- block-fill: reads and writes blocks of a device in a pattern that follows from a seed, and
-- verifies what is there.
local brim = require "brim"
local bytes = require "brim.bytes"

local SAME <const> = { "pattern", "theta", "clustered", "stride_bytes", "block_bytes", "io_bytes",
  "offset_bytes", "size_bytes", "reads", "total_bytes", "operations", "passes", "seconds", "seed" }

local function verify(a, w, ctx)
  local v, err = w:verify(a.target, ctx.run_opts)
  if not v then
    return nil, err
  end
  ctx.report("%d blocks right, %d missing, %d stale, %d newer, %d misplaced, %d corrupt", v.right,
    v.missing, v.stale, v.newer, v.misplaced, v.corrupt)
  return v
end

local function run(a, ctx)
  local wanted = {}
  for _, name in ipairs(SAME) do
    wanted[name] = a[name]
  end
  local made, w = pcall(brim.workload, wanted)
  if not made then
    return nil, brim.error.usage("%s", (tostring(w):gsub("^.-brim%.workload: ", "")))
  elseif ctx.dry_run then
    return { text = tostring(w) }
  elseif a.verify then
    return verify(a, w, ctx)
  end
  ctx.log("%s", tostring(w):sub(1, -2))
  local o = { force = a.force, timeline = a.timeline }
  for name, v in pairs(ctx.run_opts) do
    o[name] = v
  end
  local r, err = w:run(a.target, o)
  if r then
    ctx.report("%s in %.2f s: %s/s, %.0f I/Os/s, p99 %.6f s, engine %s", bytes.about(r.bytes),
      r.wall_s, bytes.about(math.floor(r.bytes_per_s)), r.iops, r.latency_p99_s, r.engine)
  end
  return r, err
end

return brim.recipe {
  name = "block-fill",
  doc = "Read and write blocks of a device in a pattern; verify what is there.",
  details = "Overwrites the target: needs --yes. The same options with --verify read it back and\n"
    .. "tell missing, stale, misplaced and corrupt blocks apart; that never writes.",
  args = {
    { "target", type = "path", required = true, doc = "a device or a file" },
    { "--pattern", type = "enum", default = "sequential", doc = "order of places",
      values = { "sequential", "random", "permutation", "strided", "zipf" } },
    { "--theta", type = "number", default = 0.9, min = 0.001, max = 10, doc = "of zipf" },
    { "--clustered", type = "bool", doc = "zipf: hot places side by side" },
    { "--stride-bytes", type = "bytes", default = 1 << 20, doc = "of strided" },
    { "--block-bytes", type = "bytes", default = 4096, doc = "unit of offsets and content" },
    { "--io-bytes", type = "string", doc = "size of I/Os, or uniform(4k,64k) and the like" },
    { "--offset-bytes", type = "bytes", default = 0, doc = "where the range begins" },
    { "--size-bytes", type = "bytes", doc = "its length; default to the end" },
    { "--reads", type = "number", default = 0, min = 0, max = 1, doc = "part that reads" },
    { "--total-bytes", type = "bytes", doc = "how much; default one pass" },
    { "--operations", type = "int", min = 1, doc = "how many" },
    { "--passes", type = "int", min = 1, doc = "times the range's bytes" },
    { "--seconds", type = "number", doc = "begin nothing after that time" },
    { "--seed", type = "int", default = 1, doc = "what all of it follows from" },
    { "--verify", type = "bool", doc = "read back instead" },
    { "--timeline", type = "path", doc = "file to write samples to" },
    { "--force", type = "bool", doc = "overwrite a target that carries a filesystem" },
  },
  destructive = function(a) return not a.verify end,
  run = run,
}
