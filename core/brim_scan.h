/* SPDX-License-Identifier: MIT */
/*
 * brim_scan.h: part of brim.h, which includes it and states the conventions.
 * Scans: what must hold at every instance of a layout, and what is to be
 * gathered there. Offsets are bytes within an instance.
 */
#ifndef BRIM_SCAN_API_H
#define BRIM_SCAN_API_H

#include "brim.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The dual of a stamp: built like one (structures with layouts, fields with
 * values that depend on the instance), but only what is set is compared, and
 * checksums are recomputed from the bytes read. What a scan keeps has a size
 * that does not depend on the number of instances.
 */
struct brim_scan;

/* Begins a scan that expects nothing yet: -ENOMEM. */
BRIM_API int brim_scan_create(struct brim_scan **out, struct brim_err *e);
/* A run that still uses the scan keeps it until it is closed. */
BRIM_API void brim_scan_free(struct brim_scan *s);

/* An integer of each instance, and what reports call it (NULL: ""). */
struct brim_scan_field {
	uint64_t off_bytes;
	uint32_t width_bytes; /* 1, 2, 4 or 8 */
	enum brim_endian endian;
	const char *structure, *field;
};

/* A value that depends on the instance: base + step * i, modulo 2^64. */
struct brim_affine {
	int64_t base, step;
};

enum brim_scan_rule {
	BRIM_SCAN_ANY = 0,    /* whatever it is; no values */
	BRIM_SCAN_EQUAL = 1,  /* one value, compared in the field's width */
	BRIM_SCAN_RANGE = 2,  /* two: the lowest and the highest */
	BRIM_SCAN_ONE_OF = 3, /* 1 .. 256, each as for EQUAL */
};

/*
 * Which values are meant. The bounds of a range are signed numbers, so that
 * none is below 0 .. where the field is narrower than 8 bytes, and unsigned
 * ones where it has 8.
 */
struct brim_scan_test {
	enum brim_scan_rule rule;
	const struct brim_affine *values;
	size_t value_count;
};

/* The structure at off: its checksum must hold. The layout must outlive s. */
BRIM_API int brim_scan_expect_layout(struct brim_scan *s,
				     const struct brim_layout *l,
				     uint64_t off_bytes, uint32_t size_bytes,
				     struct brim_err *e);
/*
 * The integer must be as the test says. -EINVAL for a wrong width, order or
 * number of values, -ERANGE past the largest offset, -EFBIG more than 16 MiB
 * from what else is expected.
 */
BRIM_API int brim_scan_expect(struct brim_scan *s,
			      const struct brim_scan_field *f,
			      const struct brim_scan_test *t,
			      struct brim_err *e);
/* An integer must be base + step * i (compared in its width). */
BRIM_API int brim_scan_expect_int(struct brim_scan *s, uint64_t off_bytes,
				  uint32_t width_bytes, enum brim_endian endian,
				  int64_t base, int64_t step,
				  const char *structure, const char *field,
				  struct brim_err *e);
/* These bytes must be there, the same at every instance. */
BRIM_API int brim_scan_expect_bytes(struct brim_scan *s, uint64_t off_bytes,
				    const void *bytes, uint32_t len_bytes,
				    const char *structure, const char *field,
				    struct brim_err *e);

/* ------------------------------------------------------------ accumulators */

enum brim_scan_kind {
	BRIM_SCAN_SUM = 1,   /* in 128 bits, which nothing overflows */
	BRIM_SCAN_MIN = 2,   /* unsigned, with where it was found */
	BRIM_SCAN_MAX = 3,   /* likewise; of equals, the lowest offset */
	BRIM_SCAN_COUNT = 4, /* of the values that pass the test */
	BRIM_SCAN_HISTOGRAM = 5,
};

#define BRIM_SCAN_BINS_MAX 4096u

struct brim_scan_accumulator {
	size_t struct_bytes;
	enum brim_scan_kind kind;
	const char *name;
	struct brim_scan_test test; /* of COUNT */
	uint64_t from, to;          /* of HISTOGRAM: [from, to) in bins of one
				       width, at most BINS_MAX and to - from */
	uint32_t bins; /* 0: 65 bins, bin k > 0 has [2^(k-1), 2^k) */
};

/*
 * Takes the field's value at every instance into an accumulator, whether or not
 * it is as expected. Fields that are given the same kind and name go into one
 * (-EEXIST where it is described in another way). Returns its number, from 0.
 */
BRIM_API int brim_scan_accumulate(struct brim_scan *s,
				  const struct brim_scan_field *f,
				  const struct brim_scan_accumulator *a,
				  struct brim_err *e);
/*
 * Makes the field's value at every instance a column of rows (see
 * brim_scan_collect). Returns its number, from 0.
 */
BRIM_API int brim_scan_column(struct brim_scan *s,
			      const struct brim_scan_field *f,
			      struct brim_err *e);

/* ----------------------------------------------------------------- running */

/*
 * The instances to be read: every i of first .. first+count-1, which lies at
 * off_bytes + stride_bytes * i.
 */
struct brim_scan_range {
	uint64_t off_bytes;
	uint64_t stride_bytes;
	uint64_t first, count;
};

/*
 * A run that reads a range of instances and checks them. Each instance is one
 * read from its first to its last byte of interest; dense ones share reads.
 * Step, mismatches and close are those of brim_run. Nothing may be added to the
 * scan while a run uses it. -ERANGE where an instance ends past the device.
 */
BRIM_API int brim_scan_open(struct brim_run **out, const struct brim_scan *s,
			    struct brim_device *d,
			    const struct brim_scan_range *range,
			    const struct brim_run_options *o,
			    struct brim_err *e);

/* What an accumulator has gathered so far. */
struct brim_scan_total {
	size_t struct_bytes;
	enum brim_scan_kind kind;
	const char *name;           /* the scan's */
	uint64_t seen;              /* values looked at */
	uint64_t count;             /* of COUNT: those that passed */
	uint64_t sum_low, sum_high; /* of SUM: 128 bits */
	uint64_t value;             /* of MIN and MAX, where seen is not 0, */
	uint64_t group, off_bytes;  /* its instance, its place on the device */
	const uint64_t *bin_counts; /* of HISTOGRAM; the run's */
	uint32_t bins;              /* how many those are */
	uint64_t below, above;      /* values outside of them */
};

/*
 * The k-th accumulator of a scan's run, from 0: -ENOENT past the last, and
 * for other runs. To be called between steps.
 */
BRIM_API int brim_scan_total(const struct brim_run *r, size_t k,
			     struct brim_scan_total *out);
/* The least value that belongs into a bin of a histogram, and the greatest. */
BRIM_API int brim_scan_bin(const struct brim_run *r, size_t k, uint32_t bin,
			   uint64_t *first, uint64_t *last);

/*
 * Rows of consecutive instances, in order: values[row * columns + column].
 * Valid until the next step.
 */
struct brim_scan_rows {
	size_t struct_bytes;
	uint64_t first; /* the instance of row 0 */
	size_t rows, columns;
	const uint64_t *values;
};

/*
 * Makes a scan's run, before its first step, keep rows for brim_scan_take:
 * about row_count of them (0: 16384), however many instances there are. Once
 * they are full, a step reads nothing further and returns 1 until some are
 * taken. -EINVAL where the scan has no columns or the run has begun.
 */
BRIM_API int brim_scan_collect(struct brim_run *r, uint32_t row_count,
			       struct brim_err *e);
/*
 * Takes the next rows, at most max_rows; 1, or 0 where none are there for now
 * or any more. To be called between steps and after the last.
 */
BRIM_API int brim_scan_take(struct brim_run *r, size_t max_rows,
			    struct brim_scan_rows *out);

#ifdef __cplusplus
}
#endif

#endif /* BRIM_SCAN_API_H */
