/* SPDX-License-Identifier: MIT */
/*
 * fill.c: fills: streams carried out on a directory. Owns the submitters and
 * what is granted to them; counts for step. Called by lua_fill.c. Sizes are
 * bytes, times nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "fill.h"

#define DEPTH_DEFAULT 64u
#define DIRECT_MIN_DEFAULT (64u << 10)
/* Failures that are kept for the caller to take. */
#define FAILURES_MAX (1u << 20)
/* Descriptors that the rest of the process may need. */
#define OTHER_FDS 64u

/* ------------------------------------------------------------------ options */

static int check_mode(struct brim_fill *f, struct brim_err *e)
{
	const char *mode = f->o.mode ? f->o.mode : "auto";
	struct brim_err why = { 0 };

	f->is_none = !strcmp(mode, "none");
	f->is_auto = !strcmp(mode, "auto");
	if (f->is_none || !strcmp(mode, "plain"))
		return 0;
	if (!f->is_auto && strcmp(mode, "ring"))
		return brim__errf(e, -EINVAL, "open",
				  "mode '%s': there are auto, plain, ring, "
				  "none",
				  mode);
	f->ring_works = !brim__fill_ring_probe(&why);
	if (!f->ring_works)
		snprintf(f->no_ring, sizeof(f->no_ring), "%.127s", why.msg);
	return 0;
}

static int check_options(struct brim_fill *f, struct brim_err *e)
{
	struct brim_fill_options *o = &f->o;

	if (o->fsync == BRIM_FSYNC_NTH && !o->fsync_every)
		return brim__errf(e, -EINVAL, "open",
				  "fsync_every is at least 1: each n-th "
				  "file");
	if (!o->queue_depth)
		o->queue_depth = DEPTH_DEFAULT;
	if (o->queue_depth > BRIM__FILL_DEPTH_MAX)
		return brim__errf(e, -EINVAL, "open", "queue_depth is 1 to %u",
				  BRIM__FILL_DEPTH_MAX);
	if (!o->max_io_bytes)
		o->max_io_bytes = BRIM__IO_BYTES_DEFAULT;
	if (o->max_io_bytes % BRIM__FILL_ALIGN ||
	    o->max_io_bytes > BRIM__IO_BYTES_MAX)
		return brim__errf(e, -EINVAL, "open",
				  "max_io_bytes is a multiple of 4 KiB, up to "
				  "64 MiB");
	if (!o->direct_min_bytes)
		o->direct_min_bytes = DIRECT_MIN_DEFAULT;
	o->direct_min_bytes = BRIM__MAX(o->direct_min_bytes, BRIM__FILL_ALIGN);
	return check_mode(f, e);
}

/*
 * Whether writes past the page cache reach a drive: asked of a file without a
 * name, of a filesystem on a block device (others take the flag and cache).
 */
static bool probe_direct(const struct brim_fill *f)
{
	struct stat st;
	int fd;

	if (f->is_none || !f->o.direct)
		return false;
	if (f->o.direct > 0)
		return true;
	if (fstat(f->root_fd, &st) < 0 || major(st.st_dev) == 0)
		return false;
	fd = openat(f->root_fd, ".",
		    O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == ENOSPC || errno == EDQUOT;
}

/* Directories that all submitters together can keep open beside their files. */
static uint32_t dirs_that_fit(const struct brim_fill *f)
{
	struct rlimit rl = { .rlim_cur = 1024 };
	uint64_t each;

	getrlimit(RLIMIT_NOFILE, &rl);
	each = (rl.rlim_cur - BRIM__MIN(rl.rlim_cur, OTHER_FDS)) / f->sub_count;
	each -= BRIM__MIN(each, f->o.queue_depth + 2u);
	return (uint32_t)BRIM__MAX(1u, BRIM__MIN(each, BRIM__FILL_DIRS));
}

/* -------------------------------------------------------- opening, closing */

static int sub_init(struct brim_fill *f, uint32_t index, struct brim_err *e)
{
	struct brim__fill_sub *s = &f->subs[index];
	uint32_t k;

	s->fill = f;
	s->index = index;
	s->lowest_fail = s->replay_index = UINT64_MAX;
	s->counts.totals.struct_bytes = sizeof(s->counts.totals);
	pthread_mutex_init(&s->lock, NULL);
	s->fails = calloc(f->o.queue_depth + 2u, sizeof(s->fails[0]));
	s->dirs = calloc(f->dirs, sizeof(s->dirs[0]));
	if (!s->fails || !s->dirs)
		return brim__err(e, -ENOMEM, "open", "fill");
	for (k = 0; k < f->dirs; k++)
		s->dirs[k].fd = -1;
	/* Touched by files of its size only. */
	s->buf = mmap(NULL, f->o.max_io_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->buf == MAP_FAILED) {
		s->buf = NULL;
		return brim__err(e, -ENOMEM, "open", "fill");
	}
	return brim_stream_create(&s->stream, f->fileset, index, e);
}

static void sub_free(struct brim__fill_sub *s)
{
	brim__fill_dirs_close(s);
	brim_stream_free(s->stream);
	if (s->buf)
		munmap(s->buf, s->fill->o.max_io_bytes);
	free(s->dirs);
	free(s->fails);
	free(s->short_ids);
	free(s->replays);
	pthread_mutex_destroy(&s->lock);
}

void brim__cond_init_monotonic(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static int fill_init(struct brim_fill *f, struct brim_fileset *fileset,
		     const char *path, struct brim_err *e)
{
	int ret = check_options(f, e);

	if (ret < 0)
		return ret;
	f->fileset = fileset;
	f->calls = &brim__fill_system;
	f->sub_count = brim_fileset_streams(fileset);
	f->dirs = dirs_that_fit(f);
	f->open_ns = brim__now_ns();
	f->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->root_fd < 0)
		return brim__err(e, -errno, "open", path);
	atomic_store(&f->direct_works, probe_direct(f));
	f->merged = calloc(BRIM_OP_KINDS, sizeof(*f->merged));
	f->subs = calloc(f->sub_count, sizeof(*f->subs));
	if (!f->merged || !f->subs)
		return brim__err(e, -ENOMEM, "open", "fill");
	return f->o.trace_path
		       ? brim__trace_open(&f->trace, f->o.trace_path,
					  f->o.trace_format ? f->o.trace_format
							    : "jsonl",
					  e)
		       : 0;
}

int brim_fill_open(struct brim_fill **out, struct brim_fileset *fs,
		   const char *path, const struct brim_fill_options *o,
		   struct brim_err *e)
{
	struct brim_fill *f = calloc(1, sizeof(*f));
	uint32_t k, count;
	int ret;

	*out = NULL;
	if (!f)
		return brim__err(e, -ENOMEM, "open", "fill");
	f->root_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	brim__cond_init_monotonic(&f->news);
	ret = brim__options_take(&f->o, sizeof(f->o), o, "open", e);
	if (!o)
		f->o.direct = -1;
	if (ret == 0)
		ret = fill_init(f, fs, path, e);
	count = ret == 0 ? f->sub_count : 0;
	f->sub_count = 0;
	for (k = 0; k < count && ret == 0; k++) {
		f->sub_count++;
		ret = sub_init(f, k, e);
	}
	if (ret < 0) {
		brim_fill_close(f);
		return ret;
	}
	for (k = 0; k < count; k++)
		brim__fill_publish(&f->subs[k]);
	*out = f;
	return 0;
}

static void stop_threads(struct brim_fill *f)
{
	uint32_t k;

	brim_fill_stop(f);
	pthread_mutex_lock(&f->lock);
	while (f->running)
		pthread_cond_wait(&f->news, &f->lock);
	f->stopping = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	for (k = 0; k < f->sub_count; k++) {
		if (f->subs[k].has_thread)
			pthread_join(f->subs[k].thread, NULL);
		f->subs[k].has_thread = false;
	}
}

int brim_fill_finish(struct brim_fill *f, struct brim_err *e)
{
	stop_threads(f);
	brim__trace_close(f->trace, &f->trace_err);
	f->trace = NULL;
	if (f->trace_err.code < 0 && e)
		*e = f->trace_err;
	return f->trace_err.code;
}

void brim_fill_close(struct brim_fill *f)
{
	uint32_t k;

	if (!f)
		return;
	brim_fill_finish(f, NULL);
	for (k = 0; k < f->sub_count; k++)
		sub_free(&f->subs[k]);
	if (f->root_fd >= 0)
		close(f->root_fd);
	free(f->subs);
	free(f->merged);
	free(f->failures);
	pthread_cond_destroy(&f->news);
	pthread_cond_destroy(&f->work);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* ----------------------------------------------------------------- granting */

static int start_threads(struct brim_fill *f, struct brim_err *e)
{
	sigset_t all, before;
	uint32_t k;
	int ret = 0;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (k = 0; k < f->sub_count && !ret; k++) {
		struct brim__fill_sub *s = &f->subs[k];

		if (s->has_thread)
			continue;
		ret = pthread_create(&s->thread, NULL, brim__fill_thread, s);
		s->has_thread = !ret;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret ? brim__err(e, -ret, "grant", "starting a thread") : 0;
}

/* Room for what every submitter may be refused before it stops. */
static int make_room(struct brim_fill *f, struct brim_err *e)
{
	size_t need = f->failure_count +
		      (size_t)f->sub_count * (f->o.queue_depth + 2u);
	struct brim_fill_failure *list;
	size_t k;

	if (need <= f->failure_room)
		return 0;
	if (f->failure_count > FAILURES_MAX)
		return brim__errf(e, -ENOBUFS, "grant",
				  "take the failures first: %zu are waiting",
				  f->failure_count);
	list = calloc(2 * need, sizeof(*list));
	if (!list)
		return brim__err(e, -ENOMEM, "grant", "failures");
	for (k = 0; k < f->failure_count; k++)
		list[k] = f->failures[(f->failure_first + k) % f->failure_room];
	free(f->failures);
	f->failures = list;
	f->failure_room = 2 * need;
	f->failure_first = 0;
	return 0;
}

/* What is granted already must be used up first. */
static int lock_idle(struct brim_fill *f, const char *op, struct brim_err *e)
{
	pthread_mutex_lock(&f->lock);
	if (!f->running)
		return 0;
	pthread_mutex_unlock(&f->lock);
	return brim__errf(e, -EBUSY, op, "the grant is still being used");
}

int brim_fill_phase(struct brim_fill *f, const struct brim_phase *p,
		    struct brim_err *e)
{
	struct brim_phase mine;
	uint32_t k;
	int ret = lock_idle(f, "phase", e);

	if (ret < 0)
		return ret;
	ret = brim__options_take(&mine, sizeof(mine), p, "phase", e);
	mine.struct_bytes = sizeof(mine);
	for (k = 0; k < f->sub_count && ret == 0; k++) {
		struct brim_phase each = mine;

		each.live_bytes /= f->sub_count;
		each.live_bytes += k < mine.live_bytes % f->sub_count;
		ret = brim_stream_phase(f->subs[k].stream, &each, e);
	}
	pthread_mutex_unlock(&f->lock);
	return ret;
}

int brim_fill_grant(struct brim_fill *f, uint64_t ops, uint64_t bytes,
		    struct brim_err *e)
{
	int ret = lock_idle(f, "grant", e);

	if (ret < 0)
		return ret;
	ret = f->stopping ? brim__errf(e, -EINVAL, "grant", "the fill is over")
			  : make_room(f, e);
	if (!ret)
		ret = start_threads(f, e);
	if (!ret) {
		atomic_store(&f->stop, false);
		f->grant_ops = ops;
		f->grant_bytes = bytes;
		f->grant_ns = brim__now_ns();
		f->running = f->sub_count;
		f->grant_number++;
		pthread_cond_broadcast(&f->work);
	}
	pthread_mutex_unlock(&f->lock);
	return ret;
}

void brim_fill_stop(struct brim_fill *f)
{
	atomic_store(&f->stop, true);
}

int brim_fill_done(const struct brim_fill *f, uint32_t stream, uint64_t *ops)
{
	if (stream >= f->sub_count)
		return -ENOENT;
	*ops = atomic_load_explicit(&f->subs[stream].done,
				    memory_order_acquire);
	return 0;
}

int brim_fill_failure(struct brim_fill *f, struct brim_fill_failure *out)
{
	int has_one;

	pthread_mutex_lock(&f->lock);
	has_one = f->failure_count > 0;
	if (has_one) {
		*out = f->failures[f->failure_first];
		f->failure_first = (f->failure_first + 1) % f->failure_room;
		f->failure_count--;
	}
	pthread_mutex_unlock(&f->lock);
	return has_one;
}

int brim_fill_step(struct brim_fill *f, uint64_t budget_ns,
		   struct brim_fill_stats *st, struct brim_err *e)
{
	uint64_t until_ns = brim__now_ns() + budget_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000u),
				  .tv_nsec = (long)(until_ns % 1000000000u) };
	int ret = 0, running;
	uint32_t k;

	pthread_mutex_lock(&f->lock);
	while (f->running && !ret)
		ret = budget_ns ? pthread_cond_timedwait(&f->news, &f->lock,
							 &until)
				: pthread_cond_wait(&f->news, &f->lock);
	running = f->running > 0;
	pthread_mutex_unlock(&f->lock);
	if (st)
		brim__fill_stats(f, st);
	for (k = 0; k < f->sub_count && !running; k++) {
		if (f->subs[k].err.code >= 0)
			continue;
		if (e)
			*e = f->subs[k].err;
		return f->subs[k].err.code;
	}
	return running;
}
