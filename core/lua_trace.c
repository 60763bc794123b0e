/* SPDX-License-Identifier: MIT */
/*
 * lua_trace.c: traces for Lua: going through one in steps, copying it into
 * another format, and replays on devices and below directories. Called by
 * lua/brim/trace.lua. Bytes, nanoseconds.
 */
#include <string.h>

#include "lua_fill.h"
#include "lua_run.h"
#include "trace.h"

#define BRIM_TRACE_MT "brim.trace_handle"
#define BRIM_COPY_MT "brim.trace_copy"
#define BRIM_REPLAY_MT "brim.replay_files"

struct ltrace {
	struct brim_trace *t; /* NULL: closed, or a replay has it */
	struct brim_trace_info info;
};

struct lcopy {
	struct brim_trace_copy *c;
};

struct lreplay {
	struct brim_replay_files *f;
};

static void set_number(lua_State *L, const char *name, uint64_t value)
{
	brim__lua_set_int(L, name, value);
}

/* A table of integers by the names of operations; zeros are left out. */
static void set_ops(lua_State *L, const char *name,
		    const uint64_t values[BRIM_TRACE_OPS])
{
	int k;

	lua_createtable(L, 0, BRIM_TRACE_OPS);
	for (k = 0; k < BRIM_TRACE_OPS; k++)
		if (values[k])
			set_number(L, brim__trace_op_names[k], values[k]);
	lua_setfield(L, -2, name);
}

/* ------------------------------------------------------------------ traces */

static struct ltrace *check_trace(lua_State *L, int arg)
{
	struct ltrace *h = luaL_checkudata(L, arg, BRIM_TRACE_MT);

	luaL_argcheck(L, h->t, arg, "the trace is closed");
	return h;
}

/* trace_open(path, format?, blkparse_action?) -> trace | nil, error */
static int trace_open(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	const char *action = luaL_optstring(L, 3, "Q");
	struct brim_trace_options o = { .struct_bytes = sizeof(o),
					.format = luaL_optstring(L, 2, NULL),
					.blkparse_action = *action };
	struct ltrace *h = lua_newuserdatauv(L, sizeof(*h), 0);
	struct brim_err e = { 0 };

	memset(h, 0, sizeof(*h));
	h->info.struct_bytes = sizeof(h->info);
	luaL_setmetatable(L, BRIM_TRACE_MT);
	if (brim_trace_open(&h->t, path, &o, &e) < 0)
		return brim__lua_fail(L, &e, path);
	brim__lua_handles++;
	return 1;
}

static int trace_close(lua_State *L)
{
	struct ltrace *h = luaL_checkudata(L, 1, BRIM_TRACE_MT);
	struct brim_trace *t = h->t;

	h->t = NULL;
	if (t) {
		brim__lua_handles--;
		brim_trace_close(t);
	}
	return 0;
}

static int trace_format(lua_State *L)
{
	lua_pushstring(L, brim_trace_format(check_trace(L, 1)->t));
	return 1;
}

static void set_sizes(lua_State *L, const char *name, const uint64_t v[64])
{
	int k;

	lua_newtable(L);
	for (k = 0; k < 63; k++) {
		lua_pushinteger(L, (lua_Integer)v[k]);
		if (v[k])
			lua_rawseti(L, -2, (lua_Integer)1 << k);
		else
			lua_pop(L, 1);
	}
	lua_setfield(L, -2, name);
}

/* trace:step(budget_s, copy?) -> more | nil, error */
static int trace_step(lua_State *L)
{
	struct ltrace *h = check_trace(L, 1);
	uint64_t budget_ns = brim__lua_check_budget_ns(L, 2);
	struct brim_trace_copy *copy = NULL;
	struct brim_err e = { 0 };
	int ret;

	if (!lua_isnoneornil(L, 3)) {
		copy = ((struct lcopy *)luaL_checkudata(L, 3, BRIM_COPY_MT))->c;
		luaL_argcheck(L, copy, 3, "the copy is closed");
	}
	ret = brim_trace_step(h->t, budget_ns, &h->info, copy, &e);
	if (ret < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushboolean(L, ret);
	return 1;
}

/* trace:info() -> table: what it consists of, as far as it was gone through */
static int trace_info(lua_State *L)
{
	const struct ltrace *h = check_trace(L, 1);
	const struct brim_trace_info *i = &h->info;

	lua_createtable(L, 0, 10);
	lua_pushstring(L, brim_trace_format(h->t));
	lua_setfield(L, -2, "format");
	set_number(L, "lines", brim_trace_line(h->t));
	set_number(L, "events", i->events);
	set_number(L, "last_ns", i->last_ns);
	set_number(L, "from_bytes", i->from_bytes);
	set_number(L, "to_bytes", i->to_bytes);
	set_ops(L, "ops", i->ops);
	set_ops(L, "bytes", i->bytes);
	set_sizes(L, "read_sizes", i->read_sizes);
	set_sizes(L, "write_sizes", i->write_sizes);
	return 1;
}

/* ------------------------------------------------------------------ copies */

/* trace_copy(trace, file, format, path?) -> copy | nil, error */
static int copy_open(lua_State *L)
{
	const struct ltrace *from = check_trace(L, 1);
	const char *file = luaL_checkstring(L, 2);
	const char *format = luaL_checkstring(L, 3);
	const char *path = luaL_optstring(L, 4, NULL);
	struct lcopy *h = lua_newuserdatauv(L, sizeof(*h), 0);
	struct brim_err e = { 0 };

	h->c = NULL;
	luaL_setmetatable(L, BRIM_COPY_MT);
	if (brim_trace_copy_open(&h->c, from->t, file, format, path, &e) < 0)
		return brim__lua_fail(L, &e, file);
	brim__lua_handles++;
	return 1;
}

/* copy:close() -> omitted operations | nil, error; 0 when closed already */
static int copy_close(lua_State *L)
{
	struct lcopy *h = luaL_checkudata(L, 1, BRIM_COPY_MT);
	struct brim_trace_copy *c = h->c;
	struct brim_err e = { 0 };
	uint64_t omitted = 0;

	h->c = NULL;
	if (c) {
		brim__lua_handles--;
		if (brim_trace_copy_close(c, &omitted, &e) < 0)
			return brim__lua_fail(L, &e, NULL);
	}
	lua_pushinteger(L, (lua_Integer)omitted);
	return 1;
}

/* ----------------------------------------------------------------- replays */

#define REPLAY_OPTIONS "speed", "seed", "is_wrapped", "stream", "path", "strip"

static void replay_options(lua_State *L, int arg, struct brim_replay_options *o)
{
	lua_getfield(L, arg, "speed");
	o->speed = luaL_optnumber(L, -1, 0);
	lua_pop(L, 1);
	o->seed = (uint64_t)brim__lua_opt_int_field(L, arg, "seed", 1);
	o->is_wrapped = brim__lua_opt_bool_field(L, arg, "is_wrapped", 0);
	o->has_stream = lua_getfield(L, arg, "stream") != LUA_TNIL;
	lua_pop(L, 1);
	o->stream =
		(uint32_t)brim__lua_opt_count(L, arg, "stream", 0, UINT32_MAX);
	o->path = brim__lua_opt_string_field(L, arg, "path", NULL);
	o->strip = brim__lua_opt_string_field(L, arg, "strip", NULL);
}

/* The trace of a handle, which no longer has it. */
static struct brim_trace *take_trace(struct ltrace *h)
{
	struct brim_trace *t = h->t;

	h->t = NULL;
	brim__lua_handles--;
	return t;
}

/*
 * replay_open(trace, device, {speed=, ..., and a run's options}) -> run | nil,
 * error; the trace is closed for others
 */
static int replay_open(lua_State *L)
{
	static const char *const names[] = { REPLAY_OPTIONS,
					     BRIM__LUA_RUN_OPTIONS, NULL };
	struct ltrace *t = check_trace(L, 1);
	struct brim_device *d = brim__lua_check_device(L, 2);
	struct brim_replay_options ro = { .struct_bytes = sizeof(ro) };
	struct brim_run_options o;
	struct brim_device_info info;
	struct brim__lua_run *h;
	struct brim_err e = { 0 };

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	brim__lua_run_options(L, 3, &o);
	replay_options(L, 3, &ro);
	brim_device_info(d, &info);
	h = brim__lua_run_push(L, 1, 2);
	if (brim_replay_open(&h->r, take_trace(t), d, &ro, &o, &e) < 0)
		return brim__lua_fail(L, &e, info.path);
	h->path = info.path;
	brim__lua_handles++;
	return 1;
}

static void push_replay(lua_State *L, const struct brim_replay_stats *st)
{
	lua_createtable(L, 0, 12);
	set_number(L, "events", st->events);
	set_number(L, "skipped", st->skipped);
	set_number(L, "rounded", st->rounded);
	set_number(L, "failed", st->failed);
	set_number(L, "late_max_ns", st->late_max_ns);
	set_number(L, "elapsed_ns", st->elapsed_ns);
	set_ops(L, "ops", st->ops);
	set_ops(L, "bytes", st->bytes);
	set_ops(L, "p50_ns", st->p50_ns);
	set_ops(L, "p99_ns", st->p99_ns);
	set_ops(L, "max_ns", st->max_ns);
	if (st->failed) {
		lua_pushstring(L, st->first_failure);
		lua_setfield(L, -2, "first_failure");
	}
}

/* run:replay_stats() -> table */
static int run_replay_stats(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	struct brim_replay_stats st = { .struct_bytes = sizeof(st) };

	if (brim_replay_stats(h->r, &st) < 0)
		return luaL_error(L, "it is no replay");
	push_replay(L, &st);
	return 1;
}

const luaL_Reg brim__lua_replay_run_methods[] = {
	{ "replay_stats", run_replay_stats },
	{ NULL, NULL },
};

/* replay_files(trace, root, {speed=, ...}) -> replay | nil, error */
static int files_open(lua_State *L)
{
	static const char *const names[] = { REPLAY_OPTIONS, NULL };
	struct ltrace *t = check_trace(L, 1);
	const char *root = luaL_checkstring(L, 2);
	struct brim_replay_options ro = { .struct_bytes = sizeof(ro) };
	struct brim_err e = { 0 };
	struct lreplay *h;

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	replay_options(L, 3, &ro);
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->f = NULL;
	luaL_setmetatable(L, BRIM_REPLAY_MT);
	if (brim_replay_files_open(&h->f, take_trace(t), root, &ro, &e) < 0)
		return brim__lua_fail(L, &e, root);
	brim__lua_handles++;
	return 1;
}

/* replay:step(budget_s) -> more, stats | nil, error */
static int files_step(lua_State *L)
{
	struct lreplay *h = luaL_checkudata(L, 1, BRIM_REPLAY_MT);
	uint64_t budget_ns = brim__lua_check_budget_ns(L, 2);
	struct brim_replay_stats st = { .struct_bytes = sizeof(st) };
	struct brim_err e = { 0 };
	int ret;

	luaL_argcheck(L, h->f, 1, "the replay is closed");
	ret = brim_replay_files_step(h->f, budget_ns, &st, &e);
	if (ret < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushboolean(L, ret);
	push_replay(L, &st);
	return 2;
}

static int files_close(lua_State *L)
{
	struct lreplay *h = luaL_checkudata(L, 1, BRIM_REPLAY_MT);
	struct brim_replay_files *f = h->f;

	h->f = NULL;
	if (f) {
		brim__lua_handles--;
		brim_replay_files_close(f);
	}
	return 0;
}

/* ----------------------------------------------------------------- handles */

static const luaL_Reg trace_methods[] = {
	{ "step", trace_step },
	{ "info", trace_info },
	{ "format", trace_format },
	{ "close", trace_close },
	{ NULL, NULL },
};

static const luaL_Reg copy_methods[] = {
	{ "close", copy_close },
	{ NULL, NULL },
};

static const luaL_Reg files_methods[] = {
	{ "step", files_step },
	{ "close", files_close },
	{ NULL, NULL },
};

static const luaL_Reg trace_functions[] = {
	{ "trace_open", trace_open },
	{ "trace_copy", copy_open },
	{ "replay_open", replay_open },
	{ "replay_files", files_open },
	{ NULL, NULL },
};

static void handle(lua_State *L, const char *mt, const luaL_Reg *methods,
		   lua_CFunction close)
{
	luaL_newmetatable(L, mt);
	lua_pushcfunction(L, close);
	lua_setfield(L, -2, "__gc");
	lua_pushcfunction(L, close);
	lua_setfield(L, -2, "__close");
	lua_newtable(L);
	luaL_setfuncs(L, methods, 0);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}

void brim__lua_open_trace(lua_State *L)
{
	handle(L, BRIM_TRACE_MT, trace_methods, trace_close);
	handle(L, BRIM_COPY_MT, copy_methods, copy_close);
	handle(L, BRIM_REPLAY_MT, files_methods, files_close);
	luaL_setfuncs(L, trace_functions, 0);
}
