/* SPDX-License-Identifier: MIT */
/*
 * engine_fault.c: wraps another engine and makes chosen calls fail, for tests.
 *
 *   fault:KEY=VALUE,...
 *   at=N        the N-th call fails, counted from 1 (default 1)
 *   times=N     so many calls in a row fail (default 1); 0: all that follow
 *   op=NAME     count only read, write, zero or flush (default: all of them)
 *   errno=NAME  what they fail with: ENOSPC, EIO, EAGAIN, ... or a number
 *   short=N     instead: they move only the first N bytes (reads and writes
 *               longer than that; other calls are counted but left alone);
 *               on direct devices rounded to sectors
 *   inner=NAME  the engine wrapped: auto (default), sync, uring or null
 *
 * Exactly one of errno and short is needed. Attempts are counted: one I/O that
 * is resubmitted after a short result or EAGAIN is two calls.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct fault {
	uint64_t at, times; /* calls; times 0: without end */
	int op;             /* enum brim__op, or -1: all */
	int err;            /* positive errno; 0: short instead */
	uint64_t short_bytes;
	bool is_short;
	char inner_name[16];

	struct brim__engine inner;
	uint64_t calls;
	struct brim__io_list failed; /* finished without the inner engine */
	uint64_t whole_bytes[]; /* by slot: the length of a shortened I/O */
};

static int parse_number(const char *text, uint64_t *out)
{
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return *end || errno ? -EINVAL : 0;
}

static int parse_op(const char *text, int *out)
{
	static const char *const ops[] = { "read", "write", "zero", "flush" };
	int k;

	for (k = 0; k < 4; k++) {
		if (!strcmp(text, ops[k])) {
			*out = k;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_errno(const char *text, int *out)
{
	uint64_t n = 0;

	*out = brim__errno_number(text);
	if (*out)
		return 0;
	if (parse_number(text, &n) < 0 || n < 1 || n > 4095)
		return -EINVAL;
	*out = (int)n;
	return 0;
}

static int parse_inner(const char *text, char *out, size_t out_bytes)
{
	if (strcmp(text, "auto") && strcmp(text, "sync") &&
	    strcmp(text, "uring") && strcmp(text, "null"))
		return -EINVAL;
	snprintf(out, out_bytes, "%s", text);
	return 0;
}

static int parse_pair(struct fault *f, const char *key, const char *value)
{
	if (!strcmp(key, "at"))
		return parse_number(value, &f->at) < 0 || !f->at ? -EINVAL : 0;
	if (!strcmp(key, "times"))
		return parse_number(value, &f->times);
	if (!strcmp(key, "op"))
		return parse_op(value, &f->op);
	if (!strcmp(key, "errno"))
		return parse_errno(value, &f->err);
	if (!strcmp(key, "short")) {
		f->is_short = true;
		return parse_number(value, &f->short_bytes);
	}
	if (!strcmp(key, "inner"))
		return parse_inner(value, f->inner_name, sizeof(f->inner_name));
	return -ENOENT;
}

static int fault_parse(struct fault *f, const char *spec, struct brim_err *e)
{
	char pair[64];
	const char *at = spec;

	while (at && *at) {
		size_t len = strcspn(at, ",");
		char *value;
		int ret = -ENOENT;

		snprintf(pair, sizeof(pair), "%.*s", (int)BRIM__MIN(len, 63u),
			 at);
		value = strchr(pair, '=');
		if (value) {
			*value++ = '\0';
			ret = parse_pair(f, pair, value);
		}
		if (ret == -ENOENT)
			return brim__errf(
				e, -EINVAL, "open",
				"engine fault: "
				"'%.*s': write at=, times=, op=, errno=, "
				"short= or inner=",
				(int)len, at);
		if (ret < 0)
			return brim__errf(e, -EINVAL, "open",
					  "engine fault: "
					  "'%s' is no value for %s",
					  value, pair);
		at += len + (at[len] == ',');
	}
	if (!f->err == !f->is_short)
		return brim__errf(e, -EINVAL, "open",
				  "engine fault: '%s' "
				  "needs one of errno=NAME and short=BYTES",
				  spec ? spec : "");
	return 0;
}

static int fault_start_inner(struct brim__engine *eng, struct fault *f,
			     struct brim_err *e)
{
	int ret;

	f->inner = *eng;
	/* A shortened I/O looks complete to it: leave checks to the batch. */
	f->inner.check = NULL;
	ret = brim__engine_start(&f->inner, f->inner_name, e);
	if (ret < 0)
		return ret;
	eng->flags = f->inner.flags;
	snprintf(eng->name, sizeof(eng->name), "fault(%.31s)", f->inner.name);
	return 0;
}

static int fault_init(struct brim__engine *eng, struct brim_err *e)
{
	struct fault *f;
	int ret;

	f = calloc(1, sizeof(*f) + eng->queue_depth * sizeof(uint64_t));
	if (!f)
		return brim__err(e, -ENOMEM, "open", "engine fault");
	f->at = 1;
	f->times = 1;
	f->op = -1;
	snprintf(f->inner_name, sizeof(f->inner_name), "auto");
	ret = fault_parse(f, eng->spec, e);
	if (!ret)
		ret = fault_start_inner(eng, f, e);
	if (ret < 0) {
		free(f);
		return ret;
	}
	eng->priv = f;
	return 0;
}

static bool is_hit(const struct fault *f, uint64_t call)
{
	return call >= f->at && (!f->times || call - f->at < f->times);
}

/* What a shortened I/O moves: of a direct device, whole sectors. */
static uint64_t fault_short(const struct brim__engine *eng,
			    const struct fault *f)
{
	uint64_t align = BRIM__MAX(1u, eng->dev->info.align_bytes);

	return f->short_bytes
		       ? BRIM__MAX(align,
				   brim__align_down(f->short_bytes, align))
		       : 0;
}

static int fault_queue(struct brim__engine *eng, struct brim__io *io)
{
	struct fault *f = eng->priv;
	bool counts = f->op < 0 || f->op == (int)io->op;
	bool hit = counts && is_hit(f, f->calls + 1);
	bool has_data = io->op == BRIM__READ || io->op == BRIM__WRITE;
	int ret;

	f->whole_bytes[io->slot] = 0;
	if (hit && f->err) {
		f->calls++;
		io->result = -f->err;
		brim__io_push(&f->failed, io);
		return 0;
	}
	if (hit && has_data && fault_short(eng, f) < brim__io_left(io)) {
		f->whole_bytes[io->slot] = io->len_bytes;
		io->len_bytes = io->done_bytes + fault_short(eng, f);
	}
	ret = f->inner.ops->queue(&f->inner, io);
	if (ret == 0)
		f->calls += counts;
	else if (f->whole_bytes[io->slot])
		io->len_bytes = f->whole_bytes[io->slot];
	return ret;
}

static int fault_commit(struct brim__engine *eng)
{
	struct fault *f = eng->priv;

	return f->inner.ops->commit(&f->inner);
}

static int fault_reap(struct brim__engine *eng, unsigned int min,
		      struct brim__io **out, unsigned int max)
{
	struct fault *f = eng->priv;
	unsigned int n = 0;
	int got, k;

	while (n < max && (out[n] = brim__io_pop(&f->failed)))
		n++;
	if (n == max)
		return (int)n;
	got = f->inner.ops->reap(&f->inner, min > n ? min - n : 0, out + n,
				 max - n);
	if (got < 0)
		return n ? (int)n : got;
	for (k = 0; k < got; k++) {
		struct brim__io *io = out[n + (unsigned int)k];

		if (f->whole_bytes[io->slot])
			io->len_bytes = f->whole_bytes[io->slot];
	}
	return (int)n + got;
}

static void fault_cleanup(struct brim__engine *eng)
{
	struct fault *f = eng->priv;

	brim__engine_stop(&f->inner);
	free(f);
}

const struct brim__engine_ops brim__engine_fault = {
	.version = BRIM__ENGINE_VERSION,
	.name = "fault",
	.init = fault_init,
	.queue = fault_queue,
	.commit = fault_commit,
	.reap = fault_reap,
	.cleanup = fault_cleanup,
};
