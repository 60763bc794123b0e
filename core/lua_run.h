/* SPDX-License-Identifier: MIT */
/*
 * lua_run.h: what lua_run.c, lua_scan.c and lua_scan_run.c share: the handle of
 * a run and its options. Other files of the binding need none of it.
 */
#ifndef BRIM_LUA_RUN_H
#define BRIM_LUA_RUN_H

#include "lua_util.h"

/*
 * What BRIM_RUN_MT userdata hold. User values: 1 the plan or scan, 2 the
 * device, 3 the table that step fills.
 */
struct brim__lua_run {
	struct brim_run *r; /* NULL: closed */
	const char *path;   /* of the device, for errors */
};

/* The names of a run's options, for lists of allowed ones. */
#define BRIM__LUA_RUN_OPTIONS                                                  \
	"engine", "queue_depth", "max_io_bytes", "threads", "max_mismatches"

/* Reads them from the table at arg, if there is one; raises what is wrong. */
void brim__lua_run_options(lua_State *L, int arg, struct brim_run_options *o);
/*
 * Pushes a handle in the closed state that anchors the values at `source` (a
 * plan or scan) and `device`; for the caller to fill r and count as open.
 */
struct brim__lua_run *brim__lua_run_push(lua_State *L, int source, int device);

/* The open run at argument 1; raises when it is closed. */
struct brim__lua_run *brim__lua_check_run(lua_State *L);
/* Methods that only runs of scans have a use for. */
extern const luaL_Reg brim__lua_scan_run_methods[];
/* And those of workloads and of replays. */
extern const luaL_Reg brim__lua_workload_run_methods[];
extern const luaL_Reg brim__lua_replay_run_methods[];

#endif /* BRIM_LUA_RUN_H */
