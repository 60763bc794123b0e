-- Reports: one page with all there is, nothing from elsewhere, foreign text only as text; and the
-- recipes report and plot.
local brim = require "brim"
local helper = require "spec.helper"
local markup = require "spec.markup"
local timelines = require "spec.timelines"

local SEED <const> = math.tointeger(os.getenv "BRIM_SEED") or 20240607

local function file_of(o)
  local path = helper.path "run.jsonl"
  helper.write(path, timelines.text(o))
  return path
end

describe("a report", function()
  it("shows every run: summary, five charts, events, provenance", function()
    local html = assert(brim.report.html { file_of { seed = SEED, title = "first run" },
      file_of { seed = SEED + 1, title = "second run", filesystem = "ext4" } })
    markup.assert_well_formed(html)
    assert.equal(5, select(2, html:gsub("<svg ", "")))
    for _, text in ipairs { "Speed against fullness: xfs, ext4", "first run", "second run",
      "written (MB/s)", "synced fullness (%)", "time (min)", "fullness (%)", "time of a create",
      "99.00 %", "ENOSPC", "s0/d1/f77.jpg", "No space left on device", "6.1.0-21-amd64",
      "rw,noatime,attr2,inode64", "churn at 90 %", "MODEL 8000", "95–97 %", "64 GiB" } do
      assert.matches(text, html, 1, true)
    end
  end)

  it("counts what the timeline holds", function()
    local lines, m = timelines.lines { seed = SEED }
    local html = assert(brim.report.html { file_of { seed = SEED } })
    assert.matches(require("brim.pretty").count(m.files), html, 1, true)
    -- 0 stalls, 1 collapse, 1 refusal, as made up.
    assert.matches("<td>1</td><td>0</td><td>1</td><td>ENOSPC</td>", html, 1, true)
    assert.equal("result", lines[#lines].type)
  end)

  it("shows what was refused a thousand times once, and how it was steered not at all", function()
    local path = file_of { seed = SEED }
    local more = {}
    for i = 1, 1000 do
      more[#more + 1] = ('{"type":"event","t_s":%d,"kind":"refused","code":"EDQUOT","op":"x"}\n'
        .. '{"type":"event","t_s":%d,"kind":"feedback","wanted":0.5}\n'):format(i, i)
    end
    helper.write(path, helper.read(path) .. table.concat(more))
    local html = assert(brim.report.html { path })
    assert.equal(1, select(2, html:gsub("<td>EDQUOT</td>", "")))
    assert.matches("<td>1,000</td><td>EDQUOT</td>", html, 1, true)
    assert.equal(3, select(2, html:gsub('class="event"', "")))
    assert.matches("1,000 about how the run was steered", html, 1, true)
    assert.is_nil(html:find("feedback", 1, true))
  end)

  it("needs nothing from elsewhere", function()
    local html = assert(brim.report.html { file_of { seed = SEED } })
    local rest = html:gsub('xmlns="http://www.w3.org/2000/svg"', "")
    for _, word in ipairs { "http:", "https:", "<script", "<link", "<img", "@import", "url%(",
      " src=", " href=" } do
      assert.is_nil(rest:find(word), word)
    end
    assert.matches("prefers-color-scheme:dark", html, 1, true)
  end)

  it("shows foreign text as text", function()
    local path = file_of { seed = SEED, title = '<script>alert(1)</script>"&' }
    local text = helper.read(path):gsub('"host":"labhost"', '"host":"<img src=x onerror=y>"')
      :gsub("s0/d1/f77.jpg", "</td><svg onload=a>\\u0000")
    helper.write(path, text)
    local html = assert(brim.report.html { path })
    markup.assert_well_formed(html)
    for _, word in ipairs { "<script", "<img", "<svg onload" } do
      assert.is_nil(html:find(word, 1, true), word)
    end
    assert.matches("&lt;script&gt;alert(1)", html, 1, true)
  end)

  it("takes runs that were cut off, or hold next to nothing", function()
    local header = '{"type":"header","format":"brim-timeline","version":1}\n'
    for _, text in ipairs { header, header .. '{"type":"sample","t_s":1}\n',
      header .. '{"type":"sample","t_s":0,"bytes_per_s":0,"synced_fullness":0}\n{"type":"sa',
      header .. '{"type":"phase","t_s":0,"name":"x"}\n{"type":"sample","t_s":2,"fullness":0.5,'
        .. '"written_bytes":5,"files":1.5,"create_p99_s":0}\n' } do
      local path = helper.path "t.jsonl"
      helper.write(path, text)
      local html = assert(brim.report.html { path })
      markup.assert_well_formed(html)
      assert.matches("cut off", html, 1, true)
      assert.is_nil(html:find "[^%a]nan[^%a]")
    end
  end)

  it("says what is wrong", function()
    assert.refuses("ENOENT", brim.report.html { "/nonexistent/t.jsonl" })
    local path = file_of { seed = SEED }
    assert.refuses("ENOENT", brim.report.write("/nonexistent/x.html", { path }))
    assert.refuses("ENOSPC", brim.report.write("/dev/full", { path }))
    assert.error_matches(function() brim.report.html {} end, "at least one timeline")
    assert.error_matches(function() brim.report.html { 5 } end, "source 1: expected a path")
  end)
end)

describe("the recipes", function()
  it("report writes the page, and CSV", function()
    local a, b = file_of { seed = SEED }, file_of { seed = SEED + 1 }
    local out, csv = helper.path "out.html", helper.path "out.csv"
    local text, err, status = helper.brim("report", out, a, b, "--csv", csv, "--title", "Mine")
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("2 runs", text)
    assert.matches("<title>Mine</title>", helper.read(out), 1, true)
    assert.matches("^run,phase,t_s,", helper.read(csv))
    local _, why, code = helper.brim("report", a, b)
    assert.equal(2, code)
    assert.matches("the page comes first", why)
    assert.matches("no header of a timeline", helper.read(a) ~= "" and select(2,
      helper.brim("report", out, out)))
    assert.equal(2, select(3, helper.brim("report", out)))
  end)

  it("plot draws in the terminal and SVG", function()
    local a = file_of { seed = SEED }
    local text, _, status = helper.brim("plot", a, "--columns", "60", "--charset", "braille")
    assert.equal(0, status)
    assert.matches("written (MB/s)", text, 1, true)
    local svg = helper.path "c.svg"
    assert.equal(0, select(3, helper.brim("plot", a, "--chart", "latency", "--svg", svg, "--with",
      "brim")))
    assert.matches("^<svg ", helper.read(svg))
    local _, why, code = helper.brim("plot", a, "--chart", "sped")
    assert.equal(2, code)
    assert.matches("did you mean 'speed'", why)
  end)

  it("has an example that records and reports", function()
    local dir = helper.path "example"
    helper.must("mkdir %s", dir)
    local text, err, status = helper.brim("run", "examples/report.lua", dir)
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("the report is", text)
    assert.matches("64 MiB, a MiB at a time", helper.read(dir .. "/brim-example.html"), 1, true)
    assert.equal(64, #assert(brim.timeline.read(dir .. "/brim-example.jsonl")).samples)
  end)
end)
