/* SPDX-License-Identifier: MIT */
/*
 * device_extent.c: what a device holds from some byte on, and how far: data,
 * zeros, the overlay's or the base's. For the nbdkit plugin and for committing.
 * "Data" is always a safe answer, "zeros" is said where it is known without
 * reading. Units: bytes.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "device_overlay.h"
#include "plan.h"

/*
 * The first run of bytes at or behind `off` that a piece renders, and where it
 * ends (at most the run's own end, further where instances lie side by side).
 */
static bool piece_data(const struct brim__piece *piece, uint64_t off,
		       uint64_t *from, uint64_t *to)
{
	const struct brim_stamp *s = piece->stamp;
	uint64_t i, end, base;
	size_t x;

	brim__piece_touch(piece, off, off + 1, &i, &end);
	if (i >= piece->first + piece->count)
		return false;
	base = piece->off_bytes + piece->stride_bytes * i;
	x = off > base ? brim__extent_seek(s, off - base) : 0;
	*from = base + s->extents[x].off_bytes;
	*to = *from + s->extents[x].len_bytes;
	if (s->extent_count == 1 &&
	    s->extents[0].len_bytes == piece->stride_bytes)
		*to += piece->stride_bytes *
		       (piece->first + piece->count - 1 - i);
	return true;
}

/* What no stamp of a plan names is zeros. */
static void plan_extent(const struct brim_plan *p, uint64_t off,
			struct brim_device_extent *out)
{
	uint64_t from, to, next = p->size_bytes, end = off;
	size_t k;

	for (k = 0; k < p->piece_count; k++) {
		if (p->pieces[k].is_zero ||
		    !piece_data(&p->pieces[k], off, &from, &to))
			continue;
		if (from <= off)
			end = BRIM__MAX(end, to);
		else
			next = BRIM__MIN(next, from);
	}
	out->is_zero = end == off;
	out->len_bytes = (end == off ? next : end) - off;
}

/* A file's holes, by its filesystem's word. */
static void file_extent(struct brim_device *d, uint64_t off,
			struct brim_device_extent *out)
{
	uint64_t size_bytes = d->info.size_bytes;
	off_t to = lseek(d->fd, (off_t)off, SEEK_DATA);

	out->is_zero = to > (off_t)off || (to < 0 && errno == ENXIO);
	if (to == (off_t)off)
		to = lseek(d->fd, (off_t)off, SEEK_HOLE);
	/* Elsewhere, at the end, or not known: all of the rest. */
	if (to <= (off_t)off || (uint64_t)to > size_bytes)
		to = (off_t)size_bytes;
	out->len_bytes = (uint64_t)to - off;
}

static int overlay_extent(struct brim_device *d, uint64_t off,
			  struct brim_device_extent *out, struct brim_err *e)
{
	struct brim__overlay_device *v = brim__overlay_device(d);
	uint64_t block = off / BRIM__OVERLAY_BLOCK, max;
	struct brim__overlay_extent x;
	bool has;
	int ret = 0;

	has = brim__overlay_get(v->o, block, v->o->blocks - block, &x);
	if (has)
		out->is_zero = !x.place;
	else
		ret = brim_device_extent(v->under, off, out, e);
	out->is_overlay = has;
	/* By the block's own end: the last one may be short. */
	max = (block + x.len < v->o->blocks
		       ? (block + x.len) * BRIM__OVERLAY_BLOCK
		       : d->info.size_bytes) -
	      off;
	out->len_bytes = has ? max : BRIM__MIN(max, out->len_bytes);
	return ret;
}

int brim_device_extent(struct brim_device *d, uint64_t off_bytes,
		       struct brim_device_extent *out, struct brim_err *e)
{
	memset(out, 0, sizeof(*out));
	if (off_bytes >= d->info.size_bytes)
		return brim__err_at(e, -ERANGE, "extent", off_bytes,
				    "%s ends at %llu", d->shown,
				    (unsigned long long)d->info.size_bytes);
	if (brim__device_is_overlay(d))
		return overlay_extent(d, off_bytes, out, e);
	out->len_bytes = d->info.size_bytes - off_bytes;
	if (d->plan)
		plan_extent(d->plan, off_bytes, out);
	else if (d->info.kind == BRIM_KIND_FILE && d->fd >= 0)
		file_extent(d, off_bytes, out);
	else
		out->is_zero = d->info.kind == BRIM_KIND_NULL;
	/* max_size_bytes may have cut the device shorter than what it shows */
	out->len_bytes =
		BRIM__MIN(out->len_bytes, d->info.size_bytes - off_bytes);
	return 0;
}
