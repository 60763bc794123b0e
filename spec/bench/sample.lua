-- spec.bench.sample: interleaved rounds and what they come to. On a shared machine the neighbours'
-- load drifts: contestants take turns within each round, and medians are compared.
local core = require "brim.core"

local M = {}

---@class bench.Contestant
---@field name string
---@field prepare? fun() not measured
---@field run fun(): table what was measured

---Let contestants take turns: A B A B ...
---@param what string for the progress line
---@param rounds integer
---@param contestants bench.Contestant[]
---@return table<string, table[]> measured by name, one entry a round
function M.interleave(what, rounds, contestants)
  local measured = {}
  for _, c in ipairs(contestants) do
    measured[c.name] = {}
  end
  for round = 1, rounds do
    for _, c in ipairs(contestants) do
      if core.interrupted() then
        error("interrupted", 0)
      end
      M.say("%s: %s, round %d of %d", what, c.name, round, rounds)
      if c.prepare then
        c.prepare()
      end
      measured[c.name][round] = c.run()
    end
  end
  return measured
end

---Tell people at a terminal what is going on; the table follows on stdout.
---@param fmt string
function M.say(fmt, ...)
  if core.isatty(2) then
    io.stderr:write("\r\27[K", fmt:format(...))
  end
end

---Clear what `say` said.
function M.quiet()
  if core.isatty(2) then
    io.stderr:write("\r\27[K")
  end
end

---The middle value; of two, their mean.
---@param values number[]
---@return number
function M.median(values)
  local sorted = table.move(values, 1, #values, 1, {})
  table.sort(sorted)
  local n = #sorted
  return n % 2 == 1 and sorted[n // 2 + 1] or (sorted[n // 2] + sorted[n // 2 + 1]) / 2
end

---The values of a field (or what a function makes of each entry).
---@param entries table[]
---@param field string|fun(entry: table): number
---@return number[]
function M.values(entries, field)
  local values = {}
  for i, entry in ipairs(entries) do
    values[i] = type(field) == "function" and field(entry) or entry[field]
  end
  return values
end

return M
