-- Block workloads: what they do is what they say, verifiable from the seed alone; samples over time
-- and position; refusals. The laws behind patterns are tested in C.
local brim = require "brim"
local helper = require "spec.helper"
local timeline = require "brim.timeline"

local KIB <const>, MIB <const>, GIB <const> = 1 << 10, 1 << 20, 1 << 30
local SEED <const> = 20261201

local function scratch(size_bytes)
  local path = helper.path "device"
  helper.must("rm -f %s; truncate -s %d %s", path, size_bytes, path)
  return path
end

local function poke(path, off_bytes, text)
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("set", off_bytes)
  file:write(text)
end

describe("brim.workload", function()
  after_each(function()
    assert.int(brim._debug.open_handles(), 0)
  end)

  for _, o in ipairs {
    { pattern = "sequential" }, { pattern = "random" }, { pattern = "permutation", passes = 2 },
    { pattern = "strided", stride_bytes = "64k", io_bytes = "16k" },
    { pattern = "zipf", theta = 1.1, reads = 0.5, operations = 3000 },
    { pattern = "random", io_bytes = "log_uniform(4k,256k)", block_bytes = 512 },
    { pattern = "zipf", clustered = true, offset_bytes = "1m", size_bytes = "2m", passes = 3 },
  } do
    it("runs and verifies: " .. o.pattern .. " " .. tostring(o.io_bytes or ""), function()
      local path = scratch(8 * MIB)
      o.seed = SEED
      local w = brim.workload(o)
      local r = assert(w:run(path))
      assert.int(r.done, r.begun)
      assert.int(r.ios, r.begun)
      local binned = 0
      for _, bin in ipairs(r.bins) do
        binned = binned + bin.bytes
      end
      assert.int(binned, r.bytes)
      local v = assert(w:verify(path))
      assert.is_true(v.ok)
      assert.is_true(v.right > 100)
      assert.int(v.mismatch_count, 0)
      -- Another seed finds nothing of its own.
      local other = {}
      for name, value in pairs(o) do
        other[name] = value
      end
      other.seed = SEED + 1
      local foreign = assert(brim.workload(other):verify(path))
      assert.is_false(foreign.ok)
      assert.int(foreign.right, 0)
      assert.int(foreign.missing, foreign.mismatch_count)
    end)
  end

  it("tells missing, stale, misplaced and corrupt blocks apart", function()
    local path = scratch(4 * MIB)
    local w = brim.workload { pattern = "permutation", passes = 2, seed = SEED, size_bytes = "4m" }
    assert(w:run(path))
    local first = brim.workload { pattern = "permutation", seed = SEED, size_bytes = "4m" }
    local ops = w:first(2048)
    local content = helper.read(path)
    poke(path, 0, ("\0"):rep(4096))
    poke(path, 40960, content:sub(8193, 8192 + 4096))
    poke(path, 81920 + 100, "x")
    -- A block as the first pass left it.
    local again = helper.path "first"
    helper.must("truncate -s 4m %s", again)
    assert(first:run(again))
    local at = ops[1].off_bytes
    assert.is_true(at > 81920)
    poke(path, at, helper.read(again):sub(at + 1, at + 4096))
    local v = assert(w:verify(path, { max_mismatches = 16 }))
    assert.is_false(v.ok)
    assert.same({ 1020, 1, 1, 1, 1, 0 },
      { v.right, v.missing, v.misplaced, v.corrupt, v.stale, v.newer })
    local what = {}
    for _, m in ipairs(v.mismatches) do
      what[m.off_bytes // 4096 * 4096] = m.what
    end
    assert.equal("missing", what[0])
    assert.equal("misplaced", what[40960])
    assert.equal("corrupt", what[81920])
    assert.equal("stale", what[at])
  end)

  it("verifies ranges of more blocks than a window has", function()
    local path = scratch(20 * GIB)
    local w = brim.workload { pattern = "random", block_bytes = 512, operations = 500, seed = SEED }
    assert(w:run(path))
    local v = assert(w:verify(path))
    assert.is_true(v.ok)
    assert.int(v.right, 500)
  end)

  it("takes a time limit, and verifies by the result", function()
    local path = scratch(16 * MIB)
    local w = brim.workload { pattern = "zipf", seconds = 0.2, seed = SEED }
    local r = assert(w:run(path))
    assert.is_true(r.wall_s >= 0.2 and r.begun > 0)
    local v = assert(w:verify(path, { result = r }))
    assert.is_true(v.ok)
    assert.has_error(function() w:verify(path) end)
  end)

  it("is cancelled, verified as far as it got, and taken up again", function()
    local path = scratch(64 * MIB)
    local w = brim.workload { pattern = "random", passes = 3, seed = SEED }
    local r = assert(w:run(path, { queue_depth = 8, progress_interval_s = 0.001,
      progress = function(p) return p.ios_done < 200 end }))
    assert.equal("cancelled", r.stopped)
    assert.is_true(r.done <= r.begun and r.begun < 3 * 16384)
    assert.is_true(assert(w:verify(path, { result = r })).ok)
    local rest = assert(w:run(path, { first = r.done }))
    assert.int(rest.begun, 3 * 16384)
    assert.int(rest.ios, 3 * 16384 - r.done)
    assert.is_true(assert(w:verify(path)).ok)
  end)

  it("samples speed over time and position, and writes a timeline", function()
    local path, rows = scratch(64 * MIB), {}
    local out = helper.path "line.jsonl"
    local w = brim.workload { pattern = "sequential", seed = SEED, reads = 0.5 }
    local r = assert(w:run(path, { timeline = out, sample_interval_s = 0.01, bins = 8,
      sample = function(s) rows[#rows + 1] = s end }))
    assert.int(#r.bins, 8)
    assert.int(r.bins[8].off_bytes, 56 * MIB)
    local data = assert(timeline.read(out))
    assert.int(#data.samples, #rows)
    local last = 0
    for _, row in ipairs(rows) do
      assert.is_true(row.off_bytes >= last and row.bytes_per_s >= 0)
      last = row.off_bytes
    end
    assert.is_true(last > 60 * MIB)
    assert.equal(1, #data.phases)
  end)

  it("explains itself", function()
    local text = tostring(brim.workload { pattern = "zipf", theta = 1.2, io_bytes = "64k",
      size_bytes = "10g", reads = 0.3, seed = 7 })
    assert.truthy(text:find("seed 7", 1, true))
    assert.truthy(text:find("30 % reads, 70 % writes of 64 KiB, by Zipf's law, theta 1.2", 1, true))
    assert.truthy(text:find("from 0, 10 GiB long", 1, true))
    assert.truthy(text:find("one pass over the range", 1, true))
  end)

  it("refuses what cannot be", function()
    for _, o in ipairs {
      { pattern = "zip" }, { reads = 1.5 }, { theta = 0, pattern = "zipf" }, { block_bytes = 100 },
      { pattern = "strided", stride_bytes = 4097, size_bytes = "1m" }, { operations = 0 },
      { pattern = "permutation", io_bytes = "uniform(4k,64k)", size_bytes = "1m" },
      { io_bytes = "2m", size_bytes = "1m" }, { size_byte = "1m" },
    } do
      assert.has_error(function() brim.workload(o) end)
    end
    local path = scratch(MIB)
    assert.refuses("ERANGE", brim.workload { size_bytes = "2m" }:run(path))
    assert.refuses("ERANGE", brim.workload { offset_bytes = "1m" }:run(path))
    assert.refuses("EINVAL", brim.workload { io_bytes = "512k" }:run(path,
      { max_io_bytes = "64k" }))
    assert.refuses("ENOENT", brim.workload {}:run(path .. "x"))
  end)

  it("leaves a device alone that carries a filesystem", function()
    if not helper.has "mkfs.xfs" then
      pending "mkfs.xfs is not installed"
      return
    end
    local path = scratch(400 * MIB)
    helper.must("mkfs.xfs -q %s", path)
    local w = brim.workload { operations = 10, seed = SEED }
    assert.refuses("EEXIST", w:run(path))
    assert(w:run(path, { force = true }))
    assert(brim.workload { operations = 10, reads = 1 }:run(path))
    assert.is_true(assert(w:verify(path)).ok)
  end)

  it("is what the example shows", function()
    local out, err, status = helper.brim("run", "examples/workload.lua")
    assert.equal(0, status, err)
    assert.truthy(out:find("\n5082 blocks right, 0 stale, 0 corrupt\n$"))
  end)

  it("goes on the command line, with --yes", function()
    local path = scratch(4 * MIB)
    local _, err, status = helper.brim("block-fill", path)
    assert.int(status, 2)
    assert.truthy(err:find("--yes", 1, true))
    local _, _, done = helper.brim("--yes", "block-fill", path, "--pattern", "zipf", "--seed", "5")
    assert.int(done, 0)
    local out, _, right = helper.brim("block-fill", path, "--pattern", "zipf", "--seed", "5",
      "--verify")
    assert.int(right, 0)
    assert.truthy(out:find("0 missing, 0 stale", 1, true))
    local _, _, wrong = helper.brim("block-fill", path, "--pattern", "zipf", "--seed", "6",
      "--verify")
    assert.int(wrong, 1)
    local _, usage, refused = helper.brim("--yes", "block-fill", path, "--pattern", "strided",
      "--stride-bytes", "5000", "--size-bytes", "1m")
    assert.int(refused, 2)
    assert.truthy(usage:find("stride_bytes", 1, true))
  end)
end)

print(("# seed %d, blocks of %d"):format(SEED, 4 * KIB))
