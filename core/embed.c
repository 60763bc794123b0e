/* SPDX-License-Identifier: MIT */
/*
 * embed.c: a tool of the build, run on the build machine: writes the Lua files
 * named on its command line to stdout as one C table for main.c, each as text
 * and compiled: parsing them would be half of what a short run costs.
 * Each argument is a path below lua/ or scripts/, from which the module's name
 * follows, or name=path.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#define NAME_MAX_BYTES 256

/* "lua/brim/xfs/init.lua" -> "brim.xfs"; "scripts/a.b.lua" -> scripts' name */
static int module_name(char *out, const char *path)
{
	const char *from = path;
	const char *prefix = "";
	size_t len;
	char *p;

	if (strncmp(path, "lua/", 4) == 0) {
		from += 4;
	} else if (strncmp(path, "scripts/", 8) == 0) {
		from += 8;
		prefix = "brim.scripts.";
	} else {
		return -1;
	}
	if (snprintf(out, NAME_MAX_BYTES, "%s%s", prefix, from) >=
	    NAME_MAX_BYTES)
		return -1;
	len = strlen(out);
	if (len < 5 || strcmp(out + len - 4, ".lua") != 0)
		return -1;
	out[len - 4] = '\0';
	for (p = out; *p; p++)
		if (*p == '/')
			*p = '.';
	len = strlen(out);
	if (len > 5 && strcmp(out + len - 5, ".init") == 0)
		out[len - 5] = '\0';
	return 0;
}

/* Bytes as the initialiser of an array; a closing zero is not counted. */
static void emit_array(const char *what, int index, const char *p, size_t len)
{
	size_t n;

	printf("static const char %s_%d[] = {", what, index);
	for (n = 0; n < len; n++)
		printf("%s%d,", n % 16 ? "" : "\n", (signed char)p[n]);
	printf("0\n};\n");
}

static char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	char *buf = NULL;
	long size = -1;

	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size >= 0)
		buf = malloc((size_t)size + 1);
	if (buf) {
		rewind(f);
		*len = fread(buf, 1, (size_t)size, f);
	} else {
		fprintf(stderr, "embed: %s: %s\n", path, strerror(errno));
	}
	if (f)
		fclose(f);
	return buf;
}

struct code {
	char *p;
	size_t len;
};

static int append(lua_State *L, const void *p, size_t len, void *ctx)
{
	struct code *c = ctx;
	char *grown = realloc(c->p, c->len + len);

	(void)L;
	if (!grown)
		return 1;
	memcpy(grown + c->len, p, len);
	c->p = grown;
	c->len += len;
	return 0;
}

/* The text for help and the compiled code, with its lines, for running. */
static int emit(lua_State *L, const char *name, const char *path, int index)
{
	struct code code = { 0 };
	char chunk[NAME_MAX_BYTES + 1];
	size_t len = 0;
	char *text = read_file(path, &len);
	int ret = -1;

	if (!text)
		return -1;
	snprintf(chunk, sizeof(chunk), "=%s", name);
	if (luaL_loadbufferx(L, text, len, chunk, "t") != LUA_OK ||
	    lua_dump(L, append, &code, 0) != 0) {
		fprintf(stderr, "embed: %s\n", lua_tostring(L, -1));
	} else {
		emit_array("text", index, text, len);
		emit_array("code", index, code.p, code.len);
		ret = 0;
	}
	lua_settop(L, 0);
	free(code.p);
	free(text);
	return ret;
}

static const char *split(char *name, const char *arg)
{
	const char *eq = strchr(arg, '=');

	if (eq) {
		snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(eq - arg), arg);
		return eq + 1;
	}
	return module_name(name, arg) == 0 ? arg : NULL;
}

int main(int argc, char **argv)
{
	char name[NAME_MAX_BYTES];
	lua_State *L = luaL_newstate();
	const char *path;
	int i;

	if (!L)
		return 1;
	printf("/* Made by embed.c; do not edit. */\n#include \"main.h\"\n");
	for (i = 1; i < argc; i++) {
		path = split(name, argv[i]);
		if (!path) {
			fprintf(stderr, "embed: what is '%s'?\n", argv[i]);
			return 1;
		}
		if (emit(L, name, path, i) < 0)
			return 1;
	}
	printf("const struct brim__embedded brim__embedded[] = {\n");
	for (i = 1; i < argc; i++) {
		split(name, argv[i]);
		printf("\t{ \"%s\", text_%d, sizeof(text_%d) - 1,\n"
		       "\t  code_%d, sizeof(code_%d) - 1 },\n",
		       name, i, i, i, i);
	}
	printf("\t{ 0, 0, 0, 0, 0 },\n};\n");
	lua_close(L);
	return 0;
}
