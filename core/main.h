/* SPDX-License-Identifier: MIT */
/*
 * main.h: what main.c, lua_core.c and the generated embedded.c share.
 */
#ifndef BRIM_MAIN_H
#define BRIM_MAIN_H

#include <signal.h>
#include <stddef.h>

/* A Lua file compiled in; the table ends with a NULL name. */
struct brim__embedded {
	const char *name; /* as require takes it */
	const char *text;
	size_t len_bytes;
	const char *code; /* the same, compiled */
	size_t code_bytes;
};

extern const struct brim__embedded brim__embedded[];

/*
 * The signal that asked for an end, 0: none. Set by the executable's handler,
 * read and cleared by lua_core.c.
 */
extern volatile sig_atomic_t brim__interrupted;

/* Makes SIGTERM heeded like SIGINT, or deadly again; NULL outside of brim. */
extern void (*brim__heed_sigterm)(int on);

#endif /* BRIM_MAIN_H */
