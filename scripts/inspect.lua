-- inspect: any structure of an XFS or F2FS of any size, in milliseconds. It never writes.
local brim = require "brim"
local kinds = require "brim.kinds"

local function run(a, ctx)
  ctx.json = ctx.json or a.json
  local kind = kinds.of(a.target)
  local command = kinds.inspect(kind)
  local fs <close>, err = brim[kind].open(a.target)
  if not fs then
    return nil, err
  end
  local words = { a.arg, a.arg2 }
  local view
  view, err = command.show(fs, a.what, words, { block = a.block })
  if not view then
    return nil, err
  end
  return command.result(view, { raw = a.raw })
end

return brim.recipe {
  name = "inspect",
  doc = "Show any structure of an XFS or F2FS: superblock, tables, trees, inodes, log, segments.",
  details = "Of an XFS, " .. kinds.inspect("xfs").help() .. "\n" .. kinds.inspect("f2fs").help(),
  args = {
    { "target", type = "path", required = true, doc = "a device, a file or an image file" },
    { "what", type = "string", default = "geometry", doc = "the structure, see below" },
    { "arg", type = "string", required = false, doc = "which one" },
    { "arg2", type = "string", required = false, doc = "LEN of bytes" },
    { "--block", type = "int", min = 0, doc = "of a tree: this block of the group, not the root" },
    { "--raw", type = "bool", doc = "show the bytes" },
    { "--json", type = "bool", doc = "print the result as JSON" },
  },
  run = run,
}
