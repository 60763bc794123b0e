-- brim.drive.presets: drives as data: parameters, where each comes from, and what is assumed where
-- nothing is published. Called by brim.drive. Bytes, nanoseconds.
local MS <const> = 1000000
local MB <const> = 1000000

local M = {}

-- One revolution at so many a minute.
local function rotation(rpm)
  return 60 * 1000 * MS // rpm
end

-- The full stroke that gives a mean over random seeks: E(sqrt(|x - y|)) is 8/15.
local function full_stroke(min_ns, mean_ns)
  return min_ns + (mean_ns - min_ns) * 15 // 8
end

M["archive-8tb"] = {
  doc = "drive-managed SMR: Seagate Archive HDD 8 TB (ST8000AS0002)",
  source = "bands, cache and cleaning: Aghayev, Desnoyers: Skylight, FAST 2015, and M. Lehmann: "
    .. "SMR archive drives, fast, now (2015); rates, 5900 rpm: Seagate's data sheet (190 MB/s at "
    .. "most, 150 MB/s on average)",
  assumed = "seeks of 1 ms at least and 12 ms on average; one revolution for each write to the "
    .. "cache; 1 s until idle; 16 zones; 8 streams; cleaning takes any time between 0.6 and 1.6 s "
    .. "equally often",
  params = {
    model = "smr", size_bytes = 8001563222016, overhead_ns = 100000, zones = 16,
    outer_bytes_per_s = 190 * MB, inner_bytes_per_s = 110 * MB,
    rotation_ns = rotation(5900), seek_min_ns = MS, seek_max_ns = full_stroke(MS, 12 * MS),
    band_min_bytes = 15 * MB, band_max_bytes = 40 * MB,
    cache_bytes = 25000 * MB, cache_entries = 250000, cache_write_ns = rotation(5900),
    clean_min_ns = 600 * MS, clean_max_ns = 1600 * MS, idle_ns = 1000 * MS, is_used = 1,
  },
}

M["hdd-7200"] = {
  doc = "disk of 7200 rpm: Seagate Barracuda 3 TB (ST3000DM001)",
  source = "Seagate's data sheet: 7200 rpm, 210 MB/s at most and 156 MB/s on average, mean seek "
    .. "8.5 ms",
  assumed = "track to track 1 ms; 16 zones; 0.1 ms a command; no reordering of a queue",
  params = {
    model = "hdd", size_bytes = 3000592982016, overhead_ns = 100000, zones = 16,
    outer_bytes_per_s = 210 * MB, inner_bytes_per_s = 102 * MB,
    rotation_ns = rotation(7200), seek_min_ns = MS, seek_max_ns = full_stroke(MS, 8500000),
  },
}

M["ssd-sata"] = {
  doc = "SATA SSD: rates and one overhead, no garbage collection: Samsung 860 EVO 1 TB",
  source = "Samsung's data sheet of the 860 EVO: 550 and 520 MB/s, 10,000 reads of 4 KiB a second "
    .. "at queue depth 1",
  assumed = "the same overhead for writes and reads (writes are acknowledged sooner); 1 ms a flush",
  params = {
    model = "constant", size_bytes = 1000204886016, overhead_ns = 92500,
    read_bytes_per_s = 550 * MB, write_bytes_per_s = 520 * MB, flush_ns = MS,
  },
}

M.ideal = {
  doc = "no time at all: for recording what a guest does",
  source = "none needed",
  assumed = "nothing",
  params = { model = "ideal", size_bytes = math.maxinteger },
}

return M
