-- Experiments: statistics against known values, cells that finish, fail, are cut off and resumed,
-- verdicts in words, the report. Runs are made up, but for one on a path and one in a guest.
local brim = require "brim"
local helper = require "spec.helper"
local json = require "brim.json"
local markup = require "spec.markup"
local metrics = require "brim.experiment.metrics"
local timelines = require "spec.timelines"
local verdict = require "brim.experiment.verdict"
local work = require "brim.experiment.work"

local stats = brim.experiment.stats
local SEED <const> = math.tointeger(os.getenv "BRIM_SEED") or 20240607

local function close_to(expected, v)
  assert.is_true(math.abs(v - expected) < 1e-12, ("%.17g instead of %.17g"):format(v, expected))
end

-- All choices of #a ranks, one after the other: the test as it is defined.
local function test_by_counting(a, b)
  local all = table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {}))
  local function statistic(is_a)
    local u = 0
    for i = 1, #all do
      for k = 1, #all do
        if is_a(i) and not is_a(k) then
          u = u + (all[i] > all[k] and 1 or all[i] == all[k] and 0.5 or 0)
        end
      end
    end
    return math.abs(u - #a * #b / 2)
  end
  local seen, beyond, total = statistic(function(i) return i <= #a end), 0, 0
  for mask = 0, (1 << #all) - 1 do
    local chosen = 0
    for i = 0, #all - 1 do
      chosen = chosen + (mask >> i & 1)
    end
    if chosen == #a then
      total = total + 1
      beyond = beyond + (statistic(function(i) return mask >> (i - 1) & 1 == 1 end) >= seen
        and 1 or 0)
    end
  end
  return beyond / total
end

describe("statistics", function()
  it("have the quantiles of type 7", function()
    close_to(1.75, stats.quantile({ 1, 2, 3, 4 }, 0.25))
    close_to(2.5, stats.quantile({ 1, 2, 3, 4 }, 0.5))
    close_to(4, stats.quantile({ 1, 2, 3, 4 }, 1))
    close_to(7, stats.quantile({ 7 }, 0.3))
  end)

  it("have the exact Mann-Whitney test of the tables", function()
    -- 2 of C(6,3) = 20, 2 of C(8,4) = 70; n = 5 each and U = 2: 8 of 252.
    for _, case in ipairs {
      { { 1, 2, 3 }, { 4, 5, 6 }, 2 / 20, 2 / 20 },
      { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, 2 / 70, 2 / 70 },
      { { 1, 2, 3, 5, 6 }, { 4, 7, 8, 9, 10 }, 8 / 252, 2 / 252 },
      { { 1, 1 }, { 1, 1 }, 1, 1 },
    } do
      local p, least = stats.mann_whitney(case[1], case[2])
      close_to(case[3], p)
      close_to(case[4], least)
    end
  end)

  it("have the test that counting all choices gives, ties included", function()
    local r = timelines.random(SEED)
    for _ = 1, 12 do
      local a, b = {}, {}
      for i = 1, 2 + r() * 3 // 1 do
        a[i] = r() * 6 // 1
      end
      for i = 1, 2 + r() * 3 // 1 do
        b[i] = r() * 6 // 1
      end
      assert.equal(("%.12f"):format(test_by_counting(a, b)),
        ("%.12f"):format((stats.mann_whitney(a, b))), "seed " .. SEED)
    end
  end)

  it("have Cliff's delta", function()
    close_to(1, stats.cliffs_delta({ 1, 2 }, { 3, 4 }))
    close_to(-1, stats.cliffs_delta({ 3, 4 }, { 1, 2 }))
    close_to(0, stats.cliffs_delta({ 1, 1 }, { 1, 1 }))
    close_to((5 - 3) / 9, stats.cliffs_delta({ 1, 3, 5 }, { 2, 4, 4 }) + 1 / 9)
  end)

  it("have intervals that a small sample's enumeration gives", function()
    -- Means of two draws of { 1, 3 }: 1, 2, 2, 3, so the 5 % quantile is 1, the 95 % one 3.
    local function of_b(_, mean_b) return mean_b end
    local low, high = stats.bootstrap({ 1 }, { 1, 3 }, of_b, { seed = SEED, level = 0.9 })
    close_to(1, low)
    close_to(3, high)
    low, high = stats.bootstrap({ 1 }, { 1, 3 }, of_b, { seed = SEED, level = 0.4 })
    close_to(2, low) -- 30 % is within the half that is 2
    close_to(2, high)
    assert.same({ stats.bootstrap({ 1, 2 }, { 3, 9 }, of_b, { seed = 5 }) },
      { stats.bootstrap({ 1, 2 }, { 3, 9 }, of_b, { seed = 5 }) })
  end)

  it("cover the true ratio about as often as they say, and rarely see what is not there", function()
    local r = timelines.random(SEED)
    local function normal(mean)
      local sum = 0
      for _ = 1, 12 do
        sum = sum + r()
      end
      return mean + sum - 6
    end
    local covered, wrong, found <const>, runs <const> = 0, 0, {}, 60
    for i = 1, runs do
      local a, b, c = {}, {}, {}
      for k = 1, 8 do
        a[k], b[k], c[k] = normal(20), normal(20), normal(40)
      end
      local same = stats.compare(a, b, { resamples = 400 })
      covered = covered + (same.low <= 1 and same.high >= 1 and 1 or 0)
      wrong = wrong + (same.verdict == "different" and 1 or 0)
      found[i] = stats.compare(a, c, { resamples = 400 }).verdict
    end
    assert.is_true(covered >= runs * 0.8, ("%d of %d, seed %d"):format(covered, runs, SEED))
    assert.is_true(wrong <= runs * 0.15, ("%d of %d, seed %d"):format(wrong, runs, SEED))
    assert.equal(("different "):rep(runs), table.concat(found, " ") .. " ")
  end)
end)

describe("a verdict", function()
  local function say(a, b)
    return verdict.say(stats.compare(a, b), { "faster", "slower" }, "bytes/s")
  end

  it("says what differs, what does not, and what cannot be told", function()
    assert.matches("^2%.00× %[1%.%d+, 2%.%d+%] faster %(Cliff's delta %+1%.00, p = 0%.029%)$",
      say({ 99e6, 100e6, 101e6, 100e6 }, { 200e6, 201e6, 199e6, 200e6 }))
    assert.matches("^2%.00× %[.*%] slower",
      say({ 200e6, 201e6, 199e6, 200e6 }, { 99e6, 100e6, 101e6, 100e6 }))
    assert.matches("^no difference beyond noise: 1%.0",
      say({ 99e6, 104e6, 101e6, 95e6 }, { 100e6, 98e6, 103e6, 102e6 }))
    assert.matches("faster in these runs; too few to tell it from chance .* at least 0%.33",
      say({ 99e6, 100e6 }, { 200e6, 201e6 }))
    assert.equal("2.00× faster, from one run: noise is unknown", say({ 1e6 }, { 2e6 }))
    assert.equal("the same in all runs", say({ 0, 0 }, { 0, 0 }))
    assert.matches("^20 MB/s %[20 MB/s, 20 MB/s%] faster in these runs",
      say({ 0, 0, 0 }, { 20e6, 20e6, 20e6 }))
  end)

  it("compares each metric, and tells of those that only one variant has", function()
    local function m(name, value)
      return { name = name, value = value, unit = "s", words = { "longer", "shorter" } }
    end
    local lines = verdict.lines({ { variant = "a", metrics = { m("x", 1), m("y", 1) } },
      { variant = "b", metrics = { m("x", 2), m("z", 3) } } }, { "a", "b" })
    assert.same({ "x", "y", "z" }, { lines[1].metric, lines[2].metric, lines[3].metric })
    assert.equal("2.00× longer, from one run: noise is unknown", lines[1].text)
    assert.equal("measured of a only: 1 s", lines[2].text)
    assert.equal("measured of b only: 3 s", lines[3].text)
  end)
end)

describe("metrics", function()
  it("are what the timeline holds", function()
    local path = helper.path "run.jsonl"
    helper.write(path, table.concat({
      '{"type":"header","format":"brim-timeline","version":1}',
      '{"type":"phase","t_s":0,"name":"fill to 50 %","kind":"fill"}',
      '{"type":"sample","t_s":1,"written_bytes":1000,"create_p99_s":0.1,"dev_writes":2,'
        .. '"dev_write_bytes":800,"f2fs_moved_foreground":3}',
      '{"type":"sample","t_s":2,"written_bytes":4000,"create_p99_s":0.3,"dev_writes":4,'
        .. '"dev_write_bytes":4000,"f2fs_moved_background":4}',
      '{"type":"phase","t_s":4,"name":"churn at 50 %","kind":"churn"}',
      '{"type":"sample","t_s":5,"written_bytes":4500}',
      '{"type":"phase","t_s":6,"name":"idle","kind":"idle"}',
      '{"type":"sample","t_s":10,"written_bytes":4500,"f2fs_gc_background":1}',
      '{"type":"sample","t_s":40,"written_bytes":4500,"f2fs_gc_background":1}',
      '{"type":"sample","t_s":70,"written_bytes":4500,"f2fs_gc_background":1}',
    }, "\n") .. "\n")
    local seen = {}
    for _, m in ipairs(metrics.of(assert(brim.timeline.read(path)))) do
      seen[m.name] = m.value
    end
    assert.same({ ["speed, fill to 50 %"] = 1000.0, ["p99 of a create, fill to 50 %"] = 0.3,
      ["written a request, fill to 50 %"] = 800.0, ["speed, churn at 50 %"] = 250.0,
      ["write amplification"] = 4800 / 4500, ["blocks moved by GC"] = 7,
      ["idle, calls of GC"] = 3, ["idle, time between GC calls"] = 30.0 }, seen)
  end)
end)

-- A run that is made up: variant "slow" is half as fast; what it counts is in `calls`.
local function fake(calls, trouble)
  return function(cell)
    calls[#calls + 1] = cell.name
    if trouble and trouble[cell.name] then
      return trouble[cell.name](cell)
    end
    helper.write(cell.timeline, timelines.text { seed = cell.seed, churn_s = 3, top =
      cell.variant.name == "slow" and 200e6 or 400e6, title = cell.name })
    return { kernel = cell.variant.kernel }
  end
end

local VARIANTS <const> = { { name = "fast" }, { name = "slow", knobs = { gc_idle = 1 } } }

local function run(dir, calls, o)
  o = o or {}
  return brim.experiment.run { dir = dir, variants = o.variants or VARIANTS,
    seeds = o.seeds or { 1, 2, 3, 4 }, on = fake(calls, o.trouble), resume = o.resume,
    progress = o.progress }
end

describe("an experiment", function()
  it("runs each cell once, seed by seed, and tells what differs", function()
    local dir, calls = helper.path "e", {}
    local x = assert(run(dir, calls))
    assert.is_true(x.ok)
    assert.same({ "fast-1", "slow-1", "fast-2", "slow-2", "fast-3", "slow-3", "fast-4", "slow-4" },
      calls)
    local by = {}
    for _, l in ipairs(assert(x:verdict())) do
      by[l.metric] = l
    end
    local c = by["speed, fill to 50 %"].comparison
    assert.equal("different", c.verdict)
    assert.is_true(c.low <= 0.5 and 0.5 <= c.high and c.high < 0.6, by["speed, fill to 50 %"].text)
    assert.matches("× %[.*%] slower", by["speed, fill to 50 %"].text)
    assert.matches("8 of 8 cells finished", tostring(x), 1, true)
  end)

  it("repeats nothing that finished, and all that was cut off or failed", function()
    local dir, calls = helper.path "e", {}
    local broken = { ["slow-1"] = function()
      return nil, brim.error.usage "on purpose"
    end, ["fast-2"] = function(cell)
      helper.write(cell.timeline, "half")
      return { stopped = "interrupted" }
    end }
    local x = assert(run(dir, calls, { trouble = broken }))
    assert.same({ "fast-1", "slow-1", "fast-2" }, calls)
    assert.is_false(x.ok)
    assert.equal("interrupted", x.stopped)
    assert.same({ { cell = "slow-1", message = "on purpose" } }, x.failures)

    assert.refuses("EUSAGE", run(dir, calls))
    calls = {}
    x = assert(run(dir, calls, { resume = true }))
    assert.same({ "slow-1", "fast-2", "slow-2", "fast-3", "slow-3", "fast-4", "slow-4" }, calls)
    assert.is_true(x.ok)
    calls = {}
    x = assert(run(dir, calls, { resume = true, seeds = { 1, 2, 3, 4, 5 } }))
    assert.same({ "fast-5", "slow-5" }, calls)
    assert.int(x.ran, 2)
  end)

  it("takes a torn result for none, and other options for an error", function()
    local dir, calls = helper.path "e", {}
    assert(run(dir, calls, { seeds = { 1 } }))
    helper.write(dir .. "/fast-1/result.json", '{"ker')
    calls = {}
    assert(run(dir, calls, { seeds = { 1 }, resume = true }))
    assert.same({ "fast-1" }, calls)
    local _, err = run(dir, calls, { seeds = { 1 }, resume = true,
      variants = { { name = "fast" }, { name = "slow", knobs = { gc_idle = 2 } } } })
    assert.matches("slow%-1 was begun with other options", tostring(err))
  end)

  it("removes nothing that is not its own", function()
    local dir, calls = helper.path "e", {}
    helper.must("mkdir -p %s/slow-1 %s/fast-2", dir, dir)
    helper.write(dir .. "/slow-1/mine", "kept")
    local _, err = run(dir, calls, { resume = true })
    assert.matches("slow%-1 is there and no cell", tostring(err))
    assert.equal("kept", helper.read(dir .. "/slow-1/mine"))
    assert.same({}, calls)
  end)

  it("stops where progress says so", function()
    local calls = {}
    local x = assert(run(helper.path "e", calls, { progress = function(_, i) return i < 3 end }))
    assert.equal("cancelled", x.stopped)
    assert.same({ "fast-1", "slow-1" }, calls)
  end)

  it("reports curves, verdict and what explain says, as text only", function()
    local dir, calls = helper.path "e", {}
    local x = assert(run(dir, calls, { seeds = { 1, 2 }, variants = {
      { name = "<b>&", kernel = "6.1", geometry = { size_bytes = "4g" } },
      { name = "slow", preset = "mail", kernel = "6.1", geometry = { size_bytes = "4g" },
        drive = { preset = "archive-8tb", scale_bytes = "4g" } } } }))
    assert(x:report(dir .. "/r.html"))
    local html = helper.read(dir .. "/r.html")
    markup.assert_well_formed(html)
    for _, text in ipairs { "Verdict", "too few to tell it from chance", "&lt;b&gt;&amp;, seed 2",
      "What the kernel does: slow", "size: 4 GiB",
      "one victim of 1 segment (2 MiB) each 30.0 s" } do
      assert.matches(text, html, 1, true)
    end
    assert.is_nil(html:find("<b>&", 1, true))
  end)

  it("refuses what makes no sense", function()
    for why, o in pairs { ["no variant"] = { variants = {} },
      ["two variants are named"] = { variants = { { name = "a/b" }, { name = "a_b" } } },
      ["unknown option 'knob'"] = { variants = { { name = "a", knob = {} } } },
      ["seeds: expected different"] = { seeds = { 1, 1 } } } do
      local ok, err = pcall(run, helper.path "e", {}, o)
      assert.is_false(ok)
      assert.matches(why, tostring(err), 1, true)
    end
    for why, w in pairs { ["sets[1]: levels"] = { sets = { { levels = { "120" } } } },
      ["sets[1]: sizes"] = { sets = { { levels = { "20%" }, sizes = "tiny" } } },
      ["no set"] = { sets = {} } } do
      local ok, err = pcall(work.check, w)
      assert.is_false(ok)
      assert.matches(why, tostring(err), 1, true)
    end
  end)
end)

describe("timelines of parts", function()
  it("become one, in which time and counts go on", function()
    local one, two, out = helper.path "1", helper.path "2", helper.path "out"
    local lines = '{"type":"header","format":"brim-timeline","version":1,"seed":%d}\n'
      .. '{"type":"phase","t_s":0,"name":"fill","kind":"fill"}\n'
      .. '{"type":"sample","t_s":%d,"written_bytes":100,"files":5}\n'
      .. '{"type":"result","t_s":%d,"stopped":"%d"}\n'
    helper.write(one, lines:format(1001, 7, 8, 1))
    helper.write(two, lines:format(1002, 2, 3, 2) .. '{"torn')
    assert(work.join(out, { one, two }, 1))
    local run_of = assert(brim.timeline.read(out))
    assert.same({ 7, 10 }, (run_of:column "t_s"))
    assert.same({ 100, 200 }, (run_of:column "written_bytes"))
    assert.same({ 5, 10 }, (run_of:column "files"))
    assert.equal("2", run_of.result.stopped)
    assert.int(run_of.header.seed, 1)
    assert.int(#run_of.phases, 2)
  end)
end)

describe("an experiment that is run", function()
  local SMALL <const> = { sets = { { levels = { "10%" } }, { sizes = "4k", levels = { "12%" } } },
    churn_s = 0.2, sample_s = 0.05 }

  it("fills a path, removes its files, and has no knobs of a tmpfs #root", function()
    if not helper.is_root() then
      pending "mounting needs root"
    end
    local path = helper.path "m"
    helper.must("mkdir %s && mount -t tmpfs -o size=64m tmpfs %s", path, path)
    helper.must("mkdir -p %s/brim-experiment-mine-1/data", path)
    local ok, x, err = pcall(brim.experiment.run, { dir = helper.path "e", on = path,
      workload = SMALL, variants = { { name = "plain" }, { name = "knobs", preset = "mail" },
        { name = "mine" } } })
    local left = helper.sh("ls %s", path)
    helper.must("umount %s", path)
    assert(ok, x)
    assert(x, err)
    assert.equal("brim-experiment-mine-1\n", left)
    assert.int(#x.failures, 2)
    assert.equal("knobs-1", x.failures[1].cell)
    assert.matches("is there and of no experiment", x.failures[2].message)
    local runs = assert(x:runs())
    assert.int(#runs, 1)
    assert.int(#runs[1].run.phases, 4)
    assert.is_true(runs[1].metrics[1].value > 0)
  end)

  it("formats and fills an F2FS in a guest, with its knobs #slow", function()
    if (os.getenv "SAN" or "") ~= "" then
      pending "an instrumented brim needs more addresses than a guest has"
    elseif not helper.has "linux.uml" or not helper.has "busybox" then
      pending "user-mode-linux or busybox-static is not installed"
    end
    local dir = helper.path "e"
    local x = assert(brim.experiment.run { dir = dir, workload = SMALL, variants = { {
      name = "mail", preset = "mail", geometry = { size_bytes = "256m" }, kernel = "uml-6.1" } } })
    assert.same({}, x.failures)
    local set = {}
    for _, change in ipairs(json.decode(helper.read(dir .. "/mail-1/result.json")).knobs) do
      set[change.name] = change.after
    end
    assert.int(set.gc_no_gc_sleep_time, 30000)
    assert.equal("default", set.alloc_mode)
    assert.matches("each 30.0 s", assert(x:explain())[1].text, 1, true)
    assert.is_nil(io.open(dir .. "/mail-1/disk.img"))
  end)
end)
