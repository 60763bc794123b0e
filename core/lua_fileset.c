/* SPDX-License-Identifier: MIT */
/*
 * lua_fileset.c: distributions and filesets for Lua. Called by
 * lua/brim/dist.lua and fill.lua. A fileset is memory only; what the world
 * refuses comes back as nil, error; wrong arguments raise. Sizes are bytes;
 * streams, ids and operations count from 0.
 */
#include <string.h>

#include "lua_fill.h"

struct lfileset {
	struct brim_fileset *fs; /* NULL: closed */
};

/* ----------------------------------------------------------------- helpers */

void brim__lua_set_int(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

void brim__lua_set_kinds(lua_State *L, const char *name,
			 const uint64_t values[BRIM_OP_KINDS])
{
	int k;

	if (lua_getfield(L, -1, name) != LUA_TTABLE) {
		lua_pop(L, 1);
		lua_createtable(L, 0, BRIM_OP_KINDS);
		lua_pushvalue(L, -1);
		lua_setfield(L, -3, name);
	}
	for (k = 0; k < BRIM_OP_KINDS; k++)
		brim__lua_set_int(L, brim__lua_op_names[k], values[k]);
	lua_pop(L, 1);
}

uint64_t brim__lua_check_count(lua_State *L, int arg, uint64_t max)
{
	lua_Integer n = luaL_checkinteger(L, arg);

	luaL_argcheck(L, n >= 0 && (uint64_t)n <= max, arg, "out of range");
	return (uint64_t)n;
}

uint64_t brim__lua_check_stands(lua_State *L, int arg)
{
	const char *text;

	if (lua_type(L, arg) == LUA_TNUMBER)
		return brim__lua_check_bytes(L, arg);
	text = luaL_checkstring(L, arg);
	if (!strcmp(text, "missing"))
		return BRIM_FILE_NONE;
	luaL_argcheck(L, !strcmp(text, "before"), arg,
		      "'missing', 'before' or a size expected");
	return BRIM_FILE_AS_BEFORE;
}

void brim__lua_push_stands(lua_State *L, uint64_t stands)
{
	if (stands == BRIM_FILE_NONE)
		lua_pushliteral(L, "missing");
	else if (stands == BRIM_FILE_AS_BEFORE)
		lua_pushliteral(L, "before");
	else
		lua_pushinteger(L, (lua_Integer)stands);
}

uint64_t brim__lua_opt_count(lua_State *L, int arg, const char *name,
			     uint64_t def, uint64_t max)
{
	int64_t n = brim__lua_opt_int_field(L, arg, name, (int64_t)def);

	if (n < 0 || (uint64_t)n > max)
		luaL_argerror(L, arg,
			      lua_pushfstring(L,
					      "option '%s': %I is out of "
					      "range",
					      name, (LUAI_UACINT)n));
	return (uint64_t)n;
}

static double opt_number(lua_State *L, int arg, const char *name)
{
	double n = 0;

	if (lua_getfield(L, arg, name) != LUA_TNIL) {
		if (lua_type(L, -1) != LUA_TNUMBER)
			luaL_argerror(L, arg,
				      lua_pushfstring(L,
						      "option '%s': a number "
						      "expected",
						      name));
		n = lua_tonumber(L, -1);
	}
	lua_pop(L, 1);
	return n;
}

/* ----------------------------------------------------------- distributions */

/*
 * The bins of the table at arg, in memory that Lua owns and that stays on the
 * stack; sets min and max to their range.
 */
static void take_bins(lua_State *L, int arg, struct brim_dist *d)
{
	struct brim_dist_bin *bins;
	size_t n, k;

	if (lua_getfield(L, arg, "bins") != LUA_TTABLE)
		luaL_argerror(L, arg, "a histogram has 'bins', a list");
	n = lua_rawlen(L, -1);
	luaL_argcheck(L, n > 0 && n < 1u << 24, arg,
		      "a histogram has at least one bin");
	bins = lua_newuserdatauv(L, n * sizeof(*bins), 0);
	for (k = 0; k < n; k++) {
		int at = lua_absindex(L, -1) + 1;

		if (lua_rawgeti(L, -2, (lua_Integer)k + 1) != LUA_TTABLE)
			luaL_argerror(L, arg, "a bin is { from, to, weight }");
		bins[k].from = brim__lua_opt_bytes_field(L, at, "from", 0);
		bins[k].to =
			brim__lua_opt_bytes_field(L, at, "to", bins[k].from);
		bins[k].weight = opt_number(L, at, "weight");
		d->min = k && d->min < bins[k].from ? d->min : bins[k].from;
		d->max = d->max > bins[k].to ? d->max : bins[k].to;
		lua_pop(L, 1);
	}
	d->bins = bins;
	d->bin_count = n;
}

/* Leaves what it borrows on the stack. */
void brim__lua_check_dist(lua_State *L, int arg, struct brim_dist *d)
{
	static const char *const names[] = { "kind", "min_bytes", "max_bytes",
					     "a",    "b",         "bins",
					     NULL };
	static const char *const kinds[] = { "fixed",       "uniform",
					     "log_uniform", "log_normal",
					     "pareto",      "histogram",
					     NULL };

	arg = lua_absindex(L, arg);
	luaL_checktype(L, arg, LUA_TTABLE);
	brim__lua_check_options(L, arg, names);
	luaL_checkstack(L, 8, "a distribution");
	memset(d, 0, sizeof(*d));
	d->struct_bytes = sizeof(*d);
	lua_getfield(L, arg, "kind");
	d->kind = (enum brim_dist_kind)(BRIM_DIST_FIXED +
					luaL_checkoption(L, -1, NULL, kinds));
	lua_pop(L, 1);
	d->a = opt_number(L, arg, "a");
	d->b = opt_number(L, arg, "b");
	if (d->kind == BRIM_DIST_HISTOGRAM) {
		take_bins(L, arg, d);
		return;
	}
	d->min = brim__lua_opt_bytes_field(L, arg, "min_bytes", 0);
	d->max = brim__lua_opt_bytes_field(L, arg, "max_bytes", d->min);
}

/* dist_check(dist) -> true | nil, error */
static int dist_check(lua_State *L)
{
	struct brim_err e = { 0 };
	struct brim_dist d;

	brim__lua_check_dist(L, 1, &d);
	return brim__lua_done(L, brim_dist_check(&d, &e), &e);
}

/* Raises for a distribution that cannot be drawn from. */
static void check_good_dist(lua_State *L, int arg, struct brim_dist *d)
{
	struct brim_err e = { 0 };

	brim__lua_check_dist(L, arg, d);
	if (brim_dist_check(d, &e) < 0)
		luaL_argerror(L, arg, lua_pushstring(L, e.msg));
}

/* dist_value(dist, bits) -> bytes */
static int dist_value(lua_State *L)
{
	uint64_t bits = (uint64_t)luaL_checkinteger(L, 2);
	struct brim_dist d;

	check_good_dist(L, 1, &d);
	lua_pushinteger(L, (lua_Integer)brim_dist_value(&d, bits));
	return 1;
}

/* dist_mean(dist) -> number */
static int dist_mean(lua_State *L)
{
	struct brim_dist d;

	check_good_dist(L, 1, &d);
	lua_pushnumber(L, brim_dist_mean(&d));
	return 1;
}

/* ---------------------------------------------------------------- filesets */

struct brim_fileset *brim__lua_check_fileset(lua_State *L, int arg)
{
	struct lfileset *h = luaL_checkudata(L, arg, BRIM_FILESET_MT);

	luaL_argcheck(L, h->fs, arg, "the fileset is closed");
	return h->fs;
}

/* In memory that Lua owns and that stays on the stack. */
static void take_extensions(lua_State *L, int arg,
			    struct brim_fileset_options *o)
{
	struct brim_name_weight *list;
	size_t n, k;

	if (lua_getfield(L, arg, "extensions") == LUA_TNIL)
		return;
	luaL_argcheck(L, lua_istable(L, -1), arg,
		      "option 'extensions': a list expected");
	n = lua_rawlen(L, -1);
	luaL_argcheck(L, n > 0 && n < 1u << 16, arg,
		      "option 'extensions': at least one");
	list = lua_newuserdatauv(L, n * sizeof(*list), 0);
	for (k = 0; k < n; k++) {
		int at = lua_absindex(L, -1) + 1;

		if (lua_rawgeti(L, -2, (lua_Integer)k + 1) != LUA_TTABLE)
			luaL_argerror(L, arg,
				      "an extension is { name, weight }");
		/* Borrowed: valid while the list holds it. */
		list[k].name = brim__lua_opt_string_field(L, at, "name", "");
		list[k].weight = opt_number(L, at, "weight");
		lua_pop(L, 1);
	}
	o->extensions = list;
	o->extension_count = n;
}

static void take_fileset_options(lua_State *L, struct brim_fileset_options *o)
{
	static const char *const names[] = {
		"seed",       "streams", "sizes",
		"depth",      "fan_out", "files_per_dir",
		"extensions", "content", "compress_ppm",
		NULL,
	};
	static const char *const contents[] = { "random", "zeros",
						"compressible", NULL };

	luaL_checktype(L, 1, LUA_TTABLE);
	brim__lua_check_options(L, 1, names);
	luaL_checkstack(L, 16, "a fileset");
	o->seed = (uint64_t)brim__lua_opt_int_field(L, 1, "seed", 0);
	o->streams =
		(uint32_t)brim__lua_opt_count(L, 1, "streams", 1, UINT32_MAX);
	o->depth = (uint32_t)brim__lua_opt_count(L, 1, "depth", 0, UINT32_MAX);
	o->fan_out =
		(uint32_t)brim__lua_opt_count(L, 1, "fan_out", 0, UINT32_MAX);
	o->files_per_dir = (uint32_t)brim__lua_opt_count(L, 1, "files_per_dir",
							 0, UINT32_MAX);
	o->compress_ppm =
		(uint32_t)brim__lua_opt_count(L, 1, "compress_ppm", 0, 1000000);
	lua_getfield(L, 1, "content");
	o->content = (enum brim_content)(
		BRIM_CONTENT_RANDOM +
		luaL_checkoption(L, -1, "random", contents));
	lua_pop(L, 1);
	take_extensions(L, 1, o);
}

/* fileset_new({seed=, streams=, sizes=, ...}) -> fileset | nil, error */
static int fileset_new(lua_State *L)
{
	struct brim_fileset_options o = { .struct_bytes = sizeof(o) };
	struct brim_err e = { 0 };
	struct brim_dist d;
	struct lfileset *h;

	take_fileset_options(L, &o);
	if (lua_getfield(L, 1, "sizes") != LUA_TTABLE)
		luaL_argerror(L, 1, "option 'sizes': a distribution expected");
	brim__lua_check_dist(L, -1, &d);
	o.sizes = &d;
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->fs = NULL;
	luaL_setmetatable(L, BRIM_FILESET_MT);
	if (brim_fileset_create(&h->fs, &o, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	brim__lua_handles++;
	return 1;
}

/* close, __close and __gc: any number of times */
static int fileset_close(lua_State *L)
{
	struct lfileset *h = luaL_checkudata(L, 1, BRIM_FILESET_MT);
	struct brim_fileset *fs = h->fs;

	h->fs = NULL;
	if (fs) {
		brim__lua_handles--;
		brim_fileset_free(fs);
	}
	return 0;
}

static int fileset_tostring(lua_State *L)
{
	struct lfileset *h = luaL_checkudata(L, 1, BRIM_FILESET_MT);

	lua_pushfstring(L, "brim.fileset (%s)", h->fs ? "open" : "closed");
	return 1;
}

static int fileset_streams(lua_State *L)
{
	lua_pushinteger(L, brim_fileset_streams(brim__lua_check_fileset(L, 1)));
	return 1;
}

static uint32_t check_stream_number(lua_State *L, int arg,
				    const struct brim_fileset *fs)
{
	return (uint32_t)brim__lua_check_count(L, arg,
					       brim_fileset_streams(fs) - 1u);
}

/* fileset:path(stream, id, is_temporary?) -> string */
static int fileset_path(lua_State *L)
{
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	uint32_t stream = check_stream_number(L, 2, fs);
	uint32_t id = (uint32_t)brim__lua_check_count(L, 3, UINT32_MAX);
	char path[256];

	brim_fileset_path(fs, stream, id, lua_toboolean(L, 4), path,
			  sizeof(path));
	lua_pushstring(L, path);
	return 1;
}

/* fileset:parse(path) -> stream, id, is_temporary | nothing */
static int fileset_parse(lua_State *L)
{
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	uint32_t stream, id;
	int is_temporary;

	if (brim_fileset_parse(fs, luaL_checkstring(L, 2), &stream, &id,
			       &is_temporary) < 0)
		return 0;
	lua_pushinteger(L, stream);
	lua_pushinteger(L, id);
	lua_pushboolean(L, is_temporary);
	return 3;
}

/* fileset:size(stream, id, version) -> bytes */
static int fileset_size(lua_State *L)
{
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	uint32_t stream = check_stream_number(L, 2, fs);
	uint32_t id = (uint32_t)brim__lua_check_count(L, 3, UINT32_MAX);
	uint16_t version = (uint16_t)brim__lua_check_count(L, 4, UINT16_MAX);

	lua_pushinteger(
		L, (lua_Integer)brim_fileset_size(fs, stream, id, version));
	return 1;
}

/* The table at arg as a file. */
static void check_file(lua_State *L, int arg, struct brim_file *f)
{
	luaL_checktype(L, arg, LUA_TTABLE);
	f->stream =
		(uint32_t)brim__lua_opt_count(L, arg, "stream", 0, UINT32_MAX);
	f->id = (uint32_t)brim__lua_opt_count(L, arg, "id", 0, UINT32_MAX);
	f->version =
		(uint16_t)brim__lua_opt_count(L, arg, "version", 0, UINT16_MAX);
	f->overwrites = (uint16_t)brim__lua_opt_count(L, arg, "overwrites", 0,
						      UINT16_MAX);
	f->base_bytes = brim__lua_opt_bytes_field(L, arg, "base_bytes", 0);
	f->size_bytes = brim__lua_opt_bytes_field(L, arg, "size_bytes", 0);
}

void brim__lua_push_file(lua_State *L, const struct brim_file *f)
{
	lua_createtable(L, 0, 6);
	brim__lua_set_int(L, "stream", f->stream);
	brim__lua_set_int(L, "id", f->id);
	brim__lua_set_int(L, "version", f->version);
	brim__lua_set_int(L, "overwrites", f->overwrites);
	brim__lua_set_int(L, "base_bytes", f->base_bytes);
	brim__lua_set_int(L, "size_bytes", f->size_bytes);
}

/* fileset:content(file, off, len) -> string */
static int fileset_content(lua_State *L)
{
	struct brim_fileset *fs = brim__lua_check_fileset(L, 1);
	uint64_t off = brim__lua_check_bytes(L, 3);
	uint64_t len = brim__lua_check_bytes(L, 4);
	struct brim_file f;
	luaL_Buffer b;

	check_file(L, 2, &f);
	luaL_argcheck(L, len <= 1u << 30, 4, "at most 1 GiB at a time");
	brim_fileset_content(fs, &f, off, (size_t)len,
			     luaL_buffinitsize(L, &b, (size_t)len));
	luaL_pushresultsize(&b, (size_t)len);
	return 1;
}

static const luaL_Reg fileset_methods[] = {
	{ "streams", fileset_streams }, { "path", fileset_path },
	{ "parse", fileset_parse },     { "size", fileset_size },
	{ "content", fileset_content }, { "stream", brim__lua_fileset_stream },
	{ "close", fileset_close },     { NULL, NULL },
};

static const luaL_Reg fileset_meta[] = {
	{ "__gc", fileset_close },
	{ "__close", fileset_close },
	{ "__tostring", fileset_tostring },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "dist_check", dist_check },
	{ "dist_value", dist_value },
	{ "dist_mean", dist_mean },
	{ "fileset_new", fileset_new },
	{ NULL, NULL },
};

void brim__lua_open_fileset(lua_State *L)
{
	luaL_newmetatable(L, BRIM_FILESET_MT);
	luaL_setfuncs(L, fileset_meta, 0);
	luaL_newlib(L, fileset_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, functions, 0);
}
