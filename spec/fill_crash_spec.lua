-- brim.fill interrupted and killed: a clean end with a result, going on from there, nothing lost
-- that was synchronised; what verify-fill finds. On filesystems in memory, so no privilege but for
-- mounting. #root
local brim = require "brim"
local devices = require "spec.devices"
local fills = require "spec.fills"
local helper = require "spec.helper"
local log = require "brim.fill.log"

local XFS <const> = { name = "xfs", size = "600m", mkfs = "mkfs.xfs -q -f" }
local MEMORY <const> = { name = "tmpfs", size = "300m" }

-- Everything that streams do.
local SCRIPT <const> = [[
  local brim = require "brim"
  local w = brim.fill.new { seed = %d, streams = 2, sizes = "log_uniform(1k,256k)" }
  for _, level in ipairs { "30%%", "60%%" } do
    w:fill(level):churn { seconds = 1, append = 15, truncate = 15, overwrite = 20 }
  end
  assert(w:run(%q, { checkpoint_s = 0.1 }))
]]

-- Starts brim and sends it a signal once the log has so many records of a kind.
local function interrupt(signal, dir, kind, count, words)
  local out = helper.path "out"
  helper.must("sh -c '%s %s >%s 2>&1 & echo $! >%s.pid'", helper.exe, words, out, out)
  local pid = helper.read(out .. ".pid"):match "%d+"
  local seen = 0
  for _ = 1, 2000 do
    local read = log.read(dir)
    seen = 0
    for _, r in ipairs(read and read.records or {}) do
      seen = seen + (r.type == kind and 1 or 0)
    end
    if seen >= count or read and #read.records > 0
      and read.records[#read.records].type == "end" then
      break
    end
    helper.sh "sleep 0.02"
  end
  helper.sh("kill -%s %s", signal, pid)
  for _ = 1, 2000 do
    if select(2, helper.sh("test -d /proc/%s && ! grep -q '^State:.Z' /proc/%s/status", pid, pid))
      ~= 0 then
      break
    end
    helper.sh "sleep 0.005"
  end
  assert.is_true(seen >= count, helper.read(out))
  return helper.read(out)
end

local function verify(dir)
  local v = assert(brim.fill.verify(dir))
  assert.is_true(v.ok, v.text)
  return v
end

describe("brim.fill #root", function()
  after_each(devices.release)

  -- Beginning, middle and while it churns, with small files so that many are in flight.
  local MOMENTS <const> = { { "grant", 1 }, { "checkpoint", 3 }, { "checkpoint", 20 },
    { "stop", 12 } }
  for i, at in ipairs(MOMENTS) do
    it(("goes on after SIGKILL at %s %d"):format(at[1], at[2]), function()
      local dir = fills.mount(i % 2 == 0 and XFS or MEMORY)
      local script = helper.path "script.lua"
      helper.write(script, SCRIPT:format(i, dir))
      interrupt("KILL", dir, at[1], at[2], "run " .. script)
      local before = verify(dir)
      assert.is_true(before.interrupted)
      local r = assert(brim.fill.resume(dir))
      assert.is_nil(r.stopped)
      assert.is_true(math.abs(r.fullness - 0.6) < 0.02, tostring(r))
      local v = verify(dir)
      assert.int(v.unjudged, 0)
      assert.is_false(v.interrupted)
    end)
  end

  it("loses nothing that was synchronised when the filesystem is gone with it", function()
    local image = devices.file("600m", "xfs.img")
    helper.must("mkfs.xfs -q -f %s", image)
    local dir = devices.mount(devices.loop(image))
    interrupt("KILL", dir, "checkpoint", 4, ("fill %s --to 80%% --sizes \"log_uniform(1k,1m)\""
      .. " --streams 2 --checkpoint-s 0.1"):format(dir))
    -- As after a power cut: what the image holds now, without a clean end.
    helper.must("cp --sparse=always %s %s.cut", image, image)
    devices.later("rm -f %s.cut", image)
    local cut = devices.mount(devices.loop(image .. ".cut"), "-o nouuid")
    verify(cut)
    local r = assert(brim.fill.resume(cut))
    assert.is_true(math.abs(r.fullness - 0.8) < 0.01)
    verify(cut)
  end)

  it("stops cleanly on SIGINT, with a result, and goes on", function()
    local dir = fills.mount(MEMORY)
    local out = interrupt("INT", dir, "checkpoint", 5,
      ("near-full %s --until 50%% --churn 20s --streams 2 --checkpoint-s 0.1"):format(dir))
    assert.truthy(out:find("stopped: interrupted; 'brim fill --resume", 1, true), out)
    local v = verify(dir)
    assert.int(v.unjudged, 0)
    local r = assert(brim.fill.resume(dir, { progress_interval_s = 0,
      progress = function(p) return p.elapsed_ns < 5e8 end }))
    assert.equal("cancelled", r.stopped)
    verify(dir)
  end)

  it("finds flipped bytes, deleted, truncated, extended and foreign files", function()
    local dir = fills.mount(MEMORY)
    assert(brim.fill.new { seed = 5, sizes = "20k", streams = 2 }:fill("30%"):run(dir))
    local function hurt(fmt, ...)
      helper.must("cd %s && " .. fmt, dir, ...)
    end
    hurt "printf X | dd of=s0/d0/d0/f3 bs=1 seek=12345 conv=notrunc status=none"
    hurt "rm s1/d0/d0/f7"
    hurt "truncate -s 5000 s0/d0/d0/f9"
    hurt "printf more >> s1/d0/d0/f11"
    hurt "printf x > s0/d0/d0/stranger"
    local v = assert(brim.fill.verify(dir))
    assert.is_false(v.ok)
    local kinds = {}
    for _, f in ipairs(v.findings) do
      kinds[f.path] = f.kind
      assert.is_true(f.kind ~= "corrupt" or f.off_bytes == 12345)
    end
    assert.same({ ["s0/d0/d0/f3"] = "corrupt", ["s1/d0/d0/f7"] = "missing",
      ["s0/d0/d0/f9"] = "short", ["s1/d0/d0/f11"] = "long",
      ["s0/d0/d0/stranger"] = "extra" }, kinds)
    local out, err, status = helper.brim("verify-fill", dir)
    assert.int(status, 1)
    assert.truthy((out .. err):find("5 findings", 1, true))
  end)

  it("says that its log is damaged, where it was whole before; clean goes on", function()
    local dir = fills.mount(MEMORY)
    local w = brim.fill.new { seed = 5, sizes = "20k", streams = 2 }
    assert(w:fill("10%"):churn { bytes = "40m" }:run(dir))
    local text = helper.read(dir .. "/.brim-fill/log")
    local _, first = text:find "\n" -- behind the header
    assert.is_true(select(2, text:gsub('"type":"checkpoint"', "")) > 3)
    helper.must("printf X | dd of=%s/.brim-fill/log bs=1 seek=%d conv=notrunc status=none", dir,
      first + 12)
    local _, err, status = helper.brim("verify-fill", dir)
    assert.int(status, 1)
    assert.truthy(err:find(("log is damaged at byte %d:"):format(first), 1, true), err)
    assert.truthy(select(2, brim.fill.resume(dir)).message:find "is damaged")
    assert.is_true(brim.fill.clean(dir))
    assert.equal("", (helper.sh("ls -A %s", dir)))
  end)
end)
