-- The geometry of brim against mkfs.xfs -N of each release: the text, or that it refuses, at every
-- boundary and for random options. Sizes go up to 2^63-4096, which tmpfs takes for a file.
local geometry = require "brim.xfs.geometry"
local helper = require "spec.helper"
local options = require "brim.xfs.options"
local oracles = require "spec.oracles"
local text = require "brim.xfs.text"

local SEED <const> = 20180905
local MIB <const>, GIB <const> = 1 << 20, 1 << 30
local TIB <const>, PIB <const> = 1 << 40, 1 << 50
local LARGEST_FILE_BYTES <const> = math.maxinteger - 4095

local CPUS <const> = math.tointeger(tonumber(helper.must "getconf _NPROCESSORS_ONLN"))

local function compute(o, size_bytes)
  return geometry.compute(o, { size_bytes = size_bytes, is_file = true, cpus = CPUS })
end

local function shallow_copy(o)
  return table.move(o, 1, #o, 1, {})
end

-- Geometries the reference would print, or half write, and then fail on; brim refuses at once. And
-- where it forgets a conflict, with nr_cpus, and ignores one of the options.
local FAILS_WHEN_WRITTEN = {
  "cannot be combined with %-[dl] concurrency",
  "fill the filesystem with %d+, ask for that", "does not fit it; name another group",
  "where nothing looks for it", "does not fit group 0",
}

local function fails_when_written(err)
  for _, pattern in ipairs(FAILS_WHEN_WRITTEN) do
    if err.message:find(pattern) then
      return true
    end
  end
  return false
end

for _, compat in ipairs { "6.1", "6.13", "7.2" } do
  describe("against mkfs.xfs -N of " .. compat, function()
    local oracle, missing = oracles.of("xfs", compat)
    if not oracle then
      pending(missing)
      return
    end

    local dir, image
    local compared = { accepted = 0, refused = 0 }

    setup(function()
      dir = helper.must("mktemp -d -p /dev/shm"):gsub("%s+$", "")
      image = dir .. "/image"
    end)

    teardown(function()
      helper.must("rm -rf %s", helper.quote(dir))
    end)

    local function pick(list)
      return list[math.random(#list)]
    end

    -- Ask both; `case` is shown when they differ. Returns whether the reference accepts.
    local function compare(case, file_bytes, words)
      local line = table.concat(words, " ")
      local label = ("%s: file of %d bytes, mkfs.xfs -N %s"):format(case, file_bytes, line)
      local pipe = assert(io.popen(("truncate -s %d %s && %s -N %s %s 2>/dev/null"):format(
        file_bytes, image, oracle.mkfs, line, image)))
      local said = pipe:read("a"):gsub("^%-m autofsck=[^\n]*\n", "")
        :gsub("^%-m autofsck=[^\n]*\n", ""):gsub("^Filesystems formatted with [^\n]*\n", "")
      local accepts = pipe:close() == true
      local argv = shallow_copy(words)
      argv[#argv + 1] = "--compat=" .. compat
      argv[#argv + 1] = image
      local o, err = options.parse(argv)
      local g
      if o then
        g, err = compute(o, file_bytes)
      end
      if g then
        assert.is_true(accepts, label .. "\nmkfs.xfs refuses, brim accepts")
        assert.equal(said, text.geometry(g, image), label)
        compared.accepted = compared.accepted + 1
      elseif accepts then
        assert.is_true(fails_when_written(err), ("%s\nmkfs.xfs accepts, brim refuses: %s"):format(
          label, err.message))
      else
        compared.refused = compared.refused + 1
      end
      return accepts
    end

    -- Where a default changes (facts/xfs.md section 3).
    local BOUNDARIES = { 16 * MIB, 32 * MIB, 64 * MIB, 128 * MIB, 300 * MIB, GIB, 8 * GIB,
      128 * GIB, 512 * GIB, TIB, 4 * TIB, 32 * TIB, 50 * TIB, 64 * TIB, PIB, 64 * PIB, 8191 * PIB }

    it("says the same at each boundary and one block beside it", function()
      for _, boundary in ipairs(BOUNDARIES) do
        for _, block in ipairs({ 1024, 4096, 65536 }) do
          for _, delta in ipairs({ -1, 0, 1 }) do
            compare("boundary", boundary + delta * block, { "-b", "size=" .. block })
          end
        end
      end
    end)

    it("says the same of striped geometries at each boundary", function()
      for _, boundary in ipairs(BOUNDARIES) do
        for _, stripe in ipairs({ "su=64k,sw=4", "su=256k,sw=1", "su=12k,sw=3" }) do
          for _, delta in ipairs({ -1, 0, 1 }) do
            compare("stripe", boundary + delta * 4096, { "-d", stripe, "--unsupported" })
          end
        end
      end
    end)

    it("says the same of every size that a number could get wrong", function()
      for _, bytes in ipairs({ 0, 1, 4095, 4096, 1 << 31, 1 << 32, 1 << 53, (1 << 53) + 1,
        1 << 62, math.maxinteger - 4096, math.maxinteger - 4095, math.maxinteger - 511,
        math.maxinteger }) do
        compare("size", LARGEST_FILE_BYTES, { "-d", "size=" .. bytes })
      end
      for _, size in ipairs({ "8191p", "8192p", "8e", "7e", "16e", "8796093022207m",
        "2251799813685247b" }) do
        compare("size", LARGEST_FILE_BYTES, { "-d", "size=" .. size })
      end
      compare("Dave", LARGEST_FILE_BYTES, { "-d", "size=8191p", "-m", "rmapbt=1,reflink=0" })
      compare("largest", LARGEST_FILE_BYTES, { "-m", "rmapbt=1,reflink=0" })
      compare("largest", LARGEST_FILE_BYTES, { "-s", "size=4096" })
      compare("past the file", GIB, { "-d", "size=1073745920" })
    end)

    local function random_size()
      local kind = math.random(10)
      if kind <= 6 then
        local delta = pick({ 0, 1, -1, 2, -2, 16, -16, 4096, -4097, math.random(-99999, 99999) })
        return math.max(pick(BOUNDARIES) + delta * pick({ 512, 1024, 4096, 65536 }), 0)
      elseif kind <= 9 then
        local log2 = math.random(28, 62)
        return (1 << log2) + (math.random(0, (1 << log2) - 1) & ~511)
      end
      return 300 * MIB + math.random(0, 1 << 20) * 4096
    end

    -- Options likely to meet a rule: { one in so many, letter, values or a function }.
    local RANDOM = {
      { 3, "b", function()
        return "size=" .. pick({ 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536 })
      end },
      { 4, "s", function() return "size=" .. (512 << math.random(0, 6)) end },
      { 9, "i", function() return "size=" .. (256 << math.random(0, 4)) end },
      { 9, "i", function() return "perblock=" .. (2 << math.random(0, 7)) end },
      { 8, "d", function()
        return "agcount=" .. pick({ 1, 2, 3, 5, 8, 16, 31, 32, 33, 64, 1000, math.random(5000),
          4294967294 })
      end },
      { 8, "d", function()
        return "agsize=" .. pick({ 16 * MIB, 17 * MIB, 64 * MIB, 100 * MIB, GIB, TIB - 4096, TIB })
          + pick({ 0, 0, 4096, -4096, 4096 * math.random(0, 5000) })
      end },
      { 7, "d", function()
        return ("su=%s,sw=%d"):format(pick({ "4k", "16k", "64k", "256k", "512k", "32m", "12k",
          "96k", "7b", "8s" }), pick({ 1, 2, 3, 4, 5, 8, 16 }))
      end },
      { 7, "d", function()
        local unit = pick({ 8, 16, 64, 512, 2048, 24, 120, 8 * math.random(5000) })
        return ("sunit=%d,swidth=%d"):format(unit, unit * pick({ 1, 1, 2, 3, 7 }))
      end },
      { 20, "d", { "noalign", "noalign=0", "sunit=0,swidth=0", "su=0,sw=4", "sunit=16,swidth=8" } },
      { 7, "l", function()
        return "size=" .. pick({ "2m", "4m", "10m", "63m", "64m", "100m", "2037m", "2038m",
          "16384b", "16385b", "16400b", math.random(2 * MIB, 2 * GIB) & ~511 })
      end },
      { 7, "l", { "su=4k", "su=32k", "su=64k", "su=256k", "su=12k", "su=96k", "su=257k", "su=512",
        "sunit=8", "sunit=512", "sunit=1", "sunit=24" } },
      { 8, "l", function() return "agnum=" .. pick({ 0, 0, 1, 2, 3, math.random(0, 40) }) end },
      { 4, "m", { "rmapbt=0", "rmapbt=1", "rmapbt=1,reflink=0", "reflink=0" } },
      { 6, "m", { "finobt=0", "finobt=1", "finobt=0,inobtcount=1", "inobtcount=0", "bigtime=0" } },
      { 5, "i", { "sparse=0", "nrext64=1", "maxpct=0", "maxpct=99", "maxpct=101", "align=1" } },
      { 6, "n", { "size=4k", "size=8k", "size=64k", "size=2k", "size=1b", "size=4b" } },
      { 3, "-unsupported" },
    }
    -- And what releases after 6.1 have more of.
    local RANDOM_NEW = {
      { 6, "d", function()
        return "concurrency=" .. pick({ 0, 1, 2, 3, 4, 5, 8, 16, 31, 33, 64, 1000, "nr_cpus",
          math.random(5000), 2147483648, "8k" })
      end },
      { 6, "l", function()
        return "concurrency=" .. pick({ 0, 1, 2, 7, 16, 64, "nr_cpus", math.random(3000) })
      end },
      { 3, "n", { "parent=0", "parent=1", "parent", "parent=2" } },
      { 4, "i", { "exchange=0", "exchange=1", "exchange", "nrext64=0" } },
      { 5, "m", { "autofsck=0", "autofsck", "autofsck=check", "autofsck=none", "autofsck=2",
        "autofsck=repair", "autofsck=all", "metadir=0", "uquota=0" } },
    }

    local function random_words()
      local words = {}
      local rules = table.move(RANDOM, 1, #RANDOM, 1, {})
      if compat ~= "6.1" then
        table.move(RANDOM_NEW, 1, #RANDOM_NEW, #rules + 1, rules)
      end
      for _, rule in ipairs(rules) do
        if math.random(rule[1]) == 1 then
          words[#words + 1] = "-" .. rule[2]
          local values = rule[3]
          if values then
            words[#words + 1] = type(values) == "table" and pick(values) or values()
          end
        end
      end
      return words
    end

    local cases = compat == "6.1" and 1000 or 400
    it(("says the same of %d random option sets, or refuses the same"):format(cases), function()
      math.randomseed(SEED)
      for case = 1, cases do
        local words, file_bytes = random_words(), random_size()
        if math.random(3) == 1 then
          table.insert(words, "-d")
          table.insert(words, "size=" .. file_bytes)
          file_bytes = LARGEST_FILE_BYTES
        end
        compare(("seed %d case %d"):format(SEED, case), file_bytes, words)
      end
      assert.is_true(compared.accepted >= 300, ("only %d accepted"):format(compared.accepted))
      assert.is_true(compared.refused >= 300, ("only %d refused"):format(compared.refused))
    end)
  end)
end
