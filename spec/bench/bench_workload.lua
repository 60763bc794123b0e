-- spec.bench.bench_workload: block workloads on a file past the page cache, against fio doing the
-- same pattern with its io_uring engine in the same rounds; and what generating operations, content
-- and trace lines costs without any I/O.
local brim = require "brim"
local json = require "brim.json"
local process = require "process"
local rounds = require "rounds"
local sample = require "sample"
local scratch = require "scratch"

local M = {}

local SIZE_BYTES <const> = 1 << 30
local OPERATIONS <const> = 65536
local DEPTH <const> = 64

M.lacks = function()
  return rounds.lacks { "fio" }
end

-- fio's words for a pattern; fio, too, keeps each offset's random choices to itself.
local PATTERNS <const> = {
  { name = "sequential", ours = { pattern = "sequential" }, fio = { "--rw=write" } },
  { name = "random", ours = { pattern = "random" }, fio = { "--rw=randwrite", "--norandommap" } },
  { name = "permutation", ours = { pattern = "permutation" }, fio = { "--rw=randwrite" } },
  { name = "zipf 0.9", ours = { pattern = "zipf", theta = 0.9 },
    fio = { "--rw=randwrite", "--norandommap", "--random_distribution=zipf:0.9" } },
  { name = "random, 70 % reads", ours = { pattern = "random", reads = 0.7 },
    fio = { "--rw=randrw", "--rwmixread=70", "--norandommap" } },
}

local function with_fio(path, words)
  local argv = { "fio", "--name=w", "--output-format=json", "--ioengine=io_uring", "--thread",
    "--filename=" .. path, "--direct=1", "--bs=4k", ("--size=%d"):format(SIZE_BYTES),
    ("--number_ios=%d"):format(OPERATIONS), ("--iodepth=%d"):format(DEPTH), "--end_fsync=1",
    "--allow_file_create=0", "--fallocate=none" }
  local took = process.measure(table.move(words, 1, #words, #argv + 1, argv))
  local job = assert(json.decode(took.output:match "{.*")).jobs[1]
  local ios = job.read.total_ios + job.write.total_ios
  if ios ~= OPERATIONS then
    error(("fio did %d operations, not %d"):format(ios, OPERATIONS), 0)
  end
  return { iops = ios / (math.max(job.read.runtime, job.write.runtime) / 1e3),
    cpu_s = took.cpu_s / ios }
end

local function with_brim(path, ours)
  local w = { operations = OPERATIONS, size_bytes = SIZE_BYTES, block_bytes = 4096 }
  for name, v in pairs(ours) do
    w[name] = v
  end
  local r = assert(brim.workload(w):run(path, { direct = true, engine = "uring",
    queue_depth = DEPTH }))
  return { iops = r.iops, cpu_s = (r.run_user_cpu_s + r.run_system_cpu_s) / r.ios }
end

local function compare(path, pattern, count, add)
  local measured = sample.interleave("workload, " .. pattern.name, count, {
    { name = "brim", run = function() return with_brim(path, pattern.ours) end },
    { name = "fio", run = function() return with_fio(path, pattern.fio) end },
  })
  add { what = pattern.name .. ", 4 KiB", unit = "per_s", more = true, rounds = count,
    brim = sample.values(measured.brim, "iops"), peer = sample.values(measured.fio, "iops") }
  add { what = pattern.name .. ", CPU per I/O", unit = "us", rounds = count,
    brim = sample.values(measured.brim, "cpu_s"), peer = sample.values(measured.fio, "cpu_s") }
end

-- The operations alone: no data moves, so no content is made either.
local function generate(pattern, count, add)
  local measured = sample.interleave("operations, " .. pattern.name, count, {
    { name = "brim", run = function()
      local null <close> = assert(brim.device.null(SIZE_BYTES))
      local w = { operations = 2000000 }
      for name, v in pairs(pattern.ours) do
        w[name] = v
      end
      local r = assert(brim.workload(w):run(null, { engine = "null" }))
      return { per_s = r.iops }
    end },
  })
  add { what = pattern.name .. ", without I/O", unit = "per_s", more = true, rounds = count,
    brim = sample.values(measured.brim, "per_s") }
end

function M.run(add)
  local path = scratch.directory() .. "/device"
  process.measure { "fallocate", "-l", tostring(SIZE_BYTES), path }
  -- What is written for the first time costs the host's filesystem more.
  assert(brim.workload { pattern = "sequential", io_bytes = "1m" }:run(path, { direct = true }))
  for _, pattern in ipairs(PATTERNS) do
    compare(path, pattern, rounds.of(5), add)
  end
  for _, pattern in ipairs(PATTERNS) do
    generate(pattern, rounds.of(3), add)
  end
end

return M
