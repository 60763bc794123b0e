Ctrl-C ends a run between its steps: there is a result, and the status is 130.

  $ timeout --preserve-status -s INT 1 brim --json xfs-8eb 2>err | grep -o '"stopped":"cancelled"' | sort -u
  "stopped":"cancelled"
  $ timeout --preserve-status -s INT 1 brim --quiet xfs-8eb
  brim xfs-8eb: interrupted
  [130]

It also ends Lua code that listens to nobody.

  $ echo 'while true do end' > loop.lua
  $ timeout --preserve-status -s INT 0.5 brim run loop.lua
  brim: interrupted
  [130]
