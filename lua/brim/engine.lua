-- brim.engine: what every run takes about how its I/O is done, as one schema. Called by
-- plan, scan and the command line, so that all three accept and refuse the same. Pure data.
local opts = require "brim.opts"

local M = {}

local ENGINES <const> = { "auto", "uring", "sync", "null", "fault" }
local DEPTH_MAX <const> = 4096 -- BRIM__DEPTH_MAX in core/engine.h
local IO_BYTES_MAX <const> = 64 << 20 -- BRIM__IO_BYTES_MAX in core/internal.h

local function check_engine(name)
  local kind = name:match "^[^:]*"
  for _, known in ipairs(ENGINES) do
    if kind == known then
      return true
    end
  end
  return nil, ("'%s' is none of auto, uring, sync, null, fault:SPEC%s"):format(name,
    opts.suggest(kind, ENGINES))
end

---The options, in the order of help.
M.NAMES = { "engine", "queue_depth", "threads", "max_io_bytes" }

---Their schema; "nothing given" leaves each to the core.
M.SCHEMA = {
  engine = { type = "string", check = check_engine,
    doc = "how I/O is done: auto, uring, sync, null, fault:SPEC" },
  queue_depth = { type = "int", min = 1, max = DEPTH_MAX, doc = "I/Os in flight (128)" },
  threads = { type = "int", min = 1, max = 1024,
    doc = "threads of the sync engine (what fits the target)" },
  max_io_bytes = { type = "bytes", min = 4096, max = IO_BYTES_MAX, doc = "largest I/O (1 MiB)" },
}

return M
