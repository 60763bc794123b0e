-- Guests: each kernel that is here mounts and writes an F2FS, whose reference checker is asked; how
-- guests end that hang, panic, lack room or are interrupted, and that nothing of them stays.
local brim = require "brim"
local helper = require "spec.helper"

local lab = brim.lab
local SAN <const> = (os.getenv "SAN" or "") ~= ""
local KERNELS <const> = SAN and {} or lab.kernels()

-- What is missing here, or nil.
local function lacks()
  if SAN then
    return "an instrumented brim needs more addresses than a guest has"
  elseif #KERNELS == 0 then
    return "user-mode-linux is not installed"
  elseif not helper.has "busybox" then
    return "busybox-static is not installed"
  elseif not helper.has "mkfs.f2fs" then
    return "f2fs-tools is not installed"
  end
end

local function script(text)
  local path = helper.path "script.lua"
  helper.write(path, "local brim = require 'brim'\nlocal g = brim.lab.guest\n" .. text)
  return path
end

local function image()
  local path = helper.path "f2fs.img"
  helper.must("truncate -s 128m %s && mkfs.f2fs -q -f %s", path, path)
  return path
end

-- Guests and their processes that are there.
local function left()
  local dirs = helper.sh "ls $BRIM_STATE_DIR/lab 2>/dev/null"
  local processes = helper.sh("grep -lz '^BRIM_LAB=%s' /proc/[0-9]*/environ 2>/dev/null",
    os.getenv "BRIM_STATE_DIR")
  return dirs .. processes
end

-- Runs a chunk with build/brim in the background; its pid, and the file of its output.
local function start(chunk)
  local path, out = helper.path "host.lua", helper.path "out"
  helper.write(path, chunk)
  return (helper.must("%s run %s >%s 2>&1 & echo $!", helper.exe, path, out):gsub("%s", "")), out
end

local function wait_for(path, text)
  helper.must("for i in $(seq 200); do grep -q '%s' %s 2>/dev/null && exit 0; sleep 0.05; done; "
    .. "exit 1", text, path)
end

local HANG <const> = "print 'begun'\nwhile true do end"

describe("lab", function()
  local state_dir, missing

  setup(function()
    state_dir = os.getenv "BRIM_STATE_DIR"
    missing = lacks()
  end)

  for _, kernel in ipairs(KERNELS) do
    it("mounts and writes an F2FS with Linux " .. kernel.version, function()
      if missing then
        pending(missing)
      end
      local disk, lines = image(), {}
      local r = assert(lab.run { kernel = kernel.name, disks = { disk }, args = { "a b", 7 },
        env = { WORD = "it's" }, on_line = function(line) lines[#lines + 1] = line end,
        script = script [[
          local m = assert(g.mount(g.disk(1)))
          for _, c in ipairs(m.changes) do
            print(c.name, c.before, c.after)
          end
          print(..., os.getenv "WORD", g.args()[2])
          print((assert(brim.fill.new { seed = 1 }:fill "20%":run "/mnt")).stopped)
          assert(g.sample().f2fs_free_segments > 0)
          assert(g.f2fs_info(g.disk(1), "segment_info"):find "segment_type")
          assert(not io.open("/host/etc/brim-lab", "w"))
          assert(io.open("own", "w")):write "kept"
          assert(g.umount())
          os.exit(3)]] })
      assert.equal("", r.error_text)
      assert.int(r.status, 3)
      assert.is_false(r.ok)
      assert.equal(kernel.version, r.kernel)
      assert.equal("kept", helper.read(r.results .. "/own"))
      assert.equal(table.concat(lines, "\n") .. "\n", helper.read(r.results .. "/output.log"))
      assert.same({ "alloc_mode\treuse\tdefault", "a b\tit's\t7" }, { lines[1], lines[4] })
      assert.truthy(lines[2]:find "^discard_granularity\t%d+\t16$")
      assert.truthy(lines[3]:find "^ipu_policy\t%d+\t16$")
      local said, status = helper.sh("fsck.f2fs --dry-run %s", disk)
      assert.int(status, 0)
      assert.is_nil(said:find "Fail")
      assert.is_nil(said:find "ASSERT")
      assert.equal("", left())
      helper.must("rm -rf %s", r.results)
    end)
  end

  it("ends a guest that hangs and keeps what it wrote", function()
    if missing then
      pending(missing)
    end
    local r, err = lab.run { script = script(HANG), timeout_s = 4, results = helper.path "r" }
    assert.refuses("ETIMEDOUT", r, err)
    assert.truthy(err.message:find "not done after 4 s")
    assert.equal("begun\n", helper.read(err.result.results .. "/output.log"))
    assert.equal("", left())
  end)

  it("tells what a kernel that panics said last", function()
    if missing then
      pending(missing)
    end
    local r, err = lab.run { results = helper.path "r", timeout_s = 30,
      script = script [[os.execute "kill -STOP 1; echo c >/proc/sysrq-trigger"]] }
    assert.refuses("EIO", r, err)
    assert.truthy(err.message:find "panicked %(Kernel panic .*sysrq")
    assert.equal("", left())
  end)

  it("tells a script's error apart from the guest's", function()
    if missing then
      pending(missing)
    end
    local r = assert(lab.run { script = script "error 'on purpose'", results = helper.path "r" })
    assert.int(r.status, 1)
    assert.truthy(r.message:find "on purpose")
  end)

  it("leaves nothing after SIGINT and SIGTERM", function()
    if missing then
      pending(missing)
    end
    for signal, status in pairs { INT = 130, TERM = 143 } do
      local results = helper.path "r"
      local chunk = ([[print(require("brim").lab.run { script = %q, results = %q }.stopped)]])
        :format(script(HANG), results)
      local path = helper.path "host.lua"
      helper.write(path, chunk)
      local out, ended = helper.sh("(for i in $(seq 200); do grep -q begun %s/output.log && break; "
        .. "sleep 0.05; done; sleep 0.2; kill -s %s $(cat %s.pid)) 2>/dev/null & "
        .. "sh -c 'echo $$ >%s.pid; exec %s run %s'", results, signal, path, path, helper.exe, path)
      assert.truthy(out:find "interrupted")
      assert.int(ended, status)
      assert.equal("", left())
    end
  end)

  it("removes what a killed run left", function()
    if missing then
      pending(missing)
    end
    local results = helper.path "r"
    local pid = start(([[require("brim").lab.run { script = %q, results = %q }]]):format(
      script(HANG), results))
    wait_for(results .. "/output.log", "begun")
    helper.must("kill -s KILL %s", pid)
    assert.not_equal("", left())
    assert.int(lab.sweep(), 1)
    assert.equal("", left())
  end)

  it("runs guests side by side, but not with one disk", function()
    if missing then
      pending(missing)
    end
    local disk = image()
    local path = script "assert(g.mount(g.disk(1)))\nprint(g.args())\nos.execute 'sleep 2'"
    local a <close> = assert(lab.start { script = path, disks = { disk }, args = "one",
      results = helper.path "a" })
    local b <close> = assert(lab.start { script = path, disks = { image() }, args = "two",
      results = helper.path "b" })
    wait_for(a.results .. "/output.log", "one")
    local r, err = lab.run { script = path, disks = { disk }, results = helper.path "c" }
    assert.refuses("EBUSY", r, err)
    for _, g in ipairs { a, b } do
      local stopped
      repeat
        stopped = g:step()
      until stopped
      assert.is_true(assert(g:result(stopped)).ok)
    end
    assert.equal("two\n", helper.read(b.results .. "/output.log"))
  end)

  it("says so when the results have no room #root", function()
    if missing then
      pending(missing)
    end
    local dir = helper.path "full"
    helper.must("mkdir %s && mount -t tmpfs -o size=1m tmpfs %s", dir, dir)
    local r, err = lab.run { results = dir, script = script [[
      local f = assert(io.open("big", "w"))
      for _ = 1, 64 do f:write(("x"):rep(1 << 16)) end
      f:close()
      for i = 1, 5000 do print(i) end]] }
    helper.must("umount %s", dir)
    assert.refuses("ENOSPC", r, err)
    assert.equal("", left())
  end)

  it("tells of a disk whose image has no room #root", function()
    if missing then
      pending(missing)
    end
    local dir = helper.path "full"
    helper.must("mkdir %s && mount -t tmpfs -o size=40m tmpfs %s", dir, dir)
    helper.must("truncate -s 128m %s/img && mkfs.f2fs -q -f %s/img", dir, dir)
    local r, err = lab.run { results = helper.path "r", disks = { dir .. "/img" },
      script = script [[
        assert(g.mount(g.disk(1)))
        os.execute "dd if=/dev/zero of=/mnt/x bs=1M count=60 conv=fsync 2>/dev/null"]] }
    helper.must("umount %s", dir)
    assert.is_nil(err)
    assert.truthy(r.disk_error:find "error, dev ubda.* %(the filesystem of .*/img is full%)$")
  end)

  it("puts a drive's model between the guest and its disk", function()
    if missing then
      pending(missing)
    end
    local disk, trace = image(), helper.path "trace"
    local drive = brim.drive { preset = "hdd-7200", scale_bytes = 128 << 20 }
    local r = assert(lab.run { results = helper.path "r", disks = { disk },
      shim = assert(drive:environment(disk, { trace = trace })),
      script = script [[
        assert(g.mount(g.disk(1)))
        os.execute "dd if=/dev/zero of=/mnt/x bs=1M count=8 conv=fsync 2>/dev/null"
        assert(g.umount())]] })
    assert.equal("", r.error_text)
    assert.is_nil(r.disk_error)
    local written_bytes = 0
    for _, e in ipairs(brim.drive.events(trace)) do
      written_bytes = written_bytes + (e.op == "write" and e.len_bytes or 0)
    end
    assert.is_true(written_bytes > 8 << 20)
  end)

  it("is shown by an example", function()
    if missing then
      pending(missing)
    end
    local out, status = helper.sh("TMPDIR=%s %s run examples/lab.lua uml 40%%", helper.dir(),
      helper.exe)
    assert.int(status, 0)
    assert.truthy(out:find "fill to 40 %%")
    assert.truthy(out:find "segment_type")
    assert.truthy(out:find "\nfine\t")
  end)

  it("refuses what is wrong before anything is made", function()
    local path = script ""
    assert.refuses("EUSAGE", lab.run { script = path .. ".not" })
    assert.refuses("EUSAGE", lab.run { script = path, mem = "1m" })
    assert.refuses("EUSAGE", lab.run { script = path, mem = "1e" })
    assert.refuses("EUSAGE", lab.run { script = path, kernel = "/bin/true" })
    assert.refuses("EUSAGE", lab.run { script = path, shim = { "LD_PRELOAD=/nowhere.so" } })
    assert.refuses("EUSAGE", lab.run { script = path, kernel = "linux" })
    assert.refuses("ESKIP", lab.run { script = path, kernel = "uml-1.2" })
    assert.has_error(function() lab.run { script = path, disk = "x" } end)
    if not missing then
      assert.refuses("EUSAGE", lab.run { script = path, disks = { path .. ".not" } })
    end
    assert.equal("", left())
  end)

  it("copies an image with its holes", function()
    local from, to = helper.path "a.img", helper.path "b.img"
    helper.must("truncate -s 1g %s && printf x | dd of=%s bs=1 seek=500M conv=notrunc status=none",
      from, from)
    assert.equal(to, lab.snapshot(from, to))
    helper.must("cmp %s %s", from, to)
    assert.is_true(tonumber(helper.must("du -k %s", to):match "%d+") < 1024)
    assert.refuses("EIO", lab.snapshot(from .. ".not", to))
  end)

  it("is there as a recipe", function()
    local out, _, status = helper.brim("lab", "kernels")
    assert.int(status, 0)
    for _, k in ipairs(KERNELS) do
      assert.truthy(out:find(k.version, 1, true))
    end
    if missing then
      return
    end
    local results = helper.path "r"
    local said, log, ended = helper.brim("lab", "run", script "print('said', ...)", "word",
      "--results", results)
    assert.equal("said\tword\n", said)
    assert.truthy(log:find "Linux %d")
    assert.int(ended, 0)
    assert.is_string(state_dir)
  end)
end)
