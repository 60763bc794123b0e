/* SPDX-License-Identifier: MIT */
/*
 * walk_jobs.c: the trees of a walk: jobs, faults, the set of blocks seen and
 * the work list of the next level. Called by walk.c, walk_block.c and
 * objects.c. Blocks are numbers within a group, or as objects have them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define LEVELS_MAX 16u /* what a tree of 2^40 blocks cannot reach */
#define JOBS_MAX (1u << 23)

void brim__walk_forget(struct brim_walk *w, size_t mark)
{
	while (w->job_count > mark) {
		w->job_count--;
		free(w->jobs[w->job_count].records);
		free(w->jobs[w->job_count].blocks);
	}
	free(w->seen);
	w->seen = NULL;
	w->seen_count = w->seen_room = 0;
}

static void note(struct brim_walk *w, const struct brim_walk_fault *fault)
{
	if (w->fault_count < w->fault_max)
		w->faults[w->fault_count++] = *fault;
}

void brim__walk_note(struct brim_walk *w, uint32_t job, uint64_t block,
		     int64_t element, const char *what, uint64_t expected,
		     uint64_t found)
{
	struct brim_walk_fault fault = {
		.job = job,
		.object = w->jobs[job].owner,
		.is_object = w->jobs[job].object != 0,
		.block = block,
		.element = element,
		.what = what,
		.expected = expected,
		.found = found,
	};

	w->jobs[job].result.faults++;
	note(w, &fault);
}

void brim__walk_note_object(struct brim_walk *w, uint64_t number,
			    int64_t element, const char *what,
			    uint64_t expected, uint64_t found)
{
	struct brim_walk_fault fault = {
		.job = BRIM_WALK_NO_JOB,
		.object = number,
		.is_object = 1,
		.element = element,
		.what = what,
		.expected = expected,
		.found = found,
	};

	note(w, &fault);
}

static size_t seen_slot(const struct brim__seen *v, size_t room, uint64_t job,
			uint64_t block)
{
	uint64_t key = (block ^ job << 40) * 0x9e3779b97f4a7c15u;
	size_t k = (size_t)(key >> 20) & (room - 1);

	while (v[k].job && (v[k].job != job || v[k].block != block))
		k = (k + 1) & (room - 1);
	return k;
}

static int seen_grow(struct brim_walk *w)
{
	size_t room = w->seen_room ? 2 * w->seen_room : 1024, k;
	struct brim__seen *v = calloc(room, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (k = 0; k < w->seen_room; k++)
		if (w->seen[k].job)
			v[seen_slot(v, room, w->seen[k].job,
				    w->seen[k].block)] = w->seen[k];
	free(w->seen);
	w->seen = v;
	w->seen_room = room;
	return 0;
}

/* 1: the first time that this job has this block; 0: not. */
static int seen_add(struct brim_walk *w, uint32_t job, uint64_t block)
{
	uint64_t key = (uint64_t)job + 1;
	size_t k;

	if (2 * w->seen_count >= w->seen_room && seen_grow(w) < 0)
		return -ENOMEM;
	k = seen_slot(w->seen, w->seen_room, key, block);
	if (w->seen[k].job)
		return 0;
	w->seen[k] = (struct brim__seen){ key, block };
	w->seen_count++;
	return 1;
}

uint64_t brim__walk_at(const struct brim_walk *w,
		       const struct brim__walk_job *job, uint64_t block)
{
	uint64_t at = 0;

	if (!job->object)
		return job->root.group * w->group_bytes +
		       block * w->block_bytes;
	brim__objects_at(w->objects, block, &at);
	return at;
}

static bool is_inside(const struct brim_walk *w,
		      const struct brim__walk_job *job, uint64_t block)
{
	uint64_t at;

	if (job->object)
		return brim__objects_at(w->objects, block, &at);
	return block >= job->root.first_block && block < job->root.end_block;
}

int brim__walk_push(struct brim_walk *w, const struct brim__walk_item *item,
		    uint64_t from, int64_t element)
{
	struct brim__walk_job *job = &w->jobs[item->job];
	struct brim__walk_item *v;
	const char *what = NULL;
	int ret = 0;

	if (!is_inside(w, job, item->block))
		what = "pointer";
	else if ((ret = seen_add(w, item->job, item->block)) == 0)
		what = "pointer, twice";
	if (ret < 0)
		return ret;
	if (what) {
		brim__walk_note(w, item->job, from, element, what,
				job->root.end_block - 1, item->block);
		job->is_gapping = true;
		return 0;
	}
	if (w->next_count == w->next_room) {
		size_t room = w->next_room ? 2 * w->next_room : 64;

		v = reallocarray(w->next, room, sizeof(*v));
		if (!v)
			return -ENOMEM;
		w->next = v;
		w->next_room = room;
	}
	w->next[w->next_count++] = *item;
	return 0;
}

/* Whether a root can be walked at all. */
static int check_root(const struct brim_walk *w,
		      const struct brim_walk_root *root, struct brim_err *e)
{
	uint64_t end, blocks;

	if (root->tree >= w->kind_count || !root->levels ||
	    root->levels > LEVELS_MAX || root->end_block > 1ull << 40 ||
	    w->job_count >= JOBS_MAX)
		return brim__errf(e, -EINVAL, "walk",
				  "levels are 1 .. %u, blocks below 2^40",
				  LEVELS_MAX);
	if (brim_mul(root->group, w->group_bytes, &end) < 0 ||
	    brim_mul(root->end_block, w->block_bytes, &blocks) < 0 ||
	    brim_add(end, blocks, &end) < 0 || end > w->dev->info.size_bytes)
		return brim__errf(e, -ERANGE, "walk",
				  "group %llu ends past the device",
				  (unsigned long long)root->group);
	return 0;
}

int brim__walk_add_job(struct brim_walk *w, const struct brim__walk_job *job)
{
	if (w->job_count == w->job_room) {
		size_t room = w->job_room ? 2 * w->job_room : 64;
		struct brim__walk_job *v;

		v = reallocarray(w->jobs, room, sizeof(*v));
		if (!v)
			return -ENOMEM;
		w->jobs = v;
		w->job_room = room;
	}
	w->jobs[w->job_count] = *job;
	return (int)w->job_count++;
}

int brim_walk_start(struct brim_walk *w, const struct brim_walk_root *root,
		    struct brim_err *e)
{
	struct brim__walk_item item = { .block = root->block, .is_root = true };
	struct brim__walk_job job = { .root = *root, .owner = root->group };
	int ret = check_root(w, root, e);

	if (ret < 0)
		return ret;
	ret = brim__walk_add_job(w, &job);
	item.job = (uint32_t)ret;
	item.level = root->levels - 1;
	if (ret < 0 || brim__walk_push(w, &item, root->block, -1) < 0)
		return brim__err(e, -ENOMEM, "walk", "start");
	/* A root that lies nowhere is met above all levels. */
	w->jobs[ret].is_gapped = w->jobs[ret].is_gapping;
	return ret;
}
