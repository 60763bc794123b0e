/* SPDX-License-Identifier: MIT */
/*
 * overlay.c: an overlay at work: what is where, changing it, and what is on
 * stable storage when. Called by device_overlay.c and overlay_commit.c from
 * any number of threads. Units: blocks where a name does not say bytes.
 *
 * Data is written first, then the pages of the map that mention it, with a
 * flush between; and a place in the file is used for one block only, ever. So
 * whatever kills the process or the machine: what was flushed is there, and
 * the file opens. Written again, a block stays in its place, like on a disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "overlay.h"

/* Set and not yet in the log: 400 KiB of memory, then it is written unasked. */
#define DIRTY_MAX 16384u

/* ----------------------------------------------------------------- the file */

int brim__overlay_pread(struct brim__overlay *o, uint64_t place,
			uint64_t skip_bytes, void *buf, uint64_t len_bytes)
{
	uint64_t at = place * BRIM__OVERLAY_BLOCK + skip_bytes;
	uint8_t *to = buf;

	while (len_bytes) {
		ssize_t n = pread(o->fd, to, len_bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		to += n;
		at += (uint64_t)n;
		len_bytes -= (uint64_t)n;
	}
	return 0;
}

int brim__overlay_pwrite(struct brim__overlay *o, uint64_t place,
			 uint64_t skip_bytes, const void *buf,
			 uint64_t len_bytes)
{
	uint64_t at = place * BRIM__OVERLAY_BLOCK + skip_bytes;
	const uint8_t *from = buf;

	while (len_bytes) {
		ssize_t n = pwrite(o->fd, from, len_bytes, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		at += (uint64_t)n;
		len_bytes -= (uint64_t)n;
	}
	return 0;
}

int brim__overlay_sync(struct brim__overlay *o)
{
	return fdatasync(o->fd) < 0 ? -errno : 0;
}

/* Gives the first n places of a list back to the host, where it takes them. */
static void punch(struct brim__overlay *o,
		  const struct brim__overlay_list *list)
{
	size_t i;

	for (i = 0; i < list->n; i++)
		fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)(list->v[i].place * BRIM__OVERLAY_BLOCK),
			  (off_t)(list->v[i].len * BRIM__OVERLAY_BLOCK));
}

/* ------------------------------------------------------------- what is where */

bool brim__overlay_get(struct brim__overlay *o, uint64_t block, uint64_t max,
		       struct brim__overlay_extent *x)
{
	const struct brim__overlay_extent *at;
	bool has;

	pthread_mutex_lock(&o->lock);
	at = brim__overlay_map_at(&o->map, block);
	has = at && at->from <= block;
	x->from = block;
	x->place = 0;
	x->len = max;
	if (has) {
		x->len = BRIM__MIN(max, at->from + at->len - block);
		x->place = at->place ? at->place + (block - at->from) : 0;
	} else if (at) {
		x->len = BRIM__MIN(max, at->from - block);
	}
	pthread_mutex_unlock(&o->lock);
	return has;
}

int brim__overlay_alloc(struct brim__overlay *o, uint64_t blocks,
			uint64_t *place)
{
	int ret = 0;

	pthread_mutex_lock(&o->lock);
	*place = o->end;
	if (blocks > BRIM__OVERLAY_PLACE_MAX - o->end)
		ret = -EFBIG;
	else
		o->end += blocks;
	pthread_mutex_unlock(&o->lock);
	return ret;
}

void brim__overlay_unalloc(struct brim__overlay *o, uint64_t blocks,
			   uint64_t place)
{
	pthread_mutex_lock(&o->lock);
	/* In the middle it stays unused: only the host's hole is lost. */
	if (o->end == place + blocks)
		o->end = place;
	pthread_mutex_unlock(&o->lock);
}

int brim__overlay_set(struct brim__overlay *o,
		      const struct brim__overlay_extent *x)
{
	bool is_full;
	int ret;

	pthread_mutex_lock(&o->lock);
	ret = brim__overlay_list_reserve(&o->dirty);
	if (ret == 0)
		ret = brim__overlay_map_set(&o->map, x, &o->freed);
	if (ret > 0)
		ret = brim__overlay_list_push(&o->dirty, o->dirty_fixed, x);
	is_full = o->dirty.n - o->dirty_fixed >= DIRTY_MAX;
	pthread_mutex_unlock(&o->lock);
	if (ret < 0)
		return ret;
	return is_full ? brim__overlay_flush(o) : 0;
}

/* ----------------------------------------------------------------- flushing */

/* After this nobody knows what is on stable storage: no flush succeeds. */
static int fail(struct brim__overlay *o, int code)
{
	if (code < 0)
		o->failed = code;
	return code;
}

/* Both headers, so that neither leads to what is gone. */
static int head_twice(struct brim__overlay *o)
{
	int ret = 0, k;

	for (k = 0; k < 2 && ret == 0; k++) {
		ret = brim__overlay_head(o, o->log.sequence);
		if (ret == 0)
			ret = brim__overlay_sync(o);
	}
	return ret;
}

/*
 * A log that holds the map and no history, in place of the old one. Changes
 * wait meanwhile: lock is held.
 */
static int shorten(struct brim__overlay *o)
{
	struct brim__overlay_log fresh, old = o->log;
	uint64_t end = o->end;
	int ret;

	ret = brim__overlay_sync(o);
	if (ret < 0)
		return fail(o, ret);
	if (brim__overlay_rewrite(o, &fresh) < 0) {
		o->end = end; /* no room, say: the old one does as well */
		free(fresh.chunks.v);
		return 0;
	}
	o->log = fresh;
	o->dirty.n = 0;
	ret = brim__overlay_sync(o);
	if (ret == 0)
		ret = head_twice(o);
	if (ret == 0)
		punch(o, &old.chunks);
	free(old.chunks.v);
	return fail(o, ret);
}

/* The pages for `count` dirty extents, whose data is on stable storage. */
static int flush_map(struct brim__overlay *o, size_t count)
{
	uint64_t begin = o->log.sequence;
	bool in_new_chunk = false;
	int ret;

	ret = brim__overlay_append(o, count, &in_new_chunk);
	if (ret < 0)
		return ret; /* the rest stays dirty: for the next flush */
	if (in_new_chunk)
		ret = brim__overlay_head(o, begin);
	if (ret == 0)
		ret = brim__overlay_sync(o);
	return fail(o, ret);
}

static int flush_all(struct brim__overlay *o)
{
	struct brim__overlay_list freed;
	size_t count;
	int ret = 0;

	if (o->failed)
		return o->failed;
	pthread_mutex_lock(&o->lock);
	if (brim__overlay_is_wordy(o))
		ret = shorten(o);
	count = o->dirty_fixed = o->dirty.n;
	freed = o->freed;
	memset(&o->freed, 0, sizeof(o->freed));
	pthread_mutex_unlock(&o->lock);
	if (ret == 0)
		ret = fail(o, brim__overlay_sync(o));
	if (ret == 0 && count)
		ret = flush_map(o, count);
	pthread_mutex_lock(&o->lock);
	o->dirty_fixed = 0;
	pthread_mutex_unlock(&o->lock);
	/* The map on stable storage no longer mentions them. */
	if (ret == 0)
		punch(o, &freed);
	free(freed.v);
	return ret;
}

int brim__overlay_flush(struct brim__overlay *o)
{
	int ret;

	if (o->is_readonly)
		return 0;
	pthread_mutex_lock(&o->flushing);
	ret = flush_all(o);
	pthread_mutex_unlock(&o->flushing);
	return ret;
}

/* --------------------------------------------------------------- committing */

int brim__overlay_set_state(struct brim__overlay *o, uint32_t state)
{
	int ret = brim__overlay_flush(o);

	if (ret < 0)
		return ret;
	o->state = state;
	return fail(o, head_twice(o));
}

int brim__overlay_reset(struct brim__overlay *o,
			const struct brim__overlay_base *base)
{
	struct brim__overlay_list all = { 0 };
	struct brim__overlay_extent x = { 0, 0, BRIM__OVERLAY_FIRST };
	struct brim__overlay_log fresh;
	int ret;

	ret = brim__overlay_log_init(o, &fresh, BRIM__OVERLAY_LOG_BLOCKS);
	if (ret < 0) {
		free(fresh.chunks.v);
		return ret;
	}
	brim__overlay_map_free(&o->map);
	o->dirty.n = o->freed.n = 0;
	free(o->log.chunks.v);
	o->log = fresh;
	o->base = *base;
	o->state = 0;
	ret = fail(o, head_twice(o));
	x.len = fresh.next - x.place;
	if (ret == 0 && brim__overlay_list_push(&all, 0, &x) == 0)
		punch(o, &all);
	free(all.v);
	return ret;
}
