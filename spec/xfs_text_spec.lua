-- What `brim mkfs.xfs -N` prints against mkfs.xfs, through both executables, up to the largest
-- file; that -N writes nothing; and how sizes that cannot be are refused.
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local oracles = require "spec.oracles"

local LARGEST_FILE_BYTES <const> = math.maxinteger - 4095
local GIB <const> = 1 << 30

describe("brim mkfs.xfs -N", function()
  local workspace, target

  setup(function()
    workspace = configs.workspace "text"
  end)

  teardown(function()
    workspace:close()
  end)

  local function make_target(size_bytes)
    target = workspace:path "target"
    helper.must("truncate -s %d %s", size_bytes, target)
    return target
  end

  after_each(function()
    os.remove(target)
  end)

  -- What a write would change: size, blocks, time of the last change in nanoseconds.
  local function state(path)
    return helper.must("stat -c '%%s %%b %%y %%z' %s", path)
  end

  local function brim(options, path)
    local words = { "mkfs.xfs" }
    for word in options:gmatch "%S+" do
      words[#words + 1] = word
    end
    words[#words + 1] = path
    return helper.brim(table.unpack(words))
  end

  for _, compat in ipairs { "6.1", "6.13", "7.2" } do
    describe(("prints what mkfs.xfs %s prints for"):format(compat), function()
      local oracle, missing = oracles.of("xfs", compat)
      if not oracle then
        pending(missing)
        return
      end

      for _, row in ipairs {
        { LARGEST_FILE_BYTES, "-d size=8191p", "agcount=8387585, agsize=268435455 blks" },
        { LARGEST_FILE_BYTES, "", "agcount=8388609, agsize=268435455 blks" },
        { LARGEST_FILE_BYTES, "-d size=8191p -m rmapbt=1,reflink=0", "rmapbt=1\n" },
        { LARGEST_FILE_BYTES, "-m rmapbt=1,reflink=0", "reflink=0 " },
        { LARGEST_FILE_BYTES, "-b size=64k -s size=4k", "bsize=65536" },
        { LARGEST_FILE_BYTES, "-b size=1k -d su=64k,sw=4", "sunit=64 " },
        { LARGEST_FILE_BYTES, "-d size=8191p,agcount=16777216",
          "agcount=16777216, agsize=134201344 blks" },
        { 64 << 40, "-d agsize=512m -m rmapbt=1,reflink=0", "agcount=131072" },
        { 16 << 50, "-d size=16383t", "agcount=16384, agsize=268435455 blks" },
        { 300 << 20, "-L small -i size=2048,nrext64=1 -n size=8k", "nrext64=1" },
      } do
        local size_bytes, words, part = table.unpack(row)
        it(("a file of %d bytes and %s"):format(size_bytes, words), function()
          local path = make_target(size_bytes)
          local before = state(path)
          local said, status = helper.sh("%s -N %s %s 2>/dev/null", oracle.mkfs, words, path)
          assert.equal(0, status)
          local out, err, ours = brim(("--compat %s -N %s"):format(compat, words), path)
          assert.equal(said, out)
          assert.equal("", err)
          assert.equal(0, ours)
          assert.is_truthy(out:find(part, 1, true), out)
          assert.equal(before, state(path))
          assert.equal("", helper.must("ls %s.* 2>/dev/null || true", path))
        end)
      end

      it("a file that is written then: the same text, with and without -q", function()
        local path = make_target(GIB)
        local said = helper.must("%s -f -L x %s", oracle.mkfs, path)
        helper.must("truncate -s 0 %s && truncate -s %d %s", path, GIB, path)
        local out, _, status = brim("-f -L x --compat=" .. compat, path)
        assert.equal(0, status)
        assert.equal(said, out)
        out, _, status = brim("-f -q -L x --compat " .. compat, path)
        assert.equal(0, status)
        assert.equal("", out)
      end)

      it("its version", function()
        local said = helper.must("%s -V", oracle.mkfs):gsub("\n$", "")
        local out, _, status = brim("--compat " .. compat, "-V")
        assert.equal(0, status)
        assert.equal(said, out:match "^[^(]*%d")
      end)
    end)
  end

  it("writes nothing over another filesystem either, and needs no -f for that", function()
    local path = make_target(GIB)
    local out, _, status = brim("-q", path)
    assert.equal("", out)
    assert.equal(0, status)
    local before, head = state(path), helper.must("head -c 1M %s | sha256sum", path)
    out, _, status = brim("-N -b size=1k", path)
    assert.equal(0, status)
    assert.matches("bsize=1024", out)
    assert.equal(before, state(path))
    assert.equal(head, helper.must("head -c 1M %s | sha256sum", path))
  end)

  -- Size of the target, options, what the one line must hold. The reference refuses them too.
  local REFUSED = {
    { LARGEST_FILE_BYTES, "-d size=8192p", { "-d size=8192p", "2^63" } },
    { LARGEST_FILE_BYTES, "-d size=8e", { "-d size=8e", "8191p" } },
    { LARGEST_FILE_BYTES, "-d size=9223372036854775808", { "size=9223372036854775808", "2^63" } },
    { LARGEST_FILE_BYTES, "-d size=99999999999999999999", { "-d size=99999999999999999999" } },
    { LARGEST_FILE_BYTES, "-d size=9223372036854771713", { "multiple of 512" } },
    { LARGEST_FILE_BYTES, "-d size=1.5t", { "-d size=1.5t" } },
    { LARGEST_FILE_BYTES, "-d size=1e15", { "-d size=1e15" } },
    { LARGEST_FILE_BYTES, "-d size=-1g", { "-d size=-1g" } },
    { LARGEST_FILE_BYTES, "-d size=1PiB", { "-d size=1PiB" } },
    { LARGEST_FILE_BYTES, "-d size=", { "-d size", "needs a value" } },
    { LARGEST_FILE_BYTES, "-d size=0", { "-d size=0", "16 MiB" } },
    { LARGEST_FILE_BYTES, "-d agsize=1025g", { "-d agsize=1025g", "1 TiB" } },
    { LARGEST_FILE_BYTES, "-d agsize=1t", { "-d agsize", "268435455" } },
    { LARGEST_FILE_BYTES, "-d agcount=4294967295", { "-d agcount=4294967295", "4294967294" } },
    { LARGEST_FILE_BYTES, "-l size=2039m", { "-l size=2039m" } },
    { GIB, "-d size=1073745920", { "-d size=1073745920", "1073741824" } },
    { GIB, "-d size=1025m", { "-d size", "larger than the target" } },
    { 300 * (1 << 20) - 512, "", { "-d size: ", "300 MiB", "--unsupported" } },
    { 15 << 20, "--unsupported", { "-d size=15728640", "16777216" } },
    { 0, "", { "-d size=0" } },
  }
  for _, row in ipairs(REFUSED) do
    local size_bytes, words, parts = table.unpack(row)
    it(("refuses a target of %d bytes with '%s'"):format(size_bytes, words), function()
      local path = make_target(size_bytes)
      local before = state(path)
      if helper.has "mkfs.xfs" then
        local _, status = helper.sh("mkfs.xfs -f %s %s", words, path)
        assert.is_not.equal(0, status)
        assert.equal(before, state(path))
      end
      for _, mode in ipairs { "-N ", "-f " } do
        local out, err, status = brim(mode .. words, path)
        assert.equal(2, status, err)
        assert.equal("", out)
        assert.is_truthy(err:find "^brim[^\n]+\n$", err)
        for _, part in ipairs(parts) do
          assert.is_truthy(err:find(part, 1, true), ("no '%s' in: %s"):format(part, err))
        end
        assert.equal(before, state(path))
      end
    end)
  end

  it("refuses a target that is not there, and makes none", function()
    local path = workspace:path "missing"
    for _, words in ipairs { "-N", "-f", "-N -d size=1g" } do
      local out, err, status = brim(words, path)
      assert.equal(2, status)
      assert.equal("", out)
      assert.is_truthy(err:find(path .. " does not exist", 1, true), err)
    end
    assert.is_nil(io.open(path))
  end)
end)
