/* SPDX-License-Identifier: MIT */
/*
 * lua_verify.c: verifications of fills, and the usage of filesystems, for Lua.
 * Called by lua/brim/fill.lua. What the world refuses comes back as nil, error;
 * wrong arguments raise. Sizes are bytes, budgets seconds.
 */
#include <string.h>

#include "lua_fill.h"

/* User values: 1 the fill, 2 the table that step fills. */
struct lverify {
	struct brim_verify *v;       /* NULL: closed */
	struct brim__lua_fill *fill; /* held by user value 1 */
};

/* The list at arg, in memory that Lua owns and that stays on the stack. */
static const uint64_t *take_window(lua_State *L, int arg,
				   const struct brim_fill *f)
{
	uint64_t *list, done;
	uint32_t n = 0, k;

	if (lua_isnoneornil(L, arg))
		return NULL;
	luaL_checktype(L, arg, LUA_TTABLE);
	while (brim_fill_done(f, n, &done) >= 0)
		n++;
	list = lua_newuserdatauv(L, n * sizeof(*list), 0);
	for (k = 0; k < n; k++) {
		lua_rawgeti(L, arg, (lua_Integer)k + 1);
		luaL_argcheck(L,
			      lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0,
			      arg, "a number of operations for each stream");
		list[k] = (uint64_t)lua_tointeger(L, -1);
		lua_pop(L, 1);
	}
	return list;
}

/* verify_open(fill, window?, options?) -> verification | nil, error */
static int verify_open(lua_State *L)
{
	static const char *const names[] = { "threads", "direct",
					     "max_findings", NULL };
	struct brim_verify_options o = { .struct_bytes = sizeof(o) };
	struct brim__lua_fill *fill = brim__lua_check_fill(L, 1);
	struct brim_err e = { 0 };
	const uint64_t *window;
	struct lverify *h;

	brim__lua_check_options(L, 3, names);
	o.threads =
		(uint32_t)brim__lua_opt_count(L, 3, "threads", 0, UINT32_MAX);
	o.is_direct = brim__lua_opt_bool_field(L, 3, "direct", 0);
	o.max_findings = (uint32_t)brim__lua_opt_count(L, 3, "max_findings", 0,
						       UINT32_MAX);
	lua_settop(L, 3);
	window = take_window(L, 2, fill->f);
	h = lua_newuserdatauv(L, sizeof(*h), 2);
	h->v = NULL;
	h->fill = fill;
	luaL_setmetatable(L, BRIM_VERIFY_MT);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, 1);
	lua_createtable(L, 0, 8);
	lua_setiuservalue(L, -2, 2);
	if (brim_verify_open(&h->v, fill->f, window, &o, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	fill->readers++;
	brim__lua_handles++;
	return 1;
}

static int verify_close(lua_State *L)
{
	struct lverify *h = luaL_checkudata(L, 1, BRIM_VERIFY_MT);
	struct brim_verify *v = h->v;

	h->v = NULL;
	if (v) {
		brim__lua_handles--;
		brim_verify_close(v);
		h->fill->readers--;
	}
	lua_pushboolean(L, 1);
	return 1;
}

static struct brim_verify *check_verify(lua_State *L)
{
	struct lverify *h = luaL_checkudata(L, 1, BRIM_VERIFY_MT);

	if (!h->v)
		luaL_error(L, "verification is closed");
	return h->v;
}

static int verify_tostring(lua_State *L)
{
	struct lverify *h = luaL_checkudata(L, 1, BRIM_VERIFY_MT);

	lua_pushfstring(L, "brim.verify_handle (%s)", h->v ? "open" : "closed");
	return 1;
}

static const char *const finding_names[BRIM_FINDINGS] = {
	[BRIM_FILE_MISSING] = "missing", [BRIM_FILE_SHORT] = "short",
	[BRIM_FILE_LONG] = "long",       [BRIM_FILE_CORRUPT] = "corrupt",
	[BRIM_FILE_EXTRA] = "extra",     [BRIM_FILE_UNREADABLE] = "unreadable",
};

static void set_verify_stats(lua_State *L, const struct brim_verify_stats *st)
{
	int k;

	brim__lua_set_int(L, "files", st->files);
	brim__lua_set_int(L, "bytes", st->bytes);
	brim__lua_set_int(L, "total_files", st->total_files);
	brim__lua_set_int(L, "total_bytes", st->total_bytes);
	brim__lua_set_int(L, "unjudged", st->unjudged);
	brim__lua_set_int(L, "elapsed_ns", st->elapsed_ns);
	if (lua_getfield(L, -1, "found") != LUA_TTABLE) {
		lua_pop(L, 1);
		lua_createtable(L, 0, BRIM_FINDINGS);
		lua_pushvalue(L, -1);
		lua_setfield(L, -3, "found");
	}
	for (k = BRIM_FILE_MISSING; k < BRIM_FINDINGS; k++)
		brim__lua_set_int(L, finding_names[k], st->found[k]);
	lua_pop(L, 1);
}

/* verify:step(budget_s?) -> more, stats | nil, error */
static int verify_step(lua_State *L)
{
	struct brim_verify *v = check_verify(L);
	struct brim_verify_stats st = { .struct_bytes = sizeof(st) };
	uint64_t budget_ns = brim__lua_check_budget_ns(L, 2);
	struct brim_err e = { 0 };
	int ret = brim_verify_step(v, budget_ns, &st, &e);

	if (ret < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushboolean(L, ret);
	lua_getiuservalue(L, 1, 2);
	set_verify_stats(L, &st);
	return 2;
}

/* verify:finding(k) -> table | nothing: from 1 */
static int verify_finding(lua_State *L)
{
	struct brim_verify *v = check_verify(L);
	lua_Integer k = luaL_checkinteger(L, 2);
	uint64_t off_bytes, expected, found;
	const char *path;
	int kind;

	luaL_argcheck(L, k >= 1, 2, "findings are counted from 1");
	kind = brim_verify_finding(v, (size_t)k - 1, &path, &off_bytes,
				   &expected, &found);
	if (kind < 0)
		return 0;
	lua_createtable(L, 0, 5);
	lua_pushstring(L, finding_names[kind]);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, path);
	lua_setfield(L, -2, "path");
	brim__lua_set_int(L, "off_bytes", off_bytes);
	brim__lua_set_int(L, "expected", expected);
	brim__lua_set_int(L, "found", found);
	return 1;
}

/* ------------------------------------------------------------------- usage */

/* usage(path) -> table | nil, error */
static int usage(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct brim_usage u = { .struct_bytes = sizeof(u) };
	struct brim_err e = { 0 };

	if (brim_usage(path, &u, &e) < 0)
		return brim__lua_fail(L, &e, path);
	lua_createtable(L, 0, 9);
	lua_pushstring(L, u.type);
	lua_setfield(L, -2, "type");
#define SET(name) brim__lua_set_int(L, #name, u.name)
	SET(block_bytes);
	SET(size_bytes);
	SET(free_bytes);
	SET(avail_bytes);
	SET(files);
	SET(free_files);
	SET(device_major);
	SET(device_minor);
#undef SET
	return 1;
}

/* usage_sync(path) -> true | nil, error */
static int usage_sync(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct brim_err e = { 0 };

	if (brim_usage_sync(path, &e) < 0)
		return brim__lua_fail(L, &e, path);
	lua_pushboolean(L, 1);
	return 1;
}

static const luaL_Reg verify_methods[] = {
	{ "step", verify_step },
	{ "finding", verify_finding },
	{ "close", verify_close },
	{ NULL, NULL },
};

static const luaL_Reg verify_meta[] = {
	{ "__gc", verify_close },
	{ "__close", verify_close },
	{ "__tostring", verify_tostring },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "verify_open", verify_open },
	{ "usage", usage },
	{ "usage_sync", usage_sync },
	{ NULL, NULL },
};

void brim__lua_open_verify(lua_State *L)
{
	luaL_newmetatable(L, BRIM_VERIFY_MT);
	luaL_setfuncs(L, verify_meta, 0);
	luaL_newlib(L, verify_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, functions, 0);
}
