/* SPDX-License-Identifier: MIT */
/*
 * device.c: the public face of devices: opening by path (what it is, and which
 * of device_*.c takes it), checked synchronous I/O. Called by the engines, the
 * binding and embedders. Offsets and lengths are bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "image.h"

/* Unaligned I/O on a direct device goes through a buffer of this size. */
#define BOUNCE_BYTES (1u << 20)

static const uint32_t ALL_FLAGS = BRIM_DEVICE_WRITE | BRIM_DEVICE_CREATE |
				  BRIM_DEVICE_FORCE | BRIM_DEVICE_DIRECT |
				  BRIM_DEVICE_BUFFERED | BRIM_DEVICE_RAW;

/* ----------------------------------------------------- opening and closing */

/*
 * One line that leaves room for the reason: a long path by its end, control
 * characters as question marks.
 */
static void show_path(char *shown, size_t shown_bytes, const char *path)
{
	size_t len = strlen(path), k;
	const char *dots = "";

	if (len >= shown_bytes) {
		dots = "...";
		path += len - (shown_bytes - 4);
	}
	snprintf(shown, shown_bytes, "%s%s", dots, path);
	for (k = 0; shown[k]; k++)
		if ((unsigned char)shown[k] < ' ' || shown[k] == 0x7f)
			shown[k] = '?';
}

struct brim_device *brim__device_new(enum brim_device_kind kind,
				     const char *path,
				     const struct brim__device_ops *ops)
{
	struct brim_device *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->info.path = strdup(path);
	if (!d->info.path) {
		free(d);
		return NULL;
	}
	show_path(d->shown, sizeof(d->shown), path);
	d->ops = ops;
	d->refs = 1;
	d->fd = -1;
	d->info.kind = kind;
	d->info.logical_sector_bytes = 512;
	d->info.physical_sector_bytes = 512;
	d->info.align_bytes = 1;
	d->info.is_rotational = -1;
	return d;
}

void brim__device_hold(struct brim_device *d)
{
	d->refs++;
}

void brim_device_close(struct brim_device *d)
{
	if (!d || --d->refs > 0)
		return;
	if (d->ops->close)
		d->ops->close(d);
	free((char *)d->info.path);
	free(d);
}

/* Copies what the caller's version of the options has, and checks it. */
static int take_options(struct brim_device_options *out,
			const struct brim_device_options *o, struct brim_err *e)
{
	int ret = brim__options_take(out, sizeof(*out), o, "open", e);

	if (ret < 0)
		return ret;
	if (out->flags & ~ALL_FLAGS)
		return brim__errf(e, -EINVAL, "open", "unknown flags 0x%x",
				  out->flags & ~ALL_FLAGS);
	if ((out->flags & BRIM_DEVICE_DIRECT) &&
	    (out->flags & BRIM_DEVICE_BUFFERED))
		return brim__errf(e, -EINVAL, "open",
				  "direct and buffered exclude each other");
	if ((out->flags & BRIM_DEVICE_CREATE) &&
	    !(out->flags & BRIM_DEVICE_WRITE))
		return brim__errf(e, -EINVAL, "open",
				  "create is of no use without write");
	if (out->min_size_bytes > BRIM_MAX_BYTES ||
	    out->max_size_bytes > BRIM_MAX_BYTES)
		return brim__errf(e, -ERANGE, "open",
				  "a size is more than the largest offset, "
				  "2^63-1");
	if (out->max_size_bytes && out->min_size_bytes > out->max_size_bytes)
		return brim__errf(e, -EINVAL, "open",
				  "min_size_bytes is more than max_size_bytes");
	return 0;
}

/* What a thing is that is no target, or NULL. */
static const char *no_target(mode_t mode)
{
	if (S_ISREG(mode) || S_ISBLK(mode))
		return NULL;
	if (S_ISDIR(mode))
		return "directory";
	if (S_ISCHR(mode))
		return "character device";
	return S_ISFIFO(mode) ? "pipe" : "socket";
}

/* 1: there, as *st says; 0: not there and to be made; else -errno. */
static int look_at(const struct brim_device *d,
		   const struct brim_device_options *o, struct stat *st,
		   struct brim_err *e)
{
	if (!*d->info.path)
		return brim__errf(e, -ENOENT, "open", "the path is empty");
	if (stat(d->info.path, st) < 0) {
		if (errno != ENOENT)
			return brim__err(e, -errno, "open", d->shown);
		if (o->flags & BRIM_DEVICE_CREATE)
			return 0;
		return brim__errf(e, -ENOENT, "open", "%s does not exist",
				  d->shown);
	}
	if (no_target(st->st_mode))
		return brim__errf(e, -ENOTBLK, "open",
				  "%s is a %s; a target is a regular file or a "
				  "block device",
				  d->shown, no_target(st->st_mode));
	return 1;
}

/*
 * 1: an image; 0: none, as far as it can be opened, and opening it again will
 * say why not; -errno: not known, so that it must not be taken for another.
 */
static int is_image(const char *path)
{
	char magic[sizeof(BRIM__IMAGE_MAGIC)];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = pread(fd, magic, sizeof(magic), 0);
	if (n < 0)
		ret = -errno;
	else
		ret = n == (ssize_t)sizeof(magic) &&
		      !memcmp(magic, BRIM__IMAGE_MAGIC, sizeof(magic));
	close(fd);
	return ret;
}

int brim_device_open(struct brim_device **out, const char *path,
		     const struct brim_device_options *o, struct brim_err *e)
{
	struct brim_device_options opts;
	struct brim_device *d;
	struct stat st;
	int ret, exists;

	*out = NULL;
	ret = take_options(&opts, o, e);
	if (ret < 0)
		return ret;
	d = brim__device_new(BRIM_KIND_FILE, path, &brim__device_fd_ops);
	if (!d)
		return brim__err(e, -ENOMEM, "open", "device");
	exists = ret = look_at(d, &opts, &st, e);
	if (exists < 0)
		goto err;
	ret = exists && S_ISREG(st.st_mode) && !(opts.flags & BRIM_DEVICE_RAW)
		      ? is_image(path)
		      : 0;
	if (ret < 0)
		brim__err(e, ret, "open", d->shown);
	else if (ret)
		ret = brim__device_image_open(d, &opts, e);
	else
		ret = brim__device_fd_open(d, exists ? &st : NULL, &opts, e);
	if (ret < 0)
		goto err;
	*out = d;
	return 0;
err:
	brim_device_close(d);
	return ret;
}

int brim__device_fit(struct brim_device *d, const struct brim_device_options *o,
		     struct brim_err *e)
{
	char has[32], wanted[32];

	if (d->info.size_bytes < o->min_size_bytes) {
		brim_bytes_format(has, sizeof(has), d->info.size_bytes);
		brim_bytes_format(wanted, sizeof(wanted), o->min_size_bytes);
		return brim__errf(e, -ENOSPC, "open",
				  "%s is too small: it has %s, and %s are "
				  "needed",
				  d->shown, has, wanted);
	}
	if (o->max_size_bytes)
		d->info.size_bytes =
			BRIM__MIN(d->info.size_bytes, o->max_size_bytes);
	return 0;
}

void brim_device_info(const struct brim_device *d, struct brim_device_info *out)
{
	*out = d->info;
}

const struct brim_plan *brim_device_plan(const struct brim_device *d)
{
	return d->plan;
}

/* ------------------------------------------------------------------ checks */

static int check_range(const struct brim_device *d, const char *op,
		       uint64_t off_bytes, uint64_t len_bytes,
		       struct brim_err *e)
{
	uint64_t size_bytes = d->info.size_bytes;

	if (len_bytes <= size_bytes && off_bytes <= size_bytes - len_bytes)
		return 0;
	return brim__err_at(e, -ERANGE, op, off_bytes,
			    "%s: %s of %llu bytes at %llu goes past the "
			    "end at %llu",
			    d->shown, op, (unsigned long long)len_bytes,
			    (unsigned long long)off_bytes,
			    (unsigned long long)size_bytes);
}

/* Ranges to change: within the device, writable, whole multiples of `unit`. */
static int check_change(const struct brim_device *d, const char *op,
			uint64_t off_bytes, uint64_t len_bytes, uint32_t unit,
			struct brim_err *e)
{
	if (!d->info.is_writable)
		return brim__err_at(e, -EROFS, op, off_bytes,
				    "%s is not open for writing", d->shown);
	if ((off_bytes | len_bytes) % unit)
		return brim__err_at(
			e, -EINVAL, op, off_bytes,
			"%s: %s of %llu bytes at %llu; both must be "
			"multiples of %u",
			d->shown, op, (unsigned long long)len_bytes,
			(unsigned long long)off_bytes, unit);
	return check_range(d, op, off_bytes, len_bytes, e);
}

/* The kernel wants whole sectors, for ranges on block devices. */
static uint32_t range_unit(const struct brim_device *d)
{
	return d->info.kind == BRIM_KIND_BLOCK ? d->info.logical_sector_bytes
					       : 1;
}

static int io_failed(const struct brim_device *d, const char *op, int code,
		     uint64_t off_bytes, uint64_t len_bytes, struct brim_err *e)
{
	return brim__err_at(e, code, op, off_bytes,
			    "%s: %s of %llu bytes at %llu: %s", d->shown, op,
			    (unsigned long long)len_bytes,
			    (unsigned long long)off_bytes, strerror(-code));
}

/* --------------------------------------------------------------------- I/O */

/* Reads up to len bytes, and at least `need` of them. */
static int read_all(struct brim_device *d, uint64_t off_bytes, size_t len_bytes,
		    size_t need_bytes, char *buf, struct brim_err *e)
{
	size_t done = 0;
	int64_t n;

	while (done < need_bytes) {
		n = d->ops->read(d, buf + done, len_bytes - done,
				 off_bytes + done);
		if (n == -EINTR)
			continue;
		if (n == 0) /* cut short behind our back */
			n = -EIO;
		if (n < 0)
			return io_failed(d, "read", (int)n, off_bytes + done,
					 len_bytes - done, e);
		done += (size_t)n;
	}
	return 0;
}

static int write_all(struct brim_device *d, uint64_t off_bytes,
		     size_t len_bytes, const char *buf, struct brim_err *e)
{
	int64_t n;

	while (len_bytes) {
		n = d->ops->write(d, buf, len_bytes, off_bytes);
		if (n == -EINTR)
			continue;
		if (n == 0)
			n = -EIO;
		if (n < 0)
			return io_failed(d, "write", (int)n, off_bytes,
					 len_bytes, e);
		off_bytes += (uint64_t)n;
		len_bytes -= (size_t)n;
		buf += n;
	}
	return 0;
}

static int bounce_alloc(const struct brim_device *d, const char *op, char **out,
			struct brim_err *e)
{
	size_t align = BRIM__MAX(BRIM__BUFFER_ALIGN, d->info.align_bytes);

	*out = aligned_alloc(align, BOUNCE_BYTES);
	return *out ? 0 : brim__err(e, -ENOMEM, op, d->shown);
}

/* Reads whole aligned windows and copies what was asked for. */
static int read_bounced(struct brim_device *d, uint64_t off_bytes,
			size_t len_bytes, char *buf, struct brim_err *e)
{
	uint32_t align = d->info.align_bytes;
	char *bounce;
	int ret;

	ret = bounce_alloc(d, "read", &bounce, e);
	while (ret == 0 && len_bytes) {
		uint64_t from = brim__align_down(off_bytes, align);
		size_t skip = (size_t)(off_bytes - from);
		size_t n = BRIM__MIN(len_bytes, BOUNCE_BYTES - skip);
		size_t window = (skip + n + align - 1) / align * align;

		ret = read_all(d, from, window, skip + n, bounce, e);
		if (ret < 0)
			break;
		memcpy(buf, bounce + skip, n);
		off_bytes += n;
		len_bytes -= n;
		buf += n;
	}
	free(bounce);
	return ret;
}

/* Offset and length are aligned; only the caller's buffer is not. */
static int write_bounced(struct brim_device *d, uint64_t off_bytes,
			 size_t len_bytes, const char *buf, struct brim_err *e)
{
	char *bounce;
	int ret;

	ret = bounce_alloc(d, "write", &bounce, e);
	while (ret == 0 && len_bytes) {
		size_t n = BRIM__MIN(len_bytes, BOUNCE_BYTES);

		memcpy(bounce, buf, n);
		ret = write_all(d, off_bytes, n, bounce, e);
		off_bytes += n;
		len_bytes -= n;
		buf += n;
	}
	free(bounce);
	return ret;
}

int brim_device_read(struct brim_device *d, uint64_t off_bytes,
		     size_t len_bytes, void *buf, struct brim_err *e)
{
	uint32_t align = d->info.align_bytes;
	int ret;

	ret = check_range(d, "read", off_bytes, len_bytes, e);
	if (ret < 0)
		return ret;
	if ((off_bytes | len_bytes | (uintptr_t)buf) % align)
		return read_bounced(d, off_bytes, len_bytes, buf, e);
	return read_all(d, off_bytes, len_bytes, len_bytes, buf, e);
}

int brim_device_write(struct brim_device *d, uint64_t off_bytes,
		      size_t len_bytes, const void *buf, struct brim_err *e)
{
	uint32_t align = d->info.align_bytes;
	int ret;

	ret = check_change(d, "write", off_bytes, len_bytes, align, e);
	if (ret < 0)
		return ret;
	if ((uintptr_t)buf % align)
		return write_bounced(d, off_bytes, len_bytes, buf, e);
	return write_all(d, off_bytes, len_bytes, buf, e);
}

/* zero and discard: the same but for their name and their op. */
static int change_range(struct brim_device *d, const char *name,
			int (*op)(struct brim_device *, uint64_t, uint64_t),
			uint64_t off_bytes, uint64_t len_bytes,
			struct brim_err *e)
{
	int ret;

	ret = check_change(d, name, off_bytes, len_bytes, range_unit(d), e);
	if (ret < 0 || len_bytes == 0)
		return ret;
	ret = -EOPNOTSUPP;
	if (op) {
		do {
			ret = op(d, off_bytes, len_bytes);
		} while (ret == -EINTR);
	}
	if (ret < 0)
		return io_failed(d, name, ret, off_bytes, len_bytes, e);
	return 0;
}

int brim_device_zero(struct brim_device *d, uint64_t off_bytes,
		     uint64_t len_bytes, struct brim_err *e)
{
	return change_range(d, "zero", d->ops->zero, off_bytes, len_bytes, e);
}

int brim_device_discard(struct brim_device *d, uint64_t off_bytes,
			uint64_t len_bytes, struct brim_err *e)
{
	return change_range(d, "discard", d->ops->discard, off_bytes, len_bytes,
			    e);
}

int brim_device_flush(struct brim_device *d, struct brim_err *e)
{
	int ret = d->ops->flush ? d->ops->flush(d) : 0;

	return ret < 0 ? brim__err(e, ret, "flush", d->shown) : 0;
}
