-- A timeline by fullness and by time: sums are kept, speeds are the model's, CSV reads back.
local brim = require "brim"
local helper = require "spec.helper"
local reader = require "brim.timeline.reader"
local resample = require "brim.timeline.resample"
local timelines = require "spec.timelines"

local timeline = brim.timeline
local SEED <const> = math.tointeger(os.getenv "BRIM_SEED") or 20240607

local HEADER <const> = '{"type":"header","format":"brim-timeline","version":1}\n'

-- Samples a second apart, each { phase, written, synced }.
local function steps(list)
  local text, phase = { HEADER }, nil
  for i, s in ipairs(list) do
    if s[1] ~= phase then
      phase = s[1]
      text[#text + 1] = ('{"type":"phase","t_s":%d,"name":"%s","kind":"%s"}\n'):format(i - 1, phase,
        phase)
    end
    text[#text + 1] = ('{"type":"sample","t_s":%d,"written_bytes":%d,"synced_fullness":%f}\n')
      :format(i, s[2], s[3])
  end
  return assert(reader.parse(table.concat(text), "test"))
end

describe("fullness between two syncs", function()
  it("follows the bytes, and churn does not fill", function()
    local run = steps { { "fill", 100, 0.1 }, { "fill", 200, 0.1 }, { "fill", 300, 0.1 },
      { "fill", 500, 0.5 }, { "churn", 900, 0.5 }, { "churn", 5000, 0.5 }, { "fill", 5100, 0.5 },
      { "fill", 5200, 0.5 }, { "fill", 5300, 0.7 } }
    local at = resample.positions(run)
    for i, expected in ipairs { 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5 + 0.2 / 3,
      0.5 + 0.4 / 3, 0.7 } do
      assert.near(expected, at[i], 1e-9, i)
    end
  end)

  it("spreads what one sample covers over all it passed, the phase's first too", function()
    local run = steps { { "fill", 0, 0.1 }, { "churn", 50, 0.1 }, { "fill", 450, 0.5 } }
    local bins = timeline.by_fullness(run, { bin = 0.1 })
    assert.equal(4, #bins)
    for i, bin in ipairs(bins) do
      assert.near(0.1 * i, bin.from, 1e-9)
      assert.near(100, bin.bytes - (i == 1 and run.samples[1].written_bytes or 0), 1e-6)
    end
  end)

  it("is nothing where none was recorded", function()
    local run = assert(reader.parse(HEADER .. '{"type":"sample","t_s":1,"bytes_per_s":5}\n', "x"))
    assert.same({}, resample.positions(run))
    assert.same({}, timeline.by_fullness(run))
    assert.same({}, timeline.by_fullness(assert(reader.parse(HEADER, "x"))))
  end)
end)

describe("a timeline by fullness", function()
  it("keeps every byte and second of the fills, whatever the bins", function()
    for k = 1, 5 do
      local lines = timelines.lines { seed = SEED + k }
      local run = assert(reader.parse(timelines.text { seed = SEED + k }, "test"))
      local bytes, seconds, churn, before = 0, 0, 0, 0
      for _, s in ipairs(lines) do
        if s.type == "sample" then
          local is_fill = s.phase:find "^fill"
          bytes = bytes + (is_fill and s.written_bytes - before or 0)
          seconds, churn = seconds + (is_fill and 1 or 0), churn + (is_fill and 0 or 1)
          before = s.written_bytes
        end
      end
      for _, bin in ipairs { 0.001, 0.01, 0.07, 1 } do
        local sum_bytes, sum_seconds = 0, 0
        for _, b in ipairs(timeline.by_fullness(run, { bin = bin })) do
          sum_bytes, sum_seconds = sum_bytes + b.bytes, sum_seconds + b.seconds
          assert.near(b.bytes / b.seconds, b.bytes_per_s, 1e-3)
        end
        assert.near(bytes, sum_bytes, 10, "seed " .. SEED + k)
        assert.near(seconds, sum_seconds, 1e-6, "seed " .. SEED + k)
      end
      local all = 0
      for _, b in ipairs(timeline.by_fullness(run, { kinds = { "churn" } })) do
        all = all + b.seconds
      end
      assert.near(churn, all, 1e-6)
    end
  end)

  it("gives the speed that the model has there", function()
    local run = assert(reader.parse(timelines.text { seed = SEED, size_bytes = 512 << 30,
      levels = { 0.99 } }, "test"))
    local n = 0
    for _, b in ipairs(timeline.by_fullness(run, { bin = 0.05 })) do
      local expected = 400e6 * timelines.speed_at((b.from + b.to) / 2, 0.8)
      if b.to < 0.95 then
        assert.near(1, b.bytes_per_s / expected, 0.06, ("seed %d at %g"):format(SEED, b.from))
        n = n + 1
      end
    end
    assert.is_true(n >= 17)
  end)

  it("gives the largest of the high percentiles, the mean of medians", function()
    local text = HEADER
    for i, p in ipairs { 1, 5, 3 } do
      text = text .. ('{"type":"sample","t_s":%d,"bytes_per_s":10,"synced_fullness":0.505,'
        .. '"create_p50_s":%d,"create_p99_s":%d}\n'):format(i, p, p * 10)
    end
    local bins = timeline.by_fullness(assert(reader.parse(text, "x")))
    assert.equal(1, #bins)
    assert.near(3, bins[1].latency.create_p50_s, 1e-9)
    assert.equal(50, bins[1].latency.create_p99_s)
    assert.near(0.50, bins[1].from, 1e-9)
    assert.near(30, bins[1].bytes, 1e-9)
  end)
end)

describe("a timeline by time", function()
  it("has at most the points asked for, the mean speed and the last fullness", function()
    local run = assert(reader.parse(timelines.text { seed = SEED }, "test"))
    for _, points in ipairs { 1, 7, 100, 100000 } do
      local list = timeline.by_time(run, points)
      assert.is_true(#list <= points)
      local last, sum = run.samples[#run.samples], 0
      assert.equal(last.synced_fullness, list[#list].synced_fullness)
      assert.equal(last.t_s, list[#list].t_s)
      for i, p in ipairs(list) do
        sum = sum + p.bytes_per_s * (p.t_s - (i > 1 and list[i - 1].t_s or 0))
      end
      assert.near(1, sum / last.written_bytes, 1e-6)
    end
    assert.equal(#run.samples, #timeline.by_time(run, 100000))
  end)
end)

describe("CSV", function()
  it("has a row for each sample and quotes what needs it", function()
    local path = helper.path "t.jsonl"
    helper.write(path, timelines.text { seed = SEED, title = 'a "b", c' })
    local run = assert(timeline.read(path))
    local out = helper.path "t.csv"
    assert.equal(#run.samples, timeline.csv(out, { run }))
    local n, head = 0, nil
    for line in helper.read(out):gmatch "([^\r\n]*)\r\n" do
      head = head or line
      n = n + 1
      if n == 2 then
        assert.equal('"a ""b"", c",fill to 50 %,1,', line:sub(1, 28))
        assert.equal(select(2, head:gsub(",", "")) + 1, select(2, line:gsub(",", "")))
      end
    end
    assert.equal(#run.samples + 1, n)
    assert.matches("^run,phase,t_s,bytes_per_s,", head)
    assert.refuses("ENOENT", timeline.csv("/nonexistent/x.csv", { run }))
    assert.refuses("ENOSPC", timeline.csv("/dev/full", { run }))
  end)
end)
