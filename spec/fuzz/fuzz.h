/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h: what the fuzz targets share: taking numbers off the input, and a
 * claim that ends the run when it does not hold. `make fuzz` builds and runs
 * them with libFuzzer; the seeds come from seeds.c.
 */
#ifndef BRIM_FUZZ_H
#define BRIM_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define claim(cond, what)                                                      \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				what);                                         \
			abort();                                               \
		}                                                              \
	} while (0)

/* What is left of the input. Taking from an empty one gives zeros. */
struct feed {
	const uint8_t *p;
	size_t left;
};

static inline uint64_t feed_number(struct feed *f, size_t bytes)
{
	uint64_t n = 0;
	size_t take = bytes < f->left ? bytes : f->left;

	memcpy(&n, f->p, take);
	f->p += take;
	f->left -= take;
	return n;
}

static inline uint8_t feed_byte(struct feed *f)
{
	return (uint8_t)feed_number(f, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* BRIM_FUZZ_H */
