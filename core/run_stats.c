/* SPDX-License-Identifier: MIT */
/*
 * run_stats.c: the counters of a run as its caller sees them. Called by run.c
 * once a step. Times are nanoseconds.
 */
#include <string.h>

#include "run.h"

static uint64_t stats_mismatches(const struct brim_run *r)
{
	/* The lock is no part of what the run is. */
	struct brim_run *w = (struct brim_run *)r;
	uint64_t n;

	pthread_mutex_lock(&w->lock);
	n = r->mismatches;
	pthread_mutex_unlock(&w->lock);
	return n;
}

static void stats_io(struct brim_run_stats *st,
		     const struct brim__batch_stats *bs)
{
	st->reads = bs->ios[BRIM__READ];
	st->writes = bs->ios[BRIM__WRITE];
	st->zero_ranges = bs->ios[BRIM__ZERO];
	st->flushes = bs->ios[BRIM__FLUSH];
	st->read_bytes = bs->bytes[BRIM__READ];
	st->write_bytes = bs->bytes[BRIM__WRITE];
	st->zero_bytes = bs->bytes[BRIM__ZERO];
	st->short_ios = bs->short_ios;
	st->retries = bs->retries;
	st->latency_p50_ns = brim__hist_quantile(&bs->latency, 500000);
	st->latency_p90_ns = brim__hist_quantile(&bs->latency, 900000);
	st->latency_p99_ns = brim__hist_quantile(&bs->latency, 990000);
	st->latency_max_ns = bs->latency.max_ns;
}

/*
 * The totals are what is foreseen. Zeros that turn out to be written, holes
 * that need no reading and a device's boundaries change them on the way.
 */
static void stats_progress(const struct brim_run *r, struct brim_run_stats *st)
{
	st->groups_done = r->groups_done;
	st->groups_total = r->groups_total;
	st->ios_done = st->reads + st->writes + st->zero_ranges;
	st->ios_total = BRIM__MAX(r->ios_total, st->ios_done);
	st->bytes_done = st->read_bytes + st->write_bytes + st->zero_bytes +
			 r->skipped_bytes;
	st->bytes_total = BRIM__MAX(r->bytes_total, st->bytes_done);
	if (r->is_finished) {
		st->ios_total = st->ios_done;
		st->bytes_total = st->bytes_done;
	}
}

static void stats_time(const struct brim_run *r, struct brim_run_stats *st,
		       uint64_t latency_sum_ns)
{
	uint64_t now_ns = r->is_finished ? r->end_ns : brim__now_ns();
	uint64_t data_ns = r->data_ns;

	if (!r->is_begun)
		return;
	if (!r->is_finished && !r->is_flushed)
		data_ns += now_ns - r->phase_ns;
	st->elapsed_ns = now_ns - r->begun_ns;
	brim__cpu_ns(&st->user_cpu_ns, &st->system_cpu_ns);
	st->user_cpu_ns -= r->user_ns;
	st->system_cpu_ns -= r->system_ns;
	if (data_ns)
		st->mean_queue_depth = (double)latency_sum_ns / (double)data_ns;
}

void brim__run_stats(const struct brim_run *r, struct brim_run_stats *st)
{
	const struct brim__batch_stats *bs = brim__batch_stats(r->batch);
	size_t room = st->struct_bytes;
	struct brim_run_stats all = { .struct_bytes = room };

	all.engine = brim__batch_engine(r->batch);
	all.phase = r->ops->phase;
	if (r->plan)
		all.phase = r->phase < r->phase_count
				    ? r->plan->phases[r->phase]
				    : "done";
	stats_io(&all, bs);
	stats_progress(r, &all);
	stats_time(r, &all, bs->latency_sum_ns);
	all.mismatches = stats_mismatches(r);
	memcpy(st, &all, BRIM__MIN(room, sizeof(all)));
}
