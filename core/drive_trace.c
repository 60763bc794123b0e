/* SPDX-License-Identifier: MIT */
/*
 * drive_trace.c: block traces, see brim_drive.h: written by drive_live.c and
 * replays, read by replays; other formats are read through trace_read.c.
 * Bytes, nanoseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"

#define MAGIC "BRIMBLK1"
#define HEADER_BYTES 32u
#define RECORD_BYTES 32u
#define BUFFER_RECORDS 4096u

struct brim_drive_writer {
	int fd;
	struct brim_err failure;
	size_t used;
	uint8_t buffer[BUFFER_RECORDS * RECORD_BYTES];
};

static void put(uint8_t *at, uint32_t width_bytes, uint64_t v)
{
	brim__store(at, width_bytes, BRIM_LITTLE, v);
}

static uint64_t get(const uint8_t *at, uint32_t width_bytes)
{
	return brim__load(at, width_bytes, BRIM_LITTLE);
}

/* ------------------------------------------------------------------ writing */

int brim_drive_writer_open(struct brim_drive_writer **out, const char *path,
			   uint64_t size_bytes, struct brim_err *e)
{
	struct brim_drive_writer *w;
	struct timespec now;

	*out = NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return brim__err(e, -ENOMEM, "open", path);
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (w->fd < 0) {
		free(w);
		return brim__err(e, -errno, "open", path);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	memcpy(w->buffer, MAGIC, 8);
	put(w->buffer + 8, 4, RECORD_BYTES);
	put(w->buffer + 16, 8, size_bytes);
	put(w->buffer + 24, 8,
	    (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	w->used = HEADER_BYTES;
	*out = w;
	return 0;
}

void brim_drive_writer_flush(struct brim_drive_writer *w)
{
	size_t done = 0;

	while (done < w->used && !w->failure.code) {
		ssize_t n = write(w->fd, w->buffer + done, w->used - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			brim__err(&w->failure, -errno, "write", "block trace");
	}
	w->used = 0;
}

static void put_record(struct brim_drive_writer *w,
		       const struct brim_drive_event *x, uint64_t off,
		       uint64_t len)
{
	uint8_t *at = w->buffer + w->used;

	put(at, 8, x->at_ns);
	put(at + 8, 8, off);
	put(at + 16, 8, x->took_ns);
	put(at + 24, 4, len);
	put(at + 28, 2, x->stream & 0xffff);
	put(at + 30, 1, x->op);
	put(at + 31, 1, 0);
	w->used += RECORD_BYTES;
	if (w->used + RECORD_BYTES > sizeof(w->buffer))
		brim_drive_writer_flush(w);
}

void brim_drive_writer_add(struct brim_drive_writer *w,
			   const struct brim_drive_event *x)
{
	/* In whole blocks, where a record cannot hold all. */
	const uint64_t most = UINT32_MAX & ~UINT64_C(4095);
	uint64_t off = x->off_bytes, left = x->len_bytes;

	for (; left > UINT32_MAX; left -= most, off += most)
		put_record(w, x, off, most);
	put_record(w, x, off, left);
}

int brim_drive_writer_close(struct brim_drive_writer *w, struct brim_err *e)
{
	int ret;

	if (!w)
		return 0;
	brim_drive_writer_flush(w);
	if (close(w->fd) < 0 && !w->failure.code)
		brim__err(&w->failure, -errno, "close", "block trace");
	ret = w->failure.code;
	if (ret < 0 && e)
		*e = w->failure;
	free(w);
	return ret;
}

/* ------------------------------------------------------------------ reading */

struct brim_drive_reader {
	struct brim_trace *other; /* NULL: a block trace */
	int fd;
	uint64_t record; /* so many were read */
	size_t from, to;
	uint8_t buffer[BUFFER_RECORDS * RECORD_BYTES];
};

/* Up to len bytes; fewer at the end only. -errno. */
static ssize_t read_some(int fd, uint8_t *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, buf + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* 1: a block trace, 0: something else. */
static int take_header(struct brim_drive_reader *r, const char *path,
		       uint64_t *size_bytes, struct brim_err *e)
{
	uint8_t header[HEADER_BYTES];
	ssize_t n;

	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return brim__err(e, -errno, "open", path);
	n = read_some(r->fd, header, sizeof(header));
	if (n < 0)
		return brim__err(e, (int)n, "read", path);
	if (n < 8 || memcmp(header, MAGIC, 8))
		return 0;
	if (n < (ssize_t)sizeof(header) || get(header + 8, 4) != RECORD_BYTES)
		return brim__errf(e, -EINVAL, "read",
				  "%s: its header is no block trace's", path);
	*size_bytes = get(header + 16, 8);
	return 1;
}

int brim_drive_reader_open(struct brim_drive_reader **out, const char *path,
			   uint64_t *size_bytes, struct brim_err *e)
{
	struct brim_drive_reader *r = calloc(1, sizeof(*r));
	int ret;

	*out = NULL;
	*size_bytes = 0;
	if (!r)
		return brim__err(e, -ENOMEM, "open", path);
	ret = take_header(r, path, size_bytes, e);
	if (ret == 0)
		ret = brim_trace_open(&r->other, path, NULL, e);
	if (ret < 0) {
		brim_drive_reader_close(r);
		return ret;
	}
	*out = r;
	return 0;
}

void brim_drive_reader_close(struct brim_drive_reader *r)
{
	if (!r)
		return;
	brim_trace_close(r->other);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

/* What a trace of another format says to a drive; 0: nothing. */
static int translate(const struct brim_trace_event *from,
		     struct brim_drive_event *x)
{
	static const int ops[BRIM_TRACE_OPS] = {
		[BRIM_TRACE_READ] = BRIM_DRIVE_READ + 1,
		[BRIM_TRACE_WRITE] = BRIM_DRIVE_WRITE + 1,
		[BRIM_TRACE_TRIM] = BRIM_DRIVE_TRIM + 1,
		[BRIM_TRACE_SYNC] = BRIM_DRIVE_FLUSH + 1,
		[BRIM_TRACE_DATASYNC] = BRIM_DRIVE_FLUSH + 1,
	};

	if (!ops[from->op])
		return 0;
	*x = (struct brim_drive_event){
		.op = (enum brim_drive_op)(ops[from->op] - 1),
		.stream = from->stream & 0xffff,
		.at_ns = from->at_ns,
	};
	if (x->op != BRIM_DRIVE_FLUSH) {
		x->off_bytes = from->off_bytes;
		x->len_bytes = from->len_bytes;
	}
	return 1;
}

static int next_other(struct brim_drive_reader *r, struct brim_drive_event *x,
		      struct brim_err *e)
{
	struct brim_trace_event from;
	int ret;

	do
		ret = brim_trace_next(r->other, &from, e);
	while (ret > 0 && !translate(&from, x));
	return ret;
}

/* 1: there is a record at r->from, 0: the end. */
static int refill(struct brim_drive_reader *r, struct brim_err *e)
{
	ssize_t n;

	if (r->from < r->to)
		return 1;
	n = read_some(r->fd, r->buffer, sizeof(r->buffer));
	if (n < 0)
		return brim__err(e, (int)n, "read", "block trace");
	if (n % RECORD_BYTES)
		return brim__errf(
			e, -EINVAL, "read",
			"a block trace ends within record %llu",
			(unsigned long long)(r->record +
					     (size_t)n / RECORD_BYTES));
	r->from = 0;
	r->to = (size_t)n;
	return n > 0;
}

int brim_drive_reader_next(struct brim_drive_reader *r,
			   struct brim_drive_event *x, struct brim_err *e)
{
	const uint8_t *at;
	int ret;

	if (r->other)
		return next_other(r, x, e);
	ret = refill(r, e);
	if (ret <= 0)
		return ret;
	at = r->buffer + r->from;
	x->at_ns = get(at, 8);
	x->off_bytes = get(at + 8, 8);
	x->took_ns = get(at + 16, 8);
	x->len_bytes = get(at + 24, 4);
	x->stream = (uint32_t)get(at + 28, 2);
	x->op = (enum brim_drive_op)at[30];
	if (at[30] >= BRIM_DRIVE_OPS || x->off_bytes > BRIM_MAX_BYTES ||
	    x->at_ns > BRIM__DRIVE_CLOCK_MAX ||
	    x->took_ns > BRIM__DRIVE_CLOCK_MAX)
		return brim__errf(e, -EINVAL, "read",
				  "record %llu of a block trace cannot be",
				  (unsigned long long)r->record);
	r->from += RECORD_BYTES;
	r->record++;
	return 1;
}
