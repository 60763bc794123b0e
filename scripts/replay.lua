-- replay: does again what a trace says: block I/O on a device or file, file operations below a
-- directory.
local brim = require "brim"

local function run(a, ctx)
  local trace, err = brim.trace.open(a.trace, { format = a.format,
    blkparse_action = a.blkparse_action })
  if not trace then
    return nil, err
  elseif ctx.dry_run then
    local info, why = trace:info { progress = ctx.progress }
    return info and { text = ("would replay on %s:\n%s"):format(a.target, tostring(info)) }, why
  end
  local o = { speed = a.speed, wrap = a.wrap, stream = a.stream, path = a.only, strip = a.strip,
    force = a.force, direct = a.direct, seed = a.seed }
  for name, v in pairs(ctx.run_opts) do
    o[name] = v
  end
  local result, failed = trace:replay(a.target, o)
  if not result then
    return nil, failed
  end
  ctx.report("%s", tostring(result):sub(1, -2))
  result.ok = result.failed == 0
  return result
end

return brim.recipe {
  name = "replay",
  doc = "Replay a trace on a device or file, or below a directory.",
  details = "Formats: fio's iolog 2 and 3, brim's JSON lines, text of blkparse, CSV of MSR\n"
    .. "Cambridge, Alibaba and Tencent; found out by the first line. What the trace writes is\n"
    .. "overwritten with random bytes: needs --yes.",
  args = {
    { "trace", type = "path", required = true, doc = "the trace file" },
    { "target", type = "path", required = true, doc = "a device, a file, or a directory" },
    { "--speed", type = "number", default = 0, min = 0, max = 1e9,
      doc = "times as fast as recorded; 0: as fast as possible" },
    { "--format", type = "enum", values = brim.trace.FORMATS, default = "auto",
      doc = "of the trace" },
    { "--blkparse-action", type = "string", default = "Q", doc = "lines of blkparse that count" },
    { "--only", type = "string", doc = "only operations on this file" },
    { "--stream", type = "int", min = 0, doc = "only this thread, processor or volume" },
    { "--strip", type = "string", doc = "what paths begin with that is not below the directory" },
    { "--wrap", type = "bool", doc = "what lies past the device's end begins again at 0" },
    { "--seed", type = "int", default = 1, doc = "of what is written" },
    { "--direct", type = "bool", doc = "past the page cache for a regular file too" },
    { "--force", type = "bool", doc = "overwrite a target that carries a filesystem" },
  },
  destructive = true,
  run = run,
}
