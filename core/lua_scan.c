/* SPDX-License-Identifier: MIT */
/*
 * lua_scan.c: scans for Lua: what must hold at every instance, what is gathered
 * there, and runs that do both. A scan is memory only, so it has no close; a run on it is a handle
 * of lua_run.c. Offsets are bytes.
 */
#include <string.h>

#include "lua_run.h"

struct llayout {
	struct brim_layout *l;
};

/* What BRIM_SCAN_MT userdata hold. User value 1: the list of its layouts. */
struct lscan {
	struct brim_scan *s;
};

static struct brim_scan *check_scan(lua_State *L, int arg)
{
	struct lscan *h = luaL_checkudata(L, arg, BRIM_SCAN_MT);

	luaL_argcheck(L, h->s, arg, "the scan was not created");
	return h->s;
}

static uint32_t check_u32(lua_State *L, int arg)
{
	uint64_t n = brim__lua_check_bytes(L, arg);

	luaL_argcheck(L, n <= UINT32_MAX, arg, "less than 4 GiB");
	return (uint32_t)n;
}

/* scan_new() -> scan | nil, error */
static int scan_new(lua_State *L)
{
	struct lscan *h = lua_newuserdatauv(L, sizeof(*h), 1);
	struct brim_err e = { 0 };

	h->s = NULL;
	luaL_setmetatable(L, BRIM_SCAN_MT);
	lua_newtable(L);
	lua_setiuservalue(L, -2, 1);
	if (brim_scan_create(&h->s, &e) < 0)
		return brim__lua_fail(L, &e, NULL);
	return 1;
}

static int scan_gc(lua_State *L)
{
	struct lscan *h = luaL_checkudata(L, 1, BRIM_SCAN_MT);
	struct brim_scan *s = h->s;

	h->s = NULL;
	brim_scan_free(s);
	return 0;
}

static int scan_tostring(lua_State *L)
{
	lua_pushliteral(L, "brim.scan_handle");
	return 1;
}

/* scan:expect_layout(layout, off, size) -> true | nil, error */
static int scan_expect_layout(lua_State *L)
{
	struct brim_scan *s = check_scan(L, 1);
	struct llayout *layout = luaL_checkudata(L, 2, BRIM_LAYOUT_MT);
	uint64_t off_bytes = brim__lua_check_bytes(L, 3);
	uint32_t size_bytes = check_u32(L, 4);
	struct brim_err e = { 0 };

	luaL_argcheck(L, layout->l, 2, "the layout was not created");
	/* First the anchor, which may raise. */
	lua_getiuservalue(L, 1, 1);
	lua_pushvalue(L, 2);
	luaL_ref(L, -2);
	return brim__lua_done(L,
			      brim_scan_expect_layout(s, layout->l, off_bytes,
						      size_bytes, &e),
			      &e);
}

/* Arguments 2 .. 4: offset, width, byte order. Names are the caller's. */
static struct brim_scan_field check_field(lua_State *L)
{
	static const char *const orders[] = { "big", "little", NULL };

	return (struct brim_scan_field){
		.off_bytes = brim__lua_check_bytes(L, 2),
		.width_bytes = check_u32(L, 3),
		.endian = luaL_checkoption(L, 4, NULL, orders) ? BRIM_LITTLE
							       : BRIM_BIG,
	};
}

/*
 * The test that a rule's name and the list at `list` (base, step, base, step,
 * ...) describe. Its values are a userdata on top of the stack.
 */
static struct brim_scan_test check_test(lua_State *L, int rule, int list)
{
	static const char *const rules[] = { "any", "equal", "range", "one_of",
					     NULL };
	struct brim_scan_test t = {
		.rule = (enum brim_scan_rule)luaL_checkoption(L, rule, "any",
							      rules),
	};
	size_t n = lua_isnoneornil(L, list) ? 0 : lua_rawlen(L, list), k;
	struct brim_affine *v;

	luaL_argcheck(L, n % 2 == 0 && n <= 2048, list,
		      "a list of bases and steps");
	v = lua_newuserdatauv(L, n ? n / 2 * sizeof(*v) : 1, 0);
	t.values = v;
	t.value_count = n / 2;
	for (k = 0; k < n / 2; k++) {
		lua_rawgeti(L, list, (lua_Integer)(2 * k + 1));
		lua_rawgeti(L, list, (lua_Integer)(2 * k + 2));
		v[k].base = luaL_checkinteger(L, -2);
		v[k].step = luaL_checkinteger(L, -1);
		lua_pop(L, 2);
	}
	return t;
}

/*
 * scan:expect(off, width, "big"|"little", rule, values, structure, field)
 * -> true | nil, error
 */
static int scan_expect(lua_State *L)
{
	struct brim_scan *s = check_scan(L, 1);
	struct brim_scan_field f = check_field(L);
	struct brim_scan_test t;
	struct brim_err e = { 0 };

	f.structure = luaL_checkstring(L, 7);
	f.field = luaL_checkstring(L, 8);
	t = check_test(L, 5, 6);
	return brim__lua_done(L, brim_scan_expect(s, &f, &t, &e), &e);
}

/* The number that something got, or nil, error. */
static int push_number(lua_State *L, int ret, const struct brim_err *e)
{
	if (ret < 0)
		return brim__lua_fail(L, e, NULL);
	lua_pushinteger(L, ret);
	return 1;
}

/*
 * scan:accumulate(off, width, order, kind, name, rule?, values?, from?, to?,
 * bins?) -> number | nil, error
 */
static int scan_accumulate(lua_State *L)
{
	static const char *const kinds[] = { "sum",   "min",       "max",
					     "count", "histogram", NULL };
	struct brim_scan *s = check_scan(L, 1);
	struct brim_scan_field f = check_field(L);
	struct brim_scan_accumulator a = { .struct_bytes = sizeof(a) };
	struct brim_err e = { 0 };
	lua_Integer bins = luaL_optinteger(L, 11, 0);

	a.kind = BRIM_SCAN_SUM +
		 (enum brim_scan_kind)luaL_checkoption(L, 5, NULL, kinds);
	a.name = luaL_checkstring(L, 6);
	a.from = (uint64_t)luaL_optinteger(L, 9, 0);
	a.to = (uint64_t)luaL_optinteger(L, 10, 0);
	luaL_argcheck(L, bins >= 0 && bins <= UINT32_MAX, 11, "out of range");
	a.bins = (uint32_t)bins;
	a.test = check_test(L, 7, 8);
	f.field = a.name;
	return push_number(L, brim_scan_accumulate(s, &f, &a, &e), &e);
}

/* scan:column(off, width, order, name) -> number | nil, error */
static int scan_column(lua_State *L)
{
	struct brim_scan *s = check_scan(L, 1);
	struct brim_scan_field f = check_field(L);
	struct brim_err e = { 0 };

	f.field = luaL_checkstring(L, 5);
	return push_number(L, brim_scan_column(s, &f, &e), &e);
}

/*
 * scan:expect_bytes(off, string, structure, field) -> true | nil, error
 */
static int scan_expect_bytes(lua_State *L)
{
	struct brim_scan *s = check_scan(L, 1);
	uint64_t off_bytes = brim__lua_check_bytes(L, 2);
	size_t len;
	const char *bytes = luaL_checklstring(L, 3, &len);
	struct brim_err e = { 0 };

	luaL_argcheck(L, len <= UINT32_MAX, 3, "less than 4 GiB");
	return brim__lua_done(
		L,
		brim_scan_expect_bytes(s, off_bytes, bytes, (uint32_t)len,
				       luaL_checkstring(L, 4),
				       luaL_checkstring(L, 5), &e),
		&e);
}

/*
 * scan_open(scan, device, {offset_bytes=, stride_bytes=, first=, count=, and a
 * run's options}) -> run | nil, error
 */
static int scan_open(lua_State *L)
{
	static const char *const names[] = {
		"offset_bytes", "stride_bytes",        "first",
		"count",        BRIM__LUA_RUN_OPTIONS, NULL,
	};
	struct brim_scan *s = check_scan(L, 1);
	struct brim_device *d = brim__lua_check_device(L, 2);
	struct brim_run_options o;
	struct brim_device_info info;
	struct brim_err e = { 0 };
	struct brim__lua_run *h;
	struct brim_scan_range range;
	int64_t first, count;

	luaL_checktype(L, 3, LUA_TTABLE);
	brim__lua_check_options(L, 3, names);
	brim__lua_run_options(L, 3, &o);
	range.off_bytes = brim__lua_opt_bytes_field(L, 3, "offset_bytes", 0);
	range.stride_bytes = brim__lua_opt_bytes_field(L, 3, "stride_bytes", 0);
	first = brim__lua_opt_int_field(L, 3, "first", 0);
	luaL_argcheck(L, first >= 0, 3, "option 'first': at least 0");
	count = brim__lua_opt_int_field(L, 3, "count", 1);
	luaL_argcheck(L, count >= 1, 3, "option 'count': at least 1");
	range.first = (uint64_t)first;
	range.count = (uint64_t)count;
	h = brim__lua_run_push(L, 1, 2);
	brim_device_info(d, &info);
	if (brim_scan_open(&h->r, s, d, &range, &o, &e) < 0)
		return brim__lua_fail(L, &e, info.path);
	h->path = info.path;
	brim__lua_handles++;
	return 1;
}

static const luaL_Reg scan_methods[] = {
	{ "expect_layout", scan_expect_layout },
	{ "expect", scan_expect },
	{ "expect_bytes", scan_expect_bytes },
	{ "accumulate", scan_accumulate },
	{ "column", scan_column },
	{ NULL, NULL },
};

static const luaL_Reg scan_meta[] = {
	{ "__gc", scan_gc },
	{ "__tostring", scan_tostring },
	{ NULL, NULL },
};

static const luaL_Reg scan_functions[] = {
	{ "scan_new", scan_new },
	{ "scan_open", scan_open },
	{ NULL, NULL },
};

void brim__lua_open_scan(lua_State *L)
{
	luaL_newmetatable(L, BRIM_SCAN_MT);
	luaL_setfuncs(L, scan_meta, 0);
	luaL_newlib(L, scan_methods);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	luaL_setfuncs(L, scan_functions, 0);
}
