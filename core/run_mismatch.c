/* SPDX-License-Identifier: MIT */
/*
 * run_mismatch.c: the mismatches of a run: counted, sorted into kinds, and the
 * first of them kept. Filled from any thread, under the run's lock; memory is
 * bounded whatever is wrong. Offsets are bytes on the device.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* With the last one for whatever is of no kind before it. */
#define KINDS_MAX 256u
/* Of all kinds together. */
#define KEPT_MAX (1u << 20)

int brim__run_mismatches_create(struct brim_run *r, uint32_t kept_max)
{
	r->kept_max = kept_max;
	r->kinds = calloc(KINDS_MAX, sizeof(*r->kinds));
	return r->kinds ? 0 : -ENOMEM;
}

void brim__run_mismatches_free(struct brim_run *r)
{
	free(r->kept);
	free(r->kinds);
}

static bool is_kind(const struct brim_mismatch_kind *k,
		    const struct brim_mismatch *m)
{
	/* Mostly they are the very same strings. */
	return (k->piece == m->piece || !strcmp(k->piece, m->piece)) &&
	       (k->what == m->what || !strcmp(k->what, m->what)) &&
	       (k->rule == m->rule || !strcmp(k->rule, m->rule));
}

/* The kind of a mismatch; what a plan's run finds is all of one. */
static struct brim__kind *kind_of(struct brim_run *r,
				  const struct brim_mismatch *m)
{
	struct brim__kind *kind;
	uint32_t k = 0;

	while (k < r->kind_count && r->ops->keeps_kinds &&
	       !is_kind(&r->kinds[k].sum, m) && k < KINDS_MAX - 1)
		k++;
	kind = &r->kinds[k];
	if (k < r->kind_count)
		return kind;
	r->kind_count++;
	kind->sum = (struct brim_mismatch_kind){ m->piece, m->what,
						 m->rule,  0,
						 m->group, m->off_bytes };
	if (k == KINDS_MAX - 1)
		kind->sum.piece = kind->sum.what = "other";
	return kind;
}

/* Forgets the one of a kind that lies last. */
static void kept_drop(struct brim_run *r, uint32_t kind)
{
	uint32_t k = r->kept_count;
	bool is_found = false;

	while (k-- > 0) {
		if (r->kept[k].kind != kind)
			continue;
		if (is_found)
			break;
		is_found = true;
		memmove(r->kept + k, r->kept + k + 1,
			(r->kept_count - k - 1) * sizeof(*r->kept));
		r->kept_count--;
		r->kinds[kind].kept--;
	}
	r->kinds[kind].kept_to =
		k < r->kept_count ? r->kept[k].mismatch.off_bytes : 0;
}

/* Room for one more; false without memory: then it is only counted. */
static bool kept_grow(struct brim_run *r)
{
	uint32_t room = r->kept_room ? 2 * r->kept_room : 16;
	struct brim__kept *v;

	if (r->kept_count < r->kept_room)
		return true;
	if (r->kept_room >= KEPT_MAX)
		return false;
	v = reallocarray(r->kept, room, sizeof(*v));
	if (!v)
		return false;
	r->kept = v;
	r->kept_room = room;
	return true;
}

static void keep(struct brim_run *r, const struct brim_mismatch *m,
		 struct brim__kind *kind)
{
	uint32_t number = (uint32_t)(kind - r->kinds), k;

	if (kind->kept == r->kept_max) {
		if (m->off_bytes >= kind->kept_to)
			return;
		kept_drop(r, number);
	}
	if (!kept_grow(r))
		return;
	k = r->kept_count;
	while (k && r->kept[k - 1].mismatch.off_bytes > m->off_bytes)
		k--;
	memmove(r->kept + k + 1, r->kept + k,
		(r->kept_count - k) * sizeof(*r->kept));
	r->kept[k] = (struct brim__kept){ *m, number };
	r->kept_count++;
	if (!kind->kept++ || m->off_bytes > kind->kept_to)
		kind->kept_to = m->off_bytes;
}

void brim__run_mismatch(struct brim_run *r, const struct brim_mismatch *m)
{
	struct brim__kind *kind;

	pthread_mutex_lock(&r->lock);
	r->mismatches++;
	kind = kind_of(r, m);
	kind->sum.count++;
	if (m->off_bytes < kind->sum.off_bytes) {
		kind->sum.off_bytes = m->off_bytes;
		kind->sum.group = m->group;
	}
	/*
	 * Completions come in any order; the lowest offsets are kept, so that
	 * the same damage gives the same report.
	 */
	keep(r, m, kind);
	pthread_mutex_unlock(&r->lock);
}

int brim_run_mismatch(const struct brim_run *r, size_t k,
		      struct brim_mismatch *out)
{
	/* The lock is no part of what the run is. */
	struct brim_run *w = (struct brim_run *)(uintptr_t)r;
	int ret = -ENOENT;

	pthread_mutex_lock(&w->lock);
	if (k < r->kept_count) {
		*out = r->kept[k].mismatch;
		ret = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}

int brim_run_mismatch_kind(const struct brim_run *r, size_t k,
			   struct brim_mismatch_kind *out)
{
	struct brim_run *w = (struct brim_run *)(uintptr_t)r;
	int ret = -ENOENT;

	pthread_mutex_lock(&w->lock);
	if (r->ops->keeps_kinds && k < r->kind_count) {
		*out = r->kinds[k].sum;
		ret = 0;
	}
	pthread_mutex_unlock(&w->lock);
	return ret;
}
