-- manifest: what a real tree is like, to make filesets of: sizes, depths, extensions, ages.
local brim = require "brim"

local function run(a, ctx)
  local m, err = brim.manifest.take(a.dir)
  if not m then
    return nil, err
  end
  m.text = brim.manifest.text(m)
  if a.output then
    local file, why = io.open(a.output, "w")
    if not file then
      return nil, brim.error.usage("%s", why)
    end
    local text = m.text
    m.text = nil
    local ok, trouble = file:write(brim.json.encode(m, { indent = true }), "\n")
    local closed, late = file:close()
    if not ok or not closed then
      return nil, brim.error.new { code = "EIO", op = "write", path = a.output,
        message = ("%s: %s"):format(a.output, trouble or late) }
    end
    m.text = ("%s\nkept in %s: brim near-full PATH --manifest %s"):format(text, a.output, a.output)
  end
  if ctx.json then
    m.text = nil
  end
  return m
end

return brim.recipe {
  name = "manifest",
  doc = "Record what a tree is like: sizes, depths, extensions, ages; no content.",
  details = "The result describes files to fill a filesystem with: brim near-full --manifest FILE.",
  args = {
    { "dir", type = "path", required = true, doc = "the directory" },
    { "--output", type = "path", doc = "keep it in this file, as JSON" },
  },
  run = run,
}
