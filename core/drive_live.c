/* SPDX-License-Identifier: MIT */
/*
 * drive_live.c: a model that runs beside the clock: what is done on a file
 * takes as long as on the drive, and is recorded. Called by the shim and by
 * the nbdkit plugin, from any thread; small in stack, as the shim's callers
 * may have a page of it. Bytes, nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"

/*
 * Sleeps end late, and the file itself takes its time: so much of it is given
 * back to the stream with its next I/O, whose arrival counts from when the last
 * one should have been done.
 */
#define CREDIT_MAX_NS 100000000u
#define SLOTS 1024u

struct slot {
	uint64_t now_ns, done_ns; /* the last end: by the clock, by the model */
};

struct brim__live {
	pthread_mutex_t lock; /* of all below but the last two */
	struct brim_drive *d;
	struct brim_drive_writer *trace; /* NULL: nothing is recorded yet */
	char *trace_path;
	uint64_t size_bytes;
	uint64_t late_ns; /* by which the file was too slow to be given back */
	double speed;
	uint64_t start_ns; /* real */
	struct slot slots[SLOTS];
};

/*
 * Can a trace be written there? It is emptied with the first record: programs
 * that only start another one have nothing to say.
 */
static int live_trace(struct brim__live *l, const char *path,
		      struct brim_err *e)
{
	int fd;

	if (!path)
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return brim__err(e, -errno, "open", path);
	close(fd);
	l->trace_path = strdup(path);
	return l->trace_path ? 0 : brim__err(e, -ENOMEM, "open", path);
}

int brim__live_open(struct brim__live **out, const struct brim__live_options *o,
		    struct brim_err *e)
{
	struct brim_drive_params p;
	struct brim__live *l;
	int ret;

	*out = NULL;
	ret = brim_drive_params_parse(&p, o->model, e);
	if (ret < 0)
		return ret;
	if (!(o->speed > 0 && o->speed <= 1e6))
		return brim__errf(e, -EINVAL, "drive",
				  "a speed of %g; it is above 0, at most 1e6",
				  o->speed);
	if (!p.size_bytes)
		p.size_bytes = o->size_bytes;
	l = calloc(1, sizeof(*l));
	if (!l)
		return brim__err(e, -ENOMEM, "drive", "model");
	pthread_mutex_init(&l->lock, NULL);
	l->speed = o->speed;
	l->size_bytes = p.size_bytes;
	l->start_ns = brim__now_ns();
	ret = brim_drive_create(&l->d, &p, e);
	if (ret == 0)
		ret = live_trace(l, o->trace, e);
	if (ret < 0) {
		brim__live_close(l, NULL);
		return ret;
	}
	*out = l;
	return 0;
}

uint64_t brim__live_now(struct brim__live *l)
{
	return (uint64_t)((double)(brim__now_ns() - l->start_ns) * l->speed);
}

/* Until the model's clock says so. */
static void sleep_until(struct brim__live *l, uint64_t at_ns)
{
	uint64_t real = l->start_ns + (uint64_t)((double)at_ns / l->speed);
	struct timespec t = { .tv_sec = (time_t)(real / 1000000000u),
			      .tv_nsec = (long)(real % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) ==
	       EINTR)
		;
}

/* When the model is done; what lies past its end takes no time. */
static uint64_t model_done(struct brim__live *l, struct brim_drive_io *io,
			   uint32_t stream)
{
	const struct slot *s = &l->slots[stream % SLOTS];
	uint64_t late = s->now_ns - BRIM__MIN(s->now_ns, s->done_ns), done_ns;

	late = BRIM__MIN(late, (uint64_t)(CREDIT_MAX_NS * l->speed));
	io->at_ns -= BRIM__MIN(io->at_ns, late);
	return brim_drive_io(l->d, io, &done_ns) < 0 ? io->at_ns : done_ns;
}

static void record(struct brim__live *l, const struct brim_drive_event *x)
{
	if (!l->trace && l->trace_path &&
	    brim_drive_writer_open(&l->trace, l->trace_path, l->size_bytes,
				   NULL) < 0)
		return;
	if (l->trace)
		brim_drive_writer_add(l->trace, x);
}

void brim__live_done(struct brim__live *l, enum brim_drive_op op,
		     uint64_t off_bytes, uint64_t len_bytes, uint64_t at_ns,
		     uint32_t stream)
{
	struct brim_drive_io io = { op, off_bytes, len_bytes, at_ns };
	struct brim_drive_event x = {
		op, stream, at_ns, 0, off_bytes, len_bytes
	};
	uint64_t done_ns, now_ns;

	pthread_mutex_lock(&l->lock);
	done_ns = model_done(l, &io, stream);
	pthread_mutex_unlock(&l->lock);
	now_ns = brim__live_now(l);
	if (done_ns > now_ns)
		sleep_until(l, done_ns);
	else if (now_ns - done_ns > CREDIT_MAX_NS * l->speed)
		__atomic_fetch_add(&l->late_ns, now_ns - done_ns,
				   __ATOMIC_RELAXED);
	now_ns = brim__live_now(l);
	x.took_ns = now_ns - at_ns;
	pthread_mutex_lock(&l->lock);
	l->slots[stream % SLOTS] = (struct slot){ now_ns, done_ns };
	record(l, &x);
	pthread_mutex_unlock(&l->lock);
}

int brim__live_stats(struct brim__live *l, struct brim_drive_stats *st,
		     uint64_t *late_ns)
{
	int ret;

	pthread_mutex_lock(&l->lock);
	if (l->trace)
		brim_drive_writer_flush(l->trace);
	ret = brim_drive_stats(l->d, st);
	*late_ns = l->late_ns;
	pthread_mutex_unlock(&l->lock);
	return ret;
}

int brim__live_close(struct brim__live *l, struct brim_err *e)
{
	int ret;

	if (!l)
		return 0;
	ret = brim_drive_writer_close(l->trace, e);
	brim_drive_free(l->d);
	free(l->trace_path);
	pthread_mutex_destroy(&l->lock);
	free(l);
	return ret;
}
