-- mkfs.f2fs: the reference's command line and output; the writing is brim's.
local brim = require "brim"
local mkfs = require "brim.f2fs.mkfs"
local options = require "brim.f2fs.options"
local text = require "brim.f2fs.text"
local versions = require "brim.f2fs.versions"

-- An error of a target, in the words of this command line.
local function refusal(err)
  err.message = err.message:gsub("%-%-force", "-f")
  return nil, err
end

local function show(o, g, format, devices, ctx)
  if o.quiet then
    return
  end
  for _, line in ipairs(text.head(o, g.version)) do
    ctx.report("%s", line)
  end
  for _, line in ipairs(text.body(g, { wanted_sectors = o.wanted_sectors,
    wanted_sector_bytes = o.wanted_sector_bytes, kernel = format.kernel,
    quota = mkfs.quota_inodes(g), trimmed = format.trimmed and devices[1].kind ~= "image",
    total_sectors = devices[1].whole_bytes and devices[1].whole_bytes // g.sector_bytes })) do
    ctx.report("%s", line)
  end
end

local function run(words, ctx)
  local o, err = options.parse(words)
  if not o then
    return nil, err
  elseif o.print_version then
    local v = versions.of(o.compat)
    return { text = ("mkfs.f2fs %s (%s) (brim %s)"):format(v.full, v.date, brim.VERSION) }
  elseif o.print_help then
    return { text = "Usage: brim mkfs.f2fs [options] device [sectors], see brim help mkfs.f2fs" }
  end
  local devices, why = mkfs.look(o)
  if not devices then
    return refusal(why)
  end
  local format = mkfs.options(o, devices)
  format.kernel = brim.f2fs.kernel()
  local g, refused = brim.f2fs.geometry(format)
  if not g then
    return nil, refused
  end
  for _, warning in ipairs(g.warnings) do
    ctx.log("brim mkfs.f2fs: warning: %s", warning)
  end
  if not ctx.dry_run then
    local result, failed = mkfs.format(devices, { format = format, force = o.force,
      discard = not o.no_discard, run = ctx.run_opts })
    if not result then
      return refusal(failed)
    end
    show(o, g, format, devices, ctx)
    return result
  end
  show(o, g, format, devices, ctx)
  return { geometry = g }
end

return brim.recipe {
  name = "mkfs.f2fs",
  doc = "Make an F2FS as mkfs.f2fs does, with its command line; *.brim makes an image file.",
  details = "Options: -a -c -C -d -e -E -f -g -i -l -o -O -q -r -R -s -t -T -U -w -z -V as\n"
    .. "mkfs.f2fs has them; zoned devices (-m) are refused.\n--compat V: formulas of f2fs-tools V, "
    .. versions.NAMES .. "; default: " .. versions.DEFAULT .. ".\nTARGET is a device, a file, or "
    .. "an image file NAME.brim (with a number of sectors).",
  raw_args = true,
  run = run,
}
