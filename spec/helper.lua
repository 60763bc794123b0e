-- What the specs share: assertions, scratch directories, running programs. busted loads it first;
-- specs say `local helper = require "spec.helper"`.
local assert = require "luassert"
local say = require "say"

local M = {}

if os.getenv("BRIM_GC") == "stress" then
  collectgarbage("setpause", 0)
  collectgarbage("setstepmul", 1000)
end

-- ------------------------------------------------------------------ assertions

-- assert.int(value, expected): equal, and an integer; assert.equal takes 1.0 for 1.
local function int(_, arguments)
  return math.type(arguments[1]) == "integer" and arguments[1] == arguments[2]
end

say:set("assertion.int.positive", "Expected the integer:\n%s\nto be:\n%s")
say:set("assertion.int.negative", "Expected not the integer:\n%s\n%s")
assert:register("assertion", "int", int, "assertion.int.positive", "assertion.int.negative")

-- assert.refuses(code, f(...)): f returned nil and a brim error with that code.
local function refuses(state, arguments)
  local code, result, err = arguments[1], arguments[2], arguments[3]
  state.failure_message = ("expected nil and %s, got %s and %s"):format(code, tostring(result),
    tostring(type(err) == "table" and err.code or err))
  return result == nil and type(err) == "table" and err.code == code
end

say:set("assertion.refuses.positive", "Expected a refusal with %s")
assert:register("assertion", "refuses", refuses, "assertion.refuses.positive",
  "assertion.refuses.positive")

-- -------------------------------------------------------------------- programs

---Quote a word for the shell.
function M.quote(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

---Run a shell command; its output, stdout and stderr in one, and its exit status.
function M.sh(fmt, ...)
  local command = select("#", ...) > 0 and fmt:format(...) or fmt
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1"))
  local out = pipe:read("a")
  local _, how, status = pipe:close()
  return out, how == "signal" and 128 + status or status
end

---Run a shell command that must succeed; its output.
function M.must(fmt, ...)
  local out, status = M.sh(fmt, ...)
  if status ~= 0 then
    local command = select("#", ...) > 0 and fmt:format(...) or fmt
    error(("'%s' ended with %d:\n%s"):format(command, status, out), 2)
  end
  return out
end

---Is a program installed?
function M.has(program)
  local _, status = M.sh("command -v " .. M.quote(program))
  return status == 0
end

M.root = M.must("pwd"):gsub("\n$", "")
M.build = os.getenv("BRIM_BUILD") or "build"
M.exe = M.root .. "/" .. M.build .. "/brim"

---Run build/brim with words; stdout, stderr and the exit status.
function M.brim(...)
  local words = { M.quote(M.exe) }
  for _, word in ipairs { ... } do
    words[#words + 1] = M.quote(word)
  end
  local err_path = os.tmpname()
  local pipe = assert(io.popen(table.concat(words, " ") .. " 2>" .. err_path))
  local out = pipe:read("a")
  local _, how, status = pipe:close()
  local err = M.read(err_path)
  os.remove(err_path)
  return out, err, how == "signal" and 128 + status or status
end

function M.is_root()
  return require("brim.core").is_root()
end

-- ----------------------------------------------------------------------- files

---Read a whole file.
function M.read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

---Write a whole file.
function M.write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(text))
end

local made

---The scratch directory of this spec file; run-tests removes it.
function M.dir()
  if not made then
    made = M.must("mktemp -d"):gsub("\n$", "")
  end
  return made
end

local numbered = 0

---A path in the scratch directory that does not exist yet.
function M.path(name)
  numbered = numbered + 1
  return ("%s/%d-%s"):format(M.dir(), numbered, name or "file")
end

return M
