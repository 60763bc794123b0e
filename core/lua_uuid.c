/* SPDX-License-Identifier: MIT */
/* lua_uuid.c: fresh UUIDs from libuuid. Called by lua/brim/uuid.lua. */
#include <uuid/uuid.h>

#include "lua_util.h"

/* uuid_generate() -> 16 random bytes (version 4) as a string */
static int uuid_bytes(lua_State *L)
{
	uuid_t u;

	uuid_generate(u);
	lua_pushlstring(L, (const char *)u, sizeof(u));
	return 1;
}

void brim__lua_open_uuid(lua_State *L)
{
	lua_pushcfunction(L, uuid_bytes);
	lua_setfield(L, -2, "uuid_generate");
}
