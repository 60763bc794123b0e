/* SPDX-License-Identifier: MIT */
/*
 * device_probe.c: whether a target is in use: mounted, swap, held by another
 * device, behind a loop device. From /proc and sysfs, so that the message can
 * name the user; O_EXCL knows more cases and names none. Called by
 * device_fd.c before anything is opened.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "device.h"

/* ----------------------------------------------- devices that belong on it */

/*
 * A target and everything on top of it: its partitions, what holds them
 * (device mapper, RAID), loop devices over it. More than these many are beyond
 * naming; O_EXCL refuses then.
 */
#define FAMILY_MAX 256

struct family {
	dev_t dev[FAMILY_MAX];
	bool is_user[FAMILY_MAX]; /* its existence makes the target busy */
	size_t n;
};

static bool family_has(const struct family *f, dev_t dev)
{
	size_t k;

	for (k = 0; k < f->n; k++)
		if (f->dev[k] == dev)
			return true;
	return false;
}

static void family_add(struct family *f, dev_t dev, bool is_user)
{
	if (f->n == FAMILY_MAX || family_has(f, dev))
		return;
	f->dev[f->n] = dev;
	f->is_user[f->n++] = is_user;
}

/* "sda1" for a device number, or "8:1" where sysfs does not know it. */
static const char *dev_name(dev_t dev, char *buf, size_t buf_bytes)
{
	char link[64], target[512];
	const char *base;
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev),
		 minor(dev));
	n = readlink(link, target, sizeof(target) - 1);
	if (n > 0) {
		target[n] = '\0';
		base = strrchr(target, '/');
		snprintf(buf, buf_bytes, "%.63s", base ? base + 1 : target);
	} else {
		snprintf(buf, buf_bytes, "%u:%u", major(dev), minor(dev));
	}
	return buf;
}

static int read_dev(const char *path, dev_t *out)
{
	unsigned int maj, min;
	FILE *f = fopen(path, "re");
	int ret = -ENOENT;

	if (!f)
		return ret;
	if (fscanf(f, "%u:%u", &maj, &min) == 2) {
		*out = makedev(maj, min);
		ret = 0;
	}
	fclose(f);
	return ret;
}

/* Adds what the entries of a sysfs directory (holders, partitions) lead to. */
static void add_entries(struct family *f, const char *dir, bool are_users)
{
	char path[600];
	struct dirent *ent;
	DIR *d = opendir(dir);
	dev_t dev;

	if (!d)
		return;
	while ((ent = readdir(d))) {
		if (ent->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/partition", dir,
			 ent->d_name);
		if (!are_users && access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s/dev", dir, ent->d_name);
		if (read_dev(path, &dev) == 0)
			family_add(f, dev, are_users);
	}
	closedir(d);
}

/* What stands on the members from `from` on, and on what that brings. */
static void add_upwards(struct family *f, size_t from)
{
	char dir[64];

	for (; from < f->n; from++) {
		unsigned int maj = major(f->dev[from]);
		unsigned int min = minor(f->dev[from]);

		snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", maj, min);
		add_entries(f, dir, false);
		snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u/holders", maj,
			 min);
		add_entries(f, dir, true);
	}
}

/* The first line of a file, or "" */
static void read_line(const char *path, char *buf, int buf_bytes)
{
	FILE *f = fopen(path, "re");

	if (!f || !fgets(buf, buf_bytes, f))
		buf[0] = '\0';
	if (f)
		fclose(f);
	buf[strcspn(buf, "\n")] = '\0';
}

/* Is the file behind a loop device the target, by the device's own word? */
static bool loop_says(const char *name, const struct stat *st)
{
	struct loop_info64 info;
	char path[300];
	bool says;
	int fd;

	snprintf(path, sizeof(path), "/dev/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	says = ioctl(fd, LOOP_GET_STATUS64, &info) == 0 &&
	       info.lo_device == st->st_dev && info.lo_inode == st->st_ino;
	close(fd);
	return says;
}

/*
 * Does a loop device lie over the target or over what stands on it? By the
 * path in sysfs; where that leads nowhere (deleted, another namespace) by
 * asking the device.
 */
static bool loop_covers(const char *name, const struct stat *st,
			const struct family *f)
{
	char path[300], backing[4096];
	struct stat b;

	snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", name);
	read_line(path, backing, (int)sizeof(backing));
	if (!*backing)
		return false;
	if (stat(backing, &b) < 0)
		return loop_says(name, st);
	if (S_ISBLK(b.st_mode))
		return family_has(f, b.st_rdev);
	return b.st_dev == st->st_dev && b.st_ino == st->st_ino;
}

static void add_loops(struct family *f, const struct stat *st)
{
	struct dirent *ent;
	char path[300];
	DIR *d = opendir("/sys/block");
	dev_t dev;

	if (!d)
		return;
	while ((ent = readdir(d))) {
		if (strncmp(ent->d_name, "loop", 4) ||
		    !loop_covers(ent->d_name, st, f))
			continue;
		snprintf(path, sizeof(path), "/sys/block/%s/dev", ent->d_name);
		if (read_dev(path, &dev) == 0)
			family_add(f, dev, true);
	}
	closedir(d);
}

static void family_find(struct family *f, const struct stat *st)
{
	size_t before;

	f->n = 0;
	if (S_ISBLK(st->st_mode))
		family_add(f, st->st_rdev, false);
	add_upwards(f, 0);
	do {
		before = f->n;
		add_loops(f, st);
		add_upwards(f, before);
	} while (f->n != before);
}

/* --------------------------------------------------------- mounts and swap */

/* /proc writes blanks and backslashes in paths as \040 and the like. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' &&
		    isdigit((unsigned char)s[2]) &&
		    isdigit((unsigned char)s[3])) {
			*to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 +
				       (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/*
 * "X is mounted on /mnt", or "X is in use: loop0p1 is mounted on /mnt" where
 * it is something above the target that is.
 */
static int busy(const char *shown, const struct stat *st, dev_t dev,
		const char *how, const char *where, struct brim_err *e)
{
	char name[64];

	if (S_ISBLK(st->st_mode) && st->st_rdev == dev)
		return brim__errf(e, -EBUSY, "open", "%s is %s%s", shown, how,
				  where);
	return brim__errf(e, -EBUSY, "open", "%s is in use: %s is %s%s", shown,
			  dev_name(dev, name, sizeof(name)), how, where);
}

/*
 * The device of one line of mountinfo, and the mount point in the line. btrfs
 * and others show an anonymous number; then the source names the device.
 */
static int mount_line(char *line, dev_t *dev, char **where)
{
	char *sep = strstr(line, " - "), *source, *save;
	unsigned int maj, min;
	struct stat st;
	int at = 0;

	if (!sep || sscanf(line, "%*d %*d %u:%u %*s %n", &maj, &min, &at) < 2 ||
	    !at)
		return -EINVAL;
	*dev = makedev(maj, min);
	strtok_r(sep + 3, " ", &save);
	source = strtok_r(NULL, " ", &save);
	if (maj == 0 && source && !strncmp(source, "/dev/", 5)) {
		unescape(source);
		if (stat(source, &st) == 0 && S_ISBLK(st.st_mode))
			*dev = st.st_rdev;
	}
	*where = strtok_r(line + at, " ", &save);
	if (!*where)
		return -EINVAL;
	unescape(*where);
	/* A message is one line, whatever a mount point is called. */
	for (at = 0; (*where)[at]; at++)
		if (iscntrl((unsigned char)(*where)[at]))
			(*where)[at] = '?';
	return 0;
}

static int check_mounts(const char *shown, const struct stat *st,
			const struct family *f, struct brim_err *e)
{
	FILE *m = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *where;
	size_t room = 0;
	int ret = 0;
	dev_t dev;

	if (!m)
		return 0; /* O_EXCL remains */
	while (ret == 0 && getline(&line, &room, m) > 0) {
		if (mount_line(line, &dev, &where) == 0 && family_has(f, dev))
			ret = busy(shown, st, dev, "mounted on ", where, e);
	}
	free(line);
	fclose(m);
	return ret;
}

static int check_swaps(const char *shown, const struct stat *st,
		       const struct family *f, struct brim_err *e)
{
	FILE *m = fopen("/proc/swaps", "re");
	char *line = NULL;
	size_t room = 0;
	struct stat s;
	int ret = 0;

	if (!m)
		return 0;
	while (ret == 0 && getline(&line, &room, m) > 0) {
		line[strcspn(line, " \t\n")] = '\0';
		unescape(line);
		if (line[0] != '/' || stat(line, &s) < 0)
			continue;
		if (S_ISBLK(s.st_mode) && family_has(f, s.st_rdev))
			ret = busy(shown, st, s.st_rdev, "used as swap", "", e);
		else if (s.st_dev == st->st_dev && s.st_ino == st->st_ino)
			ret = brim__errf(e, -EBUSY, "open",
					 "%s is used as swap", shown);
	}
	free(line);
	fclose(m);
	return ret;
}

/* Nothing is mounted, but devices stand on the target all the same. */
static int check_users(const char *shown, const struct family *f,
		       struct brim_err *e)
{
	char name[64];
	size_t k;

	for (k = 0; k < f->n && !f->is_user[k]; k++)
		;
	if (k == f->n)
		return 0;
	dev_name(f->dev[k], name, sizeof(name));
	if (!strncmp(name, "loop", 4))
		return brim__errf(e, -EBUSY, "open",
				  "%s is behind /dev/%s; detach that first: "
				  "losetup -d /dev/%s",
				  shown, name, name);
	return brim__errf(e, -EBUSY, "open", "%s is held by /dev/%s", shown,
			  name);
}

int brim__device_probe_busy(const char *shown, const struct stat *st,
			    struct brim_err *e)
{
	struct family f;
	int ret;

	family_find(&f, st);
	ret = check_mounts(shown, st, &f, e);
	if (ret == 0)
		ret = check_swaps(shown, st, &f, e);
	if (ret == 0)
		ret = check_users(shown, &f, e);
	return ret;
}
