-- A busted output handler: one line a test, failures in full, reasons of skips, and the closing
-- line `N passed, N failed, N skipped`, the same as the C tests print. A handle left open is a
-- failure.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base" ()
  local stray = 0

  local function text_of(message)
    if type(message) == "string" then
      return message
    elseif message == nil then
      return "no message"
    end
    local mt = getmetatable(message)
    return mt and mt.__tostring and tostring(message) or require("pl.pretty").write(message)
  end

  local function indented(text)
    return (tostring(text):gsub("[^\n]+", "    %0"))
  end

  local function describe(failure)
    local trace = failure.element.trace or failure.trace
    print("not ok " .. failure.name)
    if trace and trace.short_src then
      print(("    at %s:%s"):format(trace.short_src, trace.currentline))
    end
    print(indented(text_of(failure.message)))
    if options.verbose and failure.trace and failure.trace.traceback then
      print(indented(failure.trace.traceback))
    end
  end

  function handler.testEnd(element, _, status)
    local name = handler.getFullName(element)
    if status == "success" then
      print("ok " .. name)
    elseif status == "pending" then
      local last = handler.pendings[#handler.pendings]
      local message = last and last.message
      print(("skip %s: %s"):format(name, message and text_of(message) or "pending"))
    else
      local list = status == "failure" and handler.failures or handler.errors
      describe(list[#list])
    end
    io.stdout:flush()
    return nil, true
  end

  -- What went wrong outside of tests: a file that does not load, a setup.
  -- Some kinds have names of busted's own: a setup is a "strict_setup" or a "lazy_setup".
  function handler.error(element, _, message, trace)
    if element.descriptor == "it" then
      return nil, true
    end
    stray = stray + 1
    -- A setup has no name of its own, and what is raised in here is lost.
    describe { element = element, name = handler.getFullName(element), message = message,
      trace = trace }
    return nil, true
  end

  local function open_handles()
    collectgarbage()
    collectgarbage()
    local ok, core = pcall(require, "brim.core")
    return ok and core.open_handles() or 0
  end

  function handler.suiteEnd()
    local left = open_handles()
    if left > 0 then
      stray = stray + 1
      print(("not ok handles are closed at the end\n    %d are left open"):format(left))
    end
    local failed = stray
    for _, list in ipairs { handler.failures, handler.errors } do
      for _, f in ipairs(list) do
        failed = failed + (f.element.descriptor == "it" and 1 or 0)
      end
    end
    print(("%d passed, %d failed, %d skipped"):format(handler.successesCount, failed,
      handler.pendingsCount))
    io.stdout:flush()
    return nil, true
  end

  busted.subscribe({ "test", "end" }, handler.testEnd, { predicate = handler.cancelOnPending })
  busted.subscribe({ "suite", "end" }, handler.suiteEnd)
  busted.subscribe({ "error" }, handler.error)
  busted.subscribe({ "failure" }, handler.error)
  return handler
end
