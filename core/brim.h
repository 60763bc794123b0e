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
 *  - Options structs and struct brim_run_stats begin with struct_bytes, which
 *    the caller sets to the struct's sizeof, so that they can grow. The other
 *    structs that functions fill keep their shape within a minor version,
 *    which is part of the library's soname.
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
	BRIM_CRC32C = 1, /* Castagnoli, reflected (XFS, ext4, btrfs) */
	BRIM_CRC32 = 2,  /* IEEE 802.3, reflected (F2FS, GPT) */
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

#ifdef __cplusplus
}
#endif

#include "brim_plan.h"
#include "brim_run.h"
#include "brim_scan.h"
#include "brim_walk.h"
#include "brim_overlay.h"
#include "brim_fill.h"
#include "brim_workload.h"
#include "brim_drive.h"

#endif /* BRIM_H */
