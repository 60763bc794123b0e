-- The recipes fill, near-full and verify-fill, what they refuse, and what needs no mount: dry runs
-- of many files, options, safety. On /dev/shm, a filesystem that is not the system's.
local brim = require "brim"
local helper = require "spec.helper"
local options = require "brim.fill.options"

local SHM <const> = "/dev/shm"

local function run(...)
  local out, err, status = helper.brim(...)
  return out .. err, status
end

local function shm()
  local dir = helper.must("mktemp -d %s/brim-spec.XXXXXX", SHM):gsub("\n", "")
  return setmetatable({ path = dir }, { __close = function() helper.must("rm -rf %s", dir) end })
end

describe("fill targets", function()
  it("are read", function()
    for v, want in pairs { ["97%"] = { "fullness", 0.97 }, ["50 %"] = { "fullness", 0.5 },
      [0.25] = { "fullness", 0.25 }, enospc = { "full" }, full = { "full" } } do
      local t = assert(options.target(v))
      assert.same(want, { t.kind, t.value })
    end
    assert.int(options.target { free = "1g" }.value, 1 << 30)
    assert.int(options.target { files = 7 }.value, 7)
  end)

  it("are refused with their reason", function()
    for _, v in ipairs { "120%", "0%", "x", 1.5, 3, {}, { free = "1g", files = 3 },
      { fils = 3 }, true } do
      local t, why = options.target(v)
      assert.is_nil(t, tostring(v))
      assert.is_string(why)
    end
    assert.error_matches(function() brim.fill.new():fill "half" end, "no fullness")
    assert.error_matches(function() brim.fill.new():churn {} end, "for how long")
    assert.error_matches(function() brim.fill.new { seeds = 3 } end, "did you mean 'seed'")
  end)
end)

describe("workload:dry_run", function()
  it("has an end", function()
    assert.error_matches(function() brim.fill.new():dry_run {} end, "give files or bytes")
  end)

  it("plans 10 million files in 10 s, a million in 100 MB", function()
    -- In a process of its own, as memory is measured.
    local script = helper.path "dry.lua"
    helper.write(script, [[
      local w = require("brim").fill.new { streams = 2 }
      local r = w:dry_run { files = 1000000 }
      print(r.files, r.peak_rss_bytes)
      r = w:dry_run { files = 10000000 }
      print(r.files, r.wall_s)]])
    local out = helper.must("%s run %s", helper.exe, script)
    local files, rss, more, wall_s = out:match "^(%d+)%s+(%d+)%s+(%d+)%s+([%d.e-]+)"
    assert.is_true(tonumber(files) >= 1000000 and tonumber(more) >= 10000000, out)
    if (os.getenv "SAN" or "") == "" then
      assert.is_true(tonumber(rss) < 100e6, out)
      assert.is_true(tonumber(wall_s) < 10, out)
    end
  end)
end)

describe("a fill that cannot go on", function()
  it("leaves nothing behind", function()
    local dir <close> = shm()
    local w = brim.fill.new { streams = 1 }:fill { files = 10 }
    local timeline = helper.path "missing/t.jsonl"
    assert.refuses("ENOENT", w:run(dir.path, { timeline = timeline }))
    assert.equal("", helper.must("ls -A %s", dir.path))
    assert(w:run(dir.path))
  end)

  it("does not replace a file that is no timeline", function()
    local dir <close> = shm()
    local notes = helper.path "notes.txt"
    helper.write(notes, "keep me\n")
    local w = brim.fill.new { streams = 1 }:fill { files = 1000 }
    local r = assert(w:run(dir.path, { progress_interval_s = 0,
      progress = function() return false end }))
    assert.equal("cancelled", r.stopped)
    assert.refuses("EILSEQ", brim.fill.resume(dir.path, { timeline = notes }))
    assert.equal("keep me\n", helper.read(notes))
    assert(brim.fill.resume(dir.path))
  end)

  it("raises what a callback raises while it is verified", function()
    local dir <close> = shm()
    assert(brim.fill.new { streams = 1 }:fill({ files = 10 }):run(dir.path))
    assert.error_matches(function()
      brim.fill.verify(dir.path, { progress_interval_s = 0,
        progress = function() error "enough" end })
    end, "enough")
    collectgarbage() -- filesets are memory only
    assert.int(brim._debug.open_handles(), 0)
  end)

  it("#root leaves nothing where its log has no room", function()
    local path = helper.path "tiny"
    helper.must("mkdir %s && mount -t tmpfs -o size=128k tmpfs %s", path, path)
    local _, err = brim.fill.new { streams = 1 }:fill("enospc"):run(path)
    local left = helper.must("ls -A %s", path)
    helper.must("umount %s", path)
    assert.equal("ENOSPC", err and err.code)
    assert.equal("", left)
  end)
end)

describe("brim fill", function()
  it("refuses the system's filesystem, what is no directory, an earlier fill", function()
    local out, status = run("fill", "/", "--to", "1%")
    assert.int(status, 2)
    assert.truthy(out:find("--yes-really", 1, true), out)
    out, status = run("near-full", "/nowhere/at/all")
    assert.int(status, 2, out)
    out, status = run("fill", "--resume", SHM)
    assert.int(status, 2, out)
    assert.truthy(out:find("holds no fill", 1, true), out)
    local dir <close> = shm()
    out, status = run("fill", dir.path, "--files", "20", "--sizes", "4k")
    assert.int(status, 0, out)
    out, status = run("fill", dir.path, "--files", "20")
    assert.int(status, 2, out)
    assert.truthy(out:find("earlier fill", 1, true), out)
    out, status = run("fill", "--resume", dir.path)
    assert.int(status, 2, out)
    assert.truthy(out:find("nothing is left to do", 1, true), out)
  end)

  it("says what is wrong with its options", function()
    for why, words in pairs {
      ["did you mean 'log_uniform'"] = { "--sizes", "log_unifrom(1k,2k)" },
      ["120%"] = { "--to", "120%" },
      ["is none of auto, plain, ring"] = { "--mode", "rings" },
      ["No such file"] = { "--manifest", "/nowhere" },
    } do
      local out, status = run("fill", SHM, table.unpack(words))
      assert.int(status, 2, out)
      assert.truthy(out:find(why, 1, true), out)
    end
    local out, status = run("near-full", SHM, "--churn", "soon")
    assert.int(status, 2, out)
    out, status = run("near-full", SHM, "--until", "50%,most")
    assert.int(status, 2, out)
    assert.truthy(out:find("'most'", 1, true), out)
    out, status = run("--dry-run", "near-full", SHM, "--until", "50%,enospc,99%")
    assert.int(status, 2)
    assert.matches("'99%' comes after 'enospc', but levels go up", out, 1, true)
    out, status = run("--dry-run", "near-full", SHM, "--until", "50%,50%,enospc")
    assert.int(status, 0, out)
  end)

  it("fills, verifies, cleans up, and does nothing in a dry run", function()
    local dir <close> = shm()
    local out, status = run("--dry-run", "fill", dir.path, "--files", "300")
    assert.int(status, 0, out)
    assert.truthy(out:find("fill to 300 files", 1, true), out)
    assert.equal("", helper.must("ls -A %s", dir.path))
    local timeline = helper.path "t.jsonl"
    out, status = run("--json", "fill", dir.path, "--files", "300", "--sizes", "uniform(1,20k)",
      "--streams", "3", "--extensions", ".jpg,.txt", "--content", "compressible", "--timeline",
      timeline)
    assert.int(status, 0, out)
    local r = brim.json.decode(out)
    assert.is_true(r.files >= 300 and r.files < 303)
    local files = helper.must("find %s/s? -type f -name 'f*' | wc -l", dir.path)
    assert.int(math.tointeger(tonumber(files)), r.files)
    assert.equal("0\n", helper.must("find %s/s? -type f ! -name '*.jpg' ! -name '*.txt' | wc -l",
      dir.path))
    assert.int(brim.timeline.read(timeline).result.files, r.files)
    out, status = run("verify-fill", dir.path)
    assert.int(status, 0, out)
    out, status = run("fill", "--clean", dir.path)
    assert.int(status, 0, out)
    assert.equal("", helper.must("ls -A %s", dir.path))
  end)

  it("reads more columns from a script's probes", function()
    local dir <close> = shm()
    local path, calls = helper.path "t.jsonl", 0
    local w = brim.fill.new { seed = 2, sizes = "4k", streams = 2 }:fill { files = 100 }
    w:snapshot "between"
    w:idle(0.1)
    local all = table.pack(w:run(dir.path, { timeline = path, sample_s = 0.01,
      probes = { answer = function() calls = calls + 1 return 42 end } }))
    assert.int(all.n, 1)   -- nothing behind it that print would show
    local r = assert(all[1])
    assert.is_nil(r.stopped)
    local t = assert(brim.timeline.read(path))
    assert.is_true(calls > 0)
    assert.equal(42, t.samples[#t.samples].answer)
    assert.equal("between", t.marks[1].name)
    assert.same({ "fill to 100 files", "between", "idle" }, { t.phases[1].name, t.phases[2].name,
      t.phases[3].name })
  end)
end)
