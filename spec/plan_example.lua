-- The plan that specs of plans share: a structure of each kind, groups, one laid over, zeros, a
-- superblock at last; and what raises at a spec's own line.
local layout = require "brim.layout"
local plan = require "brim.plan"

local M = {}

local KIB <const>, MIB <const> = 1 << 10, 1 << 20

local super = layout.struct("super", { size_bytes = 64, endian = "big", crc32c = "crc",
  extensible = true }) {
  { 0, "u32", "magic", magic = 0x53555052 },
  { 4, "u32", "crc" },
  { 8, "u64", "groups" },
  { 16, "char[16]", "label" },
  { 32, "bytes[32]", "pad" },
}
local header = layout.struct("header", { size_bytes = 32, endian = "little", crc32c = "crc",
  extensible = true }) {
  { 0, "u32", "magic", magic = 0x48454144 },
  { 4, "u32", "number" },
  { 8, "u64", "place", unit = "bytes" },
  { 16, "u32", "crc" },
  { 20, "u16", "small" },
  { 22, "u8", "tiny" },
  { 23, "u8", "fixed", value = 0xab },
  { 24, "u64be", "falling" },
}

M.super, M.header = super, header

-- 64 groups of 64 KiB: a header in each, one laid over, a log of zeros, the superblock last.
---Make the plan; `name` is another one.
function M.example(o)
  local p = plan.new { name = o and o.name or "example", size_bytes = 4 * MIB,
    group_bytes = 64 * KIB }
  p:phase "erase"
  p:zero(0, 4 * KIB, "old signature")
  p:phase "groups"
  p:each(64, function(i)
    return header:at(4 * KIB, 512) { number = i, place = i * (64 * KIB) + 4 * KIB,
      falling = 1000 - i, tiny = i },
      layout.bytes(4 * KIB + 512, 512, "gap")
  end)
  p:group(7, header:at(4 * KIB, 512) { number = 7, small = 77 },
    layout.bytes(4 * KIB + 512, ("seven"):rep(100) .. ("\0"):rep(12), "map"))
  p:zero(32 * KIB, 8 * KIB, "log")
  p:put(layout.bytes(40 * KIB, "log head", "log head"))
  p:phase "superblock"
  p:put(super:at(0, 512) { groups = 64, label = "example" })
  return p
end

---Run f, which must raise at the line of the file that calls this, with all parts in the message.
function M.assert_raises(f, ...)
  local ok, why = pcall(f)
  assert(not ok, "nothing was raised")
  local file = debug.getinfo(2, "S").short_src:match "([%w_]+%.lua)$"
  assert(tostring(why):find(file .. ":%d+: "), ("no line of %s in: %s"):format(file, tostring(why)))
  for _, part in ipairs { ... } do
    assert(tostring(why):find(part, 1, true), ("no '%s' in: %s"):format(part, tostring(why)))
  end
end

return M
