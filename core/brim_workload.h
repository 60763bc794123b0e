/* SPDX-License-Identifier: MIT */
/*
 * brim_workload.h: part of brim.h, which includes it and states the
 * conventions. Traces (what was done when, one operation a line, in a format of
 * others or of brim) and workloads on raw devices. Bytes, nanoseconds.
 */
#ifndef BRIM_WORKLOAD_API_H
#define BRIM_WORKLOAD_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ traces */

enum brim_trace_op {
	BRIM_TRACE_READ = 0,
	BRIM_TRACE_WRITE,
	BRIM_TRACE_TRIM,
	BRIM_TRACE_SYNC,     /* fsync */
	BRIM_TRACE_DATASYNC, /* fdatasync */
	BRIM_TRACE_ADD,      /* a file that later operations name */
	BRIM_TRACE_OPEN,
	BRIM_TRACE_CREATE, /* open a new file, or an old one emptied */
	BRIM_TRACE_CLOSE,
	BRIM_TRACE_UNLINK,
	BRIM_TRACE_RENAME,   /* path becomes `to` */
	BRIM_TRACE_TRUNCATE, /* to len_bytes */
	BRIM_TRACE_MKDIR,
	BRIM_TRACE_OPS,
};

/*
 * An operation of a trace. path is of a file or the name of a device; NULL
 * where the format has none. Those without a range have 0 and 0 there.
 */
struct brim_trace_event {
	enum brim_trace_op op;
	uint32_t stream; /* thread, processor or volume, as the format has it */
	uint64_t at_ns;  /* since the trace's begin */
	const char *path;
	const char *to; /* RENAME only */
	uint64_t off_bytes, len_bytes;
};

/*
 * A trace is read as a stream, whatever its size. Formats: "iolog2" and
 * "iolog3" (fio's), "jsonl" (brim's), "blkparse" (its text), and the CSV files
 * "msr" (Microsoft Research Cambridge), "alibaba" and "tencent". NULL or
 * "auto" finds out by the first line.
 */
struct brim_trace_options {
	size_t struct_bytes;
	const char *format;
	char blkparse_action; /* the lines that count; 0: 'Q', queued */
};

struct brim_trace;

BRIM_API int brim_trace_open(struct brim_trace **out, const char *path,
			     const struct brim_trace_options *o,
			     struct brim_err *e);
BRIM_API void brim_trace_close(struct brim_trace *t);
BRIM_API const char *brim_trace_format(const struct brim_trace *t);
/* The number of the line that was read last, from 1. */
BRIM_API uint64_t brim_trace_line(const struct brim_trace *t);
/*
 * The next event: 1, or 0 at the end. Its strings are valid until the next
 * call. A line that is not what the format says is -EINVAL, and the message
 * has its number.
 */
BRIM_API int brim_trace_next(struct brim_trace *t, struct brim_trace_event *x,
			     struct brim_err *e);

/* What a trace consists of. */
struct brim_trace_info {
	size_t struct_bytes;
	uint64_t events;
	uint64_t ops[BRIM_TRACE_OPS], bytes[BRIM_TRACE_OPS];
	uint64_t last_ns;    /* of the latest event */
	uint64_t from_bytes; /* the lowest offset read, written or trimmed */
	uint64_t to_bytes;   /* and one past the highest; 0: none */
	/* Reads and writes of 2^k .. 2^(k+1)-1 bytes; empty ones in k = 0. */
	uint64_t read_sizes[64], write_sizes[64];
};

/*
 * Goes on through a trace for about budget_ns (0: to the end) and adds up what
 * it meets in *info; with `copy`, which brim_trace_copy_open made, all of it is
 * written there too. 1: more to do, 0: at the end.
 */
struct brim_trace_copy;
BRIM_API int brim_trace_step(struct brim_trace *t, uint64_t budget_ns,
			     struct brim_trace_info *info,
			     struct brim_trace_copy *copy, struct brim_err *e);
/*
 * A trace to be written from the trace `from`: "iolog2", "iolog3" or "jsonl".
 * Events without a path are of the file `path` (NULL: "device"). What `file`
 * held is gone, so it must not be `from` itself: -EINVAL. close writes what is left; it
 * returns the first failure, and into *omitted how many operations the format
 * has no word for. Takes NULL.
 */
BRIM_API int brim_trace_copy_open(struct brim_trace_copy **out,
				  const struct brim_trace *from,
				  const char *file, const char *format,
				  const char *path, struct brim_err *e);
BRIM_API int brim_trace_copy_close(struct brim_trace_copy *c, uint64_t *omitted,
				   struct brim_err *e);

/* ----------------------------------------------------------------- replays */

struct brim_replay_options {
	size_t struct_bytes;
	double speed;   /* 0: as fast as possible; else times as fast as
				recorded */
	uint64_t seed;  /* of what is written: random bytes */
	int is_wrapped; /* devices: what lies past the end begins again
				at 0 */
	int has_stream; /* only events of one stream: */
	uint32_t stream;
	const char *path;  /* only events of this file; NULL: of all */
	const char *strip; /* files: what paths begin with, and is not part
				of what lies below the root */
};

struct brim_replay_stats {
	size_t struct_bytes;
	uint64_t events;              /* of the trace, so far */
	uint64_t ops[BRIM_TRACE_OPS]; /* carried out */
	uint64_t bytes[BRIM_TRACE_OPS];
	uint64_t p50_ns[BRIM_TRACE_OPS], p99_ns[BRIM_TRACE_OPS],
		max_ns[BRIM_TRACE_OPS];
	uint64_t skipped; /* of other streams or files */
	uint64_t rounded; /* devices: not aligned as the device needs it */
	uint64_t failed;  /* files: what the filesystem refused */
	char first_failure[256]; /* what and where; "" */
	uint64_t late_max_ns;    /* the most that one began after its time */
	uint64_t elapsed_ns;
};

/*
 * Prepares to do on a device what a trace of block I/O says (brim_run_step
 * does), queue_depth at once; the trace belongs to the run from then on, also
 * on failure. Syncs wait for what is in flight, and what follows for them.
 * Events that are not aligned as the device needs it are extended to what is.
 * A wrong line, or a range past the end (-ERANGE), ends the run.
 */
BRIM_API int brim_replay_open(struct brim_run **out, struct brim_trace *t,
			      struct brim_device *d,
			      const struct brim_replay_options *ro,
			      const struct brim_run_options *o,
			      struct brim_err *e);
/* What it has done so far; -ENOENT for other runs. */
BRIM_API int brim_replay_stats(const struct brim_run *r,
			       struct brim_replay_stats *out);

/*
 * Files: does below a directory what a trace of file operations says, one after
 * another. Paths cannot leave it: absolute ones (after strip), ".." and
 * symbolic links are -EPERM, with the line's number. Directories that paths
 * need are made; files that are read or written without having been opened
 * stay open from then on. What the filesystem refuses is counted.
 */
struct brim_replay_files;
BRIM_API int brim_replay_files_open(struct brim_replay_files **out,
				    struct brim_trace *t, const char *root,
				    const struct brim_replay_options *o,
				    struct brim_err *e);
/* Works for about budget_ns (0: to the end). 1: more to do, 0: finished. */
BRIM_API int brim_replay_files_step(struct brim_replay_files *f,
				    uint64_t budget_ns,
				    struct brim_replay_stats *st,
				    struct brim_err *e);
BRIM_API void brim_replay_files_close(struct brim_replay_files *f);

/* --------------------------------------------------------------- workloads */

enum brim_pattern {
	BRIM_PATTERN_SEQUENTIAL = 1,
	BRIM_PATTERN_RANDOM,      /* uniform; blocks may come again */
	BRIM_PATTERN_PERMUTATION, /* random, each place once a pass */
	BRIM_PATTERN_STRIDED,     /* each stride_bytes, then the gaps */
	BRIM_PATTERN_ZIPF,        /* place of rank k as often as 1 / k^theta */
};

/*
 * Reads and writes on a range of a device. Operation i is a pure function of
 * the options and i. What is written says of each block where it belongs, which
 * seed and which operation wrote it, so that it can be verified.
 */
struct brim_workload_options {
	size_t struct_bytes;
	uint64_t seed;
	enum brim_pattern pattern;
	double theta;                  /* ZIPF: above 0, at most 10 */
	uint64_t stride_bytes;         /* STRIDED: a multiple of block_bytes */
	uint32_t block_bytes;          /* of content and of offsets; a multiple
					  of 512; 0: 4096 */
	const struct brim_dist *sizes; /* of I/Os, rounded up to whole blocks;
					  copied. NULL: one block */
	uint64_t off_bytes;            /* the range; a multiple of 512 */
	uint64_t size_bytes;           /* its length; what is no whole block at
					  its end is left alone */
	uint32_t read_ppm;             /* of operations that read */
	int is_clustered; /* ZIPF: places in the order of their ranks
					  instead of scattered over the range */
	int may_overlap;  /* writes to the same block may be in
					  flight at once: whichever comes last
					  stays, so stale is not told */
	/* How much; what is reached first ends it. All 0: one pass. */
	uint64_t total_bytes;
	uint64_t operations;
	uint32_t passes; /* so many times the range's bytes */
};

struct brim_workload;

/*
 * Checks options and makes them ready. -EINVAL names what cannot be: sizes that
 * vary with PERMUTATION or STRIDED, I/Os larger than the range, ...
 */
BRIM_API int brim_workload_create(struct brim_workload **out,
				  const struct brim_workload_options *o,
				  struct brim_err *e);
/* Lets go; runs hold it as long as they need it. */
BRIM_API void brim_workload_free(struct brim_workload *w);

/* One operation: a read or a write of whole blocks. */
struct brim_workload_op {
	uint64_t index;
	uint64_t off_bytes; /* on the device */
	uint64_t len_bytes;
	int is_read;
};

/* Goes through the operations, from any of them on. */
struct brim_workload_cursor {
	uint64_t index; /* of the next operation */
	uint64_t bytes; /* of those before it */
	uint64_t place, pass;
	uint64_t key; /* of the pass */
};

/* At the first operation. */
BRIM_API void brim_workload_begin(const struct brim_workload *w,
				  struct brim_workload_cursor *c);
/* The next operation: 1, or 0 after the last one. */
BRIM_API int brim_workload_next(const struct brim_workload *w,
				struct brim_workload_cursor *c,
				struct brim_workload_op *out);
/* Writes what operation `version` puts into the block at a device offset. */
BRIM_API void brim_workload_block(const struct brim_workload *w,
				  uint64_t off_bytes, uint64_t version,
				  void *buf);

struct brim_workload_run_options {
	size_t struct_bytes;
	uint64_t first;    /* operation to begin with: those before are done */
	uint64_t limit_ns; /* begin none after that time; 0: no limit */
	uint32_t bins;     /* parts of the range to count apart; 0: 64 */
};

/* A part of the range: what I/Os that began in it were. */
struct brim_workload_bin {
	uint64_t off_bytes; /* where it begins */
	uint64_t reads, writes, bytes;
	uint64_t latency_ns; /* the sum */
};

struct brim_workload_stats {
	size_t struct_bytes;
	uint64_t begun;       /* operations given out, from 0 */
	uint64_t done;        /* all below it are finished */
	uint64_t off_bytes;   /* of the last one given out */
	uint64_t waits;       /* times one waited for the same block */
	uint64_t bytes, ios;  /* finished since the last call, */
	uint64_t interval_ns; /* which was so long ago, */
	uint64_t read_p50_ns, read_p99_ns, read_max_ns; /* and how long they */
	uint64_t write_p50_ns, write_p99_ns, write_max_ns; /* took */
	const struct brim_workload_bin *bins; /* the run's, of all of it */
	uint32_t bin_count;
};

/*
 * Prepares to run it (brim_run_step does). -ERANGE where the range ends past
 * the device, -EROFS where it writes and the device is read-only, -EINVAL where
 * blocks are no multiple of what the device is aligned to, or an I/O is larger
 * than max_io_bytes. options may be NULL.
 */
BRIM_API int brim_workload_open(struct brim_run **out,
				const struct brim_workload *w,
				struct brim_device *d,
				const struct brim_workload_run_options *wo,
				const struct brim_run_options *o,
				struct brim_err *e);
/* The counters beside the run's own; -ENOENT for other runs. */
BRIM_API int brim_workload_stats(struct brim_run *r,
				 struct brim_workload_stats *out);

/* What a verification found, in blocks. */
struct brim_workload_counts {
	size_t struct_bytes;
	uint64_t right;
	uint64_t missing;   /* never written, as far as one can see */
	uint64_t stale;     /* as an earlier operation left it */
	uint64_t newer;     /* as an operation after the last one leaves it */
	uint64_t misplaced; /* what belongs to another offset */
	uint64_t corrupt;   /* neither of these */
	uint64_t unjudged;  /* wrong, but being written when the run ended */
};

/*
 * Prepares to read back what the operations before `begun` wrote, of which
 * those before `done` are known to be finished (UINT64_MAX: all of the
 * workload's), and to compare. What is not right is a mismatch of the run:
 * piece "block", what as the counts above are called, expected and found
 * operations (of "corrupt" bytes). Only what was written is read. Memory:
 * 128 MiB at most.
 */
BRIM_API int
brim_workload_verify(struct brim_run **out, const struct brim_workload *w,
		     struct brim_device *d, uint64_t done, uint64_t begun,
		     const struct brim_run_options *o, struct brim_err *e);
/* What was found so far; -ENOENT for other runs. */
BRIM_API int brim_workload_found(const struct brim_run *r,
				 struct brim_workload_counts *out);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_WORKLOAD_API_H */
