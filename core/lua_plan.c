/* SPDX-License-Identifier: MIT */
/*
 * lua_plan.c: binds struct brim_plan and image files. Called by
 * lua/brim/plan.lua, which wraps the handle in the object that scripts see.
 * What the world refuses (saving, loading) returns nil and an error object, as
 * do refused pieces; the Lua side raises those with the caller's line.
 */
#include <string.h>

#include "lua_util.h"

struct lplan {
	struct brim_plan *p;
};
struct lstamp {
	struct brim_stamp *s;
};

static struct brim_plan *check_plan(lua_State *L, int arg)
{
	struct lplan *h = luaL_checkudata(L, arg, BRIM_PLAN_MT);

	luaL_argcheck(L, h->p, arg, "the plan is closed");
	return h->p;
}

/* A handle without a plan yet: collectable before anything is acquired. */
static struct lplan *push_plan(lua_State *L)
{
	struct lplan *h = lua_newuserdatauv(L, sizeof(*h), 0);

	h->p = NULL;
	luaL_setmetatable(L, BRIM_PLAN_MT);
	return h;
}

/* plan_new(name, size) */
static int plan_new(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	uint64_t size = brim__lua_check_bytes(L, 2);
	struct lplan *h = push_plan(L);
	struct brim_err e = { 0 };

	if (brim_plan_create(&h->p, name, size, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	brim__lua_handles++;
	return 1;
}

static int plan_phase(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(
		L,
		brim_plan_phase(check_plan(L, 1), luaL_checkstring(L, 2), &e),
		&e);
}

/* zero(off, len, name) */
static int plan_zero(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(L,
			      brim_plan_zero(check_plan(L, 1),
					     brim__lua_check_bytes(L, 2),
					     brim__lua_check_bytes(L, 3),
					     luaL_checkstring(L, 4), &e),
			      &e);
}

/* each(stamp, off, stride, name, groups): takes the stamp over */
static int plan_each(lua_State *L)
{
	struct brim_plan *p = check_plan(L, 1);
	struct lstamp *stamp = luaL_checkudata(L, 2, BRIM_STAMP_MT);
	uint64_t off = brim__lua_check_bytes(L, 3);
	uint64_t stride = brim__lua_check_bytes(L, 4);
	const char *name = luaL_checkstring(L, 5);
	struct brim_stamp *s = stamp->s;
	struct brim_err e = { 0 };

	luaL_argcheck(L, s, 2, "the stamp is closed");
	stamp->s = NULL;
	return brim__lua_done(L,
			      brim_plan_each(p, s, off, stride, name,
					     lua_toboolean(L, 6), &e),
			      &e);
}

static int plan_set_note(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(
		L,
		brim_plan_set_note(check_plan(L, 1), luaL_checkstring(L, 2),
				   luaL_optstring(L, 3, NULL), &e),
		&e);
}

static int plan_note(lua_State *L)
{
	lua_pushstring(
		L, brim_plan_note(check_plan(L, 1), luaL_checkstring(L, 2)));
	return 1;
}

static int plan_seal(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(L, brim_plan_seal(check_plan(L, 1), &e), &e);
}

static int plan_unseal(lua_State *L)
{
	struct brim_err e = { 0 };

	return brim__lua_done(L, brim_plan_unseal(check_plan(L, 1), &e), &e);
}

static void set_int(lua_State *L, const char *name, uint64_t v)
{
	lua_pushinteger(L, (lua_Integer)v);
	lua_setfield(L, -2, name);
}

/* totals(max_io) -> table, the fields of struct brim_plan_totals */
static int plan_totals(lua_State *L)
{
	uint64_t max_io = brim__lua_check_bytes(L, 2);
	struct brim_plan_totals t;

	luaL_argcheck(L, max_io > 0 && max_io <= 1u << 30, 2,
		      "an I/O is 1 byte to 1 GiB long");
	brim_plan_totals(check_plan(L, 1), (uint32_t)max_io, &t);
	lua_createtable(L, 0, 8);
	set_int(L, "phases", t.phases);
	set_int(L, "pieces", t.pieces);
	set_int(L, "groups", t.groups);
	set_int(L, "writes", t.writes);
	set_int(L, "write_bytes", t.write_bytes);
	set_int(L, "zero_ranges", t.zero_ranges);
	set_int(L, "zero_bytes", t.zero_bytes);
	set_int(L, "align_bytes", t.align_bytes);
	return 1;
}

/* piece(i) -> table or nil, with the labels of its structures as `regions` */
static int plan_piece(lua_State *L)
{
	const struct brim_plan *p = check_plan(L, 1);
	lua_Integer i = luaL_checkinteger(L, 2) - 1;
	struct brim_piece_info info;
	const char *label;
	uint64_t off;
	uint32_t len;
	size_t k;

	if (i < 0 || brim_plan_piece(p, (size_t)i, &info) < 0)
		return 0;
	lua_createtable(L, 0, 12);
	lua_pushstring(L, info.phase);
	lua_setfield(L, -2, "phase");
	lua_pushstring(L, info.name);
	lua_setfield(L, -2, "name");
	lua_pushboolean(L, info.is_zero);
	lua_setfield(L, -2, "is_zero");
	lua_pushboolean(L, info.is_groups);
	lua_setfield(L, -2, "is_groups");
	set_int(L, "off_bytes", info.off_bytes);
	set_int(L, "len_bytes", info.len_bytes);
	set_int(L, "stride_bytes", info.stride_bytes);
	set_int(L, "first", info.first);
	set_int(L, "count", info.count);
	set_int(L, "hidden", info.hidden);
	set_int(L, "extents", info.extents);
	lua_newtable(L);
	for (k = 0; brim_plan_region(p, (size_t)i, k, &label, &off, &len) >= 0;
	     k++) {
		lua_createtable(L, 0, 3);
		lua_pushstring(L, label);
		lua_setfield(L, -2, "label");
		set_int(L, "off_bytes", off);
		set_int(L, "len_bytes", len);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
	lua_setfield(L, -2, "regions");
	return 1;
}

/* read(off, len) -> string */
static int plan_read(lua_State *L)
{
	const struct brim_plan *p = check_plan(L, 1);
	uint64_t off = brim__lua_check_bytes(L, 2);
	uint64_t len = brim__lua_check_bytes(L, 3);
	struct brim_err e = { 0 };
	luaL_Buffer b;

	luaL_argcheck(L, len <= 1u << 30, 3, "at most 1 GiB at a time");
	if (brim_plan_read(p, off, (size_t)len,
			   luaL_buffinitsize(L, &b, (size_t)len), &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	luaL_pushresultsize(&b, (size_t)len);
	return 1;
}

static int plan_save(lua_State *L)
{
	const char *path = luaL_checkstring(L, 2);
	struct brim_err e = { 0 };
	int ret = brim_image_save(check_plan(L, 1), path, &e);

	if (ret < 0)
		return brim__lua_fail(L, &e, path);
	lua_pushboolean(L, 1);
	return 1;
}

static int image_load(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	struct lplan *h = push_plan(L);
	struct brim_err e = { 0 };

	if (brim_image_load(&h->p, path, &e) < 0)
		return brim__lua_fail(L, &e, path);
	brim__lua_handles++;
	return 1;
}

/* info() -> name, size */
static int plan_info(lua_State *L)
{
	const struct brim_plan *p = check_plan(L, 1);

	lua_pushstring(L, brim_plan_name(p));
	lua_pushinteger(L, (lua_Integer)brim_plan_size_bytes(p));
	return 2;
}

static int plan_close(lua_State *L)
{
	struct lplan *h = luaL_checkudata(L, 1, BRIM_PLAN_MT);
	struct brim_plan *p = h->p;

	h->p = NULL;
	if (p)
		brim__lua_handles--;
	brim_plan_free(p);
	return 0;
}

static int plan_tostring(lua_State *L)
{
	struct lplan *h = luaL_checkudata(L, 1, BRIM_PLAN_MT);

	lua_pushfstring(L, "brim.plan_handle (%s)",
			h->p ? brim_plan_name(h->p) : "closed");
	return 1;
}

static const luaL_Reg plan_methods[] = {
	{ "phase", plan_phase },   { "zero", plan_zero },
	{ "each", plan_each },     { "set_note", plan_set_note },
	{ "note", plan_note },     { "seal", plan_seal },
	{ "unseal", plan_unseal }, { "totals", plan_totals },
	{ "piece", plan_piece },   { "read", plan_read },
	{ "save", plan_save },     { "info", plan_info },
	{ "close", plan_close },   { NULL, NULL },
};

static const luaL_Reg plan_meta[] = {
	{ "__gc", plan_close },
	{ "__close", plan_close },
	{ "__tostring", plan_tostring },
	{ NULL, NULL },
};

static const luaL_Reg plan_functions[] = {
	{ "plan_new", plan_new },
	{ "image_load", image_load },
	{ NULL, NULL },
};

void brim__lua_open_plan(lua_State *L)
{
	luaL_newmetatable(L, BRIM_PLAN_MT);
	luaL_setfuncs(L, plan_meta, 0);
	luaL_newlib(L, plan_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, plan_functions, 0);
}
