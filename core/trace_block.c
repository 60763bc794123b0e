/* SPDX-License-Identifier: MIT */
/*
 * trace_block.c: lines of traces of block devices: what blkparse prints, and
 * the CSV files of Microsoft Research Cambridge, Alibaba and Tencent. Called by
 * trace_read.c for each line. Bytes, nanoseconds.
 */
#include <string.h>

#include "trace_parse.h"

#define SECTOR 512u

/* A number that a field consists of, and the comma behind it, or the end. */
static bool field(char **at, uint64_t *out)
{
	if (!brim__trace_digits(at, out))
		return false;
	while (**at == ' ')
		(*at)++;
	if (!**at)
		return true;
	return *(*at)++ == ',';
}

/* A field of text, ended in place. */
static char *text(char **at)
{
	char *begin = *at, *end = strchr(begin, ',');

	if (!end)
		return NULL;
	*end = 0;
	*at = end + 1;
	return begin;
}

static bool scaled(uint64_t n, uint64_t by, uint64_t *out)
{
	return brim_mul(n, by, out) == 0;
}

static unsigned int commas(const char *line)
{
	unsigned int n = 0;

	for (; *line; line++)
		n += *line == ',';
	return n;
}

/* ---------------------------------------------------------------- blkparse */

static void blanks(char **at)
{
	while (**at == ' ' || **at == '\t')
		(*at)++;
}

/* "maj,min cpu seq seconds.nanoseconds pid action rwbs", up to rwbs. */
static bool blkparse_head(char **at, struct brim_trace_event *x, char *action)
{
	uint64_t major, minor, cpu, seq, s, ns, pid;
	char *name;

	blanks(at);
	name = *at;
	if (!brim__trace_digits(at, &major) || *(*at)++ != ',' ||
	    !brim__trace_digits(at, &minor) || **at != ' ')
		return false;
	*(*at)++ = 0;
	blanks(at);
	if (!brim__trace_digits(at, &cpu) || **at != ' ')
		return false;
	blanks(at);
	if (!brim__trace_digits(at, &seq) || **at != ' ')
		return false;
	blanks(at);
	if (!brim__trace_digits(at, &s) || *(*at)++ != '.' ||
	    !brim__trace_digits(at, &ns) || **at != ' ')
		return false;
	blanks(at);
	if (!brim__trace_digits(at, &pid) || **at != ' ')
		return false;
	blanks(at);
	*action = **at;
	while (**at && **at != ' ')
		(*at)++;
	blanks(at);
	x->path = name;
	x->stream = (uint32_t)cpu;
	return ns < 1000000000 && scaled(s, 1000000000, &x->at_ns) &&
	       brim_add(x->at_ns, ns, &x->at_ns) == 0;
}

static bool blkparse_matches(const char *line)
{
	char copy[256], *at = copy, action;
	struct brim_trace_event x;

	strncpy(copy, line, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = 0;
	return blkparse_head(&at, &x, &action);
}

/* rwbs: maybe F (flush first), R, W, D or N, then F (through), A, S, M. */
static int rwbs_op(const char *rwbs, bool *flushes)
{
	*flushes = *rwbs == 'F';
	for (; *rwbs && *rwbs != ' '; rwbs++) {
		if (*rwbs == 'D')
			return BRIM_TRACE_TRIM;
		if (*rwbs == 'R')
			return BRIM_TRACE_READ;
		if (*rwbs == 'W')
			return BRIM_TRACE_WRITE;
	}
	return -1;
}

/* "sector + n", if it is there. 0, or -1. */
static int blkparse_range(struct brim_trace *t, char *at,
			  struct brim_trace_event *x)
{
	uint64_t sector, sectors;

	while (*at && *at != ' ')
		at++;
	blanks(&at);
	if (!brim__trace_digits(&at, &sector))
		return 0;
	blanks(&at);
	if (*at++ != '+')
		return brim__trace_bad(t, "no '+' after the sector");
	blanks(&at);
	if (!brim__trace_digits(&at, &sectors) ||
	    !scaled(sector, SECTOR, &x->off_bytes) ||
	    !scaled(sectors, SECTOR, &x->len_bytes))
		return brim__trace_bad(t, "no number of sectors");
	return 0;
}

static int blkparse_parse(struct brim_trace *t, char *line,
			  struct brim_trace_event *x)
{
	char action, *at = line;
	bool flushes;
	int op;

	blanks(&at);
	/* After the events comes a summary, which begins with words. */
	t->is_over |= *at >= 'A' && *at <= 'Z';
	if (t->is_over || !*at)
		return 0;
	if (!blkparse_head(&at, x, &action))
		return brim__trace_bad(t, "no line of blkparse: maj,min cpu "
					  "seq time pid action rwbs sector + "
					  "n");
	if (action != t->action)
		return 0;
	op = rwbs_op(at, &flushes);
	if (op < 0 && !flushes)
		return 0; /* commands that are no I/O */
	if (blkparse_range(t, at, x) < 0)
		return -1;
	if (x->len_bytes && op >= 0) {
		x->op = (enum brim_trace_op)op;
		return 1;
	}
	x->op = BRIM_TRACE_SYNC;
	x->off_bytes = x->len_bytes = 0;
	return flushes;
}

const struct brim__trace_parser brim__trace_blkparse = {
	.name = "blkparse",
	.matches = blkparse_matches,
	.parse = blkparse_parse,
};

/* --------------------------------------------------------------------- MSR */

/*
 * Timestamp (100 ns since 1601),Hostname,DiskNumber,Type,Offset,Size,
 * ResponseTime (the SNIA's readme of the MSR Cambridge traces).
 */
static int msr_parse(struct brim_trace *t, char *line,
		     struct brim_trace_event *x)
{
	uint64_t disk, ticks, response;
	char *host, *type, *at = line;

	if (!*line)
		return 0;
	if (!field(&at, &ticks) || !(host = text(&at)) || !field(&at, &disk) ||
	    !(type = text(&at)) || !field(&at, &x->off_bytes) ||
	    !field(&at, &x->len_bytes) || !field(&at, &response) || *at)
		return brim__trace_bad(t, "no line of an MSR trace: Timestamp,"
					  "Hostname,DiskNumber,Type,Offset,"
					  "Size,ResponseTime");
	if (!strcmp(type, "Read"))
		x->op = BRIM_TRACE_READ;
	else if (!strcmp(type, "Write"))
		x->op = BRIM_TRACE_WRITE;
	else
		return brim__trace_bad(t, "a type is Read or Write");
	/* 100 ns since 1601 do not fit as ns: count from the first. */
	if (!t->has_first) {
		t->first_ns = ticks;
		t->has_first = true;
	}
	ticks = ticks > t->first_ns ? ticks - t->first_ns : 0;
	if (!scaled(ticks, 100, &x->at_ns))
		return brim__trace_bad(t, "584 years after the first line");
	x->path = host;
	x->stream = (uint32_t)disk;
	return 1;
}

static bool msr_matches(const char *line)
{
	return commas(line) == 6 &&
	       (strstr(line, ",Read,") || strstr(line, ",Write,"));
}

const struct brim__trace_parser brim__trace_msr = {
	.name = "msr",
	.matches = msr_matches,
	.parse = msr_parse,
	.begins_at_0 = true,
};

/* ----------------------------------------------------------------- Alibaba */

/* device_id,opcode,offset,length,timestamp (us); opcodes R and W. */
static int alibaba_parse(struct brim_trace *t, char *line,
			 struct brim_trace_event *x)
{
	char *type, *at = line;
	uint64_t device, us;

	if (!*line || (t->line == 1 && !strncmp(line, "device_id,", 10)))
		return 0;
	if (!field(&at, &device) || !(type = text(&at)) ||
	    !field(&at, &x->off_bytes) || !field(&at, &x->len_bytes) ||
	    !field(&at, &us) || *at || !scaled(us, 1000, &x->at_ns))
		return brim__trace_bad(t, "no line of an Alibaba trace: "
					  "device_id,opcode,offset,length,"
					  "timestamp");
	if ((*type != 'R' && *type != 'W') || type[1])
		return brim__trace_bad(t, "an opcode is R or W");
	x->op = *type == 'R' ? BRIM_TRACE_READ : BRIM_TRACE_WRITE;
	x->stream = (uint32_t)device;
	return 1;
}

static bool alibaba_matches(const char *line)
{
	return commas(line) == 4 &&
	       (strstr(line, ",R,") || strstr(line, ",W,") ||
		!strncmp(line, "device_id,opcode,", 17));
}

const struct brim__trace_parser brim__trace_alibaba = {
	.name = "alibaba",
	.matches = alibaba_matches,
	.parse = alibaba_parse,
};

/* ----------------------------------------------------------------- Tencent */

/* Timestamp (s),Offset,Size (of 512 bytes each),IOType (0, 1: write),Volume */
static int tencent_parse(struct brim_trace *t, char *line,
			 struct brim_trace_event *x)
{
	uint64_t s, sector, sectors, type, volume;
	char *at = line;

	if (!*line || (t->line == 1 && !strncmp(line, "Timestamp,", 10)))
		return 0;
	if (!field(&at, &s) || !field(&at, &sector) || !field(&at, &sectors) ||
	    !field(&at, &type) || !field(&at, &volume) || *at ||
	    !scaled(s, 1000000000, &x->at_ns) ||
	    !scaled(sector, SECTOR, &x->off_bytes) ||
	    !scaled(sectors, SECTOR, &x->len_bytes))
		return brim__trace_bad(t, "no line of a Tencent trace: "
					  "Timestamp,Offset,Size,IOType,"
					  "VolumeID");
	if (type > 1)
		return brim__trace_bad(t, "an IOType is 0 or 1");
	x->op = type ? BRIM_TRACE_WRITE : BRIM_TRACE_READ;
	x->stream = (uint32_t)volume;
	return 1;
}

static bool tencent_matches(const char *line)
{
	return commas(line) == 4 && (!line[strspn(line, "0123456789, ")] ||
				     !strncmp(line, "Timestamp,Offset,", 17));
}

const struct brim__trace_parser brim__trace_tencent = {
	.name = "tencent",
	.matches = tencent_matches,
	.parse = tencent_parse,
};
