/* SPDX-License-Identifier: MIT */
/*
 * layout.c: on-disk structures from field tables: declaration with its checks,
 * defaults, single fields, checksums. Called by stamp.c, scan.c and the
 * binding. Offsets are bytes from the structure's start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct brim_layout {
	char *name;
	uint32_t size_bytes;
	int extensible;
	int checksum_field; /* index, or -1 */
	struct brim_checksum checksum;
	size_t field_count;
	struct brim_field fields[];
};

int brim__int_check(const char *op, const char *field, uint32_t width_bytes,
		    enum brim_endian endian, struct brim_err *e)
{
	if (width_bytes != 1 && width_bytes != 2 && width_bytes != 4 &&
	    width_bytes != 8)
		return brim__errf(
			e, -EINVAL, op,
			"field '%s': an integer has 1, 2, 4 or 8 bytes, not %u",
			field, width_bytes);
	if (endian != BRIM_BIG && endian != BRIM_LITTLE)
		return brim__errf(
			e, -EINVAL, op,
			"field '%s': the byte order is BRIM_BIG or BRIM_LITTLE",
			field);
	return 0;
}

int brim__checksum_check(const char *op, const char *field,
			 const struct brim_checksum *c, struct brim_err *e)
{
	if (c->kind != BRIM_CRC32C && c->kind != BRIM_CRC32)
		return brim__errf(
			e, -EINVAL, op,
			"field '%s': the checksum is BRIM_CRC32C or BRIM_CRC32",
			field);
	return brim__int_check(op, field, 4, c->endian, e);
}

static int field_check(const struct brim_layout_options *o,
		       const struct brim_field *f, uint32_t at, bool last,
		       struct brim_err *e)
{
	const char *why = NULL;

	if (!f->name || !*f->name)
		return brim__errf(e, -EINVAL, "layout",
				  "%s: the field at 0x%x has no name", o->name,
				  f->off_bytes);
	if (f->off_bytes < at)
		why = "overlaps the field before it";
	else if (f->off_bytes > at)
		why = "leaves a gap before it";
	else if (!f->width_bytes)
		why = "has no width";
	else if (f->endian && f->width_bytes != 1 && f->width_bytes != 2 &&
		 f->width_bytes != 4 && f->width_bytes != 8)
		why = "is an integer, whose width is 1, 2, 4 or 8 bytes";
	else if (f->record && f->record->size_bytes != f->width_bytes)
		why = "has another width than its record";
	else if (!f->count && !last)
		why = "has as many elements as fit, so it must be the last";
	if (!why)
		return 0;
	return brim__errf(
		e, -EINVAL, "layout",
		"%s: field '%s' at 0x%x %s (the one before ends at 0x%x)",
		o->name, f->name, f->off_bytes, why, at);
}

static int fields_check(const struct brim_layout_options *o,
			const struct brim_field *fields, size_t n,
			struct brim_err *e)
{
	uint64_t at = 0;
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		const struct brim_field *f = &fields[i];

		ret = field_check(o, f, (uint32_t)at, i == n - 1, e);
		if (ret < 0)
			return ret;
		at += (uint64_t)f->width_bytes * f->count;
		if (at > o->size_bytes)
			return brim__errf(
				e, -EINVAL, "layout",
				"%s: field '%s' ends past the stated %u bytes",
				o->name, f->name, o->size_bytes);
		/* "As many as fit" takes the rest, slack included. */
		if (!f->count)
			at = o->size_bytes;
	}
	if (at != o->size_bytes)
		return brim__errf(
			e, -EINVAL, "layout",
			"%s: the fields end at %u, not at the stated %u bytes",
			o->name, (unsigned int)at, o->size_bytes);
	return 0;
}

static int checksum_check(struct brim_layout *l,
			  const struct brim_layout_options *o,
			  struct brim_err *e)
{
	const struct brim_field *f;

	l->checksum_field = -1;
	if (!o->checksum_field)
		return 0;
	l->checksum_field = brim_layout_find(l, o->checksum_field);
	f = brim_layout_field(l, (size_t)l->checksum_field);
	if (!f || f->width_bytes != 4 || f->count != 1 || f->record)
		return brim__errf(
			e, -EINVAL, "layout",
			"%s: the checksum field '%s' must be one field of 4 bytes",
			o->name, o->checksum_field);
	l->checksum = o->checksum;
	return brim__checksum_check("layout", o->checksum_field, &o->checksum,
				    e);
}

int brim_layout_create(struct brim_layout **out,
		       const struct brim_layout_options *options,
		       const struct brim_field *fields, size_t field_count,
		       struct brim_err *e)
{
	struct brim_layout_options opts, *o = &opts;
	struct brim_layout *l;
	size_t i;
	int ret;

	*out = NULL;
	ret = brim__options_take(o, sizeof(*o), options, "layout", e);
	if (ret < 0)
		return ret;
	if (!o->name || !*o->name || !o->size_bytes || !field_count)
		return brim__errf(e, -EINVAL, "layout",
				  "a layout needs a name, a size and fields");
	ret = fields_check(o, fields, field_count, e);
	if (ret < 0)
		return ret;
	l = calloc(1, sizeof(*l) + field_count * sizeof(l->fields[0]));
	if (!l)
		return brim__err(e, -ENOMEM, "layout", o->name);
	l->size_bytes = o->size_bytes;
	l->extensible = o->extensible;
	l->name = strdup(o->name);
	l->field_count = field_count;
	for (i = 0; i < field_count; i++) {
		l->fields[i] = fields[i];
		l->fields[i].name = strdup(fields[i].name);
		if (!l->name || !l->fields[i].name) {
			ret = brim__err(e, -ENOMEM, "layout", o->name);
			goto err;
		}
	}
	ret = checksum_check(l, o, e);
	if (ret < 0)
		goto err;
	*out = l;
	return 0;
err:
	brim_layout_free(l);
	return ret;
}

void brim_layout_free(struct brim_layout *l)
{
	size_t i;

	if (!l)
		return;
	for (i = 0; i < l->field_count; i++)
		free((char *)(uintptr_t)l->fields[i].name);
	free(l->name);
	free(l);
}

const char *brim_layout_name(const struct brim_layout *l)
{
	return l->name;
}

uint32_t brim_layout_size_bytes(const struct brim_layout *l)
{
	return l->size_bytes;
}

size_t brim_layout_field_count(const struct brim_layout *l)
{
	return l->field_count;
}

const struct brim_field *brim_layout_field(const struct brim_layout *l,
					   size_t i)
{
	return i < l->field_count ? &l->fields[i] : NULL;
}

int brim_layout_find(const struct brim_layout *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->field_count; i++)
		if (!strcmp(l->fields[i].name, name))
			return (int)i;
	return -ENOENT;
}

uint32_t brim_layout_elements(const struct brim_layout *l, size_t i,
			      uint32_t size_bytes)
{
	const struct brim_field *f = &l->fields[i];

	if (f->count)
		return f->count;
	if (size_bytes <= f->off_bytes)
		return 0;
	return (size_bytes - f->off_bytes) / f->width_bytes;
}

int64_t brim_field_get(const struct brim_field *f, const void *raw,
		       uint32_t element)
{
	const uint8_t *at = raw;

	at += f->off_bytes + (size_t)element * f->width_bytes;
	return (int64_t)brim__load(at, f->width_bytes, f->endian);
}

void brim_field_set(const struct brim_field *f, void *raw, uint32_t element,
		    int64_t value)
{
	uint8_t *at = raw;

	at += f->off_bytes + (size_t)element * f->width_bytes;
	brim__store(at, f->width_bytes, f->endian, (uint64_t)value);
}

void brim_layout_defaults(const struct brim_layout *l, void *raw,
			  uint32_t size_bytes)
{
	uint8_t *bytes = raw;
	size_t i;
	uint32_t k;

	memset(raw, 0, size_bytes);
	for (i = 0; i < l->field_count; i++) {
		const struct brim_field *f = &l->fields[i];
		uint32_t n = brim_layout_elements(l, i, size_bytes);

		/* Elements "as many as fit" are absent until they are set. */
		if (f->record && f->count)
			for (k = 0; k < n; k++)
				brim_layout_defaults(
					f->record,
					bytes + f->off_bytes +
						(size_t)k * f->width_bytes,
					f->width_bytes);
		if (!f->endian || !f->value)
			continue;
		for (k = 0; k < n; k++)
			brim_field_set(f, raw, k, f->value);
	}
}

/* The checksum as it should be stored, its own bytes taken as zeros. */
static uint32_t layout_checksum(const struct brim_layout *l, const void *raw,
				uint32_t size_bytes)
{
	static const uint8_t zeros[4];
	const struct brim_checksum *c = &l->checksum;
	uint32_t at = l->fields[l->checksum_field].off_bytes;
	const uint8_t *bytes = raw;
	uint32_t reg = brim_crc(c->kind, c->seed, bytes, at);

	reg = brim_crc(c->kind, reg, zeros, sizeof(zeros));
	reg = brim_crc(c->kind, reg, bytes + at + 4, size_bytes - at - 4);
	return reg ^ c->xor_out;
}

int brim_layout_seal(const struct brim_layout *l, void *raw,
		     uint32_t size_bytes)
{
	uint8_t *bytes = raw;

	if (l->checksum_field < 0)
		return 1;
	brim__store(bytes + l->fields[l->checksum_field].off_bytes, 4,
		    l->checksum.endian, layout_checksum(l, raw, size_bytes));
	return 1;
}

int brim_layout_intact(const struct brim_layout *l, const void *raw,
		       uint32_t size_bytes)
{
	const uint8_t *bytes = raw;

	if (l->checksum_field < 0)
		return 1;
	return brim__load(bytes + l->fields[l->checksum_field].off_bytes, 4,
			  l->checksum.endian) ==
	       layout_checksum(l, raw, size_bytes);
}

bool brim__layout_fits(const struct brim_layout *l, uint32_t size_bytes)
{
	return size_bytes == l->size_bytes ||
	       (size_bytes > l->size_bytes && l->extensible);
}

int brim_stamp_place(struct brim_stamp *s, const struct brim_layout *l,
		     uint64_t off_bytes, uint32_t size_bytes,
		     struct brim_err *e)
{
	uint8_t *raw;
	int ret;

	if (!brim__layout_fits(l, size_bytes))
		return brim__errf(
			e, -EINVAL, "place",
			"%s is %s%u bytes long; it cannot be placed as %u",
			l->name, l->extensible ? "at least " : "",
			l->size_bytes, size_bytes);
	ret = brim_stamp_region(s, off_bytes, size_bytes, l->name, e);
	if (ret < 0)
		return ret;
	raw = malloc(size_bytes);
	if (!raw)
		return brim__err(e, -ENOMEM, "place", l->name);
	brim_layout_defaults(l, raw, size_bytes);
	ret = brim_stamp_set_bytes(s, off_bytes, raw, size_bytes, e);
	free(raw);
	if (ret < 0 || l->checksum_field < 0)
		return ret;
	return brim_stamp_set_checksum(
		s, off_bytes + l->fields[l->checksum_field].off_bytes,
		off_bytes, size_bytes, &l->checksum, e);
}
