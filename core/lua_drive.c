/* SPDX-License-Identifier: MIT */
/*
 * lua_drive.c: timing models of drives for Lua: making one, single commands for
 * the curious, statistics, replays of traces. Called by lua/brim/drive.lua. A
 * drive is memory only, so it has no close. Bytes, nanoseconds.
 */
#include <string.h>

#include "lua_fill.h"

#define BRIM_DRIVE_MT "brim.drive_handle"

static const char *const op_names[BRIM_DRIVE_OPS + 1] = {
	"read", "write", "trim", "flush", NULL,
};

struct ldrive {
	struct brim_drive *d;
};

/* What a call holds while it goes on: freed when Lua raises, too. */
#define BRIM_DRIVE_HOLD_MT "brim.drive_hold"

struct lhold {
	struct brim_drive_reader *reader;
	struct brim_drive_replay replay;
};

static struct lhold *push_hold(lua_State *L)
{
	struct lhold *h = lua_newuserdatauv(L, sizeof(*h), 0);

	memset(h, 0, sizeof(*h));
	luaL_setmetatable(L, BRIM_DRIVE_HOLD_MT);
	return h;
}

static int hold_gc(lua_State *L)
{
	struct lhold *h = luaL_checkudata(L, 1, BRIM_DRIVE_HOLD_MT);

	brim_drive_reader_close(h->reader);
	h->reader = NULL;
	brim_drive_replay_release(&h->replay);
	return 0;
}

static struct brim_drive *check_drive(lua_State *L, int arg)
{
	struct ldrive *h = luaL_checkudata(L, arg, BRIM_DRIVE_MT);

	luaL_argcheck(L, h->d, arg, "the drive was not created");
	return h->d;
}

/* drive_new("smr,size_bytes=8g,...") -> drive | nil, error */
static int drive_new(lua_State *L)
{
	const char *text = luaL_checkstring(L, 1);
	struct brim_drive_params p;
	struct brim_err e = { 0 };
	struct ldrive *h;

	if (brim_drive_params_parse(&p, text, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	h = lua_newuserdatauv(L, sizeof(*h), 0);
	h->d = NULL;
	luaL_setmetatable(L, BRIM_DRIVE_MT);
	if (brim_drive_create(&h->d, &p, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	return 1;
}

static int drive_gc(lua_State *L)
{
	struct ldrive *h = luaL_checkudata(L, 1, BRIM_DRIVE_MT);
	struct brim_drive *d = h->d;

	h->d = NULL;
	brim_drive_free(d);
	return 0;
}

/* drive:io(op, off_bytes, len_bytes, at_ns) -> done_ns | nil, error */
static int drive_io(lua_State *L)
{
	struct brim_drive *d = check_drive(L, 1);
	struct brim_drive_io io = {
		.op = (enum brim_drive_op)luaL_checkoption(L, 2, NULL,
							   op_names),
		.off_bytes = brim__lua_check_bytes(L, 3),
		.len_bytes = brim__lua_check_bytes(L, 4),
		.at_ns = brim__lua_check_count(L, 5, INT64_MAX),
	};
	struct brim_err e = { 0 };
	uint64_t done_ns;
	int ret = brim_drive_io(d, &io, &done_ns);

	if (ret < 0) {
		e.code = ret;
		e.op = "drive";
		e.offset_bytes = io.off_bytes;
		strcpy(e.msg, "the drive has no such place, or no such time");
		return brim__lua_fail(L, &e, NULL);
	}
	lua_pushinteger(L, (lua_Integer)done_ns);
	return 1;
}

/* ------------------------------------------------------------- statistics */

static void set_ops(lua_State *L, const char *name, const uint64_t *values,
		    int n)
{
	int k;

	lua_createtable(L, 0, n);
	for (k = 0; k < n; k++)
		brim__lua_set_int(L, op_names[k], values[k]);
	lua_setfield(L, -2, name);
}

/* { read = { [4096] = n }, write = ... } by powers of two */
static void set_sizes(lua_State *L, const char *name,
		      const uint64_t values[2][64])
{
	int op, k;

	lua_createtable(L, 0, 2);
	for (op = 0; op < 2; op++) {
		lua_newtable(L);
		for (k = 0; k < 63; k++) {
			if (!values[op][k])
				continue;
			lua_pushinteger(L, (lua_Integer)values[op][k]);
			lua_rawseti(L, -2, (lua_Integer)1 << k);
		}
		lua_setfield(L, -2, op_names[op]);
	}
	lua_setfield(L, -2, name);
}

static void set_times(lua_State *L, const struct brim_drive_stats *st)
{
#define SET(name) brim__lua_set_int(L, #name, st->name)
	SET(end_ns);
	SET(wait_ns);
	SET(overhead_ns);
	SET(seek_ns);
	SET(rotate_ns);
	SET(transfer_ns);
	SET(clean_full_ns);
	SET(clean_idle_ns);
	SET(seeks);
	SET(seek_bytes);
}

static void set_cache(lua_State *L, const struct brim_drive_stats *st)
{
	SET(bands);
	SET(cached_ios);
	SET(cached_bytes);
	SET(streamed_bytes);
	SET(cache_entries);
	SET(cache_used_bytes);
	SET(cache_entries_max);
	SET(cache_used_bytes_max);
	SET(cleaned_bands);
	SET(cleaned_entries);
	SET(clean_bytes);
	SET(covered_bands);
#undef SET
}

/* drive:stats() -> table: struct brim_drive_stats */
static int drive_stats(lua_State *L)
{
	struct brim_drive_stats st = { .struct_bytes = sizeof(st) };

	brim_drive_stats(check_drive(L, 1), &st);
	lua_createtable(L, 0, 34);
	set_ops(L, "ios", st.ios, BRIM_DRIVE_OPS);
	set_ops(L, "bytes", st.bytes, BRIM_DRIVE_OPS);
	set_ops(L, "latency_ns", st.latency_ns, BRIM_DRIVE_OPS);
	set_ops(L, "p50_ns", st.p50_ns, BRIM_DRIVE_OPS);
	set_ops(L, "p99_ns", st.p99_ns, BRIM_DRIVE_OPS);
	set_ops(L, "max_ns", st.max_ns, BRIM_DRIVE_OPS);
	set_ops(L, "runs", st.runs, 2);
	set_sizes(L, "io_sizes", st.io_sizes);
	set_sizes(L, "run_sizes", st.run_sizes);
	set_times(L, &st);
	set_cache(L, &st);
	return 1;
}

/* ----------------------------------------------------------------- replays */

static void push_bins(lua_State *L, const struct brim_drive_replay *r)
{
	uint64_t k;

	lua_createtable(L, (int)r->bin_count, 0);
	for (k = 0; k < r->bin_count; k++) {
		lua_createtable(L, 0, 3);
		brim__lua_set_int(L, "ios", r->bins[k].ios);
		brim__lua_set_int(L, "read_bytes", r->bins[k].read_bytes);
		brim__lua_set_int(L, "write_bytes", r->bins[k].write_bytes);
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
}

static void push_replay(lua_State *L, const struct brim_drive_replay *r,
			const struct brim_drive_replay_options *o)
{
	lua_createtable(L, 0, 8);
	brim__lua_set_int(L, "events", r->events);
	brim__lua_set_int(L, "skipped", r->skipped);
	brim__lua_set_int(L, "recorded_ns", r->recorded_ns);
	brim__lua_set_int(L, "elapsed_ns", r->elapsed_ns);
	if (!o->interval_ns)
		return;
	brim__lua_set_int(L, "interval_ns", o->interval_ns);
	push_bins(L, r);
	lua_setfield(L, -2, "bins");
}

/* What a replay holds while it goes on; nothing in between raises. */
static int replay(struct brim_drive *d, const char *path, const char *out,
		  struct brim_drive_replay_options *o,
		  struct brim_drive_replay *r, struct brim_err *e)
{
	struct brim_drive_reader *reader;
	uint64_t size_bytes;
	int ret = brim_drive_reader_open(&reader, path, &size_bytes, e), end;

	if (ret < 0)
		return ret;
	if (out)
		ret = brim_drive_writer_open(&o->out, out, size_bytes, e);
	if (ret == 0)
		ret = brim_drive_replay(d, reader, o, r, e);
	end = brim_drive_writer_close(o->out, ret < 0 ? NULL : e);
	brim_drive_reader_close(reader);
	return ret < 0 ? ret : end;
}

/*
 * drive:replay(path, {is_open_loop=, is_wrapped=, interval_ns=, at_ns=, out=})
 * -> table | nil, error
 */
static int drive_replay(lua_State *L)
{
	static const char *const names[] = { "is_open_loop", "is_wrapped",
					     "interval_ns",  "at_ns",
					     "out",          NULL };
	struct brim_drive *d = check_drive(L, 1);
	const char *path = luaL_checkstring(L, 2), *out;
	struct brim_drive_replay_options o = { .struct_bytes = sizeof(o) };
	struct lhold *h = push_hold(L);
	struct brim_err e = { 0 };

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	o.is_open_loop = brim__lua_opt_bool_field(L, 3, "is_open_loop", 0);
	o.is_wrapped = brim__lua_opt_bool_field(L, 3, "is_wrapped", 0);
	o.interval_ns = brim__lua_opt_count(L, 3, "interval_ns", 0, INT64_MAX);
	o.at_ns = brim__lua_opt_count(L, 3, "at_ns", 0, INT64_MAX);
	out = brim__lua_opt_string_field(L, 3, "out", NULL);
	if (replay(d, path, out, &o, &h->replay, &e) < 0)
		return brim__lua_fail(L, &e, path);
	push_replay(L, &h->replay, &o);
	return 1;
}

/* ------------------------------------------------------------------ traces */

static int push_events(lua_State *L, struct brim_drive_reader *r, uint64_t most,
		       struct brim_err *e)
{
	struct brim_drive_event x;
	lua_Integer n = 0;
	int ret = 1;

	lua_newtable(L);
	while ((uint64_t)n < most) {
		ret = brim_drive_reader_next(r, &x, e);
		if (ret <= 0)
			break;
		lua_createtable(L, 0, 6);
		lua_pushstring(L, op_names[x.op]);
		lua_setfield(L, -2, "op");
		brim__lua_set_int(L, "stream", x.stream);
		brim__lua_set_int(L, "at_ns", x.at_ns);
		brim__lua_set_int(L, "took_ns", x.took_ns);
		brim__lua_set_int(L, "off_bytes", x.off_bytes);
		brim__lua_set_int(L, "len_bytes", x.len_bytes);
		lua_rawseti(L, -2, ++n);
	}
	return ret;
}

/* drive_events(path, most) -> events, size_bytes | nil, error */
static int drive_events(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	uint64_t most = brim__lua_check_count(L, 2, 1 << 24), size_bytes;
	struct lhold *h = push_hold(L);
	struct brim_err e = { 0 };
	int ret = brim_drive_reader_open(&h->reader, path, &size_bytes, &e);

	if (ret >= 0)
		ret = push_events(L, h->reader, most, &e);
	if (ret < 0)
		return brim__lua_fail(L, &e, path);
	lua_pushinteger(L, (lua_Integer)size_bytes);
	return 2;
}

/* drive_params() -> list of names */
static int drive_params(lua_State *L)
{
	unsigned int k;

	lua_newtable(L);
	for (k = 0; brim_drive_param_name(k); k++) {
		lua_pushstring(L, brim_drive_param_name(k));
		lua_rawseti(L, -2, (lua_Integer)k + 1);
	}
	return 1;
}

static const luaL_Reg drive_methods[] = {
	{ "io", drive_io },
	{ "stats", drive_stats },
	{ "replay", drive_replay },
	{ NULL, NULL },
};

static const luaL_Reg drive_functions[] = {
	{ "drive_new", drive_new },
	{ "drive_events", drive_events },
	{ "drive_params", drive_params },
	{ NULL, NULL },
};

void brim__lua_open_drive(lua_State *L)
{
	luaL_newmetatable(L, BRIM_DRIVE_HOLD_MT);
	lua_pushcfunction(L, hold_gc);
	lua_setfield(L, -2, "__gc");
	lua_pop(L, 1);
	luaL_newmetatable(L, BRIM_DRIVE_MT);
	lua_pushcfunction(L, drive_gc);
	lua_setfield(L, -2, "__gc");
	luaL_newlib(L, drive_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, drive_functions, 0);
}
