-- brim.f2fs.explain against kernels: for seeded knob sets on a near-full, idle F2FS, when the GC
-- thread woke and when the simulation says it does, within 10 %. brim.knobs against what each
-- kernel lists: names and defaults; and brim knobs itself, run in the guest. Called by
-- `make campaign-f2fs`:
--   build/brim run spec/campaign/f2fs_cadence.lua [N [SEED]]      N knob sets for each kernel
package.path = "./?.lua;" .. package.path
local data = require "brim.knobs.data"
local gc = require "brim.f2fs.explain.gc"
local guests = require "spec.campaign.f2fs_guest"
local helper = require "spec.helper"
local oracles = require "spec.oracles"

local count = math.tointeger(tonumber(arg[1])) or 10
local seed = math.tointeger(tonumber(arg[2])) or 1
local TOLERANCE <const> = 0.1
local WAKES <const> = 7 -- that are compared

-- Writable files that are no tunables, or of what Debian's user-mode kernel is built without.
local NO_KNOBS <const> = { extension_list = true, inject_rate = true, inject_type = true,
  inject_lock_timeout = true, compr_written_block = true, compr_saved_block = true,
  compr_new_inode = true, peak_atomic_write = true, committed_atomic_block = true,
  revoked_atomic_block = true, gc_reclaimed_segments = true, batched_trim_sections = true }
local MAY_LACK <const> = { blkzone_alloc_policy = true, compress_percent = true,
  compress_watermark = true }

-- Seeded knob sets: with and without a sleep that equals the one after no victim.
local function cases()
  math.randomseed(seed)
  local list = {}
  for i = 1, count do
    local min = math.random(10, 25) * 100
    local max = min + math.random(0, 20) * 100
    local start = math.random(10, 20) * 100
    local no_gc = ({ 300000, start, min * 2, 60000 })[math.random(4)]
    list[i] = { gc_min_sleep_time = min, gc_max_sleep_time = max, gc_no_gc_sleep_time = no_gc,
      gc_urgent_sleep_time = start }
  end
  return list
end

-- Of a case in a kernel: when the thread wakes, in ms since the wake-up that begins it.
local function predict(set, kernel)
  local knobs = {}
  for name, v in pairs(set) do
    knobs[name] = v
  end
  knobs.gc_urgent = 0
  local times = {}
  for _, w in ipairs(gc.simulate({ knobs = knobs, kernel = kernel,
    wait_ms = set.gc_urgent_sleep_time }, math.maxinteger, WAKES)) do
    times[#times + 1] = w.t_ms
  end
  return times
end

-- Fills with files of 128 KiB, deletes each fourth; then runs the cases. What GC moves is written
-- between them only, and nothing is discarded: a wake-up while there is I/O takes no victim.
local JOB <const> = [[
set -e
mount -t f2fs -o nodiscard /dev/ubda /mnt
S=/sys/fs/f2fs/ubda P=/proc/fs/f2fs/ubda
for f in $S/*; do
  [ -f $f ] && echo "attr ${f##*/} $(stat -c %a $f) $(head -n 1 $f 2>/dev/null | tr ' ' _)"
done
# The host's files below /root, so that brim runs here, too.
mkdir -p /root
mount -t hostfs none /root -o /
for d in sys proc mnt; do mount -o bind /$d /root/$d; done
brim() {
  BRIM_STATE_DIR=HOST/state PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot /root EXE --quiet knobs /mnt "$@"
}
sh /host/state.sh before
brim --preset=large-volume gc_urgent=3 gc_min_sleep_time=777 -- sh HOST/state.sh during
sh /host/state.sh after
brim --preset=lfs background_gc=sync -- sh HOST/state.sh lfs
sh /host/state.sh after_lfs
echo "main $(grep -o '[0-9]|' $P/segment_info | wc -l)"
awk 'BEGIN { s = sprintf("%131072s", ""); for (i = 0; i < FILES; i++) {
  f = sprintf("/mnt/%05d", i); printf "%s", s >f; close(f) } }'
sync
(cd /mnt && ls | awk 'NR % 4 == 1' | xargs rm)
sync
echo 3 >/proc/sys/vm/drop_caches
cp $P/segment_info /host/segment_info
echo "dirty $(cat $S/dirty_segments) free $(cat $S/free_segments)"
echo 0 >$S/gc_idle_interval
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
calls() { read -r n <$S/gc_background_calls; }
now() { read -r t rest </proc/uptime; }
run() {
  id=$1 end=$2; shift 2
  sync
  sleep 1
  for kv in "$@"; do echo ${kv#*=} >$S/${kv%%=*}; done
  calls; last=$n
  echo 1 >$S/gc_urgent
  while calls && [ $n = $last ]; do usleep 5000; done
  echo 0 >$S/gc_urgent
  last=$n; now; echo "wake $id $t"
  left=WAKES
  while [ $left -gt 0 ]; do
    now; [ ${t%.*} -gt $((${first:=${t%.*}} + end)) ] && break
    calls
    [ $n = $last ] || { echo "wake $id $t"; left=$((left - 1)); last=$n; }
    usleep 10000
  done
  first=
}
]]

-- Says what the kernel holds; the first argument is a word to say it with.
local STATE <const> = [[
S=/sys/fs/f2fs/ubda
echo "state $1 $(cat $S/ipu_policy) $(cat $S/gc_idle) $(cat $S/gc_min_sleep_time) $(
  sed -n 's/.* \/mnt .*\(,mode=[a-z]*\).*\(alloc_mode=[a-z]*\).*/\1,\2/p' /proc/mounts)"
]]

local function script(list, kernel, dir)
  local lines = { (JOB:gsub("FILES", "7200"):gsub("WAKES", tostring(WAKES))
    :gsub("HOST", dir):gsub("EXE", helper.exe)) }
  for i, set in ipairs(list) do
    local words = {}
    for name, v in pairs(set) do
      words[#words + 1] = ("%s=%d"):format(name, v)
    end
    table.sort(words)
    local times = predict(set, kernel)
    lines[#lines + 1] = ("run %d %d %s"):format(i, times[#times] // 1000 + 8,
      table.concat(words, " "))
  end
  return table.concat(lines, "\n") .. "\n"
end

-- ------------------------------------------------------------------------- judging

local failures = 0

local function fail(fmt, ...)
  failures = failures + 1
  print("FAILED " .. fmt:format(...))
end

local function judge_case(kernel, set, i, wakes)
  local predicted = predict(set, kernel)
  local measured = {}
  for k = 2, #wakes do
    measured[k - 1] = (wakes[k] - wakes[1]) * 1000
  end
  local n = #measured
  if n < #predicted then
    return fail("%s case %d: woke %d times, not %d", kernel, i, n, #predicted)
  end
  local off = (measured[n] - predicted[n]) / predicted[n]
  print(("%-8s min %4d max %4d no_gc %6d start %4d: %d wake-ups predicted in %6.2f s, measured "
    .. "%6.2f s, %+5.1f %%"):format(kernel, set.gc_min_sleep_time, set.gc_max_sleep_time,
    set.gc_no_gc_sleep_time, set.gc_urgent_sleep_time, n, predicted[n] / 1000, measured[n] / 1000,
    off * 100))
  if math.abs(off) > TOLERANCE then
    fail("%s case %d is off by %.1f %%", kernel, i, off * 100)
  end
end

-- Names and defaults of what the kernel lists.
local function judge_knobs(kernel, text)
  local listed, main = {}, math.tointeger(tonumber(text:match "\nmain (%d+)"))
  for name, mode, value in text:gmatch "attr (%S+) (%d+) (%S*)" do
    listed[name] = value
    local knob = mode:sub(1, 1) == "6" and not NO_KNOBS[name] and data.of "f2fs"[name]
    if mode:sub(1, 1) == "6" and not NO_KNOBS[name] and not knob then
      fail("%s lists %s, of which brim knows nothing", kernel, name)
    end
  end
  local reserved = math.tointeger(tonumber(listed.min_ssr_sections))
  local defaults = data.defaults("f2fs", { main_segments = main, section_segments = 1,
    reserved_segments = reserved }, kernel)
  local right = 0
  for _, knob in ipairs(data.of "f2fs") do
    if knob.place == "fs" then
      local should = data.is_in(knob, kernel) and not MAY_LACK[knob.name]
      if should and not listed[knob.name] then
        fail("%s should have %s", kernel, knob.name)
      elseif listed[knob.name] and defaults[knob.name] ~= nil
        and tostring(defaults[knob.name]) ~= tostring(knob.names and knob.names[listed[knob.name]]
        or listed[knob.name]) then
        fail("%s: default of %s is %s, not %s", kernel, knob.name, listed[knob.name],
          tostring(defaults[knob.name]))
      elseif listed[knob.name] then
        right = right + 1
      end
    end
  end
  print(("%-8s %d knobs as known, %s"):format(kernel, right, text:match "dirty %d+ free %d+"))
end

-- What brim knobs did in the guest: policy, GC mode, sleep, mode and allocation.
local STATES <const> = {
  before = "129 0 30000 ,mode=adaptive,alloc_mode=reuse",
  during = "16 6 777 ,mode=adaptive,alloc_mode=default",
  after = "129 0 30000 ,mode=adaptive,alloc_mode=reuse",
  lfs = "0 0 30000 ,mode=lfs,alloc_mode=reuse",
  after_lfs = "129 0 30000 ,mode=adaptive,alloc_mode=reuse",
}

local function judge_set(kernel, text)
  for name, expected in pairs(STATES) do
    local got = text:match("\nstate " .. name .. " ([^\n]*)") or "nothing"
    if got ~= expected then
      fail("%s: %s brim knobs the kernel holds '%s', not '%s'", kernel, name, got, expected)
    end
  end
end

-- --------------------------------------------------------------------------- running

local root = helper.must("mktemp -d ${TMPDIR:-/tmp}/brim-campaign.XXXXXX"):match "%S+"

local function start(kernel, list)
  local dir = ("%s/%s"):format(root, kernel.version)
  helper.must("mkdir -p %s && truncate -s 1g %s/image", dir, dir)
  helper.must("%s -q -f %s/image", assert(oracles.newest "f2fs").mkfs, dir)
  helper.write(dir .. "/state.sh", STATE)
  local initramfs = assert(guests.initramfs(kernel, dir))
  local guest = guests.start(kernel, { dir = dir, initramfs = initramfs, image = dir .. "/image",
    script = script(list, kernel.version, dir), timeout_s = 120 + 40 * count })
  return { kernel = kernel, guest = guest }
end

local function main()
  local list, running = cases(), {}
  for _, kernel in ipairs(oracles.uml()) do
    if kernel.modules then
      running[#running + 1] = start(kernel, list)
    end
  end
  if #running == 0 then
    print "skipped: no user-mode Linux with modules here (make oracles fetches some)"
    return 77
  end
  for _, r in ipairs(running) do
    local text, why = guests.wait(r.guest)
    if not text then
      fail("%s: %s", r.kernel.version, why)
    else
      judge_knobs(r.kernel.version, text)
      judge_set(r.kernel.version, text)
      local wakes = {}
      for id, t in text:gmatch "wake (%d+) ([%d.]+)" do
        id = math.tointeger(tonumber(id))
        wakes[id] = wakes[id] or {}
        table.insert(wakes[id], tonumber(t))
      end
      for i, set in ipairs(list) do
        judge_case(r.kernel.version, set, i, wakes[i] or {})
      end
    end
  end
  print(("%d kernels, %d knob sets each, seed %d: %d failures"):format(#running, count, seed,
    failures))
  return failures == 0 and 0 or 1
end

local ok, status = xpcall(main, debug.traceback)
if not os.getenv "KEEP" then
  helper.sh("rm -rf --one-file-system %s", root)
end
if not ok then
  io.stderr:write(tostring(status), "\n")
end
os.exit(ok and status or 1)
