-- brim.f2fs.probe.parse: reads the texts that F2FS writes into /proc/fs/f2fs/DEVICE and debugfs.
-- Called by brim.f2fs.probe. Pure: text in, tables of numbers out; nil for anything else. Lines and
-- fields that are not known are passed over, as they change from kernel to kernel.
local M = {}

local SEGMENT_BLOCKS <const> = 512

---Types of segments in the order of their numbers (segment_type of fs/f2fs/sysfs.c).
---@type string[]
M.TYPES = { "hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node" }

---@class brim.f2fs.Segments
---@field count integer
---@field empty integer
---@field dirty integer
---@field full integer
---@field valid_blocks integer
---@field dirty_blocks integer valid ones of dirty segments
---@field types table<string, integer> valid blocks

---Read segment_info: type and valid blocks of each segment.
---@param text string
---@param most? integer segments; nil is returned for more
---@return brim.f2fs.Segments?
function M.segments(text, most)
  local s = { count = 0, empty = 0, dirty = 0, full = 0, valid_blocks = 0, dirty_blocks = 0,
    types = {} }
  local blocks = { 0, 0, 0, 0, 0, 0 }
  for kind, valid in text:gmatch "(%d)|(%d+)" do
    kind, valid = tonumber(kind) + 1, math.tointeger(tonumber(valid))
    s.count = s.count + 1
    s.valid_blocks = s.valid_blocks + valid
    if blocks[kind] then
      blocks[kind] = blocks[kind] + valid
    end
    if valid == 0 then
      s.empty = s.empty + 1
    elseif valid >= SEGMENT_BLOCKS then
      s.full = s.full + 1
    else
      s.dirty = s.dirty + 1
      s.dirty_blocks = s.dirty_blocks + valid
    end
    if most and s.count > most then
      return nil
    end
  end
  for i, name in ipairs(M.TYPES) do
    s.types[name] = blocks[i]
  end
  return s.count > 0 and s or nil
end

---Read victim_bits: how many sections are marked.
---@param text string
---@return integer?
function M.victims(text)
  local body = text:match "^format: victim_secmap[^\n]*\n(.*)$"
  if not body then
    return nil
  end
  local marked = 0
  for line in body:gmatch "[^\n]+" do
    -- The number of the line's first section comes first.
    for bit in (line:match "^%d+%s+(.*)$" or ""):gmatch "%d" do
      marked = marked + (bit == "1" and 1 or 0)
    end
  end
  return marked
end

-- Holes in the bits of one segment, the first block being the highest bit of the first byte.
local function holes_in(bits, h)
  local run = 0
  for byte in bits:gmatch "%x%x" do
    byte = tonumber(byte, 16)
    for i = 7, 0, -1 do
      if byte >> i & 1 == 0 then
        run = run + 1
      elseif run > 0 then
        h.count, h.blocks, run = h.count + 1, h.blocks + run, 0
      end
    end
  end
  if run > 0 then
    h.count, h.blocks = h.count + 1, h.blocks + run
  end
end

---Read segment_bits: runs of blocks in dirty segments that hold nothing valid.
---@param text string
---@return { count: integer, blocks: integer }? holes
function M.holes(text)
  local h = { count = 0, blocks = 0 }
  local seen = false
  for valid, bits in text:gmatch "\n%d+%s+%d|(%d+)%s*|([%x ]+)" do
    seen = true
    valid = tonumber(valid)
    if valid > 0 and valid < SEGMENT_BLOCKS then
      holes_in(bits, h)
    end
  end
  return seen and h or nil
end

---Read iostat_info: bytes by purpose since iostat_enable was set, as "write fs data". Kernels write
---the bytes alone, or bytes, count and average.
---@param text string
---@return table<string, integer>? bytes
function M.iostat(text)
  local out, part = {}, nil
  for line in text:gmatch "[^\n]+" do
    local section = line:match "^%[(%u+)%]"
    part = section and section:lower() or part
    local name, n = line:match "^([%a][%a ]-):%s+(%d+)"
    if part and name then
      out[("%s %s"):format(part, name)] = math.tointeger(tonumber(n))
    end
  end
  return part and out or nil
end

-- Each name of the table that status returns, and where its number is.
local STATUS <const> = {
  utilization_percent = "\nUtilization: (%d+)%%",
  valid = "\n%s*%- Valid: (%d+)",
  dirty = "\n%s*%- Dirty: (%d+)",
  prefree = "\n%s*%- Prefree: (%d+)",
  free = "\n%s*%- Free: (%d+)",
  overprovision = "OverProv:(%d+)",
  reserved = "Resv:(%d+)",
  cp_calls = "\nCP calls: (%d+)",
  gc_calls = "\nGC calls: (%d+)",
  gc_background = "\nGC calls: %d+ %([%a_]+: (%d+)%)",
  moved_blocks = "\nTry to move (%d+) blocks",
  moved_background = "\nTry to move %d+ blocks %(BG: (%d+)%)",
  bg_skip_io = "\nBG skip : IO: (%d+)",
  ipu_blocks = "\nIPU: (%d+) blocks",
  ssr_blocks = "\nSSR: (%d+) blocks",
  ssr_segments = "\nSSR: %d+ blocks in (%d+) segments",
  lfs_blocks = "\nLFS: (%d+) blocks",
  lfs_segments = "\nLFS: %d+ blocks in (%d+) segments",
  dirty_nodes = "\n%s*%- nodes:%s*(%d+) in",
  dirty_data = "\n%s*%- data:%s*(%d+) in",
  bimodal = "\nBDF: (%d+)",
}

---Read debugfs' status: the numbers of one filesystem.
---@param text string of all that are mounted
---@param device string as sysfs names it
---@return table<string, integer>? numbers
function M.status(text, device)
  local from = text:find(("partition info(%s)"):format(device), 1, true)
  if not from then
    return nil
  end
  local to = text:find("=====[ partition info(", from + 1, true) or #text + 1
  local part, out = text:sub(from, to - 1), {}
  for name, pattern in pairs(STATUS) do
    out[name] = math.tointeger(tonumber(part:match(pattern) or ""))
  end
  return out
end

return M
