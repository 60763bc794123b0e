/* SPDX-License-Identifier: MIT */
/*
 * fuzz_extents.c: lists of extents against a line of cells: whatever is added,
 * each operation says what counting the cells says. The input is a program:
 * bytes that add to one of two lists and apply operations to them.
 */
#include <stdbool.h>

#include "brim.h"
#include "fuzz.h"

#define CELLS 64u
#define LISTS 2u
#define EXTENTS_MAX 200u

/* How many extents of the list cover each cell. */
static void cover(const struct brim_extents *x, uint32_t *cells)
{
	struct brim_range v;
	size_t k;
	uint64_t c;

	memset(cells, 0, CELLS * sizeof(*cells));
	for (k = 0; !brim_extents_get(x, k, &v); k++)
		for (c = v.start; c < v.start + v.count; c++)
			cells[c]++;
}

static struct brim_range get(const struct brim_extents *x, size_t k)
{
	struct brim_range v = { 0, 0, 0 };

	claim(!brim_extents_get(x, k, &v), "fewer than there are");
	return v;
}

static struct brim_extents *copy_of(const struct brim_extents *x)
{
	struct brim_extents *y;

	claim(!brim_extents_create(&y, NULL), "no list");
	claim(!brim_extents_append(y, x, NULL, NULL), "not copied");
	return y;
}

/* ------------------------------------------------------------------ claims */

static void check_numbers(const struct brim_extents *x, uint64_t from,
			  uint64_t to)
{
	size_t n = brim_extents_count(x), k;
	uint64_t sum = 0, longest = 0;
	int64_t outside = -1;

	for (k = 0; k < n; k++) {
		struct brim_range v = get(x, k);

		sum += v.count;
		longest = v.count > longest ? v.count : longest;
		if (outside < 0 &&
		    (!v.count || v.start < from || v.start + v.count > to))
			outside = (int64_t)k;
	}
	claim(brim_extents_sum(x) == sum, "another sum");
	claim(brim_extents_longest(x) == longest, "another longest");
	claim(brim_extents_outside(x, from, to) == outside, "another outside");
	claim(brim_extents_get(x, n, &(struct brim_range){ 0 }) < 0,
	      "one past the last");
}

static bool is_sorted(const struct brim_extents *x)
{
	size_t k;

	for (k = 1; k < brim_extents_count(x); k++) {
		struct brim_range a = get(x, k - 1), b = get(x, k);

		if (a.start != b.start   ? a.start > b.start
		    : a.count != b.count ? a.count > b.count
					 : a.tag > b.tag)
			return false;
	}
	return true;
}

static void check_overlap(const struct brim_extents *x)
{
	size_t n = brim_extents_count(x), k, j, other = SIZE_MAX;
	int64_t found = brim_extents_overlap(x, &other), expected = -1;

	for (k = 1; k < n && expected < 0; k++)
		for (j = 0; j < k; j++) {
			struct brim_range a = get(x, j);

			if (get(x, k).start < a.start + a.count)
				expected = (int64_t)k;
		}
	claim(found == expected, "another overlap");
	if (found >= 0) {
		struct brim_range a = get(x, other);

		claim(other < (size_t)found &&
			      get(x, (size_t)found).start < a.start + a.count,
		      "it overlaps another one");
	}
}

static void check_union(const struct brim_extents *x)
{
	uint32_t before[CELLS], after[CELLS];
	struct brim_extents *u = copy_of(x);
	size_t k;

	cover(x, before);
	brim_extents_union(u);
	cover(u, after);
	for (k = 0; k < CELLS; k++)
		claim(after[k] == !!before[k], "a union covers something else");
	for (k = 0; k < brim_extents_count(u); k++) {
		claim(get(u, k).count && !get(u, k).tag, "an empty extent");
		claim(!k || get(u, k - 1).start + get(u, k - 1).count <
				      get(u, k).start,
		      "extents that touch are two");
	}
	brim_extents_free(u);
}

static void check_join(const struct brim_extents *x)
{
	uint32_t before[CELLS], after[CELLS];
	struct brim_extents *j = copy_of(x), *a, *b;
	uint64_t tag;

	brim_extents_join(j);
	claim(brim_extents_count(j) <= brim_extents_count(x),
	      "joined are more");
	for (tag = 0; tag < 4; tag++) {
		claim(!brim_extents_create(&a, NULL), "no list");
		claim(!brim_extents_create(&b, NULL), "no list");
		claim(!brim_extents_tagged(x, tag, tag, a, NULL), "no tagged");
		claim(!brim_extents_tagged(j, tag, tag, b, NULL), "no tagged");
		cover(a, before);
		cover(b, after);
		claim(!memcmp(before, after, sizeof(before)),
		      "joined cover something else");
		brim_extents_free(a);
		brim_extents_free(b);
	}
	brim_extents_free(j);
}

static void check_complement(const struct brim_extents *x, uint64_t from,
			     uint64_t to)
{
	uint32_t there[CELLS], left[CELLS];
	struct brim_extents *u = copy_of(x), *out;
	uint64_t k;

	brim_extents_union(u);
	cover(u, there);
	claim(!brim_extents_create(&out, NULL), "no list");
	claim(!brim_extents_complement(u, from, to, out, NULL), "no rest");
	cover(out, left);
	for (k = 0; k < CELLS; k++)
		claim(left[k] == (k >= from && k < to && !there[k]),
		      "another rest");
	claim(brim_extents_outside(out, from, to) < 0, "a rest outside");
	brim_extents_free(out);
	brim_extents_free(u);
}

static void check_depth(const struct brim_extents *x, uint64_t least)
{
	uint32_t cells[CELLS], tagged[CELLS] = { 0 };
	struct brim_extents *s = copy_of(x), *out;
	size_t k;

	brim_extents_sort(s);
	claim(is_sorted(s), "not sorted");
	check_overlap(s);
	cover(s, cells);
	claim(!brim_extents_create(&out, NULL), "no list");
	claim(!brim_extents_depth(s, least, out, NULL), "no depths");
	for (k = 0; k < brim_extents_count(out); k++) {
		struct brim_range v = get(out, k);
		uint64_t c;

		claim(v.count && v.tag, "a depth of nothing");
		for (c = v.start; c < v.start + v.count; c++) {
			claim(!tagged[c], "two depths of one cell");
			tagged[c] = (uint32_t)v.tag;
		}
	}
	for (k = 0; k < CELLS; k++)
		claim(tagged[k] == (cells[k] >= least ? cells[k] : 0),
		      "another depth");
	brim_extents_free(out);
	brim_extents_free(s);
}

static void check_differ(const struct brim_extents *x,
			 const struct brim_extents *y)
{
	size_t a = brim_extents_count(x), b = brim_extents_count(y), k = 0;
	int64_t expected;

	while (k < a && k < b && get(x, k).start == get(y, k).start &&
	       get(x, k).count == get(y, k).count)
		k++;
	expected = k == a && k == b ? -1 : (int64_t)k;
	claim(brim_extents_differ(x, y) == expected, "another difference");
}

static void check_only(const struct brim_extents *x,
		       const struct brim_extents *y)
{
	struct brim_extents *a = copy_of(x), *b = copy_of(y);
	uint32_t in[2][CELLS];
	struct brim_range v = { 0, 0, 0 };
	uint64_t k = 0, c;
	int ret, mine;

	brim_extents_union(a);
	brim_extents_union(b);
	cover(a, in[0]);
	cover(b, in[1]);
	while (k < CELLS && in[0][k] == in[1][k])
		k++;
	ret = brim_extents_only(a, b, &v);
	if (k == CELLS) {
		claim(ret == 0, "the same, but only one covers it");
	} else {
		mine = in[0][k] ? 0 : 1;
		claim(ret == 1 + mine && v.start == k && v.count,
		      "not the first that only one covers");
		for (c = v.start; c < v.start + v.count; c++)
			claim(in[mine][c] && !in[1 - mine][c],
			      "the other covers it, too");
	}
	brim_extents_free(a);
	brim_extents_free(b);
}

static void check_starting(const struct brim_extents *x, uint64_t from,
			   uint64_t to)
{
	struct brim_extents *out;
	size_t k, n = 0;

	claim(!brim_extents_create(&out, NULL), "no list");
	claim(!brim_extents_starting(x, from, to, out, NULL), "not started");
	for (k = 0; k < brim_extents_count(x); k++) {
		struct brim_range v = get(x, k), w;

		if (v.start < from || v.start >= to)
			continue;
		w = get(out, n++);
		claim(w.start == v.start - from && w.count == v.count &&
			      w.tag == v.tag,
		      "another start");
	}
	claim(brim_extents_count(out) == n, "others that start there");
	brim_extents_free(out);
}

/* An extent whose end does not fit is refused, and changes nothing. */
static void check_huge(struct brim_extents *x, uint64_t start, uint64_t count)
{
	size_t n = brim_extents_count(x);
	struct brim_extents *own;
	struct brim_err e = { 0 };
	int fits = start <= UINT64_MAX - count, ret;

	claim(!brim_extents_create(&own, NULL), "no list");
	ret = brim_extents_add(own, start, count, 1, &e);
	claim((ret == 0) == fits, "an end past 64 bits");
	claim(fits || (e.code == ret && e.msg[0]), "no reason");
	claim(brim_extents_count(own) == (size_t)fits, "kept or not");
	brim_extents_union(own);
	brim_extents_join(own);
	brim_extents_free(own);
	claim(brim_extents_count(x) == n, "another list changed");
}

/* --------------------------------------------------------------- operations */

static void add(struct brim_extents *x, struct feed *f)
{
	uint64_t start = feed_byte(f) % CELLS, count = feed_byte(f);

	if (brim_extents_count(x) < EXTENTS_MAX)
		claim(!brim_extents_add(x, start, count % (CELLS + 1 - start),
					feed_byte(f) % 4, NULL),
		      "not added");
}

static void apply(struct brim_extents **v, uint8_t op, struct feed *f)
{
	struct brim_extents *x = v[op & 1], *y = v[~op & 1];
	uint64_t from = feed_byte(f) % (CELLS + 1);
	uint64_t to = feed_byte(f) % (CELLS + 1);

	switch (op >> 1 & 7) {
	case 0:
		brim_extents_sort(x);
		claim(is_sorted(x), "not sorted");
		break;
	case 1:
		brim_extents_union(x);
		break;
	case 2:
		brim_extents_join(x);
		break;
	case 3:
		if (brim_extents_count(x) + brim_extents_count(y) < EXTENTS_MAX)
			claim(!brim_extents_append(x, y, from & 1 ? &to : NULL,
						   NULL),
			      "not appended");
		break;
	case 4:
		check_huge(x, feed_number(f, 8), feed_number(f, 8));
		break;
	default:
		break;
	}
	check_numbers(x, from, to);
	check_union(x);
	check_join(x);
	check_complement(x, from, to);
	check_depth(x, 1 + from % 5);
	check_differ(x, y);
	check_only(x, y);
	check_starting(x, from, to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct brim_extents *v[LISTS];
	size_t k;

	for (k = 0; k < LISTS; k++)
		claim(!brim_extents_create(&v[k], NULL), "no list");
	while (f.left) {
		uint8_t op = feed_byte(&f);

		if (op & 0xc0)
			add(v[op & 1], &f);
		else
			apply(v, op, &f);
	}
	for (k = 0; k < LISTS; k++)
		brim_extents_free(v[k]);
	return 0;
}
