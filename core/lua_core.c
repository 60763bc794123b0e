/* SPDX-License-Identifier: MIT */
/*
 * lua_core.c: the module brim.core: collects what the other lua_x.c bind, and
 * adds what Lua needs to know about its own process. Durations are seconds.
 */
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"
#include "lua_util.h"
#include "main.h"

volatile sig_atomic_t brim__interrupted;
void (*brim__heed_sigterm)(int on);

/*
 * The peak of resident memory. Not ru_maxrss: that one is inherited through
 * fork and exec, so a large parent would be reported as our own use.
 */
static lua_Integer peak_rss_bytes(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/self/status", "re");
	struct rusage ru;

	if (f) {
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "VmHWM: %llu", &kib) == 1)
				break;
		fclose(f);
	}
	if (kib == 0 && getrusage(RUSAGE_SELF, &ru) == 0)
		kib = (unsigned long long)ru.ru_maxrss;
	return (lua_Integer)(kib * 1024);
}

static int core_process_usage(lua_State *L)
{
	uint64_t user_ns, system_ns;

	brim__cpu_ns(&user_ns, &system_ns);
	lua_createtable(L, 0, 3);
	lua_pushnumber(L, (lua_Number)user_ns / 1e9);
	lua_setfield(L, -2, "user_cpu_s");
	lua_pushnumber(L, (lua_Number)system_ns / 1e9);
	lua_setfield(L, -2, "system_cpu_s");
	lua_pushinteger(L, peak_rss_bytes());
	lua_setfield(L, -2, "peak_rss_bytes");
	return 1;
}

static int core_monotonic_s(lua_State *L)
{
	lua_pushnumber(L, (lua_Number)brim__now_ns() / 1e9);
	return 1;
}

/* time_ns() -> nanoseconds since 1970 */
static int core_time_ns(lua_State *L)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	lua_pushinteger(L, (lua_Integer)ts.tv_sec * 1000000000 + ts.tv_nsec);
	return 1;
}

/* sleep(seconds): ends early when a signal comes */
static int core_sleep(lua_State *L)
{
	lua_Number s = luaL_checknumber(L, 1);
	struct timespec ts;

	luaL_argcheck(L, s >= 0 && s <= 1e9, 1, "seconds, not negative");
	ts.tv_sec = (time_t)s;
	ts.tv_nsec = (long)((s - (lua_Number)ts.tv_sec) * 1e9);
	nanosleep(&ts, NULL);
	return 0;
}

static int core_isatty(lua_State *L)
{
	lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
	return 1;
}

/* Columns of the terminal at a descriptor; 80 where it does not say. */
static int core_columns(lua_State *L)
{
	struct winsize ws = { 0 };
	int ret = ioctl((int)luaL_checkinteger(L, 1), TIOCGWINSZ, &ws);

	lua_pushinteger(L, ret == 0 && ws.ws_col > 0 ? ws.ws_col : 80);
	return 1;
}

static int core_is_root(lua_State *L)
{
	lua_pushboolean(L, geteuid() == 0);
	return 1;
}

static int core_interrupted(lua_State *L)
{
	lua_pushboolean(L, brim__interrupted != 0);
	return 1;
}

/* interrupt_signal() -> its number, 0: none */
static int core_interrupt_signal(lua_State *L)
{
	lua_pushinteger(L, brim__interrupted);
	return 1;
}

/* heed_sigterm(on) -> is there a handler that can? */
static int core_heed_sigterm(lua_State *L)
{
	int on = lua_toboolean(L, 1);

	if (brim__heed_sigterm)
		brim__heed_sigterm(on);
	lua_pushboolean(L, brim__heed_sigterm != NULL);
	return 1;
}

static int core_clear_interrupt(lua_State *L)
{
	(void)L;
	brim__interrupted = 0;
	return 0;
}

/*
 * probe_uring() -> true | nil, reason. The bare system call: a container's
 * filter or a sysctl shows here and nowhere else.
 */
static int core_probe_uring(lua_State *L)
{
	struct io_uring_params params = { 0 };
	long fd = syscall(SYS_io_uring_setup, 1, &params);

	if (fd >= 0) {
		close((int)fd);
		lua_pushboolean(L, 1);
		return 1;
	}
	lua_pushnil(L);
	lua_pushfstring(L, "io_uring_setup: %s", strerror(errno));
	return 2;
}

static int core_open_handles(lua_State *L)
{
	lua_pushinteger(L, brim__lua_handles);
	return 1;
}

/* error_metatable() -> table */
static int core_error_metatable(lua_State *L)
{
	brim__lua_push_error_mt(L);
	return 1;
}

static const luaL_Reg functions[] = {
	{ "error_metatable", core_error_metatable },
	{ "process_usage", core_process_usage },
	{ "monotonic_s", core_monotonic_s },
	{ "time_ns", core_time_ns },
	{ "sleep", core_sleep },
	{ "isatty", core_isatty },
	{ "columns", core_columns },
	{ "is_root", core_is_root },
	{ "interrupted", core_interrupted },
	{ "interrupt_signal", core_interrupt_signal },
	{ "heed_sigterm", core_heed_sigterm },
	{ "clear_interrupt", core_clear_interrupt },
	{ "probe_uring", core_probe_uring },
	{ "open_handles", core_open_handles },
	{ NULL, NULL },
};

static void set_flag(lua_State *L, const char *name, int value)
{
	lua_pushboolean(L, value);
	lua_setfield(L, -2, name);
}

/* What this build was made with. */
static void push_features(lua_State *L)
{
#ifndef HAVE_ISAL
#define HAVE_ISAL 0
#endif
#ifndef HAVE_URING
#define HAVE_URING 0
#endif
#ifndef HAVE_BLKID
#define HAVE_BLKID 0
#endif
#ifndef HAVE_UUID
#define HAVE_UUID 0
#endif
#ifndef HAVE_EDIT
#define HAVE_EDIT 0
#endif
	lua_createtable(L, 0, 5);
	set_flag(L, "isal", HAVE_ISAL);
	set_flag(L, "uring", HAVE_URING);
	set_flag(L, "blkid", HAVE_BLKID);
	set_flag(L, "uuid", HAVE_UUID);
	set_flag(L, "edit", HAVE_EDIT);
}

int luaopen_brim_core(lua_State *L)
{
	luaL_checkversion(L);
	luaL_newlib(L, functions);
	lua_pushstring(L, brim_version());
	lua_setfield(L, -2, "version");
	push_features(L);
	lua_setfield(L, -2, "features");
	brim__lua_open_bytes(L);
	brim__lua_open_layout(L);
	brim__lua_open_stamp(L);
	brim__lua_open_plan(L);
	brim__lua_open_device(L);
	brim__lua_open_run(L);
	brim__lua_open_scan(L);
	brim__lua_open_extents(L);
	brim__lua_open_walk(L);
	brim__lua_open_table(L);
	brim__lua_open_fileset(L);
	brim__lua_open_stream(L);
	brim__lua_open_fill(L);
	brim__lua_open_verify(L);
	brim__lua_open_workload(L);
	brim__lua_open_trace(L);
	brim__lua_open_drive(L);
	brim__lua_open_uuid(L);
	brim__lua_open_edit(L);
	return 1;
}
