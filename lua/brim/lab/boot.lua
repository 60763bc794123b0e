-- brim.lab.boot: what runs in a guest before and after the script, as texts: init, which mounts and
-- unmounts, and the chunk that runs the script with lines that come out at once. Called by
-- initramfs. Pure.
local M = {}

---Directories of a guest's root that mounts need.
---@type string[]
M.DIRECTORIES = { "dev", "proc", "sys", "tmp", "run", "root", "mnt", "host", "results" }

---The init of a guest. Its console says where it failed; `status` among the results, and the
---console again, how the script ended. The results' hostfs is synchronous: a line is at the host
---when its write has returned, so nothing that was measured goes with a guest that hangs.
---@type string
M.SCRIPT = [[
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root TERM=dumb
end() {
  echo "brim lab: status $1"
  cd /
  umount -a -t f2fs,xfs,ext4,btrfs 2>/dev/null
  umount /results 2>/dev/null
  poweroff -f
}
fail() {
  echo "brim lab: $1"
  end 125
}
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
dir=$(sed -n 's/.*brim_lab=\([^ ]*\).*/\1/p' /proc/cmdline)
for module in /modules/*.ko; do
  insmod "$module" || case $module in *f2fs.ko) fail "${module##*/} does not load" ;; esac
done
mount -t hostfs -o ro none /host || fail "the host's files cannot be mounted"
. "/host$dir/job.sh"
mount -t hostfs -o "sync,$dir/results" none /results || fail "the results cannot be mounted"
i=0
for letter in a b c d e f g h; do
  [ $i -lt "$disks" ] || break
  i=$((i + 1))
  [ -b /dev/ubd$letter ] || fail "disk $i cannot be opened: does another guest use it?"
done
cd /results
brim run /main.lua "$script" "$@" >>output.log 2>>error.log </dev/null
status=$?
echo "$status $(uname -r)" >status
end $status
]]

---The chunk that runs the script as `brim run` does.
---@type string
M.MAIN = [[
io.stdout:setvbuf "line"
local words = { [0] = "brim", "run", ... }
os.exit(require("brim.cli").main(words), true)
]]

return M
