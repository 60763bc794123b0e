/* SPDX-License-Identifier: MIT */
/*
 * fileset.h: what fileset.c, content.c and stream.c share: the fileset, and
 * which ranges of a file its overwrites cover. Sizes are bytes.
 */
#ifndef BRIM_FILESET_H
#define BRIM_FILESET_H

#include <stdint.h>

#include "brim.h"
#include "dist.h"
#include "mix.h"

/* Overwrites cover whole blocks of it; smaller files are rewritten whole. */
#define BRIM__OVERWRITE_BYTES 4096u
#define BRIM__DEPTH_MAX 12u
#define BRIM__EXTENSION_BYTES_MAX 31u

struct brim_fileset {
	uint32_t holders; /* who must let go before it is freed */
	uint64_t seed;
	uint32_t streams, depth, fan_out, files_per_dir;
	uint64_t top_span; /* directories of the lowest level below one of the
			      highest */
	struct brim__dist sizes;
	char **extensions;        /* owned */
	uint64_t *extension_upto; /* bits below it draw k or one before */
	size_t extension_count;
	enum brim_content content;
	uint32_t random_bytes; /* COMPRESSIBLE: of each 4 KiB */
};

/* One more holder, who lets go with brim_fileset_free. */
void brim__fileset_hold(const struct brim_fileset *fs);

/* The highest level at which the directories of id and id - 1 differ: 0 for id
 * 0, depth + 1 where they are the same. */
uint32_t brim__fileset_new_level(const struct brim_fileset *fs, uint32_t id);

/* Blocks that overwrites of a file may cover, from its first on. */
static inline uint64_t brim__overwrite_blocks(uint64_t base_bytes)
{
	return base_bytes / 2 / BRIM__OVERWRITE_BYTES;
}

/* What random numbers about a file are drawn from. */
uint64_t brim__file_key(const struct brim_fileset *fs, uint32_t stream,
			uint32_t id, uint16_t version);

/* The blocks that overwrite k (from 1) of a file of so many covers. */
void brim__overwrite_range(uint64_t file_key, uint64_t blocks, uint32_t k,
			   uint64_t *first, uint64_t *count);

#endif /* BRIM_FILESET_H */
