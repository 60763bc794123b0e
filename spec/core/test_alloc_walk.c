/* SPDX-License-Identifier: MIT */
/*
 * test_alloc_walk.c: walks of trees and lists of extents, and overlays that are
 * made, written, committed and saved, with every allocation failing once: see
 * alloc_helper.h. An overlay that met such a failure opens again and holds what
 * was written before.
 */
#include "alloc_helper.h"
#include "../fuzz/fuzz_tree.h"

/* --------------------------------------------------------------- walks, lists */

#define LEAVES 3u

static struct tree_kind kind;
static uint8_t device_bytes[TREE_BYTES];
static char device_path[256], overlay_path[256], base_path[256];

/* The tree that fuzz/seeds.c plants as well: a root over full leaves. */
static void make_tree(void)
{
	uint64_t at = 1;
	uint32_t k, i;
	FILE *f;

	tree_make(&kind, 0);
	for (k = 0; k <= LEAVES; k++) {
		uint8_t *b = device_bytes + k * TREE_BLOCK;
		uint8_t *root = device_bytes + TREE_HEAD;

		tree_store(b, 4, tree_magic[0]);
		tree_store(b + 4, 2, k == 0);
		tree_store(b + 6, 2, k ? kind.record_max : LEAVES);
		tree_store(b + 8, 4, k > 1 ? k - 1 : UINT32_MAX);
		tree_store(b + 12, 4, k && k < LEAVES ? k + 1 : UINT32_MAX);
		tree_store(b + 16, 8, k);
		memcpy(b + 32, tree_uuid, 16);
		for (i = 0; k && i < kind.record_max; i++, at += 5) {
			tree_store(b + TREE_HEAD + 8 * i, 4, at);
			tree_store(b + TREE_HEAD + 8 * i + 4, 4, 3);
		}
		if (!k)
			continue;
		memcpy(root + 8 * (k - 1), b + TREE_HEAD, 8);
		tree_store(root + 8 * kind.node_max + 4 * (k - 1), 4, k);
	}
	for (k = 0; k <= LEAVES; k++)
		brim_layout_seal(kind.leaf, device_bytes + k * TREE_BLOCK,
				 TREE_BLOCK);
	f = fopen(device_path, "wb");
	if (!f || fwrite(device_bytes, 1, TREE_BYTES, f) != TREE_BYTES ||
	    fclose(f))
		exit(1);
}

static int walk_it(struct brim_walk *w, struct brim_err *e)
{
	struct brim_walk_tree t = tree_describe(&kind, 0);
	struct brim_walk_root root = { 0, 0, 0, 2, 0, TREE_BLOCKS };
	const uint64_t places[] = { 0, 512, 1024 };
	struct brim_walk_job job;
	uint8_t buf[3 * TREE_BLOCK];
	int k;

	TRY(brim_walk_tree(w, &t, e));
	for (k = 0; k < 70; k++)
		TRY(brim_walk_start(w, &root, e));
	TRY(brim_walk_run(w, e));
	TRY(brim_walk_job(w, 69, &job));
	if (job.records != LEAVES * kind.record_max || job.faults)
		return -EBADMSG;
	return brim_walk_read(w, places, 3, TREE_BLOCK, buf, e);
}

static int use_lists(struct brim_walk *w, struct brim_extents *x,
		     struct brim_extents *y, struct brim_err *e)
{
	TRY(brim_walk_extents(w, 3, "start", "count", NULL, x, e));
	TRY(brim_walk_blocks(w, 3, y, e));
	TRY(brim_extents_append(x, y, NULL, e));
	brim_extents_sort(x);
	TRY(brim_extents_depth(x, 1, y, e));
	brim_extents_union(x);
	TRY(brim_extents_complement(x, 0, 1 << 20, y, e));
	TRY(brim_extents_tagged(x, 0, 9, y, e));
	return brim_extents_starting(x, 2, 900, y, e);
}

static int walk_round(struct brim_err *e)
{
	struct brim_walk_options o = { .struct_bytes = sizeof(o),
				       .block_bytes = TREE_BLOCK,
				       .group_bytes = TREE_BLOCKS * TREE_BLOCK,
				       .engine = "sync",
				       .queue_depth = 4,
				       .threads = 1 };
	struct brim_extents *x = NULL, *y = NULL;
	struct brim_device *d;
	struct brim_walk *w = NULL;
	int ret;

	ret = brim_device_open(&d, device_path, NULL, e);
	if (ret >= 0)
		ret = brim_walk_open(&w, d, &o, e);
	if (ret >= 0)
		ret = walk_it(w, e);
	if (ret >= 0)
		ret = brim_extents_create(&x, e);
	if (ret >= 0)
		ret = brim_extents_create(&y, e);
	if (ret >= 0)
		ret = use_lists(w, x, y, e);
	brim_extents_free(x);
	brim_extents_free(y);
	brim_walk_close(w);
	brim_device_close(d);
	return ret;
}

/* ------------------------------------------------------------------ overlays */

#define VOLUME (8u << 20)

static uint32_t written; /* blocks, of the round */

/* Every second block, so that nothing is one extent; then some go. */
static int write_blocks(struct brim_device *d, struct brim_err *e)
{
	uint8_t block[4096];
	uint32_t k;

	for (k = 0; k < 700; k++, written = k) {
		memset(block, (int)(1 + k % 200), sizeof(block));
		TRY(brim_device_write(d, 8192 * (uint64_t)k, 4096, block, e));
	}
	TRY(brim_device_zero(d, 3 << 20, 1 << 20, e));
	TRY(brim_device_discard(d, 7 << 20, 65536, e));
	TRY(brim_device_write(d, 1234, 99, block, e));
	return brim_device_flush(d, e);
}

static int overlay_use(struct brim_device *base, struct brim_device **d,
		       struct brim_err *e)
{
	struct brim_device_extent x;
	uint8_t buf[8192];

	TRY(brim_device_open_overlay(d, base, overlay_path, BRIM_OVERLAY_CREATE,
				     e));
	TRY(write_blocks(*d, e));
	TRY(brim_device_extent(*d, 0, &x, e));
	TRY(brim_device_read(*d, 100, 8192, buf, e));
	brim_device_close(*d);
	TRY(brim_device_open_overlay(d, base, overlay_path, 0, e));
	return brim_overlay_commit(*d, e);
}

static int overlay_round(struct brim_err *e)
{
	struct brim_device_options o = { .struct_bytes = sizeof(o),
					 .flags = BRIM_DEVICE_WRITE |
						  BRIM_DEVICE_CREATE |
						  BRIM_DEVICE_FORCE,
					 .min_size_bytes = VOLUME };
	struct brim_device *base, *d = NULL;
	int ret;

	unlink(overlay_path);
	unlink(base_path);
	written = 0;
	ret = brim_device_open(&base, base_path, &o, e);
	if (ret >= 0)
		ret = overlay_use(base, &d, e);
	brim_device_close(d);
	brim_device_close(base);
	return ret;
}

/* What is there after a failure: as many blocks as were written. */
static bool is_consistent(void)
{
	struct brim_device *base = NULL, *d = NULL;
	struct brim_err e = { 0 };
	uint8_t block[4096];
	bool right;
	uint32_t k;

	/* Nothing there: it failed before. */
	if (access(overlay_path, F_OK))
		return true;
	right = !brim_device_open(&base, base_path, NULL, &e) &&
		!brim_device_open_overlay(
			&d, base, overlay_path,
			BRIM_OVERLAY_RESUME | BRIM_OVERLAY_READONLY, &e);
	for (k = 1; right && k < written && k < 300; k++)
		right = !brim_device_read(d, 8192 * (uint64_t)k, 4096, block,
					  &e) &&
			block[7] == 1 + k % 200 && block[4095] == block[7];
	if (!right)
		printf("# block %u of %u: %s\n", k, written, e.msg);
	brim_device_close(d);
	brim_device_close(base);
	return right;
}

static void test_consistent(void)
{
	uint64_t n = 0, bad = 0;
	struct brim_err e;

	do {
		one_round(overlay_round, ++n, &e);
		bad += !is_consistent();
	} while (calls >= n && n < 100000);
	ok(!bad && n > 20, "overlays are whole after each failure",
	   "%llu of %llu are not", (unsigned long long)bad,
	   (unsigned long long)n);
}

static void name(char *out, const char *what)
{
	const char *dir = getenv("TMPDIR");

	snprintf(out, 256, "%s/test_alloc_walk.%ld.%s", dir ? dir : "/tmp",
		 (long)getpid(), what);
}

int main(void)
{
	tested = pthread_self();
	name(device_path, "device");
	name(base_path, "base");
	name(overlay_path, "overlay");
	make_tree();
	loop("walks and extents", walk_round);
	loop("overlays", overlay_round);
	test_consistent();
	unlink(device_path);
	unlink(base_path);
	unlink(overlay_path);
	brim_layout_free(kind.leaf);
	brim_layout_free(kind.node);
	brim_layout_free(kind.key);
	brim_layout_free(kind.record);
	return tap_end();
}
