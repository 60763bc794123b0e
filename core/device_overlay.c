/* SPDX-License-Identifier: MIT */
/*
 * device_overlay.c: a device that reads as another one with an overlay over
 * it, and is written into the overlay only. Safe from many threads. Called
 * through device.c by engines, the binding and the nbdkit plugin. Units: bytes
 * in the device's functions, blocks of 4 KiB below them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device_overlay.h"
#include "image.h"

#define BLOCK BRIM__OVERLAY_BLOCK
/* So much of both ends of a file or device is hashed to know it again. */
#define SAMPLE_BYTES (64u << 10)

static const uint8_t ZEROS[BLOCK];

/* ------------------------------------------------------------------ reading */

static int read_run(struct brim__overlay_device *v, uint64_t at, uint64_t len,
		    uint64_t skip, const struct brim__overlay_extent *x,
		    bool has, void *buf)
{
	int ret;

	if (!has)
		return brim_device_read(v->under, at, len, buf, NULL);
	if (!x->place) {
		memset(buf, 0, len);
		return 0;
	}
	ret = brim__overlay_pread(v->o, x->place, skip, buf, len);
	return ret == -ENODATA ? -EIO : ret; /* cut short behind our back */
}

static int64_t overlay_read(struct brim_device *d, void *buf,
			    uint64_t len_bytes, uint64_t off_bytes)
{
	struct brim__overlay_device *v = brim__overlay_device(d);
	uint64_t done = 0, n;
	int ret = 0;

	for (; done < len_bytes && ret == 0; done += n) {
		uint64_t at = off_bytes + done, skip = at % BLOCK;
		struct brim__overlay_extent x;
		bool has;

		n = len_bytes - done;
		has = brim__overlay_get(v->o, at / BLOCK,
					(skip + n - 1) / BLOCK + 1, &x);
		n = BRIM__MIN(n, x.len * BLOCK - skip);
		ret = read_run(v, at, n, skip, &x, has, (uint8_t *)buf + done);
	}
	return ret < 0 ? ret : (int64_t)len_bytes;
}

/* ------------------------------------------------------------------ writing */

/* Blocks into new places, which then count. */
static int place_blocks(struct brim__overlay *o, uint64_t block,
			uint64_t blocks, const void *buf)
{
	struct brim__overlay_extent x = { block, blocks, 0 };
	int ret;

	ret = brim__overlay_alloc(o, blocks, &x.place);
	if (ret < 0)
		return ret;
	ret = brim__overlay_pwrite(o, x.place, 0, buf, blocks * BLOCK);
	if (ret < 0)
		brim__overlay_unalloc(o, blocks, x.place);
	return ret < 0 ? ret : brim__overlay_set(o, &x);
}

/* The first part of a block: the rest is what it was. */
static int place_part(struct brim__overlay_device *v, uint64_t block,
		      uint64_t skip, uint64_t len, const void *buf,
		      bool is_zero)
{
	uint64_t at = block * BLOCK;
	uint64_t there = BRIM__MIN(BLOCK, v->dev.info.size_bytes - at);
	uint8_t raw[BLOCK] = { 0 };
	int ret = 0;

	if (!is_zero)
		ret = brim_device_read(v->under, at, there, raw, NULL);
	if (ret < 0)
		return ret;
	memcpy(raw + skip, buf, len);
	return place_blocks(v->o, block, 1, raw);
}

/*
 * Writes a part of a block. The stripe keeps two parts that are written at the
 * same time from taking two places.
 */
static int write_part(struct brim__overlay_device *v, uint64_t block,
		      uint64_t skip, uint64_t len, const void *buf)
{
	pthread_mutex_t *stripe = &v->o->stripes[block % BRIM__OVERLAY_STRIPES];
	struct brim__overlay_extent x;
	bool has;
	int ret = 0;

	pthread_mutex_lock(stripe);
	has = brim__overlay_get(v->o, block, 1, &x);
	if (has && x.place)
		ret = brim__overlay_pwrite(v->o, x.place, skip, buf, len);
	else if (!has || buf != ZEROS)
		ret = place_part(v, block, skip, len, buf, has);
	pthread_mutex_unlock(stripe);
	return ret;
}

/* Whole blocks: where they have a place there, else into new ones. */
static int write_blocks(struct brim__overlay *o, uint64_t block,
			uint64_t blocks, const uint8_t *buf)
{
	struct brim__overlay_extent x, next;
	int ret = 0;

	for (; blocks && ret == 0; block += x.len, blocks -= x.len) {
		brim__overlay_get(o, block, blocks, &x);
		if (x.place) {
			ret = brim__overlay_pwrite(o, x.place, 0, buf,
						   x.len * BLOCK);
			buf += x.len * BLOCK;
			continue;
		}
		/* Zeros and the base's in turns become one extent. */
		while (x.len < blocks) {
			brim__overlay_get(o, block + x.len, blocks - x.len,
					  &next);
			if (next.place)
				break;
			x.len += next.len;
		}
		ret = place_blocks(o, block, x.len, buf);
		buf += x.len * BLOCK;
	}
	return ret;
}

static int64_t overlay_write(struct brim_device *d, const void *buf,
			     uint64_t len_bytes, uint64_t off_bytes)
{
	struct brim__overlay_device *v = brim__overlay_device(d);
	const uint8_t *from = buf;
	uint64_t left = len_bytes, n;
	int ret = 0;

	for (; left && ret == 0; left -= n, from += n, off_bytes += n) {
		uint64_t skip = off_bytes % BLOCK, block = off_bytes / BLOCK;

		if (skip || left < BLOCK) {
			n = BRIM__MIN(left, BLOCK - skip);
			ret = write_part(v, block, skip, n, from);
		} else {
			n = left - left % BLOCK;
			ret = write_blocks(v->o, block, n / BLOCK, from);
		}
	}
	return ret < 0 ? ret : (int64_t)len_bytes;
}

/* The whole blocks of a range; the volume's last counts when it is reached. */
static struct brim__overlay_extent
whole_blocks(const struct brim__overlay_device *v, uint64_t off, uint64_t len)
{
	uint64_t end = (off + len) / BLOCK;
	struct brim__overlay_extent x = { (off + BLOCK - 1) / BLOCK, 0, 0 };

	if (off + len == v->dev.info.size_bytes)
		end = v->o->blocks;
	x.len = end > x.from ? end - x.from : 0;
	return x;
}

/* Zeros from off to `to`, both in one block. */
static int zero_part(struct brim__overlay_device *v, uint64_t off, uint64_t to)
{
	if (off >= to)
		return 0;
	return write_part(v, off / BLOCK, off % BLOCK, to - off, ZEROS);
}

static int overlay_zero(struct brim_device *d, uint64_t off_bytes,
			uint64_t len_bytes)
{
	struct brim__overlay_device *v = brim__overlay_device(d);
	struct brim__overlay_extent x = whole_blocks(v, off_bytes, len_bytes);
	uint64_t end = off_bytes + len_bytes;
	int ret;

	if (!x.len) { /* it may be parts of two blocks */
		uint64_t middle = BRIM__MIN(end, x.from * BLOCK);

		ret = zero_part(v, off_bytes, middle);
		return ret < 0 ? ret : zero_part(v, middle, end);
	}
	ret = zero_part(v, off_bytes, x.from * BLOCK);
	if (ret == 0)
		ret = brim__overlay_set(v->o, &x);
	if (ret == 0)
		ret = zero_part(v, (x.from + x.len) * BLOCK, end);
	return ret;
}

/* What is discarded reads as zeros. Parts of blocks stay what they are. */
static int overlay_discard(struct brim_device *d, uint64_t off_bytes,
			   uint64_t len_bytes)
{
	struct brim__overlay_device *v = brim__overlay_device(d);
	struct brim__overlay_extent x = whole_blocks(v, off_bytes, len_bytes);

	return x.len ? brim__overlay_set(v->o, &x) : 0;
}

static int overlay_flush(struct brim_device *d)
{
	return brim__overlay_flush(brim__overlay_device(d)->o);
}

static void overlay_close(struct brim_device *d)
{
	struct brim__overlay_device *v = brim__overlay_device(d);

	brim__overlay_close(v->o);
	brim_device_close(v->under);
}

const struct brim__device_ops brim__device_overlay_ops = {
	.read = overlay_read,
	.write = overlay_write,
	.zero = overlay_zero,
	.discard = overlay_discard,
	.flush = overlay_flush,
	.close = overlay_close,
};

/* ------------------------------------------------------------------ opening */

static uint64_t hash_bytes(uint64_t hash, const void *buf, size_t len)
{
	uint32_t a = brim_crc(BRIM_CRC32C, (uint32_t)(hash >> 32), buf, len);

	return (uint64_t)a << 32 |
	       brim_crc(BRIM_CRC32, (uint32_t)hash, buf, len);
}

static int hash_plan(const struct brim_plan *p, uint64_t *hash,
		     struct brim_err *e)
{
	void *buf;
	size_t len;
	int ret = brim_image_encode(p, &buf, &len, e);

	if (ret < 0)
		return ret;
	*hash = hash_bytes(UINT64_MAX, buf, len);
	free(buf);
	return 0;
}

static int hash_samples(struct brim_device *d, uint64_t size_bytes,
			uint64_t *hash, struct brim_err *e)
{
	uint64_t n = BRIM__MIN(size_bytes, SAMPLE_BYTES);
	uint8_t *buf = malloc(n);
	int ret;

	if (!buf)
		return brim__err(e, -ENOMEM, "open", "overlay");
	ret = brim_device_read(d, 0, n, buf, e);
	*hash = hash_bytes(UINT64_MAX, buf, n);
	if (ret == 0)
		ret = brim_device_read(d, size_bytes - n, n, buf, e);
	*hash = hash_bytes(*hash, buf, n);
	free(buf);
	return ret;
}

int brim__overlay_know(struct brim_device *base, struct brim__overlay_base *out,
		       struct brim_err *e)
{
	const struct brim_plan *p = brim_device_plan(base);

	memset(out, 0, sizeof(*out));
	out->size_bytes = base->info.size_bytes;
	out->kind = p ? BRIM__OVERLAY_OF_PLAN : BRIM__OVERLAY_OF_BYTES;
	brim__overlay_show(out->name, sizeof(out->name), base->info.path);
	if (!out->size_bytes)
		return brim__errf(e, -EINVAL, "open",
				  "%s is empty: there is nothing to lay an "
				  "overlay over",
				  base->shown);
	return p ? hash_plan(p, &out->hash, e)
		 : hash_samples(base, out->size_bytes, &out->hash, e);
}

struct brim__overlay_device *brim__overlay_device(struct brim_device *d)
{
	return (struct brim__overlay_device *)d;
}

bool brim__device_is_overlay(const struct brim_device *d)
{
	return d->ops == &brim__device_overlay_ops;
}

/* A device as others are, with room for what this kind has besides. */
static struct brim__overlay_device *device_new(const char *path)
{
	struct brim_device *d = brim__device_new(BRIM_KIND_OVERLAY, path,
						 &brim__device_overlay_ops);
	struct brim__overlay_device *v = calloc(1, sizeof(*v));

	if (!d || !v) {
		if (d)
			free((char *)(uintptr_t)d->info.path);
		free(v);
		v = NULL;
	} else {
		v->dev = *d;
	}
	free(d);
	return v;
}

int brim_device_open_overlay(struct brim_device **out, struct brim_device *base,
			     const char *path, uint32_t flags,
			     struct brim_err *e)
{
	struct brim__overlay_base known;
	struct brim__overlay_device *v;
	int ret;

	*out = NULL;
	if (flags & ~(uint32_t)(BRIM_OVERLAY_CREATE | BRIM_OVERLAY_READONLY |
				BRIM_OVERLAY_RESUME))
		return brim__errf(e, -EINVAL, "open", "unknown flags 0x%x",
				  flags);
	ret = brim__overlay_know(base, &known, e);
	if (ret < 0)
		return ret;
	v = device_new(path);
	if (!v)
		return brim__err(e, -ENOMEM, "open", "overlay");
	brim__device_hold(base);
	v->under = base;
	v->dev.info.size_bytes = known.size_bytes;
	v->dev.info.is_writable = !(flags & BRIM_OVERLAY_READONLY);
	ret = brim__overlay_open(&v->o, path, &known, flags, e);
	if (ret < 0) {
		brim_device_close(&v->dev);
		return ret;
	}
	*out = &v->dev;
	return 0;
}

int brim_overlay_info(struct brim_device *d, struct brim_overlay_info *out,
		      struct brim_err *e)
{
	struct brim__overlay *o;

	if (!brim__device_is_overlay(d))
		return brim__errf(e, -EINVAL, "info", "%s is no overlay",
				  d->shown);
	o = brim__overlay_device(d)->o;
	pthread_mutex_lock(&o->lock);
	out->block_bytes = BLOCK;
	out->data_bytes = o->map.data_blocks * BLOCK;
	out->zero_bytes = o->map.zero_blocks * BLOCK;
	out->extents = o->map.extents;
	out->file_bytes = o->end * BLOCK;
	pthread_mutex_unlock(&o->lock);
	return 0;
}
