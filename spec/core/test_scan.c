/* SPDX-License-Identifier: MIT */
/*
 * test_scan.c: scans find what is wrong and nothing else: integers in their
 * width, checksums with the field that holds them, dense instances read
 * together, devices with alignment, every engine alike.
 */
#include <errno.h>
#include <inttypes.h>

#include "run_helper.h"

static uint64_t seed;

struct result {
	int ret;
	struct brim_err e;
	struct brim_run_stats st;
	struct brim_mismatch first;
	uint32_t kept;
};

static struct result scan(const struct brim_scan *s, struct brim_device *d,
			  uint64_t off, uint64_t stride, uint64_t count,
			  const struct brim_run_options *o)
{
	struct result res = { .st.struct_bytes = sizeof(res.st) };
	struct brim_scan_range range = { off, stride, 0, count };
	struct brim_mismatch m;
	struct brim_run *r;

	res.ret = brim_scan_open(&r, s, d, &range, o, &res.e);
	if (res.ret < 0)
		return res;
	do
		res.ret = brim_run_step(r, 50000, &res.st, &res.e);
	while (res.ret == 1);
	brim_run_mismatch(r, 0, &res.first);
	while (!brim_run_mismatch(r, res.kept, &m))
		res.kept++;
	brim_run_close(r);
	return res;
}

static struct result scan_groups(struct world *w,
				 const struct brim_run_options *o)
{
	return scan(w->scan, &w->m->dev, GROUPS_AT, GROUP_BYTES, GROUPS, o);
}

/* The strings belong to the scan and the layouts, which are still there. */
static bool is_first(const struct result *r, uint64_t off, uint64_t group,
		     const char *piece, const char *what)
{
	return r->st.mismatches && r->first.off_bytes == off &&
	       r->first.group == group && !strcmp(r->first.piece, piece) &&
	       !strcmp(r->first.what, what);
}

static const struct brim_run_options OPTIONS[] = {
	{ sizeof(OPTIONS[0]), "sync", 1, 0, 1, 0 },
	{ sizeof(OPTIONS[0]), "sync", 16, 0, 2, 0 },
	{ sizeof(OPTIONS[0]), "sync", 64, 0, 16, 4 },
	{ sizeof(OPTIONS[0]), "fault:at=3,times=9,short=1000,inner=sync", 7, 0,
	  3, 0 },
	{ sizeof(OPTIONS[0]), "fault:at=5,times=2,errno=EAGAIN,inner=sync", 0,
	  0, 0, 0 },
};
#define OPTION_COUNT (sizeof(OPTIONS) / sizeof(OPTIONS[0]))

/* ---------------------------------------------------------------- what is
 * right */

static void test_intact(struct world *w)
{
	static const uint32_t ALIGN[] = { 1, 512, 4096 };
	struct brim_device *d;
	struct result r;
	size_t k, a;

	for (k = 0; k < OPTION_COUNT; k++) {
		for (a = 0; a < 3; a++) {
			world_fill(w);
			w->m->dev.info.align_bytes = ALIGN[a];
			r = scan_groups(w, &OPTIONS[k]);
			ok(!r.ret && !r.st.mismatches &&
				   r.st.groups_done == GROUPS &&
				   r.st.groups_total == GROUPS &&
				   r.st.ios_done == r.st.ios_total &&
				   r.st.bytes_done == r.st.bytes_total,
			   "intact: nothing found",
			   "options %zu, align %u: %d %s, %" PRIu64, k,
			   ALIGN[a], r.ret, r.e.msg, r.st.mismatches);
		}
	}
	w->m->dev.info.align_bytes = 1;
	brim_device_open_plan(&d, w->plan, NULL);
	r = scan(w->scan, d, GROUPS_AT, GROUP_BYTES, GROUPS, NULL);
	ok(!r.ret && !r.st.mismatches && r.st.groups_done == GROUPS,
	   "intact: a rendered image", "%d %s", r.ret, r.e.msg);
	brim_device_close(d);
}

/* ---------------------------------------------------------------- what is
 * wrong */

static void test_integer(struct world *w)
{
	uint64_t at = GROUPS_AT + 11 * GROUP_BYTES + 4;
	struct result r;
	size_t k;

	for (k = 0; k < OPTION_COUNT; k++) {
		world_fill(w);
		w->m->bytes[at + 3] = 200;
		brim_layout_seal(w->hdr, w->m->bytes + at - 4, 512);
		r = scan_groups(w, &OPTIONS[k]);
		ok(!r.ret && r.st.mismatches == 1 && r.kept == 1 &&
			   is_first(&r, at, 11, "hdr", "number") &&
			   r.first.expected == 11 && r.first.found == 200,
		   "integer: found", "options %zu: %" PRIu64, k,
		   r.st.mismatches);
	}
}

static void test_checksum(struct world *w)
{
	uint64_t at = GROUPS_AT + 12 * GROUP_BYTES + TREE_AT;
	uint64_t right;
	struct result r;

	world_fill(w);
	right = brim__load(w->m->bytes + at + 16, 4, BRIM_LITTLE);
	w->m->bytes[at + 4000] ^= 1;
	r = scan_groups(w, NULL);
	ok(!r.ret && r.st.mismatches == 1 &&
		   is_first(&r, at + 16, 12, "tree", "crc") &&
		   r.first.found == right && r.first.expected != right,
	   "checksum: its field is named", "%" PRIu64, r.st.mismatches);
	w->m->bytes[at + 4000] ^= 1;
	w->m->bytes[at + 17] ^= 1;
	r = scan_groups(w, NULL);
	ok(!r.ret && r.st.mismatches == 1 &&
		   is_first(&r, at + 16, 12, "tree", "crc") &&
		   r.first.expected == right,
	   "checksum: what it should be", "%" PRIu64, r.st.mismatches);
}

/* Random damage of every kind; each counts once, the lowest are kept. */
static void test_random(struct world *w)
{
	uint64_t state = seed, k, n, wrong, lowest;
	unsigned int round, right = 0;
	struct result r;

	for (round = 0; round < 50; round++) {
		bool hit[GROUPS] = { false };

		world_fill(w);
		wrong = 0;
		lowest = GROUPS;
		for (k = tap_below(&state, 30); k > 0; k--) {
			n = tap_below(&state, GROUPS);
			wrong += hit[n] ? 0 : 2;
			hit[n] = true;
			lowest = BRIM__MIN(lowest, n);
			/* The number is wrong, and so is the checksum. */
			w->m->bytes[GROUPS_AT + n * GROUP_BYTES + 7] =
				(uint8_t)(100 + n);
		}
		r = scan_groups(w, &OPTIONS[round % OPTION_COUNT]);
		right += !r.ret && r.st.mismatches == wrong &&
			 (!wrong || r.first.group == lowest);
	}
	ok(right == 50, "random: all damage counted", "%u of 50", right);
}

/* ------------------------------------------------------------ dense tables */

static void test_dense(struct world *w)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_scan *s;
	struct result r;

	brim_scan_create(&s, NULL);
	brim_scan_expect_int(s, 8, 8, BRIM_LITTLE, 1000, 3, "record", "id",
			     NULL);
	world_fill(w);
	r = scan(s, &w->m->dev, TABLE_AT, RECORD_BYTES, RECORDS, &o);
	ok(!r.ret && !r.st.mismatches && r.st.reads == 1 &&
		   r.st.groups_done == RECORDS,
	   "dense: read together", "%d %s, %" PRIu64 " reads", r.ret, r.e.msg,
	   r.st.reads);
	o.max_io_bytes = 4096;
	w->m->bytes[TABLE_AT + 333 * RECORD_BYTES + 8]++;
	r = scan(s, &w->m->dev, TABLE_AT, RECORD_BYTES, RECORDS, &o);
	ok(!r.ret && r.st.mismatches == 1 && r.st.reads == 8 &&
		   is_first(&r, TABLE_AT + 333 * RECORD_BYTES + 8, 333,
			    "record", "id") &&
		   r.first.found == r.first.expected + 1,
	   "dense: in parts", "%d %s, %" PRIu64 " reads", r.ret, r.e.msg,
	   r.st.reads);
	brim_scan_free(s);
}

/* An integer wraps in its width; a negative one is its bit pattern. */
static void test_width(struct world *w)
{
	struct brim_scan *s;
	struct result r;
	uint64_t k;

	brim_scan_create(&s, NULL);
	brim_scan_expect_int(s, 0, 1, BRIM_BIG, -1, 7, "x", "byte", NULL);
	brim_scan_expect_int(s, 1, 2, BRIM_LITTLE, -2, -3, "x", "pair", NULL);
	brim_scan_expect_int(s, 3, 8, BRIM_BIG, INT64_MAX, 1, "x", "wide",
			     NULL);
	for (k = 0; k < 100; k++) {
		uint8_t *at = w->m->bytes + 11 * k;

		brim__store(at, 1, BRIM_BIG, 7 * k - 1);
		brim__store(at + 1, 2, BRIM_LITTLE, (uint64_t)-2 - 3 * k);
		brim__store(at + 3, 8, BRIM_BIG, INT64_MAX + k);
	}
	r = scan(s, &w->m->dev, 0, 11, 100, NULL);
	ok(!r.ret && !r.st.mismatches, "width: values wrap in it",
	   "%d %s, %" PRIu64, r.ret, r.e.msg, r.st.mismatches);
	brim_scan_free(s);
}

/* ---------------------------------------------------------------- refusals */

static void refused(struct world *w, uint64_t off, uint64_t stride,
		    uint64_t count, int code, const char *says)
{
	struct result r = scan(w->scan, &w->m->dev, off, stride, count, NULL);

	ok(r.ret == code && strstr(r.e.msg, says), "refused",
	   "wanted %d %s, got %d %s", code, says, r.ret, r.e.msg);
}

static void test_refusals(struct world *w)
{
	struct brim_scan *s;
	struct brim_err e;
	struct result r;
	int ret;

	world_fill(w);
	refused(w, GROUPS_AT, GROUP_BYTES, 0, -EINVAL, "at least 1");
	refused(w, GROUPS_AT, 0, 2, -EINVAL, "at least 1");
	refused(w, GROUPS_AT, GROUP_BYTES, 200, -ERANGE, "instance 199 ends");
	refused(w, UINT64_MAX, GROUP_BYTES, 2, -ERANGE, "instance 1 ends");
	refused(w, 0, UINT64_MAX / 2, 100, -ERANGE, "instance 99 ends");
	brim_scan_create(&s, NULL);
	r = scan(s, &w->m->dev, 0, 1, 1, NULL);
	ok(r.ret == -EINVAL && strstr(r.e.msg, "nothing is expected"),
	   "refused: an empty scan", "%d %s", r.ret, r.e.msg);
	ret = brim_scan_expect_int(s, 0, 3, BRIM_BIG, 0, 0, "x", "three", &e);
	ok(ret == -EINVAL && strstr(e.msg, "'three': an integer has"),
	   "refused: a width", "%d %s", ret, e.msg);
	ret = brim_scan_expect_int(s, 0, 4, 0, 0, 0, "x", "order", &e);
	ok(ret == -EINVAL && strstr(e.msg, "'order': the byte order"),
	   "refused: no order", "%d %s", ret, e.msg);
	ret = brim_scan_expect_int(s, INT64_MAX, 4, BRIM_BIG, 0, 0, "x", "y",
				   &e);
	ok(ret == -ERANGE, "refused: past the largest offset", "%d %s", ret,
	   e.msg);
	ret = brim_scan_expect_layout(s, w->hdr, 0, 511, &e);
	ok(ret == -EINVAL && strstr(e.msg, "hdr in 511 bytes"),
	   "refused: a layout too small", "%d %s", ret, e.msg);
	brim_scan_expect_layout(s, w->hdr, 0, 512, &e);
	ret = brim_scan_expect_layout(s, w->hdr, UINT64_C(1) << 40, 512, &e);
	ok(ret == -EFBIG && strstr(e.msg, "use a second scan"),
	   "refused: too far apart", "%d %s", ret, e.msg);
	r = scan(s, &w->m->dev, 0, 512, 1,
		 &(struct brim_run_options){ sizeof(OPTIONS[0]), "null", 0, 0,
					     0, 0 });
	ok(r.ret == -EINVAL && strstr(r.e.msg, "null reads nothing"),
	   "refused: the null engine", "%d %s", r.ret, r.e.msg);
	brim_scan_free(s);
}

static const struct brim_scan_field TINY = { 21, 1, BRIM_BIG, "r", "tiny" };

static void refused_sum(struct brim_scan *s, struct brim_scan_accumulator a,
			int code, const char *says)
{
	struct brim_err e = { 0 };
	int ret;

	a.struct_bytes = sizeof(a);
	ret = brim_scan_accumulate(s, &TINY, &a, &e);
	ok(ret == code && strstr(e.msg, says), "refused",
	   "wanted %d %s, got %d %s", code, says, ret, e.msg);
}

static void test_gather_refusals(void)
{
	const struct brim_affine v[2] = { { 0, 0 }, { 1, 0 } };
	const struct brim_scan_test tests[] = {
		{ BRIM_SCAN_EQUAL, v, 2 },    { BRIM_SCAN_ANY, v, 1 },
		{ BRIM_SCAN_RANGE, v, 1 },    { BRIM_SCAN_ONE_OF, v, 0 },
		{ BRIM_SCAN_ONE_OF, v, 257 }, { (enum brim_scan_rule)9, v, 1 },
	};
	const struct brim_scan_accumulator even = {
		.struct_bytes = sizeof(even),
		.kind = BRIM_SCAN_HISTOGRAM,
		.name = "x",
		.to = 10,
		.bins = 5,
	};
	struct brim_scan_field bad = TINY;
	struct brim_scan *s;
	struct brim_err e;
	size_t k;
	int ret;

	brim_scan_create(&s, NULL);
	refused_sum(s, (struct brim_scan_accumulator){ .kind = 0, .name = "x" },
		    -EINVAL, "a kind and a name");
	refused_sum(s, (struct brim_scan_accumulator){ .kind = 6, .name = "x" },
		    -EINVAL, "a kind and a name");
	refused_sum(s, (struct brim_scan_accumulator){ .kind = BRIM_SCAN_SUM },
		    -EINVAL, "a kind and a name");
	refused_sum(s,
		    (struct brim_scan_accumulator){ .kind = BRIM_SCAN_HISTOGRAM,
						    .name = "x",
						    .from = 4,
						    .to = 4,
						    .bins = 1 },
		    -EINVAL, "from is less than to");
	refused_sum(s,
		    (struct brim_scan_accumulator){ .kind = BRIM_SCAN_HISTOGRAM,
						    .name = "x",
						    .to = 4,
						    .bins = 5 },
		    -EINVAL, "at most to - from");
	brim_scan_accumulate(s, &TINY, &even, NULL);
	refused_sum(s,
		    (struct brim_scan_accumulator){ .kind = BRIM_SCAN_HISTOGRAM,
						    .name = "x" },
		    -EEXIST, "described in another way");
	for (k = 0; k < sizeof(tests) / sizeof(*tests); k++) {
		ret = brim_scan_expect(s, &TINY, &tests[k], &e);
		ok(ret == -EINVAL && strstr(e.msg, "'tiny': any has no values"),
		   "refused: a number of values", "%zu: %d %s", k, ret, e.msg);
	}
	bad.width_bytes = 3;
	ok(brim_scan_column(s, &bad, &e) == -EINVAL, "refused: a width",
	   "taken");
	bad = TINY;
	bad.off_bytes = UINT64_C(1) << 40;
	ok(brim_scan_column(s, &bad, &e) == -EFBIG, "refused: too far apart",
	   "taken");
	brim_scan_free(s);
}

/* A read that fails ends the scan with its place. */
static void test_error(struct world *w)
{
	struct brim_run_options o = OPTIONS[1];
	unsigned int at, right = 0;
	struct result r;
	char spec[64];

	o.engine = spec;
	o.max_io_bytes = 8192; /* one group each */
	world_fill(w);
	for (at = 1; at <= GROUPS; at++) {
		snprintf(spec, sizeof(spec), "fault:at=%u,errno=EIO,inner=sync",
			 at);
		r = scan_groups(w, &o);
		right += r.ret == -EIO && !strcmp(r.e.op, "read") &&
			 r.e.offset_bytes == GROUPS_AT + (at - 1) * GROUP_BYTES;
	}
	ok(right == GROUPS, "error: names its place", "%u of %u: %s", right,
	   GROUPS, r.e.msg);
}

int main(void)
{
	struct world w = world_new();

	seed = tap_seed(99);
	test_intact(&w);
	test_integer(&w);
	test_checksum(&w);
	test_random(&w);
	test_dense(&w);
	test_width(&w);
	test_refusals(&w);
	test_gather_refusals();
	test_error(&w);
	world_free(&w);
	return tap_end();
}
