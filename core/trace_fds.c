/* SPDX-License-Identifier: MIT */
/*
 * trace_fds.c: the files that a replay has open, by path: a table with open
 * addressing. Called by trace_files.c for each operation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace_replay.h"

int brim__fds_init(struct brim__fds *f)
{
	f->count = 0;
	f->room = 64;
	f->open = calloc(f->room, sizeof(*f->open));
	return f->open ? 0 : -ENOMEM;
}

void brim__fds_free(struct brim__fds *f)
{
	size_t k;

	for (k = 0; f->open && k < f->room; k++)
		if (f->open[k].path) {
			close(f->open[k].fd);
			free(f->open[k].path);
		}
	free(f->open);
}

static uint64_t hash_of(const char *path)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3u;
	return h ^ h >> 32;
}

/* Where a path is, or would be put. */
static size_t place_of(const struct brim__fds *f, const char *path,
		       uint64_t hash)
{
	size_t at = hash & (f->room - 1);

	while (f->open[at].path &&
	       (f->open[at].hash != hash || strcmp(f->open[at].path, path)))
		at = (at + 1) & (f->room - 1);
	return at;
}

int brim__fds_get(const struct brim__fds *f, const char *path)
{
	const struct brim__fd *o = &f->open[place_of(f, path, hash_of(path))];

	return o->path ? o->fd : -1;
}

static int table_grow(struct brim__fds *f)
{
	struct brim__fd *old = f->open;
	size_t room = f->room, k;

	f->open = calloc(2 * room, sizeof(*f->open));
	if (!f->open) {
		f->open = old;
		return -ENOMEM;
	}
	f->room = 2 * room;
	for (k = 0; k < room; k++)
		if (old[k].path)
			f->open[place_of(f, old[k].path, old[k].hash)] = old[k];
	free(old);
	return 0;
}

int brim__fds_put(struct brim__fds *f, const char *path, int fd)
{
	uint64_t hash = hash_of(path);
	struct brim__fd *o;
	char *copy = strdup(path);

	if (!copy || (2 * (f->count + 1) > f->room && table_grow(f) < 0)) {
		free(copy);
		return -ENOMEM;
	}
	o = &f->open[place_of(f, path, hash)];
	*o = (struct brim__fd){ .hash = hash, .path = copy, .fd = fd };
	f->count++;
	return 0;
}

/* Those behind it move up. */
int brim__fds_close(struct brim__fds *f, const char *path)
{
	size_t at = place_of(f, path, hash_of(path)), next = at, home;
	int ret;

	if (!f->open[at].path)
		return 0;
	ret = close(f->open[at].fd) < 0 ? -errno : 0;
	free(f->open[at].path);
	f->open[at].path = NULL;
	f->count--;
	for (;;) {
		next = (next + 1) & (f->room - 1);
		if (!f->open[next].path)
			return ret;
		home = f->open[next].hash & (f->room - 1);
		if (((next - home) & (f->room - 1)) <
		    ((next - at) & (f->room - 1)))
			continue;
		f->open[at] = f->open[next];
		f->open[next].path = NULL;
		at = next;
	}
}
