/* SPDX-License-Identifier: MIT */
/*
 * engine_uring.c: I/O through io_uring. Owns the ring, the registration of the
 * batch's buffers and of the device's file, and the fallbacks for kernels and
 * limits that refuse them. Without HAVE_URING only its refusal remains.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#include "engine.h"

#ifdef HAVE_URING

#include <liburing.h>

/*
 * How often submission may meet "no memory now" (-EAGAIN, -EBUSY) with nothing
 * to reap, and how long it waits each time: about a second in all.
 */
#define URING_TRIES_MAX 1000u
#define URING_TRY_NS 1000000

struct uring {
	struct io_uring ring;
	bool has_buffers, has_file, has_fallocate;
	struct brim__io_list refused; /* finished without the kernel */
};

/* Best first; what the kernel does not know it answers with -EINVAL. */
static const unsigned int setups[] = {
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
	/* Linux 6.1: completions are worked off in our waits, no interrupts. */
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
	0,
};

static int uring_setup(struct brim__engine *eng, struct uring *u)
{
	int ret = -EINVAL;
	size_t k;

	for (k = 0; k < sizeof(setups) / sizeof(setups[0]); k++) {
		struct io_uring_params p = { .flags = setups[k] };

		ret = io_uring_queue_init_params(eng->queue_depth, &u->ring,
						 &p);
		if (ret != -EINVAL)
			break;
	}
	return ret;
}

/* Whether the kernel has the operations that are not optional (Linux 5.6). */
static bool uring_probe(struct uring *u)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(&u->ring);
	bool is_usable;

	if (!p)
		return false;
	is_usable = io_uring_opcode_supported(p, IORING_OP_READ) &&
		    io_uring_opcode_supported(p, IORING_OP_WRITE) &&
		    io_uring_opcode_supported(p, IORING_OP_FSYNC);
	u->has_fallocate = io_uring_opcode_supported(p, IORING_OP_FALLOCATE);
	io_uring_free_probe(p);
	return is_usable;
}

/* Both save work per I/O; RLIMIT_MEMLOCK may refuse, which is no failure. */
static void uring_register(struct brim__engine *eng, struct uring *u)
{
	struct iovec *v;
	uint32_t k;

	u->has_file = !io_uring_register_files(&u->ring, &eng->dev->fd, 1);
	v = eng->arena ? calloc(eng->queue_depth, sizeof(*v)) : NULL;
	if (!v)
		return;
	for (k = 0; k < eng->queue_depth; k++) {
		v[k].iov_base = eng->arena + (size_t)k * eng->slot_bytes;
		v[k].iov_len = eng->slot_bytes;
	}
	u->has_buffers =
		!io_uring_register_buffers(&u->ring, v, eng->queue_depth);
	free(v);
}

static int uring_init(struct brim__engine *eng, struct brim_err *e)
{
	struct uring *u;
	int ret;

	u = calloc(1, sizeof(*u));
	if (!u)
		return brim__err(e, -ENOMEM, "open", "engine uring");
	ret = uring_setup(eng, u);
	if (ret < 0) {
		/* EPERM: seccomp or kernel.io_uring_disabled; ENOSYS: none. */
		brim__err(e, ret, "open", "io_uring is not available here");
		goto err;
	}
	if (!uring_probe(u)) {
		ret = brim__errf(e, -ENOSYS, "open",
				 "io_uring of this kernel is older than 5.6");
		goto err_ring;
	}
	uring_register(eng, u);
	eng->priv = u;
	return 0;
err_ring:
	io_uring_queue_exit(&u->ring);
err:
	free(u);
	return ret;
}

static void uring_prepare_data(struct uring *u, struct io_uring_sqe *sqe,
			       int fd, struct brim__io *io)
{
	uint64_t at = io->off_bytes + io->done_bytes;
	uint8_t *buf = io->buf + io->done_bytes;
	unsigned int left = (unsigned int)brim__io_left(io);

	if (io->op == BRIM__READ && u->has_buffers)
		io_uring_prep_read_fixed(sqe, fd, buf, left, at, (int)io->slot);
	else if (io->op == BRIM__READ)
		io_uring_prep_read(sqe, fd, buf, left, at);
	else if (u->has_buffers)
		io_uring_prep_write_fixed(sqe, fd, buf, left, at,
					  (int)io->slot);
	else
		io_uring_prep_write(sqe, fd, buf, left, at);
}

static int uring_queue(struct brim__engine *eng, struct brim__io *io)
{
	struct uring *u = eng->priv;
	int fd = u->has_file ? 0 : eng->dev->fd;
	struct io_uring_sqe *sqe;

	if (io->op == BRIM__ZERO &&
	    (!eng->dev->zero_mode || !u->has_fallocate)) {
		io->result = -EOPNOTSUPP;
		brim__io_push(&u->refused, io);
		return 0;
	}
	sqe = io_uring_get_sqe(&u->ring);
	if (!sqe)
		return -EAGAIN;
	if (io->op == BRIM__ZERO)
		io_uring_prep_fallocate(sqe, fd, eng->dev->zero_mode,
					(off_t)(io->off_bytes + io->done_bytes),
					(off_t)brim__io_left(io));
	else if (io->op == BRIM__FLUSH)
		io_uring_prep_fsync(sqe, fd, IORING_FSYNC_DATASYNC);
	else
		uring_prepare_data(u, sqe, fd, io);
	if (u->has_file)
		sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(sqe, io);
	return 0;
}

/* Nothing: reap follows, and submits and waits in one system call. */
static int uring_commit(struct brim__engine *eng)
{
	(void)eng;
	return 0;
}

/* Takes finished I/Os off the completion ring: no system call. */
static unsigned int uring_collect(struct uring *u, struct brim__io **out,
				  unsigned int max)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(&u->ring, head, cqe)
	{
		struct brim__io *io;

		if (n == max)
			break;
		io = io_uring_cqe_get_data(cqe);
		io->result = cqe->res;
		if (io->op == BRIM__ZERO && !cqe->res)
			io->result = (int64_t)brim__io_left(io);
		out[n++] = io;
	}
	io_uring_cq_advance(&u->ring, n);
	return n;
}

/* What the kernel has no memory or room for now it will have later. */
static int uring_wait_for_room(unsigned int *tries)
{
	struct timespec ts = { .tv_nsec = URING_TRY_NS };

	if (++*tries > URING_TRIES_MAX)
		return -EAGAIN;
	nanosleep(&ts, NULL);
	return 0;
}

static int uring_reap(struct brim__engine *eng, unsigned int min,
		      struct brim__io **out, unsigned int max)
{
	struct uring *u = eng->priv;
	unsigned int n = 0, before, tries = 0;
	int ret;

	while (n < max && (out[n] = brim__io_pop(&u->refused)))
		n++;
	while (n < max && (n < min || io_uring_sq_ready(&u->ring))) {
		ret = io_uring_submit_and_wait(&u->ring, n < min ? min - n : 0);
		before = n;
		n += uring_collect(u, out + n, max - n);
		if (ret == -EAGAIN || ret == -EBUSY)
			ret = n > before ? 0 : uring_wait_for_room(&tries);
		if (ret < 0 && ret != -EINTR)
			return n ? (int)n : ret;
	}
	return (int)(n + uring_collect(u, out + n, max - n));
}

static void uring_cleanup(struct brim__engine *eng)
{
	struct uring *u = eng->priv;

	/*
	 * The ring is torn down behind our back; until then a registered file
	 * stays open, and with it our claim on a block device (O_EXCL).
	 */
	if (u->has_file)
		io_uring_unregister_files(&u->ring);
	io_uring_queue_exit(&u->ring);
	free(u);
}

#else /* !HAVE_URING */

static int uring_init(struct brim__engine *eng, struct brim_err *e)
{
	(void)eng;
	return brim__errf(e, -ENOSYS, "open",
			  "engine uring: brim was built without liburing");
}

static int uring_queue(struct brim__engine *eng, struct brim__io *io)
{
	(void)eng;
	(void)io;
	return -ENOSYS;
}

static int uring_commit(struct brim__engine *eng)
{
	(void)eng;
	return -ENOSYS;
}

static int uring_reap(struct brim__engine *eng, unsigned int min,
		      struct brim__io **out, unsigned int max)
{
	(void)eng;
	(void)min;
	(void)out;
	(void)max;
	return -ENOSYS;
}

static void uring_cleanup(struct brim__engine *eng)
{
	(void)eng;
}

#endif /* HAVE_URING */

const struct brim__engine_ops brim__engine_uring = {
	.version = BRIM__ENGINE_VERSION,
	.name = "uring",
	.flags = BRIM__ENGINE_NEEDS_FD,
	.init = uring_init,
	.queue = uring_queue,
	.commit = uring_commit,
	.reap = uring_reap,
	.cleanup = uring_cleanup,
};
