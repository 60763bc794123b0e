-- verify: does a target still hold what an image file's plan wrote? It never writes.
local brim = require "brim"
local verify = require "brim.verify"

-- JSON has no unsigned integers: what is past 2^63-1 goes as text.
local function exact(v)
  if math.type(v) == "integer" and v < 0 then
    return ("%d%d"):format((v >> 1) // 5, v - ((v >> 1) // 5) * 10)
  end
  return v
end

local function run(a, ctx)
  ctx.json = ctx.json or a.json
  local o = { max_ios = a.max_ios }
  for name, v in pairs(ctx.run_opts) do
    o[name] = v
  end
  local result, err = verify.run(a.plan, a.target, o)
  if not result then
    return nil, err
  end
  for _, d in ipairs(result.differences) do
    d.first.expected, d.first.found = exact(d.first.expected), exact(d.first.found)
  end
  result.ok = result.same
  return result
end

return brim.recipe {
  name = "verify",
  doc = "Compare a target with the image file it was written from; say what differs.",
  details = "Exit status: 0 the same, 1 different, 2 not comparable.",
  args = {
    { "plan", type = "path", required = true, doc = "image file (*.brim) that was written" },
    { "target", type = "path", required = true, doc = "a device, a file or an image file" },
    { "--max-ios", type = "int", default = 1024, min = 1, max = 65536,
      doc = "I/Os that differ to look into" },
    { "--json", type = "bool", doc = "print the result as JSON" },
  },
  run = run,
}
