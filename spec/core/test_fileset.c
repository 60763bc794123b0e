/* SPDX-License-Identifier: MIT */
/*
 * test_fileset.c: names (there and back, and the shape of the tree), sizes and
 * content: that any range is the same as a part of the whole, that overwrites
 * lie over each other in order, how well each kind compresses, how fast it is
 * made and compared.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "fileset.h"
#include "internal.h"
#include "tap.h"

static const struct brim_dist SIZES = { .struct_bytes = sizeof(SIZES),
					.kind = BRIM_DIST_LOG_UNIFORM,
					.min = 1,
					.max = 1 << 20 };
static const struct brim_name_weight EXTENSIONS[] = {
	{ ".jpg", 3 }, { "", 1 }, { ".db", 1 }, { ".never", 0 }
};

static struct brim_fileset *fileset(const struct brim_fileset_options *given)
{
	struct brim_fileset_options o = *given;
	struct brim_err e = { 0 };
	struct brim_fileset *fs;

	o.struct_bytes = sizeof(o);
	if (!o.sizes)
		o.sizes = &SIZES;
	if (brim_fileset_create(&fs, &o, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	return fs;
}

/* ------------------------------------------------------------------- names */

static void test_paths(uint64_t seed)
{
	struct brim_fileset *fs = fileset(
		&(struct brim_fileset_options){ .seed = seed,
						.streams = 3,
						.depth = 3,
						.fan_out = 4,
						.files_per_dir = 10,
						.extensions = EXTENSIONS,
						.extension_count = 4 });
	unsigned int k, jpg = 0, never = 0, wrong = 0;
	char path[256], want[64];

	brim_fileset_path(fs, 2, 10 * 4 * 4 * 5 + 10 * 4 * 3 + 10 * 2 + 7, 0,
			  path, sizeof(path));
	ok(!strncmp(path, "s2/d5/d3/d2/f947", 16), "a path", "%s", path);
	for (k = 0; k < 20000; k++) {
		uint32_t stream, id, n = k < 10000 ? k : k * 214748u;
		int temp, len;

		len = brim_fileset_path(fs, k % 3, n, k & 1, path,
					sizeof(path));
		jpg += !strcmp(path + len - 4, ".jpg");
		never += strstr(path, ".never") != NULL;
		if ((size_t)len != strlen(path) ||
		    brim_fileset_parse(fs, path, &stream, &id, &temp) < 0 ||
		    stream != k % 3 || id != n || temp != (int)(k & 1))
			wrong++;
	}
	ok(!wrong, "paths are parsed back", "%u of 20000 wrong", wrong);
	/* Only those that are not temporary end with it. */
	ok(jpg > 5700 && jpg < 6300, "extensions by weight", "%u of 10000",
	   jpg);
	ok(!never, "an extension of weight 0 is not used", "%u", never);
	ok(brim_fileset_path(fs, 0, 1, 0, want, 5) > 5 && !strcmp(want, "s0/d"),
	   "short buffers are filled like snprintf's", "%s", want);
	brim_fileset_free(fs);
}

static void test_not_paths(void)
{
	static const char *const WRONG[] = {
		"",          "s0",          "s0/",
		"s0/d0/",    "s0/f1",       "s0/d0/f",
		"s0/d0/f1x", "s1/d0/f1",    "s0/d1/f1",
		"s0/d0/f01", "s0/d0/.f1",   "s0/d0/f1.tmp",
		"/s0/d0/f1", "s0/d0/d0/f1", "s0/d0/f99999999999",
		"s00/d0/f1",
	};
	struct brim_fileset *fs =
		fileset(&(struct brim_fileset_options){ .seed = 1 });
	uint32_t stream, id;
	size_t k;
	int temp;

	for (k = 0; k < sizeof(WRONG) / sizeof(*WRONG); k++)
		ok(brim_fileset_parse(fs, WRONG[k], &stream, &id, &temp) ==
			   -ENOENT,
		   "no path of a fileset", "'%s' was taken", WRONG[k]);
	ok(!brim_fileset_parse(fs, "s0/d1/f1000", &stream, &id, &temp) &&
		   id == 1000 && !temp,
	   "the defaults: 1000 files a directory", "not taken");
	brim_fileset_free(fs);
}

/* The longest that can be: 12 levels, numbers of 10 digits. */
static void test_longest_path(void)
{
	struct brim_name_weight x = { ".abcdefghijklmnopqrstuvwxyz1234", 1 };
	struct brim_fileset *fs =
		fileset(&(struct brim_fileset_options){ .streams = UINT32_MAX,
							.depth = 12,
							.fan_out = 2,
							.files_per_dir = 1,
							.extensions = &x,
							.extension_count = 1 });
	char path[256];
	int len = brim_fileset_path(fs, UINT32_MAX - 1, UINT32_MAX, 1, path,
				    sizeof(path));

	ok(len > 90 && len < 256 && (size_t)len == strlen(path),
	   "the longest path", "%d bytes", len);
	brim_fileset_free(fs);
}

static void test_new_levels(void)
{
	struct brim_fileset *fs = fileset(&(struct brim_fileset_options){
		.depth = 3, .fan_out = 3, .files_per_dir = 2 });
	char before[256] = "", path[256];
	unsigned int wrong = 0, level, same;
	uint32_t id;

	for (id = 0; id < 2000; id++) {
		brim_fileset_path(fs, 0, id, 0, path, sizeof(path));
		level = brim__fileset_new_level(fs, id);
		/* As many slashes as the common beginning has directories. */
		for (same = 0; before[same] && before[same] == path[same];)
			same++;
		while (same && path[same - 1] != '/')
			same--;
		while (same)
			level -= path[--same] == '/';
		wrong += level != 0;
		memcpy(before, path, sizeof(before));
	}
	ok(!wrong, "where directories begin", "%u of 2000 wrong", wrong);
	brim_fileset_free(fs);
}

static void test_refused(void)
{
	static const struct brim_dist huge = { .struct_bytes = sizeof(huge),
					       .kind = BRIM_DIST_FIXED,
					       .min = UINT64_C(1) << 62 };
	static const struct brim_name_weight no_dot = { "jpg", 1 };
	static const struct brim_name_weight slash = { ".a/b", 1 };
	static const struct brim_name_weight zero = { ".a", 0 };
	static const struct {
		struct brim_fileset_options o;
		const char *word;
	} CASES[] = {
		{ { .depth = 0 }, "no distribution" },
		{ { .sizes = &huge }, "2^62" },
		{ { .sizes = &SIZES, .depth = 13 }, "depth" },
		{ { .sizes = &SIZES, .compress_ppm = 1000001 }, "compress" },
		{ { .sizes = &SIZES, .extension_count = 1 }, "without" },
		{ { .sizes = &SIZES,
		    .extensions = &no_dot,
		    .extension_count = 1 },
		  "dot" },
		{ { .sizes = &SIZES,
		    .extensions = &slash,
		    .extension_count = 1 },
		  "slash" },
		{ { .sizes = &SIZES,
		    .extensions = &zero,
		    .extension_count = 1 },
		  "all 0" },
	};
	size_t k;

	for (k = 0; k < sizeof(CASES) / sizeof(*CASES); k++) {
		struct brim_fileset_options o = CASES[k].o;
		struct brim_fileset *fs;
		struct brim_err e = { 0 };

		o.struct_bytes = sizeof(o);
		ok(brim_fileset_create(&fs, &o, &e) == -EINVAL && !fs &&
			   strstr(e.msg, CASES[k].word),
		   "refused with its reason", "case %zu: %s", k, e.msg);
	}
}

/* ----------------------------------------------------------------- content */

static const enum brim_content CONTENTS[] = { BRIM_CONTENT_RANDOM,
					      BRIM_CONTENT_ZEROS,
					      BRIM_CONTENT_COMPRESSIBLE };

/* Ranges of all alignments, against the whole file and against compare. */
static void test_ranges(uint64_t seed, enum brim_content content)
{
	struct brim_fileset *fs = fileset(&(struct brim_fileset_options){
		.seed = seed, .content = content, .compress_ppm = 300000 });
	struct brim_file f = { .id = 5,
			       .version = 3,
			       .overwrites = 40,
			       .base_bytes = 300001,
			       .size_bytes = 300001 };
	size_t size = 1200 * 1024, k;
	uint8_t *whole = malloc(size), *part = malloc(size);
	unsigned int wrong = 0, missed = 0;
	uint64_t state = seed;

	f.size_bytes = f.base_bytes = size;
	brim_fileset_content(fs, &f, 0, size, whole);
	for (k = 0; k < 3000; k++) {
		uint64_t off = tap_below(&state, size), at;
		size_t len = (size_t)tap_below(
			&state, BRIM__MIN(size - off + 1,
					  k % 8 ? 9000u : (uint64_t)size));

		brim_fileset_content(fs, &f, off, len, part);
		wrong += memcmp(whole + off, part, len) != 0;
		wrong += brim_fileset_compare(fs, &f, off, len, part) != -1;
		if (!len)
			continue;
		at = tap_below(&state, len);
		part[at] ^= 0x10;
		missed += brim_fileset_compare(fs, &f, off, len, part) !=
			  (int64_t)(off + at);
	}
	ok(!wrong, "ranges are parts of the whole", "content %d: %u wrong",
	   (int)content, wrong);
	ok(!missed, "the first byte that differs is found",
	   "content %d: %u of 3000 not", (int)content, missed);
	free(whole);
	free(part);
	brim_fileset_free(fs);
}

/* Overwrites one by one onto a buffer, against what content says. */
static void test_overwrites(uint64_t seed)
{
	struct brim_fileset *fs =
		fileset(&(struct brim_fileset_options){ .seed = seed });
	struct brim_file f = { .id = 9,
			       .base_bytes = 3000000,
			       .size_bytes = 3000000 };
	uint8_t *model = malloc(3000000), *found = malloc(3000000);
	uint64_t first, count, blocks = brim__overwrite_blocks(f.base_bytes);
	unsigned int wrong = 0, outside = 0, k;

	brim_fileset_content(fs, &f, 0, 3000000, model);
	for (k = 1; k <= 400; k++) {
		f.overwrites = (uint16_t)k;
		brim__overwrite_range(brim__file_key(fs, 0, 9, 0), blocks, k,
				      &first, &count);
		outside += first + count > blocks;
		brim_fileset_content(fs, &f, first * 4096, count * 4096,
				     model + first * 4096);
		if (k % 50)
			continue;
		brim_fileset_content(fs, &f, 0, 3000000, found);
		wrong += memcmp(found, model, 3000000) != 0;
	}
	ok(!wrong && !outside, "overwrites lie over each other in order",
	   "%u wrong, %u outside of the first half", wrong, outside);
	f.overwrites = BRIM_OVERWRITES_UNKNOWN;
	ok(brim_fileset_compare(fs, &f, 0, 3000000, model) == -1,
	   "what is not known differs from nothing", "it does");
	model[blocks * 4096] ^= 1;
	ok(brim_fileset_compare(fs, &f, 0, 3000000, model) ==
		   (int64_t)(blocks * 4096),
	   "what is known of it is compared", "it is not");
	free(model);
	free(found);
	brim_fileset_free(fs);
}

/* Another seed, stream, id or version: nothing in common. */
static void test_apart(void)
{
	struct brim_fileset *a =
		fileset(&(struct brim_fileset_options){ .seed = 1 });
	struct brim_fileset *b =
		fileset(&(struct brim_fileset_options){ .seed = 2 });
	struct brim_file f = { .id = 1,
			       .base_bytes = 4096,
			       .size_bytes = 4096 };
	uint64_t words[5][512], same = 0;
	int j, k, n;

	brim_fileset_content(a, &f, 0, 4096, words[0]);
	brim_fileset_content(b, &f, 0, 4096, words[1]);
	f.version = 1;
	brim_fileset_content(a, &f, 0, 4096, words[2]);
	f.version = 0;
	f.id = 2;
	brim_fileset_content(a, &f, 0, 4096, words[3]);
	f.id = 1;
	f.stream = 1;
	brim_fileset_content(a, &f, 0, 4096, words[4]);
	for (j = 0; j < 5; j++)
		for (k = 0; k < j; k++)
			for (n = 0; n < 512; n++)
				same += words[j][n] == words[k][n];
	ok(!same, "files have nothing in common", "%" PRIu64 " words", same);
	ok(words[0][0] == UINT64_C(0x7aacf2dcc87f4e79) &&
		   words[0][511] == UINT64_C(0xbcf5fd809f773583),
	   "golden content", "0x%" PRIx64 " 0x%" PRIx64, words[0][0],
	   words[0][511]);
	ok(brim_fileset_size(a, 0, 77, 1) == 3258, "golden size", "%" PRIu64,
	   brim_fileset_size(a, 0, 77, 1));
	brim_fileset_free(a);
	brim_fileset_free(b);
}

/* What is left of 8 MiB after gzip; 0 where there is none. */
static double gzipped(const void *buf, size_t len)
{
	char name[] = "/tmp/brim-content-XXXXXX", command[128];
	int fd = mkstemp(name);
	unsigned long n = 0;
	FILE *p;

	if (fd < 0 || write(fd, buf, len) != (ssize_t)len)
		return 0;
	snprintf(command, sizeof(command), "gzip -1 < %s 2>/dev/null | wc -c",
		 name);
	p = popen(command, "r");
	if (!p || fscanf(p, "%lu", &n) != 1)
		n = 0;
	if (p)
		pclose(p);
	close(fd);
	unlink(name);
	return (double)n / (double)len;
}

static void test_ratio(enum brim_content content, uint32_t ppm, double from,
		       double to)
{
	struct brim_fileset *fs = fileset(&(struct brim_fileset_options){
		.seed = 3, .content = content, .compress_ppm = ppm });
	size_t size = 8 << 20;
	struct brim_file f = { .base_bytes = size, .size_bytes = size };
	uint8_t *buf = malloc(size);
	double ratio;

	brim_fileset_content(fs, &f, 0, size, buf);
	ratio = gzipped(buf, size);
	if (ratio == 0)
		skip("compressed by gzip", "no gzip");
	else
		ok(ratio > from && ratio < to, "compressed by gzip",
		   "content %d, %u ppm: to %g", (int)content, ppm, ratio);
	free(buf);
	brim_fileset_free(fs);
}

/* A generous bound: the sanitizers and other machines are slower. */
static void test_speed(void)
{
	struct brim_fileset *fs =
		fileset(&(struct brim_fileset_options){ .seed = 3 });
	struct brim_file f = { .base_bytes = 1 << 30, .size_bytes = 1 << 30 };
	uint8_t *buf = malloc(1 << 20);
	uint64_t begin = brim__now_ns(), made, compared, k;

	for (k = 0; k < 200; k++)
		brim_fileset_content(fs, &f, k << 20, 1 << 20, buf);
	made = brim__now_ns() - begin;
	begin = brim__now_ns();
	for (k = 0; k < 200; k++)
		brim_fileset_compare(fs, &f, 199 << 20, 1 << 20, buf);
	compared = brim__now_ns() - begin;
	printf("# content %.1f GB/s, compare %.1f GB/s\n",
	       200 * 1048576.0 / (double)made,
	       200 * 1048576.0 / (double)compared);
	ok(made < 2000000000 && compared < 2000000000, "memory speed",
	   "%" PRIu64 " ns, %" PRIu64 " ns for 200 MiB", made, compared);
	free(buf);
	brim_fileset_free(fs);
}

int main(void)
{
	uint64_t seed = tap_seed(4);
	size_t k;

	test_paths(seed);
	test_not_paths();
	test_longest_path();
	test_new_levels();
	test_refused();
	for (k = 0; k < 3; k++)
		test_ranges(seed, CONTENTS[k]);
	test_overwrites(seed);
	test_apart();
	test_ratio(BRIM_CONTENT_RANDOM, 0, 0.999, 1.01);
	test_ratio(BRIM_CONTENT_ZEROS, 0, 0, 0.01);
	test_ratio(BRIM_CONTENT_COMPRESSIBLE, 500000, 0.48, 0.53);
	test_ratio(BRIM_CONTENT_COMPRESSIBLE, 250000, 0.23, 0.28);
	test_ratio(BRIM_CONTENT_COMPRESSIBLE, 900000, 0.88, 0.93);
	test_speed();
	return tap_end();
}
