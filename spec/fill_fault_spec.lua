-- brim.fill over a drive that is slow or fails: stalls and errors are in the timeline with
-- operation and path, and the fill ends with a clear result. The drive is nbdkit's, with filters.
-- #root
local brim = require "brim"
local devices = require "spec.devices"
local helper = require "spec.helper"
local process = require "brim.process"

-- A drive in memory behind filters of nbdkit, formatted and mounted; its directory.
local function mount(size, filters, mkfs)
  local fuse = helper.path "nbd"
  helper.must("mkdir %s", fuse)
  local server = assert(process.start(helper.path "nbd.log", "sh", "-c",
    ("exec nbdfuse %s --command nbdkit -s memory %s %s"):format(fuse, size,
      filters)))
  devices.later("kill %d 2>/dev/null; while [ -d /proc/%d ]; do sleep 0.05; done", server.pid,
    server.pid)
  devices.later("fusermount3 -u %s 2>/dev/null || umount %s", fuse, fuse)
  assert(process.wait(10, function() return process.run("test", "-s", fuse .. "/nbd") end))
  local loop = devices.loop(fuse .. "/nbd")
  helper.must("%s %s", mkfs, loop)
  return devices.mount(loop)
end

local function fill(dir, o)
  local path = helper.path "t.jsonl"
  o.timeline, o.sample_s, o.checkpoint_s = path, 0.1, 0.3
  local w = brim.fill.new { seed = 6, streams = 2, sizes = "256k" }:fill { bytes = o.bytes }
  o.bytes = nil
  local r, err = w:run(dir, o)
  return r, err, assert(brim.timeline.read(path))
end

local function events(t, kind)
  local list = {}
  for _, e in ipairs(t.events) do
    list[#list + 1] = e.kind == kind and e or nil
  end
  return list
end

describe("brim.fill over a faulty drive #root", function()
  after_each(devices.release)

  if not helper.has "nbdfuse" or not helper.has "nbdkit" then
    it("tells", function() return pending "no nbdkit or no nbdfuse" end)
    return
  end

  it("tells stalls with operation and path", function()
    local dir = mount("32M", "--filter=delay wdelay=60ms", "mkfs.ext4 -q -F -E nodiscard")
    local r, err, t = fill(dir, { bytes = "1m", stall_s = 0.05, direct = true, mode = "plain" })
    assert(r, err)
    assert.is_true(r.ok)
    assert.is_true(r.stalls > 0)
    local named = 0
    for _, e in ipairs(events(t, "stall")) do
      if e.state == "begin" and (e.op == "create" or e.op == "mkdir") then
        named = named + 1
        assert.truthy(e.path:find "^s[01]/d0/d0/f%d+$", e.path)
      end
    end
    assert.is_true(named > 0, brim.json.encode(events(t, "stall")))
  end)

  it("ends with the error of a drive that fails", function()
    local trigger = helper.path "trigger"
    local dir = mount("400M", "--filter=error error-pwrite=EIO error-pwrite-rate=100% error-file="
      .. trigger, "mkfs.xfs -q -f -K")
    local r, err, t = fill(dir, { bytes = "200m", progress_interval_s = 0, progress = function(p)
      if p.written_bytes > 30 << 20 then
        helper.must("touch %s", trigger)
      end
    end })
    local told = events(t, "error")
    assert.is_true(#told > 0)
    assert.is_string(told[1].op)
    assert.is_string(told[1].path)
    assert.is_string(t.result.stopped or t.result.phases[1].stopped)
    assert.is_false(t.result.ok)
    assert.equal("EIO", err and err.code or r and r.phases[1].stopped)
    os.remove(trigger)
  end)
end)

-- A drive that has less than it says: a sparse file on a tmpfs behind a loop device.
describe("brim.fill over a thin drive that is full #root", function()
  after_each(devices.release)

  for _, direct in ipairs { true, false } do
    it("ends and says so" .. (direct and ", past the page cache" or ""), function()
      if not helper.has "mkfs.xfs" then
        return pending "no mkfs.xfs"
      end
      local pool = devices.mount("tmpfs", "-t tmpfs -o size=96m")
      helper.must("truncate -s 600M %s/thin", pool)
      local loop = devices.loop(pool .. "/thin", direct and "--direct-io=on" or nil)
      helper.must("mkfs.xfs -q -f -K -l size=64m %s", loop)
      local dir = devices.mount(loop)
      local r, err, t = fill(dir, { bytes = "400m", direct = direct, mode = "plain" })
      assert(r, err)
      assert.equal("ENOSPC", r.phases[1].stopped)
      assert.equal("ENOSPC", t.result.phases[1].stopped)
      assert.truthy(r.text:find("stopped: ENOSPC", 1, true), r.text)
      -- Far from what the filesystem believes to have.
      assert.is_true(r.fullness < 0.7, r.text)
      local told = events(t, direct and "refused" or "error")
      assert.is_true(#told > 0)
      for _, x in ipairs(told) do
        assert.equal("ENOSPC", x.code)
        assert.equal(direct and "create" or "sync", x.op)
        assert.truthy(direct and x.path:find "^s[01]/d0/d0/f%d+$" or x.path == dir, x.path)
      end
      assert.equal(direct, r.ok)
      assert.equal(direct, r.refused > 0)
    end)
  end
end)
