-- Guests for campaigns on F2FS: a user-mode Linux with an image as its only disk runs a shell
-- script, which sees a directory of the host as /host. Needs a static busybox. Called by
-- f2fs_cadence.lua.
local helper = require "spec.helper"

local M = {}

-- Where a static busybox is, or nil and why not: the system's, or Debian's package taken apart.
local function busybox(dir)
  local found = helper.sh "command -v busybox":match "^/[^\n]*"
  if found and helper.sh("file -L %s", found):find "static" then
    return found
  end
  local _, status = helper.sh("cd %s && apt-get -qq download busybox-static && dpkg -x "
    .. "busybox-static*.deb .", dir)
  if status ~= 0 then
    return nil, "no static busybox (Debian: apt install busybox-static)"
  end
  return helper.must("ls %s/bin/busybox %s/usr/bin/busybox 2>/dev/null || true", dir, dir)
    :match "[^\n]+"
end

local INIT <const> = [[#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
for m in crc32_generic lz4_compress lz4hc_compress f2fs; do
  [ -e /$m.ko ] && insmod /$m.ko
done
mount -t hostfs none /host -o "$(sed 's/.*hd=\([^ ]*\).*/\1/' /proc/cmdline)"
sh /host/job.sh >/host/job.log 2>&1
echo $? >/host/job.rc
umount /mnt
poweroff -f
]]

---Make what a kernel boots into. The path of the initramfs, or nil and why there is none.
function M.initramfs(kernel, dir)
  local tree = dir .. "/tree"
  local box, why = busybox(dir)
  if not box then
    return nil, why
  end
  helper.must("mkdir -p %s/bin %s/proc %s/sys %s/dev %s/host %s/mnt && cp %s %s/bin/busybox", tree,
    tree, tree, tree, tree, tree, box, tree)
  helper.must("find %s -name crc32_generic.ko -o -name 'lz4*_compress.ko' -o -name f2fs.ko | "
    .. "xargs -I{} cp {} %s", kernel.modules, tree)
  helper.write(tree .. "/init", INIT)
  helper.must("chmod 755 %s/init && cd %s && find . | bin/busybox cpio -o -H newc "
    .. "2>/dev/null >%s/initramfs", tree, tree, dir)
  return dir .. "/initramfs"
end

---Start a guest on a script; what M.wait takes. `dir` becomes /host.
function M.start(kernel, o)
  helper.write(o.dir .. "/job.sh", o.script)
  local command = ("TMPDIR=%s timeout %d %s mem=%dM initrd=%s ubd0=%s hd=%s con=null "
    .. "con0=null,fd:1 quiet panic=1 uml_dir=%s umid=guest </dev/null >%s/console 2>&1"):format(
    o.dir, o.timeout_s, kernel.kernel, o.memory_mb or 256, o.initramfs, o.image, o.dir, o.dir,
    o.dir)
  return { dir = o.dir, pipe = assert(io.popen(command)) }
end

---Wait for a guest to end. What its script wrote, or nil and what went wrong.
function M.wait(guest)
  guest.pipe:close()
  local rc = io.open(guest.dir .. "/job.rc")
  local status = rc and rc:read "n"
  if rc then
    rc:close()
  end
  local log <close> = io.open(guest.dir .. "/job.log")
  local text = log and log:read "a" or ""
  if status ~= 0 then
    return nil, ("the guest's script ended with %s:\n%s\n%s"):format(tostring(status),
      text:sub(-2000), helper.sh("tail -n 20 %s/console", guest.dir))
  end
  return text
end

return M
