/* SPDX-License-Identifier: MIT */
/*
 * fill_auto.c: which way an operation goes, and in mode "auto" the measurement
 * that decides it: some files plainly, some through the ring, and both again.
 * How many is fixed, so that what is written does not depend on the outcome.
 * Called by fill_submit.c. Sizes are bytes, times nanoseconds.
 */
#include <stdio.h>

#include "fill.h"

/* Plain, ring, plain, ring; a ring has to fill up and to run dry. */
#define SEGMENTS 4u

static const struct {
	uint64_t ops, bytes;
} segment_ends[2] = {
	{ 64, 16u << 20 },
	{ 192, 48u << 20 },
};

/* Adds the time since the clock was started, but for what is not measured. */
static void stop_clock(struct brim__fill_auto *a)
{
	uint64_t ns = brim__now_ns() - a->start_ns;

	if (a->is_timing)
		a->now.ns += ns - BRIM__MIN(ns, a->other_ns);
	a->is_timing = false;
}

static void start_clock(struct brim__fill_auto *a)
{
	a->start_ns = brim__now_ns();
	a->other_ns = 0;
	a->is_timing = true;
}

static void sample_add(struct brim__fill_sample *to,
		       const struct brim__fill_sample *from)
{
	to->ns += from->ns;
	to->ops += from->ops;
	to->bytes += from->bytes;
}

static double bytes_per_s(const struct brim__fill_sample *x)
{
	return x->ns ? (double)x->bytes * 1e9 / (double)x->ns : 0;
}

/* By what all submitters have measured so far, and for all: the last decides. */
static void decide(struct brim__fill_sub *s)
{
	struct brim__fill_auto *a = &s->choosing;
	struct brim_fill *f = s->fill;
	uint32_t k;

	pthread_mutex_lock(&f->lock);
	for (k = 0; k < 2; k++)
		sample_add(&f->sums[k], &a->sums[k]);
	__atomic_store_n(&f->use_ring,
			 bytes_per_s(&f->sums[1]) > bytes_per_s(&f->sums[0]),
			 __ATOMIC_RELAXED);
	a->is_decided = true;
	f->decided++;
	pthread_mutex_unlock(&f->lock);
}

static void end_segment(struct brim__fill_sub *s)
{
	struct brim__fill_auto *a = &s->choosing;

	brim__fill_ring_drain(s->ring);
	stop_clock(a);
	sample_add(&a->sums[a->segment & 1], &a->now);
	a->now = (struct brim__fill_sample){ 0 };
	if (++a->segment == SEGMENTS)
		decide(s);
}

bool brim__fill_uses_ring(struct brim__fill_sub *s, const struct brim_op *op)
{
	struct brim__fill_auto *a = &s->choosing;

	if (!brim__fill_ring_takes(op))
		return false;
	if (!s->fill->is_auto)
		return true;
	if (!brim__fill_is_direct(s, op))
		return false;
	if (!a->is_decided &&
	    (a->now.ops >= segment_ends[a->segment & 1].ops ||
	     a->now.bytes >= segment_ends[a->segment & 1].bytes))
		end_segment(s);
	if (a->is_decided)
		return __atomic_load_n(&s->fill->use_ring, __ATOMIC_RELAXED);
	if (!a->is_timing)
		start_clock(a);
	a->now.ops++;
	a->now.bytes += op->len_bytes;
	return a->segment & 1;
}

void brim__fill_auto_note(struct brim__fill_sub *s, const struct brim_op *op,
			  uint64_t ns)
{
	if (s->choosing.is_timing &&
	    !(brim__fill_ring_takes(op) && brim__fill_is_direct(s, op)))
		s->choosing.other_ns += ns;
}

void brim__fill_auto_pause(struct brim__fill_sub *s)
{
	stop_clock(&s->choosing);
}

/* -------------------------------------------------------------- for people */

static void say_measured(struct brim_fill *f, bool use_ring)
{
	char from[32];

	brim_bytes_format(from, sizeof(from), f->o.direct_min_bytes);
	snprintf(f->choice, sizeof(f->choice),
		 "%s for %s and more: ring %.0f MiB/s, plain %.0f MiB/s, "
		 "measured over %llu files; plain below",
		 use_ring ? "ring" : "plain", from,
		 bytes_per_s(&f->sums[1]) / (1 << 20),
		 bytes_per_s(&f->sums[0]) / (1 << 20),
		 (unsigned long long)(f->sums[0].ops + f->sums[1].ops));
}

const char *brim__fill_mode(struct brim_fill *f)
{
	char from[32];

	if (f->is_none)
		return "none";
	if (f->no_ring[0]) {
		snprintf(f->choice, sizeof(f->choice), "plain: %s", f->no_ring);
		return "plain";
	}
	if (!f->is_auto)
		return f->ring_works ? "ring" : "plain";
	if (f->decided) {
		bool use_ring = __atomic_load_n(&f->use_ring, __ATOMIC_RELAXED);

		say_measured(f, use_ring);
		return use_ring ? "ring" : "plain";
	}
	brim_bytes_format(from, sizeof(from), f->o.direct_min_bytes);
	snprintf(f->choice, sizeof(f->choice),
		 "plain below %s; not enough larger files yet to choose", from);
	return "auto";
}
