-- Plans: building and its refusals, what every byte is against a painter's model, writing,
-- verifying, saving and loading, up to the last byte there can be.
local brim = require "brim"
local device = require "brim.device"
local helper = require "spec.helper"
local layout = require "brim.layout"
local plan = require "brim.plan"

local SEED <const> = 20250903
local MAX <const> = math.maxinteger
local KIB <const>, MIB <const>, TIB <const> = 1 << 10, 1 << 20, 1 << 40

local super = layout.struct("super", { size_bytes = 64, endian = "big", crc32c = "crc",
  extensible = true }) {
  { 0, "u32", "magic", magic = 0x53555052 },
  { 4, "u32", "crc" },
  { 8, "u64", "groups" },
  { 16, "char[16]", "label" },
  { 32, "bytes[32]", "pad" },
}
local header = layout.struct("header", { size_bytes = 32, endian = "little", crc32c = "crc",
  extensible = true }) {
  { 0, "u32", "magic", magic = 0x48454144 },
  { 4, "u32", "number" },
  { 8, "u64", "place", unit = "bytes" },
  { 16, "u32", "crc" },
  { 20, "u16", "small" },
  { 22, "u8", "tiny" },
  { 23, "u8", "fixed", value = 0xab },
  { 24, "u64be", "falling" },
}

-- Runs f, which must raise at this file's line, with all the parts in the message.
local function assert_raises(f, ...)
  local ok, why = pcall(f)
  assert.is_false(ok, "nothing was raised")
  assert.matches("plan_spec.lua:%d+: ", tostring(why))
  for _, part in ipairs { ... } do
    assert.is_truthy(tostring(why):find(part, 1, true),
      ("no '%s' in: %s"):format(part, tostring(why)))
  end
end

-- 64 groups of 64 KiB: a header in each, one laid over, a log of zeros, the superblock last.
local function example(o)
  local p = plan.new { name = o and o.name or "example", size_bytes = 4 * MIB,
    group_bytes = 64 * KIB }
  p:phase "erase"
  p:zero(0, 4 * KIB, "old signature")
  p:phase "groups"
  p:each(64, function(i)
    return header:at(4 * KIB, 512) { number = i, place = i * (64 * KIB) + 4 * KIB,
      falling = 1000 - i, tiny = i },
      layout.bytes(4 * KIB + 512, 512, "gap")
  end)
  p:group(7, header:at(4 * KIB, 512) { number = 7, small = 77 },
    layout.bytes(4 * KIB + 512, ("seven"):rep(100) .. ("\0"):rep(12), "map"))
  p:zero(32 * KIB, 8 * KIB, "log")
  p:put(layout.bytes(40 * KIB, "log head", "log head"))
  p:phase "superblock"
  p:put(super:at(0, 512) { groups = 64, label = "example" })
  return p
end

describe("brim.plan", function()
  describe("begins", function()
    it("with a size of 1 to 2^63-1 bytes", function()
      for _, size in ipairs { 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1, 1 << 62,
        MAX - 4096, MAX, "8191p", "1" } do
        local p <close> = plan { size_bytes = size }
        assert.int(p.size_bytes, brim.bytes.parse(tostring(size)))
        assert.int(p:totals().writes, 0)
      end
    end)

    it("with nothing else", function()
      for pattern, o in pairs {
        ["missing option 'size_bytes'"] = {}, ["unknown option 'size_byte'"] = { size_byte = 1 },
        ["option 'size_bytes': .*8e is 2%^63"] = { size_bytes = "8e" },
        ["option 'size_bytes'"] = { size_bytes = 1.5 }, ["float"] = { size_bytes = 2.0 ^ 60 },
        ["option 'name'"] = { size_bytes = 1, name = 5 },
        ["option 'group_bytes'"] = { size_bytes = 1, group_bytes = "1x" },
        ["a size of 1 .. 2%^63%-1"] = { size_bytes = 0 },
      } do
        local ok, why = pcall(plan.new, o)
        assert.is_false(ok, pattern)
        assert.matches(pattern, tostring(why))
      end
      assert.has_error(function() plan.new { size_bytes = -1 } end)
    end)
  end)

  describe("refuses", function()
    local p

    before_each(function()
      p = plan.new { name = "refusing", size_bytes = MIB, group_bytes = 64 * KIB }
    end)

    after_each(function()
      p:close()
    end)

    it("what is no piece", function()
      assert_raises(function() p:each(0, function() return header:at(0) end) end,
        "count of 1 or more")
      assert_raises(function() p:each(1.0, function() return header:at(0) end) end, "count of 1")
      assert_raises(function() p:each(2, header:at(0)) end, "and a function")
      assert_raises(function() p:each(2, function() end) end, "at least one structure")
      assert_raises(function() p:each(2, function() return 5 end) end,
        "placed with layout:at, got number")
      assert_raises(function() p:put() end, "at least one structure")
      assert_raises(function() p:put(header) end, "got table")
      assert_raises(function() p:each(2, function() return header:at(0) end, { strid = 1 }) end,
        "unknown option 'strid'")
      local q <close> = plan.new { size_bytes = MIB }
      assert_raises(function() q:each(2, function() return header:at(0) end) end, "stride_bytes")
      assert_raises(function() q:group(0, header:at(0)) end, "group_bytes")
    end)

    it("values that do not fit for every instance, naming the field", function()
      local huge <close> = plan.new { size_bytes = MAX, group_bytes = 4096 }
      assert_raises(function()
        huge:each(1 << 33, function(i) return header:at(0) { number = i } end)
      end, "field 'number' of 'header'", "32 bits")
      assert_raises(function()
        huge:each(257, function(i) return header:at(0) { tiny = i } end)
      end, "field 'tiny' of 'header'", "8 bits")
      assert_raises(function()
        huge:each(3, function(i) return header:at(0) { small = 1 - i } end)
      end, "field 'small' of 'header'")
      assert_raises(function()
        huge:each(3, function(i) return header:at(0) { falling = 1 - i } end)
      end, "field 'falling' of 'header'")
      assert_raises(function()
        huge:each(3, function(i) return header:at(0) { place = i << 62 } end)
      end, "field 'place' of 'header'")
      huge:each(256, function(i) return header:at(0) { tiny = i, small = 255 - i } end)
      huge:each(2, function(i) return header:at(0) { place = i << 62 } end, { offset_bytes = MIB })
    end)

    it("values that are not affine, naming the field and the line", function()
      local line = debug.getinfo(1, "l").currentline + 2
      assert_raises(function()
        p:each(4, function(i) return header:at(0) { number = i, small = i // 2 } end)
      end, "field 'small' of 'header': index // 2 is not affine",
        ("plan_spec.lua:%d)"):format(line))
      assert_raises(function()
        p:each(4, function(i) return header:at(0) { place = i * i } end)
      end, "field 'place' of 'header': index * index")
      assert_raises(function()
        p:each(4, function(i) return header:at(0) { place = i * 1.5 } end)
      end, "field 'place' of 'header': 1.5 is no integer")
      assert_raises(function()
        p:each(4, function(i) return header:at(0) { place = (i + 3) * MAX } end)
      end, "field 'place' of 'header': the value passes 64 bits")
      assert_raises(function()
        p:each(4, function(i) return i < 3 and header:at(0) or header:at(512) end)
      end, "stands for every instance at once")
      assert_raises(function() p:each(4, function(i) return header:at(i * 512) end) end, "offset")
    end)

    it("structures that overlap, naming both", function()
      assert_raises(function()
        p:each(4, function() return header:at(0), super:at(16) end)
      end, "'super' at 16 overlaps 'header' at 0")
      assert_raises(function() p:put(layout.bytes(0, 10, "a"), layout.bytes(9, 1, "b")) end,
        "'b' at 9 overlaps 'a' at 0")
      p:put(layout.bytes(0, 10, "a"), layout.bytes(10, 1, "b"))
    end)

    it("instances longer than their stride, or past the end", function()
      assert_raises(function()
        p:each(2, function() return header:at(0, 4096) end, { stride_bytes = 4095 })
      end, "'header'", "4096 bytes is longer than the stride of 4095")
      assert_raises(function() p:each(17, function() return header:at(0) end) end,
        "'header': instance 16 ends past the 1048576 bytes of plan 'refusing'")
      assert_raises(function() p:put(header:at(MIB - 31)) end, "ends past")
      assert_raises(function() p:put(header:at(MAX - 32)) end, "ends past")
      assert_raises(function() p:put(header:at(MAX - 31)) end, "are no region")
      assert_raises(function() p:each(2, function() return header:at(0) end, { first = MAX }) end)
      assert_raises(function()
        p:each(2, function() return header:at(0) end, { offset_bytes = MAX })
      end)
      assert_raises(function() p:zero(MIB - 1, 2) end, "lie outside of the 1048576 bytes")
      assert_raises(function() p:zero(0, 0) end)
      assert.has_error(function() p:zero(-1, 1) end)
      assert.has_error(function() p:zero(0, 1.5) end)
      p:put(header:at(MIB - 32))
      p:zero(0, MIB)
      p:each(16, function() return header:at(512) end)
    end)

    it("a later piece that covers part of an earlier one in the same phase", function()
      p:each(16, function(i) return header:at(0) { number = i }, header:at(512) end)
      p:group(3, header:at(0))
      assert_raises(function() p:seal() end, "'group 3' covers part of instance 3 of 'header'",
        "same phase")
    end)

    it("zeros over part of a structure in the same phase", function()
      p:each(16, function(i) return header:at(0) { number = i } end)
      p:zero(16, 16, "half")
      assert_raises(function() p:seal() end, "'half' covers part of instance 0 of 'header'")
    end)

    it("anything once it is sealed, and reading outside of it", function()
      p:put(header:at(0)):seal()
      for _, f in ipairs { function() p:put(header:at(512)) end, function() p:zero(0, 1) end,
        function() p:phase "late" end, function() p:group(1, header:at(0)) end } do
        assert_raises(f, "plan 'refusing' is sealed")
      end
      p:seal()
      assert.refuses("ERANGE", p:read(0, MIB + 1))
      assert.refuses("ERANGE", p:read(MIB, 1))
      assert.equal("", p:read(MIB, 0))
    end)
  end)

  describe("lays", function()
    it("later pieces over earlier ones, whole in a phase, anyhow in a later one", function()
      local p <close> = example()
      local values, intact = header:decode(p:read(5 * 64 * KIB + 4 * KIB, 512), 0, 512)
      assert.is_true(intact)
      assert.same({ magic = 0x48454144, number = 5, place = 5 * 65536 + 4096, crc = values.crc,
        small = 0, tiny = 5, fixed = 0xab, falling = 995 }, values)
      values, intact = header:decode(p:read(7 * 64 * KIB + 4 * KIB, 512), 0, 512)
      assert.is_true(intact)
      assert.int(values.small, 77)
      assert.int(values.place, 0)
      assert.equal("sevenseven", p:read(7 * 64 * KIB + 4 * KIB + 512, 10))
      local sb, sb_intact = super:decode(p:read(0, 512), 0, 512)
      assert.is_true(sb_intact)
      assert.equal("example", sb.label)
      assert.equal(("\0"):rep(4096 - 512), p:read(512, 4096 - 512))
      assert.equal("\0log head\0", p:read(40 * KIB - 1, 10))
    end)

    it("and counts what that amounts to", function()
      local p <close> = example()
      local t = p:totals()
      assert.int(t.phases, 3)
      assert.int(t.pieces, 6)
      assert.int(t.groups, 64)
      assert.int(t.writes, 66)
      assert.int(t.write_bytes, 64 * 1024 + 8 + 512)
      assert.int(t.zero_bytes, 12 * KIB)
      local names = {}
      for k, piece in ipairs(p:pieces()) do
        names[k] = piece.name
      end
      assert.same({ "old signature", "header", "group 7", "log", "log head", "super" }, names)
      assert.int(p:pieces()[2].hidden, 1)
      assert.same({ { label = "header", off_bytes = 4096, len_bytes = 512 },
        { label = "gap", off_bytes = 4608, len_bytes = 512 } }, p:pieces()[2].regions)
    end)

    it("and explains itself in words", function()
      local p <close> = example { name = "tale" }
      local told = tostring(p)
      assert.equal(told, p:explain())
      for _, part in ipairs { "plan 'tale': 4 MiB, 64 groups, 66 writes", "phase 'erase'",
        "phase 'superblock'", "old signature", "header, gap", "group 7", "1 of them laid below" } do
        assert.is_truthy(told:find(part, 1, true), ("no '%s' in:\n%s"):format(part, told))
      end
    end)

    it("from a first instance on, at an offset, with a stride", function()
      local p <close> = plan.new { size_bytes = MIB }
      p:each(3, function(i) return header:at(100) { number = i } end,
        { first = 10, offset_bytes = 4096, stride_bytes = 1000, name = "some", groups = false })
      for i = 10, 12 do
        assert.int(header:decode(p:read(4096 + i * 1000 + 100, 32)).number, i)
      end
      assert.int(p:totals().groups, 0)
      assert.equal("some", p:pieces()[1].name)
      assert.equal(("\0"):rep(32), p:read(4096 + 13 * 1000 + 100, 32))
    end)
  end)

  -- A random plan, and the volume that a painter makes of the same calls.
  describe("says of every byte what a painter would", function()
    local SIZE <const> = 256 * KIB

    local function paint(volume, off, bytes)
      for k = 1, #bytes do
        volume[off + k] = bytes:sub(k, k)
      end
    end

    local function random_values(i)
      local a, b = math.random(0, 99), math.random(1, 7)
      return { number = i * b + a, place = i * (b << 32) + a, falling = 99999 - i * a,
        small = a * 300, tiny = i }
    end

    -- Lays headers as instances; a whole instance is painted from its own encoding.
    local function lay(p, volume, state)
      local size = math.random(32, 700)
      local stride = size + math.random(0, 900)
      local count = math.random(1, math.min(200, (SIZE - 8192) // stride))
      local offset = math.random(0, SIZE - count * stride)
      local seed = math.random(1 << 30)
      p:each(count, function(i)
        math.randomseed(seed)
        return header:at(0, size)(random_values(i))
      end, { offset_bytes = offset, stride_bytes = stride, groups = state % 2 == 0 })
      for i = 0, count - 1 do
        math.randomseed(seed)
        paint(volume, offset + i * stride, header:encode(random_values(i), size))
      end
    end

    local function random_plan(case)
      math.randomseed(SEED, case)
      local p, volume = plan.new { name = "painted", size_bytes = SIZE }, {}
      for k = 1, SIZE do
        volume[k] = "\0"
      end
      for n = 1, math.random(2, 5) do
        -- A phase of its own each, as partial covers within one are refused.
        p:phase("phase " .. n)
        if math.random(4) == 1 then
          local off = math.random(0, SIZE - 1)
          local len = math.random(1, SIZE - off)
          p:zero(off, len)
          paint(volume, off, ("\0"):rep(len))
        end
        local state = math.random(0)
        p:phase("more " .. n)
        lay(p, volume, state)
        math.randomseed(SEED, case * 100 + n)
      end
      return p, table.concat(volume)
    end

    for case = 1, 12 do
      it(("seed %d case %d"):format(SEED, case), function()
        local p <close>, volume = random_plan(case)
        assert.is_true(volume == p:read(0, SIZE), "read")
        for _ = 1, 50 do
          local off = math.random(0, SIZE - 1)
          local len = math.random(0, math.min(5000, SIZE - off))
          assert.is_true(volume:sub(off + 1, off + len) == p:read(off, len), "part")
        end
        local path = helper.path "painted"
        for _, max_io_bytes in ipairs { 4096, 64 * KIB, MIB } do
          helper.write(path, ("\255"):rep(SIZE))
          local dirty <close> = assert(device.open(path, { write = true, raw = true }))
          assert(dirty:zero(0, SIZE))
          local r = assert(p:write(dirty, { max_io_bytes = max_io_bytes, queue_depth = case }))
          assert.is_nil(r.stopped)
          assert.is_true(volume == helper.read(path), "written")
          assert.int(assert(p:verify(path, { max_io_bytes = max_io_bytes })).mismatch_count, 0)
        end
        local saved = helper.path "painted.brim"
        assert(p:save(saved))
        local loaded <close> = assert(plan.load(saved))
        assert.is_true(volume == loaded:read(0, SIZE), "loaded")
        assert.same(p:totals(), loaded:totals())
        assert.same(p:pieces(), loaded:pieces())
        local image <close> = assert(device.open(saved))
        assert.is_true(volume == image:read(0, SIZE), "image")
        assert.int(assert(p:verify(image)).mismatch_count, 0)
      end)
    end
  end)

  describe("verifies", function()
    local path, p

    before_each(function()
      path = helper.path "verified"
      p = example()
      assert(p:write(path))
    end)

    after_each(function()
      p:close()
      os.remove(path)
    end)

    local function poke(off, byte)
      local file <close> = assert(io.open(path, "r+b"))
      file:seek("set", off)
      file:write(byte)
    end

    it("what it wrote", function()
      local r = assert(p:verify(path))
      assert.int(r.mismatch_count, 0)
      assert.same({}, r.mismatches)
      assert.int(r.groups, 64)
      assert.int(r.writes, 0)
    end)

    -- Offset, what the mismatch must say.
    local GROUP <const> = 64 * KIB
    for _, row in ipairs {
      { 5 * GROUP + 4096, 5, "header", "header", 0x44 },
      { 5 * GROUP + 4096 + 511, 5, "header", "header", 0 },
      { 63 * GROUP + 4096 + 512, 63, "header", "gap", 0 },
      { 7 * GROUP + 4096 + 20, 7, "group 7", "header", 77 },
      { 7 * GROUP + 4096 + 512, 7, "group 7", "map", ("s"):byte() },
      { 33 * KIB, 0, "log", "log", 0 },
      { 40 * KIB + 2, 0, "log head", "log head", ("g"):byte() },
      { 3, 0, "super", "super", 0x52 },
      { 600, 0, "old signature", "old signature", 0 },
    } do
      local off, group, piece, what, expected = table.unpack(row)
      it(("and finds a flipped byte of %s in group %d"):format(what, group), function()
        poke(off, "\xee")
        local r = assert(p:verify(path))
        assert.int(r.mismatch_count, 1)
        local m = r.mismatches[1]
        assert.int(m.group, group)
        assert.equal(piece, m.piece)
        assert.equal(what, m.what)
        assert.int(m.off_bytes, off)
        assert.int(m.expected, expected)
        assert.int(m.found, 0xee)
      end)
    end

    it("and does not mind what the plan leaves alone", function()
      poke(20 * KIB, "x")
      poke(4 * MIB - 1, "x")
      assert.int(assert(p:verify(path)).mismatch_count, 0)
    end)

    it("keeps only as many differences as asked for, and counts all", function()
      for group = 10, 40 do
        poke(group * GROUP + 4096, "\0")
      end
      local r = assert(p:verify(path, { max_mismatches = 5 }))
      assert.int(r.mismatch_count, 31)
      assert.int(#r.mismatches, 5)
    end)

    it("refuses a target that is too short or is not there", function()
      helper.must("truncate -s 1M %s", path)
      local r, err = p:verify(path)
      assert.is_nil(r)
      assert.is_truthy(brim.error.is(err))
      assert.refuses("ENOENT", p:verify(path .. ".missing"))
    end)
  end)

  describe("writes", function()
    it("the same through each engine", function()
      local p <close> = example()
      for _, engine in ipairs { "sync", "auto" } do
        local path = helper.path "written"
        local r = assert(p:write(path, { engine = engine, queue_depth = 3, threads = 2 }))
        assert.int(r.groups, 64)
        assert.int(r.writes, 66)
        assert.int(r.write_bytes, p:totals().write_bytes)
        assert.is_true(p:read(0, 4 * MIB) == helper.read(path), engine)
        os.remove(path)
      end
      local null <close> = assert(device.null(4 * MIB))
      assert.int(assert(p:write(null, { engine = "null" })).writes, 66)
    end)

    it("and stops where the callback says so", function()
      local p <close> = plan.new { size_bytes = MAX, group_bytes = TIB }
      p:each(8000000, function(i) return header:at(0, 4096) { number = i } end)
      local null <close> = assert(device.null(MAX))
      local calls = 0
      local function count(s)
        calls = calls + 1
        assert.int(s.groups_total, 8000000)
        return calls < 3
      end
      local r = assert(p:write(null, { engine = "null", progress_interval_s = 0,
        progress = count }))
      assert.equal("cancelled", r.stopped)
      assert.int(calls, 3)
      assert.is_true(r.groups < 8000000)
      local ok, why = pcall(p.write, p, null, { engine = "null", progress_interval_s = 0,
        progress = function() error("enough", 0) end })
      assert.is_false(ok)
      assert.equal("enough", why)
    end)

    it("refuses wrong options before it opens the target", function()
      local p <close> = example()
      local path = helper.path "untouched"
      assert_raises(function() p:write(path, { queue_dept = 1 }) end, "did you mean 'queue_depth'")
      assert_raises(function() p:write(path, { queue_depth = 0 }) end, "'queue_depth'")
      assert_raises(function() p:write(path, { max_io_bytes = 1.5 }) end, "'max_io_bytes'")
      assert.is_nil(io.open(path))
    end)
  end)

  describe("saves and loads", function()
    local path

    before_each(function()
      path = helper.path "saved.brim"
    end)

    it("notes, name, size", function()
      local p <close> = example { name = "kept" }
      p:note("format", "tiny"):note("empty", ""):note("gone", "x")
      assert.equal("tiny", p:note "format")
      assert.is_nil(p:note "nothing")
      assert(p:save(path))
      local loaded <close> = assert(plan.load(path))
      assert.equal("kept", loaded.name)
      assert.int(loaded.size_bytes, 4 * MIB)
      assert.equal("tiny", loaded:note "format")
      assert.equal("", loaded:note "empty")
      assert.equal(p:explain(), loaded:explain())
      assert_raises(function() loaded:put(header:at(0)) end, "sealed")
      assert.is_true(#helper.read(path) < 4096)
    end)

    it("replaces an older image, and leaves no part behind where it cannot", function()
      local p <close> = example()
      assert(p:save(path))
      local q <close> = plan.new { size_bytes = 77 }
      assert(q:save(path))
      local loaded <close> = assert(plan.load(path))
      assert.int(loaded.size_bytes, 77)
      assert.refuses("ENOTDIR", p:save(path .. "/no/such"))
      assert.equal(path .. "\n", helper.must("ls -d %s*", path))
    end)

    it("refuses what is no image, or was changed", function()
      local p <close> = example()
      assert(p:save(path))
      local good = helper.read(path)
      local function load(bytes)
        helper.write(path, bytes)
        local loaded, err = plan.load(path)
        assert.is_nil(loaded)
        assert.is_true(brim.error.is(err))
        assert.is_truthy(err.message:find(path, 1, true), err.message)
      end
      load ""
      load "brimimg"
      load(("x"):rep(1000))
      for len = 0, #good - 1, 7 do
        load(good:sub(1, len))
      end
      load(good .. "x")
      math.randomseed(SEED)
      for _ = 1, 200 do
        local at = math.random(#good)
        load(good:sub(1, at - 1) .. string.char(good:byte(at) ~ 1 << math.random(0, 7))
          .. good:sub(at + 1))
      end
      helper.write(path, good)
      local loaded <close> = assert(plan.load(path))
      assert.int(loaded:totals().groups, 64)
      assert.refuses("ENOENT", plan.load(path .. ".missing"))
    end)
  end)

  describe("reaches the last byte there can be", function()
    local GROUPS <const> = 8388608

    it("in the last group of the largest volume", function()
      local p <close> = plan.new { name = "largest", size_bytes = MAX, group_bytes = TIB }
      p:each(GROUPS - 2, function(i)
        return header:at(TIB - 4096, 4096) { number = i, place = i * TIB, falling = MAX - i * TIB }
      end, { first = 1 })
      assert_raises(function()
        p:each(GROUPS, function() return header:at(TIB - 4096, 4096) end)
      end, "instance 8388607 ends past the 9223372036854775807 bytes of plan 'largest'")
      p:put(layout.bytes(MAX - 9, "the end", "tail"))
      assert_raises(function() p:put(layout.bytes(MAX - 1, "xx")) end, "are no region")
      local at = (GROUPS - 2) * TIB + TIB - 4096
      local values, intact = header:decode(p:read(at, 4096), 0, 4096)
      assert.is_true(intact)
      assert.int(values.number, GROUPS - 2)
      assert.int(values.place, (GROUPS - 2) * TIB)
      assert.int(values.falling, MAX - (GROUPS - 2) * TIB)
      assert.equal("\0the end\0\0", p:read(MAX - 10, 10))
      assert.refuses("ERANGE", p:read(MAX, 1))
      assert.refuses("ERANGE", p:read(MAX - 3, 4096))
    end)

    it("with every group counted, and small when saved", function()
      local p <close> = plan.new { size_bytes = MAX, group_bytes = TIB }
      p:each(GROUPS - 1, function(i) return header:at(0, 4096) { number = i } end)
      p:group(5, header:at(0, 4096) { number = 5, small = 9 })
      local t = p:totals()
      assert.int(t.groups, GROUPS - 1)
      assert.int(t.writes, GROUPS - 1)
      assert.int(t.write_bytes, (GROUPS - 1) * 4096)
      local path = helper.path "largest.brim"
      assert(p:save(path))
      assert.is_true(#helper.read(path) < 2048)
      local image <close> = assert(device.open(path))
      assert.int(image:info().size_bytes, MAX)
      assert.int(header:decode(image:read(5 * TIB, 4096), 0, 4096).small, 9)
      local wrong <close> = plan.new { size_bytes = MAX, group_bytes = TIB }
      wrong:each(3, function(i) return header:at(0, 4096) { number = i } end, { first = 4 })
      local r = assert(wrong:verify(image))
      assert.int(r.mismatch_count, 1)
      assert.int(r.mismatches[1].group, 5)
      assert.int(r.mismatches[1].off_bytes, 5 * TIB + 16)
    end)
  end)

  it("closes any number of times, and then takes nothing", function()
    local p = example()
    p:close()
    p:close()
    assert.has_error(function() p:read(0, 1) end)
    assert.has_error(function() p:put(header:at(0)) end)
  end)
end)
