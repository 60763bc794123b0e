/* SPDX-License-Identifier: MIT */
/*
 * scan_rows.c: the columns of a scan as rows of consecutive instances, in
 * order, though I/Os end in any: a ring that the run fills and its owner
 * empties between steps. Called by scan_run.c, in one thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scan.h"

#define ROWS_DEFAULT 16384u
#define ROWS_MAX (1u << 22) /* unless a single I/O has more */

/* So many I/Os that the queue stays full while rows are being taken. */
static uint64_t window_ios(const struct brim_run *r, uint64_t row_count)
{
	uint64_t per_io = r->instances_per_io;
	uint64_t all = (r->end - r->instance - 1) / per_io + 1;
	uint64_t ios = BRIM__MIN(BRIM__MAX(row_count, 1u), ROWS_MAX) / per_io;

	ios = BRIM__MAX(ios, BRIM__MIN(4 * r->depth, ROWS_MAX / per_io));
	return BRIM__MIN(BRIM__MAX(ios, 1u), all);
}

int brim_scan_collect(struct brim_run *r, uint32_t row_count,
		      struct brim_err *e)
{
	struct brim__scan_window *w;

	if (!r->scan || !r->scan->column_count || r->is_begun ||
	    r->gathered.window)
		return brim__errf(e, -EINVAL, "scan",
				  "rows are for scans with columns, before the "
				  "first step");
	w = calloc(1, sizeof(*w));
	if (!w)
		return brim__err(e, -ENOMEM, "scan", "rows");
	r->gathered.window = w;
	w->per_io = r->instances_per_io;
	w->first = r->instance;
	w->ios = window_ios(r, row_count ? row_count : ROWS_DEFAULT);
	w->is_done = calloc(w->ios, sizeof(*w->is_done));
	w->values = calloc(w->ios * w->per_io,
			   r->scan->column_count * sizeof(*w->values));
	if (w->is_done && w->values)
		return 0;
	brim__scan_window_free(r);
	return brim__err(e, -ENOMEM, "scan", "rows");
}

void brim__scan_window_free(struct brim_run *r)
{
	struct brim__scan_window *w = r->gathered.window;

	if (!w)
		return;
	free(w->values);
	free(w->is_done);
	free(w);
	r->gathered.window = NULL;
}

bool brim__scan_window_is_full(const struct brim_run *r)
{
	const struct brim__scan_window *w = r->gathered.window;

	return w && (r->instance - w->first) / w->per_io >=
			    w->taken / w->per_io + w->ios;
}

void brim__scan_window_put(struct brim_run *r, uint64_t i, const uint8_t *raw)
{
	const struct brim_scan *s = r->scan;
	struct brim__scan_window *w = r->gathered.window;
	uint64_t row = (i - w->first) % (w->ios * w->per_io);
	uint64_t *out = w->values + row * s->column_count;
	size_t k;

	for (k = 0; k < s->column_count; k++)
		out[k] = brim__scan_load(&s->columns[k], s, raw);
}

void brim__scan_window_done(struct brim_run *r, uint64_t i)
{
	struct brim__scan_window *w = r->gathered.window;

	w->is_done[(i - w->first) / w->per_io % w->ios] = true;
	while (w->is_done[w->ready % w->ios]) {
		w->is_done[w->ready % w->ios] = false;
		w->ready++;
	}
}

int brim_scan_take(struct brim_run *r, size_t max_rows,
		   struct brim_scan_rows *out)
{
	struct brim__scan_window *w = r->gathered.window;
	size_t room = out->struct_bytes;
	struct brim_scan_rows rows = { .struct_bytes = room };
	uint64_t there, at, ring;

	if (!w)
		return 0;
	/* The last I/O has fewer. */
	there = BRIM__MIN(w->ready * w->per_io, r->end - w->first) - w->taken;
	ring = w->ios * w->per_io;
	at = w->taken % ring;
	rows.rows = (size_t)BRIM__MIN(BRIM__MIN(there, ring - at), max_rows);
	rows.columns = r->scan->column_count;
	rows.first = w->first + w->taken;
	rows.values = w->values + at * rows.columns;
	w->taken += rows.rows;
	memcpy(out, &rows, BRIM__MIN(room, sizeof(rows)));
	return rows.rows > 0;
}
