/* SPDX-License-Identifier: MIT */
/*
 * test_stream.c: streams against a model that keeps every file's bytes and
 * carries the operations out on them, over thousands of seeded sequences with
 * failures among them; replays and copies; bands; directories; golden values;
 * memory and speed.
 */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <string.h>

#include "stream_model.h"

static const struct brim_dist SMALL = { .struct_bytes = sizeof(SMALL),
					.kind = BRIM_DIST_LOG_UNIFORM,
					.min = 1,
					.max = 40000 };
static const struct brim_phase CHURN = {
	.struct_bytes = sizeof(CHURN), .weights = { 0, 30, 25, 15, 15, 10, 20 }
};
/* Everything but creation. */
static const struct brim_phase CHANGES = {
	.struct_bytes = sizeof(CHANGES), .weights = { 0, 0, 30, 20, 20, 10, 1 }
};

static struct brim_fileset *fileset(uint64_t seed, const struct brim_dist *d)
{
	struct brim_fileset_options o = { .struct_bytes = sizeof(o),
					  .seed = seed,
					  .streams = 4,
					  .sizes = d,
					  .depth = 2,
					  .fan_out = 3,
					  .files_per_dir = 7 };
	struct brim_fileset *fs;
	struct brim_err e = { 0 };

	if (brim_fileset_create(&fs, &o, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	return fs;
}

static struct brim_stream *stream(const struct brim_fileset *fs, uint32_t n)
{
	struct brim_stream *s;

	if (brim_stream_create(&s, fs, n, NULL) < 0)
		exit(1);
	return s;
}

/* ------------------------------------------------------------------- model */

/* One sequence: ops of changing phases, some refused. */
static const char *one_sequence(uint64_t seed, unsigned int ops,
				unsigned int refuse_one_in)
{
	struct brim_fileset *fs = fileset(seed, &SMALL);
	struct brim_stream *s = stream(fs, (uint32_t)(seed % 4));
	struct model *m = calloc(1, sizeof(*m));
	uint64_t state = seed;
	const char *wrong;
	unsigned int k;

	m->fs = fs;
	for (k = 0; k < ops && !m->wrong; k++) {
		struct brim_op op;

		if (k % 64 == 0)
			brim_stream_phase(
				s, tap_below(&state, 2) ? &CHURN : &CHANGES,
				NULL);
		brim_stream_next(s, &op, NULL);
		if (op.index != k)
			m->wrong = "another index";
		if (refuse_one_in && !tap_below(&state, refuse_one_in))
			brim_stream_fail(s, &op, model_refuse(m, &op, &state),
					 NULL);
		else
			model_do(m, &op, (size_t)op.len_bytes);
	}
	wrong = check_all(m, s);
	model_free(m);
	brim_stream_free(s);
	brim_fileset_free(fs);
	return wrong;
}

static void test_model(uint64_t seed)
{
	const char *wrong = NULL;
	uint64_t k = 0;

	for (k = 0; k < 2000 && !wrong; k++)
		wrong = one_sequence(seed + k, 50 + (unsigned int)(k % 300), 0);
	ok(!wrong, "files are as a model has them", "seed %" PRIu64 ": %s",
	   seed + k - 1, wrong);
	for (k = 0; k < 2000 && !wrong; k++)
		wrong = one_sequence(seed + k, 50 + (unsigned int)(k % 300),
				     2 + (unsigned int)(k % 20));
	ok(!wrong, "and where operations are refused", "seed %" PRIu64 ": %s",
	   seed + k - 1, wrong);
	wrong = one_sequence(seed, 40000, 50);
	ok(!wrong, "and in a long sequence", "seed %" PRIu64 ": %s", seed,
	   wrong);
}

/* -------------------------------------------------------- several in flight */

/* Two on one file are refused, the younger told first. */
static void test_in_flight(void)
{
	struct brim_fileset *fs = fileset(1, &SMALL);
	struct brim_stream *s = stream(fs, 0);
	struct brim_op create, op, later;
	struct brim_phase append = { .struct_bytes = sizeof(append),
				     .weights = { [BRIM_OP_APPEND] = 1 } };
	struct brim_phase replace = { .struct_bytes = sizeof(replace),
				      .weights = { [BRIM_OP_REPLACE] = 1 } };
	struct brim_phase delete = { .struct_bytes = sizeof(delete),
				     .weights = { [BRIM_OP_DELETE] = 1 } };
	struct brim_file f;

	do
		brim_stream_next(s, &create, NULL);
	while (create.kind != BRIM_OP_CREATE);
	brim_stream_phase(s, &append, NULL);
	brim_stream_next(s, &op, NULL);
	brim_stream_fail(s, &op, BRIM_FILE_AS_BEFORE, NULL);
	brim_stream_fail(s, &create, create.file.size_bytes / 2, NULL);
	ok(!brim_stream_find(s, create.file.id, &f) &&
		   f.size_bytes == create.file.size_bytes / 2 &&
		   f.base_bytes == f.size_bytes,
	   "the younger first, then the older", "%" PRIu64, f.size_bytes);
	brim_stream_phase(s, &replace, NULL);
	brim_stream_next(s, &op, NULL);
	brim_stream_next(s, &later, NULL);
	brim_stream_fail(s, &op, 1, NULL);
	ok(!brim_stream_find(s, op.file.id, &f) && is_same(&f, &later.file),
	   "what was replaced since is left", "version %d", f.version);
	brim_stream_phase(s, &delete, NULL);
	brim_stream_next(s, &op, NULL);
	brim_stream_fail(s, &later, 1, NULL);
	ok(brim_stream_find(s, op.file.id, &f) == -ENOENT,
	   "what was deleted since is left", "it is there");
	brim_stream_fail(s, &op, BRIM_FILE_AS_BEFORE, NULL);
	ok(!brim_stream_find(s, op.file.id, &f) && is_same(&f, &op.before),
	   "a deletion that failed", "it is not there, or another");
	ok(brim_stream_fail(s, &op, op.before.size_bytes + 1, NULL) == -EINVAL,
	   "a size it cannot have", "taken");
	op.index += 1000;
	ok(brim_stream_fail(s, &op, 0, NULL) == -EINVAL,
	   "an operation that was never handed out", "taken");
	brim_stream_free(s);
	brim_fileset_free(fs);
}

/* ------------------------------------------------------- replays and copies */

/* All the bytes that say what an operation is. */
static uint64_t sum_op(uint64_t sum, const struct brim_op *op)
{
	sum = brim__mix_in(sum, (uint64_t)op->kind);
	sum = brim__mix_in(sum, op->index);
	sum = brim__mix_in(sum, (uint64_t)op->file.id << 32 |
					(uint64_t)op->file.version << 16 |
					op->file.overwrites);
	sum = brim__mix_in(sum, op->file.base_bytes);
	sum = brim__mix_in(sum, op->file.size_bytes);
	sum = brim__mix_in(sum, op->off_bytes);
	return brim__mix_in(sum, op->len_bytes + (uint64_t)op->dir_level);
}

static uint64_t sum_stream(struct brim_stream *s, unsigned int ops)
{
	uint64_t sum = 0;
	struct brim_op op;
	unsigned int k;

	for (k = 0; k < ops; k++) {
		if (k == ops / 3)
			brim_stream_phase(s, &CHURN, NULL);
		brim_stream_next(s, &op, NULL);
		if (k % 101 == 100)
			brim_stream_fail(s, &op, BRIM_FILE_AS_BEFORE, NULL);
		sum = sum_op(sum, &op);
	}
	return sum;
}

static void test_replay(uint64_t seed)
{
	struct brim_fileset *fs = fileset(seed, &SMALL);
	struct brim_fileset *golden = fileset(2026, &SMALL);
	struct brim_stream *a = stream(fs, 1), *b = stream(fs, 1), *copy;
	struct brim_stream *other = stream(fs, 2), *g = stream(golden, 0);
	uint64_t sum = sum_stream(a, 50000);

	ok(sum == sum_stream(b, 50000), "the same again", "another");
	ok(sum != sum_stream(other, 50000), "streams differ", "they do not");
	ok(!brim_stream_copy(&copy, a, NULL), "a copy", "none");
	ok(sum_stream(copy, 20000) == sum_stream(a, 20000),
	   "a copy goes on alike", "otherwise");
	ok(sum_stream(copy, 20000) == sum_stream(a, 20000), "and on its own",
	   "otherwise");
	sum = sum_stream(g, 100000);
	ok(sum == UINT64_C(0x72ef5a9ae40ad7c6), "golden operations",
	   "0x%" PRIx64, sum);
	brim_stream_free(a);
	brim_stream_free(b);
	brim_stream_free(copy);
	brim_stream_free(other);
	brim_stream_free(g);
	brim_fileset_free(golden);
	brim_fileset_free(fs);
}

/* ------------------------------------------------------------- weights, band */

static void test_weights(uint64_t seed)
{
	struct brim_fileset *fs = fileset(seed, &SMALL);
	struct brim_stream *s = stream(fs, 0);
	struct brim_stream_totals a = { .struct_bytes = sizeof(a) }, b = a;
	struct brim_op op;
	int kind, k;

	for (k = 0; k < 20000; k++)
		brim_stream_next(s, &op, NULL);
	brim_stream_totals(s, &a);
	ok(a.ops[BRIM_OP_CREATE] + a.ops[BRIM_OP_MKDIR] == 20000,
	   "without weights, creates only", "%" PRIu64, a.ops[BRIM_OP_CREATE]);
	brim_stream_phase(s, &CHURN, NULL);
	for (k = 0; k < 100000; k++)
		brim_stream_next(s, &op, NULL);
	brim_stream_totals(s, &b);
	for (kind = BRIM_OP_CREATE; kind < BRIM_OP_KINDS; kind++) {
		double got = (double)(b.ops[kind] - a.ops[kind]);
		double want = CHURN.weights[kind] / 115.0 * 100000;

		/* Appends and truncates stand in for each other. */
		ok(got > want * 0.7 && got < want * 1.3, "weights",
		   "kind %d: %g, not %g", kind, got, want);
	}
	brim_stream_free(s);
	brim_fileset_free(fs);
}

static void test_band(uint64_t seed)
{
	struct brim_fileset *fs = fileset(seed, &SMALL);
	struct brim_stream *s = stream(fs, 0);
	struct brim_phase p = CHURN;
	struct brim_stream_totals t = { .struct_bytes = sizeof(t) };
	uint64_t least = UINT64_MAX, most = 0;
	struct brim_op op;
	int k;

	p.live_bytes = 50000000;
	p.band_ppm = 5000;
	brim_stream_phase(s, &p, NULL);
	for (k = 0; k < 400000; k++) {
		brim_stream_next(s, &op, NULL);
		brim_stream_totals(s, &t);
		if (k < 100000)
			continue;
		least = BRIM__MIN(least, t.live_bytes);
		most = BRIM__MAX(most, t.live_bytes);
	}
	/* The band, and a few files: those replaced are not held to it. */
	ok(least > 49750000 - 200000 && most < 50250000 + 200000,
	   "live bytes keep to the band", "%" PRIu64 " to %" PRIu64, least,
	   most);
	p.band_ppm = 1000001;
	ok(brim_stream_phase(s, &p, NULL) == -EINVAL, "a band of over 100 %%",
	   "taken");
	p.band_ppm = 0;
	p.live_bytes = 0;
	p.max_file_bytes = 512;
	memset(p.weights, 0, sizeof(p.weights));
	brim_stream_phase(s, &p, NULL);
	for (k = 0, most = 0; k < 10000; k++) {
		brim_stream_next(s, &op, NULL);
		most = BRIM__MAX(most, op.len_bytes);
	}
	ok(most == 512, "files are capped", "%" PRIu64, most);
	brim_stream_free(s);
	brim_fileset_free(fs);
}

/* On a full disk without a further directory names are used again. */
static void test_mkdir_refused(void)
{
	struct brim_fileset *fs = fileset(1, &SMALL);
	struct brim_stream *s = stream(fs, 0);
	struct brim_phase p = {
		.struct_bytes = sizeof(p),
		.weights = { [BRIM_OP_CREATE] = 1, [BRIM_OP_DELETE] = 1 }
	};
	unsigned int refused = 0, created = 0, deleted = 0, outside = 0, k;
	struct brim_op op;

	for (k = 0; k < 2000; k++)
		brim_stream_next(s, &op, NULL);
	while (op.kind != BRIM_OP_MKDIR)
		brim_stream_next(s, &op, NULL);
	brim_stream_fail(s, &op, BRIM_FILE_NONE, NULL);
	brim_stream_phase(s, &p, NULL);
	for (k = 0; k < 5000; k++) {
		brim_stream_next(s, &op, NULL);
		if (op.kind == BRIM_OP_MKDIR) {
			brim_stream_fail(s, &op, BRIM_FILE_NONE, NULL);
			refused++;
		}
		created += op.kind == BRIM_OP_CREATE;
		deleted += op.kind == BRIM_OP_DELETE;
		outside += op.kind == BRIM_OP_CREATE &&
			   op.file.id >= s->made_ids;
	}
	ok(created > 2000 && deleted > 2000 && refused < 300,
	   "goes on without new directories",
	   "%u created, %u deleted, %u directories refused", created, deleted,
	   refused);
	ok(!outside, "in directories that are there", "%u are not", outside);
	brim_stream_free(s);
	brim_fileset_free(fs);
}

/* --------------------------------------------------------- memory and speed */

static void test_size(void)
{
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_LOG_UNIFORM,
			       .min = 4096,
			       .max = 4 << 20 };
	struct brim_fileset_options o = { .struct_bytes = sizeof(o),
					  .sizes = &d };
	struct brim_fileset *fs;
	struct brim_stream *s;
	size_t before, used;
	uint64_t begin;
	struct brim_op op;
	unsigned int k;

	brim_fileset_create(&fs, &o, NULL);
	s = stream(fs, 0);
	before = mallinfo2().hblkhd + mallinfo2().uordblks;
	for (k = 0; k < 1000000; k++)
		brim_stream_next(s, &op, NULL);
	used = mallinfo2().hblkhd + mallinfo2().uordblks - before;
	/* The sanitizers' malloc does not count. */
	ok(used <= 33 * 1000000, "at most 32 bytes a file", "%zu bytes", used);
	begin = brim__now_ns();
	for (k = 0; k < 9000000; k++)
		brim_stream_next(s, &op, NULL);
	printf("# 10 million files, %zu bytes for the first: %.2f s\n", used,
	       (double)(brim__now_ns() - begin) / 9e8);
	ok(brim__now_ns() - begin < 9000000000u, "10 million files in 10 s",
	   "%" PRIu64 " ns", brim__now_ns() - begin);
	brim_stream_free(s);
	brim_fileset_free(fs);
}

int main(void)
{
	uint64_t seed = tap_seed(4);

	test_model(seed);
	test_in_flight();
	test_replay(seed);
	test_weights(seed);
	test_band(seed);
	test_mkdir_refused();
	test_size();
	return tap_end();
}
