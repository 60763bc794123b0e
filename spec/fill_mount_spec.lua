-- Fills of real filesystems: both ways leave the same trees, full ones included; what was synced
-- survives SIGKILL, and a fill goes on from there.
local brim = require "brim"
local core = require "brim.core"
local helper = require "spec.helper"

local CHURN <const> = {
  create = 2, overwrite = 2, append = 2, truncate = 2, replace = 2, delete = 1,
}
-- mkfs.xfs makes none below 300 MiB.
local FILESYSTEMS <const> = {
  { name = "xfs", size = "300M", mkfs = "mkfs.xfs -q -f" },
  { name = "ext4", size = "48M", mkfs = "mkfs.ext4 -q -F -N 20000" },
}

local mounted = {}

-- Makes and mounts a filesystem; its directory.
local function mount(fs)
  local image, path = helper.path(fs.name .. ".img"), helper.path(fs.name)
  helper.must("truncate -s %s %s && %s %s && mkdir %s", fs.size, image, fs.mkfs, image, path)
  helper.must("mount -o loop %s %s", image, path)
  mounted[#mounted + 1] = path
  return path, image
end

local function unmount_all()
  for _, path in ipairs(mounted) do
    helper.sh("umount %s || umount -l %s", path, path)
  end
  mounted = {}
end

local function finish(handle)
  local more, stats = handle:step()
  assert(more == false, stats)
  return stats
end

local function fileset(o)
  return assert(core.fileset_new {
    seed = o.seed or 3, streams = o.streams or 2, files_per_dir = 50,
    sizes = { kind = "log_uniform", min_bytes = o.min or "1k", max_bytes = o.max or "1m" },
  })
end

-- Carries out steps { phase, ops of each stream } until all streams were stopped or did them; what
-- happened, for replay.
local function carry_out(fill, streams, steps)
  local log = {}
  for _, step in ipairs(steps) do
    assert(fill:phase(step.phase))
    assert(fill:grant(step.ops))
    local entry = { phase = step.phase, done = {}, stats = finish(fill) }
    for stream = 0, streams - 1 do
      entry.done[stream] = fill:done(stream)
    end
    log[#log + 1] = entry
  end
  log.failures = {}
  for failure in fill.failure, fill do
    table.insert(log.failures, failure)
  end
  return log
end

local function replay(files, path, log)
  local fill = assert(core.fill_open(files, path, { mode = "none" }))
  for _, failure in ipairs(log.failures) do
    assert(fill:replay_failure(failure))
  end
  local before = {}
  for _, entry in ipairs(log) do
    assert(fill:phase(entry.phase))
    for stream, done in pairs(entry.done) do
      assert(fill:replay(stream, done - (before[stream] or 0)))
      before[stream] = done
    end
  end
  return fill
end

-- Findings by kind when a directory is read past the cache.
local function verify(fill, window)
  local v <close> = assert(core.verify_open(fill, window, { direct = true }))
  local stats = finish(v)
  local first = v:finding(1)
  return stats.found, stats, first and ("%s %s"):format(first.kind, first.path)
end

local function assert_exact(files, path, log)
  local said <close> = replay(files, path, log)
  local found, stats, first = verify(said)
  for kind, n in pairs(found) do
    assert(n == 0, ("%d files %s, the first: %s"):format(n, kind, first))
  end
  return stats
end

-- Names and contents, as others see them.
local function hashes(path)
  return helper.must("cd %s && find s* -type f | sort | xargs -d '\\n' sha256sum", path)
end

describe("a fill of #root", function()
  after_each(function()
    unmount_all()
    assert.int(brim._debug.open_handles(), 0)
  end)

  for _, fs in ipairs(FILESYSTEMS) do
    it(fs.name .. " leaves the same whichever way", function()
      local trees = {}
      for _, mode in ipairs { "plain", "ring", "auto" } do
        local path = mount(fs)
        local files <close> = fileset { max = "256k" }
        local log
        do
          local fill <close> = assert(core.fill_open(files, path, { mode = mode }))
          log = carry_out(fill, 2, { { phase = {}, ops = 250 }, { phase = CHURN, ops = 250 } })
        end
        assert.same({}, log.failures)
        assert_exact(files, path, log)
        trees[#trees + 1] = hashes(path)
        unmount_all()
      end
      assert.equal(trees[1], trees[2])
      assert.equal(trees[1], trees[3])
    end)

    for _, mode in ipairs { "plain", "ring" } do
      it(("%s stands exactly known when it is full: %s"):format(fs.name, mode), function()
        local path, image = mount(fs)
        local files <close> = fileset {}
        local log
        do
          local fill <close> = assert(core.fill_open(files, path, { mode = mode }))
          local steps = { { phase = {}, ops = 0 } }
          for _ = 1, 6 do
            steps[#steps + 1] = { phase = CHURN, ops = 60 }
          end
          log = carry_out(fill, 2, steps)
        end
        assert.is_true(#log.failures >= 2)
        for _, failure in ipairs(log.failures) do
          assert.is_true(failure.code == "ENOSPC" or failure.code == "ECANCELED", failure.code)
        end
        assert_exact(files, path, log)
        -- The same after the kernel has forgotten what it had in memory.
        helper.must("umount %s && mount -o loop %s %s", path, image, path)
        assert_exact(files, path, log)
      end)
    end
  end

  -- 4 KiB writes fail by fsync or close where space is only promised: sync each file.
  it("ext4 without room for promises, each file synced", function()
    local path = mount(FILESYSTEMS[2])
    local files <close> = fileset { max = "16k" }
    local log
    do
      local fill <close> = assert(core.fill_open(files, path, { mode = "plain", fsync = 10 }))
      log = carry_out(fill, 2, { { phase = {}, ops = 0 }, { phase = CHURN, ops = 100 } })
    end
    assert.is_true(#log.failures >= 2)
    assert_exact(files, path, log)
  end)

  it("tmpfs runs out of inodes", function()
    local path = helper.path "tmpfs"
    helper.must("mkdir %s && mount -t tmpfs -o size=64m,nr_inodes=200 none %s", path, path)
    mounted[1] = path
    local files <close> = fileset { max = "4k" }
    local log
    do
      local fill <close> = assert(core.fill_open(files, path, { mode = "plain" }))
      log = carry_out(fill, 2, { { phase = {}, ops = 0 } })
    end
    assert.int(#log.failures, 2)
    for _, failure in ipairs(log.failures) do
      assert.equal("ENOSPC", failure.code)
      assert.equal("missing", failure.kind == "create" and failure.stands or "missing")
    end
    assert_exact(files, path, log)
  end)
end)

describe("a fill that is killed", function()
  local SCRIPT <const> = [[
    local core = require "brim.core"
    local path, mode = ...
    local files = core.fileset_new { seed = 5, streams = 2, files_per_dir = 50,
      sizes = { kind = "log_uniform", min_bytes = "1k", max_bytes = "64k" } }
    local fill = assert(core.fill_open(files, path, { mode = mode }))
    assert(fill:phase { create = 5, overwrite = 2, append = 2, truncate = 2, replace = 2,
      delete = 2 })
    io.stdout:setvbuf "line"
    for _ = 1, 1000 do
      assert(fill:grant(300))
      local more, err = fill:step()
      assert(more == false, err)
      assert(core.usage_sync(path))
      print("stable", fill:done(0), fill:done(1))
    end
  ]]
  local PHASE <const> = {
    create = 5, overwrite = 2, append = 2, truncate = 2, replace = 2, delete = 2,
  }

  local function start(files, path, mode, stable)
    local fill = assert(core.fill_open(files, path, { mode = mode }))
    assert(fill:phase(PHASE))
    for stream = 0, 1 do
      assert(fill:replay(stream, stable[stream]))
    end
    return fill
  end

  -- Kills it some time after it has said so often that things are stable; the last time.
  local function run_and_kill(path, mode, times)
    local script = helper.path "killed.lua"
    helper.write(script, SCRIPT)
    local pipe <close> = io.popen(("echo $$; exec %s run %s %s %s"):format(helper.exe, script, path,
      mode))
    local pid = pipe:read("l")
    local stable
    for _ = 1, times do
      stable = pipe:read("l")
    end
    helper.must("sleep 0.02; kill -KILL %s", pid)
    for line in pipe:lines() do
      stable = line
    end
    local a, b = stable:match("^stable%s(%d+)%s(%d+)$")
    return { [0] = math.tointeger(a), [1] = math.tointeger(b) }
  end

  for _, mode in ipairs { "plain", "ring" } do
    it("keeps what was stable, and goes on: " .. mode, function()
      local path = helper.path "killed"
      helper.must("mkdir %s", path)
      local stable = run_and_kill(path, mode, 3)
      local files <close> = fileset { seed = 5, max = "64k" }
      do
        local said <close> = start(files, path, "none", stable)
        local found, stats, first = verify(said, { 300, 300 })
        for kind, n in pairs(found) do
          assert(n == 0, ("%d files %s, the first: %s"):format(n, kind, first))
        end
        assert.is_true(stats.files > 100)
      end
      do
        local fill <close> = start(files, path, mode, stable)
        assert(fill:grant(700))
        local stats = finish(fill)
        assert.int(stats.refused + stats.failed, 0)
      end
      local said <close> = start(files, path, "none", { [0] = stable[0] + 700, stable[1] + 700 })
      local found, _, first = verify(said)
      for kind, n in pairs(found) do
        assert(n == 0, ("%d files %s, the first: %s"):format(n, kind, first))
      end
    end)
  end
end)
