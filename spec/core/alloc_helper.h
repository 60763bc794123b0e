/* SPDX-License-Identifier: MIT */
/*
 * alloc_helper.h: what test_alloc*.c share: every allocation fails once, after
 * SQLite's manner. A round builds and uses things with the N-th allocation
 * failing, for N = 1, 2, ... until nothing failed. Each time the answer is
 * -ENOMEM with its error filled in, and nothing is leaked.
 *
 * Who includes it defines malloc and its kin that way; they count, fail and
 * hand on to the C library's (or to AddressSanitizer's, whose leak check then
 * judges as well).
 */
#ifndef BRIM_ALLOC_HELPER_H
#define BRIM_ALLOC_HELPER_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "brim.h"
#include "tap.h"

/* How gcc and how clang says so. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
#define EXPORTED __attribute__((visibility("default")))

void *REAL(malloc)(size_t n);
void *REAL(calloc)(size_t n, size_t each);
void *REAL(realloc)(void *p, size_t n);
void *REAL(memalign)(size_t align, size_t n);
void REAL(free)(void *p);

static uint64_t calls, fail_at; /* fail_at 0: none fails */
static int64_t live;            /* allocations not freed again */
static bool counting;
static pthread_t tested;

/* Whether this allocation is one that the test is about and fails. */
static bool fails(void)
{
	if (!counting || !pthread_equal(pthread_self(), tested))
		return false;
	if (++calls == fail_at) {
		errno = ENOMEM;
		return true;
	}
	live++;
	return false;
}

EXPORTED void *malloc(size_t n)
{
	return fails() ? NULL : REAL(malloc)(n);
}

EXPORTED void *calloc(size_t n, size_t each)
{
	return fails() ? NULL : REAL(calloc)(n, each);
}

EXPORTED void *realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	/* What moves was counted when it was made. */
	if (p && counting)
		live--;
	return REAL(realloc)(p, n);
}

EXPORTED void *reallocarray(void *p, size_t n, size_t each)
{
	size_t all;

	if (__builtin_mul_overflow(n, each, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, all);
}

EXPORTED void *aligned_alloc(size_t align, size_t n)
{
	return fails() ? NULL : REAL(memalign)(align, n);
}

EXPORTED char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = malloc(n);

	return copy ? memcpy(copy, s, n) : NULL;
}

EXPORTED char *strndup(const char *s, size_t max)
{
	size_t n = strnlen(s, max);
	char *copy = malloc(n + 1);

	if (!copy)
		return NULL;
	copy[n] = '\0';
	return memcpy(copy, s, n);
}

/* AddressSanitizer has one of its own, which would not be counted. */
EXPORTED int asprintf(char **out, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	*out = malloc((size_t)n + 1);
	if (!*out)
		return -1;
	va_start(args, fmt);
	vsnprintf(*out, (size_t)n + 1, fmt, args);
	va_end(args);
	return n;
}

EXPORTED void free(void *p)
{
	if (p && counting && pthread_equal(pthread_self(), tested))
		live--;
	REAL(free)(p);
}

/* Stops at the first failure, with what it was. */
#define TRY(call)                                                              \
	do {                                                                   \
		int ret_ = (call);                                             \
		if (ret_ < 0)                                                  \
			return ret_;                                           \
	} while (0)

/* ------------------------------------------------------------------ the loop */

/* Makes, uses and frees everything; counted from its first line to its last. */
typedef int round_fn(struct brim_err *e);

static int one_round(round_fn *what, uint64_t n, struct brim_err *e)
{
	int ret;

	memset(e, 0, sizeof(*e));
	calls = 0;
	live = 0;
	fail_at = n;
	counting = true;
	ret = what(e);
	counting = false;
	return ret;
}

/*
 * Allocations whose failure is no failure: registered buffers, libblkid's own
 * (it says "no memory" in its own way). Then the round succeeds all the same.
 */
static void loop(const char *name, round_fn *what)
{
	uint64_t n = 0, wrong = 0, survived = 0, leaks = 0;
	struct brim_err e, first = { 0 };
	int ret, first_ret = 0;

	do {
		ret = one_round(what, ++n, &e);
		if (live) {
			leaks++;
			printf("# %s: %lld allocations left after failure %llu"
			       ": %s\n",
			       name, (long long)live, (unsigned long long)n,
			       e.msg);
		}
		if (ret >= 0) {
			survived += calls >= n;
		} else if (ret != -ENOMEM || e.code != -ENOMEM || !e.op ||
			   !e.msg[0] || strchr(e.msg, '\n')) {
			if (!wrong++) {
				first = e;
				first_ret = ret;
			}
		}
	} while (calls >= n && n < 100000);
	printf("# %s: %llu allocations, %llu of them can be done without\n",
	       name, (unsigned long long)n - 1, (unsigned long long)survived);
	ok(ret == 0 && n > 20, name, "it does not end: %d %s", ret, e.msg);
	ok(!wrong, "each failure is -ENOMEM, with its error",
	   "%llu are wrong, the first: %d (error %d '%s')",
	   (unsigned long long)wrong, first_ret, first.code, first.msg);
	ok(!leaks, "nothing is left", "%llu failures leak",
	   (unsigned long long)leaks);
}

#endif /* BRIM_ALLOC_HELPER_H */
