-- brim.lab: runs a Lua script inside a guest with a kernel of its own, where it may mount and write
-- a real F2FS: no root, nothing of the host changed but the disks and one directory of results.
-- Called by scripts and the recipe lab. Sizes are bytes, durations seconds.
local core = require "brim.core"
local errors = require "brim.error"
local image = require "brim.lab.image"
local initramfs = require "brim.lab.initramfs"
local json = require "brim.json"
local kernels = require "brim.lab.kernels"
local machine = require "brim.lab.machine"
local opts = require "brim.opts"
local process = require "brim.process"
local state = require "brim.lab.state"

local M = {}

---@class brim.LabOpts
---@field script string file that runs in the guest, as by `brim run`
---@field args? any what brim.lab.guest.args() gives there; a list is the script's words, too
---@field kernel? string "uml-6.1", "uml" (the newest), or a path; default "uml"
---@field disks? (string|{ path: string, readonly?: boolean })[] images, the guest's disks
---@field results? string directory that the guest may write; default: a new one in TMPDIR
---@field mem? integer|string memory; default "512m"
---@field timeout_s? number default 600
---@field umount_s? number time that the guest has to unmount after the script; default 60
---@field on_line? fun(line: string) called with each line that the script prints, as it does
---@field env? table<string, string> environment of the script
---@field shim? string[] words for env(1) in front of the kernel, as drive:environment() gives them

---@class brim.LabResult
---@field ok boolean did the script end with status 0?
---@field status? integer of the script; nil when it was interrupted
---@field stopped? string "interrupted", "timeout", or "unmounting": the script had ended, its disks
---were not unmounted in time
---@field message? string the last line the script said on stderr, when it failed
---@field disk_error? string the first error of a disk that the guest's kernel told of
---@field kernel string its version, as the guest says
---@field console string what the kernel said
---@field error_text string what the script said on stderr
---@field results string directory: output.log, error.log, console.log, status, and the script's own
---@field elapsed_s number

local SCHEMA = {
  script = { type = "path", required = true, doc = "file to run in the guest" },
  args = { type = "any", doc = "for the script" },
  kernel = { type = "string", default = "uml", doc = "uml-6.1, uml (the newest) or a path" },
  disks = { type = "table", doc = "images" },
  results = { type = "path", doc = "directory that the guest may write" },
  mem = { type = "bytes", default = "512m", doc = "memory of the guest" },
  timeout_s = { type = "number", default = 600, min = 1, doc = "it is ended after so long" },
  umount_s = { type = "number", default = 60, min = 0, doc = "time to unmount after the script" },
  on_line = { type = "function", doc = "gets what the script prints" },
  env = { type = "table", doc = "environment of the script" },
  shim = { type = "table", doc = "environment of the kernel, NAME=VALUE" },
}

local POLL_S <const> = 0.03
local MAX_DISKS <const> = 8
local MIN_MEM <const> = 64 << 20

M.guest = require "brim.lab.guest"
M.snapshot = image.snapshot

---List the kernels that are here, the oldest first.
---@return brim.LabKernel[]
function M.kernels()
  return kernels.list()
end

-- ------------------------------------------------------------------- the job

local function host_memory()
  for line in io.lines "/proc/meminfo" do
    local kib = line:match "^MemTotal:%s*(%d+) kB"
    if kib then
      return tonumber(kib) * 1024
    end
  end
end

-- Checked before anything is made.
local function look(o)
  local file, why = io.open(o.script)
  if not file then
    return nil, errors.usage("script: %s", why)
  end
  file:close()
  local _, script = process.run("realpath", "--", o.script)
  if o.mem < MIN_MEM then
    return nil, errors.usage("mem: %d bytes are too few for a guest; at least 64m", o.mem)
  elseif o.mem > host_memory() then
    return nil, errors.usage("mem: %d bytes are more than this machine has", o.mem)
  elseif o.disks and #o.disks > MAX_DISKS then
    return nil, errors.usage("disks: %d are too many; at most %d", #o.disks, MAX_DISKS)
  end
  for _, word in ipairs(o.shim or {}) do
    local library = tostring(word):match "^LD_PRELOAD=(.*)$"
    if not tostring(word):find "^[%a_][%w_]*=" then
      return nil, errors.usage("shim: '%s' is not of the form NAME=VALUE", word)
    elseif library and not process.run("test", "-r", library) then
      return nil, errors.usage("shim: %s cannot be read", library)
    end
  end
  for name in pairs(o.env or {}) do
    if not tostring(name):find "^[%a_][%w_]*$" then
      return nil, errors.usage("env: '%s' is no name of a variable", name)
    end
  end
  return script
end

-- Results of an earlier run in the same place would be taken for this one's.
local function make_results(path)
  local ok, out
  if path then
    path = process.absolute(path)
    ok, out = process.run("mkdir", "-p", "--", path)
    for _, name in ipairs { "status", "output.log", "error.log", "console.log" } do
      os.remove(path .. "/" .. name)
    end
  else
    ok, out = process.run("sh", "-c", 'mktemp -d "${TMPDIR:-/tmp}/brim-lab.XXXXXX"')
    path = out
  end
  return ok and path, not ok and errors.new { code = "EIO", errno = 5, op = "lab", path = path,
    message = ("results: %s"):format(out) } or nil
end

-- What init reads: the script, its words and environment, how many disks there shall be.
local function job_text(o, script)
  local lines = { "script=" .. process.quote("/host" .. script), "disks=" .. #(o.disks or {}),
    "set --" }
  for _, word in ipairs(type(o.args) == "table" and o.args or {}) do
    if type(word) ~= "table" then
      lines[3] = lines[3] .. " " .. process.quote(tostring(word))
    end
  end
  for name, value in pairs(o.env or {}) do
    lines[#lines + 1] = ("export %s=%s"):format(name, process.quote(value))
  end
  return table.concat(lines, "\n")
end

-- What machine.start needs; `job.dir` is there as soon as it has been made.
local function prepare(o, script, job)
  local err
  job.kernel, err = kernels.find(o.kernel)
  if job.kernel then
    job.initramfs, err = initramfs.make(job.kernel)
  end
  if job.initramfs then
    job.dir, err = state.make()
  end
  if job.dir then
    job.disks, err = image.link(o.disks or {}, job.dir)
  end
  if job.disks then
    job.results, err = make_results(o.results)
  end
  if not job.results then
    return nil, err
  end
  local ok, why = process.run("ln", "-s", "--", job.results, job.dir .. "/results")
  if ok then
    ok, why = state.write(job.dir .. "/job.sh", job_text(o, script))
  end
  if ok then
    ok, why = state.write(job.dir .. "/args.json", json.encode(o.args))
  end
  return ok, not ok and errors.new { code = "EIO", errno = 5, op = "lab", path = job.dir,
    message = why } or nil
end

---Start a guest and go on: guest:step() looks after it until it gives why it stopped,
---guest:result(stopped) is what came of it, guest:close() ends it and removes all but results.
---@param o brim.LabOpts
---@return brim.LabGuest? guest to be closed
---@return brim.Error? err
function M.start(o)
  o = opts.check(o, SCHEMA, "brim.lab")
  local script, err = look(o)
  if not script then
    return nil, err
  end
  local job = { script = script, mem = o.mem, timeout_s = o.timeout_s, umount_s = o.umount_s,
    on_line = o.on_line, shim = o.shim or {} }
  local ok, why = prepare(o, script, job)
  if not ok then
    if job.dir then
      state.remove(job.dir)
    end
    return nil, why
  end
  return machine.start(job)
end

---Run a script in a guest to its end. An error is for what kept the guest from running the script
---to an end (its `result` has what there is until then); a script that fails is a result.
---@param o brim.LabOpts
---@return brim.LabResult? result
---@return brim.Error? err
function M.run(o)
  local heeds <close> = setmetatable({}, { __close = function() core.heed_sigterm(false) end })
  core.heed_sigterm(heeds ~= nil)
  local g <close>, err = M.start(o)
  if not g then
    return nil, err
  end
  local stopped
  repeat
    core.sleep(POLL_S)
    stopped = g:step()
  until stopped
  return g:result(stopped)
end

---Remove what runs that were killed left: guests, their directories. Each start does it, too.
---@return integer removed guests
function M.sweep()
  return state.sweep()
end

return M
