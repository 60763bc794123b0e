/* SPDX-License-Identifier: MIT */
/*
 * engine.c: chooses, starts and stops I/O engines. Called by the batch, and by
 * the fault engine for the one it wraps.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine.h"

static int start(struct brim__engine *eng, const struct brim__engine_ops *ops,
		 struct brim_err *e)
{
	int ret;

	if ((ops->flags & BRIM__ENGINE_NEEDS_FD) && eng->dev->fd < 0)
		return brim__errf(e, -EINVAL, "open",
				  "engine %s: %s has no file descriptor; "
				  "use sync",
				  ops->name, eng->dev->info.path);
	eng->ops = ops;
	eng->flags = ops->flags;
	eng->priv = NULL;
	snprintf(eng->name, sizeof(eng->name), "%s", ops->name);
	ret = ops->init(eng, e);
	eng->spec = NULL;
	if (ret < 0)
		eng->ops = NULL;
	return ret;
}

/*
 * What "auto" does was measured (2 cores, Linux 6.18, 20000 I/Os of 28 KiB at
 * 1 MiB distance, depth 128; microseconds of CPU per I/O, best of six rounds;
 * sync with one hand for buffered files, with 32 threads for direct ones):
 *
 *	                    write to holes   overwrite    read
 *	                    sync    uring    sync  uring  sync  uring
 *	tmpfs, buffered      9.0    13.0      3.9   7.4    3.4   6.0
 *	ext4, buffered      20.6    29.2      7.3  10.9    3.6   3.3
 *	xfs, buffered       18.1    18.7      6.7   7.2    3.5   3.2
 *	ext4 on disk,direct 33.8     7.9      8.4   2.4   10.4   2.9
 *	xfs on loop, direct 43.9    34.7      6.2   1.9    7.2   2.4
 *
 * Buffered I/O goes to the kernel's worker threads and only adds their cost;
 * direct I/O is what rings are for, in time as well (12 against 15, 24 against
 * 28, 22 against 69 us an I/O on the disk). So is reading a buffered file that
 * does not lie in the page cache (xfs on loop on a disk, microseconds of time
 * for a read of 24 KiB): 4 with two hands where it does, else 60 with them, 26
 * with 32 threads and 16 with the ring, as with direct I/O.
 */
static int start_auto(struct brim__engine *eng, struct brim_err *e)
{
	const struct brim_device *d = eng->dev;

	if ((d->info.is_direct || (eng->is_cold && !eng->threads)) &&
	    start(eng, &brim__engine_uring, NULL) == 0)
		return 0;
	return start(eng, &brim__engine_sync, e);
}

int brim__engine_start(struct brim__engine *eng, const char *name,
		       struct brim_err *e)
{
	static const struct brim__engine_ops *const plain[] = {
		&brim__engine_uring,
		&brim__engine_sync,
		&brim__engine_null,
	};
	size_t k;

	eng->ops = NULL;
	eng->spec = NULL;
	if (!name || !strcmp(name, "auto"))
		return start_auto(eng, e);
	if (!strncmp(name, "fault:", 6)) {
		eng->spec = name + 6;
		return start(eng, &brim__engine_fault, e);
	}
	for (k = 0; k < sizeof(plain) / sizeof(plain[0]); k++)
		if (!strcmp(name, plain[k]->name))
			return start(eng, plain[k], e);
	return brim__errf(e, -EINVAL, "open",
			  "no engine is called '%s': "
			  "write auto, uring, sync, null or fault:SPEC",
			  name);
}

void brim__engine_stop(struct brim__engine *eng)
{
	if (eng->ops)
		eng->ops->cleanup(eng);
	eng->ops = NULL;
}
