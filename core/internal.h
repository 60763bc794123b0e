/* SPDX-License-Identifier: MIT */
/*
 * internal.h: what the files of libbrim share among themselves and nobody else
 * sees: filling errors, small helpers. Symbols are brim__x and hidden.
 */
#ifndef BRIM_INTERNAL_H
#define BRIM_INTERNAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "brim.h"

#define BRIM__MIN(a, b) ((a) < (b) ? (a) : (b))
#define BRIM__MAX(a, b) ((a) > (b) ? (a) : (b))

/* Alignment of every I/O buffer: the page, and the largest sector in use. */
#define BRIM__BUFFER_ALIGN 4096u

/*
 * The largest I/O where none is asked for, and the largest that may be: larger
 * ones gain nothing and cost queue_depth buffers of that size.
 */
#define BRIM__IO_BYTES_DEFAULT (1u << 20)
#define BRIM__IO_BYTES_MAX (64u << 20)

/*
 * Fills *e (when not NULL) and returns code, which is -errno. The message is
 * "what: strerror" for brim__err, the formatted text for brim__errf.
 */
int brim__err(struct brim_err *e, int code, const char *op, const char *what);
int brim__errf(struct brim_err *e, int code, const char *op, const char *fmt,
	       ...) __attribute__((format(printf, 4, 5)));
/* As brim__errf, for a failure at a place on the device. */
int brim__err_at(struct brim_err *e, int code, const char *op,
		 uint64_t offset_bytes, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* The name of an errno ("ENOSPC"), or NULL; and the number, or 0. */
const char *brim__errno_name(int err);
int brim__errno_number(const char *name);

/*
 * Copies a caller's options struct, which may be of an older, shorter version:
 * what it lacks is zero. Both begin with size_t struct_bytes. -EINVAL where
 * that is not set; NULL options are all zero.
 */
int brim__options_take(void *out, size_t out_bytes, const void *options,
		       const char *op, struct brim_err *e);

/*
 * What every caller's integer and checksum must be (layout.c): a known width
 * and byte order, a known kind. -EINVAL names the field.
 */
int brim__int_check(const char *op, const char *field, uint32_t width_bytes,
		    enum brim_endian endian, struct brim_err *e);
int brim__checksum_check(const char *op, const char *field,
			 const struct brim_checksum *c, struct brim_err *e);

/* Whether a structure may be placed with this size (layout.c). */
bool brim__layout_fits(const struct brim_layout *l, uint32_t size_bytes);

/* Monotonic time in nanoseconds. */
uint64_t brim__now_ns(void);
/* This process's user and system CPU time so far, in nanoseconds. */
void brim__cpu_ns(uint64_t *user_ns, uint64_t *system_ns);

/* n rounded down to a power-of-two or any multiple. */
static inline uint64_t brim__align_down(uint64_t n, uint64_t to)
{
	return n - n % to;
}

/* Big- and little-endian integers of 1, 2, 4 or 8 bytes at any alignment. */
static inline void brim__store(void *at, uint32_t width_bytes,
			       enum brim_endian endian, uint64_t v)
{
	uint8_t *p = at;
	uint32_t k;

	for (k = 0; k < width_bytes; k++) {
		uint32_t byte = endian == BRIM_BIG ? width_bytes - 1 - k : k;

		p[k] = (uint8_t)(v >> (8 * byte));
	}
}

static inline uint64_t brim__load(const void *at, uint32_t width_bytes,
				  enum brim_endian endian)
{
	const uint8_t *p = at;
	uint64_t v = 0;
	uint32_t k;

	for (k = 0; k < width_bytes; k++) {
		uint32_t byte = endian == BRIM_BIG ? width_bytes - 1 - k : k;

		v |= (uint64_t)p[k] << (8 * byte);
	}
	return v;
}

#endif /* BRIM_INTERNAL_H */
