-- What plans refuse, at the line of the script: pieces that are none, values that do not fit or are
-- not affine, overlaps, the end.
local examples = require "spec.plan_example"
local layout = require "brim.layout"
local plan = require "brim.plan"

local MAX <const> = math.maxinteger
local KIB <const>, MIB <const> = 1 << 10, 1 << 20
local super, header, assert_raises = examples.super, examples.header, examples.assert_raises

describe("brim.plan", function()
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
        ("plan_refuse_spec.lua:%d)"):format(line))
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
end)
