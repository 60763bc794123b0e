/* SPDX-License-Identifier: MIT */
/*
 * trace.h: the inside of traces: the writer, which fill.c and conversions call,
 * and the names of formats and operations. Bytes, nanoseconds.
 */
#ifndef BRIM_TRACE_H
#define BRIM_TRACE_H

#include "internal.h"

/* The longest path a trace may have: what the kernel takes. */
#define BRIM__TRACE_PATH_MAX 4096u

/* The names that lines have for operations, by enum brim_trace_op. */
extern const char *const brim__trace_op_names[BRIM_TRACE_OPS];

struct brim__trace;

/*
 * Makes (or empties) a trace file. format: "iolog2" (fio's, with waits),
 * "iolog3" (fio's, with a time in each line) or "jsonl" (brim's own, the only
 * one that has all operations).
 */
int brim__trace_open(struct brim__trace **out, const char *path,
		     const char *format, struct brim_err *e);
/*
 * Writes one operation; any thread. Lines are in the order of the calls; a time
 * that lies before the line above counts as that line's. Only memory until a
 * buffer of 256 KiB is full. A failure is kept for close, and nothing is
 * written after it. iolog: files are added before they are first named and
 * opened before they are read or written, as fio insists on it; what
 * fio has no word for (unlink, rename, truncate, mkdir) is left out and
 * counted; a path with blanks is a failure (-EILSEQ), one of more than 255
 * bytes too (-ENAMETOOLONG).
 */
void brim__trace_op(struct brim__trace *t, const struct brim_trace_event *x);
/* Is the trace that is read this file, by whatever name? */
bool brim__trace_is_file(const struct brim_trace *t, const char *path);
/* Operations that the format had no word for so far. */
uint64_t brim__trace_omitted(struct brim__trace *t);
/* Writes what is left and frees: 0, or the first failure. Takes NULL. */
int brim__trace_close(struct brim__trace *t, struct brim_err *e);

#endif /* BRIM_TRACE_H */
