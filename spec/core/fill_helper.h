/* SPDX-License-Identifier: MIT */
/*
 * fill_helper.h: what the tests of fills share: a scratch directory, filesets,
 * system calls that fail when told to, and the judgement of what a fill left by
 * replaying it. Include it in one file per program.
 */
#ifndef BRIM_FILL_HELPER_H
#define BRIM_FILL_HELPER_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fill.h"
#include "tap.h"

/* ------------------------------------------------------- failing on purpose */

enum fault_call {
	FAULT_OPEN,
	FAULT_WRITE,
	FAULT_FSYNC,
	FAULT_CLOSE,
	FAULT_TRUNCATE,
	FAULT_MKDIR,
	FAULT_UNLINK,
	FAULT_RENAME,
	FAULT_RING_WRITE,
	FAULT_RING_FSYNC,
	FAULT_RING_CLOSE,
	FAULT_CALLS,
};

static const char *const fault_names[FAULT_CALLS] = {
	"open",   "write",  "fsync",      "close",      "truncate",   "mkdir",
	"unlink", "rename", "ring write", "ring fsync", "ring close",
};

/* The at-th of such calls fails; or one of `odds` of all calls. */
static struct {
	_Atomic int call, at, count, error, odds;
	_Atomic uint64_t random;
	_Atomic bool is_short; /* a write moves only half of what it was told */
} fault;

static bool fault_hits(int call)
{
	uint64_t seed;

	if (atomic_load(&fault.odds)) {
		/* Of what cleans up after failures none fails. */
		if (call == FAULT_TRUNCATE || call == FAULT_UNLINK ||
		    call == FAULT_OPEN)
			return false;
		seed = atomic_fetch_add(&fault.random, 0x9e3779b97f4a7c15u);
		return tap_below(&seed, (uint64_t)atomic_load(&fault.odds)) ==
		       0;
	}
	return call == atomic_load(&fault.call) &&
	       atomic_fetch_add(&fault.count, 1) + 1 == atomic_load(&fault.at);
}

static int fault_fails(int call)
{
	if (!fault_hits(call))
		return 0;
	errno = atomic_load(&fault.error);
	return -1;
}

static int fault_openat(int dir, const char *path, int flags, mode_t mode)
{
	return fault_fails(FAULT_OPEN)
		       ? -1
		       : brim__fill_system.openat(dir, path, flags, mode);
}

static ssize_t fault_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	if (atomic_load(&fault.is_short)) {
		if (len > 1 && fault_hits(FAULT_WRITE))
			len /= 2;
	} else if (fault_fails(FAULT_WRITE)) {
		return -1;
	}
	return pwrite(fd, buf, len, at);
}

static int fault_fsync(int fd)
{
	return fault_fails(FAULT_FSYNC) ? -1 : fsync(fd);
}

static int fault_close(int fd)
{
	int fails;

	close(fd); /* as the kernel: it is closed, whatever it says */
	fails = fault_fails(FAULT_CLOSE);
	return fails;
}

static int fault_ftruncate(int fd, off_t size)
{
	return fault_fails(FAULT_TRUNCATE) ? -1 : ftruncate(fd, size);
}

static int fault_mkdirat(int dir, const char *path, mode_t mode)
{
	return fault_fails(FAULT_MKDIR) ? -1 : mkdirat(dir, path, mode);
}

static int fault_unlinkat(int dir, const char *path, int flags)
{
	return fault_fails(FAULT_UNLINK) ? -1 : unlinkat(dir, path, flags);
}

static int fault_renameat(int from_dir, const char *from, int to_dir,
			  const char *to)
{
	return fault_fails(FAULT_RENAME) ? -1
					 : renameat(from_dir, from, to_dir, to);
}

static int fault_answer(const char *call, int result)
{
	int k = call[0] == 'w'   ? FAULT_RING_WRITE
		: call[0] == 'f' ? FAULT_RING_FSYNC
				 : FAULT_RING_CLOSE;

	return result >= 0 && fault_hits(k) ? -atomic_load(&fault.error)
					    : result;
}

static const struct brim__fill_calls fault_table = {
	.openat = fault_openat,
	.pwrite = fault_pwrite,
	.fsync = fault_fsync,
	.close = fault_close,
	.ftruncate = fault_ftruncate,
	.mkdirat = fault_mkdirat,
	.unlinkat = fault_unlinkat,
	.renameat = fault_renameat,
	.answer = fault_answer,
};

static inline void fault_set(int call, int at, int error)
{
	atomic_store(&fault.call, call);
	atomic_store(&fault.at, at);
	atomic_store(&fault.count, 0);
	atomic_store(&fault.error, error);
	atomic_store(&fault.odds, 0);
	atomic_store(&fault.is_short, false);
}

/* ------------------------------------------------------------- directories */

static char scratch[256];

static int remove_one(const char *path, const struct stat *st, int kind,
		      struct FTW *where)
{
	(void)st;
	(void)kind;
	return where->level ? remove(path) : 0;
}

/* The scratch directory, emptied. */
static inline const char *scratch_clear(void)
{
	if (!scratch[0]) {
		/* Memory, where there is a tmpfs: fsync costs nothing there. */
		const char *tmp = access("/dev/shm", W_OK) ? getenv("TMPDIR")
							   : "/dev/shm";

		snprintf(scratch, sizeof(scratch), "%s/brim-fill.XXXXXX",
			 tmp ? tmp : "/tmp");
		if (!mkdtemp(scratch))
			abort();
	}
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return scratch;
}

static inline void scratch_end(void)
{
	scratch_clear();
	rmdir(scratch);
}

/* ------------------------------------------------------------------- fills */

static inline struct brim_fileset *new_fileset(uint64_t seed, uint32_t streams,
					       uint64_t min, uint64_t max)
{
	struct brim_dist d = { .struct_bytes = sizeof(d),
			       .kind = BRIM_DIST_LOG_UNIFORM,
			       .min = min,
			       .max = max };
	struct brim_fileset_options o = { .struct_bytes = sizeof(o),
					  .seed = seed,
					  .streams = streams,
					  .sizes = &d,
					  .depth = 2,
					  .fan_out = 3,
					  .files_per_dir = 5,
					  .content = BRIM_CONTENT_RANDOM };
	struct brim_err e = { 0 };
	struct brim_fileset *fs;

	if (brim_fileset_create(&fs, &o, &e) < 0) {
		printf("# %s\n", e.msg);
		abort();
	}
	return fs;
}

static const struct brim_phase churn = { .struct_bytes = sizeof(churn),
					 .weights = { 0, 4, 3, 3, 3, 3, 2 } };

#define PLAN_FAILURES 4096

/* What a fill was told to do, and what it was refused. */
struct told {
	uint64_t creates[8], churns[8]; /* of each stream, as done */
	struct brim_fill_failure failures[PLAN_FAILURES];
	size_t failure_count;
};

static inline void take_failures(struct brim_fill *f, struct told *t)
{
	while (t->failure_count < PLAN_FAILURES &&
	       brim_fill_failure(f, &t->failures[t->failure_count]))
		t->failure_count++;
}

/*
 * Grants until every stream has done so many operations in all; those that
 * were refused less have done more by then.
 */
static inline int fill_to(struct brim_fill *f, uint32_t streams, uint64_t ops,
			  uint64_t done_by[8], struct told *t,
			  struct brim_err *e)
{
	uint64_t least;
	uint32_t k;
	int ret = 0;

	for (least = 0; least < ops && !ret;) {
		least = ops;
		for (k = 0; k < streams; k++) {
			brim_fill_done(f, k, &done_by[k]);
			least = BRIM__MIN(least, done_by[k]);
		}
		if (least == ops)
			break;
		ret = brim_fill_grant(f, ops - least, 0, e);
		if (!ret)
			ret = brim_fill_step(f, 0, NULL, e);
		take_failures(f, t);
	}
	return ret;
}

/* What verification finds when that is replayed; findings are printed. */
static inline uint64_t judge(struct brim_fileset *fs, const char *path,
			     const struct told *t)
{
	struct brim_fill_options o = { .struct_bytes = sizeof(o),
				       .mode = "none" };
	struct brim_verify_stats st = { .struct_bytes = sizeof(st) };
	struct brim_verify_options vo = { .struct_bytes = sizeof(vo),
					  .threads = 2 };
	uint64_t off, expected, found, sum = 0;
	struct brim_err e = { 0 };
	struct brim_verify *v;
	struct brim_fill *f;
	const char *name;
	size_t k;
	int kind;

	if (brim_fill_open(&f, fs, path, &o, &e) < 0)
		abort();
	for (k = 0; k < t->failure_count; k++)
		if (brim_fill_replay_failure(f, &t->failures[k], &e) < 0)
			printf("# %s\n", e.msg);
	for (k = 0; k < brim_fileset_streams(fs); k++)
		brim_fill_replay(f, (uint32_t)k, t->creates[k], &e);
	brim_fill_phase(f, &churn, &e);
	for (k = 0; k < brim_fileset_streams(fs); k++)
		brim_fill_replay(f, (uint32_t)k, t->churns[k] - t->creates[k],
				 &e);
	if (brim_verify_open(&v, f, NULL, &vo, &e) < 0 ||
	    brim_verify_step(v, 0, &st, &e) != 0) {
		printf("# %s\n", e.msg);
		abort();
	}
	for (k = 0; (kind = brim_verify_finding(v, k, &name, &off, &expected,
						&found)) > 0;
	     k++)
		if (k < 5)
			printf("# finding %d %s at %llu: %llu, not %llu\n",
			       kind, name, (unsigned long long)off,
			       (unsigned long long)found,
			       (unsigned long long)expected);
	for (k = 0; k < BRIM_FINDINGS; k++)
		sum += st.found[k];
	brim_verify_close(v);
	brim_fill_close(f);
	return sum;
}

#endif /* BRIM_FILL_HELPER_H */
