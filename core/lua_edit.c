/* SPDX-License-Identifier: MIT */
/*
 * lua_edit.c: line editing for the REPL, over libedit: history, completion
 * (lua_edit_complete.c), Ctrl-C that drops the line and not the process.
 * Without libedit, or without a terminal, edit_open returns nil and an error,
 * and the REPL reads plain lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "lua_util.h"

#define EDIT_MT "brim.edit"

static int open_failed(lua_State *L, int code, const char *why)
{
	struct brim_err e = { .code = code, .op = "edit" };

	snprintf(e.msg, sizeof(e.msg), "%s", why);
	return brim__lua_fail(L, &e, NULL);
}

#ifndef HAVE_EDIT

static int edit_open(lua_State *L)
{
	return open_failed(L, -ENOSYS, "built without libedit");
}

void brim__lua_open_edit(lua_State *L)
{
	lua_pushcfunction(L, edit_open);
	lua_setfield(L, -2, "edit_open");
}

#else

#include "lua_edit.h"

#define HISTORY_LINES 2000

/* ----------------------------------------------------------------- signals */

/*
 * Signals reach the waiting reader through a pipe, whichever thread takes
 * them. One line is read at a time, so one pipe will do.
 */
static int signal_pipe[2] = { -1, -1 };

static const int SIGNALS[] = { SIGINT, SIGWINCH, SIGCONT };
#define SIGNAL_COUNT 3

static void on_signal(int sig)
{
	unsigned char c = (unsigned char)sig;
	int saved = errno;
	ssize_t n = write(signal_pipe[1], &c, 1);

	(void)n; /* a full pipe wakes the reader just as well */
	errno = saved;
}

static int catch_signals(struct sigaction old[SIGNAL_COUNT])
{
	struct sigaction sa = { .sa_handler = on_signal };
	int k;

	if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	sigemptyset(&sa.sa_mask);
	for (k = 0; k < SIGNAL_COUNT; k++)
		sigaction(SIGNALS[k], &sa, &old[k]);
	return 0;
}

static void release_signals(const struct sigaction old[SIGNAL_COUNT])
{
	int k;

	for (k = 0; k < SIGNAL_COUNT; k++)
		sigaction(SIGNALS[k], &old[k], NULL);
	close(signal_pipe[0]);
	close(signal_pipe[1]);
	signal_pipe[0] = signal_pipe[1] = -1;
}

/* -1 when the line is to be dropped. */
static int take_signal(struct ledit *h)
{
	unsigned char sig = 0;

	if (read(signal_pipe[0], &sig, 1) != 1)
		return 0;
	if (sig == SIGINT) {
		h->interrupted = 1;
		return -1;
	}
	if (sig == SIGCONT) { /* the shell has had the terminal */
		el_set(h->el, EL_PREP_TERM, 0);
		el_set(h->el, EL_PREP_TERM, 1);
	}
	el_resize(h->el);
	el_set(h->el, EL_REFRESH);
	return 0;
}

/* ------------------------------------------------- what libedit calls back */

static char *give_prompt(EditLine *el)
{
	return (char *)brim__edit_of(el)->prompt;
}

static int wait_input(struct ledit *h)
{
	struct pollfd p[2] = {
		{ .fd = signal_pipe[0], .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	for (;;) {
		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if ((p[0].revents & POLLIN) && take_signal(h) < 0)
			return -1;
		if (p[1].revents)
			return 0;
	}
}

/* One character: 1, 0 at the end of input, -1 on errors and interrupts. */
static int read_char(EditLine *el, wchar_t *out)
{
	struct ledit *h = brim__edit_of(el);
	char buf[MB_LEN_MAX];
	size_t n = 0, used;
	mbstate_t state;
	ssize_t got;

	for (;;) {
		if (wait_input(h) < 0)
			return -1;
		got = read(STDIN_FILENO, buf + n, 1);
		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got <= 0)
			return (int)got;
		memset(&state, 0, sizeof(state));
		used = mbrtowc(out, buf, ++n, &state);
		if (used == (size_t)-2 && n < sizeof(buf))
			continue;
		if (used != (size_t)-1 && used != (size_t)-2)
			return 1;
		n = 0; /* no character of this locale: dropped */
	}
}

/* ----------------------------------------------------------------- reading */

static struct ledit *check_edit(lua_State *L)
{
	struct ledit *h = luaL_checkudata(L, 1, EDIT_MT);

	if (!h->el)
		luaL_error(L, "edit is closed");
	if (h->L)
		luaL_error(L, "edit is reading a line");
	return h;
}

static const char *read_line(lua_State *L, struct ledit *h, int *len)
{
	struct sigaction old[SIGNAL_COUNT];
	locale_t outer;
	const char *line;

	*len = 0;
	h->interrupted = 0;
	if (catch_signals(old) < 0)
		return NULL;
	h->L = L;
	outer = uselocale(h->locale);
	el_resize(h->el);
	fflush(stdout);
	line = el_gets(h->el, len);
	uselocale(outer);
	h->L = NULL;
	release_signals(old);
	return line;
}

/*
 * edit:readline(prompt?) -> line without its end; nil at the end of input;
 * "", "interrupted" when Ctrl-C dropped the line
 */
static int edit_readline(lua_State *L)
{
	struct ledit *h = check_edit(L);
	const char *line;
	int len;

	lua_settop(L, 2);
	if (lua_isnil(L, 2)) {
		lua_getiuservalue(L, 1, 2);
		lua_replace(L, 2);
	}
	h->prompt = luaL_checkstring(L, 2);
	luaL_checkstack(L, 8, NULL);
	line = read_line(L, h, &len);
	if (h->interrupted) {
		printf("^C\n");
		lua_pushliteral(L, "");
		lua_pushliteral(L, "interrupted");
		return 2;
	}
	if (!line || len < 0) {
		lua_pushnil(L);
		return 1;
	}
	if (len > 0 && line[len - 1] == '\n')
		len--;
	lua_pushlstring(L, line, (size_t)len);
	return 1;
}

/* edit:add_history(line) -> true; blank lines and repetitions are left out */
static int edit_add_history(lua_State *L)
{
	struct ledit *h = check_edit(L);
	const char *line = luaL_checkstring(L, 2);
	HistEvent ev;

	if (line[strspn(line, " \t\n")]) {
		history(h->history, &ev, H_ENTER, line);
		/* At once: a killed REPL loses nothing. */
		if (h->history_path)
			history(h->history, &ev, H_SAVE, h->history_path);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* ----------------------------------------------------- opening and closing */

static void release(struct ledit *h)
{
	if (h->el)
		el_end(h->el);
	if (h->history)
		history_end(h->history);
	if (h->locale)
		freelocale(h->locale);
	free(h->history_path);
	memset(h, 0, sizeof(*h));
}

/* close, __close and __gc: any number of times */
static int edit_close(lua_State *L)
{
	struct ledit *h = luaL_checkudata(L, 1, EDIT_MT);

	if (h->el && !h->L) {
		release(h);
		brim__lua_handles--;
	}
	lua_pushboolean(L, 1);
	return 1;
}

static int edit_tostring(lua_State *L)
{
	struct ledit *h = luaL_checkudata(L, 1, EDIT_MT);

	lua_pushstring(L, h->el ? "brim.edit" : "brim.edit (closed)");
	return 1;
}

/*
 * The environment's characters, without setlocale, which would change them for
 * all of the process. No locale at all is most likely a bare container with a
 * UTF-8 terminal.
 */
static locale_t open_locale(void)
{
	locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);

	if (l && strcmp(nl_langinfo_l(CODESET, l), "ANSI_X3.4-1968") != 0)
		return l;
	if (l)
		freelocale(l);
	l = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return l ? l : newlocale(LC_CTYPE_MASK, "C", (locale_t)0);
}

static void bind_keys(EditLine *el)
{
	static const char *const KEYS[][2] = {
		{ "^I", "brim-complete" },
		{ "^R", "em-inc-search-prev" },
		{ "\\e[3~", "ed-delete-next-char" }, /* Delete */
		{ "\\e[H", "ed-move-to-beg" },       /* Home */
		{ "\\e[1~", "ed-move-to-beg" },
		{ "\\e[F", "ed-move-to-end" }, /* End */
		{ "\\e[4~", "ed-move-to-end" },
		{ "\\e[1;5C", "em-next-word" }, /* Ctrl-Right */
		{ "\\e[1;5D", "ed-prev-word" }, /* Ctrl-Left */
	};
	size_t k;

	for (k = 0; k < sizeof(KEYS) / sizeof(*KEYS); k++)
		el_set(el, EL_BIND, KEYS[k][0], KEYS[k][1], NULL);
}

static int acquire(struct ledit *h, const char *history_path)
{
	locale_t outer;
	HistEvent ev;

	h->locale = open_locale();
	h->history = history_init();
	h->history_path = history_path ? strdup(history_path) : NULL;
	if (!h->locale || !h->history || (history_path && !h->history_path))
		return -ENOMEM;
	history(h->history, &ev, H_SETSIZE, HISTORY_LINES);
	history(h->history, &ev, H_SETUNIQUE, 1);
	if (history_path)
		history(h->history, &ev, H_LOAD, history_path);
	outer = uselocale(h->locale);
	h->el = el_init("brim", stdin, stdout, stderr);
	if (h->el) {
		el_set(h->el, EL_CLIENTDATA, h);
		el_set(h->el, EL_PROMPT, give_prompt);
		el_set(h->el, EL_GETCFN, read_char);
		el_set(h->el, EL_HIST, history, h->history);
		el_set(h->el, EL_EDITOR, "emacs");
		/* The narrow el_set copies these two and loses the copies. */
		el_wset(h->el, EL_ADDFN, L"brim-complete", L"Complete the word",
			brim__edit_complete);
		bind_keys(h->el);
		el_source(h->el, NULL); /* the user's ~/.editrc */
	}
	uselocale(outer);
	return h->el ? 0 : -ENOMEM;
}

/* edit_open{history_path=, prompt=, complete=} -> edit | nil, error */
static int edit_open(lua_State *L)
{
	static const char *const NAMES[] = { "history_path", "prompt",
					     "complete", NULL };
	const char *history_path, *prompt;
	struct ledit *h;

	lua_settop(L, 1);
	brim__lua_check_options(L, 1, NAMES);
	history_path = brim__lua_opt_string_field(L, 1, "history_path", NULL);
	prompt = brim__lua_opt_string_field(L, 1, "prompt", "> ");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return open_failed(L, -ENOTTY, "not on a terminal");
	h = lua_newuserdatauv(L, sizeof(*h), 2);
	memset(h, 0, sizeof(*h));
	luaL_setmetatable(L, EDIT_MT);
	lua_pushstring(L, prompt);
	lua_setiuservalue(L, 2, 2);
	if (!lua_isnil(L, 1)) {
		lua_getfield(L, 1, "complete");
		lua_setiuservalue(L, 2, 1);
	}
	if (acquire(h, history_path) < 0) {
		release(h);
		return open_failed(L, -ENOMEM, "line editing cannot start");
	}
	brim__lua_handles++;
	return 1;
}

static const luaL_Reg METHODS[] = {
	{ "readline", edit_readline },
	{ "add_history", edit_add_history },
	{ "close", edit_close },
	{ NULL, NULL },
};

static const luaL_Reg META[] = {
	{ "__close", edit_close },
	{ "__gc", edit_close },
	{ "__tostring", edit_tostring },
	{ NULL, NULL },
};

void brim__lua_open_edit(lua_State *L)
{
	luaL_newmetatable(L, EDIT_MT);
	luaL_setfuncs(L, META, 0);
	luaL_newlib(L, METHODS);
	lua_setfield(L, -2, "__index");
	lua_pop(L, 1);
	lua_pushcfunction(L, edit_open);
	lua_setfield(L, -2, "edit_open");
}

#endif
