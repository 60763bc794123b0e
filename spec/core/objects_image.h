/* SPDX-License-Identifier: MIT */
/*
 * objects_image.h: objects that hold extents, on a device in memory, for
 * test_objects.c and test_alloc_objects.c. Two groups of 64 blocks of 512
 * bytes; objects 0 .. 3 of 128 bytes fill block 2.
 */
#ifndef BRIM_OBJECTS_IMAGE_H
#define BRIM_OBJECTS_IMAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memdev.h"

#define BLOCK 512u
#define GROUP 64u
#define OBJECT 128u
#define OBJECTS_AT (2 * BLOCK)
#define BODY 48u
#define LEAF 20u /* block */
#define SECOND (1ull << 63)
#define TREE (1ull << 62)
#define FLAG (1ull << 61)

enum { OTHER = 1, LIST = 2, ROOT = 3 };

static struct brim_layout *object, *root, *record, *key, *leaf, *node;

static struct brim_layout *layout(const char *name, uint32_t size,
				  const struct brim_field *f, size_t n,
				  int is_summed)
{
	struct brim_layout_options o = {
		.struct_bytes = sizeof(o),
		.name = name,
		.size_bytes = size,
		.extensible = is_summed,
		.checksum_field = is_summed ? "crc" : NULL,
		.checksum = { BRIM_CRC32C, ~0u, ~0u, BRIM_BIG }
	};
	struct brim_layout *l;
	struct brim_err e = { 0 };

	if (brim_layout_create(&l, &o, f, n, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	return l;
}

static void make_layouts(void)
{
	struct brim_field fields[] = {
		{ "magic", 0, 2, BRIM_BIG, 1, NULL, 0x4f42 },
		{ "use", 2, 2, BRIM_BIG, 1, NULL, 0 },
		{ "format", 4, 1, BRIM_BIG, 1, NULL, 0 },
		{ "format2", 5, 1, BRIM_BIG, 1, NULL, 0 },
		{ "split", 6, 1, BRIM_BIG, 1, NULL, 0 },
		{ "flags", 7, 1, BRIM_BIG, 1, NULL, 0 },
		{ "number", 8, 8, BRIM_BIG, 1, NULL, 0 },
		{ "count", 16, 4, BRIM_BIG, 1, NULL, 0 },
		{ "count2", 20, 2, BRIM_BIG, 1, NULL, 0 },
		{ "pad", 22, 2, BRIM_BIG, 1, NULL, 0 },
		{ "wide", 24, 8, BRIM_BIG, 1, NULL, 0 },
		{ "blocks", 32, 8, BRIM_BIG, 1, NULL, 0 },
		{ "none", 40, 4, BRIM_BIG, 1, NULL, 0 },
		{ "crc", 44, 4, BRIM_BIG, 1, NULL, 0 },
	};
	struct brim_field r[] = { { "l0", 0, 8, BRIM_BIG, 1, NULL, 0 },
				  { "l1", 8, 8, BRIM_BIG, 1, NULL, 0 } };
	struct brim_field k[] = { { "offset", 0, 8, BRIM_BIG, 1, NULL, 0 } };
	struct brim_field head[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL, 0x54524545 },
		{ "level", 4, 2, BRIM_BIG, 1, NULL, 0 },
		{ "number", 6, 2, BRIM_BIG, 1, NULL, 0 },
		{ "left", 8, 8, BRIM_BIG, 1, NULL, -1 },
		{ "right", 16, 8, BRIM_BIG, 1, NULL, -1 },
		{ "at", 24, 8, BRIM_BIG, 1, NULL, 0 },
		{ "owner", 32, 4, BRIM_BIG, 1, NULL, 0 },
		{ "crc", 36, 4, BRIM_BIG, 1, NULL, 0 },
		{ "records", 40, 16, 0, 0, NULL, 0 },
		{ "pointers", 272, 8, BRIM_BIG, 29, NULL, 0 },
	};
	struct brim_field top[] = { { "level", 0, 2, BRIM_BIG, 1, NULL, 0 },
				    { "number", 2, 2, BRIM_BIG, 1, NULL, 0 },
				    { "keys", 4, 8, 0, 1, NULL, 0 } };

	object = layout("object", 48, fields, 14, 1);
	record = layout("record", 16, r, 2, 0);
	key = layout("key", 8, k, 1, 0);
	head[8].record = record;
	leaf = layout("leaf", 56, head, 9, 1);
	head[8] = (struct brim_field){ "keys", 40, 8, 0, 29, key, 0 };
	node = layout("node", 504, head, 10, 1);
	top[2].record = key;
	root = layout("root", 12, top, 3, 0);
}

static void put_record(uint8_t *at, uint64_t flag, uint64_t offset,
		       uint64_t start, uint64_t count)
{
	brim__store(at, 8, BRIM_BIG, flag << 63 | offset << 9 | start >> 43);
	brim__store(at + 8, 8, BRIM_BIG, start << 21 | count);
}

static uint8_t *at_object(struct memdev *m, uint32_t n)
{
	return m->bytes + OBJECTS_AT + n * OBJECT;
}

static void seal(struct memdev *m)
{
	uint32_t n;

	for (n = 0; n < 4; n++)
		brim_layout_seal(object, at_object(m, n), OBJECT);
	brim_layout_seal(leaf, m->bytes + LEAF * BLOCK, BLOCK);
}

static void put_object(struct memdev *m, uint32_t n, uint32_t use,
		       uint32_t format, uint32_t count, uint32_t blocks)
{
	uint8_t *p = at_object(m, n);

	memset(p, 0, OBJECT);
	brim__store(p, 2, BRIM_BIG, 0x4f42);
	brim__store(p + 2, 2, BRIM_BIG, use);
	p[4] = (uint8_t)format;
	p[5] = LIST;
	brim__store(p + 8, 8, BRIM_BIG, n);
	brim__store(p + 16, 4, BRIM_BIG, count);
	brim__store(p + 32, 8, BRIM_BIG, blocks);
	brim__store(p + 40, 4, BRIM_BIG, ~0u);
}

/*
 * 0: a list of two, the second flagged, in another group. 1: a tree of 30
 * records. 2: something else, and a list of one as its second fork. 3: unused.
 */
static struct memdev *objects(void)
{
	struct memdev *m = memdev_new(2 * GROUP * BLOCK);
	uint8_t *p;
	uint32_t i;

	memset(m->bytes, 0, 2 * GROUP * BLOCK);
	put_object(m, 0, 0x1000, LIST, 2, 7);
	put_record(at_object(m, 0) + BODY, 0, 0, 5, 4);
	put_record(at_object(m, 0) + BODY + 16, 1, 9, GROUP + 8, 3);
	put_object(m, 1, 0x1000, ROOT, 28, 29);
	p = at_object(m, 1) + BODY;
	brim__store(p, 2, BRIM_BIG, 1);
	brim__store(p + 2, 2, BRIM_BIG, 1);
	brim__store(p + 4 + 8 * 4, 8, BRIM_BIG, LEAF);
	put_object(m, 2, 0x2000, OTHER, 0, 2);
	at_object(m, 2)[6] = 5;
	brim__store(at_object(m, 2) + 20, 2, BRIM_BIG, 1);
	put_record(at_object(m, 2) + BODY + 40, 0, 0, 60, 2);
	put_object(m, 3, 0, LIST, 0, 0);
	p = m->bytes + LEAF * BLOCK;
	brim__store(p, 4, BRIM_BIG, 0x54524545);
	brim__store(p + 6, 2, BRIM_BIG, 28);
	brim__store(p + 8, 8, BRIM_BIG, ~0ull);
	brim__store(p + 16, 8, BRIM_BIG, ~0ull);
	brim__store(p + 24, 8, BRIM_BIG, LEAF);
	brim__store(p + 32, 4, BRIM_BIG, 1);
	for (i = 0; i < 28; i++)
		put_record(p + 40 + 16 * i, 0, 2 * i, 24 + i, 1);
	seal(m);
	return m;
}

/* A walk that knows the objects; it is the caller's, failed or not. */
static int objects_walk(struct brim_walk **w, struct memdev *m,
			struct brim_err *e)
{
	struct brim_walk_options o = { .struct_bytes = sizeof(o),
				       .block_bytes = BLOCK,
				       .group_bytes = GROUP * BLOCK,
				       .engine = "sync",
				       .queue_depth = 8 };
	struct brim_walk_tree t = { .struct_bytes = sizeof(t),
				    .name = "tree",
				    .leaf = leaf,
				    .node = node,
				    .magic = "magic",
				    .level = "level",
				    .count = "number",
				    .left = "left",
				    .right = "right",
				    .address = "at",
				    .address_unit_bytes = BLOCK,
				    .owner = "owner",
				    .records = "records",
				    .keys = "keys",
				    .pointers = "pointers",
				    .key = { "offset" },
				    .record_key = "l0",
				    .key_shift = 9,
				    .key_bits = 54 };
	struct brim_object d = {
		.struct_bytes = sizeof(d),
		.layout = object,
		.object_bytes = OBJECT,
		.body_at = BODY,
		.magic = "magic",
		.number = "number",
		.use = "use",
		.kind_shift = 12,
		.kinds = { [1] = 1 << LIST | 1 << ROOT, [2] = 1 << OTHER },
		.none = "none",
		.blocks = "blocks",
		.split = "split",
		.split_bytes = 8,
		.fork = { { "format", "count", "wide", 0, 0 },
			  { "format2", "count2", NULL, 1 << LIST | 1 << ROOT,
			    SECOND } },
		.list_format = LIST,
		.tree_format = ROOT,
		.wide = { "flags", 1 },
		.away = { "flags", 2 },
		.record = { 16, { 55, 52 }, { 107, 21 }, { 1, 54 }, { 0, 1 } },
		.flag_tag = FLAG,
		.tree_tag = TREE,
		.root = root,
		.group_log2 = 6,
		.group_blocks = GROUP,
		.last_group_blocks = GROUP,
		.group_count = 2,
		.first_block = 4,
	};
	int ret = brim_walk_open(w, &m->dev, &o, e);

	if (ret >= 0)
		ret = brim_walk_tree(*w, &t, e);
	if (ret >= 0)
		ret = brim_walk_object(*w, &d, e);
	return ret;
}

static void free_layouts(void)
{
	brim_layout_free(root);
	brim_layout_free(node);
	brim_layout_free(leaf);
	brim_layout_free(key);
	brim_layout_free(record);
	brim_layout_free(object);
}

#endif /* BRIM_OBJECTS_IMAGE_H */
