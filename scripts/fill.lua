-- fill: fills a filesystem with files that follow from a seed; goes on with a fill that was
-- interrupted; removes one.
local brim = require "brim"
local bytes = require "brim.bytes"
local command = require "brim.fill.command"

-- What is to be reached: one of --to, --free, --files, --bytes.
local function target(a)
  if a.free or a.files or a.bytes then
    return { to = a.to, free = a.free, files = a.files, bytes = a.bytes }
  end
  return a.to or "97%"
end

local function finish(a, result, err)
  if not result then
    return nil, err
  end
  return command.finish(a, result)
end

local function run(a, ctx)
  if a.clean then
    if ctx.dry_run then
      return { text = ("would remove the fill of %s"):format(a.path) }
    end
    local ok, err = brim.fill.clean(a.path)
    local usage = ok and require("brim.core").usage(a.path)
    return ok and { text = ("removed the fill of %s; %s free"):format(a.path,
      bytes.about(usage.free_bytes)) } or nil, err
  end
  local o, clear = command.run_options(a, ctx)
  if a.resume then
    local result, err = brim.fill.resume(a.path, o)
    clear()
    return finish(a, result, err)
  end
  local w, why = command.workload(a)
  if not w then
    return nil, why
  end
  local ok, wrong = pcall(w.fill, w, target(a))
  if not ok then
    return nil, brim.error.usage("%s", (tostring(wrong):gsub("^.-brim%.fill: ", "")))
  elseif ctx.dry_run or a.dry_run then
    return command.plan(a.path, w)
  end
  local result, err = w:run(a.path, o)
  clear()
  return finish(a, result, err)
end

return brim.recipe {
  name = "fill",
  doc = "Fill a filesystem with files that follow from a seed.",
  details = "Until 97 % unless told otherwise. Ctrl-C stops cleanly; --resume goes on, after a\n"
    .. "crash too. 'brim verify-fill PATH' compares every byte; --clean removes the files.",
  args = command.args {
    { "path", type = "path", required = true, doc = "a directory of the filesystem" },
    { "--to", type = "string", doc = "97%, or enospc: until not one block fits" },
    { "--free", type = "bytes", doc = "until so much is free" },
    { "--files", type = "int", min = 1, doc = "so many files" },
    { "--bytes", type = "bytes", doc = "files of so much in all" },
    { "--resume", type = "bool", doc = "go on with a fill that was interrupted" },
    { "--clean", type = "bool", doc = "remove a fill" },
    { "--dry-run", type = "bool", doc = "say what would be done" },
  },
  run = run,
}
