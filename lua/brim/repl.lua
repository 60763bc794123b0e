-- brim.repl: the interactive prompt: expressions and statements over many lines, values printed for
-- people, help(x), history and completion where the build has line editing. Called by `brim repl`.
local core = require "brim.core"
local errors = require "brim.error"
local help = require "brim.help"
local pretty = require "brim.pretty"

local M = {}

local PROMPT <const>, MORE <const> = "brim> ", "   -> "

local KEYWORDS <const> = {
  "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
  "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
}

-- ------------------------------------------------------------------ completion

-- Keys of a value, those that its metatable's __index table adds included.
local function each_key(v, visit)
  local hops = 0
  while v ~= nil and hops < 8 do
    if type(v) == "table" then
      for key, value in next, v do
        if type(key) == "string" and key:find("^[%a_][%w_]*$") then
          visit(key, value)
        end
      end
      if type(rawget(v, "_submodules")) == "table" then
        for key in pairs(v._submodules) do
          visit(key, {})
        end
      end
    end
    local mt = getmetatable(v)
    local index = type(mt) == "table" and rawget(mt, "__index") or nil
    v = type(index) == "table" and index ~= v and index or nil
    hops = hops + 1
  end
end

-- The value of a chain of names such as a.b.c; nothing is called on the way.
local function follow(env, chain)
  local v = env
  for name in chain:gmatch("[%a_][%w_]*") do
    if type(v) ~= "table" and type(v) ~= "userdata" and type(v) ~= "string" then
      return nil
    end
    local ok, next_v = pcall(function() return v[name] end)
    if not ok then
      return nil
    end
    v = next_v
  end
  return v
end

---List what the last word of a line may become: whole words that replace it, sorted.
---@param line string up to the cursor
---@param env? table where names are looked up, default _G
---@return string[] words
---@return integer start byte where the last word begins
function M.complete(line, env)
  env = env or _G
  local start, chain = line:match("()([%a_][%w_.:]*)$")
  if not start then
    start, chain = #line + 1, ""
  end
  local parent, separator, prefix = chain:match("^(.*)([.:])([^.:]*)$")
  local words, seen = {}, {}
  local function add(key, value)
    -- Metamethods and what is private are not offered unless somebody began to type them.
    if key:find("^_") and not (prefix or chain):find("^_") then
      return
    end
    if key:sub(1, #(prefix or chain)) == (prefix or chain) and not seen[key]
      and not (separator == ":" and type(value) ~= "function") then
      seen[key] = true
      words[#words + 1] = (parent and parent .. separator or "") .. key
    end
  end
  each_key(parent and follow(env, parent) or not parent and env or nil, add)
  for _, word in ipairs(parent and {} or KEYWORDS) do
    add(word)
  end
  table.sort(words)
  return words, start
end

-- ------------------------------------------------------------------ evaluation

-- A local would be gone by the next prompt: at the start of an input it makes a global.
local function without_local(text)
  text = text:gsub("^%s*local%s+function%s", "function ")
  return (text:gsub("^%s*local%s+([%a_][%w_, ]*=)", "%1"))
end

-- Compiles a text as an expression if it is one; nil and true when it only lacks its end.
local function compile(text, env)
  text = without_local(text:gsub("^%s*=", "return "))
  local chunk = load("return " .. text, "=repl", "t", env)
  if chunk then
    return chunk
  end
  local why
  chunk, why = load(text, "=repl", "t", env)
  if chunk then
    return chunk
  end
  return nil, why:sub(-5) == "<eof>", why
end

local function print_error(err, out)
  local text = tostring(err):gsub("^repl:%d+: ", "")
  out:write("error: ", text, "\n")
end

local function print_values(out, ...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    out:write(errors.is(v) and tostring(v) or pretty.format(v), "\n")
  end
end

---Evaluate one complete input and print its values or its error.
---@param chunk function
---@param out file*
---@return boolean ok
function M.evaluate(chunk, out)
  core.clear_interrupt()
  local results = table.pack(pcall(chunk))
  local interrupted = core.interrupted()
  core.clear_interrupt()
  if interrupted and not results[1] then
    out:write("interrupted\n")
  elseif not results[1] then
    print_error(results[2], out)
  elseif results.n == 3 and results[2] == nil and errors.is(results[3]) then
    print_error(results[3], out)
  else
    print_values(out, table.unpack(results, 2, results.n))
  end
  return results[1]
end

-- ----------------------------------------------------------------------- input

-- What input comes from: read(prompt) -> line, or nil at the end, and whether Ctrl-C dropped it;
-- remember(line); close().
local function edited(edit)
  return {
    read = function(prompt) return edit:readline(prompt) end,
    remember = function(line) edit:add_history(line) end,
    close = function() edit:close() end,
  }
end

local function plain(is_tty)
  local function nothing() end
  return {
    read = function(prompt)
      if is_tty then
        io.stdout:write(prompt):flush()
      end
      return io.stdin:read("l"), core.interrupted()
    end,
    remember = nothing,
    close = nothing,
  }
end

local function open_input(is_tty, env)
  local home = os.getenv("HOME")
  local edit = is_tty and core.edit_open {
    history_path = home and home .. "/.brim_history",
    complete = function(line) return M.complete(line, env) end,
  }
  return edit and edited(edit) or plain(is_tty)
end

-- Reads lines until they make a whole input: its chunk, or nil and the reason; false at the end.
local function read_input(input, env)
  local text, prompt = nil, PROMPT
  while true do
    local line, dropped = input.read(prompt)
    if dropped then
      core.clear_interrupt()
      return nil
    elseif not line and not text then
      return false
    elseif not line then
      return nil, "the input ends too early"
    end
    input.remember(line)
    text = text and text .. "\n" .. line or line
    if text:find("^%s*$") then
      return nil
    end
    local chunk, is_open, why = compile(text, env)
    if chunk or not is_open then
      return chunk, why
    end
    prompt = MORE
  end
end

local function environment(out)
  local env = setmetatable({}, { __index = _G })
  env._G = env
  env.brim = require "brim"
  function env.help(what)
    if what == nil then
      what = "brim"
    end
    out:write(help.text(what) or "nothing is known about it\n")
  end
  function env.print(...)
    local parts = table.pack(...)
    for i = 1, parts.n do
      parts[i] = type(parts[i]) == "table" and pretty.format(parts[i]) or tostring(parts[i])
    end
    out:write(table.concat(parts, "\t"), "\n")
  end
  return env
end

---Run the prompt until the input ends. From a pipe it prints no prompts, and an error ends with
---status 1 after the rest has run.
---@param o? table brim's own options
---@return integer status
function M.main(o)
  local is_tty = core.isatty(0)
  local out = io.stdout
  local env = environment(out)
  local input = open_input(is_tty, env)
  if is_tty and not (o and o.quiet) then
    out:write(("brim %s: help() tells what there is, Ctrl-D ends\n"):format(core.version))
  end
  local status = 0
  while true do
    local chunk, why = read_input(input, env)
    if chunk == false then
      break
    elseif why then
      print_error(why, out)
      status = 1
    elseif chunk and not M.evaluate(chunk, out) then
      status = 1
    end
    core.clear_interrupt()
  end
  input.close()
  if is_tty then
    out:write("\n")
  end
  return is_tty and 0 or status
end

return M
