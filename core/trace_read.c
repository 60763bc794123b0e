/* SPDX-License-Identifier: MIT */
/*
 * trace_read.c: reads traces line by line through one buffer, whatever their
 * size, and finds out which format they have. Called by replays, conversions
 * and users. What is wrong with a line is told with its number. Times in ns.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_parse.h"

#define BUFFER_BYTES (1u << 20)
/* Longer lines are refused; the longest of our own are 49 KiB. */
#define LINE_MAX_BYTES (64u << 10)

static const struct brim__trace_parser *const parsers[] = {
	&brim__trace_iolog2,   &brim__trace_iolog3,  &brim__trace_jsonl,
	&brim__trace_msr,      &brim__trace_alibaba, &brim__trace_tencent,
	&brim__trace_blkparse,
};
#define PARSERS (sizeof(parsers) / sizeof(*parsers))

int brim__trace_op_number(const char *name)
{
	int k;

	for (k = 0; k < BRIM_TRACE_OPS; k++)
		if (!strcmp(name, brim__trace_op_names[k]))
			return k;
	return -1;
}

static int trace_bad(const struct brim_trace *t, const char *why,
		     struct brim_err *e)
{
	return brim__errf(e, -EINVAL, "trace", "%s:%llu: %s", t->name,
			  (unsigned long long)t->line, why);
}

/* ------------------------------------------------------------------- lines */

/* Reads more behind what is left: how much, 0 at the end, or -errno. */
static int64_t refill(struct brim_trace *t)
{
	ssize_t n;

	memmove(t->buffer, t->buffer + t->from, t->to - t->from);
	t->to -= t->from;
	t->from = 0;
	do
		n = read(t->fd, t->buffer + t->to, BUFFER_BYTES - t->to);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	t->to += (size_t)n;
	t->is_at_end = n == 0;
	return n;
}

/*
 * The next line without its end, in place; 1, 0 at the end, or -errno. It stays
 * until the next call.
 */
static int line_next(struct brim_trace *t, char **out, struct brim_err *e)
{
	char *begin, *end;
	size_t looked = 0;
	int64_t got;

	for (;;) {
		begin = t->buffer + t->from;
		end = memchr(begin + looked, '\n', t->to - t->from - looked);
		looked = t->to - t->from;
		if (end || looked > LINE_MAX_BYTES || t->is_at_end)
			break;
		got = refill(t);
		if (got < 0)
			return brim__err(e, (int)got, "read", t->name);
	}
	if (!end && !looked)
		return 0;
	t->line++;
	if (!end)
		end = begin + looked;
	if ((size_t)(end - begin) > LINE_MAX_BYTES)
		return trace_bad(t, "a line of more than 64 KiB", e);
	t->from = (size_t)(end - t->buffer) + (end < t->buffer + t->to);
	if (memchr(begin, 0, (size_t)(end - begin)))
		return trace_bad(t, "a byte of 0 is in the line", e);
	if (end > begin && end[-1] == '\r')
		end--;
	*end = 0;
	*out = begin;
	return 1;
}

/* --------------------------------------------------------- open and close */

/* Chooses the parser by the first line, which will be read again. */
static int detect(struct brim_trace *t, struct brim_err *e)
{
	char *line = NULL, keep;
	size_t from, k;
	int ret = line_next(t, &line, e);

	if (ret <= 0)
		return ret < 0 ? ret : trace_bad(t, "the trace is empty", e);
	for (k = 0; k < PARSERS && !parsers[k]->matches(line); k++)
		;
	if (k == PARSERS)
		return trace_bad(t,
				 "no trace that is known: iolog2, iolog3, "
				 "jsonl, blkparse, msr, alibaba, tencent",
				 e);
	t->parser = parsers[k];
	/* Put the line back: its end was overwritten. */
	from = (size_t)(line - t->buffer);
	k = from + strlen(line);
	keep = t->from > k ? '\n' : 0;
	if (keep) {
		memset(t->buffer + k, ' ', t->from - k);
		t->buffer[t->from - 1] = '\n';
	}
	t->from = from;
	t->line = 0;
	return 0;
}

static const struct brim__trace_parser *parser_named(const char *name)
{
	size_t k;

	for (k = 0; k < PARSERS; k++)
		if (!strcmp(name, parsers[k]->name))
			return parsers[k];
	return NULL;
}

static int trace_begin(struct brim_trace *t, const char *format,
		       struct brim_err *e)
{
	if (!format || !strcmp(format, "auto"))
		return detect(t, e);
	t->parser = parser_named(format);
	if (!t->parser)
		return brim__errf(e, -EINVAL, "trace",
				  "format '%s': it is auto, iolog2, iolog3, "
				  "jsonl, blkparse, msr, alibaba or tencent",
				  format);
	return 0;
}

int brim_trace_open(struct brim_trace **out, const char *path,
		    const struct brim_trace_options *o, struct brim_err *e)
{
	struct brim_trace_options opts;
	struct brim_trace *t;
	int ret;

	*out = NULL;
	ret = brim__options_take(&opts, sizeof(opts), o, "trace", e);
	if (ret < 0)
		return ret;
	t = calloc(1, sizeof(*t));
	if (!t)
		return brim__err(e, -ENOMEM, "open", path);
	t->action = opts.blkparse_action ? opts.blkparse_action : 'Q';
	t->name = strdup(path);
	/* And a byte to end the last line with. */
	t->buffer = malloc(BUFFER_BYTES + 1);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		ret = brim__err(e, -errno, "open", path);
	else if (!t->name || !t->buffer)
		ret = brim__err(e, -ENOMEM, "open", path);
	else
		ret = trace_begin(t, opts.format, e);
	if (ret < 0) {
		brim_trace_close(t);
		return ret;
	}
	*out = t;
	return 0;
}

void brim_trace_close(struct brim_trace *t)
{
	if (!t)
		return;
	if (t->fd >= 0)
		close(t->fd);
	free(t->buffer);
	free(t->name);
	free(t);
}

const char *brim_trace_format(const struct brim_trace *t)
{
	return t->parser->name;
}

bool brim__trace_is_file(const struct brim_trace *t, const char *path)
{
	struct stat mine, other;

	return fstat(t->fd, &mine) == 0 && stat(path, &other) == 0 &&
	       mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
}

uint64_t brim_trace_line(const struct brim_trace *t)
{
	return t->line;
}

/* ------------------------------------------------------------------ events */

/* Times count from the first event; what lies before it counts as it. */
static void rebase(struct brim_trace *t, struct brim_trace_event *x)
{
	if (t->parser->begins_at_0)
		return;
	if (!t->has_first)
		t->first_ns = x->at_ns;
	t->has_first = true;
	x->at_ns = x->at_ns > t->first_ns ? x->at_ns - t->first_ns : 0;
}

int brim_trace_next(struct brim_trace *t, struct brim_trace_event *x,
		    struct brim_err *e)
{
	char *line = NULL;
	int ret;

	do {
		ret = line_next(t, &line, e);
		if (ret <= 0)
			return ret;
		*x = (struct brim_trace_event){ 0 };
		ret = t->parser->parse(t, line, x);
	} while (ret == 0);
	if (ret < 0)
		return trace_bad(t, t->why, e);
	if (!brim__trace_range_fits(x))
		return trace_bad(t, "it ends past 2^63-1", e);
	if (x->path && strlen(x->path) >= BRIM__TRACE_PATH_MAX)
		return trace_bad(t, "a path of more than 4095 bytes", e);
	rebase(t, x);
	return 1;
}
