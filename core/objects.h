/* SPDX-License-Identifier: MIT */
/*
 * objects.h: the inside of objects that hold extents, for objects.c (their
 * description, reading, what is known once their trees were walked) and
 * object_fork.c (one object: its fields, forks, records).
 */
#ifndef BRIM_OBJECTS_H
#define BRIM_OBJECTS_H

#include "walk.h"

/* What was seen of an object's extents so far. */
struct brim__object_state {
	uint64_t number;
	uint64_t blocks_expected, blocks;
	bool is_away, is_bad;
	struct {
		int64_t job;              /* its tree; -1: none */
		uint64_t expected, found; /* records */
		uint64_t next;            /* least offset of the next one */
		const char *count;        /* the field that says how many */
	} fork[2];
};

struct brim__object_places {
	struct brim__place format, count, wide;
	uint32_t formats;
	uint64_t tag;
};

struct brim__objects {
	struct brim_object o; /* its strings are not kept */
	uint64_t group_bytes; /* of the walk */
	uint32_t block_bytes;
	struct brim__place magic, number, use, none, blocks, split;
	struct brim__place wide, away;
	uint64_t magic_value;
	uint32_t uuid_at, uuid_len;
	uint8_t uuid[32];
	struct brim__object_places fork[2];
	/* Of a tree's root. */
	struct brim__place root_level, root_count;
	uint32_t root_at; /* where keys begin */
	/* Of the call at hand. */
	const struct brim_object_range *ranges;
	struct brim_table *table;
	struct brim__object_state *states; /* of objects with trees */
	size_t state_count, state_room;
	uint64_t *bad;
	size_t bad_room;
	struct brim_object_counts counts;
};

/* The value of some bits of a packed record. */
uint64_t brim__bits_get(const uint8_t *raw, const struct brim_bits *b);
/* Checks an object and takes what it holds; -ENOMEM. */
int brim__object_take(struct brim_walk *w, uint64_t number, bool is_used,
		      const uint8_t *raw);
/* Notes that an object's rows may not be all; -ENOMEM. */
int brim__object_bad(struct brim__objects *x, struct brim__object_state *s);
/* A fault of a field of an object. */
void brim__object_note(struct brim_walk *w, const struct brim__object_state *s,
		       const struct brim__place *p, uint64_t expected,
		       uint64_t found);

#endif /* BRIM_OBJECTS_H */
