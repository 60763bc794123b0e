-- Bad input: one line on stderr that names the option, the value and what would be right; status 2;
-- the target is as it was, or is not made. The command lines of mkfs.xfs and xfs-8eb, then the Lua
-- API, which raises at the caller's line.
local brim = require "brim"
local devices = require "spec.devices"
local helper = require "spec.helper"

-- What tells whether a target was touched: all of its times, its size, and both of its ends.
local function state(path)
  local out = helper.sh("stat -c '%%F %%s %%b %%y %%z' %s && { head -c 1M %s; tail -c 1M %s; } | "
    .. "sha256sum", path, path, path)
  return out
end

-- Runs brim, which must refuse: one line that has all of the words in it, plainly, status 2.
-- `watched` are paths that must stay as they are, or missing.
local function refuses(words, wanted, watched)
  local before = {}
  for i, path in ipairs(watched or {}) do
    before[i] = state(path)
  end
  local out, err, status = helper.brim(table.unpack(words))
  local line = table.concat(words, " ")
  assert.equal("", out, line)
  assert.matches("^brim[^\n]*: [^\n]+\n$", err, line)
  for _, part in ipairs(wanted) do
    assert.is_truthy(err:find(part, 1, true), ("%s\nsays: %swithout: %s"):format(line, err, part))
  end
  assert.is_nil(err:find "table: 0x", err)
  assert.equal(2, status, line .. "\n" .. err)
  for i, path in ipairs(watched or {}) do
    assert.equal(before[i], state(path), line)
  end
end

-- The words of a mkfs.xfs command line, -q and the target included.
local function mkfs_words(options, target)
  local words = { "mkfs.xfs", "-q" }
  for word in options:gmatch "%S+" do
    words[#words + 1] = word
  end
  words[#words + 1] = target
  return words
end

local function eb_words(options)
  local words = { "--yes", "--quiet", "xfs-8eb" }
  for word in options:gmatch "%S+" do
    words[#words + 1] = word
  end
  return words
end

describe("mkfs.xfs refuses", function()
  local target = devices.file "400m"

  for _, case in ipairs {
    -- Unknown ones, with the nearest that is known.
    { "-d sise=300m", "-d sise", "did you mean 'size'" },
    { "-m refink=1", "-m refink", "did you mean 'reflink'" },
    { "-l sunitt=8", "-l sunitt", "did you mean 'sunit'" },
    { "--unsuported", "--unsuported", "--unsupported" },
    { "-X", "-X", "unknown option" },
    { "-d zzzzzz=1", "-d zzzzzz", "agcount" },
    -- Those that contradict each other or what brim makes.
    { "-d agcount=4,agsize=64m", "-d agcount", "-d agsize" },
    { "-m finobt=0,inobtcount=1", "-m inobtcount=1", "needs finobt" },
    { "-m crc=0", "-m crc=0", "accepted: 1" },
    { "-m crc=0,reflink=1", "-m crc=0" },
    { "-d sunit=8", "-d sunit=8", "swidth" },
    { "-d su=64k,sw=2,sunit=128", "cannot be combined with" },
    { "-d noalign,su=64k,sw=2", "-d noalign", "-d s" },
    { "-b size=4k -b size=1k", "-b size=1k", "given twice" },
    { "-i size=512,perblock=4", "-i perblock", "-i size" },
    { "-i size=1024 -b size=1024", "-i size=1024" },
    { "-m bigtime=2", "-m bigtime=2", "0 or 1" },
    { "-m uuid=x", "-m uuid=x", "01234567-89ab-cdef-0123-456789abcdef" },
    { "-L thirteenbytes", "thirteenbytes", "12" },
    -- Too small, too large.
    { "-d size=15m", "-d size=15m", "16 MiB" },
    { "-d size=200m", "-d size", "300 MiB" },
    { "-d size=0", "-d size=0", "16 MiB" },
    { "-d agsize=1m", "-d agsize=1m", "16 MiB" },
    { "-d agsize=2t", "-d agsize=2t", "1 TiB" },
    { "-d agcount=0", "-d agcount=0", "the least is 1" },
    { "-d agcount=1000", "-d agcount=1000", "16 MiB" },
    { "-l size=1m", "-l size=1m", "2 MiB" },
    { "-l size=3g", "-l size=3g", "2038" },
    { "-b size=512", "-b size=512", "1 KiB" },
    { "-b size=128k", "-b size=128k", "64 KiB" },
    { "-i size=4096", "-i size=4096", "2 KiB" },
    { "-i maxpct=101", "-i maxpct=101", "100" },
    { "-d size=500m", "-d size=524288000", "419430400" },
    -- Not aligned.
    { "-d size=314572801", "-d size=314572801", "multiple of 512" },
    { "-b size=3000", "-b size=3000", "power of two" },
    { "-i size=1000", "-i size=1000", "power of two" },
    { "-s size=1000", "-s size=1000", "power of two" },
    { "-d agsize=104857601", "-d agsize=104857601", "multiple of" },
    { "-d su=1000,sw=2", "stripe unit", "1000" },
    -- Past what an offset can be, and what is no whole number.
    { "-d size=8e", "-d size=8e", "8191p" },
    { "-d size=9223372036854775808", "9223372036854775808", "2^63-1" },
    { "-d size=99999999999999999999999", "99999999999999999999999", "2^63-1" },
    { "-d size=16777216t", "16777216t", "2^63-1" },
    { "-d size=1.5g", "-d size=1.5g", "whole number" },
    { "-d size=1e9", "-d size=1e9", "whole number" },
    { "-d size=-1", "-d size=-1", "digits only" },
    { "-d size=0400m", "0400m", "octal" },
    { "-d size=1PB", "1PB", "1p" },
    { "-d size=", "-d size", "needs a value" },
    { "-d agcount=2.0", "-d agcount=2.0", "whole number" },
    { "-d agcount=4k", "-d agcount=4k", "plain number" },
  } do
    it(case[1], function()
      refuses(mkfs_words(case[1], target), { table.unpack(case, 2) }, { target })
    end)
  end

  it("no target, or two", function()
    refuses({ "mkfs.xfs" }, { "target", "name the device or file" })
    refuses({ "mkfs.xfs", target, "other.img" }, { "other.img", "one too many" }, { target })
    refuses({ "mkfs.xfs", "" }, { "target", "empty" })
    refuses({ "mkfs.xfs", "-d" }, { "-d", "needs an argument" })
  end)

  it("options of brim that are wrong, before anything else", function()
    refuses({ "--engine=urin", "mkfs.xfs", target }, { "--engine", "'urin'", "'uring'" },
      { target })
    refuses({ "--queue-depth=5000", "mkfs.xfs", target }, { "--queue-depth", "5000", "4096" },
      { target })
    refuses({ "--max-io-bytes=1000", "mkfs.xfs", target }, { "--max-io-bytes", "4 KiB" },
      { target })
    refuses({ "--engine=fault:at=x", "mkfs.xfs", "-q", target }, { "'x'", "at" }, { target })
  end)

  it("what is not there or no target", function()
    local dir = helper.dir()
    local missing = dir .. "/missing.img"
    refuses({ "mkfs.xfs", missing }, { missing, "does not exist", "-d file,size=" }, { missing })
    refuses({ "mkfs.xfs", "-d", "file", missing }, { "-d file", "-d size" }, { missing })
    refuses({ "mkfs.xfs", "-q", "-d", "file,size=300m", dir .. "/none/x.img" },
      { dir .. "/none/x.img", "directory does not exist" }, { dir .. "/none" })
    refuses({ "mkfs.xfs", "-f", dir }, { dir, "is a directory", "a regular file or a block" })
    refuses({ "mkfs.xfs", "-f", "/dev/null" }, { "/dev/null", "character device" })
    refuses({ "mkfs.xfs", "-f", target .. "/x" }, { target .. "/x", "Not a directory" }, { target })
    local fifo = helper.path "fifo"
    helper.must("mkfifo %s", fifo)
    refuses({ "mkfs.xfs", "-f", fifo }, { fifo, "pipe" })
  end)

  it("a length that the host has no files of", function()
    local out = helper.must("stat -f -c %%T %s", helper.dir())
    if not out:find "ext" then
      pending("the scratch directory is on " .. out)
    end
    local path = helper.path "long.img"
    refuses({ "mkfs.xfs", "-q", "-d", "file,size=8191p", path }, { path, "8191 PiB",
      "no files of that size" }, { path })
    assert.is_nil(io.open(path))
  end)

  it("an image file under another name", function()
    local image, other = helper.path "x.brim", helper.path "other.img"
    local _, err, status = helper.brim("mkfs.xfs", "-q", "-d", "size=300m", image)
    assert.equal(0, status, err)
    helper.must("cp %s %s", image, other)
    refuses({ "mkfs.xfs", "-q", other }, { other, "brim image", "-f" }, { other })
    refuses({ "mkfs.xfs", "-q", image }, { image, "-d size=" }, { image })
    local text = helper.path "text.brim"
    helper.write(text, "not an image")
    refuses({ "mkfs.xfs", "-q", "-f", "-d", "size=300m", text }, { text, "no brim image" },
      { text })
    refuses({ "mkfs.xfs", "-q", "-d", "size=300m", helper.dir() .. "/none/x.brim" },
      { "none/x.brim" }, { helper.dir() .. "/none" })
  end)

  local function ext4_file()
    if not helper.has "mkfs.ext4" then
      pending "mkfs.ext4 is not installed"
    end
    local path = devices.file("400m", "ext4.img")
    helper.must("mkfs.ext4 -q -L precious %s", path)
    return path
  end

  it("a file that holds ext4", function()
    local path = ext4_file()
    refuses({ "mkfs.xfs", "-q", path }, { path, "ext4", "precious", "-f overwrites" }, { path })
    refuses(eb_words("--size=400m --target=" .. path), { path, "ext4", "--force overwrites" },
      { path })
  end)

  it("a device that holds ext4, or that is mounted, even by force #root", function()
    finally(devices.release)
    local path = ext4_file()
    local loop = devices.loop(path)
    refuses({ "mkfs.xfs", "-q", loop }, { loop, "ext4", "precious" }, { path })
    refuses({ "mkfs.xfs", "-q", "-f", path }, { path, "is behind " .. loop, "losetup -d" },
      { path })
    local dir = devices.mount(loop)
    helper.must("sync -f %s", dir)
    refuses({ "mkfs.xfs", "-q", "-f", loop }, { loop, "is mounted on " .. dir }, { path })
    refuses({ "mkfs.xfs", "-q", "-f", path }, { path, "mounted on " .. dir }, { path })
    refuses(eb_words("--force --size=400m --target=" .. loop), { loop, "is mounted on " .. dir },
      { path })
  end)

  it("what is read-only #root", function()
    finally(devices.release)
    local file = devices.file "400m"
    local loop = devices.loop(file, "-r")
    refuses({ "mkfs.xfs", "-q", "-f", loop }, { loop, "read-only" }, { file })
    devices.release()
    local _, status = helper.sh("chattr +i %s", file)
    if status == 0 then
      devices.later("chattr -i %s", file)
      refuses({ "mkfs.xfs", "-q", "-f", file }, { file, "no permission" }, { file })
      devices.release()
    end
    local dir = helper.path "bind"
    helper.must("mkdir %s && touch %s/x && mv %s %s/x && mount --bind %s %s && "
      .. "mount -o remount,bind,ro %s", dir, dir, file, dir, dir, dir, dir)
    devices.later("umount %s", dir)
    local bound = dir .. "/x"
    refuses({ "mkfs.xfs", "-q", "-f", bound }, { bound, "read-only" }, { bound })
    refuses({ "mkfs.xfs", "-q", "-d", "file,size=300m", dir .. "/y" }, { dir .. "/y", "read-only" },
      { dir .. "/y" })
  end)

  it("a read-only file, where that says something", function()
    if helper.is_root() then
      pending "root may write to it"
    end
    helper.must("chmod 400 %s", target)
    refuses({ "mkfs.xfs", "-q", "-f", target }, { target, "no permission" }, { target })
  end)

  it("sectors that the device has not #root", function()
    finally(devices.release)
    local file = devices.file "400m"
    local loop = devices.loop(file, "-b 4096")
    refuses({ "mkfs.xfs", "-q", "-f", "-s", "size=512", loop }, { "-s size=512", "4096" }, { file })
    refuses({ "mkfs.xfs", "-q", "-f", "-d", "size=500m", loop },
      { "-d size=524288000", "419430400" }, { file })
  end)
end)

describe("xfs-8eb refuses", function()
  local image = helper.path "8eb.brim"

  for _, case in ipairs {
    { "--sise=300m", "--sise", "did you mean '--size'" },
    { "--size=8e", "--size", "8191p" },
    { "--size=1.5g", "--size", "'1.5g'", "1536g" },
    { "--size=1e9", "--size", "1e9" },
    { "--size=15m", "--size", "15 MiB", "16 MiB" },
    { "--size=100m", "--size=104857600", "300 MiB" },
    { "--size=314572801", "--size=314572801", "multiple of 512" },
    { "--size=9223372036854775808", "--size", "2^63" },
    { "--size=many", "--size", "'many'" },
    { "--uuid=x", "--uuid=x", "01234567-89ab" },
    { "--image=x.img", "--image", "'x.img'", "NAME.brim" },
    { "--target=/dev/null", "/dev/null", "character device" },
    { "--target=.", "directory" },
    { "--target=none/x.img", "none/x.img", "directory does not exist" },
    { "extra", "too many arguments" },
    { "--queue-depth=4", "--queue-depth", "before the name" },
  } do
    it(case[1], function()
      refuses(eb_words(case[1] .. (case[1]:find "image" and "" or " --image=" .. image)),
        { table.unpack(case, 2) }, { image })
    end)
  end

  it("to overwrite a file unasked", function()
    local there = devices.file "400m"
    refuses({ "xfs-8eb", "--size=400m", "--target=" .. there }, { "--yes", "--dry-run" }, { there })
    local saved = helper.path "saved.img"
    helper.write(saved, "brimimg\0 and so on" .. ("x"):rep(1000))
    refuses(eb_words("--size=300m --target=" .. saved), { saved, "brim image", "--force" },
      { saved })
  end)
end)

describe("the Lua API raises at the caller's line", function()
  -- What f raises: it must begin with this file and the line of f's call.
  local function raises(line, f, ...)
    local ok, why = pcall(f)
    assert.is_false(ok)
    why = tostring(why)
    local where = ("bad_input_spec.lua:%d: "):format(line)
    assert.is_truthy(why:find(where, 1, true), ("%s\nis not blamed on line %d"):format(why, line))
    assert.is_nil(why:find "\n")
    for _, part in ipairs { ... } do
      assert.is_truthy(why:find(part, 1, true), why)
    end
  end

  local function line()
    return debug.getinfo(2, "l").currentline
  end

  it("for brim.xfs.format and geometry", function()
    raises(line(), function() brim.xfs.format { sise_bytes = 1 << 30 } end, "'sise_bytes'",
      "'size_bytes'")
    raises(line(), function() brim.xfs.geometry { size_bytes = 1 << 30, labell = "x" } end,
      "'labell'", "'label'")
    raises(line(), function() brim.xfs.format { size_bytes = 2 ^ 62 } end, "size_bytes", "1 << 60")
    raises(line(), function() brim.xfs.format { size_bytes = 1.5 } end, "size_bytes", "//")
    raises(line(), function() brim.xfs.format { size_bytes = "8e" } end, "size_bytes", "8191p")
    raises(line(), function() brim.xfs.format { size_bytes = math.mininteger } end, "size_bytes",
      "negative")
    raises(line(), function() brim.xfs.format { size_bytes = "15m" } end, "size_bytes", "16 MiB")
    raises(line(), function() brim.xfs.format { size_bytes = "1g", ag_count = "4" } end, "ag_count",
      "integer")
  end)

  it("for plan.new and what plans take", function()
    local p <close> = brim.plan { size_bytes = "1m" }
    raises(line(), function() brim.plan { size = 1 } end, "'size'")
    raises(line(), function() brim.plan {} end, "size_bytes")
    raises(line(), function() brim.plan { size_bytes = "8e" } end, "8191p")
    raises(line(), function() brim.plan { size_bytes = 0 } end, "size")
    raises(line(), function() brim.plan.new { size_bytes = 2.0 ^ 60 } end, "1 << 60")
    raises(line(), function() p:zero(0, 2 << 20) end, "2097152")
    raises(line(), function() p:zero(-1, 1) end, "negative")
    raises(line(), function() p:zero(0, 1.5) end, "fraction")
    raises(line(), function() p:read("8e", 1) end, "8191p")
    raises(line(), function() p:totals(0) end, "max_io_bytes")
    raises(line(), function() p:each(0, function() end) end, "count")
    raises(line(), function() p:each(1, function() return brim.layout.bytes(0, 1) end) end,
      "stride_bytes")
    raises(line(), function() p:each(1, function() end, { strid_bytes = 1 }) end, "'strid_bytes'",
      "'stride_bytes'")
  end)

  it("for plan:write, verify and can_write", function()
    local p <close> = brim.plan { size_bytes = "1m" }
    p:zero(0, 4096)
    local target = helper.path "target.img"
    raises(line(), function() p:write(target, { enigne = "sync" }) end, "'enigne'", "'engine'")
    raises(line(), function() p:verify(target, { queue_dept = 1 }) end, "'queue_dept'",
      "'queue_depth'")
    raises(line(), function() p:write(target, { queue_depth = 0 }) end, "queue_depth", "1")
    raises(line(), function() p:write(target, { max_io_bytes = "64x" }) end, "max_io_bytes")
    local null <close> = assert(brim.device.null "1m")
    raises(line(), function() p:can_write(null, { forse = true }) end, "'forse'", "'force'")
    assert.is_nil(io.open(target))
    raises(line(), function() brim.device.open(target, { wirte = true }) end, "'wirte'", "'write'")
  end)

  it("and returns an error object for what the world refuses", function()
    local result, err = brim.plan.load(helper.path "missing.brim")
    assert.is_nil(result)
    assert.is_true(brim.error.is(err))
    assert.equal("ENOENT", err.code)
    local p <close> = brim.plan { size_bytes = "1m" }
    p:zero(0, 4096)
    local dir = helper.dir()
    for _, case in ipairs { { dir, "ENOTBLK" }, { dir .. "/none/x", "ENOENT" } } do
      result, err = p:write(case[1])
      assert.is_nil(result)
      assert.equal(case[2], err.code)
      assert.equal(case[1], err.path)
      assert.is_true(err.usage)
    end
    local small <close> = assert(brim.device.null "64k")
    result, err = p:write(small)
    assert.is_nil(result)
    assert.equal("ENOSPC", err.code)
  end)
end)
