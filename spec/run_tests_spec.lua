-- What runs the tests does not hide what fails: errors outside of tests count, whatever busted
-- calls them; a unit that does not say what it did has failed.
local helper = require "spec.helper"

local function counts(out)
  local passed, failed, skipped = out:match "\n(%d+) passed, (%d+) failed, (%d+) skipped\n$"
  return math.tointeger(passed), math.tointeger(failed), math.tointeger(skipped)
end

describe("spec/output.lua", function()
  local LUA <const> = os.getenv("BRIM_TEST_LUA") or "lua5.4"

  -- The output of busted on a spec of this text.
  local function busted(text)
    local path = helper.path "inner_spec.lua"
    helper.write(path, text)
    local out = helper.sh("%s \"$(command -v busted)\" --ignore-lua "
      .. "-o spec/output.lua %s", LUA, path)
    return "\n" .. out
  end

  for _, kind in ipairs { "setup", "lazy_setup", "strict_setup", "teardown", "lazy_teardown",
    "before_each", "after_each" } do
    for how, statement in pairs { error = "error 'it broke'", failure = "assert.equal(1, 2)" } do
      it(("counts the %s of a %s"):format(how, kind), function()
        local out = busted(([[describe("outer", function()
          %s(function() %s end)
          it("inner", function() end)
        end)
        it("beside", function() end)]]):format(kind, statement))
        local passed, failed = counts(out)
        assert.is_true(passed >= 1 and failed == 1, out)
        assert.matches("\nnot ok outer [%w_]*" .. kind .. "\n", out)
        assert.is_truthy(out:find(how == "error" and "it broke" or "(number) 2", 1, true), out)
      end)
    end
  end

  it("counts errors of describe, of files, and of tests once", function()
    local out = busted [[describe("outer", function() error "it broke" end)
      it("bad", function() error "it broke" end)
      it("wrong", function() assert.equal(1, 2) end)
      it("good", function() end)]]
    assert.same({ 1, 3, 0 }, { counts(out) })
    assert.same({ 0, 1, 0 }, { counts(busted "this is no Lua") })
    assert.same({ 1, 0, 0 }, { counts(busted "it('x', function() end)") })
  end)
end)

describe("spec/run-tests", function()
  -- Runs one C unit whose program is this script.
  local function unit(script)
    local build = helper.path "build"
    helper.must("mkdir -p %s/spec", build)
    helper.write(build .. "/spec/unit", "#!/bin/sh\n" .. script .. "\n")
    helper.must("chmod +x %s/spec/unit", build)
    local out, status = helper.sh("B=%s bash spec/run-tests spec/core/unit.c", build)
    local passed, failed, skipped = counts("\n" .. out)
    return { passed, failed, skipped, status }, out
  end

  it("takes a unit's own counts", function()
    assert.same({ 3, 0, 1, 0 }, (unit "echo '3 passed, 0 failed, 1 skipped'"))
    assert.same({ 3, 2, 0, 1 }, (unit "echo '3 passed, 2 failed, 0 skipped'; exit 1"))
  end)

  it("fails one that says no counts, or whose status is another", function()
    local result, out = unit "echo ok this; exit 0"
    assert.same({ 0, 1, 0, 1 }, result)
    assert.matches("no line of counts at the end", out)
    assert.same({ 0, 1, 0, 1 }, (unit "exit 3"))
    assert.same({ 0, 1, 0, 1 }, (unit "kill -SEGV $$"))
    assert.same({ 3, 1, 0, 1 }, (unit "echo '3 passed, 0 failed, 0 skipped'; exit 1"))
    assert.same({ 0, 0, 1, 0 }, (unit "exit 77"))
  end)
end)
