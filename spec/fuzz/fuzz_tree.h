/* SPDX-License-Identifier: MIT */
/*
 * fuzz_tree.h: the trees that fuzz_walk.c walks and seeds.c plants: like an
 * XFS's tree of free extents ("bno") and of reverse mappings ("rmap", whose
 * keys are two nested bounds), in blocks of 512 bytes.
 */
#ifndef BRIM_FUZZ_TREE_H
#define BRIM_FUZZ_TREE_H

#include "brim.h"
#include "fuzz.h"

#define TREE_BLOCK 512u
#define TREE_BLOCKS 24u /* of a group */
#define TREE_GROUPS 2u
#define TREE_BYTES (TREE_GROUPS * TREE_BLOCKS * TREE_BLOCK)
#define TREE_HEAD 56u
/* What comes first: flags, then for each of two jobs kind, block, levels. */
#define TREE_INPUT 7u

enum tree_flag {
	TREE_SEALED = 1,  /* checksums are made right */
	TREE_PLACED = 2,  /* so are address, owner and uuid */
	TREE_MAGIC = 4,   /* and the magic number of the block's job */
	TREE_SHALLOW = 8, /* one I/O at a time */
	TREE_FAULT = 16,  /* some read fails */
};

static const uint8_t tree_uuid[16] = "0123456789abcdef";
static const uint64_t tree_magic[2] = { 0x41423342, 0x524d4233 };

struct tree_kind {
	struct brim_layout *record, *key, *bounds, *leaf, *node;
	uint32_t record_bytes, key_bytes, record_max, node_max;
};

static inline struct brim_layout *tree_layout(const char *name, uint32_t size,
					      const struct brim_field *f,
					      size_t n, int is_block)
{
	struct brim_layout_options o = {
		.struct_bytes = sizeof(o),
		.name = name,
		.size_bytes = size,
		.extensible = is_block,
		.checksum_field = is_block ? "crc" : NULL,
		.checksum = { BRIM_CRC32C, ~0u, ~0u, BRIM_LITTLE }
	};
	struct brim_layout *l;
	struct brim_err e = { 0 };

	if (brim_layout_create(&l, &o, f, n, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		abort();
	}
	return l;
}

/* Kind 0 is bno, 1 is rmap. */
static inline void tree_make(struct tree_kind *t, int is_rmap)
{
	struct brim_field r[] = { { "start", 0, 4, BRIM_BIG, 1, NULL, 0 },
				  { "count", 4, 4, BRIM_BIG, 1, NULL, 0 },
				  { "owner", 8, 8, BRIM_BIG, 1, NULL, 0 },
				  { "offset", 16, 8, BRIM_BIG, 1, NULL, 0 } };
	struct brim_field k[] = { { "start", 0, 4, BRIM_BIG, 1, NULL, 0 },
				  { "owner", 4, 8, BRIM_BIG, 1, NULL, 0 },
				  { "offset", 12, 8, BRIM_BIG, 1, NULL, 0 } };
	struct brim_field b[] = { { "low", 0, 20, 0, 1, NULL, 0 },
				  { "high", 20, 20, 0, 1, NULL, 0 } };
	struct brim_field head[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL,
		  (int64_t)tree_magic[is_rmap] },
		{ "level", 4, 2, BRIM_BIG, 1, NULL, 0 },
		{ "numrecs", 6, 2, BRIM_BIG, 1, NULL, 0 },
		{ "left", 8, 4, BRIM_BIG, 1, NULL, -1 },
		{ "right", 12, 4, BRIM_BIG, 1, NULL, -1 },
		{ "blkno", 16, 8, BRIM_BIG, 1, NULL, 0 },
		{ "lsn", 24, 8, BRIM_BIG, 1, NULL, 0 },
		{ "uuid", 32, 16, 0, 1, NULL, 0 },
		{ "owner", 48, 4, BRIM_BIG, 1, NULL, 0 },
		{ "crc", 52, 4, BRIM_LITTLE, 1, NULL, 0 },
		{ "records", TREE_HEAD, 8, 0, 0, NULL, 0 },
		{ "pointers", 0, 4, BRIM_BIG, 0, NULL, 0 },
		{ "rest", 0, 1, 0, 0, NULL, 0 },
	};
	uint32_t at;

	memset(t, 0, sizeof(*t));
	t->record_bytes = is_rmap ? 24 : 8;
	t->key_bytes = is_rmap ? 40 : 8;
	t->record_max = (TREE_BLOCK - TREE_HEAD) / t->record_bytes;
	t->node_max = (TREE_BLOCK - TREE_HEAD) / (t->key_bytes + 4);
	t->record =
		tree_layout("record", t->record_bytes, r, is_rmap ? 4 : 2, 0);
	t->key = is_rmap ? tree_layout("key", 20, k, 3, 0)
			 : tree_layout("key", 8, r, 2, 0);
	b[0].record = b[1].record = t->key;
	t->bounds = is_rmap ? tree_layout("bounds", 40, b, 2, 0) : NULL;
	head[10].width_bytes = t->record_bytes;
	head[10].record = t->record;
	t->leaf = tree_layout("leaf", TREE_HEAD + t->record_bytes, head, 11, 1);
	at = TREE_HEAD + t->node_max * t->key_bytes;
	head[10] = (struct brim_field){
		"keys", TREE_HEAD,   t->key_bytes,
		0,      t->node_max, is_rmap ? t->bounds : t->key,
		0
	};
	head[11].off_bytes = at;
	head[11].count = t->node_max;
	at += 4 * t->node_max;
	head[12].off_bytes = at;
	head[12].count = TREE_BLOCK - at;
	t->node = tree_layout("node", TREE_BLOCK, head,
			      at < TREE_BLOCK ? 13 : 12, 1);
}

static inline struct brim_walk_tree tree_describe(const struct tree_kind *t,
						  int is_rmap)
{
	struct brim_walk_tree d = {
		.struct_bytes = sizeof(d),
		.name = is_rmap ? "rmap" : "bno",
		.leaf = t->leaf,
		.node = t->node,
		.magic = "magic",
		.level = "level",
		.count = "numrecs",
		.left = "left",
		.right = "right",
		.address = "blkno",
		.address_unit_bytes = TREE_BLOCK,
		.owner = "owner",
		.uuid = "uuid",
		.uuid_bytes = tree_uuid,
		.records = "records",
		.keys = "keys",
		.pointers = "pointers",
		.key = { "start", is_rmap ? "owner" : "count",
			 is_rmap ? "offset" : NULL },
		.order = { "start", is_rmap ? "owner" : NULL,
			   is_rmap ? "offset" : NULL },
		.is_strict = 1,
	};

	if (is_rmap) {
		d.reach = "start";
		d.reach_count = "count";
	}
	return d;
}

static inline void tree_store(uint8_t *at, uint32_t bytes, uint64_t v)
{
	while (bytes--) {
		at[bytes] = (uint8_t)v;
		v >>= 8;
	}
}

static inline uint64_t tree_load(const uint8_t *at, uint32_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *at++;
	return v;
}

#endif /* BRIM_FUZZ_TREE_H */
