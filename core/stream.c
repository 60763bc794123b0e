/* SPDX-License-Identifier: MIT */
/*
 * stream.c: the operations of a stream, drawn one by one from the seed and the
 * files as they stand, never stored. Called by a submitter's thread for every
 * operation, by replays and by verification. Sizes are bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stream.h"

/* More overwrites than this would not be told from BRIM_OVERWRITES_UNKNOWN. */
#define OVERWRITES_MAX (BRIM_OVERWRITES_UNKNOWN - 1)
/*
 * Names are used again once so many are free, and a 16th of those in use: a
 * name just given up is not wanted back while its deletion is in flight.
 */
#define FREE_NAMES 1024u

/* ---------------------------------------------------------------- creation */

int brim_stream_create(struct brim_stream **out, const struct brim_fileset *fs,
		       uint32_t stream, struct brim_err *e)
{
	struct brim_stream *s;

	*out = NULL;
	if (stream >= fs->streams)
		return brim__errf(e, -EINVAL, "stream",
				  "the fileset has %" PRIu32
				  " streams, the last is %" PRIu32,
				  fs->streams, fs->streams - 1);
	s = calloc(1, sizeof(*s));
	if (!s)
		return brim__err(e, -ENOMEM, "stream", "stream");
	brim__fileset_hold(fs);
	s->fs = fs;
	s->number = stream;
	/* Apart from the keys of its files. */
	s->key = brim__mix_in(brim__mix_in(~fs->seed, stream), 0);
	*out = s;
	return 0;
}

int brim_stream_copy(struct brim_stream **out, const struct brim_stream *s,
		     struct brim_err *e)
{
	struct brim_stream *copy;
	int ret;

	*out = NULL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return brim__err(e, -ENOMEM, "stream", "stream");
	*copy = *s;
	ret = brim__table_copy(&copy->files, &s->files, e);
	if (ret < 0) {
		free(copy);
		return ret;
	}
	brim__fileset_hold(copy->fs);
	*out = copy;
	return 0;
}

void brim_stream_free(struct brim_stream *s)
{
	if (!s)
		return;
	brim__table_free(&s->files);
	/* Our own hold, which brim__fileset_hold took on the const one. */
	brim_fileset_free((struct brim_fileset *)(uintptr_t)s->fs);
	free(s);
}

int brim_stream_phase(struct brim_stream *s, const struct brim_phase *p,
		      struct brim_err *e)
{
	struct brim_phase own;
	int ret = brim__options_take(&own, sizeof(own), p, "phase", e);

	if (ret < 0)
		return ret;
	if (own.band_ppm > 1000000)
		return brim__errf(e, -EINVAL, "phase",
				  "band_ppm is at most 1000000");
	if (own.live_bytes > BRIM_MAX_BYTES)
		return brim__errf(e, -EINVAL, "phase",
				  "live_bytes is at most 2^63-1");
	s->phase = own;
	s->is_mkdir_refused = false;
	return 0;
}

/* ----------------------------------------------------------- what to do next */

/* Random bits for one operation: as many as are asked for. */
static uint64_t next_bits(uint64_t *state)
{
	return brim__mix(*state += BRIM__GOLDEN);
}

static enum brim_op_kind draw_kind(const struct brim_stream *s, uint64_t bits)
{
	const uint32_t *w = s->phase.weights;
	uint64_t sum = 0, at;
	int kind;

	for (kind = BRIM_OP_CREATE; kind < BRIM_OP_KINDS; kind++)
		sum += w[kind];
	if (!sum)
		return BRIM_OP_CREATE;
	at = brim__mix_below(bits, sum);
	for (kind = BRIM_OP_CREATE; at >= w[kind]; kind++)
		at -= w[kind];
	return (enum brim_op_kind)kind;
}

/*
 * Turns what may lead away from the band into what leads back. Replacing is as
 * likely to lead either way, so it counts among both.
 */
static enum brim_op_kind keep_band(const struct brim_stream *s,
				   enum brim_op_kind kind)
{
	uint64_t want = s->phase.live_bytes;
	uint64_t slack = want / 1000000 * s->phase.band_ppm +
			 want % 1000000 * s->phase.band_ppm / 1000000;

	if (!want)
		return kind;
	if (s->files.live_bytes > want + slack &&
	    (kind == BRIM_OP_CREATE || kind == BRIM_OP_APPEND ||
	     kind == BRIM_OP_REPLACE))
		return BRIM_OP_DELETE;
	if (s->files.live_bytes < want - slack &&
	    (kind == BRIM_OP_DELETE || kind == BRIM_OP_TRUNCATE ||
	     kind == BRIM_OP_REPLACE))
		return BRIM_OP_CREATE;
	return kind;
}

/* A name that no file has: a free one whose directory exists, or a new one. */
static uint32_t draw_name(const struct brim_stream *s, uint64_t *state)
{
	const struct brim__table *t = &s->files;
	uint32_t unused = t->count - t->live, id, k;
	bool is_needed = s->is_mkdir_refused || t->count == UINT32_MAX;

	if (!unused || (!is_needed && unused < FREE_NAMES + t->live / 16))
		return t->count;
	for (k = 0; k < 16; k++) {
		id = *brim__slot(
			t, t->live + (uint32_t)brim__mix_below(next_bits(state),
							       unused));
		if (id < s->made_ids)
			return id;
	}
	return is_needed && t->count == UINT32_MAX ? id : t->count;
}

struct brim_file brim__stream_file(const struct brim_stream *s, uint32_t id)
{
	const struct brim__entry *x = brim__entry(&s->files, id);
	struct brim_file f = { .stream = s->number,
			       .id = id,
			       .version = x->version,
			       .overwrites = x->overwrites,
			       .base_bytes = x->base_bytes,
			       .size_bytes = x->size_bytes };

	return f;
}

/* The file as a version of it that is written as a whole. */
static void write_whole(const struct brim_stream *s, struct brim_file *f,
			uint16_t version)
{
	uint64_t size = brim_fileset_size(s->fs, f->stream, f->id, version);

	if (s->phase.max_file_bytes)
		size = BRIM__MIN(size, s->phase.max_file_bytes);
	f->version = version;
	f->overwrites = 0;
	f->base_bytes = size;
	f->size_bytes = size;
}

/* ------------------------------------------------------------------ changes */

/* How far a file can still grow, and what is the least it can be cut to. */
static uint64_t room_of(const struct brim_file *f)
{
	uint64_t most = 2 * f->base_bytes;

	return most > f->size_bytes ? most - f->size_bytes : 0;
}

static uint64_t least_of(const struct brim_file *f)
{
	return f->base_bytes - f->base_bytes / 2;
}

static void do_overwrite(const struct brim_stream *s, struct brim_op *op)
{
	struct brim_file *f = &op->file;
	uint64_t blocks = brim__overwrite_blocks(f->base_bytes), first, count;

	if (!blocks || f->overwrites >= OVERWRITES_MAX) {
		f->version++;
		f->overwrites = 0;
		f->base_bytes = f->size_bytes;
		op->len_bytes = f->size_bytes;
		return;
	}
	f->overwrites++;
	brim__overwrite_range(
		brim__file_key(s->fs, f->stream, f->id, f->version), blocks,
		f->overwrites, &first, &count);
	op->off_bytes = first * BRIM__OVERWRITE_BYTES;
	op->len_bytes = count * BRIM__OVERWRITE_BYTES;
}

/* At most a quarter of the file at a time, a page where that is more. */
static void do_append(struct brim_op *op, uint64_t bits)
{
	struct brim_file *f = &op->file;
	uint64_t most = BRIM__MAX(f->base_bytes / 4, 4096);

	op->off_bytes = f->size_bytes;
	op->len_bytes = 1 + brim__mix_below(bits, BRIM__MIN(most, room_of(f)));
	f->size_bytes += op->len_bytes;
}

static void do_truncate(struct brim_op *op, uint64_t bits)
{
	struct brim_file *f = &op->file;
	uint64_t least = least_of(f);

	f->size_bytes = least + brim__mix_below(bits, f->size_bytes - least);
	op->off_bytes = f->size_bytes;
}

/* What can neither grow nor shrink is replaced; what cannot one does the other.
 */
static enum brim_op_kind possible(enum brim_op_kind kind,
				  const struct brim_file *f)
{
	if (kind != BRIM_OP_APPEND && kind != BRIM_OP_TRUNCATE)
		return kind;
	if (!f->base_bytes)
		return BRIM_OP_REPLACE;
	if (kind == BRIM_OP_APPEND && !room_of(f))
		return BRIM_OP_TRUNCATE;
	if (kind == BRIM_OP_TRUNCATE && f->size_bytes <= least_of(f))
		return BRIM_OP_APPEND;
	return kind;
}

/* An operation on one of the files there are. */
static void change(struct brim_stream *s, struct brim_op *op,
		   enum brim_op_kind kind, uint64_t *state)
{
	struct brim__table *t = &s->files;
	uint32_t k = (uint32_t)brim__mix_below(next_bits(state), t->live);

	op->file = brim__stream_file(s, *brim__slot(t, k));
	op->before = op->file;
	op->kind = possible(kind, &op->file);
	switch (op->kind) {
	case BRIM_OP_OVERWRITE:
		do_overwrite(s, op);
		break;
	case BRIM_OP_APPEND:
		do_append(op, next_bits(state));
		break;
	case BRIM_OP_TRUNCATE:
		do_truncate(op, next_bits(state));
		break;
	case BRIM_OP_REPLACE:
		write_whole(s, &op->file, (uint16_t)(op->file.version + 1));
		op->len_bytes = op->file.size_bytes;
		break;
	default: /* DELETE: nothing else comes here */
		brim__table_release(t, op->file.id);
		return;
	}
	brim__table_set(t, &op->file);
}

/* ----------------------------------------------------------------- creation */

/* The next directory on the way to those that create_id lies in. */
static void make_dir(struct brim_stream *s, struct brim_op *op)
{
	op->kind = BRIM_OP_MKDIR;
	op->file.stream = s->number;
	op->file.id = (uint32_t)s->made_ids;
	op->dir_level = (int)s->made_level;
	if (s->made_level++ < s->fs->depth)
		return;
	s->made_ids += s->fs->files_per_dir;
	if (s->made_ids <= UINT32_MAX)
		s->made_level =
			brim__fileset_new_level(s->fs, (uint32_t)s->made_ids);
}

static int make_file(struct brim_stream *s, struct brim_op *op,
		     struct brim_err *e)
{
	struct brim__table *t = &s->files;
	bool is_new = s->create_id == t->count;
	uint16_t version = 0;
	int ret;

	if (is_new) {
		ret = brim__table_add(t, e);
		if (ret < 0)
			return ret;
	} else {
		version = (uint16_t)(brim__entry(t, s->create_id)->version + 1);
		brim__table_revive(t, s->create_id);
	}
	op->kind = BRIM_OP_CREATE;
	op->file.stream = s->number;
	op->file.id = s->create_id;
	write_whole(s, &op->file, version);
	op->len_bytes = op->file.size_bytes;
	brim__table_set(t, &op->file);
	s->is_creating = false;
	return 0;
}

int brim_stream_next(struct brim_stream *s, struct brim_op *out,
		     struct brim_err *e)
{
	uint64_t state = brim__mix_in(s->key, s->totals.next_index);
	enum brim_op_kind kind = BRIM_OP_CREATE;
	int ret = 0;

	memset(out, 0, sizeof(*out));
	out->index = s->totals.next_index;
	/* A deletion that failed may have brought the name back. */
	if (s->is_creating && brim__is_live(&s->files, s->create_id))
		s->is_creating = false;
	if (!s->is_creating)
		kind = keep_band(s, draw_kind(s, next_bits(&state)));
	if (kind != BRIM_OP_CREATE && s->files.live) {
		change(s, out, kind, &state);
	} else {
		if (!s->is_creating)
			s->create_id = draw_name(s, &state);
		s->is_creating = true;
		if (s->create_id >= s->made_ids)
			make_dir(s, out);
		else
			ret = make_file(s, out, e);
	}
	if (ret < 0)
		return ret;
	s->totals.next_index++;
	s->totals.ops[out->kind]++;
	s->totals.written_bytes += out->len_bytes;
	return 0;
}

/* ---------------------------------------------------------------- questions */

void brim_stream_totals(const struct brim_stream *s,
			struct brim_stream_totals *out)
{
	struct brim_stream_totals all = s->totals;
	size_t n = BRIM__MIN(out->struct_bytes, sizeof(all));

	all.struct_bytes = out->struct_bytes;
	all.live_files = s->files.live;
	all.live_bytes = s->files.live_bytes;
	memcpy(out, &all, n);
}

int brim_stream_file(const struct brim_stream *s, uint64_t k,
		     struct brim_file *out)
{
	if (k >= s->files.live)
		return -ENOENT;
	*out = brim__stream_file(s, *brim__slot(&s->files, (uint32_t)k));
	return 0;
}

int brim_stream_find(const struct brim_stream *s, uint32_t id,
		     struct brim_file *out)
{
	if (!brim__is_live(&s->files, id))
		return -ENOENT;
	*out = brim__stream_file(s, id);
	return 0;
}
