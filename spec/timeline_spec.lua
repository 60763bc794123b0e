-- Timelines: what is written is read back, a torn line costs only itself, foreign text is refused
-- with its line, and the provenance is what the system's own tools say.
local brim = require "brim"
local core = require "brim.core"
local helper = require "spec.helper"
local json = require "brim.json"
local provenance = require "brim.timeline.provenance"

local timeline = brim.timeline

local function written(path)
  local t <close> = assert(timeline.create(path, { target = helper.dir(), seed = 7,
    options = { sizes = "4k" }, columns = { segments = { unit = "", doc = "free segments" } } }))
  assert(t:phase("fill to 50 %", "fill", { level = 0.5 }))
  for i = 1, 3 do
    assert(t:sample { t_s = i, bytes_per_s = 100 * i, segments = 9 - i, nothing = 0 / 0 })
  end
  assert(t:mark "half full")
  assert(t:phase("churn", "churn"))
  assert(t:event { kind = "refused", op = "open", path = "a\n\"b", code = "ENOSPC" })
  assert(t:sample { t_s = 4, bytes_per_s = 1 << 60 })
  assert(t:result { files = 3, stopped = "ENOSPC" })
  return path
end

describe("a timeline", function()
  it("is read as it was written", function()
    local run = assert(timeline.read(written(helper.path "t.jsonl")))
    assert.equal(4, #run.samples)
    assert.same({ 100, 200, 300, 1 << 60 }, (run:column "bytes_per_s"))
    assert.int(run:column("bytes_per_s")[4], 1 << 60)
    local segments, n = run:column "segments"
    assert.equal(4, n)
    assert.is_nil(segments[4])
    assert.is_nil(run.samples[1].nothing)
    assert.equal("fill to 50 %", run.samples[1].phase)
    assert.equal("churn", run.samples[4].phase)
    assert.same({ "fill", "churn" }, { run.phases[1].kind, run.phases[2].kind })
    assert.equal(run.phases[2].t_s, run.phases[1].end_s)
    assert.equal(run.last_s, run.phases[2].end_s)
    assert.equal("half full", run.marks[1].name)
    assert.equal("a\n\"b", run.events[1].path)
    assert.equal("churn", run.events[1].phase)
    assert.equal("ENOSPC", run.result.stopped)
    assert.is_false(run.is_torn)
    assert.same({ "bytes_per_s", "segments", "t_s" }, run:names())
    assert.equal("fill to 50 %", run:phase_at(run.phases[1].t_s).name)
    assert.is_nil(run:phase_at(-1))
  end)

  it("opens with where it was made and what its columns mean", function()
    local h = assert(timeline.read(written(helper.path "t.jsonl"))).header
    assert.same({ "brim-timeline", 1, core.version, 7 }, { h.format, h.version, h.brim, h.seed })
    assert.equal(helper.must("uname -r"):gsub("%s+$", ""), h.kernel)
    assert.equal(helper.must("uname -n"):gsub("%s+$", ""), h.host)
    assert.matches("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$", h.started)
    assert.equal("4k", h.options.sizes)
    assert.equal("free segments", h.columns.segments.doc)
    assert.equal("bytes/s", h.columns.bytes_per_s.unit)
    for name, column in pairs(h.columns) do
      assert.is_string(column.unit, name)
      assert.is_string(column.doc, name)
    end
  end)

  it("is on disk line by line, so that a crash costs only the line it tore", function()
    local path = helper.path "t.jsonl"
    local t <close> = assert(timeline.create(path))
    assert(t:sample { bytes_per_s = 1 })
    assert(t:sample { bytes_per_s = 2 })
    local text = helper.read(path)
    assert.equal(3, select(2, text:gsub("\n", "\n")))
    local last = #text - #text:match "[^\n]+\n$"
    for cut = last, #text do
      helper.write(path, text:sub(1, cut))
      local run = assert(timeline.read(path))
      -- One byte short of the end, the line is complete but for its end.
      assert.equal(cut >= #text - 1 and 2 or 1, #run.samples, cut)
      assert.equal(cut ~= last and cut ~= #text, run.is_torn, cut)
    end
  end)

  it("goes on after a crash, torn line or not", function()
    for _, cut in ipairs { 0, 1, 5 } do
      local path = helper.path "t.jsonl"
      local t = assert(timeline.create(path))
      assert(t:phase("fill", "fill"))
      assert(t:sample { t_s = 100 })
      assert(t:sample { t_s = 200 })
      t:close()
      local text = helper.read(path)
      helper.write(path, text:sub(1, #text - cut))
      local more <close> = assert(timeline.append(path))
      assert(more:sample { bytes_per_s = 5 })
      local run = assert(timeline.read(path))
      assert.equal("resumed", run.events[1].kind)
      assert.equal(cut == 5 and 2 or 3, #run.samples)
      local last = run.samples[#run.samples]
      assert.equal("fill", last.phase)
      assert.is_true(last.t_s >= (cut == 5 and 100 or 200) and last.t_s < 300)
      assert.is_false(run.is_torn)
    end
  end)

  it("refuses foreign text with the line it is in", function()
    local header = json.encode { type = "header", format = "brim-timeline", version = 1 }
    for text, why in pairs {
      [""] = "line 1: no header",
      ["hello\nyou\n"] = "line 1: no header",
      ["[]\n"] = "line 1: no header",
      ['{"type":"header","format":"brim-timeline","version":9}\n'] = "line 1: version 9",
      ['{"type":"header","format":"brim-timeline","version":1,"columns":3}\n'] = "columns are no",
      [header .. '\n{"type":"sam\n{"type":"sample","t_s":1}\n'] = "line 2: ",
      [header .. '\n{"type":"sample"}\n'] = "line 2: a sample without a time",
      [header .. '\n{"type":"sample","t_s":1}\n7\n'] = "line 3: no record",
      [header .. '\n{"type":"event","t_s":1}\n'] = "line 2: an event without a kind",
      [header .. '\n{"type":"phase","t_s":1}\n'] = "line 2: a phase without a name",
      [header .. '\n{"type":"sample","t_s":1}\n' .. header .. "\n"] = "line 3: a second header",
      [header .. '\n{"type":"sample","t_s":1,"files":"7"}\n'] = "line 2: files is no number",
      [header .. '\n{"type":"sample","t_s":1e999}\n'] = "line 2: a sample without a time",
      [header .. "\n\n\n"] = "line 2: ",
    } do
      local path = helper.path "bad.jsonl"
      helper.write(path, text)
      local run, err = timeline.read(path)
      assert.is_nil(run, text)
      assert.equal("EILSEQ", err.code)
      assert.matches(why, err.message, 1, true)
    end
    assert.refuses("ENOENT", timeline.read "/nonexistent/t.jsonl")
    assert.refuses("EISDIR", timeline.read "/tmp")
    assert.refuses("ENOENT", timeline.create "/nonexistent/t.jsonl")
    assert.refuses("ENOENT", timeline.create(helper.path "t", { target = "/nonexistent/x" }))
  end)

  it("takes what a later version may add", function()
    local path = helper.path "t.jsonl"
    helper.write(path, '{"type":"header","format":"brim-timeline","version":1}\n'
      .. '{"type":"weather","t_s":3}\n')
    local run = assert(timeline.read(path))
    assert.equal(0, #run.samples)
    assert.equal(3, run.last_s)
  end)

  it("says why a line could not be written, and goes on", function()
    local t, err = timeline.create "/dev/full"
    assert.is_nil(t)
    assert.equal("ENOSPC", err.code)
    assert.equal("write", err.op)
  end)

  it("refuses to be written to once it is closed", function()
    local t = assert(timeline.create(helper.path "t.jsonl"))
    t:close()
    t:close()
    assert.matches("(closed)", tostring(t), 1, true)
    assert.error_matches(function() t:sample {} end, "timeline is closed")
    assert.error_matches(function() timeline.create("x", { colums = {} }) end, "'columns'")
    assert.error_matches(function() timeline.create("x", { columns = { a = 3 } }) end, "unit")
  end)
end)

describe("provenance", function()
  it("reads mountinfo: octal names, optional fields, the last mount at a place", function()
    local text = [[
22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:28 / /mnt/a\040b rw,noatime shared:5 master:1 - xfs /dev/loop3 rw,attr2
31 22 0:29 / /mnt rw - tmpfs tmpfs rw,size=1k
32 22 0:30 /sub /mnt rw - btrfs /dev/loop4 rw,space_cache=v2
]]
    assert.equal("xfs", provenance.mount_in(text, "/mnt/a b/c").filesystem)
    assert.equal("rw,noatime,rw,attr2", provenance.mount_in(text, "/mnt/a b").options)
    assert.equal("btrfs", provenance.mount_in(text, "/mnt/a").filesystem)
    assert.equal("/sub", provenance.mount_in(text, "/mnt").root)
    assert.equal("ext4", provenance.mount_in(text, "/mnt2").filesystem)
    assert.is_nil(provenance.mount_in("rubbish\n", "/"))
  end)

  it("agrees with findmnt and stat", function()
    if not helper.has "findmnt" then
      return pending "no findmnt"
    end
    for _, path in ipairs { helper.dir(), "/dev/shm", "/proc", "/" } do
      local m = assert(provenance.mount(path))
      local type_of = helper.must("findmnt -n -o FSTYPE --target %s | tail -n 1", path)
      -- In a chroot / may be on no mount that is listed: then statfs has the word.
      if type_of:find "%S" then
        assert.equal(type_of:gsub("%s+$", ""), m.filesystem, path)
      else
        assert.equal("/", m.mount_point)
        assert.equal(core.usage(path).type, m.filesystem)
      end
    end
    local here = assert(timeline.provenance(helper.dir()))
    local blocks, size = helper.must("stat -f -c '%%b %%S' %s", helper.dir()):match "(%d+) (%d+)"
    assert.equal(blocks * size, here.size_bytes)
  end)

  it("#root knows the device of a loop mount and its queue", function()
    if not helper.is_root() or not helper.has "mkfs.ext4" then
      return pending "needs root and mkfs.ext4"
    end
    local image, dir = helper.path "img", helper.path "mnt"
    helper.must("truncate -s 16m %s && mkfs.ext4 -q %s && mkdir %s", image, image, dir)
    local _, status = helper.sh("mount -o loop,noatime %s %s", image, dir)
    if status ~= 0 then
      return pending "no loop mounts here"
    end
    local ok, why = pcall(function()
      local h = assert(timeline.provenance(dir))
      assert.same({ "ext4", dir }, { h.filesystem, h.mount_point })
      assert.matches("noatime", h.mount_options)
      assert.matches("^loop%d+$", h.device)
      assert.equal(16 << 20, h.device_info.size_bytes)
      assert.equal(image, h.device_info.backing_file)
      assert.int(h.device_info.queue.logical_block_size, 512)
    end)
    helper.must("umount %s", dir)
    assert(ok, why)
  end)
end)
