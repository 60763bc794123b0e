/* SPDX-License-Identifier: MIT */
/*
 * lua_stream.c: streams of operations for Lua, and phases, which fills share.
 * Called by lua/brim/fill.lua. What the world refuses comes back as nil, error;
 * wrong arguments raise. Sizes are bytes; ids and operations count from 0.
 */
#include <string.h>

#include "lua_fill.h"

/* Holds its fileset itself. */
struct lstream {
	struct brim_stream *s; /* NULL: closed */
	struct brim_op last;
	int has_last;
};

const char *const brim__lua_op_names[BRIM_OP_KINDS + 1] = {
	"mkdir",    "create",  "overwrite", "append",
	"truncate", "replace", "delete",    NULL,
};

/* fileset:stream(number) -> stream | nil, error */
int brim__lua_fileset_stream(lua_State *L)
{
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	uint32_t number = (uint32_t)brim__lua_check_count(
		L, 2, brim_fileset_streams(fs) - 1u);
	struct lstream *h = lua_newuserdatauv(L, sizeof(*h), 0);
	struct brim_err e = { 0 };

	memset(h, 0, sizeof(*h));
	luaL_setmetatable(L, BRIM_STREAM_MT);
	if (brim_stream_create(&h->s, fs, number, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	brim__lua_handles++;
	return 1;
}

static struct lstream *check_stream(lua_State *L)
{
	struct lstream *h = luaL_checkudata(L, 1, BRIM_STREAM_MT);

	if (!h->s)
		luaL_error(L, "stream is closed");
	return h;
}

static int stream_close(lua_State *L)
{
	struct lstream *h = luaL_checkudata(L, 1, BRIM_STREAM_MT);
	struct brim_stream *s = h->s;

	h->s = NULL;
	if (s) {
		brim__lua_handles--;
		brim_stream_free(s);
	}
	return 0;
}

static int stream_tostring(lua_State *L)
{
	struct lstream *h = luaL_checkudata(L, 1, BRIM_STREAM_MT);

	lua_pushfstring(L, "brim.stream (%s)", h->s ? "open" : "closed");
	return 1;
}

void brim__lua_check_phase(lua_State *L, int arg, struct brim_phase *p)
{
	static const char *const names[] = {
		"create", "overwrite",  "append",   "truncate",       "replace",
		"delete", "live_bytes", "band_ppm", "max_file_bytes", NULL,
	};
	int k;

	luaL_checktype(L, arg, LUA_TTABLE);
	brim__lua_check_options(L, arg, names);
	memset(p, 0, sizeof(*p));
	p->struct_bytes = sizeof(*p);
	for (k = BRIM_OP_CREATE; k < BRIM_OP_KINDS; k++)
		p->weights[k] = (uint32_t)brim__lua_opt_count(
			L, arg, brim__lua_op_names[k], 0, UINT32_MAX);
	p->live_bytes = brim__lua_opt_bytes_field(L, arg, "live_bytes", 0);
	p->band_ppm =
		(uint32_t)brim__lua_opt_count(L, arg, "band_ppm", 0, 1000000);
	p->max_file_bytes =
		brim__lua_opt_bytes_field(L, arg, "max_file_bytes", 0);
}

/* stream:phase{...} -> true | nil, error */
static int stream_phase(lua_State *L)
{
	struct lstream *h = check_stream(L);
	struct brim_err e = { 0 };
	struct brim_phase p;

	brim__lua_check_phase(L, 2, &p);
	return brim__lua_done(L, brim_stream_phase(h->s, &p, &e), &e);
}

/* stream:next() -> operation | nil, error */
static int stream_next(lua_State *L)
{
	struct lstream *h = check_stream(L);
	struct brim_err e = { 0 };
	struct brim_op *op = &h->last;
	int ret = brim_stream_next(h->s, op, &e);

	h->has_last = ret >= 0;
	if (ret < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_createtable(L, 0, 8);
	lua_pushstring(L, brim__lua_op_names[op->kind]);
	lua_setfield(L, -2, "kind");
	brim__lua_set_int(L, "index", op->index);
	brim__lua_set_int(L, "off_bytes", op->off_bytes);
	brim__lua_set_int(L, "len_bytes", op->len_bytes);
	brim__lua_push_file(L, &op->file);
	lua_setfield(L, -2, "file");
	if (op->kind == BRIM_OP_MKDIR) {
		brim__lua_set_int(L, "dir_level", (uint64_t)op->dir_level);
	} else if (op->kind != BRIM_OP_CREATE) {
		brim__lua_push_file(L, &op->before);
		lua_setfield(L, -2, "before");
	}
	return 1;
}

/* stream:skip(ops) -> true | nil, error */
static int stream_skip(lua_State *L)
{
	struct lstream *h = check_stream(L);
	uint64_t ops = brim__lua_check_count(L, 2, INT64_MAX);
	struct brim_err e = { 0 };
	int ret = 0;

	while (ops-- && ret >= 0) {
		ret = brim_stream_next(h->s, &h->last, &e);
		h->has_last = ret >= 0;
	}
	return brim__lua_done(L, ret, &e);
}

/* stream:fail(stands) -> true | nil, error: of the last operation */
static int stream_fail(lua_State *L)
{
	struct lstream *h = check_stream(L);
	uint64_t stands = brim__lua_check_stands(L, 2);
	struct brim_err e = { 0 };

	if (!h->has_last)
		luaL_error(L, "no operation was handed out yet");
	return brim__lua_done(L, brim_stream_fail(h->s, &h->last, stands, &e),
			      &e);
}

/* stream:totals() -> table */
static int stream_totals(lua_State *L)
{
	struct brim_stream_totals t = { .struct_bytes = sizeof(t) };

	brim_stream_totals(check_stream(L)->s, &t);
	lua_createtable(L, 0, 5);
	brim__lua_set_kinds(L, "ops", t.ops);
	brim__lua_set_int(L, "written_bytes", t.written_bytes);
	brim__lua_set_int(L, "live_files", t.live_files);
	brim__lua_set_int(L, "live_bytes", t.live_bytes);
	brim__lua_set_int(L, "next_index", t.next_index);
	return 1;
}

/* stream:file(k) -> file | nothing: from 1 */
static int stream_file(lua_State *L)
{
	struct brim_stream *s = check_stream(L)->s;
	lua_Integer k = luaL_checkinteger(L, 2);
	struct brim_file f;

	luaL_argcheck(L, k >= 1, 2, "files are counted from 1");
	if (brim_stream_file(s, (uint64_t)k - 1, &f) < 0)
		return 0;
	brim__lua_push_file(L, &f);
	return 1;
}

/* stream:find(id) -> file | nothing */
static int stream_find(lua_State *L)
{
	struct brim_stream *s = check_stream(L)->s;
	uint32_t id = (uint32_t)brim__lua_check_count(L, 2, UINT32_MAX);
	struct brim_file f;

	if (brim_stream_find(s, id, &f) < 0)
		return 0;
	brim__lua_push_file(L, &f);
	return 1;
}

static const luaL_Reg stream_methods[] = {
	{ "phase", stream_phase },
	{ "next", stream_next },
	{ "skip", stream_skip },
	{ "fail", stream_fail },
	{ "totals", stream_totals },
	{ "file", stream_file },
	{ "find", stream_find },
	{ "close", stream_close },
	{ NULL, NULL },
};

static const luaL_Reg stream_meta[] = {
	{ "__gc", stream_close },
	{ "__close", stream_close },
	{ "__tostring", stream_tostring },
	{ NULL, NULL },
};

void brim__lua_open_stream(lua_State *L)
{
	luaL_newmetatable(L, BRIM_STREAM_MT);
	luaL_setfuncs(L, stream_meta, 0);
	luaL_newlib(L, stream_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
}
