/* SPDX-License-Identifier: MIT */
/*
 * device_fd.c: regular files and block devices: opening them with every
 * refusal before the first change, their sectors, and I/O on the descriptor.
 * Called by device.c. Offsets and lengths are bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device.h"

/* One BLKDISCARD covers at most this, so that signals get through between. */
#define DISCARD_STEP_BYTES (UINT64_C(2) << 30)

/* ----------------------------------------------------------------- opening */

/* NULL: strerror says it well enough. */
static const char *why_open_failed(int code, int is_create)
{
	switch (code) {
	case -EACCES:
	case -EPERM:
		return is_create ? "cannot be made: no permission"
				 : "may not be opened: no permission";
	case -EROFS:
		return "is read-only, or on a read-only filesystem";
	case -ETXTBSY:
		return "is a program that is running";
	case -EBUSY:
		return "is in use: somebody has claimed it (a mount, RAID, "
		       "LVM)";
	case -ENXIO:
	case -ENODEV:
	case -ENOMEDIUM:
		return "has no device or no medium behind it";
	default:
		return NULL;
	}
}

static int open_failed(const struct brim_device *d, int code, int is_create,
		       struct brim_err *e)
{
	const char *why = why_open_failed(code, is_create);
	struct stat st;

	if (code == -EEXIST && lstat(d->info.path, &st) == 0 &&
	    S_ISLNK(st.st_mode))
		return brim__errf(e, -ENOENT, "open",
				  "%s is a symbolic link to nowhere", d->shown);
	if (code == -ENOENT && is_create)
		return brim__errf(e, code, "open",
				  "%s cannot be made: its directory does not "
				  "exist",
				  d->shown);
	if (!why)
		return brim__err(e, code, "open", d->shown);
	return brim__errf(e, code, "open", "%s %s", d->shown, why);
}

static int make_file(struct brim_device *d, struct brim_err *e)
{
	d->fd = open(d->info.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (d->fd < 0)
		return open_failed(d, -errno, 1, e);
	return 0;
}

/* Opens what st describes, and nothing that took its place since. */
static int open_existing(struct brim_device *d, const struct stat *st,
			 const struct brim_device_options *o,
			 struct brim_err *e)
{
	int flags = O_RDONLY | O_CLOEXEC;
	struct stat now;

	if (o->flags & BRIM_DEVICE_WRITE) {
		flags = O_RDWR | O_CLOEXEC;
		if (S_ISBLK(st->st_mode))
			flags |= O_EXCL; /* keeps mounts away, too */
	}
	d->fd = open(d->info.path, flags);
	if (d->fd < 0)
		return open_failed(d, -errno, 0, e);
	if (fstat(d->fd, &now) < 0)
		return brim__err(e, -errno, "open", d->shown);
	if (now.st_dev != st->st_dev || now.st_ino != st->st_ino ||
	    now.st_rdev != st->st_rdev || now.st_mode != st->st_mode)
		return brim__errf(e, -ESTALE, "open",
				  "%s was replaced while it was being opened",
				  d->shown);
	return 0;
}

/* ----------------------------------------------- size, sectors, direct I/O */

/* A number from sysfs about the disk of a device or partition, or -1. */
static int queue_attribute(dev_t dev, const char *name)
{
	static const char *const WHERE[] = { "", "/.." };
	char path[128];
	int n = -1;
	size_t k;

	for (k = 0; k < 2 && n < 0; k++) {
		FILE *f;

		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u%s/queue/%s",
			 major(dev), minor(dev), WHERE[k], name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%d", &n) != 1)
			n = -1;
		fclose(f);
	}
	return n;
}

static void learn_file(struct brim_device *d, const struct stat *st)
{
	d->info.kind = BRIM_KIND_FILE;
	d->info.size_bytes = (uint64_t)st->st_size;
	/* -1 for filesystems on no or on many disks: their st_dev is none. */
	d->info.is_rotational = queue_attribute(st->st_dev, "rotational");
	d->zero_mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
}

static int learn_block(struct brim_device *d, const struct stat *st,
		       struct brim_err *e)
{
	unsigned int physical = 0, min_io = 0, opt_io = 0;
	int logical = 0, is_readonly = 0, misaligned = 0;
	uint64_t size_bytes = 0;

	if (ioctl(d->fd, BLKGETSIZE64, &size_bytes) < 0 ||
	    ioctl(d->fd, BLKSSZGET, &logical) < 0 ||
	    ioctl(d->fd, BLKROGET, &is_readonly) < 0)
		return brim__err(e, -errno, "open", d->shown);
	if (d->info.is_writable && is_readonly)
		return open_failed(d, -EROFS, 0, e);
	if (ioctl(d->fd, BLKPBSZGET, &physical) < 0)
		physical = (unsigned int)logical;
	if (ioctl(d->fd, BLKIOMIN, &min_io) < 0)
		min_io = 0;
	if (ioctl(d->fd, BLKIOOPT, &opt_io) < 0)
		opt_io = 0;
	/* -1: misaligned in a way that no offset mends. */
	if (ioctl(d->fd, BLKALIGNOFF, &misaligned) < 0)
		misaligned = 0;
	d->info.kind = BRIM_KIND_BLOCK;
	d->info.size_bytes = BRIM__MIN(size_bytes, (uint64_t)BRIM_MAX_BYTES);
	d->info.logical_sector_bytes = (uint32_t)logical;
	d->info.physical_sector_bytes = physical;
	d->info.min_io_bytes = min_io;
	d->info.opt_io_bytes = opt_io;
	d->info.misaligned_bytes = misaligned < 0 ? physical / 2
						  : (uint32_t)misaligned;
	d->info.is_rotational = queue_attribute(st->st_rdev, "rotational");
	/* Zeroes without giving the blocks back: stays provisioned. */
	d->zero_mode = FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE;
	return 0;
}

/*
 * What the filesystem says that direct I/O on a file must be a multiple of; 0:
 * there is none, -1: it does not say (before Linux 6.1, tmpfs, ...).
 */
static int64_t file_align_told(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx x = { 0 };

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) == 0 &&
	    (x.stx_mask & STATX_DIOALIGN))
		return BRIM__MAX(x.stx_dio_offset_align, x.stx_dio_mem_align);
#else
	(void)fd;
#endif
	return -1;
}

/* The same, guessed where it is not told. */
static uint32_t file_align(int fd)
{
	int64_t told = file_align_told(fd);
	struct stat st;
	int logical;

	if (told >= 0)
		return (uint32_t)told;
	logical = fstat(fd, &st) < 0
			  ? -1
			  : queue_attribute(st.st_dev, "logical_block_size");
	/* 4096 is a multiple of every sector in use but a few rare ones. */
	return logical > 0 ? (uint32_t)logical : 4096;
}

static int go_direct(struct brim_device *d, struct brim_err *e)
{
	uint32_t align = d->info.logical_sector_bytes;
	int flags = fcntl(d->fd, F_GETFL);

	if (d->info.kind == BRIM_KIND_FILE)
		align = file_align(d->fd);
	if (align == 0 || flags < 0 ||
	    fcntl(d->fd, F_SETFL, flags | O_DIRECT) < 0)
		return brim__errf(e, -EINVAL, "open",
				  "%s: there is no direct I/O here; open it "
				  "buffered",
				  d->shown);
	d->info.is_direct = 1;
	d->info.align_bytes = align;
	if (d->info.kind == BRIM_KIND_FILE) {
		d->info.logical_sector_bytes = BRIM__MAX(512, align);
		d->info.physical_sector_bytes = BRIM__MAX(512, align);
	}
	return 0;
}

/* Makes a regular file longer: a hole, no space is taken. */
static int grow(struct brim_device *d, uint64_t size_bytes, struct brim_err *e)
{
	struct rlimit limit;
	char wanted[32];
	int code;

	brim_bytes_format(wanted, sizeof(wanted), size_bytes);
	/* Beyond the limit ftruncate sends SIGXFSZ, which kills. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY && size_bytes > limit.rlim_cur)
		return brim__errf(e, -EFBIG, "open",
				  "%s cannot be made %s long: this process may "
				  "make files of %llu bytes (ulimit -f)",
				  d->shown, wanted,
				  (unsigned long long)limit.rlim_cur);
	if (ftruncate(d->fd, (off_t)size_bytes) == 0) {
		d->info.size_bytes = size_bytes;
		return 0;
	}
	code = -errno;
	if (code == -EFBIG)
		return brim__errf(
			e, code, "open",
			"%s cannot be made %s long: the filesystem that holds "
			"it has no files of that size (XFS and tmpfs have)",
			d->shown, wanted);
	return brim__errf(e, code, "open", "%s cannot be made %s long: %s",
			  d->shown, wanted, strerror(-code));
}

/* --------------------------------------------------------------- the steps */

static int learn(struct brim_device *d, const struct brim_device_options *o,
		 struct brim_err *e)
{
	struct stat st;

	d->info.is_writable = !!(o->flags & BRIM_DEVICE_WRITE);
	if (fstat(d->fd, &st) < 0)
		return brim__err(e, -errno, "open", d->shown);
	if (S_ISBLK(st.st_mode))
		return learn_block(d, &st, e);
	learn_file(d, &st);
	return 0;
}

static bool wants_direct(const struct brim_device *d,
			 const struct brim_device_options *o)
{
	int64_t told;

	if (d->info.kind == BRIM_KIND_BLOCK)
		return !(o->flags & BRIM_DEVICE_BUFFERED);
	if (o->flags & BRIM_DEVICE_DIRECT)
		return true;
	if (!o->direct_align_bytes || (o->flags & BRIM_DEVICE_BUFFERED))
		return false;
	told = file_align_told(d->fd);
	return told > 0 && o->direct_align_bytes % (uint32_t)told == 0;
}

/* Everything after open(2); growing the file is the last thing to fail. */
static int settle(struct brim_device *d, bool is_new,
		  const struct brim_device_options *o, struct brim_err *e)
{
	int ret;

	ret = learn(d, o, e);
	if (ret < 0)
		return ret;
	/* libblkid reads at any offset: direct I/O comes after. */
	if (d->info.is_writable && !is_new && !(o->flags & BRIM_DEVICE_FORCE))
		ret = brim__device_probe_signature(d->shown, d->fd, e);
	if (ret == 0 && wants_direct(d, o))
		ret = go_direct(d, e);
	if (ret == 0 && d->info.is_writable && d->info.kind == BRIM_KIND_FILE &&
	    d->info.size_bytes < o->min_size_bytes)
		ret = grow(d, o->min_size_bytes, e);
	return ret < 0 ? ret : brim__device_fit(d, o, e);
}

int brim__device_fd_open(struct brim_device *d, const struct stat *st,
			 const struct brim_device_options *o,
			 struct brim_err *e)
{
	int ret;

	if (!st) {
		ret = make_file(d, e);
		if (ret < 0)
			return ret;
		ret = settle(d, true, o, e);
		if (ret < 0)
			unlink(d->info.path);
		return ret;
	}
	if (o->flags & BRIM_DEVICE_WRITE) {
		ret = brim__device_probe_busy(d->shown, st, e);
		if (ret < 0)
			return ret;
	}
	ret = open_existing(d, st, o, e);
	return ret < 0 ? ret : settle(d, false, o, e);
}

/* --------------------------------------------------------------------- I/O */

static int64_t fd_read(struct brim_device *d, void *buf, uint64_t len_bytes,
		       uint64_t off_bytes)
{
	ssize_t n = pread(d->fd, buf, len_bytes, (off_t)off_bytes);

	return n < 0 ? -errno : n;
}

static int64_t fd_write(struct brim_device *d, const void *buf,
			uint64_t len_bytes, uint64_t off_bytes)
{
	ssize_t n = pwrite(d->fd, buf, len_bytes, (off_t)off_bytes);

	return n < 0 ? -errno : n;
}

static int fd_zero(struct brim_device *d, uint64_t off_bytes,
		   uint64_t len_bytes)
{
	if (fallocate(d->fd, d->zero_mode, (off_t)off_bytes, (off_t)len_bytes) <
	    0)
		return -errno;
	return 0;
}

/* The reference tools discard block devices only, and so do we. */
static int fd_discard(struct brim_device *d, uint64_t off_bytes,
		      uint64_t len_bytes)
{
	if (d->info.kind != BRIM_KIND_BLOCK)
		return -EOPNOTSUPP;
	while (len_bytes) {
		uint64_t step = BRIM__MIN(len_bytes, DISCARD_STEP_BYTES);
		uint64_t range[2] = { off_bytes, step };

		if (ioctl(d->fd, BLKDISCARD, range) < 0)
			return -errno;
		off_bytes += step;
		len_bytes -= step;
	}
	return 0;
}

static int fd_flush(struct brim_device *d)
{
	return fdatasync(d->fd) < 0 ? -errno : 0;
}

static void fd_close(struct brim_device *d)
{
	if (d->fd >= 0)
		close(d->fd);
}

const struct brim__device_ops brim__device_fd_ops = {
	.read = fd_read,
	.write = fd_write,
	.zero = fd_zero,
	.discard = fd_discard,
	.flush = fd_flush,
	.close = fd_close,
};
