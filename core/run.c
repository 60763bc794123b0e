/* SPDX-License-Identifier: MIT */
/*
 * run.c: the loop that keeps the queue full, whatever is being run, and the
 * life of a run. Owns the batch and the slots' state; run_mismatch.c has the
 * mismatches. The kinds of run are in run_write.c, run_verify.c, scan_run.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

#define DEFAULT_DEPTH 128u
#define DEFAULT_MISMATCHES 16u
#define MISMATCHES_MAX (1u << 20)

/* ----------------------------------------------------------------- options */

int brim__run_options(struct brim_run_options *out,
		      const struct brim_run_options *o,
		      const struct brim_device *d, struct brim_err *e)
{
	uint32_t align = BRIM__MAX(1u, d->info.align_bytes);

	int ret = brim__options_take(out, sizeof(*out), o, "open", e);

	if (ret < 0)
		return ret;
	if (!out->queue_depth)
		out->queue_depth = DEFAULT_DEPTH;
	if (!out->max_io_bytes)
		out->max_io_bytes = BRIM__MAX(BRIM__IO_BYTES_DEFAULT, align);
	if (!out->max_mismatches)
		out->max_mismatches = DEFAULT_MISMATCHES;
	if (out->max_io_bytes > BRIM__IO_BYTES_MAX || out->max_io_bytes % align)
		return brim__errf(e, -EINVAL, "open",
				  "max_io_bytes %u: it is "
				  "a multiple of %u, at most %u",
				  out->max_io_bytes, align, BRIM__IO_BYTES_MAX);
	if (out->max_mismatches > MISMATCHES_MAX)
		return brim__errf(e, -EINVAL, "open",
				  "max_mismatches %u: at "
				  "most %u",
				  out->max_mismatches, MISMATCHES_MAX);
	return 0;
}

/* ------------------------------------------------------- create and close */

void brim_run_close(struct brim_run *r)
{
	if (!r)
		return;
	brim__batch_close(r->batch);
	if (r->ops->close)
		r->ops->close(r);
	brim_device_close(r->dev);
	brim_plan_free((struct brim_plan *)(uintptr_t)r->plan);
	brim_scan_free((struct brim_scan *)(uintptr_t)r->scan);
	pthread_mutex_destroy(&r->lock);
	brim__run_mismatches_free(r);
	free(r->redo);
	free(r->reaped);
	free(r->slots);
	free(r);
}

static int run_alloc(struct brim_run *r, const struct brim_run_options *o)
{
	r->slots = calloc(r->depth, sizeof(*r->slots));
	r->reaped = calloc(r->depth, sizeof(*r->reaped));
	/* No more ranges can fail than are in flight. */
	r->redo = calloc(r->depth, sizeof(*r->redo));
	if (!r->slots || !r->reaped || !r->redo)
		return -ENOMEM;
	return brim__run_mismatches_create(r, o->max_mismatches);
}

int brim__run_create(struct brim_run **out, const struct brim__run_ops *ops,
		     struct brim_device *d, uint32_t slot_bytes, bool is_cold,
		     const struct brim_run_options *o, struct brim_err *e)
{
	struct brim__batch_options bo = {
		.engine = o->engine,
		.queue_depth = o->queue_depth,
		.threads = o->threads,
		.slot_bytes = slot_bytes,
		.is_cold = is_cold,
		.check = ops->check,
	};
	struct brim_run *r;
	int ret;

	*out = NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return brim__err(e, -ENOMEM, "open", "run");
	pthread_mutex_init(&r->lock, NULL);
	r->ops = ops;
	r->dev = d;
	brim__device_hold(d);
	bo.check_ctx = r;
	ret = brim__batch_open(&r->batch, d, &bo, e);
	if (ret < 0)
		goto err;
	r->depth = brim__batch_depth(r->batch);
	ret = run_alloc(r, o);
	if (ret < 0) {
		brim__err(e, ret, "open", "run");
		goto err;
	}
	if (ops->check && !brim__batch_moves_data(r->batch)) {
		ret = brim__errf(e, -EINVAL, "open",
				 "engine %s reads nothing,"
				 " so there is nothing to compare",
				 brim__batch_engine(r->batch));
		goto err;
	}
	*out = r;
	return 0;
err:
	brim_run_close(r);
	return ret;
}

/* --------------------------------------------------------------- the loop */

static void run_begin_phase(struct brim_run *r, uint64_t now_ns)
{
	r->phase_ns = now_ns;
	r->is_dry = false;
	r->is_flushed = false;
	if (r->plan)
		brim__cursor_init(&r->cursor, r->plan, r->phase, r->io_bytes);
}

static void run_begin(struct brim_run *r)
{
	r->is_begun = true;
	r->begun_ns = brim__now_ns();
	brim__cpu_ns(&r->user_ns, &r->system_ns);
	run_begin_phase(r, r->begun_ns);
}

static int run_failure(const struct brim_run *r, struct brim_err *e)
{
	if (e)
		*e = r->failure;
	return r->failure.code;
}

/* How long to sleep before looking again whether something has finished. */
#define PAUSE_NS 50000u

/* What comes next is due later: no longer than that, and never long. */
static void run_pause(const struct brim_run *r)
{
	uint64_t now_ns = brim__now_ns();
	struct timespec ts = { 0 };

	if (r->due_ns <= now_ns)
		return;
	ts.tv_nsec = (long)BRIM__MIN(r->due_ns - now_ns, PAUSE_NS);
	nanosleep(&ts, NULL);
}

/* Queues I/Os until the slots or the phase's I/Os run out. */
static int run_fill(struct brim_run *r, struct brim_err *e)
{
	struct brim__io *io;
	int ret = 0;

	r->is_blocked = false;
	r->due_ns = 0;
	while (!r->is_dry && !r->is_blocked && !ret &&
	       (io = brim__batch_get(r->batch))) {
		if (r->ops->next(r, io)) {
			ret = brim__batch_queue(r->batch, io, e);
		} else if (r->failure.code) {
			brim__batch_put(r->batch, io);
			ret = run_failure(r, e);
		} else {
			r->is_dry = !r->is_blocked;
			brim__batch_put(r->batch, io);
		}
	}
	return ret;
}

/*
 * Nothing of the phase is left or in flight: flushes, then goes on to the next.
 * 1, or 0 after the last.
 */
static int run_turn(struct brim_run *r, struct brim_err *e)
{
	uint64_t now_ns = brim__now_ns();
	struct brim__io *io;

	if (!r->is_flushed) {
		r->is_flushed = true;
		r->data_ns += now_ns - r->phase_ns;
		if (r->ops->flushes) {
			io = brim__batch_get(r->batch);
			io->op = BRIM__FLUSH;
			io->off_bytes = io->len_bytes = 0;
			return brim__batch_queue(r->batch, io, e) ?: 1;
		}
	}
	if (++r->phase < r->phase_count) {
		run_begin_phase(r, now_ns);
		return 1;
	}
	r->is_finished = true;
	r->end_ns = now_ns;
	return 0;
}

/* The batch's clock stands still while nothing is reaped. */
static uint64_t run_now_ns(const struct brim_run *r)
{
	return r->due_ns ? brim__now_ns() : brim__batch_stats(r->batch)->now_ns;
}

/* until_ns 0: to the end. 1: more to do, 0: finished. */
static int run_loop(struct brim_run *r, uint64_t until_ns, struct brim_err *e)
{
	int ret, got, k;

	do {
		ret = run_fill(r, e);
		if (ret < 0)
			return ret;
		if (r->is_blocked && !r->due_ns &&
		    !brim__batch_in_flight(r->batch))
			return 1;
		got = brim__batch_reap(r->batch, !r->due_ns, r->reaped,
				       r->depth, e);
		if (got < 0)
			return got;
		if (!got && r->due_ns)
			run_pause(r);
		for (k = 0; k < got; k++) {
			if (r->reaped[k]->op != BRIM__FLUSH)
				r->ops->done(r, r->reaped[k]);
			brim__batch_put(r->batch, r->reaped[k]);
		}
		if (r->is_dry && !brim__batch_in_flight(r->batch)) {
			ret = run_turn(r, e);
			if (ret <= 0)
				return ret;
		}
	} while (!until_ns || run_now_ns(r) < until_ns);
	return 1;
}

int brim_run_step(struct brim_run *r, uint64_t budget_ns,
		  struct brim_run_stats *st, struct brim_err *e)
{
	int ret = 0;

	if (!r->is_begun)
		run_begin(r);
	if (!r->is_finished)
		ret = run_loop(r, budget_ns ? brim__now_ns() + budget_ns : 0,
			       e);
	if (st)
		brim__run_stats(r, st);
	return ret;
}
