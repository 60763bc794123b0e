/* SPDX-License-Identifier: MIT */
/*
 * workload_zipf.c: drawing by Zipf's law, and permutations of any length, both
 * without a table and the same on every machine. Called by workload.c for each
 * operation.
 */
#include "workload.h"

/* ------------------------------------------------------------------- zipf */

/*
 * Rejection-inversion (Hoermann, Derflinger: Rejection-inversion to generate
 * variates from monotone discrete distributions, ACM TOMACS 6(3), 1996): exact
 * for any exponent, some 1.1 tries on average. Nearer to 1 than this, the
 * exponent counts as 1: powers would cancel out.
 */
#define THETA_NEAR 1e-9

static double power(double x, double y)
{
	return brim__exp2(y * brim__log2(x));
}

/* x^-theta, its integral from 1, and the inverse of that. */
static double weight(const struct brim__zipf *z, double x)
{
	return power(x, -z->theta);
}

static double integral(const struct brim__zipf *z, double x)
{
	double r = 1 - z->theta;

	if (r < THETA_NEAR && r > -THETA_NEAR)
		return brim__log2(x) * 0.6931471805599453;
	return (power(x, r) - 1) / r;
}

static double inverse(const struct brim__zipf *z, double y)
{
	double r = 1 - z->theta, t = y * r;

	if (r < THETA_NEAR && r > -THETA_NEAR)
		return brim__exp2(y * 1.4426950408889634);
	/* Rounding may reach past the end of the range. */
	return t <= -1 ? z->count : power(1 + t, 1 / r);
}

void brim__zipf_init(struct brim__zipf *z, double theta, uint64_t count)
{
	z->theta = theta;
	z->count = (double)count;
	z->h_first = integral(z, 1.5) - 1;
	z->h_last = integral(z, z->count + 0.5);
	z->sure = 2 - inverse(z, integral(z, 2.5) - weight(z, 2));
}

uint64_t brim__zipf_draw(const struct brim__zipf *z, uint64_t key)
{
	uint64_t try = 0;

	for (;;) {
		/* 53 bits: 0 <= u < 1, exactly */
		double u = (double)(brim__mix_in(key, try++) >> 11) * 0x1p-53;
		double y = z->h_last + u * (z->h_first - z->h_last);
		double x = inverse(z, y), k;

		k = (double)(uint64_t)(x + 0.5);
		k = k < 1 ? 1 : k > z->count ? z->count : k;
		if (k - x <= z->sure ||
		    y >= integral(z, k + 0.5) - weight(z, k))
			return (uint64_t)k - 1;
	}
}

/* ------------------------------------------------------------ permutations */

/* With 6, permutations of 5 are visibly uneven. */
#define ROUNDS 8u

/*
 * A Feistel network over the least even number of bits that hold `count`,
 * walked along its cycle until it is back below count (Black, Rogaway: Ciphers
 * with arbitrary finite domains, CT-RSA 2002): at most 4 steps on average.
 */
uint64_t brim__permute(uint64_t key, uint64_t count, uint64_t i)
{
	uint32_t half = 1, k;
	uint64_t mask;

	while (half < 32 && (count - 1) >> (2 * half))
		half++;
	mask = (UINT64_C(1) << half) - 1;
	do {
		uint64_t left = i >> half, right = i & mask;

		for (k = 0; k < ROUNDS; k++) {
			uint64_t f = brim__mix_in(key + k, right);
			uint64_t next = left ^ (f >> (64 - half));

			left = right;
			right = next;
		}
		i = left << half | right;
	} while (i >= count);
	return i;
}
