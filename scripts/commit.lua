-- commit: an image and its overlay become a new image; or an overlay goes into what it lies over.
local brim = require "brim"

local function into_target(a)
  local base <close>, err = brim.device.open(a.target, { write = true, force = true })
  if not base then
    return nil, err
  end
  local overlay <close>, why = brim.device.overlay(base, a.overlay, { resume = true })
  if not overlay then
    return nil, why
  end
  local info = overlay:overlay_info()
  local ok, failed = overlay:commit()
  if not ok then
    return nil, failed
  end
  return { data_bytes = info.data_bytes, zero_bytes = info.zero_bytes,
    text = ("%s written into %s; the overlay is empty"):format(brim.bytes.format(info.data_bytes),
      a.target) }
end

local function into_image(a)
  local overlay <close>, err = brim.device.open(a.target, { overlay = a.overlay })
  if not overlay then
    return nil, err
  end
  local info = overlay:overlay_info()
  local ok, why = overlay:save_image(a.to)
  if not ok then
    return nil, why
  end
  return { data_bytes = info.data_bytes, zero_bytes = info.zero_bytes, image = a.to,
    text = ("saved %s: %s with what was written to it"):format(a.to, a.target) }
end

return brim.recipe {
  name = "commit",
  doc = "Make a new image of an image and its overlay, or write an overlay into its target.",
  args = {
    { "target", type = "path", required = true, doc = "what the overlay was made for" },
    { "--overlay", type = "path", required = true, doc = "its file" },
    { "--to", type = "path", doc = "the new image; without it the target itself is written" },
  },
  destructive = function(a) return not a.to end,
  run = function(a, ctx)
    if ctx.dry_run then
      local overlay <close>, err = brim.device.open(a.target, { overlay = a.overlay })
      local info = overlay and overlay:overlay_info()
      return info and { text = ("would write %s and zero %s"):format(
        brim.bytes.format(info.data_bytes), brim.bytes.format(info.zero_bytes)) }, err
    end
    if a.to then
      return into_image(a)
    end
    return into_target(a)
  end,
}
