-- Overlays from Lua, and targets served, attached and detached: with nbdkit, nbdfuse, the kernel's
-- loop devices and XFS as judges.
local brim = require "brim"
local helper = require "spec.helper"
local oracles = require "spec.oracles"
local process = require "brim.process"
local listens = require("brim.serve").is_listening

local UUID <const> = "b71a0000-0000-4000-8000-000000000001"
local SAN <const> = (os.getenv("SAN") or "") ~= ""

local function image(size)
  local path = helper.path("x.brim")
  helper.must("%s mkfs.xfs -q -m uuid=%s -d size=%s %s", helper.exe, UUID, size or "1g", path)
  return path
end

-- What is missing here, or nil.
local function lacks(...)
  if SAN then
    return "nbdkit loads no instrumented plugin"
  end
  for _, program in ipairs { "nbdkit", ... } do
    if not helper.has(program) then
      return program .. " is not installed"
    end
  end
  return not require("brim.serve").plugin() and "built without nbdkit-plugin-dev" or nil
end

describe("device.overlay", function()
  local base, path

  before_each(function()
    base, path = helper.path("base"), helper.path("overlay")
    helper.write(base, ("base"):rep(4096))
  end)

  it("takes what is written, and the target stays as it is", function()
    do
      local d <close> = assert(brim.device.open(base, { overlay = path, write = true }))
      assert.equal("overlay", d:info().kind)
      assert.int(d:write(3, "OVER"), 4)
      assert.is_true(d:zero(8192, 4096))
      assert.equal("basOVERe", d:read(0, 8))
    end
    assert.equal(("base"):rep(4096), helper.read(base))
    local d <close> = assert(brim.device.open(base, { overlay = path }))
    assert.equal("basOVERe", d:read(0, 8))
    assert.equal(("\0"):rep(4096), d:read(8192, 4096))
    assert.refuses("EROFS", d:write(0, "x"))
    local info = d:overlay_info()
    assert.int(info.data_bytes, 4096)
    assert.int(info.zero_bytes, 4096)
  end)

  it("says what lies where", function()
    local d <close> = assert(brim.device.open(base, { overlay = path, write = true }))
    d:zero(4096, 8192)
    local function extents()
      local list, at = {}, 0
      while at < d:info().size_bytes do
        local len, is_zero, is_overlay = d:extent(at)
        list[#list + 1] = ("%d %s %s"):format(len, is_zero, is_overlay)
        at = at + len
      end
      return table.concat(list, ", ")
    end
    assert.equal("4096 false false, 8192 true true, 4096 false false", extents())
    assert.refuses("ERANGE", d:extent(16384))
  end)

  it("is of one base", function()
    local other = helper.path("other")
    helper.write(other, ("more"):rep(4096))
    brim.device.open(base, { overlay = path, write = true }):close()
    local _, err = assert.refuses("EINVAL", brim.device.open(other, { overlay = path }))
    local opened <close>, why = brim.device.open(other, { overlay = path })
    assert.is_nil(opened)
    assert.matches("has another content", (err or why).message)
    assert.is_true((err or why).usage)
    assert.refuses("ENOENT", brim.device.open(base, { overlay = helper.path("missing") }))
    assert.refuses("EILSEQ", brim.device.open(base, { overlay = other }))
  end)

  it("is there once", function()
    local d <close> = assert(brim.device.open(base, { overlay = path, write = true }))
    assert.refuses("EBUSY", brim.device.open(base, { overlay = path }))
    assert.equal("base", d:read(0, 4))
  end)

  it("goes into its base", function()
    local under <close> = assert(brim.device.open(base, { write = true, force = true }))
    local d <close> = assert(brim.device.overlay(under, path, { create = true }))
    d:write(0, "COMMIT")
    assert.is_true(d:commit())
    assert.int(d:overlay_info().extents, 0)
    assert.equal("COMMITse", helper.read(base):sub(1, 8))
    assert.refuses("EINVAL", under:commit())
  end)

  it("makes a new image", function()
    local x, new = image(), helper.path("new.brim")
    local d <close> = assert(brim.device.open(x, { overlay = path, write = true }))
    assert.refuses("EROFS", d:commit())
    d:write((1 << 29) + 77, "in the middle")
    assert.is_true(d:save_image(new))
    local n <close> = assert(brim.device.open(new))
    assert.equal("in the middle", n:read((1 << 29) + 77, 13))
    assert.equal(d:read(0, 1 << 20), n:read(0, 1 << 20))
    assert.is_true(#helper.read(new) < 2 * #helper.read(x))
  end)

  it("is opened by its own name, where its base is beside it", function()
    do
      local d <close> = assert(brim.device.open(base, { overlay = path, write = true }))
      d:write(3, "OVER")
    end
    do
      local d <close> = assert(brim.device.open(path))
      assert.equal("overlay", d:info().kind)
      assert.equal("basOVERe", d:read(0, 8))
    end
    do
      local d <close> = assert(brim.device.open(path, { write = true }))
      assert.is_true(d:zero(0, 4096))
    end
    local raw <close> = assert(brim.device.open(path, { raw = true }))
    assert.equal("brimovl\0", raw:read(0, 8))
    assert.same({ base, path }, { brim.device.resolve(path) })
    assert.same({ base }, { brim.device.resolve(base) })
    local moved = helper.path("elsewhere") .. "/"
    helper.must("mkdir %s && cp %s %s", moved, path, moved)
    local none, err = brim.device.open(moved .. path:match "[^/]*$")
    assert.is_nil(none)
    assert.is_true(err.usage)
    assert.is_truthy(err.message:find("is an overlay of '" .. base:match "[^/]*$", 1, true))
    helper.must("printf '\\001' | dd of=%s bs=1 seek=100 conv=notrunc status=none", path)
    helper.must("printf '\\001' | dd of=%s bs=1 seek=4200 conv=notrunc status=none", path)
    assert.refuses("EILSEQ", brim.device.open(path))
  end)

  it("takes a format of its own", function()
    local null <close> = assert(brim.device.null("8191p"))
    local d <close> = assert(brim.device.overlay(null, path, { create = true }))
    local p <close> = assert(brim.xfs.format { size_bytes = "1t", uuid = UUID,
      device = { size_bytes = 1 << 40, is_file = true } })
    assert(p:write(d))
    assert.int(assert(p:verify(d)).mismatch_count, 0)
    assert.equal("XFSB", d:read(0, 4))
  end)
end)

describe("brim serve", function()
  -- A test that needs other programs, and may return why it cannot be run.
  local function with_tools(name, test)
    it(name, function()
      local lack = lacks("nbdinfo", "nbdcopy", "pgrep") or test()
      if lack then
        pending(lack)
      end
    end)
  end

  local servers = {}

  -- Starts it in the background and waits for its socket.
  local function serve(...)
    local socket, log = helper.path("socket"), helper.path("log")
    local p = assert(process.start(log, helper.exe, "serve", "--socket", socket, ...))
    servers[#servers + 1] = p
    assert.is_true(process.wait(20, function()
      return listens(socket) or not process.is_alive(p)
    end) and process.is_alive(p), helper.read(log))
    return ("nbd+unix:///?socket=" .. socket), p, socket
  end

  after_each(function()
    for _, p in ipairs(servers) do
      process.stop(p, 20)
    end
    servers = {}
  end)

  local function nbdkit_of(p)
    return assert(math.tointeger(tonumber(helper.must("pgrep -P %d", p.pid))))
  end

  -- Kills nbdkit outright; brim sees it end and does too.
  local function kill(p)
    helper.must("kill -9 %d", nbdkit_of(p))
    assert.is_true(process.wait(20, function() return not process.is_alive(p) end))
  end

  with_tools("shows an image as nbdinfo wants it", function()
    local uri = serve(image())
    local info = helper.must("nbdinfo '%s'", uri)
    for _, line in ipairs { "export%-size: 1073741824", "is_read_only: true", "can_flush: true",
      "can_multi_conn: true", "block_size_preferred: 4096", "content: SGI XFS" } do
      assert.matches(line, info)
    end
    assert.matches("hole,zero", helper.must("nbdinfo --map '%s'", uri))
  end)

  with_tools("has a socket for its owner only, unless asked otherwise", function()
    local _, _, socket = serve(image())
    assert.equal("600\n", helper.must("stat -c %%a %s", socket))
    _, _, socket = serve(image(), "--socket-mode", "0660")
    assert.equal("660\n", helper.must("stat -c %%a %s", socket))
  end)

  with_tools("gives what it was given, also after kill -9", function()
    local x, overlay = image("300m"), helper.path("overlay")
    local given, got = helper.path("given"), helper.path("got")
    helper.must("head -c 20m /dev/urandom > %s && truncate -s 300m %s", given, given)
    local uri, p = serve(x, "--overlay", overlay)
    assert.matches("can_fast_zero: true", helper.must("nbdinfo '%s'", uri))
    helper.must("nbdcopy --flush %s '%s'", given, uri)
    kill(p)
    uri, p = serve(x, "--overlay", overlay)
    helper.must("nbdcopy '%s' %s && cmp %s %s", uri, got, given, got)
    assert.is_true(process.stop(p, 20))
    uri = serve(x, "--overlay", overlay, "--readonly")
    assert.matches("is_read_only: true", helper.must("nbdinfo '%s'", uri))
    helper.must("nbdcopy '%s' %s && cmp %s %s", uri, got, given, got)
  end)

  with_tools("writes a plain file through", function()
    local file, given = helper.path("plain"), helper.path("given")
    helper.must("head -c 3000000 /dev/urandom > %s && head -c 3000000 /dev/zero > %s", given, file)
    local uri, p = serve(file)
    helper.must("nbdcopy --flush %s '%s'", given, uri)
    assert.is_true(process.stop(p, 20))
    assert.is_true(process.wait(20, function() return (process.run("cmp", given, file)) end))
  end)

  with_tools("refuses in one line", function()
    local function refused(status, says, ...)
      local out, err, code = helper.brim("serve", ...)
      assert.equal("", out)
      assert.matches(says, err)
      assert.equal(1, select(2, err:gsub("\n", "\n")))
      assert.int(code, status)
    end
    local x, socket = image(), helper.path("s")
    refused(2, "missing option '%-%-socket'", x)
    refused(2, "does not exist", helper.path("no"), "--socket", socket)
    refused(2, "is no octal mode", x, "--socket", socket, "--socket-mode", "rw")
    refused(2, "is there and no socket", x, "--socket", x)
    refused(2, "longer than the 107 bytes", x, "--socket", "/tmp/" .. ("s"):rep(120))
    refused(2, "is no overlay of brim", x, "--socket", socket, "--overlay", x)
    local _, _, taken = serve(x)
    refused(2, "somebody serves at", x, "--socket", taken)
  end)

  with_tools("takes the socket of a killed one", function()
    local x = image()
    local _, p, socket = serve(x)
    helper.must("kill -9 %d %d", p.pid, nbdkit_of(p))
    helper.must("test -S %s", socket) -- nobody took it away
    local again = process.start(helper.path("log"), helper.exe, "serve", "--socket", socket, x)
    servers[#servers + 1] = again
    assert.is_truthy(process.wait(20, function()
      return (process.run("nbdinfo", "--size", "nbd+unix:///?socket=" .. socket))
    end))
  end)
end)

describe("brim attach #root", function()
  local state, env

  setup(function()
    state = helper.path("state")
    env = ("BRIM_STATE_DIR=%s %s"):format(state, helper.exe)
  end)

  -- A test that needs other programs, and may return why it cannot be run.
  local function with_tools(name, test)
    it(name, function()
      local lack = lacks("nbdfuse", "losetup", "pgrep") or test()
      if lack then
        pending(lack)
      end
    end)
  end

  after_each(function()
    helper.sh("test ! -e %s || %s detach --all", state, env)
  end)

  local function attach(words, ...)
    return brim.json.decode(helper.must(env .. " --json attach " .. words, ...))
  end

  local function is_gone(a)
    assert.equal("", (helper.sh("ls -A %s", state)))
    assert.is_nil(helper.sh("losetup -n -O BACK-FILE"):find(a.file, 1, true))
    assert.is_nil(helper.read("/proc/self/mountinfo"):find(a.dir, 1, true))
    assert.is_false(process.is_alive(a.nbdkit))
    assert.is_false(process.is_alive(a.nbdfuse))
  end

  with_tools("mounts an image read-write; what was written is there the next time", function()
    local x, overlay, dir = image("2g"), helper.path("overlay"), helper.path("mnt")
    local a = attach("%s --overlay %s --mount %s", x, overlay, dir)
    assert.equal("xfs\n", helper.must("stat -f -c %%T %s", dir))
    helper.must("cp -r core %s && mkdir %s/made", dir, dir)
    assert.is_truthy(helper.must("%s attach --list", env):find(x, 1, true))
    helper.must("%s detach %s", env, dir)
    is_gone(a)
    assert.int(select(2, helper.sh("test -e %s", dir)), 1)

    a = attach("%s --overlay %s --mount %s", x, overlay, dir)
    helper.must("diff -r core %s/core", dir)
    helper.must("umount %s", dir)
    assert.int(select(2, helper.sh("xfs_repair -n %s", a.file)), 0)
    helper.must("%s detach %s", env, a.file)
    is_gone(a)
  end)

  with_tools("writes to an overlay beside an image unless told otherwise", function()
    local x = image("2g")
    local before = helper.read(x)
    local a = attach(x)
    assert.equal(x .. ".overlay", a.overlay)
    helper.must("mkfs.ext4 -q -F %s", a.file)
    helper.must("%s detach %s", env, a.file)
    assert.equal(before, helper.read(x))
    assert.is_nil(attach("%s --readonly", x).overlay)
    helper.must("%s detach %s", env, x)
    a = attach(x .. ".overlay")
    assert.equal(x, a.target)
    assert.equal("ext4\n", helper.must("blkid -p -s TYPE -o value %s", a.file))
    helper.must("%s detach %s", env, a.file)
  end)

  with_tools("mounts a PiB with the newest features, whose own xfs_repair finds nothing", function()
    local newest, why = oracles.of("xfs", "7.2")
    if not newest then
      return why
    end
    local x, dir = helper.path("pib.brim"), helper.path("mnt")
    helper.must("%s mkfs.xfs -q --compat 7.2 -d size=1p %s", env, x)
    attach("%s --mount %s", x, dir)
    helper.must("cp -r core %s && cp --reflink=always %s/core/brim.h %s/twice && rm %s/core/l*",
      dir, dir, dir, dir)
    helper.must("%s detach %s", env, dir)
    assert.int(select(2, helper.sh("%s check %s.overlay", env, x)), 0)
    local a = attach("%s --no-loop", x)
    helper.must("%s -n -P -f %s", newest.repair, a.file)
    helper.must("%s detach %s", env, a.file)
  end)

  it("knows which filesystems take the kernel long to mount", function()
    local advice = require "brim.xfs.advice"
    local slow, quick = helper.path(), helper.path()
    helper.must("%s mkfs.xfs -q -d size=8191p %s.brim", env, slow)
    helper.must("%s mkfs.xfs -q -d size=8191p -m finobt=0,reflink=0 %s.brim", env, quick)
    assert.matches("all 8387585 groups.*%(finobt, reflink%): about %d+ minutes",
      advice.mount(slow .. ".brim"))
    assert.is_nil(advice.mount(quick .. ".brim"))
    assert.is_nil(advice.mount "README.md")
  end)

  with_tools("holds a fio with random writes, killed and opened again", function()
    if not helper.has "fio" then
      return "fio is not installed"
    end
    local x, overlay = image(), helper.path("overlay")
    local fio = "fio --name=v --filename=%s --rw=randwrite --bssplit=512/20:4k/50:64k/30 "
      .. "--size=64m --io_size=16m --offset=100m --verify=crc32c --verify_state_save=0 "
      .. "--direct=1 --ioengine=psync --randseed=7 %s"
    local a = attach("%s --overlay %s", x, overlay)
    helper.must(fio, a.loop, "--end_fsync=1 --do_verify=1")
    helper.must("kill -9 %d", a.nbdkit.pid)
    assert.matches("nbdkit has ended", helper.must("%s attach --list", env))
    helper.must("%s detach %s", env, x)
    is_gone(a)
    a = attach("%s --overlay %s", x, overlay)
    helper.must(fio, a.loop, "--verify_only=1")
    helper.must("%s detach %s", env, a.loop)
    is_gone(a)
  end)

  with_tools("makes the sectors it is asked for", function()
    local a = attach("%s --readonly --sector-bytes 4096", image())
    assert.equal("4096\n", helper.must("blockdev --getss %s", a.loop))
    assert.equal("1\n", helper.must("blockdev --getro %s", a.loop))
    helper.must("%s detach %s", env, a.id)
    is_gone(a)
  end)

  with_tools("undoes what it made when a step fails", function()
    local zeros, dir = helper.path("zeros"), helper.path("mnt")
    helper.must("truncate -s 100m %s", zeros)
    local out, status = helper.sh("%s attach %s --mount %s", env, zeros, dir)
    assert.int(status, 1)
    assert.matches("^brim attach: mount: ", out)
    assert.equal("", (helper.sh("ls -A %s", state)))
    assert.is_nil(helper.sh("losetup -n -O BACK-FILE"):find(state, 1, true))
    assert.int(select(2, helper.sh("test -e %s", dir)), 1)
  end)

  with_tools("says what is in use, and can be repeated", function()
    local dir = helper.path("mnt")
    local a = attach("%s --overlay %s --mount %s", image("2g"), helper.path("overlay"), dir)
    local p = process.start("/dev/null", "sh", "-c", ("cd %s && sleep 60"):format(dir))
    process.wait(5, function()
      return (process.run("sh", "-c", ("ls -l /proc/%d/cwd | grep -q %s"):format(p.pid, dir)))
    end)
    local out, status = helper.sh("%s detach %s", env, dir)
    assert.int(status, 1)
    assert.matches("the mount does not go away", out)
    helper.must("kill %d $(pgrep -P %d)", p.pid, p.pid)
    assert.is_truthy(process.wait(5, function()
      return (process.run("env", "BRIM_STATE_DIR=" .. state, helper.exe, "detach", dir))
    end))
    is_gone(a)
  end)

  with_tools("refuses in one line", function()
    for words, says in pairs {
      ["attach"] = "attach what%?",
      ["detach"] = "detach what%?",
      ["detach /nowhere"] = "nothing is attached at /nowhere",
      ["attach /nowhere"] = "/nowhere does not exist",
      ["attach README.md --mount README.md"] = "is no directory",
      ["attach README.md --mount /proc"] = "something is mounted at",
      ["attach README.md --mount-options ro"] = "goes with %-%-mount",
    } do
      local out, status = helper.sh("%s %s", env, words)
      assert.matches(says, out)
      assert.int(status, 2)
    end
    assert.equal("nothing is attached\n", helper.must("%s attach --list", env))
  end)
end)
