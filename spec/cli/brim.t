brim's own options come before the name.

  $ brim --version
  brim *.*.* (Lua 5.4; *) (glob)
  $ brim --help | head -2
  Usage: brim [OPTIONS] RECIPE [ARGS]
         brim [OPTIONS] run FILE [ARGS]      run a Lua script
  $ brim help | head -1
  Usage: brim [OPTIONS] RECIPE [ARGS]
  $ brim 2>/dev/null
  [2]

Wrong ones are refused in one line.

  $ brim --engin=null list
  brim: unknown option '--engin'; did you mean '--engine'?
  [2]
  $ brim --engine=nul list
  brim: option '--engine': 'nul' is none of auto, uring, sync, null, fault:SPEC; did you mean 'null'?
  [2]
  $ brim --queue-depth=0 list
  brim: option '--queue-depth': 0 is too small, the least is 1
  [2]
  $ brim --queue-depth=many list
  brim: option '--queue-depth': expected an integer, got 'many'
  [2]
  $ brim --queue-depth
  brim: option '--queue-depth' requires an argument
  [2]
  $ brim --max-io-bytes=1k list
  brim: option '--max-io-bytes': 1 KiB is too small, the least is 4 KiB
  [2]
  $ brim -x
  brim: unknown option '-x'
  [2]
  $ brim rum
  brim: unknown recipe 'rum'; did you mean 'run'? ('brim list' shows them)
  [2]
  $ brim ./some.lua
  brim: unknown recipe './some.lua'; a file runs with 'brim run ./some.lua'
  [2]
  $ brim run
  brim: run what? 'brim run FILE [args]'
  [2]
  $ brim help frobnicate
  brim: no help on 'frobnicate'
  [2]

Help is there for everything public.

  $ brim help bytes.format
  brim.bytes.format(n_bytes)
  
  Format a size with the largest suffix that keeps it exact: "8191 PiB", "4097".
  @param n_bytes integer
  @return string

It runs from anywhere, whatever LUA_PATH says.

  $ cd / && LUA_PATH=/nonexistent/?.lua LUA_CPATH=/nonexistent/?.so brim help opts.check | head -1
  brim.opts.check(o, schema, who, level)

A full disk under the output is noticed.

  $ test -e /dev/full && brim --json list > /dev/full
  brim: cannot write to stdout
  [1]
