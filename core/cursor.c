/* SPDX-License-Identifier: MIT */
/*
 * cursor.c: a sealed plan as a sequence of I/Os, and the bytes of each. Called
 * by run.c for every I/O: what is asked here is asked eight million times.
 */
#include <string.h>

#include "plan.h"

void brim__cursor_init(struct brim__cursor *c, const struct brim_plan *p,
		       uint32_t phase, uint32_t max_io_bytes)
{
	memset(c, 0, sizeof(*c));
	c->plan = p;
	c->phase = phase;
	c->max_io_bytes = max_io_bytes;
	while (c->piece < p->piece_count && p->pieces[c->piece].phase != phase)
		c->piece++;
	brim__cursor_enter(c, c->piece);
}

void brim__cursor_enter(struct brim__cursor *c, size_t n)
{
	c->piece = n;
	c->at = n < c->plan->piece_count ? c->plan->pieces[n].first : 0;
	c->span = 0;
	c->extent = 0;
	c->from_bytes = 0;
}

/*
 * Moves c->at out of hidden spans and returns where the next one begins, at
 * most `end`.
 */
static uint64_t cursor_unhide(struct brim__cursor *c,
			      const struct brim__spans *hidden, uint64_t end)
{
	while (c->span < hidden->n && hidden->v[c->span].from <= c->at) {
		c->at = BRIM__MAX(c->at, hidden->v[c->span].to);
		c->span++;
	}
	return c->span < hidden->n ? hidden->v[c->span].from : end;
}

static int cursor_zero(struct brim__cursor *c, const struct brim__piece *piece,
		       struct brim__desc *out)
{
	uint64_t to = cursor_unhide(c, &piece->hidden, piece->len_bytes);

	if (c->at >= piece->len_bytes)
		return 0;
	memset(out, 0, sizeof(*out));
	out->is_zero = true;
	out->piece = (uint32_t)c->piece;
	out->off_bytes = piece->off_bytes + c->at;
	out->len_bytes = to - c->at;
	c->at = to;
	return 1;
}

/* Instances that lie side by side, rendered into one I/O. */
static void cursor_dense(struct brim__cursor *c,
			 const struct brim__piece *piece, uint64_t to,
			 struct brim__desc *out)
{
	uint64_t n = c->max_io_bytes / piece->stride_bytes;

	n = BRIM__MIN(n, to - c->at);
	out->instances = (uint32_t)n;
	out->groups = piece->is_groups ? (uint32_t)n : 0;
	out->len_bytes = n * piece->stride_bytes;
	c->at += n;
}

static void cursor_extent(struct brim__cursor *c,
			  const struct brim__piece *piece,
			  struct brim__desc *out)
{
	const struct brim_stamp *s = piece->stamp;
	uint32_t len = s->extents[c->extent].len_bytes - c->from_bytes;
	uint32_t part = BRIM__MIN(len, c->max_io_bytes);

	out->extent = c->extent;
	out->from_bytes = c->from_bytes;
	out->instances = 1;
	out->off_bytes += s->extents[c->extent].off_bytes + c->from_bytes;
	out->len_bytes = part;
	c->from_bytes += part;
	if (part < len)
		return;
	c->from_bytes = 0;
	if (++c->extent < s->extent_count)
		return;
	c->extent = 0;
	c->at++;
	out->groups = piece->is_groups ? 1 : 0;
}

static int cursor_stamp(struct brim__cursor *c, const struct brim__piece *piece,
			struct brim__desc *out)
{
	const struct brim_stamp *s = piece->stamp;
	uint64_t end = piece->first + piece->count;
	uint64_t to = cursor_unhide(c, &piece->hidden, end);

	if (c->at >= end)
		return 0;
	out->is_zero = false;
	out->piece = (uint32_t)c->piece;
	out->extent = 0;
	out->from_bytes = 0;
	out->groups = 0;
	out->instance = c->at;
	out->off_bytes = piece->off_bytes + piece->stride_bytes * c->at;
	if (s->extent_count == 1 &&
	    s->extents[0].len_bytes == piece->stride_bytes &&
	    piece->stride_bytes <= c->max_io_bytes) {
		out->off_bytes += s->extents[0].off_bytes;
		cursor_dense(c, piece, to, out);
	} else {
		cursor_extent(c, piece, out);
	}
	return 1;
}

int brim__cursor_next(struct brim__cursor *c, struct brim__desc *out)
{
	const struct brim_plan *p = c->plan;

	for (; c->piece < p->piece_count; brim__cursor_enter(c, c->piece + 1)) {
		const struct brim__piece *piece = &p->pieces[c->piece];

		if (piece->phase != c->phase)
			return 0;
		if (piece->is_zero ? cursor_zero(c, piece, out)
				   : cursor_stamp(c, piece, out))
			return 1;
	}
	return 0;
}

void brim__plan_render(const struct brim_plan *p, const struct brim__desc *d,
		       uint8_t *buf, struct brim__slot_state *state)
{
	const struct brim_stamp *s = p->pieces[d->piece].stamp;
	uint32_t each = (uint32_t)d->len_bytes / d->instances;
	bool fresh = state->stamp != s || state->extent != d->extent ||
		     state->from_bytes != d->from_bytes ||
		     state->len_bytes != each ||
		     state->instances < d->instances;
	uint32_t k;

	for (k = 0; k < d->instances; k++)
		brim_stamp_render(s, d->extent, d->instance + k, d->from_bytes,
				  each, buf + (size_t)k * each, fresh);
	if (!fresh)
		return;
	state->stamp = s;
	state->extent = d->extent;
	state->from_bytes = d->from_bytes;
	state->len_bytes = each;
	state->instances = d->instances;
}

void brim__plan_expected(const struct brim_plan *p, const struct brim__desc *d,
			 uint8_t *buf, struct brim__slot_state *state)
{
	const struct brim__spans *shadow = &p->pieces[d->piece].shadow;
	size_t n = shadow->n ? brim__spans_seek(shadow, d->instance) : 0;

	if (n == shadow->n || shadow->v[n].from >= d->instance + d->instances) {
		brim__plan_render(p, d, buf, state);
		return;
	}
	memset(state, 0, sizeof(*state));
	brim_plan_read(p, d->off_bytes, d->len_bytes, buf, NULL);
}

const char *brim__plan_label(const struct brim_plan *p,
			     const struct brim__desc *d, uint64_t off_bytes)
{
	const struct brim__piece *piece = &p->pieces[d->piece];
	const struct brim_stamp *s = piece->stamp;
	uint64_t i = d->instance, at;
	size_t k;

	if (d->is_zero)
		return piece->name;
	if (d->instances > 1)
		i += (off_bytes - d->off_bytes) / piece->stride_bytes;
	at = off_bytes - piece->off_bytes - piece->stride_bytes * i;
	for (k = 0; k < s->region_count; k++)
		if (at >= s->regions[k].off_bytes &&
		    at - s->regions[k].off_bytes < s->regions[k].len_bytes)
			return s->regions[k].label;
	return piece->name;
}
