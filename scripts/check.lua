-- check: is the filesystem on a target sound? XFS or F2FS, fresh or used. It never writes.
local brim = require "brim"
local kinds = require "brim.kinds"

-- JSON has no unsigned integers: what is past 2^63-1 goes as text.
local function exact(v)
  return math.type(v) == "integer" and v < 0 and ("0x%x"):format(v) or v
end

local function run(a, ctx)
  ctx.json = ctx.json or a.json
  local kind, target = a.kind, a.target
  if not target then
    target = a.kind
    kind = kinds.of(target)
  end
  local check = kinds.check(kind)
  if not check then
    return nil, brim.error.usage("brim checks 'xfs' and 'f2fs', not '%s'", kind)
  end
  local o = { max_findings = a.max_findings, shallow = a.shallow }
  for name, v in pairs(ctx.run_opts) do
    o[name] = v
  end
  local result, err = check.run(target, o)
  if not result then
    return nil, err
  end
  for _, f in ipairs(result.findings) do
    f.expected, f.found = exact(f.expected), exact(f.found)
  end
  return result
end

return brim.recipe {
  name = "check",
  doc = "Check a filesystem: superblocks, tables, trees of groups or segments, inodes, counters.",
  details = "brim check TARGET, or brim check xfs|f2fs TARGET.\n"
    .. "Exit status: 0 clean, 1 damaged, 2 nothing that can be checked. Names and attributes are\n"
    .. "not looked at. Of XFS, the extents of both forks of inodes are held against the reverse\n"
    .. "maps, or without these against what is free and shared, in some 36 bytes of memory for\n"
    .. "each extent; a dirty log is not replayed (mount first), the realtime part not read. Of\n"
    .. "F2FS, all nodes are read, and what they address is held against SIT and summaries.",
  args = {
    { "kind", type = "path", required = true, doc = "'xfs' or 'f2fs', or the target" },
    { "target", type = "path", required = false, doc = "a device, a file or an image file" },
    { "--max-findings", type = "int", default = 1000, min = 1, max = 1 << 20,
      doc = "findings kept and shown" },
    { "--shallow", type = "bool", doc = "do not read inodes, or nodes" },
    { "--json", type = "bool", doc = "print the result as JSON" },
  },
  run = run,
}
