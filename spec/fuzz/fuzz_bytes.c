/* SPDX-License-Identifier: MIT */
/*
 * fuzz_bytes.c: the size parser: whatever the text, it is a size or refused
 * with a reason, and a size that is formatted is read as the same number. The
 * same bytes as numbers go through checked arithmetic and geometries.
 */
#include "brim.h"
#include "fuzz.h"

static void check_round_trip(uint64_t n)
{
	char text[32], cut[8];
	uint64_t again = 0;
	int len;

	len = brim_bytes_format(text, sizeof(text), n);
	claim(len > 0 && (size_t)len < sizeof(text), "32 bytes did not do");
	claim(strlen(text) == (size_t)len, "the length is another");
	claim(brim_bytes_parse(text, &again, NULL) == 0 && again == n,
	      "parse(format(n)) is not n");
	claim(brim_bytes_format(cut, sizeof(cut), n) == len,
	      "a short buffer changes the length");
	claim(memchr(cut, 0, sizeof(cut)), "a short buffer is not ended");
}

static void check_text(const uint8_t *data, size_t size)
{
	struct brim_err e = { 0 };
	char *text = malloc(size + 1);
	uint64_t n = 12345;
	int ret;

	memcpy(text, data, size);
	text[size] = 0;
	ret = brim_bytes_parse(text, &n, &e);
	if (ret == 0) {
		claim(n <= BRIM_MAX_BYTES, "more than the largest offset");
		claim(text[0] >= '0' && text[0] <= '9', "no digit first");
		check_round_trip(n);
	} else {
		claim(ret == -22 || ret == -34, "neither EINVAL nor ERANGE");
		claim(e.code == ret && e.op && e.msg[0], "no reason");
		claim(memchr(e.msg, 0, sizeof(e.msg)), "an endless reason");
		claim(n == 12345, "something stored all the same");
	}
	free(text);
}

static void check_arithmetic(uint64_t a, uint64_t b)
{
	unsigned __int128 sum = (unsigned __int128)a + b;
	unsigned __int128 product = (unsigned __int128)a * b;
	uint64_t out;

	claim((brim_add(a, b, &out) == 0) == (sum <= UINT64_MAX), "add");
	claim(sum > UINT64_MAX || out == sum, "a wrong sum");
	claim((brim_mul(a, b, &out) == 0) == (product <= UINT64_MAX), "mul");
	claim(product > UINT64_MAX || out == product, "a wrong product");
	if (brim_align_up(a, b, &out) == 0)
		claim(b && out % b == 0 && out >= a && out - a < b,
		      "a wrong multiple");
}

static void check_geometry(struct feed *f)
{
	uint64_t first = feed_number(f, 8), size = feed_number(f, 8);
	uint64_t group = feed_number(f, 8), at = feed_number(f, 8), back;
	uint32_t log2 = feed_byte(f);
	struct brim_err e = { 0 };
	struct brim_location where;
	struct brim_geometry g;

	if (brim_geometry_init(&g, first, size, group, log2, &e) < 0) {
		claim(e.code && e.msg[0], "no reason");
		return;
	}
	claim(g.group_count > 0 && g.last_group_blocks > 0 &&
		      g.last_group_blocks <= g.group_blocks,
	      "an impossible geometry");
	if (brim_geometry_locate(&g, at, &where) < 0)
		return;
	claim(where.group < g.group_count, "a group that is none");
	claim(brim_geometry_offset(&g, &where, &back) == 0 && back == at,
	      "offset(locate(x)) is not x");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	uint64_t a, b;

	check_text(data, size);
	a = feed_number(&f, 8);
	b = feed_number(&f, 8);
	check_round_trip(a & BRIM_MAX_BYTES);
	check_arithmetic(a, b);
	f = (struct feed){ data, size };
	check_geometry(&f);
	return 0;
}
