/* SPDX-License-Identifier: MIT */
/*
 * fill_submit.c: a submitter: takes operations from its stream as long as it is
 * granted some, has them carried out one way or the other, and counts. One
 * thread for each stream. Times are nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fill.h"

/* How old the totals that step reports may be. */
#define PUBLISH_NS 10000000u

/* ---------------------------------------------------------------- counting */

void brim__fill_publish(struct brim__fill_sub *s)
{
	pthread_mutex_lock(&s->lock);
	brim_stream_totals(s->stream, &s->counts.totals);
	s->counts.short_files = s->short_count;
	pthread_mutex_unlock(&s->lock);
}

/* Everything before it is done, refused operations when they were told. */
static void update_done(struct brim__fill_sub *s)
{
	uint64_t done = BRIM__MIN(s->begun, s->lowest_fail);

	if (s->ring)
		done = brim__fill_ring_lowest(s->ring, done);
	atomic_store_explicit(&s->done, done, memory_order_release);
}

bool brim__fill_is_refusal(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

void brim__fill_finish(struct brim__fill_sub *s, const struct brim_op *op,
		       const struct brim__fill_result *r, uint64_t start_ns,
		       uint64_t end_ns)
{
	struct brim__fill_counts *c = &s->counts;

	if (r->error) {
		s->fails[s->fail_count].op = *op;
		s->fails[s->fail_count++].result = *r;
		s->lowest_fail = BRIM__MIN(s->lowest_fail, op->index);
	} else if (s->short_count) {
		brim__fill_forget_short(s, op);
	}
	if (s->fill->trace && !r->error)
		brim__fill_trace(s, op, r, start_ns, end_ns);
	pthread_mutex_lock(&s->lock);
	c->written_bytes += r->written_bytes;
	c->ops[op->kind] += !r->error;
	c->refused += r->error && brim__fill_is_refusal(r->error);
	c->failed += r->error && !brim__fill_is_refusal(r->error);
	brim__hist_add(&c->latency[op->kind], end_ns - start_ns);
	pthread_mutex_unlock(&s->lock);
	update_done(s);
	if (end_ns - s->published_ns > PUBLISH_NS) {
		s->published_ns = end_ns;
		brim__fill_publish(s);
	}
}

/* -------------------------------------------------------------- operations */

/* The next operation into `held`; false: the grant does not allow one. */
static bool hand_out(struct brim__fill_sub *s)
{
	if (!s->ops_left || !s->bytes_left)
		return false;
	if (brim__fill_next(s, &s->held) < 0)
		return false;
	s->has_held = true;
	s->ops_left--;
	s->bytes_left -= BRIM__MIN(s->bytes_left, s->held.len_bytes);
	return true;
}

static void do_plain(struct brim__fill_sub *s, const struct brim_op *op)
{
	uint64_t content_ns = s->content_ns;
	uint64_t start_ns = brim__now_ns(), end_ns;
	struct brim__fill_result r;

	brim__fill_begin(&s->since, op, start_ns);
	brim__fill_plain(s, op, &r);
	end_ns = brim__now_ns();
	brim__fill_end(&s->since);
	brim__fill_auto_note(s, op, end_ns - start_ns);
	/* Preparing content is not the filesystem's time. */
	brim__fill_finish(s, op, &r, start_ns + (s->content_ns - content_ns),
			  end_ns);
}

/* Begins the operation that is held, or waits for what it must wait for. */
static void go_on(struct brim__fill_sub *s)
{
	struct brim_op op = s->held;

	if (s->ring && brim__fill_ring_has(s->ring, op.file.id)) {
		brim__fill_ring_wait(s->ring);
		return;
	}
	s->has_held = false;
	s->begun = op.index + 1;
	if (s->ring && brim__fill_uses_ring(s, &op))
		brim__fill_ring_start(s->ring, &op);
	else
		do_plain(s, &op);
}

static bool may_go_on(struct brim__fill_sub *s)
{
	return !s->fail_count && !s->err.code &&
	       !atomic_load_explicit(&s->fill->stop, memory_order_relaxed);
}

/* What would have been done, now. */
static void trace_only(struct brim__fill_sub *s)
{
	struct brim__fill_result r = { .written_bytes = s->held.len_bytes };
	uint64_t now_ns = brim__now_ns();

	brim__fill_trace(s, &s->held, &r, now_ns, now_ns);
}

/* Mode "none": streams go forward, nothing else does. */
static void count_only(struct brim__fill_sub *s)
{
	uint32_t n = 0;

	while (may_go_on(s) && hand_out(s)) {
		s->has_held = false;
		s->begun = s->held.index + 1;
		if (s->fill->trace)
			trace_only(s);
		if (!(++n & 0xfff)) {
			update_done(s);
			brim__fill_publish(s);
		}
	}
	update_done(s);
}

/*
 * What waited for a file in flight is done now, so that all the stream handed
 * out has happened. Of a file that was refused it is given up: that is another
 * file than it was meant for.
 */
static void finish_held(struct brim__fill_sub *s)
{
	uint32_t k;

	if (!s->has_held || s->err.code)
		return;
	for (k = 0; k < s->fail_count; k++) {
		const struct brim_op *op = &s->fails[k].op;

		if (op->file.id == s->held.file.id && op->kind != BRIM_OP_MKDIR)
			break;
	}
	if (k == s->fail_count) {
		go_on(s);
		brim__fill_ring_drain(s->ring);
		return;
	}
	s->has_held = false;
	s->begun = s->held.index + 1;
	s->fails[s->fail_count++] = (struct brim__fill_fail){
		.op = s->held,
		.result = { .call = "",
			    .error = ECANCELED,
			    .stands = s->held.kind == BRIM_OP_CREATE
					      ? BRIM_FILE_NONE
					      : BRIM_FILE_AS_BEFORE },
	};
}

static void use_grant(struct brim__fill_sub *s)
{
	if (s->fill->is_none)
		count_only(s);
	else
		while (may_go_on(s) && (s->has_held || hand_out(s)))
			go_on(s);
	if (s->ring) {
		brim__fill_ring_drain(s->ring);
		finish_held(s);
		brim__fill_auto_pause(s);
	}
	brim__fill_tell(s);
	update_done(s);
	brim__fill_publish(s);
	if (s->err.code)
		atomic_store(&s->fill->stop, true);
}

/* ------------------------------------------------------------- the thread */

/* The ring is its thread's: the kernel has one submitter for each. */
static void open_ring(struct brim__fill_sub *s)
{
	struct brim_fill *f = s->fill;
	struct brim_err e = { 0 };

	if (!f->ring_works)
		return;
	if (brim__fill_ring_open(&s->ring, s, &e) == 0) {
		atomic_store(&s->ring_seen, s->ring);
		return;
	}
	pthread_mutex_lock(&f->lock);
	memcpy(f->no_ring, e.msg, sizeof(f->no_ring) - 1);
	pthread_mutex_unlock(&f->lock);
}

void *brim__fill_thread(void *arg)
{
	struct brim__fill_sub *s = arg;
	struct brim_fill *f = s->fill;
	struct timespec cpu;
	uint64_t seen = 0;

	open_ring(s);
	pthread_mutex_lock(&f->lock);
	for (;;) {
		while (!f->stopping && seen == f->grant_number)
			pthread_cond_wait(&f->work, &f->lock);
		if (f->stopping)
			break;
		seen = f->grant_number;
		s->ops_left = f->grant_ops ? f->grant_ops : UINT64_MAX;
		s->bytes_left = f->grant_bytes ? f->grant_bytes : UINT64_MAX;
		pthread_mutex_unlock(&f->lock);
		use_grant(s);
		pthread_mutex_lock(&f->lock);
		if (--f->running == 0) {
			f->elapsed_ns += brim__now_ns() - f->grant_ns;
			pthread_cond_broadcast(&f->news);
		}
	}
	pthread_mutex_unlock(&f->lock);
	brim__fill_ring_close(s->ring);
	s->ring = NULL;
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0)
		s->cpu_ns = (uint64_t)cpu.tv_sec * 1000000000u +
			    (uint64_t)cpu.tv_nsec;
	return NULL;
}
