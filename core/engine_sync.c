/* SPDX-License-Identifier: MIT */
/*
 * engine_sync.c: I/O by plain calls of the device's own operations. It works
 * for every device (images have no file descriptor) and wherever io_uring is
 * forbidden. Where I/O is waiting, many threads wait; where it is computing and
 * copying, there are as many hands as CPUs, and the caller is one of them: with
 * a single one there is no thread at all.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "engine.h"

/* Threads for a device that has latency of its own: all they do is wait. */
#define SYNC_WAITERS_MAX 32u
#define SYNC_THREADS_MAX 1024u
/* The most I/Os a thread takes at once: enough to make the lock cheap. */
#define SYNC_TAKE_MAX 8u
/* How long the caller works in one reap past what it was asked for. */
#define SYNC_HELP_NS 10000000u

struct sync {
	struct brim__engine *eng;
	struct brim__io_list queued; /* not committed; the caller's own */

	/* All below belongs to `lock`, once there are threads. */
	pthread_mutex_t lock;
	pthread_cond_t work, news;
	struct brim__io_list todo, finished;
	uint32_t idle;   /* threads that wait for work */
	uint32_t wanted; /* completions reap waits for; 0: it does not */
	bool stopping;

	bool helps;     /* the caller does I/Os too, in reap */
	uint32_t hands; /* threads, and the caller if it helps */
	uint32_t thread_count;
	pthread_t threads[];
};

static int64_t sync_call(struct brim_device *d, const struct brim__io *io)
{
	const struct brim__device_ops *ops = d->ops;
	uint64_t at = io->off_bytes + io->done_bytes;
	uint64_t left = brim__io_left(io);
	int ret;

	switch (io->op) {
	case BRIM__READ:
		return ops->read(d, io->buf + io->done_bytes, left, at);
	case BRIM__WRITE:
		if (!ops->write)
			return -EROFS;
		return ops->write(d, io->buf + io->done_bytes, left, at);
	case BRIM__ZERO:
		ret = ops->zero ? ops->zero(d, at, left) : -EOPNOTSUPP;
		return ret < 0 ? ret : (int64_t)left;
	case BRIM__FLUSH:
		return ops->flush ? ops->flush(d) : 0;
	}
	return -EINVAL;
}

/* Does one I/O that starts at *now_ns, and moves that to its end. */
static void sync_do(struct brim__engine *eng, struct brim__io *io,
		    uint64_t *now_ns)
{
	bool has_data = io->op == BRIM__READ || io->op == BRIM__WRITE;

	io->result = sync_call(eng->dev, io);
	io->start_ns = *now_ns;
	*now_ns = io->end_ns = brim__now_ns();
	if (!eng->check || !has_data ||
	    io->result != (int64_t)brim__io_left(io))
		return;
	eng->check(eng->check_ctx, io);
	io->is_checked = true;
	*now_ns = brim__now_ns();
}

/* Takes a fair share of todo, so that nobody waits while another has a pile. */
static void sync_take(struct sync *s, struct brim__io_list *mine)
{
	uint32_t share = s->todo.count / (2 * s->hands);

	share = BRIM__MAX(1u, BRIM__MIN(share, SYNC_TAKE_MAX));
	while (share-- && s->todo.count)
		brim__io_push(mine, brim__io_pop(&s->todo));
}

/* Does a share of the I/Os, with the lock released meanwhile. */
static void sync_work(struct sync *s)
{
	struct brim__io_list mine = { 0 };
	struct brim__io *io;
	uint64_t now_ns;

	sync_take(s, &mine);
	pthread_mutex_unlock(&s->lock);
	now_ns = brim__now_ns();
	for (io = mine.first; io; io = io->next)
		sync_do(s->eng, io, &now_ns);
	pthread_mutex_lock(&s->lock);
	brim__io_splice(&s->finished, &mine);
}

/* Whether the hands have enough to do while the caller is refilling. */
static bool sync_is_busy(const struct sync *s)
{
	return s->todo.count > s->eng->queue_depth / 2;
}

/*
 * The caller is woken when it can have what it wants and the threads are about
 * to run out of work, not before: it refills many slots per wake-up.
 */
static void *sync_thread(void *arg)
{
	struct sync *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->stopping) {
		if (!s->todo.count) {
			s->idle++;
			pthread_cond_wait(&s->work, &s->lock);
			s->idle--;
			continue;
		}
		sync_work(s);
		if (s->wanted && s->finished.count >= s->wanted &&
		    !sync_is_busy(s)) {
			s->wanted = 0;
			pthread_cond_signal(&s->news);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static uint32_t cpu_count(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

static uint32_t sync_hands(const struct brim__engine *eng)
{
	const struct brim_device_info *info = &eng->dev->info;

	if (eng->threads)
		return BRIM__MIN(eng->threads, SYNC_THREADS_MAX);
	if (info->kind == BRIM_KIND_NULL)
		return 1;
	if (info->is_direct || eng->is_cold)
		return BRIM__MIN(eng->queue_depth, SYNC_WAITERS_MAX);
	/* Buffered writers of one file take turns at its inode's lock. */
	if (info->kind == BRIM_KIND_FILE && info->is_writable)
		return 1;
	return BRIM__MIN(eng->queue_depth, cpu_count());
}

static void sync_stop_threads(struct sync *s)
{
	uint32_t k;

	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->work);
	pthread_mutex_unlock(&s->lock);
	for (k = 0; k < s->thread_count; k++)
		pthread_join(s->threads[k], NULL);
}

/* Fewer threads than asked for are slower, not wrong; no hands are an error. */
static int sync_start_threads(struct sync *s, uint32_t count)
{
	sigset_t all, before;
	uint32_t k;
	int ret = 0;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&s->lock);
	for (k = 0; k < count && !ret; k++)
		ret = pthread_create(&s->threads[k], NULL, sync_thread, s);
	s->thread_count = ret ? k - 1 : k;
	s->hands = s->thread_count + s->helps;
	pthread_mutex_unlock(&s->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return s->hands ? 0 : -ret;
}

static int sync_init(struct brim__engine *eng, struct brim_err *e)
{
	uint32_t count = sync_hands(eng);
	struct sync *s;
	int ret;

	s = calloc(1, sizeof(*s) + count * sizeof(s->threads[0]));
	if (!s)
		return brim__err(e, -ENOMEM, "open", "engine sync");
	s->eng = eng;
	/* More hands than CPUs are there to wait: the caller must not. */
	s->helps = count == 1 || (count <= cpu_count() &&
				  !eng->dev->info.is_direct && !eng->is_cold);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->work, NULL);
	pthread_cond_init(&s->news, NULL);
	eng->priv = s;
	ret = sync_start_threads(s, s->helps ? count - 1 : count);
	if (!ret)
		return 0;
	free(s);
	return brim__err(e, ret, "open", "engine sync: starting a thread");
}

static int sync_queue(struct brim__engine *eng, struct brim__io *io)
{
	struct sync *s = eng->priv;

	brim__io_push(&s->queued, io);
	return 0;
}

static int sync_commit(struct brim__engine *eng)
{
	struct sync *s = eng->priv;
	uint32_t wake;

	if (!s->queued.count)
		return 0;
	pthread_mutex_lock(&s->lock);
	wake = BRIM__MIN(s->idle, s->queued.count);
	brim__io_splice(&s->todo, &s->queued);
	if (wake && wake == s->idle)
		pthread_cond_broadcast(&s->work);
	else
		while (wake--)
			pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int sync_reap(struct brim__engine *eng, unsigned int min,
		     struct brim__io **out, unsigned int max)
{
	struct sync *s = eng->priv;
	uint64_t until_ns = s->helps ? brim__now_ns() + SYNC_HELP_NS : 0;
	unsigned int n = 0;

	pthread_mutex_lock(&s->lock);
	while (s->helps && s->todo.count &&
	       (s->finished.count < min ||
		(sync_is_busy(s) && brim__now_ns() < until_ns)))
		sync_work(s);
	while (s->finished.count < min) {
		s->wanted = min;
		pthread_cond_wait(&s->news, &s->lock);
	}
	s->wanted = 0;
	while (n < max && (out[n] = brim__io_pop(&s->finished)))
		n++;
	pthread_mutex_unlock(&s->lock);
	return (int)n;
}

static void sync_cleanup(struct brim__engine *eng)
{
	struct sync *s = eng->priv;

	sync_stop_threads(s);
	pthread_cond_destroy(&s->news);
	pthread_cond_destroy(&s->work);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const struct brim__engine_ops brim__engine_sync = {
	.version = BRIM__ENGINE_VERSION,
	.name = "sync",
	.init = sync_init,
	.queue = sync_queue,
	.commit = sync_commit,
	.reap = sync_reap,
	.cleanup = sync_cleanup,
};
