/* SPDX-License-Identifier: MIT */
/*
 * test_fill_fault.c: every system call of a fill may fail, in the first place
 * and in any other: what stands afterwards is exactly what the streams say when
 * they are replayed with the failures. $SEED varies it.
 */
#include "fill_helper.h"

#define CREATES 60u
#define CHURNS 240u

struct variant {
	const char *mode;
	uint32_t streams;
	enum brim_fsync_policy fsync;
	int direct;
	uint64_t max;
};

static struct told told;

/* A fill and a churn with what `fault` says; the findings, or UINT64_MAX. */
static uint64_t try(const struct variant *v, uint64_t seed,
		    struct brim_fill_stats *st)
{
	struct brim_fileset *fs = new_fileset(seed, v->streams, 100, v->max);
	struct brim_fill_options o = { .struct_bytes = sizeof(o),
				       .mode = v->mode,
				       .queue_depth = 8,
				       .direct = v->direct,
				       .direct_min_bytes = 16384,
				       .max_io_bytes = 8192,
				       .fsync = v->fsync };
	const char *path = scratch_clear();
	struct brim_err e = { 0 };
	struct brim_fill *f;
	uint64_t found = UINT64_MAX;
	int ret;

	memset(&told, 0, sizeof(told));
	ret = brim_fill_open(&f, fs, path, &o, &e);
	if (ret < 0)
		goto end;
	brim__fill_set_calls(f, &fault_table);
	ret = fill_to(f, v->streams, CREATES, told.creates, &told, &e);
	if (!ret)
		ret = brim_fill_phase(f, &churn, &e);
	if (!ret)
		ret = fill_to(f, v->streams, CREATES + CHURNS, told.churns,
			      &told, &e);
	st->struct_bytes = sizeof(*st);
	brim_fill_step(f, 0, st, &e);
	brim_fill_close(f);
	if (!ret)
		found = judge(fs, path, &told);
end:
	if (ret < 0)
		printf("# %s\n", e.msg);
	brim_fileset_free(fs);
	return found;
}

/* The first calls of a kind, one by one, each in a fill of its own. */
static void test_each(const struct variant *v, int call, uint64_t seed)
{
	static const int at[] = { 1, 2, 3, 5, 17, 40 };
	/* What the ring wrote it did write, whatever its answer becomes. */
	int error = call == FAULT_RING_WRITE ? EIO : ENOSPC;
	struct brim_fill_stats st;
	unsigned int k, seen = 0;
	char name[96];
	uint64_t found = 0;

	for (k = 0; k < sizeof(at) / sizeof(*at) && !found; k++) {
		fault_set(call, at[k], error);
		found = try(v, seed, &st);
		seen += st.refused + st.failed == 1 &&
			st.refused == (error == ENOSPC);
		if (found)
			printf("# call %d of the kind\n", at[k]);
	}
	snprintf(name, sizeof(name), "%s: a refused %s leaves what is said",
		 v->mode, fault_names[call]);
	ok(!found, name, "%llu findings", (unsigned long long)found);
	snprintf(name, sizeof(name), "%s: a refused %s is counted", v->mode,
		 fault_names[call]);
	ok(seen >= 2, name, "%u times", seen);
}

static void test_short(const struct variant *v, uint64_t seed)
{
	struct brim_fill_stats st;
	uint64_t found = 0;
	int k;

	for (k = 1; k < 30 && !found; k += 7) {
		fault_set(FAULT_WRITE, k, 0);
		atomic_store(&fault.is_short, true);
		found = try(v, seed, &st);
		found += st.refused + st.failed;
	}
	ok(!found, "short writes are gone on with", "%llu findings",
	   (unsigned long long)found);
}

/* Which errors mean that there is no room, and which do not. */
static void test_errors(const struct variant *v, uint64_t seed)
{
	static const struct {
		int error;
		bool is_refusal;
	} errors[] = { { EDQUOT, true }, { EFBIG, true },  { ENOSPC, true },
		       { EIO, false },   { EROFS, false }, { EACCES, false } };
	struct brim_fill_stats st;
	unsigned int k, right = 0;

	for (k = 0; k < sizeof(errors) / sizeof(*errors); k++) {
		fault_set(FAULT_WRITE, 9, errors[k].error);
		right += try(v, seed, &st) == 0 && told.failure_count == 1 &&
			 told.failures[0].error == errors[k].error &&
			 !strcmp(told.failures[0].call, "write") &&
			 st.refused == errors[k].is_refusal &&
			 st.failed == !errors[k].is_refusal;
	}
	ok(right == k, "refusals and other failures are told apart", "%u of %u",
	   right, k);
}

/* Many failures, of all kinds, many in flight. */
static void test_storm(const struct variant *v, uint64_t seed)
{
	struct brim_fill_stats st;
	uint64_t found;
	char name[64];

	fault_set(0, 0, EIO);
	atomic_store(&fault.random, seed);
	atomic_store(&fault.odds, 25);
	found = try(v, seed, &st);
	atomic_store(&fault.odds, 0);
	snprintf(name, sizeof(name), "%s: a storm of failures, %u streams",
		 v->mode, v->streams);
	ok(!found && st.failed > 20 && !st.refused, name,
	   "%llu findings, %llu failed", (unsigned long long)found,
	   (unsigned long long)st.failed);
	printf("# %s: %zu failures told\n", v->mode, told.failure_count);
}

static bool has_ring(void)
{
	struct brim_err e = { 0 };

	return brim__fill_ring_probe(&e) == 0;
}

int main(void)
{
	static const struct variant plain = { "plain", 1, BRIM_FSYNC_FILE, 0,
					      60000 };
	static const struct variant ring = { "ring", 1, BRIM_FSYNC_FILE, 0,
					     60000 };
	static const struct variant storms[] = {
		{ "plain", 3, BRIM_FSYNC_NEVER, -1, 60000 },
		{ "ring", 3, BRIM_FSYNC_NEVER, -1, 60000 },
		{ "ring", 2, BRIM_FSYNC_FILE, 1, 60000 },
	};
	uint64_t seed = tap_seed(1);
	size_t k;
	int call;

	for (call = 0; call < FAULT_RING_WRITE; call++)
		test_each(&plain, call, seed + (uint64_t)call);
	test_short(&plain, seed);
	test_errors(&plain, seed);
	test_storm(&storms[0], seed);
	if (has_ring()) {
		test_each(&ring, FAULT_OPEN, seed);
		test_each(&ring, FAULT_RENAME, seed);
		for (call = FAULT_RING_WRITE; call < FAULT_CALLS; call++)
			test_each(&ring, call, seed + (uint64_t)call);
		for (k = 1; k < sizeof(storms) / sizeof(*storms); k++)
			test_storm(&storms[k], seed);
	} else {
		skip("ring", "no io_uring here");
	}
	scratch_end();
	return tap_end();
}
