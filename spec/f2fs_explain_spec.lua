-- brim.f2fs.explain: statements and cadences against what was measured on kernels (make
-- campaign-f2fs does so again) and against the kernel's rules worked out by hand.
local brim = require "brim"
local explain = brim.f2fs.explain
local fake_sysfs = require "spec.fake_sysfs"
local helper = require "spec.helper"
local knobs = require "brim.knobs"

local gc = explain.gc

-- 2 GiB by mkfs.f2fs 1.16 as a lab had it; 8 TB with sections of 128 segments by 1.15.
local SMALL <const> = { main_segments = 1011, section_segments = 1, reserved_segments = 34,
  overprovision_segments = 40, user_blocks = 971 * 512 }
local LARGE <const> = assert(brim.f2fs.geometry { size_bytes = 8001563222016, compat = "1.15",
  section_segments = 128, overprovision_percent = 1 })

local function with(kernel, set)
  local all = knobs.defaults("f2fs", SMALL, kernel)
  for name, v in pairs(set or {}) do
    all[name] = v
  end
  return { knobs = all, kernel = kernel }
end

local MAIL <const> = require("brim.knobs.presets").LIST.mail.knobs

-- When victims are taken within the time.
local function victims(state, duration_ms)
  local times = {}
  for _, w in ipairs(gc.simulate(state, duration_ms)) do
    times[#times + 1] = w.victim and w.t_ms or nil
  end
  return times
end

describe("the GC thread, simulated,", function()
  it("takes two victims 60 s apart in 150 s by default", function()
    -- Measured on 6.1: 95 % full, idle. It wakes after 30 s, 60 s later, 60 s later.
    assert.same({ 30000, 90000, 150000 }, victims(with "6.1", 150000))
    local c = gc.cadence(with "6.1")
    assert.equal(60000, c.sleep_ms)
    assert.is_true(c.is_constant)
  end)

  it("takes one each 30.0 s with the mail's knobs, set after mounting, on 6.1", function()
    assert.same({ 30000, 60000, 90000, 120000, 150000 }, victims(with("6.1", MAIL), 150000))
    assert.equal(30000, gc.cadence(with("6.1", MAIL)).sleep_ms)
    -- Set when it slept its 60 s already, they lengthen it.
    local late = with("6.1", MAIL)
    late.wait_ms = 60000
    assert.equal(90000, gc.cadence(late).sleep_ms)
  end)

  it("takes one each 500 ms with gc_urgent", function()
    local state = with("6.1", { gc_urgent = 1 })
    state.wait_ms = 500
    assert.equal(60, #victims(state, 30000))
    assert.equal(500, gc.cadence(state).sleep_ms)
    state.victims = 52
    assert.equal(52, #victims(state, 30000))
  end)

  it("stays at its sleep after none before 6.2, and leaves it from 6.2 on", function()
    local set = { gc_min_sleep_time = 1000, gc_max_sleep_time = 3000, gc_no_gc_sleep_time = 10000 }
    local old, new = with("6.1", set), with("6.2", set)
    old.wait_ms, new.wait_ms = 10000, 10000
    assert.same({ 10000, 20000, 30000, 40000 }, victims(old, 40000))
    assert.same({ 10000, 11000, 13000, 16000, 19000 }, victims(new, 21000))
    assert.equal(10000, gc.cadence(old).sleep_ms)
    assert.equal(3000, gc.cadence(new).sleep_ms)
  end)

  it("never gets to a longest sleep behind the one after none, from 6.2 on", function()
    local set = { gc_min_sleep_time = 500, gc_max_sleep_time = 90000, gc_no_gc_sleep_time = 30000 }
    local c = gc.cadence(with("6.12", set))
    assert.equal(59, #c.cycle_ms)
    assert.equal(15000, c.sleep_ms)
    assert.equal(30000, gc.cadence(with("6.1", set)).sleep_ms)
  end)

  it("waits for operations to be over, longer each time", function()
    local state = with("6.1", { gc_min_sleep_time = 1000, gc_max_sleep_time = 4000 })
    state.wait_ms, state.idle_after_ms = 1000, 5000
    local wakes = gc.simulate(state, 15000)
    assert.same({ 1000, 3000, 6000, 10000, 14000 },
      { wakes[1].t_ms, wakes[2].t_ms, wakes[3].t_ms, wakes[4].t_ms, wakes[5].t_ms })
    assert.equal("not idle", wakes[2].why)
    assert.equal("victim", wakes[3].why)
  end)

  it("shortens its sleep only below 60 %, with little that is free", function()
    local valid = math.floor(SMALL.user_blocks * 0.59)
    assert.is_true(gc.has_enough_invalid(SMALL, valid, 100))
    assert.is_false(gc.has_enough_invalid(SMALL, valid, 400))
    assert.is_false(gc.has_enough_invalid(SMALL, math.floor(SMALL.user_blocks * 0.61), 100))
    local state = with("6.1", { gc_min_sleep_time = 1000, gc_max_sleep_time = 4000 })
    state.enough_invalid = true
    assert.equal(1000, gc.cadence(state).sleep_ms)
  end)

  it("ends gc_urgent after gc_remaining_trials", function()
    local state = with("6.12", { gc_urgent = 1, gc_min_sleep_time = 1000,
      gc_max_sleep_time = 2000 })
    state.wait_ms, state.trials = 500, 3
    assert.same({ 500, 1000, 1500, 2000, 3500, 5500 }, victims(state, 6000))
  end)
end)

-- The statements of a kind.
local function of(e, kind)
  local list = {}
  for _, s in ipairs(e.statements) do
    list[#list + 1] = s.kind == kind and s or nil
  end
  return list
end

describe("explain", function()
  it("tells the mail's knobs on its disk", function()
    local e = assert(explain.explain { kernel = "4.2", geometry = LARGE, preset = "mail",
      fullness = { 0.97 }, dirty_segments = 12800 })
    local pace = of(e, "gc_thread")[3]
    assert.equal(30, pace.figures.sleep_s)
    assert.equal(128, pace.figures.segments_per_victim)
    assert.equal(12800 / (120 * 128), pace.figures.hours)
    assert.is_truthy(e.text:find("pinned for ever", 1, true))
    local ssr = of(e, "ssr")[1]
    assert.int(LARGE.reserved_segments, 26832)
    assert.int(ssr.figures.free_sections, 26832 // 128 + 1)
    assert.is_truthy(ssr.rule:find "before 4.15")
    assert.equal(200000 << 20, of(e, "checkpoint")[1].figures.bytes)
    assert.equal("warning", of(e, "checkpoint")[1].severity)
    local dead = {}
    for _, s in ipairs(of(e, "dead_knob")) do
      dead[s.text:match "^[%w_]+"] = true
    end
    assert.same({ min_ipu_util = true, gc_max_sleep_time = true }, dead)
    assert.is_truthy(of(e, "gc_idle")[1].text:find "does not make GC run when idle")
    assert.same({}, of(e, "small_volume"))
  end)

  it("tells the trap of small volumes, and how kernels differ in it", function()
    local e = assert(explain.explain { kernel = "6.1", geometry = SMALL })
    assert.is_truthy(of(e, "small_volume")[1].text:find "whatever the mount option says")
    assert.equal(129, e.knobs.ipu_policy)
    assert.int(of(e, "ssr")[1].figures.free_sections, 68)
    assert.int(of(e, "foreground_gc")[1].figures.free_sections, 34)
    e = assert(explain.explain { kernel = "6.12", geometry = SMALL })
    assert.is_nil(of(e, "small_volume")[1].text:find "whatever")
  end)

  it("tells dead knobs and modes", function()
    local e = assert(explain.explain { kernel = "6.12", geometry = SMALL, knobs = { mode = "lfs",
      min_ssr_sections = 90, gc_urgent = 1, gc_min_sleep_time = 10 } })
    assert.equal(2, #of(e, "dead_knob"))
    assert.equal(1, #of(e, "lfs"))
    assert.equal(0, #of(e, "ssr"))
    assert.equal(0.5, of(e, "urgent")[1].figures.sleep_s)
    e = assert(explain.explain { kernel = "6.12", geometry = SMALL,
      knobs = { background_gc = "off" } })
    assert.equal(1, #of(e, "gc_thread"))
  end)

  it("refuses what a kernel does not have and what is none", function()
    local ok, err = explain { kernel = "6.1", geometry = SMALL,
      knobs = { gc_remaining_trials = 1 } }
    assert.is_nil(ok)
    assert.is_truthy(err.message:find "it came with 6.2")
    assert.refuses("EUSAGE", explain { kernel = "6.1", geometry = SMALL, fullness = { 95 } })
    assert.refuses("EUSAGE", explain { kernel = "6.1", geometry = SMALL, preset = "mial" })
    assert.refuses("EUSAGE", explain { kernel = "6.1", geometry = {} })
  end)

  it("reads what is mounted", function()
    local fake = fake_sysfs.make()
    fake_sysfs.segments(fake, 1011, 1)
    local o = assert(explain.mounted(fake.dir, fake.o))
    assert.same(SMALL, o.geometry)
    assert.equal("6.1.0", o.kernel)
    assert.int(o.dirty_segments, 200)
    assert.equal("reuse", o.base.alloc_mode)
    local e = assert(explain.explain(o))
    assert.equal(129, e.knobs.ipu_policy)
    assert.same({}, e.set)
    assert.same({}, of(e, "dead_knob"))
    o.base.min_ipu_util, o.preset = 50, "mail"
    e = assert(explain.explain(o))
    assert.equal(100, e.knobs.min_ipu_util)
    assert.equal(30, of(e, "gc_thread")[3].figures.sleep_s)
    local out, err, status = helper.brim("f2fs-explain", fake.dir, "gc_max_sleep_time=40000",
      "--root=" .. fake.root, "--kernel=6.1", "--fullness=95")
    assert.equal(0, status, err)
    assert.is_truthy(out:find("one victim of 1 segment (2 MiB) each 40.0 s", 1, true), out)
  end)

  it("is a recipe for sizes, too", function()
    local out, err, status = helper.brim("f2fs-explain", "--size=8t", "--section=128",
      "--overprovision=1", "--preset=mail", "--kernel=4.2", "--fullness=50,97")
    assert.equal(0, status, err)
    assert.is_truthy(out:find("min_ipu_util=100 changes nothing", 1, true))
    local _
    _, err, status = helper.brim("f2fs-explain", "--size=8t", "--fullness=x")
    assert.equal(2, status)
    assert.is_truthy(err:find "^brim f2fs%-explain: %-%-fullness: 'x' is no percentage[^\n]*\n$")
  end)
end)
