/* SPDX-License-Identifier: MIT */
/*
 * engine_null.c: the engine that moves nothing. Every I/O is finished at once
 * and whole; buffers stay as they are. It exists to measure what everything
 * above the engine costs, and to test it.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"

static int null_init(struct brim__engine *eng, struct brim_err *e)
{
	eng->priv = calloc(1, sizeof(struct brim__io_list));
	if (!eng->priv)
		return brim__err(e, -ENOMEM, "open", "engine null");
	return 0;
}

static int null_queue(struct brim__engine *eng, struct brim__io *io)
{
	io->result = (int64_t)brim__io_left(io);
	brim__io_push(eng->priv, io);
	return 0;
}

static int null_commit(struct brim__engine *eng)
{
	(void)eng;
	return 0;
}

static int null_reap(struct brim__engine *eng, unsigned int min,
		     struct brim__io **out, unsigned int max)
{
	unsigned int n = 0;

	(void)min;
	while (n < max && (out[n] = brim__io_pop(eng->priv)))
		n++;
	return (int)n;
}

static void null_cleanup(struct brim__engine *eng)
{
	free(eng->priv);
}

const struct brim__engine_ops brim__engine_null = {
	.version = BRIM__ENGINE_VERSION,
	.name = "null",
	.flags = BRIM__ENGINE_MOVES_NOTHING,
	.init = null_init,
	.queue = null_queue,
	.commit = null_commit,
	.reap = null_reap,
	.cleanup = null_cleanup,
};
