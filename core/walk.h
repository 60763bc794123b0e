/* SPDX-License-Identifier: MIT */
/*
 * walk.h: the inside of walks, for walk.c (jobs, levels, reading) and
 * walk_block.c (what a kind of tree looks like, and the checks of one block).
 * Blocks are numbers within a group unless they are said to be bytes.
 */
#ifndef BRIM_WALK_H
#define BRIM_WALK_H

#include "engine.h"
#include "internal.h"

#define BRIM__WALK_FIELDS 4 /* at most, of a key and of an order */

/* Where an integer is; width 0: nowhere. `all` is its largest value. */
struct brim__place {
	uint32_t off_bytes, width_bytes;
	enum brim_endian endian;
	uint32_t shift; /* of the bits wanted */
	uint64_t all;
	const char *name; /* the layout's */
};

/* A kind of tree, resolved to places. */
struct brim__walk_kind {
	char *name;
	const struct brim_layout *leaf, *node;
	struct brim__place magic, level, count, left, right, address, owner;
	uint64_t leaf_magic;
	uint32_t address_unit_bytes;
	uint32_t uuid_at, uuid_len;
	uint8_t uuid[32];
	uint32_t record_at, record_bytes, record_max;
	uint32_t key_at, key_bytes, pointer_at, node_max;
	struct brim__place pointer; /* relative to its own start */
	const struct brim_layout *record;
	/* Within a record and within a key; the same in number. */
	struct brim__place record_key[BRIM__WALK_FIELDS];
	struct brim__place node_key[BRIM__WALK_FIELDS];
	uint32_t key_fields;
	struct brim__place reach, reach_count; /* within a record */
	struct brim__place node_reach;         /* within a key */
	struct brim__place order[BRIM__WALK_FIELDS];
	uint32_t order_fields;
	bool is_strict;
};

/* A tree being walked. */
struct brim__walk_job {
	struct brim_walk_root root;
	struct brim_walk_job result;
	uint8_t *records;
	size_t records_bytes, records_room;
	uint64_t *blocks;
	size_t blocks_room;
	uint64_t last[BRIM__WALK_FIELDS]; /* the last record's order */
	bool has_last;
	bool is_gapped;  /* some block above the level at hand was unusable */
	bool is_gapping; /* or of this level */
	uint64_t owner;  /* what blocks name: the group, or the object */
	uint32_t object; /* its state's index plus 1; 0: a tree of a group */
	uint32_t fork;
};

/* A block to be read: what the one above says of it, then what it holds. */
struct brim__walk_item {
	uint32_t job, level;
	uint64_t block;
	bool is_root, has_key, is_good;
	uint64_t key[BRIM__WALK_FIELDS], reach;
	uint64_t left, right;
	uint32_t count;
	uint8_t *body; /* records; or keys and behind them pointers */
};

struct brim__objects; /* what objects look like (objects.c) */

struct brim__seen {
	uint64_t job, block; /* job 0: free */
};

struct brim_walk {
	struct brim_device *dev; /* held */
	struct brim__batch *batch;
	uint32_t block_bytes, read_bytes;
	uint64_t group_bytes;
	struct brim__walk_kind *kinds;
	size_t kind_count;
	struct brim__walk_job *jobs;
	size_t job_count, job_room;
	struct brim_walk_fault *faults;
	uint32_t fault_count, fault_max;
	struct brim__seen *seen; /* a hash table; job plus 1 */
	size_t seen_count, seen_room;
	struct brim__objects *objects;
	struct brim__walk_item *now, *next;
	size_t now_count, next_count, next_room;
	size_t *at; /* by slot: which of the reads it is */
	struct brim__io **reaped;
};

/* Many reads of one length; done is called once for each, in any order. */
struct brim__walk_reader {
	size_t count;
	uint32_t len_bytes;
	uint64_t (*offset)(const struct brim_walk *w, const void *ctx,
			   size_t k);
	int (*done)(struct brim_walk *w, void *ctx, size_t k,
		    const uint8_t *raw);
	void *ctx;
};

/* On failure nothing may be read through this walk any more. */
int brim__walk_read_all(struct brim_walk *w, const struct brim__walk_reader *r,
			struct brim_err *e);

static inline uint64_t brim__place_get(const struct brim__place *p,
				       const uint8_t *raw)
{
	return brim__load(raw + p->off_bytes, p->width_bytes, p->endian) >>
		       p->shift &
	       p->all;
}

/* Where a block of a job lies on the device. */
uint64_t brim__walk_at(const struct brim_walk *w,
		       const struct brim__walk_job *job, uint64_t block);
/* Adds a job that has no block of its own yet: its number; -ENOMEM. */
int brim__walk_add_job(struct brim_walk *w, const struct brim__walk_job *job);
/* Frees the jobs from number `mark` on, and what was seen. */
void brim__walk_forget(struct brim_walk *w, size_t mark);
/* Puts a block on the next work list unless it cannot be one; -ENOMEM. */
int brim__walk_push(struct brim_walk *w, const struct brim__walk_item *item,
		    uint64_t from, int64_t element);

/* Resolves a description; on failure nothing is left in *k. */
int brim__walk_kind(struct brim__walk_kind *k, const struct brim_walk_tree *t,
		    uint32_t block_bytes, struct brim_err *e);
/* A field of a layout, or -EINVAL. */
int brim__walk_place(struct brim__place *out, const struct brim_layout *l,
		     const char *name, struct brim_err *e);
/* Notes a fault of a job. */
void brim__walk_note(struct brim_walk *w, uint32_t job, uint64_t block,
		     int64_t element, const char *what, uint64_t expected,
		     uint64_t found);
/* The same of an object. */
void brim__walk_note_object(struct brim_walk *w, uint64_t number,
			    int64_t element, const char *what,
			    uint64_t expected, uint64_t found);
/* Where a block that objects name lies on the device; false: nowhere. */
bool brim__objects_at(const struct brim__objects *o, uint64_t block,
		      uint64_t *off_bytes);
/* Takes records of a tree that begins in an object; -ENOMEM. */
int brim__objects_records(struct brim_walk *w, const struct brim__walk_job *job,
			  const uint8_t *raw, uint32_t count);
/* Frees all that objects.c keeps. */
void brim__objects_free(struct brim__objects *o);
/* Checks a block that was read and keeps what is needed of it; -ENOMEM. */
int brim__walk_block(struct brim_walk *w, struct brim__walk_item *item,
		     const uint8_t *raw);

#endif /* BRIM_WALK_H */
