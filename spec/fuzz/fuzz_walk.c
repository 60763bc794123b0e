/* SPDX-License-Identifier: MIT */
/*
 * fuzz_walk.c: tree walks over a small device whose blocks are the input:
 * whatever they hold, a walk ends, reads no block of a job twice, and counts
 * what it keeps; where it finds nothing wrong, a naive descent finds the same
 * records in the same order. What only a checksum or an address would refuse is
 * made right first, as the flags say, so that the input reaches the rest.
 */
#include "../core/memdev.h"
#include "fuzz_tree.h"

#define LEVELS_MAX 16u
#define JOBS 2u

static struct tree_kind kinds[2];
static struct memdev *device;

struct job {
	int kind;
	uint32_t group, block, levels;
};

/* ------------------------------------------------------------------- input */

static void prepare(const struct feed *f, uint8_t flags, const struct job *jobs)
{
	size_t n = f->left < TREE_BYTES ? f->left : TREE_BYTES;
	uint32_t k;

	memcpy(device->bytes, f->p, n);
	memset(device->bytes + n, 0, TREE_BYTES - n);
	for (k = 0; k < TREE_GROUPS * TREE_BLOCKS; k++) {
		uint8_t *b = device->bytes + (size_t)k * TREE_BLOCK;
		uint32_t group = k / TREE_BLOCKS;

		if (flags & TREE_PLACED) {
			tree_store(b + 16, 8, k);
			tree_store(b + 48, 4, group);
			memcpy(b + 32, tree_uuid, 16);
		}
		if (flags & TREE_MAGIC)
			tree_store(b, 4, tree_magic[jobs[group].kind]);
		if (flags & TREE_SEALED)
			brim_layout_seal(kinds[0].leaf, b, TREE_BLOCK);
	}
	device->calls = 0;
}

/* --------------------------------------------------------------- the model */

struct model {
	uint8_t records[TREE_BLOCKS * TREE_BLOCK];
	size_t len_bytes;
	uint32_t blocks;
	bool is_stuck;
};

/* All records below a block, in order; no checks but what keeps it in bounds. */
static void descend(struct model *m, const struct job *j, uint64_t block,
		    uint32_t level)
{
	const struct tree_kind *t = &kinds[j->kind];
	const uint8_t *b;
	uint64_t count, i;

	if (m->is_stuck || block >= TREE_BLOCKS || m->blocks++ >= TREE_BLOCKS) {
		m->is_stuck = true;
		return;
	}
	b = device->bytes + (j->group * TREE_BLOCKS + block) * TREE_BLOCK;
	count = tree_load(b + 6, 2);
	if (count > (level ? t->node_max : t->record_max)) {
		m->is_stuck = true;
		return;
	}
	if (!level) {
		memcpy(m->records + m->len_bytes, b + TREE_HEAD,
		       count * t->record_bytes);
		m->len_bytes += count * t->record_bytes;
		return;
	}
	b += TREE_HEAD + t->node_max * t->key_bytes;
	for (i = 0; i < count; i++)
		descend(m, j, tree_load(b + 4 * i, 4), level - 1);
}

/* ------------------------------------------------------------------ claims */

static void check_sound(const struct brim_walk *w, const struct job *j,
			size_t number, const struct brim_walk_job *r)
{
	static struct model m;
	const uint8_t *records;
	size_t len_bytes;

	m.len_bytes = 0;
	m.blocks = 0;
	m.is_stuck = false;
	descend(&m, j, j->block, j->levels - 1);
	claim(r->is_complete, "nothing is wrong, but leaves were not read");
	claim(!m.is_stuck, "a tree that cannot be descended is sound");
	claim(m.blocks == r->blocks, "another number of blocks");
	records = brim_walk_records(w, number, &len_bytes);
	claim(len_bytes == m.len_bytes &&
		      (!len_bytes || !memcmp(records, m.records, len_bytes)),
	      "other records");
}

/* The blocks of a job: all in range, none twice. */
static void check_blocks(const struct brim_walk *w, size_t number,
			 const struct brim_walk_job *r)
{
	struct brim_extents *x;
	struct brim_range v;
	uint32_t seen = 0;
	size_t k;

	claim(!brim_extents_create(&x, NULL), "no list");
	claim(!brim_walk_blocks(w, number, x, NULL), "no blocks");
	claim(brim_extents_count(x) == r->blocks, "other blocks");
	for (k = 0; !brim_extents_get(x, k, &v); k++) {
		claim(v.start < TREE_BLOCKS && v.count == 1,
		      "a block out of range");
		claim(!(seen >> v.start & 1), "a block twice");
		seen |= 1u << v.start;
	}
	brim_extents_free(x);
}

static void check_records(const struct brim_walk *w, const struct job *j,
			  size_t number, const struct brim_walk_job *r)
{
	const uint8_t *raw;
	struct brim_extents *x;
	struct brim_range v;
	size_t len_bytes, k;

	raw = brim_walk_records(w, number, &len_bytes);
	claim(len_bytes == r->records * kinds[j->kind].record_bytes,
	      "records and their number differ");
	claim(!brim_extents_create(&x, NULL), "no list");
	claim(!brim_walk_extents(w, number, "start", "count",
				 j->kind ? "owner" : NULL, x, NULL),
	      "no extents");
	claim(brim_extents_count(x) == r->records, "other extents");
	for (k = 0; !brim_extents_get(x, k, &v); k++) {
		const uint8_t *p = raw + k * kinds[j->kind].record_bytes;

		claim(v.start == tree_load(p, 4) &&
			      v.count == tree_load(p + 4, 4) &&
			      v.tag == (j->kind ? tree_load(p + 8, 8) : 0),
		      "another extent");
	}
	brim_extents_free(x);
}

static void check_walk(const struct brim_walk *w, const struct job *jobs)
{
	struct brim_walk_fault f;
	uint64_t faults = 0, kept = 0;
	size_t k;

	for (k = 0; k < JOBS; k++) {
		struct brim_walk_job r;

		claim(!brim_walk_job(w, k, &r), "no job");
		faults += r.faults;
		check_blocks(w, k, &r);
		check_records(w, &jobs[k], k, &r);
		if (!r.faults)
			check_sound(w, &jobs[k], k, &r);
	}
	for (; !brim_walk_fault(w, kept, &f); kept++)
		claim(f.job < JOBS && f.what && *f.what, "a nameless fault");
	claim(kept == (faults < 64 ? faults : 64), "faults are not kept");
}

/* ------------------------------------------------------------------- a walk */

static struct brim_walk *begin(const char *engine, uint8_t flags,
			       const struct job *jobs)
{
	struct brim_walk_options o = {
		.struct_bytes = sizeof(o),
		.block_bytes = TREE_BLOCK,
		.group_bytes = TREE_BLOCKS * TREE_BLOCK,
		.max_faults = 64,
		.engine = engine,
		.queue_depth = flags & TREE_SHALLOW ? 1 : 8,
		.threads = 1,
	};
	struct brim_walk *w;
	size_t k;

	claim(!brim_walk_open(&w, &device->dev, &o, NULL), "no walk");
	for (k = 0; k < 2; k++) {
		struct brim_walk_tree t = tree_describe(&kinds[k], (int)k);

		claim(brim_walk_tree(w, &t, NULL) == (int)k, "no kind");
	}
	for (k = 0; k < JOBS; k++) {
		struct brim_walk_root root = { (uint32_t)jobs[k].kind,
					       jobs[k].group,
					       jobs[k].block,
					       jobs[k].levels,
					       0,
					       TREE_BLOCKS };

		claim(brim_walk_start(w, &root, NULL) == (int)k, "no job");
	}
	return w;
}

/* A failing read ends the walk with its error; what is called complete is. */
static void walk_fault(uint8_t flags, const struct job *jobs, uint32_t reads)
{
	struct brim_walk_job r;
	struct brim_err e = { 0 };
	struct brim_walk *w;
	char engine[64];
	uint32_t n;
	size_t k;
	int ret;

	for (n = 1; n <= reads && n <= 3; n++) {
		snprintf(engine, sizeof(engine),
			 "fault:at=%u,errno=EIO,inner=sync", n);
		w = begin(engine, flags, jobs);
		ret = brim_walk_run(w, &e);
		claim(ret == -5 && e.code == -5 && !strcmp(e.op, "read") &&
			      e.offset_bytes < TREE_BYTES && e.msg[0],
		      "a failing read is no error");
		for (k = 0; k < JOBS; k++) {
			claim(!brim_walk_job(w, k, &r), "no job");
			if (r.is_complete && !r.faults)
				check_sound(w, &jobs[k], k, &r);
		}
		brim_walk_close(w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	uint8_t flags = feed_byte(&f);
	struct job jobs[JOBS];
	struct brim_walk *w;
	uint32_t k;

	if (!device) {
		device = memdev_new(TREE_BYTES);
		tree_make(&kinds[0], 0);
		tree_make(&kinds[1], 1);
	}
	for (k = 0; k < JOBS; k++) {
		jobs[k].kind = feed_byte(&f) & 1;
		jobs[k].group = k;
		jobs[k].block = feed_byte(&f) % TREE_BLOCKS;
		jobs[k].levels = 1 + feed_byte(&f) % LEVELS_MAX;
	}
	prepare(&f, flags, jobs);
	w = begin("sync", flags, jobs);
	claim(!brim_walk_run(w, NULL), "damage is an error");
	claim(device->calls <= TREE_GROUPS * TREE_BLOCKS,
	      "more reads than blocks");
	check_walk(w, jobs);
	/* And again, with what it has: the same. */
	claim(!brim_walk_run(w, NULL), "an error without work");
	check_walk(w, jobs);
	brim_walk_close(w);
	if (flags & TREE_FAULT)
		walk_fault(flags, jobs, device->calls);
	return 0;
}
