-- knobs: tunables of a mounted filesystem: shown, set, set for the time of a command.
local brim = require "brim"
local command = require "brim.knobs.command"
local knobs = require "brim.knobs"

local function limits(e)
  if e.values then
    return table.concat(e.values, "|")
  end
  return e.max and ("%d..%d"):format(e.min, e.max) or ""
end

local function list(k)
  local all, lines = k:list(), {}
  for i, e in ipairs(all) do
    lines[i] = ("%-28s %-12s %-9s default %-9s %-16s %s"):format(e.name, e.value, e.unit,
      e.default ~= nil and e.default or "-", limits(e), e.doc)
  end
  return { knobs = all, text = table.concat(lines, "\n") }
end

local function restore()
  local all, lines, ok = knobs.restore(), {}, true
  for i, r in ipairs(all) do
    lines[i] = ("%s: %s (%s)"):format(r.mount_point, r.message, table.concat(r.names, ", "))
    ok = ok and r.ok
  end
  return { ok = ok, restored = all, text = #all > 0 and table.concat(lines, "\n")
    or "nothing is noted that could be brought back" }
end

local function options(root, keep)
  return root and { keep = keep, sysfs = root .. "/sys", proc = root .. "/proc",
    mountinfo = root .. "/proc/self/mountinfo" } or { keep = keep }
end

local function run(a, ctx)
  if a.restore then
    return restore()
  elseif not a.path then
    return nil, brim.error.usage("the knobs of what? 'brim knobs PATH', or --restore")
  end
  local set, words = command.split(a.words or {})
  local k <close> = assert(knobs.open(a.path, options(a.root, #words == 0)))
  if a.list or not a.preset and next(set) == nil then
    return list(k)
  end
  for name, v in pairs(a.preset and assert(knobs.preset(a.preset, k.target.filesystem)).knobs
    or {}) do
    set[name] = set[name] or v
  end
  if ctx.dry_run then
    return { set = set, text = "would set " .. brim.pretty.format(set) }
  end
  local changes = assert(k:set(set))
  for _, c in ipairs(changes) do
    ctx.log("%s: %s -> %s", c.name, c.before, c.after)
  end
  if #words == 0 then
    return { changes = changes }
  end
  local status = command.run(words)
  assert(k:close())
  return { ok = status == 0, changes = changes, status = status }
end

return brim.recipe {
  name = "knobs", doc = "Show or set tunables of a mounted filesystem, for good or for a command.",
  details = "brim knobs /mnt gc_min_sleep_time=1000 queue.scheduler=none -- COMMAND\n"
    .. "With a command all is as before when it ends, also by an error or a signal.",
  args = {
    { "path", type = "path", required = false, doc = "on the filesystem" },
    { "words", type = "any", many = true, doc = "NAME=VALUE ..., then a command" },
    { "--preset", type = "string", doc = "a set by name: mail, large-volume, urgent, lfs" },
    { "--list", type = "bool", doc = "show all that is here" },
    { "--root", type = "path", doc = "where sys and proc are, instead of /" },
    { "--restore", type = "bool", doc = "bring back what killed runs had set" },
  },
  run = run,
}
