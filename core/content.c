/* SPDX-License-Identifier: MIT */
/*
 * content.c: what files hold. Each word of 8 bytes follows from the file's key
 * and its offset, so that any range can be made or compared alone. Called for
 * every byte that a fill writes and a verification reads: it must outrun the
 * page cache. Offsets and lengths are bytes; words are little-endian.
 */
#include <string.h>

#include "fileset.h"
#include "internal.h"

#define WORD 8u
#define BLOCK BRIM__OVERWRITE_BYTES
#define BLOCK_WORDS (BLOCK / WORD)
/* Blocks rendered at a time, one bit each for what overwrites cover. */
#define WINDOW_BLOCKS 256u

/* ------------------------------------------------------------------- words */

static uint64_t little_endian(uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_bswap64(v);
#else
	return v;
#endif
}

/*
 * Word n of a key: a product of two halves of a Weyl sequence, folded (after
 * wyrand of Wang Yi's wyhash): one multiplication for 8 bytes that no
 * compressor gets hold of.
 */
static inline uint64_t word(uint64_t key, uint64_t n)
{
	uint64_t a = key + n * UINT64_C(0xa0761d6478bd642f);
	unsigned __int128 m =
		(unsigned __int128)a * (a ^ UINT64_C(0xe7037ed1a0b428db));

	return little_endian((uint64_t)(m >> 64) ^ (uint64_t)m);
}

static void random_words(uint64_t key, uint64_t first, size_t count,
			 uint8_t *to)
{
	uint64_t a = key + first * UINT64_C(0xa0761d6478bd642f);
	size_t k;

	for (k = 0; k < count; k++) {
		unsigned __int128 m = (unsigned __int128)a *
				      (a ^ UINT64_C(0xe7037ed1a0b428db));
		uint64_t v = little_endian((uint64_t)(m >> 64) ^ (uint64_t)m);

		memcpy(to + k * WORD, &v, WORD);
		a += UINT64_C(0xa0761d6478bd642f);
	}
}

/* The same word all over, one for each key. */
static void flat_words(uint64_t key, size_t count, uint8_t *to)
{
	uint64_t v = word(key, UINT64_MAX);
	size_t k;

	for (k = 0; k < count; k++)
		memcpy(to + k * WORD, &v, WORD);
}

/*
 * Whole words of one block, from word `from` of it on. COMPRESSIBLE: random to
 * begin with, then flat.
 */
static void block_words(const struct brim_fileset *fs, uint64_t key,
			uint64_t block, size_t from, size_t count, uint8_t *to)
{
	size_t random = count;

	if (fs->content == BRIM_CONTENT_ZEROS) {
		memset(to, 0, count * WORD);
		return;
	}
	if (fs->content == BRIM_CONTENT_COMPRESSIBLE) {
		size_t upto = fs->random_bytes / WORD;

		random = from < upto ? BRIM__MIN(count, upto - from) : 0;
	}
	random_words(key, block * BLOCK_WORDS + from, random, to);
	flat_words(key, count - random, to + random * WORD);
}

/* Bytes from .. from + len of one block. */
static void block_bytes(const struct brim_fileset *fs, uint64_t key,
			uint64_t block, size_t from, size_t len, uint8_t *to)
{
	size_t head = from % WORD, n;
	uint8_t one[WORD];

	if (head) {
		n = BRIM__MIN(WORD - head, len);
		block_words(fs, key, block, from / WORD, 1, one);
		memcpy(to, one + head, n);
		to += n;
		from += n;
		len -= n;
	}
	n = len / WORD;
	block_words(fs, key, block, from / WORD, n, to);
	if (len % WORD) {
		block_words(fs, key, block, from / WORD + n, 1, one);
		memcpy(to + n * WORD, one, len % WORD);
	}
}

/* -------------------------------------------------------------- overwrites */

/* Whose content each of up to WINDOW_BLOCKS blocks shows. */
struct window {
	uint64_t file_key;
	uint64_t first; /* block */
	size_t count;
	uint16_t by[WINDOW_BLOCKS]; /* the overwrite, or 0: none */
};

/* The youngest overwrite that covers a block shows. */
static void window_fill(struct window *w, const struct brim_file *f)
{
	uint64_t blocks = brim__overwrite_blocks(f->base_bytes);
	size_t left = 0;
	uint32_t k;

	memset(w->by, 0, w->count * sizeof(*w->by));
	if (w->first < blocks)
		left = (size_t)BRIM__MIN(w->count, blocks - w->first);
	for (k = f->overwrites; k > 0 && left > 0; k--) {
		uint64_t at, n, b, to;

		brim__overwrite_range(w->file_key, blocks, k, &at, &n);
		to = BRIM__MIN(at + n, w->first + w->count);
		for (b = BRIM__MAX(at, w->first); b < to; b++)
			if (!w->by[b - w->first]) {
				w->by[b - w->first] = (uint16_t)k;
				left--;
			}
	}
}

static bool has_unknown(const struct brim_file *f)
{
	return f->overwrites == BRIM_OVERWRITES_UNKNOWN;
}

/* ------------------------------------------------------------------ ranges */

/* Called for each piece of at most a block: < 0 ends it. */
typedef int64_t piece_fn(const struct brim_fileset *fs, uint64_t key,
			 uint64_t block, size_t from, size_t len, void *at);

static int64_t for_window(const struct brim_fileset *fs, const struct window *w,
			  uint64_t off, uint64_t end, piece_fn *fn,
			  uint8_t *buf)
{
	uint64_t at = off;
	int64_t ret;

	while (at < end) {
		uint64_t block = at / BLOCK, from = at % BLOCK;
		size_t len = (size_t)BRIM__MIN(end - at, BLOCK - from);
		uint16_t by = w->by[block - w->first];
		uint64_t key = by ? brim__mix_in(w->file_key, by) : w->file_key;

		ret = fn(fs, key, block, (size_t)from, len, buf + (at - off));
		if (ret >= 0)
			return ret;
		at += len;
	}
	return -1;
}

/* Runs fn over the range; its first answer >= 0, or -1. */
static int64_t for_range(const struct brim_fileset *fs,
			 const struct brim_file *f, uint64_t off, size_t len,
			 piece_fn *fn, uint8_t *buf)
{
	struct window w;
	uint64_t at = off, end = off + len;
	int64_t ret = -1;

	w.file_key = brim__file_key(fs, f->stream, f->id, f->version);
	while (at < end && ret < 0) {
		uint64_t upto;

		w.first = at / BLOCK;
		upto = BRIM__MIN(end, (w.first + WINDOW_BLOCKS) * BLOCK);
		w.count = (size_t)((upto - 1) / BLOCK - w.first + 1);
		window_fill(&w, f);
		ret = for_window(fs, &w, at, upto, fn, buf + (at - off));
		at = upto;
	}
	return ret;
}

static int64_t piece_write(const struct brim_fileset *fs, uint64_t key,
			   uint64_t block, size_t from, size_t len, void *at)
{
	block_bytes(fs, key, block, from, len, at);
	return -1;
}

void brim_fileset_content(const struct brim_fileset *fs,
			  const struct brim_file *f, uint64_t off_bytes,
			  size_t len_bytes, void *buf)
{
	struct brim_file known = *f;

	if (has_unknown(f))
		known.overwrites = 0;
	for_range(fs, &known, off_bytes, len_bytes, piece_write, buf);
}

static int64_t piece_compare(const struct brim_fileset *fs, uint64_t key,
			     uint64_t block, size_t from, size_t len, void *at)
{
	const uint8_t *found = at;
	uint8_t expected[BLOCK];
	size_t k;

	block_bytes(fs, key, block, from, len, expected);
	if (!memcmp(expected, found, len))
		return -1;
	for (k = 0; expected[k] == found[k]; k++)
		;
	return (int64_t)(block * BLOCK + from + k);
}

int64_t brim_fileset_compare(const struct brim_fileset *fs,
			     const struct brim_file *f, uint64_t off_bytes,
			     size_t len_bytes, const void *buf)
{
	uint8_t *at = (uint8_t *)(uintptr_t)buf; /* only read */
	struct brim_file known = *f;

	if (has_unknown(f)) {
		uint64_t upto = brim__overwrite_blocks(f->base_bytes) * BLOCK;

		known.overwrites = 0;
		if (off_bytes < upto) {
			uint64_t n = BRIM__MIN(upto - off_bytes, len_bytes);

			off_bytes += n;
			len_bytes -= (size_t)n;
			at += n;
		}
	}
	return for_range(fs, &known, off_bytes, len_bytes, piece_compare, at);
}
