/* SPDX-License-Identifier: MIT */
/*
 * run_helper.h: what test_run*.c share: a plan with one of everything (phases,
 * ranges of zeros, groups with two extents, an irregular group laid over them,
 * a dense table, a superblock written last) and a scan of its groups.
 *
 *	0     512 B   superblock (phase 3), over 64 KiB of zeros (phase 1)
 *	64K   40 groups, stride 16 KiB: "hdr" at 0, "tree" at 4 KiB
 *	1M    table of 500 records of 64 bytes
 *	1.5M  300 KiB of zeros, the log
 */
#ifndef BRIM_RUN_HELPER_H
#define BRIM_RUN_HELPER_H

#include <string.h>

#include "memdev.h"
#include "plan.h"
#include "run.h"
#include "tap.h"

#define KIB 1024u
#define MIB (1024u * KIB)
#define GROUPS_AT (64 * KIB)
#define GROUPS 40u
#define GROUP_BYTES (16 * KIB)
#define TREE_AT (4 * KIB)
#define ODD_GROUP 7u
#define TABLE_AT MIB
#define RECORDS 500u
#define RECORD_BYTES 64u
#define LOG_AT (MIB + MIB / 2)
#define LOG_BYTES (300 * KIB)
#define PLAN_BYTES (2 * MIB)

struct world {
	struct brim_layout *hdr, *tree;
	struct brim_plan *plan;
	struct brim_scan *scan;
	struct memdev *m;
	uint8_t *right;  /* what the device holds in the end */
	char engine[40]; /* of the last run */
};

static inline struct brim_layout *world_layout(const char *name, uint32_t size)
{
	struct brim_field f[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL, 0x4252494d },
		{ "number", 4, 4, BRIM_BIG, 1, NULL, 0 },
		{ "block", 8, 8, BRIM_LITTLE, 1, NULL, 0 },
		{ "crc", 16, 4, BRIM_LITTLE, 1, NULL, 0 },
		{ "rest", 20, size - 20, 0, 1, NULL, 0 },
	};
	struct brim_layout_options o = {
		.struct_bytes = sizeof(o),
		.name = name,
		.size_bytes = size,
		.checksum_field = "crc",
		.checksum = { BRIM_CRC32C, ~0u, ~0u, BRIM_LITTLE },
	};
	struct brim_layout *l;

	brim_layout_create(&l, &o, f, 5, NULL);
	return l;
}

/* A stamp of a group: both structures, numbered. */
static inline struct brim_stamp *world_group(const struct world *w,
					     uint64_t first, uint64_t count,
					     int64_t block)
{
	struct brim_stamp *s;

	brim_stamp_create(&s, NULL);
	brim_stamp_place(s, w->hdr, 0, 512, NULL);
	brim_stamp_place(s, w->tree, TREE_AT, 4096, NULL);
	brim_stamp_set_int(s, 4, 4, BRIM_BIG, 0, 1, "number", NULL);
	brim_stamp_set_int(s, TREE_AT + 4, 4, BRIM_BIG, 0, 1, "number", NULL);
	brim_stamp_set_int(s, TREE_AT + 8, 8, BRIM_LITTLE, block, 1 << 20,
			   "block", NULL);
	brim_stamp_seal(s, first, count, NULL);
	return s;
}

static inline struct brim_stamp *world_small(uint32_t len, uint64_t count)
{
	struct brim_stamp *s;

	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, len, "record", NULL);
	brim_stamp_set_bytes(s, 0, "BRIMfs", 6, NULL);
	brim_stamp_set_int(s, 8, 8, BRIM_LITTLE, 1000, 3, "id", NULL);
	brim_stamp_seal(s, 0, count, NULL);
	return s;
}

static inline void world_plan(struct world *w)
{
	struct brim_plan *p;

	brim_plan_create(&p, "world", PLAN_BYTES, NULL);
	brim_plan_phase(p, "clear", NULL);
	brim_plan_zero(p, 0, GROUPS_AT, "old signature", NULL);
	brim_plan_phase(p, "body", NULL);
	brim_plan_each(p, world_group(w, 0, GROUPS, 5), GROUPS_AT, GROUP_BYTES,
		       "groups", 1, NULL);
	brim_plan_each(p, world_group(w, ODD_GROUP, 1, 99), GROUPS_AT,
		       GROUP_BYTES, "odd group", 1, NULL);
	brim_plan_each(p, world_small(RECORD_BYTES, RECORDS), TABLE_AT,
		       RECORD_BYTES, "table", 0, NULL);
	brim_plan_zero(p, LOG_AT, LOG_BYTES, "log", NULL);
	brim_plan_phase(p, "super", NULL);
	brim_plan_each(p, world_small(512, 1), 0, 512, "superblock", 0, NULL);
	brim_plan_seal(p, NULL);
	w->plan = p;
}

static inline void world_scan(struct world *w)
{
	brim_scan_create(&w->scan, NULL);
	brim_scan_expect_layout(w->scan, w->tree, TREE_AT, 4096, NULL);
	brim_scan_expect_layout(w->scan, w->hdr, 0, 512, NULL);
	brim_scan_expect_int(w->scan, 4, 4, BRIM_BIG, 0, 1, "hdr", "number",
			     NULL);
	brim_scan_expect_int(w->scan, TREE_AT + 4, 4, BRIM_BIG, 0, 1, "tree",
			     "number", NULL);
}

static inline struct world world_new(void)
{
	struct world w = { 0 };

	w.hdr = world_layout("hdr", 512);
	w.tree = world_layout("tree", 4096);
	world_plan(&w);
	world_scan(&w);
	w.m = memdev_new(PLAN_BYTES);
	w.right = malloc(PLAN_BYTES);
	brim_plan_read(w.plan, 0, PLAN_BYTES, w.right, NULL);
	return w;
}

static inline void world_free(struct world *w)
{
	brim_scan_free(w->scan);
	brim_plan_free(w->plan);
	brim_layout_free(w->hdr);
	brim_layout_free(w->tree);
	memdev_free(w->m);
	free(w->right);
}

/* The device as it was before anything was written, and its log empty. */
static inline void world_reset(struct world *w)
{
	memset(w->m->bytes, 0xa5, PLAN_BYTES);
	w->m->calls = 0;
	w->m->at_once_max = 0;
	w->m->move_max_bytes = 0;
	w->m->zero_error = 0;
}

/* Makes the device hold what the plan says. */
static inline void world_fill(struct world *w)
{
	world_reset(w);
	memcpy(w->m->bytes, w->right, PLAN_BYTES);
}

/* Whether the device holds what the plan says, and old bytes elsewhere. */
static inline bool world_is_right(const struct world *w)
{
	static const uint64_t RANGES[][2] = {
		{ 0, GROUPS_AT },
		{ TABLE_AT, RECORDS * RECORD_BYTES },
		{ LOG_AT, LOG_BYTES },
	};
	uint64_t at, k;
	bool right = true;

	for (k = 0; k < 3; k++)
		right &= !memcmp(w->m->bytes + RANGES[k][0],
				 w->right + RANGES[k][0], RANGES[k][1]);
	for (at = GROUPS_AT; at < GROUPS_AT + GROUPS * GROUP_BYTES;
	     at += GROUP_BYTES) {
		right &= !memcmp(w->m->bytes + at, w->right + at, 512);
		right &= !memcmp(w->m->bytes + at + TREE_AT,
				 w->right + at + TREE_AT, 4096);
		right &= w->m->bytes[at + 512] == 0xa5;
		right &= w->m->bytes[at + 8 * KIB] == 0xa5;
	}
	return right && w->m->bytes[PLAN_BYTES - 1] == 0xa5 &&
	       w->m->bytes[TABLE_AT - 1] == 0xa5 &&
	       w->m->bytes[LOG_AT + LOG_BYTES] == 0xa5;
}

/* Opens, runs to the end in short steps, closes. 0 or -errno. */
static inline int world_run(struct world *w, enum brim_run_mode mode,
			    const struct brim_run_options *o,
			    struct brim_run_stats *st, struct brim_err *e)
{
	struct brim_run *r;
	int ret;

	memset(e, 0, sizeof(*e));
	memset(st, 0, sizeof(*st));
	st->struct_bytes = sizeof(*st);
	ret = brim_run_open(&r, w->plan, &w->m->dev, mode, o, e);
	if (ret < 0)
		return ret;
	do
		ret = brim_run_step(r, 100000, st, e);
	while (ret == 1);
	snprintf(w->engine, sizeof(w->engine), "%s", st->engine);
	st->engine = w->engine;
	brim_run_close(r);
	return ret;
}

#endif /* BRIM_RUN_HELPER_H */
