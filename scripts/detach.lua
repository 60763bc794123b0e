-- detach: takes away what attach made.
local attach = require "brim.attach"
local brim = require "brim"

local function run(a, ctx)
  if not a.name and not a.all then
    return nil, brim.error.usage("detach what? Something of 'brim attach --list', or --all")
  end
  local list = attach.list()
  if not a.all then
    local found, err = attach.find(a.name)
    if not found then
      return nil, err
    end
    list = { found }
  end
  for i = #list, 1, -1 do
    if ctx.dry_run then
      ctx.report("would detach %s", list[i].mount or list[i].loop or list[i].file)
    else
      local ok, err = attach.undo(list[i])
      if not ok then
        return nil, err
      end
    end
  end
  return { detached = list }
end

return brim.recipe {
  name = "detach",
  doc = "Undo 'brim attach': unmount, free the loop device, end nbdfuse and nbdkit.",
  args = {
    { "name", type = "path", required = false,
      doc = "its directory, file, loop device or target" },
    { "--all", type = "bool", doc = "everything that is attached" },
  },
  run = run,
}
