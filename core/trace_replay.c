/* SPDX-License-Identifier: MIT */
/*
 * trace_replay.c: replays of traces: what those on devices and those below
 * directories share, and the kind of run that does block I/O. Called through
 * brim_run_step. Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mix.h"
#include "run.h"
#include "trace_replay.h"

/* ------------------------------------------------------------------ shared */

int brim__replay_init(struct brim__replay *x, struct brim_trace *t,
		      const struct brim_replay_options *o, struct brim_err *e)
{
	int ret;

	x->trace = t;
	ret = brim__options_take(&x->o, sizeof(x->o), o, "replay", e);
	if (ret < 0)
		return ret;
	if (!(x->o.speed >= 0 && x->o.speed <= 1e9))
		return brim__errf(e, -EINVAL, "replay",
				  "speed is 0 or a factor up to 1e9");
	if (x->o.path && !(x->path = strdup(x->o.path)))
		return brim__err(e, -ENOMEM, "replay", "path");
	if (x->o.strip && !(x->strip = strdup(x->o.strip)))
		return brim__err(e, -ENOMEM, "replay", "strip");
	x->o.path = x->path;
	x->o.strip = x->strip;
	return 0;
}

void brim__replay_release(struct brim__replay *x)
{
	brim_trace_close(x->trace);
	free(x->path);
	free(x->strip);
}

int brim__replay_next(struct brim__replay *x, struct brim_trace_event *ev,
		      struct brim_err *e)
{
	int ret;

	while ((ret = brim_trace_next(x->trace, ev, e)) > 0) {
		x->st.events++;
		if ((!x->o.has_stream || ev->stream == x->o.stream) &&
		    (!x->path || (ev->path && !strcmp(ev->path, x->path))))
			break;
		x->st.skipped++;
	}
	return ret;
}

uint64_t brim__replay_due_ns(const struct brim__replay *x, uint64_t at_ns)
{
	double after_ns;

	if (x->o.speed == 0)
		return 0;
	after_ns = (double)at_ns / x->o.speed;
	return x->begun_ns +
	       (after_ns < 0x1p62 ? (uint64_t)after_ns : UINT64_C(1) << 62);
}

void brim__replay_done(struct brim__replay *x, enum brim_trace_op op,
		       uint64_t len_bytes, uint64_t took_ns)
{
	x->st.ops[op]++;
	x->st.bytes[op] += len_bytes;
	brim__hist_add(&x->took[op], took_ns);
}

void brim__replay_stats(const struct brim__replay *x, uint64_t now_ns,
			struct brim_replay_stats *out)
{
	struct brim_replay_stats st = x->st;
	size_t room = out->struct_bytes;
	int k;

	st.struct_bytes = room;
	st.elapsed_ns = x->begun_ns ? now_ns - x->begun_ns : 0;
	for (k = 0; k < BRIM_TRACE_OPS; k++) {
		st.p50_ns[k] = brim__hist_quantile(&x->took[k], 500000);
		st.p99_ns[k] = brim__hist_quantile(&x->took[k], 990000);
		st.max_ns[k] = x->took[k].max_ns;
	}
	memcpy(out, &st, BRIM__MIN(room, sizeof(st)));
}

void brim__replay_bytes(uint64_t key, uint8_t *to, size_t len_bytes)
{
	uint64_t v;
	size_t at;

	for (at = 0; at < len_bytes; at += sizeof(v)) {
		v = brim__mix_in(key, at);
		memcpy(to + at, &v, BRIM__MIN(sizeof(v), len_bytes - at));
	}
}

/* ----------------------------------------------------------------- devices */

/* An event that takes more than one I/O is done with its last. */
struct block_replay {
	struct brim__replay x;
	struct brim_trace_event ev; /* the one at hand */
	bool has_event;             /* it is not given out yet, or not all */
	bool is_new;                /* nothing of it is */
	bool is_at_end;
	uint64_t align;
};

static bool is_range(const struct brim_trace_event *ev)
{
	return ev->op <= BRIM_TRACE_TRIM;
}

/* Puts the range onto the device: aligned, within, wrapped. -errno. */
static int block_fit(struct brim_run *r, struct block_replay *b)
{
	struct brim_trace_event *ev = &b->ev;
	uint64_t size = brim__align_down(r->dev->info.size_bytes, b->align);
	uint64_t end = ev->off_bytes + ev->len_bytes, to;

	to = brim__align_down(end - 1, b->align) + b->align;
	b->x.st.rounded += to != end || ev->off_bytes % b->align;
	ev->off_bytes = brim__align_down(ev->off_bytes, b->align);
	ev->len_bytes = to - ev->off_bytes;
	if (to <= size)
		return 0;
	if (b->x.o.is_wrapped && ev->len_bytes <= size) {
		ev->off_bytes %= size;
		/* What would reach past the end ends there. */
		ev->off_bytes = BRIM__MIN(ev->off_bytes, size - ev->len_bytes);
		return 0;
	}
	return brim__err_at(&r->failure, -ERANGE, "replay", ev->off_bytes,
			    "line %llu of the trace: it ends at %llu, past the "
			    "%llu bytes of %s",
			    (unsigned long long)brim_trace_line(b->x.trace),
			    (unsigned long long)to, (unsigned long long)size,
			    r->dev->info.path);
}

/* Gets an event at hand that does something: 1, 0 at the end, < 0. */
static int block_event(struct brim_run *r, struct block_replay *b)
{
	int ret;

	do {
		ret = brim__replay_next(&b->x, &b->ev, &r->failure);
		if (ret <= 0)
			return ret;
		if (b->ev.op > BRIM_TRACE_DATASYNC &&
		    b->ev.op != BRIM_TRACE_ADD && b->ev.op != BRIM_TRACE_OPEN &&
		    b->ev.op != BRIM_TRACE_CLOSE)
			return brim__errf(
				&r->failure, -EINVAL, "replay",
				"line %llu of the trace: a %s is for files; "
				"replay it below a directory",
				(unsigned long long)brim_trace_line(b->x.trace),
				brim__trace_op_names[b->ev.op]);
	} while (b->ev.op > BRIM_TRACE_DATASYNC ||
		 (is_range(&b->ev) && !b->ev.len_bytes));
	b->has_event = b->is_new = true;
	return is_range(&b->ev) && block_fit(r, b) < 0 ? -1 : 1;
}

/* Whether the event at hand may begin; else the run is blocked. */
static bool block_may_begin(struct brim_run *r, struct block_replay *b)
{
	uint64_t due_ns, now_ns;

	if (!b->is_new)
		return true;
	due_ns = brim__replay_due_ns(&b->x, b->ev.at_ns);
	now_ns = due_ns ? brim__now_ns() : 0;
	if (now_ns < due_ns) {
		r->due_ns = due_ns;
		r->is_blocked = true;
		return false;
	}
	/* Syncs and trims come alone: nothing in flight but this slot. */
	if (b->ev.op > BRIM_TRACE_WRITE && brim__batch_in_flight(r->batch)) {
		r->is_blocked = true;
		return false;
	}
	if (due_ns)
		b->x.st.late_max_ns =
			BRIM__MAX(b->x.st.late_max_ns, now_ns - due_ns);
	return true;
}

/* A sync or a trim, on the spot. -errno. */
static int block_alone(struct brim_run *r, struct block_replay *b)
{
	uint64_t begun_ns = brim__now_ns();
	int ret = 0;

	if (!brim__batch_moves_data(r->batch))
		ret = 0;
	else if (b->ev.op == BRIM_TRACE_TRIM)
		ret = brim_device_discard(r->dev, b->ev.off_bytes,
					  b->ev.len_bytes, &r->failure);
	else
		ret = brim_device_flush(r->dev, &r->failure);
	if (ret == -EOPNOTSUPP) { /* a hint, which need not be taken */
		r->failure = (struct brim_err){ 0 };
		ret = 0;
	}
	b->has_event = false;
	if (ret < 0)
		return ret;
	brim__replay_done(&b->x, b->ev.op, b->ev.len_bytes,
			  brim__now_ns() - begun_ns);
	return 0;
}

static void block_io(struct brim_run *r, struct block_replay *b,
		     struct brim__io *io)
{
	struct brim__run_slot *slot = &r->slots[io->slot];
	uint64_t part = BRIM__MIN(b->ev.len_bytes, r->io_bytes);

	io->op = b->ev.op == BRIM_TRACE_READ ? BRIM__READ : BRIM__WRITE;
	io->off_bytes = b->ev.off_bytes;
	io->len_bytes = part;
	b->ev.off_bytes += part;
	b->ev.len_bytes -= part;
	b->is_new = false;
	b->has_event = b->ev.len_bytes > 0;
	slot->desc.groups = !b->has_event;
	/* Random bytes once a slot; reading into it makes others, too. */
	if (io->op == BRIM__WRITE && !slot->is_zeros)
		brim__replay_bytes(b->x.o.seed ^ io->slot, io->buf,
				   r->io_bytes);
	slot->is_zeros |= io->op == BRIM__WRITE;
}

static int block_next(struct brim_run *r, struct brim__io *io)
{
	struct block_replay *b = r->own;
	int ret;

	if (!b->x.begun_ns)
		b->x.begun_ns = brim__now_ns();
	for (;;) {
		if (!b->has_event) {
			ret = b->is_at_end ? 0 : block_event(r, b);
			b->is_at_end |= ret <= 0;
			if (ret <= 0)
				return 0;
		}
		if (!block_may_begin(r, b))
			return 0;
		if (b->ev.op <= BRIM_TRACE_WRITE)
			break;
		if (block_alone(r, b) < 0)
			return 0;
	}
	block_io(r, b, io);
	return 1;
}

static void block_done(struct brim_run *r, struct brim__io *io)
{
	struct block_replay *b = r->own;
	enum brim_trace_op op = io->op == BRIM__READ ? BRIM_TRACE_READ
						     : BRIM_TRACE_WRITE;

	b->x.st.bytes[op] += io->len_bytes;
	if (r->slots[io->slot].desc.groups) {
		r->groups_done++;
		brim__replay_done(&b->x, op, 0, io->latency_ns);
	}
}

static void block_close(struct brim_run *r)
{
	struct block_replay *b = r->own;

	if (!b)
		return;
	brim__replay_release(&b->x);
	free(b);
}

static const struct brim__run_ops replay_ops = {
	.next = block_next,
	.done = block_done,
	.close = block_close,
	.phase = "replay",
};

int brim_replay_open(struct brim_run **out, struct brim_trace *t,
		     struct brim_device *d,
		     const struct brim_replay_options *ro,
		     const struct brim_run_options *o, struct brim_err *e)
{
	struct block_replay *b = calloc(1, sizeof(*b));
	struct brim_run_options opts = { 0 };
	int ret;

	*out = NULL;
	if (!b) {
		brim_trace_close(t);
		return brim__err(e, -ENOMEM, "replay", "run");
	}
	ret = brim__replay_init(&b->x, t, ro, e);
	if (!ret)
		ret = brim__run_options(&opts, o, d, e);
	if (!ret)
		ret = brim__run_create(out, &replay_ops, d, opts.max_io_bytes,
				       true, &opts, e);
	if (ret < 0) {
		brim__replay_release(&b->x);
		free(b);
		return ret;
	}
	b->align = BRIM__MAX(1u, d->info.align_bytes);
	(*out)->own = b;
	(*out)->phase_count = 1;
	(*out)->io_bytes = opts.max_io_bytes;
	return 0;
}

int brim_replay_stats(const struct brim_run *r, struct brim_replay_stats *out)
{
	const struct block_replay *b = r->own;

	if (r->ops != &replay_ops)
		return -ENOENT;
	brim__replay_stats(&b->x, r->is_finished ? r->end_ns : brim__now_ns(),
			   out);
	return 0;
}
