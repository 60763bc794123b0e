/* SPDX-License-Identifier: MIT */
/*
 * objects.c: objects of fixed size that hold extents, by ranges: what they look
 * like, reading them at full queue depth, and what must hold once the trees
 * that begin in them were walked. Called by the binding; object_fork.c looks at
 * single ones. Blocks have the number of their group in their high bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

#define RANGES_MAX 4096u
#define OBJECTS_MAX 64u /* of a range: bits of its masks */

/* ------------------------------------------------------------ descriptions */

static int refuse(struct brim_err *e, const char *what)
{
	return brim__errf(e, -EINVAL, "objects", "%s", what);
}

static int resolve_uuid(struct brim__objects *x, const struct brim_object *o,
			struct brim_err *e)
{
	const struct brim_field *f;
	int i;

	if (!o->uuid)
		return 0;
	i = brim_layout_find(o->layout, o->uuid);
	f = i < 0 ? NULL : brim_layout_field(o->layout, (size_t)i);
	if (!f || f->endian || f->record || f->width_bytes > sizeof(x->uuid) ||
	    !o->uuid_bytes)
		return refuse(e, "the field of the uuid is plain bytes");
	x->uuid_at = f->off_bytes;
	x->uuid_len = f->width_bytes;
	memcpy(x->uuid, o->uuid_bytes, x->uuid_len);
	return 0;
}

static int resolve_fields(struct brim__objects *x, const struct brim_object *o,
			  struct brim_err *e)
{
	const struct brim_layout *l = o->layout;
	int i, ret;

	if ((ret = brim__walk_place(&x->magic, l, o->magic, e)) < 0 ||
	    (ret = brim__walk_place(&x->number, l, o->number, e)) < 0 ||
	    (ret = brim__walk_place(&x->use, l, o->use, e)) < 0 ||
	    (ret = brim__walk_place(&x->none, l, o->none, e)) < 0 ||
	    (ret = brim__walk_place(&x->blocks, l, o->blocks, e)) < 0 ||
	    (ret = brim__walk_place(&x->split, l, o->split, e)) < 0 ||
	    (ret = brim__walk_place(&x->wide, l, o->wide.field, e)) < 0 ||
	    (ret = brim__walk_place(&x->away, l, o->away.field, e)) < 0)
		return ret;
	for (i = 0; i < 2; i++) {
		const struct brim_object_fork *f = &o->fork[i];
		struct brim__object_places *p = &x->fork[i];

		if ((ret = brim__walk_place(&p->format, l, f->format, e)) < 0 ||
		    (ret = brim__walk_place(&p->count, l, f->count, e)) < 0 ||
		    (ret = brim__walk_place(&p->wide, l, f->wide_count, e)) < 0)
			return ret;
		if (!p->format.width_bytes || !p->count.width_bytes)
			return refuse(e, "forks have a format and a count");
		p->formats = f->formats;
		p->tag = f->tag;
	}
	if (!x->magic.width_bytes || !x->use.width_bytes ||
	    !x->number.width_bytes)
		return refuse(e, "objects have a magic, a number, a use");
	i = brim_layout_find(l, o->magic);
	x->magic_value = (uint64_t)brim_layout_field(l, (size_t)i)->value &
			 x->magic.all;
	return resolve_uuid(x, o, e);
}

/* The root has the fields of the tree's blocks, where its own layout says. */
static int resolve_root(struct brim__objects *x, const struct brim_walk *w,
			const struct brim_object *o, struct brim_err *e)
{
	const struct brim__walk_kind *k;
	int ret, i;

	if (o->tree >= w->kind_count || !o->root)
		return refuse(e, "no such kind of tree");
	k = &w->kinds[o->tree];
	if (k->key_fields != 1 || k->record_bytes != o->record.record_bytes)
		return refuse(e, "the tree has one key field and its records");
	if ((ret = brim__walk_place(&x->root_level, o->root, k->level.name,
				    e)) < 0 ||
	    (ret = brim__walk_place(&x->root_count, o->root, k->count.name,
				    e)) < 0)
		return ret;
	i = brim_layout_find(o->root, "keys");
	if (i < 0)
		return refuse(e, "the root has keys");
	x->root_at = brim_layout_field(o->root, (size_t)i)->off_bytes;
	return 0;
}

static int check_bits(const struct brim_packed *r, struct brim_err *e)
{
	const struct brim_bits *b[] = { &r->start, &r->count, &r->offset,
					&r->flag };
	size_t i;

	if (!r->record_bytes || r->record_bytes > 64)
		return refuse(e, "packed records have 1 .. 64 bytes");
	for (i = 0; i < 4; i++)
		if (b[i]->width > 64 || b[i]->at > 8 * r->record_bytes ||
		    b[i]->width > 8 * r->record_bytes - b[i]->at)
			return refuse(e, "bits outside of their record");
	return 0;
}

static int check_sizes(const struct brim_walk *w, const struct brim_object *o,
		       struct brim_err *e)
{
	if (!o->layout || !brim__layout_fits(o->layout, o->object_bytes) ||
	    o->body_at >= o->object_bytes || o->object_bytes > w->read_bytes)
		return refuse(e, "objects fit their layout and one read");
	if (o->group_log2 > 56 || !o->group_count ||
	    o->group_blocks > 1ull << o->group_log2 ||
	    o->last_group_blocks > o->group_blocks ||
	    o->group_count > UINT64_MAX >> (o->group_log2 + 1))
		return refuse(e, "blocks of groups do not fit group_log2");
	return check_bits(&o->record, e);
}

int brim_walk_object(struct brim_walk *w, const struct brim_object *object,
		     struct brim_err *e)
{
	struct brim__objects *x;
	int ret;

	if (w->objects)
		return refuse(e, "objects were described before");
	x = calloc(1, sizeof(*x));
	if (!x)
		return brim__err(e, -ENOMEM, "objects", "describe");
	x->group_bytes = w->group_bytes;
	x->block_bytes = w->block_bytes;
	ret = brim__options_take(&x->o, sizeof(x->o), object, "objects", e);
	if (!ret)
		ret = check_sizes(w, &x->o, e);
	if (!ret)
		ret = resolve_fields(x, &x->o, e);
	if (!ret)
		ret = resolve_root(x, w, &x->o, e);
	if (ret < 0)
		free(x);
	else
		w->objects = x;
	return ret;
}

void brim__objects_free(struct brim__objects *x)
{
	if (!x)
		return;
	free(x->states);
	free(x->bad);
	free(x);
}

bool brim__objects_at(const struct brim__objects *x, uint64_t block,
		      uint64_t *off_bytes)
{
	const struct brim_object *o = &x->o;
	uint64_t group = block >> o->group_log2;
	uint64_t low = block & ((1ull << o->group_log2) - 1);
	bool is_last = group == o->group_count - 1;

	if (group >= o->group_count || low < o->first_block ||
	    low >= (is_last ? o->last_group_blocks : o->group_blocks))
		return false;
	*off_bytes = group * x->group_bytes + low * x->block_bytes;
	return true;
}

/* ----------------------------------------------------------------- reading */

int brim__object_bad(struct brim__objects *x, struct brim__object_state *s)
{
	if (s->is_bad)
		return 0;
	s->is_bad = true;
	if (x->counts.bad == x->bad_room) {
		size_t room = x->bad_room ? 2 * x->bad_room : 64;
		uint64_t *v = reallocarray(x->bad, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		x->bad = v;
		x->bad_room = room;
	}
	x->bad[x->counts.bad++] = s->number;
	return 0;
}

int brim_walk_bad(const struct brim_walk *w, size_t k, uint64_t *number)
{
	if (!w->objects || k >= w->objects->counts.bad)
		return -ENOENT;
	*number = w->objects->bad[k];
	return 0;
}

static uint64_t range_offset(const struct brim_walk *w, const void *ctx,
			     size_t k)
{
	(void)w;
	return ((const struct brim__objects *)ctx)->ranges[k].off_bytes;
}

static int range_done(struct brim_walk *w, void *ctx, size_t k,
		      const uint8_t *raw)
{
	struct brim__objects *x = ctx;
	const struct brim_object_range *r = &x->ranges[k];
	uint32_t i;
	int ret = 0;

	for (i = 0; i < r->count && !ret; i++)
		if (r->present >> i & 1)
			ret = brim__object_take(
				w, r->number + i, r->used >> i & 1,
				raw + (size_t)i * x->o.object_bytes);
	return ret;
}

/* A tree was walked: its own blocks, and the number of records. */
static int finish_fork(struct brim_walk *w, struct brim__object_state *s,
		       int fork)
{
	struct brim__objects *x = w->objects;
	const struct brim__walk_job *job = &w->jobs[s->fork[fork].job];
	struct brim_row row = { .count = 1, .owner = s->number };
	uint64_t k;

	if (!job->result.is_complete && brim__object_bad(x, s) < 0)
		return -ENOMEM;
	if (job->result.is_complete &&
	    s->fork[fork].found != s->fork[fork].expected)
		brim__walk_note_object(w, s->number, -1, s->fork[fork].count,
				       s->fork[fork].found,
				       s->fork[fork].expected);
	row.offset = x->fork[fork].tag | x->o.tree_tag;
	for (k = 0; k < job->result.blocks; k++) {
		row.start = job->blocks[k];
		if (brim_table_add(x->table, &row, NULL) < 0)
			return -ENOMEM;
	}
	s->blocks += job->result.blocks;
	return 0;
}

static int finish(struct brim_walk *w)
{
	struct brim__objects *x = w->objects;
	size_t k;
	int f;

	for (k = 0; k < x->state_count; k++) {
		struct brim__object_state *s = &x->states[k];

		for (f = 0; f < 2; f++)
			if (s->fork[f].job >= 0 && finish_fork(w, s, f) < 0)
				return -ENOMEM;
		if (!s->is_bad && x->blocks.width_bytes &&
		    s->blocks != s->blocks_expected)
			brim__object_note(w, s, &x->blocks, s->blocks,
					  s->blocks_expected);
	}
	return 0;
}

static int check_ranges(const struct brim_walk *w,
			const struct brim_object_range *v, size_t n,
			struct brim_err *e)
{
	uint64_t size = w->dev->info.size_bytes, len;
	size_t k;

	if (!w->objects || w->next_count || n > RANGES_MAX)
		return refuse(e, "describe objects first, run walks before, "
				 "4096 ranges at most");
	for (k = 0; k < n; k++) {
		len = (uint64_t)v[k].count * w->objects->o.object_bytes;
		if (!v[k].count || v[k].count > OBJECTS_MAX ||
		    v[k].count != v[0].count || len > w->read_bytes)
			return refuse(e, "ranges have the same count, 1 .. 64, "
					 "and read_bytes at most");
		if (len > size || v[k].off_bytes > size - len)
			return brim__err_at(e, -ERANGE, "objects",
					    v[k].off_bytes,
					    "objects past the device's end");
	}
	return 0;
}

int brim_walk_objects(struct brim_walk *w, const struct brim_object_range *v,
		      size_t n, struct brim_table *t,
		      struct brim_object_counts *counts, struct brim_err *e)
{
	struct brim__objects *x = w->objects;
	struct brim__walk_reader r = {
		.count = n, .offset = range_offset, .done = range_done, .ctx = x
	};
	size_t mark = w->job_count, rows = brim_table_count(t);
	int ret = check_ranges(w, v, n, e);

	if (ret < 0 || !n)
		return ret;
	r.len_bytes = v[0].count * x->o.object_bytes;
	x->ranges = v;
	x->table = t;
	x->state_count = 0;
	x->counts = (struct brim_object_counts){ 0 };
	ret = brim__walk_read_all(w, &r, e);
	if (!ret)
		ret = brim_walk_run(w, e);
	if (!ret && finish(w) < 0)
		ret = brim__err(e, -ENOMEM, "objects", "finish");
	brim__walk_forget(w, mark);
	if (ret < 0)
		w->next_count = 0; /* items of jobs that are no more */
	x->counts.rows = brim_table_count(t) - rows;
	*counts = x->counts;
	return ret;
}
