/* SPDX-License-Identifier: MIT */
/*
 * scan_check.c: compares an instance that was read with what a scan expects
 * and reports what differs. Called by scan_run.c, in the engine's threads where
 * it has some. Offsets are bytes, on the device unless it says otherwise.
 */
#include <stdlib.h>
#include <string.h>

#include "scan.h"

static uint64_t value_at(const struct brim_affine *a, uint64_t i)
{
	return (uint64_t)a->base + (uint64_t)a->step * i;
}

/* Both unsigned where the field has all 64 bits, else v is not negative. */
static bool is_less(uint64_t a, uint64_t b, uint64_t mask)
{
	return mask == UINT64_MAX ? a < b : (int64_t)a < (int64_t)b;
}

static bool range_passes(const struct brim__scan_test *t, uint64_t mask,
			 uint64_t i, uint64_t v, uint64_t *expected,
			 const char **rule)
{
	uint64_t low = value_at(&t->values[0], i);
	uint64_t high = value_at(&t->values[1], i);
	bool is_low = is_less(v, low, mask);

	if (!is_low && !is_less(high, v, mask))
		return true;
	if (expected) {
		*expected = is_low ? low : high;
		*rule = is_low ? ">=" : "<=";
	}
	return false;
}

bool brim__scan_passes(const struct brim__scan_test *t, uint64_t mask,
		       uint64_t i, uint64_t v, uint64_t *expected,
		       const char **rule)
{
	uint32_t k;

	if (t->rule == BRIM_SCAN_ANY)
		return true;
	if (t->rule == BRIM_SCAN_RANGE)
		return range_passes(t, mask, i, v, expected, rule);
	for (k = 0; k < t->value_count; k++)
		if (v == (value_at(&t->values[k], i) & mask))
			return true;
	if (expected) {
		*expected = value_at(&t->values[0], i) & mask;
		*rule = t->rule == BRIM_SCAN_EQUAL ? "=" : "in";
	}
	return false;
}

/* Reports the first byte that differs. */
static void scan_bytes_check(struct brim_run *r,
			     const struct brim__scan_bytes *x, uint64_t i,
			     const uint8_t *raw, uint64_t off_bytes)
{
	struct brim_mismatch m = {
		.group = i, .piece = x->structure, .what = x->field, .rule = "="
	};
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
static void scan_report_sum(struct brim_run *r, const struct brim__scan_sum *x,
			    const uint8_t *raw, struct brim_mismatch *m)
{
	const struct brim_layout *l = x->layout;
	uint8_t *copy = malloc(x->size_bytes);
	const struct brim_field *f;
	size_t k;

	m->piece = brim_layout_name(l);
	m->what = "checksum";
	m->rule = "=";
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

/* The integers that do not pass. */
static void scan_check_ints(struct brim_run *r, uint64_t i, const uint8_t *raw,
			    uint64_t off_bytes)
{
	const struct brim_scan *s = r->scan;
	struct brim_mismatch m = { .group = i };
	size_t k;

	for (k = 0; k < s->int_count; k++) {
		const struct brim__scan_expectation *x = &s->ints[k];

		m.found = brim__scan_load(&x->at, s, raw);
		if (brim__scan_passes(&x->test, x->at.mask, i, m.found,
				      &m.expected, &m.rule))
			continue;
		m.off_bytes = off_bytes + (x->at.off_bytes - s->from_bytes);
		m.piece = x->structure;
		m.what = x->field;
		brim__run_mismatch(r, &m);
	}
}

void brim__scan_check(struct brim_run *r, uint64_t i, const uint8_t *raw,
		      uint64_t off_bytes)
{
	const struct brim_scan *s = r->scan;
	struct brim_mismatch m = { .group = i };
	size_t k;

	scan_check_ints(r, i, raw, off_bytes);
	for (k = 0; k < s->bytes_count; k++) {
		uint64_t at = s->bytes[k].off_bytes - s->from_bytes;

		scan_bytes_check(r, &s->bytes[k], i, raw + at, off_bytes + at);
	}
	for (k = 0; k < s->sum_count; k++) {
		const struct brim__scan_sum *x = &s->sums[k];
		uint64_t at = x->off_bytes - s->from_bytes;

		if (brim_layout_intact(x->layout, raw + at, x->size_bytes))
			continue;
		m.off_bytes = off_bytes + at;
		scan_report_sum(r, x, raw + at, &m);
	}
}
