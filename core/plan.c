/* SPDX-License-Identifier: MIT */
/*
 * plan.c: building a plan, and asking it: what it holds, what bytes [a,b)
 * shall be. Overlaps are plan_overlap.c, walking it as I/Os cursor.c. Called
 * by image.c, device_plan.c, run.c and the binding. Offsets are bytes on the
 * volume.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

int brim_plan_create(struct brim_plan **out, const char *name,
		     uint64_t size_bytes, struct brim_err *e)
{
	struct brim_plan *p;

	*out = NULL;
	if (!name || !*name || !size_bytes || size_bytes > BRIM_MAX_BYTES)
		return brim__errf(
			e, -EINVAL, "plan",
			"a plan needs a name and a size of 1 .. 2^63-1 bytes");
	p = calloc(1, sizeof(*p));
	if (p)
		p->name = strdup(name);
	if (!p || !p->name) {
		free(p);
		return brim__err(e, -ENOMEM, "plan", name);
	}
	p->holders = 1;
	p->size_bytes = size_bytes;
	*out = p;
	return 0;
}

void brim_plan_free(struct brim_plan *p)
{
	size_t i;

	if (!p || __atomic_sub_fetch(&p->holders, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (i = 0; i < p->piece_count; i++) {
		free(p->pieces[i].name);
		brim_stamp_free(p->pieces[i].stamp);
		brim__spans_free(&p->pieces[i].hidden);
		brim__spans_free(&p->pieces[i].shadow);
	}
	for (i = 0; i < p->phase_count; i++)
		free(p->phases[i]);
	for (i = 0; i < p->note_count; i++) {
		free(p->notes[i].key);
		free(p->notes[i].text);
	}
	free(p->pieces);
	free(p->phases);
	free(p->notes);
	free(p->name);
	free(p);
}

void brim__plan_hold(const struct brim_plan *p)
{
	/* How many hold it is no part of what the plan says. */
	uint32_t *holders = (uint32_t *)(uintptr_t)&p->holders;

	__atomic_add_fetch(holders, 1, __ATOMIC_RELAXED);
}

static int plan_open(const struct brim_plan *p, struct brim_err *e)
{
	if (p->sealed)
		return brim__errf(e, -EINVAL, "plan",
				  "plan '%s' is sealed; nothing can be added",
				  p->name);
	return 0;
}

int brim_plan_phase(struct brim_plan *p, const char *name, struct brim_err *e)
{
	char **v;

	if (plan_open(p, e) < 0)
		return -EINVAL;
	v = reallocarray(p->phases, p->phase_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "plan", name);
	p->phases = v;
	v[p->phase_count] = strdup(name);
	if (!v[p->phase_count])
		return brim__err(e, -ENOMEM, "plan", name);
	p->phase_count++;
	return 0;
}

/* Appends an empty piece to the current phase. */
static struct brim__piece *piece_add(struct brim_plan *p, const char *name,
				     struct brim_err *e)
{
	struct brim__piece *piece;

	if (plan_open(p, e) < 0 ||
	    (!p->phase_count && brim_plan_phase(p, "write", e) < 0))
		return NULL;
	if (p->piece_count == p->piece_room) {
		size_t room = p->piece_room ? 2 * p->piece_room : 16;

		piece = reallocarray(p->pieces, room, sizeof(*piece));
		if (!piece)
			goto nomem;
		p->pieces = piece;
		p->piece_room = room;
	}
	piece = &p->pieces[p->piece_count];
	memset(piece, 0, sizeof(*piece));
	piece->name = strdup(name);
	if (!piece->name)
		goto nomem;
	piece->phase = (uint32_t)p->phase_count - 1;
	p->piece_count++;
	return piece;
nomem:
	brim__err(e, -ENOMEM, "plan", name);
	return NULL;
}

int brim_plan_zero(struct brim_plan *p, uint64_t off_bytes, uint64_t len_bytes,
		   const char *name, struct brim_err *e)
{
	struct brim__piece *piece;

	if (!len_bytes || len_bytes > p->size_bytes ||
	    off_bytes > p->size_bytes - len_bytes)
		return brim__errf(
			e, -ERANGE, "plan",
			"zeros '%s': %" PRIu64 " bytes at %" PRIu64
			" lie outside of the %" PRIu64 " bytes of plan '%s'",
			name, len_bytes, off_bytes, p->size_bytes, p->name);
	piece = piece_add(p, name, e);
	if (!piece)
		return p->sealed ? -EINVAL : -ENOMEM;
	piece->is_zero = true;
	piece->off_bytes = off_bytes;
	piece->len_bytes = len_bytes;
	piece->count = 1;
	return 0;
}

/* Whether all instances lie on the volume and none on the next. */
static int each_check(const struct brim_plan *p, const struct brim_stamp *s,
		      uint64_t off_bytes, uint64_t stride_bytes,
		      const char *name, struct brim_err *e)
{
	uint64_t last = s->first + s->count - 1;
	unsigned __int128 end;

	if (!s->sealed)
		return brim__errf(e, -EINVAL, "plan",
				  "'%s': the stamp is not sealed yet", name);
	if (s->count > 1 &&
	    brim__stamp_end(s) - brim__stamp_begin(s) > stride_bytes)
		return brim__errf(
			e, -EINVAL, "plan",
			"'%s': an instance of %" PRIu64
			" bytes is longer than the stride of %" PRIu64,
			name, brim__stamp_end(s) - brim__stamp_begin(s),
			stride_bytes);
	end = (unsigned __int128)stride_bytes * last + off_bytes +
	      brim__stamp_end(s);
	if (end > p->size_bytes)
		return brim__errf(e, -ERANGE, "plan",
				  "'%s': instance %" PRIu64
				  " ends past the %" PRIu64
				  " bytes of plan '%s'",
				  name, last, p->size_bytes, p->name);
	return 0;
}

int brim_plan_each(struct brim_plan *p, struct brim_stamp *s,
		   uint64_t off_bytes, uint64_t stride_bytes, const char *name,
		   int groups, struct brim_err *e)
{
	struct brim__piece *piece;
	int ret;

	ret = each_check(p, s, off_bytes, stride_bytes, name, e);
	if (ret < 0)
		goto err;
	piece = piece_add(p, name, e);
	if (!piece) {
		ret = p->sealed ? -EINVAL : -ENOMEM;
		goto err;
	}
	piece->stamp = s;
	piece->is_groups = groups;
	piece->off_bytes = off_bytes;
	piece->stride_bytes = stride_bytes;
	piece->first = s->first;
	piece->count = s->count;
	return 0;
err:
	brim_stamp_free(s);
	return ret;
}

static struct brim__note *note_find(const struct brim_plan *p, const char *key)
{
	size_t i;

	for (i = 0; i < p->note_count; i++)
		if (!strcmp(p->notes[i].key, key))
			return &p->notes[i];
	return NULL;
}

int brim_plan_set_note(struct brim_plan *p, const char *key, const char *text,
		       struct brim_err *e)
{
	struct brim__note *n = note_find(p, key), *v;
	char *copy = NULL;

	if (plan_open(p, e) < 0)
		return -EINVAL;
	if (text) {
		copy = strdup(text);
		if (!copy)
			return brim__err(e, -ENOMEM, "plan", key);
	}
	if (n) {
		free(n->text);
		n->text = copy;
		return 0;
	}
	v = reallocarray(p->notes, p->note_count + 1, sizeof(*v));
	if (v)
		p->notes = v;
	key = v ? strdup(key) : NULL;
	if (!key) {
		free(copy);
		return brim__err(e, -ENOMEM, "plan", "note");
	}
	p->notes[p->note_count].key = (char *)(uintptr_t)key;
	p->notes[p->note_count++].text = copy;
	return 0;
}

const char *brim_plan_note(const struct brim_plan *p, const char *key)
{
	const struct brim__note *n = note_find(p, key);

	return n ? n->text : NULL;
}

int brim_plan_seal(struct brim_plan *p, struct brim_err *e)
{
	int ret;

	if (plan_open(p, e) < 0)
		return -EINVAL;
	if (!p->phase_count && brim_plan_phase(p, "write", e) < 0)
		return -ENOMEM;
	ret = brim__plan_overlaps(p, e);
	if (ret < 0)
		return ret;
	p->sealed = true;
	return 0;
}

const char *brim_plan_name(const struct brim_plan *p)
{
	return p->name;
}

uint64_t brim_plan_size_bytes(const struct brim_plan *p)
{
	return p->size_bytes;
}

static uint64_t spans_total(const struct brim__spans *s)
{
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < s->n; i++)
		total += s->v[i].to - s->v[i].from;
	return total;
}

int brim_plan_piece(const struct brim_plan *p, size_t i,
		    struct brim_piece_info *out)
{
	const struct brim__piece *piece;

	if (i >= p->piece_count)
		return -ENOENT;
	piece = &p->pieces[i];
	memset(out, 0, sizeof(*out));
	out->phase = p->phases[piece->phase];
	out->name = piece->name;
	out->is_zero = piece->is_zero;
	out->is_groups = piece->is_groups;
	out->off_bytes = piece->off_bytes;
	out->len_bytes = piece->is_zero ? piece->len_bytes
					: piece->stamp->total_bytes;
	out->stride_bytes = piece->stride_bytes;
	out->first = piece->first;
	out->count = piece->count;
	out->hidden = spans_total(&piece->hidden);
	out->extents = piece->is_zero ? 0 : piece->stamp->extent_count;
	return 0;
}

int brim_plan_region(const struct brim_plan *p, size_t i, size_t k,
		     const char **label, uint64_t *off_bytes,
		     uint32_t *len_bytes)
{
	const struct brim__region *r;

	if (i >= p->piece_count || p->pieces[i].is_zero ||
	    k >= p->pieces[i].stamp->region_count)
		return -ENOENT;
	r = &p->pieces[i].stamp->regions[k];
	*label = r->label;
	*off_bytes = r->off_bytes;
	*len_bytes = r->len_bytes;
	return 0;
}

/* The largest power of two that divides all offsets and lengths so far. */
static void totals_align(struct brim_plan_totals *t, uint64_t n)
{
	while (n % t->align_bytes)
		t->align_bytes >>= 1;
}

static void totals_piece(const struct brim__piece *piece, uint32_t max_io_bytes,
			 struct brim_plan_totals *t)
{
	uint64_t laid = piece->count - spans_total(&piece->hidden);
	const struct brim_stamp *s = piece->stamp;
	size_t x;

	totals_align(t, piece->off_bytes);
	if (piece->is_zero) {
		t->zero_bytes += piece->len_bytes - spans_total(&piece->hidden);
		totals_align(t, piece->len_bytes);
		return;
	}
	totals_align(t, piece->stride_bytes * piece->first);
	if (piece->count > 1)
		totals_align(t, piece->stride_bytes);
	t->groups += piece->is_groups ? laid : 0;
	t->write_bytes += laid * s->total_bytes;
	for (x = 0; x < s->extent_count; x++) {
		uint64_t len = s->extents[x].len_bytes;

		totals_align(t, s->extents[x].off_bytes);
		totals_align(t, len);
		t->writes += laid * ((len + max_io_bytes - 1) / max_io_bytes);
	}
}

static bool piece_is_dense(const struct brim__piece *piece,
			   uint32_t max_io_bytes)
{
	return piece->stamp->extent_count == 1 &&
	       piece->stamp->extents[0].len_bytes == piece->stride_bytes &&
	       piece->stride_bytes <= max_io_bytes;
}

/*
 * The I/Os the cursor makes of a range of zeros, or of instances that lie side
 * by side with per_io of them in one: what is hidden cuts them into stretches.
 */
static uint64_t totals_stretches(const struct brim__piece *piece, uint64_t end,
				 uint64_t per_io)
{
	uint64_t at = piece->first, ios = 0;
	size_t i;

	for (i = 0; i < piece->hidden.n && at < end; i++) {
		const struct brim__span *s = &piece->hidden.v[i];

		if (s->from > at)
			ios += (s->from - at - 1) / per_io + 1;
		at = BRIM__MAX(at, s->to);
	}
	return at < end ? ios + (end - at - 1) / per_io + 1 : ios;
}

void brim_plan_totals(const struct brim_plan *p, uint32_t max_io_bytes,
		      struct brim_plan_totals *out)
{
	size_t i;

	if (!max_io_bytes)
		max_io_bytes = BRIM__IO_BYTES_DEFAULT;
	memset(out, 0, sizeof(*out));
	out->phases = p->phase_count;
	out->pieces = p->piece_count;
	out->align_bytes = 1u << 30;
	for (i = 0; i < p->piece_count; i++) {
		const struct brim__piece *piece = &p->pieces[i];
		uint64_t before = out->writes;

		totals_piece(piece, max_io_bytes, out);
		if (piece->is_zero)
			out->zero_ranges += totals_stretches(
				piece, piece->len_bytes, UINT64_MAX);
		else if (piece_is_dense(piece, max_io_bytes))
			out->writes =
				before +
				totals_stretches(
					piece, piece->first + piece->count,
					max_io_bytes / piece->stride_bytes);
	}
}

/* The part [from, to) of the volume as seen by one reading. */
struct reading {
	uint64_t from, to;
	uint8_t *buf;
};

static void read_zero(const struct brim__piece *piece, const struct reading *r)
{
	uint64_t from = BRIM__MAX(r->from, piece->off_bytes);
	uint64_t to = BRIM__MIN(r->to, piece->off_bytes + piece->len_bytes);

	if (from < to)
		memset(r->buf + (from - r->from), 0, to - from);
}

static void read_instance(const struct brim__piece *piece, uint64_t i,
			  const struct reading *r)
{
	const struct brim_stamp *s = piece->stamp;
	uint64_t base = piece->off_bytes + piece->stride_bytes * i;
	size_t x = r->from > base ? brim__extent_seek(s, r->from - base) : 0;

	for (; x < s->extent_count; x++) {
		uint64_t begin = base + s->extents[x].off_bytes;
		uint64_t from = BRIM__MAX(r->from, begin);
		uint64_t to = BRIM__MIN(r->to, begin + s->extents[x].len_bytes);

		if (begin >= r->to)
			break;
		if (from < to)
			brim_stamp_render(s, x, i, (uint32_t)(from - begin),
					  (uint32_t)(to - from),
					  r->buf + (from - r->from), 1);
	}
}

static void read_stamp(const struct brim__piece *piece, const struct reading *r)
{
	uint64_t i, end;

	brim__piece_touch(piece, r->from, r->to, &i, &end);
	for (; i < end; i++)
		read_instance(piece, i, r);
}

int brim_plan_read(const struct brim_plan *p, uint64_t off_bytes,
		   size_t len_bytes, void *buf, struct brim_err *e)
{
	struct reading r = { off_bytes, off_bytes + len_bytes, buf };
	size_t i;

	if (!p->sealed)
		return brim__errf(e, -EINVAL, "read",
				  "plan '%s' is not sealed yet", p->name);
	if (len_bytes > p->size_bytes || off_bytes > p->size_bytes - len_bytes)
		return brim__err_at(
			e, -ERANGE, "read", off_bytes,
			"%zu bytes at %" PRIu64
			" lie past the end of '%s' (%" PRIu64 " bytes)",
			len_bytes, off_bytes, p->name, p->size_bytes);
	memset(buf, 0, len_bytes);
	if (!len_bytes)
		return 0;
	for (i = 0; i < p->piece_count; i++) {
		if (p->pieces[i].is_zero)
			read_zero(&p->pieces[i], &r);
		else
			read_stamp(&p->pieces[i], &r);
	}
	return 0;
}
