/* SPDX-License-Identifier: MIT */
/*
 * main.c: the executable: a Lua state with brim.core and every Lua file of the
 * project inside, handed over to lua/brim/cli.lua, whose result is the exit
 * status. Owns the handler of SIGINT and SIGTERM. Everything, setup included, runs inside one
 * lua_pcall.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>

#include <lualib.h>

#include "lua_util.h"
#include "main.h"

/*
 * VM instructions after which Lua code that ignores an interrupt is stopped.
 * A running plan polls core.interrupted() long before and ends by itself.
 */
#define INTERRUPT_GRACE 1000000

static lua_State *main_state;

static void on_hook(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	lua_sethook(L, NULL, 0, 0);
	if (!brim__interrupted)
		return;
	lua_pushliteral(L, "interrupted");
	lua_error(L);
}

/* A second interrupt that nobody heeded lets the third one kill. */
static void on_signal(int sig)
{
	if (brim__interrupted)
		signal(sig, SIG_DFL);
	brim__interrupted = sig;
	lua_sethook(main_state, on_hook, LUA_MASKCOUNT, INTERRUPT_GRACE);
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };

	sigemptyset(&sa.sa_mask);
	sigaction(sig, &sa, NULL);
}

/* Only while there is something to undo: SIGTERM shall end the rest at once. */
static void heed_sigterm(int on)
{
	handle(SIGTERM, on ? on_signal : SIG_DFL);
}

static void catch_signals(lua_State *L)
{
	main_state = L;
	handle(SIGINT, on_signal);
	brim__heed_sigterm = heed_sigterm;
}

/* package.preload[name]: runs the module of upvalue 1. */
static int load_embedded(lua_State *L)
{
	const struct brim__embedded *m = lua_touserdata(L, lua_upvalueindex(1));
	char chunk[128];

	snprintf(chunk, sizeof(chunk), "=%s", m->name);
	/* Another Lua than the build's, loaded dynamically, may refuse code. */
	if (luaL_loadbufferx(L, m->code, m->code_bytes, chunk, "b") != LUA_OK &&
	    luaL_loadbufferx(L, m->text, m->len_bytes, chunk, "t") != LUA_OK)
		return lua_error(L);
	lua_pushstring(L, m->name);
	lua_pushstring(L, ":embedded:");
	lua_call(L, 2, 1);
	return 1;
}

/* Is there a file for the module on the path at index 1? */
static int has_override(lua_State *L, const char *name)
{
	int found;

	if (lua_isnil(L, 1))
		return 0;
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "searchpath");
	lua_pushstring(L, name);
	lua_pushvalue(L, 1);
	lua_call(L, 2, 1);
	found = !lua_isnil(L, -1);
	lua_pop(L, 2);
	return found;
}

/* brim.embedded: a table of the sources by name, for help and for recipes. */
static int open_embedded(lua_State *L)
{
	const struct brim__embedded *m;

	lua_newtable(L);
	for (m = brim__embedded; m->name; m++) {
		lua_pushlstring(L, m->text, m->len_bytes);
		lua_setfield(L, -2, m->name);
	}
	return 1;
}

static void preload_embedded(lua_State *L)
{
	const struct brim__embedded *m;

	luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
	for (m = brim__embedded; m->name; m++) {
		if (has_override(L, m->name))
			continue;
		lua_pushlightuserdata(L, (void *)m);
		lua_pushcclosure(L, load_embedded, 1);
		lua_setfield(L, -2, m->name);
	}
	lua_pushcfunction(L, luaopen_brim_core);
	lua_setfield(L, -2, "brim.core");
	lua_pushcfunction(L, open_embedded);
	lua_setfield(L, -2, "brim.embedded");
	lua_pop(L, 1);
}

/*
 * BRIM_LUA_PATH, in the form of LUA_PATH, is where a developer's files come
 * before the embedded ones. Leaves it, or nil, at index 1.
 */
static void push_override_path(lua_State *L)
{
	const char *path = getenv("BRIM_LUA_PATH");

	if (!path || !*path) {
		lua_pushnil(L);
		return;
	}
	lua_pushstring(L, path);
	lua_getglobal(L, "package");
	lua_getfield(L, -1, "path");
	lua_pushfstring(L, "%s;%s", path, lua_tostring(L, -1));
	lua_setfield(L, -3, "path");
	lua_pop(L, 2);
}

static void push_args(lua_State *L, int argc, char **argv)
{
	int i;

	lua_createtable(L, argc, 1);
	for (i = 0; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i);
	}
}

/* (argc, argv) -> exit status */
static int run(lua_State *L)
{
	int argc = (int)lua_tointeger(L, 1);
	char **argv = lua_touserdata(L, 2);

	lua_settop(L, 0);
	luaL_checkversion(L);
	luaL_openlibs(L);
	push_override_path(L);
	preload_embedded(L);
	lua_getglobal(L, "require");
	lua_pushliteral(L, "brim.cli");
	lua_call(L, 1, 1);
	lua_getfield(L, -1, "main");
	push_args(L, argc, argv);
	lua_call(L, 1, 1);
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int status = EXIT_FAILURE;

	if (!L) {
		fprintf(stderr, "brim: out of memory\n");
		return EXIT_FAILURE;
	}
	catch_signals(L);
	lua_pushcfunction(L, run);
	lua_pushinteger(L, argc);
	lua_pushlightuserdata(L, argv);
	if (lua_pcall(L, 2, 1, 0) == LUA_OK)
		status = (int)lua_tointeger(L, -1);
	else
		fprintf(stderr, "brim: %s\n", luaL_tolstring(L, -1, NULL));
	signal(SIGINT, SIG_IGN);
	lua_close(L);
	/* print flushes and looks at nothing: the stream remembers. */
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_SUCCESS) {
		fprintf(stderr, "brim: cannot write to stdout\n");
		status = EXIT_FAILURE;
	}
	return status;
}
