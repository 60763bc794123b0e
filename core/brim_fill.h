/* SPDX-License-Identifier: MIT */
/*
 * brim_fill.h: part of brim.h, which includes it and states the conventions.
 * Filesets (what files there shall be), streams (seeded operations on them,
 * generated and never stored) and fills (streams carried out on a mounted
 * filesystem). Sizes are bytes, times nanoseconds.
 */
#ifndef BRIM_FILL_API_H
#define BRIM_FILL_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------- distributions */

enum brim_dist_kind {
	BRIM_DIST_FIXED = 1,   /* min */
	BRIM_DIST_UNIFORM,     /* min .. max */
	BRIM_DIST_LOG_UNIFORM, /* min .. max, each doubling as likely */
	BRIM_DIST_LOG_NORMAL,  /* median a, sigma b (of the natural log) */
	BRIM_DIST_PARETO,      /* from min, shape a */
	BRIM_DIST_HISTOGRAM,   /* bins; log-uniform within one */
};

struct brim_dist_bin {
	uint64_t from, to; /* both included */
	double weight;
};

/* What is drawn is always within min .. max, both included. */
struct brim_dist {
	size_t struct_bytes;
	enum brim_dist_kind kind;
	uint64_t min, max;
	double a, b;
	const struct brim_dist_bin *bins; /* HISTOGRAM: borrowed until the
					     fileset was created, which copies */
	size_t bin_count;
};

/* Whether a distribution can be drawn from: -EINVAL names what is wrong. */
BRIM_API int brim_dist_check(const struct brim_dist *d, struct brim_err *e);
/*
 * The value for 64 random bits: a pure function, the same on every machine (it
 * uses basic IEEE arithmetic only, no libm).
 */
BRIM_API uint64_t brim_dist_value(const struct brim_dist *d, uint64_t bits);
/* Expected value, within 1 %. */
BRIM_API double brim_dist_mean(const struct brim_dist *d);

/* ---------------------------------------------------------------- filesets */

enum brim_content {
	BRIM_CONTENT_RANDOM = 1,
	BRIM_CONTENT_ZEROS,
	BRIM_CONTENT_COMPRESSIBLE, /* to compress_ppm of its size */
};

struct brim_name_weight {
	const char *name; /* an extension with its dot, or "" */
	double weight;
};

/*
 * File `id` of stream `stream` lies at
 *   s<stream>/d<..>/.../f<id><extension>
 * in a tree that is filled directory by directory: files_per_dir files in each
 * directory of the lowest level, fan_out directories in each directory above,
 * depth levels of directories below the stream's own. When the tree is full the
 * next one begins (another top directory).
 */
struct brim_fileset_options {
	size_t struct_bytes;
	uint64_t seed;
	uint32_t streams;              /* trees that are filled side by side */
	const struct brim_dist *sizes; /* copied */
	uint32_t depth;                /* 0: 1 */
	uint32_t fan_out;              /* 0: 32 */
	uint32_t files_per_dir;        /* 0: 1000 */
	const struct brim_name_weight *extensions; /* copied; NULL: none */
	size_t extension_count;
	enum brim_content content;
	uint32_t compress_ppm;
};

struct brim_fileset;

/* In `overwrites`: what the first half holds is not known (see below). */
#define BRIM_OVERWRITES_UNKNOWN UINT16_MAX

/*
 * A file as it shall be. base_bytes is the size it had when it was last written
 * as a whole; since then `overwrites` ranges of its first half were overwritten
 * in place. All of its content follows from these numbers and the seed, but for
 * the first half of a file whose overwriting failed.
 */
struct brim_file {
	uint32_t stream;
	uint32_t id;
	uint16_t version; /* counts being written as a whole, from 0 */
	uint16_t overwrites;
	uint64_t base_bytes;
	uint64_t size_bytes;
};

BRIM_API int brim_fileset_create(struct brim_fileset **out,
				 const struct brim_fileset_options *o,
				 struct brim_err *e);
/* Lets go; streams and fills hold it as long as they need it. */
BRIM_API void brim_fileset_free(struct brim_fileset *fs);
BRIM_API uint32_t brim_fileset_streams(const struct brim_fileset *fs);
/*
 * The path of a file below the fill's root, as snprintf; 256 bytes suffice. With
 * is_temporary the name that a replacement has until it is renamed over it.
 */
BRIM_API int brim_fileset_path(const struct brim_fileset *fs, uint32_t stream,
			       uint32_t id, int is_temporary, char *buf,
			       size_t buf_bytes);
/* The stream, id and is_temporary of such a path; -ENOENT if it is none. */
BRIM_API int brim_fileset_parse(const struct brim_fileset *fs, const char *path,
				uint32_t *stream, uint32_t *id,
				int *is_temporary);
/* The size a version of a file is given when it is written as a whole. */
BRIM_API uint64_t brim_fileset_size(const struct brim_fileset *fs,
				    uint32_t stream, uint32_t id,
				    uint16_t version);
/*
 * Writes what a file holds at off .. off + len into buf. For an operation that
 * is op.file with op.off_bytes and op.len_bytes.
 */
BRIM_API void brim_fileset_content(const struct brim_fileset *fs,
				   const struct brim_file *f,
				   uint64_t off_bytes, size_t len_bytes,
				   void *buf);
/*
 * The first offset in the file at which buf differs from that content, or -1.
 * What is not known differs from nothing.
 */
BRIM_API int64_t brim_fileset_compare(const struct brim_fileset *fs,
				      const struct brim_file *f,
				      uint64_t off_bytes, size_t len_bytes,
				      const void *buf);

/* ----------------------------------------------------------------- streams */

enum brim_op_kind {
	BRIM_OP_MKDIR = 0,
	BRIM_OP_CREATE,
	BRIM_OP_OVERWRITE, /* a range, in place; or all of it, as the next
			      version: then len_bytes is file.size_bytes */
	BRIM_OP_APPEND,
	BRIM_OP_TRUNCATE,
	BRIM_OP_REPLACE, /* a new file, renamed over the old (rsync) */
	BRIM_OP_DELETE,
	BRIM_OP_KINDS,
};

struct brim_op {
	enum brim_op_kind kind;
	uint64_t index;          /* within the stream, from 0 */
	struct brim_file file;   /* as it is afterwards; DELETE: as it was */
	struct brim_file before; /* as it was, where there was one */
	uint64_t off_bytes;      /* what is written; TRUNCATE: the new size */
	uint64_t len_bytes;
	int dir_level; /* MKDIR: of the file's path, 0 the stream's own */
};

/*
 * What a stream does from now on. All weights 0: creates only. live_bytes, if
 * not 0, is the sum of file sizes it keeps to within band_ppm: above it creates,
 * appends and replacements turn into deletes, below it deletes, truncations and
 * replacements into creates.
 * max_file_bytes, if not 0, caps the sizes of what is written as a whole.
 */
struct brim_phase {
	size_t struct_bytes;
	uint32_t weights[BRIM_OP_KINDS]; /* MKDIR's is ignored */
	uint64_t live_bytes;
	uint32_t band_ppm;
	uint64_t max_file_bytes;
};

/* What a stream's files are together, as they stand; what was planned. */
struct brim_stream_totals {
	size_t struct_bytes;
	uint64_t ops[BRIM_OP_KINDS];
	uint64_t written_bytes; /* by all operations so far */
	uint64_t live_files, live_bytes;
	uint64_t next_index;
};

struct brim_stream;

/* The first operation of a stream is index 0; the same seed, the same ones. */
BRIM_API int brim_stream_create(struct brim_stream **out,
				const struct brim_fileset *fs, uint32_t stream,
				struct brim_err *e);
BRIM_API void brim_stream_free(struct brim_stream *s);
/* From the next operation on. */
BRIM_API int brim_stream_phase(struct brim_stream *s,
			       const struct brim_phase *p, struct brim_err *e);
/* The next operation: 0, -ENOMEM, or -EOVERFLOW after 2^32 names. It never
 * ends. */
BRIM_API int brim_stream_next(struct brim_stream *s, struct brim_op *out,
			      struct brim_err *e);
/* For brim_stream_fail: no such file; nothing of the operation was done. */
#define BRIM_FILE_NONE UINT64_MAX
#define BRIM_FILE_AS_BEFORE (UINT64_MAX - 1)
/*
 * The world refused an operation that the stream handed out: the file stands
 * with size_bytes of what it should have, or BRIM_FILE_NONE, or
 * BRIM_FILE_AS_BEFORE (as op->before). What each kind may leave:
 *   MKDIR      nothing is asked; the stream has the directory made again when
 *              it is needed
 *   CREATE     NONE, or the size written
 *   OVERWRITE  of a range: what the first half holds is not known from then on,
 *              unless AS_BEFORE. Of the whole: the file must be cut to what was
 *              written of the new version
 *   APPEND     the size it has now
 *   TRUNCATE   AS_BEFORE
 *   REPLACE    AS_BEFORE, the temporary being gone; or the size that was
 *              renamed over the old file
 *   DELETE     AS_BEFORE
 * Operations that come next take it as it is then. Others may have been handed
 * out since; where two on the same file are told, the younger one comes first.
 * What was created, deleted or written as a whole since then is left as it is.
 */
BRIM_API int brim_stream_fail(struct brim_stream *s, const struct brim_op *op,
			      uint64_t size_bytes, struct brim_err *e);
/* Another stream that goes on as s would, on its own: -ENOMEM. */
BRIM_API int brim_stream_copy(struct brim_stream **out,
			      const struct brim_stream *s, struct brim_err *e);
BRIM_API void brim_stream_totals(const struct brim_stream *s,
				 struct brim_stream_totals *out);
/* The k-th live file in no particular order, 0 .. live_files-1; -ENOENT. */
BRIM_API int brim_stream_file(const struct brim_stream *s, uint64_t k,
			      struct brim_file *out);
/* The live file with this id: 0; -ENOENT. */
BRIM_API int brim_stream_find(const struct brim_stream *s, uint32_t id,
			      struct brim_file *out);

/* ------------------------------------------------------------------- fills */

enum brim_fsync_policy {
	BRIM_FSYNC_NEVER = 0,
	BRIM_FSYNC_FILE, /* each file that was written, before it is closed */
	BRIM_FSYNC_NTH,  /* each fsync_every-th of them */
};

/*
 * mode: "plain" (open, write, close in the submitter), "ring" (synchronous
 * open, write and close on io_uring, queue_depth in flight per submitter),
 * "auto" (measures both for a moment where both could win, and takes the
 * better), "none" (does nothing: for counting and for replaying).
 * One submitter thread per stream.
 */
struct brim_fill_options {
	size_t struct_bytes;
	const char *mode;
	uint32_t queue_depth;      /* 0: 64 */
	int direct;                /* O_DIRECT: 1, 0, or -1: where it pays */
	uint64_t direct_min_bytes; /* only for files this large; 0: 64 KiB */
	uint32_t max_io_bytes;     /* 0: 1 MiB */
	enum brim_fsync_policy fsync;
	uint32_t fsync_every;
	const char *trace_path;   /* NULL: none; else what is done goes there,
				     in mode "none" what would be; complete
				     when the fill is ended */
	const char *trace_format; /* "iolog2", "iolog3", "jsonl" (NULL) */
};

struct brim_fill_stats {
	size_t struct_bytes;
	const char *mode;   /* in use: "plain", "ring", "none", "auto" (not yet
			     decided) */
	const char *choice; /* what auto measured, for people; "" */
	uint64_t ops[BRIM_OP_KINDS];
	uint64_t written_bytes;
	uint64_t live_files, live_bytes; /* of all streams, as they stand */
	uint64_t refused;     /* operations that met ENOSPC, EDQUOT or EFBIG */
	uint64_t failed;      /* that met any other error */
	uint64_t short_files; /* standing with fewer bytes than planned */
	uint64_t in_flight;
	uint64_t longest_wait_ns; /* how long the slowest thing in flight has
				     been waiting by now */
	uint64_t elapsed_ns;      /* while a grant was being used */
	uint64_t cpu_ns;          /* of the submitters */
	uint64_t p50_ns[BRIM_OP_KINDS], p99_ns[BRIM_OP_KINDS],
		max_ns[BRIM_OP_KINDS]; /* since the last call */
	/* What has been waiting that long, where longest_wait_ns is not 0. */
	enum brim_op_kind waiting_kind;
	uint32_t waiting_stream, waiting_id;
};

/*
 * An operation that was refused or failed, or given up since one on the same
 * file had been while it was waiting (call "", ECANCELED).
 */
struct brim_fill_failure {
	uint32_t stream;
	uint64_t index;
	enum brim_op_kind kind;
	uint32_t id;
	const char *call;    /* "open", "write", "close", "fsync", ... */
	int error;           /* errno */
	uint64_t size_bytes; /* as brim_stream_fail takes it */
	/* The stream was told before it handed out the operation with this
	 * index: others were in flight. */
	uint64_t told_index;
};

struct brim_fill;

/* Prepares to fill the directory at `path`, which must exist. */
BRIM_API int brim_fill_open(struct brim_fill **out, struct brim_fileset *fs,
			    const char *path, const struct brim_fill_options *o,
			    struct brim_err *e);
/*
 * Lets what is in flight finish and ends the fill: only its counters, failures
 * and brim_fill_close may be asked for then. Writes what is left of the trace:
 * 0, or the first failure of writing it, after which it is cut short; the files
 * of the fill are none the worse. Again: the same answer.
 */
BRIM_API int brim_fill_finish(struct brim_fill *f, struct brim_err *e);
/* brim_fill_finish for those who do not ask about the trace, then frees. */
BRIM_API void brim_fill_close(struct brim_fill *f);
/* What the streams do from now on; only while nothing is granted. live_bytes
 * is of all streams together. */
BRIM_API int brim_fill_phase(struct brim_fill *f, const struct brim_phase *p,
			     struct brim_err *e);
/*
 * Allows so many further operations and bytes written of each stream (0: no
 * limit of that kind); a stream stops before the operation that would begin
 * beyond either.
 */
BRIM_API int brim_fill_grant(struct brim_fill *f, uint64_t ops, uint64_t bytes,
			     struct brim_err *e);
/*
 * Brings a stream forward as if `ops` operations had been carried out, without
 * doing anything: for resuming. Only while nothing is granted. What an earlier
 * run was refused is told beforehand: each failure before replay passes its
 * index, in any order (else -EINVAL); replay takes it into account where that
 * run did.
 */
BRIM_API int brim_fill_replay(struct brim_fill *f, uint32_t stream,
			      uint64_t ops, struct brim_err *e);
BRIM_API int brim_fill_replay_failure(struct brim_fill *f,
				      const struct brim_fill_failure *x,
				      struct brim_err *e);
/*
 * Waits for about budget_ns (0: to the end of the grant). 1: still going, 0:
 * the grant is used up or every stream has stopped; < 0: what cannot be gone on
 * from (out of memory, the directory is gone). Refused operations are no error:
 * a stream stops at the first one it meets (what is in flight finishes) until
 * the next grant. *st may be NULL.
 */
BRIM_API int brim_fill_step(struct brim_fill *f, uint64_t budget_ns,
			    struct brim_fill_stats *st, struct brim_err *e);
/* Ends the grant early: streams stop after what is in flight. */
BRIM_API void brim_fill_stop(struct brim_fill *f);
/* Operations that a stream has completed, for the log; -ENOENT. */
BRIM_API int brim_fill_done(const struct brim_fill *f, uint32_t stream,
			    uint64_t *ops);
/* Takes the oldest failure not taken yet: 1, or 0 if there is none. */
BRIM_API int brim_fill_failure(struct brim_fill *f,
			       struct brim_fill_failure *out);

/* ------------------------------------------------------------ verification */

struct brim_verify_options {
	size_t struct_bytes;
	uint32_t threads;      /* 0: 4 times the processors */
	int is_direct;         /* past the page cache */
	uint32_t max_findings; /* kept in full; 0: 1000 */
};

enum brim_finding {
	BRIM_FILE_MISSING = 1,
	BRIM_FILE_SHORT, /* what is there of it is right */
	BRIM_FILE_LONG,
	BRIM_FILE_CORRUPT, /* off_bytes: the first byte that is wrong */
	BRIM_FILE_EXTRA,   /* a file in the tree that none made, or that was
			      deleted */
	BRIM_FILE_UNREADABLE,
	BRIM_FINDINGS,
};

struct brim_verify_stats {
	size_t struct_bytes;
	uint64_t files, bytes, total_files, total_bytes;
	uint64_t found[BRIM_FINDINGS];
	uint64_t unjudged; /* may be either way: an interrupted grant */
	uint64_t elapsed_ns;
};

struct brim_verify;

/*
 * Compares the directory with what the streams of f say (f was opened with mode
 * "none" and replayed). Files that one of the next window[stream] operations
 * touches are not judged (window NULL: none).
 */
BRIM_API int brim_verify_open(struct brim_verify **out, struct brim_fill *f,
			      const uint64_t *window,
			      const struct brim_verify_options *o,
			      struct brim_err *e);
BRIM_API int brim_verify_step(struct brim_verify *v, uint64_t budget_ns,
			      struct brim_verify_stats *st, struct brim_err *e);
/* The k-th finding kept: its kind, with the path (valid until close). */
BRIM_API int brim_verify_finding(const struct brim_verify *v, size_t k,
				 const char **path, uint64_t *off_bytes,
				 uint64_t *expected, uint64_t *found);
BRIM_API void brim_verify_close(struct brim_verify *v);

/* -------------------------------------------------------------- filesystem */

/* statfs, and what kind of filesystem it is. */
struct brim_usage {
	size_t struct_bytes;
	char type[32]; /* "xfs", "ext4", ...; "0x.." if not known */
	uint64_t block_bytes;
	uint64_t size_bytes;  /* f_blocks */
	uint64_t free_bytes;  /* f_bfree */
	uint64_t avail_bytes; /* f_bavail: what others than root may use */
	uint64_t files, free_files;
	uint32_t device_major, device_minor; /* of st_dev */
};

/* As the kernel says now, which delayed allocation makes a guess. */
BRIM_API int brim_usage(const char *path, struct brim_usage *out,
			struct brim_err *e);
/* Writes back that filesystem alone (syncfs). */
BRIM_API int brim_usage_sync(const char *path, struct brim_err *e);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_FILL_API_H */
