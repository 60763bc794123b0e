/* SPDX-License-Identifier: MIT */
/*
 * dist_math.c: the three functions that distributions need, from additions,
 * multiplications and divisions alone: IEEE 754 gives those the same results
 * everywhere, which libm's functions do not promise. Called by dist.c.
 */
#include <string.h>

#include "dist.h"

/* 2 / ln 2 and ln 2. */
#define TWO_BY_LN2 2.8853900817779268147
#define LN2 0.69314718055994530942
#define SQRT_HALF 0.70710678118654752440

static uint64_t bits_of(double x)
{
	uint64_t b;

	memcpy(&b, &x, sizeof(b));
	return b;
}

static double of_bits(uint64_t b)
{
	double x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

/*
 * ln m = 2 artanh s with s = (m - 1) / (m + 1); for m from sqrt(1/2) to sqrt 2
 * s is below 0.172, where 11 terms leave less than 1e-17.
 */
double brim__log2(double x)
{
	int exponent = (int)(bits_of(x) >> 52) - 1022, k;
	double m, s, s2, sum = 0;

	if (exponent == -1022) /* subnormal */
		return brim__log2(x * 0x1p64) - 64;
	m = of_bits((bits_of(x) & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1022)
								       << 52);
	if (m < SQRT_HALF) {
		m *= 2;
		exponent--;
	}
	s = (m - 1) / (m + 1);
	s2 = s * s;
	for (k = 21; k > 0; k -= 2)
		sum = sum * s2 + 1.0 / k;
	return exponent + TWO_BY_LN2 * s * sum;
}

/* Exponential series of the fraction, at most 0.347, to its 14th term. */
double brim__exp2(double x)
{
	double whole, y, sum = 1;
	int k;

	if (x >= 1023)
		return 0x1p1023;
	if (x <= -1022)
		return 0;
	whole = (double)(int)(x < 0 ? x - 0.5 : x + 0.5);
	y = (x - whole) * LN2;
	for (k = 14; k > 0; k--)
		sum = 1 + y / k * sum;
	return sum * of_bits((uint64_t)((int)whole + 1023) << 52);
}

/* The square root of what is not negative, by the two functions above. */
static double root(double x)
{
	return x > 0 ? brim__exp2(brim__log2(x) / 2) : 0;
}

/*
 * P. J. Acklam's rational approximation of the normal quantile (2003), relative
 * error below 1.2e-9: one for the middle, one for either tail.
 */
static double quantile_middle(double q)
{
	static const double a[] = {
		-3.969683028665376e+01, 2.209460984245205e+02,
		-2.759285104469687e+02, 1.383577518672690e+02,
		-3.066479806614716e+01, 2.506628277459239e+00
	};
	static const double b[] = {
		-5.447609879822406e+01, 1.615858368580409e+02,
		-1.556989798598866e+02, 6.680131188771972e+01,
		-1.328068155288572e+01, 1
	};
	double r = q * q, num = 0, den = 0;
	int k;

	for (k = 0; k < 6; k++) {
		num = num * r + a[k];
		den = den * r + b[k];
	}
	return num * q / den;
}

static double quantile_tail(double p)
{
	static const double c[] = {
		-7.784894002430293e-03, -3.223964580411365e-01,
		-2.400758277161838e+00, -2.549732539343734e+00,
		4.374664141464968e+00,  2.938163982698783e+00
	};
	static const double d[] = { 7.784695709041462e-03,
				    3.224671290700398e-01,
				    2.445134137142996e+00,
				    3.754408661907416e+00, 1 };
	double q = root(-2 * LN2 * brim__log2(p)), num = 0, den = 0;
	int k;

	for (k = 0; k < 6; k++)
		num = num * q + c[k];
	for (k = 0; k < 5; k++)
		den = den * q + d[k];
	return num / den;
}

double brim__normal_quantile(double u)
{
	const double tail = 0.02425;

	if (u < tail)
		return quantile_tail(u);
	if (u > 1 - tail)
		return -quantile_tail(1 - u);
	return quantile_middle(u - 0.5);
}
