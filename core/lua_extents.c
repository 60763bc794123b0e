/* SPDX-License-Identifier: MIT */
/*
 * lua_extents.c: lists of extents for Lua: what checkers compare as a whole.
 * Memory only, so there is no close. Indices count from 1 here; starts and
 * counts are blocks. Wrong use and lack of memory raise.
 */
#include <string.h>

#include "lua_walk.h"

struct lextents {
	struct brim_extents *x;
};

struct brim_extents *brim__lua_extents(lua_State *L, int arg)
{
	struct lextents *h = luaL_checkudata(L, arg, BRIM_EXTENTS_MT);

	luaL_argcheck(L, h->x, arg, "the list was not created");
	return h->x;
}

static void must(lua_State *L, int ret, const struct brim_err *e)
{
	if (ret < 0)
		luaL_error(L, "%s", e->msg);
}

static struct brim_extents *push_extents(lua_State *L)
{
	struct lextents *h = lua_newuserdatauv(L, sizeof(*h), 0);
	struct brim_err e = { 0 };

	h->x = NULL;
	luaL_setmetatable(L, BRIM_EXTENTS_MT);
	must(L, brim_extents_create(&h->x, &e), &e);
	return h->x;
}

/* extents_new() -> extents */
static int extents_new(lua_State *L)
{
	push_extents(L);
	return 1;
}

static int extents_gc(lua_State *L)
{
	struct lextents *h = luaL_checkudata(L, 1, BRIM_EXTENTS_MT);
	struct brim_extents *x = h->x;

	h->x = NULL;
	brim_extents_free(x);
	return 0;
}

static int extents_tostring(lua_State *L)
{
	lua_pushfstring(
		L, "brim.extents of %I",
		(LUAI_UACINT)brim_extents_count(brim__lua_extents(L, 1)));
	return 1;
}

static int extents_len(lua_State *L)
{
	lua_pushinteger(
		L, (lua_Integer)brim_extents_count(brim__lua_extents(L, 1)));
	return 1;
}

/* x:add(start, count, tag?) -> x */
static int extents_add(lua_State *L)
{
	struct brim_extents *x = brim__lua_extents(L, 1);
	struct brim_err e = { 0 };

	must(L,
	     brim_extents_add(x, (uint64_t)luaL_checkinteger(L, 2),
			      (uint64_t)luaL_checkinteger(L, 3),
			      (uint64_t)luaL_optinteger(L, 4, 0), &e),
	     &e);
	lua_settop(L, 1);
	return 1;
}

/* x:append(y, tag?) -> x */
static int extents_append(lua_State *L)
{
	struct brim_extents *x = brim__lua_extents(L, 1);
	uint64_t tag = (uint64_t)luaL_optinteger(L, 3, 0);
	struct brim_err e = { 0 };

	must(L,
	     brim_extents_append(x, brim__lua_extents(L, 2),
				 lua_isnoneornil(L, 3) ? NULL : &tag, &e),
	     &e);
	lua_settop(L, 1);
	return 1;
}

static int push_range(lua_State *L, const struct brim_range *v)
{
	lua_pushinteger(L, (lua_Integer)v->start);
	lua_pushinteger(L, (lua_Integer)v->count);
	lua_pushinteger(L, (lua_Integer)v->tag);
	return 3;
}

/* x:get(i) -> start, count, tag | nil */
static int extents_get(lua_State *L)
{
	struct brim_extents *x = brim__lua_extents(L, 1);
	lua_Integer i = luaL_checkinteger(L, 2);
	struct brim_range v;

	if (i < 1 || brim_extents_get(x, (size_t)i - 1, &v) < 0) {
		lua_pushnil(L);
		return 1;
	}
	return push_range(L, &v);
}

static int extents_sum(lua_State *L)
{
	lua_pushinteger(L,
			(lua_Integer)brim_extents_sum(brim__lua_extents(L, 1)));
	return 1;
}

static int extents_longest(lua_State *L)
{
	lua_pushinteger(
		L, (lua_Integer)brim_extents_longest(brim__lua_extents(L, 1)));
	return 1;
}

/* An index from 0, or -1, as one from 1, or nil. */
static int push_index(lua_State *L, int64_t k)
{
	if (k < 0)
		lua_pushnil(L);
	else
		lua_pushinteger(L, (lua_Integer)k + 1);
	return 1;
}

/* x:outside(from, to) -> index | nil */
static int extents_outside(lua_State *L)
{
	return push_index(
		L, brim_extents_outside(brim__lua_extents(L, 1),
					(uint64_t)luaL_checkinteger(L, 2),
					(uint64_t)luaL_checkinteger(L, 3)));
}

/* x:sort() -> x */
static int extents_sort(lua_State *L)
{
	brim_extents_sort(brim__lua_extents(L, 1));
	lua_settop(L, 1);
	return 1;
}

/* x:union() -> x */
static int extents_union(lua_State *L)
{
	brim_extents_union(brim__lua_extents(L, 1));
	lua_settop(L, 1);
	return 1;
}

/* x:join() -> x */
static int extents_join(lua_State *L)
{
	brim_extents_join(brim__lua_extents(L, 1));
	lua_settop(L, 1);
	return 1;
}

/* x:overlap() -> index, index of the one it overlaps | nil */
static int extents_overlap(lua_State *L)
{
	size_t other = 0;
	int64_t k = brim_extents_overlap(brim__lua_extents(L, 1), &other);

	push_index(L, k);
	if (k < 0)
		return 1;
	lua_pushinteger(L, (lua_Integer)other + 1);
	return 2;
}

/* x:differ(y) -> index | nil */
static int extents_differ(lua_State *L)
{
	return push_index(L, brim_extents_differ(brim__lua_extents(L, 1),
						 brim__lua_extents(L, 2)));
}

/* x:only(y) -> 1 or 2, start, count, tag | nil */
static int extents_only(lua_State *L)
{
	struct brim_range v;
	int which = brim_extents_only(brim__lua_extents(L, 1),
				      brim__lua_extents(L, 2), &v);

	if (!which) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushinteger(L, which);
	return 1 + push_range(L, &v);
}

typedef int derive_fn(const struct brim_extents *x, uint64_t from, uint64_t to,
		      struct brim_extents *out, struct brim_err *e);

static int derive(lua_State *L, derive_fn *f)
{
	struct brim_extents *x = brim__lua_extents(L, 1);
	uint64_t from = (uint64_t)luaL_checkinteger(L, 2);
	uint64_t to = (uint64_t)luaL_checkinteger(L, 3);
	struct brim_err e = { 0 };

	must(L, f(x, from, to, push_extents(L), &e), &e);
	return 1;
}

/* x:complement(from, to) -> extents */
static int extents_complement(lua_State *L)
{
	return derive(L, brim_extents_complement);
}

/* x:tagged(from, to) -> extents */
static int extents_tagged(lua_State *L)
{
	return derive(L, brim_extents_tagged);
}

/* x:starting(from, to) -> extents, less from */
static int extents_starting(lua_State *L)
{
	return derive(L, brim_extents_starting);
}

/* x:depth(least) -> extents tagged with how many cover them */
static int extents_depth(lua_State *L)
{
	struct brim_extents *x = brim__lua_extents(L, 1);
	uint64_t least = (uint64_t)luaL_checkinteger(L, 2);
	struct brim_err e = { 0 };

	must(L, brim_extents_depth(x, least, push_extents(L), &e), &e);
	return 1;
}

static const luaL_Reg methods[] = {
	{ "add", extents_add },
	{ "append", extents_append },
	{ "get", extents_get },
	{ "sum", extents_sum },
	{ "longest", extents_longest },
	{ "outside", extents_outside },
	{ "sort", extents_sort },
	{ "union", extents_union },
	{ "join", extents_join },
	{ "overlap", extents_overlap },
	{ "differ", extents_differ },
	{ "only", extents_only },
	{ "complement", extents_complement },
	{ "tagged", extents_tagged },
	{ "starting", extents_starting },
	{ "depth", extents_depth },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", extents_gc },
	{ "__len", extents_len },
	{ "__tostring", extents_tostring },
	{ NULL, NULL },
};

void brim__lua_open_extents(lua_State *L)
{
	luaL_newmetatable(L, BRIM_EXTENTS_MT);
	luaL_setfuncs(L, meta, 0);
	luaL_newlib(L, methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, extents_new);
	lua_setfield(L, -2, "extents_new");
}
