-- What a scan gathers of an XFS is what the superblock, xfs_db and the kernel say: of a filesystem
-- that mkfs.xfs filled from a prototype, of one the kernel used, of the example's many groups.
local brim = require "brim"
local devices = require "spec.devices"
local helper = require "spec.helper"
local ondisk = require "brim.xfs.ondisk"
local scan = require "brim.scan"

-- Everything the groups count, and the columns to compare one by one.
local function gather(path)
  local d <close> = assert(brim.device.open(path))
  local sb = ondisk.sb:decode(assert(d:read(0, 512)))
  local columns = { free = {}, longest = {}, inodes = {} }
  local result = assert(scan(function(ag)
    return ondisk.agf:at(sb.sectsize, sb.sectsize) { seqno = ag,
        length = scan.all { scan.range(1, sb.agblocks), scan.sum "blocks" },
        freeblks = scan.all { scan.sum "free", scan.column "free", scan.min(), scan.max(),
          scan.histogram() },
        longest = scan.all { scan.max(), scan.column() },
        flcount = scan.sum(), btreeblks = scan.sum() },
      ondisk.agi:at(2 * sb.sectsize, sb.sectsize) { seqno = ag,
        count = scan.all { scan.sum(), scan.column "inodes" }, freecount = scan.sum() }
  end):run(d, { count = sb.agcount, stride_bytes = sb.agblocks * sb.blocksize, batch_groups = 3,
    batch = function(b)
      for name, list in pairs(columns) do
        table.move(b[name], 1, b.count, b.first + 1, list)
      end
    end }))
  return result, sb, columns
end

-- The field of each group, as xfs_db prints it.
local function asked(path, group_count, header, field)
  local commands = {}
  for ag = 0, group_count - 1 do
    commands[#commands + 1] = ("-c 'agf %d' -c '%s %d' -c 'print %s'"):format(ag, header, ag, field)
  end
  local list = {}
  for n in helper.must("xfs_db -r %s %s", table.concat(commands, " "), path)
    :gmatch(field .. " = (%d+)") do
    list[#list + 1] = math.tointeger(n)
  end
  return list
end

local function assert_agrees(path)
  local r, sb, columns = gather(path)
  assert.int(r.mismatch_count, 0)
  assert.int(r.groups, sb.agcount)
  assert.same(asked(path, sb.agcount, "agf", "freeblks"), columns.free)
  assert.same(asked(path, sb.agcount, "agf", "longest"), columns.longest)
  assert.same(asked(path, sb.agcount, "agi", "count"), columns.inodes)
  -- xfs_initialize_perag_data() of Linux: what the superblock counts as free.
  assert.int(r.sums.free + r.sums.flcount + r.sums.btreeblks, sb.fdblocks)
  assert.int(r.sums.blocks, sb.dblocks)
  assert.int(r.sums.count, sb.icount)
  assert.int(r.sums.freecount, sb.ifree)
  local free = helper.must("xfs_db -r -c 'freesp -s' %s", path):match "total free blocks (%d+)"
  -- xfs_db counts the blocks of the free lists as free.
  assert.int(r.sums.free + r.sums.flcount, math.tointeger(free))
  local total, most, least = 0, 0, 0
  for k, n in ipairs(columns.free) do
    total = total + n
    most = n > columns.free[most + 1] and k - 1 or most
    least = n < columns.free[least + 1] and k - 1 or least
  end
  assert.int(total, r.sums.free)
  assert.same({ most, least }, { r.maxima.freeblks.group, r.minima.freeblks.group })
  assert.int(r.histograms.freeblks.count, sb.agcount)
  return r
end

describe("a scan of XFS", function()
  local function need(...)
    for _, program in ipairs { ... } do
      if not helper.has(program) then
        pending(program .. " is not installed")
      end
    end
  end

  it("adds up to the superblock of what mkfs.xfs filled", function()
    need("mkfs.xfs", "xfs_db")
    local dir, path = helper.path "tree", helper.path "filled.img"
    local lines = { "/", "0 0", "d--755 0 0" }
    helper.must("mkdir %s", dir)
    for k = 1, 40 do
      helper.write(("%s/%d"):format(dir, k), ("x"):rep(k * 20000))
      lines[#lines + 1] = ("f%d ---644 0 0 %s/%d"):format(k, dir, k)
    end
    lines[#lines + 1] = "$"
    helper.write(dir .. "/proto", table.concat(lines, "\n") .. "\n")
    helper.must("truncate -s 2G %s && mkfs.xfs -q -d agcount=8 -p %s/proto %s", path, dir, path)
    local r = assert_agrees(path)
    assert.is_true(r.sums.count >= 64)
  end)

  it("adds up to what the kernel left of a used one #root", function()
    need("mkfs.xfs", "xfs_db")
    finally(devices.release)
    local path = devices.file("1g", "used.img")
    helper.must("mkfs.xfs -q -d agcount=6 -l size=64m %s", path)
    local dir = devices.mount(devices.loop(path))
    helper.must("cd %s && for d in a b c d e f g h; do mkdir $d; for k in 1 2 3 4 5 6 7 8 9; do "
      .. "head -c ${k}00000 /dev/zero > $d/$k; mkdir $d/$k.d; done; done; rm b/3 e/[5-8]; "
      .. "sync -f .", dir)
    devices.release()
    local r = assert_agrees(path)
    assert.is_true(r.sums.count >= 140 and r.minima.freeblks.value < r.maxima.freeblks.value)
  end)

  it("is the example's, on many groups", function()
    local out = helper.must("%s run examples/scan.lua", helper.exe)
    assert.matches("^131,072 groups in [^\n]+: nothing is wrong\n", out)
    assert.matches("\n  sum inodes: 64\n", out)
    assert.matches("\n  sum free: 17,%d+,%d+,%d+ blocks\n", out)
    assert.matches("\n +65,536 %.%. 131,071 +131,07%d #+\n", out)
    assert.matches("\n%d+ of 65536 GiB are free\n$", out)
    local csv = helper.path "free.csv"
    local image = helper.path "small.brim"
    local p <close> = assert(brim.xfs.format { size_bytes = "64g", ag_bytes = "16m",
      unsupported = true })
    assert(p:save(image))
    helper.must("%s run examples/scan.lua %s %s", helper.exe, image, csv)
    local n = 0
    for line in io.lines(csv) do
      local group, free = line:match "^(%d+),(%d+)$"
      assert.int(math.tointeger(group), n)
      assert.is_true(math.tointeger(free) <= 4096)
      n = n + 1
    end
    assert.int(n, 4096)
  end)
end)
