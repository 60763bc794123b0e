/* SPDX-License-Identifier: MIT */
/*
 * fill_replay.c: what a stream is told of refusals: at once, when it happened,
 * and again, when an earlier run is replayed. A stream hears of a refusal once
 * nothing is in flight; told_index says where that was, so that a replay does
 * the same. Called by fill.c and fill_submit.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fill.h"

/* ------------------------------------------------------------- short files */

static bool stands_short(const struct brim_op *op, uint64_t stands)
{
	return op->kind != BRIM_OP_MKDIR && stands < op->file.size_bytes;
}

void brim__fill_forget_short(struct brim__fill_sub *s, const struct brim_op *op)
{
	bool mends = op->kind == BRIM_OP_CREATE ||
		     op->kind == BRIM_OP_REPLACE ||
		     op->kind == BRIM_OP_DELETE ||
		     op->len_bytes == op->file.size_bytes;
	uint32_t k;

	for (k = 0; mends && k < s->short_count; k++)
		if (s->short_ids[k] == op->file.id)
			s->short_ids[k--] = s->short_ids[--s->short_count];
}

static int note_short(struct brim__fill_sub *s, const struct brim_op *op,
		      uint64_t stands)
{
	uint32_t *ids = s->short_ids, k, room = s->short_room;

	if (!stands_short(op, stands))
		return 0;
	for (k = 0; k < s->short_count; k++)
		if (ids[k] == op->file.id)
			return 0;
	if (s->short_count == room) {
		room = room ? 2 * room : 64;
		ids = realloc(ids, room * sizeof(*ids));
		if (!ids)
			return brim__err(&s->err, -ENOMEM, "fill",
					 "short files");
		s->short_ids = ids;
		s->short_room = room;
	}
	s->short_ids[s->short_count++] = op->file.id;
	return 0;
}

/* ------------------------------------------------------------------ telling */

static int tell(struct brim__fill_sub *s, const struct brim_op *op,
		uint64_t stands)
{
	int ret = brim_stream_fail(s->stream, op, stands, &s->err);

	return ret < 0 ? ret : note_short(s, op, stands);
}

static int by_index_down(const void *a, const void *b)
{
	const struct brim__fill_fail *x = a, *y = b;

	return x->op.index < y->op.index   ? 1
	       : x->op.index > y->op.index ? -1
					   : 0;
}

/* The queue has room: the grant saw to it. */
static void queue_failure(struct brim__fill_sub *s,
			  const struct brim__fill_fail *x, uint64_t told_index)
{
	struct brim_fill *f = s->fill;
	size_t at;

	pthread_mutex_lock(&f->lock);
	at = (f->failure_first + f->failure_count++) % f->failure_room;
	f->failures[at] = (struct brim_fill_failure){
		.stream = s->index,
		.index = x->op.index,
		.kind = x->op.kind,
		.id = x->op.file.id,
		.call = x->result.call,
		.error = x->result.error,
		.size_bytes = x->result.stands,
		.told_index = told_index,
	};
	pthread_mutex_unlock(&f->lock);
}

int brim__fill_tell(struct brim__fill_sub *s)
{
	struct brim_stream_totals t = { .struct_bytes = sizeof(t) };
	uint32_t k;
	int ret = 0;

	if (!s->fail_count)
		return 0;
	qsort(s->fails, s->fail_count, sizeof(s->fails[0]), by_index_down);
	brim_stream_totals(s->stream, &t);
	for (k = 0; k < s->fail_count && !ret; k++) {
		const struct brim__fill_fail *x = &s->fails[k];

		ret = tell(s, &x->op, x->result.stands);
		queue_failure(s, x, t.next_index);
	}
	s->fail_count = 0;
	s->lowest_fail = UINT64_MAX;
	return ret;
}

/* ---------------------------------------------------------------- replaying */

/* By when they are told, then the youngest first. */
static bool comes_before(const struct brim__fill_replayed *x,
			 const struct brim__fill_replayed *y)
{
	return x->told_index != y->told_index ? x->told_index < y->told_index
					      : x->op.index > y->op.index;
}

/* Those that the earlier run had been told of by now. */
static int tell_replayed(struct brim__fill_sub *s, uint64_t next_index)
{
	int ret = 0;

	while (!ret && s->replay_first < s->replay_count &&
	       s->replays[s->replay_first].told_index <= next_index) {
		struct brim__fill_replayed *x = &s->replays[s->replay_first++];

		ret = tell(s, &x->op, x->stands);
	}
	return ret;
}

/*
 * An operation that will be told of later is kept until then. Whether it is
 * one; looks through the list only when there must be one in it.
 */
static bool keep_replayed(struct brim__fill_sub *s, const struct brim_op *op)
{
	uint64_t next = UINT64_MAX;
	size_t k;

	if (op->index != s->replay_index)
		return false;
	for (k = s->replay_first; k < s->replay_count; k++) {
		struct brim__fill_replayed *x = &s->replays[k];

		if (x->op.index == op->index)
			x->op = *op;
		else if (x->op.index > op->index)
			next = BRIM__MIN(next, x->op.index);
	}
	s->replay_index = next;
	return true;
}

int brim__fill_next(struct brim__fill_sub *s, struct brim_op *op)
{
	int ret = 0;

	if (s->replay_first < s->replay_count)
		ret = tell_replayed(s, s->next_index);
	if (!ret)
		ret = brim_stream_next(s->stream, op, &s->err);
	if (ret < 0)
		return ret;
	s->next_index = op->index + 1;
	return s->replay_first < s->replay_count && keep_replayed(s, op);
}

static bool is_busy(struct brim_fill *f)
{
	bool busy;

	pthread_mutex_lock(&f->lock);
	busy = f->running > 0;
	pthread_mutex_unlock(&f->lock);
	return busy;
}

int brim_fill_replay(struct brim_fill *f, uint32_t stream, uint64_t ops,
		     struct brim_err *e)
{
	struct brim__fill_sub *s;
	struct brim_op op;
	int ret = 0;

	if (stream >= f->sub_count)
		return brim__errf(e, -EINVAL, "replay", "there are %u streams",
				  f->sub_count);
	if (is_busy(f))
		return brim__errf(e, -EBUSY, "replay",
				  "the grant is still being used");
	s = &f->subs[stream];
	f->is_resumed = f->is_resumed || ops;
	while (ops-- && ret >= 0) {
		ret = brim__fill_next(s, &op);
		if (ret == 0 && s->short_count)
			brim__fill_forget_short(s, &op);
	}
	if (ret >= 0)
		ret = tell_replayed(s, s->next_index);
	s->begun = s->next_index;
	atomic_store(&s->done, s->next_index);
	brim__fill_publish(s);
	if (ret < 0 && e)
		*e = s->err;
	return ret;
}

/* Into its place, which is the last one where they come in order. */
static void insert_replayed(struct brim__fill_sub *s,
			    const struct brim__fill_replayed *x)
{
	size_t k = s->replay_count++;

	for (; k > s->replay_first && comes_before(x, &s->replays[k - 1]); k--)
		s->replays[k] = s->replays[k - 1];
	s->replays[k] = *x;
	s->replay_index = BRIM__MIN(s->replay_index, x->op.index);
}

int brim_fill_replay_failure(struct brim_fill *f,
			     const struct brim_fill_failure *x,
			     struct brim_err *e)
{
	struct brim__fill_replayed *list;
	struct brim__fill_sub *s;
	size_t room;

	if (x->stream >= f->sub_count)
		return brim__errf(e, -EINVAL, "replay", "there are %u streams",
				  f->sub_count);
	s = &f->subs[x->stream];
	if (is_busy(f) || x->index < s->next_index || x->told_index <= x->index)
		return brim__errf(e, -EINVAL, "replay",
				  "a failure is told before replay gets to it");
	if (s->replay_count == s->replay_room) {
		room = s->replay_room ? 2 * s->replay_room : 64;
		list = realloc(s->replays, room * sizeof(*list));
		if (!list)
			return brim__err(e, -ENOMEM, "replay", "failures");
		s->replays = list;
		s->replay_room = room;
	}
	insert_replayed(s, &(struct brim__fill_replayed){
				   .op = { .index = x->index },
				   .stands = x->size_bytes,
				   .told_index = x->told_index,
			   });
	return 0;
}
