/* SPDX-License-Identifier: MIT */
/*
 * table.c: tables of rows that say who holds which blocks: order, merging and
 * the comparison of two. Called by checkers through objects.c, walk.c and the
 * binding. Starts and counts are blocks. All in place, as there may be millions.
 */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

#define SMALL 24u /* fewer rows are sorted by insertion */

struct brim_table {
	struct brim_row *v;
	size_t n, room;
	uint32_t group_log2;
};

int brim_table_create(struct brim_table **out, uint32_t group_log2,
		      struct brim_err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return brim__err(e, -ENOMEM, "table", "create");
	(*out)->group_log2 = group_log2;
	return 0;
}

void brim_table_free(struct brim_table *t)
{
	if (!t)
		return;
	free(t->v);
	free(t);
}

int brim_table_add(struct brim_table *t, const struct brim_row *row,
		   struct brim_err *e)
{
	if (row->start > UINT64_MAX - row->count)
		return brim__errf(e, -EOVERFLOW, "table",
				  "%llu blocks at %llu end past 2^64-1",
				  (unsigned long long)row->count,
				  (unsigned long long)row->start);
	if (t->n == t->room) {
		/* Large ones grow by an eighth: moving pages costs little. */
		size_t more = t->room < 1u << 15 ? t->room : t->room / 8;
		size_t room = t->room + BRIM__MAX(more, 64u);
		struct brim_row *v = reallocarray(t->v, room, sizeof(*v));

		if (!v)
			return brim__err(e, -ENOMEM, "table", "add");
		t->v = v;
		t->room = room;
	}
	t->v[t->n++] = *row;
	return 0;
}

size_t brim_table_count(const struct brim_table *t)
{
	return t->n;
}

int brim_table_get(const struct brim_table *t, size_t k, struct brim_row *out)
{
	if (k >= t->n)
		return -ENOENT;
	*out = t->v[k];
	return 0;
}

/* ------------------------------------------------------------------- order */

static uint64_t group_of(const struct brim_table *t, uint64_t start)
{
	return t->group_log2 < 64 ? start >> t->group_log2 : 0;
}

/* < 0, 0 or > 0, as for qsort. */
static int compare(const struct brim_table *t, const struct brim_row *x,
		   const struct brim_row *y)
{
	uint64_t gx = group_of(t, x->start), gy = group_of(t, y->start);

	if (gx != gy)
		return gx < gy ? -1 : 1;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->count > y->count) - (x->count < y->count);
}

static void swap(struct brim_row *x, struct brim_row *y)
{
	struct brim_row row = *x;

	*x = *y;
	*y = row;
}

static void sort_small(const struct brim_table *t, struct brim_row *v, size_t n)
{
	size_t k, j;

	for (k = 1; k < n; k++) {
		struct brim_row row = v[k];

		for (j = k; j && compare(t, &v[j - 1], &row) > 0; j--)
			v[j] = v[j - 1];
		v[j] = row;
	}
}

static void sift(const struct brim_table *t, struct brim_row *v, size_t k,
		 size_t n)
{
	size_t child;

	for (; (child = 2 * k + 1) < n; k = child) {
		if (child + 1 < n && compare(t, &v[child], &v[child + 1]) < 0)
			child++;
		if (compare(t, &v[k], &v[child]) >= 0)
			return;
		swap(&v[k], &v[child]);
	}
}

/* What quicksort falls back to: never more than n log n. */
static void sort_heap(const struct brim_table *t, struct brim_row *v, size_t n)
{
	size_t k;

	for (k = n / 2; k-- > 0;)
		sift(t, v, k, n);
	for (k = n; k-- > 1;) {
		swap(&v[0], &v[k]);
		sift(t, v, 0, k);
	}
}

/* Puts those up to the middle one of three first; where the others begin. */
static size_t partition(const struct brim_table *t, struct brim_row *v,
			size_t n)
{
	struct brim_row *mid = &v[n / 2], *last = &v[n - 1], pivot;
	size_t i = 0, j = n - 1;

	if (compare(t, mid, v) < 0)
		swap(mid, v);
	if (compare(t, last, v) < 0)
		swap(last, v);
	if (compare(t, last, mid) < 0)
		swap(last, mid);
	pivot = *mid;
	for (;;) {
		while (compare(t, &v[i], &pivot) < 0)
			i++;
		while (compare(t, &pivot, &v[j]) < 0)
			j--;
		if (i >= j)
			return j + 1;
		swap(&v[i++], &v[j--]);
	}
}

static void sort(const struct brim_table *t, struct brim_row *v, size_t n,
		 unsigned int depth)
{
	size_t first;

	while (n > SMALL) {
		if (!depth--) {
			sort_heap(t, v, n);
			return;
		}
		first = partition(t, v, n);
		/* The smaller part by a call, the larger one in this loop. */
		if (first < n - first) {
			sort(t, v, first, depth);
			v += first;
			n -= first;
		} else {
			sort(t, v + first, n - first, depth);
			n = first;
		}
	}
	sort_small(t, v, n);
}

void brim_table_sort(struct brim_table *t)
{
	unsigned int depth = 2;
	size_t k;

	for (k = 1; k < t->n; k++)
		if (compare(t, &t->v[k - 1], &t->v[k]) > 0)
			break;
	if (k >= t->n)
		return;
	for (k = t->n; k; k /= 2)
		depth += 2;
	sort(t, t->v, t->n, depth);
}

/* ----------------------------------------------------------------- merging */

static bool goes_on(const struct brim_table *t, const struct brim_row *x,
		    const struct brim_row *y, uint64_t fixed)
{
	uint64_t offset = x->offset & fixed ? x->offset : x->offset + x->count;

	return x->owner == y->owner && x->start + x->count == y->start &&
	       offset == y->offset &&
	       group_of(t, x->start) == group_of(t, y->start);
}

void brim_table_merge(struct brim_table *t, uint64_t fixed)
{
	size_t n = 0, k;

	brim_table_sort(t);
	for (k = 0; k < t->n; k++) {
		if (n && goes_on(t, &t->v[n - 1], &t->v[k], fixed))
			t->v[n - 1].count += t->v[k].count;
		else
			t->v[n++] = t->v[k];
	}
	t->n = n;
}

/* -------------------------------------------------------------- comparison */

/* The first row of a group or of a later one. */
static size_t lower(const struct brim_table *t, uint64_t group)
{
	size_t from = 0, to = t->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (group_of(t, t->v[mid].start) < group)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

void brim_table_find(const struct brim_table *t, uint64_t group, size_t *from,
		     size_t *to)
{
	*from = lower(t, group);
	*to = group < UINT64_MAX ? lower(t, group + 1) : t->n;
}

int brim_table_extents(const struct brim_table *t, uint64_t group,
		       struct brim_extents *x, struct brim_err *e)
{
	uint64_t mask = t->group_log2 < 64 ? (1ull << t->group_log2) - 1
					   : UINT64_MAX;
	size_t k, to;
	int ret = 0;

	brim_table_find(t, group, &k, &to);
	for (; k < to && !ret; k++)
		ret = brim_extents_add(x, t->v[k].start & mask, t->v[k].count,
				       t->v[k].owner, e);
	return ret;
}

int brim_table_differ(const struct brim_table *x, size_t *i, size_t x_end,
		      const struct brim_table *y, size_t *j, size_t y_end,
		      struct brim_row *out)
{
	x_end = BRIM__MIN(x_end, x->n);
	y_end = BRIM__MIN(y_end, y->n);
	while (*i < x_end || *j < y_end) {
		int sign = *i >= x_end   ? 1
			   : *j >= y_end ? -1
					 : compare(x, &x->v[*i], &y->v[*j]);

		if (sign < 0) {
			*out = x->v[(*i)++];
			return 1;
		}
		if (sign > 0) {
			*out = y->v[(*j)++];
			return 2;
		}
		++*i;
		++*j;
	}
	return 0;
}
