/* SPDX-License-Identifier: MIT */
/*
 * brim_drive.h: part of brim.h, which includes it and states the conventions.
 * Timing models of drives: when would this I/O have been done there? A model
 * is a state machine that holds no data and never sleeps. Bytes, nanoseconds.
 */
#ifndef BRIM_DRIVE_API_H
#define BRIM_DRIVE_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

enum brim_drive_model {
	BRIM_DRIVE_IDEAL = 0, /* all I/O takes no time */
	BRIM_DRIVE_CONSTANT,  /* overhead and bandwidth: an SSD, roughly */
	BRIM_DRIVE_HDD,       /* seeks, rotation, zones */
	BRIM_DRIVE_SMR,       /* the same, with shingled bands and a cache */
	BRIM_DRIVE_MODELS,
};

/*
 * What a drive is like. 0 is a value as any other, except where a field says
 * what it stands for. All fields that are times are nanoseconds.
 */
struct brim_drive_params {
	size_t struct_bytes;
	uint64_t model; /* enum brim_drive_model */
	uint64_t seed;
	uint64_t size_bytes;
	/* Each command: the controller and the bus. */
	uint64_t overhead_ns;
	/* CONSTANT; 0: no limit. */
	uint64_t read_bytes_per_s, write_bytes_per_s, flush_ns;
	/*
	 * HDD, SMR: the media rate falls linearly from the first byte (outer
	 * diameter) to the last, in `zones` steps (0: 1). A seek over a part x
	 * of the drive takes seek_min_ns + (seek_max_ns - seek_min_ns) *
	 * sqrt(x). rotation_ns: one revolution.
	 */
	uint64_t outer_bytes_per_s, inner_bytes_per_s, zones;
	uint64_t seek_min_ns, seek_max_ns, rotation_ns;
	/*
	 * SMR: bands shrink by zone from band_max_bytes to band_min_bytes. The
	 * cache takes cache_bytes in at most cache_entries writes, each of
	 * which costs cache_write_ns beside its transfer (0: none). A band is
	 * cleaned (read, modified, written) in clean_min_ns .. clean_max_ns.
	 * After idle_ns without a command the drive cleans on its own
	 * (UINT64_MAX: never). is_used: all bands hold data already.
	 */
	uint64_t band_min_bytes, band_max_bytes;
	uint64_t cache_bytes, cache_entries, cache_write_ns;
	uint64_t clean_min_ns, clean_max_ns, idle_ns;
	uint64_t is_used;
};

/*
 * Sets one parameter by the name of its field (all but struct_bytes). -EINVAL
 * for an unknown one. brim_drive_param_name lists them: NULL past the last.
 */
BRIM_API int brim_drive_param_set(struct brim_drive_params *p, const char *name,
				  uint64_t value, struct brim_err *e);
BRIM_API const char *brim_drive_param_name(unsigned int k);
/*
 * Reads "smr,size_bytes=8g,seed=1": a model's name, then fields, the numbers
 * as brim_bytes_parse takes them. *p is overwritten.
 */
BRIM_API int brim_drive_params_parse(struct brim_drive_params *p,
				     const char *text, struct brim_err *e);
/* "ideal", "constant", "hdd", "smr"; NULL for none. */
BRIM_API const char *brim_drive_model_name(unsigned int model);

enum brim_drive_op {
	BRIM_DRIVE_READ = 0,
	BRIM_DRIVE_WRITE,
	BRIM_DRIVE_TRIM,
	BRIM_DRIVE_FLUSH,
	BRIM_DRIVE_OPS,
};

struct brim_drive_io {
	enum brim_drive_op op;
	uint64_t off_bytes, len_bytes; /* FLUSH: both 0 */
	uint64_t at_ns;                /* when it reaches the drive */
};

struct brim_drive;

/* -EINVAL names the parameter that cannot be. Memory: 40 bytes a band. */
BRIM_API int brim_drive_create(struct brim_drive **out,
			       const struct brim_drive_params *p,
			       struct brim_err *e);
BRIM_API void brim_drive_free(struct brim_drive *d);
/*
 * Does one I/O: *done_ns is when it is finished. Commands are served one after
 * the other in the order of the calls; one that arrives while another is served
 * waits. The same calls give the same times on every machine. -ERANGE: not on
 * the drive; -EINVAL: no such operation; -EOVERFLOW: the clock is at its end.
 * What fails changes nothing.
 */
BRIM_API int brim_drive_io(struct brim_drive *d, const struct brim_drive_io *io,
			   uint64_t *done_ns);

/*
 * What it did since it was made. Reads and writes that begin where the last one
 * of the same kind ended are one run: a guest that sends 4 KiB pieces is not
 * taken for one that seeks.
 */
struct brim_drive_stats {
	size_t struct_bytes;
	uint64_t ios[BRIM_DRIVE_OPS], bytes[BRIM_DRIVE_OPS];
	/* From arrival to end, waiting included. */
	uint64_t latency_ns[BRIM_DRIVE_OPS], p50_ns[BRIM_DRIVE_OPS],
		p99_ns[BRIM_DRIVE_OPS], max_ns[BRIM_DRIVE_OPS];
	uint64_t runs[2]; /* of reads, of writes */
	/* I/Os, and runs that ended, of 2^k .. 2^(k+1)-1 bytes. */
	uint64_t io_sizes[2][64], run_sizes[2][64];
	uint64_t end_ns; /* when the last command was done */
	/* Where the drive's time went. */
	uint64_t wait_ns; /* of commands for others before them */
	uint64_t overhead_ns, seek_ns, rotate_ns, transfer_ns;
	uint64_t clean_full_ns, clean_idle_ns;
	uint64_t seeks, seek_bytes; /* moves of the head, their distance */
	/* SMR. */
	uint64_t bands;
	uint64_t cached_ios, cached_bytes; /* writes that went to the cache */
	uint64_t streamed_bytes;           /* and those that did not */
	uint64_t cache_entries, cache_used_bytes; /* now */
	uint64_t cache_entries_max, cache_used_bytes_max;
	uint64_t cleaned_bands, cleaned_entries,
		clean_bytes;    /* read + written */
	uint64_t covered_bands; /* rewritten whole, so that none was cleaned */
};

/* st->struct_bytes is set by the caller. */
BRIM_API int brim_drive_stats(const struct brim_drive *d,
			      struct brim_drive_stats *st);

/* ------------------------------------------------------------ block traces */

/*
 * A block trace: a header of 32 bytes (the text "BRIMBLK1", the size of a
 * record as u32, 0 as u32, the drive's size in bytes as u64, the time of its
 * begin in ns since 1970 as u64), then records of 32 bytes: at_ns u64 (since
 * the begin), off_bytes u64, took_ns u64, len_bytes u32, stream u16, op u8
 * (enum brim_drive_op), 0 u8. Little-endian, in the order of the ends.
 */
struct brim_drive_event {
	enum brim_drive_op op;
	uint32_t stream; /* thread, modulo 2^16 */
	uint64_t at_ns, took_ns;
	uint64_t off_bytes, len_bytes;
};

struct brim_drive_writer;

/* Makes (or empties) a block trace. */
BRIM_API int brim_drive_writer_open(struct brim_drive_writer **out,
				    const char *path, uint64_t size_bytes,
				    struct brim_err *e);
/*
 * Adds an event; one thread at a time. More than 4 GiB - 1 become several
 * records. A failure is kept for close.
 */
BRIM_API void brim_drive_writer_add(struct brim_drive_writer *w,
				    const struct brim_drive_event *x);
/* Writes out what is buffered. */
BRIM_API void brim_drive_writer_flush(struct brim_drive_writer *w);
/* 0, or the first failure. Takes NULL. */
BRIM_API int brim_drive_writer_close(struct brim_drive_writer *w,
				     struct brim_err *e);

struct brim_drive_reader;

/*
 * Opens a block trace, or any trace that brim_trace_open reads: its reads,
 * writes, trims and syncs, whose took_ns is 0 there. size_bytes: of the drive,
 * 0 where the trace does not say.
 */
BRIM_API int brim_drive_reader_open(struct brim_drive_reader **out,
				    const char *path, uint64_t *size_bytes,
				    struct brim_err *e);
/* 1, or 0 at the end. -EINVAL: a record that cannot be, or a torn one. */
BRIM_API int brim_drive_reader_next(struct brim_drive_reader *r,
				    struct brim_drive_event *x,
				    struct brim_err *e);
BRIM_API void brim_drive_reader_close(struct brim_drive_reader *r);

struct brim_drive_replay_options {
	size_t struct_bytes;
	/*
	 * Keep the recorded times of arrival. Otherwise each stream waits for
	 * its I/O and then as long as it did in the recording, so that a trace
	 * of one drive tells how long another would have taken.
	 */
	int is_open_loop;
	int is_wrapped;       /* offsets past the end: modulo the size */
	uint64_t interval_ns; /* of the bins; 0: none */
	uint64_t at_ns;       /* the drive's time when it begins */
	/* Write the events with the times of this drive, when not NULL. */
	struct brim_drive_writer *out;
};

/* Bytes that were done within one interval. */
struct brim_drive_bin {
	uint64_t ios, read_bytes, write_bytes;
};

struct brim_drive_replay {
	size_t struct_bytes;
	uint64_t events, skipped; /* skipped: past the drive's end */
	uint64_t recorded_ns;     /* from the first arrival to the last end */
	uint64_t elapsed_ns;      /* from at_ns to the last end */
	uint64_t bin_count;
	/* Owned; brim_drive_replay_release frees them. */
	struct brim_drive_bin *bins;
};

/* The most bins; the interval is doubled as often as it takes. */
#define BRIM_DRIVE_BINS_MAX 65536u

/*
 * Sends a trace through a drive without sleeping. *result is filled on failure
 * too, up to there; `interval_ns` is in *o and may have grown.
 */
BRIM_API int brim_drive_replay(struct brim_drive *d,
			       struct brim_drive_reader *r,
			       struct brim_drive_replay_options *o,
			       struct brim_drive_replay *result,
			       struct brim_err *e);
BRIM_API void brim_drive_replay_release(struct brim_drive_replay *result);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_DRIVE_API_H */
