/* SPDX-License-Identifier: MIT */
/*
 * tap.h: what the C tests share: one line a check, a closing line, a seeded
 * random generator. Include it in one file per program.
 */
#ifndef BRIM_TAP_H
#define BRIM_TAP_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned int tap_passed, tap_failed, tap_skipped;

/* Reports one check; `why` (printf style) is printed when it failed. */
#define ok(cond, name, ...)                                                    \
	do {                                                                   \
		if (cond) {                                                    \
			tap_passed++;                                          \
			printf("ok %s\n", name);                               \
		} else {                                                       \
			tap_failed++;                                          \
			printf("not ok %s: %s:%d: ", name, __FILE__,           \
			       __LINE__);                                      \
			printf(__VA_ARGS__);                                   \
			printf("\n");                                          \
		}                                                              \
	} while (0)

#define skip(name, why)                                                        \
	do {                                                                   \
		tap_skipped++;                                                 \
		printf("skip %s: %s\n", name, why);                            \
	} while (0)

static inline int tap_end(void)
{
	printf("%u passed, %u failed, %u skipped\n", tap_passed, tap_failed,
	       tap_skipped);
	return tap_failed != 0;
}

/* SplitMix64: the same numbers for the same seed everywhere. */
static inline uint64_t tap_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t tap_below(uint64_t *state, uint64_t n)
{
	return tap_random(state) % n;
}

/* The seed: $SEED, else `seed`; printed, so that a failure names it. */
static inline uint64_t tap_seed(uint64_t seed)
{
	const char *s = getenv("SEED");

	if (s)
		seed = strtoull(s, NULL, 0);
	printf("# SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

#endif /* BRIM_TAP_H */
