/* SPDX-License-Identifier: MIT */
/*
 * brim_run.h: part of brim.h, which includes it and states the conventions.
 * Devices and runs: making it so, and looking whether it is.
 */
#ifndef BRIM_RUN_API_H
#define BRIM_RUN_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- devices */

struct brim_device;

enum brim_device_kind {
	BRIM_KIND_FILE = 1,    /* a regular file */
	BRIM_KIND_BLOCK = 2,   /* a block device */
	BRIM_KIND_IMAGE = 3,   /* an image file: read-only, rendered */
	BRIM_KIND_NULL = 4,    /* nothing behind it: writes are discarded */
	BRIM_KIND_OVERLAY = 5, /* another one under an overlay */
};

enum brim_device_flags {
	BRIM_DEVICE_WRITE = 1 << 0,    /* else read-only */
	BRIM_DEVICE_CREATE = 1 << 1,   /* make a missing regular file */
	BRIM_DEVICE_FORCE = 1 << 2,    /* accept a target that holds data */
	BRIM_DEVICE_DIRECT = 1 << 3,   /* O_DIRECT for regular files too */
	BRIM_DEVICE_BUFFERED = 1 << 4, /* page cache for block devices too */
	BRIM_DEVICE_RAW = 1 << 5,      /* take an image file for what it is:
					   a small regular file */
};

struct brim_device_options {
	size_t struct_bytes;
	uint32_t flags;
	uint64_t min_size_bytes;     /* regular files are extended to it;
					   anything smaller is refused */
	uint64_t max_size_bytes;     /* 0: none; else what lies beyond is
					   left alone */
	uint32_t direct_align_bytes; /* all I/O will be a multiple of it: take
					O_DIRECT for regular files where the
					filesystem says that this suffices */
};

struct brim_device_info {
	enum brim_device_kind kind;
	const char *path;
	uint64_t size_bytes;
	uint32_t logical_sector_bytes;
	uint32_t physical_sector_bytes;
	uint32_t min_io_bytes;     /* 0: not known */
	uint32_t opt_io_bytes;     /* 0: not known */
	uint32_t misaligned_bytes; /* of a partition against the physical
					   sectors; 0: aligned */
	uint32_t align_bytes;      /* what offsets, lengths and buffers
					   must be multiples of; 1: anything */
	int is_rotational;         /* 1, 0, or -1: not known */
	int is_direct;             /* O_DIRECT in force */
	int is_writable;
};

/*
 * Opens a target. With BRIM_DEVICE_WRITE it refuses, before anything is
 * written: what is mounted, in use as swap, held by another user or backing a
 * loop device (-EBUSY, never overridden); what carries a filesystem, a
 * partition table or another signature (-EEXIST; BRIM_DEVICE_FORCE
 * overrides); what is too small (-ENOSPC). A file that the host cannot make
 * that long is -EFBIG. Image files open read-only (-EROFS for writing).
 */
BRIM_API int brim_device_open(struct brim_device **out, const char *path,
			      const struct brim_device_options *o,
			      struct brim_err *e);
/* A device with nothing behind it: for measuring. */
BRIM_API int brim_device_open_null(struct brim_device **out,
				   uint64_t size_bytes, struct brim_err *e);
/* A sealed plan as a read-only device, which holds it until it is closed. */
BRIM_API int brim_device_open_plan(struct brim_device **out,
				   const struct brim_plan *p,
				   struct brim_err *e);
/* Lets go of it; a run that still uses it keeps it open. */
BRIM_API void brim_device_close(struct brim_device *d);
/* What is known of it; out->path is valid until the device is closed. */
BRIM_API void brim_device_info(const struct brim_device *d,
			       struct brim_device_info *out);
/* The plan behind an image device, else NULL; borrowed from the device. */
BRIM_API const struct brim_plan *brim_device_plan(const struct brim_device *d);
/*
 * Plain synchronous I/O of the whole length, retried when short. A range past
 * the end is -ERANGE, for all four below. Any range may be read; what is
 * written must be a multiple of align_bytes (-EINVAL).
 */
BRIM_API int brim_device_read(struct brim_device *d, uint64_t off_bytes,
			      size_t len_bytes, void *buf, struct brim_err *e);
BRIM_API int brim_device_write(struct brim_device *d, uint64_t off_bytes,
			       size_t len_bytes, const void *buf,
			       struct brim_err *e);
/*
 * Makes a range zero without carrying the zeros: a hole in a regular file,
 * zeroed blocks on a block device. -EOPNOTSUPP where the target cannot.
 */
BRIM_API int brim_device_zero(struct brim_device *d, uint64_t off_bytes,
			      uint64_t len_bytes, struct brim_err *e);
/* Tells a block device that a range is unused; its content is then unknown. */
BRIM_API int brim_device_discard(struct brim_device *d, uint64_t off_bytes,
				 uint64_t len_bytes, struct brim_err *e);
/* Makes what was written so far stable (fdatasync). */
BRIM_API int brim_device_flush(struct brim_device *d, struct brim_err *e);

/* ------------------------------------------------------------ batched runs */

/*
 * Counters of a run. Times are nanoseconds. mean_queue_depth is the time-mean
 * of I/Os between submission and completion while there was work to submit:
 * the sum of all I/Os' latencies over the elapsed time of the data phases. ios
 * and bytes are reads, writes and zeroed ranges together, and _total what was
 * foreseen of them until the run has finished.
 */
struct brim_run_stats {
	size_t struct_bytes;
	const char *engine; /* the engine in use */
	const char *phase;  /* the phase being run */
	uint64_t groups_done, groups_total;
	uint64_t ios_done, ios_total;
	uint64_t bytes_done, bytes_total;
	uint64_t reads, writes, zero_ranges, flushes;
	uint64_t read_bytes, write_bytes, zero_bytes;
	uint64_t short_ios, retries;
	uint64_t mismatches; /* verify and scan */
	uint64_t elapsed_ns;
	uint64_t user_cpu_ns, system_cpu_ns;
	double mean_queue_depth;
	uint64_t latency_p50_ns, latency_p90_ns, latency_p99_ns, latency_max_ns;
};

enum brim_run_mode { BRIM_RUN_WRITE = 1, BRIM_RUN_VERIFY = 2 };

/*
 * How I/O is done. "auto" takes io_uring for direct I/O, and for reading
 * buffered files that are not in the page cache; plain calls for the rest.
 * "null" moves nothing. "fault:KEY=VALUE,..." makes chosen calls fail, for
 * tests: at=N (the first that fails), times=N, op=read|write|zero|flush,
 * errno=NAME or short=BYTES, inner=auto|sync|uring|null.
 */
struct brim_run_options {
	size_t struct_bytes;
	const char *engine;      /* NULL or "auto", "uring", "sync", "null",
				   or "fault:SPEC" */
	uint32_t queue_depth;    /* I/Os in flight; 0: 128 */
	uint32_t max_io_bytes;   /* largest I/O; 0: 1 MiB */
	uint32_t threads;        /* of the sync engine; 0: what fits */
	uint32_t max_mismatches; /* kept in full (by a scan: of each kind);
				    0: 16 */
};

/* One difference found by verify or scan. */
struct brim_mismatch {
	uint64_t off_bytes;       /* on the device */
	uint64_t group;           /* instance number */
	const char *piece;        /* the plan's piece or scan's structure */
	const char *what;         /* the structure or the field */
	uint64_t expected, found; /* a byte for verify, a value for scan */
	const char *rule;         /* what found is not: "=" expected, "in" a set
				     that has it, "<=" or ">=" expected */
};

/* All of a scan's mismatches that have piece, what and rule in common. */
struct brim_mismatch_kind {
	const char *piece, *what, *rule;
	uint64_t count;
	uint64_t group, off_bytes; /* of the one with the lowest offset */
};

struct brim_run;

/*
 * Prepares to write a sealed plan to a device, or to compare the device with
 * it. Refuses before any I/O what cannot work: a device smaller than the plan
 * (-ENOSPC), read-only (-EROFS), or whose alignment the plan does not keep
 * (-EINVAL). The run holds plan and device until it is closed. The thread that
 * opens it also steps and closes it (io_uring may insist).
 */
BRIM_API int brim_run_open(struct brim_run **out, const struct brim_plan *p,
			   struct brim_device *d, enum brim_run_mode mode,
			   const struct brim_run_options *o,
			   struct brim_err *e);
/*
 * Works for about budget_ns (0: to the end). Returns 1 when there is more to
 * do, 0 when finished, < 0 on the first error, after which nothing further is
 * submitted. It never calls back. I/Os may be in flight when it returns; the
 * run owns their buffers. *st may be NULL.
 */
BRIM_API int brim_run_step(struct brim_run *r, uint64_t budget_ns,
			   struct brim_run_stats *st, struct brim_err *e);
/* The k-th kept mismatch in the order of offsets, or -ENOENT. */
BRIM_API int brim_run_mismatch(const struct brim_run *r, size_t k,
			       struct brim_mismatch *out);
/*
 * The k-th kind of a scan's mismatches, or -ENOENT. From the 256th on they are
 * counted as one, whose piece and what are "other".
 */
BRIM_API int brim_run_mismatch_kind(const struct brim_run *r, size_t k,
				    struct brim_mismatch_kind *out);
/* Waits for what is in flight, then frees. Stopping early is safe. */
BRIM_API void brim_run_close(struct brim_run *r);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_RUN_API_H */
