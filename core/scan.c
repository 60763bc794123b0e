/* SPDX-License-Identifier: MIT */
/*
 * scan.c: building scans: what must hold at every instance, and what is to be
 * gathered there. Called by the binding; scan_run.c runs them. Offsets are
 * bytes within an instance.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

/* One instance is one read: what lies further apart is two scans. */
#define SPAN_MAX (16u << 20)
#define VALUES_MAX 256u

/* ------------------------------------------------------------------- life */

int brim_scan_create(struct brim_scan **out, struct brim_err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return brim__err(e, -ENOMEM, "scan", "create");
	(*out)->holders = 1;
	return 0;
}

static void accumulators_free(struct brim_scan *s)
{
	size_t k;

	for (k = 0; k < s->accumulator_count; k++) {
		free(s->accumulators[k].name);
		free(s->accumulators[k].test.values);
	}
	free(s->accumulators);
	free(s->sources);
	free(s->columns);
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
		free(s->ints[k].test.values);
	}
	free(s->ints);
	free(s->sums);
	accumulators_free(s);
	free(s);
}

/* ------------------------------------------------------------ expectations */

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
	struct brim__scan_sum *v;
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
	v[s->sum_count++] = (struct brim__scan_sum){ l, off_bytes, size_bytes };
	return 0;
}

static const char *name_of(const struct brim_scan_field *f)
{
	return f->field ? f->field : "";
}

int brim__scan_test_take(struct brim__scan_test *out,
			 const struct brim_scan_test *t,
			 const struct brim_scan_field *f, struct brim_err *e)
{
	static const size_t LEAST[] = { 0, 1, 2, 1 };
	static const size_t MOST[] = { 0, 1, 2, VALUES_MAX };

	*out = (struct brim__scan_test){ .rule = t->rule };
	if (t->rule > BRIM_SCAN_ONE_OF || t->value_count < LEAST[t->rule] ||
	    t->value_count > MOST[t->rule])
		return brim__errf(e, -EINVAL, "scan",
				  "field '%s': any has no values, equal one, a "
				  "range two, one of 1 .. %u",
				  name_of(f), VALUES_MAX);
	if (!t->value_count)
		return 0;
	out->values = reallocarray(NULL, t->value_count, sizeof(*out->values));
	if (!out->values)
		return brim__err(e, -ENOMEM, "scan", name_of(f));
	memcpy(out->values, t->values, t->value_count * sizeof(*out->values));
	out->value_count = (uint32_t)t->value_count;
	return 0;
}

int brim__scan_field_take(struct brim_scan *s, struct brim__scan_int *out,
			  const struct brim_scan_field *f, struct brim_err *e)
{
	int ret = brim__int_check("scan", name_of(f), f->width_bytes, f->endian,
				  e);

	if (ret < 0)
		return ret;
	out->off_bytes = f->off_bytes;
	out->width_bytes = f->width_bytes;
	out->endian = f->endian;
	out->mask = UINT64_MAX >> (64 - 8 * f->width_bytes);
	return scan_cover(s, f->off_bytes, f->width_bytes, name_of(f), e);
}

int brim_scan_expect(struct brim_scan *s, const struct brim_scan_field *f,
		     const struct brim_scan_test *t, struct brim_err *e)
{
	struct brim__scan_expectation x = { .structure = NULL }, *v;
	int ret;

	v = reallocarray(s->ints, s->int_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", name_of(f));
	s->ints = v;
	ret = brim__scan_test_take(&x.test, t, f, e);
	if (ret < 0)
		return ret;
	x.structure = strdup(f->structure ? f->structure : "");
	x.field = strdup(name_of(f));
	if (!x.structure || !x.field)
		ret = brim__err(e, -ENOMEM, "scan", name_of(f));
	else
		ret = brim__scan_field_take(s, &x.at, f, e);
	if (ret < 0) {
		free(x.test.values);
		free(x.structure);
		free(x.field);
		return ret;
	}
	v[s->int_count++] = x;
	return 0;
}

int brim_scan_expect_int(struct brim_scan *s, uint64_t off_bytes,
			 uint32_t width_bytes, enum brim_endian endian,
			 int64_t base, int64_t step, const char *structure,
			 const char *field, struct brim_err *e)
{
	struct brim_affine value = { base, step };

	return brim_scan_expect(
		s,
		&(struct brim_scan_field){ off_bytes, width_bytes, endian,
					   structure, field },
		&(struct brim_scan_test){ BRIM_SCAN_EQUAL, &value, 1 }, e);
}

int brim_scan_expect_bytes(struct brim_scan *s, uint64_t off_bytes,
			   const void *bytes, uint32_t len_bytes,
			   const char *structure, const char *field,
			   struct brim_err *e)
{
	struct brim__scan_bytes x = { .off_bytes = off_bytes,
				      .len_bytes = len_bytes };
	struct brim__scan_bytes *v;
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

/* --------------------------------------------------------------- gathering */

static int accumulator_check(const struct brim_scan_accumulator *a,
			     struct brim_err *e)
{
	if (a->kind < BRIM_SCAN_SUM || a->kind > BRIM_SCAN_HISTOGRAM ||
	    !a->name)
		return brim__errf(e, -EINVAL, "scan",
				  "an accumulator has a kind and a name");
	if (a->kind != BRIM_SCAN_HISTOGRAM || !a->bins)
		return 0;
	if (a->bins > BRIM_SCAN_BINS_MAX || a->from >= a->to ||
	    a->to - a->from < a->bins)
		return brim__errf(e, -EINVAL, "scan",
				  "histogram '%s': from is less than to, bins "
				  "are at most to - from and %u",
				  a->name, BRIM_SCAN_BINS_MAX);
	return 0;
}

static bool is_same(const struct brim__scan_accumulator *x,
		    const struct brim_scan_accumulator *a)
{
	if (a->kind == BRIM_SCAN_COUNT)
		return x->test.rule == a->test.rule &&
		       x->test.value_count == a->test.value_count &&
		       (!x->test.value_count ||
			!memcmp(x->test.values, a->test.values,
				x->test.value_count * sizeof(*x->test.values)));
	return a->kind != BRIM_SCAN_HISTOGRAM ||
	       (x->bins == a->bins &&
		(!a->bins || (x->from == a->from && x->to == a->to)));
}

/* The accumulator of this kind and name, made where there is none; or -errno.
 */
static int accumulator_find(struct brim_scan *s,
			    const struct brim_scan_field *f,
			    const struct brim_scan_accumulator *a,
			    struct brim_err *e)
{
	struct brim__scan_accumulator *v,
		x = { a->kind, NULL, { 0 }, a->from, a->to, a->bins };
	size_t k;
	int ret;

	for (k = 0; k < s->accumulator_count; k++) {
		v = &s->accumulators[k];
		if (v->kind != a->kind || strcmp(v->name, a->name) != 0)
			continue;
		return is_same(v, a) ? (int)k
				     : brim__errf(e, -EEXIST, "scan",
						  "'%s' is there already, "
						  "described in another way",
						  a->name);
	}
	v = reallocarray(s->accumulators, k + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", a->name);
	s->accumulators = v;
	if (a->kind == BRIM_SCAN_COUNT) {
		ret = brim__scan_test_take(&x.test, &a->test, f, e);
		if (ret < 0)
			return ret;
	}
	x.name = strdup(a->name);
	if (!x.name) {
		free(x.test.values);
		return brim__err(e, -ENOMEM, "scan", a->name);
	}
	v[s->accumulator_count++] = x;
	return (int)k;
}

int brim_scan_accumulate(struct brim_scan *s, const struct brim_scan_field *f,
			 const struct brim_scan_accumulator *accumulator,
			 struct brim_err *e)
{
	struct brim_scan_accumulator a;
	struct brim__scan_source x, *v;
	int ret, number;

	ret = brim__options_take(&a, sizeof(a), accumulator, "scan", e);
	if (!ret)
		ret = accumulator_check(&a, e);
	if (!ret)
		ret = brim__scan_field_take(s, &x.at, f, e);
	if (ret < 0)
		return ret;
	v = reallocarray(s->sources, s->source_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", a.name);
	s->sources = v;
	number = accumulator_find(s, f, &a, e);
	if (number < 0)
		return number;
	x.accumulator = (size_t)number;
	v[s->source_count++] = x;
	return number;
}

int brim_scan_column(struct brim_scan *s, const struct brim_scan_field *f,
		     struct brim_err *e)
{
	struct brim__scan_int x, *v;
	int ret = brim__scan_field_take(s, &x, f, e);

	if (ret < 0)
		return ret;
	v = reallocarray(s->columns, s->column_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "scan", name_of(f));
	s->columns = v;
	v[s->column_count] = x;
	return (int)s->column_count++;
}
