-- Scans: what holds is found to hold; a wrong number, magic or checksum is found and named; what a
-- scan cannot mean is refused.
local brim = require "brim"
local device = require "brim.device"
local helper = require "spec.helper"
local layout = require "brim.layout"
local ondisk = require "brim.xfs.ondisk"
local plan = require "brim.plan"
local scan = require "brim.scan"

local SEED <const> = 20250904
local MAX <const> = math.maxinteger
local KIB <const>, MIB <const>, TIB <const> = 1 << 10, 1 << 20, 1 << 40
local GROUPS <const>, STRIDE <const> = 200, 16 * KIB
local UUID <const> = "01234567-89ab-cdef-0123-456789abcdef"

local record = layout.struct("record", { size_bytes = 8, endian = "little" }) {
  { 0, "u32", "from" }, { 4, "u32", "blocks" },
}
local header = layout.struct("header", { size_bytes = 104, endian = "big", crc32c = "crc",
  extensible = true }) {
  { 0, "u32", "magic", magic = 0x48454144 },
  { 4, "u32", "number" },
  { 8, "u64", "place", unit = "bytes" },
  { 16, "u32le", "crc" },
  { 20, "u16", "small" },
  { 22, "u8", "tiny" },
  { 23, "u8", "usual", value = 0xab },
  { 24, "u64le", "falling" },
  { 32, "uuid", "id" },
  { 48, "char[8]", "label" },
  { 56, "u16[4]", "steps" },
  { 64, record:array(5), "records" },
}
local trailer = layout.struct("trailer", { size_bytes = 16, endian = "little" }) {
  { 0, "u64", "magic", magic = -2 }, { 8, "u64", "number" },
}

local function values(i)
  return { number = i, place = i * STRIDE, small = 40000 - i, tiny = i - i + 9,
    falling = MAX - i * 3, id = UUID, label = "scan", steps = { i, i * 2, 7, 65535 },
    records = { {}, { from = i, blocks = -1 } } }
end

local function trace(i)
  return header:at(512, 512)(values(i)), trailer:at(8 * KIB) { number = i * (1 << 40) + 5 }
end

describe("brim.scan", function()
  local path

  setup(function()
    path = helper.path "scanned"
    local p <close> = plan.new { size_bytes = GROUPS * STRIDE, group_bytes = STRIDE }
    p:each(GROUPS, trace)
    assert(p:write(path))
  end)

  local function run(s, o)
    local all = { count = GROUPS, stride_bytes = STRIDE }
    for name, v in pairs(o or {}) do
      all[name] = v
    end
    return assert(s:run(path, all))
  end

  -- Changes bytes for the time of f.
  local function with_bytes(off, bytes, f)
    local file <close> = assert(io.open(path, "r+b"))
    file:seek("set", off)
    local old = file:read(#bytes)
    file:seek("set", off)
    file:write(bytes)
    file:flush()
    local ok, err = pcall(f)
    file:seek("set", off)
    file:write(old)
    file:flush()
    assert.is_true(ok, tostring(type(err) == "table" and err.message or err))
  end

  it("finds nothing wrong where all holds", function()
    local r = run(scan(trace))
    assert.int(r.mismatch_count, 0)
    assert.same({}, r.mismatches)
    assert.int(r.groups, GROUPS)
    assert.int(r.reads, GROUPS)
    assert.int(r.writes, 0)
    r = run(scan.new(function() return header:at(512, 512) end))
    assert.int(r.mismatch_count, 0)
  end)

  -- Where the byte lies in group 77, its value, and what the scan must say of it beside the
  -- checksum: structure, field, expected and found.
  local AT <const> = 77 * STRIDE
  for _, row in ipairs {
    { 512 + 7, 0xff, "header", "number", 77, 0xff },
    { 512 + 0, 0x00, "header", "magic", 0x48454144, 0x00454144 },
    { 512 + 8, 0x7f, "header", "place", AT, 0x7f << 56 | AT },
    { 512 + 20, 0x00, "header", "small", 40000 - 77, (40000 - 77) & 0xff },
    { 512 + 22, 0x01, "header", "tiny", 9, 1 },
    { 512 + 31, 0x00, "header", "falling", MAX - 231, (1 << 56) - 1 - 231 },
    { 512 + 32, 0x99, "header", "id", 0x01, 0x99 },
    { 512 + 51, 0x4e, "header", "label", ("n"):byte(), 0x4e },
    { 512 + 58, 0x01, "header", "steps", 154, 256 + 154 },
    { 512 + 72, 0x00, "record", "from", 77, 0 },
    { 512 + 79, 0x00, "record", "blocks", 0xffffffff, 0xffffff },
    { 8 * KIB + 7, 0x00, "trailer", "magic", -2, (1 << 56) - 2 },
    { 8 * KIB + 8, 0x06, "trailer", "number", 77 << 40 | 5, 77 << 40 | 6 },
  } do
    local off, byte, piece, what, expected, found = table.unpack(row)
    it(("finds and names a wrong %s.%s"):format(piece, what), function()
      with_bytes(AT + off, string.char(byte), function()
        local r = run(scan(trace))
        -- In the order of their places.
        local is_behind = piece ~= "trailer" and off > 512 + 16
        local m, sum = r.mismatches[is_behind and 2 or 1], r.mismatches[is_behind and 1 or 2]
        assert.equal(piece, m.piece)
        assert.equal(what, m.what)
        assert.int(m.expected, expected)
        assert.int(m.found, found)
        assert.int(m.group, 77)
        local of = ({ header = header, record = record, trailer = trailer })[piece]
        local field = of:field(what)
        local width = field.kind == "int" and field.width_bytes or 1
        assert.is_true(m.off_bytes <= AT + off and AT + off < m.off_bytes + width)
        -- The checksum of the header is wrong, too; the trailer has none.
        assert.int(r.mismatch_count, piece == "trailer" and 1 or 2)
        if piece ~= "trailer" then
          assert.equal("header", sum.piece)
          assert.equal("crc", sum.what)
          assert.int(sum.group, 77)
          assert.int(sum.off_bytes, AT + 512 + 16)
        end
      end)
    end)
  end

  it("finds a wrong checksum where nothing else is wrong, and says what it should be", function()
    for _, off in ipairs { 16, 19, 104, 300, 511 } do
      with_bytes(AT + 512 + off, "\x5a", function()
        local file <close> = assert(io.open(path, "rb"))
        file:seek("set", AT + 512)
        local bytes = file:read(512)
        local there, intact = header:decode(bytes, 0, 512)
        assert.is_false(intact)
        local r = run(scan(trace))
        assert.int(r.mismatch_count, 1)
        local m = r.mismatches[1]
        assert.equal("header", m.piece)
        assert.equal("crc", m.what)
        assert.int(m.group, 77)
        assert.int(m.off_bytes, AT + 512 + 16)
        assert.int(m.found, there.crc)
        local zeroed = bytes:sub(1, 16) .. "\0\0\0\0" .. bytes:sub(21)
        local raw = layout.struct("raw", { size_bytes = 512, endian = "little", crc32c = "crc" }) {
          { 0, "bytes[16]", "a" }, { 16, "u32", "crc" }, { 20, "bytes[492]", "b" } }
        local sealed = raw:encode { a = zeroed:sub(1, 16), b = zeroed:sub(21) }
        assert.int(m.expected, raw:decode(sealed).crc)
      end)
    end
  end)

  it("does not look at what is neither expected nor a magic number", function()
    with_bytes(AT + 512 + 23, "\0", function()
      local r = run(scan(function(i) return header:at(512, 512) { number = i } end))
      assert.int(r.mismatch_count, 1)
      assert.equal("crc", r.mismatches[1].what)
    end)
    with_bytes(AT + 4096, "\xee", function()
      assert.int(run(scan(trace)).mismatch_count, 0)
    end)
  end)

  it("counts all that is wrong and keeps the first, in the order of groups", function()
    local s = scan(function(i) return header:at(512, 512) { number = i + 1 } end)
    local r = run(s, { max_mismatches = 3, queue_depth = 1, engine = "sync", threads = 1 })
    assert.int(r.mismatch_count, GROUPS)
    assert.int(#r.mismatches, 3)
    for k, m in ipairs(r.mismatches) do
      assert.int(m.group, k - 1)
      assert.int(m.expected, k)
      assert.int(m.found, k - 1)
    end
  end)

  it("says the same at any depth, I/O size and engine", function()
    math.randomseed(SEED)
    with_bytes(5 * STRIDE + 512 + 4, "\1", function()
      for _ = 1, 12 do
        local o = { queue_depth = math.random(64), max_io_bytes = 16 * KIB << math.random(0, 6),
          threads = math.random(3), engine = math.random(2) == 1 and "sync" or "auto" }
        local r = run(scan(trace), o)
        assert.int(r.mismatch_count, 2)
        assert.int(r.mismatches[1].group, 5)
        assert.int(r.groups, GROUPS)
      end
    end)
  end)

  it("reads many small instances at once, at an offset", function()
    local small, stride <const> = helper.path "small", 24
    local p <close> = plan.new { size_bytes = MIB }
    p:each(40000, function(i) return trailer:at(0) { number = i } end,
      { offset_bytes = 100, stride_bytes = stride })
    assert(p:write(small))
    local s = scan(function(i) return trailer:at(0) { number = i } end)
    local r = assert(s:run(small, { count = 40000, stride_bytes = stride, offset_bytes = 100 }))
    assert.int(r.mismatch_count, 0)
    assert.int(r.groups, 40000)
    assert.is_true(r.reads < 40)
    r = assert(s:run(small, { count = 39999, stride_bytes = stride, offset_bytes = 100 + stride }))
    assert.int(r.mismatch_count, 39999)
    assert.int(r.mismatches[1].found, 1)
  end)

  it("takes an open device, which stays open", function()
    local d <close> = assert(device.open(path))
    for _ = 1, 2 do
      local r = assert(scan(trace):run(d, { count = GROUPS, stride_bytes = STRIDE }))
      assert.int(r.mismatch_count, 0)
    end
    assert.int(d:info().size_bytes, GROUPS * STRIDE)
  end)

  it("and an image, up to the last group there can be", function()
    local image, groups <const> = helper.path "largest.brim", 8388607
    local p <close> = plan.new { size_bytes = MAX, group_bytes = TIB }
    local function one(i)
      return header:at(TIB - 8192, 4096) { number = i, place = i * TIB, falling = MAX - i * TIB }
    end
    p:each(groups, one)
    assert(p:save(image))
    local s = scan(one)
    local r = assert(s:run(image, { count = 1000, stride_bytes = TIB,
      offset_bytes = 0 }))
    assert.int(r.mismatch_count, 0)
    local last = scan(function(i)
      local ag = i + (groups - 3)
      return header:at(TIB - 8192, 4096) { number = ag, place = ag * TIB, falling = 3 - i }
    end)
    r = assert(last:run(image, { count = 3, stride_bytes = TIB,
      offset_bytes = (groups - 3) * TIB }))
    assert.int(r.groups, 3)
    assert.same({ "falling", "falling", "falling" }, { r.mismatches[1].what, r.mismatches[2].what,
      r.mismatches[3].what })
    assert.int(r.mismatches[3].found, MAX - (groups - 1) * TIB)
    assert.refuses("ERANGE", s:run(image, { count = groups + 2, stride_bytes = TIB }))
    assert.refuses("ERANGE", s:run(image, { count = 2, stride_bytes = MAX }))
    assert.refuses("ERANGE", s:run(image, { count = 1, stride_bytes = 1, offset_bytes = MAX }))
    assert.refuses("ERANGE", s:run(image, { count = MAX, stride_bytes = MAX }))
  end)

  it("reads an XFS of mkfs.xfs", function()
    if not helper.has "mkfs.xfs" then
      return pending "mkfs.xfs is not installed"
    end
    local real = helper.path "real.img"
    helper.must("truncate -s 4G %s && mkfs.xfs -q -m uuid=%s -d agcount=8 -l size=64m %s", real,
      UUID, real)
    local check = require "brim.xfs.check"
    local g = assert(brim.xfs.geometry { size_bytes = 4 << 30, ag_count = 8, log_bytes = 64 << 20,
      uuid = UUID })
    assert.int(assert(check.headers(real, g)).mismatch_count, 0)
    local s = scan(function(ag)
      return ondisk.sb:at(0, 512) { uuid = UUID, agcount = 8, agblocks = 131072 },
        ondisk.agf:at(512, 512) { seqno = ag, length = 131072, uuid = UUID }
    end)
    assert.int(assert(s:run(real, { count = 8, stride_bytes = 1 << 29 })).mismatch_count, 0)
    local file <close> = assert(io.open(real, "r+b"))
    file:seek("set", (5 << 29) + 512 + 8)
    file:write "\0\0\0\4"
    file:flush()
    local r = assert(check.headers(real, g))
    assert.int(r.mismatch_count, 2)
    assert.same({ "agf", "seqno", 5, 4, 5 }, { r.mismatches[1].piece, r.mismatches[1].what,
      r.mismatches[1].expected, r.mismatches[1].found, r.mismatches[1].group })
    assert.same({ "agf", "crc" }, { r.mismatches[2].piece, r.mismatches[2].what })
    os.remove(real)
  end)

  describe("refuses", function()
    local function assert_raises(f, ...)
      local ok, why = pcall(f)
      assert.is_false(ok, "nothing was raised")
      assert.matches("scan_spec.lua:%d+: ", tostring(why))
      for _, part in ipairs { ... } do
        assert.is_truthy(tostring(why):find(part, 1, true), ("no '%s' in: %s"):format(part, why))
      end
    end

    it("what is no structure", function()
      for part, v in pairs { ["placed with layout:at, got number"] = 5, ["got table"] = header,
        ["placed with layout:at"] = layout.bytes(0, "x") } do
        assert_raises(function() scan(function() return v end) end, part)
      end
    end)

    -- What the message must hold, values from the index.
    local UNMET = {
      ["field 'number' of 'header': index // 2 is not affine"] = function(i)
        return { number = i // 2 }
      end,
      ["field 'number' of 'header': 1.5 is a float"] = function() return { number = 1.5 } end,
      ["'header' has no field 'nubmer'; did you mean 'number'?"] = function()
        return { nubmer = 1 }
      end,
      ["field 'tiny' of 'header': 256 does not fit 8 bits"] = function() return { tiny = 256 } end,
      ["field 'small' of 'header': -32769 does not fit 16 bits"] = function()
        return { small = -32769 }
      end,
      ["field 'steps' of 'header': 5 elements do not fit 4"] = function()
        return { steps = { 1, 2, 3, 4, 5 } }
      end,
      ["'records' of 'header': 'record' has no field 'form'; did you mean 'from'?"] = function()
        return { records = { { form = 1 } } }
      end,
      ["field 'id' of 'header': 'x' is no UUID"] = function() return { id = "x" } end,
      ["stands for every instance at once"] = function(i) return { number = i < 5 and 1 or 2 } end,
    }
    for part, values_of in pairs(UNMET) do
      it("expectations that cannot be met: " .. part, function()
        assert_raises(function()
          scan(function(i) return header:at(0)(values_of(i)) end)
        end, part)
      end)
    end

    it("structures too small, too far from each other or past the largest offset", function()
      assert_raises(function() scan(function() return header:at(0, 103) end) end, "header", "104")
      assert_raises(function() scan(function() return header:at(0), header:at(TIB) end) end,
        "away from the others")
      assert_raises(function() scan(function() return header:at(MAX - 103) end) end, "2^63-1")
    end)

    it("to run without a count and a stride, or on what is not there", function()
      local s = scan(trace)
      assert_raises(function() s:run(path, {}) end, "missing option")
      assert_raises(function() s:run(path, { count = 0, stride_bytes = 1 }) end, "'count'")
      assert_raises(function()
        s:run(path, { count = 1, stride_bytes = 1, depth = 1 })
      end, "'depth'")
      assert_raises(function() s:run(path, { count = 1, stride_bytes = 1.5 }) end, "'stride_bytes'")
      assert.refuses("ENOENT", s:run(path .. ".missing", { count = 1, stride_bytes = 1 }))
      assert.refuses("ERANGE", s:run(path, { count = GROUPS + 1, stride_bytes = STRIDE }))
      assert.refuses("EINVAL", s:run(path, { count = 2, stride_bytes = 0 }))
      assert.refuses("EINVAL", scan(function() end):run(path, { count = 1, stride_bytes = 1 }))
    end)
  end)

  it("is cancelled by its callback", function()
    local null <close> = assert(device.null(MAX))
    local s = scan(function() return trailer:at(0) { number = 0 } end)
    local r = assert(s:run(null, { count = 8000000, stride_bytes = TIB, progress_interval_s = 0,
      progress = function() return false end }))
    assert.equal("cancelled", r.stopped)
    assert.is_true(r.groups < 8000000)
  end)
end)
