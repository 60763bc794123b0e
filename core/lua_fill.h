/* SPDX-License-Identifier: MIT */
/*
 * lua_fill.h: what lua_fileset.c, lua_stream.c, lua_fill.c and lua_verify.c
 * share: handles, kinds of operations by name, files and phases as tables.
 */
#ifndef BRIM_LUA_FILL_H
#define BRIM_LUA_FILL_H

#include "lua_util.h"

#define BRIM_FILESET_MT "brim.fileset"
#define BRIM_STREAM_MT "brim.stream"
#define BRIM_FILL_MT "brim.fill_handle"
#define BRIM_VERIFY_MT "brim.verify_handle"

/* "mkdir", "create", ... by enum brim_op_kind; NULL at the end. */
extern const char *const brim__lua_op_names[BRIM_OP_KINDS + 1];

/* The fileset behind the handle at arg; raises when it is closed. */
struct brim_fileset *brim__lua_check_fileset(lua_State *L, int arg);
/* The distribution at arg; leaves what it borrows on the stack. */
void brim__lua_check_dist(lua_State *L, int arg, struct brim_dist *d);
/* Sets an integer field of the table on top. */
void brim__lua_set_int(lua_State *L, const char *name, uint64_t value);
/* Sets integers by the names of kinds in table `name` of the one on top. */
void brim__lua_set_kinds(lua_State *L, const char *name,
			 const uint64_t values[BRIM_OP_KINDS]);
/* An integer of 0 .. max at arg. */
uint64_t brim__lua_check_count(lua_State *L, int arg, uint64_t max);
/* A field within 0 .. max of the table at arg; def where it is absent. */
uint64_t brim__lua_opt_count(lua_State *L, int arg, const char *name,
			     uint64_t def, uint64_t max);
void brim__lua_push_file(lua_State *L, const struct brim_file *f);
/* fileset:stream(number) -> stream | nil, error */
int brim__lua_fileset_stream(lua_State *L);
/* The budget of a step in seconds at arg, as nanoseconds; 0: to the end. */
uint64_t brim__lua_check_budget_ns(lua_State *L, int arg);

/* User values: 1 the fileset, 2 the table that step fills. */
struct brim__lua_fill {
	struct brim_fill *f; /* NULL: closed */
	int readers;         /* verifications that are open */
};

/* The fill at arg; raises when it is closed. */
struct brim__lua_fill *brim__lua_check_fill(lua_State *L, int arg);
/* The phase that the table at arg describes. */
void brim__lua_check_phase(lua_State *L, int arg, struct brim_phase *p);
/* How a file stands: "missing", "before" or a size, at arg. */
uint64_t brim__lua_check_stands(lua_State *L, int arg);
void brim__lua_push_stands(lua_State *L, uint64_t stands);

#endif /* BRIM_LUA_FILL_H */
