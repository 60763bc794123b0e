/* SPDX-License-Identifier: MIT */
/*
 * test_extents.c: lists of extents where a bitmap of test_walk.c does not look:
 * what the fuzzer found, and the edges of 64 bits. Blocks.
 */
#include <errno.h>
#include <string.h>

#include "brim.h"
#include "tap.h"

static struct brim_extents *list(const uint64_t (*v)[2], size_t n)
{
	struct brim_extents *x;

	brim_extents_create(&x, NULL);
	while (n--) {
		brim_extents_add(x, v[0][0], v[0][1], 0, NULL);
		v++;
	}
	return x;
}

/* What only one has ends where the other goes on. */
static void test_only(void)
{
	static const uint64_t a[][2] = { { 0, 64 } };
	static const uint64_t b[][2] = { { 0, 5 }, { 10, 3 } };
	struct brim_extents *x = list(a, 1), *y = list(b, 2);
	struct brim_range v;
	int ret;

	ret = brim_extents_only(x, y, &v);
	ok(ret == 1 && v.start == 5 && v.count == 5, "only: up to the next",
	   "%d: %llu at %llu", ret, (unsigned long long)v.count,
	   (unsigned long long)v.start);
	ret = brim_extents_only(y, x, &v);
	ok(ret == 2 && v.start == 5 && v.count == 5, "only: the other way",
	   "%d: %llu at %llu", ret, (unsigned long long)v.count,
	   (unsigned long long)v.start);
	brim_extents_free(x);
	brim_extents_free(y);
}

static void test_edges(void)
{
	static const uint64_t a[][2] = { { UINT64_MAX - 5, 5 }, { 7, 0 } };
	struct brim_extents *x = list(a, 2), *out;
	struct brim_err e = { 0 };
	struct brim_range v;
	int ret;

	ret = brim_extents_add(x, UINT64_MAX - 5, 6, 0, &e);
	ok(ret == -EOVERFLOW && strstr(e.msg, "end past 2^64-1"),
	   "edges: one past the last block", "%d %s", ret, e.msg);
	brim_extents_union(x);
	ok(brim_extents_count(x) == 1 && brim_extents_sum(x) == 5,
	   "edges: an empty extent goes", "%zu", brim_extents_count(x));
	brim_extents_create(&out, NULL);
	brim_extents_complement(x, 0, UINT64_MAX, out, NULL);
	brim_extents_get(out, 0, &v);
	ok(brim_extents_count(out) == 1 && !v.start &&
		   v.count == UINT64_MAX - 5,
	   "edges: the rest of all blocks", "%zu", brim_extents_count(out));
	brim_extents_free(out);
	brim_extents_free(x);
}

int main(void)
{
	test_only();
	test_edges();
	return tap_end();
}
