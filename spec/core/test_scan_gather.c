/* SPDX-License-Identifier: MIT */
/*
 * test_scan_gather.c: what scans gather is what a loop over the same bytes
 * finds: sums past 64 bits, extremes with their place, counts, histograms, rows
 * in order whatever the order of completion; ranges and sets; the first
 * mismatches of each kind, in memory that does not grow.
 */
#include <errno.h>
#include <inttypes.h>

#include "run_helper.h"

#define RECORDS_MANY 3000u
#define RECORD 40u

static uint64_t seed;

static const struct brim_run_options OPTIONS[] = {
	{ .struct_bytes = sizeof(OPTIONS[0]),
	  .engine = "sync",
	  .queue_depth = 1,
	  .threads = 1 },
	{ .struct_bytes = sizeof(OPTIONS[0]),
	  .engine = "sync",
	  .queue_depth = 16,
	  .max_io_bytes = 4096,
	  .threads = 4 },
	{ .struct_bytes = sizeof(OPTIONS[0]),
	  .engine = "fault:at=3,times=9,short=100,inner=sync",
	  .queue_depth = 7,
	  .max_io_bytes = 512,
	  .threads = 3 },
};
#define OPTION_COUNT (sizeof(OPTIONS) / sizeof(OPTIONS[0]))

static const struct brim_scan_field WIDE = { 8, 8, BRIM_LITTLE, "r", "wide" };
static const struct brim_scan_field HALF = { 16, 4, BRIM_BIG, "r", "half" };
static const struct brim_scan_field TINY = { 21, 1, BRIM_BIG, "r", "tiny" };

static uint64_t get(const struct memdev *m, uint64_t i,
		    const struct brim_scan_field *f)
{
	return brim__load(m->bytes + i * RECORD + f->off_bytes, f->width_bytes,
			  f->endian);
}

static void randomize(struct memdev *m, uint64_t *state)
{
	uint64_t k;

	for (k = 0; k < RECORDS_MANY * RECORD; k += 8)
		brim__store(m->bytes + k, 8, BRIM_LITTLE, tap_random(state));
}

static int accumulate(struct brim_scan *s, const struct brim_scan_field *f,
		      enum brim_scan_kind kind, const char *name, uint64_t from,
		      uint64_t to, uint32_t bins)
{
	struct brim_scan_accumulator a = {
		.struct_bytes = sizeof(a),
		.kind = kind,
		.name = name,
		.from = from,
		.to = to,
		.bins = bins,
	};

	return brim_scan_accumulate(s, f, &a, NULL);
}

/* Runs it over all records; the run is the caller's to close. */
static struct brim_run *run(const struct brim_scan *s, struct memdev *m,
			    const struct brim_run_options *o,
			    struct brim_run_stats *st)
{
	struct brim_scan_range range = { 0, RECORD, 0, RECORDS_MANY };
	struct brim_err e = { 0 };
	struct brim_run *r;
	int ret = brim_scan_open(&r, s, &m->dev, &range, o, &e);

	st->struct_bytes = sizeof(*st);
	while (ret >= 0 && (ret = brim_run_step(r, 20000, st, &e)) == 1)
		;
	ok(!ret, "run: to its end", "%d %s", ret, e.msg);
	return r;
}

static struct brim_scan_total total(const struct brim_run *r, int k)
{
	struct brim_scan_total t = { .struct_bytes = sizeof(t) };

	brim_scan_total(r, (size_t)k, &t);
	return t;
}

/* ------------------------------------------------------------ accumulators */

static void check_sums(struct memdev *m, const struct brim_run *r, int wide,
		       int both)
{
	unsigned __int128 a = 0, b = 0;
	struct brim_scan_total t;
	uint64_t i;

	for (i = 0; i < RECORDS_MANY; i++) {
		a += get(m, i, &WIDE);
		b += get(m, i, &HALF);
		b += get(m, i, &TINY);
	}
	t = total(r, wide);
	ok(t.sum_low == (uint64_t)a && t.sum_high == (uint64_t)(a >> 64) &&
		   t.sum_high > 0 && t.seen == RECORDS_MANY,
	   "sum: past 64 bits", "%" PRIu64 " %" PRIu64, t.sum_high, t.sum_low);
	t = total(r, both);
	ok(t.sum_low == (uint64_t)b && !t.sum_high &&
		   t.seen == 2 * RECORDS_MANY,
	   "sum: of two fields", "%" PRIu64, t.sum_low);
}

static void check_extremes(struct memdev *m, const struct brim_run *r,
			   const struct brim_scan_field *f, int min, int max)
{
	struct brim_scan_total a = total(r, min), b = total(r, max);
	uint64_t i, low = 0, high = 0;

	for (i = 1; i < RECORDS_MANY; i++) {
		if (get(m, i, f) < get(m, low, f))
			low = i;
		if (get(m, i, f) > get(m, high, f))
			high = i;
	}
	ok(a.group == low && a.value == get(m, low, f) &&
		   a.off_bytes == low * RECORD + f->off_bytes,
	   "min: the first of the least", "%" PRIu64 " in %" PRIu64, a.value,
	   a.group);
	ok(b.group == high && b.value == get(m, high, f) &&
		   b.off_bytes == high * RECORD + f->off_bytes,
	   "max: the first of the greatest", "%" PRIu64 " in %" PRIu64, b.value,
	   b.group);
}

/* Every bin has what lies between its bounds, and the bounds leave no gap. */
static void check_bins(struct memdev *m, const struct brim_run *r,
		       const struct brim_scan_field *f, int k, uint64_t from,
		       uint64_t last_of_all)
{
	struct brim_scan_total t = total(r, k);
	uint64_t i, first, last, at = from, below = 0, above = 0;
	unsigned int wrong = 0;
	uint32_t b;

	for (b = 0; b < t.bins; b++) {
		uint64_t n = 0;

		brim_scan_bin(r, (size_t)k, b, &first, &last);
		wrong += first != at || last < first;
		at = last + 1;
		for (i = 0; i < RECORDS_MANY; i++)
			n += get(m, i, f) >= first && get(m, i, f) <= last;
		wrong += n != t.bin_counts[b];
	}
	for (i = 0; i < RECORDS_MANY; i++) {
		below += get(m, i, f) < from;
		above += get(m, i, f) > last_of_all;
	}
	ok(!wrong && at - 1 == last_of_all && t.below == below &&
		   t.above == above && t.bins,
	   "histogram", "%u of %u bins are wrong, %" PRIu64 " %" PRIu64, wrong,
	   t.bins, t.below, t.above);
}

static void test_accumulators(struct memdev *m)
{
	static const struct brim_affine VALUES[] = { { 3, 0 }, { 0, 1 } };
	struct brim_scan_accumulator c = {
		.struct_bytes = sizeof(c),
		.kind = BRIM_SCAN_COUNT,
		.name = "hits",
		.test = { BRIM_SCAN_ONE_OF, VALUES, 2 },
	};
	uint64_t state = seed, i, hits = 0;
	struct brim_run_stats st;
	struct brim_scan *s;
	struct brim_run *r;
	size_t o;
	int n[11];

	randomize(m, &state);
	brim_scan_create(&s, NULL);
	n[0] = accumulate(s, &WIDE, BRIM_SCAN_SUM, "wide", 0, 0, 0);
	n[1] = accumulate(s, &HALF, BRIM_SCAN_SUM, "both", 0, 0, 0);
	accumulate(s, &TINY, BRIM_SCAN_SUM, "both", 0, 0, 0);
	n[2] = accumulate(s, &WIDE, BRIM_SCAN_MIN, "wide", 0, 0, 0);
	n[3] = accumulate(s, &WIDE, BRIM_SCAN_MAX, "wide", 0, 0, 0);
	n[4] = accumulate(s, &TINY, BRIM_SCAN_MIN, "tiny", 0, 0, 0);
	n[5] = accumulate(s, &TINY, BRIM_SCAN_MAX, "tiny", 0, 0, 0);
	n[6] = brim_scan_accumulate(s, &TINY, &c, NULL);
	n[7] = accumulate(s, &WIDE, BRIM_SCAN_HISTOGRAM, "log", 0, 0, 0);
	n[8] = accumulate(s, &WIDE, BRIM_SCAN_HISTOGRAM, "huge", 5,
			  UINT64_MAX - 9, 4096);
	n[9] = accumulate(s, &TINY, BRIM_SCAN_HISTOGRAM, "seven", 20, 203, 7);
	n[10] = accumulate(s, &TINY, BRIM_SCAN_HISTOGRAM, "all", 0, 256, 256);
	for (i = 0; i < RECORDS_MANY; i++)
		hits += get(m, i, &TINY) == 3 || get(m, i, &TINY) == (i & 255);
	for (o = 0; o < OPTION_COUNT; o++) {
		r = run(s, m, &OPTIONS[o], &st);
		check_sums(m, r, n[0], n[1]);
		check_extremes(m, r, &WIDE, n[2], n[3]);
		check_extremes(m, r, &TINY, n[4], n[5]);
		ok(total(r, n[6]).count == hits && hits > 5, "count",
		   "%" PRIu64 " of %" PRIu64, total(r, n[6]).count, hits);
		check_bins(m, r, &WIDE, n[7], 0, UINT64_MAX);
		check_bins(m, r, &WIDE, n[8], 5, UINT64_MAX - 10);
		check_bins(m, r, &TINY, n[9], 20, 202);
		check_bins(m, r, &TINY, n[10], 0, 255);
		ok(brim_scan_total(r, 11, &(struct brim_scan_total){ 0 }) ==
			   -ENOENT,
		   "total: none past the last", "there is");
		brim_run_close(r);
	}
	brim_scan_free(s);
}

/* ------------------------------------------------------------------- rules */

static uint64_t passing(struct memdev *m, const struct brim_scan_field *f,
			enum brim_scan_rule rule,
			const struct brim_affine *values, size_t n,
			struct brim_mismatch *first)
{
	struct brim_scan_test t = { rule, values, n };
	struct brim_run_stats st;
	struct brim_scan *s;
	struct brim_run *r;

	brim_scan_create(&s, NULL);
	ok(!brim_scan_expect(s, f, &t, NULL), "rule: taken", "refused");
	r = run(s, m, &OPTIONS[1], &st);
	memset(first, 0, sizeof(*first));
	brim_run_mismatch(r, 0, first);
	brim_run_close(r);
	brim_scan_free(s);
	return RECORDS_MANY - st.mismatches;
}

static void test_rules(struct memdev *m)
{
	const struct brim_affine narrow[] = { { -5, 0 }, { 0, 1 } };
	const struct brim_affine wide[] = { { 1000, 0 }, { INT64_MIN, 0 } };
	const struct brim_affine none[] = { { 0, 0 }, { -1, 0 } };
	struct brim_mismatch first;
	uint64_t state = seed + 1, i, n = 0, p = 0;

	randomize(m, &state);
	brim__store(m->bytes + WIDE.off_bytes, 8, BRIM_LITTLE, 999);
	for (i = 0; i < RECORDS_MANY; i++) {
		n += get(m, i, &TINY) <= i;
		p += get(m, i, &WIDE) >= 1000 &&
		     get(m, i, &WIDE) <= UINT64_C(1) << 63;
	}
	i = passing(m, &TINY, BRIM_SCAN_RANGE, narrow, 2, &first);
	ok(i == n && n < RECORDS_MANY && !strcmp(first.rule, "<=") &&
		   first.expected == first.group && first.found > first.group,
	   "range: affine, of a narrow field", "%" PRIu64 " of %" PRIu64, i, n);
	i = passing(m, &WIDE, BRIM_SCAN_RANGE, wide, 2, &first);
	ok(i == p && p > 1000 && p < 2000 && !strcmp(first.rule, ">=") &&
		   first.expected == 1000 && first.found == 999 && !first.group,
	   "range: unsigned in 64 bits", "%" PRIu64 " of %" PRIu64, i, p);
	i = passing(m, &TINY, BRIM_SCAN_RANGE, none, 2, &first);
	ok(!i, "range: an empty one", "%" PRIu64, i);
	i = passing(m, &WIDE, BRIM_SCAN_RANGE, none, 2, &first);
	ok(i == RECORDS_MANY, "range: all of 64 bits", "%" PRIu64, i);
	for (i = n = 0; i < RECORDS_MANY; i++)
		n += get(m, i, &TINY) == 251 || get(m, i, &TINY) == (i & 255);
	i = passing(m, &TINY, BRIM_SCAN_ONE_OF, narrow, 2, &first);
	ok(i == n && n && !strcmp(first.rule, "in") && first.expected == 251,
	   "one of: in the field's width", "%" PRIu64 " of %" PRIu64, i, n);
}

/* ------------------------------------------------------------------- kinds */

static void test_kinds(struct memdev *m)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_mismatch_kind kind;
	struct brim_mismatch x;
	struct brim_run_stats st;
	struct brim_scan *s;
	struct brim_run *r;
	uint64_t k, right = 0, at = 0, sorted = 0;

	memset(m->bytes, 0, RECORDS_MANY * RECORD);
	memset(m->bytes, 1, 20 * RECORD); /* the first 20 are wrong in "b" */
	brim_scan_create(&s, NULL);
	brim_scan_expect_int(s, 0, 1, BRIM_BIG, 7, 0, "x", "a", NULL);
	brim_scan_expect_int(s, 1, 1, BRIM_BIG, 0, 0, "x", "b", NULL);
	o.max_mismatches = 3;
	r = run(s, m, &o, &st);
	ok(st.mismatches == RECORDS_MANY + 20, "kinds: all are counted",
	   "%" PRIu64, st.mismatches);
	for (k = 0; !brim_run_mismatch(r, k, &x); k++) {
		right += x.group == k / 2 && !strcmp(x.what, k % 2 ? "b" : "a");
		sorted += x.off_bytes >= at;
		at = x.off_bytes;
	}
	ok(k == 6 && right == 6 && sorted == 6, "kinds: the first of each",
	   "%" PRIu64 " kept, %" PRIu64 " right", k, right);
	for (k = 0, right = 0; !brim_run_mismatch_kind(r, k, &kind); k++)
		right += (!strcmp(kind.what, "a") &&
			  kind.count == RECORDS_MANY) ||
			 (!strcmp(kind.what, "b") && kind.count == 20 &&
			  !kind.group && kind.off_bytes == 1);
	ok(k == 2 && right == 2, "kinds: with their counts", "%" PRIu64, right);
	brim_run_close(r);
	brim_scan_free(s);
}

/* However many there are. */
static void test_many_kinds(struct memdev *m)
{
	struct brim_mismatch_kind kind;
	struct brim_run_stats st;
	struct brim_scan *s;
	struct brim_run *r;
	uint64_t k, right;
	char name[8];

	brim_scan_create(&s, NULL);
	for (k = 0; k < 300; k++) {
		snprintf(name, sizeof(name), "f%" PRIu64, k);
		brim_scan_expect_int(s, 0, 1, BRIM_BIG, 7, 0, "x", name, NULL);
	}
	r = run(s, m, &OPTIONS[1], &st);
	for (k = 0, right = 0; !brim_run_mismatch_kind(r, k, &kind); k++)
		right += kind.count;
	ok(k == 256 && right == 300 * RECORDS_MANY &&
		   !brim_run_mismatch_kind(r, 255, &kind) &&
		   !strcmp(kind.what, "other") &&
		   kind.count == 45 * RECORDS_MANY,
	   "kinds: no more than 256", "%" PRIu64 " %" PRIu64, k, right);
	brim_run_close(r);
	brim_scan_free(s);
}

/* -------------------------------------------------------------------- rows */

/* Takes rows as they come; how many were right and in order. */
static uint64_t take_rows(struct memdev *m, struct brim_run *r, size_t max,
			  uint64_t *next)
{
	struct brim_scan_rows rows = { .struct_bytes = sizeof(rows) };
	uint64_t right = 0;
	size_t k;

	while (brim_scan_take(r, max, &rows)) {
		for (k = 0; k < rows.rows; k++, ++*next)
			right += rows.first + k == *next && rows.columns == 2 &&
				 rows.rows <= max &&
				 rows.values[2 * k] == get(m, *next, &WIDE) &&
				 rows.values[2 * k + 1] == get(m, *next, &TINY);
	}
	return right;
}

static void rows_of(struct memdev *m, const struct brim_scan *s,
		    const struct brim_run_options *o, uint32_t window,
		    size_t max)
{
	struct brim_scan_range range = { 0, RECORD, 7, RECORDS_MANY - 7 };
	struct brim_err e = { 0 };
	struct brim_run *r;
	uint64_t next = 7, right = 0, steps = 0;
	int ret;

	ret = brim_scan_open(&r, s, &m->dev, &range, o, &e);
	if (!ret)
		ret = brim_scan_collect(r, window, &e);
	if (!ret)
		do {
			ret = brim_run_step(r, 0, NULL, &e);
			right += take_rows(m, r, max, &next);
			steps++;
		} while (ret == 1);
	ok(!ret && next == RECORDS_MANY && right == RECORDS_MANY - 7,
	   "rows: all, in order", "%d %s: %" PRIu64 " of %" PRIu64, ret, e.msg,
	   right, next);
	ok(o->max_io_bytes != 512 || window != 1 || steps > 5, "rows: bounded",
	   "all in %" PRIu64 " steps", steps);
	brim_run_close(r);
}

static void test_rows(struct memdev *m)
{
	struct brim_scan_range range = { 0, RECORD, 0, RECORDS_MANY };
	uint64_t state = seed + 2;
	struct brim_err e;
	struct brim_scan *s;
	struct brim_run *r;
	size_t o;
	int ret;

	randomize(m, &state);
	brim_scan_create(&s, NULL);
	brim_scan_expect_int(s, 0, 1, BRIM_BIG, 7, 0, "x", "a", NULL);
	brim_scan_open(&r, s, &m->dev, &range, NULL, NULL);
	ret = brim_scan_collect(r, 0, &e);
	ok(ret == -EINVAL && strstr(e.msg, "with columns"),
	   "rows: not without columns", "%d %s", ret, e.msg);
	brim_run_close(r);
	brim_scan_column(s, &WIDE, NULL);
	brim_scan_column(s, &TINY, NULL);
	m->sleep_ns = 20000;
	for (o = 0; o < OPTION_COUNT; o++) {
		rows_of(m, s, &OPTIONS[o], 0, 4096);
		rows_of(m, s, &OPTIONS[o], 1, 1);
		rows_of(m, s, &OPTIONS[o], 100, 77);
	}
	m->sleep_ns = 0;
	/* One that nobody takes from never ends. */
	brim_scan_open(&r, s, &m->dev, &range, &OPTIONS[2], NULL);
	brim_scan_collect(r, 1, NULL);
	for (o = 0; o < 50 && brim_run_step(r, 0, NULL, NULL) == 1; o++)
		;
	ok(o == 50, "rows: it waits until they are taken", "%zu steps", o);
	brim_run_close(r);
	brim_scan_free(s);
}

int main(void)
{
	struct memdev *m = memdev_new(RECORDS_MANY * RECORD);

	seed = tap_seed(77);
	test_accumulators(m);
	test_rules(m);
	test_kinds(m);
	test_many_kinds(m);
	test_rows(m);
	memdev_free(m);
	return tap_end();
}
