/* SPDX-License-Identifier: MIT */
/*
 * lua_workload.c: workloads for Lua: their options, their operations for tests
 * and for the curious, and runs of them. Called by lua/brim/workload.lua. A
 * workload is memory only, so it has no close. Bytes, nanoseconds.
 */
#include <string.h>

#include "lua_fill.h"
#include "lua_run.h"

#define BRIM_WORKLOAD_MT "brim.workload_handle"

struct lworkload {
	struct brim_workload *w;
	uint32_t block_bytes;
};

static struct brim_workload *check_workload(lua_State *L, int arg)
{
	struct lworkload *h = luaL_checkudata(L, arg, BRIM_WORKLOAD_MT);

	luaL_argcheck(L, h->w, arg, "the workload was not created");
	return h->w;
}

static double number_field(lua_State *L, int arg, const char *name)
{
	double n;

	lua_getfield(L, arg, name);
	n = luaL_optnumber(L, -1, 0);
	lua_pop(L, 1);
	return n;
}

static enum brim_pattern pattern_field(lua_State *L, int arg)
{
	static const char *const patterns[] = { "sequential",  "random",
						"permutation", "strided",
						"zipf",        NULL };
	int k;

	lua_getfield(L, arg, "pattern");
	k = luaL_checkoption(L, -1, NULL, patterns);
	lua_pop(L, 1);
	return BRIM_PATTERN_SEQUENTIAL + (enum brim_pattern)k;
}

static void take_options(lua_State *L, struct brim_workload_options *o)
{
	static const char *const names[] = {
		"seed",        "pattern",      "theta",       "stride_bytes",
		"block_bytes", "sizes",        "off_bytes",   "size_bytes",
		"read_ppm",    "is_clustered", "may_overlap", "total_bytes",
		"operations",  "passes",       NULL,
	};

	luaL_checktype(L, 1, LUA_TTABLE);
	brim__lua_check_options(L, 1, names);
	o->seed = (uint64_t)brim__lua_opt_int_field(L, 1, "seed", 1);
	o->pattern = pattern_field(L, 1);
	o->theta = number_field(L, 1, "theta");
	o->stride_bytes = brim__lua_opt_bytes_field(L, 1, "stride_bytes", 0);
	o->block_bytes = (uint32_t)brim__lua_opt_count(L, 1, "block_bytes", 0,
						       UINT32_MAX);
	o->off_bytes = brim__lua_opt_bytes_field(L, 1, "off_bytes", 0);
	o->size_bytes = brim__lua_opt_bytes_field(L, 1, "size_bytes", 0);
	o->read_ppm =
		(uint32_t)brim__lua_opt_count(L, 1, "read_ppm", 0, 1000000);
	o->is_clustered = brim__lua_opt_bool_field(L, 1, "is_clustered", 0);
	o->may_overlap = brim__lua_opt_bool_field(L, 1, "may_overlap", 0);
	o->total_bytes = brim__lua_opt_bytes_field(L, 1, "total_bytes", 0);
	o->operations = brim__lua_opt_count(L, 1, "operations", 0, INT64_MAX);
	o->passes =
		(uint32_t)brim__lua_opt_count(L, 1, "passes", 0, UINT32_MAX);
}

/* workload_new({pattern=, size_bytes=, ...}) -> workload | nil, error */
static int workload_new(lua_State *L)
{
	struct brim_workload_options o = { .struct_bytes = sizeof(o) };
	struct lworkload *h;
	struct brim_err e = { 0 };
	struct brim_dist d;

	take_options(L, &o);
	if (lua_getfield(L, 1, "sizes") != LUA_TNIL) {
		brim__lua_check_dist(L, -1, &d);
		o.sizes = &d;
	}
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->w = NULL;
	h->block_bytes = o.block_bytes ? o.block_bytes : 4096;
	luaL_setmetatable(L, BRIM_WORKLOAD_MT);
	if (brim_workload_create(&h->w, &o, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	return 1;
}

static int workload_gc(lua_State *L)
{
	struct lworkload *h = luaL_checkudata(L, 1, BRIM_WORKLOAD_MT);
	struct brim_workload *w = h->w;

	h->w = NULL;
	brim_workload_free(w);
	return 0;
}

/* workload:operations(n) -> list of { off_bytes, len_bytes, is_read } */
static int workload_operations(lua_State *L)
{
	struct brim_workload *w = check_workload(L, 1);
	uint64_t n = brim__lua_check_count(L, 2, 1 << 24), k;
	struct brim_workload_cursor c;
	struct brim_workload_op op;

	brim_workload_begin(w, &c);
	lua_createtable(L, n < 1024 ? (int)n : 1024, 0);
	for (k = 1; k <= n && brim_workload_next(w, &c, &op); k++) {
		lua_createtable(L, 0, 3);
		brim__lua_set_int(L, "off_bytes", op.off_bytes);
		brim__lua_set_int(L, "len_bytes", op.len_bytes);
		lua_pushboolean(L, op.is_read);
		lua_setfield(L, -2, "is_read");
		lua_rawseti(L, -2, (lua_Integer)k);
	}
	return 1;
}

/* workload:block(off_bytes, operation) -> bytes */
static int workload_block(lua_State *L)
{
	struct lworkload *h = luaL_checkudata(L, 1, BRIM_WORKLOAD_MT);
	struct brim_workload *w = check_workload(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	uint64_t version = brim__lua_check_count(L, 3, INT64_MAX);
	luaL_Buffer b;

	brim_workload_block(w, off_bytes, version,
			    luaL_buffinitsize(L, &b, h->block_bytes));
	luaL_pushresultsize(&b, h->block_bytes);
	return 1;
}

/* -------------------------------------------------------------------- runs */

static int opened(lua_State *L, int ret, struct brim__lua_run *h,
		  const char *path, const struct brim_err *e)
{
	if (ret < 0)
		return brim__lua_fail(L, e, path);
	h->path = path;
	brim__lua_handles++;
	return 1;
}

/*
 * workload_open(workload, device, {first=, limit_ns=, bins=, and a run's
 * options}) -> run | nil, error
 */
static int workload_open(lua_State *L)
{
	static const char *const names[] = { "first", "limit_ns", "bins",
					     BRIM__LUA_RUN_OPTIONS, NULL };
	struct brim_workload *w = check_workload(L, 1);
	struct brim_device *d = brim__lua_check_device(L, 2);
	struct brim_workload_run_options wo = { .struct_bytes = sizeof(wo) };
	struct brim_run_options o;
	struct brim_device_info info;
	struct brim__lua_run *h;
	struct brim_err e = { 0 };

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	brim__lua_run_options(L, 3, &o);
	wo.first = brim__lua_opt_count(L, 3, "first", 0, INT64_MAX);
	wo.limit_ns = brim__lua_opt_count(L, 3, "limit_ns", 0, INT64_MAX);
	wo.bins = (uint32_t)brim__lua_opt_count(L, 3, "bins", 0, UINT32_MAX);
	brim_device_info(d, &info);
	h = brim__lua_run_push(L, 1, 2);
	return opened(L, brim_workload_open(&h->r, w, d, &wo, &o, &e), h,
		      info.path, &e);
}

/*
 * workload_verify(workload, device, {done=, begun=, and a run's options})
 * -> run | nil, error; without done and begun, all of its operations are done
 */
static int workload_verify(lua_State *L)
{
	static const char *const names[] = { "done", "begun",
					     BRIM__LUA_RUN_OPTIONS, NULL };
	struct brim_workload *w = check_workload(L, 1);
	struct brim_device *d = brim__lua_check_device(L, 2);
	struct brim_run_options o;
	struct brim_device_info info;
	struct brim__lua_run *h;
	struct brim_err e = { 0 };
	uint64_t done, begun;

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	brim__lua_run_options(L, 3, &o);
	done = brim__lua_opt_count(L, 3, "done", INT64_MAX, INT64_MAX);
	begun = brim__lua_opt_count(L, 3, "begun", INT64_MAX, INT64_MAX);
	brim_device_info(d, &info);
	h = brim__lua_run_push(L, 1, 2);
	return opened(L, brim_workload_verify(&h->r, w, d, done, begun, &o, &e),
		      h, info.path, &e);
}

static void push_bins(lua_State *L, const struct brim_workload_stats *st)
{
	uint32_t k;

	lua_createtable(L, (int)st->bin_count, 0);
	for (k = 0; k < st->bin_count; k++) {
		const struct brim_workload_bin *b = &st->bins[k];

		lua_createtable(L, 0, 5);
		brim__lua_set_int(L, "off_bytes", b->off_bytes);
		brim__lua_set_int(L, "reads", b->reads);
		brim__lua_set_int(L, "writes", b->writes);
		brim__lua_set_int(L, "bytes", b->bytes);
		brim__lua_set_int(L, "latency_ns", b->latency_ns);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
}

/* run:workload_stats(with_bins?) -> table: since the last call, see brim.h */
static int run_workload_stats(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	struct brim_workload_stats st = { .struct_bytes = sizeof(st) };
	int with_bins = lua_toboolean(L, 2);

	if (brim_workload_stats(h->r, &st) < 0)
		return luaL_error(L, "it is no run of a workload");
	lua_createtable(L, 0, 16);
#define SET(name) brim__lua_set_int(L, #name, st.name)
	SET(begun);
	SET(done);
	SET(off_bytes);
	SET(waits);
	SET(bytes);
	SET(ios);
	SET(interval_ns);
	SET(read_p50_ns);
	SET(read_p99_ns);
	SET(read_max_ns);
	SET(write_p50_ns);
	SET(write_p99_ns);
	SET(write_max_ns);
#undef SET
	if (with_bins) {
		push_bins(L, &st);
		lua_setfield(L, -2, "bins");
	}
	return 1;
}

/* run:workload_found() -> { right=, missing=, stale=, ... } in blocks */
static int run_workload_found(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	struct brim_workload_counts c = { .struct_bytes = sizeof(c) };

	if (brim_workload_found(h->r, &c) < 0)
		return luaL_error(L, "it is no verification of a workload");
	lua_createtable(L, 0, 8);
#define SET(name) brim__lua_set_int(L, #name, c.name)
	SET(right);
	SET(missing);
	SET(stale);
	SET(newer);
	SET(misplaced);
	SET(corrupt);
	SET(unjudged);
#undef SET
	return 1;
}

const luaL_Reg brim__lua_workload_run_methods[] = {
	{ "workload_stats", run_workload_stats },
	{ "workload_found", run_workload_found },
	{ NULL, NULL },
};

static const luaL_Reg workload_methods[] = {
	{ "operations", workload_operations },
	{ "block", workload_block },
	{ NULL, NULL },
};

static const luaL_Reg workload_functions[] = {
	{ "workload_new", workload_new },
	{ "workload_open", workload_open },
	{ "workload_verify", workload_verify },
	{ NULL, NULL },
};

void brim__lua_open_workload(lua_State *L)
{
	luaL_newmetatable(L, BRIM_WORKLOAD_MT);
	lua_pushcfunction(L, workload_gc);
	lua_setfield(L, -2, "__gc");
	luaL_newlib(L, workload_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, workload_functions, 0);
}
