/* SPDX-License-Identifier: MIT */
/*
 * engine.h: the vtable every I/O engine implements, and the batch above it.
 *
 * An engine moves I/Os; it decides nothing. The batch owns the policy: slots
 * and their buffers, back-pressure, short I/O, EAGAIN and EINTR, statistics.
 * run.c and scan.c (and later fill.c) use the batch only.
 */
#ifndef BRIM_ENGINE_H
#define BRIM_ENGINE_H

#include "device.h"
#include "hist.h"
#include "internal.h"

enum brim__op {
	BRIM__READ,
	BRIM__WRITE,
	BRIM__ZERO,  /* brim_device_zero of the range: no buffer */
	BRIM__FLUSH, /* fdatasync or the device's equivalent: no range */
};

/*
 * One I/O, owned by its slot. The engine sets result to the bytes moved (of a
 * ZERO: all of them) or -errno; the batch advances done_bytes over short
 * results and resubmits. An engine that runs I/Os itself may set start_ns and
 * end_ns to when that was, so that waiting for a thread does not count as
 * being in flight; otherwise the batch's clock at submission and reaping holds.
 */
struct brim__io {
	enum brim__op op;
	uint32_t slot; /* index: the registered buffer's too */
	uint64_t off_bytes;
	uint64_t len_bytes; /* buffers are at most slot_bytes; zero any */
	uint64_t done_bytes;
	uint8_t *buf;
	int64_t result;
	uint64_t start_ns, end_ns;
	uint64_t latency_ns; /* of the attempts so far */
	uint32_t retries;
	bool is_checked;       /* the engine has called the check on it */
	struct brim__io *next; /* for the queues it is in */
};

/* A queue of I/Os, first in first out. */
struct brim__io_list {
	struct brim__io *first, *last;
	uint32_t count;
};

static inline void brim__io_push(struct brim__io_list *l, struct brim__io *io)
{
	io->next = NULL;
	if (l->first)
		l->last->next = io;
	else
		l->first = io;
	l->last = io;
	l->count++;
}

static inline struct brim__io *brim__io_pop(struct brim__io_list *l)
{
	struct brim__io *io = l->first;

	if (io) {
		l->first = io->next;
		l->count--;
	}
	return io;
}

/* Moves all of `from` to the end of `to`. */
static inline void brim__io_splice(struct brim__io_list *to,
				   struct brim__io_list *from)
{
	if (!from->first)
		return;
	if (to->first)
		to->last->next = from->first;
	else
		to->first = from->first;
	to->last = from->last;
	to->count += from->count;
	*from = (struct brim__io_list){ 0 };
}

/* What the engine's next attempt at an I/O is about. */
static inline uint64_t brim__io_left(const struct brim__io *io)
{
	return io->len_bytes - io->done_bytes;
}

/*
 * Looks at a finished READ or WRITE, maybe in one of the engine's threads while
 * others run: whatever it touches besides the I/O's own slot needs a lock.
 */
typedef void brim__check_fn(void *ctx, struct brim__io *io);

struct brim__engine;

#define BRIM__ENGINE_VERSION 1

enum brim__engine_flags {
	BRIM__ENGINE_NEEDS_FD = 1 << 0, /* the device must have one */
	BRIM__ENGINE_MOVES_NOTHING = 1 << 1,
};

/*
 * init may fail, with a reason; "auto" then tries the next engine. queue takes
 * one I/O (0) or has no room (-EAGAIN). commit submits what was queued. reap
 * hands back up to max finished I/Os, waiting for at least min of them, and
 * returns how many or -errno. cleanup is called once nothing is in flight.
 */
struct brim__engine_ops {
	uint32_t version;
	const char *name;
	uint32_t flags;
	int (*init)(struct brim__engine *eng, struct brim_err *e);
	int (*queue)(struct brim__engine *eng, struct brim__io *io);
	int (*commit)(struct brim__engine *eng);
	int (*reap)(struct brim__engine *eng, unsigned int min,
		    struct brim__io **out, unsigned int max);
	void (*cleanup)(struct brim__engine *eng);
};

struct brim__engine {
	const struct brim__engine_ops *ops;
	char name[40];    /* for reports: "fault(sync)" */
	const char *spec; /* during init: what follows "fault:" */
	uint32_t flags;   /* ops->flags; a wrapper's inner ones */
	struct brim_device *dev;
	uint32_t queue_depth;
	uint32_t threads; /* asked for; 0: what fits */
	bool is_cold;     /* buffered, and it will read what is not there */
	/* The slots' buffers: one allocation, for registration; may be NULL. */
	uint8_t *arena;
	uint32_t slot_bytes;
	/* Engines with threads call it there and set is_checked; else NULL. */
	brim__check_fn *check;
	void *check_ctx;
	void *priv;
};

extern const struct brim__engine_ops brim__engine_uring;
extern const struct brim__engine_ops brim__engine_sync;
extern const struct brim__engine_ops brim__engine_null;
extern const struct brim__engine_ops brim__engine_fault;

/*
 * Chooses and starts an engine by name ("auto" or NULL: what fits the device).
 * Fills *eng, whose device, depth, threads, arena and check the caller has set.
 */
int brim__engine_start(struct brim__engine *eng, const char *name,
		       struct brim_err *e);
void brim__engine_stop(struct brim__engine *eng);

/* ---------------------------------------------------------------- the batch */

struct brim__batch;

struct brim__batch_stats {
	uint64_t ios[4]; /* by enum brim__op, finished */
	uint64_t bytes[4];
	uint64_t short_ios, retries;
	uint64_t latency_sum_ns;   /* of READ, WRITE and ZERO */
	uint64_t now_ns;           /* the clock at the last reap */
	struct brim__hist latency; /* READ and WRITE */
};

struct brim__batch_options {
	const char *engine;
	uint32_t queue_depth;
	uint32_t threads;
	uint32_t slot_bytes;   /* buffer of each slot */
	bool is_cold;          /* see brim__device_is_cold */
	brim__check_fn *check; /* for every READ and WRITE; or NULL */
	void *check_ctx;
};

/* The most slots a batch may have: the ring's and RLIMITs' sane range. */
#define BRIM__DEPTH_MAX 4096u

int brim__batch_open(struct brim__batch **out, struct brim_device *d,
		     const struct brim__batch_options *o, struct brim_err *e);
/* The engine's name as reports show it: "uring", "fault(sync)", ... */
const char *brim__batch_engine(const struct brim__batch *b);
/* Whether data moves at all; it does not with the null engine. */
bool brim__batch_moves_data(const struct brim__batch *b);
/* The number of slots: brim__io.slot is below it. */
uint32_t brim__batch_depth(const struct brim__batch *b);
/* A free slot's I/O with its buffer, or NULL: then reap first. */
struct brim__io *brim__batch_get(struct brim__batch *b);
/* Gives an unused slot back. */
void brim__batch_put(struct brim__batch *b, struct brim__io *io);
/*
 * Queues a filled-in I/O (op, off_bytes, len_bytes); submitted by reap. Fails
 * only after an I/O has failed, and with that error.
 */
int brim__batch_queue(struct brim__batch *b, struct brim__io *io,
		      struct brim_err *e);
/*
 * Submits, waits for at least `min` completions when that many are in flight,
 * and hands out finished I/Os (at most max). Short ones and transient failures
 * were resubmitted and do not count. On the first I/O that failed for good it
 * returns -errno with *e filled (operation, offset, errno); the others in
 * flight stay owned by the batch. The caller puts each I/O back when it is
 * done with the buffer. A ZERO that the target cannot do is no failure: it is
 * handed out with the result -EOPNOTSUPP.
 */
int brim__batch_reap(struct brim__batch *b, unsigned int min,
		     struct brim__io **out, unsigned int max,
		     struct brim_err *e);
unsigned int brim__batch_in_flight(const struct brim__batch *b);
const struct brim__batch_stats *brim__batch_stats(const struct brim__batch *b);
/* Waits for what is in flight, discarding results, and frees; takes NULL. */
void brim__batch_close(struct brim__batch *b);

#endif /* BRIM_ENGINE_H */
