/* SPDX-License-Identifier: MIT */
/*
 * test_walk.c: walks of trees over a device in memory: sound ones of three
 * levels, and damaged ones, which must end and be named; and lists of extents
 * against a bitmap. Blocks of 512 bytes, one group of 256 of them.
 */
#include <string.h>

#include "memdev.h"
#include "tap.h"

#define BLOCK 512u
#define BLOCKS 256u

static struct brim_layout *record, *key, *leaf, *node;

static struct brim_layout *layout(const char *name, uint32_t size,
				  const struct brim_field *f, size_t n,
				  int is_block)
{
	struct brim_layout_options o = {
		.struct_bytes = sizeof(o),
		.name = name,
		.size_bytes = size,
		.extensible = is_block,
		.checksum_field = is_block ? "crc" : NULL,
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
	struct brim_field r[] = { { "start", 0, 4, BRIM_BIG, 1, NULL, 0 },
				  { "count", 4, 4, BRIM_BIG, 1, NULL, 0 } };
	struct brim_field head[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL, 0x54524545 },
		{ "level", 4, 2, BRIM_BIG, 1, NULL, 0 },
		{ "number", 6, 2, BRIM_BIG, 1, NULL, 0 },
		{ "left", 8, 4, BRIM_BIG, 1, NULL, -1 },
		{ "right", 12, 4, BRIM_BIG, 1, NULL, -1 },
		{ "at", 16, 8, BRIM_BIG, 1, NULL, 0 },
		{ "owner", 24, 4, BRIM_BIG, 1, NULL, 0 },
		{ "crc", 28, 4, BRIM_BIG, 1, NULL, 0 },
		{ "records", 32, 8, 0, 0, NULL, 0 },
		{ "pointers", 352, 4, BRIM_BIG, 40, NULL, 0 },
	};

	record = layout("record", 8, r, 2, 0);
	key = layout("key", 8, r, 2, 0);
	head[8].record = record;
	leaf = layout("leaf", 40, head, 9, 1);
	head[8] = (struct brim_field){ "keys", 32, 8, 0, 40, key, 0 };
	node = layout("node", 512, head, 10, 1);
}

/* A block with a header; what follows is for the caller, then seal. */
static uint8_t *block(struct memdev *m, uint32_t n, uint32_t level,
		      uint32_t count, uint32_t left, uint32_t right)
{
	uint8_t *b = m->bytes + (size_t)n * BLOCK;

	memset(b, 0, BLOCK);
	brim__store(b, 4, BRIM_BIG, 0x54524545);
	brim__store(b + 4, 2, BRIM_BIG, level);
	brim__store(b + 6, 2, BRIM_BIG, count);
	brim__store(b + 8, 4, BRIM_BIG, left);
	brim__store(b + 12, 4, BRIM_BIG, right);
	brim__store(b + 16, 8, BRIM_BIG, n);
	return b;
}

static void seal(struct memdev *m, uint32_t n)
{
	brim_layout_seal(leaf, m->bytes + (size_t)n * BLOCK, BLOCK);
}

static void entry(uint8_t *b, uint32_t i, uint32_t start, uint32_t count,
		  uint32_t child)
{
	brim__store(b + 32 + 8 * i, 4, BRIM_BIG, start);
	brim__store(b + 36 + 8 * i, 4, BRIM_BIG, count);
	if (child)
		brim__store(b + 352 + 4 * i, 4, BRIM_BIG, child);
}

/* Root 1 over nodes 2, 3 over 20 leaves each, 10 .. 49, of 40 records each. */
static struct memdev *tree(void)
{
	struct memdev *m = memdev_new(BLOCKS * BLOCK);
	uint32_t n, i;
	uint8_t *b;

	for (n = 0; n < 40; n++) {
		b = block(m, 10 + n, 0, 40, n ? 9 + n : ~0u,
			  n < 39 ? 11 + n : ~0u);
		for (i = 0; i < 40; i++)
			entry(b, i, (40 * n + i) * 10, 5, 0);
		seal(m, 10 + n);
	}
	for (n = 0; n < 2; n++) {
		b = block(m, 2 + n, 1, 20, n ? 2 : ~0u, n ? ~0u : 3);
		for (i = 0; i < 20; i++)
			entry(b, i, (20 * n + i) * 400, 5, 10 + 20 * n + i);
		seal(m, 2 + n);
	}
	b = block(m, 1, 2, 2, ~0u, ~0u);
	entry(b, 0, 0, 5, 2);
	entry(b, 1, 8000, 5, 3);
	seal(m, 1);
	return m;
}

static struct brim_walk *walk(struct memdev *m, struct brim_walk_job *job)
{
	struct brim_walk_options o = { .struct_bytes = sizeof(o),
				       .block_bytes = BLOCK,
				       .group_bytes = BLOCKS * BLOCK,
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
				    .key = { "start", "count" },
				    .order = { "start" },
				    .is_strict = 1 };
	struct brim_walk_root root = {
		.block = 1, .levels = 3, .first_block = 1, .end_block = BLOCKS
	};
	struct brim_walk *w;
	struct brim_err e = { 0 };

	if (brim_walk_open(&w, &m->dev, &o, &e) < 0 ||
	    brim_walk_tree(w, &t, &e) < 0 ||
	    brim_walk_start(w, &root, &e) < 0 || brim_walk_run(w, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	brim_walk_job(w, 0, job);
	return w;
}

static void test_sound(void)
{
	struct memdev *m = tree();
	struct brim_walk_job job;
	struct brim_walk *w = walk(m, &job);
	struct brim_extents *x;
	struct brim_err e;

	ok(!job.faults && job.is_complete, "a sound tree has no faults", "%llu",
	   (unsigned long long)job.faults);
	ok(job.blocks == 43 && job.records == 1600, "all of it is seen",
	   "%llu blocks", (unsigned long long)job.blocks);
	brim_extents_create(&x, &e);
	brim_walk_extents(w, 0, "start", "count", NULL, x, &e);
	ok(brim_extents_sum(x) == 8000 &&
		   brim_extents_overlap(x, &(size_t){ 0 }) < 0,
	   "records become extents", "%llu",
	   (unsigned long long)brim_extents_sum(x));
	brim_extents_free(x);
	brim_walk_close(w);
	memdev_free(m);
}

/* Damage at a byte of a block, sealed again or not; what the first fault is. */
static void damaged(const char *name, uint32_t n, uint32_t at, uint32_t width,
		    uint64_t value, int is_sealed, const char *what)
{
	struct memdev *m = tree();
	struct brim_walk_fault f = { .what = "none" };
	struct brim_walk_job job;
	struct brim_walk *w;

	brim__store(m->bytes + (size_t)n * BLOCK + at, width, BRIM_BIG, value);
	if (is_sealed)
		seal(m, n);
	w = walk(m, &job);
	brim_walk_fault(w, 0, &f);
	ok(job.faults && !strcmp(f.what, what), name, "%s, %llu faults", f.what,
	   (unsigned long long)job.faults);
	brim_walk_close(w);
	memdev_free(m);
}

static void test_damaged(void)
{
	damaged("a flipped bit", 12, 100, 1, 0x55, 0, "checksum");
	damaged("magic", 12, 0, 4, 7, 1, "magic");
	damaged("level", 12, 4, 2, 1, 1, "level");
	damaged("too many records", 12, 6, 2, 61, 1, "number");
	damaged("too few records", 12, 6, 2, 29, 1, "number");
	damaged("left sibling", 12, 8, 4, 9, 1, "left");
	damaged("right sibling", 12, 12, 4, 9, 1, "right");
	damaged("address", 12, 16, 8, 13, 1, "at");
	damaged("owner", 12, 24, 4, 1, 1, "owner");
	damaged("order", 12, 32 + 8 * 5, 4, 1, 1, "order");
	damaged("key", 2, 32 + 8 * 5, 4, 1, 1, "key");
	damaged("a pointer out of the group", 2, 352, 4, BLOCKS, 1, "pointer");
	damaged("a pointer to the root", 2, 352, 4, 1, 1, "pointer, twice");
	damaged("a pointer met twice", 3, 352, 4, 10, 1, "pointer, twice");
}

/* Random bytes, checksums right: it ends, whatever is there. */
static void test_random(uint64_t *seed)
{
	struct brim_walk_job job;
	uint32_t k, j, bad = 0;

	for (k = 0; k < 2000; k++) {
		struct memdev *m = tree();
		uint32_t n = 1 + (uint32_t)tap_below(seed, 49);

		for (j = 0; j < 1 + k % 8; j++)
			m->bytes[n * BLOCK + 4 + tap_below(seed, 508)] =
				(uint8_t)tap_random(seed);
		seal(m, n);
		brim_walk_close(walk(m, &job));
		bad += job.blocks > BLOCKS || job.records > 60u * BLOCKS;
		memdev_free(m);
	}
	ok(!bad, "2000 random damages end", "%u", bad);
}

#define SPACE 64u

static void fill(struct brim_extents *x, uint8_t *depth, uint64_t *seed)
{
	uint32_t k, i;
	struct brim_err e;

	memset(depth, 0, SPACE);
	for (k = 0; k < tap_below(seed, 9); k++) {
		uint32_t start = (uint32_t)tap_below(seed, SPACE - 8);
		uint32_t n = (uint32_t)tap_below(seed, 8);

		brim_extents_add(x, start, n, 0, &e);
		for (i = 0; i < n; i++)
			depth[start + i]++;
	}
}

/* Whether a list covers just the blocks that `wanted` says. */
static int covers(const struct brim_extents *x, const uint8_t *wanted,
		  int is_exact)
{
	uint8_t got[SPACE] = { 0 };
	struct brim_range v;
	size_t k;
	uint64_t i;

	for (k = 0; !brim_extents_get(x, k, &v); k++)
		for (i = 0; i < v.count; i++)
			got[v.start + i] = is_exact ? (uint8_t)v.tag : 1;
	return !memcmp(got, wanted, SPACE);
}

/* Depth and overlap of the sorted x, whose depths are a[]. */
static void check_depth(struct brim_extents *x, const uint8_t *a, uint32_t *bad)
{
	struct brim_extents *z;
	struct brim_err e;
	uint8_t t[SPACE];
	size_t other;
	uint32_t i;

	brim_extents_create(&z, &e);
	brim_extents_sort(x);
	for (i = 0; i < SPACE; i++)
		t[i] = a[i] >= 2 ? a[i] : 0;
	brim_extents_depth(x, 2, z, &e);
	bad[0] += !covers(z, t, 1);
	bad[1] += (brim_extents_overlap(x, &other) >= 0) !=
			  (brim_extents_count(z) > 0) &&
		  brim_extents_outside(x, 0, SPACE) < 0;
	brim_extents_free(z);
}

/* Union, complement and the first difference of x and y. */
static void check_sets(struct brim_extents *x, struct brim_extents *y,
		       const uint8_t *a, const uint8_t *b, uint32_t *bad)
{
	struct brim_extents *z;
	struct brim_range v;
	struct brim_err e;
	uint8_t t[SPACE];
	int which, first = -1;
	uint32_t i;

	brim_extents_union(x);
	brim_extents_union(y);
	for (i = 0; i < SPACE; i++)
		t[i] = a[i] > 0;
	bad[2] += !covers(x, t, 0);
	for (i = SPACE; i-- > 0;)
		if (!a[i] != !b[i])
			first = (int)i;
	which = brim_extents_only(x, y, &v);
	bad[3] += first < 0 ? which != 0
			    : !which || v.start != (uint32_t)first ||
				      (which == 1) != (a[first] > 0);
	brim_extents_create(&z, &e);
	brim_extents_complement(x, 0, SPACE, z, &e);
	for (i = 0; i < SPACE; i++)
		t[i] = !a[i];
	bad[4] += !covers(z, t, 0);
	brim_extents_free(z);
}

static void test_extents(uint64_t *seed)
{
	uint32_t k, bad[5] = { 0 };
	struct brim_err e;

	for (k = 0; k < 20000; k++) {
		struct brim_extents *x, *y;
		uint8_t a[SPACE], b[SPACE];

		brim_extents_create(&x, &e);
		brim_extents_create(&y, &e);
		fill(x, a, seed);
		fill(y, b, seed);
		check_depth(x, a, bad);
		check_sets(x, y, a, b, bad);
		brim_extents_free(x);
		brim_extents_free(y);
	}
	ok(!bad[0], "depth is that of the bitmap", "%u", bad[0]);
	ok(!bad[1], "overlap is where depth is 2", "%u", bad[1]);
	ok(!bad[2], "union covers what the bitmap has", "%u", bad[2]);
	ok(!bad[3], "only finds the first difference", "%u", bad[3]);
	ok(!bad[4], "complement is the rest", "%u", bad[4]);
}

int main(void)
{
	uint64_t seed = tap_seed(1);

	make_layouts();
	test_sound();
	test_damaged();
	test_random(&seed);
	test_extents(&seed);
	brim_layout_free(node);
	brim_layout_free(leaf);
	brim_layout_free(key);
	brim_layout_free(record);
	return tap_end();
}
