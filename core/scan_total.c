/* SPDX-License-Identifier: MIT */
/*
 * scan_total.c: the accumulators of a scan's run: sums, extremes, counts and
 * histograms. scan_run.c adds each instance, in one thread; the run's owner
 * reads them between steps. Values are unsigned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

#define LOG2_BINS 65u

static uint32_t bins_of(const struct brim__scan_accumulator *a)
{
	if (a->kind != BRIM_SCAN_HISTOGRAM)
		return 0;
	return a->bins ? a->bins : LOG2_BINS;
}

int brim__scan_totals_create(struct brim_run *r, struct brim_err *e)
{
	const struct brim_scan *s = r->scan;
	struct brim__scan_total *v;
	uint32_t bins;
	size_t k;

	v = calloc(s->accumulator_count + 1, sizeof(*v));
	r->gathered.totals = v;
	if (!v)
		return brim__err(e, -ENOMEM, "scan", "accumulators");
	for (k = 0; k < s->accumulator_count; k++) {
		bins = bins_of(&s->accumulators[k]);
		if (bins)
			v[k].bins = calloc(bins, sizeof(*v[k].bins));
		if (bins && !v[k].bins)
			return brim__err(e, -ENOMEM, "scan",
					 s->accumulators[k].name);
	}
	return 0;
}

void brim__scan_totals_free(struct brim_run *r)
{
	struct brim__scan_total *v = r->gathered.totals;
	size_t k;

	for (k = 0; v && k < r->scan->accumulator_count; k++)
		free(v[k].bins);
	free(v);
}

/* ---------------------------------------------------------------- adding */

static void add_extreme(struct brim__scan_total *t, bool is_first, bool is_more,
			uint64_t v, uint64_t i, uint64_t off_bytes)
{
	/* Completions come in any order; of equals the lowest is kept. */
	if (!is_first && !is_more &&
	    (v != t->value || off_bytes > t->off_bytes))
		return;
	t->value = v;
	t->group = i;
	t->off_bytes = off_bytes;
}

static void add_bin(struct brim__scan_total *t,
		    const struct brim__scan_accumulator *a, uint64_t v)
{
	uint64_t width = a->to - a->from;

	if (!a->bins)
		t->bins[v ? 64 - __builtin_clzll(v) : 0]++;
	else if (v < a->from)
		t->below++;
	else if (v >= a->to)
		t->above++;
	else if (width <= UINT64_MAX / a->bins)
		t->bins[(v - a->from) * a->bins / width]++;
	else
		t->bins[(unsigned __int128)(v - a->from) * a->bins / width]++;
}

static void add_value(struct brim__scan_total *t,
		      const struct brim__scan_accumulator *a, uint64_t mask,
		      uint64_t v, uint64_t i, uint64_t off_bytes)
{
	bool is_first = !t->seen++;

	switch (a->kind) {
	case BRIM_SCAN_SUM:
		t->sum_high +=
			__builtin_add_overflow(t->sum_low, v, &t->sum_low);
		break;
	case BRIM_SCAN_MIN:
		add_extreme(t, is_first, v < t->value, v, i, off_bytes);
		break;
	case BRIM_SCAN_MAX:
		add_extreme(t, is_first, v > t->value, v, i, off_bytes);
		break;
	case BRIM_SCAN_COUNT:
		t->count += brim__scan_passes(&a->test, mask, i, v, NULL, NULL);
		break;
	case BRIM_SCAN_HISTOGRAM:
		add_bin(t, a, v);
		break;
	}
}

void brim__scan_totals_add(struct brim_run *r, uint64_t i, const uint8_t *raw,
			   uint64_t off_bytes)
{
	const struct brim_scan *s = r->scan;
	size_t k;

	for (k = 0; k < s->source_count; k++) {
		const struct brim__scan_source *x = &s->sources[k];

		add_value(&r->gathered.totals[x->accumulator],
			  &s->accumulators[x->accumulator], x->at.mask,
			  brim__scan_load(&x->at, s, raw), i,
			  off_bytes + (x->at.off_bytes - s->from_bytes));
	}
}

/* --------------------------------------------------------------- looking */

int brim_scan_total(const struct brim_run *r, size_t k,
		    struct brim_scan_total *out)
{
	size_t room = out->struct_bytes;
	struct brim_scan_total all = { .struct_bytes = room };
	const struct brim__scan_accumulator *a;
	const struct brim__scan_total *t;

	if (!r->scan || k >= r->scan->accumulator_count)
		return -ENOENT;
	a = &r->scan->accumulators[k];
	t = &r->gathered.totals[k];
	all.kind = a->kind;
	all.name = a->name;
	all.seen = t->seen;
	all.count = t->count;
	all.sum_low = t->sum_low;
	all.sum_high = t->sum_high;
	all.value = t->value;
	all.group = t->group;
	all.off_bytes = t->off_bytes;
	all.bin_counts = t->bins;
	all.bins = bins_of(a);
	all.below = t->below;
	all.above = t->above;
	memcpy(out, &all, BRIM__MIN(room, sizeof(all)));
	return 0;
}

/* The least value of bin k of equal ones; of k == bins, one past the last. */
static uint64_t bin_first(const struct brim__scan_accumulator *a, uint64_t k)
{
	unsigned __int128 at = (unsigned __int128)(a->to - a->from) * k;

	return a->from + (uint64_t)((at + a->bins - 1) / a->bins);
}

int brim_scan_bin(const struct brim_run *r, size_t k, uint32_t bin,
		  uint64_t *first, uint64_t *last)
{
	const struct brim__scan_accumulator *a;

	if (!r->scan || k >= r->scan->accumulator_count)
		return -ENOENT;
	a = &r->scan->accumulators[k];
	if (bin >= bins_of(a))
		return -ENOENT;
	if (a->bins) {
		*first = bin_first(a, bin);
		*last = bin_first(a, bin + 1u) - 1;
	} else {
		*first = bin ? UINT64_C(1) << (bin - 1) : 0;
		*last = bin ? UINT64_MAX >> (64 - bin) : 0;
	}
	return 0;
}
