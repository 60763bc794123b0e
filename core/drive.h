/* SPDX-License-Identifier: MIT */
/*
 * drive.h: what the files of the timing models share: drive.c checks and
 * counts, drive_hdd.c has the mechanics, drive_smr.c bands and their cache,
 * drive_live.c a model that runs beside the clock. Bytes, nanoseconds.
 */
#ifndef BRIM_DRIVE_H
#define BRIM_DRIVE_H

#include "hist.h"
#include "internal.h"

/* No parameter that is a time is longer: 68 s; no clock goes further. */
#define BRIM__DRIVE_TIME_MAX (UINT64_C(1) << 36)
#define BRIM__DRIVE_CLOCK_MAX (UINT64_C(1) << 62)
#define BRIM__DRIVE_BANDS_MAX (1u << 24)
#define BRIM__DRIVE_ZONES_MAX 1024u
/* Sequential rewrites that a drive keeps track of; the oldest is given up. */
#define BRIM__DRIVE_STREAMS 8u
#define BRIM__DRIVE_NONE UINT32_MAX

/* Positions within a band are bytes, so that a band has less than 4 GiB. */
struct brim__band {
	uint64_t cached_bytes;   /* of it, in the cache */
	uint32_t cached_entries; /* so many writes */
	uint32_t top;            /* one past the highest of them */
	uint32_t filled;         /* data up to here; above nothing yet */
	uint32_t rewritten;      /* the part that a stream has rewritten */
	uint32_t next, prev;     /* those with entries, the oldest first */
};

struct brim__smr {
	struct brim__band *bands;
	uint32_t count, oldest, newest;
	uint32_t *zone_band;                   /* the first band of each zone */
	uint32_t *zone_band_bytes;             /* the size of its bands */
	uint32_t streams[BRIM__DRIVE_STREAMS]; /* bands, the latest first */
	uint64_t cache_end; /* where the last cached write ended, if it was */
	bool is_in_cache;   /* the last command */
};

struct brim_drive {
	struct brim_drive_params p;
	struct brim_drive_stats st;
	struct brim__hist hists[BRIM_DRIVE_OPS];
	uint64_t free_ns; /* when the last command is done */
	uint64_t zone_bytes;
	uint64_t head; /* where the head stands */
	int last_op;   /* of a read or write that ended at head, or -1 */
	uint64_t run_end[2], run_bytes[2];
	struct brim__smr smr;
};

/* Whether there may be such a drive. */
int brim__drive_check(const struct brim_drive_params *p, struct brim_err *e);

/* The media rate at an offset. */
uint64_t brim__drive_rate(const struct brim_drive *d, uint64_t off_bytes);
/* n bytes at a rate, rounded up; UINT64_MAX where that does not fit. */
uint64_t brim__drive_transfer_ns(uint64_t len_bytes, uint64_t rate);
/* Moves the head to off: seek and, at time t, rotation. What it took. */
uint64_t brim__drive_position(struct brim_drive *d, uint64_t off, uint64_t t);
/* A read or write on the media that begins at t: when it is done. */
uint64_t brim__drive_media(struct brim_drive *d, const struct brim_drive_io *io,
			   uint64_t t);

int brim__smr_create(struct brim_drive *d, struct brim_err *e);
void brim__smr_free(struct brim_drive *d);
/* Cleans in the time between the last command and at_ns. */
void brim__smr_idle(struct brim_drive *d, uint64_t at_ns);
/* A read or write that begins at t: when it is done. */
uint64_t brim__smr_io(struct brim_drive *d, const struct brim_drive_io *io,
		      uint64_t t);

/* ----------------------------------------------------------- drive_live.c */

/*
 * A drive beside the clock: what is done on a file takes as long as the model
 * says, and is recorded. Any threads.
 */
struct brim__live;

struct brim__live_options {
	const char *model;   /* as brim_drive_params_parse takes it */
	const char *trace;   /* a block trace to write, or NULL */
	double speed;        /* of the model's clock against the real one */
	uint64_t size_bytes; /* of the file; the model's where that has none */
};

int brim__live_open(struct brim__live **out, const struct brim__live_options *o,
		    struct brim_err *e);
/* The model's time now: what the caller hands to brim__live_done. */
uint64_t brim__live_now(struct brim__live *l);
/* An I/O that arrived at at_ns was carried out: sleeps until it may be. */
void brim__live_done(struct brim__live *l, enum brim_drive_op op,
		     uint64_t off_bytes, uint64_t len_bytes, uint64_t at_ns,
		     uint32_t stream);
/*
 * Statistics so far, with the trace written out; late_ns: by how much the file
 * itself was slower than the model.
 */
int brim__live_stats(struct brim__live *l, struct brim_drive_stats *st,
		     uint64_t *late_ns);
int brim__live_close(struct brim__live *l, struct brim_err *e);

#endif /* BRIM_DRIVE_H */
