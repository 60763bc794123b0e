/* SPDX-License-Identifier: MIT */
/*
 * verify_files.c: compares a directory with what the streams of a fill say:
 * every file they have is read by one of many threads, and the directories are
 * read for files they do not have. Called by lua_fill.c. Sizes are bytes, times
 * nanoseconds.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verify_files.h"

#define FINDINGS_DEFAULT 1000u
#define THREADS_MAX 1024u
/* Each processor waits for several drives' reads. */
#define THREADS_PER_CPU 4u

/* ---------------------------------------------------------------- findings */

void brim__verify_found(struct brim_verify *v, enum brim_finding kind,
			const char *path, uint64_t off_bytes, uint64_t expected,
			uint64_t found)
{
	struct brim__verify_finding *x;

	pthread_mutex_lock(&v->lock);
	v->st.found[kind]++;
	if (v->finding_count < v->finding_max) {
		x = &v->findings[v->finding_count++];
		x->kind = kind;
		x->off_bytes = off_bytes;
		x->expected = expected;
		x->found = found;
		x->path = strdup(path);
		if (!x->path)
			v->error = -ENOMEM;
	}
	pthread_mutex_unlock(&v->lock);
}

static int by_path(const void *a, const void *b)
{
	const struct brim__verify_finding *x = a, *y = b;

	return strcmp(x->path, y->path);
}

int brim_verify_finding(const struct brim_verify *v, size_t k,
			const char **path, uint64_t *off_bytes,
			uint64_t *expected, uint64_t *found)
{
	struct brim_verify *mine = (struct brim_verify *)v;
	const struct brim__verify_finding *x;
	int kind = -ENOENT;

	pthread_mutex_lock(&mine->lock);
	if (k < v->finding_count && v->findings[k].path) {
		x = &v->findings[k];
		*path = x->path;
		*off_bytes = x->off_bytes;
		*expected = x->expected;
		*found = x->found;
		kind = (int)x->kind;
	}
	pthread_mutex_unlock(&mine->lock);
	return kind;
}

/* ------------------------------------------------------------------- work */

/* Directories first: they lead to more work. Called with the lock. */
static bool take_work(struct brim_verify *v, struct brim__verify_work *w)
{
	uint64_t live;

	w->dir = NULL;
	if (v->dir_count) {
		w->dir = v->dirs[--v->dir_count];
		return true;
	}
	for (; v->next_stream < v->stream_count; v->next_stream++) {
		live = v->live[v->next_stream];
		if (v->next_file >= live) {
			v->next_file = 0;
			continue;
		}
		w->stream = v->next_stream;
		w->first = v->next_file;
		w->count = BRIM__MIN(live - w->first, BRIM__VERIFY_TAKE);
		v->next_file += w->count;
		return true;
	}
	return false;
}

static void *verify_thread(void *arg)
{
	struct brim_verify *v = arg;
	struct brim__verify_work w;
	uint8_t *buf = NULL;

	if (posix_memalign((void **)&buf, BRIM__BUFFER_ALIGN,
			   BRIM__VERIFY_BUFFER))
		buf = NULL;
	pthread_mutex_lock(&v->lock);
	if (!buf)
		v->error = -ENOMEM;
	while (!v->stopping && !v->error) {
		if (take_work(v, &w)) {
			v->working++;
			pthread_mutex_unlock(&v->lock);
			if (w.dir)
				brim__verify_dir(v, w.dir);
			else
				brim__verify_files(v, &w, buf);
			pthread_mutex_lock(&v->lock);
			v->working--;
			continue;
		}
		if (!v->working)
			break;
		/* Who reads a directory may yet find more. */
		pthread_cond_wait(&v->work, &v->lock);
	}
	v->ended++;
	v->end_ns = brim__now_ns();
	pthread_cond_broadcast(&v->work);
	pthread_cond_signal(&v->news);
	pthread_mutex_unlock(&v->lock);
	free(buf);
	return NULL;
}

static uint32_t thread_count(const struct brim_verify_options *o)
{
	cpu_set_t set;

	if (o->threads)
		return BRIM__MIN(o->threads, THREADS_MAX);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return THREADS_PER_CPU;
	return THREADS_PER_CPU * (uint32_t)CPU_COUNT(&set);
}

static int start_threads(struct brim_verify *v, struct brim_err *e)
{
	sigset_t all, before;
	uint32_t k, count = v->thread_room;
	int ret = 0;

	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&v->lock);
	v->start_ns = brim__now_ns();
	for (k = 0; k < count && !ret; k++) {
		ret = pthread_create(&v->threads[k], NULL, verify_thread, v);
		v->thread_count += !ret;
	}
	pthread_mutex_unlock(&v->lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return v->thread_count
		       ? 0
		       : brim__err(e, -ret, "verify", "starting a thread");
}

/* -------------------------------------------------------- opening, closing */

static int verify_init(struct brim_verify *v,
		       const struct brim_verify_options *o, struct brim_err *e)
{
	bool is_busy;

	pthread_mutex_lock(&v->fill->lock);
	is_busy = v->fill->running > 0;
	pthread_mutex_unlock(&v->fill->lock);
	if (is_busy)
		return brim__errf(e, -EBUSY, "verify",
				  "the grant is still being used");
	v->finding_max = o->max_findings ? o->max_findings : FINDINGS_DEFAULT;
	v->is_direct = o->is_direct;
	v->thread_room = thread_count(o);
	v->stream_count = v->fill->sub_count;
	v->findings = calloc(v->finding_max, sizeof(*v->findings));
	v->threads = calloc(v->thread_room, sizeof(*v->threads));
	v->live = calloc(v->stream_count, sizeof(*v->live));
	v->touched = calloc(v->stream_count, sizeof(*v->touched));
	if (!v->findings || !v->threads || !v->live || !v->touched)
		return brim__err(e, -ENOMEM, "verify", "findings");
	return 0;
}

static void sum_totals(struct brim_verify *v)
{
	struct brim_stream_totals t = { .struct_bytes = sizeof(t) };
	uint32_t k;

	for (k = 0; k < v->stream_count; k++) {
		brim_stream_totals(v->fill->subs[k].stream, &t);
		v->live[k] = t.live_files;
		v->st.total_files += t.live_files;
		v->st.total_bytes += t.live_bytes;
	}
}

int brim_verify_open(struct brim_verify **out, struct brim_fill *f,
		     const uint64_t *window,
		     const struct brim_verify_options *o, struct brim_err *e)
{
	struct brim_verify *v = calloc(1, sizeof(*v));
	struct brim_verify_options mine;
	int ret;
	uint32_t k;

	*out = NULL;
	if (!v)
		return brim__err(e, -ENOMEM, "verify", "handle");
	v->fill = f;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->work, NULL);
	brim__cond_init_monotonic(&v->news);
	ret = brim__options_take(&mine, sizeof(mine), o, "verify", e);
	if (ret == 0)
		ret = verify_init(v, &mine, e);
	for (k = 0; ret == 0 && k < v->stream_count; k++) {
		if (window && window[k])
			ret = brim__verify_window(v, k, window[k], e);
		if (ret == 0)
			ret = brim__verify_push_tree(v, k, e);
	}
	if (ret < 0) {
		brim_verify_close(v);
		return ret;
	}
	sum_totals(v);
	*out = v;
	return 0;
}

void brim_verify_close(struct brim_verify *v)
{
	uint32_t k;
	size_t i;

	if (!v)
		return;
	pthread_mutex_lock(&v->lock);
	v->stopping = true;
	pthread_cond_broadcast(&v->work);
	pthread_mutex_unlock(&v->lock);
	for (k = 0; k < v->thread_count; k++)
		pthread_join(v->threads[k], NULL);
	for (k = 0; v->touched && k < v->stream_count; k++)
		free(v->touched[k].bits);
	for (i = 0; i < v->finding_count; i++)
		free(v->findings[i].path);
	for (i = 0; i < v->dir_count; i++)
		free(v->dirs[i]);
	free(v->dirs);
	free(v->findings);
	free(v->threads);
	free(v->live);
	free(v->touched);
	pthread_cond_destroy(&v->news);
	pthread_cond_destroy(&v->work);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

/* ---------------------------------------------------------------- stepping */

static void take_stats(const struct brim_verify *v,
		       struct brim_verify_stats *st)
{
	size_t room = st->struct_bytes;
	struct brim_verify_stats all = v->st;

	all.struct_bytes = room;
	all.elapsed_ns =
		(v->ended == v->thread_count ? v->end_ns : brim__now_ns()) -
		v->start_ns;
	memcpy(st, &all, BRIM__MIN(room, sizeof(all)));
}

int brim_verify_step(struct brim_verify *v, uint64_t budget_ns,
		     struct brim_verify_stats *st, struct brim_err *e)
{
	uint64_t until_ns = brim__now_ns() + budget_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000u),
				  .tv_nsec = (long)(until_ns % 1000000000u) };
	int ret = 0, more;

	if (!v->thread_count)
		ret = start_threads(v, e);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&v->lock);
	while (v->ended < v->thread_count && !ret)
		ret = budget_ns ? pthread_cond_timedwait(&v->news, &v->lock,
							 &until)
				: pthread_cond_wait(&v->news, &v->lock);
	more = v->ended < v->thread_count;
	if (!more && !v->is_sorted && !v->error) {
		qsort(v->findings, v->finding_count, sizeof(v->findings[0]),
		      by_path);
		v->is_sorted = true;
	}
	if (st)
		take_stats(v, st);
	ret = v->error;
	pthread_mutex_unlock(&v->lock);
	return ret < 0 ? brim__err(e, ret, "verify", "comparing") : more;
}
