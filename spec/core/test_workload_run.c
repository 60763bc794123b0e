/* SPDX-License-Identifier: MIT */
/*
 * test_workload_run.c: workloads on a device in memory: what they leave there
 * is right whatever the engine's order, and a verification tells each kind of
 * damage from the others, also after a run that was cut off.
 */
#include <errno.h>
#include <string.h>

#include "memdev.h"
#include "run.h"
#include "tap.h"
#include "workload.h"

#define BLOCK 4096u
#define BLOCKS 600u

struct bench {
	struct memdev *m;
	struct brim_workload *w;
	struct brim_run_options ro;
	uint64_t last[BLOCKS]; /* 1 + the operation that wrote it last */
	uint64_t ops;
};

static void bench_new(struct bench *b, const struct brim_workload_options *o)
{
	struct brim_err e = { 0 };
	struct brim_workload_cursor c;
	struct brim_workload_op op;

	memset(b, 0, sizeof(*b));
	b->m = memdev_new((BLOCKS + 10) * BLOCK);
	b->ro.struct_bytes = sizeof(b->ro);
	b->ro.engine = "sync";
	b->ro.queue_depth = 16;
	b->ro.threads = 8;
	b->ro.max_io_bytes = 64 << 10;
	if (brim_workload_create(&b->w, o, &e) < 0) {
		printf("not ok create: %s\n", e.msg);
		exit(1);
	}
	brim_workload_begin(b->w, &c);
	while (brim_workload_next(b->w, &c, &op)) {
		uint64_t k = (op.off_bytes - o->off_bytes) / BLOCK, at;

		b->ops++;
		for (at = 0; at < op.len_bytes / BLOCK && !op.is_read; at++)
			b->last[k + at] = op.index + 1;
	}
}

static void bench_free(struct bench *b)
{
	brim_workload_free(b->w);
	memdev_free(b->m);
}

static struct brim_workload_options options(enum brim_pattern pattern)
{
	return (struct brim_workload_options){
		.struct_bytes = sizeof(struct brim_workload_options),
		.seed = 42,
		.pattern = pattern,
		.theta = 1.1,
		.stride_bytes = 10 * BLOCK,
		.off_bytes = 5 * BLOCK,
		.size_bytes = BLOCKS * BLOCK,
		.passes = 4,
	};
}

/* Runs it to its end, or so many steps of a nanosecond. */
static int run(struct bench *b, int steps, struct brim_run_stats *st,
	       struct brim_workload_stats *ws, struct brim_err *e)
{
	static struct brim_workload_bin bins[100];
	struct brim_run *r;
	int ret = brim_workload_open(&r, b->w, &b->m->dev, NULL, &b->ro, e);

	memset(st, 0, sizeof(*st));
	memset(ws, 0, sizeof(*ws));
	st->struct_bytes = sizeof(*st);
	ws->struct_bytes = sizeof(*ws);
	if (ret < 0)
		return ret;
	do
		ret = brim_run_step(r, 1, st, e);
	while (ret == 1 && --steps);
	brim_workload_stats(r, ws);
	memcpy(bins, ws->bins, ws->bin_count * sizeof(*bins));
	ws->bins = bins;
	brim_run_close(r);
	return ret;
}

static int verify(struct bench *b, uint64_t done, uint64_t begun,
		  struct brim_workload_counts *c, struct brim_mismatch *m,
		  struct brim_run_stats *st)
{
	struct brim_err e = { 0 };
	struct brim_run *r;
	int ret = brim_workload_verify(&r, b->w, &b->m->dev, done, begun,
				       &b->ro, &e);

	memset(c, 0, sizeof(*c));
	memset(m, 0, sizeof(*m));
	memset(st, 0, sizeof(*st));
	c->struct_bytes = sizeof(*c);
	st->struct_bytes = sizeof(*st);
	if (ret < 0)
		return ret;
	do
		ret = brim_run_step(r, 100000, st, &e);
	while (ret == 1);
	brim_workload_found(r, c);
	brim_run_mismatch(r, 0, m);
	brim_run_close(r);
	return ret;
}

/* Blocks that hold anything else than the last operation's. */
static uint64_t wrong_blocks(const struct bench *b)
{
	const uint8_t *at = b->m->bytes + 5 * BLOCK;
	uint8_t want[BLOCK];
	uint64_t wrong = 0, k;

	for (k = 0; k < BLOCKS; k++, at += BLOCK) {
		memset(want, 0xa5, BLOCK);
		if (b->last[k])
			brim_workload_block(b->w, (5 + k) * BLOCK,
					    b->last[k] - 1, want);
		wrong += memcmp(at, want, BLOCK) != 0;
	}
	return wrong;
}

/* ---------------------------------------------------------------- patterns */

static void test_patterns(void)
{
	static const char *const names[] = { "sequential", "random",
					     "permutation", "strided", "zipf" };
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_UNIFORM,
			       .min = 1,
			       .max = 60000 };
	struct brim_workload_counts c;
	struct brim_workload_stats ws;
	struct brim_run_stats st;
	struct brim_mismatch m;
	struct brim_err e = { 0 };
	int p, k, ret;

	for (p = 0; p < 5; p++) {
		struct brim_workload_options o =
			options(BRIM_PATTERN_SEQUENTIAL + (enum brim_pattern)p);
		uint64_t written = 0, binned = 0, blocks = 0;
		struct bench b;

		o.read_ppm = 250000;
		if (p != 2 && p != 3)
			o.sizes = &d;
		bench_new(&b, &o);
		b.m->sleep_ns = 20000;
		ret = run(&b, 0, &st, &ws, &e);
		for (k = 0; k < (int)BLOCKS; k++)
			blocks += b.last[k] != 0;
		for (k = 0; k < (int)ws.bin_count; k++) {
			written += ws.bins[k].writes;
			binned += ws.bins[k].bytes;
		}
		ok(ret == 0 && !wrong_blocks(&b), names[p],
		   "%d %s: %llu blocks wrong", ret, e.msg,
		   (unsigned long long)wrong_blocks(&b));
		ok(st.reads + st.writes == b.ops && st.groups_done == b.ops &&
			   ws.begun == b.ops && ws.done == b.ops &&
			   st.bytes_done == st.read_bytes + st.write_bytes &&
			   st.reads > b.ops / 5 && st.reads < b.ops / 3 &&
			   written == st.writes && binned == st.bytes_done,
		   "counters agree with the plan",
		   "%llu + %llu of %llu, %llu begun, %llu binned",
		   (unsigned long long)st.reads, (unsigned long long)st.writes,
		   (unsigned long long)b.ops, (unsigned long long)ws.begun,
		   (unsigned long long)binned);
		ret = verify(&b, UINT64_MAX, UINT64_MAX, &c, &m, &st);
		ok(ret == 0 && c.right == blocks && !st.mismatches,
		   "verify: all right", "%d: %llu right of %llu, %llu wrong",
		   ret, (unsigned long long)c.right, (unsigned long long)blocks,
		   (unsigned long long)st.mismatches);
		bench_free(&b);
	}
}

/* Overlapping writes wait where blocks are hot, and only there. */
static void test_order(void)
{
	struct brim_workload_options o = options(BRIM_PATTERN_ZIPF);
	struct brim_workload_stats ws;
	struct brim_run_stats st;
	struct brim_err e = { 0 };
	struct bench b;
	int ret;

	o.theta = 3;
	bench_new(&b, &o);
	b.m->sleep_ns = 20000;
	ret = run(&b, 0, &st, &ws, &e);
	ok(ret == 0 && ws.waits > b.ops / 4 && !wrong_blocks(&b),
	   "writes to one block keep their order", "%d, %llu waits, %llu wrong",
	   ret, (unsigned long long)ws.waits,
	   (unsigned long long)wrong_blocks(&b));
	bench_free(&b);
	o = options(BRIM_PATTERN_PERMUTATION);
	o.passes = 1;
	bench_new(&b, &o);
	b.m->sleep_ns = 20000;
	ret = run(&b, 0, &st, &ws, &e);
	ok(ret == 0 && !ws.waits && b.m->at_once_max > 4,
	   "writes to other blocks do not wait", "%d, %llu waits, %u at once",
	   ret, (unsigned long long)ws.waits, b.m->at_once_max);
	bench_free(&b);
}

/* ------------------------------------------------------------------ damage */

static const char *const damages[] = { "missing", "stale",     "newer",
				       "corrupt", "misplaced", "corrupt",
				       "missing", "corrupt" };

/* Damages the block k, which its device holds at `at`. */
static void damage(const struct bench *b, int kind, uint64_t k, uint8_t *at)
{
	uint64_t off = (5 + k) * BLOCK;
	struct brim_workload_options o = options(BRIM_PATTERN_RANDOM);
	struct brim_workload *other;

	switch (kind) {
	case 0:
		memset(at, 0, BLOCK);
		break;
	case 1:
		brim_workload_block(b->w, off, b->last[k] - 2, at);
		break;
	case 2:
		brim_workload_block(b->w, off, b->ops + 5, at);
		break;
	case 3:
		at[1000] ^= 1;
		break;
	case 4:
		brim_workload_block(b->w, off + BLOCK, b->last[k] - 1, at);
		break;
	case 5: /* the header's sector is gone */
		memset(at, 0, 512);
		break;
	case 6: /* what another run left */
		o.seed = 43;
		brim_workload_create(&other, &o, NULL);
		brim_workload_block(other, off, b->last[k] - 1, at);
		brim_workload_free(other);
		break;
	default: /* torn: a sector of the write before */
		brim_workload_block(b->w, off, 0, at);
		memset(at + 4088, 0, 8);
	}
}

static void test_damage(void)
{
	struct brim_workload_options o = options(BRIM_PATTERN_PERMUTATION);
	struct brim_workload_counts c;
	struct brim_workload_stats ws;
	struct brim_run_stats st;
	struct brim_mismatch m;
	struct brim_err e = { 0 };
	uint8_t keep[BLOCK], *at;
	struct bench b;
	uint64_t k;
	int kind, ret;

	bench_new(&b, &o);
	run(&b, 0, &st, &ws, &e);
	for (kind = 0; kind < 8; kind++) {
		k = 70 * (uint64_t)kind + 3;
		at = b.m->bytes + (5 + k) * BLOCK;
		memcpy(keep, at, BLOCK);
		damage(&b, kind, k, at);
		ret = verify(&b, b.ops, b.ops, &c, &m, &st);
		ok(ret == 0 && st.mismatches == 1 && c.right == BLOCKS - 1 &&
			   c.missing + c.stale + c.newer + c.misplaced +
					   c.corrupt ==
				   1 &&
			   m.group == k && !strcmp(m.what, damages[kind]),
		   "verify tells what is wrong",
		   "%d: %d, %llu wrong, %s at %llu", kind, ret,
		   (unsigned long long)st.mismatches,
		   m.what ? m.what : "nothing", (unsigned long long)m.group);
		if (kind == 3)
			ok(m.off_bytes == (5 + k) * BLOCK + 1000 &&
				   m.expected == keep[1000] &&
				   m.found == (keep[1000] ^ 1),
			   "verify tells the corrupt byte", "%llu",
			   (unsigned long long)m.off_bytes);
		memcpy(at, keep, BLOCK);
	}
	ret = verify(&b, b.ops, b.ops, &c, &m, &st);
	ok(ret == 0 && c.right == BLOCKS, "verify: right again", "%d", ret);
	ok(verify(&b, 2, 1, &c, &m, &st) == -EINVAL, "more done than begun",
	   "no");
	bench_free(&b);
}

/* ----------------------------------------------------------------- cut off */

static void test_cut_off(void)
{
	struct brim_workload_options o = options(BRIM_PATTERN_ZIPF);
	struct brim_workload_counts c;
	struct brim_workload_stats ws;
	struct brim_run_stats st;
	struct brim_mismatch m;
	struct brim_err e = { 0 };
	uint64_t unjudged = 0;
	struct bench b;
	int steps, ret, wrong = 0, cut = 0;

	for (steps = 1; steps < 60; steps += 3) {
		bench_new(&b, &o);
		b.m->sleep_ns = 10000;
		run(&b, steps, &st, &ws, &e);
		cut += ws.done < ws.begun && ws.begun < b.ops;
		ret = verify(&b, ws.done, ws.begun, &c, &m, &st);
		wrong += ret < 0 || st.mismatches;
		unjudged += c.unjudged;
		bench_free(&b);
	}
	ok(!wrong && cut > 10, "a run that was cut off verifies",
	   "%d wrong, %d cut off", wrong, cut);
	/* Nothing else is excused: the same damage among what is done. */
	bench_new(&b, &o);
	run(&b, 30, &st, &ws, &e);
	memset(b.m->bytes, 0, (BLOCKS + 10) * BLOCK);
	ret = verify(&b, ws.done, ws.begun, &c, &m, &st);
	ok(ret == 0 && c.missing == st.mismatches && c.missing > 0 && !c.right,
	   "what is done is judged", "%d, %llu missing", ret,
	   (unsigned long long)c.missing);
	bench_free(&b);
}

static void test_resume(void)
{
	struct brim_workload_options o = options(BRIM_PATTERN_ZIPF);
	struct brim_workload_run_options wo = { .struct_bytes = sizeof(wo) };
	struct brim_workload_stats ws;
	struct brim_run_stats st;
	struct brim_err e = { 0 };
	struct brim_run *r;
	struct bench b;
	int ret;

	bench_new(&b, &o);
	b.m->sleep_ns = 10000;
	run(&b, 30, &st, &ws, &e);
	wo.first = ws.done;
	ret = brim_workload_open(&r, b.w, &b.m->dev, &wo, &b.ro, &e);
	while (!ret && (ret = brim_run_step(r, 0, &st, &e)) == 1)
		;
	brim_run_close(r);
	ok(ret == 0 && st.writes == b.ops - wo.first && wo.first > 0 &&
		   !wrong_blocks(&b),
	   "a run is taken up again", "%d, from %llu: %llu wrong", ret,
	   (unsigned long long)wo.first, (unsigned long long)wrong_blocks(&b));
	bench_free(&b);
	o.passes = 1000000;
	wo = (struct brim_workload_run_options){ .struct_bytes = sizeof(wo),
						 .limit_ns = 30000000 };
	bench_new(&b, &(struct brim_workload_options){
			      .struct_bytes = sizeof(o),
			      .pattern = BRIM_PATTERN_RANDOM,
			      .size_bytes = BLOCKS * BLOCK,
			      .operations = 1000 });
	brim_workload_free(b.w);
	brim_workload_create(&b.w, &o, &e);
	ret = brim_workload_open(&r, b.w, &b.m->dev, &wo, &b.ro, &e);
	while (!ret && (ret = brim_run_step(r, 0, &st, &e)) == 1)
		;
	brim_run_close(r);
	ok(ret == 0 && st.elapsed_ns >= 30000000 && st.writes > 0,
	   "a limit of time", "%d, %llu ns", ret,
	   (unsigned long long)st.elapsed_ns);
	bench_free(&b);
}

/* ----------------------------------------------------------------- refused */

static int open_with(struct bench *b, struct brim_err *e)
{
	struct brim_run *r;
	int ret = brim_workload_open(&r, b->w, &b->m->dev, NULL, &b->ro, e);

	if (ret == 0)
		brim_run_close(r);
	else if (r || !e->msg[0])
		return 1;
	memset(e, 0, sizeof(*e));
	return ret;
}

static void test_refused(void)
{
	struct brim_workload_options o = options(BRIM_PATTERN_SEQUENTIAL);
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_FIXED,
			       .min = 128 << 10,
			       .max = 128 << 10 };
	struct brim_workload_stats ws = { .struct_bytes = sizeof(ws) };
	struct brim_workload_counts c = { .struct_bytes = sizeof(c) };
	struct brim_err e = { 0 };
	struct brim_run *r;
	struct bench b;

	bench_new(&b, &o);
	ok(open_with(&b, &e) == 0, "it is accepted", "no");
	b.m->dev.info.size_bytes = (5 + BLOCKS) * BLOCK - 1;
	ok(open_with(&b, &e) == -ERANGE, "a range past the end", "no");
	b.m->dev.info.size_bytes = (BLOCKS + 10) * BLOCK;
	b.m->dev.info.is_writable = 0;
	ok(open_with(&b, &e) == -EROFS, "read-only", "no");
	b.m->dev.info.is_writable = 1;
	b.m->dev.info.align_bytes = 8192;
	ok(open_with(&b, &e) == -EINVAL, "aligned otherwise", "no");
	b.m->dev.info.align_bytes = 1;
	brim_workload_verify(&r, b.w, &b.m->dev, 0, 0, &b.ro, &e);
	ok(brim_workload_stats(r, &ws) == -ENOENT &&
		   brim_workload_found(r, &c) == 0,
	   "stats are of runs of their kind", "no");
	brim_run_close(r);
	bench_free(&b);
	o.sizes = &d;
	bench_new(&b, &o);
	ok(open_with(&b, &e) == -EINVAL, "I/Os above max_io_bytes", "no");
	bench_free(&b);
	o.sizes = NULL;
	o.read_ppm = 1000000;
	bench_new(&b, &o);
	b.m->dev.info.is_writable = 0;
	ok(open_with(&b, &e) == 0, "reads only, read-only", "no");
	bench_free(&b);
}

int main(void)
{
	test_patterns();
	test_order();
	test_damage();
	test_cut_off();
	test_resume();
	test_refused();
	return tap_end();
}
