-- The corruption campaign on one image, side by side with xfs_repair -n. Called by
-- spec/campaign/run (make campaign), or by hand:
--   spec/campaign/age.sh /tmp/used 7 -m rmapbt=1
--   build/brim run spec/campaign/campaign.lua /tmp/used --count=1000 --seed=1
-- Prints the seed and the kind of each miss: xfs_repair objects, brim check does not.
package.path = "./?.lua;" .. package.path
local brim = require "brim"
local corrupt = require "spec.campaign.corrupt"

local function status_of(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1"))
  local out = pipe:read("a")
  local _, how, status = pipe:close()
  return how == "signal" and 128 + status or status, out
end

local function quote(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function judge(a, path)
  local ours, said = status_of(("timeout 60 %s check xfs %s"):format(a.brim, quote(path)))
  local theirs, said2 = status_of(("timeout 300 %s -n -P -f %s"):format(
    quote(a.repair), quote(path)))
  return ours, theirs, said, said2
end

local function tally(t, name, ours, theirs)
  t[name] = t[name] or { runs = 0, both = 0, missed = 0, ours_only = 0, neither = 0, broken = 0 }
  local k = t[name]
  k.runs = k.runs + 1
  local which = ours > 2 and "broken" or ours ~= 0 and (theirs ~= 0 and "both" or "ours_only")
    or theirs ~= 0 and "missed" or "neither"
  k[which] = k[which] + 1
  return which
end

local function run(a, ctx)
  local list, sb = corrupt.list(a.image)
  local file <close> = assert(io.open(a.image, "rb"))
  local old <close> = io.open(a.image .. ".old", "rb")
  local image, tallies, lines = { list = list, sb = sb, file = file, old = old }, {}, {}
  local names = a.forged and { "forged" } or a.hostile and { "random" } or nil
  local work = a.image .. (".work-%d"):format(a.seed)
  assert(status_of(("cp --sparse=always %s %s"):format(quote(a.image), quote(work))) == 0)
  for seed = a.seed, a.seed + a.count - 1 do
    local writes, what, name = corrupt.make(image, seed, names)
    local undo = corrupt.apply(work, writes)
    local ours, theirs, said, said2 = judge(a, work)
    corrupt.apply(work, undo)
    local which = tally(tallies, name, ours, theirs)
    if which == "missed" or which == "broken" or (a.all and which == "ours_only") then
      lines[#lines + 1] = ("%s: seed %d, %s (brim %d, xfs_repair %d)"):format(which, seed, what,
        ours, theirs)
      print(lines[#lines])
      if a.verbose then
        print(said, said2)
      end
    end
  end
  os.remove(work)
  for name, k in pairs(tallies) do
    lines[#lines + 1] = ("%-8s %4d runs: both %d, missed %d, brim only %d, neither %d, broken %d")
      :format(name, k.runs, k.both, k.missed, k.ours_only, k.neither, k.broken)
  end
  ctx.log("%d structures", #list)
  local missed, broken = 0, 0
  for _, k in pairs(tallies) do
    missed, broken = missed + k.missed, broken + k.broken
  end
  -- Of hostile bytes, xfs_repair also tells what is no part of a group's structures.
  local ok = broken == 0 and (missed == 0 or a.hostile == true)
  return { ok = ok, text = table.concat(lines, "\n"), tallies = tallies }
end

return brim.recipe {
  name = "campaign",
  doc = "Corrupt an XFS image again and again; compare brim check with xfs_repair -n.",
  args = {
    { "image", type = "path", required = true, doc = "of age.sh; IMAGE.old beside it" },
    { "--count", type = "int", default = 100, min = 1, doc = "corruptions" },
    { "--seed", type = "int", default = 1, doc = "of the first; the others follow" },
    { "--brim", type = "path", default = "build/brim", doc = "to be tried" },
    { "--repair", type = "path", default = "xfs_repair", doc = "the judge" },
    { "--hostile", type = "bool", doc = "random bytes, with checksums made right" },
    { "--forged", type = "bool", doc = "bits of records, with checksums made right" },
    { "--all", type = "bool", doc = "print also what only brim finds" },
    { "--verbose", type = "bool", doc = "what both say of a miss" },
  },
  run = run,
}
