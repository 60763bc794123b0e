/* SPDX-License-Identifier: MIT */
/*
 * lua_device.c: devices for Lua: opening, facts, synchronous I/O. What the
 * world refuses comes back as nil, error; wrong arguments raise. Offsets and
 * lengths are bytes.
 */
#include <errno.h>
#include <string.h>

#include "lua_overlay.h"
#include "lua_util.h"

/* A handle in the closed state, so that it is collectable from the start. */
static struct brim__lua_device *push_handle(lua_State *L)
{
	struct brim__lua_device *h = lua_newuserdatauv(L, sizeof(*h), 0);

	h->d = NULL;
	luaL_setmetatable(L, BRIM_DEVICE_MT);
	return h;
}

static uint32_t check_flags(lua_State *L, int arg)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} FLAGS[] = {
		{ "write", BRIM_DEVICE_WRITE },
		{ "create", BRIM_DEVICE_CREATE },
		{ "force", BRIM_DEVICE_FORCE },
		{ "direct", BRIM_DEVICE_DIRECT },
		{ "buffered", BRIM_DEVICE_BUFFERED },
		{ "raw", BRIM_DEVICE_RAW },
	};
	uint32_t flags = 0;
	size_t k;

	for (k = 0; k < sizeof(FLAGS) / sizeof(*FLAGS); k++)
		if (brim__lua_opt_bool_field(L, arg, FLAGS[k].name, 0))
			flags |= FLAGS[k].flag;
	return flags;
}

static void check_open_options(lua_State *L, int arg,
			       struct brim_device_options *o)
{
	static const char *const NAMES[] = {
		"write",
		"create",
		"force",
		"direct",
		"buffered",
		"raw",
		"min_size_bytes",
		"max_size_bytes",
		"direct_align_bytes",
		NULL,
	};

	int64_t align_bytes;

	brim__lua_check_options(L, arg, NAMES);
	o->flags = check_flags(L, arg);
	align_bytes = brim__lua_opt_int_field(L, arg, "direct_align_bytes", 0);
	luaL_argcheck(L, align_bytes >= 0 && align_bytes <= 1 << 30, arg,
		      "'direct_align_bytes' is 0 to 1 GiB");
	o->direct_align_bytes = (uint32_t)align_bytes;
	o->min_size_bytes =
		brim__lua_opt_bytes_field(L, arg, "min_size_bytes", 0);
	o->max_size_bytes =
		brim__lua_opt_bytes_field(L, arg, "max_size_bytes", 0);
	luaL_argcheck(L,
		      !(o->flags & BRIM_DEVICE_DIRECT) ||
			      !(o->flags & BRIM_DEVICE_BUFFERED),
		      arg,
		      "options 'direct' and 'buffered' exclude each other");
	luaL_argcheck(L,
		      !(o->flags & BRIM_DEVICE_CREATE) ||
			      o->flags & BRIM_DEVICE_WRITE,
		      arg, "option 'create' needs 'write'");
	luaL_argcheck(
		L, !o->max_size_bytes || o->min_size_bytes <= o->max_size_bytes,
		arg, "'min_size_bytes' is more than 'max_size_bytes'");
}

/* device_open(path, options?) -> device | nil, error */
static int device_open(lua_State *L)
{
	struct brim_device_options o = { .struct_bytes = sizeof(o) };
	struct brim_err e = { 0 };
	struct brim__lua_device *h;
	const char *path;
	size_t len;

	path = luaL_checklstring(L, 1, &len);
	luaL_argcheck(L, strlen(path) == len, 1, "a path with a zero byte");
	check_open_options(L, 2, &o);
	h = push_handle(L);
	if (brim_device_open(&h->d, path, &o, &e) < 0)
		return brim__lua_fail(L, &e, path);
	brim__lua_handles++;
	return 1;
}

/* device_null(size_bytes) -> device | nil, error */
static int device_null(lua_State *L)
{
	uint64_t size_bytes = brim__lua_check_bytes(L, 1);
	struct brim_err e = { 0 };
	struct brim__lua_device *h = push_handle(L);

	if (brim_device_open_null(&h->d, size_bytes, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	brim__lua_handles++;
	return 1;
}

/* close, __close and __gc: any number of times */
static int device_close(lua_State *L)
{
	struct brim__lua_device *h = luaL_checkudata(L, 1, BRIM_DEVICE_MT);
	struct brim_device *d = h->d;

	h->d = NULL;
	if (d) {
		brim__lua_handles--;
		brim_device_close(d);
	}
	lua_pushboolean(L, 1);
	return 1;
}

static int device_tostring(lua_State *L)
{
	struct brim__lua_device *h = luaL_checkudata(L, 1, BRIM_DEVICE_MT);
	struct brim_device_info info;
	char size[32];

	if (!h->d) {
		lua_pushliteral(L, "brim.device (closed)");
		return 1;
	}
	brim_device_info(h->d, &info);
	brim_bytes_format(size, sizeof(size), info.size_bytes);
	lua_pushfstring(L, "brim.device (%s, %s)", info.path, size);
	return 1;
}

static void set_integer(lua_State *L, const char *name, uint64_t n)
{
	lua_pushinteger(L, (lua_Integer)n);
	lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, int is)
{
	lua_pushboolean(L, is);
	lua_setfield(L, -2, name);
}

/* device:info() -> table; is_rotational is absent where it is not known */
static int device_info(lua_State *L)
{
	static const char *const KINDS[] = {
		[BRIM_KIND_FILE] = "file",       [BRIM_KIND_BLOCK] = "block",
		[BRIM_KIND_IMAGE] = "image",     [BRIM_KIND_NULL] = "null",
		[BRIM_KIND_OVERLAY] = "overlay",
	};
	struct brim_device_info info;

	brim_device_info(brim__lua_check_device(L, 1), &info);
	lua_createtable(L, 0, 11);
	lua_pushstring(L, KINDS[info.kind]);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, info.path);
	lua_setfield(L, -2, "path");
	set_integer(L, "size_bytes", info.size_bytes);
	set_integer(L, "logical_sector_bytes", info.logical_sector_bytes);
	set_integer(L, "physical_sector_bytes", info.physical_sector_bytes);
	set_integer(L, "min_io_bytes", info.min_io_bytes);
	set_integer(L, "opt_io_bytes", info.opt_io_bytes);
	set_integer(L, "misaligned_bytes", info.misaligned_bytes);
	set_integer(L, "align_bytes", info.align_bytes);
	if (info.is_rotational >= 0)
		set_boolean(L, "is_rotational", info.is_rotational);
	set_boolean(L, "is_direct", info.is_direct);
	set_boolean(L, "is_writable", info.is_writable);
	return 1;
}

/* device:read(off_bytes, len_bytes) -> string | nil, error */
static int device_read(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	uint64_t len_bytes = brim__lua_check_bytes(L, 3);
	struct brim_device_info info;
	struct brim_err e = { 0 };
	luaL_Buffer b;
	char *to;

	brim_device_info(d, &info);
	/* Past the end fails before anything is allocated for it. */
	if (len_bytes > info.size_bytes) {
		brim_device_read(d, off_bytes, len_bytes, NULL, &e);
		return brim__lua_device_fail(L, d, &e);
	}
	to = luaL_buffinitsize(L, &b, len_bytes);
	if (brim_device_read(d, off_bytes, len_bytes, to, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	luaL_pushresultsize(&b, len_bytes);
	return 1;
}

/* device:write(off_bytes, text) -> bytes written | nil, error */
static int device_write(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	struct brim_err e = { 0 };
	const char *text;
	size_t len;

	luaL_checktype(L, 3, LUA_TSTRING);
	text = lua_tolstring(L, 3, &len);
	if (brim_device_write(d, off_bytes, len, text, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_pushinteger(L, (lua_Integer)len);
	return 1;
}

static int change_range(lua_State *L, int (*op)(struct brim_device *, uint64_t,
						uint64_t, struct brim_err *))
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	uint64_t len_bytes = brim__lua_check_bytes(L, 3);
	struct brim_err e = { 0 };

	if (op(d, off_bytes, len_bytes, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_pushboolean(L, 1);
	return 1;
}

/* device:zero(off_bytes, len_bytes) -> true | nil, error */
static int device_zero(lua_State *L)
{
	return change_range(L, brim_device_zero);
}

/* device:discard(off_bytes, len_bytes) -> true | nil, error */
static int device_discard(lua_State *L)
{
	return change_range(L, brim_device_discard);
}

/* device:flush() -> true | nil, error */
static int device_flush(lua_State *L)
{
	struct brim_device *d = brim__lua_check_device(L, 1);
	struct brim_err e = { 0 };

	if (brim_device_flush(d, &e) < 0)
		return brim__lua_device_fail(L, d, &e);
	lua_pushboolean(L, 1);
	return 1;
}

static const luaL_Reg FUNCTIONS[] = {
	{ "device_open", device_open },
	{ "device_null", device_null },
	{ NULL, NULL },
};

static const luaL_Reg METHODS[] = {
	{ "info", device_info },       { "read", device_read },
	{ "write", device_write },     { "zero", device_zero },
	{ "discard", device_discard }, { "flush", device_flush },
	{ "close", device_close },     { NULL, NULL },
};

static const luaL_Reg META[] = {
	{ "__close", device_close },
	{ "__gc", device_close },
	{ "__tostring", device_tostring },
	{ NULL, NULL },
};

void brim__lua_open_device(lua_State *L)
{
	luaL_newmetatable(L, BRIM_DEVICE_MT);
	luaL_setfuncs(L, META, 0);
	luaL_newlib(L, METHODS);
	luaL_setfuncs(L, brim__lua_overlay_methods, 0);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, FUNCTIONS, 0);
	luaL_setfuncs(L, brim__lua_overlay_functions, 0);
}
