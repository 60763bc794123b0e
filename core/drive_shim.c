/* SPDX-License-Identifier: MIT */
/*
 * drive_shim.c: stands between a program and one of its files (LD_PRELOAD) and
 * makes that file as slow as a drive: each call takes as long as the model
 * says, and is recorded. For user-mode Linux, whose disk is such a file, and
 * for anything that reads and writes by system calls of libc; io_uring and
 * mapped memory pass by. Built apart from the library, see the Makefile.
 *
 *   BRIM_DRIVE_FILE   the file; it is known by device and inode
 *   BRIM_DRIVE        the model, "smr,size_bytes=8g,..." (default: ideal)
 *   BRIM_DRIVE_SPEED  of the model's clock against the real one (1)
 *   BRIM_DRIVE_TRACE  a block trace to write
 *   BRIM_DRIVE_STATS  statistics at the end, as JSON
 *
 * A process that does I/O on the file has the drive for itself: one that forks
 * others for it (fio without --thread) has as many drives. One that only starts
 * the right one (timeout, env) writes nothing.
 *
 * The callers may have a page of stack (user-mode Linux's I/O thread has), so
 * nothing large is put there and all symbols are bound at load.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drive.h"

static struct brim__live *live;
static dev_t file_dev;
static ino_t file_ino;
static pid_t owner; /* who writes the statistics */

/* ------------------------------------------------------------------- setup */

/* A shim that cannot do what it was told must not look as if it did. */
static void die(const char *what)
{
	fprintf(stderr, "brim-drive-shim: %s\n", what);
	_exit(125);
}

static __attribute__((constructor)) void shim_begin(void)
{
	struct brim__live_options o = { .model = getenv("BRIM_DRIVE"),
					.trace = getenv("BRIM_DRIVE_TRACE"),
					.speed = 1 };
	const char *path = getenv("BRIM_DRIVE_FILE");
	const char *speed = getenv("BRIM_DRIVE_SPEED");
	struct brim_err e = { 0 };
	struct stat st;

	if (!path)
		return;
	if (stat(path, &st) < 0)
		die("BRIM_DRIVE_FILE is not there");
	o.size_bytes = (uint64_t)st.st_size;
	if (!o.model)
		o.model = "ideal";
	if (speed)
		o.speed = strtod(speed, NULL);
	if (brim__live_open(&live, &o, &e) < 0)
		die(e.msg);
	file_dev = st.st_dev;
	file_ino = st.st_ino;
	owner = getpid();
}

static bool was_used(const struct brim_drive_stats *st)
{
	return st->ios[0] || st->ios[1] || st->ios[2] || st->ios[3];
}

static void put_stats(FILE *f, const struct brim_drive_stats *st,
		      uint64_t late_ns)
{
	static const char *const ops[] = { "read", "write", "trim", "flush" };
	int k;

	fprintf(f, "{\"end_ns\":%llu,\"late_ns\":%llu,",
		(unsigned long long)st->end_ns, (unsigned long long)late_ns);
	for (k = 0; k < BRIM_DRIVE_OPS; k++)
		fprintf(f,
			"\"%s\":{\"ios\":%llu,\"bytes\":%llu,\"p50_ns\":%llu,"
			"\"p99_ns\":%llu,\"max_ns\":%llu},",
			ops[k], (unsigned long long)st->ios[k],
			(unsigned long long)st->bytes[k],
			(unsigned long long)st->p50_ns[k],
			(unsigned long long)st->p99_ns[k],
			(unsigned long long)st->max_ns[k]);
	fprintf(f,
		"\"runs\":{\"read\":%llu,\"write\":%llu},\"seeks\":%llu,"
		"\"cached_ios\":%llu,\"streamed_bytes\":%llu,"
		"\"cache_entries\":%llu,\"cleaned_bands\":%llu}\n",
		(unsigned long long)st->runs[0],
		(unsigned long long)st->runs[1], (unsigned long long)st->seeks,
		(unsigned long long)st->cached_ios,
		(unsigned long long)st->streamed_bytes,
		(unsigned long long)st->cache_entries,
		(unsigned long long)st->cleaned_bands);
}

static __attribute__((destructor)) void shim_end(void)
{
	struct brim_drive_stats st = { .struct_bytes = sizeof(st) };
	const char *path = getenv("BRIM_DRIVE_STATS");
	struct brim__live *l = live;
	uint64_t late_ns;
	FILE *f;

	/* Not closed: other threads may still be at it. */
	if (!l || getpid() != owner || brim__live_stats(l, &st, &late_ns) < 0)
		return;
	live = NULL;
	f = path && was_used(&st) ? fopen(path, "we") : NULL;
	if (!f)
		return;
	put_stats(f, &st, late_ns);
	fclose(f);
}

/* ------------------------------------------------------------------- calls */

static int is_ours(int fd)
{
	struct stat st;

	return live && fstat(fd, &st) == 0 && st.st_ino == file_ino &&
	       st.st_dev == file_dev;
}

static void done(enum brim_drive_op op, int64_t off, int64_t len, uint64_t at)
{
	int saved = errno;

	brim__live_done(live, op, (uint64_t)off, (uint64_t)len, at,
			(uint32_t)syscall(SYS_gettid));
	errno = saved;
}

/* Declares and finds what comes after us under a name. */
#define REAL(name)                                                             \
	static __typeof__(name) *real_##name;                                  \
	static __attribute__((constructor(101))) void find_##name(void)        \
	{                                                                      \
		*(void **)&real_##name = dlsym(RTLD_NEXT, #name);              \
	}

/*
 * A call that transfers at an offset of its own: the arguments of the call in
 * parentheses, with and without types.
 */
#define AT_OFFSET(name, op, typed, plain)                                      \
	BRIM_API ssize_t name typed;                                           \
	REAL(name)                                                             \
	BRIM_API ssize_t name typed                                            \
	{                                                                      \
		int ours = is_ours(fd);                                        \
		uint64_t at = ours ? brim__live_now(live) : 0;                 \
		ssize_t n = real_##name plain;                                 \
                                                                               \
		if (ours && n > 0)                                             \
			done(op, off, n, at);                                  \
		return n;                                                      \
	}

/* And one that transfers where the file stands. */
#define AT_POSITION(name, op, typed, plain)                                    \
	BRIM_API ssize_t name typed;                                           \
	REAL(name)                                                             \
	BRIM_API ssize_t name typed                                            \
	{                                                                      \
		int ours = is_ours(fd);                                        \
		uint64_t at = ours ? brim__live_now(live) : 0;                 \
		ssize_t n = real_##name plain;                                 \
                                                                               \
		if (ours && n > 0)                                             \
			done(op, lseek(fd, 0, SEEK_CUR) - n, n, at);           \
		return n;                                                      \
	}

#define FLUSH(name, typed, plain)                                              \
	BRIM_API int name typed;                                               \
	REAL(name)                                                             \
	BRIM_API int name typed                                                \
	{                                                                      \
		int ours = is_ours(fd);                                        \
		uint64_t at = ours ? brim__live_now(live) : 0;                 \
		int ret = real_##name plain;                                   \
                                                                               \
		if (ours && ret == 0)                                          \
			done(BRIM_DRIVE_FLUSH, 0, 0, at);                      \
		return ret;                                                    \
	}

#define TRIM(name)                                                             \
	BRIM_API int name(int fd, int mode, off64_t off, off64_t len);         \
	REAL(name)                                                             \
	BRIM_API int name(int fd, int mode, off64_t off, off64_t len)          \
	{                                                                      \
		int ours = is_ours(fd) && mode & FALLOC_FL_PUNCH_HOLE;         \
		uint64_t at = ours ? brim__live_now(live) : 0;                 \
		int ret = real_##name(fd, mode, off, len);                     \
                                                                               \
		if (ours && ret == 0)                                          \
			done(BRIM_DRIVE_TRIM, off, len, at);                   \
		return ret;                                                    \
	}

AT_OFFSET(pread64, BRIM_DRIVE_READ, (int fd, void *b, size_t n_, off64_t off),
	  (fd, b, n_, off))
AT_OFFSET(pwrite64, BRIM_DRIVE_WRITE,
	  (int fd, const void *b, size_t n_, off64_t off), (fd, b, n_, off))
AT_OFFSET(__pread64_chk, BRIM_DRIVE_READ,
	  (int fd, void *b, size_t n_, off64_t off, size_t room),
	  (fd, b, n_, off, room))
AT_OFFSET(preadv64, BRIM_DRIVE_READ,
	  (int fd, const struct iovec *v, int count, off64_t off),
	  (fd, v, count, off))
AT_OFFSET(pwritev64, BRIM_DRIVE_WRITE,
	  (int fd, const struct iovec *v, int count, off64_t off),
	  (fd, v, count, off))
AT_OFFSET(preadv64v2, BRIM_DRIVE_READ,
	  (int fd, const struct iovec *v, int count, off64_t off, int flags),
	  (fd, v, count, off, flags))
AT_OFFSET(pwritev64v2, BRIM_DRIVE_WRITE,
	  (int fd, const struct iovec *v, int count, off64_t off, int flags),
	  (fd, v, count, off, flags))
AT_POSITION(read, BRIM_DRIVE_READ, (int fd, void *b, size_t n_), (fd, b, n_))
AT_POSITION(write, BRIM_DRIVE_WRITE, (int fd, const void *b, size_t n_),
	    (fd, b, n_))
AT_POSITION(__read_chk, BRIM_DRIVE_READ,
	    (int fd, void *b, size_t n_, size_t room), (fd, b, n_, room))
AT_POSITION(readv, BRIM_DRIVE_READ, (int fd, const struct iovec *v, int count),
	    (fd, v, count))
AT_POSITION(writev, BRIM_DRIVE_WRITE,
	    (int fd, const struct iovec *v, int count), (fd, v, count))
FLUSH(fsync, (int fd), (fd))
FLUSH(fdatasync, (int fd), (fd))
TRIM(fallocate64)

/* Where off_t has 64 bits, these are the same calls under another name. */
#if __SIZEOF_LONG__ == 8
AT_OFFSET(pread, BRIM_DRIVE_READ, (int fd, void *b, size_t n_, off64_t off),
	  (fd, b, n_, off))
AT_OFFSET(pwrite, BRIM_DRIVE_WRITE,
	  (int fd, const void *b, size_t n_, off64_t off), (fd, b, n_, off))
AT_OFFSET(__pread_chk, BRIM_DRIVE_READ,
	  (int fd, void *b, size_t n_, off64_t off, size_t room),
	  (fd, b, n_, off, room))
AT_OFFSET(preadv, BRIM_DRIVE_READ,
	  (int fd, const struct iovec *v, int count, off64_t off),
	  (fd, v, count, off))
AT_OFFSET(pwritev, BRIM_DRIVE_WRITE,
	  (int fd, const struct iovec *v, int count, off64_t off),
	  (fd, v, count, off))
AT_OFFSET(preadv2, BRIM_DRIVE_READ,
	  (int fd, const struct iovec *v, int count, off64_t off, int flags),
	  (fd, v, count, off, flags))
AT_OFFSET(pwritev2, BRIM_DRIVE_WRITE,
	  (int fd, const struct iovec *v, int count, off64_t off, int flags),
	  (fd, v, count, off, flags))
TRIM(fallocate)
#endif
