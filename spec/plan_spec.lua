-- Plans: building, what every byte is against a painter's model, explaining, up to the last byte
-- there can be.
local brim = require "brim"
local device = require "brim.device"
local examples = require "spec.plan_example"
local helper = require "spec.helper"
local layout = require "brim.layout"
local plan = require "brim.plan"

local SEED <const> = 20250903
local MAX <const> = math.maxinteger
local KIB <const>, MIB <const>, TIB <const> = 1 << 10, 1 << 20, 1 << 40
local header, example, assert_raises = examples.header, examples.example, examples.assert_raises

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
      local sb, sb_intact = examples.super:decode(p:read(0, 512), 0, 512)
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
