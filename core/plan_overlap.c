/* SPDX-License-Identifier: MIT */
/*
 * plan_overlap.c: which instances of a piece later pieces hide (same phase) or
 * write over (later phases). Called once, when a plan is sealed. Within a phase
 * the order of I/Os is free, so a later piece must cover whole instances of an
 * earlier stamp; ranges of zeros may be cut anywhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/*
 * The most steps sealing one plan may take, so that no plan (of an image file,
 * say) takes for ever: an instance or extent looked at, or so many spans moved
 * to make room for one. All of them are half a second.
 */
#ifndef OVERLAP_MAX /* fuzzers take less */
#define OVERLAP_MAX (64u << 20)
#endif
#define SPANS_PER_STEP 32u
/* The most holes later stamps may cut into one range of zeros. */
#define ZERO_HOLES_MAX (1u << 16)

void brim__spans_free(struct brim__spans *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

size_t brim__spans_seek(const struct brim__spans *s, uint64_t at)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].to > at)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Adds [from, to), merging it with the spans it meets. */
int brim__spans_add(struct brim__spans *s, uint64_t from, uint64_t to)
{
	size_t i = from ? brim__spans_seek(s, from - 1) : 0;
	size_t k = i;

	for (; k < s->n && s->v[k].from <= to; k++) {
		from = BRIM__MIN(from, s->v[k].from);
		to = BRIM__MAX(to, s->v[k].to);
	}
	if (k == i) {
		if (s->n == s->room) {
			size_t room = s->room ? 2 * s->room : 4;
			void *v = reallocarray(s->v, room, sizeof(*s->v));

			if (!v)
				return -ENOMEM;
			s->v = v;
			s->room = room;
		}
		memmove(&s->v[i + 1], &s->v[i], (s->n - i) * sizeof(*s->v));
		s->n++;
	} else {
		memmove(&s->v[i + 1], &s->v[k], (s->n - k) * sizeof(*s->v));
		s->n -= k - i - 1;
	}
	s->v[i].from = from;
	s->v[i].to = to;
	return 0;
}

static uint64_t piece_begin(const struct brim__piece *p)
{
	return p->off_bytes + p->stride_bytes * p->first +
	       (p->is_zero ? 0 : brim__stamp_begin(p->stamp));
}

/* The bytes from an instance's first to behind its last. */
static uint64_t piece_len(const struct brim__piece *p)
{
	return p->is_zero ? p->len_bytes
			  : brim__stamp_end(p->stamp) -
				    brim__stamp_begin(p->stamp);
}

static uint64_t piece_end(const struct brim__piece *p)
{
	return piece_begin(p) + p->stride_bytes * (p->count - 1) + piece_len(p);
}

void brim__piece_touch(const struct brim__piece *p, uint64_t from, uint64_t to,
		       uint64_t *lo, uint64_t *hi)
{
	uint64_t begin = piece_begin(p), len = piece_len(p);
	uint64_t stride = p->count > 1 ? p->stride_bytes : len;

	*lo = from >= begin + len ? (from - begin - len) / stride + 1 : 0;
	*hi = to > begin ? (to - 1 - begin) / stride + 1 : 0;
	*hi = p->first + BRIM__MIN(*hi, p->count);
	*lo = BRIM__MIN(p->first + *lo, *hi);
}

static uint64_t common(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t from = BRIM__MAX(a, c), to = BRIM__MIN(b, d);

	return from < to ? to - from : 0;
}

/* One pair of pieces being compared. */
struct pair {
	struct brim__piece *early;
	const struct brim__piece *late;
	struct brim__spans *out; /* early's hidden or shadow */
	bool same_phase;
	uint64_t *budget; /* steps that may still be taken */
	struct brim_err *e;
};

/* Takes n from the steps left; false where they are used up. */
static bool pair_charge(struct pair *p, uint64_t n)
{
	if (n > *p->budget) {
		*p->budget = 0;
		return false;
	}
	*p->budget -= n;
	return true;
}

/* Notes [from, to) in p->out: 0, -ENOMEM, or -E2BIG out of steps. */
static int pair_add(struct pair *p, uint64_t from, uint64_t to)
{
	size_t moved = p->out->n - brim__spans_seek(p->out, from);

	if (!pair_charge(p, 1 + moved / SPANS_PER_STEP))
		return -E2BIG;
	if (brim__spans_add(p->out, from, to) < 0)
		return brim__err(p->e, -ENOMEM, "plan", p->early->name);
	return 0;
}

/* How many of the bytes [from, to) instance i of the later stamp holds. */
static uint64_t late_instance_covers(struct pair *p, uint64_t i, uint64_t from,
				     uint64_t to)
{
	const struct brim_stamp *s = p->late->stamp;
	uint64_t base = p->late->off_bytes + p->late->stride_bytes * i;
	uint64_t covered = 0;
	size_t x = from > base ? brim__extent_seek(s, from - base) : 0;

	for (; x < s->extent_count; x++) {
		uint64_t begin = base + s->extents[x].off_bytes;

		if (begin >= to || !pair_charge(p, 1))
			break;
		covered += common(from, to, begin,
				  begin + s->extents[x].len_bytes);
	}
	return covered;
}

/* How many of the bytes [from, to) the later piece holds. */
static uint64_t late_covers(struct pair *p, uint64_t from, uint64_t to)
{
	const struct brim__piece *late = p->late;
	uint64_t lo, hi, covered = 0;

	if (late->is_zero)
		return common(from, to, late->off_bytes,
			      late->off_bytes + late->len_bytes);
	brim__piece_touch(late, from, to, &lo, &hi);
	if (!pair_charge(p, hi - lo))
		return 0;
	for (; lo < hi && *p->budget; lo++)
		covered += late_instance_covers(p, lo, from, to);
	return covered;
}

enum cover { COVER_NONE, COVER_PART, COVER_ALL };

/* How much of instance i of the earlier stamp the later piece covers. */
static enum cover instance_cover(struct pair *p, uint64_t i)
{
	const struct brim_stamp *s = p->early->stamp;
	uint64_t base = p->early->off_bytes + p->early->stride_bytes * i;
	uint64_t covered = 0;
	size_t x;

	if (!pair_charge(p, s->extent_count))
		return COVER_NONE;
	for (x = 0; x < s->extent_count; x++)
		covered += late_covers(p, base + s->extents[x].off_bytes,
				       base + s->extents[x].off_bytes +
					       s->extents[x].len_bytes);
	if (!covered)
		return COVER_NONE;
	return covered == s->total_bytes ? COVER_ALL : COVER_PART;
}

/* Notes the instances [lo, hi), of which `lo` stands for all. */
static int pair_note(struct pair *p, uint64_t lo, uint64_t hi)
{
	enum cover c;

	c = instance_cover(p, lo);
	if (!*p->budget)
		return -E2BIG;
	if (c == COVER_NONE)
		return 0;
	if (c == COVER_PART && p->same_phase)
		return brim__errf(
			p->e, -EEXIST, "plan",
			"'%s' covers part of instance %" PRIu64
			" of '%s' in the same phase; put it into a later phase or cover all of it",
			p->late->name, lo, p->early->name);
	return pair_add(p, lo, hi);
}

static int pair_one_by_one(struct pair *p, uint64_t lo, uint64_t hi)
{
	int ret = 0;

	for (; lo < hi && ret == 0; lo++)
		ret = pair_note(p, lo, lo + 1);
	return ret;
}

/* Looks at the earlier instances near each of the (fewer) later ones. */
static int pair_by_late(struct pair *p)
{
	uint64_t i, lo, hi, done = 0;
	int ret = 0;

	for (i = 0; i < p->late->count && ret == 0; i++) {
		uint64_t begin =
			piece_begin(p->late) + p->late->stride_bytes * i;

		if (!pair_charge(p, 1))
			return -E2BIG;
		brim__piece_touch(p->early, begin, begin + piece_len(p->late),
				  &lo, &hi);
		lo = BRIM__MAX(lo, done);
		if (lo >= hi)
			continue;
		ret = pair_one_by_one(p, lo, hi);
		done = hi;
	}
	return ret;
}

static int pair_stamp(struct pair *p)
{
	uint64_t lo, hi;
	int ret = 0;

	brim__piece_touch(p->early, piece_begin(p->late), piece_end(p->late),
			  &lo, &hi);
	/*
	 * Under zeros, or with equal strides, what holds for one instance
	 * holds for all but the outermost.
	 */
	if (hi - lo > 8 && (p->late->is_zero ||
			    p->late->stride_bytes == p->early->stride_bytes)) {
		ret = pair_one_by_one(p, lo, lo + 2);
		if (ret == 0)
			ret = pair_note(p, lo + 2, hi - 2);
		return ret < 0 ? ret : pair_one_by_one(p, hi - 2, hi);
	}
	if (p->late->count < hi - lo)
		return pair_by_late(p);
	return pair_one_by_one(p, lo, hi);
}

/* Cuts what a later piece of the same phase holds out of zeros. */
static int pair_zero(struct pair *p)
{
	const struct brim__piece *late = p->late;
	uint64_t zero_end = p->early->off_bytes + p->early->len_bytes;
	uint64_t i, lo = 0, hi = 1;
	size_t x, extents = late->is_zero ? 1 : late->stamp->extent_count;
	int ret = 0;

	if (!p->same_phase)
		return 0;
	brim__piece_touch(late, p->early->off_bytes, zero_end, &lo, &hi);
	if (hi - lo > ZERO_HOLES_MAX / extents)
		return brim__errf(
			p->e, -E2BIG, "plan",
			"zeros '%s' lie under the %" PRIu64
			" instances of '%s' in one phase; put them into an earlier phase",
			p->early->name, hi - lo, late->name);
	for (i = lo; i < hi; i++) {
		for (x = 0; x < extents && ret == 0; x++) {
			uint64_t from =
				late->off_bytes + late->stride_bytes * i;
			uint64_t to = from + late->len_bytes;

			if (!late->is_zero) {
				from += late->stamp->extents[x].off_bytes;
				to = from + late->stamp->extents[x].len_bytes;
			}
			from = BRIM__MAX(from, p->early->off_bytes);
			to = BRIM__MIN(to, zero_end);
			if (from < to)
				ret = pair_add(p, from - p->early->off_bytes,
					       to - p->early->off_bytes);
		}
	}
	return ret;
}

int brim__plan_overlaps(struct brim_plan *plan, struct brim_err *e)
{
	uint64_t budget = OVERLAP_MAX;
	size_t i, k;
	int ret = 0;

	for (i = 0; i < plan->piece_count && ret == 0; i++) {
		for (k = i + 1; k < plan->piece_count && ret == 0; k++) {
			struct brim__piece *early = &plan->pieces[i];
			struct brim__piece *late = &plan->pieces[k];
			bool same = early->phase == late->phase;
			struct pair p = {
				early,
				late,
				same ? &early->hidden : &early->shadow,
				same,
				&budget,
				e
			};

			if (piece_end(early) <= piece_begin(late) ||
			    piece_end(late) <= piece_begin(early))
				continue;
			ret = early->is_zero ? pair_zero(&p) : pair_stamp(&p);
			if (ret == -E2BIG && !budget)
				brim__errf(
					e, ret, "plan",
					"'%s' and '%s' overlap in more places than can be looked at one by one; give them the same stride, or the plan fewer pieces",
					early->name, late->name);
		}
	}
	return ret;
}

int brim_plan_unseal(struct brim_plan *p, struct brim_err *e)
{
	size_t i;

	if (__atomic_load_n(&p->holders, __ATOMIC_ACQUIRE) > 1)
		return brim__errf(e, -EBUSY, "plan",
				  "plan '%s' is in use; close its runs and "
				  "devices first",
				  p->name);
	for (i = 0; i < p->piece_count; i++) {
		brim__spans_free(&p->pieces[i].hidden);
		brim__spans_free(&p->pieces[i].shadow);
	}
	p->sealed = false;
	return 0;
}
