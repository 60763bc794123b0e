/* SPDX-License-Identifier: MIT */
/*
 * test_trace_write.c: the trace writer: each format's lines as they must be,
 * several threads at once, and failures, which are kept for close.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "trace.h"

static char path[4096];

static char *slurp(void)
{
	static char text[8 << 20];
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = 0;
	if (f)
		fclose(f);
	return text;
}

static struct brim__trace *begin(const char *format)
{
	struct brim__trace *t;
	struct brim_err e = { 0 };

	if (brim__trace_open(&t, path, format, &e) < 0) {
		printf("not ok open: %s\n", e.msg);
		exit(1);
	}
	return t;
}

/* A file's life, with a time going back and a rename. */
static const struct brim_trace_event life[] = {
	{ .op = BRIM_TRACE_MKDIR, .path = "d" },
	{ .op = BRIM_TRACE_CREATE, .path = "d/a", .at_ns = 50000 },
	{ .op = BRIM_TRACE_WRITE,
	  .path = "d/a",
	  .at_ns = 60000,
	  .len_bytes = 4096 },
	{ .op = BRIM_TRACE_WRITE,
	  .path = "d/a",
	  .at_ns = 250999,
	  .off_bytes = 1ull << 62,
	  .len_bytes = 1 },
	{ .op = BRIM_TRACE_SYNC, .path = "d/a", .at_ns = 250000 },
	{ .op = BRIM_TRACE_CLOSE, .path = "d/a", .at_ns = 300000 },
	{ .op = BRIM_TRACE_RENAME, .path = "d/a", .to = "b", .at_ns = 300001 },
	{ .op = BRIM_TRACE_TRUNCATE, .path = "b", .len_bytes = 7, .stream = 3 },
	{ .op = BRIM_TRACE_UNLINK, .path = "b", .at_ns = 2000000 },
};

static void check_life(const char *format, uint64_t omitted, const char *want)
{
	struct brim__trace *t = begin(format);
	struct brim_err e = { 0 };
	size_t k;
	int ret;

	for (k = 0; k < sizeof(life) / sizeof(*life); k++)
		brim__trace_op(t, &life[k]);
	ok(brim__trace_omitted(t) == omitted, "what has no word is counted",
	   "%s: %llu", format, (unsigned long long)brim__trace_omitted(t));
	ret = brim__trace_close(t, &e);
	ok(ret == 0 && !strcmp(slurp(), want), format, "%d: %s\n%s", ret, e.msg,
	   slurp());
}

static void test_formats(void)
{
	check_life("iolog2", 4,
		   "fio version 2 iolog\n"
		   "d/a add\n"
		   "d/a open\n"
		   "d/a write 0 4096\n"
		   "d/a wait 250 0\n"
		   "d/a write 4611686018427387904 1\n"
		   "d/a sync 0 0\n"
		   "d/a close\n");
	check_life("iolog3", 4,
		   "fio version 3 iolog\n"
		   "50 d/a add\n"
		   "50 d/a open\n"
		   "60 d/a write 0 4096\n"
		   "250 d/a write 4611686018427387904 1\n"
		   "250 d/a sync 0 0\n"
		   "300 d/a close\n");
	check_life(
		"jsonl", 0,
		"{\"format\":\"brim-trace\",\"version\":1}\n"
		"{\"at_ns\":0,\"stream\":0,\"op\":\"mkdir\",\"path\":\"d\"}\n"
		"{\"at_ns\":50000,\"stream\":0,\"op\":\"create\",\"path\":\"d/"
		"a\"}\n"
		"{\"at_ns\":60000,\"stream\":0,\"op\":\"write\",\"path\":\"d/"
		"a\",\"off_bytes\":0,\"len_bytes\":4096}\n"
		"{\"at_ns\":250999,\"stream\":0,\"op\":\"write\",\"path\":\"d/"
		"a\",\"off_bytes\":4611686018427387904,\"len_bytes\":1}\n"
		"{\"at_ns\":250999,\"stream\":0,\"op\":\"sync\",\"path\":\"d/"
		"a\"}\n"
		"{\"at_ns\":300000,\"stream\":0,\"op\":\"close\",\"path\":\"d/"
		"a\"}\n"
		"{\"at_ns\":300001,\"stream\":0,\"op\":\"rename\",\"path\":\"d/"
		"a\",\"to\":\"b\"}\n"
		"{\"at_ns\":300001,\"stream\":3,\"op\":\"truncate\",\"path\":"
		"\"b\",\"len_bytes\":7}\n"
		"{\"at_ns\":2000000,\"stream\":0,\"op\":\"unlink\",\"path\":"
		"\"b\"}\n");
}

/* ----------------------------------------------------------------- threads */

#define THREADS 4
#define FILES 3000

static struct brim__trace *shared;

static void *submit(void *arg)
{
	uint32_t stream = (uint32_t)(uintptr_t)arg, k;
	char name[64];

	for (k = 0; k < FILES; k++) {
		struct brim_trace_event x = { .op = BRIM_TRACE_CREATE,
					      .stream = stream,
					      .path = name,
					      .at_ns = k * 1000 };

		snprintf(name, sizeof(name), "s%u/f%u", stream, k);
		brim__trace_op(shared, &x);
		x.op = BRIM_TRACE_WRITE;
		x.len_bytes = k + 1;
		brim__trace_op(shared, &x);
		x.op = BRIM_TRACE_CLOSE;
		brim__trace_op(shared, &x);
	}
	return NULL;
}

/* Each line whole, each file added once and before it is opened. */
static void test_threads(void)
{
	static uint8_t state[THREADS][FILES];
	unsigned int stream, k, wrong = 0, lines = 0;
	unsigned long long at, off, len, last = 0;
	pthread_t thread[THREADS];
	char *line, *save = NULL, action[16];
	int ret;

	shared = begin("iolog3");
	for (k = 0; k < THREADS; k++)
		pthread_create(&thread[k], NULL, submit, (void *)(uintptr_t)k);
	for (k = 0; k < THREADS; k++)
		pthread_join(thread[k], NULL);
	ret = brim__trace_close(shared, NULL);
	line = strtok_r(slurp(), "\n", &save);
	while ((line = strtok_r(NULL, "\n", &save))) {
		static const char *const want[] = { "add", "open", "write",
						    "close" };
		int n = sscanf(line, "%llu s%u/f%u %15s %llu %llu", &at,
			       &stream, &k, action, &off, &len);

		lines++;
		if (n < 4 || stream >= THREADS || k >= FILES || at < last ||
		    state[stream][k] > 3 ||
		    strcmp(action, want[state[stream][k]]) ||
		    (n == 6 && len != k + 1))
			wrong++;
		else
			state[stream][k]++;
		last = at;
	}
	ok(ret == 0 && !wrong && lines == 4 * THREADS * FILES,
	   "lines of several threads are whole and in order", "%d, %u of %u",
	   ret, wrong, lines);
}

/* ---------------------------------------------------------------- failures */

static int close_after(const char *format, const struct brim_trace_event *x,
		       unsigned int times)
{
	struct brim__trace *t = begin(format);

	while (times--)
		brim__trace_op(t, x);
	return brim__trace_close(t, NULL);
}

static void test_failures(void)
{
	struct brim_trace_event x = { .op = BRIM_TRACE_WRITE,
				      .path = "a b",
				      .len_bytes = 1 };
	static char name[5000];
	struct brim__trace *t;
	struct brim_err e = { 0 };
	char keep[sizeof(path)];
	int ret;

	ret = close_after("iolog2", &x, 2);
	ok(ret == -EILSEQ, "iolog: a path with a blank", "%d", ret);
	ret = close_after("jsonl", &x, 2);
	ok(ret == 0, "jsonl: a path with a blank", "%d", ret);
	x.path = "a\"\\\x01\xc3\xa4";
	ret = close_after("jsonl", &x, 1);
	ok(ret == 0 && strstr(slurp(), "\"a\\\"\\\\\\u0001\xc3\xa4\""),
	   "jsonl: a path is escaped", "%d %s", ret, slurp());
	memset(name, 'x', 256);
	x.path = name;
	ret = close_after("iolog3", &x, 1);
	ok(ret == -ENAMETOOLONG, "iolog: a path fio cannot read", "%d", ret);
	memset(name, '\x01', 4095);
	ret = close_after("jsonl", &x, 100);
	ok(ret == 0, "jsonl: the longest path", "%d", ret);
	name[4095] = 'x';
	ret = close_after("jsonl", &x, 1);
	ok(ret == -ENAMETOOLONG, "jsonl: one byte more", "%d", ret);
	ret = brim__trace_open(&t, path, "csv", &e);
	ok(ret == -EINVAL && !t && strstr(e.msg, "iolog2"), "no such format",
	   "%d %s", ret, e.msg);
	memcpy(keep, path, sizeof(path));
	snprintf(path, sizeof(path), "/dev/full");
	x.path = "a";
	ret = close_after("jsonl", &x, 20000);
	ok(ret == -ENOSPC, "a full disk is told by close", "%d", ret);
	memcpy(path, keep, sizeof(path));
	ok(brim__trace_close(NULL, NULL) == 0, "close takes NULL", "no");
}

int main(void)
{
	const char *dir = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/trace.%ld", dir ? dir : "/tmp",
		 (long)getpid());
	test_formats();
	test_threads();
	test_failures();
	unlink(path);
	return tap_end();
}
