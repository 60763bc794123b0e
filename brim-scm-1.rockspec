rockspec_format = "3.0"
package = "brim"
version = "scm-1"
-- `luarocks make` builds the tree it stands in; there is nothing to fetch.
source = { url = "git+file://." }
description = {
  summary = "Format, fill and measure filesystems at their limits",
  detailed = [[
    A toolkit in C and Lua: formatting absurdly large filesystems, filling them to the brim, and
    tuning the garbage collectors that decide what happens there.
  ]],
  license = "MIT",
}
supported_platforms = { "linux" }
dependencies = {
  "lua >= 5.4, < 5.5",
  "dkjson >= 2.5",
  "argparse >= 0.7",
}
build = {
  type = "make",
  build_target = "module",
  install_target = "install-module",
  build_variables = {
    CFLAGS = "$(CFLAGS)",
    LUA_CFLAGS = "-I$(LUA_INCDIR)",
    LIBFLAG = "$(LIBFLAG)",
  },
  install_variables = {
    LUA_CMOD = "$(LIBDIR)",
    LUA_LMOD = "$(LUADIR)",
    CFLAGS = "$(CFLAGS)",
    LUA_CFLAGS = "-I$(LUA_INCDIR)",
    LIBFLAG = "$(LIBFLAG)",
  },
}
