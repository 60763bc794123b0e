/* SPDX-License-Identifier: MIT */
/*
 * trace_write.c: writes traces: fio's iolog of versions 2 and 3, and lines of
 * JSON. Called by the submitters of fill.c, several threads at once, and by
 * conversions; so a call only formats into a buffer, mostly. Bytes, ns.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

#define BUFFER_BYTES (256u << 10)
/* Room for a line: two paths, each byte of which may become "\u00xx". */
#define LINE_BYTES (2 * 6 * BRIM__TRACE_PATH_MAX + 512)
/*
 * What fio reads: names of up to 256 bytes (iolog.c: "%256s"); waits of less
 * than 100 us are discarded (HOWTO, "Trace file format v2").
 */
#define IOLOG_PATH_MAX 255u
#define IOLOG_WAIT_MIN_NS 100000u

/* Of a file's hash: it is open. */
#define FILE_OPEN UINT64_C(1)

enum format { IOLOG2, IOLOG3, JSONL };

static const char *const format_names[] = { "iolog2", "iolog3", "jsonl" };
static const char *const headers[] = {
	"fio version 2 iolog\n",
	"fio version 3 iolog\n",
	"{\"format\":\"brim-trace\",\"version\":1}\n",
};

const char *const brim__trace_op_names[BRIM_TRACE_OPS] = {
	[BRIM_TRACE_READ] = "read",         [BRIM_TRACE_WRITE] = "write",
	[BRIM_TRACE_TRIM] = "trim",         [BRIM_TRACE_SYNC] = "sync",
	[BRIM_TRACE_DATASYNC] = "datasync", [BRIM_TRACE_ADD] = "add",
	[BRIM_TRACE_OPEN] = "open",         [BRIM_TRACE_CREATE] = "create",
	[BRIM_TRACE_CLOSE] = "close",       [BRIM_TRACE_UNLINK] = "unlink",
	[BRIM_TRACE_RENAME] = "rename",     [BRIM_TRACE_TRUNCATE] = "truncate",
	[BRIM_TRACE_MKDIR] = "mkdir",
};

struct brim__trace {
	int fd;
	enum format format;
	pthread_mutex_t lock; /* of all below */
	uint64_t last_ns;     /* of the last line */
	uint64_t wait_ns;     /* iolog2: the time that waits have reached */
	uint64_t omitted;
	uint64_t *files; /* iolog: hashes of the paths that were added */
	size_t file_count, file_room;
	struct brim_err failure; /* the first; code 0: none */
	size_t used;
	char buffer[BUFFER_BYTES + LINE_BYTES];
};

/* ------------------------------------------------------------ open, close */

int brim__trace_open(struct brim__trace **out, const char *path,
		     const char *format, struct brim_err *e)
{
	struct brim__trace *t;
	size_t k;

	*out = NULL;
	for (k = 0; k < sizeof(format_names) / sizeof(*format_names); k++)
		if (format && !strcmp(format, format_names[k]))
			break;
	if (k == sizeof(format_names) / sizeof(*format_names))
		return brim__errf(e, -EINVAL, "open",
				  "trace format '%s': it is iolog2, iolog3 or "
				  "jsonl",
				  format ? format : "");
	t = calloc(1, sizeof(*t));
	if (!t)
		return brim__err(e, -ENOMEM, "open", path);
	t->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (t->fd < 0) {
		free(t);
		return brim__err(e, -errno, "open", path);
	}
	t->format = (enum format)k;
	pthread_mutex_init(&t->lock, NULL);
	t->used = strlen(headers[k]);
	memcpy(t->buffer, headers[k], t->used);
	*out = t;
	return 0;
}

static void trace_fail(struct brim__trace *t, int code, const char *what)
{
	if (!t->failure.code)
		brim__err(&t->failure, code, "write", what);
}

static void trace_drain(struct brim__trace *t)
{
	size_t done = 0;

	while (done < t->used && !t->failure.code) {
		ssize_t n = write(t->fd, t->buffer + done, t->used - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			trace_fail(t, -errno, "trace");
	}
	t->used = 0;
}

int brim__trace_close(struct brim__trace *t, struct brim_err *e)
{
	int ret;

	if (!t)
		return 0;
	trace_drain(t);
	/* Some filesystems tell only here that there was no room. */
	if (close(t->fd) < 0)
		trace_fail(t, -errno, "trace");
	ret = t->failure.code;
	if (ret < 0 && e)
		*e = t->failure;
	pthread_mutex_destroy(&t->lock);
	free(t->files);
	free(t);
	return ret;
}

uint64_t brim__trace_omitted(struct brim__trace *t)
{
	uint64_t n;

	pthread_mutex_lock(&t->lock);
	n = t->omitted;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* ------------------------------------------------------------- formatting */

static void put(struct brim__trace *t, const char *text)
{
	size_t n = strlen(text);

	memcpy(t->buffer + t->used, text, n);
	t->used += n;
}

static void put_number(struct brim__trace *t, uint64_t n)
{
	char digits[24];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + n % 10);
	while (n /= 10);
	memcpy(t->buffer + t->used, digits + at, sizeof(digits) - at);
	t->used += sizeof(digits) - at;
}

/* A JSON string (RFC 8259); bytes that are not ASCII pass as they are. */
static void put_string(struct brim__trace *t, const char *text)
{
	const unsigned char *p;
	char *at = t->buffer + t->used;

	*at++ = '"';
	for (p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\') {
			*at++ = '\\';
			*at++ = (char)*p;
		} else if (*p < 0x20) {
			at += sprintf(at, "\\u%04x", *p);
		} else {
			*at++ = (char)*p;
		}
	}
	*at++ = '"';
	t->used = (size_t)(at - t->buffer);
}

static void put_json(struct brim__trace *t, const struct brim_trace_event *x)
{
	put(t, "{\"at_ns\":");
	put_number(t, t->last_ns);
	put(t, ",\"stream\":");
	put_number(t, x->stream);
	put(t, ",\"op\":\"");
	put(t, brim__trace_op_names[x->op]);
	put(t, "\"");
	if (x->path) {
		put(t, ",\"path\":");
		put_string(t, x->path);
	}
	if (x->op == BRIM_TRACE_RENAME && x->to) {
		put(t, ",\"to\":");
		put_string(t, x->to);
	}
	if (x->op <= BRIM_TRACE_TRIM) {
		put(t, ",\"off_bytes\":");
		put_number(t, x->off_bytes);
	}
	if (x->op <= BRIM_TRACE_TRIM || x->op == BRIM_TRACE_TRUNCATE) {
		put(t, ",\"len_bytes\":");
		put_number(t, x->len_bytes);
	}
	put(t, "}\n");
}

/* ------------------------------------------------------------------ iolog */

static uint64_t hash_of(const char *path)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3u;
	/* 0 marks a free place, the lowest bit an open file. */
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	h ^= h >> 32;
	return h & ~FILE_OPEN ? h & ~FILE_OPEN : FILE_OPEN << 1;
}

/* Open addressing: where a file is, or would be put. */
static uint64_t *file_at(uint64_t *files, size_t room, uint64_t h)
{
	size_t at = h >> 1 & (room - 1);

	while (files[at] && (files[at] & ~FILE_OPEN) != h)
		at = (at + 1) & (room - 1);
	return &files[at];
}

static bool files_grow(struct brim__trace *t)
{
	size_t room = t->file_room ? 2 * t->file_room : 1024, k;
	uint64_t *bigger = calloc(room, sizeof(*bigger));

	if (!bigger)
		return false;
	for (k = 0; k < t->file_room; k++)
		if (t->files[k])
			*file_at(bigger, room, t->files[k] & ~FILE_OPEN) =
				t->files[k];
	free(t->files);
	t->files = bigger;
	t->file_room = room;
	return true;
}

/* What is known of a file, 0 if it must be added; NULL: no memory. */
static uint64_t *file_of(struct brim__trace *t, const char *path, uint64_t *h)
{
	if (2 * (t->file_count + 1) > t->file_room && !files_grow(t)) {
		trace_fail(t, -ENOMEM, "trace");
		return NULL;
	}
	*h = hash_of(path);
	return file_at(t->files, t->file_room, *h);
}

static void put_action(struct brim__trace *t, const char *path,
		       const char *action)
{
	if (t->format == IOLOG3) {
		put_number(t, t->last_ns / 1000); /* us */
		put(t, " ");
	}
	put(t, path);
	put(t, " ");
	put(t, action);
}

static void put_range(struct brim__trace *t, uint64_t off_bytes,
		      uint64_t len_bytes)
{
	put(t, " ");
	put_number(t, off_bytes);
	put(t, " ");
	put_number(t, len_bytes);
	put(t, "\n");
}

/* Version 2: a wait, whose time counts from the wait before. */
static void put_wait(struct brim__trace *t, const char *path)
{
	uint64_t wait_us = (t->last_ns - t->wait_ns) / 1000;

	if (t->last_ns - t->wait_ns < IOLOG_WAIT_MIN_NS)
		return;
	put_action(t, path, "wait");
	put_range(t, wait_us, 0);
	t->wait_ns += wait_us * 1000;
}

static bool iolog_can_say(const struct brim_trace_event *x)
{
	return x->op <= BRIM_TRACE_CLOSE;
}

static bool iolog_path(struct brim__trace *t, const char *path)
{
	if (!path || !*path || strpbrk(path, " \t\n\v\f\r"))
		brim__errf(&t->failure, -EILSEQ, "write",
			   "an iolog has no word for the path '%.60s': blanks "
			   "end it; jsonl has",
			   path ? path : "");
	else if (strlen(path) > IOLOG_PATH_MAX)
		brim__errf(&t->failure, -ENAMETOOLONG, "write",
			   "fio reads paths of at most 255 bytes, '%.40s...' "
			   "has %zu; jsonl takes it",
			   path, strlen(path));
	return !t->failure.code;
}

/* A line without a range. */
static void put_plain(struct brim__trace *t, const char *path,
		      const char *action)
{
	put_action(t, path, action);
	put(t, "\n");
}

/*
 * fio stops where I/O is done on a file that is not open, so that files which
 * nobody opened are opened here, and none twice.
 */
static void put_on_file(struct brim__trace *t, const struct brim_trace_event *x,
			uint64_t *file)
{
	bool is_open = *file & FILE_OPEN;

	if (t->format == IOLOG2)
		put_wait(t, x->path);
	if (x->op == BRIM_TRACE_CLOSE) {
		if (is_open)
			put_plain(t, x->path, "close");
		*file &= ~FILE_OPEN;
		return;
	}
	if (!is_open)
		put_plain(t, x->path, "open");
	*file |= FILE_OPEN;
	if (x->op > BRIM_TRACE_DATASYNC)
		return;
	put_action(t, x->path, brim__trace_op_names[x->op]);
	put_range(t, x->off_bytes, x->len_bytes);
}

static void put_iolog(struct brim__trace *t, const struct brim_trace_event *x)
{
	uint64_t *file, hash;

	if (!iolog_can_say(x)) {
		t->omitted++;
		return;
	}
	if (!iolog_path(t, x->path))
		return;
	file = file_of(t, x->path, &hash);
	if (!file)
		return;
	if (!*file) {
		put_plain(t, x->path, "add");
		*file = hash;
		t->file_count++;
	}
	if (x->op != BRIM_TRACE_ADD)
		put_on_file(t, x, file);
}

/* ---------------------------------------------------------------- an event */

static bool event_fits(struct brim__trace *t, const struct brim_trace_event *x)
{
	if ((unsigned int)x->op >= BRIM_TRACE_OPS)
		trace_fail(t, -EINVAL, "no such operation");
	else if ((x->path && strlen(x->path) >= BRIM__TRACE_PATH_MAX) ||
		 (x->to && strlen(x->to) >= BRIM__TRACE_PATH_MAX))
		trace_fail(t, -ENAMETOOLONG, "trace");
	return !t->failure.code;
}

void brim__trace_op(struct brim__trace *t, const struct brim_trace_event *x)
{
	pthread_mutex_lock(&t->lock);
	if (!t->failure.code && event_fits(t, x)) {
		t->last_ns = BRIM__MAX(t->last_ns, x->at_ns);
		if (t->format == JSONL)
			put_json(t, x);
		else
			put_iolog(t, x);
		if (t->used >= BUFFER_BYTES)
			trace_drain(t);
	}
	pthread_mutex_unlock(&t->lock);
}
