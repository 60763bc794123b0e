/* SPDX-License-Identifier: MIT */
/*
 * run_write.c: opens runs of a plan, and the kind that writes it. Zeros are
 * left to the target; where it cannot, they are written. Offsets in bytes.
 */
#include <errno.h>
#include <string.h>

#include "run.h"

/*
 * Zeros that are known to be carried (read back, or written where the target
 * cannot make them) go in parts of at least this size, even where the plan's
 * own I/Os are smaller. 128 of them stay within the usual RLIMIT_MEMLOCK of
 * 8 MiB.
 */
#define ZERO_PART_BYTES (64u << 10)

/* ----------------------------------------------------------------- writing */

/* The next part of the range of zeros that is being written. */
static void write_zeros(struct brim_run *r, struct brim__io *io)
{
	struct brim__run_slot *slot = &r->slots[io->slot];
	uint64_t part = BRIM__MIN(r->zeros.len_bytes, r->io_bytes);

	slot->desc = r->zeros;
	slot->desc.len_bytes = part;
	if (!slot->is_zeros)
		memset(io->buf, 0, r->io_bytes);
	slot->is_zeros = true;
	slot->state = (struct brim__slot_state){ 0 };
	io->op = BRIM__WRITE;
	io->off_bytes = r->zeros.off_bytes;
	io->len_bytes = part;
	r->zeros.off_bytes += part;
	r->zeros.len_bytes -= part;
}

/* A block device zeroes whole sectors, also where it is open buffered. */
static bool can_zero(const struct brim_run *r, const struct brim__desc *d)
{
	const struct brim_device_info *info = &r->dev->info;

	return info->kind != BRIM_KIND_BLOCK ||
	       (d->off_bytes | d->len_bytes) % info->logical_sector_bytes == 0;
}

static int write_next(struct brim_run *r, struct brim__io *io)
{
	struct brim__run_slot *slot = &r->slots[io->slot];
	struct brim__desc *d = &slot->desc;

	if (!r->zeros.len_bytes && r->redo_count)
		r->zeros = r->redo[--r->redo_count];
	if (!r->zeros.len_bytes) {
		if (!brim__cursor_next(&r->cursor, d))
			return 0;
		if (d->is_zero && (r->cannot_zero || !can_zero(r, d)))
			r->zeros = *d;
	}
	if (r->zeros.len_bytes) {
		write_zeros(r, io);
		return 1;
	}
	io->op = d->is_zero ? BRIM__ZERO : BRIM__WRITE;
	io->off_bytes = d->off_bytes;
	io->len_bytes = d->len_bytes;
	if (d->is_zero)
		return 1;
	slot->is_zeros = false;
	brim__plan_render(r->plan, d, io->buf, &slot->state);
	return 1;
}

static void write_done(struct brim_run *r, struct brim__io *io)
{
	struct brim__desc *d = &r->slots[io->slot].desc;

	if (io->result < 0) {
		/* A range of zeros that the target cannot make. */
		r->cannot_zero = true;
		r->redo[r->redo_count++] = *d;
		r->is_dry = false;
		return;
	}
	r->groups_done += d->groups;
}

const struct brim__run_ops brim__run_write = {
	.next = write_next,
	.done = write_done,
	.flushes = true,
};

/* ----------------------------------------------------------------- opening */

/* What can be refused before any I/O. */
static int open_check(const struct brim_plan *p, const struct brim_device *d,
		      const struct brim_plan_totals *t, enum brim_run_mode mode,
		      struct brim_err *e)
{
	const struct brim_device_info *info = &d->info;

	if (mode != BRIM_RUN_WRITE && mode != BRIM_RUN_VERIFY)
		return brim__errf(e, -EINVAL, "open",
				  "a run's mode is "
				  "BRIM_RUN_WRITE or BRIM_RUN_VERIFY");
	if (!p->sealed)
		return brim__errf(e, -EINVAL, "open",
				  "plan '%s' is not sealed "
				  "yet",
				  p->name);
	if (info->size_bytes < p->size_bytes)
		return brim__errf(e, -ENOSPC, "open",
				  "%s has %llu bytes, but "
				  "plan '%s' needs %llu",
				  info->path,
				  (unsigned long long)info->size_bytes, p->name,
				  (unsigned long long)p->size_bytes);
	if (mode == BRIM_RUN_WRITE && !info->is_writable)
		return brim__errf(e, -EROFS, "open",
				  "%s is open for reading "
				  "only",
				  info->path);
	if (info->align_bytes > 1 && t->align_bytes % info->align_bytes)
		return brim__errf(e, -EINVAL, "open",
				  "%s needs multiples of "
				  "%u bytes, but plan '%s' has I/Os that are "
				  "only multiples of %u",
				  info->path, info->align_bytes, p->name,
				  t->align_bytes);
	return 0;
}

/* The largest I/O of the plan, of at most max_io_bytes. */
static uint32_t open_io_bytes(const struct brim_plan *p, bool carries_zeros,
			      uint32_t max_io_bytes)
{
	uint64_t largest = BRIM__BUFFER_ALIGN, len;
	size_t i, x;

	for (i = 0; i < p->piece_count; i++) {
		const struct brim__piece *piece = &p->pieces[i];
		const struct brim_stamp *s = piece->stamp;

		if (piece->is_zero) {
			if (carries_zeros)
				largest = BRIM__MAX(largest, ZERO_PART_BYTES);
			continue;
		}
		for (x = 0; x < s->extent_count; x++)
			largest = BRIM__MAX(largest, s->extents[x].len_bytes);
		/* Side by side: as many instances as fit. */
		len = s->extents[0].len_bytes;
		if (s->extent_count == 1 && len == piece->stride_bytes &&
		    len <= max_io_bytes)
			largest = BRIM__MAX(largest,
					    len * BRIM__MIN(max_io_bytes / len,
							    piece->count));
	}
	brim_align_up(largest, BRIM__BUFFER_ALIGN, &largest);
	return (uint32_t)BRIM__MIN(largest, max_io_bytes);
}

/* Whether the plan's largest piece would have to be read from a disk. */
static bool open_is_cold(const struct brim_plan *p, const struct brim_device *d)
{
	const struct brim__piece *most = NULL;
	size_t i;

	for (i = 0; i < p->piece_count; i++)
		if (!p->pieces[i].is_zero &&
		    (!most || p->pieces[i].count > most->count))
			most = &p->pieces[i];
	return most &&
	       brim__device_is_cold(d,
				    most->off_bytes +
					    most->stride_bytes * most->first +
					    brim__stamp_begin(most->stamp),
				    most->stride_bytes, most->count);
}

int brim_run_open(struct brim_run **out, const struct brim_plan *p,
		  struct brim_device *d, enum brim_run_mode mode,
		  const struct brim_run_options *o, struct brim_err *e)
{
	bool writes = mode == BRIM_RUN_WRITE;
	struct brim_run_options opts;
	struct brim_plan_totals t;
	uint32_t io_bytes;
	uint64_t slot_bytes;
	int ret;

	*out = NULL;
	ret = brim__run_options(&opts, o, d, e);
	if (ret < 0)
		return ret;
	brim_plan_totals(p, opts.max_io_bytes, &t);
	ret = open_check(p, d, &t, mode, e);
	if (ret < 0)
		return ret;
	/* Registering buffers pins them, which is what a short run waits for. */
	io_bytes =
		open_io_bytes(p, !writes || !d->ops->zero, opts.max_io_bytes);
	/* Verifying keeps what it expects behind what it reads. */
	brim_align_up(io_bytes, BRIM__BUFFER_ALIGN, &slot_bytes);
	slot_bytes *= writes ? 1 : 2;
	ret = brim__run_create(
		out, writes ? &brim__run_write : &brim__run_verify, d,
		(uint32_t)slot_bytes, !writes && open_is_cold(p, d), &opts, e);
	if (ret < 0)
		return ret;
	brim__plan_hold(p);
	(*out)->plan = p;
	(*out)->phase_count = (uint32_t)p->phase_count;
	(*out)->io_bytes = io_bytes;
	(*out)->groups_total = t.groups;
	(*out)->ios_total = t.writes + t.zero_ranges;
	(*out)->bytes_total = t.write_bytes + t.zero_bytes;
	return 0;
}
