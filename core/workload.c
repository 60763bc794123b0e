/* SPDX-License-Identifier: MIT */
/*
 * workload.c: what a workload does: checks its options and makes operation
 * after operation out of them. Called by its runs, for each I/O. Bytes; blocks
 * and places as workload.h has them.
 */
#include <errno.h>
#include <stdlib.h>

#include "workload.h"

#define DEFAULT_BLOCK 4096u
#define BLOCK_MAX (1u << 20)
#define SECTOR 512u
#define THETA_MAX 10.0
#define PPM 1000000u

/* What numbers are drawn for: below the key of an operation. */
enum { DRAW_PLACE, DRAW_KIND, DRAW_SIZE };

/* ---------------------------------------------------------------- checking */

static int bad(struct brim_err *e, const char *why)
{
	return brim__errf(e, -EINVAL, "workload", "%s", why);
}

static int check_pattern(const struct brim_workload_options *o,
			 struct brim_err *e)
{
	if (o->pattern < BRIM_PATTERN_SEQUENTIAL ||
	    o->pattern > BRIM_PATTERN_ZIPF)
		return bad(e, "no such pattern");
	if (o->pattern == BRIM_PATTERN_ZIPF &&
	    !(o->theta > 0 && o->theta <= THETA_MAX))
		return bad(e, "theta is above 0, at most 10");
	if (o->pattern == BRIM_PATTERN_STRIDED &&
	    (!o->stride_bytes || o->stride_bytes % o->block_bytes))
		return bad(e, "stride_bytes is a multiple of block_bytes");
	return 0;
}

static int check_range(const struct brim_workload_options *o,
		       struct brim_err *e)
{
	if (o->block_bytes % SECTOR || o->block_bytes > BLOCK_MAX)
		return bad(e, "block_bytes is a multiple of 512, at most "
			      "1 MiB");
	if (o->off_bytes % SECTOR)
		return bad(e, "off_bytes is a multiple of 512");
	if (o->off_bytes > BRIM_MAX_BYTES ||
	    o->size_bytes > BRIM_MAX_BYTES - o->off_bytes)
		return bad(e, "the range ends past 2^63-1");
	if (o->size_bytes < o->block_bytes)
		return bad(e, "the range holds no block");
	if (o->read_ppm > PPM)
		return bad(e, "read_ppm is at most 1000000");
	return 0;
}

/* Rounded up, and at least one. */
static uint64_t blocks_of(const struct brim_workload *w, uint64_t bytes)
{
	return bytes ? (bytes - 1) / w->o.block_bytes + 1 : 1;
}

/* Works out how long I/Os are. */
static int take_sizes(struct brim_workload *w, const struct brim_dist *sizes,
		      struct brim_err *e)
{
	uint64_t min = 0, max = 0;
	int ret;

	if (sizes) {
		ret = brim_dist_check(sizes, e);
		if (ret < 0)
			return ret;
		ret = brim__dist_prepare(&w->sizes, sizes, e);
		if (ret < 0)
			return ret;
		min = brim__dist_draw(&w->sizes, 0);
		max = brim__dist_draw(&w->sizes, UINT64_MAX);
	}
	w->io_blocks = blocks_of(w, max);
	w->is_fixed = blocks_of(w, min) == w->io_blocks;
	if (w->io_blocks > w->blocks)
		return bad(e, "the largest I/O is larger than the range");
	if (!w->is_fixed && (w->o.pattern == BRIM_PATTERN_PERMUTATION ||
			     w->o.pattern == BRIM_PATTERN_STRIDED))
		return bad(e, "with this pattern, all I/Os have one size");
	return 0;
}

/* How many places there are, and how they are gone through. */
static int take_places(struct brim_workload *w, struct brim_err *e)
{
	uint64_t io = w->is_fixed ? w->io_blocks : 1, stride_blocks;

	switch (w->o.pattern) {
	case BRIM_PATTERN_RANDOM:
	case BRIM_PATTERN_ZIPF:
		w->places = w->blocks / io;
		break;
	case BRIM_PATTERN_STRIDED:
		stride_blocks = w->o.stride_bytes / w->o.block_bytes;
		if (stride_blocks % io)
			return bad(e, "stride_bytes is a multiple of the "
				      "I/Os' size");
		w->stride_ios = stride_blocks / io;
		/* fallthrough */
	default:
		w->places = (w->blocks - 1) / io + 1;
	}
	if (w->o.pattern == BRIM_PATTERN_ZIPF)
		brim__zipf_init(&w->zipf, w->o.theta, w->places);
	return 0;
}

static void take_end(struct brim_workload *w)
{
	uint64_t range = w->blocks * w->o.block_bytes, passes;

	w->end_bytes = UINT64_MAX;
	if (!w->o.total_bytes && !w->o.operations && !w->o.passes)
		w->o.passes = 1;
	if (w->o.total_bytes)
		w->end_bytes = w->o.total_bytes;
	if (w->o.passes && !brim_mul(range, w->o.passes, &passes))
		w->end_bytes = BRIM__MIN(w->end_bytes, passes);
}

/* -------------------------------------------------------- create and free */

static int workload_take(struct brim_workload *w, struct brim_err *e)
{
	const struct brim_dist *sizes = w->o.sizes;
	int ret;

	if (!w->o.block_bytes)
		w->o.block_bytes = DEFAULT_BLOCK;
	w->o.sizes = NULL; /* the caller's */
	ret = check_range(&w->o, e);
	if (!ret)
		ret = check_pattern(&w->o, e);
	if (ret < 0)
		return ret;
	w->blocks = w->o.size_bytes / w->o.block_bytes;
	w->key = brim__mix_in(w->o.seed, 1);
	w->place_key = brim__mix_in(w->o.seed, 2);
	ret = take_sizes(w, sizes, e);
	if (!ret)
		ret = take_places(w, e);
	take_end(w);
	return ret;
}

int brim_workload_create(struct brim_workload **out,
			 const struct brim_workload_options *o,
			 struct brim_err *e)
{
	struct brim_workload *w;
	int ret;

	*out = NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return brim__err(e, -ENOMEM, "workload", "workload");
	w->holders = 1;
	ret = brim__options_take(&w->o, sizeof(w->o), o, "workload", e);
	if (!ret)
		ret = workload_take(w, e);
	if (ret < 0) {
		brim_workload_free(w);
		return ret;
	}
	*out = w;
	return 0;
}

const struct brim_workload *brim__workload_hold(const struct brim_workload *w)
{
	/* How many hold it is no part of what it does. */
	uint32_t *holders = (uint32_t *)(uintptr_t)&w->holders;

	__atomic_add_fetch(holders, 1, __ATOMIC_RELAXED);
	return w;
}

void brim_workload_free(struct brim_workload *w)
{
	if (!w || __atomic_sub_fetch(&w->holders, 1, __ATOMIC_ACQ_REL))
		return;
	brim__dist_release(&w->sizes);
	free(w);
}

/* -------------------------------------------------------------- operations */

static void begin_pass(const struct brim_workload *w,
		       struct brim_workload_cursor *c)
{
	c->place = 0;
	c->key = brim__mix_in(w->place_key, c->pass);
}

void brim_workload_begin(const struct brim_workload *w,
			 struct brim_workload_cursor *c)
{
	*c = (struct brim_workload_cursor){ 0 };
	begin_pass(w, c);
}

static uint64_t size_of(const struct brim_workload *w, uint64_t key)
{
	if (w->is_fixed)
		return w->io_blocks;
	return blocks_of(
		w, brim__dist_draw(&w->sizes, brim__mix_in(key, DRAW_SIZE)));
}

/*
 * Lane by lane: the i-th I/O of the pass is in lane i / (I/Os in a lane), where
 * the first lanes may have one more, as the range's last stride is cut off.
 */
static uint64_t strided(const struct brim_workload *w, uint64_t i)
{
	uint64_t lanes = BRIM__MIN(w->stride_ios, w->places);
	uint64_t rows = w->places / lanes, longer = w->places % lanes;
	uint64_t lane, row;

	if (i < longer * (rows + 1)) {
		lane = i / (rows + 1);
		row = i % (rows + 1);
	} else {
		lane = longer + (i - longer * (rows + 1)) / rows;
		row = (i - longer * (rows + 1)) % rows;
	}
	return row * lanes + lane;
}

/* The place for this operation, where all have the same size. */
static uint64_t place_of(const struct brim_workload *w,
			 const struct brim_workload_cursor *c, uint64_t key)
{
	uint64_t rank;

	switch (w->o.pattern) {
	case BRIM_PATTERN_RANDOM:
		return brim__mix_below(brim__mix_in(key, DRAW_PLACE),
				       w->places);
	case BRIM_PATTERN_PERMUTATION:
		return brim__permute(c->key, w->places, c->place);
	case BRIM_PATTERN_STRIDED:
		return strided(w, c->place);
	case BRIM_PATTERN_ZIPF:
		rank = brim__zipf_draw(&w->zipf, brim__mix_in(key, DRAW_PLACE));
		return w->o.is_clustered
			       ? rank
			       : brim__permute(w->place_key, w->places, rank);
	default:
		return c->place;
	}
}

/* On to the place after one that was so many of them long. */
static void advance(const struct brim_workload *w,
		    struct brim_workload_cursor *c, uint64_t places)
{
	c->place += places;
	if (c->place >= w->places) {
		c->pass++;
		begin_pass(w, c);
	}
}

int brim_workload_next(const struct brim_workload *w,
		       struct brim_workload_cursor *c,
		       struct brim_workload_op *out)
{
	uint64_t key = brim__mix_in(w->key, c->index), first, count;

	if (c->bytes >= w->end_bytes ||
	    (w->o.operations && c->index >= w->o.operations))
		return 0;
	count = size_of(w, key);
	first = place_of(w, c, key) * (w->is_fixed ? w->io_blocks : 1);
	if (first + count > w->blocks) {
		/* In order, the last is cut short; others are moved. */
		if (w->is_fixed || w->o.pattern == BRIM_PATTERN_SEQUENTIAL)
			count = w->blocks - first;
		else
			first = w->blocks - count;
	}
	advance(w, c, w->is_fixed ? 1 : count);
	out->index = c->index++;
	out->off_bytes = w->o.off_bytes + first * w->o.block_bytes;
	out->len_bytes = count * w->o.block_bytes;
	out->is_read = w->o.read_ppm &&
		       brim__mix_below(brim__mix_in(key, DRAW_KIND), PPM) <
			       w->o.read_ppm;
	c->bytes += out->len_bytes;
	return 1;
}
