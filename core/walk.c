/* SPDX-License-Identifier: MIT */
/*
 * walk.c: walks trees of many groups at once, level by level, at full queue
 * depth. Owns the handle, the levels and the records found. Called by the
 * binding; walk_jobs.c has the work lists, walk_block.c checks single blocks. A
 * block is read once a job at most and levels only descend, so that any damage
 * ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

#define FAULTS_DEFAULT 1024u
#define LEVELS_MAX 16u /* what a tree of 2^40 blocks cannot reach */
#define JOBS_MAX (1u << 23)
#define SLICE 4096u /* blocks of a level read before they are made use of */

/* ---------------------------------------------------------------- handles */

static int walk_open_batch(struct brim_walk *w,
			   const struct brim_walk_options *o,
			   struct brim_err *e)
{
	uint32_t align = BRIM__MAX(1u, w->dev->info.align_bytes);
	struct brim__batch_options bo = {
		.engine = o->engine,
		.queue_depth = o->queue_depth ? o->queue_depth : 128,
		.threads = o->threads,
		.slot_bytes = w->read_bytes + 2 * align,
	};
	uint32_t depth;
	int ret = brim__batch_open(&w->batch, w->dev, &bo, e);

	if (ret < 0)
		return ret;
	if (!brim__batch_moves_data(w->batch))
		return brim__errf(e, -EINVAL, "walk", "engine %s reads nothing",
				  brim__batch_engine(w->batch));
	depth = brim__batch_depth(w->batch);
	w->at = calloc(depth, sizeof(*w->at));
	w->reaped = calloc(depth, sizeof(struct brim__io *));
	w->faults = calloc(w->fault_max, sizeof(*w->faults));
	return w->at && w->reaped && w->faults
		       ? 0
		       : brim__err(e, -ENOMEM, "walk", "open");
}

int brim_walk_open(struct brim_walk **out, struct brim_device *d,
		   const struct brim_walk_options *options, struct brim_err *e)
{
	struct brim_walk_options o;
	struct brim_walk *w;
	int ret;

	*out = NULL;
	ret = brim__options_take(&o, sizeof(o), options, "walk", e);
	if (ret < 0)
		return ret;
	if (o.block_bytes < 512 || o.block_bytes > BRIM__IO_BYTES_MAX ||
	    o.read_bytes > BRIM__IO_BYTES_MAX || o.max_faults > 1u << 20 ||
	    o.queue_depth > BRIM__DEPTH_MAX)
		return brim__errf(e, -EINVAL, "walk",
				  "block_bytes is 512 .. 64 MiB, max_faults at "
				  "most 2^20, queue_depth at most %u",
				  BRIM__DEPTH_MAX);
	w = calloc(1, sizeof(*w));
	if (!w)
		return brim__err(e, -ENOMEM, "walk", "open");
	w->dev = d;
	brim__device_hold(d);
	w->block_bytes = o.block_bytes;
	w->read_bytes = BRIM__MAX(o.read_bytes, o.block_bytes);
	w->group_bytes = o.group_bytes;
	w->fault_max = o.max_faults ? o.max_faults : FAULTS_DEFAULT;
	ret = walk_open_batch(w, &o, e);
	if (ret < 0)
		brim_walk_close(w);
	else
		*out = w;
	return ret;
}

static void items_free(struct brim__walk_item *v, size_t n)
{
	size_t k;

	for (k = 0; k < n; k++)
		free(v[k].body);
	free(v);
}

void brim_walk_reset(struct brim_walk *w)
{
	brim__walk_forget(w, 0);
	items_free(w->now, w->now_count);
	items_free(w->next, w->next_count);
	w->now = w->next = NULL;
	w->now_count = w->next_count = w->next_room = 0;
	w->fault_count = 0;
}

void brim_walk_close(struct brim_walk *w)
{
	size_t k;

	if (!w)
		return;
	brim__batch_close(w->batch);
	brim_walk_reset(w);
	brim__objects_free(w->objects);
	brim_device_close(w->dev);
	for (k = 0; k < w->kind_count; k++)
		free(w->kinds[k].name);
	free(w->kinds);
	free(w->jobs);
	free(w->faults);
	free(w->reaped);
	free(w->at);
	free(w);
}

int brim_walk_tree(struct brim_walk *w, const struct brim_walk_tree *tree,
		   struct brim_err *e)
{
	struct brim__walk_kind *v;
	struct brim_walk_tree t;
	int ret = brim__options_take(&t, sizeof(t), tree, "walk", e);

	if (ret < 0)
		return ret;
	v = reallocarray(w->kinds, w->kind_count + 1, sizeof(*v));
	if (!v)
		return brim__err(e, -ENOMEM, "walk", "tree");
	w->kinds = v;
	ret = brim__walk_kind(&v[w->kind_count], &t, w->block_bytes, e);
	return ret < 0 ? ret : (int)w->kind_count++;
}

/* ------------------------------------------------------------------ levels */

static uint64_t item_offset(const struct brim_walk *w, const void *ctx,
			    size_t k)
{
	const struct brim__walk_item *item = &w->now[*(const size_t *)ctx + k];

	return brim__walk_at(w, &w->jobs[item->job], item->block);
}

static int item_done(struct brim_walk *w, void *ctx, size_t k,
		     const uint8_t *raw)
{
	return brim__walk_block(w, &w->now[*(const size_t *)ctx + k], raw);
}

static int job_add_block(struct brim__walk_job *job, uint64_t block)
{
	if (job->result.blocks == job->blocks_room) {
		size_t room = job->blocks_room ? 2 * job->blocks_room : 4;
		uint64_t *v = reallocarray(job->blocks, room, sizeof(*v));

		if (!v)
			return -ENOMEM;
		job->blocks = v;
		job->blocks_room = room;
	}
	job->blocks[job->result.blocks++] = block;
	return 0;
}

/* A block's siblings are its neighbours on the work list. */
static void check_siblings(struct brim_walk *w, size_t k)
{
	const struct brim__walk_item *item = &w->now[k], *other;
	const struct brim__walk_job *job = &w->jobs[item->job];
	const struct brim__walk_kind *kind = &w->kinds[job->root.tree];
	uint64_t left = kind->left.all, right = kind->right.all;

	if (job->is_gapped)
		return;
	other = k ? &w->now[k - 1] : NULL;
	if (other && other->job == item->job)
		left = other->block;
	other = k + 1 < w->now_count ? &w->now[k + 1] : NULL;
	if (other && other->job == item->job)
		right = other->block;
	if (kind->left.width_bytes && item->left != left)
		brim__walk_note(w, item->job, item->block, -1, kind->left.name,
				left, item->left);
	if (kind->right.width_bytes && item->right != right)
		brim__walk_note(w, item->job, item->block, -1, kind->right.name,
				right, item->right);
}

/* Each record must come after the one before it. */
static void check_order(struct brim_walk *w, struct brim__walk_item *item,
			const struct brim__walk_kind *k)
{
	struct brim__walk_job *job = &w->jobs[item->job];
	uint64_t v[BRIM__WALK_FIELDS];
	uint32_t i, f;
	int sign;

	for (i = 0; i < item->count; i++) {
		const uint8_t *raw = item->body + (size_t)i * k->record_bytes;

		sign = 0;
		for (f = 0; f < k->order_fields; f++) {
			v[f] = brim__place_get(&k->order[f], raw);
			if (!sign && job->has_last && v[f] != job->last[f])
				sign = v[f] > job->last[f] ? 1 : -1;
		}
		if (job->has_last && k->order_fields &&
		    (sign < 0 || (!sign && k->is_strict)))
			brim__walk_note(w, item->job, item->block, i, "order",
					job->last[0], v[0]);
		memcpy(job->last, v, sizeof(v[0]) * k->order_fields);
		job->has_last = true;
	}
}

static int take_records(struct brim_walk *w, struct brim__walk_item *item)
{
	struct brim__walk_job *job = &w->jobs[item->job];
	const struct brim__walk_kind *k = &w->kinds[job->root.tree];
	size_t n = (size_t)item->count * k->record_bytes;

	check_order(w, item, k);
	job->result.records += item->count;
	if (job->object)
		return brim__objects_records(w, job, item->body, item->count);
	if (job->records_room - job->records_bytes < n) {
		size_t room = 2 * job->records_room + n;
		uint8_t *v = realloc(job->records, room);

		if (!v)
			return -ENOMEM;
		job->records = v;
		job->records_room = room;
	}
	if (n)
		memcpy(job->records + job->records_bytes, item->body, n);
	job->records_bytes += n;
	return 0;
}

static int take_children(struct brim_walk *w, struct brim__walk_item *item)
{
	const struct brim__walk_kind *k =
		&w->kinds[w->jobs[item->job].root.tree];
	const uint8_t *pointers =
		item->body + (size_t)item->count * k->key_bytes;
	uint32_t i, f;
	int ret = 0;

	for (i = 0; i < item->count && !ret; i++) {
		const uint8_t *key = item->body + (size_t)i * k->key_bytes;
		struct brim__walk_item child = { .job = item->job,
						 .level = item->level - 1,
						 .has_key = true };

		for (f = 0; f < k->key_fields; f++)
			child.key[f] = brim__place_get(&k->node_key[f], key);
		if (k->reach.width_bytes)
			child.reach = brim__place_get(&k->node_reach, key);
		child.block = brim__place_get(
			&k->pointer,
			pointers + (size_t)i * k->pointer.width_bytes);
		ret = brim__walk_push(w, &child, item->block, i);
	}
	return ret;
}

/* Some blocks of a level that were read, in their order. */
static int turn_slice(struct brim_walk *w, size_t from, size_t to)
{
	size_t k;
	int ret = 0;

	for (k = from; k < to && !ret; k++) {
		struct brim__walk_item *item = &w->now[k];
		struct brim__walk_job *job = &w->jobs[item->job];

		ret = job_add_block(job, item->block);
		if (!item->is_good)
			job->is_gapping = true;
		else if (!ret)
			ret = item->level ? take_children(w, item)
					  : take_records(w, item);
		free(item->body);
		item->body = NULL;
	}
	return ret;
}

/* Reads a level, a slice at a time, so that bodies take little memory. */
static int walk_level(struct brim_walk *w, struct brim_err *e)
{
	struct brim__walk_reader r = { .offset = item_offset,
				       .done = item_done };
	size_t from, k;
	int ret = 0;

	r.len_bytes = w->block_bytes;
	r.ctx = &from;
	for (from = 0; from < w->now_count && !ret; from += r.count) {
		r.count = BRIM__MIN(w->now_count - from, (size_t)SLICE);
		ret = brim__walk_read_all(w, &r, e);
		if (!ret && turn_slice(w, from, from + r.count) < 0)
			ret = brim__err(e, -ENOMEM, "walk", "run");
	}
	for (k = 0; k < w->now_count && !ret; k++)
		if (w->now[k].is_good)
			check_siblings(w, k);
	for (k = 0; k < w->now_count; k++) {
		struct brim__walk_job *job = &w->jobs[w->now[k].job];

		job->is_gapped = job->is_gapped || job->is_gapping;
	}
	return ret;
}

/* A read failed, or memory did: whatever was still to be read is missing. */
static void walk_abandon(struct brim_walk *w)
{
	size_t k;

	for (k = 0; k < w->now_count; k++)
		w->jobs[w->now[k].job].is_gapped = true;
	for (k = 0; k < w->next_count; k++)
		w->jobs[w->next[k].job].is_gapped = true;
}

int brim_walk_run(struct brim_walk *w, struct brim_err *e)
{
	size_t k;
	int ret = 0;

	while (w->next_count && !ret) {
		items_free(w->now, w->now_count);
		w->now = w->next;
		w->now_count = w->next_count;
		w->next = NULL;
		w->next_count = w->next_room = 0;
		ret = walk_level(w, e);
	}
	if (ret < 0)
		walk_abandon(w);
	for (k = 0; k < w->job_count; k++)
		w->jobs[k].result.is_complete = !w->jobs[k].is_gapped;
	return ret;
}
