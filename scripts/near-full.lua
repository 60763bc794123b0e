-- near-full: speed against fullness: fills a filesystem to levels, churns at each, shows the curve.
local brim = require "brim"
local command = require "brim.fill.command"

local function run(a, ctx)
  local w, err = command.workload(a)
  local levels, why = command.levels(a["until"])
  local seconds, reason = command.duration(a.churn)
  if not w or not levels or not seconds then
    return nil, err or why or reason
  end
  for _, level in ipairs(levels) do
    w:fill(level)
    if seconds > 0 then
      w:churn { seconds = seconds }
    end
  end
  if ctx.dry_run then
    return command.plan(a.path, w)
  end
  local o, clear = command.run_options(a, ctx)
  local result, failed = w:run(a.path, o)
  clear()
  if not result then
    return nil, failed
  end
  if a.clean and not result.stopped then
    local ok, trouble = brim.fill.clean(a.path)
    if not ok then
      return nil, trouble
    end
  end
  return command.finish(a, result)
end

return brim.recipe {
  name = "near-full",
  doc = "Fill a filesystem to levels, churn at each, and show speed against fullness.",
  details = "brim near-full PATH --until 50%,80%,90%,enospc --churn 30s --report out.html\n"
    .. "PATH is a directory of the filesystem, best its mount point. Fullness is what statfs says\n"
    .. "after a sync. 'brim verify-fill PATH' compares every byte, 'brim fill --clean PATH'\n"
    .. "removes what was made.",
  args = command.args {
    { "path", type = "path", required = true, doc = "a directory of the filesystem" },
    { "--until", type = "string", default = "97%", doc = "levels: 50%,80%,enospc" },
    { "--churn", type = "string", default = "30s", doc = "how long at each level; 0 for none" },
    { "--clean", type = "bool", doc = "remove the files at the end" },
  },
  run = run,
}
