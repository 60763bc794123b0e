-- trace: tells what a trace of I/O consists of, or writes it in another format.
local brim = require "brim"

local FORMAT_OF <const> = { jsonl = "jsonl", json = "jsonl", iolog = "iolog3", log = "iolog3",
  iolog2 = "iolog2", iolog3 = "iolog3" }

local function convert(a, trace, ctx)
  if not a.out then
    return nil, brim.error.usage("missing argument 'out' (the file to write)")
  end
  local format = a.to or FORMAT_OF[a.out:match "%.(%w+)$" or ""] or "iolog3"
  if ctx.dry_run then
    return { text = ("would write %s as %s\n"):format(a.out, format) }
  end
  return trace:convert(a.out, { format = format, path = a.path, progress = ctx.progress })
end

local function run(a, ctx)
  local trace, err = brim.trace.open(a.file, { format = a.format,
    blkparse_action = a.blkparse_action })
  if not trace then
    return nil, err
  end
  local info, why
  if a.what == "convert" then
    info, why = convert(a, trace, ctx)
  else
    info, why = trace:info { progress = ctx.progress }
  end
  if info and not info.text then
    ctx.report("%s", tostring(info):sub(1, -2))
  end
  return info, why
end

return brim.recipe {
  name = "trace",
  doc = "Tell what a trace of I/O consists of, or write it in another format.",
  details = "brim trace info FILE\nbrim trace convert FILE OUT [--to FORMAT]\n\nReads fio's iolog 2"
    .. " and 3, brim's JSON lines, text of blkparse, CSV of MSR Cambridge,\nAlibaba and Tencent; "
    .. "writes iolog2, iolog3 and jsonl, by OUT's ending unless --to says.",
  args = {
    { "what", type = "enum", values = { "info", "convert" }, required = true, doc = "what to do" },
    { "file", type = "path", required = true, doc = "the trace" },
    { "out", type = "path", required = false, doc = "the file to write" },
    { "--to", type = "enum", values = brim.trace.WRITTEN, doc = "format to write" },
    { "--path", type = "string", doc = "file of operations that name none (device)" },
    { "--format", type = "enum", values = brim.trace.FORMATS, default = "auto",
      doc = "of the trace that is read" },
    { "--blkparse-action", type = "string", default = "Q", doc = "lines of blkparse that count" },
  },
  run = run,
}
