/* SPDX-License-Identifier: MIT */
/*
 * overlay.h: copy-on-write overlays from the inside, for overlay*.c and
 * device_overlay.c. A volume is cut into blocks of 4 KiB; what was written is
 * kept in a file of its own, what was zeroed is only noted. Units: blocks
 * where a name does not say bytes.
 */
#ifndef BRIM_OVERLAY_H
#define BRIM_OVERLAY_H

#include <pthread.h>

#include "internal.h"

#define BRIM__OVERLAY_BLOCK 4096u
#define BRIM__OVERLAY_STRIPES 64u

/* ------------------------------------------------- the map: overlay_map.c */

/*
 * Blocks [from, from+len) of the volume: kept in the file from block `place`
 * on, or zeros where place is 0 (the file's first blocks are never data).
 */
struct brim__overlay_extent {
	uint64_t from, len, place;
};
struct brim__overlay_list {
	struct brim__overlay_extent *v;
	size_t n, room;
};

/* Appends, joining with the last from index `fixed` on; 0 or -ENOMEM. */
int brim__overlay_list_push(struct brim__overlay_list *list, size_t fixed,
			    const struct brim__overlay_extent *x);
/* After it the next push does not fail. */
int brim__overlay_list_reserve(struct brim__overlay_list *list);
/* Removes the first n. */
void brim__overlay_list_shift(struct brim__overlay_list *list, size_t n);

/*
 * What lies where, in order and without overlaps, neighbours joined. Memory:
 * an extent is 24 bytes, in leaves of which two neighbours together fill at
 * least half of one. So a written block takes 24 to 48 bytes where nothing
 * joins, next to nothing where blocks are written in order, and never more
 * than 200 (a block amid zeros makes two extents, and leaves may be emptied).
 */
struct brim__overlay_leaf;
struct brim__overlay_map {
	struct brim__overlay_leaf **leaves;
	size_t n, room;
	struct brim__overlay_leaf *spare[3];
	uint64_t extents, data_blocks, zero_blocks;
};

/*
 * Sets the blocks of x, over whatever was there; what was kept in the file for
 * them is appended to *freed, as far as there is memory for it. 1, or 0 where
 * that was so already, or -ENOMEM and nothing has changed.
 */
int brim__overlay_map_set(struct brim__overlay_map *m,
			  const struct brim__overlay_extent *x,
			  struct brim__overlay_list *freed);
/* The first extent that ends behind a block; NULL: none. Valid until set. */
const struct brim__overlay_extent *
brim__overlay_map_at(const struct brim__overlay_map *m, uint64_t block);
void brim__overlay_map_free(struct brim__overlay_map *m);

/* ------------------------------------------------------------- the overlay */

/* In the file: the headers are blocks 0 and 1. */
#define BRIM__OVERLAY_FIRST 2u
#define BRIM__OVERLAY_PLACE_MAX (BRIM_MAX_BYTES / BRIM__OVERLAY_BLOCK)
/* The pages of the log are reserved so many at a time, side by side. */
#define BRIM__OVERLAY_LOG_BLOCKS 64u

/* What an overlay was made for, and how messages call it. */
struct brim__overlay_base {
	uint64_t size_bytes;
	uint32_t kind; /* of the hash */
	uint64_t hash;
	char name[128];
};

/* Where the log goes on: see overlay_log.c. */
struct brim__overlay_log {
	uint64_t id;       /* random; each page of this log has it */
	uint64_t next;     /* block of the page to be written next */
	uint64_t left;     /* blocks reserved from there on */
	uint64_t sequence; /* its number */
	uint64_t chain;    /* what the page before hashes to */
	uint64_t pages;
	struct brim__overlay_list chunks; /* where pages are: place and len */
};

struct brim__overlay {
	int fd;
	char shown[128];
	bool is_readonly;
	uint32_t writer; /* random: this opening of it */
	uint64_t blocks; /* of the volume, the last maybe short */
	struct brim__overlay_base base;

	pthread_mutex_t lock; /* guards these five */
	struct brim__overlay_map map;
	uint64_t end;                    /* the file's first unused block */
	struct brim__overlay_list dirty; /* set, and in no page yet */
	size_t dirty_fixed;              /* of these, being written */
	struct brim__overlay_list freed; /* to be punched after a flush */

	pthread_mutex_t flushing; /* taken before lock; guards these */
	struct brim__overlay_log log;
	uint64_t super_sequence, least_sequence;
	uint32_t state;
	int failed; /* -errno of what cannot be mended */

	/* Held while a part of a block is written: by block number. */
	pthread_mutex_t stripes[BRIM__OVERLAY_STRIPES];
};

enum { BRIM__OVERLAY_COMMITTING = 1 }; /* state: the base is being changed */

/* ----------------------------------------------- the file: overlay_file.c */

/*
 * Opens an overlay for a base (enum brim_overlay_flags). One that was made for
 * something else is -EINVAL, one in use -EBUSY, -EILSEQ what is no overlay or
 * damaged, -ENOTSUP a newer version.
 */
int brim__overlay_open(struct brim__overlay **out, const char *path,
		       const struct brim__overlay_base *base, uint32_t flags,
		       struct brim_err *e);
/* Flushes as well as it can. */
void brim__overlay_close(struct brim__overlay *o);
/* The next header, which says that the log has at least so many pages. */
int brim__overlay_head(struct brim__overlay *o, uint64_t least_sequence);
/* The end of a text, without control characters. */
void brim__overlay_show(char *shown, size_t shown_bytes, const char *text);

/* ---------------------------------------------------- at work: overlay.c */

/*
 * May be called by many threads at once, return 0 or -errno, and take ranges
 * within the volume. get: what `block` is and for how many blocks that holds
 * (x->len, at most max); false where it is the base's.
 */
bool brim__overlay_get(struct brim__overlay *o, uint64_t block, uint64_t max,
		       struct brim__overlay_extent *x);
/* Reserves blocks in the file; and gives them back when they are not used. */
int brim__overlay_alloc(struct brim__overlay *o, uint64_t blocks,
			uint64_t *place);
void brim__overlay_unalloc(struct brim__overlay *o, uint64_t blocks,
			   uint64_t place);
/* Notes x, whose data is written; flushes when much is not in the log. */
int brim__overlay_set(struct brim__overlay *o,
		      const struct brim__overlay_extent *x);
/* All that was written and set before is on stable storage afterwards. */
int brim__overlay_flush(struct brim__overlay *o);
/*
 * I/O on the file of the whole length, at a byte of a place; -ENODATA: the
 * file ends before.
 */
int brim__overlay_pread(struct brim__overlay *o, uint64_t place,
			uint64_t skip_bytes, void *buf, uint64_t len_bytes);
int brim__overlay_pwrite(struct brim__overlay *o, uint64_t place,
			 uint64_t skip_bytes, const void *buf,
			 uint64_t len_bytes);
int brim__overlay_sync(struct brim__overlay *o);
/* While nobody else uses it: sets the state; forgets all, for a new base. */
int brim__overlay_set_state(struct brim__overlay *o, uint32_t state);
int brim__overlay_reset(struct brim__overlay *o,
			const struct brim__overlay_base *base);

/* ------------------------------------------------- the log: overlay_log.c */

/*
 * Reads the log, from where o->log is at, into the map. It must have at least
 * so many pages, and places within the file.
 */
int brim__overlay_replay(struct brim__overlay *o, uint64_t file_blocks,
			 uint64_t least_sequence, struct brim_err *e);
/*
 * Writes the first `count` dirty extents as pages, and takes off what is
 * written. *in_new_chunk is set where a chunk was begun. Needs flushing.
 */
int brim__overlay_append(struct brim__overlay *o, size_t count,
			 bool *in_new_chunk);
/* Is the log so long for its map that it is worth a new one? Needs both. */
bool brim__overlay_is_wordy(const struct brim__overlay *o);
/* A new log that holds the map as it is; nothing leads to it. Needs both. */
int brim__overlay_rewrite(struct brim__overlay *o,
			  struct brim__overlay_log *log);
/* An empty log in new blocks; log->chunks is the caller's also on failure. */
int brim__overlay_log_init(struct brim__overlay *o,
			   struct brim__overlay_log *log, uint64_t blocks);

#endif /* BRIM_OVERLAY_H */
