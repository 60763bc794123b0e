-- brim: what `require "brim"` gives: constants, and the modules below, loaded when first used.
local bytes = require "brim.bytes"
local core = require "brim.core"

local M = {
  VERSION = core.version,
  MAX_BYTES = math.maxinteger,
  KiB = 1 << 10,
  MiB = 1 << 20,
  GiB = 1 << 30,
  TiB = 1 << 40,
  PiB = 1 << 50,
  EiB = 1 << 60,
  bytes = bytes,
}

-- Loaded on first use, so that a script pays for what it uses.
M._submodules = {
  detect = true,
  device = true,
  dist = true,
  drive = true,
  error = true,
  experiment = true,
  f2fs = true,
  fill = true,
  help = true,
  json = true,
  knobs = true,
  lab = true,
  layout = true,
  manifest = true,
  opts = true,
  plan = true,
  plot = true,
  pretty = true,
  probe = true,
  progress = true,
  recipe = true,
  report = true,
  run = true,
  scan = true,
  timeline = true,
  trace = true,
  uuid = true,
  verify = true,
  workload = true,
  xfs = true,
}

M._debug = {
  open_handles = core.open_handles,
}

return setmetatable(M, {
  __index = function(t, name)
    if t._submodules[name] then
      local module = require("brim." .. name)
      rawset(t, name, module)
      return module
    end
  end,
})
