A recipe is a file that returns a table; its arguments are checked by its schema.

  $ cat > greet.lua <<'END'
  > local brim = require "brim"
  > return brim.recipe {
  >   name = "greet", doc = "Say hello.",
  >   args = {
  >     { "name", type = "string", required = true, doc = "whom" },
  >     { "--leave-bytes", type = "bytes", default = "64m", doc = "free space to leave" },
  >     { "--wipe", type = "bool", doc = "overwrite everything" },
  >     { "--how", type = "enum", values = { "well", "raise", "return", "bad", "skip", "bug", "api",
  >       "not_ok" }, default = "well", doc = "how it ends" },
  >   },
  >   destructive = function(a) return a.wipe end,
  >   run = function(a, ctx)
  >     ctx.log("to stderr")
  >     ctx.report("hello, %s", a.name)
  >     local err = brim.error.new { code = "EIO", errno = 5, op = "write", offset_bytes = 4096,
  >       message = "write at 4096: Input/output error" }
  >     if a.how == "raise" then error(err) end
  >     if a.how == "return" then return nil, err end
  >     if a.how == "bad" then error(brim.error.usage("--how: '%s' is bad", a.how)) end
  >     if a.how == "skip" then error(brim.error.skip("needs root")) end
  >     if a.how == "bug" then return a.x.y end
  >     if a.how == "api" then brim.device.open("x", { wirte = true }) end
  >     if a.how == "not_ok" then return { ok = false, text = "3 of 4" } end
  >     return { text = "done", groups = 3, bytes = a.leave_bytes, depth = ctx.engine_opts.queue_depth }
  >   end,
  > }
  > END

  $ brim run greet.lua you
  to stderr
  hello, you
  done

Progress and logs go to stderr, the rest to stdout.

  $ brim run greet.lua you 2>/dev/null
  hello, you
  done
  $ brim --quiet run greet.lua you

With --json only the result is on stdout.

  $ brim --json --queue-depth=7 run greet.lua you --leave-bytes=8191p 2>/dev/null
  {"bytes":9222246136947933184,"depth":7,"groups":3,"peak_rss_bytes":*,"system_cpu_s":*,"user_cpu_s":*,"wall_s":*} (glob)

How it can end: 1 failed, 2 usage, 77 skipped.

  $ brim run greet.lua you --how=raise
  to stderr
  hello, you
  brim greet: write at 4096: Input/output error (EIO)
  [1]
  $ brim run greet.lua you --how=return 2>&1 >/dev/null
  to stderr
  brim greet: write at 4096: Input/output error (EIO)
  [1]
  $ brim --json run greet.lua you --how=return 2>/dev/null
  {"error":{"code":"EIO","errno":5,"message":"write at 4096: Input/output error (EIO)","offset_bytes":4096,"op":"write"}}
  [1]
  $ brim --quiet run greet.lua you --how=bad
  brim greet: --how: 'bad' is bad
  [2]
  $ brim --quiet run greet.lua you --how=skip
  brim greet: skipped: needs root
  [77]
  $ brim --quiet run greet.lua you --how=bug
  brim greet: greet.lua:21: attempt to index a nil value (field 'x')
  [1]
  $ brim --quiet run greet.lua you --how=api
  brim greet: unknown option 'wirte'; did you mean 'write'?
  [2]
  $ brim run greet.lua you --how=not_ok 2>/dev/null
  hello, you
  3 of 4
  [1]

--traceback says where.

  $ brim --quiet --traceback run greet.lua you --how=bug 2>&1 | grep -c 'stack traceback'
  1

Wrong words are one line and status 2.

  $ brim run greet.lua
  brim greet: missing argument 'name'
  [2]
  $ brim run greet.lua you they
  brim greet: too many arguments
  [2]
  $ brim run greet.lua you --leave-bites=1
  brim greet: unknown option '--leave-bites'; did you mean '--leave-bytes'?
  [2]
  $ brim run greet.lua you --leave-bytes=8e
  brim greet: option '--leave-bytes': * (glob)
  [2]
  $ brim run greet.lua you --how=wel
  brim greet: option '--how': 'wel' is none of well, raise, return, bad, skip, bug, api, not_ok; did you mean 'well'?
  [2]
  $ brim run greet.lua you --json
  brim greet: unknown option '--json'; brim's own options come before the name: brim --json greet ...
  [2]

A destructive recipe wants --yes, or --dry-run.

  $ brim run greet.lua you --wipe
  brim greet: this overwrites its target; repeat it as 'brim --yes greet ...', or look first with 'brim --dry-run greet ...'
  [2]
  $ brim --quiet --yes run greet.lua you --wipe
  $ brim --quiet --dry-run run greet.lua you --wipe

Help comes from the schema.

  $ brim run greet.lua --help
  Usage: brim greet [-h] [--leave-bytes <bytes>] [--wipe] [--how <enum>]
         <name>
  
  Say hello.
  
  Arguments:
     name                  whom
  
  Options:
     -h, --help            Show this help message and exit.
     --leave-bytes <bytes> free space to leave (default: 64m)
     --wipe                overwrite everything
     --how <enum>          how it ends (well, raise, return, bad, skip, bug, api, not_ok) (default: well)

A recipe that is wrong itself says so.

  $ echo 'return require "brim".recipe { name = "x", doc = "y", rum = 1 }' > bad.lua
  $ brim run bad.lua
  brim: unknown option 'rum'; did you mean 'run'?
  [2]
  $ brim run nothere.lua
  brim: cannot open nothere.lua* (glob)
  [2]
  $ echo 'return (' > syntax.lua
  $ brim run syntax.lua
  brim: syntax.lua:2: unexpected symbol near <eof>
  [1]

Any other Lua file just runs; its arguments are in arg and in `...`.

  $ echo 'print(arg[0], arg[1], ..., require "brim".MAX_BYTES)' > plain.lua
  $ brim run plain.lua a b
  plain.lua	a	a	9223372036854775807

A recipe with raw_args gets its words as they are, --help among them; its name may be the program's.

  $ mkdir -p lua scripts
  $ cat > scripts/raw.t.lua <<'END'
  > return require "brim".recipe { name = "raw.t", doc = "Raw.", raw_args = true,
  >   run = function(words, ctx)
  >     print(#words, table.concat(words, "|"), ctx.engine_opts.queue_depth)
  >   end }
  > END
  $ export BRIM_LUA_PATH="$PWD/lua/?.lua"; brim --queue-depth=5 raw.t -f --help "a b"
  3	-f|--help|a b	5
  $ export BRIM_LUA_PATH="$PWD/lua/?.lua"; ln -s "$(command -v brim)" raw.t; ./raw.t -d size=8191p
  2	-d|size=8191p	nil
  $ export BRIM_LUA_PATH="$PWD/lua/?.lua"; brim list | grep '^raw'
  raw.t            Raw.
  $ export BRIM_LUA_PATH="$PWD/lua/?.lua"; brim raw.x
  brim: unknown recipe 'raw.x'; did you mean 'raw.t'? ('brim list' shows them)
  [2]
