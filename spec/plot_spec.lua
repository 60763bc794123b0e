-- Charts: axes round and with units, golden drawings in characters, SVG that is well formed, texts
-- that stay texts in SVG and in gnuplot's script.
local brim = require "brim"
local axis = require "brim.plot.axis"
local gnuplot = require "brim.plot.gnuplot"
local helper = require "spec.helper"
local markup = require "spec.markup"
local reader = require "brim.timeline.reader"
local svg = require "brim.plot.svg"
local timelines = require "spec.timelines"

local plot = brim.plot
local SEED <const> = math.tointeger(os.getenv "BRIM_SEED") or 20240607

local function run_of(o)
  return assert(reader.parse(timelines.text(o), "made-up.jsonl"))
end

local RAMP <const> = { x = { label = "synced fullness", unit = "1", min = 0, max = 1 },
  y = { label = "written", unit = "bytes/s", min = 0 },
  series = { { name = "one", points = { { 0, 400e6 }, { 0.5, 300e6 }, { 1, 0 } } } } }

local function texts(a)
  local list = {}
  for i, tick in ipairs(a.ticks) do
    list[i] = tick.text
  end
  return table.concat(list, " ") .. (a.unit ~= "" and " " .. a.unit or "")
end

describe("an axis", function()
  it("has round ticks in a unit that keeps them short", function()
    for _, case in ipairs {
      { { min = 0, max = 1, unit = "1", ticks = 5 }, "0 20 40 60 80 100 %" },
      { { min = 0.985, max = 0.999, unit = "1", ticks = 3, is_exact = true }, "98.5 99.0 99.5 %" },
      { { min = 0, max = 4.2e8, unit = "bytes/s", ticks = 5 }, "0 100 200 300 400 500 MB/s" },
      { { min = 0, max = 3400, unit = "1/s", ticks = 4 }, "0 1 2 3 4 k/s" },
      { { min = 0, max = 550, unit = "s", ticks = 5, is_exact = true }, "0 2 4 6 8 min" },
      { { min = 0, max = 90, unit = "s", ticks = 4 }, "0 50 100 s" },
      { { min = 0, max = 2e6, unit = "s", ticks = 5 }, "0 5 10 15 20 25 d" },
      { { min = 1e-5, max = 2, unit = "s", is_log = true }, "10 µs 1 ms 100 ms 10 s" },
      { { min = 7, max = 7, unit = "" }, "7.0 7.2 7.4 7.6 7.8" },
      { { min = 0, max = 0, unit = "bytes/s" }, "0.0 0.2 0.4 0.6 0.8 1.0 B/s" },
    } do
      local a = axis.new(case[1])
      assert.is_true(a.max > a.min and #a.ticks < 12)
      assert.equal(case[2], texts(a))
    end
  end)

  it("places values from 0 to 1", function()
    local a = axis.new { min = 0, max = 10 }
    assert.near(0.5, a:place(5), 1e-12)
    local l = axis.new { min = 1e-3, max = 10, is_log = true }
    assert.near(0.25, l:place(1e-2), 1e-9)
    assert.is_nil(l:place(0))
  end)

  it("writes single values for people", function()
    assert.equal("420 MB/s", axis.text(4.2e8, "bytes/s"))
    assert.equal("97.3 %", axis.text(0.973, "1"))
    assert.equal("3.2 ms", axis.text(3.2e-3, "s"))
    assert.equal("0 B/s", axis.text(0, "bytes/s"))
    assert.equal("1.5 k/s", axis.text(1500, "1/s"))
  end)
end)

describe("a chart in the terminal", function()
  it("is this in ASCII", function()
    assert.equal([[
written (MB/s)
500 +
    |**********
    |          **************
    |                        **********
  0 +                                  *****
    ++------------------+------------------+
     0                 50                100
                         synced fullness (%)
]], plot.terminal(RAMP, { columns = 44, rows = 5, charset = "ascii" }))
  end)

  it("is this in Braille", function()
    assert.equal([[
written (MB/s)
500 ┤
    │⠉⠉⠑⠒⠒⠒⠒⠢⠤⠤⠤⠤⢄⣀⣀⣀⣀⡀
    │                 ⠈⠉⠉⠑⠒⠢⠤⣀⣀
    │                          ⠉⠑⠒⠤⠤⣀⡀
  0 ┤                                ⠈⠉⠑⠒⠤⠤⣀
    └┬──────────────────┬──────────────────┬
     0                 50                100
                         synced fullness (%)
]], plot.terminal(RAMP, { columns = 44, rows = 5, charset = "braille" }))
  end)

  it("fits whatever the width, and has its units", function()
    local runs = { run_of { seed = SEED }, run_of { seed = SEED + 1, title = ("long "):rep(30) } }
    for _, kind in ipairs(plot.KINDS) do
      local chart = plot.chart(kind, runs)
      for _, columns in ipairs { 24, 40, 79, 80, 200 } do
        for _, charset in ipairs { "braille", "ascii" } do
          local text = plot.terminal(chart, { columns = columns, rows = 6, charset = charset })
          for line in text:gmatch "[^\n]*" do
            assert.is_true(utf8.len(line) <= columns, ("%s, %d:\n%s"):format(kind, columns, text))
          end
          assert.equal(charset == "braille", text:find "[\128-\255]" ~= nil
            and text:find "│" ~= nil)
        end
      end
    end
  end)

  it("lets nothing of a file's text reach the terminal as a control", function()
    local chart = { x = RAMP.x, y = RAMP.y, series = { { name = "a\27[2Jb", points = { { 0, 1 } } },
      { name = "\xff\xfe", points = { { 1, 2 } } } } }
    local text = plot.terminal(chart, { columns = 60, charset = "ascii" })
    assert.is_nil(text:find "\27")
    assert.matches("a?[2Jb", text, 1, true)
    assert.matches("\27[34m", plot.terminal(chart, { columns = 60, color = true }), 1, true)
  end)

  it("says so where there is nothing to draw", function()
    local empty = { x = RAMP.x, y = RAMP.y, series = {} }
    assert.equal("written: nothing to show yet\n", plot.terminal(empty, { columns = 40 }))
    local hollow = { x = RAMP.x, y = RAMP.y, series = { { points = { { 0, 0 / 0 }, { 1 } } } } }
    assert.equal("written: nothing to show yet\n", plot.terminal(hollow, { columns = 40 }))
  end)

  it("grows live: drawn over itself, once more at the end", function()
    local out = {}
    local stream = { write = function(s, ...)
      out[#out + 1] = table.concat { ... }
      return s
    end, flush = function() end }
    local live = plot.live { x = RAMP.x, y = RAMP.y, stream = stream, is_tty = true, columns = 40,
      rows = 4, interval_s = 0, charset = "ascii" }
    live:add(0.1, 100e6)
    live:add(0.2, 50e6)
    live:add(7, 50e6)
    live:close()
    live:close()
    local all = table.concat(out)
    assert.equal(3, select(2, all:gsub("\27%[8A\r\27%[J", "")))
    assert.equal(4, select(2, all:gsub("written %(MB/s%)", "")))
    out = {}
    local told = plot.live { x = RAMP.x, y = RAMP.y, stream = stream, is_tty = true, columns = 40,
      rows = 4, interval_s = 0, charset = "ascii" }
    told:add(0.1, 100e6)
    told:draw(("status \27 "):rep(9))
    told:close()
    assert.matches("\nstatus ? status ? status ? status ? sta\n\27[9A\r\27[J", table.concat(out), 1,
      true)
    local quiet = plot.live { x = RAMP.x, y = RAMP.y, stream = stream, is_tty = false,
      columns = 40, charset = "ascii" }
    out = {}
    quiet:add(0.5, 1)
    assert.equal(0, #out)
    quiet:close()
    assert.is_nil(table.concat(out):find "\27")
    assert.error_matches(function() plot.live { x = {}, y = RAMP.y } end, "needs min and max")
  end)
end)

describe("SVG of our own", function()
  it("is well formed for every chart, hostile text included", function()
    local evil = run_of { seed = SEED, title = '</title><script>alert("1")</script>&\'\1\xff' }
    for _, kind in ipairs(plot.KINDS) do
      for _, runs in ipairs { { evil }, { evil, run_of { seed = SEED + 1 } }, {} } do
        local text = assert(plot.svg(plot.chart(kind, runs), { with = "brim" }))
        assert.is_nil(text:find "<script")
        assert.is_nil(text:find "nan")
        markup.assert_well_formed(text)
      end
    end
    assert.equal("&lt;&amp;&gt;&quot;&#39;??", svg.escape "<&>\"'\0\xff")
  end)

  it("breaks lines at gaps and draws a lonely point", function()
    local chart = { x = RAMP.x, y = RAMP.y, series = { { points = { { 0, 1 }, { 0.1, 2 }, { 0.2 },
      { 0.3, 3 }, { 0.4 }, { 0.5, 1 }, { 1, 1 } } } } }
    local text = svg.draw(chart)
    assert.equal(2, select(2, text:match ' d="(M[^"]+)"':gsub("M", "")))
    assert.equal(1, select(2, text:gsub("<circle", "")))
  end)
end)

describe("gnuplot", function()
  it("gets texts that it substitutes nothing in", function()
    assert.equal("'a''b `id` $(id) @x \\n'", gnuplot.quote "a'b `id` $(id) @x \\n")
    assert.equal("'a  b'", gnuplot.quote "a\r\nb")
  end)

  it("draws every chart, and runs nothing that a title says", function()
    if not helper.has "gnuplot" then
      return pending "no gnuplot"
    end
    local proof = helper.path "proof"
    local evil = run_of { seed = SEED, title = ("x' ; system('touch %s') # `touch %s`"):format(
      proof, proof) }
    for _, kind in ipairs(plot.KINDS) do
      local out = helper.path "chart.svg"
      assert(plot.write(out, plot.chart(kind, { evil, run_of { seed = SEED + 1 } }),
        { with = "gnuplot" }))
      assert.matches("<svg.*</svg>", helper.read(out))
    end
    assert.is_nil((io.open(proof)))
    assert.refuses("ENODATA", plot.svg(plot.chart("speed", {}), { with = "gnuplot" }))
    assert.refuses("EIO", plot.write("/nonexistent/x.svg", RAMP))
  end)
end)
