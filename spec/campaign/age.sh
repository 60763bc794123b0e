#!/usr/bin/env bash
# Makes a used XFS: age.sh IMAGE SEED [mkfs options]: formats, mounts over a loop device, creates many
# files, deletes some, shares extents, punches holes, unmounts; twice, and IMAGE.old is what it was in
# between. Needs root. What it mounts and attaches it takes away again. SIZE, FILES: how much; MKFS: the
# mkfs.xfs to be used.
set -euo pipefail
image=$1 seed=$2
shift 2
RANDOM=$seed
rm -f "$image"
truncate -s "${SIZE:-512m}" "$image"
"${MKFS:-mkfs.xfs}" -q -f "$@" "$image"
dir=$(mktemp -d "${TMPDIR:-/tmp}/brim-age.XXXXXX")
loop=$(losetup -f --show "$image")
trap 'umount "$dir" 2>/dev/null || true; losetup -d "$loop" 2>/dev/null || true; rmdir "$dir"' EXIT

files=${FILES:-4000}
round() {
  mount -t xfs "$loop" "$dir"
  mkdir -p "$dir"/d{0..19}
  [ -e "$dir/source" ] || head -c 262144 /dev/urandom >"$dir/source"
  python3 - "$dir" "$1" "$files" <<'PY'
import os, random, sys, fcntl, errno
root, seed, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = random.Random(seed)
FICLONE = 0x40049409
src = os.open(root + "/source", os.O_RDONLY)
names = []
def full(e): return e.errno in (errno.ENOSPC, errno.EDQUOT)
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
for i in range(files):
    p = "%s/d%d/f%d-%d" % (root, r.randrange(20), seed % 1000003, i)
    try:
        f = os.open(p, os.O_CREAT | os.O_RDWR)
        names.append(p)
        what = r.randrange(10)
        if what < 5:
            os.write(f, b"x" * r.randrange(1, 20000))
        elif what < 8:
            for _ in range(r.randrange(1, 6)):
                os.pwrite(f, b"y" * 4096, r.randrange(0, 200) * 8192)
        elif what == 8:
            try: fcntl.ioctl(f, FICLONE, src)
            except OSError: os.write(f, b"z" * 5000)
            if r.randrange(2): os.pwrite(f, b"w" * 4096, r.randrange(64) * 4096)
            if r.randrange(8) == 0: libc.fallocate(f, 0x40, 65536, r.randrange(1, 20) * 4096)
        elif r.randrange(3) == 0: # unwritten, partly written after all
            libc.fallocate(f, 0, r.randrange(4) * 8192, r.randrange(1, 40) * 4096)
            if r.randrange(2): os.pwrite(f, b"u" * 4096, r.randrange(30) * 4096)
        if r.randrange(12) == 0: # attributes, short and long, few and many
            for k in range(r.choice((1, 1, 3, 40))):
                os.setxattr(f, "user.a%d" % k, b"v" * r.choice((1, 20, 300, 3000, 60000)))
            if r.randrange(4) == 0: # and none any more
                for name in os.listxattr(f): os.removexattr(f, name)
        os.close(f)
        if r.randrange(40) == 0: os.symlink("t" * r.randrange(1, 1000), p + ".l")
        if r.randrange(80) == 0: os.mkfifo(p + ".p")
        if r.randrange(80) == 0: os.mknod(p + ".n", 0o20600, os.makedev(1, 3))
        if r.randrange(40) == 0: os.link(p, p + ".h")
    except OSError as e:
        if not full(e): raise
    if r.randrange(3) == 0 and names:
        k = r.randrange(len(names))
        try: os.unlink(names[k])
        except OSError as e:
            if not full(e): raise
            continue
        names[k] = names[-1]; names.pop()
    if i % 997 == 0: os.fsync(src)
# Free space in many pieces: one file of many blocks, every other one punched out.
try:
    f = os.open(root + "/holes%d" % seed, os.O_CREAT | os.O_RDWR)
    n = 2000 + r.randrange(6000)
    os.write(f, b"h" * (n * 4096))
    os.fsync(f)
    for b in range(0, n, 2):
        libc.fallocate(f, 3, b * 4096, 4096)
    os.close(f)
    # Attributes in as many pieces: their fork becomes a tree.
    f = os.open(root + "/attributes%d" % seed, os.O_CREAT | os.O_RDWR)
    for k in range(r.choice((0, 20, 60))): os.setxattr(f, "user.b%d" % k, b"w" * 60000)
    os.close(f)
except OSError as e:
    if not full(e): raise
# Whole chunks of inodes freed, so that the inode trees have gaps too.
for p in names[: len(names) // 3]:
    try: os.unlink(p)
    except OSError: pass
PY
  umount "$dir"
}

round "$seed"
cp --sparse=always "$image" "$image.old"
round "$((seed + 1000000))"
