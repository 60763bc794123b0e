/* SPDX-License-Identifier: MIT */
/*
 * scan_run.c: the kind of run that reads instances for a scan, several with one
 * I/O where they are dense, and hands them to the checks and accumulators.
 * Called through brim_run_step. Offsets are bytes on the device.
 */
#include <errno.h>

#include "scan.h"

/*
 * Instances are read together where the bytes between them cost less than
 * another I/O: up to as many as the instance has, or a page.
 */
#define GAP_MIN 4096u

/* One more holder, who lets go with brim_scan_free. */
static const struct brim_scan *scan_hold(const struct brim_scan *s)
{
	/* How many hold it is no part of what is expected. */
	uint32_t *holders = (uint32_t *)(uintptr_t)&s->holders;

	__atomic_add_fetch(holders, 1, __ATOMIC_RELAXED);
	return s;
}

static void scan_check(void *ctx, struct brim__io *io)
{
	struct brim_run *r = ctx;
	const struct brim__desc *d = &r->slots[io->slot].desc;
	uint64_t at = d->off_bytes;
	uint32_t k;

	for (k = 0; k < d->instances; k++, at += r->stride_bytes)
		brim__scan_check(r, d->instance + k,
				 io->buf + (at - io->off_bytes), at);
}

static int scan_next(struct brim_run *r, struct brim__io *io)
{
	struct brim__desc *d = &r->slots[io->slot].desc;
	uint64_t align = BRIM__MAX(1u, r->dev->info.align_bytes);
	uint64_t span = r->scan->to_bytes - r->scan->from_bytes;
	uint64_t to;

	if (r->instance >= r->end)
		return 0;
	r->is_blocked = brim__scan_window_is_full(r);
	if (r->is_blocked)
		return 0;
	d->instance = r->instance;
	d->instances =
		(uint32_t)BRIM__MIN(r->end - r->instance, r->instances_per_io);
	r->instance += d->instances;
	d->off_bytes = r->off_bytes + r->stride_bytes * d->instance +
		       r->scan->from_bytes;
	to = d->off_bytes + r->stride_bytes * (d->instances - 1) + span;
	io->op = BRIM__READ;
	io->off_bytes = brim__align_down(d->off_bytes, align);
	io->len_bytes = brim__align_down(to + align - 1, align) - io->off_bytes;
	return 1;
}

/* In the caller's thread, so that what is gathered needs no lock. */
static void scan_done(struct brim_run *r, struct brim__io *io)
{
	const struct brim__desc *d = &r->slots[io->slot].desc;
	uint64_t at = d->off_bytes;
	uint32_t k;

	r->groups_done += d->instances;
	if (!r->scan->source_count && !r->gathered.window)
		return;
	for (k = 0; k < d->instances; k++, at += r->stride_bytes) {
		const uint8_t *raw = io->buf + (at - io->off_bytes);

		brim__scan_totals_add(r, d->instance + k, raw, at);
		if (r->gathered.window)
			brim__scan_window_put(r, d->instance + k, raw);
	}
	if (r->gathered.window)
		brim__scan_window_done(r, d->instance);
}

static void scan_close(struct brim_run *r)
{
	brim__scan_totals_free(r);
	brim__scan_window_free(r);
}

static const struct brim__run_ops scan_ops = {
	.next = scan_next,
	.done = scan_done,
	.check = scan_check,
	.close = scan_close,
	.keeps_kinds = true,
	.phase = "scan",
};

/* Whether the last instance ends on the device; all sums are checked. */
static int scan_fits(const struct brim_scan *s, const struct brim_device *d,
		     const struct brim_scan_range *g, struct brim_err *e)
{
	uint64_t last = 0, end = 0;

	if (s->from_bytes == s->to_bytes)
		return brim__errf(e, -EINVAL, "scan",
				  "nothing is expected or gathered");
	if (!g->count || (g->count > 1 && !g->stride_bytes))
		return brim__errf(e, -EINVAL, "scan",
				  "count and stride_bytes are at least 1");
	if (brim_add(g->first, g->count - 1, &last) < 0 ||
	    brim_mul(g->stride_bytes, last, &end) < 0 ||
	    brim_add(end, g->off_bytes, &end) < 0 ||
	    brim_add(end, s->to_bytes, &end) < 0 || end > d->info.size_bytes)
		return brim__errf(
			e, -ERANGE, "scan",
			"instance %llu ends past the %llu bytes of %s",
			(unsigned long long)(g->first + g->count - 1),
			(unsigned long long)d->info.size_bytes, d->info.path);
	return 0;
}

/* How many instances one read of at most max_io_bytes takes. */
static uint32_t scan_per_io(const struct brim_scan *s,
			    const struct brim_scan_range *g,
			    uint32_t max_io_bytes)
{
	uint64_t span = s->to_bytes - s->from_bytes, n;

	if (g->count == 1 || span >= max_io_bytes ||
	    g->stride_bytes > span + BRIM__MAX(span, GAP_MIN))
		return 1;
	n = (max_io_bytes - span) / g->stride_bytes + 1;
	return (uint32_t)BRIM__MIN(n, BRIM__MIN(g->count, UINT32_MAX));
}

/* What a run is about, and how much that will be. */
static void scan_begin(struct brim_run *r, const struct brim_scan *s,
		       const struct brim_scan_range *g, uint32_t per_io)
{
	uint64_t span = s->to_bytes - s->from_bytes;

	r->scan = scan_hold(s);
	r->phase_count = 1;
	r->off_bytes = g->off_bytes;
	r->stride_bytes = g->stride_bytes;
	r->instance = g->first;
	r->end = g->first + g->count;
	r->instances_per_io = per_io;
	r->groups_total = g->count;
	r->ios_total = (g->count - 1) / per_io + 1;
	r->bytes_total = per_io > 1 ? g->stride_bytes * (g->count - 1) + span
				    : span * g->count;
}

int brim_scan_open(struct brim_run **out, const struct brim_scan *s,
		   struct brim_device *d, const struct brim_scan_range *g,
		   const struct brim_run_options *o, struct brim_err *e)
{
	uint64_t align = BRIM__MAX(1u, d->info.align_bytes);
	uint64_t span = s->to_bytes - s->from_bytes, slot_bytes;
	struct brim_run_options opts;
	struct brim_run *r;
	uint32_t per_io;
	int ret;

	*out = NULL;
	ret = brim__run_options(&opts, o, d, e);
	if (ret < 0)
		return ret;
	ret = scan_fits(s, d, g, e);
	if (ret < 0)
		return ret;
	per_io = scan_per_io(s, g, opts.max_io_bytes);
	/* Room for reading from and to the device's boundaries. */
	slot_bytes = g->stride_bytes * (per_io - 1) + span + 2 * align;
	ret = brim__run_create(
		&r, &scan_ops, d, (uint32_t)slot_bytes,
		brim__device_is_cold(d,
				     g->off_bytes + s->from_bytes +
					     g->stride_bytes * g->first,
				     g->stride_bytes, g->count),
		&opts, e);
	if (ret < 0)
		return ret;
	scan_begin(r, s, g, per_io);
	ret = brim__scan_totals_create(r, e);
	if (ret < 0) {
		brim_run_close(r);
		return ret;
	}
	*out = r;
	return 0;
}
