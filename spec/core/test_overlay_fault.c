/* SPDX-License-Identifier: MIT */
/*
 * test_overlay_fault.c: opening, reading and committing an overlay with each of
 * its system calls failing once, after SQLite's manner: the error says what
 * failed, and the overlay, opened again, still shows what it showed; a commit
 * that failed can be repeated. Short transfers change nothing. SEED=n repeats.
 *
 * The program defines pread, pwrite, fdatasync, fsync and fallocate itself.
 */
#include <sys/syscall.h>

#include "overlay_helper.h"

#define EXPORTED __attribute__((visibility("default")))

enum fault { FAULT_ERROR, FAULT_SHORT };

static uint64_t calls, fail_at; /* fail_at 0: none */
static enum fault fault;
static bool failed;   /* a call was failed, */
static bool may_fail; /* which the caller may do without */
static uint8_t model[VOLUME_BYTES], buf[VOLUME_BYTES];

static bool fails(size_t *len)
{
	if (!fail_at || ++calls != fail_at)
		return false;
	if (fault == FAULT_SHORT) {
		if (len && *len > 1)
			*len /= 2;
		return false;
	}
	failed = true;
	errno = EIO;
	return true;
}

EXPORTED ssize_t pread(int fd, void *to, size_t len, off_t at)
{
	return fails(&len) ? -1 : syscall(SYS_pread64, fd, to, len, at);
}

EXPORTED ssize_t pwrite(int fd, const void *from, size_t len, off_t at)
{
	return fails(&len) ? -1 : syscall(SYS_pwrite64, fd, from, len, at);
}

EXPORTED int fdatasync(int fd)
{
	return fails(NULL) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

/* Of directories, whose failure is no failure. */
EXPORTED int fsync(int fd)
{
	if (!fails(NULL))
		return (int)syscall(SYS_fsync, fd);
	may_fail = true;
	return -1;
}

/* Holes are a favour, too. */
EXPORTED int fallocate(int fd, int mode, off_t at, off_t len)
{
	if (!fails(NULL))
		return (int)syscall(SYS_fallocate, fd, mode, at, len);
	may_fail = true;
	return -1;
}

/* ------------------------------------------------------------------- a round */

static char kept_base[PATH_BYTES + 8], kept_overlay[PATH_BYTES + 8];

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ssize_t n;

	if (in < 0 || out < 0)
		exit(1);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, (size_t)n) != n)
			exit(1);
	close(in);
	close(out);
}

/* An overlay with all kinds of things in it, and what it shows. */
static void prepare(void)
{
	uint64_t seed = tap_seed(11), k;
	struct brim_device *d;
	struct step s;

	make_base();
	for (k = 0; k < VOLUME_BYTES; k++)
		model[k] = base_byte(k);
	d = overlay_must(BRIM_OVERLAY_CREATE);
	for (k = 0; k < 25; k++) {
		s = random_step(&seed, VOLUME_BYTES);
		if (s.op == OP_READ || s.len > 40000)
			continue;
		if (device_step(d, &s, model, buf))
			exit(1);
		model_step(model, &s, VOLUME_BYTES);
	}
	brim_device_close(d);
	snprintf(kept_base, sizeof(kept_base), "%s.kept", base_path);
	snprintf(kept_overlay, sizeof(kept_overlay), "%s.kept", overlay_path);
	copy(base_path, kept_base);
	copy(overlay_path, kept_overlay);
}

/* Opens both for writing; *d may be NULL where that failed. */
static int open_both(struct brim_device **base, struct brim_device **d,
		     uint32_t flags)
{
	int ret = open_at(base, base_path, FORCE, 0);

	*d = NULL;
	return ret < 0 ? ret : overlay_over(d, *base, overlay_path, flags);
}

static int read_all(struct brim_device *d)
{
	int ret = brim_device_read(d, 0, VOLUME_BYTES, buf, &err);

	return ret < 0 ? ret : memcmp(buf, model, VOLUME_BYTES) ? -EBADMSG : 0;
}

/* The overlay shows what it did, commits at last, and the base has it. */
static bool is_whole(void)
{
	struct brim_device *base, *d;
	bool right;

	right = !open_both(&base, &d, BRIM_OVERLAY_RESUME) && !read_all(d) &&
		!brim_overlay_commit(d, &err) && !read_all(d) &&
		!read_all(base);
	if (!right)
		printf("# %s\n", err.msg);
	brim_device_close(d);
	brim_device_close(base);
	return right;
}

/* How the N-th call's failure ends; calls has how many there were. */
static int one_round(uint64_t n, int (*what)(struct brim_device *))
{
	struct brim_device *base, *d;
	int ret;

	copy(kept_base, base_path);
	copy(kept_overlay, overlay_path);
	calls = 0;
	failed = may_fail = false;
	fail_at = n;
	ret = open_both(&base, &d, 0);
	if (!ret)
		ret = what(d);
	fail_at = 0;
	brim_device_close(d);
	brim_device_close(base);
	return ret;
}

static int commit(struct brim_device *d)
{
	return brim_overlay_commit(d, &err);
}

static void loop(const char *name, int (*what)(struct brim_device *))
{
	uint64_t n = 0, wrong = 0, broken = 0, silent = 0;
	struct brim_err first = { 0 };
	int ret;

	do {
		ret = one_round(++n, what);
		if (ret < 0 && (ret != -EIO || err.code != -EIO || !err.op ||
				!err.msg[0] || strchr(err.msg, '\n'))) {
			if (!wrong++)
				first = err;
		}
		silent += !ret && failed && !may_fail;
		broken += !is_whole();
	} while (calls >= n && n < 5000);
	printf("# %s: %llu calls\n", name, (unsigned long long)n - 1);
	ok(!ret && n > 5 && n < 5000, name, "%d %s", ret, err.msg);
	ok(!wrong, "each failure is EIO, with its error",
	   "%llu are wrong: %d '%s'", (unsigned long long)wrong, first.code,
	   first.msg);
	ok(!silent, "none goes unsaid", "%llu do", (unsigned long long)silent);
	ok(!broken, "the overlay is whole", "%llu are not",
	   (unsigned long long)broken);
}

static void test_short(void)
{
	uint64_t n = 0, wrong = 0;

	fault = FAULT_SHORT;
	do
		wrong += one_round(++n, commit) != 0 || !is_whole();
	while (calls >= n && n < 5000);
	ok(!wrong && n > 10, "short transfers change nothing",
	   "%llu of %llu do: %s", (unsigned long long)wrong,
	   (unsigned long long)n, err.msg);
}

int main(void)
{
	begin();
	overlay_needs_not();
	prepare();
	loop("reading", read_all);
	loop("committing", commit);
	test_short();
	return tap_end();
}
