-- verify-fill: compares what a fill left with its seed: short, long, missing, extra, corrupt files.
local brim = require "brim"

return brim.recipe {
  name = "verify-fill",
  doc = "Compare what 'brim fill' or 'brim near-full' left with its seed, every byte.",
  details = "Exit status: 0 all is as it was written, 1 something differs, 2 no fill there.\n"
    .. "Files that were short because the filesystem was full are as they were written.",
  args = {
    { "path", type = "path", required = true, doc = "what was filled" },
    { "--threads", type = "int", min = 1, max = 1024, doc = "files read at a time" },
    { "--direct", type = "bool", doc = "past the page cache" },
    { "--max-findings", type = "int", default = 1000, min = 1, max = 1 << 20,
      doc = "findings kept and shown" },
  },
  run = function(a, ctx)
    return brim.fill.verify(a.path, { threads = a.threads, direct = a.direct,
      max_findings = a.max_findings, progress = ctx.progress,
      progress_interval_s = ctx.progress_interval_s })
  end,
}
