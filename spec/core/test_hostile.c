/* SPDX-License-Identifier: MIT */
/*
 * test_hostile.c: plans and images made to cost whoever seals, loads, sums up
 * or reads them far more time or memory than their size. Each must end within
 * a bound of CPU time, with an answer or with an error. Offsets are bytes.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../../core/image.h"
#include "../../core/plan.h"
#include "tap.h"

/* CPU time, so that a busy machine does not matter, and memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BOUND_S 60.0
#define BOUND_MIB 2048 /* freed memory is kept for a while */
#else
#define BOUND_S 6.0
#define BOUND_MIB 512
#endif
#define VOLUME (1ull << 62)

static double cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static long peak_mib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss >> 10;
}

static struct brim_plan *new_plan(void)
{
	struct brim_plan *p;

	brim_plan_create(&p, "hostile", VOLUME, NULL);
	return p;
}

/* A stamp of `extents` regions of len bytes, one every `apart`. */
static struct brim_stamp *comb(uint32_t extents, uint32_t len, uint64_t apart,
			       uint64_t first, uint64_t count)
{
	struct brim_stamp *s;
	uint32_t k;

	brim_stamp_create(&s, NULL);
	for (k = 0; k < extents; k++)
		brim_stamp_region(s, apart * k, len, "r", NULL);
	brim_stamp_seal(s, first, count, NULL);
	return s;
}

/* Seals, sums up, reads; then the same of its image. Frees the plan. */
static void judge(struct brim_plan *p, const char *name)
{
	static uint8_t buf[65536];
	struct brim_plan_totals t;
	struct brim_err e = { 0 };
	struct brim_plan *q = NULL;
	double begun = cpu_s(), took;
	void *image = NULL;
	size_t len = 0;
	int ret, loaded = 0;

	ret = p->sealed ? 0 : brim_plan_seal(p, &e);
	if (ret == 0) {
		brim_plan_totals(p, 4096, &t);
		brim_plan_read(p, 12345, sizeof(buf), buf, NULL);
		if (brim_image_encode(p, &image, &len, NULL) == 0) {
			loaded = brim_image_decode(&q, image, len, NULL) == 0;
			if (loaded)
				brim_plan_read(q, 1, sizeof(buf), buf, NULL);
		}
	}
	took = cpu_s() - begun;
	printf("# %s: %.2f s, %s%s, image of %zu bytes%s, peak %ld MiB\n", name,
	       took, ret ? "refused: " : "sealed", ret ? e.msg : "", len,
	       loaded ? "" : " not made or not loaded", peak_mib());
	ok(took < BOUND_S && (!ret || (e.code == ret && e.msg[0])), name,
	   "%.2f s, %d, '%s'", took, ret, e.msg);
	free(image);
	brim_plan_free(q);
	brim_plan_free(p);
}

/* 2^60 instances side by side: totals must not count them one by one. */
static void test_dense(void)
{
	struct brim_plan *p = new_plan();
	int k;

	for (k = 0; k < 4096; k++)
		brim_plan_each(p, comb(1, 1, 1, 0, 1ull << 61), 0, 1, "d", 1,
			       NULL);
	judge(p, "4096 pieces of 2^61 bytes each, one on the other");
}

/* The same in phases of their own, so that nothing is hidden. */
static void test_dense_phases(void)
{
	struct brim_plan *p = new_plan();
	int k;

	for (k = 0; k < 1000; k++) {
		brim_plan_phase(p, "p", NULL);
		brim_plan_each(p, comb(1, 1, 1, 0, 1ull << 61), 0, 2, "d", 1,
			       NULL);
	}
	judge(p, "1000 phases of 2^61 single bytes");
}

/* Spans added in the middle of ever longer lists. */
static void test_insertions(void)
{
	struct brim_plan *p = new_plan();
	uint64_t n = 1u << 22, k;

	brim_plan_each(p, comb(1, 1, 1, 0, 8 * n), 0, 2, "early", 0, NULL);
	for (k = 0; k < 8; k++) {
		brim_plan_phase(p, "p", NULL);
		brim_plan_each(p, comb(1, 1, 1, 0, n), 2 * k, 16, "late", 0,
			       NULL);
	}
	judge(p, "every eighth instance written over, eight times");
}

/* The same under a range of zeros. */
static void test_holes(void)
{
	struct brim_plan *p = new_plan();
	uint64_t k;

	for (k = 0; k < 64; k++)
		brim_plan_zero(p, 0, 1u << 30, "zeros", NULL);
	for (k = 0; k < 64; k++)
		brim_plan_each(p, comb(16, 1, 512, 0, 4000), 8 * k, 8192,
			       "late", 0, NULL);
	judge(p, "millions of holes in zeros");
}

static void test_holes_of_extents(void)
{
	struct brim_plan *p = new_plan();
	int k;

	for (k = 0; k < 100; k++)
		brim_plan_zero(p, 0, 1ull << 40, "zeros", NULL);
	brim_plan_each(p, comb(4096, 1, 2, 0, 65536), 0, 8192, "late", 0, NULL);
	judge(p, "zeros under 2^28 extents");
}

/* Many extents against many pieces, each of which costs nothing to store. */
static void test_extents_by_pieces(void)
{
	struct brim_plan *p = new_plan();
	int k;

	for (k = 0; k < 15; k++)
		brim_plan_each(p, comb(4096, 1, 2, 0, 1u << 20), 0, 8192,
			       "early", 0, NULL);
	brim_plan_phase(p, "p", NULL);
	for (k = 0; k < 4000; k++)
		brim_plan_zero(p, 0, 1ull << 32, "zeros", NULL);
	judge(p, "4096 extents under 4000 ranges of zeros");
}

static void test_extents_by_extents(void)
{
	struct brim_plan *p = new_plan();
	int k;

	for (k = 0; k < 15; k++) {
		brim_plan_phase(p, "p", NULL);
		brim_plan_each(p, comb(4096, 1, 2, 0, 1u << 20), 0,
			       8192 + (uint64_t)k, "comb", 0, NULL);
	}
	judge(p, "combs on combs");
}

/* As many regions, values and checksums as an image may have. */
static void test_parts(void)
{
	struct brim_checksum how = { BRIM_CRC32C, 1, 2, BRIM_BIG };
	struct brim_plan *p = new_plan();
	uint64_t k, i;

	for (i = 0; i < 8; i++) {
		struct brim_stamp *s;

		brim_stamp_create(&s, NULL);
		for (k = 0; k < 4096; k++) {
			brim_stamp_region(s, 2000 * k, 16, "r", NULL);
			brim_stamp_set_int(s, 2000 * k, 2, BRIM_BIG, 0, 1, "f",
					   NULL);
			brim_stamp_set_checksum(s, 2000 * k + 4, 2000 * k, 16,
						&how, NULL);
		}
		brim_stamp_seal(s, 0, 60000, NULL);
		brim_plan_each(p, s, 16 * i, 1u << 23, "parts", 0, NULL);
	}
	judge(p, "as many parts as an image may have");
}

/* Tables: bytes that vary far before the end of what a checksum covers. */
static void test_tables(void)
{
	struct brim_checksum how = { BRIM_CRC32C, 1, 2, BRIM_BIG };
	struct brim_plan *p = new_plan();
	uint64_t k, i;

	for (i = 0; i < 4; i++) {
		struct brim_stamp *s;

		brim_stamp_create(&s, NULL);
		brim_stamp_region(s, 0, 16u << 20, "r", NULL);
		for (k = 0; k < 2048; k++)
			brim_stamp_set_int(s, 8 + 8 * k, 8, BRIM_BIG, 0, 3, "f",
					   NULL);
		brim_stamp_set_checksum(s, 0, 0, 16u << 20, &how, NULL);
		brim_stamp_seal(s, 0, 1ull << 36, NULL);
		brim_plan_each(p, s, 0, 16u << 20, "tables", 0, NULL);
	}
	judge(p, "as many tables as an image may have");
}

/* More than an image may have is not saved, so that none is lost. */
static void test_refused_to_save(void)
{
	struct brim_plan *p = new_plan();
	struct brim_err e = { 0 };
	void *image;
	size_t len;
	int k;

	for (k = 0; k < 4097; k++)
		brim_plan_zero(p, 4096 * (uint64_t)k, 1, "z", NULL);
	brim_plan_seal(p, NULL);
	ok(brim_image_encode(p, &image, &len, &e) == -EFBIG && !image &&
		   strstr(e.msg, "4097 pieces"),
	   "more pieces than an image holds", "%s", e.msg);
	brim_plan_free(p);
}

int main(void)
{
	test_dense();
	test_dense_phases();
	test_insertions();
	test_holes();
	test_holes_of_extents();
	test_extents_by_pieces();
	test_extents_by_extents();
	test_parts();
	test_tables();
	test_refused_to_save();
	ok(peak_mib() < BOUND_MIB, "memory stays within bounds", "%ld MiB",
	   peak_mib());
	return tap_end();
}
