/* SPDX-License-Identifier: MIT */
/*
 * drive_params.c: the parameters of drives by name and as text, and which
 * values there may be. Called by drive.c, the shim, the nbdkit plugin and the
 * binding. Bytes, nanoseconds.
 */
#include <errno.h>
#include <string.h>

#include "drive.h"

static const struct {
	const char *name;
	size_t at;
} fields[] = {
#define FIELD(x)                                                               \
	{                                                                      \
#x, offsetof(struct brim_drive_params, x)                      \
	}
	FIELD(model),
	FIELD(seed),
	FIELD(size_bytes),
	FIELD(overhead_ns),
	FIELD(read_bytes_per_s),
	FIELD(write_bytes_per_s),
	FIELD(flush_ns),
	FIELD(outer_bytes_per_s),
	FIELD(inner_bytes_per_s),
	FIELD(zones),
	FIELD(seek_min_ns),
	FIELD(seek_max_ns),
	FIELD(rotation_ns),
	FIELD(band_min_bytes),
	FIELD(band_max_bytes),
	FIELD(cache_bytes),
	FIELD(cache_entries),
	FIELD(cache_write_ns),
	FIELD(clean_min_ns),
	FIELD(clean_max_ns),
	FIELD(idle_ns),
	FIELD(is_used),
#undef FIELD
};

#define FIELDS (sizeof(fields) / sizeof(*fields))

static const char *const models[] = { "ideal", "constant", "hdd", "smr" };

const char *brim_drive_model_name(unsigned int model)
{
	return model < BRIM_DRIVE_MODELS ? models[model] : NULL;
}

const char *brim_drive_param_name(unsigned int k)
{
	return k < FIELDS ? fields[k].name : NULL;
}

int brim_drive_param_set(struct brim_drive_params *p, const char *name,
			 uint64_t value, struct brim_err *e)
{
	size_t k;

	for (k = 0; k < FIELDS; k++)
		if (!strcmp(name, fields[k].name)) {
			memcpy((char *)p + fields[k].at, &value, sizeof(value));
			return 0;
		}
	return brim__errf(e, -EINVAL, "drive", "a drive has no parameter '%s'",
			  name);
}

/* One word of the text: a model, or name=value. */
static int take_word(struct brim_drive_params *p, char *word, bool is_first,
		     struct brim_err *e)
{
	char *value = strchr(word, '=');
	uint64_t n;
	int ret;

	if (is_first) {
		for (n = 0; n < BRIM_DRIVE_MODELS; n++)
			if (!strcmp(word, models[n])) {
				p->model = n;
				return 0;
			}
		return brim__errf(e, -EINVAL, "drive",
				  "'%s' is none of ideal, constant, hdd, smr",
				  word);
	}
	if (!value)
		return brim__errf(e, -EINVAL, "drive",
				  "'%s' is no name=value of a drive", word);
	*value++ = 0;
	ret = brim_bytes_parse(value, &n, e);
	return ret < 0 ? ret : brim_drive_param_set(p, word, n, e);
}

int brim_drive_params_parse(struct brim_drive_params *p, const char *text,
			    struct brim_err *e)
{
	bool is_first = true;
	char word[128];
	size_t n;
	int ret;

	memset(p, 0, sizeof(*p));
	p->struct_bytes = sizeof(*p);
	for (;; text += n + 1, is_first = false) {
		n = strcspn(text, ",");
		if (n >= sizeof(word))
			return brim__errf(e, -EINVAL, "drive",
					  "a parameter of %zu bytes", n);
		memcpy(word, text, n);
		word[n] = 0;
		ret = take_word(p, word, is_first, e);
		if (ret < 0 || !text[n])
			return ret;
	}
}

/* ------------------------------------------------------------------- check */

static int wrong(struct brim_err *e, const char *what)
{
	return brim__errf(e, -EINVAL, "drive", "%s", what);
}

static int check_times(const struct brim_drive_params *p, struct brim_err *e)
{
	const uint64_t times[] = { p->overhead_ns,    p->flush_ns,
				   p->seek_min_ns,    p->seek_max_ns,
				   p->rotation_ns,    p->clean_min_ns,
				   p->cache_write_ns, p->clean_max_ns };
	size_t k;

	for (k = 0; k < sizeof(times) / sizeof(*times); k++)
		if (times[k] > BRIM__DRIVE_TIME_MAX)
			return wrong(e, "a time of a drive is at most 68 s "
					"(2^36 ns)");
	if (p->seek_min_ns > p->seek_max_ns)
		return wrong(e, "seek_min_ns is above seek_max_ns");
	return 0;
}

static int check_smr(const struct brim_drive_params *p, struct brim_err *e)
{
	if (p->band_min_bytes < 4096 || p->band_max_bytes < p->band_min_bytes ||
	    p->band_max_bytes >= UINT32_MAX)
		return wrong(e, "band_min_bytes and band_max_bytes: 4 KiB to "
				"less than 4 GiB, in order");
	if (p->size_bytes / p->band_min_bytes > BRIM__DRIVE_BANDS_MAX)
		return wrong(e, "more than 2^24 bands");
	if (!p->cache_bytes || !p->cache_entries ||
	    p->cache_entries > UINT32_MAX)
		return wrong(e, "the cache takes at least one write and one "
				"byte (cache_entries, cache_bytes)");
	if (p->clean_min_ns > p->clean_max_ns)
		return wrong(e, "clean_min_ns is above clean_max_ns");
	return 0;
}

int brim__drive_check(const struct brim_drive_params *p, struct brim_err *e)
{
	int ret = check_times(p, e);

	if (ret < 0)
		return ret;
	if (p->model >= BRIM_DRIVE_MODELS)
		return wrong(e, "model is none of ideal, constant, hdd, smr");
	if (!p->size_bytes || p->size_bytes > BRIM_MAX_BYTES)
		return wrong(e, "size_bytes: a drive has 1 to 2^63-1 bytes");
	if (p->zones > BRIM__DRIVE_ZONES_MAX ||
	    BRIM__MAX(p->zones, 1) > p->size_bytes)
		return wrong(e, "zones: at most 1024, and a byte in each");
	if (p->model < BRIM_DRIVE_HDD)
		return 0;
	if (!p->inner_bytes_per_s ||
	    p->outer_bytes_per_s < p->inner_bytes_per_s ||
	    p->outer_bytes_per_s > UINT64_C(1) << 50)
		return wrong(e, "outer_bytes_per_s and inner_bytes_per_s: not "
				"0, the outer rate the higher one");
	return p->model == BRIM_DRIVE_SMR ? check_smr(p, e) : 0;
}
