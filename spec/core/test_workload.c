/* SPDX-License-Identifier: MIT */
/*
 * test_workload.c: what operations a workload draws, against closed forms (each
 * pattern's law by chi-square, what a pass covers), what is refused, and golden
 * values, as workloads are verified from their seeds.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "tap.h"
#include "workload.h"

#define KIB 1024u

static struct brim_workload_options base(enum brim_pattern pattern,
					 uint64_t size_bytes)
{
	return (struct brim_workload_options){
		.struct_bytes = sizeof(struct brim_workload_options),
		.seed = 1,
		.pattern = pattern,
		.theta = pattern == BRIM_PATTERN_ZIPF ? 0.9 : 0,
		.stride_bytes = 64 * KIB,
		.size_bytes = size_bytes,
	};
}

static struct brim_workload *make(const struct brim_workload_options *o)
{
	struct brim_workload *w;
	struct brim_err e = { 0 };

	if (brim_workload_create(&w, o, &e) < 0) {
		printf("not ok create: %s\n", e.msg);
		exit(1);
	}
	return w;
}

/* ------------------------------------------------------------------- cover */

/* How often each block comes in so many passes; NULL: outside of the range. */
static uint8_t *cover(const struct brim_workload_options *o, uint64_t blocks,
		      uint64_t *ops)
{
	uint32_t block = o->block_bytes ? o->block_bytes : 4096;
	struct brim_workload *w = make(o);
	struct brim_workload_cursor c;
	struct brim_workload_op op;
	uint8_t *seen = calloc(blocks, 1);
	uint64_t at;

	*ops = 0;
	brim_workload_begin(w, &c);
	while (brim_workload_next(w, &c, &op)) {
		if (op.index != (*ops)++ || !op.len_bytes ||
		    op.off_bytes < o->off_bytes ||
		    (op.off_bytes - o->off_bytes) % block ||
		    op.len_bytes % block ||
		    op.off_bytes + op.len_bytes > o->off_bytes + blocks * block)
			break;
		for (at = 0; at < op.len_bytes; at += block)
			seen[(op.off_bytes - o->off_bytes + at) / block]++;
	}
	brim_workload_free(w);
	return seen;
}

static void check_cover(const char *name, const struct brim_workload_options *o,
			uint64_t blocks, uint8_t times, uint64_t want_ops)
{
	uint64_t ops, k, wrong = 0;
	uint8_t *seen = cover(o, blocks, &ops);

	for (k = 0; k < blocks; k++)
		wrong += seen[k] != times;
	ok(!wrong && (!want_ops || ops == want_ops), name,
	   "%llu of %llu blocks wrong, %llu operations",
	   (unsigned long long)wrong, (unsigned long long)blocks,
	   (unsigned long long)ops);
	free(seen);
}

static void test_cover(void)
{
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_FIXED,
			       .min = 12 * KIB,
			       .max = 12 * KIB };
	struct brim_dist wide = { .struct_bytes = sizeof(d),
				  .kind = BRIM_DIST_LOG_UNIFORM,
				  .min = 512,
				  .max = 64 * KIB };
	struct brim_workload_options o;
	uint64_t blocks[] = { 16, 17, 31, 1000, 4099 }, k;

	for (k = 0; k < 5; k++) {
		/* The rest of a block at the end is left alone. */
		o = base(BRIM_PATTERN_SEQUENTIAL, blocks[k] * 4096 + 4095);
		check_cover("sequential: each block once", &o, blocks[k], 1,
			    blocks[k]);
		o.passes = 3;
		check_cover("sequential: three passes", &o, blocks[k], 3, 0);
		o.off_bytes = 512;
		o.sizes = &d;
		check_cover("sequential: I/Os of three blocks", &o, blocks[k],
			    3, 3 * ((blocks[k] + 2) / 3));
		o.sizes = &wide;
		check_cover("sequential: of varying size", &o, blocks[k], 3, 0);
		o.pattern = BRIM_PATTERN_PERMUTATION;
		o.sizes = NULL;
		check_cover("permutation: each block once a pass", &o,
			    blocks[k], 3, 3 * blocks[k]);
		o.sizes = &d;
		check_cover("permutation: of three blocks", &o, blocks[k], 3,
			    3 * ((blocks[k] + 2) / 3));
		o.pattern = BRIM_PATTERN_STRIDED;
		o.sizes = NULL;
		check_cover("strided: each block once a pass", &o, blocks[k], 3,
			    3 * blocks[k]);
		o.stride_bytes = 12 * KIB * 5;
		o.sizes = &d;
		check_cover("strided: of three blocks", &o, blocks[k], 3, 0);
	}
}

/* The order of a stride, and that passes of a permutation differ. */
static void test_order(void)
{
	struct brim_workload_options o =
		base(BRIM_PATTERN_STRIDED, 10 * 4 * KIB);
	static const uint64_t want[] = { 0, 4, 8, 1, 5, 9, 2, 6, 3, 7 };
	struct brim_workload_cursor c;
	struct brim_workload_op op;
	struct brim_workload *w;
	uint64_t k, wrong = 0, same = 0, first[1000];

	o.stride_bytes = 16 * KIB;
	w = make(&o);
	brim_workload_begin(w, &c);
	for (k = 0; k < 10; k++)
		wrong += !brim_workload_next(w, &c, &op) ||
			 op.off_bytes != 4096 * want[k];
	ok(!wrong, "strided: in the order of lanes", "%llu wrong",
	   (unsigned long long)wrong);
	brim_workload_free(w);
	o = base(BRIM_PATTERN_PERMUTATION, 1000 * 4 * KIB);
	o.passes = 2;
	w = make(&o);
	brim_workload_begin(w, &c);
	for (k = 0; brim_workload_next(w, &c, &op); k++) {
		if (k < 1000)
			first[k] = op.off_bytes;
		else
			same += first[k - 1000] == op.off_bytes;
	}
	/* Fixed points of a random permutation: 1 on average. */
	ok(k == 2000 && same < 10, "permutation: passes differ",
	   "%llu the same", (unsigned long long)same);
	brim_workload_free(w);
}

/* -------------------------------------------------------------------- laws */

/*
 * Chi-square as a normal deviate (Wilson, Hilferty 1931). Expected counts are
 * all above 5.
 */
static double deviate(const double *expected, const uint64_t *found, size_t n)
{
	double sum = 0, df = (double)n - 1, v = 2 / (9 * df);
	size_t k;

	for (k = 0; k < n; k++)
		sum += ((double)found[k] - expected[k]) *
		       ((double)found[k] - expected[k]) / expected[k];
	return (cbrt(sum / df) - (1 - v)) / sqrt(v);
}

#define DRAWS 2000000u

/* Ranks above the last with a bin of its own are one bin together. */
static void check_zipf(double theta, uint64_t places, int is_clustered)
{
	enum { BINS = 200 };
	struct brim_workload_options o =
		base(BRIM_PATTERN_ZIPF, places * 4 * KIB);
	uint64_t found[BINS + 1] = { 0 }, k, bins = BINS, rank;
	double expected[BINS + 1] = { 0 }, sum = 0, z;
	struct brim_workload_cursor c;
	struct brim_workload_op op;
	struct brim_workload *w;
	uint64_t *rank_of = malloc(places * sizeof(*rank_of));

	if (places < bins + 1)
		bins = places - 1;
	o.theta = theta;
	o.is_clustered = is_clustered;
	o.operations = DRAWS;
	o.seed = tap_seed(77);
	w = make(&o);
	for (k = places; k-- > 0;)
		sum += pow((double)k + 1, -theta);
	for (k = 0; k < places; k++) {
		double p = pow((double)k + 1, -theta) / sum;

		expected[k < bins ? k : bins] += p * DRAWS;
		rank_of[is_clustered ? k
				     : brim__permute(w->place_key, places, k)] =
			k;
	}
	brim_workload_begin(w, &c);
	while (brim_workload_next(w, &c, &op)) {
		rank = rank_of[op.off_bytes / 4096];
		found[rank < bins ? rank : bins]++;
	}
	z = deviate(expected, found, bins + 1);
	/* Once in 30000 seeds it would be above 4 by chance. */
	ok(fabs(z) < 4, "zipf: the law, by chi-square",
	   "theta %g, %llu places: %.2f deviations", theta,
	   (unsigned long long)places, z);
	brim_workload_free(w);
	free(rank_of);
}

static void test_laws(void)
{
	struct brim_workload_options o = base(BRIM_PATTERN_RANDOM, 777 * 4096);
	double expected[777], z, share;
	uint64_t found[777] = { 0 }, k, reads = 0;
	struct brim_workload_cursor c;
	struct brim_workload_op op;
	struct brim_workload *w;

	check_zipf(0.5, 1000, 1);
	check_zipf(0.9, 100000, 0);
	check_zipf(1, 5000, 0);
	check_zipf(1.2, 1000000, 0);
	check_zipf(3, 4, 1);
	o.operations = DRAWS;
	o.read_ppm = 300000;
	w = make(&o);
	brim_workload_begin(w, &c);
	while (brim_workload_next(w, &c, &op)) {
		found[op.off_bytes / 4096]++;
		reads += (uint64_t)op.is_read;
	}
	for (k = 0; k < 777; k++)
		expected[k] = DRAWS / 777.0;
	z = deviate(expected, found, 777);
	ok(fabs(z) < 4, "random: uniform, by chi-square", "%.2f deviations", z);
	share = (double)reads / DRAWS;
	ok(fabs(share - 0.3) < 4 * sqrt(0.3 * 0.7 / DRAWS),
	   "reads: their share", "%g", share);
	brim_workload_free(w);
}

/* Where elements of random permutations of 5 go, over many keys. */
static void test_permutation(void)
{
	uint64_t found[25] = { 0 }, key, i;
	double expected[25], z;

	for (i = 0; i < 25; i++)
		expected[i] = 20000;
	for (key = 0; key < 100000; key++)
		for (i = 0; i < 5; i++)
			found[5 * i + brim__permute(brim__mix(key), 5, i)]++;
	z = deviate(expected, found, 25);
	/* Rows and columns have a sum each: too few degrees, so a low z. */
	ok(z < 4, "permutation: places are equally likely", "%.2f", z);
	for (i = 1; i < 70; i++) {
		uint64_t sum = 0, k;

		for (k = 0; k < i; k++)
			sum |= UINT64_C(1) << (brim__permute(9, i, k) & 63);
		if (i <= 64 && sum != UINT64_MAX >> (64 - i))
			break;
	}
	ok(i == 70, "permutation: of every length", "%llu",
	   (unsigned long long)i);
	ok(brim__permute(1, UINT64_MAX, UINT64_MAX - 1) < UINT64_MAX,
	   "permutation: the longest", "no");
}

/* ------------------------------------------------------- sizes, ends, rest */

static void test_sizes(void)
{
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_UNIFORM,
			       .min = 1,
			       .max = 40 * KIB };
	struct brim_workload_options o = base(BRIM_PATTERN_RANDOM, 100 * KIB);
	uint64_t found[10] = { 0 }, k, ops;
	struct brim_workload_cursor c;
	struct brim_workload_op op;
	double expected[10], z;
	struct brim_workload *w;

	o.sizes = &d;
	o.operations = 200000;
	free(cover(&o, 25, &ops));
	ok(ops == o.operations, "varying sizes stay within the range",
	   "%llu did", (unsigned long long)ops);
	w = make(&o);
	brim_workload_begin(w, &c);
	while (brim_workload_next(w, &c, &op))
		found[op.len_bytes / 4096 - 1]++;
	for (k = 0; k < 10; k++)
		expected[k] = 20000;
	z = deviate(expected, found, 10);
	ok(fabs(z) < 4, "sizes: rounded up to blocks", "%.2f deviations", z);
	brim_workload_free(w);
}

static void test_ends(void)
{
	struct brim_workload_options o = base(BRIM_PATTERN_RANDOM, 4 * KIB);
	uint64_t ops;

	o.size_bytes = 40 * KIB;
	free(cover(&o, 10, &ops));
	ok(ops == 10, "without an end: as much as the range", "%llu",
	   (unsigned long long)ops);
	o.operations = 7;
	o.passes = 2;
	free(cover(&o, 10, &ops));
	ok(ops == 7, "operations before passes", "%llu",
	   (unsigned long long)ops);
	o.total_bytes = 4097;
	free(cover(&o, 10, &ops));
	ok(ops == 2, "total_bytes before both", "%llu",
	   (unsigned long long)ops);
}

#define REFUSED(name, field, value, pattern)                                   \
	do {                                                                   \
		struct brim_workload_options o_ = base(pattern, 40 * KIB);     \
		struct brim_workload *w_;                                      \
		struct brim_err e_ = { 0 };                                    \
		int ret_;                                                      \
                                                                               \
		o_.field = value;                                              \
		ret_ = brim_workload_create(&w_, &o_, &e_);                    \
		ok(ret_ == -EINVAL && !w_ && e_.msg[0], name, "%d %s", ret_,   \
		   e_.msg);                                                    \
	} while (0)

static void test_refused(void)
{
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_UNIFORM,
			       .min = 1,
			       .max = 9 * KIB };

	REFUSED("no such pattern", pattern, 0, BRIM_PATTERN_RANDOM);
	REFUSED("no such pattern either", pattern, 6, BRIM_PATTERN_RANDOM);
	REFUSED("theta of 0", theta, 0, BRIM_PATTERN_ZIPF);
	REFUSED("theta that is no number", theta, NAN, BRIM_PATTERN_ZIPF);
	REFUSED("theta above 10", theta, 10.1, BRIM_PATTERN_ZIPF);
	REFUSED("no stride", stride_bytes, 0, BRIM_PATTERN_STRIDED);
	REFUSED("an odd stride", stride_bytes, 4097, BRIM_PATTERN_STRIDED);
	REFUSED("an odd block", block_bytes, 513, BRIM_PATTERN_RANDOM);
	REFUSED("a large block", block_bytes, 2u << 20, BRIM_PATTERN_RANDOM);
	REFUSED("an odd offset", off_bytes, 100, BRIM_PATTERN_RANDOM);
	REFUSED("an offset past all", off_bytes, UINT64_MAX - 511,
		BRIM_PATTERN_RANDOM);
	REFUSED("a range past all", size_bytes, BRIM_MAX_BYTES + 1,
		BRIM_PATTERN_RANDOM);
	REFUSED("a range of no block", size_bytes, 4095, BRIM_PATTERN_RANDOM);
	REFUSED("more than all reads", read_ppm, 1000001, BRIM_PATTERN_RANDOM);
	REFUSED("sizes that vary", sizes, &d, BRIM_PATTERN_PERMUTATION);
	REFUSED("sizes that vary", sizes, &d, BRIM_PATTERN_STRIDED);
	d.min = d.max = 44 * KIB;
	d.kind = BRIM_DIST_FIXED;
	REFUSED("an I/O larger than the range", sizes, &d, BRIM_PATTERN_RANDOM);
	REFUSED("no sizes", struct_bytes, 0, BRIM_PATTERN_RANDOM);
}

/* Of the first 1000 operations and a block, for each pattern. */
static void test_golden(void)
{
	static const uint32_t want[] = { 0x54d0c2a6, 0x802298ec, 0xc3fe3119,
					 0x3663f0dc, 0x6c76e004, 0xec97b1a1 };
	enum brim_pattern p;
	uint32_t got[6];
	uint8_t block[4096];

	for (p = BRIM_PATTERN_SEQUENTIAL; p <= BRIM_PATTERN_ZIPF; p++) {
		struct brim_workload_options o = base(p, 12345 * 4 * KIB);
		struct brim_workload *w;
		struct brim_workload_cursor c;
		struct brim_workload_op op = { 0 };
		int k;

		o.read_ppm = 400000;
		w = make(&o);
		brim_workload_begin(w, &c);
		got[p - 1] = 0;
		for (k = 0; k < 1000 && brim_workload_next(w, &c, &op); k++)
			got[p - 1] = brim_crc(BRIM_CRC32C, got[p - 1], &op,
					      sizeof(op) - 8 + 4);
		brim_workload_block(w, 4096, 7, block);
		got[5] = brim_crc(BRIM_CRC32C, 0, block, sizeof(block));
		brim_workload_free(w);
	}
	ok(!memcmp(got, want, sizeof(got)), "golden values",
	   "0x%08x, 0x%08x, 0x%08x, 0x%08x, 0x%08x, 0x%08x", got[0], got[1],
	   got[2], got[3], got[4], got[5]);
}

int main(void)
{
	test_cover();
	test_order();
	test_laws();
	test_permutation();
	test_sizes();
	test_ends();
	test_refused();
	test_golden();
	return tap_end();
}
