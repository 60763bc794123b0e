/* SPDX-License-Identifier: MIT */
/*
 * embed.c: a tool of the build, run on the build machine: writes the Lua files
 * named on its command line to stdout as one C table for main.c.
 * Each argument is a path below lua/ or scripts/, from which the module's name
 * follows, or name=path.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static int emit_bytes(const char *path, int index)
{
	FILE *f = fopen(path, "rb");
	int c;
	unsigned int n = 0;

	if (!f) {
		fprintf(stderr, "embed: %s: %s\n", path, strerror(errno));
		return -1;
	}
	printf("static const char text_%d[] = {", index);
	while ((c = fgetc(f)) != EOF)
		printf("%s%d,", n++ % 16 ? "" : "\n", (signed char)c);
	/* Not counted: keeps the array of an empty file legal. */
	printf("0\n};\n");
	fclose(f);
	return 0;
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
	const char *path;
	int i;

	printf("/* Made by embed.c; do not edit. */\n#include \"main.h\"\n");
	for (i = 1; i < argc; i++) {
		path = split(name, argv[i]);
		if (!path) {
			fprintf(stderr, "embed: what is '%s'?\n", argv[i]);
			return 1;
		}
		if (emit_bytes(path, i) < 0)
			return 1;
	}
	printf("const struct brim__embedded brim__embedded[] = {\n");
	for (i = 1; i < argc; i++) {
		split(name, argv[i]);
		printf("\t{ \"%s\", text_%d, sizeof(text_%d) - 1 },\n", name, i,
		       i);
	}
	printf("\t{ 0, 0, 0 },\n};\n");
	return 0;
}
