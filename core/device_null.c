/* SPDX-License-Identifier: MIT */
/*
 * device_null.c: a device with nothing behind it: writes vanish, reads give
 * zeros. For measuring everything but the device. Sizes are bytes.
 */
#include <errno.h>
#include <string.h>

#include "device.h"

static int64_t null_read(struct brim_device *d, void *buf, uint64_t len_bytes,
			 uint64_t off_bytes)
{
	(void)d;
	(void)off_bytes;
	memset(buf, 0, len_bytes);
	return (int64_t)len_bytes;
}

static int64_t null_write(struct brim_device *d, const void *buf,
			  uint64_t len_bytes, uint64_t off_bytes)
{
	(void)d;
	(void)buf;
	(void)off_bytes;
	return (int64_t)len_bytes;
}

static int null_range(struct brim_device *d, uint64_t off_bytes,
		      uint64_t len_bytes)
{
	(void)d;
	(void)off_bytes;
	(void)len_bytes;
	return 0;
}

const struct brim__device_ops brim__device_null_ops = {
	.read = null_read,
	.write = null_write,
	.zero = null_range,
	.discard = null_range,
};

int brim_device_open_null(struct brim_device **out, uint64_t size_bytes,
			  struct brim_err *e)
{
	struct brim_device *d;

	*out = NULL;
	if (size_bytes > BRIM_MAX_BYTES)
		return brim__errf(
			e, -ERANGE, "open",
			"a null device of more than the largest offset, "
			"2^63-1");
	d = brim__device_new(BRIM_KIND_NULL, "null", &brim__device_null_ops);
	if (!d)
		return brim__err(e, -ENOMEM, "open", "null device");
	d->info.size_bytes = size_bytes;
	d->info.is_writable = 1;
	*out = d;
	return 0;
}
