/* SPDX-License-Identifier: MIT */
/*
 * fill_stats.c: the counters of all submitters in one, for brim_fill_step.
 * Called from the caller's thread while submitters work. Times are nanoseconds.
 */
#include <string.h>
#include <time.h>

#include "fill.h"

static void hist_take(struct brim__hist *to, struct brim__hist *from)
{
	uint32_t k;

	if (!from->count)
		return;
	for (k = 0; k < BRIM__HIST_BUCKETS; k++)
		to->buckets[k] += from->buckets[k];
	to->count += from->count;
	to->max_ns = BRIM__MAX(to->max_ns, from->max_ns);
	memset(from, 0, sizeof(*from));
}

static uint64_t thread_cpu_ns(const struct brim__fill_sub *s)
{
	struct timespec ts;
	clockid_t clock;

	if (!s->has_thread)
		return s->cpu_ns;
	if (pthread_getcpuclockid(s->thread, &clock) ||
	    clock_gettime(clock, &ts) < 0)
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Of one submitter. */
static void add_sub(struct brim_fill_stats *st, struct brim__fill_sub *s)
{
	struct brim_fill *f = s->fill;
	struct brim__fill_counts *c = &s->counts;
	int k;

	pthread_mutex_lock(&s->lock);
	for (k = 0; k < BRIM_OP_KINDS; k++) {
		st->ops[k] += f->is_none ? c->totals.ops[k] : c->ops[k];
		hist_take(&f->merged[k], &c->latency[k]);
	}
	st->written_bytes += f->is_none ? c->totals.written_bytes
					: c->written_bytes;
	st->live_files += c->totals.live_files;
	st->live_bytes += c->totals.live_bytes;
	st->refused += c->refused;
	st->failed += c->failed;
	st->short_files += c->short_files;
	pthread_mutex_unlock(&s->lock);
	st->cpu_ns += thread_cpu_ns(s);
}

/* What is in flight, since when, and what has waited longest. */
static void add_flight(struct brim_fill_stats *st, struct brim__fill_sub *s,
		       uint64_t now_ns)
{
	uint64_t since =
		atomic_load_explicit(&s->since.ns, memory_order_relaxed);
	uint64_t what =
		atomic_load_explicit(&s->since.what, memory_order_relaxed);
	struct brim__fill_ring *ring;
	uint64_t oldest = 0, of_ring = 0;

	st->in_flight += since > 0;
	ring = atomic_load_explicit(&s->ring_seen, memory_order_acquire);
	if (ring)
		st->in_flight += brim__fill_ring_since(ring, &oldest, &of_ring);
	if (!since || (oldest && oldest <= since)) {
		since = oldest;
		what = of_ring;
	}
	if (!since || now_ns <= since || now_ns - since <= st->longest_wait_ns)
		return;
	st->longest_wait_ns = now_ns - since;
	st->waiting_kind = (enum brim_op_kind)(what >> 32);
	st->waiting_stream = s->index;
	st->waiting_id = (uint32_t)what;
}

void brim__fill_stats(struct brim_fill *f, struct brim_fill_stats *out)
{
	struct brim_fill_stats st = { .struct_bytes = out->struct_bytes };
	uint64_t now_ns;
	uint32_t k;

	memset(f->merged, 0, BRIM_OP_KINDS * sizeof(*f->merged));
	for (k = 0; k < f->sub_count; k++)
		add_sub(&st, &f->subs[k]);
	for (k = 0; k < BRIM_OP_KINDS; k++) {
		st.p50_ns[k] = brim__hist_quantile(&f->merged[k], 500000);
		st.p99_ns[k] = brim__hist_quantile(&f->merged[k], 990000);
		st.max_ns[k] = f->merged[k].max_ns;
	}
	pthread_mutex_lock(&f->lock);
	st.mode = brim__fill_mode(f);
	st.choice = f->choice;
	now_ns = brim__now_ns();
	st.elapsed_ns = f->elapsed_ns + (f->running ? now_ns - f->grant_ns : 0);
	for (k = 0; f->running && k < f->sub_count; k++)
		add_flight(&st, &f->subs[k], now_ns);
	pthread_mutex_unlock(&f->lock);
	memcpy(out, &st, BRIM__MIN(st.struct_bytes, sizeof(st)));
}
