/* SPDX-License-Identifier: MIT */
/*
 * stamp.c: building a stamp: regions, values, checksums, and sealing them into
 * extents. Called by layout.c, image.c and the binding; rendering is
 * stamp_code.c. Offsets are bytes from the instance's start.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

int brim_stamp_create(struct brim_stamp **out, struct brim_err *e)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : brim__err(e, -ENOMEM, "stamp", "stamp");
}

static void extents_free(struct brim_stamp *s)
{
	size_t i;

	for (i = 0; s->templates && i < s->extent_count; i++)
		free(s->templates[i]);
	free(s->templates);
	free(s->extents);
	s->templates = NULL;
	s->extents = NULL;
	s->extent_count = 0;
}

void brim_stamp_free(struct brim_stamp *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->region_count; i++) {
		free(s->regions[i].label);
		free(s->regions[i].bytes);
	}
	for (i = 0; i < s->patch_count; i++)
		free(s->patches[i].field);
	brim__stamp_code_free(s->code);
	extents_free(s);
	free(s->regions);
	free(s->patches);
	free(s->sums);
	free(s);
}

/* Room for one more element; doubles. */
static int grow(void *array, size_t count, size_t *room, size_t element_bytes)
{
	void **at = array;
	size_t wanted = *room ? 2 * *room : 8;
	void *p;

	if (count < *room)
		return 0;
	p = reallocarray(*at, wanted, element_bytes);
	if (!p)
		return -ENOMEM;
	*at = p;
	*room = wanted;
	return 0;
}

static int stamp_open(const struct brim_stamp *s, struct brim_err *e)
{
	if (s->sealed)
		return brim__errf(e, -EINVAL, "stamp",
				  "the stamp is sealed; nothing can be added");
	return 0;
}

static bool region_overlaps(const struct brim__region *r, uint64_t off_bytes,
			    uint64_t len_bytes)
{
	return off_bytes < r->off_bytes + r->len_bytes &&
	       r->off_bytes < off_bytes + len_bytes;
}

int brim_stamp_region(struct brim_stamp *s, uint64_t off_bytes,
		      uint32_t len_bytes, const char *label, struct brim_err *e)
{
	struct brim__region *r;
	size_t i;

	if (stamp_open(s, e) < 0)
		return -EINVAL;
	if (!len_bytes || off_bytes > BRIM_MAX_BYTES - len_bytes)
		return brim__errf(e, -EINVAL, "stamp",
				  "%s: %u bytes at %" PRIu64 " are no region",
				  label, len_bytes, off_bytes);
	for (i = 0; i < s->region_count; i++)
		if (region_overlaps(&s->regions[i], off_bytes, len_bytes))
			return brim__errf(e, -EEXIST, "stamp",
					  "'%s' at %" PRIu64
					  " overlaps '%s' at %" PRIu64,
					  label, off_bytes, s->regions[i].label,
					  s->regions[i].off_bytes);
	if (len_bytes > BRIM_STAMP_MAX_BYTES - s->total_bytes)
		return brim__errf(
			e, -EFBIG, "stamp",
			"'%s' takes the stamp past %u bytes; use a range of zeros or more pieces",
			label, BRIM_STAMP_MAX_BYTES);
	if (grow(&s->regions, s->region_count, &s->region_room,
		 sizeof(*s->regions)) < 0)
		return brim__err(e, -ENOMEM, "stamp", label);
	r = &s->regions[s->region_count];
	r->off_bytes = off_bytes;
	r->len_bytes = len_bytes;
	r->label = strdup(label);
	r->bytes = calloc(1, len_bytes);
	if (!r->label || !r->bytes) {
		free(r->label);
		free(r->bytes);
		return brim__err(e, -ENOMEM, "stamp", label);
	}
	s->region_count++;
	s->total_bytes += len_bytes;
	return 0;
}

/* The region that holds [off, off+len) whole, or NULL with *e filled. */
static struct brim__region *region_find(struct brim_stamp *s,
					uint64_t off_bytes, uint64_t len_bytes,
					struct brim_err *e)
{
	size_t i = s->region_count;

	/* The latest region is the likeliest. */
	while (i--) {
		struct brim__region *r = &s->regions[i];

		if (off_bytes >= r->off_bytes && len_bytes <= r->len_bytes &&
		    off_bytes - r->off_bytes <= r->len_bytes - len_bytes)
			return r;
	}
	brim__errf(e, -ERANGE, "stamp",
		   "%" PRIu64 " bytes at %" PRIu64
		   " lie in no region of the stamp",
		   len_bytes, off_bytes);
	return NULL;
}

int brim_stamp_set_bytes(struct brim_stamp *s, uint64_t off_bytes,
			 const void *bytes, size_t len_bytes,
			 struct brim_err *e)
{
	struct brim__region *r;

	if (stamp_open(s, e) < 0)
		return -EINVAL;
	if (!len_bytes)
		return 0;
	r = region_find(s, off_bytes, len_bytes, e);
	if (!r)
		return -ERANGE;
	memcpy(r->bytes + (off_bytes - r->off_bytes), bytes, len_bytes);
	return 0;
}

static int patch_add(struct brim_stamp *s, const struct brim__patch *p,
		     struct brim_err *e)
{
	if (grow(&s->patches, s->patch_count, &s->patch_room,
		 sizeof(*s->patches)) < 0)
		return brim__err(e, -ENOMEM, "stamp", "patch");
	s->patches[s->patch_count++] = *p;
	return 0;
}

/* Whether v fits `width` bytes, as unsigned or (constants) as signed. */
static bool value_fits(__int128 v, uint32_t width_bytes, bool constant)
{
	__int128 top = (__int128)1 << (8 * width_bytes);

	if (constant)
		return v >= -(top >> 1) && v < top;
	/* 64-bit values that vary stay within what Lua can name. */
	return v >= 0 && v < (width_bytes == 8 ? top >> 1 : top);
}

int brim_stamp_set_int(struct brim_stamp *s, uint64_t off_bytes,
		       uint32_t width_bytes, enum brim_endian endian,
		       int64_t base, int64_t step, const char *field,
		       struct brim_err *e)
{
	struct brim__patch p = { .off_bytes = off_bytes,
				 .width_bytes = width_bytes,
				 .endian = endian,
				 .base = base,
				 .step = step };
	struct brim__region *r;
	int ret;

	if (stamp_open(s, e) < 0 ||
	    brim__int_check("stamp", field ? field : "?", width_bytes, endian,
			    e) < 0)
		return -EINVAL;
	r = region_find(s, off_bytes, width_bytes, e);
	if (!r)
		return -ERANGE;
	if (!step && !value_fits(base, width_bytes, true))
		return brim__errf(
			e, -ERANGE, "stamp",
			"field '%s' of '%s': %" PRId64 " does not fit %u bits",
			field ? field : "?", r->label, base, 8 * width_bytes);
	brim__store(r->bytes + (off_bytes - r->off_bytes), width_bytes, endian,
		    (uint64_t)base);
	if (!step)
		return 0;
	p.field = strdup(field ? field : "?");
	if (!p.field)
		return brim__err(e, -ENOMEM, "stamp", "patch");
	ret = patch_add(s, &p, e);
	if (ret < 0)
		free(p.field);
	return ret;
}

int brim_stamp_set_checksum(struct brim_stamp *s, uint64_t off_bytes,
			    uint64_t from_bytes, uint32_t len_bytes,
			    const struct brim_checksum *c, struct brim_err *e)
{
	struct brim__sum *sum;

	if (stamp_open(s, e) < 0 ||
	    brim__checksum_check("stamp", "checksum", c, e) < 0)
		return -EINVAL;
	if (!region_find(s, from_bytes, len_bytes, e))
		return -ERANGE;
	if (len_bytes < 4 || off_bytes < from_bytes ||
	    off_bytes - from_bytes > len_bytes - 4)
		return brim__errf(e, -ERANGE, "stamp",
				  "a checksum lies within what it covers");
	if (grow(&s->sums, s->sum_count, &s->sum_room, sizeof(*s->sums)) < 0)
		return brim__err(e, -ENOMEM, "stamp", "checksum");
	sum = &s->sums[s->sum_count++];
	sum->off_bytes = off_bytes;
	sum->from_bytes = from_bytes;
	sum->len_bytes = len_bytes;
	sum->how = *c;
	return 0;
}

static bool patch_fits(const struct brim__patch *p, uint64_t i)
{
	return value_fits((__int128)p->base + (__int128)p->step * i,
			  p->width_bytes, false);
}

/*
 * Every varying value must fit at both ends; between them it is monotonic. The
 * regions get the first instance's.
 */
static int patches_check(struct brim_stamp *s, struct brim_err *e)
{
	size_t i;

	for (i = 0; i < s->patch_count; i++) {
		const struct brim__patch *p = &s->patches[i];
		uint64_t last = s->first + s->count - 1;
		struct brim__region *r;
		bool first_bad = !patch_fits(p, s->first);

		r = region_find(s, p->off_bytes, p->width_bytes, e);
		if (!first_bad && patch_fits(p, last)) {
			brim__store(r->bytes + (p->off_bytes - r->off_bytes),
				    p->width_bytes, p->endian,
				    (uint64_t)p->base +
					    (uint64_t)p->step * s->first);
			continue;
		}
		return brim__errf(e, -ERANGE, "stamp",
				  "field '%s' of '%s': %" PRId64 " + %" PRId64
				  " * %" PRIu64 " does not fit %u bits",
				  p->field, r->label, p->base, p->step,
				  first_bad ? s->first : last,
				  p->width_bytes == 8 ? 63
						      : 8 * p->width_bytes);
	}
	return 0;
}

/*
 * The sorted values must be apart, the sorted checksums too, and no value may
 * lie across an end of what a checksum covers, or in the checksum's place.
 */
static int order_check(const struct brim_stamp *s, struct brim_err *e)
{
	size_t i, k, n;

	for (i = 1; i < s->patch_count; i++)
		if (s->patches[i - 1].off_bytes +
			    s->patches[i - 1].width_bytes >
		    s->patches[i].off_bytes)
			return brim__errf(e, -EEXIST, "stamp",
					  "field '%s' is set twice",
					  s->patches[i].field);
	for (i = 1; i < s->sum_count; i++)
		if (s->sums[i - 1].from_bytes + s->sums[i - 1].len_bytes >
		    s->sums[i].from_bytes)
			return brim__errf(
				e, -EOPNOTSUPP, "stamp",
				"two checksums cover the bytes at %" PRIu64,
				s->sums[i].from_bytes);
	for (i = 0, n = 0; i < s->sum_count; i++) {
		const struct brim__sum *sum = &s->sums[i];
		uint64_t ends[] = { sum->from_bytes, sum->off_bytes,
				    sum->off_bytes + 4,
				    sum->from_bytes + sum->len_bytes };

		for (; n < s->patch_count && s->patches[n].off_bytes < ends[3];
		     n++) {
			uint64_t from = s->patches[n].off_bytes;
			uint64_t to = from + s->patches[n].width_bytes;

			for (k = 0; k < 4; k++)
				if (from < ends[k] && to > ends[k])
					break;
			if (k < 4 || (from >= ends[1] && from < ends[2]))
				return brim__errf(
					e, -EINVAL, "stamp",
					"field '%s' lies across a checksum or an end of what it covers",
					s->patches[n].field);
		}
	}
	return 0;
}

static int region_order(const void *a, const void *b)
{
	const struct brim__region *x = a, *y = b;

	return x->off_bytes < y->off_bytes ? -1 : x->off_bytes > y->off_bytes;
}

static int patch_order(const void *a, const void *b)
{
	const struct brim__patch *x = a, *y = b;

	return x->off_bytes < y->off_bytes ? -1 : x->off_bytes > y->off_bytes;
}

static int sum_order(const void *a, const void *b)
{
	const struct brim__sum *x = a, *y = b;

	return x->off_bytes < y->off_bytes ? -1 : x->off_bytes > y->off_bytes;
}

/* Merges the sorted regions into extents with their templates. */
static int extents_make(struct brim_stamp *s)
{
	struct brim_extent *x = NULL;
	size_t i, from = 0;

	s->extents = calloc(s->region_count, sizeof(*s->extents));
	s->templates = calloc(s->region_count, sizeof(*s->templates));
	if (!s->extents || !s->templates)
		return -ENOMEM;
	for (i = 0; i < s->region_count; i++) {
		const struct brim__region *r = &s->regions[i];

		if (x && x->off_bytes + x->len_bytes == r->off_bytes) {
			x->len_bytes += r->len_bytes;
			continue;
		}
		x = &s->extents[s->extent_count++];
		x->off_bytes = r->off_bytes;
		x->len_bytes = r->len_bytes;
	}
	for (i = 0; i < s->extent_count; i++) {
		x = &s->extents[i];
		s->templates[i] = malloc(x->len_bytes);
		if (!s->templates[i])
			return -ENOMEM;
		while (from < s->region_count &&
		       s->regions[from].off_bytes <
			       x->off_bytes + x->len_bytes) {
			const struct brim__region *r = &s->regions[from++];

			memcpy(s->templates[i] + (r->off_bytes - x->off_bytes),
			       r->bytes, r->len_bytes);
		}
	}
	return 0;
}

/* qsort's array must not be NULL, even for nothing. */
static void sort(void *array, size_t n, size_t element_bytes,
		 int (*order)(const void *, const void *))
{
	if (n > 1)
		qsort(array, n, element_bytes, order);
}

int brim_stamp_seal(struct brim_stamp *s, uint64_t first, uint64_t count,
		    struct brim_err *e)
{
	size_t i;
	int ret;

	if (stamp_open(s, e) < 0)
		return -EINVAL;
	if (!count || count > BRIM_MAX_BYTES ||
	    first > BRIM_MAX_BYTES - count || !s->region_count)
		return brim__errf(e, -EINVAL, "stamp",
				  "a stamp needs a region and an instance");
	s->first = first;
	s->count = count;
	ret = patches_check(s, e);
	if (ret < 0)
		return ret;
	sort(s->regions, s->region_count, sizeof(*s->regions), region_order);
	sort(s->patches, s->patch_count, sizeof(*s->patches), patch_order);
	sort(s->sums, s->sum_count, sizeof(*s->sums), sum_order);
	ret = order_check(s, e);
	if (ret < 0)
		return ret;
	ret = extents_make(s);
	if (ret < 0)
		brim__err(e, ret, "stamp", "extents");
	else
		ret = brim__stamp_compile(s, e);
	if (ret < 0) {
		extents_free(s);
		return ret;
	}
	for (i = 0; i < s->region_count; i++) {
		free(s->regions[i].bytes);
		s->regions[i].bytes = NULL;
	}
	s->sealed = true;
	return 0;
}

size_t brim_stamp_extents(const struct brim_stamp *s,
			  const struct brim_extent **out)
{
	*out = s->extents;
	return s->extent_count;
}
