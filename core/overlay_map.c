/* SPDX-License-Identifier: MIT */
/*
 * overlay_map.c: which blocks of a volume an overlay holds: extents in order,
 * in leaves of up to 126 that hang from one sorted array. Called by overlay.c
 * and overlay_log.c, under the overlay's lock. Units: blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "overlay.h"

#define LEAF_MAX 126u /* a leaf is 3 KiB */

struct brim__overlay_leaf {
	uint32_t n;
	struct brim__overlay_extent x[LEAF_MAX];
};

/* A place in the map: extent i of a leaf; leaf == m->n: behind everything. */
struct at {
	size_t leaf;
	uint32_t i;
};

static uint64_t end_of(const struct brim__overlay_extent *x)
{
	return x->from + x->len;
}

/* Does b go on where a ends, on the volume and in the file? */
static bool joins(const struct brim__overlay_extent *a,
		  const struct brim__overlay_extent *b)
{
	if (end_of(a) != b->from)
		return false;
	return a->place ? a->place + a->len == b->place : !b->place;
}

/* ------------------------------------------------------------------- lists */

int brim__overlay_list_reserve(struct brim__overlay_list *list)
{
	size_t room = list->room ? 2 * list->room : 64;
	void *v;

	if (list->n < list->room)
		return 0;
	v = reallocarray(list->v, room, sizeof(*list->v));
	if (!v)
		return -ENOMEM;
	list->v = v;
	list->room = room;
	return 0;
}

int brim__overlay_list_push(struct brim__overlay_list *list, size_t fixed,
			    const struct brim__overlay_extent *x)
{
	if (list->n > fixed && joins(&list->v[list->n - 1], x)) {
		list->v[list->n - 1].len += x->len;
		return 0;
	}
	if (brim__overlay_list_reserve(list) < 0)
		return -ENOMEM;
	list->v[list->n++] = *x;
	return 0;
}

void brim__overlay_list_shift(struct brim__overlay_list *list, size_t n)
{
	list->n -= n;
	memmove(list->v, list->v + n, list->n * sizeof(*list->v));
}

/* ------------------------------------------------------------------ finding */

static struct at find(const struct brim__overlay_map *m, uint64_t block)
{
	size_t lo = 0, hi = m->n;
	struct at at = { 0, 0 };

	/* The last leaf that begins at or before the block. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->leaves[mid]->x[0].from <= block)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return at;
	at.leaf = lo - 1;
	hi = m->leaves[at.leaf]->n;
	for (lo = 0; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;

		if (end_of(&m->leaves[at.leaf]->x[mid]) > block)
			hi = mid;
		else
			lo = mid + 1;
	}
	at.i = (uint32_t)lo;
	if (at.i == m->leaves[at.leaf]->n) {
		at.leaf++;
		at.i = 0;
	}
	return at;
}

static struct brim__overlay_extent *extent_at(const struct brim__overlay_map *m,
					      struct at at)
{
	return at.leaf < m->n ? &m->leaves[at.leaf]->x[at.i] : NULL;
}

static struct brim__overlay_extent *
extent_before(const struct brim__overlay_map *m, struct at at)
{
	if (at.i)
		return &m->leaves[at.leaf]->x[at.i - 1];
	if (!at.leaf)
		return NULL;
	return &m->leaves[at.leaf - 1]->x[m->leaves[at.leaf - 1]->n - 1];
}

const struct brim__overlay_extent *
brim__overlay_map_at(const struct brim__overlay_map *m, uint64_t block)
{
	return extent_at(m, find(m, block));
}

/* ----------------------------------------------------------------- changing */

/* So that a change cannot fail half way: it adds at most three leaves. */
static int reserve(struct brim__overlay_map *m)
{
	size_t k;

	if (m->room - m->n < 3) {
		size_t room = m->room ? 2 * m->room : 16;
		void *v = reallocarray(m->leaves, room, sizeof(*m->leaves));

		if (!v)
			return -ENOMEM;
		m->leaves = v;
		m->room = room;
	}
	for (k = 0; k < 3; k++) {
		if (!m->spare[k])
			m->spare[k] = malloc(sizeof(*m->spare[k]));
		if (!m->spare[k])
			return -ENOMEM;
	}
	return 0;
}

static struct brim__overlay_leaf *leaf_add(struct brim__overlay_map *m,
					   size_t where)
{
	struct brim__overlay_leaf *leaf = NULL;
	size_t k;

	for (k = 0; !leaf; k++) {
		leaf = m->spare[k];
		m->spare[k] = NULL;
	}
	memmove(&m->leaves[where + 1], &m->leaves[where],
		(m->n - where) * sizeof(*m->leaves));
	m->leaves[where] = leaf;
	m->n++;
	leaf->n = 0;
	return leaf;
}

static void count(struct brim__overlay_map *m,
		  const struct brim__overlay_extent *x, bool is_added)
{
	uint64_t len = is_added ? x->len : -x->len;

	if (x->place)
		m->data_blocks += len;
	else
		m->zero_blocks += len;
}

static void leaf_insert(struct brim__overlay_leaf *leaf, uint32_t i,
			const struct brim__overlay_extent *x)
{
	memmove(&leaf->x[i + 1], &leaf->x[i], (leaf->n - i) * sizeof(*x));
	leaf->x[i] = *x;
	leaf->n++;
}

/*
 * Inserts x before `at`. A full leaf is halved, but for what is appended to
 * it: writing in order fills leaves.
 */
static void insert(struct brim__overlay_map *m, struct at at,
		   const struct brim__overlay_extent *x)
{
	struct brim__overlay_leaf *leaf, *more;

	m->extents++;
	if (!at.i && at.leaf) {
		at.leaf--;
		at.i = m->leaves[at.leaf]->n;
	}
	leaf = m->n ? m->leaves[at.leaf] : leaf_add(m, 0);
	if (leaf->n == LEAF_MAX) {
		uint32_t keep = at.i == LEAF_MAX ? LEAF_MAX : LEAF_MAX / 2;

		more = leaf_add(m, at.leaf + 1);
		more->n = LEAF_MAX - keep;
		memcpy(more->x, &leaf->x[keep], more->n * sizeof(*x));
		leaf->n = keep;
		if (at.i > keep || keep == LEAF_MAX) {
			leaf = more;
			at.i -= keep;
		}
	}
	leaf_insert(leaf, at.i, x);
}

static void give_back(struct brim__overlay_list *freed,
		      const struct brim__overlay_extent *x)
{
	/* Not noted, it only costs the host some space. */
	if (x->place)
		brim__overlay_list_push(freed, 0, x);
}

/* Takes out of the leaf at *at what begins before `to`; is there more? */
static bool leaf_erase(struct brim__overlay_map *m, struct at *at, uint64_t to,
		       struct brim__overlay_list *freed)
{
	struct brim__overlay_leaf *leaf = m->leaves[at->leaf];
	uint32_t k = at->i;

	for (; k < leaf->n && leaf->x[k].from < to; k++) {
		give_back(freed, &leaf->x[k]);
		count(m, &leaf->x[k], false);
		m->extents--;
	}
	memmove(&leaf->x[at->i], &leaf->x[k], (leaf->n - k) * sizeof(*leaf->x));
	leaf->n -= k - at->i;
	return at->i == leaf->n;
}

/* Takes out the extents of [from, to), none of which reaches beyond. */
static void erase(struct brim__overlay_map *m, uint64_t from, uint64_t to,
		  struct brim__overlay_list *freed)
{
	struct at at = find(m, from);
	size_t begin, end;
	bool more = at.leaf < m->n;

	begin = end = at.leaf + (at.i ? 1 : 0);
	while (more) {
		more = leaf_erase(m, &at, to, freed);
		if (!m->leaves[at.leaf]->n) {
			free(m->leaves[at.leaf]);
			end = at.leaf + 1;
		}
		at.leaf++;
		at.i = 0;
		more = more && at.leaf < m->n;
	}
	if (end > begin) {
		memmove(&m->leaves[begin], &m->leaves[end],
			(m->n - end) * sizeof(*m->leaves));
		m->n -= end - begin;
	}
}

/* Cuts the extent that reaches over `block` in two there. */
static void cut(struct brim__overlay_map *m, uint64_t block)
{
	struct at at = find(m, block);
	struct brim__overlay_extent *x = extent_at(m, at), rest;

	if (!x || x->from >= block)
		return;
	rest.from = block;
	rest.len = end_of(x) - block;
	rest.place = x->place ? x->place + (block - x->from) : 0;
	x->len = block - x->from;
	at.i++;
	if (at.i == m->leaves[at.leaf]->n) {
		at.leaf++;
		at.i = 0;
	}
	insert(m, at, &rest);
}

/* Takes one extent out; only the extent goes, not what it stands for. */
static void take_out(struct brim__overlay_map *m, struct at at)
{
	struct brim__overlay_leaf *leaf = m->leaves[at.leaf];

	m->extents--;
	leaf->n--;
	memmove(&leaf->x[at.i], &leaf->x[at.i + 1],
		(leaf->n - at.i) * sizeof(*leaf->x));
	if (leaf->n)
		return;
	free(leaf);
	m->n--;
	memmove(&m->leaves[at.leaf], &m->leaves[at.leaf + 1],
		(m->n - at.leaf) * sizeof(*m->leaves));
}

/* Puts x into the gap that is there, joined with its neighbours. */
static void fill(struct brim__overlay_map *m, struct brim__overlay_extent x)
{
	struct at at = find(m, x.from);
	struct brim__overlay_extent *before, *next = extent_at(m, at);

	count(m, &x, true);
	if (next && joins(&x, next)) {
		x.len += next->len;
		take_out(m, at);
		at = find(m, x.from);
	}
	before = extent_before(m, at);
	if (before && joins(before, &x))
		before->len += x.len;
	else
		insert(m, at, &x);
}

/* Joins a leaf with the next where both would make half a leaf. */
static void tidy(struct brim__overlay_map *m, size_t i)
{
	struct brim__overlay_leaf *leaf, *next;

	if (i + 1 >= m->n)
		return;
	leaf = m->leaves[i];
	next = m->leaves[i + 1];
	if (leaf->n + next->n > LEAF_MAX / 2)
		return;
	memcpy(&leaf->x[leaf->n], next->x, next->n * sizeof(*next->x));
	leaf->n += next->n;
	free(next);
	m->n--;
	memmove(&m->leaves[i + 1], &m->leaves[i + 2],
		(m->n - i - 1) * sizeof(*m->leaves));
}

/* Is it what is there already? */
static bool is_known(const struct brim__overlay_map *m,
		     const struct brim__overlay_extent *x)
{
	const struct brim__overlay_extent *has =
		brim__overlay_map_at(m, x->from);

	if (!has || has->from > x->from || end_of(has) < end_of(x))
		return false;
	return x->place ? has->place &&
				  has->place + (x->from - has->from) == x->place
			: !has->place;
}

int brim__overlay_map_set(struct brim__overlay_map *m,
			  const struct brim__overlay_extent *x,
			  struct brim__overlay_list *freed)
{
	size_t leaf;

	if (is_known(m, x))
		return 0;
	if (reserve(m) < 0)
		return -ENOMEM;
	cut(m, x->from);
	cut(m, end_of(x));
	erase(m, x->from, end_of(x), freed);
	fill(m, *x);
	leaf = find(m, x->from).leaf;
	tidy(m, leaf);
	if (leaf)
		tidy(m, leaf - 1);
	return 1;
}

void brim__overlay_map_free(struct brim__overlay_map *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		free(m->leaves[i]);
	for (i = 0; i < 3; i++)
		free(m->spare[i]);
	free(m->leaves);
	memset(m, 0, sizeof(*m));
}
