/* SPDX-License-Identifier: MIT */
/*
 * seeds.c: what the fuzz targets begin with: `seeds DIR` fills DIR/bytes,
 * DIR/layout and DIR/image, which are there, with a few small inputs each.
 */
#include "../../core/image.h"
#include "../../core/plan.h"
#include "fuzz.h"

static const char *dir;

static void put(const char *target, int n, const void *bytes, size_t len)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/seed-%d", dir, target, n);
	f = fopen(path, "wb");
	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void put_bytes(void)
{
	static const char *const texts[] = {
		"0",
		"4096",
		"8191p",
		"8191PiB",
		"8e",
		"9223372036854775807",
		"9223372036854775808",
		"1 KiB",
		"16m",
		"1.5g",
		"-1",
		"1e3",
		"64TiB",
		"1PB",
		"99999999999999999999",
	};
	int n;

	for (n = 0; n < (int)(sizeof(texts) / sizeof(*texts)); n++)
		put("bytes", n, texts[n], strlen(texts[n]));
}

/* As take_layout of fuzz_layout.c reads it. */
static void put_layouts(void)
{
	static const uint8_t plain[] = { 0, 0x66, 3, 0, 6, 0, 4, 1, 2, 3, 0,
					 7, 1,    2, 3, 4, 5, 6, 7, 8, 9 };
	static const uint8_t summed[] = { 0, 0x64, 4,   0, 6, 1, 2, 3, 0, 3,
					  2, 9,    4,   1, 0, 0, 0, 0, 0, 0,
					  0, 2,    0xe, 0, 9, 9, 9, 9, 9, 9 };
	static const uint8_t nested[] = {
		1, 0, 2, 0,    5, 0, 5, 6, 3, 0, 6, 1,
		2, 3, 2, 0x20, 5, 0, 0, 1, 2, 3, 4, 5
	};

	put("layout", 0, plain, sizeof(plain));
	put("layout", 1, summed, sizeof(summed));
	put("layout", 2, nested, sizeof(nested));
}

static struct brim_stamp *stamp(uint64_t first, uint64_t count, uint32_t len,
				uint32_t regions)
{
	const struct brim_checksum how = { BRIM_CRC32C, ~0u, ~0u, BRIM_LITTLE };
	struct brim_stamp *s;
	uint64_t k;

	brim_stamp_create(&s, NULL);
	for (k = 0; k < regions; k++) {
		uint64_t at = k * 2 * len;

		brim_stamp_region(s, at, len, "r", NULL);
		brim_stamp_set_bytes(s, at, "XFSB", 4, NULL);
		brim_stamp_set_int(s, at + 4, 4, BRIM_BIG, 1, 2, "f", NULL);
		brim_stamp_set_checksum(s, at + 8, at, len, &how, NULL);
	}
	brim_stamp_seal(s, first, count, NULL);
	return s;
}

static void put_image(int n, struct brim_plan *p)
{
	void *image;
	size_t len;

	if (brim_plan_seal(p, NULL) < 0 ||
	    brim_image_encode(p, &image, &len, NULL) < 0) {
		fprintf(stderr, "image %d is not to be had\n", n);
		exit(1);
	}
	put("image", n, (uint8_t *)image + BRIM__IMAGE_HEADER_BYTES,
	    len - BRIM__IMAGE_HEADER_BYTES);
	free(image);
	brim_plan_free(p);
}

/* Groups, a table, zeros with holes, an odd group, a superblock at last. */
static void put_images(void)
{
	struct brim_plan *p;

	brim_plan_create(&p, "p", 1u << 20, NULL);
	brim_plan_set_note(p, "k", "t", NULL);
	brim_plan_phase(p, "a", NULL);
	brim_plan_zero(p, 0, 4096, "z", NULL);
	brim_plan_phase(p, "b", NULL);
	brim_plan_zero(p, 65536, 65536, "z", NULL);
	brim_plan_each(p, stamp(1, 8, 512, 1), 0, 65536, "g", 1, NULL);
	brim_plan_each(p, stamp(3, 1, 512, 1), 0, 65536, "g", 1, NULL);
	brim_plan_each(p, stamp(0, 64, 64, 1), 700000, 64, "t", 0, NULL);
	brim_plan_phase(p, "c", NULL);
	brim_plan_each(p, stamp(0, 1, 512, 1), 0, 0, "s", 0, NULL);
	put_image(0, p);

	brim_plan_create(&p, "huge", BRIM_MAX_BYTES, NULL);
	brim_plan_each(p, stamp(0, 300, 16, 3), 0, 1ull << 40, "g", 1, NULL);
	brim_plan_phase(p, "b", NULL);
	brim_plan_each(p, stamp(0, 100, 32, 1), 16, 3ull << 40, "g", 1, NULL);
	put_image(1, p);

	brim_plan_create(&p, "dense", 1ull << 40, NULL);
	brim_plan_each(p, stamp(0, 1u << 30, 12, 1), 0, 12, "d", 1, NULL);
	brim_plan_each(p, stamp(5, 2, 12, 1), 0, 12, "d", 1, NULL);
	put_image(2, p);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	put_bytes();
	put_layouts();
	put_images();
	return 0;
}
