/* SPDX-License-Identifier: MIT */
/*
 * stream_table.c: the table of stream.h. Called by stream.c for every
 * operation: nothing here takes longer with more files, and only adding the
 * first id of a chunk allocates.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

static int add_chunk(struct brim__table *t, struct brim_err *e)
{
	if (t->chunk_count == t->chunk_room) {
		uint32_t room = t->chunk_room ? 2 * t->chunk_room : 16;
		struct brim__chunk **more =
			realloc(t->chunks, room * sizeof(*more));

		if (!more)
			return brim__err(e, -ENOMEM, "stream", "files");
		t->chunks = more;
		t->chunk_room = room;
	}
	t->chunks[t->chunk_count] = malloc(sizeof(**t->chunks));
	if (!t->chunks[t->chunk_count])
		return brim__err(e, -ENOMEM, "stream", "files");
	t->chunk_count++;
	return 0;
}

/* Exchanges what two slots hold. */
static void swap(struct brim__table *t, uint32_t a, uint32_t b)
{
	uint32_t *at_a = brim__slot(t, a), *at_b = brim__slot(t, b);
	uint32_t id = *at_a;

	*at_a = *at_b;
	*at_b = id;
	brim__entry(t, *at_a)->slot = a;
	brim__entry(t, *at_b)->slot = b;
}

static void empty(struct brim__entry *x)
{
	x->base_bytes = 0;
	x->size_bytes = 0;
	x->overwrites = 0;
}

int brim__table_add(struct brim__table *t, struct brim_err *e)
{
	struct brim__entry *x;
	int ret;

	if (t->count == UINT32_MAX)
		return brim__errf(e, -EOVERFLOW, "stream",
				  "a stream has at most 2^32 - 1 names");
	if (t->count / BRIM__CHUNK_FILES == t->chunk_count) {
		ret = add_chunk(t, e);
		if (ret < 0)
			return ret;
	}
	x = brim__entry(t, t->count);
	memset(x, 0, sizeof(*x));
	x->slot = t->count;
	*brim__slot(t, t->count) = t->count;
	swap(t, t->count, t->live);
	t->count++;
	t->live++;
	return 0;
}

void brim__table_revive(struct brim__table *t, uint32_t id)
{
	empty(brim__entry(t, id));
	swap(t, brim__entry(t, id)->slot, t->live);
	t->live++;
}

void brim__table_release(struct brim__table *t, uint32_t id)
{
	struct brim__entry *x = brim__entry(t, id);

	t->live_bytes -= x->size_bytes;
	empty(x);
	t->live--;
	swap(t, x->slot, t->live);
}

void brim__table_set(struct brim__table *t, const struct brim_file *f)
{
	struct brim__entry *x = brim__entry(t, f->id);

	t->live_bytes += f->size_bytes - x->size_bytes;
	x->base_bytes = f->base_bytes;
	x->size_bytes = f->size_bytes;
	x->version = f->version;
	x->overwrites = f->overwrites;
}

int brim__table_copy(struct brim__table *out, const struct brim__table *t,
		     struct brim_err *e)
{
	uint32_t k;
	int ret;

	memset(out, 0, sizeof(*out));
	for (k = 0; k < t->chunk_count; k++) {
		ret = add_chunk(out, e);
		if (ret < 0) {
			brim__table_free(out);
			return ret;
		}
		memcpy(out->chunks[k], t->chunks[k], sizeof(*t->chunks[k]));
	}
	out->count = t->count;
	out->live = t->live;
	out->live_bytes = t->live_bytes;
	return 0;
}

void brim__table_free(struct brim__table *t)
{
	uint32_t k;

	for (k = 0; k < t->chunk_count; k++)
		free(t->chunks[k]);
	free(t->chunks);
	memset(t, 0, sizeof(*t));
}
