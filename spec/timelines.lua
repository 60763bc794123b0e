-- Made-up timelines for specs and for looking at reports: a fill of a filesystem to several levels
-- with churn at each, on a model whose speed falls as it fills. Same seed, same text. Never data of
-- a measurement.
local json = require "brim.json"
local columns = require "brim.timeline.columns"

local M = {}

---A generator of numbers from 0 to 1.
function M.random(seed)
  local x = seed
  return function()
    x = x * 6364136223846793005 + 1442695040888963407
    return (x >> 33) / (1 << 31)
  end
end

---Speed of the model at a fullness, as a fraction of the fastest.
function M.speed_at(fullness, knee)
  return fullness < knee and 1 - 0.25 * fullness
    or math.max(0.03, (1 - 0.25 * fullness) * ((1 - fullness) / (1 - knee)) ^ 1.5)
end

local function sample(m, r)
  local speed = m.top * M.speed_at(m.used / m.size, m.knee) * (0.8 + 0.4 * r())
  local slow = m.top / speed
  m.t = m.t + 1
  m.written = m.written + math.floor(speed)
  if m.kind == "fill" then
    m.used = math.min(m.used + math.floor(speed), m.goal)
    m.files = m.files + math.floor(speed / m.file_bytes)
  end
  if m.t % 5 == 0 or m.used >= m.goal then
    m.synced = m.used
  end
  return { type = "sample", t_s = m.t, phase = m.phase, level = m.level,
    fullness = math.min(1, m.used / m.size + 0.03 * r() * (1 - m.used / m.size)),
    synced_fullness = m.synced / m.size, used_bytes = m.used, synced_used_bytes = m.synced,
    files = m.files, written_bytes = m.written, bytes_per_s = speed,
    files_per_s = speed / m.file_bytes, create_p50_s = 40e-6 * slow * (0.9 + 0.2 * r()),
    create_p99_s = 600e-6 * slow ^ 1.6 * (0.7 + 0.6 * r()), create_max_s = 9e-3 * slow ^ 2,
    dev_write_bytes = math.floor(speed * 1.05), dev_busy = 0.5 + 0.5 * r() }
end

---The lines of a timeline. o: seed, title, filesystem, top (bytes/s), knee (fullness), size_bytes,
---levels, churn_s.
function M.lines(o)
  local r = M.random(o.seed or 1)
  local m = { size = o.size_bytes or 64 << 30, top = o.top or 400e6, knee = o.knee or 0.8,
    file_bytes = 128 << 10, t = 0, used = 0, synced = 0, written = 0, files = 0 }
  local lines = { { type = "header", format = "brim-timeline", version = 1, brim = "0.1.0",
    started = "2024-06-07T08:09:10Z", host = "labhost", kernel = "6.1.0-21-amd64",
    filesystem = o.filesystem or "xfs", mount_options = "rw,noatime,attr2,inode64",
    device = "sdx", size_bytes = m.size, path = "/mnt/test", seed = o.seed or 1, title = o.title,
    device_info = { model = "MODEL 8000", queue = { rotational = 1, scheduler = "[mq-deadline]" } },
    options = { sizes = "log_uniform(4k,4m)", streams = 4 }, columns = columns.STANDARD } }
  local function add(line) lines[#lines + 1] = line end
  for _, level in ipairs(o.levels or { 0.5, 0.8, 0.9, 0.95, 0.99 }) do
    m.level, m.kind, m.phase = level, "fill", ("fill to %g %%"):format(level * 100)
    m.goal = math.floor(m.size * level)
    add { type = "phase", t_s = m.t, name = m.phase, kind = "fill", level = level }
    while m.used < m.goal do
      add(sample(m, r))
    end
    add { type = "mark", t_s = m.t, name = ("%g %% full"):format(level * 100) }
    m.kind, m.phase = "churn", ("churn at %g %%"):format(level * 100)
    add { type = "phase", t_s = m.t, name = m.phase, kind = "churn", level = level }
    for _ = 1, o.churn_s or 30 do
      add(sample(m, r))
    end
  end
  add { type = "event", t_s = m.t - 40, kind = "collapse", state = "begin",
    message = "speed is down to 8 % of its median" }
  add { type = "event", t_s = m.t - 3, kind = "refused", op = "create", code = "ENOSPC",
    path = "s0/d1/f77.jpg", message = "No space left on device" }
  add { type = "result", t_s = m.t, files = m.files, written_bytes = m.written,
    stopped = "ENOSPC" }
  return lines, m
end

---The text of a timeline; o as for lines.
function M.text(o)
  local out = {}
  for i, line in ipairs(M.lines(o)) do
    out[i] = json.encode(line)
  end
  return table.concat(out, "\n") .. "\n"
end

return M
