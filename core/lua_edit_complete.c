/* SPDX-License-Identifier: MIT */
/*
 * lua_edit_complete.c: the Tab key of the REPL: asks a Lua function for the
 * words that fit, adds what they have in common, or lists them. Called by
 * libedit while a line is read.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifdef HAVE_EDIT

#include "lua_edit.h"

/* Where the word before the cursor begins: a chain like brim.xfs.form */
static size_t word_start(const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == '_' || line[len - 1] == '.' ||
			   line[len - 1] == ':' ||
			   (line[len - 1] >= '0' && line[len - 1] <= '9') ||
			   (line[len - 1] >= 'A' && line[len - 1] <= 'Z') ||
			   (line[len - 1] >= 'a' && line[len - 1] <= 'z')))
		len--;
	return len;
}

/* How many bytes two texts have in common at their start. */
static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/*
 * Looks through the list on the top of the stack: how many texts begin with
 * the word, how long the longest is, and, to h->insert, what all of them have
 * after it.
 */
static int narrow(lua_State *L, struct ledit *h, const char *word, int *longest)
{
	lua_Integer i, n = luaL_len(L, -1);
	size_t len = strlen(word), rest = 0;
	int matches = 0;

	*longest = 0;
	for (i = 1; i <= n; i++, lua_pop(L, 1)) {
		const char *text = NULL;

		if (lua_geti(L, -1, i) == LUA_TSTRING)
			text = lua_tostring(L, -1);
		if (!text || strncmp(text, word, len) != 0)
			continue;
		if ((int)strlen(text) > *longest)
			*longest = (int)strlen(text);
		if (matches++ == 0) {
			snprintf(h->insert, sizeof(h->insert), "%s",
				 text + len);
			rest = strlen(h->insert);
		} else {
			rest = common(h->insert, text + len);
		}
		h->insert[rest] = '\0';
	}
	return matches;
}

/* Prints the list on the top of the stack in columns under the line. */
static void list_choices(lua_State *L, const char *word, int longest)
{
	lua_Integer i, n = luaL_len(L, -1);
	struct winsize ws = { 0 };
	int columns, k = 0;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || ws.ws_col == 0)
		ws.ws_col = 80;
	columns = ws.ws_col / (longest + 2);
	for (i = 1; i <= n; i++, lua_pop(L, 1)) {
		const char *text = NULL;

		if (lua_geti(L, -1, i) == LUA_TSTRING)
			text = lua_tostring(L, -1);
		if (!text || strncmp(text, word, strlen(word)) != 0)
			continue;
		if (columns < 2 || k++ % columns == 0)
			printf("\r\n%s", text);
		else
			printf("%*s%s", 2, "", text);
		if (columns >= 2 && k % columns)
			printf("%*s", longest - (int)strlen(text), "");
	}
	printf("\r\n");
	fflush(stdout);
}

/*
 * (edit, LineInfo) -> were choices printed? Calls complete(line up to the
 * cursor), which returns a list of texts and, if it likes, the byte where what
 * they replace begins. Runs under a pcall: nothing raises through libedit.
 */
static int complete_protected(lua_State *L)
{
	struct ledit *h = lua_touserdata(L, 1);
	const LineInfo *li = lua_touserdata(L, 2);
	size_t len = (size_t)(li->cursor - li->buffer), start;
	int longest, matches, listed;
	const char *line;

	line = lua_pushlstring(L, li->buffer, len);
	start = word_start(line, len);
	if (lua_getiuservalue(L, 1, 1) != LUA_TFUNCTION)
		return 0;
	lua_pushvalue(L, 3);
	lua_call(L, 1, 2);
	if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1 &&
	    (lua_Unsigned)lua_tointeger(L, -1) <= len + 1)
		start = (size_t)lua_tointeger(L, -1) - 1;
	lua_pop(L, 1);
	luaL_checktype(L, -1, LUA_TTABLE);
	matches = narrow(L, h, line + start, &longest);
	listed = matches > 1 && !*h->insert;
	if (listed)
		list_choices(L, line + start, longest);
	lua_pushboolean(L, listed);
	return 1;
}

unsigned char brim__edit_complete(EditLine *el, int key)
{
	struct ledit *h = brim__edit_of(el);
	const LineInfo *li = el_line(el);
	lua_State *L = h->L;
	int top = lua_gettop(L), ret, listed;

	(void)key;
	h->insert[0] = '\0';
	/* edit_readline left the handle at 1, and room for these. */
	lua_pushcfunction(L, complete_protected);
	lua_pushvalue(L, 1);
	lua_pushlightuserdata(L, (void *)li);
	ret = lua_pcall(L, 2, 1, 0);
	listed = ret == LUA_OK && lua_toboolean(L, -1);
	lua_settop(L, top);
	if (ret != LUA_OK)
		return CC_ERROR;
	if (listed)
		return CC_REDISPLAY;
	if (!*h->insert || el_insertstr(el, h->insert) < 0)
		return CC_REFRESH_BEEP;
	return CC_REFRESH;
}

#endif /* HAVE_EDIT */
