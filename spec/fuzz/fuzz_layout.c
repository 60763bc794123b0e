/* SPDX-License-Identifier: MIT */
/*
 * fuzz_layout.c: layouts declared from the input are refused with a reason or
 * work: every element of any raw bytes can be read and written back, checksums
 * hold after sealing and no longer after damage, and a stamp made of the layout
 * renders what the layout itself finds intact.
 *
 * Input: the declaration (see take_layout), then raw bytes.
 */
#include <stdbool.h>

#include "brim.h"
#include "fuzz.h"

#define FIELDS_MAX 12u
#define NESTING_MAX 4u
#define SIZE_MAX_BYTES 4096u

struct layouts {
	struct brim_layout *v[NESTING_MAX];
	size_t n;
	bool is_summed; /* the last one has a checksum */
};

static const char *const names[] = { "a", "b", "c", "crc", "d", "", "e", "f" };

/*
 * One field: flags, then what they ask for. Most go where the one before ends,
 * so that declarations often are right.
 */
static void take_field(struct feed *f, const struct layouts *have,
		       struct brim_field *out, uint32_t *at)
{
	static const uint32_t widths[] = { 1, 2, 4, 8 };
	uint8_t flags = feed_byte(f), kind = feed_byte(f);

	memset(out, 0, sizeof(*out));
	out->name = flags & 1 ? names[feed_byte(f) % 8] : names[*at % 5];
	out->width_bytes = widths[kind & 3];
	out->endian = kind & 4 ? BRIM_BIG : BRIM_LITTLE;
	out->count = flags & 2 ? feed_byte(f) : 1;
	out->value = flags & 4 ? (int64_t)feed_number(f, 8) : 0;
	out->off_bytes = flags & 8 ? (uint32_t)feed_number(f, 4) : *at;
	if (kind & 8) {
		out->endian = 0;
		out->width_bytes = kind & 16 ? (uint32_t)feed_number(f, 4) : 4;
	}
	if (kind & 32 && have->n) {
		out->record = have->v[feed_byte(f) % have->n];
		out->endian = 0;
		out->width_bytes = brim_layout_size_bytes(out->record);
	}
	*at = out->off_bytes + out->width_bytes * out->count;
}

/* Flags, the number of fields, the fields, perhaps the size. */
static struct brim_layout *take_layout(struct feed *f, struct layouts *have)
{
	struct brim_layout_options o = { .struct_bytes = sizeof(o),
					 .name = "l" };
	struct brim_field fields[FIELDS_MAX];
	struct brim_layout *l;
	struct brim_err e = { 0 };
	uint8_t flags = feed_byte(f);
	size_t n = feed_byte(f) % (FIELDS_MAX + 1), i;
	uint32_t at = 0;
	int ret;

	for (i = 0; i < n; i++)
		take_field(f, have, &fields[i], &at);
	o.size_bytes = flags & 1 ? (uint32_t)feed_number(f, 4) : at;
	o.extensible = !!(flags & 2);
	if (flags & 4)
		o.checksum_field = "crc";
	o.checksum.kind = flags & 8 ? BRIM_CRC32 : BRIM_CRC32C;
	o.checksum.endian = flags & 16 ? BRIM_BIG : BRIM_LITTLE;
	o.checksum.seed = flags & 32 ? ~0u : 0;
	o.checksum.xor_out = flags & 64 ? ~0u : 7;
	ret = brim_layout_create(&l, &o, fields, n, &e);
	claim((ret == 0) == (l != NULL), "neither a layout nor none");
	if (!l)
		claim(e.code == ret && e.msg[0] && !strchr(e.msg, '\n'),
		      "no reason");
	if (l)
		have->is_summed = !!o.checksum_field;
	return l;
}

/* Reads every element and writes it back: nothing may change. */
static void visit(const struct brim_layout *l, uint8_t *raw, uint32_t size)
{
	size_t i;
	uint32_t k, n;

	for (i = 0; i < brim_layout_field_count(l); i++) {
		const struct brim_field *f = brim_layout_field(l, i);

		n = brim_layout_elements(l, i, size);
		claim(f->off_bytes + (uint64_t)n * f->width_bytes <= size,
		      "a field past the end");
		for (k = 0; k < n; k++) {
			if (f->record)
				visit(f->record,
				      raw + f->off_bytes +
					      (size_t)k * f->width_bytes,
				      f->width_bytes);
			else if (f->endian)
				brim_field_set(f, raw, k,
					       brim_field_get(f, raw, k));
		}
	}
}

static void check_raw(const struct brim_layout *l, struct feed *f,
		      uint32_t size, bool is_summed)
{
	uint8_t *raw = calloc(1, size), *copy = malloc(size);
	size_t fill = f->left < size ? f->left : size;

	memcpy(raw, f->p, fill);
	memcpy(copy, raw, size);
	visit(l, raw, size);
	claim(!memcmp(raw, copy, size), "reading and writing changed it");
	brim_layout_seal(l, raw, size);
	claim(brim_layout_intact(l, raw, size), "not intact when sealed");
	raw[fill % size] ^= 0x10;
	claim(brim_layout_intact(l, raw, size) == !is_summed,
	      "intact when damaged");
	brim_layout_defaults(l, raw, size);
	free(raw);
	free(copy);
}

/* A stamp of the layout whose integers vary: all of its instances are intact. */
static void check_stamp(const struct brim_layout *l, struct feed *f,
			uint32_t size)
{
	uint64_t first = feed_number(f, 2), count = 1 + feed_number(f, 3), i;
	uint64_t off = feed_number(f, 6);
	const struct brim_extent *x;
	struct brim_stamp *s;
	uint8_t *a, *b;

	claim(brim_stamp_create(&s, NULL) == 0, "no stamp");
	claim(brim_stamp_place(s, l, off, size, NULL) == 0, "not placed");
	for (i = 0; i < brim_layout_field_count(l); i++) {
		const struct brim_field *d = brim_layout_field(l, i);

		if (!d->endian || (f->left && feed_byte(f) & 1) ||
		    !brim_layout_elements(l, i, size))
			continue;
		brim_stamp_set_int(s, off + d->off_bytes, d->width_bytes,
				   d->endian, (int64_t)feed_number(f, 2),
				   (int8_t)feed_byte(f), d->name, NULL);
	}
	if (brim_stamp_seal(s, first, count, NULL) == 0) {
		claim(brim_stamp_extents(s, &x) == 1 && x->off_bytes == off &&
			      x->len_bytes == size,
		      "not the one extent");
		a = malloc(size);
		b = malloc(size);
		brim_stamp_render(s, 0, first, 0, size, a, 1);
		claim(brim_layout_intact(l, a, size), "the first is damaged");
		i = first + feed_number(f, 8) % count;
		brim_stamp_render(s, 0, i, 0, size, a, 0);
		brim_stamp_render(s, 0, i, 0, size, b, 1);
		claim(!memcmp(a, b, size), "fresh and not are different");
		claim(brim_layout_intact(l, a, size), "another is damaged");
		free(a);
		free(b);
	}
	brim_stamp_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct layouts have = { 0 };
	size_t wanted = 1 + feed_byte(&f) % NESTING_MAX;

	while (have.n < wanted) {
		struct brim_layout *l = take_layout(&f, &have);

		if (!l)
			break;
		have.v[have.n++] = l;
		if (brim_layout_size_bytes(l) > SIZE_MAX_BYTES)
			break;
	}
	if (have.n) {
		const struct brim_layout *l = have.v[have.n - 1];
		uint32_t bytes = brim_layout_size_bytes(l);

		if (bytes <= SIZE_MAX_BYTES) {
			struct feed raw = f;

			check_raw(l, &raw, bytes, have.is_summed);
			check_stamp(l, &f, bytes);
		}
	}
	while (have.n)
		brim_layout_free(have.v[--have.n]);
	return 0;
}
