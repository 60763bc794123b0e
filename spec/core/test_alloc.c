/* SPDX-License-Identifier: MIT */
/*
 * test_alloc.c: every allocation fails once, after SQLite's manner: a plan is
 * built of layouts and stamps, sealed, encoded, decoded, read and run, with the
 * N-th allocation failing, for N = 1, 2, ... until nothing failed. Each time
 * the answer is -ENOMEM with its error filled in, and nothing is leaked.
 *
 * The program defines malloc and its kin itself; they count, fail and hand on
 * to the C library's (or to AddressSanitizer's, whose leak check then judges
 * as well).
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "brim.h"
#include "tap.h"

/* How gcc and how clang says so. */
#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#define REAL(name) __interceptor_##name
#else
#define REAL(name) __libc_##name
#endif
#define EXPORTED __attribute__((visibility("default")))

void *REAL(malloc)(size_t n);
void *REAL(calloc)(size_t n, size_t each);
void *REAL(realloc)(void *p, size_t n);
void *REAL(memalign)(size_t align, size_t n);
void REAL(free)(void *p);

static uint64_t calls, fail_at; /* fail_at 0: none fails */
static int64_t live;            /* allocations not freed again */
static bool counting;
static pthread_t tested;

/* Whether this allocation is one that the test is about and fails. */
static bool fails(void)
{
	if (!counting || !pthread_equal(pthread_self(), tested))
		return false;
	if (++calls == fail_at) {
		errno = ENOMEM;
		return true;
	}
	live++;
	return false;
}

EXPORTED void *malloc(size_t n)
{
	return fails() ? NULL : REAL(malloc)(n);
}

EXPORTED void *calloc(size_t n, size_t each)
{
	return fails() ? NULL : REAL(calloc)(n, each);
}

EXPORTED void *realloc(void *p, size_t n)
{
	if (fails())
		return NULL;
	/* What moves was counted when it was made. */
	if (p && counting)
		live--;
	return REAL(realloc)(p, n);
}

EXPORTED void *reallocarray(void *p, size_t n, size_t each)
{
	size_t all;

	if (__builtin_mul_overflow(n, each, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, all);
}

EXPORTED void *aligned_alloc(size_t align, size_t n)
{
	return fails() ? NULL : REAL(memalign)(align, n);
}

EXPORTED char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy = malloc(n);

	return copy ? memcpy(copy, s, n) : NULL;
}

EXPORTED void free(void *p)
{
	if (p && counting && pthread_equal(pthread_self(), tested))
		live--;
	REAL(free)(p);
}

/* ------------------------------------------------------- what is being tested */

/* Everything that one round makes, so that one place frees it. */
struct made {
	struct brim_layout *record, *header;
	struct brim_stamp *stamp;
	struct brim_plan *plan, *copy;
	struct brim_device *device, *reader;
	struct brim_run *run;
	struct brim_scan *scan;
	void *image;
};

static void made_free(struct made *m)
{
	brim_run_close(m->run);
	brim_device_close(m->device);
	brim_device_close(m->reader);
	brim_scan_free(m->scan);
	brim_plan_free(m->plan);
	brim_plan_free(m->copy);
	brim_stamp_free(m->stamp);
	brim_layout_free(m->header);
	brim_layout_free(m->record);
	free(m->image);
}

/* Stops at the first failure, with what it was. */
#define TRY(call)                                                              \
	do {                                                                   \
		int ret_ = (call);                                             \
		if (ret_ < 0)                                                  \
			return ret_;                                           \
	} while (0)

static int make_layouts(struct made *m, struct brim_err *e)
{
	const struct brim_field record[] = {
		{ "key", 0, 4, BRIM_BIG, 1, NULL, 7 },
		{ "tag", 4, 4, 0, 1, NULL, 0 },
	};
	struct brim_layout_options o = { .struct_bytes = sizeof(o),
					 .name = "record",
					 .size_bytes = 8 };
	struct brim_field header[] = {
		{ "magic", 0, 4, BRIM_BIG, 1, NULL, 0x4252494d },
		{ "crc", 4, 4, BRIM_LITTLE, 1, NULL, 0 },
		{ "number", 8, 8, BRIM_BIG, 1, NULL, 0 },
		{ "records", 16, 8, 0, 0, NULL, 0 },
	};

	TRY(brim_layout_create(&m->record, &o, record, 2, e));
	header[3].record = m->record;
	o.name = "header";
	o.size_bytes = 512;
	o.extensible = 1;
	o.checksum_field = "crc";
	o.checksum =
		(struct brim_checksum){ BRIM_CRC32C, ~0u, ~0u, BRIM_LITTLE };
	return brim_layout_create(&m->header, &o, header, 4, e);
}

/* Enough of everything that each growing array grows. */
static int make_stamp(struct made *m, uint64_t count, struct brim_err *e)
{
	uint64_t k;

	TRY(brim_stamp_create(&m->stamp, e));
	for (k = 0; k < 10; k++) {
		TRY(brim_stamp_place(m->stamp, m->header, 4096 * k, 1024, e));
		TRY(brim_stamp_set_int(m->stamp, 4096 * k + 8, 8, BRIM_BIG, 5,
				       3, "number", e));
	}
	TRY(brim_stamp_region(m->stamp, 1024, 100, "bytes", e));
	TRY(brim_stamp_set_bytes(m->stamp, 1030, "abc", 3, e));
	return brim_stamp_seal(m->stamp, 0, count, e);
}

static int add_pieces(struct made *m, struct brim_err *e)
{
	int ret, k;

	TRY(brim_plan_create(&m->plan, "plan", 1u << 30, e));
	TRY(brim_plan_set_note(m->plan, "made by", "nobody", e));
	TRY(brim_plan_set_note(m->plan, "made by", "test_alloc", e));
	TRY(brim_plan_phase(m->plan, "erase", e));
	for (k = 0; k < 20; k++)
		TRY(brim_plan_zero(m->plan, 4096 * (uint64_t)k, 4096, "old",
				   e));
	TRY(brim_plan_phase(m->plan, "groups", e));
	for (k = 0; k < 2; k++) {
		TRY(make_stamp(m, k ? 1 : 40, e));
		ret = brim_plan_each(m->plan, m->stamp, 0, 1u << 20,
				     k ? "first" : "groups", 1, e);
		m->stamp = NULL;
		TRY(ret);
	}
	TRY(brim_plan_zero(m->plan, 1u << 29, 1u << 20, "log", e));
	return brim_plan_seal(m->plan, e);
}

static int use_image(struct made *m, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = "sync",
				      .threads = 1,
				      .queue_depth = 4 };
	uint8_t buf[4096];
	size_t len;

	TRY(brim_image_encode(m->plan, &m->image, &len, e));
	TRY(brim_image_decode(&m->copy, m->image, len, e));
	TRY(brim_plan_read(m->copy, 3u << 20, sizeof(buf), buf, e));
	TRY(brim_device_open_plan(&m->reader, m->copy, e));
	TRY(brim_device_read(m->reader, 0, sizeof(buf), buf, e));
	TRY(brim_run_open(&m->run, m->plan, m->reader, BRIM_RUN_VERIFY, &o, e));
	TRY(brim_run_step(m->run, 0, NULL, e));
	brim_run_close(m->run);
	m->run = NULL;
	return 0;
}

static int use_scan(struct made *m, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = "sync",
				      .threads = 1,
				      .queue_depth = 4 };

	struct brim_scan_range range = { 0, 1u << 20, 0, 40 };

	TRY(brim_scan_create(&m->scan, e));
	TRY(brim_scan_expect_layout(m->scan, m->header, 0, 1024, e));
	TRY(brim_scan_expect_int(m->scan, 8, 8, BRIM_BIG, 5, 3, "header",
				 "number", e));
	TRY(brim_scan_open(&m->run, m->scan, m->reader, &range, &o, e));
	TRY(brim_run_step(m->run, 0, NULL, e));
	brim_run_close(m->run);
	m->run = NULL;
	return 0;
}

static int write_null(struct made *m, const char *engine, struct brim_err *e)
{
	struct brim_run_options o = { .struct_bytes = sizeof(o),
				      .engine = engine,
				      .queue_depth = 8 };

	TRY(brim_device_open_null(&m->device, 1u << 30, e));
	TRY(brim_run_open(&m->run, m->plan, m->device, BRIM_RUN_WRITE, &o, e));
	TRY(brim_run_step(m->run, 0, NULL, e));
	brim_run_close(m->run);
	brim_device_close(m->device);
	m->run = NULL;
	m->device = NULL;
	return 0;
}

static int everything(struct made *m, struct brim_err *e)
{
	TRY(make_layouts(m, e));
	TRY(add_pieces(m, e));
	TRY(write_null(m, "null", e));
	TRY(write_null(m, "fault:short=512,op=write,inner=null", e));
	TRY(use_image(m, e));
	return use_scan(m, e);
}

/* Image files: their path, and a file that is opened for writing. */
static char image_path[256], target_path[256];

static int files(struct made *m, struct brim_err *e)
{
	struct brim_device_options o = { .struct_bytes = sizeof(o),
					 .flags = BRIM_DEVICE_WRITE |
						  BRIM_DEVICE_CREATE,
					 .min_size_bytes = 1u << 20 };

	TRY(make_layouts(m, e));
	TRY(add_pieces(m, e));
	TRY(brim_image_save(m->plan, image_path, e));
	TRY(brim_image_load(&m->copy, image_path, e));
	TRY(brim_device_open(&m->reader, image_path, NULL, e));
	return brim_device_open(&m->device, target_path, &o, e);
}

/* ------------------------------------------------------------------ the loop */

static int one_round(int (*what)(struct made *, struct brim_err *), uint64_t n,
		     struct brim_err *e)
{
	struct made m = { 0 };
	int ret;

	memset(e, 0, sizeof(*e));
	unlink(image_path);
	unlink(target_path);
	calls = 0;
	live = 0;
	fail_at = n;
	counting = true;
	ret = what(&m, e);
	made_free(&m);
	counting = false;
	return ret;
}

/*
 * Allocations whose failure is no failure: registered buffers, libblkid's own
 * (it says "no memory" in its own way). Then the round succeeds all the same.
 */
static void loop(const char *name,
		 int (*what)(struct made *, struct brim_err *))
{
	uint64_t n = 0, wrong = 0, survived = 0, leaks = 0;
	struct brim_err e, first = { 0 };
	int ret, first_ret = 0;

	do {
		ret = one_round(what, ++n, &e);
		if (live) {
			leaks++;
			printf("# %s: %lld allocations left after failure %llu"
			       ": %s\n",
			       name, (long long)live, (unsigned long long)n,
			       e.msg);
		}
		if (ret >= 0) {
			survived += calls >= n;
		} else if (ret != -ENOMEM || e.code != -ENOMEM || !e.op ||
			   !e.msg[0] || strchr(e.msg, '\n')) {
			if (!wrong++) {
				first = e;
				first_ret = ret;
			}
		}
	} while (calls >= n && n < 100000);
	printf("# %s: %llu allocations, %llu of them can be done without\n",
	       name, (unsigned long long)n - 1, (unsigned long long)survived);
	ok(ret == 0 && n > 20, name, "it does not end: %d %s", ret, e.msg);
	ok(!wrong, "each failure is -ENOMEM, with its error",
	   "%llu are wrong, the first: %d (error %d '%s')",
	   (unsigned long long)wrong, first_ret, first.code, first.msg);
	ok(!leaks, "nothing is left", "%llu failures leak",
	   (unsigned long long)leaks);
}

int main(void)
{
	const char *dir = getenv("TMPDIR");

	tested = pthread_self();
	snprintf(image_path, sizeof(image_path), "%s/test_alloc.%ld.brim",
		 dir ? dir : "/tmp", (long)getpid());
	snprintf(target_path, sizeof(target_path), "%s/test_alloc.%ld.img",
		 dir ? dir : "/tmp", (long)getpid());
	loop("plans, images, runs and scans", everything);
	loop("files", files);
	unlink(image_path);
	unlink(target_path);
	return tap_end();
}
