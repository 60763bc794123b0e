/* SPDX-License-Identifier: MIT */
/*
 * usage.c: how full a filesystem is, of what kind it is, and writing it back.
 * Called by lua_fileset.c. It knows no filesystem by name: the kernel names them
 * in /proc/self/mountinfo. Sizes are bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "brim_fill.h"
#include "internal.h"

/*
 * The type in a line of mountinfo (proc(5)): "36 35 98:0 /a /b rw - ext3 ...",
 * where options that may be missing end with " - ".
 */
static bool take_type(const char *line, char *out, size_t out_bytes)
{
	const char *at = strstr(line, " - ");
	size_t len;

	if (!at)
		return false;
	at += 3;
	len = strcspn(at, " \n");
	snprintf(out, out_bytes, "%.*s", (int)BRIM__MIN(len, out_bytes - 1),
		 at);
	return len > 0;
}

/* Finds the mount by its number (STATX_MNT_ID, Linux 5.8), or by device. */
static bool find_type(const struct statx *x, char *out, size_t out_bytes)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	unsigned long long id;
	unsigned int major, minor;
	char line[4096];
	bool is_found = false, is_it;

	if (!f)
		return false;
	while (!is_found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llu %*u %u:%u", &id, &major, &minor) != 3)
			continue;
		is_it = x->stx_mask & STATX_MNT_ID
				? id == x->stx_mnt_id
				: major == x->stx_dev_major &&
					  minor == x->stx_dev_minor;
		is_found = is_it && take_type(line, out, out_bytes);
	}
	fclose(f);
	return is_found;
}

int brim_usage(const char *path, struct brim_usage *out, struct brim_err *e)
{
	struct brim_usage u = { .struct_bytes = out->struct_bytes };
	struct statfs s;
	struct statx x;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return brim__err(e, -errno, "statfs", path);
	if (fstatfs(fd, &s) < 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0) {
		int ret = -errno;

		close(fd);
		return brim__err(e, ret, "statfs", path);
	}
	close(fd);
	if (!find_type(&x, u.type, sizeof(u.type)))
		snprintf(u.type, sizeof(u.type), "0x%lx",
			 (unsigned long)s.f_type);
	/* Blocks are counted in f_frsize; f_bsize is for I/O. */
	u.block_bytes = (uint64_t)(s.f_frsize ? s.f_frsize : s.f_bsize);
	u.size_bytes = (uint64_t)s.f_blocks * u.block_bytes;
	u.free_bytes = (uint64_t)s.f_bfree * u.block_bytes;
	u.avail_bytes = (uint64_t)s.f_bavail * u.block_bytes;
	u.files = s.f_files;
	u.free_files = s.f_ffree;
	u.device_major = x.stx_dev_major;
	u.device_minor = x.stx_dev_minor;
	memcpy(out, &u, BRIM__MIN(u.struct_bytes, sizeof(u)));
	return 0;
}

int brim_usage_sync(const char *path, struct brim_err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0)
		return brim__err(e, -errno, "sync", path);
	ret = syncfs(fd) < 0 ? -errno : 0;
	close(fd);
	return ret < 0 ? brim__err(e, ret, "sync", path) : 0;
}
