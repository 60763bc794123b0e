/* SPDX-License-Identifier: MIT */
/*
 * lua_table.c: tables of rows, who holds which blocks, for Lua. Memory only, so
 * there is no close. Indices count from 1 here; starts and counts are blocks.
 * Wrong use and lack of memory raise.
 */
#include "lua_walk.h"

struct ltable {
	struct brim_table *t;
};

struct brim_table *brim__lua_table(lua_State *L, int arg)
{
	struct ltable *h = luaL_checkudata(L, arg, BRIM_TABLE_MT);

	luaL_argcheck(L, h->t, arg, "the table was not created");
	return h->t;
}

/* table_new(group_log2) -> table */
static int table_new(lua_State *L)
{
	lua_Integer log2 = luaL_checkinteger(L, 1);
	struct brim_err e = { 0 };
	struct ltable *h;

	luaL_argcheck(L, log2 >= 0 && log2 <= 64, 1, "0 .. 64");
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->t = NULL;
	luaL_setmetatable(L, BRIM_TABLE_MT);
	if (brim_table_create(&h->t, (uint32_t)log2, &e) < 0)
		return luaL_error(L, "%s", e.msg);
	return 1;
}

static int table_gc(lua_State *L)
{
	struct ltable *h = luaL_checkudata(L, 1, BRIM_TABLE_MT);
	struct brim_table *t = h->t;

	h->t = NULL;
	brim_table_free(t);
	return 0;
}

static int table_tostring(lua_State *L)
{
	lua_pushfstring(L, "brim.table of %I",
			(LUAI_UACINT)brim_table_count(brim__lua_table(L, 1)));
	return 1;
}

static int table_len(lua_State *L)
{
	lua_pushinteger(L,
			(lua_Integer)brim_table_count(brim__lua_table(L, 1)));
	return 1;
}

/* t:add(start, count, owner, offset) -> t */
static int table_add(lua_State *L)
{
	struct brim_row row = {
		.start = (uint64_t)luaL_checkinteger(L, 2),
		.count = (uint64_t)luaL_checkinteger(L, 3),
		.owner = (uint64_t)luaL_checkinteger(L, 4),
		.offset = (uint64_t)luaL_checkinteger(L, 5),
	};
	struct brim_err e = { 0 };

	if (brim_table_add(brim__lua_table(L, 1), &row, &e) < 0)
		return luaL_error(L, "%s", e.msg);
	lua_settop(L, 1);
	return 1;
}

static int push_row(lua_State *L, const struct brim_row *row)
{
	lua_pushinteger(L, (lua_Integer)row->start);
	lua_pushinteger(L, (lua_Integer)row->count);
	lua_pushinteger(L, (lua_Integer)row->owner);
	lua_pushinteger(L, (lua_Integer)row->offset);
	return 4;
}

/* t:get(i) -> start, count, owner, offset | nil */
static int table_get(lua_State *L)
{
	lua_Integer i = luaL_checkinteger(L, 2);
	struct brim_row row;

	if (i < 1 ||
	    brim_table_get(brim__lua_table(L, 1), (size_t)i - 1, &row) < 0) {
		lua_pushnil(L);
		return 1;
	}
	return push_row(L, &row);
}

/* t:sort() -> t */
static int table_sort(lua_State *L)
{
	brim_table_sort(brim__lua_table(L, 1));
	lua_settop(L, 1);
	return 1;
}

/* t:merge(fixed) -> t */
static int table_merge(lua_State *L)
{
	brim_table_merge(brim__lua_table(L, 1),
			 (uint64_t)luaL_checkinteger(L, 2));
	lua_settop(L, 1);
	return 1;
}

/* t:find(group) -> first, last; last < first where the group has no row */
static int table_find(lua_State *L)
{
	size_t from, to;

	brim_table_find(brim__lua_table(L, 1),
			(uint64_t)luaL_checkinteger(L, 2), &from, &to);
	lua_pushinteger(L, (lua_Integer)from + 1);
	lua_pushinteger(L, (lua_Integer)to);
	return 2;
}

/* t:extents(group, list) -> list */
static int table_extents(lua_State *L)
{
	struct brim_err e = { 0 };

	if (brim_table_extents(brim__lua_table(L, 1),
			       (uint64_t)luaL_checkinteger(L, 2),
			       brim__lua_extents(L, 3), &e) < 0)
		return luaL_error(L, "%s", e.msg);
	lua_settop(L, 3);
	return 1;
}

static size_t index_at(lua_State *L, int arg)
{
	lua_Integer i = luaL_checkinteger(L, arg);

	luaL_argcheck(L, i >= 0, arg, "an index");
	return (size_t)i;
}

/*
 * t:differ(i, last, other, j, last) -> which, i, j, start, count, owner,
 * offset | nil
 */
static int table_differ(lua_State *L)
{
	struct brim_table *x = brim__lua_table(L, 1);
	struct brim_table *y = brim__lua_table(L, 4);
	size_t i = index_at(L, 2), j = index_at(L, 5);
	struct brim_row row;
	int which;

	luaL_argcheck(L, i > 0, 2, "an index");
	luaL_argcheck(L, j > 0, 5, "an index");
	i--;
	j--;
	which = brim_table_differ(x, &i, index_at(L, 3), y, &j, index_at(L, 6),
				  &row);
	if (!which) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushinteger(L, which);
	lua_pushinteger(L, (lua_Integer)i + 1);
	lua_pushinteger(L, (lua_Integer)j + 1);
	return 3 + push_row(L, &row);
}

static const luaL_Reg methods[] = {
	{ "add", table_add },       { "get", table_get },
	{ "sort", table_sort },     { "merge", table_merge },
	{ "find", table_find },     { "extents", table_extents },
	{ "differ", table_differ }, { NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", table_gc },
	{ "__len", table_len },
	{ "__tostring", table_tostring },
	{ NULL, NULL },
};

void brim__lua_open_table(lua_State *L)
{
	luaL_newmetatable(L, BRIM_TABLE_MT);
	luaL_setfuncs(L, meta, 0);
	luaL_newlib(L, methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, table_new);
	lua_setfield(L, -2, "table_new");
}
