/* SPDX-License-Identifier: MIT */
/*
 * test_table.c: tables of rows against qsort and against bitmaps: order of many
 * kinds of input, merging, groups, differences of two; and bits of records.
 */
#include <string.h>

#include "../../core/objects.h"
#include "tap.h"

#define GROUP_LOG2 8u
#define FIXED (1ull << 62)

static struct brim_table *fresh(void)
{
	struct brim_table *t;
	struct brim_err e;

	if (brim_table_create(&t, GROUP_LOG2, &e) < 0)
		exit(1);
	return t;
}

static void add(struct brim_table *t, uint64_t start, uint64_t count,
		uint64_t owner, uint64_t offset)
{
	struct brim_row row = { start, count, owner, offset };
	struct brim_err e;

	if (brim_table_add(t, &row, &e) < 0)
		exit(1);
}

/* The judge: what the header says of the order. */
static int by_rule(const void *a, const void *b)
{
	const struct brim_row *x = a, *y = b;
	uint64_t u[] = { x->start >> GROUP_LOG2, x->owner, x->offset, x->start,
			 x->count };
	uint64_t v[] = { y->start >> GROUP_LOG2, y->owner, y->offset, y->start,
			 y->count };
	int k;

	for (k = 0; k < 5; k++)
		if (u[k] != v[k])
			return u[k] < v[k] ? -1 : 1;
	return 0;
}

/* Rows in an order that quicksorts dislike, by number. */
static struct brim_row row_of(int kind, uint32_t k, uint32_t n, uint64_t *seed)
{
	uint32_t v = kind == 0   ? (uint32_t)tap_below(seed, 1u << 20)
		     : kind == 1 ? k
		     : kind == 2 ? n - k
		     : kind == 3 ? 7
		     : kind == 4 ? (k < n / 2 ? k : n - k)
		     : kind == 5 ? (uint32_t)tap_below(seed, 3)
				 : k * 7919 % 64;

	return (struct brim_row){ v % 5 << GROUP_LOG2, 1, v / 5, v };
}

static void test_sort(uint64_t *seed)
{
	static const uint32_t sizes[] = { 0, 1, 2, 24, 25, 1000, 20000 };
	uint32_t bad = 0, i, k;
	int kind;

	for (kind = 0; kind < 7; kind++) {
		for (i = 0; i < 7; i++) {
			uint32_t n = sizes[i];
			struct brim_row *v = calloc(n + 1, sizeof(*v)), got;
			struct brim_table *t = fresh();

			for (k = 0; k < n; k++) {
				v[k] = row_of(kind, k, n, seed);
				add(t, v[k].start, v[k].count, v[k].owner,
				    v[k].offset);
			}
			qsort(v, n, sizeof(*v), by_rule);
			brim_table_sort(t);
			bad += brim_table_count(t) != n;
			for (k = 0; k < n; k++)
				bad += brim_table_get(t, k, &got) < 0 ||
				       memcmp(&v[k], &got, sizeof(got)) != 0;
			brim_table_free(t);
			free(v);
		}
	}
	ok(!bad, "the order is qsort's, whatever comes", "%u", bad);
}

/* Files cut into pieces become whole again, whatever the pieces' order. */
static void test_merge(uint64_t *seed)
{
	uint32_t bad = 0, k, owner;

	for (k = 0; k < 2000; k++) {
		struct brim_table *t = fresh();
		struct brim_row row;
		size_t i;

		for (owner = 3; owner > 0; owner--) {
			uint64_t at = 60 * owner, end = at + 50, piece;
			uint64_t fixed = owner == 2 ? FIXED : 0;

			for (; at < end; at += piece) {
				piece = 1 + tap_below(seed, 9);
				piece = at + piece > end ? end - at : piece;
				add(t, at, piece, owner,
				    fixed ? FIXED : at - 60 * owner);
			}
		}
		brim_table_merge(t, FIXED);
		bad += brim_table_count(t) != 3;
		for (i = 0; i < 3; i++)
			bad += brim_table_get(t, i, &row) < 0 ||
			       row.count != 50 || row.start != 60 * row.owner;
		brim_table_free(t);
	}
	ok(!bad, "pieces that go on become one row", "%u", bad);
}

static void test_merge_not(void)
{
	struct brim_table *t = fresh();

	add(t, 10, 5, 1, 0);
	add(t, 15, 5, 1, 6);  /* a hole in the file */
	add(t, 20, 5, 2, 11); /* another's */
	add(t, 250, 6, 3, 0);
	add(t, 256, 6, 3, 6); /* the next group */
	add(t, 30, 1, 4, FIXED);
	add(t, 32, 1, 4, FIXED); /* a hole on the disk */
	brim_table_merge(t, FIXED);
	ok(brim_table_count(t) == 7, "others do not", "%zu",
	   brim_table_count(t));
	brim_table_free(t);
}

static void test_groups(void)
{
	struct brim_table *t = fresh();
	struct brim_extents *x;
	struct brim_range v;
	struct brim_err e;
	size_t from, to;

	add(t, 0x305, 2, 9, 0);
	add(t, 0x101, 1, 9, 0);
	add(t, 0x303, 1, 8, 0);
	brim_table_sort(t);
	brim_table_find(t, 3, &from, &to);
	ok(from == 1 && to == 3, "the rows of a group", "%zu %zu", from, to);
	brim_table_find(t, 2, &from, &to);
	ok(from == to, "a group without any", "%zu %zu", from, to);
	brim_table_find(t, UINT64_MAX, &from, &to);
	ok(from == to, "a group past all", "%zu %zu", from, to);
	brim_extents_create(&x, &e);
	brim_table_extents(t, 3, x, &e);
	ok(brim_extents_count(x) == 2 && !brim_extents_get(x, 0, &v) &&
		   v.start == 3 && v.tag == 8,
	   "as extents, without the group's number", "%zu",
	   brim_extents_count(x));
	brim_extents_free(x);
	brim_table_free(t);
}

/* Rows 0 .. 63 in either table by a bit each. */
static void test_differ(uint64_t *seed)
{
	uint32_t bad = 0, k, n;

	for (k = 0; k < 2000; k++) {
		uint64_t a = tap_random(seed), b = a ^ tap_random(seed),
			 got[3] = { 0 };
		struct brim_table *x = fresh(), *y = fresh();
		struct brim_row row;
		size_t i = 0, j = 0;
		int which;

		for (n = 0; n < 64; n++) {
			if (a >> n & 1)
				add(x, n, 1, 1, n);
			if (b >> n & 1)
				add(y, n, 1, 1, n);
		}
		while ((which = brim_table_differ(x, &i, SIZE_MAX, y, &j,
						  SIZE_MAX, &row)))
			got[which] |= 1ull << row.start;
		bad += got[1] != (a & ~b) || got[2] != (b & ~a);
		brim_table_free(x);
		brim_table_free(y);
	}
	ok(!bad, "differences are those of the sets", "%u", bad);
}

/* One bit after the other, which cannot be wrong. */
static uint64_t slow_bits(const uint8_t *raw, uint32_t at, uint32_t width)
{
	uint64_t v = 0;

	for (; width; width--, at++)
		v = v << 1 | (raw[at / 8] >> (7 - at % 8) & 1);
	return v;
}

static void test_bits(uint64_t *seed)
{
	uint32_t bad = 0, k, i;
	uint8_t raw[64];

	for (k = 0; k < 20000; k++) {
		struct brim_bits b = { .width = (uint32_t)tap_below(seed, 65) };

		b.at = (uint32_t)tap_below(seed, 513 - b.width);
		for (i = 0; i < sizeof(raw); i++)
			raw[i] = (uint8_t)tap_random(seed);
		bad += brim__bits_get(raw, &b) != slow_bits(raw, b.at, b.width);
	}
	ok(!bad, "bits of packed records", "%u", bad);
}

static void test_refused(void)
{
	struct brim_table *t = fresh();
	struct brim_row row = { UINT64_MAX, 1, 0, 0 };
	struct brim_err e;

	ok(brim_table_add(t, &row, &e) == -75 /* EOVERFLOW */,
	   "an end past 64 bits", "%s", "accepted");
	ok(brim_table_get(t, 0, &row) < 0, "none at 0", "%s", "there is");
	brim_table_free(t);
	brim_table_free(NULL);
}

int main(void)
{
	uint64_t seed = tap_seed(1);

	test_sort(&seed);
	test_merge(&seed);
	test_merge_not();
	test_groups();
	test_differ(&seed);
	test_bits(&seed);
	test_refused();
	return tap_end();
}
