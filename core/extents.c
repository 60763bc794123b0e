/* SPDX-License-Identifier: MIT */
/*
 * extents.c: lists of extents: order, overlap, union, complement, depth and the
 * comparison of two. Called by checkers through walk.c and the binding. Starts
 * and counts are blocks; an end always fits 64 bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct brim_extents {
	struct brim_range *v;
	size_t n, room;
};

int brim_extents_create(struct brim_extents **out, struct brim_err *e)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : brim__err(e, -ENOMEM, "extents", "create");
}

void brim_extents_free(struct brim_extents *x)
{
	if (!x)
		return;
	free(x->v);
	free(x);
}

/* Room for `more` further ones. */
static int extents_grow(struct brim_extents *x, size_t more, struct brim_err *e)
{
	size_t room = BRIM__MAX(x->room, 8u);
	struct brim_range *v;

	if (x->room - x->n >= more)
		return 0;
	while (room - x->n < more)
		room *= 2;
	v = reallocarray(x->v, room, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "extents", "add");
	x->v = v;
	x->room = room;
	return 0;
}

int brim_extents_add(struct brim_extents *x, uint64_t start, uint64_t count,
		     uint64_t tag, struct brim_err *e)
{
	int ret;

	if (start > UINT64_MAX - count)
		return brim__errf(e, -EOVERFLOW, "extents",
				  "%llu blocks at %llu end past 2^64-1",
				  (unsigned long long)count,
				  (unsigned long long)start);
	ret = extents_grow(x, 1, e);
	if (ret < 0)
		return ret;
	x->v[x->n++] = (struct brim_range){ start, count, tag };
	return 0;
}

int brim_extents_append(struct brim_extents *x, const struct brim_extents *y,
			const uint64_t *tag, struct brim_err *e)
{
	size_t n = y->n, k;
	int ret = extents_grow(x, n, e);

	if (ret < 0)
		return ret;
	for (k = 0; k < n; k++) {
		x->v[x->n] = y->v[k];
		if (tag)
			x->v[x->n].tag = *tag;
		x->n++;
	}
	return 0;
}

size_t brim_extents_count(const struct brim_extents *x)
{
	return x->n;
}

int brim_extents_get(const struct brim_extents *x, size_t k,
		     struct brim_range *out)
{
	if (k >= x->n)
		return -ENOENT;
	*out = x->v[k];
	return 0;
}

uint64_t brim_extents_sum(const struct brim_extents *x)
{
	uint64_t sum = 0;
	size_t k;

	for (k = 0; k < x->n; k++)
		sum += x->v[k].count;
	return sum;
}

uint64_t brim_extents_longest(const struct brim_extents *x)
{
	uint64_t most = 0;
	size_t k;

	for (k = 0; k < x->n; k++)
		most = BRIM__MAX(most, x->v[k].count);
	return most;
}

static uint64_t end_of(const struct brim_range *v)
{
	return v->start + v->count;
}

int64_t brim_extents_outside(const struct brim_extents *x, uint64_t from,
			     uint64_t to)
{
	size_t k;

	for (k = 0; k < x->n; k++)
		if (!x->v[k].count || x->v[k].start < from ||
		    end_of(&x->v[k]) > to)
			return (int64_t)k;
	return -1;
}

static int compare(const void *a, const void *b)
{
	const struct brim_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->tag > y->tag) - (x->tag < y->tag);
}

void brim_extents_sort(struct brim_extents *x)
{
	size_t k;

	/* What comes from a tree is mostly sorted already. */
	for (k = 1; k < x->n; k++)
		if (compare(&x->v[k - 1], &x->v[k]) > 0)
			break;
	if (k < x->n)
		qsort(x->v, x->n, sizeof(*x->v), compare);
}

int64_t brim_extents_overlap(const struct brim_extents *x, size_t *other)
{
	size_t reach = 0, k;

	for (k = 1; k < x->n; k++) {
		if (x->v[k].start < end_of(&x->v[reach])) {
			*other = reach;
			return (int64_t)k;
		}
		if (end_of(&x->v[k]) >= end_of(&x->v[reach]))
			reach = k;
	}
	return -1;
}

void brim_extents_union(struct brim_extents *x)
{
	size_t n = 0, k;

	brim_extents_sort(x);
	for (k = 0; k < x->n; k++) {
		struct brim_range v = x->v[k];

		if (!v.count)
			continue;
		v.tag = 0;
		if (n && v.start <= end_of(&x->v[n - 1])) {
			struct brim_range *last = &x->v[n - 1];
			uint64_t end = BRIM__MAX(end_of(last), end_of(&v));

			last->count = end - last->start;
		} else {
			x->v[n++] = v;
		}
	}
	x->n = n;
}

void brim_extents_join(struct brim_extents *x)
{
	size_t n = 0, k;

	brim_extents_sort(x);
	for (k = 0; k < x->n; k++) {
		struct brim_range v = x->v[k];

		if (n && x->v[n - 1].tag == v.tag &&
		    end_of(&x->v[n - 1]) == v.start)
			x->v[n - 1].count += v.count;
		else
			x->v[n++] = v;
	}
	x->n = n;
}

int brim_extents_complement(const struct brim_extents *x, uint64_t from,
			    uint64_t to, struct brim_extents *out,
			    struct brim_err *e)
{
	uint64_t at = from;
	size_t k;
	int ret;

	for (k = 0; k < x->n && at < to; k++) {
		uint64_t start = BRIM__MIN(x->v[k].start, to);

		if (start > at) {
			ret = brim_extents_add(out, at, start - at, 0, e);
			if (ret < 0)
				return ret;
		}
		at = BRIM__MAX(at, end_of(&x->v[k]));
	}
	return at < to ? brim_extents_add(out, at, to - at, 0, e) : 0;
}

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Appends [from, to) with its depth, or lengthens the last. */
static int depth_add(struct brim_extents *out, size_t first, uint64_t from,
		     uint64_t to, uint64_t depth, struct brim_err *e)
{
	struct brim_range *last = out->n > first ? &out->v[out->n - 1] : NULL;

	if (last && last->tag == depth && end_of(last) == from) {
		last->count += to - from;
		return 0;
	}
	return brim_extents_add(out, from, to - from, depth, e);
}

int brim_extents_depth(const struct brim_extents *x, uint64_t least,
		       struct brim_extents *out, struct brim_err *e)
{
	size_t first = out->n, begin = 0, finish = 0, k;
	uint64_t *ends = reallocarray(NULL, x->n + 1, sizeof(*ends));
	uint64_t at = 0, depth = 0;
	int ret = 0;

	if (!ends)
		return brim__err(e, -ENOMEM, "extents", "depth");
	for (k = 0; k < x->n; k++)
		ends[k] = end_of(&x->v[k]);
	qsort(ends, x->n, sizeof(*ends), compare_u64);
	while (finish < x->n && !ret) {
		uint64_t next = ends[finish];

		if (begin < x->n && x->v[begin].start < next)
			next = x->v[begin].start;
		if (next > at && depth && depth >= least)
			ret = depth_add(out, first, at, next, depth, e);
		at = next;
		for (; finish < x->n && ends[finish] == at; finish++)
			depth--;
		for (; begin < x->n && x->v[begin].start == at; begin++)
			depth++;
	}
	free(ends);
	return ret;
}

int64_t brim_extents_differ(const struct brim_extents *x,
			    const struct brim_extents *y)
{
	size_t least = BRIM__MIN(x->n, y->n), k;

	for (k = 0; k < least; k++)
		if (x->v[k].start != y->v[k].start ||
		    x->v[k].count != y->v[k].count)
			return (int64_t)k;
	return x->n == y->n ? -1 : (int64_t)least;
}

/* What v has before w begins, or all of it. */
static int only_of(const struct brim_range *v, const struct brim_range *w,
		   int is_first, struct brim_range *out)
{
	*out = *v;
	if (w && w->start < end_of(v) && w->start > v->start)
		out->count = w->start - v->start;
	return is_first ? 1 : 2;
}

/* The same where both k-th begin alike: what the longer has past the shorter.
 */
static int only_rest(const struct brim_extents *x, const struct brim_extents *y,
		     size_t k, struct brim_range *out)
{
	int is_first = x->v[k].count > y->v[k].count;
	const struct brim_extents *a = is_first ? x : y, *b = is_first ? y : x;
	struct brim_range rest = a->v[k];

	rest.start += b->v[k].count;
	rest.count -= b->v[k].count;
	return only_of(&rest, k + 1 < b->n ? &b->v[k + 1] : NULL, is_first,
		       out);
}

int brim_extents_only(const struct brim_extents *x,
		      const struct brim_extents *y, struct brim_range *out)
{
	size_t k;

	for (k = 0; k < x->n || k < y->n; k++) {
		const struct brim_range *v = k < x->n ? &x->v[k] : NULL;
		const struct brim_range *w = k < y->n ? &y->v[k] : NULL;

		if (!w || (v && v->start < w->start))
			return only_of(v, w, 1, out);
		if (!v || w->start < v->start)
			return only_of(w, v, 0, out);
		if (v->count != w->count) {
			return only_rest(x, y, k, out);
		}
		if (v->tag != w->tag) {
			*out = *v;
			return 1;
		}
	}
	return 0;
}

int brim_extents_tagged(const struct brim_extents *x, uint64_t from,
			uint64_t to, struct brim_extents *out,
			struct brim_err *e)
{
	size_t k;
	int ret = 0;

	for (k = 0; k < x->n && !ret; k++)
		if (x->v[k].tag >= from && x->v[k].tag <= to)
			ret = brim_extents_add(out, x->v[k].start,
					       x->v[k].count, x->v[k].tag, e);
	return ret;
}

int brim_extents_starting(const struct brim_extents *x, uint64_t from,
			  uint64_t to, struct brim_extents *out,
			  struct brim_err *e)
{
	size_t k;
	int ret = 0;

	for (k = 0; k < x->n && !ret; k++)
		if (x->v[k].start >= from && x->v[k].start < to)
			ret = brim_extents_add(out, x->v[k].start - from,
					       x->v[k].count, x->v[k].tag, e);
	return ret;
}
