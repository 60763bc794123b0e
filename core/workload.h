/* SPDX-License-Identifier: MIT */
/*
 * workload.h: what workload*.c share: a workload made ready to draw from.
 * Places are I/Os laid side by side over the range (single blocks where sizes
 * vary); blocks and places count from the range's begin.
 */
#ifndef BRIM_WORKLOAD_H
#define BRIM_WORKLOAD_H

#include "dist.h"
#include "internal.h"
#include "mix.h"

/* Rejection-inversion's constants, see workload_zipf.c. */
struct brim__zipf {
	double theta, count;
	double h_first, h_last; /* the integral at both ends */
	double sure;            /* so near to an integer needs no test */
};

struct brim_workload {
	uint32_t holders;
	struct brim_workload_options o; /* sizes: NULL; end worked out */
	struct brim__dist sizes;
	bool is_fixed;       /* all I/Os are io_blocks long */
	uint64_t io_blocks;  /* the largest I/O */
	uint64_t blocks;     /* of the range */
	uint64_t places;     /* to draw from, or to go through in a pass */
	uint64_t end_bytes;  /* when that many are reached; UINT64_MAX: none */
	uint64_t key;        /* of what is drawn */
	uint64_t place_key;  /* ZIPF: which place has which rank */
	uint64_t stride_ios; /* STRIDED: I/Os from one to the next */
	struct brim__zipf zipf;
};

void brim__zipf_init(struct brim__zipf *z, double theta, uint64_t count);
/* A rank, 0 .. count-1, from the random bits that follow from key. */
uint64_t brim__zipf_draw(const struct brim__zipf *z, uint64_t key);
/* A permutation of 0 .. count-1 for each key. */
uint64_t brim__permute(uint64_t key, uint64_t count, uint64_t i);

/* One more holder, who lets go with brim_workload_free. */
const struct brim_workload *brim__workload_hold(const struct brim_workload *w);

/* What a block that was read is. */
enum brim__block_state {
	BRIM__BLOCK_INTACT, /* of this seed, place and the version it names */
	BRIM__BLOCK_MISPLACED,
	BRIM__BLOCK_TORN,    /* names this place, but does not hold it all */
	BRIM__BLOCK_UNKNOWN, /* nothing of this workload */
};
/*
 * Looks at a block read from off_bytes. *version is what it names; *at the
 * first wrong byte of a torn one. scratch has room for a block.
 */
enum brim__block_state brim__workload_judge(const struct brim_workload *w,
					    uint64_t off_bytes,
					    const uint8_t *block,
					    uint8_t *scratch, uint64_t *version,
					    uint64_t *at);

/* Whether a device can take it, with I/Os of at most so many bytes. */
int brim__workload_fits(const struct brim_workload *w,
			const struct brim_device *d, uint32_t max_io_bytes,
			struct brim_err *e);

#endif /* BRIM_WORKLOAD_H */
