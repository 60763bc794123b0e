/* SPDX-License-Identifier: MIT */
/*
 * lua_edit.h: the handle that lua_edit.c and lua_edit_complete.c share.
 */
#ifndef BRIM_LUA_EDIT_H
#define BRIM_LUA_EDIT_H

#include <histedit.h>
#include <locale.h>

#include "lua_util.h"

#define INSERT_BYTES 256

/* User values: 1 the completion function, 2 the default prompt. */
struct ledit {
	EditLine *el; /* NULL: closed */
	History *history;
	locale_t locale; /* LC_CTYPE of the environment, for this alone */
	char *history_path;
	/* Only while a line is being read: */
	lua_State *L;
	const char *prompt;
	int interrupted;
	char insert[INSERT_BYTES]; /* what completion found to add */
};

static inline struct ledit *brim__edit_of(EditLine *el)
{
	void *h = NULL;

	el_get(el, EL_CLIENTDATA, &h);
	return h;
}

/* The editor's function for Tab. */
unsigned char brim__edit_complete(EditLine *el, int key);

#endif /* BRIM_LUA_EDIT_H */
