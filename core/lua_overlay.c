/* SPDX-License-Identifier: MIT */
/*
 * lua_overlay.c: binds overlays: laying one over a device, what is where,
 * committing. Registered by lua_device.c, called by lua/brim/device.lua.
 * Offsets and lengths are bytes.
 */
#include <string.h>

#include "lua_overlay.h"

static const char *check_path(lua_State *L, int arg)
{
	size_t len;
	const char *path = luaL_checklstring(L, arg, &len);

	luaL_argcheck(L, strlen(path) == len, arg, "a path with a zero byte");
	return path;
}

/* overlay_base_name(path) -> name | false | nil, error */
static int overlay_base_name(lua_State *L)
{
	const char *path = check_path(L, 1);
	struct brim_err e = { 0 };
	char name[256];
	int ret = brim_overlay_base_name(path, name, sizeof(name), &e);

	if (ret < 0)
		return brim__lua_fail(L, &e, path);
	if (ret)
		lua_pushstring(L, name);
	else
		lua_pushboolean(L, 0);
	return 1;
}

/* overlay_open(base, path, options?) -> device | nil, error */
static int overlay_open(lua_State *L)
{
	static const char *const NAMES[] = { "create", "readonly", "resume",
					     NULL };
	struct brim_device *base = brim__lua_check_device(L, 1);
	const char *path = check_path(L, 2);
	struct brim_err e = { 0 };
	struct brim__lua_device *h;
	uint32_t flags = 0;

	brim__lua_check_options(L, 3, NAMES);
	if (brim__lua_opt_bool_field(L, 3, "create", 0))
		flags |= BRIM_OVERLAY_CREATE;
	if (brim__lua_opt_bool_field(L, 3, "readonly", 0))
		flags |= BRIM_OVERLAY_READONLY;
	if (brim__lua_opt_bool_field(L, 3, "resume", 0))
		flags |= BRIM_OVERLAY_RESUME;
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->d = NULL;
	luaL_setmetatable(L, BRIM_DEVICE_MT);
	if (brim_device_open_overlay(&h->d, base, path, flags, &e) < 0)
		return brim__lua_fail(L, &e, path);
	brim__lua_handles++;
	return 1;
}

static void set_integer(lua_State *L, const char *name, uint64_t n)
{
	lua_pushinteger(L, (lua_Integer)n);
	lua_setfield(L, -2, name);
}

/* device:overlay_info() -> table | nil, error */
static int overlay_info(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	struct brim_overlay_info info;
	struct brim_err e = { 0 };

	if (brim_overlay_info(d, &info, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_createtable(L, 0, 5);
	set_integer(L, "block_bytes", info.block_bytes);
	set_integer(L, "data_bytes", info.data_bytes);
	set_integer(L, "zero_bytes", info.zero_bytes);
	set_integer(L, "extents", info.extents);
	set_integer(L, "file_bytes", info.file_bytes);
	return 1;
}

/* device:extent(off_bytes) -> len_bytes, is_zero, is_overlay | nil, error */
static int device_extent(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	struct brim_device_extent x;
	struct brim_err e = { 0 };

	if (brim_device_extent(d, off_bytes, &x, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_pushinteger(L, (lua_Integer)x.len_bytes);
	lua_pushboolean(L, x.is_zero);
	lua_pushboolean(L, x.is_overlay);
	return 3;
}

/* device:commit() -> true | nil, error */
static int overlay_commit(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	struct brim_err e = { 0 };

	if (brim_overlay_commit(d, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_pushboolean(L, 1);
	return 1;
}

/* device:save_image(path) -> true | nil, error */
static int overlay_save_image(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	const char *path = check_path(L, 2);
	struct brim_err e = { 0 };

	if (brim_overlay_save_image(d, path, &e) < 0)
		return brim__lua_fail(L, &e, path);
	lua_pushboolean(L, 1);
	return 1;
}

const luaL_Reg brim__lua_overlay_functions[] = {
	{ "overlay_base_name", overlay_base_name },
	{ "overlay_open", overlay_open },
	{ NULL, NULL },
};

const luaL_Reg brim__lua_overlay_methods[] = {
	{ "extent", device_extent },
	{ "overlay_info", overlay_info },
	{ "commit", overlay_commit },
	{ "save_image", overlay_save_image },
	{ NULL, NULL },
};
