/* SPDX-License-Identifier: MIT */
/*
 * lua_util.c: what every binding file needs: the error object (metatable
 * brim.error), sizes and options from Lua, the count of open handles. Called
 * by core/lua_*.c and main.c. Sizes are bytes.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "lua_util.h"

int brim__lua_handles;

/* A double tells integers apart up to 2^53 (53 bits of mantissa). */
#define FLOAT_EXACT_MAX 9007199254740992.0

/* ------------------------------------------------------------------ errors */

const char *brim__lua_errname(int err)
{
	static _Thread_local char unknown[16];
	const char *name = brim__errno_name(err);

	if (name)
		return name;
	snprintf(unknown, sizeof(unknown), "E%d", err);
	return unknown;
}

/* Metamethods take the fields as they are: a script may have set them. */
static int error_tostring(lua_State *L)
{
	luaL_checktype(L, 1, LUA_TTABLE);
	if (lua_getfield(L, 1, "message") != LUA_TSTRING &&
	    lua_getfield(L, 1, "code") != LUA_TSTRING)
		lua_pushliteral(L, "unknown error");
	return 1;
}

static int error_concat(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	luaL_tolstring(L, 2, NULL);
	lua_concat(L, 2);
	return 1;
}

void brim__lua_push_error_mt(lua_State *L)
{
	static const luaL_Reg META[] = {
		{ "__tostring", error_tostring },
		{ "__concat", error_concat },
		{ NULL, NULL },
	};

	if (luaL_newmetatable(L, BRIM_ERROR_MT))
		luaL_setfuncs(L, META, 0);
}

int brim__lua_fail(lua_State *L, const struct brim_err *e, const char *path)
{
	lua_pushnil(L);
	lua_createtable(L, 0, 6);
	lua_pushstring(L, brim__lua_errname(-e->code));
	lua_setfield(L, -2, "code");
	lua_pushinteger(L, -(lua_Integer)e->code);
	lua_setfield(L, -2, "errno");
	lua_pushstring(L, e->op);
	lua_setfield(L, -2, "op");
	lua_pushstring(L, path);
	lua_setfield(L, -2, "path");
	lua_pushinteger(L, (lua_Integer)e->offset_bytes);
	lua_setfield(L, -2, "offset_bytes");
	lua_pushstring(L, e->msg);
	lua_setfield(L, -2, "message");
	brim__lua_push_error_mt(L);
	lua_setmetatable(L, -2);
	return 2;
}

int brim__lua_done(lua_State *L, int ret, const struct brim_err *e)
{
	if (ret < 0)
		return brim__lua_fail(L, e, NULL);
	lua_pushboolean(L, 1);
	return 1;
}

/* ----------------------------------------------------------------- devices */

struct brim_device *brim__lua_check_device(lua_State *L, int arg)
{
	struct brim__lua_device *h = luaL_checkudata(L, arg, BRIM_DEVICE_MT);

	if (!h->d)
		luaL_error(L, "device is closed");
	return h->d;
}

int brim__lua_device_fail(lua_State *L, const struct brim_device *d,
			  const struct brim_err *e)
{
	struct brim_device_info info;

	brim_device_info(d, &info);
	return brim__lua_fail(L, e, info.path);
}

/* ------------------------------------------------------------------- sizes */

static int __attribute__((format(printf, 2, 3)))
not_bytes(struct brim_err *e, const char *fmt, ...)
{
	va_list args;

	e->code = -EINVAL;
	e->op = "size";
	va_start(args, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	return -EINVAL;
}

static int number_bytes(lua_State *L, int idx, uint64_t *out_bytes,
			struct brim_err *e)
{
	lua_Number f = lua_tonumber(L, idx);

	if (f < 0)
		return not_bytes(e,
				 "%.14g: a size cannot be negative; 2^63 and "
				 "more wrap around in Lua",
				 f);
	if (lua_isinteger(L, idx)) {
		*out_bytes = (uint64_t)lua_tointeger(L, idx);
		return 0;
	}
	if (!(f <= FLOAT_EXACT_MAX))
		return not_bytes(e,
				 "%.14g is an inexact float; use an integer "
				 "like 1 << 60, or '1e'",
				 f);
	*out_bytes = (uint64_t)f;
	if ((lua_Number)*out_bytes < f)
		return not_bytes(e,
				 "%.14g is a fraction of a byte; use // to "
				 "divide",
				 f);
	return 0;
}

int brim__lua_to_bytes(lua_State *L, int idx, uint64_t *out_bytes,
		       struct brim_err *e)
{
	const char *text;
	size_t len;

	switch (lua_type(L, idx)) {
	case LUA_TNUMBER:
		return number_bytes(L, idx, out_bytes, e);
	case LUA_TSTRING:
		text = lua_tolstring(L, idx, &len);
		if (strlen(text) != len)
			return not_bytes(e, "a size with a zero byte in it");
		return brim_bytes_parse(text, out_bytes, e);
	default:
		return not_bytes(e, "expected a size like '8191p', got a %s",
				 luaL_typename(L, idx));
	}
}

uint64_t brim__lua_check_bytes(lua_State *L, int arg)
{
	struct brim_err e = { 0 };
	uint64_t n_bytes = 0;

	if (brim__lua_to_bytes(L, arg, &n_bytes, &e) < 0)
		luaL_argerror(L, arg, e.msg);
	return n_bytes;
}

/* ----------------------------------------------------------------- options */

/*
 * Pushes field `name` of the table at arg; 0 and nothing pushed where table or
 * field is absent.
 */
static int push_field(lua_State *L, int arg, const char *name)
{
	if (lua_isnoneornil(L, arg))
		return 0;
	luaL_checktype(L, arg, LUA_TTABLE);
	if (lua_getfield(L, arg, name) != LUA_TNIL)
		return 1;
	lua_pop(L, 1);
	return 0;
}

static void wrong_field(lua_State *L, int arg, const char *name,
			const char *why)
{
	luaL_argerror(L, arg, lua_pushfstring(L, "option '%s': %s", name, why));
}

static void expect_field(lua_State *L, int arg, const char *name,
			 const char *type)
{
	wrong_field(L, arg, name,
		    lua_pushfstring(L, "%s expected, got %s", type,
				    luaL_typename(L, -1)));
}

uint64_t brim__lua_opt_bytes_field(lua_State *L, int arg, const char *name,
				   uint64_t def)
{
	struct brim_err e = { 0 };
	uint64_t n_bytes = 0;

	if (!push_field(L, arg, name))
		return def;
	if (brim__lua_to_bytes(L, -1, &n_bytes, &e) < 0)
		wrong_field(L, arg, name, e.msg);
	lua_pop(L, 1);
	return n_bytes;
}

int64_t brim__lua_opt_int_field(lua_State *L, int arg, const char *name,
				int64_t def)
{
	lua_Integer n;
	int is_integer;

	if (!push_field(L, arg, name))
		return def;
	/* "10" is no integer here: sizes are what comes as text. */
	n = lua_tointegerx(L, -1, &is_integer);
	if (lua_type(L, -1) != LUA_TNUMBER || !is_integer)
		expect_field(L, arg, name, "integer");
	lua_pop(L, 1);
	return n;
}

int brim__lua_opt_bool_field(lua_State *L, int arg, const char *name, int def)
{
	int is_true;

	if (!push_field(L, arg, name))
		return def;
	if (!lua_isboolean(L, -1))
		expect_field(L, arg, name, "boolean");
	is_true = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return is_true;
}

const char *brim__lua_opt_string_field(lua_State *L, int arg, const char *name,
				       const char *def)
{
	const char *text;
	size_t len;

	if (!push_field(L, arg, name))
		return def;
	if (lua_type(L, -1) != LUA_TSTRING)
		expect_field(L, arg, name, "string");
	text = lua_tolstring(L, -1, &len);
	if (strlen(text) != len)
		wrong_field(L, arg, name, "a zero byte in it");
	lua_pop(L, 1);
	return text;
}

/* Raises: option `key` is none of `names`, which it lists. */
static void unknown_option(lua_State *L, int arg, const char *const *names)
{
	luaL_Buffer b;

	luaL_tolstring(L, -2, NULL); /* the key, whatever it is */
	luaL_buffinit(L, &b);
	for (; *names; names++) {
		luaL_addstring(&b, *names);
		if (names[1])
			luaL_addstring(&b, ", ");
	}
	luaL_pushresult(&b);
	luaL_argerror(L, arg,
		      lua_pushfstring(L,
				      "unknown option '%s'; there "
				      "are: %s",
				      lua_tostring(L, -2),
				      lua_tostring(L, -1)));
}

void brim__lua_check_options(lua_State *L, int arg, const char *const *names)
{
	if (lua_isnoneornil(L, arg))
		return;
	luaL_checktype(L, arg, LUA_TTABLE);
	for (lua_pushnil(L); lua_next(L, arg); lua_pop(L, 1)) {
		const char *const *n = names;
		int is_string = lua_type(L, -2) == LUA_TSTRING;

		while (*n && !(is_string && !strcmp(lua_tostring(L, -2), *n)))
			n++;
		if (!*n)
			unknown_option(L, arg, names);
	}
}
