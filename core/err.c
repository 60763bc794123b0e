/* SPDX-License-Identifier: MIT */
/*
 * err.c: fills struct brim_err at the failing site; clocks. Called by every
 * file of the library.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "internal.h"

const char *brim_version(void)
{
	return BRIM_VERSION;
}

int brim__err(struct brim_err *e, int code, const char *op, const char *what)
{
	return brim__errf(e, code, op, "%s: %s", what, strerror(-code));
}

static int err_fill(struct brim_err *e, int code, const char *op,
		    uint64_t offset_bytes, const char *fmt, va_list ap)
{
	if (!e)
		return code;
	e->code = code;
	e->op = op;
	e->offset_bytes = offset_bytes;
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	return code;
}

int brim__errf(struct brim_err *e, int code, const char *op, const char *fmt,
	       ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_fill(e, code, op, 0, fmt, ap);
	va_end(ap);
	return code;
}

int brim__err_at(struct brim_err *e, int code, const char *op,
		 uint64_t offset_bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	err_fill(e, code, op, offset_bytes, fmt, ap);
	va_end(ap);
	return code;
}

int brim__options_take(void *out, size_t out_bytes, const void *options,
		       const char *op, struct brim_err *e)
{
	size_t struct_bytes;

	memset(out, 0, out_bytes);
	if (!options)
		return 0;
	memcpy(&struct_bytes, options, sizeof(struct_bytes));
	if (struct_bytes < sizeof(struct_bytes))
		return brim__errf(e, -EINVAL, op,
				  "struct_bytes of the options is not set");
	memcpy(out, options, BRIM__MIN(struct_bytes, out_bytes));
	return 0;
}

uint64_t brim__now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * 1000000000u +
	       (uint64_t)tv->tv_usec * 1000u;
}

void brim__cpu_ns(uint64_t *user_ns, uint64_t *system_ns)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	*user_ns = timeval_ns(&ru.ru_utime);
	*system_ns = timeval_ns(&ru.ru_stime);
}
