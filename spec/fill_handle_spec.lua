-- Fills, verifications and usage as C gives them to Lua: what scripts of brim.fill stand on.
local brim = require "brim"
local core = require "brim.core"
local helper = require "spec.helper"

local CHURN <const> = {
  create = 2, overwrite = 3, append = 2, truncate = 2, replace = 2, delete = 2,
}
local SIZES <const> = { kind = "log_uniform", min_bytes = 100, max_bytes = "300k" }

local function fileset(o)
  local options = { seed = 7, streams = 2, sizes = SIZES, files_per_dir = 20, fan_out = 4 }
  for name, value in pairs(o or {}) do
    options[name] = value
  end
  return assert(core.fileset_new(options))
end

local function directory()
  local path = helper.path "fill"
  helper.must("mkdir %s", path)
  return path
end

-- Steps to the end; the counters.
local function finish(handle)
  local more, stats = handle:step()
  assert(more == false, stats)
  return stats
end

local function go(fill, ops)
  assert(fill:grant(ops))
  return finish(fill)
end

-- The same operations as `fill_and_churn`, without doing them.
local function replayed(files, path, create, churn)
  local fill = assert(core.fill_open(files, path, { mode = "none" }))
  for stream = 0, files:streams() - 1 do
    assert(fill:replay(stream, create))
  end
  assert(fill:phase(CHURN))
  for stream = 0, files:streams() - 1 do
    assert(fill:replay(stream, churn))
  end
  return fill
end

local function fill_and_churn(files, path, o, create, churn)
  local fill <close> = assert(core.fill_open(files, path, o))
  go(fill, create)
  assert(fill:phase(CHURN))
  local stats = go(fill, churn)
  assert.int(fill:done(0), create + churn)
  assert.is_nil(fill:failure())
  return stats
end

-- What verification says of a directory; findings as "kind path".
local function verify(fill, window, o)
  local v <close> = assert(core.verify_open(fill, window, o))
  local stats = finish(v)
  local found = {}
  for k = 1, math.maxinteger do
    local x = v:finding(k)
    if not x then
      return found, stats
    end
    found[k] = ("%s %s"):format(x.kind, x.path)
  end
end

describe("a fill", function()
  after_each(function()
    assert.int(brim._debug.open_handles(), 0)
  end)

  for _, mode in ipairs { "plain", "ring", "auto" } do
    it("leaves exactly what its streams say: " .. mode, function()
      local files <close> = fileset()
      local path = directory()
      local stats = fill_and_churn(files, path, { mode = mode }, 200, 400)
      assert.int(stats.refused + stats.failed + stats.short_files, 0)
      local said <close> = replayed(files, path, 200, 400)
      local found, counts = verify(said)
      assert.same({}, found)
      assert.int(counts.files, stats.live_files)
      assert.int(counts.bytes, stats.live_bytes)
      assert.int(counts.total_files, counts.files)
    end)
  end

  it("counts what it does", function()
    local files <close> = fileset { streams = 1, sizes = { kind = "fixed", min_bytes = "4k" } }
    local fill <close> = assert(core.fill_open(files, directory(), { mode = "plain" }))
    local stats = go(fill, 50)
    assert.int(stats.ops.create + stats.ops.mkdir, 50)
    assert.int(stats.written_bytes, 4096 * stats.ops.create)
    assert.int(stats.live_files, stats.ops.create)
    assert.is_true(stats.p50_ns.create > 0 and stats.p50_ns.create <= stats.max_ns.create)
    assert.is_true(stats.elapsed_ns > 0 and stats.cpu_ns > 0)
    assert.equal("plain", stats.mode)
    -- Bytes of a grant: it stops before the operation that would begin beyond.
    local before = stats.ops.create
    assert(fill:grant(0, 4096 * 10))
    assert.equal(stats, finish(fill))
    assert.int(stats.written_bytes, 4096 * (before + 10))
  end)

  it("does nothing in mode none", function()
    local files <close> = fileset()
    local path = directory()
    local fill <close> = assert(core.fill_open(files, path, { mode = "none" }))
    local stats = go(fill, 1000)
    assert.equal("none", stats.mode)
    assert.int(stats.ops.create + stats.ops.mkdir, 2000)
    assert.equal("", helper.must("ls -A %s", path))
  end)

  it("writes a trace of what it did", function()
    local files <close> = fileset { streams = 1 }
    local trace = helper.path "trace.jsonl"
    for _, mode in ipairs { "plain", "ring", "none" } do
      local options = { mode = mode, trace_path = trace, trace_format = "jsonl", fsync = 2 }
      local stats = fill_and_churn(files, directory(), options, 100, 200)
      local text = helper.read(trace)
      local function count(op)
        return select(2, text:gsub('"op":"' .. op .. '"', ""))
      end
      assert.int(count "mkdir", stats.ops.mkdir)
      assert.int(count "create", stats.ops.create + stats.ops.replace)
      assert.int(count "open", stats.ops.overwrite + stats.ops.append)
      assert.int(count "unlink", stats.ops.delete)
      assert.int(count "truncate", stats.ops.truncate)
      assert.int(count "rename", stats.ops.replace)
      local sum = 0
      for line in text:gmatch('[^\n]*"op":"write"[^\n]*') do
        sum = sum + math.tointeger(line:match('"len_bytes":(%d+)') or line:match('"len":(%d+)'))
      end
      assert.int(sum, stats.written_bytes)
      assert.is_true(mode == "none" or count "sync" > 50)
    end
    assert.refuses("ENOENT", core.fill_open(files, "/", { mode = "none", trace_path = "/no/x" }))
  end)

  it("tells that a trace is not whole", function()
    local files <close> = fileset { streams = 1, sizes = { kind = "fixed", min_bytes = "4k" } }
    local full = { mode = "plain", trace_path = "/dev/full", trace_format = "jsonl" }
    -- All of it fits in memory until the end, or it does not.
    for _, count in ipairs { 10, 5000 } do
      local path = directory()
      local fill <close> = assert(core.fill_open(files, path, full))
      local stats = go(fill, count)
      assert.int(stats.failed + stats.refused, 0)
      for _ = 1, 2 do
        assert.refuses("ENOSPC", fill:finish())
      end
      assert.refuses("EINVAL", fill:grant(1))
      local _, later = fill:step()
      assert.int(later.ops.create, stats.ops.create)
      assert.is_true(later.cpu_ns >= stats.cpu_ns and later.cpu_ns > 0)
    end
    local fill <close> = assert(core.fill_open(files, directory(), { mode = "plain" }))
    go(fill, 10)
    assert.is_true(fill:finish())
  end)

  it("is replayed by fio to the byte", function()
    if not helper.has "fio" then
      pending "needs fio"
      return
    end
    local files <close> = fileset { streams = 1 }
    local path, trace, again = directory(), helper.path "trace.iolog", directory()
    local fill <close> = assert(core.fill_open(files, path, {
      mode = "ring", trace_path = trace, trace_format = "iolog2",
    }))
    local stats = go(fill, 100)
    fill:close()
    -- fio makes files, not directories.
    helper.must("cd %s && (cd %s && find . -type d) | xargs mkdir -p", again, path)
    local said = helper.must("cd %s && fio --name=x --read_iolog=%s --ioengine=sync "
      .. "--replay_no_stall=1 --output-format=json", again, trace)
    assert.equal(stats.written_bytes, tonumber(said:match('"write" : {%s*"io_bytes" : (%d+)')))
    assert.equal(stats.ops.create, tonumber((helper.must("find %s -type f | wc -l", again))))
  end)

  it("refuses what makes no sense", function()
    local files <close> = fileset()
    assert.refuses("EINVAL", core.fill_open(files, "/", { mode = "fast" }))
    assert.refuses("ENOENT", core.fill_open(files, "/no/such/directory"))
    assert.refuses("EINVAL", core.fill_open(files, "/", { mode = "none", queue_depth = 1 << 20 }))
    assert.refuses("EINVAL", core.fill_open(files, "/", { mode = "none", max_io_bytes = 5000 }))
    assert.has_error(function() core.fill_open(files, "/", { depth = 1 }) end)
    assert.has_error(function() core.fill_open(files, "/", { fsync = 0 }) end)
    local fill <close> = assert(core.fill_open(files, directory(), { mode = "none" }))
    assert(fill:grant()) -- without an end
    assert.refuses("EBUSY", fill:grant(1))
    assert.refuses("EBUSY", fill:phase {})
    assert.refuses("EBUSY", fill:replay(0, 1))
    assert.refuses("EBUSY", core.verify_open(fill))
    assert.is_true((fill:step(0.001)))
    fill:stop()
    finish(fill)
    assert.refuses("EINVAL", fill:replay(2, 1))
    assert.has_error(function() fill:phase { create = -1 } end)
    fill:close()
    assert.has_error(function() fill:step() end)
  end)
end)

describe("verification of a fill", function()
  local open = {}

  after_each(function()
    for _, handle in ipairs(open) do
      handle:close()
    end
    open = {}
    assert.int(brim._debug.open_handles(), 0)
  end)

  -- A fill of one stream; what it says, and the paths of its files.
  local function filled()
    local files = fileset { streams = 1, sizes = { kind = "fixed", min_bytes = 10000 } }
    local path = directory()
    local fill <close> = assert(core.fill_open(files, path, { mode = "plain" }))
    go(fill, 60)
    local said = assert(core.fill_open(files, path, { mode = "none" }))
    said:replay(0, 60)
    return path, files, said
  end

  local function spoil(fmt, ...)
    helper.must(fmt, ...)
  end

  it("tells six kinds of findings apart", function()
    local path, files, said = filled()
    open[1], open[2] = said, files
    local function at(id)
      return ("%s/%s"):format(path, files:path(0, id))
    end
    spoil("rm %s", at(1))
    spoil("truncate -s 9999 %s", at(2))
    spoil("echo >> %s", at(3))
    spoil("printf '\\377\\376' | dd of=%s bs=1 seek=5000 conv=notrunc status=none", at(4))
    spoil("echo > %s/s0/d0/notes", path)
    spoil("rm %s; mkfifo %s", at(5), at(5))
    local found, stats = verify(said)
    table.sort(found)
    local expected = {
      "corrupt " .. files:path(0, 4), "extra s0/d0/notes", "long " .. files:path(0, 3),
      "missing " .. files:path(0, 1), "short " .. files:path(0, 2),
      "unreadable " .. files:path(0, 5),
    }
    assert.same(expected, found)
    for kind, n in pairs(stats.found) do
      assert.equal(1, n, kind)
    end
  end)

  it("says where a byte is wrong, and does so past the page cache too", function()
    local path, files, said = filled()
    open[1], open[2] = said, files
    local name = files:path(0, 4)
    local was = files:content({ id = 4, base_bytes = 10000, size_bytes = 10000 }, 9000, 1):byte()
    spoil("printf '\\%03o' | dd of=%s/%s bs=1 seek=9000 conv=notrunc status=none", was ~ 0xff, path,
      name)
    for _, direct in ipairs { false, true } do
      local v <close> = assert(core.verify_open(said, nil, { direct = direct, threads = 2 }))
      finish(v)
      local x = v:finding(1)
      assert.same({ kind = "corrupt", path = name, off_bytes = 9000, expected = was,
        found = was ~ 0xff }, x)
      assert.is_nil(v:finding(2))
    end
  end)

  it("leaves out what an interrupted grant may have touched", function()
    local files <close> = fileset { streams = 1 }
    local path = directory()
    do
      local fill <close> = assert(core.fill_open(files, path, { mode = "plain" }))
      go(fill, 100)
      assert(fill:phase(CHURN))
      go(fill, 50)
    end
    local said <close> = assert(core.fill_open(files, path, { mode = "none" }))
    said:replay(0, 100)
    assert(said:phase(CHURN))
    local found = verify(said)
    assert.is_true(#found > 0)
    local none, stats = verify(said, { 50 })
    assert.same({}, none)
    assert.is_true(stats.unjudged > 0)
  end)

  it("keeps as many findings as it is told, and counts all", function()
    local path, files, said = filled()
    open[1], open[2] = said, files
    spoil("rm -r %s/s0", path)
    local v <close> = assert(core.verify_open(said, nil, { max_findings = 3 }))
    local stats = finish(v)
    assert.int(stats.found.missing, stats.total_files)
    assert.is_table(v:finding(3))
    assert.is_nil(v:finding(4))
    assert.has_error(function() said:close() end)
    assert.int(files:streams(), 1)
  end)
end)

describe("usage", function()
  it("is what stat says", function()
    local u = assert(core.usage(helper.dir()))
    local said = helper.must("stat -f -c '%%S %%b %%f %%a' %s", helper.dir())
    local block, blocks = said:match("^(%d+) (%d+)")
    assert.int(u.block_bytes, tonumber(block))
    assert.int(u.size_bytes, tonumber(blocks) * u.block_bytes)
    local found, status = helper.sh("findmnt -n -o FSTYPE -T %s", helper.dir())
    if status == 0 then -- not in a chroot whose / is no mount
      assert.equal(found:match "%S+", u.type)
    end
    local device = helper.must("stat -c '%%Hd:%%Ld' %s", helper.dir()):match("%S+")
    assert.equal(device, ("%d:%d"):format(u.device_major, u.device_minor))
    assert.is_true(core.usage_sync(helper.dir()))
  end)

  it("refuses what is not there", function()
    assert.refuses("ENOENT", core.usage "/no/such/path")
    assert.refuses("ENOENT", core.usage_sync "/no/such/path")
  end)
end)
