/* SPDX-License-Identifier: MIT */
/*
 * test_objects.c: objects that hold extents, over a device in memory: a list, a
 * tree, both forks; and damaged ones, which must be named and must end. Two
 * groups of 64 blocks of 512 bytes; objects 0 .. 3 of 128 bytes fill block 2.
 */
#include <string.h>

#include "memdev.h"
#include "tap.h"

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

static void must(int ret, const struct brim_err *e)
{
	if (ret < 0) {
		fprintf(stderr, "%s\n", e->msg);
		exit(1);
	}
}

static struct brim_walk *open_walk(struct memdev *m)
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
	struct brim_walk *w;
	struct brim_err e = { 0 };

	must(brim_walk_open(&w, &m->dev, &o, &e), &e);
	must(brim_walk_tree(w, &t, &e), &e);
	must(brim_walk_object(w, &d, &e), &e);
	return w;
}

/* Reads them all; the walk stays open, for its faults. */
static struct brim_walk *take(struct memdev *m, struct brim_table *t,
			      struct brim_object_counts *counts)
{
	struct brim_object_range r = { OBJECTS_AT, 0, 4, 15, 7 };
	struct brim_walk *w = open_walk(m);
	struct brim_err e = { 0 };

	must(brim_walk_objects(w, &r, 1, t, counts, &e), &e);
	return w;
}

static struct brim_table *fresh(void)
{
	struct brim_table *t;
	struct brim_err e = { 0 };

	must(brim_table_create(&t, 6, &e), &e);
	return t;
}

static int has(struct brim_table *t, uint64_t start, uint64_t count,
	       uint64_t owner, uint64_t offset)
{
	struct brim_row row;
	size_t k;

	for (k = 0; !brim_table_get(t, k, &row); k++)
		if (row.start == start && row.count == count &&
		    row.owner == owner && row.offset == offset)
			return 1;
	return 0;
}

static void test_sound(void)
{
	struct memdev *m = objects();
	struct brim_object_counts c;
	struct brim_table *t = fresh();
	struct brim_walk *w = take(m, t, &c);
	struct brim_walk_fault f = { .what = "none" };

	ok(brim_walk_fault(w, 0, &f) < 0 && !c.bad, "sound ones have no faults",
	   "%s of %llu", f.what, (unsigned long long)f.object);
	ok(c.objects == 4 && c.used == 3 && c.rows == 32, "all are taken",
	   "%llu rows", (unsigned long long)c.rows);
	ok(has(t, 5, 4, 0, 0) && has(t, GROUP + 8, 3, 0, 9 | FLAG),
	   "a list, and its flag", "%s", "is not there");
	ok(has(t, 24, 1, 1, 0) && has(t, 51, 1, 1, 54), "a tree's records",
	   "%s", "are not there");
	ok(has(t, LEAF, 1, 1, TREE), "a tree's own block", "%s", "not there");
	ok(has(t, 60, 2, 2, SECOND), "a second fork", "%s", "is not there");
	brim_walk_close(w);
	brim_table_free(t);
	memdev_free(m);
}

/* An object's byte changed, checksums made right; what the first fault is. */
static void damaged(const char *name, uint32_t n, uint32_t at, uint32_t width,
		    uint64_t value, const char *what, uint64_t bad)
{
	struct memdev *m = objects();
	struct brim_object_counts c;
	struct brim_table *t = fresh();
	struct brim_walk_fault f = { .what = "none" };
	struct brim_walk *w;

	brim__store(n < 4 ? at_object(m, n) + at : m->bytes + n * BLOCK + at,
		    width, BRIM_BIG, value);
	seal(m);
	w = take(m, t, &c);
	brim_walk_fault(w, 0, &f);
	ok(!strcmp(f.what, what) && f.is_object && c.bad == bad, name,
	   "%s, %llu bad", f.what, (unsigned long long)c.bad);
	brim_walk_close(w);
	brim_table_free(t);
	memdev_free(m);
}

static void test_damaged(void)
{
	damaged("magic", 0, 0, 2, 7, "magic", 1);
	damaged("number", 0, 8, 8, 9, "number", 0);
	damaged("not in use", 0, 2, 2, 0, "free", 1);
	damaged("in use", 3, 2, 2, 0x1000, "in use", 0);
	damaged("no such kind", 0, 2, 2, 0x3000, "use", 1);
	damaged("a format of another kind", 0, 4, 1, OTHER, "format", 1);
	damaged("a format past all", 0, 4, 1, 255, "format", 1);
	damaged("more records than fit", 0, 16, 4, 6, "count", 1);
	damaged("records by the million", 0, 16, 4, ~0u, "count", 1);
	damaged("one record less", 0, 16, 4, 1, "blocks", 0);
	damaged("blocks", 0, 32, 8, 8, "blocks", 0);
	damaged("linked", 0, 40, 4, 3, "none", 0);
	damaged("a split past the end", 2, 6, 1, 10, "split", 1);
	damaged("a count that is elsewhere", 0, 7, 1, 1, "blocks", 0);
	damaged("a second fork that is not there", 0, 20, 2, 1, "count2", 0);
	damaged("an extent out of its group", 0, BODY + 8, 8, 62ull << 21 | 4,
		"extent", 1);
	damaged("an extent of what is nobody's", 0, BODY + 8, 8, 3ull << 21 | 4,
		"extent", 1);
	damaged("an extent past all groups", 0, BODY + 8, 8, ~0ull, "extent",
		1);
	damaged("an empty extent", 0, BODY + 8, 8, 5ull << 21, "extent", 1);
	damaged("extents out of order", 0, BODY, 8, 12ull << 9, "order", 0);
	damaged("a tree without levels", 1, BODY, 2, 0, "level", 1);
	damaged("a tree of too many", 1, BODY, 2, 99, "level", 1);
	damaged("a root without pointers", 1, BODY + 2, 2, 0, "number", 1);
	damaged("a root with too many", 1, BODY + 2, 2, 5, "number", 1);
	damaged("a root that points nowhere", 1, BODY + 36, 8, ~0ull, "pointer",
		1);
	damaged("a key", 1, BODY + 4, 8, 1, "key", 0);
	damaged("another's tree", LEAF, 32, 4, 2, "owner", 1);
	damaged("a tree's count", 1, 16, 4, 27, "count", 0);
	damaged("order in a tree", LEAF, 40 + 16, 8, 0, "order", 0);
}

/* Objects on another device: counted, but no rows. */
static void test_away(void)
{
	struct memdev *m = objects();
	struct brim_object_counts c;
	struct brim_table *t = fresh();
	struct brim_walk_fault f = { .what = "none" };
	struct brim_walk *w;

	at_object(m, 0)[7] = 2;
	brim__store(at_object(m, 0) + BODY + 8, 8, BRIM_BIG, 9999ull << 21 | 4);
	seal(m);
	w = take(m, t, &c);
	ok(brim_walk_fault(w, 0, &f) < 0 && c.rows == 30, "extents elsewhere",
	   "%s, %llu rows", f.what, (unsigned long long)c.rows);
	brim_walk_close(w);
	brim_table_free(t);
	memdev_free(m);
}

/* Random bytes, checksums right: it ends, and rows are bounded. */
static void test_random(uint64_t *seed)
{
	struct brim_object_counts c;
	uint32_t k, j, bad = 0;

	for (k = 0; k < 4000; k++) {
		struct memdev *m = objects();
		struct brim_table *t = fresh();
		uint32_t from = k % 3 ? OBJECTS_AT : LEAF * BLOCK;

		for (j = 0; j < 1 + k % 8; j++)
			m->bytes[from + tap_below(seed, BLOCK)] =
				(uint8_t)tap_random(seed);
		seal(m);
		brim_walk_close(take(m, t, &c));
		bad += c.rows > 200;
		brim_table_free(t);
		memdev_free(m);
	}
	ok(!bad, "4000 random damages end", "%u", bad);
}

static void test_refused(void)
{
	struct brim_object_range r[] = { { OBJECTS_AT, 0, 4, 15, 7 },
					 { OBJECTS_AT, 0, 3, 7, 7 } };
	struct memdev *m = objects();
	struct brim_object_counts c;
	struct brim_table *t = fresh();
	struct brim_walk *w = open_walk(m);
	struct brim_err e = { 0 };

	ok(brim_walk_objects(w, r, 2, t, &c, &e) < 0, "ranges of two sizes",
	   "%s", "accepted");
	r[0].off_bytes = 2 * GROUP * BLOCK - OBJECT;
	ok(brim_walk_objects(w, r, 1, t, &c, &e) < 0, "past the device", "%s",
	   "accepted");
	r[0].off_bytes = UINT64_MAX;
	ok(brim_walk_objects(w, r, 1, t, &c, &e) < 0, "past all", "%s",
	   "accepted");
	brim_walk_close(w);
	brim_table_free(t);
	memdev_free(m);
}

int main(void)
{
	uint64_t seed = tap_seed(1);

	make_layouts();
	test_sound();
	test_damaged();
	test_away();
	test_random(&seed);
	test_refused();
	brim_layout_free(root);
	brim_layout_free(node);
	brim_layout_free(leaf);
	brim_layout_free(key);
	brim_layout_free(record);
	brim_layout_free(object);
	return tap_end();
}
