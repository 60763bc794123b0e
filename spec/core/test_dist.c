/* SPDX-License-Identifier: MIT */
/*
 * test_dist.c: distributions against their closed forms (quantiles, means), the
 * elementary functions below them, refusals, and golden values: what is drawn
 * must never change, as fills are replayed from seeds.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dist.h"
#include "tap.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define D(k, ...)                                                              \
	{                                                                      \
		.struct_bytes = sizeof(struct brim_dist),                      \
		.kind = BRIM_DIST_##k, __VA_ARGS__                             \
	}

static int is_near(double a, double b, double relative)
{
	return fabs(a - b) <= relative * fabs(b) + 1e-300;
}

/* --------------------------------------------------------------- functions */

/* Exact values, from a system with correctly rounded functions. */
static void test_math(void)
{
	static const double logs[][2] = {
		{ 1e-300, -996.5784284662087 },
		{ 0.3, -1.7369655941662063 },
		{ 1.5, 0.5849625007211562 },
		{ 3, 1.584962500721156 },
		{ 1e10, 33.219280948873624 },
		{ 1e300, 996.5784284662087 },
		{ 5e-324, -1074 },
	};
	static const double powers[][2] = {
		{ -700.3, 1.5441661804159214e-211 },
		{ -1.5, 0.3535533905932738 },
		{ -0.1, 0.9330329915368074 },
		{ 0, 1 },
		{ 1.0 / 3, 1.2599210498948732 },
		{ 10.7, 1663.4929077375696 },
		{ 500.25, 3.892739401093174e+150 },
	};
	static const double normal[][2] = {
		{ 1e-12, -7.034483825301132 }, { 1e-6, -4.753424308822899 },
		{ 0.001, -3.090232306167813 }, { 0.02425, -1.9729610513118845 },
		{ 0.1, -1.2815515655446008 },  { 0.975, 1.9599639845400536 },
		{ 0.999, 3.090232306167813 },
	};
	size_t k;

	for (k = 0; k < COUNT(logs); k++)
		ok(is_near(brim__log2(logs[k][0]), logs[k][1], 1e-14),
		   "base-2 logarithm", "log2(%g) = %.17g", logs[k][0],
		   brim__log2(logs[k][0]));
	ok(brim__log2(1) == 0 && brim__log2(0x1p40) == 40,
	   "the logarithm of a power of two is whole", "%.17g",
	   brim__log2(0x1p40));
	for (k = 0; k < COUNT(powers); k++)
		ok(is_near(brim__exp2(powers[k][0]), powers[k][1], 1e-14),
		   "power of two", "exp2(%g) = %.17g", powers[k][0],
		   brim__exp2(powers[k][0]));
	for (k = 0; k < COUNT(normal); k++)
		ok(is_near(brim__normal_quantile(normal[k][0]), normal[k][1],
			   2e-9),
		   "normal quantile", "of %g is %.17g", normal[k][0],
		   brim__normal_quantile(normal[k][0]));
	ok(fabs(brim__normal_quantile(0.5)) < 1e-12, "the median is 0", "%g",
	   brim__normal_quantile(0.5));
}

/* ------------------------------------------------------------ closed forms */

/* Quantiles 0.01, 0.1, 0.5, 0.9, 0.99 and the mean, worked out by hand. */
static const struct {
	const char *name;
	struct brim_dist d;
	double quantile[5], mean;
} FORMS[] = {
	{ "uniform",
	  D(UNIFORM, .min = 1000, .max = 9000),
	  { 1080.01, 1800.1, 5000.5, 8200.9, 8920.99 },
	  5000 },
	{ "log-uniform 4 KiB to 4 MiB",
	  D(LOG_UNIFORM, .min = 4096, .max = 4194304),
	  { 4389.98, 8192, 131072, 2097152, 3913420 },
	  604519 },
	{ "log-uniform 1 to 2^60",
	  D(LOG_UNIFORM, .min = 1, .max = UINT64_C(1) << 60),
	  { 1.51572, 64, 1.07374e9, 1.80144e16, 7.60645e17 },
	  2.77219e16 },
	{ "log-normal",
	  D(LOG_NORMAL, .min = 0, .max = UINT64_C(1) << 40, .a = 16384, .b = 2),
	  { 156.236, 1262.64, 16384, 212599, 1718150 },
	  121062 },
	{ "log-normal cut to a range",
	  D(LOG_NORMAL, .min = 8192, .max = 65536, .a = 16384, .b = 1),
	  { 8368.33, 10018.8, 20082.3, 46162.6, 62789.9 },
	  24286.6 },
	{ "Pareto 1.2",
	  D(PARETO, .min = 4096, .max = 1 << 30, .a = 1.2),
	  { 4130.45, 4471.89, 7298.24, 27905.7, 190115 },
	  22548.7 },
	{ "Pareto 3",
	  D(PARETO, .min = 4096, .max = 1 << 20, .a = 3),
	  { 4109.75, 4242.41, 5160.64, 8824.56, 19011.9 },
	  6143.41 },
	{ "Pareto 0.5",
	  D(PARETO, .min = 1, .max = UINT64_C(1) << 50, .a = 0.5),
	  { 1.0203, 1.23457, 4, 99.9999, 9999.94 },
	  3.35544e7 },
	{ "fixed", D(FIXED, .min = 77), { 77, 77, 77, 77, 77 }, 77 },
};

static void test_quantiles(void)
{
	static const double at[5] = { 0.01, 0.1, 0.5, 0.9, 0.99 };
	size_t k, q;

	for (k = 0; k < COUNT(FORMS); k++) {
		double mean = brim_dist_mean(&FORMS[k].d);

		for (q = 0; q < COUNT(at); q++) {
			uint64_t v = brim_dist_value(
				&FORMS[k].d, (uint64_t)(at[q] * 0x1p64));

			/* Values are whole: rounded down. */
			ok(fabs((double)v + 0.5 - FORMS[k].quantile[q]) <=
				   0.5 + 1e-4 * FORMS[k].quantile[q],
			   FORMS[k].name, "quantile %g is %" PRIu64 ", not %g",
			   at[q], v, FORMS[k].quantile[q]);
		}
		ok(is_near(mean, FORMS[k].mean, 0.01), FORMS[k].name,
		   "mean %g, not %g", mean, FORMS[k].mean);
	}
}

/* What is drawn is in range, and on average what it should be. */
static void test_draws(uint64_t seed)
{
	const unsigned int n = 1000000;
	struct brim__dist p;
	unsigned int j, outside;
	size_t k;

	for (k = 0; k < COUNT(FORMS); k++) {
		const struct brim_dist *d = &FORMS[k].d;
		uint64_t state = seed, first = 0, v;
		double sum = 0;

		brim__dist_prepare(&p, d, NULL);
		for (j = outside = 0; j < n; j++) {
			v = brim__dist_draw(&p, tap_random(&state));
			outside += v < d->min ||
				   (d->kind != BRIM_DIST_FIXED && v > d->max);
			sum += (double)v;
			if (!j)
				first = v;
		}
		ok(!outside, FORMS[k].name, "%u of %u outside", outside, n);
		/* The tail of Pareto 1.2 and 0.5 makes means unsteady. */
		if (d->kind != BRIM_DIST_PARETO || d->a > 2)
			ok(is_near(sum / n, FORMS[k].mean, 0.02), FORMS[k].name,
			   "mean of draws %g, not %g", sum / n, FORMS[k].mean);
		state = seed;
		v = brim_dist_value(d, tap_random(&state));
		ok(v == first, "unprepared, the same is drawn",
		   "%" PRIu64 ", not %" PRIu64, v, first);
	}
	for (k = 0; k + 1 < COUNT(FORMS); k++)
		ok(brim_dist_value(&FORMS[k].d, 0) >= FORMS[k].d.min &&
			   brim_dist_value(&FORMS[k].d, UINT64_MAX) <=
				   FORMS[k].d.max,
		   FORMS[k].name, "the ends are outside of the range");
}

/* --------------------------------------------------------------- histograms */

static const struct brim_dist_bin BINS[] = {
	{ 0, 0, 1 },       { 1024, 2047, 2 },
	{ 5000, 5000, 4 }, { 1 << 20, 2097151, 1 },
	{ 0, 9, 2 },       { 7777, 7777, 0 },
};

static void test_histogram(uint64_t seed)
{
	struct brim_dist d =
		D(HISTOGRAM, .bins = BINS, .bin_count = COUNT(BINS));
	unsigned int seen[6] = { 0 }, k, n = 200000, none = 0;
	static const unsigned int share[6] = { 0, 2, 4, 1, 0, 0 };
	uint64_t state = seed;
	struct brim__dist p;
	double mean;

	ok(!brim__dist_prepare(&p, &d, NULL), "a histogram", "not prepared");
	for (k = 0; k < n; k++) {
		uint64_t v = brim__dist_draw(&p, tap_random(&state));

		if (v <= 9)
			seen[0]++;
		else if (v >= 1024 && v <= 2047)
			seen[1]++;
		else if (v == 5000)
			seen[2]++;
		else if (v >= 1 << 20 && v <= 2097151)
			seen[3]++;
		else
			none++;
	}
	brim__dist_release(&p);
	ok(!none, "histograms draw from their bins", "%u others", none);
	ok(is_near(seen[0], n * 0.3, 0.02), "bins from 0", "%u", seen[0]);
	for (k = 1; k < 4; k++)
		ok(is_near(seen[k], n * share[k] / 10.0, 0.03), "a bin's share",
		   "bin %u: %u of %u", k, seen[k], n);
	/* Bins: 0; 1476.8; 5000; 1512775; 0..9 log-uniform over 1..11: 2.98. */
	mean = brim_dist_mean(&d);
	ok(is_near(mean, (2 * 1476.82 + 4 * 5000 + 1512775 + 2 * 2.84) / 10,
		   0.01),
	   "mean of a histogram", "%g", mean);
}

/* ---------------------------------------------------------------- refusals */

static void test_refused(void)
{
	static const struct brim_dist_bin upside[] = { { 2, 1, 1 } };
	static const struct brim_dist_bin nothing[] = { { 1, 2, 0 } };
	static const struct brim_dist_bin negative[] = { { 1, 2, -1 } };
	static const struct {
		struct brim_dist d;
		const char *word;
	} CASES[] = {
		{ D(UNIFORM, .min = 2, .max = 1), "above the largest" },
		{ D(LOG_UNIFORM, .min = 0, .max = 1), "above 0" },
		{ D(UNIFORM, .max = UINT64_C(1) << 63), "2^63-1" },
		{ D(LOG_NORMAL, .max = 9, .a = 10, .b = 1), "median" },
		{ D(LOG_NORMAL, .max = 9, .a = 5, .b = -1), "sigma" },
		{ D(LOG_NORMAL, .max = 9, .a = NAN, .b = 1), "median" },
		{ D(PARETO, .min = 0, .max = 9, .a = 1), "above 0" },
		{ D(PARETO, .min = 1, .max = 9, .a = 0), "shape" },
		{ D(HISTOGRAM, .bins = NULL, .bin_count = 0), "one bin" },
		{ D(HISTOGRAM, .bins = upside, .bin_count = 1), "bin 1" },
		{ D(HISTOGRAM, .bins = nothing, .bin_count = 1), "all 0" },
		{ D(HISTOGRAM, .bins = negative, .bin_count = 1), "weight" },
		{ { .struct_bytes = sizeof(struct brim_dist) }, "kind" },
		{ { .kind = BRIM_DIST_FIXED }, "struct_bytes" },
	};
	struct brim_err e;
	size_t k;

	for (k = 0; k < COUNT(CASES); k++) {
		memset(&e, 0, sizeof(e));
		ok(brim_dist_check(&CASES[k].d, &e) == -EINVAL &&
			   strstr(e.msg, CASES[k].word),
		   "refused with its reason", "case %zu: %s", k, e.msg);
	}
}

/* ------------------------------------------------------------ golden values */

static void test_golden(void)
{
	static const uint64_t GOLDEN[COUNT(FORMS)][3] = {
		{ 7863, 4773, 6339 },
		{ 1565880, 107671, 418088 },
		{ UINT64_C(3121700126622070), 329943335,
		  UINT64_C(1130969618444) },
		{ 139457, 14209, 38919 },
		{ 41157, 19128, 27152 },
		{ 20816, 6970, 10249 },
		{ 7848, 5066, 5911 },
		{ 49, 3, 9 },
		{ 77, 77, 77 },
	};
	size_t k, j;

	for (k = 0; k < COUNT(FORMS); k++) {
		uint64_t state = 2026;

		for (j = 0; j < 3; j++) {
			uint64_t v = brim_dist_value(&FORMS[k].d,
						     tap_random(&state));

			ok(v == GOLDEN[k][j], "golden values",
			   "%s: value %zu is %" PRIu64, FORMS[k].name, j, v);
		}
	}
}

int main(void)
{
	uint64_t seed = tap_seed(4);

	test_math();
	test_quantiles();
	test_draws(seed);
	test_histogram(seed);
	test_refused();
	test_golden();
	return tap_end();
}
