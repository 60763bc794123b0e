/* SPDX-License-Identifier: MIT */
/*
 * workload_run.c: the kind of run that does a workload's I/O. Of two writes to
 * the same block the second waits for the first, so that what stays follows
 * from the order alone; others overtake it. Called through brim_run_step.
 * Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "workload.h"

#define DEFAULT_BINS 64u
#define BINS_MAX (1u << 20)
#define PPM 1000000u
/* Writes that wait for others; when so many do, no further ones begin. */
#define WAITING_MAX 64u
/* Counters of what is in flight, by hashes of regions. */
#define REGIONS_LOG2 12

/* What a slot has in flight. */
struct flight {
	uint64_t off_bytes, end_bytes; /* of writes; else 0 and 0 */
	uint64_t index;                /* UINT64_MAX: nothing */
	bool is_read;
};

struct workload_run {
	const struct brim_workload *w; /* held */
	struct brim_workload_cursor cursor;
	struct brim_workload_op waiting[WAITING_MAX]; /* in their order */
	uint32_t waiting_count;
	bool has_room;        /* something finished since they were looked at */
	uint32_t region_log2; /* no I/O is larger than a region */
	uint16_t busy[1u << REGIONS_LOG2];
	struct flight *flights; /* by slot */
	uint64_t limit_ns;
	uint64_t last_off_bytes, waits;
	/* Since the last call of brim_workload_stats. */
	uint64_t since_ns, bytes, ios;
	struct brim__hist reads, writes;
	uint64_t bin_bytes;
	uint32_t bin_count;
	struct brim_workload_bin *bins;
};

/* ------------------------------------------------------------------ the I/O */

static uint16_t *busy_at(struct workload_run *x, uint64_t off_bytes)
{
	uint64_t h = (off_bytes >> x->region_log2) * BRIM__GOLDEN;

	return &x->busy[h >> (64 - REGIONS_LOG2)];
}

/* A write begins or has finished: in the regions of its first and last byte. */
static void mark(struct workload_run *x, const struct flight *f, int by)
{
	uint16_t *first = busy_at(x, f->off_bytes);
	uint16_t *last = busy_at(x, f->end_bytes - 1);

	*first = (uint16_t)(*first + by);
	*last = (uint16_t)(*last + by);
}

static bool is_in_flight(struct brim_run *r, const struct brim_workload_op *op)
{
	struct workload_run *x = r->own;
	uint64_t end = op->off_bytes + op->len_bytes;
	uint32_t k;

	if (!*busy_at(x, op->off_bytes) && !*busy_at(x, end - 1))
		return false;
	for (k = 0; k < r->depth; k++)
		if (x->flights[k].off_bytes < end &&
		    op->off_bytes < x->flights[k].end_bytes)
			return true;
	return false;
}

/* Whether one of the first `count` that wait is about the same block. */
static bool is_awaited(const struct workload_run *x,
		       const struct brim_workload_op *op, uint32_t count)
{
	uint32_t k;

	for (k = 0; k < count; k++)
		if (x->waiting[k].off_bytes < op->off_bytes + op->len_bytes &&
		    op->off_bytes <
			    x->waiting[k].off_bytes + x->waiting[k].len_bytes)
			return true;
	return false;
}

static void put_blocks(const struct workload_run *x,
		       const struct brim_workload_op *op, uint8_t *buf)
{
	uint32_t block = x->w->o.block_bytes;
	uint64_t at;

	for (at = 0; at < op->len_bytes; at += block)
		brim_workload_block(x->w, op->off_bytes + at, op->index,
				    buf + at);
}

static bool is_late(const struct brim_run *r, const struct workload_run *x)
{
	return x->limit_ns &&
	       brim__batch_stats(r->batch)->now_ns >= r->begun_ns + x->limit_ns;
}

/* The first that waits and no longer has to. */
static bool take_waiting(struct brim_run *r, struct brim_workload_op *op)
{
	struct workload_run *x = r->own;
	uint32_t k;

	for (k = 0; x->has_room && k < x->waiting_count; k++) {
		*op = x->waiting[k];
		if (is_in_flight(r, op) || is_awaited(x, op, k))
			continue;
		x->waiting_count--;
		memmove(&x->waiting[k], &x->waiting[k + 1],
			(x->waiting_count - k) * sizeof(*x->waiting));
		return true;
	}
	x->has_room = false;
	return false;
}

/* The next that may begin; those on the way that must wait are put by. */
static bool take_next(struct brim_run *r, struct brim_workload_op *op)
{
	struct workload_run *x = r->own;

	if (take_waiting(r, op))
		return true;
	while (x->waiting_count < WAITING_MAX && !is_late(r, x) &&
	       brim_workload_next(x->w, &x->cursor, op)) {
		if (op->is_read || x->w->o.may_overlap ||
		    (!is_in_flight(r, op) &&
		     !is_awaited(x, op, x->waiting_count)))
			return true;
		x->waiting[x->waiting_count++] = *op;
		x->waits++;
	}
	r->is_blocked = x->waiting_count > 0;
	return false;
}

static int workload_next(struct brim_run *r, struct brim__io *io)
{
	struct workload_run *x = r->own;
	struct flight *f = &x->flights[io->slot];
	struct brim_workload_op op;

	if (!take_next(r, &op))
		return 0;
	x->last_off_bytes = op.off_bytes;
	f->index = op.index;
	f->is_read = op.is_read;
	if (!op.is_read) {
		f->off_bytes = op.off_bytes;
		f->end_bytes = op.off_bytes + op.len_bytes;
		mark(x, f, 1);
		if (brim__batch_moves_data(r->batch))
			put_blocks(x, &op, io->buf);
	}
	io->op = op.is_read ? BRIM__READ : BRIM__WRITE;
	io->off_bytes = op.off_bytes;
	io->len_bytes = op.len_bytes;
	return 1;
}

static void workload_done(struct brim_run *r, struct brim__io *io)
{
	struct workload_run *x = r->own;
	struct flight *f = &x->flights[io->slot];
	uint64_t bin = (io->off_bytes - x->w->o.off_bytes) / x->bin_bytes;
	struct brim_workload_bin *b = &x->bins[bin];

	brim__hist_add(f->is_read ? &x->reads : &x->writes, io->latency_ns);
	b->reads += f->is_read;
	b->writes += !f->is_read;
	b->bytes += io->len_bytes;
	b->latency_ns += io->latency_ns;
	x->bytes += io->len_bytes;
	x->ios++;
	r->groups_done++;
	if (!f->is_read)
		mark(x, f, -1);
	x->has_room = true;
	*f = (struct flight){ .index = UINT64_MAX };
}

static void workload_close(struct brim_run *r)
{
	struct workload_run *x = r->own;

	if (!x)
		return;
	brim_workload_free((struct brim_workload *)(uintptr_t)x->w);
	free(x->flights);
	free(x->bins);
	free(x);
}

static const struct brim__run_ops workload_ops = {
	.next = workload_next,
	.done = workload_done,
	.close = workload_close,
	.flushes = true,
	.phase = "workload",
};

/* ----------------------------------------------------------------- opening */

int brim__workload_fits(const struct brim_workload *w,
			const struct brim_device *d, uint32_t max_io_bytes,
			struct brim_err *e)
{
	const struct brim_device_info *info = &d->info;
	uint64_t io_bytes = w->io_blocks * w->o.block_bytes;

	if (w->o.off_bytes + w->o.size_bytes > info->size_bytes)
		return brim__errf(
			e, -ERANGE, "workload",
			"the range ends at %llu, past the %llu bytes of %s",
			(unsigned long long)(w->o.off_bytes + w->o.size_bytes),
			(unsigned long long)info->size_bytes, info->path);
	if (info->align_bytes > 1 &&
	    (w->o.block_bytes | w->o.off_bytes) % info->align_bytes)
		return brim__errf(e, -EINVAL, "workload",
				  "%s needs multiples of %u bytes as "
				  "block_bytes and off_bytes",
				  info->path, info->align_bytes);
	if (io_bytes > max_io_bytes)
		return brim__errf(e, -EINVAL, "workload",
				  "I/Os of %llu bytes are more than "
				  "max_io_bytes, %u",
				  (unsigned long long)io_bytes, max_io_bytes);
	return 0;
}

static int run_own(struct brim_run *r, const struct brim_workload *w,
		   const struct brim_workload_run_options *o,
		   struct brim_err *e)
{
	struct workload_run *x = calloc(1, sizeof(*x));
	uint64_t blocks = w->blocks;
	struct brim_workload_op op;
	uint32_t k;

	if (!x)
		return brim__err(e, -ENOMEM, "workload", "run");
	r->own = x;
	x->w = brim__workload_hold(w);
	x->limit_ns = o->limit_ns;
	while (UINT64_C(1) << x->region_log2 < w->io_blocks * w->o.block_bytes)
		x->region_log2++;
	x->bin_bytes = (blocks - 1) / o->bins + 1;
	x->bin_count = (uint32_t)((blocks - 1) / x->bin_bytes + 1);
	x->bin_bytes *= w->o.block_bytes;
	x->flights = calloc(r->depth, sizeof(*x->flights));
	x->bins = calloc(x->bin_count, sizeof(*x->bins));
	if (!x->flights || !x->bins)
		return brim__err(e, -ENOMEM, "workload", "run");
	for (k = 0; k < r->depth; k++)
		x->flights[k].index = UINT64_MAX;
	for (k = 0; k < x->bin_count; k++)
		x->bins[k].off_bytes = w->o.off_bytes + k * x->bin_bytes;
	brim_workload_begin(w, &x->cursor);
	while (x->cursor.index < o->first &&
	       brim_workload_next(w, &x->cursor, &op))
		;
	return 0;
}

/* What is foreseen, as far as it is known beforehand. */
static void foresee(struct brim_run *r, const struct brim_workload *w)
{
	const struct workload_run *x = r->own;

	if (w->end_bytes < UINT64_MAX && w->end_bytes > x->cursor.bytes)
		r->bytes_total = w->end_bytes - x->cursor.bytes;
	if (w->o.operations > x->cursor.index)
		r->ios_total = w->o.operations - x->cursor.index;
	r->groups_total = r->ios_total;
}

int brim_workload_open(struct brim_run **out, const struct brim_workload *w,
		       struct brim_device *d,
		       const struct brim_workload_run_options *wo,
		       const struct brim_run_options *o, struct brim_err *e)
{
	struct brim_workload_run_options own;
	struct brim_run_options opts = { 0 };
	int ret;

	*out = NULL;
	ret = brim__options_take(&own, sizeof(own), wo, "workload", e);
	if (!ret)
		ret = brim__run_options(&opts, o, d, e);
	if (!ret)
		ret = brim__workload_fits(w, d, opts.max_io_bytes, e);
	if (ret < 0)
		return ret;
	own.bins = own.bins ? own.bins : DEFAULT_BINS;
	if (own.bins > BINS_MAX)
		return brim__errf(e, -EINVAL, "workload", "bins %u: at most %u",
				  own.bins, BINS_MAX);
	if (w->o.read_ppm < PPM && !d->info.is_writable)
		return brim__errf(e, -EROFS, "workload",
				  "%s is open for reading only", d->info.path);
	ret = brim__run_create(out, &workload_ops, d,
			       (uint32_t)(w->io_blocks * w->o.block_bytes),
			       w->o.read_ppm > 0, &opts, e);
	if (ret < 0)
		return ret;
	ret = run_own(*out, w, &own, e);
	if (ret < 0) {
		brim_run_close(*out);
		*out = NULL;
		return ret;
	}
	(*out)->phase_count = 1;
	foresee(*out, w);
	return 0;
}

/* ------------------------------------------------------------------- stats */

/* All operations below it are finished. */
static uint64_t oldest(const struct brim_run *r, const struct workload_run *x)
{
	uint64_t least = x->cursor.index;
	uint32_t k;

	for (k = 0; k < x->waiting_count; k++)
		least = BRIM__MIN(least, x->waiting[k].index);
	for (k = 0; k < r->depth; k++)
		least = BRIM__MIN(least, x->flights[k].index);
	return least;
}

static void take_latencies(struct workload_run *x,
			   struct brim_workload_stats *st)
{
	st->read_p50_ns = brim__hist_quantile(&x->reads, 500000);
	st->read_p99_ns = brim__hist_quantile(&x->reads, 990000);
	st->read_max_ns = x->reads.max_ns;
	st->write_p50_ns = brim__hist_quantile(&x->writes, 500000);
	st->write_p99_ns = brim__hist_quantile(&x->writes, 990000);
	st->write_max_ns = x->writes.max_ns;
	x->reads = x->writes = (struct brim__hist){ 0 };
}

int brim_workload_stats(struct brim_run *r, struct brim_workload_stats *out)
{
	struct workload_run *x = r->own;
	size_t room = out->struct_bytes;
	struct brim_workload_stats st = { .struct_bytes = room };
	uint64_t now_ns = r->is_finished ? r->end_ns : brim__now_ns();

	if (r->ops != &workload_ops)
		return -ENOENT;
	st.begun = x->cursor.index;
	st.done = oldest(r, x);
	st.off_bytes = x->last_off_bytes;
	st.waits = x->waits;
	st.bytes = x->bytes;
	st.ios = x->ios;
	if (r->is_begun)
		st.interval_ns =
			now_ns - (x->since_ns ? x->since_ns : r->begun_ns);
	take_latencies(x, &st);
	st.bins = x->bins;
	st.bin_count = x->bin_count;
	x->bytes = x->ios = 0;
	x->since_ns = r->is_begun ? now_ns : 0;
	memcpy(out, &st, BRIM__MIN(room, sizeof(st)));
	return 0;
}
