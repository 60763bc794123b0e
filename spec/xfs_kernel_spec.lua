-- What brim formats, used: xfs_repair finds nothing, the kernel mounts it over a loop device, files
-- are written, deleted and read back after a remount, and xfs_repair finds nothing again. #root
local configs = require "spec.xfs_configs"
local geometry = require "brim.xfs.geometry"
local helper = require "spec.helper"
local options = require "brim.xfs.options"
local oracles = require "spec.oracles"
local text = require "brim.xfs.text"

local DIRECTORIES <const>, FILES <const> = 12, 3000
local LARGE_BYTES <const> = 24 << 20

-- The content of file i: size and bytes follow from its number. Most take a block, some several.
local function content(i)
  local unit = ("file %d of brim, "):format(i)
  return unit:rep(1 + i * 7919 % 997 // (i % 5 == 0 and 1 or 50))
end

local function path_of(dir, i)
  return ("%s/d%d/file-%d"):format(dir, i % DIRECTORIES, i)
end

local function is_deleted(i)
  return i % 3 == 0
end

local function write_files(dir)
  for d = 0, DIRECTORIES - 1 do
    helper.must("mkdir -p %s/d%d/sub/deep", dir, d)
  end
  for i = 1, FILES do
    helper.write(path_of(dir, i), content(i))
  end
  helper.write(dir .. "/large", ("0123456789abcdef"):rep(LARGE_BYTES // 16))
  helper.must("sync %s/large", dir)
  for i = 1, FILES do
    if is_deleted(i) then
      assert(os.remove(path_of(dir, i)))
    end
  end
  helper.must("cd %s && ln -s large soft && ln large hard && mv d1/sub d2/moved && rm -r d3/sub"
    .. " && fallocate -p -o 1m -l 2m large && sync -f .", dir)
end

-- Shares all extents of the large file; a write to one copy then splits them.
local function share(dir)
  helper.must("cd %s && cp --reflink=always large shared && printf x | dd of=shared bs=1"
    .. " seek=5000000 conv=notrunc status=none && sync shared", dir)
end

local function check_large(dir, name, at, byte)
  local expected = ("0123456789abcdef"):rep(LARGE_BYTES // 16)
  local hole = ("\0"):rep(2 << 20)
  expected = expected:sub(1, 1 << 20) .. hole .. expected:sub((3 << 20) + 1)
  if at then
    expected = expected:sub(1, at) .. byte .. expected:sub(at + 2)
  end
  assert.is_true(expected == helper.read(dir .. "/" .. name), name)
end

local function check_files(dir, shared)
  for i = 1, FILES do
    local file = io.open(path_of(dir, i), "rb")
    if is_deleted(i) then
      assert.is_nil(file)
    else
      assert.is_true(file:read "a" == content(i), path_of(dir, i))
      file:close()
    end
  end
  check_large(dir, "soft")
  check_large(dir, "hard")
  if shared then
    check_large(dir, "shared", 5000000, "x")
  end
  assert.equal("12\n", helper.must("ls -d %s/d* | wc -l", dir))
end

-- The tools of the release that a configuration is made after.
local function oracle_of(config)
  return oracles.of("xfs", config.compat or "6.1")
end

-- xfs_repair tells what it does; anything else is a finding.
local function assert_clean(image, config, label)
  local loop <close> = configs.loop(image, config.sector_bytes)
  local said, status = helper.sh("%s -n -P %s", oracle_of(config).repair, loop.device)
  assert.equal(0, status, label .. "\n" .. said)
  for line in said:gmatch "[^\n]+" do
    local is_usual = line:find "^Phase %d" or line:find "^        %- "
      or line:find "^No modify flag"
    assert.is_truthy(is_usual, ("%s\nxfs_repair: %s"):format(label, line))
  end
end

describe("brim mkfs.xfs and the kernel #root", function()
  if not helper.is_root() then
    pending "needs root"
    return
  end
  for _, program in ipairs { "losetup", "mount" } do
    if not helper.has(program) then
      pending(program .. " is not installed")
      return
    end
  end

  if select(2, helper.sh "losetup -f") ~= 0 then
    pending "loop devices do not work here"
    return
  end

  local workspace

  setup(function()
    workspace = configs.workspace "kernel"
  end)

  teardown(function()
    workspace:close()
  end)

  local function mount(image, config)
    return workspace:mount(image, { sector_bytes = config.sector_bytes })
  end

  -- Not every kernel mounts every filesystem; whose fault it is, the reference's image tells.
  local function mount_or_skip(image, config)
    local mounted, why = mount(image, config)
    if mounted then
      return mounted
    end
    local reference = workspace:path "reference"
    helper.must("truncate -s %d %s && %s -q -f %s %s", config[1], reference,
      oracle_of(config).mkfs, config[2], reference)
    local theirs <close> = mount(reference, config)
    if not theirs then
      pending("this kernel does not mount what mkfs.xfs makes of it either")
    end
    error("the kernel mounts the reference's image only: " .. why)
  end

  -- The geometry as the kernel says it, but for the name of the device.
  local function assert_geometry(mounted, config)
    local words = { "--compat", config.compat or "6.1" }
    for word in (config[2] .. " x"):gmatch "%S+" do
      words[#words + 1] = word
    end
    local g = assert(geometry.compute(assert(options.parse(words)),
      { size_bytes = config[1], is_file = true }))
    assert.equal(text.geometry(g, mounted.device),
      helper.must("%s -p xfs_info -c info %s", oracle_of(config).spaceman, mounted.dir))
  end

  local function use(image, config, label)
    local with_reflink = not config[2]:find "reflink=0"
    do
      local mounted <close> = mount_or_skip(image, config)
      assert_geometry(mounted, config)
      write_files(mounted.dir)
      if with_reflink then
        share(mounted.dir)
      end
    end
    do
      local mounted <close> = assert(mount(image, config))
      check_files(mounted.dir, with_reflink)
    end
    assert_clean(image, config, label .. ", after its use")
  end

  for _, config in ipairs(configs.KERNEL) do
    local label = configs.describe(config)
      .. (config.compat and " after " .. config.compat or "")
    it(label, function()
      local oracle, missing = oracle_of(config)
      if not oracle then
        return pending(missing)
      end
      local image = workspace:path "image"
      helper.must("truncate -s %d %s", config[1], image)
      local said, status = helper.sh("%s mkfs.xfs --compat %s -q %s %s", helper.quote(helper.exe),
        config.compat or "6.1", config[2], image)
      assert.equal(0, status, said)
      assert_clean(image, config, label .. ", fresh")
      use(image, config, label)
      os.remove(image)
    end)
  end
end)
