/* SPDX-License-Identifier: MIT */
/*
 * object_fork.c: one object that holds extents: its fields by themselves, its
 * forks, their packed records, the roots of their trees. Called by objects.c,
 * and by walk.c for records of trees. Nothing here trusts what it reads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

#define LEVELS_MAX 15u /* of a tree below its root */

uint64_t brim__bits_get(const uint8_t *raw, const struct brim_bits *b)
{
	uint32_t at = b->at, left = b->width;
	uint64_t v = 0;

	while (left) {
		uint32_t room = 8 - at % 8, n = BRIM__MIN(room, left);
		uint32_t byte = (uint32_t)raw[at / 8] >> (room - n) &
				((1u << n) - 1);

		v = v << n | byte;
		at += n;
		left -= n;
	}
	return v;
}

void brim__object_note(struct brim_walk *w, const struct brim__object_state *s,
		       const struct brim__place *p, uint64_t expected,
		       uint64_t found)
{
	brim__walk_note_object(w, s->number, -1, p->name, expected, found);
}

/* ----------------------------------------------------------------- records */

/* Whether an extent lies within one group, behind what nobody may have. */
static bool is_extent(const struct brim__objects *x, uint64_t start,
		      uint64_t count)
{
	uint64_t first, last;

	return brim__objects_at(x, start, &first) &&
	       start + count - 1 >= start &&
	       brim__objects_at(x, start + count - 1, &last) &&
	       (start ^ (start + count - 1)) >> x->o.group_log2 == 0;
}

static int take_record(struct brim_walk *w, struct brim__object_state *s,
		       uint32_t fork, const uint8_t *raw, int64_t element)
{
	struct brim__objects *x = w->objects;
	const struct brim_packed *r = &x->o.record;
	uint64_t offset = brim__bits_get(raw, &r->offset);
	struct brim_row row = {
		.start = brim__bits_get(raw, &r->start),
		.count = brim__bits_get(raw, &r->count),
		.owner = s->number,
		.offset = offset | x->fork[fork].tag,
	};

	if (brim__bits_get(raw, &r->flag))
		row.offset |= x->o.flag_tag;
	if (offset < s->fork[fork].next)
		brim__walk_note_object(w, s->number, element, "order",
				       s->fork[fork].next, offset);
	s->fork[fork].next = offset + row.count;
	s->fork[fork].found++;
	s->blocks += row.count;
	if (row.count && fork == 0 && s->is_away)
		return 0;
	if (!row.count || !is_extent(x, row.start, row.count)) {
		brim__walk_note_object(w, s->number, element, "extent",
				       row.count, row.start);
		return brim__object_bad(x, s);
	}
	return brim_table_add(x->table, &row, NULL) < 0 ? -ENOMEM : 0;
}

int brim__objects_records(struct brim_walk *w, const struct brim__walk_job *job,
			  const uint8_t *raw, uint32_t count)
{
	struct brim__objects *x = w->objects;
	struct brim__object_state *s = &x->states[job->object - 1];
	uint32_t i;
	int ret = 0;

	for (i = 0; i < count && !ret; i++)
		ret = take_record(w, s, job->fork,
				  raw + (size_t)i * x->o.record.record_bytes,
				  (int64_t)s->fork[job->fork].found);
	return ret;
}

/* ------------------------------------------------------------------- forks */

/* The root's pointers become the first blocks to be read. */
static int push_pointers(struct brim_walk *w, uint32_t job, uint32_t level,
			 const uint8_t *raw, uint32_t n, uint32_t most)
{
	const struct brim__objects *x = w->objects;
	const struct brim__walk_kind *k = &w->kinds[x->o.tree];
	const uint8_t *keys = raw + x->root_at;
	const uint8_t *pointers = keys + most * k->key_bytes;
	struct brim__walk_item item = {
		.job = job,
		.level = level - 1,
		.has_key = true,
		.is_root = n == 1, /* then it may be as empty as a root */
	};
	int ret = 0;
	uint32_t i;

	for (i = 0; i < n && ret >= 0; i++) {
		item.key[0] = brim__place_get(&k->node_key[0],
					      keys + i * k->key_bytes);
		item.block = brim__place_get(
			&k->pointer, pointers + i * k->pointer.width_bytes);
		ret = brim__walk_push(w, &item, 0, i);
	}
	w->jobs[job].is_gapped = w->jobs[job].is_gapping;
	return ret;
}

/* Starts the walk of a tree whose root is a fork of room bytes. */
static int take_root(struct brim_walk *w, struct brim__object_state *s,
		     uint32_t fork, const uint8_t *raw, uint32_t room)
{
	struct brim__objects *x = w->objects;
	const struct brim__walk_kind *k = &w->kinds[x->o.tree];
	uint32_t pair = k->key_bytes + k->pointer.width_bytes;
	uint32_t most = room < x->root_at ? 0 : (room - x->root_at) / pair;
	struct brim__walk_job job = {
		.root.tree = x->o.tree,
		.root.end_block = UINT64_MAX,
		.owner = s->number,
		.object = (uint32_t)x->state_count + 1,
		.fork = fork,
	};
	uint64_t level, n;

	if (!most) {
		brim__object_note(w, s, &x->root_count, 0, room);
		return brim__object_bad(x, s);
	}
	level = brim__place_get(&x->root_level, raw);
	n = brim__place_get(&x->root_count, raw);
	if (!level || level > LEVELS_MAX) {
		brim__object_note(w, s, &x->root_level, LEVELS_MAX, level);
		return brim__object_bad(x, s);
	}
	if (!n || n > most) {
		brim__object_note(w, s, &x->root_count, most, n);
		return brim__object_bad(x, s);
	}
	s->fork[fork].job = brim__walk_add_job(w, &job);
	if (s->fork[fork].job < 0)
		return -ENOMEM;
	return push_pointers(w, (uint32_t)s->fork[fork].job, (uint32_t)level,
			     raw, (uint32_t)n, most);
}

static int take_list(struct brim_walk *w, struct brim__object_state *s,
		     uint32_t fork, const uint8_t *raw, uint32_t room,
		     const struct brim__place *count)
{
	struct brim__objects *x = w->objects;
	uint32_t most = room / x->o.record.record_bytes, i;
	int ret = 0;

	if (s->fork[fork].expected > most) {
		brim__object_note(w, s, count, most, s->fork[fork].expected);
		return brim__object_bad(x, s);
	}
	for (i = 0; i < s->fork[fork].expected && !ret; i++)
		ret = take_record(w, s, fork,
				  raw + (size_t)i * x->o.record.record_bytes,
				  i);
	return ret;
}

/* A fork that is there, in room bytes at body, of the formats there may be. */
static int take_fork(struct brim_walk *w, struct brim__object_state *s,
		     uint32_t fork, const uint8_t *raw, uint32_t at,
		     uint32_t room, uint32_t formats)
{
	struct brim__objects *x = w->objects;
	const struct brim__object_places *p = &x->fork[fork];
	uint64_t format = brim__place_get(&p->format, raw);
	const struct brim__place *count = &p->count;

	if (format > 31 || !(formats >> format & 1)) {
		brim__object_note(w, s, &p->format, formats, format);
		return brim__object_bad(x, s);
	}
	if (p->wide.width_bytes &&
	    brim__place_get(&x->wide, raw) & x->o.wide.mask)
		count = &p->wide;
	s->fork[fork].expected = brim__place_get(count, raw);
	s->fork[fork].count = count->name;
	if (format == x->o.list_format)
		return take_list(w, s, fork, raw + at, room, count);
	if (format == x->o.tree_format)
		return take_root(w, s, fork, raw + at, room);
	if (x->o.opaque_formats >> format & 1)
		return brim__object_bad(x, s);
	if (s->fork[fork].expected)
		brim__object_note(w, s, count, 0, s->fork[fork].expected);
	return 0;
}

/* The second fork is not there: no format but an empty list makes sense. */
static void check_absent(struct brim_walk *w, struct brim__object_state *s,
			 const uint8_t *raw)
{
	struct brim__objects *x = w->objects;
	const struct brim__object_places *p = &x->fork[1];
	uint64_t format = brim__place_get(&p->format, raw);
	const struct brim__place *count = &p->count;

	if (p->wide.width_bytes &&
	    brim__place_get(&x->wide, raw) & x->o.wide.mask)
		count = &p->wide;
	if (format != x->o.list_format)
		brim__object_note(w, s, &p->format, x->o.list_format, format);
	if (brim__place_get(count, raw))
		brim__object_note(w, s, count, 0, brim__place_get(count, raw));
}

static int take_forks(struct brim_walk *w, struct brim__object_state *s,
		      const uint8_t *raw, uint32_t formats)
{
	struct brim__objects *x = w->objects;
	uint32_t body = x->o.body_at, room = x->o.object_bytes - body;
	uint64_t split = 0;
	int ret;

	if (x->split.width_bytes)
		split = brim__place_get(&x->split, raw);
	if (split && split * x->o.split_bytes >= room) {
		brim__object_note(w, s, &x->split, room / x->o.split_bytes,
				  split);
		return brim__object_bad(x, s);
	}
	split *= x->o.split_bytes;
	ret = take_fork(w, s, 0, raw, body, split ? (uint32_t)split : room,
			formats);
	if (!split)
		check_absent(w, s, raw);
	else if (!ret)
		ret = take_fork(w, s, 1, raw, body + (uint32_t)split,
				room - (uint32_t)split, x->fork[1].formats);
	return ret;
}

/* ----------------------------------------------------------------- objects */

/* Whether the object is one, and the one that it should be. */
static bool check_identity(struct brim_walk *w,
			   const struct brim__object_state *s,
			   const uint8_t *raw)
{
	const struct brim__objects *x = w->objects;
	uint64_t magic = brim__place_get(&x->magic, raw);
	uint64_t number = brim__place_get(&x->number, raw);

	if (magic != x->magic_value) {
		brim__object_note(w, s, &x->magic, x->magic_value, magic);
		return false;
	}
	if (!brim_layout_intact(x->o.layout, raw, x->o.object_bytes)) {
		brim__walk_note_object(w, s->number, -1, "checksum", 0, 0);
		return false;
	}
	if (number != s->number)
		brim__object_note(w, s, &x->number, s->number, number);
	if (memcmp(raw + x->uuid_at, x->uuid, x->uuid_len) != 0)
		brim__walk_note_object(w, s->number, -1, "uuid", x->uuid[0],
				       raw[x->uuid_at]);
	return true;
}

static int keep_state(struct brim__objects *x,
		      const struct brim__object_state *s)
{
	if (x->state_count == x->state_room) {
		size_t room = x->state_room ? 2 * x->state_room : 64;
		struct brim__object_state *v =
			reallocarray(x->states, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		x->states = v;
		x->state_room = room;
	}
	x->states[x->state_count++] = *s;
	return 0;
}

/* What an object in use holds. */
static int take_used(struct brim_walk *w, struct brim__object_state *s,
		     const uint8_t *raw)
{
	struct brim__objects *x = w->objects;
	uint64_t use = brim__place_get(&x->use, raw);
	uint32_t formats = x->o.kinds[use >> x->o.kind_shift & 15];
	int ret;

	if (x->none.width_bytes &&
	    brim__place_get(&x->none, raw) != x->none.all)
		brim__object_note(w, s, &x->none, x->none.all,
				  brim__place_get(&x->none, raw));
	if (!formats) {
		brim__object_note(w, s, &x->use, 0, use);
		return brim__object_bad(x, s);
	}
	s->is_away = x->away.width_bytes &&
		     brim__place_get(&x->away, raw) & x->o.away.mask;
	s->blocks_expected =
		x->blocks.width_bytes ? brim__place_get(&x->blocks, raw) : 0;
	ret = take_forks(w, s, raw, formats);
	if (ret < 0)
		return ret;
	if (s->fork[0].job >= 0 || s->fork[1].job >= 0)
		return keep_state(x, s);
	if (!s->is_bad && x->blocks.width_bytes &&
	    s->blocks != s->blocks_expected)
		brim__object_note(w, s, &x->blocks, s->blocks,
				  s->blocks_expected);
	return 0;
}

int brim__object_take(struct brim_walk *w, uint64_t number, bool is_used,
		      const uint8_t *raw)
{
	struct brim__objects *x = w->objects;
	struct brim__object_state s = { .number = number };
	uint64_t use;

	s.fork[0].job = s.fork[1].job = -1;
	x->counts.objects++;
	if (!check_identity(w, &s, raw))
		return is_used ? brim__object_bad(x, &s) : 0;
	use = brim__place_get(&x->use, raw);
	if (!is_used && use) {
		brim__walk_note_object(w, number, -1, "in use", 0, use);
		return 0;
	}
	if (!is_used)
		return 0;
	x->counts.used++;
	if (!use) {
		brim__walk_note_object(w, number, -1, "free", 1, 0);
		return brim__object_bad(x, &s);
	}
	return take_used(w, &s, raw);
}
