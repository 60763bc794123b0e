/* SPDX-License-Identifier: MIT */
/*
 * walk_result.c: what a walk has found: how each tree went, faults, records,
 * extents made of records, the trees' own blocks. Called by the binding.
 */
#include <errno.h>

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
