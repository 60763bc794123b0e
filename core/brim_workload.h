/* SPDX-License-Identifier: MIT */
/*
 * brim_workload.h: part of brim.h, which includes it and states the
 * conventions. Traces (what was done when, one operation a line, in a format of
 * others or of brim) and workloads on raw devices. Bytes, nanoseconds.
 */
#ifndef BRIM_WORKLOAD_API_H
#define BRIM_WORKLOAD_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ traces */

enum brim_trace_op {
	BRIM_TRACE_READ = 0,
	BRIM_TRACE_WRITE,
	BRIM_TRACE_TRIM,
	BRIM_TRACE_SYNC,     /* fsync */
	BRIM_TRACE_DATASYNC, /* fdatasync */
	BRIM_TRACE_ADD,      /* a file that later operations name */
	BRIM_TRACE_OPEN,
	BRIM_TRACE_CREATE, /* open a new file, or an old one emptied */
	BRIM_TRACE_CLOSE,
	BRIM_TRACE_UNLINK,
	BRIM_TRACE_RENAME,   /* path becomes `to` */
	BRIM_TRACE_TRUNCATE, /* to len_bytes */
	BRIM_TRACE_MKDIR,
	BRIM_TRACE_OPS,
};

/*
 * An operation of a trace. path is of a file or the name of a device; NULL
 * where the format has none. Those without a range have 0 and 0 there.
 */
struct brim_trace_event {
	enum brim_trace_op op;
	uint32_t stream; /* thread, processor or volume, as the format has it */
	uint64_t at_ns;  /* since the trace's begin */
	const char *path;
	const char *to; /* RENAME only */
	uint64_t off_bytes, len_bytes;
};

#ifdef __cplusplus
}
#endif

#endif /* BRIM_WORKLOAD_API_H */
