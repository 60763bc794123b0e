/* SPDX-License-Identifier: MIT */
/*
 * fuzz_trace.c: traces: whatever the lines, each is an event that holds what
 * the header promises, or refused with a reason; what was read can be written
 * in every format, and what was written in brim's own is read as the same. The
 * first byte chooses the format.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "trace.h"

static const char *const formats[] = { "auto",    "iolog2",   "iolog3",
				       "jsonl",   "blkparse", "msr",
				       "alibaba", "tencent" };

static int file_of(const void *data, size_t size, char path[32])
{
	int fd = memfd_create("trace", 0);

	claim(fd >= 0, "no file in memory");
	claim(write(fd, data, size) == (ssize_t)size, "not written");
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

/* Two that are written alike; times may be moved up. */
static void check_same(const struct brim_trace_event *a,
		       const struct brim_trace_event *b)
{
	claim(a->op == b->op && a->stream == b->stream, "another operation");
	claim(a->off_bytes == b->off_bytes || a->op > BRIM_TRACE_TRIM,
	      "another offset");
	claim(a->len_bytes == b->len_bytes ||
		      (a->op > BRIM_TRACE_TRIM && a->op != BRIM_TRACE_TRUNCATE),
	      "another length");
	claim(!a->path == !b->path && (!a->path || !strcmp(a->path, b->path)),
	      "another path");
	claim(!a->to == !b->to && (!a->to || !strcmp(a->to, b->to)),
	      "another path to rename to");
}

static void check_event(const struct brim_trace_event *x)
{
	claim((unsigned int)x->op < BRIM_TRACE_OPS, "no operation");
	claim(x->off_bytes <= BRIM_MAX_BYTES &&
		      x->len_bytes <= BRIM_MAX_BYTES - x->off_bytes,
	      "past the largest offset");
	claim(!x->path || strlen(x->path) < BRIM__TRACE_PATH_MAX,
	      "a path that is too long");
	claim(x->op != BRIM_TRACE_RENAME || (x->path && x->to),
	      "a rename without its paths");
}

static struct brim_trace *open_trace(const char *path, const char *format)
{
	struct brim_trace_options o = { .struct_bytes = sizeof(o),
					.format = format };
	struct brim_err e = { 0 };
	struct brim_trace *t;
	int ret = brim_trace_open(&t, path, &o, &e);

	claim(ret == 0 || (e.code == ret && e.msg[0]), "no reason");
	return t;
}

/* Reads all of it and writes it in three formats. */
static void copy(struct brim_trace *t, struct brim__trace **out)
{
	struct brim_trace_event x;
	struct brim_err e = { 0 };
	int ret, k;

	while ((ret = brim_trace_next(t, &x, &e)) == 1) {
		check_event(&x);
		for (k = 0; k < 3; k++)
			brim__trace_op(out[k], &x);
	}
	claim(ret == 0 || (e.code == ret && e.msg[0]), "no reason");
}

static void compare(const char *path, const char *format, const char *copied)
{
	struct brim_trace *a = open_trace(path, format);
	struct brim_trace *b = open_trace(copied, "jsonl");
	struct brim_trace_event x, y;

	while (brim_trace_next(a, &x, NULL) == 1) {
		claim(brim_trace_next(b, &y, NULL) == 1, "an event is lost");
		check_same(&x, &y);
	}
	claim(brim_trace_next(b, &y, NULL) == 0, "more than there was");
	brim_trace_close(a);
	brim_trace_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	const char *format = formats[feed_byte(&f) % 8];
	char path[32], copied[32];
	struct brim__trace *out[3];
	struct brim_trace *t;
	int fd = file_of(f.p, f.left, path), to;

	t = open_trace(path, format);
	if (t) {
		to = file_of("", 0, copied);
		claim(!brim__trace_open(&out[0], copied, "jsonl", NULL) &&
			      !brim__trace_open(&out[1], "/dev/null", "iolog2",
						NULL) &&
			      !brim__trace_open(&out[2], "/dev/null", "iolog3",
						NULL),
		      "not opened");
		copy(t, out);
		brim_trace_close(t);
		claim(brim__trace_close(out[0], NULL) == 0, "not written");
		brim__trace_close(out[1], NULL);
		brim__trace_close(out[2], NULL);
		compare(path, format, copied);
		close(to);
	}
	close(fd);
	return 0;
}
