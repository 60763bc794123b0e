/* SPDX-License-Identifier: MIT */
/*
 * plan.h: the inside of stamps and plans, for stamp.c, plan*.c, image.c, and
 * the cursor that run.c walks: a sealed plan as a sequence of I/Os.
 */
#ifndef BRIM_PLAN_H
#define BRIM_PLAN_H

#include "internal.h"

/* Half-open intervals, sorted and disjoint: of instances, or of bytes. */
struct brim__span {
	uint64_t from, to;
};
struct brim__spans {
	struct brim__span *v;
	size_t n, room;
};

/*
 * One piece. `hidden` are the instances (of a range of zeros: the bytes) that
 * later pieces of the same phase cover, so that they are never written;
 * `shadow` are the instances that pieces of later phases write over.
 */
struct brim__piece {
	char *name;
	uint32_t phase;
	bool is_zero;
	bool is_groups;
	uint64_t off_bytes;
	uint64_t len_bytes; /* zeros only */
	uint64_t stride_bytes;
	uint64_t first, count; /* instances; zeros: 0 and 1 */
	struct brim_stamp *stamp;
	struct brim__spans hidden;
	struct brim__spans shadow;
};

struct brim__note {
	char *key, *text;
};

struct brim_plan {
	uint32_t holders; /* who must let go before it is freed */
	char *name;
	uint64_t size_bytes;
	bool sealed;
	char **phases;
	size_t phase_count;
	struct brim__piece *pieces;
	size_t piece_count, piece_room;
	struct brim__note *notes;
	size_t note_count;
};

/*
 * One I/O of a plan: bytes [off, off+len) of the device. Zeros are one
 * descriptor for the whole range, whatever its length; data is at most the
 * cursor's max_io_bytes. `groups` is how many groups are complete with it.
 */
struct brim__desc {
	bool is_zero;
	uint32_t piece;
	uint32_t extent;
	uint32_t from_bytes; /* within the extent */
	uint32_t instances;  /* side by side in this I/O; else 1 */
	uint32_t groups;
	uint64_t instance; /* the first */
	uint64_t off_bytes;
	uint64_t len_bytes;
};

struct brim__cursor {
	const struct brim_plan *plan;
	uint32_t phase;
	uint32_t max_io_bytes;
	size_t piece;
	uint64_t at; /* next instance, or next byte of zeros */
	size_t span; /* next hidden span to meet */
	uint32_t extent;
	uint32_t from_bytes;
};

/* Starts at the first I/O of a phase (0 .. phase_count-1). */
void brim__cursor_init(struct brim__cursor *c, const struct brim_plan *p,
		       uint32_t phase, uint32_t max_io_bytes);
/* Moves to the first I/O of piece n, which is of the cursor's phase. */
void brim__cursor_enter(struct brim__cursor *c, size_t n);
/* The next I/O: 1, or 0 at the phase's end. */
int brim__cursor_next(struct brim__cursor *c, struct brim__desc *out);

/*
 * What a buffer holds, so that rendering into it again stores only what
 * differs. Zero-initialised it means "anything".
 */
struct brim__slot_state {
	const struct brim_stamp *stamp;
	uint32_t extent, from_bytes, len_bytes, instances;
};

/* Renders a data descriptor into buf, whose state it reads and updates. */
void brim__plan_render(const struct brim_plan *p, const struct brim__desc *d,
		       uint8_t *buf, struct brim__slot_state *state);
/*
 * What the device holds there once all phases have run; for data descriptors
 * as fast as rendering where no later phase writes. Zeros: use brim_plan_read.
 */
void brim__plan_expected(const struct brim_plan *p, const struct brim__desc *d,
			 uint8_t *buf, struct brim__slot_state *state);
/*
 * The label of the structure at a byte of a data descriptor, for messages;
 * off_bytes is on the device. The piece's name where there is none.
 */
const char *brim__plan_label(const struct brim_plan *p,
			     const struct brim__desc *d, uint64_t off_bytes);

/* ------------------------------------------------- shared by plan and image */

/* One more holder of a sealed plan, who lets go with brim_plan_free. */
void brim__plan_hold(const struct brim_plan *p);

int brim__spans_add(struct brim__spans *s, uint64_t from, uint64_t to);
/* The first span whose end lies beyond `at`; s->n if none. */
size_t brim__spans_seek(const struct brim__spans *s, uint64_t at);
void brim__spans_free(struct brim__spans *s);
/*
 * The instances [*lo, *hi) of a piece that may touch the bytes [from, to);
 * zeros count as one instance, number 0.
 */
void brim__piece_touch(const struct brim__piece *p, uint64_t from, uint64_t to,
		       uint64_t *lo, uint64_t *hi);
/* Computes hidden and shadow of every piece; errors name both pieces. */
int brim__plan_overlaps(struct brim_plan *p, struct brim_err *e);

/* -------------------------------------------------- the inside of a stamp */

struct brim__region {
	uint64_t off_bytes;
	uint32_t len_bytes;
	char *label;
	uint8_t *bytes; /* while building; NULL once sealed */
};

/* base + step * i, stored at off_bytes relative to the instance. */
struct brim__patch {
	uint64_t off_bytes;
	uint32_t width_bytes;
	enum brim_endian endian;
	int64_t base, step;
	char *field; /* for messages */
};

struct brim__sum {
	uint64_t off_bytes, from_bytes;
	uint32_t len_bytes;
	struct brim_checksum how;
};

struct brim__stamp_code; /* what sealing compiles: stamp_code.c */

struct brim_stamp {
	bool sealed;
	uint64_t first, count;
	uint64_t total_bytes;
	struct brim__region *regions; /* sorted once sealed */
	size_t region_count, region_room;
	struct brim__patch *patches; /* sorted once sealed */
	size_t patch_count, patch_room;
	struct brim__sum *sums;
	size_t sum_count, sum_room;
	struct brim_extent *extents;
	uint8_t **templates; /* of each extent: the first instance */
	size_t extent_count;
	struct brim__stamp_code *code;
};

/* Compiles patches and checksums over the templates; called by seal. */
int brim__stamp_compile(struct brim_stamp *s, struct brim_err *e);
void brim__stamp_code_free(struct brim__stamp_code *c);
/* From the first byte of the first extent to the last of the last. */
static inline uint64_t brim__stamp_begin(const struct brim_stamp *s)
{
	return s->extents[0].off_bytes;
}

static inline uint64_t brim__stamp_end(const struct brim_stamp *s)
{
	const struct brim_extent *x = &s->extents[s->extent_count - 1];

	return x->off_bytes + x->len_bytes;
}

/* The first extent that ends behind an offset within the instance. */
static inline size_t brim__extent_seek(const struct brim_stamp *s, uint64_t at)
{
	size_t lo = 0, hi = s->extent_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->extents[mid].off_bytes + s->extents[mid].len_bytes > at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

#endif /* BRIM_PLAN_H */
