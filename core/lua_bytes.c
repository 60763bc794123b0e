/* SPDX-License-Identifier: MIT */
/*
 * lua_bytes.c: sizes and checked arithmetic for Lua, straight into the module
 * brim.core. Integers here are Lua's, signed 64 bits; sizes are bytes.
 */
#include "lua_util.h"

/* check_bytes(v) -> integer | nil, error: whatever v is */
static int bytes_check(lua_State *L)
{
	struct brim_err e = { .op = "size" };
	uint64_t n_bytes;

	luaL_checkany(L, 1);
	if (brim__lua_to_bytes(L, 1, &n_bytes, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushinteger(L, (lua_Integer)n_bytes);
	return 1;
}

/* format_bytes(n) -> text that check_bytes reads back as n */
static int bytes_format(lua_State *L)
{
	char buf[32];

	brim_bytes_format(buf, sizeof(buf), brim__lua_check_bytes(L, 1));
	lua_pushstring(L, buf);
	return 1;
}

/* Unlike luaL_checkinteger: no "10" and no 2^60, which hide a float. */
static lua_Integer check_integer(lua_State *L, int arg)
{
	luaL_argexpected(L, lua_isinteger(L, arg), arg, "integer");
	return lua_tointeger(L, arg);
}

/* add(a, b) -> integer, or nil on overflow */
static int bytes_add(lua_State *L)
{
	lua_Integer a = check_integer(L, 1), b = check_integer(L, 2), sum;

	if (__builtin_add_overflow(a, b, &sum))
		lua_pushnil(L);
	else
		lua_pushinteger(L, sum);
	return 1;
}

/* mul(a, b) -> integer, or nil on overflow */
static int bytes_mul(lua_State *L)
{
	lua_Integer a = check_integer(L, 1), b = check_integer(L, 2), product;

	if (__builtin_mul_overflow(a, b, &product))
		lua_pushnil(L);
	else
		lua_pushinteger(L, product);
	return 1;
}

/* crc(kind, register, bytes) -> register, neither inverted before nor after */
static int bytes_crc(lua_State *L)
{
	static const char *const KINDS[] = { "crc32c", "crc32", NULL };
	int kind = luaL_checkoption(L, 1, NULL, KINDS);
	lua_Integer reg = check_integer(L, 2);
	size_t len_bytes;
	const char *bytes = luaL_checklstring(L, 3, &len_bytes);

	luaL_argcheck(L, reg >= 0 && reg <= UINT32_MAX, 2, "not 32 bits");
	lua_pushinteger(L, brim_crc(kind ? BRIM_CRC32 : BRIM_CRC32C,
				    (uint32_t)reg, bytes, len_bytes));
	return 1;
}

static const luaL_Reg FUNCTIONS[] = {
	{ "crc", bytes_crc },
	{ "check_bytes", bytes_check },
	{ "format_bytes", bytes_format },
	{ "add", bytes_add },
	{ "mul", bytes_mul },
	{ NULL, NULL },
};

void brim__lua_open_bytes(lua_State *L)
{
	static const char *const UNITS[] = { "KiB", "MiB", "GiB",
					     "TiB", "PiB", "EiB" };
	int k;

	luaL_setfuncs(L, FUNCTIONS, 0);
	lua_pushinteger(L, BRIM_MAX_BYTES);
	lua_setfield(L, -2, "MAX_BYTES");
	for (k = 0; k < 6; k++) {
		lua_pushinteger(L, (lua_Integer)1 << (10 * (k + 1)));
		lua_setfield(L, -2, UNITS[k]);
	}
}
