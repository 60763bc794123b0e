-- f2fs-explain: what a knob set makes F2FS do at each fullness, of a size or of what is mounted.
local brim = require "brim"
local explain = require "brim.f2fs.explain"

local function fractions(text)
  local list = {}
  for word in text:gmatch "[^,]+" do
    local n = tonumber(word)
    if not n or n < 0 or n > 100 then
      return nil, brim.error.usage("--fullness: '%s' is no percentage of 0 to 100", word)
    end
    list[#list + 1] = n / 100
  end
  return list
end

local function settings(words)
  local set = {}
  for _, word in ipairs(words) do
    local name, value = word:match "^([%w_]+)=(.*)$"
    if not name then
      return nil, brim.error.usage("'%s' is no NAME=VALUE", word)
    end
    set[name] = value
  end
  return set
end

-- Of a size, or of what is mounted; knobs given on top.
local function source(a)
  if a.size then
    return { kernel = a.kernel or "6.12", geometry = assert(brim.f2fs.geometry {
      size_bytes = a.size, section_segments = a.section, compat = a.compat,
      overprovision_percent = a.overprovision }) }
  elseif not a.path then
    return nil, brim.error.usage("explain what? --size SIZE, or a path on a mounted F2FS")
  end
  return explain.mounted(a.path, a.root and { sysfs = a.root .. "/sys", proc = a.root .. "/proc",
    mountinfo = a.root .. "/proc/self/mountinfo" })
end

local function run(a)
  -- With --size there is no path: the first word is a setting.
  local words = a.words or {}
  if a.path and a.size then
    table.insert(words, 1, a.path)
  end
  local o = assert(source(a))
  o.knobs = assert(settings(words))
  o.kernel, o.preset = a.kernel or o.kernel, a.preset
  o.fullness = assert(fractions(a.fullness))
  o.dirty_segments = a.dirty or o.dirty_segments
  local e, err = explain.explain(o)
  return e and { kernel = e.kernel, statements = e.statements, text = e.text }, err
end

return brim.recipe {
  name = "f2fs-explain",
  doc = "Say what knobs make F2FS do at each fullness, by the kernel's rules.",
  details = "brim f2fs-explain --size 8t --section 128 --preset mail --kernel 4.2\n"
    .. "brim f2fs-explain /mnt/f2fs gc_max_sleep_time=5000",
  args = {
    { "path", type = "string", required = false, doc = "on a mounted F2FS" },
    { "words", type = "any", many = true, doc = "NAME=VALUE, over preset and defaults" },
    { "--size", type = "bytes", doc = "of a volume that mkfs.f2fs makes, instead of a path" },
    { "--section", type = "int", min = 1, default = 1, doc = "its segments to a section" },
    { "--overprovision", type = "number", doc = "its overprovision in percent" },
    { "--compat", type = "string", doc = "release of mkfs.f2fs: 1.15, 1.16" },
    { "--preset", type = "string", doc = "knobs by name: mail, large-volume, urgent, lfs" },
    { "--kernel", type = "string", doc = "its version; default: what runs, with --size 6.12" },
    { "--fullness", type = "string", default = "50,80,90,95,97,99", doc = "percentages" },
    { "--dirty", type = "int", min = 0, doc = "dirty segments whose cleaning is to be timed" },
    { "--root", type = "path", doc = "where sys and proc are, instead of /" },
  },
  run = run,
}
