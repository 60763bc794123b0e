/* SPDX-License-Identifier: MIT */
/*
 * seeds.c: what the fuzz targets begin with: `seeds DIR` fills DIR/bytes,
 * DIR/layout and the others, which are there, with a few small inputs each.
 */
#include "../../core/image.h"
#include "../../core/plan.h"
#include "fuzz.h"
#include "fuzz_tree.h"

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

/* ------------------------------------------------------------------- trees */

/* The head of a block, whatever else tree_flag makes right. */
static uint8_t *tree_block(uint8_t *device, uint32_t n, int is_rmap,
			   uint32_t level, uint32_t count)
{
	uint8_t *b = device + (size_t)n * TREE_BLOCK;

	tree_store(b, 4, tree_magic[is_rmap]);
	tree_store(b + 4, 2, level);
	tree_store(b + 6, 2, count);
	tree_store(b + 8, 4, n > 1 && !level ? n - 1 : UINT32_MAX);
	tree_store(b + 12, 4, UINT32_MAX);
	return b + TREE_HEAD;
}

/* A root in block 0 over `leaves` full leaves in blocks 1 and on. */
static void put_tree(int n, int is_rmap, uint32_t leaves)
{
	static uint8_t input[TREE_INPUT + TREE_BYTES];
	uint8_t *device = input + TREE_INPUT, *root, *b;
	uint64_t at = 1;
	struct tree_kind t;
	uint32_t k, i;

	tree_make(&t, is_rmap);
	memset(input, 0, sizeof(input));
	input[0] = TREE_SEALED | TREE_PLACED | TREE_MAGIC | TREE_FAULT;
	input[1] = input[4] = (uint8_t)is_rmap;
	input[3] = leaves ? 1 : 0;
	root = tree_block(device, 0, is_rmap, leaves ? 1 : 0, leaves);
	for (k = 0; k < leaves; k++) {
		uint8_t *key = root + k * t.key_bytes;

		b = tree_block(device, k + 1, is_rmap, 0, t.record_max);
		if (k + 1 < leaves)
			tree_store(b - TREE_HEAD + 12, 4, k + 2);
		tree_store(key, 4, at);
		tree_store(key + 4, is_rmap ? 8 : 4, 3);
		tree_store(root + t.node_max * t.key_bytes + 4 * k, 4, k + 1);
		for (i = 0; i < t.record_max; i++, at += 5) {
			tree_store(b + i * t.record_bytes, 4, at);
			tree_store(b + i * t.record_bytes + 4, 4, 3);
			if (is_rmap)
				tree_store(b + i * t.record_bytes + 8, 8, 3);
		}
		if (is_rmap)
			tree_store(key + 20, 4, at - 5 + 2);
	}
	put("walk", n, input, TREE_INPUT + (leaves + 1) * TREE_BLOCK);
}

static void put_trees(void)
{
	put_tree(0, 0, 0);
	put_tree(1, 0, 3);
	put_tree(2, 1, 2);
	put_tree(3, 1, 5);
}

static void put_extents(void)
{
	static const uint8_t a[] = { 0x80, 1, 3, 0,    0x80, 4,  3,    0, 0x81,
				     2,    9, 1, 0x02, 0,    64, 0x0c, 3, 9 };
	static const uint8_t b[] = { 0xc0, 0,    64, 3, 0xc0, 5,    0,
				     1,    0xc1, 5,  5, 2,    0x06, 1,
				     9,    0x04, 0,  9, 0x08, 0xff, 0xff };

	put("extents", 0, a, sizeof(a));
	put("extents", 1, b, sizeof(b));
}

/* As LLVMFuzzerTestOneInput of fuzz_scan.c reads it. */
static void put_scans(void)
{
	static const uint8_t one[] = { 2,    0x13, 0, 32, 0, 20,   0x14, 2,
				       4,    7,    1, 5,  3, 0xc1, 0x02, 5,
				       0x02, 0x08, 3, 1,  2, 3,    4,    5 };
	static const uint8_t two[] = { 4,    0x31, 3,    9, 2, 60,   0x51, 10,
				       0x10, 0x48, 0,    9, 4, 0x05, 0x43, 1,
				       0x52, 0x40, 0x89, 2, 0, 99,   0,    7 };

	put("scan", 0, one, sizeof(one));
	put("scan", 1, two, sizeof(two));
}

/* A line or two of each format, behind the byte that chooses it. */
static void put_traces(void)
{
	static const char *const traces[] = {
		"\x01"
		"fio version 2 iolog\n/d add\n/d open\n/d wait 250 0\n"
		"/d write 4096 512\n/d sync 0 0\n/d close\n",
		"\x02"
		"fio version 3 iolog\n0 d add\n5 d trim 0 4096\n",
		"\x03"
		"{\"format\":\"brim-trace\",\"version\":1}\n"
		"{\"at_ns\":5,\"stream\":2,\"op\":\"rename\",\"path\":"
		"\"a\\u00e9\",\"to\":\"b\"}\n{\"op\":\"write\","
		"\"off_bytes\":1,\"len_bytes\":2,\"x\":null}\n",
		"\x04"
		"  8,0 3 2 0.000002000 697 Q WS 223490 + 8 [x]\n"
		"  8,0 3 3 0.1 697 Q FN [x]\nCPU0 (8,0):\n",
		"\x05"
		"128166372003061629,hm,1,Read,383496192,32768,413\n",
		"\x06"
		"419,W,8792731648,16384,1577808144360767\n",
		"\x07"
		"1538323200,12910952,128,0,1063\r\n",
	};
	int k;

	for (k = 0; k < 7; k++)
		put("trace", k, traces[k], strlen(traces[k]));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	dir = argv[1];
	put_bytes();
	put_layouts();
	put_images();
	put_trees();
	put_extents();
	put_scans();
	put_traces();
	return 0;
}
