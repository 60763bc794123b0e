-- f2fs-near-full: three data sets fill a small F2FS in guests, with and without knobs, on a drive's
-- model: how fast at each fullness, what GC does when all is idle, and why. No root, no F2FS here.
local brim = require "brim"
local command = require "brim.fill.command"

local DRIVES <const> = { hdd = "hdd-7200", smr = "archive-8tb" }

local function words(text)
  local list = {}
  for word in text:gmatch "[^,]+" do
    list[#list + 1] = word
  end
  return list
end

-- Small files to the first level, larger ones to the second; the third set does not fit.
local function workload(a)
  local levels = assert(command.levels(a["until"]))
  local sets = { { sizes = "log_uniform(16k,256k)", levels = { levels[1] } },
    { sizes = "log_uniform(64k,2m)", levels = { levels[2] } },
    { sizes = "log_uniform(256k,8m)", levels = table.move(levels, 3, #levels, 1, {}) } }
  if #levels < 3 then
    error(brim.error.usage "--until: three levels at least, one for each data set", 0)
  end
  return { sets = sets, churn_s = assert(command.duration(a.churn)),
    idle_s = assert(command.duration(a.idle)) }
end

local function variants(a)
  local list, kernels = {}, words(a.kernels)
  for _, kernel in ipairs(kernels) do
    for _, preset in ipairs(words(a.knobs)) do
      list[#list + 1] = { name = #kernels > 1 and ("%s %s"):format(preset, kernel) or preset,
        preset = preset ~= "default" and preset or nil, kernel = kernel,
        geometry = { size_bytes = a.size, section_segments = a.section, compat = a.compat },
        drive = DRIVES[a.drive] and { preset = DRIVES[a.drive], scale_bytes = a.size } or nil }
    end
  end
  return list
end

local function run(a, ctx)
  local o = { dir = a.dir, variants = variants(a), workload = workload(a), seeds = {},
    resume = a.resume, progress = function(cell, i, n)
      ctx.log("brim f2fs-near-full: %d of %d: %s", i, n, cell.name)
    end }
  for seed = a.seed, a.seed + a.seeds - 1 do
    o.seeds[#o.seeds + 1] = seed
  end
  if ctx.dry_run then
    return { text = ("would run %d variants with %d seeds in guests; results in %s"):format(
      #o.variants, a.seeds, a.dir) }
  end
  local x, err = brim.experiment.run(o)
  return x and x:finish(), err
end

return brim.recipe {
  name = "f2fs-near-full",
  doc = "Fill a scaled F2FS near full in guests: knobs against defaults, on a drive's model.",
  details = "brim f2fs-near-full out --drive smr\nbrim f2fs-near-full out --seeds 4 --resume\n"
    .. "DIR gets a directory for each cell and report.html. What finished is not repeated.",
  args = {
    { "dir", type = "path", required = true, doc = "of the results" },
    { "--size", type = "bytes", default = "1g", doc = "of the filesystem" },
    { "--section", type = "int", min = 1, default = 1, doc = "segments to a section" },
    { "--compat", type = "string", doc = "release of mkfs.f2fs: 1.15, 1.16" },
    { "--knobs", type = "string", default = "default,mail", doc = "presets, the baseline first" },
    { "--kernels", type = "string", default = "uml-6.1", doc = "of the lab: uml-6.1,uml-6.12" },
    { "--drive", type = "enum", values = { "ideal", "hdd", "smr" }, default = "ideal" },
    { "--until", type = "string", default = "40%,70%,80%,90%,95%,97%", doc = "three or more" },
    { "--churn", type = "string", default = "5s", doc = "how long at each level" },
    { "--idle", type = "string", default = "100s", doc = "at the end: GC's turn" },
    { "--seeds", type = "int", min = 1, max = 100, default = 1, doc = "four for a verdict" },
    { "--seed", type = "int", min = 0, default = 1, doc = "the first" },
    { "--resume", type = "bool", doc = "go on in DIR" },
  },
  run = run,
}
