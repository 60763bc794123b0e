/* SPDX-License-Identifier: MIT */
/*
 * overlay_helper.h: what test_overlay*.c share: a base whose bytes are known,
 * opening overlays, a model in memory and random operations on both.
 */
#ifndef BRIM_OVERLAY_HELPER_H
#define BRIM_OVERLAY_HELPER_H

#include "device_helper.h"
#include "device_overlay.h"

/* Not a multiple of the block: 1 MiB and 1000 bytes. */
#define VOLUME_BYTES ((1u << 20) + 1000u)

static char base_path[PATH_BYTES], overlay_path[PATH_BYTES];

static uint8_t base_byte(uint64_t at)
{
	return (uint8_t)((at * 0x9e3779b97f4a7c15u) >> 56 | 1);
}

/* A file of VOLUME_BYTES in which no byte is zero. */
static void make_base(void)
{
	uint8_t *bytes = malloc(VOLUME_BYTES);
	uint64_t k;

	if (!bytes)
		exit(1);
	for (k = 0; k < VOLUME_BYTES; k++)
		bytes[k] = base_byte(k);
	snprintf(base_path, sizeof(base_path), "%s/base", dir);
	snprintf(overlay_path, sizeof(overlay_path), "%s/overlay", dir);
	make(base_path, VOLUME_BYTES, bytes, VOLUME_BYTES);
	free(bytes);
	unlink(overlay_path);
}

static int overlay_over(struct brim_device **d, struct brim_device *base,
			const char *path, uint32_t flags)
{
	memset(&err, 0, sizeof(err));
	return brim_device_open_overlay(d, base, path, flags, &err);
}

/* Over the base file; the base's own handle is given up at once. */
static int overlay_open(struct brim_device **d, uint32_t flags)
{
	struct brim_device *base;
	int ret = open_at(&base, base_path, 0, 0);

	*d = NULL;
	if (ret < 0)
		return ret;
	ret = overlay_over(d, base, overlay_path, flags);
	brim_device_close(base);
	return ret;
}

static inline struct brim_device *overlay_must(uint32_t flags)
{
	struct brim_device *d;

	if (overlay_open(&d, flags) < 0) {
		printf("# %s\n", err.msg);
		ok(0, "overlay opens", "%s", err.msg);
		exit(tap_end());
	}
	return d;
}

/* What device_helper.h has besides. */
static inline void overlay_needs_not(void)
{
	(void)refused;
	(void)file_size;
}

/* ------------------------------------------------------- random operations */

enum op { OP_WRITE, OP_ZERO, OP_DISCARD, OP_FLUSH, OP_READ };

struct step {
	enum op op;
	uint64_t off, len;
	uint8_t fill; /* the first byte written; the next is one more */
};

static inline struct step random_step(uint64_t *seed, uint64_t size_bytes)
{
	struct step s = { .fill = (uint8_t)tap_random(seed) };
	uint64_t max = tap_below(seed, 4) ? 3 * 4096 : 200000;

	s.op = (enum op)(tap_below(seed, 16) < 9 ? OP_WRITE
						 : 1 + tap_below(seed, 4));
	s.off = tap_below(seed, size_bytes);
	if (tap_below(seed, 2))
		s.off -= s.off % 4096;
	s.len = 1 + tap_below(seed, max);
	if (tap_below(seed, 3) == 0)
		s.len = (s.len + 4095) / 4096 * 4096;
	if (s.len > size_bytes - s.off)
		s.len = size_bytes - s.off;
	return s;
}

/* What a step makes of the model; discarding leaves parts of blocks alone. */
static inline void model_step(uint8_t *model, const struct step *s,
			      uint64_t size_bytes)
{
	uint64_t from = s->off, to = s->off + s->len, k;

	if (s->op == OP_WRITE)
		for (k = 0; k < s->len; k++)
			model[s->off + k] = (uint8_t)(s->fill + k);
	if (s->op == OP_DISCARD) {
		from = (from + 4095) / 4096 * 4096;
		to = to == size_bytes ? to : to / 4096 * 4096;
	}
	if ((s->op == OP_ZERO || s->op == OP_DISCARD) && from < to)
		memset(model + from, 0, to - from);
}

/* 0, -errno, or 1 where a read differs from the model. */
static inline int device_step(struct brim_device *d, const struct step *s,
			      const uint8_t *model, uint8_t *buf)
{
	uint64_t k;

	switch (s->op) {
	case OP_WRITE:
		for (k = 0; k < s->len; k++)
			buf[k] = (uint8_t)(s->fill + k);
		return brim_device_write(d, s->off, s->len, buf, &err);
	case OP_ZERO:
		return brim_device_zero(d, s->off, s->len, &err);
	case OP_DISCARD:
		return brim_device_discard(d, s->off, s->len, &err);
	case OP_FLUSH:
		return brim_device_flush(d, &err);
	default:
		k = (uint64_t)brim_device_read(d, s->off, s->len, buf, &err);
		return k ? (int)k : !!memcmp(buf, model + s->off, s->len);
	}
}

/* Is all of the device what the model says? */
static inline bool is_model(struct brim_device *d, const uint8_t *model,
			    uint8_t *buf, uint64_t size_bytes)
{
	return brim_device_read(d, 0, size_bytes, buf, &err) == 0 &&
	       !memcmp(buf, model, size_bytes);
}

/* A plan of 64 groups of 16 MiB, each with a numbered block in front. */
static inline struct brim_plan *groups_plan(uint8_t mark)
{
	struct brim_plan *p;
	struct brim_stamp *s;

	if (brim_plan_create(&p, "groups", UINT64_C(1) << 30, NULL) < 0 ||
	    brim_stamp_create(&s, NULL) < 0 ||
	    brim_stamp_region(s, 0, 4096, "header", NULL) < 0 ||
	    brim_stamp_set_bytes(s, 8, &mark, 1, NULL) < 0 ||
	    brim_stamp_set_int(s, 0, 4, BRIM_BIG, 7, 3, "number", NULL) < 0 ||
	    brim_stamp_seal(s, 0, 64, NULL) < 0 ||
	    brim_plan_each(p, s, 0, 16 << 20, "groups", 1, NULL) < 0 ||
	    brim_plan_seal(p, NULL) < 0)
		exit(1);
	return p;
}

#endif /* BRIM_OVERLAY_HELPER_H */
