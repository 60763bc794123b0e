/* SPDX-License-Identifier: MIT */
/*
 * trace_parse.h: what trace_read.c and the parsers of the formats share. A
 * parser turns one line, which it may change, into an event.
 */
#ifndef BRIM_TRACE_PARSE_H
#define BRIM_TRACE_PARSE_H

#include "trace.h"

struct brim__trace_parser;

struct brim_trace {
	int fd;
	char *name; /* of the file, for messages */
	const struct brim__trace_parser *parser;
	char action; /* blkparse: which lines count */
	uint64_t line;
	uint64_t first_ns; /* the clock at the first event */
	bool has_first;
	uint64_t wait_ns; /* iolog2: waits so far */
	bool is_over;     /* blkparse: its summary has begun */
	bool is_at_end;
	const char *why; /* what is wrong with the line */
	size_t from, to; /* what of the buffer is not read yet */
	char *buffer;
};

/*
 * matches looks at a whole first line: is it this format? parse: 1 for an
 * event, 0 for a line that is none, -1 with t->why set. Times are as recorded;
 * the reader makes them begin at 0.
 */
struct brim__trace_parser {
	const char *name;
	bool (*matches)(const char *line);
	int (*parse)(struct brim_trace *t, char *line,
		     struct brim_trace_event *x);
	bool begins_at_0; /* its times already do */
};

extern const struct brim__trace_parser brim__trace_iolog2;
extern const struct brim__trace_parser brim__trace_iolog3;
extern const struct brim__trace_parser brim__trace_jsonl;
extern const struct brim__trace_parser brim__trace_blkparse;
extern const struct brim__trace_parser brim__trace_msr;
extern const struct brim__trace_parser brim__trace_alibaba;
extern const struct brim__trace_parser brim__trace_tencent;

/* The operation of a name, or -1. */
int brim__trace_op_number(const char *name);

/* Wrong in this line: for `return bad(t, "...")`. */
static inline int brim__trace_bad(struct brim_trace *t, const char *why)
{
	t->why = why;
	return -1;
}

/* Decimal digits at *p, which moves past them; false: none, or too many. */
static inline bool brim__trace_digits(char **p, uint64_t *out)
{
	char *at = *p;
	uint64_t n = 0;

	while ((unsigned char)(*at - '0') < 10) {
		if (n > (UINT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(*at++ - '0');
	}
	*out = n;
	if (at == *p)
		return false;
	*p = at;
	return true;
}

/* An offset and a length that end at 2^63-1 at most. */
static inline bool brim__trace_range_fits(const struct brim_trace_event *x)
{
	return x->off_bytes <= BRIM_MAX_BYTES &&
	       x->len_bytes <= BRIM_MAX_BYTES - x->off_bytes;
}

#endif /* BRIM_TRACE_PARSE_H */
