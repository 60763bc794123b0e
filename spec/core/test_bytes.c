/* SPDX-License-Identifier: MIT */
/*
 * test_bytes.c: sizes as text, checked arithmetic, group geometry: boundary
 * tables, the reasons of refusals, and random round trips.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "brim.h"
#include "tap.h"

#define KIB UINT64_C(1024)
#define PIB (UINT64_C(1) << 50)
#define MAX ((uint64_t)BRIM_MAX_BYTES)

/* 0, 1, around a block, 2^31, 2^32, 2^53, 2^62, and the largest offset. */
static const uint64_t BOUNDARY[] = {
	0,
	1,
	4095,
	4096,
	4097,
	UINT64_C(1) << 31,
	(UINT64_C(1) << 31) + 1,
	UINT64_C(1) << 32,
	UINT64_C(1) << 53,
	(UINT64_C(1) << 53) + 1,
	UINT64_C(1) << 62,
	INT64_MAX - UINT64_C(4096),
	INT64_MAX,
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ----------------------------------------------------------------- parsing */

static void test_accepted(void)
{
	static const struct {
		const char *text;
		uint64_t n;
	} CASES[] = {
		{ "0", 0 },
		{ "00", 0 },
		{ "1", 1 },
		{ "007", 7 },
		{ "4096", 4096 },
		{ "4k", 4096 },
		{ "4K", 4096 },
		{ "4KiB", 4096 },
		{ "4kib", 4096 },
		{ "4 KiB", 4096 },
		{ "4 k", 4096 },
		{ "3m", 3 * KIB * KIB },
		{ "3g", 3 * KIB * KIB * KIB },
		{ "3TiB", 3 * KIB * KIB * KIB * KIB },
		{ "8191p", 8191 * PIB },
		{ "8191 PiB", 8191 * PIB },
		{ "7EiB", 7 * KIB * PIB },
		{ "7e", 7 * KIB * PIB },
		{ "0e", 0 },
		{ "9223372036854775807", MAX },
		{ "09223372036854775807", MAX },
		{ "9007199254740991k", 9007199254740991 * KIB },
	};
	size_t k;

	for (k = 0; k < COUNT(CASES); k++) {
		uint64_t n = 77;
		struct brim_err e = { 0 };
		int ret = brim_bytes_parse(CASES[k].text, &n, &e);

		ok(ret == 0 && n == CASES[k].n, CASES[k].text,
		   "%d, %" PRIu64 ": %s", ret, n, e.msg);
	}
}

static void test_refused(void)
{
	static const struct {
		const char *text;
		int code;
		const char *says; /* within the message */
	} CASES[] = {
		{ "", -EINVAL, "missing" },
		{ " ", -EINVAL, "blank" },
		{ " 4k", -EINVAL, "blank" },
		{ "4k ", -EINVAL, "blank" },
		{ "4  k", -EINVAL, "blank" },
		{ "4\tk", -EINVAL, "blank" },
		{ "4\n", -EINVAL, "blank" },
		{ "4 ", -EINVAL, "blank" },
		{ "4 k iB", -EINVAL, "blank" },
		{ "-1", -EINVAL, "sign" },
		{ "+1", -EINVAL, "sign" },
		{ "--", -EINVAL, "sign" },
		{ "1.5t", -EINVAL, "fraction" },
		{ "1,5t", -EINVAL, "fraction" },
		{ ".5t", -EINVAL, "fraction" },
		{ "1e3", -EINVAL, "exponent" },
		{ "1e+3", -EINVAL, "exponent" },
		{ "1E3", -EINVAL, "exponent" },
		{ "8PB", -EINVAL, "write P or PiB" },
		{ "8pb", -EINVAL, "write P or PiB" },
		{ "8 PB", -EINVAL, "write P or PiB" },
		{ "8kB", -EINVAL, "write K or KiB" },
		{ "4096B", -EINVAL, "unknown suffix 'B'" },
		{ "4096iB", -EINVAL, "unknown suffix 'iB'" },
		{ "8Pi", -EINVAL, "unknown suffix 'Pi'" },
		{ "8PiBs", -EINVAL, "unknown suffix 'PiBs'" },
		{ "8kk", -EINVAL, "unknown suffix 'kk'" },
		{ "8z", -EINVAL, "unknown suffix 'z'" },
		{ "0x10", -EINVAL, "hexadecimal" },
		{ "p", -EINVAL, "digit" },
		{ "abc", -EINVAL, "digit" },
		{ "1_000", -EINVAL, "unknown suffix" },
		{ "9\xff", -EINVAL, "unknown suffix '?'" },
		{ "8e", -ERANGE,
		  "8e is 2^63, one past the largest offset; use 8191p" },
		{ "8 EiB", -ERANGE, "2^63, one past" },
		{ "8192p", -ERANGE, "2^63, one past" },
		{ "9223372036854775808", -ERANGE, "2^63, one past" },
		{ "9e", -ERANGE, "more than 2^63-1" },
		{ "8193p", -ERANGE, "more than 2^63-1" },
		{ "9223372036854775809", -ERANGE, "more than 2^63-1" },
		{ "18446744073709551615", -ERANGE, "more than" },
		{ "18446744073709551616", -ERANGE, "more than" },
		{ "18446744073709551616e", -ERANGE, "more than" },
		{ "36893488147419103232", -ERANGE, "more than" },
		{ "16e", -ERANGE, "more than" },
		{ "9007199254740992k", -ERANGE, "2^63, one past" },
		{ "99999999999999999999999999999999999999999999999999999p",
		  -ERANGE, "..." },
		/* The form comes before the range. */
		{ "99999999999999999999PB", -EINVAL, "write P or PiB" },
	};
	size_t k;

	for (k = 0; k < COUNT(CASES); k++) {
		uint64_t n = 77;
		struct brim_err e = { 0 };
		int ret = brim_bytes_parse(CASES[k].text, &n, &e);

		ok(ret == CASES[k].code && n == 77 && e.code == ret &&
			   strstr(e.msg, CASES[k].says) && !strchr(e.msg, '\n'),
		   "refused", "'%s': %d, %s", CASES[k].text, ret, e.msg);
		ok(brim_bytes_parse(CASES[k].text, &n, NULL) == ret,
		   "refused without an error to fill", "'%s'", CASES[k].text);
	}
}

/* -------------------------------------------------------------- formatting */

static int round_trips(uint64_t n)
{
	char buf[32];
	uint64_t back = n + 1;
	int len = brim_bytes_format(buf, sizeof(buf), n);
	int ret = brim_bytes_parse(buf, &back, NULL);

	return len == (int)strlen(buf) && ret == 0 && back == n;
}

/* Numbers of every length, with every number of zero bits at their end. */
static uint64_t random_size(uint64_t *seed)
{
	uint64_t n = tap_random(seed) >> (1 + tap_below(seed, 63));
	int free_bits = n ? __builtin_clzll(n) : 1;

	return n << tap_below(seed, (uint64_t)free_bits);
}

static void test_format(void)
{
	static const struct {
		uint64_t n;
		const char *text;
	} CASES[] = {
		{ 0, "0" },
		{ 1, "1" },
		{ 1023, "1023" },
		{ 1024, "1 KiB" },
		{ 1025, "1025" },
		{ 1536, "1536" },
		{ 4097, "4097" },
		{ 1536 * KIB, "1536 KiB" },
		{ 8191 * PIB, "8191 PiB" },
		{ 8192 * PIB, "8 EiB" },
		{ INT64_MAX, "9223372036854775807" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	uint64_t seed = tap_seed(1);
	uint64_t n = 0;
	char buf[32], small[3];
	size_t k;

	for (k = 0; k < COUNT(CASES); k++) {
		brim_bytes_format(buf, sizeof(buf), CASES[k].n);
		ok(!strcmp(buf, CASES[k].text), CASES[k].text, "'%s'", buf);
	}
	ok(brim_bytes_format(small, sizeof(small), KIB) == 5 &&
		   !strcmp(small, "1 "),
	   "a short buffer is cut like snprintf does", "'%s'", small);
	for (k = 0; k < COUNT(BOUNDARY); k++)
		ok(round_trips(BOUNDARY[k]), "parse(format(n)) == n",
		   "%" PRIu64, BOUNDARY[k]);
	for (k = 0; k < 100000 && (k == 0 || round_trips(n)); k++)
		n = random_size(&seed);
	ok(k == 100000, "parse(format(n)) == n for random n", "%" PRIu64, n);
}

/* -------------------------------------------------------------- arithmetic */

static void test_arithmetic(void)
{
	uint64_t n = 77;

	ok(brim_add(UINT64_MAX - 1, 1, &n) == 0 && n == UINT64_MAX, "add",
	   "%" PRIu64, n);
	n = 77;
	ok(brim_add(UINT64_MAX, 1, &n) == -EOVERFLOW && n == 77,
	   "add overflows and stores nothing", "%" PRIu64, n);
	ok(brim_mul(UINT64_C(1) << 32, UINT32_MAX, &n) == 0 &&
		   n == UINT64_C(0xffffffff00000000),
	   "mul", "%" PRIu64, n);
	n = 77;
	ok(brim_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &n) == -EOVERFLOW &&
		   n == 77,
	   "mul overflows and stores nothing", "%" PRIu64, n);
	ok(brim_align_up(4097, 4096, &n) == 0 && n == 8192, "align up",
	   "%" PRIu64, n);
	ok(brim_align_up(4096, 4096, &n) == 0 && n == 4096, "align aligned",
	   "%" PRIu64, n);
	ok(brim_align_up(0, 7, &n) == 0 && n == 0, "align 0", "%" PRIu64, n);
	ok(brim_align_up(UINT64_MAX, 1, &n) == 0 && n == UINT64_MAX,
	   "align to 1", "%" PRIu64, n);
	n = 77;
	ok(brim_align_up(UINT64_MAX, 2, &n) == -EOVERFLOW && n == 77,
	   "align up past the end", "%" PRIu64, n);
	ok(brim_align_up(1, 0, &n) == -EINVAL && n == 77, "align to 0",
	   "%" PRIu64, n);
}

/* ---------------------------------------------------------------- geometry */

/* Offset -> location -> offset, and what each must be. */
static void check_offset(const struct brim_geometry *g, uint64_t off)
{
	struct brim_location at = { 9, 9, 9 };
	uint64_t back = off + 1;
	int ret = brim_geometry_locate(g, off, &at);

	ok(ret == 0 && brim_geometry_offset(g, &at, &back) == 0 && back == off,
	   "locate and offset", "%" PRIu64 ": %d, back %" PRIu64, off, ret,
	   back);
}

static void check_outside(const struct brim_geometry *g, uint64_t off)
{
	struct brim_location at;

	ok(brim_geometry_locate(g, off, &at) == -ERANGE, "outside", "%" PRIu64,
	   off);
}

static void test_geometry_small(void)
{
	/* 100 bytes skipped to 4096; groups of 5 blocks: 5 + 5 + 2. */
	struct brim_geometry g;
	struct brim_location at = { 2, 1, 4095 };
	struct brim_err e = { 0 };
	uint64_t off = 0;
	int ret =
		brim_geometry_init(&g, 4096, 4096 * 13 + 100, 4096 * 5, 12, &e);

	ok(ret == 0 && g.group_count == 3 && g.group_blocks == 5 &&
		   g.last_group_blocks == 2,
	   "geometry", "%d %s", ret, e.msg);
	check_outside(&g, 0);
	check_outside(&g, 4095);
	check_offset(&g, 4096);
	check_offset(&g, 4096 * 6 - 1);
	check_offset(&g, 4096 * 6);
	check_offset(&g, 4096 * 13 - 1);
	check_outside(&g, 4096 * 13); /* the remainder: no whole block */
	check_outside(&g, 4096 * 13 + 100);
	check_outside(&g, UINT64_MAX);
	ok(brim_geometry_offset(&g, &at, &off) == 0 && off == 4096 * 13 - 1,
	   "offset of the last byte", "%" PRIu64, off);
	at.block = 2;
	ok(brim_geometry_offset(&g, &at, &off) == -ERANGE,
	   "block past the last group", " ");
	at.block = 0;
	at.byte = 4096;
	ok(brim_geometry_offset(&g, &at, &off) == -ERANGE,
	   "byte past the block", " ");
	at.byte = 0;
	at.group = 3;
	ok(brim_geometry_offset(&g, &at, &off) == -ERANGE, "no such group",
	   " ");
}

/* 8 EiB less a block as XFS cuts it: 8,388,608 groups of 1 TiB. */
static void test_geometry_large(void)
{
	uint64_t group = (UINT64_C(1) << 40) - 4096, size = MAX - 4095;
	struct brim_geometry g;
	size_t k;

	ok(brim_geometry_init(&g, 0, size, group, 12, NULL) == 0 &&
		   (g.group_count - 1) * group + g.last_group_blocks * 4096 ==
			   size,
	   "the largest volume", "%" PRIu64, g.group_count);
	for (k = 0; k < COUNT(BOUNDARY); k++) {
		if (BOUNDARY[k] < size)
			check_offset(&g, BOUNDARY[k]);
		else
			check_outside(&g, BOUNDARY[k]);
	}
	check_offset(&g, size - 1);
	check_outside(&g, size);
	ok(brim_geometry_init(&g, 0, MAX, 1, 0, NULL) == 0 &&
		   g.group_count == MAX,
	   "groups of one byte", "%" PRIu64, g.group_count);
	check_offset(&g, MAX - 1);
	ok(brim_geometry_init(&g, 0, MAX, UINT64_C(1) << 62, 62, NULL) == 0 &&
		   g.group_count == 1 && g.last_group_blocks == 1,
	   "blocks of 2^62", "%" PRIu64, g.group_count);
}

static void test_geometry_refused(void)
{
	static const struct {
		uint64_t first, size, group;
		uint32_t log2;
		int code;
	} CASES[] = {
		{ 0, 8192, 0, 12, -EINVAL },
		{ 0, 0, 4096, 12, -EINVAL },
		{ 0, 4095, 4096, 12, -EINVAL },
		{ 1, 8192, 4096, 12, -EINVAL },
		{ 0, 8192, 4097, 12, -EINVAL },
		{ 8192, 8192, 4096, 12, -EINVAL },
		{ 8192, 4096, 4096, 12, -EINVAL },
		{ 4096, 8191, 4096, 12, -EINVAL },
		{ 0, 8192, 4096, 63, -EINVAL },
		{ 0, 8192, 4096, 64, -EINVAL },
		{ 0, 8192, 4096, UINT32_MAX, -EINVAL },
		{ 0, MAX + 1, 4096, 12, -ERANGE },
		{ 0, UINT64_MAX, 4096, 0, -ERANGE },
		{ MAX + 1, MAX, 4096, 12, -ERANGE },
		{ 0, 8192, MAX + 1, 12, -ERANGE },
	};
	size_t k;

	for (k = 0; k < COUNT(CASES); k++) {
		struct brim_geometry g;
		struct brim_err e = { 0 };
		int ret = brim_geometry_init(&g, CASES[k].first, CASES[k].size,
					     CASES[k].group, CASES[k].log2, &e);

		ok(ret == CASES[k].code && e.code == ret && e.msg[0],
		   "geometry refused", "case %zu: %d %s", k, ret, e.msg);
	}
}

int main(void)
{
	test_accepted();
	test_refused();
	test_format();
	test_arithmetic();
	test_geometry_small();
	test_geometry_large();
	test_geometry_refused();
	return tap_end();
}
