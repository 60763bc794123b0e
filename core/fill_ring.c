/* SPDX-License-Identifier: MIT */
/*
 * fill_ring.c: files written through io_uring: opened by the submitter, since
 * the kernel hands every creation to a thread of its own, their data and close
 * queued. Many files are in flight, each with one write at a time. Called by
 * fill_submit.c in the submitter's thread, whose ring it is. Sizes are bytes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "fill.h"

#ifdef HAVE_URING

#include <liburing.h>

/*
 * What a submitter has in flight at most: enough for any drive, and a bound on
 * its memory.
 */
#define FLIGHT_BYTES_MAX (32u << 20)
/* Files that are opened before the kernel is told of their writes. */
#define SUBMIT_BATCH 4u

/* The low bits of what a completion carries beside its slot. */
enum { DID_WRITE = 0, DID_FSYNC = 1, DID_CLOSE = 2, DID_MASK = 3 };

struct slot {
	struct brim_op op;
	struct brim__fill_result result;
	int fd;                               /* -1: closed */
	bool is_direct, wants_fsync, is_last; /* is_last: its end is queued */
	uint32_t len, done;                   /* of the write under way */
	uint32_t pending;                     /* completions to come */
	int answers[3];                       /* by DID_x */
	uint64_t start_ns, content_ns;
	uint8_t *buf;
};

struct brim__fill_ring {
	struct brim__fill_sub *sub;
	struct io_uring ring;
	uint32_t depth, in_flight, unsubmitted;
	int broken; /* -errno: the kernel takes no more */
	uint64_t flight_bytes;
	uint8_t *arena;
	size_t arena_bytes;
	struct slot *slots;
	uint32_t *free_slots; /* the last one freed is the next one taken */
	uint32_t free_count;
	/* By slot: for longest_wait, from any thread. */
	struct brim__fill_since *since;
};

/* --------------------------------------------------------------- the ring */

static int setup(struct io_uring *ring, uint32_t entries)
{
	static const unsigned int flags[] = {
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
		0,
	};
	int ret = -EINVAL;
	size_t k;

	for (k = 0; ret == -EINVAL && k < sizeof(flags) / sizeof(*flags); k++) {
		struct io_uring_params p = { .flags = flags[k] };

		ret = io_uring_queue_init_params(entries, ring, &p);
	}
	return ret;
}

int brim__fill_ring_probe(struct brim_err *e)
{
	struct io_uring ring;
	struct io_uring_probe *p;
	bool is_usable;
	int ret = setup(&ring, 2);

	if (ret < 0)
		return brim__err(e, ret, "open",
				 "io_uring is not available here");
	p = io_uring_get_probe_ring(&ring);
	is_usable = p && io_uring_opcode_supported(p, IORING_OP_WRITE) &&
		    io_uring_opcode_supported(p, IORING_OP_FSYNC) &&
		    io_uring_opcode_supported(p, IORING_OP_CLOSE);
	io_uring_free_probe(p);
	io_uring_queue_exit(&ring);
	return is_usable ? 0
			 : brim__errf(e, -ENOSYS, "open",
				      "io_uring of this kernel is older than "
				      "5.6");
}

static int ring_alloc(struct brim__fill_ring *r)
{
	const struct brim_fill_options *o = &r->sub->fill->o;
	uint32_t k;

	r->arena_bytes = (size_t)r->depth * o->max_io_bytes;
	/* Memory comes with the first touch: small files never touch most. */
	r->arena = mmap(NULL, r->arena_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->arena == MAP_FAILED)
		return -ENOMEM;
	r->slots = calloc(r->depth, sizeof(*r->slots));
	r->free_slots = calloc(r->depth, sizeof(*r->free_slots));
	r->since = calloc(r->depth, sizeof(*r->since));
	if (!r->slots || !r->free_slots || !r->since)
		return -ENOMEM;
	for (k = 0; k < r->depth; k++) {
		r->slots[k].buf = r->arena + (size_t)k * o->max_io_bytes;
		r->free_slots[r->free_count++] = r->depth - 1 - k;
	}
	return 0;
}

static void ring_free(struct brim__fill_ring *r)
{
	if (r->arena && r->arena != MAP_FAILED)
		munmap(r->arena, r->arena_bytes);
	free(r->slots);
	free(r->free_slots);
	free(r->since);
	free(r);
}

int brim__fill_ring_open(struct brim__fill_ring **out, struct brim__fill_sub *s,
			 struct brim_err *e)
{
	struct brim__fill_ring *r = calloc(1, sizeof(*r));
	int ret;

	*out = NULL;
	if (!r)
		return brim__err(e, -ENOMEM, "open", "ring");
	r->sub = s;
	r->depth = s->fill->o.queue_depth;
	ret = ring_alloc(r);
	/* A chain is a write, an fsync and a close. */
	if (!ret)
		ret = setup(&r->ring, 4 * r->depth);
	if (ret < 0) {
		ring_free(r);
		return brim__err(e, ret, "open", "io_uring");
	}
	*out = r;
	return 0;
}

void brim__fill_ring_close(struct brim__fill_ring *r)
{
	if (!r)
		return;
	io_uring_queue_exit(&r->ring);
	ring_free(r);
}

/* ------------------------------------------------------------ what is there */

bool brim__fill_ring_takes(const struct brim_op *op)
{
	return (op->kind == BRIM_OP_CREATE || op->kind == BRIM_OP_OVERWRITE ||
		op->kind == BRIM_OP_APPEND || op->kind == BRIM_OP_REPLACE) &&
	       op->len_bytes;
}

bool brim__fill_ring_has(const struct brim__fill_ring *r, uint32_t id)
{
	uint32_t k;

	for (k = 0; r->in_flight && k < r->depth; k++)
		if (r->slots[k].start_ns && r->slots[k].op.file.id == id)
			return true;
	return false;
}

uint64_t brim__fill_ring_lowest(const struct brim__fill_ring *r, uint64_t none)
{
	uint32_t k;

	for (k = 0; r->in_flight && k < r->depth; k++)
		if (r->slots[k].start_ns)
			none = BRIM__MIN(none, r->slots[k].op.index);
	return none;
}

uint32_t brim__fill_ring_since(const struct brim__fill_ring *r,
			       uint64_t *oldest_ns, uint64_t *what)
{
	uint32_t k, count = 0;
	uint64_t at;

	*oldest_ns = 0;
	for (k = 0; k < r->depth; k++) {
		at = atomic_load_explicit(&r->since[k].ns,
					  memory_order_relaxed);
		count += at > 0;
		if (!at || (*oldest_ns && at >= *oldest_ns))
			continue;
		*oldest_ns = at;
		*what = atomic_load_explicit(&r->since[k].what,
					     memory_order_relaxed);
	}
	return count;
}

/* ------------------------------------------------------------------- files */

static uint64_t flight_bytes(const struct brim__fill_ring *r,
			     const struct brim_op *op)
{
	return BRIM__MIN(op->len_bytes, r->sub->fill->o.max_io_bytes);
}

static void refuse(struct slot *t, const char *call, int error)
{
	if (t->result.error)
		return;
	t->result.call = call;
	t->result.error = error;
}

/* The operation is over: counts it and frees the slot. */
static void slot_end(struct brim__fill_ring *r, struct slot *t)
{
	uint32_t index = (uint32_t)(t - r->slots);
	uint64_t start_ns = t->start_ns + t->content_ns;

	if (t->fd >= 0 && r->sub->fill->calls->close(t->fd) < 0)
		refuse(t, "close", errno);
	if (t->result.error)
		brim__fill_settle(r->sub, &t->op, &t->result);
	else if (t->op.kind == BRIM_OP_REPLACE)
		brim__fill_rename(r->sub, &t->op, &t->result);
	r->flight_bytes -= flight_bytes(r, &t->op);
	r->in_flight--;
	r->free_slots[r->free_count++] = index;
	t->start_ns = 0;
	brim__fill_end(&r->since[index]);
	brim__fill_finish(r->sub, &t->op, &t->result, start_ns, brim__now_ns());
}

/* Queues what is left of the slot's buffer; if it is_last, the end too. */
static void slot_queue(struct brim__fill_ring *r, struct slot *t)
{
	uint64_t at = t->op.off_bytes + t->result.written_bytes;
	uint64_t key = (uint64_t)(uintptr_t)t;
	/* The queue has room for a chain of each slot. */
	struct io_uring_sqe *sqe = io_uring_get_sqe(&r->ring);

	io_uring_prep_write(sqe, t->fd, t->buf + t->done, t->len - t->done, at);
	sqe->user_data = key | DID_WRITE;
	t->pending = 1;
	r->unsubmitted++;
	if (!t->is_last)
		return;
	sqe->flags |= IOSQE_IO_LINK;
	if (t->wants_fsync) {
		sqe = io_uring_get_sqe(&r->ring);
		io_uring_prep_fsync(sqe, t->fd, 0);
		sqe->user_data = key | DID_FSYNC;
		sqe->flags |= IOSQE_IO_LINK;
		t->pending++;
	}
	sqe = io_uring_get_sqe(&r->ring);
	io_uring_prep_close(sqe, t->fd);
	sqe->user_data = key | DID_CLOSE;
	t->pending++;
}

/*
 * The tail that is no whole sector: small, and into the page cache, which
 * measured 10 % less CPU a file than a padded sector that is truncated.
 */
static void slot_tail(struct brim__fill_ring *r, struct slot *t)
{
	uint64_t before_ns = r->sub->content_ns;
	int ret = -brim__fill_leave_direct(t->fd);

	if (!ret)
		ret = brim__fill_write(r->sub, &t->op, t->fd, false,
				       &t->result);
	t->content_ns += r->sub->content_ns - before_ns;
	if (ret)
		refuse(t, "write", ret);
	else if (t->wants_fsync && r->sub->fill->calls->fsync(t->fd) < 0)
		refuse(t, "fsync", errno);
	slot_end(r, t);
}

/* Queues the next piece of the file, or ends it. */
static void slot_next(struct brim__fill_ring *r, struct slot *t)
{
	struct brim__fill_sub *s = r->sub;
	uint64_t left = t->op.len_bytes - t->result.written_bytes;
	uint64_t before_ns = s->content_ns;

	if (t->result.error || !left) {
		slot_end(r, t);
		return;
	}
	if (t->is_direct && left < BRIM__FILL_ALIGN) {
		slot_tail(r, t);
		return;
	}
	t->len = (uint32_t)BRIM__MIN(left, s->fill->o.max_io_bytes);
	if (t->is_direct)
		t->len -= t->len % BRIM__FILL_ALIGN;
	t->done = 0;
	t->is_last = t->len == left;
	brim__fill_content(s, &t->op, t->op.off_bytes + t->result.written_bytes,
			   t->len, t->buf);
	t->content_ns += s->content_ns - before_ns;
	slot_queue(r, t);
}

/* ------------------------------------------------------------- completions */

/* Whether a write that the target did not take so is worth another try. */
static bool slot_again(struct brim__fill_ring *r, struct slot *t, int answer)
{
	bool is_odd = t->done % BRIM__FILL_ALIGN != 0;

	if (t->fd < 0)
		return false;
	if (answer == -EINTR || answer == -EAGAIN)
		return true;
	if (t->is_direct && (answer == -EINVAL || (answer > 0 && is_odd))) {
		if (answer < 0)
			atomic_store(&r->sub->fill->direct_works, false);
		t->is_direct = false;
		return !brim__fill_leave_direct(t->fd);
	}
	return answer > 0;
}

/* All completions of what slot_queue queued are there. */
static void slot_done(struct brim__fill_ring *r, struct slot *t)
{
	int answer = t->answers[DID_WRITE];

	if (answer > 0) {
		t->done += (uint32_t)answer;
		t->result.written_bytes += (uint32_t)answer;
	}
	if (t->done < t->len || answer <= 0) {
		if (slot_again(r, t, answer)) {
			slot_queue(r, t);
			return;
		}
		refuse(t, "write", answer < 0 ? -answer : EIO);
	} else if (t->is_last && t->answers[DID_FSYNC] < 0) {
		refuse(t, "fsync", -t->answers[DID_FSYNC]);
	} else if (t->is_last && t->answers[DID_CLOSE] < 0) {
		refuse(t, "close", -t->answers[DID_CLOSE]);
	}
	slot_next(r, t);
}

static void complete(struct brim__fill_ring *r, uint64_t key, int result)
{
	static const char *const calls[] = { "write", "fsync", "close" };
	struct slot *t = (struct slot *)(uintptr_t)(key & ~(uint64_t)DID_MASK);
	unsigned int what = key & DID_MASK;

	/* Of a broken chain the file is still open. */
	if (what == DID_CLOSE && result != -ECANCELED)
		t->fd = -1;
	if (r->sub->fill->calls->answer)
		result = r->sub->fill->calls->answer(calls[what], result);
	t->answers[what] = result;
	if (--t->pending == 0)
		slot_done(r, t);
}

static void collect(struct brim__fill_ring *r)
{
	struct io_uring_cqe *cqe;

	while (io_uring_peek_cqe(&r->ring, &cqe) == 0) {
		uint64_t key = cqe->user_data;
		int result = cqe->res;

		io_uring_cqe_seen(&r->ring, cqe);
		complete(r, key, result);
	}
}

/* What the kernel has no memory or room for now it will have later. */
static void submit(struct brim__fill_ring *r, unsigned int wait)
{
	struct timespec ts = { .tv_nsec = 1000000 };
	int ret = io_uring_submit_and_wait(&r->ring, wait);

	r->unsubmitted = 0;
	if (ret == -EAGAIN || ret == -EBUSY)
		nanosleep(&ts, NULL);
	else if (ret < 0 && ret != -EINTR)
		r->broken = brim__err(&r->sub->err, ret, "write", "io_uring");
}

void brim__fill_ring_wait(struct brim__fill_ring *r)
{
	if (!r->in_flight || r->broken)
		return;
	submit(r, 1);
	collect(r);
}

void brim__fill_ring_drain(struct brim__fill_ring *r)
{
	while (r->in_flight && !r->broken)
		brim__fill_ring_wait(r);
}

/* ---------------------------------------------------------------- starting */

static bool has_room(const struct brim__fill_ring *r, const struct brim_op *op)
{
	return !r->in_flight ||
	       (r->free_count &&
		r->flight_bytes + flight_bytes(r, op) <= FLIGHT_BYTES_MAX);
}

void brim__fill_ring_start(struct brim__fill_ring *r, const struct brim_op *op)
{
	struct slot *t;
	uint32_t index;

	while (!has_room(r, op) && !r->broken)
		brim__fill_ring_wait(r);
	if (r->broken)
		return;
	index = r->free_slots[--r->free_count];
	t = &r->slots[index];
	*t = (struct slot){ .op = *op, .fd = -1, .buf = t->buf };
	t->start_ns = brim__now_ns();
	brim__fill_begin(&r->since[index], op, t->start_ns);
	r->in_flight++;
	r->flight_bytes += flight_bytes(r, op);
	t->wants_fsync = brim__fill_wants_fsync(r->sub);
	t->result.is_synced = t->wants_fsync;
	t->fd = brim__fill_open_file(r->sub, op, &t->is_direct);
	if (t->fd < 0) {
		refuse(t, "open", -t->fd);
		t->fd = -1;
	}
	slot_next(r, t);
	if (r->unsubmitted >= SUBMIT_BATCH) {
		submit(r, 0);
		collect(r);
	}
}

#endif /* HAVE_URING */
