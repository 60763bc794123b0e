/* SPDX-License-Identifier: MIT */
/*
 * stream_fail.c: what becomes of a stream's files when the world refused an
 * operation. Called by submitters and replays, seldom. Sizes are bytes.
 */
#include <errno.h>
#include <inttypes.h>

#include "stream.h"

static void fail_mkdir(struct brim_stream *s, const struct brim_op *op)
{
	uint32_t level = (uint32_t)op->dir_level;

	if (op->file.id < s->made_ids ||
	    (op->file.id == s->made_ids && level < s->made_level)) {
		s->made_ids = op->file.id;
		s->made_level = level;
	}
	s->is_creating = false;
	s->is_mkdir_refused = true;
}

static bool is_whole(const struct brim_op *op)
{
	return op->kind == BRIM_OP_CREATE || op->kind == BRIM_OP_REPLACE ||
	       (op->kind == BRIM_OP_OVERWRITE && !op->file.overwrites);
}

/* What a live file is after an operation on it was refused. */
static struct brim_file refused(const struct brim_stream *s,
				const struct brim_op *op, uint64_t size_bytes)
{
	struct brim_file f = brim__stream_file(s, op->file.id);
	bool as_before = size_bytes == BRIM_FILE_AS_BEFORE;

	if (is_whole(op)) {
		if (as_before)
			return op->before;
		f.base_bytes = size_bytes;
		f.size_bytes = size_bytes;
		f.overwrites = 0;
	} else if (op->kind == BRIM_OP_OVERWRITE) {
		if (as_before && f.overwrites == op->file.overwrites)
			f.overwrites = op->before.overwrites;
		else
			f.overwrites = BRIM_OVERWRITES_UNKNOWN;
	} else {
		f.size_bytes = as_before ? op->before.size_bytes : size_bytes;
	}
	return f;
}

/* A file that is made at all is gone, else it is as refused says. */
static void fail_file(struct brim_stream *s, const struct brim_op *op,
		      uint64_t size_bytes)
{
	struct brim__table *t = &s->files;
	struct brim_file f;

	if (op->kind == BRIM_OP_DELETE) {
		if (brim__is_live(t, op->file.id) ||
		    size_bytes == BRIM_FILE_NONE)
			return;
		brim__table_revive(t, op->file.id);
		brim__table_set(t, &op->before);
		return;
	}
	if (!brim__is_live(t, op->file.id))
		return;
	if (size_bytes == BRIM_FILE_NONE ||
	    (op->kind == BRIM_OP_CREATE && size_bytes == BRIM_FILE_AS_BEFORE)) {
		brim__table_release(t, op->file.id);
		return;
	}
	f = refused(s, op, size_bytes);
	brim__table_set(t, &f);
}

int brim_stream_fail(struct brim_stream *s, const struct brim_op *op,
		     uint64_t size_bytes, struct brim_err *e)
{
	uint32_t id = op->file.id;

	if (op->index >= s->totals.next_index ||
	    (unsigned int)op->kind >= BRIM_OP_KINDS ||
	    op->file.stream != s->number)
		return brim__errf(e, -EINVAL, "stream",
				  "no operation of this stream");
	if (op->kind == BRIM_OP_MKDIR) {
		fail_mkdir(s, op);
		return 0;
	}
	if (id >= s->files.count ||
	    (size_bytes < BRIM_FILE_AS_BEFORE &&
	     size_bytes >
		     BRIM__MAX(op->file.size_bytes, op->before.size_bytes)))
		return brim__errf(e, -EINVAL, "stream",
				  "no size that operation %" PRIu64
				  " could have left",
				  op->index);
	/* Another version: written as a whole since, or made anew. */
	if (brim__entry(&s->files, id)->version == op->file.version)
		fail_file(s, op, size_bytes);
	return 0;
}
