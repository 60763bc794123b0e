-- brim.f2fs.check: does a target hold a sound F2FS? Superblocks, checkpoints, SIT, NAT, nodes with
-- what they address, summaries, and the counters of the checkpoint. It never writes. Called by the
-- recipe check and scripts.
--
--   local result = assert(check.run("/dev/sdx"))
--   print(result.clean, result.text)
local check_nodes = require "brim.f2fs.check_nodes"
local check_report = require "brim.f2fs.check_report"
local core = require "brim.core"
local errors = require "brim.error"
local ondisk = require "brim.f2fs.ondisk"
local opts = require "brim.opts"
local plan = require "brim.plan"
local segments_of = require "brim.f2fs.segments"
local volume = require "brim.f2fs.volume"

local M = {}

local SEGMENT_BLOCKS <const> = 512
local FLAGS <const> = ondisk.CP_FLAGS
local FIRST_NODE_TYPE <const> = 3

---@class brim.f2fs.CheckResult
---@field clean boolean
---@field findings brim.f2fs.Finding[] the first of them
---@field finding_count integer
---@field by_structure table<string, integer>
---@field checkpoint "umount"|"crash" how it was left
---@field segments integer
---@field valid_blocks integer
---@field nodes integer
---@field inodes integer
---@field nodes_read integer
---@field data_blocks integer addressed by nodes
---@field text string

local SCHEMA <const> = {
  max_findings = { type = "int", default = 1000, min = 1, max = 1 << 20,
    doc = "findings kept and shown" },
  shallow = { type = "bool", doc = "never read nodes" },
}
for name, spec in pairs(plan.ENGINE_SCHEMA) do
  if name ~= "max_mismatches" then
    SCHEMA[name] = spec
  end
end

-- Tells progress at most each interval; false once an end is wanted.
local function ticker(o)
  local interval_s = o.progress_interval_s or 1
  local begun_s = core.monotonic_s()
  local due_s, p = begun_s + interval_s, { ios_total = 0, bytes_total = 0, ios_done = 0,
    bytes_done = 0, mean_queue_depth = 1 }
  return function(phase)
    local now_s = core.monotonic_s()
    if not o.progress or now_s < due_s then
      return true
    end
    due_s = now_s + interval_s
    p.phase, p.elapsed_ns = phase, math.floor((now_s - begun_s) * 1e9)
    return o.progress(p) ~= false
  end
end

-- What may differ between the superblocks: the kernel updates one after the other.
local MAY_DIFFER <const> = { version = true, crc = true, s_errors = true, s_stop_reason = true }

local function check_sbs(c)
  local v = c.volume
  for i, sb in ipairs(v.sbs) do
    if sb.why then
      c.report:fault("sb", i - 1, "%s", sb.why)
    end
  end
  if v.sbs[1].why or v.sbs[2].why then
    return
  end
  for _, field in ipairs(ondisk.sb.fields) do
    local at = field.off_bytes + 1
    local last = at + field.width_bytes * math.max(field.count, 1) - 1
    if not MAY_DIFFER[field.name]
      and v.sbs[1].raw:sub(at, last) ~= v.sbs[2].raw:sub(at, last) then
      c.report:fault("sb", 1, "%s differs from the first superblock's", field.name)
    end
  end
end

-- What the numbers of the valid checkpoint have to be among themselves.
local function check_cp(c)
  local v = c.volume
  local cp, main = v.cp, v.sb.segment_count_main
  for name, list in pairs { cur_node_segno = cp.cur_node_segno,
    cur_data_segno = cp.cur_data_segno } do
    for i = 1, 3 do
      if list[i] >= main then
        c.report:fault("cp", v.pack_number, "%s %d: there is no segment %d", name, i - 1, list[i])
      end
    end
  end
  local left = main * SEGMENT_BLOCKS
  if cp.user_block_count > left or cp.valid_block_count > cp.user_block_count then
    c.report:fault("cp", v.pack_number, "%d blocks for users, %d of them valid, of %d",
      cp.user_block_count, cp.valid_block_count, left)
  end
  local start = cp.cp_pack_start_sum
  if start <= v.sb.cp_payload or start >= cp.cp_pack_total_block_count then
    c.report:fault("cp", v.pack_number, "summaries are said to begin with block %d of %d", start,
      cp.cp_pack_total_block_count)
  end
  if cp.overprov_segment_count < cp.rsvd_segment_count then
    c.report:fault("cp", v.pack_number, "overprovision of %d segments, %d of them reserved",
      cp.overprov_segment_count, cp.rsvd_segment_count)
  end
end

local function check_checkpoints(c)
  local v = c.volume
  for i, pack in ipairs(v.packs) do
    -- A pack of version 0 is what mkfs leaves; a torn one is what a crash leaves.
    if pack.why and v.pack then
      c.report:note("checkpoint pack %d is not valid: %s", i, pack.why)
    elseif pack.why then
      c.report:fault("cp", i, "%s", pack.why)
    end
  end
  if v.damage then
    c.report:fault("cp", v.pack_number, "%s", v.damage)
    return
  end
  check_cp(c)
  for _, flag in ipairs { "error", "fsck", "quota_need_fsck", "orphan_present", "disabled",
    "resizefs" } do
    if v.cp.ckpt_flags & FLAGS[flag] ~= 0 then
      c.report:note("the checkpoint has the flag '%s'", flag)
    end
  end
  if v.cp.ckpt_flags & FLAGS.umount == 0 then
    c.report:note "not unmounted: what was synced after the checkpoint is not looked at"
  end
end

-- ------------------------------------------------------------------------- SIT

local function read_segments(c)
  local s, err = segments_of.read(c.volume, function(segment, why, ...)
    c.report:fault("sit", segment, why, ...)
  end)
  if not s then
    error(err, 0)
  end
  c.segments = s
  local logs, valid, free = c.volume:logs(), 0, s.count
  for segment, blocks in pairs(s.valid) do
    valid = valid + blocks
    free = free - (logs[segment] and 0 or 1)
  end
  local log_count = 0
  for segment, log in pairs(logs) do
    free, log_count = free - (segment < s.count and 1 or 0), log_count + 1
    local block = c.volume.sb.main_blkaddr + segment * SEGMENT_BLOCKS + log.offset
    if log.offset < SEGMENT_BLOCKS and segments_of.is_valid(s, c.volume, block) then
      c.report:fault("cp", c.volume.pack_number, "the next block of the log of %s, %d, is valid",
        segments_of.name(log.type), block)
    elseif s.valid[segment] and s.kind[segment] ~= log.type then
      c.report:fault("sit", segment, "of %s, and the log of %s",
        segments_of.name(s.kind[segment]), segments_of.name(log.type))
    end
  end
  c.counts.segments, c.counts.valid_blocks, c.counts.free_segments = s.count, valid, free
  if log_count < (c.volume.has.ro and 2 or 6) then
    c.report:fault("cp", c.volume.pack_number, "only %d different segments of logs", log_count)
  end
end

-- Segments that mkfs.f2fs counts as free behind the last whole zone.
local function incomplete(c)
  local sb = c.volume.sb
  local all = (sb.block_count - sb.segment0_blkaddr) // SEGMENT_BLOCKS
  local meta = (sb.main_blkaddr - sb.segment0_blkaddr) // SEGMENT_BLOCKS
  return sb.devs[1].total_segments == 0 and all - meta - sb.segment_count_main or 0
end

local function compare_counters(c)
  local cp, counts, number = c.volume.cp, c.counts, c.volume.pack_number
  if cp.free_segment_count ~= counts.free_segments then
    local rest = incomplete(c)
    c.report:add { structure = "cp", number = number, field = "free_segment_count",
      expected = counts.free_segments, found = ("%d%s"):format(cp.free_segment_count,
        rest > 0 and cp.free_segment_count - counts.free_segments == rest
        and " (with those behind the last whole zone, as mkfs.f2fs counts)" or "") }
  end
  c.report:expect("cp", number, "valid_node_count", counts.nodes, cp.valid_node_count)
  c.report:expect("cp", number, "valid_inode_count", counts.inodes, cp.valid_inode_count)
  local is_whole = counts.nodes_read == counts.nodes and not c.volume.has.compression
  if is_whole then
    c.report:expect("cp", number, "valid_block_count",
      counts.valid_blocks + counts.reserved_blocks, cp.valid_block_count)
    c.report:expect("sit", nil, "blocks of data", counts.data_blocks,
      counts.valid_blocks - counts.node_blocks)
  elseif counts.valid_blocks > cp.valid_block_count then
    c.report:expect("cp", number, "valid_block_count", counts.valid_blocks, cp.valid_block_count)
  end
  c.report:expect("sit", nil, "blocks of nodes", counts.nodes, counts.node_blocks)
end

local function count_nodes(c)
  for segment, blocks in pairs(c.segments.valid) do
    if c.segments.kind[segment] >= FIRST_NODE_TYPE then
      c.counts.node_blocks = c.counts.node_blocks + blocks
    end
  end
end

local function result_of(c)
  local r, counts = c.report, c.counts
  local is_clean = r.count == 0 and not c.stopped
  local cp = c.volume.cp
  local result = { clean = is_clean, ok = is_clean, text = r:text(counts), findings = r.findings,
    finding_count = r.count, by_structure = r.by_structure, stopped = c.stopped,
    checkpoint = cp and (cp.ckpt_flags & FLAGS.umount ~= 0 and "umount" or "crash") or "damaged" }
  for name, v in pairs(counts) do
    result[name] = v
  end
  return result
end

local function run(c, o)
  check_sbs(c)
  check_checkpoints(c)
  if c.volume.damage or c.report.by_structure.cp then
    return result_of(c)
  end
  read_segments(c)
  count_nodes(c)
  local ok, err = check_nodes.read_nat(c)
  if not ok then
    error(err, 0)
  end
  if not o.shallow then
    check_nodes.read_nodes(c)
    if not c.stopped then
      check_nodes.check_summaries(c)
    end
  end
  if not c.stopped then
    compare_counters(c)
  end
  if c.has_more_devices then
    c.report:note("of %d devices this is the first; what lies on others was not read",
      c.has_more_devices)
  end
  return result_of(c)
end

local function devices_of(sb)
  local count = 0
  for _, each in ipairs(sb.devs) do
    count = count + (each.total_segments > 0 and 1 or 0)
  end
  return count > 1 and count or nil
end

---Check a filesystem: superblocks, checkpoints, tables, and unless `shallow` all nodes, what they
---address, and summaries. Options: max_findings, shallow, progress; those of plan:verify that say
---how I/O is done are taken and have no effect (reads are of up to 2 MiB, one at a time).
---@param target string a device, a file or an image file
---@param o? table
---@return brim.f2fs.CheckResult? result
---@return brim.Error? err with `usage` set where there is nothing to check
function M.run(target, o)
  o = opts.check(o or {}, SCHEMA, "brim.f2fs.check")
  local opened <close>, err = volume.open(target)
  if not opened then
    return nil, err
  end
  local c = { volume = opened, report = check_report.new(o.max_findings), tick = ticker(o),
    has_more_devices = devices_of(opened.sb),
    counts = { segments = 0, valid_blocks = 0, nodes = 0, inodes = 0, nodes_read = 0,
      data_blocks = 0, reserved_blocks = 0, node_blocks = 0, free_segments = 0 } }
  local ok, result = pcall(run, c, o)
  if ok then
    return result
  elseif errors.is(result) then
    return nil, result
  end
  error(result, 0)
end

return M
