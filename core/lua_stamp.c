/* SPDX-License-Identifier: MIT */
/*
 * lua_stamp.c: binds struct brim_stamp, the builder behind plan:each and
 * layout:encode. Called by lua/brim/layout.lua and plan.lua only. Methods
 * return true, or nil and an error object; the Lua side names the caller's
 * line. plan:each takes a stamp over, which closes it here.
 */
#include <string.h>

#include "lua_util.h"

struct lstamp {
	struct brim_stamp *s;
};

static struct brim_stamp *check_stamp(lua_State *L, int arg)
{
	struct lstamp *h = luaL_checkudata(L, arg, BRIM_STAMP_MT);

	luaL_argcheck(L, h->s, arg, "the stamp is closed");
	return h->s;
}

static int stamp_new(lua_State *L)
{
	struct lstamp *h = lua_newuserdatauv(L, sizeof(*h), 0);
	struct brim_err e = { 0 };

	h->s = NULL;
	luaL_setmetatable(L, BRIM_STAMP_MT);
	if (brim_stamp_create(&h->s, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	return 1;
}

/* region(off, len, label) */
static int stamp_region(lua_State *L)
{
	struct brim_err e = { 0 };
	uint64_t len = brim__lua_check_bytes(L, 3);

	luaL_argcheck(L, len <= BRIM_STAMP_MAX_BYTES, 3,
		      "more than a stamp may hold (16 MiB)");
	return brim__lua_done(L,
			      brim_stamp_region(check_stamp(L, 1),
						brim__lua_check_bytes(L, 2),
						(uint32_t)len,
						luaL_checkstring(L, 4), &e),
			      &e);
}

/* place(layout, off, size) */
static int stamp_place(lua_State *L)
{
	struct brim_layout **l = luaL_checkudata(L, 2, BRIM_LAYOUT_MT);
	uint64_t size = brim__lua_check_bytes(L, 4);
	struct brim_err e = { 0 };

	luaL_argcheck(L, size <= BRIM_STAMP_MAX_BYTES, 4,
		      "more than a stamp may hold (16 MiB)");
	return brim__lua_done(L,
			      brim_stamp_place(check_stamp(L, 1), *l,
					       brim__lua_check_bytes(L, 3),
					       (uint32_t)size, &e),
			      &e);
}

/* set_bytes(off, string) */
static int stamp_set_bytes(lua_State *L)
{
	struct brim_err e = { 0 };
	size_t len;
	const char *s = luaL_checklstring(L, 3, &len);

	return brim__lua_done(L,
			      brim_stamp_set_bytes(check_stamp(L, 1),
						   brim__lua_check_bytes(L, 2),
						   s, len, &e),
			      &e);
}

/* set_int(off, width, "big"|"little", base, step, field) */
static int stamp_set_int(lua_State *L)
{
	static const char *const endians[] = { "big", "little", NULL };
	struct brim_err e = { 0 };
	int endian = luaL_checkoption(L, 4, NULL, endians);

	return brim__lua_done(
		L,
		brim_stamp_set_int(
			check_stamp(L, 1), brim__lua_check_bytes(L, 2),
			(uint32_t)luaL_checkinteger(L, 3),
			endian ? BRIM_LITTLE : BRIM_BIG,
			luaL_checkinteger(L, 5), luaL_checkinteger(L, 6),
			luaL_checkstring(L, 7), &e),
		&e);
}

/* seal(first, count) */
static int stamp_seal(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(L,
			      brim_stamp_seal(check_stamp(L, 1),
					      brim__lua_check_bytes(L, 2),
					      brim__lua_check_bytes(L, 3), &e),
			      &e);
}

/* render(i) -> the first extent of instance i, as a string */
static int stamp_render(lua_State *L)
{
	const struct brim_stamp *s = check_stamp(L, 1);
	uint64_t i = brim__lua_check_bytes(L, 2);
	const struct brim_extent *x;
	luaL_Buffer b;

	luaL_argcheck(L, brim_stamp_extents(s, &x) > 0, 1,
		      "the stamp is not sealed");
	brim_stamp_render(s, 0, i, 0, x->len_bytes,
			  luaL_buffinitsize(L, &b, x->len_bytes), 1);
	luaL_pushresultsize(&b, x->len_bytes);
	return 1;
}

static int stamp_close(lua_State *L)
{
	struct lstamp *h = luaL_checkudata(L, 1, BRIM_STAMP_MT);
	struct brim_stamp *s = h->s;

	h->s = NULL;
	brim_stamp_free(s);
	return 0;
}

static const luaL_Reg stamp_methods[] = {
	{ "region", stamp_region },       { "place", stamp_place },
	{ "set_bytes", stamp_set_bytes }, { "set_int", stamp_set_int },
	{ "seal", stamp_seal },           { "render", stamp_render },
	{ "close", stamp_close },         { NULL, NULL },
};

void brim__lua_open_stamp(lua_State *L)
{
	luaL_newmetatable(L, BRIM_STAMP_MT);
	lua_pushcfunction(L, stamp_close);
	lua_setfield(L, -2, "__gc");
	luaL_newlib(L, stamp_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, stamp_new);
	lua_setfield(L, -2, "stamp_new");
}
