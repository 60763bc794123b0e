/* SPDX-License-Identifier: MIT */
/*
 * run.h: the inside of a run, for run*.c and scan.c. run.c has the loop, the
 * clocks and the mismatches; a kind of run (write, verify, scan) says what the
 * next I/O is and what to do with a finished one. Bytes, nanoseconds.
 */
#ifndef BRIM_RUN_H
#define BRIM_RUN_H

#include <pthread.h>

#include "engine.h"
#include "plan.h"

/*
 * next fills in op, offset, length and buffer: 1, or 0 when the phase has no
 * more (for now: done may add some, or is_blocked is set). done sees each finished I/O, in the
 * caller's thread; check may run in any.
 */
struct brim__run_ops {
	int (*next)(struct brim_run *r, struct brim__io *io);
	void (*done)(struct brim_run *r, struct brim__io *io);
	brim__check_fn *check;
	void (*close)(struct brim_run *r); /* what else it has; or NULL */
	bool flushes;                      /* at each phase's end */
	bool keeps_kinds;                  /* the first mismatches of each */
	const char *phase; /* what stats call it; NULL: plan's */
};

/* What a slot's I/O is about, and what its buffer (of expectations) holds. */
struct brim__run_slot {
	struct brim__desc desc;
	struct brim__slot_state state;
	bool is_zeros; /* all of the buffer is zero */
};

/* A kind of mismatches, and one that is kept. */
struct brim__kind {
	struct brim_mismatch_kind sum;
	uint32_t kept;
	uint64_t kept_to; /* the highest offset of those kept */
};

struct brim__kept {
	struct brim_mismatch mismatch;
	uint32_t kind;
};

struct brim_run {
	const struct brim__run_ops *ops;
	struct brim_device *dev;
	struct brim__batch *batch;
	uint32_t depth;
	uint32_t io_bytes;            /* of the largest I/O */
	struct brim__run_slot *slots; /* by brim__io.slot */
	struct brim__io **reaped;

	uint32_t phase, phase_count;
	bool is_dry;     /* next had nothing more to give */
	bool is_blocked; /* next has more once the caller took some */
	bool is_flushed; /* the phase's flush is queued or done */
	bool is_begun, is_finished;

	/* Write and verify. */
	const struct brim_plan *plan; /* held */
	struct brim__cursor cursor;
	struct brim__desc zeros; /* what is left of a range, by parts */
	bool cannot_zero;        /* the target said so */
	struct brim__desc *redo; /* ranges to write zeros to instead */
	uint32_t redo_count;
	uint64_t data_to; /* verify: data known up to there */
	bool cannot_seek; /* no SEEK_DATA here */

	/* Scan: instance i is at off_bytes + stride_bytes * i. */
	const struct brim_scan *scan; /* held */
	uint64_t off_bytes, stride_bytes;
	uint64_t instance, end; /* the next, and one past the last */
	uint32_t instances_per_io;
	struct {
		struct brim__scan_total *totals;
		struct brim__scan_window *window; /* NULL: no rows wanted */
	} gathered;

	/* Workloads and traces: theirs. */
	void *own;
	struct brim_err failure; /* of next itself, which then gave 0 */
	uint64_t due_ns; /* blocked until then on the clock; 0: on the caller */

	uint64_t groups_done, groups_total;
	uint64_t ios_total, bytes_total;
	uint64_t skipped_bytes; /* holes that needed no reading */
	uint64_t begun_ns, end_ns, phase_ns;
	uint64_t data_ns;            /* of the phases that have ended */
	uint64_t user_ns, system_ns; /* CPU time when it began */

	pthread_mutex_t lock; /* of all below */
	uint64_t mismatches;
	struct brim__kept *kept; /* by offset */
	uint32_t kept_count, kept_room;
	uint32_t kept_max; /* of each kind */
	struct brim__kind *kinds;
	uint32_t kind_count;
};

extern const struct brim__run_ops brim__run_write;
extern const struct brim__run_ops brim__run_verify;

/* Options with their defaults in place; -EINVAL names the one out of range. */
int brim__run_options(struct brim_run_options *out,
		      const struct brim_run_options *o,
		      const struct brim_device *d, struct brim_err *e);
/*
 * A run without a source yet: batch, slots, mismatches. Each slot's buffer is
 * slot_bytes long; is_cold: what will be read is on the disk only. On failure
 * nothing is left.
 */
int brim__run_create(struct brim_run **out, const struct brim__run_ops *ops,
		     struct brim_device *d, uint32_t slot_bytes, bool is_cold,
		     const struct brim_run_options *o, struct brim_err *e);
/* run_mismatch.c: room for the kinds, -ENOMEM; and what frees all of it. */
int brim__run_mismatches_create(struct brim_run *r, uint32_t kept_max);
void brim__run_mismatches_free(struct brim_run *r);
/* Counts a mismatch and keeps it if it is among the first; any thread. */
void brim__run_mismatch(struct brim_run *r, const struct brim_mismatch *m);
/* The counters so far, as much of them as st->struct_bytes holds. */
void brim__run_stats(const struct brim_run *r, struct brim_run_stats *st);

#endif /* BRIM_RUN_H */
