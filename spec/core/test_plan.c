/* SPDX-License-Identifier: MIT */
/*
 * test_plan.c: stamps, plans and images against a naive model: random plans are
 * drawn into plain memory piece by piece, byte by byte, with checksums computed
 * the long way, and everything the library says about them must agree.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../core/image.h"
#include "../../core/plan.h"
#include "tap.h"

#define VOLUME (1u << 18)

static uint64_t rnd;

/* The naive model of one stamp: what was asked for, in the order asked. */
struct model_stamp {
	uint64_t first, count, off, stride;
	uint32_t regions;
	struct {
		uint64_t off;
		uint32_t len;
		uint8_t *bytes;
	} region[6];
	uint32_t ints;
	struct {
		uint64_t off;
		uint32_t width;
		enum brim_endian endian;
		int64_t base, step;
	} value[32];
	uint32_t sums;
	struct {
		uint64_t off, from;
		uint32_t len;
		struct brim_checksum how;
	} sum[6];
};

static uint8_t draw[VOLUME], phase_seen[VOLUME];

static void model_draw(const struct model_stamp *m, uint64_t i, uint8_t *to)
{
	uint64_t base = m->off + m->stride * i;
	uint32_t k;

	for (k = 0; k < m->regions; k++)
		memcpy(to + base + m->region[k].off, m->region[k].bytes,
		       m->region[k].len);
	for (k = 0; k < m->ints; k++)
		brim__store(to + base + m->value[k].off, m->value[k].width,
			    m->value[k].endian,
			    (uint64_t)m->value[k].base +
				    (uint64_t)m->value[k].step * i);
	for (k = 0; k < m->sums; k++) {
		uint8_t *at = to + base + m->sum[k].off;

		memset(at, 0, 4);
		brim__store(at, 4, m->sum[k].how.endian,
			    brim_crc_portable(
				    m->sum[k].how.kind, m->sum[k].how.seed,
				    to + base + m->sum[k].from, m->sum[k].len) ^
				    m->sum[k].how.xor_out);
	}
}

static void model_region(struct model_stamp *m, struct brim_stamp *s,
			 uint64_t off, uint32_t len)
{
	uint32_t k, n = m->regions++;
	uint64_t at;

	m->region[n].off = off;
	m->region[n].len = len;
	m->region[n].bytes = calloc(1, len);
	brim_stamp_region(s, off, len, "region", NULL);
	for (k = 0; k < len; k++)
		if (tap_below(&rnd, 3) == 0)
			m->region[n].bytes[k] = (uint8_t)tap_random(&rnd);
	brim_stamp_set_bytes(s, off, m->region[n].bytes, len, NULL);
	at = off;
	if (len >= 16 && tap_below(&rnd, 4)) {
		struct brim_checksum how = {
			tap_below(&rnd, 2) ? BRIM_CRC32C : BRIM_CRC32,
			(uint32_t)tap_random(&rnd), (uint32_t)tap_random(&rnd),
			tap_below(&rnd, 2) ? BRIM_BIG : BRIM_LITTLE
		};

		m->sum[m->sums].off = off + 4;
		m->sum[m->sums].from = off;
		m->sum[m->sums].len = len;
		m->sum[m->sums++].how = how;
		brim_stamp_set_checksum(s, off + 4, off, len, &how, NULL);
		at = off + 8;
	}
	while (m->ints < 30) {
		uint32_t width = 1u << tap_below(&rnd, 4);
		uint64_t top = width == 8 ? 1ull << 62 : 1ull << (8 * width);
		int64_t base = (int64_t)tap_below(&rnd, top / 2);
		int64_t step = (int64_t)tap_below(
			&rnd, top / 2 / (m->first + m->count) + 1);

		at += tap_below(&rnd, 9);
		if (at + width > off + len)
			break;
		if (tap_below(&rnd, 5) == 0) {
			base = (int64_t)(top / 2) + base;
			step = -step;
		}
		m->value[m->ints].off = at;
		m->value[m->ints].width = width;
		m->value[m->ints].endian = tap_below(&rnd, 2) ? BRIM_BIG
							      : BRIM_LITTLE;
		m->value[m->ints].base = base;
		m->value[m->ints].step = step;
		brim_stamp_set_int(s, at, width, m->value[m->ints].endian, base,
				   step, "v", NULL);
		m->ints++;
		at += width;
	}
}

/* A stamp within `span` bytes, sealed, and its model. */
static struct brim_stamp *model_make(struct model_stamp *m, uint64_t first,
				     uint64_t count, uint32_t span)
{
	struct brim_err e = { 0 };
	struct brim_stamp *s;
	uint64_t at = 0;
	bool whole = tap_below(&rnd, 3) == 0;

	memset(m, 0, sizeof(*m));
	m->first = first;
	m->count = count;
	brim_stamp_create(&s, NULL);
	while (m->regions < 5 && at < span) {
		uint64_t left = span - at;
		uint64_t len = whole ? left : 1 + tap_below(&rnd, left);

		model_region(m, s, at, (uint32_t)len);
		at += len + (tap_below(&rnd, 2) ? 0 : tap_below(&rnd, 64));
	}
	if (brim_stamp_seal(s, first, count, &e) < 0) {
		printf("# seal: %s\n", e.msg);
		brim_stamp_free(s);
		return NULL;
	}
	return s;
}

static void model_free(struct model_stamp *m)
{
	uint32_t k;

	for (k = 0; k < m->regions; k++)
		free(m->region[k].bytes);
}

/* Runs the cursor over all phases into memory, as a device would see it. */
static const char *replay(const struct brim_plan *p, uint32_t max_io,
			  uint8_t *to, uint64_t *writes, uint64_t *groups)
{
	struct brim__slot_state state = { 0 };
	static uint8_t slot[VOLUME], slot2[VOLUME];
	struct brim__cursor c;
	struct brim__desc d;
	uint64_t k;
	uint32_t phase;

	for (phase = 0; phase < p->phase_count; phase++) {
		memset(phase_seen, 0, sizeof(phase_seen));
		brim__cursor_init(&c, p, phase, max_io);
		while (brim__cursor_next(&c, &d)) {
			if (!d.len_bytes || d.off_bytes + d.len_bytes > VOLUME)
				return "an I/O outside of the volume";
			for (k = 0; k < d.len_bytes; k++)
				if (phase_seen[d.off_bytes + k]++)
					return "a byte twice in one phase";
			if (d.is_zero) {
				memset(to + d.off_bytes, 0, d.len_bytes);
				continue;
			}
			if (d.len_bytes > max_io)
				return "an I/O longer than asked for";
			brim__plan_render(p, &d, slot, &state);
			memcpy(to + d.off_bytes, slot, d.len_bytes);
			memset(slot2, 0xee, d.len_bytes);
			brim__plan_expected(p, &d, slot2,
					    &(struct brim__slot_state){ 0 });
			if (memcmp(slot2, draw + d.off_bytes, d.len_bytes))
				return "expected differs from the model";
			++*writes;
			*groups += d.groups;
		}
	}
	return NULL;
}

static const char *check_reads(const struct brim_plan *p)
{
	static uint8_t buf[VOLUME];
	int n;

	for (n = 0; n < 40; n++) {
		uint64_t off = tap_below(&rnd, VOLUME);
		size_t len = (size_t)tap_below(&rnd, VOLUME - off + 1);

		if (brim_plan_read(p, off, len, buf, NULL) < 0)
			return "read failed";
		if (memcmp(buf, draw + off, len))
			return "read differs from the model";
	}
	return NULL;
}

/*
 * A random plan and its model: some phases; in each, stamps laid in disjoint
 * lanes, singles over whole instances, zeros below.
 */
static struct brim_plan *random_plan(void)
{
	struct brim_plan *p;
	struct model_stamp m;
	struct brim_stamp *s;
	uint64_t i, pieces, n, phases = 1 + tap_below(&rnd, 3);
	struct brim_err e = { 0 };

	memset(draw, 0, sizeof(draw));
	brim_plan_create(&p, "random", VOLUME, NULL);
	brim_plan_set_note(p, "made by", "test_plan", NULL);
	while (phases--) {
		brim_plan_phase(p, "phase", NULL);
		pieces = 1 + tap_below(&rnd, 3);
		for (n = 0; n < pieces; n++) {
			uint64_t lane = VOLUME / pieces;
			uint32_t span = 1 + (uint32_t)tap_below(&rnd, 3000);
			uint64_t first = tap_below(&rnd, 3);
			uint64_t stride = span + tap_below(&rnd, 2) *
							 tap_below(&rnd, 500);
			uint64_t room = lane / stride;
			uint64_t count =
				room > first ? 1 + tap_below(&rnd, room - first)
					     : 0;
			uint64_t off = n * lane;

			if (tap_below(&rnd, 3) == 0) {
				brim_plan_zero(p, off, lane, "zeros", NULL);
				memset(draw + off, 0, lane);
			}
			if (!count || count > 200)
				continue;
			s = model_make(&m, first, count, span);
			m.off = off;
			m.stride = stride;
			for (i = first; s && i < first + count; i++)
				model_draw(&m, i, draw);
			if (s && brim_plan_each(p, s, off, stride, "each", 1,
						&e) < 0)
				printf("# each: %s\n", e.msg);
			model_free(&m);
			if (s && tap_below(&rnd, 2)) {
				/* One instance drawn anew, whole span. */
				uint64_t one = first + tap_below(&rnd, count);
				struct model_stamp o;
				struct brim_stamp *t;

				memset(&o, 0, sizeof(o));
				brim_stamp_create(&t, NULL);
				o.first = one;
				o.count = 1;
				o.off = off;
				o.stride = stride;
				model_region(&o, t, 0, span);
				brim_stamp_seal(t, one, 1, NULL);
				model_draw(&o, one, draw);
				brim_plan_each(p, t, off, stride, "one", 1,
					       NULL);
				model_free(&o);
			}
		}
	}
	if (brim_plan_seal(p, &e) < 0) {
		printf("# seal: %s\n", e.msg);
		brim_plan_free(p);
		return NULL;
	}
	return p;
}

static void test_random_plans(void)
{
	static uint8_t device[VOLUME];
	const char *why = NULL;
	int round;

	for (round = 0; round < 300 && !why; round++) {
		uint32_t max_io = 1 + (uint32_t)tap_below(&rnd, 5000);
		struct brim_plan *p = random_plan(), *q = NULL;
		struct brim_plan_totals t;
		uint64_t writes = 0, groups = 0;
		void *image = NULL;
		size_t len = 0;

		if (!p) {
			why = "a plan did not seal";
			break;
		}
		memset(device, 0, sizeof(device));
		why = check_reads(p);
		if (!why)
			why = replay(p, max_io, device, &writes, &groups);
		if (!why && memcmp(device, draw, VOLUME))
			why = "the device differs from the model";
		brim_plan_totals(p, max_io, &t);
		if (!why && (t.writes != writes || t.groups != groups))
			why = "the totals differ from what was done";
		if (!why && (brim_image_encode(p, &image, &len, NULL) < 0 ||
			     brim_image_decode(&q, image, len, NULL) < 0))
			why = "the image does not come back";
		if (!why)
			why = check_reads(q);
		if (!why && strcmp(brim_plan_note(q, "made by"), "test_plan"))
			why = "the note is lost";
		free(image);
		brim_plan_free(p);
		brim_plan_free(q);
	}
	ok(!why, "300 random plans", "round %d: %s", round, why);
}

/* Damaged images: an error each, never a crash; the sum is made right again. */
static void test_damaged_images(void)
{
	int round, errors = 0, bad = 0;

	for (round = 0; round < 40; round++) {
		struct brim_plan *p = random_plan(), *q;
		void *image = NULL;
		size_t len = 0;
		int n;

		if (!p)
			continue;
		brim_image_encode(p, &image, &len, NULL);
		for (n = 0; n < 100; n++) {
			uint8_t *copy = malloc(len);
			struct brim_err e = { 0 };
			size_t at = 24 + (size_t)tap_below(&rnd, len - 24);
			size_t cut = len;

			memcpy(copy, image, len);
			copy[at] ^= (uint8_t)(1 + tap_below(&rnd, 255));
			if (n % 2) {
				brim__store(
					copy + 12, 4, BRIM_LITTLE,
					brim__image_crc(copy + 24, len - 24));
			} else if (n % 4) {
				cut = (size_t)tap_below(&rnd, len);
			}
			if (brim_image_decode(&q, copy, cut, &e) < 0) {
				errors++;
				bad += q != NULL || !e.msg[0] || !e.code;
			} else if (!(n % 2)) {
				bad++;
			}
			brim_plan_free(q);
			free(copy);
		}
		free(image);
		brim_plan_free(p);
	}
	ok(errors > 1000 && !bad, "damaged images are refused",
	   "%d errors, %d wrong", errors, bad);
}

int main(void)
{
	rnd = tap_seed(20261130);
	test_random_plans();
	test_damaged_images();
	return tap_end();
}
