/* SPDX-License-Identifier: MIT */
/*
 * lua_scan_run.c: what runs of scans give Lua beside what all runs do: kinds of
 * mismatches, totals, rows. Methods of lua_run.c's handle, which registers
 * them. Values are unsigned: those from 2^63 on are negative in Lua.
 */
#include <string.h>

#include "lua_run.h"

static void set_int(lua_State *L, const char *name, uint64_t value)
{
	lua_pushinteger(L, (lua_Integer)value);
	lua_setfield(L, -2, name);
}

static void set_string(lua_State *L, const char *name, const char *value)
{
	lua_pushstring(L, value);
	lua_setfield(L, -2, name);
}

/* run:kind(k) -> table | nil: the k-th kind of mismatches, from 1 */
static int run_kind(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	lua_Integer k = luaL_checkinteger(L, 2);
	struct brim_mismatch_kind m;

	luaL_argcheck(L, k >= 1, 2, "kinds are counted from 1");
	if (brim_run_mismatch_kind(h->r, (size_t)k - 1, &m) < 0)
		return 0;
	lua_createtable(L, 0, 6);
	set_string(L, "piece", m.piece);
	set_string(L, "what", m.what);
	set_string(L, "rule", m.rule);
	set_int(L, "count", m.count);
	set_int(L, "group", m.group);
	set_int(L, "off_bytes", m.off_bytes);
	return 1;
}

/* As an integer where it fits one, and always as text. */
static void push_sum(lua_State *L, const struct brim_scan_total *t)
{
	unsigned __int128 n = (unsigned __int128)t->sum_high << 64 | t->sum_low;
	char text[48], *at = text + sizeof(text);

	if (!t->sum_high && t->sum_low <= INT64_MAX)
		set_int(L, "sum", t->sum_low);
	*--at = '\0';
	do
		*--at = (char)('0' + (int)(n % 10));
	while ((n /= 10));
	set_string(L, "decimal", at);
}

/* The bins as a list of { first, last, count }. */
static void push_bins(lua_State *L, struct brim_run *r, size_t k,
		      const struct brim_scan_total *t)
{
	uint64_t first, last;
	uint32_t b;

	lua_createtable(L, (int)t->bins, 0);
	for (b = 0; b < t->bins; b++) {
		if (brim_scan_bin(r, k, b, &first, &last) < 0)
			break;
		lua_createtable(L, 0, 3);
		set_int(L, "first", first);
		set_int(L, "last", last);
		set_int(L, "count", t->bin_counts[b]);
		lua_rawseti(L, -2, (lua_Integer)b + 1);
	}
	lua_setfield(L, -2, "bins");
	set_int(L, "below", t->below);
	set_int(L, "above", t->above);
}

/* run:total(k) -> table | nil: the k-th accumulator, from 0 */
static int run_total(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	lua_Integer k = luaL_checkinteger(L, 2);
	struct brim_scan_total t = { .struct_bytes = sizeof(t) };

	luaL_argcheck(L, k >= 0, 2, "accumulators are counted from 0");
	if (brim_scan_total(h->r, (size_t)k, &t) < 0)
		return 0;
	lua_createtable(L, 0, 8);
	set_string(L, "name", t.name);
	set_int(L, "seen", t.seen);
	if (t.kind == BRIM_SCAN_SUM) {
		push_sum(L, &t);
	} else if (t.kind == BRIM_SCAN_COUNT) {
		set_int(L, "count", t.count);
	} else if (t.kind == BRIM_SCAN_HISTOGRAM) {
		push_bins(L, h->r, (size_t)k, &t);
	} else {
		set_int(L, "value", t.value);
		set_int(L, "group", t.group);
		set_int(L, "off_bytes", t.off_bytes);
	}
	return 1;
}

/* run:collect(row_count) -> true | nil, error: before the first step */
static int run_collect(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	lua_Integer n = luaL_checkinteger(L, 2);
	struct brim_err e = { 0 };

	luaL_argcheck(L, n >= 0 && n <= UINT32_MAX, 2, "out of range");
	if (brim_scan_collect(h->r, (uint32_t)n, &e) < 0)
		return brim__lua_fail(L, &e, h->path);
	lua_pushboolean(L, 1);
	return 1;
}

/* run:rows(max_rows) -> first, count, list of columns | nil: none for now */
static int run_rows(lua_State *L)
{
	struct brim__lua_run *h = brim__lua_check_run(L);
	lua_Integer max = luaL_checkinteger(L, 2);
	struct brim_scan_rows rows = { .struct_bytes = sizeof(rows) };
	size_t c, i;

	luaL_argcheck(L, max >= 1 && max <= 1 << 20, 2, "1 .. 2^20");
	if (!brim_scan_take(h->r, (size_t)max, &rows))
		return 0;
	lua_pushinteger(L, (lua_Integer)rows.first);
	lua_pushinteger(L, (lua_Integer)rows.rows);
	lua_createtable(L, (int)rows.columns, 0);
	for (c = 0; c < rows.columns; c++) {
		lua_createtable(L, (int)rows.rows, 0);
		for (i = 0; i < rows.rows; i++) {
			uint64_t v = rows.values[i * rows.columns + c];

			lua_pushinteger(L, (lua_Integer)v);
			lua_rawseti(L, -2, (lua_Integer)i + 1);
		}
		lua_rawseti(L, -2, (lua_Integer)c + 1);
	}
	return 3;
}

const luaL_Reg brim__lua_scan_run_methods[] = {
	{ "kind", run_kind },
	{ "total", run_total },
	{ "collect", run_collect },
	{ "rows", run_rows },
	{ NULL, NULL },
};
