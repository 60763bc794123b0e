/* SPDX-License-Identifier: MIT */
/*
 * brim.h: the public interface of libbrim.
 *
 * libbrim builds plans (what every byte of a volume shall be) and runs them:
 * writes them to a device, verifies a device against them, saves them as tiny
 * image files, reads them as if they were devices. It knows no filesystem.
 *
 * Conventions that hold for every function here:
 *  - The result is >= 0 on success and -errno on failure, unless it says
 *    otherwise. `struct brim_err *e` may be NULL; on failure it is filled once,
 *    where the failure happened.
 *  - `brim_x_create` and `brim_x_open` set *out to NULL first. The matching
 *    `brim_x_free` or `brim_x_close` accepts NULL.
 *  - Offsets and lengths are bytes unless the name says otherwise. The largest
 *    offset is BRIM_MAX_BYTES, 2^63-1, which is what off_t can hold.
 *  - A handle belongs to one thread at a time. Sealed stamps and sealed plans
 *    are immutable and may be read by any number of threads at once.
 *  - Strings handed out are owned by the handle and valid until it goes.
 */
#ifndef BRIM_H
#define BRIM_H

#include <stddef.h>
#include <stdint.h>

#include "brim_version.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BRIM_API __attribute__((visibility("default")))
#else
#define BRIM_API
#endif

/* The largest byte offset and the largest length: 2^63-1 (off_t). */
#define BRIM_MAX_BYTES ((uint64_t)INT64_MAX)

/* The library's version as text, for example "0.1.0". */
BRIM_API const char *brim_version(void);

/* ------------------------------------------------------------------ errors */

/*
 * Why a call failed. `code` is -errno; `op` names the operation ("open",
 * "write", "seal", ...), a string literal; `offset_bytes` is where on the
 * device it happened, 0 when that means nothing; `msg` is one line for people
 * that names what was wrong and what would be right.
 */
struct brim_err {
	int code;
	const char *op;
	uint64_t offset_bytes;
	char msg[256];
};

/* ------------------------------------------------------------------- bytes */

/*
 * Checked arithmetic on sizes. Each stores the result and returns 0, or
 * returns -EOVERFLOW (and stores nothing) when it does not fit into 64 bits.
 * brim_align_up rounds up to a multiple of `to`, which must not be 0 (-EINVAL).
 */
BRIM_API int brim_add(uint64_t a, uint64_t b, uint64_t *out);
BRIM_API int brim_mul(uint64_t a, uint64_t b, uint64_t *out);
BRIM_API int brim_align_up(uint64_t n, uint64_t to, uint64_t *out);

/*
 * Reads a size: digits, then optionally one of k m g t p e in either case,
 * then optionally "iB". Suffixes are powers of 1024, always. Everything else is
 * refused with its reason: -EINVAL for a wrong form, -ERANGE for more than
 * BRIM_MAX_BYTES ("8e" is 2^63, one past the largest offset).
 */
BRIM_API int brim_bytes_parse(const char *text, uint64_t *out_bytes,
			      struct brim_err *e);

/*
 * Writes n_bytes with the largest suffix that keeps it exact ("8191 PiB",
 * "4 KiB", "4097"), so that brim_bytes_parse reads the same number back: a
 * blank between digits and suffix is allowed there. Returns the length as
 * snprintf does. A buffer of 32 bytes always suffices.
 */
BRIM_API int brim_bytes_format(char *buf, size_t buf_bytes, uint64_t n_bytes);

/* ---------------------------------------------------------------- geometry */

/*
 * A volume cut into groups of equal size, the last one possibly shorter:
 * allocation groups, block groups, segments, zones. Groups begin at
 * first_bytes. All of it is checked once by brim_geometry_init.
 */
struct brim_geometry {
	uint64_t first_bytes;
	uint64_t size_bytes;
	uint64_t group_bytes;
	uint32_t block_log2;
	uint64_t group_count;
	uint64_t group_blocks;
	uint64_t last_group_blocks;
};

/* One byte address: group number, block within the group, byte within it. */
struct brim_location {
	uint64_t group;
	uint64_t block;
	uint64_t byte;
};

/*
 * Fills *g for a volume of size_bytes whose groups of group_bytes begin at
 * first_bytes, in blocks of 2^block_log2 bytes. A remainder shorter than a
 * block at the end is left out. -EINVAL for sizes that are no multiple of the
 * block, for 0 groups, -ERANGE past BRIM_MAX_BYTES.
 */
BRIM_API int brim_geometry_init(struct brim_geometry *g, uint64_t first_bytes,
				uint64_t size_bytes, uint64_t group_bytes,
				uint32_t block_log2, struct brim_err *e);
/* Where a byte offset lies; -ERANGE outside of the groups. */
BRIM_API int brim_geometry_locate(const struct brim_geometry *g,
				  uint64_t off_bytes,
				  struct brim_location *out);
/* The byte offset of a location; -ERANGE when it is outside of its group. */
BRIM_API int brim_geometry_offset(const struct brim_geometry *g,
				  const struct brim_location *at,
				  uint64_t *off_bytes);

/* --------------------------------------------------------------- checksums */

enum brim_checksum_kind {
	BRIM_CRC32C = 1,	/* Castagnoli, reflected (XFS, ext4, btrfs) */
	BRIM_CRC32 = 2,		/* IEEE 802.3, reflected (F2FS, GPT) */
};

enum brim_endian { BRIM_BIG = 1, BRIM_LITTLE = 2 };

/*
 * How one checksum is made and kept: the register starts as `seed`, runs over
 * the covered bytes with the checksum's own bytes taken as zero, is xored with
 * `xor_out` and stored as 4 bytes in the order `endian`.
 * XFS: { BRIM_CRC32C, 0xffffffff, 0xffffffff, BRIM_LITTLE }.
 */
struct brim_checksum {
	enum brim_checksum_kind kind;
	uint32_t seed;
	uint32_t xor_out;
	enum brim_endian endian;
};

/*
 * Runs the bare CRC register (no inversion before or after) over the buffer.
 * Vectorised through ISA-L where the build has it.
 */
BRIM_API uint32_t brim_crc(enum brim_checksum_kind kind, uint32_t reg,
			   const void *buf, size_t len_bytes);
/* The same, byte by byte from a table: the judge of the fast one. */
BRIM_API uint32_t brim_crc_portable(enum brim_checksum_kind kind, uint32_t reg,
				    const void *buf, size_t len_bytes);
/* The register after len_bytes further zero bytes, in O(log len). */
BRIM_API uint32_t brim_crc_zeros(enum brim_checksum_kind kind, uint32_t reg,
				 uint64_t len_bytes);

/* ----------------------------------------------------------------- layouts */

struct brim_layout;

/*
 * One field of an on-disk structure. width_bytes is that of one element: 1, 2,
 * 4 or 8 for integers, any length for opaque bytes (endian 0), the record's
 * size for nested records. count 0 means "as many as fit" and is allowed for
 * the last field only.
 */
struct brim_field {
	const char *name;
	uint32_t off_bytes;
	uint32_t width_bytes;
	enum brim_endian endian;	/* 0: opaque bytes or a record */
	uint32_t count;
	const struct brim_layout *record;
	int64_t value;			/* what each element holds by default */
};

struct brim_layout_options {
	size_t struct_bytes;		/* sizeof(struct brim_layout_options) */
	const char *name;
	uint32_t size_bytes;
	int extensible;			/* may be placed with a larger size */
	const char *checksum_field;	/* NULL: none; else a 4-byte field */
	struct brim_checksum checksum;
};

/*
 * Declares a structure. The fields must be in order and must neither overlap
 * nor leave gaps, and end at size_bytes: -EINVAL names the offending field.
 * Everything is copied but nested records, which must outlive the layout.
 */
BRIM_API int brim_layout_create(struct brim_layout **out,
				const struct brim_layout_options *o,
				const struct brim_field *fields,
				size_t field_count, struct brim_err *e);
BRIM_API void brim_layout_free(struct brim_layout *l);
BRIM_API const char *brim_layout_name(const struct brim_layout *l);
BRIM_API uint32_t brim_layout_size_bytes(const struct brim_layout *l);
BRIM_API size_t brim_layout_field_count(const struct brim_layout *l);
/* The i-th field, or NULL. */
BRIM_API const struct brim_field *brim_layout_field(const struct brim_layout *l,
						    size_t i);
/* The index of a field by name, or -ENOENT. */
BRIM_API int brim_layout_find(const struct brim_layout *l, const char *name);
/* Elements of field i in a structure of size_bytes. */
BRIM_API uint32_t brim_layout_elements(const struct brim_layout *l, size_t i,
				       uint32_t size_bytes);

/*
 * Reads or writes one integer element in a raw structure. Values narrower than
 * 64 bits are zero-extended; 64-bit fields keep their bit pattern.
 */
BRIM_API int64_t brim_field_get(const struct brim_field *f, const void *raw,
				uint32_t element);
BRIM_API void brim_field_set(const struct brim_field *f, void *raw,
			     uint32_t element, int64_t value);
/* Fills a raw structure with the defaults of its fields. */
BRIM_API void brim_layout_defaults(const struct brim_layout *l, void *raw,
				   uint32_t size_bytes);
/*
 * Computes the structure's checksum into it, or compares: 1 right, 0 wrong.
 * Both do nothing (and return 1) where the layout has none.
 */
BRIM_API int brim_layout_seal(const struct brim_layout *l, void *raw,
			      uint32_t size_bytes);
BRIM_API int brim_layout_intact(const struct brim_layout *l, const void *raw,
				uint32_t size_bytes);

/* ------------------------------------------------------------------ stamps */

/*
 * A stamp is traced once and rendered for any of a range of instances i: bytes
 * that are the same everywhere, integers that are base + step * i, and the
 * checksums over both. It is made of regions (offset and length relative to the
 * instance's start); adjacent regions become one extent and so one I/O.
 */
struct brim_stamp;

/* The most bytes the regions of one stamp may hold together. */
#define BRIM_STAMP_MAX_BYTES (16u << 20)

BRIM_API int brim_stamp_create(struct brim_stamp **out, struct brim_err *e);
BRIM_API void brim_stamp_free(struct brim_stamp *s);
/*
 * Adds a region of zeros, named for messages. -EEXIST where it overlaps
 * another, -EFBIG past BRIM_STAMP_MAX_BYTES. Everything set below must lie
 * within one region (-ERANGE).
 */
BRIM_API int brim_stamp_region(struct brim_stamp *s, uint64_t off_bytes,
			       uint32_t len_bytes, const char *label,
			       struct brim_err *e);
/* Places a layout with its defaults and its checksum as a region. */
BRIM_API int brim_stamp_place(struct brim_stamp *s, const struct brim_layout *l,
			      uint64_t off_bytes, uint32_t size_bytes,
			      struct brim_err *e);
BRIM_API int brim_stamp_set_bytes(struct brim_stamp *s, uint64_t off_bytes,
				  const void *bytes, size_t len_bytes,
				  struct brim_err *e);
/*
 * Sets an integer to base + step * i. Whether it fits its width for every
 * instance is checked by brim_stamp_seal, which names `field`.
 */
BRIM_API int brim_stamp_set_int(struct brim_stamp *s, uint64_t off_bytes,
				uint32_t width_bytes, enum brim_endian endian,
				int64_t base, int64_t step, const char *field,
				struct brim_err *e);
/* Keeps a checksum of [from, from+len) at off, which lies within. */
BRIM_API int brim_stamp_set_checksum(struct brim_stamp *s, uint64_t off_bytes,
				     uint64_t from_bytes, uint32_t len_bytes,
				     const struct brim_checksum *c,
				     struct brim_err *e);
/*
 * Ends the tracing for the instances first .. first+count-1: merges regions,
 * checks every value's range (-ERANGE), prepares the incremental checksums.
 * Sealed stamps are immutable; sealing twice is -EINVAL.
 */
BRIM_API int brim_stamp_seal(struct brim_stamp *s, uint64_t first,
			     uint64_t count, struct brim_err *e);
/* One extent of a sealed stamp, relative to the instance. */
struct brim_extent { uint64_t off_bytes; uint32_t len_bytes; };
BRIM_API size_t brim_stamp_extents(const struct brim_stamp *s,
				   const struct brim_extent **out);
/*
 * Renders bytes [off, off+len) of extent x of instance i into buf. With
 * `fresh` 0 the caller promises that buf already holds a rendering of the same
 * window by this stamp, of any instance, and only what differs is stored.
 */
BRIM_API void brim_stamp_render(const struct brim_stamp *s, size_t x,
				uint64_t i, uint32_t off_bytes,
				uint32_t len_bytes, void *buf, int fresh);

/* ------------------------------------------------------------------- plans */

/*
 * What every byte of a volume shall be, and in which order it gets there. A
 * plan has phases, run one after the other with a flush between; a phase has
 * pieces, whose order within the phase is free. Where pieces overlap the later
 * one holds; within one phase it must then cover whole instances of an earlier
 * stamp. Bytes that no piece names are left alone, and read as zeros.
 */
struct brim_plan;

BRIM_API int brim_plan_create(struct brim_plan **out, const char *name,
			      uint64_t size_bytes, struct brim_err *e);
/* A run or device that still uses the plan keeps it until it is closed. */
BRIM_API void brim_plan_free(struct brim_plan *p);
/* Begins a phase. A plan without one gets a phase named "write". */
BRIM_API int brim_plan_phase(struct brim_plan *p, const char *name,
			     struct brim_err *e);
/* All bytes of [off, off+len) shall be zero. */
BRIM_API int brim_plan_zero(struct brim_plan *p, uint64_t off_bytes,
			    uint64_t len_bytes, const char *name,
			    struct brim_err *e);
/*
 * Lays every instance i of a sealed stamp at off_bytes + stride_bytes * i. An
 * instance must not be longer than the stride. `groups` says whether the instances count as
 * groups in reports. The plan owns the stamp from here on, also when the call
 * fails.
 */
BRIM_API int brim_plan_each(struct brim_plan *p, struct brim_stamp *s,
			    uint64_t off_bytes, uint64_t stride_bytes,
			    const char *name, int groups,
			    struct brim_err *e);
/*
 * A text that travels with the plan and its image: what made it (options,
 * geometry as printed), free of any meaning to the core. NULL clears it.
 */
BRIM_API int brim_plan_set_note(struct brim_plan *p, const char *key,
				const char *text, struct brim_err *e);
BRIM_API const char *brim_plan_note(const struct brim_plan *p,
				    const char *key);
/* Ends the building; checks overlaps and the size. Sealed plans are const. */
BRIM_API int brim_plan_seal(struct brim_plan *p, struct brim_err *e);

BRIM_API const char *brim_plan_name(const struct brim_plan *p);
BRIM_API uint64_t brim_plan_size_bytes(const struct brim_plan *p);

/* What running a sealed plan amounts to, with I/Os of at most max_io_bytes. */
struct brim_plan_totals {
	uint64_t phases;
	uint64_t pieces;
	uint64_t groups;
	uint64_t writes;	/* I/Os that carry data */
	uint64_t write_bytes;
	uint64_t zero_ranges;	/* ranges to be zeroed by the target */
	uint64_t zero_bytes;
	uint32_t align_bytes;	/* all offsets and lengths are multiples */
};
BRIM_API void brim_plan_totals(const struct brim_plan *p,
			       uint32_t max_io_bytes,
			       struct brim_plan_totals *out);

/* One piece, for explaining a plan. */
struct brim_piece_info {
	const char *phase;
	const char *name;
	int is_zero;		/* a range of zeros, else a stamp */
	int is_groups;
	uint64_t off_bytes;
	uint64_t len_bytes;	/* zeros: the range; stamps: of one instance */
	uint64_t stride_bytes;
	uint64_t first;		/* number of the first instance */
	uint64_t count;		/* instances laid */
	uint64_t hidden;	/* of these, covered by later pieces */
	size_t extents;
};
BRIM_API int brim_plan_piece(const struct brim_plan *p, size_t i,
			     struct brim_piece_info *out);
/*
 * The labels of the structures a stamped piece is made of: the k-th region's
 * label, offset and length, or -ENOENT.
 */
BRIM_API int brim_plan_region(const struct brim_plan *p, size_t i, size_t k,
			      const char **label, uint64_t *off_bytes,
			      uint32_t *len_bytes);

/*
 * What the bytes [off, off+len) of the volume shall be. -ERANGE past its end.
 */
BRIM_API int brim_plan_read(const struct brim_plan *p, uint64_t off_bytes,
			    size_t len_bytes, void *buf, struct brim_err *e);

/* ------------------------------------------------------------------ images */

/*
 * Saves a sealed plan as an image file, a few KiB whatever the volume's size;
 * it appears under its name only when it is complete. Loading runs no code and
 * checks everything: -EILSEQ where a file is none or is damaged, -ENOTSUP for
 * a newer version.
 */
BRIM_API int brim_image_save(const struct brim_plan *p, const char *path,
			     struct brim_err *e);
BRIM_API int brim_image_load(struct brim_plan **out, const char *path,
			     struct brim_err *e);
/* The same from and to memory; free the buffer with free(3). */
BRIM_API int brim_image_encode(const struct brim_plan *p, void **buf,
			       size_t *len_bytes, struct brim_err *e);
BRIM_API int brim_image_decode(struct brim_plan **out, const void *buf,
			       size_t len_bytes, struct brim_err *e);

/* ----------------------------------------------------------------- devices */

struct brim_device;

enum brim_device_kind {
	BRIM_DEVICE_FILE = 1,	/* a regular file */
	BRIM_DEVICE_BLOCK = 2,	/* a block device */
	BRIM_DEVICE_IMAGE = 3,	/* an image file: read-only, rendered */
	BRIM_DEVICE_NULL = 4,	/* nothing behind it: writes are discarded */
};

enum brim_device_flags {
	BRIM_DEVICE_WRITE = 1 << 0,	/* else read-only */
	BRIM_DEVICE_CREATE = 1 << 1,	/* make a missing regular file */
	BRIM_DEVICE_FORCE = 1 << 2,	/* accept a target that holds data */
	BRIM_DEVICE_DIRECT = 1 << 3,	/* O_DIRECT for regular files too */
	BRIM_DEVICE_BUFFERED = 1 << 4,	/* page cache for block devices too */
	BRIM_DEVICE_RAW = 1 << 5,	/* take an image file for what it is:
					   a small regular file */
};

struct brim_device_options {
	size_t struct_bytes;
	uint32_t flags;
	uint64_t min_size_bytes;	/* regular files are extended to it;
					   anything smaller is refused */
	uint64_t max_size_bytes;	/* 0: none; else what lies beyond is
					   left alone */
};

struct brim_device_info {
	enum brim_device_kind kind;
	const char *path;
	uint64_t size_bytes;
	uint32_t logical_sector_bytes;
	uint32_t physical_sector_bytes;
	uint32_t min_io_bytes;		/* 0: not known */
	uint32_t opt_io_bytes;		/* 0: not known */
	uint32_t align_bytes;		/* what offsets, lengths and buffers
					   must be multiples of; 1: anything */
	int is_rotational;		/* 1, 0, or -1: not known */
	int is_direct;			/* O_DIRECT in force */
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
BRIM_API void brim_device_close(struct brim_device *d);
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
	const char *engine;		/* the engine in use */
	const char *phase;		/* the phase being run */
	uint64_t groups_done, groups_total;
	uint64_t ios_done, ios_total;
	uint64_t bytes_done, bytes_total;
	uint64_t reads, writes, zero_ranges, flushes;
	uint64_t read_bytes, write_bytes, zero_bytes;
	uint64_t short_ios, retries;
	uint64_t mismatches;		/* verify and scan */
	uint64_t elapsed_ns;
	uint64_t user_cpu_ns, system_cpu_ns;
	double mean_queue_depth;
	uint64_t latency_p50_ns, latency_p90_ns, latency_p99_ns, latency_max_ns;
};

enum brim_run_mode { BRIM_RUN_WRITE = 1, BRIM_RUN_VERIFY = 2 };

struct brim_run_options {
	size_t struct_bytes;
	const char *engine;	/* NULL or "auto", "uring", "sync", "null",
				   "fault:SPEC" (see engine_fault.c) */
	uint32_t queue_depth;	/* I/Os in flight; 0: 128 */
	uint32_t max_io_bytes;	/* largest I/O; 0: 1 MiB */
	uint32_t threads;	/* of the sync engine; 0: what fits */
	uint32_t max_mismatches;	/* kept in full; 0: 16 */
};

/* One difference found by verify or scan. */
struct brim_mismatch {
	uint64_t off_bytes;		/* on the device */
	uint64_t group;			/* instance number */
	const char *piece;		/* the plan's piece or scan's structure */
	const char *what;		/* the structure or the field */
	uint64_t expected, found;	/* a byte for verify, a value for scan */
};

struct brim_run;

/*
 * Prepares to write a sealed plan to a device, or to compare the device with
 * it. Refuses before any I/O what cannot work: a device smaller than the plan
 * (-ENOSPC), read-only (-EROFS), or whose alignment the plan does not keep
 * (-EINVAL). The run holds plan and device until it is closed. The thread that
 * opens it
 * also steps and closes it (io_uring may insist).
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
/* The k-th kept mismatch, or -ENOENT. */
BRIM_API int brim_run_mismatch(const struct brim_run *r, size_t k,
			       struct brim_mismatch *out);
/* Waits for what is in flight, then frees. Stopping early is safe. */
BRIM_API void brim_run_close(struct brim_run *r);

/* ------------------------------------------------------------------- scans */

/*
 * The dual of a stamp: what must hold at every instance. Built like a stamp
 * (regions with layouts; integers expected to be base + step * i), but only
 * what is set is compared, and checksums are recomputed from the bytes read.
 */
struct brim_scan;

BRIM_API int brim_scan_create(struct brim_scan **out, struct brim_err *e);
BRIM_API void brim_scan_free(struct brim_scan *s);
/* The structure at off: its checksum must hold. The layout must outlive s. */
BRIM_API int brim_scan_expect_layout(struct brim_scan *s,
				     const struct brim_layout *l,
				     uint64_t off_bytes, uint32_t size_bytes,
				     struct brim_err *e);
/* An integer must be base + step * i (compared in its width). */
BRIM_API int brim_scan_expect_int(struct brim_scan *s, uint64_t off_bytes,
				  uint32_t width_bytes, enum brim_endian endian,
				  int64_t base, int64_t step,
				  const char *structure, const char *field,
				  struct brim_err *e);
/*
 * A run that reads instances 0 .. count-1 at off + stride * i and checks them.
 * Each instance is one read from its first to its last expected byte. Step,
 * mismatches and close are those of brim_run. The scan must outlive it.
 */
BRIM_API int brim_scan_open(struct brim_run **out, const struct brim_scan *s,
			    struct brim_device *d, uint64_t off_bytes,
			    uint64_t stride_bytes, uint64_t count,
			    const struct brim_run_options *o,
			    struct brim_err *e);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_H */
