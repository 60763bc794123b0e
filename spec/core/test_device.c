/* SPDX-License-Identifier: MIT */
/*
 * test_device.c: devices over files, images, plans and nothing: what is
 * refused and how it is said, what a refusal leaves behind, and I/O up to the
 * largest offset. test_device_refuse.c has signatures and block devices.
 */
#include <pthread.h>
#include <sys/resource.h>

#include "device_helper.h"

/* ------------------------------------------------------- what is no target */

static void test_not_targets(void)
{
	char fifo[PATH_BYTES], link[PATH_BYTES];

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	if (mkfifo(fifo, 0600) < 0 || symlink("nowhere", link) < 0)
		exit(1);
	refused("empty path", "", WRITE, 0, -ENOENT, "path is empty");
	refused("missing", at(dir, "no"), 0, 0, -ENOENT, "does not exist");
	refused("missing, for writing", at(dir, "no"), WRITE, 0, -ENOENT,
		"does not exist");
	refused("directory", dir, 0, 0, -ENOTBLK, "is a directory");
	refused("directory, for writing", dir, FORCE, 0, -ENOTBLK,
		"is a directory");
	refused("fifo", fifo, WRITE, 0, -ENOTBLK, "is a pipe");
	refused("character device", "/dev/null", WRITE, 0, -ENOTBLK,
		"is a character device");
	refused("no parent", at(dir, "no/x"), CREATE, 0, -ENOENT,
		"its directory does not exist");
	refused("a file as parent", at(dir, "fifo/x"), CREATE, 0, -ENOTDIR,
		"fifo/x");
	refused("dangling link", link, CREATE, 0, -ENOENT,
		"symbolic link to nowhere");
}

/* The reason must survive a path that is longer than any message. */
static void test_long_path(void)
{
	char path[2000], name[200];
	size_t len;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	len = (size_t)snprintf(path, sizeof(path), "%s", dir);
	while (len < 1500)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/%s",
					name);
	snprintf(path + len, sizeof(path) - len, "/the\nend");
	refused("long path", path, 0, 0, -ENOENT, "the?end does not exist");
	ok(!strncmp(err.msg, "...nnn", 6), "shown by its end", "%s", err.msg);
}

static void test_options(void)
{
	struct brim_device_options o = { 0 };
	struct brim_device *d;
	const char *path = at(dir, "options");

	make(path, 4096, "", 0);
	ok(brim_device_open(&d, path, &o, NULL) == -EINVAL && !d,
	   "options without a size", " ");
	refused("unknown flags", path, 1u << 30, 0, -EINVAL, "0x40000000");
	refused("direct and buffered", path,
		BRIM_DEVICE_DIRECT | BRIM_DEVICE_BUFFERED, 0, -EINVAL,
		"exclude");
	refused("create without write", path, BRIM_DEVICE_CREATE, 0, -EINVAL,
		"without write");
	refused("2^63 bytes", path, WRITE, TOP + 1, -ERANGE, "2^63-1");
	refused("read-only and too small", path, 0, 4097, -ENOSPC,
		"it has 4 KiB, and 4097 are needed");
	ok(brim_device_open(&d, path, NULL, NULL) == 0, "no options", " ");
	brim_device_close(d);
	o.struct_bytes = sizeof(o);
	o.max_size_bytes = 1000;
	if (brim_device_open(&d, path, &o, NULL) == 0) {
		struct brim_device_info info;

		brim_device_info(d, &info);
		ok(info.size_bytes == 1000 && !info.is_writable &&
			   info.kind == BRIM_KIND_FILE,
		   "cut to max_size_bytes", "%" PRIu64, info.size_bytes);
		ok(brim_device_write(d, 0, 1, "x", NULL) == -EROFS &&
			   brim_device_zero(d, 0, 1, NULL) == -EROFS,
		   "not open for writing", " ");
		brim_device_close(d);
	}
}

/* ------------------------------------------------------------ making files */

static void test_create(void)
{
	struct rlimit old, low = { .rlim_cur = MIB };
	struct brim_device *d;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/created", dir);
	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	refused("file size limit", path, CREATE, MIB + 1, -EFBIG, "ulimit");
	setrlimit(RLIMIT_FSIZE, &old);
	ok(file_size(path) == -1, "a failed creation is undone", " ");
	/* ext4: 16 TiB. Some host filesystems do hold 2^63-1. */
	if (open_at(&d, path, CREATE, TOP) == 0)
		brim_device_close(d);
	else
		ok(err.code == -EFBIG && strstr(err.msg, path) &&
			   strstr(err.msg, "9223372036854775807") &&
			   file_size(path) == -1,
		   "too long for the filesystem", "%s", err.msg);
	unlink(path);
	ok(open_at(&d, path, CREATE, MIB) == 0 && file_size(path) == MIB,
	   "created", "%s", err.msg);
	brim_device_close(d);
	ok(open_at(&d, path, CREATE, 10) == 0 && file_size(path) == MIB,
	   "an existing one is never cut", "%s", err.msg);
	brim_device_close(d);
	ok(open_at(&d, path, WRITE, 2 * MIB) == 0 && file_size(path) == 2 * MIB,
	   "extended", "%s", err.msg);
	brim_device_close(d);
}

static void as_nobody(const char *path)
{
	refused("not writable", path, WRITE, 0, -EACCES, "no permission");
	refused("not creatable", at(dir, "denied"), CREATE, 0, -EACCES,
		"no permission");
	chmod(path, 0600);
}

static void test_permissions(void)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/mine", dir);
	make(path, 4096, "", 0);
	chmod(dir, 0755);
	if (geteuid() != 0) {
		chmod(path, 0444);
		refused("not writable", path, WRITE, 0, -EACCES,
			"no permission");
		return;
	}
	if (seteuid(65534) < 0) {
		skip("permissions", "cannot become nobody");
		return;
	}
	as_nobody(path);
	if (seteuid(0) < 0)
		exit(1);
}

/* --------------------------------------------------------------------- I/O */

/* A block at the top of a file of this size: written, read, made a hole. */
static void check_size(uint64_t size)
{
	char path[PATH_BYTES], name[64], in[4096], out[4096];
	uint64_t len = size < 4096 ? size : 4096, off = size - len;
	struct brim_device *d;
	struct stat st = { 0 };
	int ret;

	snprintf(path, sizeof(path), "%s/size", big_dir);
	snprintf(name, sizeof(name), "size %" PRIu64, size);
	memset(in, 0xa5, sizeof(in));
	ret = open_at(&d, path, CREATE, size);
	ok(ret == 0 && file_size(path) == (int64_t)size, name, "%s", err.msg);
	if (ret < 0)
		return;
	memset(out, 0, sizeof(out));
	ok(brim_device_write(d, off, len, in, &err) == 0 &&
		   brim_device_read(d, off, len, out, &err) == 0 &&
		   !memcmp(in, out, len),
	   "written and read at the top", "%s", err.msg);
	ok(brim_device_read(d, off + 1, len, out, &err) == -ERANGE &&
		   err.offset_bytes == off + 1,
	   "one byte past the end", "%s", err.msg);
	ok(brim_device_write(d, off + 1, len, in, NULL) == -ERANGE,
	   "written past the end", " ");
	ok(brim_device_zero(d, 0, size, &err) == 0 &&
		   brim_device_read(d, off, len, out, &err) == 0 &&
		   (!len || (out[0] == 0 && out[len - 1] == 0)) &&
		   stat(path, &st) == 0 && st.st_size == (int64_t)size &&
		   st.st_blocks <= (size % 4096 ? 8 : 0), /* the last page */
	   "zeroed to a hole", "%s, %ld blocks", err.msg, (long)st.st_blocks);
	brim_device_close(d);
	unlink(path);
}

static void test_sizes(void)
{
	static const uint64_t SIZES[] = {
		0,
		1,
		4095,
		4096,
		4097,
		UINT64_C(1) << 31,
		UINT64_C(1) << 32,
		UINT64_C(1) << 53,
		(UINT64_C(1) << 53) + 1,
		UINT64_C(1) << 62,
		INT64_MAX - UINT64_C(4096),
		INT64_MAX - UINT64_C(4095),
		INT64_MAX,
	};
	size_t k;

	if (!*big_dir) {
		skip("sizes", "no tmpfs at /dev/shm");
		return;
	}
	for (k = 0; k < sizeof(SIZES) / sizeof(*SIZES); k++)
		check_size(SIZES[k]);
}

static void check_ranges(struct brim_device *d, uint64_t size)
{
	static const uint64_t FAR[] = { INT64_MAX, UINT64_C(1) << 63,
					UINT64_MAX - 1, UINT64_MAX };
	char buf[8] = "";
	size_t k;

	for (k = 0; k < 4; k++)
		ok(brim_device_read(d, FAR[k], 8, buf, NULL) == -ERANGE &&
			   brim_device_write(d, FAR[k], 8, buf, NULL) ==
				   -ERANGE &&
			   brim_device_zero(d, 1, FAR[k], NULL) == -ERANGE &&
			   brim_device_discard(d, 1, FAR[k], NULL) == -ERANGE,
		   "far outside", "%" PRIu64, FAR[k]);
	ok(brim_device_read(d, size, 0, buf, NULL) == 0 &&
		   brim_device_write(d, size, 0, buf, NULL) == 0 &&
		   brim_device_zero(d, size, 0, NULL) == 0,
	   "nothing at the end", " ");
	ok(brim_device_read(d, size + 1, 0, buf, NULL) == -ERANGE,
	   "nothing past the end", " ");
}

static void test_file(void)
{
	const char *path = at(dir, "file");
	struct brim_device *d;
	char buf[8] = "";

	make(path, 100, "", 0);
	if (open_at(&d, path, WRITE, 0) < 0)
		exit(1);
	check_ranges(d, 100);
	ok(brim_device_discard(d, 0, 50, &err) == -EOPNOTSUPP,
	   "files are not discarded", "%s", err.msg);
	ok(brim_device_flush(d, NULL) == 0, "flush", " ");
	if (truncate(path, 50) < 0)
		exit(1);
	ok(brim_device_read(d, 60, 8, buf, &err) == -EIO &&
		   err.offset_bytes == 60,
	   "cut short while open", "%s", err.msg);
	brim_device_close(d);
	brim_device_close(NULL);
}

/* Any offset and length may be read of a direct device; writes are strict. */
static void check_direct(struct brim_device *d, uint32_t align, uint64_t size)
{
	size_t len = 3 * MIB + 3 * align;
	uint8_t *in = aligned_alloc(4096, 4 * MIB), *out = malloc(len + 1);
	size_t k;

	for (k = 0; k < len; k++)
		in[k] = (uint8_t)(k * 7 + k / 251);
	ok(brim_device_write(d, 0, len, in, &err) == 0, "direct write", "%s",
	   err.msg);
	memmove(in + 1, in, len);
	ok(brim_device_write(d, 0, len, in + 1, &err) == 0,
	   "direct write of an unaligned buffer", "%s", err.msg);
	ok(brim_device_read(d, 0, len, out + 1, &err) == 0 &&
		   !memcmp(in + 1, out + 1, len),
	   "direct read to an unaligned buffer", "%s", err.msg);
	ok(brim_device_read(d, 5, len - 13, out, &err) == 0 &&
		   !memcmp(in + 6, out, len - 13),
	   "direct read of an unaligned range", "%s", err.msg);
	ok(brim_device_read(d, size - 1, 1, out, &err) == 0,
	   "direct read of the last byte", "%s", err.msg);
	ok(brim_device_write(d, 1, align, in, &err) == -EINVAL &&
		   strstr(err.msg, "multiples of"),
	   "direct write at an unaligned offset", "%s", err.msg);
	ok(brim_device_write(d, 0, align - 1, in, &err) == -EINVAL,
	   "direct write of an unaligned length", "%s", err.msg);
	free(in);
	free(out);
}

static void test_direct(void)
{
	const char *path = at(dir, "direct");
	struct brim_device_info info;
	struct brim_device *d;

	/* The end is not aligned, and still readable. */
	make(path, 8 * MIB + 100, "", 0);
	if (open_at(&d, path, WRITE | BRIM_DEVICE_DIRECT, 0) == -EINVAL) {
		skip("direct", "no direct I/O in the temporary directory");
		return;
	}
	brim_device_info(d, &info);
	ok(info.is_direct && info.align_bytes >= 1 &&
		   info.logical_sector_bytes >= info.align_bytes,
	   "direct file", "%u", info.align_bytes);
	check_direct(d, info.align_bytes, info.size_bytes);
	brim_device_close(d);
}

struct worker {
	struct brim_device *d;
	uint64_t off;
	int ret;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	uint8_t in[512], out[512];
	unsigned int k;

	for (k = 0; k < 500 && w->ret == 0; k++) {
		memset(in, (int)(k + w->off), sizeof(in));
		w->ret = brim_device_write(w->d, w->off, 512, in, NULL);
		if (w->ret == 0)
			w->ret = brim_device_read(w->d, w->off, 512, out, NULL);
		if (w->ret == 0 && memcmp(in, out, 512))
			w->ret = -EIO;
	}
	return NULL;
}

static void test_threads(void)
{
	struct worker w[4] = { 0 };
	struct brim_device *d;
	pthread_t t[4];
	uint64_t k;

	make(at(dir, "threads"), 4096, "", 0);
	if (open_at(&d, where, WRITE, 0) < 0)
		exit(1);
	for (k = 0; k < 4; k++) {
		w[k] = (struct worker){ d, 512 * k, 0 };
		pthread_create(&t[k], NULL, work, &w[k]);
	}
	for (k = 0; k < 4; k++) {
		pthread_join(t[k], NULL);
		ok(w[k].ret == 0, "threads", "%d", w[k].ret);
	}
	brim_device_close(d);
}

/* ----------------------------------------------- images, plans and nothing */

static struct brim_plan *make_plan(uint64_t size)
{
	struct brim_stamp *s;
	struct brim_plan *p;

	if (brim_plan_create(&p, "test plan", size, NULL) < 0 ||
	    brim_stamp_create(&s, NULL) < 0 ||
	    brim_stamp_region(s, 0, 4096, "block", NULL) < 0 ||
	    brim_stamp_set_int(s, 8, 8, BRIM_BIG, 100, 3, "n", NULL) < 0 ||
	    brim_stamp_seal(s, 0, 16, NULL) < 0 ||
	    brim_plan_each(p, s, 0, size / 16, "blocks", 1, NULL) < 0 ||
	    brim_plan_seal(p, NULL) < 0)
		exit(1);
	return p;
}

/* Instance 15 holds 100 + 3 * 15 in its bytes 8..15. */
static void check_plan_device(struct brim_device *d, uint64_t size)
{
	uint8_t n[3] = { 0 };
	struct brim_device_info info;

	brim_device_info(d, &info);
	ok(info.kind == BRIM_KIND_IMAGE && info.size_bytes == size &&
		   !info.is_writable && brim_device_plan(d),
	   "a plan as a device", "%" PRIu64, info.size_bytes);
	ok(brim_device_read(d, size / 16 * 15 + 14, 3, n, &err) == 0 &&
		   n[0] == 0 && n[1] == 145 && n[2] == 0,
	   "rendered", "%d %s", n[1], err.msg);
	ok(brim_device_read(d, size - 1, 1, n, &err) == 0 && n[0] == 0,
	   "unnamed bytes are zero", "%s", err.msg);
	ok(brim_device_read(d, size - 1, 2, n, NULL) == -ERANGE,
	   "past the plan's end", " ");
	ok(brim_device_write(d, 0, 1, n, &err) == -EROFS &&
		   brim_device_zero(d, 0, 1, NULL) == -EROFS &&
		   brim_device_discard(d, 0, 1, NULL) == -EROFS &&
		   brim_device_flush(d, NULL) == 0,
	   "a plan is read-only", "%s", err.msg);
}

static void test_image(void)
{
	uint64_t size = UINT64_C(1) << 62;
	struct brim_plan *p = make_plan(size);
	struct brim_device_info info;
	struct brim_device *d;
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/image.brim", dir);
	ok(brim_device_open_plan(&d, p, &err) == 0, "open plan", "%s", err.msg);
	check_plan_device(d, size);
	brim_device_close(d);
	ok(brim_image_save(p, path, &err) == 0, "save", "%s", err.msg);
	brim_plan_free(p);
	ok(open_at(&d, path, 0, size) == 0, "open image", "%s", err.msg);
	check_plan_device(d, size);
	brim_device_close(d);
	refused("image too small", path, 0, size + 1, -ENOSPC, "too small");
	refused("image for writing", path, FORCE, 0, -EROFS, "brim image");
	ok(open_at(&d, path, WRITE | BRIM_DEVICE_RAW, 0) == 0, "raw", "%s",
	   err.msg);
	brim_device_info(d, &info);
	ok(info.kind == BRIM_KIND_FILE &&
		   info.size_bytes == (uint64_t)file_size(path) &&
		   !brim_device_plan(d),
	   "a raw image is a file", "%" PRIu64, info.size_bytes);
	brim_device_close(d);
	make(path, 8, "brimimg", 8);
	refused("damaged image", path, 0, 0, -EILSEQ, "no brim image");
	make(path, 4096, "brimimg!", 8);
	ok(open_at(&d, path, WRITE, 0) == 0, "not the magic", "%s", err.msg);
	brim_device_close(d);
	make(path, 7, "brimimg", 7);
	ok(open_at(&d, path, WRITE, 0) == 0, "a short file", "%s", err.msg);
	brim_device_close(d);
}

static void test_null(void)
{
	char buf[8] = "1234567";
	struct brim_device_info info;
	struct brim_device *d;

	ok(brim_device_open_null(&d, TOP + 1, &err) == -ERANGE && !d,
	   "null device of 2^63", "%s", err.msg);
	ok(brim_device_open_null(&d, TOP, &err) == 0, "null device", "%s",
	   err.msg);
	brim_device_info(d, &info);
	ok(info.kind == BRIM_KIND_NULL && info.size_bytes == TOP &&
		   info.is_writable && info.align_bytes == 1,
	   "null info", "%" PRIu64, info.size_bytes);
	ok(brim_device_write(d, TOP - 8, 8, buf, NULL) == 0 &&
		   brim_device_read(d, TOP - 8, 8, buf, NULL) == 0 &&
		   !memcmp(buf, "\0\0\0\0\0\0\0", 8) &&
		   brim_device_zero(d, 0, TOP, NULL) == 0 &&
		   brim_device_discard(d, 0, TOP, NULL) == 0 &&
		   brim_device_flush(d, NULL) == 0,
	   "null I/O", " ");
	ok(brim_device_read(d, TOP - 7, 8, buf, NULL) == -ERANGE,
	   "past the end of nothing", " ");
	check_ranges(d, TOP);
	brim_device_close(d);
}

int main(void)
{
	begin();
	test_not_targets();
	test_long_path();
	test_options();
	test_create();
	test_permissions();
	test_sizes();
	test_file();
	test_direct();
	test_threads();
	test_image();
	test_null();
	return tap_end();
}
