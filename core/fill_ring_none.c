/* SPDX-License-Identifier: MIT */
/*
 * fill_ring_none.c: what stands for fill_ring.c in builds without liburing: its
 * refusal. Fills are plain then.
 */
#include <errno.h>

#include "fill.h"

#ifndef HAVE_URING

int brim__fill_ring_probe(struct brim_err *e)
{
	return brim__errf(e, -ENOSYS, "open",
			  "brim was built without liburing");
}

int brim__fill_ring_open(struct brim__fill_ring **out, struct brim__fill_sub *s,
			 struct brim_err *e)
{
	(void)s;
	*out = NULL;
	return brim__fill_ring_probe(e);
}

/* Nothing below is called without a ring. */
void brim__fill_ring_close(struct brim__fill_ring *r)
{
	(void)r;
}

bool brim__fill_ring_takes(const struct brim_op *op)
{
	(void)op;
	return false;
}

bool brim__fill_ring_has(const struct brim__fill_ring *r, uint32_t id)
{
	(void)r;
	(void)id;
	return false;
}

void brim__fill_ring_start(struct brim__fill_ring *r, const struct brim_op *op)
{
	(void)r;
	(void)op;
}

void brim__fill_ring_wait(struct brim__fill_ring *r)
{
	(void)r;
}

void brim__fill_ring_drain(struct brim__fill_ring *r)
{
	(void)r;
}

uint64_t brim__fill_ring_lowest(const struct brim__fill_ring *r, uint64_t none)
{
	(void)r;
	return none;
}

uint32_t brim__fill_ring_since(const struct brim__fill_ring *r,
			       uint64_t *oldest_ns, uint64_t *what)
{
	(void)r;
	*oldest_ns = 0;
	*what = 0;
	return 0;
}

#endif /* !HAVE_URING */
