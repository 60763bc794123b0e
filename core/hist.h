/* SPDX-License-Identifier: MIT */
/*
 * hist.h: a histogram of latencies with bounded relative error: 32 linear
 * buckets to each power of two (3 % error), 0 ns to 2^42 ns. No allocation.
 */
#ifndef BRIM_HIST_H
#define BRIM_HIST_H

#include <stdint.h>

#define BRIM__HIST_SUB_LOG2 5
#define BRIM__HIST_BUCKETS (38u << BRIM__HIST_SUB_LOG2)

struct brim__hist {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[BRIM__HIST_BUCKETS];
};

void brim__hist_add(struct brim__hist *h, uint64_t ns);
/* The value below which `ppm` millionths of the samples lie; 0 if none. */
uint64_t brim__hist_quantile(const struct brim__hist *h, uint32_t ppm);

#endif /* BRIM_HIST_H */
