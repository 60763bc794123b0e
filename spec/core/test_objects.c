/* SPDX-License-Identifier: MIT */
/*
 * test_objects.c: objects that hold extents, over a device in memory: a list, a
 * tree, both forks; and damaged ones, which must be named and must end. What
 * they look like is in objects_image.h.
 */
#include "objects_image.h"
#include "tap.h"

static void must(int ret, const struct brim_err *e)
{
	if (ret < 0) {
		fprintf(stderr, "%s\n", e->msg);
		exit(1);
	}
}

static struct brim_walk *open_walk(struct memdev *m)
{
	struct brim_walk *w;
	struct brim_err e = { 0 };

	must(objects_walk(&w, m, &e), &e);
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
	free_layouts();
	return tap_end();
}
