/* SPDX-License-Identifier: MIT */
/*
 * stamp_code.c: what a sealed stamp compiles to, and rendering it. The hot path
 * of every format: per instance a few stores and table look-ups, no copy where
 * the buffer holds the template already.
 *
 * A CRC is linear over GF(2): the checksum of instance i is the template's (the
 * first instance's) xor, for each byte that differs, the register that this
 * difference alone leaves at the end of the covered bytes. Those are tabled
 * per byte position that can differ at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/* A varying byte of a patch: which of its 8, and its table in the sum. */
struct code_byte {
	uint32_t shift;
	const uint32_t *table; /* [256] */
};

/* A patch as rendered: offset within its extent. */
struct code_patch {
	uint32_t at;
	uint8_t width_bytes;
	bool big;
	uint64_t base, step;
	uint64_t first; /* the template's value */
};

/* A sum with the patches it covers: code->patches[first .. first+count). */
struct code_sum {
	uint32_t at;
	bool big;
	uint32_t value; /* of the template */
	uint32_t first, count;
	uint32_t byte_first; /* its varying bytes, grouped by patch */
};

/* One extent's share of the code. */
struct code_extent {
	uint32_t patch_first, patch_count;
	uint32_t sum_first, sum_count;
};

struct brim__stamp_code {
	struct code_extent *extents;
	struct code_patch *patches;
	uint32_t *patch_bytes; /* varying bytes of each patch (in its sum) */
	struct code_sum *sums;
	struct code_byte *bytes;
	uint32_t *tables;
	size_t byte_count;
};

void brim__stamp_code_free(struct brim__stamp_code *c)
{
	if (!c)
		return;
	free(c->extents);
	free(c->patches);
	free(c->patch_bytes);
	free(c->sums);
	free(c->bytes);
	free(c->tables);
	free(c);
}

/*
 * How many low bytes of a patch can differ from the template's: the value is
 * monotonic, so the bits above the highest one in which both ends differ never
 * change.
 */
static uint32_t varying_bytes(const struct brim_stamp *s,
			      const struct brim__patch *p)
{
	uint64_t first = (uint64_t)p->base + (uint64_t)p->step * s->first;
	uint64_t last = first + (uint64_t)p->step * (s->count - 1);
	uint64_t diff = first ^ last;

	return diff ? (uint32_t)(63 - __builtin_clzll(diff)) / 8 + 1 : 0;
}

static bool sum_covers(const struct brim__sum *sum, const struct brim__patch *p)
{
	return p->off_bytes >= sum->from_bytes &&
	       p->off_bytes + p->width_bytes <=
		       sum->from_bytes + sum->len_bytes;
}

/* Where the byte with this shift of a patch's value is kept on disk. */
static uint64_t byte_at(const struct brim__patch *p, uint32_t k)
{
	return p->off_bytes +
	       (p->endian == BRIM_BIG ? p->width_bytes - 1 - k : k);
}

/*
 * The register left by a one-byte difference v, followed by the zeros up to
 * the end of the covered bytes: linear in v, so eight products make all 256.
 */
static void table_fill(uint32_t *table, const struct brim__sum *sum,
		       uint64_t at)
{
	uint64_t behind = sum->from_bytes + sum->len_bytes - at - 1;
	uint32_t bit, v;

	table[0] = 0;
	for (bit = 0; bit < 8; bit++) {
		uint8_t byte = (uint8_t)(1u << bit);
		uint32_t reg = brim_crc_portable(sum->how.kind, 0, &byte, 1);

		reg = brim_crc_zeros(sum->how.kind, reg, behind);
		for (v = 0; v < 1u << bit; v++)
			table[(1u << bit) + v] = reg ^ table[v];
	}
}

/* The checksum over the template, its own bytes zero; stored there too. */
static uint32_t template_sum(struct brim_stamp *s, size_t x,
			     const struct brim__sum *sum)
{
	uint64_t begin = s->extents[x].off_bytes;
	uint8_t *at = s->templates[x] + (sum->off_bytes - begin);
	uint32_t reg;

	memset(at, 0, 4);
	reg = brim_crc(sum->how.kind, sum->how.seed,
		       s->templates[x] + (sum->from_bytes - begin),
		       sum->len_bytes) ^
	      sum->how.xor_out;
	brim__store(at, 4, sum->how.endian, reg);
	return reg;
}

static size_t extent_of(const struct brim_stamp *s, uint64_t off_bytes)
{
	size_t x = 0;

	while (off_bytes - s->extents[x].off_bytes >= s->extents[x].len_bytes)
		x++;
	return x;
}

/* Compiles sum n; *i is the first patch that may lie within it. */
static void code_sum(struct brim_stamp *s, struct brim__stamp_code *c, size_t n,
		     size_t *i)
{
	const struct brim__sum *sum = &s->sums[n];
	struct code_sum *cs = &c->sums[n];
	size_t x = extent_of(s, sum->from_bytes);
	uint32_t k;

	cs->at = (uint32_t)(sum->off_bytes - s->extents[x].off_bytes);
	cs->big = sum->how.endian == BRIM_BIG;
	cs->value = template_sum(s, x, sum);
	cs->byte_first = (uint32_t)c->byte_count;
	while (*i < s->patch_count &&
	       s->patches[*i].off_bytes < sum->from_bytes)
		++*i;
	cs->first = (uint32_t)*i;
	for (; *i < s->patch_count && sum_covers(sum, &s->patches[*i]); ++*i) {
		const struct brim__patch *p = &s->patches[*i];

		cs->count++;
		c->patch_bytes[*i] = varying_bytes(s, p);
		for (k = 0; k < c->patch_bytes[*i]; k++) {
			struct code_byte *b = &c->bytes[c->byte_count];
			uint32_t *table = c->tables + 256 * c->byte_count++;

			table_fill(table, sum, byte_at(p, k));
			b->shift = 8 * k;
			b->table = table;
		}
	}
	c->extents[x].sum_count++;
}

static void code_patch(const struct brim_stamp *s, struct brim__stamp_code *c,
		       size_t i)
{
	const struct brim__patch *p = &s->patches[i];
	size_t x = extent_of(s, p->off_bytes);
	struct code_patch *cp = &c->patches[i];

	cp->at = (uint32_t)(p->off_bytes - s->extents[x].off_bytes);
	cp->width_bytes = (uint8_t)p->width_bytes;
	cp->big = p->endian == BRIM_BIG;
	cp->base = (uint64_t)p->base;
	cp->step = (uint64_t)p->step;
	cp->first = cp->base + cp->step * s->first;
	c->extents[x].patch_count++;
}

static struct brim__stamp_code *code_alloc(const struct brim_stamp *s)
{
	struct brim__stamp_code *c = calloc(1, sizeof(*c));
	size_t i, bytes = 1;

	if (!c)
		return NULL;
	for (i = 0; i < s->patch_count; i++)
		bytes += varying_bytes(s, &s->patches[i]);
	c->extents = calloc(s->extent_count, sizeof(*c->extents));
	c->patches = calloc(s->patch_count + 1, sizeof(*c->patches));
	c->patch_bytes = calloc(s->patch_count + 1, sizeof(*c->patch_bytes));
	c->sums = calloc(s->sum_count + 1, sizeof(*c->sums));
	c->bytes = calloc(bytes, sizeof(*c->bytes));
	c->tables = calloc(bytes, 256 * sizeof(*c->tables));
	if (c->extents && c->patches && c->patch_bytes && c->sums && c->bytes &&
	    c->tables)
		return c;
	brim__stamp_code_free(c);
	return NULL;
}

int brim__stamp_compile(struct brim_stamp *s, struct brim_err *e)
{
	struct brim__stamp_code *c = code_alloc(s);
	uint32_t patches = 0, sums = 0;
	size_t i, patch = 0;

	if (!c)
		return brim__err(e, -ENOMEM, "stamp", "compile");
	for (i = 0; i < s->patch_count; i++)
		code_patch(s, c, i);
	for (i = 0; i < s->sum_count; i++)
		code_sum(s, c, i, &patch);
	/* Patches and sums are sorted, so each extent's lie together. */
	for (i = 0; i < s->extent_count; i++) {
		c->extents[i].patch_first = patches;
		c->extents[i].sum_first = sums;
		patches += c->extents[i].patch_count;
		sums += c->extents[i].sum_count;
	}
	s->code = c;
	return 0;
}

/* The part of an extent that is being rendered. */
struct window {
	uint8_t *buf;
	uint32_t from, len;
};

static bool swaps(bool big)
{
	return big == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

static inline void store_whole(uint8_t *at, uint32_t width, bool big,
			       uint64_t v)
{
	uint32_t w = (uint32_t)v;

	if (width == 4) {
		w = swaps(big) ? __builtin_bswap32(w) : w;
		memcpy(at, &w, sizeof(w));
	} else if (width == 8) {
		v = swaps(big) ? __builtin_bswap64(v) : v;
		memcpy(at, &v, sizeof(v));
	} else {
		brim__store(at, width, big ? BRIM_BIG : BRIM_LITTLE, v);
	}
}

/* Stores what the window holds of a value: all of it, some bytes, or none. */
static inline void store(const struct window *w, uint32_t at, uint32_t width,
			 bool big, uint64_t v)
{
	uint8_t bytes[8];
	uint32_t k;

	if (at >= w->from && at - w->from + width <= w->len) {
		store_whole(w->buf + (at - w->from), width, big, v);
		return;
	}
	store_whole(bytes, width, big, v);
	for (k = 0; k < width; k++)
		if (at + k >= w->from && at + k - w->from < w->len)
			w->buf[at + k - w->from] = bytes[k];
}

static inline uint32_t sum_value(const struct brim__stamp_code *c,
				 const struct code_sum *s, uint64_t i)
{
	const struct code_byte *b = c->bytes + s->byte_first;
	uint32_t value = s->value;
	uint32_t n, k;

	for (n = s->first; n < s->first + s->count; n++) {
		const struct code_patch *p = &c->patches[n];
		uint64_t diff = (p->base + p->step * i) ^ p->first;

		for (k = 0; k < c->patch_bytes[n]; k++, b++)
			value ^= b->table[diff >> b->shift & 0xff];
	}
	return value;
}

void brim_stamp_render(const struct brim_stamp *s, size_t x, uint64_t i,
		       uint32_t off_bytes, uint32_t len_bytes, void *buf,
		       int fresh)
{
	const struct brim__stamp_code *c = s->code;
	const struct code_extent *ce = &c->extents[x];
	const struct window w = { buf, off_bytes, len_bytes };
	uint32_t n;

	if (fresh)
		memcpy(buf, s->templates[x] + off_bytes, len_bytes);
	for (n = ce->patch_first; n < ce->patch_first + ce->patch_count; n++) {
		const struct code_patch *p = &c->patches[n];

		store(&w, p->at, p->width_bytes, p->big, p->base + p->step * i);
	}
	for (n = ce->sum_first; n < ce->sum_first + ce->sum_count; n++) {
		const struct code_sum *sum = &c->sums[n];

		/* A checksum over nothing that varies is the template's. */
		if (sum->count && sum->at + 4 > off_bytes &&
		    sum->at < off_bytes + len_bytes)
			store(&w, sum->at, 4, sum->big, sum_value(c, sum, i));
	}
}
