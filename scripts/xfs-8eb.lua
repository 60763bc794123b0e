-- xfs-8eb: the XFS that mkfs takes a working day for.
local brim = require "brim"
local check = require "brim.xfs.check"
local mkfs = require "brim.xfs.mkfs"

local function report(ctx, fmt, r)
  ctx.report(fmt, r.groups, r.wall_s, 1e6 * (r.run_user_cpu_s + r.run_system_cpu_s) / r.groups,
    r.engine)
end

local function read_back(target, g, ctx)
  local r, err = check.headers(target, g, ctx.run_opts)
  if not r or r.stopped then
    return r, err
  end
  report(ctx, "read %d groups back in %.1f s (%.2f us CPU each, engine %s)", r)
  for _, m in ipairs(r.mismatches) do
    ctx.report("group %d, %s.%s at %d: expected 0x%x, found 0x%x", m.group, m.piece, m.what,
      m.off_bytes, m.expected, m.found)
  end
  ctx.report(r.mismatch_count == 0 and "every magic number, group number and CRC is right"
    or "%d values are wrong", r.mismatch_count)
  return r
end

local function run(a, ctx)
  local target, device, err = a.target or a.image, { size_bytes = a.size, is_file = true }, nil
  if a.target then
    device, err = mkfs.look(a.target, a.force)
  end
  if not device then
    return nil, err
  end
  local format = { size_bytes = a.size, device = device, uuid = a.uuid }
  local g, refused = brim.xfs.geometry(format)
  if not g then
    return nil, mkfs.usage(refused, { ["-d size"] = "--size", ["-m uuid"] = "--uuid" })
  elseif ctx.dry_run then
    local p <close> = assert(brim.xfs.format(format))
    return { geometry = p.geometry, plan = p:totals(),
      text = brim.xfs.text(p.geometry, target) .. tostring(p) }
  end
  local written, why = mkfs.format(target, { format = format, force = a.force, create = true,
    discard = true, run = ctx.run_opts,
    ready = function(p) ctx.report("%s", brim.xfs.text(p.geometry, target):sub(1, -2)) end })
  if not written or written.stopped then
    return written, why
  elseif a.target or mkfs.writes_nothing(ctx.run_opts) then
    report(ctx, "wrote %d groups in %.1f s (%.2f us CPU each, engine %s)", written)
  else
    ctx.report("saved %s: the whole filesystem, rendered when it is read", target)
  end
  if mkfs.writes_nothing(ctx.run_opts) then
    return written
  end
  local checked, failed = read_back(target, written.geometry, ctx)
  if not checked then
    return nil, failed
  end
  written.checked, written.ok = checked, checked.mismatch_count == 0
  return written
end

return brim.recipe {
  name = "xfs-8eb",
  doc = "Make an 8 EiB XFS (8,387,585 groups) and read all of it back.",
  args = {
    { "--target", type = "path", doc = "write to this device or sparse file instead" },
    { "--image", type = "path", default = "8eb.brim", check = mkfs.check_name,
      doc = "image file to make, NAME.brim" },
    { "--size", type = "bytes", default = "8191p", min = 16 << 20, doc = "size of the filesystem" },
    { "--uuid", type = "string", doc = "UUID; default a random one" },
    { "--force", type = "bool", doc = "overwrite a target that carries a filesystem" },
  },
  destructive = function(a)
    local there <close> = a.target and brim.device.open(a.target, { raw = true })
    return there and there:info().size_bytes > 0 or false
  end,
  run = run,
}
