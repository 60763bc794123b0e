/* SPDX-License-Identifier: MIT */
/*
 * test_overlay.c: overlays as devices: the map against a plain array, random
 * operations against a model, volumes up to the largest offset, extents, who
 * may open what, many threads. test_overlay_commit.c ends them, and what goes
 * wrong is in test_overlay_crash.c and _hostile.c. SEED=n repeats a run.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "overlay_helper.h"

/* ------------------------------------------------------------------ the map */

#define MAP_BLOCKS 4000u

/* Does the map say what the array says, in order, joined, with right sums? */
static bool map_is(const struct brim__overlay_map *m, const uint64_t *place,
		   const bool *has)
{
	const struct brim__overlay_extent *x = brim__overlay_map_at(m, 0),
					  *next;
	uint64_t at = 0, data = 0, zero = 0, extents = 0, k;

	for (; x; x = next) {
		extents++;
		for (; at < x->from; at++)
			if (has[at])
				return false;
		for (k = 0; k < x->len; k++, at++)
			if (!has[at] ||
			    place[at] != (x->place ? x->place + k : 0))
				return false;
		*(x->place ? &data : &zero) += x->len;
		next = brim__overlay_map_at(m, x->from + x->len);
		if (next && next->from == x->from + x->len &&
		    (x->place ? next->place == x->place + x->len
			      : !next->place))
			return false; /* not joined */
	}
	for (; at < MAP_BLOCKS; at++)
		if (has[at])
			return false;
	return extents == m->extents && data == m->data_blocks &&
	       zero == m->zero_blocks;
}

static void test_map(void)
{
	static uint64_t place[MAP_BLOCKS];
	static bool has[MAP_BLOCKS];
	struct brim__overlay_map m = { 0 };
	struct brim__overlay_list freed = { 0 };
	uint64_t seed = tap_seed(1), next = 2, lost = 0, back = 0, k, n;
	bool good = true;

	for (n = 0; n < 6000 && good; n++) {
		uint64_t max = n % 1000 < 700 ? 4 : 1 + n % 1500;
		struct brim__overlay_extent x = { tap_below(&seed, MAP_BLOCKS),
						  0, 0 };

		x.len = 1 + tap_below(&seed, max);
		x.len = BRIM__MIN(x.len, MAP_BLOCKS - x.from);
		if (tap_below(&seed, 4)) {
			x.place = next;
			next += x.len;
		}
		for (k = x.from; k < x.from + x.len; k++) {
			lost += has[k] && place[k];
			has[k] = true;
			place[k] = x.place ? x.place + (k - x.from) : 0;
		}
		if (brim__overlay_map_set(&m, &x, &freed) < 0)
			good = false;
		if (n % 16 == 0 || n > 5900)
			good = good && map_is(&m, place, has);
	}
	ok(good, "map is what an array would be", "after %llu changes",
	   (unsigned long long)n);
	for (k = 0; k < freed.n; k++)
		back += freed.v[k].len;
	ok(back == lost, "every place given up is told of", "%llu of %llu",
	   (unsigned long long)back, (unsigned long long)lost);
	free(freed.v);
	brim__overlay_map_free(&m);
}

/* Written in order: one extent; every other block: full leaves. */
static void test_map_memory(void)
{
	struct brim__overlay_map m = { 0 };
	struct brim__overlay_list freed = { 0 };
	struct brim__overlay_extent x = { 0, 1, 2 };

	for (; x.from < 100000; x.from++, x.place++)
		brim__overlay_map_set(&m, &x, &freed);
	ok(m.extents == 1 && m.n == 1, "blocks in order are one extent", "%llu",
	   (unsigned long long)m.extents);
	for (x.from = 200000; x.from < 400000; x.from += 2, x.place += 2)
		brim__overlay_map_set(&m, &x, &freed);
	ok(m.extents == 100001 && m.n <= 100001 / 126 + 2,
	   "a block takes 24 bytes", "%llu extents in %zu leaves",
	   (unsigned long long)m.extents, m.n);
	x = (struct brim__overlay_extent){ 0, UINT64_C(1) << 51, 0 };
	brim__overlay_map_set(&m, &x, &freed);
	ok(m.extents == 1 && m.n == 1 && !m.data_blocks,
	   "zeros over all of it are one extent", "%zu leaves", m.n);
	free(freed.v);
	brim__overlay_map_free(&m);
}

/* ------------------------------------------------------- against the model */

static void test_model(uint64_t seed, bool reopens)
{
	static uint8_t model[VOLUME_BYTES], buf[VOLUME_BYTES];
	struct brim_device *d;
	struct step s = { 0 };
	int ret = 0, n;

	make_base();
	for (n = 0; n < (int)VOLUME_BYTES; n++)
		model[n] = base_byte((uint64_t)n);
	d = overlay_must(BRIM_OVERLAY_CREATE);
	for (n = 0; n < 2500 && ret == 0; n++) {
		s = random_step(&seed, VOLUME_BYTES);
		ret = device_step(d, &s, model, buf);
		model_step(model, &s, VOLUME_BYTES);
		if (reopens && tap_below(&seed, 100) == 0) {
			brim_device_close(d);
			d = overlay_must(0);
		}
	}
	ok(ret == 0,
	   reopens ? "random operations and openings" : "random operations",
	   "step %d: op %d, %llu bytes at %llu: %d", n, s.op,
	   (unsigned long long)s.len, (unsigned long long)s.off, ret);
	ok(is_model(d, model, buf, VOLUME_BYTES), "all of it", "differs");
	brim_device_close(d);
	d = overlay_must(BRIM_OVERLAY_READONLY);
	ok(is_model(d, model, buf, VOLUME_BYTES), "all of it, opened again",
	   "differs");
	ok(brim_device_write(d, 0, 1, "x", NULL) == -EROFS &&
		   brim_device_flush(d, NULL) == 0,
	   "read-only is read-only", " ");
	brim_device_close(d);
	make(base_path, 0, "", 0); /* and the base is as it was */
}

static void test_base_untouched(void)
{
	static uint8_t buf[VOLUME_BYTES];
	struct brim_device *d;
	bool same = true;
	uint64_t k;
	int fd;

	make_base();
	d = overlay_must(BRIM_OVERLAY_CREATE);
	brim_device_zero(d, 0, VOLUME_BYTES, NULL);
	brim_device_write(d, 5, 5, "hello", NULL);
	brim_device_close(d);
	fd = open(base_path, O_RDONLY);
	same = read(fd, buf, VOLUME_BYTES) == VOLUME_BYTES;
	close(fd);
	for (k = 0; k < VOLUME_BYTES && same; k++)
		same = buf[k] == base_byte(k);
	ok(same, "the base is never written", "at %llu", (unsigned long long)k);
}

/* --------------------------------------------------------- the largest volume */

static void test_huge(void)
{
	struct brim_device *null, *d;
	struct brim_device_extent x;
	struct brim_overlay_info info;
	uint8_t buf[10000];
	struct stat st;

	snprintf(overlay_path, sizeof(overlay_path), "%s/huge", dir);
	if (brim_device_open_null(&null, TOP, NULL) < 0 ||
	    overlay_over(&d, null, overlay_path, BRIM_OVERLAY_CREATE) < 0) {
		ok(0, "overlay of 2^63-1 bytes", "%s", err.msg);
		return;
	}
	ok(brim_device_write(d, TOP - 5, 5, "omega", &err) == 0 &&
		   brim_device_write(d, TOP / 2 - 2, 5, "kappa", &err) == 0 &&
		   brim_device_zero(d, 0, TOP - 10000, &err) == 0 &&
		   brim_device_write(d, 7, 5, "alpha", &err) == 0 &&
		   brim_device_discard(d, 4096, TOP - 4096 - 20000, &err) == 0,
	   "writes up to 2^63-1", "%s", err.msg);
	ok(brim_device_write(d, TOP - 5, 6, "beyond", &err) == -ERANGE,
	   "and not beyond", "%s", err.msg);
	brim_device_close(d);
	if (overlay_over(&d, null, overlay_path, 0) < 0)
		exit(1);
	ok(brim_device_read(d, TOP - 10000, 10000, buf, &err) == 0 &&
		   !memcmp(buf + 9995, "omega", 5) && !buf[9994],
	   "read again at the end", "%s", err.msg);
	ok(brim_device_read(d, TOP / 2 - 2, 5, buf, &err) == 0 &&
		   !memcmp(buf, "\0\0\0\0\0", 5),
	   "zeroed in the middle", "%s", err.msg);
	ok(brim_device_read(d, 7, 5, buf, &err) == 0 &&
		   !memcmp(buf, "alpha", 5),
	   "read again at the start", "%s", err.msg);
	ok(stat(overlay_path, &st) == 0 && st.st_size < (1 << 20),
	   "in a small file", "%lld bytes", (long long)st.st_size);
	ok(brim_device_extent(d, 4096, &x, &err) == 0 && x.is_zero &&
		   x.is_overlay && x.len_bytes > TOP - 40000,
	   "zeros are one extent", "%llu", (unsigned long long)x.len_bytes);
	ok(brim_device_extent(d, TOP - 1, &x, &err) == 0 && !x.is_zero &&
		   x.len_bytes == 1 &&
		   brim_device_extent(d, TOP, &x, NULL) == -ERANGE,
	   "the extent of the last byte", "%llu",
	   (unsigned long long)x.len_bytes);
	ok(brim_overlay_info(d, &info, &err) == 0 &&
		   info.data_bytes == 3 * 4096 && info.extents <= 5 &&
		   brim_overlay_info(null, &info, NULL) == -EINVAL,
	   "info", "%llu in %llu", (unsigned long long)info.data_bytes,
	   (unsigned long long)info.extents);
	brim_device_close(d);
	brim_device_close(null);
}

/* Much is set between two flushes: it is written unasked. */
static void test_no_flush(void)
{
	struct brim_device *null, *d;
	struct brim__overlay *o;
	size_t most = 0;
	uint64_t k;

	at(dir, "sparse");
	if (brim_device_open_null(&null, UINT64_C(1) << 60, NULL) < 0 ||
	    overlay_over(&d, null, where, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	o = brim__overlay_device(d)->o;
	for (k = 0; k < 40000; k++) {
		brim_device_zero(d, k << 20, 4096, NULL);
		most = BRIM__MAX(most, o->dirty.n);
	}
	ok(most <= 16384, "what is not in the log is bounded", "%zu", most);
	brim_device_close(d);
	overlay_over(&d, null, where, 0);
	ok(d && brim__overlay_device(d)->o->map.extents == 40000,
	   "forty thousand zeroed blocks", "%s", err.msg);
	brim_device_close(d);
	brim_device_close(null);
}

/* ------------------------------------------------------------------- extents */

/* Extents cover the device; what is said to be zeros is. */
static void test_extents(void)
{
	static uint8_t buf[16 << 20];
	struct brim_plan *p = groups_plan(1);
	struct brim_device *base, *d;
	struct brim_device_extent x;
	uint64_t at, data = 0, zero = 0, over = 0, k;
	bool good = true;

	snprintf(overlay_path, sizeof(overlay_path), "%s/extents", dir);
	if (brim_device_open_plan(&base, p, NULL) < 0 ||
	    overlay_over(&d, base, overlay_path, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	brim_device_zero(d, 16 << 20, 4096, NULL);
	brim_device_write(d, (32 << 20) + 4000, 200, buf, NULL);
	brim_device_write(d, (40 << 20) + 1, 1, "x", NULL);
	for (at = 0; at < UINT64_C(1) << 30 && good; at += x.len_bytes) {
		good = brim_device_extent(d, at, &x, NULL) == 0 &&
		       x.len_bytes && x.len_bytes <= (1u << 30) - at;
		*(x.is_zero ? &zero : &data) += x.len_bytes;
		over += x.is_overlay ? x.len_bytes : 0;
		if (!x.is_zero || x.len_bytes > sizeof(buf))
			continue;
		brim_device_read(d, at, x.len_bytes, buf, NULL);
		for (k = 0; k < x.len_bytes && good; k++)
			good = !buf[k];
	}
	ok(good, "extents say what is zero", "at %llu", (unsigned long long)at);
	ok(data == 65 * 4096 && over == 4 * 4096 && zero == (1u << 30) - data,
	   "data of the image and of the overlay", "%llu and %llu",
	   (unsigned long long)data, (unsigned long long)over);
	brim_device_close(d);
	brim_device_close(base);
	brim_plan_free(p);
	make_base();
	open_at(&base, base_path, 0, 0);
	ok(brim_device_extent(base, 4096, &x, NULL) == 0 && !x.is_zero &&
		   x.len_bytes == VOLUME_BYTES - 4096,
	   "a file's data", "%llu", (unsigned long long)x.len_bytes);
	brim_device_close(base);
}

/* ------------------------------------------------------------- who may open */

static void not_opened(const char *name, uint32_t flags, int code,
		       const char *says)
{
	struct brim_device *d;
	int ret = overlay_open(&d, flags);

	ok(ret == code && !d && err.code == code && strstr(err.msg, says) &&
		   !strchr(err.msg, '\n'),
	   name, "%d '%s'", ret, err.msg);
	brim_device_close(d);
}

static void test_opening(void)
{
	struct brim_plan *one = groups_plan(1), *two = groups_plan(2);
	struct brim_device *d, *e, *base;
	char path[PATH_BYTES];
	int fd;

	make_base();
	not_opened("missing", 0, -ENOENT, "overlay");
	not_opened("missing, to be read",
		   BRIM_OVERLAY_CREATE | BRIM_OVERLAY_READONLY, -ENOENT,
		   "overlay");
	not_opened("unknown flags", 64, -EINVAL, "0x40");
	d = overlay_must(BRIM_OVERLAY_CREATE);
	not_opened("in use", 0, -EBUSY, "in use by another process");
	not_opened("in use, to be read", BRIM_OVERLAY_READONLY, -EBUSY,
		   "in use");
	brim_device_close(d);
	d = overlay_must(BRIM_OVERLAY_READONLY);
	e = overlay_must(BRIM_OVERLAY_READONLY);
	not_opened("in use by readers", 0, -EBUSY, "in use");
	brim_device_close(d);
	brim_device_close(e);

	fd = open(base_path, O_WRONLY);
	ok(pwrite(fd, "", 1, 60000) == 1, "the base changes", " ");
	not_opened("for another base", 0, -EINVAL, "has another content");
	ok(pwrite(fd, "", 1, VOLUME_BYTES) == 1, "the base grows", " ");
	close(fd);
	not_opened("for a shorter base", 0, -EINVAL, "has another size");
	make(base_path, 0, "", 0);
	not_opened("an empty base", 0, -EINVAL, "is empty");

	make_base();
	snprintf(path, sizeof(path), "%s", overlay_path);
	make(path, 9000, "brimimg", 8);
	not_opened("no overlay", BRIM_OVERLAY_CREATE, -EILSEQ,
		   "is no overlay of brim; name another file");
	make(path, 0, "", 0);
	not_opened("an empty file", BRIM_OVERLAY_CREATE, -EILSEQ,
		   "is no overlay");
	snprintf(overlay_path, sizeof(overlay_path), "%s", base_path);
	not_opened("the base itself", BRIM_OVERLAY_CREATE, -EILSEQ,
		   "is no overlay");
	snprintf(overlay_path, sizeof(overlay_path), "%s", dir);
	not_opened("a directory", BRIM_OVERLAY_CREATE, -EISDIR, "overlay");
	snprintf(overlay_path, sizeof(overlay_path), "%s/fifo2", dir);
	if (mkfifo(overlay_path, 0600) == 0)
		not_opened("a pipe", BRIM_OVERLAY_CREATE, -EILSEQ,
			   "no regular file");
	snprintf(overlay_path, sizeof(overlay_path), "%s/no/x", dir);
	not_opened("no directory", BRIM_OVERLAY_CREATE, -ENOENT,
		   "cannot be made");

	snprintf(overlay_path, sizeof(overlay_path), "%s/image", dir);
	if (brim_device_open_plan(&base, one, NULL) < 0 ||
	    overlay_over(&d, base, overlay_path, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	brim_device_close(d);
	brim_device_close(base);
	if (brim_device_open_plan(&base, two, NULL) < 0)
		exit(1);
	ok(overlay_over(&d, base, overlay_path, 0) == -EINVAL &&
		   strstr(err.msg, "another content"),
	   "for another image", "%s", err.msg);
	brim_device_close(base);
	/* The same image out of a file is the same. */
	at(dir, "one.brim");
	brim_image_save(one, where, NULL);
	open_at(&base, where, 0, 0);
	ok(overlay_over(&d, base, overlay_path, 0) == 0, "image from a file",
	   "%s", err.msg);
	brim_device_close(d);
	brim_device_close(base);
	brim_plan_free(one);
	brim_plan_free(two);
}

/* An overlay over an overlay. */
static void test_nested(void)
{
	struct brim_device *lower, *upper;
	char buf[8] = "";

	make_base();
	lower = overlay_must(BRIM_OVERLAY_CREATE);
	brim_device_write(lower, 4094, 4, "LOWE", NULL);
	at(dir, "upper");
	if (overlay_over(&upper, lower, where, BRIM_OVERLAY_CREATE) < 0)
		exit(1);
	brim_device_close(lower);
	brim_device_write(upper, 4096, 1, "U", NULL);
	ok(brim_device_read(upper, 4094, 4, buf, NULL) == 0 &&
		   !strcmp(buf, "LOUE"),
	   "an overlay over an overlay", "%s", buf);
	brim_device_close(upper);
}

/* ------------------------------------------------------------------- threads */

#define THREADS 6u
#define PART 512u
#define ROUNDS 12u

struct worker {
	struct brim_device *d;
	uint32_t number;
	int ret;
};

/* Each has every THREADS-th sector of all blocks, and flushes now and then. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint8_t buf[PART], back[PART];
	uint64_t at;
	uint32_t round;

	for (round = 0; round < ROUNDS && !w->ret; round++) {
		memset(buf, (int)(16 * w->number + round), PART);
		for (at = w->number * PART;
		     at + PART <= VOLUME_BYTES && !w->ret;
		     at += THREADS * PART) {
			w->ret = brim_device_write(w->d, at, PART, buf, NULL);
			if (w->ret == 0)
				w->ret = brim_device_read(w->d, at, PART, back,
							  NULL);
			if (w->ret == 0 && memcmp(buf, back, PART))
				w->ret = 1;
		}
		if (w->ret == 0 && round % 3 == w->number % 3)
			w->ret = brim_device_flush(w->d, NULL);
	}
	return NULL;
}

static void test_threads(void)
{
	static uint8_t buf[VOLUME_BYTES];
	struct worker w[THREADS] = { 0 };
	pthread_t t[THREADS];
	struct brim_device *d;
	bool good = true;
	uint64_t k;

	make_base();
	d = overlay_must(BRIM_OVERLAY_CREATE);
	for (k = 0; k < THREADS; k++) {
		w[k].d = d;
		w[k].number = (uint32_t)k;
		pthread_create(&t[k], NULL, work, &w[k]);
	}
	for (k = 0; k < THREADS; k++)
		pthread_join(t[k], NULL);
	for (k = 0; k < THREADS; k++)
		ok(w[k].ret == 0, "a thread has its sectors", "%d", w[k].ret);
	brim_device_close(d);
	d = overlay_must(0);
	brim_device_read(d, 0, VOLUME_BYTES, buf, NULL);
	for (k = 0; k < VOLUME_BYTES / PART * PART && good; k++)
		good = buf[k] == 16 * (k / PART % THREADS) + ROUNDS - 1;
	ok(good, "and nobody else's", "byte %llu", (unsigned long long)k);
	brim_device_close(d);
}

int main(void)
{
	begin();
	test_map();
	test_map_memory();
	test_model(tap_seed(11), false);
	test_model(tap_seed(12), true);
	test_base_untouched();
	test_huge();
	test_no_flush();
	test_extents();
	test_opening();
	test_nested();
	test_threads();
	return tap_end();
}
