-- brim.lab.machine: one guest from its start to its end: the kernel's command line, the lines that
-- come out, how it ended, and that nothing of it stays. Called by lab. Durations are seconds.
local core = require "brim.core"
local errors = require "brim.error"
local image = require "brim.lab.image"
local process = require "brim.process"
local state = require "brim.lab.state"

local M = {}

local CONSOLE_LINES <const> = 12 -- of the console in an error
local LEFT_S <const> = 10 -- for poweroff after the script has ended

---@class brim.LabGuest
---@field job table what was asked for
---@field dir string its state
---@field results string directory
---@field kernel brim.LabKernel
local Guest = {}
Guest.__index = Guest
Guest.__name = "brim.lab.guest"

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a" or ""
end

-- The words that start it.
local function command(self)
  local job, dir = self.job, self.dir
  local words = { "env", "-u", "LD_PRELOAD", "BRIM_LAB=" .. dir }
  if process.run("test", "-w", "/dev/shm") then
    words[#words + 1] = "TMPDIR=/dev/shm" -- the guest's memory is a file there
  end
  table.move(job.shim, 1, #job.shim, #words + 1, words)
  -- A kernel that panics dumps core, which nobody wants.
  for _, word in ipairs { "sh", "-c", 'ulimit -c 0; exec "$@"', "sh", self.kernel.path,
    ("mem=%d"):format(job.mem), "initrd=" .. job.initramfs, "con=null", "con0=null,fd:1", "quiet",
    "panic=1", "uml_dir=" .. dir .. "/uml", "umid=guest", "brim_lab=" .. dir } do
    words[#words + 1] = word
  end
  for i, d in ipairs(job.disks) do
    words[#words + 1] = ("ubd%d%s=%s"):format(i - 1, d.readonly and "r" or "", d.link)
  end
  return words
end

---Start a guest whose job is complete. Close it: that ends it, if it still runs, and removes all
---that is not a result.
---@param job table kernel, dir, results, initramfs, disks, mem, shim
---@return brim.LabGuest? guest
---@return brim.Error? err
function M.start(job)
  local self = setmetatable({ job = job, dir = job.dir, results = job.results,
    kernel = job.kernel, read_bytes = 0, rest = "", started_s = core.monotonic_s() }, Guest)
  local _, real = process.run("readlink", "-f", job.kernel.path)
  state.write(self.dir .. "/kernel", real)
  local p, why = process.start(self.results .. "/console.log", table.unpack(command(self)))
  if not p then
    self:close()
    return nil, errors.new { code = "EIO", errno = 5, op = "lab", path = job.kernel.path,
      message = ("%s does not start: %s"):format(job.kernel.path, why or "it is gone at once") }
  end
  self.process = p
  state.write(self.dir .. "/session", tostring(p.pid))
  return self
end

-- Hands out the lines that have come since; the last, unfinished one at the end only.
local function hand_out(self, is_last)
  local file <close> = io.open(self.results .. "/output.log", "rb")
  if file then
    file:seek("set", self.read_bytes)
    local text = file:read "a" or ""
    self.read_bytes = self.read_bytes + #text
    self.rest = self.rest .. text
  end
  if is_last and self.rest ~= "" and self.rest:sub(-1) ~= "\n" then
    self.rest = self.rest .. "\n"
  end
  local at = 1
  while true do
    local stop = self.rest:find("\n", at, true)
    if not stop then
      break
    elseif self.job.on_line then
      self.job.on_line(self.rest:sub(at, stop - 1))
    end
    at = stop + 1
  end
  self.rest = self.rest:sub(at)
end

-- Has the script ended? A kernel that then does not go is ended by us.
local function hangs_behind(self)
  local line = process.line(self.results .. "/status")
  if line and not self.ended_s then
    self.ended_s = core.monotonic_s()
  end
  return self.ended_s and core.monotonic_s() - self.ended_s > LEFT_S + self.job.umount_s
end

---Look after a guest: hands out lines. To be called again and again, while it gives nil.
---@return string? stopped "ended", "timeout", "interrupted" or "unmounting"
function Guest:step()
  local elapsed_s = core.monotonic_s() - self.started_s
  local stopped = not process.is_alive(self.process) and "ended"
    or core.interrupted() and "interrupted" or elapsed_s > self.job.timeout_s and "timeout"
    or hangs_behind(self) and "unmounting" or nil
  if stopped then
    self.elapsed_s = elapsed_s
    state.kill(self.dir)
  end
  hand_out(self, stopped)
  return stopped
end

-- The last lines of a text that say something.
local function last_lines(text, n)
  local lines = {}
  for line in text:gmatch "[^\r\n]+" do
    if line:find "%S" then
      lines[#lines + 1] = line
    end
  end
  return table.concat(lines, "\n", math.max(1, #lines - n + 1))
end

-- What a guest's disk could not do, as where its image lies is full: the script may not have seen.
local function disk_error(self, console)
  local line = console:match "[^\r\n]* error, dev ubd[^\r\n]*"
  local paths = {}
  for i, d in ipairs(self.job.disks) do
    paths[i] = d.path
  end
  local full = line and image.full(paths)
  return line and line .. (full and (" (the filesystem of %s is full)"):format(full) or "")
end

-- Why there is no status: said by init, by the kernel, or by a disk that is full.
local function reason(self, console)
  local said = console:match "brim lab: ([^\r\n]*)"
  local places = { self.results, self.dir }
  for _, d in ipairs(self.job.disks) do
    places[#places + 1] = d.path
  end
  local full = image.full(places)
  local panic = console:match "Kernel panic[^\r\n]*"
  if panic then
    return "EIO", ("the guest's kernel panicked (%s); its last lines:\n%s"):format(panic,
      last_lines(console, CONSOLE_LINES))
  elseif said and not said:find "^status" then
    return "EIO", "the guest did not start: " .. said
  elseif full then
    return "ENOSPC", ("the filesystem of %s is full"):format(full)
  end
  return "EIO", ("the guest ended without a status%s; the last lines of its console:\n%s"):format(
    said and " (" .. said .. ")" or "", last_lines(console, CONSOLE_LINES))
end

local function failed(self, result, code, why)
  return nil, errors.new { code = code, op = "lab", path = self.job.script, result = result,
    message = ("%s on %s: %s"):format(self.job.script, self.kernel.version, why) }
end

---Tell how a guest ended. What it wrote until then stays, also with an error, whose `result` is it.
---@param stopped string as step gave it
---@return brim.LabResult? result
---@return brim.Error? err
function Guest:result(stopped)
  local console = read(self.results .. "/console.log")
  local status, release = read(self.results .. "/status"):match "^(%d+) (%S+)"
  local error_text = read(self.results .. "/error.log")
  local r = { status = math.tointeger(tonumber(status)), kernel = release or self.kernel.version,
    console = console, error_text = error_text, results = self.results,
    elapsed_s = self.elapsed_s }
  r.ok = r.status == 0
  r.disk_error = disk_error(self, console)
  if r.status then
    r.message = not r.ok and last_lines(error_text, 1) or nil
    r.stopped = stopped ~= "ended" and stopped or nil
    return r
  elseif stopped == "interrupted" then
    r.stopped = stopped
    return r
  elseif stopped == "timeout" then
    r.stopped = stopped
    return failed(self, r, "ETIMEDOUT", ("not done after %g s, so it was ended; what it wrote "
      .. "until then is in %s"):format(self.job.timeout_s, self.results))
  end
  return failed(self, r, reason(self, console))
end

---End a guest and remove all that is not a result. May be called again.
function Guest:close()
  if self.dir then
    state.remove(self.dir)
    self.dir = nil
  end
end

Guest.__close = Guest.close
Guest.__gc = Guest.close

function Guest:__tostring()
  return ("brim.lab.guest (%s%s)"):format(self.kernel.version, self.dir and "" or ", closed")
end

return M
