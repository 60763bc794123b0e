-- brim.experiment.stats: is a difference more than noise? Means with bootstrap intervals, the exact
-- Mann-Whitney test, Cliff's delta. Called by experiment.verdict and scripts. Pure: what is drawn
-- follows from a seed. Samples are lists of numbers, one a run.
local M = {}

local RESAMPLES <const> = 4000
local LEVEL <const>, SEED <const> = 0.95, 1
local ALPHA <const> = 0.05

---@class brim.StatsComparison
---@field n_a integer
---@field n_b integer
---@field mean_a number
---@field mean_b number
---@field kind "ratio"|"difference" of b to a; a difference where not all values are above 0
---@field value number
---@field low number of the interval
---@field high number
---@field delta number Cliff's: 1 where all of b are above all of a
---@field p number of the exact test, two-sided
---@field p_least number the least it can be with so many runs
---@field verdict "different"|"alike"|"undecided" undecided: too few runs for the test to reject

---The mean.
---@param x number[]
---@return number
function M.mean(x)
  local sum = 0.0
  for _, v in ipairs(x) do
    sum = sum + v
  end
  return sum / #x
end

---A quantile, between two values on the straight line (type 7 of Hyndman and Fan).
---@param sorted number[]
---@param q number 0 to 1
---@return number
function M.quantile(sorted, q)
  local at = 1 + (#sorted - 1) * q
  local low = math.floor(at)
  local a, b = sorted[low], sorted[math.min(low + 1, #sorted)]
  return a + (at - low) * (b - a)
end

-- Numbers 1 to n: the generator of Knuth's MMIX, its upper bits.
local function generator(seed)
  local x = seed * 2 + 1
  return function(n)
    x = x * 6364136223846793005 + 1442695040888963407
    return (x >> 33) % n + 1
  end
end

local function resampled_mean(x, draw)
  local sum = 0.0
  for _ = 1, #x do
    sum = sum + x[draw(#x)]
  end
  return sum / #x
end

---A percentile bootstrap interval of a statistic of the means of two samples.
---@param a number[]
---@param b number[]
---@param statistic fun(mean_a: number, mean_b: number): number
---@param o? { seed?: integer, resamples?: integer, level?: number }
---@return number low
---@return number high
function M.bootstrap(a, b, statistic, o)
  o = o or {}
  local draw, values = generator(o.seed or SEED), {}
  for i = 1, o.resamples or RESAMPLES do
    values[i] = statistic(resampled_mean(a, draw), resampled_mean(b, draw))
  end
  table.sort(values)
  local tail = (1 - (o.level or LEVEL)) / 2
  return M.quantile(values, tail), M.quantile(values, 1 - tail)
end

---Cliff's delta: how much more often a value of b is above one of a than below, -1 to 1.
---@param a number[]
---@param b number[]
---@return number
function M.cliffs_delta(a, b)
  local n = 0
  for _, x in ipairs(a) do
    for _, y in ipairs(b) do
      n = n + (y > x and 1 or y < x and -1 or 0)
    end
  end
  return n / (#a * #b)
end

-- Ranks of both samples, doubled, so that ties share whole numbers.
local function doubled_ranks(a, b)
  local all = table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
  local ranks = {}
  for i, x in ipairs(all) do
    local below, equal = 0, 0
    for _, y in ipairs(all) do
      below = below + (y < x and 1 or 0)
      equal = equal + (y == x and 1 or 0)
    end
    ranks[i] = 2 * below + equal + 1
  end
  return ranks
end

-- How many choices of k ranks have each sum: counts[k][sum]. Floats: they may pass 2^63.
local function sums_of(ranks, k_most)
  local counts = { [0] = { [0] = 1.0 } }
  for k = 1, k_most do
    counts[k] = {}
  end
  for _, rank in ipairs(ranks) do
    for k = k_most, 1, -1 do
      for sum, n in pairs(counts[k - 1]) do
        counts[k][sum + rank] = (counts[k][sum + rank] or 0) + n
      end
    end
  end
  return counts[k_most]
end

---The exact two-sided Mann-Whitney test, ties included: how probable sums of ranks are that are as
---far from their mean, were it chance which run is whose.
---@param a number[]
---@param b number[]
---@return number p
---@return number p_least of any outcome with these ranks
function M.mann_whitney(a, b)
  local ranks = doubled_ranks(a, b)
  local mean, sum_a = #a * (#a + #b + 1), 0
  for i = 1, #a do
    sum_a = sum_a + ranks[i]
  end
  local farthest, at_farthest, beyond, total = -1, 0, 0, 0
  for sum, n in pairs(sums_of(ranks, #a)) do
    local off = math.abs(sum - mean)
    total = total + n
    beyond = beyond + (off >= math.abs(sum_a - mean) and n or 0)
    if off > farthest then
      farthest, at_farthest = off, n
    elseif off == farthest then
      at_farthest = at_farthest + n
    end
  end
  return beyond / total, at_farthest / total
end

local function all_positive(...)
  for _, list in ipairs { ... } do
    for _, v in ipairs(list) do
      if v <= 0 then
        return false
      end
    end
  end
  return true
end

local function ratio(mean_a, mean_b)
  return mean_b / mean_a
end

local function difference(mean_a, mean_b)
  return mean_b - mean_a
end

---Compare two samples. "different" needs both: the interval leaves out that they are alike, and the
---exact test rejects at 5 %. With fewer than four runs each the test never can.
---@param a number[] at least one
---@param b number[] at least one
---@param o? { seed?: integer, resamples?: integer, level?: number }
---@return brim.StatsComparison
function M.compare(a, b, o)
  local is_ratio = all_positive(a, b)
  local statistic = is_ratio and ratio or difference
  local c = { n_a = #a, n_b = #b, mean_a = M.mean(a), mean_b = M.mean(b),
    kind = is_ratio and "ratio" or "difference", delta = M.cliffs_delta(a, b) }
  c.value = statistic(c.mean_a, c.mean_b)
  c.low, c.high = M.bootstrap(a, b, statistic, o)
  c.p, c.p_least = M.mann_whitney(a, b)
  local same = is_ratio and 1 or 0
  local leaves_out = c.low > same or c.high < same
  if leaves_out and c.p <= ALPHA then
    c.verdict = "different"
  elseif leaves_out and c.p_least > ALPHA then
    c.verdict = "undecided"
  else
    c.verdict = "alike"
  end
  return c
end

return M
