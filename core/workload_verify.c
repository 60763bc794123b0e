/* SPDX-License-Identifier: MIT */
/*
 * workload_verify.c: the kind of run that reads back what a workload wrote. It
 * goes through the operations once more to learn who wrote each block last, a
 * window of the range at a time (a phase each), then reads what was written.
 * Judging happens in the check, so in the engine's threads where it has some.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "workload.h"

/* A window's blocks, 8 bytes each. */
#ifndef WINDOW_BLOCKS
#define WINDOW_BLOCKS (UINT64_C(1) << 24)
#endif
/* Operations gone through before the caller gets to look. */
#define STRIDE_OPS (1u << 20)
/* What the last operation on a block may be noted as. */
#define NEVER 0u
#define UNSURE (UINT64_C(1) << 63) /* one that may have been cut off came too */

struct verify_run {
	const struct brim_workload *w; /* held */
	uint64_t done, begun;
	uint32_t io_blocks; /* of a read */
	/* The window: blocks from `first`, and what is known of them. */
	uint64_t window, first, count;
	uint64_t *last; /* 1 + the operation, or NEVER; UNSURE or not */
	struct brim_workload_cursor cursor;
	bool is_built;
	uint64_t next; /* block of the window to read next */
	struct brim_workload_counts counts;
};

/* ----------------------------------------------------------------- judging */

static void count(uint64_t *n)
{
	__atomic_add_fetch(n, 1, __ATOMIC_RELAXED);
}

static void report(struct brim_run *r, uint64_t *counter, const char *what,
		   uint64_t off_bytes, uint64_t expected, uint64_t found)
{
	const struct verify_run *v = r->own;
	struct brim_mismatch m = {
		.off_bytes = off_bytes,
		.group = (off_bytes - v->w->o.off_bytes) / v->w->o.block_bytes,
		.piece = "block",
		.what = what,
		.rule = "=",
		.expected = expected,
		.found = found,
	};

	count(counter);
	brim__run_mismatch(r, &m);
}

/*
 * A block that is not even headed as ours: what was written over it shows where
 * a part of what belongs there is left.
 */
static bool is_remnant(const struct verify_run *v, uint64_t off_bytes,
		       uint64_t version, const uint8_t *block, uint8_t *scratch,
		       uint64_t *at)
{
	uint32_t bytes = v->w->o.block_bytes, k;
	bool is_ours = false;

	brim_workload_block(v->w, off_bytes, version, scratch);
	/* Not the words of the header, which others may have too. */
	for (k = 32; k < bytes && !is_ours; k += 8)
		is_ours = !memcmp(block + k, scratch + k, 8);
	for (k = 0; is_ours && block[k] == scratch[k];)
		k++;
	*at = k;
	return is_ours;
}

/* A block that is intact, of some operation. */
static void judge_version(struct brim_run *r, uint64_t off_bytes, uint64_t last,
			  uint64_t found)
{
	struct verify_run *v = r->own;
	struct brim_workload_counts *c = &v->counts;
	uint64_t sure = last & ~UNSURE;

	if (found >= v->begun)
		report(r, &c->newer, "newer", off_bytes, sure - 1, found);
	else if (sure != NEVER && found < sure - 1 && !v->w->o.may_overlap)
		report(r, &c->stale, "stale", off_bytes, sure - 1, found);
	else if (found > sure - 1 && !(last & UNSURE) && !v->w->o.may_overlap)
		report(r, &c->newer, "newer", off_bytes, sure - 1, found);
	else
		count(&c->right);
}

static void judge_block(struct brim_run *r, uint64_t off_bytes, uint64_t last,
			const uint8_t *block, uint8_t *scratch)
{
	struct verify_run *v = r->own;
	struct brim_workload_counts *c = &v->counts;
	uint64_t version, at = 0, sure = last & ~UNSURE;
	enum brim__block_state state;

	state = brim__workload_judge(v->w, off_bytes, block, scratch, &version,
				     &at);
	if (state == BRIM__BLOCK_INTACT)
		judge_version(r, off_bytes, last, version);
	else if (last & UNSURE)
		count(&c->unjudged);
	else if (state == BRIM__BLOCK_MISPLACED)
		report(r, &c->misplaced, "misplaced", off_bytes, sure - 1,
		       version);
	else if (state == BRIM__BLOCK_TORN ||
		 is_remnant(v, off_bytes, sure - 1, block, scratch, &at))
		report(r, &c->corrupt, "corrupt", off_bytes + at, scratch[at],
		       block[at]);
	else
		report(r, &c->missing, "missing", off_bytes, sure - 1, 0);
}

static void verify_check(void *ctx, struct brim__io *io)
{
	struct brim_run *r = ctx;
	struct verify_run *v = r->own;
	uint32_t block = v->w->o.block_bytes;
	uint8_t *scratch = io->buf + (uint64_t)v->io_blocks * block;
	uint64_t at, k = (io->off_bytes - v->w->o.off_bytes) / block - v->first;

	for (at = 0; at < io->len_bytes; at += block, k++)
		if (v->last[k] != NEVER)
			judge_block(r, io->off_bytes + at, v->last[k],
				    io->buf + at, scratch);
}

/* --------------------------------------------------------------- the table */

static void note(struct verify_run *v, const struct brim_workload_op *op)
{
	uint32_t block = v->w->o.block_bytes;
	uint64_t from = (op->off_bytes - v->w->o.off_bytes) / block;
	uint64_t to = from + op->len_bytes / block;

	from = BRIM__MAX(from, v->first);
	to = BRIM__MIN(to, v->first + v->count);
	for (; from < to; from++) {
		uint64_t *last = &v->last[from - v->first];

		*last = op->index < v->done ? op->index + 1 : *last | UNSURE;
	}
}

/* Goes through some of the operations; true once the table is complete. */
static bool verify_build(struct verify_run *v)
{
	struct brim_workload_op op;
	uint32_t k;

	for (k = 0; k < STRIDE_OPS; k++) {
		if (v->cursor.index >= v->begun ||
		    !brim_workload_next(v->w, &v->cursor, &op))
			return true;
		if (!op.is_read)
			note(v, &op);
	}
	return false;
}

static void window_begin(struct verify_run *v, uint64_t window)
{
	v->window = window;
	v->first = window * WINDOW_BLOCKS;
	v->count = BRIM__MIN(WINDOW_BLOCKS, v->w->blocks - v->first);
	memset(v->last, 0, (size_t)v->count * sizeof(*v->last));
	brim_workload_begin(v->w, &v->cursor);
	v->is_built = false;
	v->next = 0;
}

/* ----------------------------------------------------------------- reading */

static int verify_next(struct brim_run *r, struct brim__io *io)
{
	struct verify_run *v = r->own;
	uint32_t block = v->w->o.block_bytes;
	uint64_t to;

	if (v->window != r->phase)
		window_begin(v, r->phase);
	if (!v->is_built)
		v->is_built = verify_build(v);
	if (!v->is_built) {
		r->is_blocked = true;
		return 0;
	}
	while (v->next < v->count && v->last[v->next] == NEVER)
		v->next++;
	if (v->next == v->count)
		return 0;
	to = BRIM__MIN(v->count, v->next + v->io_blocks);
	while (v->last[to - 1] == NEVER)
		to--;
	io->op = BRIM__READ;
	io->off_bytes = v->w->o.off_bytes + (v->first + v->next) * block;
	io->len_bytes = (to - v->next) * block;
	v->next = to;
	return 1;
}

static void verify_done(struct brim_run *r, struct brim__io *io)
{
	const struct verify_run *v = r->own;

	r->groups_done += io->len_bytes / v->w->o.block_bytes;
}

static void verify_close(struct brim_run *r)
{
	struct verify_run *v = r->own;

	if (!v)
		return;
	brim_workload_free((struct brim_workload *)(uintptr_t)v->w);
	free(v->last);
	free(v);
}

static const struct brim__run_ops verify_ops = {
	.next = verify_next,
	.done = verify_done,
	.check = verify_check,
	.close = verify_close,
	.keeps_kinds = true,
	.phase = "verify",
};

/* ----------------------------------------------------------------- opening */

static int run_own(struct brim_run *r, const struct brim_workload *w,
		   uint32_t io_blocks, struct brim_err *e)
{
	struct verify_run *v = calloc(1, sizeof(*v));

	if (!v)
		return brim__err(e, -ENOMEM, "workload", "verify");
	r->own = v;
	v->w = brim__workload_hold(w);
	v->io_blocks = io_blocks;
	v->last = malloc((size_t)BRIM__MIN(WINDOW_BLOCKS, w->blocks) *
			 sizeof(*v->last));
	if (!v->last)
		return brim__err(e, -ENOMEM, "workload", "verify");
	window_begin(v, 0);
	r->phase_count = (uint32_t)((w->blocks - 1) / WINDOW_BLOCKS + 1);
	return 0;
}

int brim_workload_verify(struct brim_run **out, const struct brim_workload *w,
			 struct brim_device *d, uint64_t done, uint64_t begun,
			 const struct brim_run_options *o, struct brim_err *e)
{
	uint32_t block = w->o.block_bytes, io_blocks;
	struct brim_run_options opts;
	struct verify_run *v;
	int ret;

	*out = NULL;
	if (done > begun)
		return brim__errf(e, -EINVAL, "workload",
				  "more operations are done than begun");
	ret = brim__run_options(&opts, o, d, e);
	if (!ret)
		ret = brim__workload_fits(w, d, opts.max_io_bytes, e);
	if (ret < 0)
		return ret;
	io_blocks = opts.max_io_bytes / block;
	/* A block of scratch behind what is read. */
	ret = brim__run_create(
		out, &verify_ops, d, (io_blocks + 1) * block,
		brim__device_is_cold(
			d, w->o.off_bytes, opts.max_io_bytes,
			BRIM__MAX(1u, w->o.size_bytes / opts.max_io_bytes)),
		&opts, e);
	if (ret < 0)
		return ret;
	ret = run_own(*out, w, io_blocks, e);
	if (ret < 0) {
		brim_run_close(*out);
		*out = NULL;
		return ret;
	}
	v = (*out)->own;
	v->done = done;
	v->begun = begun;
	return 0;
}

int brim_workload_found(const struct brim_run *r,
			struct brim_workload_counts *out)
{
	const struct verify_run *v = r->own;
	size_t room = out->struct_bytes;
	struct brim_workload_counts c;

	if (r->ops != &verify_ops)
		return -ENOENT;
	c = v->counts;
	c.struct_bytes = room;
	memcpy(out, &c, BRIM__MIN(room, sizeof(c)));
	return 0;
}
