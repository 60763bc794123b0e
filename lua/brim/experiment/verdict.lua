-- brim.experiment.verdict: variants against the first over seeds, metric by metric, in numbers and
-- in words that say how sure it is. Called by brim.experiment. Pure.
local axis = require "brim.plot.axis"
local stats = require "brim.experiment.stats"

local M = {}

---@class brim.ExperimentLine
---@field metric string
---@field variant string
---@field baseline string
---@field unit string
---@field n_variant integer runs
---@field n_baseline integer
---@field comparison? brim.StatsComparison nil where one of the two has no run with this metric
---@field text string

-- 1.84 of 1.8374, at least two digits.
local function times(v)
  return v >= 100 and ("%.0f"):format(v) or v >= 10 and ("%.1f"):format(v) or ("%.2f"):format(v)
end

-- "1.8x [1.6, 2.1] faster", turned so that the number is above one.
local function said(c, words, unit)
  local value, low, high = c.value, c.low, c.high
  if c.kind == "ratio" then
    local is_less = value < 1
    if is_less then
      value, low, high = 1 / value, 1 / high, 1 / low
    end
    return ("%s× [%s, %s] %s"):format(times(value), times(low), times(high),
      words[is_less and 2 or 1])
  end
  local is_less = value < 0
  if is_less then
    value, low, high = -value, -high, -low
  end
  return ("%s [%s, %s] %s"):format(axis.text(value, unit), axis.text(low, unit),
    axis.text(high, unit), words[is_less and 2 or 1])
end

---Say a comparison in words.
---@param c brim.StatsComparison
---@param words string[] { "faster", "slower" }
---@param unit string
---@return string
function M.say(c, words, unit)
  local what = said(c, words, unit)
  local effect = ("Cliff's delta %+.2f, p = %.2g"):format(c.delta, c.p)
  if c.n_a < 2 or c.n_b < 2 then
    return ("%s, from one run: noise is unknown"):format(what:gsub(" %[.-%]", ""))
  elseif c.verdict == "different" then
    return ("%s (%s)"):format(what, effect)
  elseif c.verdict == "undecided" then
    return ("%s in these runs; too few to tell it from chance (%s, at least %.2g with %d and %d "
      .. "runs)"):format(what, effect, c.p_least, c.n_a, c.n_b)
  elseif c.value == (c.kind == "ratio" and 1 or 0) and c.low == c.high then
    return "the same in all runs"
  end
  return ("no difference beyond noise: %s (%s)"):format(what, effect)
end

-- Values of a metric by variant, and metrics in the order they first come.
local function gather(runs)
  local order, by = {}, {}
  for _, run in ipairs(runs) do
    for _, m in ipairs(run.metrics) do
      if not by[m.name] then
        by[m.name] = { metric = m, values = {} }
        order[#order + 1] = by[m.name]
      end
      local values = by[m.name].values
      values[run.variant] = values[run.variant] or {}
      table.insert(values[run.variant], m.value)
    end
  end
  return order
end

local function line_of(entry, baseline, variant, seed)
  local a, b = entry.values[baseline] or {}, entry.values[variant] or {}
  local line = { metric = entry.metric.name, unit = entry.metric.unit, variant = variant,
    baseline = baseline, n_baseline = #a, n_variant = #b }
  if #a == 0 or #b == 0 then
    line.text = ("measured of %s only: %s"):format(#a == 0 and variant or baseline,
      axis.text(stats.mean(#a == 0 and b or a), line.unit))
    return line
  end
  line.comparison = stats.compare(a, b, { seed = seed })
  line.text = M.say(line.comparison, entry.metric.words, entry.metric.unit)
  return line
end

---Compare variants with the first.
---@param runs { variant: string, metrics: brim.ExperimentMetric[] }[] one a finished cell
---@param variants string[] names, the baseline first
---@param seed? integer of the bootstrap
---@return brim.ExperimentLine[]
function M.lines(runs, variants, seed)
  local lines = {}
  for _, entry in ipairs(gather(runs)) do
    for i = 2, #variants do
      if entry.values[variants[1]] or entry.values[variants[i]] then
        lines[#lines + 1] = line_of(entry, variants[1], variants[i], seed)
      end
    end
  end
  return lines
end

---The lines as cells of a table: metric, means, what is to be said.
---@param lines brim.ExperimentLine[]
---@return string[] heads
---@return string[][] rows
function M.rows(lines)
  local rows = {}
  for i, l in ipairs(lines) do
    local c = l.comparison
    rows[i] = { l.metric, c and axis.text(c.mean_a, l.unit) or "–", l.variant,
      c and axis.text(c.mean_b, l.unit) or "–", l.text }
  end
  return { "metric", lines[1] and lines[1].baseline or "baseline", "variant", "its mean",
    "against " .. (lines[1] and lines[1].baseline or "it") }, rows
end

return M
