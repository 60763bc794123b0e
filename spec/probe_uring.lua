-- Fails, with the reason, where io_uring cannot be used. Called by run-tests.
local core = require "brim.core"

local ok, why = core.probe_uring()
if not ok then
  error(why, 0)
end
