-- mkfs.xfs: the reference's command line and output; the writing is brim's.
local brim = require "brim"
local mkfs = require "brim.xfs.mkfs"
local options = require "brim.xfs.options"
local versions = require "brim.xfs.versions"

-- An error of a target, in the words of this command line.
local function refusal(err)
  err.message = err.message:gsub("%-%-force", "-f")
  return nil, err
end

local function run(words, ctx)
  local o, err = options.parse(words)
  if not o then
    return nil, mkfs.usage(err)
  elseif o.print_version then
    local full = versions.of(o.compat).full
    return { text = ("mkfs.xfs version %s (brim %s)"):format(full, brim.VERSION) }
  end
  local device, why = mkfs.look(o.target, o.force)
  if not device then
    return refusal(why)
  elseif mkfs.is_image(o.target) and not o.size_bytes then
    return nil, mkfs.usage { message = o.target .. ": an image file needs its size, -d size=..." }
  elseif device.is_missing and not o.file and not mkfs.writes_nothing(ctx.run_opts) then
    return nil, mkfs.usage { message = o.target .. " does not exist; -d file,size=... makes one" }
  end
  local format, ignored = mkfs.options(o, device)
  local g, refused = brim.xfs.geometry(format)
  if not g then
    return nil, mkfs.usage(refused)
  end
  table.insert(g.warnings, ignored)
  for _, warning in ipairs(g.warnings) do
    ctx.log("brim mkfs.xfs: warning: %s", warning)
  end
  local function show()
    if not o.quiet then
      if o.names_unsupported then
        ctx.report("Filesystems formatted with --unsupported are not supported!!")
      end
      ctx.report("%s", brim.xfs.text(g, o.target):sub(1, -2))
    end
  end
  if o.dry_run or ctx.dry_run then
    show()
    return { geometry = g }
  end
  local result, failed = mkfs.format(o.target, { format = format, force = o.force, create = o.file,
    discard = not o.no_discard, run = ctx.run_opts,
    ready = function(_, discarded)
      show()
      if discarded and not o.quiet then
        ctx.report("Discarding blocks...Done.")
      end
    end })
  if not result then
    return refusal(failed)
  end
  return result
end

return brim.recipe {
  name = "mkfs.xfs",
  doc = "Make an XFS as mkfs.xfs does, with its command line; *.brim makes an image file.",
  details = "Options: -b -d -i -l -m -n -s -L -f -C -K -N -q -V as mkfs.xfs has them.\n"
    .. "--compat V: defaults and formulas of xfsprogs V, " .. versions.NAMES .. "; default: "
    .. versions.DEFAULT .. ".\nTARGET is a device, a file, or an image file NAME.brim (with -d "
    .. "size=).",
  raw_args = true,
  run = run,
}
