/* SPDX-License-Identifier: MIT */
/*
 * workload_block.c: what a block holds that a workload wrote, and what a block
 * is that was read. Called for every block written or verified, so it must
 * outrun the device. All words are little-endian, of 8 bytes:
 *	0 magic, 1 seed, 2 offset on the device, 3 operation that wrote it,
 *	4 .. words that follow from these three
 */
#include <string.h>

#include "workload.h"

#define MAGIC UINT64_C(0x016b6c626d697262) /* "brimblk", 1 */
#define HEADER_WORDS 4u
#define WEYL UINT64_C(0xa0761d6478bd642f)
#define FOLD UINT64_C(0xe7037ed1a0b428db)

static inline uint64_t little_endian(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(v);
#else
	return v;
#endif
}

static uint64_t word_at(const uint8_t *block, uint32_t k)
{
	uint64_t v;

	memcpy(&v, block + 8 * k, 8);
	return little_endian(v);
}

static void render(uint64_t seed, uint64_t off_bytes, uint64_t version,
		   uint32_t block_bytes, uint8_t *to)
{
	uint64_t header[HEADER_WORDS] = { MAGIC, seed, off_bytes, version }, a;
	uint32_t k;

	a = brim__mix_in(brim__mix_in(seed, off_bytes), version);
	for (k = 0; k < HEADER_WORDS; k++) {
		header[k] = little_endian(header[k]);
		memcpy(to + 8 * k, &header[k], 8);
	}
	/* Folded products of a Weyl sequence, as content.c's words. */
	for (; k < block_bytes / 8; k++, a += WEYL) {
		unsigned __int128 m = (unsigned __int128)a * (a ^ FOLD);
		uint64_t v = little_endian((uint64_t)(m >> 64) ^ (uint64_t)m);

		memcpy(to + 8 * k, &v, 8);
	}
}

void brim_workload_block(const struct brim_workload *w, uint64_t off_bytes,
			 uint64_t version, void *buf)
{
	render(w->o.seed, off_bytes, version, w->o.block_bytes, buf);
}

enum brim__block_state brim__workload_judge(const struct brim_workload *w,
					    uint64_t off_bytes,
					    const uint8_t *block,
					    uint8_t *scratch, uint64_t *version,
					    uint64_t *at)
{
	uint64_t off = word_at(block, 2), k = 0;

	*version = word_at(block, 3);
	if (word_at(block, 0) != MAGIC || word_at(block, 1) != w->o.seed)
		return BRIM__BLOCK_UNKNOWN;
	render(w->o.seed, off, *version, w->o.block_bytes, scratch);
	if (!memcmp(block, scratch, w->o.block_bytes))
		return off == off_bytes ? BRIM__BLOCK_INTACT
					: BRIM__BLOCK_MISPLACED;
	while (block[k] == scratch[k])
		k++;
	*at = k;
	return BRIM__BLOCK_TORN;
}
