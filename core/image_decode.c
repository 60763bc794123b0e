/* SPDX-License-Identifier: MIT */
/*
 * image_decode.c: reads an image file (its form: image.c). Nothing in the file
 * is believed: every number is bounded before it is used, and the plan is built
 * through the same checked calls that scripts use. Called by device.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"
#include "plan.h"

/* What is left to read; `bad` names the first thing that was wrong. */
struct in {
	const uint8_t *p, *end;
	uint64_t parts, templates, tables; /* used up so far */
	const char *bad;
	bool no_memory;
};

static uint64_t in_fail(struct in *in, const char *why)
{
	if (!in->bad)
		in->bad = why;
	in->p = in->end;
	return 0;
}

static void *in_alloc(struct in *in, size_t len)
{
	void *p = in->bad ? NULL : malloc(len);

	if (!p && !in->bad) {
		in->no_memory = true;
		in_fail(in, "there is no memory for it");
	}
	return p;
}

/* One more region or checksum, of which all stamps together have so many. */
static void in_part(struct in *in)
{
	if (++in->parts > BRIM__IMAGE_MAX_PARTS)
		in_fail(in, "it has too many regions and checksums");
}

static uint64_t in_u64(struct in *in)
{
	uint64_t v = 0;
	uint32_t shift;

	for (shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (in->p == in->end)
			return in_fail(in, "it ends too early");
		byte = *in->p++;
		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	return in_fail(in, "a number is too long");
}

/* A number of at most `max`. */
static uint64_t in_max(struct in *in, uint64_t max, const char *what)
{
	uint64_t v = in_u64(in);

	return v > max ? in_fail(in, what) : v;
}

static int64_t in_i64(struct in *in)
{
	uint64_t v = in_u64(in);

	return (int64_t)(v >> 1 ^ (v & 1 ? UINT64_MAX : 0));
}

/* A string the caller frees; never NULL unless in->bad is set. */
static char *in_string(struct in *in)
{
	size_t len =
		in_max(in, (uint64_t)(in->end - in->p), "a string is too long");
	char *s;

	if (in->bad || len > (size_t)(in->end - in->p) ||
	    memchr(in->p, 0, len)) {
		in_fail(in, "a string is damaged");
		return NULL;
	}
	s = in_alloc(in, len + 1);
	if (!s)
		return NULL;
	memcpy(s, in->p, len);
	s[len] = 0;
	in->p += len;
	return s;
}

/* Literals and runs into a buffer of exactly len bytes. */
static void in_packed(struct in *in, uint8_t *out, size_t len)
{
	size_t n;

	while (len > 0 && !in->bad) {
		n = in_max(in, len, "a literal is too long");
		if (in->bad || n > (size_t)(in->end - in->p)) {
			in_fail(in, "a literal is too long");
			return;
		}
		memcpy(out, in->p, n);
		in->p += n;
		out += n;
		len -= n;
		n = in_max(in, len, "a run is too long");
		if (n && in->p == in->end) {
			in_fail(in, "it ends too early");
			return;
		}
		if (n)
			memset(out, *in->p++, n);
		out += n;
		len -= n;
	}
}

static int in_region(struct in *in, struct brim_stamp *s, struct brim_err *e)
{
	uint64_t off = in_max(in, BRIM_MAX_BYTES, "an offset is too large");
	uint64_t len =
		in_max(in, BRIM_STAMP_MAX_BYTES, "a region is too large");
	char *label = in_string(in);
	uint8_t *bytes = NULL;
	int ret = -EILSEQ;

	in_part(in);
	in->templates += len;
	if (in->templates > BRIM__IMAGE_MAX_TEMPLATES)
		in_fail(in, "its stamps are too large");
	if (!len)
		in_fail(in, "a region is empty");
	if (in->bad)
		goto out;
	bytes = in_alloc(in, len);
	if (bytes)
		in_packed(in, bytes, len);
	if (in->bad)
		goto out;
	ret = brim_stamp_region(s, off, (uint32_t)len, label, e);
	if (ret == 0)
		ret = brim_stamp_set_bytes(s, off, bytes, len, e);
out:
	free(label);
	free(bytes);
	return ret;
}

static int in_patch(struct in *in, struct brim_stamp *s, struct brim_err *e)
{
	uint64_t off = in_max(in, BRIM_MAX_BYTES, "an offset is too large");
	uint32_t width = (uint32_t)in_max(in, 8, "a field is too wide");
	uint64_t endian = in_max(in, BRIM_LITTLE, "a byte order is unknown");
	int64_t base = in_i64(in);
	int64_t step = in_i64(in);
	char *field = in_string(in);
	int ret = -EILSEQ;

	if (!endian || (width != 1 && width != 2 && width != 4 && width != 8))
		in_fail(in, "a field is damaged");
	in->tables += width;
	if (in->tables > BRIM__IMAGE_MAX_TABLES)
		in_fail(in, "it has too many fields");
	if (!in->bad)
		ret = brim_stamp_set_int(s, off, width,
					 (enum brim_endian)endian, base, step,
					 field, e);
	free(field);
	return ret;
}

static int in_sum(struct in *in, struct brim_stamp *s, struct brim_err *e)
{
	uint64_t off = in_max(in, BRIM_MAX_BYTES, "an offset is too large");
	uint64_t from = in_max(in, BRIM_MAX_BYTES, "an offset is too large");
	uint64_t len =
		in_max(in, BRIM_STAMP_MAX_BYTES, "a region is too large");
	struct brim_checksum how;

	in_part(in);
	how.kind = (enum brim_checksum_kind)in_max(in, BRIM_CRC32,
						   "a checksum is unknown");
	how.seed = (uint32_t)in_max(in, UINT32_MAX, "a checksum is damaged");
	how.xor_out = (uint32_t)in_max(in, UINT32_MAX, "a checksum is damaged");
	how.endian = (enum brim_endian)in_max(in, BRIM_LITTLE,
					      "a byte order is unknown");
	if (!how.kind || !how.endian)
		in_fail(in, "a checksum is damaged");
	if (in->bad)
		return -EILSEQ;
	return brim_stamp_set_checksum(s, off, from, (uint32_t)len, &how, e);
}

static int in_stamp(struct in *in, struct brim_stamp *s, struct brim_err *e)
{
	uint64_t first = in_max(in, BRIM_MAX_BYTES, "an instance is damaged");
	uint64_t count = in_max(in, BRIM_MAX_BYTES, "an instance is damaged");
	uint64_t n;
	int ret = 0;

	n = in_max(in, BRIM__IMAGE_MAX_REGIONS, "it has too many regions");
	for (; n && ret == 0; n--)
		ret = in_region(in, s, e);
	if (ret < 0)
		return ret;
	n = in_max(in, BRIM__IMAGE_MAX_PATCHES, "it has too many fields");
	for (; n && ret == 0; n--)
		ret = in_patch(in, s, e);
	if (ret < 0)
		return ret;
	n = in_max(in, BRIM__IMAGE_MAX_REGIONS, "it has too many checksums");
	for (; n && ret == 0; n--)
		ret = in_sum(in, s, e);
	if (ret == 0 && in->bad)
		ret = -EILSEQ;
	return ret < 0 ? ret : brim_stamp_seal(s, first, count, e);
}

static int in_piece(struct in *in, struct brim_plan *p, struct brim_err *e)
{
	uint64_t kind = in_max(in, 1, "a piece is of an unknown kind");
	uint64_t off = in_max(in, BRIM_MAX_BYTES, "an offset is too large");
	struct brim_stamp *s = NULL;
	char *name = NULL;
	uint64_t len, groups;
	int ret = -EILSEQ;

	len = in_max(in, BRIM_MAX_BYTES, "a length is too large");
	groups = kind ? in_max(in, 1, "a piece is damaged") : 0;
	name = in_string(in);
	if (in->bad)
		goto out;
	if (!kind) {
		ret = brim_plan_zero(p, off, len, name, e);
		goto out;
	}
	ret = brim_stamp_create(&s, e);
	if (ret == 0)
		ret = in_stamp(in, s, e);
	if (ret == 0) {
		ret = brim_plan_each(p, s, off, len, name, (int)groups, e);
		s = NULL;
	}
out:
	brim_stamp_free(s);
	free(name);
	return ret;
}

static int in_phases(struct in *in, struct brim_plan *p, struct brim_err *e)
{
	uint64_t phases =
		in_max(in, BRIM__IMAGE_MAX_PIECES, "it has too many phases");
	uint64_t pieces;
	int ret = 0;

	for (; phases && ret == 0 && !in->bad; phases--) {
		char *name = in_string(in);

		if (name)
			ret = brim_plan_phase(p, name, e);
		free(name);
		if (ret < 0)
			return ret;
		pieces = in_max(in, BRIM__IMAGE_MAX_PIECES - p->piece_count,
				"it has too many pieces");
		for (; pieces && ret == 0 && !in->bad; pieces--)
			ret = in_piece(in, p, e);
	}
	return ret;
}

static int in_notes(struct in *in, struct brim_plan *p, struct brim_err *e)
{
	uint64_t n = in_max(in, BRIM__IMAGE_MAX_NOTES, "it has too many notes");
	int ret = 0;

	for (; n && ret == 0 && !in->bad; n--) {
		char *key = in_string(in), *text = in_string(in);

		if (key && text)
			ret = brim_plan_set_note(p, key, text, e);
		free(key);
		free(text);
	}
	return ret;
}

static int in_plan(struct in *in, struct brim_plan **out, struct brim_err *e)
{
	char *name = in_string(in);
	uint64_t size = in_max(in, BRIM_MAX_BYTES, "its size is too large");
	struct brim_plan *p = NULL;
	int ret = -EILSEQ;

	if (in->bad)
		goto out;
	ret = brim_plan_create(&p, name, size, e);
	if (ret == 0)
		ret = in_notes(in, p, e);
	if (ret == 0)
		ret = in_phases(in, p, e);
	if (ret == 0 && in->p != in->end)
		in_fail(in, "it has bytes behind its end");
	if (ret == 0 && !in->bad)
		ret = brim_plan_seal(p, e);
	if (in->bad)
		ret = -EILSEQ;
	if (ret == 0) {
		*out = p;
		p = NULL;
	}
out:
	brim_plan_free(p);
	free(name);
	return ret;
}

/* The fixed header; on success *len is the payload's length. */
static int header_check(const uint8_t *b, size_t len_bytes, size_t *len,
			struct brim_err *e)
{
	uint64_t version;

	if (len_bytes < BRIM__IMAGE_HEADER_BYTES ||
	    memcmp(b, BRIM__IMAGE_MAGIC, 8))
		return brim__errf(e, -EILSEQ, "load", "this is no brim image");
	version = brim__load(b + 8, 4, BRIM_LITTLE);
	if (version != BRIM__IMAGE_VERSION)
		return brim__errf(
			e, -ENOTSUP, "load",
			"the image is of version %u; this brim reads %u",
			(unsigned int)version, BRIM__IMAGE_VERSION);
	*len = brim__load(b + 16, 8, BRIM_LITTLE);
	if (*len != len_bytes - BRIM__IMAGE_HEADER_BYTES ||
	    *len > BRIM__IMAGE_MAX_BYTES)
		return brim__errf(e, -EILSEQ, "load",
				  "the image is cut short or too long");
	if (brim__load(b + 12, 4, BRIM_LITTLE) !=
	    brim__image_crc(b + BRIM__IMAGE_HEADER_BYTES, *len))
		return brim__errf(
			e, -EILSEQ, "load",
			"the image is damaged: its checksum is wrong");
	return 0;
}

int brim_image_decode(struct brim_plan **out, const void *buf, size_t len_bytes,
		      struct brim_err *e)
{
	struct brim_err inner = { 0 };
	struct in in = { 0 };
	size_t len = 0;
	int ret;

	*out = NULL;
	ret = header_check(buf, len_bytes, &len, e);
	if (ret < 0)
		return ret;
	in.p = (const uint8_t *)buf + BRIM__IMAGE_HEADER_BYTES;
	in.end = in.p + len;
	ret = in_plan(&in, out, &inner);
	if (ret == -ENOMEM || in.no_memory)
		return brim__err(e, -ENOMEM, "load", "the image");
	if (ret < 0)
		return brim__errf(e, -EILSEQ, "load",
				  "the image is damaged: %.200s",
				  in.bad ? in.bad : inner.msg);
	return 0;
}

static int file_read(int fd, uint8_t **buf, size_t *len)
{
	struct stat st;
	size_t got = 0;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EILSEQ;
	/* Longer ones are refused by their header. */
	*len = BRIM__MIN((size_t)st.st_size,
			 BRIM__IMAGE_MAX_BYTES + BRIM__IMAGE_HEADER_BYTES + 1);
	*buf = malloc(*len + 1);
	if (!*buf)
		return -ENOMEM;
	while (got < *len) {
		ssize_t n = read(fd, *buf + got, *len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	*len = got;
	return 0;
}

int brim_image_load(struct brim_plan **out, const char *path,
		    struct brim_err *e)
{
	struct brim_err inner = { 0 };
	uint8_t *buf = NULL;
	size_t len = 0;
	int fd, ret;

	*out = NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return brim__err(e, -errno, "load", path);
	ret = file_read(fd, &buf, &len);
	if (ret < 0) {
		brim__err(e, ret, "load", path);
	} else {
		ret = brim_image_decode(out, buf, len, &inner);
		if (ret < 0)
			brim__errf(e, ret, "load", "%.80s: %.160s", path,
				   inner.msg);
	}
	free(buf);
	close(fd);
	return ret;
}
