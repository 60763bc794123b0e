/* SPDX-License-Identifier: MIT */
/*
 * scan.h: the inside of a scan, for scan*.c: scan.c builds it, scan_check.c
 * compares instances with it, scan_run.c reads them, scan_total.c accumulates,
 * scan_rows.c keeps columns. Offsets are bytes within an instance.
 */
#ifndef BRIM_SCAN_H
#define BRIM_SCAN_H

#include "run.h"

/* An integer of each instance. */
struct brim__scan_int {
	uint64_t off_bytes;
	uint32_t width_bytes;
	enum brim_endian endian;
	uint64_t mask; /* of its width */
};

/* Which values pass; owns its values. */
struct brim__scan_test {
	enum brim_scan_rule rule;
	uint32_t value_count;
	struct brim_affine *values;
};

/* A structure whose checksum must hold. */
struct brim__scan_sum {
	const struct brim_layout *layout;
	uint64_t off_bytes;
	uint32_t size_bytes;
};

/* An integer that must pass. */
struct brim__scan_expectation {
	struct brim__scan_int at;
	struct brim__scan_test test;
	char *structure, *field;
};

/* Bytes that are the same at every instance. */
struct brim__scan_bytes {
	uint64_t off_bytes;
	uint32_t len_bytes;
	uint8_t *bytes;
	char *structure, *field;
};

struct brim__scan_accumulator {
	enum brim_scan_kind kind;
	char *name;
	struct brim__scan_test test;
	uint64_t from, to;
	uint32_t bins; /* 0: powers of two */
};

/* An integer that goes into an accumulator. */
struct brim__scan_source {
	struct brim__scan_int at;
	size_t accumulator;
};

struct brim_scan {
	uint32_t holders; /* who must let go before it is freed */
	struct brim__scan_sum *sums;
	size_t sum_count;
	struct brim__scan_expectation *ints;
	size_t int_count;
	struct brim__scan_bytes *bytes;
	size_t bytes_count;
	struct brim__scan_accumulator *accumulators;
	size_t accumulator_count;
	struct brim__scan_source *sources;
	size_t source_count;
	struct brim__scan_int *columns;
	size_t column_count;
	uint64_t from_bytes, to_bytes; /* of all of them; 0, 0: none */
};

/* What a run has gathered in one accumulator. */
struct brim__scan_total {
	uint64_t seen, count;
	uint64_t sum_low, sum_high;
	uint64_t value, group, off_bytes;
	uint64_t below, above;
	uint64_t *bins;
};

/*
 * The rows of a run that are not taken yet, a ring in units of whole I/Os: I/O
 * q, which has rows q * per_io and on, is at q % ios.
 */
struct brim__scan_window {
	uint64_t *values;
	bool *is_done; /* by I/O */
	uint64_t ios, per_io;
	uint64_t first; /* instance of row 0 */
	uint64_t taken; /* rows */
	uint64_t ready; /* I/Os, from the first on, that are done */
};

static inline uint64_t brim__scan_load(const struct brim__scan_int *x,
				       const struct brim_scan *s,
				       const uint8_t *raw)
{
	return brim__load(raw + (x->off_bytes - s->from_bytes), x->width_bytes,
			  x->endian);
}

/* As the public test, with its own copy of the values; -EINVAL, -ENOMEM. */
int brim__scan_test_take(struct brim__scan_test *out,
			 const struct brim_scan_test *t,
			 const struct brim_scan_field *f, struct brim_err *e);
/*
 * Whether v passes at instance i. If not, what it should have been and the
 * rule's sign go to *expected and *rule, where those are not NULL.
 */
bool brim__scan_passes(const struct brim__scan_test *t, uint64_t mask,
		       uint64_t i, uint64_t v, uint64_t *expected,
		       const char **rule);
/* Reads and checks the public field, and widens the scan by it. */
int brim__scan_field_take(struct brim_scan *s, struct brim__scan_int *out,
			  const struct brim_scan_field *f, struct brim_err *e);

/* Checks instance i, whose first byte of interest is at raw, and on the device
 * at off; from any thread. */
void brim__scan_check(struct brim_run *r, uint64_t i, const uint8_t *raw,
		      uint64_t off_bytes);

int brim__scan_totals_create(struct brim_run *r, struct brim_err *e);
void brim__scan_totals_free(struct brim_run *r);
/* Adds instance i to all accumulators; as brim__scan_check, one thread. */
void brim__scan_totals_add(struct brim_run *r, uint64_t i, const uint8_t *raw,
			   uint64_t off_bytes);

/* Whether the next I/O must wait until rows are taken. */
bool brim__scan_window_is_full(const struct brim_run *r);
/* Keeps the columns of instance i. */
void brim__scan_window_put(struct brim_run *r, uint64_t i, const uint8_t *raw);
/* The I/O whose first instance is i has all its rows. */
void brim__scan_window_done(struct brim_run *r, uint64_t i);
void brim__scan_window_free(struct brim_run *r);

#endif /* BRIM_SCAN_H */
