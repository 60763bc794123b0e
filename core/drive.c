/* SPDX-License-Identifier: MIT */
/*
 * drive.c: timing models of drives: making one, serving commands, counting.
 * Called by replays, the shim, the nbdkit plugin and the binding. A drive holds
 * no data and does no I/O. Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"

int brim_drive_create(struct brim_drive **out,
		      const struct brim_drive_params *p, struct brim_err *e)
{
	struct brim_drive_params params;
	struct brim_drive *d;
	int ret;

	*out = NULL;
	ret = brim__options_take(&params, sizeof(params), p, "drive", e);
	if (ret == 0)
		ret = brim__drive_check(&params, e);
	if (ret < 0)
		return ret;
	d = calloc(1, sizeof(*d));
	if (!d)
		return brim__err(e, -ENOMEM, "drive", "model");
	d->p = params;
	d->last_op = -1;
	d->zone_bytes = params.size_bytes / BRIM__MAX(params.zones, 1);
	d->run_end[0] = d->run_end[1] = UINT64_MAX;
	if (params.model == BRIM_DRIVE_SMR) {
		ret = brim__smr_create(d, e);
		if (ret < 0) {
			brim_drive_free(d);
			return ret;
		}
	}
	*out = d;
	return 0;
}

void brim_drive_free(struct brim_drive *d)
{
	if (!d)
		return;
	brim__smr_free(d);
	free(d);
}

/* -------------------------------------------------------------------- time */

static bool moves_data(const struct brim_drive_io *io)
{
	return io->op == BRIM_DRIVE_READ || io->op == BRIM_DRIVE_WRITE;
}

/* The slowest that this drive transfers; 0: at once. */
static uint64_t slowest(const struct brim_drive *d, enum brim_drive_op op)
{
	if (d->p.model >= BRIM_DRIVE_HDD)
		return d->p.inner_bytes_per_s;
	if (d->p.model == BRIM_DRIVE_IDEAL)
		return 0;
	return op == BRIM_DRIVE_READ ? d->p.read_bytes_per_s
				     : d->p.write_bytes_per_s;
}

/* All that can be refused is refused here, before anything changes. */
static int check_io(const struct brim_drive *d, const struct brim_drive_io *io)
{
	if ((unsigned int)io->op >= BRIM_DRIVE_OPS)
		return -EINVAL;
	if (io->off_bytes > d->p.size_bytes ||
	    io->len_bytes > d->p.size_bytes - io->off_bytes)
		return -ERANGE;
	if (BRIM__MAX(io->at_ns, d->free_ns) > BRIM__DRIVE_CLOCK_MAX)
		return -EOVERFLOW;
	if (moves_data(io) &&
	    brim__drive_transfer_ns(io->len_bytes, slowest(d, io->op)) >
		    BRIM__DRIVE_CLOCK_MAX / 4)
		return -EOVERFLOW;
	return 0;
}

/* When a command that is begun at t is done. */
static uint64_t serve(struct brim_drive *d, const struct brim_drive_io *io,
		      uint64_t t)
{
	uint64_t transfer;

	if (d->p.model == BRIM_DRIVE_IDEAL)
		return t;
	d->st.overhead_ns += d->p.overhead_ns;
	t += d->p.overhead_ns;
	if (io->op == BRIM_DRIVE_FLUSH)
		return t + d->p.flush_ns;
	if (!moves_data(io) || !io->len_bytes)
		return t;
	if (d->p.model == BRIM_DRIVE_SMR)
		return brim__smr_io(d, io, t);
	if (d->p.model == BRIM_DRIVE_HDD)
		return brim__drive_media(d, io, t);
	transfer = brim__drive_transfer_ns(io->len_bytes, slowest(d, io->op));
	d->st.transfer_ns += transfer;
	return t + transfer;
}

/* --------------------------------------------------------------- statistics */

static unsigned int log2_of(uint64_t n)
{
	return n ? 63u - (unsigned int)__builtin_clzll(n) : 0;
}

static void count_run(struct brim_drive *d, const struct brim_drive_io *io)
{
	int op = (int)io->op;

	if (io->off_bytes != d->run_end[op]) {
		d->st.runs[op]++;
		if (d->run_bytes[op])
			d->st.run_sizes[op][log2_of(d->run_bytes[op])]++;
		d->run_bytes[op] = 0;
	}
	d->run_bytes[op] += io->len_bytes;
	d->run_end[op] = io->off_bytes + io->len_bytes;
	d->st.io_sizes[op][log2_of(io->len_bytes)]++;
}

static void count(struct brim_drive *d, const struct brim_drive_io *io,
		  uint64_t done_ns)
{
	uint64_t latency = done_ns - io->at_ns;

	d->st.ios[io->op]++;
	d->st.bytes[io->op] += io->len_bytes;
	d->st.latency_ns[io->op] += latency;
	brim__hist_add(&d->hists[io->op], latency);
	if (moves_data(io) && io->len_bytes)
		count_run(d, io);
}

int brim_drive_io(struct brim_drive *d, const struct brim_drive_io *io,
		  uint64_t *done_ns)
{
	int ret = check_io(d, io);
	uint64_t t;

	if (ret < 0)
		return ret;
	if (d->p.model == BRIM_DRIVE_SMR)
		brim__smr_idle(d, io->at_ns);
	t = io->at_ns;
	/* The ideal drive serves all at once, whatever came before. */
	if (d->free_ns > t && d->p.model != BRIM_DRIVE_IDEAL) {
		d->st.wait_ns += d->free_ns - t;
		t = d->free_ns;
	}
	t = serve(d, io, t);
	d->free_ns = BRIM__MAX(d->free_ns, t);
	count(d, io, t);
	*done_ns = t;
	return 0;
}

int brim_drive_stats(const struct brim_drive *d, struct brim_drive_stats *st)
{
	size_t bytes = st->struct_bytes;
	struct brim_drive_stats now = d->st;
	int op;

	if (bytes < sizeof(bytes) || bytes > sizeof(now))
		return -EINVAL;
	now.struct_bytes = bytes;
	now.end_ns = d->free_ns;
	now.bands = d->smr.count;
	for (op = 0; op < BRIM_DRIVE_OPS; op++) {
		const struct brim__hist *h = &d->hists[op];

		now.p50_ns[op] = brim__hist_quantile(h, 500000);
		now.p99_ns[op] = brim__hist_quantile(h, 990000);
		now.max_ns[op] = h->max_ns;
	}
	for (op = 0; op < 2; op++)
		if (d->run_bytes[op])
			now.run_sizes[op][log2_of(d->run_bytes[op])]++;
	memcpy(st, &now, bytes);
	return 0;
}
