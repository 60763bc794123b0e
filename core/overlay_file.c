/* SPDX-License-Identifier: MIT */
/*
 * overlay_file.c: the file of an overlay: its headers, opening, making, locking
 * it. Called by device_overlay.c. The file is blocks of 4 KiB: two headers,
 * written in turns, then data and pages of the map's log (overlay_log.c) in
 * the order they were needed. A header:
 *
 *   0  8  "brimovl" and a zero byte
 *   8  4  version                   12  4  CRC32C of the block, this being zero
 *  16  8  number of the header: the larger one counts
 *  24  8  size of the volume in bytes
 *  32  4  kind of hash              36  4  state
 *  40  8  hash of the base
 *  48  8  id of the log             56  8  block of its first page
 *  64  8  blocks reserved there     72  8  pages it has at least
 *  80 128 what the base was called, for messages
 * */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "overlay.h"

#define MAGIC "brimovl" /* with its zero byte: 8 bytes */
#define VERSION 1u

/* ------------------------------------------------------------------ headers */

struct super {
	uint64_t sequence;
	uint32_t state;
	struct brim__overlay_base base;
	uint64_t log_id, log_first, log_left, log_least;
};

static uint32_t super_crc(const uint8_t *raw)
{
	static const uint8_t ZERO[4];
	uint32_t reg = brim_crc(BRIM_CRC32C, 0xffffffffu, raw, 12);

	reg = brim_crc(BRIM_CRC32C, reg, ZERO, 4);
	return ~brim_crc(BRIM_CRC32C, reg, raw + 16, BRIM__OVERLAY_BLOCK - 16);
}

static void put(uint8_t *raw, size_t at, uint32_t width_bytes, uint64_t v)
{
	brim__store(raw + at, width_bytes, BRIM_LITTLE, v);
}

static uint64_t get(const uint8_t *raw, size_t at, uint32_t width_bytes)
{
	return brim__load(raw + at, width_bytes, BRIM_LITTLE);
}

/* The next header, in the place of the older one. */
int brim__overlay_head(struct brim__overlay *o, uint64_t least_sequence)
{
	uint8_t raw[BRIM__OVERLAY_BLOCK] = MAGIC;
	int ret;

	put(raw, 8, 4, VERSION);
	put(raw, 16, 8, o->super_sequence + 1);
	put(raw, 24, 8, o->base.size_bytes);
	put(raw, 32, 4, o->base.kind);
	put(raw, 36, 4, o->state);
	put(raw, 40, 8, o->base.hash);
	put(raw, 48, 8, o->log.id);
	put(raw, 56, 8, o->log.chunks.v[0].place);
	put(raw, 64, 8, o->log.chunks.v[0].len);
	put(raw, 72, 8, least_sequence);
	memcpy(raw + 80, o->base.name, sizeof(o->base.name));
	put(raw, 12, 4, super_crc(raw));
	ret = brim__overlay_pwrite(o, (o->super_sequence + 1) % 2, 0, raw,
				   sizeof(raw));
	if (ret == 0) {
		o->super_sequence++;
		o->least_sequence = least_sequence;
	}
	return ret;
}

/* 1: a header; 0: none; -EILSEQ: one that is damaged; -ENOTSUP: a newer one */
static int super_read(struct brim__overlay *o, uint64_t place, struct super *s)
{
	uint8_t raw[BRIM__OVERLAY_BLOCK];
	int ret = brim__overlay_pread(o, place, 0, raw, sizeof(raw));

	if (ret < 0)
		return ret == -ENODATA ? 0 : ret;
	if (memcmp(raw, MAGIC, 8))
		return 0;
	if (get(raw, 12, 4) != super_crc(raw))
		return -EILSEQ;
	if (get(raw, 8, 4) != VERSION)
		return -ENOTSUP;
	s->sequence = get(raw, 16, 8);
	s->base.size_bytes = get(raw, 24, 8);
	s->base.kind = (uint32_t)get(raw, 32, 4);
	s->state = (uint32_t)get(raw, 36, 4);
	s->base.hash = get(raw, 40, 8);
	s->log_id = get(raw, 48, 8);
	s->log_first = get(raw, 56, 8);
	s->log_left = get(raw, 64, 8);
	s->log_least = get(raw, 72, 8);
	memcpy(s->base.name, raw + 80, sizeof(s->base.name) - 1);
	s->base.name[sizeof(s->base.name) - 1] = '\0';
	brim__overlay_show(s->base.name, sizeof(s->base.name), s->base.name);
	return 1;
}

/* Could not even be read: it may be the newer one. */
static bool is_unread(int ret)
{
	return ret < 0 && ret != -EILSEQ && ret != -ENOTSUP;
}

/* The one that counts. */
static int super_find(struct brim__overlay *o, struct super *s,
		      struct brim_err *e)
{
	struct super two[2] = { 0 };
	int ret[2];

	ret[0] = super_read(o, 0, &two[0]);
	ret[1] = super_read(o, 1, &two[1]);
	if (is_unread(ret[0]) || is_unread(ret[1]))
		return brim__err(e, is_unread(ret[0]) ? ret[0] : ret[1], "open",
				 o->shown);
	if (ret[0] > 0 || ret[1] > 0) {
		*s = two[ret[0] <= 0 || two[1].sequence > two[0].sequence];
		return 0;
	}
	if (ret[0] == -ENOTSUP || ret[1] == -ENOTSUP)
		return brim__errf(e, -ENOTSUP, "open",
				  "overlay %s is of a version newer than %u, "
				  "which this brim has",
				  o->shown, VERSION);
	if (ret[0] == -EILSEQ || ret[1] == -EILSEQ)
		return brim__errf(
			e, -EILSEQ, "open",
			"overlay %s is damaged: its headers are wrong",
			o->shown);
	return brim__errf(e, -EILSEQ, "open",
			  "%s is no overlay of brim; name another file",
			  o->shown);
}

void brim__overlay_show(char *shown, size_t shown_bytes, const char *text)
{
	size_t len = strlen(text), k;

	if (len >= shown_bytes)
		text += len - (shown_bytes - 1);
	memmove(shown, text, BRIM__MIN(len, shown_bytes - 1) + 1);
	for (k = 0; shown[k]; k++)
		if ((unsigned char)shown[k] < ' ' || shown[k] == 0x7f)
			shown[k] = '?';
}

/* Nothing but a regular file is opened for good: others may block, or count. */
static int open_regular(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int brim_overlay_base_name(const char *path, char *buf, size_t buf_bytes,
			   struct brim_err *e)
{
	struct brim__overlay o = { .fd = open_regular(path) };
	char magic[8] = "";
	struct super s = { 0 };
	const char *name;
	int ret = 0;

	if (o.fd < 0)
		return 0;
	brim__overlay_show(o.shown, sizeof(o.shown), path);
	if (pread(o.fd, magic, 8, 0) == 8 && !memcmp(magic, MAGIC, 8))
		ret = super_find(&o, &s, e) < 0 ? -EILSEQ : 1;
	close(o.fd);
	if (ret <= 0)
		return ret;
	name = strrchr(s.base.name, '/');
	name = name ? name + 1 : s.base.name;
	if (strlen(name) >= buf_bytes)
		return brim__err(e, -ENAMETOOLONG, "open", o.shown);
	strcpy(buf, name);
	return 1;
}

/* ------------------------------------------------------------- opening, making */

static struct brim__overlay *overlay_new(const char *path,
					 const struct brim__overlay_base *base,
					 bool readonly)
{
	struct brim__overlay *o = calloc(1, sizeof(*o));
	size_t i;

	if (!o)
		return NULL;
	o->fd = -1;
	o->is_readonly = readonly;
	o->base = *base;
	o->blocks = (base->size_bytes - 1) / BRIM__OVERLAY_BLOCK + 1;
	o->end = BRIM__OVERLAY_FIRST;
	brim__overlay_show(o->shown, sizeof(o->shown), path);
	pthread_mutex_init(&o->lock, NULL);
	pthread_mutex_init(&o->flushing, NULL);
	for (i = 0; i < BRIM__OVERLAY_STRIPES; i++)
		pthread_mutex_init(&o->stripes[i], NULL);
	return o;
}

static int lock_file(struct brim__overlay *o, struct brim_err *e)
{
	if (flock(o->fd, (o->is_readonly ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return brim__errf(e, -EBUSY, "open",
				  "overlay %s is in use by another process",
				  o->shown);
	return brim__err(e, -errno, "open", o->shown);
}

/* Both headers and nothing else. */
static int fill_new(struct brim__overlay *o)
{
	int ret = brim__overlay_log_init(o, &o->log, BRIM__OVERLAY_LOG_BLOCKS);

	if (ret == 0)
		ret = brim__overlay_head(o, 0);
	if (ret == 0)
		ret = brim__overlay_head(o, 0);
	return ret < 0 ? ret : brim__overlay_sync(o);
}

/* So that the new name outlives a crash; where that cannot be, it is as well. */
static void sync_directory(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash ? strndup(path, (size_t)(slash - path) + 1)
			  : strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(dir);
}

/* A new file takes its name, which nobody has, once it is whole. */
static int make(struct brim__overlay *o, const char *path, struct brim_err *e)
{
	char *part;
	int ret;

	if (asprintf(&part, "%s.part.%ld", path, (long)getpid()) < 0)
		return brim__err(e, -ENOMEM, "open", o->shown);
	o->fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (o->fd < 0) {
		ret = brim__errf(e, -errno, "open",
				 "overlay %s cannot be made: %s", o->shown,
				 strerror(errno));
		free(part);
		return ret;
	}
	ret = lock_file(o, e);
	if (ret == 0) {
		ret = fill_new(o);
		/* link: unlike rename it takes no name that somebody has */
		if (ret == 0 && link(part, path) < 0)
			ret = errno == EEXIST || rename(part, path) < 0 ? -errno
									: 0;
		if (ret < 0)
			brim__err(e, ret, "open", o->shown);
	}
	unlink(part);
	if (ret == 0)
		sync_directory(path);
	free(part);
	return ret;
}

/* Is it what the overlay was made for? */
static int match_base(struct brim__overlay *o, const struct super *s,
		      const struct brim__overlay_base *base, bool resume,
		      struct brim_err *e)
{
	bool half_way = s->state & BRIM__OVERLAY_COMMITTING;

	if (half_way && !resume)
		return brim__errf(e, -EUCLEAN, "open",
				  "overlay %s: committing it to %.100s was "
				  "interrupted; commit it again",
				  o->shown, s->base.name);
	if (s->base.size_bytes == base->size_bytes &&
	    s->base.kind == base->kind &&
	    (half_way || s->base.hash == base->hash))
		return 0;
	return brim__errf(e, -EINVAL, "open",
			  "overlay %.70s does not go with %.70s: what it was "
			  "made for (%.70s) has another %s",
			  o->shown, base->name, s->base.name,
			  s->base.size_bytes == base->size_bytes ? "content"
								 : "size");
}

static int load(struct brim__overlay *o, const struct brim__overlay_base *base,
		bool resume, struct brim_err *e)
{
	struct super s;
	struct stat st;
	int ret;

	if (fstat(o->fd, &st) < 0)
		return brim__err(e, -errno, "open", o->shown);
	if (!S_ISREG(st.st_mode))
		return brim__errf(e, -EILSEQ, "open",
				  "%s is no regular file and so no overlay",
				  o->shown);
	ret = lock_file(o, e);
	if (ret == 0)
		ret = super_find(o, &s, e);
	if (ret == 0)
		ret = match_base(o, &s, base, resume, e);
	if (ret < 0)
		return ret;
	if (s.log_first < BRIM__OVERLAY_FIRST || !s.log_left ||
	    s.log_left > BRIM__OVERLAY_PLACE_MAX ||
	    s.log_first > BRIM__OVERLAY_PLACE_MAX - s.log_left)
		return brim__errf(e, -EILSEQ, "open",
				  "overlay %s is damaged: its map is nowhere",
				  o->shown);
	o->super_sequence = s.sequence;
	o->least_sequence = s.log_least;
	o->state = s.state;
	o->log.id = o->log.chain = s.log_id;
	o->log.next = s.log_first;
	o->log.left = s.log_left;
	ret = brim__overlay_replay(
		o, (uint64_t)st.st_size / BRIM__OVERLAY_BLOCK, s.log_least, e);
	o->freed.n = 0; /* punched by whoever freed it */
	return ret;
}

int brim__overlay_open(struct brim__overlay **out, const char *path,
		       const struct brim__overlay_base *base, uint32_t flags,
		       struct brim_err *e)
{
	bool readonly = flags & BRIM_OVERLAY_READONLY;
	struct brim__overlay *o = overlay_new(path, base, readonly);
	int ret = 0;

	*out = NULL;
	if (!o)
		return brim__err(e, -ENOMEM, "open", "overlay");
	if (getrandom(&o->writer, sizeof(o->writer), 0) < 0)
		ret = brim__err(e, -errno, "open", "random numbers");
	if (ret == 0) {
		o->fd = open(path, (readonly ? O_RDONLY : O_RDWR) | O_CLOEXEC |
					   O_NONBLOCK | O_NOCTTY);
		if (o->fd >= 0)
			ret = load(o, base, flags & BRIM_OVERLAY_RESUME, e);
		else if (errno == ENOENT && !readonly &&
			 (flags & BRIM_OVERLAY_CREATE))
			ret = make(o, path, e);
		else
			ret = brim__errf(e, -errno, "open", "overlay %s: %s",
					 o->shown, strerror(errno));
	}
	if (ret < 0) {
		o->is_readonly = true; /* nothing to be flushed */
		brim__overlay_close(o);
		return ret;
	}
	*out = o;
	return 0;
}

/* What a clean end says of the log, so that a lost page shows. */
static void note_end(struct brim__overlay *o)
{
	if (brim__overlay_flush(o) == 0 &&
	    o->least_sequence != o->log.sequence &&
	    brim__overlay_head(o, o->log.sequence) == 0)
		brim__overlay_sync(o);
}

void brim__overlay_close(struct brim__overlay *o)
{
	size_t i;

	if (!o)
		return;
	if (!o->is_readonly)
		note_end(o);
	if (o->fd >= 0)
		close(o->fd);
	brim__overlay_map_free(&o->map);
	free(o->dirty.v);
	free(o->freed.v);
	free(o->log.chunks.v);
	pthread_mutex_destroy(&o->lock);
	pthread_mutex_destroy(&o->flushing);
	for (i = 0; i < BRIM__OVERLAY_STRIPES; i++)
		pthread_mutex_destroy(&o->stripes[i]);
	free(o);
}
