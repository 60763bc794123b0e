/* SPDX-License-Identifier: MIT */
/*
 * batch_helper.h: what test_engine*.c share: a device of IOS pieces of SLOT
 * bytes, each with a pattern of its own, written and read through a batch.
 */
#ifndef BRIM_BATCH_HELPER_H
#define BRIM_BATCH_HELPER_H

#include <string.h>

#include "engine.h"
#include "tap.h"

#define SLOT 4096u
#define IOS 64u
#define SIZE ((uint64_t)IOS * SLOT)

static uint64_t seed;

static inline struct brim__batch *open_batch(struct brim_device *d,
					     const char *engine,
					     uint32_t threads, uint32_t depth,
					     struct brim_err *e)
{
	struct brim__batch_options o = {
		.engine = engine,
		.queue_depth = depth,
		.threads = threads,
		.slot_bytes = SLOT,
	};
	struct brim__batch *b;

	memset(e, 0, sizeof(*e));
	brim__batch_open(&b, d, &o, e);
	return b;
}

/* What byte k of I/O n shall be. */
static inline uint8_t pattern(uint64_t n, uint64_t k)
{
	uint64_t state = seed + (n << 16) + k / 8;

	return (uint8_t)(tap_random(&state) >> (8 * (k % 8)));
}

static inline bool holds_pattern(const uint8_t *buf, uint64_t n)
{
	uint64_t k;

	for (k = 0; k < SLOT; k++)
		if (buf[k] != pattern(n, k))
			return false;
	return true;
}

/* Writes or reads the n-th piece of the device. */
static inline int queue_piece(struct brim__batch *b, struct brim__io *io,
			      enum brim__op op, uint64_t n, struct brim_err *e)
{
	uint64_t k;

	io->op = op;
	io->off_bytes = n * SLOT;
	io->len_bytes = SLOT;
	for (k = 0; op == BRIM__WRITE && k < SLOT; k++)
		io->buf[k] = pattern(n, k);
	return brim__batch_queue(b, io, e);
}

/*
 * All pieces once, in an order that the seed gives. Returns how many came back,
 * for reads only those with the right bytes, or -errno.
 */
static inline int run_pieces(struct brim__batch *b, enum brim__op op,
			     struct brim_err *e)
{
	struct brim__io *out[IOS], *io;
	uint64_t state = seed, step = 2 * tap_below(&state, IOS / 2) + 1;
	unsigned int queued = 0, back = 0;
	int got, k, good = 0, ret;

	while (back < IOS) {
		while (queued < IOS && (io = brim__batch_get(b))) {
			ret = queue_piece(b, io, op, queued++ * step % IOS, e);
			if (ret < 0)
				return ret;
		}
		got = brim__batch_reap(b, 1, out, IOS, e);
		if (got < 0)
			return got;
		for (k = 0; k < got; k++) {
			uint64_t n = out[k]->off_bytes / SLOT;

			good += op != BRIM__READ ||
				holds_pattern(out[k]->buf, n);
			brim__batch_put(b, out[k]);
		}
		back += (unsigned int)got;
	}
	return good;
}

#endif /* BRIM_BATCH_HELPER_H */
