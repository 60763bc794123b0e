/* SPDX-License-Identifier: MIT */
/*
 * trace_replay.h: what the replays on devices and below directories share:
 * which events count, when they are due, what they came to. Nanoseconds.
 */
#ifndef BRIM_TRACE_REPLAY_H
#define BRIM_TRACE_REPLAY_H

#include "hist.h"
#include "trace.h"

struct brim__replay {
	struct brim_trace *trace; /* owned */
	struct brim_replay_options o;
	char *path, *strip; /* owned, o's */
	uint64_t begun_ns;
	struct brim_replay_stats st;
	struct brim__hist took[BRIM_TRACE_OPS];
};

/* Takes the trace at once, and copies options: -EINVAL, -ENOMEM. */
int brim__replay_init(struct brim__replay *x, struct brim_trace *t,
		      const struct brim_replay_options *o, struct brim_err *e);
void brim__replay_release(struct brim__replay *x);
/* The next event that counts: 1, 0 at the end, < 0. */
int brim__replay_next(struct brim__replay *x, struct brim_trace_event *ev,
		      struct brim_err *e);
/* When an event is due on the clock; 0: at once. */
uint64_t brim__replay_due_ns(const struct brim__replay *x, uint64_t at_ns);
/* An operation was carried out. */
void brim__replay_done(struct brim__replay *x, enum brim_trace_op op,
		       uint64_t len_bytes, uint64_t took_ns);
/* As much of the counters as out->struct_bytes holds. */
void brim__replay_stats(const struct brim__replay *x, uint64_t now_ns,
			struct brim_replay_stats *out);
/* Fills a buffer with bytes that follow from a key. */
void brim__replay_bytes(uint64_t key, uint8_t *to, size_t len_bytes);

/* Open files by path. */
struct brim__fd {
	uint64_t hash;
	char *path; /* NULL: a free place */
	int fd;
};

struct brim__fds {
	struct brim__fd *open; /* a table, by hash */
	size_t count, room;
};

int brim__fds_init(struct brim__fds *f);
/* Closes all. */
void brim__fds_free(struct brim__fds *f);
/* The descriptor of a path, or -1. */
int brim__fds_get(const struct brim__fds *f, const char *path);
/* Puts one in that is not there yet; -ENOMEM. */
int brim__fds_put(struct brim__fds *f, const char *path, int fd);
/* Takes a path out and closes it: 0, also if it was not there, or -errno. */
int brim__fds_close(struct brim__fds *f, const char *path);

#endif /* BRIM_TRACE_REPLAY_H */
