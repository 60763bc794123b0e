/* SPDX-License-Identifier: MIT */
/*
 * lua_walk.h: what lua_walk.c, lua_objects.c, lua_table.c and lua_extents.c
 * share: the handles behind their userdata. Other files need none of it.
 */
#ifndef BRIM_LUA_WALK_H
#define BRIM_LUA_WALK_H

#include "lua_util.h"

/* The walk at arg; raises when it is closed. */
struct brim_walk *brim__lua_walk(lua_State *L, int arg);
/* A layout's handle in the table at arg, which the walk at 1 then anchors. */
const struct brim_layout *brim__lua_walk_layout(lua_State *L, int arg,
						const char *name);
/* The list and the table at arg. */
struct brim_extents *brim__lua_extents(lua_State *L, int arg);
struct brim_table *brim__lua_table(lua_State *L, int arg);

/* Methods of walks that lua_objects.c has; they end with a NULL. */
extern const luaL_Reg brim__lua_object_methods[];

#endif /* BRIM_LUA_WALK_H */
