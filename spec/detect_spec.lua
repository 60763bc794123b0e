-- Detectors on synthetic series: silent on noise, quick on what they are for, one event a change.
local brim = require "brim"
require "spec.helper"

local detect = brim.detect
local SEED <const> = math.tointeger(os.getenv "BRIM_SEED") or 20240607

-- A generator of our own: math.random's state belongs to the process.
local function noise(seed)
  local x = seed
  return function()
    x = (x * 6364136223846793005 + 1442695040888963407)
    return (x >> 33) / (1 << 31)
  end
end

-- Feeds n samples a second apart; the events that came, with the sample they came at.
local function feed(detector, from_s, n, speed)
  local found = {}
  for i = 1, n do
    local event = detector:add(from_s + i, speed(i))
    if event then
      found[#found + 1] = { at = i, event = event }
    end
  end
  return found
end

describe("a detector of collapses", function()
  it("says nothing about noise of half its mean, 20 series of 5000 samples", function()
    for k = 0, 19 do
      local random = noise(SEED + k)
      local found = feed(detect.collapse(), 0, 5000, function()
        return 100e6 * (0.5 + random())
      end)
      assert.equal(0, #found, ("seed %d: %s"):format(SEED + k, found[1] and found[1].event.message))
    end
  end)

  it("says nothing about bursts: two idle samples before each busy one", function()
    local found = feed(detect.collapse(), 0, 3000, function(i) return i % 3 == 0 and 300e6 or 0 end)
    assert.equal(0, #found)
  end)

  it("says nothing about a slow decline, or a dip shorter than for_s", function()
    local slow = feed(detect.collapse(), 0, 3000, function(i) return 200e6 * 0.999 ^ i end)
    assert.equal(0, #slow)
    local dips = feed(detect.collapse { for_s = 5 }, 0, 3000, function(i)
      return i % 40 < 5 and i > 40 and 1e6 or 100e6
    end)
    assert.equal(0, #dips)
  end)

  it("finds a collapse within for_s and one sample, and its end, once each", function()
    for k = 0, 19 do
      local random = noise(SEED + k)
      local found = feed(detect.collapse { for_s = 5 }, 0, 2000, function(i)
        local level = i > 500 and i <= 1500 and 4e6 or 100e6
        return level * (0.7 + 0.6 * random())
      end)
      local message = ("seed %d"):format(SEED + k)
      assert.equal(2, #found, message)
      assert.equal(506, found[1].at, message)
      assert.equal("begin", found[1].event.state)
      assert.equal(501, found[1].event.began_s)
      assert.near(100e6, found[1].event.median_bytes_per_s, 10e6)
      assert.near(4e6, found[1].event.bytes_per_s, 1e6)
      assert.equal(1501, found[2].at, message)
      assert.equal("end", found[2].event.state)
      assert.equal(1000, found[2].event.lasted_s)
    end
  end)

  it("does not chatter between its two thresholds", function()
    local found = feed(detect.collapse { fraction = 0.3, recover = 0.6 }, 0, 1000, function(i)
      return i <= 100 and 100 or i % 2 == 0 and 20 or 50
    end)
    -- 50 is not below 30: before the collapse it breaks the row.
    assert.equal(0, #found)
    found = feed(detect.collapse { fraction = 0.3, recover = 0.6 }, 0, 1000, function(i)
      return i <= 100 and 100 or i <= 120 and 20 or i % 2 == 0 and 20 or 50
    end)
    assert.equal(1, #found)
    assert.equal("begin", found[1].event.state)
  end)

  it("forgets at a new phase", function()
    local d = detect.collapse()
    feed(d, 0, 100, function() return 100e6 end)
    assert.equal(0, #feed(d:reset(), 100, 100, function() return 1e6 end))
    assert.equal(1, #feed(d, 200, 100, function() return 1e5 end))
  end)

  it("takes the median of its window only", function()
    -- By brute force: the running median against a sort of the last 7.
    local random, d, last = noise(SEED), detect.collapse { window = 7, warm_up = 7 }, {}
    for i = 1, 500 do
      local v = 100 + 10 * random()
      d:add(i, v)
      last[#last + 1] = v
      local copy = table.move(last, math.max(1, #last - 6), #last, 1, {})
      table.sort(copy)
      assert.same(copy, d.window.sorted)
    end
  end)

  it("refuses thresholds the wrong way round, and what it does not know", function()
    assert.error_matches(function() detect.collapse { fraction = 0.5, recover = 0.4 } end,
      "'recover': must be at least 'fraction'")
    assert.error_matches(function() detect.new { fractoin = 0.5 } end, "did you mean 'fraction'")
  end)
end)

describe("a detector of stalls", function()
  it("tells the begin at the limit and the end with the duration, once each", function()
    local d, events = detect.stall { limit_s = 10 }, {}
    for t = 0, 100 do
      local event = d:add(t, t < 20 and t or t < 50 and 20 or t)
      events[#events + 1] = event
    end
    assert.equal(2, #events)
    assert.same({ "begin", 30, 20 }, { events[1].state, events[1].t_s, events[1].began_s })
    assert.same({ "end", 50, 30 }, { events[2].state, events[2].t_s, events[2].lasted_s })
    assert.matches("nothing has completed for 10 s", events[1].message, 1, true)
  end)

  it("tells one operation that hangs while others go on", function()
    local d = detect.stall { limit_s = 3 }
    assert.is_nil(d:add(1, 1, 0.1))
    local event = d:add(2, 2, 3.5)
    assert.equal("begin", event.state)
    assert.equal(-1.5, event.began_s)
    assert.matches("an operation has been going on for 3.5 s", event.message, 1, true)
    assert.is_nil(d:add(3, 3, 4.5))
    assert.equal("end", d:add(4, 4, 0).state)
  end)

  it("says nothing while anything moves", function()
    local d = detect.stall { limit_s = 2 }
    for t = 0, 1000 do
      assert.is_nil(d:add(t, t // 2))
    end
  end)
end)

describe("a detector of both", function()
  it("gives events in the form of a timeline", function()
    local d, kinds = detect.new { limit_s = 20, for_s = 5 }, {}
    for t = 1, 200 do
      local is_dead = t > 100 and t <= 150
      for _, event in ipairs(d:add { t_s = t, bytes_per_s = is_dead and 0 or 1e8,
        progress = is_dead and 100 or t }) do
        kinds[#kinds + 1] = ("%s %s %d"):format(event.kind, event.state, event.t_s)
      end
    end
    assert.same({ "collapse begin 106", "stall begin 120", "stall end 151", "collapse end 151" },
      kinds)
    assert.same({}, d:reset():add { t_s = 500, bytes_per_s = 0, progress = 200 })
  end)
end)
