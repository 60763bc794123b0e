/* SPDX-License-Identifier: MIT */
/*
 * walk_read.c: many reads at full queue depth, whatever they are for: the
 * blocks of a level (walk.c), headers that the caller wants. Bytes.
 */
#include <errno.h>
#include <string.h>

#include "walk.h"

static int read_queue(struct brim_walk *w, const struct brim__walk_reader *r,
		      size_t k, struct brim__io *io, struct brim_err *e)
{
	uint32_t align = BRIM__MAX(1u, w->dev->info.align_bytes);
	uint64_t at = r->offset(w, r->ctx, k);

	w->at[io->slot] = k;
	io->op = BRIM__READ;
	io->off_bytes = brim__align_down(at, align);
	io->len_bytes = brim__align_down(at + r->len_bytes + align - 1, align) -
			io->off_bytes;
	return brim__batch_queue(w->batch, io, e);
}

int brim__walk_read_all(struct brim_walk *w, const struct brim__walk_reader *r,
			struct brim_err *e)
{
	unsigned int depth = brim__batch_depth(w->batch);
	struct brim__io *io;
	size_t next = 0;
	int got, j, ret = 0, bad = 0;

	while (next < r->count || brim__batch_in_flight(w->batch)) {
		while (!ret && next < r->count &&
		       (io = brim__batch_get(w->batch)))
			ret = read_queue(w, r, next++, io, e);
		if (ret < 0)
			return ret;
		got = brim__batch_reap(w->batch, 1, w->reaped, depth, e);
		if (got < 0)
			return got;
		for (j = 0; j < got; j++) {
			size_t k = w->at[w->reaped[j]->slot];
			uint64_t at = r->offset(w, r->ctx, k);

			io = w->reaped[j];
			if (r->done(w, r->ctx, k,
				    io->buf + (at - io->off_bytes)) < 0)
				bad = -ENOMEM;
			brim__batch_put(w->batch, io);
		}
	}
	return bad ? brim__err(e, bad, "walk", "read") : 0;
}

struct plain {
	const uint64_t *off_bytes;
	uint8_t *out;
	uint32_t len_bytes;
};

static uint64_t plain_offset(const struct brim_walk *w, const void *ctx,
			     size_t k)
{
	(void)w;
	return ((const struct plain *)ctx)->off_bytes[k];
}

static int plain_done(struct brim_walk *w, void *ctx, size_t k,
		      const uint8_t *raw)
{
	const struct plain *p = ctx;

	(void)w;
	memcpy(p->out + k * p->len_bytes, raw, p->len_bytes);
	return 0;
}

int brim_walk_read(struct brim_walk *w, const uint64_t *off_bytes, size_t n,
		   uint32_t len_bytes, void *out, struct brim_err *e)
{
	struct plain p = { off_bytes, out, len_bytes };
	struct brim__walk_reader r = { n, len_bytes, plain_offset, plain_done,
				       &p };
	uint64_t size = w->dev->info.size_bytes;
	size_t k;

	for (k = 0; k < n; k++)
		if (len_bytes > w->read_bytes || len_bytes > size ||
		    off_bytes[k] > size - len_bytes)
			return brim__err_at(e, -ERANGE, "walk", off_bytes[k],
					    "%u bytes at %llu: past the end, "
					    "or more than read_bytes",
					    len_bytes,
					    (unsigned long long)off_bytes[k]);
	return brim__walk_read_all(w, &r, e);
}
