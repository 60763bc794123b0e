/* SPDX-License-Identifier: MIT */
/*
 * lua_fill.c: fills for Lua. Called by lua/brim/fill.lua. What the world refuses
 * comes back as nil, error; wrong arguments raise. Sizes are bytes, budgets
 * seconds; streams and operations count from 0.
 */
#include <string.h>

#include "lua_fill.h"

/* The longest budget of a step; beyond it, it is "to the end". */
#define BUDGET_MAX_S 1e9

/* ------------------------------------------------------------------- fills */

static uint32_t opt_u32(lua_State *L, int arg, const char *name)
{
	uint64_t n = brim__lua_opt_bytes_field(L, arg, name, 0);

	if (n > UINT32_MAX)
		luaL_argerror(
			L, arg,
			lua_pushfstring(L, "option '%s': out of range", name));
	return (uint32_t)n;
}

/* -1 where the field is absent. */
static int opt_three(lua_State *L, int arg, const char *name)
{
	int is_absent = 1;

	if (!lua_isnoneornil(L, arg)) {
		is_absent = lua_getfield(L, arg, name) == LUA_TNIL;
		lua_pop(L, 1);
	}
	return is_absent ? -1 : brim__lua_opt_bool_field(L, arg, name, 0);
}

/* fsync = "never", "file" or n */
static void take_fsync(lua_State *L, int arg, struct brim_fill_options *o)
{
	static const char *const policies[] = { "never", "file", NULL };
	lua_Integer n;

	if (lua_isnoneornil(L, arg))
		return;
	if (lua_getfield(L, arg, "fsync") == LUA_TNUMBER) {
		n = luaL_checkinteger(L, -1);
		luaL_argcheck(L, n >= 1 && n <= UINT32_MAX, arg,
			      "option 'fsync': each n-th file, from 1");
		o->fsync = BRIM_FSYNC_NTH;
		o->fsync_every = (uint32_t)n;
	} else if (!lua_isnil(L, -1)) {
		o->fsync = luaL_checkoption(L, -1, NULL, policies)
				   ? BRIM_FSYNC_FILE
				   : BRIM_FSYNC_NEVER;
	}
	lua_pop(L, 1);
}

static void take_fill_options(lua_State *L, int arg,
			      struct brim_fill_options *o)
{
	static const char *const names[] = {
		"mode",         "queue_depth", "direct",     "direct_min_bytes",
		"max_io_bytes", "fsync",       "trace_path", "trace_format",
		NULL,
	};

	brim__lua_check_options(L, arg, names);
	o->mode = brim__lua_opt_string_field(L, arg, "mode", NULL);
	o->queue_depth = opt_u32(L, arg, "queue_depth");
	o->direct = opt_three(L, arg, "direct");
	o->direct_min_bytes =
		brim__lua_opt_bytes_field(L, arg, "direct_min_bytes", 0);
	o->max_io_bytes = opt_u32(L, arg, "max_io_bytes");
	o->trace_path = brim__lua_opt_string_field(L, arg, "trace_path", NULL);
	o->trace_format =
		brim__lua_opt_string_field(L, arg, "trace_format", NULL);
	take_fsync(L, arg, o);
}

/* fill_open(fileset, path, options?) -> fill | nil, error */
static int fill_open(lua_State *L)
{
	struct brim_fill_options o = { .struct_bytes = sizeof(o) };
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	const char *path = luaL_checkstring(L, 2);
	struct brim_err e = { 0 };
	struct brim__lua_fill *h;

	take_fill_options(L, 3, &o);
	h = lua_newuserdatauv(L, sizeof(*h), 2);
	memset(h, 0, sizeof(*h));
	luaL_setmetatable(L, BRIM_FILL_MT);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, 1);
	lua_createtable(L, 0, 32);
	lua_setiuservalue(L, -2, 2);
	if (brim_fill_open(&h->f, fs, path, &o, &e) < 0)
		return brim__lua_fail(L, &e, path);
	brim__lua_handles++;
	return 1;
}

/* close, __close and __gc: any number of times; after its verifications */
static int fill_close(lua_State *L)
{
	struct brim__lua_fill *h = luaL_checkudata(L, 1, BRIM_FILL_MT);
	struct brim_fill *f = h->f;

	if (h->readers)
		luaL_error(L, "close the verification of this fill first");
	h->f = NULL;
	if (f) {
		brim__lua_handles--;
		brim_fill_close(f);
	}
	lua_pushboolean(L, 1);
	return 1;
}

struct brim__lua_fill *brim__lua_check_fill(lua_State *L, int arg)
{
	struct brim__lua_fill *h = luaL_checkudata(L, arg, BRIM_FILL_MT);

	if (!h->f)
		luaL_error(L, "fill is closed");
	return h;
}

/* For what changes the streams, which verifications read. */
static struct brim_fill *check_own_fill(lua_State *L)
{
	struct brim__lua_fill *h = brim__lua_check_fill(L, 1);

	if (h->readers)
		luaL_error(L, "close the verification of this fill first");
	return h->f;
}

static int fill_tostring(lua_State *L)
{
	struct brim__lua_fill *h = luaL_checkudata(L, 1, BRIM_FILL_MT);

	lua_pushfstring(L, "brim.fill_handle (%s)", h->f ? "open" : "closed");
	return 1;
}

/* fill:phase{...} -> true | nil, error */
static int fill_phase(lua_State *L)
{
	struct brim_fill *f = check_own_fill(L);
	struct brim_err e = { 0 };
	struct brim_phase p;

	brim__lua_check_phase(L, 2, &p);
	return brim__lua_done(L, brim_fill_phase(f, &p, &e), &e);
}

/* fill:grant(ops?, bytes?) -> true | nil, error */
static int fill_grant(lua_State *L)
{
	struct brim_fill *f = check_own_fill(L);
	uint64_t ops = 0, bytes = 0;
	struct brim_err e = { 0 };

	if (!lua_isnoneornil(L, 2))
		ops = brim__lua_check_count(L, 2, INT64_MAX);
	if (!lua_isnoneornil(L, 3))
		bytes = brim__lua_check_bytes(L, 3);
	return brim__lua_done(L, brim_fill_grant(f, ops, bytes, &e), &e);
}

/* fill:replay(stream, ops) -> true | nil, error */
static int fill_replay(lua_State *L)
{
	struct brim_fill *f = check_own_fill(L);
	uint32_t stream = (uint32_t)brim__lua_check_count(L, 2, UINT32_MAX);
	uint64_t ops = brim__lua_check_count(L, 3, INT64_MAX);
	struct brim_err e = { 0 };

	return brim__lua_done(L, brim_fill_replay(f, stream, ops, &e), &e);
}

/* fill:replay_failure{...} -> true | nil, error */
static int fill_replay_failure(lua_State *L)
{
	struct brim_fill *f = check_own_fill(L);
	struct brim_fill_failure x = { 0 };
	struct brim_err e = { 0 };

	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	lua_getfield(L, 2, "stream");
	lua_getfield(L, 2, "index");
	lua_getfield(L, 2, "told_index");
	lua_getfield(L, 2, "stands");
	x.stream = (uint32_t)brim__lua_check_count(L, 3, UINT32_MAX);
	x.index = brim__lua_check_count(L, 4, INT64_MAX);
	x.told_index = brim__lua_check_count(L, 5, INT64_MAX);
	x.size_bytes = brim__lua_check_stands(L, 6);
	return brim__lua_done(L, brim_fill_replay_failure(f, &x, &e), &e);
}

/* ---------------------------------------------------------------- stepping */

uint64_t brim__lua_check_budget_ns(lua_State *L, int arg)
{
	lua_Number budget_s = luaL_optnumber(L, arg, 0);

	luaL_argcheck(L, budget_s >= 0, arg,
		      "a budget in seconds, not negative");
	return budget_s > 0 && budget_s < BUDGET_MAX_S
		       ? (uint64_t)(budget_s * 1e9) + 1
		       : 0;
}

static void set_fill_stats(lua_State *L, const struct brim_fill_stats *st)
{
#define SET(name) brim__lua_set_int(L, #name, st->name)
	lua_pushstring(L, st->mode);
	lua_setfield(L, -2, "mode");
	lua_pushstring(L, st->choice);
	lua_setfield(L, -2, "choice");
	SET(written_bytes);
	SET(live_files);
	SET(live_bytes);
	SET(refused);
	SET(failed);
	SET(short_files);
	SET(in_flight);
	SET(longest_wait_ns);
	SET(elapsed_ns);
	SET(cpu_ns);
	SET(waiting_stream);
	SET(waiting_id);
#undef SET
	lua_pushstring(L, brim__lua_op_names[st->waiting_kind]);
	lua_setfield(L, -2, "waiting_kind");
	brim__lua_set_kinds(L, "ops", st->ops);
	brim__lua_set_kinds(L, "p50_ns", st->p50_ns);
	brim__lua_set_kinds(L, "p99_ns", st->p99_ns);
	brim__lua_set_kinds(L, "max_ns", st->max_ns);
}

/* fill:step(budget_s?) -> more, stats | nil, error */
static int fill_step(lua_State *L)
{
	struct brim__lua_fill *h = brim__lua_check_fill(L, 1);
	struct brim_fill_stats st = { .struct_bytes = sizeof(st) };
	uint64_t budget_ns = brim__lua_check_budget_ns(L, 2);
	struct brim_err e = { 0 };
	int ret = brim_fill_step(h->f, budget_ns, &st, &e);

	if (ret < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushboolean(L, ret);
	lua_getiuservalue(L, 1, 2);
	set_fill_stats(L, &st);
	return 2;
}

/* fill:finish() -> true | nil, error */
static int fill_finish(lua_State *L)
{
	struct brim_fill *f = brim__lua_check_fill(L, 1)->f;
	struct brim_err e = { 0 };

	return brim__lua_done(L, brim_fill_finish(f, &e), &e);
}

static int fill_stop(lua_State *L)
{
	brim_fill_stop(brim__lua_check_fill(L, 1)->f);
	return 0;
}

/* fill:done(stream) -> operations */
static int fill_done(lua_State *L)
{
	struct brim__lua_fill *h = brim__lua_check_fill(L, 1);
	uint32_t stream = (uint32_t)brim__lua_check_count(L, 2, UINT32_MAX);
	uint64_t ops;

	luaL_argcheck(L, brim_fill_done(h->f, stream, &ops) >= 0, 2,
		      "no such stream");
	lua_pushinteger(L, (lua_Integer)ops);
	return 1;
}

/* fill:failure() -> table | nothing */
static int fill_failure(lua_State *L)
{
	struct brim__lua_fill *h = brim__lua_check_fill(L, 1);
	struct brim_fill_failure x;

	if (!brim_fill_failure(h->f, &x))
		return 0;
	lua_createtable(L, 0, 9);
	brim__lua_set_int(L, "stream", x.stream);
	brim__lua_set_int(L, "index", x.index);
	brim__lua_set_int(L, "id", x.id);
	brim__lua_set_int(L, "errno", (uint64_t)x.error);
	brim__lua_set_int(L, "told_index", x.told_index);
	lua_pushstring(L, brim__lua_op_names[x.kind]);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, x.call);
	lua_setfield(L, -2, "call");
	lua_pushstring(L, brim__lua_errname(x.error));
	lua_setfield(L, -2, "code");
	brim__lua_push_stands(L, x.size_bytes);
	lua_setfield(L, -2, "stands");
	return 1;
}

static const luaL_Reg fill_methods[] = {
	{ "phase", fill_phase },
	{ "grant", fill_grant },
	{ "replay", fill_replay },
	{ "replay_failure", fill_replay_failure },
	{ "step", fill_step },
	{ "stop", fill_stop },
	{ "done", fill_done },
	{ "failure", fill_failure },
	{ "finish", fill_finish },
	{ "close", fill_close },
	{ NULL, NULL },
};

static const luaL_Reg fill_meta[] = {
	{ "__gc", fill_close },
	{ "__close", fill_close },
	{ "__tostring", fill_tostring },
	{ NULL, NULL },
};

void brim__lua_open_fill(lua_State *L)
{
	luaL_newmetatable(L, BRIM_FILL_MT);
	luaL_setfuncs(L, fill_meta, 0);
	luaL_newlib(L, fill_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, fill_open);
	lua_setfield(L, -2, "fill_open");
}
