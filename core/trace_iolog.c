/* SPDX-License-Identifier: MIT */
/*
 * trace_iolog.c: lines of fio's iolog, versions 2 (with waits) and 3 (with a
 * time in us in each line), as fio's HOWTO describes them under "Trace file
 * format". Called by trace_read.c for each line. Times in ns.
 */
#include <string.h>

#include "trace_parse.h"

#define HEADER "fio version "

static bool is_header(const char *line, char version)
{
	return !strncmp(line, HEADER, strlen(HEADER)) &&
	       line[strlen(HEADER)] == version &&
	       !strncmp(line + strlen(HEADER) + 1, " iolog", 6);
}

static bool iolog2_matches(const char *line)
{
	return is_header(line, '2');
}

static bool iolog3_matches(const char *line)
{
	return is_header(line, '3');
}

/* The next word, ended in place; NULL where there is none. */
static char *word(char **at)
{
	char *p = *at, *begin;

	while (*p == ' ' || *p == '\t')
		p++;
	begin = p;
	while (*p && *p != ' ' && *p != '\t')
		p++;
	*at = *p ? p + 1 : p;
	*p = 0;
	return *begin ? begin : NULL;
}

static bool number(char **at, uint64_t *out)
{
	char *p = word(at);

	return p && brim__trace_digits(&p, out) && !*p;
}

/* A wait of version 2: none of its own, but later ones are later. */
static int iolog_wait(struct brim_trace *t, uint64_t wait_us)
{
	uint64_t ns;

	if (brim_mul(wait_us, 1000, &ns) < 0 ||
	    brim_add(t->wait_ns, ns, &t->wait_ns) < 0)
		return brim__trace_bad(t, "waits of more than 500 years");
	return 0;
}

/* What follows the time: a name, an action and maybe a range. */
static int iolog_line(struct brim_trace *t, char *at,
		      struct brim_trace_event *x)
{
	char *action;
	int op;

	x->path = word(&at);
	action = word(&at);
	if (!action)
		return brim__trace_bad(t, "a line has a file and an action");
	op = brim__trace_op_number(action);
	if (!strcmp(action, "wait")) {
		if (t->parser != &brim__trace_iolog2)
			return brim__trace_bad(t, "version 3 has no wait");
		if (!number(&at, &x->off_bytes))
			return brim__trace_bad(t, "a wait has a time in us");
		return iolog_wait(t, x->off_bytes);
	}
	x->op = (enum brim_trace_op)op;
	if (op == BRIM_TRACE_ADD || op == BRIM_TRACE_OPEN ||
	    op == BRIM_TRACE_CLOSE)
		return !word(&at) ? 1
				  : brim__trace_bad(t, "words after the "
						       "action");
	if (op < 0 || op > BRIM_TRACE_DATASYNC)
		return brim__trace_bad(t, "an action is add, open, close, "
					  "read, write, trim, sync, datasync "
					  "or wait");
	if (!number(&at, &x->off_bytes) || !number(&at, &x->len_bytes))
		return brim__trace_bad(t, "the action has an offset and a "
					  "length");
	if (op > BRIM_TRACE_TRIM)
		x->off_bytes = x->len_bytes = 0;
	return 1;
}

static int iolog2_parse(struct brim_trace *t, char *line,
			struct brim_trace_event *x)
{
	int ret;

	if (!*line || (t->line == 1 && iolog2_matches(line)))
		return 0;
	ret = iolog_line(t, line, x);
	x->at_ns = t->wait_ns;
	return ret;
}

static int iolog3_parse(struct brim_trace *t, char *line,
			struct brim_trace_event *x)
{
	uint64_t at_us;

	if (!*line || (t->line == 1 && iolog3_matches(line)))
		return 0;
	if (!number(&line, &at_us) || brim_mul(at_us, 1000, &x->at_ns) < 0)
		return brim__trace_bad(t, "a line begins with a time in us");
	return iolog_line(t, line, x);
}

const struct brim__trace_parser brim__trace_iolog2 = {
	.name = "iolog2",
	.matches = iolog2_matches,
	.parse = iolog2_parse,
	.begins_at_0 = true,
};

const struct brim__trace_parser brim__trace_iolog3 = {
	.name = "iolog3",
	.matches = iolog3_matches,
	.parse = iolog3_parse,
	.begins_at_0 = true,
};
