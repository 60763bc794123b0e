-- Plans that are run: verified, written through each engine, saved and loaded.
local brim = require "brim"
local device = require "brim.device"
local examples = require "spec.plan_example"
local helper = require "spec.helper"
local plan = require "brim.plan"

local SEED <const> = 20250903
local MAX <const> = math.maxinteger
local KIB <const>, MIB <const>, TIB <const> = 1 << 10, 1 << 20, 1 << 40
local header, example, assert_raises = examples.header, examples.example, examples.assert_raises

describe("brim.plan", function()
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
end)
