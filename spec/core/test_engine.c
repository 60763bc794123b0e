/* SPDX-License-Identifier: MIT */
/*
 * test_engine.c: the batch over every engine: the same I/Os give the same
 * bytes, short transfers and transient errors are hidden, lasting errors are
 * named, the queue is kept full. Also the latency histogram.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "batch_helper.h"
#include "memdev.h"

/* The engines a device in memory can be driven by: name, threads. */
static const struct {
	const char *engine;
	uint32_t threads;
} CASES[] = {
	{ "sync", 1 },
	{ "sync", 2 },
	{ "sync", 16 },
	{ "fault:at=1000000,errno=EIO,inner=sync", 2 },
	{ "fault:at=3,times=9,short=100,inner=sync", 4 },
	{ "fault:at=2,times=5,errno=EAGAIN,inner=sync", 4 },
};
#define CASE_COUNT (sizeof(CASES) / sizeof(CASES[0]))

static bool device_is_right(const struct memdev *m)
{
	uint64_t n;

	for (n = 0; n < IOS; n++)
		if (!holds_pattern(m->bytes + n * SLOT, n))
			return false;
	return true;
}

/* --------------------------------------------------------------- histogram */

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void test_hist(void)
{
	static const uint32_t PPM[] = { 1, 500000, 900000, 990000, 1000000 };
	struct brim__hist *h = calloc(1, sizeof(*h));
	uint64_t v[10000], state = seed, worst_ppm = 0;
	size_t k;

	ok(brim__hist_quantile(h, 500000) == 0, "hist: empty", "not 0");
	for (k = 0; k < 10000; k++) {
		v[k] = tap_random(&state) >> (22 + tap_below(&state, 42));
		brim__hist_add(h, v[k]);
	}
	qsort(v, 10000, sizeof(v[0]), compare);
	for (k = 0; k < 5; k++) {
		size_t rank = (10000ull * PPM[k] + 999999) / 1000000;
		uint64_t right = v[rank - 1];
		uint64_t got = brim__hist_quantile(h, PPM[k]);
		uint64_t off = got > right ? got - right : right - got;

		worst_ppm = BRIM__MAX(worst_ppm,
				      right ? off * 1000000 / right : off);
	}
	ok(worst_ppm <= 1000000 / 32, "hist: error below 1/32", "%" PRIu64,
	   worst_ppm);
	ok(h->max_ns == v[9999], "hist: maximum", "%" PRIu64, h->max_ns);
	brim__hist_add(h, UINT64_MAX);
	ok(brim__hist_quantile(h, 1000000) == UINT64_MAX, "hist: huge value",
	   "%" PRIu64, brim__hist_quantile(h, 1000000));
	free(h);
}

/* -------------------------------------------------------- the same for all */

static void test_same(void)
{
	struct brim_err e;
	size_t k;

	for (k = 0; k < CASE_COUNT; k++) {
		struct memdev *m = memdev_new(SIZE);
		struct brim__batch *b = open_batch(&m->dev, CASES[k].engine,
						   CASES[k].threads, 16, &e);
		int wrote = b ? run_pieces(b, BRIM__WRITE, &e) : -1;
		int read = b ? run_pieces(b, BRIM__READ, &e) : -1;

		ok(wrote == IOS && device_is_right(m), "same: written",
		   "%s: %d %s", CASES[k].engine, wrote, e.msg);
		ok(read == IOS, "same: read back", "%s: %d %s", CASES[k].engine,
		   read, e.msg);
		brim__batch_close(b);
		memdev_free(m);
	}
}

/* A device that never moves more than an odd number of bytes. */
static void test_short(void)
{
	const struct brim__batch_stats *st;
	struct brim_err e;
	size_t k;

	for (k = 0; k < CASE_COUNT; k++) {
		struct memdev *m = memdev_new(SIZE);
		struct brim__batch *b = open_batch(&m->dev, CASES[k].engine,
						   CASES[k].threads, 16, &e);
		int wrote, read;

		m->move_max_bytes = 1021;
		wrote = b ? run_pieces(b, BRIM__WRITE, &e) : -1;
		read = b ? run_pieces(b, BRIM__READ, &e) : -1;
		st = brim__batch_stats(b);
		ok(wrote == IOS && read == IOS && device_is_right(m),
		   "short: all bytes arrive", "%s: %d %d %s", CASES[k].engine,
		   wrote, read, e.msg);
		ok(st->short_ios >= 2 * IOS * 4 &&
			   st->bytes[BRIM__WRITE] == SIZE &&
			   st->ios[BRIM__READ] == IOS,
		   "short: counted", "%" PRIu64, st->short_ios);
		brim__batch_close(b);
		memdev_free(m);
	}
}

/* Back-pressure: slots run out, and all of them come back. */
static void test_slots(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim__io *out[8], *io;
	struct brim_err e;
	struct brim__batch *b = open_batch(&m->dev, "sync", 2, 8, &e);
	unsigned int n = 0;
	int got;

	while ((io = brim__batch_get(b)))
		queue_piece(b, io, BRIM__WRITE, n++, &e);
	ok(n == 8 && brim__batch_in_flight(b) == 8, "slots: as many as asked",
	   "%u", n);
	got = brim__batch_reap(b, 8, out, 8, &e);
	ok(got == 8 && brim__batch_in_flight(b) == 0,
	   "slots: min is waited for", "%d", got);
	ok(brim__batch_reap(b, 1, out, 8, &e) == 0,
	   "slots: reap of nothing does not wait", "waits");
	brim__batch_close(b);
	memdev_free(m);
}

/* ------------------------------------------------------------------ errors */

/* Fails call 1..IOS in turn: the error says what, where and why. */
static void test_fault_loop(void)
{
	unsigned int at, right = 0, sticky = 0;
	struct brim_err e, e2;
	struct brim__io *out[4];
	char spec[64], text[64];

	for (at = 1; at <= IOS; at++) {
		struct memdev *m = memdev_new(SIZE);
		struct brim__batch *b;
		int ret;

		snprintf(spec, sizeof(spec),
			 "fault:at=%u,op=write,errno=ENOSPC,inner=sync", at);
		b = open_batch(&m->dev, spec, 2, 4, &e);
		ret = run_pieces(b, BRIM__WRITE, &e);
		snprintf(text, sizeof(text),
			 "write of 4096 bytes at offset "
			 "%" PRIu64 ": ",
			 e.offset_bytes);
		right += ret == -ENOSPC && e.code == -ENOSPC &&
			 !strcmp(e.op, "write") && e.offset_bytes % SLOT == 0 &&
			 strstr(e.msg, text) && strstr(e.msg, "(ENOSPC)");
		ret = brim__batch_reap(b, 1, out, 4, &e2);
		sticky += ret == -ENOSPC && !strcmp(e.msg, e2.msg);
		brim__batch_close(b);
		memdev_free(m);
	}
	ok(right == IOS, "fault loop: error is right", "%u of %u, last: %s",
	   right, IOS, e.msg);
	ok(sticky == IOS, "fault loop: error stays", "%u of %u", sticky, IOS);
}

/* Shortens call 1..IOS in turn, also to less than the device's alignment. */
static void test_short_loop(void)
{
	static const unsigned int SHORT[] = { 1, 511, 512, 4095 };
	unsigned int at, right = 0;
	struct brim_err e;
	char spec[64];

	for (at = 1; at <= 2 * IOS; at++) {
		struct memdev *m = memdev_new(SIZE);
		struct brim__batch *b;

		m->dev.info.align_bytes = 512;
		snprintf(spec, sizeof(spec), "fault:at=%u,short=%u,inner=sync",
			 at, SHORT[at % 4]);
		b = open_batch(&m->dev, spec, 2, 4, &e);
		right += run_pieces(b, BRIM__WRITE, &e) == IOS &&
			 device_is_right(m) &&
			 run_pieces(b, BRIM__READ, &e) == IOS &&
			 brim__batch_stats(b)->short_ios == 1;
		brim__batch_close(b);
		memdev_free(m);
	}
	ok(right == 2 * IOS, "short loop: bytes are right", "%u of %u: %s",
	   right, 2 * IOS, e.msg);
}

static void test_retry(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim_err e;
	struct brim__batch *b;
	int ret;

	b = open_batch(&m->dev, "fault:at=5,times=3,errno=EINTR,inner=sync", 1,
		       4, &e);
	ret = run_pieces(b, BRIM__WRITE, &e);
	ok(ret == IOS && brim__batch_stats(b)->retries == 3,
	   "retry: EINTR is tried again", "%d %s", ret, e.msg);
	brim__batch_close(b);

	b = open_batch(&m->dev, "fault:at=5,times=0,errno=EAGAIN,inner=sync", 1,
		       4, &e);
	ret = run_pieces(b, BRIM__WRITE, &e);
	ok(ret == -EAGAIN && strstr(e.msg, "(EAGAIN)"), "retry: not for ever",
	   "%d %s", ret, e.msg);
	brim__batch_close(b);
	memdev_free(m);
}

/* One read that reaches past the end: short, then nothing. */
static void test_end(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim_err e;
	struct brim__batch *b = open_batch(&m->dev, "sync", 1, 4, &e);
	struct brim__io *io = brim__batch_get(b), *out[1];
	int ret;

	queue_piece(b, io, BRIM__READ, IOS, &e);
	io->off_bytes -= 1024;
	ret = brim__batch_reap(b, 1, out, 1, &e);
	ok(ret == -ENODATA && strstr(e.msg, "moved nothing after 1024 bytes"),
	   "end: reading past it", "%d %s", ret, e.msg);
	brim__batch_close(b);
	memdev_free(m);
}

static void test_zero_and_flush(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim_err e;
	struct brim__batch *b = open_batch(&m->dev, "sync", 2, 4, &e);
	struct brim__io *io = brim__batch_get(b), *out[1];
	int ret;

	io->op = BRIM__ZERO;
	io->off_bytes = 4096;
	io->len_bytes = 3 * SLOT; /* more than a buffer */
	brim__batch_queue(b, io, &e);
	ret = brim__batch_reap(b, 1, out, 1, &e);
	ok(ret == 1 && m->bytes[4095] == 0xa5 && !m->bytes[4096] &&
		   !m->bytes[4095 + 3 * SLOT],
	   "zero: the range and no more", "%d %s", ret, e.msg);
	m->zero_error = -EOPNOTSUPP;
	brim__batch_queue(b, io, &e);
	ret = brim__batch_reap(b, 1, out, 1, &e);
	ok(ret == 1 && out[0]->result == -EOPNOTSUPP,
	   "zero: what cannot be done is handed out", "%d %s", ret, e.msg);
	io->op = BRIM__FLUSH;
	io->off_bytes = io->len_bytes = 0;
	brim__batch_queue(b, io, &e);
	ret = brim__batch_reap(b, 1, out, 1, &e);
	ok(ret == 1 && brim__batch_stats(b)->ios[BRIM__FLUSH] == 1,
	   "flush: counted", "%d %s", ret, e.msg);
	brim__batch_close(b);
	memdev_free(m);
}

/* ---------------------------------------------------------- the check hook */

struct checked {
	_Atomic uint32_t calls, wrong;
};

static void count_check(void *ctx, struct brim__io *io)
{
	struct checked *c = ctx;

	c->calls++;
	c->wrong += !holds_pattern(io->buf, io->off_bytes / SLOT);
}

/* Once for each whole read and write, whatever happens on the way. */
static void test_check(void)
{
	struct brim_err e = { 0 };
	size_t k;

	for (k = 0; k < CASE_COUNT; k++) {
		struct checked c = { 0 };
		struct brim__batch_options o = {
			.engine = CASES[k].engine,
			.queue_depth = 8,
			.threads = CASES[k].threads,
			.slot_bytes = SLOT,
			.check = count_check,
			.check_ctx = &c,
		};
		struct memdev *m = memdev_new(SIZE);
		struct brim__batch *b;

		m->move_max_bytes = 3000;
		brim__batch_open(&b, &m->dev, &o, &e);
		run_pieces(b, BRIM__WRITE, &e);
		run_pieces(b, BRIM__READ, &e);
		brim__batch_close(b);
		ok(c.calls == 2 * IOS && !c.wrong, "check: once for each I/O",
		   "%s: %u calls, %u wrong", CASES[k].engine, c.calls, c.wrong);
		memdev_free(m);
	}
}

/* ------------------------------------------------------------------- depth */

/* The mean depth of 1600 reads from a device with a latency of 10 ms. */
static double mean_depth(struct memdev *m)
{
	struct brim_err e;
	struct brim__batch *b = open_batch(&m->dev, "sync", 32, 32, &e);
	uint64_t begun_ns = brim__now_ns(), elapsed_ns, latency_ns;
	struct brim__io *out[32], *io;
	unsigned int n = 0;

	while ((io = brim__batch_get(b)))
		queue_piece(b, io, BRIM__READ, n++, &e);
	for (n = 0; n < 1600;) {
		int got = brim__batch_reap(b, 1, out, 32, &e);

		for (n += (unsigned int)got; got-- > 0;)
			queue_piece(b, out[got], BRIM__READ, n % IOS, &e);
	}
	elapsed_ns = brim__now_ns() - begun_ns;
	latency_ns = brim__batch_stats(b)->latency_sum_ns;
	brim__batch_close(b);
	return (double)latency_ns / (double)elapsed_ns;
}

/* 32 at once: the mean depth is nearly that. Busy machines get a few tries. */
static void test_depth(void)
{
	struct memdev *m = memdev_new(SIZE);
	double depth = 0;
	int tries;

	m->sleep_ns = 10000000;
	for (tries = 0; tries < 5 && depth < 0.9 * 32; tries++)
		depth = mean_depth(m);
	ok(depth >= 0.9 * 32 && depth <= 32.0, "depth: the queue is kept full",
	   "mean depth %.2f of 32", depth);
	ok(m->at_once_max == 32, "depth: the device sees it", "%u",
	   m->at_once_max);
	memdev_free(m);
}

/* --------------------------------------------------------------- the names */

static void refused(struct brim_device *d, const char *engine, int code,
		    const char *says)
{
	struct brim_err e;
	struct brim__batch *b = open_batch(d, engine, 0, 4, &e);

	ok(!b && e.code == code && strstr(e.msg, says), "names: refused",
	   "'%s': %d %s", engine, e.code, e.msg);
	brim__batch_close(b);
}

static void test_names(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim_err e;
	struct brim__batch *b;

	refused(&m->dev, "uringg", -EINVAL, "no engine is called 'uringg'");
	refused(&m->dev, "", -EINVAL, "auto, uring, sync, null or fault:SPEC");
	refused(&m->dev, "fault", -EINVAL, "no engine is called 'fault'");
	refused(&m->dev, "fault:", -EINVAL, "errno=NAME and short=BYTES");
	refused(&m->dev, "fault:at=1", -EINVAL, "errno=NAME and short=BYTES");
	refused(&m->dev, "fault:errno=EIO,short=1", -EINVAL, "needs one of");
	refused(&m->dev, "fault:errno=EWHAT", -EINVAL, "'EWHAT' is no value");
	refused(&m->dev, "fault:errno=0", -EINVAL, "'0' is no value for errno");
	refused(&m->dev, "fault:at=0,errno=5", -EINVAL,
		"'0' is no value for at");
	refused(&m->dev, "fault:at=-1,errno=5", -EINVAL, "'-1' is no value");
	refused(&m->dev, "fault:at=1x,errno=5", -EINVAL, "'1x' is no value");
	refused(&m->dev, "fault:at,errno=5", -EINVAL, "'at': write at=");
	refused(&m->dev, "fault:how=1", -EINVAL, "'how=1': write at=");
	refused(&m->dev, "fault:errno=5,op=trim", -EINVAL,
		"'trim' is no value");
	refused(&m->dev, "fault:errno=5,inner=fault", -EINVAL, "'fault' is no");
	b = open_batch(&m->dev, "auto", 0, 4, &e);
	ok(b && !strcmp(brim__batch_engine(b), "sync"),
	   "names: auto without a descriptor is sync", "%s", e.msg);
	brim__batch_close(b);
	b = open_batch(&m->dev, "fault:errno=5,inner=null", 0, 4, &e);
	ok(b && !strcmp(brim__batch_engine(b), "fault(null)") &&
		   !brim__batch_moves_data(b),
	   "names: a fault shows what it wraps", "%s", e.msg);
	brim__batch_close(b);
	b = open_batch(&m->dev, NULL, 0, 0, &e);
	ok(!b && e.code == -EINVAL, "names: depth 0", "%s", e.msg);
	b = open_batch(&m->dev, NULL, 0, BRIM__DEPTH_MAX + 1, &e);
	ok(!b && e.code == -EINVAL, "names: depth too large", "%s", e.msg);
	memdev_free(m);
}

static void test_errno_names(void)
{
	ok(brim__errno_number("ENOSPC") == ENOSPC &&
		   brim__errno_number("EDQUOT") == EDQUOT &&
		   !brim__errno_number("ENONSENSE"),
	   "errno: by name", "wrong");
	ok(!strcmp(brim__errno_name(EIO), "EIO") && !brim__errno_name(0) &&
		   !brim__errno_name(-1) && !brim__errno_name(4000),
	   "errno: name of", "wrong");
}

/* The null engine leaves the device alone and finishes everything. */
static void test_null(void)
{
	struct memdev *m = memdev_new(SIZE);
	struct brim_err e;
	struct brim__batch *b = open_batch(&m->dev, "null", 0, 16, &e);
	int ret = run_pieces(b, BRIM__WRITE, &e);

	ok(ret == IOS && !m->calls && !brim__batch_moves_data(b) &&
		   brim__batch_stats(b)->bytes[BRIM__WRITE] == SIZE,
	   "null: counts only", "%d %s", ret, e.msg);
	brim__batch_close(b);
	memdev_free(m);
}

int main(void)
{
	seed = tap_seed(20240917);
	test_hist();
	test_errno_names();
	test_names();
	test_same();
	test_short();
	test_slots();
	test_fault_loop();
	test_short_loop();
	test_retry();
	test_end();
	test_zero_and_flush();
	test_check();
	test_null();
	test_depth();
	return tap_end();
}
