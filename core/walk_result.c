/* SPDX-License-Identifier: MIT */
/*
 * walk_result.c: what a walk has found: how each tree went, faults, records,
 * extents made of records, the trees' own blocks. Called by the binding.
 */
#include <errno.h>
#include <string.h>

#include "walk.h"

int brim_walk_job(const struct brim_walk *w, size_t job,
		  struct brim_walk_job *out)
{
	if (job >= w->job_count)
		return -ENOENT;
	*out = w->jobs[job].result;
	return 0;
}

int brim_walk_fault(const struct brim_walk *w, size_t k,
		    struct brim_walk_fault *out)
{
	if (k >= w->fault_count)
		return -ENOENT;
	*out = w->faults[k];
	return 0;
}

const void *brim_walk_records(const struct brim_walk *w, size_t job,
			      size_t *len_bytes)
{
	*len_bytes = job < w->job_count ? w->jobs[job].records_bytes : 0;
	return *len_bytes ? w->jobs[job].records : NULL;
}

int brim_walk_extents(const struct brim_walk *w, size_t job, const char *start,
		      const char *count, const char *tag,
		      struct brim_extents *x, struct brim_err *e)
{
	const struct brim__walk_job *j = &w->jobs[job];
	const struct brim__walk_kind *k;
	struct brim__place s, c, t;
	size_t at;
	int ret;

	if (job >= w->job_count)
		return brim__errf(e, -ENOENT, "walk", "no such job");
	k = &w->kinds[j->root.tree];
	if ((ret = brim__walk_place(&s, k->record, start, e)) < 0 ||
	    (ret = brim__walk_place(&c, k->record, count, e)) < 0 ||
	    (ret = brim__walk_place(&t, k->record, tag, e)) < 0)
		return ret;
	for (at = 0; at < j->records_bytes && !ret; at += k->record_bytes) {
		const uint8_t *raw = j->records + at;

		ret = brim_extents_add(x, brim__place_get(&s, raw),
				       count ? brim__place_get(&c, raw) : 1,
				       tag ? brim__place_get(&t, raw) : 0, e);
	}
	return ret;
}

int brim_walk_rows(const struct brim_walk *w, size_t job,
		   const char *const names[4], uint64_t base,
		   uint64_t owner_from, uint64_t owner_to, struct brim_table *t,
		   struct brim_err *e)
{
	const struct brim__walk_job *j = &w->jobs[job];
	const struct brim__walk_kind *k;
	struct brim__place p[4];
	int ret = 0, i;
	size_t at;

	if (job >= w->job_count)
		return brim__errf(e, -ENOENT, "walk", "no such job");
	k = &w->kinds[j->root.tree];
	for (i = 0; i < 4 && !ret; i++)
		ret = brim__walk_place(&p[i], k->record, names[i], e);
	for (at = 0; at < j->records_bytes && !ret; at += k->record_bytes) {
		const uint8_t *raw = j->records + at;
		struct brim_row row = {
			.start = base + brim__place_get(&p[0], raw),
			.count = brim__place_get(&p[1], raw),
			.owner = brim__place_get(&p[2], raw),
			.offset = brim__place_get(&p[3], raw),
		};

		if (row.owner >= owner_from && row.owner <= owner_to)
			ret = brim_table_add(t, &row, e);
	}
	return ret;
}

int brim_walk_stats(const struct brim_walk *w, struct brim_walk_stats *out)
{
	const struct brim__batch_stats *b = brim__batch_stats(w->batch);
	struct brim_walk_stats st = {
		.struct_bytes = out->struct_bytes,
		.engine = brim__batch_engine(w->batch),
		.reads = b->ios[BRIM__READ],
		.read_bytes = b->bytes[BRIM__READ],
		.latency_sum_ns = b->latency_sum_ns,
	};

	if (out->struct_bytes < sizeof(size_t))
		return -EINVAL;
	memcpy(out, &st, BRIM__MIN(sizeof(st), out->struct_bytes));
	return 0;
}

int brim_walk_blocks(const struct brim_walk *w, size_t job,
		     struct brim_extents *x, struct brim_err *e)
{
	uint64_t k;
	int ret = 0;

	if (job >= w->job_count)
		return brim__errf(e, -ENOENT, "walk", "no such job");
	for (k = 0; k < w->jobs[job].result.blocks && !ret; k++)
		ret = brim_extents_add(x, w->jobs[job].blocks[k], 1, job, e);
	return ret;
}
