/* SPDX-License-Identifier: MIT */
/*
 * hist.c: the latency histogram of hist.h. Called by the batch for every
 * finished I/O, so adding is a shift and an increment. Nanoseconds.
 */
#include "hist.h"

/* Values below 2^SUB_LOG2 have a bucket each; above, 2^SUB_LOG2 per octave. */
#define SUB (1u << BRIM__HIST_SUB_LOG2)

static uint32_t bucket_of(uint64_t ns)
{
	uint32_t octave, index;

	if (ns < SUB)
		return (uint32_t)ns;
	octave = 63u - (uint32_t)__builtin_clzll(ns) - BRIM__HIST_SUB_LOG2;
	index = (octave + 1) * SUB + ((uint32_t)(ns >> octave) & (SUB - 1));
	return index < BRIM__HIST_BUCKETS ? index : BRIM__HIST_BUCKETS - 1;
}

/* The largest value that falls into a bucket. */
static uint64_t bucket_top(uint32_t index)
{
	uint32_t octave;

	if (index < SUB)
		return index;
	octave = index / SUB - 1;
	return ((SUB + (uint64_t)(index % SUB) + 1) << octave) - 1;
}

void brim__hist_add(struct brim__hist *h, uint64_t ns)
{
	h->count++;
	h->buckets[bucket_of(ns)]++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

uint64_t brim__hist_quantile(const struct brim__hist *h, uint32_t ppm)
{
	uint64_t rank, seen = 0;
	uint32_t k;

	if (!h->count)
		return 0;
	/* Split so that the product cannot overflow; rounded up. */
	rank = h->count / 1000000 * ppm +
	       (h->count % 1000000 * ppm + 999999) / 1000000;
	for (k = 0; k < BRIM__HIST_BUCKETS - 1; k++) {
		seen += h->buckets[k];
		if (seen >= rank && seen)
			break;
	}
	if (k == BRIM__HIST_BUCKETS - 1 || bucket_top(k) > h->max_ns)
		return h->max_ns;
	return bucket_top(k);
}
