/* SPDX-License-Identifier: MIT */
/*
 * test_plan_refuse.c: what stamps, plans and images refuse, and why; what an
 * image may replace; plans of as many groups as there can be.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "../../core/image.h"
#include "../../core/plan.h"
#include "tap.h"

static void test_refusals(void)
{
	struct brim_err e = { 0 };
	struct brim_stamp *s;
	struct brim_plan *p;

	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, 64, "a", NULL);
	ok(brim_stamp_region(s, 63, 8, "b", &e) == -EEXIST,
	   "overlapping regions", "%s", e.msg);
	ok(brim_stamp_set_int(s, 0, 1, BRIM_BIG, 256, 0, "f", &e) == -ERANGE,
	   "a constant too wide", "%s", e.msg);
	ok(brim_stamp_set_int(s, 0, 1, BRIM_BIG, -128, 0, "f", &e) == 0,
	   "a negative constant that fits", "%s", e.msg);
	ok(brim_stamp_set_int(s, 62, 4, BRIM_BIG, 0, 1, "f", &e) == -ERANGE,
	   "a field past its region", "%s", e.msg);
	brim_stamp_set_int(s, 8, 2, BRIM_BIG, 0, 1, "seqno", NULL);
	ok(brim_stamp_seal(s, 0, 65537, &e) == -ERANGE &&
		   strstr(e.msg, "seqno"),
	   "a value that outgrows its field is named", "%s", e.msg);
	ok(brim_stamp_seal(s, 0, 65536, &e) == 0, "its last value fits", "%s",
	   e.msg);
	brim_plan_create(&p, "p", 1 << 20, NULL);
	ok(brim_plan_each(p, s, 0, 32, "x", 0, &e) == -EINVAL,
	   "a stride shorter than the instance", "%s", e.msg);
	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, 64, "a", NULL);
	brim_stamp_seal(s, 0, 100, NULL);
	brim_plan_each(p, s, 0, 128, "base", 1, NULL);
	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 32, 64, "a", NULL);
	brim_stamp_seal(s, 7, 1, NULL);
	brim_plan_each(p, s, 0, 128, "over", 1, NULL);
	ok(brim_plan_seal(p, &e) == -EEXIST && strstr(e.msg, "over") &&
		   strstr(e.msg, "base"),
	   "part of an instance covered in one phase", "%s", e.msg);
	brim_plan_free(p);
}

/* A stamp of one region of zeros. */
static struct brim_stamp *plain_stamp(uint32_t len, uint64_t first)
{
	struct brim_stamp *s;

	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, len, "plain", NULL);
	brim_stamp_seal(s, first, 1, NULL);
	return s;
}

static void test_arguments(void)
{
	struct brim_checksum how = { 0, 0, 0, BRIM_LITTLE };
	struct brim_plan_totals t;
	struct brim_err e = { 0 };
	struct brim_stamp *s;
	struct brim_plan *p;

	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, 64, "a", NULL);
	ok(brim_stamp_set_int(s, 0, 3, BRIM_BIG, 0, 1, "f", &e) == -EINVAL,
	   "an integer of 3 bytes", "%s", e.msg);
	ok(brim_stamp_set_int(s, 0, 16, BRIM_BIG, 0, 1, "f", &e) == -EINVAL,
	   "an integer of 16 bytes", "%s", e.msg);
	ok(brim_stamp_set_int(s, 0, 4, 0, 0, 1, "f", &e) == -EINVAL,
	   "an integer without byte order", "%s", e.msg);
	ok(brim_stamp_set_checksum(s, 0, 0, 64, &how, &e) == -EINVAL,
	   "an unknown checksum", "%s", e.msg);
	ok(brim_stamp_region(s, 64, BRIM_STAMP_MAX_BYTES, "b", &e) == -EFBIG &&
		   brim_stamp_region(s, 64, 64, "c", &e) == 0,
	   "a region too many leaves room for one that fits", "%s", e.msg);
	brim_stamp_free(s);
	brim_plan_create(&p, "p", 1 << 30, NULL);
	brim_plan_each(p, plain_stamp(4096, 5), 0, 1000003, "odd", 0, NULL);
	ok(brim_plan_set_note(p, "gone", "x", NULL) == 0 &&
		   brim_plan_set_note(p, "gone", NULL, NULL) == 0,
	   "a note is cleared", "-");
	brim_plan_seal(p, NULL);
	brim_plan_totals(p, 0, &t);
	ok(t.align_bytes == 1 && t.writes == 1,
	   "a single instance counts with its offset", "%u, %llu",
	   t.align_bytes, (unsigned long long)t.writes);
	ok(brim_plan_set_note(p, "late", "x", &e) == -EINVAL,
	   "no notes once it is sealed", "%s", e.msg);
	brim_plan_free(p);
}

/* Only an image, nothing or an empty file is replaced by an image. */
static void test_save(void)
{
	char path[] = "/tmp/brim-save.XXXXXX", buf[5] = { 0 };
	struct brim_err e = { 0 };
	struct brim_plan *p, *q = NULL;
	int fd = mkstemp(path);

	brim_plan_create(&p, "p", 1 << 20, NULL);
	brim_plan_set_note(p, "cleared", "x", NULL);
	brim_plan_set_note(p, "cleared", NULL, NULL);
	brim_plan_each(p, plain_stamp(64, 0), 0, 0, "x", 0, NULL);
	brim_plan_seal(p, NULL);
	ok(brim_image_save(p, path, &e) == 0, "saved over an empty file", "%s",
	   e.msg);
	ok(brim_image_save(p, path, &e) == 0, "saved over an image", "%s",
	   e.msg);
	ok(brim_image_load(&q, path, &e) == 0 && !brim_plan_note(q, "cleared"),
	   "a cleared note does not come back", "%s", e.msg);
	close(fd);
	fd = open(path, O_WRONLY | O_TRUNC);
	if (write(fd, "text", 4) != 4)
		perror("write");
	ok(brim_image_save(p, path, &e) == -EEXIST && strstr(e.msg, path),
	   "not saved over a text", "%s", e.msg);
	close(fd);
	fd = open(path, O_RDONLY);
	ok(read(fd, buf, 4) == 4 && !strcmp(buf, "text"), "the text is there",
	   "%s", buf);
	close(fd);
	unlink(path);
	brim_plan_free(p);
	brim_plan_free(q);
}

/* Eight million groups, one every TiB, and one more piece per group. */
static void test_many(void)
{
	uint64_t stride = (1ull << 40) - 4096, n = 8387585;
	struct brim_stamp *s;
	struct brim_plan *p;
	struct brim_plan_totals t;
	struct brim_err e = { 0 };
	uint8_t buf[8];
	int ret;

	brim_plan_create(&p, "many", 8191ull << 50, NULL);
	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 0, 4096, "a", NULL);
	brim_stamp_set_int(s, 8, 8, BRIM_BIG, 5, 3, "v", NULL);
	brim_stamp_seal(s, 0, n - 1, NULL);
	brim_plan_each(p, s, 0, stride, "a", 1, NULL);
	brim_stamp_create(&s, NULL);
	brim_stamp_region(s, 8192, 4096, "b", NULL);
	brim_stamp_seal(s, 0, n - 1, NULL);
	brim_plan_each(p, s, 0, stride, "b", 0, NULL);
	ret = brim_plan_seal(p, &e);
	brim_plan_totals(p, 1 << 20, &t);
	ok(ret == 0 && t.groups == n - 1 && t.writes == 2 * (n - 1),
	   "interleaved pieces of equal stride", "%s", e.msg);
	brim_plan_read(p, stride * 8000000 + 8, 8, buf, NULL);
	ok(brim__load(buf, 8, BRIM_BIG) == 5 + 3 * 8000000ull, "a read far out",
	   "%llu", (unsigned long long)brim__load(buf, 8, BRIM_BIG));
	brim_plan_free(p);
}

int main(void)
{
	test_refusals();
	test_arguments();
	test_save();
	test_many();
	return tap_end();
}
