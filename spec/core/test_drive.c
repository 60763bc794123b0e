/* SPDX-License-Identifier: MIT */
/*
 * test_drive.c: the timing models against closed forms and against what is
 * published of drive-managed SMR: 250,000 writes or 25 GB in the cache, bands
 * of 15 to 40 MB, 0.6 to 1.6 s to clean one (Skylight, FAST 2015).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "drive.h"
#include "tap.h"

#define KIB UINT64_C(1024)
#define MB UINT64_C(1000000)
#define GB (1000 * MB)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static struct brim_drive_params hdd(void)
{
	return (struct brim_drive_params){
		.struct_bytes = sizeof(struct brim_drive_params),
		.model = BRIM_DRIVE_HDD,
		.seed = 1,
		.size_bytes = 4000 * GB,
		.overhead_ns = 100000,
		.outer_bytes_per_s = 200 * MB,
		.inner_bytes_per_s = 100 * MB,
		.zones = 16,
		.seek_min_ns = MS,
		.seek_max_ns = 16 * MS,
		.rotation_ns = 60 * SECOND / 7200,
	};
}

static struct brim_drive_params smr(void)
{
	struct brim_drive_params p = hdd();

	p.model = BRIM_DRIVE_SMR;
	p.size_bytes = 8000 * GB;
	p.outer_bytes_per_s = 190 * MB;
	p.inner_bytes_per_s = 100 * MB;
	p.rotation_ns = 60 * SECOND / 5900;
	p.band_min_bytes = 15 * MB;
	p.band_max_bytes = 40 * MB;
	p.cache_bytes = 25 * GB;
	p.cache_entries = 250000;
	p.cache_write_ns = p.rotation_ns;
	p.clean_min_ns = 600 * MS;
	p.clean_max_ns = 1600 * MS;
	p.idle_ns = SECOND;
	p.is_used = 1;
	return p;
}

static struct brim_drive *make(const struct brim_drive_params *p)
{
	struct brim_drive *d;
	struct brim_err e = { 0 };

	if (brim_drive_create(&d, p, &e) < 0) {
		printf("not ok create: %s\n", e.msg);
		exit(1);
	}
	return d;
}

/* One I/O right after the last: when it is done. */
static uint64_t io(struct brim_drive *d, enum brim_drive_op op, uint64_t off,
		   uint64_t len, uint64_t at)
{
	struct brim_drive_io x = { op, off, len, at };
	uint64_t done = 0;
	int ret = brim_drive_io(d, &x, &done);

	if (ret < 0) {
		printf("not ok io at %llu: %d\n", (unsigned long long)off, ret);
		exit(1);
	}
	return done;
}

static struct brim_drive_stats stats(const struct brim_drive *d)
{
	struct brim_drive_stats st = { .struct_bytes = sizeof(st) };

	brim_drive_stats(d, &st);
	return st;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* --------------------------------------------------------- simple models */

static void test_simple(void)
{
	struct brim_drive_params p = { .struct_bytes = sizeof(p),
				       .size_bytes = GB };
	struct brim_drive *d = make(&p);

	ok(io(d, BRIM_DRIVE_WRITE, 0, GB, 7) == 7, "ideal: no time", "%s", "");
	ok(io(d, BRIM_DRIVE_READ, 0, 1, 3) == 3, "ideal: no waiting", "%s", "");
	brim_drive_free(d);
	p.model = BRIM_DRIVE_CONSTANT;
	p.overhead_ns = 1000;
	p.read_bytes_per_s = 500 * MB;
	p.write_bytes_per_s = 250 * MB;
	p.flush_ns = 77;
	d = make(&p);
	ok(io(d, BRIM_DRIVE_READ, 0, 500, 0) == 2000, "constant: a read", "%s",
	   "");
	/* It arrives while the read is served, and waits. */
	ok(io(d, BRIM_DRIVE_WRITE, 0, 500, 1500) == 2000 + 3000,
	   "constant: a write that waits", "%s", "");
	ok(io(d, BRIM_DRIVE_FLUSH, 0, 0, 9000) == 10077, "constant: a flush",
	   "%s", "");
	ok(stats(d).wait_ns == 500 && stats(d).max_ns[1] == 3500,
	   "constant: what waiting took", "%llu",
	   (unsigned long long)stats(d).wait_ns);
	brim_drive_free(d);
}

static void test_refusals(void)
{
	struct brim_drive_params p = hdd(), q;
	struct brim_drive *d = make(&p);
	struct brim_drive_io x = { BRIM_DRIVE_READ, p.size_bytes, 1, 0 };
	struct brim_drive_stats before = stats(d), after;
	struct brim_err e = { 0 };
	uint64_t done = 42;

	ok(brim_drive_io(d, &x, &done) == -ERANGE && done == 42,
	   "refused: past the end", "%s", "");
	x = (struct brim_drive_io){ BRIM_DRIVE_READ, 1, UINT64_MAX, 0 };
	ok(brim_drive_io(d, &x, &done) == -ERANGE, "refused: no such length",
	   "%s", "");
	x = (struct brim_drive_io){ (enum brim_drive_op)9, 0, 1, 0 };
	ok(brim_drive_io(d, &x, &done) == -EINVAL, "refused: no such operation",
	   "%s", "");
	x = (struct brim_drive_io){ BRIM_DRIVE_READ, 0, 1, UINT64_MAX };
	ok(brim_drive_io(d, &x, &done) == -EOVERFLOW, "refused: no such time",
	   "%s", "");
	after = stats(d);
	ok(!memcmp(&before, &after, sizeof(after)),
	   "refused: nothing has changed", "%s", "");
	brim_drive_free(d);
	p.inner_bytes_per_s = 0;
	ok(brim_drive_create(&d, &p, &e) == -EINVAL && !d,
	   "refused: a disk without a rate", "%s", e.msg);
	p = smr();
	p.cache_entries = 0;
	ok(brim_drive_create(&d, &p, &e) == -EINVAL,
	   "refused: a cache that takes nothing", "%s", e.msg);
	p = smr();
	p.band_min_bytes = 4096;
	ok(brim_drive_create(&d, &p, &e) == -EINVAL, "refused: too many bands",
	   "%s", e.msg);
	ok(brim_drive_params_parse(&q, "hdd,size_bytes=4t,zones=3", &e) == 0 &&
		   q.model == BRIM_DRIVE_HDD && q.size_bytes == 4ull << 40 &&
		   q.zones == 3,
	   "parameters as text", "%s", e.msg);
	ok(brim_drive_params_parse(&q, "hdd,sise_bytes=4t", &e) == -EINVAL,
	   "refused: an unknown parameter", "%s", e.msg);
	ok(brim_drive_params_parse(&q, "floppy", &e) == -EINVAL,
	   "refused: an unknown model", "%s", e.msg);
	ok(brim_drive_params_parse(&q, "hdd,zones", &e) == -EINVAL,
	   "refused: no value", "%s", e.msg);
}

/* -------------------------------------------------------------------- disks */

/* 4 KiB at random: overhead, 8/15 of the span of seeks, half a revolution. */
static void test_hdd_random(void)
{
	struct brim_drive_params p = hdd();
	struct brim_drive *d = make(&p);
	uint64_t seed = tap_seed(1), t = 0, k, n = 20000;
	double mean, want = 1e5 + 1e6 + 15e6 * 8 / 15 + 60e9 / 7200 / 2 +
			    4096 / 150e6 * 1e9;

	for (k = 0; k < n; k++)
		t = io(d, BRIM_DRIVE_READ,
		       tap_below(&seed, p.size_bytes / 4096) * 4096, 4096, t);
	mean = (double)t / (double)n;
	ok(fabs(mean / want - 1) < 0.01, "disk: random reads of 4 KiB",
	   "%.0f ns, %.0f by the formula", mean, want);
	ok(stats(d).runs[0] > n - 2, "disk: each is a run", "%s", "");
	brim_drive_free(d);
}

/* Calls of 4 KiB, one after the other, go at the media rate of the zone. */
static void test_hdd_sequential(void)
{
	struct brim_drive_params p = hdd();
	struct brim_drive *d;
	uint64_t at[2] = { 0, p.size_bytes - 256 * MB }, k, off, t;
	double want[2] = { 200e6, 100e6 }, rate;

	p.overhead_ns = 0;
	for (k = 0; k < 2; k++) {
		at[k] = at[k] / 4096 * 4096;
		d = make(&p);
		t = io(d, BRIM_DRIVE_WRITE, at[k], 4096, 0);
		for (off = 4096; off < 256 * MB / 2; off += 4096)
			t = io(d, BRIM_DRIVE_WRITE, at[k] + off, 4096, t);
		rate = (double)off / seconds(t);
		ok(fabs(rate / want[k] - 1) < 0.03,
		   k ? "disk: sequential, inner" : "disk: sequential, outer",
		   "%.1f MB/s", rate / 1e6);
		ok(stats(d).runs[1] == 1 && stats(d).seeks <= 1,
		   "disk: adjacent calls are one run", "%llu runs",
		   (unsigned long long)stats(d).runs[1]);
		brim_drive_free(d);
	}
}

/* ---------------------------------------------------------------------- SMR */

/* Random writes until one takes as long as a cleaning: their number. */
static uint64_t until_cliff(struct brim_drive *d, uint64_t len, uint64_t *seed,
			    uint64_t *t)
{
	uint64_t n = 0, done, size = d->p.size_bytes;

	do {
		done = io(d, BRIM_DRIVE_WRITE,
			  tap_below(seed, size / len - 1) * len + 4096, len,
			  *t);
		n++;
		if (done - *t >= d->p.clean_min_ns)
			return n - 1;
		*t = done;
	} while (n < 10000000);
	return n;
}

static void test_cliff(uint64_t len, double want_bytes, const char *name)
{
	struct brim_drive_params p = smr();
	struct brim_drive *d = make(&p);
	uint64_t seed = tap_seed(3), t = 0, n = until_cliff(d, len, &seed, &t);
	double bytes = (double)n * (double)len;

	ok(fabs(bytes / want_bytes - 1) < 0.02, name, "%.3g bytes, %llu writes",
	   bytes, (unsigned long long)n);
	brim_drive_free(d);
}

/*
 * With N bands and K writes in the cache, of which a cleaning takes all that
 * are of the oldest band: let y be the writes that come to a band while it is
 * in the queue; then K/N = y/(1+y) * (1+y/2), and a cleaning takes 1+y.
 */
static double per_cleaning(double k, double n)
{
	double lo = 0, hi = 100;

	while (hi - lo > 1e-9) {
		double y = (lo + hi) / 2;

		if (y / (1 + y) * (1 + y / 2) < k / n)
			lo = y;
		else
			hi = y;
	}
	return 1 + lo;
}

static void test_after_cliff(void)
{
	struct brim_drive_params p = smr();
	struct brim_drive *d;
	uint64_t seed = tap_seed(4), t = 0, k, n = 1000000, t0;
	struct brim_drive_stats a, b;
	double each, want, rate;

	/* Bands of one size: what the formula is for. */
	p.band_min_bytes = p.band_max_bytes = 30 * MB;
	d = make(&p);
	until_cliff(d, 4096, &seed, &t);
	for (k = 0; k < n; k++)
		t = io(d, BRIM_DRIVE_WRITE,
		       tap_below(&seed, p.size_bytes / 4096) * 4096, 4096, t);
	a = stats(d);
	t0 = t;
	for (k = 0; k < n; k++)
		t = io(d, BRIM_DRIVE_WRITE,
		       tap_below(&seed, p.size_bytes / 4096) * 4096, 4096, t);
	b = stats(d);
	each = (double)(b.cleaned_entries - a.cleaned_entries) /
	       (double)(b.cleaned_bands - a.cleaned_bands);
	want = per_cleaning((double)p.cache_entries, (double)b.bands);
	rate = (double)n / seconds(t - t0);
	ok(fabs(each / want - 1) < 0.02, "SMR: writes that a cleaning takes",
	   "%.3f, %.3f by the formula", each, want);
	ok(fabs(rate / (want / (1.1 + want * 0.011)) - 1) < 0.03 &&
		   rate > 0.6 && rate < 3,
	   "SMR: random writes a second after the cliff", "%.3f", rate);
	printf("# %.2f writes/s, %.2f a cleaning, %llu bands\n", rate, each,
	       (unsigned long long)b.bands);
	brim_drive_free(d);
}

/* The rate of sequential writes, and that they never meet the cache. */
static void test_smr_sequential(uint64_t is_used, uint64_t len)
{
	struct brim_drive_params p = smr();
	struct brim_drive_stats st;
	struct brim_drive *d;
	uint64_t off, begin, t = 0, seed = tap_seed(5), worst = 0, done;
	double rate;

	p.is_used = is_used;
	p.overhead_ns = 0;
	d = make(&p);
	/* A full cache first: it must not matter. */
	if (is_used)
		until_cliff(d, 4096, &seed, &t);
	/* Those of the random writes that looked like a stream are given up. */
	for (off = 0; off < GB; off += len)
		t = io(d, BRIM_DRIVE_WRITE, off, len, t);
	st = stats(d);
	begin = off;
	rate = (double)t;
	for (; off < 40 * GB; off += len) {
		done = io(d, BRIM_DRIVE_WRITE, off, len, t);
		worst = BRIM__MAX(worst, done - t);
		t = done;
	}
	rate = (double)(off - begin) / (((double)t - rate) / 1e9);
	ok(fabs(rate / 190e6 - 1) < 0.02, "SMR: sequential writes", "%.1f MB/s",
	   rate / 1e6);
	ok(worst < SECOND && stats(d).cleaned_bands == st.cleaned_bands &&
		   stats(d).streamed_bytes >= off,
	   "SMR: none of them is cleaned up after", "worst %.3f s",
	   seconds(worst));
	if (is_used)
		ok(stats(d).covered_bands >= 999, "SMR: bands are covered",
		   "%llu", (unsigned long long)stats(d).covered_bands);
	brim_drive_free(d);
}

/* Whole bands in random order: the media's rate, however many. */
static void test_smr_whole_bands(void)
{
	struct brim_drive_params p = smr();
	uint64_t seed = tap_seed(6), t = 0, k, n = 300000, worst = 0, done;
	uint64_t band = 30 * MB / 4096 * 4096;
	struct brim_drive *d;

	p.band_min_bytes = p.band_max_bytes = band;
	p.zones = 1;
	d = make(&p);
	for (k = 0; k < n; k++) {
		done = io(d, BRIM_DRIVE_WRITE,
			  tap_below(&seed, p.size_bytes / band) * band, band,
			  t);
		worst = BRIM__MAX(worst, done - t);
		t = done;
	}
	ok(worst < SECOND / 2 && !stats(d).cleaned_bands &&
		   stats(d).covered_bands == n,
	   "SMR: 300,000 whole bands, no cliff", "worst %.3f s",
	   seconds(worst));
	brim_drive_free(d);
}

/* A write at a band's end of data streams; elsewhere it is cached. */
static void test_smr_rules(void)
{
	struct brim_drive_params p = smr();
	struct brim_drive *d;
	uint64_t t, band = 32 * KIB * KIB, k;

	p.is_used = 0;
	p.zones = 1;
	p.band_min_bytes = p.band_max_bytes = band;
	p.size_bytes = 100 * band;
	d = make(&p);
	t = io(d, BRIM_DRIVE_WRITE, band, 4096, 0);
	t = io(d, BRIM_DRIVE_WRITE, 7 * band, 4096, t);
	t = io(d, BRIM_DRIVE_WRITE, band + 4096, 4096, t);
	ok(!stats(d).cached_ios, "SMR: appends stream", "%s", "");
	t = io(d, BRIM_DRIVE_WRITE, band + 16 * KIB, 4096, t);
	t = io(d, BRIM_DRIVE_WRITE, band + 20 * KIB, 4096, t);
	ok(stats(d).cached_ios == 1 && stats(d).cache_entries == 1 &&
		   stats(d).cached_bytes == 8192,
	   "SMR: a gap is cached, a run as one write", "%llu",
	   (unsigned long long)stats(d).cached_ios);
	t = io(d, BRIM_DRIVE_READ, 0, 4096, t + 10 * SECOND);
	ok(stats(d).cleaned_bands == 1 && !stats(d).cache_entries &&
		   stats(d).clean_idle_ns >= p.clean_min_ns,
	   "SMR: cleaned when idle", "%s", "");
	/* The band holds data up to 24 KiB now. */
	t = io(d, BRIM_DRIVE_WRITE, band + 24 * KIB, 4096, t);
	ok(stats(d).cached_ios == 1, "SMR: appends to what was cleaned", "%s",
	   "");
	for (k = 0; k < 7; k++)
		t = io(d, BRIM_DRIVE_WRITE, band + 4096 * k, 4096, t);
	ok(stats(d).covered_bands == 1 && stats(d).cached_ios == 1,
	   "SMR: rewritten from the start, it is covered", "%llu",
	   (unsigned long long)stats(d).covered_bands);
	/* Nine rewrites at once are one more than it keeps track of. */
	for (k = 10; k < 19; k++)
		t = io(d, BRIM_DRIVE_WRITE, band * k, band, t);
	for (k = 10; k < 19; k++)
		t = io(d, BRIM_DRIVE_WRITE, band * k, 4096, t);
	ok(stats(d).cache_entries == 1, "SMR: a stream given up is cached",
	   "%llu", (unsigned long long)stats(d).cache_entries);
	brim_drive_free(d);
}

/* The same calls, the same times: golden, as runs are compared by them. */
static void test_golden(void)
{
	struct brim_drive_params p = smr();
	struct brim_drive *d;
	uint64_t seed = 9, t = 0, k;

	p.size_bytes = 8 * GB;
	p.cache_entries = 250;
	p.cache_bytes = 25 * MB;
	d = make(&p);
	for (k = 0; k < 1000; k++)
		t = io(d, k % 3 ? BRIM_DRIVE_WRITE : BRIM_DRIVE_READ,
		       tap_below(&seed, p.size_bytes / 4096) * 4096, 4096, t);
	ok(t == UINT64_C(248566006960), "golden: a thousand I/Os", "%llu",
	   (unsigned long long)t);
	brim_drive_free(d);
}

int main(void)
{
	test_simple();
	test_refusals();
	test_hdd_random();
	test_hdd_sequential();
	test_cliff(4096, 250000.0 * 4096, "SMR: the cliff at 4 KiB: 1.0 GB");
	test_cliff(64 * KIB, 250000.0 * 65536, "SMR: at 64 KiB: 16 GB");
	test_cliff(256 * KIB, 25e9, "SMR: at 256 KiB: 25 GB");
	test_after_cliff();
	test_smr_sequential(0, 4096);
	test_smr_sequential(1, 1 << 20);
	test_smr_whole_bands();
	test_smr_rules();
	test_golden();
	return tap_end();
}
