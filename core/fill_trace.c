/* SPDX-License-Identifier: MIT */
/*
 * fill_trace.c: writes what a fill does into a trace, an operation after it is
 * over; in mode "none" what it would do. Called by fill_submit.c from every
 * submitter. Sizes are bytes, times nanoseconds since the fill was opened.
 */
#include "fill.h"

static void event(struct brim__fill_sub *s, enum brim_trace_op op,
		  uint64_t at_ns, const char *path, uint64_t off_bytes,
		  uint64_t len_bytes)
{
	brim__trace_op(s->fill->trace,
		       &(struct brim_trace_event){ .op = op,
						   .stream = s->index,
						   .at_ns = at_ns,
						   .path = path,
						   .off_bytes = off_bytes,
						   .len_bytes = len_bytes });
}

/* Opened when it began, in the pieces it was written in, closed at its end. */
static void data(struct brim__fill_sub *s, const struct brim_op *op,
		 const struct brim__fill_result *r, const char *path,
		 uint64_t start_ns, uint64_t end_ns)
{
	bool makes = op->kind == BRIM_OP_CREATE || op->kind == BRIM_OP_REPLACE;
	uint64_t at = 0, len;

	event(s, makes ? BRIM_TRACE_CREATE : BRIM_TRACE_OPEN, start_ns, path, 0,
	      0);
	for (; at < r->written_bytes; at += len) {
		len = BRIM__MIN(r->written_bytes - at, s->fill->o.max_io_bytes);
		event(s, BRIM_TRACE_WRITE, start_ns, path, op->off_bytes + at,
		      len);
	}
	if (r->is_synced)
		event(s, BRIM_TRACE_SYNC, end_ns, path, 0, 0);
	event(s, BRIM_TRACE_CLOSE, end_ns, path, 0, 0);
}

static void replaced(struct brim__fill_sub *s, const char *from, const char *to,
		     uint64_t end_ns)
{
	brim__trace_op(s->fill->trace,
		       &(struct brim_trace_event){ .op = BRIM_TRACE_RENAME,
						   .stream = s->index,
						   .at_ns = end_ns,
						   .path = from,
						   .to = to });
}

/* The directory that an operation makes, cut out of its file's path. */
static void cut_to_level(char *path, int level)
{
	for (; *path; path++) {
		if (*path == '/' && level-- == 0) {
			*path = '\0';
			return;
		}
	}
}

void brim__fill_trace(struct brim__fill_sub *s, const struct brim_op *op,
		      const struct brim__fill_result *r, uint64_t start_ns,
		      uint64_t end_ns)
{
	const struct brim_fileset *fs = s->fill->fileset;
	char path[BRIM__FILL_PATH], to[BRIM__FILL_PATH];

	start_ns -= s->fill->open_ns;
	end_ns -= s->fill->open_ns;
	brim_fileset_path(fs, s->index, op->file.id,
			  op->kind == BRIM_OP_REPLACE, path, sizeof(path));
	switch (op->kind) {
	case BRIM_OP_MKDIR:
		cut_to_level(path, op->dir_level);
		event(s, BRIM_TRACE_MKDIR, start_ns, path, 0, 0);
		break;
	case BRIM_OP_TRUNCATE:
		event(s, BRIM_TRACE_TRUNCATE, start_ns, path, 0, op->off_bytes);
		break;
	case BRIM_OP_DELETE:
		event(s, BRIM_TRACE_UNLINK, start_ns, path, 0, 0);
		break;
	default:
		data(s, op, r, path, start_ns, end_ns);
	}
	if (op->kind != BRIM_OP_REPLACE)
		return;
	brim_fileset_path(fs, s->index, op->file.id, 0, to, sizeof(to));
	replaced(s, path, to, end_ns);
}
