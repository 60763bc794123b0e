/* SPDX-License-Identifier: MIT */
/*
 * dist.h: a distribution made ready to draw from: what drawing needs is worked
 * out once. Filesets hold one. Values are what the user says, mostly bytes.
 */
#ifndef BRIM_DIST_H
#define BRIM_DIST_H

#include <stdint.h>

#include "brim.h"

struct brim__dist {
	struct brim_dist d;         /* bins points to our own */
	double lo, hi;              /* of the quantile's argument: see dist.c */
	struct brim_dist_bin *bins; /* HISTOGRAM; owned */
	uint64_t *upto; /* bits below it fall into bin k or before */
};

/* Copies *d, which brim_dist_check has accepted. -ENOMEM. */
int brim__dist_prepare(struct brim__dist *out, const struct brim_dist *d,
		       struct brim_err *e);
void brim__dist_release(struct brim__dist *p);
/* As brim_dist_value. */
uint64_t brim__dist_draw(const struct brim__dist *p, uint64_t bits);

/* A part of 2^64 (0 .. 1), rounded down; UINT64_MAX for all of it. */
static inline uint64_t brim__part_of_bits(double part)
{
	return part >= 1 ? UINT64_MAX : (uint64_t)(part * 0x1p64);
}

/* Base-2 logarithm (x > 0, finite) and power, normal quantile (0 < u < 1). */
double brim__log2(double x);
double brim__exp2(double x);
double brim__normal_quantile(double u);

#endif /* BRIM_DIST_H */
