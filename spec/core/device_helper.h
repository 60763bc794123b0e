/* SPDX-License-Identifier: MIT */
/*
 * device_helper.h: what test_device*.c share: temporary directories, files in
 * them, opening and being refused. Sizes are bytes.
 */
#ifndef BRIM_DEVICE_HELPER_H
#define BRIM_DEVICE_HELPER_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "brim.h"
#include "tap.h"

#define DIR_BYTES 256
#define PATH_BYTES 512
#define MIB (1u << 20)
#define TOP ((uint64_t)BRIM_MAX_BYTES)
#define WRITE BRIM_DEVICE_WRITE
#define CREATE (BRIM_DEVICE_WRITE | BRIM_DEVICE_CREATE)
#define FORCE (BRIM_DEVICE_WRITE | BRIM_DEVICE_FORCE)

static char dir[DIR_BYTES];     /* on disk, where O_DIRECT works */
static char big_dir[DIR_BYTES]; /* on tmpfs, which holds 2^63-1 bytes, or "" */
static char where[PATH_BYTES];  /* what at() gave last */
static struct brim_err err;     /* what open_at() got last */

static inline const char *at(const char *base, const char *name)
{
	snprintf(where, sizeof(where), "%s/%s", base, name);
	return where;
}

static int open_at(struct brim_device **d, const char *path, uint32_t flags,
		   uint64_t min_size_bytes)
{
	struct brim_device_options o = {
		.struct_bytes = sizeof(o),
		.flags = flags,
		.min_size_bytes = min_size_bytes,
	};

	memset(&err, 0, sizeof(err));
	return brim_device_open(d, path, &o, &err);
}

/* Opening must fail with this code and a line that holds `says`. */
static void refused(const char *name, const char *path, uint32_t flags,
		    uint64_t min_size_bytes, int code, const char *says)
{
	struct brim_device *d = (void *)1;
	int ret = open_at(&d, path, flags, min_size_bytes);

	ok(ret == code && err.code == code && !d && strstr(err.msg, says) &&
		   !strchr(err.msg, '\n'),
	   name, "%d '%s'", ret, err.msg);
	if (ret == 0)
		brim_device_close(d);
}

static int64_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -1 : st.st_size;
}

static void make(const char *path, int64_t size, const void *head, size_t len)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || ftruncate(fd, size) < 0 ||
	    pwrite(fd, head, len, 0) != (ssize_t)len) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static int run(const char *format, const char *arg)
{
	char cmd[PATH_BYTES + 256];

	snprintf(cmd, sizeof(cmd), format, arg);
	return system(cmd);
}

/* Makes both directories; they go away at exit. */
static void remove_dirs(void)
{
	run("rm -rf '%s'", dir);
	if (*big_dir)
		run("rm -rf '%s'", big_dir);
}

static void begin(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.200s/brim-XXXXXX", tmp ? tmp : "/tmp");
	strcpy(big_dir, "/dev/shm/brim-XXXXXX");
	if (!mkdtemp(dir)) {
		perror(dir);
		exit(1);
	}
	if (!mkdtemp(big_dir))
		*big_dir = '\0';
	atexit(remove_dirs);
}

#endif /* BRIM_DEVICE_HELPER_H */
