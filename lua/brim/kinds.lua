-- brim.kinds: which filesystem a target holds, and what checks and inspects it. Called by the
-- recipes check and inspect. Knows no on-disk format but where the magic numbers are.
local device = require "brim.device"

local M = {}

-- Magic numbers: bytes, offset. A backup superblock will do for F2FS.
local MAGICS <const> = {
  { kind = "xfs", bytes = "XFSB", off_bytes = 0 },
  { kind = "f2fs", bytes = "\x10\x20\xf5\xf2", off_bytes = 1024 },
  { kind = "f2fs", bytes = "\x10\x20\xf5\xf2", off_bytes = 4096 + 1024 },
}

---Find out which filesystem a target holds.
---@param target string
---@return "xfs"|"f2fs" kind "xfs" where it is none of them, or cannot be opened: its check says so
function M.of(target)
  local opened <close> = device.open(target)
  local size_bytes = opened and opened:info().size_bytes or 0
  for _, magic in ipairs(MAGICS) do
    local last = magic.off_bytes + #magic.bytes
    if last <= size_bytes and opened:read(magic.off_bytes, #magic.bytes) == magic.bytes then
      return magic.kind
    end
  end
  return "xfs"
end

---The module that checks a kind.
---@param kind string
---@return table? module with run(target, o); nil: there is none
function M.check(kind)
  return (kind == "xfs" or kind == "f2fs") and require(("brim.%s.check"):format(kind)) or nil
end

---The module of the words of `brim inspect` of a kind.
---@param kind string
---@return table? module
function M.inspect(kind)
  return (kind == "xfs" or kind == "f2fs") and require(("brim.%s.inspect_command"):format(kind))
    or nil
end

return M
