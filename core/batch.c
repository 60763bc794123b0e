/* SPDX-License-Identifier: MIT */
/*
 * batch.c: the policy above the engines. Owns the slots and their buffers, the
 * I/Os that an engine has no room for yet, the rest of short I/Os, retries,
 * the first error, and the statistics. Called by run.c. Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"

/*
 * -EAGAIN and -EINTR (and short I/Os too small to be aligned) are tried again
 * this often; from the fourth on with a pause that doubles from 16 us up to
 * 1 ms, so that all of it takes some 50 ms.
 */
#define RETRIES_MAX 64u
#define RETRIES_AT_ONCE 3u
#define PAUSE_MAX_NS 1000000u

struct brim__batch {
	struct brim__engine eng;
	brim__check_fn *check;
	void *check_ctx;
	struct brim__io *ios;
	struct brim__io **idle; /* a stack: the last used is warm */
	uint32_t idle_count;
	struct brim__io_list pending; /* queued, not with the engine */
	unsigned int engaged;         /* with the engine */
	uint32_t pause_ns;            /* before the next submission */
	struct brim_err failure;      /* the first; code 0: none */
	struct brim__batch_stats stats;
};

static const char *const op_names[] = { "read", "write", "zero", "flush" };

/* ---------------------------------------------------------- open and close */

static int batch_alloc(struct brim__batch *b, uint32_t slot_bytes,
		       struct brim_err *e)
{
	uint32_t depth = b->eng.queue_depth, k;
	uint64_t align, slot = 0, arena = 0;

	align = BRIM__MAX(BRIM__BUFFER_ALIGN, b->eng.dev->info.align_bytes);
	if (brim_align_up(slot_bytes, align, &slot) < 0 || slot > UINT32_MAX ||
	    brim_mul(slot, depth, &arena) < 0 || arena > SIZE_MAX)
		return brim__errf(e, -EOVERFLOW, "open",
				  "%u buffers of %u "
				  "bytes are too much",
				  depth, slot_bytes);
	b->eng.slot_bytes = (uint32_t)slot;
	b->ios = calloc(depth, sizeof(*b->ios));
	b->idle = calloc(depth, sizeof(*b->idle));
	b->eng.arena = aligned_alloc(align, (size_t)arena);
	if (!b->ios || !b->idle || !b->eng.arena)
		return brim__errf(e, -ENOMEM, "open",
				  "no memory for %u "
				  "buffers of %u bytes",
				  depth, slot_bytes);
	for (k = 0; k < depth; k++) {
		b->ios[k].slot = k;
		b->ios[k].buf = b->eng.arena + slot * k;
		b->idle[depth - 1 - k] = &b->ios[k];
	}
	b->idle_count = depth;
	return 0;
}

static void batch_free(struct brim__batch *b)
{
	free(b->eng.arena);
	free(b->idle);
	free(b->ios);
	free(b);
}

int brim__batch_open(struct brim__batch **out, struct brim_device *d,
		     const struct brim__batch_options *o, struct brim_err *e)
{
	struct brim__batch *b;
	int ret;

	*out = NULL;
	if (!o->queue_depth || o->queue_depth > BRIM__DEPTH_MAX)
		return brim__errf(e, -EINVAL, "open",
				  "queue depth %u: it is 1 "
				  "to %u",
				  o->queue_depth, BRIM__DEPTH_MAX);
	b = calloc(1, sizeof(*b));
	if (!b)
		return brim__err(e, -ENOMEM, "open", "batch");
	b->eng.dev = d;
	b->eng.queue_depth = o->queue_depth;
	b->eng.threads = o->threads;
	b->eng.is_cold = o->is_cold;
	b->check = b->eng.check = o->check;
	b->check_ctx = b->eng.check_ctx = o->check_ctx;
	ret = batch_alloc(b, o->slot_bytes, e);
	if (!ret)
		ret = brim__engine_start(&b->eng, o->engine, e);
	if (ret < 0) {
		batch_free(b);
		return ret;
	}
	*out = b;
	return 0;
}

/*
 * Where the engine can no longer say what is in flight, the kernel may still
 * write into the buffers: better to lose them than to give them away.
 */
void brim__batch_close(struct brim__batch *b)
{
	if (!b)
		return;
	while (b->engaged) {
		struct brim__io *io;
		int got = b->eng.ops->reap(&b->eng, 1, &io, 1);

		if (got < 0)
			break;
		b->engaged -= (unsigned int)got;
	}
	if (b->engaged)
		b->eng.arena = NULL;
	brim__engine_stop(&b->eng);
	batch_free(b);
}

/* --------------------------------------------------------- small questions */

const char *brim__batch_engine(const struct brim__batch *b)
{
	return b->eng.name;
}

bool brim__batch_moves_data(const struct brim__batch *b)
{
	return !(b->eng.flags & BRIM__ENGINE_MOVES_NOTHING);
}

uint32_t brim__batch_depth(const struct brim__batch *b)
{
	return b->eng.queue_depth;
}

unsigned int brim__batch_in_flight(const struct brim__batch *b)
{
	return b->engaged + b->pending.count;
}

const struct brim__batch_stats *brim__batch_stats(const struct brim__batch *b)
{
	return &b->stats;
}

/* ------------------------------------------------------------------- slots */

struct brim__io *brim__batch_get(struct brim__batch *b)
{
	return b->idle_count ? b->idle[--b->idle_count] : NULL;
}

void brim__batch_put(struct brim__batch *b, struct brim__io *io)
{
	b->idle[b->idle_count++] = io;
}

static int batch_failure(const struct brim__batch *b, struct brim_err *e)
{
	if (e)
		*e = b->failure;
	return b->failure.code;
}

int brim__batch_queue(struct brim__batch *b, struct brim__io *io,
		      struct brim_err *e)
{
	if (b->failure.code)
		return batch_failure(b, e);
	io->done_bytes = 0;
	io->latency_ns = 0;
	io->retries = 0;
	io->is_checked = false;
	brim__io_push(&b->pending, io);
	return 0;
}

/* --------------------------------------------------------- submit and reap */

/* Notes the first failure, which stays; all later calls return it. */
static void batch_fail(struct brim__batch *b, const struct brim__io *io,
		       int code)
{
	const char *name = brim__errno_name(-code);
	const char *op = op_names[io->op];
	char number[24];

	if (b->failure.code)
		return;
	snprintf(number, sizeof(number), "errno %d", -code);
	name = name ? name : number;
	if (io->op == BRIM__FLUSH)
		brim__errf(&b->failure, code, op, "flush: %s (%s)",
			   strerror(-code), name);
	else if (code == -ENODATA)
		brim__err_at(&b->failure, code, op, io->off_bytes,
			     "%s of %llu bytes at offset %llu: moved nothing "
			     "after %llu bytes",
			     op, (unsigned long long)io->len_bytes,
			     (unsigned long long)io->off_bytes,
			     (unsigned long long)io->done_bytes);
	else
		brim__err_at(&b->failure, code, op, io->off_bytes,
			     "%s of %llu bytes at offset %llu: %s (%s)", op,
			     (unsigned long long)io->len_bytes,
			     (unsigned long long)io->off_bytes, strerror(-code),
			     name);
}

static void batch_retry(struct brim__batch *b, struct brim__io *io, int code)
{
	uint32_t doublings;

	b->stats.retries++;
	if (io->retries++ >= RETRIES_MAX) {
		batch_fail(b, io, code);
		return;
	}
	if (io->retries > RETRIES_AT_ONCE) {
		doublings = BRIM__MIN(io->retries, 10u);
		b->pause_ns =
			BRIM__MAX(b->pause_ns,
				  BRIM__MIN(1000u << doublings, PAUSE_MAX_NS));
	}
	brim__io_push(&b->pending, io);
}

/*
 * Whether a read got all there is: of a size that is no multiple of what the
 * device is aligned to, direct reads reach past the last byte.
 */
static bool batch_is_at_end(const struct brim__batch *b,
			    const struct brim__io *io)
{
	const struct brim_device_info *info = &b->eng.dev->info;
	uint64_t done = io->done_bytes + (uint64_t)io->result;

	return io->op == BRIM__READ && io->result > 0 &&
	       io->off_bytes + done == info->size_bytes &&
	       io->len_bytes - done < info->align_bytes;
}

/* The remainder of an I/O, from the last boundary the device accepts. */
static void batch_resume(struct brim__batch *b, struct brim__io *io)
{
	uint64_t done = io->done_bytes + (uint64_t)io->result;

	b->stats.short_ios++;
	done = brim__align_down(done,
				BRIM__MAX(1u, b->eng.dev->info.align_bytes));
	if (io->result == 0) {
		/* A read past the end, or a target that takes no more. */
		batch_fail(b, io, -ENODATA);
	} else if (done <= io->done_bytes) {
		batch_retry(b, io, -EIO);
	} else {
		io->done_bytes = done;
		brim__io_push(&b->pending, io);
	}
}

static void batch_finish(struct brim__batch *b, struct brim__io *io)
{
	bool has_data = io->op == BRIM__READ || io->op == BRIM__WRITE;

	b->stats.ios[io->op]++;
	b->stats.bytes[io->op] += io->len_bytes;
	io->done_bytes = io->len_bytes;
	if (io->op != BRIM__FLUSH)
		b->stats.latency_sum_ns += io->latency_ns;
	if (!has_data)
		return;
	brim__hist_add(&b->stats.latency, io->latency_ns);
	if (b->check && !io->is_checked)
		b->check(b->check_ctx, io);
}

/* Judges one I/O from the engine: true when the caller gets it. */
static bool batch_settle(struct brim__batch *b, struct brim__io *io)
{
	uint64_t end_ns = io->end_ns ? io->end_ns : b->stats.now_ns;

	io->latency_ns += end_ns - io->start_ns;
	if (io->result == -EAGAIN || io->result == -EINTR) {
		batch_retry(b, io, (int)io->result);
	} else if (io->op == BRIM__ZERO && io->result == -EOPNOTSUPP) {
		return true;
	} else if (io->result < 0) {
		batch_fail(b, io, (int)io->result);
	} else if ((uint64_t)io->result < brim__io_left(io) &&
		   !batch_is_at_end(b, io)) {
		batch_resume(b, io);
	} else {
		batch_finish(b, io);
		return true;
	}
	return false;
}

/* Gives the engine what it has room for; one clock for all of it. */
static int batch_submit(struct brim__batch *b)
{
	uint64_t now_ns;

	if (!b->pending.count)
		return 0;
	if (b->pause_ns) {
		struct timespec ts = { .tv_nsec = b->pause_ns };

		nanosleep(&ts, NULL);
		b->pause_ns = 0;
	}
	now_ns = brim__now_ns();
	while (b->pending.count) {
		struct brim__io *io = brim__io_pop(&b->pending);

		io->start_ns = now_ns;
		io->end_ns = 0;
		if (b->eng.ops->queue(&b->eng, io) < 0) {
			/* No room; it keeps its place as the first. */
			io->next = b->pending.first;
			if (!b->pending.first)
				b->pending.last = io;
			b->pending.first = io;
			b->pending.count++;
			break;
		}
		b->engaged++;
	}
	return b->eng.ops->commit(&b->eng);
}

/* Keeps at the front of v what the caller gets; returns how many. */
static unsigned int batch_settle_all(struct brim__batch *b, struct brim__io **v,
				     unsigned int count)
{
	unsigned int kept = 0, k;

	b->engaged -= count;
	b->stats.now_ns = brim__now_ns();
	for (k = 0; k < count; k++) {
		struct brim__io *io = v[k];

		if (batch_settle(b, io))
			v[kept++] = io;
	}
	return kept;
}

int brim__batch_reap(struct brim__batch *b, unsigned int min,
		     struct brim__io **out, unsigned int max,
		     struct brim_err *e)
{
	unsigned int n = 0, want;
	int got;

	while (!b->failure.code) {
		got = batch_submit(b);
		want = min > n ? BRIM__MIN(min - n, b->engaged) : 0;
		if (!got)
			got = b->eng.ops->reap(&b->eng, want, out + n, max - n);
		if (got < 0)
			brim__err(&b->failure, got, "reap", b->eng.name);
		else
			n += batch_settle_all(b, out + n, (unsigned int)got);
		if (n >= min || !brim__batch_in_flight(b))
			break;
	}
	return b->failure.code ? batch_failure(b, e) : (int)n;
}
