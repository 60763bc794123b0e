/* SPDX-License-Identifier: MIT */
/*
 * lua_objects.c: objects that hold extents, for Lua: their description as a
 * table, reading them by ranges, rows of trees' records. Methods of walks; the
 * rest is in lua_walk.c. Wrong arguments raise.
 */
#include <stdbool.h>

#include "lua_walk.h"

#define RANGES_MAX 4096
#define RANGE_VALUES 4 /* off_bytes, number, present, used */

/* ------------------------------------------------------------ description */

static uint64_t get_int(lua_State *L, int arg, const char *name)
{
	return (uint64_t)brim__lua_opt_int_field(L, arg, name, 0);
}

static uint32_t get_u32(lua_State *L, int arg, const char *name)
{
	int64_t v = brim__lua_opt_int_field(L, arg, name, 0);

	if (v < 0 || v > UINT32_MAX)
		luaL_error(L, "option '%s' is 0 .. 2^32-1", name);
	return (uint32_t)v;
}

static const char *get_string(lua_State *L, int arg, const char *name)
{
	return brim__lua_opt_string_field(L, arg, name, NULL);
}

/* Pushes a table of the table at arg; false and nothing where there is none. */
static bool push_field(lua_State *L, int arg, const char *name)
{
	int type = lua_getfield(L, arg, name);

	if (type == LUA_TTABLE)
		return true;
	lua_pop(L, 1);
	if (type != LUA_TNIL)
		luaL_error(L, "option '%s' is a table", name);
	return false;
}

static void get_flags(lua_State *L, const char *name, struct brim_flags *f)
{
	if (!push_field(L, 2, name))
		return;
	f->field = get_string(L, lua_gettop(L), "field");
	f->mask = get_int(L, lua_gettop(L), "mask");
	lua_pop(L, 1);
}

/* {at, width} of the table on top. */
static void get_bits(lua_State *L, const char *name, struct brim_bits *b)
{
	if (!push_field(L, lua_gettop(L), name))
		return;
	lua_rawgeti(L, -1, 1);
	lua_rawgeti(L, -2, 2);
	b->at = (uint32_t)luaL_checkinteger(L, -2);
	b->width = (uint32_t)luaL_checkinteger(L, -1);
	lua_pop(L, 3);
}

static void get_record(lua_State *L, struct brim_packed *r)
{
	if (!push_field(L, 2, "record"))
		return;
	r->record_bytes = get_u32(L, lua_gettop(L), "record_bytes");
	get_bits(L, "start", &r->start);
	get_bits(L, "count", &r->count);
	get_bits(L, "offset", &r->offset);
	get_bits(L, "flag", &r->flag);
	lua_pop(L, 1);
}

static void get_forks(lua_State *L, struct brim_object_fork *v)
{
	int i, at;

	if (!push_field(L, 2, "forks"))
		return;
	for (i = 0; i < 2; i++) {
		lua_rawgeti(L, -1, i + 1);
		luaL_checktype(L, -1, LUA_TTABLE);
		at = lua_gettop(L);
		v[i].format = get_string(L, at, "format");
		v[i].count = get_string(L, at, "count");
		v[i].wide_count = get_string(L, at, "wide_count");
		v[i].formats = get_u32(L, at, "formats");
		v[i].tag = get_int(L, at, "tag");
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static void get_kinds(lua_State *L, uint32_t *kinds)
{
	int i;

	if (!push_field(L, 2, "kinds"))
		return;
	for (i = 0; i < 16; i++) {
		if (lua_rawgeti(L, -1, i) == LUA_TNUMBER)
			kinds[i] = (uint32_t)lua_tointeger(L, -1);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

static void get_uuid(lua_State *L, struct brim_object *o)
{
	size_t len;

	o->uuid = get_string(L, 2, "uuid");
	if (!o->uuid)
		return;
	lua_getfield(L, 2, "uuid_bytes");
	o->uuid_bytes = (const uint8_t *)luaL_checklstring(L, -1, &len);
	luaL_argcheck(L, len >= 16, 2, "uuid_bytes: 16 bytes");
	lua_pop(L, 1); /* the table at 2 holds it */
}

/* The plain fields of the table at 2. */
static void get_fields(lua_State *L, struct brim_object *o)
{
#define STRING(field) o->field = get_string(L, 2, #field)
	STRING(magic);
	STRING(number);
	STRING(use);
	STRING(none);
	STRING(blocks);
	STRING(split);
#undef STRING
#define INTEGER(get, field) o->field = get(L, 2, #field)
	INTEGER(get_u32, object_bytes);
	INTEGER(get_u32, body_at);
	INTEGER(get_u32, kind_shift);
	INTEGER(get_u32, split_bytes);
	INTEGER(get_u32, list_format);
	INTEGER(get_u32, tree_format);
	INTEGER(get_u32, opaque_formats);
	INTEGER(get_u32, tree);
	INTEGER(get_u32, group_log2);
	INTEGER(get_int, flag_tag);
	INTEGER(get_int, tree_tag);
	INTEGER(get_int, group_blocks);
	INTEGER(get_int, last_group_blocks);
	INTEGER(get_int, group_count);
	INTEGER(get_int, first_block);
#undef INTEGER
}

/* walk:object{...as struct brim_object} */
static int walk_object(lua_State *L)
{
	struct brim_walk *w = brim__lua_walk(L, 1);
	struct brim_object o = { .struct_bytes = sizeof(o) };
	struct brim_err e = { 0 };

	luaL_checktype(L, 2, LUA_TTABLE);
	o.layout = brim__lua_walk_layout(L, 2, "layout");
	o.root = brim__lua_walk_layout(L, 2, "root");
	get_fields(L, &o);
	get_uuid(L, &o);
	get_kinds(L, o.kinds);
	get_flags(L, "wide", &o.wide);
	get_flags(L, "away", &o.away);
	get_record(L, &o.record);
	get_forks(L, o.fork);
	if (brim_walk_object(w, &o, &e) < 0)
		return luaL_error(L, "%s", e.msg);
	return 0;
}

/* ----------------------------------------------------------------- reading */

static uint64_t list_int(lua_State *L, size_t k)
{
	uint64_t v;

	lua_rawgeti(L, 2, (lua_Integer)k + 1);
	v = (uint64_t)luaL_checkinteger(L, -1);
	lua_pop(L, 1);
	return v;
}

static void push_bad(lua_State *L, const struct brim_walk *w)
{
	uint64_t number;
	size_t k;

	lua_newtable(L);
	for (k = 0; !brim_walk_bad(w, k, &number); k++) {
		lua_pushinteger(L, (lua_Integer)number);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
}

/*
 * walk:objects({off_bytes, number, present, used, ...}, count, table) ->
 * {objects, used, rows, bad = {number...}} | nil, error
 */
static int walk_objects(lua_State *L)
{
	struct brim_walk *w = brim__lua_walk(L, 1);
	uint32_t count = (uint32_t)luaL_checkinteger(L, 3);
	struct brim_table *t = brim__lua_table(L, 4);
	struct brim_object_counts counts = { 0 };
	struct brim_object_range *v;
	struct brim_err e = { 0 };
	size_t n, k;

	luaL_checktype(L, 2, LUA_TTABLE);
	n = lua_rawlen(L, 2) / RANGE_VALUES;
	luaL_argcheck(L, n <= RANGES_MAX, 2, "at most 4096 ranges");
	v = lua_newuserdatauv(L, (n + 1) * sizeof(*v), 0);
	for (k = 0; k < n; k++) {
		size_t at = RANGE_VALUES * k;

		v[k].off_bytes = list_int(L, at);
		v[k].number = list_int(L, at + 1);
		v[k].present = list_int(L, at + 2);
		v[k].used = list_int(L, at + 3);
		v[k].count = count;
	}
	if (brim_walk_objects(w, v, n, t, &counts, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_createtable(L, 0, 4);
	lua_pushinteger(L, (lua_Integer)counts.objects);
	lua_setfield(L, -2, "objects");
	lua_pushinteger(L, (lua_Integer)counts.used);
	lua_setfield(L, -2, "used");
	lua_pushinteger(L, (lua_Integer)counts.rows);
	lua_setfield(L, -2, "rows");
	push_bad(L, w);
	lua_setfield(L, -2, "bad");
	return 1;
}

/*
 * walk:rows(job, table, {start, count, owner, offset}, base, owner_from,
 * owner_to) -> table
 */
static int walk_rows(lua_State *L)
{
	struct brim_walk *w = brim__lua_walk(L, 1);
	const char *names[4];
	struct brim_err e = { 0 };
	int i;

	luaL_checktype(L, 4, LUA_TTABLE);
	for (i = 0; i < 4; i++) {
		lua_rawgeti(L, 4, i + 1);
		names[i] = luaL_checkstring(L, -1); /* held by the table */
		lua_pop(L, 1);
	}
	if (brim_walk_rows(w, (size_t)luaL_checkinteger(L, 2), names,
			   (uint64_t)luaL_checkinteger(L, 5),
			   (uint64_t)luaL_checkinteger(L, 6),
			   (uint64_t)luaL_checkinteger(L, 7),
			   brim__lua_table(L, 3), &e) < 0)
		return luaL_error(L, "%s", e.msg);
	lua_settop(L, 3);
	return 1;
}

const luaL_Reg brim__lua_object_methods[] = {
	{ "object", walk_object },
	{ "objects", walk_objects },
	{ "rows", walk_rows },
	{ NULL, NULL },
};
