-- brim.drive: drives by name, replicas, replays of traces, and the shim against what the model
-- says. The models themselves are judged by spec/core/test_drive.c.
local brim = require "brim"
local helper = require "spec.helper"

local SHIM <const> = helper.root .. "/" .. helper.build .. "/brim-drive-shim.so"
local SAN <const> = (os.getenv("SAN") or "") ~= ""

local function image(bytes)
  local path = helper.path("image")
  helper.must("truncate -s %d %s", bytes, path)
  return path
end

-- What a file's first bytes are, as the format says (brim_drive.h).
local function block_trace(size_bytes, events)
  local parts = { ("<c8I4I4I8I8"):pack("BRIMBLK1", 32, 0, size_bytes, 0) }
  local ops = { read = 0, write = 1, trim = 2, flush = 3 }
  for _, x in ipairs(events) do
    parts[#parts + 1] = ("<I8I8I8I4I2BB"):pack(x.at_ns, x.off_bytes or 0, x.took_ns or 0,
      x.len_bytes or 0, x.stream or 0, ops[x.op], 0)
  end
  local path = helper.path("trace")
  helper.write(path, table.concat(parts))
  return path
end

describe("brim.drive", function()
  it("has presets that name their source and what is assumed", function()
    assert.same({ "archive-8tb", "hdd-7200", "ideal", "ssd-sata" }, brim.drive.NAMES)
    for _, name in ipairs(brim.drive.NAMES) do
      local d = brim.drive { preset = name }
      assert.truthy(#brim.drive.presets[name].source > 0 and #brim.drive.presets[name].assumed > 0)
      assert.matches("source: ", tostring(d), 1, true)
    end
  end)

  it("refuses what cannot be, and says what", function()
    assert.error_matches(function() brim.drive { model = "hdd", size_bytes = "1g" } end,
      "bytes_per_s")
    assert.error_matches(function() brim.drive { modell = "hdd" } end, "did you mean 'model'")
    assert.error_matches(function() brim.drive { preset = "floppy" } end, "is none of")
    assert.refuses("ERANGE", brim.drive { size_bytes = 4096 }:io("read", 4096, 1, 0))
  end)

  it("serves one command after the other", function()
    local d = brim.drive { model = "constant", size_bytes = "1g", write_bytes_per_s = 1000000 }
    assert.int(d:io("write", 0, 1000, 0), 1000000)
    assert.int(d:io("write", 0, 1000, 500000), 2000000)
    assert.int(d:stats().wait_ns, 500000)
    assert.int(d:stats().max_ns.write, 1500000)
  end)

  it("makes replicas: cache and disk in proportion, bands as they are", function()
    local d = brim.drive { preset = "archive-8tb", scale_bytes = 80015632220 }
    assert.int(d.params.cache_entries, 2500)
    assert.int(d.params.cache_bytes, 250000000)
    assert.int(d.params.band_max_bytes, 40000000)
    assert.same({}, d.notes)
    local small = brim.drive { preset = "archive-8tb", scale_bytes = "512m" }
    assert.matches("band/segment: bands of", small.notes[1])
    assert.int(small.params.cache_entries, 17)
    assert.truthy(small:stats().bands >= 32)
    -- The original is as it was.
    assert.int(brim.drive.presets["archive-8tb"].params.cache_entries, 250000)
  end)

  it("has the cliff at the scaled number of writes", function()
    local d = brim.drive { preset = "archive-8tb", scale_bytes = "80g" }
    local t, n, seed = 0, 0, 7
    repeat
      seed = (seed * 6364136223846793005 + 1442695040888963407)
      local off = (seed >> 20) % (80 << 18) * 4096
      local done = assert(d:io("write", off, 4096, t))
      local took = done - t
      t, n = done, n + 1
    until took > 600000000
    local want = d.params.cache_entries
    assert.truthy(math.abs(n - want) <= want // 50, ("%d writes, %d entries"):format(n, want))
  end)
end)

describe("a block trace", function()
  it("is read as it is written down", function()
    local path = block_trace(1 << 30, {
      { op = "write", at_ns = 5, took_ns = 7, off_bytes = 4096, len_bytes = 8192, stream = 3 },
      { op = "flush", at_ns = 20 },
    })
    local events, size_bytes = assert(brim.drive.events(path))
    assert.int(size_bytes, 1 << 30)
    assert.same({ op = "write", at_ns = 5, took_ns = 7, off_bytes = 4096, len_bytes = 8192,
      stream = 3 }, events[1])
    assert.int(#events, 2)
    assert.equal("flush", events[2].op)
  end)

  it("is refused where it is torn or cannot be", function()
    local path = block_trace(1 << 30, { { op = "read", at_ns = 0, len_bytes = 1 } })
    local whole = helper.read(path)
    helper.write(path, whole:sub(1, -2))
    assert.refuses("EINVAL", brim.drive.events(path))
    helper.write(path, whole:sub(1, -3) .. "\x09\0")
    assert.refuses("EINVAL", brim.drive.events(path))
    helper.write(path, whole:sub(1, 20))
    assert.refuses("EINVAL", brim.drive.events(path))
    assert.refuses("ENOENT", brim.drive.events("/nowhere/at/all"))
  end)

  it("takes as long as I/O and thoughts together, stream by stream", function()
    local ms <const> = 1000000
    local path = block_trace(1 << 30, {
      -- Thinks for 10 ms between its two writes; the other stream does not.
      { op = "write", at_ns = 0, took_ns = ms, len_bytes = 1000, stream = 1 },
      { op = "write", at_ns = 11 * ms, took_ns = ms, len_bytes = 1000, stream = 1 },
      { op = "write", at_ns = 11 * ms, took_ns = ms, len_bytes = 1000, stream = 2 },
      { op = "write", at_ns = 12 * ms, took_ns = ms, len_bytes = 1000, stream = 2 },
    })
    local o <const> = { model = "constant", size_bytes = "1g", write_bytes_per_s = 200000 }
    local d = brim.drive(o)
    local r = assert(d:replay(path, { interval_s = 0.01 }))
    -- 5 ms each: 0-5, 15-20, then 20-25 (it arrived at 11) and 25-30.
    assert.equal(0.030, r.elapsed_s)
    assert.equal(0.013, r.recorded_s)
    assert.int(r.bins[1].write_bytes, 1000)
    assert.int(r.bins[3].write_bytes, 2000)
    o.open_loop = true
    assert.equal(0.026, assert(brim.drive.replay(path, o)).elapsed_s)
    o.open_loop, o.size_bytes = nil, 500
    assert.int(assert(brim.drive.replay(path, o)).skipped, 4)
  end)

  it("written by a replay takes as long as that replay", function()
    local list = {}
    for k = 1, 500 do
      list[k] = { op = k % 5 == 0 and "read" or "write", at_ns = k * 100000, took_ns = 50000,
        off_bytes = (k * 7919 * 4096) % (1 << 32), len_bytes = 4096 }
    end
    local path, out = block_trace(1 << 32, list), helper.path("out")
    local o <const> = { preset = "hdd-7200", scale_bytes = "4g" }
    local first = assert(brim.drive(o):replay(path, { out = out }))
    local again = assert(brim.drive(o):replay(out))
    assert.equal(first.elapsed_s, again.elapsed_s)
    assert.equal(first.elapsed_s, again.recorded_s)
  end)

  it("may be of another format", function()
    local path = helper.path("iolog")
    helper.write(path, "fio version 2 iolog\n/x add\n/x open\n/x write 0 4096\n/x sync 0 0\n"
      .. "/x read 8192 4096\n/x close\n")
    local r = assert(brim.drive.replay(path, { preset = "ssd-sata" }))
    assert.int(r.events, 3)
    assert.int(r.stats.ios.flush, 1)
  end)

  it("goes through every drive by the recipe", function()
    local path = block_trace(1 << 30, { { op = "write", at_ns = 0, len_bytes = 1 << 20 } })
    local out, err, status = helper.brim("drive-replay", path)
    assert.equal(0, status, err)
    for _, name in ipairs(brim.drive.NAMES) do
      assert.truthy(out:find(name, 1, true))
    end
    assert.matches("write from    1 MiB:        1 I/Os        1 runs",
      (helper.brim("drive-replay", path, "--model", "hdd-7200")))
  end)

  it("is replayed at more than a million I/Os a second #slow", function()
    local record = ("<I8I8I8I4I2BB"):pack(0, 4096, 0, 4096, 0, 1, 0)
    local path = helper.path("big")
    helper.write(path, helper.read(block_trace(1 << 40, {})) .. record:rep(4000000))
    local core = require "brim.core"
    local d = brim.drive { preset = "hdd-7200" }
    local before = core.process_usage()
    assert.int(assert(d:replay(path)).events, 4000000)
    local after = core.process_usage()
    local cpu_s = after.user_cpu_s - before.user_cpu_s + after.system_cpu_s - before.system_cpu_s
    assert.truthy(SAN or 4e6 / cpu_s > 1e6, ("%.2f s of CPU"):format(cpu_s))
  end)
end)

-- Runs a command on a file that is as slow as a drive: elapsed and recorded.
local function behind(drive, path, o, command)
  local words = assert(drive:environment(path, o))
  for k, word in ipairs(words) do
    words[k] = helper.quote(word)
  end
  return helper.must("env " .. table.concat(words, " ") .. " " .. command)
end

-- What sleeps against what is replayed; three attempts, where others use the machine too.
local function within_5_percent(attempt)
  local asleep_s, replayed_s
  for _ = 1, 3 do
    asleep_s, replayed_s = attempt()
    if math.abs(asleep_s / replayed_s - 1) < 0.05 then
      return
    end
  end
  error(("%.3f s asleep, %.3f s replayed"):format(asleep_s, replayed_s), 2)
end

describe("nbdkit's plugin", function()
  it("serves a device that is as slow as the model", function()
    if SAN then
      pending("nbdkit cannot load an instrumented plugin")
    end
    local plugin = helper.root .. "/" .. helper.build .. "/nbdkit-brim-plugin.so"
    if not (helper.has("nbdkit") and helper.has("nbdcopy") and io.open(plugin)) then
      pending("nbdkit, nbdcopy or the plugin is not there")
    end
    local from, to, trace = helper.path("from"), image(16 << 20), helper.path("trace")
    helper.must("head -c %d /dev/urandom > %s", 8 << 20, from)
    local o <const> = { model = "constant", size_bytes = "16m", write_bytes_per_s = 8 << 20 }
    within_5_percent(function()
      helper.must("nbdkit -U - %s file=%s trace=%s model=%s --run 'nbdcopy --requests=1 "
        .. "--connections=1 --destination-is-zero %s \"$uri\"'", plugin, to, trace,
        brim.drive(o):spec(), from)
      local r = assert(brim.drive(o):replay(trace))
      assert.int(r.stats.bytes.write, 8 << 20)
      assert.truthy(r.elapsed_s >= 1, r.elapsed_s)
      return r.recorded_s, r.elapsed_s
    end)
  end)

  it("refuses a drive that it does not know", function()
    local plugin = helper.root .. "/" .. helper.build .. "/nbdkit-brim-plugin.so"
    if SAN or not (helper.has("nbdkit") and io.open(plugin)) then
      pending("nbdkit or the plugin is not there")
    end
    local out, status = helper.sh("nbdkit -U - %s file=%s model=floppy --run true", plugin,
      image(1 << 20))
    assert.truthy(status ~= 0)
    assert.matches("none of ideal", out)
  end)
end)

describe("the shim", function()
  setup(function()
    assert.truthy(helper.has("dd"))
  end)

  it("makes a file as slow as the model, within 5 %, and records it", function()
    if SAN then
      pending("a program without the sanitizers cannot load it")
    end
    local path, trace = image(64 << 20), helper.path("trace")
    local o <const> = { model = "constant", size_bytes = "64m", write_bytes_per_s = 32 << 20,
      read_bytes_per_s = 64 << 20, overhead_ns = 1000000, flush_ns = 50000000 }
    within_5_percent(function()
      behind(brim.drive(o), path, { trace = trace },
        ("dd if=/dev/zero of=%s bs=64k count=512 conv=notrunc,fdatasync 2>&1"):format(path))
      local r = assert(brim.drive(o):replay(trace))
      -- 512 of 1 ms and 1/512 s each, and a flush.
      assert.int(r.stats.ios.write, 512)
      assert.int(r.stats.ios.flush, 1)
      assert.int(r.stats.runs.write, 1)
      assert.truthy(r.elapsed_s >= 512 * 0.001 + 1 + 0.051, r.elapsed_s)
      return r.recorded_s, r.elapsed_s
    end)
  end)

  it("agrees with a replay of what fio did on an ideal drive", function()
    if SAN then
      pending("a program without the sanitizers cannot load it")
    elseif not helper.has("fio") then
      pending("fio is not installed")
    end
    local path, ideal, slow = image(64 << 20), helper.path("ideal"), helper.path("slow")
    local job = ("fio --thread --name=x --filename=%s --size=64m --ioengine=psync --rw=randrw "
      .. "--bs=4k --number_ios=150 --randseed=1 --invalidate=0 --minimal"):format(path)
    local o <const> = { preset = "hdd-7200", scale_bytes = "64m" }
    within_5_percent(function()
      behind(brim.drive { size_bytes = "64m" }, path, { trace = ideal }, job)
      behind(brim.drive(o), path, { trace = slow }, job)
      local predicted = assert(brim.drive(o):replay(ideal))
      assert.int(predicted.stats.ios.read + predicted.stats.ios.write, 150)
      return assert(brim.drive(o):replay(slow)).recorded_s, predicted.elapsed_s
    end)
  end)

  it("leaves other files alone, and refuses what it does not understand", function()
    if SAN then
      pending("a program without the sanitizers cannot load it")
    end
    local path, other, stats = image(1 << 20), image(1 << 20), helper.path("stats")
    local d = brim.drive { model = "constant", size_bytes = "1m", write_bytes_per_s = 1024 }
    behind(d, path, { stats = stats }, ("dd if=/dev/zero of=%s bs=64k count=16 2>&1"):format(other))
    assert.is_nil(io.open(stats))
    local out, status = helper.sh("env LD_PRELOAD=%s BRIM_DRIVE_FILE=%s BRIM_DRIVE=floppy true",
      SHIM, path)
    assert.equal(125, status)
    assert.matches("none of ideal", out)
  end)

  it("runs the drive's clock faster where it is asked to", function()
    if SAN then
      pending("a program without the sanitizers cannot load it")
    end
    local path, stats = image(1 << 20), helper.path("stats")
    local d = brim.drive { model = "constant", size_bytes = "1m", write_bytes_per_s = 1 << 16 }
    local core = require "brim.core"
    local before = core.monotonic_s()
    behind(d, path, { stats = stats, speed = 100 },
      ("dd if=/dev/zero of=%s bs=64k count=16 conv=notrunc 2>&1"):format(path))
    assert.truthy(core.monotonic_s() - before < 4)
    assert.truthy(tonumber(helper.read(stats):match '"end_ns":(%d+)') >= 16000000000)
  end)
end)
