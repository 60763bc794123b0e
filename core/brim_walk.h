/* SPDX-License-Identifier: MIT */
/*
 * brim_walk.h: part of brim.h, which includes it and states the conventions.
 * Lists of extents and walks of trees: what checkers of filesystems are made
 * of. Blocks are counted within a group unless it says otherwise.
 */
#ifndef BRIM_WALK_API_H
#define BRIM_WALK_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- extents */

/* A range of blocks, [start, start + count), with a tag of the caller's. */
struct brim_range {
	uint64_t start, count, tag;
};

/* A list of extents: what the records of a tree say, compared as a whole. */
struct brim_extents;

BRIM_API int brim_extents_create(struct brim_extents **out, struct brim_err *e);
BRIM_API void brim_extents_free(struct brim_extents *x);
/* Appends one; -EOVERFLOW where its end does not fit 64 bits. */
BRIM_API int brim_extents_add(struct brim_extents *x, uint64_t start,
			      uint64_t count, uint64_t tag, struct brim_err *e);
/* Appends those of y, tagged as there or, with `tag`, all with *tag. */
BRIM_API int brim_extents_append(struct brim_extents *x,
				 const struct brim_extents *y,
				 const uint64_t *tag, struct brim_err *e);
BRIM_API size_t brim_extents_count(const struct brim_extents *x);
/* The k-th, from 0; -ENOENT past the last. */
BRIM_API int brim_extents_get(const struct brim_extents *x, size_t k,
			      struct brim_range *out);
/* Blocks of all of them (modulo 2^64), and of the longest; 0 without any. */
BRIM_API uint64_t brim_extents_sum(const struct brim_extents *x);
BRIM_API uint64_t brim_extents_longest(const struct brim_extents *x);
/* The first that is empty or not within [from, to), or -1. */
BRIM_API int64_t brim_extents_outside(const struct brim_extents *x,
				      uint64_t from, uint64_t to);
/* Orders by start, then count, then tag. */
BRIM_API void brim_extents_sort(struct brim_extents *x);
/*
 * Of sorted ones: the first that begins before the end of an earlier one, whose
 * index goes to *other; or -1.
 */
BRIM_API int64_t brim_extents_overlap(const struct brim_extents *x,
				      size_t *other);
/* Sorts, and makes one of those that touch or overlap; tags become 0. */
BRIM_API void brim_extents_union(struct brim_extents *x);
/* Sorts, and makes one of those that touch and have the same tag. */
BRIM_API void brim_extents_join(struct brim_extents *x);
/*
 * Appends to out what of [from, to) the merged x leaves (complement), and the
 * ranges that at least `least` of the sorted x cover, tagged with how many,
 * neighbours of the same number as one (depth).
 */
BRIM_API int brim_extents_complement(const struct brim_extents *x,
				     uint64_t from, uint64_t to,
				     struct brim_extents *out,
				     struct brim_err *e);
BRIM_API int brim_extents_depth(const struct brim_extents *x, uint64_t least,
				struct brim_extents *out, struct brim_err *e);
/* The first index at which two lists differ (their tags apart), or -1. */
BRIM_API int64_t brim_extents_differ(const struct brim_extents *x,
				     const struct brim_extents *y);
/*
 * Appends to out those of x whose tag is within [from, to] (tagged), or whose
 * start is within [from, to), less `from` (starting).
 */
BRIM_API int brim_extents_tagged(const struct brim_extents *x, uint64_t from,
				 uint64_t to, struct brim_extents *out,
				 struct brim_err *e);
BRIM_API int brim_extents_starting(const struct brim_extents *x, uint64_t from,
				   uint64_t to, struct brim_extents *out,
				   struct brim_err *e);
/*
 * The first range that only one of two merged lists covers: 1 (x), 2 (y), with
 * the range in *out; 0 where they cover the same. Compared as they are: both
 * must be merged (brim_extents_union) or tagged the same way.
 */
BRIM_API int brim_extents_only(const struct brim_extents *x,
			       const struct brim_extents *y,
			       struct brim_range *out);

/* ------------------------------------------------------------------ tables */

/*
 * Who holds a range of blocks: [start, start + count) belongs to owner, from
 * its block `offset` on. High bits of an offset may tell kinds apart.
 */
struct brim_row {
	uint64_t start, count, owner, offset;
};

/*
 * Rows by the million: 32 bytes each, and an eighth more while they grow.
 * Starts may have the number of a group in their bits from group_log2 on (64:
 * they have none).
 */
struct brim_table;

BRIM_API int brim_table_create(struct brim_table **out, uint32_t group_log2,
			       struct brim_err *e);
BRIM_API void brim_table_free(struct brim_table *t);
/* Appends one; -EOVERFLOW where its end does not fit 64 bits. */
BRIM_API int brim_table_add(struct brim_table *t, const struct brim_row *row,
			    struct brim_err *e);
BRIM_API size_t brim_table_count(const struct brim_table *t);
/* The k-th, from 0; -ENOENT past the last. */
BRIM_API int brim_table_get(const struct brim_table *t, size_t k,
			    struct brim_row *out);
/* Orders by group, owner, offset, start, count; in place. */
BRIM_API void brim_table_sort(struct brim_table *t);
/*
 * Sorts, and makes one of rows of one owner and group whose starts and offsets
 * both go on; where the offset has a bit of `fixed`, it stays the same instead.
 */
BRIM_API void brim_table_merge(struct brim_table *t, uint64_t fixed);
/* The rows of a group in a sorted table: [*from, *to). */
BRIM_API void brim_table_find(const struct brim_table *t, uint64_t group,
			      size_t *from, size_t *to);
/* Appends the rows of a group of a sorted table to x, without its number. */
BRIM_API int brim_table_extents(const struct brim_table *t, uint64_t group,
				struct brim_extents *x, struct brim_err *e);
/*
 * The next row that only one of two sorted tables has, from x's *i and y's *j
 * on: 1 (x), 2 (y), with the row in *out and *i and *j behind it; 0 where there
 * is none before x_end and y_end.
 */
BRIM_API int brim_table_differ(const struct brim_table *x, size_t *i,
			       size_t x_end, const struct brim_table *y,
			       size_t *j, size_t y_end, struct brim_row *out);

/* ------------------------------------------------------------------- walks */

/*
 * Walks trees of many groups at once, level by level: the blocks that one level
 * points to are the work list of the next, so that the queue stays full. Every
 * block is checked (magic, checksum, level, count, siblings, address, owner,
 * keys, order) and read once at most, so that damaged trees end; the records of
 * the leaves are kept, one behind the other.
 */
struct brim_walk;

struct brim_walk_options {
	size_t struct_bytes;
	uint32_t block_bytes;
	uint32_t read_bytes;  /* of brim_walk_read at most; 0: a block */
	uint64_t group_bytes; /* group g begins at g * group_bytes */
	uint32_t max_faults;  /* kept in full; 0: 1024 */
	const char *engine;   /* as for runs */
	uint32_t queue_depth, threads;
};

/*
 * What a tree looks like: a leaf (a header and `records`, its last field, which
 * may be placed in any block size) and an inner node (the same header, `keys`
 * and `pointers`, of block_bytes), both with the named fields. Fields named
 * NULL are not there or not checked. A null pointer is all ones. Everything is
 * copied but the layouts, which must outlive the walk.
 */
struct brim_walk_tree {
	size_t struct_bytes;
	const char *name;
	const struct brim_layout *leaf, *node;
	const char *magic;           /* must hold its default value */
	const char *level;           /* 0 in leaves */
	const char *count;           /* of records or keys */
	const char *left, *right;    /* siblings */
	const char *address;         /* of the block on the device, */
	uint32_t address_unit_bytes; /* in this unit */
	const char *owner;           /* number of the group */
	const char *uuid; /* must hold uuid_bytes, as many as it has */
	const uint8_t *uuid_bytes;
	const char *records, *keys, *pointers;
	/*
	 * Fields that a key and the first record below it have in common; at
	 * most 4. Keys of two nested bounds are (lowest, highest): then reach
	 * names the field of the highest that is the last block any record
	 * below covers, by the record's reach .. reach + reach_count - 1.
	 */
	const char *key[4];
	/*
	 * Where records are packed: the first of key is found in the records'
	 * field record_key, its key_bits from bit key_shift on (0: as key[0]).
	 */
	const char *record_key;
	uint32_t key_shift, key_bits;
	const char *reach, *reach_count;
	/* Records ascend by these fields, strictly or not. */
	const char *order[4];
	int is_strict;
};

struct brim_walk_root {
	uint32_t tree;
	uint64_t group;
	uint64_t block; /* within the group */
	uint32_t levels;
	uint64_t first_block, end_block; /* where blocks of trees may lie */
};

/* How a walk of one tree went. */
struct brim_walk_job {
	uint64_t blocks, records;
	uint64_t faults;
	int is_complete; /* all of its leaves were read */
};

/* One thing that is wrong; `what` is a field or a word for what it is. */
struct brim_walk_fault {
	uint32_t job;    /* BRIM_WALK_NO_JOB: an object itself */
	uint64_t object; /* its number; else that of the group */
	int is_object;   /* an object, or a tree that begins in one */
	uint64_t block;
	int64_t element; /* of keys or records, from 0; -1: none */
	const char *what;
	uint64_t expected, found;
};

#define BRIM_WALK_NO_JOB UINT32_MAX

/* What the walk's reads were so far; times are nanoseconds. */
struct brim_walk_stats {
	size_t struct_bytes;
	const char *engine;
	uint64_t reads, read_bytes;
	uint64_t latency_sum_ns; /* of all reads */
};

BRIM_API int brim_walk_open(struct brim_walk **out, struct brim_device *d,
			    const struct brim_walk_options *o,
			    struct brim_err *e);
/* Frees it and all it found; takes NULL. */
BRIM_API void brim_walk_close(struct brim_walk *w);
/* Adds a kind of tree: its number, from 0. -EINVAL names a missing field. */
BRIM_API int brim_walk_tree(struct brim_walk *w, const struct brim_walk_tree *t,
			    struct brim_err *e);
/* Adds a tree to walk: the number of the job, from 0. */
BRIM_API int brim_walk_start(struct brim_walk *w,
			     const struct brim_walk_root *root,
			     struct brim_err *e);
/* Walks all that were added; 0. Damage is no error, a failing read is. */
BRIM_API int brim_walk_run(struct brim_walk *w, struct brim_err *e);
/* Forgets all jobs and what they found. */
BRIM_API void brim_walk_reset(struct brim_walk *w);
/* How job number `job` went; -ENOENT. */
BRIM_API int brim_walk_job(const struct brim_walk *w, size_t job,
			   struct brim_walk_job *out);
/* The k-th fault kept, in the order found; -ENOENT. */
BRIM_API int brim_walk_fault(const struct brim_walk *w, size_t k,
			     struct brim_walk_fault *out);
/* The records of a job, one behind the other: valid until reset. */
BRIM_API const void *brim_walk_records(const struct brim_walk *w, size_t job,
				       size_t *len_bytes);
/* Appends the records' extents to x; count and tag may be NULL: 1 and 0. */
BRIM_API int brim_walk_extents(const struct brim_walk *w, size_t job,
			       const char *start, const char *count,
			       const char *tag, struct brim_extents *x,
			       struct brim_err *e);
/*
 * Appends the records as rows whose starts get `base` added, of those whose
 * owner is within [owner_from, owner_to]. The names are fields of records.
 */
BRIM_API int brim_walk_rows(const struct brim_walk *w, size_t job,
			    const char *const names[4], uint64_t base,
			    uint64_t owner_from, uint64_t owner_to,
			    struct brim_table *t, struct brim_err *e);
/* Fills *out, as far as its struct_bytes goes. */
BRIM_API int brim_walk_stats(const struct brim_walk *w,
			     struct brim_walk_stats *out);
/* Appends the blocks of the tree itself, tagged with the job. */
BRIM_API int brim_walk_blocks(const struct brim_walk *w, size_t job,
			      struct brim_extents *x, struct brim_err *e);
/* Reads len_bytes (read_bytes at most) at each of n offsets into out. */
BRIM_API int brim_walk_read(struct brim_walk *w, const uint64_t *off_bytes,
			    size_t n, uint32_t len_bytes, void *out,
			    struct brim_err *e);

/* ----------------------------------------------------------------- objects */

/* Bits of a packed big-endian record; 0 is the highest of its first byte. */
struct brim_bits {
	uint32_t at, width; /* width 0: not there */
};

/* An extent packed into bits: count blocks at start, from `offset` on. */
struct brim_packed {
	uint32_t record_bytes; /* at most 64 */
	struct brim_bits start, count, offset, flag;
};

/* Bits of a field, any of which may be set; NULL: never. */
struct brim_flags {
	const char *field;
	uint64_t mask;
};

/* One of the two forks of an object: how its records are kept, how many. */
struct brim_object_fork {
	const char *format;             /* field: one of list, tree, others */
	const char *count, *wide_count; /* fields: of records */
	uint32_t formats;               /* those there may be, a bit for each */
	uint64_t tag;                   /* goes into the offsets of its rows */
};

/*
 * Objects of fixed size, a few in each block, that hold extents: inodes. Behind
 * body_at come two forks, the second from split * split_bytes on (0: there is
 * none). A fork is a list of packed records, or the root of a tree of them
 * (the same names of fields as in the tree's blocks), or something else that
 * holds none. Blocks are numbered with the group in the bits from group_log2
 * on. Everything is copied but the layouts, which must outlive the walk.
 */
struct brim_object {
	size_t struct_bytes;
	const struct brim_layout *layout;
	uint32_t object_bytes, body_at;
	const char *magic;  /* must hold its default value */
	const char *number; /* must hold the object's number */
	const char *uuid;
	const uint8_t *uuid_bytes;
	const char *use;     /* 0 in those not in use, */
	uint32_t kind_shift; /* its bits from there on tell 16 kinds, */
	uint32_t kinds[16];  /* and which formats their first fork may have */
	const char *none;    /* must be all ones in those in use */
	const char *blocks;  /* in all records of both forks, and in trees */
	const char *split;
	uint32_t split_bytes;
	struct brim_object_fork fork[2];
	uint32_t list_format, tree_format;
	uint32_t opaque_formats; /* a bit for each: not looked at any further */
	struct brim_flags wide;  /* then wide_count has the number of records */
	struct brim_flags away;  /* then the first fork is on another device */
	struct brim_packed record;
	uint64_t
		flag_tag; /* for offsets of rows whose records have the flag, */
	uint64_t tree_tag; /* and of the trees' own blocks */
	uint32_t tree;     /* its kind; the objects' number is its owner */
	const struct brim_layout *root;
	uint32_t group_log2;
	uint64_t group_blocks, last_group_blocks, group_count;
	uint64_t first_block; /* of each group that may be anybody's */
};

/* Up to 64 objects that lie side by side; bit i stands for number + i. */
struct brim_object_range {
	uint64_t off_bytes;
	uint64_t number; /* of the first */
	uint32_t count;
	uint64_t present; /* the others are not looked at */
	uint64_t used;    /* must be in use; those present and not, must not */
};

struct brim_object_counts {
	uint64_t objects; /* looked at */
	uint64_t used;
	uint64_t rows;
	uint64_t bad; /* see brim_walk_bad */
};

/* Says what objects look like, once: -EINVAL names what cannot be. */
BRIM_API int brim_walk_object(struct brim_walk *w, const struct brim_object *o,
			      struct brim_err *e);
/*
 * Reads objects and their trees, and appends a row to t for each extent and
 * each run of blocks of a tree. Not between start and run. A range is at most
 * read_bytes long. What is wrong becomes a fault, as in trees.
 */
BRIM_API int brim_walk_objects(struct brim_walk *w,
			       const struct brim_object_range *v, size_t n,
			       struct brim_table *t,
			       struct brim_object_counts *counts,
			       struct brim_err *e);
/* The k-th object of the last call whose rows may not be all: or -ENOENT. */
BRIM_API int brim_walk_bad(const struct brim_walk *w, size_t k,
			   uint64_t *number);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_WALK_API_H */
