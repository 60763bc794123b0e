-- attach: a target as a file, for root as a loop device, mounted if asked to.
local attach = require "brim.attach"
local brim = require "brim"
local process = require "brim.process"

local function line(a)
  local parts = { a.target }
  for _, key in ipairs { "overlay", "file", "loop", "mount" } do
    if a[key] then
      parts[#parts + 1] = ("  %-8s %s"):format(key, a[key])
    end
  end
  if a.nbdkit and not process.is_alive(a.nbdkit) then
    parts[#parts + 1] = "  nbdkit has ended"
  end
  parts[#parts + 1] = ("  undo     brim detach %s"):format(a.mount or a.loop or a.file)
  return table.concat(parts, "\n")
end

local function list()
  local all = attach.list()
  local lines = {}
  for i, a in ipairs(all) do
    lines[i] = line(a)
  end
  return { attached = all, text = #all > 0 and table.concat(lines, "\n") or "nothing is attached" }
end

local function run(a, ctx)
  if a.list then
    return list()
  elseif not a.target then
    return nil, brim.error.usage("attach what? 'brim attach TARGET', or --list")
  elseif ctx.dry_run then
    local look, err = require("brim.serve").look(a.target, { readonly = true })
    return look and { text = ("would attach %s (%s)"):format(look.target,
      brim.bytes.format(look.size_bytes)) }, err
  end
  local advice = a.mount and require("brim.xfs.advice").mount(a.target)
  if advice then
    ctx.log("brim attach: %s", advice)
  end
  local loop = nil
  if a.no_loop then
    loop = false
  end
  local made, err = attach.attach(a.target, { overlay = a.overlay, readonly = a.readonly,
    mount = a.mount, mount_options = a.mount_options, sector_bytes = a.sector_bytes, loop = loop })
  if not made then
    return nil, err
  end
  made.text = line(made)
  return made
end

return brim.recipe {
  name = "attach",
  doc = "Make a file, a loop device, a mount of an image, with an overlay for what is written.",
  details = "Uses nbdkit and nbdfuse; loop device and mount need root. 'brim detach' undoes it.",
  args = {
    { "target", type = "path", required = false, doc = "an image, a file or a device" },
    { "--overlay", type = "path",
      doc = "file that takes what is written; default for an image: TARGET.overlay" },
    { "--mount", type = "path", doc = "mount it at this directory, made when missing" },
    { "--mount-options", type = "string", doc = "as for mount -o" },
    { "--readonly", type = "bool", doc = "nothing is written" },
    { "--no-loop", type = "bool", doc = "the file only, also as root" },
    { "--sector-bytes", type = "int", min = 512, max = 65536, doc = "of the loop device" },
    { "--list", type = "bool", doc = "show what is attached" },
  },
  run = run,
}
