-- How long a small workload takes on each drive: 2,000 random writes of 4 KiB, then 256 MiB in
-- order, on replicas of 8 GiB. Nothing is written anywhere and nobody sleeps.
local brim = require "brim"

local SIZE <const> = 8 * brim.GiB
local N <const> = 2000
local random = brim.workload { size_bytes = SIZE, operations = N }:first(N)

for _, name in ipairs(brim.drive.NAMES) do
  local drive = brim.drive { preset = name, scale_bytes = name ~= "ideal" and SIZE or nil }
  local now = 0
  for _, op in ipairs(random) do
    now = assert(drive:io("write", op.off_bytes, op.len_bytes, now))
  end
  local scattered = now
  for off = 0, 255 * brim.MiB, brim.MiB do
    now = assert(drive:io("write", off, brim.MiB, now))
  end
  local st = drive:stats()
  print(("%-12s %10.3f s at random, %8.3f s in order; %d bands cleaned, %d rewritten whole"):format(
    name, scattered / 1e9, (now - scattered) / 1e9, st.cleaned_bands, st.covered_bands))
end
