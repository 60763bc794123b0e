-- Where io_uring is forbidden (a seccomp filter, as containers have one): the same images come out
-- through the sync engine, and a line says so; asked for by name, it is an error before anything is
-- written. spec/tools/nouring.c is the filter.
local devices = require "spec.devices"
local helper = require "spec.helper"
local json = require "brim.json"

-- A recipe of fixed content on a target with direct I/O, where "auto" means io_uring.
local RECIPE <const> = [[
local brim = require "brim"
return brim.recipe {
  name = "fixed", doc = "Write the same XFS always.",
  args = { { "target", type = "path", required = true } },
  run = function(a, ctx)
    local p <close> = assert(brim.xfs.format { size_bytes = 300 * brim.MiB, time_ns = 1700000000,
      uuid = "01234567-89ab-cdef-0123-456789abcdef" })
    ctx.run_opts.direct, ctx.run_opts.force = true, true
    return p:write(a.target, ctx.run_opts)
  end,
}
]]

local LINE <const> = "^brim: io_uring is not available %%(io_uring_setup: %s%%): "
  .. "the sync engine did the I/O\n$"
local REASONS <const> = { EPERM = "Operation not permitted", ENOSYS = "Function not implemented" }

local nouring, imgcmp, recipe

-- Runs brim, forbidden io_uring for a reason or not (nil): stdout, stderr, status.
local function run(reason, ...)
  local words = { reason and nouring .. " " .. reason or "", helper.exe }
  for _, word in ipairs { ... } do
    words[#words + 1] = helper.quote(word)
  end
  local said = helper.path "stderr"
  local out, status = helper.sh("%s 2>%s", table.concat(words, " "), said)
  return out, helper.read(said), status
end

local function write(reason, target, ...)
  local words = { ... }
  words[#words + 1] = "--json"
  for _, word in ipairs { "run", recipe, target } do
    words[#words + 1] = word
  end
  local out, err, status = run(reason, table.unpack(words))
  return json.decode(out), err, status
end

describe("io_uring that is forbidden", function()
  setup(function()
    nouring, imgcmp, recipe = helper.path "nouring", helper.path "imgcmp", helper.path "fixed.lua"
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/nouring.c", nouring)
    helper.must("cc -O2 -D_GNU_SOURCE -o %s spec/tools/imgcmp.c", imgcmp)
    helper.write(recipe, RECIPE)
  end)

  local function check_filter()
    local out, status = helper.sh("%s EPERM true", nouring)
    if status ~= 0 then
      pending("no seccomp filter here: " .. out)
    end
    -- A directory on a filesystem without direct I/O would be no test.
    local _, err, code = write(nil, helper.path "probe.img")
    if code ~= 0 then
      pending("no direct I/O here: " .. err)
    end
  end

  it("gives the same image through sync, and says so", function()
    check_filter()
    local good = helper.path "good.img"
    local result, err = write(nil, good, "--engine=sync")
    assert.equal("sync", result.engine)
    assert.equal("", err)
    for reason, text in pairs(REASONS) do
      local target = helper.path "target.img"
      result, err = write(reason, target)
      assert.equal("sync", result.engine)
      assert.matches(LINE:format(text), err)
      local said, status = helper.sh("%s %s %s", imgcmp, good, target)
      assert.equal(0, status, said)
    end
  end)

  it("gives the image that io_uring gives #uring", function()
    check_filter()
    local with, without = helper.path "with.img", helper.path "without.img"
    local result, err = write(nil, with)
    assert.equal("uring", result.engine)
    assert.equal("", err)
    assert.equal("sync", write("EPERM", without).engine)
    local said, status = helper.sh("%s %s %s", imgcmp, with, without)
    assert.equal(0, status, said)
  end)

  it("is an error where it is asked for by name", function()
    check_filter()
    for reason, text in pairs(REASONS) do
      local target = helper.path "target.img"
      local _, err, status = run(reason, "--engine=uring", "run", recipe, target)
      assert.matches("^brim fixed: io_uring is not available here: " .. text .. "[^\n]*\n$", err)
      assert.is_true(status == 1 or status == 2)
      -- Nothing is written to what was not there.
      local _, data = helper.sh("test ! -e %s || test $(stat -c %%b %s) -eq 0", target, target)
      assert.equal(0, data)
    end
  end)

  it("is said by mkfs.xfs on a block device, which is the same in the end #root", function()
    check_filter()
    finally(devices.release)
    local uuid = "-muuid=01234567-89ab-cdef-0123-456789abcdef"
    local files, loops = {}, {}
    for i, reason in ipairs { false, "EPERM", "ENOSYS" } do
      files[i] = devices.file "300m"
      loops[i] = devices.loop(files[i], "--direct-io=on")
      local out, err, status = run(reason or nil, "--json", "mkfs.xfs", "-q", uuid, loops[i])
      assert.equal(0, status)
      if reason then
        assert.equal("sync", json.decode(out).engine)
        assert.matches(LINE:format(REASONS[reason]), err)
      end
      helper.must("xfs_repair -n %s 2>&1", loops[i])
    end
    devices.release()
    -- But for the times of the three inodes, and what is made of them: one block of inodes.
    local inodes = ("%d:%d"):format(128 * 512, 3 * 512)
    for i = 2, 3 do
      local said, status = helper.sh("%s %s %s %s", imgcmp, files[1], files[i], inodes)
      assert.equal(0, status, said)
    end
  end)

  it("asked for by name leaves a block device as it was #root", function()
    check_filter()
    finally(devices.release)
    local loop = devices.loop(devices.file "300m", "--direct-io=on")
    helper.must("%s --engine=sync mkfs.xfs -q %s", helper.exe, loop)
    local before = helper.must("sha256sum %s", loop)
    local _, err, status = run("EPERM", "--engine=uring", "mkfs.xfs", "-f", loop)
    assert.matches("^brim mkfs%.xfs: io_uring is not available here: [^\n]*\n$", err)
    assert.is_true(status == 1 or status == 2)
    assert.equal(before, helper.must("sha256sum %s", loop))
  end)
end)
