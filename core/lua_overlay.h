/* SPDX-License-Identifier: MIT */
/*
 * lua_overlay.h: what lua_overlay.c adds to the module and to devices, for
 * lua_device.c, which registers it.
 */
#ifndef BRIM_LUA_OVERLAY_H
#define BRIM_LUA_OVERLAY_H

#include "lua_util.h"

extern const luaL_Reg brim__lua_overlay_functions[];
extern const luaL_Reg brim__lua_overlay_methods[];

#endif /* BRIM_LUA_OVERLAY_H */
