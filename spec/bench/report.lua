-- spec.bench.report: the table of results on stdout, and the same as lines of JSON in the file that
-- BENCH_JSON names, with every round's value. A row compares brim with a peer in one quantity:
-- medians, and the median ratio.
local json = require "brim.json"
local others = require "others"
local sample = require "sample"

local M = {}

local LINE <const> = "%-8s %-46s %11s %11s %10s  %-11s %6s"

---@class bench.Row
---@field what string
---@field unit string how the values are shown: see UNITS
---@field brim number[]|number of each round
---@field peer? number[]|number
---@field more? boolean larger is better: the ratio is brim / peer; otherwise peer / brim
---@field aim? number what the ratio should at least be
---@field at_most? number what brim's own value should at most be, instead
---@field rounds integer

local scale = {
  s = function(v) return v < 1 and ("%.1f ms"):format(v * 1e3) or ("%.2f s"):format(v) end,
  us = function(v) return (v < 1e-5 and "%.3f us" or "%.1f us"):format(v * 1e6) end,
  per_s = function(v) return v < 1e6 and ("%.0f /s"):format(v) or ("%.2f M/s"):format(v / 1e6) end,
  kib = function(v) return ("%.1f KiB"):format(v / 1024) end,
  mib = function(v) return ("%.1f MiB"):format(v / (1 << 20)) end,
  count = function(v) return ("%.2f"):format(v) end,
}

local rows, missed, skipped = 0, 0, 0

local function middle(values)
  return type(values) == "table" and sample.median(values) or values
end

local function divide(row, brim, peer)
  return row.more and brim / peer or peer / brim
end

-- The median of the rounds' ratios, where rounds took turns: what slows the machine down for some
-- time then slows both sides of a ratio. A count of 0 has none.
local function ratio_of(row)
  local brim, peer = row.brim, row.peer
  if not peer or middle(brim) == 0 or middle(peer) == 0 then
    return nil
  elseif type(brim) ~= "table" or type(peer) ~= "table" or #brim ~= #peer then
    return divide(row, middle(brim), middle(peer))
  end
  local ratios = {}
  for i, value in ipairs(brim) do
    ratios[#ratios + 1] = value > 0 and divide(row, value, peer[i]) or nil
  end
  return sample.median(ratios)
end

-- The aim in words, and whether it is met; nil where there is none.
local function judge(row, ratio)
  if row.at_most then
    return "<= " .. scale[row.unit](row.at_most), middle(row.brim) <= row.at_most
  elseif row.aim then
    return (">= %gx"):format(row.aim), ratio and ratio >= row.aim
  end
  return "-", nil
end

local function show_ratio(ratio)
  return ratio and (ratio < 10 and "%.2f x" or "%.1f x"):format(ratio) or "-"
end

local function write_json(record)
  local path = os.getenv "BENCH_JSON"
  if path and path ~= "" then
    local file <close> = assert(io.open(path, "a"))
    file:write(json.encode(record), "\n")
  end
end

---Begin: the heading, an empty file of results.
function M.open()
  local path = os.getenv "BENCH_JSON"
  if path and path ~= "" then
    assert(io.open(path, "w")):close()
  end
  print(LINE:format("row", "what", "brim", "peer", "ratio", "aim", "rounds"))
end

---Add a row.
---@param name string of the benchmark
---@param row bench.Row
function M.add(name, row)
  local ratio = ratio_of(row)
  local aim, is_met = judge(row, ratio)
  local show = scale[row.unit]
  rows = rows + 1
  missed = missed + (is_met == false and 1 or 0)
  sample.quiet()
  print(LINE:format(name, row.what, show(middle(row.brim)),
    row.peer and show(middle(row.peer)) or "-", show_ratio(ratio), aim, row.rounds)
    .. (is_met == false and "  missed" or ""))
  write_json { row = name, what = row.what, unit = row.unit, brim = middle(row.brim),
    peer = middle(row.peer), ratio = ratio, aim = row.aim, at_most = row.at_most, is_met = is_met,
    rounds = row.rounds, brim_rounds = row.brim, peer_rounds = row.peer }
end

---Say why a benchmark cannot run here.
---@param name string
---@param why string
function M.skip(name, why)
  skipped = skipped + 1
  sample.quiet()
  print(("%-8s skipped: %s"):format(name, why))
  write_json { row = name, skipped = why }
end

---End: the line that sums up, and how far the machine was shared.
function M.close()
  local share = others.share()
  print(("%d rows, %d aims missed, %d benchmarks skipped"):format(rows, missed, skipped))
  print(("%.0f %% of the CPU time meanwhile went to other processes and the kernel's own threads")
    :format(100 * share))
  write_json { rows = rows, missed = missed, skipped = skipped, others_cpu_share = share }
end

return M
