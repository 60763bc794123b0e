/* SPDX-License-Identifier: MIT */
/*
 * lua_walk.c: walks of trees for Lua: describe kinds of trees, add roots, run,
 * ask what was found. Called by lua/brim/walk.lua. What the world refuses comes
 * back as nil, error; wrong arguments raise. Jobs and kinds count from 0.
 */
#include <string.h>

#include "lua_run.h"
#include "lua_walk.h"

struct llayout {
	struct brim_layout *l;
};

/* User values: 1 the device, 2 the list of layouts. */
struct lwalk {
	struct brim_walk *w; /* NULL: closed */
};

struct brim_walk *brim__lua_walk(lua_State *L, int arg)
{
	struct lwalk *h = luaL_checkudata(L, arg, BRIM_WALK_MT);

	if (!h->w)
		luaL_error(L, "walk is closed");
	return h->w;
}

static struct brim_walk *check_walk(lua_State *L)
{
	return brim__lua_walk(L, 1);
}

/*
 * walk_open(device, {block_bytes=, read_bytes=, group_bytes=, max_faults=, engine=,
 * queue_depth=, threads=}) -> walk | nil, error
 */
static int walk_open(lua_State *L)
{
	static const char *const names[] = {
		"block_bytes", "read_bytes",          "group_bytes",
		"max_faults",  BRIM__LUA_RUN_OPTIONS, NULL,
	};
	struct brim_walk_options o = { .struct_bytes = sizeof(o) };
	struct brim_device *d = brim__lua_check_device(L, 1);
	struct brim_run_options run;
	struct brim_device_info info;
	struct brim_err e = { 0 };
	struct lwalk *h;

	luaL_checktype(L, 2, LUA_TTABLE);
	brim__lua_check_options(L, 2, names);
	brim__lua_run_options(L, 2, &run);
	o.block_bytes =
		(uint32_t)brim__lua_opt_bytes_field(L, 2, "block_bytes", 4096);
	o.read_bytes =
		(uint32_t)brim__lua_opt_bytes_field(L, 2, "read_bytes", 0);
	o.group_bytes = brim__lua_opt_bytes_field(L, 2, "group_bytes", 0);
	o.max_faults = (uint32_t)brim__lua_opt_int_field(L, 2, "max_faults", 0);
	o.engine = run.engine;
	o.queue_depth = run.queue_depth;
	o.threads = run.threads;
	h = lua_newuserdatauv(L, sizeof(*h), 2);
	h->w = NULL;
	luaL_setmetatable(L, BRIM_WALK_MT);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, 1);
	lua_newtable(L);
	lua_setiuservalue(L, -2, 2);
	brim_device_info(d, &info);
	if (brim_walk_open(&h->w, d, &o, &e) < 0)
		return brim__lua_fail(L, &e, info.path);
	brim__lua_handles++;
	return 1;
}

/* close, __close and __gc: any number of times */
static int walk_close(lua_State *L)
{
	struct lwalk *h = luaL_checkudata(L, 1, BRIM_WALK_MT);
	struct brim_walk *w = h->w;

	h->w = NULL;
	if (w) {
		brim__lua_handles--;
		brim_walk_close(w);
	}
	return 0;
}

static int walk_tostring(lua_State *L)
{
	struct lwalk *h = luaL_checkudata(L, 1, BRIM_WALK_MT);

	lua_pushfstring(L, "brim.walk (%s)", h->w ? "open" : "closed");
	return 1;
}

/* ------------------------------------------------------------ description */

const struct brim_layout *brim__lua_walk_layout(lua_State *L, int arg,
						const char *name)
{
	struct llayout *h;

	lua_getfield(L, arg, name);
	h = luaL_testudata(L, -1, BRIM_LAYOUT_MT);
	if (!h)
		luaL_error(L, "option '%s' is a layout's handle", name);
	lua_getiuservalue(L, 1, 2);
	lua_insert(L, -2);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
	lua_pop(L, 1);
	return h->l;
}

/* Up to 4 names of a list; borrowed from the table. */
static void take_names(lua_State *L, const char *name, const char **out)
{
	lua_Integer i;

	if (lua_getfield(L, 2, name) == LUA_TTABLE) {
		for (i = 1; i <= 4; i++) {
			if (lua_rawgeti(L, -1, i) == LUA_TSTRING)
				out[i - 1] = lua_tostring(L, -1);
			lua_pop(L, 1);
		}
	}
	lua_pop(L, 1);
}

/* The names of fields; borrowed from the table. */
static void take_fields(lua_State *L, struct brim_walk_tree *t)
{
#define NAME(field) t->field = brim__lua_opt_string_field(L, 2, #field, NULL)
	NAME(name);
	NAME(magic);
	NAME(level);
	NAME(count);
	NAME(left);
	NAME(right);
	NAME(address);
	NAME(owner);
	NAME(uuid);
	NAME(records);
	NAME(keys);
	NAME(pointers);
	NAME(reach);
	NAME(reach_count);
	NAME(record_key);
#undef NAME
}

/* walk:tree{name=, leaf=, node=, ...as struct brim_walk_tree} -> number */
static int walk_tree(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_walk_tree t = { .struct_bytes = sizeof(t) };
	struct brim_err e = { 0 };
	size_t uuid_len = 0;
	int n;

	luaL_checktype(L, 2, LUA_TTABLE);
	t.leaf = brim__lua_walk_layout(L, 2, "leaf");
	t.node = brim__lua_walk_layout(L, 2, "node");
	take_fields(L, &t);
	t.address_unit_bytes = (uint32_t)brim__lua_opt_int_field(
		L, 2, "address_unit_bytes", 1);
	t.key_shift = (uint32_t)brim__lua_opt_int_field(L, 2, "key_shift", 0);
	t.key_bits = (uint32_t)brim__lua_opt_int_field(L, 2, "key_bits", 0);
	take_names(L, "key", t.key);
	take_names(L, "order", t.order);
	t.is_strict = brim__lua_opt_bool_field(L, 2, "strict", 0);
	if (t.uuid) {
		lua_getfield(L, 2, "uuid_bytes");
		t.uuid_bytes =
			(const uint8_t *)luaL_checklstring(L, -1, &uuid_len);
		luaL_argcheck(L, uuid_len >= 16, 2, "uuid_bytes: 16 bytes");
	}
	n = brim_walk_tree(w, &t, &e);
	if (n < 0)
		return luaL_error(L, "%s", e.msg);
	lua_pushinteger(L, n);
	return 1;
}

/*
 * walk:start(tree, group, block, levels, first_block, end_block) -> job |
 * nil, error
 */
static int walk_start(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_walk_root root = {
		.tree = (uint32_t)luaL_checkinteger(L, 2),
		.group = (uint64_t)luaL_checkinteger(L, 3),
		.block = (uint64_t)luaL_checkinteger(L, 4),
		.levels = (uint32_t)luaL_checkinteger(L, 5),
		.first_block = (uint64_t)luaL_checkinteger(L, 6),
		.end_block = (uint64_t)luaL_checkinteger(L, 7),
	};
	struct brim_err e = { 0 };
	int job = brim_walk_start(w, &root, &e);

	if (job < 0)
		return brim__lua_fail(L, &e, NULL);
	lua_pushinteger(L, job);
	return 1;
}

/* walk:run() -> true | nil, error */
static int walk_run(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_err e = { 0 };

	return brim__lua_done(L, brim_walk_run(w, &e), &e);
}

static int walk_reset(lua_State *L)
{
	brim_walk_reset(check_walk(L));
	return 0;
}

/* ----------------------------------------------------------------- results */

static void set_int(lua_State *L, const char *name, uint64_t v)
{
	lua_pushinteger(L, (lua_Integer)v);
	lua_setfield(L, -2, name);
}

/* walk:job(job) -> {blocks, records, faults, is_complete} | nil */
static int walk_job(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_walk_job j;

	if (brim_walk_job(w, (size_t)luaL_checkinteger(L, 2), &j) < 0) {
		lua_pushnil(L);
		return 1;
	}
	lua_createtable(L, 0, 4);
	set_int(L, "blocks", j.blocks);
	set_int(L, "records", j.records);
	set_int(L, "faults", j.faults);
	lua_pushboolean(L, j.is_complete);
	lua_setfield(L, -2, "is_complete");
	return 1;
}

/* walk:fault(k) -> table | nil: the k-th kept, from 1 */
static int walk_fault(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	lua_Integer k = luaL_checkinteger(L, 2);
	struct brim_walk_fault f;

	if (k < 1 || brim_walk_fault(w, (size_t)k - 1, &f) < 0) {
		lua_pushnil(L);
		return 1;
	}
	lua_createtable(L, 0, 8);
	if (f.job != BRIM_WALK_NO_JOB)
		set_int(L, "job", f.job);
	if (f.is_object)
		set_int(L, "object", f.object);
	set_int(L, "block", f.block);
	set_int(L, "element", (uint64_t)f.element);
	set_int(L, "expected", f.expected);
	set_int(L, "found", f.found);
	lua_pushstring(L, f.what);
	lua_setfield(L, -2, "what");
	return 1;
}

/* walk:records(job) -> string */
static int walk_records(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	size_t len;
	const void *v =
		brim_walk_records(w, (size_t)luaL_checkinteger(L, 2), &len);

	lua_pushlstring(L, v ? v : "", len);
	return 1;
}

/* walk:extents(job, list, start, count?, tag?) -> list */
static int walk_extents(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_err e = { 0 };

	if (brim_walk_extents(
		    w, (size_t)luaL_checkinteger(L, 2), luaL_checkstring(L, 4),
		    luaL_optstring(L, 5, NULL), luaL_optstring(L, 6, NULL),
		    brim__lua_extents(L, 3), &e) < 0)
		return luaL_error(L, "%s", e.msg);
	lua_settop(L, 3);
	return 1;
}

/* walk:blocks(job, list) -> list */
static int walk_blocks(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	struct brim_err e = { 0 };

	if (brim_walk_blocks(w, (size_t)luaL_checkinteger(L, 2),
			     brim__lua_extents(L, 3), &e) < 0)
		return luaL_error(L, "%s", e.msg);
	lua_settop(L, 3);
	return 1;
}

/* walk:stats() -> {engine, reads, read_bytes, latency_sum_ns} */
static int walk_stats(lua_State *L)
{
	struct brim_walk_stats st = { .struct_bytes = sizeof(st) };

	brim_walk_stats(check_walk(L), &st);
	lua_createtable(L, 0, 4);
	lua_pushstring(L, st.engine);
	lua_setfield(L, -2, "engine");
	set_int(L, "reads", st.reads);
	set_int(L, "read_bytes", st.read_bytes);
	set_int(L, "latency_sum_ns", st.latency_sum_ns);
	return 1;
}

static void push_strings(lua_State *L, const char *v, size_t n, size_t len)
{
	size_t k;

	lua_createtable(L, (int)n, 0);
	for (k = 0; k < n; k++) {
		lua_pushlstring(L, v + k * len, len);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
}

/* walk:read({off_bytes...}, len_bytes) -> {string...} | nil, error */
static int walk_read(lua_State *L)
{
	struct brim_walk *w = check_walk(L);
	lua_Integer len = luaL_checkinteger(L, 3);
	struct brim_err e = { 0 };
	uint64_t *off;
	char *out;
	size_t n, k;

	luaL_checktype(L, 2, LUA_TTABLE);
	n = lua_rawlen(L, 2);
	luaL_argcheck(L, len > 0 && len <= 1 << 26, 3, "at most a block");
	luaL_argcheck(L, n <= 1u << 20, 2, "at most 2^20 offsets");
	/* Collected, so that nothing below can leak them. */
	off = lua_newuserdatauv(L, (n + 1) * sizeof(*off), 0);
	out = lua_newuserdatauv(L, n * (size_t)len + 1, 0);
	for (k = 0; k < n; k++) {
		lua_rawgeti(L, 2, (lua_Integer)k + 1);
		off[k] = (uint64_t)luaL_checkinteger(L, -1);
		lua_pop(L, 1);
	}
	if (brim_walk_read(w, off, n, (uint32_t)len, out, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	push_strings(L, out, n, (size_t)len);
	return 1;
}

static const luaL_Reg methods[] = {
	{ "tree", walk_tree },
	{ "start", walk_start },
	{ "run", walk_run },
	{ "reset", walk_reset },
	{ "job", walk_job },
	{ "fault", walk_fault },
	{ "records", walk_records },
	{ "extents", walk_extents },
	{ "blocks", walk_blocks },
	{ "read", walk_read },
	{ "close", walk_close },
	{ "stats", walk_stats },
	{ NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", walk_close },
	{ "__close", walk_close },
	{ "__tostring", walk_tostring },
	{ NULL, NULL },
};

void brim__lua_open_walk(lua_State *L)
{
	luaL_newmetatable(L, BRIM_WALK_MT);
	luaL_setfuncs(L, meta, 0);
	luaL_newlib(L, methods);
	luaL_setfuncs(L, brim__lua_object_methods, 0);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, walk_open);
	lua_setfield(L, -2, "walk_open");
}
