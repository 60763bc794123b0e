-- What is installed works without the tree: the library through pkg-config, the module in stock
-- Lua, the executable from anywhere, the tarball.
local helper = require "spec.helper"

local SAN <const> = (os.getenv("SAN") or "") ~= ""

-- A make of its own, not a part of the one that runs the tests.
local function make(fmt, ...)
  return helper.must("env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make BUILD=%s " .. fmt, helper.build,
    ...)
end

-- A test of what is installed, which an instrumented build is not.
local function shows(what, test)
  it(what, function()
    if SAN then
      pending("an instrumented library is not for installing")
    else
      test()
    end
  end)
end

describe("make install", function()
  local prefix, lua_env

  setup(function()
    if SAN then
      return
    end
    prefix = helper.path("prefix")
    make("install install-module PREFIX=%s", prefix)
    lua_env = ("LUA_PATH='%s/share/lua/5.4/?.lua;%s/share/lua/5.4/?/init.lua;;' "
      .. "LUA_CPATH='%s/lib/lua/5.4/?.so'"):format(prefix, prefix, prefix)
  end)

  local function compile(source, out)
    return helper.must("PKG_CONFIG_PATH=%s/lib/pkgconfig; export PKG_CONFIG_PATH; "
      .. "%s -Wall -Werror -o %s %s $(pkg-config --cflags --libs brim) -Wl,-rpath,%s/lib", prefix,
      os.getenv("CC") or "cc", out, source, prefix)
  end

  shows("gives C programs a library through pkg-config", function()
    local out = helper.path("version")
    helper.write(out .. ".c", [[
      #include <brim.h>
      #include <stdio.h>
      int main(void) { return puts(brim_version()) < 0; }
    ]])
    compile(out .. ".c", out)
    assert.equal(require("brim.core").version .. "\n", helper.must(out))
  end)

  shows("compiles the examples in C", function()
    for source in helper.must("find examples -name '*.c'"):gmatch("[^\n]+") do
      compile(source, helper.path("example"))
    end
  end)

  shows("has a header that C++ takes", function()
    if not helper.has("c++") then
      pending("no C++ compiler")
    end
    helper.must("echo '#include <brim.h>' | c++ -Wall -Werror -fsyntax-only -I%s/include -x c++ -",
      prefix)
  end)

  shows("gives stock Lua the module, recipes included", function()
    local out = helper.must("cd / && %s %s -l brim -e 'print(brim.VERSION, brim.recipe.names()[1], "
      .. "brim.help.text(\"opts.check\") ~= nil)'", lua_env, os.getenv("BRIM_TEST_LUA") or "lua5.4")
    assert.matches("^%d+%.%d+%.%d+\t[%w.-]+\ttrue\n$", out)
  end)

  shows("gives an executable that runs without the tree", function()
    assert.matches("^brim ", helper.must("cd / && %s/bin/brim --version", prefix))
    assert.matches("xfs", helper.must("cd / && %s/bin/brim list", prefix))
  end)

  shows("exports the public names and no others", function()
    local names = helper.must("nm -D --defined-only %s/lib/libbrim.so | awk '{ print $3 }'", prefix)
    for name in names:gmatch("[^\n]+") do
      assert.matches("^brim_[^_]", name:gsub("^BRIM_[%d.]+$", "brim_version"):gsub("@.*", ""))
    end
    assert.equal("luaopen_brim_core\n", helper.must(
      "nm -D --defined-only %s/lib/lua/5.4/brim/core.so | awk '{ print $3 }'", prefix))
  end)

  shows("is undone by make uninstall", function()
    make("uninstall PREFIX=%s", prefix)
    assert.equal("", helper.must("find %s -type f -o -type l", prefix))
  end)
end)

describe("make dist", function()
  shows("packs all that a build needs #slow", function()
    if SAN then
      pending("the same tarball as without")
    end
    local dir = helper.path("dist")
    local tarball = make("dist"):match("([^\n]+%.tar%.gz)\n")
    helper.must("mkdir %s && tar -xzf %s -C %s --strip-components=1", dir, tarball, dir)
    helper.must("cd %s && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make CFLAGS=-O0 exe", dir)
    assert.matches("^brim ", helper.must("%s/build/brim --version", dir))
  end)
end)
