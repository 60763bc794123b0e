/* SPDX-License-Identifier: MIT */
/*
 * verify_files.h: what verify_files.c (threads, findings) and verify_tree.c
 * (files, directories) share. Sizes are bytes, times nanoseconds.
 */
#ifndef BRIM_VERIFY_FILES_H
#define BRIM_VERIFY_FILES_H

#include "fill.h"

/* Files that a thread takes at once, and what it reads of one at once. */
#define BRIM__VERIFY_TAKE 32u
#define BRIM__VERIFY_BUFFER (1u << 20)

struct brim__verify_finding {
	enum brim_finding kind;
	char *path;
	uint64_t off_bytes, expected, found;
};

/* Ids of a stream that the window touches: a bit each. */
struct brim__verify_touched {
	uint64_t *bits;
	uint64_t words;
};

/* A directory, or some files of a stream. */
struct brim__verify_work {
	char *dir; /* below the root; owned */
	uint32_t stream;
	uint64_t first, count;
};

struct brim_verify {
	struct brim_fill *fill;
	bool is_direct;
	uint32_t stream_count, thread_room, thread_count;
	pthread_t *threads;
	uint64_t *live; /* files, by stream */
	struct brim__verify_touched *touched;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t work, news;
	bool stopping, is_sorted;
	int error;
	uint32_t working, ended;
	uint64_t start_ns, end_ns;
	struct brim_verify_stats st;
	struct brim__verify_finding *findings;
	size_t finding_count, finding_max;
	char **dirs;
	size_t dir_count, dir_room;
	uint32_t next_stream;
	uint64_t next_file;
};

/* Notes a finding; from any thread. */
void brim__verify_found(struct brim_verify *v, enum brim_finding kind,
			const char *path, uint64_t off_bytes, uint64_t expected,
			uint64_t found);

/* ------------------------------------------------------------- verify_tree.c */

/* Marks what the next `ops` operations of a stream touch. */
int brim__verify_window(struct brim_verify *v, uint32_t stream, uint64_t ops,
			struct brim_err *e);
/* A stream's own directory is to be read. */
int brim__verify_push_tree(struct brim_verify *v, uint32_t stream,
			   struct brim_err *e);
/* Looks for files that no stream has; frees the path. */
void brim__verify_dir(struct brim_verify *v, char *path);
/* Compares files with what they shall be. */
void brim__verify_files(struct brim_verify *v,
			const struct brim__verify_work *w, uint8_t *buf);

#endif /* BRIM_VERIFY_FILES_H */
