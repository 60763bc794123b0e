/* SPDX-License-Identifier: MIT */
/*
 * test_overlay_crash.c: what an overlay is after things went wrong: kill -9,
 * a power cut that keeps any part of what was not flushed, a disk that is
 * full, failing flushes. SEED=n repeats a run.
 *
 * The program defines pwrite, fdatasync and fallocate itself: it notes what
 * was written since the last fdatasync, and makes calls fail.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "overlay_helper.h"

#define EXPORTED __attribute__((visibility("default")))
#define PENDING_MAX 40000u

/* A sector, as it was after a write. */
struct pending {
	uint64_t at;
	uint8_t bytes[512];
};

static bool is_noting;
static struct pending *pending; /* written, and not on stable storage */
static size_t pending_n;
static uint8_t *stable; /* the file as it is on stable storage */
static size_t stable_len;
static int64_t writes, fail_write_at, syncs, fail_sync_at;
static bool stays_full; /* the failing write and all after it */

static void note_write(int fd, uint64_t from, uint64_t to)
{
	for (from -= from % 512; from < to; from += 512) {
		struct pending *w = &pending[pending_n++];

		if (pending_n == PENDING_MAX)
			abort();
		memset(w, 0, sizeof(*w));
		w->at = from;
		if (pread(fd, w->bytes, 512, (off_t)from) <= 0)
			abort();
	}
}

/* A sector reaches the platter. */
static void settle(const struct pending *w)
{
	if (w->at + 512 > stable_len) {
		size_t more = w->at + 512;

		stable = realloc(stable, more);
		memset(stable + stable_len, 0, more - stable_len);
		stable_len = more;
	}
	memcpy(stable + w->at, w->bytes, 512);
}

EXPORTED ssize_t pwrite(int fd, const void *buf, size_t len, off_t at)
{
	writes++;
	if (fail_write_at &&
	    (stays_full ? writes >= fail_write_at : writes == fail_write_at)) {
		errno = ENOSPC;
		return -1;
	}
	len = (size_t)syscall(SYS_pwrite64, fd, buf, len, at);
	if (is_noting && (ssize_t)len > 0)
		note_write(fd, (uint64_t)at, (uint64_t)at + len);
	return (ssize_t)len;
}

EXPORTED int fdatasync(int fd)
{
	size_t k;

	(void)fd;
	if (++syncs == fail_sync_at) {
		errno = EIO;
		return -1;
	}
	for (k = 0; k < pending_n; k++)
		settle(&pending[k]);
	pending_n = 0;
	return 0;
}

EXPORTED int fallocate(int fd, int mode, off_t at, off_t len)
{
	/* A hole may be there after a crash or not: both, in turns. */
	if (is_noting && at / 4096 % 2 && (size_t)(at + len) <= stable_len)
		memset(stable + at, 0, (size_t)len);
	return (int)syscall(SYS_fallocate, fd, mode, at, len);
}

static void note_begin(void)
{
	pending = pending ? pending : calloc(PENDING_MAX, sizeof(*pending));
	free(stable);
	stable = NULL;
	stable_len = pending_n = 0;
	is_noting = true;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	bool was = is_noting;

	is_noting = false;
	make(path, 0, "", 0);
	if (len)
		make(path, (int64_t)len, bytes, len);
	is_noting = was;
}

/* ----------------------------------------------------------------- power cut */

/*
 * What each block may be after a crash: what it was at the last flush, or
 * after any write since; a torn one is made of sectors of those.
 */
#define STATES_MAX 64
static uint8_t states[STATES_MAX][VOLUME_BYTES];
static int states_n;

static bool sector_was(const uint8_t *sector, uint64_t at, size_t len)
{
	int k;

	for (k = 0; k < states_n; k++)
		if (!memcmp(sector, states[k] + at, len))
			return true;
	return false;
}

static bool is_some_state(const uint8_t *buf)
{
	uint64_t at;

	for (at = 0; at < VOLUME_BYTES; at += 512)
		if (!sector_was(buf + at, at,
				BRIM__MIN(512, VOLUME_BYTES - at)))
			return false;
	return true;
}

/* Some or all or none of what is pending, each write whole or torn. */
static void cut_power(uint64_t *seed)
{
	uint64_t of = 1 + tap_below(seed, 5), k;
	bool keep = false;

	/* Each sector as it was at some moment: of two, the later. */
	for (k = 0; k < pending_n; k++) {
		if (pending[k].at % 4096 == 0 || tap_below(seed, 30) == 0)
			keep = tap_below(seed, of) > 0;
		if (keep)
			settle(&pending[k]);
	}
	pending_n = 0;
}

/*
 * One life of an overlay, from opening to the cut. Returns 0, or what was
 * wrong at which step.
 */
static const char *live_and_die(uint64_t *seed, uint8_t *buf)
{
	struct brim_device *d;
	struct step s;
	int n = (int)tap_below(seed, 60), ret = 0;

	write_file(overlay_path, stable, stable_len);
	if (overlay_open(&d, 0) < 0)
		return err.msg;
	if (brim_device_read(d, 0, VOLUME_BYTES, buf, &err) < 0)
		return err.msg;
	if (!is_some_state(buf))
		return "content that never was";
	memcpy(states[0], buf, VOLUME_BYTES);
	states_n = 1;
	for (; n && ret == 0; n--) {
		s = random_step(seed, VOLUME_BYTES);
		if (s.op == OP_READ)
			continue;
		if (s.op == OP_FLUSH || states_n == STATES_MAX) {
			s.op = OP_FLUSH;
			memcpy(states[0], states[states_n - 1], VOLUME_BYTES);
			states_n = 1;
		} else {
			memcpy(states[states_n], states[states_n - 1],
			       VOLUME_BYTES);
			model_step(states[states_n++], &s, VOLUME_BYTES);
		}
		ret = device_step(d, &s, NULL, buf);
	}
	cut_power(seed);
	/* What closing would write is too late. */
	is_noting = false;
	brim_device_close(d);
	is_noting = true;
	return ret < 0 ? err.msg : NULL;
}

static void test_power_cuts(uint64_t seed)
{
	static uint8_t buf[VOLUME_BYTES];
	const char *wrong = NULL;
	uint64_t k;
	int life, lives = 0;

	for (life = 0; life < 120 && !wrong; life++) {
		if (life % 12 == 0) {
			is_noting = false;
			make_base();
			for (k = 0; k < VOLUME_BYTES; k++)
				states[0][k] = base_byte(k);
			states_n = 1;
			note_begin();
			brim_device_close(overlay_must(BRIM_OVERLAY_CREATE));
		}
		wrong = live_and_die(&seed, buf);
		lives++;
	}
	is_noting = false;
	ok(!wrong, "power cuts", "life %d: %s", lives, wrong);
}

/*
 * A flush of several pages of which the first is lost and the others are not:
 * they must not come to life when another page takes the first one's place.
 */
static void test_stale_pages(void)
{
	struct brim_device *null, *d;
	struct brim__overlay *o;
	uint64_t k, first = UINT64_MAX;

	note_begin();
	snprintf(overlay_path, sizeof(overlay_path), "%s/stale", dir);
	if (brim_device_open_null(&null, UINT64_C(1) << 40, NULL) < 0 ||
	    overlay_over(&d, null, overlay_path, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	for (k = 0; k < 400; k++)
		brim_device_zero(d, k << 20, 4096, NULL);
	o = brim__overlay_device(d)->o;
	first = o->log.next * 4096;
	/* The last fdatasync does not happen: the power goes before. */
	syncs = 0;
	fail_sync_at = 2;
	brim_device_flush(d, NULL);
	fail_sync_at = 0;
	for (k = 0; k < pending_n; k++)
		if (pending[k].at < first || pending[k].at >= first + 4096)
			settle(&pending[k]);
	pending_n = 0;
	is_noting = false;
	brim_device_close(d);
	write_file(overlay_path, stable, stable_len);
	if (overlay_over(&d, null, overlay_path, 0) < 0)
		printf("# %s\n", err.msg);
	ok(d && brim__overlay_device(d)->o->map.extents == 0,
	   "a flush without its first page is none", "%s", err.msg);
	brim_device_zero(d, UINT64_C(1) << 39, 4096, NULL);
	brim_device_close(d);
	overlay_over(&d, null, overlay_path, 0);
	ok(d && brim__overlay_device(d)->o->map.extents == 1,
	   "its other pages stay dead", "%s", err.msg);
	brim_device_close(d);
	brim_device_close(null);
}

/* ------------------------------------------------------------------ kill -9 */

/* What the child tells: how far it got, in memory that outlives it. */
struct told {
	_Atomic uint32_t flushed, written;
};

static void child(struct told *told)
{
	struct brim_device *d;
	uint8_t buf[3000];
	uint32_t k;

	if (overlay_open(&d, 0) < 0)
		_exit(1);
	for (k = 1;; k++) {
		memset(buf, (int)(k % 251), sizeof(buf));
		told->written = k;
		brim_device_write(d, (k % 300) * 3000, sizeof(buf), buf, NULL);
		if (k % 17 == 0 && brim_device_flush(d, NULL) == 0)
			told->flushed = k;
	}
}

static void test_kill(void)
{
	struct told *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct brim_device *d;
	uint8_t buf[3000];
	int round, status;
	uint32_t k;

	make_base();
	brim_device_close(overlay_must(BRIM_OVERLAY_CREATE));
	for (round = 0; round < 8; round++) {
		pid_t pid;
		bool good = true;

		told->written = told->flushed = 0;
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			child(told);
		while (told->flushed < 100u + 90u * (uint32_t)round)
			usleep(500);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		d = overlay_must(0);
		/* Of each place the last flushed write, or a later one. */
		for (k = told->flushed; k && k + 300 > told->flushed; k--) {
			brim_device_read(d, (k % 300) * 3000, 3000, buf, NULL);
			/* The one it was at may be half done. */
			if (k + 300 == told->written)
				continue;
			good = good && buf[0] == buf[2999] &&
			       (buf[0] == k % 251 || k + 300 < told->written);
		}
		ok(good, "killed, what was flushed is there",
		   "%u of %u flushed", told->flushed, told->written);
		brim_device_close(d);
	}
	munmap(told, 4096);
}

/* ------------------------------------------------------- full disks, failures */

/* Every write fails once, at any moment; afterwards all is as if it had not. */
static void test_full(void)
{
	static uint8_t model[VOLUME_BYTES], buf[VOLUME_BYTES];
	uint64_t seed, k;
	int64_t at;
	bool good = true;
	int failures = 0, n, ret;

	for (at = 1; good; at = at + 1 + at / 8) {
		struct brim_device *d;

		make_base();
		for (k = 0; k < VOLUME_BYTES; k++)
			model[k] = base_byte(k);
		d = overlay_must(BRIM_OVERLAY_CREATE);
		seed = 5;
		writes = 0;
		fail_write_at = at;
		for (n = 0; n < 150 && good; n++) {
			struct step s = random_step(&seed, VOLUME_BYTES);

			ret = device_step(d, &s, model, buf);
			if (ret == -ENOSPC) { /* some room was made */
				failures++;
				ret = device_step(d, &s, model, buf);
			}
			model_step(model, &s, VOLUME_BYTES);
			good = ret == 0;
		}
		good = good && is_model(d, model, buf, VOLUME_BYTES);
		brim_device_close(d);
		fail_write_at = 0;
		d = overlay_must(0);
		good = good && is_model(d, model, buf, VOLUME_BYTES);
		brim_device_close(d);
		if (writes < at)
			break;
	}
	ok(good && failures > 10, "a write fails for want of room, once",
	   "the %lld-th, %d failures", (long long)at, failures);
}

static void test_stays_full(void)
{
	static uint8_t buf[VOLUME_BYTES], was[VOLUME_BYTES];
	struct brim_device *d;
	uint8_t byte;

	make_base();
	d = overlay_must(BRIM_OVERLAY_CREATE);
	brim_device_write(d, 1000, 10000, buf, NULL);
	brim_device_flush(d, NULL);
	brim_device_read(d, 0, VOLUME_BYTES, was, NULL);
	writes = 0;
	fail_write_at = 1;
	stays_full = true;
	ok(brim_device_write(d, 500000, 10000, buf, &err) == -ENOSPC &&
		   brim_device_zero(d, 600000, 100000, &err) == -ENOSPC &&
		   brim_device_zero(d, 4096 * 200, 8192, &err) == 0,
	   "no room", "%s", err.msg);
	ok(brim_device_flush(d, &err) == -ENOSPC, "no room for the map", "%s",
	   err.msg);
	brim_device_close(d);
	fail_write_at = 0;
	stays_full = false;
	d = overlay_must(0);
	ok(brim_device_read(d, 1000, 1, &byte, NULL) == 0 && !byte &&
		   brim_device_read(d, 0, 500000, buf, NULL) == 0 &&
		   !memcmp(buf, was, 500000),
	   "what was there is there", "%u", byte);
	brim_device_close(d);
}

static void test_failing_flush(void)
{
	struct brim_device *d;
	int64_t at;

	for (at = 1; at <= 2; at++) {
		make_base();
		d = overlay_must(BRIM_OVERLAY_CREATE);
		brim_device_write(d, 0, 5, "hello", NULL);
		syncs = 0;
		fail_sync_at = at;
		ok(brim_device_flush(d, &err) == -EIO &&
			   brim_device_flush(d, &err) == -EIO,
		   "a failed flush stays failed", "%s", err.msg);
		fail_sync_at = 0;
		brim_device_close(d);
		d = overlay_must(0);
		brim_device_close(d);
	}
}

/* ------------------------------------------------------------- a log that grows */

static void test_long_log(void)
{
	static uint8_t model[VOLUME_BYTES], buf[VOLUME_BYTES];
	struct brim__overlay *o;
	struct brim_device *d;
	uint64_t k, longest = 0;
	struct stat st;

	make_base();
	for (k = 0; k < VOLUME_BYTES; k++)
		model[k] = base_byte(k);
	d = overlay_must(BRIM_OVERLAY_CREATE);
	o = brim__overlay_device(d)->o;
	for (k = 0; k < 1200; k++) {
		struct step s = { k % 3 ? OP_ZERO : OP_WRITE,
				  k * 7919 % 200 * 4096, 4096 + k % 2,
				  (uint8_t)k };

		device_step(d, &s, model, buf);
		model_step(model, &s, VOLUME_BYTES);
		brim_device_flush(d, NULL);
		longest = BRIM__MAX(longest, o->log.pages);
		if (k % 500 == 499) {
			brim_device_close(d);
			d = overlay_must(0);
			o = brim__overlay_device(d)->o;
		}
	}
	ok(longest >= 256 && longest < 300, "the log is rewritten",
	   "%llu pages", (unsigned long long)longest);
	brim_device_close(d);
	stat(overlay_path, &st);
	ok(st.st_blocks * 512 < 4 << 20, "and gives its room back",
	   "%lld of %lld bytes", (long long)st.st_blocks * 512,
	   (long long)st.st_size);
	d = overlay_must(0);
	ok(is_model(d, model, buf, VOLUME_BYTES), "and reads the same", " ");
	brim_device_close(d);
}

int main(void)
{
	begin();
	test_power_cuts(tap_seed(21));
	test_stale_pages();
	test_kill();
	test_full();
	test_stays_full();
	test_failing_flush();
	test_long_log();
	free(pending);
	free(stable);
	return tap_end();
}
