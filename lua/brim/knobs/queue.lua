-- brim.knobs.queue: the tunables of the block device under a filesystem (/sys/block/DEVICE/queue)
-- as data. Called by knobs.data. Pure. Source: Documentation/ABI/stable/sysfs-block.
local M = {}

-- Each { name, unit, since, default, doc, min =, max =, choice = }; "queue." goes before names.
-- choice: the file lists what may be written and brackets what holds.
M.KNOBS = {
  { "scheduler", "", "2.6.10", nil, "of I/O", choice = true },
  { "nr_requests", "", "2.6.10", nil, "requests that may wait", min = 1 },
  { "read_ahead_kb", "KiB", "2.6.10", nil, "read ahead at most" },
  { "max_sectors_kb", "KiB", "2.6.10", nil, "largest request", min = 1 },
  { "nomerges", "", "2.6.25", 0, "requests are merged: 0 always, 1 cheaply, 2 never", max = 2 },
  { "rq_affinity", "", "2.6.28", nil, "completions stay with a CPU: 0, 1, 2 strictly", max = 2 },
  { "rotational", "", "2.6.29", nil, "is it taken for a disk that turns?", max = 1 },
  { "iostats", "", "2.6.29", 1, "are requests counted?", max = 1 },
  { "add_random", "", "2.6.36", nil, "do requests feed the entropy pool?", max = 1 },
  { "io_poll", "", "4.4", nil, "is polling on?", max = 1 },
  { "wbt_lat_usec", "us", "4.10", nil, "latency that writeback throttling aims at; 0: off" },
  { "write_cache", "", "4.7", nil, "what the kernel thinks of the device's cache",
    values = { "write back", "write through" } },
  { "discard_max_bytes", "bytes", "4.3", nil, "largest discard", max = math.maxinteger },
}

return M
