-- brim.serve: serves a target (an image, a file or a device, with an overlay over it) as a network
-- block device: finds nbdkit and brim's plugin for it, looks at the target first so that what is
-- wrong is said in one line. Called by the recipe serve and by attach.
local device = require "brim.device"
local errors = require "brim.error"
local opts = require "brim.opts"
local process = require "brim.process"

local M = {}

local PLUGIN <const> = "nbdkit-brim-plugin.so"
local SOCKET_BYTES <const> = 107 -- sun_path of unix(7), without the zero

---@class brim.ServeOpts
---@field socket string path of the unix socket
---@field overlay? string file that takes what is written
---@field readonly? boolean
---@field socket_mode? string octal, default 0600

local SCHEMA = {
  socket = { type = "path", required = true, doc = "path of the unix socket" },
  overlay = { type = "path", doc = "file that takes what is written" },
  readonly = { type = "bool", default = false, doc = "nothing is written" },
  socket_mode = { type = "string", default = "0600", doc = "who may connect, octal" },
}

---The error for a program that is not there.
---@param name string
---@param package string Debian's
---@return brim.Error
function M.missing(name, package)
  return errors.skip("%s is not installed (Debian, Ubuntu: apt install %s)", name, package)
end

local function exists(path)
  local file <close> = io.open(path)
  return file ~= nil
end

local function directory(path)
  return path:match("^(.*)/[^/]*$") or "."
end

-- Where the plugin may be: beside the executable, beside the module of a source tree, below the
-- prefix of either.
local function places()
  local list = {}
  local here = directory(process.executable())
  list[1], list[2] = here, here .. "/../lib/nbdkit/plugins"
  local module = package.searchpath("brim.core", package.cpath)
  if module then
    list[3] = directory(module) .. "/../.."
    list[4] = directory(module) .. "/../../../nbdkit/plugins"
  end
  return list
end

---Find nbdkit's plugin of brim. BRIM_NBDKIT_PLUGIN names it outright.
---@return string? path or its name, where nbdkit itself knows it
---@return brim.Error? err
function M.plugin()
  local named = os.getenv("BRIM_NBDKIT_PLUGIN")
  if named and named ~= "" then
    return named
  elseif not process.has("nbdkit") then
    return nil, M.missing("nbdkit", "nbdkit")
  end
  for _, dir in ipairs(places()) do
    local path = ("%s/%s"):format(dir, PLUGIN)
    if exists(path) then
      return process.absolute(path)
    end
  end
  local _, config = process.run("nbdkit", "--dump-config")
  local dir = config:match("plugindir=([^\n]*)")
  if dir and exists(("%s/%s"):format(dir, PLUGIN)) then
    return "brim"
  end
  return nil, errors.skip("%s is nowhere: brim was built without nbdkit's headers (Debian, "
    .. "Ubuntu: apt install nbdkit-plugin-dev, then make)", PLUGIN)
end

---Look at a target the way it is going to be served, making the overlay: what it is, or why not.
---@param target string
---@param o { overlay?: string, readonly?: boolean }
---@return table? look target, overlay, size_bytes, kind, readonly
---@return brim.Error? err
function M.look(target, o)
  if not o.overlay then
    local base, overlay = device.resolve(target)
    if not base then
      return nil, overlay
    end
    target, o = base, { overlay = overlay, readonly = o.readonly }
  end
  local plain <close>, err = device.open(target)
  if not plain then
    return nil, err
  end
  local info = plain:info()
  local readonly = o.readonly or info.kind == "image" and not o.overlay
  if o.overlay or not readonly then
    plain:close()
    local opened <close>, why = device.open(target, { write = not readonly, overlay = o.overlay,
      force = true, buffered = true })
    if not opened then
      return nil, why
    end
  end
  return { target = process.absolute(target), size_bytes = info.size_bytes, kind = info.kind,
    overlay = o.overlay and process.absolute(o.overlay), readonly = readonly or false }
end

---Does somebody listen at a unix socket?
---@param path string
---@return boolean
function M.is_listening(path)
  local file <close> = io.open("/proc/net/unix")
  for line in file and file:lines() or function() end do
    local flags, where = line:match("^%S+ %S+ %S+ (%x+) %S+ %S+ +%S+ (.*)$")
    if where == path and tonumber(flags, 16) & 0x10000 ~= 0 then -- __SO_ACCEPTCON
      return true
    end
  end
  return false
end

-- A socket that a killed server left is taken away; any other thing is not.
local function free_socket(path)
  if #path > SOCKET_BYTES then
    return nil, errors.usage("--socket: %s is longer than the %d bytes a socket's path may have",
      path, SOCKET_BYTES)
  elseif not process.run("test", "-e", path) then
    return true
  elseif not process.run("test", "-S", path) then
    return nil, errors.usage("--socket: %s is there and no socket", path)
  elseif M.is_listening(path) then
    return nil, errors.usage("--socket: somebody serves at %s already", path)
  end
  return os.remove(path)
end

local function check_mode(mode)
  if not mode:find("^0?[0-7][0-7][0-7]$") then
    return nil, errors.usage("--socket-mode: '%s' is no octal mode like 0660", mode)
  end
  return true
end

---The words that make nbdkit serve a target that was looked at, in the foreground.
---@param look table what look() gave
---@param socket string
---@param socket_mode? string octal, default 0600
---@return string[]? words
---@return brim.Error? err
function M.words(look, socket, socket_mode)
  local plugin, err = M.plugin()
  if not plugin then
    return nil, err
  end
  local words = { "nbdkit", "--foreground", "--unix", socket, plugin, "file=" .. look.target,
    "readonly=" .. tostring(look.readonly), "socketmode=" .. (socket_mode or "0600") }
  if look.overlay then
    words[#words + 1] = "overlay=" .. look.overlay
  end
  return words
end

---Serve a target until nbdkit is told to end (Ctrl-C, SIGTERM), or this process is gone.
---@param target string
---@param o brim.ServeOpts and `ready`, called when all is well and before nbdkit starts
---@return { ok: boolean, socket: string, readonly: boolean }? result
---@return brim.Error? err
function M.run(target, o)
  local ready = o.ready or function() end
  o = opts.check({ socket = o.socket, overlay = o.overlay, readonly = o.readonly,
    socket_mode = o.socket_mode }, SCHEMA, "brim.serve.run")
  local socket = process.absolute(o.socket)
  local look, words
  local ok, err = check_mode(o.socket_mode)
  if ok then
    ok, err = free_socket(socket)
  end
  if ok then
    look, err = M.look(target, o)
  end
  if look then
    words, err = M.words(look, socket, o.socket_mode)
  end
  if not words then
    return nil, err
  end
  table.insert(words, 2, "--exit-with-parent")
  ready(look, socket)
  local ended, how, status = os.execute("exec " .. process.quote(table.unpack(words)))
  os.remove(socket)
  if not ended then
    return nil, errors.new { op = "serve", path = target, message = ("nbdkit ended with %s %d")
      :format(how == "signal" and "signal" or "status", status) }
  end
  return { ok = true, socket = socket, readonly = look.readonly }
end

return M
