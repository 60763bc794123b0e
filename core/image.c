/* SPDX-License-Identifier: MIT */
/*
 * image.c: a sealed plan as a file of a few KiB, and back. Called by
 * device_plan.c and the binding. A file is:
 *
 *   0   8  "brimimg" and a zero byte
 *   8   4  version, little-endian
 *  12   4  CRC32C (standard, inverted) of the payload, little-endian
 *  16   8  length of the payload in bytes, little-endian
 *  24      payload
 *
 * The payload is a sequence of unsigned LEB128 numbers and of strings (length,
 * bytes); signed numbers are zigzag-coded. image_decode.c reads it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "plan.h"

/* A growing buffer; `failed` sticks, so callers check once at the end. */
struct out {
	uint8_t *bytes;
	size_t len, room;
	bool failed;
};

static void out_bytes(struct out *o, const void *bytes, size_t len)
{
	if (o->failed)
		return;
	if (o->room - o->len < len) {
		size_t room = 2 * (o->room + len);
		uint8_t *p = realloc(o->bytes, room);

		if (!p) {
			o->failed = true;
			return;
		}
		o->bytes = p;
		o->room = room;
	}
	if (len)
		memcpy(o->bytes + o->len, bytes, len);
	o->len += len;
}

static void out_u64(struct out *o, uint64_t v)
{
	uint8_t byte;

	do {
		byte = (uint8_t)(v & 0x7f);
		v >>= 7;
		byte |= (uint8_t)(v ? 0x80 : 0);
		out_bytes(o, &byte, 1);
	} while (v);
}

static void out_i64(struct out *o, int64_t v)
{
	out_u64(o, (uint64_t)v << 1 ^ (v < 0 ? UINT64_MAX : 0));
}

static void out_string(struct out *o, const char *s)
{
	out_u64(o, strlen(s));
	out_bytes(o, s, strlen(s));
}

static size_t run_length(const uint8_t *p, size_t len)
{
	size_t n = 1;

	while (n < len && p[n] == p[0])
		n++;
	return n;
}

/*
 * Bytes as pairs: a literal (length, bytes), then a run (length, byte); runs
 * of fewer than 4 bytes stay in the literal.
 */
static void out_packed(struct out *o, const uint8_t *p, size_t len)
{
	size_t from = 0, at = 0, run;

	while (at < len) {
		run = run_length(p + at, len - at);
		if (run < 4 && at + run < len) {
			at += run;
			continue;
		}
		if (run < 4) {
			at += run;
			run = 0;
		}
		out_u64(o, at - from);
		out_bytes(o, p + from, at - from);
		out_u64(o, run);
		out_bytes(o, p + at, run ? 1 : 0);
		at += run;
		from = at;
	}
}

static const uint8_t *region_bytes(const struct brim_stamp *s,
				   const struct brim__region *r)
{
	size_t x = 0;

	while (r->off_bytes - s->extents[x].off_bytes >=
	       s->extents[x].len_bytes)
		x++;
	return s->templates[x] + (r->off_bytes - s->extents[x].off_bytes);
}

static void out_stamp(struct out *o, const struct brim_stamp *s)
{
	size_t i;

	out_u64(o, s->first);
	out_u64(o, s->count);
	out_u64(o, s->region_count);
	for (i = 0; i < s->region_count; i++) {
		const struct brim__region *r = &s->regions[i];

		out_u64(o, r->off_bytes);
		out_u64(o, r->len_bytes);
		out_string(o, r->label);
		out_packed(o, region_bytes(s, r), r->len_bytes);
	}
	out_u64(o, s->patch_count);
	for (i = 0; i < s->patch_count; i++) {
		const struct brim__patch *p = &s->patches[i];

		out_u64(o, p->off_bytes);
		out_u64(o, p->width_bytes);
		out_u64(o, p->endian);
		out_i64(o, p->base);
		out_i64(o, p->step);
		out_string(o, p->field);
	}
	out_u64(o, s->sum_count);
	for (i = 0; i < s->sum_count; i++) {
		const struct brim__sum *sum = &s->sums[i];

		out_u64(o, sum->off_bytes);
		out_u64(o, sum->from_bytes);
		out_u64(o, sum->len_bytes);
		out_u64(o, sum->how.kind);
		out_u64(o, sum->how.seed);
		out_u64(o, sum->how.xor_out);
		out_u64(o, sum->how.endian);
	}
}

static void out_piece(struct out *o, const struct brim__piece *piece)
{
	out_u64(o, piece->is_zero ? 0 : 1);
	out_u64(o, piece->off_bytes);
	out_u64(o, piece->is_zero ? piece->len_bytes : piece->stride_bytes);
	if (!piece->is_zero)
		out_u64(o, piece->is_groups);
	out_string(o, piece->name);
	if (!piece->is_zero)
		out_stamp(o, piece->stamp);
}

static void out_phase(struct out *o, const struct brim_plan *p, size_t phase)
{
	size_t i, n = 0;

	for (i = 0; i < p->piece_count; i++)
		n += p->pieces[i].phase == phase;
	out_string(o, p->phases[phase]);
	out_u64(o, n);
	for (i = 0; i < p->piece_count; i++)
		if (p->pieces[i].phase == phase)
			out_piece(o, &p->pieces[i]);
}

static void out_plan(struct out *o, const struct brim_plan *p)
{
	size_t i, notes = 0;

	out_string(o, p->name);
	out_u64(o, p->size_bytes);
	for (i = 0; i < p->note_count; i++)
		notes += p->notes[i].text != NULL;
	out_u64(o, notes);
	for (i = 0; i < p->note_count; i++) {
		if (!p->notes[i].text)
			continue;
		out_string(o, p->notes[i].key);
		out_string(o, p->notes[i].text);
	}
	out_u64(o, p->phase_count);
	for (i = 0; i < p->phase_count; i++)
		out_phase(o, p, i);
}

/* Names the first thing of which the plan has more than may be read back. */
static int limits_check(const struct brim_plan *p, struct brim_err *e)
{
	struct {
		const char *what;
		uint64_t has, max;
	} v[] = {
		{ "phases", p->phase_count, BRIM__IMAGE_MAX_PIECES },
		{ "pieces", p->piece_count, BRIM__IMAGE_MAX_PIECES },
		{ "notes", p->note_count, BRIM__IMAGE_MAX_NOTES },
		{ "regions in a stamp", 0, BRIM__IMAGE_MAX_REGIONS },
		{ "checksums in a stamp", 0, BRIM__IMAGE_MAX_REGIONS },
		{ "varying fields in a stamp", 0, BRIM__IMAGE_MAX_PATCHES },
		{ "regions and checksums", 0, BRIM__IMAGE_MAX_PARTS },
		{ "bytes of stamps", 0, BRIM__IMAGE_MAX_TEMPLATES },
		{ "varying bytes", 0, BRIM__IMAGE_MAX_TABLES },
	};
	size_t i, k;

	for (i = 0; i < p->piece_count; i++) {
		const struct brim_stamp *s = p->pieces[i].stamp;

		if (!s)
			continue;
		v[3].has = BRIM__MAX(v[3].has, s->region_count);
		v[4].has = BRIM__MAX(v[4].has, s->sum_count);
		v[5].has = BRIM__MAX(v[5].has, s->patch_count);
		v[6].has += s->region_count + s->sum_count;
		v[7].has += s->total_bytes;
		for (k = 0; k < s->patch_count; k++)
			v[8].has += s->patches[k].width_bytes;
	}
	for (i = 0; i < sizeof(v) / sizeof(v[0]); i++)
		if (v[i].has > v[i].max)
			return brim__errf(e, -EFBIG, "save",
					  "plan '%s' has %" PRIu64
					  " %s; an image holds %" PRIu64,
					  p->name, v[i].has, v[i].what,
					  v[i].max);
	return 0;
}

int brim_image_encode(const struct brim_plan *p, void **buf, size_t *len_bytes,
		      struct brim_err *e)
{
	struct out o = { 0 };
	uint8_t header[BRIM__IMAGE_HEADER_BYTES] = BRIM__IMAGE_MAGIC;
	size_t payload;

	*buf = NULL;
	if (!p->sealed)
		return brim__errf(e, -EINVAL, "save",
				  "plan '%s' is not sealed yet", p->name);
	if (limits_check(p, e) < 0)
		return -EFBIG;
	out_bytes(&o, header, sizeof(header));
	out_plan(&o, p);
	if (o.failed) {
		free(o.bytes);
		return brim__err(e, -ENOMEM, "save", p->name);
	}
	payload = o.len - sizeof(header);
	if (payload > BRIM__IMAGE_MAX_BYTES) {
		free(o.bytes);
		return brim__errf(
			e, -EFBIG, "save",
			"plan '%s' takes %zu bytes; an image holds %u", p->name,
			payload, BRIM__IMAGE_MAX_BYTES);
	}
	brim__store(o.bytes + 8, 4, BRIM_LITTLE, BRIM__IMAGE_VERSION);
	brim__store(o.bytes + 12, 4, BRIM_LITTLE,
		    brim__image_crc(o.bytes + sizeof(header), payload));
	brim__store(o.bytes + 16, 8, BRIM_LITTLE, payload);
	*buf = o.bytes;
	*len_bytes = o.len;
	return 0;
}

uint32_t brim__image_crc(const void *payload, size_t len_bytes)
{
	return ~brim_crc(BRIM_CRC32C, 0xffffffffu, payload, len_bytes);
}

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Only an image, an empty file or nothing may be replaced. */
static int replace_check(const char *path, struct brim_err *e)
{
	char magic[8] = { 0 };
	struct stat st;
	ssize_t n;
	int fd;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : brim__err(e, -errno, "save", path);
	if (S_ISREG(st.st_mode) && !st.st_size)
		return 0;
	fd = S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	n = fd < 0 ? 0 : read(fd, magic, sizeof(magic));
	if (fd >= 0)
		close(fd);
	if (n == sizeof(magic) && !memcmp(magic, BRIM__IMAGE_MAGIC, 8))
		return 0;
	return brim__errf(e, -EEXIST, "save",
			  "%s is there and is no brim image; name another file",
			  path);
}

/* Writes and syncs a file that takes its name only once it is whole. */
static int file_replace(const char *path, const void *buf, size_t len,
			struct brim_err *e)
{
	char *part = NULL;
	int fd = -1, ret;

	if (asprintf(&part, "%s.part.%ld", path, (long)getpid()) < 0)
		return brim__err(e, -ENOMEM, "save", path);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	ret = fd < 0 ? -errno : write_all(fd, buf, len);
	if (ret == 0 && fsync(fd) < 0)
		ret = -errno;
	if (fd >= 0 && close(fd) < 0 && ret == 0)
		ret = -errno;
	if (ret == 0 && rename(part, path) < 0)
		ret = -errno;
	if (ret < 0) {
		if (fd >= 0)
			unlink(part);
		brim__err(e, ret, "save", path);
	}
	free(part);
	return ret;
}

int brim_image_save(const struct brim_plan *p, const char *path,
		    struct brim_err *e)
{
	void *buf;
	size_t len;
	int ret;

	ret = replace_check(path, e);
	if (ret < 0)
		return ret;
	ret = brim_image_encode(p, &buf, &len, e);
	if (ret < 0)
		return ret;
	ret = file_replace(path, buf, len, e);
	free(buf);
	return ret;
}
