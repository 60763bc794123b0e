/* SPDX-License-Identifier: MIT */
/*
 * fuzz_scan.c: scans of a small device: fields, tests, accumulators and columns
 * of any place and width, instances of any stride, the device's bytes: all from
 * the input. What is refused has a reason; what runs counts, adds up and hands
 * out what a loop over the same bytes does.
 */
#include "../core/memdev.h"
#include "brim.h"
#include "fuzz.h"

#define DEVICE_BYTES 2048u
#define PARTS_MAX 8u

/* One thing of the scan, and what the loop makes of it. */
struct part {
	struct brim_scan_field at;
	struct brim_affine values[3];
	struct brim_scan_test test;
	struct brim_scan_accumulator acc;
	int what;   /* 0: expectation, 1: accumulator, 2: column */
	int number; /* the scan's */
};

static struct memdev *device;

/* ------------------------------------------------------------------- input */

static void take_part(struct feed *f, struct part *p)
{
	static const uint32_t widths[] = { 1, 2, 4, 8, 3 };
	static const char *const names[] = { "a", "b" };
	uint8_t kind = feed_byte(f), form = feed_byte(f);
	uint32_t k;

	memset(p, 0, sizeof(*p));
	p->what = kind % 3;
	p->at.off_bytes = feed_byte(f) & 63;
	if (form == 255)
		p->at.off_bytes = feed_number(f, 8);
	p->at.width_bytes = widths[form % 5];
	p->at.endian = form & 64 ? BRIM_BIG : BRIM_LITTLE;
	p->at.structure = form & 32 ? "s" : NULL;
	p->at.field = form & 16 ? "f" : NULL;
	p->test.rule = (enum brim_scan_rule)(kind >> 2 & 3);
	p->test.values = p->values;
	p->test.value_count = kind >> 4 & 3;
	for (k = 0; k < p->test.value_count; k++) {
		p->values[k].base = (int64_t)feed_number(f, form & 128 ? 8 : 1);
		p->values[k].step = (int8_t)feed_byte(f);
	}
	p->acc.struct_bytes = sizeof(p->acc);
	p->acc.kind = (enum brim_scan_kind)(1 + (kind >> 2) % 5);
	p->acc.name = names[kind >> 7];
	p->acc.test = p->test;
	if (p->what == 1 && p->acc.kind == BRIM_SCAN_HISTOGRAM && form & 8) {
		p->acc.from = feed_number(f, form & 128 ? 8 : 1);
		p->acc.to = feed_number(f, form & 128 ? 8 : 2);
		p->acc.bins = feed_byte(f);
	}
}

static int add_part(struct brim_scan *s, struct part *p, struct brim_err *e)
{
	if (p->what == 0)
		return brim_scan_expect(s, &p->at, &p->test, e);
	if (p->what == 1)
		return brim_scan_accumulate(s, &p->at, &p->acc, e);
	return brim_scan_column(s, &p->at, e);
}

/* --------------------------------------------------------------- the model */

static uint64_t load(const struct brim_scan_range *g,
		     const struct brim_scan_field *f, uint64_t i)
{
	const uint8_t *p = device->bytes + g->off_bytes + g->stride_bytes * i +
			   f->off_bytes;
	uint64_t v = 0;
	uint32_t k;

	for (k = 0; k < f->width_bytes; k++)
		v = v << 8 |
		    p[f->endian == BRIM_BIG ? k : f->width_bytes - 1 - k];
	return v;
}

static bool passes(const struct part *p, uint64_t i, uint64_t v)
{
	uint64_t w[3], mask = UINT64_MAX >> (64 - 8 * p->at.width_bytes);
	size_t k;

	for (k = 0; k < p->test.value_count; k++)
		w[k] = (uint64_t)p->values[k].base +
		       (uint64_t)p->values[k].step * i;
	if (p->test.rule == BRIM_SCAN_ANY)
		return true;
	if (p->test.rule == BRIM_SCAN_RANGE && p->at.width_bytes == 8)
		return w[0] <= v && v <= w[1];
	if (p->test.rule == BRIM_SCAN_RANGE)
		return (int64_t)w[0] <= (int64_t)v &&
		       (int64_t)v <= (int64_t)w[1];
	for (k = 0; k < p->test.value_count; k++)
		if ((w[k] & mask) == v)
			return true;
	return false;
}

static uint64_t count_wrong(const struct part *p,
			    const struct brim_scan_range *g)
{
	uint64_t i, n = 0;

	for (i = g->first; i < g->first + g->count; i++)
		n += !passes(p, i, load(g, &p->at, i));
	return n;
}

/* ------------------------------------------------------------------ claims */

/* What the parts of one accumulator find, by a loop. */
struct sum {
	unsigned __int128 sum;
	uint64_t seen, count, min, max, within;
};

static struct sum sum_of(const struct part *parts, size_t n, int number,
			 const struct brim_scan_range *g, uint64_t first,
			 uint64_t last)
{
	struct sum s = { .min = UINT64_MAX };
	uint64_t i, v;
	size_t k;

	for (k = 0; k < n; k++) {
		if (parts[k].what != 1 || parts[k].number != number)
			continue;
		for (i = g->first; i < g->first + g->count; i++, s.seen++) {
			v = load(g, &parts[k].at, i);
			s.sum += v;
			s.min = v < s.min ? v : s.min;
			s.max = v > s.max ? v : s.max;
			s.count += passes(&parts[k], i, v);
			s.within += v >= first && v <= last;
		}
	}
	return s;
}

static void check_bins(const struct brim_run *r, const struct part *parts,
		       size_t n, const struct brim_scan_total *t, int number,
		       const struct brim_scan_range *g)
{
	uint64_t binned = t->below + t->above, first, last;
	uint32_t b;

	for (b = 0; b < t->bins; b++) {
		claim(!brim_scan_bin(r, (size_t)number, b, &first, &last),
		      "no bin");
		claim(first <= last, "an empty bin");
		claim(t->bin_counts[b] ==
			      sum_of(parts, n, number, g, first, last).within,
		      "another number in a bin");
		binned += t->bin_counts[b];
	}
	claim(binned == t->seen, "some are in no bin");
}

static void check_total(const struct brim_run *r, const struct part *parts,
			size_t n, int number, const struct brim_scan_range *g)
{
	struct brim_scan_total t = { .struct_bytes = sizeof(t) };
	struct sum s = sum_of(parts, n, number, g, 1, 0);

	claim(!brim_scan_total(r, (size_t)number, &t), "no total");
	claim(t.seen == s.seen, "others were seen");
	if (t.kind == BRIM_SCAN_SUM)
		claim(t.sum_low == (uint64_t)s.sum &&
			      t.sum_high == (uint64_t)(s.sum >> 64),
		      "another sum");
	if (t.kind == BRIM_SCAN_COUNT)
		claim(t.count == s.count, "another count");
	if (t.kind == BRIM_SCAN_MIN)
		claim(t.value == s.min, "another least");
	if (t.kind == BRIM_SCAN_MAX)
		claim(t.value == s.max, "another greatest");
	if (t.kind == BRIM_SCAN_HISTOGRAM)
		check_bins(r, parts, n, &t, number, g);
}

static void check_columns(struct brim_run *r, const struct part *parts,
			  size_t n, const struct brim_scan_range *g,
			  uint64_t *next)
{
	struct brim_scan_rows rows = { .struct_bytes = sizeof(rows) };
	size_t k, i;

	while (brim_scan_take(r, 5, &rows)) {
		claim(rows.first == *next && rows.rows && rows.rows <= 5,
		      "rows out of order");
		for (i = 0; i < rows.rows; i++, ++*next)
			for (k = 0; k < n; k++)
				claim(parts[k].what != 2 ||
					      rows.values[i * rows.columns +
							  (size_t)parts[k]
								  .number] ==
						      load(g, &parts[k].at,
							   *next),
				      "another value in a column");
	}
	claim(*next <= g->first + g->count, "rows of nothing");
}

static void check_mismatches(const struct brim_run *r, const struct part *parts,
			     size_t n, const struct brim_scan_range *g,
			     uint64_t counted)
{
	struct brim_mismatch_kind kind;
	struct brim_mismatch m;
	uint64_t wrong = 0, of_kinds = 0, at = 0;
	size_t k;

	for (k = 0; k < n; k++)
		if (parts[k].what == 0)
			wrong += count_wrong(&parts[k], g);
	claim(counted == wrong, "other mismatches");
	for (k = 0; !brim_run_mismatch_kind(r, k, &kind); k++)
		of_kinds += kind.count;
	claim(of_kinds == wrong, "kinds do not add up");
	for (k = 0; !brim_run_mismatch(r, k, &m); k++) {
		claim(m.off_bytes >= at && m.rule && m.piece && m.what,
		      "mismatches out of order");
		at = m.off_bytes;
	}
	claim(!wrong == !k, "none is kept");
}

/* ------------------------------------------------------------------- a scan */

static void run(const struct brim_scan *s, const struct part *parts, size_t n,
		const struct brim_scan_range *g, uint8_t how)
{
	struct brim_run_options o = {
		.struct_bytes = sizeof(o),
		.engine = how & 1 ? "sync" : "fault:short=3,times=5,inner=sync",
		.queue_depth = 1 + (how >> 1 & 7),
		.max_io_bytes = 512u << (how >> 4 & 3),
		.threads = 1,
		.max_mismatches = 1 + (how >> 6),
	};
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	uint64_t next = g->first;
	struct brim_err e = { 0 };
	struct brim_run *r;
	bool has_rows;
	size_t k;
	int ret;

	if (brim_scan_open(&r, s, &device->dev, g, &o, &e) < 0) {
		claim(e.code && e.op && e.msg[0], "no reason");
		return;
	}
	has_rows = brim_scan_collect(r, 1 + (how & 3), NULL) == 0;
	do {
		ret = brim_run_step(r, 0, &st, &e);
		if (has_rows)
			check_columns(r, parts, n, g, &next);
	} while (ret == 1);
	claim(!ret, "it failed");
	claim(!has_rows || next == g->first + g->count, "rows are missing");
	check_mismatches(r, parts, n, g, st.mismatches);
	for (k = 0; k < n; k++)
		if (parts[k].what == 1)
			check_total(r, parts, n, parts[k].number, g);
	brim_run_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct part parts[PARTS_MAX];
	size_t wanted = 1 + feed_byte(&f) % PARTS_MAX, n = 0;
	struct brim_scan_range g = { 0 };
	struct brim_scan *s;
	uint8_t how = feed_byte(&f);

	if (!device)
		device = memdev_new(DEVICE_BYTES);
	g.off_bytes = feed_byte(&f);
	g.stride_bytes = feed_byte(&f);
	g.first = feed_byte(&f) & 15;
	g.count = feed_byte(&f);
	if (how == 255)
		g.stride_bytes = feed_number(&f, 8);
	claim(!brim_scan_create(&s, NULL), "no scan");
	while (wanted--) {
		struct part *p = &parts[n];
		struct brim_err e = { 0 };

		take_part(&f, p);
		p->number = add_part(s, p, &e);
		claim(p->number >= 0 || (e.code == p->number && e.msg[0]),
		      "no reason");
		n += p->number >= 0;
	}
	memset(device->bytes, 0, DEVICE_BYTES);
	memcpy(device->bytes, f.p,
	       f.left < DEVICE_BYTES ? f.left : DEVICE_BYTES);
	run(s, parts, n, &g, how);
	brim_scan_free(s);
	return 0;
}
