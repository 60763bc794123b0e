-- brim.knobs.f2fs: the tunables of a mounted F2FS as data: what may be written below
-- /sys/fs/f2fs/DEVICE, and mount options that a remount changes. Called by knobs.data. Pure.
-- Sources: fs/f2fs/{sysfs,gc,segment,node,super}.[ch] and Documentation/ABI/testing/sysfs-fs-f2fs
-- of 6.1.192, 6.12.117 and 7.2.13. `since` is the first mainline release: above 6.1 between the
-- lists of these three and the ABI document's dates, below that the release after those dates.
-- Stable series take some over earlier: where a file is there, it counts.
local M = {}

local function reserved_sections(g)
  return g.reserved_segments // g.section_segments
end

local SMALL_SEGMENTS <const> = 8192 -- SMALL_VOLUME_SEGMENTS: 16 GiB
local RECLAIM_SEGMENTS_MAX <const> = 4096 -- DEF_MAX_RECLAIM_PREFREE_SEGMENTS

---Is a volume one for which F2FS chooses other defaults (f2fs_tuning_parameters)?
---@param g table main_segments
---@return boolean
function M.is_small(g)
  return g.main_segments <= SMALL_SEGMENTS
end

-- What GC mode reads as, in gc_idle and gc_urgent alike (enum of f2fs.h); one field for both. Some
-- kernels, 6.1 among them, give gc_urgent and gc_segment_mode as names (gc_mode_names of sysfs.c).
local GC_MODES <const> = { GC_NORMAL = 0, GC_IDLE_CB = 1, GC_IDLE_GREEDY = 2, GC_IDLE_AT = 3,
  GC_URGENT_HIGH = 4, GC_URGENT_LOW = 5, GC_URGENT_MID = 6 }
local URGENT_READS <const> = { [0] = 0, [1] = 4, [2] = 5, [3] = 6 }

local function undo_gc_mode(raw)
  local mode = math.tointeger(tonumber(raw)) or 0
  if mode >= 4 then
    return "gc_urgent", tostring(mode - 3)
  end
  return "gc_idle", tostring(mode)
end

local function lfs(o)
  return o and o.mode == "lfs"
end

-- Each { name, unit, since, default, doc, min =, max =, ... }. A default may depend on the
-- geometry, the kernel and the mount options: function(geometry, kernel, options).
M.KNOBS = {
  { "gc_min_sleep_time", "ms", "3.12", 30000, "least sleep of the GC thread, and its step",
    thread = true },
  { "gc_max_sleep_time", "ms", "3.12", 60000, "longest sleep between two victims", thread = true },
  { "gc_no_gc_sleep_time", "ms", "3.12", 300000, "sleep when there was no victim", thread = true },
  { "gc_urgent_sleep_time", "ms", "4.14", 500, "sleep while gc_urgent is 1 or 3", thread = true },
  { "gc_idle", "", "3.12", 0, "victims by: 1 cost-benefit, 2 greedy, 3 age threshold; no matter "
    .. "whether anything is idle", max = 3, undo = undo_gc_mode },
  { "gc_urgent", "", "4.14", 0, "1: GC at once, again and again, greedy, SSR and discard forced; "
    .. "2: not waiting for idleness; 3: at once, cost-benefit (5.19)", max = 3,
    reads = URGENT_READS, undo = undo_gc_mode, names = GC_MODES },
  { "gc_remaining_trials", "", "6.2", 0, "wake-ups until gc_idle and gc_urgent end; 0: none" },
  { "gc_urgent_high_remaining", "", "5.17", 0, "wake-ups after which gc_urgent=1 ends; 0: never",
    before = "6.2" },
  { "gc_idle_interval", "s", "4.20", 5, "time without operations before background GC" },
  { "gc_pin_file_thresh", "", "4.17", 2048, "failed GCs after which a pinned file is unpinned",
    max = 65535 },
  { "gc_segment_mode", "", "5.15", 0, "GC mode whose count gc_reclaimed_segments shows", max = 6,
    names = GC_MODES },
  { "gc_no_zoned_gc_percent", "%", "6.12", 0, "zoned (60): no GC above this share of free sections",
    max = 100, thread = true },
  { "gc_boost_zoned_gc_percent", "%", "6.12", 0, "zoned (25): boosted GC below it", max = 100,
    thread = true },
  { "gc_valid_thresh_ratio", "%", "6.12", nil, "zoned: fuller sections are no victims", max = 100,
    thread = true },
  { "gc_boost_gc_multiple", "", "6.17", 5, "zoned: factor of the window while boosted", min = 1,
    thread = true },
  { "gc_boost_gc_greedy", "", "6.17", 1, "zoned: greedy while boosted", max = 1, thread = true },
  { "bggc_io_aware", "", "6.18", 0, "background GC minds: 0 any I/O, 1 reads, 2 none", max = 2 },
  { "reclaim_segments", "segments", "3.13", function(g)
    return math.min(g.main_segments * 5 // 100, RECLAIM_SEGMENTS_MAX)
  end, "prefree segments that may pile up before a checkpoint is forced" },
  { "reserved_segments", "segments", "6.12", function(g) return g.reserved_segments end,
    "kept free for GC; foreground GC begins here" },
  { "min_ssr_sections", "sections", "4.15", reserved_sections,
    "free sections beyond the reserve at which writes go into holes (SSR)" },
  { "ipu_policy", "", "3.14", function(g, _, o)
    return lfs(o) and 0 or M.is_small(g) and 0x81 or 0x10
  end, "updates in place, bits: 0 force, 1 SSR, 2 UTIL, 3 SSR and UTIL, 4 fsync, 5 async, "
    .. "6 no cache, 7 honour out-of-place", max = 255, first = 0 },
  { "min_ipu_util", "%", "3.14", 70, "utilisation above which the UTIL bits of ipu_policy hold" },
  { "min_fsync_blocks", "blocks", "3.18", 8, "dirty pages up to which fsync updates in place" },
  { "min_seq_blocks", "blocks", "4.19", 512, "dirty pages from which writeback is batched" },
  { "min_hot_blocks", "blocks", "4.13", 16, "dirty pages up to which a file's data is hot" },
  { "max_victim_search", "", "3.14", 4096, "candidates looked at for one victim", min = 1 },
  { "migration_granularity", "segments", "5.0", function(g) return g.section_segments end,
    "segments of a section moved at one wake-up", min = 1,
    most = function(g) return g.section_segments end },
  { "migration_window_granularity", "segments", "6.12", function(g) return g.section_segments end,
    "segments looked at for those", min = 1, most = function(g) return g.section_segments end },
  { "max_small_discards", "blocks", "3.14", nil, "small discards that a checkpoint collects" },
  { "max_discard_request", "", "5.17", 8, "discards issued in one round" },
  { "min_discard_issue_time", "ms", "5.17", 50, "wait of the discard thread while it has work" },
  { "mid_discard_issue_time", "ms", "5.17", 500, "the same while the device is busy" },
  { "max_discard_issue_time", "ms", "5.17", 60000, "the same without work" },
  { "discard_granularity", "blocks", "4.14", function(g) return M.is_small(g) and 1 or 16 end,
    "smaller discards are kept back", min = 1, max = 512 },
  { "discard_urgent_util", "%", "6.2", 80, "utilisation above which all discards are issued",
    max = 100 },
  { "discard_io_aware", "", "6.8", nil, "does the discard thread mind I/O?", max = 1 },
  { "discard_io_aware_gran", "blocks", "6.3", 512, "discards from this size on do not mind I/O",
    max = 512 },
  { "max_ordered_discard", "blocks", "6.2", 16, "discards up to this size go by address", min = 1,
    max = 512 },
  { "umount_discard_timeout", "s", "5.1", 5, "time for discards at unmount" },
  { "discard_idle_interval", "s", "4.20", 5, "time without operations before discards" },
  { "cp_interval", "s", "4.4", 60, "time after which an idle filesystem makes a checkpoint" },
  { "idle_interval", "s", "4.5", 5, "time without operations that counts as idle" },
  { "dirty_nats_ratio", "%", "4.5", 10, "dirty node addresses that force a checkpoint" },
  { "ram_thresh", "", "3.15", 1, "memory for node caches; 1: 10 MB for each GB" },
  { "ra_nid_pages", "", "4.4", 0, "NAT blocks read ahead when node numbers are collected" },
  { "max_roll_forward_node_blocks", "blocks", "5.18", 0, "node blocks that recovery may roll "
    .. "forward over before a checkpoint; 0: any" },
  { "dir_level", "", "3.15", 0, "size class of large directories", max = 63 },
  { "readdir_ra", "", "4.16", 1, "readahead of inodes by readdir", max = 1 },
  { "iostat_enable", "", "4.14", 0, "count I/O by kind in iostat_info", max = 1 },
  { "iostat_period_ms", "ms", "5.8", 3000, "period of the tracepoint of these counts", min = 100,
    max = 8640000 },
  { "max_io_bytes", "bytes", "5.11", 0, "largest bio; 0: what the device takes" },
  { "data_io_flag", "", "5.8", 0, "REQ_META and REQ_FUA for data, by temperature", max = 63 },
  { "node_io_flag", "", "5.9", 0, "REQ_META and REQ_FUA for nodes, by temperature", max = 63 },
  { "reserved_blocks", "blocks", "4.13", 0, "kept from users beside the overprovision" },
  { "seq_file_ra_mul", "", "5.15", 2, "factor of the readahead of sequential files", min = 2,
    max = 256 },
  { "max_fragment_chunk", "blocks", "5.16", 4, "for mode=fragment:block", min = 1, max = 512 },
  { "max_fragment_hole", "blocks", "5.16", 4, "for mode=fragment:block", min = 1, max = 512 },
  { "atgc_candidate_ratio", "%", "5.14", 20, "oldest share of victims for ATGC", max = 100 },
  { "atgc_candidate_count", "", "5.14", 10, "at least as many of them" },
  { "atgc_age_weight", "%", "5.14", 60, "weight of age against invalid blocks", max = 100 },
  { "atgc_age_threshold", "s", "5.14", 604800, "younger sections are no victims" },
  { "hot_data_age_threshold", "blocks", "6.2", 262144, "age below which data is hot" },
  { "warm_data_age_threshold", "blocks", "6.2", 2621440, "age below which data is warm" },
  { "last_age_weight", "%", "6.3", 30, "weight of the former age", max = 100 },
  { "max_read_extent_count", "", "6.13", 10240, "extents cached for one file" },
  { "compress_percent", "%", "6.4", nil, "share that must be compressible", min = 1,
    max = 100 },
  { "compress_watermark", "%", "6.4", nil, "utilisation up to which compression is tried", min = 1,
    max = 100 },
  { "blkzone_alloc_policy", "", "6.12", 0, "0 sequential zones first, 1 only, 2 conventional first",
    max = 2 },
  { "carve_out", "", "6.15", 0, "hide reserved_blocks from statfs", max = 1 },
  { "reserved_pin_section", "sections", "6.17", nil, "free sections kept for pinned files" },
  { "ckpt_thread_ioprio", "", "5.12", nil, "I/O class and priority of the checkpoint thread",
    pattern = "^[rb][te],[0-7]$", form = "rt,N or be,N with N of 0 to 7" },
  { "allocate_section_hint", "sections", "6.18", nil, "end of the first of several devices" },
  { "allocate_section_policy", "", "6.18", 0, "0 as ever, 1 before the hint first, 2 behind it",
    max = 2 },
  { "max_lock_elapsed_time", "ms", "7.0", nil, "time under a lock that is traced" },
  { "adjust_lock_priority", "", "7.0", 0, "locks whose holders get another priority, bits" },
  { "lock_duration_priority", "", "7.0", nil, "that priority", min = 100, max = 139 },
  { "critical_task_priority", "", "7.0", nil, "priority of checkpoint and GC thread", min = 100,
    max = 139 },
}

-- Mount options that a remount changes. `flag` is what stands for "on" in /proc/mounts.
M.OPTIONS = {
  { "background_gc", "", "3.8", "on", "the GC thread; sync: it works as foreground GC does",
    values = { "on", "off", "sync" } },
  { "mode", "", "4.8", "adaptive", "lfs: writes never go into holes, GC cleans instead",
    values = { "adaptive", "lfs", "fragment:segment", "fragment:block" },
    hint = "lfs needs ipu_policy=0 with newer kernels" },
  { "alloc_mode", "", "4.18", function(g) return M.is_small(g) and "reuse" or "default" end,
    "reuse: free segments from the front", values = { "default", "reuse" } },
  { "discard", "", "3.8", "on", "discards while mounted", flag = "discard" },
  { "gc_merge", "", "5.13", "off", "the GC thread does foreground GC, too", flag = "gc_merge" },
  { "checkpoint_merge", "", "5.12", "off", "one thread makes all checkpoints",
    flag = "checkpoint_merge" },
}

return M
