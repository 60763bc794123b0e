/* SPDX-License-Identifier: MIT */
/*
 * scan.c: what must hold at every instance (scans), and the kind of run that
 * reads and checks it. Checking happens in the engine's threads where it has
 * some. Offsets are bytes, relative to the instance where a scan keeps them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* One instance is one read: what lies further apart is two scans. */
#define SPAN_MAX (16u << 20)
/*
 * Instances are read together where the bytes between them cost less than
 * another I/O: up to as many as the instance has, or a page.
 */
#define GAP_MIN 4096u

/* A structure whose checksum must hold. */
struct scan_sum {
	const struct brim_layout *layout;
	uint64_t off_bytes;
	uint32_t size_bytes;
};

/* An integer that must be base + step * i, in its width. */
struct scan_int {
	uint64_t off_bytes;
	uint64_t base, step, mask;
	uint32_t width_bytes;
	enum brim_endian endian;
	char *structure, *field;
};

/* Bytes that are the same at every instance. */
struct scan_bytes {
	uint64_t off_bytes;
	uint32_t len_bytes;
	uint8_t *bytes;
	char *structure, *field;
};

struct brim_scan {
	uint32_t holders; /* who must let go before it is freed */
	struct scan_sum *sums;
	size_t sum_count;
	struct scan_int *ints;
	size_t int_count;
	struct scan_bytes *bytes;
	size_t bytes_count;
	uint64_t from_bytes, to_bytes; /* of all expectations; 0, 0: none */
};

/* ------------------------------------------------------------ expectations */

int brim_scan_create(struct brim_scan **out, struct brim_err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return brim__err(e, -ENOMEM, "scan", "create");
	(*out)->holders = 1;
	return 0;
}

/* One more holder, who lets go with brim_scan_free. */
static const struct brim_scan *scan_hold(const struct brim_scan *s)
{
	/* How many hold it is no part of what is expected. */
	uint32_t *holders = (uint32_t *)(uintptr_t)&s->holders;

	__atomic_add_fetch(holders, 1, __ATOMIC_RELAXED);
	return s;
}

void brim_scan_free(struct brim_scan *s)
{
	size_t k;

	if (!s || __atomic_sub_fetch(&s->holders, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (k = 0; k < s->bytes_count; k++) {
		free(s->bytes[k].structure);
		free(s->bytes[k].field);
		free(s->bytes[k].bytes);
	}
	free(s->bytes);
	for (k = 0; k < s->int_count; k++) {
		free(s->ints[k].structure);
		free(s->ints[k].field);
	}
	free(s->ints);
	free(s->sums);
	free(s);
}

/* Widens the scan's span by what is expected at off; at most SPAN_MAX. */
static int scan_cover(struct brim_scan *s, uint64_t off_bytes, uint32_t len,
		      const char *what, struct brim_err *e)
{
	bool is_first = s->from_bytes == s->to_bytes;
	uint64_t from, to;

	if (off_bytes > BRIM_MAX_BYTES - len)
		return brim__errf(e, -ERANGE, "scan",
				  "%s at %llu lies past "
				  "the largest offset, 2^63-1",
				  what, (unsigned long long)off_bytes);
	from = is_first ? off_bytes : BRIM__MIN(s->from_bytes, off_bytes);
	to = is_first ? off_bytes + len
		      : BRIM__MAX(s->to_bytes, off_bytes + len);
	if (to - from > SPAN_MAX)
		return brim__errf(e, -EFBIG, "scan",
				  "%s at %llu is more than "
				  "%u bytes away from the others: use a second "
				  "scan",
				  what, (unsigned long long)off_bytes,
				  SPAN_MAX);
	s->from_bytes = from;
	s->to_bytes = to;
	return 0;
}

int brim_scan_expect_layout(struct brim_scan *s, const struct brim_layout *l,
			    uint64_t off_bytes, uint32_t size_bytes,
			    struct brim_err *e)
{
	const char *name = brim_layout_name(l);
	struct scan_sum *v;
	int ret;

	if (!brim__layout_fits(l, size_bytes))
		return brim__errf(e, -EINVAL, "scan",
				  "%s in %u bytes: it has "
				  "%u",
				  name, size_bytes, brim_layout_size_bytes(l));
	v = realloc(s->sums, (s->sum_count + 1) * sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", name);
	s->sums = v;
	ret = scan_cover(s, off_bytes, size_bytes, name, e);
	if (ret < 0)
		return ret;
	v[s->sum_count++] = (struct scan_sum){ l, off_bytes, size_bytes };
	return 0;
}

/* Room for one more integer; NULL without memory. */
static struct scan_int *scan_grow(struct brim_scan *s)
{
	struct scan_int *v;

	v = reallocarray(s->ints, s->int_count + 1, sizeof(*v));
	if (!v)
		return NULL;
	s->ints = v;
	memset(&v[s->int_count], 0, sizeof(*v));
	return &v[s->int_count];
}

int brim_scan_expect_int(struct brim_scan *s, uint64_t off_bytes,
			 uint32_t width_bytes, enum brim_endian endian,
			 int64_t base, int64_t step, const char *structure,
			 const char *field, struct brim_err *e)
{
	struct scan_int *x;
	int ret;

	ret = brim__int_check("scan", field, width_bytes, endian, e);
	if (ret < 0)
		return ret;
	x = scan_grow(s);
	if (!x)
		return brim__err(e, -ENOMEM, "scan", field);
	x->off_bytes = off_bytes;
	x->base = (uint64_t)base;
	x->step = (uint64_t)step;
	x->mask = UINT64_MAX >> (64 - 8 * width_bytes);
	x->width_bytes = width_bytes;
	x->endian = endian;
	x->structure = strdup(structure ? structure : "");
	x->field = strdup(field);
	if (!x->structure || !x->field)
		ret = brim__err(e, -ENOMEM, "scan", field);
	else
		ret = scan_cover(s, off_bytes, width_bytes, field, e);
	if (ret < 0) {
		free(x->structure);
		free(x->field);
		return ret;
	}
	s->int_count++;
	return 0;
}

int brim_scan_expect_bytes(struct brim_scan *s, uint64_t off_bytes,
			   const void *bytes, uint32_t len_bytes,
			   const char *structure, const char *field,
			   struct brim_err *e)
{
	struct scan_bytes x = { .off_bytes = off_bytes,
				.len_bytes = len_bytes };
	struct scan_bytes *v;
	int ret;

	if (!len_bytes)
		return brim__errf(e, -EINVAL, "scan",
				  "field '%s': no bytes are expected", field);
	v = reallocarray(s->bytes, s->bytes_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", field);
	s->bytes = v;
	x.bytes = malloc(len_bytes);
	x.structure = strdup(structure ? structure : "");
	x.field = strdup(field);
	if (!x.bytes || !x.structure || !x.field)
		ret = brim__err(e, -ENOMEM, "scan", field);
	else
		ret = scan_cover(s, off_bytes, len_bytes, field, e);
	if (ret < 0) {
		free(x.bytes);
		free(x.structure);
		free(x.field);
		return ret;
	}
	memcpy(x.bytes, bytes, len_bytes);
	v[s->bytes_count++] = x;
	return 0;
}

/* ---------------------------------------------------------------- checking */

/* Reports the first byte that differs. */
static void scan_bytes_check(struct brim_run *r, const struct scan_bytes *x,
			     uint64_t i, const uint8_t *raw, uint64_t off_bytes)
{
	struct brim_mismatch m = { .group = i,
				   .piece = x->structure,
				   .what = x->field };
	uint32_t k = 0;

	if (!memcmp(raw, x->bytes, x->len_bytes))
		return;
	while (raw[k] == x->bytes[k])
		k++;
	m.off_bytes = off_bytes + k;
	m.expected = x->bytes[k];
	m.found = raw[k];
	brim__run_mismatch(r, &m);
}

/*
 * A checksum is wrong. Sealing a copy shows which field holds it and what it
 * should have been.
 */
static void scan_report_sum(struct brim_run *r, const struct scan_sum *x,
			    const uint8_t *raw, struct brim_mismatch *m)
{
	const struct brim_layout *l = x->layout;
	uint8_t *copy = malloc(x->size_bytes);
	const struct brim_field *f;
	size_t k;

	m->piece = brim_layout_name(l);
	m->what = "checksum";
	if (copy) {
		memcpy(copy, raw, x->size_bytes);
		brim_layout_seal(l, copy, x->size_bytes);
	}
	for (k = 0; copy && (f = brim_layout_field(l, k)); k++) {
		if (f->width_bytes != 4 || !f->endian ||
		    brim_field_get(f, copy, 0) == brim_field_get(f, raw, 0))
			continue;
		m->what = f->name;
		m->off_bytes += f->off_bytes;
		m->expected = (uint64_t)brim_field_get(f, copy, 0);
		m->found = (uint64_t)brim_field_get(f, raw, 0);
		break;
	}
	free(copy);
	brim__run_mismatch(r, m);
}

/* Checks instance i, whose first expected byte is at raw, at off on the device.
 */
static void scan_instance(struct brim_run *r, uint64_t i, const uint8_t *raw,
			  uint64_t off_bytes)
{
	const struct brim_scan *s = r->scan;
	struct brim_mismatch m = { .group = i };
	size_t k;

	for (k = 0; k < s->int_count; k++) {
		const struct scan_int *x = &s->ints[k];
		uint64_t at = x->off_bytes - s->from_bytes;

		m.found = brim__load(raw + at, x->width_bytes, x->endian);
		m.expected = (x->base + x->step * i) & x->mask;
		if (m.found == m.expected)
			continue;
		m.off_bytes = off_bytes + at;
		m.piece = x->structure;
		m.what = x->field;
		brim__run_mismatch(r, &m);
	}
	for (k = 0; k < s->bytes_count; k++) {
		uint64_t at = s->bytes[k].off_bytes - s->from_bytes;

		scan_bytes_check(r, &s->bytes[k], i, raw + at, off_bytes + at);
	}
	for (k = 0; k < s->sum_count; k++) {
		const struct scan_sum *x = &s->sums[k];
		uint64_t at = x->off_bytes - s->from_bytes;

		if (brim_layout_intact(x->layout, raw + at, x->size_bytes))
			continue;
		m.off_bytes = off_bytes + at;
		scan_report_sum(r, x, raw + at, &m);
	}
}

static void scan_check(void *ctx, struct brim__io *io)
{
	struct brim_run *r = ctx;
	const struct brim__desc *d = &r->slots[io->slot].desc;
	uint64_t at = d->off_bytes;
	uint32_t k;

	for (k = 0; k < d->instances; k++, at += r->stride_bytes)
		scan_instance(r, d->instance + k,
			      io->buf + (at - io->off_bytes), at);
}

/* ----------------------------------------------------------------- reading */

static int scan_next(struct brim_run *r, struct brim__io *io)
{
	struct brim__desc *d = &r->slots[io->slot].desc;
	uint64_t align = BRIM__MAX(1u, r->dev->info.align_bytes);
	uint64_t span = r->scan->to_bytes - r->scan->from_bytes;
	uint64_t to;

	if (r->instance >= r->end)
		return 0;
	d->instance = r->instance;
	d->instances =
		(uint32_t)BRIM__MIN(r->end - r->instance, r->instances_per_io);
	r->instance += d->instances;
	d->off_bytes = r->off_bytes + r->stride_bytes * d->instance +
		       r->scan->from_bytes;
	to = d->off_bytes + r->stride_bytes * (d->instances - 1) + span;
	io->op = BRIM__READ;
	io->off_bytes = brim__align_down(d->off_bytes, align);
	io->len_bytes = brim__align_down(to + align - 1, align) - io->off_bytes;
	return 1;
}

static void scan_done(struct brim_run *r, struct brim__io *io)
{
	r->groups_done += r->slots[io->slot].desc.instances;
}

static const struct brim__run_ops scan_ops = {
	.next = scan_next,
	.done = scan_done,
	.check = scan_check,
};

/* Whether the last instance ends on the device; all sums are checked. */
static int scan_fits(const struct brim_scan *s, const struct brim_device *d,
		     const struct brim_scan_range *g, struct brim_err *e)
{
	uint64_t last = 0, end = 0;

	if (s->from_bytes == s->to_bytes)
		return brim__errf(e, -EINVAL, "scan", "nothing is expected");
	if (!g->count || (g->count > 1 && !g->stride_bytes))
		return brim__errf(e, -EINVAL, "scan",
				  "count and stride_bytes are at least 1");
	if (brim_add(g->first, g->count - 1, &last) < 0 ||
	    brim_mul(g->stride_bytes, last, &end) < 0 ||
	    brim_add(end, g->off_bytes, &end) < 0 ||
	    brim_add(end, s->to_bytes, &end) < 0 || end > d->info.size_bytes)
		return brim__errf(
			e, -ERANGE, "scan",
			"instance %llu ends past the %llu bytes of %s",
			(unsigned long long)(g->first + g->count - 1),
			(unsigned long long)d->info.size_bytes, d->info.path);
	return 0;
}

/* How many instances one read of at most max_io_bytes takes. */
static uint32_t scan_per_io(const struct brim_scan *s,
			    const struct brim_scan_range *g,
			    uint32_t max_io_bytes)
{
	uint64_t span = s->to_bytes - s->from_bytes, n;

	if (g->count == 1 || span >= max_io_bytes ||
	    g->stride_bytes > span + BRIM__MAX(span, GAP_MIN))
		return 1;
	n = (max_io_bytes - span) / g->stride_bytes + 1;
	return (uint32_t)BRIM__MIN(n, BRIM__MIN(g->count, UINT32_MAX));
}

int brim_scan_open(struct brim_run **out, const struct brim_scan *s,
		   struct brim_device *d, const struct brim_scan_range *g,
		   const struct brim_run_options *o, struct brim_err *e)
{
	uint64_t align = BRIM__MAX(1u, d->info.align_bytes);
	uint64_t span = s->to_bytes - s->from_bytes, slot_bytes;
	struct brim_run_options opts;
	struct brim_run *r;
	uint32_t per_io;
	int ret;

	*out = NULL;
	ret = brim__run_options(&opts, o, d, e);
	if (ret < 0)
		return ret;
	ret = scan_fits(s, d, g, e);
	if (ret < 0)
		return ret;
	per_io = scan_per_io(s, g, opts.max_io_bytes);
	/* Room for reading from and to the device's boundaries. */
	slot_bytes = g->stride_bytes * (per_io - 1) + span + 2 * align;
	ret = brim__run_create(
		&r, &scan_ops, d, (uint32_t)slot_bytes,
		brim__device_is_cold(d,
				     g->off_bytes + s->from_bytes +
					     g->stride_bytes * g->first,
				     g->stride_bytes, g->count),
		&opts, e);
	if (ret < 0)
		return ret;
	r->scan = scan_hold(s);
	r->phase_count = 1;
	r->off_bytes = g->off_bytes;
	r->stride_bytes = g->stride_bytes;
	r->instance = g->first;
	r->end = g->first + g->count;
	r->instances_per_io = per_io;
	r->groups_total = g->count;
	r->ios_total = (g->count - 1) / per_io + 1;
	r->bytes_total = per_io > 1 ? g->stride_bytes * (g->count - 1) + span
				    : span * g->count;
	*out = r;
	return 0;
}
