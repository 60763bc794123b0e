/* SPDX-License-Identifier: MIT */
/*
 * geometry.c: addresses in a volume that is cut into groups of equal size.
 * brim_geometry_init checks everything once, so that the conversions cannot
 * overflow. Units: bytes, and blocks of 2^block_log2 bytes.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

/* A block of 2^62 bytes is the largest of which one fits an offset. */
#define BLOCK_LOG2_MAX 62

static int check_bytes(const char *name, uint64_t n_bytes, uint64_t block_bytes,
		       struct brim_err *e)
{
	if (n_bytes > BRIM_MAX_BYTES)
		return brim__errf(e, -ERANGE, "geometry",
				  "%s %llu is more "
				  "than the largest offset, 2^63-1",
				  name, (unsigned long long)n_bytes);
	if (n_bytes % block_bytes)
		return brim__errf(e, -EINVAL, "geometry",
				  "%s %llu is no "
				  "multiple of the block, %llu bytes",
				  name, (unsigned long long)n_bytes,
				  (unsigned long long)block_bytes);
	return 0;
}

static int check_all(uint64_t first_bytes, uint64_t size_bytes,
		     uint64_t group_bytes, uint32_t block_log2,
		     struct brim_err *e)
{
	uint64_t block_bytes;
	int ret;

	if (block_log2 > BLOCK_LOG2_MAX)
		return brim__errf(e, -EINVAL, "geometry",
				  "block_log2 %u is "
				  "more than %d",
				  block_log2, BLOCK_LOG2_MAX);
	block_bytes = UINT64_C(1) << block_log2;
	ret = check_bytes("first_bytes", first_bytes, block_bytes, e);
	if (ret == 0)
		ret = check_bytes("group_bytes", group_bytes, block_bytes, e);
	if (ret == 0)
		ret = check_bytes("size_bytes", size_bytes, 1, e);
	if (ret < 0)
		return ret;
	if (group_bytes == 0)
		return brim__errf(e, -EINVAL, "geometry",
				  "group_bytes is 0; at least one block");
	if (size_bytes < first_bytes || size_bytes - first_bytes < block_bytes)
		return brim__errf(e, -EINVAL, "geometry",
				  "size_bytes %llu "
				  "leaves no block after first_bytes %llu",
				  (unsigned long long)size_bytes,
				  (unsigned long long)first_bytes);
	return 0;
}

int brim_geometry_init(struct brim_geometry *g, uint64_t first_bytes,
		       uint64_t size_bytes, uint64_t group_bytes,
		       uint32_t block_log2, struct brim_err *e)
{
	uint64_t blocks, rest;
	int ret;

	memset(g, 0, sizeof(*g));
	ret = check_all(first_bytes, size_bytes, group_bytes, block_log2, e);
	if (ret < 0)
		return ret;
	g->first_bytes = first_bytes;
	g->size_bytes = size_bytes;
	g->group_bytes = group_bytes;
	g->block_log2 = block_log2;
	g->group_blocks = group_bytes >> block_log2;
	blocks = (size_bytes - first_bytes) >> block_log2;
	rest = blocks % g->group_blocks;
	g->group_count = blocks / g->group_blocks + (rest != 0);
	g->last_group_blocks = rest ? rest : g->group_blocks;
	return 0;
}

static uint64_t blocks_of(const struct brim_geometry *g, uint64_t group)
{
	return group + 1 == g->group_count ? g->last_group_blocks
					   : g->group_blocks;
}

int brim_geometry_locate(const struct brim_geometry *g, uint64_t off_bytes,
			 struct brim_location *out)
{
	uint64_t rel_bytes, group, block;

	if (off_bytes < g->first_bytes || off_bytes >= g->size_bytes)
		return -ERANGE;
	rel_bytes = off_bytes - g->first_bytes;
	group = rel_bytes / g->group_bytes;
	block = rel_bytes % g->group_bytes >> g->block_log2;
	/* The remainder after the last whole block belongs to no group. */
	if (group >= g->group_count || block >= blocks_of(g, group))
		return -ERANGE;
	out->group = group;
	out->block = block;
	out->byte = rel_bytes & ((UINT64_C(1) << g->block_log2) - 1);
	return 0;
}

int brim_geometry_offset(const struct brim_geometry *g,
			 const struct brim_location *at, uint64_t *off_bytes)
{
	if (at->group >= g->group_count ||
	    at->block >= blocks_of(g, at->group) || at->byte >> g->block_log2)
		return -ERANGE;
	*off_bytes = g->first_bytes + at->group * g->group_bytes +
		     (at->block << g->block_log2) + at->byte;
	return 0;
}
