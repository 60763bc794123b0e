-- brim.cli: the command line: brim's own options, the choice of a recipe, its context, output and
-- exit status: 0 ok, 1 failed, 2 usage, 77 skipped, 130 interrupted (143: by SIGTERM). Called by
-- core/main.c only. Results go to stdout; progress, logs and errors to stderr.
local core = require "brim.core"
local engine = require "brim.engine"
local errors = require "brim.error"
local json = require "brim.json"
local opts = require "brim.opts"
local progress = require "brim.progress"
local recipe = require "brim.recipe"

local M = {}

local OK <const>, FAILED <const>, USAGE <const> = 0, 1, 2
local SKIPPED <const>, SIGNALLED <const> = 77, 128 -- and the number of the signal

-- brim's own options, given before the recipe's name.
local OPTIONS <const> = {
  { "--json", type = "bool", doc = "print the result as JSON" },
  { "--dry-run", type = "bool", doc = "say what would be done and do nothing" },
  { "--yes", type = "bool", doc = "do overwrite the target" },
  { "--quiet", type = "bool", doc = "print errors and, with --json, the result only" },
  { "--progress", type = "bool", doc = "leave a line of progress at the end, terminal or not" },
  { "--progress-interval-s", type = "number", min = 0,
    doc = "least time between progress updates" },
  { "--traceback", type = "bool", doc = "say where in the code an error came from" },
  { "--version", type = "bool", doc = "print the version" },
  { "--help", type = "bool", doc = "print this help" },
}

-- How I/O is done comes first.
for i, name in ipairs(engine.NAMES) do
  local entry = { "--" .. name:gsub("_", "-") }
  for key, v in pairs(engine.SCHEMA[name]) do
    entry[key] = v
  end
  table.insert(OPTIONS, i, entry)
end

---@class brim.Context
---@field name string
---@field progress? fun(p: table): boolean? to be passed on as `progress`; nil where nobody looks
---@field progress_interval_s number to be passed on beside it
---@field engine_opts table what was asked of engine, queue_depth, threads, max_io_bytes
---@field run_opts table engine_opts and progress in one
---@field log fun(fmt: string, ...: any) a line on stderr
---@field report fun(fmt: string, ...: any) a line for people on stdout; nothing with --json
---@field dry_run boolean
---@field yes boolean
---@field json boolean
---@field quiet boolean
---@field is_tty boolean is stderr a terminal?

---Make the context a recipe runs in.
---@param name string
---@param o? table brim's own options, as from the command line
---@return brim.Context ctx
---@return brim.Progress display to be closed after the run
function M.context(name, o)
  o = opts.check(o, OPTIONS, "brim.cli.context")
  local display = progress.open { summary = o.progress and not o.quiet }
  local ctx = { name = name, is_tty = core.isatty(2), engine_opts = {}, run_opts = {} }
  for _, key in ipairs { "dry_run", "yes", "json", "quiet" } do
    ctx[key] = o[key] or false
  end
  if display:is_active() and not o.quiet then
    ctx.progress = display.update
  end
  ctx.progress_interval_s = o.progress_interval_s or (ctx.is_tty and display.interval_s or 1)
  for _, key in ipairs(engine.NAMES) do
    ctx.engine_opts[key], ctx.run_opts[key] = o[key], o[key]
  end
  ctx.run_opts.progress = ctx.progress
  ctx.run_opts.progress_interval_s = ctx.progress_interval_s
  function ctx.log(fmt, ...)
    if not ctx.quiet then
      display:clear()
      io.stdout:flush()
      io.stderr:write(fmt:format(...), "\n")
    end
  end
  function ctx.report(fmt, ...)
    if not ctx.json and not ctx.quiet then
      display:clear()
      io.stdout:write(fmt:format(...), "\n")
    end
  end
  return ctx, display
end

-- ---------------------------------------------------------------------- errors

-- The line for people and the exit status of what was raised or returned. A message of the form
-- "where: brim.module: why" is a wrong option: bad input, whose place in the code is
-- noise.
local function judge(err)
  if core.interrupted() then
    return "interrupted", SIGNALLED + core.interrupt_signal()
  elseif errors.is(err) then
    local line = tostring(err)
    if err.errno and not err.usage and not line:find(err.code, 1, true) then
      line = ("%s (%s)"):format(line, err.code)
    end
    local status = err.code == "ESKIP" and SKIPPED or err.usage and USAGE or FAILED
    return (status == SKIPPED and "skipped: " or "") .. line, status
  end
  local line = tostring(err)
  local why = line:match("^[^\n]-:%d+: brim%.?[%w_.]*: (.*)") or line:match("^brim%.?[%w_.]*: (.*)")
  return why or line, why and USAGE or FAILED
end

local function error_table(err, line)
  local out = { message = line }
  if errors.is(err) then
    for _, key in ipairs { "code", "errno", "op", "path", "offset_bytes" } do
      out[key] = err[key]
    end
  end
  return { error = out }
end

-- Prints what went wrong and returns the exit status.
local function fail(who, err, o, trace)
  local line, status = judge(err)
  if not o.traceback then
    line = line:match("^[^\n]*")
  end
  io.stdout:flush()
  io.stderr:write(who, ": ", line, "\n")
  if o.traceback and trace then
    io.stderr:write(trace, "\n")
  end
  if o.json then
    print(json.encode(error_table(err, line)))
  end
  return status
end

local function with_trace(f, ...)
  local trace
  local results = table.pack(xpcall(f, function(err)
    trace = debug.traceback(tostring(err), 2)
    return err
  end, ...))
  return trace, table.unpack(results, 1, results.n)
end

-- --------------------------------------------------------------------- running

-- Says so when io_uring was to be had by choice of "auto" but is forbidden here.
local function tell_fallback(result, ctx)
  if result.engine == "sync" and (ctx.engine_opts.engine or "auto") == "auto" then
    local ok, why = core.probe_uring()
    if not ok then
      ctx.log("brim: io_uring is not available (%s): the sync engine did the I/O", why)
    end
  end
end

-- What a recipe returned, on stdout; the exit status.
local function show_result(result, ctx, started_s)
  if type(result) ~= "table" then
    result = {}
  end
  tell_fallback(result, ctx)
  if ctx.json then
    local out = json.object()
    for k, v in pairs(result) do
      if k ~= "text" then
        out[k] = v
      end
    end
    for k, v in pairs(core.process_usage()) do
      out[k] = v
    end
    out.wall_s = out.wall_s or core.monotonic_s() - started_s
    print(json.encode(out, { indent = ctx.is_tty }))
  elseif result.text and not ctx.quiet then
    io.stdout:write(result.text, result.text:sub(-1) == "\n" and "" or "\n")
  end
  if core.interrupted() then
    io.stderr:write("brim ", ctx.name, ": interrupted\n")
    return SIGNALLED + core.interrupt_signal()
  end
  return result.ok == false and FAILED or OK
end

local function merged(o, defaults)
  local out = {}
  for k, v in pairs(defaults or {}) do
    out[k] = v
  end
  for k, v in pairs(o) do
    out[k] = v
  end
  return out
end

-- A recipe that reads its own words may have another use for both, but hardly for --help alone.
local function wants_help(r, words)
  if r.raw_args then
    return #words == 1 and words[1] == "--help"
  end
  for _, word in ipairs(words) do
    if word == "--" then
      return false
    elseif word == "--help" or word == "-h" then
      return true
    end
  end
  return false
end

local function run_recipe(r, words, o)
  local who = "brim " .. r.name
  o = merged(o, r.defaults)
  if wants_help(r, words) then
    io.stdout:write(recipe.help(r))
    return OK
  end
  local a, why = recipe.parse(r, words)
  if not a then
    return fail(who, errors.usage("%s%s", why, M.own_option_hint(why, r.name)), o)
  elseif recipe.is_destructive(r, a) and not o.yes and not o.dry_run then
    return fail(who, errors.usage("this overwrites its target; repeat it as 'brim --yes %s ...', "
      .. "or look first with 'brim --dry-run %s ...'", r.name, r.name), o)
  end
  local started_s = core.monotonic_s()
  local ctx, display = M.context(r.name, o)
  local trace, ok, result, err = with_trace(r.run, a, ctx)
  display:close()
  if not ok then
    return fail(who, result, o, trace)
  elseif result == nil and err ~= nil then
    if errors.is(err) and r.raw_args then
      err.message = err.message .. M.own_option_hint(err.message, r.name)
    end
    return fail(who, err, o)
  end
  return show_result(result, ctx, started_s)
end

---Say where an option belongs that is brim's own and was given to a recipe.
---@param why string an "unknown option" message
---@param name string of the recipe
---@return string hint empty where it does not apply
function M.own_option_hint(why, name)
  local word = why:match("unknown option '(%-%-[%w-]+)")
    or why:match("^(%-%-[%w-]+): unknown option")
  for _, entry in ipairs(opts.entries(OPTIONS)) do
    if word == entry.flag then
      return ("; brim's own options come before the name: brim %s %s ..."):format(word, name)
    end
  end
  return ""
end

-- The first option given that a plain script would not heed.
local function recipe_option(o)
  for _, name in ipairs { "dry_run", "yes", table.unpack(engine.NAMES) } do
    if o[name] then
      return name
    end
  end
end

-- Known before it runs by the word alone: running it is what must not happen.
local function is_recipe_file(path)
  local file <close> = io.open(path)
  return file and (file:read "a" or ""):find "recipe" ~= nil
end

-- A Lua file: one that returns a recipe runs as that recipe, any other has done its work by then.
local function run_file(path, words, o)
  local refused = not is_recipe_file(path) and recipe_option(o)
  if refused then
    return fail("brim", errors.usage("--%s is for recipes; a script does what it says itself",
      refused:gsub("_", "-")), o)
  end
  local chunk, why = loadfile(path)
  if not chunk then
    return fail("brim", errors.new { message = why, usage = not io.open(path) }, o)
  end
  _G.arg = merged({ [0] = path }, words)
  local trace, ok, value = with_trace(chunk, table.unpack(words))
  if not ok then
    return fail("brim", value, o, trace)
  elseif recipe.is(value) then
    return run_recipe(value, words, o)
  end
  return core.interrupted() and SIGNALLED + core.interrupt_signal() or OK
end

-- -------------------------------------------------------------------- commands

local commands = {}

local function unknown(name, o)
  if name:find("%.lua$") or name:find("/", 1, true) then
    return fail("brim", errors.usage("unknown recipe '%s'; a file runs with 'brim run %s'", name,
      name), o)
  end
  local known = recipe.names()
  for command in pairs(commands) do
    known[#known + 1] = command
  end
  table.sort(known)
  return fail("brim", errors.usage("unknown recipe '%s'%s ('brim list' shows them)", name,
    opts.suggest(name, known)), o)
end

local function run_named(name, words, o)
  local trace, ok, r = with_trace(recipe.find, name)
  if not ok then
    return fail("brim", r, o, trace)
  elseif not r then
    return unknown(name, o)
  end
  return run_recipe(r, words, o)
end

function commands.run(words, o)
  local name = table.remove(words, 1)
  if not name then
    return fail("brim", errors.usage("run what? 'brim run FILE [args]'"), o)
  elseif not name:find("[/]") and not name:find("%.lua$") and recipe.find(name) then
    return run_named(name, words, o)
  end
  return run_file(name, words, o)
end

function commands.list(_, o)
  local lines = {}
  for i, name in ipairs(recipe.names()) do
    local r = recipe.find(name)
    lines[i] = o.json and { name = name, doc = r.doc } or ("%-16s %s"):format(name, r.doc)
  end
  print(o.json and json.encode(lines) or table.concat(lines, "\n"))
  return OK
end

function commands.repl(_, o)
  return require("brim.repl").main(o)
end

local function overview()
  local lines = {
    "Usage: brim [OPTIONS] RECIPE [ARGS]",
    "       brim [OPTIONS] run FILE [ARGS]      run a Lua script",
    "       brim repl                           explore interactively",
    "       brim list                           the recipes there are",
    "       brim help [NAME]                    help on a recipe, a module or a function",
    "", "Options, given before the recipe's name:",
  }
  for _, entry in ipairs(opts.entries(OPTIONS)) do
    local flag = entry.flag
    if entry.spec.type ~= "bool" then
      flag = ("%s <%s>"):format(flag, entry.spec.type)
    end
    lines[#lines + 1] = ("  %-32s %s"):format(flag, entry.spec.doc)
  end
  lines[#lines + 1] = "\nRecipes:"
  for _, name in ipairs(recipe.names()) do
    lines[#lines + 1] = ("  %-16s %s"):format(name, recipe.find(name).doc)
  end
  return table.concat(lines, "\n")
end

function commands.help(words, o)
  local name = words[1]
  if not name then
    print(overview())
    return OK
  end
  local r = recipe.find(name)
  local text = r and recipe.help(r) or require("brim.help").text(name)
  if not text then
    return fail("brim", errors.usage("no help on '%s'%s", name,
      opts.suggest(name, recipe.names())), o)
  end
  io.stdout:write(text, text:sub(-1) == "\n" and "" or "\n")
  return OK
end

-- ------------------------------------------------------------------------ main

local SHORT <const> = {
  ["-h"] = "--help", ["-V"] = "--version", ["-q"] = "--quiet", ["-y"] = "--yes",
}

local function flags()
  local list = {}
  for i, entry in ipairs(opts.entries(OPTIONS)) do
    list[i] = entry.flag
  end
  return list
end

-- The options before the first word that is none; the rest stays in words. Nil and why when wrong.
local function take_options(words)
  local o, entries = {}, opts.entries(OPTIONS)
  while words[1] and words[1]:find("^%-.") do
    local word = table.remove(words, 1)
    if word == "--" then
      break
    end
    local flag, value = word:match("^(%-%-[^=]+)=(.*)$")
    flag = flag or SHORT[word] or word
    local entry = entries[flag:sub(3):gsub("%-", "_")]
    if not entry or entry.flag ~= flag then
      return nil, ("unknown option '%s'%s"):format(flag, opts.suggest(flag, flags()))
    elseif entry.spec.type == "bool" then
      value = value or true
    elseif not value then
      value = table.remove(words, 1)
      if not value then
        return nil, ("option '%s' requires an argument"):format(flag)
      end
    end
    o[entry.name] = value
  end
  return opts.try(o, OPTIONS, true)
end

local function version()
  local parts = {}
  for name, is_there in pairs(core.features) do
    parts[#parts + 1] = is_there and name or nil
  end
  table.sort(parts)
  return ("brim %s (%s; %s)"):format(core.version, _VERSION, table.concat(parts, " "))
end

---Run a command line and return the exit status. Prints; never raises, never exits.
---@param argv string[] argv[0] is the name it was called by
---@return integer status
function M.main(argv)
  if os.getenv("BRIM_GC") == "stress" then
    collectgarbage("setpause", 0)
  end
  local words = table.move(argv, 1, #argv, 1, {})
  local called = argv[0] and argv[0]:match("[^/]*$") or "brim"
  if called ~= "brim" and recipe.find(called) then
    return run_named(called, words, {})
  end
  local o, why = take_options(words)
  if not o then
    return fail("brim", errors.usage("%s", why), {})
  elseif o.version then
    print(version())
    return OK
  elseif o.help then
    return commands.help(words, o)
  end
  local name = table.remove(words, 1)
  if not name then
    io.stderr:write(overview(), "\n")
    return USAGE
  end
  local trace, ok, status = with_trace(commands[name] or run_named,
    commands[name] and words or name, commands[name] and o or words, o)
  return ok and status or fail("brim", status, o, trace)
end

return M
