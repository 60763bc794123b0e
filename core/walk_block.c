/* SPDX-License-Identifier: MIT */
/*
 * walk_block.c: what a kind of tree looks like, resolved from layouts to places
 * once, and the checks of one block by itself: header, checksum, counts, keys.
 * Called by walk.c, which knows the block's neighbours. Places are bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

/* ------------------------------------------------------------ descriptions */

static const struct brim_field *find(const struct brim_layout *l,
				     const char *name)
{
	int i = brim_layout_find(l, name);

	return i < 0 ? NULL : brim_layout_field(l, (size_t)i);
}

static int refuse(struct brim_err *e, const struct brim_layout *l,
		  const char *name)
{
	return brim__errf(e, -EINVAL, "walk",
			  "'%s' has no field '%s' of the kind wanted",
			  brim_layout_name(l), name);
}

int brim__walk_place(struct brim__place *out, const struct brim_layout *l,
		     const char *name, struct brim_err *e)
{
	const struct brim_field *f;

	*out = (struct brim__place){ 0 };
	if (!name)
		return 0;
	f = find(l, name);
	if (!f || !f->endian || f->record)
		return refuse(e, l, name);
	out->off_bytes = f->off_bytes;
	out->width_bytes = f->width_bytes;
	out->endian = f->endian;
	out->all = UINT64_MAX >> (64 - 8 * f->width_bytes);
	out->name = f->name;
	return 0;
}

static int resolve_header(struct brim__walk_kind *k,
			  const struct brim_walk_tree *t, struct brim_err *e)
{
	const struct brim_layout *l = t->leaf;
	const struct brim_field *f;
	int ret;

	if (!t->magic || !t->level || !t->count)
		return brim__errf(e, -EINVAL, "walk",
				  "a tree's blocks have magic, level, count");
	if ((ret = brim__walk_place(&k->magic, l, t->magic, e)) < 0 ||
	    (ret = brim__walk_place(&k->level, l, t->level, e)) < 0 ||
	    (ret = brim__walk_place(&k->count, l, t->count, e)) < 0 ||
	    (ret = brim__walk_place(&k->left, l, t->left, e)) < 0 ||
	    (ret = brim__walk_place(&k->right, l, t->right, e)) < 0 ||
	    (ret = brim__walk_place(&k->address, l, t->address, e)) < 0 ||
	    (ret = brim__walk_place(&k->owner, l, t->owner, e)) < 0)
		return ret;
	k->leaf_magic = (uint64_t)find(l, t->magic)->value & k->magic.all;
	k->address_unit_bytes = BRIM__MAX(t->address_unit_bytes, 1u);
	if (!t->uuid)
		return 0;
	f = find(l, t->uuid);
	if (!f || f->endian || f->record || f->width_bytes > sizeof(k->uuid))
		return refuse(e, l, t->uuid);
	k->uuid_at = f->off_bytes;
	k->uuid_len = f->width_bytes;
	memcpy(k->uuid, t->uuid_bytes, k->uuid_len);
	return 0;
}

/* Where records, keys and pointers are and how many there may be. */
static int resolve_bodies(struct brim__walk_kind *k,
			  const struct brim_walk_tree *t, uint32_t block_bytes,
			  struct brim_err *e)
{
	const struct brim_field *r = find(t->leaf, t->records);
	const struct brim_field *key = find(t->node, t->keys);
	int ret;

	if (!r || !r->record)
		return refuse(e, t->leaf, t->records);
	if (!key || !key->record)
		return refuse(e, t->node, t->keys);
	if (!brim__layout_fits(t->leaf, block_bytes) ||
	    !brim__layout_fits(t->node, block_bytes))
		return brim__errf(e, -EINVAL, "walk",
				  "'%s' does not fit blocks of %u bytes",
				  t->name, block_bytes);
	k->record = r->record;
	k->record_at = r->off_bytes;
	k->record_bytes = r->width_bytes;
	k->record_max = (block_bytes - r->off_bytes) / r->width_bytes;
	k->key_at = key->off_bytes;
	k->key_bytes = key->width_bytes;
	ret = brim__walk_place(&k->pointer, t->node, t->pointers, e);
	if (ret < 0)
		return ret;
	k->pointer_at = k->pointer.off_bytes;
	k->pointer.off_bytes = 0;
	k->node_max = BRIM__MIN(key->count, find(t->node, t->pointers)->count);
	return k->node_max ? 0 : refuse(e, t->node, t->keys);
}

/* The key within a packed record. */
static int resolve_packed(struct brim__walk_kind *k,
			  const struct brim_walk_tree *t, struct brim_err *e)
{
	struct brim__place *p = &k->record_key[0];
	int ret = brim__walk_place(p, k->record, t->record_key, e);

	if (ret < 0)
		return ret;
	if (k->key_fields != 1 || !t->key_bits || t->key_bits > 64 ||
	    t->key_shift + t->key_bits > 8 * p->width_bytes)
		return refuse(e, t->leaf, t->record_key);
	p->shift = t->key_shift;
	p->all = UINT64_MAX >> (64 - t->key_bits);
	return 0;
}

/* What keys and records have in common. */
static int resolve_keys(struct brim__walk_kind *k,
			const struct brim_walk_tree *t, struct brim_err *e)
{
	const struct brim_layout *low = find(t->node, t->keys)->record;
	const struct brim_field *high = brim_layout_field(low, 1);
	int ret = 0;
	size_t i;

	if (t->reach) {
		if (!high || !high->record)
			return refuse(e, low, t->reach);
		ret = brim__walk_place(&k->node_reach, high->record, t->reach,
				       e);
		k->node_reach.off_bytes += high->off_bytes;
		low = brim_layout_field(low, 0)->record;
		if (ret < 0 || !low)
			return ret ?: -EINVAL;
		if ((ret = brim__walk_place(&k->reach, k->record, t->reach,
					    e)) < 0 ||
		    (ret = brim__walk_place(&k->reach_count, k->record,
					    t->reach_count, e)) < 0)
			return ret;
	}
	for (i = 0; i < BRIM__WALK_FIELDS && t->key[i] && !ret; i++) {
		ret = brim__walk_place(&k->node_key[i], low, t->key[i], e);
		if (!ret && !t->record_key)
			ret = brim__walk_place(&k->record_key[i], k->record,
					       t->key[i], e);
	}
	k->key_fields = (uint32_t)i;
	if (!ret && t->record_key)
		ret = resolve_packed(k, t, e);
	for (i = 0; i < BRIM__WALK_FIELDS && t->order[i] && !ret; i++)
		ret = brim__walk_place(&k->order[i], k->record, t->order[i], e);
	k->order_fields = (uint32_t)i;
	k->is_strict = t->is_strict;
	return ret;
}

int brim__walk_kind(struct brim__walk_kind *k, const struct brim_walk_tree *t,
		    uint32_t block_bytes, struct brim_err *e)
{
	int ret;

	memset(k, 0, sizeof(*k));
	if (!t->name || !t->leaf || !t->node || !t->records || !t->keys ||
	    !t->pointers)
		return brim__errf(e, -EINVAL, "walk",
				  "a tree has a name, leaf, node, records, "
				  "keys, pointers");
	k->leaf = t->leaf;
	k->node = t->node;
	ret = resolve_header(k, t, e);
	if (!ret)
		ret = resolve_bodies(k, t, block_bytes, e);
	if (!ret)
		ret = resolve_keys(k, t, e);
	if (ret < 0)
		return ret;
	k->name = strdup(t->name);
	return k->name ? 0 : brim__err(e, -ENOMEM, "walk", t->name);
}

/* ------------------------------------------------------------------ blocks */

/* A field must have a value; whether it has. */
static bool expect(struct brim_walk *w, const struct brim__walk_item *item,
		   const struct brim__place *p, const uint8_t *raw,
		   uint64_t expected)
{
	uint64_t found;

	if (!p->width_bytes)
		return true;
	found = brim__place_get(p, raw);
	if (found == (expected & p->all))
		return true;
	brim__walk_note(w, item->job, item->block, -1, p->name,
			expected & p->all, found);
	return false;
}

static void check_uuid(struct brim_walk *w, const struct brim__walk_kind *k,
		       const struct brim__walk_item *item, const uint8_t *raw)
{
	uint32_t at;

	for (at = 0; at < k->uuid_len; at++)
		if (raw[k->uuid_at + at] != k->uuid[at]) {
			brim__walk_note(w, item->job, item->block, at, "uuid",
					k->uuid[at], raw[k->uuid_at + at]);
			return;
		}
}

/* The header; true where the rest can be made sense of. */
static bool check_header(struct brim_walk *w, struct brim__walk_item *item,
			 const struct brim__walk_kind *k, const uint8_t *raw)
{
	const struct brim__walk_job *job = &w->jobs[item->job];
	uint64_t at = brim__walk_at(w, job, item->block);
	uint32_t max = item->level ? k->node_max : k->record_max;
	/* Blocks but the root are kept at least half full. */
	uint32_t min = item->is_root ? item->level != 0 : max / 2;

	if (!expect(w, item, &k->magic, raw, k->leaf_magic))
		return false;
	if (!brim_layout_intact(item->level ? k->node : k->leaf, raw,
				w->block_bytes)) {
		brim__walk_note(w, item->job, item->block, -1, "checksum", 0,
				0);
		return false;
	}
	expect(w, item, &k->address, raw, at / k->address_unit_bytes);
	/* Else one object after the other would take a whole tree for its. */
	if (!expect(w, item, &k->owner, raw, job->owner) && job->object)
		return false;
	check_uuid(w, k, item, raw);
	if (!expect(w, item, &k->level, raw, item->level))
		return false;
	item->count = (uint32_t)brim__place_get(&k->count, raw);
	if (item->count < min || item->count > max) {
		brim__walk_note(w, item->job, item->block, -1, k->count.name,
				item->count > max ? max : min, item->count);
		return item->count <= max && item->count > 0;
	}
	return true;
}

/* The first record or key must be what the block above says. */
static void check_key(struct brim_walk *w, const struct brim__walk_item *item,
		      const struct brim__walk_kind *k, const uint8_t *raw)
{
	const struct brim__place *p = item->level ? k->node_key : k->record_key;
	const uint8_t *first = raw + (item->level ? k->key_at : k->record_at);
	uint32_t i;

	for (i = 0; i < k->key_fields; i++) {
		uint64_t found = brim__place_get(&p[i], first);

		if (found == item->key[i])
			continue;
		brim__walk_note(w, item->job, item->block, 0, "key",
				item->key[i], found);
		return;
	}
}

/* The last block anything in here covers. */
static uint64_t reach_of(const struct brim__walk_item *item,
			 const struct brim__walk_kind *k, const uint8_t *raw)
{
	uint64_t most = 0, at;
	uint32_t i;

	for (i = 0; i < item->count; i++) {
		const uint8_t *p;

		if (item->level) {
			p = raw + k->key_at + i * k->key_bytes;
			at = brim__place_get(&k->node_reach, p);
		} else {
			p = raw + k->record_at + i * k->record_bytes;
			at = brim__place_get(&k->reach, p) +
			     brim__place_get(&k->reach_count, p) - 1;
		}
		most = BRIM__MAX(most, at);
	}
	return most;
}

static int keep_body(struct brim__walk_item *item,
		     const struct brim__walk_kind *k, const uint8_t *raw)
{
	size_t keys = (size_t)item->count * k->key_bytes;
	size_t pointers = (size_t)item->count * k->pointer.width_bytes;
	size_t records = (size_t)item->count * k->record_bytes;

	item->body = malloc(item->level ? keys + pointers + 1 : records + 1);
	if (!item->body)
		return -ENOMEM;
	if (!item->level) {
		memcpy(item->body, raw + k->record_at, records);
		return 0;
	}
	memcpy(item->body, raw + k->key_at, keys);
	memcpy(item->body + keys, raw + k->pointer_at, pointers);
	return 0;
}

int brim__walk_block(struct brim_walk *w, struct brim__walk_item *item,
		     const uint8_t *raw)
{
	const struct brim__walk_kind *k =
		&w->kinds[w->jobs[item->job].root.tree];
	uint64_t reach;

	if (!check_header(w, item, k, raw))
		return 0;
	item->is_good = true;
	if (k->left.width_bytes)
		item->left = brim__place_get(&k->left, raw);
	if (k->right.width_bytes)
		item->right = brim__place_get(&k->right, raw);
	if (item->has_key && item->count) {
		check_key(w, item, k, raw);
		reach = k->reach.width_bytes ? reach_of(item, k, raw) : 0;
		if (k->reach.width_bytes && reach != item->reach)
			brim__walk_note(w, item->job, item->block, -1,
					"high key", reach, item->reach);
	}
	return keep_body(item, k, raw);
}
