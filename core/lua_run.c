/* SPDX-License-Identifier: MIT */
/*
 * lua_run.c: runs for Lua: writing a plan, verifying a device against it, and
 * what both and scans have in common: steps, counters, mismatches. What the
 * world refuses comes back as nil, error; wrong arguments raise.
 */
#include <string.h>

#include "lua_run.h"

/* The longest budget of a step; beyond it, it is "to the end". */
#define BUDGET_MAX_S 1e9

struct lplan {
	struct brim_plan *p;
};

/* ----------------------------------------------------------------- opening */

static uint32_t check_u32_field(lua_State *L, int arg, const char *name)
{
	int64_t n = brim__lua_opt_int_field(L, arg, name, 0);

	if (n < 0 || n > UINT32_MAX)
		luaL_argerror(L, arg,
			      lua_pushfstring(L,
					      "option '%s': %I is out of "
					      "range",
					      name, (LUAI_UACINT)n));
	return (uint32_t)n;
}

void brim__lua_run_options(lua_State *L, int arg, struct brim_run_options *o)
{
	uint64_t max_io_bytes;

	memset(o, 0, sizeof(*o));
	o->struct_bytes = sizeof(*o);
	o->engine = brim__lua_opt_string_field(L, arg, "engine", NULL);
	o->queue_depth = check_u32_field(L, arg, "queue_depth");
	o->threads = check_u32_field(L, arg, "threads");
	o->max_mismatches = check_u32_field(L, arg, "max_mismatches");
	max_io_bytes = brim__lua_opt_bytes_field(L, arg, "max_io_bytes", 0);
	luaL_argcheck(L, max_io_bytes <= UINT32_MAX, arg,
		      "option 'max_io_bytes': at most 64 MiB");
	o->max_io_bytes = (uint32_t)max_io_bytes;
}

struct brim__lua_run *brim__lua_run_push(lua_State *L, int source, int device)
{
	struct brim__lua_run *h = lua_newuserdatauv(L, sizeof(*h), 3);

	memset(h, 0, sizeof(*h));
	luaL_setmetatable(L, BRIM_RUN_MT);
	lua_pushvalue(L, source);
	lua_setiuservalue(L, -2, 1);
	lua_pushvalue(L, device);
	lua_setiuservalue(L, -2, 2);
	lua_createtable(L, 0, 32);
	lua_setiuservalue(L, -2, 3);
	return h;
}

static const char *path_of(const struct brim_device *d)
{
	struct brim_device_info info;

	brim_device_info(d, &info);
	return info.path;
}

/* run_open(plan, device, "write"|"verify", options?) -> run | nil, error */
static int run_open(lua_State *L)
{
	static const char *const modes[] = { "write", "verify", NULL };
	static const char *const names[] = { BRIM__LUA_RUN_OPTIONS, NULL };
	struct lplan *plan = luaL_checkudata(L, 1, BRIM_PLAN_MT);
	struct brim_device *d = brim__lua_check_device(L, 2);
	int is_verify = luaL_checkoption(L, 3, NULL, modes);
	struct brim_run_options o;
	struct brim_err e = { 0 };
	struct brim__lua_run *h;

	luaL_argcheck(L, plan->p, 1, "the plan is closed");
	brim__lua_check_options(L, 4, names);
	brim__lua_run_options(L, 4, &o);
	h = brim__lua_run_push(L, 1, 2);
	if (brim_run_open(&h->r, plan->p, d,
			  is_verify ? BRIM_RUN_VERIFY : BRIM_RUN_WRITE, &o,
			  &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	h->path = path_of(d);
	brim__lua_handles++;
	return 1;
}

/* ----------------------------------------------------------------- closing */

/* close, __close and __gc: any number of times */
static int run_close(lua_State *L)
{
	struct brim__lua_run *h = luaL_checkudata(L, 1, BRIM_RUN_MT);
	struct brim_run *r = h->r;

	h->r = NULL;
	if (r) {
		brim__lua_handles--;
		brim_run_close(r);
	}
	lua_pushboolean(L, 1);
	return 1;
}

struct brim__lua_run *brim__lua_check_run(lua_State *L)
{
	struct brim__lua_run *h = luaL_checkudata(L, 1, BRIM_RUN_MT);

	if (!h->r)
		luaL_error(L, "run is closed");
	return h;
}

static int run_tostring(lua_State *L)
{
	struct brim__lua_run *h = luaL_checkudata(L, 1, BRIM_RUN_MT);

	lua_pushfstring(L, "brim.run (%s)", h->r ? h->path : "closed");
	return 1;
}

/* --------------------------------------------------------------- stepping */

static void set_int(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

static void set_string(lua_State *L, const char *name, const char *value)
{
	lua_pushstring(L, value);
	lua_setfield(L, -2, name);
}

/* Fills the table on top of the stack. */
static void set_stats(lua_State *L, const struct brim_run_stats *st)
{
#define SET(name) set_int(L, #name, st->name)
	set_string(L, "engine", st->engine);
	set_string(L, "phase", st->phase);
	SET(groups_done);
	SET(groups_total);
	SET(ios_done);
	SET(ios_total);
	SET(bytes_done);
	SET(bytes_total);
	SET(reads);
	SET(writes);
	SET(zero_ranges);
	SET(flushes);
	SET(read_bytes);
	SET(write_bytes);
	SET(zero_bytes);
	SET(short_ios);
	SET(retries);
	SET(mismatches);
	SET(elapsed_ns);
	SET(user_cpu_ns);
	SET(system_cpu_ns);
	SET(latency_p50_ns);
	SET(latency_p90_ns);
	SET(latency_p99_ns);
	SET(latency_max_ns);
#undef SET
	lua_pushnumber(L, st->mean_queue_depth);
	lua_setfield(L, -2, "mean_queue_depth");
}

/*
 * run:step(budget_s?) -> more, stats | nil, error. Without a budget, or with 0,
 * it works to the end. The table is the same each time.
 */
static int run_step(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	struct brim_run_stats st = { .struct_bytes = sizeof(st) };
	lua_Number budget_s = luaL_optnumber(L, 2, 0);
	struct brim_err e = { 0 };
	uint64_t budget_ns = 0;
	int ret;

	luaL_argcheck(L, budget_s >= 0, 2, "a budget in seconds, not negative");
	if (budget_s > 0 && budget_s < BUDGET_MAX_S)
		budget_ns = (uint64_t)(budget_s * 1e9) + 1;
	ret = brim_run_step(h->r, budget_ns, &st, &e);
	if (ret < 0)
		return brim__lua_fail(L, &e, h->path);
	lua_pushboolean(L, ret);
	lua_getiuservalue(L, 1, 3);
	set_stats(L, &st);
	return 2;
}

/* run:mismatch(k) -> table | nil: the k-th one kept, from 1 */
static int run_mismatch(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	lua_Integer k = luaL_checkinteger(L, 2);
	struct brim_mismatch m;

	luaL_argcheck(L, k >= 1, 2, "mismatches are counted from 1");
	if (brim_run_mismatch(h->r, (size_t)k - 1, &m) < 0) {
		lua_pushnil(L);
		return 1;
	}
	lua_createtable(L, 0, 7);
	set_int(L, "off_bytes", m.off_bytes);
	set_int(L, "group", m.group);
	set_string(L, "piece", m.piece);
	set_string(L, "what", m.what);
	set_string(L, "rule", m.rule);
	set_int(L, "expected", m.expected);
	set_int(L, "found", m.found);
	return 1;
}

static const luaL_Reg run_methods[] = {
	{ "step", run_step },
	{ "mismatch", run_mismatch },
	{ "close", run_close },
	{ NULL, NULL },
};

static const luaL_Reg run_meta[] = {
	{ "__gc", run_close },
	{ "__close", run_close },
	{ "__tostring", run_tostring },
	{ NULL, NULL },
};

void brim__lua_open_run(lua_State *L)
{
	luaL_newmetatable(L, BRIM_RUN_MT);
	luaL_setfuncs(L, run_meta, 0);
	luaL_newlib(L, run_methods);
	luaL_setfuncs(L, brim__lua_scan_run_methods, 0);
	luaL_setfuncs(L, brim__lua_workload_run_methods, 0);
	luaL_setfuncs(L, brim__lua_replay_run_methods, 0);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, run_open);
	lua_setfield(L, -2, "run_open");
}
