/* SPDX-License-Identifier: MIT */
/*
 * test_run.c: writing a plan and verifying a device against it: every engine
 * gives the same bytes, phases keep their order, faults at each call are
 * reported or hidden, differences are found and named, refusals come early.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "run_helper.h"

static uint64_t seed;

static const struct brim_run_options OPTIONS[] = {
	{ sizeof(OPTIONS[0]), "sync", 1, 0, 1, 0 },
	{ sizeof(OPTIONS[0]), "sync", 8, 4096, 2, 0 },
	{ sizeof(OPTIONS[0]), "sync", 128, 512, 16, 0 },
	{ sizeof(OPTIONS[0]), "auto", 0, 0, 0, 0 },
	{ sizeof(OPTIONS[0]), "fault:at=9,times=40,short=65,inner=sync", 5,
	  8192, 3, 0 },
};
#define OPTION_COUNT (sizeof(OPTIONS) / sizeof(OPTIONS[0]))

/* ----------------------------------------------------------------- writing */

static void test_write(struct world *w)
{
	struct brim_plan_totals t;
	struct brim_run_stats st;
	struct brim_err e;
	size_t k;
	int ret;

	for (k = 0; k < OPTION_COUNT; k++) {
		const struct brim_run_options *o = &OPTIONS[k];

		brim_plan_totals(w->plan,
				 o->max_io_bytes ? o->max_io_bytes : MIB, &t);
		world_reset(w);
		ret = world_run(w, BRIM_RUN_WRITE, o, &st, &e);
		ok(!ret && world_is_right(w), "write: the right bytes",
		   "options %zu: %d %s", k, ret, e.msg);
		ok(st.writes == t.writes && st.write_bytes == t.write_bytes &&
			   st.zero_ranges == t.zero_ranges &&
			   st.zero_bytes == t.zero_bytes && st.flushes == 3,
		   "write: counts as foreseen", "options %zu", k);
		ok(st.groups_done == GROUPS && st.groups_total == GROUPS &&
			   st.ios_done == st.ios_total &&
			   st.ios_done == t.writes + t.zero_ranges &&
			   st.bytes_done == st.bytes_total,
		   "write: progress ends at the total",
		   "options %zu: groups %" PRIu64, k, st.groups_done);
		ok(!strcmp(st.phase, "done") && st.elapsed_ns > 0 &&
			   st.mean_queue_depth > 0 &&
			   st.latency_max_ns >= st.latency_p50_ns,
		   "write: times", "options %zu: %s", k, st.phase);
	}
}

/* Clear, flush, body, flush, super, flush: whatever the engine's threads do. */
static void test_order(struct world *w)
{
	struct brim_run_stats st;
	struct brim_err e;
	unsigned int phase = 0;
	bool right = true;
	uint32_t k;

	world_reset(w);
	world_run(w, BRIM_RUN_WRITE, &OPTIONS[2], &st, &e);
	for (k = 0; k < w->m->calls; k++) {
		const struct memdev_call *c = &w->m->log[k];

		if (c->op == 'f')
			phase++;
		else if (c->off_bytes < GROUPS_AT)
			right &= phase == (c->op == 'z' ? 0 : 2);
		else
			right &= phase == 1;
	}
	ok(right && phase == 3, "order: flushes between the phases",
	   "phases %u", phase);
}

/* The target cannot make zeros: they are written, in parts. */
static void test_zero_fallback(struct world *w)
{
	struct brim_run_stats st;
	struct brim_err e;
	size_t k;
	int ret;

	for (k = 0; k < OPTION_COUNT; k++) {
		world_reset(w);
		w->m->zero_error = -EOPNOTSUPP;
		ret = world_run(w, BRIM_RUN_WRITE, &OPTIONS[k], &st, &e);
		ok(!ret && world_is_right(w) && st.zero_ranges == 0 &&
			   st.flushes == 3 && st.bytes_done == st.bytes_total,
		   "zeros: written where they must be", "options %zu: %d %s", k,
		   ret, e.msg);
	}
	world_reset(w);
	w->m->zero_error = -EIO;
	ret = world_run(w, BRIM_RUN_WRITE, &OPTIONS[0], &st, &e);
	ok(ret == -EIO && !strcmp(e.op, "zero") && e.offset_bytes == 0 &&
		   strstr(e.msg, "zero of 65536 bytes at offset 0: "),
	   "zeros: other errors are errors", "%d %s", ret, e.msg);
}

/* ------------------------------------------------------------------ faults */

/* Fails call 1, 2, ... until a run survives. */
static void test_fault_loop(struct world *w, enum brim_run_mode mode,
			    const char *name)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_run_stats st;
	unsigned int at, right = 0;
	struct brim_err e;
	char spec[64];
	int ret;

	o.engine = spec;
	for (at = 1; at < 1000; at++) {
		snprintf(spec, sizeof(spec), "fault:at=%u,errno=EIO,inner=sync",
			 at);
		if (mode == BRIM_RUN_WRITE)
			world_reset(w);
		else
			world_fill(w);
		ret = world_run(w, mode, &o, &st, &e);
		if (!ret)
			break;
		right += ret == -EIO && e.code == -EIO &&
			 strstr(e.msg, "Input/output error (EIO)") &&
			 (!strcmp(e.op, "flush") ||
			  e.offset_bytes < PLAN_BYTES) &&
			 w->m->bytes[PLAN_BYTES - 1] ==
				 (mode == BRIM_RUN_WRITE ? 0xa5 : 0);
		/* The superblock comes last: not before the final phase. */
		if (mode == BRIM_RUN_WRITE && st.flushes < 2)
			right -= !memcmp(w->m->bytes, "BRIMfs", 6);
	}
	ok(at > 80 && right == at - 1 && !ret, name, "%u of %u: %s", right,
	   at - 1, e.msg);
}

/* Shortens call 1, 2, ... until there is none to shorten. */
static void test_short_loop(struct world *w)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_run_stats st = { .short_ios = 1 };
	unsigned int at, right = 0;
	uint64_t state = seed;
	struct brim_err e;
	char spec[64];

	o.engine = spec;
	for (at = 1; at < 1000 && st.short_ios; at++) {
		snprintf(spec, sizeof(spec),
			 "fault:at=%u,op=write,short=%u,inner=sync", at,
			 (unsigned int)tap_below(&state, 500) + 1);
		world_reset(w);
		right += !world_run(w, BRIM_RUN_WRITE, &o, &st, &e) &&
			 world_is_right(w);
	}
	ok(at > 80 && right == at - 1, "short loop: bytes are right",
	   "%u of %u: %s", right, at - 1, e.msg);
}

/* After the first error nothing is submitted, and the error stays. */
static void test_after_error(struct world *w)
{
	struct brim_run_options o = OPTIONS[0];
	struct brim_err e, again = { 0 };
	struct brim_run *r;
	uint32_t calls;
	int ret, ret2;

	o.engine = "fault:at=30,errno=ENOSPC,inner=sync";
	world_reset(w);
	brim_run_open(&r, w->plan, &w->m->dev, BRIM_RUN_WRITE, &o, &e);
	ret = brim_run_step(r, 0, NULL, &e);
	calls = w->m->calls;
	ret2 = brim_run_step(r, 0, NULL, &again);
	ok(ret == -ENOSPC && ret2 == -ENOSPC && !strcmp(e.msg, again.msg) &&
		   w->m->calls == calls,
	   "error: it stays, and nothing follows", "%d %d", ret, ret2);
	brim_run_close(r);
}

/* Closing in the middle waits for what is in flight. */
static void test_close_early(struct world *w)
{
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	struct brim_run_options o = OPTIONS[2];
	struct brim_err e;
	struct brim_run *r;
	int ret;

	world_reset(w);
	o.max_io_bytes = 4096;
	w->m->sleep_ns = 1000000;
	brim_run_open(&r, w->plan, &w->m->dev, BRIM_RUN_WRITE, &o, &e);
	ret = brim_run_step(r, 1, &st, &e);
	ret = ret == 1 ? brim_run_step(r, 1, &st, &e) : ret;
	brim_run_close(r);
	w->m->sleep_ns = 0;
	ok(ret == 1 && w->m->at_once == 0 && st.groups_done < GROUPS,
	   "close: in the middle", "%d", ret);
}

/* --------------------------------------------------------------- verifying */

static void test_verify(struct world *w)
{
	struct brim_run_stats st;
	struct brim_err e;
	size_t k;
	int ret;

	for (k = 0; k < OPTION_COUNT; k++) {
		world_fill(w);
		ret = world_run(w, BRIM_RUN_VERIFY, &OPTIONS[k], &st, &e);
		ok(!ret && !st.mismatches && st.groups_done == GROUPS &&
			   !st.writes && !st.flushes &&
			   st.bytes_done == st.bytes_total &&
			   st.ios_done == st.ios_total,
		   "verify: what is right",
		   "options %zu: %d %s, %" PRIu64 " mismatches", k, ret, e.msg,
		   st.mismatches);
		world_reset(w);
		world_run(w, BRIM_RUN_WRITE, &OPTIONS[k], &st, &e);
		ret = world_run(w, BRIM_RUN_VERIFY, &OPTIONS[k], &st, &e);
		ok(!ret && !st.mismatches, "verify: what was written",
		   "options %zu: %d %s", k, ret, e.msg);
	}
}

/* One damaged byte in each kind of place, found and named. */
static void test_mismatch(struct world *w, uint64_t at, uint64_t group,
			  const char *piece, const char *what)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	struct brim_mismatch m = { 0 }, more;
	struct brim_err e;
	struct brim_run *r;

	world_fill(w);
	w->m->bytes[at] ^= 0x40;
	brim_run_open(&r, w->plan, &w->m->dev, BRIM_RUN_VERIFY, &o, &e);
	brim_run_step(r, 0, &st, &e);
	brim_run_mismatch(r, 0, &m);
	ok(st.mismatches == 1 && m.off_bytes == at && m.group == group &&
		   !strcmp(m.piece, piece) && !strcmp(m.what, what) &&
		   m.expected == w->right[at] && m.found == w->m->bytes[at] &&
		   brim_run_mismatch(r, 1, &more) == -ENOENT,
	   "mismatch: found and named",
	   "%" PRIu64 " in %s: off %" PRIu64 " group %" PRIu64 " %s", at, piece,
	   m.off_bytes, m.group, m.what ? m.what : "none");
	brim_run_close(r);
}

static void test_mismatches(struct world *w)
{
	test_mismatch(w, GROUPS_AT + 3 * GROUP_BYTES + 511, 3, "groups", "hdr");
	test_mismatch(w, GROUPS_AT + 39 * GROUP_BYTES + TREE_AT, 39, "groups",
		      "tree");
	test_mismatch(w, GROUPS_AT + ODD_GROUP * GROUP_BYTES + TREE_AT + 8,
		      ODD_GROUP, "odd group", "tree");
	test_mismatch(w, TABLE_AT + 345 * RECORD_BYTES + 9, 345, "table",
		      "record");
	test_mismatch(w, LOG_AT + LOG_BYTES - 1, 0, "log", "log");
	test_mismatch(w, 4096, 0, "old signature", "old signature");
	test_mismatch(w, 5, 0, "superblock", "record");
}

/* Damage everywhere: all are counted, the lowest are kept, in order. */
static void test_many_mismatches(struct world *w)
{
	struct brim_run_options o = OPTIONS[2];
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	struct brim_mismatch m;
	struct brim_err e;
	struct brim_run *r;
	uint32_t k, right = 0;

	world_fill(w);
	for (k = 0; k < GROUPS; k++)
		w->m->bytes[GROUPS_AT + k * GROUP_BYTES + 100] ^= 1;
	o.max_mismatches = 5;
	brim_run_open(&r, w->plan, &w->m->dev, BRIM_RUN_VERIFY, &o, &e);
	brim_run_step(r, 0, &st, &e);
	for (k = 0; !brim_run_mismatch(r, k, &m); k++)
		right += m.group == k;
	ok(st.mismatches == GROUPS && k == 5 && right == 5,
	   "mismatch: all counted, the first kept", "%" PRIu64 " %u %u",
	   st.mismatches, k, right);
	brim_run_close(r);
}

/* 1 TiB of zeros on a sparse file: holes need no reading, damage is found. */
static void test_holes(void)
{
	struct brim_device_options od = { .struct_bytes = sizeof(od) };
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	uint64_t size = UINT64_C(1) << 40;
	char path[] = "/tmp/brim-holes.XXXXXX";
	struct brim_mismatch m = { 0 };
	struct brim_device *d;
	struct brim_plan *p;
	struct brim_run *r;
	struct brim_err e;
	int fd = mkstemp(path);
	int ret;

	brim_plan_create(&p, "holes", size, &e);
	brim_plan_zero(p, 0, size, "all", &e);
	brim_plan_seal(p, &e);
	if (ftruncate(fd, (off_t)size) < 0 ||
	    pwrite(fd, "\0\0x", 3, (off_t)size / 2) != 3) {
		skip("holes", "no sparse files here");
		goto out;
	}
	od.flags = BRIM_DEVICE_BUFFERED;
	ret = brim_device_open(&d, path, &od, &e);
	ret = ret ? ret : brim_run_open(&r, p, d, BRIM_RUN_VERIFY, NULL, &e);
	if (!ret) {
		ret = brim_run_step(r, 0, &st, &e);
		brim_run_mismatch(r, 0, &m);
		brim_run_close(r);
	}
	ok(!ret && st.mismatches == 1 && m.off_bytes == size / 2 + 2 &&
		   st.bytes_done == size && st.read_bytes < 16 * MIB,
	   "holes: skipped, the data found", "%d %s: %" PRIu64 " read", ret,
	   e.msg, st.read_bytes);
	brim_device_close(d);
out:
	brim_plan_free(p);
	close(fd);
	unlink(path);
}

/* ---------------------------------------------------------------- refusals */

static void refused(struct world *w, enum brim_run_mode mode,
		    const struct brim_run_options *o, int code,
		    const char *says)
{
	struct brim_run *r = (void *)1;
	struct brim_err e = { 0 };
	int ret = brim_run_open(&r, w->plan, &w->m->dev, mode, o, &e);

	ok(ret == code && e.code == code && !r && strstr(e.msg, says),
	   "refused", "wanted %d %s, got %d %s", code, says, ret, e.msg);
}

static void test_refusals(struct world *w)
{
	struct brim_device_info *info = &w->m->dev.info;
	struct brim_run_options o = OPTIONS[0];

	world_reset(w);
	info->size_bytes = PLAN_BYTES - 1;
	refused(w, BRIM_RUN_WRITE, &o, -ENOSPC, "needs 2097152");
	refused(w, BRIM_RUN_VERIFY, &o, -ENOSPC, "needs 2097152");
	info->size_bytes = PLAN_BYTES;
	info->is_writable = 0;
	refused(w, BRIM_RUN_WRITE, &o, -EROFS, "for reading only");
	info->is_writable = 1;
	info->align_bytes = 4096;
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "needs multiples of 4096");
	o.max_io_bytes = 512;
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "max_io_bytes 512: it is a");
	info->align_bytes = 1;
	o.max_io_bytes = 65 * MIB;
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "at most 67108864");
	o = OPTIONS[0];
	o.queue_depth = 5000;
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "it is 1 to 4096");
	o = OPTIONS[0];
	o.engine = "uring";
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "no file descriptor");
	o.engine = "null";
	refused(w, BRIM_RUN_VERIFY, &o, -EINVAL, "null reads nothing");
	o.struct_bytes = 0;
	refused(w, BRIM_RUN_WRITE, &o, -EINVAL, "struct_bytes");
	refused(w, 7, NULL, -EINVAL, "mode");
	ok(w->m->calls == 0 && w->m->dev.refs == 1, "refused: before any I/O",
	   "%u", w->m->calls);
}

/* The null engine: everything but the I/O. */
static void test_null(struct world *w)
{
	struct brim_run_options o = OPTIONS[1];
	struct brim_run_stats st;
	struct brim_err e;
	int ret;

	world_reset(w);
	o.engine = "null";
	ret = world_run(w, BRIM_RUN_WRITE, &o, &st, &e);
	ok(!ret && !w->m->calls && st.groups_done == GROUPS &&
		   !strcmp(st.engine, "null"),
	   "null: counts only", "%d %s", ret, e.msg);
}

/* An older caller's smaller stats are filled as far as they go. */
static void test_small_stats(struct world *w)
{
	union {
		struct brim_run_stats st;
		uint8_t raw[sizeof(struct brim_run_stats)];
	} u;
	size_t room = offsetof(struct brim_run_stats, ios_done);
	struct brim_err e;
	struct brim_run *r;

	world_reset(w);
	memset(&u, 0xee, sizeof(u));
	u.st.struct_bytes = room;
	brim_run_open(&r, w->plan, &w->m->dev, BRIM_RUN_WRITE, NULL, &e);
	brim_run_step(r, 0, &u.st, &e);
	ok(u.st.groups_done == GROUPS && u.st.struct_bytes == room &&
		   u.raw[room] == 0xee && u.raw[sizeof(u) - 1] == 0xee,
	   "stats: no more than there is room", "wrote past it");
	brim_run_close(r);
}

int main(void)
{
	struct world w = world_new();

	seed = tap_seed(4711);
	test_write(&w);
	test_order(&w);
	test_zero_fallback(&w);
	test_fault_loop(&w, BRIM_RUN_WRITE, "fault loop: write");
	test_fault_loop(&w, BRIM_RUN_VERIFY, "fault loop: verify");
	test_short_loop(&w);
	test_after_error(&w);
	test_close_early(&w);
	test_verify(&w);
	test_mismatches(&w);
	test_many_mismatches(&w);
	test_holes();
	test_refusals(&w);
	test_null(&w);
	test_small_stats(&w);
	world_free(&w);
	return tap_end();
}
