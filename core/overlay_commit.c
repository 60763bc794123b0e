/* SPDX-License-Identifier: MIT */
/*
 * overlay_commit.c: ends an overlay: its blocks go into the base, or an image
 * and its overlay become a new image, the overlay's blocks being a last phase
 * of the plan. Called by the binding. Units: blocks of 4 KiB, or bytes where a
 * name says so.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "device_overlay.h"
#include "image.h"
#include "plan.h"

#define BLOCK BRIM__OVERLAY_BLOCK
#define BUFFER_BLOCKS 256u

static struct brim__overlay_device *check(struct brim_device *d,
					  struct brim_err *e)
{
	if (brim__device_is_overlay(d))
		return brim__overlay_device(d);
	brim__errf(e, -EINVAL, "commit", "%s is no overlay", d->shown);
	return NULL;
}

/* The next extent of the overlay at or behind *block; false at the end. */
static bool next_extent(struct brim__overlay *o, uint64_t block,
			struct brim__overlay_extent *x)
{
	while (block < o->blocks) {
		if (brim__overlay_get(o, block, o->blocks - block, x))
			return true;
		block += x->len;
	}
	return false;
}

/* Bytes of so many blocks from one on: the volume's last may be short. */
static uint64_t bytes_of(const struct brim__overlay_device *v, uint64_t block,
			 uint64_t blocks)
{
	return block + blocks == v->o->blocks
		       ? v->dev.info.size_bytes - block * BLOCK
		       : blocks * BLOCK;
}

/* ------------------------------------------------------------ into the base */

static int copy_out(struct brim__overlay_device *v,
		    const struct brim__overlay_extent *x, uint8_t *buf,
		    struct brim_err *e)
{
	uint64_t done = 0, n;
	int ret = 0;

	for (; done < x->len && ret == 0; done += n) {
		n = BRIM__MIN(x->len - done, BUFFER_BLOCKS);
		if (x->place)
			ret = brim__overlay_pread(v->o, x->place + done, 0, buf,
						  n * BLOCK);
		else
			memset(buf, 0, n * BLOCK);
		if (ret < 0)
			return brim__err_at(e, ret == -ENODATA ? -EIO : ret,
					    "commit", (x->from + done) * BLOCK,
					    "overlay %s cannot be read",
					    v->o->shown);
		ret = brim_device_write(v->under, (x->from + done) * BLOCK,
					bytes_of(v, x->from + done, n), buf, e);
	}
	return ret;
}

static int commit_extents(struct brim__overlay_device *v, struct brim_err *e)
{
	uint8_t *buf = aligned_alloc(BLOCK, (size_t)BUFFER_BLOCKS * BLOCK);
	struct brim__overlay_extent x = { 0, 0, 0 };
	int ret = 0;

	if (!buf)
		return brim__err(e, -ENOMEM, "commit", v->o->shown);
	while (ret == 0 && next_extent(v->o, x.from + x.len, &x)) {
		ret = -EOPNOTSUPP;
		if (!x.place)
			ret = brim_device_zero(v->under, x.from * BLOCK,
					       bytes_of(v, x.from, x.len),
					       NULL);
		if (ret < 0)
			ret = copy_out(v, &x, buf, e);
	}
	free(buf);
	return ret < 0 ? ret : brim_device_flush(v->under, e);
}

int brim_overlay_commit(struct brim_device *d, struct brim_err *e)
{
	struct brim__overlay_device *v = check(d, e);
	struct brim__overlay_base known;
	int ret;

	if (!v)
		return -EINVAL;
	if (!d->info.is_writable || !v->under->info.is_writable)
		return brim__errf(
			e, -EROFS, "commit", "%s is not open for writing%s",
			d->info.is_writable ? v->under->shown : d->shown,
			v->under->plan ? ": an image is changed by making a "
					 "new one of it and its overlay"
				       : "");
	/* From here on the base is neither what it was nor what it will be. */
	ret = brim__overlay_set_state(v->o, BRIM__OVERLAY_COMMITTING);
	if (ret < 0)
		return brim__err(e, ret, "commit", d->shown);
	ret = commit_extents(v, e);
	if (ret == 0)
		ret = brim__overlay_know(v->under, &known, e);
	if (ret < 0)
		return ret;
	ret = brim__overlay_reset(v->o, &known);
	return ret < 0 ? brim__err(e, ret, "commit", d->shown) : 0;
}

/* ---------------------------------------------------------- into a new image */

/* What differs from the base: runs of blocks, and ranges of zeros. */
struct diff {
	struct brim__overlay_device *v;
	struct brim__overlay_list runs; /* place: where in the file; 0: zeros */
	uint64_t data_blocks, zero_ranges;
	uint8_t *has, *had; /* BUFFER_BLOCKS each */
};

static int too_large(const struct diff *diff, const char *why,
		     struct brim_err *e)
{
	struct brim__overlay_device *v = diff->v;
	char size[32];

	brim_bytes_format(size, sizeof(size), diff->data_blocks * BLOCK);
	return brim__errf(e, -EFBIG, "commit",
			  "overlay %.60s has %s in %zu places that differ from "
			  "%.60s: too much for an image (%s)",
			  v->o->shown, size, diff->runs.n, v->under->shown,
			  why);
}

/* Adds the blocks of data that are not what the base has. */
static int diff_data(struct diff *diff, const struct brim__overlay_extent *x,
		     struct brim_err *e)
{
	struct brim__overlay_device *v = diff->v;
	uint64_t done = 0, n, k;
	int ret;

	for (; done < x->len; done += n) {
		uint64_t from = x->from + done;

		n = BRIM__MIN(x->len - done, BUFFER_BLOCKS);
		ret = brim__overlay_pread(v->o, x->place + done, 0, diff->has,
					  n * BLOCK);
		if (ret < 0)
			return brim__err(e, ret == -ENODATA ? -EIO : ret,
					 "commit", v->o->shown);
		ret = brim_device_read(v->under, from * BLOCK,
				       bytes_of(v, from, n), diff->had, e);
		if (ret < 0)
			return ret;
		for (k = 0; k < n; k++) {
			struct brim__overlay_extent one = {
				from + k, 1, x->place + done + k
			};

			if (!memcmp(diff->has + k * BLOCK,
				    diff->had + k * BLOCK,
				    bytes_of(v, from + k, 1)))
				continue;
			diff->data_blocks++;
			if (brim__overlay_list_push(&diff->runs, 0, &one) < 0)
				return brim__err(e, -ENOMEM, "commit",
						 v->o->shown);
		}
		if (diff->data_blocks > BRIM__IMAGE_MAX_TEMPLATES / BLOCK)
			return too_large(diff, "64 MiB at most", e);
	}
	return 0;
}

static int diff_zeros(struct diff *diff, const struct brim__overlay_extent *x,
		      struct brim_err *e)
{
	struct brim_device_extent was;
	int ret;

	ret = brim_device_extent(diff->v->under, x->from * BLOCK, &was, e);
	if (ret < 0 || (was.is_zero &&
			was.len_bytes >= bytes_of(diff->v, x->from, x->len)))
		return ret;
	diff->zero_ranges++;
	ret = brim__overlay_list_push(&diff->runs, 0, x);
	return ret < 0 ? brim__err(e, ret, "commit", diff->v->o->shown) : 0;
}

static int diff_all(struct diff *diff, struct brim_err *e)
{
	struct brim__overlay_extent x = { 0, 0, 0 };
	int ret = 0;

	diff->has = malloc((size_t)BUFFER_BLOCKS * BLOCK);
	diff->had = malloc((size_t)BUFFER_BLOCKS * BLOCK);
	if (!diff->has || !diff->had)
		return brim__err(e, -ENOMEM, "commit", diff->v->o->shown);
	while (ret == 0 && next_extent(diff->v->o, x.from + x.len, &x))
		ret = x.place ? diff_data(diff, &x, e)
			      : diff_zeros(diff, &x, e);
	return ret;
}

/*
 * How many of the runs from i on go into one stamp: near each other, so that
 * sealing has few instances to compare with, and within the limits of stamps.
 */
static size_t stamp_runs(const struct diff *diff, size_t i, uint64_t gap)
{
	const struct brim__overlay_extent *v = diff->runs.v;
	uint64_t blocks = 0;
	size_t k;

	for (k = i; k < diff->runs.n && v[k].place; k++) {
		blocks += v[k].len;
		if (k > i && (blocks > BRIM_STAMP_MAX_BYTES / BLOCK ||
			      k - i == BRIM__IMAGE_MAX_REGIONS ||
			      v[k].from - (v[k - 1].from + v[k - 1].len) > gap))
			break;
	}
	return k - i;
}

/* Runs longer than a stamp may be are cut. */
static int cut_runs(struct diff *diff, struct brim_err *e)
{
	const uint64_t max = BRIM_STAMP_MAX_BYTES / BLOCK;
	struct brim__overlay_list cut = { 0 };
	size_t i;
	int ret = 0;

	for (i = 0; i < diff->runs.n && ret == 0; i++) {
		struct brim__overlay_extent x = diff->runs.v[i], part = x;

		for (; x.place && x.len > max && ret == 0; x.len -= max) {
			part.len = max;
			/* fixed: the parts shall not be joined again */
			ret = brim__overlay_list_push(&cut, cut.n, &part);
			part.from = x.from += max;
			part.place = x.place += max;
		}
		part.len = x.len;
		if (ret == 0)
			ret = brim__overlay_list_push(&cut, cut.n, &part);
	}
	free(diff->runs.v);
	diff->runs = cut;
	return ret < 0 ? brim__err(e, ret, "commit", diff->v->o->shown) : 0;
}

/* The smallest gap with which there are few enough pieces. */
static int choose_gap(const struct diff *diff, uint64_t room, uint64_t *gap)
{
	uint64_t pieces;
	size_t i;

	for (*gap = (1u << 20) / BLOCK; *gap < UINT64_MAX / 32; *gap *= 16) {
		pieces = diff->zero_ranges;
		for (i = 0; i < diff->runs.n;) {
			size_t n = stamp_runs(diff, i, *gap);

			pieces += n ? 1 : 0;
			i += n ? n : 1;
		}
		if (pieces <= room)
			return 0;
	}
	return -EFBIG;
}

static int add_run(const struct diff *diff, struct brim_stamp *s,
		   const struct brim__overlay_extent *x, uint64_t base_bytes,
		   struct brim_err *e)
{
	uint64_t at = x->from * BLOCK - base_bytes, done = 0, n;
	uint64_t len = bytes_of(diff->v, x->from, x->len);
	int ret;

	ret = brim_stamp_region(s, at, (uint32_t)len, "overlay", e);
	for (; done < x->len && ret == 0; done += n) {
		n = BRIM__MIN(x->len - done, BUFFER_BLOCKS);
		ret = brim__overlay_pread(diff->v->o, x->place + done, 0,
					  diff->has, n * BLOCK);
		if (ret < 0)
			return brim__err(e, ret == -ENODATA ? -EIO : ret,
					 "commit", diff->v->o->shown);
		ret = brim_stamp_set_bytes(s, at + done * BLOCK, diff->has,
					   bytes_of(diff->v, x->from + done, n),
					   e);
	}
	return ret;
}

static int add_stamp(const struct diff *diff, struct brim_plan *p,
		     const struct brim__overlay_extent *x, size_t n,
		     struct brim_err *e)
{
	uint64_t base_bytes = x->from * BLOCK;
	struct brim_stamp *s;
	size_t i;
	int ret;

	ret = brim_stamp_create(&s, e);
	for (i = 0; i < n && ret == 0; i++)
		ret = add_run(diff, s, &x[i], base_bytes, e);
	if (ret == 0)
		ret = brim_stamp_seal(s, 0, 1, e);
	if (ret == 0)
		return brim_plan_each(p, s, base_bytes, BLOCK, "overlay", 0, e);
	brim_stamp_free(s);
	return ret;
}

/* A last phase with all that differs. */
static int add_phase(struct diff *diff, struct brim_plan *p, struct brim_err *e)
{
	const struct brim__overlay_extent *x = diff->runs.v;
	uint64_t gap;
	size_t i, n;
	int ret;

	if (p->piece_count > BRIM__IMAGE_MAX_PIECES ||
	    choose_gap(diff, BRIM__IMAGE_MAX_PIECES - p->piece_count, &gap) < 0)
		return too_large(diff, "4096 pieces at most", e);
	ret = brim_plan_phase(p, "overlay", e);
	for (i = 0; i < diff->runs.n && ret == 0; i += n) {
		n = stamp_runs(diff, i, gap);
		if (n) {
			ret = add_stamp(diff, p, &x[i], n, e);
			continue;
		}
		n = 1;
		ret = brim_plan_zero(p, x[i].from * BLOCK,
				     bytes_of(diff->v, x[i].from, x[i].len),
				     "overlay", e);
	}
	return ret < 0 ? ret : brim_plan_seal(p, e);
}

/* A plan of one's own, open for more: the one that is served stays as it is. */
static int plan_copy(const struct brim_plan *p, struct brim_plan **out,
		     struct brim_err *e)
{
	struct brim_plan *copy;
	void *buf;
	size_t len, i;
	int ret;

	ret = brim_image_encode(p, &buf, &len, e);
	if (ret < 0)
		return ret;
	ret = brim_image_decode(&copy, buf, len, e);
	free(buf);
	if (ret < 0)
		return ret;
	copy->sealed = false;
	for (i = 0; i < copy->piece_count; i++) {
		brim__spans_free(&copy->pieces[i].hidden);
		brim__spans_free(&copy->pieces[i].shadow);
	}
	*out = copy;
	return 0;
}

int brim_overlay_save_image(struct brim_device *d, const char *path,
			    struct brim_err *e)
{
	struct diff diff = { .v = check(d, e) };
	struct brim_err why = { 0 };
	struct brim_plan *p = NULL;
	int ret;

	if (!diff.v)
		return -EINVAL;
	if (!diff.v->under->plan)
		return brim__errf(e, -EINVAL, "commit",
				  "%s is no image and cannot become one",
				  diff.v->under->shown);
	ret = diff_all(&diff, e);
	if (ret == 0)
		ret = cut_runs(&diff, e);
	if (ret == 0)
		ret = plan_copy(diff.v->under->plan, &p, e);
	if (ret == 0 && diff.runs.n)
		ret = add_phase(&diff, p, e);
	else if (ret == 0)
		ret = brim_plan_seal(p, e);
	if (ret == 0) {
		ret = brim_image_save(p, path, &why);
		if (ret == -EFBIG)
			too_large(&diff, why.msg, e);
		else if (ret < 0 && e)
			*e = why;
	}
	brim_plan_free(p);
	free(diff.runs.v);
	free(diff.has);
	free(diff.had);
	return ret;
}
