/* SPDX-License-Identifier: MIT */
/*
 * test_engine_file.c: the engines on a real file: io_uring and the threads do
 * the same, with registered buffers and without, buffered and direct; what
 * "auto" picks, for files in the page cache and not, and where io_uring is
 * forbidden (a seccomp filter in a child).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch_helper.h"

static char path[4096];
static bool has_uring;

static struct brim_device *open_file(uint32_t flags)
{
	struct brim_device_options o = {
		.struct_bytes = sizeof(o),
		.flags = flags | BRIM_DEVICE_WRITE | BRIM_DEVICE_CREATE |
			 BRIM_DEVICE_FORCE,
		.min_size_bytes = SIZE,
	};
	struct brim_device *d;

	unlink(path);
	brim_device_open(&d, path, &o, NULL);
	return d;
}

static bool file_is_right(struct brim_device *d)
{
	_Alignas(4096) static uint8_t buf[SLOT];
	uint64_t n;

	for (n = 0; n < IOS; n++)
		if (brim_device_read(d, n * SLOT, SLOT, buf, NULL) < 0 ||
		    !holds_pattern(buf, n))
			return false;
	return true;
}

/* Writes, flushes, reads and zeroes with an engine; says what went wrong. */
static const char *exercise(struct brim_device *d, const char *engine)
{
	static struct brim_err e;
	struct brim__batch *b = open_batch(d, engine, 4, 16, &e);
	struct brim__io *out[4], *io;
	uint8_t byte[SLOT];
	const char *why = NULL;

	if (!b)
		return e.msg;
	if (run_pieces(b, BRIM__WRITE, &e) != (int)IOS)
		why = "writing";
	else if (!file_is_right(d))
		why = "what was written";
	else if (run_pieces(b, BRIM__READ, &e) != (int)IOS)
		why = "reading";
	if (!why) {
		io = brim__batch_get(b);
		io->op = BRIM__FLUSH;
		io->off_bytes = io->len_bytes = 0;
		brim__batch_queue(b, io, &e);
		if (brim__batch_reap(b, 1, out, 4, &e) != 1)
			why = "flushing";
		io->op = BRIM__ZERO;
		io->off_bytes = SLOT;
		io->len_bytes = SIZE - 2 * SLOT;
		brim__batch_queue(b, io, &e);
		if (brim__batch_reap(b, 1, out, 4, &e) != 1 ||
		    (out[0]->result < 0 && out[0]->result != -EOPNOTSUPP))
			why = "zeroing";
		else if (out[0]->result > 0 &&
			 (brim_device_read(d, 2 * SLOT, SLOT, byte, NULL) < 0 ||
			  byte[0] || memcmp(byte, byte + 1, SLOT - 1)))
			why = "what was zeroed";
	}
	brim__batch_close(b);
	return why;
}

static void test_engine(const char *engine, uint32_t flags, const char *name)
{
	struct brim_device *d = open_file(flags);
	const char *why;

	if (!d) {
		skip(name, "the file cannot be opened so");
		return;
	}
	why = exercise(d, engine);
	ok(!why, name, "%s", why);
	brim_device_close(d);
}

/* Error and short results through the ring. */
static void test_uring_faults(void)
{
	struct brim_device *d = open_file(BRIM_DEVICE_BUFFERED);
	unsigned int at, right = 0;
	struct brim_err e;
	char spec[64];

	for (at = 1; at <= IOS; at++) {
		struct brim__batch *b;

		snprintf(spec, sizeof(spec), "fault:at=%u,short=%u,inner=uring",
			 at, 64 * at);
		b = open_batch(d, spec, 0, 16, &e);
		right += run_pieces(b, BRIM__WRITE, &e) == (int)IOS &&
			 file_is_right(d);
		brim__batch_close(b);
		snprintf(spec, sizeof(spec),
			 "fault:at=%u,errno=EIO,inner=uring", at);
		b = open_batch(d, spec, 0, 16, &e);
		right += run_pieces(b, BRIM__READ, &e) == -EIO &&
			 strstr(e.msg, "(EIO)") != NULL;
		brim__batch_close(b);
	}
	ok(right == 2 * IOS, "uring: faults at each call", "%u: %s", right,
	   e.msg);
	brim_device_close(d);
}

/* A read-only descriptor behind a device that claims to be writable. */
static void test_uring_kernel_error(void)
{
	struct brim_device *d = open_file(BRIM_DEVICE_BUFFERED);
	int fd = open(path, O_RDONLY | O_CLOEXEC), own = d->fd;
	struct brim__batch *b;
	struct brim_err e;
	int ret;

	d->fd = fd;
	b = open_batch(d, "uring", 0, 16, &e);
	ret = run_pieces(b, BRIM__WRITE, &e);
	ok(ret == -EBADF && strstr(e.msg, "write of 4096 bytes at offset "),
	   "uring: the kernel's errors", "%d %s", ret, e.msg);
	brim__batch_close(b);
	d->fd = own;
	close(fd);
	brim_device_close(d);
}

/* ---------------------------------------------- where things are forbidden */

static void forbid_uring(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(77);
}

/* Direct I/O chooses the ring, so it must get over its absence. */
static int child_forbidden(struct brim_device *d)
{
	struct brim_err e;
	struct brim__batch *b;
	int bad = 0;

	d->info.is_direct = 1;
	forbid_uring();
	b = open_batch(d, "uring", 0, 16, &e);
	bad |= b || e.code != -EPERM ||
	       !strstr(e.msg, "io_uring is not available");
	b = open_batch(d, "auto", 4, 16, &e);
	bad |= (!b || strcmp(brim__batch_engine(b), "sync")) << 1;
	bad |= (run_pieces(b, BRIM__WRITE, &e) != (int)IOS) << 2;
	brim__batch_close(b);
	return bad;
}

/* With little memory to lock, buffers go unregistered. */
static int child_memlock(struct brim_device *d)
{
	/* The rings fit, 16 buffers of 4 KiB do not. */
	struct rlimit some = { 48 << 10, 48 << 10 };
	const char *why;

	if (setrlimit(RLIMIT_MEMLOCK, &some) ||
	    (geteuid() == 0 && (setgid(65534) || setuid(65534))))
		return 77;
	why = exercise(d, "uring");
	if (why)
		printf("# %s\n", why);
	fflush(stdout);
	return why != NULL;
}

static void test_in_child(int (*child)(struct brim_device *), const char *name)
{
	struct brim_device *d = open_file(BRIM_DEVICE_BUFFERED);
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(child(d));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		status = -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(name, "not allowed here");
	else
		ok(WIFEXITED(status) && !WEXITSTATUS(status), name,
		   "status 0x%x", (unsigned int)status);
	brim_device_close(d);
}

static void test_auto(void)
{
	struct brim_device *d = open_file(BRIM_DEVICE_BUFFERED);
	struct brim__batch *b;
	struct brim_err e;

	b = open_batch(d, "auto", 0, 16, &e);
	ok(b && !strcmp(brim__batch_engine(b), "sync"),
	   "auto: a buffered file gets threads", "%s", e.msg);
	brim__batch_close(b);
	d->info.is_direct = 1;
	b = open_batch(d, "auto", 0, 16, &e);
	ok(b && !strcmp(brim__batch_engine(b), has_uring ? "uring" : "sync"),
	   "auto: a direct one gets the ring", "%s", e.msg);
	brim__batch_close(b);
	brim_device_close(d);
}

/* Batches of cold files read right, with the engine that waits best. */
static void test_cold_engine(struct brim_device *d, const char *engine,
			     const char *expected)
{
	struct brim__batch_options o = {
		.engine = engine,
		.queue_depth = 16,
		.slot_bytes = SLOT,
		.is_cold = true,
	};
	struct brim_err e = { 0 };
	struct brim__batch *b;

	brim__batch_open(&b, d, &o, &e);
	ok(b && !strcmp(brim__batch_engine(b), expected),
	   "cold: the engine picked", "%s", e.msg);
	ok(b && run_pieces(b, BRIM__READ, &e) == (int)IOS,
	   "cold: all read right", "%s: %s", expected, e.msg);
	brim__batch_close(b);
}

/* As many reads as are worth a ring; of these here, some twice. */
#define READS 256u

static void test_cold(void)
{
	struct brim_device *d = open_file(BRIM_DEVICE_BUFFERED);
	struct brim__batch *b;
	struct brim_err e;
	struct statfs fs;

	b = open_batch(d, "sync", 0, 16, &e);
	ok(b && run_pieces(b, BRIM__WRITE, &e) == (int)IOS, "cold: written",
	   "%s", e.msg);
	brim__batch_close(b);
	ok(!brim__device_is_cold(d, 0, SIZE / READS, READS), "cold: not yet",
	   "%s", path);
	test_cold_engine(d, "auto", has_uring ? "uring" : "sync");
	test_cold_engine(d, "sync", "sync");
	fdatasync(d->fd);
	posix_fadvise(d->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (fstatfs(d->fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC) {
		skip("cold: dropped", "tmpfs is never cold");
	} else {
		ok(!brim__device_is_cold(d, 0, SIZE / READS, READS - 1),
		   "cold: too few to matter", "%s", path);
		ok(brim__device_is_cold(d, 0, SIZE / READS, READS),
		   "cold: dropped", "%s", path);
	}
	d->info.is_direct = 1;
	ok(!brim__device_is_cold(d, 0, SIZE / READS, READS),
	   "cold: direct I/O has no cache", "%s", path);
	brim_device_close(d);
}

static void test_uring(void)
{
	if (!has_uring) {
		skip("uring", "not available here");
		return;
	}
	test_engine("uring", BRIM_DEVICE_BUFFERED, "uring: buffered");
	test_engine("uring", BRIM_DEVICE_DIRECT, "uring: direct");
	test_engine("fault:at=2,times=5,errno=EINTR,inner=uring",
		    BRIM_DEVICE_BUFFERED, "uring: retries");
	test_uring_faults();
	test_uring_kernel_error();
	test_in_child(child_memlock, "uring: no locked memory");
	test_in_child(child_forbidden, "uring: forbidden");
}

int main(void)
{
	const char *dir = getenv("TMPDIR");
	struct brim_device *d;
	struct brim__batch *b;
	struct brim_err e;
	int fd;

	seed = tap_seed(77);
	snprintf(path, sizeof(path), "%s/brim-engine.XXXXXX",
		 dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 || close(fd) < 0)
		return 77;
	d = open_file(BRIM_DEVICE_BUFFERED);
	b = open_batch(d, "uring", 0, 4, &e);
	has_uring = b != NULL;
	brim__batch_close(b);
	brim_device_close(d);
	test_engine("sync", BRIM_DEVICE_BUFFERED, "sync: buffered");
	test_engine("sync", BRIM_DEVICE_DIRECT, "sync: direct");
	test_auto();
	test_cold();
	test_uring();
	unlink(path);
	return tap_end();
}
