-- Traces: fio replays what brim wrote and brim what fio wrote, operation for operation; formats are
-- converted without loss where they can; replays stay on their device and below their directory.
local brim = require "brim"
local helper = require "spec.helper"
local json = require "brim.json"

local MIB <const> = 1 << 20

local function put(name, text)
  local path = helper.path(name)
  helper.write(path, text)
  return path
end

-- A new, empty directory.
local function fresh()
  return (helper.must("mktemp -d %s/XXXXXX", helper.dir()):gsub("\n$", ""))
end

local function open(path, o)
  return assert(brim.trace.open(path, o))
end

-- A trace of brim's own on one file: a write and a read of each size, in a shuffled order.
local function sample()
  local lines, at = { '{"format":"brim-trace","version":1}' }, 0
  for i = 1, 300 do
    at = at + 250 * 1000
    lines[#lines + 1] = ('{"at_ns":%d,"op":"%s","path":"disk","off_bytes":%d,"len_bytes":%d}')
      :format(at, i % 3 == 0 and "read" or "write", (i * 7919 % 1000) * 4096, (i % 5 + 1) * 4096)
    if i % 50 == 0 then
      lines[#lines + 1] = ('{"at_ns":%d,"op":"datasync","path":"disk"}'):format(at)
    end
  end
  return put("sample.jsonl", table.concat(lines, "\n") .. "\n")
end

-- What fio did, from its JSON.
local function fio(dir, fmt, ...)
  local out = helper.must("cd %s; fio --output-format=json " .. fmt, dir, ...)
  local job = json.decode(out:match "%b{}").jobs[1]
  return { read = job.read.total_ios, write = job.write.total_ios,
    read_bytes = job.read.io_bytes, write_bytes = job.write.io_bytes, error = job.error }
end

local function of(info)
  return { read = info.ops.read, write = info.ops.write, read_bytes = info.bytes.read,
    write_bytes = info.bytes.write, error = 0 }
end

describe("brim.trace", function()
  after_each(function()
    assert.int(brim._debug.open_handles(), 0)
  end)

  for _, format in ipairs { "iolog2", "iolog3" } do
    it("is replayed by fio: " .. format, function()
      if not helper.has "fio" then
        pending "fio is not installed"
        return
      end
      local dir = fresh()
      local info = assert(open(sample()):convert(dir .. "/out.log", { format = format }))
      assert.int(info.omitted, 0)
      helper.must("truncate -s 8m %s/disk", dir)
      local did = fio(dir, "--name=r --read_iolog=out.log --replay_no_stall=1")
      assert.same(of(info), did)
      assert.int(did.read, 100)
      assert.int(did.write, 200)
      -- And with the recorded times: they are there.
      local back = assert(open(dir .. "/out.log"):info())
      assert.equal(format, back.format)
      assert.is_true(math.abs(back.seconds - info.seconds) < 0.001)
    end)
  end

  it("replays what fio recorded", function()
    if not helper.has "fio" then
      pending "fio is not installed"
      return
    end
    local dir = fresh()
    local did = fio(dir, "--name=w --filename=%s/f --size=4m --rw=randrw --bsrange=4k-64k "
      .. "--randseed=5 --write_iolog=w.log", dir)
    local trace = open(dir .. "/w.log")
    assert.equal("iolog3", trace.format)
    assert.same(did, of(assert(trace:info())))
    local r = assert(trace:replay(dir .. "/f"))
    assert.same(did, of(r))
    assert.int(r.ops.add or 0, 0)
    helper.must("mkdir %s/below", dir)
    assert.same(did.write_bytes, assert(trace:replay(dir .. "/below", { strip = dir })).bytes.write)
    assert.equal(helper.must("stat -c %%s %s/f", dir), helper.must("stat -c %%s %s/below/f", dir))
  end)

  it("keeps everything in its own format, and times to a microsecond in fio's", function()
    local dir, first = fresh(), sample()
    assert(open(first):convert(dir .. "/a.jsonl", { format = "jsonl" }))
    assert(open(dir .. "/a.jsonl"):convert(dir .. "/b.jsonl", { format = "jsonl" }))
    assert.equal(helper.read(dir .. "/a.jsonl"), helper.read(dir .. "/b.jsonl"))
    assert(open(dir .. "/a.jsonl"):convert(dir .. "/a.log", { format = "iolog3" }))
    assert(open(dir .. "/a.log"):convert(dir .. "/b.log", { format = "iolog3" }))
    assert.equal(helper.read(dir .. "/a.log"), helper.read(dir .. "/b.log"))
  end)

  it("names the file of traces that name none", function()
    local path = put("v.csv", "419,W,0,512,5\n419,R,4096,512,7\n")
    local out = helper.path "v.log"
    assert(open(path):convert(out, { format = "iolog3", path = "/dev/x" }))
    assert.equal("fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n0 /dev/x write 0 512\n"
      .. "2 /dev/x read 4096 512\n", helper.read(out))
  end)

  it("is not written over itself, by whatever name", function()
    local path, link = put("own.csv", "419,W,0,512,5\n"), helper.path "link.csv"
    helper.must("ln -sf %s %s", path, link)
    assert.refuses("EINVAL", open(path):convert(path))
    assert.refuses("EINVAL", open(path):convert(link))
    assert.equal("419,W,0,512,5\n", helper.read(path))
  end)

  it("tells the line that is wrong", function()
    local t = open(put("bad.log", "fio version 2 iolog\nf add\nf open\nf write 0\n"))
    local _, err = t:info()
    assert.refuses("EINVAL", t:info())
    assert.truthy(err.message:find("bad.log:4: ", 1, true))
    assert.refuses("EINVAL", t:replay(put("f", ("x"):rep(4096))))
    assert.refuses("EINVAL", brim.trace.open(put("no.log", "nothing\n")))
    assert.refuses("ENOENT", brim.trace.open(helper.path "missing"))
    assert.has_error(function() brim.trace.open(t.path, { format = "csv" }) end)
  end)
end)

describe("a replay on a device", function()
  local function device(size_bytes)
    local path = helper.path "disk"
    helper.must("rm -f %s; truncate -s %d %s", path, size_bytes, path)
    return path
  end

  after_each(function()
    assert.int(brim._debug.open_handles(), 0)
  end)

  it("writes what the trace writes, and nothing else", function()
    local path = device(8 * MIB)
    local r = assert(open(put("one.log", "fio version 2 iolog\nd add\nd open\nd write 8192 4096\n"
      .. "d write 3145728 2097152\nd close\n")):replay(path))
    assert.int(r.ops.write, 2)
    assert.int(r.bytes.write, 2 * MIB + 4096)
    local text = helper.read(path)
    assert.truthy(text:sub(1, 8192):find "^\0+$")
    assert.falsy(text:sub(8193, 12288):find(("\0"):rep(16), 1, true))
    assert.truthy(text:sub(12289, 3 * MIB):find "^\0+$")
    assert.falsy(text:sub(3 * MIB + 1, 5 * MIB):find(("\0"):rep(16), 1, true))
    assert.truthy(text:sub(5 * MIB + 1):find "^\0+$")
  end)

  it("keeps the recorded times, or a multiple of their speed", function()
    local path = device(MIB)
    local lines = { "fio version 3 iolog", "0 d add", "0 d open" }
    for i = 1, 20 do
      lines[#lines + 1] = ("%d d write %d 4096"):format(i * 20000, i * 4096)
    end
    local trace = open(put("slow.log", table.concat(lines, "\n") .. "\n"))
    local fast = assert(trace:replay(path))
    assert.is_true(fast.wall_s < 0.2)
    local same = assert(trace:replay(path, { speed = 1 }))
    assert.is_true(same.wall_s >= 0.4 and same.wall_s < 1)
    local twice = assert(trace:replay(path, { speed = 2 }))
    assert.is_true(twice.wall_s >= 0.2 and twice.wall_s < same.wall_s)
    assert.int(twice.ops.write, 20)
  end)

  it("refuses what lies past the end, or wraps it", function()
    local path = device(MIB)
    local trace = open(put("far.csv", "1,R,0,4096,1\n1,W,1048576,4096,2\n2,W,4096,512,3\n"))
    local r, err = trace:replay(path)
    assert.is_nil(r)
    assert.equal("ERANGE", err.code)
    assert.truthy(err.message:find("line 2", 1, true))
    local wrapped = assert(trace:replay(path, { wrap = true }))
    assert.int(wrapped.ops.write, 2)
    local one = assert(trace:replay(path, { wrap = true, stream = 2 }))
    assert.int(one.ops.write, 1)
    assert.int(one.skipped, 2)
  end)

  it("refuses operations on files, and devices that are in use", function()
    local path = device(MIB)
    assert.refuses("EINVAL", open(put("u.jsonl", '{"op":"unlink","path":"a"}\n')):replay(path))
    assert.refuses("EIO", open(put("w.csv", "1,W,0,4096,1\n")):replay(path,
      { engine = "fault:at=1,errno=EIO" }))
  end)
end)

describe("a replay below a directory", function()
  after_each(function()
    assert.int(brim._debug.open_handles(), 0)
  end)

  local function lines(list)
    return open(put("files.jsonl", table.concat(list, "\n") .. "\n"))
  end

  it("does all that files can be done to", function()
    local root = fresh()
    local r = assert(lines {
      '{"op":"mkdir","path":"d"}',
      '{"op":"create","path":"d/a"}',
      '{"op":"write","path":"d/a","off_bytes":0,"len_bytes":3000000}',
      '{"op":"sync","path":"d/a"}', '{"op":"close","path":"d/a"}',
      '{"op":"write","path":"e/f/b","off_bytes":100,"len_bytes":5}',
      '{"op":"truncate","path":"e/f/b","len_bytes":50}',
      '{"op":"rename","path":"d/a","to":"e/c"}',
      '{"op":"read","path":"e/c","off_bytes":2999999,"len_bytes":10}',
      '{"op":"create","path":"gone"}', '{"op":"unlink","path":"gone"}',
      '{"op":"trim","path":"e/c","off_bytes":0,"len_bytes":4096}',
      '{"op":"unlink","path":"d"}',
    }:replay(root))
    assert.int(r.failed, 0)
    assert.int(r.bytes.read, 1)
    assert.equal("./e/c 3000000\n./e/f/b 50\n",
      helper.must("cd %s; find . -type f -printf '%%p %%s\\n' | sort", root))
    assert.equal(".\n./e\n./e/f\n", helper.must("cd %s; find . -type d | sort", root))
    assert.truthy(helper.read(root .. "/e/c"):sub(1, 4096):find "^\0+$")
  end)

  it("lets nothing out of it", function()
    local root = fresh()
    local outside = root .. ".outside"
    helper.must("mkdir %s; ln -s %s %s/link; ln -s %s/x %s/file", outside, outside, root, outside,
      root)
    for _, path in ipairs { "/etc/x", "../x", "a/../../x", "..", "a/..", "" } do
      assert.refuses("EPERM", lines { ('{"op":"create","path":"%s"}'):format(path) }:replay(root))
      assert.refuses("EPERM", lines { '{"op":"create","path":"a"}',
        ('{"op":"rename","path":"a","to":"%s"}'):format(path == "" and "/" or path) }:replay(root))
    end
    for _, path in ipairs { "link/x", "file", "link/sub/y" } do
      local r = assert(lines { ('{"op":"create","path":"%s"}'):format(path) }:replay(root))
      assert.int(r.failed, 1)
      assert.truthy(r.first_failure:find("line 1: create", 1, true))
    end
    assert.equal("", helper.must("ls -A %s; rm -r %s", outside, outside))
    assert.refuses("EPERM", lines { '{"op":"create","path":"/srv/a"}' }:replay(root,
      { strip = "/sr" }))
    assert(lines { '{"op":"create","path":"/srv/a"}' }:replay(root, { strip = "/srv/" }))
    assert.truthy(helper.read(root .. "/a"))
  end)

  it("counts what the filesystem refuses, and says the first", function()
    local r = assert(lines { '{"op":"unlink","path":"a"}', '{"op":"unlink","path":"b"}' }
      :replay(fresh()))
    assert.int(r.failed, 2)
    assert.equal("line 1: unlink a: ENOENT", r.first_failure)
  end)
end)

describe("the trace of a fill", function()
  local function listing(dir)
    return helper.must("cd %s; find s* -type f -printf '%%p %%s\\n' | sort", dir)
  end

  it("gives the same files again, and in fio the same bytes and operations", function()
    local dir, again = fresh(), fresh()
    local trace = helper.path "fill.jsonl"
    local w = brim.fill.new { seed = 3, streams = 2, sizes = brim.dist.log_uniform("1k", "64k") }
    w:fill { files = 60 }
    w:churn { bytes = "4m" }
    assert(w:run(dir, { trace_path = trace, trace_format = "jsonl", yes_really = true }))
    local info = assert(open(trace):info())
    local r = assert(open(trace):replay(again))
    assert.int(r.failed, 0)
    assert.same(info.ops, r.ops)
    assert.int(r.ops.write, info.ops.write)
    assert.equal(listing(dir), listing(again))
    if not helper.has "fio" then
      pending "fio is not installed"
      return
    end
    for _, format in ipairs { "iolog2", "iolog3" } do
      local there = fresh()
      -- fio makes no directories.
      helper.must("cd %s; find s* -type d | (cd %s; xargs mkdir -p)", dir, there)
      local said = assert(open(trace):convert(there .. "/f.log", { format = format }))
      assert.int(said.omitted, (info.ops.unlink or 0) + (info.ops.rename or 0)
        + (info.ops.truncate or 0) + (info.ops.mkdir or 0))
      local did = fio(there, "--name=r --read_iolog=f.log --replay_no_stall=1")
      assert.int(did.write, info.ops.write)
      assert.int(did.write_bytes, info.bytes.write)
    end
    collectgarbage() -- filesets are closed by it
    assert.int(brim._debug.open_handles(), 0)
  end)
end)

describe("traces on the command line", function()
  it("are told, converted and replayed", function()
    local path, out = sample(), helper.path "out.iolog2"
    local text, _, status = helper.brim("trace", "info", path)
    assert.int(status, 0)
    assert.truthy(text:find("33.3 % of reads and writes read", 1, true))
    assert.int(select(3, helper.brim("trace", "convert", path, out)), 0)
    assert.truthy(helper.read(out):find("^fio version 2 iolog\n"))
    local disk = put("disk", ("\0"):rep(5 * MIB))
    assert.int(select(3, helper.brim("replay", out, disk)), 2)
    local done, _, ok = helper.brim("--yes", "--json", "replay", out, disk)
    assert.int(ok, 0)
    assert.int(json.decode(done).ops.write, 200)
    assert.int(select(3, helper.brim("trace", "convert", path)), 2)
    local _, err, bad = helper.brim("trace", "info", put("x.log", "fio version 2 iolog\nx\n"))
    assert.is_true(bad ~= 0)
    assert.truthy(err:find("x.log:2:", 1, true))
  end)
end)

describe("a replay on a block device #root", function()
  it("extends to whole sectors, trims, and is refused while the device is mounted", function()
    if not helper.has "mkfs.ext4" then
      pending "mkfs.ext4 is not installed"
      return
    end
    local image = helper.path "loop.img"
    helper.must("truncate -s 64m %s", image)
    local out, status = helper.sh("losetup --find --show --sector-size 4096 %s", image)
    if status ~= 0 then
      pending("no loop device with sectors of 4 KiB: " .. out)
      return
    end
    local loop, mount = out:gsub("\n$", ""), fresh()
    local ok, why = pcall(function()
      local r = assert(open(put("small.csv", "1,W,512,1024,1\n1,R,4096,512,2\n1,R,8192,4096,3\n"))
        :replay(loop))
      assert.int(r.rounded, 2)
      assert.int(r.bytes.write, 4096)
      local trims = assert(open(put("trim.jsonl",
        '{"op":"trim","off_bytes":0,"len_bytes":8192}\n')):replay(loop))
      assert.int(trims.bytes.trim, 8192)
      assert.truthy(helper.must("head -c 8192 %s", loop):find "^\0+$")
      helper.must("mkfs.ext4 -q -F %s && mount %s %s", loop, loop, mount)
      local again = open(put("again.csv", "1,W,0,4096,1\n"))
      assert.refuses("EBUSY", again:replay(loop, { force = true }))
    end)
    helper.sh("umount %s; losetup -d %s", mount, loop)
    assert(ok, why)
  end)
end)
