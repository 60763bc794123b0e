/* SPDX-License-Identifier: MIT */
/*
 * test_device_refuse.c: targets that carry something (by libblkid), and block
 * devices: loop devices made here, detached by the kernel with their last
 * descriptor, also when this program dies. The latter need root.
 */
#include <linux/blkpg.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <time.h>

#include "device_helper.h"

/* What the library can say depends on how it was built. */
#ifdef HAVE_BLKID
#define HOLDS(what) ("holds " what)
#else
#define HOLDS(what) "holds data"
#endif

static int have(const char *tool)
{
	return run("command -v %s >/dev/null 2>&1", tool) == 0;
}

/* -------------------------------------------------------------- signatures */

/* One primary partition at sector 2048, as the oldest table has it. */
static void make_dos(const char *path, int64_t size)
{
	uint8_t mbr[512] = { [446 + 4] = 0x83,
			     [446 + 9] = 8,
			     [446 + 13] = 64,
			     [510] = 0x55,
			     [511] = 0xaa };

	make(path, size, mbr, sizeof(mbr));
}

static void test_force(void)
{
	char path[PATH_BYTES];
	struct brim_device *d;

	snprintf(path, sizeof(path), "%s/dos", dir);
	make_dos(path, 8 * MIB);
	refused("partition table", path, WRITE, 16 * MIB, -EEXIST,
		"--force overwrites it");
	ok(file_size(path) == 8 * MIB, "a refusal extends nothing", " ");
	ok(open_at(&d, path, 0, 0) == 0, "reading is no matter", "%s", err.msg);
	brim_device_close(d);
	ok(open_at(&d, path, FORCE, 16 * MIB) == 0 &&
		   file_size(path) == 16 * MIB,
	   "forced", "%s", err.msg);
	brim_device_close(d);
}

/* A tool writes something into a file; opening must name it. */
static void check_signature(const char *tool, const char *command,
			    const char *says)
{
	char path[PATH_BYTES], name[64];

	snprintf(path, sizeof(path), "%s/%s", *big_dir ? big_dir : dir, tool);
	snprintf(name, sizeof(name), "signature of %s", tool);
	if (!have(tool)) {
		skip(name, "no such tool");
		return;
	}
	make(path, 400 * MIB, "", 0);
	ok(run(command, path) == 0, tool, "%s", command);
	refused(name, path, WRITE, 0, -EEXIST, says);
	unlink(path);
}

static void test_signatures(void)
{
	check_signature("mkfs.ext4", "mkfs.ext4 -q -L foo '%s'",
			HOLDS("an ext4 filesystem labelled 'foo'; --force"));
	check_signature("mkfs.xfs", "mkfs.xfs -q '%s'",
			HOLDS("an xfs filesystem; --force"));
	check_signature("mkfs.f2fs", "mkfs.f2fs -q -l 'a b' '%s' >/dev/null",
			HOLDS("an f2fs filesystem labelled 'a b'; --force"));
	check_signature("mkswap", "mkswap -q '%s' >/dev/null 2>&1",
			HOLDS("a swap signature; --force"));
	check_signature("sfdisk", "echo label:gpt | sfdisk -q '%s'",
			HOLDS("a gpt partition table; --force"));
}

/* Probing must take no time on a sparse file, whatever its size. */
static void test_huge(void)
{
	struct timespec a, b;
	struct brim_device *d;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/huge", big_dir);
	if (!*big_dir) {
		skip("signatures of 8 EiB", "no tmpfs at /dev/shm");
		return;
	}
	make(path, INT64_MAX - 4095, "", 0);
	clock_gettime(CLOCK_MONOTONIC, &a);
	ok(open_at(&d, path, WRITE, 0) == 0, "empty 8 EiB", "%s", err.msg);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ok(b.tv_sec - a.tv_sec < 5, "probed in no time", "%ld s",
	   (long)(b.tv_sec - a.tv_sec));
	brim_device_close(d);
	make_dos(path, INT64_MAX - 4095);
	refused("8 EiB with a partition table", path, WRITE, 0, -EEXIST,
		HOLDS("a"));
	unlink(path);
}

/* ------------------------------------------------------------ loop devices */

static char loop_path[32];
static char backing[PATH_BYTES];

static int loop_bind(int backing_fd, uint32_t flags, uint32_t sector)
{
	struct loop_config c = { .fd = (uint32_t)backing_fd,
				 .block_size = sector };
	int control, fd = -1, n, tries;

	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	c.info.lo_flags = flags | LO_FLAGS_AUTOCLEAR;
	/* Somebody else may take the free one first. */
	for (tries = 0; control >= 0 && fd < 0 && tries < 50; tries++) {
		n = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(loop_path, sizeof(loop_path), "/dev/loop%d", n);
		fd = open(loop_path, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && ioctl(fd, LOOP_CONFIGURE, &c) < 0) {
			close(fd);
			fd = -1;
		}
	}
	if (control >= 0)
		close(control);
	return fd;
}

/* A loop device over a new file of this size; closing the result detaches. */
static int loop_new(int64_t size, uint32_t flags, uint32_t sector)
{
	int fd, loop;

	snprintf(backing, sizeof(backing), "%s/backing",
		 *big_dir ? big_dir : dir);
	make(backing, size, "", 0);
	fd = open(backing, O_RDWR | O_CLOEXEC);
	loop = loop_bind(fd, flags, sector);
	close(fd);
	return loop;
}

static void check_loop_io(struct brim_device *d, uint32_t sector, uint64_t size)
{
	uint8_t in[4096], out[4096];
	struct stat st = { 0 };

	memset(in, 0x5a, sizeof(in));
	ok(brim_device_write(d, size - 4096, 4096, in, &err) == 0 &&
		   brim_device_read(d, size - 4096, 4096, out, &err) == 0 &&
		   !memcmp(in, out, 4096),
	   "block device at its end", "%s", err.msg);
	ok(brim_device_read(d, size - 7, 7, out, &err) == 0 && out[6] == 0x5a,
	   "unaligned read", "%s", err.msg);
	ok(brim_device_write(d, 1, sector, in, &err) == -EINVAL &&
		   brim_device_zero(d, sector / 2, sector, NULL) == -EINVAL &&
		   brim_device_discard(d, 0, sector / 2, NULL) == -EINVAL,
	   "half sectors", "%s", err.msg);
	ok(brim_device_write(d, size, sector, in, NULL) == -ERANGE, "past end",
	   " ");
	ok(brim_device_zero(d, size - 4096, 4096, &err) == 0 &&
		   brim_device_read(d, size - 1, 1, out, &err) == 0 &&
		   out[0] == 0,
	   "zeroed", "%s", err.msg);
	ok(brim_device_write(d, 0, 4096, in, &err) == 0 &&
		   brim_device_flush(d, &err) == 0 &&
		   brim_device_discard(d, 0, size, &err) == 0 &&
		   stat(backing, &st) == 0 && st.st_blocks == 0,
	   "all of it discarded", "%s, %ld", err.msg, (long)st.st_blocks);
}

static void test_loop(uint32_t sector, uint64_t size)
{
	struct brim_device_info info;
	struct brim_device *d, *d2;
	int loop = loop_new((int64_t)size, 0, sector);

	if (loop < 0) {
		skip("loop device", strerror(errno));
		return;
	}
	ok(open_at(&d, loop_path, WRITE, size) == 0, "open block", "%s",
	   err.msg);
	if (!d)
		goto out;
	brim_device_info(d, &info);
	ok(info.kind == BRIM_KIND_BLOCK && info.size_bytes == size &&
		   info.logical_sector_bytes == sector &&
		   info.align_bytes == sector && info.is_direct &&
		   info.is_writable && info.is_rotational >= 0,
	   "block info", "%u", info.logical_sector_bytes);
	refused("opened twice", loop_path, FORCE, 0, -EBUSY, "in use");
	refused("block too small", loop_path, 0, size + 1, -ENOSPC,
		"too small");
	refused("what is behind a loop device", backing, FORCE, 0, -EBUSY,
		loop_path);
	ok(open_at(&d2, backing, 0, 0) == 0, "reading it is no matter", "%s",
	   err.msg);
	brim_device_close(d2);
	check_loop_io(d, sector, size);
	brim_device_close(d);
	ok(open_at(&d, loop_path, WRITE | BRIM_DEVICE_BUFFERED, 0) == 0,
	   "open buffered", "%s", err.msg);
	brim_device_info(d, &info);
	ok(!info.is_direct && info.align_bytes == 1 &&
		   brim_device_write(d, 3, 2, "ab", &err) == 0,
	   "buffered block device", "%s", err.msg);
	brim_device_close(d);
out:
	close(loop);
	unlink(backing);
}

static void test_readonly_loop(void)
{
	int loop = loop_new(MIB, LO_FLAGS_READ_ONLY, 512);

	if (loop < 0) {
		skip("read-only loop device", strerror(errno));
		return;
	}
	refused("read-only device", loop_path, WRITE, 0, -EROFS, "read-only");
	close(loop);
	unlink(backing);
}

/* A mount point with a blank in it, which /proc writes as \040. */
static void check_mounted(const char *device, const char *says)
{
	char point[PATH_BYTES], whole[PATH_BYTES + 160];

	snprintf(point, sizeof(point), "%s/a mount", dir);
	mkdir(point, 0700);
	if (mount(device, point, "ext4", 0, "") < 0) {
		skip("mounted", strerror(errno));
		return;
	}
	snprintf(whole, sizeof(whole), "%s %s", says, point);
	refused("mounted", loop_path, FORCE, 0, -EBUSY, whole);
	refused("file behind a mounted loop device", backing, FORCE, 0, -EBUSY,
		point);
	umount(point);
}

static void test_mounted(void)
{
	int loop = loop_new(16 * MIB, 0, 512);

	if (loop < 0 || !have("mkfs.ext4")) {
		skip("mounted", "no loop device or no mkfs.ext4");
		goto out;
	}
	run("mkfs.ext4 -q '%s'", loop_path);
	check_mounted(loop_path, "is mounted on");
out:
	close(loop);
	unlink(backing);
}

/* The partition 1 MiB .. 17 MiB, without a table that the kernel must know. */
static int partition(int loop, int op)
{
	struct blkpg_partition p = { .start = MIB,
				     .length = 16 * MIB,
				     .pno = 1 };
	struct blkpg_ioctl_arg arg = { .op = op,
				       .datalen = sizeof(p),
				       .data = &p };

	return ioctl(loop, BLKPG, &arg);
}

/* The whole disk is in use when one of its partitions is. */
static void test_mounted_partition(void)
{
	char part[48], says[128];
	int loop = loop_new(32 * MIB, LO_FLAGS_PARTSCAN, 512);

	snprintf(part, sizeof(part), "%sp1", loop_path);
	if (loop < 0 || !have("mkfs.ext4") ||
	    partition(loop, BLKPG_ADD_PARTITION) < 0 ||
	    access(part, F_OK) < 0) {
		skip("mounted partition", "no partitions of loop devices");
	} else {
		run("mkfs.ext4 -q '%s'", part);
		snprintf(says, sizeof(says), "%s is in use: %s is mounted on",
			 loop_path, part + 5);
		check_mounted(part, says);
		partition(loop, BLKPG_DEL_PARTITION);
	}
	close(loop);
	unlink(backing);
}

int main(void)
{
	begin();
	test_force();
	test_signatures();
	test_huge();
	if (geteuid() == 0) {
		test_loop(512, 64 * MIB);
		test_loop(4096, 64 * MIB);
		test_readonly_loop();
		test_mounted();
		test_mounted_partition();
	} else {
		skip("block devices", "not root");
	}
	return tap_end();
}
