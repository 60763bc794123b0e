/* SPDX-License-Identifier: MIT */
/*
 * trace_info.c: goes through a trace, adds up what it consists of and copies it
 * into another format. Called by users, in steps. Bytes, nanoseconds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* Events between two looks at the clock. */
#define STRIDE 4096u

struct brim_trace_copy {
	struct brim__trace *to;
	char *path;
};

static void add_sizes(struct brim_trace_info *i,
		      const struct brim_trace_event *x)
{
	uint32_t k = x->len_bytes
			     ? 63u - (uint32_t)__builtin_clzll(x->len_bytes)
			     : 0;

	if (x->op == BRIM_TRACE_READ)
		i->read_sizes[k]++;
	else if (x->op == BRIM_TRACE_WRITE)
		i->write_sizes[k]++;
}

static void add(struct brim_trace_info *i, const struct brim_trace_event *x)
{
	uint64_t end = x->off_bytes + x->len_bytes;

	i->events++;
	i->ops[x->op]++;
	i->last_ns = BRIM__MAX(i->last_ns, x->at_ns);
	add_sizes(i, x);
	if (x->op > BRIM_TRACE_TRIM || !x->len_bytes)
		return;
	i->bytes[x->op] += x->len_bytes;
	if (!i->to_bytes || x->off_bytes < i->from_bytes)
		i->from_bytes = x->off_bytes;
	i->to_bytes = BRIM__MAX(i->to_bytes, end);
}

int brim_trace_step(struct brim_trace *t, uint64_t budget_ns,
		    struct brim_trace_info *info, struct brim_trace_copy *copy,
		    struct brim_err *e)
{
	uint64_t until_ns = budget_ns ? brim__now_ns() + budget_ns : 0;
	struct brim_trace_event x;
	uint32_t k;
	int ret;

	do {
		for (k = 0; k < STRIDE; k++) {
			ret = brim_trace_next(t, &x, e);
			if (ret <= 0)
				return ret;
			add(info, &x);
			if (!copy)
				continue;
			if (!x.path)
				x.path = copy->path;
			brim__trace_op(copy->to, &x);
		}
	} while (!until_ns || brim__now_ns() < until_ns);
	return 1;
}

int brim_trace_copy_open(struct brim_trace_copy **out,
			 const struct brim_trace *from, const char *file,
			 const char *format, const char *path,
			 struct brim_err *e)
{
	struct brim_trace_copy *c;
	int ret;

	*out = NULL;
	if (brim__trace_is_file(from, file))
		return brim__errf(e, -EINVAL, "trace",
				  "%s is the trace that is read: write into "
				  "another file",
				  file);
	c = calloc(1, sizeof(*c));
	if (c)
		c->path = strdup(path ? path : "device");
	if (!c || !c->path) {
		free(c);
		return brim__err(e, -ENOMEM, "trace", file);
	}
	ret = brim__trace_open(&c->to, file, format, e);
	if (ret < 0) {
		free(c->path);
		free(c);
		return ret;
	}
	*out = c;
	return 0;
}

int brim_trace_copy_close(struct brim_trace_copy *c, uint64_t *omitted,
			  struct brim_err *e)
{
	int ret;

	if (!c)
		return 0;
	if (omitted)
		*omitted = brim__trace_omitted(c->to);
	ret = brim__trace_close(c->to, e);
	free(c->path);
	free(c);
	return ret;
}
