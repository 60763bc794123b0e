/* SPDX-License-Identifier: MIT */
/*
 * drive_replay.c: sends a trace through a model without sleeping. Called by
 * the binding. Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drive.h"

#define STREAMS 65536u

/* Where each stream stands: in the recording, and here. */
struct stream {
	uint64_t recorded_ns, done_ns; /* the end of its last I/O */
};

struct replay {
	struct brim_drive *d;
	struct brim_drive_replay_options *o;
	struct brim_drive_replay *result;
	struct stream *streams;
};

/*
 * When an event arrives: after its stream's last I/O, and after as long as the
 * stream thought in the recording.
 */
static uint64_t arrival(const struct replay *r,
			const struct brim_drive_event *x)
{
	const struct stream *s = &r->streams[x->stream % STREAMS];

	if (r->o->is_open_loop)
		return r->o->at_ns + x->at_ns;
	if (!s->done_ns)
		return r->o->at_ns + x->at_ns;
	return s->done_ns +
	       (x->at_ns > s->recorded_ns ? x->at_ns - s->recorded_ns : 0);
}

static uint64_t recorded_end(const struct replay *r,
			     const struct brim_drive_event *x)
{
	const struct stream *s = &r->streams[x->stream % STREAMS];

	return BRIM__MAX(s->recorded_ns, x->at_ns + x->took_ns);
}

/* ------------------------------------------------------------------- bins */

static void halve(struct replay *r)
{
	struct brim_drive_bin *bins = r->result->bins;
	uint64_t k, n = r->result->bin_count;

	for (k = 0; k < n; k++) {
		struct brim_drive_bin b = bins[k];

		memset(&bins[k], 0, sizeof(b));
		bins[k / 2].ios += b.ios;
		bins[k / 2].read_bytes += b.read_bytes;
		bins[k / 2].write_bytes += b.write_bytes;
	}
	r->result->bin_count = (n + 1) / 2;
	r->o->interval_ns *= 2;
}

static void count_bin(struct replay *r, const struct brim_drive_io *io,
		      uint64_t done_ns)
{
	uint64_t t = done_ns - r->o->at_ns;
	struct brim_drive_bin *b;

	while (t / r->o->interval_ns >= BRIM_DRIVE_BINS_MAX)
		halve(r);
	b = &r->result->bins[t / r->o->interval_ns];
	r->result->bin_count =
		BRIM__MAX(r->result->bin_count, t / r->o->interval_ns + 1);
	b->ios++;
	if (io->op == BRIM_DRIVE_READ)
		b->read_bytes += io->len_bytes;
	if (io->op == BRIM_DRIVE_WRITE)
		b->write_bytes += io->len_bytes;
}

/* ----------------------------------------------------------------- events */

static int send(struct replay *r, const struct brim_drive_event *x,
		struct brim_drive_io *io, struct brim_err *e)
{
	struct brim_drive_event out = *x;
	uint64_t done_ns;
	int ret = brim_drive_io(r->d, io, &done_ns);

	if (ret < 0)
		return brim__err_at(e, ret, "replay", io->off_bytes,
				    "event %llu does not fit the drive's clock",
				    (unsigned long long)r->result->events);
	r->streams[x->stream % STREAMS].done_ns = done_ns;
	r->result->events++;
	r->result->elapsed_ns =
		BRIM__MAX(r->result->elapsed_ns, done_ns - r->o->at_ns);
	if (r->o->interval_ns)
		count_bin(r, io, done_ns);
	if (r->o->out) {
		out.at_ns = io->at_ns - r->o->at_ns;
		out.took_ns = done_ns - io->at_ns;
		brim_drive_writer_add(r->o->out, &out);
	}
	return 0;
}

static bool fits(const struct replay *r, struct brim_drive_io *io)
{
	uint64_t size = r->d->p.size_bytes;

	if (io->off_bytes <= size && io->len_bytes <= size - io->off_bytes)
		return true;
	if (!r->o->is_wrapped || io->len_bytes > size)
		return false;
	io->off_bytes %= size;
	io->off_bytes = BRIM__MIN(io->off_bytes, size - io->len_bytes);
	return true;
}

static int take(struct replay *r, const struct brim_drive_event *x,
		struct brim_err *e)
{
	struct stream *s = &r->streams[x->stream % STREAMS];
	struct brim_drive_io io = {
		.op = x->op,
		.off_bytes = x->off_bytes,
		.len_bytes = x->len_bytes,
		.at_ns = arrival(r, x),
	};
	int ret = 0;

	if (x->op == BRIM_DRIVE_FLUSH)
		io.off_bytes = io.len_bytes = 0;
	if (fits(r, &io))
		ret = send(r, x, &io, e);
	else
		r->result->skipped++;
	s->recorded_ns = recorded_end(r, x);
	r->result->recorded_ns =
		BRIM__MAX(r->result->recorded_ns, s->recorded_ns);
	return ret;
}

int brim_drive_replay(struct brim_drive *d, struct brim_drive_reader *reader,
		      struct brim_drive_replay_options *o,
		      struct brim_drive_replay *result, struct brim_err *e)
{
	struct replay r = { .d = d, .o = o, .result = result };
	uint64_t first_ns = UINT64_MAX;
	struct brim_drive_event x;
	int ret = 0;

	*result = (struct brim_drive_replay){ .struct_bytes = sizeof(*result) };
	r.streams = calloc(STREAMS, sizeof(*r.streams));
	if (o->interval_ns)
		result->bins =
			calloc(BRIM_DRIVE_BINS_MAX, sizeof(*result->bins));
	if (!r.streams || (o->interval_ns && !result->bins))
		ret = brim__err(e, -ENOMEM, "replay", "streams");
	while (ret == 0) {
		ret = brim_drive_reader_next(reader, &x, e);
		if (ret <= 0)
			break;
		/* Before its first I/O a program only starts. */
		first_ns = BRIM__MIN(first_ns, x.at_ns);
		x.at_ns -= first_ns;
		ret = take(&r, &x, e);
	}
	free(r.streams);
	return ret;
}

void brim_drive_replay_release(struct brim_drive_replay *result)
{
	free(result->bins);
	result->bins = NULL;
	result->bin_count = 0;
}
