-- brim.verify: what differs between a target and the plan it was written from, by structure and
-- field.
local brim = require "brim"
local configs = require "spec.xfs_configs"
local helper = require "spec.helper"
local layout = require "brim.layout"
local verify = require "brim.verify"

local GROUP_BYTES <const> = 100 << 20

local function overwrite(path, off_bytes, bytes)
  local file <close> = assert(io.open(path, "r+b"))
  file:seek("set", off_bytes)
  file:write(bytes)
end

-- structure.field -> difference
local function by_name(result)
  local out = {}
  for _, d in ipairs(result.differences) do
    out[d.structure .. (d.field and "." .. d.field or "")] = d
  end
  return out
end

local function names(result)
  local list = {}
  for name in pairs(by_name(result)) do
    list[#list + 1] = name
  end
  table.sort(list)
  return list
end

describe("brim.verify of an XFS", function()
  local image, target, plan

  setup(function()
    image, target = helper.path "plan.brim", helper.path "target"
    plan = assert(brim.xfs.format { size_bytes = "400m", rmapbt = true,
      uuid = "01234567-89ab-cdef-0123-456789abcdef", time_ns = 1700000000000000000 })
    assert(plan:save(image))
  end)

  before_each(function()
    os.remove(target)
    assert(plan:write(target))
  end)

  teardown(function()
    plan:close()
  end)

  it("finds nothing where nothing differs", function()
    local result = assert(verify.run(image, target))
    assert.is_true(result.same)
    assert.same({}, result.differences)
    assert.int(result.groups_affected, 0)
    assert.int(result.groups, 4)
    assert.is_truthy(result.text:find "^the target holds exactly what the plan wrote: 4 groups")
    assert.is_true(assert(verify.run(plan, image)).same)
  end)

  it("names structure, field, group, place and both values", function()
    overwrite(target, GROUP_BYTES + 512 + 52, "\0\0\0\7")
    local result = assert(verify.run(image, target))
    assert.is_false(result.same)
    assert.same({ "agf.freeblks" }, names(result))
    local d = result.differences[1]
    assert.int(d.count, 1)
    assert.same({ 1 }, d.groups)
    assert.same({ group = 1, off_bytes = GROUP_BYTES + 512 + 52, field = "freeblks",
      expected = 25587, found = 7 }, d.first)
    assert.int(result.groups_affected, 1)
    assert.equal("  agf.freeblks: group 1, byte 104858164 should be 25587 (0x63f3), is 7",
      result.text:match "[^\n]*$")
  end)

  it("finds every difference of a group, not only the first", function()
    overwrite(target, 2 * GROUP_BYTES + 36, "\xff")
    overwrite(target, 2 * GROUP_BYTES + 1024 + 8, "\0\0\0\9")
    overwrite(target, 2 * GROUP_BYTES + 1536 + 36 + 8, "\0\0\0\0")
    overwrite(target, 2 * GROUP_BYTES + 4096 + 60, "\0\0\0\1")
    overwrite(target, 2 * GROUP_BYTES + 20480 + 4090, "slack")
    overwrite(target, 2 * GROUP_BYTES + 3000, "gap")
    local result = assert(verify.run(image, target))
    assert.same({ "agfl.bno[]", "agi.seqno", "bnobt.recs[].blockcount", "gap", "rmapbt",
      "sb.uuid" }, names(result))
    local found = by_name(result)
    assert.equal("bno[2]", found["agfl.bno[]"].first.field)
    assert.equal("01234567-ff", found["sb.uuid"].first.found:sub(1, 11))
    assert.same({ off_bytes = 2 * GROUP_BYTES + 20480 + 4090, group = 2, expected = 0,
      found = ("s"):byte() }, found.rmapbt.first)
    assert.int(result.groups_affected, 1)
  end)

  it("sums up what differs in many groups", function()
    for ag = 0, 3 do
      overwrite(target, ag * GROUP_BYTES + 512 + 8, "\0\0\1\0")
    end
    local result = assert(verify.run(image, target))
    assert.int(#result.differences, 1)
    assert.int(result.differences[1].count, 4)
    assert.same({ 0, 1, 2, 3 }, result.differences[1].groups)
    assert.is_truthy(result.text:find("agf.seqno: group 0, byte 520 should be 0, is 256 (0x100);"
      .. " and 3 more, groups 0, 1, 2, 3", 1, true))
  end)

  it("looks into inodes, the log and what shall be zero", function()
    overwrite(target, 65536 + 512 * 5 + 2, "\x81\xa4")
    local log = plan.geometry.log_ag * GROUP_BYTES + (plan.geometry.log_agbno << 12)
    overwrite(target, log + 12, "\0\0\0\1")
    overwrite(target, log + (1 << 20), "x")
    overwrite(target, (400 << 20) - 100, "end")
    local result = assert(verify.run(image, target))
    assert.same({ "end of device", "inode.mode", "log", "log_record.len" }, names(result))
    assert.int(by_name(result)["inode.mode"].first.found, tonumber("100644", 8))
    assert.int(by_name(result)["log"].first.off_bytes, log + (1 << 20))
  end)

  it("says when it did not look into all", function()
    for ag = 0, 3 do
      overwrite(target, ag * GROUP_BYTES + 512 + 8, "\0\0\1\0")
    end
    local result = assert(verify.run(image, target, { max_ios = 2 }))
    assert.int(result.mismatch_count, 4)
    assert.is_true(result.is_partial)
    assert.int(result.groups_affected, 2)
    assert.is_truthy(result.text:find("the first 2 of the I/Os that differ were looked into", 1,
      true))
  end)

  it("refuses what cannot be compared", function()
    assert.refuses("ENOENT", verify.run(helper.path "none", target))
    assert.refuses("ENOENT", verify.run(image, helper.path "none"))
    local small = helper.path "small"
    helper.write(small, ("x"):rep(1 << 20))
    local _, err = verify.run(image, small)
    assert.is_true(err.usage)
    _, err = verify.run(small, target)
    assert.is_true(err.usage)
    assert.has_error(function() verify.run(image, target, { max_iso = 1 }) end)
  end)

  it("is a recipe that ends with 0, 1 or 2", function()
    local out, err, status, _ = helper.brim("verify", image, target)
    assert.equal(0, status, err)
    assert.is_truthy(out:find "^the target holds exactly")
    overwrite(target, 512 + 8, "\0\0\1\0")
    out, _, status = helper.brim("verify", image, target, "--json")
    assert.equal(1, status)
    local t = assert(brim.json.decode(out))
    assert.is_true(not t.same)
    assert.equal("seqno", t.differences[1].field)
    _, err, status = helper.brim("verify", target, image)
    assert.equal(2, status)
    assert.is_truthy(err:find "this is no brim image\n$")
  end)
end)

describe("brim.verify of any plan", function()
  local entry = layout.struct("entry", { size_bytes = 512, endian = "big" }) {
    { 0, "u32", "number" }, { 4, "bytes[508]", "rest" },
  }

  it("tells the first byte of structures it does not know", function()
    local plan <close> = brim.plan { name = "table", size_bytes = 8 << 20, group_bytes = 512 }
    plan:each(4096, function(i) return entry:at(0) { number = i } end)
    local target = helper.path "table"
    assert(plan:write(target))
    -- Side by side, so several of these share an I/O.
    for _, i in ipairs { 3, 4, 1000, 4095 } do
      overwrite(target, i * 512 + 100, "zz")
    end
    local result = assert(verify.run(plan, target))
    assert.same({ "entry" }, names(result))
    local d = result.differences[1]
    assert.int(d.count, 4)
    assert.same({ 3, 4, 1000, 4095 }, d.groups)
    assert.same({ group = 3, off_bytes = 3 * 512 + 100, expected = 0, found = 122 }, d.first)
    assert.int(result.groups_affected, 4)
    os.remove(target)
  end)
end)

describe("brim.verify of a block device #root", function()
  if not helper.is_root() then
    pending "needs root"
    return
  end

  it("reads it past the page cache", function()
    local image = helper.path "plan.brim"
    local plan <close> = assert(brim.xfs.format { size_bytes = "400m" })
    assert(plan:save(image))
    local target = helper.path "target"
    assert(plan:write(target))
    overwrite(target, GROUP_BYTES + 512 + 12, "\0\0\0\1")
    overwrite(target, 2 * GROUP_BYTES + 4096 + 4000, "x")
    local loop <close> = configs.loop(target)
    local result = assert(verify.run(image, loop.device))
    assert.same({ "agf.length", "bnobt.recs[].startblock" }, names(result))
    local fs <close> = assert(brim.xfs.open(loop.device))
    assert.int(fs:agf(1).length, 1)
    assert.int(fs:inode(128).data_fork.parent, 128)
  end)
end)
