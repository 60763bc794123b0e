/* SPDX-License-Identifier: MIT */
/*
 * brim_plan.h: part of brim.h, which includes it and states the conventions.
 * Layouts, stamps, plans and image files: saying what bytes shall be.
 */
#ifndef BRIM_PLAN_API_H
#define BRIM_PLAN_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

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
	enum brim_endian endian; /* 0: opaque bytes or a record */
	uint32_t count;
	const struct brim_layout *record;
	int64_t value; /* what each element holds by default */
};

struct brim_layout_options {
	size_t struct_bytes; /* sizeof(struct brim_layout_options) */
	const char *name;
	uint32_t size_bytes;
	int extensible;             /* may be placed with a larger size */
	const char *checksum_field; /* NULL: none; else a 4-byte field */
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
/* Frees it; scans and layouts that nest it must be gone. */
BRIM_API void brim_layout_free(struct brim_layout *l);
/* What it was declared with: its name, its (least) size, how many fields. */
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

/* Begins an empty stamp: -ENOMEM. */
BRIM_API int brim_stamp_create(struct brim_stamp **out, struct brim_err *e);
/* Frees a stamp that no plan owns. */
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
/* Sets bytes that are the same at every instance. */
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
struct brim_extent {
	uint64_t off_bytes;
	uint32_t len_bytes;
};
BRIM_API size_t brim_stamp_extents(const struct brim_stamp *s,
				   const struct brim_extent **out);
/*
 * Renders bytes [off, off+len) of extent x of instance i into buf; i is one of
 * those the stamp was sealed for, the window lies within the extent. With
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

/*
 * Begins a plan for a volume of size_bytes, named for messages: -EINVAL for a
 * size of 0 or past BRIM_MAX_BYTES.
 */
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
			    const char *name, int groups, struct brim_err *e);
/*
 * A text that travels with the plan and its image: what made it (options,
 * geometry as printed), free of any meaning to the core. NULL clears it. Not
 * once the plan is sealed.
 */
BRIM_API int brim_plan_set_note(struct brim_plan *p, const char *key,
				const char *text, struct brim_err *e);
BRIM_API const char *brim_plan_note(const struct brim_plan *p, const char *key);
/* Ends the building; checks overlaps and the size. Sealed plans are const. */
BRIM_API int brim_plan_seal(struct brim_plan *p, struct brim_err *e);
/*
 * Opens a sealed plan for more; to look at one while it is being built, seal
 * and unseal it. -EBUSY while a run or device holds it.
 */
BRIM_API int brim_plan_unseal(struct brim_plan *p, struct brim_err *e);

/* What it was created with. */
BRIM_API const char *brim_plan_name(const struct brim_plan *p);
BRIM_API uint64_t brim_plan_size_bytes(const struct brim_plan *p);

/*
 * What running a sealed plan amounts to, with I/Os of at most max_io_bytes (0:
 * 1 MiB).
 */
struct brim_plan_totals {
	uint64_t phases;
	uint64_t pieces;
	uint64_t groups;
	uint64_t writes; /* I/Os that carry data */
	uint64_t write_bytes;
	uint64_t zero_ranges; /* ranges to be zeroed by the target */
	uint64_t zero_bytes;
	uint32_t align_bytes; /* all offsets and lengths are multiples */
};
BRIM_API void brim_plan_totals(const struct brim_plan *p, uint32_t max_io_bytes,
			       struct brim_plan_totals *out);

/* One piece, for explaining a plan. */
struct brim_piece_info {
	const char *phase;
	const char *name;
	int is_zero; /* a range of zeros, else a stamp */
	int is_groups;
	uint64_t off_bytes;
	uint64_t len_bytes; /* zeros: the range; stamps: of one instance */
	uint64_t stride_bytes;
	uint64_t first;  /* number of the first instance */
	uint64_t count;  /* instances laid */
	uint64_t hidden; /* of these, covered by later pieces of the
				   phase; zeros: bytes covered */
	size_t extents;
};
/* The i-th piece in the order laid, or -ENOENT. */
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

#ifdef __cplusplus
}
#endif

#endif /* BRIM_PLAN_API_H */
