/* SPDX-License-Identifier: MIT */
/*
 * lua_util.h: what the binding files share: errors, sizes, options, handles.
 * Each core/lua_x.c binds one object and exports one brim__lua_open_x, which
 * adds its functions to the table on top of the stack (the module brim.core).
 */
#ifndef BRIM_LUA_UTIL_H
#define BRIM_LUA_UTIL_H

#include <lauxlib.h>
#include <lua.h>

#include "brim.h"

#define BRIM_DEVICE_MT "brim.device"
#define BRIM_LAYOUT_MT "brim.layout"
#define BRIM_STAMP_MT "brim.stamp"
#define BRIM_PLAN_MT "brim.plan_handle"
#define BRIM_RUN_MT "brim.run"
#define BRIM_SCAN_MT "brim.scan_handle"
#define BRIM_EXTENTS_MT "brim.extents"
#define BRIM_WALK_MT "brim.walk_handle"
#define BRIM_TABLE_MT "brim.rows"
#define BRIM_ERROR_MT "brim.error"

/*
 * Pushes nil and the error object ({code="ENOSPC", errno, op, path,
 * offset_bytes, message}, metatable brim.error); returns 2. path may be NULL.
 */
int brim__lua_fail(lua_State *L, const struct brim_err *e, const char *path);
/* Pushes the metatable of error objects; error.lua asks for it, too. */
void brim__lua_push_error_mt(lua_State *L);
/* True for ret >= 0; else nil and the error object. Returns what L gets. */
int brim__lua_done(lua_State *L, int ret, const struct brim_err *e);
/* The name of an errno ("ENOSPC"), or "E<number>". */
const char *brim__lua_errname(int err);
/*
 * Reads a size at arg: integers pass, floats only if integral and <= 2^53,
 * strings go to brim_bytes_parse. Negative or anything else raises.
 */
uint64_t brim__lua_check_bytes(lua_State *L, int arg);
/* The same without raising: 0, or -errno with the reason in *e. */
int brim__lua_to_bytes(lua_State *L, int idx, uint64_t *out_bytes,
		       struct brim_err *e);
/* As check_bytes for field `name` of the table at arg; `def` where absent. */
uint64_t brim__lua_opt_bytes_field(lua_State *L, int arg, const char *name,
				   uint64_t def);
int64_t brim__lua_opt_int_field(lua_State *L, int arg, const char *name,
				int64_t def);
int brim__lua_opt_bool_field(lua_State *L, int arg, const char *name, int def);
/* Borrowed: valid while the table holds it. */
const char *brim__lua_opt_string_field(lua_State *L, int arg, const char *name,
				       const char *def);
/*
 * Raises when the table at arg (or none) has a key that is not in the
 * NULL-terminated list of names; the message lists them.
 */
void brim__lua_check_options(lua_State *L, int arg, const char *const *names);
/* What BRIM_DEVICE_MT userdata hold. */
struct brim__lua_device {
	struct brim_device *d; /* NULL: closed */
};

/* The open device at arg; raises "device is closed", or the wrong type. */
struct brim_device *brim__lua_check_device(lua_State *L, int arg);
/* Pushes nil and the error object with the device's path; returns 2. */
int brim__lua_device_fail(lua_State *L, const struct brim_device *d,
			  const struct brim_err *e);
/* The number of open handles, for brim._debug.open_handles(). */
extern int brim__lua_handles;

void brim__lua_open_bytes(lua_State *L);
void brim__lua_open_layout(lua_State *L);
void brim__lua_open_stamp(lua_State *L);
void brim__lua_open_plan(lua_State *L);
void brim__lua_open_device(lua_State *L);
void brim__lua_open_run(lua_State *L);
void brim__lua_open_scan(lua_State *L);
void brim__lua_open_extents(lua_State *L);
void brim__lua_open_walk(lua_State *L);
void brim__lua_open_table(lua_State *L);
void brim__lua_open_fileset(lua_State *L);
void brim__lua_open_stream(lua_State *L);
void brim__lua_open_fill(lua_State *L);
void brim__lua_open_verify(lua_State *L);
void brim__lua_open_workload(lua_State *L);
void brim__lua_open_trace(lua_State *L);
void brim__lua_open_drive(lua_State *L);
void brim__lua_open_edit(lua_State *L);
void brim__lua_open_uuid(lua_State *L);

BRIM_API int luaopen_brim_core(lua_State *L);

#endif /* BRIM_LUA_UTIL_H */
