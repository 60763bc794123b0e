-- brim.experiment.explain: what brim.f2fs.explain says of each variant that the lab ran, beside
-- what was measured: the interval of an idle filesystem's GC. Called by brim.experiment. Pure.
-- Seconds.
local drive = require "brim.drive"
local f2fs = require "brim.f2fs"
local knobs = require "brim.knobs"
local places = require "brim.experiment.places"

local M = {}

local CADENCE <const> = "idle, time between GC calls"
local AT <const> = { 0.5, 0.8, 0.9, 0.95, 0.97, 0.99 }

-- Guests are made to behave as large volumes first; the variant's knobs come over that.
local function settings(v)
  local set, err = places.knobs(v)
  if not set then
    return nil, err
  end
  for name, value in pairs(knobs.preset("large-volume").knobs) do
    set[name] = set[name] == nil and value or set[name]
  end
  return set
end

-- Knobs that this kernel lacks make one line instead of a text.
local function text_of(v, kernel)
  local set, err = settings(v)
  local g = set and f2fs.geometry(places.format_options(v))
  local e
  if g then
    e, err = f2fs.explain.explain { kernel = kernel, geometry = g, knobs = set, fullness = AT }
  end
  return e and e.text or tostring(err)
end

local function measured(name, runs)
  local lines = {}
  for _, r in ipairs(runs) do
    for _, m in ipairs(r.metrics) do
      if r.variant == name and m.name == CADENCE then
        lines[#lines + 1] = ("measured, seed %d: a call of background GC each %.1f s while idle")
          :format(r.seed, m.value)
      end
    end
  end
  return lines
end

-- The knobs as the kernel gave them back, and the drive with what its replica could not keep.
local function set_up(v, result)
  local lines = {}
  for _, change in ipairs(result.knobs or {}) do
    lines[#lines + 1] = ("set: %s %s instead of %s"):format(change.name, tostring(change.after),
      tostring(change.before))
  end
  lines[#lines + 1] = v.drive and drive(v.drive):explain() or nil
  return lines
end

---Explain variants of which a cell finished in the lab.
---@param variants brim.ExperimentVariant[]
---@param runs table[] of Experiment:runs
---@return { name: string, text: string }[]
function M.variants(variants, runs)
  local list = {}
  for _, v in ipairs(variants) do
    local result
    for _, r in ipairs(runs) do
      result = r.variant == v.name and r.cell.result.kernel and r.cell.result or result
    end
    if result then
      local lines = { text_of(v, result.kernel) }
      for _, more in ipairs { measured(v.name, runs), set_up(v, result) } do
        table.move(more, 1, #more, #lines + 1, lines)
      end
      list[#list + 1] = { name = v.name, text = table.concat(lines, "\n") }
    end
  end
  return list
end

return M
