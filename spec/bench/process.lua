-- spec.bench.process: runs a command and says what it took: wall time, CPU, memory. The CPU is that
-- of the process and its threads (io_uring's among them), not of the kernel's own workers behind a
-- loop device.
local json = require "brim.json"
local scratch = require "scratch"
local shell = require "shell"

local M = {}

---@class bench.Took
---@field wall_s number
---@field user_s number
---@field system_s number
---@field cpu_s number
---@field peak_rss_bytes integer
---@field read_bytes integer by read(2) and its like; what a ring moved is not counted
---@field read_calls integer
---@field disk_read_bytes integer what storage had to move for it
---@field is_stopped boolean it took longer than it might
---@field output string what it printed

M.BRIM = (os.getenv "B" or "build") .. "/brim"

-- mkfs.xfs takes sizes below its limits when these are set, as xfstests does; brim does the same.
M.UNSUPPORTED = { TEST_DIR = "/nowhere", TEST_DEV = "/nowhere", QA_CHECK_FS = "1" }

local function read_all(path)
  local file <close> = assert(io.open(path))
  return file:read("a")
end

local programs = {}

---Build a C program of this directory, once.
---@param name string
---@param libraries? string
---@return string path
function M.program(name, libraries)
  if not programs[name] then
    programs[name] = scratch.path(name)
    shell.run("${CC:-cc} -O1 -D_GNU_SOURCE -o %q %q " .. (libraries or ""), programs[name],
      ("spec/bench/%s.c"):format(name))
  end
  return programs[name]
end

-- The end of what a command said, for an error in one line.
local function last_line(text)
  return text:match("([^\n]*)\n*$")
end

---Run a command. Raises when its exit status is not 0, except when it was stopped.
---@param argv string[] with env = { NAME = value }; limit_s: whole seconds until it is stopped
---@return bench.Took
function M.measure(argv)
  local program, words = M.program "measure", {}
  for name, value in pairs(argv.env or {}) do
    words[#words + 1] = name .. "=" .. shell.quote(value)
  end
  words[#words + 1] = "exec " .. shell.quote(program)
  local result, out, err = scratch.path "result", scratch.path "stdout", scratch.path "stderr"
  words[#words + 1] = shell.quote(result)
  words[#words + 1] = tostring(argv.limit_s or 0)
  for _, word in ipairs(argv) do
    words[#words + 1] = shell.quote(word)
  end
  local command = table.concat(words, " ") .. shell.format(" >%q 2>%q </dev/null", out, err)
  local _, how, status = os.execute(command)
  if status ~= 0 then
    shell.check(argv[1], how, status)
  end
  local took = assert(json.decode(read_all(result)))
  if took.status ~= 0 and not took.is_stopped then
    shell.check(argv[1], "exit", took.status == 130 and 130 or 0)
    error(("%s: exit status %d: %s"):format(argv[1], took.status, last_line(read_all(err))), 0)
  end
  took.cpu_s = took.user_s + took.system_s
  took.output = read_all(out)
  return took
end

---Run build/brim with --json; what it reported of itself comes as `result`.
---@param argv string[] options of brim, recipe, arguments
---@return bench.Took
function M.brim(argv)
  local took = M.measure(table.move(argv, 1, #argv, 3, { M.BRIM, "--json", env = argv.env }))
  took.result = assert(json.decode(took.output))
  return took
end

return M
