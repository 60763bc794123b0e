-- A fake of what the kernel shows of a mounted F2FS, for specs of knobs, probes and explain: sysfs,
-- procfs and a mount table as files, and a program that remounts it.
local helper = require "spec.helper"

local M = {}

local KNOBS <const> = { gc_min_sleep_time = 30000, gc_max_sleep_time = 60000,
  gc_no_gc_sleep_time = 300000, gc_urgent_sleep_time = 500, gc_idle = 0, gc_urgent = 0,
  gc_idle_interval = 5, reclaim_segments = 50, ipu_policy = 129, min_ipu_util = 70,
  min_ssr_sections = 34, discard_granularity = 1, migration_granularity = 1, cp_interval = 60,
  ovp_segments = 40, free_segments = 60, dirty_segments = 200 }

-- Takes `-o remount,OPTION DIR`, and changes the mount table.
local MOUNT <const> = [[#!/bin/sh
option=${2#remount,}
case $option in mode=lfs) echo "mount: refused" >&2; exit 32;; esac
name=${option%%=*}
case $option in
*=*) sed -i "s/$name=[^, ]*/$option/" TABLE;;
no*) sed -i "s/,${option#no}\b/,$option/" TABLE;;
*) sed -i "s/,no$option\b/,$option/" TABLE;;
esac
[ $name = background_gc ] && echo 30000 >SYSFS/fs/f2fs/fake0/gc_min_sleep_time
exit 0
]]

---Make the fake; a table with what brim.knobs.open wants (o), dir, and file(name), the path of a
---knob's file.
function M.make(more)
  local root = helper.path "fake"
  local fs, queue = root .. "/sys/fs/f2fs/fake0", root .. "/sys/class/block/fake0/queue"
  helper.must("mkdir -p %s %s", fs, queue)
  helper.must("cd %s && mkdir -p mnt state proc/self", root)
  for name, value in pairs(KNOBS) do
    helper.write(("%s/%s"):format(fs, name), value .. "\n")
  end
  for name, value in pairs(more or {}) do
    helper.write(("%s/%s"):format(fs, name), value .. "\n")
  end
  helper.write(queue .. "/scheduler", "[none] mq-deadline kyber\n")
  helper.write(queue .. "/nr_requests", "64\n")
  helper.write(root .. "/proc/self/mountinfo", "1 1 0:1 / / rw - rootfs rootfs rw\n"
    .. ("2 1 7:99 / %s/mnt rw,relatime - f2fs /dev/fake0 rw,background_gc=on,nogc_merge,discard,"
    .. "mode=adaptive,active_logs=6,alloc_mode=reuse\n"):format(root))
  helper.write(root .. "/mount", (MOUNT:gsub("TABLE", root .. "/proc/self/mountinfo")
    :gsub("SYSFS", root .. "/sys")))
  helper.must("chmod 755 %s/mount", root)
  return { dir = root .. "/mnt", root = root, fs = fs,
    o = { sysfs = root .. "/sys", proc = root .. "/proc",
      mountinfo = root .. "/proc/self/mountinfo", mount_program = root .. "/mount",
      kernel = "6.1.0", state_dir = root .. "/state" },
    file = function(name)
      return name:find "^queue" and ("%s/%s"):format(queue, name:sub(7))
        or ("%s/%s"):format(fs, name)
    end }
end

---Give the fake /proc/fs/f2fs with so many segments: of each ten one is free (type 0, 0 blocks),
---one full, eight hold 100 blocks of warm data.
function M.segments(fake, count, section_segments)
  local dir = fake.root .. "/proc/fs/f2fs/fake0"
  helper.must("mkdir -p %s", dir)
  local info = { "format: segment_type|valid_blocks\n",
    "segment_type(0:HD, 1:WD, 2:CD, 3:HN, 4:WN, 5:CN)" }
  for i = 0, count - 1 do
    local kind, valid = 1, 100
    if i % 10 == 0 then
      kind, valid = 0, 0
    elseif i % 10 == 1 then
      kind, valid = 4, 512
    end
    info[#info + 1] = (i % 10 == 0 and ("\n%-10d"):format(i) or " ")
      .. ("%d|%-3d"):format(kind, valid)
  end
  helper.write(dir .. "/segment_info", table.concat(info) .. "\n")
  local bits = { "format: victim_secmap bitmaps" }
  for i = 0, count // section_segments - 1 do
    bits[#bits + 1] = (i % 10 == 0 and ("\n%-10d"):format(i) or " ") .. (i == 3 and "1" or "0")
  end
  helper.write(dir .. "/victim_bits", table.concat(bits) .. "\n")
  return dir
end

---The options as Lua source, for scripts.
function M.source(fake)
  local parts = {}
  for key, v in pairs(fake.o) do
    parts[#parts + 1] = ("%s = %q"):format(key, v)
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

return M
