/* SPDX-License-Identifier: MIT */
/*
 * overlay_log.c: the map of an overlay as it is kept in its file: a log of
 * extents in pages, each set after the one before. Called by overlay.c, with
 * `flushing` held. Units: blocks of the file, pages being one block. A page:
 *
 *   0  4  "BOVP"            4  4  CRC32C of the page, this being zero
 *   8  8  id of the log    16  8  number of the page in the log, from 0
 *  24  8  number of the first page that was written in the same flush
 *  32  8  what the page before hashes to; the id for the first
 *  40  8  block of the page after this   48  8  blocks reserved from there on
 *  56  4  extents in it    60  4  a random number of who wrote it
 *  64  24 each: from, len, place
 *
 * All little-endian. What does not follow on what is before is not part of the
 * log: it ends there, be it what a crash left half written or of another life.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "overlay.h"

#define PAGE_MAGIC 0x50564f42u
#define PAGE_HEADER 64u
#define PAGE_EXTENTS ((BRIM__OVERLAY_BLOCK - PAGE_HEADER) / 24u)
/* How far behind a page that is missing others are looked for. */
#define AHEAD_MAX 256u
/* A log is rewritten when it has so many pages, and this many times its map. */
#define WORDY_PAGES 256u
#define WORDY_FACTOR 4u

struct page {
	uint64_t id, sequence, batch, chain, next, left;
	uint32_t count, writer;
	uint8_t raw[BRIM__OVERLAY_BLOCK];
};

static uint64_t load(const uint8_t *raw, size_t at)
{
	return brim__load(raw + at, 8, BRIM_LITTLE);
}

static void store(uint8_t *raw, size_t at, uint64_t v)
{
	brim__store(raw + at, 8, BRIM_LITTLE, v);
}

static uint32_t page_crc(const uint8_t *raw)
{
	static const uint8_t ZERO[4];
	uint32_t reg = brim_crc(BRIM_CRC32C, 0xffffffffu, raw, 4);

	reg = brim_crc(BRIM_CRC32C, reg, ZERO, 4);
	return ~brim_crc(BRIM_CRC32C, reg, raw + 8, BRIM__OVERLAY_BLOCK - 8);
}

/* Two different checksums: pages that are alike in one differ in the other. */
static uint64_t page_hash(const uint8_t *raw)
{
	uint32_t other =
		brim_crc(BRIM_CRC32, 0xffffffffu, raw, BRIM__OVERLAY_BLOCK);

	return (uint64_t)page_crc(raw) << 32 | other;
}

static void page_seal(struct page *p)
{
	brim__store(p->raw, 4, BRIM_LITTLE, PAGE_MAGIC);
	store(p->raw, 8, p->id);
	store(p->raw, 16, p->sequence);
	store(p->raw, 24, p->batch);
	store(p->raw, 32, p->chain);
	store(p->raw, 40, p->next);
	store(p->raw, 48, p->left);
	brim__store(p->raw + 56, 4, BRIM_LITTLE, p->count);
	brim__store(p->raw + 60, 4, BRIM_LITTLE, p->writer);
	brim__store(p->raw + 4, 4, BRIM_LITTLE, page_crc(p->raw));
}

static void page_put(struct page *p, const struct brim__overlay_extent *x)
{
	uint8_t *raw = p->raw + PAGE_HEADER + 24 * p->count++;

	store(raw, 0, x->from);
	store(raw, 8, x->len);
	store(raw, 16, x->place);
}

static struct brim__overlay_extent page_get(const struct page *p, uint32_t i)
{
	const uint8_t *raw = p->raw + PAGE_HEADER + 24 * i;
	struct brim__overlay_extent x = { load(raw, 0), load(raw, 8),
					  load(raw, 16) };

	return x;
}

/* 1: a page of some log; 0: something else, or nothing; else -errno. */
static int page_read(struct brim__overlay *o, uint64_t place, struct page *p)
{
	int ret = brim__overlay_pread(o, place, 0, p->raw, sizeof(p->raw));

	if (ret == -ENODATA)
		return 0;
	if (ret < 0)
		return ret;
	if (brim__load(p->raw, 4, BRIM_LITTLE) != PAGE_MAGIC ||
	    brim__load(p->raw + 4, 4, BRIM_LITTLE) != page_crc(p->raw))
		return 0;
	p->id = load(p->raw, 8);
	p->sequence = load(p->raw, 16);
	p->batch = load(p->raw, 24);
	p->chain = load(p->raw, 32);
	p->next = load(p->raw, 40);
	p->left = load(p->raw, 48);
	p->count = (uint32_t)brim__load(p->raw + 56, 4, BRIM_LITTLE);
	return 1;
}

int brim__overlay_log_init(struct brim__overlay *o,
			   struct brim__overlay_log *log, uint64_t blocks)
{
	struct brim__overlay_extent chunk = { 0, blocks, o->end };

	memset(log, 0, sizeof(*log));
	if (getrandom(&log->id, sizeof(log->id), 0) != sizeof(log->id))
		return -errno;
	if (blocks > BRIM__OVERLAY_PLACE_MAX - o->end)
		return -EFBIG;
	if (brim__overlay_list_push(&log->chunks, 0, &chunk) < 0)
		return -ENOMEM;
	o->end += blocks;
	log->next = chunk.place;
	log->left = blocks;
	log->chain = log->id;
	return 0;
}

/* ------------------------------------------------------------------ reading */

static int damaged(const struct brim__overlay *o, const char *how,
		   struct brim_err *e)
{
	return brim__errf(e, -EILSEQ, "open", "overlay %s is damaged: %s",
			  o->shown, how);
}

/* Into the map; every number is bounded by the volume or by the file. */
static int replay_extents(struct brim__overlay *o, const struct page *p,
			  uint64_t file_blocks, struct brim_err *e)
{
	uint32_t i;

	if (p->count > PAGE_EXTENTS)
		return damaged(o, "a page holds too much", e);
	for (i = 0; i < p->count; i++) {
		struct brim__overlay_extent x = page_get(p, i);

		if (!x.len || x.len > o->blocks || x.from > o->blocks - x.len)
			return damaged(o, "it has blocks beyond the volume", e);
		if (x.place &&
		    (x.place < BRIM__OVERLAY_FIRST || x.len > file_blocks ||
		     x.place > file_blocks - x.len))
			return damaged(o, "it has blocks beyond its end", e);
		if (x.place)
			o->end = BRIM__MAX(o->end, x.place + x.len);
		if (brim__overlay_map_set(&o->map, &x, &o->freed) < 0)
			return brim__err(e, -ENOMEM, "open", o->shown);
	}
	return 0;
}

/* Moves the log behind a page. */
static int replay_step(struct brim__overlay *o, const struct page *p,
		       struct brim_err *e)
{
	struct brim__overlay_log *log = &o->log;
	struct brim__overlay_extent chunk = { 0, p->left, p->next };
	bool follows = log->left > 1 && p->next == log->next + 1 &&
		       p->left == log->left - 1;

	if (!p->left || p->left > BRIM__OVERLAY_PLACE_MAX ||
	    p->next < BRIM__OVERLAY_FIRST ||
	    p->next > BRIM__OVERLAY_PLACE_MAX - p->left || p->next == log->next)
		return damaged(o, "a page leads nowhere", e);
	if (!follows && brim__overlay_list_push(&log->chunks, 0, &chunk) < 0)
		return brim__err(e, -ENOMEM, "open", o->shown);
	o->end = BRIM__MAX(o->end, p->next + p->left);
	log->next = p->next;
	log->left = p->left;
	log->chain = page_hash(p->raw);
	log->sequence++;
	log->pages++;
	return 0;
}

/*
 * Page number log->sequence is not there. That is the end of the log, unless a
 * later flush left pages behind it: a flush begins when the one before is on
 * stable storage, so then the missing page was, too.
 */
static int replay_end(struct brim__overlay *o, struct page *p,
		      uint64_t least_sequence, struct brim_err *e)
{
	const struct brim__overlay_log *log = &o->log;
	uint64_t k, ahead = BRIM__MIN(log->left, AHEAD_MAX);
	int ret;

	if (log->sequence < least_sequence)
		return damaged(o, "a page of its map is wrong or missing", e);
	for (k = 1; k < ahead; k++) {
		ret = page_read(o, log->next + k, p);
		if (ret < 0)
			return brim__err(e, ret, "open", o->shown);
		if (ret && p->id == log->id &&
		    p->sequence == log->sequence + k &&
		    p->batch > log->sequence)
			return damaged(o, "a page of its map is wrong", e);
	}
	return 0;
}

int brim__overlay_replay(struct brim__overlay *o, uint64_t file_blocks,
			 uint64_t least_sequence, struct brim_err *e)
{
	struct brim__overlay_log *log = &o->log;
	struct brim__overlay_extent chunk = { 0, log->left, log->next };
	struct page p;
	int ret;

	if (brim__overlay_list_push(&log->chunks, 0, &chunk) < 0)
		return brim__err(e, -ENOMEM, "open", o->shown);
	o->end = BRIM__MAX(o->end, log->next + log->left);
	for (;;) {
		ret = page_read(o, log->next, &p);
		if (ret < 0)
			return brim__err(e, ret, "open", o->shown);
		if (!ret || p.id != log->id || p.sequence != log->sequence ||
		    p.chain != log->chain)
			return replay_end(o, &p, least_sequence, e);
		ret = replay_extents(o, &p, file_blocks, e);
		if (ret == 0)
			ret = replay_step(o, &p, e);
		if (ret < 0)
			return ret;
	}
}

/* ------------------------------------------------------------------ writing */

static void page_begin(const struct brim__overlay *o,
		       const struct brim__overlay_log *log, uint64_t batch,
		       struct page *p)
{
	memset(p, 0, sizeof(*p));
	p->id = log->id;
	p->sequence = log->sequence;
	p->batch = batch;
	p->chain = log->chain;
	p->writer = o->writer;
	p->next = log->next + 1;
	p->left = log->left - 1;
}

/* Writes a page where the log goes on, and moves it behind. */
static int page_write(struct brim__overlay *o, struct brim__overlay_log *log,
		      struct page *p)
{
	int ret;

	page_seal(p);
	ret = brim__overlay_pwrite(o, log->next, 0, p->raw, sizeof(p->raw));
	if (ret < 0)
		return ret;
	log->next = p->next;
	log->left = p->left;
	log->chain = page_hash(p->raw);
	log->sequence++;
	log->pages++;
	return 0;
}

/* The last page of a chunk says where the next chunk is. */
static int page_write_last(struct brim__overlay *o, struct page *p)
{
	struct brim__overlay_extent chunk = { 0, BRIM__OVERLAY_LOG_BLOCKS, 0 };
	int ret;

	ret = brim__overlay_alloc(o, chunk.len, &chunk.place);
	if (ret < 0)
		return ret;
	p->next = chunk.place;
	p->left = chunk.len;
	ret = page_write(o, &o->log, p);
	if (ret < 0)
		brim__overlay_unalloc(o, chunk.len, chunk.place);
	else /* not noted, it will only not be punched */
		brim__overlay_list_push(&o->log.chunks, 0, &chunk);
	return ret;
}

int brim__overlay_append(struct brim__overlay *o, size_t count,
			 bool *in_new_chunk)
{
	uint64_t batch = o->log.sequence;
	struct page p;
	size_t i, n;
	int ret = 0;

	for (; count && ret == 0; count -= n) {
		n = BRIM__MIN(count, PAGE_EXTENTS);
		page_begin(o, &o->log, batch, &p);
		pthread_mutex_lock(&o->lock);
		for (i = 0; i < n; i++)
			page_put(&p, &o->dirty.v[i]);
		pthread_mutex_unlock(&o->lock);
		if (p.left) {
			ret = page_write(o, &o->log, &p);
		} else {
			ret = page_write_last(o, &p);
			*in_new_chunk = true;
		}
		if (ret < 0)
			break;
		pthread_mutex_lock(&o->lock);
		brim__overlay_list_shift(&o->dirty, n);
		o->dirty_fixed -= n;
		pthread_mutex_unlock(&o->lock);
	}
	return ret;
}

bool brim__overlay_is_wordy(const struct brim__overlay *o)
{
	return o->log.pages > WORDY_PAGES &&
	       o->log.pages / WORDY_FACTOR > o->map.extents / PAGE_EXTENTS;
}

int brim__overlay_rewrite(struct brim__overlay *o,
			  struct brim__overlay_log *log)
{
	uint64_t pages = (o->map.extents + PAGE_EXTENTS - 1) / PAGE_EXTENTS;
	const struct brim__overlay_extent *x = brim__overlay_map_at(&o->map, 0);
	struct page p;
	int ret;

	ret = brim__overlay_log_init(o, log, pages + BRIM__OVERLAY_LOG_BLOCKS);
	while (ret == 0 && x) {
		page_begin(o, log, 0, &p);
		while (x && p.count < PAGE_EXTENTS) {
			page_put(&p, x);
			x = brim__overlay_map_at(&o->map, x->from + x->len);
		}
		ret = page_write(o, log, &p);
	}
	return ret;
}
