/* SPDX-License-Identifier: MIT */
/*
 * fuzz_image.c: image files: whatever the payload, decoding it refuses it with
 * a reason or gives a plan of which all that is said agrees: totals with the
 * cursor, the cursor's I/Os with what is read at the same place, the image of
 * the plan with the plan. The header is made right; one input in 256 comes as
 * it is.
 */
#include "../../core/image.h"
#include "../../core/plan.h"
#include "fuzz.h"

#define STEPS_MAX 100u
#define RENDER_MAX (32u << 10)
#define READ_MAX 2048u
#define LOOKED_AT_MAX 12u

static uint8_t *with_header(const uint8_t *data, size_t size, size_t *len)
{
	uint8_t *b = malloc(BRIM__IMAGE_HEADER_BYTES + size);

	memcpy(b, BRIM__IMAGE_MAGIC, 8);
	memcpy(b + BRIM__IMAGE_HEADER_BYTES, data, size);
	brim__store(b + 8, 4, BRIM_LITTLE, BRIM__IMAGE_VERSION);
	brim__store(b + 12, 4, BRIM_LITTLE, brim__image_crc(data, size));
	brim__store(b + 16, 8, BRIM_LITTLE, size);
	*len = BRIM__IMAGE_HEADER_BYTES + size;
	return b;
}

static void check_read(const struct brim_plan *p, uint64_t at)
{
	static uint8_t whole[READ_MAX], part[READ_MAX];
	uint64_t size = brim_plan_size_bytes(p);
	size_t len = READ_MAX, cut;

	if (at >= size)
		at = size - 1;
	if (len > size - at)
		len = (size_t)(size - at);
	claim(brim_plan_read(p, at, len, whole, NULL) == 0, "not readable");
	cut = len / 3;
	claim(brim_plan_read(p, at + cut, len - cut, part, NULL) == 0,
	      "not readable in part");
	claim(!memcmp(whole + cut, part, len - cut), "parts differ");
	claim(brim_plan_read(p, at, (size_t)(size - at) + 1, whole, NULL) < 0,
	      "readable past the end");
}

/* The first I/Os of a phase; true if that was all of them. */
static bool check_phase(const struct brim_plan *p, uint32_t phase,
			uint32_t max_io, uint64_t *writes, uint64_t *zeros)
{
	static uint8_t a[16384], b[16384];
	struct brim__slot_state state = { 0 }, expected = { 0 };
	struct brim__cursor c;
	struct brim__desc d;
	uint64_t bytes = 0;
	uint32_t n = 0;

	brim__cursor_init(&c, p, phase, max_io);
	while (n++ < STEPS_MAX && bytes < RENDER_MAX) {
		if (!brim__cursor_next(&c, &d))
			return true;
		claim(d.len_bytes && d.len_bytes <= p->size_bytes &&
			      d.off_bytes <= p->size_bytes - d.len_bytes,
		      "an I/O outside of the volume");
		brim__plan_label(p, &d, d.off_bytes + d.len_bytes - 1);
		if (d.is_zero) {
			++*zeros;
			continue;
		}
		++*writes;
		bytes += d.len_bytes;
		claim(d.len_bytes <= max_io, "an I/O longer than asked for");
		brim__plan_render(p, &d, a, &state);
		brim__plan_expected(p, &d, a, &expected);
		brim_plan_read(p, d.off_bytes, (size_t)d.len_bytes, b, NULL);
		claim(!memcmp(a, b, (size_t)d.len_bytes),
		      "what is expected is not what is read");
	}
	return false;
}

static void check_cursor(const struct brim_plan *p, uint32_t max_io)
{
	struct brim_plan_totals t;
	uint64_t writes = 0, zeros = 0;
	bool all = true;
	uint32_t k;

	brim_plan_totals(p, max_io, &t);
	claim(t.phases == p->phase_count && t.pieces == p->piece_count,
	      "other phases or pieces");
	for (k = 0; k < p->phase_count && k < LOOKED_AT_MAX; k++)
		all &= check_phase(p, k, max_io, &writes, &zeros);
	if (all && k == p->phase_count)
		claim(t.writes == writes && t.zero_ranges == zeros,
		      "the totals are others");
}

static void check_image(const struct brim_plan *p)
{
	struct brim_plan *q;
	void *a, *b;
	size_t a_len, b_len;

	claim(brim_image_encode(p, &a, &a_len, NULL) == 0, "not saved again");
	claim(brim_image_decode(&q, a, a_len, NULL) == 0, "not loaded again");
	claim(brim_image_encode(q, &b, &b_len, NULL) == 0, "not saved twice");
	claim(a_len == b_len && !memcmp(a, b, a_len), "another image");
	brim_plan_free(q);
	free(a);
	free(b);
}

static void check_plan(const struct brim_plan *p)
{
	struct brim_piece_info info;
	size_t i;

	for (i = 0; brim_plan_piece(p, i, &info) == 0; i++) {
		uint64_t last = info.first + info.count - 1;

		if (i >= LOOKED_AT_MAX)
			continue;
		check_read(p, info.off_bytes);
		check_read(p, info.off_bytes + info.stride_bytes * last);
		check_read(p, info.off_bytes +
				      info.stride_bytes *
					      (info.first + info.count / 3));
	}
	check_read(p, 0);
	check_read(p, brim_plan_size_bytes(p) / 2 + 1);
	check_cursor(p, 16384);
	check_cursor(p, 100);
	check_image(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct brim_plan *p;
	struct brim_err e = { 0 };
	uint8_t *image = NULL;
	size_t len = 0;
	int ret;

	if (!size)
		return 0;
	if (data[0] != 0xff)
		image = with_header(data, size, &len);
	ret = brim_image_decode(&p, image ? image : data + 1,
				image ? len : size - 1, &e);
	claim((ret == 0) == (p != NULL), "neither a plan nor none");
	if (p)
		check_plan(p);
	else
		claim(e.code == ret && e.op && e.msg[0], "no reason");
	brim_plan_free(p);
	free(image);
	return 0;
}
