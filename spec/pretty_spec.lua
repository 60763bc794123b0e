local pretty = require "brim.pretty"
local progress = require "brim.progress"
require "spec.helper"

describe("brim.pretty", function()
  it("shows scalars as Lua would read them", function()
    assert.equal("1", pretty.format(1))
    assert.equal("1.0", pretty.format(1.0))
    assert.equal("nil", pretty.format(nil))
    assert.equal("true", pretty.format(true))
    assert.equal([["a\"b\nc\0\27"]], pretty.format('a"b\nc\0\27'))
  end)

  it("sorts keys, numbers first", function()
    assert.equal('{ [5] = 1, a = 2, b = 3, ["c d"] = 4 }',
      pretty.format { b = 3, a = 2, [5] = 1, ["c d"] = 4 })
    assert.equal("{ 1, 2, 3 }", pretty.format { 1, 2, 3 })
    assert.equal("{}", pretty.format {})
  end)

  it("names cycles and stops at its depth", function()
    local t = { 1 }
    t[2] = t
    assert.equal("{ 1, <cycle> }", pretty.format(t))
    local shared = { 1 }
    assert.equal("{ { 1 }, { 1 } }", pretty.format { shared, shared })
    assert.equal("{ { {...} } }", pretty.format({ { { { 1 } } } }, { depth = 2 }))
  end)

  it("cuts long tables and strings", function()
    local list = {}
    for i = 1, 1000 do
      list[i] = i
    end
    local text = pretty.format(list, { max_items = 3 })
    assert.equal("{ 1, 2, 3, ... 997 more }", text)
    assert.equal('"aaa"... (10 bytes)', pretty.format(("a"):rep(10), { max_string = 3 }))
  end)

  it("shows the unit that a key names", function()
    assert.equal("{ size_bytes = 1152921504606846976 (1 EiB) }",
      pretty.format { size_bytes = 1 << 60 })
    assert.equal("{ len_bytes = 512 }", pretty.format { len_bytes = 512 })
    assert.equal("{ wait_ns = 1500000 (1.5 ms) }", pretty.format { wait_ns = 1500000 })
    assert.equal("{ used_ppm = 612500 (61.25 %) }", pretty.format { used_ppm = 612500 })
    assert.equal("{ x_u64 = -1 (0xffffffffffffffff) }", pretty.format { x_u64 = -1 })
  end)

  it("lets values print themselves", function()
    local v = setmetatable({}, { __tostring = function() return "me" end })
    assert.equal("{ me }", pretty.format { v })
  end)

  it("formats durations, counts and rates", function()
    assert.equal("12.4 ms", pretty.duration(0.0124))
    assert.equal("59 s", pretty.duration(59))
    assert.equal("3:25", pretty.duration(205))
    assert.equal("2:03:07", pretty.duration(7387))
    assert.equal("8,387,585", pretty.count(8387585))
    assert.equal("999", pretty.count(999))
    assert.equal("-1,000", pretty.count(-1000))
    assert.equal("1.25 M", pretty.si(1.25e6))
    assert.equal("12", pretty.si(12))
  end)
end)

describe("brim.progress", function()
  local state = { phase = "groups", groups_done = 2000, groups_total = 8000, ios_done = 2000,
    ios_total = 8000, bytes_done = 0, bytes_total = 0, elapsed_ns = 2e9, mean_queue_depth = 127.5 }

  it("says fraction, time left, rates, depth", function()
    assert.equal("groups  25.0 %  6 s left  1 k groups/s  1 k IOPS  depth 127.5"
      .. "  2,000 of 8,000 groups", progress.line(state, 120))
  end)

  it("fits the terminal", function()
    for columns = 20, 120 do
      assert.is_true(#progress.line(state, columns) < columns)
    end
  end)

  it("says something at the very start, too", function()
    assert.equal("working   0.0 %  0 IOPS  depth 0.0", progress.line({}, 80))
  end)

  local function fake_stream()
    local stream = { text = {} }
    function stream:write(...)
      self.text[#self.text + 1] = table.concat { ... }
      return self
    end
    function stream:flush()
      return self
    end
    return stream
  end

  it("draws at most ten times a second, and cleans up", function()
    local stream = fake_stream()
    local display = progress.open { stream = stream, is_tty = true, columns = 80 }
    for _ = 1, 1000 do
      display.update(state)
    end
    assert.is_true(#stream.text <= 2)
    display:close()
    assert.equal("\r\27[K", stream.text[#stream.text])
  end)

  it("is silent where there is no terminal, unless a summary is asked for", function()
    local stream = fake_stream()
    local display = progress.open { stream = stream, is_tty = false, columns = 80 }
    assert.is_false(display:is_active())
    display.update(state)
    display:close()
    assert.same({}, stream.text)
    display = progress.open { stream = stream, is_tty = false, columns = 80, summary = true }
    display.update(state)
    display:close()
    assert.equal(1, #stream.text)
  end)
end)
