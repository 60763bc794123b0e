-- fill_once.lua: one fill, for the benchmark:
-- brim run fill_once.lua PATH MODE STREAMS SIZE FILES [QUEUE_DEPTH]
-- Prints a line of JSON: files, elapsed_s (from the grant to the last operation), mode, choice.
local core = require "brim.core"
local json = require "brim.json"

local path, mode, streams, size, files, depth = table.unpack(arg)
streams, files = math.tointeger(streams), math.tointeger(files)

local fileset <close> = assert(core.fileset_new {
  seed = 1, streams = streams, sizes = { kind = "fixed", min_bytes = size },
})
local fill <close> = assert(core.fill_open(fileset, path, {
  mode = mode, queue_depth = depth and math.tointeger(depth),
}))
assert(fill:grant(files // streams))
local more, stats = fill:step()
assert(more == false, stats)
local failure = fill:failure()
assert(not failure, failure and failure.code)
print(json.encode {
  files = stats.ops.create, elapsed_s = stats.elapsed_ns / 1e9, mode = stats.mode,
  choice = stats.choice, live_files = stats.live_files,
})
