-- brim.attach: gives a target as a file (nbdkit and nbdfuse), for root as a loop device, mounted,
-- and takes all of it away again. What was made is noted in a directory of its own under state_dir
-- before the next step is taken, so that detach can undo whatever is there, also after a crash.
-- Called by the recipes attach and detach.
local core = require "brim.core"
local device = require "brim.device"
local errors = require "brim.error"
local json = require "brim.json"
local opts = require "brim.opts"
local process = require "brim.process"
local serve = require "brim.serve"

local M = {}

---@class brim.Attachment what is in its state file
---@field id string
---@field dir string where state, socket, logs and the file are
---@field target string
---@field overlay? string
---@field readonly boolean
---@field socket string
---@field nbdkit? brim.Process
---@field nbdfuse? brim.Process
---@field fuse string the mount point of nbdfuse
---@field file string the target as a file
---@field loop? string
---@field mount? string
---@field made_mount? boolean the mount point was made, too

---@class brim.AttachOpts
---@field overlay? string
---@field readonly? boolean
---@field mount? string directory to mount at (root)
---@field mount_options? string as for mount -o
---@field loop? boolean default: as root
---@field sector_bytes? integer of the loop device

local SCHEMA = {
  overlay = { type = "path", doc = "file that takes what is written" },
  readonly = { type = "bool", default = false, doc = "nothing is written" },
  mount = { type = "path", doc = "directory to mount at (root)" },
  mount_options = { type = "string", doc = "as for mount -o" },
  loop = { type = "bool", doc = "make a loop device; default: as root" },
  sector_bytes = { type = "int", min = 512, max = 65536, doc = "of the loop device" },
}

-- The longest a step may take; mounting and unmounting have no end.
local START_S <const>, END_S <const>, LOOP_S <const> = 60, 120, 10

-- --------------------------------------------------------------------- state

---The directory that holds what is attached: BRIM_STATE_DIR, or one of the user's own.
---@return string
function M.state_dir()
  local dir = os.getenv("BRIM_STATE_DIR")
  if dir and dir ~= "" then
    return process.absolute(dir)
  elseif core.is_root() then
    return "/run/brim"
  end
  local own = os.getenv("XDG_RUNTIME_DIR")
  if own and own ~= "" then
    return own .. "/brim"
  end
  local _, uid = process.run("id", "-u")
  return "/tmp/brim-" .. uid
end

local function save(a)
  local path = a.dir .. "/state"
  local file = assert(io.open(path .. ".new", "w"))
  assert(file:write(json.encode(a), "\n"))
  assert(file:close())
  assert(os.rename(path .. ".new", path))
end

-- Somebody else's directory (in /tmp, say) is not taken for ours.
local function state_is_ours(dir)
  return not process.run("test", "-e", dir) or process.run("test", "-O", dir)
end

local function load(dir)
  local text = process.line(dir .. "/state")
  local a = text and json.decode(text)
  if type(a) ~= "table" or a.dir ~= dir or type(a.id) ~= "string" then
    return nil
  end
  return a
end

---List what is attached, by this user.
---@return brim.Attachment[]
function M.list()
  local root = M.state_dir()
  local list = {}
  if not state_is_ours(root) then
    return list
  end
  local pipe = assert(io.popen(("ls -1 %s 2>/dev/null"):format(process.quote(root))))
  for id in pipe:lines() do
    list[#list + 1] = load(("%s/%s"):format(root, id))
  end
  pipe:close()
  return list
end

local function make_state(look)
  local root = M.state_dir()
  if not state_is_ours(root) then
    return nil, errors.usage("%s is somebody else's; name another place in BRIM_STATE_DIR", root)
  end
  local ok, why = process.run("mkdir", "-p", "-m", "700", root)
  local dir
  if ok then
    ok, dir = process.run("mktemp", "-d", root .. "/XXXXXX")
    why = dir
  end
  if not ok then
    return nil, errors.usage("what is attached cannot be noted: %s", why)
  end
  local a = { id = dir:match("[^/]*$"), dir = dir, target = look.target, overlay = look.overlay,
    readonly = look.readonly, socket = dir .. "/socket", fuse = dir .. "/fuse",
    file = dir .. "/fuse/disk" }
  save(a)
  return a
end

-- ------------------------------------------------------------------- looking

-- /proc writes blanks and the like as \040.
local function unescape(text)
  return (text:gsub("\\(%d%d%d)", function(digits)
    return string.char(tonumber(digits, 8))
  end))
end

-- Is something mounted at a directory; `source`: from there?
local function is_mounted(dir, source)
  local file <close> = io.open("/proc/self/mountinfo")
  for line in file and file:lines() or function() end do
    local where = line:match("^%S+ %S+ %S+ %S+ (%S+)")
    local from = line:match(" %- %S+ (%S+)")
    if unescape(where) == dir and (not source or unescape(from) == source) then
      return true
    end
  end
  return false
end

-- The loop devices over the file, as sysfs has them: also one that a crash kept from being noted,
-- and none that has the same number by now and another file.
local function loops_of(a)
  local pipe = assert(io.popen(("grep -lxF -- %s /sys/block/loop*/loop/backing_file 2>/dev/null")
    :format(process.quote(a.file))))
  local list = {}
  for path in pipe:lines() do
    list[#list + 1] = "/dev/" .. path:match("^/sys/block/([^/]+)")
  end
  pipe:close()
  return list
end

-- -------------------------------------------------------------------- detach

-- Each takes away one layer: true, or nil and why not. What is gone already is no error.
local undo = {}

function undo.mount(a)
  if a.mount and a.loop and is_mounted(a.mount, a.loop) then
    local ok, why = process.run("umount", a.mount)
    if not ok then
      return nil, why
    end
  end
  if a.made_mount then
    process.run("rmdir", a.mount)
  end
  return true
end

function undo.loop(a)
  for _, loop in ipairs(loops_of(a)) do
    local ok, why = process.run("losetup", "-d", loop)
    if not ok then
      return nil, why
    end
  end
  -- In use still, it would go only later.
  local ok = process.wait(LOOP_S, function() return #loops_of(a) == 0 end)
  return ok or nil, "it is in use"
end

function undo.file(a)
  if is_mounted(a.fuse) then
    local ok, why
    if core.is_root() then
      ok, why = process.run("umount", a.fuse)
    else
      ok, why = process.run("fusermount3", "-u", a.fuse)
    end
    if not ok then
      return nil, why
    end
  end
  if a.nbdfuse then
    process.wait(END_S, function() return not process.is_alive(a.nbdfuse) end)
    if not process.stop(a.nbdfuse, END_S) then
      return nil, ("nbdfuse (process %d) does not end"):format(a.nbdfuse.pid)
    end
  end
  return true
end

function undo.server(a)
  if a.nbdkit and not process.stop(a.nbdkit, END_S) then
    return nil, ("nbdkit (process %d) does not end"):format(a.nbdkit.pid)
  end
  return true
end

function undo.state(a)
  local ok, why = process.run("rm", "-rf", "--one-file-system", "--", a.dir)
  return ok or nil, why
end

local ORDER <const> = { "mount", "loop", "file", "server", "state" }

---Take away what was attached, layer by layer; stops at the first that does not go, and can be
---called again.
---@param a brim.Attachment
---@return true? ok
---@return brim.Error? err
function M.undo(a)
  for _, layer in ipairs(ORDER) do
    local ok, why = undo[layer](a)
    if not ok then
      return nil, errors.new { code = "EBUSY", op = "detach", path = a.mount or a.file,
        message = ("%s: the %s does not go away: %s"):format(a.mount or a.loop or a.file, layer,
          why:gsub("\n", "; ")) }
    end
  end
  return true
end

---Find what is attached by its directory, file, loop device, socket or id.
---@param name string
---@return brim.Attachment? attachment
---@return brim.Error? err
function M.find(name)
  local path = process.absolute(name)
  local list = M.list()
  for _, key in ipairs { "mount", "file", "loop", "socket", "dir", "fuse" } do
    for _, a in ipairs(list) do
      if a[key] == path then
        return a
      end
    end
  end
  local found = {}
  for _, a in ipairs(list) do
    if a.id == name then
      return a
    elseif a.target == path or a.overlay == path then
      found[#found + 1] = a
    end
  end
  if #found > 1 then
    return nil, errors.usage("%s is attached %d times; name one of 'brim attach --list'", name,
      #found)
  end
  return found[1], errors.usage("nothing is attached at %s%s", name,
    #list > 0 and "; 'brim attach --list' shows what is" or "")
end

-- -------------------------------------------------------------------- attach

local function failed(a, what, why)
  return nil, errors.new { op = "attach", path = a.target, message = ("%s: %s"):format(what,
    why ~= "" and why:gsub("\n", "; ") or "no reason given") }
end

-- Waits until a program that was started is ready, as long as it runs.
local function await(a, p, log, what, is_ready)
  local ready = process.wait(START_S, function()
    return is_ready() or not process.is_alive(p)
  end)
  if ready and is_ready() then
    return true
  end
  return failed(a, what, process.tail(log))
end

local steps = {}

function steps.server(a, o)
  local words, err = serve.words(o.look, a.socket)
  if not words then
    return nil, err
  end
  local log = a.dir .. "/nbdkit.log"
  local p, why = process.start(log, table.unpack(words))
  if not p then
    return failed(a, "nbdkit", why)
  end
  a.nbdkit = p
  save(a)
  return await(a, p, log, "nbdkit", function()
    return serve.is_listening(a.socket)
  end)
end

function steps.file(a)
  local log = a.dir .. "/nbdfuse.log"
  local words = { "nbdfuse", a.file, "--unix", a.socket }
  if a.readonly then
    table.insert(words, 2, "--readonly")
  end
  assert(process.run("mkdir", "-m", "700", a.fuse))
  local p, why = process.start(log, table.unpack(words))
  if not p then
    return failed(a, "nbdfuse", why)
  end
  a.nbdfuse = p
  save(a)
  return await(a, p, log, "nbdfuse", function()
    return is_mounted(a.fuse) and (process.run("test", "-f", a.file))
  end)
end

function steps.loop(a, o)
  if not o.loop then
    return true
  end
  -- Buffered: the page cache of the loop device does what that of the file need not.
  local words = { "losetup", "--find", "--show", "--direct-io=off" }
  if a.readonly then
    words[#words + 1] = "--read-only"
  end
  if o.sector_bytes then
    words[#words + 1] = ("--sector-size=%d"):format(o.sector_bytes)
  end
  words[#words + 1] = a.file
  local ok, out = process.run(table.unpack(words))
  local loop = out:match("(/dev/%S+)%s*$")
  if not ok or not loop then
    return failed(a, "losetup", out)
  end
  a.loop = loop
  save(a)
  return true
end

function steps.mount(a, o)
  if not o.mount then
    return true
  end
  a.mount = process.absolute(o.mount)
  a.made_mount = not process.run("test", "-e", a.mount)
  save(a)
  if a.made_mount then
    local ok, why = process.run("mkdir", "--", a.mount)
    if not ok then
      return failed(a, "mount", why)
    end
  end
  local words = { "mount" }
  local options = o.mount_options
  if a.readonly then
    options = options and "ro," .. options or "ro"
  end
  if options then
    words[2], words[3] = "-o", options
  end
  words[#words + 1] = a.loop
  words[#words + 1] = a.mount
  local ok, why = process.run(table.unpack(words))
  if not ok then
    return failed(a, "mount", why)
  end
  return true
end

local NEEDS <const> = {
  { "nbdkit", "nbdkit" }, { "nbdfuse", "libnbd-bin" }, { "setsid", "util-linux" },
}

-- What is missing on this machine or cannot be asked for, before anything is made.
local function check(o)
  for _, need in ipairs(NEEDS) do
    if not process.has(need[1]) then
      return nil, serve.missing(need[1], need[2])
    end
  end
  if not core.is_root() and (o.mount or o.loop) then
    return nil, errors.skip("a loop device and mounting need root; without them there is the file")
  elseif o.mount and o.loop == false then
    return nil, errors.usage("--mount goes with a loop device")
  elseif o.mount_options and not o.mount then
    return nil, errors.usage("--mount-options goes with --mount")
  elseif o.mount and is_mounted(process.absolute(o.mount)) then
    return nil, errors.usage("--mount: something is mounted at %s already", o.mount)
  elseif o.mount and process.run("test", "-e", o.mount) and not process.run("test", "-d", o.mount)
  then
    return nil, errors.usage("--mount: %s is no directory", o.mount)
  end
  return true
end

-- An image is never written to itself: without an overlay named, one beside it takes what is
-- written.
local function with_overlay(target, o)
  local plain <close> = device.open(target)
  if plain and plain:info().kind == "image" and not o.overlay and not o.readonly then
    o.overlay = target .. ".overlay"
  end
  return o
end

---Attach a target: as a file, for root as a loop device, with `mount` also mounted. What fails half
---way is undone. What is written to an image goes to `overlay`, by default TARGET.overlay.
---@param target string
---@param o? brim.AttachOpts
---@return brim.Attachment? attachment
---@return brim.Error? err
function M.attach(target, o)
  o = opts.check(o, SCHEMA, "brim.attach.attach")
  local ok, err = check(o)
  if not ok then
    return nil, err
  end
  o.look, err = serve.look(target, with_overlay(target, o))
  if not o.look then
    return nil, err
  end
  if o.loop == nil then
    o.loop = core.is_root()
  end
  local a
  a, err = make_state(o.look)
  if not a then
    return nil, err
  end
  for _, step in ipairs { "server", "file", "loop", "mount" } do
    ok, err = steps[step](a, o)
    if ok and core.interrupted() then
      ok, err = nil, errors.new { code = "EINTR", message = "interrupted" }
    end
    if not ok then
      break
    end
  end
  if ok then
    return a
  end
  local undone, why = M.undo(a)
  if not undone then
    err.message = ("%s (and not all of it could be undone: %s; 'brim detach %s' tries again)")
      :format(err.message, why.message, a.id)
  end
  return nil, err
end

return M
