/* SPDX-License-Identifier: MIT */
/*
 * run_verify.c: the kind of run that reads what a plan would have written and
 * compares it with what the plan says shall be there at the end. Rendering and
 * comparing happen in the check, so in the engine's threads where it has some.
 * Each slot's buffer is two: what was read, and behind it what is expected.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

static uint8_t *expected_of(const struct brim_run *r, struct brim__io *io)
{
	return io->buf + (r->io_bytes + BRIM__BUFFER_ALIGN - 1) /
				 BRIM__BUFFER_ALIGN * BRIM__BUFFER_ALIGN;
}

/* -------------------------------------------------------------- comparing */

/* Whether instance i of a piece has the byte at an offset of the device. */
static bool piece_has(const struct brim__piece *p, uint64_t i, uint64_t at)
{
	size_t x;

	if (p->is_zero)
		return true;
	at -= p->off_bytes + p->stride_bytes * i;
	for (x = 0; x < p->stamp->extent_count; x++)
		if (at - p->stamp->extents[x].off_bytes <
		    p->stamp->extents[x].len_bytes)
			return true;
	return false;
}

/* Whether a later phase writes over this byte: then it is for that to miss. */
static bool is_rewritten(const struct brim_plan *p, const struct brim__desc *d,
			 uint64_t at)
{
	uint64_t lo, hi;
	size_t k;

	for (k = d->piece + 1; k < p->piece_count; k++) {
		const struct brim__piece *later = &p->pieces[k];

		if (later->phase == p->pieces[d->piece].phase)
			continue;
		brim__piece_touch(later, at, at + 1, &lo, &hi);
		for (; lo < hi; lo++)
			if (piece_has(later, lo, at))
				return true;
	}
	return false;
}

static void verify_report(struct brim_run *r, const struct brim__io *io,
			  const uint8_t *want)
{
	const struct brim__desc *d = &r->slots[io->slot].desc;
	struct brim_mismatch m = { .group = d->instance };
	uint64_t at = 0;

	while (at < d->len_bytes &&
	       (io->buf[at] == want[at] ||
		is_rewritten(r->plan, d, d->off_bytes + at)))
		at++;
	if (at == d->len_bytes)
		return;
	if (d->instances > 1)
		m.group += at / (d->len_bytes / d->instances);
	m.off_bytes = d->off_bytes + at;
	m.piece = r->plan->pieces[d->piece].name;
	m.what = brim__plan_label(r->plan, d, m.off_bytes);
	m.expected = want[at];
	m.found = io->buf[at];
	m.rule = "=";
	brim__run_mismatch(r, &m);
}

static bool is_zero(const uint8_t *buf, uint64_t len_bytes)
{
	return !buf[0] && !memcmp(buf, buf + 1, (size_t)len_bytes - 1);
}

static void verify_check(void *ctx, struct brim__io *io)
{
	struct brim_run *r = ctx;
	struct brim__run_slot *slot = &r->slots[io->slot];
	uint8_t *want = expected_of(r, io);

	if (slot->desc.is_zero) {
		if (is_zero(io->buf, io->len_bytes))
			return;
		slot->state = (struct brim__slot_state){ 0 };
		brim_plan_read(r->plan, io->off_bytes, (size_t)io->len_bytes,
			       want, NULL);
	} else {
		brim__plan_expected(r->plan, &slot->desc, want, &slot->state);
	}
	if (memcmp(io->buf, want, (size_t)io->len_bytes))
		verify_report(r, io, want);
}

/* ---------------------------------------------------------------- reading */

/* Drops the front of the range of zeros, up to `to`: it is known to be zero. */
static void verify_skip(struct brim_run *r, uint64_t to)
{
	uint64_t skip = to - r->zeros.off_bytes;

	r->zeros.off_bytes += skip;
	r->zeros.len_bytes -= skip;
	r->skipped_bytes += skip;
}

/* Skips a hole of a regular file: it reads as zeros, however long it is. */
static void verify_skip_hole(struct brim_run *r)
{
	uint64_t end = r->zeros.off_bytes + r->zeros.len_bytes;
	uint64_t align =
		BRIM__MAX(BRIM__BUFFER_ALIGN, r->dev->info.align_bytes);
	off_t data, hole;

	if (r->cannot_seek || r->dev->fd < 0 ||
	    r->dev->info.kind != BRIM_KIND_FILE ||
	    (r->zeros.off_bytes < r->data_to))
		return;
	data = lseek(r->dev->fd, (off_t)r->zeros.off_bytes, SEEK_DATA);
	if (data < 0 && errno == ENXIO) {
		verify_skip(r, end);
		return;
	}
	hole = data < 0 ? -1 : lseek(r->dev->fd, data, SEEK_HOLE);
	if (hole < 0) {
		r->cannot_seek = true;
		return;
	}
	r->data_to = (uint64_t)hole;
	/* Within the range, and where direct I/O may begin. */
	data = (off_t)brim__align_down((uint64_t)data, align);
	if ((uint64_t)data > r->zeros.off_bytes)
		verify_skip(r, BRIM__MIN((uint64_t)data, end));
}

static int verify_next(struct brim_run *r, struct brim__io *io)
{
	struct brim__desc *d = &r->slots[io->slot].desc;

	if (r->zeros.len_bytes)
		verify_skip_hole(r);
	while (!r->zeros.len_bytes) {
		if (!brim__cursor_next(&r->cursor, d))
			return 0;
		if (!d->is_zero)
			break;
		r->zeros = *d;
		r->data_to = 0;
		verify_skip_hole(r);
	}
	if (r->zeros.len_bytes) {
		*d = r->zeros;
		d->len_bytes = BRIM__MIN(d->len_bytes, r->io_bytes);
		r->zeros.off_bytes += d->len_bytes;
		r->zeros.len_bytes -= d->len_bytes;
	}
	io->op = BRIM__READ;
	io->off_bytes = d->off_bytes;
	io->len_bytes = d->len_bytes;
	return 1;
}

static void verify_done(struct brim_run *r, struct brim__io *io)
{
	r->groups_done += r->slots[io->slot].desc.groups;
}

const struct brim__run_ops brim__run_verify = {
	.next = verify_next,
	.done = verify_done,
	.check = verify_check,
};
