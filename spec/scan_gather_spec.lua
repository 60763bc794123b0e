-- What scans gather: sums, extremes, counts, histograms, columns are what a loop in Lua finds in
-- the same bytes; rules beside expectations; mismatches by kind; results that print themselves.
local brim = require "brim"
local helper = require "spec.helper"
local layout = require "brim.layout"
local plan = require "brim.plan"
local scan = require "brim.scan"

local SEED <const> = 20251207
local GROUPS <const>, STRIDE <const> = 1000, 4096

local sample = layout.struct("sample", { size_bytes = 64, endian = "big" }) {
  { 0, "u32", "magic", magic = 0x53414d50 },
  { 4, "u32", "free", unit = "blocks" },
  { 8, "u64le", "used", unit = "bytes" },
  { 16, "u8", "state" },
  { 17, "bytes[3]", "pad" },
  { 20, "u32[4]", "slots" },
  { 36, "char[28]", "label" },
}

describe("brim.scan gathers", function()
  local path, truth

  setup(function()
    path = helper.path "gathered"
    math.randomseed(SEED)
    truth = {}
    local p <close> = plan.new { size_bytes = GROUPS * STRIDE, group_bytes = STRIDE }
    for i = 0, GROUPS - 1 do
      local v = { free = math.random(0, 1 << 20), used = math.random(0) >> math.random(1, 30),
        state = math.random(0, 4), slots = {} }
      for k = 1, 4 do
        v.slots[k] = math.random(0, 0xffffffff)
      end
      truth[i] = v
      p:each(1, function() return sample:at(0)(v) end, { offset_bytes = i * STRIDE,
        stride_bytes = STRIDE })
    end
    assert(p:write(path))
  end)

  local function run(s, o)
    local all = { count = GROUPS, stride_bytes = STRIDE }
    for name, v in pairs(o or {}) do
      all[name] = v
    end
    return assert(s:run(path, all))
  end

  -- Of f(i) over all groups: sum, least, its group, greatest, its group.
  local function fold(f)
    local sum, low, high = 0, 0, 0
    for i = 0, GROUPS - 1 do
      sum = sum + f(i)
      low = f(i) < f(low) and i or low
      high = f(i) > f(high) and i or high
    end
    return sum, low, high
  end

  it("sums, least and greatest values, with their place", function()
    local r = run(scan(function()
      return sample:at(0) { free = scan.all { scan.sum(), scan.min "least", scan.max "most" },
        state = scan.all { scan.sum "states", scan.max() } }
    end))
    local sum, low, high = fold(function(i) return truth[i].free end)
    assert.int(r.mismatch_count, 0)
    assert.int(r.sums.free, sum)
    assert.same({ value = truth[low].free, group = low, off_bytes = low * STRIDE + 4 },
      r.minima.least)
    assert.same({ value = truth[high].free, group = high, off_bytes = high * STRIDE + 4 },
      r.maxima.most)
    local states, _, first = fold(function(i) return truth[i].state end)
    assert.int(r.sums.states, states)
    assert.int(r.maxima.state.group, first)
    assert.is_nil(r.histograms)
  end)

  it("sums past 2^63-1 as an error that says the number", function()
    local wide = helper.path "wide"
    local p <close> = plan.new { size_bytes = 64 }
    local w = layout.struct("w", { size_bytes = 8 }) { { 0, "u64", "v" } }
    for k = 0, 7 do
      p:each(1, function() return w:at(0) { v = k - 3 } end, { offset_bytes = 8 * k,
        stride_bytes = 8 })
    end
    assert(p:write(wide))
    local s = scan(function() return w:at(0) { v = scan.all { scan.sum(), scan.max(),
      scan.min() } } end)
    local r = assert(s:run(wide, { count = 8, stride_bytes = 8 }))
    -- Three are 2^64-3, -2, -1; the others 0 .. 4.
    assert.is_true(brim.error.is(r.sums.v))
    assert.equal("EOVERFLOW", r.sums.v.code)
    assert.equal("55340232221128654852", r.sums.v.decimal)
    assert.matches("sum 'v' is 55340232221128654852, past 2%^63%-1", tostring(r.sums.v))
    assert.has_error(function() return r.sums.v + 1 end)
    assert.same({ -1, 2 }, { r.maxima.v.value, r.maxima.v.group })
    assert.same({ 0, 3 }, { r.minima.v.value, r.minima.v.group })
    assert.matches("sum v: 55340232221128654852\n", tostring(r))
    assert.matches("max v: 0xffffffffffffffff in group 2", tostring(r))
    local some = assert(s:run(wide, { count = 5, first = 3, stride_bytes = 8 }))
    assert.int(some.sums.v, 10)
  end)

  it("counts of values, of those in a range, of those in a set", function()
    local r = run(scan(function(i)
      return sample:at(0) { state = scan.all { scan.count "all", scan.count("two", 2),
        scan.count("low", scan.range(0, 1)), scan.count("ends", scan.one_of { 0, 4 }),
        scan.count("own", i) } }
    end))
    local n = { all = GROUPS, two = 0, low = 0, ends = 0, own = 0 }
    for i = 0, GROUPS - 1 do
      local state = truth[i].state
      n.two = n.two + (state == 2 and 1 or 0)
      n.low = n.low + (state <= 1 and 1 or 0)
      n.ends = n.ends + ((state == 0 or state == 4) and 1 or 0)
      n.own = n.own + (state == i & 255 and 1 or 0)
    end
    assert.same(n, r.counts)
    assert.int(r.mismatch_count, 0)
  end)

  it("histograms by powers of two and of equal bins", function()
    local r = run(scan(function()
      return sample:at(0) { used = scan.histogram "sizes", free = scan.all {
        scan.histogram("even", { from = 50000, to = 1000000, bins = 7 }),
        scan.histogram("few", { to = 4 }) } }
    end))
    for name, field in pairs { sizes = "used", even = "free", few = "free" } do
      local h, at = r.histograms[name], nil
      local within = 0
      for _, bin in ipairs(h.bins) do
        assert.is_true(at == nil or bin.first == at)
        at = bin.last + 1
        local n = 0
        for i = 0, GROUPS - 1 do
          local v = truth[i][field]
          n = n + ((bin.first <= v and v <= bin.last) and 1 or 0)
        end
        -- The last of the powers of two are past what Lua compares as signed.
        if bin.last > 0 or bin.first == 0 then
          assert.int(bin.count, n)
        end
        within = within + bin.count
      end
      assert.int(h.below + within + h.above, GROUPS)
      assert.int(h.count, GROUPS)
    end
    assert.int(#r.histograms.sizes.bins, 65)
    assert.int(#r.histograms.even.bins, 7)
    assert.int(#r.histograms.few.bins, 4)
    assert.is_true(r.histograms.even.below > 0 and r.histograms.even.above > 0)
  end)

  it("each element of an array", function()
    local r = run(scan(function()
      return sample:at(0) { slots = scan.all { scan.sum(), scan.max(), scan.count "n" } }
    end))
    local sum, most = 0, 0
    for i = 0, GROUPS - 1 do
      for _, v in ipairs(truth[i].slots) do
        sum, most = sum + v, math.max(most, v)
      end
    end
    assert.int(r.sums.slots, sum)
    assert.int(r.maxima.slots.value, most)
    assert.int(r.counts.n, 4 * GROUPS)
  end)

  it("columns, in order, in batches", function()
    local s = scan(function()
      return sample:at(0) { free = scan.all { scan.column(), scan.sum() },
        state = scan.column "condition" }
    end)
    for _, o in ipairs { { batch_groups = 1 }, { batch_groups = 96, queue_depth = 3 },
      { batch_groups = 4096, engine = "sync", threads = 4 }, { first = 10, count = 900 } } do
      local next_group, calls = o.first or 0, 0
      o.batch = function(b)
        calls = calls + 1
        assert.int(b.first, next_group)
        assert.int(#b.free, b.count)
        assert.int(#b.condition, b.count)
        assert.is_true(b.count <= (o.batch_groups or 4096))
        for k = 1, b.count do
          assert.int(b.free[k], truth[next_group].free)
          assert.int(b.condition[k], truth[next_group].state)
          next_group = next_group + 1
        end
      end
      local r = run(s, o)
      assert.int(next_group, (o.first or 0) + (o.count or GROUPS))
      assert.int(r.groups, o.count or GROUPS)
      assert.is_true(calls >= r.groups // (o.batch_groups or 4096))
    end
    -- Without a function to take them they cost nothing.
    assert.int(run(s).groups, GROUPS)
  end)

  it("columns until the function says false or raises", function()
    local s = scan(function() return sample:at(0) { free = scan.column() } end)
    local calls = 0
    local r = run(s, { batch_groups = 10, queue_depth = 1, batch = function()
      calls = calls + 1
      return calls < 3
    end })
    assert.equal("cancelled", r.stopped)
    assert.int(calls, 3)
    local ok, err = pcall(run, s, { batch = function() error("enough", 0) end })
    assert.is_false(ok)
    assert.equal("enough", err)
    assert.int(brim._debug.open_handles(), 0)
  end)

  it("beside what it expects, whether or not that holds", function()
    local r = run(scan(function()
      return sample:at(0) { free = scan.all { scan.range(10000, 500000), scan.sum() },
        state = scan.one_of { 1, 2 } }
    end), { max_mismatches = 4 })
    local low, high, state = 0, 0, 0
    for i = 0, GROUPS - 1 do
      low = low + (truth[i].free < 10000 and 1 or 0)
      high = high + (truth[i].free > 500000 and 1 or 0)
      state = state + ((truth[i].state < 1 or truth[i].state > 2) and 1 or 0)
    end
    assert.is_true(low > 4 and high > 400 and state > 400)
    assert.int(r.mismatch_count, low + high + state)
    assert.int(r.sums.free, (fold(function(i) return truth[i].free end)))
    local counts = {}
    for _, kind in ipairs(r.kinds) do
      assert.equal("sample", kind.piece)
      counts[kind.what .. kind.rule] = kind.count
    end
    assert.same({ ["free>="] = low, ["free<="] = high, ["statein"] = state }, counts)
    assert.is_true(r.kinds[1].count >= r.kinds[2].count)
    assert.int(r.kinds[3].count, low)
    -- The first four of each kind, in the order of their places.
    local kept, at = {}, -1
    for _, m in ipairs(r.mismatches) do
      kept[m.what .. m.rule] = (kept[m.what .. m.rule] or 0) + 1
      assert.is_true(m.off_bytes >= at)
      at = m.off_bytes
    end
    assert.same({ ["free>="] = 4, ["free<="] = 4, ["statein"] = 4 }, kept)
    assert.matches("sample free: " .. high, tostring(r))
    assert.matches("expected >= 10,000", tostring(r))
    assert.matches("expected in 1\n", tostring(r))
  end)

  it("of a magic number only where it is asked to", function()
    local file <close> = assert(io.open(path, "r+b"))
    file:seek("set", 5 * STRIDE)
    file:write "XAMP"
    file:flush()
    local function magic(v)
      return run(scan(function() return sample:at(0) { magic = v } end))
    end
    assert.int(magic(nil).mismatch_count, 1)
    assert.int(magic(scan.max()).mismatch_count, 1)
    assert.int(magic(scan.any).mismatch_count, 0)
    local r = magic(scan.all { scan.any, scan.max() })
    assert.int(r.mismatch_count, 0)
    assert.int(r.maxima.magic.group, 5)
    assert.int(magic(scan.range(0, -1 >> 32)).mismatch_count, 0)
    file:seek("set", 5 * STRIDE)
    file:write "SAMP"
    file:flush()
  end)

  it("and prints itself with the units of the fields", function()
    local r = run(scan(function()
      return sample:at(0) { free = scan.all { scan.sum(), scan.min "least" },
        used = scan.all { scan.max(), scan.histogram("sizes") }, state = scan.count() }
    end))
    local text = tostring(r)
    assert.matches("^1,000 groups in [^\n]+: nothing is wrong\n", text)
    assert.matches("\n  sum free: [%d,]+ blocks\n", text)
    assert.matches("\n  min least: [%d,]+ blocks in group %d+\n", text)
    assert.matches("\n  max used: [%d,]+ bytes[^\n]* in group %d+\n", text)
    assert.matches("\n  histogram sizes, bytes\n +[%d,]+ %.%. [%d,]+ +%d+ #+\n", text)
    assert.matches("\n  count state: 1,000$", text)
  end)

  describe("and refuses", function()
    local function assert_raises(part, f)
      local ok, why = pcall(f)
      assert.is_false(ok, "nothing was raised")
      assert.matches("scan_gather_spec.lua:%d+: ", tostring(why))
      assert.is_truthy(tostring(why):find(part, 1, true), ("no '%s' in: %s"):format(part, why))
    end

    local UNMET = {
      ["field 'label' of 'sample': scan.sum is for integers"] = function()
        return { label = scan.sum() }
      end,
      ["field 'free' of 'sample': no value is within 5 .. 4"] = function()
        return { free = scan.range(5, 4) }
      end,
      ["field 'used' of 'sample': no value is within -1 .. 4"] = function()
        return { used = scan.range(-1, 4) }
      end,
      ["field 'state' of 'sample': 256 does not fit 8 bits"] = function()
        return { state = scan.one_of { 1, 256 } }
      end,
      ["field 'state' of 'sample': expected an integer, got string"] = function()
        return { state = scan.range("a", 2) }
      end,
      ["field 'state' of 'sample': a range has two bounds"] = function()
        return { state = scan.range(2) }
      end,
      ["field 'state' of 'sample': scan.sum is no test of a value"] = function()
        return { state = scan.count("n", scan.sum()) }
      end,
      ["field 'slots' of 'sample': there is a column 'slots' already"] = function()
        return { slots = scan.column() }
      end,
      ["'x' is there already, described in another way"] = function()
        return { state = scan.histogram "x", free = scan.histogram("x", { to = 9 }) }
      end,
      ["either log2, or from (0) less than to"] = function()
        return { free = scan.histogram("x", { from = 9 }) }
      end,
      ["at most to - from"] = function()
        return { free = scan.histogram("x", { to = 9, bins = 10 }) }
      end,
      ["unknown option 'form'"] = function()
        return { free = scan.histogram("x", { form = 9 }) }
      end,
      ["a name is a string, not number"] = function() return { free = scan.sum(5) } end,
      ["scan.one_of: a list"] = function() return { free = scan.one_of {} } end,
      ["scan.all: a list"] = function() return { free = scan.all(scan.any) } end,
    }
    for part, values in pairs(UNMET) do
      it(part, function()
        assert_raises(part, function()
          scan(function() return sample:at(0)(values()) end)
        end)
      end)
    end

    it("batches of scans without columns, and columns with a batch's own names", function()
      local s = scan(function() return sample:at(0) end)
      assert_raises("no scan.column", function() run(s, { batch = print }) end)
      s = scan(function() return sample:at(0) { free = scan.column "first" } end)
      assert_raises("cannot be named 'first'", function() run(s, { batch = print }) end)
    end)
  end)
end)
