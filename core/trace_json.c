/* SPDX-License-Identifier: MIT */
/*
 * trace_json.c: lines of brim's own traces: a flat object of JSON each, as
 * trace_write.c writes them. Members it does not know are passed over, in any
 * order. Called by trace_read.c for each line. Bytes, nanoseconds.
 */
#include <string.h>

#include "trace_parse.h"

static void blanks(char **at)
{
	while (**at == ' ' || **at == '\t')
		(*at)++;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hexadecimal digits after "\u"; -1: none, or what no path may have. */
static int32_t unicode(const char *at)
{
	int32_t v = 0;
	int k, digit;

	for (k = 0; k < 4; k++) {
		digit = hex(at[k]);
		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	/* Not 0, which would end it, and no halves of pairs. */
	return v && (v < 0xd800 || v > 0xdfff) ? v : -1;
}

static char *put_utf8(char *to, int32_t v)
{
	if (v < 0x80) {
		*to++ = (char)v;
	} else if (v < 0x800) {
		*to++ = (char)(0xc0 | v >> 6);
		*to++ = (char)(0x80 | (v & 0x3f));
	} else {
		*to++ = (char)(0xe0 | v >> 12);
		*to++ = (char)(0x80 | (v >> 6 & 0x3f));
		*to++ = (char)(0x80 | (v & 0x3f));
	}
	return to;
}

/* A string, decoded in place, which never makes it longer; NULL: none. */
static char *string(char **at)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	char *p = *at, *begin, *to;
	const char *name;
	int32_t v;

	if (*p++ != '"')
		return NULL;
	begin = to = p;
	while (*p && *p != '"') {
		if (*p != '\\') {
			*to++ = *p++;
		} else if (p[1] == 'u') {
			v = unicode(p + 2);
			if (v < 0)
				return NULL;
			to = put_utf8(to, v);
			p += 6;
		} else {
			name = p[1] ? strchr(names, p[1]) : NULL;
			if (!name)
				return NULL;
			*to++ = values[name - names];
			p += 2;
		}
	}
	if (!*p)
		return NULL;
	*at = p + 1;
	*to = 0;
	return begin;
}

/* A value that nobody asked for: a string, number, true, false or null. */
static bool pass_over(char **at)
{
	size_t n;

	if (**at == '"')
		return string(at) != NULL;
	n = strspn(*at, "-+.0123456789eEtrufalsn");
	*at += n;
	return n > 0;
}

struct members {
	const char *op, *path, *to, *format;
	uint64_t at_ns, stream, off_bytes, len_bytes, version;
};

static bool member(char **at, const char *name, struct members *m)
{
	const struct {
		const char *name;
		const char **text;
		uint64_t *number;
	} known[] = {
		{ "at_ns", NULL, &m->at_ns },
		{ "stream", NULL, &m->stream },
		{ "op", &m->op, NULL },
		{ "path", &m->path, NULL },
		{ "off_bytes", NULL, &m->off_bytes },
		{ "len_bytes", NULL, &m->len_bytes },
		{ "to", &m->to, NULL },
		{ "format", &m->format, NULL },
		{ "version", NULL, &m->version },
	};
	size_t k;

	for (k = 0; k < sizeof(known) / sizeof(*known); k++) {
		if (strcmp(name, known[k].name))
			continue;
		if (known[k].number)
			return brim__trace_digits(at, known[k].number);
		*known[k].text = string(at);
		return *known[k].text != NULL;
	}
	return pass_over(at);
}

/* NULL, or what is wrong. */
static const char *object(char *at, struct members *m)
{
	const char *name;

	blanks(&at);
	if (*at++ != '{')
		return "a line is an object of JSON";
	do {
		blanks(&at);
		name = string(&at);
		blanks(&at);
		if (!name || *at++ != ':')
			return "a member has a name";
		blanks(&at);
		if (!member(&at, name, m))
			return "a value is not what its member has";
		blanks(&at);
	} while (*at++ == ',');
	if (at[-1] != '}')
		return "the object does not end";
	blanks(&at);
	return *at ? "something follows the object" : NULL;
}

static int event(struct brim_trace *t, const struct members *m,
		 struct brim_trace_event *x)
{
	int op = m->op ? brim__trace_op_number(m->op) : -1;

	if (op < 0)
		return brim__trace_bad(t, "no such op");
	if (m->stream > UINT32_MAX)
		return brim__trace_bad(t, "stream is below 2^32");
	if (op == BRIM_TRACE_RENAME && (!m->to || !*m->to))
		return brim__trace_bad(t, "a rename has a path and a to");
	if (op >= BRIM_TRACE_ADD && !m->path)
		return brim__trace_bad(t, "the op has a path");
	if (m->to && strlen(m->to) >= BRIM__TRACE_PATH_MAX)
		return brim__trace_bad(t, "a path of more than 4095 bytes");
	*x = (struct brim_trace_event){
		.op = (enum brim_trace_op)op,
		.stream = (uint32_t)m->stream,
		.at_ns = m->at_ns,
		.path = m->path,
		.to = op == BRIM_TRACE_RENAME ? m->to : NULL,
		.off_bytes = m->off_bytes,
		.len_bytes = m->len_bytes,
	};
	return 1;
}

static int jsonl_parse(struct brim_trace *t, char *line,
		       struct brim_trace_event *x)
{
	struct members m = { 0 };
	const char *why;

	if (!*line)
		return 0;
	why = object(line, &m);
	if (why)
		return brim__trace_bad(t, why);
	if (t->line > 1 || !m.format)
		return event(t, &m, x);
	if (strcmp(m.format, "brim-trace") || m.version != 1)
		return brim__trace_bad(t, "not a brim-trace of version 1");
	return 0;
}

static bool jsonl_matches(const char *line)
{
	return *line == '{';
}

const struct brim__trace_parser brim__trace_jsonl = {
	.name = "jsonl",
	.matches = jsonl_matches,
	.parse = jsonl_parse,
	.begins_at_0 = true,
};
