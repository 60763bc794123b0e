-- The mkfs.xfs command line as brim reads it: what it becomes, what is refused and in which words,
-- and whether mkfs.xfs of each release gives the same verdict on random lines.
local helper = require "spec.helper"
local geometry = require "brim.xfs.geometry"
local options = require "brim.xfs.options"
local oracles = require "spec.oracles"
local text = require "brim.xfs.text"

local SEED <const> = 20011019

local function words_of(line)
  local words = {}
  for word in line:gmatch("%S+") do
    words[#words + 1] = word == "''" and "" or word
  end
  return words
end

local function parse(line)
  return options.parse(words_of(line))
end

describe("brim.xfs.options", function()
  describe("reads", function()
    local UUID <const> = "01234567-89ab-cdef-0123-456789abcdef"
    for _, row in ipairs({
      { "x", {} },
      { "-d size=8191p x", { size_bytes = 8191 << 50 } },
      { "-dsize=4G x", { size_bytes = 4 << 30 } },
      { "-d size=0x7fffffffffffffff x", { size_bytes = math.maxinteger } },
      { "-d size=100000b -b size=1k x", { size_bytes = 102400000, block_bytes = 1024 } },
      { "-d size=100000b x", { size_bytes = 409600000 } },
      { "-d size=100000s -s size=4096 x", { size_bytes = 409600000, sector_bytes = 4096 } },
      { "-d size=100000s x", { size_bytes = 51200000, suffix_sector_bytes = 512 } },
      { "-d agcount=32 x", { ag_count = 32 } },
      { "-d agsize=1t x", { ag_bytes = 1 << 40 } },
      { "-d su=64k,sw=4 x", { stripe_unit_bytes = 65536, stripe_width_bytes = 262144 } },
      { "-d sunit=128,swidth=512 x", { stripe_unit_bytes = 65536, stripe_width_bytes = 262144 } },
      { "-d su=0 x", { stripe_unit_bytes = 0, stripe_width_bytes = 0 } },
      { "-d sw=0 x", {} },
      { "-d noalign x", { no_align = true } },
      { "-d sectsize=4k x", { sector_bytes = 4096 } },
      { "-s size=4k -l sectsize=4k x", { sector_bytes = 4096, log_sector_bytes = 4096 } },
      { "-l sectsize=512 -s size=4k x", { sector_bytes = 4096 } },
      { "-i size=1024,maxpct=5,sparse=0,nrext64 x", { inode_bytes = 1024, max_inode_percent = 5,
        sparse = false, nrext64 = true } },
      { "-i perblock=4,align=1 x", { inodes_per_block = 4, inode_align = true } },
      { "-l size=64m,su=32k,agnum=2,internal,version=2,lazy-count=1 x", { log_bytes = 64 << 20,
        log_stripe_unit_bytes = 32768, log_ag = 2, lazy_count = true } },
      { "-l size=16384b,sunit=64 x", { log_bytes = 64 << 20, log_stripe_unit_bytes = 32768 } },
      { "-m crc=1,finobt=0,rmapbt=1,reflink=0,bigtime,inobtcount= x", { finobt = false,
        rmapbt = true, reflink = false, bigtime = true, inobtcount = true } },
      { "-m uuid=" .. UUID:upper() .. " x", { uuid = UUID } },
      { "-n size=8k,version=2,ftype=1 x", { dir_block_bytes = 8192 } },
      { "-L twelve-bytes x", { label = "twelve-bytes" } },
      { "-L '' x", { label = "" } },
      { "-i attr=2,projid32bit=1 -d rtinherit=0,cowextsize=0 x", {} },
      { "--compat 7.2 -n parent=0 -i exchange,nrext64=0 x", { compat = "7.2", parent = false,
        exchange = true, nrext64 = false } },
      { "-m autofsck x --compat=6.13", { compat = "6.13", autofsck = "repair" } },
      { "--compat 6.13 -m autofsck=0,metadir=0,uquota=0 x", { compat = "6.13",
        autofsck = "none" } },
      { "--compat 7.2 -d concurrency=9 -l concurrency=nr_cpus x", { compat = "7.2",
        data_concurrency = 9, log_concurrency = 1 } },
      { "-fKNq x", { force = true, no_discard = true, dry_run = true, quiet = true } },
      { "-C --unsupp x", { force = true, unsupported = true, names_unsupported = true } },
      { "x -d size=1g, -f", { size_bytes = 1 << 30, force = true } },
      { "-d file,size=1g,name=x", { file = true, size_bytes = 1 << 30 } },
    }) do
      it(row[1], function()
        local o, err = parse(row[1])
        assert.is_nil(err and err.message)
        row[2].target = "x"
        assert.same(row[2], o)
        for name, value in pairs(o) do
          assert.is_not.equal("float", math.type(value), name)
        end
      end)
    end

    it("-V and nothing after it", function()
      assert.same({ force = true, print_version = true }, parse("-f -V -d nonsense"))
      assert.same({ print_version = true }, parse("-V"))
    end)

    it("a target that looks like an option after --", function()
      assert.same({ target = "-x" }, parse("-- -x"))
    end)
  end)

  describe("refuses", function()
    for _, row in ipairs({
      -- line, option, part of the message
      { "-d size=8192p x", "size_bytes", "one past the largest offset, 2%^63%-1; 8191p is the" },
      { "-d size=8e x", "size_bytes", "8 EiB, 2%^63, one past" },
      { "-d size=8388608t x", "size_bytes", "one past" },
      { "-d size=16777217t x", "size_bytes", "past the largest offset" },
      { "-d size=9223372036854775808 x", "size_bytes", "past the largest offset" },
      { "-d size=0x8000000000000000 x", "size_bytes", "past the largest offset" },
      { "-d size=18014398509481984s x", "size_bytes", "past the largest offset" },
      { "-d size=1.5g x", "size_bytes", "fractions" },
      { "-d size=1e9 x", "size_bytes", "exponents" },
      { "-d size=-1g x", "size_bytes", "signs" },
      { "-d size=+1g x", "size_bytes", "signs" },
      { "-d size=4gb x", "size_bytes", "write 4g;" },
      { "-d size=4GiB x", "size_bytes", "write 4g;" },
      { "-d size=1x x", "size_bytes", "unknown suffix \"x\"" },
      { "-d size=g x", "size_bytes", "not a number" },
      { "-d size=010g x", "size_bytes", "octal" },
      { "-d size x", "size_bytes", "needs a value" },
      { "-d size= x", "size_bytes", "needs a value" },
      { "-d size=1m x", "size_bytes", "the least is 16777216 %(16 MiB%)" },
      { "-d sise=1g x", "-d sise", "did you mean 'size'?" },
      { "-m rmap=1 x", "-m rmap", "did you mean 'rmapbt'?" },
      { "-l foo x", "-l foo", "%-l knows agnum, " },
      { "-d size=1g,,file x", "-d", "stray commas" },
      { "-d size=1g,size=1g x", "size_bytes", "given twice" },
      { "-d size=1g -d size=1g x", "size_bytes", "given twice" },
      { "-m uuid=x x", "uuid", "must look like" },
      { "-d agcount=4,agsize=1g x", "ag_count", "cannot be combined with %-d agsize" },
      { "-i size=512,perblock=8 x", "inodes_per_block", "cannot be combined with %-i size" },
      { "-d su=64k,sw=1,noalign=0 x", "no_align", "cannot be combined" },
      { "-d agcount=0 x", "ag_count", "the least is 1" },
      { "-d agcount=4294967295 x", "ag_count", "the most is 4294967294" },
      { "-d agcount=4k x", "ag_count", "suffixes are not accepted" },
      { "-d su=64k x", "stripe_unit_bytes", "give both" },
      { "-d swidth=64 x", "stripe_width_bytes", "give both" },
      { "-d su=2g,sw=1 x", "stripe_unit_bytes", "too large" },
      { "-d su=64k,sw=4294967295 x", "stripe_width_bytes", "too large" },
      { "-b size=512 x", "block_bytes", "the least is 1024" },
      { "-b size=1b x", "block_bytes", "being defined here" },
      { "-s size=1000 x", "sector_bytes", "power of two" },
      { "-i size=256 x", "inode_bytes", "the least is 512" },
      { "-i size=2k x", "inode_bytes", "suffixes are not accepted" },
      { "-i sparse=2 x", "sparse", "0 or 1" },
      { "-l size=1m x", "log_bytes", "the least is 2097152" },
      { "-l size=2039m x", "log_bytes", "the most is 2136997888" },
      { "-l sunit=513 x", "log_stripe_unit_bytes", "1 to 512" },
      { "-l internal=0 x", "-l internal", "internal logs only" },
      { "-l logdev=/dev/x x", "-l logdev", "internal logs only" },
      { "-m crc=0 x", "-m crc", "V5 %(crc=1%)" },
      { "-n version=ci x", "-n version", "yet" },
      { "-r extsize=1m x", "-r", "yet" },
      { "-c options=x x", "-c", "yet" },
      { "-p x x", "-p", "yet" },
      { "-L thirteen-bytes x", "label", "14 bytes long, the most is 12" },
      { "-x x", "-x", "unknown option" },
      { "--compat 5.0 x", "compat", "must be 6.1, 6.13 or 7.2" },
      { "x --compat", "--compat", "needs an argument: 6.1, 6.13 or 7.2" },
      { "--comp 7.2 x", "--comp", "%-%-unsupported and %-%-compat" },
      { "-n parent=1 x", "parent", "mkfs.xfs 6.1 does not have it; %-%-compat 6.13 does" },
      { "-m metadir=0 x", "-m metadir", "%-%-compat 6.13 does" },
      { "-d concurrency=4 x", "data_concurrency", "%-%-compat 6.13 does" },
      { "--compat 6.13 -i max_atomic_write=4k x", "-i max_atomic_write", "%-%-compat 7.2 does" },
      { "--compat 7.2 -i max_atomic_write=4k x", "-i max_atomic_write", "yet" },
      { "--compat 7.2 -m metadir=1 x", "-m metadir", "yet" },
      { "--compat 7.2 -m uquota x", "-m uquota", "yet" },
      { "--compat 7.2 -r zoned=1 x", "-r", "yet" },
      { "--compat 7.2 -m autofsck=2 x", "autofsck", "must be none, check, optimize or repair" },
      { "--compat 7.2 -d concurrency=2,agsize=1g x", "ag_bytes", "combined with %-d concurrency" },
      { "--compat 7.2 -l size=64m,concurrency=2 x", "log_bytes", "with %-l concurrency" },
      { "--compat 7.2 -l concurrency=2k x", "log_concurrency", "suffixes are not accepted" },
      { "-d", "-d", "needs an argument" },
      { "--help x", "--help", "unknown option" },
      { "x y", "target", "one too many" },
      { "-d name=x x", "target", "named twice" },
      { "-f", "target", "name the device or file" },
      { "''", "target", "empty" },
      { "-d file x", "file", "needs %-d size" },
    }) do
      it(row[1], function()
        local o, err = parse(row[1])
        assert.is_nil(o)
        assert.matches(row[3], err.message)
        assert.equal(row[2], err.option)
        assert.is_nil(err.message:find("\n"))
      end)
    end

    it("blanks in a number", function()
      for _, value in ipairs({ " 4g", "4g ", "4 g" }) do
        local o, err = options.parse({ "-d", "size=" .. value, "x" })
        assert.is_nil(o)
        assert.matches("blanks", err.message)
      end
    end)

    it("any bytes at all, without raising", function()
      math.randomseed(SEED)
      local alphabet = "-bdilmnsLfCKNqV,= sizeagcount0123456789kmgtpe\0\255\n"
      for case = 1, 3000 do
        local words = {}
        for i = 1, math.random(0, 4) do
          local bytes = {}
          for j = 1, math.random(0, 8) do
            local at = math.random(#alphabet)
            bytes[j] = alphabet:sub(at, at)
          end
          words[i] = table.concat(bytes)
        end
        local o, err = options.parse(words)
        assert.is_true(o ~= nil or type(err.message) == "string", ("seed %d case %d: %q"):format(
          SEED, case, table.concat(words, " ")))
      end
    end)
  end)

  it("allows the unsupported to the reference's test suite only", function()
    local getenv = os.getenv
    local set = {}
    os.getenv = function(name) -- luacheck: ignore 122
      return set[name]
    end
    set.TEST_DIR, set.TEST_DEV = "a", "b"
    local without = parse("x")
    set.QA_CHECK_FS = "c"
    local with = parse("x")
    os.getenv = getenv -- luacheck: ignore 122
    assert.is_nil(without.unsupported)
    assert.is_true(with.unsupported)
  end)

  it("has a schema that holds together", function()
    for name, entry in pairs(options.SCHEMA) do
      assert.is_string(entry.doc, name)
      assert.is_string(entry.cli, name)
      assert.is_true(({ bytes = true, int = true, bool = true, string = true })[entry.type],
        name)
      if entry.type == "bytes" or entry.type == "int" then
        assert.is_true(entry.min < entry.max, name)
        assert.is_true(entry.default == nil or entry.default >= entry.min, name)
      end
    end
  end)

  for _, compat in ipairs { "6.1", "6.13", "7.2" } do
    describe("against mkfs.xfs " .. compat, function()
      local oracle, missing = oracles.of("xfs", compat)
      if not oracle then
        pending(missing)
        return
      end

      local FILE_BYTES <const> = 64 << 30
      local CPUS <const> = math.tointeger(tonumber(helper.must "getconf _NPROCESSORS_ONLN"))
      local image

      setup(function()
        image = helper.path("image")
        helper.must("truncate -s %d %s", FILE_BYTES, image)
      end)

      local WORDS = {
        { "b", "size" }, { "d", "agcount" }, { "d", "agsize" }, { "d", "size" }, { "d", "sunit" },
        { "d", "swidth" }, { "d", "su" }, { "d", "sw" }, { "d", "sectsize" }, { "d", "noalign" },
        { "i", "align" }, { "i", "maxpct" }, { "i", "perblock" }, { "i", "size" }, { "i", "attr" },
        { "i", "projid32bit" }, { "i", "sparse" }, { "i", "nrext64" }, { "l", "agnum" },
        { "l", "internal" }, { "l", "size" }, { "l", "version" }, { "l", "sunit" }, { "l", "su" },
        { "l", "sectsize" }, { "l", "lazy-count" }, { "m", "finobt" }, { "m", "uuid" },
        { "m", "rmapbt" }, { "m", "reflink" }, { "m", "inobtcount" }, { "m", "bigtime" },
        { "n", "size" }, { "n", "version" }, { "n", "ftype" }, { "s", "size" }, { "s", "sectsize" },
        { "d", "foo" }, { "m", "" }, { "l", "siz" }, { "d", "concurrency" }, { "l", "concurrency" },
        { "i", "exchange" }, { "n", "parent" }, { "m", "autofsck" }, { "m", "metadir" },
      }
      local VALUES = { "", "0", "1", "2", "3", "4", "8", "16", "64", "100", "512", "1024", "2048",
        "4096", "8192", "65536", "1k", "4k", "64k", "128k", "1m", "64m", "300m", "1g", "2g", "1t",
        "8p", "1e", "8s", "4b", "0x1000", "0x10", "check", "none", "nr_cpus",
        "abc", "1.5", "-1", "x", "4kb", "4K", "2M", "1 ",
        "01234567-89ab-cdef-0123-456789abcdef" }
      local FLAGS = { "-f", "-K", "-q", "-fK", "-C", "--unsupported", "--uns", "-z", "-Lfoo", "-N" }

      local function pick(list)
        return list[math.random(#list)]
      end

      local function random_words()
        local words = {}
        for _ = 1, math.random(3) do
          local option = pick(WORDS)
          local item = math.random(8) == 1 and option[2] or option[2] .. "=" .. pick(VALUES)
          if math.random(10) == 1 then
            item = item .. pick({ ",", ",,", ",foo", ",size=4k" })
          end
          if math.random(12) == 1 then
            words[#words + 1] = "-" .. option[1] .. item
          else
            words[#words + 1] = "-" .. option[1]
            words[#words + 1] = item
          end
        end
        if math.random(6) == 1 then
          words[#words + 1] = pick(FLAGS)
        end
        table.insert(words, math.random(8) == 1 and 1 or #words + 1, image)
        return words
      end

      -- What brim refuses on purpose where the reference takes it.
      local STRICTER = { "octal", "given twice", "log of a V5 filesystem is of version 2",
        "makes no metadata directory", "combined with -d concurrency",
        "combined with -l concurrency" }

      local function is_stricter(err)
        for _, part in ipairs(STRICTER) do
          if err.message:find(part, 1, true) then
            return true
          end
        end
        return false
      end

      local cases = compat == "6.1" and 1200 or 500
      it(("gives the same verdict and the same text on %d random lines"):format(cases), function()
        math.randomseed(SEED)
        local accepted = 0
        for case = 1, cases do
          local words, quoted = random_words(), {}
          for i, word in ipairs(words) do
            quoted[i] = helper.quote(word)
          end
          local line = table.concat(quoted, " ")
          local label = ("seed %d case %d: mkfs.xfs -N %s"):format(SEED, case, line)
          local pipe = assert(io.popen(oracle.mkfs .. " -N " .. line .. " 2>/dev/null"))
          local said = pipe:read("a"):gsub("^%-m autofsck=[^\n]*\n", "")
            :gsub("^%-m autofsck=[^\n]*\n", ""):gsub("^Filesystems formatted with [^\n]*\n", "")
          local accepts = pipe:close() == true
          table.insert(words, 1, "--compat=" .. compat)
          local o, err = options.parse(words)
          local g
          if o then
            g, err = geometry.compute(o, { size_bytes = FILE_BYTES, is_file = true,
              cpus = CPUS })
          end
          if g then
            assert.is_true(accepts, label .. "\nmkfs.xfs refuses, brim accepts")
            assert.equal(said, text.geometry(g, image), label)
            accepted = accepted + 1
          else
            assert.is_true(not accepts or is_stricter(err), ("%s\nmkfs.xfs accepts, brim: %s")
              :format(label, err.message))
          end
        end
        assert.is_true(accepted >= cases // 25, ("only %d accepted"):format(accepted))
      end)
    end)
  end
end)
