/* SPDX-License-Identifier: MIT */
/*
 * stream_model.h: for test_stream.c: a model that keeps every file's bytes and
 * carries the operations of a stream out on them, wholly or in part, and says
 * where stream and model differ.
 */
#ifndef BRIM_STREAM_MODEL_H
#define BRIM_STREAM_MODEL_H

#include <errno.h>
#include <string.h>

#include "stream.h"
#include "tap.h"

/* Fields, not bytes: there is padding. */
static inline bool is_same(const struct brim_file *a, const struct brim_file *b)
{
	return a->stream == b->stream && a->id == b->id &&
	       a->version == b->version && a->overwrites == b->overwrites &&
	       a->base_bytes == b->base_bytes && a->size_bytes == b->size_bytes;
}

#define FILES 4096u
#define DIRS 4096u

struct model_file {
	uint8_t *bytes; /* NULL: there is none */
	size_t size;
	bool is_unknown; /* a range of it was overwritten in part */
};

struct model {
	const struct brim_fileset *fs;
	struct model_file files[FILES];
	char dirs[DIRS][40];
	unsigned int dir_count;
	const char *wrong; /* the first thing that cannot be */
};

static inline void model_free(struct model *m)
{
	unsigned int k;

	for (k = 0; k < FILES; k++)
		free(m->files[k].bytes);
	free(m);
}

static inline void resize(struct model_file *f, size_t size)
{
	f->bytes = realloc(f->bytes, size + 1);
	if (size > f->size)
		memset(f->bytes + f->size, 0xee, size - f->size);
	f->size = size;
}

/* The directory of a path, cut to `level` below the stream's (-1: all). */
static inline void dir_of(const struct model *m, const struct brim_file *f,
			  int level, char *path)
{
	char *slash = path;

	brim_fileset_path(m->fs, f->stream, f->id, 0, path, 256);
	if (level < 0)
		slash = strrchr(path, '/');
	else
		for (slash = strchr(path, '/'); level > 0; level--)
			slash = strchr(slash + 1, '/');
	*slash = '\0';
}

static inline bool has_dir(const struct model *m, const char *path)
{
	unsigned int k;

	for (k = 0; k < m->dir_count; k++)
		if (!strcmp(m->dirs[k], path))
			return true;
	return false;
}

static inline void model_mkdir(struct model *m, const struct brim_op *op)
{
	char path[256], *slash;

	dir_of(m, &op->file, op->dir_level, path);
	if (!has_dir(m, path) && m->dir_count < DIRS)
		memcpy(m->dirs[m->dir_count++], path, 40);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	if (slash && !has_dir(m, path))
		m->wrong = "a directory in none";
}

static inline void write_to(struct model *m, const struct brim_op *op,
			    size_t len)
{
	struct model_file *f = &m->files[op->file.id];

	if (f->size < op->off_bytes + len)
		resize(f, (size_t)op->off_bytes + len);
	brim_fileset_content(m->fs, &op->file, op->off_bytes, len,
			     f->bytes + op->off_bytes);
}

static inline void model_whole(struct model *m, const struct brim_op *op,
			       size_t len)
{
	struct model_file *f = &m->files[op->file.id];

	resize(f, 0);
	f->is_unknown = false;
	write_to(m, op, len);
}

/* Carries an operation out, but for what can go wrong only in part. */
static inline void model_do(struct model *m, const struct brim_op *op,
			    size_t len)
{
	struct model_file *f = &m->files[op->file.id % FILES];
	char path[256];

	if (op->file.id >= FILES) {
		m->wrong = "more names than files";
		return;
	}
	if (op->kind != BRIM_OP_MKDIR && op->kind != BRIM_OP_CREATE &&
	    !f->bytes)
		m->wrong = "an operation on a file that is not there";
	switch (op->kind) {
	case BRIM_OP_MKDIR:
		model_mkdir(m, op);
		return;
	case BRIM_OP_CREATE:
		dir_of(m, &op->file, -1, path);
		if (f->bytes || !has_dir(m, path))
			m->wrong = f->bytes ? "created twice"
					    : "created in no directory";
		model_whole(m, op, len);
		return;
	case BRIM_OP_REPLACE:
		model_whole(m, op, len);
		return;
	case BRIM_OP_OVERWRITE:
		if (op->off_bytes + op->len_bytes > f->size)
			m->wrong = "overwritten beyond the end";
		write_to(m, op, len);
		if (len == op->len_bytes && !op->file.overwrites)
			f->is_unknown = false;
		return;
	case BRIM_OP_APPEND:
		if (op->off_bytes != f->size || !op->len_bytes)
			m->wrong = "appended elsewhere";
		if (op->file.size_bytes > 2 * op->file.base_bytes)
			m->wrong = "grown to more than twice what it was";
		write_to(m, op, len);
		return;
	case BRIM_OP_TRUNCATE:
		if (op->off_bytes >= f->size)
			m->wrong = "cut to more than there is";
		if (op->off_bytes < op->file.base_bytes / 2)
			m->wrong = "cut to less than half of what it was";
		resize(f, (size_t)op->off_bytes);
		return;
	default:
		free(f->bytes);
		memset(f, 0, sizeof(*f));
	}
}

/* Does what a refused operation leaves, and says what that is. */
static inline uint64_t model_refuse(struct model *m, const struct brim_op *op,
				    uint64_t *state)
{
	struct model_file *f = &m->files[op->file.id % FILES];
	size_t len = (size_t)tap_below(state, op->len_bytes + 1);
	bool nothing = tap_below(state, 3) == 0;

	if (op->kind == BRIM_OP_CREATE && nothing)
		return tap_below(state, 2) ? BRIM_FILE_NONE
					   : BRIM_FILE_AS_BEFORE;
	if (nothing || op->kind == BRIM_OP_MKDIR ||
	    op->kind == BRIM_OP_TRUNCATE || op->kind == BRIM_OP_DELETE)
		return BRIM_FILE_AS_BEFORE;
	model_do(m, op, len);
	if (op->kind == BRIM_OP_APPEND)
		return op->off_bytes + len;
	if (op->kind == BRIM_OP_OVERWRITE && op->file.overwrites) {
		f->is_unknown = true;
		return op->file.size_bytes;
	}
	if (op->kind == BRIM_OP_OVERWRITE)
		resize(f, len);
	f->is_unknown = false;
	return len;
}

/* Whether a file is as the stream says. */
static inline const char *check_file(const struct model *m,
				     const struct brim_file *s)
{
	const struct model_file *f = &m->files[s->id];
	uint8_t *bytes;
	bool same;

	if (!f->bytes)
		return "the stream has a file that is not there";
	if (f->size != s->size_bytes)
		return "another size";
	if (f->is_unknown != (s->overwrites == BRIM_OVERWRITES_UNKNOWN))
		return "known and unknown differ";
	if (brim_fileset_compare(m->fs, s, 0, f->size, f->bytes) != -1)
		return "compare says another content";
	bytes = malloc(f->size + 1);
	brim_fileset_content(m->fs, s, 0, f->size, bytes);
	same = f->is_unknown || !memcmp(bytes, f->bytes, f->size);
	free(bytes);
	return same ? NULL : "another content";
}

static inline const char *check_all(const struct model *m,
				    const struct brim_stream *s)
{
	struct brim_stream_totals t = { .struct_bytes = sizeof(t) };
	uint64_t k, files = 0, bytes = 0;
	struct brim_file f, again;
	const char *wrong = m->wrong;

	brim_stream_totals(s, &t);
	for (k = 0; k < FILES; k++) {
		files += m->files[k].bytes != NULL;
		bytes += m->files[k].size;
		if (!m->files[k].bytes &&
		    brim_stream_find(s, (uint32_t)k, &f) != -ENOENT)
			wrong = "a file that is not there is found";
	}
	if (t.live_files != files || t.live_bytes != bytes)
		wrong = "other totals";
	for (k = 0; k < t.live_files && !wrong; k++) {
		if (brim_stream_file(s, k, &f) < 0 ||
		    brim_stream_find(s, f.id, &again) < 0 ||
		    !is_same(&f, &again))
			return "file and find differ";
		wrong = check_file(m, &f);
	}
	return brim_stream_file(s, t.live_files, &f) == -ENOENT
		       ? wrong
		       : "one file too many";
}

#endif /* BRIM_STREAM_MODEL_H */
