-- lab: runs a script in a guest with a kernel of its own; lists the kernels; copies images.
local brim = require "brim"

local function list_kernels()
  local all, lines = brim.lab.kernels(), {}
  for i, k in ipairs(all) do
    lines[i] = ("%-9s %-10s %s%s"):format(k.name, k.version, k.path,
      k.modules and "" or " (no modules)")
  end
  return { kernels = all, text = #all > 0 and table.concat(lines, "\n")
    or "none: apt install user-mode-linux, or make oracles" }
end

local function disks(a)
  local list = {}
  for path in (a.disk or ""):gmatch "[^,]+" do
    list[#list + 1] = path
  end
  return list
end

local function run_script(a, ctx)
  local r, err = brim.lab.run { kernel = a.kernel, script = a.script, args = a.words or {},
    disks = disks(a), results = a.results, mem = a.mem, timeout_s = a.timeout_s,
    on_line = function(line)
      ctx.report("%s", line)
      io.stdout:flush()
    end }
  if not r then
    return nil, err
  end
  if r.message then
    ctx.log("brim lab: %s: status %d: %s", a.script, r.status, r.message)
  end
  if r.disk_error then
    ctx.log("brim lab: a disk failed: %s", r.disk_error)
  end
  ctx.log("brim lab: Linux %s, %.1f s, results in %s", r.kernel, r.elapsed_s, r.results)
  return r
end

local function run(a, ctx)
  if a.what == "kernels" then
    return list_kernels()
  elseif a.what == "clean" then
    local n = brim.lab.sweep()
    return { removed = n, text = ("removed what %d runs had left"):format(n) }
  elseif a.what ~= "run" then
    return nil, brim.error.usage("lab what? expected run, kernels or clean, got '%s'", a.what)
  elseif not a.script then
    return nil, brim.error.usage "run what? 'brim lab run SCRIPT'"
  elseif ctx.dry_run then
    return { text = ("would run %s on %s"):format(a.script, a.kernel) }
  end
  return run_script(a, ctx)
end

return brim.recipe {
  name = "lab", doc = "Run a script in a guest with a kernel of its own: real F2FS, no root.",
  details = "brim lab run SCRIPT [WORDS] --kernel uml-6.1 --disk f2fs.img\n"
    .. "brim lab kernels     which are here\n"
    .. "brim lab clean       remove what killed runs left; each run does so, too",
  args = {
    { "what", type = "string", required = true, doc = "run, kernels or clean" },
    { "script", type = "path", required = false, doc = "a Lua file" },
    { "words", type = "any", many = true, doc = "for the script" },
    { "--kernel", type = "string", default = "uml", doc = "uml-6.1, uml (the newest) or a path" },
    { "--disk", type = "string", doc = "images, with commas between" },
    { "--results", type = "path", doc = "directory that the guest may write; default: a new one" },
    { "--mem", type = "bytes", default = "512m", doc = "memory of the guest" },
    { "--timeout-s", type = "number", default = 600, min = 1, doc = "it is ended after so long" },
  },
  run = run,
}
