/* SPDX-License-Identifier: MIT */
/*
 * lua_layout.c: binds struct brim_layout: declare a structure from a field
 * table, decode raw bytes into a Lua table. Called by lua/brim/layout.lua,
 * which checks types and names units; wrong use raises. Sizes are bytes.
 */
#include <string.h>

#include "lua_util.h"

struct llayout {
	struct brim_layout *l;
};

static struct brim_layout *check_layout(lua_State *L, int arg)
{
	struct llayout *h = luaL_checkudata(L, arg, BRIM_LAYOUT_MT);

	luaL_argcheck(L, h->l, arg, "the layout is closed");
	return h->l;
}

/* A field of the table that must fit 32 bits; raises what does not. */
static uint32_t opt_u32(lua_State *L, int t, const char *name, int64_t def)
{
	int64_t v = brim__lua_opt_int_field(L, t, name, def);

	if (v < 0 || v > UINT32_MAX)
		luaL_error(L, "%s %I does not fit 32 bits", name,
			   (LUAI_UACINT)v);
	return (uint32_t)v;
}

static enum brim_endian to_endian(lua_State *L, const char *s)
{
	if (s && !strcmp(s, "big"))
		return BRIM_BIG;
	if (s && !strcmp(s, "little"))
		return BRIM_LITTLE;
	if (s)
		luaL_error(L, "endian is 'big' or 'little', not '%s'", s);
	return 0;
}

static void read_checksum(lua_State *L, int arg, struct brim_layout_options *o)
{
	const char *kind;

	if (lua_getfield(L, arg, "checksum") == LUA_TTABLE) {
		int t = lua_gettop(L);

		kind = brim__lua_opt_string_field(L, t, "kind", "crc32c");
		o->checksum_field =
			brim__lua_opt_string_field(L, t, "field", NULL);
		o->checksum.kind = !strcmp(kind, "crc32c")  ? BRIM_CRC32C
				   : !strcmp(kind, "crc32") ? BRIM_CRC32
							    : 0;
		o->checksum.seed = opt_u32(L, t, "seed", 0xffffffff);
		o->checksum.xor_out = opt_u32(L, t, "xor_out", 0xffffffff);
		o->checksum.endian =
			to_endian(L, brim__lua_opt_string_field(L, t, "endian",
								"little"));
	}
	/* Stays on the stack: it holds the strings until the call is done. */
}

static void read_field(lua_State *L, int t, struct brim_field *f)
{
	struct llayout *record;

	f->name = brim__lua_opt_string_field(L, t, "name", NULL);
	f->off_bytes = opt_u32(L, t, "off_bytes", 0);
	f->width_bytes = opt_u32(L, t, "width_bytes", 0);
	f->endian =
		to_endian(L, brim__lua_opt_string_field(L, t, "endian", NULL));
	f->count = opt_u32(L, t, "count", 1);
	f->value = brim__lua_opt_int_field(L, t, "value", 0);
	lua_getfield(L, t, "record");
	record = luaL_testudata(L, -1, BRIM_LAYOUT_MT);
	f->record = record ? record->l : NULL;
	lua_pop(L, 1);
}

/*
 * layout_new{name=, size_bytes=, extensible=, checksum={field=, kind=, seed=,
 * xor_out=, endian=}, fields={{name=, off_bytes=, width_bytes=, endian=,
 * count=, record=, value=}, ...}}: raises what brim_layout_create refuses.
 */
static int layout_new(lua_State *L)
{
	struct brim_layout_options o = { .struct_bytes = sizeof(o) };
	struct brim_err e = { 0 };
	struct brim_field *fields;
	struct llayout *h;
	size_t n, i;
	int t;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	h = lua_newuserdatauv(L, sizeof(*h), 1);
	h->l = NULL;
	luaL_setmetatable(L, BRIM_LAYOUT_MT);
	o.name = brim__lua_opt_string_field(L, 1, "name", NULL);
	o.size_bytes = opt_u32(L, 1, "size_bytes", 0);
	o.extensible = brim__lua_opt_bool_field(L, 1, "extensible", 0);
	read_checksum(L, 1, &o);
	luaL_argcheck(L, lua_getfield(L, 1, "fields") == LUA_TTABLE, 1,
		      "fields is a list");
	t = lua_gettop(L);
	n = lua_rawlen(L, t);
	fields = lua_newuserdatauv(L, (n + 1) * sizeof(*fields), 0);
	memset(fields, 0, (n + 1) * sizeof(*fields));
	for (i = 0; i < n; i++) {
		lua_rawgeti(L, t, (lua_Integer)i + 1);
		luaL_checktype(L, -1, LUA_TTABLE);
		read_field(L, lua_gettop(L), &fields[i]);
		lua_pop(L, 1);
	}
	if (brim_layout_create(&h->l, &o, fields, n, &e) < 0)
		return luaL_error(L, "%s", e.msg);
	/* The field list holds the nested records, which must outlive us. */
	lua_pushvalue(L, t);
	lua_setiuservalue(L, 2, 1);
	lua_pushvalue(L, 2);
	return 1;
}

static int layout_elements(lua_State *L)
{
	struct brim_layout *l = check_layout(L, 1);
	lua_Integer i = luaL_checkinteger(L, 2);
	lua_Integer size = luaL_checkinteger(L, 3);

	luaL_argcheck(L, i >= 1 && (size_t)i <= brim_layout_field_count(l), 2,
		      "no such field");
	lua_pushinteger(L,
			brim_layout_elements(l, (size_t)i - 1, (uint32_t)size));
	return 1;
}

static void push_decoded(lua_State *L, const struct brim_layout *l,
			 const uint8_t *raw, uint32_t size_bytes);

static void push_element(lua_State *L, const struct brim_field *f,
			 const uint8_t *raw, uint32_t k)
{
	const uint8_t *at = raw + f->off_bytes + (size_t)k * f->width_bytes;

	if (f->record)
		push_decoded(L, f->record, at, f->width_bytes);
	else if (f->endian)
		lua_pushinteger(L, brim_field_get(f, raw, k));
	else
		lua_pushlstring(L, (const char *)at, f->width_bytes);
}

static void push_decoded(lua_State *L, const struct brim_layout *l,
			 const uint8_t *raw, uint32_t size_bytes)
{
	size_t i;
	uint32_t k;

	luaL_checkstack(L, 8, "records are nested too deeply");
	lua_createtable(L, 0, (int)brim_layout_field_count(l));
	for (i = 0; i < brim_layout_field_count(l); i++) {
		const struct brim_field *f = brim_layout_field(l, i);
		uint32_t n = brim_layout_elements(l, i, size_bytes);

		if (f->count == 1) {
			push_element(L, f, raw, 0);
		} else {
			lua_createtable(L, (int)n, 0);
			for (k = 0; k < n; k++) {
				push_element(L, f, raw, k);
				lua_rawseti(L, -2, (lua_Integer)k + 1);
			}
		}
		lua_setfield(L, -2, f->name);
	}
}

/* decode(string, off0, size) -> table, intact: size bytes from off0. */
static int layout_decode(lua_State *L)
{
	struct brim_layout *l = check_layout(L, 1);
	size_t len;
	const char *s = luaL_checklstring(L, 2, &len);
	lua_Integer off = luaL_optinteger(L, 3, 0);
	lua_Integer size = luaL_optinteger(L, 4, brim_layout_size_bytes(l));

	luaL_argcheck(L, off >= 0 && (size_t)off <= len, 3,
		      "the offset lies outside of the string");
	luaL_argcheck(L,
		      size >= brim_layout_size_bytes(l) &&
			      (size_t)size <= len - (size_t)off,
		      4, "the string is shorter than the structure");
	push_decoded(L, l, (const uint8_t *)s + off, (uint32_t)size);
	lua_pushboolean(L, brim_layout_intact(l, s + off, (uint32_t)size));
	return 2;
}

static int layout_gc(lua_State *L)
{
	struct llayout *h = luaL_checkudata(L, 1, BRIM_LAYOUT_MT);
	struct brim_layout *l = h->l;

	h->l = NULL;
	brim_layout_free(l);
	return 0;
}

static int layout_tostring(lua_State *L)
{
	lua_pushfstring(L, "brim.layout %s",
			brim_layout_name(check_layout(L, 1)));
	return 1;
}

static const luaL_Reg layout_methods[] = {
	{ "elements", layout_elements },
	{ "decode", layout_decode },
	{ NULL, NULL },
};

static const luaL_Reg layout_meta[] = {
	{ "__gc", layout_gc },
	{ "__tostring", layout_tostring },
	{ NULL, NULL },
};

void brim__lua_open_layout(lua_State *L)
{
	luaL_newmetatable(L, BRIM_LAYOUT_MT);
	luaL_setfuncs(L, layout_meta, 0);
	luaL_newlib(L, layout_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, layout_new);
	lua_setfield(L, -2, "layout_new");
}
