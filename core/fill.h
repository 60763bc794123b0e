/* SPDX-License-Identifier: MIT */
/*
 * fill.h: what the files of a fill share: the submitters (a thread for each
 * stream), what became of an operation, the system calls, the ring. Nobody else
 * includes it but tests, which put calls of their own in. Sizes are bytes,
 * times nanoseconds.
 */
#ifndef BRIM_FILL_H
#define BRIM_FILL_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "brim_fill.h"
#include "hist.h"
#include "internal.h"
#include "trace.h"

/* Of brim_fileset_path: "256 bytes suffice". */
#define BRIM__FILL_PATH 256
/* The directories a submitter keeps open; fewer where descriptors are few. */
#define BRIM__FILL_DIRS 64u
#define BRIM__FILL_DEPTH_MAX 1024u
/*
 * Offsets and lengths of O_DIRECT: a multiple of any logical block size that
 * drives have (512, 4096).
 */
#define BRIM__FILL_ALIGN 4096u

/* What a fill calls; as the C library's, errors in errno. */
struct brim__fill_calls {
	int (*openat)(int dir, const char *path, int flags, mode_t mode);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t at);
	int (*fsync)(int fd);
	int (*close)(int fd);
	int (*ftruncate)(int fd, off_t size);
	int (*mkdirat)(int dir, const char *path, mode_t mode);
	int (*unlinkat)(int dir, const char *path, int flags);
	int (*renameat)(int from_dir, const char *from, int to_dir,
			const char *to);
	/* What the ring answered ("write", "fsync", "close"): gives it on, or
	 * something worse. NULL: gives it on. */
	int (*answer)(const char *call, int result);
};

/* What became of an operation: error 0, or errno of the call that refused. */
struct brim__fill_result {
	const char *call;
	int error;
	uint64_t stands; /* as brim_stream_fail takes it */
	uint64_t written_bytes;
	bool is_synced;
};

struct brim__fill_dir {
	char path[BRIM__FILL_PATH];
	int fd; /* -1: none */
};

struct brim__fill_fail {
	struct brim_op op;
	struct brim__fill_result result;
};

/* A failure of an earlier run, for replaying it. */
struct brim__fill_replayed {
	struct brim_op op; /* until it was handed out: its index alone */
	uint64_t stands, told_index;
};

struct brim__fill_counts {
	uint64_t ops[BRIM_OP_KINDS];
	uint64_t written_bytes, refused, failed, short_files;
	struct brim_stream_totals totals;
	struct brim__hist latency[BRIM_OP_KINDS];
};

/* What `auto` measured of one way. */
struct brim__fill_sample {
	uint64_t ns, ops, bytes;
};

struct brim__fill_auto {
	uint32_t segment; /* number of the one under way */
	bool is_decided;
	bool is_timing;
	uint64_t start_ns, other_ns; /* other_ns: for what is not measured */
	struct brim__fill_sample now, sums[2]; /* plain, ring */
};

struct brim__fill_ring;

/*
 * Something under way, for other threads to look at: since when (0: nothing),
 * its kind and the file's id. The two may be of different operations for a
 * moment.
 */
struct brim__fill_since {
	_Atomic uint64_t ns;
	_Atomic uint64_t what; /* kind << 32 | id */
};

static inline void brim__fill_begin(struct brim__fill_since *s,
				    const struct brim_op *op, uint64_t now_ns)
{
	atomic_store_explicit(&s->what, (uint64_t)op->kind << 32 | op->file.id,
			      memory_order_relaxed);
	atomic_store_explicit(&s->ns, now_ns, memory_order_relaxed);
}

static inline void brim__fill_end(struct brim__fill_since *s)
{
	atomic_store_explicit(&s->ns, 0, memory_order_relaxed);
}

struct brim__fill_sub {
	struct brim_fill *fill;
	struct brim_stream *stream;
	uint32_t index;
	pthread_t thread;
	bool has_thread;
	uint64_t cpu_ns; /* of the thread, once it has ended */

	/* The submitter's own. */
	struct brim__fill_dir *dirs;
	uint8_t *buf; /* max_io_bytes */
	struct brim__fill_ring *ring;
	struct brim_op held; /* handed out by the stream, not begun */
	bool has_held;
	uint64_t next_index, begun; /* the stream's; all before were begun */
	uint64_t ops_left, bytes_left;
	uint64_t files_written, content_ns, published_ns;
	struct brim__fill_fail *fails; /* untold: up to depth + 2 */
	uint32_t fail_count;
	uint64_t lowest_fail; /* index; none: UINT64_MAX */
	uint32_t *short_ids;
	uint32_t short_count, short_room;
	struct brim__fill_auto choosing;
	struct brim_err err; /* code < 0: cannot be gone on from */

	/* By when they are told; from replay_first on they are still to be. */
	struct brim__fill_replayed *replays;
	size_t replay_first, replay_count, replay_room;
	uint64_t replay_index; /* the next of them that is handed out */

	_Atomic uint64_t done;
	_Atomic(struct brim__fill_ring *) ring_seen; /* step's view of `ring` */
	struct brim__fill_since since; /* the plain operation under way */
	pthread_mutex_t lock;          /* of what follows */
	struct brim__fill_counts counts;
};

struct brim_fill {
	struct brim_fileset *fileset;
	struct brim_fill_options o;
	const struct brim__fill_calls *calls;
	int root_fd;
	struct brim__trace *trace; /* NULL: none */
	struct brim_err trace_err; /* code < 0: it is not whole */
	uint64_t open_ns;
	uint32_t dirs; /* each submitter keeps */
	bool is_none, is_auto, is_resumed, ring_works;
	bool has_threads;
	_Atomic bool direct_works;
	char no_ring[128]; /* why the ring is not used */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work, news;
	bool stopping; /* threads end */
	uint64_t grant_ops, grant_bytes, grant_number;
	uint32_t running;
	uint64_t grant_ns, elapsed_ns;
	struct brim_fill_failure *failures;
	size_t failure_first, failure_count, failure_room;
	struct brim__fill_sample sums[2];
	uint32_t decided;
	bool use_ring; /* what they decided: read and written atomically */
	char choice[256];
	struct brim__hist *merged; /* by kind; step's */

	_Atomic bool stop; /* the grant ends early */
	uint32_t sub_count;
	struct brim__fill_sub *subs;
};

/* -------------------------------------------------------------------- fill.c */

/* A condition that is waited for by the clock of brim__now_ns. */
void brim__cond_init_monotonic(pthread_cond_t *cond);

/* -------------------------------------------------------------- fill_stats.c */

void brim__fill_stats(struct brim_fill *f, struct brim_fill_stats *out);

/* ------------------------------------------------------------- fill_submit.c */

/* The thread of a submitter. */
void *brim__fill_thread(void *arg);
/* Whether an error says that there is no room. */
bool brim__fill_is_refusal(int error);
/* Counts an operation that ended between the two times. */
void brim__fill_finish(struct brim__fill_sub *s, const struct brim_op *op,
		       const struct brim__fill_result *r, uint64_t start_ns,
		       uint64_t end_ns);
/* Brings what step reports up to date. */
void brim__fill_publish(struct brim__fill_sub *s);

/* --------------------------------------------------------------- fill_file.c */

extern const struct brim__fill_calls brim__fill_system;
/* Puts other calls in; before anything is granted. */
void brim__fill_set_calls(struct brim_fill *f,
			  const struct brim__fill_calls *c);
/*
 * The directory of a path, which stays open in a cache until other directories
 * are asked for, and the name in it. Makes missing directories where told to.
 */
int brim__fill_dir(struct brim__fill_sub *s, const char *path, bool makes,
		   const char **name);
void brim__fill_dirs_close(struct brim__fill_sub *s);
/* Makes the directories that lead to a path, up to a level (-1: all). */
int brim__fill_mkdir(struct brim__fill_sub *s, const char *path, int level);
/* Whether the data of an operation goes past the page cache. */
bool brim__fill_is_direct(const struct brim__fill_sub *s,
			  const struct brim_op *op);
/* Whether its file is synced before it is closed; counts the files. */
bool brim__fill_wants_fsync(struct brim__fill_sub *s);
/*
 * Opens the file of an operation that writes: a descriptor, or -errno. Takes
 * *is_direct back where the filesystem refuses it.
 */
int brim__fill_open_file(struct brim__fill_sub *s, const struct brim_op *op,
			 bool *is_direct);
/* Leaves O_DIRECT, for a tail. */
int brim__fill_leave_direct(int fd);
/* Content into buf; its time is not the filesystem's. */
void brim__fill_content(struct brim__fill_sub *s, const struct brim_op *op,
			uint64_t off_bytes, size_t len_bytes, uint8_t *buf);
/*
 * Settles a failed operation so that what stands is exactly known: with what
 * was written, or, if that is in doubt (fsync, close), without it.
 */
void brim__fill_settle(struct brim__fill_sub *s, const struct brim_op *op,
		       struct brim__fill_result *r);
/* After a replacement was written and closed: renames it. */
void brim__fill_rename(struct brim__fill_sub *s, const struct brim_op *op,
		       struct brim__fill_result *r);

/* -------------------------------------------------------------- fill_plain.c */

/* Carries an operation out by plain calls. */
void brim__fill_plain(struct brim__fill_sub *s, const struct brim_op *op,
		      struct brim__fill_result *r);
/* Writes a range by plain calls from s->buf, from off on; 0 or errno. */
int brim__fill_write(struct brim__fill_sub *s, const struct brim_op *op, int fd,
		     bool is_direct, struct brim__fill_result *r);

/* --------------------------------------------------------------- fill_ring.c */

/* Whether io_uring can be used here; else -errno with the reason in *e. */
int brim__fill_ring_probe(struct brim_err *e);
int brim__fill_ring_open(struct brim__fill_ring **out, struct brim__fill_sub *s,
			 struct brim_err *e);
void brim__fill_ring_close(struct brim__fill_ring *r);
/* Whether an operation writes, so that it can go to the ring. */
bool brim__fill_ring_takes(const struct brim_op *op);
bool brim__fill_ring_has(const struct brim__fill_ring *r, uint32_t id);
/* Opens the file and queues its data; waits for room. */
void brim__fill_ring_start(struct brim__fill_ring *r, const struct brim_op *op);
/* Waits for at least one; all. */
void brim__fill_ring_wait(struct brim__fill_ring *r);
void brim__fill_ring_drain(struct brim__fill_ring *r);
/* The lowest index in flight, or `none`. */
uint64_t brim__fill_ring_lowest(const struct brim__fill_ring *r, uint64_t none);
/*
 * From any thread: how many are in flight; when the oldest began (0: none) and
 * which it is.
 */
uint32_t brim__fill_ring_since(const struct brim__fill_ring *r,
			       uint64_t *oldest_ns, uint64_t *what);

/* --------------------------------------------------------------- fill_auto.c */

/* Whether the operation goes to the ring: what mode says, or measuring. */
bool brim__fill_uses_ring(struct brim__fill_sub *s, const struct brim_op *op);
/* A plain operation took so long: that of others is not measured. */
void brim__fill_auto_note(struct brim__fill_sub *s, const struct brim_op *op,
			  uint64_t ns);
/* The grant is used up: the clock stands. */
void brim__fill_auto_pause(struct brim__fill_sub *s);
/* The mode in use; writes what was measured into f->choice. Needs f->lock. */
const char *brim__fill_mode(struct brim_fill *f);

/* ------------------------------------------------------------- fill_replay.c */

/*
 * The next operation of the stream, told before what an earlier run had been
 * told by then: 0, 1 if that run was refused this one, < 0 and s->err.
 */
int brim__fill_next(struct brim__fill_sub *s, struct brim_op *op);
/* Tells the stream what it was refused, youngest first, and queues it. */
int brim__fill_tell(struct brim__fill_sub *s);
/* An operation that was done may leave its file no longer short. */
void brim__fill_forget_short(struct brim__fill_sub *s,
			     const struct brim_op *op);

/* -------------------------------------------------------------- fill_trace.c */

/* Writes an operation that was done between the two times; needs f->trace. */
void brim__fill_trace(struct brim__fill_sub *s, const struct brim_op *op,
		      const struct brim__fill_result *r, uint64_t start_ns,
		      uint64_t end_ns);

#endif /* BRIM_FILL_H */
