/* SPDX-License-Identifier: MIT */
/*
 * stream.h: what stream*.c share: a stream, and the files of one as they stand:
 * 28 bytes a name that was ever used, found by id and by number, taken and let
 * go in O(1). Names of deleted files are used again. Sizes are bytes.
 */
#ifndef BRIM_STREAM_H
#define BRIM_STREAM_H

#include <stdint.h>

#include "fileset.h"
#include "internal.h"

struct brim__entry {
	uint64_t base_bytes, size_bytes;
	uint16_t version, overwrites;
	uint32_t slot; /* where slots has the id */
};

/* So many at a time, which never move. */
#define BRIM__CHUNK_FILES 8192u

struct brim__chunk {
	struct brim__entry entries[BRIM__CHUNK_FILES];
	uint32_t slots[BRIM__CHUNK_FILES];
};

/*
 * Ids 0 .. count-1 have been used. slots is a permutation of them: those of
 * live files come first.
 */
struct brim__table {
	struct brim__chunk **chunks;
	uint32_t chunk_count, chunk_room;
	uint32_t count, live;
	uint64_t live_bytes;
};

static inline struct brim__entry *brim__entry(const struct brim__table *t,
					      uint32_t id)
{
	return &t->chunks[id / BRIM__CHUNK_FILES]
			->entries[id % BRIM__CHUNK_FILES];
}

static inline uint32_t *brim__slot(const struct brim__table *t, uint32_t k)
{
	return &t->chunks[k / BRIM__CHUNK_FILES]->slots[k % BRIM__CHUNK_FILES];
}

static inline bool brim__is_live(const struct brim__table *t, uint32_t id)
{
	return id < t->count && brim__entry(t, id)->slot < t->live;
}

/* The next id, live and empty: 0, -ENOMEM, or -EOVERFLOW after 2^32 - 1. */
int brim__table_add(struct brim__table *t, struct brim_err *e);
/* A dead id lives again, empty; a live one dies. */
void brim__table_revive(struct brim__table *t, uint32_t id);
void brim__table_release(struct brim__table *t, uint32_t id);
/* What a live file is from now on. */
void brim__table_set(struct brim__table *t, const struct brim_file *f);
int brim__table_copy(struct brim__table *out, const struct brim__table *t,
		     struct brim_err *e);
void brim__table_free(struct brim__table *t);

struct brim_stream {
	const struct brim_fileset *fs; /* held */
	uint32_t number;
	uint64_t key;
	struct brim_phase phase;
	struct brim__table files;
	struct brim_stream_totals totals; /* but for what files knows */
	/* Directories exist for ids below made_ids; of those for the next
	 * ones, the levels above made_level. */
	uint64_t made_ids;
	uint32_t made_level;
	bool is_mkdir_refused; /* in this phase */
	bool is_creating;      /* the next operations make create_id */
	uint32_t create_id;
};

/* A file of the stream by its id, which has been used. */
struct brim_file brim__stream_file(const struct brim_stream *s, uint32_t id);

#endif /* BRIM_STREAM_H */
