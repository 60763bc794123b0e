/* SPDX-License-Identifier: MIT */
/*
 * fileset.c: what files there shall be: their names, directories and sizes, all
 * drawn from the seed. Called by streams, fills and verification. Sizes are
 * bytes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fileset.h"
#include "internal.h"

/* What is drawn about a file has a number each below its key. */
enum draw { DRAW_SIZE = 1 << 20, DRAW_EXTENSION, DRAW_OVERWRITE };

/* ---------------------------------------------------------------- creation */

static int refuse(struct brim_err *e, const char *why)
{
	return brim__errf(e, -EINVAL, "fileset", "%s", why);
}

static int check(const struct brim_fileset_options *o, struct brim_err *e)
{
	int ret;

	if (!o->sizes)
		return refuse(e, "no distribution of sizes");
	ret = brim_dist_check(o->sizes, e);
	if (ret < 0)
		return ret;
	if (o->depth > BRIM__DEPTH_MAX)
		return refuse(e, "depth is at most 12");
	if (o->content > BRIM_CONTENT_COMPRESSIBLE)
		return refuse(e, "no such kind of content");
	if (o->compress_ppm > 1000000)
		return refuse(e, "compress_ppm is at most 1000000");
	if (o->extension_count && !o->extensions)
		return refuse(e, "extension_count without extensions");
	return 0;
}

/* Appends may double a file, which must stay within what off_t can hold. */
static int check_largest(const struct brim_dist *d, struct brim_err *e)
{
	uint64_t largest = d->kind == BRIM_DIST_FIXED ? d->min : d->max;
	size_t k;

	if (d->kind == BRIM_DIST_HISTOGRAM)
		for (k = 0, largest = 0; k < d->bin_count; k++)
			largest = BRIM__MAX(largest, d->bins[k].to);
	if (largest <= BRIM_MAX_BYTES / 2)
		return 0;
	return refuse(e, "files are at most 2^62 bytes large, as appending "
			 "may double them");
}

static int check_extension(const struct brim_name_weight *x, struct brim_err *e)
{
	if (!x->name || strlen(x->name) > BRIM__EXTENSION_BYTES_MAX ||
	    strchr(x->name, '/'))
		return refuse(e, "an extension is at most 31 bytes long, "
				 "without a slash");
	if (x->name[0] && x->name[0] != '.')
		return brim__errf(e, -EINVAL, "fileset",
				  "extension '%s' does not begin with a dot",
				  x->name);
	if (!(x->weight >= 0) || x->weight - x->weight != 0)
		return brim__errf(e, -EINVAL, "fileset",
				  "the weight of extension '%s' is no number "
				  ">= 0",
				  x->name);
	return 0;
}

static int take_extensions(struct brim_fileset *fs,
			   const struct brim_fileset_options *o,
			   struct brim_err *e)
{
	size_t k, n = o->extension_count;
	double sum = 0, upto = 0;
	int ret;

	for (k = 0; k < n; k++) {
		ret = check_extension(&o->extensions[k], e);
		if (ret < 0)
			return ret;
		sum += o->extensions[k].weight;
	}
	if (n && (!(sum > 0) || sum - sum != 0))
		return refuse(e, "the weights of the extensions are all 0, or "
				 "too much");
	fs->extensions = calloc(n + 1, sizeof(*fs->extensions));
	fs->extension_upto = calloc(n + 1, sizeof(*fs->extension_upto));
	if (!fs->extensions || !fs->extension_upto)
		return brim__err(e, -ENOMEM, "fileset", "extensions");
	fs->extension_count = n;
	for (k = 0; k < n; k++) {
		fs->extensions[k] = strdup(o->extensions[k].name);
		if (!fs->extensions[k])
			return brim__err(e, -ENOMEM, "fileset", "extensions");
		upto += o->extensions[k].weight;
		fs->extension_upto[k] = brim__part_of_bits(upto / sum);
	}
	return 0;
}

static void take_shape(struct brim_fileset *fs,
		       const struct brim_fileset_options *o)
{
	uint32_t k;

	fs->holders = 1;
	fs->seed = o->seed;
	fs->streams = BRIM__MAX(o->streams, 1);
	fs->depth = BRIM__MAX(o->depth, 1);
	fs->fan_out = o->fan_out ? o->fan_out : 32;
	fs->files_per_dir = o->files_per_dir ? o->files_per_dir : 1000;
	fs->content = o->content ? o->content : BRIM_CONTENT_RANDOM;
	/* A multiple of 8, as content is made of such words. */
	fs->random_bytes =
		(uint32_t)((o->compress_ppm * UINT64_C(512) + 500000) /
			   1000000) *
		8;
	/* Beyond 2^32, the number of names, it makes no difference. */
	fs->top_span = 1;
	for (k = 1; k < fs->depth && fs->top_span <= UINT32_MAX; k++)
		fs->top_span *= fs->fan_out;
}

int brim_fileset_create(struct brim_fileset **out,
			const struct brim_fileset_options *options,
			struct brim_err *e)
{
	struct brim_fileset_options o;
	struct brim_fileset *fs;
	int ret;

	*out = NULL;
	ret = brim__options_take(&o, sizeof(o), options, "fileset", e);
	if (ret < 0)
		return ret;
	ret = check(&o, e);
	if (!ret)
		ret = check_largest(o.sizes, e);
	if (ret < 0)
		return ret;
	fs = calloc(1, sizeof(*fs));
	if (!fs)
		return brim__err(e, -ENOMEM, "fileset", "fileset");
	take_shape(fs, &o);
	ret = brim__dist_prepare(&fs->sizes, o.sizes, e);
	if (!ret)
		ret = take_extensions(fs, &o, e);
	if (ret < 0) {
		brim_fileset_free(fs);
		return ret;
	}
	*out = fs;
	return 0;
}

void brim__fileset_hold(const struct brim_fileset *fs)
{
	/* How many hold it is no part of what the fileset says. */
	uint32_t *holders = (uint32_t *)(uintptr_t)&fs->holders;

	__atomic_add_fetch(holders, 1, __ATOMIC_RELAXED);
}

void brim_fileset_free(struct brim_fileset *fs)
{
	size_t k;

	if (!fs || __atomic_sub_fetch(&fs->holders, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	brim__dist_release(&fs->sizes);
	for (k = 0; k < fs->extension_count; k++)
		free(fs->extensions[k]);
	free(fs->extensions);
	free(fs->extension_upto);
	free(fs);
}

uint32_t brim_fileset_streams(const struct brim_fileset *fs)
{
	return fs->streams;
}

/* ------------------------------------------------------------------- draws */

uint64_t brim__file_key(const struct brim_fileset *fs, uint32_t stream,
			uint32_t id, uint16_t version)
{
	return brim__mix_in(brim__mix_in(fs->seed, (uint64_t)stream << 32 | id),
			    version);
}

uint64_t brim_fileset_size(const struct brim_fileset *fs, uint32_t stream,
			   uint32_t id, uint16_t version)
{
	uint64_t key = brim__file_key(fs, stream, id, version);

	return brim__dist_draw(&fs->sizes, brim__mix_in(key, DRAW_SIZE));
}

void brim__overwrite_range(uint64_t file_key, uint64_t blocks, uint32_t k,
			   uint64_t *first, uint64_t *count)
{
	uint64_t bits = brim__mix_in(file_key + DRAW_OVERWRITE, k);

	/* 16 blocks: 64 KiB, as databases and copies write. */
	*count = 1 + brim__mix_below(bits << 32, BRIM__MIN(blocks, 16));
	*first = brim__mix_below(bits, blocks - *count + 1);
}

/* ------------------------------------------------------------------- names */

/* The same for all versions of a file. */
static const char *extension(const struct brim_fileset *fs, uint32_t stream,
			     uint32_t id)
{
	uint64_t bits;
	size_t k;

	if (!fs->extension_count)
		return "";
	bits = brim__mix_in(brim__file_key(fs, stream, id, 0), DRAW_EXTENSION);
	for (k = 0; k < fs->extension_count - 1; k++)
		if (bits < fs->extension_upto[k])
			break;
	return fs->extensions[k];
}

/* Decimal, without the cost of printf: names are made for every operation. */
static char *put_number(char *at, char letter, uint64_t n)
{
	char digits[20];
	int k = 0;

	*at++ = letter;
	do
		digits[k++] = (char)('0' + n % 10);
	while (n /= 10);
	while (k > 0)
		*at++ = digits[--k];
	return at;
}

/*
 * The lowest directory's number, written in base fan_out, is the path; its
 * highest digit has no bound.
 */
static char *put_dirs(const struct brim_fileset *fs, char *at, uint32_t id)
{
	uint64_t leaf = id / fs->files_per_dir, span = fs->top_span;
	uint32_t level;

	for (level = 0; level < fs->depth; level++) {
		*at++ = '/';
		at = put_number(at, 'd', leaf / span);
		leaf %= span;
		span = BRIM__MAX(span / fs->fan_out, 1);
	}
	return at;
}

int brim_fileset_path(const struct brim_fileset *fs, uint32_t stream,
		      uint32_t id, int is_temporary, char *buf,
		      size_t buf_bytes)
{
	/* 12 levels of 12 bytes, stream, file, dot, extension, ".tmp". */
	char path[256], *at = path;
	const char *ext = extension(fs, stream, id);
	size_t len;

	at = put_dirs(fs, put_number(at, 's', stream), id);
	*at++ = '/';
	if (is_temporary)
		*at++ = '.';
	at = put_number(at, 'f', id);
	len = strlen(ext);
	memcpy(at, ext, len);
	at += len;
	if (is_temporary) {
		memcpy(at, ".tmp", 4);
		at += 4;
	}
	*at = '\0';
	len = (size_t)(at - path);
	if (buf_bytes)
		memcpy(buf, path, BRIM__MIN(len + 1, buf_bytes));
	if (buf_bytes && len >= buf_bytes)
		buf[buf_bytes - 1] = '\0';
	return (int)len;
}

/* Reads digits up to `max`; NULL where there are none. */
static const char *take_number(const char *at, uint32_t *out)
{
	uint64_t n = 0;

	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++) {
		n = n * 10 + (uint64_t)(*at - '0');
		if (n > UINT32_MAX)
			return NULL;
	}
	*out = (uint32_t)n;
	return at;
}

/* What is read is right if the same path comes of it. */
int brim_fileset_parse(const struct brim_fileset *fs, const char *path,
		       uint32_t *stream, uint32_t *id, int *is_temporary)
{
	const char *name = strrchr(path, '/');
	uint32_t of_stream, of_id;
	char again[256];
	int is_temp;

	if (path[0] != 's' || !take_number(path + 1, &of_stream) || !name)
		return -ENOENT;
	name++;
	is_temp = *name == '.';
	name += is_temp;
	if (*name != 'f' || !take_number(name + 1, &of_id) ||
	    of_stream >= fs->streams)
		return -ENOENT;
	brim_fileset_path(fs, of_stream, of_id, is_temp, again, sizeof(again));
	if (strcmp(again, path))
		return -ENOENT;
	*stream = of_stream;
	*id = of_id;
	*is_temporary = is_temp;
	return 0;
}

uint32_t brim__fileset_new_level(const struct brim_fileset *fs, uint32_t id)
{
	uint64_t leaf = id / fs->files_per_dir, before, span = fs->top_span;
	uint32_t level;

	if (!id)
		return 0;
	before = (id - 1) / fs->files_per_dir;
	for (level = 1; level <= fs->depth; level++) {
		if (leaf / span != before / span)
			break;
		span = BRIM__MAX(span / fs->fan_out, 1);
	}
	return level;
}
