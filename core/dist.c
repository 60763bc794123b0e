/* SPDX-License-Identifier: MIT */
/*
 * dist.c: distributions: checking one, drawing a value for 64 random bits, its
 * expectation. Called by fileset.c for every file written as a whole, and by
 * users. Drawing is the quantile function at a point in (0, 1).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dist.h"
#include "internal.h"
#include "mix.h"

/* ---------------------------------------------------------------- checking */

static bool is_finite(double x)
{
	return x - x == 0;
}

static int bad(struct brim_err *e, const char *why)
{
	return brim__errf(e, -EINVAL, "dist", "%s", why);
}

static int check_bins(const struct brim_dist *d, struct brim_err *e)
{
	double sum = 0;
	size_t k;

	if (!d->bins || !d->bin_count)
		return bad(e, "a histogram has at least one bin");
	for (k = 0; k < d->bin_count; k++) {
		const struct brim_dist_bin *b = &d->bins[k];

		if (b->from > b->to || b->to > BRIM_MAX_BYTES)
			return brim__errf(e, -EINVAL, "dist",
					  "bin %zu is from %" PRIu64
					  " to %" PRIu64
					  ": from must not be above to, nor to "
					  "above 2^63-1",
					  k + 1, b->from, b->to);
		if (!is_finite(b->weight) || b->weight < 0)
			return brim__errf(e, -EINVAL, "dist",
					  "the weight of bin %zu is no number "
					  ">= 0",
					  k + 1);
		sum += b->weight;
	}
	if (!(sum > 0) || !is_finite(sum))
		return bad(e, "the weights of the bins are all 0, or too much");
	return 0;
}

static int check_range(const struct brim_dist *d, struct brim_err *e)
{
	if (d->max > BRIM_MAX_BYTES)
		return bad(e, "the largest value is at most 2^63-1");
	if (d->min <= d->max)
		return 0;
	return brim__errf(e, -EINVAL, "dist",
			  "the smallest value, %" PRIu64
			  ", is above the largest, %" PRIu64,
			  d->min, d->max);
}

static int check_kind(const struct brim_dist *d, struct brim_err *e)
{
	switch (d->kind) {
	case BRIM_DIST_FIXED:
	case BRIM_DIST_UNIFORM:
		return 0;
	case BRIM_DIST_LOG_UNIFORM:
		return d->min ? 0 : bad(e, "log-uniform begins above 0");
	case BRIM_DIST_LOG_NORMAL:
		if (!is_finite(d->a) || d->a < (double)d->min || !(d->a > 0) ||
		    d->a > (double)d->max)
			return bad(e, "the median of a log-normal is above 0 "
				      "and within its range");
		return is_finite(d->b) && d->b >= 0 && d->b <= 20
			       ? 0
			       : bad(e, "sigma of a log-normal is 0 to 20");
	case BRIM_DIST_PARETO:
		if (!d->min)
			return bad(e, "Pareto begins above 0");
		return is_finite(d->a) && d->a >= 0.01 && d->a <= 100
			       ? 0
			       : bad(e, "the shape of Pareto is 0.01 to 100");
	case BRIM_DIST_HISTOGRAM:
		break;
	}
	return check_bins(d, e);
}

int brim_dist_check(const struct brim_dist *d, struct brim_err *e)
{
	struct brim_dist own;
	int ret;

	if (!d)
		return bad(e, "no distribution");
	ret = brim__options_take(&own, sizeof(own), d, "dist", e);
	if (ret < 0)
		return ret;
	if (own.kind < BRIM_DIST_FIXED || own.kind > BRIM_DIST_HISTOGRAM)
		return bad(e, "no such kind of distribution");
	if (own.kind == BRIM_DIST_FIXED)
		own.max = own.min;
	ret = own.kind == BRIM_DIST_HISTOGRAM ? 0 : check_range(&own, e);
	return ret < 0 ? ret : check_kind(&own, e);
}

/* ----------------------------------------------------------------- drawing */

/* Where the normal distribution has x below it: the quantile's inverse. */
static double normal_below(double x)
{
	double lo = 0, hi = 1;
	int k;

	for (k = 0; k < 64; k++) {
		double mid = (lo + hi) / 2;

		if (mid <= 0 || mid >= 1)
			break;
		if (brim__normal_quantile(mid) < x)
			lo = mid;
		else
			hi = mid;
	}
	return (lo + hi) / 2;
}

/*
 * lo and hi: LOG_UNIFORM: base-2 logarithms of min and max + 1; LOG_NORMAL: the
 * part of the normal distribution that is within the range; PARETO: hi is the
 * part of the unbounded one.
 */
static void prepare_bounds(struct brim__dist *p)
{
	const struct brim_dist *d = &p->d;
	double min = brim__log2((double)BRIM__MAX(d->min, 1));
	double max = brim__log2((double)d->max + 1);

	p->lo = min;
	p->hi = max;
	if (d->kind == BRIM_DIST_PARETO)
		p->hi = 1 - brim__exp2((min - max) * d->a);
	if (d->kind != BRIM_DIST_LOG_NORMAL || d->b == 0)
		return;
	/* sigma is of the natural logarithm: times ln 2 per doubling. */
	p->lo = d->min ? normal_below((min - brim__log2(d->a)) *
				      0.69314718055994530942 / d->b)
		       : 0;
	p->hi = normal_below((max - brim__log2(d->a)) * 0.69314718055994530942 /
			     d->b);
}

static int prepare_bins(struct brim__dist *p, const struct brim_dist *d,
			struct brim_err *e)
{
	double sum = 0, upto = 0;
	size_t k, n = d->bin_count;

	p->bins = calloc(n, sizeof(*p->bins));
	p->upto = calloc(n, sizeof(*p->upto));
	if (!p->bins || !p->upto) {
		brim__dist_release(p);
		return brim__err(e, -ENOMEM, "dist", "histogram");
	}
	memcpy(p->bins, d->bins, n * sizeof(*p->bins));
	p->d.bins = p->bins;
	for (k = 0; k < n; k++)
		sum += d->bins[k].weight;
	for (k = 0; k < n; k++) {
		upto += d->bins[k].weight;
		p->upto[k] = brim__part_of_bits(upto / sum);
	}
	/* Rounding must not leave bits for a last bin of weight 0. */
	while (k > 0 && d->bins[k - 1].weight == 0)
		k--;
	for (k--; k < n; k++)
		p->upto[k] = UINT64_MAX;
	return 0;
}

int brim__dist_prepare(struct brim__dist *out, const struct brim_dist *d,
		       struct brim_err *e)
{
	memset(out, 0, sizeof(*out));
	memcpy(&out->d, d, BRIM__MIN(sizeof(out->d), d->struct_bytes));
	out->d.bins = NULL;
	if (d->kind == BRIM_DIST_HISTOGRAM)
		return prepare_bins(out, d, e);
	prepare_bounds(out);
	return 0;
}

void brim__dist_release(struct brim__dist *p)
{
	free(p->bins);
	free(p->upto);
	p->bins = NULL;
	p->upto = NULL;
}

/* The first bin whose part of the bits goes up to these. */
static size_t bin_of(const struct brim__dist *p, uint64_t bits)
{
	size_t lo = 0, hi = p->d.bin_count - 1;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (bits < p->upto[mid])
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* The middle of one of 2^52 equal parts of (0, 1): never 0 or 1. */
static double point(uint64_t bits)
{
	return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

static uint64_t clamp(double x, uint64_t min, uint64_t max)
{
	if (!(x > (double)min))
		return min;
	return x >= (double)max ? max : (uint64_t)x;
}

/* Log-uniform; a bin that begins at 0 is one that begins at 1, less 1. */
static uint64_t in_bin(const struct brim_dist_bin *b, uint64_t bits)
{
	uint64_t shift = b->from == 0;
	double lo, hi;

	if (b->from == b->to)
		return b->from;
	lo = brim__log2((double)(b->from + shift));
	hi = brim__log2((double)(b->to + shift) + 1);
	return clamp(brim__exp2(lo + point(bits) * (hi - lo)), b->from + shift,
		     b->to + shift) -
	       shift;
}

static uint64_t log_normal(const struct brim__dist *p, double u)
{
	const struct brim_dist *d = &p->d;
	double z = 0;

	u = p->lo + u * (p->hi - p->lo);
	/* Rounding may have made it 1. */
	if (d->b > 0)
		z = brim__normal_quantile(BRIM__MIN(u, 1 - 0x1p-53));
	return clamp(brim__exp2(brim__log2(d->a) +
				z * d->b / 0.69314718055994530942),
		     d->min, d->max);
}

uint64_t brim__dist_draw(const struct brim__dist *p, uint64_t bits)
{
	const struct brim_dist *d = &p->d;
	double u = point(bits);

	switch (d->kind) {
	case BRIM_DIST_FIXED:
		return d->min;
	case BRIM_DIST_UNIFORM:
		return d->min + brim__mix_below(bits, d->max - d->min + 1);
	case BRIM_DIST_LOG_UNIFORM:
		return clamp(brim__exp2(p->lo + u * (p->hi - p->lo)), d->min,
			     d->max);
	case BRIM_DIST_LOG_NORMAL:
		return log_normal(p, u);
	case BRIM_DIST_PARETO:
		return clamp(
			brim__exp2(p->lo - brim__log2(1 - u * p->hi) / d->a),
			d->min, d->max);
	case BRIM_DIST_HISTOGRAM:
		break;
	}
	/* Which bin and where in it are drawn apart. */
	return in_bin(&p->bins[bin_of(p, bits)], brim__mix(bits));
}

uint64_t brim_dist_value(const struct brim_dist *d, uint64_t bits)
{
	struct brim__dist p;
	uint64_t value;

	if (brim_dist_check(d, NULL) < 0 || brim__dist_prepare(&p, d, NULL) < 0)
		return 0;
	value = brim__dist_draw(&p, bits);
	brim__dist_release(&p);
	return value;
}

/* ------------------------------------------------------------- expectation */

/*
 * The mean of the quantile function over (0, 1): heavy tails make it steep at
 * 1, so each halving of what is left gets its own points. Beyond 2^-52 of it
 * nothing is ever drawn.
 */
static double mean_drawn(const struct brim__dist *p)
{
	const uint64_t points = 512;
	uint64_t part = UINT64_C(1) << 63, k;
	double sum = 0;
	unsigned int octave;

	for (octave = 0; octave < 52; octave++, part >>= 1) {
		uint64_t from = 0 - 2 * part;
		double sum_here = 0;

		for (k = 0; k < points; k++)
			sum_here += (double)brim__dist_draw(
				p,
				from + part / points * k + part / (2 * points));
		sum += sum_here / (double)points * ((double)part * 0x1p-64);
	}
	return sum;
}

/* Of a bin: log-uniform, whose closed form is off by rounding where narrow. */
static double mean_bin(const struct brim_dist_bin *b)
{
	const unsigned int points = 512;
	double sum = 0;
	unsigned int k;

	if (b->from == b->to)
		return (double)b->from;
	for (k = 0; k < points; k++)
		sum += (double)in_bin(b,
				      (uint64_t)((k + 0.5) / points * 0x1p64));
	return sum / points;
}

double brim_dist_mean(const struct brim_dist *d)
{
	double sum = 0, weights = 0;
	struct brim__dist p;
	size_t k;

	if (brim_dist_check(d, NULL) < 0)
		return 0;
	for (k = 0; d->kind == BRIM_DIST_HISTOGRAM && k < d->bin_count; k++) {
		sum += mean_bin(&d->bins[k]) * d->bins[k].weight;
		weights += d->bins[k].weight;
	}
	if (d->kind == BRIM_DIST_HISTOGRAM)
		return sum / weights;
	brim__dist_prepare(&p, d, NULL); /* allocates for histograms only */
	return mean_drawn(&p);
}
