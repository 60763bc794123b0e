-- check: is the filesystem on a target sound? XFS of any size, fresh or used. It never writes.
local brim = require "brim"
local check = require "brim.xfs.check"

-- JSON has no unsigned integers: what is past 2^63-1 goes as text.
local function exact(v)
  return math.type(v) == "integer" and v < 0 and ("0x%x"):format(v) or v
end

local function run(a, ctx)
  ctx.json = ctx.json or a.json
  local kind, target = a.kind, a.target
  if not target then
    kind, target = "xfs", a.kind
  end
  if kind ~= "xfs" then
    return nil, brim.error.usage("brim checks 'xfs', not '%s'", kind)
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
  doc = "Check a filesystem: superblocks, group headers, free lists, trees of groups, inodes.",
  details = "brim check xfs TARGET, or brim check TARGET.\n"
    .. "Exit status: 0 clean, 1 damaged, 2 nothing that can be checked. Of inodes, the extents of\n"
    .. "both forks are held against the reverse maps, or without these against what is free\n"
    .. "and shared; that takes some 36 bytes of memory for each extent. Names, attributes and the\n"
    .. "realtime part are not looked at. A dirty log is not replayed: mount first.",
  args = {
    { "kind", type = "path", required = true, doc = "'xfs', or the target" },
    { "target", type = "path", required = false, doc = "a device, a file or an image file" },
    { "--max-findings", type = "int", default = 1000, min = 1, max = 1 << 20,
      doc = "findings kept and shown" },
    { "--shallow", type = "bool", doc = "do not read inodes" },
    { "--json", type = "bool", doc = "print the result as JSON" },
  },
  run = run,
}
