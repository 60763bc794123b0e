/* SPDX-License-Identifier: MIT */
/*
 * lua_uuid.c: fresh UUIDs from libuuid, or from the kernel's random numbers
 * where the build lacks it. Called by lua/brim/uuid.lua.
 */
#ifdef HAVE_UUID
#include <uuid/uuid.h>
#else
#include <sys/random.h>
#endif

#include "lua_util.h"

/* uuid_generate() -> 16 random bytes (version 4) as a string */
static int uuid_bytes(lua_State *L)
{
	unsigned char u[16];

#ifdef HAVE_UUID
	uuid_generate(u);
#else
	if (getrandom(u, sizeof(u), 0) != (ssize_t)sizeof(u))
		return luaL_error(L, "the kernel has no random numbers");
	/* Version 4, variant 1 (RFC 4122). */
	u[6] = (unsigned char)((u[6] & 0x0f) | 0x40);
	u[8] = (unsigned char)((u[8] & 0x3f) | 0x80);
#endif
	lua_pushlstring(L, (const char *)u, sizeof(u));
	return 1;
}

void brim__lua_open_uuid(lua_State *L)
{
	lua_pushcfunction(L, uuid_bytes);
	lua_setfield(L, -2, "uuid_generate");
}
