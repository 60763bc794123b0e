/* SPDX-License-Identifier: MIT */
/*
 * bytes.c: checked arithmetic on sizes, and sizes as text ("8191p"). Every
 * size that enters brim as text comes through brim_bytes_parse; nothing is
 * guessed, and what is refused says what to write instead. Units: bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "internal.h"

/* One letter per power of 1024; its place is the exponent less one. */
static const char SUFFIXES[] = "kmgtpe";

/* As much of a text as a message quotes. */
#define QUOTE_CHARS 40

int brim_add(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return -EOVERFLOW;
	*out = sum;
	return 0;
}

int brim_mul(uint64_t a, uint64_t b, uint64_t *out)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return -EOVERFLOW;
	*out = product;
	return 0;
}

int brim_align_up(uint64_t n, uint64_t to, uint64_t *out)
{
	uint64_t rest;

	if (to == 0)
		return -EINVAL;
	rest = n % to;
	if (rest == 0) {
		*out = n;
		return 0;
	}
	return brim_add(n, to - rest, out);
}

/* Input may hold anything; a message is one line of printable text. */
static void quote(char out[QUOTE_CHARS + 4], const char *text)
{
	size_t k;

	for (k = 0; k < QUOTE_CHARS && text[k]; k++)
		out[k] = isprint((unsigned char)text[k]) ? text[k] : '?';
	strcpy(out + k, text[k] ? "..." : "");
}

/*
 * Reads digits up to *rest. Goes on to the last digit after an overflow: a
 * wrong form is a better answer than a wrong range.
 */
static int read_digits(const char *text, uint64_t *n, const char **rest)
{
	int ret = 0;

	*n = 0;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (brim_mul(*n, 10, n) < 0 ||
		    brim_add(*n, (uint64_t)(*text - '0'), n) < 0)
			ret = -ERANGE;
	}
	*rest = text;
	return ret;
}

static int is_suffix(const char *s)
{
	return *s && strchr(SUFFIXES, tolower((unsigned char)*s)) != NULL;
}

/* Reads what follows the digits: nothing, or a suffix and nothing else. */
static int read_suffix(const char *s, unsigned int *shift)
{
	const char *at;

	*shift = 0;
	if (!*s)
		return 0;
	if (!is_suffix(s))
		return -EINVAL;
	at = strchr(SUFFIXES, tolower((unsigned char)*s));
	*shift = 10 * (unsigned int)(at - SUFFIXES + 1);
	s++;
	return !*s || !strcasecmp(s, "iB") ? 0 : -EINVAL;
}

/* What is wrong with a text that does not even begin like a size, or NULL. */
static const char *wrong_start(const char *text, const char *rest)
{
	if (*text == '-' || *text == '+')
		return "has a sign; a size is plain digits, like 4096 or 8191p";
	if (isspace((unsigned char)*text) || strpbrk(rest, " \t\n\v\f\r"))
		return "has a blank too many; write it like 8191p or 8191 PiB";
	if (*rest == '.' || *rest == ',')
		return "has a fraction; use whole numbers of a smaller unit: "
		       "1536g, not 1.5t";
	if (rest == text)
		return "does not begin with a digit; write a size like 8191p";
	if (*text == '0' && rest == text + 1 && strchr("xX", *rest))
		return "is hexadecimal; write decimal digits";
	if (strchr("eE", *rest) && rest[1] && strchr("+-0123456789", rest[1]))
		return "has an exponent, but e means EiB; write all digits";
	return NULL;
}

/* Says why a text that is no size is none; `rest` follows its digits. */
static int wrong_form(const char *text, const char *rest, struct brim_err *e)
{
	char q[QUOTE_CHARS + 4], r[QUOTE_CHARS + 4];
	int up = toupper((unsigned char)*rest);
	const char *why;

	if (!*text)
		return brim__errf(e, -EINVAL, "size",
				  "a size is missing; write one like 8191p");
	quote(q, text);
	quote(r, rest);
	why = wrong_start(text, rest);
	if (why)
		return brim__errf(e, -EINVAL, "size", "'%s' %s", q, why);
	if (is_suffix(rest) && !strcasecmp(rest + 1, "b"))
		return brim__errf(
			e, -EINVAL, "size",
			"'%s' could mean powers "
			"of 1000 or of 1024; write %c or %ciB for 1024",
			q, up, up);
	return brim__errf(e, -EINVAL, "size",
			  "'%s' has the unknown suffix "
			  "'%s'; use k m g t p e or KiB to EiB, or none for "
			  "bytes",
			  q, r);
}

static int too_large(const char *text, const char *relation, struct brim_err *e)
{
	char q[QUOTE_CHARS + 4];

	quote(q, text);
	return brim__errf(e, -ERANGE, "size",
			  "%s is %s the largest offset; "
			  "use 8191p",
			  q, relation);
}

int brim_bytes_parse(const char *text, uint64_t *out_bytes, struct brim_err *e)
{
	unsigned int shift;
	const char *rest;
	uint64_t n;
	int ret;

	ret = read_digits(text, &n, &rest);
	/* brim_bytes_format puts one blank there, so one may stand there. */
	if (rest != text && rest[0] == ' ' && isalpha((unsigned char)rest[1]))
		rest++;
	if (rest == text || read_suffix(rest, &shift) < 0)
		return wrong_form(text, rest, e);
	if (ret == 0 && n == UINT64_C(1) << (63 - shift))
		return too_large(text, "2^63, one past", e);
	if (ret < 0 || n > (uint64_t)BRIM_MAX_BYTES >> shift)
		return too_large(text, "more than 2^63-1,", e);
	*out_bytes = n << shift;
	return 0;
}

int brim_bytes_format(char *buf, size_t buf_bytes, uint64_t n_bytes)
{
	int k = 0;

	while (n_bytes && n_bytes % 1024 == 0 && SUFFIXES[k]) {
		n_bytes /= 1024;
		k++;
	}
	if (k == 0)
		return snprintf(buf, buf_bytes, "%llu",
				(unsigned long long)n_bytes);
	return snprintf(buf, buf_bytes, "%llu %ciB",
			(unsigned long long)n_bytes,
			toupper((unsigned char)SUFFIXES[k - 1]));
}
